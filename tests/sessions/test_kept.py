"""What is kept from one context to the next is what would be read: nobody sees a context of before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import holdfast
from holdfast.context.budget import Share
from holdfast.records import message, observation, tool_call

SHORT = {"instructions": Share(0, 28)}
"""A share in which one procedure has room."""


@pytest.fixture
def store(place: Any) -> holdfast.Store:
    return place.open()


@pytest.fixture
def memory(store: holdfast.Store) -> holdfast.Memories:
    store.thread("trip", user="ana", agent="travel").append(message("user", "hello"))
    return store.memory(user="ana", agent="travel")


def told(store: holdfast.Store, **settings: Any) -> str:
    """The procedures that a context shows."""
    return store.context("trip", "where to?", budget=2_000, recall=False, **settings).section("instructions")


def rule(memory: holdfast.Memories, text: str, **details: Any) -> holdfast.types.Memory:
    return memory.remember(text, kind="procedural", trust="stated", **details)


def test_a_procedure_that_was_of_use_comes_first_in_the_next_context(
    store: holdfast.Store, memory: holdfast.Memories
) -> None:
    older, newer = rule(memory, "ask before paying a bill"), rule(memory, "book the seat at the window")
    assert told(store, shares=SHORT) == f"- {newer.text}"
    for _ in range(3):
        memory.used(older.id, helped=True)
    assert told(store, shares=SHORT) == f"- {older.text}"


def test_a_procedure_is_gone_with_whatever_takes_it_back(store: holdfast.Store, memory: holdfast.Memories) -> None:
    stays = rule(memory, "this one stays")
    for away in (memory.forget, memory.end, memory.correct, lambda id: memory.forget(id, erase=True)):
        one = rule(memory, "this one goes")
        assert told(store) == f"- {stays.text}\n- {one.text}"
        away(one.id)
        assert told(store) == f"- {stays.text}"


def test_procedures_begin_and_cease_with_the_clock(
    store: holdfast.Store, memory: holdfast.Memories, place: Any
) -> None:
    now = datetime.fromtimestamp(place.clock.now() / 1e6, UTC)
    rule(memory, "all day")
    rule(memory, "from two on", valid_from=now + timedelta(hours=2))
    rule(memory, "until three", valid_to=now + timedelta(hours=3))
    ends = rule(memory, "until four")
    memory.end(ends.id, now + timedelta(hours=4))
    seen = []
    for _ in range(5):
        seen.append(told(store).count("\n") + 1)
        place.clock.advance(3_600)
    assert seen == [3, 3, 4, 3, 2]


def test_a_procedure_that_is_a_value_of_a_fact_is_superseded_by_any_other_value(
    store: holdfast.Store, memory: holdfast.Memories, place: Any
) -> None:
    now = datetime.fromtimestamp(place.clock.now() / 1e6, UTC)
    rule(memory, "greet in French", key="greeting")
    memory.remember("in German", key="greeting", trust="stated", valid_from=now + timedelta(hours=2))
    assert told(store) == "- greet in French"
    place.clock.advance(3 * 3_600)
    assert told(store) == ""


@pytest.mark.every_engine
def test_what_another_process_learned_is_in_the_next_context(
    store: holdfast.Store, memory: holdfast.Memories, place: Any
) -> None:
    one = rule(memory, "first")
    assert told(store) == "- first"
    elsewhere = place.open(own=True).memory(agent="travel")
    other = rule(elsewhere, "second")
    assert told(store) == "- first\n- second"
    elsewhere.forget(other.id)
    assert told(store) == f"- {one.text}"


def test_a_conversation_is_shown_as_a_store_that_kept_nothing_shows_it(store: holdfast.Store, place: Any) -> None:
    thread = store.thread("trip", user="ana")
    for number in range(90):
        id = f"call-{number % 4}"  # ids come again
        thread.append(message("user", f"question {number}"), tool_call("look", {"n": number}, id=id))
        if number % 3:  # some are answered late, and some never
            thread.append(observation(f"found {number}", of=id))
        thread.append(message("assistant", f"answer {number}"))
        if number % 9 == 0:
            kept = store.context("trip", "and then?", budget=3_000, recall=False)
            fresh = place.open().context("trip", "and then?", budget=3_000, recall=False)
            assert kept.messages() == fresh.messages()


def test_a_conversation_that_was_rewound_is_told_anew(store: holdfast.Store) -> None:
    thread = store.thread("trip", user="ana")
    thread.append(*(message("user", f"question {number}") for number in range(8)))
    assert "question 7" in store.context("trip", "and then?", recall=False).text
    thread.rewind(4)
    thread.append(message("user", "another question"))
    text = store.context("trip", "and then?", recall=False).text
    assert [said in text for said in ("question 3", "question 4", "another question")] == [True, False, True]
