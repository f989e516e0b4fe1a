"""Sessions for async callers.

A turn waits seconds for a model, so it runs in a thread of the event loop's own pool, not in one of the few threads for
reads and writes. Deliberately absent: rules of its own. It wraps its blocking twin, and a test keeps their signatures
equal.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import aclosing
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from holdfast.aio.offload import Offload, surely, to_end
from holdfast.aio.thread import AsyncThread
from holdfast.context.report import Context
from holdfast.errors import Invalid, Misconfigured
from holdfast.providers.models.model import Model, Usage
from holdfast.records import Draft, Entry, Hit
from holdfast.sessions.session import Opening, Session
from holdfast.sessions.turn import Answer, Exchange

P = ParamSpec("P")
T = TypeVar("T")
_DONE = object()


class AsyncExchange:
    """An ``Exchange`` whose methods are awaited."""

    def __init__(self, exchange: Exchange, offload: Offload) -> None:
        self._exchange, self._offload = exchange, offload

    def __repr__(self) -> str:
        return f"Async{self._exchange!r}"

    @property
    def question(self) -> Entry:
        return self._exchange.question

    @property
    def context(self) -> Context:
        return self._exchange.context

    @property
    def answer(self) -> Answer | None:
        return self._exchange.answer

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self._exchange.messages

    @property
    def trust(self) -> str:
        return self._exchange.trust

    async def step(self, name: str, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        return await _apart(self._offload, self._exchange.step, name, fn, *args, **options)

    def append(self, *drafts: Draft) -> None:
        self._exchange.append(*drafts)

    async def reply(self, reply: Any, *, usage: Usage | None = None, state: Any = None) -> Answer:
        return await _apart(self._offload, self._exchange.reply, reply, usage=usage, state=state)

    async def __aenter__(self) -> Self:
        self._exchange.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await surely(functools.partial(self._exchange.__exit__, kind, error, trace))


class Turning(Coroutine[Any, Any, Any]):
    """What ``AsyncSession.turn`` returns: await it for an answer, make it a task, or use it in ``async with``.

    ``async with session.turn("…") as turn`` is for a session without a model. Nothing happens before that.
    """

    def __init__(self, turn: Callable[[], Any], offload: Offload) -> None:
        self._turn, self._offload = turn, offload
        self._exchange: AsyncExchange | None = None
        self._work: Coroutine[Any, Any, Any] | None = None

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._taken().__await__()

    def send(self, value: Any) -> Any:
        self._work = self._work or self._taken()
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        self._work = self._work or self._taken()
        return self._work.throw(*error)

    def close(self) -> None:
        if self._work is not None:
            self._work.close()

    async def _taken(self) -> Any:
        found = await _apart(self._offload, self._turn)
        return AsyncExchange(found, self._offload) if isinstance(found, Exchange) else found

    async def __aenter__(self) -> AsyncExchange:
        found = await self._taken()
        if not isinstance(found, AsyncExchange):
            raise Invalid("this session has a model: await the turn; async with is for a session without one")
        self._exchange = found
        return await found.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._exchange is not None
        await self._exchange.__aexit__(kind, error, trace)


class AsyncSession:
    """A ``Session`` whose methods are awaited."""

    def __init__(self, session: Session, offload: Offload) -> None:
        self._session, self._offload = session, offload

    def __repr__(self) -> str:
        return f"Async{self._session!r}"

    @property
    def thread(self) -> AsyncThread:
        return AsyncThread(self._session.thread, self._offload)

    @property
    def model(self) -> Model | None:
        return self._session.model

    @property
    def budget(self) -> int:
        return self._session.budget

    @property
    def usage(self) -> Usage:
        return self._session.usage

    @property
    def learning(self) -> Usage:
        return self._session.learning

    @property
    def opening(self) -> Opening | None:
        return self._session.opening

    @property
    def answer(self) -> Answer | None:
        return self._session.answer

    async def start(self) -> Opening:
        return await self._offload.run(self._session.start)

    def turn(self, input: Any, *, key: str | None = None) -> Any:
        return Turning(functools.partial(self._session.turn, input, key=key), self._offload)

    async def stream(self, input: Any, *, key: str | None = None) -> AsyncIterator[str]:
        """Yield the text of the answer as it arrives. If you stop iterating, the question stays open, to be resumed."""
        async with aclosing(self._spoken(functools.partial(self._session.stream, input, key=key))) as pieces:
            async for piece in pieces:
                yield piece

    async def _spoken(self, stream: Callable[[], Iterator[str]]) -> AsyncGenerator[str, None]:
        """The pieces of a blocking stream."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Any]()
        left, wanted = threading.Event(), threading.Semaphore(1)

        def speak() -> None:
            spoken = stream()
            while wanted.acquire():  # never ahead of the caller: to stop iterating stops the answer
                piece = _DONE if left.is_set() else next(spoken, _DONE)
                if piece is _DONE:
                    spoken.close()  # type: ignore[attr-defined]
                    return
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        async def speaking() -> None:
            try:
                await _apart(self._offload, speak)
            finally:
                pieces.put_nowait(_DONE)

        task = asyncio.create_task(speaking())
        try:
            while (piece := await pieces.get()) is not _DONE:
                yield piece
                wanted.release()
        finally:
            left.set()
            wanted.release()
            await task

    def resume(self) -> Any:
        return Turning(self._session.resume, self._offload)

    async def resume_stream(self) -> AsyncIterator[str]:
        async with aclosing(self._spoken(self._session.resume_stream)) as pieces:
            async for piece in pieces:
                yield piece

    async def recalled_for(self, number: int) -> list[Hit]:
        return await self._offload.run(self._session.recalled_for, number)

    async def context(self, input: Any) -> Context:
        return await self._offload.run(self._session.context, input)

    async def roll(self) -> Entry | None:
        return await _apart(self._offload, self._session.roll)

    async def hand_off(self) -> int:
        return await _apart(self._offload, self._session.hand_off)

    async def end(self) -> int:
        return await _apart(self._offload, self._session.end)

    async def fullness(self) -> float:
        return await self._offload.run(self._session.fullness)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _apart(self._offload, self._session.__exit__, kind, error, trace)


async def _apart(offload: Offload, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work that may take long to its end, in a thread of the loop's own pool."""
    if offload.closed:
        raise Misconfigured("this store is closed")
    return await to_end(None, functools.partial(work, *args, **kwargs))
