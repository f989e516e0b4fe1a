"""One Postgres database as a Holdfast store: reaching it, recognising it, setting it up, and naming what goes wrong.

Tables are made and changed under a lock on ``holdfast_meta``, in the schema that the options name, or else the one that
the connection's search path names first; a store that is up to date is opened without any lock. A schema and a
timeout of statements are set inside each transaction, so a transaction pooler may stand in between.

Deliberately absent: what the tables mean, advisory locks, and the meaning of connection failures in languages other
than English. ``libpq`` gives no code for those; what is not understood counts as ``Unavailable``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from holdfast import atfork
from holdfast.engine import migrate
from holdfast.engine.postgres_options import PostgresSettings, apart, meant, settled
from holdfast.engine.relational import Row
from holdfast.errors import Corrupt, HoldfastError, Invalid, Misconfigured, TooLarge, Unavailable

Connection = psycopg.Connection[Row]

_TABLES = ("records", "tags", "strands", "events", "feed")
_OLDEST_SERVER = 15  # views that read with the caller's rights
_TRIES = 5
_LONGEST = 10  # how many times longer than it may wait for a lock a transaction may last

RACES = {"40001", "40P01", "23505"}  # serialization failure, deadlock, unique violation
_FAREWELLS = {"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"}  # errors with which a server ends a connection
_REFUSED = re.compile(
    r"authentication failed|no password supplied|no pg_hba.conf entry|(database|role) .* does not exist|"
    r"not permitted to log in|SSL was required|certificate verify failed|unsupported startup parameter|"
    r"invalid \S+ value|Servname not supported|certificate file .* does not exist|private key file|"
    r"could not (read|load) (root )?certificate|server does not support SSL"
)
_PLAIN = re.compile(
    r"postgres(ql)?://([^@/?#\s]*@)?[^@/?#\s:\[]*(\[[^\]@]*\])?(:\d*)?(,[^@/?#\s]*)*(/[^@?#\s]*)?(\?\S*)?$"
)
_MEANINGS: tuple[tuple[str, tuple[type[HoldfastError], str]], ...] = (
    ("22", (Invalid, "Postgres cannot store this: {said}")),
    ("54", (TooLarge, "too large for Postgres: {said}")),
    ("53100", (Unavailable, "the disk of {place} is full: nothing was written")),
    ("57014", (Unavailable, "{place} gave up: {said}; the option statement_timeout says how long it may take")),
    ("55P03", (Unavailable, "{place} stayed locked by another process for too long")),
    ("25006", (Unavailable, "{place} is currently read-only: {said}")),
    ("28", (Misconfigured, "{place} refuses the connection: {said}")),
    ("3D", (Misconfigured, "{place} refuses the connection: {said}")),
    ("3F", (Misconfigured, "no schema of the search path exists at {place}: {said}")),
    ("42", (Misconfigured, "{place} is not as Holdfast left it, or its role may not do this: {said}")),
    ("XX001", (Corrupt, "{place} is damaged: {said}; restore it from a backup")),
    ("XX002", (Corrupt, "{place} is damaged: {said}; rebuild the index, or restore it from a backup")),
)

# A client that freezes or drops off the network must not keep its tenant: the server ends a transaction that waits,
# idles or lasts too long. The last bound came with Postgres 17; where there is no such setting, it is left out.
BECOME_WRITER = (
    b"SELECT set_config('holdfast.tenant', %s, true), set_config('lock_timeout', %s, true), "
    b"set_config('idle_in_transaction_session_timeout', %s, true), "
    b"CASE WHEN current_setting('transaction_timeout', true) <> '' "
    b"THEN set_config('transaction_timeout', %s, true) END, "
    b"CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END"
)


class PostgresDatabase:
    """Where the database is: how to reach it, how long to wait for it, and what its errors mean."""

    def __init__(self, url: str, options: object = None, under: PostgresSettings | None = None) -> None:
        self._url, in_address = apart(url)
        given = _parts(self._url)
        self.settings = settings = settled(options, in_address, under)
        self._name = f"{given.get('host') or 'localhost'}:{given.get('port') or 5432}/{given.get('dbname') or ''}"
        self.bounds = tuple(f"{_ms(settings.lock_timeout) * times}ms" for times in (1, 1, _LONGEST))
        timeout = {"statement_timeout": f"{_ms(settings.statement_timeout)}ms"} if settings.statement_timeout else {}
        self.for_reading, self.for_writing = self._local(timeout), self._local({"statement_timeout": "0"})
        self.tables = sql.SQL(", ").join(map(self._named, _TABLES)).as_bytes()
        defaults: dict[str, Any] = {
            "application_name": "holdfast",
            "connect_timeout": math.ceil(settings.connect_timeout),
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 30_000,
        }
        self._made: WeakSet[Connection] = WeakSet()
        self._options = {name: value for name, value in defaults.items() if name not in given}
        self._options |= {**settings.libpq, "autocommit": True, "prepare_threshold": None, "client_encoding": "utf8"}

    def __str__(self) -> str:
        return self._name

    def _named(self, table: str) -> sql.Identifier:
        return sql.Identifier(*filter(None, (self.settings.schema, table)))

    def _local(self, wanted: dict[str, str]) -> bytes:
        """What to send first in a transaction: where its tables are, and how long a statement may take."""
        if self.settings.schema is not None:
            wanted = {**wanted, "search_path": sql.Identifier(self.settings.schema).as_string()}
        each = [sql.SQL("set_config({}, {}, true)").format(*pair) for pair in wanted.items()]
        return sql.SQL("SELECT {}").format(sql.SQL(", ").join(each)).as_bytes() if each else b""

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        with self.translated(), psycopg.connect(self._url, **self._options) as connection:
            yield connection

    def prepare(self) -> None:
        """Check that the server can hold a store, and that its tables are ours and up to date."""
        with self.connected() as connection:
            release = connection.info.server_version // 10_000
            if release < _OLDEST_SERVER:
                raise Misconfigured(f"{self} is Postgres {release}; a store needs at least {_OLDEST_SERVER}")
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise Misconfigured(f"{self} keeps text as {encoding}; a store needs a database with encoding UTF8")
            for tries in range(_TRIES, 0, -1):
                try:
                    with connection.transaction():
                        version = self._version(connection)
                    if version is None or migrate.pending("postgres", version):
                        self._migrate(connection)
                    return
                except psycopg.Error as error:
                    # Two first openers meet in the catalogue, where IF NOT EXISTS does not look.
                    if error.sqlstate not in RACES or tries == 1:
                        raise

    def _version(self, connection: Connection) -> int | None:
        """Return the version of the store in the schema where we would make one, None when there is none."""
        connection.execute(self.for_writing)
        here = b"SELECT current_schema(), to_regclass(quote_ident(current_schema()) || '.holdfast_meta')"
        schema, meta = connection.execute(here).fetchall()[0]
        if schema is None and self.settings.schema is None:
            raise Misconfigured(f"no schema of the search path exists at {self}")
        if meta is None:
            return None
        rows = connection.execute(b"SELECT version FROM holdfast_meta").fetchall()
        version, known = int(rows[0][0]) if rows else 0, migrate.newest("postgres")
        if version > known:
            raise Misconfigured(
                f"{self} was written by a newer Holdfast (store version {version}; this one knows up to {known}); "
                "upgrade holdfast",
                place=str(self), version=version, known=known,
            )  # fmt: skip
        return version

    def _migrate(self, connection: Connection) -> None:
        """Bring the tables up to date; a second process waits for the lock and finds nothing left to do."""
        with connection.transaction():
            connection.execute(BECOME_WRITER, ("", *self.bounds))
            connection.execute(self.for_writing)
            if self.settings.schema is not None and connection.execute(b"SELECT current_schema()").fetchall() == [
                (None,)
            ]:
                made = sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.settings.schema))
                connection.execute(made)
            connection.execute(b"CREATE TABLE IF NOT EXISTS holdfast_meta (version bigint NOT NULL)")
            connection.execute(b"LOCK TABLE holdfast_meta IN ACCESS EXCLUSIVE MODE")
            rows = connection.execute(b"SELECT version FROM holdfast_meta").fetchall()
            if not rows:
                connection.execute(b"INSERT INTO holdfast_meta (version) VALUES (0)")
            for version, statements in migrate.pending("postgres", rows[0][0] if rows else 0):
                try:
                    connection.execute(statements.encode())
                except psycopg.errors.DuplicateTable as error:
                    said = str(error).partition("\n")[0]
                    raise Misconfigured(f"{self} is in use for something else: {said}", place=str(self)) from error
                connection.execute(b"UPDATE holdfast_meta SET version = %s", (version,))

    def pool(self) -> ConnectionPool[Connection]:
        size, wait_s = self.settings.pool_size, self.settings.pool_timeout
        return ConnectionPool(
            self._url, kwargs=self._options, min_size=self.settings.pool_min, max_size=size, open=True,
            name="holdfast-pool", num_workers=1, timeout=wait_s, reconnect_timeout=wait_s, configure=self._made.add,
        )  # fmt: skip

    def cut_off(self) -> None:
        """In a forked child, make the parent's connections unusable: nothing may be sent over them."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for connection in list(self._made):
            with suppress(psycopg.Error, OSError):
                os.dup2(nowhere, connection.fileno())
        os.close(nowhere)
        atfork.keep_for_ever(*self._made)
        self._made = WeakSet()

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self.translate(error) from error
        except UnicodeEncodeError as error:
            raise Invalid("text with a lone surrogate cannot be stored") from error

    def translate(self, error: psycopg.Error) -> HoldfastError:
        """Translate a Postgres error into ours. No driver error leaves this file."""
        said = str(error).strip().partition("\n")[0]
        if "no password supplied" in said:
            said += "; give it in the address, in PGPASSWORD or in a password file"
        kind, pattern = _meaning(error)
        return kind(pattern.format(place=self._name, said=said), place=self._name, sqlstate=error.sqlstate)


