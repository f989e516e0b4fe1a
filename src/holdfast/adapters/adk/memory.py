"""ADK's memory as recall over what was added to it: messages of sessions, and memories.

The events of a session that is kept in the same store are in its thread already, so adding them notes which entries
count and copies nothing; what is noted goes when the session goes. Events of sessions kept elsewhere, and what is
added as a memory, are remembered. A search also finds the memories of that user that nobody added through ADK, since
they are of the same person. Deliberately absent: messages that were never added, and making facts of what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from holdfast import FileWrite, Folder, Memories
from holdfast.adapters.adk.events import is_event, text_of, to_event
from holdfast.adapters.adk.service import Service, SessionPlace, packed, unpacked
from holdfast.errors import Erased, Invalid, NotFound
from holdfast.extension import MEMORY_KINDS, StoreOrAddress, check_id, compare_and_set, fetch, in_thread, quoted
from holdfast.types import Hit

_FOLDER = "adk memory"
_FIRST, _MOST = 50, 1_000  # hits to look through for those that were added


class _Added(msgspec.Struct, frozen=True):
    """Which entries of a session were added: stretches of numbers, both ends included, without those deleted since.

    ``begun`` tells the session from one of the same id before or after it.
    """

    begun: int
    spans: tuple[tuple[int, int], ...] = ()
    deleted: tuple[int, ...] = ()

    def __contains__(self, number: int) -> bool:
        return number not in self.deleted and any(first <= number <= last for first, last in self.spans)

    def adding(self, numbers: Iterable[int]) -> _Added:
        spans: list[tuple[int, int]] = []
        for first, last in sorted([*self.spans, *((number, number) for number in numbers)]):
            if spans and first <= spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
            else:
                spans.append((first, last))
        return msgspec.structs.replace(self, spans=tuple(spans))

    def deleting(self, number: int) -> _Added:
        return msgspec.structs.replace(self, deleted=tuple(sorted({*self.deleted, number})))


class HoldfastMemoryService(Service, BaseMemoryService):
    """Gives ADK's agents the memory of a store: ``HoldfastMemoryService("agent.db")``. A search finds up to ``k``."""

    def __init__(self, store: StoreOrAddress | None = None, *, k: int = 10, **by_address: Any) -> None:
        """Give a store or its address; ``by_address`` is what ADK's commands give instead, as with every service."""
        if type(k) is not int or k < 1:
            raise Invalid(f"k is how many memories a search finds at most, a whole number over 0, not {quoted(k)}")
        self.k = k
        super().__init__(store, **by_address)

    # What ADK asks for

    async def add_session_to_memory(self, session: Session) -> None:
        """Let searches find what was said in a session so far. Adding it again adds what came since."""
        await in_thread(self._add, SessionPlace(session.app_name, session.user_id, session.id), list(session.events))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Let searches find these events. ``custom_metadata`` is for services that generate memories; this adds all."""
        if session_id is None:
            await in_thread(self._remember_events, app_name, user_id, list(events))
        else:
            await in_thread(self._add, SessionPlace(app_name, user_id, session_id), list(events))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember things, in one commit. ``custom_metadata``, of all or of each, are arguments of ``remember``."""
        items = [_item(memory, custom_metadata or {}) for memory in memories]
        if items:
            await in_thread(self._memories(app_name, user_id).remember_all, items)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What was added and is relevant to a question or a text, best first."""
        found = await in_thread(self._search, app_name, user_id, query) if query.strip() else []
        return SearchMemoryResponse(memories=found)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Take one memory away for good, by the id that a search gave it; adding its session again does not bring it
        back. What was said in a session stays in that session."""
        if memory_id:
            await in_thread(self._delete, app_name, user_id, memory_id)

    # Adding

    def _add(self, place: SessionPlace, events: list[Event]) -> None:
        engine, tenant = self._core.engine, self._core.tenant
        record = engine.get(tenant, "thread", place.thread) if events else None
        numbers: dict[str, int] = {}
        if record is not None:
            first = engine.read(tenant, record.mark, key=events[0].id)
            found = engine.read(tenant, record.mark, after=first[0].position - 1 if first else 0)
            here = {event.key: event.position for event in found if event.key is not None}
            numbers = {event.id: here[event.id] for event in events if event.id in here}
        if record is not None and numbers:
            self._note(place, record.created, partial(_Added.adding, numbers=numbers.values()))
        self._remember_events(place.app, place.user, [event for event in events if event.id not in numbers])

    def _note(self, place: SessionPlace, begun: int, change: Callable[[_Added], _Added]) -> None:
        """Change what is noted of a session, even while others do."""
        folder = self._notes(place.app, place.user, place.thread)

        def changes() -> list[FileWrite]:
            file = folder.find(place.session)
            kept = None if file is None else msgspec.convert(unpacked(file.content), _Added)
            before = kept if kept is not None and kept.begun == begun else _Added(begun)
            if (after := change(before)) == kept:
                return []
            return [FileWrite(place.session, packed(msgspec.to_builtins(after)), 0 if file is None else file.version)]

        compare_and_set(changes, folder.commit, f"session {place.session!r}", thread=place.thread)

    def _remember_events(self, app: str, user: str, events: list[Event]) -> None:
        """Remember what events say that are in no thread of this store."""
        memories = self._memories(app, user)
        items = [_said(event) for event in events if text_of(event).strip()]
        try:
            if items:
                memories.remember_all(items)
        except Erased:  # one of them was deleted, and stays so; the others are no worse for it
            for item in items:
                with suppress(Erased):
                    memories.remember_all([item])

    # Searching

    def _search(self, app: str, user: str, query: str) -> list[MemoryEntry]:
        memories, added = self._memories(app, user), self._added(app, user)
        kinds = ("message", *MEMORY_KINDS) if added else MEMORY_KINDS
        found: list[MemoryEntry] = []
        for most in (_FIRST, _MOST):
            hits = memories.recall(query, most, kind=kinds)
            if not hits.relevant:
                return []  # what is nearest does not answer it, and would only fill the prompt
            found = [entry for hit in hits if (entry := _found(hit, added)) is not None]
            if len(found) >= self.k or len(hits) < most:
                break
        return found[: self.k]

    def _added(self, app: str, user: str) -> dict[str, _Added]:
        """What was added of each session that is still here, by its thread."""
        places = {SessionPlace(app, user, file.path): file for file in self._notes(app, user).files()}
        here = fetch(self._core.engine, self._core.tenant, "thread", [place.thread for place in places])
        found = {place.thread: msgspec.convert(unpacked(file.content), _Added) for place, file in places.items()}
        return {id: added for id, added in found.items() if id in here and here[id].created == added.begun}

    # Deleting

    def _delete(self, app: str, user: str, id: str) -> None:
        try:
            self._memories(app, user).forget(id, erase=True)
            return
        except (NotFound, Invalid):
            pass  # it is not a memory of its own; then it is an event that was added
        check_id(id, "memory_id")
        engine, tenant = self._core.engine, self._core.tenant
        for thread, added in self._added(app, user).items():
            record, place = engine.get(tenant, "thread", thread), SessionPlace.of(thread)
            found = engine.read(tenant, record.mark, key=id) if record is not None else []
            if found and place is not None and found[0].position in added:
                self._note(place, added.begun, partial(_Added.deleting, number=found[0].position))

    # Where things are

    def _memories(self, app: str, user: str) -> Memories:
        return self._store.memory(user=user, agent=app)

    def _notes(self, app: str, user: str, thread: str | None = None) -> Folder:
        return self._folder(_FOLDER, app=app, user=user, thread=thread)


