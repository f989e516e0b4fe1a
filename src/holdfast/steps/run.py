"""A run: the handle through which blocking callers do durable work in a thread.

It only drives the flows of ``work``, ``signals``, ``subtask`` and ``ending``; ``aio.AsyncRun`` drives the same ones.
Deliberately absent: rules.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast.errors import Cancelled, Invalid, ResultInvalid, Unavailable, quoted
from holdfast.ledger import schema as schemas
from holdfast.steps import budget, lifecycle, signals
from holdfast.steps.declare import Effect, OnUnknown, Retry, is_async
from holdfast.steps.flow import Flow
from holdfast.steps.step_context import Suspended, reset_run, set_run
from holdfast.steps.subtask import spend, subtask
from holdfast.steps.timeline import StepInfo, step_info
from holdfast.steps.work import Work

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread


class Run:
    """A durable piece of work in a thread, held by this process.

    In a ``with`` block its declared steps can be called as functions; the end of the block ends the run, an error in it
    ends it as failed, and an interruption (Ctrl-C) leaves it to be resumed.
    """

    def __init__(self, work: Work) -> None:
        self.work = work
        self._tokens: list[Any] = []

    def __repr__(self) -> str:
        return f"Run({self.name!r} of thread {self.thread.id!r}, {self.status})"

    @property
    def name(self) -> str:
        return self.work.header.name

    @property
    def thread(self) -> LedgerThread:
        return self.work.thread

    @property
    def input(self) -> Any:
        """What the run was begun or submitted with."""
        return schemas.dump(self.work.header.input)

    @property
    def status(self) -> str:
        """``open`` while it is held here; otherwise what it came to."""
        return self.work.header.status

    @property
    def steps(self) -> list[StepInfo]:
        """Where each step stands, in the order they were begun."""
        return [step_info(step) for step in self.work.journal.all()]

    @property
    def result(self) -> Any:
        """What a finished run came to."""
        return schemas.dump((self.work.journal.ended or {}).get("result"))

    def step(  # noqa: PLR0913 - a declaration has many words, each by name
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        effect: Effect | None = None,
        probe: Callable[..., Any] | None = None,
        on_unknown: OnUnknown | None = None,
        retry: int | Retry | None = None,
        timeout_s: float | None = None,
        probe_timeout_s: float | None = None,
        compensate: Callable[..., Any] | None = None,
        returns: Any = None,
        log: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Do something at most once, or as often as it declares it may be done, and return its recorded result.

        ``effect`` is ``pure``, ``idempotent`` or ``once``; a ``once`` step needs a ``probe`` (called with the same
        arguments: None, it did not happen; a value, it happened with this result; raise ``holdfast.Unknown``, cannot
        say) or ``on_unknown``. A completed step returns what is recorded and is not run again; the same name with
        other input is ``StepChanged``. ``compensate`` is called with the result when the run is abandoned. ``log`` is
        False for no log entry, or a function from the result to what is to be logged.
        """
        if is_async(fn):
            raise Invalid(f"step {name!r}: an async function needs an async run (holdfast.aio)")
        options = {
            "effect": effect, "probe": probe, "on_unknown": on_unknown, "retry": retry, "timeout_s": timeout_s,
            "probe_timeout_s": probe_timeout_s, "compensate": compensate, "returns": returns, "log": log,
        }  # fmt: skip
        return self.work.runs.drive(self.work.step(name, fn, args, kwargs, options))

    def wait(self, name: str, *, timeout_s: float | None = None, park: bool | None = None) -> Any:
        """Wait for ``thread.signal(name, value)`` and return its value; ``WaitTimedOut`` after ``timeout_s``.

        It survives restarts. In a worker or ``store.resume`` the run is parked: the handler is left, and called again
        once the signal has come. Elsewhere this blocks, unless ``park`` says otherwise.
        """
        return self.work.runs.drive(signals.wait(self.work, name, timeout_s, park))

    def subtask(
        self, name: str, fn: Callable[..., Any], /, *args: Any, budget: dict[str, float] | None = None, **kwargs: Any
    ) -> Any:
        """Carry out ``fn(subtask, …)`` with a log and a budget of its own, and return its one result."""
        return self.work.runs.drive(subtask(self.work, name, fn, args, kwargs, budget, Subtask))

    def settle(self, step: str, *, happened: bool, result: Any = None) -> None:
        """Record what you found out about a step of which nobody could say whether it happened."""
        self.work.runs.drive(lifecycle.settle(self.work, step, happened, result))

    def finish(self, result: Any = None) -> Any:
        """End the run as done. Its steps can still be read; further ones are refused."""
        return self.work.runs.drive(lifecycle.finish(self.work, result))

    def fail(self, error: BaseException) -> None:
        """End the run as failed. Opening it again tries what failed once more."""
        self.work.runs.drive(lifecycle.fail(self.work, error))

    def abandon(self, reason: str = "") -> None:
        """Give the run up: undo its completed steps, the last first, and end it as cancelled."""
        self.work.runs.drive(lifecycle.abandon(self.work, reason))

    def release(self, why: str = "released") -> None:
        """Let the run go as it is, so that another process may carry it on at once."""
        self.work.refuse_inside("letting the run go")
        self.work.runs.drive(lifecycle.release(self.work, why))

    def carry_out(self, handler: Callable[[Self], Any]) -> Any:
        """Call a handler with this run, end the run by what came of it, and return the result."""
        self.work.refuse_inside("carrying the run out")
        check_handler(handler)
        with self:
            return self.finish(handler(self))

    def heartbeat(self) -> None:
        """Renew the lease now; ``Fenced`` or ``Cancelled`` when this process should stop."""
        self.work.refuse_unless_open("a heartbeat")
        self.work.pulse()

    def __enter__(self) -> Self:
        self._tokens.append(set_run(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reset_run(self._tokens.pop())
        self.work.runs.drive(leaving(self.work, error))


def check_handler(handler: Any) -> None:
    if not callable(handler):
        raise Invalid(f"a handler is a function of the run, not {quoted(handler)}")


def leaving(work: Work, error: BaseException | None) -> Flow[None]:
    """What the end of a ``with`` block means for a run."""
    if work.lease is None or work.replaying or work.root is not work or work.is_inside():
        return  # a block inside a step of the run ends neither
    try:
        yield from _leave(work, error)
    except Unavailable:
        if work.lease is not None and work.lease.id == work.id:
            work.let_go()  # nobody works on it here any more; once its lease has ended, another carries it on
        if not isinstance(error, Unavailable):
            raise
    except (Exception, GeneratorExit):
        raise
    except BaseException as interruption:  # in the middle of undoing: whoever resumes goes on with it
        yield from lifecycle.release(work, type(interruption).__name__)
        raise


def _leave(work: Work, error: BaseException | None) -> Flow[None]:
    if error is None and work.settled and not work.visited:
        yield from lifecycle.release(work, "a step was settled")  # that is not the end of the run
    elif error is None:
        try:
            yield from lifecycle.finish(work)
        except Cancelled:  # asked for before the end was recorded
            yield from lifecycle.undo(work)
            raise
    elif isinstance(error, Cancelled) and _is_own(work, error):
        yield from lifecycle.undo(work)
    elif work.lease is not None and work.lease.lost:
        return
    elif isinstance(error, Suspended | Unavailable | ResultInvalid):
        # That the store was away is not a failure of the run, nor that a result could not be kept.
        yield from lifecycle.release(work, str(error))
    elif isinstance(error, Exception) and work.journal.cancel is not None:
        yield from lifecycle.undo(work)  # it is to be given up, whatever it failed with
    elif isinstance(error, Exception):
        yield from lifecycle.fail(work, error)
    else:
        yield from lifecycle.release(work, type(error).__name__)


def _is_own(work: Work, error: Cancelled) -> bool:
    """Whether a cancellation is of this run, and not of another that it worked with."""
    named = error.facts.get("thread", work.thread.id), error.facts.get("run", work.header.name)
    return named == (work.thread.id, work.header.name)


class Subtask(Run):
    """A piece of work inside a run, with a log (``.thread``) and a budget of its own."""

    def spend(self, **amounts: float) -> dict[str, float]:
        """Record what was used, as ``spend(tokens=1200)``; return what is left, or raise ``BudgetExceeded``."""
        left: dict[str, float] = self.work.runs.drive(spend(self.work, amounts))
        return left

    @property
    def left(self) -> dict[str, float]:
        """What is left of each amount that is limited."""
        return budget.left(self.work)

    @property
    def spent(self) -> dict[str, float]:
        return budget.used(self.work)
