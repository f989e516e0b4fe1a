"""The engine on Postgres: psycopg 3 with a pool, no session state, and row-level security under every statement.

A commit is one call to the server (``postgres_commit``). It is planned from what was read without a lock, or is still
known, and the call takes the tenant's row, checks that all of that still holds, writes, and commits: the row is held
while the server works and flushes, never while it waits for a client. A commit that keeps losing takes the row
first, reads, plans and writes, and cannot lose; so does work that reads and writes in turns, such as an erasure. Both
ways the commits of a tenant are serial, and feed positions become visible in their order. A group takes its tenants in
order of name, so two groups cannot deadlock. The tenant is set inside each transaction with ``set_config(…, true)``,
statements are not prepared, and nothing is LISTENed to, so a transaction pooler may stand in between. Settings of the
same kind bound how long a dead client can hold a tenant, and keep a commit durable where the server's default is not.

Work that lost a race or its connection is run again; that is safe until a commit is sent. A connection that breaks
after that leaves the outcome unknown, and the caller gets ``OutcomeUnknown``. Dead connections are found by using them,
or by a closing message that waits to be read, not by a query before each use. Deliberately absent: a physical backup,
and how to connect, set up the database and interpret its errors (``postgres_database``).
"""

from __future__ import annotations

import os
import random
import select
import time as _time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from itertools import count
from typing import Any, NamedTuple, TypeVar

import msgspec
import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from holdfast import atfork
from holdfast.clock import Clock
from holdfast.engine import lineage, relational
from holdfast.engine.contract import Commit, Interest, Notify, Op, Problem, Receipt, Removed, Scope, View
from holdfast.engine.group import GroupCommit, Job
from holdfast.engine.plan import Changes, Published
from holdfast.engine.postgres_commit import (
    CALL,
    LOAD,
    Ends,
    FreshIds,
    LoadedRows,
    NeededRows,
    PlannedGroup,
    RowCache,
    needed_by,
)
from holdfast.engine.postgres_database import BECOME_WRITER, RACES, Connection, PostgresDatabase, refused
from holdfast.engine.postgres_options import PostgresOptions, PostgresSettings
from holdfast.engine.relational import Keys, Reads, Row, RunStatement, Tending
from holdfast.engine.waiting import Waiters
from holdfast.errors import HoldfastError, Invalid, Misconfigured, OutcomeUnknown, Unavailable
from holdfast.ids import Ids

T = TypeVar("T")

_FREE_TRIES = 2  # tries without a lock before taking one
_WRITE_TRIES = 8
_READ_TRIES = 2  # an idle connection may have died unnoticed; the second one is new
_NAP_S, _RACE_NAP_S = 0.05, 0.005
_NAPS_S = (0.01, 0.1)

_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_FREEZE = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BECOME = b"SELECT set_config('holdfast.tenant', %s, true)"
_TAKE = "SELECT holdfast_take(?)"
_DROP = "DELETE FROM tenants WHERE name = ?"
_HEAD = b"SELECT name, feed FROM tenants WHERE name = %s"
_POSITION = "SELECT pg_is_in_recovery(), coalesce((SELECT feed FROM tenants WHERE name = ?), 0)"
_COMMIT_AT = "SELECT time, changes FROM feed WHERE tenant = ? AND position = ?"
_STORE = "SELECT pg_is_in_recovery(), to_regclass('holdfast_meta')::oid::bigint, current_database()"
_SYSTEM = "SELECT system_identifier FROM pg_control_system()"
_STANDBY_S = 1.0  # a replica is given up sooner than a primary, which can answer in its place
_UNCHECKED = (False, None, None, None, None)
_NOT_BY_ITSELF = {"25001", "25006"}  # by default transactions are not READ COMMITTED here, or read only
_PATIENT: ContextVar[bool] = ContextVar("holdfast_patient", default=False)


class _ServerKeys(Keys):
    """Tenants by their names: the server looks their numbers up (``_dialect``), so none can be out of date here."""

    def tenants(self, run: RunStatement) -> list[str]:
        """List the tenants, if the role may: any other role would see one or none, and take it for all."""
        sql = "SELECT row_security_active('tenants'), ARRAY(SELECT name FROM tenants ORDER BY name), current_user"
        ((walled, names, role),) = run("", sql)
        if walled:
            raise Misconfigured(
                f"the role {role!r} may not list tenants: only the owner of the tables or a role with BYPASSRLS may",
                role=role,
            )
        return list(names)


KEYS = _ServerKeys()


