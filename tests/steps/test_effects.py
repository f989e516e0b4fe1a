# ruff: noqa: PT012 - the block is a run, and its end is part of what raises
"""What becomes of a step that was begun and not recorded as done: the whole matrix, and every other way to fail."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock

Kinds = Callable[..., list[str]]
Told = Callable[..., list[dict[str, Any]]]


def crash(process: Any, died: Any, world: Any, *, happened: bool, **options: Any) -> None:
    """Begin a step in a process that dies in its middle, before or after the effect."""

    def fn() -> Any:
        if happened:
            world.do()
        process.die()
        raise died

    with pytest.raises(died), process.thread().run("r") as run:
        run.step("book", fn, **options)
    process.lapse()


def carry_on(process: Any, world: Any, **options: Any) -> Any:
    run = process.thread().run("r")
    result = run.step("book", world.do, **options)
    assert run.step("book", world.do, **options) == result  # and once more, from the records
    return result


@pytest.mark.parametrize("effect", ["pure", "idempotent"])
@pytest.mark.parametrize("happened", [True, False])
def test_what_may_be_repeated_is_run_again(
    process: Any, other: Any, died: Any, world: Any, told: Told, effect: str, happened: bool
) -> None:
    crash(process, died, world, happened=happened, effect=effect)
    assert carry_on(other, world, effect=effect)["number"] == (2 if happened else 1)
    assert len(world.keys()) == 1
    (resolution,) = told(other.thread(), "resolution")
    assert (resolution["step"], resolution["decision"]) == ("book", "rerun")
    assert effect in resolution["why"]


@pytest.mark.parametrize("on_unknown", [None, "stop", "rerun", "skip"])
def test_the_probe_found_it_so_it_is_recorded(
    process: Any, other: Any, died: Any, world: Any, told: Told, kinds: Kinds, on_unknown: Any
) -> None:
    options = {"effect": "once", "probe": world.find, "on_unknown": on_unknown}
    crash(process, died, world, happened=True, **options)
    assert carry_on(other, world, **options) == {"did": "book", "number": 1}
    assert world.times() == 1
    assert {key for _, key in world.asked} == world.keys()
    assert kinds(other.thread(), "r", "book") == ["intent", "probed", "resolved", "completed"]
    (resolution,) = told(other.thread(), "resolution")
    assert resolution["decision"] == "recorded"
    assert "found that it happened" in resolution["why"]
    (step,) = other.thread().timeline("r").steps
    assert (step.how, step.attempts) == ("probed", 1)


@pytest.mark.parametrize("on_unknown", [None, "stop", "rerun", "skip"])
def test_the_probe_is_sure_that_it_did_not_happen_so_it_runs_with_the_same_key(
    process: Any, other: Any, died: Any, world: Any, told: Told, kinds: Kinds, on_unknown: Any
) -> None:
    options = {"effect": "once", "probe": world.find, "on_unknown": on_unknown}
    crash(process, died, world, happened=False, **options)
    first = other.thread().timeline("r").steps[0].key
    assert carry_on(other, world, **options) == {"did": "book", "number": 1}
    assert (world.times(), world.keys()) == (1, {first})
    assert kinds(other.thread(), "r", "book") == ["intent", "probed", "resolved", "intent", "completed"]
    (resolution,) = told(other.thread(), "resolution")
    assert resolution["decision"] == "rerun"
    assert other.thread().timeline("r").steps[0].attempts == 2


def test_done_tells_that_it_happened_with_result_none(process: Any, other: Any, died: Any, world: Any) -> None:
    options = {"effect": "once", "probe": lambda: holdfast.Done(None)}
    crash(process, died, world, happened=True, **options)
    assert carry_on(other, world, **options) is None
    assert world.times() == 1
    assert other.thread().timeline("r").steps[0].how == "probed"


def _cannot_say() -> Any:
    raise holdfast.Unknown("the service is down")


def _raises() -> Any:
    raise OSError("no network")


def _gives_what_cannot_be_stored() -> Any:
    return object()


UNSURE = [None, _cannot_say, _raises, _gives_what_cannot_be_stored]


@pytest.mark.parametrize("probe", UNSURE)
@pytest.mark.parametrize("happened", [True, False])
def test_nobody_can_say_and_the_policy_is_rerun(
    process: Any, other: Any, died: Any, world: Any, told: Told, probe: Any, happened: bool
) -> None:
    options = {"effect": "once", "probe": probe, "on_unknown": "rerun"}
    crash(process, died, world, happened=happened, **options)
    assert carry_on(other, world, **options)["number"] == 1 + happened
    assert len(world.keys()) == 1
    (resolution,) = told(other.thread(), "resolution")
    assert resolution["decision"] == "rerun"
    assert "the policy is rerun" in resolution["why"]


@pytest.mark.parametrize("probe", UNSURE)
@pytest.mark.parametrize("happened", [True, False])
def test_nobody_can_say_and_the_policy_is_skip(
    process: Any, other: Any, died: Any, world: Any, told: Told, probe: Any, happened: bool
) -> None:
    options = {"effect": "once", "probe": probe, "on_unknown": "skip"}
    crash(process, died, world, happened=happened, **options)
    assert carry_on(other, world, **options) is None
    assert world.times() == happened
    (resolution,) = told(other.thread(), "resolution")
    assert resolution["decision"] == "skipped"
    assert told(other.thread(), "step")[-1]["outcome"] == "skipped"
    assert other.thread().timeline("r").steps[0].how == "skipped"


@pytest.mark.parametrize("probe", UNSURE)
@pytest.mark.parametrize("on_unknown", [None, "stop"])
@pytest.mark.parametrize("happened", [True, False])
def test_nobody_can_say_so_the_run_stops_until_a_person_settles_it(
    process: Any, other: Any, died: Any, world: Any, told: Told, probe: Any, happened: bool, on_unknown: Any
) -> None:
    if probe is None and on_unknown is None:
        on_unknown = "stop"
    options = {"effect": "once", "probe": probe, "on_unknown": on_unknown}
    crash(process, died, world, happened=happened, **options)
    key = other.thread().timeline("r").steps[0].key
    with pytest.raises(errors.StepUnknown, match=key), other.thread().run("r") as run:
        run.step("book", world.do, **options)
    assert [info.status for info in other.thread().runs()] == ["stopped"]
    assert other.store.resume({"r": lambda run: 1 / 0}) == []  # nobody takes it up unasked
    assert told(other.thread(), "resolution")[-1]["decision"] == "stopped"

    run = other.thread().run("r")
    run.settle("book", happened=happened, result={"by": "hand"} if happened else None)
    assert told(other.thread(), "resolution")[-1]["decision"] == ("recorded" if happened else "dropped")
    run.release("settled")

    (report,) = other.store.resume({"r": lambda run: run.step("book", world.do, **options)})
    assert report.outcome == "done"
    assert report.result == ({"by": "hand"} if happened else {"did": "book", "number": 1})
    assert world.times() == 1
    assert world.keys() == {key}


@pytest.mark.usefixtures("any_engine")
def test_a_probe_that_hangs_cannot_say(process: Any, other: Any, died: Any, world: Any, told: Told) -> None:
    free = threading.Event()

    @holdfast.step("book", effect="once", probe=lambda: free.wait(20), on_unknown="skip", probe_timeout_s=0.05)
    def book() -> None:
        process.die()
        raise died

    try:
        with pytest.raises(died), process.thread().run("r"):
            book()
        process.lapse()
        with other.thread().run("r"):
            assert book() is None
    finally:
        free.set()
    assert "StepTimeout" in told(other.thread(), "resolution")[-1]["why"]


@pytest.mark.usefixtures("any_engine")
def test_a_probe_sees_the_key_and_the_arguments_and_can_record_nothing(process: Any, other: Any, died: Any) -> None:
    asked: list[Any] = []

    def probe(seat: int, *, meal: str) -> str:
        step = holdfast.current_step()
        step.heartbeat()
        asked.append((seat, meal, step.key, step.name))
        with pytest.raises(errors.Invalid, match="do not nest"):
            other.thread().turn().__enter__()
        return "found"

    def fn(seat: int, *, meal: str) -> None:
        process.die()
        raise died

    with pytest.raises(died):
        process.thread().run("r").step("book", fn, 4, meal="fish", effect="once", probe=probe)
    process.lapse()
    assert other.thread().run("r").step("book", fn, 4, meal="fish", effect="once", probe=probe) == "found"
    assert asked == [(4, "fish", other.thread().timeline("r").steps[0].key, "book")]


def test_a_crash_in_the_middle_of_a_resolution_is_resolved_again(
    place: Any, process: Any, other: Any, died: Any, world: Any
) -> None:
    options = {"effect": "once", "probe": world.find}
    crash(process, died, world, happened=True, **options)
    other.dies("before", "completed")
    with pytest.raises(died):
        carry_on(other, world, **options)
    other.lapse()
    third = place.process("third")
    third.dies("after", "completed")
    with pytest.raises(died):
        carry_on(third, world, **options)
    third.lapse()
    assert carry_on(place.process("fourth"), world, **options) == {"did": "book", "number": 1}
    assert world.times() == 1


# Effect changed between two versions of the code


@pytest.mark.parametrize("now", ["pure", "idempotent"])
@pytest.mark.parametrize("happened", [True, False])
def test_what_was_once_when_it_was_begun_is_still_asked_about(
    process: Any, other: Any, died: Any, world: Any, now: str, happened: bool
) -> None:
    crash(process, died, world, happened=happened, effect="once", probe=world.find)
    carry_on(other, world, effect=now, probe=world.find)
    assert world.times() == 1


@pytest.mark.parametrize("policy", ["rerun", "skip", "stop"])
def test_what_was_once_keeps_its_policy_when_todays_code_has_none(
    process: Any, other: Any, died: Any, world: Any, policy: str
) -> None:
    crash(process, died, world, happened=True, effect="once", on_unknown=policy)
    if policy == "stop":
        with pytest.raises(errors.StepUnknown):
            carry_on(other, world, effect="idempotent")
    else:
        carry_on(other, world, effect="idempotent")
    assert world.times() == (2 if policy == "rerun" else 1)


def test_what_is_once_now_is_asked_about_although_it_was_begun_as_idempotent(
    process: Any, other: Any, died: Any, world: Any
) -> None:
    crash(process, died, world, happened=True, effect="idempotent")
    assert carry_on(other, world, effect="once", probe=world.find)["number"] == 1
    assert world.times() == 1


# Raising


def test_a_failed_step_is_readable(process: Any, other: Any, told: Told) -> None:
    def fn(amount: int) -> None:
        try:
            {}["missing"]
        except KeyError as cause:
            raise ValueError(f"card declined for {amount}") from cause

    thread = process.thread()
    with pytest.raises(errors.StepFailed, match="ValueError: card declined for 5") as caught, thread.run("r") as run:
        run.step("charge", fn, 5, effect="idempotent")
    facts = caught.value.facts
    assert (facts["step"], facts["run"], facts["thread"], facts["attempts"], facts["type"]) == (
        "charge", "r", "trip-42", 1, "ValueError"
    )  # fmt: skip
    assert isinstance(caught.value.__cause__, ValueError)
    timeline = other.thread().timeline("r")
    (step,) = timeline.steps
    assert step.error is not None
    assert (step.standing, step.error["type"], step.error["message"]) == ("failed", "ValueError", "card declined for 5")
    assert [cause["type"] for cause in step.error["causes"]] == ["KeyError"]
    assert "card declined" in step.error["traceback"]
    assert timeline.run.status == "failed"
    assert timeline.error is not None
    assert timeline.error["type"] == "StepFailed"
    assert [(entry["outcome"], entry["error"]) for entry in told(thread, "step")] == [
        ("failed", "ValueError: card declined for 5")
    ]
    assert told(thread, "run")[-1]["outcome"] == "failed"


@pytest.mark.usefixtures("any_engine")
def test_errors_of_every_odd_kind_can_be_recorded(thread: holdfast.Thread) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    run = thread.run("r")
    loop = ValueError("a")
    loop.__cause__ = ValueError("b")
    loop.__cause__.__cause__ = loop
    for number, error in enumerate([Odd(), ValueError("\ud800"), ValueError("x" * 100_000), loop, StopIteration(1),
                                    ValueError(object()), ExceptionGroup("many", [ValueError()])]):  # fmt: skip

        def fn(error: Exception = error) -> None:
            raise error

        with pytest.raises(errors.StepFailed):
            run.step(f"s{number}", fn, effect="pure")
    assert all(len(str(step.error)) < 20_000 for step in run.steps)


def test_the_same_error_when_it_happens_and_when_it_is_read_back(process: Any) -> None:
    calls: list[int] = []

    def fn() -> None:
        calls.append(1)
        raise ValueError("no")

    run = process.thread().run("r")
    with pytest.raises(errors.StepFailed) as first:
        run.step("s", fn, effect="idempotent")
    with pytest.raises(errors.StepFailed) as again:
        run.step("s", fn, effect="idempotent")
    assert (str(first.value), first.value.facts) == (str(again.value), again.value.facts)
    assert calls == [1]


def test_opening_a_failed_run_again_tries_once_more(process: Any, other: Any, world: Any) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(errors.StepFailed), process.thread().run("r") as run:
        run.step("first", world.do, "first", effect="once", probe=world.find)
        run.step("second", fail, effect="idempotent")
    assert other.store.resume({"r": lambda run: 1 / 0}) == []
    with other.thread().run("r") as run:
        assert run.step("first", world.do, "first", effect="once", probe=world.find)["number"] == 1
        assert run.step("second", lambda: "well", effect="idempotent") == "well"
    assert [info.status for info in other.thread().runs()] == ["done"]
    assert world.times("first") == 1


@pytest.mark.parametrize("happened", [True, False])
def test_a_once_step_that_raises_is_asked_about(process: Any, world: Any, told: Told, happened: bool) -> None:
    def fn() -> None:
        if happened:
            world.do()
        raise TimeoutError("the answer got lost")

    run = process.thread().run("r")
    if happened:
        assert run.step("book", fn, effect="once", probe=world.find) == {"did": "book", "number": 1}
        assert told(process.thread(), "resolution")[-1]["decision"] == "recorded"
    else:
        with pytest.raises(errors.StepFailed, match="the answer got lost"):
            run.step("book", fn, effect="once", probe=world.find)
    assert world.times() == happened


def test_a_once_step_that_raises_and_did_not_happen_is_tried_again(process: Any, world: Any) -> None:
    def fn() -> Any:
        if holdfast.current_step().attempt < 3:
            raise OSError
        return world.do()

    assert process.thread().run("r").step("book", fn, effect="once", probe=world.find, retry=3)["number"] == 1


def test_a_once_step_that_raises_after_it_happened_is_not_tried_again(process: Any, world: Any) -> None:
    def fn() -> Any:
        world.do()
        raise OSError

    assert process.thread().run("r").step("book", fn, effect="once", probe=world.find, retry=3)["number"] == 1
    assert world.times() == 1


@pytest.mark.parametrize("policy", ["stop", "rerun", "skip"])
def test_a_once_step_that_raises_and_nobody_can_say(process: Any, world: Any, policy: Any) -> None:
    def fn() -> Any:
        world.do()
        if world.times() < 3:
            raise OSError("lost")
        return "third"

    run = process.thread().run("r")
    options: dict[str, Any] = {"effect": "once", "probe": _cannot_say, "on_unknown": policy, "retry": 3}
    if policy == "stop":
        with pytest.raises(errors.StepUnknown, match="OSError: lost"):
            run.step("book", fn, **options)
        assert run.status == "stopped"
    else:
        assert run.step("book", fn, **options) == {"rerun": "third", "skip": None}[policy]
    assert world.times() == {"stop": 1, "rerun": 3, "skip": 1}[policy]


@pytest.mark.parametrize("policy", ["stop", "rerun", "skip"])
def test_a_once_step_without_probe_that_raises_may_have_happened(process: Any, world: Any, policy: Any) -> None:
    """A lost answer looks just like a failure, so its policy decides."""

    def fn() -> None:
        world.do()
        raise ValueError("declined")

    run = process.thread().run("r")
    expected: Any = {"stop": errors.StepUnknown, "rerun": errors.StepFailed, "skip": None}[policy]
    if expected is None:
        assert run.step("book", fn, effect="once", on_unknown=policy, retry=3) is None
    else:
        with pytest.raises(expected, match="declined"):
            run.step("book", fn, effect="once", on_unknown=policy, retry=3)
    assert world.times() == {"stop": 1, "rerun": 3, "skip": 1}[policy]


def test_a_once_step_that_is_sure_that_nothing_happened_says_so(process: Any, world: Any) -> None:
    def fn() -> Any:
        if holdfast.current_step().attempt < 3:
            raise holdfast.NotDone("no seats held yet")
        return world.do()

    run = process.thread().run("r")
    assert run.step("book", fn, effect="once", on_unknown="stop", retry=3)["number"] == 1
    with pytest.raises(errors.StepFailed, match="no seats held yet"):
        run.step("again", fn, effect="once", probe=world.find, retry=2)
    assert world.asked == []


# Time limits


@pytest.fixture
def hang() -> Any:
    """A function that hangs until the test is over."""
    free, left = threading.Event(), []

    def fn() -> None:
        left.append(threading.current_thread())
        free.wait(30)

    yield fn
    free.set()
    for thread in left:
        thread.join(10)


def test_a_function_that_takes_too_long_fails(process: Any, hang: Any, kinds: Kinds) -> None:
    run = process.thread().run("r")
    with pytest.raises(errors.StepFailed, match=r"took longer than 0\.02 s") as caught:
        run.step("s", hang, effect="idempotent", timeout_s=0.02)
    assert caught.value.facts["type"] == "StepTimeout"
    assert isinstance(caught.value.__cause__, errors.StepTimeout)
    assert kinds(process.thread(), "r", "s") == ["intent", "failed"]


def test_a_function_in_time_is_as_without_a_limit(process: Any) -> None:
    run = process.thread().run("r")
    assert run.step("s", lambda: holdfast.current_step().attempt, effect="pure", timeout_s=30) == 1
    with pytest.raises(errors.StepFailed, match="ZeroDivisionError"):
        run.step("t", lambda: 1 / 0, effect="pure", timeout_s=30)


def test_a_function_left_behind_can_record_nothing(process: Any) -> None:
    go, tried = threading.Event(), threading.Event()
    said: list[str] = []

    def late() -> None:
        step = holdfast.current_step()
        go.wait(30)
        try:
            step.record("too late")
        except errors.Invalid as error:
            said.append(str(error))
        tried.set()

    with pytest.raises(errors.StepFailed):
        process.thread().run("r").step("s", late, effect="idempotent", timeout_s=0.02)
    before = len(process.thread().timeline("r").moments)
    go.set()
    assert tried.wait(10)
    assert "is over" in said[0]
    assert len(process.thread().timeline("r").moments) == before


@pytest.mark.parametrize("answer", ["happened", "not", "unknown"])
@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_a_once_step_that_takes_too_long_is_asked_about_and_not_repeated_while_it_may_still_happen(
    process: Any, hang: Any, answer: str, policy: Any
) -> None:
    def probe() -> Any:
        if answer == "unknown":
            raise holdfast.Unknown
        return "found" if answer == "happened" else None

    run = process.thread().run("r")
    options: dict[str, Any] = {"effect": "once", "probe": probe, "on_unknown": policy, "timeout_s": 0.02, "retry": 3}
    if answer == "happened":
        assert run.step("s", hang, **options) == "found"
    elif policy == "skip":
        assert run.step("s", hang, **options) is None
    else:
        with pytest.raises(errors.StepUnknown):
            run.step("s", hang, **options)
    assert [step.attempts for step in run.steps] == [1]


# Retries


def test_retries_wait_longer_each_time_by_the_clock(process: Any, clock: ManualClock, kinds: Kinds) -> None:
    moments: list[int] = []

    def fn() -> str:
        moments.append(clock.now())
        if len(moments) < 5:
            raise OSError(f"attempt {len(moments)}")
        return "well"

    retry = holdfast.Retry(attempts=5, delay_s=2, factor=3, longest_s=10)
    run = process.thread().run("r")
    assert run.step("s", fn, effect="idempotent", retry=retry) == "well"
    waits = [(later - earlier) / 1_000_000 for earlier, later in itertools.pairwise(moments)]
    assert [round(wait, 1) for wait in waits] == [2.0, 6.0, 10.0, 10.0]
    assert kinds(process.thread(), "r", "s") == [*["intent", "failed"] * 4, "intent", "completed"]
    (step,) = run.steps
    assert (step.attempts, step.standing) == (5, "completed")


def test_retries_have_a_limit_and_the_last_error_is_told(process: Any) -> None:
    def fn() -> None:
        raise OSError(f"attempt {holdfast.current_step().attempt}")

    with pytest.raises(errors.StepFailed, match="attempt 3") as caught:
        process.thread().run("r").step("s", fn, effect="idempotent", retry=3)
    assert caught.value.facts["attempts"] == 3


def test_only_the_errors_named_are_tried_again(process: Any) -> None:
    raised: list[Exception] = [OSError("once"), ValueError("for good"), OSError("never")]

    def fn() -> None:
        raise raised.pop(0)

    with pytest.raises(errors.StepFailed, match="for good"):
        process.thread().run("r").step("s", fn, effect="idempotent", retry=holdfast.Retry(attempts=9, on=(OSError,)))
    assert len(raised) == 1


def test_attempts_survive_a_crash(process: Any, other: Any, died: Any) -> None:
    calls: list[int] = []

    def fn() -> None:
        calls.append(holdfast.current_step().attempt)
        if len(calls) == 2:
            process.die()
            raise died
        raise OSError("no")

    with pytest.raises(died):
        process.thread().run("r").step("s", fn, effect="idempotent", retry=3)
    process.lapse()
    with pytest.raises(errors.StepFailed) as caught:
        other.thread().run("r").step("s", fn, effect="idempotent", retry=3)
    assert calls == [1, 2, 3]
    assert caught.value.facts["attempts"] == 3


def test_a_crash_between_two_attempts_goes_on_with_the_next(process: Any, other: Any, died: Any) -> None:
    calls: list[int] = []

    def fn() -> str:
        calls.append(holdfast.current_step().attempt)
        if len(calls) == 1:
            raise OSError("no")
        return "well"

    process.dies("after", "failed")
    with pytest.raises(died):
        process.thread().run("r").step("s", fn, effect="idempotent", retry=3)
    process.lapse()
    assert other.thread().run("r").step("s", fn, effect="idempotent", retry=3) == "well"
    assert calls == [1, 2]


# Settling


def test_settling_needs_a_step_that_is_in_doubt(process: Any) -> None:
    run = process.thread().run("r")
    run.step("done", lambda: 1, effect="pure")
    with pytest.raises(errors.NotFound):
        run.settle("other", happened=True)
    with pytest.raises(errors.Invalid, match="completed"):
        run.settle("done", happened=True)


def test_a_failed_step_can_be_settled_too(process: Any, other: Any) -> None:
    with pytest.raises(errors.StepFailed), process.thread().run("r") as run:
        run.step("s", lambda: 1 / 0, effect="once", on_unknown="rerun")
    again = other.thread().run("r")
    again.settle("s", happened=True, result="by hand")
    assert again.step("s", lambda: 1 / 0, effect="once", on_unknown="rerun") == "by hand"
    with pytest.raises(errors.Invalid):
        again.settle("s", happened=False)


def test_a_settled_result_must_be_storable(process: Any, other: Any, died: Any, world: Any) -> None:
    crash(process, died, world, happened=True, effect="once", on_unknown="stop")
    run = other.thread().run("r")
    with pytest.raises(errors.Invalid):
        run.settle("book", happened=True, result=object())
    assert [step.standing for step in run.steps] == ["intended"]


# Every crash point


POINTS = [("before", "intent"), ("after", "intent"), ("before", "completed"), ("after", "completed"),
          ("before", "ended"), ("after", "ended")]  # fmt: skip


@pytest.mark.every_engine
@pytest.mark.parametrize(("when", "kind"), POINTS)
@pytest.mark.parametrize("effect", ["pure", "idempotent", "once"])
def test_at_every_point_where_a_process_can_die_the_next_one_ends_the_run(
    process: Any, other: Any, died: Any, world: Any, when: str, kind: str, effect: Any
) -> None:
    def handler(run: Any) -> Any:
        for name in ("a", "b"):
            run.step(name, world.do, name, effect=effect, probe=world.find)
        return "well"

    process.thread().submit("r")
    process.dies(when, kind)
    with pytest.raises(died):
        process.store.resume({"r": handler})
    process.lapse()
    reports = other.store.resume({"r": handler})
    assert [(report.outcome, report.result) for report in reports] == (
        [] if (when, kind) == ("after", "ended") else [("done", "well")]
    )
    assert [info.status for info in other.thread().runs()] == ["done"]
    again = effect != "once" and (when, kind) == ("before", "completed")
    assert (world.times("a"), world.times("b")) == (2 if again else 1, 1)
    assert len(world.keys("a")) == 1
    numbers = [entry.number for entry in other.thread().log()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("answer", [0, "", False, [], {}])
def test_a_probe_whose_answer_is_neither_yes_nor_no_cannot_say(
    process: Any, other: Any, died: Any, world: Any, told: Told, answer: Any
) -> None:
    """False from a probe most likely means that it did not happen; it is not taken for a result."""
    options = {"effect": "once", "probe": lambda: answer, "on_unknown": "stop"}
    crash(process, died, world, happened=True, **options)
    with pytest.raises(errors.StepUnknown, match=r"holdfast\.Done"):
        carry_on(other, world, **options)
    options["probe"] = lambda: holdfast.Done(answer)
    assert carry_on(other, world, **options) == answer
    assert world.times() == 1


def test_a_run_is_not_done_while_a_once_step_is_in_doubt_that_the_code_no_longer_asks_for(
    process: Any, other: Any, died: Any, world: Any
) -> None:
    crash(process, died, world, happened=True, effect="once", on_unknown="stop")
    with pytest.raises(errors.StepUnknown, match="the run did not call it again"), other.thread().run("r") as run:
        run.step("another", lambda: 1, effect="pure")
    assert [info.status for info in other.thread().runs()] == ["stopped"]
    run = other.thread().run("r")
    run.settle("book", happened=True)
    run.finish()
    assert [info.status for info in other.thread().runs()] == ["done"]


@pytest.mark.parametrize("happened", [True, False])
def test_a_once_step_that_failed_for_good_is_asked_about_when_the_run_is_opened_again(
    process: Any, other: Any, world: Any, happened: bool
) -> None:
    """Between the failure and the second try, what was late may have happened after all."""
    with pytest.raises(errors.StepFailed), process.thread().run("r") as run:
        run.step("book", lambda: 1 / 0, effect="once", probe=world.find)
    if happened:
        world.done.append(("book", run.steps[0].key))
    with other.thread().run("r") as again:
        assert again.step("book", world.do, effect="once", probe=world.find) == {"did": "book", "number": 1}
    assert world.times() == 1


def test_a_once_step_without_probe_that_says_it_was_not_done_is_tried_again_when_the_run_is_opened_again(
    process: Any, other: Any, world: Any
) -> None:
    def refused() -> None:
        raise holdfast.NotDone("closed on Sundays")

    with pytest.raises(errors.StepFailed), process.thread().run("r") as run:
        run.step("book", refused, effect="once", on_unknown="stop")
    with other.thread().run("r") as again:
        assert again.step("book", world.do, effect="once", on_unknown="stop")["number"] == 1
