"""Runs as a workload: bookings, approvals, cancellations and subtasks, one after the other, in one outside world.

``begin`` is one piece of work, ``handlers`` what can be resumed, ``settle`` brings all that was left to its end, and
``PROMISES`` is what must hold then. ``Errands`` puts it through power cuts, after which the store has what was synced,
and the world has everything. Deliberately absent: faults; all of this runs on any store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from crashlab.power import ProcessGone, Witness
from crashlab.promises import Ack, Promises, wrong
from crashlab.scenarios import Life, undo_by
from crashlab.world import World
from holdfast.errors import Cancelled, RunEnded
from holdfast.steps.resume import FRUITLESS
from holdfast.steps.run import Run
from holdfast.steps.step_context import Suspended
from holdfast.steps.timeline import RunInfo
from holdfast.store import Store

PROMISES = Promises(
    once=frozenset({"charge", "book", "refund"}),
    end=frozenset({"done", "cancelled"}),
)


def begin(life: Life, thread: str, number: int) -> None:
    """One piece of work: opened by name, submitted and resumed, with a person's word, or given up."""
    handle = life.store.thread(thread, user="ana")
    kind = ("book", "book", "approve", "cancel", "explore")[number % 5]
    name = f"{kind}_{number}"
    if number % 5 == 0:
        with handle.run(name, handler=kind) as run:
            life.acks.append(Ack("ended", thread, name, "", run.finish(handlers(life)[kind](run))))
        return
    handle.submit(name, handler=kind, input=number)
    handle.append({"role": "user", "content": name}, key=name)
    life.acks.append(Ack("entry", thread, "", name))
    life.store.resume(handlers(life))
    if kind == "approve":
        say_yes(life, thread, name)
        life.store.resume(handlers(life))


def handlers(life: Life) -> dict[str, Callable[[Run], Any]]:
    """What can be done, by name."""

    def book(run: Run) -> Any:
        found = life.step(run, "search", time.monotonic_ns, effect="pure")
        paid = life.once(run, "charge", found)
        made = life.once(run, "book", found, paid["ref"])
        life.step(run, "notify", life.does("notify"), made["ref"], effect="idempotent")
        return made["ref"]

    def approve(run: Run) -> Any:
        life.once(run, "charge")
        answer = run.wait("approval")
        life.acks.append(Ack("signal", run.thread.id, run.name, "approval", answer))
        return life.once(run, "book", answer)["ref"]

    def cancel(run: Run) -> Any:
        life.once(run, "charge", compensate=undo_by(life, "refund"))
        with suppress(RunEnded):
            run.thread.cancel(run.name, reason="changed her mind")  # type: ignore[attr-defined]
        life.once(run, "book")

    def explore(run: Run) -> Any:
        def research(task: Run) -> Any:
            return life.once(task, "book")["ref"]

        return life.once(run, "charge", run.subtask("research", research))["ref"]

    return {"book": book, "approve": approve, "cancel": cancel, "explore": explore}


def say_yes(life: Life, thread: str, name: str) -> None:
    with suppress(RunEnded):
        heard = life.store.thread(thread).signal("approval", time.monotonic_ns(), run=name)
        life.acks.append(Ack("signal", thread, name, "approval", heard.value))


def settle(store: Store, world: World, acks: list[Ack]) -> int:
    """Bring everything to its end, and say how many runs had been given up.

    After a kill a run may wait for a signal that was never sent. And one that was taken up many times and killed each
    time before it got anywhere is failed, as it might be what kills; then a person opens it by name.
    """
    life, given_up = Life(store, world, acks, 0), 0
    for _ in range(20):
        for info in store.runs(status="waiting", limit=None):
            say_yes(life, info.thread, info.name)
        lost = [info for info in store.runs(status="failed", limit=None) if _is_given_up(store, info)]
        for info in lost:
            _open_again(life, info)
        if not store.resume(handlers(life)) and not lost:
            break
        given_up += len(lost)
    return given_up


def _is_given_up(store: Store, info: RunInfo) -> bool:
    record = store.wiring.runs.record(info.thread, info.name)
    return store.wiring.runs.journal(record, record.head).fruitless > FRUITLESS


def _open_again(life: Life, info: RunInfo) -> None:
    with suppress(Cancelled, Suspended), life.store.thread(info.thread).run(info.name) as run:
        run.finish(handlers(life)[info.handler](run))


class Errands:
    """The workload and the check of a ``power.Trial``. The world lies beside the store, on a disk that keeps all."""

    def __init__(self, runs: int = 5) -> None:
        self._runs = runs

    def workload(self, store: Store, witness: Witness) -> None:
        """One piece of work of each kind. A process without power does nothing in the world either."""

        def refuse_without_power(name: str) -> None:
            if witness._disk.life != witness._life:
                raise ProcessGone

        world = self._world(witness).told(refuse_without_power)
        life = Life(store, world, witness.acked, 1)
        with witness.tries(Ack("entry", "trip", "", "end")):
            for number in range(self._runs):
                begin(life, "trip", number)
            store.thread("trip").append({"content": "that was all"}, key="end")

    def check(self, store: Store, witness: Witness) -> Iterator[str]:
        """Everything that is wrong, right after the cut and once all is brought to its end."""
        world = self._world(witness)
        yield from wrong(store, world, witness.acked, PROMISES, ended=False)
        settle(store, world, witness.acked)
        yield from wrong(store, world, witness.acked, PROMISES)

    def _world(self, witness: Witness) -> World:
        return World(witness._disk.path.parent / "world.jsonl", synced=False)
