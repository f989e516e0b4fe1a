"""ADK's memory on a store: what was added is found, and nothing else that was said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

import holdfast
from holdfast.adapters.adk import HoldfastMemoryService, HoldfastSessionService
from holdfast.errors import Invalid

HERE = {"app_name": "travel", "user_id": "ana"}


def said(text: str, author: str = "user", **more: Any) -> Event:
    return Event(author=author, content=types.Content(role="user", parts=[types.Part(text=text)]), **more)


def memory(text: str, **more: Any) -> MemoryEntry:
    return MemoryEntry(content=types.Content(role="user", parts=[types.Part(text=text)]), **more)


async def found(service: Any, query: str, **where: Any) -> list[str]:
    response = await service.search_memory(**{**HERE, **where}, query=query)
    return [entry.content.parts[0].text for entry in response.memories]


@pytest.fixture(params=["bundled", "ours", "ours, sessions elsewhere"])
def services(request: pytest.FixtureRequest, store: holdfast.Store) -> tuple[Any, Any]:
    """A session service and a memory service: ADK's own, ours, and ours beside sessions that are kept elsewhere."""
    if request.param == "bundled":
        return InMemorySessionService(), InMemoryMemoryService()
    sessions = HoldfastSessionService(store) if request.param == "ours" else InMemorySessionService()
    return sessions, HoldfastMemoryService(store)


async def talk(sessions: Any, id: str, *texts: str, **where: Any) -> Any:
    session = await sessions.create_session(**{**HERE, **where}, session_id=id)
    for text in texts:
        await sessions.append_event(session, said(text))
    return session


def test_a_session_is_found_once_it_was_added(services: tuple[Any, Any]) -> None:
    async def work() -> None:
        sessions, service = services
        session = await talk(sessions, "one", "My parrot is called Kiwi", "I live in Porto")
        assert await found(service, "parrot") == []
        await service.add_session_to_memory(session)
        assert (await found(service, "what is the parrot called"))[0] == "My parrot is called Kiwi"
        entry = (await service.search_memory(**HERE, query="parrot")).memories[0]
        assert (entry.author, entry.content) == ("user", session.events[0].content)
        assert entry.timestamp is not None
        assert await found(service, "zebra quantum") == []
        assert await found(service, "   ") == []

    asyncio.run(work())


def test_what_was_said_after_adding_is_found_when_it_is_added_again(services: tuple[Any, Any]) -> None:
    async def work() -> None:
        sessions, service = services
        session = await talk(sessions, "one", "My parrot is called Kiwi")
        await service.add_session_to_memory(session)
        await sessions.append_event(session, said("My tortoise is called Shelly"))
        assert "My tortoise is called Shelly" not in await found(service, "tortoise")
        for _ in range(2):
            await service.add_session_to_memory(session)
        assert (await found(service, "tortoise")).count("My tortoise is called Shelly") == 1
        assert (await found(service, "parrot")).count("My parrot is called Kiwi") == 1

    asyncio.run(work())


def test_others_find_nothing_of_it(services: tuple[Any, Any]) -> None:
    async def work() -> None:
        sessions, service = services
        await service.add_session_to_memory(await talk(sessions, "one", "My parrot is called Kiwi"))
        assert await found(service, "parrot", user_id="bob") == []
        assert await found(service, "parrot", app_name="other") == []

    asyncio.run(work())


def test_some_events_are_added_without_the_rest(services: tuple[Any, Any]) -> None:
    async def work() -> None:
        sessions, service = services
        session = await talk(sessions, "one", "My parrot is called Kiwi", "My secret parrot code is 1234", "A parrot!")
        await service.add_events_to_memory(**HERE, events=[session.events[0], session.events[2]], session_id="one")
        assert sorted(await found(service, "parrot")) == ["A parrot!", "My parrot is called Kiwi"]
        await service.add_events_to_memory(**HERE, events=[said("A parrot of no session")])
        assert "A parrot of no session" in await found(service, "parrot")
        await service.add_events_to_memory(**HERE, events=[])

    asyncio.run(work())


def test_what_is_deleted_stays_deleted(services: tuple[Any, Any]) -> None:
    async def work() -> None:
        sessions, service = services
        session = await talk(sessions, "one", "My parrot is called Kiwi", "The parrot eats seeds")
        await service.add_session_to_memory(session)
        entries = (await service.search_memory(**HERE, query="parrot called Kiwi")).memories
        entry = next(one for one in entries if "Kiwi" in one.content.parts[0].text)
        await service.delete_memory(app_name="travel", user_id="bob", memory_id=entry.id)
        assert "My parrot is called Kiwi" in await found(service, "parrot")
        await service.delete_memory(**HERE, memory_id=entry.id)
        assert await found(service, "parrot") == ["The parrot eats seeds"]
        await service.add_session_to_memory(session)
        assert await found(service, "parrot") == ["The parrot eats seeds"]
        for unknown in ("nothing", "", None):
            await service.delete_memory(**HERE, memory_id=unknown)

    asyncio.run(work())


