# ruff: noqa: PT012 - the block is a run, and its end is part of what raises
"""Finding the runs that nobody carries on, and carrying them on: each once, and one bad one harms no other."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import errors
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Append, Event, Put
from holdfast.steps import resume
from holdfast.steps.resume import FRUITLESS

Kinds = Callable[..., list[str]]
Told = Callable[..., list[dict[str, Any]]]


def one() -> int:
    return 1


def newer_header(process: Any, run: str) -> None:
    """Make a run look as if a later version had recorded it."""
    core, id = process.store.core, f"7:trip-42/{run}"
    record = core.engine.get(core.tenant, "run", id)
    body = encode({**decode(record.body), "v": 99, "new": "field"}, "a header")
    core.engine.commit(core.tenant, (Put("run", id, body, None, record.scope, record.tags),), core.clock.now())


def newer_event(process: Any, run: str) -> None:
    core, id = process.store.core, f"7:trip-42/{run}"
    event = Event("teleported", encode({"step": "s"}, "x"), core.clock.now())
    core.engine.commit(core.tenant, (Append("run", id, (event,)),), event.time)


@pytest.mark.every_engine
def test_every_interrupted_run_is_carried_on(process: Any, other: Any, world: Any) -> None:
    def handler(run: Any) -> Any:
        run.step("a", world.do, run.name, effect="once", probe=world.find)
        return [run.name, run.input]

    for number in range(3):
        run = process.thread(f"t{number}").run("r", input=number)
        run.step("a", world.do, run.name, effect="once", probe=world.find)
    process.die()
    assert other.store.resume({"r": handler}) == []
    other.lapse()
    assert {info.status for info in other.store.runs()} == {"interrupted"}
    report = other.store.resume({"r": handler})
    assert sorted((one.thread, one.run, one.outcome, one.result[1]) for one in report) == [
        ("t0", "r", "done", 0), ("t1", "r", "done", 1), ("t2", "r", "done", 2)
    ]  # fmt: skip
    assert world.times("r") == 3
    assert other.store.resume({"r": handler}) == []


@pytest.mark.every_engine
def test_submitted_runs_are_carried_out(process: Any, other: Any) -> None:
    for name in ("c", "a", "b"):
        info = process.thread().submit(name, handler="h", input=name)
        assert (info.status, info.holder, info.handler) == ("submitted", "", "h")
    assert {one.result for one in other.store.resume({"h": lambda run: run.input})} == {"a", "b", "c"}


def test_submitting_twice_changes_nothing(process: Any, other: Any, kinds: Kinds) -> None:
    process.thread().submit("r", input={"n": 1})
    other.thread().submit("r", input={"n": 1})
    with pytest.raises(errors.Invalid, match="another handler or input"):
        other.thread().submit("r", input={"n": 2})
    with pytest.raises(errors.Invalid, match="another handler or input"):
        other.thread().submit("r", handler="h", input={"n": 1})
    assert kinds(process.thread(), "r") == ["opened"]
    other.store.resume({"r": lambda run: "well"})
    assert process.thread().submit("r", input={"n": 1}).status == "done"


def test_a_run_without_a_handler_is_left_and_reported(process: Any, other: Any) -> None:
    for name in ("known", "unknown"):
        process.thread().submit(name)
    before = other.thread().timeline("unknown").moments
    report = {one.run: one for one in other.store.resume({"known": one_handler})}
    assert report["known"].outcome == "done"
    assert report["unknown"].outcome == "no handler"
    assert "no handler 'unknown'" in report["unknown"].error
    assert other.thread().timeline("unknown").moments == before
    assert [one.outcome for one in other.store.resume({"unknown": one_handler})] == ["done"]


def one_handler(run: Any) -> Any:
    return run.step("s", one, effect="pure")


@pytest.mark.parametrize("newer", [newer_header, newer_event])
def test_a_run_recorded_by_newer_code_is_reported_and_the_others_go_on(process: Any, other: Any, newer: Any) -> None:
    for name in ("a", "newer", "z"):
        process.thread().submit(name)
    newer(process, "newer")
    before = [commit.position for commit in other.store.watch(timeout_s=0)][-1]
    report = {one.run: one for one in other.store.resume({name: one_handler for name in ("a", "newer", "z")})}
    assert (report["a"].outcome, report["z"].outcome) == ("done", "done")
    assert report["newer"].outcome == "failed"
    assert "upgrade" in report["newer"].error
    touched = [change.id for commit in other.store.watch(after=before, timeout_s=0) for change in commit.changes]
    assert "7:trip-42/newer" not in touched
    with pytest.raises(errors.Unsupported, match="upgrade"):
        other.thread().run("newer")
    assert "7:trip-42/newer" not in [
        change.id for commit in other.store.watch(after=before, timeout_s=0) for change in commit.changes
    ]


def test_a_handler_that_fails_harms_no_other(process: Any, other: Any) -> None:
    for name in ("a", "b", "c"):
        process.thread().submit(name)

    def bad(run: Any) -> None:
        raise ValueError("broken handler")

    report = {one.run: one for one in other.store.resume({"a": one_handler, "b": bad, "c": one_handler})}
    assert [report[name].outcome for name in "abc"] == ["done", "failed", "done"]
    assert report["b"].error == "ValueError: broken handler"
    assert other.thread().timeline("b").error["message"] == "broken handler"
    assert other.store.resume({"b": bad}) == []  # it failed; only by name is it opened again


def test_a_handler_that_ends_its_run_itself(process: Any, other: Any) -> None:
    for name in ("finishes", "abandons", "releases"):
        process.thread().submit(name)
    report = other.store.resume({
        "finishes": lambda run: run.finish("early"), "abandons": lambda run: run.abandon(),
        "releases": lambda run: run.release(),
    })  # fmt: skip
    assert {one.run: (one.outcome, one.result) for one in report} == {
        "finishes": ("done", "early"), "abandons": ("cancelled", None), "releases": ("interrupted", None)
    }  # fmt: skip


def test_a_result_of_a_run_that_cannot_be_stored_leaves_it_resumable(process: Any, other: Any) -> None:
    process.thread().submit("r")
    (report,) = other.store.resume({"r": lambda run: object()})
    assert report.outcome == "interrupted"
    assert "ResultInvalid" in report.error
    assert [one.result for one in process.store.resume({"r": lambda run: "fixed"})] == ["fixed"]


def test_trouble_with_another_run_is_a_failure_not_an_interruption(process: Any, other: Any) -> None:
    """Errors that would mean that this run was stopped or ended, but are about another one, must not go round."""
    with process.thread().run("ended"):
        pass

    def handler(run: Any) -> None:
        other.thread().signal("x", run="ended")

    process.thread().submit("r")
    assert [one.outcome for one in other.store.resume({"r": handler})] == ["failed"]
    assert other.store.resume({"r": handler}) == []


def test_a_run_that_never_gets_anywhere_fails_in_the_end(place: Any, died: Any) -> None:
    place.process("submitter").thread().submit("r")

    def kills(run: Any) -> None:
        run.step("s", lambda: (_ for _ in ()).throw(died()), effect="idempotent")

    outcomes: list[str] = []
    for number in range(FRUITLESS + 4):
        process = place.process(f"p{number}")
        try:
            outcomes += [one.outcome for one in process.store.resume({"r": kills})]
        except died:
            outcomes.append("died")
        process.die()
        process.lapse()
    assert outcomes == ["died"] * FRUITLESS + ["failed"]
    last = place.process("last")
    assert "without progress" in last.thread().timeline("r").error["message"]
    with last.thread().run("r") as run:  # by name it can be tried once more
        assert run.step("s", one, effect="idempotent") == 1


def test_a_run_that_gets_on_is_not_given_up(place: Any, died: Any) -> None:
    place.process("submitter").thread().submit("r")

    def slow(run: Any) -> str:
        for number in range(20):
            if run.work.journal.steps.get(f"s{number}") is None:
                run.step(f"s{number}", one, effect="pure")
                raise died
        return "at last"

    for number in range(20):
        process = place.process(f"p{number}")
        with pytest.raises(died):
            process.store.resume({"r": slow})
    assert [one.result for one in place.process("last").store.resume({"r": slow})] == ["at last"]


def test_handlers_may_be_a_list_of_functions(process: Any, other: Any) -> None:
    def book(run: Any) -> str:
        return "booked"

    process.thread().submit("trip", handler="book")
    process.thread().submit("one_handler")
    assert {one.result for one in other.store.resume([book, one_handler])} == {"booked", 1}


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("handlers", [5, {"r": 5}, {5: one}, [5], "abc"])
def test_wrong_handlers_are_refused(store: holdfast.Store, handlers: Any) -> None:
    with pytest.raises(errors.Invalid):
        store.resume(handlers)
    with pytest.raises(errors.Invalid):
        store.work(handlers)


def test_a_limit_counts_what_is_carried_on(process: Any, other: Any) -> None:
    for name in ("a", "b", "c"):
        process.thread().submit(name, handler="unknown")
    for name in ("d", "e", "f"):
        process.thread().submit(name, handler="h")
    report = other.store.resume({"h": lambda run: run.name}, limit=2)
    assert Counter(one.outcome for one in report)["done"] == 2
    assert Counter(one.outcome for one in other.store.resume({"h": lambda run: run.name}, limit=2))["done"] == 1
    for bad in (-1, "5", True):
        with pytest.raises(errors.Invalid):
            other.store.resume({}, limit=bad)


def test_a_run_that_another_carried_on_meanwhile_is_not_run_again(process: Any, other: Any) -> None:
    """What was free when it was looked for may be done, parked or stopped when its turn comes."""
    for name in ("a", "done", "parked", "failed"):
        process.thread().submit(name)
    calls: list[str] = []

    def first(run: Any) -> None:
        calls.append("first")
        others = {"done": lambda run: calls.append("done"), "parked": lambda run: run.wait("w", timeout_s=50),
                  "failed": lambda run: 1 / 0}  # fmt: skip
        other.store.resume(others)

    again: Callable[[Any], Any] = lambda run: calls.append("again")  # noqa: E731
    report = process.store.resume({"a": first, "done": again, "parked": again, "failed": again})
    assert calls == ["first", "done"]
    assert {one.run: one.outcome for one in report} == {
        "a": "done", "done": "held", "parked": "held", "failed": "held"
    }  # fmt: skip
    assert {info.name: info.status for info in other.thread().runs()} == {
        "a": "done", "done": "done", "parked": "waiting", "failed": "failed"
    }  # fmt: skip


class Watch:
    """A watch in place of the machine's, which goes only when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(resume, "monotonic", lambda: self.now)


