"""Import: an archive checked from end to end, then written to a store.

First the whole file is proved, then every part is planned against the store, exactly as the engine will decide it,
and only when nothing is damaged and nothing conflicts is anything written. Sections are committed in batches; an
archive that fits into one batch is all or nothing for each tenant. A larger one is committed a batch at a time, no
thread ever split. If another writer gets in the way between plan and commit, the batches before it stay: importing
again is harmless, and continues where it stopped.

What was erased here stays erased: it is left out, with what depends on it, and counted. Deliberately absent: merging
histories that diverged; that is a ``Conflict``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from holdfast.archive.contents import ArchiveManifest, ArchiveSection
from holdfast.archive.formats import OpenedArchive, Progress, Source, opened
from holdfast.archive.selection import marks_of
from holdfast.engine.contract import STREAM, Adopt, Buries, Engine, Event, Mark, Measures, Record, Strand, View
from holdfast.engine.plan import Changes, Limits, Plan
from holdfast.errors import Conflict, Invalid
from holdfast.ids import Ids, check_id

BATCH_EVENTS = 20_000
BATCH_BYTES = 32 * 1024 * 1024
_END = 2**63 - 1

Names = set[tuple[str, str, str]]


class ImportReport(msgspec.Struct, frozen=True):
    """What an import did, or with ``dry_run`` would do. ``skipped`` records were here already, as new or newer;
    ``erased`` ones were erased here, or stand on something that was, and are left out."""

    manifest: ArchiveManifest
    dry_run: bool = False
    threads: int = 0
    records: int = 0
    events: int = 0
    updated: int = 0
    skipped: int = 0
    erased: int = 0


StandsOn = Callable[[Record], tuple[str, str] | None]
"""Says which other record one cannot do without, by kind and id."""


def check_archive(source: Source, *, progress: Progress | None = None) -> ArchiveManifest:
    """Read an archive from end to end and return its manifest.

    ``Corrupt`` says where it is damaged, ``Unsupported`` that a newer Holdfast wrote it, ``Invalid`` that it is none.
    """
    with opened(source) as rewind:
        return _check(rewind, progress)[0]


def import_archive(
    engine: Engine,
    source: Source,
    *,
    tenant: str | None = None,
    time: int,
    actor: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    stands_on: StandsOn = lambda record: None,
) -> ImportReport:
    """Import an archive, keeping every number, time and digest; ``tenant`` gives its one tenant another name.

    Raises what ``check_archive`` raises, and ``Conflict`` when a thread here went another way; nothing is imported
    then. What was erased here is left out. Repeating an import is harmless. ``progress`` is called with "check", "plan"
    or "import", the sections done and how many there are (0 while that is not known).
    """
    with opened(source) as rewind:
        manifest, names = _check(rewind, progress)
        rename = _renaming(manifest, tenant)
        report = _Report(progress, manifest.sections)
        with engine.snapshot() as view:
            sieve = _Sieve(view, stands_on)
            tally = _ArchiveTally(view, {(rename(owner), kind, id) for owner, kind, id in names})
            for batch in report.each("plan", _batches(rewind, rename)):
                tally.add([sieve.look(section) for section in batch])
        if not dry_run:
            for batch in report.each("import", _batches(rewind, rename)):
                engine.commit(batch[0].tenant, [_adopt([sieve.left(section) for section in batch])], time, actor)
        return tally.report(manifest, dry_run, len(sieve.names))


def _check(rewind: Callable[[], BinaryIO], progress: Progress | None) -> tuple[ArchiveManifest, Names]:
    reading = OpenedArchive(rewind())
    for done, _ in enumerate(reading, 1):
        if progress is not None:
            progress("check", done, 0)
    assert reading.manifest is not None
    return reading.manifest, reading.audit.names


def _renaming(manifest: ArchiveManifest, tenant: str | None) -> Callable[[str], str]:
    if tenant is None:
        return lambda name: name
    check_id(tenant, "the tenant")
    if len(manifest.tenants) > 1:
        raise Invalid(f"the archive holds {len(manifest.tenants)} tenants; they cannot all be imported as {tenant!r}")
    return lambda name: tenant


def _batches(rewind: Callable[[], BinaryIO], rename: Callable[[str], str]) -> Iterator[list[ArchiveSection]]:
    """Yield sections of one tenant, as many as make a fair commit. Each reading proves what it reads again."""
    batch: list[ArchiveSection] = []
    events = size = 0
    for section in OpenedArchive(rewind()):
        section = msgspec.structs.replace(section, tenant=rename(section.tenant))
        more_events = sum(len(strand.events) for strand in section.strands)
        more_bytes = sum(len(item.body) for item in _bodies(section))
        full = events + more_events > BATCH_EVENTS or size + more_bytes > BATCH_BYTES
        if batch and (full or section.tenant != batch[0].tenant):
            yield batch
            batch, events, size = [], 0, 0
        batch.append(section)
        events, size = events + more_events, size + more_bytes
    if batch:
        yield batch


def _bodies(section: ArchiveSection) -> Iterator[Event | Record]:
    yield from section.records
    for strand in section.strands:
        yield from strand.events


def _adopt(batch: list[ArchiveSection]) -> Adopt:
    records = tuple(record for section in batch for record in section.records)
    return Adopt(records, tuple(strand for section in batch for strand in section.strands))


class _Report:
    """Tells the caller how far an import is."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total

    def each(self, stage: str, batches: Iterator[list[ArchiveSection]]) -> Iterator[list[ArchiveSection]]:
        done = 0
        for batch in batches:
            yield batch
            done += len(batch)
            if self._progress is not None:
                self._progress(stage, done, self._total)


