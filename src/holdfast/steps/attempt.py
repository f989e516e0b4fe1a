"""The small values that pass between the flows of a run.

Deliberately absent: any of the flows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.contract import Event
from holdfast.errors import StepFailed
from holdfast.records import Draft, event
from holdfast.steps.declare import Spec

if TYPE_CHECKING:
    from holdfast.steps.work import Work


class Suspended(BaseException):
    """A handler is left here, because its run waits for something. Not an error: the run goes on when it has come.

    No ``Exception``, so that code that catches every error does not swallow it.
    """


class Attempt(msgspec.Struct, frozen=True):
    """A step as it was asked for now."""

    spec: Spec
    fn: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    input: str
    key: str


class Beginning(msgspec.Struct, frozen=True):
    """What is to be recorded together with the next intent: how many attempts there were, and why there is another."""

    number: int = 0
    events: tuple[Event, ...] = ()
    drafts: tuple[Draft, ...] = ()


class Ended(msgspec.Struct, frozen=True):
    """A step that came to its end without being run now."""

    result: Any


def entry(work: Work, step: str, outcome: str, **more: Any) -> Draft:
    """The log entry that tells of a step."""
    return event("step", run=work.header.name, step=step, outcome=outcome, **more)


def resolution(work: Work, step: str, decision: str, why: str) -> Draft:
    """The log entry that tells what was decided about a step of which nobody recorded the end."""
    return event("resolution", run=work.header.name, step=step, decision=decision, why=why)


def failed_step(work: Work, error: BaseException | None) -> str | None:
    """The step that a run failed with, however its code passed the error on.

    An error that was raised while a failure was being handled counts as that failure only if nothing was done since:
    what was done instead is the answer that the run's code had to it.
    """
    seen: set[int] = set()
    passed_on = True
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        facts = error.facts if isinstance(error, StepFailed) else {}
        if (facts.get("thread"), facts.get("run")) == (work.thread.id, work.header.name):
            step = str(facts["step"])
            return step if passed_on or _is_last(work, step) else None
        passed_on = passed_on and error.__cause__ is not None
        error = error.__cause__ or error.__context__
    return None


def _is_last(work: Work, name: str) -> bool:
    failed = work.journal.steps.get(name)
    return failed is not None and all(max(s.since, s.position) <= failed.position for s in work.journal.all())
