"""A thread and a turn for async callers.

Deliberately absent: rules of their own. Each class wraps its blocking twin, and a test keeps their signatures equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from holdfast.aio.handoff import AsyncHandoff
from holdfast.aio.hold import AsyncHold
from holdfast.aio.offload import Offload
from holdfast.aio.runs import RunOpening
from holdfast.errors import Conflict
from holdfast.ledger import log
from holdfast.ledger.state import Expect, OnStale, advised
from holdfast.ledger.turn import TurnDraft
from holdfast.records import Checkpoint, Entry, Loaded, Revision, ThreadInfo
from holdfast.steps.signals import Signal
from holdfast.steps.timeline import RunInfo, Timeline
from holdfast.thread import Thread

T = TypeVar("T")


class AsyncThread:
    """A ``Thread`` whose methods are awaited."""

    def __init__(self, thread: Thread, offload: Offload) -> None:
        self.blocking = thread
        self._offload = offload
        self.id = thread.id

    def __repr__(self) -> str:
        return f"Async{self.blocking!r}"

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
        pending = self.blocking.logbook.appending(log.drafts(items, kind, key), expect, whole=key is not None)
        return pending.finish(await self._offload.commit(pending))

    async def log(self, last: int | None = None, *, after: int = 0, limit: int | None = None) -> list[Entry]:
        return await self._offload.run(self.blocking.log, last, after=after, limit=limit)

    async def messages(self, last: int | None = None) -> list[dict[str, Any]]:
        return await self._offload.run(self.blocking.messages, last)

    async def tag(self, *tags: str, remove: Iterable[str] = ()) -> ThreadInfo:
        return await self._offload.to_end(self.blocking.tag, *tags, remove=remove)

    async def entry(self, number: int | None = None, *, key: str | None = None) -> Entry:
        return await self._offload.run(self.blocking.entry, number, key=key)

    async def info(self) -> ThreadInfo:
        return await self._offload.run(self.blocking.info)

    async def exists(self) -> bool:
        return await self._offload.run(self.blocking.exists)

    def turn(self, *, key: str | None = None, expect: int | None = None) -> AsyncTurn:
        return AsyncTurn(self.blocking.turn(key=key, expect=expect).draft, self._offload)

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
        return await self._offload.run(
            self.blocking.state, type, default=default, revision=revision, as_of=as_of, on_stale=on_stale
        )

    async def save(
        self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent", key: str | None = None
    ) -> int:
        return await self._offload.to_end(self.blocking.save, value, expect=expect, schema=schema, by=by, key=key)

    async def patch(self, path: str, value: Any, *, expect: int | None = None, by: str = "agent") -> int:
        return await self._offload.to_end(self.blocking.patch, path, value, expect=expect, by=by)

    async def confirm(self, path: str, *, by: str = "agent") -> int:
        return await self._offload.to_end(self.blocking.confirm, path, by=by)

    async def refresh(self, type: Any = None) -> Loaded[Any]:
        return await self._offload.to_end(self.blocking.refresh, type)

    async def revisions(self, last: int | None = None) -> list[Revision]:
        return await self._offload.run(self.blocking.revisions, last)

    async def checkpoint(self, name: str, *, note: str = "", replace: bool = False) -> Checkpoint:
        return await self._offload.to_end(self.blocking.checkpoint, name, note=note, replace=replace)

    async def checkpoints(self) -> list[Checkpoint]:
        return await self._offload.run(self.blocking.checkpoints)

    async def rewind(self, to: str | int) -> Checkpoint:
        return await self._offload.to_end(self.blocking.rewind, to)

    async def fork(
        self, id: str, *, at: str | int | None = None, user: str | None = None, agent: str | None = None
    ) -> AsyncThread:
        forked = await self._offload.to_end(self.blocking.fork, id, at=at, user=user, agent=agent)
        return AsyncThread(forked, self._offload)

    def hold(self, *, wait_s: float = 0.0) -> AsyncHold:
        return AsyncHold(self.blocking.hold(wait_s=wait_s), self._offload.to_end)

    def run(self, name: str, *, handler: str | None = None, input: Any = None) -> RunOpening:
        """Await it for a run, or use it in ``async with``."""
        return RunOpening(self.blocking, name, handler, input, self._offload)

    async def submit(self, name: str, *, handler: str | None = None, input: Any = None) -> RunInfo:
        return await self._offload.to_end(self.blocking.submit, name, handler=handler, input=input)

    async def runs(self, *, status: str | None = None) -> list[RunInfo]:
        return await self._offload.run(self.blocking.runs, status=status)

    async def timeline(self, name: str) -> Timeline:
        return await self._offload.run(self.blocking.timeline, name)

    async def signal(self, name: str, value: Any = None, *, run: str | None = None, by: str = "caller") -> Signal:
        return await self._offload.to_end(self.blocking.signal, name, value, run=run, by=by)

    async def cancel(self, name: str, *, reason: str = "", by: str = "caller") -> RunInfo:
        return await self._offload.to_end(self.blocking.cancel, name, reason=reason, by=by)

    @property
    def handoff(self) -> AsyncHandoff:
        """The progress document that bridges two sessions."""
        return AsyncHandoff(self.blocking.handoff, self._offload)


class AsyncTurn:
    """A ``Turn`` committed at the end of ``async with``. Adding to it does not wait."""

    def __init__(self, draft: TurnDraft, offload: Offload) -> None:
        self._draft = draft
        self._offload = offload

    @property
    def entries(self) -> list[Entry]:
        return self._draft.entries

    @property
    def revision(self) -> int | None:
        return self._draft.revision

    def append(self, *items: Any, kind: str = "message", key: str | None = None) -> None:
        self._draft.append(*items, kind=kind, key=key)

    def save(self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent") -> None:
        self._draft.save(value, expect=expect, schema=schema, by=by)

    async def __aenter__(self) -> Self:
        self._draft.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draft.leave()
        if kind is not None:
            self._draft.abandon()
            return
        try:
            # Preparing a turn may read the revision it is based on, so it must not run on the event loop.
            pending = await self._offload.run(self._draft.pending) if self._draft.saves else self._draft.pending()
            pending.finish(await self._offload.commit(pending))
        except Conflict as conflict:
            self._draft.fail()
            raise advised(conflict) from None
        except BaseException:
            self._draft.fail()
            raise
