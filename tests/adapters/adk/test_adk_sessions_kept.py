"""What our session service promises beyond ADK's own: one commit, no lost update, one copy, no late writer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.platform.time import reset_time_provider, set_time_provider
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

import holdfast
from holdfast.adapters.adk import HoldfastSessionService
from holdfast.adapters.adk.service import SessionPlace
from holdfast.errors import Erased, Invalid, KeyReused, Misconfigured, TooLarge

HERE = {"app_name": "travel", "user_id": "ana"}
ONE = {**HERE, "session_id": "one"}
THREAD = "adk:travel/ana/one"


def said(text: str, author: str = "user", **more: Any) -> Event:
    return Event(author=author, content=types.Content(role="user", parts=[types.Part(text=text)]), **more)


def changing(delta: dict[str, Any], **more: Any) -> Event:
    return Event(author="agent", actions=EventActions(state_delta=delta), **more)


def test_a_session_is_a_thread_that_people_can_read(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE, state={"city": "Lisbon"})
        await service.append_event(session, said("an aisle seat, please"))
        call = types.FunctionCall(id="c1", name="book", args={"seat": "12C"})
        await service.append_event(session, Event(author="clerk", content=types.Content(
            role="model", parts=[types.Part(function_call=call)])))  # fmt: skip
        answer = types.FunctionResponse(id="c1", name="book", response={"booked": "12C"})
        await service.append_event(session, Event(author="clerk", content=types.Content(
            role="user", parts=[types.Part(function_response=answer)])))  # fmt: skip
        await service.append_event(session, changing({"seat": "12C"}))

    asyncio.run(work())
    info = store.thread(THREAD).info()
    assert (info.user, info.agent, info.tags, info.entries) == ("ana", "travel", ("adk",), 4)
    asked, called, came, silent = store.thread(THREAD).log()
    assert asked.content.items() >= {"role": "user", "content": "an aisle seat, please"}.items()
    assert (called.kind, called.content["name"], called.content["arguments"]) == ("tool_call", "book", {"seat": "12C"})
    assert (came.kind, came.content["of"], came.content["content"]) == ("observation", "c1", {"booked": "12C"})
    assert silent.kind == "event"
    assert store.thread(THREAD).state().value == {"city": "Lisbon", "seat": "12C"}
    hits = store.memory(user="ana").recall("aisle seat", kind="message")
    assert hits[0].text == "an aisle seat, please"
    assert hits[0].trust == "stated"
    assert store.memory(user="ana").recall("booked 12C", kind="observation")[0].trust == "untrusted"
    assert store.verify().ok


def test_what_is_said_is_stored_once(store: holdfast.Store) -> None:
    text = "a sentence of its own " * 100

    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE)
        await service.append_event(session, said(text))

    asyncio.run(work())
    engine = store.core.engine
    record = engine.get(store.tenant, "thread", THREAD)
    assert record is not None
    (event,) = engine.read(store.tenant, record.mark)
    assert event.body.count(text.encode()) == 1
    assert len(event.body) < len(text) + 600


def test_ids_are_told_apart_whatever_is_in_them() -> None:
    parts = ["a", "a/b", "a%2Fb", "%", "/", "adk:", "é", "a b"]
    places = [SessionPlace(app, user, session) for app in parts for user in parts for session in parts]
    assert len({place.thread for place in places}) == len(places)
    assert all(SessionPlace.of(place.thread) == place for place in places)
    assert SessionPlace.of("trip-42") is None
    assert SessionPlace.of("adk:only/two") is None


@pytest.mark.every_engine
def test_many_who_append_at_once_lose_nothing(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        await service.create_session(**ONE)
        held = [await service.get_session(**ONE) for _ in range(12)]

        async def append(number: int, session: Any) -> None:
            for turn in range(4):
                name = f"{number}-{turn}"
                await service.append_event(session, changing({name: 1, f"user:{name}": 2, f"app:{name}": 3}))

        await asyncio.gather(*(append(number, session) for number, session in enumerate(held)))
        again = await service.get_session(**ONE)
        assert again is not None
        names = [f"{number}-{turn}" for number in range(12) for turn in range(4)]
        expected = {f"{prefix}{name}": value for name in names for prefix, value in
                    (("", 1), ("user:", 2), ("app:", 3))}  # fmt: skip
        assert again.state == expected
        assert len(again.events) == 48

    asyncio.run(work())
    assert store.verify().ok


@pytest.mark.every_engine
def test_only_one_of_many_begins_a_session(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        made = await asyncio.gather(
            *(service.create_session(**ONE, state={"by": n, "user:by": n, f"app:{n}": n}) for n in range(8)),
            return_exceptions=True,
        )
        won = [session for session in made if not isinstance(session, BaseException)]
        assert len(won) == 1
        number = won[0].state["by"]
        again = await service.get_session(**ONE)
        assert again is not None
        assert again.state == {"by": number, "user:by": number, f"app:{number}": number}

    asyncio.run(work())


@pytest.mark.every_engine
def test_an_event_and_its_state_are_one_commit(store: holdfast.Store) -> None:
    """What cannot be stored as a whole leaves no part of it."""

    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE)
        before = store.core.engine.feed(store.tenant, 0, 1_000, 0)[-1].position
        await service.append_event(session, changing({"a": 1, "user:b": 2, "app:c": 3}))
        assert len(store.core.engine.feed(store.tenant, before, 1_000, 0)) == 1
        big = "x" * (17 * 1024 * 1024)
        with pytest.raises(TooLarge):
            await service.append_event(session, changing({"a": 2, "user:b": big}))
        again = await service.get_session(**ONE)
        assert again is not None
        assert again.state == session.state == {"a": 1, "user:b": 2, "app:c": 3}
        assert len(again.events) == len(session.events) == 1

    asyncio.run(work())


def test_the_same_id_with_other_content_is_refused(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE)
        await service.append_event(session, said("first", id="e"))
        with pytest.raises(KeyReused):
            await service.append_event(session, said("second", id="e"))

    asyncio.run(work())


@pytest.mark.parametrize("bad", ["a\x00b", "\ud800", "", "x" * 600])
def test_names_that_no_engine_can_hold(store: holdfast.Store, bad: str) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        for name in ("app_name", "user_id"):
            with pytest.raises(Invalid):
                await service.create_session(**{**ONE, name: bad})
            with pytest.raises(Invalid):
                await service.get_session(**{**ONE, name: bad})
        if bad:
            with pytest.raises(Invalid):
                await service.create_session(**HERE, session_id=bad)
        assert store.threads() == []

    asyncio.run(work())


def test_values_come_back_or_are_refused_by_name(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE)
        for value in ("\ud800", float("nan"), float("inf"), 2**70, lambda: None):
            with pytest.raises(Invalid):
                await service.append_event(session, changing({"bad": value}))
            with pytest.raises(Invalid):
                await service.create_session(**HERE, session_id="two", state={"bad": value})
        with pytest.raises(Invalid):
            await service.append_event(session, said("\udfff"))
        moment = datetime(2026, 1, 2, tzinfo=UTC)
        good = {"nul": "a\x00b", "text": "é😀", "when": moment, "several": {1}, "int": 2**62, "key\x00": {"": None}}
        await service.append_event(session, changing(good))
        again = await service.get_session(**ONE)
        assert again is not None
        assert again.state == {**good, "when": "2026-01-02T00:00:00Z", "several": [1]}
        assert len(again.events) == 1

    asyncio.run(work())


def test_deleting_leaves_nothing_of_a_session(store: holdfast.Store, tmp_path: Path) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE, state={"own": "rosebud"})
        await service.append_event(session, said("rosebud"))
        store.memory(user="ana").recall("rosebud")
        await service.delete_session(**ONE)
        assert store.memory(user="ana").recall("rosebud").hits == ()
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said("late"))

    asyncio.run(work())
    assert store.threads() == []
    store.export(tmp_path / "all.json")
    assert "rosebud" not in (tmp_path / "all.json").read_text()


@pytest.mark.every_engine
def test_a_session_deleted_while_others_append_stays_deleted(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        await service.create_session(**ONE)
        held = [await service.get_session(**ONE) for _ in range(6)]

        async def append(session: Any) -> bool:
            for number in range(20):
                try:
                    await service.append_event(session, changing({f"k{number}": 1}))
                except SessionNotFoundError:
                    return True
            return False

        tasks = [asyncio.create_task(append(session)) for session in held]
        await asyncio.sleep(0)
        await service.delete_session(**ONE)
        assert any(await asyncio.gather(*tasks))
        assert await service.get_session(**ONE) is None
        assert store.core.engine.get(store.tenant, "state", THREAD) is None

    asyncio.run(work())


@pytest.mark.every_engine
def test_what_was_erased_for_good_does_not_begin_anew(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE)
        store.erase(thread=THREAD)
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said("late"))
        with pytest.raises(Erased):
            await service.create_session(**ONE)

    asyncio.run(work())


def test_what_others_write_into_the_thread_is_no_event(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE)
        await service.append_event(session, said("hello"))
        store.thread(THREAD).append(holdfast.note("looked at by a person"))
        for odd in (7, {"adk": 7}, {"adk": {}}, {"adk": {"timestamp": "now"}}):
            store.thread(THREAD).append({"role": "user", "content": "x", "$framework": odd}, key=str(odd))
        store.thread(THREAD).append({"role": "user", "content": "not through ADK"})
        again = await service.get_session(**ONE)
        assert again is not None
        assert [event.content.parts[0].text for event in again.events] == ["hello"]
        await service.append_event(again, said("goes on"))
        store.thread(THREAD).append(*(holdfast.note(f"note {number}") for number in range(600)))
        for wanted, texts in ((1, ["goes on"]), (2, ["hello", "goes on"]), (9, ["hello", "goes on"]), (0, [])):
            few = await service.get_session(**ONE, config=GetSessionConfig(num_recent_events=wanted))
            assert few is not None
            assert [event.content.parts[0].text for event in few.events] == texts

    asyncio.run(work())


def test_a_thread_that_was_rewound_goes_on(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE)
        for text in ("one", "two", "three"):
            await service.append_event(session, said(text))
        store.thread(THREAD).rewind(1)
        again = await service.get_session(**ONE)
        assert again is not None
        assert again.last_update_time == again.events[-1].timestamp
        await service.append_event(again, said("other"))
        found = await service.get_session(**ONE)
        assert found is not None
        assert [event.content.parts[0].text for event in found.events] == ["one", "other"]

    asyncio.run(work())


_PART = """
import asyncio, sys
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from holdfast.adapters.adk import HoldfastSessionService

