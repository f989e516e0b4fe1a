"""A turn: what one exchange adds to a thread, in one commit.

Inside the ``with`` block things are only collected; the commit comes at its end, and after an exception in the block
nothing is written. Turns do not nest, and a turn begun before the process forked is the parent's to commit.
Deliberately absent: a transaction held open while a model thinks.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from copy import deepcopy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast.engine.contract import Op, Receipt
from holdfast.errors import Conflict, Invalid
from holdfast.ledger import log
from holdfast.ledger.core import Core, Pending
from holdfast.ledger.state import Expect, StateBook, advised
from holdfast.records import Draft, Entry

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread

Place = tuple[int, str, str]
_around: ContextVar[frozenset[Place]] = ContextVar("holdfast_turns", default=frozenset())


def place_of(core: Core, thread: str) -> Place:
    return id(core.engine), core.tenant, thread


def inside(core: Core, thread: str) -> bool:
    """Whether this code runs inside a turn of a thread."""
    return place_of(core, thread) in _around.get()


def enter(core: Core, thread: str) -> None:
    """Refuse turns of a thread in this context from here on."""
    _around.set(_around.get() | {place_of(core, thread)})


def copied(value: Any) -> Any:
    """A copy of a state to commit, so that later changes by the caller are not saved."""
    try:
        return deepcopy(value)
    except Exception as error:  # the caller's own type may raise anything
        raise Invalid(f"cannot save a {type(value).__name__}: copying it failed: {error}") from error


class TurnDraft:
    """Entries and state to go into one commit, made by a handle (blocking or async) or a session.

    ``entries`` and ``revision`` are set once it is committed.
    """

    def __init__(self, thread: LedgerThread, core: Core, book: StateBook, key: str | None, expect: int | None) -> None:
        self._thread, self.core, self._book = thread, core, book
        self._key, self._expect = key, expect
        self._drafts: list[Draft] = []
        self._saved: dict[str, Any] | None = None
        self._phase = "new"
        self._process = os.getpid()
        self.entries: list[Entry] = []
        self.revision: int | None = None

    def append(self, *items: Any, kind: str = "message", key: str | None = None) -> None:
        self._refuse_unless("open")
        # Copied now, so that later changes by the caller are not appended.
        self._drafts += [log.copied(draft) for draft in log.drafts(items, kind, key)]

    def save(self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent") -> None:
        self._refuse_unless("open")
        self._saved = {"value": copied(value), "expect": expect, "schema": schema, "by": by}

    def begin(self) -> None:
        """Begin, unless this code is already inside a turn of the same thread."""
        self._refuse_unless("new")
        around = _around.get()
        if self._place in around:
            raise Invalid(f"turns do not nest: this code is inside a turn (or a step) of thread {self._thread.id!r}")
        self._phase = "open"
        _around.set(around | {self._place})

    def leave(self) -> None:
        # No token: an async block may end in another context than it began in.
        _around.set(_around.get() - {self._place})

    @property
    def _place(self) -> Place:
        return place_of(self.core, self._thread.id)

    def abandon(self) -> None:
        self._phase = "abandoned"

    def fail(self) -> None:
        self._phase = "failed"

    @property
    def saves(self) -> bool:
        return self._saved is not None

    def pending(self) -> Pending[None]:
        """Work out the one commit for this turn."""
        self._refuse_unless("open")
        self._phase = "committing"
        time = self.core.clock.now()
        drafts = self._keyed_drafts()
        if not drafts and self._saved is None:
            raise Invalid("this turn is empty: append something or save a state")
        ops: tuple[Op, ...] = (self._thread.logbook.append(drafts, time, self._expect, whole=self._key is not None),)
        saving = None
        if self._saved is not None:
            saving = self._book.saving(**self._saved, key=self._key, time=time)
            ops = (*saving.before, *ops, *saving.ops)

        def finish(receipt: Receipt) -> None:
            self.entries = [log.to_entry(self._thread.id, event) for event in receipt.events[0]]
            if saving is not None:
                self.revision = saving.finish(receipt)
            self._phase = "committed"

        return Pending(ops, time, finish)

    def _keyed_drafts(self) -> list[Draft]:
        """With a turn key, every entry gets a key of its own, so that a repetition is recognised as a whole."""
        return self._drafts if self._key is None else log.keyed(self._drafts, self._key)

    def _refuse_unless(self, phase: str) -> None:
        if self._process != os.getpid():
            raise Invalid(
                f"this turn of thread {self._thread.id!r} was begun before a fork, and the parent commits it; "
                "begin one here with thread.turn()"
            )
        if self._phase != phase:
            raise Invalid(f"this turn is {self._phase}, not {phase}; begin a new one with thread.turn()")


class Turn:
    """What one exchange adds to a thread: entries and a state, committed together at the end of the ``with`` block."""

    def __init__(self, draft: TurnDraft) -> None:
        self.draft = draft

    @property
    def entries(self) -> list[Entry]:
        """The entries as committed; empty before the commit."""
        return self.draft.entries

    @property
    def revision(self) -> int | None:
        """The revision of the saved state; None before the commit."""
        return self.draft.revision

    def append(self, *items: Any, kind: str = "message", key: str | None = None) -> None:
        """Add entries to this turn."""
        self.draft.append(*items, kind=kind, key=key)

    def save(self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent") -> None:
        """Save a state with this turn; if you call it twice, the later state counts."""
        self.draft.save(value, expect=expect, schema=schema, by=by)

    def __enter__(self) -> Self:
        self.draft.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.draft.leave()
        if kind is not None:
            self.draft.abandon()
            return
        try:
            self.draft.core.commit(self.draft.pending())
        except Conflict as conflict:
            self.draft.fail()
            raise advised(conflict) from None
        except BaseException:
            self.draft.fail()
            raise
