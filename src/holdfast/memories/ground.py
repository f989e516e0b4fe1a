"""Ground as documents: which streams one index covers, how far they reach now, and what their events say.

An index is about a user (the user's threads and books), about a book that belongs to no user, or about the threads that
belong to none. What changed is learned from the feed, which no clock can mislead; where too much happened meanwhile, or
something was erased, everything is listed again. Deliberately absent: the index itself, and any rule about memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.clock import to_micros
from holdfast.engine import lineage
from holdfast.engine.codec import decode
from holdfast.engine.contract import Event, Mark, Query, Record, Scope, Strand, View
from holdfast.errors import Corrupt, Unsupported
from holdfast.ledger.core import Core, scan_all
from holdfast.memories.entries import Said
from holdfast.memory.names import BOOK, MEMORY, folded, number_of
from holdfast.memory.stored import to_memory
from holdfast.records import TRUST, Memory
from holdfast.retrieval.index import Reach
from holdfast.retrieval.segment import FOREVER, Document

_MANY = 500
_KNOWN_LIMIT = 50_000


class Place(msgspec.Struct, frozen=True):
    """What an index is about: a user, a book that belongs to no user (``agent`` says whose it is), or, when neither is
    named, the threads that belong to no user."""

    user: str | None = None
    book: str | None = None
    agent: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(user=self.user, agent=self.agent)

    def takes(self, record: Record) -> bool:
        """Whether a thread or a book belongs in the index."""
        if self.book is not None:
            return record.kind == BOOK and record.id == self.book
        return record.scope.user == self.user and (record.kind == "thread" or self.user is not None)


class Ground:
    """One index's view of the store. Not for two threads at once; the index holds a lock."""

    def __init__(self, core: Core, place: Place) -> None:
        self._core, self._place = core, place
        self._view: View = core.engine
        self._after: int | None = None
        self._owners: dict[tuple[str, str], Record] = {}
        self._foreign: set[tuple[str, str]] = set()
        self._strands: dict[int, Strand] = {}
        self._books: set[int] = set()
        self._shown: tuple[Reach, ...] = ()

    # How far everything reaches

    def reaches(self) -> Sequence[Reach]:
        """What is visible now; the very same value as long as nothing changed."""
        try:
            touched, after = self._touched()
            if touched is None:
                after = self._list()
            elif not any([self._look_at(name) for name in touched]):
                self._after = after
                return self._shown
            self._shown = tuple(reach for owner in self._owners.values() for reach in self._parts(owner))
            self._after = after
        except BaseException:  # also a signal: what was half looked at is looked at again
            self._after = None
            raise
        return self._shown

    def _touched(self) -> tuple[set[tuple[str, str]] | None, int]:
        """Threads and books that commits since the last look have changed (None: all must be listed again), and where
        the feed is now."""
        if self._after is None:
            return None, 0
        after, tenant = self._after, self._core.tenant
        commits = self._view.feed(tenant, after, _MANY + 1)
        if len(commits) > _MANY:
            return None, after
        found: set[tuple[str, str]] = set()
        for commit in commits:
            after = commit.position
            for change in commit.changes:
                if change.kind in ("thread", BOOK):
                    if not change.id:  # something was erased, and the feed does not say what
                        return None, after
                    found.add((change.kind, change.id))
        return found - self._foreign, after

    def _list(self) -> int:
        """List everything, and return where the feed was before."""
        after = _feed_end(self._view, self._core.tenant, self._after or 0)
        self._foreign.clear()
        self._owners = {(record.kind, record.id): record for record in self._listed()}
        return after

    def _listed(self) -> Iterator[Record]:
        tenant, place = self._core.tenant, self._place
        if place.book is not None:
            record = self._view.get(tenant, BOOK, place.book)
            yield from () if record is None else (record,)
            return
        kinds = ("thread",) if place.user is None else ("thread", BOOK)
        for kind in kinds:
            for record in scan_all(self._view, tenant, Query(kind, user=place.user)):
                if place.takes(record):
                    yield record

    def _look_at(self, name: tuple[str, str]) -> bool:
        """Read a thread or book that changed; return whether this index shows another part of it than before."""
        record, known = self._view.get(self._core.tenant, *name), self._owners.get(name)
        if record is None or not self._place.takes(record):
            if record is not None and len(self._foreign) < _KNOWN_LIMIT:
                self._foreign.add(name)
            return self._owners.pop(name, None) is not None
        self._owners[name] = record
        return known is None or (known.stream, known.head) != (record.stream, record.head)

    def _parts(self, owner: Record) -> Iterator[Reach]:
        if owner.stream is None:
            return
        thread = owner.id if owner.kind == "thread" else None
        if thread is None:
            self._books.add(owner.stream)
        for part in lineage.parts(self._strand, owner.mark, 0):
            yield Reach(part.stream, part.after, part.upto, thread, owner.scope.agent)

    def _strand(self, stream: int) -> Strand | None:
        strand = self._strands.get(stream)
        if strand is None:
            strand = self._view.strand(self._core.tenant, stream)
            if strand is not None:
                self._strands[stream] = strand
        return strand

    # What the events say

    def documents(self, stream: int, after: int, upto: int) -> Iterator[Document]:
        """One document for each event, in order."""
        of = self._of_book if stream in self._books else _of_entry
        while after < upto:
            events = self._view.read(self._core.tenant, Mark(stream, upto), after=after, limit=_MANY)
            if not events:
                return
            yield from (of(stream, event) for event in events)
            after = events[-1].position

    def _of_book(self, stream: int, event: Event) -> Document:
        id = decode(event.body)["id"]
        if event.kind != "remember":
            return Document(stream, event.position, event.kind, event.time, event.time, ref=number_of(id))
        record = self._view.get(self._core.tenant, MEMORY, id)
        if record is None:  # erased since; the event that says so comes later in this stream
            return Document(stream, event.position, "erase", event.time, event.time, ref=number_of(id))
        try:
            return of_memory(stream, event.position, to_memory(record))
        except (Corrupt, Unsupported):  # verify names it; recall goes on without it
            return Document(stream, event.position, "semantic", event.time, event.time, ref=number_of(id))


