"""What a session writes into the log for itself: summaries, where a fresh session began, and the usage of an answer.

They are entries like any others, so they fork, rewind, export and go with the thread they are in. A summary names the
range it covers and the summary before it; what was recalled for an answer is named by ids, never copied, so that what
is erased is gone. Deliberately absent: when they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.ledger.speech import RESERVED
from holdfast.records import Draft, Entry

SUMMARY = "summary"
SESSION = f"{RESERVED}session"
USAGE = f"{RESERVED}usage"
UNANSWERED = f"{RESERVED}unanswered"


class Summary(msgspec.Struct, frozen=True):
    """A summary of entries ``first`` to ``last``. ``by`` made it; ``previous`` is the number of the one before it."""

    first: int
    last: int
    text: str
    by: str
    previous: int = 0

    def draft(self) -> Draft:
        return Draft(SUMMARY, msgspec.to_builtins(self))


def summary_of(entry: Entry) -> Summary | None:
    return _read(entry.content, Summary) if entry.kind == SUMMARY else None


def is_event(entry: Entry, name: str) -> bool:
    return entry.kind == "event" and isinstance(entry.content, dict) and entry.content.get("name") == name


def _read(content: Any, shape: type[Any]) -> Any:
    """The content of one of our entries; None if someone else wrote one that only looks like it."""
    try:
        return msgspec.convert(content, shape)
    except msgspec.ValidationError:
        return None


class SessionEvents(NamedTuple):
    """Where a window may begin: after the newest summary, or after the mark of a session that began from a handoff."""

    start: int
    summary: tuple[int, Summary] | None
    fresh: Entry | None


def still_told(entries: Sequence[Entry]) -> list[Entry]:
    """Entries without the remark that a question is not answered, where it was answered later."""
    answered = {entry.content.get("question") for entry in entries if is_event(entry, USAGE)}
    return [e for e in entries if not (is_event(e, UNANSWERED) and e.content.get("question") in answered)]


def chain(marks: SessionEvents, read: Callable[[int], Entry]) -> Iterator[Summary]:
    """The newest summary and those before it, newest first. Each names an earlier one, so it ends."""
    number, summary = marks.summary or (0, None)
    while summary is not None:
        yield summary
        number, before = summary.previous, number
        summary = summary_of(read(number)) if 0 < number < before else None


def marks_of(entries: Sequence[Entry]) -> SessionEvents:
    """The newest marks among entries. A fresh session does not look back: its handoff says what came before."""
    summary: tuple[int, Summary] | None = None
    fresh: Entry | None = None
    for entry in reversed(entries):
        found = summary_of(entry)
        if found is not None and found.last < entry.number and (summary is None or found.last > summary[1].last):
            summary = entry.number, found
        if fresh is None and is_event(entry, SESSION) and entry.content.get("fresh") is True:
            fresh = entry
        if fresh is not None:
            break
    if fresh is not None and summary is not None and summary[1].last <= fresh.number:
        summary = None
    start = max(0 if summary is None else summary[1].last + 1, 0 if fresh is None else fresh.number + 1)
    return SessionEvents(start, summary, fresh)
