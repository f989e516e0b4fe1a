"""The archive: what is in the file, whichever way it is written.

An archive is a header, then sections, then a manifest. A section is one thread's part of one tenant (or one record
that belongs to no thread): its records, and the strands of history they reach that no earlier section holds. Strands
name their ancestors first, and say at which positions later strands continue from them.

The *forms* are how these things look in a file: stream numbers as hexadecimal text, because readers that know only
doubles lose digits over 2**53, digests as hexadecimal text, times as microseconds since 1970 in fields named ``…_us``.
A body is in one of three fields:

``body``        the value itself, where writing it and reading it back gives the same bytes
``body_text``   the stored JSON as text, where the value itself would come back as other bytes
``body_bytes``  the stored bytes with their two-character tag: binary in msgpack, base64 in JSON and YAML

Digests cover bytes, so bytes are what an archive keeps. Deliberately absent: I/O, the three formats, and the
proof that a document is sound (``audit``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec

from holdfast.engine import codec
from holdfast.engine.contract import GENESIS, Event, Record, Scope, Strand
from holdfast.errors import Corrupt, Invalid, Unsupported

FORMAT = "holdfast-archive"
VERSION = 1
KINDS = (
    "thread", "state", "checkpoint", "run", "handoff", "memories", "memory", "file",
    "graph", "graph items", "claude_summary",
)  # fmt: skip
LEASE = "lease"  # who works on a run belongs to a store, not to exported data: only in backups
ABSENT = msgspec.Raw()

_INT_MAX = 2**63 - 1
Whole = Annotated[int, msgspec.Meta(ge=0, le=_INT_MAX)]
Moment = Annotated[int, msgspec.Meta(ge=-(2**63), le=_INT_MAX)]


class Selection(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to export: one thread, one user, a whole tenant, or, without a tenant, all of them."""

    tenant: str | None = None
    thread: str | None = None
    user: str | None = None
    kinds: tuple[str, ...] = KINDS


class ArchiveHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The beginning of an archive: what kind of file this is, when it was made, what was asked for."""

    format: str
    version: int
    created_us: Moment
    selection: Selection


class ArchiveSection(msgspec.Struct, frozen=True):
    """One thread's part of an archive. ``shared`` maps a stream to the positions later strands continue from."""

    tenant: str
    thread: str | None
    records: tuple[Record, ...]
    strands: tuple[Strand, ...]
    shared: dict[int, tuple[int, ...]]


class Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much there is. Entries and revisions are the events of threads and of states."""

    threads: int = 0
    entries: int = 0
    revisions: int = 0
    checkpoints: int = 0
    records: int = 0
    strands: int = 0
    events: int = 0
    memories: int = 0
    files: int = 0

    def plus(self, other: Counts) -> Counts:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Counts(*(ours + theirs for ours, theirs in pairs))


class SchemaCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One schema and version found among the states, and how many revisions are of it."""

    name: str
    version: int
    revisions: int


class ArchiveManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of an archive: what must have been read by now.

    ``sha256`` covers the header and every section, over their meaning and not their spelling: the same content has the
    same hash in JSON, YAML and msgpack.
    """

    created_us: Moment
    selection: Selection
    sections: int
    counts: Counts
    tenants: dict[str, Counts]
    schemas: tuple[SchemaCount, ...]
    sha256: str


class Seal(NamedTuple):
    """What the audit says of a section: its hash, and whether all bodies of events are JSON to embed as stored."""

    sha256: str
    plain: bool


class ReadSection(NamedTuple):
    """A section as read, with the hash that the file gives for it."""

    section: ArchiveSection
    sha256: str


Item = ArchiveHeader | ReadSection | ArchiveManifest


class EventForm(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One event in a file."""

    position: Whole
    time_us: Moment
    kind: str
    digest: str
    key: str | None = None
    body: msgspec.Raw = ABSENT
    body_text: str | None = None
    body_bytes: bytes | None = None


