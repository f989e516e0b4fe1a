"""A recorded run replayed with today's code, without touching the outside world.

The handler is called as it is today; its steps and waits are answered from the journal, nothing is run and nothing is
written. The report lists calls that are not recorded, and records that are never called. Deliberately absent: running a
step "just to see".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.errors import Cancelled, Invalid
from holdfast.ledger import schema as schemas
from holdfast.steps.declare import UNDO
from holdfast.steps.step_context import describe_failure, failure_to_plain
from holdfast.steps.work import Work


class Replayed(msgspec.Struct, frozen=True):
    """How a replay went. ``same``: today's code called the same steps and ended the same way."""

    thread: str
    run: str
    steps: tuple[str, ...]
    unvisited: tuple[str, ...]
    result: Any
    recorded: Any
    error: str = ""

    @property
    def same(self) -> bool:
        return not self.error and not self.unvisited and self.result == self.recorded


def report(work: Work, call: Callable[[], Any]) -> Replayed:
    """Call a handler on a run that only replays, and report how it went."""
    result, raised = None, None
    try:
        result = call()
    except Exception as error:
        raised = error
    return replayed(work, result, raised)


def replayed(work: Work, result: Any, raised: Exception | None) -> Replayed:
    """The report for a handler that returned this result, or raised this error."""
    journal = work.journal
    unvisited = tuple(name for name in journal.steps if name not in work.visited and not name.endswith(UNDO))
    recorded = (journal.ended or {}).get("result")
    try:
        plain, error = schemas.dump(result), _other_end(work, raised)
    except Invalid as misfit:  # it could not have been recorded
        plain, error = None, describe_failure(failure_to_plain(misfit))
    return Replayed(work.thread.id, work.header.name, tuple(work.visited), unvisited, plain, recorded, error)


def _other_end(work: Work, raised: Exception | None) -> str:
    """How the end of a replay differs from the recorded one, in words; empty if it does not."""
    ended = work.journal.ended or {}
    then = "" if ended.get("error") is None else describe_failure(ended["error"])
    now = "" if raised is None else describe_failure(failure_to_plain(raised))
    if then == now or (isinstance(raised, Cancelled) and ended.get("status") == "cancelled"):
        return ""
    return now or f"the recorded run ended with {then}; today's code does not"
