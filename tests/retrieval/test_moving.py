"""Moving to a slow model by itself: each recall makes a few vectors, and a quick one answers until all are there.

The rankings on the way are those of the quick model alone or of the slow one alone, never something between.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import holdfast
from holdfast.errors import Misconfigured
from holdfast.providers.automatic import Automatic
from holdfast.providers.embedding import checked
from holdfast.records import Recalled
from holdfast.retrieval import index
from holdfast.retrieval.source import texts_of
from holdfast.testing.embedders import Flaky, HashEmbedder

ANIMALS = [f"animal{number} lives in country{number % 7} near river{number % 5}" for number in range(120)]
QUESTIONS = ("animal7 country2", "who lives near river3?", "country5")
SLOW, QUICK = HashEmbedder(32, name="slow"), HashEmbedder(16, name="quick")
PORTION_S = 0.1
EACH = 48
"""How many vectors one recall makes: portions of 16, until 0.3 s are over."""


class Clock:
    """What tells an index how long something took; only the slow model takes any time."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(index, "_time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


class Slow(Flaky):
    """A slow model that counts what it made, questions apart."""

    def __init__(self, clock: Clock, **faults: Any) -> None:
        super().__init__(SLOW, **faults)
        self.clock, self.made = clock, 0

    def embed(self, texts: Sequence[str]) -> Any:
        self.clock.now += PORTION_S
        self.made += len(texts) if len(texts) > 1 else 0
        return super().embed(texts)


@pytest.fixture
def slow(passing: Clock) -> Slow:
    return Slow(passing)


def auto(slow: Any, quick: Any = QUICK) -> Automatic:
    return Automatic([checked(slow), checked(quick)])


def recall(store: holdfast.Store, query: str = QUESTIONS[0], **options: Any) -> Recalled:
    return store.memory(user="ana").recall(query, 10, **options)


def shown(found: Recalled) -> list[tuple[str, float]]:
    return [(hit.text, round(hit.score, 4)) for hit in found]


def alone(place: Any, embedder: Any, texts: Sequence[str] = ANIMALS) -> list[list[tuple[str, float]]]:
    """The rankings by one model alone, in a tenant of its own."""
    store = place.open(embedder, tenant=f"alone-{embedder.name}-{len(texts)}")
    if not store.memory(user="ana").memories():
        store.memory(user="ana").remember_all(texts)
    return [shown(recall(store, query)) for query in QUESTIONS]


def moved(store: holdfast.Store) -> holdfast.Store:
    """The same store with every vector made."""
    for _ in range(20):
        if not recall(store).report.pending:
            return store
    raise AssertionError("it does not get there")


# On the way


def test_rankings_on_the_way_are_of_one_model_alone(here: Any, slow: Slow) -> None:
    by_quick, by_slow = alone(here, QUICK), alone(here, SLOW)
    assert by_quick != by_slow
    store = here.open(auto(slow))
    store.memory(user="ana").remember_all(ANIMALS)
    assert slow.texts == 0  # writing makes no vectors
    seen = []
    for _ in range(4):
        for query, quick, better in zip(QUESTIONS, by_quick, by_slow, strict=True):
            found = recall(store, query)
            seen.append((found.report.model, found.report.pending))
            assert shown(found) == (better if found.report.model == "slow" else quick)
            assert (found.report.pending == 0) == (found.report.model == "slow")
            assert found.report.notes == ()
    lacking = [pending for _, pending in seen]
    assert lacking == [max(0, len(ANIMALS) - EACH * number) for number in range(1, 13)]
    assert seen[-1] == ("slow", 0)
    assert slow.made == len(ANIMALS)
    assert store.verify().problems == ()


