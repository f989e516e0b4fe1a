"""Where an archive goes: a file that appears whole or not at all, or a stream the caller holds.

Deliberately absent: what is in an archive, and reading one (a reader recognises the content, not the name).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.archive.backup import published
from holdfast.errors import Conflict, Invalid

_SUFFIXES = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".msgpack": "msgpack", ".holdfast": "msgpack"}


def format_of(target: str | Path | BinaryIO) -> str:
    """The format that a file's suffix names; a stream has none, so its format must be given."""
    if not isinstance(target, str | Path):
        raise Invalid("say which format to write to a stream: json, yaml or msgpack")
    if wrong := no_format(target, "format="):
        raise Invalid(wrong)
    return _SUFFIXES[Path(target).suffix.lower()]


def no_format(target: str | Path, option: str) -> str:
    """What to say of a file whose suffix names none of the formats; empty where it does."""
    if Path(target).suffix.lower() in _SUFFIXES:
        return ""
    known = {format: [end for end, one in _SUFFIXES.items() if one == format] for format in _SUFFIXES.values()}
    formats = ", ".join(f"{format} ({', '.join(ends)})" for format, ends in known.items())
    return f"{target}: the suffix names no format; use one of {formats}, or give {option}"


def _refuse_a_store(target: Path) -> None:
    """An archive takes the place of an older file, but never of a store, which may be the very one being read."""
    databases = target.suffix.lower() in (".db", ".sqlite", ".sqlite3")
    if target.exists() and (databases or Path(f"{target}-wal").exists() or Path(f"{target}-shm").exists()):
        raise Conflict(f"{target} looks like a database, and is not overwritten", path=str(target))


@contextmanager
def written(target: str | Path | BinaryIO) -> Iterator[BinaryIO]:
    """Open a target for writing. A file takes its name when it is complete, in place of an older one."""
    if not isinstance(target, str | Path):
        yield target
        return
    _refuse_a_store(Path(target))
    with published(Path(target), replace=True) as draft, draft.open("wb") as out:
        yield out
        out.flush()
