"""The engine on one SQLite file: WAL, ``synchronous=FULL``, one writer with group commit, separate readers.

One connection writes; the leader of the group commit uses it, in ``BEGIN IMMEDIATE``. Reads go through a pool of
read-only connections. SQLite is apsw's own library, because the system's may have the WAL-reset bug. Other processes
may open the same file; they queue for the write lock, and no lock error reaches a caller before ``busy_timeout_s``.
Deliberately absent: connections shared across a fork (``sqlite_process`` closes them before it), and work on the
file itself (``sqlite_file``).
"""

from __future__ import annotations

import os
import random
import time as _time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast import atfork
from holdfast.clock import Clock
from holdfast.engine import lineage, relational, sqlite_file, sqlite_process, sqlite_scrub
from holdfast.engine.contract import (
    Commit,
    Interest,
    Notify,
    Op,
    Problem,
    Query,
    Receipt,
    Record,
    Removed,
    Scope,
    View,
)
from holdfast.engine.group import GroupCommit, Job
from holdfast.engine.plan import MISTAKES, Changes, Limits, Plan, Published
from holdfast.engine.relational import Keys, Reads, Row, RunStatement, Tending
from holdfast.engine.sqlite_file import pragma, translate, translated
from holdfast.engine.waiting import Waiters
from holdfast.errors import Conflict, Corrupt, HoldfastError, Misconfigured, OutcomeUnknown, Unavailable
from holdfast.ids import Ids

_NAPS_S = (0.002, 0.01)
_KNOWN_LIMIT = 20_000
_COMMON_TAG = 1_000
_SCRUB_NAP_S = 0.05
_HEADS = "SELECT name, (SELECT max(position) FROM feed WHERE tenant = num) FROM tenants WHERE name IN ({})"


