"""The engine on Postgres: psycopg 3 with a pool, no session state, and row-level security under every statement.

A commit takes its tenant's row in ``tenants`` first and keeps it until the transaction is durable. So the commits of a
tenant are serial, as the contract says, whatever they touch: a guard on an absent record, a fork from a stream that
another wants to prune, and a creation beside an erasure need no thought of their own. Locks on single records would
leave those open, and would win little, because the feed's counter is such a lock anyway, held over the flush. A group
takes its tenants in order of name, so two groups cannot deadlock. It costs two round trips: one takes, and fetches all
that the group names; one writes, and commits. The tenant is set inside each transaction with ``set_config(…, true)``,
statements are not prepared, and nothing is LISTENed to, so a transaction pooler may stand in between. Settings of the
same kind bound how long a dead client can hold a tenant, and keep a commit durable where the server's default is not.

A transaction that lost a race or its connection is run again; that is safe until ``COMMIT`` is sent. A connection that
breaks after that leaves the outcome unknown, and the caller is told so. Dead connections are found by using them, not
by a question before each use. Deliberately absent: a physical backup, and how the database is reached, set up and
understood (``postgres_database`` has it).
"""

from __future__ import annotations

import os
import random
import time as _time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import PoolClosed, PoolTimeout

from holdfast.clock import Clock
from holdfast.engine import lineage, relational
from holdfast.engine.contract import (
    Adopt,
    Append,
    Commit,
    Event,
    Fork,
    Interest,
    Limit,
    Mark,
    Notify,
    Op,
    Problem,
    Put,
    Receipt,
    Record,
    Scope,
    Trim,
    View,
)
from holdfast.engine.group import GroupCommit, Job
from holdfast.engine.plan import MISTAKES, Changes, Name, Plan, Published
from holdfast.engine.postgres_database import BECOME_WRITER, RACES, Connection, Database, refused
from holdfast.engine.relational import Keys, Reads, Row, Run, Tending
from holdfast.engine.waiting import Waiters
from holdfast.errors import HoldfastError, Invalid, Misconfigured, OutcomeUnknown, Unavailable
from holdfast.ids import Ids

T = TypeVar("T")

_WRITE_TRIES = 5
_READ_TRIES = 2  # an idle connection may have died unnoticed; the second one is new
_NAP_S = 0.05
_NAPS_S = (0.01, 0.1)

_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_FREEZE = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BECOME = b"SELECT set_config('holdfast.tenant', %s, true)"
_TAKE = "SELECT holdfast_take(?)"
_HEAD = b"SELECT name, feed FROM tenants WHERE name = %s"
_MOVE = "UPDATE tenants SET feed = feed + ? WHERE name = ?"
_DROP_EMPTY = "DELETE FROM tenants WHERE name = ? AND feed = 0"
_RECORDS = f"SELECT {relational.RECORD} FROM records WHERE tenant = ? AND kind = ? AND id = ANY(?)"
_KEYED = (
    f"SELECT stream, {relational.EVENT} FROM events WHERE tenant = ? AND key = ANY(?) "
    "AND stream = ANY(ARRAY(SELECT stream FROM records WHERE tenant = ? AND kind = ? AND id = ANY(?)))"
)
_GRAVES = "SELECT grave FROM graves WHERE tenant = ? AND grave = ANY(?)"


class _ServerKeys(Keys):
    """Tenants by their names: the server looks their numbers up (``_dialect``), so none can be out of date here."""

    def tenants(self, run: Run) -> list[str]:
        """List the tenants, for who may: everyone else would be shown one, or none, and told that this is all."""
        sql = (
            "SELECT row_security_active('tenants'), ARRAY(SELECT name FROM tenants WHERE feed > 0 ORDER BY name), "
            "current_user"
        )
        ((walled, names, role),) = run("", sql)
        if walled:
            raise Misconfigured(
                f"the role {role!r} may not list tenants: that is for the owner of the tables, or for BYPASSRLS",
                role=role,
            )
        return list(names)


_KEYS = _ServerKeys()


