"""The collections that a handle sees, read as one.

A handle of a pair sees its own collection, the collections inside it (a user's collections with every agent) and those
above it (the user's, the agent's, and the shared one). It writes to its own. A handle of an agent
alone does not see what the agent knows about each user: that belongs to the users. Changes to a memory go to
the collection it is in.

Deliberately absent: how a collection is kept (``collection``), what is true (``facts``), and finding by meaning.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.contract import Query, Record, Scope, View
from holdfast.errors import Invalid, NotFound
from holdfast.ids import Ids, check_id
from holdfast.ledger.core import Core, scan_all
from holdfast.ledger.thread import check_count
from holdfast.memory.collection import MemoryCollection, usefulness
from holdfast.memory.drafts import Remembering, check_trust
from holdfast.memory.facts import FactVersion, fact_of, facts, known, outdated, rank, silent, timeline
from holdfast.memory.filters import ListFilters, age
from holdfast.memory.graph import Link, check_hops, to_links
from holdfast.memory.names import COLLECTION, MEMORY, folded, number_of
from holdfast.memory.stored import to_memory
from holdfast.records import TRUST, Memory

if TYPE_CHECKING:
    from holdfast.memory.conflicts import Contradiction

_NAMED = 5
_PAGE = 100
Listed = tuple[MemoryCollection, list[Memory]]


class FactsThenAndNow(NamedTuple):
    """Facts as known at a moment and as they are now; valid ``until`` one begins or ceases to hold."""

    then: list[Memory]
    now: list[Memory]
    until: datetime | None


class VisibleMemories:
    """What one handle sees: its own collection, those inside it and those above it."""

    def __init__(self, core: Core, ids: Ids, scope: Scope) -> None:
        self.core, self._ids = core, ids
        self.own = MemoryCollection(core, ids, scope)
        self.scope, self.subject = self.own.scope, self.own.subject

    def __repr__(self) -> str:
        return f"VisibleMemories(user={self.scope.user!r}, agent={self.scope.agent!r})"

    def by(self, core: Core) -> VisibleMemories:
        """The same, read by another core: those of a replica."""
        return self if core is self.core else VisibleMemories(core, self._ids, self.scope)

    # Which collections

    def collections(self, view: View | None = None) -> list[MemoryCollection]:
        """The collections, own first; those above are included even while empty."""
        return [self.own, *self._inside(view or self.core.engine), *self._above()]

    def sees(self, scope: Scope) -> bool:
        """Whether a collection of this pair is one of them."""
        inside = self.scope.agent is None and self.scope.user is not None and scope.user == self.scope.user
        return scope == self.scope or inside or any(collection.scope == scope for collection in self._above())

    def _inside(self, view: View) -> Iterator[MemoryCollection]:
        if self.scope.user is None or self.scope.agent is not None:
            return
        found = scan_all(view, self.core.tenant, Query(COLLECTION, user=self.scope.user))
        scopes = {record.scope for record in found if record.scope != self.scope}
        for scope in sorted(scopes, key=lambda scope: scope.agent or ""):
            yield MemoryCollection(self.core, self._ids, scope)

    def _above(self) -> Iterator[MemoryCollection]:
        user, agent = self.scope.user, self.scope.agent
        if user is not None and agent is not None:
            yield MemoryCollection(self.core, self._ids, Scope(user))
            yield MemoryCollection(self.core, self._ids, Scope(None, agent))
        if user is not None or agent is not None:
            yield MemoryCollection(self.core, self._ids, Scope())

    def owns(self, collection: Scope) -> bool:
        """Whether a collection is this handle's own or inside it; shared memories are changed only by id."""
        own = self.scope
        return collection == own or (own.agent is None and own.user is not None and collection.user == own.user)

    def collection_of(self, id: str) -> MemoryCollection:
        """The collection that a memory is in, if it is one of these."""
        return MemoryCollection(self.core, self._ids, self._record(id).scope)

    def _record(self, id: str) -> Record:
        number_of(id)
        record = self.core.engine.get(self.core.tenant, MEMORY, id)
        if record is None or not self.sees(record.scope):
            raise NotFound(f"there is no memory {id!r} here", memory=id)
        return record

    def moment(
        self,
        view: View | None = None,
        as_of: datetime | None = None,
        collections: Sequence[MemoryCollection] | None = None,
    ) -> datetime:
        """The moment asked for: the one given, or now.

        Now is never before what the collections already hold: what was acknowledged is true now, whatever this clock
        says.
        """
        if as_of is not None:
            return to_datetime(to_micros(as_of))
        records = (
            collection.record(view) for collection in (self.collections(view) if collections is None else collections)
        )
        return to_datetime(max([self.core.clock.now(), *(record.time for record in records if record is not None)]))

    # Reading

    def get(self, id: str) -> Memory:
        """A memory of one of the collections, forgotten ones as well."""
        return to_memory(self._record(id))

    def memories(self, *, limit: int | None = 100, **only: Unpack[ListFilters]) -> list[Memory]:
        """List memories of all collections, latest first; with ``forgotten``, only forgotten ones."""
        with self.core.engine.snapshot() as view:
            return [memory for _, memory in self._newest(self.collections(view), limit, view, only)]

    def recent(self, limit: int, **only: Unpack[ListFilters]) -> list[Memory]:
        """The newest memories that are true now, latest first."""
        recent: list[Memory] = []
        standing: dict[tuple[str, str], set[str]] = {}  # of each fact that was met, what holds of it
        most = max(limit, _PAGE)
        with self.core.engine.snapshot() as view:
            collections = self.collections(view)
            moment = self.moment(view, collections=collections)
            while len(recent) < limit:
                page = self._newest(collections, most, view, only)
                new = [(place, each) for place, each in page if fact_of(each) not in standing]
                listed = [(place, [each for here, each in new if here is place]) for place in collections]
                found = _deciding(listed, view)
                stale = outdated(found, moment)
                for each in found:
                    if (fact := fact_of(each)) is not None:
                        standing.setdefault(fact, set()).update({each.id} - stale.keys())
                recent += [each for _, each in page if not silent(each) and _stands(each, stale, standing)]
                if len(page) < most:
                    break
                only = {**only, "before": page[-1][1]}
        return recent[:limit]

    def _newest(
        self, collections: Sequence[MemoryCollection], limit: int | None, view: View, only: ListFilters
    ) -> list[tuple[MemoryCollection, Memory]]:
        found = ((place, each) for place in collections for each in place.memories(limit=limit, view=view, **only))
        return sorted(found, key=lambda pair: age(pair[1]), reverse=True)[:limit]

    def procedures(self, limit: int | None = None, *, trust: str | None = None) -> list[Memory]:
        """How to do things, most useful first, if true now and trusted that much."""
        least = _degree(trust)
        with self.core.engine.snapshot() as view:
            collections = self.collections(view)
            listed = [(collection, collection.procedures(view)) for collection in collections]
            stale = outdated(_deciding(listed, view), self.moment(view, collections=collections), trust=least)
        found = known((memory for _, memories in listed for memory in memories), trust=least)
        standing = [memory for memory in found if memory.id not in stale and not silent(memory)]
        return sorted(standing, key=usefulness, reverse=True)[:limit]

    def facts(
        self,
        *,
        subject: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        trust: str | None = None,
    ) -> list[Memory]:
        """The value of every fact now, or as it was ``as_of`` a moment, or as it was known then (``known_at``).

        With ``trust``, only memories trusted that much count: less trusted values and corrections hide none.
        """
        least = _degree(trust)
        with self.core.engine.snapshot() as view:
            collections = self.collections(view)
            moment = self.moment(view, as_of, collections)
            found = facts(
                (one for collection in collections for one in collection.facts(view)), moment, _checked(known_at), least
            )
        about = None if subject is None else folded(check_id(subject, "subject"))
        return [memory for memory in found if about is None or folded(memory.subject) == about]

    def then_and_now(self, then: datetime, *, trust: str | None = None) -> FactsThenAndNow:
        """The value of every fact as known at a moment and as it is now, from one read."""
        least = _degree(trust)
        with self.core.engine.snapshot() as view:
            collections = self.collections(view)
            every = [one for collection in collections for one in collection.facts(view)]
            now = self.moment(view, collections=collections)
        bounds = (bound for one in every for bound in (one.valid_from, one.valid_to) if bound is not None)
        until = min((bound for bound in bounds if bound > now), default=None)
        before = facts(every, min(then, now), _checked(then), least)
        return FactsThenAndNow(before, facts(every, now, None, least), until)

    def marks(self) -> tuple[Any, ...]:
        """The mark of each collection: as long as the marks are the same, so are the facts."""
        records = (collection.record() for collection in self.collections())
        return tuple(None if record is None else (record.id, record.mark) for record in records)

    def history(
        self,
        key: str,
        subject: str | None = None,
        *,
        known_at: datetime | None = None,
        trust: str | None = None,
    ) -> list[FactVersion]:
        """Every value a fact ever had, in order, with the time each was true; for ``trust`` see ``facts``.

        Without ``subject`` it is the handle's own; if that has no such fact and exactly one other has, that one.
        """
        least = _degree(trust)
        with self.core.engine.snapshot() as view:
            values = self._values(key, subject, view, trust=least)
            about = {fact_of(memory) for _, memories in values for memory in memories}
            found = [memory for collection, memories in values for memory in collection.deciding((), memories, view)]
        return [version for version in timeline(found, _checked(known_at), least) if fact_of(version.memory) in about]

    def values(self, key: str, subject: str | None = None, *, forgotten: bool | None = False) -> list[Memory]:
        """The memories that are values of one fact, in any of the collections, latest first.

        ``forgotten``: False leaves out forgotten ones, True returns only those, None both. Without ``subject`` it is
        the one that ``history`` would take.
        """
        with self.core.engine.snapshot() as view:
            values = self._values(key, subject, view, forgotten=forgotten)
        found = [memory for _, memories in values for memory in memories]
        return sorted(found, key=age, reverse=True)

    def _values(
        self, key: str, subject: str | None, view: View, *, forgotten: bool | None = False, trust: str | None = None
    ) -> list[Listed]:
        """The values of one fact by collection; without ``subject`` of the handle's own, or of the only one it has."""
        collections, least = self.collections(view), rank(trust or TRUST[0])

        def listed(about: str | None) -> list[Listed]:
            found = (
                (collection, collection.values(key, about, view, forgotten=forgotten)) for collection in collections
            )
            return [
                (collection, [memory for memory in values if rank(memory.trust) >= least])
                for collection, values in found
            ]

        values = listed(self.subject if subject is None else subject)
        if subject is not None or any(memories for _, memories in values):
            return values
        values = listed(None)
        named = {folded(memory.subject): memory.subject for _, memories in values for memory in memories}
        if len(named) > 1:
            some = ", ".join(repr(named[name]) for name in sorted(named)[:_NAMED])
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            raise Invalid(f"several subjects have a fact {key!r}: {some}{more}; give subject=…", key=key)
        return values

    def links(
        self,
        *,
        entity: str | None = None,
        hops: int = 1,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Link]:
        """Every link with the time it holds, ended ones as well; or those of one entity.

        With ``hops`` also those of the entities that are fewer hops away from it. With ``as_of`` only links that hold
        at that moment, and only such lead on.
        """
        moment = _checked(as_of)
        check_hops(hops)
        if entity is not None:
            check_id(entity, "entity")
        with self.core.engine.snapshot() as view:
            collections = self.collections(view)
            if entity is None:
                found = _deciding([(collection, collection.links(None, view)) for collection in collections], view)
                return _holding(to_links(found, _checked(known_at)), moment)
            met, edge, found = set[str](), {folded(entity): entity}, list[Memory]()
            for _ in range(hops):
                listed = [
                    (collection, [link for name in edge.values() for link in collection.links(name, view)])
                    for collection in collections
                ]
                found += _deciding(listed, view)
                links = _holding(to_links(found, _checked(known_at)), moment)
                met |= edge.keys()
                links = [link for link in links if met & {folded(link.subject), folded(link.object)}]
                ends = (end for link in links for end in (link.subject, link.object))
                edge = {folded(end): end for end in ends if folded(end) not in met}
        return links

    def contradictions(self, *, subject: str | None = None, limit: int | None = 100) -> list[Contradiction]:
        """Pairs of memories that cannot both be true and that no key settles, newest first; see ``conflicts``."""
        from holdfast.memory.conflicts import contradictions  # noqa: PLC0415 - many patterns, seldom asked for

        if limit is not None:
            check_count("limit", limit)
        with self.core.engine.snapshot() as view:
            collections = self.collections(view)
            listed = [
                (collection, collection.memories(limit=None, subject=subject, view=view)) for collection in collections
            ]
            every = [memory for _, memories in listed for memory in memories]
            found = every if subject is None else _deciding(listed, view)
        return contradictions(found, limit, subject)

    # Writing

    def recalled(self, ids: Sequence[str]) -> None:
        """Count that memories were recalled."""
        for collection in self.collections() if ids else ():
            collection.recalled(ids)

    def end(self, id: str, at: datetime | None = None, draft: Remembering | None = None) -> Memory:
        """End a memory in its collection. A value that has ended in any of these collections cannot end."""
        collection = self.collection_of(id)
        beside = [other for other in self.collections() if other.scope != collection.scope]
        return collection.end(id, at, draft, beside)


def _stands(memory: Memory, stale: Container[str], standing: Mapping[tuple[str, str], set[str]]) -> bool:
    fact = fact_of(memory)
    return memory.id not in stale if fact is None else memory.id in standing[fact]


def _checked(moment: datetime | None) -> datetime | None:
    return None if moment is None else to_datetime(to_micros(moment))


def _degree(trust: str | None) -> str | None:
    return None if trust is None else check_trust(trust)


def _deciding(listed: Sequence[Listed], view: View) -> list[Memory]:
    """The memories of some collections with all that decides whether they are true, in any collection."""
    keyed = ((memory, memory.key) for _, memories in listed for memory in memories)
    facts = {fact_of(memory): (memory.subject, key) for memory, key in keyed if key is not None}
    return [one for collection, memories in listed for one in collection.deciding(facts.values(), memories, view)]


def _holding(links: Sequence[Link], moment: datetime | None) -> list[Link]:
    return [link for link in links if moment is None or link.holds(moment)]
