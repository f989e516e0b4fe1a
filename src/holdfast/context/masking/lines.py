"""A text as the lines a person would see: colours, progress bars and binary junk made harmless.

A carriage return ends a line like any other line break, so that what a progress bar overwrote can still be found. A
line of more than ``LONGEST`` characters is taken in pieces, so that a document without line breaks is looked at too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 1_000
_BLOCK = 32

# Never across a line break: an escape sequence that does not end must not swallow what follows.
_ESCAPES = re.compile(
    r"[\x1b]\[[0-?]{0,64}[ -/]{0,8}[@-~]?|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]?"
    r"|\x1b\][^\x07\x1b\r\n]{0,2000}(?:\x07|\x1b\\)|\x1b[ -/]{0,3}[0-~]?"
)
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Controls, marks that turn the direction of what follows, and halves of characters that no file can hold.
_JUNK = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+"
)
_PIECE = re.compile(rf".{{{LONGEST - 200},{LONGEST}}}(?=\s)|.{{1,{LONGEST}}}")


def cleaned(text: str) -> str:
    """The text with one kind of line break and nothing that a terminal would act on."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    return _JUNK.sub("\ufffd", _BREAKS.sub("\n", text))


def split(clean: str) -> list[str]:
    """The lines that are not blank, without what trails them."""
    found: list[str] = []
    for line in clean.split("\n"):
        line = line.rstrip()
        if len(line) > LONGEST:
            found.extend(_pieces(line))
        elif line:
            found.append(line)
    return found


def _pieces(line: str) -> Iterator[str]:
    """A long line, cut where it says that lines end, as in a text that was quoted, and else at spaces."""
    for part in line.split("\\n"):
        yield from (piece for piece in _PIECE.findall(part) if piece.strip())


def holding(stems: tuple[str, ...], lines: list[str], *, fold: bool = False) -> set[int]:
    """Which lines hold one of the stems; with ``fold``, whatever their case.

    Most outputs hold few of them, so many lines are looked at together, and each by itself only where that pays.
    """
    found: set[int] = set()
    for start in range(0, len(lines), _BLOCK):
        block = lines[start : start + _BLOCK]
        whole = "\n".join(block)
        if fold:
            whole = whole.lower()
        present = [stem for stem in stems if stem in whole]
        if present:
            each = whole.split("\n")  # lower() adds no line break and takes none away
            found.update(at for at, line in enumerate(each, start) if any(stem in line for stem in present))
    return found


def count_lines(text: str) -> int:
    """How many lines a text has."""
    return text.count("\n") + (not text.endswith("\n"))


def cut(line: str, most: int) -> str:
    """At most that many characters of a line."""
    return line if len(line) <= most else line[: max(most - 1, 0)] + "…"
