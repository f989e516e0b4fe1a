"""Erased is erased: not found, and its words and vectors in no saved index, whoever still had one in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.memory import conflicts, superseding
from holdfast.testing.embedders import HashEmbedder

pytestmark = pytest.mark.usefixtures("soon")

SECRET = "the zanzibar secret"
Residue = Callable[..., list[str]]
Fill = Callable[..., None]


def said(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def vector(words: str) -> bytes:
    """A text's vector as an index holds it."""
    made: bytes = HashEmbedder(16).embed([words]).astype("<f2").tobytes()
    return made


def found(store: holdfast.Store, query: str = "zanzibar", **scope: str) -> list[str]:
    return [
        hit.text for hit in store.memory(**(scope or {"user": "ana"})).recall(query, 1_000) if "zanzibar" in hit.text
    ]


def more(store: holdfast.Store, fill: Fill) -> None:
    """Let the index grow until it is saved."""
    fill(store)
    store.memory(user="ana").recall("filler")


def gone(store: holdfast.Store, residue: Residue, *, text: str = SECRET) -> bool:
    return not residue(store, "zanzibar", vector(text))


@pytest.fixture(params=["unsaved", "saved"])
def before(request: pytest.FixtureRequest) -> bool:
    """Whether the index is saved before something is erased."""
    return bool(request.param == "saved")


def test_the_words_are_there_before(place: Any, residue: Residue, fill: Fill) -> None:
    """What the other tests look for can be found where they look."""
    store = place.open(HashEmbedder(16))
    store.memory(user="ana").remember(SECRET)
    more(store, fill)
    assert residue(store, "zanzibar")
    assert residue(store, "", vector(SECRET))


@pytest.mark.every_engine
def test_an_erased_memory_is_nowhere(place: Any, residue: Residue, fill: Fill, before: bool) -> None:
    store = place.open(HashEmbedder(16))
    made = store.memory(user="ana").remember(SECRET)
    if before:
        more(store, fill)
    assert found(store)
    store.memory(user="ana").forget(made.id, erase=True)
    assert not found(store)
    assert gone(store, residue)
    more(store, fill)
    assert not found(store)
    assert gone(store, residue)
    assert store.verify().problems == ()


def test_an_erased_thread_is_nowhere(place: Any, residue: Residue, fill: Fill, before: bool) -> None:
    store = place.open(HashEmbedder(16))
    store.thread("t", user="ana").append(said(SECRET))
    if before:
        more(store, fill)
    assert found(store)
    store.erase(thread="t")
    assert not found(store)
    assert gone(store, residue)
    more(store, fill)
    assert not found(store)
    assert gone(store, residue)
    assert store.verify().problems == ()


def test_what_was_learned_from_an_erased_thread_goes_with_it(
    store: holdfast.Store, residue: Residue, fill: Fill
) -> None:
    store.thread("t", user="ana").append(said("I live in Zanzibar."))
    memory = store.memory(user="ana")
    assert memory.learn("t")
    more(store, fill)
    assert residue(store, "zanzibar")
    store.erase(thread="t")
    assert not any("anzibar" in hit.text for hit in memory.recall("zanzibar", 1_000))
    more(store, fill)
    assert not residue(store, "zanzibar")
    assert store.verify().problems == ()


@pytest.mark.every_engine
def test_an_erased_user_is_nowhere(place: Any, residue: Residue, fill: Fill, before: bool) -> None:
    store = place.open(HashEmbedder(16))
    store.thread("t", user="ana").append(said(SECRET))
    store.memory(user="ana", agent="helper").remember(SECRET)
    store.memory(user="bo").remember("a zanzibar of his own")
    if before:
        more(store, fill)
    assert len(found(store)) == 2
    store.erase(user="ana", forever=False)
    assert not found(store)
    assert gone(store, residue)
    store.thread("again", user="ana").append(said("back"))
    more(store, fill)
    assert not found(store)
    assert gone(store, residue)
    assert found(store, user="bo") == ["a zanzibar of his own"]
    assert store.verify().problems == ()


