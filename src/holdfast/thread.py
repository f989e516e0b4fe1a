"""A thread: the handle through which callers write and read one conversation or task, do durable work in it, and hand
over.

It is the ledger's thread, wired to the rooms that work on threads. Deliberately absent: rules; each room has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from holdfast.engine.contract import Op, Scope, View
from holdfast.handoff import Document, Handoff, Item
from holdfast.handoff.document import merge
from holdfast.ledger.core import Core
from holdfast.ledger.graphs import Graph, GraphInfo, graphs_of
from holdfast.ledger.thread import LedgerThread
from holdfast.steps import outside, replay
from holdfast.steps.forking import Forking
from holdfast.steps.hold import Hold
from holdfast.steps.opening import open_run, reading, submit
from holdfast.steps.replay import Replayed
from holdfast.steps.run import Run
from holdfast.steps.runs import Runs
from holdfast.steps.timeline import RunInfo, StepInfo, Timeline, blocker
from holdfast.steps.waiting import Signal
from holdfast.steps.work import Work


class Thread(LedgerThread):
    """One ongoing conversation or task. It comes into being with its first write."""

    def __init__(self, core: Core, runs: Runs, id: str, scope: Scope, tags: tuple[str, ...] = ()) -> None:
        super().__init__(core, id, scope, tags)
        self._runs = runs

    # Runs

    def run(self, name: str, *, handler: str | None = None, input: Any = None) -> Run:
        """Begin a durable piece of work, or take up the one of this name where it was left.

        Completed steps give their recorded results and are not run again. ``RunHeld`` while another process works on
        it. ``handler`` names the function that ``store.resume`` is to call (otherwise the run's name does), ``input``
        is what that function needs to know. A run that is done or cancelled can be read; one that failed or stopped is
        opened again.
        """
        return Run(open_run(self._runs, self, name, handler, input))

    def submit(self, name: str, *, handler: str | None = None, input: Any = None) -> RunInfo:
        """Write a run down for a worker to carry out. Repeating it with the same input changes nothing."""
        return submit(self._runs, self, name, handler, input)

    def runs(self, *, status: str | None = None) -> list[RunInfo]:
        """List the runs of this thread, latest activity first."""
        self.logbook.record()
        return [info for info in self._runs.listed(thread=self.id, status=status) if info.thread == self.id]

    def timeline(self, name: str) -> Timeline:
        """Say what happened in a run: its steps, how long they took, what was asked and what was decided."""
        self.logbook.existing()
        return self._runs.timeline(self.id, name)

    def replay(self, name: str, handler: Callable[[Run], Any]) -> Replayed:
        """Go through a recorded run with today's code, without running or writing anything."""
        work = self._replaying(name)
        run = Run(work)

        def call() -> Any:
            with run:
                return handler(run)

        return replay.report(work, call)

    def signal(self, name: str, value: Any = None, *, run: str | None = None, by: str = "caller") -> Signal:
        """Give a run of this thread what it waits for. The first signal of a name counts.

        Without ``run`` it goes to the one that waits for it, or to the only one under way. ``RunEnded`` when the run,
        or the time it waited, is over.
        """
        return outside.signal(self._runs, self, name, value, run, by)

    def cancel(self, name: str, *, reason: str = "", by: str = "caller") -> RunInfo:
        """Ask a run to stop before its next step and to undo what it did."""
        return outside.cancel(self._runs, self, name, reason, by)

    # Alone

    def hold(self, *, wait_s: float = 0.0) -> Hold:
        """Work on this thread alone: ``with thread.hold(): …``. ``ThreadHeld`` if somebody else does.

        With ``wait_s`` it waits so many seconds for them first. It keeps out those who ask for it too, in this process
        or another, and nobody else. A holder that is killed is not waited for.
        """
        return Hold(self._runs, self.id, self._whose, wait_s)

    # Graphs

    def graphs(self) -> list[GraphInfo]:
        """List the graphs that a framework keeps in this thread, latest activity first."""
        self.logbook.record()
        return graphs_of(self._core, self.id)

    def graph(self, namespace: str = "") -> Graph:
        """Give a handle of a graph that a framework keeps in this thread, to look at without the framework.

        ``namespace`` names a graph inside another one.
        """
        return Graph(self._core, self.id, namespace, self.logbook.existing)

    # Handing over

    @property
    def handoff(self) -> Handoff:
        """The progress document that bridges two sessions: goal, steps, blockers, next action, context.

        What the runs of this thread have done is in it by itself.
        """
        return Handoff(self._core, self.id, self._scope, self.logbook.touch, self._progress, self._blockers)

    def _standing(self) -> Document:
        """The handoff as an agent needs it: without the steps of runs that are over, unless somebody wrote them in."""
        stored = self.handoff._stored()
        few = self._runs.walked(self.id, [step.ref.split("/")[0] for step in stored.steps if step.ref is not None])
        return merge(stored, _items(few), _blockers(few))

    def _progress(self) -> list[Item]:
        """The steps of this thread's runs as items of a handoff, in the order they were begun."""
        return _items(self._walked())

    def _blockers(self) -> list[str]:
        """What keeps this thread's runs from going on."""
        return _blockers(self._walked())

    def _walked(self) -> list[tuple[RunInfo, tuple[StepInfo, ...]]]:
        self.logbook.record()  # a handle that names another owner stops here
        return self._runs.walked(self.id)

    # Inside

    def _owner(self) -> tuple[str | None, str | None]:
        """Whose thread it is: its user, as recorded, and its agent, or the one that this handle names."""
        scope = self._whose()
        return scope.user, scope.agent or self._scope.agent

    def _whose(self) -> Scope:
        """The scope as it is recorded; a handle that names another owner stops here."""
        record = self.logbook.record()
        return self._scope if record is None else record.scope

    def _replaying(self, name: str) -> Work:
        self.logbook.existing()
        return reading(self._runs, self, self._runs.record(self.id, name), replaying=True)

    def _sibling(self, id: str, scope: Scope, tags: tuple[str, ...]) -> Self:
        return type(self)(self._core, self._runs, id, scope, tags)

    def _also_forked(self, view: View, id: str, scope: Scope, moment: int) -> tuple[Op, ...]:
        return Forking(view, self._core.tenant, self.id, id, scope, moment).ops()


def _items(walked: Sequence[tuple[RunInfo, tuple[StepInfo, ...]]]) -> list[Item]:
    return [
        Item(f"{run.name}: {step.name}", step.standing == "completed", f"{run.name}/{step.name}")
        for run, steps in walked
        for step in steps
    ]


def _blockers(walked: Sequence[tuple[RunInfo, tuple[StepInfo, ...]]]) -> list[str]:
    return [text for run, steps in walked if (text := blocker(run, steps))]
