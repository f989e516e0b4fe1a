"""Conversations of Pydantic AI, each in the thread that bears its id.

A message is one entry of the thread, under the id that Pydantic AI gave it, so that the log of a thread is the history
of its conversation. The record beside it (usage, deferred calls, branches) is in the thread's state, and is
saved with the new messages in one commit. A branch rewinds the thread and leaves a checkpoint at what it left; a fork
is a fork of the thread; neither copies anything. What others write to the log or beside the record is left alone.
Deliberately absent: a list of where entries are; threads known to hold one are asked first, then all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple, Self

import msgspec

from holdfast import Thread
from holdfast.adapters.pydantic_ai.messages import NATIVE, to_content, to_message
from holdfast.errors import Conflict, Erased, Invalid, NotFound, SchemaTooNew, Unsupported
from holdfast.extension import (
    FRAMEWORK,
    HOLD,
    KINDS,
    LEASE,
    Append,
    Delete,
    Event,
    Fork,
    Guard,
    Mark,
    Op,
    OpenedStore,
    Point,
    Put,
    Query,
    Record,
    Scope,
    StoreOrAddress,
    View,
    check_id,
    checkpoints,
    decode,
    encode,
    fetch,
    fetch_events,
    framework_parts,
    in_thread,
    scan_all,
    to_document,
    to_micros,
)

try:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_core import PydanticSerializationError
except ImportError as error:
    raise ImportError("this needs Pydantic AI 2.66 or later: pip install 'holdfast[pydantic-ai]'") from error

TAG = "pydantic-ai"
"""The tag of threads that are conversations of Pydantic AI."""
_FORMAT = 1
_PAGE = 500
_HINTS = 10_000
_ITSELF, _LEARNED = ("thread", "state"), ("memories", "memory")
_BELONGING = tuple(kind for kind in (*KINDS, LEASE, HOLD) if kind not in (*_ITSELF, *_LEARNED))

_records = TypeAdapter(ConversationRecord)


class _Stored(NamedTuple):
    """A conversation as it is kept: its thread, the state of that, the record in it and what others put beside it."""

    thread: Record
    state: Record
    record: ConversationRecord
    beside: dict[str, Any]


class _Spot(NamedTuple):
    """Where an entry is: a mark by which its history can be read up to it."""

    conversation: str
    mark: Mark


class HoldfastConversations(ConversationStore):
    """A store for conversations. Any number of processes may use it at once; of two who save, one gets a conflict.

    ``store`` is an open store or the address of one; only what was opened here is closed by ``close``. The threads
    belong to ``user``, or else to the ``scope`` of their conversation, and to ``agent``; what belongs to another user
    or agent than those named here is not there.
    """

    def __init__(self, store: StoreOrAddress, *, user: str | None = None, agent: str | None = None) -> None:
        self._held = OpenedStore(store)
        self.store = self._held.store
        self._core, self._user, self._agent = self.store.core, user, agent
        self._hints: dict[str, str] = {}

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._held.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await in_thread(self.close)

    # What Pydantic AI asks of a store

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        stored = await in_thread(self._stored, conversation_id)
        return None if stored is None else stored.record

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        return await in_thread(self._listed, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        await in_thread(self._write, record, tuple(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation for good: its thread with all branches, but not what a fork still shares.

        The id can be used again. Memories that Holdfast learned from the thread stay; ``store.erase`` takes them too.
        """
        await in_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries up to ``head_id``, in order, or the last ``limit`` of them; what is older is not read."""
        return [] if head_id is None else await in_thread(self._history, head_id, limit)

    # Reading

    def _stored(self, id: str) -> _Stored | None:
        self.store.thread(id)  # refuses what cannot be an id
        with self._core.engine.snapshot() as view:
            thread = view.get(self._core.tenant, "thread", id)
            state = view.get(self._core.tenant, "state", id)
            if thread is None or state is None or not state.head or not self._mine(thread):
                return None
            [saved] = view.read(self._core.tenant, state.mark, limit=1, newest=True)
            beside = _value(saved)
            record = _to_record(id, framework_parts(beside).get(NATIVE))
            if record is None:
                return None
            if record.head_id is not None and not view.read(self._core.tenant, thread.mark, key=record.head_id):
                # Someone rewound the thread to the middle of a turn: the history ends where the log does.
                record.head_id = next((event.key for event in self._backwards(thread.mark)), None)
        self._notice(record)
        return _Stored(thread, state, record, beside)

    def _mine(self, thread: Record) -> bool:
        return self._user in (None, thread.scope.user) and self._agent in (None, thread.scope.agent)

    def _listed(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        """Records, the last saved first. They are read in the order of activity, which no save is later than: what was
        saved after the last activity of a page was saved after all that follows."""
        user, chosen = self._user if self._user is not None else scope or None, list[ConversationRecord]()
        with self._core.engine.snapshot() as view:
            query = Query("thread", user=user, agent=self._agent, tag=TAG)
            threads = scan_all(view, self._core.tenant, query, None if limit is None else limit + 1)
            while page := list(islice(threads, _PAGE if limit is None else min(limit + 1, _PAGE))):
                records = self._records_in(view, page)
                chosen += (record for record in records if scope is None or record.scope == scope)
                chosen.sort(key=lambda record: record.updated_at, reverse=True)
                del chosen[len(chosen) if limit is None else limit :]
                if len(chosen) == limit and all(to_micros(one.updated_at) >= page[-1].time for one in chosen):
                    break
        for record in chosen:
            self._notice(record)
        return chosen

    def _records_in(self, view: View, threads: list[Record]) -> Iterator[ConversationRecord]:
        states = fetch(view, self._core.tenant, "state", [thread.id for thread in threads])
        marks = {state.mark: id for id, state in states.items() if state.head}
        for mark, event in fetch_events(view, self._core.tenant, list(marks)).items():
            if (record := _to_record(marks[mark], framework_parts(_value(event)).get(NATIVE))) is not None:
                yield record

    def _history(self, head: str, limit: int | None) -> list[ConversationEntry]:
        spot = self._find(head)
        if spot is None:
            raise KeyError(head)
        wanted = None if limit is None else limit + 1
        events = list(islice(self._backwards(spot.mark, wanted or _PAGE), wanted))[::-1]
        parents = [None, *(event.key for event in events)]
        more = limit is not None and len(events) > limit  # the one before them, which is the parent of the first
        return _entries(events[more:], parents[more:])

    def _backwards(self, mark: Mark, page: int = _PAGE) -> Iterator[Event]:
        """The messages of Pydantic AI up to a mark, newest first."""
        while mark.position:
            events = self._core.engine.read(self._core.tenant, mark, limit=min(page, _PAGE), newest=True)
            if not events:
                return
            yield from (
                event
                for event in reversed(events)
                if event.key is not None and NATIVE in framework_parts(_fields(event))
            )
            mark = Mark(mark.stream, events[0].position - 1)

    # Where an entry is

    def _notice(self, record: ConversationRecord) -> None:
        """Remember where entries were seen that are likely to be asked for next."""
        if len(self._hints) > _HINTS:
            self._hints.clear()
        for entry in (record.head_id, *record.branches):
            if entry is not None:
                self._hints[entry] = record.conversation_id

    def _find(self, entry: str, *near: str | None) -> _Spot | None:
        """Where an entry is, asking first where it probably is. Ids are unique, so the first one is the one."""
        likely = [id for id in dict.fromkeys((*near, self._hints.get(entry))) if id is not None]
        threads = [thread for id in likely if (thread := self._get(id)) is not None and self._mine(thread)]
        engine, tenant = self._core.engine, self._core.tenant
        every = scan_all(engine, tenant, Query("thread", user=self._user, agent=self._agent, tag=TAG))
        points = scan_all(engine, tenant, Query(checkpoints.KIND, user=self._user, agent=self._agent))
        lines = chain(
            ((thread.id, mark) for thread in threads for mark in self._lines(thread)),
            ((thread.id, thread.mark) for thread in every),
            ((str(point.scope.thread), checkpoints.to_point(point).log) for point in points),
        )
        for id, line in lines:
            for event in engine.read(tenant, line, key=entry):
                return _Spot(id, Mark(line.stream, event.position))
        return None

    def _lines(self, thread: Record) -> Iterator[Mark]:
        """The ends of all that a thread holds: where it is now, and where it was before it was rewound."""
        yield thread.mark
        for point in scan_all(self._core.engine, self._core.tenant, Query(checkpoints.KIND, thread=thread.id)):
            yield checkpoints.to_point(point).log

    def _get(self, id: str) -> Record | None:
        return self._core.engine.get(self._core.tenant, "thread", id)

    # Writing

    def _write(self, record: ConversationRecord, entries: tuple[ConversationEntry, ...], expected: str | None) -> None:
        id, base = record.conversation_id, _base(record, entries)
        stored = self._stored(id)
        if (None if stored is None else stored.record.revision) != expected:
            raise ConversationConflict(id)
        time = self._core.clock.now()
        added = Append("thread", id, _events(entries, time), same=_other)
        thread = self._thread(stored, record)
        begun = self._begun(thread, record, base) if stored is None else self._moved(stored, record, base)
        beside = {} if stored is None else stored.beside
        plain = _plain(_records, record, "the record of a conversation")
        value = {**beside, FRAMEWORK: {**framework_parts(beside), NATIVE: plain}}
        head = 0 if stored is None else stored.state.head
        try:
            saved = thread.statebook.saving(value, expect=head, by=TAG, time=time).ops
            self._core.write((*self._unchanged(id, stored), *begun, added, *saved), time)
        except Erased:
            raise  # the thread was erased forever: loading it again would not help
        except (Conflict, NotFound) as error:  # not found: it, or what it was to go on from, is deleted meanwhile
            raise ConversationConflict(id) from error
        self._notice(record)

    def _thread(self, stored: _Stored | None, record: ConversationRecord) -> Thread:
        scope = Scope(self._user or record.scope or None, self._agent) if stored is None else stored.thread.scope
        return self.store.thread(record.conversation_id, user=scope.user, agent=scope.agent, tags=[TAG])

    def _unchanged(self, id: str, stored: _Stored | None) -> list[Op]:
        """What makes a commit fail where a conversation is no longer as it was read."""
        if stored is None:
            return [Guard("state", id, 0)]
        state = stored.state
        return [Guard("state", id, state.version, state.stream), Append("state", id, expect=state.head)]

    def _begun(self, thread: Thread, record: ConversationRecord, base: str | None) -> list[Op]:
        """A thread of its own, or one that goes on from an entry of another."""
        if (there := self._get(thread.id)) is not None:
            if TAG in there.tags or not self._mine(there):
                raise ConversationConflict(thread.id)
            raise Invalid(f"thread {thread.id!r} is not a Pydantic AI conversation: give another id", thread=thread.id)
        new = msgspec.structs.replace(thread.logbook.new, expect=0)
        if base is None:
            return [new]
        spot = self._find(base, record.forked_from)
        if spot is None:
            raise ConversationConflict(thread.id)
        origin = encode({"forked_from": {"thread": spot.conversation, "entries": spot.mark.position}})
        return [Fork("thread", thread.id, spot.mark, new=msgspec.structs.replace(new, body=origin))]

    def _moved(self, stored: _Stored, record: ConversationRecord, base: str | None) -> list[Op]:
        """Nothing, where the history goes on from its end; otherwise a rewind to where it does."""
        thread, head = stored.thread, stored.record.head_id
        if record.scope != stored.record.scope:
            raise Invalid(f"conversation {thread.id!r} keeps the scope that it began with: fork it to have another")
        if base == head:
            return []
        mark = Mark(thread.mark.stream, 0)
        if base is not None:
            spot = self._find(base, thread.id)
            if spot is None:
                raise ConversationConflict(thread.id)
            mark = spot.mark
        left: list[Op] = []
        if head in record.branches:
            point = Point(thread.mark, stored.state.mark)
            left = [checkpoints.to_put(thread.id, f"branch-{head}", point, "", thread.scope, replace=True)]
        again = Put("thread", thread.id, thread.body, thread.version, thread.scope, thread.tags)
        return [*left, again, Fork("thread", thread.id, mark, expect=thread.head)]

    def _delete(self, id: str, expected: str) -> None:
        stored = self._stored(id)
        if stored is None or stored.record.revision != expected:
            raise ConversationConflict(id)
        engine, tenant = self._core.engine, self._core.tenant
        belonging = [found for kind in _BELONGING for found in scan_all(engine, tenant, Query(kind, thread=id))]
        gone = [Delete(found.kind, found.id, erase=True) for found in (stored.thread, stored.state, *belonging)]
        try:
            self._core.write((*self._unchanged(id, stored), *gone), self._core.clock.now())
        except Conflict as error:
            raise ConversationConflict(id) from error
        self._held.purge(Scope(stored.thread.scope.user, stored.thread.scope.agent))


def _base(record: ConversationRecord, entries: Sequence[ConversationEntry]) -> str | None:
    """The entry that a history goes on from; the new ones must lead from there to its end in one line."""
    if record.format_version != _FORMAT:
        raise _too_new(record.conversation_id, record.format_version)
    for before, after in pairwise(entries):
        if after.parent_id != before.id:
            raise Invalid(f"entry {after.id!r} does not follow {before.id!r}: give new entries as one line, in order")
    if entries and record.head_id != entries[-1].id:
        raise Invalid(f"the history ends at {record.head_id!r}, but the last new entry is {entries[-1].id!r}")
    return entries[0].parent_id if entries else record.head_id


def _events(entries: Sequence[ConversationEntry], time: int) -> tuple[Event, ...]:
    if other := next((entry.kind for entry in entries if entry.kind != "message"), None):
        raise Unsupported(f"entries of kind {other!r} are not known here, only messages; upgrade holdfast")
    plain = _plain(ModelMessagesTypeAdapter, [entry.message for entry in entries], "a message")
    return tuple(
        Event("message", encode(to_content(message), "a message"), time, check_id(entry.id, "entry id"))
        for entry, message in zip(entries, plain, strict=True)
    )


def _other(stored: Event, offered: Event) -> bool:
    """A new entry is never one that is there already, even if it says the same."""
    return False


def _plain(adapter: Any, value: Any, what: str) -> Any:
    try:
        return adapter.dump_python(value, mode="json")
    except (PydanticSerializationError, UnicodeError) as error:
        raise Invalid(f"{what} cannot be turned into plain data: {error}") from error


def _entries(events: Sequence[Event], parents: Sequence[str | None]) -> list[ConversationEntry]:
    """The entries of a history, read in one go."""
    try:
        messages = ModelMessagesTypeAdapter.validate_json(
            msgspec.json.encode([to_message(_fields(event)) for event in events])
        )
    except (ValidationError, LookupError, TypeError, StopIteration) as error:
        raise Unsupported(f"this version of Pydantic AI cannot read these messages: {error}") from error
    return [
        ConversationEntry(id=str(event.key), parent_id=parent, message=message)
        for event, parent, message in zip(events, parents, messages, strict=False)
    ]


def _fields(event: Event) -> dict[str, Any]:
    content = decode(event.body)
    return content if isinstance(content, dict) else {}


def _value(event: Event) -> dict[str, Any]:
    value = to_document(event).value
    return value if isinstance(value, dict) else {}


def _to_record(id: str, plain: Any) -> ConversationRecord | None:
    """The record that a state holds, or None where it holds none."""
    if not isinstance(plain, dict):
        return None
    if plain.get("format_version") != _FORMAT:
        raise _too_new(id, plain.get("format_version"))
    try:
        return _records.validate_json(msgspec.json.encode(plain))
    except ValidationError as error:
        raise Unsupported(f"this version of Pydantic AI cannot read the record of {id!r}: {error}") from error


def _too_new(id: str, version: object) -> SchemaTooNew:
    return SchemaTooNew(
        f"conversation {id!r} is of format {version!r}, and this adapter knows {_FORMAT}: upgrade holdfast",
        thread=id, version=version,
    )  # fmt: skip
