"""Hard cases of runs: rare timings and rare uses, each of which once lost, repeated or forgot something."""

from __future__ import annotations

import contextvars
import gc
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.engine.contract import Append, Op
from holdfast.thread import replay

Kinds = Callable[..., list[str]]
Told = Callable[..., list[dict[str, Any]]]
ENOUGH_S = 10.0  # for a thread to come to a point that it is sure to reach


def at(process: Any, when: str, kind: str, then: Callable[[Sequence[Op]], Any]) -> None:
    """Do something right before or right after the first commit that records this in the journal of a run."""
    hooks = getattr(process.wire, when)

    def hook(ops: Sequence[Op]) -> None:
        if kind in [event.kind for op in ops if isinstance(op, Append) and op.kind == "run" for event in op.events]:
            hooks.remove(hook)
            then(ops)

    hooks.append(hook)


def breaks(error: BaseException) -> Callable[[Sequence[Op]], None]:
    def then(ops: Sequence[Op]) -> None:
        raise error

    return then


def away_once(process: Any, meanwhile: Callable[[], Any] = lambda: None) -> None:
    """Let the next look at a record fail, as when the store is restarting."""

    def get(*given: Any) -> None:
        del process.wire.get
        meanwhile()
        raise errors.Unavailable("restarting")

    process.wire.get = get


