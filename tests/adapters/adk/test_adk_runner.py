"""A real Runner with a model that is played: turns, restarts and rewinds, and the ways in which ADK finds services."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.cli import service_registry
from google.adk.cli.utils.service_factory import (
    create_artifact_service_from_options,
    create_memory_service_from_options,
    create_session_service_from_options,
)
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import load_memory
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import Field

import holdfast
from holdfast.adapters import adk
from holdfast.adapters.adk import HoldfastArtifactService, HoldfastMemoryService, HoldfastSessionService

ONE = {"app_name": "travel", "user_id": "ana", "session_id": "one"}


class Played(BaseLlm):
    """A model that answers what it is given: a call, or a text. It keeps what it was shown."""

    answers: list[Any]
    shown: list[Any] = Field(default_factory=list)

    async def generate_content_async(self, request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
        self.shown.append([content.model_copy(deep=True) for content in request.contents])
        answer = self.answers.pop(0)
        part = types.Part(text=answer) if isinstance(answer, str) else types.Part(function_call=answer)
        if isinstance(answer, str) and stream:
            half = types.Content(role="model", parts=[types.Part(text=answer[:2])])
            yield LlmResponse(content=half, partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def book(seat: str, tool_context: ToolContext) -> dict[str, str]:
    """Book a seat."""
    tool_context.state["seat"] = seat
    tool_context.state["user:likes"] = "aisle"
    tool_context.state["app:booked"] = tool_context.state.get("app:booked", 0) + 1
    tool_context.state["temp:draft"] = "never kept"
    await tool_context.save_artifact("ticket", types.Part.from_bytes(data=seat.encode(), mime_type="x/y"))
    return {"booked": seat}


def call(seat: str) -> types.FunctionCall:
    return types.FunctionCall(name="book", args={"seat": seat})


def runner(store: holdfast.Store | None, *answers: Any, sessions: Any = None, tools: Any = (book,)) -> Runner:
    assert store is not None
    return Runner(
        app_name="travel",
        agent=LlmAgent(name="clerk", model=Played(model="played", answers=list(answers)), tools=list(tools)),
        session_service=sessions or HoldfastSessionService(store),
        memory_service=HoldfastMemoryService(store),
        artifact_service=HoldfastArtifactService(store),
    )


async def ask(runner: Runner, text: str) -> list[Any]:
    message = types.Content(role="user", parts=[types.Part(text=text)])
    return [event async for event in runner.run_async(user_id="ana", session_id="one", new_message=message)]


def shape(session: Any) -> list[Any]:
    """What events say, without what is new each time."""
    return [
        (event.author, [part.model_dump(exclude_none=True, exclude={"function_call": {"id"},
         "function_response": {"id"}}) for part in event.content.parts], event.actions.state_delta)
        for event in session.events if event.content
    ]  # fmt: skip


def test_turns_go_on_in_another_process(tmp_path: Path) -> None:
    async def first() -> Any:
        with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
            clerk = runner(store, "Hello Ana", call("12C"), "You have 12C")
            await clerk.session_service.create_session(**ONE, state={"city": "Lisbon"})
            await ask(clerk, "I am Ana")
            await ask(clerk, "Book an aisle seat")
            return await clerk.session_service.get_session(**ONE)

    async def second(before: Any) -> None:
        with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
            clerk = runner(store, "As I said, 12C")
            session = await clerk.session_service.get_session(**ONE)
            assert session == before
            assert session.state == {"city": "Lisbon", "seat": "12C", "user:likes": "aisle", "app:booked": 1}
            await ask(clerk, "Which seat?")
            shown = clerk.agent.model.shown[-1]
            assert [part.text for content in shown for part in content.parts if part.text] == [
                "I am Ana", "Hello Ana", "Book an aisle seat", "You have 12C", "Which seat?",
            ]  # fmt: skip
            ticket = await clerk.artifact_service.load_artifact(**ONE, filename="ticket")
            assert ticket.inline_data.data == b"12C"
            assert store.verify().ok

    asyncio.run(second(asyncio.run(first())))


def test_a_run_looks_the_same_on_the_bundled_sessions(store: holdfast.Store) -> None:
    async def played(sessions: Any) -> Any:
        clerk = runner(store, "Hello", call("12C"), "Done", call("14A"), "Done again", sessions=sessions)
        await sessions.create_session(**ONE)
        for text in ("Hi", "Book 12C", "Rather 14A"):
            await ask(clerk, text)
        return await sessions.get_session(**ONE), clerk.agent.model.shown

    async def work() -> None:
        (theirs, they_saw), (ours, we_saw) = [
            await played(sessions) for sessions in (InMemorySessionService(), HoldfastSessionService(store))
        ]
        assert shape(ours) == shape(theirs)
        assert {**ours.state, "app:booked": 2} == theirs.state
        assert [len(shown) for shown in we_saw] == [len(shown) for shown in they_saw]

    asyncio.run(work())


def test_a_rewind_takes_back_state_artifacts_and_turns(store: holdfast.Store) -> None:
    async def work() -> None:
        clerk = runner(store, call("12C"), "12C", call("14A"), "14A", "What now?")
        await clerk.session_service.create_session(**ONE)
        await ask(clerk, "Book 12C")
        events = await ask(clerk, "Book 14A")
        again = await clerk.session_service.get_session(**ONE)
        assert again.state["seat"] == "14A"
        await clerk.rewind_async(user_id="ana", session_id="one", rewind_before_invocation_id=events[0].invocation_id)
        session = await clerk.session_service.get_session(**ONE)
        assert session.state["seat"] == "12C"
        ticket = await clerk.artifact_service.load_artifact(**ONE, filename="ticket")
        assert ticket.inline_data.data == b"12C"
        await ask(clerk, "Hm")
        texts = [part.text for content in clerk.agent.model.shown[-1] for part in content.parts if part.text]
        assert texts == ["Book 12C", "12C", "Hm"]

    asyncio.run(work())


def test_a_stream_leaves_only_what_is_whole(store: holdfast.Store) -> None:
    from google.adk.agents.run_config import RunConfig, StreamingMode  # noqa: PLC0415

    async def work() -> None:
        clerk = runner(store, "Hello Ana")
        await clerk.session_service.create_session(**ONE)
        message = types.Content(role="user", parts=[types.Part(text="Hi")])
        config = RunConfig(streaming_mode=StreamingMode.SSE)
        seen = [event async for event in clerk.run_async(
            user_id="ana", session_id="one", new_message=message, run_config=config)]  # fmt: skip
        assert [event.partial for event in seen] == [True, None]
        session = await clerk.session_service.get_session(**ONE)
        assert [event.content.parts[0].text for event in session.events] == ["Hi", "Hello Ana"]

    asyncio.run(work())


@pytest.mark.every_engine
def test_a_session_deleted_during_a_run_stays_deleted(store: holdfast.Store) -> None:
    async def cancel_trip(tool_context: ToolContext) -> str:
        """Cancel."""
        await HoldfastSessionService(store).delete_session(**ONE)
        return "cancelled"

    async def work() -> None:
        called = types.FunctionCall(name="cancel_trip", args={})
        clerk = runner(store, called, "never said", tools=(cancel_trip,))
        await clerk.session_service.create_session(**ONE)
        with pytest.raises(SessionNotFoundError):
            await ask(clerk, "Cancel it all")
        assert await clerk.session_service.get_session(**ONE) is None
        assert store.threads() == []

    asyncio.run(work())


def test_an_agent_searches_its_memory(store: holdfast.Store) -> None:
    async def work() -> None:
        sessions, memory = HoldfastSessionService(store), HoldfastMemoryService(store)
        clerk = runner(store, "Noted", sessions=sessions)
        await sessions.create_session(**ONE)
        await ask(clerk, "My parrot is called Kiwi")
        await memory.add_session_to_memory(await sessions.get_session(**ONE))
        await sessions.create_session(app_name="travel", user_id="ana", session_id="two")
        asks = types.FunctionCall(name="load_memory", args={"query": "parrot name"})
        clerk = runner(store, asks, "Kiwi", sessions=sessions, tools=(load_memory,))
        message = types.Content(role="user", parts=[types.Part(text="What is my parrot called?")])
        async for _ in clerk.run_async(user_id="ana", session_id="two", new_message=message):
            pass
        assert "My parrot is called Kiwi" in clerk.agent.model.shown[-1][-1].model_dump_json()

    asyncio.run(work())


def test_adk_finds_the_services_by_their_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    adk.register()
    made = [
        create_session_service_from_options(base_dir=tmp_path, session_service_uri="holdfast:agent.db"),
        create_memory_service_from_options(base_dir=tmp_path, memory_service_uri=f"holdfast://{tmp_path}/agent.db"),
        create_artifact_service_from_options(base_dir=tmp_path, artifact_service_uri="holdfast+sqlite:agent.db"),
    ]

    async def work() -> None:
        sessions, memory, artifacts = made
        session = await sessions.create_session(**ONE)
        await artifacts.save_artifact(**ONE, filename="a", artifact=types.Part(text="it"))
        await memory.add_session_to_memory(session)
        for service in made:
            await service.close()

    assert [type(service) for service in made] == [
        HoldfastSessionService, HoldfastMemoryService, HoldfastArtifactService,
    ]  # fmt: skip
    asyncio.run(work())
    assert [file.name for file in tmp_path.iterdir()] == ["agent.db"]


def test_adk_finds_the_services_of_a_services_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(service_registry, "_service_registry_instance", None)
    page = Path(__file__).parents[3] / "docs" / "adapters" / "adk.md"
    shown = page.read_text(encoding="utf-8").split("```yaml\n", 1)[1].split("```", 1)[0]
    (tmp_path / "services.yaml").write_text(shown, encoding="utf-8")
    registry, uri = service_registry.get_service_registry(), f"holdfast:{tmp_path}/agent.db"
    assert registry.create_session_service(uri) is None
    service_registry.load_services_module(str(tmp_path))
    for make, kind in (
        (registry.create_session_service, HoldfastSessionService),
        (registry.create_memory_service, HoldfastMemoryService),
        (registry.create_artifact_service, HoldfastArtifactService),
    ):
        service = make(uri, agents_dir=str(tmp_path))
        assert type(service) is kind
        asyncio.run(service.close())


def test_the_example_remembers(example: Callable[..., str]) -> None:
    first, second = example("adk.py"), example("adk.py")
    assert "a new conversation" in first
    assert "I was shown 5 messages" in first
    assert "going on after 6 events" in second
    assert "'seat': '12C', 'user:likes': 'aisle seats'" in second
    assert "the ticket is still here: ticket for 12C" in second
    assert "I was shown 11 messages" in second
    assert "memory: Please book me an aisle seat to Lisbon" in second


def test_the_page_runs(page: Callable[[str], None]) -> None:
    page("adk")
