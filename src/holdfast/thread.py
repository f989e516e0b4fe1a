"""A thread: the handle through which callers write and read one conversation or task, do durable work in it, and hand
over.

It is the ledger's thread, wired to the rooms that work on threads. Deliberately absent: rules; each room has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from holdfast.engine.contract import Op, Scope, View
from holdfast.handoff import Handoff, HandoffDocument, HandoffItem
from holdfast.handoff.document import merge
from holdfast.handoff.handoff import stored_document
from holdfast.ledger.core import Core
from holdfast.ledger.thread import LedgerThread
from holdfast.steps import lifecycle
from holdfast.steps.hold import Hold
from holdfast.steps.lifecycle import open_run, reading, submit
from holdfast.steps.replay import Replayed, report
from holdfast.steps.run import Run
from holdfast.steps.runs import Forking, RunBook
from holdfast.steps.signals import Signal
from holdfast.steps.timeline import RunInfo, StepInfo, Timeline, blocker
from holdfast.steps.work import Work


class Thread(LedgerThread):
    """One ongoing conversation or task. It comes into being with its first write."""

    def __init__(self, core: Core, runs: RunBook, id: str, scope: Scope, tags: tuple[str, ...] = ()) -> None:
        super().__init__(core, id, scope, tags)
        self.runbook = runs

    # Runs

    def run(self, name: str, *, handler: str | None = None, input: Any = None) -> Run:
        """Begin a durable piece of work, or take up the one of this name where it was left.

        Completed steps give their recorded results and are not run again. ``RunHeld`` while another process works on
        it. ``handler`` names the function that ``store.resume`` is to call (otherwise the run's name does), ``input``
        is what that function needs to know. A run that is done or cancelled can be read; one that failed or stopped is
        opened again.
        """
        return Run(open_run(self.runbook, self, name, handler, input))

    def submit(self, name: str, *, handler: str | None = None, input: Any = None) -> RunInfo:
        """Write a run down for a worker to carry out. Repeating it with the same input changes nothing."""
        return submit(self.runbook, self, name, handler, input)

    def runs(self, *, status: str | None = None) -> list[RunInfo]:
        """List the runs of this thread, latest activity first."""
        self.logbook.record()
        return [info for info in self.runbook.listed(thread=self.id, status=status) if info.thread == self.id]

    def timeline(self, name: str) -> Timeline:
        """Say what happened in a run: its steps, how long they took, what was asked and what was decided."""
        self.logbook.existing()
        return self.runbook.timeline(self.id, name)

    def signal(self, name: str, value: Any = None, *, run: str | None = None, by: str = "caller") -> Signal:
        """Give a run of this thread what it waits for. The first signal of a name counts.

        Without ``run`` it goes to the one that waits for it, or to the only one under way. ``RunEnded`` when the run,
        or the time it waited, is over.
        """
        return lifecycle.signal(self.runbook, self, name, value, run, by)

    def cancel(self, name: str, *, reason: str = "", by: str = "caller") -> RunInfo:
        """Ask a run to stop before its next step and to undo what it did."""
        return lifecycle.cancel(self.runbook, self, name, reason, by)

    # Alone

    def hold(self, *, wait_s: float = 0.0) -> Hold:
        """Work on this thread alone: ``with thread.hold(): …``. ``ThreadHeld`` if someone else does.

        With ``wait_s`` it waits so many seconds for them first. It keeps out those who ask for it too, in this process
        or another, and nobody else. A holder that is killed is not waited for.
        """
        return Hold(self.runbook, self.id, self.logbook.owner, wait_s)

    # Handing over

    @property
    def handoff(self) -> Handoff:
        """The progress document that bridges two sessions: goal, steps, blockers, next action, context.

        What the runs of this thread have done is in it by itself.
        """
        return Handoff(self._core, self.id, self._scope, self.logbook.touch, self._progress, self._blockers)

    def _progress(self) -> list[HandoffItem]:
        """The steps of this thread's runs as items of a handoff, in the order they were begun."""
        return _items(self._walked())

    def _blockers(self) -> list[str]:
        """What keeps this thread's runs from going on."""
        return _blockers(self._walked())

    def _walked(self) -> list[tuple[RunInfo, tuple[StepInfo, ...]]]:
        self.logbook.record()  # a handle that names another owner stops here
        return self.runbook.walked(self.id)

    # Inside

    def _sibling(self, id: str, scope: Scope, tags: tuple[str, ...]) -> Self:
        return type(self)(self._core, self.runbook, id, scope, tags)

    def _also_forked(self, view: View, id: str, scope: Scope, moment: int) -> tuple[Op, ...]:
        return Forking(view, self._core.tenant, self.id, id, scope, moment).ops()


def replaying(thread: Thread, name: str) -> Work:
    """A recorded run, to be gone through again without running or writing anything."""
    thread.logbook.existing()
    return reading(thread.runbook, thread, thread.runbook.record(thread.id, name), replaying=True)


def replay(thread: Thread, name: str, handler: Callable[[Run], Any]) -> Replayed:
    """Go through a recorded run with today's code, without running or writing anything."""
    work = replaying(thread, name)
    run = Run(work)

    def call() -> Any:
        with run:
            return handler(run)

    return report(work, call)


def handoff_now(thread: Thread) -> HandoffDocument:
    """The handoff as an agent needs it: without the steps of runs that are over, unless someone wrote them in."""
    stored = stored_document(thread.handoff)
    under_way = [step.ref.split("/")[0] for step in stored.steps if step.ref is not None]
    few = thread.runbook.walked(thread.id, under_way)
    return merge(stored, _items(few), _blockers(few))


def _items(walked: Sequence[tuple[RunInfo, tuple[StepInfo, ...]]]) -> list[HandoffItem]:
    return [
        HandoffItem(f"{run.name}: {step.name}", step.standing == "completed", f"{run.name}/{step.name}")
        for run, steps in walked
        for step in steps
    ]


def _blockers(walked: Sequence[tuple[RunInfo, tuple[StepInfo, ...]]]) -> list[str]:
    return [text for run, steps in walked if (text := blocker(run, steps))]
