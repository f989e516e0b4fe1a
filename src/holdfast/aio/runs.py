"""Runs for async callers: the same flows as the blocking ones, awaited.

A step may be an async function or a blocking one; blocking ones run in a thread. Deliberately absent: rules of a run.
They are in ``holdfast.steps``; this module only carries out what those flows ask for.
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

from holdfast.aio.offload import Offload, surely, to_end
from holdfast.checks import check_part
from holdfast.clock import Sleeps
from holdfast.errors import Unavailable
from holdfast.steps import budget, lifecycle, signals
from holdfast.steps.declare import Effect, OnUnknown, Retry, is_async
from holdfast.steps.flow import Ask, CallFunction, Flow, RunBlocking, Sleep, WaitForCommit, call, overdue
from holdfast.steps.replay import Replayed, replayed
from holdfast.steps.resume import Claimed, Resumed, Resumer, Shift
from holdfast.steps.run import Run, Subtask, check_handler, leaving
from holdfast.steps.step_context import StepContext, in_step, reset_run, set_run, set_step
from holdfast.steps.subtask import spend, subtask
from holdfast.steps.timeline import StepInfo
from holdfast.steps.work import Work
from holdfast.thread import replay as replay_blocking
from holdfast.thread import replaying

if TYPE_CHECKING:
    from holdfast.store import Store
    from holdfast.thread import Thread

T = TypeVar("T")
_LOOK_S = 0.05
_GRACE_S = 1.0  # for a step that timed out to end


async def drive(flow: Flow[T], work: Work, offload: Offload) -> T:
    """Carry out a flow, awaiting."""
    try:
        ask = next(flow)
        while True:
            try:
                answer = await _perform(ask, work, offload)
            except BaseException as error:
                ask = flow.throw(error)
            else:
                ask = flow.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


async def _perform(ask: Ask, work: Work, offload: Offload) -> Any:
    match ask:
        case RunBlocking():
            return await (surely(ask.work) if ask.surely else offload.to_end(ask.work))
        case CallFunction():
            return await _call(ask, offload)
        case WaitForCommit():
            return await asyncio.sleep(min(ask.seconds, _LOOK_S))  # a blocked thread for each would fill the executor
        case Sleep():
            clock = work.runs.core.clock
            if isinstance(clock, Sleeps):
                return clock.sleep(ask.seconds)
            return await asyncio.sleep(ask.seconds)


async def _call(ask: CallFunction, offload: Offload) -> Any:
    try:
        if is_async(ask.fn):
            return await _awaited(ask, offload)
        # Not on the store's own threads: a step may take long, and commits must go on.
        return await to_end(None, functools.partial(call, ask))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled the run: the function itself did this, and it must not cancel the caller.
        raise RuntimeError(f"{ask.what} cancelled itself") from error


async def _awaited(ask: CallFunction, offload: Offload) -> Any:
    task, ended = _begin(ask, offload)
    try:
        done, _ = await asyncio.wait({task}, timeout=ask.timeout_s)
        if not done:
            task.cancel()
            stopped, _ = await asyncio.wait({task}, timeout=_GRACE_S)
            raise overdue(ask, running=not stopped)
    except asyncio.CancelledError:
        await _stopped(task)
        ended(task)  # its own callback may come after the run was released
        raise
    return task.result()


def _begin(ask: CallFunction, offload: Offload) -> tuple[asyncio.Task[Any], Callable[[asyncio.Task[Any]], None]]:
    """Start an async function; also return what records its end, even if nobody waits for it any more."""
    over = False

    def ended(task: asyncio.Task[Any]) -> None:
        nonlocal over
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not warn
        if ask.lasting is not None and not over:
            ask.lasting(False)
        over = True

    context = contextvars.copy_context()
    context.run(_enter, ask, offload)
    coroutine = ask.fn(*ask.args, **ask.kwargs)
    if ask.lasting is not None:
        ask.lasting(True)
    task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(coroutine, context=context)
    task.add_done_callback(ended)
    return task, ended


async def _stopped(task: asyncio.Task[Any]) -> None:
    """Cancel a function and wait until it has ended: the run is released next, and others may continue it."""
    task.cancel()
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()


def _enter(ask: CallFunction, offload: Offload) -> None:
    if ask.within is not None:
        ask.within()
    step = in_step()
    if isinstance(step, StepContext):
        set_step(AsyncStepContext(step, offload))


class AsyncStepContext(StepContext):
    """A ``StepContext`` in an async function: ``heartbeat`` and ``record`` are awaited, the rest only collects."""

    def __init__(self, step: StepContext, offload: Offload) -> None:
        self.__dict__ = step.__dict__  # the same step, so that what is collected here is committed there
        self._offload = offload

    async def heartbeat(self) -> None:  # type: ignore[override]
        await self._offload.to_end(StepContext.heartbeat, self)

    async def record(self, progress: Any) -> None:  # type: ignore[override]
        await self._offload.to_end(StepContext.record, self, progress)


class RunOpening:
    """What ``AsyncThread.run`` returns: await it for a run, or use it in ``async with``."""

    def __init__(self, thread: Thread, name: str, handler: str | None, input: Any, offload: Offload) -> None:
        self._open = functools.partial(thread.run, name, handler=handler, input=input)
        self._offload = offload
        self._run: AsyncRun | None = None

    def __await__(self) -> Generator[Any, None, AsyncRun]:
        return self._opened().__await__()

    async def _opened(self) -> AsyncRun:
        opened: list[Work] = []
        try:
            await self._offload.to_end(lambda: opened.append(self._open().work))
        except asyncio.CancelledError as error:
            for work in opened:  # just as the caller was cancelled
                await drive(leaving(work, error), work, self._offload)
            raise
        return AsyncRun(opened[0], self._offload)

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

    def __init__(self, work: Work, offload: Offload) -> None:
        self.work, self._offload = work, offload
        self._tokens: list[Any] = []
        work.awaits = True

    def __repr__(self) -> str:
        return f"Async{Run(self.work)!r}"

    @property
    def name(self) -> str:
        return self.work.header.name

    @property
    def thread(self) -> Any:
        """The run's thread, as an ``AsyncThread``."""
        from holdfast.aio.thread import AsyncThread  # noqa: PLC0415 - a thread gives runs, and a run its thread

        thread: Any = self.work.thread
        return AsyncThread(thread, self._offload)

    @property
    def input(self) -> Any:
        return Run(self.work).input

    @property
    def status(self) -> str:
        return self.work.header.status

    @property
    def steps(self) -> list[StepInfo]:
        return Run(self.work).steps

    @property
    def result(self) -> Any:
        return Run(self.work).result

    async def step(  # noqa: PLR0913 - a declaration has many options, each by name
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
        return await self._drive(self.work.step(name, fn, args, kwargs, options))

    async def wait(self, name: str, *, timeout_s: float | None = None, park: bool | None = None) -> Any:
        return await self._drive(signals.wait(self.work, name, timeout_s, park))

    async def subtask(
        self, name: str, fn: Callable[..., Any], /, *args: Any, budget: dict[str, float] | None = None, **kwargs: Any
    ) -> Any:
        inner = functools.partial(AsyncSubtask, offload=self._offload) if is_async(fn) else Subtask
        return await self._drive(subtask(self.work, name, fn, args, kwargs, budget, inner))

    async def settle(self, step: str, *, happened: bool, result: Any = None) -> None:
        await self._drive(lifecycle.settle(self.work, step, happened, result))

    async def finish(self, result: Any = None) -> Any:
        return await self._drive(lifecycle.finish(self.work, result))

    async def fail(self, error: BaseException) -> None:
        await self._drive(lifecycle.fail(self.work, error))

    async def abandon(self, reason: str = "") -> None:
        await self._drive(lifecycle.abandon(self.work, reason))

    async def release(self, why: str = "released") -> None:
        self.work.refuse_inside("releasing the run")
        await self._drive(lifecycle.release(self.work, why))

    async def carry_out(self, handler: Callable[[Self], Any]) -> Any:
        self.work.refuse_inside("carrying the run out")
        check_handler(handler)
        async with self:
            result = handler(self)
            return await self.finish(await result if inspect.isawaitable(result) else result)

    async def heartbeat(self) -> None:
        await self._offload.to_end(Run(self.work).heartbeat)

    async def _drive(self, flow: Flow[Any]) -> Any:
        return await drive(flow, self.work, self._offload)

    async def __aenter__(self) -> Self:
        self._tokens.append(set_run(self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reset_run(self._tokens.pop())
        await self._drive(leaving(self.work, error))


class AsyncSubtask(AsyncRun):
    """A ``Subtask`` whose methods are awaited."""

    async def spend(self, **amounts: float) -> dict[str, float]:
        left: dict[str, float] = await self._drive(spend(self.work, amounts))
        return left

    @property
    def left(self) -> dict[str, float]:
        return budget.left(self.work)

    @property
    def spent(self) -> dict[str, float]:
        return budget.used(self.work)


async def replay(thread: Thread, name: str, handler: Callable[..., Any], offload: Offload) -> Replayed:
    """Replay a recorded run with today's handler, blocking or async."""
    if not is_async(handler):
        return await offload.run(replay_blocking, thread, name, handler)
    work = await offload.run(replaying, thread, name)
    result, raised = None, None
    try:
        async with AsyncRun(work, offload) as run:
            result = await handler(run)
    except Exception as error:
        raised = error
    return replayed(work, result, raised)


async def resuming(
    store: Store,
    handlers: Any,
    offload: Offload,
    *,
    thread: str | None = None,
    run: str | None = None,
    limit: int | None = None,
) -> AsyncGenerator[Resumed, None]:
    """Continue every run that is due, or the named one, and yield each outcome."""
    resumer = store.wiring.resumer(handlers)
    claimed = await offload.to_end(resumer.taken, thread, run, limit)
    async with aclosing(_each(claimed, offload)) as each:
        async for found in each:
            yield found if isinstance(found, Resumed) else await _carry_on(resumer, found, offload)


async def _each(claimed: Claimed, offload: Offload) -> AsyncGenerator[Work | Resumed, None]:
    try:
        while (found := await offload.to_end(next, claimed, None)) is not None:
            yield found
    finally:
        if not offload.closed:
            await surely(claimed.close)  # others may start what was taken but not started


async def _carry_on(resumer: Resumer, found: Work, offload: Offload) -> Resumed:
    made = functools.partial(AsyncRun, offload=offload) if is_async(resumer.handler_of(found)) else Run
    return await drive(resumer.carry_on(found, made), found, offload)


async def work(
    store: Store,
    handlers: Any,
    stop: threading.Event | None,
    poll_s: float,
    on_run: Callable[[Resumed], Any] | None,
    offload: Offload,
) -> int:
    ends = threading.Event() if stop is None else check_part("stop", stop, "is_set", "wait")
    shift = Shift(store.wiring.resumer(handlers), poll_s, on_run)
    while not ends.is_set():
        shift.begin()
        try:
            async with aclosing(_each(shift.resumer.claimed(), offload)) as each:
                async for found in each:
                    if isinstance(found, Resumed):
                        shift.mention(found)
                        continue
                    shift.note(await _carry_on(shift.resumer, found, offload))
                    if ends.is_set():
                        break
        except Unavailable:
            shift.wait_for_the_store()
        if shift.idle:
            await asyncio.sleep(shift.poll_s)
    return shift.count
