"""JSON documents: their shape in a line, and the errors they hold.

A document may be one line or a million, so its errors are found in its values and not in its lines. A text of several
lines inside it (what a command printed, wrapped by the program that ran it) is read like any other output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from holdfast.context.masking.errors import is_error
from holdfast.context.masking.findings import Error, find
from holdfast.context.masking.kinds import kind_of
from holdfast.context.masking.lines import cleaned, cut, split

_KEYS = 24
_LONGEST_PLACE = 200
_FEW_LINES = 20
_ERRORS = re.compile(
    r"\w{0,40}?(?:errors?|(?<![a-z])err|errmsg|exceptions?|failures?|traceback|stderr)"
    r"(?:_?(?:messages?|code|descriptions?|type|details?))?$",
    re.IGNORECASE,
)
_STATUS = re.compile(r"(?:status|state|level|severity|conclusion|result|outcome|phase|type)$", re.IGNORECASE)
_BAD = re.compile(
    r"(?:errors?|err|fail(?:ed|ure|ing)?|fatal|critical|crash\w*|denied|aborted|timed_?out|rejected)$", re.IGNORECASE
)
_CODE = re.compile(r"(?:http_?)?(?:status|code)(?:_?code)?$", re.IGNORECASE)
_EXIT = re.compile(r"(?:exit|return)_?(?:code|status)$|returncode$", re.IGNORECASE)
_OK = re.compile(r"(?:is_?)?(?:ok|success(?:ful)?|succeeded|passed|valid)$", re.IGNORECASE)
_SAID = re.compile(r"(?:message|msg|details?|reason|cause|title)$", re.IGNORECASE)
_HEAD = re.compile(r"HTTP/[\d.]+ \d{3}.*?\r?\n\r?\n", re.DOTALL)


class Leaf(NamedTuple):
    """A value in a document: where it is, its name, and whether a name above it or its own speaks of errors."""

    place: str
    name: str
    value: Any
    blamed: bool


def parsed(text: str) -> Any:
    """The object or array that the text is, or None."""
    text = text.lstrip("\ufeff \t\r\n")
    if text.startswith("HTTP/") and (head := _HEAD.match(text)):
        text = text[head.end() :]
    if text[:1] not in ("{", "["):
        return None
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # msgspec's errors, and UnicodeError, are ValueErrors
        return None
    return value if value else None


def outline(document: Any) -> str:
    """Top-level names, with the sizes of what they hold."""
    if isinstance(document, dict):
        return _flat("{" + _names(document) + "}")
    first = document[0]
    each = f" of {{{_names(first)}}}" if isinstance(first, dict) else ""
    return _flat(f"[{len(document):,}{each}]")


def _flat(name: str) -> str:
    """A name may hold anything, line breaks too; it must not begin a line in the stand-in."""
    return " ".join(cleaned(name).split())


def _names(fields: dict[str, Any]) -> str:
    shown = ", ".join(cut(name, 60) + _size(value) for name, value in list(fields.items())[:_KEYS])
    more = len(fields) - _KEYS
    return shown + (f", … and {more:,} more" if more > 0 else "")


def _size(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{len(value):,}}}"
    if isinstance(value, list):
        return f"[{len(value):,}]"
    return "" if isinstance(value, str) else ": " + cut(msgspec.json.encode(value).decode(), 20)


def leaves(document: Any) -> Iterator[Leaf]:
    """Every plain value that can say something. A stack and not recursion: a document may be deep, and huge."""
    stack: list[Iterator[Leaf]] = [iter([Leaf("", "", document, False)])]
    while stack:
        for leaf in stack[-1]:
            if isinstance(leaf.value, dict | list):
                stack.append(_inside(leaf))
                break
            yield leaf
        else:
            stack.pop()


def _inside(leaf: Leaf) -> Iterator[Leaf]:
    blamed = leaf.blamed or bool(_ERRORS.match(leaf.name))
    place = f"{leaf.place}.{leaf.name}" if leaf.place and leaf.name else leaf.place or leaf.name
    if len(place) > _LONGEST_PLACE:
        place = "…" + place[-_LONGEST_PLACE:]
    if isinstance(leaf.value, dict):
        for name, value in leaf.value.items():
            yield Leaf(place, name, value, blamed or bool(_ERRORS.match(name)))
    elif blamed or any(isinstance(value, str | dict | list) for value in leaf.value):  # not: an array of numbers
        for at, value in enumerate(leaf.value):
            yield Leaf(f"{place}[{at}]", "", value, blamed)


def texts(document: Any) -> list[str]:
    """The lines of the texts in a document that have several."""
    many = (value for _, _, value, _ in leaves(document) if isinstance(value, str) and "\n" in value)
    return [line for value in many for line in split(cleaned(value))]


def errors(document: Any) -> Iterator[Error]:
    """Every value that says an error, as ``"name": value`` with its place."""
    for place, name, value, blamed in leaves(document):
        if isinstance(value, str) and "\n" in value.strip():
            lines = split(cleaned(value))
            yield from find(lines, shown=len(lines) > _FEW_LINES and kind_of(lines).shown)
        elif _says_error(name, value, blamed):
            whole = (f'"{name}": ' if name else "") + msgspec.json.encode(value).decode()
            yield from (Error(piece, _flat(place)) for piece in split(cleaned(whole)))


def _says_error(name: str, value: Any, blamed: bool) -> bool:
    if value is False:
        return bool(_OK.match(name))
    if value is True or value is None:
        return blamed and value is True
    if isinstance(value, str):
        if not value.strip():
            return False
        return blamed or _told(name, value)
    if _CODE.match(name) and 400 <= value < 600:
        return True
    return value != 0 and (blamed or bool(_EXIT.match(name)))


def _told(name: str, value: str) -> bool:
    if _STATUS.match(name) and _BAD.match(value):
        return True
    return is_error(value, shown=not _SAID.match(name))
