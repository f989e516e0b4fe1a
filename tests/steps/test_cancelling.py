# ruff: noqa: PT012 - the block is a run, and its end is part of what raises
"""Giving a run up: noticed before the next step, undone the last first, and repeated by no crash."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import errors

Kinds = Callable[..., list[str]]
Told = Callable[..., list[dict[str, Any]]]


class Trip:
    """Three bookings that can be undone, as a handler would make them."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.undone: list[Any] = []

    def book(self, run: Any, name: str, **options: Any) -> Any:
        given: dict[str, Any] = {"effect": "once", "probe": self.world.find, "compensate": self.undo, **options}
        return run.step(name, self.world.do, name, **given)

    def undo(self, result: Any) -> str:
        self.undone.append(None if result is None else result["did"])
        return "undone"

    def handler(self, run: Any) -> None:
        for name in ("flight", "hotel", "car"):
            self.book(run, name)


@pytest.fixture
def trip(world: Any) -> Trip:
    return Trip(world)


@pytest.mark.every_engine
def test_abandoning_undoes_the_completed_steps_the_last_first(
    thread: holdfast.Thread, trip: Trip, told: Told, kinds: Kinds
) -> None:
    run = thread.run("r")
    trip.handler(run)
    run.step("note", lambda: 1, effect="pure")  # nothing to undo here
    run.abandon("too dear")
    assert trip.undone == ["car", "hotel", "flight"]
    assert (run.status, [info.status for info in thread.runs()]) == ("cancelled", ["cancelled"])
    assert [(step.name, step.standing) for step in run.steps][-3:] == [
        ("car:undo", "completed"), ("hotel:undo", "completed"), ("flight:undo", "completed")
    ]  # fmt: skip
    assert told(thread, "run")[-1]["outcome"] == "cancelled"
    cancel = next(moment for moment in thread.timeline("r").moments if moment.kind == "cancel")
    assert (cancel.facts["reason"], cancel.facts["by"]) == ("too dear", "first")
    with pytest.raises(errors.Invalid, match="already cancelled"):
        run.abandon()
    assert trip.undone == ["car", "hotel", "flight"]


@pytest.mark.parametrize("inside", [True, False])
def test_a_failed_run_keeps_what_it_did_until_it_is_cancelled(
    process: Any, other: Any, trip: Trip, inside: bool
) -> None:
    def handler(run: Any) -> None:
        trip.book(run, "flight")
        if inside:
            run.step("fails", lambda: 1 / 0, effect="pure")
        raise ValueError("in the handler itself")

    with pytest.raises((errors.StepFailed, ValueError)), process.thread().run("r") as run:
        handler(run)
    assert trip.undone == []
    assert other.thread().cancel("r").status == "interrupted"
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, trip.undone) == ("cancelled", ["flight"])


@pytest.mark.every_engine
@pytest.mark.parametrize(("when", "kind", "step"), [
    ("before", "intent", "hotel:undo"), ("after", "intent", "hotel:undo"),
    ("before", "completed", "hotel:undo"), ("after", "completed", "hotel:undo"),
    ("before", "ended", None), ("after", "ended", None),
])  # fmt: skip
def test_a_crash_in_the_middle_of_undoing_repeats_nothing_that_was_recorded(
    process: Any, other: Any, died: Any, trip: Trip, when: str, kind: str, step: str | None
) -> None:
    process.dies(when, kind, step)
    with pytest.raises(died), process.thread().run("r") as run:
        trip.handler(run)
        run.abandon()
    process.lapse()
    reports = other.store.resume({"r": trip.handler})
    assert [report.outcome for report in reports] == ([] if (when, kind) == ("after", "ended") else ["cancelled"])
    assert [info.status for info in other.thread().runs()] == ["cancelled"]
    repeated = ["hotel"] if (when, kind) == ("before", "completed") else []
    assert trip.undone == ["car", "hotel", *repeated, "flight"]
    assert len(trip.world.done) == 3


