"""Recall from end to end: filters, budgets, honesty about finding nothing, and any query people can type."""

from __future__ import annotations

import random
import types
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import Memories
from holdfast.clock import to_datetime
from holdfast.engine.contract import Put
from holdfast.errors import Invalid
from holdfast.records import Recalled
from holdfast.retrieval import pipeline, question, table, vector
from holdfast.retrieval.segment import hashed
from holdfast.testing import ManualClock
from holdfast.testing.embedders import Flaky, HashEmbedder

START = datetime(2026, 1, 1, tzinfo=UTC)


def said(words: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": words, **fields}


def texts(found: Recalled) -> list[str]:
    return [hit.text for hit in found]


@pytest.fixture
def memory(ram: holdfast.Store) -> Memories:
    return ram.memory(user="ana")


# Narrowed down


@pytest.fixture
def zoo(store: holdfast.Store) -> Memories:
    """A zebra of every sort."""
    memory = store.memory(user="ana")
    memory.remember(
        "zebra fact", key="zebra", tags=["animal", "big"], origin={"by": "Bo", "channel": "mail", "tool": "web"}
    )
    memory.remember(
        "zebra trip", kind="episodic", tags=["animal"], valid_from=START - timedelta(days=10), trust="untrusted"
    )
    memory.remember("zebra recipe", kind="procedural", subject="Kitchen  Staff", trust="trusted")
    thread = store.thread("t", user="ana")
    thread.append(said("zebra question", name="Bo"), {"role": "system", "content": "zebra rule"})
    thread.append({"name": "web", "arguments": {"q": "zebra call"}}, kind="tool_call")
    thread.append({"role": "tool", "content": "zebra result"}, kind="observation")
    store.thread("u", user="ana").append(said("zebra elsewhere", time="2025-06-01T00:00:00Z"))
    return memory


ENTRIES = {"zebra question", "zebra rule", "web\nzebra call", "zebra result", "zebra elsewhere"}
MEMORIES = {"zebra fact", "zebra trip", "zebra recipe"}


@pytest.mark.parametrize("way", ["all", "gathered"])
@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({}, ENTRIES | MEMORIES),
        ({"log": False}, MEMORIES),
        ({"kind": "semantic"}, {"zebra fact"}),
        ({"kind": ["episodic", "observation"]}, {"zebra trip", "zebra result"}),
        ({"kind": ["episodic", "observation"], "log": False}, {"zebra trip"}),
        ({"kind": "message", "log": False}, set()),
        ({"kind": []}, set()),
        ({"kind": "note"}, set()),
        ({"tag": "animal"}, {"zebra fact", "zebra trip"}),
        ({"tag": ["animal", "big"]}, {"zebra fact"}),
        ({"tag": "anim"}, set()),
        ({"by": "Bo"}, {"zebra fact", "zebra question"}),
        ({"by": "user"}, {"zebra elsewhere"}),
        ({"channel": "mail"}, {"zebra fact"}),
        ({"tool": "web"}, {"zebra fact", "web\nzebra call"}),
        ({"trust": "trusted"}, {"zebra recipe", "zebra rule"}),
        ({"trust": "stated"}, (ENTRIES | MEMORIES) - {"zebra trip", "zebra result"}),
        ({"trust": "untrusted"}, ENTRIES | MEMORIES),
        ({"thread": "t"}, ENTRIES - {"zebra elsewhere"}),
        ({"thread": "u"}, {"zebra elsewhere"}),
        ({"thread": "no such thread"}, set()),
        ({"subject": "kitchen staff"}, {"zebra recipe"}),
        ({"subject": "ANA"}, {"zebra fact", "zebra trip"}),
        ({"since": START}, (ENTRIES | MEMORIES) - {"zebra trip", "zebra elsewhere"}),
        ({"until": START}, {"zebra trip", "zebra elsewhere"}),
        ({"since": START - timedelta(days=10), "until": START}, {"zebra trip"}),
        ({"since": START, "until": START}, set()),
        ({"as_of": START - timedelta(days=5)}, {"zebra trip", "zebra elsewhere"}),
        ({"kind": "semantic", "tag": "animal", "by": "Bo", "since": START}, {"zebra fact"}),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_a_filter_lets_through_exactly_what_it_says(
    zoo: Memories, monkeypatch: pytest.MonkeyPatch, only: dict[str, Any], expected: set[str], way: str
) -> None:
    if way == "gathered":
        monkeypatch.setattr(pipeline, "ALL", 0)
    assert set(texts(zoo.recall("zebra", 50, **only))) == expected


def test_an_interval_has_its_beginning_and_not_its_end(memory: Memories) -> None:
    memory.remember("zebra", valid_from=START)
    second = timedelta(seconds=1)
    assert memory.recall("zebra", since=START, until=START + second)
    assert not memory.recall("zebra", since=START - second, until=START)
    assert not memory.recall("zebra", since=START + second)
    assert memory.recall("zebra", as_of=START)


@pytest.fixture
def pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus of a few hundred rows counts as large."""
    monkeypatch.setattr(pipeline, "ALL", 100)
    monkeypatch.setattr(pipeline, "_GATHERED", 20)


LONG = "a word about a zebra and other long things"


@pytest.mark.usefixtures("pruned")
@pytest.mark.parametrize("embedder", [None, HashEmbedder(16)], ids=["words", "vectors"])
@pytest.mark.parametrize(
    "only", [{"tag": "few"}, {"subject": "bo"}, {"trust": "trusted"}, {"kind": "procedural"}], ids=str
)
def test_a_filter_does_not_cost_hits(here: Any, embedder: Any, only: dict[str, Any]) -> None:
    """The few that pass are found although many that do not pass are better."""
    memory = here.open(embedder).memory(user="ana")
    memory.remember_all([f"zebra zebra zebra {number}" for number in range(400)])
    few = {"tags": ["few"], "subject": "bo", "trust": "trusted", "kind": "procedural"}
    memory.remember_all([{"text": f"{LONG} {number}", **few} for number in range(15)])
    assert len(memory.recall("zebra", 50, **only)) == 15


@pytest.mark.usefixtures("pruned")
def test_a_busy_neighbour_does_not_cost_hits(ram: holdfast.Store) -> None:
    ram.memory(user="ana", agent="busy").remember_all([f"zebra zebra zebra {number}" for number in range(400)])
    ram.memory(user="ana", agent="quiet").remember(LONG)
    ram.thread("t", user="ana", agent="quiet").append(said(f"{LONG}, he said"))
    found = texts(ram.memory(user="ana", agent="quiet").recall("zebra"))
    assert set(found) == {LONG, f"{LONG}, he said"}
    assert texts(ram.memory(user="ana").recall("zebra", thread="t")) == [f"{LONG}, he said"]


@pytest.mark.usefixtures("pruned")
@pytest.mark.parametrize("way", ["forgotten", "superseded"])
def test_what_no_longer_counts_does_not_cost_hits(memory: Memories, way: str) -> None:
    key = "zebras" if way == "superseded" else None
    made = memory.remember_all([{"text": f"zebra zebra zebra {number}", "key": key} for number in range(400)])
    memory.remember_all([f"{LONG} {number}" for number in range(5)])
    if way == "forgotten":
        for one in made:
            memory.forget(one.id)
    assert sum(LONG in text for text in texts(memory.recall("zebra", 10))) == 5


@pytest.mark.parametrize(
    "only",
    [
        {"k": 0}, {"k": -1}, {"k": 1_001}, {"k": True}, {"k": 2.0}, {"k": "3"}, {"k": None},
        {"within_ms": 0}, {"within_ms": -1}, {"within_ms": "x"}, {"within_ms": float("nan")},
        {"as_of": "yesterday"}, {"as_of": datetime(2020, 1, 1)}, {"since": 5},
        {"as_of": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))}, {"until": "x"},
        {"kind": "fact"}, {"kind": ["semantic", 5]}, {"kind": 5}, {"tag": 5}, {"tag": ""}, {"tag": [""]}, {"by": 5},
        {"channel": ""}, {"tool": ["x"]}, {"trust": "high"}, {"trust": 1}, {"thread": ""}, {"thread": 5},
        {"subject": 5}, {"color": "red"},
    ],
    ids=str,
)  # fmt: skip
def test_what_makes_no_sense_is_refused(memory: Memories, only: dict[str, Any]) -> None:
    memory.remember("a zebra")
    with pytest.raises(Invalid):
        memory.recall("zebra", **only)


@pytest.mark.parametrize("query", [None, 5, b"zebra", ["zebra"]])
def test_a_query_is_text(memory: Memories, query: Any) -> None:
    with pytest.raises(Invalid):
        memory.recall(query)


def test_as_many_as_asked_for(memory: Memories) -> None:
    memory.remember_all([f"zebra {number} stands there" for number in range(60)])
    for k in (1, 7, 60, 1_000):
        found = memory.recall("zebra", k)
        assert len(found) == min(k, 60)
        assert len({hit.id for hit in found}) == len(found)


# Explained


@pytest.mark.parametrize("embedder", [None, HashEmbedder(16)], ids=["words", "vectors"])
def test_the_parts_of_a_score_add_up(here: Any, embedder: Any) -> None:
    store = here.open(embedder)
    store.memory(user="ana").remember("the budget is 300 now", importance=0.9)
    thread = store.thread("t", user="ana")
    thread.append(said("My budget is 200 euros"), {"role": "assistant", "content": "Noted, a budget of 200 euros."})
    thread.append(said("Actually I changed it, my budget is now 250 euros"))
    for query in ("what is my budget?", "budget in January", "summarize the budget", "when did I say that?", "zebra"):
        for hit in store.memory(user="ana").recall(query, explain=True):
            assert hit.why
            assert sum(hit.why.values()) == pytest.approx(hit.score, abs=0.01)
    assert all(hit.why == {} for hit in store.memory(user="ana").recall("budget"))


def test_a_report_says_what_was_done(here: Any) -> None:
    memory = here.open(HashEmbedder(16)).memory(user="ana")
    memory.remember_all(["a zebra", "an okapi"])
    report = memory.recall("zebra").report
    assert (report.query, report.searched, report.candidates, report.model) == ("zebra", 2, 2, "hash-16")
    assert (report.pending, report.notes, report.skipped) == (0, (), ())
    assert {"gather", "words", "meaning", "facts", "weigh"} <= {stage.name for stage in report.stages}
    assert all(stage.ms >= 0 for stage in report.stages)


# With little time


@pytest.mark.parametrize("embedder", [None, HashEmbedder(16)], ids=["words", "vectors"])
def test_with_no_time_words_still_find(here: Any, embedder: Any) -> None:
    memory = here.open(embedder).memory(user="ana")
    memory.remember_all([f"filler {number}" for number in range(50)])
    memory.remember("a zebra")
    memory.remember("lives in Rome", key="city")
    memory.remember("lives in Oslo", key="city")
    found = memory.recall("zebra", within_ms=1e-9)
    assert texts(found)[0] == "a zebra"
    assert {"around", "speaker", "looks", "time"} <= set(found.report.skipped)
    assert {"words", "facts"}.isdisjoint(found.report.skipped)
    assert all(stage.skipped == "no time left" for stage in found.report.stages if stage.skipped)
    assert "lives in Rome" not in texts(memory.recall("lives", 100, within_ms=1e-9))


def test_with_time_enough_nothing_is_left_out(memory: Memories) -> None:
    memory.remember("a zebra")
    assert memory.recall("zebra", within_ms=60_000).report.skipped == ()


def test_with_no_time_no_embedder_is_asked(here: Any) -> None:
    counting = Flaky(HashEmbedder(16))
    memory = here.open(counting).memory(user="ana")
    memory.remember("a zebra")
    memory.recall("okapi")
    calls = counting.calls
    memory.recall("zebra", within_ms=1e-9)
    assert counting.calls == calls


# Nothing relevant


@pytest.mark.parametrize("embedder", [None, HashEmbedder(64)], ids=["words", "vectors"])
def test_nothing_related_is_said_to_be_nothing(here: Any, embedder: Any) -> None:
    memory = here.open(embedder).memory(user="ana")
    memory.remember_all(["prefers aisle seats on flights", "has a brother in Lisbon", "works at the harbour"])
    assert not memory.recall("quantum chromodynamics lattice").relevant
    assert memory.recall("aisle seats").relevant
    assert memory.recall("aisle seats").confidence > memory.recall("quantum chromodynamics lattice").confidence


@pytest.mark.parametrize("only", [{"thread": "mine"}, {"agent": "travel"}], ids=["thread", "agent"])
def test_what_may_not_be_seen_says_nothing_of_confidence(only: dict[str, str]) -> None:
    said_here = ("We should paint the hall green", "The train leaves at nine", "Olga has the spare key", "New shoes")

    def sure(others: int) -> float:
        agent = only.get("agent")
        with holdfast.open("ram:", embedder=HashEmbedder(), reranker="none") as store:
            store.thread("mine", user="ana", agent=agent).append(*map(said, said_here))
            elsewhere = [said(f"the spare key of flat {number} hangs on its hook") for number in range(others)]
            store.thread("theirs", user="ana", agent=agent and "other").append(*elsewhere)
            memory = store.memory("ana", agent=agent)
            return memory.recall("Who has the spare key?", thread=only.get("thread")).confidence

    assert sure(1) == pytest.approx(sure(600))


def test_an_empty_store_has_nothing_relevant(store: holdfast.Store) -> None:
    for scope in ({"user": "ana"}, {"agent": "a"}, {"user": "ana", "agent": "a"}, {}):
        found = store.memory(**scope).recall("anything")
        assert (found.hits, found.relevant, found.confidence) == ((), False, 0.0)
        assert found.report.searched == 0


@pytest.mark.parametrize("query", ["", "   ", "?", "the of and", "\n"])
def test_a_query_that_says_nothing_has_no_relevant_hit(memory: Memories, query: str) -> None:
    memory.remember("a zebra")
    assert not memory.recall(query).relevant


# Whatever people type


@pytest.mark.parametrize(
    "query",
    [
        '"zebra', '"zebra"', "zebra AND", "NOT zebra", "-zebra", "zebra*", "*zebra", "(zebra", "zebra)", "zebra~2",
        "NEAR(zebra okapi, 2)", "text:zebra", "content : zebra", "^zebra", "zebra OR 1=1; --", "zebra'", "{zebra}",
        "zebra'; DROP TABLE records; --", "zebra & !x | (y <-> z)", "%zebra%", "_zebra\\", "zebra\x00", "zebra \ud800",
        "zebra\u200b", "[[zebra]]",
    ],
)  # fmt: skip
def test_query_syntax_is_only_text(store: holdfast.Store, query: str) -> None:
    memory = store.memory(user="ana")
    memory.remember_all(["a zebra", "something else", "one more thing"])
    assert texts(memory.recall(query))[0] == "a zebra"


def test_operators_have_no_meaning(memory: Memories) -> None:
    memory.remember_all(["rock and roll", "not near anything", "zebra"])
    assert texts(memory.recall("NOT zebra"))[0] == "zebra"
    assert texts(memory.recall("rock NEAR roll"))[0] == "rock and roll"


@given(st.text(st.characters(codec=None), max_size=80))
def test_any_query_is_answered(query: str) -> None:
    with holdfast.open("ram:", embedder=HashEmbedder(16)) as store:
        memory = store.memory(user="ana")
        memory.remember("a zebra")
        store.thread("t", user="ana").append(said("hello"))
        first, second = (texts(memory.recall(query)) for _ in range(2))
        assert first == second
        assert set(first) == {"a zebra", "hello"}


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=80).filter(str.strip))
def test_any_text_is_kept_and_shown_as_it_was(words: str) -> None:
    with holdfast.open("ram:", embedder=HashEmbedder(16)) as store:
        memory = store.memory(user="ana")
        memory.remember(words)
        store.thread("t", user="ana").append(said(words))
        assert texts(memory.recall(words)) == [words, words]


@pytest.mark.parametrize("query", ["zebra " * 170_000, "x1 " * 350_000, "a" * 1_000_000, "zebra? " + "\n" * 1_000_000])
def test_a_megabyte_can_be_asked(memory: Memories, query: str) -> None:
    memory.remember_all(["a zebra", "something else"])
    found = memory.recall(query)
    assert len(found) == 2
    if "zebra" in query:
        assert texts(found)[0] == "a zebra"


def test_a_megabyte_in_another_script_can_be_asked(memory: Memories) -> None:
    memory.remember_all([f"第{number}条关于上海的记录" for number in range(100)])
    drawn = random.Random(1)
    query = "上海" + "".join(chr(drawn.randrange(0x4E00, 0x9FFF)) for _ in range(350_000))
    found = memory.recall(query)
    assert len(found) == 10
    assert len(asked_terms(query)) <= 20_000


def asked_terms(query: str) -> dict[int, float]:
    """The terms that a query is looked up by: each costs a row of numbers for the whole corpus."""
    from holdfast.retrieval import question  # noqa: PLC0415

    return question.read(query, 0).terms


@pytest.mark.parametrize("embedder", [None, HashEmbedder(16)], ids=["words", "vectors"])
def test_a_megabyte_can_be_remembered_and_found_by_its_end(here: Any, embedder: Any) -> None:
    memory = here.open(embedder).memory(user="ana")
    long = "word " * 199_000 + "and then a zebra"
    memory.remember(long)
    memory.remember_all([f"something else {number}" for number in range(5)])
    assert texts(memory.recall("zebra"))[0] == long
    assert memory.recall("zebra").relevant


@pytest.mark.every_engine
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("上海的天气", "下周上海天气会很好"),
        ("コーヒー", "毎朝コーヒーを二杯飲みます"),
        ("กาแฟ", "ฉันชอบดื่มกาแฟตอนเช้า"),
        ("서울", "저는 서울 근처에 살아요"),
        ("أين القهوة", "تحب القَهْوَة في الصباح"),
        ("हिन्दी", "वह घर पर हिन्दी बोलती है"),
        ("Москва", "Её любимый город Москва"),
        ("café", "they met in a CAFE by the sea"),
        ("🍕", "friday is 🍕 night"),
        ("Αθήνα", "γεννήθηκε στην ΑΘΗΝΑ"),
    ],
)
def test_every_script_is_found(store: holdfast.Store, query: str, told: str) -> None:
    memory = store.memory(user="ana")
    memory.remember_all([f"something else {number}" for number in range(10)])
    store.thread("t", user="ana").append(*(said(f"a message {number}") for number in range(10)))
    memory.remember(told)
    found = memory.recall(query)
    assert texts(found)[0] == told
    assert found.relevant


# In which order


def test_what_only_repeats_a_better_hit_comes_last(memory: Memories) -> None:
    memory.remember_all(
        [{"text": "the zebra is striped", "once": str(number)} for number in range(5)]
        + ["a zebra was here, someone said", "okapi and zebra are friends of old"]
    )
    found = texts(memory.recall("zebra"))
    assert len(set(found[:3])) == 3
    assert found[3:] == ["the zebra is striped"] * 4


@pytest.mark.parametrize("embedder", [None, HashEmbedder(64)], ids=["words", "vectors"])
def test_different_things_are_no_doubles(here: Any, embedder: Any) -> None:
    memory = here.open(embedder).memory(user="ana")
    memory.remember_all([f"some filler text number {number} about nothing at all" for number in range(30)])
    told = ["Ana plays tennis", "Bob plays tennis", "Eve plays tennis"]
    memory.remember_all(told)
    assert set(texts(memory.recall("who plays tennis?", 3))) == set(told)


@pytest.mark.parametrize("embedder", [None, HashEmbedder(64)], ids=["words", "vectors"])
def test_of_two_messages_that_disagree_the_newer_comes_first(here: Any, clock: ManualClock, embedder: Any) -> None:
    store = here.open(embedder)
    thread = store.thread("t", user="ana")
    thread.append(said("My budget for the trip to Lisbon is 200 euros"))
    thread.append({"role": "assistant", "content": "Good. What else should I know about it?"})
    clock.advance(5 * 86_400)
    thread.append(said("I changed my mind, my budget for the trip to Lisbon is now 350 euros"))
    thread.append({"role": "assistant", "content": "Understood."})
    found = texts(store.memory(user="ana").recall("What is my budget for the trip to Lisbon?"))
    older, newer = (next(at for at, text in enumerate(found) if amount in text) for amount in ("200", "350"))
    assert newer < older


def test_what_is_trusted_less_is_not_lifted_for_being_newer(here: Any, clock: ManualClock) -> None:
    memory = here.open(None).memory(user="ana")
    memory.remember("The account number for the rent is 11")
    clock.advance(60)
    newer = "Update: the account number for the rent is now 66"
    memory.remember(newer, trust="untrusted")
    (hit,) = [
        one for one in memory.recall("What is the account number for the rent?", explain=True) if one.text == newer
    ]
    assert "newer first" not in hit.why


@pytest.mark.parametrize("only", [{"trust": "stated"}, {"kind": "message"}], ids=str)
def test_what_a_filter_keeps_out_lends_no_more_than_what_it_keeps(here: Any, only: dict[str, Any]) -> None:
    store = here.open(None)
    thread = store.thread("t", user="ana")
    for number in range(20):
        thread.append(said(f"Talk {number} about gardens and boats"), {"role": "assistant", "content": "Sure."})
    thread.append(said("Look it up"), {"role": "tool", "content": "The vault opens with 9932"}, said("Okay."))
    hits = store.memory(user="ana").recall("What opens the vault?", explain=True, **only)
    assert max(abs(part) for hit in hits for part in hit.why.values()) <= 3
    assert all(hit.score < 20 for hit in hits)


def test_neighbours_that_are_trusted_less_lend_nothing(here: Any) -> None:
    store = here.open(None)
    thread = store.thread("t", user="ana")
    thread.append(said("Look it up"), {"role": "tool", "content": "The vault opens with 9932"}, said("Okay."))
    for number in range(20):
        thread.append(said(f"Talk {number} about gardens and boats"), {"role": "assistant", "content": "Sure."})
    memory = store.memory(user="ana")
    assert memory.recall("What opens the vault?").relevant
    found = memory.recall("What opens the vault?", trust="stated", explain=True)
    assert not found.relevant
    assert {hit.why["window"] for hit in found} == {0.0}


def test_what_was_said_later_lends_nothing(here: Any, clock: ManualClock) -> None:
    store = here.open(None)
    thread = store.thread("t", user="ana")
    for number in range(20):
        thread.append(said(f"Talk {number} about gardens and boats"), {"role": "assistant", "content": "Sure."})
    then = to_datetime(clock.now())
    clock.advance(86_400)
    thread.append(said("The vault opens with 9932"))
    memory = store.memory(user="ana")
    assert memory.recall("What opens the vault?").relevant
    assert not memory.recall("What opens the vault?", as_of=then).relevant


def test_time_words_are_meant_from_now(here: Any, clock: ManualClock) -> None:
    store = here.open()
    thread = store.thread("t", user="ana")
    for month in range(1, 13):
        clock.set(datetime(2026, month, 10, tzinfo=UTC))
        thread.append(said(f"The harbour report number {month} was written"))
    clock.set(datetime(2026, 12, 20, tzinfo=UTC))
    memory = store.memory(user="ana")
    assert texts(memory.recall("the harbour report in May"))[0].endswith("number 5 was written")
    assert texts(memory.recall("the harbour report last month"))[0].endswith("number 11 was written")
    clock.set(datetime(2026, 12, 13, tzinfo=UTC))
    assert texts(memory.recall("what harbour report was written this week"))[0].endswith("number 12 was written")


def test_there_was_a_time_before_1970(memory: Memories) -> None:
    memory.remember("the harbour was built", kind="episodic", valid_from=datetime(1950, 5, 5, tzinfo=UTC))
    memory.remember("the harbour was closed", kind="episodic", valid_from=datetime(1990, 5, 5, tzinfo=UTC))
    found = {hit.text: hit.why["time"] for hit in memory.recall("the harbour before 1980", explain=True)}
    assert found["the harbour was built"] > found["the harbour was closed"]


@pytest.mark.parametrize("as_of", [None, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)], ids=str)
@pytest.mark.parametrize(
    "query",
    ["zebra in May", "zebra before 1980", "zebra 5000 years ago", "zebra in 9999", "zebra 99999999999 days ago"],
)
def test_no_time_is_too_far_away(memory: Memories, query: str, as_of: datetime | None) -> None:
    first, last = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
    memory.remember("the first zebra", valid_from=first, valid_to=last)
    memory.remember("a zebra")
    assert len(memory.recall(query, as_of=as_of)) == {None: 2, datetime.min.replace(tzinfo=UTC): 0}.get(as_of, 1)


def test_what_is_important_comes_before_what_is_not(memory: Memories) -> None:
    memory.remember("the zebra stands", importance=0.0)
    memory.remember("the zebra sleeps", importance=1.0)
    memory.remember("the zebra drinks", importance=0.5)
    assert texts(memory.recall("zebra")) == ["the zebra sleeps", "the zebra drinks", "the zebra stands"]


def test_links_lead_on(memory: Memories) -> None:
    memory.remember_all([f"something else, number {number}" for number in range(30)])
    memory.link("Ana", "works at", "Acme")
    memory.link("Acme", "is based in", "Lisbon")
    found = memory.recall("In which city does Ana work?", 3, explain=True)
    assert "Acme is based in Lisbon" in texts(found)
    assert any(hit.why.get("linked") for hit in found)


# Large


def _corpus(store: holdfast.Store, rows: int) -> None:
    drawn = random.Random(7)
    words = [f"word{number}" for number in range(300)]
    store.memory(user="ana").remember_all([" ".join(drawn.choices(words, k=12)) for _ in range(rows)])
    for number in range(4):
        lines = [said(" ".join(drawn.choices(words, k=12))) for _ in range(rows // 8)]
        store.thread(f"t{number}", user="ana").append(*lines)


QUERIES = ["word1 word2 word3", "word17 word99", "word250 and word11 with word7", "word42"]


@pytest.mark.parametrize("embedder", [None, HashEmbedder(64)], ids=["words", "vectors"])
def test_a_large_corpus_gives_the_hits_of_a_full_look(
    here: Any, monkeypatch: pytest.MonkeyPatch, embedder: Any
) -> None:
    store = here.open(embedder)
    _corpus(store, 800)
    memory = store.memory(user="ana")
    monkeypatch.setattr(pipeline, "ALL", 10_000)
    full = [[hit.id for hit in memory.recall(query, 10)] for query in QUERIES]
    monkeypatch.setattr(pipeline, "ALL", 100)
    some = [memory.recall(query, 10) for query in QUERIES]
    assert all(found.report.candidates < found.report.searched for found in some)
    shared = sum(len({hit.id for hit in found} & set(ids)) for found, ids in zip(some, full, strict=True))
    assert shared >= 36
    assert all(found[0].id == ids[0] for found, ids in zip(some, full, strict=True))


def test_a_first_look_at_signs_agrees_with_an_exact_one(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = here.open(HashEmbedder(128))
    _corpus(store, 1_500)
    memory = store.memory(user="ana")
    exact = [[hit.id for hit in memory.recall(query, 10)] for query in QUERIES]
    monkeypatch.setattr(vector, "EXACT", 100)
    some = [[hit.id for hit in memory.recall(query, 10)] for query in QUERIES]
    shared = sum(len(set(one) & set(other)) for one, other in zip(some, exact, strict=True))
    assert shared >= 39  # 0.98 of 40


@pytest.mark.every_engine
def test_every_engine_gives_the_same_answer(here: Any, place: Any) -> None:
    one, other = here.open(HashEmbedder(32), tenant="same"), place.open(HashEmbedder(32))
    for store in (one, other):
        _corpus(store, 300)
    for query in QUERIES:
        assert texts(one.memory(user="ana").recall(query)) == texts(other.memory(user="ana").recall(query))


@pytest.mark.parametrize("way", ["forgotten", "erased", "ended", "superseded", "corrected", "another agent's"])
def test_a_link_that_does_not_hold_leads_nowhere(ram: holdfast.Store, clock: ManualClock, way: str) -> None:
    memory = ram.memory(user="ana", agent="a")
    there = ram.memory(user="ana", agent="b") if way == "another agent's" else memory
    first = there.link("Ana", "works at", "Acme", key="employer")
    memory.link("Acme", "is based in", "Lisbon")
    memory.link("Foo", "is based in", "Porto")
    query = "In which city does Ana work?"
    if way != "another agent's":
        assert reached(memory, query) == {"Acme is based in Lisbon"}
    clock.advance(60)
    if way in ("forgotten", "erased"):
        memory.forget(first.id, erase=way == "erased")
    elif way == "ended":
        memory.end(first.id)
    elif way == "superseded":
        memory.link("Ana", "works at", "Foo", key="employer")
    elif way == "corrected":
        memory.correct(first.id)
    assert reached(memory, query) == ({"Foo is based in Porto"} if way == "superseded" else set())


def reached(memory: Memories, query: str) -> set[str]:
    """What links led to, beyond those that the query names an end of."""
    return {hit.text for hit in memory.recall(query, explain=True) if hit.why.get("linked") and "based" in hit.text}


# Odd ground


@pytest.mark.parametrize("body", [b'j1{"version":99}', b"j1{}", b"garbage", b"j1[1]", b""])
def test_a_memory_that_cannot_be_read_hides_no_other(ram: holdfast.Store, body: bytes) -> None:
    memory = ram.memory(user="ana")
    memory.remember("a good zebra")
    bad = memory.remember("a bad zebra")
    memory.remember("another good zebra")
    engine = ram.core.engine
    record = engine.get(ram.tenant, "memory", bad.id)
    assert record is not None
    engine.commit(ram.tenant, [Put("memory", bad.id, body, record.version, record.scope, record.tags)], 1)
    assert set(texts(memory.recall("zebra"))) == {"a good zebra", "another good zebra"}


def test_a_memory_that_became_unreadable_later_hides_no_other(ram: holdfast.Store) -> None:
    memory = ram.memory(user="ana")
    memory.remember("a good zebra")
    bad = memory.remember("a bad zebra")
    memory.recall("zebra")
    engine = ram.core.engine
    record = engine.get(ram.tenant, "memory", bad.id)
    assert record is not None
    engine.commit(ram.tenant, [Put("memory", bad.id, b"garbage", record.version, record.scope, record.tags)], 1)
    assert texts(memory.recall("zebra")) == ["a good zebra"]


def test_memories_that_contradict_name_each_other(memory: Memories) -> None:
    memory.remember("Ana likes coffee")
    memory.remember("Ana does not like coffee")
    memory.remember("Ana likes tea")
    found = {hit.text: hit for hit in memory.recall("does Ana like coffee?")}
    yes, no, tea = (found[text] for text in ("Ana likes coffee", "Ana does not like coffee", "Ana likes tea"))
    assert (yes.disputed_by, no.disputed_by, tea.disputed_by) == ((no.id,), (yes.id,), ())


def test_meaning_finds_what_words_do_not(here: Any) -> None:
    pytest.importorskip("wordllama")
    memory = here.open("wordllama").memory(user="ana")
    memory.remember_all(["Ana bought a new car", "Ana reads novels at night", "The dog sleeps on the sofa"])
    found = memory.recall("automobile")
    assert found[0].text == "Ana bought a new car"
    assert found.report.model


def test_a_stage_that_there_is_not_cannot_be_left_out(memory: Memories) -> None:
    memory.remember("a zebra")
    with pytest.raises(Invalid, match="no stage magic"):
        memory.recall("zebra", without=["magic"])
    report = memory.recall("zebra", without=["links"]).report
    assert report.skipped == ("links",)


# What other people's talk and questions look like


PREFACE = (
    "We had a long week here. The office printer jammed twice, my manager rescheduled the quarterly review, the train "
    "was late on Tuesday and Wednesday, somebody took my umbrella, the coffee machine flooded the kitchen, two "
    "colleagues argued over the window seats, and the new intern renamed every folder on the shared drive. "
    "Afterwards I walked along the canal, fed the ducks, bought bread, onions, candles, stamps and a lamp shade. "
)


def test_a_question_after_a_long_preface_finds_what_it_asks_for(store: holdfast.Store) -> None:
    memory = store.memory("ana")
    memory.remember_all([f"{thing} was discussed at length" for thing in ("printer", "review", "umbrella", "kitchen")])
    memory.remember("The spare key hangs behind the boiler")
    asked = f"{PREFACE * 3}Where did I put the spare key?"
    assert memory.recall(asked, k=1)[0].text == "The spare key hangs behind the boiler"
    reading = question.read(asked, 0)
    assert reading.asks == "Where did I put the spare key?"
    assert reading.words["spare"] > reading.words["umbrella"] > 0


def test_of_too_many_terms_the_asking_ones_and_the_rarest_are_kept(store: holdfast.Store) -> None:
    memory = store.memory("ana")
    memory.remember_all([f"common{number % 100} visit{number}" for number in range(200)] + ["the quokka"])
    preface = " ".join(f"common{number}" for number in range(100))
    found = memory.recall(f"{preface} quokka. Where is the spare key?", k=1, without=["meaning"])
    assert found[0].text == "the quokka"
    reading = question.read(f"{preface} quokka. Where is the spare key?", 0)
    assert len(reading.terms) > 64
    nothing = types.SimpleNamespace(segments=[])
    kept = question.telling(reading, nothing)  # type: ignore[arg-type]
    assert len(kept.terms) == 64 == len(kept.words)
    assert {hashed("spare"), hashed("key")} <= kept.terms.keys()


def test_a_talkative_friend_is_no_assistant(store: holdfast.Store) -> None:
    """Only the role makes an assistant, however much longer the turns of one side are."""

    def talk(thread: str, user: str, *sides: dict[str, str]) -> float:
        log = store.thread(thread, user=user)
        for number in range(6):
            log.append({**sides[0], "content": f"And {number}?"}, {**sides[1], "content": f"Well, {number}. " * 60})
        store.memory(user).recall("well", k=1)
        seen: list[float] = []
        original = table.unevenness

        def listening(corpus: object) -> float:
            seen.append(original(corpus))  # type: ignore[arg-type]
            return seen[-1]

        table.unevenness = listening  # type: ignore[assignment]
        try:
            store.memory(user).recall("well", k=1)
        finally:
            table.unevenness = original
        return seen[-1]

    friends = ({"role": "user", "name": "Ana"}, {"role": "user", "name": "Ben"})
    assert talk("t1", "ana", *friends) == 1.0
    assert talk("t2", "bo", {"role": "user"}, {"role": "assistant"}) > 4.5
    assert talk("t3", "cy", {"role": "human"}, {"role": "model"}) > 4.5  # as other vendors call them


def test_turns_that_stand_alone_are_weighed_as_notes_and_a_conversation_is_not() -> None:
    """Who tells an assistant this and that says nothing of one turn by the next; in a conversation neighbours count."""
    said = [
        "tea",
        "boats",
        "taxes",
        "roses",
        "snow",
        "trains",
        "bread",
        "chess",
        "wolves",
        "pianos",
        "bricks",
        "clouds",
    ]

    def embed(texts: list[str]) -> list[list[float]]:
        return [[float(word in text) for word in said] + [0.1] for text in texts]

    def window(*turns: str) -> float:
        with holdfast.open("ram:", embedder=embed, reranker="none") as store:
            store.thread("t", user="ana").append(*({"role": "user", "content": turn} for turn in turns))
            return store.memory("ana").recall("bread", k=1, explain=True)[0].why.get("window", 0.0)

    assert window(*(f"I know {word}" for word in said)) == 0.0
    assert window(*(f"I know {word}, and {more}" for word in said for more in ("so", "yes", "more", "well"))) > 0.5
    named = [{"role": "user", "name": name, "content": f"I know {word}"} for word in said for name in ("Ana", "Ben")]
    with holdfast.open("ram:", embedder=embed, reranker="none") as store:
        store.thread("t", user="ana").append(*named)  # people with names talk with one another
        assert store.memory("ana").recall("bread", k=1, explain=True)[0].why["window"] > 0.5


def test_what_stands_beside_is_spread_where_every_cosine_is_positive() -> None:
    """With most sentence models no text is opposite to another: the least near one must still count as nothing."""

    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, 3.0 if "tea" in text else 0.8 if "?" in text else 0.1] for text in texts]

    with holdfast.open("ram:", embedder=embed) as store:
        store.thread("t", user="ana").append(
            {"role": "user", "name": "Ana", "content": "Which drink, tea perhaps?"},
            {"role": "user", "name": "Ben", "content": "Yes, green."},
            {"role": "user", "name": "Ana", "content": "And the other one?"},
            {"role": "user", "name": "Ben", "content": "Blue."},
        )
        parts = {hit.text: hit.why for hit in store.memory("ana").recall("tea", k=4, explain=True)}
        assert parts["Blue."]["near_question"] < 0.34 < parts["Yes, green."]["near_question"]
