"""Whether a book and its memories agree: what its stream says was remembered is there, and nothing else is.

Bodies are not read here; whoever checks a store reads every memory anyway. Deliberately absent: repair.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.contract import Mark, Query, Record, View
from holdfast.ledger.core import scan_all
from holdfast.memory.book import id_of
from holdfast.memory.names import MEMORY, book_id, kind_tag
from holdfast.records import MEMORY_KINDS

_PAGE = 1_000


def problems_of(view: View, tenant: str, book: Record) -> Iterator[str]:
    """What does not agree between the record of a book, its stream, and its memories, in words. Give a snapshot."""
    if book.id != book_id(book.scope):
        yield f"book {book.id!r} is not the book of its user and agent"
    here: dict[str, bool] = {}
    for position, what, id in _told(view, tenant, book):
        if id is None:
            yield f"event {position} of book {book.id!r} names no memory"
        else:
            here[id] = what != "erase"
    for id, kept in here.items():
        record = view.get(tenant, MEMORY, id)
        if kept and record is None:
            yield f"memory {id!r} of book {book.id!r} is lost: it was remembered and never erased"
        elif kept and record is not None and record.scope != book.scope:
            yield f"memory {id!r} of book {book.id!r} belongs to another user or agent"
        elif not kept and record is not None:
            yield f"memory {id!r} of book {book.id!r} is still there, though it was erased"
    for kind in MEMORY_KINDS:
        for record in scan_all(view, tenant, Query(MEMORY, tag=kind_tag(book.id, kind))):
            if record.id not in here:
                yield f"memory {record.id!r} is not in the stream of its book {book.id!r}"


def _told(view: View, tenant: str, book: Record) -> Iterator[tuple[int, str, str | None]]:
    after = 0
    while after < book.head and book.stream is not None:
        events = view.read(tenant, Mark(book.stream, book.head), after=after, limit=_PAGE)
        if not events:
            return
        yield from ((event.position, event.kind, id_of(event)) for event in events)
        after = events[-1].position
