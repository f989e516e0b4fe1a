"""What to do about a step that was started and whose end was not recorded.

A step that may be repeated is run again. For a ``once`` step the probe asks the outside world: if it happened, its
result is recorded; if it did not, the step runs again with the same key; if the probe cannot say, the declared policy
decides: stop, rerun or skip. The same happens when a ``once`` step raises or times out, because a lost answer looks
just like a failure. Every decision is recorded and logged in the thread. Deliberately absent: a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.engine.contract import Event, Put
from holdfast.errors import Cancelled, Fenced, StepFailed, StepUnknown
from holdfast.steps.declare import Done, NotDone, Unknown
from holdfast.steps.flow import Flow, Sleep
from holdfast.steps.journal import KIND, RunHeader, StepRecord, fact
from holdfast.steps.step_context import (
    Attempt,
    Beginning,
    Ended,
    StepContext,
    describe_failure,
    entry,
    failure_to_plain,
    resolution,
)

if TYPE_CHECKING:
    from holdfast.steps.work import Work


class ProbeAnswer(msgspec.Struct, frozen=True):
    """A probe's answer, and why, in words."""

    what: Literal["happened", "not", "unknown"]
    why: str
    result: Any = None
    error: dict[str, Any] | None = None
    asked: bool = True


def in_doubt(work: Work, attempt: Attempt, known: StepRecord) -> Flow[Beginning | Ended]:
    """Settle what an earlier process left open: the step has ended, or must run (again)."""
    spec = attempt.spec
    if "once" not in (spec.effect, known.effect):
        why = f"it is {spec.effect}, and attempt {known.attempt} was not recorded as done"
        return _again(work, spec.name, "rerun", why, known.attempt) if known.attempt else Beginning()
    known_why = f"attempt {known.attempt} was started and not recorded as done"
    if known.attempt == 0:
        known_why = "the step had failed, and the run was reopened"
        if spec.probe is None:  # it said that it failed, and is called again
            return _again(work, spec.name, "rerun", known_why, 0)
    answer = yield from ask(work, attempt, known.attempt)
    if answer.what == "happened":
        return (yield from _take(work, attempt, answer, known.attempt))
    if answer.what == "not" and (work.root.journal.cancel is None or work.undoing):
        return _again(work, spec.name, "rerun", f"{known_why}; {answer.why}", known.attempt, answer)
    if answer.what == "not":
        yield from _record(
            work, spec.name, "dropped", f"{answer.why}, and the run is cancelled", answer, unstarted=True
        )
        work.refuse_when_cancelled()
    policy = spec.on_unknown if spec.effect == "once" else known.on_unknown
    return (yield from _by_policy(work, attempt, policy, answer, known.attempt, known_why))


def failure_of(work: Work, attempt: Attempt, number: int, error: Exception) -> Flow[Beginning | Ended]:
    """What follows when a step's function raised or timed out: another attempt, an end, or an error."""
    spec = attempt.spec
    again = number < spec.retry.attempts and isinstance(error, spec.retry.on)
    if spec.effect != "once" or isinstance(error, NotDone):
        return (yield from _retry_or_fail(work, attempt, number, error, again))
    answer = yield from ask(work, attempt, number)
    if answer.what == "happened":
        return (yield from _take(work, attempt, answer, number))
    if answer.what == "not" or spec.on_unknown == "rerun":
        return (yield from _retry_or_fail(work, attempt, number, error, again, answer))
    why = f"attempt {number} ended with {describe_failure(failure_to_plain(error))}"
    return (yield from _by_policy(work, attempt, spec.on_unknown, answer, number, why))


def ask(work: Work, attempt: Attempt, number: int) -> Flow[ProbeAnswer]:
    """Ask the outside world whether a step happened. A probe that raises or hangs cannot say."""
    spec = attempt.spec
    if spec.probe is None:
        return ProbeAnswer("unknown", "there is no probe", asked=False)
    context = StepContext(work.thread, work.header.name, spec.name, attempt.key, number, None, _no_pulse)
    try:
        found = yield work.call(attempt, spec.probe, spec.probe_timeout_s, context)
        if found is None and work.is_running(spec.name):
            return ProbeAnswer("unknown", "the probe says it has not happened yet, but its function is still running")
        if found is None:
            return ProbeAnswer("not", "the probe says it did not happen")
        if not isinstance(found, Done) and not found:
            return ProbeAnswer(
                "unknown", f"the probe returned {found!r}; return None for no, holdfast.Done({found!r}) for yes"
            )
        result = work.plain(spec, found.result if isinstance(found, Done) else found)
        return ProbeAnswer("happened", "the probe found that it happened", result)
    except (Fenced, Cancelled):
        raise
    except Unknown as error:
        said = str(error)
        return ProbeAnswer(
            "unknown", "the probe cannot say" + (f" ({said})" if said else ""), None, failure_to_plain(error)
        )
    except Exception as error:
        plain = failure_to_plain(error)
        return ProbeAnswer("unknown", f"the probe failed with {describe_failure(plain)}", None, plain)
    finally:
        context.close()


def _no_pulse(value: Any = None, *, progress: bool = False) -> None:
    """A probe only asks; the renewer renews its lease."""