async def main():
    async with HoldfastSessionService(uri="holdfast:" + sys.argv[1]) as service:
        session = await service.get_session(app_name="travel", user_id="ana", session_id="one")
        for number in range(10):
            delta = {f"{sys.argv[2]}-{number}": 1, f"user:{sys.argv[2]}-{number}": 1}
            await service.append_event(session, Event(author="a", actions=EventActions(state_delta=delta)))

asyncio.run(main())
"""


def test_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    place = tmp_path / "agent.db"

    async def begin() -> None:
        async with HoldfastSessionService(place) as service:
            await service.create_session(**ONE)

    async def end() -> None:
        async with HoldfastSessionService(place) as service:
            session = await service.get_session(**ONE)
            assert session is not None
            names = [f"{prefix}{p}-{n}" for p in "xyz" for n in range(10) for prefix in ("", "user:")]
            assert session.state == dict.fromkeys(names, 1)
            assert len(session.events) == 30

    asyncio.run(begin())
    running = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", _PART, str(place), name], stderr=subprocess.PIPE)
        for name in "xyz"
    ]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    asyncio.run(end())


def test_how_a_service_is_opened(tmp_path: Path) -> None:
    async def work() -> None:
        place = tmp_path / "my agents.db"
        uri = "holdfast://" + str(place).replace(" ", "%20")
        async with HoldfastSessionService(uri=uri, agents_dir=".") as service:
            await service.create_session(**ONE)
        async with HoldfastSessionService(uri=f"holdfast+sqlite:{uri.removeprefix('holdfast:')}") as service:
            assert await service.get_session(**ONE) is not None
        async with HoldfastSessionService(uri) as service:  # as ADK's commands are told it
            assert await service.get_session(**ONE) is not None
        async with holdfast.aio.open(place) as store:
            service = HoldfastSessionService(store)
            assert await service.get_session(**ONE) is not None
            await service.close()
            assert await store.threads(), "a store that was given stays open"

    asyncio.run(work())
    for wrong in ("holdfast:", "sqlite:agent.db", "agent.db", "holdfast+mysql://x", "holdfast:ram:"):
        with pytest.raises(Misconfigured):
            HoldfastSessionService(uri=wrong)
    with pytest.raises(Misconfigured) as refusal:
        HoldfastSessionService(uri="holdfast:postgresql://ana:rosebud@host/db")
    assert "holdfast+postgresql:" in str(refusal.value)
    assert "rosebud" not in str(refusal.value)
    asyncio.run(HoldfastSessionService(uri="holdfast+ram:").close())
    with pytest.raises(Misconfigured, match="either"):
        HoldfastSessionService()
    with pytest.raises(Misconfigured, match="either"):
        HoldfastSessionService("ram:", uri="holdfast+ram:")


def test_an_event_keeps_its_time_when_the_clock_stands_still(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastSessionService(store)
        session = await service.create_session(**ONE)
        set_time_provider(lambda: 1_000.0)
        try:
            await service.append_event(session, said("hello"))
        finally:
            reset_time_provider()
        again = await service.get_session(**ONE)
        assert again is not None
        assert again.events == session.events
        assert again.events[0].timestamp == 1_000.0

    asyncio.run(work())
