"""Making deleted data unreadable in an SQLite file, while the store stays open.

``secure_delete`` overwrites rows as they are deleted. Two things stay behind. The log holds pages as they were before,
until it is cut to nothing. And where SQLite moved rows from page to page to balance a tree, the unused middle of a page
keeps copies of them, which no statement reaches; short of rewriting the whole file nothing clears them. So that
middle is overwritten here, in the file itself, through SQLite's own handle (another one would drop its locks when it is
closed). It is done while the write lock is held and all of the log is in the file: then nobody else writes there, and
readers never look at the unused middle of a page. Being killed in between leaves a sound file. An empty commit then
lets every process forget the pages that it had in memory, which would bring the copies back.

Deliberately absent: waiting for readers of an older snapshot. The caller tries again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from holdfast.engine import sqlite_file
from holdfast.engine.sqlite_file import pragma

_HEADERS = {2: 12, 5: 12, 10: 8, 13: 8}
"""By the first byte of a page of a tree, how long its header is. Other pages begin with the number of a page."""
_MOST_PAGES = 2**25 - 1  # the largest number of a page whose first byte is 0 or 1
_CHUNK = 256
_OPEN = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE


def scrub(connection: apsw.Connection, path: Path) -> bool:
    """Overwrite what is unused in the pages, and empty the log; False if a reader or writer blocked it."""
    pragma(connection, "wal_checkpoint(PASSIVE)")  # most of the work, while others read and write
    alone = pragma(connection, "locking_mode") == "exclusive"  # a file that can be opened once
    if not alone and not _blanked(connection, path):
        return False
    try:
        return bool(pragma(connection, "wal_checkpoint(TRUNCATE)") == 0)
    except apsw.BusyError:
        return False


def _blanked(connection: apsw.Connection, path: Path) -> bool:
    size = pragma(connection, "page_size")
    with _opened(path) as file:
        count = file.xFileSize() // size
        if count > _MOST_PAGES:  # the number of a page may begin with any byte then: nothing tells a tree from others
            return True
        pages = range(1, count + 1)
        used = [number for number, _, _ in _gaps(file, size, pages)]
        if not used:
            return True
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not _all_in_the_file(path):
                return False
            for number, start, end in _gaps(file, size, used):
                file.xWrite(bytes(end - start), (number - 1) * size + start)
            file.xSync(apsw.SQLITE_SYNC_FULL)
            pragma(connection, f"user_version = {pragma(connection, 'user_version')}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return True


def _all_in_the_file(path: Path) -> bool:
    """Whether nothing of the log is left to be written into the file, by us or by others."""
    other = sqlite_file.connect(path, apsw.SQLITE_OPEN_READWRITE, 0.0)
    try:
        busy, logged, written = other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()[0]
        return not busy and logged == written
    finally:
        other.close()


def _gaps(file: apsw.VFSFile, size: int, pages: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """The pages whose unused middle is not blank, and where in them it begins and ends."""
    for number, page in _read(file, size, pages):
        header = 100 if number == 1 else 0
        length = _HEADERS.get(page[header])
        if length is None:
            continue
        cells, begin = int.from_bytes(page[header + 3 : header + 5]), int.from_bytes(page[header + 5 : header + 7])
        start, end = header + length + 2 * cells, begin or 65_536
        if start < end <= size and page.count(0, start, end) < end - start:
            yield number, start, end


def _read(file: apsw.VFSFile, size: int, pages: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    if not isinstance(pages, range):
        yield from ((number, file.xRead(size, (number - 1) * size)) for number in pages)
        return
    for first in range(pages.start, pages.stop, _CHUNK):
        count = min(_CHUNK, pages.stop - first)
        data = file.xRead(count * size, (first - 1) * size)
        yield from ((first + at, data[at * size : (at + 1) * size]) for at in range(count))


@contextmanager
def _opened(path: Path) -> Iterator[apsw.VFSFile]:
    file = apsw.VFSFile("", str(path), [_OPEN, 0])
    try:
        yield file
    finally:
        file.xClose()
