"""How a run starts, ends, and receives signals and cancellations.

A process starts a run, or takes one that nobody holds: claiming writes the run's record at the version that was read,
so of many claims only one succeeds, and its version is the fence from then on. A run ends done, failed, cancelled with
its steps undone, or released so that another process can continue it. Undoing runs the compensations of completed
steps, last first, each as its own step, so that a crash while undoing repeats nothing either. Others may send a signal
or ask the run to stop without holding it; the holder finds the event in the journal. Deliberately absent: carrying out
a run (``work``), looking for runs to take (``resume``), and undoing unasked. A failed run keeps what it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from holdfast.clock import to_datetime
from holdfast.engine.contract import Append, Delete, Event, Guard, Op, Put, Query, Record, Scope
from holdfast.errors import (
    Conflict,
    Fenced,
    Invalid,
    KeyReused,
    NotFound,
    ResultInvalid,
    RunEnded,
    RunHeld,
    StepError,
    StepFailed,
    StepUnknown,
    quoted,
)
from holdfast.ids import check_id
from holdfast.ledger import log
from holdfast.ledger import schema as schemas
from holdfast.ledger.core import scan_all
from holdfast.records import event
from holdfast.steps import resolve
from holdfast.steps.declare import UNDO, Spec, Step
from holdfast.steps.flow import Flow, RunBlocking, WaitForCommit
from holdfast.steps.journal import (
    ENDED,
    KIND,
    Journal,
    RunHeader,
    Status,
    StepRecord,
    check_room,
    fact,
    record_id,
    signal_key,
    to_header,
)
from holdfast.steps.lease import LEASE, SECOND, Lease, Terms, is_free, plain_terms
from holdfast.steps.runs import RunBook, RunView, is_of
from holdfast.steps.signals import Signal
from holdfast.steps.step_context import Attempt, describe_failure, failed_step, failure_to_plain
from holdfast.steps.subtask import unfinished
from holdfast.steps.timeline import RunInfo
from holdfast.steps.work import Work

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread
    from holdfast.steps.work import Work


_TRIES = 100


def open_run(runs: RunBook, thread: LedgerThread, name: str, handler: str | None, input: Any) -> Work:
    """Start a run, or continue one; raise ``RunHeld`` if another holder is alive. Blocks.

    A run that is done or cancelled is opened for reading: its recorded steps return their results.
    """
    id = record_id(thread.id, name)
    for _ in range(_TRIES):
        record = runs.core.engine.get(runs.core.tenant, KIND, id)
        try:
            if record is None:
                return _begin(runs, thread, id, name, handler, input)
            return _take_up(runs, thread, record, handler, input)
        except RunHeld:
            raise
        except Conflict:
            continue  # another process did it first: see who
    raise RunHeld(f"run {name!r} of thread {thread.id!r} keeps changing hands", thread=thread.id, run=name)


def reading(runs: RunBook, thread: LedgerThread, record: Record, *, replaying: bool = False) -> Work:
    """A run opened only for reading. Blocks."""
    assert record.stream is not None
    return Work(
        runs, thread, record.id, to_header(record.body), runs.journal(record, record.head),
        stream=record.stream, version=record.version, scope=record.scope, replaying=replaying,
    )  # fmt: skip


# Beginning


def _begin(runs: RunBook, thread: LedgerThread, id: str, name: str, handler: str | None, input: Any) -> Work:
    header = RunHeader(thread.id, name, _handler(handler, name), "open", schemas.dump(input), runs.holder.name, 1)
    opened, terms = _opened(runs, "new", 1), plain_terms(header, _until(runs, runs.now()), runs.holder)
    ops = _beginning(runs, thread, id, header, opened, terms)
    with runs.claiming((id,)):
        receipt = runs.core.write(ops, opened.time)
        runs.heard = max(runs.heard, receipt.feed)
        record = runs.core.engine.get(runs.core.tenant, KIND, id)
        if record is None or record.version != 1:
            raise Conflict(f"run {name!r} of thread {thread.id!r} was taken as it started")
        journal = Journal()
        journal.fold(receipt.events[1])
        return _held(runs, thread, record, header, journal, terms)


def _handler(given: str | None, name: str) -> str:
    return check_id(name, "run name") if given is None else check_id(given, "handler")


def submit(runs: RunBook, thread: LedgerThread, name: str, handler: str | None, input: Any) -> RunInfo:
    """Record a run for the next ``resume``. Repeating it with the same input changes nothing. Blocks."""
    id = record_id(thread.id, name)
    header = RunHeader(thread.id, name, _handler(handler, name), "open", schemas.dump(input))
    submitted = _opened(runs, "submitted", 0)
    ops = _beginning(runs, thread, id, header, submitted, plain_terms(header, 0, None))
    try:
        runs.core.write(ops, submitted.time)
    except Conflict:
        known = runs.core.engine.get(runs.core.tenant, KIND, id)
        if known is None:
            return submit(runs, thread, name, handler, input)  # the thread was created in the meantime
        there = to_header(known.body)
        if (there.handler, there.input) != (header.handler, header.input):
            raise Invalid(
                f"run {name!r} of thread {thread.id!r} already exists with another handler or input", run=name
            ) from None
    return runs.info(thread.id, name)


def _beginning(
    runs: RunBook, thread: LedgerThread, id: str, header: RunHeader, opened: Event, terms: Terms
) -> tuple[Op, ...]:
    scope, before = _scope(thread)
    return (
        *before,
        thread.logbook.touch(),
        Put(KIND, id, header.body(), 0, scope, (header.status,)),
        Append(KIND, id, (opened,)),
        terms.put(id, scope),
    )


def _scope(thread: LedgerThread) -> tuple[Scope, tuple[Op, ...]]:
    """A run has the owner of its thread, so that erasing a user erases it too."""
    record = thread.logbook.record()
    if record is None:
        return thread.logbook.scope, (Guard("thread", thread.id, 0),)
    scope = record.scope
    return Scope(scope.user, scope.agent, scope.thread or thread.id), ()


def _opened(runs: RunBook, why: str, claims: int) -> Event:
    return fact("opened", runs.core.clock.now(), why=why, by=runs.holder.name, claim=claims)


def _until(runs: RunBook, now: int) -> int:
    return now + round(runs.lease_s * SECOND)


def _held(
    runs: RunBook, thread: LedgerThread, record: Record, header: RunHeader, journal: Journal, terms: Terms
) -> Work:
    assert record.stream is not None
    lease = Lease(runs.core, record, terms, runs.lease_s)
    work = Work(
        runs, thread, record.id, header, journal,
        stream=record.stream, version=record.version, scope=record.scope, lease=lease,
    )  # fmt: skip
    runs.renewer.keep(lease)
    return work


# Taking over


class Claim(NamedTuple):
    """A run that may be taken, and what to write to take it."""

    thread: LedgerThread
    record: Record
    header: RunHeader
    journal: Journal
    opened: Event
    terms: Terms

    @property
    def ops(self) -> tuple[Op, ...]:
        record = self.record
        return (
            Put(KIND, record.id, self.header.body(), record.version, record.scope, (self.header.status,)),
            Append(KIND, record.id, (self.opened,)),
            self.terms.put(record.id, record.scope),
        )


def _take_up(runs: RunBook, thread: LedgerThread, record: Record, handler: str | None, input: Any) -> Work:
    thread.logbook.record()  # refuses a handle that names another owner
    header = to_header(record.body)
    if handler is not None and check_id(handler, "handler") != header.handler:
        raise Invalid(f"run {header.name!r} was started for handler {header.handler!r}, not {handler!r}")
    if input is not None and schemas.dump(input) != header.input:
        raise Invalid(f"run {header.name!r} of thread {thread.id!r} was started with other input", run=header.name)
    if header.parent is not None:
        raise Invalid(f"{header.name!r} is a subtask of run {header.parent!r}; open that run")
    if header.status in ("done", "cancelled"):
        return reading(runs, thread, record)
    why = "reopened" if header.status == "failed" else "resumed"
    look = runs.look((record,))[record.id]
    return take(runs, (claim(runs, thread, look, why, runs.now()),))[0]


def claim(runs: RunBook, thread: LedgerThread, look: RunView, why: str, now: int, *, due: bool = False) -> Claim:
    """Work out how to take a run that nobody holds; with ``due``, only if it should be continued now."""
    record, terms = look.record, look.terms
    header = to_header(record.body)
    if header.status in ENDED and due:
        raise Conflict(f"run {header.name!r} of thread {header.thread!r} has ended in the meantime")
    if due and (terms is None or (not terms.holder and terms.until > now)):
        raise Conflict(f"another process continued run {header.name!r} of thread {header.thread!r} in the meantime")
    if terms is not None and not is_free(terms, now, runs.holder) and not runs.is_forgotten(record.id, terms):
        raise RunHeld(
            f"run {header.name!r} of thread {header.thread!r} is held by {_called(runs, terms)} until "
            f"{to_datetime(terms.until):%Y-%m-%d %H:%M:%S} UTC, or longer while it is alive",
            thread=header.thread, run=header.name, holder=terms.holder, until=to_datetime(terms.until),
        )  # fmt: skip
    journal = look.journal()  # first: do not claim what cannot be read
    claims = header.claims + 1
    mine = msgspec.structs.replace(header, status="open", holder=runs.holder.name, claims=claims, waits=None)
    mine_terms = plain_terms(header, _until(runs, now), runs.holder)
    return Claim(thread, record, mine, journal, _opened(runs, why, claims), mine_terms)


def take(runs: RunBook, claims: Sequence[Claim]) -> list[Work]:
    """Take runs, all in one commit or none. Blocks."""
    with runs.claiming(one.record.id for one in claims):
        return _take(runs, claims)


def _take(runs: RunBook, claims: Sequence[Claim]) -> list[Work]:
    ops = [op for one in claims for op in one.ops]
    receipt = runs.core.write(ops, claims[-1].opened.time)
    runs.heard = max(runs.heard, receipt.feed)
    taken = []
    for one, events, head in zip(claims, receipt.events, receipt.heads, strict=True):
        if one.journal.behind(events[0].position):
            one.journal.fold(runs.events(one.record, head, after=one.journal.head))
        one.journal.fold(events)
        record = msgspec.structs.replace(one.record, version=one.record.version + 1)
        taken.append(_held(runs, one.thread, record, one.header, one.journal, one.terms))
    return taken


def _called(runs: RunBook, terms: Terms) -> str:
    mine = terms.holder == runs.holder.name
    return "this process (use that Run, or release it)" if mine else terms.holder


_LOOK_S = 0.05


def finish(work: Work, result: Any = None) -> Flow[Any]:
    """End a run as done, with its result. Ending it twice is harmless."""
    _refuse_subtask(work)
    plain = _result(work, result)
    if work.replaying:
        return plain
    if work.header.status == "done":
        return None if work.journal.ended is None else schemas.dump(work.journal.ended.get("result"))
    work.refuse_inside("the end of the run")
    work.refuse_unless_open("its end")
    yield from quiet(work)
    yield from _refuse_left_in_doubt(work)
    while True:  # a cancellation recorded before the end counts
        work.refuse_when_cancelled()
        try:
            yield from _end(work, "done", result=plain, expect=work.journal.head)
        except Fenced:
            raise
        except Conflict:
            yield RunBlocking(work.catch_up)
        else:
            return plain


def _refuse_left_in_doubt(work: Work) -> Flow[None]:
    """Refuse to end a run while one of its once steps, or of its subtasks, is in doubt."""
    left = yield RunBlocking(lambda: _doubtful(work))
    if left:
        why = "it was started, its end is not recorded, and the run did not call it again"
        yield from resolve.stop(work, left[0].name, why, None)
        raise StepUnknown(
            f"step {left[0].name!r} of run {work.header.name!r}: {why}. Look for key {left[0].key}, then settle it",
            step=left[0].name, run=work.header.name, thread=work.thread.id, key=left[0].key,
        )  # fmt: skip


def _doubtful(work: Work) -> list[StepRecord]:
    """Once steps of a run, and of its subtasks under way, whose end is unknown. Blocks."""
    mine = [step for step in work.journal.in_doubt() if step.effect == "once" and work.journal.is_own(step)]
    return mine + [step for child in unfinished(work) for step in _doubtful(child)]


def _result(work: Work, result: Any) -> Any:
    try:
        plain = schemas.dump(result)
        check_room(plain, f"the result of run {work.header.name!r}")
    except Invalid as error:
        raise ResultInvalid(f"{error}; the run is not ended", run=work.header.name) from error
    return plain


def fail(work: Work, error: BaseException, *, settled: bool = False) -> Flow[None]:
    """End a run that raised. It can be read, and opened again to be retried.

    With ``settled``, only if none of its steps is in doubt, as for ``finish``.
    """
    if not isinstance(error, BaseException):
        raise Invalid(f"a run fails with an exception, not {quoted(error)}")
    _refuse_subtask(work)
    work.refuse_inside("the end of the run")
    work.refuse_unless_open("its end")
    yield from quiet(work)
    if settled:
        yield from _refuse_left_in_doubt(work)
    yield from _end(work, "failed", error=failure_to_plain(error), step=failed_step(work, error))


def quiet(work: Work) -> Flow[None]:
    """Wait until the other steps under way in this run have ended and are recorded."""
    while work.is_under_way():
        yield WaitForCommit(work.runs.listen, _LOOK_S)


def _refuse_subtask(work: Work) -> None:
    if work.root is not work:
        raise Invalid(f"subtask {work.header.name!r} ends with its function: return its result, or raise")


def _end(
    work: Work,
    status: Status,
    *,
    result: Any = None,
    error: dict[str, Any] | None = None,
    step: str | None = None,
    expect: int | None = None,
) -> Flow[None]:
    time = work.time()
    names = [known.name for known in work.journal.all() if not known.name.endswith(UNDO)]
    unvisited = [name for name in names if name not in work.visited]
    ended = fact("ended", time, status=status, result=result, error=error, step=step, unvisited=unvisited)
    said: dict[str, Any] = {} if error is None else {"error": describe_failure(error)}
    told = event("run", run=work.header.name, outcome=status, **said)
    assert work.lease is not None
    # If a function still runs that nobody waits for, let the lease run out: nobody may start it meanwhile.
    more = () if work.runs.is_busy(work.id) else (work.lease.give_up(),)
    header = msgspec.structs.replace(work.header, status=status, waits=None)
    yield from work.record((ended,), drafts=(told,), header=header, more=more, expect=expect, time=time, insist=True)
    work.let_go()


def release(work: Work, why: str) -> Flow[None]:
    """Release a run as it is, so that anyone can continue it at once. One ask: a cancellation cannot interrupt it."""
    yield RunBlocking(lambda: work.runs.drive(_release(work, why)), surely=True)


def _release(work: Work, why: str) -> Flow[None]:
    if work.lease is None or work.lease.id != work.id or work.lease.lost:
        return
    if work.runs.leave_busy(work.lease):  # nobody waits for it, but nobody may start it meanwhile
        work.let_go()
        return
    time = work.time()
    more = (work.lease.give_up(until=0),)
    with suppress(Fenced):  # another process already holds it
        released = fact("released", time, why=why, by=work.runs.holder.name)
        # With its unchanged header, to raise the fence: a renewal under way then comes too late.
        yield from work.record((released,), header=work.header, more=more, time=time)
    work.let_go()


def abandon(work: Work, reason: str = "") -> Flow[None]:
    """Cancel a run held here: undo what it did, last first, and end it."""
    _refuse_subtask(work)
    if work.header.status in ENDED:
        raise Invalid(f"run {work.header.name!r} is already {work.header.status}", run=work.header.name)
    work.refuse_inside("giving up the run")
    work.refuse_unless_open("its end")
    yield from quiet(work)
    if work.journal.cancel is None:
        time = work.time()
        yield from work.record((cancelling(time, reason, work.runs.holder.name),), time=time)
    yield from undo(work)


def cancelling(time: int, reason: str, by: str) -> Any:
    return fact("cancel", time, under="cancel", reason=reason, by=by)


def undo(work: Work) -> Flow[None]:
    """Run the compensations of the completed steps, then end the run. One that fails does not stop the others."""
    work.undoing = True
    yield from _settle_doubts(work)
    failed: list[StepFailed] = []
    for step in work.journal.to_undo():
        spec = work.specs.get(step.name)
        name = f"{step.name}{UNDO}"
        if spec is None or spec.compensate is None:
            known = work.journal.steps.get(name)
            if known is None or known.standing != "completed":
                yield from _stop_undoing(work, name, f"today's code does not say how to undo step {step.name!r}")
            continue
        try:
            yield from _undo_one(work, step, spec, name)
        except StepFailed as error:
            failed.append(error)
    if failed:
        yield from _end(work, "failed", error=failure_to_plain(failed[0]), step=failed[0].facts["step"])
        raise failed[0]
    yield from _end(work, "cancelled")


def _stop_undoing(work: Work, step: str, why: str) -> Flow[None]:
    yield from resolve.stop(work, step, why, None)
    raise StepError(
        f"run {work.header.name!r} is cancelled, but {why}: resume it with its handler, or settle the step",
        run=work.header.name, step=step,
    )  # fmt: skip


def _undo_one(work: Work, step: StepRecord, spec: Spec, name: str) -> Flow[None]:
    declared = {} if isinstance(spec.compensate, Step) else {"effect": "idempotent", "retry": spec.retry}
    result = work.revived(spec, schemas.dump(step.result))
    yield from work.step(name, spec.compensate, (result,), {}, declared)


def _settle_doubts(work: Work) -> Flow[None]:
    """Before undoing, find out which of the started steps did happen."""
    for child in (yield RunBlocking(lambda: unfinished(work))):
        for step in (yield RunBlocking(partial(_doubtful, child))):
            why = f"it is unknown whether step {step.name!r} of subtask {child.header.name!r} happened"
            yield from _stop_undoing(work, step.name, why)
    for step in work.journal.in_doubt():
        if step.name.endswith(UNDO) or not work.journal.is_own(step):
            continue  # a fork's origin settles what it started
        spec, time = work.specs.get(step.name), work.time()
        if spec is None and (step.effect == "once" or step.compensable):
            yield from _stop_undoing(work, step.name, f"today's code does not say whether step {step.name!r} happened")
        if spec is None or "once" not in (spec.effect, step.effect):
            # It may have happened in part. Undoing an idempotent step is safe even if nothing happened.
            happened = spec is not None and spec.compensate is not None
            facts = (
                fact("completed", time, step=step.name, attempt=step.attempt, result=None, how="dropped")
                if happened
                else fact("unstarted", time, step=step.name)
            )
            yield from work.record((facts,), time=time)
            continue
        attempt = Attempt(spec, None, *work.inputs.get(step.name, ((), {})), step.input, step.key)
        answer = yield from resolve.ask(work, attempt, step.attempt)
        yield from resolve.dropped(work, attempt, step, answer)


def _owner(work: Work, name: str) -> Work | None:
    """The run, or its subtask under way, that has a step of this name. Blocks."""
    if name in work.journal.steps:
        return work
    found = (_owner(child, name) for child in unfinished(work))
    return next((owner for owner in found if owner is not None), None)


def settle(work: Work, name: str, happened: bool, result: Any = None, source: str = "a person said") -> Flow[None]:
    """Record what a person, or another named source, found out about a step in doubt."""
    check_id(name, "step name")
    if not isinstance(happened, bool):
        raise Invalid(f"happened is True or False, not {quoted(happened)}", step=name)
    work.refuse_inside(f"settling step {name!r}")
    work.refuse_unless_open(f"settling step {name!r}")
    owner = yield RunBlocking(lambda: _owner(work, name))
    if owner is None and happened and _is_to_undo(work, name):
        owner = work  # a person undid it by hand
    if owner is None:
        raise NotFound(f"run {work.header.name!r} has no step {name!r}", run=work.header.name, step=name)
    work, known = owner, owner.journal.steps.get(name) or StepRecord(name, "intended")
    if known.standing not in ("intended", "failed"):
        raise Invalid(f"step {name!r} is {known.standing}; there is nothing to settle", step=name)
    plain, time = schemas.dump(result), work.time()
    check_room(plain, f"the result of step {name!r}")
    why = f"{source} that it happened" if happened else f"{source} that it did not happen"
    decision = "recorded" if happened else "dropped"
    facts = (
        fact("completed", time, step=name, attempt=known.attempt, result=plain, how="settled")
        if happened
        else fact("unstarted", time, step=name)
    )
    work.root.settled = True
    events = (fact("resolved", time, step=name, decision=decision, why=why), facts)
    told = event("resolution", run=work.header.name, step=name, decision=decision, why=why)
    yield from work.record(events, drafts=(told,), time=time)


def _is_to_undo(work: Work, name: str) -> bool:
    return name.endswith(UNDO) and name.removesuffix(UNDO) in {step.name for step in work.journal.to_undo()}


def signal(runs: RunBook, thread: LedgerThread, name: str, value: Any, run: str | None, by: str) -> Signal:
    """Send a run the signal it waits for, or will wait for. The first one counts. Blocks."""
    check_id(name, "signal name")
    check_id(by, "by")
    plain = schemas.dump(value)
    check_room(plain, f"the value of signal {name!r}")
    for _ in range(_TRIES):
        record = _addressee(runs, thread, name, run)
        header, journal = to_header(record.body), runs.journal(record, record.head)
        if header.status in ENDED:
            raise RunEnded(
                f"run {header.name!r} of thread {thread.id!r} is {header.status}; signal {name!r} came too late",
                thread=thread.id, run=header.name, status=header.status, signal=name,
            )  # fmt: skip
        there = journal.signals.get(name)
        if there is not None:
            return Signal(thread.id, header.name, name, there["value"], False)
        step = journal.steps.get(name)
        if step is not None and step.standing == "completed":
            raise RunEnded(
                f"run {header.name!r} no longer waits for {name!r}: the wait timed out",
                thread=thread.id, run=header.name, signal=name,
            )  # fmt: skip
        try:
            _deliver(runs, thread, record, header, name, plain, by)
        except (Conflict, KeyReused):
            continue  # something else was recorded in the meantime: check again
        return Signal(thread.id, header.name, name, plain, True, step is not None)
    raise Conflict(f"run {run or ''!r} of thread {thread.id!r} keeps changing", thread=thread.id)


def _deliver(
    runs: RunBook, thread: LedgerThread, record: Record, header: RunHeader, name: str, value: Any, by: str
) -> None:
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


def _addressee(runs: RunBook, thread: LedgerThread, name: str, run: str | None) -> Record:
    """The run that a signal is for: the one named, the one that waits for it, or the only one under way."""
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
    raise Invalid(f"signal {name!r} could be for several runs of thread {thread.id!r} ({names}): give run=…")


def _waits(runs: RunBook, record: Record, name: str) -> bool:
    header = to_header(record.body)
    if header.status == "waiting":
        return header.waits == name
    step = runs.journal(record, record.head).steps.get(name)
    return step is not None and step.standing == "waiting"


def cancel(runs: RunBook, thread: LedgerThread, name: str, reason: str, by: str) -> RunInfo:
    """Ask a run to stop before its next step and undo what it did. If there is nothing to undo, it ends at once.

    A holder notices at its next step or heartbeat; without a holder, the next ``resume`` does. Blocks.
    """
    thread.logbook.existing()
    for _ in range(_TRIES):
        record = runs.record(thread.id, name)
        header, journal = to_header(record.body), runs.journal(record, record.head)
        if header.status in ("done", "cancelled"):
            raise RunEnded(
                f"run {name!r} of thread {thread.id!r} is already {header.status}",
                thread=thread.id, run=name, status=header.status,
            )  # fmt: skip
        try:
            _cancel(runs, thread, record, header, journal, reason, by)
        except Conflict:
            continue
        return runs.info(thread.id, name)
    raise Conflict(f"run {name!r} of thread {thread.id!r} keeps changing", thread=thread.id, run=name)


def _cancel(
    runs: RunBook, thread: LedgerThread, record: Record, header: RunHeader, journal: Journal, reason: str, by: str
) -> None:
    time = runs.core.clock.now()
    asked = () if journal.cancel is not None else (cancelling(time, reason, by),)
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
    runs: RunBook, record: Record, header: RunHeader, asked: tuple[Event, ...], append: Append, time: int
) -> None:
    ended = fact("ended", time, status="cancelled", result=None, error=None, unvisited=[])
    over = msgspec.structs.replace(header, status="cancelled", waits=None)
    put = Put(KIND, record.id, over.body(), record.version, record.scope, ("cancelled",))
    ops = (put, Append(KIND, record.id, (*asked, ended), record.head), append, Delete(LEASE, record.id))
    runs.core.write(ops, time)
