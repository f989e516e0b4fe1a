"""A memory for AutoGen's agents: the real ``AssistantAgent`` with AutoGen's own double of a model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import MemoryQueryEvent
from autogen_core import CancellationToken
from autogen_core.memory import ListMemory, Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import AssistantMessage, FunctionExecutionResult, FunctionExecutionResultMessage, UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient

import holdfast
from holdfast import extension
from holdfast.adapters.autogen import HoldfastMemory
from holdfast.errors import Invalid, Misconfigured, Unsupported

TEXT = MemoryMimeType.TEXT


def text(content: str, **more: Any) -> MemoryContent:
    return MemoryContent(content=content, mime_type=TEXT, **more)


def added(memory: HoldfastMemory, *contents: MemoryContent) -> HoldfastMemory:
    async def add() -> None:
        for content in contents:
            await memory.add(content)

    asyncio.run(add())
    return memory


def found(memory: HoldfastMemory, query: str | MemoryContent, **options: Any) -> list[Any]:
    return [one.content for one in asyncio.run(memory.query(query, **options)).results]


@pytest.fixture
def memory(store: holdfast.Store) -> HoldfastMemory:
    return HoldfastMemory(store, user="ana")


def test_an_agent_is_told_what_it_should_know(store: holdfast.Store) -> None:
    memory = added(
        HoldfastMemory(store, user="ana", k=1), text("Ana prefers an aisle seat"), text("The office closes at six")
    )
    client = ReplayChatCompletionClient(["Aisle, as always.", "At six."])
    agent = AssistantAgent("desk", client, memory=[memory])

    async def work() -> list[str]:
        first = await agent.run(task="Which seat does Ana want?")
        events = [message for message in first.messages if isinstance(message, MemoryQueryEvent)]
        assert [one.content for one in events[0].content] == ["Ana prefers an aisle seat"]
        again = await agent.run(task="Which seat does Ana want?")
        assert not any(isinstance(message, MemoryQueryEvent) for message in again.messages)
        return [message.content for message in await agent.model_context.get_messages()]

    contents = asyncio.run(work())
    assert sum("Ana prefers an aisle seat" in content for content in contents) == 1
    assert not any("office" in content for content in contents)


def test_the_last_text_is_what_is_asked_by(memory: HoldfastMemory) -> None:
    added(memory, text("Ana prefers an aisle seat"))

    async def work() -> None:
        context = UnboundedChatCompletionContext()
        assert (await memory.update_context(context)).memories.results == []
        assert await context.get_messages() == []
        await context.add_message(UserMessage(content="Which seat does Ana want?", source="user"))
        await context.add_message(
            FunctionExecutionResultMessage(content=[FunctionExecutionResult(content="x", name="t", call_id="1")])
        )
        assert len((await memory.update_context(context)).memories.results) == 1
        assert (await context.get_messages())[-1].content.endswith("- Ana prefers an aisle seat")
        await context.add_message(AssistantMessage(content="  ", source="desk"))
        assert (await memory.update_context(context)).memories.results == []

    asyncio.run(work())


@pytest.mark.every_engine
@pytest.mark.parametrize(
    "given",
    [
        text("Ana keeps bees"),
        text("Ana keeps bees", metadata={}),
        text("Ana keeps bees", metadata={"deep": {"list": [1, 2.5, None]}, "by": "desk"}),
        MemoryContent(content="Ana keeps bees", mime_type="text/plain"),
        MemoryContent(content="# Ana keeps **bees**", mime_type=MemoryMimeType.MARKDOWN),
        MemoryContent(content={"who": "Ana", "keeps": ["bees"], "n": 3}, mime_type=MemoryMimeType.JSON),
        MemoryContent(content="Ana keeps bees", mime_type="text/x-own", metadata={"k": 1}),
        text("Ana\x00 keeps bees", metadata={"\x00": "\x00"}),
    ],
)
def test_what_was_added_comes_back_as_it_was(memory: HoldfastMemory, given: MemoryContent) -> None:
    added(memory, given)
    for query in ("bees", ""):
        [one] = asyncio.run(memory.query(query)).results
        assert (one.content, one.mime_type, type(one.mime_type)) == (
            given.content, given.mime_type, type(given.mime_type)
        )  # fmt: skip
        assert one.metadata is not None
        facts = one.metadata.pop("holdfast")
        assert one.metadata == (given.metadata or {})
        assert facts["kind"] == "semantic"
        assert facts["id"]


def test_what_is_remembered_is_seen_by_all(store: holdfast.Store, memory: HoldfastMemory) -> None:
    added(memory, text("Ana keeps bees"))
    added(memory, text("Ana eats honey", metadata={"seen": "honey"}))
    assert [hit.text for hit in store.memory(user="ana").recall("bees")][0] == "Ana keeps bees"  # noqa: RUF015
    assert {hit.kind for hit in store.memory(user="ana").recall("honey seen metadata")} == {"semantic"}
    store.memory(user="ana").remember("Ana keeps a goat", key="animals")
    assert "Ana keeps a goat" in found(memory, "goat")
    assert found(HoldfastMemory(store, user="ben"), "bees") == []


def test_a_query_has_the_options_of_recall(store: holdfast.Store, memory: HoldfastMemory) -> None:
    added(memory, *(text(f"Ana has bees in hive {number}") for number in range(8)))
    assert len(found(memory, "bees")) == 5
    assert len(found(memory, "bees", k=2)) == len(found(memory, "", k=2)) == 2
    assert found(memory, "bees", kind="episodic") == []
    assert found(memory, text("hive 3"), k=1) == ["Ana has bees in hive 3"]
    store.thread("t", user="ana").append({"role": "user", "content": "My bees swarm"})
    assert "My bees swarm" not in found(memory, "bees swarm", k=99)
    assert "My bees swarm" in found(HoldfastMemory(store, user="ana", log=True), "bees swarm", k=99)
    store.folder("notes", user="ana").write("a", "The bees need sugar")
    assert "The bees need sugar" not in found(memory, "bees sugar", k=99)
    assert "The bees need sugar" in found(HoldfastMemory(store, user="ana", files=True), "bees sugar", k=99)


def test_a_query_without_a_text_is_narrowed_down_too(store: holdfast.Store, memory: HoldfastMemory) -> None:
    added(memory, text("Ana keeps bees"))
    store.memory(user="ana").remember("Boil the jars first", kind="procedural", tags=["honey"])
    assert found(memory, "", kind="procedural") == found(memory, " ", tag="honey") == ["Boil the jars first"]
    assert found(memory, "", kind="episodic") == []
    for wrong in ({"since": "now"}, {"kind": "nonsense"}, {"k": -1}, {"other": 1}):
        with pytest.raises(Invalid):
            found(memory, "", **wrong)
    with pytest.raises(Invalid, match="not int"):
        found(memory, 7)  # type: ignore[arg-type]


def test_after_clear_nothing_is_found(store: holdfast.Store, memory: HoldfastMemory) -> None:
    other = added(HoldfastMemory(store, user="ben"), text("Ben keeps bees"))
    added(memory, text("Ana keeps bees"), text("Ana has a boat"))
    store.memory(user="ana").remember("Boil the jars first", kind="procedural")
    asyncio.run(memory.clear())
    assert found(memory, "bees") == found(memory, "") == []
    assert found(other, "bees") == ["Ben keeps bees"]
    [gone] = [one for one in store.memory(user="ana").memories(forgotten=True) if "bees" in one.text]
    store.memory(user="ana").unforget(gone.id)
    assert found(memory, "bees") == ["Ana keeps bees"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (MemoryContent(content=b"\x00", mime_type=MemoryMimeType.BINARY), Unsupported),
        (MemoryContent(content={"x": float("nan")}, mime_type=MemoryMimeType.JSON), Invalid),
        (text("fine", metadata={"x": {1}}), Invalid),
        (text(""), Invalid),
        (text("lone \ud800"), Invalid),
    ],
)
def test_what_cannot_come_back_is_refused(memory: HoldfastMemory, wrong: MemoryContent, error: type[Exception]) -> None:
    with pytest.raises(error):
        added(memory, wrong)
    assert found(memory, "") == []


def test_what_is_no_content_is_refused(memory: HoldfastMemory) -> None:
    with pytest.raises(Invalid, match="give a MemoryContent, not str"):
        asyncio.run(memory.add("text"))  # type: ignore[arg-type]


def test_a_call_that_is_cancelled_before_it_began_does_nothing(memory: HoldfastMemory) -> None:
    async def work() -> None:
        token = CancellationToken()
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await memory.add(text("never"), token)
        assert (await memory.query("")).results == []

    asyncio.run(work())


@pytest.mark.every_engine
def test_many_at_once_lose_nothing(memory: HoldfastMemory) -> None:
    async def work() -> None:
        await asyncio.gather(*(memory.add(text(f"bee {number}", metadata={"same": 1})) for number in range(30)))
        assert len((await memory.query("", k=99)).results) == 30

    asyncio.run(work())


def test_it_is_a_component(address: str, store: holdfast.Store) -> None:
    first = added(HoldfastMemory(address, user="ana", k=3), text("Ana keeps bees"))
    agent = AssistantAgent("desk", ReplayChatCompletionClient([]), memory=[first, ListMemory()])
    config = agent.dump_component()
    asyncio.run(first.close())
    with pytest.raises(Misconfigured):
        found(first, "bees")
    again = AssistantAgent.load_component(config)._memory[0]
    assert isinstance(again, HoldfastMemory)
    assert isinstance(again, Memory)
    assert found(again, "bees") == ["Ana keeps bees"]
    asyncio.run(again.close())
    with pytest.raises(Unsupported, match="address"):
        HoldfastMemory(store).dump_component()


def test_a_configuration_holds_no_password(store: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(extension, "open_store", lambda address: opened.append(address) or store)
    whole = "postgresql://ana:hush@db:5432/agents"
    first = HoldfastMemory(whole, user="ana")
    config = first.dump_component()
    assert "hush" not in f"{config.model_dump_json()} {config!r} {first!r}"
    monkeypatch.delenv("HOLDFAST_DB", raising=False)
    HoldfastMemory.load_component(config)  # Postgres's own library takes it from PGPASSWORD, or a file
    monkeypatch.setenv("HOLDFAST_DB", whole)
    HoldfastMemory.load_component(config)
    assert opened == [whole, "postgresql://ana@db:5432/agents", whole]


def test_a_store_that_was_given_stays_open(memory: HoldfastMemory) -> None:
    asyncio.run(memory.close())
    assert found(memory, "") == []


def test_without_the_framework_the_extra_is_named() -> None:
    script = "import sys; sys.modules['autogen_core'] = None; import holdfast.adapters.autogen"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install 'holdfast[autogen]'" in done.stderr


def test_the_example_goes_on(example: Callable[..., str]) -> None:
    first, second = example("autogen.py"), example("autogen.py")
    assert "nothing was kept yet" in first
    assert "remembered: Ana sits on the aisle" in first
    assert "restored revision 1" in second
    assert "user: Book a seat for Ana to Lisbon" in second
    assert "user: Book a seat for Ana to Porto" in second


def test_the_page_runs(page: Callable[[str], None]) -> None:
    page("autogen")
