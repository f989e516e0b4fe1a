"""The same store for async callers: same names, same meaning, each method one hand-off.

Commits that need no reading beforehand go straight to the engine's writer, so fifty tasks share one fsync without
fifty threads; everything else runs on a small bounded executor. A commit that was handed over runs to its end even
when the task that awaited it is cancelled: it is never half written. Deliberately absent: rules of its own. Each
class wraps its blocking twin, and a test keeps their signatures equal.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, ParamSpec, Self, TypeVar, overload

from holdfast import store as blocking
from holdfast.clock import Clock
from holdfast.engine.contract import Commit, Notify, Outcome, Receipt, Submits
from holdfast.errors import Misconfigured
from holdfast.ids import Ids
from holdfast.ledger import log
from holdfast.ledger.core import Core, Pending
from holdfast.ledger.paths import Difference
from holdfast.ledger.schema import Registry
from holdfast.ledger.state import Expect, OnStale
from holdfast.ledger.thread import Thread, check_count
from holdfast.ledger.turn import Turn
from holdfast.records import Checkpoint, Entry, Loaded, Report, Revision, ThreadInfo

if TYPE_CHECKING:
    from holdfast.transfer import ImportReport, Manifest, Progress

P = ParamSpec("P")
T = TypeVar("T")
_WORKERS = 8
_POLL_S = 0.02


class _Hands:
    """Carries work away from the event loop."""

    def __init__(self, core: Core, executor: ThreadPoolExecutor) -> None:
        self._core = core
        self._executor = executor
        self._submits = core.engine if isinstance(core.engine, Submits) else None
        self._way_back: tuple[asyncio.AbstractEventLoop, Notify] | None = None
        self.closed = False

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking work on the executor, with the caller's context variables."""
        if self.closed:
            raise Misconfigured("this store is closed")
        call = functools.partial(contextvars.copy_context().run, work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def commit(self, pending: Pending[Any]) -> Awaitable[Receipt]:
        """Hand a prepared write to the engine's own queue where it has one; the caller finishes it."""
        engine, tenant = self._core.engine, self._core.tenant
        if self._submits is None:
            return self.run(engine.commit, tenant, pending.ops, pending.time)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Receipt] = loop.create_future()
        self._submits.submit(tenant, pending.ops, pending.time, self._notify(loop), future)
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
        """Run the last piece of work, and take no more. It is carried out even if nobody waits for it to the end."""
        ending = self._executor.submit(work)
        self.closed = True
        self._executor.shutdown(wait=False)
        await asyncio.shield(asyncio.wrap_future(ending))


def _settle(outcomes: list[Outcome]) -> None:
    for future, receipt, error in outcomes:
        assert isinstance(future, asyncio.Future)
        if future.done():
            continue  # whoever awaited it was cancelled; the commit happened all the same
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(receipt)


