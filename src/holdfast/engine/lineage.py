"""How streams share history, and what may be removed with an owner.

A strand knows its parent and how much of it it shares. Reading climbs that line; erasing keeps exactly what a
surviving fork still reaches. Deliberately absent: I/O. Callers bring the strands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

import msgspec

from holdfast.engine.contract import STREAM, Change, Commit, Mark, Problem, Record, Removed, Scope, Strand
from holdfast.errors import FeedTrimmed, Invalid


class StreamPart(NamedTuple):
    """Positions ``after`` < n <= ``upto`` of one strand."""

    stream: int
    after: int
    upto: int


def parts(strand_of: Callable[[int], Strand | None], mark: Mark, after: int) -> Iterator[StreamPart]:
    """Yield the parts that make up positions ``after`` to ``mark``, newest first; stop early to read less."""
    stream: int | None = mark.stream
    upto = mark.position
    while stream is not None and upto > after:
        strand = strand_of(stream)
        if strand is None:
            return
        if upto > strand.base:
            yield StreamPart(stream, max(after, strand.base), upto)
        stream, upto = strand.parent, min(upto, strand.base)


def keeps(strands: Iterable[Strand], doomed: set[int]) -> dict[int, int]:
    """For each doomed strand, the position up to which a surviving fork still needs it (0: not at all)."""
    by_stream = {strand.stream: strand for strand in strands}
    kept = dict.fromkeys(doomed, 0)
    for survivor in by_stream.values():
        if survivor.stream in doomed:
            continue
        parent, reach = survivor.parent, survivor.base
        # Everything above a doomed ancestor that is already kept this far is kept too, so climbing can stop there.
        while parent is not None and parent in doomed and kept[parent] < reach:
            kept[parent] = reach
            above = by_stream[parent]
            parent, reach = above.parent, min(reach, above.base)
    return kept


def grave(kind: str, id: str) -> bytes:
    """The mark that an erased thing leaves: enough to recognise its id, not enough to read it."""
    return sha256(f"{kind}\x00{id}".encode()).digest()


def refuse_empty(scope: Scope) -> None:
    if scope == Scope():
        raise Invalid("erase needs a user, an agent or a thread; an empty scope would erase the whole tenant")


def inside(scope: Scope, wanted: Scope) -> bool:
    return (
        (wanted.user is None or scope.user == wanted.user)
        and (wanted.agent is None or scope.agent == wanted.agent)
        and (wanted.thread is None or scope.thread == wanted.thread)
    )


def removed(records: Iterable[Record]) -> Removed:
    """What an erasure of these records removes."""
    counts: dict[str, int] = {}
    owners: set[Scope] = set()
    for record in records:
        if not record.derived:
            counts[record.kind] = counts.get(record.kind, 0) + 1
            owners.add(Scope(record.scope.user, record.scope.agent))
    return Removed(dict(sorted(counts.items())), frozenset(owners))


def erasure(removed: Removed, forgotten: int) -> tuple[Change, ...]:
    """The feed's record of an erasure: kinds and counts of what was removed, but no ids, which may be personal.

    Where nothing was there any more, how many items of the feed were changed; nothing where none was.
    """
    if not removed.counts and forgotten:
        return (Change("erase", "feed", "", forgotten),)
    return tuple(Change("erase", kind, "", count) for kind, count in removed.counts.items())


def graves(records: Iterable[Record], free: Collection[str]) -> Iterator[tuple[str, str]]:
    """The tombstones that records leave: for the id, unless it stays free, and for the stream."""
    for record in records:
        if not record.derived and record.kind not in free:
            yield record.kind, record.id
        if not record.derived and record.stream is not None:
            yield STREAM, str(record.stream)


def actor_of(actor: str | None, scope: Scope) -> str | None:
    """The actor to record for an erasure: not a user whose data is all erased."""
    return None if actor is not None and scope == Scope(user=actor) else actor


def forgettings(erased: Mapping[str, tuple[Scope, int]], before: int) -> Iterator[Forgetting]:
    """What the feed is to forget of ids that a plan erased; ``before`` is how far the feed was before the plan."""
    for item in {item for _, item in erased.values()}:
        yield Forgetting({id: scope for id, (scope, at) in erased.items() if at == item}, upto=before + item)


class Forgetting(NamedTuple):
    """What the feed is to forget: all changes in a scope, and changes of nobody or of these owners with these ids."""

    ids: Mapping[str, Scope]
    scope: Scope = Scope()
    upto: int = 2**63 - 1

    @property
    def actor(self) -> str | None:
        """The actor to forget as well: a user whose data is all erased."""
        return self.scope.user if self.scope == Scope(user=self.scope.user) else None

    def concerns(self, change: Change) -> bool:
        if change.action == "erase":
            return False
        if self.scope != Scope() and inside(change.scope, self.scope):
            return True
        owner = self.ids.get(change.id)
        return owner is not None and change.scope.user in (None, owner.user)

    def of(self, commit: Commit) -> Commit | None:
        """The commit without what must be forgotten; None if it contains none of it."""
        if commit.position > self.upto:
            return None
        actor = None if commit.actor == self.actor else commit.actor
        changes = tuple(
            Change(change.action, change.kind, "", change.version) if self.concerns(change) else change
            for change in commit.changes
        )
        if changes == commit.changes and actor == commit.actor:
            return None
        return msgspec.structs.replace(commit, changes=changes, actor=actor)


def trimmed(after: int, first: int) -> FeedTrimmed:
    return FeedTrimmed(f"the feed begins at {first}; the commits after {after} were dropped", first=first, after=after)


def problems(tenant: str, strand: Strand, breaks: Iterator[tuple[int, str]]) -> list[Problem]:
    """Name the owner of each break in a strand's chain."""
    owner = f"{strand.kind} {strand.id!r}" if strand.kind else f"stream {strand.stream}"
    return [Problem(owner, what, tenant, strand.kind, strand.id, position) for position, what in breaks]


def short(tenant: str, strand: Strand, last: int, needed: int) -> list[Problem]:
    """Name events that must exist after the last one found, because a record or a fork counts on them."""
    if last >= needed:
        return []
    span = str(needed) if needed == last + 1 else f"{last + 1} to {needed}"
    return problems(tenant, strand, iter([(last + 1, f"entry {span} is missing")]))
