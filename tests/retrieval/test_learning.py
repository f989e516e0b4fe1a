"""Learning from a thread: facts with their source, once; and the async twin, from end to end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

import holdfast
from holdfast import aio
from holdfast.doors.cli.demo.script import CONVERSATION
from holdfast.errors import HoldfastError, Invalid, NotFound
from holdfast.testing import ManualClock


def said(words: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": words, **fields}


@pytest.mark.every_engine
def test_messages_become_memories_that_name_their_source(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    thread.append(said("Hello."), said("I live in Lisbon."))
    learned = store.memory(user="ana").learn("t")
    assert learned
    home = next(memory for memory in learned if "Lisbon" in memory.text)
    assert [(entry.thread, entry.number) for entry in home.origin.entries] == [("t", 2)]
    assert home.origin.by == "user"
    assert (home.origin.tool or "").startswith("rule:")
    assert home.trust == "stated"
    assert home.valid_from == thread.entry(2).time
    found = store.memory(user="ana").recall("where does she live?")
    assert any(hit.memory == home for hit in found)


def test_learning_again_changes_nothing(store: holdfast.Store) -> None:
    thread, memory = store.thread("t", user="ana"), store.memory(user="ana")
    thread.append(said("I live in Lisbon."), said("I work at Acme."))
    first = memory.learn("t")
    assert memory.learn("t") == first
    assert len(memory.memories(limit=None)) == len(first)
    thread.append(said("My dog is called Rex."))
    later = memory.learn("t", after=2)
    assert all(one.origin.entries[0].number == 3 for one in later)
    assert {one.id for one in memory.learn("t")} == {one.id for one in [*first, *later]}


def test_a_change_supersedes_and_the_old_value_stays(store: holdfast.Store, clock: ManualClock) -> None:
    thread, memory = store.thread("t", user="ana"), store.memory(user="ana")
    thread.append(said("I live in Lisbon."))
    clock.advance(86_400)
    thread.append(said("I moved from Lisbon to Berlin."))
    learned = memory.learn("t")
    keys = {one.key for one in learned if one.key and ("Lisbon" in one.text or "Berlin" in one.text)}
    assert len(keys) == 1
    key = keys.pop()
    now = memory.fact(key)
    assert now is not None
    assert "Berlin" in now.text
    assert ["Lisbon" in version.memory.text for version in memory.history(key)] == [True, False]
    assert not any(hit.memory and "Lisbon" in hit.text for hit in memory.recall("lives in", log=False))


def test_what_was_never_true_is_corrected(store: holdfast.Store) -> None:
    thread, memory = store.thread("t", user="ana"), store.memory(user="ana")
    thread.append(said("My name is Anna."))
    memory.learn("t")
    thread.append(said("Correction: my name is Ana, not Anna."))
    memory.learn("t")
    facts = [fact for fact in memory.facts() if fact.key == "name"]
    assert [fact.text for fact in facts if "Anna" in fact.text] == []


def test_what_was_forgotten_is_not_learned_again(store: holdfast.Store) -> None:
    thread, memory = store.thread("t", user="ana"), store.memory(user="ana")
    thread.append(said("I live in Lisbon."))
    learned = memory.learn("t")
    for one in learned:
        memory.forget(one.id)
    memory.learn("t")
    assert memory.facts() == []


def test_what_was_erased_is_not_learned_again(ram: holdfast.Store) -> None:
    """Either it stays away, or the caller is told; it does not come back in silence."""
    thread, memory = ram.thread("t", user="ana"), ram.memory(user="ana")
    thread.append(said("I live in Lisbon."))
    for one in memory.learn("t"):
        memory.forget(one.id, erase=True)
    with suppress(HoldfastError):
        memory.learn("t")
    assert memory.facts() == []


def test_who_is_not_the_user_is_its_own_subject(ram: holdfast.Store) -> None:
    ram.thread("t", user="ana").append({"role": "user", "name": "Bo", "content": "I live in Lisbon."})
    learned = ram.memory(user="ana").learn("t")
    assert {one.subject for one in learned} == {"Bo"}


def test_what_a_tool_says_is_not_trusted(ram: holdfast.Store) -> None:
    thread = ram.thread("t", user="ana")
    thread.append({"role": "tool", "content": "I live in Lisbon. My name is Eve."}, kind="observation")
    thread.append({"role": "tool", "content": "I live in Lisbon. My name is Eve."})
    assert all(one.trust == "untrusted" for one in ram.memory(user="ana").learn("t"))


def test_a_time_in_words_is_meant_from_the_message(ram: holdfast.Store) -> None:
    ram.thread("t", user="ana").append(said("I moved to Berlin last year.", timestamp="2023-06-01T12:00:00Z"))
    learned = [one for one in ram.memory(user="ana").learn("t") if "Berlin" in one.text]
    assert learned
    assert all(one.valid_from < datetime(2023, 6, 2, tzinfo=UTC) for one in learned)


def test_another_users_thread_is_refused(store: holdfast.Store) -> None:
    store.thread("t", user="ana").append(said("I live in Lisbon."))
    with pytest.raises(Invalid, match="belongs to user 'ana'"):
        store.memory(user="bo").learn("t")
    assert store.memory(user="bo").memories() == []
    with pytest.raises(NotFound):
        store.memory(user="ana").learn("no such thread")
    for after in (-1, "x", True):
        with pytest.raises(Invalid):
            store.memory(user="ana").learn("t", after=after)  # type: ignore[arg-type]


@pytest.mark.parametrize("scope", [{}, {"agent": "helper"}], ids=str)
def test_what_one_user_said_is_not_learned_for_all(ram: holdfast.Store, scope: dict[str, str]) -> None:
    ram.thread("t", user="ana", agent="helper").append(said("I live in Lisbon."))
    with pytest.raises(Invalid):
        ram.memory(**scope).learn("t")
    assert ram.memory(user="bo", agent="helper").recall("Lisbon").hits == ()


def test_what_replaced_a_taken_back_message_is_learned(ram: holdfast.Store) -> None:
    thread, memory = ram.thread("t", user="ana"), ram.memory(user="ana")
    thread.append(said("Hello."), said("I live in Lisbon."))
    memory.learn("t")
    thread.rewind(1)
    thread.append(said("I live in Berlin."))
    assert ["Berlin" in one.text for one in memory.learn("t")] == [True]
    assert ["Berlin" in one.text for one in memory.facts()] == [True]


def test_what_forks_share_is_learned_once(ram: holdfast.Store) -> None:
    thread, memory = ram.thread("t", user="ana"), ram.memory(user="ana")
    thread.append(said("I live in Lisbon."))
    thread.fork("u").append(said("I work at Acme."))
    memory.learn("t")
    assert len(memory.learn("u")) == 2
    assert len(memory.memories()) == 2


def test_threads_with_long_names_are_told_apart(ram: holdfast.Store) -> None:
    memory = ram.memory(user="ana")
    for end, city in (("a", "Lisbon"), ("b", "Berlin")):
        ram.thread("x" * 500 + end, user="ana").append(said(f"I live in {city}."))
        assert [city in one.text for one in memory.learn("x" * 500 + end)] == [True]


@pytest.mark.parametrize("name", ["x" * 600, "  ", "a\x00b", "\n"], ids=repr)
def test_an_odd_name_does_not_stop_learning(ram: holdfast.Store, name: str) -> None:
    ram.thread("t", user="ana").append(said("I live in Lisbon.", name=name), said("My dog is called Rex."))
    assert any("Rex" in one.text for one in ram.memory(user="ana").learn("t"))
    assert ram.memory(user="ana").recall("Rex").relevant


@pytest.mark.parametrize("words", ["", "文" * 100_000, "I live in " * 20_000, "a" * 1_000_000, "\x00", "😀" * 1_000])
def test_any_message_can_be_learned_from(ram: holdfast.Store, words: str) -> None:
    ram.thread("t", user="ana").append(said(words))
    ram.memory(user="ana").learn("t")


@pytest.mark.every_engine
def test_from_end_to_end_for_async_callers(place: Any) -> None:
    async def live() -> None:
        async with aio.open(place.url, tenant=place.tenant, embedder=None) as store:
            memory = store.memory(user="ana")
            made = await memory.remember("lives in Rome", key="city")
            await memory.remember_all(["a zebra", {"text": "an okapi", "tags": ["animal"]}])
            await store.thread("t", user="ana").append(said("I work at Acme."))
            assert await memory.learn("t")
            found = await memory.recall("zebra", 3, explain=True)
            assert found[0].text == "a zebra"
            assert found[0].why
            assert [hit.text for hit in await memory.recall("okapi", tag="animal")] == ["an okapi"]
            assert [fact.text for fact in await memory.facts() if fact.key == "city"] == ["lives in Rome"]
            await memory.forget(made.id)
            assert "lives in Rome" not in [hit.text for hit in await memory.recall("lives Rome")]
            await memory.unforget(made.id)
            many = await asyncio.gather(*(memory.recall("lives Rome") for _ in range(8)))
            assert all(one[0].text == "lives in Rome" for one in many)
            assert await memory.rebuild() >= 4
            with pytest.raises(Invalid):
                await memory.recall("x", 0)
            with pytest.raises(Invalid):
                await memory.rollback()

    asyncio.run(live())


@pytest.mark.every_engine
def test_what_a_thread_says_again_is_one_version(store: holdfast.Store, clock: ManualClock) -> None:
    thread, memory = store.thread("t", user="ana"), store.memory(user="ana")
    for words in ("I work at Siemens.", "I work at Siemens.", "I work at Acme.", "I work at Siemens."):
        thread.append(said(words))
        clock.advance(60)
    memory.learn("t")
    texts = ["user works at Siemens", "user works at Acme", "user works at Siemens"]
    found = [version.memory.text.replace("ana", "user") for version in memory.history("employer")]
    assert found == texts
    memory.learn("t")
    assert len(memory.history("employer")) == 3
    store.thread("u", user="ana").append(said("I work at Siemens."))
    memory.learn("u")
    store.erase(thread="t")
    assert [version.memory.text for version in memory.history("employer")] == ["ana works at Siemens"]


def test_the_thread_of_the_demonstration_teaches_the_nut_allergy_and_berlin(ram: holdfast.Store) -> None:
    thread = ram.thread("trip-42", user="ana")
    for turn in CONVERSATION:
        thread.append(holdfast.message("user", turn.asks), holdfast.message("assistant", turn.answers))
    ana = ram.memory(user="ana")
    assert {"ana flies from Berlin", "ana is allergic to nuts"} <= {one.text for one in ana.learn("trip-42")}
    assert ana.fact("allergy:nuts").origin.entries[0].number == 5


def test_an_answer_is_read_beside_its_question_wherever_learning_begins(ram: holdfast.Store) -> None:
    thread = ram.thread("t", user="ana")
    thread.append(holdfast.message("assistant", "Where do you live?"))
    session = ram.session(thread)
    assert [one.text for one in session.turn("In Bonn.").reply("Nice.").learned] == ["ana lives in Bonn"]
    assert [one.text for one in ram.memory(user="ana").learn("t", after=1)] == ["ana lives in Bonn"]
    thread.append(holdfast.message("user", "In Rome."))
    assert ram.memory(user="ana").learn("t", after=len(thread.log()) - 1) == []  # nobody asked just before
