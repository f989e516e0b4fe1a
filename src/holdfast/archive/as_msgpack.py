"""Archives as msgpack: a stream of frames, written and read without holding more than one section.

A frame is a msgpack binary (one byte, four bytes of length, content) whose content is a map with one key that says
what it is: ``header``; then for each section ``section``, its ``record``s, and each ``strand`` followed by its
``event``s, and ``end``; then ``manifest``, and nothing after it. So any msgpack library can take such a file apart.
This is the form of backups. Deliberately absent: trust in a length that the file gives.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

import msgspec

from holdfast.archive.contents import (
    ArchiveHeader,
    ArchiveManifest,
    ArchiveSection,
    EventForm,
    Item,
    ReadSection,
    RecordForm,
    Seal,
    StrandForm,
    admit,
    as_bytes,
    damage,
    event_form,
    event_from,
    record_form,
    record_from,
    strand_form,
    strand_from,
)
from holdfast.engine.codec import MAX_BODY_BYTES
from holdfast.engine.contract import Event, Record, Strand
from holdfast.errors import Corrupt, Invalid, TooLarge

MAX_FRAME_BYTES = 2 * MAX_BODY_BYTES
T = TypeVar("T")
_BIN32 = 0xC6
_head = struct.Struct(">BI")
_encoder = msgspec.msgpack.Encoder()


class _Opening(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tenant: str
    thread: str | None


class _MsgpackEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str


class _Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One frame; exactly one field is set."""

    header: ArchiveHeader | None = None
    section: _Opening | None = None
    record: RecordForm | None = None
    strand: StrandForm | None = None
    event: EventForm | None = None
    end: _MsgpackEnd | None = None
    manifest: ArchiveManifest | None = None


class _MsgpackSign(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0


class _SignFrame(msgspec.Struct, frozen=True):
    header: _MsgpackSign = _MsgpackSign()


_frame_decoder = msgspec.msgpack.Decoder(_Frame)
_sign_decoder = msgspec.msgpack.Decoder(_SignFrame)


class MsgpackWriter:
    """Writes an archive as it comes."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def header(self, header: ArchiveHeader) -> None:
        self._put("header", header)

    def section(self, section: ArchiveSection, seal: Seal) -> None:
        self._put("section", _Opening(section.tenant, section.thread))
        for record in section.records:
            self._put("record", record_form(record, as_bytes))
        for strand in section.strands:
            self._put("strand", strand_form(strand, section.shared.get(strand.stream, ())))
            for event in strand.events:
                self._put("event", event_form(event, as_bytes))
        self._put("end", _MsgpackEnd(seal.sha256))

    def manifest(self, manifest: ArchiveManifest) -> None:
        self._put("manifest", manifest)

    def _put(self, name: str, form: Any) -> None:
        content = _encoder.encode({name: form})
        if len(content) > MAX_FRAME_BYTES:
            raise TooLarge(f"a {name} of {len(content):,} bytes does not fit into an archive", size_bytes=len(content))
        self._out.write(_head.pack(_BIN32, len(content)))
        self._out.write(content)


def read(file: BinaryIO) -> Iterator[Item]:
    """Yield the header, the sections and the manifest of a msgpack archive."""
    frames = _Frames(file)
    yield frames.header()
    frame = frames.next()
    while frame.manifest is None:
        if frame.section is None:
            raise frames.damage("a section should begin here")
        yield _section(frames, frame.section)
        frame = frames.next()
    frames.finish()
    yield frame.manifest


def _section(frames: _Frames, opening: _Opening) -> ReadSection:
    records: list[Record] = []
    strands: list[Strand] = []
    shared: dict[int, tuple[int, ...]] = {}
    frame = frames.next()
    while frame.record is not None:
        records.append(frames.meaning(record_from, frame.record))
        frame = frames.next()
    while frame.strand is not None:
        form = frame.strand
        events: list[Event] = []
        while (frame := frames.next()).event is not None:
            events.append(frames.meaning(event_from, frame.event))
        strand = frames.meaning(strand_from, form, tuple(events))
        strands.append(strand)
        if form.shared:
            shared[strand.stream] = form.shared
    if frame.end is None:
        raise frames.damage("the section should go on or end here")
    return ReadSection(
        ArchiveSection(opening.tenant, opening.thread, tuple(records), tuple(strands), shared), frame.end.sha256
    )


class _Frames:
    """Takes frames from a file and knows where it is."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self._next = 0

    def header(self) -> ArchiveHeader:
        content = self._content()
        try:
            sign = _sign_decoder.decode(content).header
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Invalid("this is not a Holdfast archive") from None
        admit(sign.format, sign.version)
        header = self._decode(content).header
        if header is None:
            raise self.damage("the header should be here")
        return header

    def next(self) -> _Frame:
        return self._decode(self._content())

    def finish(self) -> None:
        self._offset = self._next
        if self._file.read(1):
            raise self.damage("nothing may follow the manifest")

    def meaning(self, make: Callable[..., T], *forms: Any) -> T:
        """Turn the form just read into a value."""
        try:
            return make(*forms)
        except ValueError as error:
            raise self.damage(str(error)) from None

    def damage(self, what: str) -> Corrupt:
        return damage(f"byte {self._offset}", what, offset=self._offset)

    def _content(self) -> bytes:
        self._offset = self._next
        head = self._file.read(_head.size)
        if not head:
            raise self.damage("the archive ends before its manifest: it was cut short")
        if len(head) == _head.size:
            mark, size = _head.unpack(head)
            if mark != _BIN32 or size > MAX_FRAME_BYTES:
                raise self.damage("this is not the beginning of a frame")
            content = self._file.read(size)
            if len(content) == size:
                self._next = self._offset + len(head) + size
                return content
        raise self.damage("the archive ends inside this frame: it was cut short")

    def _decode(self, content: bytes) -> _Frame:
        try:
            frame = _frame_decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self.damage(str(error)) from None
        if frame.strand is not None and frame.strand.events:
            raise self.damage("events stand in frames of their own")
        return frame
