"""What belongs to a selection: which records, in which sections, and how much of which history.

History is shared: a fork reads its parent's first entries, a checkpoint may point into a branch that was rewound
away. So a selection is followed from its records to every strand they reach, and up to their first ancestors.
A strand whose owner is selected goes out whole, also what was rewound away; of any other only the shared part does.
A branch that no record, checkpoint or fork reaches any more is not found: no verb of the contract names it.
Deliberately absent: bodies of events, formats, and writing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.archive.contents import ArchiveSection, Selection
from holdfast.engine import codec
from holdfast.engine.contract import Event, Mark, Query, Record, Strand, View
from holdfast.errors import Corrupt, Invalid, NotFound
from holdfast.ids import check_id
from holdfast.ledger.core import scan_all

_PAGE = 500
_END = 2**63 - 1

Name = tuple[str, str]


def marks_of(record: Record) -> list[Mark]:
    """The points of history that a record's body names: a checkpoint's values with a stream and a position."""
    if record.kind != "checkpoint":
        return []
    body = codec.decode(record.body)
    return [mark for value in body.values() if (mark := _mark(value))] if isinstance(body, dict) else []


def _mark(value: Any) -> Mark | None:
    try:
        return msgspec.convert(value, Mark)
    except msgspec.ValidationError:
        return None


class TenantSelection:
    """One tenant's part of a selection. Give it records, then take the sections."""

    def __init__(self, view: View, tenant: str, kinds: tuple[str, ...]) -> None:
        self._view = view
        self._tenant = tenant
        self._order = {kind: number for number, kind in enumerate(kinds)}
        self._names: set[Name] = set()
        self._groups: dict[Name, list[Name]] = {}
        self._born: dict[Name, int] = {}
        self._upto: dict[int, int] = {}
        self._shared: dict[int, set[int]] = {}
        self._done: set[int] = set()

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, record: Record) -> None:
        """Take a record in, with all history it reaches."""
        name = (record.kind, record.id)
        if name in self._names:
            return
        self._names.add(name)
        group = name if record.scope.thread is None else ("thread", record.scope.thread)
        self._groups.setdefault(group, []).append(name)
        self._born[group] = min(record.created, self._born.get(group, record.created))
        for mark in self._roots(record):
            self._climb(mark)

    def sections(self) -> Iterator[ArchiveSection]:
        """Yield the sections, the oldest thread first, so that a parent comes before its forks."""
        for group in sorted(self._groups, key=lambda group: (self._born[group], group)):
            yield self._section(group)

    def _roots(self, record: Record) -> list[Mark]:
        marks = [mark for mark in marks_of(record) if self._view.strand(self._tenant, mark.stream) is not None]
        return marks if record.stream is None else [record.mark, *marks]

    def _climb(self, mark: Mark) -> None:
        """Note that a stream is needed up to a position, and so all it continues from."""
        stream, upto = mark.stream, mark.position
        while self._upto.get(stream, -1) < upto:
            self._upto[stream] = upto
            strand = self._strand(stream)
            if strand.parent is None:
                return
            self._shared.setdefault(strand.parent, set()).add(strand.base)
            stream, upto = strand.parent, strand.base

    def _strand(self, stream: int) -> Strand:
        strand = self._view.strand(self._tenant, stream)
        if strand is None:
            what = f"the store is damaged: tenant {self._tenant!r} has lost stream {stream}; run verify"
            raise Corrupt(what, tenant=self._tenant, stream=stream)
        return strand

    def _section(self, group: Name) -> ArchiveSection:
        names = sorted(self._groups[group], key=lambda name: (self._order.get(name[0], len(self._order)), name))
        found = [self._view.get(self._tenant, *name) for name in names]
        records = [record for record in found if record is not None]
        strands = [strand for record in records for mark in self._roots(record) for strand in self._line(mark.stream)]
        shared = {s.stream: tuple(sorted(self._shared[s.stream])) for s in strands if s.stream in self._shared}
        thread = group[1] if group[0] == "thread" else None
        return ArchiveSection(self._tenant, thread, tuple(records), tuple(strands), shared)

    def _line(self, stream: int) -> list[Strand]:
        """A strand with the ancestors that are not out yet, the first of them first."""
        line: list[Strand] = []
        above: int | None = stream
        while above is not None and above not in self._done:
            self._done.add(above)
            strand = self._strand(above)
            events = tuple(self._events(strand))
            if (strand.kind, strand.id) not in self._names:  # shared with a thread that does not go along
                strand = msgspec.structs.replace(strand, kind="", id="")
            line.append(msgspec.structs.replace(strand, events=events))
            above = strand.parent
        return line[::-1]

    def _events(self, strand: Strand) -> Iterator[Event]:
        upto = _END if (strand.kind, strand.id) in self._names else self._upto[strand.stream]
        after, mark = strand.base, Mark(strand.stream, upto)
        while page := self._view.read(self._tenant, mark, after=after, limit=_PAGE) if after < upto else []:
            yield from page
            after = page[-1].position


def reach(view: View, selection: Selection) -> list[TenantSelection]:
    """Follow a selection through every tenant it names."""
    if selection.tenant is None:
        if selection.thread is not None or selection.user is not None:
            raise Invalid("give the tenant of the thread or user")
        return [_reach(view, tenant, selection) for tenant in view.tenants()]
    check_id(selection.tenant, "the tenant")
    if selection.thread is not None and selection.user is not None:
        raise Invalid("choose a thread or a user, not both")
    found = _reach(view, selection.tenant, selection)
    for what, wanted in (("thread", selection.thread), ("user", selection.user)):
        if wanted is not None and not len(found):
            listed = f"; store.{what}s() and `holdfast {what}s` list what there is"
            raise NotFound(
                f"tenant {selection.tenant!r} holds nothing of {what} {wanted!r}{listed}", id=wanted, kind=what
            )
    return [found]


def _reach(view: View, tenant: str, selection: Selection) -> TenantSelection:
    found = TenantSelection(view, tenant, selection.kinds)
    threads: list[str] = []
    for kind in selection.kinds:
        for record in scan_all(view, tenant, Query(kind, user=selection.user, thread=selection.thread)):
            found.add(record)
            if kind == "thread":
                threads.append(record.id)
    if selection.thread is not None and "thread" in selection.kinds:
        itself = view.get(tenant, "thread", selection.thread)
        if itself is not None:
            found.add(itself)
    if selection.user is not None:  # what belongs to a user's thread may not name the user itself
        for kind in selection.kinds:
            for thread in threads:
                for record in scan_all(view, tenant, Query(kind, thread=thread)):
                    found.add(record)
    return found
