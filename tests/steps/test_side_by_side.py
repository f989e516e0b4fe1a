"""Steps side by side in one run: nothing lets the run go while one of them is still under way."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio, errors


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


class Charges:
    """A payment service that takes its time and tells the truth."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.go = asyncio.Event()

    async def charge(self) -> str:
        key = holdfast.current_step().key
        await self.go.wait()
        self.made.append(key)
        return key

    def find(self) -> str | None:
        key = holdfast.current_step().key
        return key if key in self.made else None


async def _soon(event: asyncio.Event) -> None:
    await asyncio.sleep(0.12)
    event.set()


def test_a_run_is_not_parked_while_a_step_is_under_way_beside_the_wait(path: Path) -> None:
    async def main() -> tuple[list[Any], list[str]]:
        charges = Charges()

        async def handler(run: aio.AsyncRun) -> Any:
            charge = run.step("charge", charges.charge, effect="once", probe=charges.find)
            return (await asyncio.gather(charge, run.wait("ok")))[1]

        async with aio.open(path) as store:
            thread = store.thread("t")
            await thread.submit("r")
            later = asyncio.ensure_future(_soon(charges.go))
            outcomes = [(await store.resume({"r": handler}))[0].outcome]
            await later
            await thread.signal("ok", 5)
            outcomes.append((await store.resume({"r": handler}))[0].outcome)
            return outcomes, charges.made

    outcomes, made = asyncio.run(main())
    assert outcomes == ["waiting", "done"]
    assert len(made) == 1


def test_a_run_does_not_fail_before_the_step_beside_has_come_to_its_end(path: Path) -> None:
    async def broken() -> None:
        raise ValueError("at once")

    async def main() -> tuple[str, list[str], list[str]]:
        charges = Charges()
        async with aio.open(path) as store:
            thread = store.thread("t")
            later = asyncio.ensure_future(_soon(charges.go))

            async def both() -> None:
                async with thread.run("r") as run:
                    charge = run.step("charge", charges.charge, effect="once", probe=charges.find)
                    await asyncio.gather(charge, run.step("broken", broken, effect="pure"))

            with pytest.raises(errors.StepFailed):
                await both()
            await later
            steps = (await thread.timeline("r")).steps
            return (await thread.runs())[0].status, [step.standing for step in steps], charges.made

    status, standings, made = asyncio.run(main())
    assert (status, sorted(standings), len(made)) == ("failed", ["completed", "failed"], 1)


def test_the_end_of_the_block_waits_for_a_step_in_another_thread(path: Path) -> None:
    began, go, made = threading.Event(), threading.Event(), []

    def charge() -> int:
        began.set()
        assert go.wait(10)
        made.append(1)
        return 1

    with holdfast.open(path) as store:
        thread = store.thread("t")
        with thread.run("r") as run:
            worker = threading.Thread(target=run.step, args=("charge", charge), kwargs=_once())
            worker.start()
            assert began.wait(10)
            threading.Timer(0.1, go.set).start()
        worker.join(10)
        assert [(step.name, step.standing) for step in thread.timeline("r").steps] == [("charge", "completed")]
        assert (thread.runs()[0].status, made) == ("done", [1])


def _once() -> dict[str, Any]:
    return {"effect": "once", "on_unknown": "stop"}


def test_a_cancellation_after_the_last_step_is_heard_at_the_end_of_the_block(path: Path) -> None:
    undone: list[int] = []
    with holdfast.open(path) as store, holdfast.open(path) as other:
        thread = store.thread("t")

        def work(run: holdfast.Run) -> None:
            with run:
                run.step("a", lambda: 1, effect="idempotent", compensate=undone.append)
                other.thread("t").cancel("r")

        with pytest.raises(errors.Cancelled):
            work(thread.run("r"))
        assert (thread.runs()[0].status, undone) == ("cancelled", [1])


@pytest.mark.parametrize("act", ["finish", "abandon", "release", "settle", "carry_out"])
def test_nothing_ends_or_settles_a_run_from_inside_a_step_of_it(path: Path, act: str) -> None:
    acts = {
        "finish": lambda run: run.finish(),
        "abandon": lambda run: run.abandon(),
        "release": lambda run: run.release(),
        "settle": lambda run: run.settle("s", happened=True, result=2),
        "carry_out": lambda run: run.carry_out(lambda run: 1),
    }
    with holdfast.open(path) as store:
        run = store.thread("t").run("r")
        with pytest.raises(errors.StepFailed, match="inside step 's'"):
            run.step("s", lambda: acts[act](run), effect="pure")
        assert [step.standing for step in run.steps] == ["failed"]
        run.release()


@pytest.mark.parametrize("happened", ["no", "false", 0, 1, None])
def test_settling_wants_a_plain_yes_or_no(path: Path, happened: Any) -> None:
    with holdfast.open(path) as store, store.thread("t").run("r") as run:
        with pytest.raises(errors.Invalid, match="True or False"):
            run.settle("s", happened=happened)
        run.step("s", lambda: 1, effect="pure")


def test_steps_begun_at_once_stay_within_the_budget(path: Path) -> None:
    ran: list[int] = []

    def one(number: int) -> int:
        ran.append(number)
        return number

    def task(sub: holdfast.Subtask) -> int:
        def go(number: int) -> None:
            try:
                sub.step(f"s{number}", one, number, effect="pure")
            except errors.BudgetExceeded:
                refused.append(number)

        refused: list[int] = []
        workers = [threading.Thread(target=go, args=(number,)) for number in range(10)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(20)
        kept.append(sub)
        return len(refused)

    kept: list[holdfast.Subtask] = []
    with holdfast.open(path) as store, store.thread("t").run("r") as run:
        assert run.subtask("task", task, budget={"steps": 5}) == 5
        assert len(ran) == 5
        with pytest.raises(errors.RunEnded):
            kept[0].step("late", one, 99, effect="pure")
        assert 99 not in ran
