"""A step: intent before, completion after with all that belongs to it, and never again once it is done."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import errors

Kinds = Callable[..., list[str]]
Told = Callable[..., list[dict[str, Any]]]


def three() -> int:
    return 3


def never() -> Any:
    raise AssertionError("a completed step was run again")


def twice(number: int) -> int:
    return 2 * number


def test_the_intent_is_recorded_before_the_function_runs(process: Any, other: Any, kinds: Kinds) -> None:
    seen: list[Any] = []

    def look() -> str:
        timeline = other.thread().timeline("r")
        seen.append([(moment.kind, moment.step) for moment in timeline.moments])
        seen.append(timeline.moments[-1].facts)
        return "done"

    process.thread().run("r").step("s", look, effect="pure")
    assert seen[0] == [("opened", None), ("intent", "s")]
    intent = seen[1]
    assert (intent["attempt"], intent["effect"], intent["by"]) == (1, "pure", "first")
    assert intent["key"].startswith("hf-")
    assert len(intent["input"]) == 32
    assert kinds(process.thread(), "r") == ["opened", "intent", "completed"]


@pytest.mark.every_engine
def test_completion_result_log_entry_and_state_are_one_commit(process: Any) -> None:
    thread, store = process.thread(), process.store

    def work() -> dict[str, int]:
        step = holdfast.current_step()
        step.append(holdfast.note("half way"))
        step.save({"booked": True})
        assert thread.state().revision == 0
        assert thread.logbook.head() == 0
        return {"ticket": 7}

    run = thread.run("r")
    before = len(list(store.watch(timeout_s=0)))
    assert run.step("s", work, effect="idempotent") == {"ticket": 7}
    intent, completion = list(store.watch(timeout_s=0))[before:]
    assert {change.kind for change in intent.changes if change.action == "append"} == {"run"}
    assert {change.kind for change in completion.changes if change.action == "append"} == {"run", "thread", "state"}
    assert thread.state().value == {"booked": True}
    assert [entry.content for entry in thread.log()] == [
        {"name": "step", "run": "r", "step": "s", "outcome": "completed"}, {"text": "half way"}
    ]  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_result_is_returned_only_after_its_commit(process: Any, died: Any, when: str) -> None:
    run, results = process.thread().run("r"), []
    process.dies(when, "completed")
    with pytest.raises(died):
        results.append(run.step("s", three, effect="pure"))
    assert results == []


def test_a_completed_step_is_never_run_again(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    assert run.step("s", three, effect="once", on_unknown="stop") == 3
    assert run.step("s", never, effect="once", on_unknown="stop") == 3
    run.release()
    assert other.thread().run("r").step("s", never, effect="once", on_unknown="stop") == 3


def test_the_steps_of_a_finished_run_can_be_read_and_nothing_added(thread: holdfast.Thread) -> None:
    with thread.run("r") as run:
        run.step("s", three, effect="pure")
        run.finish({"all": "well"})
    again = thread.run("r")
    assert (again.status, again.result, again.step("s", never, effect="pure")) == ("done", {"all": "well"}, 3)
    with pytest.raises(errors.RunEnded, match="is done"):
        again.step("more", three, effect="pure")
    with again:
        pass
    assert [run.status for run in thread.runs()] == ["done"]


def test_the_same_name_with_other_input_is_refused(process: Any, other: Any, kinds: Kinds) -> None:
    run = process.thread().run("r")
    assert run.step("s", twice, 2, effect="pure") == 4
    with pytest.raises(errors.StepChanged, match="other input") as caught:
        run.step("s", twice, 3, effect="pure")
    assert (caught.value.facts["step"], caught.value.facts["run"]) == ("s", "r")
    with pytest.raises(errors.StepChanged):
        run.step("s", twice, number=2, effect="pure")
    assert kinds(process.thread(), "r") == ["opened", "intent", "completed"]
    run.release()
    with pytest.raises(errors.StepChanged):
        other.thread().run("r").step("s", twice, 3, effect="pure")


def test_the_same_name_with_other_input_is_refused_while_in_doubt(process: Any, other: Any, died: Any) -> None:
    process.dies("before", "completed")
    with pytest.raises(died):
        process.thread().run("r").step("s", twice, 2, effect="pure")
    process.lapse()
    with pytest.raises(errors.StepChanged):
        other.thread().run("r").step("s", twice, 3, effect="pure")


def test_steps_go_by_names_so_that_code_may_change_between_sessions(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    for name in ("a", "b", "c"):
        run.step(name, twice, len(name), effect="once", on_unknown="stop")
    run.release()
    again, ran = other.thread().run("r"), []
    for name in ("c", "new", "a"):  # another order, one removed, one added in between
        again.step(name, (lambda n: ran.append("new")) if name == "new" else never_with, len(name), effect="once",
                   on_unknown="stop")  # fmt: skip
    assert ran == ["new"]
    again.finish()
    ended = other.thread().timeline("r").moments[-1]
    assert ended.facts["unvisited"] == ["b"]


def never_with(number: int) -> Any:
    raise AssertionError("a completed step was run again")


def test_one_name_is_not_a_step_and_a_wait_and_a_subtask(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    run.step("s", three, effect="pure")
    with pytest.raises(errors.Invalid, match="name of a step"):
        run.wait("s", timeout_s=0)
    with pytest.raises(errors.Invalid):
        run.subtask("s", never)
    thread.signal("w", "yes")
    assert run.wait("w") == "yes"
    with pytest.raises(errors.Invalid):
        run.step("w", never, effect="pure")
    with pytest.raises(errors.Invalid):
        run.subtask("w", never)
    assert run.subtask("t", lambda sub: 1) == 1
    with pytest.raises(errors.Invalid):
        run.step("t", never, effect="pure")
    with pytest.raises(errors.Invalid):
        run.wait("t", timeout_s=0)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=plain)
@pytest.mark.usefixtures("any_engine")
def test_the_result_is_the_same_the_first_time_and_on_replay(place: Any, value: Any) -> None:
    process = place.process(f"of {value!r}")
    try:
        run = process.thread(f"t-{id(process)}-{process.clock.now()}").run("r")
        first = run.step("s", lambda: value, effect="pure")
        again = run.step("s", never, effect="pure")
        run.release()
        later = run.thread.run("r").step("s", never, effect="pure")  # type: ignore[attr-defined]
        assert repr(first) == repr(again) == repr(later)
    finally:
        process.close()


def test_changing_a_result_does_not_change_what_is_recorded(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    first = run.step("s", lambda: {"list": [1]}, effect="pure")
    first["list"].append(2)
    again = run.step("s", never, effect="pure")
    again["list"].append(3)
    assert run.step("s", never, effect="pure") == {"list": [1]}


@dataclasses.dataclass
class Ticket:
    number: int
    seats: tuple[str, ...] = ()


class Fare(msgspec.Struct):
    cents: int


def ticket() -> Ticket:
    return Ticket(7, ("12A",))


def test_a_typed_result_comes_back_typed_by_annotation(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    assert run.step("s", ticket, effect="pure") == Ticket(7, ("12A",))
    run.release()
    assert other.thread().run("r").step("s", ticket, effect="pure") == Ticket(7, ("12A",))
    (step,) = other.thread().timeline("r").steps
    assert step.result == {"number": 7, "seats": ["12A"]}


def test_a_typed_result_comes_back_typed_by_declaration(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    assert run.step("s", lambda: {"cents": 5}, effect="pure", returns=Fare) == Fare(5)
    run.release()
    assert other.thread().run("r").step("s", never, effect="pure", returns=Fare) == Fare(5)


def test_a_recorded_result_that_does_not_fit_what_the_code_says_now_is_told(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    run.step("s", lambda: {"cents": 5}, effect="pure")
    with pytest.raises(errors.ResultInvalid, match="does not fit Ticket"):
        run.step("s", never, effect="pure", returns=Ticket)
    assert run.step("s", never, effect="pure") == {"cents": 5}


@pytest.mark.parametrize("bad", [object(), {1, object()}, float("nan"), "\ud800", {"deep": [object()]}, lambda: 1])
def test_a_result_that_cannot_be_stored_leaves_the_run_resumable(
    process: Any, other: Any, kinds: Kinds, bad: Any
) -> None:
    run, thread = process.thread().run("r"), process.thread()
    with pytest.raises(errors.ResultInvalid) as caught:
        run.step("s", lambda: bad, effect="idempotent")
    assert caught.value.facts["step"] == "s"
    assert "completed" not in kinds(thread, "r")
    assert run.status == "open"
    assert run.step("s", three, effect="idempotent") == 3  # fixed, and run again in the same session
    assert [step.attempts for step in run.steps] == [2]


def nested(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("big", ["x" * (16 * 2**20 - 100), nested(199), nested(200)])
def test_a_result_at_the_limits_of_what_can_be_stored_is_kept_or_told(thread: holdfast.Thread, big: Any) -> None:
    run = thread.run("r")
    for act in (
        lambda: run.step("s", lambda: big, effect="pure"),
        lambda: run.subtask("t", lambda sub: big),
        lambda: run.finish(big),
    ):
        try:
            act()
        except errors.ResultInvalid:
            assert run.status == "open"
    if run.status == "open":
        with pytest.raises(errors.Invalid):
            thread.signal("w", big)


def test_a_once_step_whose_result_cannot_be_stored_is_asked_about(process: Any, other: Any, world: Any) -> None:
    with pytest.raises(errors.ResultInvalid), process.thread().run("r") as run:
        run.step("s", lambda: (world.do(), object()), effect="once", probe=world.find)
    with other.thread().run("r") as again:
        assert again.step("s", never, effect="once", probe=world.find) == {"did": "book", "number": 1}
    assert world.times() == 1


def test_a_result_of_another_type_than_declared_is_told_before_it_is_recorded(
    thread: holdfast.Thread, kinds: Kinds
) -> None:
    run = thread.run("r")
    with pytest.raises(errors.ResultInvalid, match="does not fit Fare"):
        run.step("s", lambda: {"euros": 5}, effect="idempotent", returns=Fare)
    assert "completed" not in kinds(thread, "r")


@pytest.mark.usefixtures("any_engine")
def test_a_function_without_result_returns_none(thread: holdfast.Thread) -> None:
    run, ran = thread.run("r"), []
    assert run.step("s", lambda: ran.append(1), effect="pure") is None
    assert run.step("s", lambda: ran.append(1), effect="pure") is None
    assert ran == [1]


# The log


def test_log_false_writes_no_entry(thread: holdfast.Thread) -> None:
    thread.run("r").step("s", three, effect="pure", log=False)
    assert thread.log() == []


def test_log_takes_a_function_of_the_result(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    run.step("one", three, effect="pure", log=lambda n: {"role": "tool", "content": f"got {n}"})
    run.step("two", three, effect="pure", log=lambda n: [holdfast.note("a"), holdfast.note("b")])
    run.step("none", three, effect="pure", log=lambda n: None)
    assert [entry.content for entry in thread.log()] == [
        {"role": "tool", "content": "got 3"}, {"text": "a"}, {"text": "b"}
    ]  # fmt: skip


@pytest.mark.parametrize("log", [lambda n: 1 / 0, lambda n: object(), lambda n: {"x": object()}])
def test_a_log_function_that_fails_does_not_undo_the_step(thread: holdfast.Thread, told: Told, log: Any) -> None:
    run = thread.run("r")
    assert run.step("s", three, effect="once", on_unknown="stop", log=log) == 3
    (entry,) = told(thread, "step")
    assert (entry["step"], entry["outcome"]) == ("s", "completed")
    assert entry["log_error"]


@pytest.mark.every_engine
def test_the_log_has_no_gap(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    for number in range(5):
        thread.append(holdfast.note("between"))
        run.step(f"s{number}", three, effect="pure")
    assert [entry.number for entry in thread.log()] == list(range(1, 11))


# What a function can ask and do


def test_the_key_is_the_same_for_every_attempt_in_every_process(process: Any, other: Any, died: Any) -> None:
    keys: list[tuple[str, int]] = []

    def work() -> None:
        step = holdfast.current_step()
        keys.append((step.key, step.attempt))
        if len(keys) < 3:
            raise ValueError
        if len(keys) == 3:
            process.die()
            raise died

    with pytest.raises(died):
        process.thread().run("r").step("s", work, effect="idempotent", retry=5)
    process.lapse()
    other.thread().run("r").step("s", work, effect="idempotent", retry=5)
    assert [attempt for _, attempt in keys] == [1, 2, 3, 4]
    assert len({key for key, _ in keys}) == 1


def test_keys_of_other_steps_runs_and_threads_differ(process: Any) -> None:
    keys = []

    def key() -> None:
        keys.append(holdfast.current_step().key)

    for thread, run, step in [("t", "r", "s"), ("t", "r", "s2"), ("t", "r2", "s"), ("t2", "r", "s")]:
        with_key = process.thread(thread).run(run)
        with_key.step(step, key, effect="pure")
        with_key.release()
    assert len(set(keys)) == 4


def test_recorded_progress_is_there_for_the_next_attempt(process: Any, other: Any, died: Any) -> None:
    seen = []

    def work() -> str:
        step = holdfast.current_step()
        seen.append(step.progress)
        if step.progress is None:
            step.record({"page": 4})
            step.record({"page": 5})
            assert step.progress == {"page": 5}
            assert other.thread().timeline("r").steps[0].progress == {"page": 5}
            process.die()
            raise died
        return "all"

    with pytest.raises(died):
        process.thread().run("r").step("s", work, effect="idempotent")
    process.lapse()
    assert other.thread().run("r").step("s", work, effect="idempotent") == "all"
    assert seen == [None, {"page": 5}]


def test_a_heartbeat_renews_the_lease(process: Any, other: Any) -> None:
    def work() -> None:
        for _ in range(4):
            process.clock.advance(20)
            holdfast.current_step().heartbeat()
        with pytest.raises(errors.RunHeld):
            other.thread().run("r")

    process.thread().run("r").step("s", work, effect="pure")


@pytest.mark.usefixtures("any_engine")
def test_there_is_no_current_step_outside(thread: holdfast.Thread) -> None:
    with pytest.raises(errors.Invalid, match="no step is running"):
        holdfast.current_step()
    with thread.run("r"), pytest.raises(errors.Invalid, match="no step is running"):
        holdfast.current_step()


@pytest.mark.usefixtures("any_engine")
def test_a_step_that_is_over_records_nothing_more(thread: holdfast.Thread) -> None:
    kept: list[holdfast.StepContext] = []
    thread.run("r").step("s", lambda: kept.append(holdfast.current_step()), effect="pure")
    step = kept[0]
    before = list(thread.logbook.core.engine.feed(thread.logbook.core.tenant))
    for late in (
        step.heartbeat, lambda: step.record(1), lambda: step.append("x"), lambda: step.save({}),
        lambda: step.update(lambda s: s), lambda: step.patch("a", 1),
    ):  # fmt: skip
        with pytest.raises(errors.Invalid, match="is over"):
            late()
    assert list(thread.logbook.core.engine.feed(thread.logbook.core.tenant)) == before


@pytest.mark.usefixtures("any_engine")
def test_what_a_function_appends_is_checked_inside_it(thread: holdfast.Thread) -> None:
    def work() -> str:
        with pytest.raises(errors.Invalid):
            holdfast.current_step().append({"x": object()})
        with pytest.raises(errors.Invalid):
            holdfast.current_step().record({"x": object()})
        return "fine"

    assert thread.run("r").step("s", work, effect="pure") == "fine"
    assert thread.logbook.head() == 1


def test_an_entry_whose_key_names_other_content_does_not_undo_the_step(thread: holdfast.Thread) -> None:
    thread.append(holdfast.note("mine"), key="k")
    run = thread.run("r")
    with pytest.raises(errors.NotSaved, match="KeyReused"):
        run.step("s", lambda: holdfast.current_step().append(holdfast.note("other"), key="k"), effect="once",
                 on_unknown="stop")  # fmt: skip
    assert [(step.standing, step.how) for step in run.steps] == [("completed", "ran")]
    assert run.steps[0].error is not None
    assert run.steps[0].error["code"] == "key_reused"


def test_a_failed_attempt_leaves_no_entries_and_no_state(thread: holdfast.Thread) -> None:
    def work() -> None:
        step = holdfast.current_step()
        step.append(holdfast.note(f"attempt {step.attempt}"))
        step.save({"attempt": step.attempt})
        if step.attempt == 1:
            raise ValueError

    thread.run("r").step("s", work, effect="idempotent", retry=2, log=False)
    assert [entry.content for entry in thread.log()] == [{"text": "attempt 2"}]
    assert thread.state().value == {"attempt": 2}


# State


def test_updates_and_patches_are_in_the_completion_commit(thread: holdfast.Thread) -> None:
    thread.save({"n": 1, "list": []})
    run = thread.run("r")

    def patches() -> None:
        holdfast.current_step().patch("n", 2)
        holdfast.current_step().patch("deep", {"x": 1})

    run.step("patch", patches, effect="pure")
    assert thread.state().value == {"n": 2, "list": [], "deep": {"x": 1}}

    def update() -> None:
        holdfast.current_step().update(lambda state: {**state, "n": state["n"] + 1}, type=dict)

    run.step("update", update, effect="pure")
    run.step("update", update, effect="pure")
    assert thread.state().value["n"] == 3
    assert len(thread.revisions()) == 3


def test_a_state_that_someone_else_saved_meanwhile_is_a_conflict_and_the_step_stays_done(
    process: Any, other: Any
) -> None:
    thread = process.thread()
    thread.save({"n": 1})
    run = thread.run("r")

    def work() -> str:
        loaded = thread.state()
        other.thread().save({"n": 5}, expect=loaded.revision)
        holdfast.current_step().append(holdfast.note("kept"))
        holdfast.current_step().save({"n": loaded.value["n"] + 1}, expect=loaded.revision)
        return "ran"

    for fn in (work, never):  # the same on every resume
        with pytest.raises(errors.NotSaved, match="not at the expected 1") as caught:
            run.step("s", fn, effect="once", on_unknown="stop")
        assert caught.value.result == "ran"
    assert thread.state().value == {"n": 5}
    (step,) = run.steps
    assert (step.standing, step.error["code"] if step.error else "") == ("completed", "conflict")
    assert [entry.content.get("text") for entry in thread.log()] == [None, "kept"]
    assert "was not saved" in thread.timeline("r").moments[-1].text


@pytest.mark.every_engine
def test_an_update_under_contention_is_worked_out_again(process: Any, other: Any) -> None:
    process.thread().save({"n": 0})
    tries = []

    def bump(state: dict[str, int]) -> dict[str, int]:
        tries.append(state["n"])
        if len(tries) < 4:  # someone else is faster, three times
            other.thread().save({"n": state["n"] + 10}, expect=other.thread().state().revision)
        return {"n": state["n"] + 1}

    process.thread().run("r").step("s", lambda: holdfast.current_step().update(bump, type=dict), effect="pure")
    assert tries == [0, 10, 20, 30]
    assert process.thread().state().value == {"n": 31}


def test_an_update_that_raises_leaves_the_step_done(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    with pytest.raises(errors.NotSaved, match="ZeroDivisionError"):
        run.step("s", lambda: holdfast.current_step().update(lambda s: 1 / 0), effect="once", on_unknown="stop")
    with pytest.raises(errors.NotSaved, match="ZeroDivisionError"):  # the same on every resume
        run.step("s", never, effect="once", on_unknown="stop")
    assert thread.state().revision == 0


@pytest.mark.usefixtures("any_engine")
def test_a_step_saves_or_updates_not_both(thread: holdfast.Thread) -> None:
    def save_then_patch() -> None:
        holdfast.current_step().save({"a": 1})
        with pytest.raises(errors.Invalid, match="not both"):
            holdfast.current_step().patch("a", 2)

    def patch_then_save() -> None:
        holdfast.current_step().patch("a", 3)
        with pytest.raises(errors.Invalid, match="not both"):
            holdfast.current_step().save({"a": 4})
        with pytest.raises(errors.Invalid, match="cannot be mixed"):
            holdfast.current_step().update(lambda s: s, type=dict)

    run = thread.run("r")
    run.step("one", save_then_patch, effect="pure")
    assert thread.state().value == {"a": 1}
    run.step("two", patch_then_save, effect="pure")
    assert thread.state().value == {"a": 3}


# Inside and around


def test_steps_and_turns_do_not_nest(thread: holdfast.Thread) -> None:
    run = thread.run("r")

    def inner() -> str:
        with pytest.raises(errors.Invalid, match="do not nest"):
            run.step("inner", three, effect="pure")
        with pytest.raises(errors.Invalid, match="do not nest"), thread.turn():
            pass
        with pytest.raises(errors.Invalid):
            run.wait("w")
        with pytest.raises(errors.Invalid):
            run.subtask("t", lambda sub: 1)
        with pytest.raises(errors.Invalid):
            run.finish()
        return "fine"

    assert run.step("outer", inner, effect="pure") == "fine"
    with thread.turn() as turn:
        turn.append(holdfast.note("n"))
        with pytest.raises(errors.Invalid, match="inside a turn"):
            run.step("s", three, effect="pure")
    assert run.step("s", three, effect="pure") == 3


@pytest.mark.every_engine
def test_threads_of_one_holder_may_work_on_different_steps_at_once(thread: holdfast.Thread) -> None:
    run, barrier = thread.run("r"), threading.Barrier(4, timeout=10)

    def work(number: int) -> int:
        barrier.wait()  # all four are inside their functions at once
        return number

    results: dict[int, Any] = {}

    def go(number: int) -> None:
        results[number] = run.step(f"s{number}", work, number, effect="once", on_unknown="stop")

    workers = [threading.Thread(target=go, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    assert results == {0: 0, 1: 1, 2: 2, 3: 3}
    assert {step.standing for step in run.steps} == {"completed"}
    run.finish()
    assert len(thread.timeline("r").moments) == 10


@pytest.mark.every_engine
def test_one_step_is_not_begun_twice_by_two_threads(thread: holdfast.Thread, world: Any) -> None:
    run, inside, go = thread.run("r"), threading.Event(), threading.Event()

    def work() -> Any:
        inside.set()
        go.wait(10)
        return world.do()

    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(run.step("s", work, effect="once", probe=world.find)))
    worker.start()
    assert inside.wait(10)
    with pytest.raises(errors.Invalid, match="already under way"):
        run.step("s", world.do, effect="once", probe=world.find)
    go.set()
    worker.join(10)
    assert run.step("s", never, effect="once", probe=never) == results[0]
    assert world.times() == 1
