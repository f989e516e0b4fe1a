"""The proof of an archive: every chain, count and hash, section by section.

The same audit runs while an archive is written and while it is read. So the hashes are made and checked by one piece
of code, and what could not be imported is refused when it is exported, not a year later. It keeps one line per
strand and record, not the events, so an archive of any length passes through it.

Deliberately absent: I/O, and any look at the store an archive goes to. A hash finds damage, not forgery: anyone who
can rewrite the file can compute it again.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import msgspec

from holdfast.archive.contents import (
    ArchiveHeader,
    ArchiveManifest,
    ArchiveSection,
    Counts,
    SchemaCount,
    Seal,
    damage,
    is_plain,
)
from holdfast.engine import chain, codec
from holdfast.engine.contract import GENESIS, Event, Record, Strand
from holdfast.errors import HoldfastError, Invalid
from holdfast.ids import MAX_ID_BYTES, check_id

# An id may be put together from several that a caller gave, as a checkpoint's is.
_MAX_NAME_CHARS = 4 * MAX_ID_BYTES
_pack = msgspec.msgpack.Encoder().encode
_skip_json = msgspec.json.Decoder(msgspec.Raw).decode


class _Seen(NamedTuple):
    """What is remembered of a strand once its events have gone by."""

    kind: str
    id: str
    base: int
    last: int
    digest: bytes


class _Stamp(msgspec.Struct):
    """The part of a state's body that names its schema; the rest is not looked at."""

    schema: str
    version: int


_stamp_decoder = msgspec.json.Decoder(_Stamp)


