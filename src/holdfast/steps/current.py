"""What is running here and now: the run, and the step inside it.

Both are context variables, so that threads and tasks do not see each other's. Deliberately absent: a way to set them
from outside; a run sets them while it calls the caller's code.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from holdfast.errors import Invalid
from holdfast.steps.context import StepContext


class Steps(Protocol):
    """A run, blocking or async, as a declared step needs it."""

    def step(self, name: str, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...


_run: ContextVar[Steps | None] = ContextVar("holdfast_run", default=None)
_step: ContextVar[Any] = ContextVar("holdfast_step", default=None)


def current_step() -> StepContext:
    """The step that this code runs in: its ``key``, ``heartbeat()``, ``record()``, ``append()``, ``state()`` and so on.

    Inside an async function of an async run, ``heartbeat`` and ``record`` are awaited.
    """
    found: StepContext | None = _step.get()
    if found is None:
        raise Invalid("no step is running here; current_step() is for functions that a run calls as a step")
    return found


def in_step() -> StepContext | None:
    found: StepContext | None = _step.get()
    return found


def running(what: str) -> Steps:
    """The run that a declared step belongs to when it is called."""
    found = _run.get()
    if found is None:
        raise Invalid(
            f"step {what!r} was called outside a run; call it inside `with thread.run(…):`, or its plain function as "
            f"{what}.fn(…)"
        )
    return found


def set_run(run: Steps | None) -> tuple[Steps | None, Steps | None]:
    """Make a run the current one; what this gives takes it back. A context's own token would not do that elsewhere."""
    before = _run.get()
    _run.set(run)
    return run, before


def reset_run(token: tuple[Steps | None, Steps | None]) -> None:
    """Take back what was set. Where another run is current, as in a task that did not set it, that one stays."""
    run, before = token
    if _run.get() is run:
        _run.set(before)


def set_step(step: Any) -> None:
    _step.set(step)