def test_a_compensation_that_fails_does_not_keep_the_others_back(process: Any, other: Any, trip: Trip) -> None:
    def refuse(result: Any) -> None:
        if not trip.undone.count("refused"):
            trip.undone.append("refused")
            raise OSError("no refund")
        trip.undo(result)

    def handler(run: Any) -> None:
        trip.book(run, "flight")
        trip.book(run, "hotel", compensate=refuse)
        trip.book(run, "car")
        run.step("more", lambda: 1, effect="pure")

    run = process.thread().run("r")
    with pytest.raises(errors.StepFailed, match="no refund"), run:
        for name in ("flight", "hotel", "car"):
            trip.book(run, name, **({"compensate": refuse} if name == "hotel" else {}))
        run.abandon()
    assert trip.undone == ["car", "refused", "flight"]
    assert [info.status for info in process.thread().runs()] == ["failed"]
    with pytest.raises(errors.Cancelled), other.thread().run("r") as again:  # opened again, it is tried once more
        handler(again)
    assert trip.undone == ["car", "refused", "flight", "hotel"]
    assert [info.status for info in other.thread().runs()] == ["cancelled"]


def test_a_compensation_is_retried_like_its_step(thread: holdfast.Thread, trip: Trip) -> None:
    tries: list[int] = []

    def undo(result: Any) -> None:
        tries.append(holdfast.current_step().attempt)
        if len(tries) < 3:
            raise OSError

    run = thread.run("r")
    trip.book(run, "flight", compensate=undo, retry=3)
    run.abandon()
    assert tries == [1, 2, 3]


def test_a_compensation_may_be_a_declared_step(process: Any, other: Any, died: Any, world: Any) -> None:
    asked: list[Any] = []

    def probe(result: Any) -> Any:
        asked.append(result["did"])
        return "refunded"

    @holdfast.step(effect="once", probe=probe)
    def refund(result: Any) -> None:
        process.die()
        raise died

    def handler(run: Any) -> None:
        run.step("flight", world.do, "flight", effect="once", probe=world.find, compensate=refund)
        run.step("next", lambda: 1, effect="pure")

    with pytest.raises(died), process.thread().run("r") as run:
        run.step("flight", world.do, "flight", effect="once", probe=world.find, compensate=refund)
        run.abandon()
    process.lapse()
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, asked) == ("cancelled", ["flight"])


@dataclasses.dataclass
class Ticket:
    number: int


def test_a_compensation_and_a_log_function_get_the_result_as_the_caller_does(process: Any, other: Any) -> None:
    undone: list[Any] = []

    def handler(run: Any) -> Any:
        return run.step(
            "flight", lambda: Ticket(7), effect="pure", returns=Ticket, compensate=undone.append,
            log=lambda ticket: holdfast.note(f"ticket {ticket.number}"),
        )  # fmt: skip

    run = process.thread().run("r")
    assert handler(run) == Ticket(7)
    run.release()
    other.thread().cancel("r")
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, undone) == ("cancelled", [Ticket(7)])
    assert process.thread().log()[0].content == {"text": "ticket 7"}


def test_a_skipped_step_is_not_undone(process: Any, other: Any, died: Any, trip: Trip) -> None:
    process.dies("before", "completed")
    with pytest.raises(died):
        trip.book(process.thread().run("r"), "flight", probe=None, on_unknown="skip")
    process.lapse()
    run = other.thread().run("r")
    assert trip.book(run, "flight", probe=None, on_unknown="skip") is None
    run.abandon()
    assert trip.undone == []


def test_code_that_does_not_say_how_to_undo_stops_the_run(process: Any, other: Any, trip: Trip) -> None:
    process_run = process.thread().run("r")
    trip.handler(process_run)
    process_run.release()
    with pytest.raises(errors.StepError, match="does not say how to undo"):
        other.thread().run("r").abandon()
    assert [info.status for info in other.thread().runs()] == ["stopped"]
    assert trip.undone == []
    with pytest.raises(errors.Cancelled), other.thread().run("r") as run:  # with its handler it can be ended
        trip.handler(run)
    assert trip.undone == ["car", "hotel", "flight"]


# From outside


def test_a_holder_notices_at_its_next_step(process: Any, other: Any, trip: Trip, kinds: Kinds) -> None:
    with pytest.raises(errors.Cancelled, match="changed my mind") as caught, process.thread().run("r") as run:
        trip.book(run, "flight")
        assert other.thread().cancel("r", reason="changed my mind", by="ana").status == "running"
        assert trip.book(run, "flight")["did"] == "flight"  # what is recorded can still be read
        trip.book(run, "hotel")
    assert caught.value.facts["by"] == "ana"
    assert trip.undone == ["flight"]
    assert trip.world.times("hotel") == 0
    assert [info.status for info in other.thread().runs()] == ["cancelled"]


