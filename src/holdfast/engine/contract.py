"""What a storage engine promises: bytes, a few indexed columns, and one atomic commit.

Two shapes of data. A **record** is a named thing with a body and a version. A record may own a **stream**: an
append-only list of events numbered 1, 2, 3 … without gaps, chained by digest. A fork makes a new stream that shares
its parent's first events instead of copying them. Everything is changed by one verb, ``commit``, which takes a list
of operations and applies all of them or none; every other verb reads or maintains.

Each promise in a docstring here is a test in ``holdfast.testing.contract``. Deliberately absent: what a thread, a
state or a step is (the rooms know), SQL, encodings, and any lock, lease or queue (built above compare-and-set, once).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

GENESIS = bytes(16)
STREAM = "stream"
"""The kind under which a stream is buried, by its number."""


class Scope(msgspec.Struct, frozen=True):
    """Where a thing belongs inside its tenant."""

    user: str | None = None
    agent: str | None = None
    thread: str | None = None


class Mark(msgspec.Struct, frozen=True):
    """A point of a stream that never moves, whatever is appended, rewound or forked later."""

    stream: int
    position: int


class Event(msgspec.Struct, frozen=True):
    """One item of a stream. ``position`` and ``digest`` are given by the engine when it is appended."""

    kind: str
    body: bytes
    time: int
    key: str | None = None
    position: int = 0
    digest: bytes = b""


class Record(msgspec.Struct, frozen=True):
    """A named thing: its body, its version, its place, and the head of its stream when it owns one."""

    kind: str
    id: str
    version: int
    body: bytes
    scope: Scope
    created: int
    time: int
    expires: int | None = None
    tags: tuple[str, ...] = ()
    stream: int | None = None
    base: int = 0
    head: int = 0
    digest: bytes = GENESIS
    derived: bool = False

    @property
    def mark(self) -> Mark:
        if self.stream is None:
            raise ValueError(f"{self.kind} {self.id!r} owns no stream")
        return Mark(self.stream, self.head)


def same_bytes(stored: Event, offered: Event) -> bool:
    """The default meaning of "the same content": equal kind and equal bytes."""
    return stored.kind == offered.kind and stored.body == offered.body


class Put(msgspec.Struct, frozen=True):
    """Write a record's body. ``expect``: None any version, 0 it must be new, n it must be at version n.

    As with ``Append``, the record's time never goes back. A ``derived`` record can be rebuilt from the others: it is
    not in the feed, and a batch of only such records waits for no other commit of the tenant.
    """

    kind: str
    id: str
    body: bytes
    expect: int | None = None
    scope: Scope = Scope()
    tags: tuple[str, ...] = ()
    expires: int | None = None
    derived: bool = False


class Delete(msgspec.Struct, frozen=True):
    """Remove a record and give up its stream. Deleting an absent record is not an error unless ``expect`` names a
    version.

    With ``erase`` the feed forgets its id as well, as with the verb of that name. ``bury`` leaves a tombstone for the
    thing itself, so that no import brings it back: for its stream, whose number is never reused, while the id
    stays free; for its id if it owns no stream. ``derived`` is as with ``Put``.
    """

    kind: str
    id: str
    expect: int | None = None
    erase: bool = False
    derived: bool = False
    bury: bool = False


class Append(msgspec.Struct, frozen=True):
    """Add events to a record's stream, and make its time the commit's.

    An event whose key the stream already holds is not added again; ``same`` decides whether it is a repetition
    (the stored event is returned) or other content under the same key (``KeyReused``). When every event is a
    repetition, ``expect`` is not checked: the first attempt already met it. ``expect``: None any head, n the head
    must be n. ``new`` is the record to create if there is none; without it an absent record is ``NotFound``. If
    ``new`` names a user, agent or thread, a record that belongs to another one is ``Invalid``.
    With no events the record is only touched. With ``whole`` its events belong together: some of them repeated and
    others not is ``KeyReused``.

    The time of a commit is never before what the record already holds: if a caller's clock is behind, events that
    carry the commit's time get a later one.
    """

    kind: str
    id: str
    events: tuple[Event, ...] = ()
    expect: int | None = None
    new: Put | None = None
    same: Callable[[Event, Event], bool] = same_bytes
    whole: bool = False


class Fork(msgspec.Struct, frozen=True):
    """Make a record's stream continue from a mark, sharing everything up to it: O(1) in storage.

    With ``new`` the record must not exist. Without it the record must exist and, if ``expect`` is given, be at that
    head; its own later events stay stored and can still be reached by a mark.
    """

    kind: str
    id: str
    source: Mark
    new: Put | None = None
    expect: int | None = None


class Guard(msgspec.Struct, frozen=True):
    """Write nothing, but fail the commit with ``Conflict`` unless the record is at this version (0: absent).

    With ``stream`` the record must also own that stream: one that was erased and recreated has the old versions
    again, but never the old stream.
    """

    kind: str
    id: str
    version: int
    stream: int | None = None


class Strand(msgspec.Struct, frozen=True):
    """A stream's own part: its owner, what it shares (``parent`` up to ``base``), and the events it added itself."""

    stream: int
    kind: str
    id: str
    parent: int | None = None
    base: int = 0
    digest: bytes = GENESIS
    events: tuple[Event, ...] = ()


