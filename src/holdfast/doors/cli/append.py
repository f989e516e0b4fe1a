"""The command that appends a message to a thread.

Deliberately absent: other kinds of entries, which programs write, and answering (``chat`` does).
"""

from __future__ import annotations

import sys

import holdfast
from holdfast.doors import plain
from holdfast.doors.cli import options
from holdfast.doors.cli.desk import Desk
from holdfast.errors import Invalid


def append(
    desk: Desk,
    thread: options.ThreadId,
    text: options.NewText,
    role: options.Role = "user",
    user: options.OwnerUser = None,
    agent: options.OwnerAgent = None,
    key: options.EntryKey = None,
) -> None:
    """Append a message to a thread, which is made if it is new.

    With --key you can repeat the call safely: the same text under the same key is stored once.

    \b
    Examples:
      holdfast append trip-42 "A window seat, please." --user ana
      holdfast append trip-42 "TP 533 leaves at 06:40." --role assistant
      git diff | holdfast append review - --key "$(git rev-parse HEAD)"
    """
    said = sys.stdin.read() if text == options.STANDARD else text
    if not said.strip():
        raise Invalid("there is no text to append")
    with desk.open(create=True) as store:
        handle = store.thread(thread, user=user, agent=agent)
        entry = handle.append(holdfast.message(role, said), key=key)
    data = {"thread": thread, "entry": plain.entry(entry)}
    desk.tell(data, lambda screen: screen.line("Stored in ", (thread, "name"), f" as entry {entry.number}."))
