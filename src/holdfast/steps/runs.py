"""All runs of a store: opening one, listing them, signalling and cancelling from outside.

A run's record is named by its thread and its own name, so it is resumable by name from any process. Deliberately
absent: carrying a run out (``work``), and finding those that nobody carries on (``resume``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from holdfast.clock import to_datetime
from holdfast.engine.contract import Append, Delete, Event, Guard, Mark, Op, Put, Query, Record, Scope
from holdfast.errors import Conflict, Invalid, KeyReused, NotFound, RunEnded, RunHeld
from holdfast.ids import Ids, check_id
from holdfast.ledger import log
from holdfast.ledger import schema as schemas
from holdfast.ledger.core import Core, scan_all
from holdfast.records import event
from holdfast.steps import ending
from holdfast.steps.declare import UNDO
from holdfast.steps.flow import Flow, drive
from holdfast.steps.journal import ENDED, KIND, Header, Journal, check_room, fact, signal_key, to_header
from holdfast.steps.lease import (
    LEASE,
    SECOND,
    Keeper,
    Lease,
    Terms,
    clock_of,
    is_free,
    plain_terms,
    this_process,
    to_terms,
)
from holdfast.steps.timeline import STATUSES, RunInfo, StepInfo, Timeline, step_info, timeline
from holdfast.steps.waiting import Signal
from holdfast.steps.work import Work

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread

T = TypeVar("T")
LEASE_S = 30.0
_TRIES = 100


def record_id(thread: str, name: str) -> str:
    """Runs of all threads share one kind; the length in front keeps ("a/b", "c") apart from ("a", "b/c")."""
    return f"{len(thread)}:{thread}/{check_id(name, 'run name')}"


class Runs:
    """What all runs of a store share: who works here, and who keeps the leases."""

    def __init__(self, core: Core, ids: Ids, lease_s: float = LEASE_S) -> None:
        self.core, self.lease_s = core, lease_s
        self.holder = this_process(ids)
        self.keeper = Keeper()
        self.now = clock_of(core)
        self.heard = 0

    def drive(self, flow: Flow[T]) -> T:
        return drive(flow, self.core.clock)

    def listen(self, seconds: float) -> None:
        """Wait until something is committed, but no longer than so many seconds. Blocks."""
        feed = self.core.engine.feed(self.core.tenant, self.heard, 1000, seconds)
        if feed:
            self.heard = max(self.heard, feed[-1].position)

    # Opening

    def open(self, thread: LedgerThread, name: str, handler: str | None, input: Any) -> Work:
        """Begin a run, or take up one that was left; ``RunHeld`` when another holder is alive. Blocks.

        A run that is done or cancelled is opened for reading: its recorded steps give their results.
        """
        id = record_id(thread.id, name)
        for _ in range(_TRIES):
            record = self.core.engine.get(self.core.tenant, KIND, id)
            try:
                if record is None:
                    return self._begin(thread, id, name, handler, input)
                return self._take_up(thread, record, handler, input)
            except RunHeld:
                raise
            except Conflict:
                continue  # someone was faster: look who
        raise RunHeld(f"run {name!r} of thread {thread.id!r} keeps changing hands", thread=thread.id, run=name)

    def _begin(self, thread: LedgerThread, id: str, name: str, handler: str | None, input: Any) -> Work:
        header = Header(
            thread.id, name, check_id(handler or name, "handler"), "open", schemas.dump(input), self.holder.name, 1
        )
        scope, before = self._scope(thread)
        opened = self._opened("new", 1)
        terms = plain_terms(header, self._until(), self.holder)
        receipt = self.core.engine.commit(
            self.core.tenant,
            (
                *before,
                thread._touch(),
                Put(KIND, id, header.body(), 0, scope, (header.status,)),
                Append(KIND, id, (opened,)),
                terms.put(id, scope),
            ),
            opened.time,
        )
        record = self.core.engine.get(self.core.tenant, KIND, id)
        if record is None or record.version != 1:
            raise Conflict("taken at once")
        journal = Journal()
        journal.fold(receipt.events[1])
        return self._held(thread, record, header, journal, terms)

    def _scope(self, thread: LedgerThread) -> tuple[Scope, tuple[Op, ...]]:
        """A run has the owner of its thread, so that erasing a user erases it too."""
        record = thread._record()
        if record is None:
            return thread._scope, (Guard("thread", thread.id, 0),)
        scope = record.scope
        return Scope(scope.user, scope.agent, scope.thread or thread.id), ()

    def _opened(self, why: str, claims: int) -> Event:
        return fact("opened", self.core.clock.now(), why=why, by=self.holder.name, claim=claims)

    def _until(self) -> int:
        return self.now() + round(self.lease_s * SECOND)

    def _take_up(self, thread: LedgerThread, record: Record, handler: str | None, input: Any) -> Work:
        thread._record()  # a handle that names another owner stops here
        header = to_header(record.body)
        if handler is not None and handler != header.handler:
            raise Invalid(f"run {header.name!r} was begun for handler {header.handler!r}, not {handler!r}")
        if input is not None and schemas.dump(input) != header.input:
            raise Invalid(f"run {header.name!r} of thread {thread.id!r} was begun with other input", run=header.name)
        if header.parent is not None:
            raise Invalid(f"{header.name!r} is a subtask of run {header.parent!r}; open that one")
        if header.status in ("done", "cancelled"):
            return self.reading(thread, record)
        return self.claim(thread, record, "reopened" if header.status in ("failed", "stopped") else "resumed")

    def claim(self, thread: LedgerThread, record: Record, why: str, *, due: bool = False) -> Work:
        """Take a run over, if nobody holds it; with ``due`` only if someone is to carry it on. Blocks."""
        header, terms, now = to_header(record.body), self.terms(record.id), self.now()
        if due and (terms is None or (not terms.holder and terms.until > now)):
            raise Conflict(f"run {header.name!r} of thread {header.thread!r} was carried on by another meanwhile")
        if not is_free(terms, now, self.holder):
            assert terms is not None
            raise RunHeld(
                f"run {header.name!r} of thread {header.thread!r} is held by {self._called(terms)} until "
                f"{to_datetime(terms.until):%Y-%m-%d %H:%M:%S} UTC, or longer while that is alive",
                thread=header.thread, run=header.name, holder=terms.holder, until=to_datetime(terms.until),
            )  # fmt: skip
        journal = self.journal(record, record.head)  # read first: what cannot be read is not claimed either
        claims = header.claims + 1
        mine = msgspec.structs.replace(header, status="open", holder=self.holder.name, claims=claims, waits=None)
        opened, mine_terms = self._opened(why, claims), plain_terms(header, self._until(), self.holder)
        receipt = self.core.engine.commit(
            self.core.tenant,
            (
                Put(KIND, record.id, mine.body(), record.version, record.scope, (mine.status,)),
                Append(KIND, record.id, (opened,)),
                mine_terms.put(record.id, record.scope),
            ),
            opened.time,
        )
        if journal.behind(receipt.events[0][0].position):
            journal.fold(self.events(record, receipt.heads[0], after=journal.head))
        journal.fold(receipt.events[0])
        taken = msgspec.structs.replace(record, version=record.version + 1)
        return self._held(thread, taken, mine, journal, mine_terms)

    def _called(self, terms: Terms) -> str:
        mine = terms.holder == self.holder.name
        return "this very process (use that Run, or release it)" if mine else terms.holder

    def _held(self, thread: LedgerThread, record: Record, header: Header, journal: Journal, terms: Terms) -> Work:
        assert record.stream is not None
        lease = Lease(self.core, record, terms, self.lease_s)
        work = Work(
            self, thread, record.id, header, journal,
            stream=record.stream, version=record.version, scope=record.scope, lease=lease,
        )  # fmt: skip
        self.keeper.keep(lease)
        return work

    def reading(self, thread: LedgerThread, record: Record, *, replaying: bool = False) -> Work:
        """A run that is only looked at. Blocks."""
        assert record.stream is not None
        return Work(
            self, thread, record.id, to_header(record.body), self.journal(record, record.head),
            stream=record.stream, version=record.version, scope=record.scope, replaying=replaying,
        )  # fmt: skip

    def submit(self, thread: LedgerThread, name: str, handler: str | None, input: Any) -> RunInfo:
        """Write down a run for whoever resumes next. Doing it again with the same input changes nothing. Blocks."""
        id = record_id(thread.id, name)
        header = Header(thread.id, name, check_id(handler or name, "handler"), "open", schemas.dump(input))
        scope, before = self._scope(thread)
        submitted = fact("opened", self.core.clock.now(), why="submitted", by=self.holder.name, claim=0)
        ops = (
            *before, thread._touch(), Put(KIND, id, header.body(), 0, scope, ("open",)), Append(KIND, id, (submitted,)),
            plain_terms(header, 0, None).put(id, scope),
        )  # fmt: skip
        try:
            self.core.engine.commit(self.core.tenant, ops, submitted.time)
        except Conflict:
            known = self.core.engine.get(self.core.tenant, KIND, id)
            if known is None:
                return self.submit(thread, name, handler, input)  # the thread was begun meanwhile
            there = to_header(known.body)
            if (there.handler, there.input) != (header.handler, header.input):
                raise Invalid(
                    f"run {name!r} of thread {thread.id!r} exists with another handler or input", run=name
                ) from None
        return self.info(thread.id, name)

    # Looking

    def record(self, thread: str, name: str) -> Record:
        record = self.core.engine.get(self.core.tenant, KIND, record_id(thread, name))
        if record is None:
            raise NotFound(f"thread {thread!r} has no run {name!r}", thread=thread, run=name)
        return record

    def terms(self, id: str) -> Terms | None:
        found = self.core.engine.get(self.core.tenant, LEASE, id)
        return None if found is None else to_terms(found)

    def events(self, record: Record, upto: int, after: int = 0) -> list[Event]:
        assert record.stream is not None
        return self.core.engine.read(self.core.tenant, Mark(record.stream, upto), after=after)

    def journal(self, record: Record, upto: int) -> Journal:
        journal = Journal()
        journal.fold(self.events(record, upto))
        return journal

    def info(self, thread: str, name: str) -> RunInfo:
        record = self.record(thread, name)
        return RunInfo.of(record, self._live(record))

    def _live(self, record: Record) -> bool:
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
        """Runs by latest activity, subtasks left out. Blocks."""
        if status not in (None, *STATUSES):
            raise Invalid(f"a run is {', '.join(STATUSES)}, not {status!r}")
        stored = "open" if status in ("running", "interrupted", "submitted") else status
        query = Query(KIND, user=user, agent=agent, thread=thread, tag=stored)
        now = self.now()
        held = {id for id, terms in self.leases() if not is_free(terms, now, self.holder)}
        found = (
            RunInfo.of(record, record.id in held)
            for record in scan_all(self.core.engine, self.core.tenant, query)
            if to_header(record.body).parent is None
        )
        wanted = (info for info in found if status in (None, info.status))
        return list(islice(wanted, limit))

    def leases(self) -> Iterator[tuple[str, Terms]]:
        for record in scan_all(self.core.engine, self.core.tenant, Query(LEASE)):
            yield record.id, to_terms(record)

    def timeline(self, thread: str, name: str) -> Timeline:
        record = self.record(thread, name)
        return timeline(RunInfo.of(record, self._live(record)), self.events(record, record.head))

    def walked(self, thread: str) -> list[tuple[RunInfo, tuple[StepInfo, ...]]]:
        """The runs of a thread, the first one first, with where each of their steps stands, but those that undo."""
        found = [
            (RunInfo.of(record, False), self.journal(record, record.head))
            for record in scan_all(self.core.engine, self.core.tenant, Query(KIND, thread=thread))
            if self._is_of(record, thread)
        ]
        found.sort(key=lambda run: (run[0].started, run[0].name))
        return [
            (info, tuple(step_info(step) for step in journal.steps.values() if not step.name.endswith(UNDO)))
            for info, journal in found
        ]

    # From outside

    def signal(self, thread: LedgerThread, name: str, value: Any, run: str | None, by: str) -> Signal:
        """Give a run what it waits for, or will wait for. The first one counts. Blocks."""
        check_id(name, "signal name")
        check_id(by, "by")
        plain = schemas.dump(value)
        check_room(plain, f"the value of signal {name!r}")
        for _ in range(_TRIES):
            record = self._addressee(thread, name, run)
            header, journal = to_header(record.body), self.journal(record, record.head)
            if header.status in ENDED:
                raise RunEnded(
                    f"run {header.name!r} of thread {thread.id!r} is {header.status}; signal {name!r} comes too late",
                    thread=thread.id, run=header.name, status=header.status, signal=name,
                )  # fmt: skip
            there = journal.signals.get(name)
            if there is not None:
                return Signal(thread.id, header.name, name, there["value"], False)
            step = journal.steps.get(name)
            if step is not None and step.standing == "completed":
                raise RunEnded(
                    f"run {header.name!r} no longer waits for {name!r}: its time was over",
                    thread=thread.id, run=header.name, signal=name,
                )  # fmt: skip
            try:
                self._deliver(thread, record, header, name, plain, by)
            except (Conflict, KeyReused):
                continue  # something else was recorded meanwhile: look again
            return Signal(thread.id, header.name, name, plain, True, step is not None)
        raise Conflict(f"run {run or ''!r} of thread {thread.id!r} keeps changing", thread=thread.id)

    def _deliver(self, thread: LedgerThread, record: Record, header: Header, name: str, value: Any, by: str) -> None:
        time = self.core.clock.now()
        came = fact("signal", time, under=signal_key(name), name=name, value=value, by=by)
        told = log.to_event(event("signal", run=header.name, signal=name, outcome="sent", by=by), time)
        ops: tuple[Op, ...] = (
            Guard(KIND, record.id, record.version),
            Append(KIND, record.id, (came,), record.head),
            Append("thread", thread.id, (told,)),
        )
        if header.status == "waiting" and header.waits == name:
            ops = (*ops, plain_terms(header, 0, None).put(record.id, record.scope))
        self.core.engine.commit(self.core.tenant, ops, time)

    def _addressee(self, thread: LedgerThread, name: str, run: str | None) -> Record:
        """The run that a signal is for: the one named, or the one that waits for it, or the only one under way."""
        thread._existing()
        if run is not None:
            return self.record(thread.id, run)
        query = Query(KIND, thread=thread.id)
        records = [r for r in scan_all(self.core.engine, self.core.tenant, query) if self._is_of(r, thread.id)]
        alive = [record for record in records if to_header(record.body).status not in ENDED]
        waiting = [record for record in alive if self._waits(record, name)]
        found = waiting or alive
        if len(found) == 1:
            return found[0]
        names = ", ".join(repr(to_header(record.body).name) for record in found or records)
        if not found:
            ended = f"; {names} ended" if records else ""
            raise (RunEnded if records else NotFound)(
                f"thread {thread.id!r} has no run under way that signal {name!r} could be for{ended}",
                thread=thread.id, signal=name,
            )  # fmt: skip
        raise Invalid(f"signal {name!r} could be for several runs of thread {thread.id!r} ({names}): say run=…")

    def _is_of(self, record: Record, thread: str) -> bool:
        header = to_header(record.body)
        return header.thread == thread and header.parent is None

    def _waits(self, record: Record, name: str) -> bool:
        header = to_header(record.body)
        if header.status == "waiting":
            return header.waits == name
        step = self.journal(record, record.head).steps.get(name)
        return step is not None and step.standing == "waiting"

    def cancel(self, thread: LedgerThread, name: str, reason: str, by: str) -> RunInfo:
        """Ask a run to stop before its next step and undo what it did. Where nothing is to be undone, it ends at once.

        A holder notices at its next step or heartbeat; where there is none, the next who resumes it does. Blocks.
        """
        thread._existing()
        for _ in range(_TRIES):
            record = self.record(thread.id, name)
            header, journal = to_header(record.body), self.journal(record, record.head)
            if header.status in ("done", "cancelled"):
                raise RunEnded(
                    f"run {name!r} of thread {thread.id!r} is {header.status} already",
                    thread=thread.id, run=name, status=header.status,
                )  # fmt: skip
            try:
                self._cancel(thread, record, header, journal, reason, by)
            except Conflict:
                continue
            return self.info(thread.id, name)
        raise Conflict(f"run {name!r} of thread {thread.id!r} keeps changing", thread=thread.id, run=name)

    def _cancel(
        self, thread: LedgerThread, record: Record, header: Header, journal: Journal, reason: str, by: str
    ) -> None:
        time = self.core.clock.now()
        asked = () if journal.cancel is not None else (ending.cancelling(time, reason, by),)
        told = event("run", run=header.name, outcome="cancel asked", reason=reason, by=by)
        append = Append("thread", thread.id, (log.to_event(told, time),))
        if self._live(record):
            ops: tuple[Op, ...] = (Guard(KIND, record.id, record.version), Append(KIND, record.id, asked), append)
        elif journal.in_doubt() or journal.to_undo():
            free = plain_terms(header, 0, None).put(record.id, record.scope)
            open_again = msgspec.structs.replace(header, status="open", waits=None)
            put = Put(KIND, record.id, open_again.body(), record.version, record.scope, ("open",))
            ops = (put, Append(KIND, record.id, asked, record.head), append, free)
        else:
            self._end_at_once(record, header, asked, append, time)
            return
        self.core.engine.commit(self.core.tenant, ops, time)

    def _end_at_once(self, record: Record, header: Header, asked: tuple[Event, ...], append: Append, time: int) -> None:
        ended = fact("ended", time, status="cancelled", result=None, error=None, unvisited=[])
        over = msgspec.structs.replace(header, status="cancelled", waits=None)
        put = Put(KIND, record.id, over.body(), record.version, record.scope, ("cancelled",))
        ops = (put, Append(KIND, record.id, (*asked, ended), record.head), append, Delete(LEASE, record.id))
        self.core.engine.commit(self.core.tenant, ops, time)

    def close(self) -> None:
        """Let go of every run that is still held, so that others need not wait for its lease to end."""
        held = self.keeper.held()
        self.keeper.close()
        for lease in held:
            if lease.over or lease.lost:
                continue
            try:
                time = self.core.clock.now()
                self.core.engine.commit(self.core.tenant, (lease.guard(), lease.give_up(until=0)), time)
            except Exception:  # its lease ends by itself
                continue
