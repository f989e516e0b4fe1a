"""What all runs of a store share, listing and reading runs, and how a fork of a thread inherits them.

A run's record is named by its thread and its own name, so any process finds it by name. A fork shares the journals as
they were at its point: otherwise it would repeat what its history says was done. Nobody holds the runs of a fork, and
nobody resumes them unasked: the origin ends the steps of an open run, until someone opens the fork's run by name.
Deliberately absent: holding a run (``lifecycle``), carrying it out (``work``), and finding runs to continue
(``resume``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from holdfast import atfork
from holdfast.checks import check_choice
from holdfast.engine.contract import Event, Fork, Mark, Op, Put, Query, Record, Scope, View
from holdfast.errors import FeedTrimmed, NotFound
from holdfast.ids import Ids
from holdfast.ledger.core import Core, fetch, fetch_events, scan_all
from holdfast.steps.declare import UNDO
from holdfast.steps.flow import Flow, drive
from holdfast.steps.journal import KIND, OWN, STORED, Journal, record_id, to_header
from holdfast.steps.lease import LEASE, LeaseRenewer, RenewedLease, Terms, clock_of, is_free, this_process, to_terms
from holdfast.steps.timeline import STATUSES, RunInfo, StepInfo, Timeline, step_info, timeline

T = TypeVar("T")
LEASE_S = 30.0
_SHORT = 50  # events of a journal read together with those of others


class RunView(NamedTuple):
    """A run as it stands: its record, its lease, and the events of its journal."""

    record: Record
    lease: Record | None
    events: list[Event]

    @property
    def terms(self) -> Terms | None:
        return None if self.lease is None else to_terms(self.lease)

    def journal(self) -> Journal:
        journal = Journal(self.record.base)
        journal.fold(self.events)
        return journal


class RunBook:
    """What all runs of a store share: who works here, and who keeps the leases."""

    def __init__(self, core: Core, ids: Ids, lease_s: float = LEASE_S) -> None:
        self.core, self.lease_s = core, lease_s
        self.renewer = LeaseRenewer(self)
        self.now = clock_of(core)
        self.heard = 0
        self._ids = ids
        self._lock = atfork.lock()
        self._begin()
        atfork.join(in_child=self._begin)

    def _begin(self) -> None:
        """Become a new holder: a forked child must not act as its parent."""
        self.holder = this_process(self._ids)
        self._claiming: Counter[str] = Counter()
        self._busy: Counter[tuple[str, ...]] = Counter()
        self._left: dict[str, RenewedLease] = {}

    def drive(self, flow: Flow[T]) -> T:
        return drive(flow, self.core.clock)

    def note_busy(self, place: tuple[str, ...], more: int) -> None:
        """Count the callers' functions that are running, even those that nobody waits for.

        A place is a run, the run or subtask itself, and the step.
        """
        with self._lock:
            self._busy[place] += more
            if self._busy[place] <= 0:  # below zero in a forked child, where functions started by the parent end
                del self._busy[place]
            left = None if self._goes_on(place[:1]) else self._left.pop(place[0], None)
        if left is not None:
            self.renewer.soon(partial(self._give_up, left))

    def is_busy(self, *place: str) -> bool:
        """Whether any function still runs in a run, or in one place of it."""
        with self._lock:
            return self._goes_on(place)

    def leave_busy(self, lease: RenewedLease) -> bool:
        """Whether a function of a run still runs; then the run is released once it, or the lease, has ended."""
        with self._lock:
            busy = self._goes_on((lease.id,))
            if busy:
                self._left[lease.id] = lease
        return busy

    def _goes_on(self, place: tuple[str, ...]) -> bool:
        return any(busy[: len(place)] == place for busy in self._busy)

    @contextmanager
    def claiming(self, ids: Iterable[str]) -> Iterator[None]:
        """Note that runs are about to be held here, until the claim succeeds or fails."""
        claimed = Counter(ids)
        with self._lock:
            self._claiming += claimed
        try:
            yield
        finally:
            with self._lock:
                self._claiming -= claimed

    def is_forgotten(self, id: str, terms: Terms) -> bool:
        """Whether this store holds a run that nothing in it uses: its claim was interrupted, or its handle is gone."""
        if terms.holder != self.holder.name or self.is_busy(id):
            return False
        with self._lock:
            claiming = self._claiming[id] > 0
        return not claiming and not self.renewer.keeps(id)

    def hear_all(self) -> None:
        """Note the latest commit, so that ``listen`` waits for the next one. Blocks."""
        self.heard = self.core.engine.head(self.core.tenant)

    def listen(self, seconds: float) -> None:
        """Wait until something is committed, for at most that many seconds. Blocks."""
        try:
            feed = self.core.engine.feed(self.core.tenant, self.heard, 1000, seconds)
        except FeedTrimmed:
            self.hear_all()
            return
        if feed:
            self.heard = max(self.heard, feed[-1].position)

    # Looking

    def record(self, thread: str, name: str) -> Record:
        record = self.core.engine.get(self.core.tenant, KIND, record_id(thread, name))
        if record is None:
            raise NotFound(f"thread {thread!r} has no run {name!r}", thread=thread, run=name)
        return record

    def terms(self, id: str) -> Terms | None:
        found = self.core.engine.get(self.core.tenant, LEASE, id)
        return None if found is None else to_terms(found)

    def look(self, records: Sequence[Record]) -> dict[str, RunView]:
        """What claiming runs needs to know, by run id, read with few queries. Blocks."""
        leases = fetch(self.core.engine, self.core.tenant, LEASE, [record.id for record in records])
        short = [
            record for record in records if record.stream is not None and not record.base and record.head <= _SHORT
        ]
        places = {record.id: [Mark(record.mark.stream, at + 1) for at in range(record.head)] for record in short}
        found = fetch_events(self.core.engine, self.core.tenant, [mark for some in places.values() for mark in some])
        looks = {}
        for record in records:
            events = [found[mark] for mark in places.get(record.id, ()) if mark in found]
            whole = record.id in places and len(events) == record.head
            looks[record.id] = RunView(
                record, leases.get(record.id), events if whole else self.events(record, record.head)
            )
        return looks

    def events(self, record: Record, upto: int, after: int = 0) -> list[Event]:
        assert record.stream is not None
        return self.core.engine.read(self.core.tenant, Mark(record.stream, upto), after=after)

    def journal(self, record: Record, upto: int) -> Journal:
        journal = Journal(record.base)
        journal.fold(self.events(record, upto))
        return journal

    def info(self, thread: str, name: str) -> RunInfo:
        record = self.record(thread, name)
        return RunInfo.of(record, self.is_held(record))

    def is_held(self, record: Record) -> bool:
        return not is_free(self.terms(record.id), self.now(), self.holder)

    def listed(
        self,
        *,
        thread: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> list[RunInfo]:
        """Runs by latest activity, without subtasks. Blocks."""
        if status is not None:
            check_choice("status", status, STATUSES)
        stored = "open" if status in ("running", "interrupted", "submitted") else status
        query = Query(KIND, user=user, agent=agent, thread=thread, tag=stored)
        now = self.now()
        held = {id for id, terms in self.leases() if not is_free(terms, now, self.holder)}
        found = (
            RunInfo.of(record, record.id in held)
            for record in scan_all(self.core.engine, self.core.tenant, query)
            if not is_subtask(record)
        )
        wanted = (info for info in found if status in (None, info.status))
        return list(islice(wanted, limit))

    def leases(self) -> Iterator[tuple[str, Terms]]:
        for record in scan_all(self.core.engine, self.core.tenant, Query(LEASE)):
            yield record.id, to_terms(record)

    def timeline(self, thread: str, name: str) -> Timeline:
        record = self.record(thread, name)
        return timeline(RunInfo.of(record, self.is_held(record)), self.events(record, record.head))

    def walked(self, thread: str, only: Iterable[str] | None = None) -> list[tuple[RunInfo, tuple[StepInfo, ...]]]:
        """The runs of a thread, oldest first, with the status of each step, except steps that undo.

        Holdfast's own runs are left out. With ``only``, just runs that have not ended and runs of these names: however
        many runs a thread had, few are read.
        """
        query = Query(KIND, thread=thread)
        records = scan_all(self.core.engine, self.core.tenant, query) if only is None else self._few(query, only)
        found = [
            (info, self.journal(record, record.head))
            for record in records
            if is_of(record, thread) and not (info := RunInfo.of(record, False)).handler.startswith(OWN)
        ]
        found.sort(key=lambda run: (run[0].started, run[0].name))
        return [
            (info, tuple(step_info(step) for step in journal.steps.values() if not step.name.endswith(UNDO)))
            for info, journal in found
        ]

    def _few(self, query: Query, names: Iterable[str]) -> list[Record]:
        view, tenant = self.core.engine, self.core.tenant
        still = (msgspec.structs.replace(query, tag=status) for status in STORED if status not in ("done", "cancelled"))
        found = {record.id: record for one in still for record in scan_all(view, tenant, one)}
        ids = [record_id(query.thread or "", name) for name in names]
        return list((found | fetch(view, tenant, KIND, ids)).values())

    # The end

    def close(self) -> None:
        """Release every run still held, so that others need not wait for its lease to end."""
        held = self.renewer.held()
        self.renewer.close()
        for lease in held:
            if lease.over or lease.lost or self.is_busy(lease.id):
                continue  # a function that still runs keeps its run until the lease ends
            self._give_up(lease)

    def _give_up(self, lease: RenewedLease) -> None:
        with suppress(Exception):  # its lease will run out
            self.core.write((lease.guard(), lease.give_up(until=0)), self.core.clock.now())


def is_subtask(record: Record) -> bool:
    return "subtask" in record.tags


def is_of(record: Record, thread: str) -> bool:
    """Whether a run belongs to a thread itself, and not to a subtask of it."""
    return not is_subtask(record) and record.id.startswith(f"{len(thread)}:{thread}/")


class Forking(NamedTuple):
    """A fork in preparation, on an unchanging view: ``thread`` at ``moment`` becomes ``to``."""

    view: View
    tenant: str
    thread: str
    to: str
    scope: Scope
    moment: int

    def ops(self) -> tuple[Op, ...]:
        """The operations that give the fork the runs of its origin, and the logs and states of their subtasks."""
        runs = [self._run(record, position) for record, position in self._records(KIND)]
        logs = [
            self._log(record, position)
            for kind in ("thread", "state")
            for record, position in self._records(kind)
            if record.id.startswith(f"{self.thread}/")  # the ledger forks the thread's own
        ]
        return (*runs, *logs)

    def _records(self, kind: str) -> Iterator[tuple[Record, int]]:
        for record in scan_all(self.view, self.tenant, Query(kind, thread=self.thread)):
            position = 0 if record.stream is None else self._position(record)
            if position:
                yield record, position

    def _run(self, record: Record, position: int) -> Fork:
        header = to_header(record.body)
        status: Any = header.status if position == record.head else self._status(record, position)
        mine = msgspec.structs.replace(header, thread=self._moved(header.thread), status=status, holder="")
        id = record_id(mine.thread, mine.name)
        tags = record.tags if header.parent is not None else (status,)
        new = Put(KIND, id, mine.body(), scope=self.scope, tags=tags)
        return Fork(KIND, id, Mark(record.mark.stream, position), new=new)

    def _log(self, record: Record, position: int) -> Fork:
        new = Put(record.kind, self._moved(record.id), record.body, scope=self.scope, tags=record.tags)
        return Fork(record.kind, new.id, Mark(record.mark.stream, position), new=new)

    def _moved(self, id: str) -> str:
        return f"{self.to}{id.removeprefix(self.thread)}"

    def _position(self, record: Record) -> int:
        """The position of a stream at the moment."""
        if record.time <= self.moment:
            return record.head
        return max((event.position for event in self._events(record) if event.time <= self.moment), default=0)

    def _status(self, record: Record, position: int) -> str:
        journal = Journal(record.base)
        journal.fold(event for event in self._events(record) if event.position <= position)
        return "open" if journal.ended is None else str(journal.ended["status"])

    def _events(self, record: Record) -> list[Event]:
        return self.view.read(self.tenant, record.mark)
