"""What a fork of a thread takes along of its runs.

A fork shares the journals as they were at its point: otherwise it would do again what its history says was done.
Subtasks come along with their logs. Nobody holds the runs of a fork, and nobody resumes them unasked: the steps of an
open run are for the origin to end, until someone opens the fork's run by name. Deliberately absent: leases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.contract import Fork, Mark, Op, Put, Query, Record, Scope
from holdfast.ledger.core import scan_all
from holdfast.steps.journal import KIND, Journal, to_header

if TYPE_CHECKING:
    from holdfast.steps.runs import Runs


def fork_ops(runs: Runs, thread: str, to: str, scope: Scope, moment: int) -> Iterator[Op]:
    """The operations that give a fork the runs of its origin as they were at a moment. Blocks."""
    for record in _records(runs, KIND, thread):
        position = _position_at(runs, record, moment)
        if position:
            yield _forked_run(runs, record, position, thread, to, scope)
    for kind in ("thread", "state"):
        for record in _records(runs, kind, thread):  # of subtasks; the thread's own are the ledger's
            position = _position_at(runs, record, moment)
            if record.id.startswith(f"{thread}/") and position:
                new = Put(kind, _moved(record.id, thread, to), record.body, scope=scope, tags=record.tags)
                yield Fork(kind, new.id, Mark(record.mark.stream, position), new=new)


def _records(runs: Runs, kind: str, thread: str) -> Iterator[Record]:
    found = scan_all(runs.core.engine, runs.core.tenant, Query(kind, thread=thread))
    return (record for record in found if record.stream is not None)


def _forked_run(runs: Runs, record: Record, position: int, thread: str, to: str, scope: Scope) -> Fork:
    header = to_header(record.body)
    status: Any = header.status if position == record.head else _status(runs.journal(record, position))
    mine = msgspec.structs.replace(header, thread=_moved(header.thread, thread, to), status=status, holder="")
    id = f"{len(mine.thread)}:{mine.thread}/{mine.name}"
    tags = record.tags if header.parent is not None else (status,)
    return Fork(KIND, id, Mark(record.mark.stream, position), new=Put(KIND, id, mine.body(), scope=scope, tags=tags))


def _moved(id: str, thread: str, to: str) -> str:
    return f"{to}{id.removeprefix(thread)}"


def _status(journal: Journal) -> str:
    return "open" if journal.ended is None else str(journal.ended["status"])


def _position_at(runs: Runs, record: Record, moment: int) -> int:
    if record.time <= moment:
        return record.head
    events = runs.events(record, record.head)
    return max((event.position for event in events if event.time <= moment), default=0)
