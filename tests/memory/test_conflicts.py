"""What contradicts is told, by a named rule; what only looks like it is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

import pytest

from holdfast.memory import conflicts
from holdfast.memory.conflicts import contradictions
from holdfast.memory.names import memory_id
from holdfast.records import Memory

START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def said(number: int, text: str, **more: Any) -> Memory:
    given = {"kind": "semantic", "subject": "ana", "recorded_at": day(number), "valid_from": day(number), **more}
    return Memory(memory_id(number), text, **given)


def rules(first: str, second: str, **more: Any) -> list[str]:
    return [pair.rule for pair in contradictions([said(1, first), said(2, second, **more)])]


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        ("home", "Ana lives in Bern", "Ana now lives in Basel"),
        ("home", "I live in New York with my cat", "I'm living in San Francisco"),
        ("workplace", "She works at Acme", "works for Bolt Industries since May"),
        ("age", "Ana is 34 years old", "I am 35"),
        ("name", "My name is Ana", "my name is Hannah."),
        ("birthday", "Her birthday is May 3", "she was born on 4 May 1990"),
        ("email", "Ana's email is ana@example.org", "email: ana@example.com"),
        ("phone", "Her phone number is +41 31 555 10 20", "phone: 031 555 99 99"),
        ("favourite", "My favourite colour is green", "her favourite colour is dark blue"),
        ("opposite", "Ana likes spicy food", "She dislikes spicy food"),
        ("opposite", "loves hiking in the mountains", "Ana hates hiking"),
        ("opposite", "Ana is married", "Ana is single"),
        ("opposite", "prefers morning flights", "Ana prefers evening flights"),
        ("opposite", "The library is open on Sunday", "The library is closed on Sunday"),
        ("negation", "Ana eats meat", "Ana does not eat meat"),
        ("negation", "Ana likes very spicy food", "Ana doesn't like spicy food"),
        ("negation", "She drinks coffee", "she never drinks coffee"),
        ("negation", "Ana smokes", "Ana no longer smokes"),
        ("negation", "Ana has siblings", "Ana has no siblings"),
        ("weekday", "The meeting is on Monday", "the meeting is on Tuesday"),
        ("time", "The train leaves at 3 pm", "The train leaves at 15:30"),
        ("date", "The deadline is May 3", "the deadline is 10 May"),
        ("date", "the contract ends on 2026-05-03", "The contract ends on May 3, 2027"),
        ("number", "Ana has two cats", "Ana has 3 cats"),
        ("number", "The budget is 8,000 euros", "the budget is 9000 euros"),
        ("number", "The rent of flat 3 is 900", "the rent of flat 3 is 950"),
        ("number", "Ana pays 900 for the flat", "Ana pays 950 for the flat"),
        ("number", "Take 2 pills every evening", "take 3 pills every evening"),
        ("number", "Her train leaves from platform 3", "her train leaves from platform 5"),
        ("number", "Ana takes the bus 5 to work", "Ana takes the bus 7 to work"),
        ("number", "The lease runs for the next 2 summers", "the lease runs for the next 3 summers"),
        ("number", "the rent 900 euros is due", "the rent 950 euros is due"),
        ("date", "The party on May 3 is in the garden", "the party on May 5 is in the garden"),
        ("number", "The meeting is at 9 in the hall", "the meeting is at 10 in the hall"),
        ("home", "Ana lives in house 5 in Bern", "Ana lives in house 7 in Basel"),
    ],
)
def test_what_contradicts(rule: str, first: str, second: str) -> None:
    assert rules(first, second) == [rule]
    assert rules(second, first) == [rule]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ana lives in Bern", "Ana lives in Bern, Switzerland"),
        ("Ana lives in Bern", "Ana's sister lives in Basel"),
        ("Ana lives in Bern", "Ana does not live in Basel"),
        ("Her work email is a@example.org", "Her private email is b@example.org"),
        ("My favourite colour is green", "My favourite food is pasta"),
        ("Ana works at Acme", "Ana works at night"),
        ("Ana likes tea", "Ana dislikes coffee"),
        ("Ana likes tea", "Ben dislikes tea"),
        ("Ana likes tea", "Ana likes tea, but not coffee"),
        ("Ana likes tea", "Ana likes tea rather than coffee"),
        ("Ana dislikes tea", "Ana does not like tea"),
        ("Ana eats meat", "Ben does not eat meat"),
        ("Ana likes tea", "Ana not only likes tea but coffee too"),
        ("The meeting is on Monday", "The meeting is not on Tuesday"),
        ("Ana works on Monday", "Ana works on Monday and Tuesday"),
        ("goes to the gym on Mondays", "goes to the gym on Fridays"),
        ("gym on Monday", "gym on Thursday"),
        ("Note 12: buy milk", "Note 13: buy milk"),
        ("Table 4 seats 6 people", "Table 5 seats 8 people"),
        ("The locker 12 has the code 4711", "The locker 13 has the code 8822"),
        ("Bus 4 leaves at 9:10", "Bus 7 leaves at 9:40"),
        ("note #12 is about soup", "note #13 is not about soup"),
        ("Item 3 of the list: batteries", "Item 4 of the list: batteries"),
        ("1. milk", "2. milk"),
        ("Filler 1", "Filler 2"),
        ("the key of flat 3 hangs on its hook", "the key of flat 5 hangs on its hook"),
        ("flat 3's key hangs on its hook", "flat 5's key hangs on its hook"),
        ("House 12 has a red door", "House 14 has a red door"),
        ("Table 4 is reserved for Ben", "Table 6 is reserved for Ben"),
        ("Bus 5 stops at the school", "Bus 7 stops at the school"),
        ("The heating in plot 3 is broken", "The heating in plot 5 works; plot 5 is not broken"),
        ("Our locker 9 is open", "Our locker 8 is closed"),
        ("The flight to Rome leaves at 7:15", "The flight from Rome leaves at 18:40"),
        ("The train leaves at 3 pm", "The train leaves at 15:00"),
        ("The deadline is May 3", "The deadline is 3 May 2026"),
        ("Ana has two cats", "Ana has 3 dogs"),
        ("Ana has two cats", "Ana has 2 cats"),
        ("Ana likes tea", "Ana likes tea"),
        ("日本語を話す", "日本語を話す人"),
        ("🙂", "🙁"),
    ],
)
def test_what_only_looks_like_it(first: str, second: str) -> None:
    assert rules(first, second) == []
    assert rules(second, first) == []


def test_another_subject_or_another_time_is_no_contradiction() -> None:
    assert rules("lives in Bern", "lives in Basel") == ["home"]
    assert rules("lives in Bern", "lives in Basel", subject="ben") == []
    assert rules("lives in Bern", "lives in Basel", subject=" ANA") == ["home"]
    assert rules("lives in Bern", "lives in Basel", valid_from=day(-9), valid_to=day(1)) == []
    assert rules("lives in Bern", "lives in Basel", valid_from=day(-9), valid_to=day(2)) == ["home"]


def test_episodes_may_both_have_happened() -> None:
    assert rules("had 2 beers", "had 3 beers", kind="episodic") == []


def test_what_is_settled_is_not_told_again() -> None:
    first, second = said(1, "lives in Bern"), said(2, "lives in Basel")
    settled: list[list[Memory]] = [
        [said(1, "lives in Bern", key="home"), said(2, "lives in Basel", key="home")],
        [said(1, "lives in Bern", key="home"), second, said(3, "in Basel since 2020", key="home")],
        [first, said(2, "lives in Basel", forgotten_at=day(3))],
        [first, said(2, "lives in Basel", corrects=first.id)],
        [first, second, said(3, "was never true", corrects=second.id)],
        [first, second, said(3, "no longer", corrects=first.id, ended=True)],
    ]
    for memories in settled:
        assert contradictions(memories) == []
        assert contradictions(memories[::-1]) == []


def test_a_contradiction_names_both_in_order_and_says_why() -> None:
    first, second = said(1, "Ana lives in Bern"), said(2, "Ana lives in Basel")
    (found,) = contradictions([second, first])
    assert (found.first, found.second) == (first, second)
    assert found.why == "two values of home: bern and basel"


def told(memories: list[Memory], limit: int | None = 100) -> list[tuple[str, str]]:
    return [(pair.first.text, pair.second.text) for pair in contradictions(memories, limit)]


def test_each_is_told_with_the_latest_before_it_the_newest_first() -> None:
    places = ("Bern", "Basel", "Basel", "Chur", "Bern")
    many = [said(number, f"lives in {place}") for number, place in enumerate(places)]
    assert told(many) == told(many[::-1]) == [
        ("lives in Chur", "lives in Bern"), ("lives in Basel", "lives in Chur"), ("lives in Bern", "lives in Basel"),
        ("lives in Bern", "lives in Basel"),
    ]  # fmt: skip
    assert told(many, 1) == [("lives in Chur", "lives in Bern")]
    assert told(many, 0) == []


def test_what_lies_between_hides_no_contradiction() -> None:
    between = [said(number, "The meeting is not on Tuesday") for number in range(2, 9)]
    found = told([said(1, "The meeting is on Monday"), *between, said(9, "The meeting is on Friday")])
    assert found == [("The meeting is on Monday", "The meeting is on Friday")]
    again = [said(number, "Ana likes very spicy food") for number in range(2, 90)]
    assert ("Ana doesn't like spicy food", "Ana likes very spicy food") in told(
        [said(1, "Ana doesn't like spicy food"), *again]
    )


def test_one_subject_alone() -> None:
    both = [
        said(number, f"lives in {place}", subject=subject)
        for number, (subject, place) in enumerate([("ana", "Bern"), ("ben", "Bern"), ("ana", "Rom"), ("ben", "Rom")])
    ]
    assert len(contradictions(both)) == 2
    assert [pair.first.subject for pair in contradictions(both, subject="BEN")] == ["ben"]


def test_a_long_text_is_not_compared() -> None:
    assert rules("lives in Bern", f"lives in Basel. {'x' * 1_980}") == ["home"]
    assert rules("lives in Bern", f"lives in Basel. {'x' * 1_990}") == []


def test_what_all_contradicts_gives_as_many_as_there_are_and_no_more() -> None:
    """In pairs these would be millions."""
    many = [said(number, f"ana has {number} cakes") for number in range(3_000)]
    assert len(contradictions(many)) == 100
    assert [(pair.first, pair.second) for pair in contradictions(many, None)] == [
        (many[number - 1], many[number]) for number in range(2_999, 0, -1)
    ]


def test_many_memories_of_one_subject_are_compared_quickly_enough_to_be_asked() -> None:
    many = [
        said(number, f"Ana met person{number} in town{number % 97} about topic{number % 89}") for number in range(3000)
    ]
    assert contradictions([*many, said(3001, "likes tea"), said(3002, "hates tea")])[0].rule == "opposite"


@pytest.mark.parametrize("piece", ["; ", ". ", ";\n", " ;", "1 ", "of a 1 ", "note 1 ", ", not ", "lives in "])
def test_reading_a_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        times = []
        for attempt in range(5):
            began = perf_counter()
            conflicts.another_number((piece * length)[: length - 1] + str(attempt), "")  # no text is read twice
            times.append(perf_counter() - began)
        return min(times)

    assert seconds(8_000) < 10 * seconds(2_000) + 0.005  # sixteen times, were each mark to read all that follows


def test_what_is_numbered_after_marks_is_a_sibling_too() -> None:
    assert rules("Fine. (Flat 3 has a blue key)", "Fine. (Flat 5 has a red key)") == []
    assert rules("Tea; \u2026 the flat 3 has a blue key", "Tea; \u2026 the flat 5 has a blue key") == []