class _Sieve:
    """Leaves out what was erased here: records by their tombstones, histories by those of their streams, and whatever
    stands on one of them. What a fork here still shares of an erased history is here, and stays."""

    def __init__(self, view: View, stands_on: StandsOn) -> None:
        self._view, self._stands_on = view, stands_on
        self._buried = view.buried if isinstance(view, Buries) else lambda tenant, kind, id: False
        self._streams: set[tuple[str, int]] = set()
        self._shared: dict[tuple[str, int], set[int]] = {}
        self.names: Names = set()

    def look(self, section: ArchiveSection) -> ArchiveSection:
        """Leave out of a section what must not be imported. Sections come in the archive's order."""
        tenant = section.tenant
        self.names |= {(tenant, r.kind, r.id) for r in section.records if self._erased(tenant, r)}
        for strand in section.strands:
            place = (tenant, strand.stream)
            if (
                self._buried(tenant, STREAM, str(strand.stream))
                and self._view.strand(tenant, strand.stream) is not None
            ):
                events = self._view.read(tenant, Mark(strand.stream, _END), after=strand.base)
                self._shared[place] = {event.position for event in events}
            elif self._closed(tenant, strand):
                self._streams.add(place)
        self.names |= {(tenant, r.kind, r.id) for r in section.records if self._lost(tenant, r)}
        return self.left(section)

    def left(self, section: ArchiveSection) -> ArchiveSection:
        """What is left of a section that was looked at."""
        tenant = section.tenant
        records = tuple(r for r in section.records if (tenant, r.kind, r.id) not in self.names)
        strands = (strand for strand in section.strands if (tenant, strand.stream) not in self._streams)
        return msgspec.structs.replace(
            section, records=records, strands=tuple(self._trimmed(tenant, strand) for strand in strands)
        )

    def _erased(self, tenant: str, record: Record) -> bool:
        """Whether a record was erased, or what it is of: its thread, or what else it stands on."""
        thread, below = record.scope.thread, self._stands_on(record)
        return (
            self._buried(tenant, record.kind, record.id)
            or (thread is not None and self._buried(tenant, "thread", thread))
            or (below is not None and (tenant, *below) in self.names)
        )

    def _closed(self, tenant: str, strand: Strand) -> bool:
        """Whether nothing of a history may come in: it was erased, or its owner, or what it continues from."""
        return (
            self._buried(tenant, STREAM, str(strand.stream))
            or (tenant, strand.kind, strand.id) in self.names
            or (strand.parent is not None and (tenant, strand.parent) in self._streams)
        )

    def _lost(self, tenant: str, record: Record) -> bool:
        """Whether the history that a record has or points to does not come in."""
        streams = [mark.stream for mark in marks_of(record)] + ([] if record.stream is None else [record.stream])
        return any((tenant, stream) in self._streams for stream in streams)

    def _trimmed(self, tenant: str, strand: Strand) -> Strand:
        shared = self._shared.get((tenant, strand.stream))
        if shared is None:
            return strand
        events = tuple(event for event in strand.events if event.position in shared)
        return msgspec.structs.replace(strand, kind="", id="", events=events)


