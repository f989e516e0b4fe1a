"""Recall and the facts agree: what an index holds for true is what follows from the memories themselves."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.errors import Invalid
from holdfast.memory.facts import outdated, timeline
from holdfast.memory.visible import VisibleMemories
from holdfast.records import Memory
from holdfast.testing import ManualClock

START = datetime(2026, 1, 1, tzinfo=UTC)
HANDLES: tuple[dict[str, str], ...] = ({"user": "ana"}, {"user": "ana", "agent": "helper"}, {})
DAYS = st.none() | st.integers(-20, 20)

REMEMBER = st.tuples(
    st.just("remember"),
    st.integers(0, len(HANDLES) - 1),
    st.sampled_from(["semantic", "semantic", "episodic", "procedural"]),
    st.sampled_from([None, "city", "City ", "job"]),
    st.sampled_from([None, "bo", "BO"]),
    DAYS,
    st.none() | st.integers(1, 15),
)
ABOUT = st.tuples(
    st.sampled_from(["correct", "wrong", "end", "end", "forget", "restore", "erase"]),
    st.integers(0, 30),
    DAYS,
)
PASS = st.tuples(st.just("pass"), st.integers(-3, 10))
HISTORIES = st.lists(REMEMBER | REMEMBER | ABOUT | PASS, min_size=1, max_size=25)


def day(number: int | None) -> datetime | None:
    return None if number is None else START + timedelta(days=number)


class Teller:
    """Lets things happen to a store as a history says."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.store = holdfast.open("ram:", clock=self.clock, embedder=None)
        self.ids: list[str] = []

    def tell(self, history: list[Any]) -> None:
        for what, *how in history:
            with suppress(Invalid):  # a history may ask for what makes no sense
                made = getattr(self, f"_{what}")(*how) if what in ("remember", "pass") else self._about(what, *how)
                if isinstance(made, Memory):
                    self.ids.append(made.id)
        self.ids = [id for id in self.ids if id]

    def _pass(self, days: int) -> None:
        self.clock.advance(days * 86_400.0)

    def _remember(
        self, handle: int, kind: str, key: str | None, subject: str | None, since: int | None, lasts: int | None
    ) -> Memory:
        start = day(since)
        until = None if lasts is None else (start or START) + timedelta(days=lasts)
        memory = self.store.memory(**HANDLES[handle])
        return memory.remember(
            f"thing {len(self.ids)}", kind=kind, key=key, subject=subject, valid_from=start, valid_to=until
        )

    def _about(self, what: str, which: int, at: int | None) -> Memory | None:
        known = [id for id in self.ids if self._find(id) is not None]
        if not known:
            return None
        id = known[which % len(known)]
        record = self._find(id)
        memory = self.store.memory(user=record.scope.user, agent=record.scope.agent)
        if what in ("forget", "restore"):
            memory.forget(id) if what == "forget" else memory.unforget(id)
        elif what == "erase":
            memory.forget(id, erase=True)
        elif what == "end":
            return memory.end(id, day(at))
        else:
            return memory.correct(id, f"rather thing {len(self.ids)}" if what == "correct" else None)
        return None

    def _find(self, id: str) -> Any:
        return self.store.core.engine.get(self.store.tenant, "memory", id)


def true_at(memories: list[Memory], moment: datetime) -> set[str]:
    """What there is to find at a moment: whatever holds. What happened stays found when it is over."""
    why = outdated(memories, moment)
    found = set()
    for version in timeline(memories):
        memory = version.memory
        over = why.get(memory.id) == "over" and memory.kind == "episodic" and memory.key is None
        says = not memory.ended and not (memory.corrects is not None and "was never true" in memory.text)
        if says and (version.holds(moment) or over):
            found.add(memory.id)
    return found