def test_a_deleted_session_is_forgotten_with_it(store: holdfast.Store) -> None:
    async def work() -> None:
        sessions, service = HoldfastSessionService(store), HoldfastMemoryService(store)
        await service.add_session_to_memory(await talk(sessions, "one", "My parrot is called Kiwi"))
        await sessions.delete_session(**HERE, session_id="one")
        assert await found(service, "parrot") == []
        await talk(sessions, "one", "Another parrot altogether")  # of the same id, and never added
        assert await found(service, "parrot") == []

    asyncio.run(work())


def test_nothing_is_copied_of_a_session_of_the_same_store(store: holdfast.Store) -> None:
    async def work() -> None:
        sessions, service = HoldfastSessionService(store), HoldfastMemoryService(store)
        session = await talk(sessions, "one", *(f"remark number {number}" for number in range(30)))
        await service.add_session_to_memory(session)
        assert store.memory(user="ana", agent="travel").memories() == []
        assert len(await found(service, "remark number 7")) == service.k
        # The notes about it are of no use to anyone who recalls.
        assert all(hit.entry is not None for hit in store.memory(user="ana").recall("remark spans begun one", 50))

    asyncio.run(work())


def test_a_needle_among_many_that_were_not_added(store: holdfast.Store) -> None:
    async def work() -> None:
        sessions, service = HoldfastSessionService(store), HoldfastMemoryService(store)
        await talk(sessions, "noise", *(f"the parrot said {number}" for number in range(120)))
        await service.add_session_to_memory(await talk(sessions, "one", "the parrot said something else"))
        assert await found(service, "the parrot said") == ["the parrot said something else"]

    asyncio.run(work())


def test_memories_are_added_and_deleted(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastMemoryService(store)
        kept = memory("Ana prefers aisle seats", author="clerk", timestamp="2026-01-02T03:04:05+00:00",
                      custom_metadata={"key": "seat", "importance": 0.9})  # fmt: skip
        await service.add_memory(**HERE, memories=[kept, memory("Ana speaks Portuguese", id="mine")])
        await service.add_memory(**HERE, memories=[memory("Ana speaks Portuguese", id="mine")])
        entry = (await service.search_memory(**HERE, query="aisle seats")).memories[0]
        assert entry.content.parts[0].text == "Ana prefers aisle seats"
        assert (entry.author, entry.timestamp) == ("clerk", "2026-01-02T03:04:05+00:00")
        assert store.memory(user="ana", agent="travel").fact("seat").text == "Ana prefers aisle seats"
        assert (await found(service, "Portuguese")).count("Ana speaks Portuguese") == 1
        await service.delete_memory(**HERE, memory_id=entry.id)
        assert await found(service, "aisle seats") == []
        with pytest.raises(Invalid, match="ttl"):
            await service.add_memory(**HERE, memories=[memory("x")], custom_metadata={"ttl": "30d"})
        with pytest.raises(Invalid, match="ISO"):
            await service.add_memory(**HERE, memories=[memory("x", timestamp="yesterday")])
        with pytest.raises(Invalid):
            await service.add_memory(**HERE, memories=[memory("\ud800")])

    asyncio.run(work())


def test_what_is_known_of_the_user_from_elsewhere_is_found(store: holdfast.Store) -> None:
    async def work() -> None:
        store.memory(user="ana").remember("Ana is allergic to peanuts")
        store.memory(user="ana", agent="other").remember("Ana owes other 5 peanuts")
        assert await found(HoldfastMemoryService(store), "peanuts") == ["Ana is allergic to peanuts"]

    asyncio.run(work())


@pytest.mark.every_engine
def test_many_who_add_at_once_lose_nothing(store: holdfast.Store) -> None:
    async def work() -> None:
        sessions, service = HoldfastSessionService(store), HoldfastMemoryService(store)
        session = await talk(sessions, "one", *(f"parrot {number}" for number in range(9)))
        await asyncio.gather(
            *(service.add_events_to_memory(**HERE, events=[event], session_id="one") for event in session.events)
        )
        assert len(await found(service, "parrot")) == 9

    asyncio.run(work())


def test_a_search_finds_as_many_as_it_was_told(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastMemoryService(store, k=2)
        await service.add_memory(**HERE, memories=[memory(f"the parrot said {number}") for number in range(5)])
        assert len(await found(service, "the parrot said")) == 2

    asyncio.run(work())
    for wrong in (0, -1, True, "3"):
        with pytest.raises(Invalid, match="k is how many"):
            HoldfastMemoryService(store, k=wrong)  # type: ignore[arg-type]
