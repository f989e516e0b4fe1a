"""Entities and the relations between them: what holds when, and what is near."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

import holdfast
from holdfast.errors import Invalid
from holdfast.memory.collection import MemoryCollection
from holdfast.memory.drafts import Remembering
from holdfast.memory.graph import Link, neighbours, to_links
from holdfast.memory.visible import VisibleMemories
from holdfast.testing import ManualClock

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)


def link(subject: str, relation: str, object: str, since: int = 0, until: int | None = None) -> Link:
    return Link("m", subject, relation, object, MONDAY + since * DAY, None if until is None else MONDAY + until * DAY)


def told(links: list[Link]) -> list[str]:
    return [f"{one.subject} {one.relation} {one.object}" for one in links]


def near(links: list[Link], start: str, hops: int = 1, as_of: datetime | None = None) -> list[str]:
    return [one.entity for one in neighbours(links, start, hops, as_of)]


FAMILY = [
    link("Ana", "knows", "Ben"), link("Ben", "lives in", "Bern"), link("Cleo", "sister of", "ANA"),
    link("Bern", "part of", "Switzerland"),
]  # fmt: skip


def test_one_hop_goes_both_ways_and_two_go_farther() -> None:
    assert near(FAMILY, "ana") == ["Ben", "Cleo"]
    assert near(FAMILY, "Ana ", 2) == ["Ben", "Cleo", "Bern"]
    assert near(FAMILY, "nobody", 2) == []


def test_a_path_says_how_one_comes_there() -> None:
    bern = neighbours(FAMILY, "Cleo", 2)[-1]
    assert (bern.entity, bern.hops) == ("Ben", 2)
    assert told(list(bern.path)) == ["Cleo sister of ANA", "Ana knows Ben"]


def test_what_does_not_hold_is_no_way() -> None:
    links = [link("Ana", "works at", "Acme", 0, 5), link("Ana", "works at", "Bolt", 5)]
    assert near(links, "Ana", as_of=MONDAY + 3 * DAY) == ["Acme"]
    assert near(links, "Ana", as_of=MONDAY + 5 * DAY) == ["Bolt"]
    assert near(links, "Ana", as_of=MONDAY - DAY) == []
    assert near(links, "Ana") == ["Acme", "Bolt"]


def test_circles_and_loops_come_to_an_end() -> None:
    round_about = [link("a", "to", "b"), link("b", "to", "c"), link("c", "to", "a"), link("a", "to", "a")]
    assert near(round_about, "a", 2) == ["b", "c"]


@pytest.mark.parametrize("hops", [0, 3, -1, True, 1.0, None])
def test_hops_are_one_or_two(hops: int) -> None:
    with pytest.raises(Invalid, match="from 1 to 2"):
        neighbours(FAMILY, "Ana", hops)


# In a store


def remember(collection: MemoryCollection, subject: str, relation: str, object: str, key: str | None = None) -> str:
    draft = Remembering(subject=subject, relation=relation, object=object, key=key)
    return collection.remember([draft])[0].id


def test_links_are_listed_whole_or_by_entity(visible: VisibleMemories) -> None:
    remember(visible.own, "Ana", "knows", "Ben")
    remember(visible.own, "Ben", "lives in", "Bern")
    visible.remember([Remembering("no link", subject="Ben")])
    assert told(visible.links()) == ["Ana knows Ben", "Ben lives in Bern"]
    assert told(visible.links(entity="ben ")) == ["Ana knows Ben", "Ben lives in Bern"]
    assert told(visible.links(entity="BERN")) == ["Ben lives in Bern"]
    assert [memory.object for memory in visible.own.links("bern")] == ["Bern"]
    assert visible.own.links("nobody") == []


def test_links_without_a_key_stand_side_by_side_and_with_one_supersede(
    visible: VisibleMemories, clock: ManualClock
) -> None:
    clock.set(MONDAY)
    remember(visible.own, "Ana", "knows", "Ben")
    remember(visible.own, "Ana", "knows", "Cleo")
    remember(visible.own, "Ana", "lives in", "Bern", "home")
    clock.set(MONDAY + DAY)
    remember(visible.own, "Ana", "lives in", "Basel", "home")
    links = visible.links()
    assert near(links, "Ana", as_of=MONDAY + DAY / 2) == ["Ben", "Cleo", "Bern"]
    assert near(links, "Ana", as_of=MONDAY + 2 * DAY) == ["Ben", "Cleo", "Basel"]
    assert [one.until is None for one in visible.links(entity="Bern")] == [False], (
        "what superseded it names another object"
    )


def test_a_value_that_is_no_link_supersedes_one_that_is(visible: VisibleMemories) -> None:
    remember(visible.own, "Ana", "lives in", "Bern", "home")
    visible.remember([Remembering("on the road", subject="Ana", key="home")])
    assert [one.until is None for one in visible.links()] == [False]


def test_links_end_are_corrected_and_forgotten_like_any_memory(visible: VisibleMemories, clock: ManualClock) -> None:
    clock.set(MONDAY)
    ended = remember(visible.own, "Ana", "works at", "Acme")
    wrong = remember(visible.own, "Ana", "knows", "Nobody")
    gone = remember(visible.own, "Ana", "knows", "Ben")
    clock.set(MONDAY + 9 * DAY)
    visible.end(ended, MONDAY + 5 * DAY)
    visible.correct(wrong)
    visible.forget(gone)
    (left,) = visible.links()
    assert (left.object, left.until) == ("Acme", MONDAY + 5 * DAY)
    assert told(visible.links(known_at=MONDAY + DAY)) == ["Ana works at Acme", "Ana knows Nobody"]
    visible.unforget(gone)
    assert told(visible.links()) == ["Ana works at Acme", "Ana knows Ben"]


@pytest.mark.every_engine
def test_links_of_all_books_that_a_handle_sees(
    store: holdfast.Store, visible_to: Callable[..., VisibleMemories]
) -> None:
    remember(visible_to(store, user="ana", agent="bot").own, "Ana", "knows", "Ben")
    remember(visible_to(store).own, "Bern", "part of", "Switzerland")
    remember(visible_to(store, user="ben").own, "Ben", "hides", "a secret")
    assert told(visible_to(store, user="ana").links()) == ["Ana knows Ben", "Bern part of Switzerland"]


def test_what_says_that_a_link_is_over_is_no_link(visible: VisibleMemories) -> None:
    remember(visible.own, "Ana", "lives in", "Bern", "home")
    over = Remembering(subject="Ana", relation="no longer lives in", object="Bern", key="home", ended=True)
    visible.remember([over])
    assert [(one.relation, one.until is None) for one in visible.links()] == [("lives in", False)]


def test_what_is_no_link_is_left_out() -> None:
    assert to_links([]) == []