@settings(max_examples=settings().max_examples // 2)
@given(HISTORIES)
def test_recall_finds_exactly_what_is_true(history: list[Any]) -> None:
    teller = Teller()
    with teller.store as store:
        teller.tell(history)
        for handle in HANDLES:
            memory = store.memory(**handle)
            visible: VisibleMemories = memory.visible
            every = [one for collection in visible.collections() for one in collection.memories(limit=None)]
            edges = {moment for one in every for moment in (one.valid_from, one.valid_to, one.recorded_at) if moment}
            moments = sorted({edge + timedelta(microseconds=step) for edge in edges for step in (-1, 0, 1)})
            for moment in [*moments[::3], *moments[1::5], visible.moment()]:
                found = {hit.id for hit in memory.recall("thing", 1_000, as_of=moment)}
                assert found == true_at(every, moment), moment
            facts = {one.id for one in memory.facts()}
            now = {hit.id for hit in memory.recall("thing", 1_000)}
            assert facts <= now


@pytest.mark.parametrize("kind", ["semantic", "procedural"])
def test_what_is_not_true_yet_is_not_recalled(ram: holdfast.Store, clock: ManualClock, kind: str) -> None:
    memory = ram.memory(user="ana")
    memory.remember("works at Acme", kind=kind, valid_from=START + timedelta(days=30))
    memory.remember("works at Foo", kind=kind, key="job", valid_from=START + timedelta(days=30))
    assert [hit.text for hit in memory.recall("works")] == []
    clock.advance(31 * 86_400)
    assert {hit.text for hit in memory.recall("works")} == {"works at Acme", "works at Foo"}
    assert memory.recall("works", as_of=START).hits == ()


@pytest.mark.parametrize("key", [None, "job"])
def test_what_ends_later_holds_until_then(ram: holdfast.Store, clock: ManualClock, key: str | None) -> None:
    memory = ram.memory(user="ana")
    made = memory.remember("works at Acme", key=key)
    memory.end(made.id, START + timedelta(days=5))
    assert [hit.text for hit in memory.recall("works")] == ["works at Acme"]
    clock.advance(6 * 86_400)
    assert memory.recall("works").hits == ()
    assert [hit.text for hit in memory.recall("works", as_of=START + timedelta(days=4))] == ["works at Acme"]


def test_a_corrected_memory_is_not_found_and_its_correction_is(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    wrong = memory.remember("has a zebra")
    right = memory.correct(wrong.id, "has an okapi")
    assert [hit.id for hit in memory.recall("has zebra okapi")] == [right.id]
    memory.correct(right.id)  # which takes back what the correction said of the first
    assert [hit.id for hit in memory.recall("has zebra okapi was never true")] == [wrong.id]
    memory.correct(wrong.id)
    assert memory.recall("has zebra okapi was never true").hits == ()


def test_an_old_value_leads_to_the_present_one(store: holdfast.Store) -> None:
    """The words of a fact's old value find the fact, and what is shown is what is true."""
    memory = store.memory(user="ana")
    memory.remember("lives in Rome", key="city")
    memory.remember("moved to Oslo", key="city")
    assert [hit.text for hit in memory.recall("Rome")] == ["moved to Oslo"]


@pytest.mark.every_engine
def test_a_past_moment_has_its_own_truth(store: holdfast.Store, clock: ManualClock) -> None:
    memory = store.memory(user="ana")
    memory.remember("lives in Rome", key="city")
    clock.advance(10 * 86_400)
    memory.remember("lives in Oslo", key="city")
    clock.advance(10 * 86_400)
    store.thread("t", user="ana").append({"role": "user", "content": "Oslo is cold"})
    at = [START + timedelta(days=days) for days in (1, 11, 21)]
    found = [{hit.text for hit in memory.recall("lives Oslo", as_of=moment)} for moment in at]
    assert found == [{"lives in Rome"}, {"lives in Oslo"}, {"lives in Oslo", "Oslo is cold"}]
    assert memory.recall("lives", as_of=START - timedelta(days=1)).hits == ()
