"""What is kept from one context to the next until it changes: the ends of logs, and what is known.

Entries never change, so only the new part of a log is read; a thread that was rewound, or erased and recreated, has
another stream and is read again. A collection's mark moves with whatever is remembered, corrected or forgotten in it,
also in another process; and between two moments at which something begins or ceases to be valid, the same is true. How
often something was of use moves no mark, so that is read each time. Deliberately absent: what is true (``memory``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast import atfork
from holdfast.engine.contract import Mark
from holdfast.ledger import log
from holdfast.ledger.core import fetch
from holdfast.memory.collection import usefulness
from holdfast.memory.names import MEMORY
from holdfast.memory.stored import readable
from holdfast.memory.visible import FactsThenAndNow
from holdfast.records import Entry, Memory

if TYPE_CHECKING:
    from holdfast.memory.visible import VisibleMemories
    from holdfast.thread import Thread


READ = 800
"""How many entries the end of a log is at least."""
_THREADS = 16
_BYTES = 64_000_000


class _Tail(NamedTuple):
    """The end of a log at a mark, at most ``most`` entries of it, and the size of each."""

    mark: Mark
    entries: tuple[Entry, ...]
    sizes: tuple[int, ...]
    most: int

    @property
    def size(self) -> int:
        return sum(self.sizes)


class LogCache:
    """The ends of the logs read last. Do not change what it returns, nor pass it to callers."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Tail] = OrderedDict()
        self._lock = atfork.lock()

    def __contains__(self, thread: str) -> bool:
        """Whether the end of a thread's log is kept."""
        return thread in self._kept

    def seen(self, thread: Thread) -> tuple[Entry, ...]:
        """The end of a log as it was when it was last read, if it is kept."""
        kept = self._kept.get(thread.id)
        return () if kept is None else kept.entries

    def of(self, thread: Thread, most: int = READ) -> tuple[Entry, ...]:
        """The last entries of a log: at least ``most``, where there are so many."""
        record = thread.logbook.record()
        if record is None:
            return ()
        with self._lock:
            known = self._kept.pop(thread.id, None)
        tail = _read(thread, record.mark, known, most)
        if tail.size > _BYTES:
            return tail.entries
        with self._lock:
            self._kept[thread.id] = tail
            while self._kept and (len(self._kept) > _THREADS or sum(one.size for one in self._kept.values()) > _BYTES):
                self._kept.popitem(last=False)
        return tail.entries


def _read(thread: Thread, mark: Mark, known: _Tail | None, most: int) -> _Tail:
    """The end of a log at a mark, with what is known of it already."""
    core = thread.logbook.core
    most = max(most, READ, 0 if known is None else known.most)
    new = 0 if known is None else mark.position - known.mark.position
    if known is not None and known.most == most and known.mark.stream == mark.stream and 0 <= new < most:
        if known.mark == mark:
            return known
        events = core.engine.read(core.tenant, mark, after=known.mark.position)
        before, sizes = known.entries, known.sizes
    else:
        events = core.engine.read(core.tenant, mark, limit=most, newest=True)
        before, sizes = (), ()
    entries = (*before, *(log.to_entry(thread.id, event) for event in events))[-most:]
    return _Tail(mark, entries, (*sizes, *(len(event.body) for event in events))[-most:], most)


_PAGES = 128


class MemoryPosition(NamedTuple):
    """The marks of the collections that a handle sees, and its current moment."""

    visible: VisibleMemories
    marks: tuple[Any, ...]
    now: datetime

    @staticmethod
    def of(visible: VisibleMemories) -> MemoryPosition:
        return MemoryPosition(visible, visible.marks(), visible.moment())


class _CachedFacts(NamedTuple):
    """Something that holds for these marks, from a moment until another one."""

    marks: tuple[Any, ...]
    since: datetime
    until: datetime | None
    held: Any

    def holds(self, sight: MemoryPosition) -> bool:
        return self.marks == sight.marks and self.since <= sight.now and (self.until is None or sight.now < self.until)


class FactCache:
    """The facts and procedures of some handles, as long as they hold."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Any, _CachedFacts] = OrderedDict()
        self._lock = atfork.lock()

    def facts(self, sight: MemoryPosition, then: datetime, trust: str | None) -> FactsThenAndNow:
        """The facts that a handle sees, as known at a moment and as they are now."""
        name = ("facts", sight.visible.scope, then, trust)
        page = self._held(name, sight)
        if page is None:
            standing = sight.visible.then_and_now(then, trust=trust)
            page = self._keep(name, _CachedFacts(sight.marks, sight.now, standing.until, standing))
        found: FactsThenAndNow = page.held
        return found

    def procedures(self, sight: MemoryPosition, limit: int, trust: str) -> list[Memory]:
        """How to do things, most useful first. Those that are values of facts are read each time."""
        visible, name = sight.visible, ("procedures", sight.visible.scope, trust)
        page = self._held(name, sight)
        if page is not None:
            core = visible.core
            records = fetch(core.engine, core.tenant, MEMORY, page.held)
            return sorted(readable(records.values()), key=usefulness, reverse=True)[:limit]
        found = visible.procedures(trust=trust)
        every = visible.memories(kind="procedural", limit=None)
        if all(one.key is None for one in every):
            self._keep(
                name, _CachedFacts(sight.marks, sight.now, _next_bound(every, sight.now), [one.id for one in found])
            )
        return found[:limit]

    def _held(self, name: Any, sight: MemoryPosition) -> _CachedFacts | None:
        with self._lock:
            page = self._pages.get(name)
            if page is None or not page.holds(sight):
                return None
            self._pages.move_to_end(name)
            return page

    def _keep(self, name: Any, page: _CachedFacts) -> _CachedFacts:
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
