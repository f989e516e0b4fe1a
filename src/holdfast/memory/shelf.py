"""The books that a handle sees, read as one.

A handle of a pair sees its own book, the books inside it (a user's books with every agent) and those above it (the
user's, the agent's, and the one of nobody in particular). It writes to its own. A handle of an agent alone does not see
what the agent knows about each user: that belongs to the users. What is said about a memory goes to the book it is in.

Deliberately absent: how a book is kept (``book``), what is true (``facts``), and finding by meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.contract import Query, Record, Scope, View
from holdfast.errors import Invalid, NotFound
from holdfast.ids import Ids, check_id
from holdfast.ledger.core import Core, scan_all
from holdfast.memory.book import Book, usefulness
from holdfast.memory.drafts import Remembering
from holdfast.memory.facts import Version, facts, outdated, timeline
from holdfast.memory.graph import Link, to_links
from holdfast.memory.names import BOOK, MEMORY, folded, in_order, number_of
from holdfast.memory.stored import to_memory
from holdfast.records import Memory

if TYPE_CHECKING:
    from holdfast.memory.conflicts import Contradiction

_NAMED = 5


class Shelf:
    """What one handle sees: its own book, those inside it and those above it."""

    def __init__(self, core: Core, ids: Ids, scope: Scope) -> None:
        self._core, self._ids = core, ids
        self.own = Book(core, ids, scope)
        self.scope, self.subject = self.own.scope, self.own.subject

    def __repr__(self) -> str:
        return f"Shelf(user={self.scope.user!r}, agent={self.scope.agent!r})"

    # Which books

    def books(self, view: View | None = None) -> list[Book]:
        """The books, own first; those above are named also when nothing is in them yet."""
        return [self.own, *self._inside(view or self._core.engine), *self._above()]

    def sees(self, scope: Scope) -> bool:
        """Whether a book of this pair is one of them."""
        inside = self.scope.agent is None and self.scope.user is not None and scope.user == self.scope.user
        return scope == self.scope or inside or any(book.scope == scope for book in self._above())

    def _inside(self, view: View) -> Iterator[Book]:
        if self.scope.user is None or self.scope.agent is not None:
            return
        found = scan_all(view, self._core.tenant, Query(BOOK, user=self.scope.user))
        scopes = {record.scope for record in found if record.scope != self.scope}
        for scope in sorted(scopes, key=lambda scope: scope.agent or ""):
            yield Book(self._core, self._ids, scope)

    def _above(self) -> Iterator[Book]:
        user, agent = self.scope.user, self.scope.agent
        if user is not None and agent is not None:
            yield Book(self._core, self._ids, Scope(user))
            yield Book(self._core, self._ids, Scope(None, agent))
        if user is not None or agent is not None:
            yield Book(self._core, self._ids, Scope())

    def book_of(self, id: str) -> Book:
        """The book that a memory is in, if it is one of these."""
        return Book(self._core, self._ids, self._record(id).scope)

    def _record(self, id: str) -> Record:
        number_of(id)
        record = self._core.engine.get(self._core.tenant, MEMORY, id)
        if record is None or not self.sees(record.scope):
            raise NotFound(f"there is no memory {id!r} here", memory=id)
        return record

    def moment(
        self, view: View | None = None, as_of: datetime | None = None, books: Sequence[Book] | None = None
    ) -> datetime:
        """The moment that is asked for: the one that is named, or now.

        Now is not before what the books hold already: what was acknowledged is true now, whatever this clock says.
        """
        if as_of is not None:
            return to_datetime(to_micros(as_of))
        records = (book.record(view) for book in (self.books(view) if books is None else books))
        return to_datetime(max([self._core.clock.now(), *(record.time for record in records if record is not None)]))

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
        with self._core.engine.snapshot() as view:
            found = [
                memory
                for book in self.books(view)
                for memory in book.memories(
                    kind=kind, subject=subject, tag=tag, limit=limit, forgotten=forgotten, view=view
                )
            ]
        found.sort(key=lambda memory: (memory.recorded_at, in_order(memory.id)), reverse=True)
        return found[:limit]

    def procedures(self, limit: int | None = None) -> list[Memory]:
        """How to do things, the most useful first, as far as it is true now."""
        with self._core.engine.snapshot() as view:
            books = self.books(view)
            found = [memory for book in books for memory in book.procedures(view)]
            deciding = [memory for book in books for memory in book.facts(view)]
            stale = outdated([*deciding, *found], self.moment(view, books=books))
        standing = [memory for memory in found if memory.id not in stale and not memory.ended]
        return sorted(standing, key=usefulness, reverse=True)[:limit]

    def facts(
        self, *, subject: str | None = None, as_of: datetime | None = None, known_at: datetime | None = None
    ) -> list[Memory]:
        """The value of every fact now, or as it was ``as_of`` a moment, or as it was known then (``known_at``)."""
        with self._core.engine.snapshot() as view:
            moment = self.moment(view, as_of)
            found = facts(self._deciding(view), moment, _checked(known_at))
        about = None if subject is None else folded(check_id(subject, "subject"))
        return [memory for memory in found if about is None or folded(memory.subject) == about]

    def outdated(self, *, as_of: datetime | None = None, known_at: datetime | None = None) -> dict[str, str]:
        """The ids of facts and corrected memories that are not true at a moment, each with why."""
        with self._core.engine.snapshot() as view:
            return outdated(self._deciding(view), self.moment(view, as_of), _checked(known_at))

    def history(self, key: str, subject: str | None = None, *, known_at: datetime | None = None) -> list[Version]:
        """Every value that a fact ever had, in order, with the time each really held.

        Without ``subject`` it is the handle's own; when that has no such fact and exactly one other has, that one.
        """
        with self._core.engine.snapshot() as view:
            books = self.books(view)
            about = self.subject if subject is None else subject
            found = [memory for book in books for memory in book.versions(about, key, view)]
            if not found and subject is None:
                about = self._only_subject(books, key, view)
                found = [memory for book in books for memory in book.versions(about, key, view)]
        fact = (folded(about), folded(key))
        return [
            version
            for version in timeline(found, _checked(known_at))
            if version.memory.key is not None and (folded(version.memory.subject), folded(version.memory.key)) == fact
        ]

    def _only_subject(self, books: Sequence[Book], key: str, view: View) -> str:
        wanted = folded(key)
        named = {
            folded(memory.subject): memory.subject
            for book in books
            for memory in book.facts(view)
            if memory.key is not None and folded(memory.key) == wanted
        }
        if len(named) > 1:
            some = ", ".join(repr(named[name]) for name in sorted(named)[:_NAMED])
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            raise Invalid(f"several subjects have a fact {key!r}: {some}{more}; say which", key=key)
        return next(iter(named.values()), self.subject)

    def links(self, *, entity: str | None = None, known_at: datetime | None = None) -> list[Link]:
        """Every link with the time it really holds, those that are over as well; or those of one entity."""
        with self._core.engine.snapshot() as view:
            books = self.books(view)
            found = [memory for book in books for memory in (*book.links(None, view), *book.facts(view))]
        links = to_links(found, _checked(known_at))
        end = None if entity is None else folded(check_id(entity, "entity"))
        return [link for link in links if end is None or end in (folded(link.subject), folded(link.object))]

    def contradictions(self, *, subject: str | None = None) -> list[Contradiction]:
        """Pairs of memories that cannot both be true and that no key settles; see ``conflicts`` for the rules."""
        from holdfast.memory.conflicts import contradictions  # noqa: PLC0415 - many patterns, seldom asked for

        about = None if subject is None else folded(check_id(subject, "subject"))
        with self._core.engine.snapshot() as view:
            books = self.books(view)
            found = [memory for book in books for memory in book.memories(limit=None, subject=subject, view=view)]
            pairs = contradictions([*found, *(memory for book in books for memory in book.facts(view))])
        return [pair for pair in pairs if about is None or folded(pair.first.subject) == about]

    def _deciding(self, view: View) -> list[Memory]:
        return [memory for book in self.books(view) for memory in book.facts(view)]

    # Writing

    def remember(self, drafts: Sequence[Remembering]) -> list[Memory]:
        """Write memories to the handle's own book; see ``Book.remember``."""
        return self.own.remember(drafts)

    def forget(self, id: str) -> Memory:
        """See ``Book.forget``."""
        return self.book_of(id).forget(id)

    def restore(self, id: str) -> Memory:
        """See ``Book.restore``."""
        return self.book_of(id).restore(id)

    def erase(self, id: str) -> None:
        """See ``Book.erase``."""
        self.book_of(id).erase(id)

    def used(self, id: str, helped: bool | None = None) -> Memory:
        """See ``Book.used``."""
        return self.book_of(id).used(id, helped)

    def correct(self, id: str, instead: Remembering | None = None) -> Memory:
        """See ``Book.correct``: whoever sees the wrong memory must see the correction, so it is in the same book."""
        return self.book_of(id).correct(id, instead)

    def end(self, id: str, at: datetime | None = None, draft: Remembering | None = None) -> Memory:
        """See ``Book.end``."""
        return self.book_of(id).end(id, at, draft)


def _checked(known_at: datetime | None) -> datetime | None:
    return None if known_at is None else to_datetime(to_micros(known_at))
