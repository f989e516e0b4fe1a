"""What is true follows from what was remembered, in whatever order it came in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.memory.facts import corrections, facts, known, outdated, timeline
from holdfast.memory.names import memory_id
from holdfast.records import Memory

START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def a(number: int, recorded: float, since: float | None = None, until: float | None = None, **more: Any) -> Memory:
    """Memory ``number`` of a fact, recorded and valid on these days."""
    given: dict[str, Any] = {"subject": "ana", "key": "home", **more}
    return Memory(
        memory_id(number), f"value {number}", "semantic", recorded_at=day(recorded),
        valid_from=day(recorded if since is None else since), valid_to=None if until is None else day(until), **given,
    )  # fmt: skip


def values(memories: list[Memory], as_of: float, known_at: float | None = None) -> list[str]:
    return [memory.text for memory in facts(memories, day(as_of), None if known_at is None else day(known_at))]


def test_the_newest_valid_value_wins() -> None:
    both = [a(1, 1), a(2, 5)]
    assert [values(both, moment) for moment in (0, 1, 4, 5, 9)] == [
        [],
        ["value 1"],
        ["value 1"],
        ["value 2"],
        ["value 2"],
    ]


def test_what_arrives_late_about_an_earlier_time_does_not_win_today() -> None:
    late = [a(1, 5), a(2, 9, since=2)]
    assert values(late, 10) == ["value 1"]
    assert values(late, 3) == ["value 2"]
    assert values(late, 3, known_at=6) == []


def test_a_value_that_is_over_leaves_nothing_behind() -> None:
    assert values([a(1, 1), a(2, 3, until=5)], 6) == []


def test_subjects_and_keys_are_compared_without_case_and_spaces() -> None:
    assert values([a(1, 1, key="Home  Town"), a(2, 2, key="home town", subject=" ANA ")], 3) == ["value 2"]


def test_other_subjects_and_other_keys_are_other_facts() -> None:
    apart = [a(1, 1), a(2, 2, subject="ben"), a(3, 3, key="work")]
    assert values(apart, 4) == ["value 1", "value 3", "value 2"]


def test_of_two_recorded_together_the_latter_wins() -> None:
    for first in (0, 25, 31, 32 * 31 + 31, 2**40 - 1):  # where the characters of an id run over
        assert values([a(first + 1, 1), a(first, 1)], 2) == [f"value {first + 1}"]


def test_ended_means_no_value_until_there_is_one_again() -> None:
    ended = [a(1, 1), a(2, 3, ended=True), a(3, 7)]
    assert [values(ended, moment) for moment in (2, 4, 8)] == [["value 1"], [], ["value 3"]]


def test_what_was_corrected_was_never_true_but_was_believed() -> None:
    wrong = [a(1, 1), a(2, 5, since=1, corrects=memory_id(1))]
    assert values(wrong, 2) == ["value 2"]
    assert values(wrong, 2, known_at=4) == ["value 1"]
    assert [(one.memory.text, one.corrected_by) for one in timeline(wrong)] == [
        ("value 1", memory_id(2)), ("value 2", None)
    ]  # fmt: skip


def test_a_corrected_version_does_not_cut_the_one_before_it_short() -> None:
    assert values([a(1, 1), a(2, 3), a(3, 5, key=None, corrects=memory_id(2))], 9) == ["value 1"]


def test_a_correction_that_was_wrong_changes_nothing() -> None:
    back = [a(1, 1), a(2, 3, key=None, corrects=memory_id(1)), a(3, 5, key=None, corrects=memory_id(2))]
    assert values(back, 9) == ["value 1"]
    assert values(back, 9, known_at=4) == []


def test_a_single_memory_can_be_no_longer_true() -> None:
    alone = [a(1, 1, key=None), a(2, 4, since=3, key=None, corrects=memory_id(1), ended=True)]
    assert memory_id(1) not in outdated(alone, day(2))
    assert outdated(alone, day(3))[memory_id(1)] == "ended"
    assert memory_id(1) not in outdated(alone, day(3), known_at=day(3.5)), "that was not known yet"


def test_why_something_is_not_true() -> None:
    these = [
        a(1, 1), a(2, 3), a(3, 30), a(4, 1, key=None, until=2), a(5, 1, key=None),
        a(6, 2, key=None, corrects=memory_id(5)), a(7, 2, key="x", forgotten_at=day(3)),
    ]  # fmt: skip
    assert outdated(these, day(10)) == {
        memory_id(1): "superseded", memory_id(3): "later", memory_id(4): "over", memory_id(5): "corrected",
        memory_id(7): "forgotten",
    }  # fmt: skip
    assert outdated([these[5]], day(10)) == {memory_id(5): "corrected"}, "what is corrected need not be given"


def test_history_names_what_cut_a_value_short() -> None:
    first, second, third = timeline([a(1, 1), a(2, 3, until=4), a(3, 6)])
    assert (first.until, first.superseded_by) == (day(3), memory_id(2))
    assert (second.until, second.superseded_by) == (day(4), None)
    assert (third.since, third.until) == (day(6), None)


def test_a_value_that_ends_as_the_next_begins_was_not_cut_short() -> None:
    first, second = timeline([a(1, 1, until=3), a(2, 3)])
    assert (first.until, first.superseded_by) == (second.since, None)
    assert outdated([first.memory, second.memory], day(4)) == {memory_id(1): "over"}


def test_what_begins_together_holds_only_as_the_last_one_recorded() -> None:
    first, second = timeline([a(1, 1, since=0), a(2, 2, since=0)])
    assert first.never
    assert second.holds(day(0))


# Any order of arrival, against a model that looks at every moment by itself

DAYS = st.integers(0, 6)


@st.composite
def stories(draw: st.DrawFn) -> list[Memory]:
    """Some memories about two facts; corrections point at what came before them."""
    made: list[Memory] = []
    for number in range(draw(st.integers(1, 8))):
        since = draw(DAYS)
        until = draw(st.none() | st.integers(since + 1, 8))
        earlier = [memory.id for memory in made]
        made.append(
            a(
                number, draw(DAYS) if not made else max(draw(DAYS), (made[-1].recorded_at - START).days), since, until,
                key=draw(st.sampled_from(["home", "HOME ", "work", None])), ended=draw(st.integers(0, 4)) == 0,
                corrects=draw(st.none() | st.sampled_from(earlier)) if earlier else None,
                forgotten_at=draw(st.sampled_from([None, None, None, day(9)])),
            )
        )  # fmt: skip
    return made


def never_true(memory: Memory, seen: list[Memory]) -> bool:
    return any(other.corrects == memory.id and not other.ended and not never_true(other, seen) for other in seen)


def naive(story: list[Memory], key: str, moment: datetime, known_at: datetime | None) -> str | None:
    """The value at one moment: the last to begin of all that began by then, if it is not over."""
    seen = [one for one in story if one.forgotten_at is None and (known_at is None or one.recorded_at <= known_at)]
    begun = [
        one
        for one in seen
        if one.key and one.key.strip().lower() == key and one.valid_from <= moment and not never_true(one, seen)
    ]
    if not begun:
        return None
    last = max(begun, key=lambda one: (one.valid_from, one.recorded_at, int(one.text.split()[1])))
    ends = [one.valid_from for one in seen if one.corrects == last.id and one.ended and not never_true(one, seen)]
    over = last.ended or (last.valid_to is not None and last.valid_to <= moment) or any(end <= moment for end in ends)
    return None if over else last.text


@given(stories(), st.randoms(use_true_random=False), st.none() | DAYS)
def test_any_order_of_arrival_gives_the_same_as_a_look_at_each_moment(
    story: list[Memory], random: Any, known_day: int | None
) -> None:
    known_at = None if known_day is None else day(known_day)
    shuffled = random.sample(story, len(story))
    assert timeline(story, known_at) == timeline(shuffled, known_at)
    for half_days in range(18):
        moment = day(half_days / 2)
        found = {(memory.key or "").strip().lower(): memory.text for memory in facts(shuffled, moment, known_at)}
        expected = {key: naive(story, key, moment, known_at) for key in ("home", "work")}
        assert found == {key: value for key, value in expected.items() if value is not None}


@given(stories(), st.none() | DAYS)
def test_intervals_of_one_fact_never_overlap_and_agree_with_what_is_outdated(
    story: list[Memory], known_day: int | None
) -> None:
    known_at = None if known_day is None else day(known_day)
    seen = {memory.id for memory in known(story, known_at)}
    for half_days in range(18):
        moment = day(half_days / 2)
        holding = [version.memory for version in timeline(story, known_at) if version.holds(moment)]
        keys = [(memory.key or memory.id).strip().lower() for memory in holding]
        assert len(keys) == len(set(keys))
        assert seen - {memory.id for memory in holding} == seen & outdated(story, moment, known_at).keys()


@given(stories())
def test_corrections_do_not_depend_on_order(story: list[Memory]) -> None:
    assert corrections(story)[0].keys() == corrections(story[::-1])[0].keys()
    assert set(corrections(story)[0]) == {
        one for one in {memory.corrects for memory in story} if one and never_true(_named(one, story), story)
    }


def _named(id: str, story: list[Memory]) -> Memory:
    return next(memory for memory in story if memory.id == id)
