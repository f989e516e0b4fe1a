"""Writing the logic of a run once, for callers that block and callers that await.

The logic of a run is a generator that asks for work: ``RunBlocking`` (read or commit), ``CallFunction`` (the caller's
own function), ``Sleep`` and ``WaitForCommit``. ``drive`` carries out the asks one by one and blocks; ``aio`` awaits
them. So the rules exist once, and every place where a process can die between two facts is a ``yield``. Deliberately
absent: any rule of a run.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec

from holdfast.clock import Clock, sleep
from holdfast.errors import Invalid, StepTimeout
from holdfast.steps.declare import is_async

T = TypeVar("T")


class RunBlocking(msgspec.Struct, frozen=True):
    """Our own blocking work: a read or a commit. With ``surely`` it is done even if its caller is cancelled first."""

    work: Callable[[], Any]
    surely: bool = False


class CallFunction(msgspec.Struct, frozen=True):
    """The caller's own function, with the step that is current while it runs, and its time limit.

    ``lasting`` is called when it starts and when it has really ended.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    timeout_s: float | None = None
    within: Callable[[], Any] | None = None
    what: str = ""
    lasting: Callable[[bool], None] | None = None


class Sleep(msgspec.Struct, frozen=True):
    """A pause."""

    seconds: float


class WaitForCommit(msgspec.Struct, frozen=True):
    """A wait for a commit by others; ``work`` does the waiting, for at most that many seconds."""

    work: Callable[[float], Any]
    seconds: float


Ask = RunBlocking | CallFunction | Sleep | WaitForCommit
Flow = Generator[Ask, Any, T]


def drive(flow: Flow[T], clock: Clock) -> T:
    """Carry out a flow, blocking."""
    try:
        ask = next(flow)
        while True:
            try:
                answer = _perform(ask, clock)
            except BaseException as error:
                ask = flow.throw(error)
            else:
                ask = flow.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


def _perform(ask: Ask, clock: Clock) -> Any:
    match ask:
        case RunBlocking():
            return ask.work()
        case CallFunction():
            return call(ask)
        case WaitForCommit():
            return ask.work(ask.seconds)
        case Sleep():
            return sleep(clock, ask.seconds)


def call(ask: CallFunction) -> Any:
    """Call the caller's blocking function, within its time limit."""
    if is_async(ask.fn):
        raise Invalid(f"{ask.what}: an async function needs an async run (holdfast.aio)")
    context = contextvars.copy_context()
    if ask.lasting is not None:
        ask.lasting(True)
    if ask.timeout_s is not None:
        return _bounded(ask, context)
    try:
        return context.run(_entered, ask)
    finally:
        _over(ask)


def _entered(ask: CallFunction) -> Any:
    if ask.within is not None:
        ask.within()
    return ask.fn(*ask.args, **ask.kwargs)


def _over(ask: CallFunction) -> None:
    if ask.lasting is not None:
        ask.lasting(False)


def _bounded(ask: CallFunction, context: contextvars.Context) -> Any:
    """Call it in its own thread, and stop waiting at the limit. The thread cannot be stopped; it is left alone."""
    ended: list[tuple[bool, Any]] = []

    def work() -> None:
        try:
            ended.append((True, context.run(_entered, ask)))
        except BaseException as error:
            ended.append((False, error))
        finally:
            _over(ask)  # here, in its own thread: its caller may have stopped waiting

    thread = threading.Thread(target=work, name=f"step {ask.what}", daemon=True)
    thread.start()
    thread.join(ask.timeout_s)
    if not ended:
        raise overdue(ask, running=True)
    good, value = ended[0]
    if not good:
        raise value
    return value


def overdue(ask: CallFunction, *, running: bool) -> StepTimeout:
    """The error for a call that took too long. ``running`` says whether it may still be running."""
    return StepTimeout(f"{ask.what} took longer than {ask.timeout_s:g} s", timeout_s=ask.timeout_s, running=running)
