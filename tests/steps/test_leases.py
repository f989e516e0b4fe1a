# ruff: noqa: PT012 - the block is a run, and its end is part of what raises
"""Who may act on a run: one holder at a time, and never one that was taken over, however late it wakes up."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.engine.contract import Append, Event
from holdfast.steps import lease as leases
from holdfast.testing import ManualClock

Kinds = Callable[..., list[str]]


def one() -> int:
    return 1


def facts_of(ops: Any) -> list[Event]:
    """What a commit adds to journals and logs."""
    return [event for op in ops if isinstance(op, Append) for event in op.events]


def elsewhere(work: Callable[[], Any]) -> Any:
    """Do something as code that knows nothing of the step it is called from: as another process would."""
    return contextvars.Context().run(work)


def everything(process: Any, thread: str = "trip-42") -> Any:
    """All that is stored of a thread and its runs, and how many commits there were."""
    engine, tenant = process.store.core.engine, process.store.tenant
    return (
        [entry.content for entry in process.thread(thread).log()],
        [moment.facts for info in process.thread(thread).runs() for moment in
         process.thread(thread).timeline(info.name).moments],
        process.thread(thread).state().value,
        len(engine.feed(tenant, 0, 10_000)),
    )  # fmt: skip


def test_a_run_is_held_by_one_at_a_time(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    for thread, holder in ((other.thread(), "held by first"), (process.thread(), "this process")):
        with pytest.raises(errors.RunHeld, match=holder) as caught:
            thread.run("r")
        assert (caught.value.facts["holder"], caught.value.facts["run"]) == ("first", "r")
    (info,) = other.store.runs()
    assert (info.status, info.holder) == ("running", "first")
    run.step("s", one, effect="pure")
    run.release()
    (info,) = other.store.runs()
    assert (info.status, info.holder) == ("interrupted", "")
    other.thread().run("r").step("t", one, effect="pure")


@pytest.mark.every_engine
def test_an_expired_lease_is_taken_over(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    run.step("s", one, effect="pure")
    process.clock.advance(29)
    with pytest.raises(errors.RunHeld):
        other.thread().run("r")
    process.clock.advance(2)
    again = other.thread().run("r")
    assert again.step("s", lambda: 1 / 0, effect="pure") == 1
    assert other.store.runs()[0].holder == "other"


def test_a_holder_that_is_dead_on_this_machine_is_not_waited_for(place: Any) -> None:
    nobody = 2**22 + 5  # over what Linux gives
    dead = place.process("dead", seat="here", pid=nobody)
    dead.store.wiring.runs.holder = type(dead.store.wiring.runs.holder)("dead", "here", nobody, "long ago")
    dead.thread().run("r").step("s", one, effect="pure")
    far = place.process("far", seat="there")
    with pytest.raises(errors.RunHeld):
        far.thread().run("r")
    assert place.process("near", seat="here").thread().run("r").step("s", lambda: 1 / 0, effect="pure") == 1


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize(
    ("unread", "asked", "held"),
    [
        (PermissionError, None, True),
        (OSError, None, True),
        (FileNotFoundError, PermissionError, True),  # there, but hidden
        (ProcessLookupError, None, True),
        (FileNotFoundError, ProcessLookupError, False),
    ],
)
def test_a_holder_that_cannot_be_seen_is_not_taken_for_dead(
    place: Any, monkeypatch: pytest.MonkeyPatch, unread: type[OSError], asked: type[OSError] | None, held: bool
) -> None:
    process, other = (place.process(name, seat="here") for name in ("a", "b"))
    process.thread().run("r")
    read = Path.read_text

    def hidden(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "stat":
            raise unread
        return read(path, *args, **kwargs)

    def kill(pid: int, signal: int) -> None:
        if asked is not None:
            raise asked

    monkeypatch.setattr(Path, "read_text", hidden)
    monkeypatch.setattr(leases.os, "kill", kill)
    if held:
        with pytest.raises(errors.RunHeld):
            other.thread().run("r")
    else:
        other.thread().run("r")


LATE: dict[str, Callable[[Any], Any]] = {
    "intent": lambda run: run.step("new", one, effect="pure"),
    "finish": lambda run: run.finish("late"),
    "fail": lambda run: run.fail(ValueError("late")),
    "wait": lambda run: run.wait("approval"),
    "park": lambda run: run.wait("approval", park=True),
    "subtask": lambda run: run.subtask("t", lambda sub: 1),
    "settle": lambda run: run.settle("doubtful", happened=True),
    "abandon": lambda run: run.abandon(),
    "heartbeat": lambda run: run.heartbeat(),
    "resolve": lambda run: run.step("doubtful", one, effect="once", probe=lambda: "found"),
    "stop": lambda run: run.step("doubtful", one, effect="once", on_unknown="stop"),
}


@pytest.mark.every_engine
@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("act", LATE.values(), ids=LATE)
def test_a_late_holder_records_nothing(process: Any, other: Any, act: Any, ended: bool) -> None:
    def break_off() -> None:
        raise KeyboardInterrupt

    run = process.thread().run("r")
    with pytest.raises(KeyboardInterrupt):
        run.step("doubtful", break_off, effect="once", on_unknown="stop")
    process.lapse()
    taken = other.thread().run("r")
    taken.settle("doubtful", happened=True, result="other")
    if ended:
        taken.finish("other")
    before = everything(other)
    with pytest.raises(errors.Fenced, match="taken over") as caught:
        act(run)
    assert not caught.value.retryable
    with pytest.raises(errors.Fenced):  # and it stays so
        run.step("more", one, effect="pure")
    run.release()
    assert everything(other) == before


@pytest.mark.parametrize(
    "late",
    [
        lambda step: "the result",
        lambda step: step.heartbeat(),
        lambda step: step.record("progress"),
        lambda step: step.save({"late": True}),
        lambda step: step.patch("late", True),
        lambda step: step.append(holdfast.note("late")),
        lambda step: object(),
    ],
    ids=["result", "heartbeat", "progress", "state", "patch", "append", "bad result"],
)
def test_a_holder_that_is_taken_over_inside_a_function_records_nothing_of_it(
    process: Any, other: Any, late: Any
) -> None:
    seen: list[Any] = []

    def work() -> Any:
        process.lapse()
        elsewhere(lambda: other.thread().run("r").step("s", lambda: "other", effect="idempotent"))
        seen.append(everything(other))
        return late(holdfast.current_step())

    with pytest.raises(errors.Fenced), process.thread().run("r") as run:
        run.step("s", work, effect="idempotent")
    assert everything(other) == seen[0]
    assert other.thread().timeline("r").steps[0].result == "other"


def test_a_holder_that_is_taken_over_and_whose_function_raises_records_nothing(process: Any, other: Any) -> None:
    def work() -> Any:
        process.lapse()
        elsewhere(lambda: other.thread().run("r").step("s", lambda: "other", effect="idempotent"))
        raise ValueError

    with pytest.raises(errors.Fenced), process.thread().run("r") as run:
        run.step("s", work, effect="idempotent", retry=3)
    assert other.thread().timeline("r").steps[0].result == "other"


def test_a_subtask_of_a_holder_that_is_taken_over_records_nothing(process: Any, other: Any) -> None:
    def inner(sub: Any) -> Any:
        sub.step("a", one, effect="pure")
        process.lapse()
        other.thread().run("r").subtask("t", lambda sub: sub.step("a", lambda: 1 / 0, effect="pure"))
        with pytest.raises(errors.Fenced):
            sub.step("b", one, effect="pure")
        return "late"

    with pytest.raises(errors.Fenced):
        process.thread().run("r").subtask("t", inner)
    assert other.thread().timeline("r").steps[0].result == 1


def test_a_late_spender_records_nothing(process: Any, other: Any) -> None:
    def inner(sub: Any) -> None:
        process.lapse()
        other.thread().run("r")
        sub.spend(tokens=5)

    with pytest.raises(errors.Fenced):
        process.thread().run("r").subtask("t", inner)


def waiting(process: Any) -> tuple[threading.Thread, list[errors.Fenced]]:
    """A thread of a process whose run waits for an approval, and what it is told when the run is another's."""
    waits, raised = threading.Event(), []
    process.wire.after.append(lambda ops: waits.set() if "waiting" in str(ops) else None)

    def work() -> None:
        try:
            process.thread().run("r").wait("approval")
        except errors.Fenced as error:
            raised.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    assert waits.wait(10)
    return worker, raised


