"""A thread as the ledger knows it: log, state and checkpoints of one conversation or task.

A handle holds nothing but its name and the state revision it last saw, so any number of handles in any number of
processes may name the same thread. Each public method is one read or one commit. It is built on two books, which other
rooms and adapters use as well: ``logbook``, its record and its log as operations, and ``statebook``. Deliberately
absent: encoding (``log``, ``state``), meaning of operations (the engine's plan), runs and handoffs (``holdfast.thread``
adds them), and choosing parts (``store.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Self, TypeVar, overload

from holdfast.checks import check_choice, check_whole
from holdfast.clock import to_datetime
from holdfast.engine.codec import encode
from holdfast.engine.contract import Append, Event, Mark, Op, Put, Query, Receipt, Record, Scope, View
from holdfast.errors import Conflict, Invalid, NotFound, quoted
from holdfast.ids import check_id
from holdfast.ledger import checkpoints, log
from holdfast.ledger.checkpoints import Point
from holdfast.ledger.core import Core, Pending, compare_and_set, scan_all
from holdfast.ledger.state import Expect, OnStale, StateBook
from holdfast.ledger.turn import Turn, TurnDraft
from holdfast.records import Checkpoint, Draft, Entry, Loaded, Revision, ThreadInfo

T = TypeVar("T")
_MOST = 2**63 - 1
_EMPTY = encode({})


class LogBook:
    """The record and the log of one thread, as records and operations. It refuses to read another owner's thread."""

    def __init__(self, core: Core, id: str, scope: Scope, tags: tuple[str, ...] = ()) -> None:
        self.core, self.id, self.scope = core, id, scope
        self.new = Put("thread", id, _EMPTY, scope=scope, tags=tags)  # goes with every write, and creates the thread

    # Reading

    def record(self) -> Record | None:
        """The thread's record, or None before the first write."""
        record = self.core.engine.get(self.core.tenant, "thread", self.id)
        return None if record is None else self._found(record)

    def existing(self) -> Record:
        """The thread's record. Raises ``NotFound`` if there is none."""
        return self._found(self.core.engine.get(self.core.tenant, "thread", self.id))

    def with_state(self, view: View | None = None) -> tuple[Record, Record | None]:
        """The thread and its state at one moment; between two reads a turn could commit to both."""
        if view is None:
            with self.core.engine.snapshot() as now:
                return self.with_state(now)
        record = self._found(view.get(self.core.tenant, "thread", self.id))
        return record, view.get(self.core.tenant, "state", self.id)

    def head(self) -> int:
        """How many entries the log holds."""
        record = self.record()
        return 0 if record is None else record.head

    def event(self, record: Record, number: int | None = None, *, key: str | None = None) -> Event | None:
        """The entry with a number or a key, as stored."""
        if number is None:
            found = self.core.engine.read(self.core.tenant, record.mark, key=key)
        elif 1 <= number <= record.head:
            mark = Mark(record.mark.stream, number)
            found = self.core.engine.read(self.core.tenant, mark, after=number - 1)
        else:
            found = []
        return found[0] if found else None

    def owner(self) -> Scope:
        """The recorded owner of the thread; before the first write, the owner the handle names."""
        record = self.record()
        return self.scope if record is None else record.scope

    def _found(self, record: Record | None) -> Record:
        if record is None:
            raise NotFound(f"there is no thread {self.id!r}", thread=self.id)
        refuse_other_owner(record, self.scope)
        return record

    # Writing

    def touch(self) -> Append:
        """The operation that makes a commit count as activity of this thread, and creates the thread if needed."""
        return Append("thread", self.id, new=self.new)

    def append(self, drafts: Sequence[Draft], time: int, expect: int | None = None, *, whole: bool = False) -> Append:
        """The operation that adds entries; with ``whole``, all of them or, as a repetition, none."""
        if expect is not None:
            check_count("expect", expect)
        events = tuple(log.to_event(draft, time) for draft in drafts)
        return Append("thread", self.id, events, expect, self.new, log.same_entry, whole)

    def appending(
        self, drafts: Sequence[Draft], expect: int | None = None, *, whole: bool = False
    ) -> Pending[Entry | list[Entry]]:
        """The commit that only adds entries; their content is encoded right away."""
        time = self.core.clock.now()

        def finish(receipt: Receipt) -> Entry | list[Entry]:
            entries = [log.to_entry(self.id, event) for event in receipt.events[0]]
            return entries[0] if len(drafts) == 1 else entries

        return Pending((self.append(drafts, time, expect, whole=whole),), time, finish)

    def commit(self, ops: Sequence[Op]) -> Receipt:
        """Commit operations now."""
        return self.core.write(ops, self.core.clock.now())


