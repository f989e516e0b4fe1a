"""Commands that list what a store holds: threads, and the users who own them.

They never make a store that is not there. Deliberately absent: any writing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.doors import plain
from holdfast.doors.cli import options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen

if TYPE_CHECKING:
    from holdfast.types import ThreadInfo, UserInfo


def threads(
    desk: Desk,
    user: options.OfUser = None,
    agent: options.OfAgent = None,
    tag: options.WithTag = None,
    since: options.Since = None,
    until: options.Until = None,
    limit: options.AtMost = 100,
) -> None:
    """List threads, latest activity first.

    \b
    Examples:
      holdfast threads --user ana
      holdfast threads --since yesterday
      holdfast threads --since 2h --json
    """
    with desk.open() as store:
        found = store.threads(
            user=user, agent=agent, tag=tag, since=desk.moment(since), until=desk.moment(until), limit=limit or None
        )
    desk.tell({"threads": plain.plain(found)}, lambda screen: _show_threads(desk, screen, found))
    if limit and len(found) == limit:
        desk.note(f"These are the first {limit}; there may be more (--limit 0 lists all).")


def _show_threads(desk: Desk, screen: Screen, found: list[ThreadInfo]) -> None:
    if not found:
        desk.note("No threads.")
        return
    columns = [
        Column("thread", "name", fits=True),
        Column("user", fits=True),
        Column("agent", fits=True),
        Column("entries", right=True),
        Column("last active"),
        Column("tags", "quiet", fits=True),
    ]
    rows = [
        (each.id, each.user or "", each.agent or "", str(each.entries), desk.when(each.active), ",".join(each.tags))
        for each in found
    ]
    screen.table(columns, rows)


def users(desk: Desk) -> None:
    """List users, latest activity first.

    A user is anyone who owns a thread or a memory.

    \b
    Examples:
      holdfast users
      holdfast users --json
    """
    with desk.open() as store:
        found = store.users()
    desk.tell({"users": plain.plain(found)}, lambda screen: _show_users(desk, screen, found))


def _show_users(desk: Desk, screen: Screen, found: list[UserInfo]) -> None:
    if not found:
        desk.note("No users.")
        return
    columns = [
        Column("user", "person", fits=True), Column("threads", right=True), Column("memories", right=True),
        Column("last active"),
    ]  # fmt: skip
    rows = [(each.user, str(each.threads), str(each.memories), desk.when(each.active)) for each in found]
    screen.table(columns, rows)