def test_a_run_taken_over_while_it_waits_lets_its_old_holder_go(process: Any, other: Any) -> None:
    worker, raised = waiting(process)
    process.lapse()
    taken = other.thread().run("r")
    other.thread().signal("approval", "yes")
    worker.join(10)
    assert len(raised) == 1
    assert taken.wait("approval") == "yes"


# Time


def test_a_clock_that_jumps_forward_costs_a_holder_its_lease_but_never_a_step(
    process: Any, other: Any, clock: ManualClock
) -> None:
    run = process.thread().run("r")
    clock.advance(86_400)
    run.step("s", one, effect="pure")  # nobody took it over: the fence is what counts
    assert other.store.runs()[0].status == "interrupted"
    taken = other.thread().run("r")
    with pytest.raises(errors.Fenced):
        run.step("t", one, effect="pure")
    assert taken.step("s", lambda: 1 / 0, effect="pure") == 1


@pytest.mark.every_engine
def test_a_clock_that_jumps_back_harms_nothing(process: Any, other: Any, clock: ManualClock) -> None:
    before = clock.now()
    run = process.thread().run("r")
    clock.set(before - 3600 * 1_000_000)
    run.step("s", one, effect="pure")
    with pytest.raises(errors.RunHeld):
        other.thread().run("r")
    run.heartbeat()  # by the new time
    clock.advance(31)
    taken = other.thread().run("r")
    taken.step("t", one, effect="pure")
    taken.finish()
    assert [step.standing for step in other.thread().timeline("r").steps] == ["completed", "completed"]


