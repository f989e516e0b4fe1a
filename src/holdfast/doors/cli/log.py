"""The command that prints a log.

It reads page by page, so that a long log is printed while it is read. Away from a terminal each entry is one line.
Deliberately absent: any writing.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime

from holdfast import Thread
from holdfast.doors import plain
from holdfast.doors.cli import options, wording
from holdfast.doors.cli.desk import Desk
from holdfast.errors import Invalid
from holdfast.records import Entry

SPEAKER_WIDTH = 11  # observation, the longest kind
_PAGE = 500
_POLL_S = 0.25


def log(
    desk: Desk,
    thread: options.ThreadId,
    last: options.Last = None,
    after: options.After = None,
    since: options.LoggedSince = None,
    limit: options.Limit = None,
    follow: options.Follow = False,
) -> None:
    """Print the log of a thread, oldest entry first.

    \b
    Examples:
      holdfast log trip-42 --last 5
      holdfast log trip-42 --after 0 | grep Lisbon
      holdfast log trip-42 --since "2h ago"
      holdfast log trip-42 --follow
    """
    if last is not None and (after is not None or since is not None or limit is not None):
        raise Invalid("give either --last, or --after, --since and --limit")
    begin = desk.moment(since)
    with desk.open() as store:
        handle = store.thread(thread)
        total = handle.info().entries
        if begin is not None:
            after = max(after or 0, _before(handle, total, begin))
        first, most = _window(total, last, after, limit)
        if first and last is None and after is None:
            desk.note(f"Entries {first + 1:,} to {total:,}; --after 0 begins at the first.")
        entries = _following(handle, first, limit) if follow else _pages(handle, first, most)
        if desk.options.json and not follow:
            found = [plain.entry(entry) for entry in entries]
            desk.document({"thread": thread, "total": total, "entries": found})
            return
        if follow:
            desk.live()
        printer = _Printer(desk, len(str(total)))
        for entry in entries:
            printer.entry(entry)


def _before(handle: Thread, total: int, begin: datetime) -> int:
    """How many entries are older than a moment. Times never go back in a log, so few of them are read."""
    return bisect_left(range(total), begin, key=lambda number: handle.log(after=number, limit=1)[0].time)


def _window(total: int, last: int | None, after: int | None, limit: int | None) -> tuple[int, int | None]:
    """The number after which to begin, and how many to read: no more than there were, or else than was asked for."""
    if after is not None or limit is not None:
        return after or 0, limit
    first = max(0, total - (last or options.WINDOW))
    return first, total - first


def _pages(handle: Thread, after: int, limit: int | None) -> Iterator[Entry]:
    left = limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        page = handle.log(after=after, limit=size)
        yield from page
        if len(page) < size:
            return
        after = page[-1].number
        left = None if left is None else left - size


def _following(handle: Thread, after: int, limit: int | None) -> Iterator[Entry]:
    left = limit
    while left is None or left > 0:
        for entry in _pages(handle, after, left):
            yield entry
            after = entry.number
            left = None if left is None else left - 1
        time.sleep(_POLL_S if left != 0 else 0)
        after = min(after, handle.info().entries)  # after a rewind, go on from where the thread is now


def colour(entry: Entry) -> str:
    """The style of a speaker."""
    return {"user": "person", "assistant": "name"}.get(wording.speaker(entry), "quiet")


class _Printer:
    """Prints entries one by one. On a terminal the day stands above the entries of that day."""

    def __init__(self, desk: Desk, width: int) -> None:
        self._desk, self._width = desk, width
        self._day = ""

    def entry(self, entry: Entry) -> None:
        if self._desk.options.json:
            self._desk.document(plain.entry(entry), indent=None)
            return
        screen, when = self._desk.screen, wording.stamp(entry.time)
        if screen.terminal:
            day, when = when[:10], when[11:19]
            if day != self._day:
                screen.line((f"{day} (UTC)", "quiet"))
            self._day = day
        number = f"{entry.number:>{self._width}}"
        left = [(number, "quiet"), (when, "quiet"), (wording.speaker(entry), colour(entry))]
        screen.hanging(left, [len(number), len(when), SPEAKER_WIDTH], wording.words(entry))
