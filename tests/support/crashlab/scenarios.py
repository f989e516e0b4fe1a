"""Pieces of work that the laboratory crashes: short programs, each with what it promises whatever happens to it.

A program is what a process does from its start to its end, the same in every life: begin the work or take it up, and
bring it to its end. Results differ from life to life on purpose, so that one that was told once and is another later
is noticed. Deliberately absent: crashes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from crashlab.promises import Ack, Bounds, Promises
from crashlab.world import World
from holdfast.errors import Cancelled, NotFound, RunEnded, StepUnknown
from holdfast.steps.declare import Retry, step
from holdfast.steps.run import Run, Subtask
from holdfast.steps.step_context import current_step
from holdfast.store import Store

TRIP = "trip"
ONE = Bounds(1, 1)
AGAIN = Bounds(1, 1, per_crash=1)
_SOON = Retry(attempts=3, delay_s=0.01)


class Life:
    """One process: its store, the world as it sees it, and what it was told. Told things outlive it."""

    def __init__(self, store: Store, world: World, acks: list[Ack], number: int) -> None:
        self.store, self.world, self.acks, self.number = store, world, acks, number

    def step(self, run: Run, name: str, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Carry a step out, and note its result as told."""
        value = run.step(name, fn, *args, **options)
        self.acks.append(Ack("step", run.thread.id, run.name, name, value))
        return value

    def does(self, what: str, *, writes: bool = False) -> Callable[..., Any]:
        """A step's function that does something in the world; with ``writes`` also in the log and the state."""

        def do(*args: Any) -> Any:
            now = current_step()
            made = self.world.book(now.key, what)
            if writes:
                made["writes"] = True
                now.append({"role": "tool", "content": what}, key=made["ref"])
                now.patch(f"{now.run}_{now.name}", made["ref"])
            return made

        return do

    def asks(self) -> Callable[..., Any]:
        """A truthful probe."""
        return lambda *args: self.world.find(current_step().key)

    def hears_nothing(self) -> Callable[..., Any]:
        """A probe that cannot say."""
        return lambda *args: self.world.silent(current_step().key)

    def once(self, run: Run, what: str, *args: Any, **options: Any) -> Any:
        """A step that may happen once, with a truthful probe."""
        options = {"probe": self.asks(), **options}
        return self.step(run, what, self.does(what, writes=True), *args, effect="once", **options)


@dataclass(frozen=True)
class Scenario:
    """A program and its promises."""

    name: str
    program: Callable[[Life], None]
    promises: Promises


_done = frozenset({"done"})
_cancelled = frozenset({"cancelled"})


def _promise(*once: str, ends: frozenset[str] = _done, **totals: Bounds) -> Promises:
    return Promises(frozenset(once), {**dict.fromkeys(once, ONE), **totals}, {f"{TRIP}/book": ends})


# The booking, opened by name or by a worker


def _steps(life: Life, run: Run) -> Any:
    found = life.step(run, "search", lambda place: [place, life.number], "Lisbon", effect="pure")
    paid = life.once(run, "charge", found)
    made = life.once(run, "book", found, paid)
    life.step(run, "notify", life.does("notify"), made, effect="idempotent")
    return made["ref"]


def _opened(life: Life) -> None:
    with life.store.thread(TRIP, user="ana").run("book") as run:
        life.acks.append(Ack("ended", TRIP, "book", "", run.finish(_steps(life, run))))


def _worked(life: Life) -> None:
    thread = life.store.thread(TRIP, user="ana")
    thread.submit("book", input={"to": "Lisbon"})
    life.store.resume({"book": lambda run: _steps(life, run)})


def _short(life: Life) -> None:
    with life.store.thread(TRIP).run("book") as run:
        life.once(run, "charge")


_BOOKED = _promise("charge", "book", notify=AGAIN)
BOOKING = Scenario("booking", _opened, _BOOKED)
WORKER = Scenario("booking by a worker", _worked, _BOOKED)
SHORT = Scenario("one charge", _short, _promise("charge"))


# Retries


def _failing(life: Life, what: str, *, after: bool) -> Callable[..., Any]:
    """A function that raises on its first attempt, before or after it has done what it was to do."""
    do = life.does(what, writes=True)

    def fail_once(*args: Any) -> Any:
        first = current_step().attempt == 1
        if first and not after:
            raise OSError("not today")
        made = do(*args)
        if first:
            raise OSError("the answer was lost")
        return made

    return fail_once


def _retried(life: Life) -> None:
    with life.store.thread(TRIP).run("book") as run:
        for what, after in (("charge", False), ("book", True)):
            fn = _failing(life, what, after=after)
            life.step(run, what, fn, effect="once", probe=life.asks(), retry=_SOON)
        life.step(run, "notify", _failing(life, "notify", after=True), effect="idempotent", retry=_SOON)


RETRIES = Scenario("retries", _retried, _promise("charge", "book", notify=Bounds(1, 2, per_crash=1)))


# Cancelling and undoing


def undo_by(life: Life, what: str) -> Any:
    """A declared step that undoes something, once."""

    @step(what, effect="once", probe=life.asks())
    def undo(made: Any) -> Any:
        return life.world.book(current_step().key, what)

    return undo


def _cancelled_program(life: Life) -> None:
    thread = life.store.thread(TRIP)
    with suppress(Cancelled, RunEnded), thread.run("book") as run:
        life.once(run, "charge", compensate=undo_by(life, "refund"))
        life.once(run, "book", compensate=lambda made: life.world.book(current_step().key, "release"))
        with suppress(RunEnded):
            thread.cancel("book", reason="changed her mind")
        life.once(run, "notify")