@pytest.mark.every_engine
def test_the_times_of_a_journal_never_fall(process: Any, clock: ManualClock) -> None:
    before = clock.now()
    run = process.thread().run("r")
    clock.set(before - 3600 * 1_000_000)
    run.step("s", one, effect="pure")
    run.finish()
    times = [moment.time for moment in process.thread().timeline("r").moments]
    assert times == sorted(times)


@pytest.mark.every_engine
def test_leases_are_by_the_clock_of_the_engine_where_it_has_one(place: Any, clock: ManualClock) -> None:
    """Two machines whose own clocks are a day apart agree, because neither is asked."""
    early, late = place.process("early", clock=ManualClock(0)), place.process("late", clock=ManualClock(2**50))
    for process in (early, late):
        process.wire.now = clock.now
        process.store.wiring.runs.now = clock.now
    early.thread().run("r")
    with pytest.raises(errors.RunHeld):
        late.thread().run("r")
    late.store.thread("t").run("r")
    with pytest.raises(errors.RunHeld):
        early.store.thread("t").run("r")
    clock.advance(31)
    late.thread().run("r")


@pytest.mark.every_engine
@pytest.mark.slow
def test_the_keeper_renews_as_long_as_the_process_works(place: Any) -> None:
    from holdfast.clock import SystemClock  # noqa: PLC0415

    clock = SystemClock()
    process, other = (place.process(name, clock=clock, lease_s=0.6) for name in ("a", "b"))
    run = process.thread().run("r")
    ends = time.monotonic() + 2.0
    while time.monotonic() < ends:
        with pytest.raises(errors.RunHeld):
            other.thread().run("r")
        time.sleep(0.05)
    run.step("s", one, effect="pure")
    process.die()  # now nobody renews it
    time.sleep(0.8)
    assert other.thread().run("r").step("s", lambda: 1 / 0, effect="pure") == 1


@pytest.mark.slow
def test_a_run_that_nobody_refers_to_is_not_kept(place: Any) -> None:
    from holdfast.clock import SystemClock  # noqa: PLC0415

    clock = SystemClock()
    process, other = (place.process(name, clock=clock, lease_s=0.3) for name in ("a", "b"))
    renewed = threading.Event()
    process.wire.after.append(lambda ops: renewed.set() if "kind='lease'" in str(ops) and not facts_of(ops) else None)
    run = process.thread().run("r")
    assert renewed.wait(10)  # the keeper had it in its hands, and must not hold on to it
    del run
    gc.collect()
    time.sleep(0.8)
    assert process.store.wiring.runs.renewer.held() == []
    other.thread().run("r")


ENDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "ended": ("ended", lambda run: run.finish()),
    "failed": ("ended", lambda run: run.fail(ValueError())),
    "parked": ("parked", lambda run: run.wait("approval", park=True)),
    "released": ("released", lambda run: run.release()),
}


