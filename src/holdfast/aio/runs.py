"""Runs for async callers: the same flows as the blocking ones, awaited.

A step may be an async function or a blocking one; blocking ones run in a thread. Deliberately absent: rules of a run.
They are in ``holdfast.steps``, and this only carries out what those flows ask for.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from holdfast.aio.hands import Hands, surely, to_end
from holdfast.checks import check_part
from holdfast.clock import Sleeps
from holdfast.errors import Unavailable
from holdfast.steps import budget, ending, waiting
from holdfast.steps.context import StepContext
from holdfast.steps.current import in_step, reset_run, set_run, set_step
from holdfast.steps.declare import Effect, OnUnknown, Retry, is_async
from holdfast.steps.flow import Ask, Call, Do, Flow, Listen, Nap, call, overdue
from holdfast.steps.replay import Replayed, replayed
from holdfast.steps.resume import Claimed, Resumed, Resumer, Shift
from holdfast.steps.run import Run, Subtask, check_handler, leaving
from holdfast.steps.subtask import spend, subtask
from holdfast.steps.timeline import StepInfo
from holdfast.steps.work import Work

if TYPE_CHECKING:
    from holdfast.store import Store
    from holdfast.thread import Thread

T = TypeVar("T")
_LOOK_S = 0.05
_GRACE_S = 1.0  # for a step that took too long to come to its end


async def drive(flow: Flow[T], work: Work, hands: Hands) -> T:
    """Carry a flow out, awaiting."""
    try:
        ask = next(flow)
        while True:
            try:
                answer = await _perform(ask, work, hands)
            except BaseException as error:
                ask = flow.throw(error)
            else:
                ask = flow.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


async def _perform(ask: Ask, work: Work, hands: Hands) -> Any:
    match ask:
        case Do():
            return await (surely(ask.work) if ask.surely else hands.to_end(ask.work))
        case Call():
            return await _call(ask, hands)
        case Listen():
            return await asyncio.sleep(min(ask.seconds, _LOOK_S))  # a blocked thread for each would use the executor up
        case Nap():
            clock = work.runs.core.clock
            if isinstance(clock, Sleeps):
                return clock.sleep(ask.seconds)
            return await asyncio.sleep(ask.seconds)


async def _call(ask: Call, hands: Hands) -> Any:
    try:
        if is_async(ask.fn):
            return await _awaited(ask, hands)
        # Not on the store's own threads: a step may take long, and commits must go on meanwhile.
        return await to_end(None, functools.partial(call, ask))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled the run; it is what the function came to, and must not end whoever works here.
        raise RuntimeError(f"{ask.what} ended with a cancellation of its own") from error


async def _awaited(ask: Call, hands: Hands) -> Any:
    task, ended = _begin(ask, hands)
    try:
        done, _ = await asyncio.wait({task}, timeout=ask.timeout_s)
        if not done:
            task.cancel()
            stopped, _ = await asyncio.wait({task}, timeout=_GRACE_S)
            raise overdue(ask, running=not stopped)
    except asyncio.CancelledError:
        await _stopped(task)
        ended(task)  # its own callback may come after the run was let go
        raise
    return task.result()


def _begin(ask: Call, hands: Hands) -> tuple[asyncio.Task[Any], Callable[[asyncio.Task[Any]], None]]:
    """Begin an async function; also give what notes that it has ended, also when nobody waits for it any more."""
    over = False

    def ended(task: asyncio.Task[Any]) -> None:
        nonlocal over
        if not task.cancelled():
            task.exception()  # looked at, so that nobody is told that it was not
        if ask.lasting is not None and not over:
            ask.lasting(False)
        over = True

    context = contextvars.copy_context()
    context.run(_enter, ask, hands)
    coroutine = ask.fn(*ask.args, **ask.kwargs)
    if ask.lasting is not None:
        ask.lasting(True)
    task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(coroutine, context=context)
    task.add_done_callback(ended)
    return task, ended


async def _stopped(task: asyncio.Task[Any]) -> None:
    """Cancel a function and stay until it has ended: the run is let go next, and others may carry it on at once."""
    task.cancel()
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()


def _enter(ask: Call, hands: Hands) -> None:
    if ask.within is not None:
        ask.within()
    step = in_step()
    if isinstance(step, StepContext):
        set_step(AsyncStepContext(step, hands))


class AsyncStepContext(StepContext):
    """A ``StepContext`` in an async function: ``heartbeat`` and ``record`` are awaited, the rest only collects."""

    def __init__(self, step: StepContext, hands: Hands) -> None:
        self.__dict__ = step.__dict__  # one and the same step, so that what is collected here is committed there
        self._hands = hands

    async def heartbeat(self) -> None:  # type: ignore[override]
        await self._hands.to_end(StepContext.heartbeat, self)

    async def record(self, progress: Any) -> None:  # type: ignore[override]
        await self._hands.to_end(StepContext.record, self, progress)


class RunOpening:
    """What ``AsyncThread.run`` gives: await it for a run, or use it in ``async with``."""

    def __init__(self, thread: Thread, name: str, handler: str | None, input: Any, hands: Hands) -> None:
        self._open = functools.partial(thread.run, name, handler=handler, input=input)
        self._hands = hands
        self._run: AsyncRun | None = None

    def __await__(self) -> Generator[Any, None, AsyncRun]:
        return self._opened().__await__()

    async def _opened(self) -> AsyncRun:
        opened: list[Work] = []
        try:
            await self._hands.to_end(lambda: opened.append(self._open()._work))
        except asyncio.CancelledError as error:
            for work in opened:  # as the caller went
                await drive(leaving(work, error), work, self._hands)
            raise
        return AsyncRun(opened[0], self._hands)

    async def __aenter__(self) -> AsyncRun:
        self._run = await self._opened()
        return await self._run.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._run is not None
        await self._run.__aexit__(kind, error, trace)


class AsyncRun:
    """A ``Run`` whose methods are awaited."""

    def __init__(self, work: Work, hands: Hands) -> None:
        self._work, self._hands = work, hands
        self._tokens: list[Any] = []
        work.awaits = True

    def __repr__(self) -> str:
        return f"Async{Run(self._work)!r}"

    @property
    def name(self) -> str:
        return self._work.header.name

    @property
    def thread(self) -> Any:
        """The run's thread, as an ``AsyncThread``."""
        from holdfast.aio.thread import AsyncThread  # noqa: PLC0415 - a thread gives runs, and a run its thread

        thread: Any = self._work.thread
        return AsyncThread(thread, self._hands)

    @property
    def input(self) -> Any:
        return Run(self._work).input

    @property
    def status(self) -> str:
        return self._work.header.status

    @property
    def steps(self) -> list[StepInfo]:
        return Run(self._work).steps

    @property
    def result(self) -> Any:
        return Run(self._work).result

    async def step(  # noqa: PLR0913 - a declaration has many words, each by name
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
        options = {
            "effect": effect, "probe": probe, "on_unknown": on_unknown, "retry": retry, "timeout_s": timeout_s,
            "probe_timeout_s": probe_timeout_s, "compensate": compensate, "returns": returns, "log": log,
        }  # fmt: skip
        return await self._drive(self._work.step(name, fn, args, kwargs, options))

    async def wait(self, name: str, *, timeout_s: float | None = None, park: bool | None = None) -> Any:
        return await self._drive(waiting.wait(self._work, name, timeout_s, park))

    async def subtask(
        self, name: str, fn: Callable[..., Any], /, *args: Any, budget: dict[str, float] | None = None, **kwargs: Any
    ) -> Any:
        inner = functools.partial(AsyncSubtask, hands=self._hands) if is_async(fn) else Subtask
        return await self._drive(subtask(self._work, name, fn, args, kwargs, budget, inner))

    async def settle(self, step: str, *, happened: bool, result: Any = None) -> None:
        await self._drive(ending.settle(self._work, step, happened, result))

    async def finish(self, result: Any = None) -> Any:
        return await self._drive(ending.finish(self._work, result))

    async def fail(self, error: BaseException) -> None:
        await self._drive(ending.fail(self._work, error))

    async def abandon(self, reason: str = "") -> None:
        await self._drive(ending.abandon(self._work, reason))

    async def release(self, why: str = "released") -> None:
        self._work.refuse_inside("letting the run go")
        await self._drive(ending.release(self._work, why))

    async def carry_out(self, handler: Callable[[Self], Any]) -> Any:
        self._work.refuse_inside("carrying the run out")
        check_handler(handler)
        async with self:
            result = handler(self)
            return await self.finish(await result if inspect.isawaitable(result) else result)

    async def heartbeat(self) -> None:
        await self._hands.to_end(Run(self._work).heartbeat)

    async def _drive(self, flow: Flow[Any]) -> Any:
        return await drive(flow, self._work, self._hands)

    async def __aenter__(self) -> Self:
        self._tokens.append(set_run(self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reset_run(self._tokens.pop())
        await self._drive(leaving(self._work, error))


class AsyncSubtask(AsyncRun):
    """A ``Subtask`` whose methods are awaited."""

    async def spend(self, **amounts: float) -> dict[str, float]:
        left: dict[str, float] = await self._drive(spend(self._work, amounts))
        return left

    @property
    def left(self) -> dict[str, float]:
        return budget.left(self._work)

    @property
    def spent(self) -> dict[str, float]:
        return budget.used(self._work)


async def replay(thread: Thread, name: str, handler: Callable[..., Any], hands: Hands) -> Replayed:
    """Go through a recorded run with today's handler, blocking or async."""
    if not is_async(handler):
        return await hands.run(thread.replay, name, handler)
    work = await hands.run(thread._replaying, name)
    result, raised = None, None
    try:
        async with AsyncRun(work, hands) as run:
            result = await handler(run)
    except Exception as error:
        raised = error
    return replayed(work, result, raised)


async def resuming(
    store: Store,
    handlers: Any,
    hands: Hands,
    *,
    thread: str | None = None,
    run: str | None = None,
    limit: int | None = None,
) -> AsyncGenerator[Resumed, None]:
    """Carry on every run that may be taken now, or the one that is named, and tell of each."""
    resumer = Resumer(store._runs, handlers, store.thread, store._tend)
    claimed = await hands.to_end(resumer.taken, thread, run, limit)
    async with aclosing(_each(claimed, hands)) as each:
        async for found in each:
            yield found if isinstance(found, Resumed) else await _carry_on(resumer, found, hands)


async def _each(claimed: Claimed, hands: Hands) -> AsyncGenerator[Work | Resumed, None]:
    try:
        while (found := await hands.to_end(next, claimed, None)) is not None:
            yield found
    finally:
        if not hands.closed:
            await surely(claimed.close)  # what was taken and not begun, others may begin


async def _carry_on(resumer: Resumer, found: Work, hands: Hands) -> Resumed:
    made = functools.partial(AsyncRun, hands=hands) if is_async(resumer.handler_of(found)) else Run
    return await drive(resumer.carry_on(found, made), found, hands)


async def work(
    store: Store,
    handlers: Any,
    stop: threading.Event | None,
    poll_s: float,
    on_run: Callable[[Resumed], Any] | None,
    hands: Hands,
) -> int:
    ends = threading.Event() if stop is None else check_part("stop", stop, "is_set", "wait")
    shift = Shift(Resumer(store._runs, handlers, store.thread, store._tend), poll_s, on_run)
    while not ends.is_set():
        shift.begin()
        try:
            async with aclosing(_each(shift.resumer.claimed(), hands)) as each:
                async for found in each:
                    if isinstance(found, Resumed):
                        shift.mention(found)
                        continue
                    shift.note(await _carry_on(shift.resumer, found, hands))
                    if ends.is_set():
                        break
        except Unavailable:
            shift.wait_for_the_store()
        if shift.idle:
            await asyncio.sleep(shift.poll_s)
    return shift.count
