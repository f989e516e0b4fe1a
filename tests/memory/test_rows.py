"""Memories with everything a row has: metadata, types, vectors, counts, pages; on each engine in turn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.errors import Invalid, NotFound
from holdfast.memory.metadata import marks_of, wanted_marks
from holdfast.records import Memory
from holdfast.testing import ManualClock


@pytest.fixture
def memory(store: holdfast.Store) -> holdfast.Memories:
    return store.memory("ana")


def texts(found: Any) -> list[str]:
    return [one.text for one in found]


# Metadata and types


@pytest.mark.every_engine
def test_metadata_comes_back_and_filters_listings_and_recalls(memory: holdfast.Memories) -> None:
    kept = {"project": "apollo", "labels": ["red", "blue"], "build": 7, "deep": {"a": [1, None]}}
    memory.remember("the build of apollo broke", metadata=kept, type="incident")
    memory.remember("the build of gemini broke", metadata={"project": "gemini", "build": 7.0}, type="incident")
    memory.remember("the build of nothing broke")
    apollo = memory.memories(where={"project": "apollo"})
    assert (texts(apollo), apollo[0].metadata, apollo[0].type) == (["the build of apollo broke"], kept, "incident")
    assert len(memory.memories(where={"build": 7})) == 2  # 7 and 7.0
    assert len(memory.memories(where={"deep": {"a": [1.0, None]}})) == 1
    assert texts(memory.memories(where={"labels": "blue"})) == ["the build of apollo broke"]
    assert texts(memory.memories(where={"labels": ["red", "blue"], "deep": {"a": [1, None]}})) == texts(apollo)
    assert memory.memories(where={"labels": ["blue", "red"]}) == memory.memories(where={"absent": None}) == []
    assert len(memory.memories(type="incident", kind="semantic")) == 2
    assert memory.memories(type="incident", kind="episodic") == []
    assert texts(memory.recall("which build broke?", where={"project": "gemini"})) == ["the build of gemini broke"]
    assert len(memory.recall("which build broke?", type="incident")) == 2
    assert not memory.recall("which build broke?", type="party")


def test_metadata_is_a_copy(memory: holdfast.Memories) -> None:
    given_: dict[str, Any] = {"labels": ["red"]}
    made = memory.remember("a", metadata=given_)
    given_["labels"].append("blue")
    assert memory.get(made.id).metadata == made.metadata == {"labels": ["red"]}


def nested(depth: int) -> dict[str, Any]:
    found: Any = 1
    for _ in range(depth):
        found = {"a": found}
    return {"a": found}


@pytest.mark.parametrize(
    "wrong",
    [{"a": math.nan}, {"a": {1, 2}}, {1: "a"}, {"": 1}, ["a"], "a", {"a": "\ud800"}, {"a": 2**70}, nested(200)],
    ids=str,
)
def test_metadata_that_cannot_be_kept_is_refused(memory: holdfast.Memories, wrong: Any) -> None:
    with pytest.raises(Invalid):
        memory.remember("a", metadata=wrong)
    with pytest.raises(Invalid):
        memory.memories(where=wrong)
    assert memory.memories() == []


def test_metadata_may_be_nested_deep(memory: holdfast.Memories) -> None:
    deep = nested(150)
    memory.remember("a", metadata=deep)
    assert memory.memories(where=deep)[0].metadata == deep


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)
named = st.dictionaries(st.sampled_from("abc"), plain, max_size=3)


@given(named, named)
def test_a_filter_passes_what_it_names_and_nothing_else(metadata: dict[str, Any], where: dict[str, Any]) -> None:
    """Beside a plain reading of the rule: equal, or an item of the list. JSON tells 1 and true apart."""

    def equal(one: Any, other: Any) -> bool:
        if isinstance(one, bool) != isinstance(other, bool) or type(one) is str is not type(other):
            return False
        return isinstance(one, type(other)) and one == other if not isinstance(one, int | float) else one == other

    def holds(name: str, wanted: Any) -> bool:
        value = metadata.get(name, ...)
        scalars = value if isinstance(value, list) else []
        if isinstance(wanted, list | dict) or isinstance(value, dict):
            return False  # judged by the property below
        return any(equal(wanted, each) for each in (value, *scalars) if not isinstance(each, list | dict))

    simple = {name: value for name, value in where.items() if not isinstance(value, list | dict)}
    passes = set(wanted_marks(simple)) <= set(marks_of(metadata))
    assert passes == all(holds(name, value) for name, value in simple.items())
    assert set(wanted_marks(metadata)) <= set(marks_of(metadata))


# Vectors of one's own


@pytest.mark.every_engine
def test_memories_are_found_by_vectors_of_ones_own(memory: holdfast.Memories) -> None:
    for text, vector in (("north", [0, 1]), ("north east", [1, 1]), ("east", [2.0, 0]), ("west", (-1, 0))):
        memory.remember(text, vector=vector, model="compass", metadata={"part": text[-4:]})
    memory.remember("no vector")
    found = memory.nearest([0, 3], model="compass")
    assert texts(found) == ["north", "north east", "east", "west"]
    assert [round(hit.score, 3) for hit in found] == [1.0, 0.707, 0.0, 0.0]
    assert texts(memory.nearest([0, 3], model="compass", min_score=0.5)) == ["north", "north east"]
    assert texts(memory.nearest([0, 3], k=1, model="compass", where={"part": "east"})) == ["north east"]
    assert memory.get(found[0].id).vector == holdfast.types.OwnVector("compass", found[0].memory.vector.data)
    assert found[0].memory.vector.numbers == [0.0, 1.0]
    memory.remember("north again", vector=[0, 1], model="compass")  # an array that is in memory already goes on
    assert {*texts(memory.nearest([0, 1], k=2, model="compass"))} == {"north", "north again"}


@pytest.mark.every_engine
def test_only_what_is_true_is_near(memory: holdfast.Memories) -> None:
    memory.remember("aisle", key="seat", vector=[1, 0])
    memory.remember("window", key="seat", vector=[0, 1])
    gone = memory.remember("middle", vector=[1, 0])
    assert texts(memory.nearest([1, 0])) == ["middle", "window"]
    memory.forget(gone.id)
    assert texts(memory.nearest([1, 0])) == ["window"]
    memory.unforget(gone.id)
    memory.forget(gone.id, erase=True)
    assert texts(memory.nearest([1, 0])) == ["window"]


def test_vectors_of_another_user_are_not_near(store: holdfast.Store) -> None:
    store.memory("ana").remember("hers", vector=[1, 0])
    store.memory("ben").remember("his", vector=[1, 0])
    store.memory().remember("everyone's", vector=[1, 0])
    assert {*texts(store.memory("ana").nearest([1, 0]))} == {"hers", "everyone's"}


def test_a_vector_is_kept_in_single_precision(memory: holdfast.Memories) -> None:
    made = memory.remember("a", vector=np.array([0.1, 1e-30]))
    assert made.vector is not None
    assert made.vector.numbers == [float(np.float32(0.1)), float(np.float32(1e-30))]


@pytest.mark.parametrize(
    "wrong",
    [[], [math.nan], [math.inf], [1e39], [0.0, -0.0], [1e-60], ["1"], [True], "12", {"a": 1}, 1.0, [[1.0]], [None]],
    ids=str,
)
def test_what_is_no_vector_is_refused(memory: holdfast.Memories, wrong: Any) -> None:
    with pytest.raises(Invalid):
        memory.remember("a", vector=wrong)
    with pytest.raises(Invalid):
        memory.nearest(wrong)
    assert memory.memories() == []


@pytest.mark.every_engine
def test_vectors_of_one_model_have_one_length(memory: holdfast.Memories) -> None:
    memory.remember("a", vector=[1, 0], model="small")
    with pytest.raises(Invalid, match="'small' have 2 numbers, not 3"):
        memory.remember("b", vector=[1, 0, 0], model="small")
    with pytest.raises(Invalid, match="2 numbers, not 3"):
        memory.nearest([1, 0, 0], model="small")
    with pytest.raises(Invalid, match="no vectors of 'own' here, but some of 'small'"):
        memory.nearest([1, 0])
    memory.remember("b", vector=[1, 0, 0], model="large")
    assert texts(memory.nearest([1, 0, 0], model="large")) == ["b"]
    with pytest.raises(Invalid, match="give vector="):
        memory.remember("c", model="large")
    with pytest.raises(Invalid, match="2 numbers, not 1"):
        memory.remember_all([{"text": "d", "vector": [1, 2], "model": "m"}, {"text": "e", "vector": [1], "model": "m"}])


def test_where_there_are_no_vectors_nothing_is_near(memory: holdfast.Memories) -> None:
    memory.remember("a")
    assert not memory.nearest([1, 0])
    assert not memory.nearest([1, 0]).relevant


@pytest.mark.every_engine
def test_erasing_takes_vectors_out_of_memory_too(store: holdfast.Store) -> None:
    memory, other = store.memory("ana"), store.acting_as("bob").memory("ana")
    memory.remember_all([{"text": f"old {number}", "vector": [number, 1]} for number in range(3)])
    assert len(memory.nearest([0, 1])) == len(other.nearest([0, 1])) == 3
    store.erase(user="ana")
    memory.remember_all([{"text": f"new {number}", "vector": [number, 1, 1]} for number in range(4)])
    for handle in (memory, other):
        assert {*texts(handle.nearest([0, 1, 1]))} == {f"new {number}" for number in range(4)}
    gone = memory.nearest([0, 1, 1], k=1)[0]
    other.forget(gone.id, erase=True)
    assert gone.text not in texts(memory.nearest([0, 1, 1]))


def test_an_event_that_happens_again_is_another_event(memory: holdfast.Memories, clock: ManualClock) -> None:
    first = memory.remember("the backup failed", kind="episodic")
    clock.advance(86_400)
    assert memory.remember("the backup failed", kind="episodic").id != first.id


def test_vectors_of_another_length_in_another_collection_are_passed_over(store: holdfast.Store) -> None:
    store.memory().remember("common", vector=[1, 0])
    store.memory("ana").remember("hers", vector=[1, 0, 0])
    assert texts(store.memory("ana").nearest([1, 0, 0])) == ["hers"]
    assert texts(store.memory("ana").nearest([1, 0])) == ["common"]
    with pytest.raises(Invalid, match="2 or 3 numbers, not 1"):
        store.memory("ana").nearest([1])


# Counts


@pytest.mark.every_engine
def test_the_same_note_again_is_one_memory_with_a_count(memory: holdfast.Memories, clock: ManualClock) -> None:
    first = memory.remember("likes tea")
    clock.advance(60)
    second = memory.remember("likes tea")
    assert (second.id, second.count, second.recorded_at) == (first.id, 2, first.recorded_at)
    assert second.repeated_at is not None
    assert second.repeated_at > first.recorded_at
    others = [
        memory.remember("likes tea", tags=["drinks"]), memory.remember("likes tea", origin="ana"),
        memory.remember("likes tea", metadata={"a": 1}), memory.remember("likes tea", kind="procedural"),
        memory.remember("likes tea", key="drink"), memory.remember("likes tea", once="mine"),
    ]  # fmt: skip
    assert len({first.id, *(one.id for one in others)}) == 7
    assert [one.count for one in memory.remember_all(["a", "b", "a", "likes tea"])] == [2, 1, 2, 3]
    assert memory.memories()[-1].count == 3


@pytest.mark.every_engine
@pytest.mark.parametrize("gone", ["forget", "end", "correct", "erase"])
def test_what_is_no_longer_true_can_be_remembered_again(memory: holdfast.Memories, gone: str) -> None:
    first = memory.remember("likes tea")
    memory.forget(first.id, erase=True) if gone == "erase" else getattr(memory, gone)(first.id)
    again = memory.remember("likes tea")
    assert (again.id != first.id, again.count) == (True, 1)
    assert "likes tea" in texts(memory.recall("tea"))


@pytest.mark.every_engine
def test_recalls_are_counted_where_that_is_asked_for(memory: holdfast.Memories, clock: ManualClock) -> None:
    made = memory.remember("likes tea", vector=[1, 0])
    memory.recall("tea")
    assert (memory.get(made.id).recalls, memory.get(made.id).recalled_at) == (0, None)
    clock.advance(60)
    memory.recall("tea", touch=True)
    memory.nearest([1, 0], touch=True)
    kept = memory.get(made.id)
    assert (kept.recalls, kept.uses, kept.used_at) == (2, 0, None)
    assert kept.recalled_at is not None
    assert kept.recalled_at > made.recorded_at
    memory.used(made.id, helped=True)
    assert memory.get(made.id).used_at is not None
    assert memory.remember("likes tea", vector=[1, 0]).id == made.id  # counts are no part of what was said


# Pages, and the newest


@pytest.mark.every_engine
@pytest.mark.parametrize("only", [{}, {"kind": "semantic"}, {"tag": "even"}, {"where": {"third": True}}], ids=str)
def test_pages_together_are_the_whole_list(store: holdfast.Store, clock: ManualClock, only: dict[str, Any]) -> None:
    memory, shared = store.memory("ana"), store.memory()
    for number in range(23):
        place = shared if number % 5 == 0 else memory
        place.remember_all(
            {"text": f"{number}.{part}", "tags": ["even"] * (number % 2 == 0), "metadata": {"third": number % 3 == 0},
             "kind": "semantic" if part else "episodic"}
            for part in range(2)
        )  # fmt: skip
        clock.advance(number % 3)  # some in the same moment
    memory.forget(memory.memories()[3].id)
    memory.used(memory.memories()[-1].id)  # the oldest is the last active
    whole = memory.memories(limit=None, **only)
    pages: list[Memory] = []
    while page := memory.memories(limit=4, before=pages[-1].id if pages else None, **only):
        pages += page
    assert texts(pages) == texts(whole)
    with pytest.raises(NotFound):
        memory.memories(before="m" + "a" * 13)


@pytest.mark.every_engine
def test_the_newest_that_are_true(memory: holdfast.Memories, clock: ManualClock) -> None:
    for number in range(6):
        memory.remember(f"note {number}", kind="episodic" if number % 2 else "semantic", type="log")
        memory.remember(f"value {number}", key="counter")
        clock.advance(1)
    memory.correct(memory.memories(kind="episodic")[0].id)
    assert texts(memory.recent(4)) == ["value 5", "note 4", "note 3", "note 2"]
    assert texts(memory.recent(kind="episodic")) == ["note 3", "note 1"]
    assert texts(memory.recent(2, type="log")) == ["note 4", "note 3"]
    assert memory.recent(0) == []


def test_scores_of_a_recall_have_no_least_and_the_error_says_what_to_do(memory: holdfast.Memories) -> None:
    with pytest.raises(Invalid, match="nearest"):
        memory.recall("green tea", min_score=0.7)  # type: ignore[call-arg]
    with pytest.raises(Invalid, match="nearest has no filter thread"):
        memory.nearest([1, 0], thread="t")  # type: ignore[call-arg]


# What passed the filters decides


@pytest.mark.parametrize("embedder", ["none", "wordllama"])
def test_what_a_filter_keeps_out_has_no_say_in_how_sure_a_recall_is(embedder: str) -> None:
    def asked(messages: int, **only: Any) -> tuple[float, bool]:
        with holdfast.open("ram:", embedder=embedder) as store:
            memory = store.memory("ana")
            memory.remember_all(["prefers aisle seats on long flights", "works at a bakery", "has two cats"])
            for number in range(messages):
                said = f"about seats and flights {number}"
                replied = {"role": "assistant", "content": f"{said} " * 9}
                store.thread("t", user="ana").append({"role": "user", "content": said}, replied)
            found = memory.recall("Which seats does she prefer on flights?", **only)
            assert found[0].text == "prefers aisle seats on long flights" or not only
            return found.confidence, found.relevant

    assert asked(0, log=False) == asked(300, log=False) == asked(300, kind="semantic")
    assert asked(0, log=False) == asked(0)