@pytest.mark.parametrize(("kind", "end"), ENDS.values(), ids=ENDS)
def test_a_renewal_that_meets_the_end_of_its_own_run_is_no_takeover(
    process: Any, kind: str, end: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = process.thread().run("r")
    lease, met = run.work.lease, []

    def renews(ops: Any) -> None:
        if kind in [event.kind for event in facts_of(ops)]:
            met.append(kind)
            leases._renew(lease)

    process.wire.after.append(renews)
    with caplog.at_level(logging.WARNING), contextlib.suppress(holdfast.Suspended):
        end(run)
    assert (met, lease.lost, caplog.text) == ([kind], "", "")
    with pytest.raises(errors.Fenced, match="released here"):
        lease.renew()


@pytest.mark.parametrize("end", [None, lambda run: run.finish(), lambda run: run.release()])
def test_a_renewal_after_a_takeover_says_so_whatever_the_other_did_since(
    process: Any, other: Any, end: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = process.thread().run("r")
    process.lapse()
    taken = other.thread().run("r")
    if end is not None:
        end(taken)
    with caplog.at_level(logging.WARNING):
        leases._renew(run.work.lease)
    assert "taken over" in caplog.text
    assert run.work.lease.lost


@pytest.mark.usefixtures("any_engine")
def test_functions_that_refer_to_their_run_do_not_keep_it(thread: holdfast.Thread) -> None:
    def abandoned() -> Any:
        run = thread.run("r")

        @holdfast.step(effect="pure")
        def declared() -> str:
            return run.name

        run.step("a", lambda: run.name, effect="pure", compensate=lambda result: run.name)
        run.step("b", declared)
        return weakref.ref(run.work.lease)

    lease = abandoned()
    gc.collect()
    assert lease() is None


@pytest.mark.slow
def test_the_keeper_finds_out_that_a_run_was_taken_over(place: Any, caplog: pytest.LogCaptureFixture) -> None:
    from holdfast.clock import SystemClock  # noqa: PLC0415

    clock = SystemClock()
    process = place.process("a", clock=clock, lease_s=0.6)
    other = place.process("b", clock=clock)
    run = process.thread().run("r")
    other.store.wiring.runs.now = lambda: clock.now() + 10_000_000  # for it, the lease is over already
    with caplog.at_level(logging.WARNING):
        other.thread().run("r")
        ends = time.monotonic() + 5
        while not caplog.records and time.monotonic() < ends:
            time.sleep(0.02)
    assert "taken over" in caplog.text
    with pytest.raises(errors.Fenced):
        run.step("s", one, effect="pure")


def test_closing_a_store_lets_its_runs_go(process: Any, other: Any) -> None:
    left, held = process.thread().run("left"), process.thread().run("held")
    with process.thread().run("done"):
        pass
    process.store.wiring.runs.close()
    assert {info.name: info.status for info in other.store.runs()} == {
        "left": "interrupted", "done": "done", "held": "interrupted"
    }  # fmt: skip
    other.thread().run("held").step("s", one, effect="pure")
    with pytest.raises(errors.Fenced):
        held.step("s", one, effect="pure")
    left.release()  # harmless


# Erasing


@pytest.mark.every_engine
def test_erasing_a_thread_while_a_run_is_open_stops_it(process: Any, other: Any) -> None:
    with pytest.raises(errors.Fenced, match="erased"), process.thread().run("r") as run:
        run.step("a", one, effect="pure")
        assert other.store.erase(thread="trip-42") >= 3
        run.step("b", one, effect="pure")
    assert other.store.runs() == []
    assert not other.thread().exists()
    with pytest.raises(errors.Erased):
        process.thread().run("r")


def test_erasing_a_thread_inside_a_function_stops_its_completion(process: Any, other: Any) -> None:
    def work() -> str:
        other.store.erase(thread="trip-42")
        return "late"

    with pytest.raises(errors.Fenced, match="erased"):
        process.thread().run("r").step("s", work, effect="pure")
    assert other.store.runs() == []


def test_a_thread_erased_and_begun_anew_is_another_to_its_old_holder(process: Any, other: Any) -> None:
    run = process.thread().run("r")
    run.step("s", one, effect="pure")
    key = run.steps[0].key
    other.store.erase(thread="trip-42", forever=False)
    anew = other.thread().run("r")
    assert anew.step("s", lambda: 2, effect="pure") == 2
    assert anew.steps[0].key != key
    with pytest.raises(errors.Fenced):
        run.step("t", one, effect="pure")
    assert [step.name for step in other.thread().timeline("r").steps] == ["s"]


def test_a_wait_in_an_erased_thread_ends(process: Any, other: Any) -> None:
    worker, raised = waiting(process)
    other.store.erase(thread="trip-42")
    worker.join(10)
    assert len(raised) == 1


# Races


@pytest.mark.every_engine
@pytest.mark.parametrize("begun", [False, True])
def test_of_two_that_open_one_run_at_once_exactly_one_wins(place: Any, begun: bool) -> None:
    processes = [place.process(f"p{number}") for number in range(2)]
    for turn in range(10):
        if begun:
            processes[0].thread().submit(f"r{turn}")
        barrier, won, lost = threading.Barrier(2, timeout=10), [], []

        def go(process: Any, turn: int = turn, barrier: Any = barrier, won: Any = won, lost: Any = lost) -> None:
            barrier.wait()
            try:
                won.append(process.thread().run(f"r{turn}"))
            except errors.RunHeld as error:
                lost.append(error)

        workers = [threading.Thread(target=go, args=(process,)) for process in processes]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(20)
        assert (len(won), len(lost)) == (1, 1)
        assert won[0].step("s", one, effect="pure") == 1
        won[0].finish()