def test_an_erased_agent_is_nowhere(place: Any, residue: Residue, fill: Fill, before: bool) -> None:
    store = place.open(HashEmbedder(16))
    store.thread("t", user="ana", agent="helper").append(said(SECRET))
    store.memory(user="ana", agent="helper").remember(SECRET)
    store.memory(agent="helper").remember(SECRET)
    store.thread("u", agent="helper").append(said(SECRET))
    store.memory(user="ana").remember("stays")
    if before:
        more(store, fill)
        fill(store, user=None)
        store.memory(agent="helper").remember_all([f"filler {number}" for number in range(24)])
        store.thread("v", agent="other").append(*(said(f"filler {number}") for number in range(24)))
    assert len(found(store, user="ana", agent="helper")) == 3
    assert len(found(store, agent="helper")) == 2
    store.erase(agent="helper", forever=False)
    assert gone(store, residue)
    more(store, fill)
    for scope in ({"user": "ana"}, {"user": "ana", "agent": "helper"}, {"agent": "helper"}):
        assert not found(store, **scope)
    store.thread("v", agent="other").append(*(said(f"line {number}") for number in range(24)))
    store.memory(agent="other").recall("line")
    assert gone(store, residue)
    assert store.memory(user="ana").recall("stays")[0].text == "stays"
    assert store.verify().problems == ()


@pytest.mark.every_engine
def test_what_a_fork_shares_stays_with_it(store: holdfast.Store, fill: Fill) -> None:
    first = store.thread("a", user="ana")
    first.append(said(SECRET), said("the zanzibar rest"))
    first.fork("b", at=1)
    more(store, fill)
    store.erase(thread="a")
    assert found(store) == [SECRET]
    more(store, fill)
    assert found(store) == [SECRET]
    assert store.verify().problems == ()


@pytest.mark.parametrize("who", ["the same store", "another store"])
@pytest.mark.parametrize("early", [False, True], ids=["unsaved", "saved"])
def test_what_a_fork_does_not_share_is_nowhere(place: Any, residue: Residue, fill: Fill, early: bool, who: str) -> None:
    one = place.open(own=True)
    other = one if who == "the same store" else place.open(own=True)
    first = one.thread("a", user="ana")
    first.append(said("the beginning"), said(SECRET))
    first.fork("b", at=1)
    if early:
        more(one, fill)
    assert found(other)
    one.erase(thread="a")
    more(other, fill)
    assert not found(other)
    assert not residue(one, "zanzibar")
    assert one.verify().problems == ()


@pytest.mark.every_engine
@pytest.mark.parametrize("what", ["memory", "thread", "user"])
def test_another_store_does_not_bring_it_back(
    place: Any, residue: Residue, fill: Fill, before: bool, what: str
) -> None:
    """It has the words in memory, and saves its index later."""
    one, other = (place.open(HashEmbedder(16), own=True) for _ in range(2))
    made = one.memory(user="ana").remember(SECRET)
    one.thread("t", user="ana").append(said(SECRET))
    if before:
        more(one, fill)
    assert len(found(other)) == 2
    if what == "memory":
        one.memory(user="ana").forget(made.id, erase=True)
    elif what == "thread":
        one.erase(thread="t")
    else:
        one.erase(user="ana", forever=False)
    expected = {"memory": 1, "thread": 1, "user": 0}[what]
    assert len(found(other)) == expected
    more(other, fill)
    assert len(found(other)) == len(found(one)) == expected
    if what == "user":
        assert gone(one, residue)
    assert one.verify().problems == ()


def test_another_store_keeps_no_word_of_an_erased_memory(place: Any, residue: Residue, fill: Fill) -> None:
    one, other = (place.open(HashEmbedder(16), own=True) for _ in range(2))
    made = one.memory(user="ana").remember(SECRET)
    assert found(other)
    one.memory(user="ana").forget(made.id, erase=True)
    more(other, fill)
    assert not found(other)
    assert gone(one, residue)
    assert one.verify().problems == ()


def test_no_reading_of_an_erased_text_is_kept(ram: holdfast.Store) -> None:
    memory = ram.memory(user="ana")
    memory.remember_all(["I ride a Vespa", "I sold the Vespa", "I ride a bicycle now"])
    memory.recall("What do I ride?")
    kept = (superseding._read, superseding._words, superseding._changes, conflicts._read_text)
    assert all(one.cache_info().currsize for one in kept)
    ram.erase(user="ana")
    assert not any(one.cache_info().currsize for one in kept)
