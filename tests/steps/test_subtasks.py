"""A piece of work inside a run: its own log, its own budget, one result, and the end before the run goes on."""

from __future__ import annotations

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


def research(sub: Any, topic: str) -> dict[str, Any]:
    sub.thread.append(holdfast.note(f"looking for {topic}"))
    found = sub.step("search", lambda: ["a", "b"], effect="pure")
    return {"topic": topic, "found": found}


def test_a_subtask_has_its_own_log_and_gives_one_result(process: Any, other: Any, told: Told, kinds: Kinds) -> None:
    thread = process.thread()
    run = thread.run("r")
    result = run.subtask("research", research, "trains")
    assert result == {"topic": "trains", "found": ["a", "b"]}
    assert [entry["step"] for entry in told(thread, "step")] == ["research"]
    (entry,) = thread.log()
    assert (entry.content["outcome"], entry.content["subtask"]) == ("completed", "trip-42/r/research")
    assert entry.content["result"] == result
    inner = other.thread("trip-42/r/research")
    assert [entry.content.get("text") or entry.content["step"] for entry in inner.log()] == [
        "looking for trains", "search"
    ]  # fmt: skip
    assert kinds(thread, "r") == ["opened", "intent", "completed"]
    assert run.subtask("research", lambda *_: 1 / 0, "trains") == result
    with pytest.raises(errors.StepChanged):
        run.subtask("research", research, "planes")


def test_subtasks_are_not_runs_of_their_own(process: Any, other: Any) -> None:
    process.thread().run("r").subtask("t", lambda sub: sub.step("s", one, effect="pure"))
    assert [info.name for info in other.store.runs()] == ["r"]
    assert [info.name for info in other.thread().runs()] == ["r"]
    with pytest.raises(errors.Invalid, match="subtask of run 'r'"):
        other.thread("trip-42/r/t").run("t")


@pytest.mark.every_engine
def test_the_end_of_a_subtask_is_one_commit(process: Any) -> None:
    run = process.thread().run("r")
    run.subtask("t", lambda sub: 1)
    last = list(process.store.watch(timeout_s=0))[-1]
    appended = {(change.kind, change.id) for change in last.changes if change.action == "append"}
    assert appended == {("run", "7:trip-42/r"), ("run", "11:trip-42/r/t/t"), ("thread", "trip-42")}


def test_the_parent_waits_until_its_subtask_came_to_its_end(process: Any) -> None:
    run = process.thread().run("r")

    def inner(sub: Any) -> str:
        for act in (
            lambda: run.step("s", one, effect="pure"), lambda: run.subtask("u", lambda sub: 1),
            lambda: run.wait("w", timeout_s=0), run.finish,
        ):  # fmt: skip
            with pytest.raises(errors.Invalid, match="has not ended"):
                act()
        return sub.step("s", lambda: "fine", effect="pure")

    assert run.subtask("t", inner) == "fine"
    assert run.step("s", one, effect="pure") == 1


def test_declared_steps_inside_belong_to_the_subtask(process: Any) -> None:
    @holdfast.step(effect="pure")
    def look() -> int:
        return 1

    with process.thread().run("r") as run:
        assert run.subtask("t", lambda sub: look()) == 1
        assert look() == 1
    assert [step.name for step in process.thread().timeline("r").steps] == ["t", "look"]


def test_a_subtask_is_ended_by_its_function_alone(process: Any) -> None:
    def inner(sub: Any) -> str:
        for act in (lambda: sub.finish(1), lambda: sub.fail(ValueError()), sub.abandon):
            with pytest.raises(errors.Invalid, match="ends with its function"):
                act()
        with sub:
            sub.step("s", one, effect="pure")
        sub.release()
        return "well"

    run = process.thread().run("r")
    assert run.subtask("t", inner) == "well"
    assert run.step("after", one, effect="pure") == 1
    run.finish()


def test_steps_of_a_subtask_cannot_be_undone(process: Any) -> None:
    def inner(sub: Any) -> None:
        sub.step("s", one, effect="pure", compensate=print)

    with pytest.raises(errors.StepFailed, match="cannot be undone"):
        process.thread().run("r").subtask("t", inner)


# Crashes


@pytest.mark.every_engine
@pytest.mark.parametrize(("when", "kind", "step"), [
    ("before", "intent", "t"), ("after", "intent", "t"), ("before", "intent", "a"), ("after", "intent", "a"),
    ("before", "completed", "a"), ("after", "completed", "a"), ("before", "completed", "b"),
    ("after", "completed", "b"), ("before", "completed", "t"), ("after", "completed", "t"),
    ("before", "completed", "after"),
])  # fmt: skip
def test_a_crash_inside_a_subtask_repeats_nothing(
    process: Any, other: Any, died: Any, world: Any, when: str, kind: str, step: str
) -> None:
    def inner(sub: Any) -> int:
        for name in ("a", "b"):
            sub.step(name, world.do, name, effect="once", probe=world.find)
        return len(world.done)

    def handler(run: Any) -> Any:
        found = run.subtask("t", inner)
        run.step("after", world.do, "after", effect="once", probe=world.find)
        return found

    process.thread().submit("r")
    process.dies(when, kind, step)
    with pytest.raises(died):
        process.store.resume({"r": handler})
    process.lapse()
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, report.result) == ("done", 2)
    assert [what for what, _ in world.done] == ["a", "b", "after"]
    log = other.thread("trip-42/r/t").log()
    assert [entry.number for entry in log] == list(range(1, len(log) + 1))
    steps = [entry.content["step"] for entry in log if entry.content["name"] == "step"]
    assert steps == ["a", "b"]


