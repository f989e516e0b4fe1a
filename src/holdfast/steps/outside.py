"""What others ask of a run: to take a signal, or to stop.

Neither needs the run to be held, and neither disturbs its holder: it finds the event in its journal. Deliberately
absent: ending what someone is working on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.contract import Append, Delete, Event, Guard, Op, Put, Query, Record
from holdfast.errors import Conflict, Invalid, KeyReused, NotFound, RunEnded
from holdfast.ids import check_id
from holdfast.ledger import log
from holdfast.ledger import schema as schemas
from holdfast.ledger.core import scan_all
from holdfast.records import event
from holdfast.steps import ending
from holdfast.steps.journal import ENDED, KIND, Header, Journal, check_room, fact, signal_key, to_header
from holdfast.steps.lease import LEASE, plain_terms
from holdfast.steps.runs import Runs, is_of
from holdfast.steps.timeline import RunInfo
from holdfast.steps.waiting import Signal

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread

_TRIES = 100


def signal(runs: Runs, thread: LedgerThread, name: str, value: Any, run: str | None, by: str) -> Signal:
    """Give a run what it waits for, or will wait for. The first one counts. Blocks."""
    check_id(name, "signal name")
    check_id(by, "by")
    plain = schemas.dump(value)
    check_room(plain, f"the value of signal {name!r}")
    for _ in range(_TRIES):
        record = _addressee(runs, thread, name, run)
        header, journal = to_header(record.body), runs.journal(record, record.head)
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
            _deliver(runs, thread, record, header, name, plain, by)
        except (Conflict, KeyReused):
            continue  # something else was recorded meanwhile: look again
        return Signal(thread.id, header.name, name, plain, True, step is not None)
    raise Conflict(f"run {run or ''!r} of thread {thread.id!r} keeps changing", thread=thread.id)


def _deliver(runs: Runs, thread: LedgerThread, record: Record, header: Header, name: str, value: Any, by: str) -> None:
    time = runs.core.clock.now()
    came = fact("signal", time, under=signal_key(name), name=name, value=value, by=by)
    told = log.to_event(event("signal", run=header.name, signal=name, outcome="sent", by=by), time)
    ops: tuple[Op, ...] = (
        Guard(KIND, record.id, record.version, record.stream),
        Append(KIND, record.id, (came,), record.head),
        Append("thread", thread.id, (told,)),
    )
    if header.status == "waiting" and header.waits == name:
        ops = (*ops, plain_terms(header, 0, None).put(record.id, record.scope))
    runs.core.write(ops, time)


def _addressee(runs: Runs, thread: LedgerThread, name: str, run: str | None) -> Record:
    """The run that a signal is for: the one named, or the one that waits for it, or the only one under way."""
    thread.logbook.existing()
    if run is not None:
        return runs.record(thread.id, run)
    query = Query(KIND, thread=thread.id)
    records = [r for r in scan_all(runs.core.engine, runs.core.tenant, query) if is_of(r, thread.id)]
    alive = [record for record in records if to_header(record.body).status not in ENDED]
    waiting = [record for record in alive if _waits(runs, record, name)]
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


def _waits(runs: Runs, record: Record, name: str) -> bool:
    header = to_header(record.body)
    if header.status == "waiting":
        return header.waits == name
    step = runs.journal(record, record.head).steps.get(name)
    return step is not None and step.standing == "waiting"


def cancel(runs: Runs, thread: LedgerThread, name: str, reason: str, by: str) -> RunInfo:
    """Ask a run to stop before its next step and undo what it did. Where nothing is to be undone, it ends at once.

    A holder notices at its next step or heartbeat; where there is none, the next who resumes it does. Blocks.
    """
    thread.logbook.existing()
    for _ in range(_TRIES):
        record = runs.record(thread.id, name)
        header, journal = to_header(record.body), runs.journal(record, record.head)
        if header.status in ("done", "cancelled"):
            raise RunEnded(
                f"run {name!r} of thread {thread.id!r} is {header.status} already",
                thread=thread.id, run=name, status=header.status,
            )  # fmt: skip
        try:
            _cancel(runs, thread, record, header, journal, reason, by)
        except Conflict:
            continue
        return runs.info(thread.id, name)
    raise Conflict(f"run {name!r} of thread {thread.id!r} keeps changing", thread=thread.id, run=name)


def _cancel(
    runs: Runs, thread: LedgerThread, record: Record, header: Header, journal: Journal, reason: str, by: str
) -> None:
    time = runs.core.clock.now()
    asked = () if journal.cancel is not None else (ending.cancelling(time, reason, by),)
    told = event("run", run=header.name, outcome="cancel asked", reason=reason, by=by)
    append = Append("thread", thread.id, (log.to_event(told, time),))
    if runs.is_held(record):
        ops: tuple[Op, ...] = (
            Guard(KIND, record.id, record.version, record.stream),
            Append(KIND, record.id, asked),
            append,
        )
    elif journal.in_doubt() or journal.to_undo():
        free = plain_terms(header, 0, None).put(record.id, record.scope)
        open_again = msgspec.structs.replace(header, status="open", waits=None)
        put = Put(KIND, record.id, open_again.body(), record.version, record.scope, ("open",))
        ops = (put, Append(KIND, record.id, asked, record.head), append, free)
    else:
        _end_at_once(runs, record, header, asked, append, time)
        return
    runs.core.write(ops, time)


def _end_at_once(
    runs: Runs, record: Record, header: Header, asked: tuple[Event, ...], append: Append, time: int
) -> None:
    ended = fact("ended", time, status="cancelled", result=None, error=None, unvisited=[])
    over = msgspec.structs.replace(header, status="cancelled", waits=None)
    put = Put(KIND, record.id, over.body(), record.version, record.scope, ("cancelled",))
    ops = (put, Append(KIND, record.id, (*asked, ended), record.head), append, Delete(LEASE, record.id))
    runs.core.write(ops, time)
