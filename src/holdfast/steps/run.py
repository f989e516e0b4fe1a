"""A run: the handle with which blocking callers do durable work in a thread.

It only drives the flows of ``work``, ``signals``, ``subtask`` and ``lifecycle``; ``aio.AsyncRun`` drives the same ones.
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

    In a ``with`` block you call its declared steps as functions. The end of the block ends the run, an error ends it as
    failed, and an interruption (Ctrl-C) leaves it to be resumed.
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
        """The input the run was started or submitted with."""
        return schemas.dump(self.work.header.input)

    @property
    def status(self) -> str:
        """``open`` while this process holds it; otherwise how it ended."""
        return self.work.header.status

    @property
    def steps(self) -> list[StepInfo]:
        """The status of each step, in the order they started."""
        return [step_info(step) for step in self.work.journal.all()]

    @property
    def result(self) -> Any:
        """The result of a finished run."""
        return schemas.dump((self.work.journal.ended or {}).get("result"))

    def step(  # noqa: PLR0913 - a declaration has many options, each by name
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
        """Do something at most once, or as often as its effect allows, and return its recorded result.

        ``effect`` is ``pure``, ``idempotent`` or ``once``. A ``once`` step needs ``on_unknown`` or a ``probe``, which
        is called with the same arguments and returns None if it did not happen or the result if it did; it raises
        ``holdfast.Unknown`` if it cannot say. A completed step returns its recorded result and is not run again; the
        same name with other input raises ``StepChanged``. ``compensate`` is called with the result when the run is
        abandoned. ``log`` is False for no log entry, or a function from the result to the content to log.
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

        It survives restarts. In a worker or ``store.resume`` the run is parked: the handler exits, and is called again
        once the signal arrives. Elsewhere this blocks, unless ``park`` says otherwise.
        """
        return self.work.runs.drive(signals.wait(self.work, name, timeout_s, park))

    def subtask(
        self, name: str, fn: Callable[..., Any], /, *args: Any, budget: dict[str, float] | None = None, **kwargs: Any
    ) -> Any:
        """Run ``fn(subtask, …)`` with its own log and budget, and return its result."""
        return self.work.runs.drive(subtask(self.work, name, fn, args, kwargs, budget, Subtask))

    def settle(self, step: str, *, happened: bool, result: Any = None) -> None:
        """Record whether a step with an unknown outcome happened."""
        self.work.runs.drive(lifecycle.settle(self.work, step, happened, result))

    def finish(self, result: Any = None) -> Any:
        """End the run as done. Its steps can still be read; further ones are refused."""
        return self.work.runs.drive(lifecycle.finish(self.work, result))

    def fail(self, error: BaseException) -> None:
        """End the run as failed. Opening it again retries what failed."""
        self.work.runs.drive(lifecycle.fail(self.work, error))

    def abandon(self, reason: str = "") -> None:
        """Give up the run: undo its completed steps, last first, and end it as cancelled."""
        self.work.runs.drive(lifecycle.abandon(self.work, reason))

    def release(self, why: str = "released") -> None:
        """Release the run as it is, so that another process can continue it at once."""
        self.work.refuse_inside("releasing the run")
        self.work.runs.drive(lifecycle.release(self.work, why))

    def carry_out(self, handler: Callable[[Self], Any]) -> Any:
        """Call a handler with this run, end the run with its outcome, and return the result."""
        self.work.refuse_inside("carrying the run out")
        check_handler(handler)
        with self:
            return self.finish(handler(self))

    def heartbeat(self) -> None:
        """Renew the lease now. Raises ``Fenced`` or ``Cancelled`` when this process should stop."""
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
        raise Invalid(f"a handler is a function that takes the run, not {quoted(handler)}")


def leaving(work: Work, error: BaseException | None) -> Flow[None]:
    """What the end of a ``with`` block means for a run."""
    if work.lease is None or work.replaying or work.root is not work or work.is_inside():
        return  # a block inside a step of the run ends neither
    try:
        yield from _leave(work, error)
    except Unavailable:
        if work.lease is not None and work.lease.id == work.id:
            work.let_go()  # no longer worked on here; another process continues it once the lease ends
        if not isinstance(error, Unavailable):
            raise
    except (Exception, GeneratorExit):
        raise
    except BaseException as interruption:  # while undoing: the next resume continues it
        yield from lifecycle.release(work, type(interruption).__name__)
        raise


def _leave(work: Work, error: BaseException | None) -> Flow[None]:
    if error is None and work.settled and not work.visited:
        yield from lifecycle.release(work, "a step was settled")  # which does not end the run
    elif error is None:
        try:
            yield from lifecycle.finish(work)
        except Cancelled:  # requested before the end was recorded
            yield from lifecycle.undo(work)
            raise
    elif isinstance(error, Cancelled) and _is_own(work, error):
        yield from lifecycle.undo(work)
    elif work.lease is not None and work.lease.lost:
        return
    elif isinstance(error, Suspended | Unavailable | ResultInvalid):
        # An unavailable store, or a result that could not be stored, is not a failure of the run.
        yield from lifecycle.release(work, str(error))
    elif isinstance(error, Exception) and work.journal.cancel is not None:
        yield from lifecycle.undo(work)  # it is being given up, whatever the error
    elif isinstance(error, Exception):
        yield from lifecycle.fail(work, error)
    else:
        yield from lifecycle.release(work, type(error).__name__)


def _is_own(work: Work, error: Cancelled) -> bool:
    """Whether a cancellation is for this run, and not for another that it used."""
    named = error.facts.get("thread", work.thread.id), error.facts.get("run", work.header.name)
    return named == (work.thread.id, work.header.name)


class Subtask(Run):
    """A piece of work inside a run, with its own log (``.thread``) and budget."""

    def spend(self, **amounts: float) -> dict[str, float]:
        """Record what you used, as in ``spend(tokens=1200)``; return what is left, or raise ``BudgetExceeded``."""
        left: dict[str, float] = self.work.runs.drive(spend(self.work, amounts))
        return left

    @property
    def left(self) -> dict[str, float]:
        """What is left of each limited amount."""
        return budget.left(self.work)

    @property
    def spent(self) -> dict[str, float]:
        return budget.used(self.work)
