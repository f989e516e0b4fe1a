"""The ends of logs, kept from one context to the next: entries never change, so only what is new has to be read.

Deliberately absent: anything that could be stale. A thread that was rewound, or erased and begun anew, has another
stream, and is read again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from holdfast import atfork
from holdfast.engine.contract import Mark
from holdfast.ledger import log
from holdfast.records import Entry

if TYPE_CHECKING:
    from holdfast.thread import Thread

READ = 800
"""How many entries the end of a log is."""
_THREADS = 16
_BYTES = 64_000_000


class _Tail(NamedTuple):
    mark: Mark
    entries: tuple[Entry, ...]
    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(self.sizes)


class Tails:
    """The ends of the logs that were looked at last. What it gives is not to be changed, nor handed out."""

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

    def of(self, thread: Thread) -> tuple[Entry, ...]:
        record = thread.logbook.record()
        if record is None:
            return ()
        with self._lock:
            known = self._kept.pop(thread.id, None)
        tail = _read(thread, record.mark, known)
        if tail.size > _BYTES:
            return tail.entries
        with self._lock:
            self._kept[thread.id] = tail
            while self._kept and (len(self._kept) > _THREADS or sum(one.size for one in self._kept.values()) > _BYTES):
                self._kept.popitem(last=False)
        return tail.entries


def _read(thread: Thread, mark: Mark, known: _Tail | None) -> _Tail:
    """The end of a log at a mark, with what is known of it already."""
    core = thread.logbook.core
    if known is not None and known.mark.stream == mark.stream and 0 <= mark.position - known.mark.position < READ:
        if known.mark == mark:
            return known
        events = core.engine.read(core.tenant, mark, after=known.mark.position)
        before, sizes = known.entries, known.sizes
    else:
        events = core.engine.read(core.tenant, mark, limit=READ, newest=True)
        before, sizes = (), ()
    entries = (*before, *(log.to_entry(thread.id, event) for event in events))[-READ:]
    return _Tail(mark, entries, (*sizes, *(len(event.body) for event in events))[-READ:])
