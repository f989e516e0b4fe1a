"""Many workers, signals and cancellations at once, on one store: each effect once, and every run comes to its end."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

import holdfast
from holdfast import errors

RUNS, WORKERS = 24, 3


class Fleet:
    """What the workers do, and the outside world that counts it."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.undone: Counter[str] = Counter()
        self._lock = threading.Lock()

    def do(self, what: str) -> str:
        key = holdfast.current_step().key
        with self._lock:
            self.effects[key] += 1
        return key

    def find(self, what: str) -> str | None:
        key = holdfast.current_step().key
        return key if self.effects[key] else None

    def undo(self, key: str) -> None:
        with self._lock:
            self.undone[key] += 1

    def handler(self, run: Any) -> Any:
        run.step("a", self.do, "a", effect="once", probe=self.find, compensate=self.undo)
        if run.input % 2:
            run.wait("go")
        run.subtask("sub", lambda sub: sub.step("x", self.do, "x", effect="once", probe=self.find))
        return run.step("c", self.do, "c", effect="once", probe=self.find)


def signals(process: Any) -> None:
    for number in range(RUNS):
        try:
            process.thread(f"t{number % 4}").signal("go", number, run=f"r{number}")
        except errors.RunEnded:
            continue


def cancels(process: Any) -> None:
    for number in range(0, RUNS, 5):
        try:
            process.thread(f"t{number % 4}").cancel(f"r{number}")
        except errors.RunEnded:
            continue


def ended(process: Any) -> bool:
    return all(info.status in ("done", "cancelled", "failed") for info in process.store.runs(limit=None))


@pytest.mark.every_engine
@pytest.mark.slow
@pytest.mark.parametrize("round", range(3))
def test_a_fleet_carries_out_every_run_once(place: Any, process: Any, round: int) -> None:
    fleet, stop = Fleet(), threading.Event()
    for number in range(RUNS):
        process.thread(f"t{number % 4}").submit(f"r{number}", handler="h", input=number)
    workers = [place.process(f"w{number}") for number in range(WORKERS)]
    raised: list[BaseException] = []

    def work(worker: Any) -> None:
        try:
            worker.store.work({"h": fleet.handler}, stop=stop, poll_s=0.01)
        except BaseException as error:
            raised.append(error)

    others = [(signals, place.process("signaller")), (cancels, place.process("canceller"))]
    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    threads += [threading.Thread(target=act, args=(by,)) for act, by in others]
    for thread in threads:
        thread.start()
    for _ in range(600):
        if ended(process) or raised:
            break
        stop.wait(0.05)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert raised == []
    assert Counter(info.status for info in process.store.runs(limit=None)).keys() <= {"done", "cancelled"}
    assert set(fleet.effects.values()) == {1}
    for info in process.store.runs(limit=None):
        steps = {step.name: step for step in process.thread(info.thread).timeline(info.name).steps}
        if info.status == "done":
            assert {step.standing for step in steps.values()} == {"completed"}
        elif "a" in steps:
            assert fleet.undone[steps["a"].key] == 1
    for number in range(4):
        numbers = [entry.number for entry in process.thread(f"t{number}").log()]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.every_engine
def test_a_worker_that_is_busy_with_its_first_run_leaves_the_rest_to_others(place: Any, process: Any) -> None:
    for number in range(60):
        process.thread().submit(f"r{number}", handler="h")
    begun, go, stop = threading.Event(), threading.Event(), threading.Event()

    def slow(run: Any) -> None:
        begun.set()
        assert go.wait(30)

    first = threading.Thread(
        target=place.process("slow").store.work,
        args=({"h": slow},),
        kwargs={"stop": stop, "on_run": lambda _: stop.set()},
    )
    first.start()
    assert begun.wait(30)
    report = place.process("quick").store.resume({"h": lambda run: None})
    go.set()
    first.join(30)
    assert Counter(one.outcome for one in report)["done"] == 59
    assert {info.status for info in process.store.runs(limit=None)} == {"done"}
