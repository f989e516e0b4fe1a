"""One SQLite file as a Holdfast store: recognising it, setting it up, copying it, and naming what goes wrong with it.

Deliberately absent: opening the live file in any way but through SQLite. Closing such a handle would drop SQLite's
locks, so size and age come from ``stat``, and a copy goes through SQLite's backup interface. Also absent: what the
tables mean.
"""

from __future__ import annotations

import os
import random
import time as _time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import apsw

from holdfast.engine import migrate, sqlite_process
from holdfast.errors import Corrupt, FileGone, HoldfastError, Misconfigured, TooLarge, Unavailable

APPLICATION_ID = 0x48464454  # "HFDT"
_PAGE_SIZE = 4096
_LOOK_S = 0.25
_TRIES = 3
_MOMENT_S = 0.1
_WRITE_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class Identity:
    """The identity of the store that was opened. Its name is not enough: another file can take it.

    Once the file was found gone, the store stays refused even if the file comes back: nobody knows what happened to it
    meanwhile. A file that is in no directory (of a VFS of its own) is not looked for.
    """

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self._path, self._place = path, sqlite_process.opened_as(connection)
        self._name = str(path)  # looked up at every commit
        self._store: bytes | None = None
        with suppress(apsw.Error):  # damaged: ``verify`` says so
            self._store = _store_id(connection)
        self._gone = False
        self._looked_at = 0.0
        self.note_log()

    def note_log(self) -> None:
        """Know the files beside: they live as long as any connection does, and then others have their names."""
        beside = (Path(f"{self._path}{suffix}") for suffix in ("-wal", "-shm"))
        self._beside = {path: sqlite_process.place_of(path) for path in beside}

    def check(self) -> None:
        """Look whether the name still leads to the file that was opened."""
        if self._gone or (self._place is not None and sqlite_process.place_of(self._name) != self._place):
            self._refuse()

    def check_sometimes(self) -> None:
        """The same for a reader, which does no harm if it notices a moment later."""
        now = _time.monotonic()
        if self._gone or now - self._looked_at > _LOOK_S:
            self._looked_at = now
            self.check()

    def check_new(self, connection: apsw.Connection) -> None:
        """Look whether a connection that was opened later is of the same file, and of the same store in it."""
        same = self._store is None or _store_id(connection) == self._store
        if not same or sqlite_process.opened_as(connection) != self._place:
            self._refuse()

    def _refuse(self) -> NoReturn:
        self._gone = True
        if sqlite_process.place_of(self._path) is not None:
            self._set_log_aside()
        raise FileGone(
            f"{self._path} was moved, deleted or replaced while this store was open; nothing is written to or read "
            "from the file that has this name now; find out why, then open the store again",
            path=str(self._path),
        )

    def _set_log_aside(self) -> None:
        """Rename the log of the missing file: opening the file that has its name now would replay the log into it."""
        for path, place in self._beside.items():
            if place is not None and sqlite_process.place_of(path) == place:
                with suppress(OSError):
                    path.rename(f"{path}.left-{(self._store or b'').hex()[:8]}")


def _store_id(connection: apsw.Connection) -> bytes:
    try:
        return b"".join(row[0] for row in connection.execute("SELECT store FROM meta"))
    except (apsw.SQLError, apsw.NotADBError):  # there is no such table
        return b""


def open_writer(path: Path, busy_timeout_s: float, known: Identity | None = None) -> apsw.Connection:
    """Open the connection that writes, making or bringing up to date the store when needed; only one that is known,
    if one is."""
    with translated(path):
        if known is None:
            _look_before_opening(path)
        connection = _connect_to(path, _WRITE_FLAGS, busy_timeout_s, known)
        try:
            _prepare(connection, path, busy_timeout_s)
        except BaseException:
            connection.close()
            raise
        return connection


def open_reader(path: Path, busy_timeout_s: float, known: Identity | None = None) -> apsw.Connection:
    """Open a connection that cannot write."""
    with translated(path):
        connection = _connect_to(path, apsw.SQLITE_OPEN_READONLY, busy_timeout_s, known)
        pragma(connection, "query_only = ON")
        return connection