class RecordForm(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One record in a file. Without a stream there is neither base, head nor digest."""

    kind: str
    id: str
    version: Whole
    created_us: Moment
    time_us: Moment
    expires_us: Moment | None = None
    user: str | None = None
    agent: str | None = None
    thread: str | None = None
    tags: tuple[str, ...] = ()
    stream: str | None = None
    base: Whole = 0
    head: Whole = 0
    digest: str | None = None
    body: msgspec.Raw = ABSENT
    body_text: str | None = None
    body_bytes: bytes | None = None


class StrandForm(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One strand in a file; its events are inside it, or follow it where the format is a stream of frames."""

    stream: str
    kind: str
    id: str
    digest: str
    parent: str | None = None
    base: Whole = 0
    shared: tuple[Whole, ...] = ()
    events: tuple[EventForm, ...] = ()


class SectionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One section in a file that nests."""

    tenant: str
    thread: str | None
    records: tuple[RecordForm, ...]
    strands: tuple[StrandForm, ...]
    sha256: str


class BodyForm(NamedTuple):
    """The three fields of which one carries the body."""

    body: msgspec.Raw = ABSENT
    body_text: str | None = None
    body_bytes: bytes | None = None


Dress = Callable[[bytes], BodyForm]


def damage(where: str, what: str, of: str = "the archive", **facts: Any) -> Corrupt:
    """The error for an archive (or a store on its way into one) that cannot be trusted, saying where it is damaged."""
    return Corrupt(f"{of} is damaged: {where}: {what}", where=where, **facts)


def admit(format: object, version: object) -> None:
    """Refuse what is not an archive, and what this version cannot read."""
    if format != FORMAT:
        raise Invalid("this is not a Holdfast archive")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise damage("header", f"{version!r} is not a format version")
    if version > VERSION:
        raise Unsupported(
            f"the archive has format version {version}, this Holdfast reads up to {VERSION}; upgrade holdfast",
            version=version, known=VERSION,
        )  # fmt: skip


# Into forms


def as_bytes(body: bytes) -> BodyForm:
    """Carry a body as it is stored."""
    return BodyForm(body_bytes=body)


def as_raw_json(body: bytes) -> BodyForm:
    """Embed JSON as it is stored, without decoding it, for a format that gives the same characters back."""
    return BodyForm(msgspec.Raw(body[2:])) if is_plain(body) else BodyForm(body_bytes=body)


def is_plain(body: bytes) -> bool:
    """Whether stored JSON has no blanks around it. They are not part of the value, so embedding would lose them."""
    return body[:2] == codec.JSON and body[2:3] > b" " and body[-1:] > b" "


def event_form(event: Event, dress: Dress) -> EventForm:
    return EventForm(event.position, event.time, event.kind, event.digest.hex(), event.key, *dress(event.body))


def record_form(record: Record, dress: Dress) -> RecordForm:
    scope = record.scope
    place: tuple[str | None, int, int, str | None] = (None, 0, 0, None)
    if record.stream is not None:
        place = (stream_text(record.stream), record.base, record.head, record.digest.hex())
    return RecordForm(
        record.kind, record.id, record.version, record.created, record.time, record.expires,
        scope.user, scope.agent, scope.thread, record.tags, *place, *dress(record.body),
    )  # fmt: skip


def strand_form(strand: Strand, shared: tuple[int, ...], events: tuple[EventForm, ...] = ()) -> StrandForm:
    parent = None if strand.parent is None else stream_text(strand.parent)
    return StrandForm(
        stream_text(strand.stream), strand.kind, strand.id, strand.digest.hex(), parent, strand.base, shared, events
    )


def section_form(section: ArchiveSection, seal: Seal, dress: Dress) -> SectionForm:
    strands = (
        strand_form(s, section.shared.get(s.stream, ()), tuple(event_form(e, dress) for e in s.events))
        for s in section.strands
    )
    records = tuple(record_form(r, dress) for r in section.records)
    return SectionForm(section.tenant, section.thread, records, tuple(strands), seal.sha256)


def stream_text(stream: int) -> str:
    return f"{stream:016x}"


# Out of forms. A form has the right types already; what is checked here is what a type cannot say.


def event_from(form: EventForm) -> Event:
    return Event(form.kind, _body(form), form.time_us, form.key, form.position, _digest(form.digest))


def record_from(form: RecordForm) -> Record:
    stream = None if form.stream is None else _stream(form.stream)
    digest = GENESIS if form.digest is None else _digest(form.digest)
    return Record(
        form.kind, form.id, form.version, _body(form), Scope(form.user, form.agent, form.thread), form.created_us,
        form.time_us, form.expires_us, form.tags, stream, form.base, form.head, digest,
    )  # fmt: skip


def strand_from(form: StrandForm, events: tuple[Event, ...]) -> Strand:
    parent = None if form.parent is None else _stream(form.parent)
    return Strand(_stream(form.stream), form.kind, form.id, parent, form.base, _digest(form.digest), events)


def section_from(form: SectionForm) -> ReadSection:
    """Raise ``ValueError`` where a field cannot mean anything."""
    strands = tuple(strand_from(s, tuple(map(event_from, s.events))) for s in form.strands)
    shared = {_stream(s.stream): s.shared for s in form.strands if s.shared}
    records = tuple(map(record_from, form.records))
    return ReadSection(ArchiveSection(form.tenant, form.thread, records, strands, shared), form.sha256)


def _body(form: EventForm | RecordForm) -> bytes:
    raw = bytes(form.body)
    given = (bool(raw), form.body_text is not None, form.body_bytes is not None)
    if sum(given) != 1:
        raise ValueError(f"{form.kind} has {sum(given)} bodies instead of one")
    if form.body_bytes is not None:
        body = form.body_bytes
    else:
        body = codec.JSON + (raw if form.body_text is None else form.body_text.encode())
    if len(body) > codec.MAX_BODY_BYTES:
        raise ValueError(f"a body of {len(body):,} bytes; at most {codec.MAX_BODY_BYTES:,} are accepted")
    return body


def _digest(text: str) -> bytes:
    digest = bytes.fromhex(text)
    if len(digest) != len(GENESIS) or digest.hex() != text:
        raise ValueError(f"{text[:80]!r} is not a digest")
    return digest


def _stream(text: str) -> int:
    stream = int(text, 16)
    if not 0 <= stream <= _INT_MAX or stream_text(stream) != text:
        raise ValueError(f"{text[:80]!r} is not a stream number")
    return stream
