"""Backup and restore where a file cannot simply be copied, and where it can.

A logical backup is a msgpack archive of every tenant at one moment. It is written beside its final name, made durable,
read back from end to end, and only then given that name: a backup that exists is one that was proved. Restoring takes
either kind, a copy of an SQLite store or an archive, and never writes over data that it was not told to replace.

Deliberately absent: choosing between the engine's own backup and a logical one (the store does), and schedules. A
logical backup has what an export has: not the feed, and not the marks that keep erased things erased.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import apsw
import msgspec

from holdfast.clock import Clock
from holdfast.engine.contract import Engine
from holdfast.engine.sqlite import SqliteEngine, copy_database, sync_path, verify_file
from holdfast.errors import Conflict, Corrupt, NotFound, Unavailable
from holdfast.ids import Ids
from holdfast.transfer.archive import Manifest, Selection
from holdfast.transfer.exporter import export
from holdfast.transfer.formats import SQLITE_MAGIC, Progress
from holdfast.transfer.importer import check_archive, import_archive


def write_backup(engine: Engine, path: Path, *, time: int, progress: Progress | None = None) -> Manifest:
    """Write a logical backup of everything, from one snapshot, while others keep writing.

    ``Conflict`` when the path exists. The file appears whole and proved, or not at all.
    """
    with published(path) as draft:
        with draft.open("wb") as out, engine.snapshot() as view:
            export(view, Selection(), out, "msgpack", time=time, progress=progress)
            _flush(out)
        return check_archive(draft, progress=progress)
