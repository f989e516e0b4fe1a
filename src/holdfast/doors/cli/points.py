"""Commands about points of a thread: checkpoint, fork, rewind.

Deliberately absent: deleting. A rewind leaves a checkpoint of where the thread was, and says its name.
"""

from __future__ import annotations

import sys

import typer

from holdfast.doors import plain
from holdfast.doors.cli import exits, options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen
from holdfast.doors.cli.wording import counted
from holdfast.errors import Conflict, Invalid
from holdfast.records import Checkpoint, ThreadInfo


def checkpoint(
    desk: Desk,
    thread: options.ThreadId,
    name: options.PointName = None,
    note: options.Note = "",
    replace: options.Replace = False,
    list_: options.Listing = False,
) -> None:
    """Name the point where a thread is now.

    Later you can rewind to it, or fork from it.

    \b
    Examples:
      holdfast checkpoint trip-42 before-payment --note "all details confirmed"
      holdfast checkpoint trip-42 --list
    """
    if list_ == (name is not None):
        raise Invalid("give either a NAME, or --list")
    with desk.open() as store:
        handle = store.thread(thread)
        handle.info()  # a thread that is not there is an error, not one without checkpoints
        if name is None:
            _list(desk, thread, handle.checkpoints())
            return
        try:
            made = handle.checkpoint(name, note=note, replace=replace)
        except Conflict as error:
            raise Conflict(
                f"thread {thread!r} already has a checkpoint {name!r}; --replace moves it here", **error.facts
            ) from error
    data = {"thread": thread, "checkpoint": plain.plain(made)}
    desk.tell(data, lambda screen: screen.line("Checkpoint ", (made.name, "name"), f" at {_place(made)}."))


def _list(desk: Desk, thread: str, found: list[Checkpoint]) -> None:
    data = {"thread": thread, "checkpoints": plain.plain(found)}
    if found:
        desk.tell(data, lambda screen: show_checkpoints(desk, screen, found))
    else:
        desk.tell(data, lambda screen: screen.line("No checkpoints."))


def show_checkpoints(desk: Desk, screen: Screen, points: list[Checkpoint]) -> None:
    """Show checkpoints as a table."""
    columns = [
        Column("checkpoint", "name", fits=True),
        Column("entries", right=True),
        Column("revision", right=True),
        Column("made"),
        Column("note", "quiet", fits=True),
    ]
    rows = [(each.name, str(each.entries), str(each.revision), desk.when(each.time), each.note) for each in points]
    screen.table(columns, rows)


def _place(point: Checkpoint) -> str:
    state = f"state revision {point.revision}" if point.revision else "no state yet"
    return f"{_entries(point.entries)}, {state}"


def _entries(number: int) -> str:
    return counted(number, "entry", "entries")


def fork(
    desk: Desk,
    thread: options.ThreadId,
    new: options.NewId,
    at: options.At = None,
    user: options.NewUser = None,
    agent: options.NewAgent = None,
) -> None:
    """Start a new thread from a point of another one.

    It shares the history up to that point; nothing is copied.

    \b
    Examples:
      holdfast fork trip-42 trip-42-by-train --at before-payment
      holdfast fork trip-42 what-if --at 17
    """
    with desk.open() as store:
        made = store.thread(thread).fork(new, at=None if at is None else _point(at), user=user, agent=agent)
        info = made.info()
    desk.tell({"forked_from": thread, "at": at, **plain.plain(info)}, lambda screen: _show_fork(screen, thread, info))


def _show_fork(screen: Screen, thread: str, info: ThreadInfo) -> None:
    shared = f" shares {_entries(info.entries)} with "
    screen.line("Thread ", (info.id, "name"), shared, (thread, "name"), ".")


def rewind(desk: Desk, thread: options.ThreadId, to: options.Point, yes: options.Yes = False) -> int:
    """Take a thread back to an earlier point.

    What came after stays stored under a checkpoint, whose name is printed. On a terminal it asks first.

    \b
    Examples:
      holdfast rewind trip-42 before-payment
      holdfast rewind trip-42 17 --yes
    """
    with desk.open() as store:
        handle = store.thread(thread)
        question = f"Take {thread!r}, now at {_entries(handle.info().entries)}, back to {to!r}?"
        if not yes and sys.stdin.isatty() and not typer.confirm(question, err=True):
            desk.note("Nothing changed.")
            return exits.NO
        left = handle.rewind(_point(to))
        now = handle.info()
    data = {"thread": thread, "to": to, "entries": now.entries, "before": plain.plain(left)}
    desk.tell(data, lambda screen: _show_rewind(screen, now, left))
    return exits.OK


def _show_rewind(screen: Screen, now: ThreadInfo, left: Checkpoint) -> None:
    screen.line("Thread ", (now.id, "name"), f" is back at {_entries(now.entries)}.")
    screen.line("Where it was before: checkpoint ", (left.name, "name"), f" ({_place(left)}).")


def _point(text: str) -> str | int:
    """Digits are the number of an entry; anything else is the name of a checkpoint."""
    return int(text) if text.isascii() and text.isdecimal() else text