class Slow:
    """A function that goes on until it is told to end, and then has its effect."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self.begun, self.may_end, self.ended = threading.Event(), threading.Event(), threading.Event()

    def do(self) -> Any:
        if self.begun.is_set():  # a second time, which no test wants to see: no need to wait
            return self._world.do()
        self.begun.set()
        try:
            assert self.may_end.wait(ENOUGH_S)
            return self._world.do()
        finally:
            self.ended.set()

    def find(self) -> Any:
        assert self.begun.wait(ENOUGH_S)  # on a busy machine a time limit may be over before anything has begun
        return self._world.find()

    def end(self) -> None:
        self.may_end.set()
        assert self.ended.wait(ENOUGH_S)


@pytest.fixture
def slow(world: Any) -> Iterator[Slow]:
    slow = Slow(world)
    yield slow
    slow.may_end.set()
    assert not slow.begun.is_set() or slow.ended.wait(ENOUGH_S)


# Opening a run again


class Shop:
    """A handler that pays by another card when the first is declined, and then does something that does not work."""

    def __init__(self, last: Exception) -> None:
        self.repaired = False
        self.done: list[str] = []
        self._last = last

    def card(self) -> str:
        if not self.repaired:
            raise holdfast.NotDone("declined")
        return self.paid("first card")

    def paid(self, how: str) -> str:
        self.done.append(how)
        return how

    def last(self) -> None:
        if not self.repaired:
            raise self._last
        self.done.append("last")

    def handle(self, run: holdfast.Run) -> None:
        try:
            run.step("card", self.card, effect="once", on_unknown="stop")
        except errors.StepFailed:
            run.step("other card", self.paid, "other card", effect="once", on_unknown="stop")
        run.step("last", self.last, effect="once", on_unknown="stop")

    def handle_in_subtask(self, run: holdfast.Run) -> None:
        run.subtask("pay", self.handle)


@pytest.mark.parametrize("how", ["handle", "handle_in_subtask"])
def test_a_failed_run_opened_again_keeps_the_failures_that_its_code_had_caught(
    process: Any, other: Any, how: str
) -> None:
    shop = Shop(holdfast.NotDone("no paper"))
    handler = getattr(shop, how)
    with pytest.raises(errors.StepFailed):
        process.thread().run("r").carry_out(handler)
    shop.repaired = True
    other.thread().run("r").carry_out(handler)
    assert shop.done == ["other card", "last"]


@pytest.mark.parametrize("how", ["handle", "handle_in_subtask"])
def test_a_stopped_run_opened_again_keeps_the_failures_that_its_code_had_caught(
    process: Any, other: Any, how: str
) -> None:
    shop = Shop(RuntimeError("lost answer"))
    handler = getattr(shop, how)
    with pytest.raises(errors.StepUnknown):
        process.thread().run("r").carry_out(handler)
    shop.repaired = True
    with other.thread().run("r") as run:
        run.settle("last", happened=True)
    assert [found.outcome for found in other.store.resume({"r": handler})] == ["done"]
    assert shop.done == ["other card"]


def test_a_failure_passed_on_under_another_name_is_tried_again(process: Any, other: Any, world: Any) -> None:
    def refused() -> None:
        raise holdfast.NotDone("closed")

    def handle(run: holdfast.Run, book: Callable[[], Any]) -> Any:
        try:
            return run.step("book", book, effect="once", on_unknown="stop")
        except errors.StepFailed as error:
            raise LookupError("no trip") from error

    with pytest.raises(LookupError):
        process.thread().run("r").carry_out(lambda run: handle(run, refused))
    other.thread().run("r").carry_out(lambda run: handle(run, world.do))
    assert world.times() == 1


def test_a_plain_error_while_a_failure_is_handled_does_not_make_that_failure_be_tried_again(
    process: Any, other: Any
) -> None:
    shop = Shop(ValueError())

    def handler(run: holdfast.Run) -> None:
        try:
            run.step("card", shop.card, effect="once", on_unknown="stop")
        except errors.StepFailed:
            run.step("other card", shop.paid, "other card", effect="once", on_unknown="stop")
            shop.last()

    with pytest.raises(ValueError):
        process.thread().run("r").carry_out(handler)
    shop.repaired = True
    other.thread().run("r").carry_out(handler)
    assert shop.done == ["other card", "last"]


# Commits of unknown outcome


@pytest.mark.every_engine
@pytest.mark.parametrize("landed", [True, False])
def test_a_completion_is_recorded_once_though_the_store_is_away_when_asked_what_became_of_it(
    process: Any, thread: holdfast.Thread, world: Any, kinds: Kinds, landed: bool
) -> None:
    def broke(ops: Sequence[Op]) -> None:
        away_once(process)
        raise errors.OutcomeUnknown("the connection broke")

    at(process, "after" if landed else "before", "completed", broke)
    with thread.run("r") as run:
        assert run.step("book", world.do, effect="once", on_unknown="stop")["number"] == 1
    assert (run.status, world.times()) == ("done", 1)
    assert kinds(thread, "r", "book") == ["intent", "completed"]


@pytest.mark.every_engine
@pytest.mark.parametrize("when", ["while the store is unavailable", "after it was looked for in vain"])
def test_a_completion_that_lands_late_is_recorded_once(
    process: Any, place: Any, thread: holdfast.Thread, world: Any, kinds: Kinds, told: Told, when: str
) -> None:
    def broke(ops: Sequence[Op]) -> None:
        def lands(_: Sequence[Op] = ()) -> None:
            process.wire.commit(place.tenant, ops, place.clock.now())

        if when == "while the store is unavailable":
            away_once(process, lands)
        else:
            at(process, "before", "completed", lands)
        raise errors.OutcomeUnknown("the connection broke")

    at(process, "before", "completed", broke)
    with thread.run("r") as run:
        assert run.step("book", world.do, effect="once", on_unknown="stop")["number"] == 1
    assert kinds(thread, "r", "book") == ["intent", "completed"]
    assert [entry["step"] for entry in told(thread, "step")] == ["book"]


def test_a_completion_of_unknown_outcome_is_recorded_once_though_another_step_learnt_of_it_first(
    process: Any, thread: holdfast.Thread, kinds: Kinds, told: Told
) -> None:
    thread.save({"n": 0})
    run = thread.run("r")

    def meanwhile(ops: Sequence[Op]) -> None:
        run.step("beside", lambda: 1, effect="pure", log=False)
        raise errors.OutcomeUnknown("the connection broke")

    def work() -> None:
        holdfast.current_step().update(lambda state: {"n": state["n"] + 1})

    at(process, "after", "completed", meanwhile)
    run.step("book", work, effect="once", on_unknown="stop")
    run.finish()
    assert kinds(thread, "r", "book") == ["intent", "completed"]
    assert process.thread().state().value == {"n": 1}
    assert [entry["step"] for entry in told(thread, "step")] == ["book"]


@pytest.mark.every_engine
@pytest.mark.parametrize(
    "options",
    [
        {"effect": "once", "on_unknown": "skip"},
        {"effect": "once", "on_unknown": "rerun"},
        {"effect": "once", "on_unknown": "stop"},
        {"effect": "idempotent"},
    ],
)
def test_a_completion_that_landed_unseen_is_found_before_anything_runs_again(
    process: Any, thread: holdfast.Thread, world: Any, options: Any
) -> None:
    at(process, "after", "completed", breaks(KeyboardInterrupt()))
    run = thread.run("r")
    with pytest.raises(KeyboardInterrupt):
        run.step("book", world.do, **options)
    assert run.step("book", world.do, **options) == {"did": "book", "number": 1}
    assert world.times() == 1


def test_a_sign_of_life_while_the_store_is_away_does_not_fail_the_step(process: Any, thread: holdfast.Thread) -> None:
    def away(ops: Sequence[Op]) -> None:
        process.wire.before.remove(away)
        raise errors.Unavailable("restarting")

    def work() -> str:
        process.wire.before.append(away)
        holdfast.current_step().heartbeat()
        return "done"

    with thread.run("r") as run:
        assert run.step("book", work, effect="once", on_unknown="stop") == "done"
    assert (run.status, process.wire.before) == ("done", [])


# Once steps in doubt


def test_a_run_is_not_done_while_a_once_step_that_it_asked_for_is_in_doubt(thread: holdfast.Thread, world: Any) -> None:
    stops, cannot_be_kept = pytest.raises(errors.StepUnknown, match="again"), pytest.raises(errors.ResultInvalid)
    with stops, thread.run("r") as run, cannot_be_kept:
        run.step("book", lambda: (world.do(), object()), effect="once", on_unknown="stop")
    assert run.status == "stopped"
    run = thread.run("r")
    run.settle("book", happened=True, result="seat 12A")
    run.finish()
    assert [(step.how, step.result) for step in thread.timeline("r").steps] == [("settled", "seat 12A")]


def crash_in_subtask(process: Any, died: Any, world: Any, *, happened: bool = True) -> Callable[[holdfast.Run], Any]:
    """Die in a once step of a subtask; give the handler that would ask what became of it."""
    dying = [True]

    def book() -> Any:
        if not dying or happened:
            world.do()
        if dying.pop():
            process.die()
            raise died
        return "booked"

    def handler(run: holdfast.Run) -> Any:
        return run.subtask("find", lambda task: task.step("book", book, effect="once", probe=world.find))

    with pytest.raises(died):
        process.thread().run("r").carry_out(handler)
    process.lapse()
    return handler


@pytest.mark.parametrize("happened", [True, False])
def test_a_cancelled_run_asks_what_became_of_a_once_step_of_a_subtask(
    process: Any, other: Any, died: Any, world: Any, kinds: Kinds, happened: bool
) -> None:
    handler = crash_in_subtask(process, died, world, happened=happened)
    other.thread().cancel("r")
    assert [found.outcome for found in other.store.resume({"r": handler})] == ["cancelled"]
    assert (len(world.asked), world.times()) == (1, int(happened))
    ended = "completed" if happened else "unstarted"
    assert kinds(other.thread("trip-42/r/find"), "find", "book") == ["intent", "probed", "resolved", ended]


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("cancelled", [True, False])
def test_a_once_step_of_a_subtask_that_nobody_asks_for_stops_the_run(
    process: Any, other: Any, died: Any, world: Any, cancelled: bool, goes_on: bool
) -> None:
    def forgets(run: holdfast.Run) -> None:
        if goes_on:
            run.step("next", lambda: None, effect="pure")

    crash_in_subtask(process, died, world)
    thread = other.thread()
    if cancelled:
        thread.cancel("r")
    for _ in range(2):  # opening it again is not an answer
        found = other.store.resume({"r": forgets}, thread="trip-42", run="r")
        assert [one.outcome for one in found] == ["stopped"]
        assert "'book'" in found[0].error
    with thread.run("r") as run:
        run.settle("book", happened=True, result="seat 12A")
    (found,) = other.store.resume({"r": forgets})
    assert found.outcome == ("cancelled" if cancelled else "done")


def test_a_person_who_undid_a_step_by_hand_can_say_so(process: Any, other: Any, died: Any) -> None:
    def handler(run: holdfast.Run) -> None:
        run.step("a", lambda: 1, effect="idempotent", compensate=lambda result: None)
        process.die()
        raise died

    with pytest.raises(died):
        process.thread().run("r").carry_out(handler)
    process.lapse()
    thread, forgets = other.thread(), {"r": lambda run: None}
    thread.cancel("r")
    assert [found.outcome for found in other.store.resume(forgets)] == ["stopped"]
    with thread.run("r") as run:
        for name in ("b:undo", "a:undo:undo"):  # there is nothing that these would undo
            with pytest.raises(errors.NotFound):
                run.settle(name, happened=True)
        run.settle("a:undo", happened=True)
    assert [found.outcome for found in other.store.resume(forgets)] == ["cancelled"]


def test_a_step_left_in_doubt_and_to_be_undone_is_undone_with_nothing_and_never_run_again(
    process: Any, other: Any, place: Any, died: Any, world: Any
) -> None:
    """Also when whoever undoes it dies as well, after the step counts as completed."""
    undone: list[Any] = []

    def booked(by: Any) -> Callable[[], None]:
        def book() -> None:
            world.do()
            by.die()
            raise died

        return book

    def undo(by: Any) -> Callable[[Any], None]:
        def undo(result: Any) -> None:
            undone.append(result)
            if by is other:
                by.die()
                raise died

        return undo

    def handler(by: Any) -> Callable[[holdfast.Run], Any]:
        return lambda run: run.step("room", booked(by), effect="idempotent", compensate=undo(by))

    with pytest.raises(died):
        process.thread().run("r").carry_out(handler(process))
    process.lapse()
    third = place.process("third")
    third.thread().cancel("r")
    with pytest.raises(died):
        other.store.resume({"r": handler(other)})
    process.lapse()
    assert [found.outcome for found in third.store.resume({"r": handler(third)})] == ["cancelled"]
    assert (world.times(), undone) == (1, [None, None])
    step = third.thread().timeline("r").steps[0]
    assert (step.name, step.standing, step.how) == ("room", "completed", "dropped")


# What a step saves


def bump() -> None:
    holdfast.current_step().update(lambda state: {**state, "n": state["n"] + 1})


def touch() -> None:
    holdfast.current_step().patch("n", 7)


def fail_to_change() -> None:
    holdfast.current_step().update(lambda state: 1 / 0)


@pytest.mark.parametrize("changes", [(bump,), (bump, bump), (touch,), (touch, touch), (touch, bump), (fail_to_change,)])
def test_a_change_by_a_step_does_not_make_its_callers_old_copy_overwrite_anothers_change(
    process: Any, other: Any, thread: holdfast.Thread, changes: tuple[Callable[[], None], ...]
) -> None:
    thread.save({"n": 1, "theirs": "old"})
    mine = thread.state().value
    other.thread().patch("theirs", "new")
    run = thread.run("r")
    for number, change in enumerate(changes):
        try:
            run.step(f"change {number}", change, effect="pure")
        except errors.NotSaved:
            assert change is fail_to_change
        with pytest.raises(errors.Conflict):
            thread.save(mine)
    assert other.thread().state().value["theirs"] == "new"


def test_a_patch_by_a_step_follows_a_rewind_by_another_to_the_same_revision_number(
    process: Any, other: Any, thread: holdfast.Thread
) -> None:
    thread.append(holdfast.note("begun"))
    thread.save({"a": 1})
    thread.checkpoint("here")
    thread.save({"a": 2})
    theirs = other.thread()
    theirs.rewind("here")
    theirs.state()
    theirs.save({"a": 20})
    tried: list[str] = []
    process.wire.before.append(lambda ops: tried.extend(op.kind for op in ops if isinstance(op, Append)))
    with thread.run("r") as run:
        run.step("change", lambda: holdfast.current_step().patch("b", 3), effect="pure")
    assert other.thread().state().value == {"a": 20, "b": 3}
    assert tried.count("state") <= 2  # it looks once, and then knows


def test_what_a_step_could_not_save_is_told_on_every_resume_until_the_failed_run_is_opened_again(
    process: Any, other: Any, thread: holdfast.Thread, world: Any
) -> None:
    thread.save({"a": 1})

    def work() -> str:
        world.do()
        other.thread().patch("a", 5)
        holdfast.current_step().save({"a": 2})
        return "booked"

    def handler(run: holdfast.Run) -> Any:
        return run.step("book", work, effect="once", on_unknown="stop")

    run = thread.run("r")
    with pytest.raises(errors.NotSaved) as first:
        handler(run)
    run.release()
    with pytest.raises(errors.NotSaved) as again:
        other.thread().run("r").carry_out(handler)
    assert str(again.value) == str(first.value)
    assert first.value.facts == again.value.facts
    assert again.value.facts["result"] == "booked"
    assert replay(thread, "r", handler).same
    assert other.thread().run("r").carry_out(handler) == "booked"
    assert (world.times(), thread.state().value) == (1, {"a": 5})


def test_what_a_step_could_not_save_is_still_told_when_a_stopped_run_is_opened_again(
    process: Any, other: Any, thread: holdfast.Thread
) -> None:
    def lost() -> None:
        raise ConnectionError("lost answer")

    def handler(run: holdfast.Run) -> None:
        with pytest.raises(errors.NotSaved):  # its code knows what to do about it, and takes the same way again
            run.step("change", fail_to_change, effect="pure")
        run.step("book", lost, effect="once", on_unknown="stop")

    with pytest.raises(errors.StepUnknown):
        thread.run("r").carry_out(handler)
    with other.thread().run("r") as run:
        run.settle("book", happened=True)
    assert [found.outcome for found in other.store.resume({"r": handler})] == ["done"]


# A fork while something is recorded


@pytest.mark.every_engine
def test_a_fork_during_a_completion_is_of_one_moment(process: Any, other: Any, thread: holdfast.Thread) -> None:
    thread.save({"seat": None})
    run = thread.run("r")
    real = other.wire.snapshot

    class View:
        """Reads of one moment, between which the origin goes on."""

        def __init__(self, view: Any) -> None:
            self._view = view

        def __getattr__(self, name: str) -> Any:
            return getattr(self._view, name)

        def get(self, tenant: str, kind: str, id: str) -> Any:
            found = self._view.get(tenant, kind, id)
            if kind == "state":
                run.step("book", lambda: holdfast.current_step().patch("seat", "12A"), effect="pure")
            return found

    @contextmanager
    def snapshot() -> Iterator[Any]:
        with real() as view:
            yield View(view)

    other.wire.snapshot = snapshot
    fork = other.thread().fork("fork")
    del other.wire.snapshot
    assert thread.state().value == {"seat": "12A"}
    assert [step.standing for step in thread.timeline("r").steps] == ["completed"]
    assert (fork.state().value, fork.timeline("r").steps) == ({"seat": None}, ())
    assert not [entry for entry in fork.log() if entry.content.get("step") == "book"]


# Functions that go on though nobody waits for them


def test_a_probe_that_finds_nothing_is_not_believed_while_the_function_still_runs(
    process: Any, other: Any, thread: holdfast.Thread, world: Any, slow: Slow
) -> None:
    options = {"effect": "once", "probe": slow.find, "retry": holdfast.Retry(attempts=2, delay_s=0)}
    with pytest.raises(errors.StepUnknown, match="still running"), thread.run("r") as run:
        run.step("book", slow.do, timeout_s=0.05, **options)
    slow.end()
    with other.thread().run("r") as again:
        assert again.step("book", world.do, **options) == {"did": "book", "number": 1}
    assert world.times() == 1


def test_a_probe_that_finds_nothing_is_not_believed_in_a_run_opened_again_while_the_function_still_runs(
    thread: holdfast.Thread, slow: Slow
) -> None:
    options: dict[str, Any] = {"effect": "once", "probe": slow.find, "timeout_s": 0.05}
    for _ in range(2):
        with pytest.raises(errors.StepUnknown, match="still running"), thread.run("r") as run:
            run.step("book", slow.do, **options)


def test_closing_a_store_does_not_free_a_run_whose_function_still_runs(
    process: Any, other: Any, world: Any, slow: Slow
) -> None:
    def handler(run: holdfast.Run) -> Any:
        return run.step("book", slow.do, effect="once", probe=world.find)

    run = process.thread().run("r")
    idle = process.thread().run("idle")
    worker = threading.Thread(target=run.carry_out, args=(handler,))
    worker.start()
    assert slow.begun.wait(ENOUGH_S)
    process.store.wiring.runs.close()
    found = other.store.resume({"r": handler, "idle": lambda run: None})
    slow.end()
    worker.join()
    assert [one.run for one in found] == [idle.name]
    assert ([info.status for info in other.thread().runs()], world.times()) == (["done", "done"], 1)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let a signal interrupt this thread as Ctrl-C does, also in a background job, where that is ignored."""
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    yield
    signal.signal(signal.SIGUSR1, before)