def claims_of(process: Any) -> list[list[str]]:
    """Which runs each commit of a process takes, from now on."""
    found: list[list[str]] = []

    def note(ops: Any) -> None:
        appends = [op for op in ops if isinstance(op, Append) and op.kind == "run"]
        taken = [op.id for op in appends for event in op.events if event.kind == "opened"]
        if taken:
            found.append(taken)

    process.wire.after.append(note)
    return found


@pytest.mark.usefixtures("any_engine")
def test_many_quick_runs_are_taken_in_few_commits(process: Any, other: Any) -> None:
    for number in range(1_000):
        process.thread().submit(f"r{number}", handler="h")
    claims = claims_of(other)
    assert len(other.store.resume({"h": lambda run: None})) == 1_000
    assert sum(map(len, claims)) == 1_000
    assert len(claims) < 110


@pytest.mark.usefixtures("any_engine")
def test_what_is_not_begun_behind_a_slow_run_is_given_back(
    process: Any, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, claims, report = Watch(monkeypatch), claims_of(process), []
    for number in range(210):
        process.thread().submit(f"r{number:03}", handler="h")

    def handler(run: Any) -> None:
        if run.name == "r030":  # by then ten are taken at once
            watch.now += 60
        if run.name == "r031":
            report.extend(other.store.resume({"h": lambda run: None}))

    claims.clear()
    mine = process.store.resume({"h": handler})
    sizes = [len(some) for some in claims]
    assert max(sizes) == 10
    begun = next(number for number, some in enumerate(claims) if "7:trip-42/r030" in some)
    assert sizes[begun + 1] == 1  # and after a slow one it looks again, with care
    others = {one.run for one in report if one.outcome == "done"}
    assert others == {f"r{number:03}" for number in range(32, 210)}
    assert {one.run for one in mine if one.outcome == "done"} == {f"r{number:03}" for number in range(32)}
    assert {info.status for info in process.thread().runs()} == {"done"}


@pytest.mark.usefixtures("any_engine")
def test_what_was_taken_and_never_begun_is_given_back(process: Any, other: Any) -> None:
    process.thread().submit("r")
    claimed = resume.Resumer(process.store.wiring.runs, {"r": one_handler}, process.store.thread).claimed()
    next(claimed)
    assert [info.status for info in other.thread().runs()] == ["running"]
    claimed.close()
    assert [one.outcome for one in other.store.resume({"r": one_handler})] == ["done"]


def test_the_report_tells_why_undoing_came_to_a_stop(process: Any, other: Any, died: Any) -> None:
    process.thread().submit("r")
    process.thread().submit("z")

    def first(run: Any) -> None:
        run.step("a", one, effect="idempotent", compensate=lambda result: None)
        raise died

    with pytest.raises(died):
        process.store.resume({"r": first})
    process.thread().cancel("r", reason="changed my mind")
    (report, _) = other.store.resume({"r": one_handler, "z": one_handler})
    assert (report.run, report.outcome) == ("r", "stopped")
    assert "does not say how to undo step 'a'" in report.error


def test_an_undoing_that_trips_harms_no_other(process: Any, other: Any, died: Any) -> None:
    class Room(msgspec.Struct):
        number: int

    process.thread().submit("r")
    process.thread().submit("z")

    def first(run: Any) -> None:
        run.step("a", dict, effect="idempotent", compensate=lambda result: None)
        raise died

    def second(run: Any) -> None:
        with pytest.raises(errors.ResultInvalid):
            run.step("a", dict, effect="idempotent", returns=Room, compensate=lambda result: None)
        run.step("b", one, effect="pure")

    with pytest.raises(died):
        process.store.resume({"r": first})
    process.thread().cancel("r")
    report = {one.run: one for one in other.store.resume({"r": second, "z": one_handler})}
    assert (report["r"].outcome, report["z"].outcome) == ("interrupted", "done")
    assert "does not fit Room" in report["r"].error


@pytest.mark.every_engine
def test_runs_are_listed(process: Any, other: Any) -> None:
    thread = process.store.thread("t", user="ana", agent="travel")
    thread.submit("submitted")
    thread.run("running")
    with thread.run("done"):
        pass
    with pytest.raises(ZeroDivisionError), thread.run("failed"):
        1 / 0  # noqa: B018
    process.store.thread("u", user="bo").submit("other")
    assert {info.name: info.status for info in other.store.thread("t").runs()} == {
        "submitted": "submitted", "running": "running", "done": "done", "failed": "failed"
    }  # fmt: skip
    assert [info.name for info in other.store.runs(user="bo")] == ["other"]
    assert {info.name for info in other.store.runs(agent="travel", status="done")} == {"done"}
    assert {info.name for info in other.store.runs(status="submitted")} == {"submitted", "other"}
    assert {info.name for info in other.store.runs(status="running")} == {"running"}
    assert [info.name for info in other.store.thread("t").runs(status="failed")] == ["failed"]
    assert len(other.store.runs(limit=2)) == 2
    assert len(other.store.runs(limit=None)) == 5
    (info,) = other.store.thread("t").runs(status="running")
    assert info.started <= info.active


def test_one_run_can_be_named(process: Any, other: Any) -> None:
    for name in ("a", "b"):
        process.thread().submit(name, handler="h")
    heard: list[Any] = []
    (report,) = other.store.resume({"h": one_handler}, thread="trip-42", run="b", on_run=heard.append)
    assert (report.run, report.outcome, heard) == ("b", "done", [report])
    assert {info.name: info.status for info in other.thread().runs()} == {"a": "submitted", "b": "done"}
    with pytest.raises(errors.RunEnded, match="nothing to resume"):
        other.store.resume({"h": one_handler}, thread="trip-42", run="b")
    with pytest.raises(errors.Invalid, match="needs handler 'h'"):
        other.store.resume({"other": one_handler}, thread="trip-42", run="a")
    with pytest.raises(errors.Invalid, match="give both"):
        other.store.resume({"h": one_handler}, run="a")
    with pytest.raises(errors.NotFound):
        other.store.resume({"h": one_handler}, thread="trip-42", run="c")
    held = process.thread().run("a")
    with pytest.raises(errors.RunHeld):
        other.store.resume({"h": one_handler}, thread="trip-42", run="a")
    held.release()


def test_a_run_that_is_named_is_tried_again_although_it_failed(process: Any, other: Any) -> None:
    process.thread().submit("r")
    process.store.resume({"r": lambda run: run.step("s", lambda: 1 / 0, effect="pure")})
    assert other.store.resume({"r": one_handler}) == []
    assert [one.outcome for one in other.store.resume({"r": one_handler}, thread="trip-42", run="r")] == ["done"]


# The worker


def test_a_worker_carries_on_until_it_is_told_to_stop(process: Any, other: Any) -> None:
    stop, seen = threading.Event(), []

    def on_run(resumed: holdfast.types.Resumed) -> None:
        seen.append((resumed.run, resumed.result))
        if len(seen) == 4:
            stop.set()

    def handler(run: Any) -> Any:
        if run.name == "r1":
            process.thread().submit("late", handler="h")
        return run.step("s", lambda: run.name, effect="pure")

    for number in range(3):
        process.thread().submit(f"r{number}", handler="h")
    assert other.store.work({"h": handler}, stop=stop, poll_s=0.01, on_run=on_run) == 4
    assert sorted(seen) == [("late", "late"), ("r0", "r0"), ("r1", "r1"), ("r2", "r2")]


@pytest.mark.usefixtures("any_engine")
def test_a_worker_that_is_told_to_stop_at_once_does_nothing(process: Any) -> None:
    stop = threading.Event()
    stop.set()
    process.thread().submit("r")
    assert process.store.work({"r": one_handler}, stop=stop) == 0
    for bad in (0, -1, "1", True):
        with pytest.raises(errors.Invalid):
            process.store.work({}, poll_s=bad)


def test_a_worker_mentions_once_what_it_cannot_carry_on(
    process: Any, other: Any, caplog: pytest.LogCaptureFixture
) -> None:
    process.thread().submit("unknown")
    process.thread().submit("newer")
    newer_event(process, "newer")
    looks: list[int] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if len(looks) >= 3:
                self.set()
            looks.append(1)
            return super().wait(0)

    stop = Stop()
    with caplog.at_level(logging.WARNING):
        assert other.store.work({"newer": one_handler}, stop=stop, poll_s=0.01) == 0
    assert len(looks) > 3
    assert len([record for record in caplog.records if "unknown" in record.getMessage()]) == 1
    assert len([record for record in caplog.records if "upgrade" in record.getMessage()]) == 1


@pytest.mark.every_engine
def test_two_workers_never_run_one_run_twice(place: Any, process: Any) -> None:
    names = [f"r{number}" for number in range(12)]
    for name in names:
        process.thread(f"t-{name}").submit(name, handler="h")
    stop, ran, lock = threading.Event(), Counter(), threading.Lock()

    def handler(run: Any) -> None:
        with lock:
            ran[run.name] += 1

    def on_run(resumed: Any) -> None:
        if sum(ran.values()) >= len(names):
            stop.set()

    counts: list[int] = []
    workers = [place.process(f"w{number}") for number in range(2)]

    def work(worker: Any) -> None:
        counts.append(worker.store.work({"h": handler}, stop=stop, poll_s=0.01, on_run=on_run))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (sum(counts), ran) == (len(names), Counter(names))
    assert {info.status for info in process.store.runs()} == {"done"}


def test_a_worker_whose_run_is_taken_over_says_that_it_lost_it(process: Any, other: Any) -> None:
    def handler(run: Any) -> None:
        process.lapse()
        other.thread().run("r").finish("other")
        run.step("s", one, effect="pure")

    process.thread().submit("r")
    (report,) = process.store.resume({"r": handler})
    assert report.outcome == "lost"
    assert other.thread().timeline("r").result == "other"


def test_an_interruption_of_a_worker_lets_its_run_go(process: Any, other: Any) -> None:
    def handler(run: Any) -> None:
        raise KeyboardInterrupt

    process.thread().submit("r")
    with pytest.raises(KeyboardInterrupt):
        process.store.resume({"r": handler})
    assert [one.outcome for one in other.store.resume({"r": one_handler})] == ["done"]


def test_a_store_that_is_away_for_a_while_fails_no_run(process: Any, other: Any) -> None:
    """The completion is tried again for a while; where that does not help, the run is left to be resumed."""
    away: list[Any] = []

    def unavailable(ops: Any) -> None:
        if away:
            away.pop()
            raise errors.Unavailable("the store is unavailable")

    process.wire.before.append(unavailable)
    run = process.thread().run("short")

    def work() -> str:
        away.extend(range(3))
        return "kept"

    assert run.step("s", work, effect="once", on_unknown="stop") == "kept"
    with pytest.raises(errors.Unavailable), process.thread().run("long") as run:
        run.step("a", one, effect="pure")
        away.append(1)
        run.step("b", one, effect="pure")  # its intent: nothing was done yet, and nothing is recorded
    assert {info.name: info.status for info in other.thread().runs()}["long"] == "interrupted"
    assert [one.outcome for one in other.store.resume({"long": one_handler})] == ["done"]


@pytest.mark.every_engine
@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("kind", ["intent", "completed", "ended"])
def test_a_commit_of_which_nobody_knows_the_outcome_is_looked_for(
    process: Any, other: Any, world: Any, kinds: Kinds, kind: str, landed: bool
) -> None:
    def unknown(ops: Any) -> None:
        if f"kind='{kind}'" in str(ops):
            getattr(process.wire, "after" if landed else "before").clear()
            raise errors.OutcomeUnknown("the connection broke")

    getattr(process.wire, "after" if landed else "before").append(unknown)
    with process.thread().run("r") as run:
        assert run.step("book", world.do, effect="once", probe=world.find) == {"did": "book", "number": 1}
    assert world.times() == 1
    assert kinds(other.thread(), "r") == ["opened", "intent", "completed", "ended"]
    assert len(other.thread().log()) == 2
    assert [info.status for info in other.thread().runs()] == ["done"]


@pytest.mark.usefixtures("any_engine")
def test_a_report_is_plain(process: Any) -> None:
    process.thread().submit("r")
    (report,) = process.store.resume({"r": one_handler})
    assert msgspec.to_builtins(report) == {
        "thread": "trip-42", "run": "r", "handler": "r", "outcome": "done", "result": 1, "error": ""
    }  # fmt: skip


def test_a_signal_between_a_lost_answer_and_the_second_try_is_no_conflict(
    process: Any, other: Any, world: Any, kinds: Kinds
) -> None:
    def lost(ops: Any) -> None:
        if "kind='completed'" in str(ops):
            process.wire.before.clear()
            process.wire.before.append(signalled)
            raise errors.OutcomeUnknown("the connection broke")

    def signalled(ops: Any) -> None:
        process.wire.before.clear()
        other.thread().signal("go", "now")

    process.wire.before.append(lost)
    with process.thread().run("r") as run:
        assert run.step("book", world.do, effect="once", probe=world.find)["number"] == 1
        assert run.wait("go") == "now"
    assert kinds(other.thread(), "r") == ["opened", "intent", "signal", "completed", "waiting", "completed", "ended"]
    assert world.times() == 1


@pytest.mark.every_engine
def test_a_takeover_between_a_lost_answer_and_the_second_try_is_noticed(process: Any, other: Any, world: Any) -> None:
    def lost(ops: Any) -> None:
        if "kind='completed'" in str(ops):
            process.wire.before.clear()
            process.lapse()
            other.thread().run("r").step("book", world.do, effect="once", probe=world.find)
            raise errors.OutcomeUnknown("the connection broke")

    process.wire.before.append(lost)
    with pytest.raises(errors.Fenced), process.thread().run("r") as run:
        run.step("book", world.do, effect="once", probe=world.find)
    assert world.times() == 1
    assert other.thread().timeline("r").steps[0].how == "probed"


def test_a_store_that_stays_away_leaves_a_finished_step_to_be_asked_about(
    process: Any, other: Any, world: Any, clock: Any
) -> None:
    away: list[Any] = []

    def unavailable(ops: Any) -> None:
        if away:
            raise errors.Unavailable("the store is unavailable")

    process.wire.before.append(unavailable)

    def work() -> Any:
        away.append(1)
        return world.do()

    with pytest.raises(errors.Unavailable), process.thread().run("r") as run:
        run.step("book", work, effect="once", probe=world.find)
    process.lapse()
    (report,) = other.store.resume({"r": lambda run: run.step("book", world.do, effect="once", probe=world.find)})
    assert (report.outcome, report.result, world.times()) == ("done", {"did": "book", "number": 1}, 1)
