"""A commit on Postgres without a lock over a round trip: load, plan, and one call that checks and writes.

A plan is made from what was read without any lock. All that it read goes back to the server as conditions, with all
that it decided, in one call of ``holdfast_commit`` (see ``engine/sql/postgres``). The call takes the tenant's
row, so that no other commit of the tenant can get through; it compares, and writes everything or fails like a lost
race. So a plan is carried out only if it would be the same now.

What this process wrote last it still knows (``RowCache``), and it may plan from that without reading at all: the
conditions make that safe. But only a plan in which every batch writes something goes that way. A conflict, or that
there is nothing to do, is reported only after reading the data, in one statement and so at one moment. Deliberately
absent: connections, retries and transactions (``postgres`` has them), and work that must read and write in turns.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.engine import lineage, relational
from holdfast.engine.contract import (
    Adopt,
    Append,
    Event,
    Fork,
    Guard,
    Limit,
    Mark,
    Op,
    Put,
    Receipt,
    Record,
    Strand,
    Trim,
)
from holdfast.engine.group import Job
from holdfast.engine.plan import MISTAKES, Changes, Limits, Name, Plan
from holdfast.engine.relational import Keys, Reads, Row, RunStatement
from holdfast.errors import Invalid
from holdfast.ids import Ids

LOAD = b"SELECT * FROM holdfast_load(%s, %s, %s, %b::bytea[])"
CALL = (
    b"SELECT first, seen FROM holdfast_commit"
    b"(%s, %s, %s, %s, %s, %s, %b::bytea[], %s, %s, %s, %b::bytea[], %s, %s, %s, %b::bytea[], %s)"
)

Ends = list[Receipt | Exception]
"""How each batch of a group ended."""
_KNOWN_LIMIT = 2_000
_KNOWN_BYTES = 4_096
_CONTENDED_S = 1.0
_encode = msgspec.json.Encoder().encode


class NeededRows:
    """What the operations of one tenant name: records, the keys of events to append, and what may have to be made."""

    def __init__(self) -> None:
        self.names: set[Name] = set()
        self.keys: set[tuple[str, str, str]] = set()
        self.new: set[Name] = set()
        self.adopts = self.forks = self.guards = False

    def add(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, Trim | Limit):
                continue
            self.adopts |= isinstance(op, Adopt)
            self.forks |= isinstance(op, Fork)
            self.guards |= isinstance(op, Guard)
            self.names.update((named.kind, named.id) for named in (op.records if isinstance(op, Adopt) else (op,)))
            if isinstance(op, Append):
                self.keys.update((op.kind, op.id, event.key) for event in op.events if event.key is not None)
            if _may_create(op):
                self.new.add((op.kind, op.id))  # type: ignore[union-attr]

    def values(self, tenant: str) -> tuple[Any, ...]:
        """The values of ``LOAD``."""
        names = [{"kind": kind, "id": id} for kind, id in self.names]
        keys = [{"kind": kind, "id": id, "key": key} for kind, id, key in self.keys]
        return tenant, _json(names), _json(keys), [lineage.grave(*name) for name in self.new] or None


def _may_create(op: Op) -> bool:
    return (isinstance(op, Put) and not op.expect) or (isinstance(op, Append | Fork) and op.new is not None)


class KnownRow(msgspec.Struct, frozen=True):
    """A record, and the transaction that wrote its row: if another transaction is found there, the record changed."""

    record: Record
    seen: str


class RowCache:
    """The records that this process read or wrote last, as its commits left them. Others may have changed them since.

    It holds a few small ones. It also knows which were lately lost to other writers: reading those without taking the
    row first is likely to lose again. Only the leader of the group commit may use it.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, str], KnownRow] = OrderedDict()
        self._limits: dict[str, Limits] = {}
        self._lost: dict[tuple[str, str, str], float] = {}

    def limits(self, tenant: str) -> Limits:
        """What the tenant may hold, and held when its records were last read."""
        return self._limits[tenant]

    def recall(self, tenant: str, wanted: NeededRows) -> dict[Name, KnownRow] | None:
        """All wanted records, or None if one is not known.

        None for forks too: a key that a fork shares with its parent is one that the server would take a second time.
        """
        if wanted.forks or tenant not in self._limits:
            return None
        found = {name: known for name in wanted.names if (known := self._known.get((tenant, *name))) is not None}
        return found if len(found) == len(wanted.names) else None

    def learn(self, tenant: str, source: LoadedRows, changes: Changes, seen: str) -> None:
        """Keep what a commit relied upon, and what it wrote."""
        self._limits[tenant] = source.limits(tenant)
        for name, known in source.known.items():
            self._keep((tenant, *name), known)
        for name, record in (*changes.records.items(), *changes.moved.items()):
            self._keep((tenant, *name), None if record is None else KnownRow(record, seen))
        while len(self._known) > _KNOWN_LIMIT:
            self._known.popitem(last=False)

    def lose(self, tenant: str, names: Iterable[Name]) -> None:
        """Note that another process changed it first."""
        if len(self._lost) > _KNOWN_LIMIT:
            self._lost.clear()
        now = monotonic()
        self._lost.update(((tenant, *name), now) for name in names)

    def is_contended(self, tenant: str, names: Iterable[Name]) -> bool:
        since = monotonic() - _CONTENDED_S
        return bool(self._lost) and any(self._lost.get((tenant, *name), since) > since for name in names)

    def forget(self, tenant: str, names: Iterable[Name]) -> None:
        self._limits.pop(tenant, None)
        for name in names:
            self._known.pop((tenant, *name), None)

    def clear(self) -> None:
        self._known.clear()
        self._limits.clear()

    def _keep(self, name: tuple[str, str, str], known: KnownRow | None) -> None:
        self._known.pop(name, None)
        if known is not None and len(known.record.body) <= _KNOWN_BYTES:
            self._known[name] = known


