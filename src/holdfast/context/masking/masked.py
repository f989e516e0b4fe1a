"""The stand-in: a first line that is ours, and below it what was kept of the text.

::

    [masked: pytest output, 4,210 lines, 182,003 characters; the whole text: trip-42#17]
    | === test session starts ===
    | E       assert 1 == 2
    | FAILED tests/test_seats.py::test_aisle - assert 1 == 2
    | === 1 failed, 312 passed in 41.20s ===

Only two lines can be ours: the first, and a last one that says how many error lines are in the whole text alone. All
others carry a bar, so nothing in a tool's output can pass for either, whatever it looks like. A stand-in comes back
unchanged only where it names the reference that was asked for; a frame with any other is text. A short text is never
changed, whatever it begins with: ``Masked.masked`` says whether the frame is ours.

Error lines are kept up to ``ERROR_LINES`` rows and ``ERROR_CHARS`` characters: the beginning, and a fifth from the end.
Each is as it was written, but for colours and control characters; of a line above 1,000 characters, the piece that
says the error.
"""

from __future__ import annotations

import re

import msgspec

from holdfast.context.masking import documents, gist
from holdfast.context.masking.findings import ErrorGroup, find, rows
from holdfast.context.masking.kinds import DOCUMENT, kind_of
from holdfast.context.masking.lines import cleaned, count, cut, split
from holdfast.errors import Invalid

SHORT = 800
ERROR_LINES = 1_000
ERROR_CHARS = 60_000

_LONGEST_REFERENCE = 1_000
_SUMS, _WIDEST, _NARROWEST = 5, 160, 40
_OPENS = "[masked: "
_BARRED = re.compile(r"(?:[\d,]+\u00d7 )?\| ")
_MORE = re.compile(r"\[and [\d,]+ more error lines in the whole text\]")
_DRAWN = re.compile(r"([=_*#~-])\1{3,}")


class Masked(msgspec.Struct, frozen=True):
    """What stands for a text.

    ``lines`` and ``chars`` are the size of the text that was given. ``kept`` error lines are in the stand-in (those
    that share a row counted each), ``left`` are in the whole text alone. ``kind`` is empty where nothing was masked.
    """

    text: str
    lines: int
    chars: int
    kept: int = 0
    left: int = 0
    kind: str = ""

    @property
    def masked(self) -> bool:
        return bool(self.kind)


def mask(text: str, *, fetch: str, limit: int = 400) -> Masked:
    """A short stand-in for a long tool output, or the text itself where that is as short.

    ``fetch`` is the reference by which the whole text can be had, such as "trip-42#17". ``limit`` is about how many
    characters are kept besides the error lines, which are kept up to the caps above. The result is never longer than
    the text, the same for the same text, and masking it again with the same reference changes nothing.
    """
    _check(fetch, limit)
    size = Masked(text, count(text), len(text))
    if len(text) <= SHORT or _is_stand_in(text, fetch):
        return size
    found = _stand_in(text, size, fetch, limit)
    return found if len(found.text) < len(text) else size


def _check(fetch: str, limit: int) -> None:
    if not fetch.strip() or len(fetch) > _LONGEST_REFERENCE or cleaned(fetch) != fetch or "\n" in fetch:
        raise Invalid("A reference is one line of text, such as 'trip-42#17': not empty, no control characters.")
    if limit < 0:
        raise Invalid(f"The limit is a number of characters; got {limit}. Give 0 to keep error lines alone.")


def _ends(fetch: str) -> str:
    return f"; the whole text: {fetch}]"


def _is_stand_in(text: str, fetch: str) -> bool:
    first, _, rest = text.partition("\n")
    if not (first.startswith(_OPENS) and first.endswith(_ends(fetch)) and len(text) <= ERROR_CHARS * 2):
        return False
    if not rest:
        return "\n" not in text
    *barred, last = rest.split("\n")
    return all(_BARRED.match(line) for line in barred) and bool(_BARRED.match(last) or _MORE.fullmatch(last))


def _stand_in(text: str, size: Masked, fetch: str, limit: int) -> Masked:
    clean = cleaned(text)
    lines = split(clean)
    document = documents.parsed(text) or documents.parsed(clean)
    if document is None:
        kind = kind_of(lines)
        errors = rows(find(lines, shown=kind.shown))
        about, told, ends = gist.about(kind, lines), gist.sums(lines), lines[:1] + lines[-1:]
    else:
        kind = DOCUMENT
        errors = rows(documents.errors(document))
        told = gist.sums([lines[0], *documents.texts(document)])
        about, ends = documents.outline(document), []  # its first and last line are brackets
    shown, left = _capped(errors)
    numbers = (_number(size.lines, "line"), _number(size.chars, "character"), gist.counts(kind, lines))
    frame = f"{_OPENS}{kind.name}, {', '.join(filter(None, numbers))}{_ends(fetch)}"
    before, after = _around(ends, told, about, {row.line for row in shown}, limit - len(frame))
    body = [frame, *before, *map(str, shown), *after]
    if left:
        body.append(f"[and {left:,} more error lines in the whole text]")
    return Masked("\n".join(body), size.lines, size.chars, sum(row.lines for row in shown), left, kind.name)


def _number(of: int, thing: str) -> str:
    return f"{of:,} {thing}{'s' * (of != 1)}"


def _capped(errors: list[ErrorGroup]) -> tuple[list[ErrorGroup], int]:
    """The rows that are kept, and how many error lines are in the others."""
    head = _fitting(errors, ERROR_LINES * 4 // 5, ERROR_CHARS * 4 // 5)
    if head == len(errors):
        return errors, 0
    tail = _fitting(errors[: head - 1 : -1] if head else errors[::-1], ERROR_LINES // 5, ERROR_CHARS // 5)
    between = errors[head : len(errors) - tail]
    return errors[:head] + errors[len(errors) - tail :], sum(row.lines for row in between)


def _fitting(errors: list[ErrorGroup], most: int, chars: int) -> int:
    """How many rows from the beginning fit."""
    for at, row in enumerate(errors[:most]):
        chars -= len(str(row))
        if chars < 0:
            return at
    return min(most, len(errors))


def _around(ends: list[str], told: list[str], about: str, errors: set[str], room: int) -> tuple[list[str], list[str]]:
    """What is kept before and after the error lines: the ends of the text, what it is about, what sums it up.

    What matters most gets the room first: the last sums, then the last line, the first, and what it is about.
    """
    kept: dict[str, str] = {}
    for line in (*ends[1:], *reversed(told[-_SUMS:]), *ends[:1], about):
        if not line or line in errors or line in kept:
            continue
        short = cut(_DRAWN.sub(r"\1\1\1", line), max(min(room, _WIDEST), _NARROWEST))
        if room > 0:
            kept[line] = f"| {short}"
            room -= len(short) + 3
    first = ends[0] if ends else ""
    before = [kept.pop(line) for line in dict.fromkeys((first, about)) if line in kept]
    after = [kept[line] for line in dict.fromkeys((*told, *ends[1:])) if line in kept]
    return before, after
