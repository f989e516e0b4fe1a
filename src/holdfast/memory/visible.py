"""The books that a handle sees, read as one.

A handle of a pair sees its own book, the books inside it (a user's books with every agent) and those above it (the
user's, the agent's, and the one of nobody in particular). It writes to its own. A handle of an agent alone does not see
what the agent knows about each user: that belongs to the users. What is said about a memory goes to the book it is in.

Deliberately absent: how a book is kept (``collection``), what is true (``facts``), and finding by meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.contract import Query, Record, Scope, View
from holdfast.errors import Invalid, NotFound
from holdfast.ids import Ids, check_id
from holdfast.ledger.core import Core, scan_all
from holdfast.ledger.thread import check_count
from holdfast.memory.collection import MemoryCollection, usefulness
from holdfast.memory.drafts import Remembering, check_trust
from holdfast.memory.facts import FactVersion, fact_of, facts, known, outdated, rank, silent, timeline
from holdfast.memory.graph import Link, check_hops, to_links
from holdfast.memory.names import BOOK, MEMORY, folded, in_order, number_of
from holdfast.memory.stored import to_memory
from holdfast.records import TRUST, Memory

if TYPE_CHECKING:
    from holdfast.memory.conflicts import Contradiction

_NAMED = 5
Listed = tuple[MemoryCollection, list[Memory]]


class FactsThenAndNow(NamedTuple):
    """Facts as they were known at a moment and as they are now, which is so ``until`` one begins or ceases to hold."""

    then: list[Memory]
    now: list[Memory]
    until: datetime | None


class VisibleMemories:
    """What one handle sees: its own book, those inside it and those above it."""

    def __init__(self, core: Core, ids: Ids, scope: Scope) -> None:
        self.core, self._ids = core, ids
        self.own = MemoryCollection(core, ids, scope)
        self.scope, self.subject = self.own.scope, self.own.subject

    def __repr__(self) -> str:
        return f"Shelf(user={self.scope.user!r}, agent={self.scope.agent!r})"

    # Which books

    def books(self, view: View | None = None) -> list[MemoryCollection]:
        """The books, own first; those above are named also when nothing is in them yet."""
        return [self.own, *self._inside(view or self.core.engine), *self._above()]

    def sees(self, scope: Scope) -> bool:
        """Whether a book of this pair is one of them."""
        inside = self.scope.agent is None and self.scope.user is not None and scope.user == self.scope.user
        return scope == self.scope or inside or any(book.scope == scope for book in self._above())

    def _inside(self, view: View) -> Iterator[MemoryCollection]:
        if self.scope.user is None or self.scope.agent is not None:
            return
        found = scan_all(view, self.core.tenant, Query(BOOK, user=self.scope.user))
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

    def owns(self, book: Scope) -> bool:
        """Whether a book is this handle's own or inside it: what others see too goes only by its id."""
        own = self.scope
        return book == own or (own.agent is None and own.user is not None and book.user == own.user)

    def book_of(self, id: str) -> MemoryCollection:
        """The book that a memory is in, if it is one of these."""
        return MemoryCollection(self.core, self._ids, self._record(id).scope)

    def _record(self, id: str) -> Record:
        number_of(id)
        record = self.core.engine.get(self.core.tenant, MEMORY, id)
        if record is None or not self.sees(record.scope):
            raise NotFound(f"there is no memory {id!r} here", memory=id)
        return record

    def moment(
        self, view: View | None = None, as_of: datetime | None = None, books: Sequence[MemoryCollection] | None = None
    ) -> datetime:
        """The moment that is asked for: the one that is named, or now.

        Now is not before what the books hold already: what was acknowledged is true now, whatever this clock says.
        """
        if as_of is not None:
            return to_datetime(to_micros(as_of))
        records = (book.record(view) for book in (self.books(view) if books is None else books))
        return to_datetime(max([self.core.clock.now(), *(record.time for record in records if record is not None)]))

    # Reading

    def get(self, id: str) -> Memory:
        """A memory of one of the books, forgotten ones as well."""
        return to_memory(self._record(id))

    def memories(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        tag: str | None = None,
        limit: int | None = 100,
        forgotten: bool = False,
    ) -> list[Memory]:
        """List memories of all books, the latest recorded first; with ``forgotten`` the forgotten ones instead."""
        with self.core.engine.snapshot() as view:
            found = [
                memory
                for book in self.books(view)
                for memory in book.memories(
                    kind=kind, subject=subject, tag=tag, limit=limit, forgotten=forgotten, view=view
                )
            ]
        found.sort(key=lambda memory: (memory.recorded_at, in_order(memory.id)), reverse=True)
        return found[:limit]

    def procedures(self, limit: int | None = None, *, trust: str | None = None) -> list[Memory]:
        """How to do things, the most useful first, as far as it is true now and trusted that much."""
        least = _degree(trust)
        with self.core.engine.snapshot() as view:
            books = self.books(view)
            listed = [(book, book.procedures(view)) for book in books]
            stale = outdated(_deciding(listed, view), self.moment(view, books=books), trust=least)
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

        With ``trust`` it is the value by what is trusted that much: less trusted values and corrections hide none.
        """
        least = _degree(trust)
        with self.core.engine.snapshot() as view:
            books = self.books(view)
            moment = self.moment(view, as_of, books)
            found = facts((one for book in books for one in book.facts(view)), moment, _checked(known_at), least)
        about = None if subject is None else folded(check_id(subject, "subject"))
        return [memory for memory in found if about is None or folded(memory.subject) == about]

    def then_and_now(self, then: datetime, *, trust: str | None = None) -> FactsThenAndNow:
        """The value of every fact as it was known at a moment, and as it is now, of one reading."""
        least = _degree(trust)
        with self.core.engine.snapshot() as view:
            books = self.books(view)
            every = [one for book in books for one in book.facts(view)]
            now = self.moment(view, books=books)
        bounds = (bound for one in every for bound in (one.valid_from, one.valid_to) if bound is not None)
        until = min((bound for bound in bounds if bound > now), default=None)
        before = facts(every, min(then, now), _checked(then), least)
        return FactsThenAndNow(before, facts(every, now, None, least), until)

    def marks(self) -> tuple[Any, ...]:
        """How far each of the books is: as long as this is the same, so are their facts."""
        records = (book.record() for book in self.books())
        return tuple(None if record is None else (record.id, record.mark) for record in records)

    def history(
        self,
        key: str,
        subject: str | None = None,
        *,
        known_at: datetime | None = None,
        trust: str | None = None,
    ) -> list[FactVersion]:
        """Every value that a fact ever had, in order, with the time each really held; for ``trust`` see ``facts``.

        Without ``subject`` it is the handle's own; when that has no such fact and exactly one other has, that one.
        """
        least = _degree(trust)
        with self.core.engine.snapshot() as view:
            values = self._values(key, subject, view, trust=least)
            about = {fact_of(memory) for _, memories in values for memory in memories}
            found = [memory for book, memories in values for memory in book.deciding((), memories, view)]
        return [version for version in timeline(found, _checked(known_at), least) if fact_of(version.memory) in about]

    def values(self, key: str, subject: str | None = None, *, forgotten: bool | None = False) -> list[Memory]:
        """The memories that are values of one fact, in whichever of the books, the latest recorded first.

        ``forgotten``: False leaves out what was forgotten, True gives that alone, None both. Without ``subject`` it is
        the one that ``history`` would take.
        """
        with self.core.engine.snapshot() as view:
            values = self._values(key, subject, view, forgotten=forgotten)
        found = [memory for _, memories in values for memory in memories]
        return sorted(found, key=lambda memory: (memory.recorded_at, in_order(memory.id)), reverse=True)

    def _values(
        self, key: str, subject: str | None, view: View, *, forgotten: bool | None = False, trust: str | None = None
    ) -> list[Listed]:
        """The values of one fact by book. Without ``subject``: of the handle's own, or else of the only one it has."""
        books, least = self.books(view), rank(trust or TRUST[0])

        def listed(about: str | None) -> list[Listed]:
            found = ((book, book.values(key, about, view, forgotten=forgotten)) for book in books)
            return [(book, [memory for memory in values if rank(memory.trust) >= least]) for book, values in found]

        values = listed(self.subject if subject is None else subject)
        if subject is not None or any(memories for _, memories in values):
            return values
        values = listed(None)
        named = {folded(memory.subject): memory.subject for _, memories in values for memory in memories}
        if len(named) > 1:
            some = ", ".join(repr(named[name]) for name in sorted(named)[:_NAMED])
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            raise Invalid(f"several subjects have a fact {key!r}: {some}{more}; say which", key=key)
        return values

    def links(
        self,
        *,
        entity: str | None = None,
        hops: int = 1,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Link]:
        """Every link with the time it really holds, those that are over as well; or those of one entity.

        With ``hops`` also those of the entities that are fewer hops away from it. With ``as_of`` only links that hold
        at that moment, and only such lead on.
        """
        moment = _checked(as_of)
        check_hops(hops)
        if entity is not None:
            check_id(entity, "entity")
        with self.core.engine.snapshot() as view:
            books = self.books(view)
            if entity is None:
                found = _deciding([(book, book.links(None, view)) for book in books], view)
                return _holding(to_links(found, _checked(known_at)), moment)
            met, edge, found = set[str](), {folded(entity): entity}, list[Memory]()
            for _ in range(hops):
                listed = [(book, [link for name in edge.values() for link in book.links(name, view)]) for book in books]
                found += _deciding(listed, view)
                links = _holding(to_links(found, _checked(known_at)), moment)
                met |= edge.keys()
                links = [link for link in links if met & {folded(link.subject), folded(link.object)}]
                ends = (end for link in links for end in (link.subject, link.object))
                edge = {folded(end): end for end in ends if folded(end) not in met}
        return links

    def contradictions(self, *, subject: str | None = None, limit: int | None = 100) -> list[Contradiction]:
        """Pairs of memories that cannot both be true and that no key settles, the newest first; see ``conflicts``."""
        from holdfast.memory.conflicts import contradictions  # noqa: PLC0415 - many patterns, seldom asked for

        if limit is not None:
            check_count("limit", limit)
        with self.core.engine.snapshot() as view:
            books = self.books(view)
            listed = [(book, book.memories(limit=None, subject=subject, view=view)) for book in books]
            every = [memory for _, memories in listed for memory in memories]
            found = every if subject is None else _deciding(listed, view)
        return contradictions(found, limit, subject)

    # Writing

    def remember(self, drafts: Sequence[Remembering]) -> list[Memory]:
        """Write memories to the handle's own book; see ``MemoryCollection.remember``."""
        return self.own.remember(drafts)

    def forget(self, id: str) -> Memory:
        """See ``MemoryCollection.forget``."""
        return self.book_of(id).forget(id)

    def unforget(self, id: str) -> Memory:
        """See ``MemoryCollection.unforget``."""
        return self.book_of(id).unforget(id)

    def erase(self, id: str) -> None:
        """See ``MemoryCollection.erase``."""
        self.book_of(id).erase(id)

    def used(self, id: str, helped: bool | None = None) -> Memory:
        """See ``MemoryCollection.used``."""
        return self.book_of(id).used(id, helped)

    def correct(self, id: str, instead: Remembering | None = None) -> Memory:
        """See ``MemoryCollection.correct``. It goes where the wrong memory is: whoever sees one must see the other."""
        return self.book_of(id).correct(id, instead)

    def end(self, id: str, at: datetime | None = None, draft: Remembering | None = None) -> Memory:
        """See ``MemoryCollection.end``: a value that is over in the books of this handle cannot end."""
        book = self.book_of(id)
        beside = [other for other in self.books() if other.scope != book.scope]
        return book.end(id, at, draft, beside)


def _checked(moment: datetime | None) -> datetime | None:
    return None if moment is None else to_datetime(to_micros(moment))


def _degree(trust: str | None) -> str | None:
    return None if trust is None else check_trust(trust)


def _deciding(listed: Sequence[Listed], view: View) -> list[Memory]:
    """The memories of some books with all that decides whether they are true; a fact has values in any of the books."""
    keyed = ((memory, memory.key) for _, memories in listed for memory in memories)
    facts = {fact_of(memory): (memory.subject, key) for memory, key in keyed if key is not None}
    return [one for book, memories in listed for one in book.deciding(facts.values(), memories, view)]


def _holding(links: Sequence[Link], moment: datetime | None) -> list[Link]:
    return [link for link in links if moment is None or link.holds(moment)]
