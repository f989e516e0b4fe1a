"""Whether a collection and its memories match: everything its stream says was remembered exists, and nothing else.

Deliberately absent: repair.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.contract import Mark, Problem, Query, Record, View
from holdfast.errors import Corrupt, Unsupported
from holdfast.ledger.core import scan_all
from holdfast.memory.collection import id_of
from holdfast.memory.names import COLLECTION, MEMORY, collection_id, kind_tag
from holdfast.memory.stored import to_memory
from holdfast.records import MEMORY_KINDS

_PAGE = 1_000


def problems(view: View, tenant: str) -> Iterator[Problem]:
    """Collections that do not match their memories, and memories that cannot be read. Give a snapshot."""
    for collection in scan_all(view, tenant, Query(COLLECTION)):
        for what in problems_of(view, tenant, collection):
            yield Problem(f"collection {collection.id!r}", what, tenant, COLLECTION, collection.id)
    for record in scan_all(view, tenant, Query(MEMORY)):
        try:
            to_memory(record)
            if view.get(tenant, COLLECTION, collection_id(record.scope)) is None:
                yield Problem(f"memory {record.id!r}", "its collection is missing", tenant, MEMORY, record.id)
        except (Corrupt, Unsupported) as error:
            yield Problem(f"memory {record.id!r}", str(error), tenant, MEMORY, record.id)


def problems_of(view: View, tenant: str, collection: Record) -> Iterator[str]:
    """How a collection, its stream and its memories differ, in words. Give a snapshot."""
    if collection.id != collection_id(collection.scope):
        yield f"collection {collection.id!r} is not the collection of its user and agent"
    here: dict[str, bool] = {}
    for position, what, id in _told(view, tenant, collection):
        if id is None:
            yield f"event {position} of collection {collection.id!r} names no memory"
        else:
            here[id] = what != "erase"
    for id, kept in here.items():
        record = view.get(tenant, MEMORY, id)
        if kept and record is None:
            yield f"memory {id!r} of collection {collection.id!r} is missing: it was remembered and never erased"
        elif kept and record is not None and record.scope != collection.scope:
            yield f"memory {id!r} of collection {collection.id!r} belongs to another user or agent"
        elif not kept and record is not None:
            yield f"memory {id!r} of collection {collection.id!r} still exists, though it was erased"
    for kind in MEMORY_KINDS:
        for record in scan_all(view, tenant, Query(MEMORY, tag=kind_tag(collection.id, kind))):
            if record.id not in here:
                yield f"memory {record.id!r} is not in the stream of its collection {collection.id!r}"


def _told(view: View, tenant: str, collection: Record) -> Iterator[tuple[int, str, str | None]]:
    after = 0
    while after < collection.head and collection.stream is not None:
        events = view.read(tenant, Mark(collection.stream, collection.head), after=after, limit=_PAGE)
        if not events:
            return
        yield from ((event.position, event.kind, id_of(event)) for event in events)
        after = events[-1].position
