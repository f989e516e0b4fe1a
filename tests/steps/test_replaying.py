# ruff: noqa: PT012 - the block is a run, and its end is part of what raises
"""Going through a recorded run with today's code: the same, or where it went another way, and touching nothing."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.thread import replay


def never(*_: Any) -> Any:
    raise AssertionError("a replay ran a step")


def recorded(run: Any) -> dict[str, Any]:
    a = run.step("a", lambda number: number + 1, 1, effect="once", on_unknown="stop")
    b = run.subtask("b", lambda sub: sub.step("inner", lambda: "deep", effect="pure"))
    c = run.wait("c")
    return {"all": [a, b, c]}


def again(run: Any) -> dict[str, Any]:
    a = run.step("a", never, 1, effect="once", on_unknown="stop")
    b = run.subtask("b", never)
    c = run.wait("c")
    return {"all": [a, b, c]}


@pytest.fixture
def thread(process: Any, other: Any) -> holdfast.Thread:
    """A thread with a run that is done."""
    process.thread().submit("r")
    other.thread().signal("c", "signal", run="r")
    (report,) = process.store.resume({"r": recorded})
    assert report.outcome == "done"
    return process.thread()  # type: ignore[no-any-return]


def stored(process: Any) -> Any:
    return process.wire.commits, list(process.store.watch(timeout_s=0))


@pytest.mark.every_engine
def test_the_same_code_goes_the_same_way(process: Any, thread: holdfast.Thread) -> None:
    replayed = replay(thread, "r", again)
    assert replayed.same
    assert (replayed.steps, replayed.unvisited, replayed.error) == (("a", "b", "c"), (), "")
    assert replayed.result == replayed.recorded == {"all": [2, "deep", "signal"]}
    assert (replayed.thread, replayed.run) == ("trip-42", "r")


def diverging(run: Any) -> Any:
    again(run)
    return run.step("new", never, effect="pure")


def other_input(run: Any) -> Any:
    return run.step("a", never, 2, effect="once", on_unknown="stop")


def missing(run: Any) -> Any:
    run.step("a", never, 1, effect="once", on_unknown="stop")
    run.wait("c")
    return {"all": [2, "deep", "signal"]}


def another_result(run: Any) -> Any:
    return {"more": again(run)}


def new_wait(run: Any) -> Any:
    run.wait("other")


def new_subtask(run: Any) -> Any:
    run.subtask("other", never)


def fails(run: Any) -> Any:
    again(run)
    raise ValueError("today it fails")


def unstorable(run: Any) -> Any:
    again(run)
    return object()


@pytest.mark.parametrize(
    ("handler", "error", "unvisited"),
    [
        (diverging, "'new' is not recorded in run", ()),
        (other_input, "other input", ("b", "c")),
        (missing, "", ("b",)),
        (another_result, "", ()),
        (new_wait, "'other' is not recorded in run", ("a", "b", "c")),
        (new_subtask, "'other' is not recorded in run", ("a", "b", "c")),
        (fails, "ValueError: today it fails", ()),
        (unstorable, "cannot be", ()),
    ],
)
def test_code_that_goes_another_way_is_told(
    process: Any, thread: holdfast.Thread, handler: Any, error: str, unvisited: tuple[str, ...]
) -> None:
    replayed = replay(thread, "r", handler)
    assert not replayed.same
    assert error in replayed.error
    assert bool(error) == bool(replayed.error)
    assert replayed.unvisited == unvisited


@pytest.mark.parametrize(
    "handler", [again, diverging, other_input, missing, fails, new_wait, lambda run: run.finish(5),
                lambda run: run.release(), lambda run: run.abandon(), lambda run: run.heartbeat(),
                lambda run: run.settle("a", happened=False), lambda run: run.fail(ValueError())],
)  # fmt: skip
def test_a_replay_touches_nothing(process: Any, thread: holdfast.Thread, handler: Any) -> None:
    before = stored(process)
    replay(thread, "r", handler)
    assert stored(process) == before


def test_declared_steps_replay_too(process: Any) -> None:
    calls: list[int] = []

    @holdfast.step(effect="once", on_unknown="stop")
    def book() -> int:
        calls.append(1)
        return 7

    with process.thread().run("r") as run:
        run.finish(book())
    assert replay(process.thread(), "r", lambda run: book()).same
    assert calls == [1]


@dataclasses.dataclass
class Ticket:
    number: int


def test_a_typed_result_is_compared_as_it_is_stored(process: Any) -> None:
    process.thread().submit("r")
    process.store.resume({"r": lambda run: Ticket(5)})
    assert replay(process.thread(), "r", lambda run: Ticket(5)).same
    assert not replay(process.thread(), "r", lambda run: Ticket(6)).same


def test_a_failed_run_replays_to_the_same_failure(process: Any) -> None:
    def handler(run: Any) -> None:
        run.step("s", lambda: 1 / 0, effect="pure")

    def itself(run: Any) -> None:
        raise ValueError("in the handler")

    for name, code in (("step", handler), ("itself", itself)):
        process.thread().submit(name)
        process.store.resume({name: code})
        assert replay(process.thread(), name, code).same
        mended = replay(process.thread(), name, lambda run: None)
        assert not mended.same
    assert "recorded run ended with ValueError: in the handler" in mended.error


def test_an_unfinished_run_replays_as_far_as_it_got(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    run.step("a", lambda: 1, effect="pure")

    def handler(run: Any) -> None:
        run.step("a", never, effect="pure")
        run.step("b", never, effect="pure")

    replayed = replay(other.thread(), "r", handler)
    assert (replayed.steps, replayed.same) == (("a", "b"), False)
    assert "'b' is not recorded in run" in replayed.error
    run.step("b", lambda: 2, effect="pure")  # it was not disturbed
    run.finish()


def test_a_cancelled_run_replays_to_its_cancellation(process: Any) -> None:
    def handler(run: Any) -> None:
        run.step("a", lambda: 1, effect="pure", compensate=lambda result: None)
        if run.work.replaying is False:
            process.thread().cancel("r")
        run.step("b", never, effect="pure")

    process.thread().submit("r")
    assert [one.outcome for one in process.store.resume({"r": handler})] == ["cancelled"]
    assert replay(process.thread(), "r", handler).same


def test_yesterdays_failed_run_can_be_read_today(process: Any, other: Any, clock: Any) -> None:
    with pytest.raises(errors.StepFailed), process.thread().run("r") as run:
        run.step("a", lambda: "fine", effect="pure")
        clock.advance(5)
        run.step("b", lambda: [clock.advance(3), 1 / 0], effect="idempotent", retry=2)
    clock.advance(86_400)
    timeline = other.thread().timeline("r")
    assert (timeline.run.status, timeline.result) == ("failed", None)
    assert timeline.error is not None
    a, b = timeline.steps
    assert (a.standing, a.result, a.how) == ("completed", "fine", "ran")
    assert (b.standing, b.attempts, b.error and b.error["type"]) == ("failed", 2, "ZeroDivisionError")
    assert a.seconds is not None
    assert b.seconds is not None
    assert (a.seconds < 1, b.seconds >= 6) == (True, True)
    words = [moment.text for moment in timeline.moments]
    assert words[0] == "begun by first"
    assert "intends to run (idempotent, attempt 2)" in words
    assert "failed, to be tried again: ZeroDivisionError: division by zero" in words
    assert words[-1].startswith("failed: StepFailed")
    assert [moment.number for moment in timeline.moments] == list(range(1, len(words) + 1))
