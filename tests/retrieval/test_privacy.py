"""Who sees what: tenants and users never see each other's, and an agent's handle only what is its own or above it."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast.retrieval import pipeline

SCOPES: dict[str, dict[str, str]] = {
    "ana": {"user": "ana"},
    "ana+a": {"user": "ana", "agent": "a"},
    "ana+b": {"user": "ana", "agent": "b"},
    "bo": {"user": "bo"},
    "bo+a": {"user": "bo", "agent": "a"},
    "a": {"agent": "a"},
    "b": {"agent": "b"},
    "none": {},
}
BOOKS = {
    "ana": {"ana", "ana+a", "ana+b", "none"},
    "ana+a": {"ana+a", "ana", "a", "none"},
    "ana+b": {"ana+b", "ana", "b", "none"},
    "bo": {"bo", "bo+a", "none"},
    "bo+a": {"bo+a", "bo", "a", "none"},
    "a": {"a", "none"},
    "b": {"b", "none"},
    "none": {"none"},
}
"""Whose memories each handle sees."""
THREADS = {
    "ana": {"ana", "ana+a", "ana+b"},
    "ana+a": {"ana+a", "ana"},
    "ana+b": {"ana+b", "ana"},
    "bo": {"bo", "bo+a"},
    "bo+a": {"bo+a", "bo"},
    "a": {"a", "none"},
    "b": {"b", "none"},
    "none": {"none", "a", "b"},
}
"""Whose threads each handle sees."""


def told(store: holdfast.Store) -> None:
    for name, scope in SCOPES.items():
        store.memory(**scope).remember(f"the secret memory of {name}")
        store.thread(f"thread of {name}", **scope).append({"role": "user", "content": f"the secret words of {name}"})


def found(store: holdfast.Store, name: str, **only: Any) -> set[str]:
    return {hit.text for hit in store.memory(**SCOPES[name]).recall("secret", 1_000, **only)}


def expected(name: str) -> set[str]:
    memories = {f"the secret memory of {other}" for other in BOOKS[name]}
    return memories | {f"the secret words of {other}" for other in THREADS[name]}


@pytest.mark.parametrize("way", ["all", "gathered"])
def test_a_handle_finds_what_is_its_own_and_above_it(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "gathered":
        monkeypatch.setattr(pipeline, "ALL", 0)
    told(store)
    for _ in range(2):  # the second time every index is in memory
        for name in SCOPES:
            assert found(store, name) == expected(name), name


@pytest.mark.every_engine
def test_recall_sees_the_memories_that_listing_sees(store: holdfast.Store) -> None:
    told(store)
    for name, scope in SCOPES.items():
        listed = {memory.text for memory in store.memory(**scope).memories(limit=None)}
        assert found(store, name, log=False) == listed, name


@pytest.mark.every_engine
def test_tenants_are_apart(place: Any) -> None:
    one, other = place.open(), place.open(tenant=f"{place.tenant}-other")
    told(one)
    for name in SCOPES:
        assert found(other, name) == set()
    told(other)
    one.memory(user="ana").remember("another secret")
    assert "another secret" not in found(other, "ana")
    assert other.verify().problems == ()


def test_the_thread_of_another_cannot_be_asked_for(store: holdfast.Store) -> None:
    told(store)
    assert found(store, "ana", thread="thread of ana") == {"the secret words of ana"}
    for name, thread in (
        ("ana", "thread of bo"),
        ("ana+a", "thread of ana+b"),
        ("none", "thread of ana"),
        ("a", "no such"),
    ):
        assert found(store, name, thread=thread) == set()


def test_a_fact_of_another_agent_does_not_decide(store: holdfast.Store) -> None:
    """What one agent knows of a user is not what another one reads, not even by superseding."""
    store.memory(user="ana").remember("lives in Rome", key="city")
    store.memory(user="ana", agent="a").remember("lives in Oslo", key="city")
    assert [hit.text for hit in store.memory(user="ana").recall("lives")] == ["lives in Oslo"]
    assert [hit.text for hit in store.memory(user="ana", agent="a").recall("lives")] == ["lives in Oslo"]
    assert [hit.text for hit in store.memory(user="ana", agent="b").recall("lives")] == ["lives in Rome"]


@pytest.mark.every_engine
def test_strange_names_are_names(store: holdfast.Store) -> None:
    names = [
        "a/b",
        "a",
        "a/b/manifest",
        "user=ana",
        "common",
        "ünï 文 🦓",
        "x" * 500,
        "x" * 499 + "y",
        "%2F",
        "threads",
        "collection/common",
    ]
    for name in names:
        store.memory(user=name).remember(f"secret of user {name}")
        store.memory(agent=name).remember(f"secret of agent {name}")
    for name in names:
        assert {hit.text for hit in store.memory(user=name).recall("secret", 100)} == {f"secret of user {name}"}
        assert {hit.text for hit in store.memory(agent=name).recall("secret", 100)} == {f"secret of agent {name}"}


def test_strange_names_have_indexes_of_their_own(here: Any, soon: int) -> None:
    ram = here.open()
    names = [
        "a/b",
        "a",
        "user=ana",
        "common",
        "文",
        "x" * 500,
        "x" * 499 + "y",
        "threads",
        "collection/common",
        "manifest",
    ]
    for name in names:
        for scope in ({"user": name}, {"agent": name}):
            ram.memory(**scope).remember_all([f"secret {number} of {scope}" for number in range(soon)])
            ram.memory(**scope).recall("secret")
    ram = here.open()
    for name in names:
        for scope in ({"user": name}, {"agent": name}):
            texts = [hit.text for hit in ram.memory(**scope).recall("secret", 100)]
            assert sorted(texts) == sorted(f"secret {number} of {scope}" for number in range(soon))
    assert ram.verify().problems == ()
    assert ram.rebuild() == soon * 2 * len(names)
