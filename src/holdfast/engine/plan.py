"""The meaning of every operation, decided before anything is written.

A plan takes batches one after the other, checks each against what is stored and what earlier batches of the same
plan already decided, and collects the rows to write. A batch that fails leaves no trace in it, so an engine can put
many callers' batches into one transaction without savepoints. Every engine shares this room; an engine only loads
(``PlanSource``) and writes (``Changes``). Deliberately absent: SQL, locks and I/O of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from holdfast.engine import chain
from holdfast.engine.contract import (
    GENESIS,
    STREAM,
    Adopt,
    Append,
    Change,
    Delete,
    Event,
    Fork,
    Guard,
    Limit,
    Mark,
    Op,
    Put,
    Receipt,
    Record,
    Scope,
    Strand,
    Trim,
)
from holdfast.errors import Conflict, Erased, HoldfastError, Invalid, KeyReused, NotFound, QuotaExceeded
from holdfast.ids import Ids

Name = tuple[str, str]
Measured = tuple[str, str]
"""What a limit applies to: its measure, and the kind that is counted."""
Limits = Mapping[Measured, tuple[int, int]]
"""The limit and the amount held, for everything that is limited."""
MEASURES = ("events", "records", "bytes")
MISTAKES = (HoldfastError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, AssertionError)
"""Errors of a batch itself. Anything else raised meanwhile, as by a signal, is not the batch's fault."""
_BEYOND = 2**62


def hour_of(time: int) -> int:
    """The hour that an engine's index of activity knows: it changes rarely, so most appends leave the index alone."""
    return time // 3_600_000_000


class PlanSource(Protocol):
    """What a plan needs to know of a tenant's data as it is inside the transaction."""

    def get(self, tenant: str, kind: str, id: str) -> Record | None: ...

    def read(
        self, tenant: str, mark: Mark, *, after: int = 0, limit: int | None = None, key: str | None = None
    ) -> list[Event]: ...

    def strand(self, tenant: str, stream: int) -> Strand | None: ...

    def buried(self, tenant: str, kind: str, id: str) -> bool: ...

    def limits(self, tenant: str) -> Limits: ...


class Published(NamedTuple):
    """What the feed will record of one batch. Its position follows from those before it."""

    time: int
    actor: str | None
    changes: tuple[Change, ...]


