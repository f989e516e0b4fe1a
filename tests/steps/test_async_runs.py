"""Async runs keep the same promises: the same flows, awaited, with async and blocking functions mixed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio, errors
from holdfast.aio import runs
from holdfast.engine.contract import Append, Event
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

        def note(found: holdfast.types.Resumed) -> None:
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
        same, other = await store.replay(thread, "r", handler), await store.replay(thread, "r", changed)
        assert (same.same, same.result) == (True, 5)
        assert not other.same
        assert "ReplayDiverged" in other.error
        assert [commit.position async for commit in store.watch(timeout_s=0)] == before

    play(main)
    assert ran == [1]


# Cancellation


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.001)


async def goes_on(task: asyncio.Task[Any]) -> bool:
    """Whether a task is still there after it had every chance to end."""
    await asyncio.sleep(0.05)
    return not task.done()


class Slow:
    """An effect that is under way until the test lets it happen, in a thread that nothing can stop."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.done: list[str] = []

    def do(self) -> str:
        self.begun.set()
        assert self.go.wait(20)
        self.done.append(holdfast.current_step().key)
        return "did"

    def find(self) -> str | None:
        return "found" if self.done else None

    async def handler(self, run: aio.AsyncRun) -> Any:
        return await run.step("book", self.do, effect="once", probe=self.find)


def test_a_cancelled_task_stays_until_its_blocking_function_has_ended(play: Callable[..., Any]) -> None:
    slow = Slow()

    async def main(store: aio.AsyncStore) -> Any:
        async with store.thread("t").run("r") as run:
            task = asyncio.ensure_future(slow.handler(run))
            await until(slow.begun.is_set)
            task.cancel()
            assert await goes_on(task)
            task.cancel()  # not even then
            assert await goes_on(task)
            slow.go.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(slow.done) == 1
            return await slow.handler(run)

    assert play(main) == "found"
    assert len(slow.done) == 1


def test_a_cancelled_worker_lets_its_run_go_only_when_nothing_of_it_goes_on(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_GRACE_S", 0.001)
    slow = Slow()

    async def main(store: aio.AsyncStore) -> None:
        await store.thread("t").submit("r")
        worker = asyncio.ensure_future(store.work({"r": slow.handler}))
        await until(slow.begun.is_set)
        worker.cancel()
        assert await goes_on(worker)
        assert [info.status for info in await store.runs()] == ["running"]
        slow.go.set()
        with pytest.raises(asyncio.CancelledError):
            await worker
        (resumed,) = await store.resume({"r": slow.handler})
        assert (resumed.outcome, resumed.result) == ("done", "found")

    play(main)
    assert len(slow.done) == 1


def test_a_blocking_function_that_was_cancelled_before_it_began_never_begins(play: Callable[..., Any]) -> None:
    slow, ran = Slow(), []

    async def main(store: aio.AsyncStore) -> None:
        asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
        first = await store.thread("t").run("first")
        busy = asyncio.ensure_future(first.step("s", slow.do, effect="idempotent"))
        await until(slow.begun.is_set)
        second = await store.thread("t").run("second")
        queued = asyncio.ensure_future(second.step("s", ran.append, 1, effect="idempotent"))
        await until(lambda: second.steps)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(queued), 10)
        slow.go.set()
        await busy
        assert await first.step("after", double, 1, effect="pure") == 2

    play(main)
    assert ran == []


class Held:
    """Keeps the first commit that adds an event of this kind to a run from landing, until the test lets it."""

    def __init__(self, store: aio.AsyncStore, kind: str) -> None:
        self.engine = store.blocking.core.engine
        self.begun, self.go = threading.Event(), threading.Event()
        self._kind, self._commit = kind, self.engine.commit
        self.engine.commit = self.commit  # type: ignore[method-assign]

    def commit(self, tenant: str, ops: Any, time: int, actor: str | None = None) -> Any:
        events: list[Event] = [event for op in ops if isinstance(op, Append) for event in op.events]
        if self._kind in [event.kind for event in events]:
            self.engine.commit = self._commit  # type: ignore[method-assign]
            self.begun.set()
            assert self.go.wait(20)
        return self._commit(tenant, ops, time, actor)


@pytest.mark.parametrize("on_unknown", ["skip", "rerun"])
def test_a_cancelled_task_stays_until_its_commit_has_landed(play: Callable[..., Any], on_unknown: str) -> None:
    ran: list[int] = []

    async def book() -> str:
        ran.append(1)
        return "ticket"

    async def main(store: aio.AsyncStore) -> None:
        thread = store.thread("t")
        async with thread.run("r") as run:
            held = Held(store, "completed")
            task = asyncio.ensure_future(run.step("book", book, effect="once", on_unknown=on_unknown))
            await until(held.begun.is_set)
            task.cancel()
            assert await goes_on(task)
            held.go.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await thread.timeline("r")).steps[0].result == "ticket"
            assert await run.step("book", book, effect="once", on_unknown=on_unknown) == "ticket"
        kinds = [moment.kind for moment in (await thread.timeline("r")).moments]
        assert kinds == ["opened", "intent", "completed", "ended"]

    play(main)
    assert len(ran) == 1


