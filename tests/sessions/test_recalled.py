"""What is recalled into a context: the best hit first and always, what answers, and nothing that the page says already.

How relevant recall thinks it is comes from recall itself, except where a test says that it is told otherwise.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.context.hits import CLOSE
from holdfast.context.relevance import CLOSEST, FIRST
from holdfast.memory.handle import Memories

THINGS = (
    "boiler", "ferry", "passport", "telescope", "canoe", "printer", "garlic", "choir", "migraine", "landlord",
)  # fmt: skip
PLACES = ("in March", "by the window", "with Nora", "for forty euros", "on the third shelf")
NOTES = [f"the {thing} was seen to {place}" for thing in THINGS for place in PLACES]
UNRELATED = ("zygote quasar haiku?", "which vaccines quench neutrinos?")


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture
def notes(ram: holdfast.Store) -> holdfast.Store:
    """A store of 50 notes."""
    for text in NOTES:
        ram.memory(user="ana").remember(text)
    return ram


def told(monkeypatch: pytest.MonkeyPatch, *, answers: bool) -> None:
    """Have recall say whether anything that it finds answers."""
    recalling = Memories.recall

    def recall(self: Memories, *args: Any, **more: Any) -> Any:
        return msgspec.structs.replace(recalling(self, *args, **more), relevant=answers)

    monkeypatch.setattr(Memories, "recall", recall)


def lines(context: Any) -> list[str]:
    return [line for line in context.section("recalled").split("\n") if line.startswith("- ")]


@pytest.mark.parametrize("question", UNRELATED)
def test_an_unrelated_question_brings_next_to_nothing(notes: holdfast.Store, question: str) -> None:
    thread = notes.thread("new", user="ana")
    bare = notes.context(thread, question, recall=False).tokens
    context = notes.context(thread, question)
    assert context.report.relevant is False
    assert len(context.hits) <= CLOSEST
    assert context.tokens - bare < 180  # all of the notes take 2,400
    assert context.report.found == ()
    assert context.section("recalled").split("\n")[0] == CLOSE
    left = [one for one in context.report.dropped if one.section == "recalled"]
    assert {one.why for one in left} == {"nothing that was found is relevant"}
    (section,) = [one for one in context.report.sections if one.name == "recalled"]
    assert section.shown + section.dropped == len(NOTES)


def test_what_answers_stands_first_and_notes_far_below_it_are_left_out(notes: holdfast.Store) -> None:
    context = notes.context(notes.thread("new", user="ana"), "who saw to the telescope with Nora?")
    assert context.report.relevant
    assert "telescope was seen to with Nora" in lines(context)[0]
    assert FIRST <= len(context.hits) < len(NOTES) // 2
    assert CLOSE not in context.text
    assert [line.split(" (")[0] for line in lines(context)] == [f"- {hit.text}" for hit in context.hits]
    assert [hit.score for hit in context.hits] == sorted((hit.score for hit in context.hits), reverse=True)
    assert context.report.found == tuple(hit.id for hit in context.hits)
    assert "far below the best hit" in {one.why for one in context.report.dropped}


def test_of_a_few_notes_none_is_far(ram: holdfast.Store) -> None:
    for text in NOTES[:FIRST]:
        ram.memory(user="ana").remember(text)
    assert len(ram.context(ram.thread("new", user="ana"), "the boiler with Nora?").hits) == FIRST


def test_of_a_conversation_only_the_budget_leaves_out(ram: holdfast.Store) -> None:
    ram.thread("older", user="ana").append(*[{"role": "user", "content": text} for text in NOTES])
    context = ram.context(ram.thread("new", user="ana"), "who saw to the telescope with Nora?")
    assert len(context.hits) == len(NOTES)
    assert "telescope was seen to with Nora" in lines(context)[0]


# The best hit


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("length", [5, 60, 400, 4_000])
def test_the_best_hit_is_there_in_a_small_budget(ram: holdfast.Store, beside: bool, length: int) -> None:
    """Even where only a part of it fits, and where others are short enough to stand in its place."""
    memory = ram.memory(user="ana")
    memory.remember(f"{'grass ' * (length // 2)}. The harbour master is called Oleg. {'grass ' * (length // 2)}")
    for text in NOTES:
        memory.remember(text)
    thread = ram.thread("trip", user="ana")
    if beside:
        for number in range(30):
            thread.append(*[{"role": role, "content": f"remark {number} um"} for role in ("user", "assistant")])
    for budget in (300, 420, 1_000):
        context = ram.context(thread, "who is the harbour master?", budget)
        assert context.tokens <= budget
        assert "harbour master is called Oleg" in lines(context)[0], budget


@given(
    st.lists(st.sampled_from(NOTES) | st.text("ab cd", min_size=1, max_size=900), max_size=12),
    st.integers(60, 900),
    st.booleans(),
    st.sampled_from([words, len, None]),
)
def test_within_the_budget_the_best_hit_or_nothing(texts: list[str], budget: int, entries: bool, count: Any) -> None:
    """Whatever is found, and however it is counted: never over, and never a worse hit in place of the best."""
    with holdfast.open("ram:", embedder=None) as store:
        memory = store.memory(user="ana")
        for text in filter(str.strip, texts):
            memory.remember(text)
            if entries:
                store.thread("older", user="ana").append({"role": "user", "content": text})
        budget *= 5 if count is len else 1
        context = store.context(store.thread("new", user="ana"), "the ferry with Nora", budget, tokens=count)
        found = memory.recall("the ferry with Nora", 100)
        assert context.tokens <= budget
        assert [hit.id for hit in context.hits[:1]] in ([], [hit.id for hit in found[:1]])
        assert context.hits or not found or context.report.left < (400 if count is len else 90)
        shown = [hit.id for hit in context.hits]
        assert shown == [hit.id for hit in found if hit.id in shown], "best first"


# What the page says already


def test_what_the_facts_say_is_found_and_not_said_again(ram: holdfast.Store) -> None:
    memory = ram.memory(user="ana")
    fact = memory.remember("prefers aisle seats", key="seat_preference")
    repeated = memory.remember("Ana prefers aisle seats")
    ram.thread("older", user="ana").append({"role": "user", "content": "I prefer aisle seats."})
    context = ram.context(ram.thread("new", user="ana"), "which aisle seats does ana prefer?")
    assert context.text.count("aisle seats") == 2  # as a fact, and in the question
    assert (context.hits, context.section("recalled")) == ((), "")
    assert context.report.relevant
    assert set(context.report.found) == {fact.id, repeated.id, "older#1"}
    assert context.report.dropped == ()


@pytest.mark.parametrize(
    "said",
    [
        {"role": "user", "content": "I do not prefer aisle seats."},
        {"role": "user", "content": "I prefer aisle seats on long flights."},
        {"role": "user", "content": "I prefer aisle seats.", "name": "Bob"},
        {"role": "assistant", "content": "prefer aisle seats"},
    ],
)
def test_what_says_more_than_a_fact_or_is_said_by_others_is_recalled(ram: holdfast.Store, said: Any) -> None:
    ram.memory(user="ana").remember("prefers aisle seats", key="seat_preference")
    ram.thread("older", user="ana").append(said)
    context = ram.context(ram.thread("new", user="ana"), "which aisle seats does ana prefer?")
    assert [hit.id for hit in context.hits] == ["older#1"]


def test_a_fact_that_the_page_has_no_room_for_is_recalled(ram: holdfast.Store) -> None:
    fact = ram.memory(user="ana").remember("prefers aisle seats", key="seat_preference")
    context = ram.context(ram.thread("new", user="ana"), "which aisle seats does ana prefer?", shares={"facts": 0})
    assert [hit.id for hit in context.hits] == [fact.id]
    assert context.report.found == (fact.id,)


@given(st.lists(st.tuples(st.sampled_from(THINGS), st.sampled_from(PLACES)), min_size=1, max_size=8), st.booleans())
def test_no_fact_stands_twice_on_a_page(facts: list[tuple[str, str]], repeat: bool) -> None:
    with holdfast.open("ram:", embedder=None) as store:
        memory = store.memory(user="ana")
        for key, text in facts:
            memory.remember(f"it was seen to {text}", key=key)
            if repeat:
                memory.remember(f"It was seen to {text}!")
        context = store.context(store.thread("new", user="ana"), f"the {facts[0][0]}, seen to {facts[0][1]}", 4_000)
        known = memory.facts()
        assert {one.id for one in known}.isdisjoint(hit.id for hit in context.hits)
        assert {one.text for one in known}.isdisjoint(hit.text.lower().rstrip("!") for hit in context.hits)


def test_recall_that_calls_nothing_relevant_still_shows_the_closest(
    notes: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(monkeypatch, answers=False)
    context = notes.context(notes.thread("new", user="ana"), "who saw to the telescope with Nora?")
    assert len(context.hits) == CLOSEST
    assert "telescope was seen to with Nora" in lines(context)[0]
    assert (context.report.relevant, context.report.found) == (False, ())