class Adopt(msgspec.Struct, frozen=True):
    """Import records and strands as they were in another store, keeping every number, time and digest.

    What exists here and is equal, or further along, is left alone, so repeating is harmless; what exists here and
    differs is a ``Conflict``, and what was erased here and no longer exists is ``Erased``. Strands name their
    ancestors first.
    """

    records: tuple[Record, ...] = ()
    strands: tuple[Strand, ...] = ()


class Trim(msgspec.Struct, frozen=True):
    """Drop the items of the feed up to a position. The newest one always stays, so positions continue without a gap."""

    upto: int


class Limit(msgspec.Struct, frozen=True):
    """Set or change how much a tenant may hold (None: no limit); existing data is counted at once.

    ``measure`` is "events" (of streams whose owners are of ``kind``), "records" (of ``kind``) or "bytes" (all bodies;
    ``kind`` is empty). A commit that would exceed it is ``QuotaExceeded``; one that makes nothing larger never is.
    """

    measure: str
    kind: str
    most: int | None


Op = Put | Delete | Append | Fork | Guard | Adopt | Trim | Limit


class Receipt(msgspec.Struct, frozen=True):
    """What a commit did. ``feed`` is its position, or the last one if it changed nothing that is in the feed.
    ``events`` holds, per Append, its events as stored (repetitions included)."""

    feed: int
    time: int
    events: tuple[tuple[Event, ...], ...] = ()
    heads: tuple[int, ...] = ()


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One thing a commit changed: ``version`` is a record's version, or a stream's new head. For erased things
    neither the id nor the scope is known."""

    action: str
    kind: str
    id: str
    version: int
    scope: Scope = Scope()


class Commit(msgspec.Struct, frozen=True):
    """One item of the feed: what one batch changed, when, and who asked for it."""

    position: int
    time: int
    changes: tuple[Change, ...]
    actor: str | None = None


class Interest(msgspec.Struct, frozen=True):
    """Which changes of a feed to return: of these kinds, of this user, agent and thread, or of no user at all.

    An erasure goes to everybody, because it does not say whom it was about.
    """

    kinds: frozenset[str] | None = None
    user: str | None = None
    agent: str | None = None
    thread: str | None = None
    unowned: bool = False

    def wants(self, change: Change) -> bool:
        if self.kinds is not None and change.kind not in self.kinds:
            return False
        if change.action == "erase":
            return True
        if self.unowned and change.scope.user is not None:
            return False
        for wanted, found in (
            (self.user, change.scope.user),
            (self.agent, change.scope.agent),
            (self.thread, change.scope.thread),
        ):
            if wanted is not None and wanted != found:
                return False
        return True

    def of(self, commit: Commit) -> Commit | None:
        """The commit with only the wanted changes, or None if it has none of them."""
        changes = tuple(change for change in commit.changes if self.wants(change))
        return msgspec.structs.replace(commit, changes=changes) if changes else None


class Removed(msgspec.Struct, frozen=True):
    """What an erasure removed, or would remove: how many records of each kind, and the users and agents they
    belonged to. Derived records go with them and are not counted."""

    counts: Mapping[str, int] = {}
    owners: frozenset[Scope] = frozenset()

    @property
    def records(self) -> int:
        return sum(self.counts.values())


class Query(msgspec.Struct, frozen=True):
    """Which records to scan. Order is newest activity first; ``before`` continues a page from its last record.

    Expired records are left out; ``expired_before`` returns only those that expired up to a moment.
    """

    kind: str
    user: str | None = None
    agent: str | None = None
    thread: str | None = None
    tag: str | None = None
    since: int | None = None
    until: int | None = None
    before: tuple[int, str] | None = None
    expired_before: int | None = None
    limit: int = 100


class Problem(msgspec.Struct, frozen=True):
    """One damaged thing, named so that a person can find it."""

    where: str
    what: str
    tenant: str = ""
    kind: str = ""
    id: str = ""
    position: int = 0


class View(Protocol):
    """Reads. Each call sees every commit acknowledged before it began (read your writes)."""

    def get(self, tenant: str, kind: str, id: str) -> Record | None:
        """Return the record, or None."""
        ...

    def scan(self, tenant: str, query: Query) -> list[Record]:
        """Return matching records by (time, id) descending, at most ``limit``; see ``Query`` for expired ones."""
        ...

    def read(
        self,
        tenant: str,
        mark: Mark,
        *,
        after: int = 0,
        limit: int | None = None,
        newest: bool = False,
        key: str | None = None,
    ) -> list[Event]:
        """Return events of a stream up to ``mark`` in ascending order, those with position over ``after``.

        ``limit`` keeps the first ones, or with ``newest`` the last ones; ``key`` keeps the one that carries it.
        Events shared with a parent stream read as the stream's own. The cost grows with what is returned, not with
        what came before it. A stream that does not exist has no events.
        """
        ...

    def feed(
        self, tenant: str, after: int = 0, limit: int = 100, timeout_s: float = 0.0, only: Interest | None = None
    ) -> list[Commit]:
        """Return commits after a position in the order they became durable; positions have no gap.

        If there is none, wait up to ``timeout_s`` for one (a snapshot never waits). ``only`` leaves out what does
        not match; the cost grows with a user's commits, not with those of other users. ``FeedTrimmed``
        when something after ``after`` was dropped.
        """
        ...

    def head(self, tenant: str) -> int:
        """Return the position of the newest commit, 0 when there is none."""
        ...

    def strand(self, tenant: str, stream: int) -> Strand | None:
        """Return a stream's own part without its events, or None."""
        ...

    def tenants(self) -> list[str]:
        """Return every tenant that holds data, sorted. ``Misconfigured`` for a role that may not list them."""
        ...


