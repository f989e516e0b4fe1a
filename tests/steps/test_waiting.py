# ruff: noqa: PT012 - the block is a run, and its end is part of what raises
"""Waiting for a person or an event: the first signal counts, none is lost, and a late one is told so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock

Kinds = Callable[..., list[str]]
Told = Callable[..., list[dict[str, Any]]]


def one() -> int:
    return 1


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    got: list[Any] = []

    def run() -> None:
        try:
            got.append(work())
        except BaseException as error:
            got.append(error)

    worker = threading.Thread(target=run)
    worker.start()
    return worker, got


def test_a_signal_before_the_wait(process: Any, other: Any, told: Told, kinds: Kinds) -> None:
    run = process.thread().run("r")
    sent = other.thread().signal("approval", {"ok": True}, by="ana")
    assert (sent.first, sent.run, sent.value) == (True, "r", {"ok": True})
    assert run.wait("approval") == {"ok": True}
    assert run.wait("approval") == {"ok": True}
    assert kinds(process.thread(), "r") == ["opened", "signal", "waiting", "completed"]
    assert [(entry["outcome"], entry.get("by")) for entry in told(process.thread(), "signal")] == [
        ("sent", "ana"), ("came", None)
    ]  # fmt: skip


def test_a_signal_during_the_wait(process: Any, other: Any) -> None:
    waits = threading.Event()
    process.wire.after.append(lambda ops: waits.set() if "waiting" in str(ops) else None)
    run = process.thread().run("r")
    worker, got = in_background(lambda: run.wait("approval"))
    assert waits.wait(10)
    other.thread().signal("approval", "yes")
    worker.join(10)
    assert got == ["yes"]


def test_a_signal_after_the_process_that_waited_is_gone(process: Any, other: Any, place: Any, died: Any) -> None:
    process.dies("after", "waiting")
    with pytest.raises(died), process.thread().run("r") as run:
        run.wait("approval")
    other.thread().signal("approval", "yes")
    other.lapse()
    (report,) = place.process("third").store.resume({"r": lambda run: run.wait("approval")})
    assert (report.outcome, report.result) == ("done", "yes")


def test_the_first_signal_counts_and_a_repetition_is_told(process: Any, other: Any, kinds: Kinds) -> None:
    run = process.thread().run("r")
    assert other.thread().signal("approval", "yes").first
    again = other.thread().signal("approval", "no")
    assert (again.first, again.value) == (False, "yes")
    assert run.wait("approval") == "yes"
    late = other.thread().signal("approval", "no")
    assert (late.first, late.value) == (False, "yes")
    assert kinds(process.thread(), "r").count("signal") == 1


@pytest.mark.every_engine
def test_of_many_signals_at_once_one_is_the_first(place: Any, process: Any) -> None:
    run = process.thread().run("r")
    processes = [place.process(f"p{number}") for number in range(4)]
    barrier = threading.Barrier(4, timeout=10)

    def send(number: int) -> Any:
        barrier.wait()
        return processes[number].thread().signal("approval", number)

    workers = [in_background(lambda number=number: send(number)) for number in range(4)]  # type: ignore[misc]
    for worker, _ in workers:
        worker.join(20)
    sent = [got[0] for _, got in workers]
    first = [signal.value for signal in sent if signal.first]
    assert len(first) == 1
    assert {signal.value for signal in sent} == set(first)
    assert run.wait("approval") == first[0]


def test_no_value_is_a_value(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    other.thread().signal("go")
    assert run.wait("go") is None
    assert run.steps[0].how == "signal"


# Time limits


def test_a_wait_that_times_out_is_recorded(process: Any, other: Any, clock: ManualClock, told: Told) -> None:
    run = process.thread().run("r")
    worker, got = in_background(lambda: run.wait("approval", timeout_s=60))
    while not got and worker.is_alive():
        clock.advance(20)
        worker.join(0.05)
    assert isinstance(got[0], errors.WaitTimedOut)
    with pytest.raises(errors.WaitTimedOut):
        run.wait("approval", timeout_s=60)
    assert told(process.thread(), "signal")[-1]["outcome"] == "timed out"
    with pytest.raises(errors.RunEnded, match="no longer waits"):
        other.thread().signal("approval", "too late")
    assert run.steps[0].how == "timeout"
    assert run.step("goes on", one, effect="pure") == 1


def test_a_wait_of_no_time_only_looks(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    other.thread().signal("there", 1)
    assert run.wait("there", timeout_s=0) == 1
    with pytest.raises(errors.WaitTimedOut):
        run.wait("not there", timeout_s=0)


@pytest.mark.every_engine
def test_the_time_of_a_wait_survives_a_restart(process: Any, other: Any, died: Any, clock: ManualClock) -> None:
    process.dies("after", "waiting")
    with pytest.raises(died):
        process.thread().run("r").wait("approval", timeout_s=100)
    clock.advance(90)
    run = other.thread().run("r")
    until = run.steps[0]
    assert until.standing == "waiting"
    worker, got = in_background(lambda: run.wait("approval", timeout_s=100))
    worker.join(0.3)
    assert got == []
    clock.advance(11)  # of the hundred seconds since the wait began, not since it was taken up
    worker.join(10)
    assert isinstance(got[0], errors.WaitTimedOut)


def test_a_signal_that_came_in_time_is_taken_although_it_is_looked_at_late(
    process: Any, other: Any, clock: ManualClock, died: Any
) -> None:
    process.dies("after", "waiting")
    with pytest.raises(died):
        process.thread().run("r").wait("approval", timeout_s=100)
    other.thread().signal("approval", "in time")
    clock.advance(1000)
    assert other.thread().run("r").wait("approval", timeout_s=100) == "in time"


def test_the_end_of_the_time_does_not_overtake_a_signal_that_is_under_way(process: Any, other: Any) -> None:
    run = process.thread().run("r")

    def signal_first(ops: Any) -> None:
        if "timed out" in str(ops):
            process.wire.before.clear()
            other.thread().signal("approval", "just in time")

    process.wire.before.append(signal_first)
    assert run.wait("approval", timeout_s=0) == "just in time"


def test_a_signal_does_not_overtake_the_end_of_the_time(process: Any, other: Any) -> None:
    run = process.thread().run("r")

    def time_out_first(ops: Any) -> None:
        other.wire.before.clear()
        with pytest.raises(errors.WaitTimedOut):
            run.wait("approval", timeout_s=0)

    other.wire.before.append(time_out_first)
    with pytest.raises(errors.RunEnded, match="no longer waits"):
        other.thread().signal("approval", "just too late")


@pytest.mark.parametrize("timeout_s", [-1, "5", True, float("nan"), float("inf")])
@pytest.mark.usefixtures("any_engine")
def test_a_wrong_time_limit_is_refused(thread: holdfast.Thread, timeout_s: Any) -> None:
    run = thread.run("r")
    with pytest.raises(errors.Invalid, match="timeout_s"):
        run.wait("approval", timeout_s=timeout_s)
    assert run.steps == []


# Parked


@pytest.mark.every_engine
def test_a_parked_run_is_continued_after_its_signal(process: Any, other: Any, world: Any, kinds: Kinds) -> None:
    def handler(run: Any) -> Any:
        run.step("ask", world.do, "ask", effect="once", probe=world.find)
        answer = run.wait("approval")
        return run.step("act", world.do, answer, effect="once", probe=world.find)["did"]

    process.thread().submit("r")
    (report,) = process.store.resume({"r": handler})
    assert report.outcome == "waiting"
    (info,) = other.store.runs(status="waiting")
    assert (info.name, info.waits, info.holder) == ("r", "approval", "")
    assert other.store.resume({"r": handler}) == []
    assert other.thread().signal("approval", "buy").first
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, report.result) == ("done", "buy")
    assert (world.times("ask"), world.times("buy")) == (1, 1)
    assert kinds(other.thread(), "r").count("parked") == 1


def test_a_parked_run_is_continued_when_its_time_is_over(process: Any, other: Any, clock: ManualClock) -> None:
    def handler(run: Any) -> Any:
        try:
            return run.wait("approval", timeout_s=3600)
        except errors.WaitTimedOut:
            return "nobody answered"

    process.thread().submit("r")
    assert [report.outcome for report in process.store.resume({"r": handler})] == ["waiting"]
    clock.advance(3000)
    assert other.store.resume({"r": handler}) == []
    clock.advance(1000)
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, report.result) == ("done", "nobody answered")


def test_a_parked_run_can_be_opened_by_name(process: Any, other: Any) -> None:
    for name, timeout_s in (("r", None), ("timed", 3600)):
        process.thread().submit(name)
        process.store.resume({name: lambda run, t=timeout_s: run.wait("approval", timeout_s=t)})
        run = other.thread().run(name)
        assert run.status == "open"
        other.thread().signal("approval", "yes", run=name)
        assert run.wait("approval") == "yes"
        run.finish()


def test_parking_by_hand_leaves_the_code(process: Any, other: Any) -> None:
    with pytest.raises(holdfast.Suspended), process.thread().run("r") as run:
        run.step("a", one, effect="pure")
        try:
            run.wait("approval", park=True)
        except Exception:
            pytest.fail("swallowed")
    assert [info.status for info in other.thread().runs()] == ["waiting"]
    with pytest.raises(errors.RunEnded):
        run.step("b", one, effect="pure")


@pytest.mark.every_engine
def test_a_signal_while_a_run_is_being_parked_is_not_lost(process: Any, other: Any) -> None:
    def signal_first(ops: Any) -> None:
        if "parked" in str(ops):
            process.wire.before.clear()
            other.thread().signal("approval", "yes")

    process.wire.before.append(signal_first)
    process.thread().submit("r")
    (report,) = process.store.resume({"r": lambda run: run.wait("approval")})
    assert (report.outcome, report.result) == ("done", "yes")


def test_a_crash_right_after_parking_loses_nothing(process: Any, other: Any, died: Any) -> None:
    process.dies("after", "parked")
    process.thread().submit("r")
    with pytest.raises(died):
        process.store.resume({"r": lambda run: run.wait("approval")})
    other.thread().signal("approval", "yes")  # no lease has to end first
    assert [report.result for report in other.store.resume({"r": lambda run: run.wait("approval")})] == ["yes"]


def test_waits_one_after_the_other(process: Any, other: Any) -> None:
    def handler(run: Any) -> list[Any]:
        return [run.wait("first"), run.wait("second")]

    process.thread().submit("r")
    process.store.resume({"r": handler})
    other.thread().signal("second", 2, run="r")  # ahead of its wait: kept
    assert other.store.resume({"r": handler}) == []
    other.thread().signal("first", 1)
    assert [report.result for report in other.store.resume({"r": handler})] == [[1, 2]]


# For whom


def test_a_signal_goes_to_the_run_that_waits_for_it(process: Any, other: Any) -> None:
    thread = process.thread()
    busy = thread.run("busy")
    thread.submit("waiter")
    process.store.resume({"waiter": lambda run: run.wait("approval")})
    assert other.thread().signal("approval", "yes").run == "waiter"
    with pytest.raises(errors.Invalid, match="give run="):
        other.thread().signal("something else")
    assert other.thread().signal("something else", run="busy").run == "busy"
    busy.finish()


def test_a_signal_that_could_be_for_several_is_refused(process: Any, other: Any) -> None:
    runs = [process.thread().run(name) for name in ("a", "b")]
    with pytest.raises(errors.Invalid, match=r"'a'.*'b'|'b'.*'a'"):
        other.thread().signal("approval", "yes")
    assert other.thread().signal("approval", "yes", run="b").run == "b"
    assert runs[1].wait("approval") == "yes"
    with pytest.raises(errors.WaitTimedOut):
        runs[0].wait("approval", timeout_s=0)


def test_a_signal_for_a_run_that_ended_is_refused(process: Any, other: Any) -> None:
    with process.thread().run("r"):
        pass
    for to in (None, "r"):
        with pytest.raises(errors.RunEnded):
            other.thread().signal("approval", "yes", run=to)
    with pytest.raises(errors.NotFound):
        other.thread().signal("approval", "yes", run="other")
    assert process.thread().timeline("r").moments[-1].kind == "ended"


def test_an_old_approval_does_not_approve_something_new(process: Any, other: Any) -> None:
    with process.thread().run("monday") as run:
        other.thread().signal("approval", "yes")
        assert run.wait("approval") == "yes"
    tuesday = process.thread().run("tuesday")
    with pytest.raises(errors.WaitTimedOut):
        tuesday.wait("approval", timeout_s=0)


def test_a_signal_is_checked(process: Any) -> None:
    process.thread().run("r")
    for name, value, by in (("", 1, "x"), ("s", object(), "x"), ("s", 1, ""), (5, 1, "x")):
        with pytest.raises(errors.Invalid):
            process.thread().signal(name, value, by=by)
    assert [moment.kind for moment in process.thread().timeline("r").moments] == ["opened"]


def test_a_signal_to_a_stopped_run_is_there_when_it_goes_on(process: Any, other: Any, died: Any) -> None:
    def handler(run: Any) -> Any:
        run.step("s", one, effect="once", on_unknown="stop")
        return run.wait("approval")

    process.dies("before", "completed")
    with pytest.raises(died), process.thread().run("r") as run:
        handler(run)
    process.lapse()
    other.store.resume({"r": handler})
    other.thread().signal("approval", "yes")
    run = other.thread().run("r")
    run.settle("s", happened=True)
    run.release()
    assert [report.result for report in other.store.resume({"r": handler})] == ["yes"]


def test_a_run_that_failed_because_nobody_answered_waits_anew_when_it_is_opened_again(process: Any, other: Any) -> None:
    for inside in (False, True):
        name = f"r{inside}"
        with pytest.raises((errors.WaitTimedOut, errors.StepFailed)), process.thread().run(name) as run:
            if inside:
                run.subtask("t", lambda sub: sub.wait("approval", timeout_s=0))
            run.wait("approval", timeout_s=0)
        again = other.thread().run(name)
        other.thread().signal("approval", "after all", run=name)
        wait = (lambda sub: sub.wait("approval")) if inside else None
        assert (again.subtask("t", wait) if wait else again.wait("approval")) == "after all"
        again.finish()


def test_a_timeout_that_was_taken_as_an_answer_stays_the_answer(process: Any, other: Any) -> None:
    with pytest.raises(errors.StepFailed), process.thread().run("r") as run:
        with pytest.raises(errors.WaitTimedOut):
            run.wait("approval", timeout_s=0)
        run.step("without approval", one, effect="pure")
        run.step("fails", lambda: 1 / 0, effect="pure")
    again = other.thread().run("r")
    with pytest.raises(errors.WaitTimedOut):
        again.wait("approval", timeout_s=0)
    with pytest.raises(errors.RunEnded):
        other.thread().signal("approval", "too late", run="r")