def test_nested_subtasks(process: Any, other: Any, died: Any, world: Any) -> None:
    def innermost(sub: Any) -> str:
        sub.step("x", world.do, "x", effect="once", probe=world.find)
        sub.step("y", world.do, "y", effect="once", probe=world.find)
        return str(sub.thread.id)

    def inner(sub: Any) -> str:
        return str(sub.subtask("innermost", innermost))

    process.dies("before", "completed", "y")
    with pytest.raises(died), process.thread().run("r") as run:
        run.subtask("inner", inner)
    process.lapse()
    with other.thread().run("r") as again:
        assert again.subtask("inner", inner) == "trip-42/r/inner/inner/innermost"
    assert [what for what, _ in world.done] == ["x", "y"]
    assert [len(other.thread(id).log()) for id in ("trip-42/r/inner", "trip-42/r/inner/inner/innermost")] == [1, 3]


def test_a_wait_inside_a_subtask(process: Any, other: Any, world: Any) -> None:
    def inner(sub: Any) -> Any:
        sub.step("ask", world.do, "ask", effect="once", probe=world.find)
        return sub.wait("approval")

    def handler(run: Any) -> Any:
        return run.subtask("t", inner)

    process.thread().submit("r")
    assert [report.outcome for report in process.store.resume({"r": handler})] == ["waiting"]
    assert other.thread().signal("approval", "yes").run == "r"
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, report.result, world.times("ask")) == ("done", "yes", 1)


# Failures


def test_a_subtask_that_fails_is_a_failed_step_of_its_run(process: Any, other: Any, told: Told) -> None:
    def inner(sub: Any) -> None:
        sub.step("s", lambda: 1 / 0, effect="pure")

    run = process.thread().run("r")
    with pytest.raises(errors.StepFailed, match="'t' of run 'r' failed") as caught:
        run.subtask("t", inner)
    assert "ZeroDivisionError" in str(caught.value)
    with pytest.raises(errors.StepFailed):
        run.subtask("t", inner)
    assert told(process.thread(), "step")[-1]["outcome"] == "failed"
    assert run.step("goes on", one, effect="pure") == 1


def test_opening_the_run_again_tries_a_failed_subtask_once_more(process: Any, other: Any, world: Any) -> None:
    broken = [True]

    def inner(sub: Any) -> Any:
        sub.step("a", world.do, "a", effect="once", probe=world.find)
        return sub.step("b", lambda: 1 / 0 if broken else "well", effect="idempotent")

    with pytest.raises(errors.StepFailed), process.thread().run("r") as run:
        run.subtask("t", inner)
    broken.clear()
    with other.thread().run("r") as again:
        assert again.subtask("t", inner) == "well"
    assert world.times("a") == 1


def test_a_step_in_doubt_inside_a_subtask_stops_the_run_until_it_is_settled(
    process: Any, other: Any, died: Any, world: Any, told: Told
) -> None:
    def inner(sub: Any) -> Any:
        return sub.step("pay", world.do, "pay", effect="once", on_unknown="stop")

    def handler(run: Any) -> Any:
        return run.subtask("t", inner)

    process.dies("before", "completed", "pay")
    with pytest.raises(died), process.thread().run("r") as run:
        handler(run)
    process.lapse()
    assert [report.outcome for report in other.store.resume({"r": handler})] == ["stopped"]
    assert [info.status for info in other.store.runs()] == ["stopped"]
    assert other.store.resume({"r": handler}) == []
    person = other.thread().run("r")
    with pytest.raises(errors.NotFound):
        person.settle("other", happened=True)
    person.settle("pay", happened=True, result="by hand")
    person.release()
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, report.result, world.times("pay")) == ("done", "by hand", 1)


def test_a_result_of_a_subtask_that_cannot_be_stored_leaves_the_run_resumable(process: Any) -> None:
    run = process.thread().run("r")
    with pytest.raises(errors.ResultInvalid):
        run.subtask("t", lambda sub: object())
    assert [step.standing for step in run.steps] == ["intended"]
    assert run.subtask("t", lambda sub: "fixed") == "fixed"


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize(
    "budget", [5, [1], {"steps": -1}, {"steps": True}, {"steps": "3"}, {"": 1}, {"tokens": float("nan")}]
)
def test_a_wrong_budget_is_refused(thread: holdfast.Thread, budget: Any) -> None:
    run = thread.run("r")
    with pytest.raises(errors.Invalid):
        run.subtask("t", lambda sub: 1, budget=budget)
    assert run.steps == []


