"""Which of the three formats: chosen by name for writing, recognised by its first bytes for reading.

``OpenedArchive`` is how everyone reads an archive: it yields only sections that passed the audit, and has checked the
manifest after the last one. Deliberately absent: file names. A suffix says nothing that the content does not.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from holdfast.archive import as_json, as_msgpack, as_yaml
from holdfast.archive.audit import Audit
from holdfast.archive.contents import (
    FORMAT,
    ArchiveHeader,
    ArchiveManifest,
    ArchiveSection,
    Item,
    ReadSection,
    Seal,
    damage,
)
from holdfast.checks import check_choice
from holdfast.errors import Invalid, NotFound, Unavailable

FORMATS = ("json", "yaml", "msgpack")
SQLITE_MAGIC = b"SQLite format 3\x00"
_SPOOL_BYTES = 16 * 1024 * 1024
_YAML = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|#.*\n|---[ \t]*\n)*format\s*:")
_readers: dict[str, Callable[[BinaryIO], Iterator[Item]]] = {
    "json": as_json.read,
    "yaml": as_yaml.read,
    "msgpack": as_msgpack.read,
}

Source = Path | bytes | BinaryIO
Progress = Callable[[str, int, int], None]


class Writer(Protocol):
    """Writes the parts of an archive in their order."""

    def header(self, header: ArchiveHeader) -> None: ...

    def section(self, section: ArchiveSection, seal: Seal) -> None: ...

    def manifest(self, manifest: ArchiveManifest) -> None: ...


def writer(format: str, out: BinaryIO) -> Writer:
    """Return what writes archives in this format."""
    match check_choice("format", format, FORMATS):
        case "json":
            return as_json.JsonWriter(out)
        case "yaml":
            return as_yaml.YamlWriter(out)
    return as_msgpack.MsgpackWriter(out)


def recognise(head: bytes) -> str:
    """Recognise the format by the first bytes of a file."""
    if head.startswith(SQLITE_MAGIC):
        raise Invalid("this is an SQLite database, not an archive; restore it, or open it as a store")
    if head[:1] == b"\xc6" and FORMAT.encode() in head[:64]:
        return "msgpack"
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return "json"
    if _YAML.match(head):
        return "yaml"
    raise Invalid("this is not a Holdfast archive" if head else "this file is empty")


class OpenedArchive:
    """An archive being read. Iterating yields its sections, each verified; after the last, ``manifest`` is too."""

    def __init__(self, file: BinaryIO) -> None:
        head = file.read(1024)
        file.seek(-len(head), io.SEEK_CUR)
        self._items = _readers[recognise(head)](file)
        header = next(self._items)
        assert isinstance(header, ArchiveHeader)
        self.header = header
        self.audit = Audit(header)
        self.manifest: ArchiveManifest | None = None

    def __iter__(self) -> Iterator[ArchiveSection]:
        for number, item in enumerate(self._items, 1):
            if isinstance(item, ReadSection):
                if self.audit.section(item.section).sha256 != item.sha256:
                    raise _changed(number, item.section)
                yield item.section
            else:
                assert isinstance(item, ArchiveManifest)
                self.audit.close(item)
                self.manifest = item


def _changed(number: int, section: ArchiveSection) -> Exception:
    where = f"section {number} (tenant {section.tenant!r}, thread {section.thread!r})"
    what = "a record or the frame of a history was changed after it was written"
    return damage(where, what, tenant=section.tenant, thread=section.thread, section=number)


@contextmanager
def opened(source: Source) -> Iterator[Callable[[], BinaryIO]]:
    """Return a function that opens the source from its beginning, as often as called."""
    if isinstance(source, bytes):
        source = io.BytesIO(source)
    try:
        if isinstance(source, Path):
            with source.open("rb") as file:
                yield _rewinder(file)
        elif source.seekable():
            yield _rewinder(source)
        else:  # a pipe: an archive is read more than once, so keep it
            with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as kept:
                shutil.copyfileobj(source, kept)
                kept.seek(0)
                yield _rewinder(cast(BinaryIO, kept))
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {source}", path=str(source)) from error
    except OSError as error:
        raise Unavailable(f"cannot read the archive: {error}", path=str(source)) from error


def _rewinder(file: BinaryIO) -> Callable[[], BinaryIO]:
    start = file.tell()

    def rewind() -> BinaryIO:
        file.seek(start)
        return file

    return rewind
