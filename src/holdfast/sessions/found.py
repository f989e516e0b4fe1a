"""What was recalled before, read again by its ids: as it is now, or not at all.

Deliberately absent: searching.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.clock import to_datetime
from holdfast.engine.contract import Mark, Scope
from holdfast.errors import Corrupt, HoldfastError, Unsupported
from holdfast.ledger import log
from holdfast.ledger.core import Core
from holdfast.ledger.files import FILE, text_of
from holdfast.ledger.folder import Folder
from holdfast.ledger.said import Said
from holdfast.records import Hit

if TYPE_CHECKING:
    from holdfast.memories.handle import Memories


def again(core: Core, memory: Memories, ids: Sequence[str]) -> list[Hit]:
    """The hits of these ids that still are there, in the same order. What was forgotten or erased is not."""
    return [hit for id in ids if (hit := _again(core, memory, id)) is not None]


def _again(core: Core, memory: Memories, id: str) -> Hit | None:
    if id.rpartition("#")[2].isdecimal():  # a file's id ends with its version, behind an @
        return _entry(core, memory, id)
    return _file(core, memory, id) if "/" in id else _memory(memory, id)


def _sees(own: Scope, theirs: Scope) -> bool:
    """Whether a handle may see what a thread says, as recall has it: its own user's, with its own agent or any."""
    return theirs.user == own.user and (own.agent is None or theirs.agent in (None, own.agent))


def _memory(memory: Memories, id: str) -> Hit | None:
    try:
        one = memory.get(id)
    except HoldfastError:
        return None
    return None if one.forgotten_at is not None else Hit(one.text, 0.0, one.kind, one.valid_from, one.trust, one)


def _entry(core: Core, memory: Memories, id: str) -> Hit | None:
    """An entry of a thread that this handle may see."""
    thread, _, number = id.rpartition("#")
    record = core.engine.get(core.tenant, "thread", thread)
    if record is None or not number.isdecimal() or not _sees(memory._shelf.scope, record.scope):
        return None
    place = int(number)
    if not 1 <= place <= record.head:
        return None
    events = core.engine.read(core.tenant, Mark(record.mark.stream, place), after=place - 1)
    try:
        said, entry = (Said.of(events[0]), log.to_entry(thread, events[0])) if events else (None, None)
    except (Corrupt, Unsupported):
        return None
    if said is None or entry is None:
        return None
    return Hit(said.text, 0.0, entry.kind, to_datetime(said.time), said.trust, entry=entry)


def _file(core: Core, memory: Memories, id: str) -> Hit | None:
    """A file that this handle may see, in the version that was found. Folder and path may both hold a slash."""
    named, _, version = id.rpartition("@")
    own, parts = memory._shelf.scope, named.split("/")
    agents = [own.agent, None] if own.agent is not None else [None]
    owners = [Scope(user, agent) for user in dict.fromkeys((own.user, None)) for agent in agents]
    for owner in owners if version.isdecimal() else []:
        for at in range(1, len(parts)):
            with suppress(HoldfastError):
                file = Folder(core, "/".join(parts[:at]), owner).read("/".join(parts[at:]))
                if file.version == int(version):
                    return Hit(text_of(file.content), 0.0, FILE, file.time, "stated", file=file)
    return None
