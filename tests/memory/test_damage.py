"""A memory that cannot be read hides no other one, can be erased, and is named by who checks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Append, Delete, Event, Put, Query, Record, Scope
from holdfast.errors import Corrupt, NotFound, Unsupported
from holdfast.memory.checking import problems_of
from holdfast.memory.drafts import Remembering
from holdfast.memory.names import BOOK, MEMORY
from holdfast.memory.visible import VisibleMemories
from holdfast.records import Memory

DAMAGE: list[tuple[str, Any]] = [
    ("version", 2), ("version", "x"), ("text", 7), ("kind", "bogus"), ("subject", None), ("trust", []),
    ("importance", "x"), ("key", 7), ("object", ["x"]), ("tags", [7]), ("origin", []), ("ended", "no"),
    ("origin", {"entries": [[1, 2]]}), ("uses", "many"), ("valid_from", "monday"), ("corrects", 1),
]  # fmt: skip


def damage(store: holdfast.Store, id: str, **parts: Any) -> None:
    record = found(store, id)
    plain = {**decode(record.body), **parts}
    rewrite(store, record, encode(plain))


def rewrite(store: holdfast.Store, record: Record, body: bytes) -> None:
    put = Put(MEMORY, record.id, body, scope=record.scope, tags=record.tags)
    store.core.engine.commit(store.tenant, [put], record.time)


def found(store: holdfast.Store, id: str) -> Record:
    record = store.core.engine.get(store.tenant, MEMORY, id)
    assert record is not None
    return record


def links(number: int) -> Remembering:
    """Something that every listing lists."""
    return Remembering(
        f"lives in town {number}", "procedural", key=f"home {number}", relation="lives in", object=f"town {number}",
        tags=("t",),
    )  # fmt: skip


def listings(shelf: VisibleMemories) -> list[list[str]]:
    every: list[list[Any]] = [
        shelf.memories(), shelf.memories(limit=None), shelf.memories(limit=9, tag="t"), shelf.facts(), shelf.links(),
        shelf.links(entity="ana", hops=2), shelf.procedures(), shelf.values("home 1"),
    ]  # fmt: skip
    return [[one.id for one in some] for some in every]


@pytest.mark.parametrize(("part", "value"), DAMAGE)
def test_a_damaged_memory_is_left_out_of_listings_and_can_be_erased(
    ram: holdfast.Store, shelf_of: Callable[..., VisibleMemories], part: str, value: Any
) -> None:
    shelf = shelf_of(ram, user="ana")
    good, bad = shelf.remember([links(1), links(2)])
    damage(ram, bad.id, **{part: value})
    assert listings(shelf) == [[good.id]] * 8
    assert [one.memory.id for one in shelf.history("home 1")] == [good.id]
    assert shelf.history("home 2") == []
    assert shelf.contradictions() == []
    with pytest.raises((Corrupt, Unsupported)):
        shelf.get(bad.id)
    shelf.erase(bad.id)
    with pytest.raises(NotFound):
        shelf.get(bad.id)


def test_a_body_that_is_nothing_at_all(
    store: holdfast.Store, shelf: VisibleMemories, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = shelf.remember([links(1), links(2)])
    rewrite(store, found(store, bad.id), b"")
    with caplog.at_level(logging.WARNING, "holdfast.memory"):
        assert listings(shelf) == [[good.id]] * 8
    assert len([record for record in caplog.records if bad.id in record.getMessage()]) <= 1
    shelf.erase(bad.id)
    assert texts(shelf.memories()) == ["lives in town 1"]


def test_what_is_left_out_is_told_once(
    ram: holdfast.Store, shelf_of: Callable[..., VisibleMemories], caplog: pytest.LogCaptureFixture
) -> None:
    shelf = shelf_of(ram, user="ana")
    (bad,) = shelf.remember([links(1)])
    damage(ram, bad.id, importance="x")
    with caplog.at_level(logging.WARNING, "holdfast.memory"):
        listings(shelf)
        listings(shelf)
    assert [bad.id in record.getMessage() for record in caplog.records] == [True]


def test_a_damaged_event_hides_no_memory(ram: holdfast.Store, shelf_of: Callable[..., VisibleMemories]) -> None:
    shelf = shelf_of(ram, user="ana")
    one = shelf.remember([links(1)])[0]
    tell(ram, shelf, Event("remember", b"j1[]", 1), Event("remember", b"", 1))
    assert shelf.memories() == [one]
    assert [problem.split(" of ")[0] for problem in problems(ram, shelf)] == ["event 2", "event 3"]


# Checking


def texts(memories: list[Memory]) -> list[str]:
    return [memory.text for memory in memories]


def tell(store: holdfast.Store, shelf: VisibleMemories, *events: Event) -> None:
    store.core.engine.commit(store.tenant, [Append(BOOK, shelf.own.id, events)], 1)


def problems(store: holdfast.Store, shelf: VisibleMemories) -> list[str]:
    with store.core.engine.snapshot() as view:
        record = shelf.own.record(view)
        assert record is not None
        return list(problems_of(view, store.tenant, record))


def test_a_book_in_order_has_no_problems(store: holdfast.Store, shelf: VisibleMemories) -> None:
    made = shelf.remember([links(number) for number in range(20)])
    shelf.forget(made[0].id)
    shelf.unforget(made[0].id)
    shelf.forget(made[1].id)
    shelf.erase(made[1].id)
    shelf.erase(made[2].id)
    shelf.correct(made[3].id)
    shelf.end(made[4].id)
    shelf.used(made[5].id)
    assert problems(store, shelf) == []


@pytest.mark.every_engine
def test_every_book_of_a_store_is_checked_by_itself(
    store: holdfast.Store, shelf_of: Callable[..., VisibleMemories]
) -> None:
    shelves = [shelf_of(store), shelf_of(store, user="ana"), shelf_of(store, user="ana", agent="bot")]
    made = [shelf.remember([links(1)])[0] for shelf in shelves]
    assert [problems(store, shelf) for shelf in shelves] == [[], [], []]
    store.core.engine.commit(store.tenant, [Delete(MEMORY, made[1].id)], 1)
    assert [len(problems(store, shelf)) for shelf in shelves] == [0, 1, 0]


@pytest.mark.every_engine
def test_a_lost_memory_is_named(store: holdfast.Store, shelf: VisibleMemories) -> None:
    made = shelf.remember([links(1), links(2)])
    store.core.engine.commit(store.tenant, [Delete(MEMORY, made[0].id)], 1)
    (problem,) = problems(store, shelf)
    assert made[0].id in problem
    assert "lost" in problem


def test_a_memory_under_another_name_is_told(ram: holdfast.Store, shelf_of: Callable[..., VisibleMemories]) -> None:
    shelf = shelf_of(ram, user="ana")
    record = found(ram, shelf.remember([links(1)])[0].id)
    moved = [Delete(MEMORY, record.id), Put(MEMORY, record.id, record.body, scope=Scope("ben"), tags=record.tags)]
    ram.core.engine.commit(ram.tenant, moved, record.time)
    (problem,) = problems(ram, shelf)
    assert "another user or agent" in problem


def test_a_memory_that_the_stream_does_not_know_is_told(
    ram: holdfast.Store, shelf_of: Callable[..., VisibleMemories]
) -> None:
    shelf = shelf_of(ram, user="ana")
    first, second = shelf.remember([links(1), links(2)])
    record = found(ram, first.id)
    shelf.erase(first.id)
    ram.core.engine._tenants[ram.tenant].graves.clear()  # type: ignore[attr-defined] - or it could not come back
    rewrite(ram, record, record.body)
    stranger = "maaaaaaaaaaaaa"
    ram.core.engine.commit(
        ram.tenant, [Put(MEMORY, stranger, record.body, scope=record.scope, tags=record.tags)], record.time
    )
    assert len(ram.core.engine.scan(ram.tenant, Query(MEMORY))) == 3
    told = problems(ram, shelf)
    assert ["though it was erased" in problem for problem in told] == [True, False]
    assert stranger in told[1]
    assert not any(second.id in problem for problem in told)
