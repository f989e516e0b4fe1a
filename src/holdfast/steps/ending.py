"""How a run ends: done, failed, cancelled with its steps undone, or let go so that another can carry it on.

Undoing runs the compensations of completed steps, the last first, each as a step of its own, so that a crash in the
middle of it repeats nothing either. Deliberately absent: undoing without being asked. A failed run keeps what it did.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import (
    Conflict,
    Fenced,
    Invalid,
    NotFound,
    ResultInvalid,
    StepError,
    StepFailed,
    StepUnknown,
    quoted,
)
from holdfast.ids import check_id
from holdfast.ledger import schema as schemas
from holdfast.records import event
from holdfast.steps import failure, resolve
from holdfast.steps.attempt import Attempt, failed_step
from holdfast.steps.declare import UNDO, Spec, Step
from holdfast.steps.flow import Do, Flow, Listen
from holdfast.steps.journal import ENDED, Status, StepRecord, check_room, fact
from holdfast.steps.subtask import unfinished

if TYPE_CHECKING:
    from holdfast.steps.work import Work

_LOOK_S = 0.05


def finish(work: Work, result: Any = None) -> Flow[Any]:
    """End a run well, with what it came to. Ending it twice is harmless."""
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
    while True:  # the end must not overtake a cancellation that was recorded before it
        work.refuse_when_cancelled()
        try:
            yield from _end(work, "done", result=plain, expect=work.journal.head)
        except Fenced:
            raise
        except Conflict:
            yield Do(work.catch_up)
        else:
            return plain


def _refuse_left_in_doubt(work: Work) -> Flow[None]:
    """A run is not done while a once step of it, or of a subtask that it began, may have happened."""
    left = yield Do(lambda: _doubtful(work))
    if left:
        why = "it was begun, its end is not recorded, and nobody asked what became of it"
        yield from resolve.stop(work, left[0].name, why, None)
        raise StepUnknown(
            f"step {left[0].name!r} of run {work.header.name!r}: {why}. Look for key {left[0].key}, then settle it",
            step=left[0].name, run=work.header.name, thread=work.thread.id, key=left[0].key,
        )  # fmt: skip


def _doubtful(work: Work) -> list[StepRecord]:
    """Once steps of a run, and of the subtasks under way in it, of which nobody knows the end. Blocks."""
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
    """End a run that raised. It can be read, and opened again to be tried once more.

    With ``settled`` only if no step of it may have happened without anybody knowing, as for ``finish``.
    """
    if not isinstance(error, BaseException):
        raise Invalid(f"a run fails with an exception, not with {quoted(error)}")
    _refuse_subtask(work)
    work.refuse_inside("the end of the run")
    work.refuse_unless_open("its end")
    yield from quiet(work)
    if settled:
        yield from _refuse_left_in_doubt(work)
    yield from _end(work, "failed", error=failure.to_plain(error), step=failed_step(work, error))


def quiet(work: Work) -> Flow[None]:
    """Stay until the other steps under way in this run have come to their end, and are recorded."""
    while work.is_under_way():
        yield Listen(work.runs.listen, _LOOK_S)


def _refuse_subtask(work: Work) -> None:
    if work.root is not work:
        raise Invalid(f"subtask {work.header.name!r} ends when its function does: return its result, or raise")


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
    said: dict[str, Any] = {} if error is None else {"error": failure.say(error)}
    told = event("run", run=work.header.name, outcome=status, **said)
    assert work.lease is not None
    # Where a function goes on that nobody waits for, the lease runs out by itself: nobody is to begin it meanwhile.
    more = () if work.runs.is_busy(work.id) else (work.lease.give_up(),)
    header = msgspec.structs.replace(work.header, status=status, waits=None)
    yield from work.record((ended,), drafts=(told,), header=header, more=more, expect=expect, time=time, insist=True)
    work.let_go()


def release(work: Work, why: str) -> Flow[None]:
    """Let a run go as it is, so that anyone may carry it on at once. One ask: a cancellation does not break it off."""
    yield Do(lambda: work.runs.drive(_release(work, why)), surely=True)


def _release(work: Work, why: str) -> Flow[None]:
    if work.lease is None or work.lease.id != work.id or work.lease.lost:
        return
    if work.runs.leave_busy(work.lease):  # though nobody waits for it: nobody is to begin it meanwhile
        work.let_go()
        return
    time = work.time()
    more = (work.lease.give_up(until=0),)
    with suppress(Fenced):  # it is another's already
        released = fact("released", time, why=why, by=work.runs.holder.name)
        # With its header, though that stays the same: the fence goes up, and a renewal under way comes too late.
        yield from work.record((released,), header=work.header, more=more, time=time)
    work.let_go()


def abandon(work: Work, reason: str = "") -> Flow[None]:
    """Cancel a run that is held here: undo what it did, the last first, and end it."""
    _refuse_subtask(work)
    if work.header.status in ENDED:
        raise Invalid(f"run {work.header.name!r} is {work.header.status} already", run=work.header.name)
    work.refuse_inside("giving the run up")
    work.refuse_unless_open("its end")
    yield from quiet(work)
    if work.journal.cancel is None:
        time = work.time()
        yield from work.record((cancelling(time, reason, work.runs.holder.name),), time=time)
    yield from undo(work)


def cancelling(time: int, reason: str, by: str) -> Any:
    return fact("cancel", time, under="cancel", reason=reason, by=by)


def undo(work: Work) -> Flow[None]:
    """Run what undoes the completed steps, then end the run. One that fails does not keep the others back."""
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
        yield from _end(work, "failed", error=failure.to_plain(failed[0]), step=failed[0].facts["step"])
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
    """Before undoing, find out which of the steps that were begun did happen."""
    for child in (yield Do(lambda: unfinished(work))):
        for step in (yield Do(partial(_doubtful, child))):
            why = f"nobody asked what became of step {step.name!r} of subtask {child.header.name!r}"
            yield from _stop_undoing(work, step.name, why)
    for step in work.journal.in_doubt():
        if step.name.endswith(UNDO) or not work.journal.is_own(step):
            continue  # what a fork's origin began is for the origin to settle
        spec, time = work.specs.get(step.name), work.time()
        if spec is None and (step.effect == "once" or step.compensable):
            yield from _stop_undoing(work, step.name, f"today's code does not say what became of step {step.name!r}")
        if spec is None or "once" not in (spec.effect, step.effect):
            # It may have happened in part. What undoes an idempotent step bears being run for nothing.
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
    """The run, or the subtask of it under way, that has a step of this name. Blocks."""
    if name in work.journal.steps:
        return work
    found = (_owner(child, name) for child in unfinished(work))
    return next((owner for owner in found if owner is not None), None)


def settle(work: Work, name: str, happened: bool, result: Any = None, source: str = "a person said") -> Flow[None]:
    """Record what a person, or whoever else is named, found out about a step that is in doubt."""
    check_id(name, "step name")
    if not isinstance(happened, bool):
        raise Invalid(f"happened is True or False, not {quoted(happened)}", step=name)
    work.refuse_inside(f"settling step {name!r}")
    work.refuse_unless_open(f"settling step {name!r}")
    owner = yield Do(lambda: _owner(work, name))
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
