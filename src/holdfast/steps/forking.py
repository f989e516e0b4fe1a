"""What a fork of a thread takes along of its runs.

A fork shares the journals as they were at its point: otherwise it would do again what its history says was done.
Subtasks come along with their logs. Nobody holds the runs of a fork, and nobody resumes them unasked: the steps of an
open run are for the origin to end, until someone opens the fork's run by name. Deliberately absent: leases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from holdfast.engine.contract import Event, Fork, Mark, Op, Put, Query, Record, Scope, View
from holdfast.ledger.core import scan_all
from holdfast.steps.journal import KIND, Journal, record_id, to_header


class Forking(NamedTuple):
    """A fork being worked out, on a view in which nothing changes: ``thread`` at ``moment`` becomes ``to``."""

    view: View
    tenant: str
    thread: str
    to: str
    scope: Scope
    moment: int

    def ops(self) -> tuple[Op, ...]:
        """The operations that give the fork the runs of its origin, and the logs and states of their subtasks."""
        runs = [self._run(record, position) for record, position in self._records(KIND)]
        logs = [
            self._log(record, position)
            for kind in ("thread", "state")
            for record, position in self._records(kind)
            if record.id.startswith(f"{self.thread}/")  # the thread's own are the ledger's
        ]
        return (*runs, *logs)

    def _records(self, kind: str) -> Iterator[tuple[Record, int]]:
        for record in scan_all(self.view, self.tenant, Query(kind, thread=self.thread)):
            position = 0 if record.stream is None else self._position(record)
            if position:
                yield record, position

    def _run(self, record: Record, position: int) -> Fork:
        header = to_header(record.body)
        status: Any = header.status if position == record.head else self._status(record, position)
        mine = msgspec.structs.replace(header, thread=self._moved(header.thread), status=status, holder="")
        id = record_id(mine.thread, mine.name)
        tags = record.tags if header.parent is not None else (status,)
        new = Put(KIND, id, mine.body(), scope=self.scope, tags=tags)
        return Fork(KIND, id, Mark(record.mark.stream, position), new=new)

    def _log(self, record: Record, position: int) -> Fork:
        new = Put(record.kind, self._moved(record.id), record.body, scope=self.scope, tags=record.tags)
        return Fork(record.kind, new.id, Mark(record.mark.stream, position), new=new)

    def _moved(self, id: str) -> str:
        return f"{self.to}{id.removeprefix(self.thread)}"

    def _position(self, record: Record) -> int:
        """Where a stream stood at the moment."""
        if record.time <= self.moment:
            return record.head
        return max((event.position for event in self._events(record) if event.time <= self.moment), default=0)

    def _status(self, record: Record, position: int) -> str:
        journal = Journal(record.base)
        journal.fold(event for event in self._events(record) if event.position <= position)
        return "open" if journal.ended is None else str(journal.ended["status"])

    def _events(self, record: Record) -> list[Event]:
        return self.view.read(self.tenant, record.mark)
