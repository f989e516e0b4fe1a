"""Moving work off the event loop.

Commits that need no reading beforehand go straight to the engine's writer, so fifty tasks share one fsync without fifty
threads; everything else runs on a small bounded executor. A commit that was handed over runs to its end even if the
task that awaited it is cancelled: it is never half written. Work that must not finish behind its caller's back is
awaited to its end (``to_end``), and releases that others wait for are always carried out (``surely``). Deliberately
absent: what the work is.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar, cast

from holdfast import atfork
from holdfast.engine.contract import Notify, Outcome, Receipt, Submits
from holdfast.errors import Misconfigured
from holdfast.ledger.core import Core, Pending

P = ParamSpec("P")
T = TypeVar("T")
_WORKERS = 8


def workers() -> ThreadPoolExecutor:
    """The threads of an async store."""
    return ThreadPoolExecutor(_WORKERS, thread_name_prefix="holdfast-aio")


class Offload:
    """Moves work off the event loop."""

    def __init__(self, core: Core, lender: ThreadPoolExecutor | Offload) -> None:
        self._core = core
        self._lender = lender if isinstance(lender, Offload) else None
        self._own = None if isinstance(lender, Offload) else lender
        self._submits = core.engine if isinstance(core.engine, Submits) else None
        self._way_back: tuple[asyncio.AbstractEventLoop, Notify] | None = None
        self._closed = False
        atfork.join(in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        """Start over in a forked child, which has no threads yet."""
        self._own, self._way_back = self._own and workers(), None

    @property
    def _executor(self) -> ThreadPoolExecutor:
        if self._lender is not None:
            return self._lender._executor
        assert self._own is not None
        return self._own

    @property
    def closed(self) -> bool:
        return self._closed if self._lender is None else self._lender.closed

    @property
    def borrowed(self) -> bool:
        """Whether the executor belongs to another store, which ends it."""
        return self._lender is not None

    def of(self, core: Core) -> Offload:
        """The same executor for another tenant or actor of the same engine."""
        return Offload(core, self._lender or self)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking work on the executor, with the caller's context variables."""
        if self.closed:
            raise Misconfigured("this store is closed")
        call = functools.partial(contextvars.copy_context().run, work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def to_end(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking work on the executor; a cancellation counts only once the work, if begun, has ended."""
        if self.closed:
            raise Misconfigured("this store is closed")
        return await to_end(self._executor, functools.partial(work, *args, **kwargs))

    def commit(self, pending: Pending[Any]) -> Awaitable[Receipt]:
        """Hand a prepared write to the engine's own queue if it has one; the caller finishes it."""
        if self._submits is None:
            return self.run(self._core.write, pending.ops, pending.time)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Receipt] = loop.create_future()
        self._submits.submit(self._core.tenant, pending.ops, pending.time, self._notify(loop), future, self._core.actor)
        return future

    def _notify(self, loop: asyncio.AbstractEventLoop) -> Notify:
        """The way back to an event loop: one call for a whole group of commits, not one for each."""
        way_back = self._way_back
        if way_back is None or way_back[0] is not loop:

            def notify(outcomes: list[Outcome]) -> None:
                loop.call_soon_threadsafe(_settle, outcomes)

            way_back = self._way_back = (loop, notify)
        return way_back[1]

    async def end(self, work: Callable[[], None]) -> None:
        """Run the last piece of work, and accept no more. It is carried out even if nobody waits for it."""
        ending = self._executor.submit(work)
        self._closed = True
        self._executor.shutdown(wait=False)
        await asyncio.shield(asyncio.wrap_future(ending))


async def to_end(executor: Executor | None, work: Callable[[], T]) -> T:
    """Run blocking work in a thread, and wait until it has ended: a thread cannot be stopped.

    A cancellation before it starts keeps it from starting; a later one is raised after its end.
    """
    gate: Future[None] = Future()
    future = asyncio.get_running_loop().run_in_executor(executor, _begun, gate, contextvars.copy_context(), work)
    return cast(T, await _end_of(future, gate.cancel))  # it ran, unless the caller was cancelled


async def surely(work: Callable[[], T]) -> T:
    """Do the work in its own thread, and wait until it is done, however often the caller is cancelled meanwhile.

    For releases: in a shared executor they would queue behind the callers that wait for them.
    """
    own = ThreadPoolExecutor(1, "holdfast-release")
    future = asyncio.get_running_loop().run_in_executor(own, work)
    own.shutdown(wait=False)
    return await _end_of(future, lambda: False)


async def _end_of(future: asyncio.Future[T], drop: Callable[[], bool]) -> T:
    """Wait until work in a thread has ended, unless it can be dropped; raise a cancellation only after that."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})  # and not the future itself, which would be cancelled as well
        except asyncio.CancelledError as error:
            if drop():
                raise
            cancelled = error
    if cancelled is None:
        return future.result()
    try:
        future.cancelled() or future.exception()  # retrieved, so that asyncio does not warn
        raise cancelled
    finally:
        del cancelled  # it refers to this frame


def _begun(gate: Future[None], context: contextvars.Context, work: Callable[[], T]) -> T | None:
    if not gate.set_running_or_notify_cancel():
        return None  # nobody waits, so it must not be an error: asyncio would log it as never retrieved
    try:
        return context.run(work)
    except StopIteration as error:
        raise RuntimeError(f"a function raised {error!r}, which no event loop can pass on") from error


def _settle(outcomes: list[Outcome]) -> None:
    for future, receipt, error in outcomes:
        assert isinstance(future, asyncio.Future)
        if future.done():
            continue  # the awaiting task was cancelled; the commit happened anyway
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(receipt)
