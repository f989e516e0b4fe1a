"""Commands that remove for good: threads, all that is of a user or an agent, a file.

Each shows first what would go and asks; without a terminal it needs ``--yes``. Deliberately absent: single
memories, which ``forget --erase`` removes, and any rule about what goes along; the store has those.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import typer

from holdfast import Store
from holdfast.doors.cli import exits, options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.wording import counted
from holdfast.errors import Invalid, NotFound
from holdfast.records import ThreadInfo

HELP = """Remove for good: threads, a user, an agent, a file.

You cannot bring back what you erase, and the files of the store no longer contain it. Earlier backups and exports
still do. If an erasure is interrupted, run it again to finish it. To erase a single memory, use forget --erase.

\b
Examples:
  holdfast erase thread trip-42 --dry-run
  holdfast erase user ana
"""
_NAMED = 5  # so many threads are named in a sentence
_ONE = {"entries": "entry", "memories": "memory"}


class _Going(NamedTuple):
    """What is to go: by name and in words, counted, what goes along that no listing shows, and who there is instead."""

    named: dict[str, Any]
    words: str
    counts: dict[str, int]
    along: str = ""
    instead: str = ""

    def __str__(self) -> str:
        parts = [counted(number, _ONE.get(noun, noun[:-1]), noun) for noun, number in self.counts.items() if number]
        return self.words + (f" ({', '.join(parts)})" if parts else "") + (f", and {self.along}" if self.along else "")


def thread(
    desk: Desk,
    ids: options.ThreadIds = None,
    tag: options.TaggedThreads = None,
    free: options.FreeIds = False,
    dry_run: options.WouldErase = False,
    yes: options.Yes = False,
) -> int:
    """Erase threads.

    This erases their logs, states, checkpoints, runs and graphs, and every memory that comes from them alone. What a
    fork shares with them stays with the fork. Later writes to an erased thread fail; --free allows its id again.

    \b
    Examples:
      holdfast erase thread trip-42
      holdfast erase thread trip-42 trip-43 --dry-run
      holdfast erase thread --tag import:langgraph --free --yes
    """
    if bool(ids) == (tag is not None):
        raise Invalid("name the threads: their ids, or --tag")
    with desk.open() as store:
        store.core.settle()  # what a replica lists is about to be erased
        found = store.threads(tag=tag, limit=None) if tag is not None else [store.thread(id).info() for id in ids or ()]
        if not found:
            raise NotFound(f"there is no thread with the tag {tag!r}")
        names = list(dict.fromkeys(info.id for info in found))
        along = f"memories that come from {'it' if len(names) == 1 else 'them'} alone"
        going = _Going({"threads": names}, _threads(names), _held(store, found), along)
        return _erase(
            desk, going, lambda: sum(store.erase(thread=id, forever=not free) for id in names), yes=yes, dry_run=dry_run
        )


def user(
    desk: Desk,
    name: options.UserName,
    agent: options.WithAgent = None,
    free: options.FreeIds = False,
    dry_run: options.WouldErase = False,
    yes: options.Yes = False,
) -> int:
    """Erase everything that belongs to a user.

    This erases threads, memories, files and indexes, and every memory that comes from those threads alone. Later writes
    to the threads fail, unless you give --free. You can use the user's name again; it starts empty.

    \b
    Examples:
      holdfast erase user ana --dry-run
      holdfast erase user ana --agent travel
    """
    whose = f"user {name!r}" + ("" if agent is None else f" with agent {agent!r}")
    return _erase_owner(desk, whose, (name, agent), free=free, yes=yes, dry_run=dry_run)


def agent(
    desk: Desk,
    name: options.AgentName,
    free: options.FreeIds = False,
    dry_run: options.WouldErase = False,
    yes: options.Yes = False,
) -> int:
    """Erase everything that belongs to an agent, for every user.

    \b
    Examples:
      holdfast erase agent travel --dry-run
    """
    return _erase_owner(desk, f"agent {name!r}", (None, name), free=free, yes=yes, dry_run=dry_run)


def file_(
    desk: Desk,
    folder: options.InFolder,
    path: options.FilePath,
    user: options.FolderUser = None,
    agent: options.FolderAgent = None,
    dry_run: options.WouldErase = False,
    yes: options.Yes = False,
) -> int:
    """Erase a file with all its versions.

    Deleting only hides a file; this also erases one that was deleted before.

    \b
    Examples:
      holdfast erase file notes trips/lisbon.md --user ana
    """
    with desk.open() as store:
        place = store.folder(folder, user=user, agent=agent)
        versions = len(place.history(path))
        if not versions:
            raise NotFound(
                f"there is no file {path!r} in folder {folder!r}, and no version of one", folder=folder, path=path
            )
        named = {"folder": folder, "path": path, "user": user, "agent": agent}
        going = _Going(named, f"file {path!r} of folder {folder!r}", {"versions": versions})
        return _erase(desk, going, lambda: int(place.delete(path, erase=True)), yes=yes, dry_run=dry_run)


def _erase_owner(
    desk: Desk, whose: str, owner: tuple[str | None, str | None], *, free: bool, yes: bool, dry_run: bool
) -> int:
    user, agent = owner
    with desk.open() as store:
        found = store.threads(user=user, agent=agent, limit=None)
        would = store.erase(user=user, agent=agent, dry_run=True).counts
        counts = {
            "threads": would.get("thread", 0),
            "entries": sum(info.entries for info in found),
            "runs": would.get("run", 0),
            "memories": would.get("memory", 0),
            "files": would.get("file", 0),
        }
        instead = "" if any(would.values()) else f"; {_owners(store, users=user is not None)}"
        if dry_run and not any(counts.values()):
            raise NotFound(f"{whose} has nothing here{instead}")
        along = "memories that come from those threads alone" if found else ""
        going = _Going({"user": user, "agent": agent}, f"everything of {whose}", counts, along, instead)
        return _erase(
            desk, going, lambda: store.erase(user=user, agent=agent, forever=not free), yes=yes, dry_run=dry_run
        )


def _erase(desk: Desk, going: _Going, erase: Callable[[], int], *, yes: bool, dry_run: bool) -> int:
    """Say what would go, ask, and let it go."""
    if not dry_run and not yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise Invalid(f"this would erase {going}. Without a terminal, use --yes to erase or --dry-run to look")
        if not typer.confirm(f"Erase {going} for good?", err=True):
            desk.note("Nothing was erased.")
            return exits.NO
    records = None if dry_run else erase()
    if records == 0:
        raise NotFound(f"there is nothing to erase: {going.words}{going.instead}")
    data = {"erased": going.named, "counts": going.counts, "records": records, "dry_run": dry_run}
    desk.tell(data, lambda screen: _show(screen, going, dry_run))
    if not dry_run:
        desk.note("Earlier backups and exports still contain it.")
    return exits.OK


def _show(screen: Screen, going: _Going, dry_run: bool) -> None:
    screen.line(f"{'Would be erased' if dry_run else 'Erased'}: {going}.")


# What there is


def _owners(store: Store, *, users: bool) -> str:
    """Who there is instead: a name may be misspelled."""
    found = [info.user for info in store.users()] if users else [info.agent for info in store.threads(limit=None)]
    names = list(dict.fromkeys(filter(None, found)))
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    noun = "user" if users else "agent"
    return f"it has the {noun}s {', '.join(names[:_NAMED])}{more}" if names else f"it has no {noun}s"


def _held(store: Store, threads: Iterable[ThreadInfo]) -> dict[str, int]:
    unique = {info.id: info for info in threads}
    runs = sum(len(store.runs(thread=id, limit=None)) for id in unique)
    return {"entries": sum(info.entries for info in unique.values()), "runs": runs}


def _threads(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"thread{'' if len(names) == 1 else 's'} {', '.join(map(repr, names[:_NAMED]))}{more}"
