"""The engine that keeps everything in this process's memory, for tests and for throwing away.

It is also the model the other engines are compared with, so it stays plain: dictionaries behind one lock, the
shared plan for meaning, and copies by sharing for snapshots. Deliberately absent: durability, and other processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice

import msgspec

from holdfast import atfork
from holdfast.clock import Clock
from holdfast.engine import chain, lineage
from holdfast.engine.contract import (
    Commit,
    Event,
    Interest,
    Mark,
    Op,
    Problem,
    Query,
    Receipt,
    Record,
    Removed,
    Scope,
    Strand,
    View,
)
from holdfast.engine.lineage import trimmed
from holdfast.engine.plan import Changes, Limits, Measured, Name, Plan, Published
from holdfast.engine.waiting import Waiters
from holdfast.errors import Misconfigured
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

    def between(self, part: lineage.StreamPart, limit: int | None, newest: bool) -> list[Event]:
        before = self._events[0].position - 1 if self._count else 0
        first, last = max(0, part.after - before), max(0, min(part.upto - before, self._count))
        if limit is not None:
            first, last = (max(first, last - limit), last) if newest else (first, min(first + limit, last))
        return self._events[first:last]

    def carrying(self, part: lineage.StreamPart, key: str) -> list[Event]:
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
        self.limits: dict[Measured, int] = {}

    @property
    def head(self) -> int:
        return self.feed[-1].position if self.feed else 0

    def forget(self, forgetting: lineage.Forgetting) -> int:
        """Take what was erased out of the feed: what happened stays, not to whom. Return how many items changed."""
        before, self.feed = self.feed, [forgetting.of(commit) or commit for commit in self.feed]
        return sum(old is not new for old, new in zip(before, self.feed, strict=True))

    def held(self, what: Measured) -> int:
        """How much there is of what is limited."""
        measure, kind = what
        own = [record for record in self.records.values() if not record.derived]
        if measure == "records":
            return sum(record.kind == kind for record in own)
        if measure == "events":
            return sum(len(list(self.own(s.stream))) for s in self.strands.values() if s.kind == kind)
        events = (event for stream in self.events.values() for event in stream)
        return sum(len(record.body) for record in own) + sum(len(event.body) for event in events)

    def own(self, stream: int) -> _Own:
        return self.events.get(stream) or _Own()

    def copy(self) -> _Tenant:
        twin = _Tenant()
        twin.records, twin.strands = dict(self.records), dict(self.strands)
        twin.events = {stream: own.twin() for stream, own in self.events.items()}
        twin.graves, twin.feed, twin.limits = set(self.graves), list(self.feed), dict(self.limits)
        return twin


class _Reads:
    """The reading half, over a dictionary of tenants that someone else may be changing."""

    def __init__(self, clock: Clock, tenants: dict[str, _Tenant], lock: threading.RLock) -> None:
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
            parts: Iterable[lineage.StreamPart] = lineage.parts(data.strands.get, mark, after)
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

    def feed(
        self, tenant: str, after: int = 0, limit: int = 100, timeout_s: float = 0.0, only: Interest | None = None
    ) -> list[Commit]:
        with self._lock:
            feed = self._of(tenant).feed
        first = feed[0].position if feed else 1
        if first > after + 1:
            raise trimmed(after, first)
        found: Iterable[Commit | None] = islice(feed, after + 1 - first, None)
        if only is not None:
            found = (only.of(commit) for commit in found if commit is not None)
        return list(islice(filter(None, found), limit))

    def head(self, tenant: str) -> int:
        with self._lock:
            return self._of(tenant).head

    def limits(self, tenant: str) -> Limits:
        with self._lock:
            data = self._of(tenant)
            return {what: (most, data.held(what)) for what, most in data.limits.items()}

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
    """Everything in memory; gone when the process ends."""

    durable = False

    def __init__(self, clock: Clock, ids: Ids) -> None:
        super().__init__(clock, {}, atfork.lock())
        self._ids = ids
        self._waiters = Waiters(self, lambda tenants: {tenant: self.head(tenant) for tenant in tenants})
        atfork.join(before=self._before_fork, in_parent=self._after_fork, in_child=self._after_fork)

    def commit(self, tenant: str, ops: Sequence[Op], time: int, actor: str | None = None) -> Receipt:
        with self._lock:
            self._refuse_when_closed()
            plan = Plan(tenant, self, self._ids)
            receipt = plan.add(ops, time, actor)
            before = self._of(tenant).head
            if plan.changes:
                data = self._tenants.setdefault(tenant, _Tenant())
                self._apply(data, plan.changes)
                self._publish(data, plan.changes.feed)
                self._finish(data, plan.changes)
        self._waiters.announce()
        return msgspec.structs.replace(receipt, feed=before + receipt.feed)

    def feed(
        self, tenant: str, after: int = 0, limit: int = 100, timeout_s: float = 0.0, only: Interest | None = None
    ) -> list[Commit]:
        if timeout_s <= 0:
            return super().feed(tenant, after, limit, only=only)
        return self._waiters.feed(tenant, after, limit, timeout_s, only)

    def listen(
        self, tenant: str, after: int, call: Callable[[list[Commit]], None], only: Interest | None = None
    ) -> Callable[[], None]:
        return self._waiters.listen(tenant, after, call, only)

    @contextmanager
    def snapshot(self) -> Iterator[View]:
        with self._lock:
            self._refuse_when_closed()
            frozen = {name: data.copy() for name, data in self._tenants.items()}
        yield _Reads(self._clock, frozen, threading.RLock())

    def erase(
        self,
        tenant: str,
        scope: Scope,
        *,
        time: int,
        bury: bool = True,
        free: Collection[str] = (),
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Removed:
        lineage.refuse_empty(scope)
        with self._lock:
            self._refuse_when_closed()
            data = self._of(tenant)
            doomed = [r for r in data.records.values() if lineage.inside(r.scope, scope)]
            removed = lineage.removed(doomed)
            if dry_run or tenant not in self._tenants:
                return removed
            for record in doomed:
                del data.records[(record.kind, record.id)]
            data.graves |= {lineage.grave(*name) for name in lineage.graves(doomed, free)} if bury else set()
            self._prune(data, {(r.kind, r.id) for r in doomed}, set())
            forgotten = data.forget(lineage.Forgetting({r.id: r.scope for r in doomed if not r.derived}, scope))
            if told := lineage.erasure(removed, forgotten):
                self._publish(data, [Published(time, lineage.actor_of(actor, scope), told)])
        self._waiters.announce()
        return removed

    def check(self, tenant: str | None = None) -> list[Problem]:
        problems: list[Problem] = []
        with self._lock:
            self._refuse_when_closed()
            for name, data in self._tenants.items():
                for strand in data.strands.values() if tenant in (None, name) else ():
                    broken = chain.breaks(data.own(strand.stream), strand.base, strand.digest)
                    problems += lineage.problems(name, strand, broken)
        return problems

    def close(self) -> None:
        with self._lock:
            self.closed = True
        self._waiters.close()

    def _before_fork(self) -> None:
        self._lock.acquire()  # a child has a copy, and no thread may be in the middle of changing it

    def _after_fork(self) -> None:
        with suppress(RuntimeError):  # the fork was made without our hooks
            self._lock.release()

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

    def _publish(self, data: _Tenant, feed: Sequence[Published]) -> None:
        for one in feed:
            data.feed.append(Commit(data.head + 1, one.time, one.changes, one.actor))

    def _finish(self, data: _Tenant, changes: Changes) -> None:
        data.graves |= {lineage.grave(*name) for name in changes.graves}
        for forgetting in lineage.forgettings(changes.erased, data.head - len(changes.feed)):
            data.forget(forgetting)
        if changes.trimmed:
            data.feed = [c for c in data.feed if c.position > changes.trimmed or c.position == data.head]
        for what, most in changes.limits.items():
            data.limits.pop(what, None)
            if most is not None:
                data.limits[what] = most


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
        and _lives(record, query.expired_before, now)
    )


def _lives(record: Record, expired_before: int | None, now: int) -> bool:
    """Whether a record matches: not expired, or expired up to a moment."""
    if expired_before is not None:
        return record.expires is not None and record.expires <= expired_before
    return record.expires is None or record.expires > now
