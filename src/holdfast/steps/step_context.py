"""A step as it runs: the values that describe an attempt, what its function can ask and do, and which step is current.

What a function appends, saves or patches is collected and committed with the completion: together with the result, or
not at all. Heartbeats and partial progress are committed at once. The current run and step are context variables, so
threads and tasks do not see each other's. A failure is kept as plain data that a person can read next year.
Deliberately absent: writing anything once the step is over, as a function left behind by a time limit might try; a way
to set the current step from outside; and a way back to the exception object.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextvars import ContextVar
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.engine.contract import Event
from holdfast.errors import HoldfastError, Invalid, StepFailed, quoted
from holdfast.ledger import json_path, log
from holdfast.ledger import schema as schemas
from holdfast.ledger.state import Expect
from holdfast.ledger.turn import copied
from holdfast.records import Draft, event
from holdfast.steps.declare import Spec

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread
    from holdfast.steps.work import Work


class Suspended(BaseException):
    """Raised to leave a handler whose run waits for something. Not an error: the run continues once it arrives.

    It is no ``Exception``, so code that catches every error does not swallow it.
    """


class Attempt(msgspec.Struct, frozen=True):
    """A step as it was called this time."""

    spec: Spec
    fn: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    input: str
    key: str


class Beginning(msgspec.Struct, frozen=True):
    """What to record with the next intent: how many attempts there were, and why there is another."""

    number: int = 0
    events: tuple[Event, ...] = ()
    drafts: tuple[Draft, ...] = ()


class Ended(msgspec.Struct, frozen=True):
    """A step that ended without running this time."""

    result: Any


def entry(work: Work, step: str, outcome: str, **more: Any) -> Draft:
    """The log entry for a step."""
    return event("step", run=work.header.name, step=step, outcome=outcome, **more)


def resolution(work: Work, step: str, decision: str, why: str) -> Draft:
    """The log entry for the decision about a step whose end was not recorded."""
    return event("resolution", run=work.header.name, step=step, decision=decision, why=why)


def failed_step(work: Work, error: BaseException | None) -> str | None:
    """The step that made a run fail, however its code passed the error on.

    An error raised while handling a failure counts as that failure only if no other step was done since: any such step
    is how the run's code handled the failure.
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


_LONGEST = 4_000
_FRAMES = 25
_CAUSES = 8


def failure_to_plain(error: BaseException) -> dict[str, Any]:
    """Describe an error: its type, its text, where it was raised, and what caused it."""
    plain = _one(error)
    causes: list[dict[str, Any]] = []
    seen, below = {id(error)}, _below(error)
    while below is not None and id(below) not in seen and len(causes) < _CAUSES:
        causes.append(_one(below, frames=False))
        seen.add(id(below))
        below = _below(below)
    if causes:
        plain["causes"] = causes
    return plain


def describe_failure(plain: dict[str, Any]) -> str:
    """A described error in one line."""
    text = str(plain.get("message", "")).strip()
    return f"{plain.get('type', 'error')}: {text}" if text else str(plain.get("type", "error"))


def _one(error: BaseException, *, frames: bool = True) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": type(error).__qualname__, "message": _text(error)}
    if isinstance(error, HoldfastError):
        plain["code"] = error.code
    if frames:
        lines = traceback.format_list(traceback.extract_tb(error.__traceback__)[-_FRAMES:])
        plain["traceback"] = _storable("".join(lines))[-_LONGEST:]
    return plain


