"""What is known, kept from one context to the next until something changes: in the books, or in what is true by now.

A book's mark moves with whatever is remembered, corrected or forgotten in it, also in another process; and between two
moments at which something begins or ceases to be valid, the same is true. How often something was of use moves no mark,
so that is read each time. Deliberately absent: what is true (``memory``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast import atfork
from holdfast.ledger.core import fetch
from holdfast.memory.book import usefulness
from holdfast.memory.names import MEMORY
from holdfast.memory.shelf import Standing
from holdfast.memory.stored import readable
from holdfast.records import Memory

if TYPE_CHECKING:
    from holdfast.memory.shelf import Shelf

_PAGES = 128


class Sight(NamedTuple):
    """How far the books are that a handle sees, and the moment that is now for it."""

    shelf: Shelf
    marks: tuple[Any, ...]
    now: datetime

    @staticmethod
    def of(shelf: Shelf) -> Sight:
        return Sight(shelf, shelf.marks(), shelf.moment())


class _Page(NamedTuple):
    """Something that holds for these marks, from a moment until another one."""

    marks: tuple[Any, ...]
    since: datetime
    until: datetime | None
    held: Any

    def holds(self, sight: Sight) -> bool:
        return self.marks == sight.marks and self.since <= sight.now and (self.until is None or sight.now < self.until)


class Known:
    """The facts and procedures of some handles, as long as they are so."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Any, _Page] = OrderedDict()
        self._lock = atfork.lock()

    def facts(self, sight: Sight, then: datetime, trust: str | None) -> Standing:
        """The facts that a handle sees, as they were known at a moment and as they are now."""
        name = ("facts", sight.shelf.scope, then, trust)
        page = self._held(name, sight)
        if page is None:
            standing = sight.shelf.then_and_now(then, trust=trust)
            page = self._keep(name, _Page(sight.marks, sight.now, standing.until, standing))
        found: Standing = page.held
        return found

    def procedures(self, sight: Sight, limit: int, trust: str) -> list[Memory]:
        """How to do things, the most useful first. Those that are values of facts are read each time."""
        shelf, name = sight.shelf, ("procedures", sight.shelf.scope, trust)
        page = self._held(name, sight)
        if page is not None:
            core = shelf._core
            records = fetch(core.engine, core.tenant, MEMORY, page.held)
            return sorted(readable(records.values()), key=usefulness, reverse=True)[:limit]
        found = shelf.procedures(trust=trust)
        every = shelf.memories(kind="procedural", limit=None)
        if all(one.key is None for one in every):
            self._keep(name, _Page(sight.marks, sight.now, _next_bound(every, sight.now), [one.id for one in found]))
        return found[:limit]

    def _held(self, name: Any, sight: Sight) -> _Page | None:
        with self._lock:
            page = self._pages.get(name)
            if page is None or not page.holds(sight):
                return None
            self._pages.move_to_end(name)
            return page

    def _keep(self, name: Any, page: _Page) -> _Page:
        with self._lock:
            self._pages[name] = page
            self._pages.move_to_end(name)
            while len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        return page


def _next_bound(memories: Iterable[Memory], now: datetime) -> datetime | None:
    """When the next of these begins or ceases to be valid."""
    bounds = (bound for one in memories for bound in (one.valid_from, one.valid_to) if bound is not None)
    return min((bound for bound in bounds if bound > now), default=None)
