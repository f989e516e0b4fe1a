"""Embedders come and go: what is remembered is kept and found by its words, and gets its vector when one can be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast
from holdfast.engine.codec import decode
from holdfast.engine.contract import Record
from holdfast.errors import Invalid, Misconfigured, Unavailable
from holdfast.records import Recalled
from holdfast.retrieval import index
from holdfast.testing import ManualClock
from holdfast.testing.embedders import Flaky, HashEmbedder

ANIMALS = [f"animal{number} lives in country{number % 7}" for number in range(30)]
Saved = Callable[[holdfast.Store], list[Record]]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again by the next recall."""
    monkeypatch.setattr(index, "RETRY_S", 0.0)


def recall(store: holdfast.Store, query: str = "animal7", k: int = 10) -> Recalled:
    return store.memory(user="ana").recall(query, k)


def manifest(saved: list[Record]) -> dict[str, Any]:
    found: dict[str, Any] = decode(next(record for record in saved if "manifest" in record.tags).body)["manifest"]
    return found


def models(saved: list[Record]) -> set[str]:
    """The models whose vectors are stored."""
    return {record.id.split("/v/")[1].rsplit("/", 2)[0] for record in saved if "/v/" in record.id}


# Failing


FAILURES = {
    "away": {"fail_times": 10_000},
    "another error": {"fail_times": 10_000, "error": RuntimeError("boom")},
    "misconfigured": {"fail_times": 10_000, "error": Misconfigured("no key")},
    "wrong dimension": {"wrong_dimension": True},
    "nan": {"nan": True},
    "too few": {"too_few": True},
}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("failure", list(FAILURES))
def test_a_failing_embedder_costs_only_vectors(here: Any, failure: str) -> None:
    flaky = Flaky(HashEmbedder(16), **FAILURES[failure])  # type: ignore[arg-type]
    store = here.open(flaky)
    store.memory(user="ana").remember_all(ANIMALS)
    found = recall(store)
    assert found[0].text == ANIMALS[7]
    assert found.relevant
    assert found.report.pending == len(ANIMALS)
    assert found.report.model is None
    assert any("without vectors" in note for note in found.report.notes)
    flaky.fail_times, flaky.wrong_dimension, flaky.nan, flaky.too_few = 0, False, False, False
    recall(store)
    found = recall(store)
    assert (found.report.pending, found.report.model, found.report.notes) == (0, "hash-16", ())
    assert found[0].text == ANIMALS[7]


@pytest.mark.usefixtures("eager", "soon")
def test_what_was_saved_without_vectors_gets_them_later(place: Any) -> None:
    flaky = Flaky(HashEmbedder(16), fail_times=10_000)
    store = place.open(flaky, own=True)
    store.memory(user="ana").remember_all(ANIMALS)
    assert recall(store).report.pending == len(ANIMALS)
    later = Flaky(HashEmbedder(16))
    store = place.open(later, own=True)
    recall(store)
    assert recall(store).report.pending == 0
    last = Flaky(HashEmbedder(16))
    assert recall(place.open(last, own=True)).report.pending == 0
    assert last.texts == 1
    assert store.verify().problems == ()


def test_an_embedder_that_fails_is_left_alone_for_a_while(here: Any) -> None:
    flaky = Flaky(HashEmbedder(16), fail_times=10_000)
    store = here.open(flaky)
    store.memory(user="ana").remember_all(ANIMALS)
    recall(store)
    calls = flaky.calls
    recall(store, "another question")
    assert flaky.calls <= calls + 1  # the question, but not all the texts


@pytest.mark.usefixtures("eager", "soon")
def test_a_store_that_had_no_embedder_can_get_one(place: Any) -> None:
    store = place.open(own=True)
    store.memory(user="ana").remember_all(ANIMALS)
    before = recall(store)
    assert (before.report.model, before.report.pending) == (None, 0)
    store = place.open(HashEmbedder(16), own=True)
    found = recall(store)
    assert (found.report.model, found.report.pending) == ("hash-16", 0)
    assert found[0].text == before[0].text
    assert store.verify().problems == ()


def test_long_texts_have_a_vector_for_each_passage(here: Any) -> None:
    counting = Flaky(HashEmbedder(16))
    store = here.open(counting)
    store.memory(user="ana").remember(" ".join(f"This is sentence {number} of many." for number in range(100)))
    recall(store)
    assert counting.texts > 10


def test_a_function_is_an_embedder(here: Any) -> None:
    def letters(texts: Any) -> Any:
        return np.array([[text.count(chr(97 + at)) + 0.01 for at in range(26)] for text in texts], dtype=np.float32)

    store = here.open(letters)
    store.memory(user="ana").remember_all(ANIMALS)
    assert recall(store)[0].text == ANIMALS[7]
    assert recall(store).report.pending == 0


# Another model


@pytest.mark.every_engine
@pytest.mark.usefixtures("soon")
def test_moving_to_another_model_and_back(place: Any, saved: Saved) -> None:
    first = place.open(HashEmbedder(16, name="old"), own=True)
    first.memory(user="ana").remember_all(ANIMALS)
    before = [hit.text for hit in recall(first)]
    seen: list[tuple[int, int]] = []
    store = place.open(HashEmbedder(32, name="new"), own=True)
    assert recall(store)[0].text == ANIMALS[7]
    made = store.memory(user="ana").reembed(lambda done, total: seen.append((done, total)))
    assert made >= len(ANIMALS)
    assert seen[-1][0] == seen[-1][1] == made
    found = recall(store)
    assert (found.report.model, found.report.pending, found[0].text) == ("new", 0, ANIMALS[7])
    assert models(saved(store)) == {"old", "new"}
    assert store.verify().problems == ()
    assert store.memory(user="ana").reembed() == 0
    assert store.memory(user="ana").rollback() == "old"
    again = place.open(HashEmbedder(16, name="old"), own=True)
    assert (recall(again).report.model, [hit.text for hit in recall(again)]) == ("old", before)
    assert store.memory(user="ana").rollback() == "new"
    assert recall(store).report.model == "new"