def _found(hit: Hit, added: Mapping[str, _Added]) -> MemoryEntry | None:
    """A hit as ADK knows it, None for what was said and not added."""
    if hit.memory is not None:
        content = types.Content(role="user", parts=[types.Part(text=hit.text)])
        by = hit.memory.origin.by
        return MemoryEntry(id=hit.memory.id, content=content, author=by, timestamp=hit.time.isoformat())
    entry = hit.entry
    if entry is None or entry.thread not in added or entry.number not in added[entry.thread] or not is_event(entry):
        return None
    event = to_event(entry)
    said = _moment(event.timestamp).isoformat()
    return MemoryEntry(id=event.id, content=event.content, author=event.author, timestamp=said)


def _said(event: Event) -> dict[str, Any]:
    return {
        "text": text_of(event),
        "kind": "episodic",
        "origin": {"by": event.author or None, "channel": "adk"},
        "valid_from": _moment(event.timestamp),
        "once": f"adk event {event.id}",
    }


def _item(memory: MemoryEntry, common: Mapping[str, object]) -> dict[str, Any]:
    """A memory that was handed over, with what else there is to say of it."""
    text = "\n".join(part.text for part in memory.content.parts or () if part.text)
    item: dict[str, Any] = {"text": text, "origin": {"by": memory.author, "channel": "adk"}}
    if memory.timestamp is not None:
        try:
            item["valid_from"] = datetime.fromisoformat(memory.timestamp).astimezone()
        except ValueError as error:
            raise Invalid(f"the timestamp of a memory is a date in ISO 8601, not {quoted(memory.timestamp)}") from error
    if memory.id is not None:
        item["once"] = memory.id
    return {**item, **common, **memory.custom_metadata}


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
