"""Stored data as documents: which streams one index covers, how far they reach now, and what their events say.

An index is about a user (the user's threads and collections), about a collection that belongs to no user, about the
threads that belong to none, or about files: those of a user, of an agent, or shared ones. Changes are read from
the feed. Deliberately absent: the index, and any rule about memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

import msgspec

from holdfast.clock import to_micros
from holdfast.engine import lineage
from holdfast.engine.codec import decode
from holdfast.engine.contract import Event, Mark, Query, Record, Scope, Strand, View
from holdfast.errors import Corrupt, Invalid, Unsupported
from holdfast.ledger.core import Core, fetch, fetch_events, scan_all, scan_ever
from holdfast.ledger.files import FILE, edition, listing, path_of, text_of
from holdfast.ledger.speech import ASSISTANTS, USERS, Speech, voices
from holdfast.memory.facts import silent
from holdfast.memory.metadata import marks_of
from holdfast.memory.names import COLLECTION, MEMORY, folded, number_of
from holdfast.memory.stored import to_memory
from holdfast.records import TRUST, Memory
from holdfast.retrieval.changes import ChangeTracker, Name
from holdfast.retrieval.segment import FOREVER, Document
from holdfast.retrieval.source import StreamRange

_MANY = 500
_NAME = re.compile(r"(?<![^\W_])[^\W\d_]{3,}(?![^\W_])")
"""A word of a path; what has digits in it is a number or was made by a machine."""


class IndexScope(msgspec.Struct, frozen=True):
    """What an index is about: a user, a collection that belongs to no user (``agent`` says whose it is), or, when
    neither is named, the threads that belong to no user. With ``files``: those of a user, else of an agent, else common
    ones."""

    user: str | None = None
    collection: str | None = None
    agent: str | None = None
    files: bool = False

    @property
    def scope(self) -> Scope:
        return Scope(user=self.user, agent=self.agent)

    def takes(self, name: Name, owner: Scope) -> bool:
        """Whether a thread, a collection or a file of an owner belongs in the index."""
        kind, id = name
        if self.files or kind == FILE:
            own = owner.user == self.user and (self.user is not None or owner.agent == self.agent)
            return self.files and kind == FILE and own
        if self.collection is not None:
            return kind == COLLECTION and id == self.collection
        return owner.user == self.user and (kind == "thread" or self.user is not None)


class StoredDocuments:
    """One index's view of the store. Not for two threads at once; the index holds a lock."""

    def __init__(self, core: Core, place: IndexScope, changes: ChangeTracker) -> None:
        self._core, self._place, self._changes = core, place, changes
        self._view: View = core.engine
        self._lost = True
        self._noticed: dict[Name, Record | None] = {}
        self._parts: dict[Name, tuple[StreamRange, ...]] = {}
        self._strands: dict[int, Strand] = {}
        self._books: set[int] = set()
        self._files: dict[int, str] = {}
        self._ahead: dict[Mark, Event] = {}
        self._shown: tuple[StreamRange, ...] = ()
        changes.join(self, place.user)

    # How far everything reaches

    def wants(self, name: Name, owner: Scope) -> bool:
        return name in self._parts or self._place.takes(name, owner)

    def notice(self, name: Name, record: Record | None) -> None:
        if name in self._parts or (record is not None and self._place.takes(name, record.scope)):
            self._noticed[name] = record

    def lose_track(self) -> None:
        self._lost = True

    def reaches(self) -> Sequence[StreamRange]:
        """What is visible now; the very same value as long as nothing changed."""
        if self._place.collection is not None:
            self._lost = True  # it is one record: reading it costs no more than asking whether it changed
        else:
            self._changes.look(self._place.user)
        if self._lost:
            before = self._parts
            self._list()
            if self._parts == before and self._shown:
                return self._shown
        elif not self._looked_at():
            return self._shown
        self._shown = tuple(chain.from_iterable(self._parts.values()))
        return self._shown

    def _list(self) -> None:
        """Read what there is. What is noticed meanwhile is looked at by the next call."""
        self._lost = False
        self._noticed = {}
        try:
            self._parts = {(record.kind, record.id): self._reach(record) for record in self._listed()}
        except BaseException:  # also a signal
            self._lost = True
            raise

    def _listed(self) -> Iterator[Record]:
        tenant, place = self._core.tenant, self._place
        if place.collection is not None:
            record = self._view.get(tenant, COLLECTION, place.collection)
            yield from () if record is None else (record,)
            return
        if place.files:
            yield from scan_ever(self._view, tenant, listing(place.scope))
            return
        for kind in ("thread",) if place.user is None else ("thread", COLLECTION):
            for record in scan_all(self._view, tenant, Query(kind, user=place.user)):
                if place.takes((kind, record.id), record.scope):
                    yield record

    def _looked_at(self) -> bool:
        """Apply what was noticed; return whether this index now shows anything else."""
        changed = False
        try:
            while self._noticed:  # others may notice more meanwhile
                name, record = self._noticed.popitem()
                before = self._parts.get(name, ())
                after = () if record is None or not self._place.takes(name, record.scope) else self._reach(record)
                changed = changed or after != before
                self._parts[name] = after
        except BaseException:  # also a signal
            self._lost = True
            raise
        return changed

    def _reach(self, owner: Record) -> tuple[StreamRange, ...]:
        if owner.stream is None:
            return ()
        if owner.kind == FILE:
            self._files[owner.stream] = path_of(owner)
            span = edition(owner) - 1, owner.head
            return (StreamRange(owner.stream, *span, None, owner.scope.agent, owner.id, owner.expires),)
        thread = owner.id if owner.kind == "thread" else None
        if thread is None:
            self._books.add(owner.stream)
        parts = lineage.parts(self._strand, owner.mark, 0)
        return tuple(StreamRange(part.stream, part.after, part.upto, thread, owner.scope.agent) for part in parts)

    def _strand(self, stream: int) -> Strand | None:
        strand = self._strands.get(stream)
        if strand is None:
            strand = self._view.strand(self._core.tenant, stream)
            if strand is not None:
                self._strands[stream] = strand
        return strand

    # What the events say

    def ahead(self, parts: Sequence[StreamRange]) -> None:
        """Read files by one question: each is a stream, and a question may be a journey."""
        marks = [
            Mark(part.stream, part.upto) for part in parts if part.file is not None and part.upto - part.after == 1
        ]
        self._ahead = fetch_events(self._view, self._core.tenant, marks) if len(marks) > 1 else {}

    def documents(self, stream: int, after: int, upto: int) -> Iterator[Document]:
        """One document for each event, in order. One that cannot be read says nothing; ``verify`` names it.

        A message that holds what somebody else said has two, of different trust: its sender's own, and one of the
        stream ``~stream``, which holds what came from outside and nothing else.
        """
        if stream < 0:
            yield from (one for one in self.documents(~stream, after, upto) if one.stream == stream)
            return
        while after < upto:
            mark = Mark(stream, upto)
            known = self._ahead.pop(mark, None) if upto - after == 1 else None
            events = self._view.read(self._core.tenant, mark, after=after, limit=_MANY) if known is None else [known]
            if not events:
                return
            records = self._remembered(events) if stream in self._books else {}
            for event in events:
                try:
                    if stream in self._files:
                        yield _of_file(stream, event, self._files[stream])
                    elif stream in self._books:
                        yield _of_book(stream, event, records)
                    else:
                        own, *outside = voices(event)
                        yield _of_entry(stream, event, own)
                        yield from (_of_entry(~stream, event, one) for one in outside)
                except (Corrupt, Unsupported, Invalid, LookupError, TypeError, ValueError):
                    yield Document(stream, event.position, "event", event.time, event.time)
            after = events[-1].position

    def _remembered(self, events: Sequence[Event]) -> dict[str, Record]:
        """The memories that events of a collection are about, as far as they are still there."""
        ids = []
        for event in events:
            with suppress(Corrupt, Unsupported, LookupError, TypeError):
                ids.append(str(decode(event.body)["id"]))
        return fetch(self._view, self._core.tenant, MEMORY, ids)


