"""The engine that keeps everything in this process's memory, for tests and for throwing away.

It is also the model the other engines are compared with, so it stays plain: dictionaries behind one lock, the
shared plan for meaning, and copies by sharing for snapshots. Deliberately absent: durability, and other processes.
"""

from __future__ import annotations

import threading
import time as _time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from holdfast.clock import Clock
from holdfast.engine import chain, lineage
from holdfast.engine.contract import Commit, Event, Mark, Op, Problem, Query, Receipt, Record, Scope, Strand, View
from holdfast.engine.plan import Changes, Name, Plan
from holdfast.errors import Misconfigured, Unsupported
from holdfast.ids import Ids


class _Own:
    """The events that a strand added itself: in order and without a gap, and by key.

    Events are only added, so a twin shares them with its original and looks no further than it went at that moment.
    """

    __slots__ = ("_count", "_events", "_keyed")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: list[Event] = []
        self._keyed: dict[str, Event] = {}
        self._count = 0
        for event in events:
            self.add(event)

    def __iter__(self) -> Iterator[Event]:
        return islice(self._events, self._count)

    def add(self, event: Event) -> None:
        self._events.append(event)
        self._count += 1
        if event.key is not None:
            self._keyed[event.key] = event

    def between(self, part: lineage.Part, limit: int | None, newest: bool) -> list[Event]:
        before = self._events[0].position - 1 if self._count else 0
        first, last = max(0, part.after - before), max(0, min(part.upto - before, self._count))
        if limit is not None:
            first, last = (max(first, last - limit), last) if newest else (first, min(first + limit, last))
        return self._events[first:last]

    def carrying(self, part: lineage.Part, key: str) -> list[Event]:
        event = self._keyed.get(key)
        if event is None:
            return []
        at = event.position
        return self.between(part._replace(after=max(part.after, at - 1), upto=min(part.upto, at)), None, False)

    def twin(self) -> _Own:
        twin = _Own()
        twin._events, twin._keyed, twin._count = self._events, self._keyed, self._count
        return twin


