"""Paths name one place in a document; diff tells two documents apart."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Invalid
from holdfast.ledger import json_path
from holdfast.ledger.json_path import (
    Difference,
    Origins,
    Sign,
    diff,
    get,
    has,
    match,
    parse,
    render,
    with_value,
    without,
)

TRIP: dict[str, Any] = {
    "active_task": {"status": "open", "steps": ["search", "book"]},
    "confirmed_facts": {"home.airport": {"value": "LIS"}, "seat": {"value": "aisle"}},
    "unresolved_issues": [{"text": "visa"}, {"text": "luggage"}],
    "nothing": None,
}

names = st.text(max_size=8)
steps = st.lists(st.one_of(names, st.integers(0, 999_999_999)), max_size=6).map(tuple)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 1.0, 2.5]), st.text("ab.", max_size=2)
)
documents = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text("ab.[", max_size=2), inner, max_size=4)
    ),
    max_leaves=25,
)


# Reading and writing paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("active_task", ("active_task",)),
        ("active_task.status", ("active_task", "status")),
        ("issues[0].text", ("issues", 0, "text")),
        ('facts["home.airport"]', ("facts", "home.airport")),
        ('["a b"].c', ("a b", "c")),
        ("grid[1][20]", ("grid", 1, 20)),
        ("trip-42.2024", ("trip-42", "2024")),
        ("größe.名前", ("größe", "名前")),
        ('a["\\"quoted\\"\\n"]', ("a", '"quoted"\n')),
        ('a["*"]', ("a", "*")),
    ],
)
def test_a_path_is_names_and_indexes(text: str, expected: tuple[Any, ...]) -> None:
    assert parse(text) == expected
    assert parse(render(expected)) == expected


def test_text_is_written_one_way() -> None:
    assert render(parse('["active_task"]["status"]')) == "active_task.status"
    assert render(("a", "", "b c", "d")) == 'a[""]["b c"].d'
    assert render(parse("*.a[*]", pattern=True)) == "*.a.*"
    assert render(("issues", Sign.APPEND)) == "issues[+]"


@given(steps)
def test_every_path_survives_being_text(path: json_path.Path) -> None:
    assert parse(render(path)) == path


@given(st.text(max_size=12))
def test_any_text_is_a_path_or_invalid(text: str) -> None:
    try:
        path = parse(text)
    except Invalid:
        return
    assert parse(render(path)) == path


@pytest.mark.parametrize(
    "text",
    [".a", "a.", "a..b", "a b", "a[", "a[]", "a[-1]", "a[01]", "a[1", 'a["x]', "a[x]", "a[0]b", 'a."b"', "a*", "a.[0]",
     'a["\n"]', 'a["\\x"]', "a[99999999999]", "$.a"],
)  # fmt: skip
def test_what_is_not_a_path_says_where(text: str) -> None:
    with pytest.raises(Invalid, match="is not a path") as caught:
        parse(text)
    assert caught.value.path == text
    assert 0 <= caught.value.position < len(text)


def test_a_path_is_text() -> None:
    with pytest.raises(Invalid, match="not int"):
        parse(3)  # type: ignore[arg-type]


def test_signs_stand_only_where_they_mean_something() -> None:
    assert parse("a.*", pattern=True) == ("a", Sign.ANY)
    assert parse("a[+]", append=True) == ("a", Sign.APPEND)
    with pytest.raises(Invalid, match="many places"):
        parse("a.*")
    for text, options in (("a[+]", {}), ("a[+].b", {"append": True}), ("a[+]", {"pattern": True})):
        with pytest.raises(Invalid, match=r"\[\+\] is allowed only"):
            parse(text, **options)


# Getting


def test_get_follows_names_and_indexes() -> None:
    assert get(TRIP, "active_task.status") == "open"
    assert get(TRIP, 'confirmed_facts["home.airport"].value') == "LIS"
    assert get(TRIP, ("unresolved_issues", 1, "text")) == "luggage"
    assert get(TRIP, "") is TRIP
    assert has(TRIP, "nothing")
    assert not has(TRIP, "nothing.inside")


@pytest.mark.parametrize(
    ("path", "reached", "why"),
    [
        ("absent", "", "without the key 'absent'"),
        ("active_task.owner.name", "active_task", "without the key 'owner'"),
        ("unresolved_issues[2].text", "unresolved_issues", "a list of 2"),
        ("unresolved_issues.text", "unresolved_issues", "its items are"),
        ("active_task[0]", "active_task", "its keys are names"),
        ("nothing.inside", "nothing", "is null"),
        ("active_task.status.x", "active_task.status", "holds str"),
    ],
)
def test_a_path_that_leads_nowhere_says_how_far_it_got(path: str, reached: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        get(TRIP, path)
    assert (caught.value.path, caught.value.reached) == (path, reached)


# Changing


def test_with_value_gives_a_new_document() -> None:
    before = deepcopy(TRIP)
    changed = with_value(TRIP, "active_task.status", "done")
    assert get(changed, "active_task.status") == "done"
    assert before == TRIP
    assert changed["confirmed_facts"] is TRIP["confirmed_facts"]


def test_with_value_adds_a_last_key_and_a_last_item() -> None:
    assert with_value({"a": {}}, "a.b", 1) == {"a": {"b": 1}}
    assert with_value({"a": [1]}, "a[0]", 2) == {"a": [2]}
    assert with_value({"a": [1]}, "a[+]", 2) == {"a": [1, 2]}
    assert with_value({"a": [{"b": 1}]}, "a[0].b", 2) == {"a": [{"b": 2}]}


@pytest.mark.parametrize(
    "path", ["absent.key", "nothing.key", "unresolved_issues[2]", "active_task[0]", "active_task[+]"]
)
def test_with_value_invents_nothing_in_between(path: str) -> None:
    with pytest.raises(Invalid) as caught:
        with_value(TRIP, path, 1)
    assert caught.value.reached == path.partition("[")[0].partition(".")[0].replace("absent", "")


def test_without_takes_out_one_place() -> None:
    before = deepcopy(TRIP)
    assert "status" not in without(TRIP, "active_task.status")["active_task"]
    assert without(TRIP, "unresolved_issues[0]")["unresolved_issues"] == [{"text": "luggage"}]
    assert before == TRIP
    with pytest.raises(Invalid, match="without the key"):
        without(TRIP, "active_task.absent")


def test_the_whole_document_is_no_field() -> None:
    for change in (lambda: with_value(TRIP, "", {}), lambda: without(TRIP, "")):
        with pytest.raises(Invalid, match="whole document"):
            change()


# Patterns


def test_match_finds_the_places_of_a_pattern_in_order() -> None:
    assert match("confirmed_facts.*", TRIP) == ['confirmed_facts["home.airport"]', "confirmed_facts.seat"]
    assert match("unresolved_issues.*.text", TRIP) == ["unresolved_issues[0].text", "unresolved_issues[1].text"]
    assert match("unresolved_issues[1]", TRIP) == ["unresolved_issues[1]"]
    assert match("*.status", TRIP) == ["active_task.status"]
    assert match(("nothing",), TRIP) == ["nothing"]
    for pattern in ("absent", "nothing.*", "active_task.status.*", "unresolved_issues[7]", "unresolved_issues.text"):
        assert match(pattern, TRIP) == []


def test_covers_needs_no_document() -> None:
    pattern = parse("facts.*.value", pattern=True)
    assert json_path.covers(pattern, ("facts", "x", "value"))
    assert not json_path.covers(pattern, ("facts", "x"))
    assert not json_path.covers(pattern, ("facts", "x", "other"))


@given(documents)
def test_every_match_is_there(document: Any) -> None:
    for pattern in ("*", "*.*", "*.*.*"):
        found = match(pattern, document)
        assert len(found) == len(set(found))
        assert all(
            has(document, path) and json_path.covers(parse(pattern, pattern=True), parse(path)) for path in found
        )


# Differences


def applied(old: Any, differences: list[Difference]) -> Any:
    """What the docstring of diff promises, taken literally."""
    document = deepcopy(old)
    for difference in reversed([item for item in differences if item.action == "removed"]):
        document = without(document, difference.path)
    for difference in [item for item in differences if item.action == "added"]:
        *above, last = parse(difference.path)
        holder = get(document, tuple(above))
        if isinstance(holder, list) and isinstance(last, int):
            holder.insert(last, deepcopy(difference.new))
        else:
            holder[last] = deepcopy(difference.new)
    for difference in [item for item in differences if item.action == "changed"]:
        document = with_value(document, difference.path, difference.new) if difference.path else difference.new
    return document


def test_diff_of_dicts_goes_down_to_what_changed() -> None:
    old = {"task": {"status": "open", "step": 1}, "gone": 1, "same": [1]}
    new = {"task": {"status": "done", "step": 1}, "new": None, "same": [1]}
    assert diff(old, new) == [
        Difference("gone", "removed", old=1),
        Difference("new", "added", new=None),
        Difference("task.status", "changed", "open", "done"),
    ]
    assert diff(old, deepcopy(old)) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([1, 2, 3], [2, 3], [("[0]", "removed")]),
        ([1, 2, 3], [1, 2, 3, 4], [("[3]", "added")]),
        ([1, 3], [1, 2, 3], [("[1]", "added")]),
        ([1, 2, 3], [1, 9, 3], [("[1]", "changed")]),
        ([1, 2], [3, 4, 5], [("[0]", "changed"), ("[1]", "changed"), ("[2]", "added")]),
        ([], [1], [("[0]", "added")]),
        ([1], {"a": 1}, [("", "changed")]),
        ([1], [True], [("[0]", "changed")]),
        ([1], [1.0], [("[0]", "changed")]),
    ],
)
def test_diff_of_lists_reports_no_item_that_only_moved(old: Any, new: Any, expected: list[tuple[str, str]]) -> None:
    assert [(item.path, item.action) for item in diff(old, new)] == expected


def test_diff_recognises_an_item_that_changed_while_another_left() -> None:
    old = [{"id": 1, "status": "open"}, {"id": 2, "status": "open"}, {"id": 3, "status": "open"}]
    new = [{"id": 2, "status": "done"}, {"id": 3, "status": "open"}]
    assert diff(old, new) == [
        Difference("[0]", "removed", old=old[0]),
        Difference("[0].status", "changed", "open", "done"),
    ]


def test_diff_of_long_lists_stays_quick_and_right() -> None:
    old = list(range(3_000))
    new = [item + 1 for item in old]
    assert applied(old, diff(old, new)) == new


@given(documents, documents)
def test_applying_the_diff_to_old_gives_new(old: Any, new: Any) -> None:
    before = deepcopy((old, new))
    differences = diff(old, new)
    assert json_path.same(applied(old, differences), new)
    assert (differences == []) == json_path.same(old, new)
    assert (old, new) == before


@given(st.lists(st.integers(0, 3), max_size=7), st.lists(st.integers(0, 3), max_size=7))
def test_diff_of_lists_is_never_longer_than_replacing_by_position(old: list[int], new: list[int]) -> None:
    differences = diff(old, new)
    assert applied(old, differences) == new
    untouched = len(old) - sum(item.action != "added" for item in differences)
    by_position = sum(one == other for one, other in zip(old, new, strict=False))
    assert untouched >= by_position


@given(st.dictionaries(st.text("abc", max_size=2), leaves, max_size=5))
def test_the_order_of_keys_makes_no_difference(document: dict[str, Any]) -> None:
    shuffled = dict(reversed(document.items()))
    assert diff(document, shuffled) == []
    assert diff({}, document) == diff({}, shuffled)


# Where things came from


def test_origins_follow_items_through_their_list() -> None:
    old = {"facts": {"a": 1}, "issues": [{"id": 1, "s": "x"}, {"id": 2, "s": "x"}], "tags": ["p", "q"], "was": {}}
    new = {"facts": {"a": 2}, "issues": [{"id": 2, "s": "y"}], "tags": ["q", "p", "r"], "now": {"b": 1}, "was": []}
    origins = Origins(old, new)
    assert origins.of(("facts", "a")) == ("facts", "a")
    assert origins.of(("issues", 0, "s")) == ("issues", 1, "s")
    assert [origins.of(("tags", index)) for index in range(3)] == [("tags", 1), ("tags", 0), None]
    assert origins.of(("now", "b")) is None
    assert Origins(None, new).of(("facts",)) is None
    assert Origins([1], [1, 2]).of((1,)) is None


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_an_item_that_was_there_is_found_again(old: list[str], new: list[str]) -> None:
    origins = Origins(old, new)
    for index, item in enumerate(new):
        source = origins.of((index,))
        assert (source is not None and get(old, source) == item) == (item in old)