def _parts(url: str) -> dict[str, Any]:
    """The parts of an address. Errors do not quote it, because any part may belong to the password.

    That is why no cause is kept either, and why a second @, a port that is not a number and the like are not left for
    the driver to find: they point to a password that is not escaped as URLs require.
    """
    try:
        given = conninfo_to_dict(url)
        why = "" if _PLAIN.match(url) and url.isprintable() else "its parts are in the wrong order"
    except psycopg.Error as error:
        why = str(error).strip().partition('"')[0].strip(" :")
    except ValueError:
        why = "it holds characters that are not allowed in an address"
    if why:
        raise Misconfigured(
            f"this is not a Postgres address: {why}{meant(url)}. It is postgresql://user@host:5432/name; in a "
            "password, @ / : ? # % and a space are written %40 %2F %3A %3F %23 %25 %20"
        ) from None
    return given


def _meaning(error: psycopg.Error) -> tuple[type[HoldfastError], str]:
    state = error.sqlstate
    if state is None:
        text = str(error)
        if isinstance(error, psycopg.DataError):
            return Invalid, "Postgres cannot store this: {said}"
        if _REFUSED.search(text):
            return Misconfigured, "{place} refuses the connection: {said}"
        return Unavailable, "{place} cannot be reached: {said}"
    for prefix, meaning in _MEANINGS:
        if state.startswith(prefix):
            return meaning
    return Unavailable, "Postgres failed at {place}: {said}"


def refused(connection: Connection, error: Exception) -> bool:
    """Whether the server answered with an error and is still there, so that what it refused did not happen."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    return state is not None and state not in _FAREWELLS and not state.startswith("08") and not connection.closed


def _ms(seconds: float) -> int:
    """Milliseconds, of which 0 would mean no limit: so at least one where there is one."""
    return max(1, round(seconds * 1_000)) if seconds else 0