def _close_unwanted(opening: Future[blocking.Store]) -> None:
    """Whoever asked for this store was cancelled while it was being opened."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class _Opening:
    """What ``aio.open`` gives: await it for a store, or use it in ``async with``."""

    def __init__(self, make: Callable[[], blocking.Store]) -> None:
        self._make = make
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[Any, None, AsyncStore]:
        return self._open().__await__()

    async def _open(self) -> AsyncStore:
        executor = ThreadPoolExecutor(_WORKERS, thread_name_prefix="holdfast-aio")
        opening = executor.submit(self._make)
        try:
            store = await asyncio.wrap_future(opening)
        except BaseException:
            opening.add_done_callback(_close_unwanted)
            executor.shutdown(wait=False)
            raise
        return AsyncStore(store, executor)

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._open()
        return self._store

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._store is not None
        await self._store.close()


def open(
    url: str | Path | None = None,
    *,
    tenant: str | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    schemas: Registry | None = None,
) -> _Opening:
    """Open a store for async use: ``store = await aio.open("agent.db")`` or ``async with aio.open(…) as store``."""
    return _Opening(functools.partial(blocking.open, url, tenant=tenant, clock=clock, ids=ids, schemas=schemas))


class AsyncStore:
    """A ``Store`` whose methods are awaited."""

    def __init__(self, store: blocking.Store, executor: ThreadPoolExecutor) -> None:
        self._store = store
        self._hands = _Hands(store._core, executor)

    @property
    def tenant(self) -> str:
        return self._store.tenant

    def thread(
        self, id: str, *, user: str | None = None, agent: str | None = None, tags: Iterable[str] = ()
    ) -> AsyncThread:
        return AsyncThread(self._store.thread(id, user=user, agent=agent, tags=tags), self._hands)

    async def threads(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        tag: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 100,
    ) -> list[ThreadInfo]:
        return await self._hands.run(
            self._store.threads, user=user, agent=agent, tag=tag, since=since, until=until, limit=limit
        )

    async def watch(self, *, after: int = 0, timeout_s: float | None = None) -> AsyncIterator[Commit]:
        check_count("after", after)
        feed = self._store._core.engine.feed
        waited = 0.0
        while True:
            commits = await self._hands.run(feed, self.tenant, after)
            for commit in commits:
                yield commit
                after = commit.position
            waited = 0.0 if commits else waited + _POLL_S
            if timeout_s is not None and waited > timeout_s:
                return
            if not commits:  # a thread blocked per watcher would use the executor up
                await asyncio.sleep(_POLL_S)

    async def erase(
        self, *, thread: str | None = None, user: str | None = None, agent: str | None = None, forever: bool = True
    ) -> int:
        return await self._hands.run(self._store.erase, thread=thread, user=user, agent=agent, forever=forever)

    async def verify(self) -> Report:
        return await self._hands.run(self._store.verify)

    async def export_to(
        self,
        target: str | Path | BinaryIO,
        *,
        thread: str | None = None,
        user: str | None = None,
        format: str | None = None,
        progress: Progress | None = None,
    ) -> Manifest:
        return await self._hands.run(
            self._store.export_to, target, thread=thread, user=user, format=format, progress=progress
        )

    async def import_from(
        self, source: str | Path | bytes | BinaryIO, *, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        return await self._hands.run(self._store.import_from, source, dry_run=dry_run, progress=progress)

    async def backup(self, path: str | Path, *, progress: Progress | None = None) -> Path:
        return await self._hands.run(self._store.backup, path, progress=progress)

    async def close(self) -> None:
        if not self._hands.closed:
            await self._hands.end(self._store.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncThread:
    """A ``Thread`` whose methods are awaited."""

    def __init__(self, thread: Thread, hands: _Hands) -> None:
        self._thread = thread
        self._hands = hands
        self.id = thread.id

    def __repr__(self) -> str:
        return f"Async{self._thread!r}"

    @overload
    async def append(
        self, item: Any, /, *, kind: str = ..., key: str | None = ..., expect: int | None = ...
    ) -> Entry: ...
    @overload
    async def append(
        self, item: Any, second: Any, /, *more: Any, kind: str = ..., key: str | None = ..., expect: int | None = ...
    ) -> list[Entry]: ...
    async def append(
        self, *items: Any, kind: str = "message", key: str | None = None, expect: int | None = None
    ) -> Entry | list[Entry]:
        pending = self._thread._appending(log.drafts(items, kind, key), expect, whole=key is not None)
        return pending.finish(await self._hands.commit(pending))

    async def log(self, last: int | None = None, *, after: int = 0, limit: int | None = None) -> list[Entry]:
        return await self._hands.run(self._thread.log, last, after=after, limit=limit)

    async def entry(self, number: int | None = None, *, key: str | None = None) -> Entry:
        return await self._hands.run(self._thread.entry, number, key=key)

    async def info(self) -> ThreadInfo:
        return await self._hands.run(self._thread.info)

    async def exists(self) -> bool:
        return await self._hands.run(self._thread.exists)

    async def count(self) -> int:
        return await self._hands.run(self._thread.count)

    async def tag(self, *tags: str) -> ThreadInfo:
        return await self._hands.run(self._thread.tag, *tags)

    async def untag(self, *tags: str) -> ThreadInfo:
        return await self._hands.run(self._thread.untag, *tags)

    def turn(self, *, key: str | None = None, expect: int | None = None) -> AsyncTurn:
        return AsyncTurn(self._thread.turn(key=key, expect=expect), self._hands)

    @overload
    async def state(
        self,
        type: type[T],
        *,
        default: T | None = ...,
        revision: int | None = ...,
        as_of: datetime | None = ...,
        on_stale: OnStale = ...,
    ) -> Loaded[T]: ...
    @overload
    async def state(
        self,
        type: None = ...,
        *,
        default: Any = ...,
        revision: int | None = ...,
        as_of: datetime | None = ...,
        on_stale: OnStale = ...,
    ) -> Loaded[Any]: ...
    async def state(
        self,
        type: Any = None,
        *,
        default: Any = None,
        revision: int | None = None,
        as_of: datetime | None = None,
        on_stale: OnStale = "report",
    ) -> Loaded[Any]:
        return await self._hands.run(
            self._thread.state, type, default=default, revision=revision, as_of=as_of, on_stale=on_stale
        )

    async def save(
        self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent", key: str | None = None
    ) -> int:
        return await self._hands.run(self._thread.save, value, expect=expect, schema=schema, by=by, key=key)

    async def patch(self, path: str, value: Any, *, expect: int | None = None, by: str = "agent") -> int:
        return await self._hands.run(self._thread.patch, path, value, expect=expect, by=by)

    async def confirm(self, path: str, *, by: str = "agent") -> int:
        return await self._hands.run(self._thread.confirm, path, by=by)

    async def refresh(self, type: Any = None) -> Loaded[Any]:
        return await self._hands.run(self._thread.refresh, type)

    async def revisions(self, last: int | None = None) -> list[Revision]:
        return await self._hands.run(self._thread.revisions, last)

    async def diff(self, old: int, new: int | None = None) -> list[Difference]:
        return await self._hands.run(self._thread.diff, old, new)

    async def checkpoint(self, name: str, *, note: str = "", replace: bool = False) -> Checkpoint:
        return await self._hands.run(self._thread.checkpoint, name, note=note, replace=replace)

    async def checkpoints(self) -> list[Checkpoint]:
        return await self._hands.run(self._thread.checkpoints)

    async def rewind(self, to: str | int) -> Checkpoint:
        return await self._hands.run(self._thread.rewind, to)

    async def fork(
        self, id: str, *, at: str | int | None = None, user: str | None = None, agent: str | None = None
    ) -> AsyncThread:
        forked = await self._hands.run(self._thread.fork, id, at=at, user=user, agent=agent)
        return AsyncThread(forked, self._hands)


class AsyncTurn:
    """A ``Turn`` that is committed by ``async with``. Putting things into it waits for nothing."""

    def __init__(self, turn: Turn, hands: _Hands) -> None:
        self._turn = turn
        self._hands = hands

    @property
    def entries(self) -> list[Entry]:
        return self._turn.entries

    @property
    def revision(self) -> int | None:
        return self._turn.revision

    def append(self, *items: Any, kind: str = "message", key: str | None = None) -> None:
        self._turn.append(*items, kind=kind, key=key)

    def state(self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent") -> None:
        self._turn.state(value, expect=expect, schema=schema, by=by)

    save = state

    async def __aenter__(self) -> Self:
        self._turn._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._turn._abandon()
            return
        try:
            # Working a turn out may read the revision it is based on, so that part is not for the event loop.
            pending = await self._hands.run(self._turn._pending) if self._turn._saves else self._turn._pending()
            pending.finish(await self._hands.commit(pending))
        except BaseException:
            self._turn._fail()
            raise
