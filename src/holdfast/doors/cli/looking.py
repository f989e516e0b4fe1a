"""Commands that only look: threads, show, log, state.

They never make a store that is not there, and show a state as it is stored, so that no class of the caller's program
is needed. Deliberately absent: any writing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

import holdfast
from holdfast.doors.cli import plain, wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen
from holdfast.errors import Invalid, SchemaError
from holdfast.ledger.paths import Difference
from holdfast.records import Checkpoint, Entry, Loaded, Revision, StaleField, ThreadInfo

ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The id of a thread.", show_default=False)]

_WINDOW = 50
_GLIMPSE = 6
_PAGE = 500
_POLL_S = 0.25
_SPEAKER_WIDTH = 11  # observation, the longest kind


def threads(
    desk: Desk,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only this user's.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only this agent's.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only those with this tag.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Active at or after: 2026-05-01, or 3d for three days ago.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Active at or before.")] = None,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="At most so many; 0 for all.")] = 100,
) -> None:
    """List threads, latest activity first.

    \b
    Examples:
      holdfast threads --user ana
      holdfast threads --since 2h --json
    """  # fmt: skip
    with desk.open() as store:
        found = store.threads(
            user=user,
            agent=agent,
            tag=tag,
            since=None if since is None else wording.moment(since, desk.clock),
            until=None if until is None else wording.moment(until, desk.clock),
            limit=limit or None,
        )
    desk.tell({"threads": plain.plain(found)}, lambda screen: _show_threads(desk, screen, found))
    if limit and len(found) == limit:
        desk.note(f"The first {limit}; there may be more (--limit 0 lists all).")


def _show_threads(desk: Desk, screen: Screen, found: list[ThreadInfo]) -> None:
    columns = [
        Column("thread", "name", fits=True),
        Column("user", fits=True),
        Column("agent", fits=True),
        Column("entries", right=True),
        Column("last active"),
        Column("tags", "quiet", fits=True),
    ]
    rows = [
        (each.id, each.user or "", each.agent or "", str(each.entries), _when(desk, screen, each.active), ",".join(each.tags))
        for each in found
    ]  # fmt: skip
    if rows:
        screen.table(columns, rows)
    else:
        desk.note("No threads.")


def _when(desk: Desk, screen: Screen, moment: Any) -> str:
    """On a terminal how long ago; elsewhere the moment itself, which stays the same from run to run."""
    return wording.ago(moment, desk.clock) if screen.terminal else wording.stamp(moment)


def show(desk: Desk, thread: ThreadId) -> None:
    """Show one thread: entries, state, checkpoints.

    Whose it is, its newest entries, its state, what in it must be verified before acting, and its checkpoints.

    \b
    Examples:
      holdfast show trip-42
    """
    with desk.open() as store:
        handle = store.thread(thread)
        info = handle.info()
        newest = handle.log(last=_GLIMPSE)
        stored, fresh = load(handle)
        points = handle.checkpoints()
    data = {
        **plain.plain(info),
        "newest": [plain.entry(each) for each in newest],
        "state": plain.state(stored, fresh) if stored else None,
        "checkpoints": plain.plain(points),
    }

    def picture(screen: Screen) -> None:
        _show_info(desk, screen, info)
        if stored:
            show_state(desk, screen, stored, fresh)
        _show_newest(screen, info, newest)
        if points:
            screen.blank()
            show_checkpoints(desk, screen, points)

    desk.tell(data, picture)


def _show_info(desk: Desk, screen: Screen, info: ThreadInfo) -> None:
    screen.line((info.id, "title"))
    whose = [f"user {info.user}" if info.user else "no user", f"agent {info.agent}" if info.agent else "no agent"]
    screen.line(" · ".join([*whose, *(f"#{tag}" for tag in info.tags)]), indent=2)
    times = f"began {_when(desk, screen, info.created)} · last active {_when(desk, screen, info.active)}"
    screen.line((f"{wording.counted(info.entries, 'entry', 'entries')} · {times}", "quiet"), indent=2)


def _show_newest(screen: Screen, info: ThreadInfo, newest: list[Entry]) -> None:
    if not newest:
        return
    screen.blank()
    of = f" {len(newest)} of {info.entries:,}" if info.entries > len(newest) else ""
    screen.line(("Newest entries", "title"), (of, "quiet"))
    width = len(str(newest[-1].number))
    for entry in newest:
        who = wording.speaker(entry)
        text = " ".join(wording.words(entry).split())
        screen.cut(
            (f"{entry.number:>{width}}  ", "quiet"), (f"{who:<{_SPEAKER_WIDTH}}  ", _colour(entry)), text, indent=2
        )


def _colour(entry: Entry) -> str:
    return {"user": "person", "assistant": "name"}.get(wording.speaker(entry), "quiet")


# The log


def log(
    desk: Desk,
    thread: ThreadId,
    last: Annotated[int | None, typer.Option(min=1, metavar="N", help=f"The newest N entries. Without any option, {_WINDOW}.")] = None,
    after: Annotated[int | None, typer.Option(min=0, metavar="NUMBER", help="Those after this entry; 0 begins at the first.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="With --after: at most so many.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added, until interrupted. With --json: one document per entry.")] = False,
) -> None:
    """Print the log of a thread, oldest entry first.

    \b
    Examples:
      holdfast log trip-42 --last 5
      holdfast log trip-42 --after 0 | grep Lisbon
      holdfast log trip-42 --follow
    """  # fmt: skip
    if last is not None and (after is not None or limit is not None):
        raise Invalid("give either --last, or --after and --limit")
    with desk.open() as store:
        handle = store.thread(thread)
        info = handle.info()
        first = _first(info.entries, last, after, limit)
        printer = _LogPrinter(desk, len(str(info.entries)))
        if first > 0 and after is None and last is None:
            desk.note(f"Entries {first + 1:,} to {info.entries:,}; --after 0 begins at the first.")
        if follow:
            for entry in _following(handle, first, limit):
                printer.entry(entry)
        elif desk.options.json:
            found = [plain.entry(entry) for entry in _pages(handle, first, limit)]
            desk.document({"thread": info.id, "total": info.entries, "entries": found})
        else:
            for entry in _pages(handle, first, limit):
                printer.entry(entry)


def _first(total: int, last: int | None, after: int | None, limit: int | None) -> int:
    """The number after which to begin."""
    if after is not None:
        return after
    if limit is not None and last is None:
        return 0
    return max(0, total - (_WINDOW if last is None else last))


def _pages(handle: holdfast.Thread, after: int, limit: int | None) -> Iterator[Entry]:
    """Read page by page, so that a long log is printed while it is read."""
    left = limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        page = handle.log(after=after, limit=size)
        yield from page
        if len(page) < size:
            return
        after = page[-1].number
        left = None if left is None else left - size


def _following(handle: holdfast.Thread, after: int, limit: int | None) -> Iterator[Entry]:
    left = limit
    while left is None or left > 0:
        for entry in _pages(handle, after, left):
            yield entry
            after = entry.number
            left = None if left is None else left - 1
        if left is None or left > 0:
            time.sleep(_POLL_S)
            after = min(after, handle.info().entries)  # after a rewind, go on from where the thread is now


class _LogPrinter:
    """Prints entries one by one. On a terminal the day stands above the entries of that day."""

    def __init__(self, desk: Desk, width: int) -> None:
        self._desk, self._width = desk, width
        self._day = ""

    def entry(self, entry: Entry) -> None:
        if self._desk.options.json:
            self._desk.document(plain.entry(entry), indent=None)
            return
        screen = self._desk.screen
        when = wording.stamp(entry.time)
        if screen.terminal:
            day, when = when[:10], when[11:19]
            if day != self._day:
                screen.line((f"{day} (UTC)", "quiet"))
            self._day = day
        number = f"{entry.number:>{self._width}}"
        left = [(number, "quiet"), (when, "quiet"), (wording.speaker(entry), _colour(entry))]
        screen.hanging(left, [self._width, len(when), _SPEAKER_WIDTH], wording.words(entry))


# The state


def state(
    desk: Desk,
    thread: ThreadId,
    revision: Annotated[int | None, typer.Option(min=1, metavar="N", help="An older revision.")] = None,
    as_of: Annotated[str | None, typer.Option(metavar="TIME", help="The revision that was current then.")] = None,
    diff: Annotated[tuple[int, int] | None, typer.Option(metavar="A B", help="What changed between two revisions.")] = None,
    history: Annotated[bool, typer.Option("--history", help="List the revisions.")] = False,
) -> None:
    """Show the state of a thread, and what in it is stale.

    The state is shown as it is stored, so no code of the program that saved it is needed.

    \b
    Examples:
      holdfast state trip-42
      holdfast state trip-42 --as-of 2d
      holdfast state trip-42 --diff 3 5
    """  # fmt: skip
    if sum((revision is not None, as_of is not None, diff is not None, history)) > 1:
        raise Invalid("give one of --revision, --as-of, --diff and --history")
    with desk.open() as store:
        handle = store.thread(thread)
        handle.info()  # a thread that is not there is an error, not an empty state
        if history:
            _history(desk, handle)
        elif diff is not None:
            _diff(desk, handle, *diff)
        else:
            _state(desk, handle, revision, as_of)


def _state(desk: Desk, handle: holdfast.Thread, revision: int | None, as_of: str | None) -> None:
    moment = None if as_of is None else wording.moment(as_of, desk.clock)
    stored, fresh = load(handle, revision=revision, as_of=moment)
    data = {"thread": handle.id, "state": plain.state(stored, fresh) if stored else None}
    if stored:
        desk.tell(data, lambda screen: show_state(desk, screen, stored, fresh, first=True))
    else:
        desk.tell(data, lambda screen: screen.line("No state was saved" + (" by then." if moment else " yet.")))


def load(handle: holdfast.Thread, **which: Any) -> tuple[Loaded[Any], Loaded[Any] | None]:
    """Load a state as stored, and as its schema sees it where that schema is known here and still fits."""
    stored = handle.state(dict, **which)
    try:
        return stored, handle.state(**which)
    except SchemaError:
        return stored, None


def show_state(desk: Desk, screen: Screen, stored: Loaded[Any], fresh: Loaded[Any] | None, *, first: bool = False) -> None:
    if not first:
        screen.blank()
    schema = f"{stored.schema} version {stored.version}" if stored.schema else "no schema"
    about = f" revision {stored.revision} · {schema} · saved {_when(desk, screen, stored.time)}"
    screen.line(("State", "title"), (about, "quiet"))
    screen.outline(stored.value, indent=2)
    if fresh is None:
        screen.line((f"Schema {stored.schema!r} is declared by another program, so freshness is not known here.", "quiet"))
    elif fresh.stale or fresh.must_verify:
        show_stale(screen, fresh)


def show_stale(screen: Screen, fresh: Loaded[Any]) -> None:
    """Show what is no longer fresh: first what must be verified, then the rest."""
    by_path = {field.path: field for field in fresh.stale}
    urgent = [by_path.get(path, path) for path in fresh.must_verify]
    rest = [field for field in fresh.stale if field.path not in fresh.must_verify]
    for title, style, fields in (("Verify before acting", "bad", urgent), ("No longer fresh", "warn", rest)):
        if fields:
            screen.blank()
            screen.line((title, style))
        for field in fields:
            screen.line((field if isinstance(field, str) else field.path, "name"), f"  {_staleness(field)}", indent=2)


def _staleness(field: StaleField | str) -> str:
    if isinstance(field, str) or field.confirmed_at is None:
        return "never confirmed"
    by = f" by {field.by}" if field.by else ""
    return f"confirmed {wording.age(field.age_s)} ago{by}, fresh for {wording.age(field.fresh_for_s)}"


def _history(desk: Desk, handle: holdfast.Thread) -> None:
    found = handle.revisions()
    data = {"thread": handle.id, "revisions": plain.plain(found)}
    desk.tell(data, lambda screen: _show_history(desk, screen, found))


def _show_history(desk: Desk, screen: Screen, found: list[Revision]) -> None:
    if not found:
        screen.line("No state was saved yet.")
        return
    columns = [Column("revision", right=True), Column("saved"), Column("by", fits=True), Column("schema", "name", fits=True), Column("version", right=True)]  # fmt: skip
    screen.table(columns, [
        (str(each.number), _when(desk, screen, each.time), each.by, each.schema or "none", str(each.version)) for each in found
    ])  # fmt: skip


def _diff(desk: Desk, handle: holdfast.Thread, old: int, new: int) -> None:
    found = handle.diff(old, new)
    data = {"thread": handle.id, "old": old, "new": new, "differences": plain.plain(found)}
    desk.tell(data, lambda screen: _show_diff(screen, found))


def _show_diff(screen: Screen, found: list[Difference]) -> None:
    if not found:
        screen.line("No difference.")
    for each in found:
        path = each.path or "(everything)"
        if each.action != "added":
            screen.line((f"- {path}: {wording.as_text(each.old)}", "bad" if screen.terminal else ""))
        if each.action != "removed":
            screen.line((f"+ {path}: {wording.as_text(each.new)}", "good" if screen.terminal else ""))


def show_checkpoints(desk: Desk, screen: Screen, points: list[Checkpoint]) -> None:
    columns = [
        Column("checkpoint", "name", fits=True),
        Column("entries", right=True),
        Column("revision", right=True),
        Column("made"),
        Column("note", "quiet", fits=True),
    ]
    screen.table(columns, [
        (each.name, str(each.entries), str(each.revision), _when(desk, screen, each.time), each.note) for each in points
    ])  # fmt: skip