class _Tenant:
    """All that one tenant holds."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], Record] = {}
        self.strands: dict[int, Strand] = {}
        self.events: dict[int, _Own] = {}
        self.graves: set[bytes] = set()
        self.feed: list[Commit] = []

    def scrub(self, ids: set[str]) -> None:
        """Take erased ids out of the feed: what happened stays, to whom does not."""
        self.feed = [Commit(c.position, c.time, lineage.scrubbed(c.changes, ids) or c.changes) for c in self.feed]

    def own(self, stream: int) -> _Own:
        return self.events.get(stream) or _Own()

    def copy(self) -> _Tenant:
        twin = _Tenant()
        twin.records, twin.strands = dict(self.records), dict(self.strands)
        twin.events = {stream: own.twin() for stream, own in self.events.items()}
        twin.graves, twin.feed = set(self.graves), list(self.feed)
        return twin


class _Reads:
    """The reading half, over a dictionary of tenants that someone else may be changing."""

    def __init__(self, clock: Clock, tenants: dict[str, _Tenant], lock: threading.Condition) -> None:
        self._clock = clock
        self._tenants = tenants
        self._lock = lock
        self.closed = False

    def _of(self, tenant: str) -> _Tenant:
        self._refuse_when_closed()
        return self._tenants.get(tenant) or _Tenant()

    def _refuse_when_closed(self) -> None:
        if self.closed:
            raise Misconfigured("this store is closed")

    def get(self, tenant: str, kind: str, id: str) -> Record | None:
        with self._lock:
            return self._of(tenant).records.get((kind, id))

    def scan(self, tenant: str, query: Query) -> list[Record]:
        now = self._clock.now()
        with self._lock:
            found = [r for r in self._of(tenant).records.values() if _matches(r, query, now)]
        found.sort(key=lambda r: (r.time, r.id), reverse=True)
        return found[: query.limit]

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
        with self._lock:
            data = self._of(tenant)
            parts: Iterable[lineage.Part] = lineage.parts(data.strands.get, mark, after)
            if key is not None:
                found = (data.own(part.stream).carrying(part, key) for part in parts)
                return next(filter(None, found), [])
            events: list[Event] = []
            for part in parts if newest else reversed(list(parts)):
                left = None if limit is None else limit - len(events)
                some = data.own(part.stream).between(part, left, newest)
                events = some + events if newest else events + some
                if limit is not None and len(events) >= limit:
                    break
            return events

    def feed(self, tenant: str, after: int = 0, limit: int = 100, timeout_s: float = 0.0) -> list[Commit]:
        with self._lock:
            return self._of(tenant).feed[after : after + limit]

    def strand(self, tenant: str, stream: int) -> Strand | None:
        with self._lock:
            return self._of(tenant).strands.get(stream)

    def tenants(self) -> list[str]:
        with self._lock:
            self._refuse_when_closed()
            return sorted(self._tenants)

    def buried(self, tenant: str, kind: str, id: str) -> bool:
        return lineage.grave(kind, id) in self._of(tenant).graves


class RamEngine(_Reads):
    """Everything in memory; gone when the process is."""

    durable = False

    def __init__(self, clock: Clock, ids: Ids) -> None:
        super().__init__(clock, {}, threading.Condition(threading.RLock()))
        self._ids = ids

    def commit(self, tenant: str, ops: Sequence[Op], time: int) -> Receipt:
        with self._lock:
            self._refuse_when_closed()
            plan = Plan(tenant, self, self._ids)
            receipt = plan.add(ops, time)
            if not plan.changes:
                return msgspec.structs.replace(receipt, feed=len(self._of(tenant).feed))
            self._apply(self._tenants.setdefault(tenant, _Tenant()), plan.changes)
            position = self._publish(tenant, plan.changes, time)
            return msgspec.structs.replace(receipt, feed=position)

    def feed(self, tenant: str, after: int = 0, limit: int = 100, timeout_s: float = 0.0) -> list[Commit]:
        deadline = _time.monotonic() + timeout_s
        with self._lock:
            while not (found := super().feed(tenant, after, limit)):
                left = deadline - _time.monotonic()
                if left <= 0:
                    break
                self._lock.wait(left)
            return found

    @contextmanager
    def snapshot(self) -> Iterator[View]:
        with self._lock:
            self._refuse_when_closed()
            frozen = {name: data.copy() for name, data in self._tenants.items()}
        yield _Reads(self._clock, frozen, threading.Condition(threading.RLock()))

    def erase(self, tenant: str, scope: Scope, *, time: int, bury: bool = True) -> int:
        lineage.refuse_empty(scope)
        with self._lock:
            self._refuse_when_closed()
            data = self._of(tenant)
            doomed = [r for r in data.records.values() if lineage.inside(r.scope, scope)]
            for record in doomed:
                del data.records[(record.kind, record.id)]
                if bury:
                    data.graves.add(lineage.grave(record.kind, record.id))
            self._prune(data, {(r.kind, r.id) for r in doomed}, set())
            data.scrub({r.id for r in doomed})
            if doomed:
                self._publish(tenant, lineage.erasure(doomed), time)
            return len(doomed)

    def backup(self, path: Path) -> None:
        self._refuse_when_closed()
        raise Unsupported("a store in memory has no file to copy")

    def check(self) -> list[Problem]:
        problems: list[Problem] = []
        with self._lock:
            self._refuse_when_closed()
            for tenant, data in self._tenants.items():
                for strand in data.strands.values():
                    broken = chain.breaks(data.own(strand.stream), strand.base, strand.digest)
                    problems += lineage.problems(tenant, strand, broken)
        return problems

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._lock.notify_all()

    def _apply(self, data: _Tenant, changes: Changes) -> None:
        for strand in changes.strands.values():
            data.strands[strand.stream] = strand
        for stream, event in changes.events:
            data.events.setdefault(stream, _Own()).add(event)
        for name, record in (*changes.records.items(), *changes.moved.items()):
            if record is None:
                data.records.pop(name, None)
            else:
                data.records[name] = record
        if changes.released:
            self._prune(data, changes.released, changes.alive())

    def _prune(self, data: _Tenant, names: set[Name], alive: set[int]) -> None:
        """Drop what these names alone reached, and nameless strands whose last fork is gone."""
        owned = {s.stream for s in data.strands.values() if (s.kind, s.id) in names} - alive
        nameless = {s.stream for s in data.strands.values() if not s.kind}
        for stream, keep in lineage.keeps(data.strands.values(), owned | nameless).items():
            if keep == 0:
                data.events.pop(stream, None)
                del data.strands[stream]
            else:
                data.events[stream] = _Own(e for e in data.own(stream) if e.position <= keep)
                data.strands[stream] = msgspec.structs.replace(data.strands[stream], kind="", id="")

    def _publish(self, tenant: str, changes: Changes, time: int) -> int:
        feed = self._tenants[tenant].feed
        feed.append(Commit(len(feed) + 1, time, tuple(changes.feed)))
        if changes.erased:
            self._tenants[tenant].scrub(changes.erased)
        self._lock.notify_all()
        return len(feed)


def _matches(record: Record, query: Query, now: int) -> bool:
    scope = record.scope
    return (
        record.kind == query.kind
        and (query.user is None or scope.user == query.user)
        and (query.agent is None or scope.agent == query.agent)
        and (query.thread is None or scope.thread == query.thread)
        and (query.tag is None or query.tag in record.tags)
        and (query.since is None or record.time >= query.since)
        and (query.until is None or record.time < query.until)
        and (query.before is None or (record.time, record.id) < query.before)
        and (record.expires is None or record.expires > now)
    )