def _below(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _text(error: BaseException) -> str:
    try:
        return _storable(str(error))[:_LONGEST]
    except Exception:  # even this may fail in the caller's own exception class
        return "(no text: its __str__ failed)"


def _storable(text: str) -> str:
    """The text without lone surrogates, which no store can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


Change = Callable[[Any], Any]
_AS_STORED = ("as it is stored", None)


class StepContext:
    """One attempt at a step, as its function sees it."""

    def __init__(
        self,
        thread: LedgerThread,
        run: str,
        name: str,
        key: str,
        attempt: int,
        progress: Any,
        pulse: Callable[..., None],
    ) -> None:
        self.thread, self.run, self.name = thread, run, name
        self.key, self.attempt = key, attempt
        self._progress, self._pulse = progress, pulse
        self._drafts: list[Draft] = []
        self._save: dict[str, Any] | None = None
        self._changes: list[Change] = []
        self._base: tuple[Any, Any] | None = None
        self._open = True

    @property
    def progress(self) -> Any:
        """The partial progress last recorded by this or an earlier attempt, or None."""
        return deepcopy(self._progress)

    def heartbeat(self) -> None:
        """Report that the step is alive. Raises ``Fenced`` or ``Cancelled`` when it should stop."""
        self._refuse_when_over()
        self._pulse()

    def record(self, progress: Any) -> None:
        """Store partial progress durably, for the next attempt if this one does not finish."""
        self._refuse_when_over()
        plain = schemas.dump(progress)
        self._pulse(plain, progress=True)
        self._progress = plain

    def append(self, *items: Any, kind: str = "message", key: str | None = None) -> None:
        """Add entries to the thread's log, in the commit that completes this step."""
        self._refuse_when_over()
        self._drafts += [log.copied(draft) for draft in log.drafts(items, kind, key)]

    def save(self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent") -> None:
        """Save the thread's state in the commit that completes this step; if called twice, the later state counts.

        If someone else saved in the meantime, the step is recorded without it, and ``NotSaved`` is raised.
        ``update`` and ``patch`` avoid that.
        """
        self._refuse_when_over()
        if self._changes:
            raise Invalid("a step either saves a whole state or updates it, not both")
        self._save = {"value": copied(value), "expect": expect, "schema": schema, "by": by}

    def update(self, change: Change, *, type: Any = None, default: Any = None) -> None:
        """Change the thread's state when this step completes: ``change`` gets the state as it is then."""
        if not callable(change):
            raise Invalid(f"update takes a function from the old state to the new, not {quoted(change)}")
        self._change(change, (type, default))

    def patch(self, path: str, value: Any) -> None:
        """Set one path of the thread's state when this step completes; changes elsewhere are kept."""
        steps, plain = json_path.parse(path, append=True), schemas.dump(value)
        self._change(lambda state: json_path.with_value(state, steps, plain), _AS_STORED)

    def _change(self, change: Change, base: tuple[Any, Any]) -> None:
        self._refuse_when_over()
        if self._save is not None:
            raise Invalid("a step either saves a whole state or updates it, not both")
        if self._changes and base != self._base:
            raise Invalid("all updates of one step use one type, and cannot be mixed with patches")
        self._base = base
        self._changes.append(change)

    # For the run

    def close(self) -> None:
        self._open = False

    def collected(self) -> tuple[list[Draft], bool]:
        """What to commit with the completion: entries, and whether the state changes too."""
        return self._drafts, self._save is not None or bool(self._changes)

    def rebased(self) -> bool:
        """Whether a state that changed in the meantime is no conflict."""
        return self._save is None

    def saving(self, again: bool = False) -> dict[str, Any]:
        """What to save. Updates apply to the current state; ``again`` reads it from the store."""
        if self._save is not None:
            return self._save
        assert self._base is not None
        type, default = self._base
        plainly = self._base is _AS_STORED
        basis = self.thread.statebook.basis(type, default=deepcopy(default), plainly=plainly, again=again)
        value = basis.value
        for change in self._changes:
            value = change(value)
        return {"value": value, "base": basis.base, "schema": basis.schema}

    def _refuse_when_over(self) -> None:
        if not self._open:
            raise Invalid(f"step {self.name!r} is over; nothing more can be recorded for this attempt")


class Steps(Protocol):
    """A run, blocking or async, as a declared step needs it."""

    def step(self, name: str, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...


_run: ContextVar[Steps | None] = ContextVar("holdfast_run", default=None)
_step: ContextVar[Any] = ContextVar("holdfast_step", default=None)


def current_step() -> StepContext:
    """The step this code runs in: its ``key``, ``heartbeat()``, ``record()``, ``append()``, ``state()`` and so on.

    In an async function of an async run, await ``heartbeat`` and ``record``.
    """
    found: StepContext | None = _step.get()
    if found is None:
        raise Invalid("no step is running here; current_step() is for functions that a run calls as a step")
    return found


def in_step() -> StepContext | None:
    found: StepContext | None = _step.get()
    return found


def running(what: str) -> Steps:
    """The run that a declared step belongs to when it is called."""
    found = _run.get()
    if found is None:
        raise Invalid(
            f"step {what!r} was called outside a run; call it inside `with thread.run(…):`, or the plain function with "
            f"{what}.fn(…)"
        )
    return found


def set_run(run: Steps | None) -> tuple[Steps | None, Steps | None]:
    """Make a run current; return what ``reset_run`` needs. A context's own token would not work in another context."""
    before = _run.get()
    _run.set(run)
    return run, before


def reset_run(token: tuple[Steps | None, Steps | None]) -> None:
    """Undo ``set_run``. If another run is current, as in a task that did not set it, that one stays."""
    run, before = token
    if _run.get() is run:
        _run.set(before)


def set_step(step: Any) -> None:
    _step.set(step)
