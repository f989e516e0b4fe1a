"""Async runs keep the same promises: the same flows, awaited, with async and blocking functions mixed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio, errors
from holdfast.testing import ManualClock

Main = Callable[[aio.AsyncStore], Coroutine[Any, Any, Any]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Any]:
    """Run an async story on a SQLite store; a later call opens the same file again."""

    def run(main: Main, **options: Any) -> Any:
        async def story() -> Any:
            async with aio.open(tmp_path / "agent.db", **options) as store:
                return await main(store)

        return asyncio.run(story())

    return run


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def triple(number: int) -> int:
    return 3 * number


def test_steps_may_be_async_or_blocking_and_are_not_run_again(play: Callable[..., Any]) -> None:
    ran: list[str] = []

    async def counted(number: int) -> int:
        ran.append("async")
        return await double(number)

    def blocking(number: int) -> int:
        ran.append(threading.current_thread().name)
        return triple(number)

    async def main(store: aio.AsyncStore) -> list[int]:
        async with store.thread("t").run("r") as run:
            return [await run.step("a", counted, 2, effect="pure"), await run.step("b", blocking, 2, effect="pure")]

    assert play(main) == play(main) == [4, 6]
    assert len(ran) == 2
    assert ran[1] != threading.main_thread().name  # the event loop was not held up


def test_a_blocking_run_refuses_an_async_function_before_anything_is_recorded() -> None:
    with holdfast.open("ram:") as store:
        thread = store.thread("t")
        run = thread.run("r")
        with pytest.raises(errors.Invalid, match="needs an async run"):
            run.step("a", double, 2, effect="pure")
        assert run.step("a", triple, 2, effect="pure") == 6
        run.finish()


def test_the_current_step_is_awaited_where_it_commits(play: Callable[..., Any]) -> None:
    async def work(number: int) -> str:
        step = holdfast.current_step()
        assert isinstance(step, aio.AsyncStepContext)
        await step.heartbeat()
        await step.record({"half": number})
        assert step.progress == {"half": number}
        step.append({"role": "assistant", "content": "half"})
        step.patch("paid", number)
        return step.key

    async def main(store: aio.AsyncStore) -> None:
        thread = store.thread("t")
        async with thread.run("r") as run:
            key = await run.step("pay", work, 7, effect="idempotent")
        assert key.startswith("hf-")
        assert (await thread.state()).value == {"paid": 7}
        assert [entry.kind for entry in await thread.log()] == ["event", "message", "event"]
        kinds = [moment.kind for moment in (await thread.timeline("r")).moments]
        assert kinds == ["opened", "intent", "progress", "completed", "ended"]

    play(main)


def test_declared_steps_are_awaited_inside_an_async_run(play: Callable[..., Any]) -> None:
    ran: list[int] = []

    @holdfast.step(effect="once", on_unknown="stop")
    async def book(number: int) -> dict[str, int]:
        ran.append(number)
        return {"booking": number}

    async def main(store: aio.AsyncStore) -> Any:
        async with store.thread("t").run("r"):
            return [await book(1), await book.named("again")(2)]

    assert play(main) == play(main) == [{"booking": 1}, {"booking": 2}]
    assert ran == [1, 2]


def test_a_cancelled_task_leaves_the_run_to_be_resumed_and_the_probe_decides(play: Callable[..., Any]) -> None:
    world: dict[str, int] = {}

    async def book(number: int) -> int:
        world[holdfast.current_step().key] = number
        await asyncio.Event().wait()  # the answer never comes
        return number

    async def find(number: int) -> int | None:
        return world.get(holdfast.current_step().key)

    async def first(store: aio.AsyncStore) -> None:
        async def work() -> None:
            async with store.thread("t").run("r") as run:
                await run.step("book", book, 5, effect="once", probe=find)

        task = asyncio.ensure_future(work())
        while not world:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [info.status for info in await store.runs()] == ["interrupted"]

    async def second(store: aio.AsyncStore) -> Any:
        async def handler(run: aio.AsyncRun) -> Any:
            return await run.step("book", book, 5, effect="once", probe=find)

        return await store.resume({"r": handler})

    play(first)
    (resumed,) = play(second)
    assert (resumed.outcome, resumed.result) == ("done", 5)
    assert len(world) == 1


def test_a_step_that_takes_too_long_is_cancelled_and_tried_again(play: Callable[..., Any]) -> None:
    tries: list[str] = []

    async def slow() -> str:
        tries.append("begun")
        if len(tries) == 1:
            try:
                await asyncio.Event().wait()
            finally:
                tries.append("cancelled")
        return "at last"

    async def main(store: aio.AsyncStore) -> Any:
        async with store.thread("t").run("r") as run:
            return await run.step("slow", slow, effect="idempotent", timeout_s=0.05, retry=2)

    assert play(main, clock=ManualClock()) == "at last"
    assert tries == ["begun", "cancelled", "begun"]


def test_steps_side_by_side_are_recorded_each(play: Callable[..., Any]) -> None:
    ran: list[int] = []

    async def one(number: int) -> int:
        ran.append(number)
        await asyncio.sleep(0)
        return number

    async def main(store: aio.AsyncStore) -> list[int]:
        async with store.thread("t").run("r") as run:
            return await asyncio.gather(*(run.step(f"s{n}", one, n, effect="pure") for n in range(20)))

    assert play(main) == play(main) == list(range(20))
    assert sorted(ran) == list(range(20))


def test_many_runs_wait_without_holding_up_the_store(play: Callable[..., Any]) -> None:
    async def main(store: aio.AsyncStore) -> list[int]:
        async def one(number: int) -> int:
            async with store.thread(f"t{number}").run("r") as run:
                return int(await run.wait("go"))

        waiting = [asyncio.ensure_future(one(number)) for number in range(20)]
        while len(await store.runs(status="running")) < 20:
            await asyncio.sleep(0.01)
        for number in range(20):
            await store.thread(f"t{number}").signal("go", number, run="r")
        return await asyncio.gather(*waiting)

    assert play(main) == list(range(20))


def test_subtasks_are_awaited_and_have_a_log_of_their_own(play: Callable[..., Any]) -> None:
    async def research(task: aio.AsyncSubtask, question: str) -> str:
        await task.thread.append({"role": "user", "content": question})
        left = await task.spend(tokens=30)
        assert left == {"tokens": 70}
        return str(await task.step("look", double, 21, effect="pure"))

    async def main(store: aio.AsyncStore) -> Any:
        thread = store.thread("t")
        async with thread.run("r") as run:
            answer = await run.subtask("research", research, "why?", budget={"tokens": 100})
            with pytest.raises(errors.StepFailed, match="BudgetExceeded"):
                await run.subtask("greedy", research, "all?", budget={"tokens": 10})
        assert [entry.content.get("step") for entry in await thread.log()] == ["research", "greedy", None]
        return answer

    assert play(main) == "42"


def test_abandoning_undoes_in_reverse(play: Callable[..., Any]) -> None:
    undone: list[Any] = []

    async def undo(result: int) -> None:
        undone.append(result)

    async def main(store: aio.AsyncStore) -> str:
        run = await store.thread("t").run("r")
        await run.step("a", double, 1, effect="idempotent", compensate=undo)
        await run.step("b", triple, 1, effect="idempotent", compensate=undone.append)
        await run.abandon("changed my mind")
        return run.status

    assert play(main) == "cancelled"
    assert undone == [3, 2]


def test_the_worker_loop_ends_when_told_and_reports(play: Callable[..., Any]) -> None:
    stop, seen = threading.Event(), []

    async def handler(run: aio.AsyncRun) -> Any:
        return await run.step("d", double, run.input, effect="pure")

    def blocking(run: holdfast.Run) -> Any:
        return run.step("t", triple, run.input, effect="pure")

    async def main(store: aio.AsyncStore) -> int:
        for number in range(5):
            await store.thread(f"t{number}").submit("job", handler="async" if number % 2 else "blocking", input=number)

        def note(found: holdfast.Resumed) -> None:
            seen.append((found.thread, found.result))
            if len(seen) == 5:
                stop.set()

        return await store.work({"async": handler, "blocking": blocking}, stop=stop, poll_s=0.01, on_run=note)

    assert play(main) == 5
    assert sorted(seen) == [("t0", 0), ("t1", 2), ("t2", 6), ("t3", 6), ("t4", 12)]


def test_a_replay_runs_nothing(play: Callable[..., Any]) -> None:
    ran: list[int] = []

    async def counted(number: int) -> int:
        ran.append(number)
        return number

    async def handler(run: aio.AsyncRun) -> int:
        return int(await run.step("a", counted, 1, effect="pure")) + int(await run.wait("go"))

    async def changed(run: aio.AsyncRun) -> int:
        return int(await run.step("b", counted, 1, effect="pure"))

    async def main(store: aio.AsyncStore) -> None:
        thread = store.thread("t")
        await thread.submit("r")
        await store.resume({"r": handler})
        await thread.signal("go", 4)
        await store.resume({"r": handler})
        before = [commit.position async for commit in store.watch(timeout_s=0)]
        same, other = await thread.replay("r", handler), await thread.replay("r", changed)
        assert (same.same, same.result) == (True, 5)
        assert not other.same
        assert "ReplayDiverged" in other.error
        assert [commit.position async for commit in store.watch(timeout_s=0)] == before

    play(main)
    assert ran == [1]
