"""A thread and a turn for async callers.

Deliberately absent: rules of their own. Each class wraps its blocking twin, and a test keeps their signatures equal.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from holdfast.aio.graph import AsyncGraph
from holdfast.aio.handoff import AsyncHandoff
from holdfast.aio.hands import Hands
from holdfast.aio.hold import AsyncHold
from holdfast.aio.runs import RunOpening, replay
from holdfast.ledger import log
from holdfast.ledger.graphs import GraphInfo
from holdfast.ledger.paths import Difference
from holdfast.ledger.state import Expect, OnStale
from holdfast.ledger.turn import Turn
from holdfast.records import Checkpoint, Entry, Loaded, Revision, ThreadInfo
from holdfast.steps.replay import Replayed
from holdfast.steps.run import Run
from holdfast.steps.timeline import RunInfo, Timeline
from holdfast.steps.waiting import Signal
from holdfast.thread import Thread

T = TypeVar("T")


class AsyncThread:
    """A ``Thread`` whose methods are awaited."""

    def __init__(self, thread: Thread, hands: Hands) -> None:
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
        pending = self._thread.logbook.appending(log.drafts(items, kind, key), expect, whole=key is not None)
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

    def hold(self, *, wait_s: float = 0.0) -> AsyncHold:
        return AsyncHold(self._thread.hold(wait_s=wait_s), self._hands.to_end)

    def run(self, name: str, *, handler: str | None = None, input: Any = None) -> RunOpening:
        """Await it for a run, or use it in ``async with``."""
        return RunOpening(self._thread, name, handler, input, self._hands)

    async def submit(self, name: str, *, handler: str | None = None, input: Any = None) -> RunInfo:
        return await self._hands.run(self._thread.submit, name, handler=handler, input=input)

    async def runs(self, *, status: str | None = None) -> list[RunInfo]:
        return await self._hands.run(self._thread.runs, status=status)

    async def timeline(self, name: str) -> Timeline:
        return await self._hands.run(self._thread.timeline, name)

    async def replay(self, name: str, handler: Callable[[Run], Any]) -> Replayed:
        """Go through a recorded run; a handler that is async gets an ``AsyncRun``."""
        return await replay(self._thread, name, handler, self._hands)

    async def signal(self, name: str, value: Any = None, *, run: str | None = None, by: str = "caller") -> Signal:
        return await self._hands.run(self._thread.signal, name, value, run=run, by=by)

    async def cancel(self, name: str, *, reason: str = "", by: str = "caller") -> RunInfo:
        return await self._hands.run(self._thread.cancel, name, reason=reason, by=by)

    async def graphs(self) -> list[GraphInfo]:
        return await self._hands.run(self._thread.graphs)

    def graph(self, namespace: str = "") -> AsyncGraph:
        return AsyncGraph(self._thread.graph(namespace), self._hands)

    @property
    def handoff(self) -> AsyncHandoff:
        """The progress document that bridges two sessions."""
        return AsyncHandoff(self._thread.handoff, self._hands)


class AsyncTurn:
    """A ``Turn`` that is committed by ``async with``. Putting things into it waits for nothing."""

    def __init__(self, turn: Turn, hands: Hands) -> None:
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
        self._turn._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turn._leave()
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
