"""A thread: the handle with which callers write and read one conversation or task, do durable work in it, and hand
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
    """One ongoing conversation or task. Its first write creates it."""

    def __init__(self, core: Core, runs: RunBook, id: str, scope: Scope, tags: tuple[str, ...] = ()) -> None:
        super().__init__(core, id, scope, tags)
        self.runbook = runs

    # Runs

    def run(self, name: str, *, handler: str | None = None, input: Any = None) -> Run:
        """Start a durable piece of work, or continue the run of this name where it stopped.

        Completed steps return their recorded results and are not run again. Raises ``RunHeld`` while another process
        works on the run. ``handler`` names the function for ``store.resume`` to call (by default, the run's name);
        ``input`` is what that function needs to know. A run that is done or cancelled can be read; one that failed or
        stopped is opened again.
        """
        return Run(open_run(self.runbook, self, name, handler, input))

    def submit(self, name: str, *, handler: str | None = None, input: Any = None) -> RunInfo:
        """Record a run for a worker to carry out. Repeating it with the same input changes nothing."""
        return submit(self.runbook, self, name, handler, input)

    def runs(self, *, status: str | None = None) -> list[RunInfo]:
        """List the runs of this thread, latest activity first."""
        self.logbook.record()
        return [info for info in self.runbook.listed(thread=self.id, status=status) if info.thread == self.id]

    def timeline(self, name: str) -> Timeline:
        """Return what happened in a run: its steps, how long they took, what was probed and what was decided."""
        self.logbook.existing()
        return self.runbook.timeline(self.id, name)

    def signal(self, name: str, value: Any = None, *, run: str | None = None, by: str = "caller") -> Signal:
        """Send a run of this thread the signal it waits for. Only the first signal of a name counts.

        Without ``run`` it goes to the run that waits for it, or to the only one under way. Raises ``RunEnded`` when the
        run has ended or its wait has timed out.
        """
        return lifecycle.signal(self.runbook, self, name, value, run, by)

    def cancel(self, name: str, *, reason: str = "", by: str = "caller") -> RunInfo:
        """Ask a run to stop before its next step and undo what it did."""
        return lifecycle.cancel(self.runbook, self, name, reason, by)

    # Alone

    def hold(self, *, wait_s: float = 0.0) -> Hold:
        """Hold this thread exclusively: ``with thread.hold(): …``. Raises ``ThreadHeld`` while another caller holds it.

        ``wait_s`` is how many seconds to wait for it first. It excludes only others that call ``hold``, in this process
        or another; it does not stop anyone else from writing. Nobody waits for a holder that was killed.
        """
        return Hold(self.runbook, self.id, self.logbook.owner, wait_s)

    # Handing over

    @property
    def handoff(self) -> Handoff:
        """The progress document that bridges two sessions: goal, steps, blockers, next action, decisions, context.

        It includes what the runs of this thread have done.
        """
        return Handoff(self._core, self.id, self._scope, self.logbook.touch, self._progress, self._blockers)

    def _progress(self) -> list[HandoffItem]:
        """The steps of this thread's runs as handoff items, in the order they started."""
        return _items(self._walked())

    def _blockers(self) -> list[str]:
        """What blocks this thread's runs."""
        return _blockers(self._walked())

    def _walked(self) -> list[tuple[RunInfo, tuple[StepInfo, ...]]]:
        self.logbook.record()  # refuses a handle that names another owner
        return self.runbook.walked(self.id)

    # Inside

    def _sibling(self, id: str, scope: Scope, tags: tuple[str, ...]) -> Self:
        return type(self)(self._core, self.runbook, id, scope, tags)

    def _also_forked(self, view: View, id: str, scope: Scope, moment: int) -> tuple[Op, ...]:
        return Forking(view, self._core.tenant, self.id, id, scope, moment).ops()


def replaying(thread: Thread, name: str) -> Work:
    """A recorded run, to be replayed without running or writing anything."""
    thread.logbook.existing()
    return reading(thread.runbook, thread, thread.runbook.record(thread.id, name), replaying=True)


def replay(thread: Thread, name: str, handler: Callable[[Run], Any]) -> Replayed:
    """Replay a recorded run with today's code, without running or writing anything."""
    work = replaying(thread, name)
    run = Run(work)

    def call() -> Any:
        with run:
            return handler(run)

    return report(work, call)


def handoff_now(thread: Thread) -> HandoffDocument:
    """The handoff as an agent needs it: without the steps of ended runs, unless someone wrote them in."""
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
