"""Waiting for a person or an event, for as long as it takes: minutes in a process, months without one.

A wait is a step that a signal completes. The signal is an event in the run's own journal under a key, so the first one
counts and none is lost, whether it comes before, during or after the process that waits. Deliberately absent: signals
without a run. An old approval must not approve something new.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.checks import check_flag, is_seconds
from holdfast.errors import Conflict, Fenced, Invalid, WaitTimedOut, quoted
from holdfast.ids import check_id
from holdfast.ledger import schema as schemas
from holdfast.records import event
from holdfast.steps.flow import Flow, RunBlocking, WaitForCommit
from holdfast.steps.journal import StepRecord, fact
from holdfast.steps.lease import SECOND
from holdfast.steps.step_context import Suspended
from holdfast.steps.work import Work, refuse_other

_LOOK_S = 0.5  # how long to listen before checking the clock again


class Signal(msgspec.Struct, frozen=True):
    """The outcome of a signal. ``first`` is False if an earlier one counts; ``value`` is the value that counts.

    ``awaited`` says whether the run already waits for it; if not, it is kept until the run does.
    """

    thread: str
    run: str
    name: str
    value: Any
    first: bool
    awaited: bool = True


def wait(work: Work, name: str, timeout_s: float | None, park: bool | None) -> Flow[Any]:
    """Return the value of a signal once it arrives. ``park`` leaves the process instead of blocking it.

    A subtask waits in the journal of its run, because signals are sent to the run.
    """
    check_id(name, "signal name")
    if park is not None:
        check_flag("park", park)
    if timeout_s is not None and not is_seconds(timeout_s):
        raise Invalid(f"timeout_s is a number of seconds, 0 or more, not {quoted(timeout_s)}")
    work.refuse_inside(f"wait {name!r}")
    work = work.root
    work.enter(name)
    try:
        return (yield from _wait(work, name, timeout_s, park))
    finally:
        work.leave(name)


def _wait(work: Work, name: str, timeout_s: float | None, park: bool | None) -> Flow[Any]:
    work.visited.append(name)
    known = work.journal.steps.get(name)
    if known is not None:
        refuse_other(known, "wait")
        if known.standing == "completed":
            return _outcome(work, known)
    work.refuse_unless_open(f"wait {name!r}")
    work.refuse_when_cancelled()
    if known is None:
        until = None if timeout_s is None else (yield RunBlocking(work.runs.now)) + round(timeout_s * SECOND)
        time = work.time()
        yield from work.record((fact("waiting", time, step=name, until=until),), time=time)
    while (yield from _still_waits(work, name)):
        work.refuse_when_lost()
        work.refuse_when_cancelled()
        if (work.parks if park is None else park) and not work.is_under_way(name):
            yield from _park(work, name)  # not while another step of the run is under way here
        else:
            yield from _listen(work, name)
    return _outcome(work, work.journal.steps[name])


def _outcome(work: Work, known: StepRecord) -> Any:
    if known.how == "timeout":
        raise WaitTimedOut(
            f"run {work.header.name!r} of thread {work.thread.id!r}: the signal {known.name!r} did not come in time",
            thread=work.thread.id, run=work.header.name, signal=known.name,
        )  # fmt: skip
    return schemas.dump(known.result)


def _still_waits(work: Work, name: str) -> Flow[bool]:
    """Complete the wait if its signal came or it timed out; return whether it continues."""
    step = work.journal.steps[name]
    signal = work.journal.signals.get(name)
    late = step.until is not None and (yield RunBlocking(work.runs.now)) >= step.until
    if signal is None and not late:
        return True
    how, value = ("signal", signal["value"]) if signal is not None else ("timeout", None)
    time = work.time()
    told = event("signal", run=work.header.name, signal=name, outcome="came" if signal else "timed out")
    completed = fact("completed", time, step=name, attempt=1, result=value, how=how)
    try:
        # The timeout must not overtake a signal under way: what is recorded first counts.
        expect = None if signal is not None else work.journal.head
        yield from work.record((completed,), drafts=(told,), expect=expect, time=time)
    except Fenced:
        raise
    except Conflict:
        yield RunBlocking(work.catch_up)
        return (yield from _still_waits(work, name))
    return False


def _listen(work: Work, name: str) -> Flow[None]:
    """Wait for a commit, but not for long, to check the clock and other processes in between."""
    before = work.journal.head
    yield RunBlocking(work.catch_up)
    if work.journal.head != before:
        return
    step, seconds = work.journal.steps[name], _LOOK_S
    if step.until is not None:
        now = yield RunBlocking(work.runs.now)
        seconds = min(seconds, max(0.0, (step.until - now) / SECOND))
    yield WaitForCommit(work.runs.listen, seconds)
    yield RunBlocking(work.catch_up)


def _park(work: Work, name: str) -> Flow[None]:
    """Release the run until its signal comes or it times out, and leave the handler."""
    assert work.lease is not None
    step, time = work.journal.steps[name], work.time()
    parked = fact("parked", time, step=name, until=step.until)
    header = msgspec.structs.replace(work.header, status="waiting", waits=name)
    more = (work.lease.give_up(until=step.until),)
    try:
        yield from work.record((parked,), header=header, more=more, expect=work.journal.head, time=time)
    except Fenced:
        raise
    except Conflict:  # something arrived in the meantime: check again
        yield RunBlocking(work.catch_up)
        return
    work.let_go()
    raise Suspended(f"run {work.header.name!r} of thread {work.thread.id!r} waits for {name!r}")
