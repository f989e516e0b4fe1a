"""Collections and handles: what is remembered is kept, found, forgotten and erased, on every engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

import holdfast
from holdfast.engine.contract import Put, Query, Scope
from holdfast.errors import Conflict, Corrupt, Erased, Invalid, KeyReused, NotFound, TooLarge, Unsupported
from holdfast.ids import Ids
from holdfast.memory.collection import MemoryCollection, id_of
from holdfast.memory.drafts import Remembering, checked
from holdfast.memory.names import MEMORY, collection_id, memory_id, number_of, thread_tag
from holdfast.memory.visible import VisibleMemories
from holdfast.records import EntryRef, Memory, Origin
from holdfast.testing import ManualClock

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
MakeCollection = Callable[..., MemoryCollection]
MakeVisible = Callable[..., VisibleMemories]


def one(collection: MemoryCollection, text: str = "likes tea", **more: Any) -> Memory:
    return collection.remember([Remembering(text, **more)])[0]


def texts(memories: list[Memory]) -> list[str]:
    return [memory.text for memory in memories]


def told(collection: MemoryCollection) -> list[tuple[str, str | None]]:
    """What happened to a collection, and to which memory."""
    record, core = collection.record(), collection._core
    events = [] if record is None else core.engine.read(core.tenant, record.mark)
    return [(event.kind, id_of(event)) for event in events]


# Names


@pytest.mark.parametrize("number", [0, 1, 31, 32, 2**62 + 17, 2**63 - 1])
def test_an_id_is_its_number(number: int) -> None:
    id = memory_id(number)
    assert number_of(id) == number
    assert len(id) == 14


@pytest.mark.parametrize("id", ["", "m", "x" * 14, "M" + "a" * 13, "m1aaaaaaaaaaaa", "m" + "é" * 13, "m" + "a" * 14, 7])
def test_what_is_no_id_is_told_apart_from_what_is_not_there(id: Any) -> None:
    with pytest.raises(Invalid, match="not the id of a memory"):
        number_of(id)


def test_books_of_different_pairs_have_different_names() -> None:
    pairs = [
        Scope(), Scope("ana"), Scope(None, "ana"), Scope("ana", "bot"), Scope("ana&agent=bot"), Scope("common"),
        Scope("x" * 300), Scope("x" * 301), Scope("é" * 200, "b"),
    ]  # fmt: skip
    names = [collection_id(scope) for scope in pairs]
    assert len(set(names)) == len(pairs)
    assert all(len(name.encode()) <= 200 for name in names)
    assert names[:2] == ["common", "user=ana"]


# Drafts


@pytest.mark.parametrize(
    ("draft", "why"),
    [
        ({"text": ""}, "empty text"),
        ({"text": " \n\t"}, "empty text"),
        ({"text": None}, "must be a string"),
        ({"text": b"x"}, "must be a string"),
        ({"text": "a \ud800"}, "surrogate"),
        ({"importance": 1.01}, "from 0 to 1"),
        ({"importance": -0.1}, "from 0 to 1"),
        ({"importance": float("nan")}, "from 0 to 1"),
        ({"importance": True}, "from 0 to 1"),
        ({"importance": "high"}, "from 0 to 1"),
        ({"kind": "belief"}, "kind must be"),
        ({"trust": "blind"}, "trust must be"),
        ({"trust": ["stated"]}, "trust must be"),
        ({"key": 7}, "key must be a string"),
        ({"key": ""}, "key must not be empty"),
        ({"key": "  "}, "key must not be blank"),
        ({"key": "k" * 513}, "at most 512"),
        ({"subject": "\x00"}, "NUL"),
        ({"tags": "one"}, "a collection of strings"),
        ({"tags": ("",)}, "must not be empty"),
        ({"valid_from": datetime(2026, 1, 1)}, "valid_from: .* no time zone"),
        ({"valid_to": "tomorrow"}, "valid_to: "),
        ({"valid_from": MONDAY, "valid_to": MONDAY}, "must be after"),
        ({"valid_from": MONDAY, "valid_to": MONDAY - DAY}, "must be after"),
        ({"valid_to": datetime(2020, 1, 1, tzinfo=UTC)}, "give valid_from as well"),
        ({"relation": "knows"}, "both a relation and an object"),
        ({"object": "ben"}, "both a relation and an object"),
        ({"origin": 7}, "an origin is"),
        ({"origin": {"who": "ana"}}, "not who"),
        ({"origin": {"entries": "t"}}, "pairs of thread and number"),
        ({"origin": {"entries": [("t", 0)]}}, "1 or more"),
        ({"origin": {"entries": [("t",)]}}, "thread and number"),
        ({"once": ""}, "once must not be empty"),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    ram: holdfast.Store, collection_of: MakeCollection, draft: dict[str, Any], why: str
) -> None:
    collection = collection_of(ram, user="ana")
    with pytest.raises(Invalid, match=why):
        collection.remember([Remembering("fine"), Remembering(**{"text": "likes tea", **draft})])
    assert collection.memories() == []
    assert collection.record() is None


@pytest.mark.every_engine
def test_a_large_text_is_kept_and_one_that_is_too_large_refused(collection: MemoryCollection) -> None:
    large = "ж" * 500_000
    assert collection.get(one(collection, large).id).text == large
    with pytest.raises(TooLarge):
        one(collection, "x" * (16 * 1024 * 1024))


@pytest.mark.every_engine
@pytest.mark.parametrize("text", ["a\x00b", "  spaces stay ", "日本語 🦊 العربية", '"quoted" AND *'])
def test_any_text_comes_back_as_it_was(collection: MemoryCollection, text: str) -> None:
    assert collection.get(one(collection, text).id).text == text


def test_origins_are_written_in_several_ways() -> None:
    def origin(given: Any) -> Origin:
        made: Origin = checked(Remembering("x", origin=given), "ana").origin
        return made

    assert origin(None) == Origin()
    assert origin("ana") == Origin(by="ana")
    whole = Origin("ana", "mail", None, (EntryRef("t", 1), EntryRef("t", 2)))
    assert origin({"by": "ana", "channel": "mail", "entries": [("t", 1), {"thread": "t", "number": 2}]}) == whole
    assert origin(whole) == whole


# Remembering


@pytest.mark.every_engine
def test_everything_that_was_said_comes_back(collection: MemoryCollection) -> None:
    origin = Origin("ana", "mail", "reader", (EntryRef("trip", 3),))
    made = one(
        collection, "lives in Bern", kind="episodic", subject="Ana B.", key="home", tags=("b", "a", "a"), importance=1,
        origin=origin, trust="trusted", valid_from=MONDAY, valid_to=MONDAY + DAY, relation="lives in", object="Bern",
    )  # fmt: skip
    assert made == Memory(
        made.id, "lives in Bern", "episodic", "Ana B.", made.recorded_at, MONDAY, MONDAY + DAY, "home", "lives in",
        "Bern", ("a", "b"), 1.0, origin, "trusted",
    )  # fmt: skip
    assert collection.get(made.id) == made


def test_what_is_not_said_is_filled_in(collection: MemoryCollection, clock: ManualClock) -> None:
    clock.set(MONDAY)
    made = one(collection)
    assert (made.subject, made.valid_from, made.kind, made.trust) == ("ana", made.recorded_at, "semantic", "stated")
    assert MONDAY < made.recorded_at < MONDAY + DAY
    assert one(collection, None, relation="knows", object="Ben").text == "ana knows Ben"


@pytest.mark.every_engine
def test_a_batch_is_one_commit_in_order(store: holdfast.Store, collection: MemoryCollection) -> None:
    before = len(store.core.engine.feed(store.tenant))
    made = collection.remember([Remembering(f"fact {number}", key="same") for number in range(40)])
    assert len(store.core.engine.feed(store.tenant)) - before == 1
    assert texts(collection.memories(limit=None)) == [f"fact {number}" for number in reversed(range(40))]
    assert len({memory.recorded_at for memory in made}) == 1
    assert [id for _, id in told(collection)] == [memory.id for memory in made]
    assert collection.remember([]) == []


def test_a_number_that_is_taken_is_not_used_again(store: holdfast.Store) -> None:
    draws = iter([7, 7, 7, 8])
    collection = MemoryCollection(store.core, Ids(lambda bits: next(draws)), Scope("ana"))
    first, second = one(collection, "first"), one(collection, "second")
    assert first.id != second.id
    assert texts(collection.memories()) == ["second", "first"]


def test_times_do_not_fall_when_the_clock_does(visible: VisibleMemories, clock: ManualClock) -> None:
    clock.set(MONDAY)
    first = one(visible.own, "Bern", key="home")
    clock.set(MONDAY - DAY)
    second = one(visible.own, "Basel", key="home")
    assert second.recorded_at > first.recorded_at
    assert visible.own.get(second.id) == second
    assert texts(visible.facts()) == ["Basel"], "what was acknowledged is true now"


@pytest.mark.every_engine
def test_many_at_once_are_all_kept_and_the_last_one_wins(visible: VisibleMemories) -> None:
    ready = threading.Barrier(8)
    made: list[Memory] = []

    def work(number: int) -> None:
        ready.wait()
        made.extend(one(visible.own, f"value {number}.{turn}", key="home") for turn in range(5))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = visible.history("home")
    assert len(versions) == 40
    assert {version.memory for version in versions} == set(made)
    assert visible.facts() == [max(made, key=lambda memory: memory.recorded_at)]
    assert len({memory.recorded_at for memory in made}) == 40
    assert all(before.until == after.since for before, after in pairwise(versions))


# Once


def test_remembering_once_is_remembering_once(collection: MemoryCollection) -> None:
    first = one(collection, once="n-1", tags=("t",))
    again = collection.remember([Remembering("other"), Remembering("likes tea", once="n-1", tags=("t",))])
    assert again[1] == first
    assert texts(collection.memories()) == ["other", "likes tea"]
    assert [what for what, _ in told(collection)] == ["remember"] * 2


def test_another_content_under_the_same_name_is_refused_whole(collection: MemoryCollection) -> None:
    one(collection, once="n-1")
    with pytest.raises(KeyReused):
        collection.remember([Remembering("new"), Remembering("likes coffee", once="n-1")])
    with pytest.raises(KeyReused):
        collection.remember([Remembering("x", once="n-2"), Remembering("y", once="n-2")])
    assert texts(collection.memories()) == ["likes tea"]


def test_a_name_twice_in_one_batch_is_one_memory(collection: MemoryCollection) -> None:
    first, second = collection.remember([Remembering("x", once="n"), Remembering("x", once="n")])
    assert first == second
    assert len(collection.memories()) == 1


def test_names_are_a_book_s_own(store: holdfast.Store, collection_of: MakeCollection) -> None:
    assert (
        one(collection_of(store, user="ana"), once="n").id
        != one(collection_of(store, user="ben"), "other", once="n").id
    )


def test_what_happened_since_is_not_other_content(collection: MemoryCollection) -> None:
    made = one(collection, once="n")
    collection.used(made.id, helped=True)
    collection.forget(made.id)
    again = one(collection, once="n")
    assert again.forgotten_at is not None
    assert again.uses == 1


def test_what_was_erased_does_not_come_back_by_its_name(collection: MemoryCollection) -> None:
    made = one(collection, once="n")
    collection.erase(made.id)
    with pytest.raises(Erased):
        one(collection, once="n")
    assert collection.memories() == []


@pytest.mark.every_engine
def test_many_who_remember_the_same_once_get_the_same(collection: MemoryCollection) -> None:
    ready, made = threading.Barrier(8), []

    def work() -> None:
        ready.wait()
        made.append(one(collection, once="n"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1
    assert len(told(collection)) == 1


# Listing


@pytest.mark.every_engine
def test_listings_by_kind_subject_and_tag(collection: MemoryCollection) -> None:
    collection.remember(
        [
            Remembering("a", kind="episodic", tags=("x",)),
            Remembering("b", subject="Ben  B", tags=("x", "t" * 500)),
            Remembering("c", kind="procedural"),
        ]
    )
    assert texts(collection.memories()) == ["c", "b", "a"]
    assert texts(collection.memories(kind="episodic")) == ["a"]
    assert texts(collection.memories(subject="ben b")) == ["b"]
    assert texts(collection.memories(tag="x")) == ["b", "a"]
    assert texts(collection.memories(tag="x", kind="semantic")) == ["b"]
    assert texts(collection.memories(tag="t" * 500)) == ["b"]
    assert texts(collection.memories(limit=2)) == ["c", "b"]
    assert collection.memories(limit=0) == []
    with pytest.raises(Invalid):
        collection.memories(kind="belief")


def test_a_short_list_is_of_the_latest_recorded_whatever_was_used_since(collection: MemoryCollection) -> None:
    made = [one(collection, f"{number}", kind=kind) for number, kind in enumerate(["semantic", "procedural"] * 60)]
    for memory in made[:100]:
        collection.used(memory.id)
    assert texts(collection.memories(limit=3)) == ["119", "118", "117"]


@pytest.mark.every_engine
def test_long_lists_are_the_same_by_any_way(collection: MemoryCollection, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [memory for turn in range(4) for memory in collection.remember(_some(turn))]
    for memory in made[::7]:
        collection.forget(memory.id)
    for memory in made[3::7]:
        collection.erase(memory.id)
    every = collection.memories(limit=None)
    assert len(every) == len(made) - len(made[::7]) - len(made[3::7])
    for limit in (1, 59, 61, 150, 1_000):
        assert collection.memories(limit=limit) == every[:limit]
        assert collection.memories(limit=limit, tag="x") == every[:limit]
    monkeypatch.setattr("holdfast.memory.collection._PAGE", 7)  # as when there are more than fit into a page
    assert collection.memories(limit=None) == every


def _some(turn: int) -> list[Remembering]:
    """Sixty, of which every fifth has a name of its own and so an id that tells nothing of its time."""
    return [
        Remembering(f"{turn}.{number}", tags=("x",), once=f"{turn}.{number}" if number % 5 == 0 else None)
        for number in range(60)
    ]


@pytest.mark.parametrize("limit", [-1, True, 1.5, "all"])
def test_a_limit_is_a_count(ram: holdfast.Store, visible_to: MakeVisible, limit: Any) -> None:
    with pytest.raises(Invalid, match="limit"):
        visible_to(ram).memories(limit=limit)


def test_what_is_asked_for_must_be_text(ram: holdfast.Store, visible_to: MakeVisible) -> None:
    visible: Any = visible_to(ram)
    for call in (
        lambda: visible.memories(subject=7), lambda: visible.memories(tag=7), lambda: visible.facts(subject=7),
        lambda: visible.history(7), lambda: visible.history("k", 7), lambda: visible.history(""),
        lambda: visible.links(entity=7), lambda: visible.own.links(7), lambda: visible.contradictions(subject=7),
    ):  # fmt: skip
        with pytest.raises(Invalid):
            call()


def test_procedures_come_by_usefulness(visible: VisibleMemories) -> None:
    collection = visible.own
    names = ("plain", "important", "helped", "failed", "newest")
    made = {
        name: one(collection, name, kind="procedural", importance=0.9 if name == "important" else 0.5) for name in names
    }
    for _ in range(3):
        collection.used(made["helped"].id, helped=True)
        collection.used(made["failed"].id, helped=False)
    expected = ["helped", "important", "newest", "plain", "failed"]
    assert texts(collection.procedures()) == texts(visible.procedures()) == expected
    visible.end(made["important"].id)
    assert texts(visible.procedures(limit=2)) == ["helped", "newest"]


def test_what_comes_from_a_thread_is_found_by_it(store: holdfast.Store, collection: MemoryCollection) -> None:
    made = one(collection, origin={"entries": [("trip", 1), ("trip", 2)]})
    one(collection)
    found = store.core.engine.scan(store.tenant, Query(MEMORY, tag=thread_tag("trip")))
    assert [record.id for record in found] == [made.id]


def test_the_stream_tells_what_happened_in_order(collection: MemoryCollection) -> None:
    first, second = one(collection), one(collection, "other")
    collection.forget(first.id)
    collection.unforget(first.id)
    collection.used(second.id)
    collection.erase(second.id)
    assert told(collection) == [
        ("remember", first.id), ("remember", second.id), ("forget", first.id), ("restore", first.id),
        ("erase", second.id),
    ]  # fmt: skip


# Forgetting


def test_forgetting_can_be_undone(visible: VisibleMemories) -> None:
    made = one(visible.own, key="drink", relation="likes", object="tea", kind="procedural")
    forgotten = visible.forget(made.id)
    assert forgotten.forgotten_at is not None
    assert visible.get(made.id) == forgotten
    for found in (visible.memories(), visible.facts(), visible.links(), visible.procedures(), visible.history("drink")):
        assert found == []
    assert visible.memories(forgotten=True) == [forgotten]
    assert visible.forget(made.id) == forgotten, "twice is once"
    assert visible.unforget(made.id) == made
    assert visible.unforget(made.id) == made
    assert visible.facts() == [made]
    assert [what for what, _ in told(visible.own)] == ["remember", "forget", "restore"]


def test_without_what_was_forgotten_the_value_before_it_holds_on(visible: VisibleMemories) -> None:
    one(visible.own, "Bern", key="home")
    second = one(visible.own, "Basel", key="home")
    visible.forget(second.id)
    assert texts(visible.facts()) == ["Bern"]


@pytest.mark.every_engine
def test_what_was_erased_is_really_gone(store: holdfast.Store, visible: VisibleMemories) -> None:
    made = one(visible.own, "a secret", key="k", tags=("t",))
    visible.erase(made.id)
    for call in (
        visible.get,
        visible.forget,
        visible.unforget,
        visible.erase,
        visible.used,
        visible.correct,
        visible.end,
    ):
        with pytest.raises(NotFound):
            call(made.id)
    assert visible.memories(tag="t") == visible.facts() == []
    assert store.core.engine.scan(store.tenant, Query(MEMORY)) == []
    assert not [problem for problem in store.core.engine.check() if problem.tenant == store.tenant]


@pytest.mark.every_engine
def test_uses_are_counted_by_many_at_once(collection: MemoryCollection) -> None:
    made = one(collection)
    threads = [threading.Thread(target=collection.used, args=(made.id, number % 2 == 0)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = collection.get(made.id)
    assert (counted.uses, counted.helped) == (8, 4)
    assert counted.recorded_at == made.recorded_at
    with pytest.raises(Invalid):
        collection.used(made.id, helped="yes")  # type: ignore[arg-type]


# Facts


def test_history_is_the_same_whatever_came_first(visible: VisibleMemories, clock: ManualClock) -> None:
    clock.set(MONDAY + 100 * DAY)
    collection = visible.own
    one(collection, "Basel", key="home", valid_from=MONDAY + 10 * DAY)
    one(collection, "Bern", key="home", valid_from=MONDAY)
    one(collection, "Chur", key="home", valid_from=MONDAY + 20 * DAY, valid_to=MONDAY + 30 * DAY)
    told = [(version.memory.text, version.since, version.until) for version in visible.history("home")]
    assert told == [
        ("Bern", MONDAY, MONDAY + 10 * DAY),
        ("Basel", MONDAY + 10 * DAY, MONDAY + 20 * DAY),
        ("Chur", MONDAY + 20 * DAY, MONDAY + 30 * DAY),
    ]
    assert visible.facts() == []
    assert texts(visible.facts(as_of=MONDAY + 15 * DAY)) == ["Basel"]
    assert visible.facts(as_of=MONDAY + 15 * DAY, known_at=MONDAY) == []
    for naive in ({"as_of": datetime(2026, 1, 1)}, {"known_at": datetime(2026, 1, 1)}):
        with pytest.raises(Invalid, match="no time zone"):
            visible.facts(**naive)


def test_history_without_a_subject(visible: VisibleMemories) -> None:
    assert visible.history("home") == []
    one(visible.own, "Ben is in Bern", subject="Ben", key="home")
    assert [version.memory.subject for version in visible.history("Home")] == ["Ben"]
    one(visible.own, "Cleo is in Chur", subject="Cleo", key="home")
    with pytest.raises(Invalid, match="'Ben', 'Cleo'"):
        visible.history("home")
    assert len(visible.history("home", "cleo")) == 1
    one(visible.own, "here", key="home")
    assert [version.memory.text for version in visible.history("home")] == ["here"]
    assert visible.history("home", "nobody") == []


def test_facts_of_one_subject(visible: VisibleMemories) -> None:
    visible.remember([Remembering("a", key="k"), Remembering("b", key="k", subject="Ben")])
    assert texts(visible.facts()) == ["a", "b"]
    assert texts(visible.facts(subject="BEN")) == ["b"]


def test_a_correction_is_not_a_change(visible: VisibleMemories, clock: ManualClock) -> None:
    clock.set(MONDAY)
    wrong = one(visible.own, "Bern", key="home")
    clock.set(MONDAY + DAY)
    right = visible.correct(wrong.id, Remembering("Basel"))
    assert (right.corrects, right.key, right.subject) == (wrong.id, "home", "ana")
    assert texts(visible.facts(as_of=wrong.valid_from)) == ["Basel"]
    assert texts(visible.facts(as_of=wrong.valid_from, known_at=MONDAY + DAY / 2)) == ["Bern"]
    first, second = visible.history("home")
    assert (first.memory.text, first.corrected_by) == ("Bern", right.id)
    assert second.memory == right


def test_a_correction_with_nothing_instead_leaves_what_was_before(visible: VisibleMemories) -> None:
    one(visible.own, "Bern", key="home")
    wrong = one(visible.own, "Mars", key="home")
    denial = visible.correct(wrong.id)
    assert texts(visible.facts()) == ["Bern"]
    assert "Mars" not in denial.text, "what is erased must not be quoted elsewhere"
    assert [version.corrected_by for version in visible.history("home")] == [None, denial.id]
    visible.correct(denial.id)
    assert texts(visible.facts()) == ["Mars"]
    assert [version.memory.text for version in visible.history("home")] == ["Bern", "Mars"]


def test_a_fact_can_end(visible: VisibleMemories, clock: ManualClock) -> None:
    clock.set(MONDAY)
    job = one(visible.own, "works at Acme", key="job")
    clock.set(MONDAY + 9 * DAY)
    visible.end(job.id, MONDAY + 5 * DAY, Remembering("left Acme", origin="ana"))
    assert texts(visible.facts(as_of=MONDAY + 4 * DAY)) == ["works at Acme"]
    assert visible.facts(as_of=MONDAY + 6 * DAY) == []
    assert texts(visible.facts(as_of=MONDAY + 6 * DAY, known_at=MONDAY + 6 * DAY)) == ["works at Acme"]
    assert [(version.memory.text, version.memory.ended) for version in visible.history("job")] == [
        ("works at Acme", False), ("left Acme", True)
    ]  # fmt: skip
    one(visible.own, "works at Bolt", key="job")
    assert texts(visible.facts()) == ["works at Bolt"]


def test_what_ends_must_have_begun(visible: VisibleMemories, clock: ManualClock) -> None:
    clock.set(MONDAY)
    made = one(visible.own, valid_from=MONDAY + DAY)
    for at in (None, MONDAY, MONDAY + DAY):
        with pytest.raises(Invalid, match="cannot end before"):
            visible.end(made.id, at)
    with pytest.raises(Invalid, match="no time zone"):
        visible.end(made.id, datetime(2027, 1, 1))
    clock.set(MONDAY + 3 * DAY)
    ended = visible.end(made.id)
    assert (ended.corrects, ended.ended) == (made.id, True)


def test_a_value_that_is_over_cannot_end_what_came_after_it(visible: VisibleMemories, clock: ManualClock) -> None:
    clock.set(MONDAY + 90 * DAY)
    silver = one(visible.own, "Silver", key="plan", valid_from=MONDAY)
    gold = one(visible.own, "Gold", key="plan", valid_from=MONDAY + 10 * DAY)
    for at in (None, MONDAY + 10 * DAY, MONDAY + 20 * DAY):
        with pytest.raises(Invalid, match=f"already ended at 2026-03-12.* when '{gold.id}' began"):
            visible.end(silver.id, at)
    assert texts(visible.facts()) == ["Gold"]
    visible.end(silver.id, MONDAY + 5 * DAY)
    assert visible.facts(as_of=MONDAY + 6 * DAY) == []
    assert texts(visible.facts()) == texts(visible.facts(as_of=MONDAY + 10 * DAY)) == ["Gold"]
    visible.end(gold.id)
    assert visible.facts() == []


def test_what_is_no_value_any_more_cannot_end(visible: VisibleMemories, clock: ManualClock) -> None:
    clock.set(MONDAY)
    one(visible.own, "Bern", key="home")
    wrong, gone = one(visible.own, "Mars", key="home"), one(visible.own, "Basel", key="home")
    denial = visible.correct(wrong.id)
    visible.forget(gone.id)
    for id, why in ((wrong.id, f"never true \\('{denial.id}' corrects it"), (gone.id, "unforget it first")):
        with pytest.raises(Invalid, match=why):
            visible.end(id)
    assert texts(visible.facts()) == ["Bern"]
    short = one(visible.own, "a week", key="trip", valid_to=MONDAY + 7 * DAY)
    clock.set(MONDAY + 9 * DAY)
    with pytest.raises(Invalid, match="already ended at 2026-03-09"):
        visible.end(short.id)


def test_a_value_that_another_book_replaced_cannot_end(store: holdfast.Store, visible_to: MakeVisible) -> None:
    ana, with_bot = visible_to(store, user="ana"), visible_to(store, user="ana", agent="bot")
    first = one(ana.own, "Bern", key="home")
    one(with_bot.own, "Basel", key="home")
    with pytest.raises(Invalid, match="already ended"):
        ana.end(first.id)
    assert texts(ana.facts()) == ["Basel"]
    visible_to(store, user="ana", agent="cat").end(first.id)  # who does not see the bot's collection


@pytest.mark.every_engine
def test_of_an_end_and_a_new_value_at_once_none_is_lost(visible: VisibleMemories) -> None:
    """Either the end came first, or it is refused: the new value stays."""
    for turn in range(8):
        old, ready = one(visible.own, f"old {turn}", key="plan"), threading.Barrier(2)

        def end(id: str = old.id, ready: threading.Barrier = ready) -> None:
            ready.wait()
            with suppress(Invalid):
                visible.end(id)

        thread = threading.Thread(target=end)
        thread.start()
        ready.wait()
        one(visible.own, f"new {turn}", key="plan")
        thread.join()
        assert texts(visible.facts()) == [f"new {turn}"]


@pytest.mark.every_engine
def test_a_value_that_comes_between_the_look_and_the_end_is_seen(
    collection: MemoryCollection, visible: VisibleMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, prepare = one(collection, "Silver", key="plan"), collection.remembering
    late = iter(["Gold"])

    def overtaken(*given: Any) -> Any:
        for text in late:
            one(visible.own, text, key="plan")
        return prepare(*given)

    monkeypatch.setattr(collection, "remembering", overtaken)
    with pytest.raises(Invalid, match="already ended"):
        collection.end(old.id)
    assert texts(visible.facts()) == ["Gold"]


def test_an_end_of_a_caller_s_own_name_is_said_once(visible: VisibleMemories) -> None:
    job = one(visible.own, "works at Acme", key="job")
    ended = visible.end(job.id, None, Remembering("left Acme", once="n"))
    assert visible.end(job.id, None, Remembering("left Acme", once="n")) == ended
    assert len(visible.history("job")) == 2


def test_only_an_id_can_be_corrected(collection: MemoryCollection) -> None:
    with pytest.raises(Invalid, match="not the id of a memory"):
        one(collection, corrects="the last one")
    assert collection.memories() == []


def test_contradictions_are_told_until_they_are_settled(visible: VisibleMemories) -> None:
    first = one(visible.own, "Ana lives in Bern")
    second = one(visible.own, "Ana lives in Basel")
    one(visible.own, "Ben lives in Chur", subject="Ben")
    assert [(pair.first, pair.second, pair.rule) for pair in visible.contradictions()] == [(first, second, "home")]
    assert len(visible.contradictions(subject="ANA")) == 1
    assert visible.contradictions(subject="Ben") == []
    assert visible.contradictions(limit=0) == []
    with pytest.raises(Invalid, match="limit"):
        visible.contradictions(limit=-1)
    visible.end(first.id)
    assert visible.contradictions() == []


# Which collections


@pytest.mark.every_engine
def test_a_handle_sees_its_own_book_those_inside_and_those_above(
    store: holdfast.Store, visible_to: MakeVisible
) -> None:
    pairs = {
        "common": {}, "ana": {"user": "ana"}, "bot": {"agent": "bot"}, "ana+bot": {"user": "ana", "agent": "bot"},
        "ana+cat": {"user": "ana", "agent": "cat"}, "ben": {"user": "ben"}, "ben+bot": {"user": "ben", "agent": "bot"},
    }  # fmt: skip
    handles = {name: visible_to(store, **pair) for name, pair in pairs.items()}
    made = {name: one(visible.own, name, key=f"about {name}", subject="s") for name, visible in handles.items()}
    seen = {
        "common": {"common"},
        "ana": {"ana", "ana+bot", "ana+cat", "common"},
        "bot": {"bot", "common"},
        "ana+bot": {"ana+bot", "ana", "bot", "common"},
        "ben": {"ben", "ben+bot", "common"},
    }
    for name, expected in seen.items():
        visible = handles[name]
        assert set(texts(visible.memories())) == set(texts(visible.facts())) == expected
        assert len(visible.collections()) == len({collection.id for collection in visible.collections()})
        for other, memory in made.items():
            if other in expected:
                assert visible.get(memory.id) == memory
            else:
                with pytest.raises(NotFound):
                    visible.get(memory.id)
                with pytest.raises(NotFound):
                    visible.forget(memory.id)


def test_a_book_has_its_own_memories_alone(store: holdfast.Store, collection_of: MakeCollection) -> None:
    ana, with_bot = collection_of(store, user="ana"), collection_of(store, user="ana", agent="bot")
    made = one(with_bot)
    assert ana.find(made.id) is None
    for call in (ana.get, ana.forget, ana.unforget, ana.erase, ana.used, ana.correct, ana.end):
        with pytest.raises(NotFound):
            call(made.id)
    assert with_bot.get(made.id) == made
    assert ana.memories() == []


def test_a_fact_has_versions_in_several_books(store: holdfast.Store, visible_to: MakeVisible) -> None:
    ana, with_bot = visible_to(store, user="ana"), visible_to(store, user="ana", agent="bot")
    one(ana.own, "Bern", key="home")
    one(with_bot.own, "Basel", key="home")
    assert texts(ana.facts()) == texts(with_bot.facts()) == ["Basel"]
    assert texts(visible_to(store, user="ana", agent="cat").facts()) == ["Bern"], (
        "the bot's collection is not the cat's"
    )


def test_what_is_said_about_a_memory_goes_to_its_own_book(store: holdfast.Store, visible_to: MakeVisible) -> None:
    ana, with_bot = visible_to(store, user="ana"), visible_to(store, user="ana", agent="bot")
    wrong = one(ana.own, "Bern", key="home")
    with_bot.correct(wrong.id, Remembering("Basel"))
    other = visible_to(store, user="ana", agent="cat")
    assert texts(other.facts()) == ["Basel"]
    with_bot.forget(wrong.id)
    assert other.memories(forgotten=True) == [ana.get(wrong.id)]
    assert with_bot.own.record() is None


@pytest.mark.every_engine
def test_erasing_a_user_erases_what_is_remembered_of_them(store: holdfast.Store, visible_to: MakeVisible) -> None:
    ana, ben = visible_to(store, user="ana", agent="bot"), visible_to(store, user="ben")
    one(ana.own, "a secret")
    one(ben.own)
    store.erase(user="ana")
    assert ana.memories() == []
    assert len(ben.memories()) == 1
    assert ana.own.record() is None
    assert one(ana.own, "back again") in ana.memories()
    assert len(told(ana.own)) == 1


@pytest.mark.every_engine
def test_a_memory_of_another_tenant_is_not_there(store: holdfast.Store, visible: VisibleMemories) -> None:
    made = one(visible.own)
    elsewhere = VisibleMemories(store.core._replace(tenant="elsewhere"), Ids(), Scope("ana"))
    with pytest.raises(NotFound):
        elsewhere.get(made.id)
    assert elsewhere.memories() == []


# Damage


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"j1[]", Corrupt),
        (b'j1{"version":1}', Corrupt),
        (
            b'j1{"version":1,"text":"x","kind":"semantic","subject":"a","trust":"stated","importance":1,"tags":7}',
            Corrupt,
        ),
        (b'j1{"version":2,"text":"x"}', Unsupported),
    ],
)
def test_what_is_no_memory_is_said_to_be_none(
    ram: holdfast.Store, collection_of: MakeCollection, body: bytes, error: type[Exception]
) -> None:
    collection = collection_of(ram, user="ana")
    made = one(collection)
    ram.core.engine.commit(ram.tenant, [Put(MEMORY, made.id, body, scope=collection.scope)], 1)
    with pytest.raises(error):
        collection.get(made.id)


def test_a_conflict_of_the_pending_write_is_the_caller_s_to_settle(collection: MemoryCollection) -> None:
    """Async callers hand the pending write over, and call ``remember`` when it says that something is there."""
    first = one(collection, once="n")
    core: Any = collection._core
    with pytest.raises((Conflict, KeyReused)):
        core.commit(collection.remembering([Remembering("likes tea", once="n")]))
    assert collection.remember([Remembering("likes tea", once="n")]) == [first]
