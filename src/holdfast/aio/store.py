"""A store for async callers.

Deliberately absent: rules of its own. It wraps its blocking twin, and a test keeps their signatures equal.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, ParamSpec, Self, TypeVar, Unpack

from holdfast import store as blocking
from holdfast.aio.feed import AsyncFollower, watching
from holdfast.aio.folder import AsyncFolder
from holdfast.aio.memory import AsyncMemories
from holdfast.aio.offload import Offload, workers
from holdfast.aio.runs import replay, resuming, work
from holdfast.aio.thread import AsyncThread
from holdfast.checks import check_function
from holdfast.clock import Clock
from holdfast.engine.contract import Commit
from holdfast.engine.postgres_options import PostgresOptions
from holdfast.ids import Ids
from holdfast.ledger import feed
from holdfast.ledger.expiry import Expired
from holdfast.ledger.feed import FollowerInfo
from holdfast.ledger.quotas import KEEP, Quota, QuotaUsage
from holdfast.ledger.schema import Registry
from holdfast.ledger.thread import check_count
from holdfast.providers.choose import AUTO, RerankerSpec, Spec
from holdfast.records import Erasure, FolderInfo, ThreadInfo, UserInfo, VerifyReport
from holdfast.steps.replay import Replayed
from holdfast.steps.resume import Handlers, Resumed
from holdfast.steps.run import Run
from holdfast.steps.runs import LEASE_S
from holdfast.steps.timeline import RunInfo
from holdfast.store import REPLICA_LAG_S

if TYPE_CHECKING:
    from holdfast.aio.session import AsyncSession
    from holdfast.archive import ArchiveManifest, ImportReport, Progress
    from holdfast.context.report import Context
    from holdfast.providers.models.choose import Spec as ModelSpec
    from holdfast.sessions.context_source import Settings
    from holdfast.sessions.session import SessionSettings

P = ParamSpec("P")
T = TypeVar("T")


def _close_unwanted(opening: Future[blocking.Store]) -> None:
    """Close a store whose caller was cancelled while it was being opened."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class StoreOpening:
    """What ``aio.open`` returns: await it for a store, or use it in ``async with``."""

    def __init__(self, make: Callable[[], blocking.Store]) -> None:
        self._make = make
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[Any, None, AsyncStore]:
        return self._open().__await__()

    async def _open(self) -> AsyncStore:
        executor = workers()
        opening = executor.submit(self._make)
        try:
            store = await asyncio.wrap_future(opening)
        except BaseException:
            opening.add_done_callback(_close_unwanted)
            executor.shutdown(wait=False)
            raise
        return AsyncStore(store, Offload(store.core, executor))

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._open()
        return self._store

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._store is not None
        await self._store.close()


def open(  # noqa: PLR0913 - how a store is opened, each by name
    url: str | Path | None = None,
    *,
    tenant: str | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    schemas: Registry | None = None,
    lease_s: float = LEASE_S,
    embedder: Spec = AUTO,
    reranker: RerankerSpec = AUTO,
    actor: str | None = None,
    max_context: int | str | None = None,
    postgres: PostgresOptions | None = None,
    replica: str | None = None,
    replica_lag_s: float = REPLICA_LAG_S,
) -> StoreOpening:
    """Open a store for async use: ``store = await aio.open("agent.db")`` or ``async with aio.open(…) as store``."""
    return StoreOpening(
        functools.partial(
            blocking.open,
            url,
            tenant=tenant,
            clock=clock,
            ids=ids,
            schemas=schemas,
            lease_s=lease_s,
            embedder=embedder,
            reranker=reranker,
            actor=actor,
            max_context=max_context,
            postgres=postgres,
            replica=replica,
            replica_lag_s=replica_lag_s,
        )
    )


