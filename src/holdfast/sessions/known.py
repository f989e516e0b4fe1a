"""Facts, kept from one context to the next until something changes: in the books, or in what is true by now.

A book's mark moves with whatever happens to a fact in it, also in another process; and between two moments at which
something begins or ceases to be valid, the same facts are true. Deliberately absent: what is true (``memory``).
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.memory.shelf import Standing

if TYPE_CHECKING:
    from holdfast.memory.shelf import Shelf

_SHELVES = 64


class _Page(NamedTuple):
    marks: Any
    since: datetime
    standing: Standing


class Known:
    """The facts of some handles, as long as they are so."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Any, _Page] = OrderedDict()
        self._lock = Lock()

    def of(self, shelf: Shelf, then: datetime, trust: str | None) -> Standing:
        """The facts that a handle sees, as they were known at a moment and as they are now."""
        name, marks, now = (shelf.scope, then, trust), shelf.marks(), shelf.moment()
        with self._lock:
            page = self._pages.pop(name, None)
        if page is None or page.marks != marks or not _holds(page, now):
            page = _Page(marks, now, shelf.then_and_now(then, trust=trust))
        with self._lock:
            self._pages[name] = page
            while len(self._pages) > _SHELVES:
                self._pages.popitem(last=False)
        return page.standing


def _holds(page: _Page, now: datetime) -> bool:
    until = page.standing.until
    return page.since <= now and (until is None or now < until)