def of_memory(stream: int, position: int, memory: Memory) -> Document:
    """A memory as a document. The words of its key are part of what it is found by."""
    key = (memory.key or "").replace("_", " ").replace(":", " ")
    origin = memory.origin
    said = (("by", origin.by), ("channel", origin.channel), ("tool", origin.tool), ("subject", folded(memory.subject)))
    return Document(
        stream,
        position,
        memory.kind,
        to_micros(memory.valid_from),
        to_micros(memory.recorded_at),
        text="" if _only_says_so(memory) else f"{memory.text}\n{key}" if key else memory.text,
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
        marks=(*(f"{what}:{who}" for what, who in said if who is not None), *(f"tag:{tag}" for tag in memory.tags)),
    )


def _only_says_so(memory: Memory) -> bool:
    """Whether a memory does nothing but end or take back another one: there is nothing in it to be found."""
    return memory.ended or (memory.corrects is not None and memory.text == f"{memory.corrects} was never true")


def _of_entry(stream: int, event: Event) -> Document:
    said = Said.of(event)
    told = (("by", said.speaker), ("role", said.role), ("tool", said.tool))
    return Document(
        stream,
        event.position,
        event.kind,
        said.time,
        event.time,
        text=said.text,
        speaker=said.speaker,
        from_user=said.role == "user",
        trust=TRUST.index(said.trust),
        marks=tuple(f"{what}:{value}" for what, value in told if value),
    )


def _feed_end(view: View, tenant: str, known: int) -> int:
    """The position of the newest commit, found by doubling and halving: the contract has no verb for it."""
    step = 1
    while view.feed(tenant, known + step, 1):
        known += step
        step *= 2
    low, high = known, known + step
    while low < high:
        middle = (low + high) // 2
        if view.feed(tenant, middle, 1):
            low = middle + 1
        else:
            high = middle
    return low