class _Now:
    """The store as a plan looks at it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.get = view.get
        self.strand = view.strand

    def read(
        self, tenant: str, mark: Mark, *, after: int = 0, limit: int | None = None, key: str | None = None
    ) -> list[Event]:
        return self._view.read(tenant, mark, after=after, limit=limit, key=key)

    def buried(self, tenant: str, kind: str, id: str) -> bool:
        # Where a view cannot say, the commit still does.
        return isinstance(self._view, Buries) and self._view.buried(tenant, kind, id)

    def limits(self, tenant: str) -> Limits:
        return self._view.limits(tenant) if isinstance(self._view, Measures) else {}


class _ArchiveTally:
    """Plans an import without writing it. What the engine would refuse is refused here, before anything is written."""

    def __init__(self, view: View, names: Names) -> None:
        self._view = view
        self._names = names
        self._threads = self._records = self._events = self._updated = self._skipped = 0

    def add(self, batch: list[ArchiveSection]) -> None:
        plan = Plan(batch[0].tenant, _Now(self._view), Ids())
        plan.add([_adopt(batch)], 0)
        for section in batch:
            for strand in section.strands:
                self._check_owner(section.tenant, strand, plan.changes)
            for record in section.records:
                self._check_end(section.tenant, record)
                self._count(section.tenant, record, plan.changes)
        self._events += len(plan.changes.events)

    def report(self, manifest: ArchiveManifest, dry_run: bool, erased: int) -> ImportReport:
        return ImportReport(
            manifest, dry_run, self._threads, self._records, self._events, self._updated, self._skipped, erased
        )

    def _count(self, tenant: str, record: Record, changes: Changes) -> None:
        if (record.kind, record.id) not in changes.records:
            self._skipped += 1
        elif self._view.get(tenant, record.kind, record.id) is not None:
            self._updated += 1
        else:
            self._records += 1
            self._threads += record.kind == "thread"

    def _check_owner(self, tenant: str, strand: Strand, changes: Changes) -> None:
        """A shared beginning may not run ahead of the thread it belongs to, or that thread could not continue."""
        known = self._view.strand(tenant, strand.stream)
        if known is None or not known.kind or strand.stream in changes.strands:
            return
        if strand.kind and (known.kind, known.id) != (strand.kind, strand.id):
            why = f"here its history belongs to {known.kind} {known.id!r}"
            raise _conflict(strand.kind, strand.id, why, strand.base + 1)
        owner = self._view.get(tenant, known.kind, known.id)
        last = strand.events[-1].position if strand.events else strand.base
        if (tenant, known.kind, known.id) in self._names or owner is None or owner.stream != strand.stream:
            return
        if owner.head < last:
            why = f"the archive shares entry {last} of it with a fork; import the {known.kind} itself first"
            raise _conflict(known.kind, known.id, why, owner.head + 1)

    def _check_end(self, tenant: str, record: Record) -> None:
        """A thread may not come in shorter than the part of it that a fork here already shares."""
        if record.stream is None or self._view.get(tenant, record.kind, record.id) is not None:
            return
        if self._view.read(tenant, Mark(record.stream, _END), after=record.head, limit=1):
            why = f"a fork here shares more of it than the archive's {record.head} entries; import a newer export"
            raise _conflict(record.kind, record.id, why, record.head + 1)


def _conflict(kind: str, id: str, why: str, position: int) -> Conflict:
    return Conflict(f"{kind} {id!r} cannot be imported at entry {position}: {why}", kind=kind, id=id, position=position)
