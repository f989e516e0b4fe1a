"""Backup and restore, whether or not a file can simply be copied.

A logical backup is a msgpack archive of every tenant at one moment. It is written beside its final name, read back
from end to end, made durable, and only then given that name: a backup that exists is one that was proved. Restoring
takes either kind, a copy of an SQLite store or an archive, and never writes over data it was not told to replace.

Deliberately absent: choosing between an engine's own backup and a logical one (the store does), and schedules. A
logical backup has what an export has: not the feed, and not the marks that keep erased things erased.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from holdfast.archive.contents import KINDS, LEASE, ArchiveManifest, Selection
from holdfast.archive.export import export
from holdfast.archive.formats import SQLITE_MAGIC, Progress
from holdfast.archive.importing import check_archive, import_archive
from holdfast.clock import Clock
from holdfast.engine.contract import Engine
from holdfast.engine.registry import open_engine
from holdfast.errors import Conflict, Corrupt, NotFound, Unavailable
from holdfast.ids import Ids


class Restored(msgspec.Struct, frozen=True):
    """What was restored. A copy of an SQLite store has no manifest, but its tenants are still named."""

    tenants: tuple[str, ...]
    manifest: ArchiveManifest | None = None


def write_backup(engine: Engine, path: Path, *, time: int, progress: Progress | None = None) -> ArchiveManifest:
    """Write a logical backup of everything, from one snapshot, while others keep writing.

    ``Conflict`` when the path exists. The file appears whole and proved, or not at all.
    """
    with published(path) as draft:
        with draft.open("wb") as out, engine.snapshot() as view:
            export(view, Selection(kinds=(*KINDS, LEASE)), out, "msgpack", time=time, progress=progress)
        return check_archive(draft, progress=progress)


def restore_file(
    backup: Path, path: Path, *, clock: Clock, ids: Ids, replace: bool = False, progress: Progress | None = None
) -> Restored:
    """Make an SQLite store at ``path`` from a backup of either kind.

    ``Conflict`` when there is a file already, unless ``replace``; then ``Unavailable`` when someone has that store
    open. The new store appears whole and proved, or the old one stays.
    """
    copied = is_sqlite(backup)
    leftovers = _leftovers(path)
    if leftovers and not replace:
        raise Conflict(
            f"{leftovers[0]} is left over from a store at {path}; remove it, or give replace", path=str(path)
        )
    with published(path, replace=replace) as draft:
        if copied:
            _copy(backup, draft)
        engine = open_engine(str(draft.resolve()), clock, ids)
        try:
            manifest = None
            if not copied:
                manifest = import_archive(engine, backup, time=clock.now(), progress=progress).manifest
            _prove(engine, backup)
            restored = Restored(tuple(engine.tenants()), manifest)
        finally:
            engine.close()
        if path.exists():
            _vacate(path)
        for leftover in _leftovers(path):  # SQLite would replay an old log into the restored store
            leftover.unlink()
    return restored


def restore_engine(
    backup: Path, engine: Engine, *, clock: Clock, merge: bool = False, progress: Progress | None = None
) -> Restored:
    """Bring a backup of either kind into an open store.

    ``Conflict`` when it holds data already, unless ``merge``: then it is an import, with an import's promises.
    """
    if not merge and engine.tenants():
        raise Conflict("the store already holds data; restore into an empty one, or import the archive")
    if is_sqlite(backup):
        with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
            archive = _archive_of(backup, Path(folder), clock)
            return restore_engine(archive, engine, clock=clock, merge=merge, progress=progress)
    manifest = import_archive(engine, backup, time=clock.now(), progress=progress).manifest
    return Restored(tuple(manifest.tenants), manifest)


def is_sqlite(backup: Path) -> bool:
    """Tell a copy of an SQLite store from an archive. Never ask this of a store that is in use."""
    try:
        with backup.open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {backup}", path=str(backup)) from error
    except OSError as error:
        raise Unavailable(f"cannot read {backup}: {error}", path=str(backup)) from error


@contextmanager
def published(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Give the name of a draft; when the block ends well make that file durable and rename it to ``path``.

    ``Conflict`` when ``path`` exists, unless ``replace``. The draft is in a folder of its own beside ``path``, with
    whatever else the block leaves there, and goes with it.
    """
    from holdfast.engine.sqlite_file import sync_path  # noqa: PLC0415 - brings the driver, which not every use needs

    _refuse_existing(path, replace)
    try:
        with tempfile.TemporaryDirectory(prefix=".holdfast-", dir=path.parent) as folder:
            draft = Path(folder) / path.name
            yield draft
            sync_path(draft)
            _refuse_existing(path, replace)
            os.replace(draft, path)
        sync_path(path.parent)
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error}", path=str(path)) from error


def _refuse_existing(path: Path, replace: bool) -> None:
    if os.path.exists(path) and not replace:  # not Path.exists, which raises for a name that is too long
        raise Conflict(f"{path} already exists, and is not overwritten", path=str(path))


def _leftovers(path: Path) -> list[Path]:
    """Files that a store which is gone left beside its name."""
    beside = [Path(f"{path}{suffix}") for suffix in ("-wal", "-shm", "-journal")]
    return [] if os.path.exists(path) else [file for file in beside if os.path.exists(file)]


def _copy(backup: Path, target: Path) -> None:
    """Copy an SQLite store that nobody has open. The backup itself is only read."""
    from holdfast.engine import sqlite_file  # noqa: PLC0415 - brings the driver, which not every use needs

    connection = sqlite_file.open_reader(backup, 1.0)
    try:
        with sqlite_file.translated(backup):
            sqlite_file.recognise(connection, backup)
            sqlite_file.copy_database(connection, target)
    finally:
        connection.close()


def _archive_of(backup: Path, folder: Path, clock: Clock) -> Path:
    copy, archive = folder / "copy.db", folder / "copy.archive"
    _copy(backup, copy)
    engine = open_engine(str(copy), clock, Ids())
    try:
        _prove(engine, backup)
        write_backup(engine, archive, time=clock.now())
    finally:
        engine.close()
    return archive


def _prove(engine: Engine, backup: Path) -> None:
    problems = engine.check()
    if problems:
        what = f"{backup} is damaged: {problems[0].where}: {problems[0].what}"
        raise Corrupt(what, path=str(backup), problems=problems)


def _vacate(path: Path) -> None:
    """Make an old store one plain file that nobody has open, so that another can take its name.

    Leaving WAL mode needs the store for oneself, and folds the log into the file. A log left beside the new file
    would be replayed into it.
    """
    from holdfast.engine import sqlite_file  # noqa: PLC0415 - brings the driver, which not every use needs

    try:
        connection = sqlite_file.open_writer(path, 0.0)
        try:
            with sqlite_file.translated(path):
                mode = sqlite_file.pragma(connection, "journal_mode = DELETE")
        finally:
            connection.close()
        if mode != "delete":
            raise Unavailable(f"{path} is in use; close it before replacing it", path=str(path))
    except Corrupt:
        pass  # too damaged to be asked, which may be why it is being replaced
    for leftover in ("-wal", "-shm", "-journal"):
        Path(f"{path}{leftover}").unlink(missing_ok=True)