@pytest.mark.usefixtures("soon")
def test_the_model_is_recorded(here: Any, saved: Saved) -> None:
    store = here.open(HashEmbedder(16, name="old"))
    store.memory(user="ana").remember_all(ANIMALS)
    recall(store)
    assert manifest(saved(store))["model"] == "old"
    store = here.open(HashEmbedder(32, name="new"))
    store.memory(user="ana").reembed()
    kept = manifest([record for record in saved(store) if record.scope.user == "ana"])
    assert (kept["model"], kept["chosen"], kept["previous"]) == ("new", True, "old")


@pytest.mark.usefixtures("eager")
def test_an_interrupted_move_goes_on_where_it_stopped(here: Any, monkeypatch: pytest.MonkeyPatch, saved: Saved) -> None:
    monkeypatch.setattr(index, "SAVE_AT", 4)
    first = here.open(HashEmbedder(16, name="old"))
    for number in range(6):
        first.memory(user="ana").remember_all([f"animal{number} {one}" for one in range(4)])
        recall(first)
    half = Flaky(HashEmbedder(32, name="new"))
    store, real = here.open(half), half.embed

    def stops(texts: Any) -> Any:
        if half.texts >= 12:
            raise Unavailable("the machine is switched off, as the test asked")
        return real(texts)

    half.embed = stops  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        store.memory(user="ana").reembed()
    done = half.texts
    assert 0 < done < 24
    assert recall(store, "animal3 2")[0].text == "animal3 2"
    assert store.verify().problems == ()
    old = here.open(HashEmbedder(16, name="old"))
    assert recall(old, "animal3 2").report.model == "old"
    assert recall(old, "animal3 2").report.pending == 0
    rest = Flaky(HashEmbedder(32, name="new"))
    store = here.open(rest)
    store.memory(user="ana").reembed()
    assert rest.texts == 24 - done
    assert (recall(store, "animal3 2").report.model, recall(store, "animal3 2")[0].text) == ("new", "animal3 2")
    assert models(saved(store)) == {"old", "new"}


@pytest.mark.usefixtures("soon")
def test_what_is_remembered_while_moving_is_found(here: Any) -> None:
    old = here.open(HashEmbedder(16, name="old"))
    old.memory(user="ana").remember_all(ANIMALS)
    recall(old)

    class Slow(HashEmbedder):
        def embed(self, texts: Any) -> Any:
            if len(texts) > 5:
                old.memory(user="ana").remember("a zebra that came late")
                assert recall(old, "zebra")[0].text == "a zebra that came late"
            return super().embed(texts)

    new = here.open(Slow(32, name="new"))
    new.memory(user="ana").reembed()
    assert recall(new, "zebra")[0].text == "a zebra that came late"
    assert recall(old, "zebra")[0].text == "a zebra that came late"
    assert (recall(new, "zebra").report.model, recall(new, "zebra").report.pending) == ("new", 0)


def test_there_must_be_somewhere_to_go(here: Any) -> None:
    store = here.open()
    store.memory(user="ana").remember("a zebra")
    with pytest.raises(Misconfigured):
        store.memory(user="ana").reembed()
    with pytest.raises(Invalid):
        store.memory(user="ana").rollback()
    other = here.open(HashEmbedder(16))
    recall(other)
    with pytest.raises(Invalid):
        other.memory(user="ana").rollback()


@pytest.mark.usefixtures("soon")
def test_a_model_that_is_gone_leaves_the_words(place: Any) -> None:
    store = place.open(HashEmbedder(16, name="old"), own=True)
    store.memory(user="ana").remember_all(ANIMALS)
    recall(store)
    for embedder in (None, HashEmbedder(32, name="new")):
        other = place.open(embedder, own=True)
        other.memory(user="ana").remember("a zebra")
        assert recall(other, "zebra")[0].text == "a zebra"
        assert recall(other)[0].text == ANIMALS[7]
    assert other.verify().problems == ()
    other.memory(user="ana").reembed()
    assert (recall(other).report.model, recall(other).report.pending) == ("new", 0)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("embedder", [None, HashEmbedder(32, name="new")], ids=["none", "another"])
def test_a_model_that_is_gone_is_named(here: Any, embedder: Any) -> None:
    store = here.open(HashEmbedder(16, name="old"))
    store.memory(user="ana").remember_all(ANIMALS)
    recall(store)
    report = recall(here.open(embedder)).report
    assert any("old" in note for note in report.notes)


@pytest.mark.usefixtures("soon")
def test_rebuild_makes_vectors_again(here: Any) -> None:
    counting = Flaky(HashEmbedder(16))
    store = here.open(counting)
    store.memory(user="ana").remember_all(ANIMALS)
    recall(store)
    before = counting.texts
    store.memory(user="ana").rebuild()
    assert counting.texts >= before + len(ANIMALS) - 1
    assert recall(store).report.pending == 0


def test_of_two_memories_that_say_nearly_the_same_the_newer_comes_first() -> None:
    """Their vectors differ by next to nothing; that must not make one of them all and the other nothing."""
    clock = ManualClock()
    with holdfast.open("ram:", embedder="wordllama", clock=clock) as store:
        memory = store.memory("ana")
        memory.remember("parser fixed in room blue", kind="episodic")
        clock.advance(300 * 86_400)
        memory.remember("parser fixed in room gray", kind="episodic")
        found = memory.recall("parser fixed", k=2)
    assert [hit.text[-4:] for hit in found] == ["gray", "blue"]
