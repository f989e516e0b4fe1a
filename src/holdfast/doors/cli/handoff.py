"""The command about a thread's handoff: print it, write it to a file, load an edited file.

Deliberately absent: what a handoff holds and how it is written (the room ``handoff`` has it).
"""

from __future__ import annotations

import sys
from typing import Any

from holdfast import Thread
from holdfast.doors import plain
from holdfast.doors.cli import exits, options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen
from holdfast.errors import Conflict, HoldfastError, Invalid


def handoff(
    desk: Desk,
    thread: options.ThreadId,
    write: options.WritePath = None,
    load: options.LoadPath = None,
    history: options.History = False,
    git: options.Git = False,
    message: options.Message = None,
    force: options.Force = False,
) -> int:
    """Print the handoff of a thread, write it, or load it.

    The handoff is a progress document: goal, features, steps, blockers, next action, decisions and context. It includes
    what runs have done. You can write it to a file, edit that and load it again; neither side is overwritten silently.
    A file is JSON if its name ends in .json, otherwise markdown.

    \b
    Examples:
      holdfast handoff trip-42
      holdfast handoff trip-42 --write PROGRESS.md --git
      holdfast handoff trip-42 --load PROGRESS.md
      holdfast handoff trip-42 --write progress.json
    """
    if sum((write is not None, load is not None, history)) > 1:
        raise Invalid("give one of --write, --load and --history")
    if git and write is None:
        raise Invalid("--git commits the file that --write writes: give --write FILE too")
    if message is not None and not git:
        raise Invalid("--message is for the commit: give --git too")
    with desk.open() as store:
        found = store.thread(thread)
        found.info()  # a thread that is not there is an error, not an empty handoff
        if write is not None:
            return _write(desk, found, write, git, message, force)
        if load is not None:
            _load(desk, found, load, force)
        elif history:
            _history(desk, found)
        else:
            _print(desk, found)
    return exits.OK


def _print(desk: Desk, thread: Thread) -> None:
    page = thread.handoff
    data = {"thread": thread.id, "handoff": plain.plain(page.read()), "markdown": page.markdown()}
    desk.tell(data, lambda screen: screen.markdown(data["markdown"]))


def _write(desk: Desk, thread: Thread, path: str, git: bool, message: str | None, force: bool) -> int:
    try:
        written = thread.handoff.write(path, git=git, message=message, force=force)
    except Conflict as error:
        raise _in_our_words(error) from error

    def picture(screen: Screen) -> None:
        done = "Handoff written to " if written.changed else "Nothing new in "
        screen.line(done, (path, "name"), ".")
        if written.committed:
            screen.line(f"Committed as {(written.commit or '')[:12]}.")

    desk.tell({"thread": thread.id, **plain.plain(written)}, picture)
    if written.why_not:
        desk.note(f"Not committed: {written.why_not}")
    return exits.NO if git and written.changed and not written.committed else exits.OK


def _load(desk: Desk, thread: Thread, path: str, force: bool) -> None:
    source: Any = sys.stdin.buffer.read() if path == options.STANDARD else path
    try:
        found = thread.handoff.load(source, force=force)
    except (Conflict, Invalid) as error:
        raise _in_our_words(error) from error
    number = found.revision
    data = {"thread": thread.id, "revision": number, "handoff": plain.plain(found)}
    steps = f"{len(found.done)} of {len(found.steps)} steps done"
    desk.tell(
        data, lambda screen: screen.line("Handoff of ", (thread.id, "name"), f" is at revision {number}: {steps}.")
    )


def _in_our_words(error: HoldfastError) -> HoldfastError:
    """The same refusal, with the way out as it is written in a call."""
    return type(error)(str(error).replace("force=True", "--force"), **error.facts)


def _history(desk: Desk, thread: Thread) -> None:
    found = thread.handoff.history()

    def picture(screen: Screen) -> None:
        if not found:
            screen.line("No handoff is stored yet.")
            return
        columns = [Column("revision", right=True), Column("stored"), Column("by", "name", fits=True)]
        screen.table(columns, [(str(each.number), desk.when(each.time), each.by) for each in found])

    desk.tell({"thread": thread.id, "revisions": plain.plain(found)}, picture)
