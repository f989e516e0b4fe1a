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

The limit is hard. Inside it the reference comes first, then the errors, then what else is worth telling. Where there
are too many errors, the first and the last are kept and the others counted; a row that is too long is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from holdfast.context.masking import documents, gist
from holdfast.context.masking.findings import ErrorGroup, find, rows
from holdfast.context.masking.kinds import DOCUMENT, kind_of
from holdfast.context.masking.lines import cleaned, count_lines, cut, split
from holdfast.context.sentences import Count
from holdfast.context.sentences import cut as cut_tokens
from holdfast.errors import Invalid

LIMIT = 800  # a cap and not a target: of the results in a coding session, most take a hundred
SHORT = 200

_LONGEST_REFERENCE = 1_000
_BESIDE = 100  # tokens, for what is told besides errors
_CHARS = 8  # in a token; hardly a text has more
_TRIES = 4
_ROWS, _MANY = 8, 64
_ROW = 48  # tokens, that an error line is worth
_PIECE = 40  # characters; less of a line tells nothing
_LEAST = 12
_SUMS, _WIDEST = 5, 160
_OPENS = "[masked"
_BARRED = re.compile(r"(?:[\d,]+\u00d7 )?\| ")
_MORE = re.compile(r"\[and [\d,]+ more error lines in the whole text\]")
_STAMP = re.compile(r"\| \W?\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S* *")
_DRAWN, _THREE = re.compile(r"([=_*#~-])\1{3,}"), r"\1\1\1"


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


def mask(text: str, *, fetch: str, count: Count, limit: int = LIMIT) -> Masked:
    """A stand-in of at most ``limit`` tokens for a long tool output, or the text itself where that is as short.

    ``fetch`` is the reference by which the whole text can be had, such as "trip-42#17". It is always in the stand-in;
    a limit smaller than the shortest first line, ``[masked; the whole text: trip-42#17]``, is ``Invalid``. A text of
    up to ``SHORT`` tokens is not changed if it is within the limit. The result is the same for the same text, and
    masking it again with the same reference and limit changes nothing.
    """
    _check(text, fetch, count, limit)
    size = Masked(text, count_lines(text), len(text))
    head = text[: limit * _CHARS]  # of a long text this tells, and counting all of it takes time
    tokens = limit + 1 if count(head) > limit else count(text)
    if tokens <= min(limit, SHORT) or (tokens <= limit and _is_stand_in(text, fetch)):
        return size
    found = _stand_in(_read(text), size, fetch, limit, count)
    return found if count(found.text) < tokens else size


def least(fetch: str, count: Count) -> int:
    """The smallest limit for a reference: what the shortest first line takes."""
    return count(_frame(fetch))


def _check(text: object, fetch: object, count: Count, limit: object) -> None:
    if not isinstance(text, str):
        raise Invalid(f"A tool's output is text here, not {type(text).__name__}.")
    if (
        not isinstance(fetch, str)
        or not fetch.strip()
        or len(fetch) > _LONGEST_REFERENCE
        or cleaned(fetch) != fetch
        or "\n" in fetch
    ):
        raise Invalid("A reference is one line of text, such as 'trip-42#17': not empty, no control characters.")
    fewest = least(fetch, count)
    if type(limit) is not int or limit < fewest:
        raise Invalid(f"The limit is a number of tokens, here {fewest} or more to say where the whole is; got {limit}.")


def _frame(fetch: str, details: str = "") -> str:
    return f"{_OPENS}{details}; the whole text: {fetch}]"


def _is_stand_in(text: str, fetch: str) -> bool:
    first, *rest = text.split("\n")
    if not (first.startswith(_OPENS) and first.endswith(_frame(fetch)[len(_OPENS) :])):
        return False
    if rest and _MORE.fullmatch(rest[-1]):
        rest.pop()
    return all(map(_BARRED.match, rest))


class _Reading(NamedTuple):
    """What there is to tell of a text: its kind and what can be counted in it, its errors, and the rest by worth."""

    kind: str
    counts: str
    errors: list[ErrorGroup]
    about: str
    sums: list[str]
    ends: list[str]


def _read(text: str) -> _Reading:
    clean = cleaned(text)
    lines = split(clean)
    document = documents.parsed(text) or documents.parsed(clean)
    if document is not None:
        told = gist.sums([lines[0], *documents.texts(document)])
        errors = rows(documents.errors(document))  # no ends: its first and last line are brackets
        return _Reading(DOCUMENT.name, "", errors, documents.outline(document), told, [])
    kind = kind_of(lines)
    errors = rows(find(lines, shown=kind.shown))
    ends = lines[:1] + lines[-1:]
    return _Reading(kind.name, gist.counts(kind, lines), errors, gist.about(kind, lines), gist.sums(lines), ends)