class FreshIds(Ids):
    """Makes the numbers of streams for one group, the same ones when it is planned again, and knows which they are."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._made: list[int] = []
        self._next = 0

    def rewind(self) -> FreshIds:
        self._next = 0
        return self

    def stream(self, now: int) -> int:
        if self._next == len(self._made):
            self._made.append(self._ids.stream(now))
        self._next += 1
        return self._made[self._next - 1]

    def made(self, stream: int) -> bool:
        return stream in self._made


class LoadedRows(Reads):
    """What a plan sees: what was loaded or remembered, the rest when asked for. It notes what the plan relied upon.

    ``whole`` says that all of it was so at one moment. Without that a plan may be tried, but no conflict reported.
    """

    def __init__(
        self, run: RunStatement, clock: Clock, keys: Keys, wanted: NeededRows, ids: FreshIds | None = None
    ) -> None:
        super().__init__(run, clock, remember=True, keys=keys)
        self._wanted, self._ids = wanted, ids
        self.names = wanted.names
        self.position = 0
        self.whole = True
        self.known: dict[Name, KnownRow] = {}
        self._keyed: dict[tuple[int, str], Event | None] = {}
        self._buried: dict[Name, bool] = {}
        self._asked: set[Name] = set()
        self._missed: set[bytes] = set()
        self._limits: Limits = {}
        self._places: dict[int, int] = {}

    def loaded(self, rows: Iterable[Row]) -> LoadedRows:
        """Add what ``LOAD`` found."""
        graves = {lineage.grave(*name): name for name in self._wanted.new}
        self._buried = dict.fromkeys(self._wanted.new, False)
        found: dict[tuple[int, str], Event] = {}
        limits: dict[tuple[str, str], tuple[int, int]] = {}
        for sort, *row, seen in rows:
            if sort == "r":
                record = relational.record_from(tuple(row))
                self.known[(record.kind, record.id)] = KnownRow(record, seen)
            elif sort == "e":
                kind, key, position, body, _, _, _, _, time, _, _, stream, _, _, digest, _ = row
                found[(stream, key)] = Event(kind, body, time, key, position, digest)
            elif sort == "g":
                self._buried[graves[row[14]]] = True
            elif sort == "l":
                limits[row[1], row[0]] = row[2], row[13]
            else:
                self.position = row[2]
        self._limits = limits
        self._note_keys(found)
        return self

    def remembered(self, known: dict[Name, KnownRow], limits: Limits) -> LoadedRows:
        """Add what this process wrote last. The server checks that a key is new."""
        self.known, self._limits, self.whole = known, limits, False
        self._note_keys({})
        return self

    def _note_keys(self, found: dict[tuple[int, str], Event]) -> None:
        """A fork's older keys lie in its ancestors. Those are read when they are asked for."""
        for kind, id, key in self._wanted.keys:
            known = self.known.get((kind, id))
            if known is not None and known.record.stream is not None and not known.record.base:
                self._keyed[(known.record.stream, key)] = found.get((known.record.stream, key))

    # What a plan asks

    def get(self, tenant: str, kind: str, id: str) -> Record | None:
        name = (kind, id)
        if name not in self._wanted.names:
            self.whole = False
            return super().get(tenant, kind, id)
        self._asked.add(name)
        known = self.known.get(name)
        return known.record if known is not None else None

    def read(
        self,
        tenant: str,
        mark: Mark,
        *,
        after: int = 0,
        limit: int | None = None,
        newest: bool = False,
        key: str | None = None,
    ) -> list[Event]:
        if key is not None and (mark.stream, key) in self._keyed:
            event = self._keyed[(mark.stream, key)]
            return [event] if event is not None and after < event.position <= mark.position else []
        self.whole = False
        if key is None:
            self._places[mark.stream] = max(mark.position, self._places.get(mark.stream, 0))
        return super().read(tenant, mark, after=after, limit=limit, newest=newest, key=key)

    def strand(self, tenant: str, stream: int) -> Strand | None:
        if self._ids is not None and self._ids.made(stream):
            return None  # if it exists after all, the server says so
        self.whole = False
        self._places.setdefault(stream, 0)
        return super().strand(tenant, stream)

    def buried(self, tenant: str, kind: str, id: str) -> bool:
        self._missed.add(lineage.grave(kind, id))
        if (kind, id) in self._buried:
            return self._buried[(kind, id)]
        self.whole = False
        return super().buried(tenant, kind, id)

    def limits(self, tenant: str) -> Limits:
        return self._limits

    # What the plan came to

    def conditions(self, changes: Changes) -> tuple[Any, ...]:
        """What was read and is not written, as the call takes it. What is written is compared as it is written."""
        serial = bool(changes.feed) or self._wanted.guards or self._wanted.forks
        only_read = (
            self._asked - changes.moved.keys() - {name for name in changes.records if self._writes(name, changes)}
        )
        read = [{"kind": kind, "id": id, "seen": self._seen((kind, id))} for kind, id in only_read]
        places = [{"stream": stream, "upto": upto} for stream, upto in self._places.items()]
        grown = [
            {"measure": measure, "kind": kind, "most": most, "more": changes.grown[measure, kind]}
            for (measure, kind), (most, _) in (self._limits.items() if serial else ())
        ]
        return serial, _json(read), sorted(self._missed) or None, _json(places), _json(grown)

    def rows(self, changes: Changes, *, begins: bool = True) -> tuple[Any, ...]:
        """What is written, as the call takes it."""
        wrote = [(name, record) for name, record in changes.records.items() if self._writes(name, changes)]
        moved = [
            {
                "kind": kind,
                "id": id,
                "head": r.head,
                "digest": _hex(r.digest),
                "time": r.time,
                "seen": self._seen((kind, id)),
            }
            for (kind, id), r in changes.moved.items()
        ]
        begun = [dict(zip(_STRAND, _strand_row(strand), strict=True)) for strand in changes.strands.values()]
        added = [
            {
                "stream": stream, "position": event.position, "kind": event.kind, "key": event.key, "time": event.time,
                "digest": _hex(event.digest),
            }
            for stream, event in changes.events
        ]  # fmt: skip
        return (
            _json([self._written(name, record) for name, record in wrote]),
            [None if record is None else record.body for _, record in wrote] or None,
            _json(moved),
            _json(begun if begins else []),
            _json(added),
            [event.body for _, event in changes.events] or None,
            _json([dict(zip(_FEED, relational.feed_row(None, 0, one), strict=True)) for one in changes.feed]),
        )

    def _writes(self, name: Name, changes: Changes) -> bool:
        """Whether a row is to be touched: what was made and deleted within one plan leaves none."""
        return changes.records[name] is not None or name in self.known

    def _written(self, name: Name, record: Record | None) -> dict[str, Any]:
        stored = self.known.get(name)
        old, new = () if stored is None else stored.record.tags, () if record is None else record.tags
        row: dict[str, Any] = {"kind": name[0], "id": name[1]}
        if record is not None:
            row = dict(zip(_RECORD, relational.record_row(None, record), strict=True))
            row["digest"] = _hex(record.digest)
            del row["tenant"], row["body"]
        row |= {"off": sorted(set(old) - set(new)) or None, "on": sorted(set(new) - set(old)) or None}
        return row | {"seen": self._seen(name)}

    def _seen(self, name: Name) -> str | None:
        known = self.known.get(name)
        return known.seen if known is not None else None


