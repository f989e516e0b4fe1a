"""Sessions for async callers keep the same promises; a cancellation leaves nothing half done and nobody behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio
from holdfast.aio.session import AsyncExchange
from holdfast.errors import Invalid, Misconfigured, ModelFailed
from holdfast.providers.models.model import Reply, ToolCall
from holdfast.testing.models import Broken, Scripted

Main = Callable[[aio.AsyncStore], Coroutine[Any, Any, Any]]
Play = Callable[[Main], Any]


@pytest.fixture(params=["ram", "sqlite"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Run an async story on a store, and look that no task is left of it."""

    def run(main: Main) -> Any:
        async def story() -> Any:
            where = "ram:" if request.param == "ram" else tmp_path / "agent.db"
            async with aio.open(where, embedder=None) as store:
                result = await main(store)
                assert asyncio.all_tasks() == {asyncio.current_task()}
                return result

        return asyncio.run(story())

    return run


@holdfast.step(effect="idempotent")
def double(x: int) -> int:
    return 2 * x


CALL = ToolCall("1", "double", {"x": 4})


def asking(store: aio.AsyncStore, *items: Any, **ways: Any) -> Any:
    return store.session(store.thread("t", user="ana"), model=Scripted(*items), **{"learn": "off", **ways})


async def said(store: aio.AsyncStore) -> list[str]:
    log = await store.thread("t").log()
    return [f"{entry.content['role']}: {entry.content['content']}" for entry in log if entry.kind == "message"]


class Slow(Scripted):
    """A model that says its words one by one, each when it is told to."""

    def __init__(self, *words: str) -> None:
        super().__init__(name="slow")
        self._words = words
        self.began, self.may_go_on, self.closed = threading.Event(), threading.Semaphore(0), threading.Event()

    def stream(self, messages: Any, **_: Any) -> Iterator[str | Reply]:
        self.began.set()
        try:
            for word in self._words:
                assert self.may_go_on.acquire(timeout=30)
                yield word
            assert self.may_go_on.acquire(timeout=30)
            yield Reply("".join(self._words))
        finally:
            self.closed.set()


# Turns


def test_a_turn_with_tools_and_learning(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        found = {"facts": [{"text": "Ana lives in Porto.", "entry": 1, "quote": "I live in Porto", "key": "home"}]}
        async with asking(store, CALL, "eight", found, {}, tools=[double], learn="model") as session:
            answer = await session.turn("I live in Porto. What is 2 x 4?")
        assert [memory.text for memory in answer.learned] == ["Ana lives in Porto."]
        assert session.answer == answer
        assert (await store.thread("t").handoff.read()).context
        return await said(store)

    assert play(main) == ["user: I live in Porto. What is 2 x 4?", "assistant: eight"]


def test_a_turn_in_halves(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        session = store.session("t", learn="off")
        async with await session.turn("What is 2 x 4?") as turn:
            assert isinstance(turn, AsyncExchange)
            result = await turn.step("double", double, 4)
            turn.append(holdfast.note("computed"))
            answer = await turn.reply(f"It is {result}.")
        assert turn.answer == answer
        with pytest.raises(Invalid, match="answered"):
            await turn.reply("again")
        with pytest.raises(ValueError, match="boo"):  # noqa: PT012 - it breaks off in the middle
            async with await session.turn("And 2 x 5?") as turn:
                await turn.step("double", double, 5)
                raise ValueError("boo")
        opening = await session.start()
        assert opening.done == (("double", "10"),)
        again = await session.resume()
        await again.reply("10")
        assert await session.resume() is None
        return await said(store)

    assert play(main) == ["user: What is 2 x 4?", "assistant: It is 8.", "user: And 2 x 5?", "assistant: 10"]


def test_a_failure_leaves_the_question_open(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        session = asking(store, CALL, Broken("Alm"), "eight", tools=[double])
        with pytest.raises(ModelFailed):
            await session.turn("q", key="k")
        opening = await session.start()
        assert opening.unanswered is not None
        assert (opening.done, opening.partial.strip()) == ((("double", "8"),), "Alm")
        assert (await session.turn("q", key="k")).text == "eight"
        assert (await session.turn("q", key="k")).repeated
        return await said(store)

    assert play(main) == ["user: q", "assistant: eight"]


def test_many_at_once(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        async def one(number: int) -> str:
            session = store.session(f"t{number}", model=Scripted(CALL, f"eight {number}"), tools=[double], learn="off")
            answer = await session.turn("q")
            return str(answer)

        return await asyncio.gather(*[one(number) for number in range(30)])

    assert play(main) == [f"eight {number}" for number in range(30)]


def test_a_closed_store_refuses(tmp_path: Path) -> None:
    async def story() -> None:
        async with aio.open(tmp_path / "agent.db", embedder=None) as store:
            session = store.session("t", model=Scripted("a"), learn="off")
        with pytest.raises(Misconfigured, match="closed"):
            await session.turn("q")

    asyncio.run(story())


# Streams


def test_a_stream_is_heard_as_it_is_spoken(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        model = Slow("one ", "two")
        session = store.session("t", model=model, learn="off")
        heard = []
        model.may_go_on.release()
        async for piece in session.stream("q"):
            heard.append(piece)
            assert await said(store) == ["user: q"]
            model.may_go_on.release()
        assert heard == ["one ", "two"]
        return await said(store)

    assert play(main) == ["user: q", "assistant: one two"]


def test_who_stops_listening_leaves_the_question_open(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        session = asking(store, CALL, "one two three", "eight", tools=[double])
        spoken = session.stream("q")
        async for _ in spoken:
            break
        await spoken.aclose()
        opening = await session.start()
        assert opening.unanswered is not None
        assert opening.done == (("double", "8"),)
        assert "".join([piece async for piece in session.resume_stream()]) == "eight"
        return await said(store)

    assert play(main) == ["user: q", "assistant: eight"]


def test_a_stream_that_breaks_off_raises(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        heard: list[str] = []

        async def listen() -> None:
            async for piece in asking(store, Broken("one two")).stream("q"):
                heard.append(piece)

        with pytest.raises(ModelFailed):
            await listen()
        assert "".join(heard).split() == ["one", "two"]
        return (await asking(store).start()).partial

    assert play(main).split() == ["one", "two"]


# Cancellation


def test_a_cancelled_turn_is_waited_for_and_whole(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        model = Slow("one")
        task = asyncio.create_task(store.session("t", model=model, learn="off").turn("q"))
        await asyncio.to_thread(model.began.wait, 30)
        task.cancel()
        model.may_go_on.release(2)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert model.closed.is_set()
        left = (await store.session("t").start()).unanswered
        log = await said(store)
        assert (left is None) == (log == ["user: q", "assistant: one"])
        return log[0]

    assert play(main) == "user: q"


def test_a_cancelled_listener_leaves_no_thread(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> Any:
        model = Slow("one ", "two ", "three")
        heard = asyncio.Event()

        async def listen() -> None:
            async for _ in store.session("t", model=model, learn="off").stream("q"):
                heard.set()

        task = asyncio.create_task(listen())
        model.may_go_on.release()
        await heard.wait()
        task.cancel()
        model.may_go_on.release(5)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(model.closed.wait, 30)
        return (await store.session("t").start()).unanswered is not None

    assert play(main)