def _of_book(stream: int, event: Event, records: Mapping[str, Record]) -> Document:
    id = decode(event.body)["id"]
    if event.kind == "remember" and id in records:
        return of_memory(stream, event.position, to_memory(records[id]))
    # What was remembered and is not there was erased since; the event that says so comes later in this stream.
    kind = "erase" if event.kind == "remember" else event.kind
    return Document(stream, event.position, kind, event.time, event.time, ref=number_of(id))


def of_memory(stream: int, position: int, memory: Memory) -> Document:
    """A memory as a document. The words of its key are part of what it is found by."""
    key = (memory.key or "").replace("_", " ").replace(":", " ")
    origin = memory.origin
    said = (("by", origin.by), ("channel", origin.channel), ("tool", origin.tool), ("subject", folded(memory.subject)),
            ("type", memory.type))  # fmt: skip
    return Document(
        stream,
        position,
        memory.kind,
        to_micros(memory.valid_from),
        to_micros(memory.recorded_at),
        text="" if silent(memory) else f"{memory.text}\n{key}" if key else memory.text,
        speaker=memory.subject,
        trust=TRUST.index(memory.trust),
        importance=memory.importance,
        until=FOREVER if memory.valid_to is None else to_micros(memory.valid_to),
        ref=number_of(memory.id),
        fact=None if memory.key is None else f"{folded(memory.subject)}\x00{folded(memory.key)}",
        corrects=0 if memory.corrects is None else number_of(memory.corrects),
        ended=memory.ended,
        left=folded(memory.subject),
        right=None if memory.object is None else folded(memory.object),
        marks=(
            *(f"{what}:{who}" for what, who in said if who is not None),
            *(f"tag:{tag}" for tag in memory.tags),
            *marks_of(memory.metadata),
        ),
    )


def _of_entry(stream: int, event: Event, said: Speech) -> Document:
    side = "user" if said.role in USERS else "assistant" if said.role in ASSISTANTS else said.role
    told = (("by", said.speaker), ("role", side), ("tool", said.tool))
    return Document(
        stream,
        event.position,
        event.kind,
        said.time,
        event.time,
        text=said.text,
        speaker=said.speaker,
        from_user=side == "user",
        trust=TRUST.index(said.trust),
        marks=tuple(f"{what}:{value}" for what, value in told if value),
    )


def _of_file(stream: int, event: Event, path: str) -> Document:
    """A version of a file as a document. The words of its path are part of what it is found by."""
    stored = decode(event.body)
    text, names = text_of(stored.get("content")), " ".join(_NAME.findall(path))
    return Document(
        stream,
        event.position,
        "file",
        event.time,
        event.time,
        text=f"{text}\n{names}" if text and names else text,
        marks=tuple(f"tag:{tag}" for tag in stored.get("tags", ())),
    )