def _stand_in(read: _Reading, size: Masked, fetch: str, limit: int, count: Count) -> Masked:
    """Parts that fit one by one may be too much together, as the caller's counter sees it: then less is taken."""
    room, body, shown = limit, [_frame(fetch)], list[ErrorGroup]()
    for _ in range(_TRIES):
        tried, kept = _body(read, size, fetch, room, count)
        over = count("\n".join(tried)) - limit
        if over <= 0:
            body, shown = tried, kept
            break
        room -= over
    told = _lines(shown)
    return Masked("\n".join(body), size.lines, size.chars, told, _lines(read.errors) - told, read.kind)


class _Room:
    """What is left of a limit."""

    def __init__(self, tokens: int, count: Count) -> None:
        self.tokens, self._count, self._break = tokens, count, count("\n")

    def take(self, row: str, most: int, piece: int = _PIECE) -> str:
        """The row, cut where it has more than so many tokens; empty where not even a piece of it fits."""
        room = min(most, self.tokens) - self._break
        if self._count(row) > room:  # first without what tells least
            row = _STAMP.sub("| …", _DRAWN.sub(_THREE, row))
        text = cut_tokens(row, max(room, 0), self._count)
        if not text or (text != row and len(text) < piece):
            return ""
        self.tokens -= self._count(text) + self._break
        return text

    def share(self, errors: list[ErrorGroup], room: int) -> int:
        """The most that one row may take so that all of them fit; where there are too many, an eighth or a line."""
        least, waiting = max(room // _ROWS, _ROW), len(errors)
        for cost in sorted(self._count(str(row)) + self._break for row in errors[:_MANY]):
            if cost * waiting > room:
                return max(room // waiting, least)
            room, waiting = room - cost, waiting - 1
        return least if waiting else self.tokens

    def taken(self, errors: Iterable[ErrorGroup], leave: int, most: int, piece: int = _PIECE) -> list[str]:
        """The rows from the first on that fit, with some room left over; of the first, a piece may do."""
        found: list[str] = []
        for row in errors:
            if not (text := self.take(str(row), min(most, self.tokens - leave), _PIECE if found else piece)):
                break
            found.append(text)
        return found


def _body(read: _Reading, size: Masked, fetch: str, limit: int, count: Count) -> tuple[list[str], list[ErrorGroup]]:
    room = _Room(limit, count)
    numbers = (_number(size.lines, "line"), _number(size.chars, "character"), read.counts)
    frame = _frame(fetch, f": {read.kind}, {', '.join(filter(None, numbers))}")
    if count(frame) * 3 > limit:
        frame = _frame(fetch)
    room.tokens -= count(frame)
    head, tail = _fitting(read.errors, room)
    shown = read.errors[: len(head)] + read.errors[len(read.errors) - len(tail) :]
    left = _lines(read.errors) - _lines(shown)
    more = room.take(f"[and {left:,} more error lines in the whole text]", room.tokens) if left else ""
    before, after = _around(read, {row.line for row in shown}, room)
    rows = [frame, *before, *head, *tail, *after]
    return [*rows, more] if _MORE.fullmatch(more) else rows, shown


def _number(of: int, thing: str) -> str:
    return f"{of:,} {thing}{'s' * (of != 1)}"


def _lines(errors: Iterable[ErrorGroup]) -> int:
    return sum(row.lines for row in errors)


def _fitting(errors: list[ErrorGroup], room: _Room) -> tuple[list[str], list[str]]:
    """The rows that are kept, the first and the last."""
    beside = min(_BESIDE, room.tokens // 4)
    most = room.share(errors, room.tokens - beside)
    head = room.taken(errors, beside + (room.tokens // 5 if most < room.tokens else 0), most, _LEAST)
    tail = room.taken(errors[: len(head) - 1 if head else None : -1], beside, most)
    return head, tail[::-1]


def _around(read: _Reading, errors: set[str], room: _Room) -> tuple[list[str], list[str]]:
    """What is kept before and after the error lines: the ends of the text, what it is about, what sums it up.

    What matters most gets the room first: the last line, the last sums, the first line, and what it is about.
    """
    leave = room.tokens - _BESIDE
    kept: dict[str, str] = {}
    for line in (*read.ends[1:], *reversed(read.sums[-_SUMS:]), *read.ends[:1], read.about):
        if line and line not in errors and line not in kept:
            row = cut(_DRAWN.sub(_THREE, line), _WIDEST)
            if short := room.take(f"| {row}", room.tokens - max(leave, 0)):
                kept[line] = short
    before = [kept.pop(line) for line in dict.fromkeys((*read.ends[:1], read.about)) if line in kept]
    after = [kept[line] for line in dict.fromkeys((*read.sums, *read.ends[1:])) if line in kept]
    return before, after
