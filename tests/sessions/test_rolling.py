"""Rolling summaries: each covers what none covered before, and what left the window is covered, whoever rolls."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

import holdfast
from holdfast.errors import ModelFailed
from holdfast.providers.models.model import Reply
from holdfast.records import Draft, observation, tool_call
from holdfast.sessions.log_events import Summary, summary_of
from holdfast.sessions.session import Session
from holdfast.testing import ManualClock
from holdfast.testing.models import Scripted

TOLD = (
    "flight hotel train museum lisbon porto budget ticket seat window aisle dinner meeting plan week price euro "
    "booking station river walk coffee street market morning evening tram castle beach weather luggage passport"
)


@pytest.fixture
def store(place: Any) -> holdfast.Store:
    found: holdfast.Store = place.open()
    return found


class Speaker:
    """A model that speaks at length, and records what it is asked."""

    name = "speaker"

    def __init__(self, seed: int = 7) -> None:
        self._random, self._words = random.Random(seed), TOLD.split()
        self.asked: list[list[dict[str, Any]]] = []
        self.summarised: list[str] = []

    def sentences(self, least: int, most: int) -> str:
        sizes = [self._random.randint(6, 14) for _ in range(self._random.randint(least, most))]
        return " ".join(" ".join(self._random.choices(self._words, k=size)).capitalize() + "." for size in sizes)

    def stream(self, messages: list[dict[str, Any]], **_: Any) -> Any:
        self.asked.append(json.loads(json.dumps(messages)))
        yield Reply(self.sentences(2, 6))

    def reply(self, messages: list[dict[str, Any]], **_: Any) -> Reply:
        self.summarised.append(messages[-1]["content"])
        return Reply(f"- summary {len(self.summarised)}")

    def extract(self, messages: Any, shape: Any, **_: Any) -> Any:
        raise ModelFailed("I do not extract", model=self.name, reason="refused")


def talk(session: Session, turns: int, clock: ManualClock, speaker: Speaker) -> None:
    for _ in range(turns):
        session.turn(speaker.sentences(1, 3))
        clock.advance(90)


def summaries(thread: holdfast.Thread) -> list[tuple[int, Summary]]:
    found = [(entry.number, summary_of(entry)) for entry in thread.log()]
    return [(number, summary) for number, summary in found if summary is not None]


def assert_chained(thread: holdfast.Thread) -> None:
    """Ranges follow each other without a gap or an overlap, each naming the one before."""
    found = summaries(thread)
    assert found[0][1].first == 1
    assert found[0][1].previous == 0
    for (number, before), (_, after) in pairwise(found):
        assert after.first == before.last + 1
        assert after.previous == number
    for number, summary in found:
        assert summary.first <= summary.last < number


def shown(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(str(message.get("content")) for message in messages)


def assert_covered(session: Session, thread: holdfast.Thread) -> None:
    """What was said is in the window or before the end of the newest summary."""
    covered = summaries(thread)[-1][1].last if summaries(thread) else 0
    text = shown(session.context("and now?").messages("openai"))
    said = [entry for entry in thread.log() if entry.kind == "message" and entry.number > covered]
    assert [entry.number for entry in said if entry.content["content"] not in text] == []


# Ranges


@pytest.mark.parametrize("budget", [1_500, 3_000])
def test_ranges_follow_each_other_and_nothing_is_summarised_twice(
    store: holdfast.Store, clock: ManualClock, budget: int
) -> None:
    speaker, thread = Speaker(), store.thread("t", user="ana")
    session = store.session(thread, model=speaker, learn="off", budget=budget)
    talk(session, 40, clock, speaker)
    assert len(summaries(thread)) >= 2
    assert_chained(thread)
    assert_covered(session, thread)
    given = [line.split()[0] for text in speaker.summarised for line in text.splitlines() if line.startswith("#")]
    assert len(given) == len(set(given))
    assert len(speaker.summarised) == len(summaries(thread))
    assert {summary.by for _, summary in summaries(thread)} == {"model:speaker"}


@pytest.mark.parametrize("said", ["ok", "a few more words than that"])
def test_short_turns_that_leave_the_window_are_covered_too(ram: holdfast.Store, said: str) -> None:
    thread = ram.thread("t", user="ana")
    session = ram.session(thread, learn="off", budget=2_000)
    for number in range(150):
        session.turn(f"{said} {number}").reply(f"noted {number}")
    assert_chained(thread)
    assert_covered(session, thread)


def test_a_long_thread_of_others_is_covered_from_what_is_read(ram: holdfast.Store) -> None:
    thread = ram.thread("t", user="ana")
    for number in range(0, 1_500, 100):
        thread.append(*[_said(one) for one in range(number, number + 100)])
    session = ram.session(thread, learn="off", budget=2_000)
    assert session.roll() is not None
    session.turn("hello").reply("hello")
    assert_covered(session, thread)


def _said(number: int) -> dict[str, Any]:
    return {"role": "user" if number % 2 == 0 else "assistant", "content": f"remark {number} about the trip"}


def test_no_summary_before_there_is_need_and_none_where_it_is_off(store: holdfast.Store, clock: ManualClock) -> None:
    speaker = Speaker()
    short = store.session("a", model=speaker, learn="off", budget=8_000)
    talk(short, 3, clock, speaker)
    off = store.session("b", model=speaker, learn="off", budget=1_500, summarise=False)
    talk(off, 20, clock, speaker)
    assert (summaries(store.thread("a")), summaries(store.thread("b"))) == ([], [])
    assert short.roll() is None


def test_calls_and_results_are_on_one_side(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    session = store.session(thread, learn="off", budget=1_500)
    for number in range(25):
        with session.turn(f"look at {number} " + "um " * 20) as turn:
            turn.step("look", lambda number: f"seen {number} " + "ah " * 20, number, effect="pure")
            turn.reply(f"done {number}")
    assert_chained(thread)
    calls = {entry.content["id"]: entry.number for entry in thread.log() if entry.kind == "tool_call"}
    for entry in thread.log():
        if entry.kind == "observation":
            ends = [summary.last for _, summary in summaries(thread)]
            assert all((calls[entry.content["of"]] <= end) == (entry.number <= end) for end in ends)


def test_a_call_whose_result_comes_late_is_not_parted_from_it(store: holdfast.Store) -> None:
    """Others write into the log as well: a user speaks between a call and its result, wherever one would cut."""
    thread = store.thread("t", user="ana")
    for number in range(24):
        thread.append(
            tool_call("look", {"at": number}, id=f"call-{number}"),
            {"role": "user", "content": f"hurry {number} " + "um " * 20},
            observation(f"seen {number} " + "ah " * 20, of=f"call-{number}"),
            {"role": "user", "content": f"and then? {number} " + "um " * 20},
            {"role": "assistant", "content": f"done {number}"},
        )
        store.session(thread, learn="off", budget=1_000).roll()
    assert_chained(thread)
    calls = {entry.content["id"]: entry.number for entry in thread.log() if entry.kind == "tool_call"}
    ends = [summary.last for _, summary in summaries(thread)]
    parted = [
        (entry.number, end)
        for entry in thread.log()
        for end in ends
        if entry.kind == "observation" and calls[entry.content["of"]] <= end < entry.number
    ]
    assert parted == []


# Who writes them


def test_without_a_model_they_are_extractive(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    session = store.session(thread, learn="off", budget=1_000)
    for number in range(20):
        session.turn(f"Question {number}: the price of ticket {number} is {number * 7} euro." + " um" * 30).reply(
            "Noted."
        )
    assert {summary.by for _, summary in summaries(thread)} == {"extractive"}
    assert "euro" in summaries(thread)[0][1].text
    assert_chained(thread)


@pytest.mark.parametrize("broken", [RuntimeError("broke"), ModelFailed("late", model="m", reason="timeout"), "", "   "])
def test_a_model_that_fails_to_summarise_harms_nothing(ram: holdfast.Store, broken: Any) -> None:
    thread = ram.thread("t", user="ana")
    for number in range(20):
        thread.append({"role": "user", "content": f"q {number} " + "word " * 50}, {"role": "assistant", "content": "a"})
    answer = ram.session(thread, model=Scripted("the answer", broken), learn="off", budget=1_500).turn("q")
    assert answer.text == "the answer"
    ((_, summary),) = summaries(thread)
    assert summary.by == "extractive"


@pytest.mark.every_engine
def test_a_summary_is_shown_instead_of_what_it_covers(store: holdfast.Store, clock: ManualClock) -> None:
    speaker, thread = Speaker(), store.thread("t", user="ana")
    session = store.session(thread, model=speaker, learn="off", budget=1_500, recall=False)
    talk(session, 15, clock, speaker)
    text = shown(session.context("and now?").messages("openai"))
    _, summary = summaries(thread)[-1]
    assert summary.text in text
    covered = [entry for entry in thread.log() if entry.kind == "message" and entry.number <= summary.last]
    assert not [entry.number for entry in covered if entry.content["content"] in text]


# Rewinds, forks and others


def long(store: holdfast.Store, turns: int = 16) -> holdfast.Thread:
    thread = store.thread("t", user="ana")
    for number in range(turns):
        thread.append(
            {"role": "user", "content": f"q {number} " + "word " * 60}, {"role": "assistant", "content": f"a {number}"}
        )
    return thread


def test_after_a_rewind_before_a_summary_it_is_written_anew(store: holdfast.Store) -> None:
    thread = long(store)
    first = store.session(thread, learn="off", budget=1_000).roll()
    assert first is not None
    thread.rewind(first.number - 1)
    again = store.session(thread, model=Scripted("by a model"), learn="off", budget=1_000).roll()
    assert again is not None
    assert again.content["text"] == "by a model"
    assert_chained(thread)


def test_after_a_rewind_into_its_range_a_summary_counts_no_more(store: holdfast.Store) -> None:
    thread = long(store)
    first = store.session(thread, learn="off", budget=1_000).roll()
    assert first is not None
    thread.rewind(6)
    session = store.session(thread, learn="off", budget=1_000, recall=False)
    assert_covered(session, thread)
    assert summaries(thread) == []


def test_forks_before_and_after_a_summary_go_their_own_ways(store: holdfast.Store) -> None:
    thread = long(store)
    summary = store.session(thread, learn="off", budget=1_000).roll()
    assert summary is not None
    before, after = thread.fork("before", at=summary.number - 1), thread.fork("after")
    for fork in (before, after):
        session = store.session(fork, learn="off", budget=1_000)
        for number in range(12):
            session.turn(f"more {number} " + "word " * 60).reply("ok")
        assert_chained(fork)
        assert_covered(session, fork)
    assert summaries(after)[0][0] == summary.number
    assert len(summaries(thread)) == 1


@pytest.mark.every_engine
def test_two_who_roll_at_once_leave_one_summary_of_each_range(place: Any) -> None:
    """The second rolls further while the model of the first is at it, and many entries come after that."""
    first, second = place.open(), place.open(own=True)
    thread = long(first)

    def meanwhile(messages: Any, tools: Any) -> str:
        for _ in range(2):
            long(second, 6)
            second.session("t", learn="off", budget=1_000).roll()
        long(second, 6)
        return "by the slow one"

    first.session(thread, model=Scripted(meanwhile), learn="off", budget=1_000).roll()
    assert_chained(thread)
    assert_covered(first.session(thread, learn="off", budget=4_000), thread)


@pytest.mark.parametrize("previous", [3, 4, 99, -1])
def test_what_only_looks_like_a_summary_harms_nothing(ram: holdfast.Store, previous: int) -> None:
    thread = ram.thread("t", user="ana")
    thread.append({"role": "user", "content": "q"}, {"role": "assistant", "content": "a"})
    thread.append(Draft("summary", {"first": 1, "last": 1, "text": "x", "by": "y", "previous": previous}))
    session = ram.session(thread, learn="off", hand_off=0.9)
    assert session.fullness() < 0.5
    assert session.turn("hi").reply("hello").notes == ()


# What a provider's cache keeps


@pytest.mark.parametrize("learn", ["off", "rules"])
def test_most_of_what_is_sent_was_sent_before(ram: holdfast.Store, clock: ManualClock, learn: str) -> None:
    """Counted here from what the model was sent, and not from what the report says."""
    speaker, thread = Speaker(), ram.thread("t", user="ana")
    for key, value in (("home", "Porto"), ("seat", "aisle"), ("employer", "Acme")):
        ram.memory(user="ana").remember(value, key=key)
    session = ram.session(thread, model=speaker, learn=learn, budget=8_000, instructions="You are a travel agent.")
    talk(session, 50, clock, speaker)
    assert summaries(thread), "so short a session proves nothing"
    pages = ["\n".join(f"{message['role']}: {message['content']}" for message in asked) for asked in speaker.asked]
    same = sum(_common(before, after) for before, after in pairwise(pages))
    sent = sum(len(page) for page in pages[1:])
    assert same / sent >= 0.8


def _common(first: str, second: str) -> int:
    """How many characters at the beginning are the same."""
    differ = (at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    return next(differ, min(len(first), len(second)))
