"""The small language the promises are written in: an engine, a clock, and the few things tests put into it.

A ``thread`` here is a record with a stream, a ``note`` one without; to an engine both are only names. Deliberately
absent: assertions. They belong to the tests, where they can be read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from holdfast.clock import Clock
from holdfast.engine.contract import (
    Adopt,
    Append,
    Commit,
    Engine,
    Event,
    Fork,
    Mark,
    Op,
    Put,
    Query,
    Receipt,
    Record,
    Scope,
    View,
)
from holdfast.testing.export import export

ACME, GLOBEX = "acme", "globex"
ANA, BEN = Scope(user="ana"), Scope(user="ben")
EVERYTHING = 10_000
PATIENCE_S = 30.0  # a guard against hanging forever, not a measurement

T = TypeVar("T")


def event(text: str, key: str | None = None, *, kind: str = "message", time: int = 7) -> Event:
    return Event(kind, text.encode(), time, key)


def append(id: str, *events: str | Event, scope: Scope = ANA, **rest: Any) -> Append:
    """Append to a thread, which is made when it is not there."""
    rest.setdefault("new", Put("thread", id, b"", scope=scope))
    return Append("thread", id, tuple(event(e) if isinstance(e, str) else e for e in events), **rest)


def fork(id: str, source: Mark, *, scope: Scope = ANA) -> Fork:
    return Fork("thread", id, source, new=Put("thread", id, b"", scope=scope))


def rewind(id: str, source: Mark, expect: int | None = None) -> Fork:
    return Fork("thread", id, source, expect=expect)


def note(id: str, body: bytes = b"", **rest: Any) -> Put:
    return Put("note", id, body, **rest)


class Scene:
    """An engine in use."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.engine = engine
        self.clock = clock

    def commit(self, *ops: Op, tenant: str = ACME) -> Receipt:
        return self.engine.commit(tenant, ops, self.clock.now())

    def erase(self, scope: Scope, *, tenant: str = ACME, bury: bool = True) -> int:
        return self.engine.erase(tenant, scope, time=self.clock.now(), bury=bury).records

    def thread(self, id: str, tenant: str = ACME) -> Record:
        record = self.engine.get(tenant, "thread", id)
        assert record is not None, f"there is no thread {id!r}"
        return record

    def note(self, id: str, tenant: str = ACME) -> Record:
        record = self.engine.get(tenant, "note", id)
        assert record is not None, f"there is no note {id!r}"
        return record

    def mark(self, id: str, at: int | None = None) -> Mark:
        """The point where a thread is now, or an earlier position of it."""
        now = self.thread(id).mark
        return now if at is None else Mark(now.stream, at)

    def events(self, id: str, tenant: str = ACME) -> list[Event]:
        return self.engine.read(tenant, self.thread(id, tenant).mark)

    def texts(self, id: str, tenant: str = ACME) -> list[str]:
        return texts(self.events(id, tenant))

    def at(self, mark: Mark, tenant: str = ACME) -> list[str]:
        return texts(self.engine.read(tenant, mark))

    def ids(self, tenant: str = ACME, **query: Any) -> list[str]:
        return [record.id for record in self.engine.scan(tenant, Query("note", **query))]

    def export(self, id: str, tenant: str = ACME, *, whole: bool = False) -> Adopt:
        """A thread with its whole line of ancestors, as another store would be given it."""
        return export(self.engine, tenant, self.thread(id, tenant), whole=whole)


def texts(events: list[Event]) -> list[str]:
    return [event.body.decode() for event in events]


Contents = tuple[list[Record], list[list[Event]], list[Commit]]


def contents(view: View, tenant: str = ACME) -> Contents:
    """Everything a tenant holds that the reading verbs show: records, their events, the feed."""
    records = [r for kind in ("thread", "note") for r in view.scan(tenant, Query(kind, limit=EVERYTHING))]
    events = [view.read(tenant, r.mark) for r in records if r.stream is not None]
    return records, events, view.feed(tenant, limit=EVERYTHING)


def aside(look: Callable[[], T]) -> Future[T]:
    """Run something that may hang in a thread that nobody has to wait for."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(look())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome
