"""Erasure: one durable run from counting what to remove to files that hold no word of it.

Its parts are recorded in the store, so that an erasure whose process died is finished by the next one, by ``work`` and
``resume``, or by ``finish``; a repeated call continues where it stopped and returns the whole count.

    select   what is in the scope: counts, owners, threads        nothing is changed, the run is recorded
    remove   what was learned from those threads alone, holds, and in one commit every record of the scope
    purge    what was derived from it: indexes; caches of this process
    scrub    what the files of the engine still hold of it; by now the run itself does not name anybody
    done     the run is forgotten

Every part may be repeated, so nobody has to hold the run: two who work on it do the same, and each step forward is
compare-and-set. Deliberately absent: what an index is; the wiring passes in what purges them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

import msgspec

from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Delete, Put, Query, Record, Removed, Scope, Scrubs
from holdfast.errors import (
    Conflict,
    Corrupt,
    HoldfastError,
    Invalid,
    NotFound,
    OutcomeUnknown,
    Unavailable,
    Unsupported,
)
from holdfast.ids import Ids
from holdfast.ledger import secrets
from holdfast.ledger.core import Core, fetch, scan_all, scan_ever
from holdfast.ledger.files import FILE
from holdfast.memory.collection import MemoryCollection
from holdfast.memory.names import COLLECTION, MEMORY, thread_tag
from holdfast.memory.stored import to_memory
from holdfast.records import Erasure
from holdfast.steps.hold import HOLD

KIND = "erasure"
_REMOVE, _PURGE, _SCRUB = "remove", "purge", "scrub"
_FREE = (COLLECTION, FILE)
"""Kinds whose ids are made from an owner's name. They stay free, so that the owner can start afresh."""


class _ErasureRun(msgspec.Struct, frozen=True):
    """How far an erasure is. It names its scope and the owners only until all their data is gone."""

    part: str
    forever: bool
    counts: dict[str, int]
    scope: Scope | None = None
    owners: tuple[Scope, ...] = ()
    version: int = 0