def _awaited(model: Callable[..., Any], loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    """An async function as a model: it runs in the loop of its caller, where its client lives."""

    @functools.wraps(model)
    def ask(*asked: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(model(*asked), loop).result()

    return ask


class AsyncStore:
    """A ``Store`` whose methods are awaited."""

    def __init__(self, store: blocking.Store, offload: Offload) -> None:
        self.blocking = store
        self._offload = offload

    @property
    def tenant(self) -> str:
        return self.blocking.tenant

    @property
    def actor(self) -> str | None:
        return self.blocking.actor

    def for_tenant(self, tenant: str, *, actor: str | None = None) -> AsyncStore:
        return self._view(self.blocking.for_tenant(tenant, actor=actor))

    def acting_as(self, actor: str | None) -> AsyncStore:
        return self._view(self.blocking.acting_as(actor))

    def _view(self, store: blocking.Store) -> AsyncStore:
        """A store on the same engine and executor, which close with the store it came from."""
        return AsyncStore(store, self._offload.of(store.core))

    async def tenants(self) -> list[str]:
        return await self._offload.run(self.blocking.tenants)

    async def set_quota(self, *, entries: Quota = KEEP, memories: Quota = KEEP, bytes: Quota = KEEP) -> QuotaUsage:
        return await self._offload.to_end(self.blocking.set_quota, entries=entries, memories=memories, bytes=bytes)

    async def usage(self) -> QuotaUsage:
        return await self._offload.run(self.blocking.usage)

    def thread(
        self, id: str, *, user: str | None = None, agent: str | None = None, tags: Iterable[str] = ()
    ) -> AsyncThread:
        return AsyncThread(self.blocking.thread(id, user=user, agent=agent, tags=tags), self._offload)

    def memory(self, user: str | None = None, *, agent: str | None = None) -> AsyncMemories:
        return AsyncMemories(self.blocking.memory(user, agent=agent), self._offload)

    def folder(self, name: str, *, user: str | None = None, agent: str | None = None) -> AsyncFolder:
        return AsyncFolder(self.blocking.folder(name, user=user, agent=agent), self._offload)

    async def folders(self, *, user: str | None = None, agent: str | None = None) -> list[FolderInfo]:
        return await self._offload.run(self.blocking.folders, user=user, agent=agent)

    async def context(
        self,
        thread: AsyncThread | str,
        input: Any,
        budget: int | None = None,
        *,
        model: str | None = None,
        **settings: Unpack[Settings],
    ) -> Context:
        own: Any = thread.blocking if isinstance(thread, AsyncThread) else thread
        return await self._offload.run(self.blocking.context, own, input, budget, model=model, **settings)

    def session(
        self,
        thread: AsyncThread | str,
        *,
        user: str | None = None,
        agent: str | None = None,
        model: ModelSpec = None,
        **ways: Unpack[SessionSettings],
    ) -> AsyncSession:
        from holdfast.aio.session import AsyncSession  # noqa: PLC0415 - it imports everything a session needs

        own: Any = thread.blocking if isinstance(thread, AsyncThread) else thread
        if inspect.iscoroutinefunction(model):
            model = _awaited(model, asyncio.get_running_loop())
        return AsyncSession(self.blocking.session(own, user=user, agent=agent, model=model, **ways), self._offload)

    async def users(self) -> list[UserInfo]:
        return await self._offload.run(self.blocking.users)

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
        return await self._offload.run(
            self.blocking.threads, user=user, agent=agent, tag=tag, since=since, until=until, limit=limit
        )

    async def runs(
        self,
        *,
        thread: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        status: str | None = None,
        limit: int | None = 100,
    ) -> list[RunInfo]:
        return await self._offload.run(
            self.blocking.runs, thread=thread, user=user, agent=agent, status=status, limit=limit
        )

    async def due(self) -> list[RunInfo]:
        return await self._offload.run(self.blocking.due)

    async def replay(self, thread: AsyncThread | str, run: str, handler: Callable[[Run], Any]) -> Replayed:
        """Check a recorded run against today's code. An async handler gets an ``AsyncRun``."""
        own = thread.blocking if isinstance(thread, AsyncThread) else self.blocking.thread(thread)
        return await replay(own, run, handler, self._offload)

    async def resume(
        self,
        handlers: Handlers,
        *,
        thread: str | None = None,
        run: str | None = None,
        limit: int | None = None,
        on_run: Callable[[Resumed], Any] | None = None,
    ) -> list[Resumed]:
        """Continue every run that no process works on. An async handler gets an ``AsyncRun``."""
        check_function("on_run", on_run)
        report = []
        async with aclosing(
            resuming(self.blocking, handlers, self._offload, thread=thread, run=run, limit=limit)
        ) as resumed:
            async for found in resumed:
                report.append(found)
                if on_run is not None:
                    on_run(found)
        return report

    async def work(
        self,
        handlers: Handlers,
        *,
        stop: threading.Event | None = None,
        poll_s: float = 1.0,
        on_run: Callable[[Resumed], Any] | None = None,
    ) -> int:
        """Keep resuming runs until ``stop`` is set or this task is cancelled."""
        return await work(self.blocking, handlers, stop, poll_s, on_run, self._offload)

    async def watch(
        self,
        *,
        kinds: str | Iterable[str] | None = None,
        user: str | None = None,
        agent: str | None = None,
        thread: str | None = None,
        after: int = 0,
        timeout_s: float | None = None,
    ) -> AsyncIterator[Commit]:
        check_count("after", after)
        feed.check_timeout(timeout_s)
        only = feed.interest(kinds, user, agent, thread)
        async with aclosing(watching(self.blocking.core, self._offload, after, only, timeout_s)) as commits:
            async for commit in commits:
                yield commit

    async def feed_head(self) -> int:
        return await self._offload.run(self.blocking.feed_head)

    def follower(
        self,
        name: str,
        *,
        kinds: str | Iterable[str] | None = None,
        user: str | None = None,
        agent: str | None = None,
        thread: str | None = None,
        after: int = 0,
    ) -> AsyncFollower:
        own = self.blocking.follower(name, kinds=kinds, user=user, agent=agent, thread=thread, after=after)
        return AsyncFollower(own, self._offload)

    async def followers(self) -> list[FollowerInfo]:
        return await self._offload.run(self.blocking.followers)

    async def trim_feed(
        self, *, older_than: timedelta | None = None, keep: int | None = None, past_followers: bool = False
    ) -> int:
        return await self._offload.to_end(
            self.blocking.trim_feed, older_than=older_than, keep=keep, past_followers=past_followers
        )

    async def expired(self, *, before: datetime | None = None, limit: int | None = 100) -> list[Expired]:
        return await self._offload.run(self.blocking.expired, before=before, limit=limit)

    async def erase(
        self,
        *,
        thread: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        forever: bool = True,
        dry_run: bool = False,
    ) -> Erasure:
        return await self._offload.run(
            self.blocking.erase, thread=thread, user=user, agent=agent, forever=forever, dry_run=dry_run
        )

    async def finish_erasures(self) -> int:
        return await self._offload.run(self.blocking.finish_erasures)

    async def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        return await self._offload.run(self.blocking.rebuild, progress=progress)

    async def verify(self, *, tenant: str | None = None) -> VerifyReport:
        return await self._offload.run(self.blocking.verify, tenant=tenant)

    async def export(
        self,
        target: str | Path | BinaryIO,
        *,
        thread: str | None = None,
        user: str | None = None,
        format: str | None = None,
        progress: Progress | None = None,
    ) -> ArchiveManifest:
        return await self._offload.run(
            self.blocking.export, target, thread=thread, user=user, format=format, progress=progress
        )

    async def import_(
        self, source: str | Path | bytes | BinaryIO, *, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        return await self._offload.run(self.blocking.import_, source, dry_run=dry_run, progress=progress)

    async def backup(self, path: str | Path, *, progress: Progress | None = None) -> Path:
        return await self._offload.run(self.blocking.backup, path, progress=progress)

    async def close(self) -> None:
        if self._offload.borrowed:
            await self._offload.run(self.blocking.close)
        elif not self._offload.closed:
            await self._offload.end(self.blocking.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