def _connect_to(path: Path, flags: int, busy_timeout_s: float, known: Identity | None) -> apsw.Connection:
    """Open a connection, to the known store if there is one. Nothing is written before that is certain."""
    if known is None:
        return connect(path, flags, busy_timeout_s)
    known.check()
    connection = connect(path, flags & ~apsw.SQLITE_OPEN_CREATE, busy_timeout_s)
    try:
        known.check_new(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: Path, flags: int, busy_timeout_s: float = 0.0) -> apsw.Connection:
    """Open a connection, unless this process was forked while its parent had the file open.

    It is opened again if the name led elsewhere before: another file may have taken it, or the first who may write was
    given a copy, as in a container.
    """
    sqlite_process.refuse_unsafe(path)
    for _ in range(_TRIES):
        before = sqlite_process.place_of(path)
        connection = apsw.Connection(str(path), flags=flags)
        if before in (None, place := sqlite_process.place_of(path)):
            break
        connection.close()
    sqlite_process.opened(connection, place)
    connection.set_busy_handler(_Patience(busy_timeout_s))
    return connection


class _Patience:
    """Waits for another process's write lock in short, uneven naps. SQLite's own back-off starves latecomers."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._since = 0.0

    def __call__(self, tries: int) -> bool:
        now = _time.monotonic()
        if tries == 0:
            self._since = now
        if now - self._since > self._timeout_s:
            return False
        _time.sleep(random.uniform(0.0002, 0.002))
        return True


def begin(connected: Callable[[], apsw.Connection], timeout_s: float) -> None:
    """Begin to write, as soon as no other process does.

    The wait is here and not inside SQLite: a signal that forks in there would leave a child that never returns.
    """
    patience: _Patience | None = None
    for tries in count():
        connection = connected()
        connection.set_busy_handler(None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except apsw.BusyError:
            patience = patience or _Patience(timeout_s)
            if not patience(tries):
                raise


def _look_before_opening(path: Path) -> None:
    """Refuse, with the reason, a path where no store can be. Only ``stat`` is used: see the module's note."""
    try:
        if path.is_dir():
            raise Misconfigured(f"{path} is a directory, not a database file", path=str(path))
        if path.exists() and not path.is_file():  # opening a pipe may take forever
            raise Misconfigured(f"{path} is a pipe or a device, not a database file", path=str(path))
        if not path.parent.is_dir():
            raise Misconfigured(f"the directory {path.parent} does not exist", path=str(path))
        _refuse_orphaned_log(path)
        target = path if path.exists() else path.parent
    except OSError as error:
        raise Misconfigured(f"{path} cannot be reached: {error}", path=str(path)) from error
    if not os.access(target, os.W_OK):
        raise Misconfigured(
            f"{target} is read-only; a store needs to write its file and the files beside it", path=str(path)
        )


def _refuse_orphaned_log(path: Path) -> None:
    """SQLite would delete, as a leftover, the log of a file that is gone or empty, with all that only the log holds."""
    wal = Path(f"{path}-wal")
    logged = wal.exists() and wal.stat().st_size  # looked at first: a new store's file is written before its log
    if logged and not (path.exists() and path.stat().st_size > 1):
        raise Corrupt(
            f"{path} is {'empty' if path.exists() else 'missing'}, but its log {wal} is not; "
            "restore the store from a backup, or remove the log to start afresh",
            path=str(path),
        )


def _prepare(connection: apsw.Connection, path: Path, timeout_s: float) -> None:
    """Check that the file is ours, set it up for durability, and bring its tables up to date."""
    deadline = _time.monotonic() + timeout_s
    while True:
        try:
            recognise(connection, path)
            _configure(connection, path)
            _settle_log(connection)
            _migrate(connection, path)
            return
        except apsw.BusyError:
            # Changing the journal mode does not ask the busy handler, so two first openers may meet here.
            if _time.monotonic() > deadline:
                raise
            _time.sleep(random.uniform(0.001, 0.01))


def pragma(connection: apsw.Connection, text: str) -> Any:
    rows = connection.execute(f"PRAGMA {text}").fetchall()
    return rows[0][0] if rows else None