class SqliteEngine(Reads):
    """Records and streams in one file."""

    durable = True

    def __init__(self, path: Path, clock: Clock, ids: Ids, *, busy_timeout_s: float = 60.0) -> None:
        super().__init__(self._run_outside, clock, remember=True, keys=_LocalKeys(self._run_outside))
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._closed = False
        self._idle: deque[apsw.Connection] = deque()
        self._waiters = Waiters(self, self._heads, _NAPS_S)
        self._seen: tuple[apsw.Connection, int] | None = None
        self._seen_heads: dict[str, int] = {}
        self._group = GroupCommit(self._commit_jobs)
        with sqlite_process.using():
            self._writer = _Writer(path, clock, ids, busy_timeout_s)
            sqlite_process.join(self)

    # Reading

    def feed(
        self, tenant: str, after: int = 0, limit: int = 100, timeout_s: float = 0.0, only: Interest | None = None
    ) -> list[Commit]:
        if timeout_s <= 0:
            return super().feed(tenant, after, limit, only=only)
        return self._waiters.feed(tenant, after, limit, timeout_s, only)

    def listen(
        self, tenant: str, after: int, call: Callable[[list[Commit]], None], only: Interest | None = None
    ) -> Callable[[], None]:
        return self._waiters.listen(tenant, after, call, only)

    def _heads(self, tenants: Collection[str]) -> Mapping[str, int]:
        """The heads of some feeds. While no connection writes, what was read last still holds."""
        with translated(self._path), self._reader() as connection:
            seen = connection, sqlite_file.pragma(connection, "data_version")
            if seen != self._seen or not self._seen_heads.keys() >= set(tenants):
                names = list(tenants)
                found = connection.execute(_HEADS.format(", ".join("?" * len(names))), names)
                self._seen_heads = {**dict.fromkeys(names, 0), **{name: head or 0 for name, head in found}}
                self._seen = seen
            return self._seen_heads

    @contextmanager
    def snapshot(self) -> Iterator[View]:
        with self._reader() as connection, translated(self._path), _frozen(connection):
            yield _reads(connection, self._clock)

    # Writing

    def commit(self, tenant: str, ops: Sequence[Op], time: int, actor: str | None = None) -> Receipt:
        atfork.notice()
        return self._group.commit(tenant, ops, time, actor)

    def submit(
        self, tenant: str, ops: Sequence[Op], time: int, notify: Notify, ticket: object, actor: str | None = None
    ) -> None:
        atfork.notice()
        self._group.submit(tenant, ops, time, notify, ticket, actor)

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
        if dry_run:
            return lineage.removed(relational.inside(self._run_outside, tenant, self._keys.tenant(tenant), scope))
        lineage.refuse_empty(scope)
        atfork.notice()
        erasure = _Erasure(scope, bury, frozenset(free))
        self._group.commit(tenant, (erasure,), time, actor)
        assert erasure.removed is not None
        return erasure.removed

    def _commit_jobs(self, jobs: list[Job]) -> None:
        """Commit a group. Work that is not a plan, such as an erasure, takes its turn in its own transaction."""
        batch: list[Job] = []
        with self._writer:
            for job in jobs:
                first = job.ops[0] if job.ops else None
                if isinstance(first, _Erasure | _Scrubbing):
                    self._commit_batch(batch)
                    batch = []
                    self._writer.erase(job) if isinstance(first, _Erasure) else self._writer.scrub(job)
                else:
                    batch.append(job)
            self._commit_batch(batch)
        self._waiters.announce()

    def _commit_batch(self, batch: list[Job]) -> None:
        """Commit batches together; if a value cannot be written, one by one, so that only its batch fails."""
        try:
            if batch:
                self._writer.commit(batch)
        except _Unwritable as refusal:
            if len(batch) == 1:
                batch[0].error = refusal.error
                return
            for job in batch:
                self._commit_batch([job])

    # Tending

    def scrub(self, timeout_s: float = 10.0) -> tuple[str, ...]:
        # A reader of an older snapshot needs the log. Commits wait only for one try, not for the reader.
        atfork.notice()
        deadline = _time.monotonic() + timeout_s
        while True:
            scrubbing = _Scrubbing()
            self._group.commit("", (scrubbing,), 0)
            if scrubbing.done:
                return ()
            if _time.monotonic() > deadline:
                raise Unavailable(
                    f"{self._path}: someone still reads an older snapshot, so its write-ahead log cannot be emptied; "
                    "try again when they are done",
                    path=str(self._path),
                )
            _time.sleep(_SCRUB_NAP_S)

    def backup(self, path: Path) -> None:
        draft = path.with_name(f".{path.name}.{os.getpid()}.{random.getrandbits(32):08x}.part")
        try:
            if path.exists():
                raise FileExistsError(path)
            draft.touch(exist_ok=False)  # gives a better reason than SQLite
            with translated(self._path), self._reader() as source:
                sqlite_file.copy_database(source, draft)
            problems = verify_file(draft, self._clock)
            if problems:
                raise Corrupt(f"the copy failed its check: {problems[0].where}: {problems[0].what}", problems=problems)
            sqlite_file.publish(draft, path)
        except FileExistsError as error:
            raise Conflict(f"{path} already exists; a backup never overwrites", path=str(path)) from error
        except OSError as error:
            raise Unavailable(f"cannot write the backup {path}: {error}", path=str(path)) from error
        finally:
            for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm"), Path(f"{draft}-journal")):
                with suppress(OSError):
                    leftover.unlink()

    def check(self, tenant: str | None = None) -> list[Problem]:
        with self._reader() as connection, translated(self._path):
            return check_connection(connection, self._clock, tenant)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        atfork.notice()
        self._waiters.close()
        self._group.close()
        with sqlite_process.using():
            self.disconnect()

    # Connections

    def disconnect(self) -> None:
        """Close every connection that is not in use; those that are needed again are opened again."""
        self._seen = None
        while self._idle:
            self._idle.pop().close()
        self._writer.close()

    def begin_anew(self) -> None:
        """In a forked child, drop remaining connections and waiting callers: they are the parent's."""
        self._idle, self._seen = deque(), None
        self._writer.leave_behind()
        self._group.begin_anew()

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        token = sqlite_process.enter()
        try:
            connection = self._borrow()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            sqlite_process.leave(token)

    def _borrow(self) -> apsw.Connection:
        if self._closed:
            raise Misconfigured("this store is closed")
        self._writer.identity.check_sometimes()
        try:
            return self._idle.pop()
        except IndexError:
            return sqlite_file.open_reader(self._path, self._busy_timeout_s, self._writer.identity)

    def _give_back(self, connection: apsw.Connection) -> None:
        if sqlite_process.is_inherited(connection):
            return  # this process was forked meanwhile
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _run_outside(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        token = sqlite_process.enter()
        try:
            connection = self._borrow()
            try:
                return connection.execute(sql, values).fetchall()
            except apsw.Error as error:
                raise translate(error, self._path) from error
            finally:
                self._give_back(connection)
        finally:
            sqlite_process.leave(token)


class _Inherited:
    """Replaces a connection of the parent, for code in the middle of a commit when a signal handler forks."""

    in_transaction = False

    def close(self, force: bool = False) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise sqlite_process.forked()


class _Unwritable(Exception):
    """A value of some batch cannot be bound to a statement. Nothing was committed; the batch is unknown."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class _Erasure(msgspec.Struct):
    """An erasure in the group commit, where it waits its turn like any batch, and what it removed."""

    scope: Scope
    bury: bool
    free: frozenset[str]
    removed: Removed | None = None


class _Scrubbing(msgspec.Struct):
    """An attempt to scrub the file in the group commit, and whether it was done."""

    done: bool = False


class _LocalKeys(Keys):
    """The small numbers by which this file's rows name tenants and streams.

    A number is never reused, but a stream that was erased and imported again has a new one. So streams are
    remembered only where writes by others are noticed.
    """

    numbered = "num"
    tagged = (
        "(SELECT * FROM records WHERE EXISTS "
        "(SELECT 1 FROM tags WHERE tenant = ? AND kind = ? AND tag = ? AND tags.id = records.id)) AS records"
    )
    """Record by record, newest first: few are looked at when many have the tag."""
    seldom = (
        "(SELECT records.* FROM (SELECT tenant AS of_tenant, kind AS of_kind, id AS named FROM tags "
        "WHERE tenant = ? AND kind = ? AND tag = ?) CROSS JOIN records "
        "ON records.tenant = of_tenant AND records.kind = of_kind AND records.id = named) AS records"
    )
    """From the tag to its records: the others are not looked at. A CROSS JOIN is not reordered."""

    def __init__(self, run: RunStatement, *, remember: bool = False) -> None:
        self._run = run
        self._remember = remember
        self._tenants: dict[str, int] = {}
        self._streams: dict[tuple[str, int], int] = {}

    def with_tag(self, tenant: str, query: Query) -> str:
        if query.limit >= _COMMON_TAG:
            return self.seldom
        sql = "SELECT count(*) FROM (SELECT 1 FROM tags WHERE tenant = ? AND kind = ? AND tag = ? LIMIT ?)"
        ((having,),) = self._run(tenant, sql, (self.tenant(tenant), query.kind, query.tag, _COMMON_TAG))
        return self.tagged if having == _COMMON_TAG else self.seldom

    def tenant(self, name: str) -> int:
        if name not in self._tenants:
            rows = self._run(name, "SELECT num FROM tenants WHERE name = ?", (name,))
            if not rows:
                return 0
            self._tenants[name] = rows[0][0]
        return self._tenants[name]

    def stream(self, tenant: str, number: int) -> int:
        num = self._streams.get((tenant, number))
        if num is None:
            sql = "SELECT num FROM strands WHERE tenant = ? AND stream = ?"
            rows = self._run(tenant, sql, (self.tenant(tenant), number))
            if not rows:
                return 0
            num = int(rows[0][0])
            if self._remember:
                self._streams[(tenant, number)] = num
        return num

    def forget(self) -> None:
        self._tenants.clear()
        self._streams.clear()


class _Writer:
    """The one connection that writes, with what it still knows from its last commits.

    It remembers records and feed positions as long as the data version, which its own commits move too, is where its
    last commit left it: then no other connection wrote, and the common commit asks nothing before it writes. Only the
    leader of the group commit may use it.
    """

    def __init__(self, path: Path, clock: Clock, ids: Ids, busy_timeout_s: float) -> None:
        self._path, self._ids, self._busy_timeout_s = path, ids, busy_timeout_s
        opened = sqlite_file.open_writer(path, busy_timeout_s)
        self._connection: apsw.Connection | _Inherited = opened
        self.identity = sqlite_file.Identity(path, opened)
        self._keys = _LocalKeys(self._run, remember=True)
        self._reads = Reads(self._run, clock, keys=self._keys)
        self._tending = Tending(self._run, self._run_many, self._keys)
        self._version = -1
        self._suspect = False
        self._using: object = None  # while a group is committed
        self._records: dict[tuple[str, str, str], Record | None] = {}
        self._positions: dict[str, int] = {}
        self._limits: dict[str, Limits] = {}
        self.read, self.strand, self.buried = self._reads.read, self._reads.strand, self._reads.buried

    def get(self, tenant: str, kind: str, id: str) -> Record | None:
        """Look up a record for a plan, asking the database only for what is not known."""
        name = (tenant, kind, id)
        if name not in self._records:
            self._records[name] = self._reads.get(tenant, kind, id)
        return self._records[name]

    def limits(self, tenant: str) -> Limits:
        if tenant not in self._limits:
            self._limits[tenant] = self._reads.limits(tenant)
        return self._limits[tenant]

    def commit(self, jobs: list[Job]) -> None:
        """Commit a group in one transaction; a job that is refused fails alone.

        Outcomes are reported only after the commit: a conflict may be with a batch of the same group.
        """
        plans: dict[str, Plan] = {}
        committing = False
        try:
            self._begin()
            ends = [self._decide(plans, job) for job in jobs]
            positions = {tenant: self._position(tenant) for tenant in plans}
            for tenant, plan in plans.items():
                self._write(tenant, plan.changes)
            committing = True
            self._end()
        except BaseException as error:
            raise self._abandon(error, committing) from error
        for tenant, plan in plans.items():
            self._learn(tenant, plan.changes)
        self._version = self._connection.data_version()
        for job, end in zip(jobs, ends, strict=True):
            if isinstance(end, Receipt):
                job.receipt = Receipt(positions[job.tenant] + end.feed, end.time, end.events, end.heads)
            else:
                job.error = end

    def _decide(self, plans: dict[str, Plan], job: Job) -> Receipt | Exception:
        """Plan one job. Its own mistake ends that job alone; trouble with the database ends the group."""
        plan = plans.get(job.tenant)
        if plan is None:
            plan = plans[job.tenant] = Plan(job.tenant, self, self._ids)
        try:
            return plan.add(job.ops, job.time, job.actor)
        except MISTAKES as error:
            return error

    def erase(self, job: Job) -> None:
        """Carry out an erasure, and record what it removed."""
        (erasure,) = job.ops
        assert isinstance(erasure, _Erasure)
        committing = False
        try:
            self._begin()
            removed, told = self._tending.erase(job.tenant, erasure.scope, bury=erasure.bury, free=erasure.free)
            if told:
                actor = lineage.actor_of(job.actor, erasure.scope)
                self._publish(job.tenant, [Published(job.time, actor, told)])
            position = self._position(job.tenant)
            committing = True
            self._end()
        except BaseException as error:
            raise self._abandon(error, committing) from error
        self._forget()
        erasure.removed = removed
        job.receipt = Receipt(position, job.time)

    def scrub(self, job: Job) -> None:
        """Make deleted data unreadable, unless others block it for longer than a moment."""
        (scrubbing,) = job.ops
        assert isinstance(scrubbing, _Scrubbing)
        try:
            self.identity.check()
            connection = self.connected()
            with sqlite_file.impatient(connection, self._busy_timeout_s):
                scrubbing.done = sqlite_scrub.scrub(connection, self._path)
        except apsw.BusyError:
            scrubbing.done = False
        except apsw.Error as error:
            raise translate(error, self._path) from error
        finally:
            self._forget_pages()
        job.receipt = Receipt(0, job.time)

    def __enter__(self) -> None:
        self._using = sqlite_process.enter()

    def __exit__(self, *_: object) -> None:
        using, self._using = self._using, None
        sqlite_process.leave(using)

    def close(self) -> None:
        """Do without the connection until the next commit, unless it is in use."""
        if self._using is None:
            self._connection.close()
            self._suspect = True

    def leave_behind(self) -> None:
        """In a forked child the connection is unusable, and must not even be closed."""
        self._connection, self._suspect = _Inherited(), True

    def _forget_pages(self) -> None:
        """Drop the pages in memory: they hold what was just overwritten in the file."""
        connection = self.connected()
        if pragma(connection, "locking_mode") != "exclusive":
            connection.close()
            self._suspect = True

    def connected(self) -> apsw.Connection:
        """The connection, reopened if it was closed or cannot be trusted."""
        if self._suspect or isinstance(self._connection, _Inherited):
            self._connection = sqlite_file.open_writer(self._path, self._busy_timeout_s, self.identity)
            self.identity.note_log()
            self._suspect = False
            self._version = -1  # data versions of two connections are unrelated
        return self._connection

    def _begin(self) -> None:
        self.identity.check()
        sqlite_file.begin(self.connected, self._busy_timeout_s)
        if self._connection.data_version() != self._version or len(self._records) > _KNOWN_LIMIT:
            self._forget()
        self._version = -1  # until the end of this commit is learned, nothing remembered may be trusted again

    def _end(self) -> None:
        """Commit. It is not acknowledged if the file was moved or replaced meanwhile: the commit went with it."""
        self._connection.execute("COMMIT")
        self.identity.check()

    def _write(self, tenant: str, changes: Changes) -> None:
        if not changes:
            return
        if not self._keys.tenant(tenant):
            self._run(tenant, "INSERT INTO tenants (name) VALUES (?)", (tenant,))
        relational.write(tenant, changes, self._run_many, self._keys, source=self)
        if changes.released:
            self._tending.prune(tenant, changes.released, changes.alive())
            self._keys.forget()  # a stream that was erased and imported again gets another number
        self._publish(tenant, changes.feed)
        self._tending.finish(tenant, changes, self._position(tenant))
        if changes.grown or changes.limits or changes.released:
            self._limits.pop(tenant, None)

    def _publish(self, tenant: str, feed: Sequence[Published]) -> None:
        if feed:
            place, before = self._keys.tenant(tenant), self._position(tenant)
            rows = [relational.feed_row(place, before + at, one) for at, one in enumerate(feed, 1)]
            self._run_many(tenant, relational.INSERT_FEED, rows)
            self._positions[tenant] = before + len(rows)

    def _position(self, tenant: str) -> int:
        if tenant not in self._positions:
            sql = "SELECT max(position) FROM feed WHERE tenant = ?"
            self._positions[tenant] = self._run(tenant, sql, (self._keys.tenant(tenant),))[0][0] or 0
        return self._positions[tenant]

    def _learn(self, tenant: str, changes: Changes) -> None:
        for name, record in (*changes.records.items(), *changes.moved.items()):
            self._records[(tenant, *name)] = record

    def _forget(self) -> None:
        self._records.clear()
        self._positions.clear()
        self._limits.clear()
        self._keys.forget()

    def _run(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def _run_many(self, tenant: str, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def _abandon(self, error: BaseException, committing: bool) -> BaseException:
        """Roll back, and translate the error into ours."""
        self._forget()
        # After a failed fsync only the file itself can say what it holds: the next commit reopens it.
        self._suspect = self._suspect or (committing and isinstance(error, apsw.IOError))
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            self._suspect = True
        if self._suspect:
            self._connection.close(True)
        if not isinstance(error, apsw.Error):
            unwritable = isinstance(error, MISTAKES) and not isinstance(error, HoldfastError) and not committing
            return _Unwritable(error) if unwritable else error
        if committing and isinstance(error, apsw.IOError):
            return OutcomeUnknown(f"the disk failed while committing to {self._path}: {error}")
        return translate(error, self._path)


def _reads(connection: apsw.Connection, clock: Clock) -> Reads:
    run = _runner(connection)
    return Reads(run, clock, remember=True, frozen=True, keys=_LocalKeys(run, remember=True))


@contextmanager
def _frozen(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        # A deferred transaction takes its snapshot with its first read, not with BEGIN.
        connection.execute("SELECT 1 FROM tenants LIMIT 1").fetchall()
        yield
    finally:
        connection.execute("ROLLBACK")


def _runner(connection: apsw.Connection) -> relational.RunStatement:
    def run(tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return connection.execute(sql, values).fetchall()

    return run


def verify_file(path: Path, clock: Clock) -> list[Problem]:
    """Check a database file that nobody is writing to."""
    with translated(path), sqlite_process.using():
        connection = sqlite_file.connect(path, apsw.SQLITE_OPEN_READONLY)
        try:
            sqlite_file.recognise(connection, path)
            return check_connection(connection, clock)
        finally:
            connection.close()


def check_connection(connection: apsw.Connection, clock: Clock, tenant: str | None = None) -> list[Problem]:
    """Check the pages and indexes first; walk the chains only over a file that is sound."""
    with _frozen(connection):
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)").fetchall()]
        if found != ["ok"]:
            return [Problem("database file", text) for text in found]
        run = _runner(connection)
        keys = _LocalKeys(run)
        return relational.check(Reads(run, clock, remember=True, keys=keys), run, keys, tenant)
