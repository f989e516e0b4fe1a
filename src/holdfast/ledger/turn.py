"""A turn: what one exchange adds to a thread, in one commit.

Inside the ``with`` block things are only collected; the commit comes at its end, and an exception in the block means
that nothing happened. Turns do not nest, and one that was begun before the process forked is the parent's to commit.
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
    """Make turns of a thread be refused in this context from here on."""
    _around.set(_around.get() | {place_of(core, thread)})


def copied(value: Any) -> Any:
    """A copy of a state on its way into a commit: what its caller changes later in it is not what it saved."""
    try:
        return deepcopy(value)
    except Exception as error:  # a type of the caller's may refuse in any way
        raise Invalid(f"a {type(value).__name__} cannot be copied to be saved: {error}") from error


class TurnDraft:
    """Entries and state on their way into one commit, for whoever commits it: a handle, blocking or not, or a session.

    ``entries`` and ``revision`` are there once it is done.
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
        # Copied now: what the caller changes later in its own objects is not what it appended.
        self._drafts += [log.copied(draft) for draft in log.drafts(items, kind, key)]

    def save(self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent") -> None:
        self._refuse_unless("open")
        self._saved = {"value": copied(value), "expect": expect, "schema": schema, "by": by}

    def begin(self) -> None:
        """Begin, unless this code is inside a turn of the same thread already: that one is committed later."""
        self._refuse_unless("new")
        around = _around.get()
        if self._place in around:
            raise Invalid(f"turns do not nest: this code is inside a turn (or a step) of thread {self._thread.id!r}")
        self._phase = "open"
        _around.set(around | {self._place})

    def leave(self) -> None:
        # Not reset by a token: the end of an async block may come in another context than its beginning.
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
        """Work out the one commit that this turn comes to."""
        self._refuse_unless("open")
        self._phase = "committing"
        time = self.core.clock.now()
        drafts = self._keyed_drafts()
        if not drafts and self._saved is None:
            raise Invalid("an empty turn: append something to it or save a state")
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
        """Under a key of the turn every entry gets one of its own, so that a repetition is recognised as a whole."""
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
    """What one exchange adds to a thread: entries and a state that go into one commit at the end of its ``with``."""

    def __init__(self, draft: TurnDraft) -> None:
        self.draft = draft

    @property
    def entries(self) -> list[Entry]:
        """The entries as they were committed; none before."""
        return self.draft.entries

    @property
    def revision(self) -> int | None:
        """The revision that the state became, once it is committed."""
        return self.draft.revision

    def append(self, *items: Any, kind: str = "message", key: str | None = None) -> None:
        """Add entries to this turn."""
        self.draft.append(*items, kind=kind, key=key)

    def save(self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent") -> None:
        """Save a state with this turn; given twice, the later one counts."""
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
            raise advised(conflict) from conflict
        except BaseException:
            self.draft.fail()
            raise
