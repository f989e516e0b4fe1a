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
from holdfast.memory.names import COLLECTION, MEMORY
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


def listings(visible: VisibleMemories) -> list[list[str]]:
    every: list[list[Any]] = [
        visible.memories(), visible.memories(limit=None), visible.memories(limit=9, tag="t"),
        visible.facts(), visible.links(),
        visible.links(entity="ana", hops=2), visible.procedures(), visible.values("home 1"),
    ]  # fmt: skip
    return [[one.id for one in some] for some in every]


@pytest.mark.parametrize(("part", "value"), DAMAGE)
def test_a_damaged_memory_is_left_out_of_listings_and_can_be_erased(
    ram: holdfast.Store, visible_to: Callable[..., VisibleMemories], part: str, value: Any
) -> None:
    visible = visible_to(ram, user="ana")
    good, bad = visible.remember([links(1), links(2)])
    damage(ram, bad.id, **{part: value})
    assert listings(visible) == [[good.id]] * 8
    assert [one.memory.id for one in visible.history("home 1")] == [good.id]
    assert visible.history("home 2") == []
    assert visible.contradictions() == []
    with pytest.raises((Corrupt, Unsupported)):
        visible.get(bad.id)
    visible.erase(bad.id)
    with pytest.raises(NotFound):
        visible.get(bad.id)


def test_a_body_that_is_nothing_at_all(
    store: holdfast.Store, visible: VisibleMemories, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = visible.remember([links(1), links(2)])
    rewrite(store, found(store, bad.id), b"")
    with caplog.at_level(logging.WARNING, "holdfast.memory"):
        assert listings(visible) == [[good.id]] * 8
    assert len([record for record in caplog.records if bad.id in record.getMessage()]) <= 1
    visible.erase(bad.id)
    assert texts(visible.memories()) == ["lives in town 1"]


def test_what_is_left_out_is_told_once(
    ram: holdfast.Store, visible_to: Callable[..., VisibleMemories], caplog: pytest.LogCaptureFixture
) -> None:
    visible = visible_to(ram, user="ana")
    (bad,) = visible.remember([links(1)])
    damage(ram, bad.id, importance="x")
    with caplog.at_level(logging.WARNING, "holdfast.memory"):
        listings(visible)
        listings(visible)
    assert [bad.id in record.getMessage() for record in caplog.records] == [True]


def test_a_damaged_event_hides_no_memory(ram: holdfast.Store, visible_to: Callable[..., VisibleMemories]) -> None:
    visible = visible_to(ram, user="ana")
    one = visible.remember([links(1)])[0]
    tell(ram, visible, Event("remember", b"j1[]", 1), Event("remember", b"", 1))
    assert visible.memories() == [one]
    assert [problem.split(" of ")[0] for problem in problems(ram, visible)] == ["event 2", "event 3"]


# Checking


def texts(memories: list[Memory]) -> list[str]:
    return [memory.text for memory in memories]


def tell(store: holdfast.Store, visible: VisibleMemories, *events: Event) -> None:
    store.core.engine.commit(store.tenant, [Append(COLLECTION, visible.own.id, events)], 1)


def problems(store: holdfast.Store, visible: VisibleMemories) -> list[str]:
    with store.core.engine.snapshot() as view:
        record = visible.own.record(view)
        assert record is not None
        return list(problems_of(view, store.tenant, record))


def test_a_book_in_order_has_no_problems(store: holdfast.Store, visible: VisibleMemories) -> None:
    made = visible.remember([links(number) for number in range(20)])
    visible.forget(made[0].id)
    visible.unforget(made[0].id)
    visible.forget(made[1].id)
    visible.erase(made[1].id)
    visible.erase(made[2].id)
    visible.correct(made[3].id)
    visible.end(made[4].id)
    visible.used(made[5].id)
    assert problems(store, visible) == []


@pytest.mark.every_engine
def test_every_book_of_a_store_is_checked_by_itself(
    store: holdfast.Store, visible_to: Callable[..., VisibleMemories]
) -> None:
    handles = [visible_to(store), visible_to(store, user="ana"), visible_to(store, user="ana", agent="bot")]
    made = [visible.remember([links(1)])[0] for visible in handles]
    assert [problems(store, visible) for visible in handles] == [[], [], []]
    store.core.engine.commit(store.tenant, [Delete(MEMORY, made[1].id)], 1)
    assert [len(problems(store, visible)) for visible in handles] == [0, 1, 0]


@pytest.mark.every_engine
def test_a_lost_memory_is_named(store: holdfast.Store, visible: VisibleMemories) -> None:
    made = visible.remember([links(1), links(2)])
    store.core.engine.commit(store.tenant, [Delete(MEMORY, made[0].id)], 1)
    (problem,) = problems(store, visible)
    assert made[0].id in problem
    assert "is missing" in problem


def test_a_memory_under_another_name_is_told(ram: holdfast.Store, visible_to: Callable[..., VisibleMemories]) -> None:
    visible = visible_to(ram, user="ana")
    record = found(ram, visible.remember([links(1)])[0].id)
    moved = [Delete(MEMORY, record.id), Put(MEMORY, record.id, record.body, scope=Scope("ben"), tags=record.tags)]
    ram.core.engine.commit(ram.tenant, moved, record.time)
    (problem,) = problems(ram, visible)
    assert "another user or agent" in problem


def test_a_memory_that_the_stream_does_not_know_is_told(
    ram: holdfast.Store, visible_to: Callable[..., VisibleMemories]
) -> None:
    visible = visible_to(ram, user="ana")
    first, second = visible.remember([links(1), links(2)])
    record = found(ram, first.id)
    visible.erase(first.id)
    ram.core.engine._tenants[ram.tenant].graves.clear()  # type: ignore[attr-defined] - or it could not come back
    rewrite(ram, record, record.body)
    stranger = "maaaaaaaaaaaaa"
    ram.core.engine.commit(
        ram.tenant, [Put(MEMORY, stranger, record.body, scope=record.scope, tags=record.tags)], record.time
    )
    assert len(ram.core.engine.scan(ram.tenant, Query(MEMORY))) == 3
    told = problems(ram, visible)
    assert ["though it was erased" in problem for problem in told] == [True, False]
    assert stranger in told[1]
    assert not any(second.id in problem for problem in told)