def test_a_holder_notices_at_a_heartbeat(process: Any, other: Any, trip: Trip) -> None:
    def work() -> None:
        other.thread().cancel("r")
        holdfast.current_step().heartbeat()
        raise AssertionError("not reached")

    with pytest.raises(errors.Cancelled), process.thread().run("r") as run:
        run.step("long", work, effect="idempotent", compensate=trip.undo)
    assert trip.undone == [None]  # it may have happened in part: what undoes it is run
    assert [info.status for info in other.thread().runs()] == ["cancelled"]


def test_a_holder_notices_at_a_heartbeat_of_the_run(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    run.heartbeat()
    other.thread().cancel("r")
    with pytest.raises(errors.Cancelled):
        run.heartbeat()


def test_a_holder_notices_at_the_end(process: Any, other: Any, trip: Trip) -> None:
    with pytest.raises(errors.Cancelled), process.thread().run("r") as run:
        trip.book(run, "flight")
        other.thread().cancel("r")
        run.finish("well")
    assert trip.undone == ["flight"]


def test_a_holder_notices_between_two_attempts(process: Any, other: Any) -> None:
    tries: list[int] = []

    def fn() -> None:
        tries.append(1)
        other.thread().cancel("r")
        raise OSError

    with pytest.raises(errors.Cancelled), process.thread().run("r") as run:
        run.step("s", fn, effect="idempotent", retry=5)
    assert tries == [1]
    assert [info.status for info in other.thread().runs()] == ["cancelled"]


def test_a_holder_notices_inside_a_subtask(process: Any, other: Any, trip: Trip, world: Any) -> None:
    def inner(sub: Any) -> None:
        sub.step("one", world.do, "one", effect="pure")
        other.thread().cancel("r")
        sub.step("two", world.do, "two", effect="pure")

    with pytest.raises(errors.Cancelled), process.thread().run("r") as run:
        trip.book(run, "flight")
        run.subtask("t", inner)
    assert (world.times("one"), world.times("two"), trip.undone) == (1, 0, ["flight"])
    assert [info.status for info in other.thread().runs()] == ["cancelled"]


def test_a_holder_notices_at_a_heartbeat_inside_a_subtask(process: Any, other: Any) -> None:
    def work() -> None:
        other.thread().cancel("r")
        holdfast.current_step().heartbeat()
        raise AssertionError("not reached")

    with pytest.raises(errors.Cancelled), process.thread().run("r") as run:
        run.subtask("t", lambda sub: sub.step("s", work, effect="idempotent"))
    assert [info.status for info in other.thread().runs()] == ["cancelled"]


def test_the_cancellation_of_another_run_is_not_ones_own(process: Any, trip: Trip) -> None:
    thread = process.thread()
    thread.run("other").abandon("no more")

    def handler(run: Any) -> None:
        trip.book(run, "flight")
        inner = thread.run("inner")
        thread.cancel("inner")
        inner.step("s", lambda: 1, effect="pure")

    with pytest.raises(errors.Cancelled), thread.run("r") as run:
        handler(run)
    assert trip.undone == []
    assert {info.name: info.status for info in thread.runs()}["r"] == "failed"


@pytest.mark.every_engine
def test_an_interrupted_run_is_undone_by_whoever_resumes_it(process: Any, other: Any, died: Any, trip: Trip) -> None:
    process.dies("after", "completed", "hotel")
    with pytest.raises(died), process.thread().run("r") as run:
        trip.handler(run)
    process.lapse()
    assert other.thread().cancel("r").status == "interrupted"
    (report,) = other.store.resume({"r": trip.handler})
    assert (report.outcome, trip.undone) == ("cancelled", ["hotel", "flight"])
    assert trip.world.times("car") == 0


def test_a_run_with_nothing_to_undo_ends_at_once(process: Any, other: Any, kinds: Kinds) -> None:
    thread = process.thread()
    thread.submit("submitted")
    thread.run("left").release()
    assert {other.thread().cancel(name).status for name in ("submitted", "left")} == {"cancelled"}
    assert other.store.resume({"submitted": lambda run: 1 / 0, "left": lambda run: 1 / 0}) == []
    assert kinds(thread, "left") == ["opened", "released", "cancel", "ended"]


@pytest.mark.parametrize("timeout_s", [None, 1000])
def test_a_parked_run_ends_at_once(process: Any, other: Any, timeout_s: Any) -> None:
    process.thread().submit("r")
    (report,) = process.store.resume({"r": lambda run: run.wait("approval", timeout_s=timeout_s)})
    assert report.outcome == "waiting"
    assert other.thread().cancel("r").status == "cancelled"
    with pytest.raises(errors.RunEnded):
        other.thread().signal("approval", "yes")
    other.clock.advance(2000)
    assert other.store.resume({"r": lambda run: 1 / 0}) == []


def test_a_parked_run_that_did_something_is_undone_on_resume(process: Any, other: Any, trip: Trip) -> None:
    def handler(run: Any) -> None:
        trip.book(run, "flight")
        run.wait("approval", timeout_s=1000)

    process.thread().submit("r")
    process.store.resume({"r": handler})
    other.thread().cancel("r")
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, trip.undone) == ("cancelled", ["flight"])