class PostgresEngine(Reads):
    """Records and streams in a Postgres database."""

    durable = True

    def __init__(
        self,
        url: str,
        clock: Clock,
        ids: Ids,
        *,
        pool_size: int = 10,
        connect_timeout_s: float = 10.0,
        busy_timeout_s: float = 60.0,
    ) -> None:
        super().__init__(self._run_outside, clock, remember=True, keys=_KEYS)
        self._ids = ids
        self._database = Database(url, connect_timeout_s, busy_timeout_s)
        self._pid = os.getpid()
        self._closed = False
        self._waiters = Waiters(self, self._heads, _NAPS_S)
        self._database.prepare()
        self._pool = self._database.pool(pool_size)
        self._group = GroupCommit(self._commit_jobs)

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
        """How far some feeds are. Each is asked for in its tenant's name: who may not list tenants sees no other."""

        def ask(connection: Connection) -> dict[str, int]:
            with connection.pipeline():
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
            yield Reads(run, self._clock, remember=True, keys=_KEYS)

    # Writing

    def commit(self, tenant: str, ops: Sequence[Op], time: int, actor: str | None = None) -> Receipt:
        self._refuse_after_fork()
        return self._group.commit(tenant, ops, time, actor)

    def submit(
        self, tenant: str, ops: Sequence[Op], time: int, notify: Notify, ticket: object, actor: str | None = None
    ) -> None:
        self._refuse_after_fork()
        self._group.submit(tenant, ops, time, notify, ticket, actor)

    def erase(self, tenant: str, scope: Scope, *, time: int, bury: bool = True, actor: str | None = None) -> int:
        lineage.refuse_empty(scope)

        def work(session: _Session) -> tuple[int, bool]:
            position = session.run(tenant, _TAKE, (tenant,))[0][0]
            changes = Tending(session.run, session.run_many).erase(tenant, scope, bury=bury)
            if not changes:
                return 0, False
            session.publish(tenant, [Published(time, actor, changes)], position)
            return sum(change.version for change in changes), True

        erased = self._write(work)
        self._waiters.announce()
        return erased

    def _commit_jobs(self, jobs: list[Job]) -> None:
        """Commit a group in one transaction; a job that may not go in fails alone."""
        try:
            ends = self._write(lambda session: self._decide(session, jobs))
        except Invalid:
            # The server refuses a value and does not say whose it was.
            if len(jobs) == 1:
                raise
            for job in jobs:
                self._commit_alone(job)
            return
        for job, end in zip(jobs, ends, strict=True):
            if isinstance(end, Receipt):
                job.receipt = end
            else:
                job.error = end
        self._waiters.announce()

    def _commit_alone(self, job: Job) -> None:
        try:
            self._commit_jobs([job])
        except HoldfastError as error:
            job.error = error

    def _decide(self, session: _Session, jobs: list[Job]) -> tuple[list[Receipt | Exception], bool]:
        """Plan all jobs, write what they come to, and say whether that is anything.

        How each ended is told only when the commit is through: a conflict may be with a batch of the same group.
        """
        source = _Source(session, self._clock)
        positions = source.load(jobs)
        plans = {tenant: Plan(tenant, source, self._ids) for tenant in positions}
        ends = [_add(plans[job.tenant], job) for job in jobs]
        changed = any(plan.changes for plan in plans.values())
        for tenant, plan in plans.items():
            if changed:
                session.write(tenant, plan.changes, positions[tenant], source)
        return [
            Receipt(positions[job.tenant] - 1 + end.feed, end.time, end.events, end.heads)
            if isinstance(end, Receipt)
            else end
            for job, end in zip(jobs, ends, strict=True)
        ], changed

    # Tending

    def check(self, tenant: str | None = None) -> list[Problem]:
        with self._frozen() as run:
            return relational.check(Reads(run, self._clock, remember=True, keys=_KEYS), run, _KEYS, tenant)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pid != os.getpid():
            return  # a forked child must not touch its parent's connections
        self._waiters.close()
        self._group.close()
        self._pool.close()

    # Connections

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        connection = self._borrow()
        try:
            yield connection
        finally:
            _settle(connection)
            lost = connection.closed
            self._pool.putconn(connection)
            if lost and not self._pool.closed:
                self._pool.check()  # where one died the others may have, too

    def _borrow(self) -> Connection:
        self._refuse_after_fork()
        try:
            return self._pool.getconn()
        except PoolClosed:
            raise Misconfigured("this store is closed") from None
        except PoolTimeout:
            # The pool does not say why it could not connect. Asking again does, or shows that all are in use.
            with self._database.connected():
                raise Unavailable(f"all connections to {self._database} stayed in use for too long") from None

    def _insist(self, attempt: Callable[[Connection], T], tries: int) -> T:
        """Run something that may be repeated until it is through, again if it lost a race or its connection."""
        while True:
            try:
                with self._database.translated(), self._borrowed() as connection, _noticing(connection):
                    return attempt(connection)
            except _Again as again:
                tries -= 1
                if not tries:
                    raise self._database.translate(again.error) from again.error
            _time.sleep(random.uniform(0.0, _NAP_S))

    def _run_outside(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one query. Statements of a pipeline share a transaction, so the tenant holds for it and no longer."""

        def ask(connection: Connection) -> list[Row]:
            with connection.pipeline():
                connection.execute(_BECOME, (tenant,))
                cursor = connection.execute(_dialect(sql), values, binary=True)
            return cursor.fetchall()

        return self._insist(ask, _READ_TRIES)

    @contextmanager
    def _frozen(self) -> Iterator[Run]:
        """Lend a transaction in which nothing changes. Its first query fixes what it sees."""
        self._run_outside("", "SELECT 1")  # dead connections show here, where another can be tried
        with self._borrowed() as connection:
            session = _Session(connection)

            def run(tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
                with self._database.translated():
                    return session.run(tenant, sql, values)

            with self._database.translated(), connection.pipeline():
                connection.execute(_FREEZE)
                connection.execute(b"SELECT 1 FROM tenants LIMIT 1")
            yield run

    def _write(self, work: Callable[[_Session], tuple[T, bool]]) -> T:
        """Run ``work``, which says whether there is anything to commit. ``COMMIT`` travels with the last writes."""

        def attempt(connection: Connection) -> T:
            committing = False
            try:
                with connection.pipeline() as pipeline:
                    connection.execute(_BEGIN)
                    result, committing = work(_Session(connection, pipeline, self._database.bounds))
                    end = connection.execute(b"COMMIT" if committing else b"ROLLBACK")
            except Exception as error:
                # From here on nothing but the server's own clear refusal proves that there was no commit.
                if committing and not refused(connection, error):
                    raise OutcomeUnknown(f"the connection to {self._database} broke during a commit") from error
                raise
            if committing and end.statusmessage != "COMMIT":
                raise Unavailable(f"{self._database} rolled the commit back", place=str(self._database))
            return result

        return self._insist(attempt, _WRITE_TRIES)

    def _refuse_after_fork(self) -> None:
        if self._pid != os.getpid():
            raise Misconfigured("this store was opened before the process forked; open it again in the child")


class _Session:
    """A transaction's way to run SQL. It knows for which tenant the transaction may speak at the moment."""

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

    def write(self, tenant: str, changes: Changes, position: int, source: _Source) -> None:
        """Write what a plan came to; if to nothing, give back the position that was taken for it."""
        more = len(changes.feed) - 1
        if more:
            self.ask(tenant, _MOVE, (more, tenant))
        if not changes:
            self.ask(tenant, _DROP_EMPTY, (tenant,))
            return
        relational.write(tenant, changes, self.run_many, source=source)
        tending = Tending(self.run, self.run_many)
        if changes.released:
            tending.prune(tenant, changes.released, changes.alive())
        self.publish(tenant, changes.feed, position)
        tending.finish(tenant, changes, position + more)

    def publish(self, tenant: str, feed: Sequence[Published], position: int) -> None:
        if feed:
            rows = [relational.feed_row(tenant, position + at, one) for at, one in enumerate(feed)]
            self.run_many(tenant, relational.INSERT_FEED, rows)

    def _become(self, tenant: str) -> None:
        if not tenant or tenant == self._tenant:
            return
        if self._bounds is None:
            self._connection.execute(_BECOME, (tenant,))
        else:
            self._connection.execute(BECOME_WRITER, (tenant, *self._bounds))
        self._tenant = tenant


class _Source(Reads):
    """What a plan sees of its transaction: all that the group names is fetched at once, the rest when asked for."""

    def __init__(self, session: _Session, clock: Clock) -> None:
        super().__init__(session.run, clock, remember=True, keys=_KEYS)
        self._session = session
        self._records: dict[tuple[str, str, str], Record | None] = {}
        self._keyed: dict[tuple[str, int, str], Event | None] = {}
        self._buried: dict[tuple[str, str, str], bool] = {}

    def load(self, jobs: list[Job]) -> dict[str, int]:
        """Take the tenants of a group and fetch what its operations name; return each tenant's next feed position."""
        wanted: dict[str, _Wanted] = defaultdict(_Wanted)
        for job in jobs:
            wanted[job.tenant].add(job.ops)
        taken = {}
        arrivals: list[Callable[[], None]] = []
        for tenant in sorted(wanted):
            taken[tenant] = self._session.ask(tenant, _TAKE, (tenant,))
            arrivals += self._ask_for(tenant, wanted[tenant])
        self._session.sync()
        for arrive in arrivals:
            arrive()
        return {tenant: cursor.fetchall()[0][0] for tenant, cursor in taken.items()}

    def get(self, tenant: str, kind: str, id: str) -> Record | None:
        name = (tenant, kind, id)
        return self._records[name] if name in self._records else super().get(tenant, kind, id)

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
        if key is not None and (tenant, mark.stream, key) in self._keyed:
            event = self._keyed[(tenant, mark.stream, key)]
            return [event] if event is not None and after < event.position <= mark.position else []
        return super().read(tenant, mark, after=after, limit=limit, newest=newest, key=key)

    def buried(self, tenant: str, kind: str, id: str) -> bool:
        name = (tenant, kind, id)
        return self._buried[name] if name in self._buried else super().buried(tenant, kind, id)

    def _ask_for(self, tenant: str, wanted: _Wanted) -> Iterator[Callable[[], None]]:
        for kind, ids in wanted.ids.items():
            yield self._ask_records(tenant, kind, ids)
        for kind, keys in wanted.keys.items():
            yield self._ask_keyed(tenant, kind, keys)
        if wanted.new:
            yield self._ask_graves(tenant, wanted.new)

    def _ask_records(self, tenant: str, kind: str, ids: set[str]) -> Callable[[], None]:
        cursor = self._session.ask(tenant, _RECORDS, (tenant, kind, list(ids)))

        def arrive() -> None:
            self._records.update(((tenant, kind, id), None) for id in ids)
            for record in map(relational.record_from, cursor.fetchall()):
                self._records[(tenant, kind, record.id)] = record

        return arrive

    def _ask_keyed(self, tenant: str, kind: str, keys: dict[str, set[str]]) -> Callable[[], None]:
        """Ask for the events that carry these keys. A fork's older keys lie in its ancestors; those are not fetched."""
        every = list({key for names in keys.values() for key in names})
        cursor = self._session.ask(tenant, _KEYED, (tenant, every, tenant, kind, list(keys)))

        def arrive() -> None:
            found = {(stream, event[3]): Event(*event) for stream, *event in cursor.fetchall()}
            for id, names in keys.items():
                record = self._records[(tenant, kind, id)]
                if record is not None and record.stream is not None and not record.base:
                    for key in names:
                        self._keyed[(tenant, record.stream, key)] = found.get((record.stream, key))

        return arrive

    def _ask_graves(self, tenant: str, names: set[Name]) -> Callable[[], None]:
        graves = {lineage.grave(kind, id): (tenant, kind, id) for kind, id in names}
        cursor = self._session.ask(tenant, _GRAVES, (tenant, list(graves)))

        def arrive() -> None:
            self._buried.update(dict.fromkeys(graves.values(), False))
            self._buried.update((graves[grave], True) for (grave,) in cursor.fetchall())

        return arrive


class _Wanted:
    """What the operations of one tenant name: ids by kind, the keys of events to append, and what is surely new."""

    def __init__(self) -> None:
        self.ids: dict[str, set[str]] = defaultdict(set)
        self.keys: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.new: set[Name] = set()

    def add(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, Trim | Limit):
                continue
            for named in op.records if isinstance(op, Adopt) else (op,):
                self.ids[named.kind].add(named.id)
            if isinstance(op, Append) and (keys := {event.key for event in op.events if event.key is not None}):
                self.keys[op.kind][op.id] |= keys
            if (isinstance(op, Put) and op.expect == 0) or (isinstance(op, Fork) and op.new is not None):
                self.new.add((op.kind, op.id))


def _add(plan: Plan, job: Job) -> Receipt | Exception:
    try:
        return plan.add(job.ops, job.time, job.actor)
    except MISTAKES as error:
        return error


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
    """Leave no transaction behind. A connection that is in the middle of something is of no more use."""
    try:
        if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            connection.rollback()
    except psycopg.Error:
        pass
    if connection.info.transaction_status != TransactionStatus.IDLE:
        connection.close()


@cache
def _dialect(sql: str) -> bytes:
    """Our SQL in the server's words: a tenant, which leads each condition and row, is looked up there by its name.

    As bytes, because psycopg takes a ``str`` only where it is a literal.
    """
    looked_up = sql.replace("tenant = ?", "tenant = (SELECT holdfast_tenant(?))")
    return looked_up.replace("VALUES (?", "VALUES (holdfast_tenant(?)").replace("?", "%s").encode()