_RECORD = ("tenant", *relational.RECORD.split(", "), "hour")
_STRAND = relational.STRAND.split(", ")
_FEED = ("tenant", *relational.FEED.split(", "))


def _strand_row(strand: Strand) -> Row:
    return strand.stream, strand.kind, strand.id, strand.parent, strand.base, _hex(strand.digest)


def _hex(value: bytes) -> str:
    """Bytes as Postgres reads them out of a text."""
    return f"\\x{value.hex()}"


def _json(rows: list[dict[str, Any]]) -> str | None:
    """Rows as one value; None for none, which the server skips."""
    if not rows:
        return None
    try:
        return _encode(rows).decode()
    except (UnicodeEncodeError, OverflowError) as error:
        raise Invalid(f"Postgres cannot store this: {error}") from error


class PlannedGroup:
    """A group as planned: what each tenant's batches come to, and how each batch ends if that gets through."""

    def __init__(self, jobs: list[Job], sources: dict[str, LoadedRows], ids: FreshIds) -> None:
        self._jobs, self.sources = jobs, sources
        self.plans = {tenant: Plan(tenant, source, ids.rewind()) for tenant, source in sources.items()}
        self._idle: set[str] = set()
        self._ends = [self._add(job) for job in jobs]
        self.changed = [tenant for tenant, plan in self.plans.items() if plan.changes]

    def _add(self, job: Job) -> Receipt | Exception:
        """Plan one job, and note where one comes to nothing or fails: no call will prove that right."""
        plan = self.plans[job.tenant]
        before = len(plan.changes.feed), plan.changes.derived
        try:
            end: Receipt | Exception = plan.add(job.ops, job.time, job.actor)
        except MISTAKES as error:
            end = error
        if (len(plan.changes.feed), plan.changes.derived) == before:
            self._idle.add(job.tenant)
        return end

    @property
    def is_certain(self) -> bool:
        """Whether all that the server will not compare was so at one moment."""
        return all(self.sources[tenant].whole for tenant in self._idle)

    @property
    def is_plain(self) -> bool:
        """Whether rows are only written: what gives up a stream or an id has to look who else needs it."""
        every = [plan.changes for plan in self.plans.values()]
        return not any(some.released or some.erased or some.graves or some.trimmed or some.limits for some in every)

    def call(self, tenant: str, bounds: Sequence[str]) -> tuple[Any, ...]:
        source, changes = self.sources[tenant], self.plans[tenant].changes
        return tenant, *bounds, *source.conditions(changes), *source.rows(changes)

    def forget(self, memory: RowCache) -> None:
        for tenant, source in self.sources.items():
            memory.forget(tenant, source.known)

    def ends(self, firsts: Mapping[str, int]) -> Ends:
        """How each batch ended, with its position in the feed, or the last one where the feed says nothing of it."""
        before = {tenant: firsts.get(tenant, source.position + 1) - 1 for tenant, source in self.sources.items()}
        return [
            Receipt(before[job.tenant] + end.feed, end.time, end.events, end.heads) if isinstance(end, Receipt) else end
            for job, end in zip(self._jobs, self._ends, strict=True)
        ]


def needed_by(jobs: list[Job]) -> dict[str, NeededRows]:
    """What each tenant's operations name."""
    wanted: dict[str, NeededRows] = defaultdict(NeededRows)
    for job in jobs:
        wanted[job.tenant].add(job.ops)
    return wanted