def _probed(work: Work, step: str, answer: ProbeAnswer | None, time: int) -> tuple[Event, ...]:
    if answer is None or not answer.asked:
        return ()
    return (fact("probed", time, step=step, answer=answer.what, why=answer.why, error=answer.error),)


def _again(work: Work, step: str, decision: str, why: str, number: int, answer: ProbeAnswer | None = None) -> Beginning:
    """Run the step again; the reason is recorded with its next intent."""
    time = work.time()
    events = (*_probed(work, step, answer, time), fact("resolved", time, step=step, decision=decision, why=why))
    return Beginning(number, events, (resolution(work, step, decision, why),))


def _take(work: Work, attempt: Attempt, answer: ProbeAnswer, number: int) -> Flow[Ended]:
    """Record what the probe found as the step's result."""
    name, time = attempt.spec.name, work.time()
    events = (
        *_probed(work, name, answer, time),
        fact("resolved", time, step=name, decision="recorded", why=answer.why),
    )
    drafts = (resolution(work, name, "recorded", answer.why),)
    yield from work.complete(attempt.spec, answer.result, number, "probed", events=events, drafts=drafts)
    return Ended(answer.result)


def _by_policy(
    work: Work, attempt: Attempt, policy: str, answer: ProbeAnswer, number: int, why: str
) -> Flow[Beginning | Ended]:
    spec = attempt.spec
    text = f"{why}; {answer.why}; the policy is {policy}"
    if policy == "rerun":
        work.refuse_when_cancelled()
        return _again(work, spec.name, "rerun", text, number, answer)
    if policy == "skip":
        time = work.time()
        events = (
            *_probed(work, spec.name, answer, time),
            fact("resolved", time, step=spec.name, decision="skipped", why=text),
        )
        drafts = (resolution(work, spec.name, "skipped", text),)
        yield from work.complete(spec, None, number, "skipped", events=events, drafts=drafts)
        return Ended(None)
    yield from stop(work, spec.name, text, answer)
    raise StepUnknown(
        f"step {spec.name!r} of run {work.header.name!r}: it is unknown whether it happened ({text}). Look for key "
        f"{attempt.key}, then settle it: run.settle({spec.name!r}, happened=…), or the command holdfast settle",
        step=spec.name, run=work.header.name, thread=work.thread.id, key=attempt.key,
    )  # fmt: skip


def stop(work: Work, step: str, why: str, answer: ProbeAnswer | None) -> Flow[None]:
    """Stop a run until a person settles one of its steps."""
    yield from _record(work, step, "stopped", why, answer, status="stopped")


def dropped(work: Work, attempt: Attempt, known: StepRecord, answer: ProbeAnswer) -> Flow[None]:
    """Settle a started step of a cancelled run: it happened and will be undone, or it is dropped."""
    name = attempt.spec.name
    if answer.what == "happened":
        yield from _take(work, attempt, answer, known.attempt)
    elif answer.what == "not" or attempt.spec.on_unknown != "stop":
        why = f"{answer.why}, and the run is cancelled"
        yield from _record(work, name, "dropped", why, answer, unstarted=True)
    else:
        yield from _by_policy(work, attempt, "stop", answer, known.attempt, "the run is cancelled")


def _record(
    work: Work,
    step: str,
    decision: str,
    why: str,
    answer: ProbeAnswer | None,
    *,
    unstarted: bool = False,
    status: Literal["stopped"] | None = None,
) -> Flow[None]:
    """Record a decision that ends neither in a result nor in another attempt."""
    time = work.time()
    events = (*_probed(work, step, answer, time), fact("resolved", time, step=step, decision=decision, why=why))
    if unstarted:
        events = (*events, fact("unstarted", time, step=step))
    run = work.root
    header: RunHeader | None = None
    more: tuple[Any, ...] = ()
    if status is not None and run.lease is not None:
        header = msgspec.structs.replace(run.header, status=status)
        more = (run.lease.give_up(),)
    drafts = (resolution(work, step, decision, why),)
    if header is None or run is work:
        yield from work.record(events, drafts=drafts, header=header, more=more, time=time, insist=True)
    else:  # a subtask in doubt stops its run
        more = (Put(KIND, run.id, header.body(), run.version, run.scope, (header.status,)), *more)
        yield from work.record(events, drafts=drafts, more=more, time=time, insist=True)
        run.moved(header)
    if header is not None:
        work.let_go()
        run.let_go()


def _retry_or_fail(
    work: Work, attempt: Attempt, number: int, error: Exception, again: bool, answer: ProbeAnswer | None = None
) -> Flow[Beginning]:
    """Record a failed attempt; then wait for the next one, or raise the failure."""
    name, time = attempt.spec.name, work.time()
    plain = failure_to_plain(error)
    events = (
        *_probed(work, name, answer, time),
        fact("failed", time, step=name, attempt=number, error=plain, final=not again),
    )
    if again:
        yield from work.record(events, time=time, insist=True)
        yield Sleep(attempt.spec.retry.after(number))
        work.refuse_when_cancelled()
        return Beginning(number)
    drafts = (entry(work, name, "failed", error=describe_failure(plain)),)
    yield from work.record(events, drafts=drafts, time=time, insist=True)
    failed: StepFailed = work.failed(work.journal.steps[name])
    raise failed from error