CANCEL = Scenario(
    "cancel and undo", _cancelled_program, _promise("charge", "book", "refund", ends=_cancelled, release=AGAIN)
)


def _undoable(life: Life) -> None:
    with suppress(Cancelled, RunEnded), life.store.thread(TRIP).run("book") as run:
        fails = _failing(life, "charge", after=False)
        how = {"effect": "once", "probe": life.asks(), "retry": _SOON, "compensate": undo_by(life, "refund")}
        life.step(run, "charge", fails, **how)
        life.once(run, "book", compensate=undo_by(life, "release"))


def cancel_it(life: Life) -> None:
    """What a person does from outside, at any moment."""
    with suppress(NotFound, RunEnded):
        life.store.thread(TRIP).cancel("book", reason="changed her mind")


_MAYBE = Bounds(0, 1)
UNDOABLE = Scenario(
    "cancelled at any moment",
    _undoable,
    Promises(
        frozenset({"charge", "book", "refund", "release"}),
        dict.fromkeys(("charge", "book", "refund", "release"), _MAYBE),
        end=frozenset({"done", "cancelled"}),
    ),
)


# Waiting


def _waiting(life: Life) -> None:
    thread = life.store.thread(TRIP)
    thread.submit("book")

    def handler(run: Run) -> Any:
        life.once(run, "charge")
        answer = run.wait("approval")
        life.acks.append(Ack("signal", TRIP, "book", "approval", answer))
        return life.once(run, "book", answer)["ref"]

    life.store.resume({"book": handler})
    approve_it(life)
    life.store.resume({"book": handler})


def approve_it(life: Life) -> None:
    """What a person does from outside, at any moment."""
    with suppress(NotFound, RunEnded):
        heard = life.store.thread(TRIP).signal("approval", f"yes {life.number}", run="book")
        life.acks.append(Ack("signal", TRIP, "book", "approval", heard.value))


WAIT = Scenario("wait and signal", _waiting, _promise("charge", "book"))


# Subtasks


def _with_subtask(life: Life) -> None:
    def research(task: Subtask, place: str) -> Any:
        task.thread.append({"content": "looking"}, key="looking")
        life.acks.append(Ack("entry", task.thread.id, "", "looking"))
        life.once(task, "reserve", place)
        task.spend(tokens=10)
        return life.step(task, "compare", lambda: life.number, effect="pure")

    with life.store.thread(TRIP).run("book") as run:
        found = run.subtask("research", research, "Lisbon", budget={"steps": 9, "tokens": 1_000})
        life.acks.append(Ack("step", TRIP, "book", "research", found))
        life.once(run, "charge", found)


SUBTASK = Scenario("subtask", _with_subtask, _promise("reserve", "charge"))


# Nobody can say


def _by_policy(policy: str) -> Callable[[Life], None]:
    def program(life: Life) -> None:
        with life.store.thread(TRIP).run("book") as run:
            life.once(run, "charge", probe=life.hears_nothing(), on_unknown=policy)
            life.once(run, "book")

    return program


def _settled(life: Life) -> None:
    """The policy is to stop; then a person looks into the world, settles it, and the work goes on."""
    try:
        _by_policy("stop")(life)
    except StepUnknown as stopped:
        found = life.world.find(stopped.facts["key"])
        with life.store.thread(TRIP).run("book") as run:
            run.settle("charge", happened=found is not None, result=found)
            life.once(run, "charge", probe=life.hears_nothing(), on_unknown="stop")
            life.once(run, "book")


STOP = Scenario("nobody can say: stop, then a person settles", _settled, _promise("charge", "book"))
# Skipped, it may never have happened; run again, it may have happened once more for each crash.
SKIP = Scenario("nobody can say: skip", _by_policy("skip"), _promise("book", charge=Bounds(0, 1)))
RERUN = Scenario("nobody can say: rerun", _by_policy("rerun"), _promise("book", charge=AGAIN))


# Declared steps, and a fork


def _declared(life: Life) -> None:
    @step(effect="once", probe=life.asks())
    def charge(amount: int) -> Any:
        return life.world.book(current_step().key, "charge")

    @step("book", effect="once", probe=life.asks())
    def booked(paid: Any) -> Any:
        return life.world.book(current_step().key, "book")

    with life.store.thread(TRIP).run("book"):
        booked.named("book again")(booked(charge(100)))


DECLARED = Scenario(
    "declared steps", _declared, Promises(frozenset({"charge", "book"}), {"charge": ONE, "book": Bounds(2, 2)})
)


def _forked(life: Life) -> None:
    origin, fork = life.store.thread(TRIP), life.store.thread("trip-b")
    with origin.run("book") as run:
        paid = life.once(run, "charge")
        if not fork.exists():
            origin.fork(fork.id)
        life.once(run, "book", paid)
    with fork.run("book") as run:
        # The fork knows that it was paid, and books for itself.
        life.once(run, "book", life.once(run, "charge"))


FORK = Scenario(
    "fork in the middle",
    _forked,
    Promises(
        frozenset({"charge", "book"}),
        {"charge": ONE, "book": Bounds(2, 2)},
        {f"{TRIP}/book": _done, "trip-b/book": _done},
    ),
)

SCENARIOS = (
    SHORT, BOOKING, WORKER, RETRIES, CANCEL, UNDOABLE, WAIT, SUBTASK, STOP, SKIP, RERUN, DECLARED, FORK,
)  # fmt: skip
