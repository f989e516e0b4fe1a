"""What every handle of a store shares, the shape of a write before it is committed, and how a write is retried.

Deliberately absent: which engine, clock or schemas these are. ``store.py`` chooses; the ledger only uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from holdfast.clock import Clock
from holdfast.engine.contract import Engine, Event, Fetches, Mark, Op, Query, Receipt, Record, Replica, TimesOut, View
from holdfast.errors import Conflict, Unavailable
from holdfast.ledger.schema import Registry

P = TypeVar("P")
T = TypeVar("T")

_PAGE = 500
_FAR = 2**63 - 1
_TRIES = 1_000  # of many concurrent changes, one gets through at a time


def scan_all(view: View, tenant: str, query: Query, wanted: int | None = None) -> Iterator[Record]:
    """Yield every record that matches a query, latest activity first, page by page; a small limit reads small pages."""
    before, size = query.before, _PAGE if wanted is None else min(wanted, _PAGE)
    while page := view.scan(tenant, msgspec.structs.replace(query, before=before, limit=size)):
        yield from page
        if len(page) < size:
            return
        before = (page[-1].time, page[-1].id)


def scan_ever(view: View, tenant: str, query: Query) -> Iterator[Record]:
    """Yield every record that matches a query, including expired ones that were not swept yet."""
    mortal = set[str]()
    for record in scan_all(view, tenant, query):
        if record.expires is not None:
            mortal.add(record.id)
        yield record
    for record in scan_all(view, tenant, msgspec.structs.replace(query, expired_before=_FAR)):
        if record.id not in mortal:
            yield record


def fetch(view: View, tenant: str, kind: str, ids: Sequence[str]) -> dict[str, Record]:
    """The existing records of these ids, by id, in one query if the engine can do that."""
    if isinstance(view, Fetches):
        found: Iterable[Record] = view.get_many(tenant, kind, ids)
    else:
        found = (record for id in ids if (record := view.get(tenant, kind, id)) is not None)
    return {record.id: record for record in found}


def fetch_tagged(view: View, tenant: str, kind: str, tags: Sequence[str], limit: int) -> dict[str, list[Record]]:
    """Some of the records that have one of these tags, by tag, in one or two queries if the engine can do that."""
    if isinstance(view, Fetches):
        pairs = view.ids_tagged(tenant, kind, tags, limit)
        records = fetch(view, tenant, kind, [id for _, id in pairs]) if pairs else {}
        found = [(tag, records[id]) for tag, id in pairs if id in records]
    else:
        found = [(tag, record) for tag in tags for record in view.scan(tenant, Query(kind, tag=tag, limit=limit))]
    by_tag: dict[str, list[Record]] = {}
    for tag, record in found:
        by_tag.setdefault(tag, []).append(record)
    return by_tag


def fetch_events(view: View, tenant: str, marks: Sequence[Mark]) -> dict[Mark, Event]:
    """The existing events at these places, in one query if the engine can do that."""
    if isinstance(view, Fetches):
        return dict(view.events_at(tenant, marks))
    read = ((mark, view.read(tenant, mark, after=mark.position - 1)) for mark in marks)
    return {mark: events[0] for mark, events in read if events}


class Core(NamedTuple):
    """The parts a store is wired from."""

    engine: Engine
    tenant: str
    clock: Clock
    schemas: Registry
    actor: str | None = None
    replica: Replica | None = None

    @property
    def reading(self) -> Core:
        """The same, for reads that may be some seconds old: from the replica, if there is a fresh one."""
        return self if self.replica is None else self._replace(engine=self.replica.reader(self.tenant))

    def read(self, work: Callable[[Core], T]) -> T:
        """Do ``work``, which only reads, with ``reading``; from the start with the engine if the replica gives out."""
        if self.replica is not None:
            with suppress(Unavailable):
                return work(self.reading)
        return work(self)

    def patiently(self) -> AbstractContextManager[None]:
        """Within this, no time limit cuts a read short: for work that is worth nothing unless it is whole."""
        return self.engine.patiently() if isinstance(self.engine, TimesOut) else nullcontext()

    def settle(self) -> None:
        """Have what ``reading`` reads from here on include everything committed so far."""
        if self.replica is not None:
            self.replica.require(self.tenant)

    def write(self, ops: Sequence[Op], time: int) -> Receipt:
        """Commit operations of this tenant, in the name of this store's actor."""
        return self.engine.commit(self.tenant, ops, time, self.actor)

    def commit(self, pending: Pending[T]) -> T:
        """Commit a prepared write and return its result; without operations nothing is committed."""
        if not pending.ops:
            return pending.finish(Receipt(0, pending.time))
        return pending.finish(self.write(pending.ops, pending.time))


class Pending(NamedTuple, Generic[T]):
    """A write that is prepared but not committed, so that blocking and async callers share the preparation."""

    ops: tuple[Op, ...]
    time: int
    finish: Callable[[Receipt], T]


def compare_and_set(prepare: Callable[[], P], commit: Callable[[P], T], what: str, **facts: Any) -> T:
    """Prepare a write from the current data and commit it; if another process changed the data first, prepare it again.

    Only a ``Conflict`` from ``commit`` means that. What ``prepare`` raises goes to the caller, even a ``Conflict``.
    """
    last: Conflict | None = None
    for _ in range(_TRIES):
        prepared = prepare()
        try:
            return commit(prepared)
        except Conflict as error:
            last = error
    raise Conflict(f"{what} keeps changing: try again", **facts) from last