def test_a_budget_of_steps(process: Any) -> None:
    def inner(sub: Any) -> Any:
        sub.step("a", one, effect="pure")
        assert sub.left == {"steps": 1}
        sub.step("b", one, effect="pure")
        assert sub.left == {"steps": 0}
        sub.step("a", one, effect="pure")  # recorded: costs nothing
        sub.spend(tokens=5)  # and what is not limited can be counted
        with pytest.raises(errors.BudgetExceeded, match="steps") as caught:
            sub.step("c", one, effect="pure")
        assert caught.value.facts["what"] == "steps"
        return "made do"

    assert process.thread().run("r").subtask("t", inner, budget={"steps": 2}) == "made do"


def test_a_budget_that_is_exceeded_fails_the_subtask(process: Any) -> None:
    def inner(sub: Any) -> None:
        sub.step("a", one, effect="pure")
        sub.step("b", one, effect="pure")

    run = process.thread().run("r")
    with pytest.raises(errors.StepFailed, match="BudgetExceeded") as caught:
        run.subtask("t", inner, budget={"steps": 1})
    assert isinstance(caught.value.__cause__, errors.BudgetExceeded)


def test_a_budget_of_tokens_survives_a_crash(process: Any, other: Any, died: Any) -> None:
    left: list[Any] = []

    def inner(sub: Any) -> str:
        if not left:
            left.append(sub.spend(tokens=60))
            process.die()
            raise died
        left.append(sub.left)
        with pytest.raises(errors.BudgetExceeded):
            sub.spend(tokens=60)
        assert sub.spent["tokens"] == 120
        return "well"

    with pytest.raises(died):
        process.thread().run("r").subtask("t", inner, budget={"tokens": 100})
    process.lapse()
    assert other.thread().run("r").subtask("t", inner, budget={"tokens": 100}) == "well"
    assert left == [{"tokens": 40}, {"tokens": 40}]


def test_a_step_begun_before_a_crash_is_not_counted_twice(process: Any, other: Any, died: Any) -> None:
    def inner(sub: Any) -> int:
        return sub.step("only", one, effect="idempotent")  # type: ignore[no-any-return]

    process.dies("before", "completed", "only")
    with pytest.raises(died):
        process.thread().run("r").subtask("t", inner, budget={"steps": 1})
    process.lapse()
    assert other.thread().run("r").subtask("t", inner, budget={"steps": 1}) == 1


def test_a_budget_of_seconds(process: Any, clock: ManualClock) -> None:
    def inner(sub: Any) -> str:
        sub.step("a", one, effect="pure")
        clock.advance(59)
        sub.step("b", one, effect="pure")
        clock.advance(2)
        with pytest.raises(errors.BudgetExceeded, match="seconds"):
            sub.step("c", one, effect="pure")
        return "stopped in time"

    assert process.thread().run("r").subtask("t", inner, budget={"seconds": 60}) == "stopped in time"


@pytest.mark.usefixtures("any_engine")
def test_what_is_spent_is_checked(thread: holdfast.Thread) -> None:
    def inner(sub: Any) -> str:
        for bad in ({}, {"steps": 1}, {"seconds": 1}, {"tokens": -1}, {"tokens": "5"}):
            with pytest.raises(errors.Invalid):
                sub.spend(**bad)
        return "well"

    assert thread.run("r").subtask("t", inner) == "well"


# Belonging


def test_erasing_the_thread_erases_what_its_subtasks_left(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    run.subtask("t", lambda sub: sub.subtask("u", lambda deep: deep.step("s", one, effect="pure")))
    run.subtask("v", lambda sub: sub.thread.save({"secret": 1}))
    run.finish()
    other.store.thread("other").append(holdfast.note("stays"))
    other.store.erase(thread="trip-42")
    engine, tenant = other.store.core.engine, other.store.tenant
    from holdfast.engine.contract import Query  # noqa: PLC0415

    left = {kind: [record.id for record in engine.scan(tenant, Query(kind))] for kind in
            ("thread", "run", "lease", "state")}  # fmt: skip
    assert left == {"thread": ["other"], "run": [], "lease": [], "state": []}


def test_a_subtask_does_not_take_another_threads_log_for_its_own(process: Any) -> None:
    process.store.thread("a/r/t").append(holdfast.note("mine"))
    with pytest.raises(errors.HoldfastError):
        process.store.thread("a").run("r").subtask("t", lambda sub: sub.step("s", one, effect="pure"))
    assert [entry.content for entry in process.store.thread("a/r/t").log()] == [{"text": "mine"}]


def test_subtasks_whose_names_add_up_to_the_same_are_kept_apart(process: Any) -> None:
    """Thread a/b, run c, subtask d and thread a, run b/c, subtask d would both be a/b/c/d."""
    assert process.store.thread("a/b").run("c").subtask("d", lambda sub: sub.step("s", lambda: "first", effect="pure"))
    try:
        second = process.store.thread("a").run("b/c").subtask(
            "d", lambda sub: sub.step("s", lambda: "second", effect="pure")
        )  # fmt: skip
    except errors.HoldfastError:
        return  # refused is fine; mixed up is not
    assert second == "second"