class Engine(View, Protocol):
    """A place that keeps records and streams. Safe for many threads; durable ones also for many processes."""

    durable: bool

    def commit(self, tenant: str, ops: Sequence[Op], time: int, actor: str | None = None) -> Receipt:
        """Apply all operations in order, atomically, and return once they are durable.

        ``actor`` is who asked for it, as recorded in the feed. Fails with ``Conflict`` (an expectation was not met),
        ``NotFound``, ``Erased``, ``KeyReused``, ``QuotaExceeded``, ``Unavailable`` (nothing was written) or
        ``OutcomeUnknown`` (it may have been): in every case but the last, nothing changed. Commits of one tenant are
        serial: each sees all of those before it. Only batches of derived records may overtake each other, and not
        if they concern the same records.
        """
        ...

    def snapshot(self) -> AbstractContextManager[View]:
        """Return a view in which nothing changes while it is open, whatever others commit."""
        ...

    def erase(
        self,
        tenant: str,
        scope: Scope,
        *,
        time: int,
        bury: bool = True,
        free: Collection[str] = (),
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Removed:
        """Remove every record in the scope, with all events that no other stream reaches, atomically; return a summary.

        Older items of the feed keep what happened, but no longer to whom: changes in the scope, and those of nobody
        with the id of such a record, lose id and scope, even if it was deleted before. An empty scope is refused.
        ``bury`` leaves a tombstone for each id (a digest, not the id) so that a late writer gets ``Erased`` instead of
        bringing it back, and one for each stream, so that no import does. The ids of the kinds in ``free`` stay free.
        Derived records leave none. With ``dry_run`` nothing changes.
        """
        ...

    def check(self, tenant: str | None = None) -> list[Problem]:
        """Recompute every digest and count, of one tenant or of all; return every mismatch."""
        ...

    def close(self) -> None:
        """Release everything. Closing twice is harmless; any other call afterwards is ``Misconfigured``."""
        ...


class Replica(Protocol):
    """A copy that follows an engine, to read from where an answer may be some seconds old; the engine says how many."""

    def reader(self, tenant: str) -> Engine:
        """Return an engine that reads a tenant from the copy while it is fresh enough, and does all else itself."""
        ...

    def require(self, tenant: str) -> None:
        """Have every read of a reader that begins after this see what was committed before it."""
        ...

    def close(self) -> None:
        """Release everything that is the replica's own."""
        ...


Outcome = tuple[object, Receipt | None, BaseException | None]
"""The outcome of a submitted batch: the caller's ticket, and either the receipt or the error."""

Notify = Callable[[list[Outcome]], None]


@runtime_checkable
class Submits(Protocol):
    """A capability: commits that can be handed over without blocking a thread for each."""

    def submit(
        self, tenant: str, ops: Sequence[Op], time: int, notify: Notify, ticket: object, actor: str | None = None
    ) -> None:
        """Like ``commit``, but return at once.

        ``notify`` is called from another thread, once for all batches of the same group that gave the same
        ``notify``; a ``ticket`` says which is which. An accepted batch is carried out whatever its caller does.
        """
        ...


@runtime_checkable
class Copies(Protocol):
    """A capability: physical copies. Without it, the store writes a logical copy."""

    def backup(self, path: Path) -> None:
        """Write a consistent, verified copy of everything while others keep writing."""
        ...


@runtime_checkable
class Listens(Protocol):
    """A capability: waiting for a commit without a thread for each waiting caller."""

    def listen(
        self, tenant: str, after: int, call: Callable[[list[Commit]], None], only: Interest | None = None
    ) -> Callable[[], None]:
        """Call ``call`` once, from another thread, with the matching commits after a position, once there are any.

        It is called with an empty list when there are too many to keep, and when the engine closes: then the callee
        reads them itself. The function returned ends the waiting; calling it twice, or after the call, is harmless.
        """
        ...


@runtime_checkable
class Measures(Protocol):
    """A capability: reporting how much a tenant holds and may hold, for each ``Limit``."""

    def limits(self, tenant: str) -> Mapping[tuple[str, str], tuple[int, int]]:
        """Return the limit and the amount held, by measure and kind."""
        ...


@runtime_checkable
class Buries(Protocol):
    """A capability: knowing what was erased forever."""

    def buried(self, tenant: str, kind: str, id: str) -> bool:
        """Whether a record of this kind and id was buried; of the kind ``STREAM``, whether the stream was."""
        ...


@runtime_checkable
class Scrubs(Protocol):
    """A capability: its own files, in which deleted data can still be read for a while."""

    def scrub(self, timeout_s: float = 10.0) -> tuple[str, ...]:
        """Make data deleted before this call unreadable in the files; return what could not be done, in words.

        ``Unavailable`` if a reader prevented it for that long; repeating it is harmless.
        """
        ...


@runtime_checkable
class Timed(Protocol):
    """A capability: a clock that everyone who writes to this store shares, whatever their machines' clocks say.

    An engine whose writers are all on one machine has no need of it; there the store's own clock is that clock.
    """

    def now(self) -> int:
        """Return the microseconds since 1970 in UTC by the shared clock."""
        ...


@runtime_checkable
class TimesOut(Protocol):
    """A capability: reads may be limited in time, and this lifts the limit."""

    def patiently(self) -> AbstractContextManager[None]:
        """Let the reads of this thread or task take as long as they need, until the block ends."""
        ...


@runtime_checkable
class Fetches(Protocol):
    """A capability: many records or events in one query, for engines with a network in between."""

    def get_many(self, tenant: str, kind: str, ids: Sequence[str]) -> list[Record]:
        """Return those of the named records that exist, in any order."""
        ...

    def ids_tagged(self, tenant: str, kind: str, tags: Sequence[str], limit: int) -> list[tuple[str, str]]:
        """Return at most so many pairs of one of these tags and the id of a record that has it, expired or not."""
        ...

    def events_at(self, tenant: str, marks: Sequence[Mark]) -> list[tuple[Mark, Event]]:
        """Return the existing events at these places, each by the stream that stores it, in any order."""
        ...