def test_a_waiting_holder_notices(process: Any, other: Any, trip: Trip) -> None:
    import threading  # noqa: PLC0415

    waits = threading.Event()
    process.wire.after.append(lambda ops: waits.set() if "waiting" in str(ops) else None)
    raised: list[BaseException] = []

    def work() -> None:
        try:
            with process.thread().run("r") as run:
                trip.book(run, "flight")
                run.wait("approval")
        except errors.Cancelled as error:
            raised.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    assert waits.wait(10)
    other.thread().cancel("r")
    worker.join(10)
    assert (len(raised), trip.undone) == (1, ["flight"])


@pytest.mark.parametrize("happened", [True, False])
def test_a_step_in_doubt_is_asked_about_before_the_run_is_undone(
    process: Any, other: Any, died: Any, trip: Trip, told: Told, happened: bool
) -> None:
    process.dies("before" if happened else "after", "completed" if happened else "intent", "hotel")
    with pytest.raises(died), process.thread().run("r") as run:
        trip.handler(run)
    process.lapse()
    other.thread().cancel("r")
    (report,) = other.store.resume({"r": trip.handler})
    assert report.outcome == "cancelled"
    assert trip.undone == (["hotel", "flight"] if happened else ["flight"])
    assert trip.world.times("hotel") == happened
    assert told(other.thread(), "resolution")[-1]["decision"] == ("recorded" if happened else "dropped")


@pytest.mark.parametrize(("policy", "outcome"), [("stop", "stopped"), ("rerun", "cancelled"), ("skip", "cancelled")])
def test_a_step_in_doubt_of_which_nobody_can_say_in_a_cancelled_run(
    process: Any, other: Any, died: Any, trip: Trip, policy: Any, outcome: str
) -> None:
    def handler(run: Any) -> None:
        trip.book(run, "flight")
        trip.book(run, "hotel", probe=None, on_unknown=policy)

    process.dies("before", "completed", "hotel")
    with pytest.raises(died), process.thread().run("r") as run:
        handler(run)
    process.lapse()
    other.thread().cancel("r")
    (report,) = other.store.resume({"r": handler})
    assert report.outcome == outcome
    assert trip.world.times("hotel") == 1  # it is not run again for a run that is to end
    if policy != "stop":
        assert trip.undone == ["flight"]
        return
    assert trip.undone == []
    person = other.thread().run("r")
    person.settle("hotel", happened=True, result={"did": "hotel"})
    person.release()
    (report,) = other.store.resume({"r": handler})
    assert (report.outcome, trip.undone) == ("cancelled", ["hotel", "flight"])


def test_a_once_step_in_doubt_is_not_dropped_unasked(process: Any, other: Any, died: Any, trip: Trip) -> None:
    """Abandoning a run by hand, without its handler, knows no probe: it must not pretend that nothing happened."""
    process.dies("before", "completed", "flight")
    with pytest.raises(died), process.thread().run("r") as run:
        trip.book(run, "flight")
    process.lapse()
    with pytest.raises(errors.StepError, match="does not say whether"):
        other.thread().run("r").abandon()
    assert [info.status for info in other.thread().runs()] == ["stopped"]
    with pytest.raises(errors.Cancelled), other.thread().run("r") as run:
        trip.handler(run)
    assert trip.undone == ["flight"]