def test_a_worker_that_is_cancelled_while_it_takes_a_run_gives_it_back(play: Callable[..., Any]) -> None:
    async def main(store: aio.AsyncStore) -> None:
        await store.thread("t").submit("r")
        held = Held(store, "opened")
        worker = asyncio.ensure_future(store.work({"r": lambda run: 1}))
        await until(held.begun.is_set)
        worker.cancel()
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await worker
        assert [info.status for info in await store.runs()] == ["interrupted"]

    play(main)


def test_a_function_that_took_too_long_counts_as_running_until_it_has_ended(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_GRACE_S", 0.001)

    async def main(store: aio.AsyncStore) -> None:
        go, ended = asyncio.Event(), asyncio.Event()

        async def stubborn() -> None:
            while not go.is_set():
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    continue
            ended.set()
            raise ValueError("which nobody hears")

        run = await store.thread("t").run("r")
        try:
            with pytest.raises(errors.StepFailed, match="StepTimeout"):
                await run.step("s", stubborn, effect="idempotent", timeout_s=0.01)
            assert run.work.is_running("s")
        finally:
            go.set()  # else nothing ends here
        await ended.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not run.work.is_running("s")

    play(main)


def test_a_cancellation_that_a_step_made_itself_is_a_failure_and_ends_no_worker(play: Callable[..., Any]) -> None:
    stop, seen = threading.Event(), []

    async def inside() -> None:
        task = asyncio.ensure_future(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task

    def in_a_thread() -> None:
        raise concurrent.futures.CancelledError

    async def handler(run: aio.AsyncRun) -> None:
        await run.step("s", in_a_thread if run.input else inside, effect="pure")

    async def bare(run: aio.AsyncRun) -> None:
        await inside()

    async def main(store: aio.AsyncStore) -> int:
        for number in range(2):
            await store.thread(f"t{number}").submit("r", input=number)
        await store.thread("t2").submit("bare")

        def note(found: holdfast.types.Resumed) -> None:
            seen.append(found)
            if len(seen) == 3:
                stop.set()

        return await store.work({"r": handler, "bare": bare}, stop=stop, poll_s=0.01, on_run=note)

    assert play(main) == 3
    assert [found.outcome for found in seen] == ["failed"] * 3
    assert all("cancelled itself" in found.error for found in seen)


def test_a_step_that_raises_stop_iteration_fails_and_hangs_nobody(play: Callable[..., Any]) -> None:
    def exhausted() -> Any:
        return next(iter(()))

    async def main(store: aio.AsyncStore) -> None:
        async with asyncio.timeout(10):
            run = await store.thread("t").run("r")
            with pytest.raises(errors.StepFailed, match=r"RuntimeError.*StopIteration"):
                await run.step("s", exhausted, effect="pure")

    play(main)


# A block that ends elsewhere than it began


def test_a_run_may_be_left_in_another_task_than_it_was_entered_in(play: Callable[..., Any]) -> None:
    @holdfast.step(effect="pure")
    async def named() -> str:
        return holdfast.current_step().run

    async def main(store: aio.AsyncStore) -> None:
        thread = store.thread("t")

        async def fixture() -> AsyncIterator[aio.AsyncRun]:
            async with thread.run("outer") as run:
                yield run

        async def end(given: Any) -> str:
            async with thread.run("inner"):
                with pytest.raises(StopAsyncIteration):
                    await anext(given)
                return await named()  # and what is current here stays so

        given = fixture()
        await asyncio.ensure_future(anext(given))  # type: ignore[arg-type]
        assert await asyncio.ensure_future(end(given)) == "inner"
        assert {info.name: info.status for info in await thread.runs()} == {"outer": "done", "inner": "done"}

    play(main)


# The worker


def test_a_worker_mentions_once_what_it_cannot_carry_on_and_rests(
    play: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    stop, seen, looks = threading.Event(), [], []

    async def main(store: aio.AsyncStore) -> int:
        thread, core, shared = store.thread("t"), store.blocking.core, store.blocking.wiring.runs
        for name in ("unknown", "newer"):
            await thread.submit(name)
        event = Event("teleported", b"j1{}", core.clock.now())
        core.engine.commit(core.tenant, (Append("run", shared.record("t", "newer").id, (event,)),), event.time)
        listed = shared.leases

        def look() -> Any:
            looks.append(1)
            if len(looks) == 2:
                raise errors.Unavailable("the network is down")
            if len(looks) == 4:
                store.blocking.thread("t").submit("good")
            return listed()

        shared.leases = look  # type: ignore[method-assign]

        def note(found: holdfast.types.Resumed) -> None:
            seen.append((found.run, found.outcome))
            stop.set()

        handlers = {"newer": lambda run: 1, "good": lambda run: 1}
        return await store.work(handlers, stop=stop, poll_s=0.01, on_run=note)

    with caplog.at_level(logging.WARNING):
        assert play(main) == 1
    assert seen == [("good", "done")]
    said = [record.getMessage() for record in caplog.records if record.name.startswith("holdfast.")]
    assert len(said) == 3
    assert [sum(word in line for line in said) for word in ("'unknown'", "upgrade", "is unavailable")] == [1, 1, 1]


@pytest.mark.parametrize("bad", [0, -1, "1", True])
def test_a_worker_refuses_a_rest_that_is_none(play: Callable[..., Any], bad: Any) -> None:
    with pytest.raises(errors.Invalid, match="poll_s"):
        play(lambda store: store.work({}, poll_s=bad))