class Changes:
    """A tenant's rows to write. ``records`` maps a name to its new row (None: delete); ``moved`` are rows of which
    head, digest and time alone changed, within the same hour."""

    __slots__ = (
        "derived", "erased", "events", "feed", "graves", "grown", "keyed", "limits", "moved", "records", "released",
        "strands", "trimmed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.records: dict[Name, Record | None] = {}
        self.moved: dict[Name, Record] = {}
        self.strands: dict[int, Strand] = {}
        self.events: list[tuple[int, Event]] = []
        self.keyed: dict[tuple[int, str], Event] = {}
        self.released: set[Name] = set()
        self.erased: dict[str, tuple[Scope, int]] = {}  # ids that the feed is to forget: whose, and before which item
        self.graves: set[Name] = set()  # what must not come back
        self.feed: list[Published] = []
        self.derived = False  # whether anything was written that is not in the feed
        self.trimmed = 0
        self.limits: dict[Measured, int | None] = {}
        self.grown: Counter[Measured] = Counter()  # of what is limited

    def __bool__(self) -> bool:
        return bool(self.feed) or self.derived

    def alive(self) -> set[int]:
        """Streams of released names that were recreated: not to be given up with the old ones."""
        records = [self.records.get(name) for name in self.released]
        return {record.stream for record in records if record is not None and record.stream is not None}

    def absorb(self, other: Changes) -> None:
        for name in other.records:
            self.moved.pop(name, None)  # the whole row holds what moved
        self.records.update(other.records)
        for name, record in other.moved.items():
            # A row that this plan also creates or rewrites is written once, whole.
            (self.records if name in self.records else self.moved)[name] = record
        self.strands.update(other.strands)
        self.events += other.events
        self.keyed.update(other.keyed)
        self.released |= other.released
        self.erased |= other.erased
        self.graves |= other.graves
        self.feed += other.feed
        self.derived = self.derived or other.derived
        self.trimmed = max(self.trimmed, other.trimmed)
        self.limits |= other.limits
        self.grown.update(other.grown)


class Plan:
    """Batches of one tenant decided so far. ``changes`` are their combined changes."""

    def __init__(self, tenant: str, source: PlanSource, ids: Ids) -> None:
        self._tenant = tenant
        self._source = source
        self._ids = ids
        self.changes = Changes()

    def add(self, ops: Sequence[Op], time: int, actor: str | None = None) -> Receipt:
        """Decide one batch; on an error the plan is as it was.

        The receipt's feed position counts from where the feed is before this plan.
        """
        limits = self._limits()
        draft = _Draft(self._tenant, time, self._source, self._ids, self.changes, counting=bool(limits))
        for op in ops:
            _DECISIONS[type(op)](draft, op)
        _refuse_over(self._tenant, limits, self.changes.grown, draft.changes.grown)
        if draft.changes.erased:  # anything later under that id is another thing, and is recorded
            before = len(self.changes.feed)
            draft.changes.erased = {id: (scope, before) for id, (scope, _) in draft.changes.erased.items()}
        if draft.noted:
            draft.changes.feed.append(Published(draft.time, actor, tuple(draft.noted)))
        if self.changes:
            self.changes.absorb(draft.changes)
        elif draft.changes:
            self.changes = draft.changes
        return Receipt(len(self.changes.feed), draft.time, tuple(draft.stored), tuple(draft.heads))

    def _limits(self) -> Limits:
        limits = self._source.limits(self._tenant)
        if not self.changes.limits:
            return limits
        changed = {what: most for what, most in self.changes.limits.items() if most is not None}
        return {
            **{what: limit for what, limit in limits.items() if what not in self.changes.limits},
            **{what: (most, limits[what][1]) for what, most in changed.items() if what in limits},
        }


def _refuse_over(
    tenant: str,
    limits: Limits,
    before: Mapping[Measured, int],
    grown: Mapping[Measured, int],
) -> None:
    """Refuse a batch that would exceed a tenant's limit. One that makes nothing larger is always accepted."""
    for (measure, kind), (most, held) in limits.items():
        more, used = grown.get((measure, kind), 0), held + before.get((measure, kind), 0)
        if more > 0 and used + more > most:
            what = f"{kind} {'entries' if measure == 'events' else 'records'}" if kind else measure
            raise QuotaExceeded(
                f"tenant {tenant!r} may hold {most:,} {what} and holds {used:,}; this would add {more:,}: "
                "erase something (forgetting makes no room), or raise the quota with set_quota",
                tenant=tenant, measure=measure, kind=kind, most=most, used=used, adding=more,
            )  # fmt: skip


class _Draft:
    """One batch being decided: it sees the store, the plan before it, and itself, in that order of depth."""

    def __init__(
        self, tenant: str, time: int, source: PlanSource, ids: Ids, before: Changes, *, counting: bool = False
    ) -> None:
        self._tenant, self.time, self._asked = tenant, time, time
        self._met: set[Name] = set()
        self._source, self._ids, self._before, self._counting = source, ids, before, counting
        self.changes = Changes()
        self.noted: list[Change] = []
        self.stored: list[tuple[Event, ...]] = []
        self.heads: list[int] = []

    # What is there now

    def _get(self, kind: str, id: str) -> Record | None:
        name = (kind, id)
        for changes in (self.changes, self._before):
            if name in changes.moved:
                return changes.moved[name]
            if name in changes.records:
                return changes.records[name]
        return self._source.get(self._tenant, kind, id)

    def _strand(self, stream: int) -> Strand | None:
        for changes in (self.changes, self._before):
            if stream in changes.strands:
                return changes.strands[stream]
        return self._source.strand(self._tenant, stream)

    def _buried(self, kind: str, id: str) -> bool:
        name = (kind, id)
        return any(name in changes.graves for changes in (self.changes, self._before)) or self._source.buried(
            self._tenant, kind, id
        )

    def _keyed(self, record: Record, key: str) -> Event | None:
        """Find a key in a record's stream, through everything it shares with its ancestors."""
        stream, upto = record.stream, record.head
        while stream is not None:
            for changes in (self.changes, self._before):
                event = changes.keyed.get((stream, key))
                if event is not None and event.position <= upto:
                    return event
            begun = self.changes.strands.get(stream) or self._before.strands.get(stream)
            if begun is None:  # stored, and so is all that it shares
                found = self._source.read(self._tenant, Mark(stream, upto), key=key)
                return found[0] if found else None
            stream, upto = begun.parent, min(upto, begun.base)
        return None

    # Operations

    def _append(self, op: Append) -> None:
        record = self._get(op.kind, op.id)
        if record is None:
            record = self._create(op.kind, op.id, op.new)
        elif op.new is not None and op.new.scope != record.scope:
            _refuse_other_scope(record, op.new.scope)
        if record.stream is None:
            record = self._give_stream(record)
        self._not_before(record)
        stored, fresh, head, digest = self._chain(record, op)
        if op.expect is not None and op.expect != record.head and (fresh or not op.events):
            raise Conflict(
                f"{op.kind} {op.id!r} is at {record.head}, not at the expected {op.expect}",
                kind=op.kind, id=op.id, expected=op.expect, actual=record.head,
            )  # fmt: skip
        if op.whole and fresh and head - record.head < len(stored):
            raise KeyReused(
                f"only some entries of this append to {op.kind} {op.id!r} exist under its key",
                kind=op.kind, id=op.id,
            )  # fmt: skip
        self.stored.append(tuple(stored))
        self.heads.append(head)
        if fresh or not op.events:
            self._move(record, head, digest)

    def _not_before(self, record: Record) -> None:
        """Make the time of this batch later than everything in the record, whatever the callers' clocks say.

        Clocks jump and differ between machines. With times that never fall, "the state as it was at this entry" has
        one answer. What the same batch made or touched has its time, and does not move it on.
        """
        if (record.kind, record.id) not in self._met:
            self._met.add((record.kind, record.id))
            self.time = max(self.time, record.time + (record.head > 0))

    def _chain(self, record: Record, op: Append) -> tuple[list[Event], bool, int, bytes]:
        """Link the events that are new to the stream; return all as stored, whether any was new, head and digest."""
        stored: list[Event] = []
        head, digest, fresh = record.head, record.digest, False
        stream = record.stream
        assert stream is not None
        for event in op.events:
            known = self._repeated(record, op, event) if event.key is not None else None
            if known is not None:
                stored.append(known)
                continue
            head, fresh = head + 1, True
            time = self.time if event.time == self._asked else event.time
            digest = chain.link(digest, head, event.kind, event.key, time, event.body)
            event = Event(event.kind, event.body, time, event.key, head, digest)
            self._add_event(op.kind, stream, event)
            stored.append(event)
        return stored, fresh, head, digest

    def _add_event(self, owner: str, stream: int, event: Event) -> None:
        self.changes.events.append((stream, event))
        if event.key is not None:
            self.changes.keyed[(stream, event.key)] = event
        if self._counting:
            self.changes.grown["events", owner] += 1
            self.changes.grown["bytes", ""] += len(event.body)

    def _count(self, old: Record | None, new: Record | None) -> None:
        """Note by how much a tenant's records grow. Derived ones are not counted: they are not the tenant's data."""
        for record, sign in ((old, -1), (new, 1)):
            if self._counting and record is not None and not record.derived:
                self.changes.grown["records", record.kind] += sign
                self.changes.grown["bytes", ""] += sign * len(record.body)

    def _repeated(self, record: Record, op: Append, event: Event) -> Event | None:
        """The stored event that this one repeats by its key; it may be in this same batch."""
        assert event.key is not None
        assert record.stream is not None
        known = self._keyed(record, event.key) or self.changes.keyed.get((record.stream, event.key))
        if known is not None and not op.same(known, event):
            raise KeyReused(
                f"key {event.key!r} of {op.kind} {op.id!r} already names other content (entry {known.position})",
                key=event.key, kind=op.kind, id=op.id, position=known.position,
            )  # fmt: skip
        return known

    def _create(self, kind: str, id: str, new: Put | None) -> Record:
        if self._buried(kind, id):
            raise _erased(kind, id)
        if new is None:
            raise NotFound(f"there is no {kind} {id!r}", kind=kind, id=id)
        record = Record(
            kind, id, 1, new.body, new.scope, self.time, self.time, new.expires, new.tags, derived=new.derived
        )
        self._count(None, record)
        self._write("put", record, 1)
        return record

    def _new_stream(self) -> int:
        """A number that no stream has. Many streams may start in one millisecond, so chance alone is not enough."""
        stream = self._ids.stream(self.time)
        while self._strand(stream) is not None:
            stream += 1
        return stream

    def _give_stream(self, record: Record) -> Record:
        stream = self._new_stream()
        self.changes.strands[stream] = Strand(stream, record.kind, record.id)
        record = msgspec.structs.replace(record, stream=stream)
        self.changes.records[(record.kind, record.id)] = record
        return record

    def _move(self, record: Record, head: int, digest: bytes) -> None:
        moved = Record(
            record.kind, record.id, record.version, record.body, record.scope, record.created, self.time,
            record.expires, record.tags, record.stream, record.base, head, digest, record.derived,
        )  # fmt: skip
        name = (record.kind, record.id)
        whole = name in self.changes.records or hour_of(record.time) != hour_of(self.time)
        if whole:
            self.changes.moved.pop(name, None)  # touched before in this batch, when its time was of an earlier hour
        (self.changes.records if whole else self.changes.moved)[name] = moved
        self._note("append", moved, head)

    def _put(self, op: Put) -> None:
        record = self._get(op.kind, op.id)
        if op.expect is not None:
            self._expect_version(op.kind, op.id, record, op.expect)
        if record is None:
            self._create(op.kind, op.id, op)
            return
        self._not_before(record)
        new = msgspec.structs.replace(
            record, version=record.version + 1, body=op.body, scope=op.scope, tags=op.tags, expires=op.expires,
            time=self.time, derived=op.derived,
        )  # fmt: skip
        self._count(record, new)
        self._write("put", new, new.version)

    def _delete(self, op: Delete) -> None:
        record = self._get(op.kind, op.id)
        if op.expect is not None:
            self._expect_version(op.kind, op.id, record, op.expect)
        if record is None:
            return
        name = (op.kind, op.id)
        self._count(record, None)
        self.changes.moved.pop(name, None)
        self.changes.records[name] = None
        if record.stream is not None:
            self.changes.released.add(name)
        if op.bury:
            self.changes.graves.add(name if record.stream is None else (STREAM, str(record.stream)))
        if op.derived:
            self.changes.derived = True
        elif op.erase:
            self.changes.erased[op.id] = record.scope, 0
            self.noted = [Change(c.action, c.kind, "", c.version) if c.id == op.id else c for c in self.noted]
            self.noted.append(Change("erase", op.kind, "", 1))
        else:
            self._note("delete", record, record.version)

    def _fork(self, op: Fork) -> None:
        record = self._get(op.kind, op.id)
        if op.new is not None and record is not None:
            raise Conflict(
                f"{op.kind} {op.id!r} already exists", kind=op.kind, id=op.id, expected=0, actual=record.head
            )
        if record is None:
            record = self._create(op.kind, op.id, op.new)
        elif op.expect is not None and record.head != op.expect:
            raise Conflict(
                f"{op.kind} {op.id!r} is at {record.head}, not at the expected {op.expect}",
                kind=op.kind, id=op.id, expected=op.expect, actual=record.head,
            )  # fmt: skip
        source = self._settle(op.source)
        digest = self._digest_at(source)
        stream = self._new_stream()
        parent = source.stream if source.position else None
        self.changes.strands[stream] = Strand(stream, op.kind, op.id, parent, source.position, digest)
        record = msgspec.structs.replace(
            record, stream=stream, base=source.position, head=source.position, digest=digest, time=self.time
        )
        self._write("fork", record, source.position)

    def _settle(self, mark: Mark) -> Mark:
        """Climb to the strand that really holds the position, so that forks of forks do not pile up."""
        strand = self._strand(mark.stream)
        while strand is not None and strand.parent is not None and mark.position <= strand.base:
            mark = Mark(strand.parent, mark.position)
            strand = self._strand(mark.stream)
        if strand is None:
            raise NotFound(f"there is no stream {mark.stream}", stream=mark.stream)
        return mark

    def _digest_at(self, mark: Mark) -> bytes:
        if not mark.position:
            return GENESIS
        for changes in (self.changes, self._before):
            for stream, event in changes.events:
                if stream == mark.stream and event.position == mark.position:
                    return event.digest
        strand = self._strand(mark.stream)
        if strand is not None and strand.base == mark.position:
            return strand.digest
        found = self._source.read(self._tenant, mark, after=mark.position - 1, limit=1)
        if not found:
            raise NotFound(f"the stream has no position {mark.position}", stream=mark.stream, position=mark.position)
        return found[0].digest

    def _guard(self, op: Guard) -> None:
        record = self._get(op.kind, op.id)
        self._expect_version(op.kind, op.id, record, op.version)
        if op.stream is not None and record is not None and record.stream != op.stream:
            raise Conflict(f"{op.kind} {op.id!r} was recreated", kind=op.kind, id=op.id, expected=op.version, actual=0)

    def _adopt(self, op: Adopt) -> None:
        owners = {(record.kind, record.id): record.scope for record in op.records}
        for strand in op.strands:
            name = (strand.kind, strand.id)
            if name not in owners and (known := self._get(*name)) is not None:
                owners[name] = known.scope
            if name not in owners:
                strand = msgspec.structs.replace(strand, kind="", id="")  # its owner does not exist here
            self._adopt_strand(strand, owners.get(name, Scope()))
        ends = {s.stream: s.events[-1].position if s.events else s.base for s in op.strands}
        for record in op.records:
            self._adopt_record(record, ends)

    def _adopt_strand(self, strand: Strand, scope: Scope) -> None:
        known = self._strand(strand.stream)
        if known is None or not known.kind:  # new, or kept for a fork after its owner was erased
            self.changes.strands[strand.stream] = msgspec.structs.replace(strand, events=())
        if known is not None and (known.parent, known.base, known.digest) != (
            strand.parent,
            strand.base,
            strand.digest,
        ):
            raise _differs(strand.kind, strand.id, "its history begins elsewhere")
        present: dict[int, Event] = {}
        if known is not None:
            last = strand.events[-1].position if strand.events else strand.base
            present = {e.position: e for e in self._own_events(strand, last if known.kind else _BEYOND)}
            # A strand that this plan writes is looked up only in the plan, so the plan also knows what already existed.
            self.changes.keyed.update({(strand.stream, e.key): e for e in present.values() if e.key is not None})
            if self._counting and not known.kind:  # they had no owner, so they were not counted
                self.changes.grown["events", strand.kind] += len(present)
        closed = self._buried(STREAM, str(strand.stream))
        if closed and known is None:
            raise _erased(strand.kind or STREAM, strand.id)
        position, digest = strand.base, strand.digest
        for event in strand.events:
            if event.position != position + 1 or event.digest != chain.link(
                digest, event.position, event.kind, event.key, event.time, event.body
            ):
                raise Conflict(f"entry {position + 1} of {strand.kind} {strand.id!r} does not continue the chain")
            position, digest = event.position, event.digest
            here = present.get(position)
            if here is None and closed:
                raise _erased(strand.kind or STREAM, strand.id)
            elif here is None:
                self._add_event(strand.kind, strand.stream, event)
            elif here.digest != digest:
                raise _differs(strand.kind, strand.id, f"entry {position} differs here")
        if known is None or (strand.events and position not in present):
            self.noted.append(Change("adopt", strand.kind, strand.id, position, scope))

    def _own_events(self, strand: Strand, last: int) -> Iterator[Event]:
        yield from self._source.read(self._tenant, Mark(strand.stream, last), after=strand.base)
        for changes in (self._before, self.changes):
            yield from (event for stream, event in changes.events if stream == strand.stream)

    def _adopt_record(self, record: Record, ends: dict[int, int]) -> None:
        known = self._get(record.kind, record.id)
        if known is None:
            if self._buried(record.kind, record.id):
                raise _erased(record.kind, record.id)
            self._count(None, record)
            self._write("adopt", self._caught_up(record), record.version)
            return
        if known.version == record.version and known.body != record.body:
            raise _differs(record.kind, record.id, f"version {record.version} differs here")
        if known.stream != record.stream:
            self._adopt_rewound(known, record, ends)
            return
        newer = _newer(known, record)
        longer = max(known, record, key=lambda r: r.head)
        merged = msgspec.structs.replace(
            newer, head=longer.head, digest=longer.digest, time=max(known.time, record.time)
        )
        if merged != known:
            self._count(known, merged)
            self._write("adopt", merged, merged.version)

    def _caught_up(self, record: Record) -> Record:
        """The record at the end of its stream, which may be further along here when it was kept for a fork."""
        if record.stream is None:
            return record
        strand, everything = self._strand(record.stream), Mark(record.stream, _BEYOND)
        ends = {} if strand is None else {strand.base: strand.digest}
        ends |= {
            e.position: e.digest for e in self._source.read(self._tenant, everything, after=max(0, record.head - 1))
        }
        ends |= {e.position: e.digest for s, e in (*self._before.events, *self.changes.events) if s == record.stream}
        if ends.get(record.head) != record.digest:
            raise Conflict(f"the history of {record.kind} {record.id!r} is not whole", kind=record.kind, id=record.id)
        head = max(ends)
        return msgspec.structs.replace(record, head=head, digest=ends[head])

    def _adopt_rewound(self, known: Record, record: Record, ends: dict[int, int]) -> None:
        """One side was rewound. That is not a conflict as long as one side's history holds all of the other's."""
        theirs_holds_ours = known.stream is not None and ends.get(known.stream, -1) >= known.head
        ours_holds_theirs = record.stream not in self.changes.strands and not any(
            stream == record.stream for stream, _ in self.changes.events
        )
        if not theirs_holds_ours and not ours_holds_theirs:
            raise _differs(record.kind, record.id, "it was created or rewound separately")
        place = record if theirs_holds_ours and (not ours_holds_theirs or record.time > known.time) else known
        newer = _newer(known, record)
        merged = msgspec.structs.replace(
            newer, stream=place.stream, base=place.base, head=place.head, digest=place.digest,
            time=max(known.time, record.time),
        )  # fmt: skip
        if merged != known:
            self._count(known, merged)
            self._write("adopt", merged, merged.version)

    # Bookkeeping

    def _expect_version(self, kind: str, id: str, record: Record | None, expected: int) -> None:
        actual = record.version if record is not None else 0
        if actual != expected:
            raise Conflict(
                f"{kind} {id!r} is at version {actual}, not at the expected {expected}",
                kind=kind, id=id, expected=expected, actual=actual,
            )  # fmt: skip

    def _trim(self, op: Trim) -> None:
        self.changes.trimmed = max(self.changes.trimmed, op.upto)
        self.noted.append(Change("trim", "feed", "", op.upto))

    def _limit(self, op: Limit) -> None:
        if op.measure not in MEASURES or (op.measure == "bytes") == bool(op.kind):
            raise Invalid(f"a limit is on events or records of a kind, or on bytes, not on {op.measure!r} {op.kind!r}")
        if op.most is not None and op.most < 0:
            raise Invalid(f"a limit must be 0 or more, not {op.most}")
        self.changes.limits[op.measure, op.kind] = op.most
        self.noted.append(Change("limit", op.kind, op.measure, 0 if op.most is None else op.most))

    def _write(self, action: str, record: Record, version: int) -> None:
        name = (record.kind, record.id)
        self.changes.moved.pop(name, None)
        self.changes.records[name] = record
        self._note(action, record, version)

    def _note(self, action: str, record: Record, version: int) -> None:
        if record.derived:
            self.changes.derived = True
        else:
            self.noted.append(Change(action, record.kind, record.id, version, record.scope))


def _erased(kind: str, id: str) -> Erased:
    return Erased(f"{kind} {id!r} was erased and stays erased; use another id", kind=kind, id=id)


_DECISIONS: dict[type, Callable[[_Draft, Any], None]] = {
    Append: _Draft._append,
    Put: _Draft._put,
    Fork: _Draft._fork,
    Delete: _Draft._delete,
    Guard: _Draft._guard,
    Adopt: _Draft._adopt,
    Trim: _Draft._trim,
    Limit: _Draft._limit,
}


def _refuse_other_scope(record: Record, scope: Scope) -> None:
    """Refuse a writer that names another owner than the record's; a record without an owner is open to all."""
    for what in ("user", "agent", "thread"):
        ours, theirs = getattr(scope, what), getattr(record.scope, what)
        if ours is not None and ours != theirs and (what == "user" or theirs is not None):
            raise Invalid(
                f"{record.kind} {record.id!r} belongs to {what} {theirs!r}, not {ours!r}",
                kind=record.kind,
                id=record.id,
            )


def _newer(known: Record, record: Record) -> Record:
    """The later version of a record. If both sides changed only tags, the tags of both, as one version more."""
    if known.version != record.version or set(record.tags) <= set(known.tags):
        return max(known, record, key=lambda r: r.version)
    tags = tuple(sorted({*known.tags, *record.tags}))
    return msgspec.structs.replace(known, tags=tags, version=known.version + (known.tags != tags))


def _differs(kind: str, id: str, why: str) -> Conflict:
    return Conflict(f"{kind} {id!r} is already here and differs: {why}", kind=kind, id=id)
