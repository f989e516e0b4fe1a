"""Commands about points of a thread: checkpoint, fork, rewind.

Deliberately absent: deleting. A rewind leaves a checkpoint of where the thread was, and says its name.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from holdfast.doors.cli import exits, plain
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.looking import ThreadId, show_checkpoints
from holdfast.doors.cli.wording import counted
from holdfast.errors import Invalid
from holdfast.records import Checkpoint


def checkpoint(
    desk: Desk,
    thread: ThreadId,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The name to give to this point.", show_default=False)] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A remark to keep with it.", show_default=False)] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Move the name here if it is in use.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the checkpoints instead.")] = False,
) -> None:
    """Name the point where a thread is now.

    The name can be rewound to and forked from later.

    \b
    Examples:
      holdfast checkpoint trip-42 before-payment --note "all details confirmed"
      holdfast checkpoint trip-42 --list
    """  # fmt: skip
    if list_ == (name is not None):
        raise Invalid("give either a NAME, or --list")
    with desk.open() as store:
        handle = store.thread(thread)
        handle.info()
        if name is None:
            _list(desk, thread, handle.checkpoints())
            return
        made = handle.checkpoint(name, note=note, replace=replace)
    desk.tell(
        {"thread": thread, "checkpoint": plain.plain(made)},
        lambda screen: screen.line("Checkpoint ", (made.name, "name"), f" at {_place(made)}."),
    )


def _list(desk: Desk, thread: str, found: list[Checkpoint]) -> None:
    data = {"thread": thread, "checkpoints": plain.plain(found)}
    if found:
        desk.tell(data, lambda screen: show_checkpoints(desk, screen, found))
    else:
        desk.tell(data, lambda screen: screen.line("No checkpoints."))


def _place(point: Checkpoint) -> str:
    state = f"state revision {point.revision}" if point.revision else "no state yet"
    return f"{counted(point.entries, 'entry', 'entries')}, {state}"


def fork(
    desk: Desk,
    thread: ThreadId,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The id of the thread to begin.", show_default=False)],
    at: Annotated[str | None, typer.Option(metavar="POINT", help="A checkpoint's name, or the number of an entry. Without it: now.")] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="The new thread's user, if another one.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="The new thread's agent, if another one.")] = None,
) -> None:
    """Begin a new thread from a point of another one.

    The new thread shares the history up to that point; nothing is copied.

    \b
    Examples:
      holdfast fork trip-42 trip-42-by-train --at before-payment
      holdfast fork trip-42 what-if --at 17
    """  # fmt: skip
    with desk.open() as store:
        made = store.thread(thread).fork(new, at=None if at is None else _point(at), user=user, agent=agent)
        info = made.info()
    desk.tell(
        {"forked_from": thread, "at": at, **plain.plain(info)},
        lambda screen: screen.line(
            "Thread ", (info.id, "name"), f" shares {counted(info.entries, 'entry', 'entries')} with ", (thread, "name"), "."
        ),
    )


def rewind(
    desk: Desk,
    thread: ThreadId,
    to: Annotated[str, typer.Argument(metavar="POINT", help="A checkpoint's name, or the number of an entry.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Take a thread back to an earlier point.

    What came after stays stored, under a checkpoint whose name is printed. On a terminal it asks first.

    \b
    Examples:
      holdfast rewind trip-42 before-payment
      holdfast rewind trip-42 17 --yes
    """  # fmt: skip
    with desk.open() as store:
        handle = store.thread(thread)
        before = handle.info()
        question = f"Take {thread!r} ({counted(before.entries, 'entry', 'entries')}) back to {to!r}?"
        if not yes and sys.stdin.isatty() and not typer.confirm(question, err=True):
            desk.note("Nothing was changed.")
            return exits.NO
        left = handle.rewind(_point(to))
        now = handle.info()
    desk.tell(
        {"thread": thread, "to": to, "entries": now.entries, "before": plain.plain(left)},
        lambda screen: screen.line(
            "Thread ", (thread, "name"), f" is back at {counted(now.entries, 'entry', 'entries')}. "
            f"Where it was before: checkpoint ", (left.name, "name"), f" ({_place(left)}).",
        ),
    )  # fmt: skip
    return exits.OK


def _point(text: str) -> str | int:
    """Digits are the number of an entry; anything else is the name of a checkpoint."""
    return int(text) if text.isascii() and text.isdecimal() else text