class Eraser:
    """The erasures of one tenant."""

    def __init__(self, core: Core, ids: Ids, purge: Callable[[Collection[Scope]], None]) -> None:
        self._core, self._ids, self._purge = core, ids, purge

    def erase(self, scope: Scope, *, forever: bool, dry_run: bool) -> Erasure:
        """Erase a scope, or continue an interrupted erasure of it; then finish any others."""
        if scope == Scope():
            raise Invalid("say what to erase: a thread, a user or an agent")
        if dry_run:
            return _told(self._selected(scope, forever)[0].counts)
        id, learned = self._id(scope, forever), None
        if (run := self._recorded(id)) is None:
            selected, learned = self._selected(scope, forever)
            run = self._advanced(id, selected) if selected.counts else None
        if run is None:
            self._remove(scope, forever)  # nothing is left, but the feed still mentions it
        done = _told({}) if run is None else self._carried_out(id, run, learned)
        return self._with_others(done)

    def finish(self) -> int:
        """Finish every interrupted erasure; return how many there were."""
        core, query = self._core, Query(KIND)
        open_ = [record.id for record in scan_ever(core.engine, core.tenant, query)]
        failed: list[HoldfastError] = []
        for id in open_:
            if (run := self._recorded(id)) is not None:
                try:
                    self._carried_out(id, run)
                except HoldfastError as error:  # it must not keep the others from being finished
                    failed.append(error)
        if failed:
            raise failed[0]
        return len(open_)

    def _with_others(self, done: Erasure) -> Erasure:
        """Finish erasures of others too. What cannot be finished is theirs; this one is done."""
        try:
            self.finish()
        except HoldfastError as error:
            return Erasure(int(done), done.counts, (*done.notes, f"another erasure is not finished yet: {error}"))
        return done

    # The parts

    def _selected(self, scope: Scope, forever: bool) -> tuple[_ErasureRun, list[Record]]:
        """What to do, and the memories learned from the scope's threads that are outside the scope."""
        removed = self._remove(scope, forever, dry_run=True)
        learned = self._learned(scope, self._threads(scope))
        counts = dict(removed.counts)
        for record in learned:
            counts[record.kind] = counts.get(record.kind, 0) + 1
        owners = removed.owners | {Scope(record.scope.user, record.scope.agent) for record in learned}
        return _ErasureRun(_REMOVE, forever, counts, scope, tuple(owners)), learned

    def _learned(self, scope: Scope, threads: Sequence[str]) -> list[Record]:
        """Memories outside the scope that were learned from these threads and from none that stays."""
        engine, tenant, going = self._core.engine, self._core.tenant, set(threads)
        found: dict[str, Record] = {}
        for thread in threads:
            for record in scan_all(engine, tenant, Query(MEMORY, tag=thread_tag(thread))):
                others = _sources(record) - going
                if record.id not in found and not fetch(engine, tenant, "thread", sorted(others)):
                    found[record.id] = record
        return [record for record in found.values() if not _inside(record.scope, scope)]

    def _carried_out(self, id: str, run: _ErasureRun, learned: list[Record] | None = None) -> Erasure:
        """Do what is left of a run. If it is interrupted, the next call does the rest."""
        try:
            return self._carry_out(id, run, learned)
        except OutcomeUnknown:
            raise
        except Unavailable as error:
            raise OutcomeUnknown(f"an erasure is not finished: {error}; call erase again") from error

    def _carry_out(self, id: str, run: _ErasureRun, learned: list[Record] | None) -> Erasure:
        """Do one part after the other. ``learned`` was just found; a later call has to find it again."""
        notes: tuple[str, ...] = ()
        found: _ErasureRun | None = run
        while found is not None:
            run = found
            if run.part == _REMOVE:
                found = self._advanced(id, self._removed(run, learned))
                learned = None
            elif run.part == _PURGE:
                secrets.count_erasure(self._core)
                self._purge(run.owners)
                found = self._advanced(id, _ErasureRun(_SCRUB, run.forever, run.counts, version=run.version))
            else:
                if isinstance(self._core.engine, Scrubs):
                    notes = self._core.engine.scrub()
                self._core.write([Delete(KIND, id, derived=True)], self._core.clock.now())
                found = None
        return _told(run.counts, notes)

    def _removed(self, run: _ErasureRun, learned: list[Record] | None) -> _ErasureRun:
        """Remove what there is: first what is found by way of the scope's threads, then those with all the rest."""
        assert run.scope is not None
        core, threads, owners = self._core, self._threads(run.scope), set(run.owners)
        for record in self._learned(run.scope, threads) if learned is None else learned:
            with suppress(NotFound):
                MemoryCollection(core, self._ids, record.scope).erase(record.id)
            owners.add(Scope(record.scope.user, record.scope.agent))
        # Also those that were taken before a thread had an owner.
        if holds := [Delete(HOLD, id, erase=True) for id in fetch(core.engine, core.tenant, HOLD, threads)]:
            core.write(holds, core.clock.now())
        removed = self._remove(run.scope, run.forever)
        counts = {**removed.counts, **run.counts}
        counts = {kind: max(count, removed.counts.get(kind, 0)) for kind, count in counts.items()}
        return msgspec.structs.replace(run, part=_PURGE, counts=counts, owners=tuple(owners | removed.owners))

    def _remove(self, scope: Scope, forever: bool, *, dry_run: bool = False) -> Removed:
        core = self._core
        free = _FREE if scope.thread is None else ()  # what is in a thread has no beginning of its own
        return core.engine.erase(
            core.tenant, scope, time=core.clock.now(), bury=forever, free=free, actor=core.actor, dry_run=dry_run
        )

    def _threads(self, scope: Scope) -> list[str]:
        query = Query("thread", user=scope.user, agent=scope.agent, thread=scope.thread)
        return [record.id for record in scan_ever(self._core.engine, self._core.tenant, query)]

    # How far it is

    def _id(self, scope: Scope, forever: bool) -> str:
        name = encode([scope.user, scope.agent, scope.thread, forever]).decode()
        return secrets.hidden(secrets.key_of(self._core, self._ids), name)

    def _recorded(self, id: str) -> _ErasureRun | None:
        record = self._core.engine.get(self._core.tenant, KIND, id)
        if record is None:
            return None
        return msgspec.structs.replace(msgspec.convert(decode(record.body), _ErasureRun), version=record.version)

    def _advanced(self, id: str, run: _ErasureRun) -> _ErasureRun | None:
        """Record a run's next part. If another process did so first, continue from there; None when all is done."""
        put = Put(KIND, id, encode(msgspec.to_builtins(run)), expect=run.version, derived=True)
        try:
            self._core.write([put], self._core.clock.now())
        except Conflict:
            return self._recorded(id)
        return msgspec.structs.replace(run, version=run.version + 1)


def _sources(record: Record) -> set[str]:
    """The threads that a memory was learned from; of one that cannot be read, those that tags tell are enough."""
    try:
        return {entry.thread for entry in to_memory(record).origin.entries}
    except (Corrupt, Unsupported):
        return set()


def _inside(scope: Scope, wanted: Scope) -> bool:
    pairs = ((wanted.user, scope.user), (wanted.agent, scope.agent), (wanted.thread, scope.thread))
    return all(want is None or want == found for want, found in pairs)


def _told(counts: dict[str, int], notes: Iterable[str] = ()) -> Erasure:
    return Erasure(sum(counts.values()), counts, tuple(notes))
