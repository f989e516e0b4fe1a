"""A cancelled async run is let go at once, wherever the cancellation meets it: nobody waits for its lease to end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import random
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import aio
from holdfast.engine.contract import Append

Play = Callable[[Callable[[aio.AsyncStore], Any]], Any]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def run(main: Callable[[aio.AsyncStore], Any]) -> Any:
        async def story() -> Any:
            async with asyncio.timeout(20), aio.open(tmp_path / "agent.db", lease_s=600) as store:
                return await main(store)

        return asyncio.run(story())

    return run


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


async def statuses(store: aio.AsyncStore) -> list[str]:
    return [info.status for info in await store.runs(limit=None)]


async def ended(task: asyncio.Future[Any]) -> None:
    with pytest.raises(asyncio.CancelledError):
        await task


class Landing:
    """Keeps the next commit that adds an event of a kind to a run from landing, until the test lets it."""

    def __init__(self, store: aio.AsyncStore, kind: str) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        engine = store.blocking.core.engine
        commit = engine.commit

        def held(tenant: str, ops: Any, *given: Any) -> Any:
            if any(event.kind == kind for op in ops if isinstance(op, Append) for event in op.events):
                engine.commit = commit  # type: ignore[method-assign]
                self.begun.set()
                assert self.go.wait(20)
            return commit(tenant, ops, *given)

        engine.commit = held  # type: ignore[method-assign]


@asynccontextmanager
async def busy(executor: concurrent.futures.ThreadPoolExecutor) -> AsyncIterator[None]:
    """Every thread of an executor has something to do, so that nothing new begins."""
    go, begun = threading.Event(), threading.Semaphore(0)

    def work() -> None:
        begun.release()
        assert go.wait(20)

    futures = [executor.submit(work) for _ in range(executor._max_workers)]
    try:
        for _ in futures:
            await asyncio.to_thread(begun.acquire)
        yield
    finally:
        go.set()


@pytest.mark.parametrize("entered", [True, False])
def test_one_that_is_cancelled_while_it_is_opened(play: Play, entered: bool) -> None:
    async def main(store: aio.AsyncStore) -> None:
        async def work() -> None:
            opening = store.thread("t").run("r")
            if not entered:
                await opening
            else:
                async with opening:
                    pass

        landing = Landing(store, "opened")
        task = asyncio.ensure_future(work())
        await until(landing.begun.is_set)
        task.cancel()
        landing.go.set()
        await ended(task)
        assert await statuses(store) == ["interrupted"]

    play(main)


def test_one_that_is_cancelled_while_it_is_resumed_by_name(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> None:
        await store.thread("t").submit("r")
        landing = Landing(store, "opened")
        task = asyncio.ensure_future(store.resume({"r": lambda run: 1}, thread="t", run="r"))
        await until(landing.begun.is_set)
        task.cancel()
        landing.go.set()
        await ended(task)
        assert await statuses(store) == ["interrupted"]

    play(main)


def test_one_that_is_cancelled_again_while_it_is_let_go(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> None:
        entered = asyncio.Event()

        async def work() -> None:
            async with store.thread("t").run("r"):
                entered.set()
                await asyncio.sleep(60)

        task = asyncio.ensure_future(work())
        await entered.wait()
        async with busy(store._offload._executor):
            for _ in range(3):  # what is not begun yet is dropped by a cancellation, but this must not be
                task.cancel()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await ended(task)
        assert await statuses(store) == ["interrupted"]

    play(main)


def test_an_exchange_that_is_cancelled_again_while_it_is_left(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> None:
        pool = concurrent.futures.ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(pool)
        worked = asyncio.Event()

        async def work() -> None:
            async with store.session("t").turn("book it") as turn:
                await turn.step("book", lambda: "ticket", effect="pure")
                worked.set()
                await asyncio.sleep(60)

        task = asyncio.ensure_future(work())
        await worked.wait()
        go = threading.Event()
        pool.submit(go.wait, 20)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await ended(task)
        assert await statuses(store) == ["interrupted"]
        go.set()

    play(main)


def test_one_that_is_cancelled_just_before_its_function_ends(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> None:
        begun, end = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def function() -> None:
            begun.set()
            await end

        async def work() -> None:
            async with store.thread("t").run("r") as run:
                await run.step("s", function, effect="pure")

        task = asyncio.ensure_future(work())
        await begun.wait()
        asyncio.get_running_loop().call_soon(task.cancel)  # both in one round of the loop, in this order
        end.set_result(None)
        await ended(task)
        assert await statuses(store) == ["interrupted"]

    play(main)


def test_one_of_which_another_step_goes_on_is_let_go_when_that_has_ended(play: Play) -> None:
    async def main(store: aio.AsyncStore) -> None:
        begun, go, other = threading.Event(), threading.Event(), asyncio.Event()

        def lasting() -> None:
            begun.set()
            assert go.wait(20)

        async def brief() -> None:
            other.set()
            await asyncio.sleep(60)

        async def work() -> None:
            async with store.thread("t").run("r") as run:
                steps = (run.step("lasting", lasting, effect="pure"), run.step("brief", brief, effect="pure"))
                await asyncio.gather(*steps)  # which gives up with the first that was cancelled

        task = asyncio.ensure_future(work())
        await other.wait()
        await until(begun.is_set)
        task.cancel()
        await ended(task)
        assert await statuses(store) == ["running"]  # nobody is to begin it while a function of it goes on
        go.set()
        while await statuses(store) != ["interrupted"]:
            await asyncio.sleep(0.001)

    play(main)


@pytest.mark.slow
def test_many_that_are_cancelled_at_random_points(play: Play) -> None:
    chance = random.Random(13)

    async def brief() -> None:
        await asyncio.sleep(chance.random() * 0.003)

    async def inside(sub: aio.AsyncRun) -> None:
        await sub.step("a", brief, effect="pure")

    async def work(store: aio.AsyncStore, number: int) -> None:
        async with store.thread(f"t{number}").run("r") as run:
            await run.step("a", brief, effect="pure")
            await run.step("b", lambda: 1, effect="idempotent", compensate=lambda result: None)
            await run.subtask("c", inside)
            await asyncio.gather(*(run.step(f"d{n}", brief, effect="pure") for n in range(3)))
            if number % 3 == 0:
                await run.abandon("enough")

    async def cancelled(store: aio.AsyncStore, number: int) -> None:
        task = asyncio.ensure_future(work(store, number))
        for _ in range(chance.choice((1, 1, 2, 3))):
            await asyncio.sleep(chance.random() * 0.04)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def main(store: aio.AsyncStore) -> None:
        for first in range(0, 400, 20):
            await asyncio.gather(*(cancelled(store, number) for number in range(first, first + 20)))
        found = await statuses(store)
        assert len(found) > 100
        while "running" in await statuses(store):  # the last function of one may end a moment after its task
            await asyncio.sleep(0.01)

    play(main)