class ServerIdentity(NamedTuple):
    """Whether an engine's server is a replica, what it has in common with its primary, and, once it has it, a table."""

    follows: bool
    table: int | None
    store: tuple[Any, ...]


class PostgresEngine(Reads):
    """Records and streams in a Postgres database."""

    durable = True

    def __init__(
        self,
        url: str,
        clock: Clock,
        ids: Ids,
        options: PostgresOptions | None = None,
        *,
        standby_of: PostgresEngine | None = None,
    ) -> None:
        super().__init__(self._run_outside, clock, remember=True, keys=KEYS)
        self._ids = ids
        self._database = PostgresDatabase(url, options, None if standby_of is None else standby_of.for_standby())
        self._closed = False
        self._memory = RowCache()
        self._explicit = self._database.settings.schema is not None  # what is set for a transaction needs one
        self._waiters = Waiters(self, self._heads, _NAPS_S)
        if standby_of is None:
            self._database.prepare()
        self.reached: dict[str, int] = {}
        self._reaching = atfork.lock()
        self._opening, self._lent = atfork.lock(), set[Connection]()
        self._pool: ConnectionPool[Connection] | None = self._database.pool()
        self._group = GroupCommit(self._commit_jobs)
        atfork.join(in_child=self._begin_anew)

    def __str__(self) -> str:
        return str(self._database)

    @property
    def clock(self) -> Clock:
        return self._clock

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

    def head(self, tenant: str) -> int:
        return self._heads([tenant]).get(tenant, 0)

    def _heads(self, tenants: Collection[str]) -> dict[str, int]:
        """The heads of some feeds. Each is read in its tenant's name: a plain role sees no other tenant."""

        def ask(connection: Connection) -> dict[str, int]:
            with connection.pipeline():
                self._set_up(connection)
                cursors = []
                for tenant in tenants:
                    connection.execute(_BECOME, (tenant,))
                    cursors.append(connection.execute(_HEAD, (tenant,), binary=True))
            return dict(row for cursor in cursors for row in cursor.fetchall())

        return self._insist(ask, _READ_TRIES)

    def now(self) -> int:
        """The server's clock, because leases are compared by machines whose own clocks differ."""
        return int(self._run_outside("", "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])

    @contextmanager
    def snapshot(self) -> Iterator[View]:
        with self._frozen() as run:
            yield Reads(run, self._clock, remember=True, frozen=True, keys=KEYS)

    # Reading beside a replica

    def for_standby(self) -> PostgresSettings:
        """The settings of a replica where its own address says nothing else."""
        own = self._database.settings
        waits = {
            "pool_timeout": min(own.pool_timeout, _STANDBY_S),
            "connect_timeout": min(own.connect_timeout, _STANDBY_S),
        }
        return msgspec.structs.replace(own, **waits)

    def reach(self, tenant: str, position: int) -> None:
        """Note a position that this process committed or saw; ``reached`` has the newest of each tenant."""
        with self._reaching:  # of two threads, the later one must not take back what the other reached
            self.reached[tenant] = max(position, self.reached.get(tenant, 0))

    def ask_at(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> tuple[Row, list[Row]]:
        """Run one query; say first whether this is a replica and up to which position of the feed the query sees."""

        def ask(connection: Connection) -> tuple[Row, list[Row]]:
            with connection.pipeline():
                connection.execute(_FREEZE)
                self._set_up(connection)
                connection.execute(_BECOME, (tenant,))
                seen = connection.execute(_dialect(_POSITION), (tenant,), binary=True)
                cursor = connection.execute(_dialect(sql), values, binary=True)
                connection.execute(b"COMMIT")
            return seen.fetchall()[0], cursor.fetchall()

        return self._insist(ask, _READ_TRIES)

    @contextmanager
    def snapshot_at(self, tenant: str) -> Iterator[tuple[Row, View]]:
        """A snapshot, with what ``ask_at`` says of it."""
        with self._frozen() as run:
            yield run(tenant, _POSITION, (tenant,))[0], Reads(run, self._clock, remember=True, frozen=True, keys=KEYS)

    def identity(self) -> ServerIdentity:
        """Which store of which server this is, and whether it is a replica."""
        follows, table, database = self._run_outside("", _STORE)[0]
        try:
            ((system,),) = self._run_outside("", _SYSTEM)
        except Misconfigured:  # this role may not ask
            system = None
        return ServerIdentity(follows, table, (system, database, self._database.settings.schema))

    def newest(self, tenant: str) -> tuple[int, list[Row]]:
        """The newest commit of a tenant: its position, and what the feed says of it."""
        position = self.head(tenant)
        return position, self._run_outside(tenant, _COMMIT_AT, (tenant, position))

    def contradicts(self, tenant: str, position: int, commit: list[Row]) -> bool:
        """Whether a replica cannot have this commit from here. One that was trimmed meanwhile says nothing."""
        mine = self._run_outside(tenant, _COMMIT_AT, (tenant, position))
        return self.head(tenant) < position or bool(mine and commit and mine != commit)

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
            return lineage.removed(relational.inside(self._run_outside, tenant, tenant, scope))
        lineage.refuse_empty(scope)

        def work(session: _Session) -> tuple[tuple[Removed, psycopg.Cursor[Row] | None], bool]:
            called = None
            made = session.run(tenant, _TAKE, (tenant,))[0][0]
            removed, told = Tending(session.run, session.run_many).erase(tenant, scope, bury=bury, free=free)
            if told:
                changes = Changes()
                changes.feed.append(Published(time, lineage.actor_of(actor, scope), told))
                called = session.call(tenant, LoadedRows(session.run, self._clock, KEYS, NeededRows()), changes)
            elif made:  # to be held, and there is nothing in it
                session.run(tenant, f"{_DROP} RETURNING 1", (tenant,))
            return (removed, called), True

        removed, called = self._insist(lambda connection: self._transact(connection, work), _WRITE_TRIES)
        self._memory.clear()
        if called is not None:
            self.reach(tenant, called.fetchall()[0][0])
        self._waiters.announce()
        return removed

    def _commit_jobs(self, jobs: list[Job]) -> None:
        """Commit a group in one transaction; a job that is refused fails alone."""
        try:
            ends = self._commit(jobs)
        except Invalid:
            # The server refuses a value and does not say which batch it came from.
            if len(jobs) == 1:
                raise
            for job in jobs:
                self._commit_alone(job)
            return
        for job, end in zip(jobs, ends, strict=True):
            if isinstance(end, Receipt):
                job.receipt = end
                self.reach(job.tenant, end.feed)
            else:
                job.error = end
        self._waiters.announce()

    def _commit_alone(self, job: Job) -> None:
        try:
            self._commit_jobs([job])
        except HoldfastError as error:
            job.error = error

    def _commit(self, jobs: list[Job]) -> Ends:
        """Plan without a lock, and let the server check; after several losses take the tenants first, to be sure."""
        tries, ids = count(), FreshIds(self._ids)

        def attempt(connection: Connection) -> Ends:
            number = next(tries)
            if number < _FREE_TRIES:
                decided = self._decide_free(connection, jobs, ids, remember=number == 0)
                if decided is not None:
                    return self._call(connection, decided)
            return self._transact(connection, lambda session: self._decide_alone(session, jobs, ids))()

        return self._insist(attempt, _WRITE_TRIES)

    def _decide_free(
        self, connection: Connection, jobs: list[Job], ids: FreshIds, *, remember: bool
    ) -> PlannedGroup | None:
        """Plan all jobs from what is remembered or read; None if that has to be decided under a lock."""
        wanted = needed_by(jobs)
        if any(one.adopts or self._memory.is_contended(tenant, one.names) for tenant, one in wanted.items()):
            return None
        known = {tenant: self._memory.recall(tenant, names) for tenant, names in wanted.items()}
        if remember and all(known.values()) and _is_silent(connection):
            decided = self._plan(connection, jobs, ids, wanted, known)
            if decided.is_certain:
                return decided if decided.is_plain else None
        decided = self._plan(connection, jobs, ids, wanted, {})
        return decided if decided.is_certain and decided.is_plain else None

    def _plan(
        self,
        connection: Connection,
        jobs: list[Job],
        ids: FreshIds,
        wanted: dict[str, NeededRows],
        known: Mapping[str, Any],
    ) -> PlannedGroup:
        def run(tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
            return self._ask(connection, tenant, sql, values)

        sources = {tenant: LoadedRows(run, self._clock, KEYS, names, ids) for tenant, names in wanted.items()}
        if known:
            for tenant, source in sources.items():
                source.remembered(known[tenant], self._memory.limits(tenant))
        else:
            with nullcontext() if len(wanted) == 1 and not self._database.for_reading else connection.pipeline():
                self._set_up(connection)
                found = {
                    tenant: connection.execute(LOAD, names.values(tenant), binary=True)
                    for tenant, names in wanted.items()
                }
            for tenant, cursor in found.items():
                sources[tenant].loaded(cursor.fetchall())
        return PlannedGroup(jobs, sources, ids)

    def _call(self, connection: Connection, decided: PlannedGroup) -> Ends:
        """Send what was decided; it is committed at once or not at all."""
        calls = {tenant: decided.call(tenant, self._database.bounds) for tenant in sorted(decided.changed)}
        if not calls:
            return decided.ends({})
        decided.forget(self._memory)  # not to be trusted until the outcome of this commit is known
        if not _is_silent(connection):
            raise _Again(psycopg.OperationalError("the connection was closed"))  # and nothing was sent
        try:
            rows = self._send(connection, calls)
        except Exception as error:
            # Only the server's own clear refusal proves that there was no commit.
            if not refused(connection, error):
                raise OutcomeUnknown(f"the connection to {self._database} broke during a commit") from error
            if isinstance(error, psycopg.Error) and error.sqlstate in _NOT_BY_ITSELF and not self._explicit:
                self._explicit = True
                raise _Again(error) from error
            for tenant in calls:
                self._memory.lose(tenant, decided.sources[tenant].names)
            raise
        if rows is None:
            raise Unavailable(f"{self._database} rolled the commit back", place=str(self._database))
        for tenant, (_, seen) in rows.items():
            self._memory.learn(tenant, decided.sources[tenant], decided.plans[tenant].changes, seen)
        return decided.ends({tenant: first for tenant, (first, _) in rows.items()})

    def _send(self, connection: Connection, calls: dict[str, tuple[Any, ...]]) -> dict[str, Row] | None:
        """Make the calls; None if the server rolled them back. A single call needs no transaction around it."""
        if len(calls) == 1 and not self._explicit:
            ((tenant, values),) = calls.items()
            return {tenant: connection.execute(CALL, values, binary=True).fetchall()[0]}
        with connection.pipeline():
            connection.execute(_BEGIN)
            connection.execute(self._database.for_writing)
            found = {tenant: connection.execute(CALL, values, binary=True) for tenant, values in calls.items()}
            end = connection.execute(b"COMMIT")
        if end.statusmessage != "COMMIT":
            return None
        return {tenant: cursor.fetchall()[0] for tenant, cursor in found.items()}

    def _decide_alone(self, session: _Session, jobs: list[Job], ids: FreshIds) -> tuple[Callable[[], Ends], bool]:
        """Take the tenants, so that nobody else can commit for them, and then load, plan and write.

        Outcomes are reported only after the commit: a conflict may be with a batch of the same group.
        """
        wanted = needed_by(jobs)
        taken = {tenant: session.ask(tenant, _TAKE, (tenant,)) for tenant in sorted(wanted)}
        sources = {tenant: LoadedRows(session.run, self._clock, KEYS, names) for tenant, names in wanted.items()}
        found = {tenant: session.load(tenant, names) for tenant, names in wanted.items()}
        session.sync()
        for tenant, cursor in found.items():
            sources[tenant].loaded(cursor.fetchall())
        decided = PlannedGroup(jobs, sources, ids)
        decided.forget(self._memory)
        calls = {
            tenant: session.write(tenant, sources[tenant], decided.plans[tenant].changes) for tenant in decided.changed
        }
        for tenant in wanted.keys() - decided.changed:
            if taken[tenant].fetchall()[0][0]:  # made to be held, and nothing was put into it
                session.ask(tenant, _DROP, (tenant,))
        return lambda: decided.ends({tenant: call.fetchall()[0][0] for tenant, call in calls.items()}), bool(calls)

    # Tending

    def scrub(self, timeout_s: float = 10.0) -> tuple[str, ...]:
        """Vacuum the tables, as far as this role may. We cannot clean the server's own log and replicas."""

        def vacuum(connection: Connection) -> tuple[str, ...]:
            said: list[str] = []
            connection.add_notice_handler(hear := lambda notice: said.append(str(notice.message_primary)))
            try:
                connection.execute(b"VACUUM " + self._database.tables)
            finally:
                connection.remove_notice_handler(hear)
            return tuple(f"{self._database}: {text}" for text in said)

        return self._insist(vacuum, _READ_TRIES)

    def check(self, tenant: str | None = None) -> list[Problem]:
        with self.patiently(), self._frozen() as run:
            return relational.check(Reads(run, self._clock, remember=True, keys=KEYS), run, KEYS, tenant)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        atfork.notice()
        self._waiters.close()
        self._group.close()
        if self._pool is not None:
            self._pool.close()

    # Connections

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        pool, process = self._pool_here(), os.getpid()
        connection = self._borrow(pool)
        self._lent.add(connection)
        try:
            yield connection
        finally:
            self._lent.discard(connection)
            if process == os.getpid():  # otherwise it is the parent's, who goes on with it
                _settle(connection)
                lost = connection.closed
                pool.putconn(connection)
                if lost and not pool.closed:
                    pool.check()  # where one died the others may have, too

    def _pool_here(self) -> ConnectionPool[Connection]:
        """The pool of this process; in a forked child it is opened when it is first needed."""
        atfork.notice()
        if self._pool is None:  # not asked before: what was accepted is still committed while the store closes
            if self._closed:
                raise Misconfigured("this store is closed")
            with self._opening:
                self._pool = self._pool or self._database.pool()
        return self._pool

    def _begin_anew(self) -> None:
        """In a forked child, drop the parent's connections: the server would take the child for the parent.

        They are left alone, even at the end; code in the middle of using one finds it cut off.
        """
        self._database.cut_off()
        atfork.keep_for_ever(self._pool)
        self._pool, self._lent = None, set()
        self._group.begin_anew()

    def _forked(self) -> Misconfigured:
        told = f"this process was forked during work on {self._database}, which its parent continues"
        return Misconfigured(told, place=str(self._database))

    def _borrow(self, pool: ConnectionPool[Connection]) -> Connection:
        try:
            return pool.getconn()
        except PoolClosed:
            raise Misconfigured("this store is closed") from None
        except PoolTimeout:
            settings = self._database.settings
            if len(self._lent) >= settings.pool_size:
                raise Unavailable(
                    f"all {settings.pool_size} connections to {self._database} stayed in use for "
                    f"{settings.pool_timeout:g} s; raise pool_size, or wait longer with pool_timeout",
                    place=str(self._database), pool_size=settings.pool_size,
                ) from None  # fmt: skip
            # The pool does not say why it could not connect. Asking again does, unless the server is back.
            with self._database.connected():
                raise Unavailable(
                    f"{self._database} could not be reached for {settings.pool_timeout:g} s; it answers now: try again",
                    place=str(self._database),
                ) from None

    def _insist(self, attempt: Callable[[Connection], T], tries: int) -> T:
        """Run something repeatable until it succeeds, again if it lost a race or its connection."""
        process = os.getpid()
        while True:
            try:
                with self._database.translated(), self._borrowed() as connection, _noticing(connection):
                    return attempt(connection)
            except _Again as again:
                if process != os.getpid():
                    raise self._forked() from again.error
                tries -= 1
                if not tries:
                    raise self._database.translate(again.error) from again.error
                nap = _RACE_NAP_S if again.error.sqlstate in RACES else _NAP_S
            _time.sleep(random.uniform(0.0, nap))

    def _run_outside(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._insist(lambda connection: self._ask(connection, tenant, sql, values), _READ_TRIES)

    def _ask(self, connection: Connection, tenant: str, sql: str, values: Sequence[Any]) -> list[Row]:
        """Run one query. Statements of a pipeline share a transaction, so the tenant holds for it and no longer."""
        with connection.pipeline():
            self._set_up(connection)
            connection.execute(_BECOME, (tenant,))
            cursor = connection.execute(_dialect(sql), values, binary=True)
        return cursor.fetchall()

    @contextmanager
    def patiently(self) -> Iterator[None]:
        before = _PATIENT.set(True)
        try:
            yield
        finally:
            _PATIENT.reset(before)

    def _set_up(self, connection: Connection) -> None:
        """Set what the options ask for, until the transaction ends."""
        if self._database.for_reading:
            connection.execute(self._database.for_writing if _PATIENT.get() else self._database.for_reading)

    @contextmanager
    def _frozen(self) -> Iterator[RunStatement]:
        """Lend a transaction in which nothing changes. Its first query fixes what it sees."""
        self._run_outside("", "SELECT 1")  # dead connections show here, where another can be tried
        with self._borrowed() as connection:
            process, session = os.getpid(), _Session(connection)

            def run(tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
                if process != os.getpid():
                    raise self._forked()
                with self._database.translated():
                    return session.run(tenant, sql, values)

            with self._database.translated(), connection.pipeline():
                connection.execute(_FREEZE)
                self._set_up(connection)
                connection.execute(b"SELECT 1 FROM tenants LIMIT 1")
            yield run

    def _transact(self, connection: Connection, work: Callable[[_Session], tuple[T, bool]]) -> T:
        """Run ``work``, which returns whether there is anything to commit. ``COMMIT`` travels with the last writes."""
        committing = False
        try:
            with connection.pipeline() as pipeline:
                connection.execute(_BEGIN)
                connection.execute(self._database.for_writing)
                result, committing = work(_Session(connection, pipeline, self._database.bounds))
                end = connection.execute(b"COMMIT" if committing else b"ROLLBACK")
        except Exception as error:
            # From here on only the server's own clear refusal proves that there was no commit.
            if committing and not refused(connection, error):
                raise OutcomeUnknown(f"the connection to {self._database} broke during a commit") from error
            raise
        if committing and end.statusmessage != "COMMIT":
            raise Unavailable(f"{self._database} rolled the commit back", place=str(self._database))
        return result


class _Session:
    """Runs SQL in a transaction. It knows which tenant the transaction is currently set to."""

    def __init__(
        self, connection: Connection, pipeline: psycopg.Pipeline | None = None, bounds: Sequence[str] | None = None
    ) -> None:
        self._connection, self._pipeline, self._bounds = connection, pipeline, bounds
        self._tenant = ""

    def ask(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Row]:
        """Send a statement. In a pipeline the answer comes with the next ``sync``."""
        self._become(tenant)
        return self._connection.execute(_dialect(sql), values, binary=True)

    def run(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self.ask(tenant, sql, values)
        self.sync()
        return cursor.fetchall()

    def run_many(self, tenant: str, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._become(tenant)
        with self._connection.cursor() as cursor:
            cursor.executemany(_dialect(sql), rows)

    def sync(self) -> None:
        """Wait for all answers. Only after a sync does the server count a silent client as idle, and time it out."""
        if self._pipeline is not None:
            self._pipeline.sync()

    def load(self, tenant: str, wanted: NeededRows) -> psycopg.Cursor[Row]:
        self._become(tenant)
        return self._connection.execute(LOAD, wanted.values(tenant), binary=True)

    def write(self, tenant: str, source: LoadedRows, changes: Changes) -> psycopg.Cursor[Row]:
        """Write what a plan came to, with what only a look at the rows can say."""
        tending = Tending(self.run, self.run_many)
        if changes.strands:
            self.run_many(tenant, relational.INSERT_STRAND, relational.strand_rows(tenant, changes))
        called = self.call(tenant, source, changes)
        if changes.released:
            tending.prune(tenant, changes.released, changes.alive())
        tending.finish(tenant, changes, source.position + len(changes.feed))
        return called

    def call(self, tenant: str, source: LoadedRows, changes: Changes) -> psycopg.Cursor[Row]:
        """Write rows and the feed. Only what is written is compared: we already hold the tenant's row."""
        self._become(tenant)
        rows = source.rows(changes, begins=False)
        assert self._bounds is not None
        return self._connection.execute(CALL, (tenant, *self._bounds, *_UNCHECKED, *rows), binary=True)

    def _become(self, tenant: str) -> None:
        if not tenant or tenant == self._tenant:
            return
        if self._bounds is None:
            self._connection.execute(_BECOME, (tenant,))
        else:
            self._connection.execute(BECOME_WRITER, (tenant, *self._bounds))
        self._tenant = tenant


def _is_silent(connection: Connection) -> bool:
    """Whether nothing has come from the server unasked, as its farewell would: a look that costs no journey."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


class _Again(Exception):
    """Nothing was committed and it may go through next time; the driver's error says why it did not."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def _noticing(connection: Connection) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        lost = isinstance(error, psycopg.OperationalError) and not refused(connection, error)
        if lost or error.sqlstate in RACES:
            raise _Again(error) from error
        raise


def _settle(connection: Connection) -> None:
    """Leave no transaction behind. A connection in the middle of something is discarded."""
    try:
        if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            connection.rollback()
    except psycopg.Error:
        pass
    if connection.info.transaction_status != TransactionStatus.IDLE:
        connection.close()


@cache
def _dialect(sql: str) -> bytes:
    """Our SQL in Postgres's dialect: a tenant, which leads each condition and row, is looked up by name on the server.

    As bytes, because psycopg takes a ``str`` only where it is a literal.
    """
    looked_up = sql.replace("tenant = ?", "tenant = (SELECT holdfast_tenant(?))")
    return looked_up.replace("VALUES (?", "VALUES (holdfast_tenant(?)").replace("?", "%s").encode()
