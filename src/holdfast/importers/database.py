"""Another program's SQLite database, read at one moment and left unchanged.

A database whose write-ahead log is in use is read in one transaction, which holds up no writer. Any other is copied
first, to a file that is gone afterwards: reading it where it is would leave files beside it, or keep its writer waiting
for the whole import. Everything is checked by SQLite before the first row is believed. Deliberately absent: any
connection that could write, undoing what a killed writer left half done, and what the tables mean.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import apsw

from holdfast.engine.sqlite_file import APPLICATION_ID, copy_database, open_reader, pragma, translated
from holdfast.errors import Conflict, Corrupt, Misconfigured, Unavailable

_BUSY_S = 5.0
_TRIES = 5
_HEADER = 100


class ForeignDatabase:
    """One database at one moment. ``tables`` has the columns of each table by its name.

    A ``glimpse`` is enough to see what it is: it is neither copied nor checked, and its rows are not to be believed.
    """

    def __init__(self, path: Path, *, glimpse: bool = False) -> None:
        self.path = path
        with ExitStack() as closing:
            self._connection = closing.enter_context(_seen(path) if glimpse else _still(path))
            with self._said():
                if not glimpse:
                    self._check()
                self.tables = self._tables()
            self._closing = closing.pop_all()

    @property
    def ours(self) -> bool:
        """Whether this is a Holdfast store."""
        with self._said():
            return bool(pragma(self._connection, "application_id") == APPLICATION_ID)

    def rows(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a question, as they are asked for."""
        with self._said():
            cursor = self._connection.execute(sql, values)
            yield from cursor

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(next(self.rows(f"SELECT count(*) FROM {quoted(table)}"))[0])

    def having(self, *columns: str) -> list[str]:
        """The tables that have these columns."""
        return [name for name, own in self.tables.items() if set(columns) <= set(own)]

    def close(self) -> None:
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        found = [row[0] for row in self._connection.execute("PRAGMA quick_check(1)")]
        if found != ["ok"]:
            raise Corrupt(f"{self.path} is damaged: {found[0]}; repair it, or import a copy of it", path=str(self.path))

    def _tables(self) -> dict[str, tuple[str, ...]]:
        names = [row[0] for row in self._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {
            name: tuple(row[1] for row in self._connection.execute(f"PRAGMA table_info({quoted(name)})"))
            for name in names
        }

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            with translated(self.path):
                yield
        except UnicodeDecodeError as error:
            raise Corrupt(f"{self.path} holds text that is not UTF-8: {error}", path=str(self.path)) from error


def opened(path: Path, *, glimpse: bool = False) -> ForeignDatabase | None:
    """The database in a file; None when the file is none."""
    try:
        if not path.stat().st_size:
            return None
        return ForeignDatabase(path, glimpse=glimpse)
    except Corrupt as error:
        if isinstance(error.__cause__, apsw.NotADBError):
            return None
        raise


def quoted(name: str) -> str:
    """A name of someone else's table, as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _seen(path: Path) -> Iterator[apsw.Connection]:
    connection = open_reader(path, _BUSY_S) if _logged(path) else _unlocked(path)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _still(path: Path) -> Iterator[apsw.Connection]:
    """A connection in which nothing moves."""
    with ExitStack() as closing:
        if _logged(path):
            connection = open_reader(path, _BUSY_S)
        else:
            folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-import-"))
            connection = open_reader(_copied(path, Path(folder)), _BUSY_S)
        closing.callback(connection.close)
        with translated(path):
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # from here on nothing moves
        yield connection


def _logged(path: Path) -> bool:
    """Whether there is a write-ahead log beside it, which only a program that uses the database keeps."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def _copied(path: Path, folder: Path) -> Path:
    """The database in another file. A program may begin to use it meanwhile; then it is tried again."""
    for attempt in range(_TRIES):
        copy, before = folder / f"{attempt}.db", _stamp(path)
        try:
            _copy(path, copy)
        except Corrupt:
            if _stamp(path) == before:
                raise
            continue
        if not _keeps_log(path) or _stamp(path) == before:
            return copy
    raise Conflict(
        f"{path} was written to while it was read; import it again when nothing writes to it", path=str(path)
    )


def _copy(path: Path, copy: Path) -> None:
    """Copy a database through SQLite. One that keeps a log, but has none now, is read without a lock: with one, SQLite
    would begin a log and leave it there. Any other is locked against writers for as long as copying takes."""
    source = _unlocked(path) if _keeps_log(path) and not _logged(path) else open_reader(path, _BUSY_S)
    try:
        with translated(path):
            copy_database(source, copy)
    except Misconfigured as error:
        raise Unavailable(
            f"{path} was left in the middle of a write; open it once with the program that wrote it, then import",
            path=str(path),
        ) from error
    finally:
        source.close()


def _unlocked(path: Path) -> apsw.Connection:
    """A connection that takes no lock and leaves no file, and so does not see whether someone writes."""
    address = f"file:{quote(os.path.abspath(path))}?immutable=1"
    with translated(path):
        return apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _keeps_log(path: Path) -> bool:
    """Whether the database is one with a write-ahead log, as its header says."""
    with path.open("rb") as file:
        header = file.read(_HEADER)
    return header[18:19] == b"\x02"


def _stamp(path: Path) -> tuple[Any, ...]:
    """What changes when a file is written to."""
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns, _logged(path)