def recognise(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that is not ours, is too new for us, or is cut short.

    All is read in one transaction: between two looks another process could make the file a store.
    """
    connection.execute("BEGIN")
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]
        owner, version = pragma(connection, "application_id"), pragma(connection, "user_version")
        expected = pragma(connection, "page_count") * pragma(connection, "page_size")
    finally:
        connection.execute("ROLLBACK")
    if owner != APPLICATION_ID and (owner or tables):
        raise Misconfigured(
            f"{path} is an SQLite database, but not a Holdfast store; to import the data of another "
            f"program from it: holdfast --db agent.db import {path}",
            path=str(path),
        )
    known = migrate.newest("sqlite")
    if version > known:
        raise Misconfigured(
            f"{path} was written by a newer Holdfast (version {version}; this one knows up to {known}): upgrade",
            path=str(path), version=version, known=known,
        )  # fmt: skip
    wal = Path(f"{path}-wal")
    if tables and not (wal.exists() and wal.stat().st_size) and path.stat().st_size < expected:
        raise Corrupt(
            f"{path} is cut short: it has {path.stat().st_size} of {expected} bytes; restore it from a backup",
            path=str(path),
        )


def _configure(connection: apsw.Connection, path: Path) -> None:
    if pragma(connection, "page_count") <= 1:
        pragma(connection, f"page_size = {_PAGE_SIZE}")
    mode = pragma(connection, "journal_mode = WAL")
    if mode != "wal":
        raise Misconfigured(
            f"{path} is on a file system where SQLite cannot use WAL (it offers {mode!r})", path=str(path)
        )
    for setting in (
        "synchronous = FULL",
        "fullfsync = ON",
        "checkpoint_fullfsync = ON",
        "foreign_keys = ON",
        "journal_size_limit = 33554432",
        "cache_size = -16384",
        "secure_delete = ON",  # what is replaced or deleted is overwritten; it costs nothing that can be measured
    ):
        pragma(connection, setting)


def _settle_log(connection: apsw.Connection) -> None:
    """Make durable what a dead process left in the log, before anything is written after it.

    It may be visible and yet not be on disk: the last sync may have failed, and the system does not retry. If
    the disk is full the log itself is still synced, and that is what counts.
    """
    with suppress(apsw.FullError):
        pragma(connection, "wal_checkpoint(PASSIVE)")


@contextmanager
def impatient(connection: apsw.Connection, timeout_s: float) -> Iterator[None]:
    """Let a connection wait for others no longer than a moment; then again as long as it did."""
    connection.set_busy_handler(_Patience(_MOMENT_S))
    try:
        yield
    finally:
        connection.set_busy_handler(_Patience(timeout_s))


def _migrate(connection: apsw.Connection, path: Path) -> None:
    if not migrate.pending("sqlite", pragma(connection, "user_version")):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version, sql in migrate.pending("sqlite", pragma(connection, "user_version")):
            connection.execute(sql).fetchall()
            pragma(connection, f"user_version = {version}")
        pragma(connection, f"application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def copy_database(source: apsw.Connection, target: Path) -> None:
    """Copy a database, live or not, through SQLite's backup interface; the copy is one plain file."""
    copy = connect(target, _WRITE_FLAGS)
    try:
        with copy.backup("main", source, "main") as transfer:
            while not transfer.done:
                transfer.step(-1)
        pragma(copy, "journal_mode = DELETE")
    except apsw.FullError as error:  # said here, because the caller's other file is the source
        raise Unavailable(f"the disk is full: cannot write {target}", path=str(target)) from error
    finally:
        copy.close()


def publish(draft: Path, path: Path) -> None:
    """Give a finished file its name, durably. ``FileExistsError`` when something has that name by now."""
    sync_path(draft)
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        os.rename(draft, path)
    sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Make a finished file, or a directory's new name for one, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translate(error, path) from error


def translate(error: apsw.Error, path: Path) -> HoldfastError:
    """Translate an SQLite error into ours. No driver error leaves this file."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return Unavailable(f"{path} stayed locked by another process for too long", path=str(path))
        case apsw.FullError():
            return Unavailable(f"the disk is full: nothing was written to {path}", path=str(path))
        case apsw.NotADBError():
            return Corrupt(f"{path} is not an SQLite database", path=str(path))
        case apsw.CorruptError():
            return Corrupt(f"{path} is damaged: {error}; restore it from a backup", path=str(path))
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            return Misconfigured(f"{path} cannot be opened for writing: {error}", path=str(path))
        case apsw.TooBigError():
            return TooLarge(f"too large for SQLite: {error}")
        case apsw.ConnectionClosedError():
            return Misconfigured("this store is closed")
    return Unavailable(f"SQLite failed on {path}: {error}", path=str(path))
