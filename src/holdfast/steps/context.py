"""What a step's function can ask and do while it runs.

What it appends, saves or patches is only collected, and committed with the completion: together with the result, or not
at all. Heartbeats and partial progress are commits of their own, at once. Deliberately absent: writing anything once
the step is over, as a function left behind by a time limit might try.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from holdfast.errors import Invalid, quoted
from holdfast.ledger import log, paths
from holdfast.ledger import schema as schemas
from holdfast.ledger.state import Expect
from holdfast.ledger.turn import copied
from holdfast.records import Draft

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread

Change = Callable[[Any], Any]
_AS_STORED = ("as it is stored", None)


class StepContext:
    """One attempt at a step, as its own function sees it."""

    def __init__(
        self,
        thread: LedgerThread,
        run: str,
        name: str,
        key: str,
        attempt: int,
        progress: Any,
        pulse: Callable[..., None],
    ) -> None:
        self.thread, self.run, self.name = thread, run, name
        self.key, self.attempt = key, attempt
        self._progress, self._pulse = progress, pulse
        self._drafts: list[Draft] = []
        self._save: dict[str, Any] | None = None
        self._changes: list[Change] = []
        self._base: tuple[Any, Any] | None = None
        self._open = True

    @property
    def progress(self) -> Any:
        """What an earlier attempt, or this one, last recorded as partial progress; None when there is none."""
        return deepcopy(self._progress)

    def heartbeat(self) -> None:
        """Say that the step is alive, now. ``Fenced`` or ``Cancelled`` when it should stop."""
        self._refuse_when_over()
        self._pulse()

    def record(self, progress: Any) -> None:
        """Keep partial progress durably, for the next attempt should this one not come to its end."""
        self._refuse_when_over()
        plain = schemas.dump(progress)
        self._pulse(plain, progress=True)
        self._progress = plain

    def append(self, *items: Any, kind: str = "message", key: str | None = None) -> None:
        """Add entries to the thread's log, in the commit that completes this step."""
        self._refuse_when_over()
        self._drafts += [log.copied(draft) for draft in log.drafts(items, kind, key)]

    def state(self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent") -> None:
        """Save the thread's state in the commit that completes this step; given twice, the later one counts.

        When someone else saved meanwhile, the step is recorded without it, and ``NotSaved`` says so. ``update`` and
        ``patch`` do not have that trouble.
        """
        self._refuse_when_over()
        if self._changes:
            raise Invalid("a step saves a whole state, or updates it, not both")
        self._save = {"value": copied(value), "expect": expect, "schema": schema, "by": by}

    def update(self, change: Change, *, type: Any = None, default: Any = None) -> None:
        """Change the thread's state by a function of what it is when this step completes."""
        if not callable(change):
            raise Invalid(f"a state is changed by a function of what it is, not by {quoted(change)}")
        self._change(change, (type, default))

    def patch(self, path: str, value: Any) -> None:
        """Set a single path of the thread's state when this step completes; changes elsewhere are kept."""
        steps, plain = paths.parse(path, append=True), schemas.dump(value)
        self._change(lambda state: paths.with_value(state, steps, plain), _AS_STORED)

    def _change(self, change: Change, base: tuple[Any, Any]) -> None:
        self._refuse_when_over()
        if self._save is not None:
            raise Invalid("a step saves a whole state, or updates it, not both")
        if self._changes and base != self._base:
            raise Invalid("the updates of one step are all of one type, and are not mixed with patches")
        self._base = base
        self._changes.append(change)

    # For the run

    def close(self) -> None:
        self._open = False

    def collected(self) -> tuple[list[Draft], bool]:
        """What is to be committed with the completion: entries, and whether the state changes too."""
        return self._drafts, self._save is not None or bool(self._changes)

    def rebased(self) -> bool:
        """Whether a state that changed meanwhile is no trouble."""
        return self._save is None

    def saving(self, again: bool = False) -> dict[str, Any]:
        """What to save. Updates are worked out on the state as it is now; ``again`` asks the store what that is."""
        if self._save is not None:
            return self._save
        assert self._base is not None
        type, default = self._base
        plainly = self._base is _AS_STORED
        basis = self.thread.statebook.basis(type, default=deepcopy(default), plainly=plainly, again=again)
        value = basis.value
        for change in self._changes:
            value = change(value)
        return {"value": value, "base": basis.base, "schema": basis.schema}

    def _refuse_when_over(self) -> None:
        if not self._open:
            raise Invalid(f"step {self.name!r} is over; nothing more can be recorded for this attempt")