def schema_of(body: bytes) -> tuple[str, int] | None:
    """The schema name and version that a revision of a state was written with, None when it names none."""
    if body[:2] != codec.JSON:
        return None
    try:
        stamp = _stamp_decoder.decode(body[2:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return (stamp.schema, stamp.version) if stamp.schema else None


class Audit:
    """Sections seen so far. A section that is not sound raises ``Corrupt`` naming the thread and the entry."""

    def __init__(self, header: ArchiveHeader, of: str = "the archive") -> None:
        self._header = header
        self._of = of
        self._strands: dict[tuple[str, int], _Seen] = {}
        self._points: dict[tuple[str, int, int], bytes] = {}
        self._counts: dict[str, Counts] = {}
        self._schemas: dict[tuple[str, int], int] = {}
        self._sections = 0
        asked = header.selection
        self._hash = sha256(
            _pack(("archive", header.version, header.created_us, asked.tenant, asked.thread, asked.user, asked.kinds))
        )
        self.names: set[tuple[str, str, str]] = set()

    def section(self, section: ArchiveSection) -> Seal:
        """Check a section against itself and those before it, and seal it."""
        self._sections += 1
        where = f"section {self._sections} (tenant {section.tenant!r}, thread {section.thread!r})"
        try:
            check_id(section.tenant, "the tenant")
            for strand in section.strands:
                self._check_strand(section, strand)
            for record in section.records:
                self._check_record(section, record)
        except (_Unsound, Invalid) as error:
            facts = {"tenant": section.tenant, "thread": section.thread, "section": self._sections}
            raise damage(where, str(error), of=self._of, position=error.facts.get("position", 0), **facts) from None
        self._count(section)
        digest = _hash(section, self._strands)
        self._hash.update(digest)
        plain = all(is_plain(event.body) for strand in section.strands for event in strand.events)
        return Seal(digest.hex(), plain)

    def manifest(self) -> ArchiveManifest:
        """What the sections so far come to."""
        total = Counts()
        for counts in self._counts.values():
            total = total.plus(counts)
        schemas = tuple(SchemaCount(*key, revisions) for key, revisions in sorted(self._schemas.items()))
        header = self._header
        return ArchiveManifest(
            header.created_us, header.selection, self._sections, total, dict(sorted(self._counts.items())), schemas,
            self._hash.hexdigest(),
        )  # fmt: skip

    def close(self, found: ArchiveManifest) -> None:
        """Compare with the manifest that the archive ends with."""
        expected = self.manifest()
        for field in ArchiveManifest.__struct_fields__:
            here, there = getattr(expected, field), getattr(found, field)
            if here != there:
                what = f"{field} does not match the contents of the archive"
                raise damage("manifest", what, expected=there, actual=here)

    # Strands

    def _check_strand(self, section: ArchiveSection, strand: Strand) -> None:
        name = (section.tenant, strand.stream)
        owner = f"{strand.kind} {strand.id!r}"
        if name in self._strands:
            raise _Unsound(f"a stream of {owner} appears twice")
        if strand.kind or strand.id:  # history whose owner was erased belongs to nobody
            _check_name(strand.kind, strand.id)
        self._check_beginning(section.tenant, strand, owner)
        _check_events(strand, owner)
        last = strand.events[-1] if strand.events else None
        seen = _Seen(strand.kind, strand.id, strand.base, strand.base, strand.digest)
        if last is not None:
            seen = seen._replace(last=last.position, digest=last.digest)
        self._strands[name] = seen
        for position in section.shared.get(strand.stream, ()):
            if not strand.base <= position <= seen.last:
                raise _Unsound(f"{owner} has no entry {position} for another history to continue from", position)
            event = strand.events[position - strand.base - 1] if position > strand.base else None
            self._points[(*name, position)] = strand.digest if event is None else event.digest

    def _check_beginning(self, tenant: str, strand: Strand, owner: str) -> None:
        if strand.parent is None:
            if strand.base or strand.digest != GENESIS:
                raise _Unsound(f"a stream of {owner} begins at entry {strand.base} of nothing", strand.base)
            return
        shared = self._points.get((tenant, strand.parent, strand.base))
        if shared is None:
            raise _Unsound(f"a stream of {owner} continues from an entry {strand.base} that is not here", strand.base)
        if shared != strand.digest:
            raise _Unsound(f"a stream of {owner} does not continue the entry {strand.base} it shares", strand.base)

    # Records

    def _check_record(self, section: ArchiveSection, record: Record) -> None:
        _check_name(record.kind, record.id)
        owner = f"{record.kind} {record.id!r}"
        name = (section.tenant, record.kind, record.id)
        if name in self.names:
            raise _Unsound(f"{owner} appears twice")
        self.names.add(name)
        if record.version < 1:
            raise _Unsound(f"{owner} has no version")
        scope = record.scope
        for what, value in (("user", scope.user), ("agent", scope.agent), ("thread", scope.thread)):
            if value is not None:
                check_id(value, f"the {what} of {owner}")
        for tag in record.tags:
            _check_text(tag, f"a tag of {owner}")
        _check_body(record.body, owner)
        self._check_head(section.tenant, record, owner)

    def _check_head(self, tenant: str, record: Record, owner: str) -> None:
        if record.stream is None:
            seen: _Seen | None = _Seen(record.kind, record.id, 0, 0, GENESIS)
        else:
            seen = self._strands.get((tenant, record.stream))
        if seen is None:
            raise _Unsound(f"the history of {owner} is not here")
        if seen != (record.kind, record.id, record.base, record.head, record.digest):
            raise _Unsound(f"{owner} does not end where its history does, at entry {seen.last}", seen.last)

    # Counting

    def _count(self, section: ArchiveSection) -> None:
        kinds = [r.kind for r in section.records]
        events = {"thread": 0, "state": 0}
        for strand in section.strands:
            events[strand.kind] = events.get(strand.kind, 0) + len(strand.events)
            if strand.kind == "state":
                self._count_schemas(strand.events)
        counts = Counts(
            kinds.count("thread"), events["thread"], events["state"], kinds.count("checkpoint"),
            len(kinds), len(section.strands), sum(events.values()), kinds.count("memory"), kinds.count("file"),
        )  # fmt: skip
        self._counts[section.tenant] = self._counts.get(section.tenant, Counts()).plus(counts)

    def _count_schemas(self, revisions: tuple[Event, ...]) -> None:
        for revision in revisions:
            schema = schema_of(revision.body)
            if schema is not None:
                self._schemas[schema] = self._schemas.get(schema, 0) + 1


class _Unsound(HoldfastError):
    """One thing that is wrong, on its way to the place that knows the section."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message, position=position)


def _check_events(strand: Strand, owner: str) -> None:
    for position, what in chain.breaks(strand.events, strand.base, strand.digest):
        raise _Unsound(f"{owner}: {what}", position)
    keys: set[str] = set()
    for number, event in enumerate(strand.events, strand.base + 1):
        what = f"entry {event.position} of {owner}"
        if event.position != number:
            raise _Unsound(f"{what} stands where entry {number} should", number)
        _check_body(event.body, what)
        if event.key is not None:
            _check_text(event.key, f"the key of {what}")
            if event.key in keys:
                raise _Unsound(f"{what} repeats the key {event.key!r}", event.position)
            keys.add(event.key)
        if not event.kind or "\x00" in event.kind:
            raise _Unsound(f"{what} has the kind {event.kind!r}", event.position)


def _check_name(kind: str, id: str) -> None:
    check_id(kind, "a kind")
    if not 0 < len(id) <= _MAX_NAME_CHARS:
        raise _Unsound(f"the id of a {kind} has {len(id)} characters")
    _check_text(id, f"the id of a {kind}")


def _check_text(text: str, what: str) -> None:
    """Keys and tags have no agreed length, but no engine may be given a NUL."""
    if "\x00" in text:
        raise _Unsound(f"{what} contains a NUL character")


def _check_body(body: bytes, what: str) -> None:
    """A body that says it is JSON must be, because it is embedded as it stands; other encodings are only carried."""
    if body[:2] != codec.JSON:
        return
    try:
        _skip_json(body[2:])
    except (msgspec.DecodeError, RecursionError) as error:
        raise _Unsound(f"{what} does not decode: {error}") from None


def _hash(section: ArchiveSection, strands: dict[tuple[str, int], _Seen]) -> bytes:
    """Hash a section's meaning. A strand's last digest stands for all its events, whose chain has been walked."""
    digest = sha256(_pack(("section", section.tenant, section.thread)))
    for record in section.records:
        scope = record.scope
        digest.update(_pack((
            "record", record.kind, record.id, record.version, record.body, scope.user, scope.agent, scope.thread,
            record.created, record.time, record.expires, record.tags, record.stream, record.base, record.head,
            record.digest,
        )))  # fmt: skip
    for strand in section.strands:
        seen = strands[(section.tenant, strand.stream)]
        digest.update(_pack((
            "strand", strand.stream, strand.kind, strand.id, strand.parent, strand.base, strand.digest,
            section.shared.get(strand.stream, ()), seen.last, seen.digest,
        )))  # fmt: skip
    return digest.digest()
