"""Archives as JSON: one document, one entry a line, every body embedded as it is stored.

Writing streams, and no body is decoded. Reading takes the document whole, but turns it into values a section at a
time. A document that an editor or a formatter has reformatted is read too: its bodies are put back into the
store's own form, and the digests prove whether that is what was written.
Deliberately absent: a look at what bodies mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from holdfast.archive.contents import (
    FORMAT,
    ArchiveHeader,
    ArchiveManifest,
    ArchiveSection,
    EventForm,
    Item,
    Moment,
    ReadSection,
    Seal,
    SectionForm,
    Selection,
    admit,
    as_raw_json,
    damage,
    event_form,
    record_form,
    section_from,
    strand_form,
)
from holdfast.engine.contract import Event
from holdfast.errors import Invalid

_CHUNK = 64
_encoder = msgspec.json.Encoder()
_encode = _encoder.encode
_LAYOUT = re.compile(rb'\{"format":"%s",.*,\n"sections":\[' % FORMAT.encode())
_SIGN = re.compile(rb'\s*\{\s*"format"\s*:\s*"%s"' % FORMAT.encode())
_BOM = b"\xef\xbb\xbf"


class _JsonSign(msgspec.Struct, frozen=True):
    """The two fields that every version of the format has."""

    format: str = ""
    version: int = 0


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    created_us: Moment
    selection: Selection
    sections: list[msgspec.Raw]
    manifest: ArchiveManifest


_sign_decoder = msgspec.json.Decoder(_JsonSign)
_document_decoder = msgspec.json.Decoder(_Document)
_section_decoder = msgspec.json.Decoder(SectionForm)


class JsonWriter:
    """Writes an archive as it comes."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._separator = b"\n"

    def header(self, header: ArchiveHeader) -> None:
        self._out.write(_encode(header)[:-1] + b',\n"sections":[')

    def section(self, section: ArchiveSection, seal: Seal) -> None:
        write = self._out.write
        tenant, thread = _encode(section.tenant), _encode(section.thread)
        records = b",\n".join(_encode(record_form(r, as_raw_json)) for r in section.records)
        write(b'%b{"tenant":%b,"thread":%b,"records":[\n%b\n],"strands":[' % (self._separator, tenant, thread, records))
        self._separator = b",\n"
        separator = b"\n"
        for strand in section.strands:
            form = _encode(strand_form(strand, section.shared.get(strand.stream, ())))
            write(b'%b%b,"events":[\n' % (separator, form[:-1]))
            self._events(strand.events, seal.plain)
            write(b"]}")
            separator = b",\n"
        write(b'\n],"sha256":"%b"}' % seal.sha256.encode())

    def _events(self, events: tuple[Event, ...], plain: bool) -> None:
        """Write events one a line. Small pieces are faster than one large one, which new memory has to be found for."""
        for start in range(0, len(events), _CHUNK):
            forms = event_forms(events[start : start + _CHUNK], plain)
            lines = _encoder.encode_lines(forms)
            listed = lines.replace(b"\n", b",\n")
            if len(listed) - len(lines) != len(forms):
                # A stored body has line ends of its own, and only those between events may get a comma.
                listed = b"".join(_encode(form) + b",\n" for form in forms)
            if start + _CHUNK < len(events):
                self._out.write(listed)
            else:
                self._out.write(memoryview(listed)[:-2])
                self._out.write(b"\n")

    def manifest(self, manifest: ArchiveManifest) -> None:
        self._out.write(b'\n],\n"manifest":%b\n}\n' % _encode(manifest))


def event_forms(events: tuple[Event, ...], plain: bool) -> list[EventForm]:
    if not plain:
        return [event_form(event, as_raw_json) for event in events]
    # Spelled out, because this is where the time of an export goes.
    raw = msgspec.Raw
    return [EventForm(e.position, e.time, e.kind, e.digest.hex(), e.key, raw(e.body[2:])) for e in events]


def read(file: BinaryIO) -> Iterator[Item]:
    """Yield the header, the sections and the manifest of a JSON archive."""
    data = file.read().removeprefix(_BOM)
    _check_sign(data)
    if not _LAYOUT.match(data):
        data = _respelled(data)
    try:
        document = _document_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damage("document", str(error)) from None
    yield ArchiveHeader(document.format, document.version, document.created_us, document.selection)
    for number, raw in enumerate(document.sections, 1):
        yield section_of(raw, f"section {number}")
    yield document.manifest


def section_of(text: bytes | msgspec.Raw, where: str) -> ReadSection:
    """Turn one section's JSON into values."""
    try:
        return section_from(_section_decoder.decode(text))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise damage(where, str(error)) from None


def _check_sign(data: bytes) -> None:
    try:
        sign = _sign_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if _SIGN.match(data):
            raise damage("document", str(error)) from None
        raise Invalid("this is not a Holdfast archive") from None
    admit(sign.format, sign.version)


def _respelled(data: bytes) -> bytes:
    """Undo what a formatter did to a document, bodies and all."""
    try:
        return _encode(msgspec.json.decode(data))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise damage("document", str(error)) from None
