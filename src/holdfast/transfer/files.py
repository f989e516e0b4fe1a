"""Where an archive goes: a file that appears whole or not at all, or a stream the caller holds.

Deliberately absent: what is in an archive, and reading one (a reader recognises the content, not the name).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import Invalid
from holdfast.transfer.backup import published

_SUFFIXES = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".msgpack": "msgpack", ".holdfast": "msgpack"}


def format_of(target: str | Path | BinaryIO) -> str:
    """The format that a file's suffix names; a stream has none, so its format must be given."""
    if not isinstance(target, str | Path):
        raise Invalid("say which format to write to a stream: json, yaml or msgpack")
    suffix = Path(target).suffix.lower()
    if suffix not in _SUFFIXES:
        raise Invalid(f"{target}: the suffix does not say the format; use {', '.join(_SUFFIXES)}, or give format=")
    return _SUFFIXES[suffix]


@contextmanager
def written(target: str | Path | BinaryIO) -> Iterator[BinaryIO]:
    """Open a target for writing. A file takes its name when it is complete, in place of an older one."""
    if not isinstance(target, str | Path):
        yield target
        return
    with published(Path(target), replace=True) as draft, draft.open("wb") as out:
        yield out
        out.flush()
