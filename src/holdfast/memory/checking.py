"""Whether a book and its memories agree: what its stream says was remembered is there, and nothing else is.

Deliberately absent: repair.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.contract import Mark, Problem, Query, Record, View
from holdfast.errors import Corrupt, Unsupported
from holdfast.ledger.core import scan_all
from holdfast.memory.collection import id_of
from holdfast.memory.names import BOOK, MEMORY, book_id, kind_tag
from holdfast.memory.stored import to_memory
from holdfast.records import MEMORY_KINDS

_PAGE = 1_000


def problems(view: View, tenant: str) -> Iterator[Problem]:
    """Books that do not agree with their memories, and memories that cannot be read. Give a snapshot."""
    for book in scan_all(view, tenant, Query(BOOK)):
        for what in problems_of(view, tenant, book):
            yield Problem(f"book {book.id!r}", what, tenant, BOOK, book.id)
    for record in scan_all(view, tenant, Query(MEMORY)):
        try:
            to_memory(record)
            if view.get(tenant, BOOK, book_id(record.scope)) is None:
                yield Problem(f"memory {record.id!r}", "its book is missing", tenant, MEMORY, record.id)
        except (Corrupt, Unsupported) as error:
            yield Problem(f"memory {record.id!r}", str(error), tenant, MEMORY, record.id)


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