def test_a_stopped_run_can_be_cancelled(process: Any, other: Any, died: Any, trip: Trip) -> None:
    def handler(run: Any) -> None:
        trip.book(run, "flight", probe=None, on_unknown="stop")

    process.dies("before", "completed", "flight")
    with pytest.raises(died), process.thread().run("r") as run:
        handler(run)
    process.lapse()
    assert [report.outcome for report in other.store.resume({"r": handler})] == ["stopped"]
    assert other.thread().cancel("r").status == "interrupted"
    assert [report.outcome for report in other.store.resume({"r": handler})] == ["stopped"]  # still nobody can say
    person = other.thread().run("r")
    person.settle("flight", happened=False)
    with pytest.raises(errors.Cancelled), person:
        handler(person)
    assert (trip.undone, [info.status for info in other.thread().runs()]) == ([], ["cancelled"])


def test_cancelling_twice_is_one_cancellation(process: Any, other: Any, kinds: Kinds, trip: Trip) -> None:
    with pytest.raises(errors.Cancelled, match="first reason"), process.thread().run("r") as run:
        trip.book(run, "flight")
        other.thread().cancel("r", reason="first reason")
        other.thread().cancel("r", reason="second reason")
        trip.book(run, "hotel")
    assert kinds(other.thread(), "r").count("cancel") == 1
    with pytest.raises(errors.RunEnded, match="already cancelled"):
        other.thread().cancel("r")


def test_a_run_that_is_done_cannot_be_cancelled(process: Any, other: Any) -> None:
    with process.thread().run("r"):
        pass
    with pytest.raises(errors.RunEnded, match="already done"):
        other.thread().cancel("r")
    assert [info.status for info in other.thread().runs()] == ["done"]


def test_a_handler_may_cancel_its_own_run_by_raising(process: Any, trip: Trip) -> None:
    with pytest.raises(errors.Cancelled), process.thread().run("r") as run:
        trip.book(run, "flight")
        raise errors.Cancelled("no seats left")
    assert trip.undone == ["flight"]
    assert [info.status for info in process.thread().runs()] == ["cancelled"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interruption_lets_the_run_go_to_be_carried_on_at_once(
    process: Any, other: Any, trip: Trip, interrupt: Any
) -> None:
    with pytest.raises(interrupt), process.thread().run("r") as run:
        trip.book(run, "flight")
        raise interrupt
    assert [info.status for info in other.thread().runs()] == ["interrupted"]
    (report,) = other.store.resume({"r": trip.handler})
    assert (report.outcome, trip.undone, len(trip.world.done)) == ("done", [], 3)


@pytest.mark.parametrize(("found", "outcome"), [("yes", "cancelled"), (None, "cancelled"), ("?", "stopped")])
def test_a_once_step_that_hears_of_the_cancellation_is_asked_about(
    process: Any, other: Any, trip: Trip, found: Any, outcome: str
) -> None:
    def work(name: str) -> None:
        other.thread().cancel("r")
        holdfast.current_step().heartbeat()

    def probe(name: str) -> Any:
        if found == "?":
            raise holdfast.Unknown
        return found and {"did": name}

    with pytest.raises(errors.StepError), process.thread().run("r") as run:
        run.step("long", work, "long", effect="once", probe=probe, compensate=trip.undo)
    assert [info.status for info in other.thread().runs()] == [outcome]
    assert trip.undone == (["long"] if found == "yes" else [])


@pytest.mark.every_engine
def test_a_cancellation_that_races_with_the_end_is_refused_or_counts(process: Any, other: Any, trip: Trip) -> None:
    run = process.thread().run("r")
    trip.book(run, "flight")

    def end_first(ops: Any) -> None:
        other.wire.before.clear()
        run.finish()

    other.wire.before.append(end_first)
    with pytest.raises(errors.RunEnded, match="already done"):
        other.thread().cancel("r")
    assert trip.undone == []
