"""A field is as fresh as its last confirmation; saving it unchanged confirms nothing."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.clock import to_datetime, to_micros
from holdfast.errors import Invalid
from holdfast.ledger import freshness, json_path
from holdfast.ledger.freshness import FreshnessReport, Marks, carry, confirmed, tracked
from holdfast.ledger.schema import PLAIN, Registry, Schema, Where, find, prepare
from holdfast.records import StaleField

MINUTE = 60_000_000
START = to_micros(datetime(2026, 3, 1, 9, tzinfo=UTC))


class Trip(TypedDict, total=False):
    seat: Any
    passport: Any
    facts: dict[str, Any]
    issues: list[Any]
    known: list[Any]
    note: Any


def declared(**options: Any) -> Schema:
    registry = Registry()
    registry.schema("trip", 1, **options)(Trip)
    return find(registry, Trip)


SCHEMA = declared(
    fresh={"seat": "10m", "facts.*": "1h", "facts.urgent": "1m", "issues.*.state": "1h", "known": "1h"},
    critical=["facts.*", "passport"],
)


def marks_of(value: Any, at: int = START, by: str = "ana", schema: Schema = SCHEMA) -> Marks:
    return carry(schema, None, {}, value, now=at, by=by)


def report(value: Any, marks: Marks, now: int) -> FreshnessReport:
    return freshness.report(SCHEMA, value, marks, now)


# What is tracked


def test_the_most_exact_pattern_decides() -> None:
    found = tracked(SCHEMA, {"seat": 1, "passport": 2, "facts": {"urgent": 1, "slow": 2}, "note": 3})
    assert {path: (rule.fresh_for, rule.critical) for path, rule in found.items()} == {
        "seat": (timedelta(minutes=10), False),
        "facts.urgent": (timedelta(minutes=1), True),
        "facts.slow": (timedelta(hours=1), True),
        "passport": (None, True),
    }


def test_among_equal_patterns_the_shortest_limit_decides() -> None:
    schema = declared(fresh={"facts.*": "2h", "*.home": "1h"})
    assert tracked(schema, {"facts": {"home": 1}})["facts.home"].fresh_for == timedelta(hours=1)


# Carrying


def test_the_first_save_confirms_everything_in_it() -> None:
    value = {"seat": None, "facts": {"home.town": "LIS"}, "note": "x"}
    assert marks_of(value) == {"seat": {"at": START, "by": "ana"}, 'facts["home.town"]': {"at": START, "by": "ana"}}


def test_changed_and_new_are_confirmed_by_the_saver_and_the_rest_stays() -> None:
    old = {"seat": "aisle", "passport": 1, "facts": {"a": 1, "b": 1}}
    new = {"seat": "window", "passport": 1, "facts": {"b": 1, "c": 1}}
    marks = carry(SCHEMA, old, marks_of(old), new, now=START + 5, by="bob")
    before, now = {"at": START, "by": "ana"}, {"at": START + 5, "by": "bob"}
    assert marks == {"seat": now, "passport": before, "facts.b": before, "facts.c": now}


def test_saving_unchanged_what_nobody_confirmed_confirms_nothing() -> None:
    value = {"passport": 1, "seat": "aisle"}
    assert carry(SCHEMA, value, {}, value, now=START, by="bob") == {}


def test_one_and_true_are_not_the_same_value() -> None:
    marks = carry(SCHEMA, {"seat": 1}, marks_of({"seat": 1}), {"seat": True}, now=START + 5, by="bob")
    assert marks["seat"]["by"] == "bob"


def test_an_item_takes_its_mark_along_when_it_moves() -> None:
    old = {"issues": [{"id": 1, "state": "open"}, {"id": 2, "state": "open"}]}
    new = {"issues": [{"id": 2, "state": "open"}, {"id": 3, "state": "open"}]}
    marks = carry(SCHEMA, old, marks_of(old), new, now=START + 5, by="bob")
    assert [marks[f"issues[{index}].state"]["by"] for index in (0, 1)] == ["ana", "bob"]


def test_a_fact_with_its_own_date_is_not_confirmed_by_saving_it() -> None:
    fact = {"value": "LIS", "confirmed_at": "2026-02-01T09:00:00Z", "confirmed_by": "eve"}
    assert marks_of({"facts": {"home": fact}})["facts.home"] == {
        "at": to_micros(datetime(2026, 2, 1, 9, tzinfo=UTC)), "by": "eve"
    }  # fmt: skip
    assert marks_of({"facts": {"home": {**fact, "confirmed_at": None}}}) == {}


# Reporting


def test_what_is_past_its_limit_is_stale() -> None:
    value = {"seat": "aisle", "facts": {"home": "LIS"}, "note": "x"}
    marks = marks_of(value)
    assert report(value, marks, START + 10 * MINUTE) == FreshnessReport()
    assert report(value, marks, START + 10 * MINUTE + 1) == FreshnessReport(
        (StaleField("seat", 600.000001, 600.0, to_datetime(START), "ana", False),), ()
    )
    late = report(value, marks, START + 61 * MINUTE)
    assert [(item.path, item.critical) for item in late.stale] == [("seat", False), ("facts.home", True)]
    assert late.must_verify == ("facts.home",)


def test_what_was_never_confirmed_is_not_fresh() -> None:
    found = report({"seat": 1, "passport": 2, "facts": {"home": 3}}, {}, START)
    assert [(item.path, item.age_s, item.confirmed_at, item.by) for item in found.stale] == [
        ("seat", inf, None, ""), ("facts.home", inf, None, "")
    ]  # fmt: skip
    assert found.must_verify == ("facts.home", "passport")


def test_critical_without_a_limit_is_confirmed_once_and_for_all() -> None:
    value = {"passport": "X1"}
    assert report(value, marks_of(value), START + 10**15) == FreshnessReport()


def test_a_clock_that_went_back_makes_nothing_older_than_now() -> None:
    value = {"seat": "aisle"}
    assert report(value, marks_of(value), START - 10**12) == FreshnessReport()
    field = report(value, {"seat": {"at": START, "by": ""}}, START + 10**12).stale[0]
    assert field.age_s > 0


def test_an_object_is_believed_about_its_own_confirmation() -> None:
    now = to_micros(datetime(2026, 3, 1, 9, tzinfo=UTC))
    fact = {"value": 1, "confirmed_at": "2026-03-01T09:30:00+01:00"}
    value = {"facts": {"home": fact}}
    mark = {"facts.home": {"at": now - 10**12, "by": "ana"}}
    assert report(value, mark, now) == FreshnessReport()
    found = report(value, mark, now + 31 * MINUTE).stale[0]
    assert (found.confirmed_at, found.by, found.age_s) == (datetime(2026, 3, 1, 8, 30, tzinfo=UTC), "ana", 61 * 60)
    found = report({"facts": {"home": {**fact, "confirmed_by": "eve"}}}, mark, now + 31 * MINUTE).stale[0]
    assert found.by == "eve"


@pytest.mark.parametrize(
    "text", [None, "", "yesterday", "2026-03-01T09:00:00", 1_772_355_600, ["2026"], "0001-01-01T00:00:00+23:59"]
)
def test_a_date_that_names_no_moment_confirms_nothing(text: Any) -> None:
    value = {"facts": {"home": {"confirmed_at": text}}}
    assert report(value, {"facts.home": {"at": START, "by": "ana"}}, START).must_verify == ("facts.home",)


def test_a_date_from_the_future_does_not_stay_fresh_until_then() -> None:
    value = {"facts": {"home": {"confirmed_at": "9999-01-01T00:00:00Z"}}}
    marks = marks_of(value)
    assert marks["facts.home"]["at"] == START
    assert report(value, marks, START + MINUTE) == FreshnessReport()
    assert report(value, marks, START + 61 * MINUTE).must_verify == ("facts.home",)
    assert report(value, {}, START) == FreshnessReport()


def test_a_plain_dict_tracks_nothing() -> None:
    assert freshness.report(PLAIN, {"a": 1}, {}, START) == FreshnessReport()
    assert carry(PLAIN, None, {}, {"a": 1}, now=START, by="ana") == {}


# Confirming


def test_confirming_renews_one_field() -> None:
    value = {"seat": "aisle", "passport": 1}
    marks = marks_of(value)
    before = deepcopy((value, marks))
    result = confirmed(SCHEMA, value, marks, "seat", now=START + 5, by="bob")
    assert result == (value, {**marks, "seat": {"at": START + 5, "by": "bob"}})
    assert (value, marks) == before


def test_confirming_an_object_renews_its_own_date() -> None:
    fact = {"value": "LIS", "confirmed_at": "2020-01-01T00:00:00Z", "confirmed_by": "eve"}
    value = {"facts": {"home.town": fact, "bare": {"confirmed_at": None}}}
    before = deepcopy(value)
    new, marks = confirmed(SCHEMA, value, {}, 'facts["home.town"]', now=START, by="bob")
    assert value == before
    assert new["facts"]["home.town"] == {"value": "LIS", "confirmed_at": "2026-03-01T09:00:00Z", "confirmed_by": "bob"}
    assert new["facts"]["bare"] == {"confirmed_at": None}
    assert report(new, marks, START).must_verify == ("facts.bare",)
    new, marks = confirmed(SCHEMA, new, marks, "facts.bare", now=START, by="bob")
    assert new["facts"]["bare"] == {"confirmed_at": "2026-03-01T09:00:00Z"}
    assert report(new, marks, START) == FreshnessReport()


def test_confirming_a_whole_confirms_what_is_tracked_in_it() -> None:
    value = {"facts": {"a": 1, "b": {"confirmed_at": "2020-01-01T00:00:00Z"}}, "seat": 1}
    new, marks = confirmed(SCHEMA, value, {}, "facts", now=START, by="bob")
    assert sorted(marks) == ["facts.a", "facts.b"]
    assert new["facts"]["b"]["confirmed_at"] == "2026-03-01T09:00:00Z"
    assert sorted(confirmed(SCHEMA, value, {}, "", now=START, by="bob").marks) == ["facts.a", "facts.b", "seat"]


def test_an_object_with_a_date_can_be_confirmed_without_a_schema() -> None:
    new, marks = confirmed(PLAIN, {"x": {"confirmed_at": ""}}, {}, '["x"]', now=START, by="bob")
    assert new == {"x": {"confirmed_at": "2026-03-01T09:00:00Z"}}
    assert list(marks) == ["x"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("absent", "there is nothing at 'absent'"),
        ("facts.absent", "it leads as far as 'facts'"),
        ("note", r"schema 'trip' does not track the freshness of 'note'; it tracks seat, facts\.\*"),
        ("facts.home.value", r"tracked as part of 'facts\.home'"),
        ("facts.*", "many places"),
        ("facts[", "is not a path"),
    ],
)
def test_what_cannot_be_confirmed_says_why(path: str, why: str) -> None:
    value = {"note": "x", "facts": {"home": {"value": 1}}}
    with pytest.raises(Invalid, match=why) as caught:
        confirmed(SCHEMA, value, {}, path, now=START, by="bob")
    assert caught.value.path == path


def test_a_plain_dict_has_nothing_to_confirm() -> None:
    with pytest.raises(Invalid, match="a plain dict does not track the freshness of 'a'; it tracks nothing"):
        confirmed(PLAIN, {"a": 1}, {}, "a", now=START, by="bob")


def test_a_confirmed_document_still_fits_its_type() -> None:
    value = {"facts": {"home": {"value": 1, "confirmed_at": "2020-01-01T00:00:00Z"}}}
    new, _ = confirmed(SCHEMA, value, {}, "facts.home", now=START + 1, by="bob")
    assert prepare(SCHEMA, new, Where("t", 1)) == new


# Laws

facts = st.one_of(
    st.integers(0, 2),
    st.fixed_dictionaries(
        {
            "confirmed_at": st.sampled_from(
                ["2026-02-28T09:00:00Z", "2026-03-01T08:59:00+00:00", "9999-01-01T00:00:00Z", None]
            )
        }
    ),
)
trips = st.fixed_dictionaries(
    {},
    optional={
        "seat": st.integers(0, 2),
        "passport": st.integers(0, 2),
        "facts": st.dictionaries(st.sampled_from(["a", "b.c", "urgent"]), facts),
        "issues": st.lists(st.fixed_dictionaries({"id": st.integers(0, 3), "state": st.integers(0, 1)}), max_size=3),
        "known": st.lists(facts, max_size=4),
    },
)
times = st.integers(0, 5_000 * MINUTE).map(lambda offset: START + offset)


@given(trips, trips, times, times)
def test_only_tracked_fields_that_exist_have_marks_and_none_from_the_future(
    old: Any, new: Any, first: int, second: int
) -> None:
    marks = carry(SCHEMA, old, marks_of(old, first), new, now=second, by="bob")
    assert set(marks) <= set(tracked(SCHEMA, new))
    assert all(mark["at"] <= max(first, second) for mark in marks.values())


@given(trips, times, times)
def test_saving_the_same_again_keeps_every_mark(value: Any, first: int, second: int) -> None:
    marks = marks_of(value, first)
    assert carry(SCHEMA, value, marks, deepcopy(value), now=second, by="bob") == marks


@given(trips, trips, times)
def test_a_mark_is_kept_or_made_now(old: Any, new: Any, now: int) -> None:
    earlier = marks_of(old)
    kept = list(earlier.values())
    for path, mark in carry(SCHEMA, old, earlier, new, now=now, by="bob").items():
        item = json_path.get(new, path)
        assert mark in kept or mark["by"] == "bob"
        assert mark["at"] == now or mark in kept or "confirmed_at" in item


@given(trips, times, times)
def test_ages_are_never_negative_and_only_grow(value: Any, first: int, second: int) -> None:
    first, second = sorted((first, second))
    marks = marks_of(value)
    early, late = report(value, marks, first), report(value, marks, second)
    assert all(item.age_s >= 0 and item.age_s > item.fresh_for_s for item in (*early.stale, *late.stale))
    assert {item.path for item in early.stale} <= {item.path for item in late.stale}
    assert set(early.must_verify) <= set(late.must_verify)


@given(trips, times)
def test_must_verify_is_the_critical_part_of_stale_and_never_confirmed(value: Any, now: int) -> None:
    found = report(value, marks_of(value), now)
    assert {item.path for item in found.stale if item.critical} <= set(found.must_verify)
    assert set(found.must_verify) <= {path for path, rule in tracked(SCHEMA, value).items() if rule.critical}


@given(trips, times)
def test_confirming_everything_leaves_nothing_stale(value: Any, now: int) -> None:
    if not tracked(SCHEMA, value):
        return
    new, marks = confirmed(SCHEMA, value, {}, "", now=now, by="bob")
    assert report(new, marks, now) == FreshnessReport()
    assert set(marks) == set(tracked(SCHEMA, new))
    assert carry(SCHEMA, new, marks, new, now=now + 1, by="eve") == marks


# Lists, item by item

LISTED = declared(fresh={"issues": "30d"}, critical=["issues"])
DAY = 24 * 60 * MINUTE


def stale_items(value: Any, marks: Marks, now: int) -> list[Any]:
    found = freshness.report(LISTED, value, marks, now)
    assert [item.path for item in found.stale] == list(found.must_verify)
    return [json_path.get(value, path) for path in found.must_verify]


def test_one_more_fact_does_not_freshen_the_others() -> None:
    old = {"issues": ["prefers mornings", "flies from Lisbon"]}
    new = {"issues": [*old["issues"], "has a visa"]}
    marks = carry(LISTED, old, marks_of(old, schema=LISTED), new, now=START + 40 * DAY, by="bob")
    assert stale_items(new, marks, START + 40 * DAY) == old["issues"]


def test_an_empty_list_is_confirmed_as_a_whole() -> None:
    none: dict[str, Any] = {"issues": []}
    marks = marks_of(none, schema=LISTED)
    assert freshness.report(LISTED, none, marks, START).must_verify == ()
    assert freshness.report(LISTED, none, marks, START + 31 * DAY).must_verify == ("issues",)
    assert carry(LISTED, {"issues": ["visa"]}, marks, none, now=START + DAY, by="bob")["issues"]["at"] == START + DAY


def test_a_fact_with_a_date_in_another_zone_is_that_old_and_one_without_a_date_is_as_old_as_its_save() -> None:
    value = {"issues": [{"fact": "a", "confirmed_at": "2026-01-20T09:00:00+09:00"}, {"fact": "b"}]}
    assert stale_items(value, marks_of(value, schema=LISTED), START + DAY) == [value["issues"][0]]
    assert stale_items(value, marks_of(value, schema=LISTED), START + 31 * DAY) == value["issues"]


changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 10)),
        st.tuples(st.just("drop"), st.integers(0, 10)),
        st.tuples(st.just("move"), st.integers(0, 10)),
        st.tuples(st.just("turn"), st.just(0)),
    ),
    max_size=25,
)


@given(changes, st.booleans(), st.booleans())
def test_an_item_keeps_its_age_however_its_list_is_changed(
    steps: list[tuple[str, int]], dicts: bool, dated: bool
) -> None:
    """A model beside it: when each item was added. Nothing else may make it older or younger."""
    items: list[Any] = []
    added: dict[Any, int] = {}
    old, marks, now = None, {}, START
    for number, (step, at) in enumerate(steps):
        now += DAY
        place = at % (len(items) + 1)
        if step == "add":
            own = {"confirmed_at": to_datetime(now - DAY // 2).isoformat()} if dated else {}
            items.insert(place, {"fact": number, **own} if dicts else number)
            added[number] = now - DAY // 2 if dicts and dated else now
        elif step == "turn":
            items.reverse()
        elif place < len(items):
            item = items.pop(place)
            if step == "move":
                items.insert(at * 7 % (len(items) + 1), item)
        new = {"issues": deepcopy(items)}
        marks = carry(LISTED, old, marks, new, now=now, by="bob")
        old = new
        far = freshness.report(LISTED, new, marks, now + 1_000 * DAY).stale if items else ()
        names = [item["fact"] if dicts else item for item in items]
        assert [to_micros(one.confirmed_at) for one in far if one.confirmed_at] == [added[name] for name in names]