def interrupt() -> None:
    """Press Ctrl-C, from whatever thread."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)


@pytest.mark.usefixtures("interruptible")
def test_a_probe_that_finds_nothing_is_not_believed_when_the_step_is_asked_for_again_after_an_interruption(
    thread: holdfast.Thread, world: Any, slow: Slow
) -> None:
    def book() -> Any:
        if not slow.begun.is_set():
            interrupt()
        return slow.do()

    options: dict[str, Any] = {"effect": "once", "probe": world.find, "timeout_s": ENOUGH_S}
    run = thread.run("r")
    with pytest.raises(KeyboardInterrupt):
        run.step("book", book, **options)
    assert slow.begun.wait(ENOUGH_S)
    with pytest.raises(errors.StepUnknown, match="still running"):
        run.step("book", book, **options)
    slow.end()
    assert thread.run("r").step("book", book, **options) == {"did": "book", "number": 1}
    assert world.times() == 1


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_does_not_free_a_run_whose_function_still_runs(
    process: Any, other: Any, world: Any, slow: Slow
) -> None:
    def book() -> Any:
        if not slow.begun.is_set():
            interrupt()
        return slow.do()

    def handler(run: holdfast.Run) -> Any:
        return run.step("book", book, effect="once", probe=world.find, timeout_s=ENOUGH_S)

    with pytest.raises(KeyboardInterrupt):
        process.thread().run("r").carry_out(handler)
    assert slow.begun.wait(ENOUGH_S)
    assert process.store.resume({"r": handler}) == other.store.resume({"r": handler}) == []
    slow.end()
    process.lapse()
    assert [found.result for found in other.store.resume({"r": handler})] == [{"did": "book", "number": 1}]
    assert world.times() == 1


# Two at once


def test_progress_that_lands_after_its_step_was_settled_leaves_the_run_readable(
    process: Any, thread: holdfast.Thread, kinds: Kinds
) -> None:
    run = thread.run("r")

    def elsewhere(ops: Sequence[Op]) -> None:  # as another thread of the holder would, which is inside no step
        contextvars.Context().run(run.settle, "book", happened=False)

    at(process, "before", "progress", elsewhere)
    at(process, "after", "progress", breaks(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run.step("book", lambda: holdfast.current_step().record({"page": 1}), effect="once", on_unknown="stop")
    assert kinds(thread, "r", "book") == ["intent", "resolved", "unstarted", "progress"]
    assert run.step("next", lambda: 1, effect="pure") == 1
    run.finish()
    assert [step.name for step in thread.timeline("r").steps] == ["next"]


def test_a_second_wait_of_one_name_is_refused_while_the_first_waits(
    process: Any, thread: holdfast.Thread, kinds: Kinds
) -> None:
    run = thread.run("r")
    second: list[Any] = []

    def beside(ops: Sequence[Op]) -> None:
        thread.signal("go", 1, run="r")  # so that nobody waits for ever
        try:
            second.append(run.wait("go"))
        except errors.Invalid as error:
            second.append(str(error))

    at(process, "after", "waiting", beside)
    assert run.wait("go") == 1
    assert len(second) == 1
    assert "already under way" in str(second[0])
    assert kinds(thread, "r") == ["opened", "waiting", "signal", "completed"]
    assert run.wait("go") == 1  # and afterwards it is only read


@pytest.mark.every_engine
@pytest.mark.parametrize("what", ["signal", "cancel"])
def test_what_was_meant_for_an_erased_run_does_not_reach_one_begun_anew_that_looks_the_same(
    process: Any, other: Any, thread: holdfast.Thread, kinds: Kinds, what: str
) -> None:
    thread.run("r").release()
    run = thread.run("r")
    thread.signal("early", 1, run="r")  # now it is as many claims and events long as the next one

    def reborn(ops: Sequence[Op]) -> None:
        other.store.erase(thread="trip-42", forever=False)
        other.thread().run("r").release()
        other.thread().cancel("r")

    at(process, "before", what, reborn)
    with pytest.raises(errors.RunEnded, match="cancelled"):
        thread.signal("go", 2, run="r") if what == "signal" else thread.cancel("r")
    assert kinds(other.thread(), "r") == ["opened", "released", "cancel", "ended"]
    with pytest.raises(errors.Fenced):
        run.finish()


# Numbers


@pytest.mark.parametrize("factor", [2.0, 1e9])
def test_the_pause_after_many_attempts_is_the_longest_one(factor: float) -> None:
    retry = holdfast.Retry(attempts=10**6, factor=factor)
    assert [retry.after(attempt) for attempt in (1, 2, 10**6)] == [1.0, min(factor, 60.0), 60.0]


def test_without_a_pause_there_is_none_after_many_attempts_either() -> None:
    assert holdfast.Retry(attempts=10**6, delay_s=0).after(10**6) == 0


# A run that this process holds, and nobody in it


@pytest.mark.parametrize("again", [False, True], ids=["begun", "taken up"])
def test_a_run_whose_opening_was_interrupted_can_be_opened_again_at_once(
    process: Any, thread: holdfast.Thread, again: bool
) -> None:
    if again:
        thread.run("r").release()
    at(process, "after", "opened", breaks(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        thread.run("r")
    with thread.run("r") as run:
        assert run.step("s", lambda: 1, effect="pure") == 1


def test_a_run_whose_handle_is_gone_can_be_opened_again_at_once(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    with pytest.raises(errors.RunHeld, match="this process"):
        thread.run("r")
    del run
    gc.collect()
    thread.run("r").finish()