class LedgerThread:
    """One ongoing conversation or task. Its first write creates it."""

    def __init__(self, core: Core, id: str, scope: Scope, tags: tuple[str, ...] = ()) -> None:
        self.id = id
        self.logbook = LogBook(core, id, scope, tags)
        self.statebook = StateBook(core, id, scope)
        self._core, self._scope = core, scope

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, user={self._scope.user!r}, agent={self._scope.agent!r})"

    # The log

    @overload
    def append(self, item: Any, /, *, kind: str = ..., key: str | None = ..., expect: int | None = ...) -> Entry: ...
    @overload
    def append(
        self, item: Any, second: Any, /, *more: Any, kind: str = ..., key: str | None = ..., expect: int | None = ...
    ) -> list[Entry]: ...
    def append(
        self, *items: Any, kind: str = "message", key: str | None = None, expect: int | None = None
    ) -> Entry | list[Entry]:
        """Add entries to the log in one durable commit and return them as stored.

        With ``key`` a repetition returns the first entry instead of adding another; the same key with other content
        raises ``KeyReused``. With ``expect`` the log must hold exactly that many entries, or it raises ``Conflict``.
        """
        pending = self.logbook.appending(log.drafts(items, kind, key), expect, whole=key is not None)
        return self._core.commit(pending)

    def log(self, last: int | None = None, *, after: int = 0, limit: int | None = None) -> list[Entry]:
        """Read entries in order: the ``last`` ones, those ``after`` a number, or all. Older ones are not read."""
        if last is not None and (after or limit is not None):
            raise Invalid("give either last, or after and limit")
        for name, value in (("last", last), ("after", after), ("limit", limit)):
            if value is not None or name == "after":
                check_count(name, value)
        record = self.logbook.record()
        if record is None:
            return []
        newest = last is not None
        events = self._core.engine.read(
            self._core.tenant, record.mark, after=after, limit=last if newest else limit, newest=newest
        )
        return [log.to_entry(self.id, event) for event in events]

    def messages(self, last: int | None = None) -> list[dict[str, Any]]:
        """The messages of the log, or of its ``last`` entries, as model clients take them: only role and content."""
        found = (entry.content for entry in self.log(last) if entry.kind == "message")
        return [
            {"role": content["role"], "content": content.get("content")}
            for content in found
            if isinstance(content, dict) and "role" in content
        ]

    def entry(self, number: int | None = None, *, key: str | None = None) -> Entry:
        """Read a single entry by its number or by the key it was appended with."""
        if (number is None) == (key is None):
            raise Invalid("give either a number or a key")
        if key is not None:
            check_id(key, "key")
        else:
            check_whole("the number of an entry", number)
        event = self.logbook.event(self.logbook.existing(), number, key=key)
        if event is None:
            which = f"key {key!r}" if key is not None else f"number {quoted(number)}"
            raise NotFound(f"thread {self.id!r} has no entry with {which}", thread=self.id, number=number, key=key)
        return log.to_entry(self.id, event)

    def info(self) -> ThreadInfo:
        """Return what a listing shows: owner, tags, number of entries, when it began and was last active."""
        return to_info(self.logbook.existing())

    def exists(self) -> bool:
        """Whether anything was ever written to this thread."""
        return self.logbook.record() is not None

    def tag(self, *tags: str, remove: Iterable[str] = ()) -> ThreadInfo:
        """Add tags and remove others. Removing a tag that the thread lacks is not an error."""
        more, gone = check_tags(tags), check_tags(remove)
        return self._retag(lambda now: tuple(sorted({*now, *more} - {*gone})))

    # Turns

    def turn(self, *, key: str | None = None, expect: int | None = None) -> Turn:
        """Begin a turn: everything you add to it is committed together at the end of the ``with`` block, or not at all.

        With ``key`` the whole turn is idempotent: repeating it after an unknown outcome changes nothing. With
        ``expect`` the log must hold exactly that many entries when the turn commits, or it raises ``Conflict``.
        """
        named = None if key is None else check_id(key, "key")
        return Turn(TurnDraft(self, self._core, self.statebook, named, expect))

    # State

    @overload
    def state(
        self,
        type: type[T],
        *,
        default: T | None = ...,
        revision: int | None = ...,
        as_of: datetime | None = ...,
        on_stale: OnStale = ...,
    ) -> Loaded[T]: ...
    @overload
    def state(
        self,
        type: None = ...,
        *,
        default: Any = ...,
        revision: int | None = ...,
        as_of: datetime | None = ...,
        on_stale: OnStale = ...,
    ) -> Loaded[Any]: ...
    def state(
        self,
        type: Any = None,
        *,
        default: Any = None,
        revision: int | None = None,
        as_of: datetime | None = None,
        on_stale: OnStale = "report",
    ) -> Loaded[Any]:
        """Load the state, migrated to today's schema, with a report of its stale fields.

        ``revision`` or ``as_of`` reads an older one. Before the first save you get ``default`` at revision 0.
        ``on_stale``: ``report`` only reports, ``refresh`` runs the registered refreshers and saves, ``raise`` raises
        ``Stale``.
        """
        check_choice("on_stale", on_stale, ("report", "refresh", "raise"))
        self.logbook.record()  # refuses a handle that names another owner
        if on_stale != "refresh":
            return self.statebook.load(type, default=default, revision=revision, as_of=as_of, on_stale=on_stale)
        if revision is not None or as_of is not None:
            raise Invalid("only the current state can be refreshed, not an older revision")
        record = self.statebook.record()
        if record is None or not record.head:
            return self.statebook.load(type, default=default)
        return self.statebook.refresh(type, self.logbook.touch())

    def save(
        self, value: Any, *, expect: Expect = None, schema: Any = None, by: str = "agent", key: str | None = None
    ) -> int:
        """Save the whole state as the next revision and return its number.

        ``expect`` is the revision this one is based on: by default the one this handle last loaded or saved (0 if
        none). Raises ``Conflict`` if someone else saved since. ``expect="any"`` overwrites any revision.
        """
        return self.statebook.save(value, expect=expect, schema=schema, by=by, key=key, touch=self.logbook.touch())

    def patch(self, path: str, value: Any, *, expect: int | None = None, by: str = "agent") -> int:
        """Set one path of the state and save. Without ``expect``, changes that others made elsewhere are kept."""
        return self.statebook.patch(path, value, expect=expect, by=by, touch=self.logbook.touch())

    def confirm(self, path: str, *, by: str = "agent") -> int:
        """Record that you just checked the value at a path and it still holds."""
        return self.statebook.confirm(path, by=by, touch=self.logbook.touch())

    def refresh(self, type: Any = None) -> Loaded[Any]:
        """Run the registered refreshers of every stale field, save what they found, and return the state."""
        self.logbook.record()  # refuses a handle that names another owner
        return self.statebook.refresh(type, self.logbook.touch())

    def revisions(self, last: int | None = None) -> list[Revision]:
        """List saved revisions, oldest first, without their values."""
        if last is not None:
            check_count("last", last)
        self.logbook.record()
        return self.statebook.revisions(last)

    # Checkpoints

    def checkpoint(self, name: str, *, note: str = "", replace: bool = False) -> Checkpoint:
        """Name this point of the thread. Each name can be used once, unless you give ``replace``."""
        record, state = self.logbook.with_state()
        point = self._point(None, record, state)
        put = checkpoints.to_put(self.id, name, point, note, record.scope, replace=replace)
        try:
            self.logbook.commit((put, Append("thread", self.id)))  # must not bring an erased thread back
        except Conflict as error:
            raise Conflict(
                f"thread {self.id!r} already has a checkpoint {name!r}; give replace=True to move it",
                thread=self.id, checkpoint=name,
            ) from error  # fmt: skip
        return checkpoints.to_checkpoint(self._checkpoint(name))

    def checkpoints(self) -> list[Checkpoint]:
        """List checkpoints, oldest first."""
        self.logbook.record()
        found = scan_all(self._core.engine, self._core.tenant, Query(checkpoints.KIND, thread=self.id))
        return [checkpoints.to_checkpoint(record) for record in reversed(list(found))]

    def rewind(self, to: str | int) -> Checkpoint:
        """Go back to a checkpoint, or to the moment after entry number ``to``. O(1): nothing is copied or deleted.

        Later entries stay stored; the checkpoint returned names the point where the thread was before.
        """
        if to is None:
            raise Invalid("say where to rewind to: the name of a checkpoint or the number of an entry")
        record, state = self.logbook.with_state()
        point, here = self._point(to, record, state), self._point(None, record, state)
        name = f"before-rewind-{self._core.clock.now()}"
        put = checkpoints.to_put(self.id, name, here, f"rewound to {to!r}", record.scope, replace=False)
        self.logbook.commit((put, *checkpoints.rewind_ops(self.id, point, record, state)))
        self.statebook.forget()
        return checkpoints.to_checkpoint(self._checkpoint(name))

    def fork(self, id: str, *, at: str | int | None = None, user: str | None = None, agent: str | None = None) -> Self:
        """Create a thread that shares this one's history up to a checkpoint, an entry number, or now. O(1)."""
        id = check_id(id, "thread id")
        with self._core.engine.snapshot() as view:  # everything the fork shares comes from one moment
            record, state = self.logbook.with_state(view)
            point = self._point(at, record, state)
            scope = Scope(
                record.scope.user if user is None else check_id(user, "user"),
                record.scope.agent if agent is None else check_id(agent, "agent"),
                id,
            )
            also = self._also_forked(view, id, scope, self._moment(point, record))
        origin = encode({"forked_from": {"thread": self.id, "entries": point.log.position}})
        new = Put("thread", id, origin, scope=scope, tags=record.tags)
        ops = checkpoints.fork_ops(id, point, new, Put("state", id, _EMPTY, scope=scope))
        self.logbook.commit((*ops, *also))
        return self._sibling(id, scope, record.tags)

    def _sibling(self, id: str, scope: Scope, tags: tuple[str, ...]) -> Self:
        return type(self)(self._core, id, scope, tags)

    def _also_forked(self, view: View, id: str, scope: Scope, moment: int) -> tuple[Op, ...]:
        """Operations for what else a fork shares as of a moment. The ledger itself has nothing more."""
        return ()

    def _moment(self, point: Point, record: Record) -> int:
        """The time of the last entry up to a point; a fork from the thread's end shares everything."""
        if point.log == record.mark:
            return _MOST
        found = self._core.engine.read(self._core.tenant, point.log, limit=1, newest=True)
        return found[0].time if found else 0

    # Inside

    def _checkpoint(self, name: str) -> Record:
        record = self._core.engine.get(self._core.tenant, checkpoints.KIND, checkpoints.record_id(self.id, name))
        if record is None:
            raise NotFound(f"thread {self.id!r} has no checkpoint {name!r}", thread=self.id, checkpoint=name)
        return record

    def _point(self, at: str | int | None, record: Record, state: Record | None) -> Point:
        if at is None:
            return Point(record.mark, state.mark if state is not None and state.head else None)
        if isinstance(at, str):
            return checkpoints.to_point(self._checkpoint(at))
        if type(at) is not int:
            told = "a point of a thread is the name of a checkpoint or the number of an entry"
            raise Invalid(f"{told}, not {quoted(at)}")
        event = self.logbook.event(record, at)
        if event is None and at != 0:
            raise NotFound(
                f"thread {self.id!r} has entries 1 to {record.head}, not {quoted(at)}", thread=self.id, number=at
            )
        known = None if event is None or state is None else self.statebook.mark_at(state, event.time)
        return Point(Mark(record.mark.stream, at), known)

    def _retag(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> ThreadInfo:
        def retagged() -> Put:
            record = self.logbook.existing()
            return Put("thread", self.id, record.body, record.version, record.scope, change(record.tags))

        compare_and_set(retagged, lambda put: self.logbook.commit((put,)), f"thread {self.id!r}", thread=self.id)
        return self.info()


Handle = TypeVar("Handle", bound="LedgerThread")


def sibling(thread: Handle, id: str, scope: Scope, tags: tuple[str, ...] = ()) -> Handle:
    """A handle of the same kind, to this thread or another of the same store."""
    return thread._sibling(id, scope, tags)


def to_info(record: Record) -> ThreadInfo:
    scope = record.scope
    return ThreadInfo(
        record.id,
        scope.user,
        scope.agent,
        record.tags,
        record.head,
        to_datetime(record.created),
        to_datetime(record.time),
    )


def check_tags(tags: Any) -> tuple[str, ...]:
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise Invalid(f"tags must be a collection of strings, not {quoted(tags)}")
    return tuple(check_id(tag, "tag") for tag in tags)


def check_count(what: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise Invalid(f"{what} must be a whole number of 0 or more (and of 64 bits), not {quoted(value)}")


def refuse_other_owner(record: Record, scope: Scope) -> None:
    """Refuse a handle whose owner differs from the thread's recorded owner."""
    mine, theirs = scope, record.scope
    if mine.user is not None and mine.user != theirs.user:
        raise Invalid(f"thread {record.id!r} belongs to user {theirs.user!r}, not {mine.user!r}", thread=record.id)
    if mine.agent is not None and theirs.agent is not None and mine.agent != theirs.agent:
        raise Invalid(f"thread {record.id!r} belongs to agent {theirs.agent!r}, not {mine.agent!r}", thread=record.id)