def test_reading_the_texts_takes_of_the_same_time(
    here: Any, slow: Slow, passing: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reading(*given: Any) -> list[str]:
        passing.now += PORTION_S
        return texts_of(*given)

    store = here.open(auto(slow))
    store.memory(user="ana").remember_all(ANIMALS)
    monkeypatch.setattr(index, "texts_of", reading)
    recall(store)
    assert slow.made == 2 * 16  # and not 48: of 0.3 s, each 16 took a tenth to read and a tenth to embed


def test_a_few_new_texts_get_their_vectors_at_once(here: Any, slow: Slow) -> None:
    store = here.open(auto(slow))
    store.memory(user="ana").remember_all(ANIMALS[:20])
    found = recall(store)
    assert (found.report.model, found.report.pending) == ("slow", 0)
    store.memory(user="ana").remember_all(ANIMALS[20:50])
    found = recall(store)
    assert (found.report.model, found.report.pending) == ("slow", 0)
    assert shown(found) == alone(here, SLOW, ANIMALS[:50])[0]


@pytest.mark.usefixtures("soon")
def test_many_new_texts_after_the_move_are_bridged(place: Any, slow: Slow) -> None:
    store = place.open(auto(slow), own=True)
    store.memory(user="ana").remember_all(ANIMALS[:30])
    assert moved(store).memory(user="ana").recall("x").report.model == "slow"
    store.memory(user="ana").remember_all(ANIMALS[30:])
    found = recall(store)
    assert (found.report.model, found.report.pending) == ("quick", 90 - EACH)
    assert shown(found) == alone(place, QUICK)[0]
    assert shown(recall(moved(store))) == alone(place, SLOW)[0]
    assert slow.made == len(ANIMALS)
    assert store.verify().problems == ()


def test_with_little_time_only_the_question_is_embedded(here: Any, slow: Slow) -> None:
    store = here.open(auto(slow))
    store.memory(user="ana").remember_all(ANIMALS)
    found = recall(store, within_ms=150)
    assert (slow.texts, found.report.model, found.report.pending) == (0, "quick", len(ANIMALS))
    recall(store, within_ms=300)  # a tenth of a second for vectors
    assert slow.made == 16
    moved(store)
    store.memory(user="ana").remember("one more animal")
    made = slow.texts
    found = recall(store, "a new question", within_ms=150)
    assert (slow.texts, found.report.model, found.report.pending) == (made, "quick", 1)


@pytest.mark.usefixtures("soon")
def test_whoever_comes_next_goes_on(place: Any, slow: Slow, passing: Clock) -> None:
    store = place.open(auto(slow), own=True)
    store.memory(user="ana").remember_all(ANIMALS)
    recall(store)
    assert slow.made == EACH
    second = Slow(passing)
    other = place.open(auto(second), own=True)
    assert recall(other).report.pending == len(ANIMALS) - 2 * EACH
    assert shown(recall(moved(other))) == alone(place, SLOW)[0]
    assert slow.made + second.made == len(ANIMALS)  # none was made twice
    third = Slow(passing)
    last = place.open(auto(third), own=True)
    assert recall(last).report.model == "slow"
    assert (third.made, third.texts) == (0, 1)
    assert last.verify().problems == ()


@pytest.mark.usefixtures("soon")
def test_two_that_move_one_store_get_there_together(place: Any, slow: Slow, passing: Clock) -> None:
    second = Slow(passing)
    stores = [place.open(auto(slow), own=True), place.open(auto(second), own=True)]
    stores[0].memory(user="ana").remember_all(ANIMALS)
    by_quick, by_slow = alone(place, QUICK)[0], alone(place, SLOW)[0]
    for _ in range(8):
        for store in stores:
            found = recall(store)
            assert shown(found) == (by_slow if found.report.model == "slow" else by_quick)
    assert [recall(store).report.model for store in stores] == ["slow", "slow"]
    assert stores[0].verify().problems == ()


def test_all_places_are_compared_by_one_model(here: Any, slow: Slow) -> None:
    store = here.open(auto(slow))
    store.memory(user="ana").remember_all(ANIMALS[:20])
    assert recall(store).report.model == "slow"
    store.memory().remember_all(ANIMALS[20:])  # the common book, which every user sees
    found = recall(store)
    assert (found.report.model, found.report.pending) == ("quick", 100 - EACH)
    quick = here.open(QUICK, tenant="two-places")
    quick.memory(user="ana").remember_all(ANIMALS[:20])
    quick.memory().remember_all(ANIMALS[20:])
    assert shown(found) == shown(recall(quick))
    assert recall(moved(store)).report.model == "slow"


def test_another_script_has_a_model_of_its_own(here: Any, slow: Slow, passing: Clock) -> None:
    other = HashEmbedder(24, name="other")
    both = Automatic([checked(slow), checked(QUICK)], [checked(other), checked(QUICK)])
    store = here.open(both)
    store.memory(user="ana").remember_all(f"动物{number}住在国家{number % 7}" for number in range(12))
    store.memory(user="ana").remember("animal7")
    assert recall(store, "动物7").report.model == "other"
    assert slow.texts == 0
    store.memory(user="bo").remember_all(ANIMALS[:12])
    assert store.memory(user="bo").recall("animal7").report.model == "slow"
    store.memory().remember_all(f"动物{number}" for number in range(3))  # which every user sees
    report = store.memory(user="bo").recall("animal7").report
    assert report.model == "quick"
    assert "not compared by slow" in report.notes[0]
    store.memory(user="ana").remember_all(ANIMALS[:30])
    store.memory().remember_all(ANIMALS[30:40])
    assert recall(moved(store)).report.model == "slow"  # most of it is in Latin script now


def test_what_is_installed_does_so_by_default(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_EMBEDDER")
    monkeypatch.setattr(index, "SLOW_S", 1e-9)  # one portion
    with holdfast.open("ram:") as store:
        memory = store.memory(user="ana")
        memory.remember_all(
            [*(f"invoice {number} is overdue" for number in range(30)), "prefers the aisle when flying"]
        )
        reports = [memory.recall("Which seat on a plane?").report for _ in range(3)]
        best = memory.recall("Where does she like to sit on a plane?")[0].text
    assert [report.model for report in reports] == ["wordllama-256", "minilm-l6-v2-int8", "minilm-l6-v2-int8"]
    assert [report.pending for report in reports] == [15, 0, 0]
    assert best == "prefers the aisle when flying"


@pytest.mark.usefixtures("soon")
def test_nobody_waits_for_whoever_makes_slow_vectors(here: Any, slow: Slow) -> None:
    """One recall is held up inside the slow model; another one of the same index answers meanwhile, and makes none."""
    begun, may_end = threading.Event(), threading.Event()

    class Held(Slow):
        def embed(self, texts: Sequence[str]) -> Any:
            begun.set()
            assert may_end.wait(60)
            return super().embed(texts)

    held = Held(slow.clock)
    store = here.open(auto(held))
    store.memory(user="ana").remember_all(ANIMALS)
    first = threading.Thread(target=recall, args=(store,))
    first.start()
    try:
        assert begun.wait(60)
        found = recall(store)
        assert (found.report.model, found.report.pending, held.made) == ("quick", len(ANIMALS), 0)
    finally:
        may_end.set()
        first.join()
    assert held.made == EACH


# A large one, and by hand


@pytest.mark.usefixtures("soon")
def test_a_large_one_waits_until_somebody_reembeds(here: Any, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MOST_LACKING", 60)
    store, told = here.open(auto(slow)), list[tuple[int, int]]()
    store.memory(user="ana").remember_all(ANIMALS)
    for _ in range(3):
        found = recall(store)
        assert (found.report.model, found.report.pending, slow.made) == ("quick", 0, 0)
    assert store.memory(user="ana").reembed(lambda *done: told.append(done)) == len(ANIMALS)
    assert told[-1] == (len(ANIMALS), len(ANIMALS))
    assert recall(store).report.model == "slow"
    store.memory(user="ana").remember("animal200 lives alone")
    assert recall(store).report.model == "slow"


def test_reembed_finishes_the_move_at_once(here: Any, slow: Slow) -> None:
    store = here.open(auto(slow))
    store.memory(user="ana").remember_all(ANIMALS)
    recall(store)
    assert store.memory(user="ana").reembed() == len(ANIMALS) - EACH
    assert (recall(store).report.model, slow.made) == ("slow", len(ANIMALS))
    store.memory(user="ana").remember_all(f"plant{number}" for number in range(100))
    assert recall(store).report.model == "quick"  # the model was not chosen by name: the same rule holds for new texts


def test_what_somebody_chose_stays(here: Any, slow: Slow) -> None:
    store = here.open(auto(slow))
    store.memory(user="ana").remember_all(ANIMALS)
    store.memory(user="ana").reembed()
    assert store.memory(user="ana").rollback() == "quick"
    for _ in range(2):
        assert (recall(store).report.model, recall(store).report.pending) == ("quick", 0)
    store.memory(user="ana").reembed()
    assert recall(store).report.model == "slow"


# Opened with something else


@pytest.mark.usefixtures("soon")
def test_a_store_of_the_quick_model_moves_by_itself(place: Any, slow: Slow) -> None:
    old = place.open(QUICK, own=True)
    old.memory(user="ana").remember_all(ANIMALS)
    before = shown(recall(old))
    counting = Flaky(QUICK)
    store = place.open(auto(slow, counting), own=True)
    assert (shown(recall(store)), recall(store).report.model) == (before, "quick")
    assert counting.texts == 1  # the question
    assert shown(recall(moved(store))) == alone(place, SLOW)[0]


@pytest.mark.usefixtures("soon")
def test_who_names_one_gets_that_one(place: Any, slow: Slow) -> None:
    store = place.open(auto(slow), own=True)
    store.memory(user="ana").remember_all(ANIMALS)
    moved(store)
    for embedder in (QUICK, SLOW):
        counting = Flaky(embedder)
        found = recall(place.open(counting, own=True))
        assert (found.report.model, found.report.notes) == (embedder.name, ())
        assert shown(found) == alone(place, embedder)[0]
        assert counting.texts == 1
    assert recall(place.open(None, own=True)).report.model is None


@pytest.mark.usefixtures("soon")
def test_without_the_slow_model_the_quick_one_goes_on_and_says_so(place: Any, slow: Slow, passing: Clock) -> None:
    store = place.open(auto(slow), own=True)
    store.memory(user="ana").remember_all(ANIMALS)
    moved(store)
    bare = place.open(Automatic([checked(QUICK)]), own=True)
    found = recall(bare)
    assert (found.report.model, found.report.pending) == ("quick", 0)
    assert any("slow" in note and "quick" in note for note in found.report.notes)
    assert shown(found) == alone(place, QUICK)[0]
    bare.memory(user="ana").remember_all(f"plant{number}" for number in range(30))
    recall(bare)
    again = Slow(passing)
    store = place.open(auto(again), own=True)
    assert recall(store).report.model == "slow"
    assert again.made == 30


# Failing


@pytest.mark.parametrize("error", [None, Misconfigured("the file is damaged")], ids=["away", "damaged"])
def test_a_slow_model_that_fails_is_said_and_left_out(here: Any, passing: Clock, error: Any) -> None:
    failing = Slow(passing, fail_times=10_000, error=error)
    store = here.open(auto(failing))
    store.memory(user="ana").remember_all(ANIMALS)
    found = recall(store)
    assert (found.report.model, found.report.pending) == ("quick", len(ANIMALS))
    assert any("slow" in note for note in found.report.notes)
    assert shown(found) == alone(here, QUICK)[0]
    failing.fail_times = 0
    passing.now += 2 * index.RETRY_S
    assert recall(moved(store)).report.notes == ()


@pytest.mark.usefixtures("soon")
def test_a_model_that_fails_after_the_move_is_left_out(place: Any, slow: Slow, passing: Clock) -> None:
    store = place.open(auto(slow), own=True)
    store.memory(user="ana").remember_all(ANIMALS)
    moved(store)
    failing = Slow(passing, fail_times=10_000, error=Misconfigured("the file is damaged"))
    found = recall(place.open(auto(failing), own=True))
    assert found.report.model == "quick"
    assert any("the file is damaged" in note for note in found.report.notes)
    assert shown(found) == alone(place, QUICK)[0]


# Gone


@pytest.mark.usefixtures("soon")
def test_what_stays_after_an_erasure_keeps_the_vectors_of_both(place: Any, slow: Slow, passing: Clock) -> None:
    store = place.open(auto(slow), own=True)
    ids = [memory.id for memory in store.memory(user="ana").remember_all(ANIMALS)]
    recall(store)
    store.memory(user="ana").forget(ids[0], erase=True)
    made = slow.made
    counting, second = Flaky(QUICK), Slow(passing)
    store = place.open(auto(second, counting), own=True)
    assert recall(store).report.model == "quick"
    moved(store)
    assert counting.texts <= 2 + len(QUESTIONS)
    assert len(ANIMALS) - 1 - made <= second.made <= len(ANIMALS) - made
    assert ANIMALS[0] not in [hit.text for hit in recall(store, ANIMALS[0])]
    assert store.verify().problems == ()
