"""``HoldfastSession`` under the real ``Runner``, with the SDK's own scripted model."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    input_guardrail,
    output_guardrail,
)
from agents.extensions.memory import EncryptedSession
from agents.memory import OpenAIResponsesCompactionSession, SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call
from cryptography.fernet import InvalidToken
from session_suite import said

import holdfast
from holdfast.adapters.openai_agents import HoldfastSession

Ran = Callable[[Agent[Any], Any, Any], Coroutine[Any, Any, str]]


async def at_once(agent: Agent[Any], input: Any, session: Any) -> str:
    return str((await Runner.run(agent, input, session=session)).final_output)


async def streamed(agent: Agent[Any], input: Any, session: Any) -> str:
    result = Runner.run_streamed(agent, input, session=session)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


both = pytest.mark.parametrize("ran", [at_once, streamed])


def says(*texts: str) -> list[Any]:
    return [[assistant_message(text)] for text in texts]


def texts(items: list[Any]) -> list[str]:
    """What was said, without what is around it."""
    found = []
    for item in items:
        content = item.get("content")
        found.append(content if isinstance(content, str) else content[0]["text"] if content else item["type"])
    return found


@function_tool
def weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


@pytest.mark.every_engine
@both
def test_a_conversation_goes_on(store: holdfast.Store, ran: Ran) -> None:
    model = ScriptedModel(says("Oslo.", "Norwegian.", "Oslo."))
    agent = Agent("guide", model=model)

    async def work() -> list[Any]:
        for question in ("Capital of Norway?", "Its language?", "Again?"):
            await ran(agent, question, HoldfastSession("trip", store, user="ana"))
        return await HoldfastSession("trip", store).get_items()

    items = asyncio.run(work())
    expected = ["Capital of Norway?", "Oslo.", "Its language?", "Norwegian.", "Again?", "Oslo."]
    assert texts(items) == expected  # equal answers under the one id that this model gives are two answers
    assert texts(model.calls[2].input) == expected[:-1]
    assert [hit.text for hit in store.memory(user="ana").recall("language?").hits if "language" in hit.text]


@both
def test_it_keeps_what_the_bundled_session_keeps(store: holdfast.Store, ran: Ran) -> None:
    """Item by item, over tools, a handoff and several turns; and the model is shown the same."""

    async def talk(session: Any) -> tuple[list[Any], list[Any]]:
        oslo, rome = (function_call("weather", {"city": city}, call_id=city) for city in ("Oslo", "Rome"))
        handover = function_call("transfer_to_booker", {}, call_id="over")
        model = ScriptedModel([[oslo, rome], *says("Rain in both."), [handover], *says("Booked.")])
        booker = Agent("booker", model=model)
        agent = Agent("guide", model=model, tools=[weather], handoffs=[booker])
        assert await ran(agent, "Oslo or Rome?", session) == "Rain in both."
        assert await ran(agent, [{"role": "user", "content": "Book Rome."}], session) == "Booked."
        return await session.get_items(), [call.input for call in model.calls]

    ours = asyncio.run(talk(HoldfastSession("trip", store)))
    assert ours == asyncio.run(talk(SQLiteSession("trip")))
    kinds = [entry.kind for entry in store.thread("trip").log()]
    assert kinds.count("tool_call") == kinds.count("observation") == 3


@both
def test_a_guardrail_that_trips_leaves_what_the_bundled_session_would(store: holdfast.Store, ran: Ran) -> None:
    @input_guardrail(run_in_parallel=False)
    def no_swearing(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered="damn" in str(input[-1:]))

    @output_guardrail
    def no_prices(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered="€" in output)

    async def talk(session: Any) -> list[Any]:
        model = ScriptedModel(says("Hello.", "It is 5 €.", "Fine."))
        agent = Agent("desk", model=model, input_guardrails=[no_swearing], output_guardrails=[no_prices])
        await ran(agent, "Hi", session)
        with pytest.raises(InputGuardrailTripwireTriggered):
            await ran(agent, "damn", session)
        with pytest.raises(OutputGuardrailTripwireTriggered):
            await ran(agent, "How much?", session)
        await ran(agent, "Never mind", session)
        return await session.get_items()

    assert asyncio.run(talk(HoldfastSession("trip", store))) == asyncio.run(talk(SQLiteSession("trip")))


@both
def test_a_model_that_fails_in_the_middle_leaves_a_session_to_go_on_with(store: holdfast.Store, ran: Ran) -> None:
    call = [function_call("weather", {"city": "Oslo"}, call_id="c1")]

    async def talk(session: Any) -> list[Any]:
        model = ScriptedModel([call, RuntimeError("the line is down"), *says("Rain.")])
        agent = Agent("guide", model=model, tools=[weather])
        with pytest.raises(RuntimeError, match="the line is down"):
            await ran(agent, "Weather?", session)
        await ran(agent, "And now?", session)
        return await session.get_items()

    assert asyncio.run(talk(HoldfastSession("trip", store))) == asyncio.run(talk(SQLiteSession("trip")))


def test_what_cannot_be_stored_fails_the_run_and_not_the_session(store: holdfast.Store) -> None:
    agent = Agent("guide", model=ScriptedModel(says("Oslo.", "Bergen.")))
    session = HoldfastSession("trip", store)

    async def work() -> list[Any]:
        with pytest.raises(holdfast.errors.Invalid, match="surrogate"):
            await Runner.run(agent, "\ud800", session=session)
        await Runner.run(agent, "Capital?", session=session)
        return await session.get_items()

    assert texts(asyncio.run(work()))[0] == "Capital?"


def test_the_limit_of_a_run_counts(store: holdfast.Store) -> None:
    model = ScriptedModel(says("1", "2", "3"))
    agent = Agent("guide", model=model)

    async def work() -> None:
        await Runner.run(agent, "a", session=HoldfastSession("trip", store))
        await Runner.run(agent, "b", session=HoldfastSession("trip", store, session_settings={"limit": 1}))
        config = RunConfig(session_settings=SessionSettings(limit=2))
        await Runner.run(agent, "c", session=HoldfastSession("trip", store), run_config=config)

    asyncio.run(work())
    assert [texts(call.input) for call in model.calls] == [["a"], ["1", "b"], ["b", "2", "c"]]


def test_a_callback_that_reorders_does_not_store_history_again(store: holdfast.Store) -> None:
    agent = Agent("guide", model=ScriptedModel(says("1", "2")))
    session = HoldfastSession("trip", store)
    config = RunConfig(session_input_callback=lambda history, new: [*new, *history])

    async def work() -> list[Any]:
        await Runner.run(agent, "a", session=session)
        await Runner.run(agent, "b", session=session, run_config=config)
        return await session.get_items()

    assert texts(asyncio.run(work())) == ["a", "1", "b", "2"]


@pytest.mark.every_engine
def test_runs_at_once_in_one_session_lose_nothing(store: holdfast.Store) -> None:
    async def work() -> list[Any]:
        def agent(text: str) -> Agent[Any]:
            return Agent("guide", model=ScriptedModel(says(f"answer {text}")))

        session = HoldfastSession("trip", store)
        await asyncio.gather(*(Runner.run(agent(str(n)), f"question {n}", session=session) for n in range(12)))
        return await session.get_items()

    found = texts(asyncio.run(work()))
    assert sorted(found) == sorted(f"{what} {n}" for what in ("question", "answer") for n in range(12))


# Around our session


class Compactor:
    """What the compaction asks of OpenAI's client; it keeps the newest item and says that it left out the others."""

    def __init__(self) -> None:
        self.responses, self.asked = self, list[Any]()

    async def compact(self, **asked: Any) -> Any:
        self.asked.append(asked)
        kept = {"type": "compaction", "id": f"cmp_{len(self.asked)}", "encrypted_content": "gAAA"}
        return SimpleNamespace(output=[kept], usage=None)


@pytest.mark.every_engine
def test_compaction_replaces_items_in_one_commit(store: holdfast.Store) -> None:
    client, ours = Compactor(), HoldfastSession("trip", store)
    session = OpenAIResponsesCompactionSession(
        "trip", ours, client=client, compaction_mode="input",
        should_trigger_compaction=lambda context: len(context["session_items"]) >= 4,
    )  # type: ignore[arg-type]  # fmt: skip
    model = ScriptedModel(says("1", "2", "3"))
    agent = Agent("guide", model=model)
    seen = []

    async def work() -> None:
        for question in "abc":
            await Runner.run(agent, question, session=session)
            seen.append([item.get("type") or item["content"] for item in await ours.get_items()])

    asyncio.run(work())
    assert seen == [["a", "message"], ["compaction"], ["compaction", "c", "message"]]
    assert texts(client.asked[0]["input"]) == ["a", "1", "b", "2"]
    assert [item.get("type", item.get("content")) for item in model.calls[2].input] == ["compaction", "c"]
    assert [point.name for point in ours.thread.checkpoints()] == ["before-compaction-1"]


def test_manual_compaction_replaces_too(store: holdfast.Store) -> None:
    ours = HoldfastSession("trip", store)
    session = OpenAIResponsesCompactionSession("trip", ours, client=Compactor(), compaction_mode="input")  # type: ignore[arg-type]

    async def work() -> None:
        await session.add_items(said("1", "2"))
        await session.run_compaction({"force": True})
        assert [item["type"] for item in await session.get_items()] == ["compaction"]
        assert (await session.pop_item())["id"] == "cmp_1"
        assert await ours.get_items() == []
        await session.add_items(said("3"))
        await session.clear_session()
        assert await ours.get_items() == []

    asyncio.run(work())


def test_an_encrypted_session_leaves_no_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"

    async def talk(text: str) -> list[str]:
        ours = HoldfastSession("trip", path, user="ana", session_settings={"limit": 3})
        session = EncryptedSession("trip", ours, encryption_key="a key of many random letters", ttl=3_600)  # type: ignore[arg-type]
        model = ScriptedModel(says("I will not tell of the xylophone."))
        await Runner.run(Agent("guide", model=model), text, session=session)
        popped = await session.pop_item()
        assert popped is not None
        await session.add_items([popped])
        ours.close()
        return texts(model.calls[0].input)

    assert asyncio.run(talk("my xylophone")) == ["my xylophone"]
    assert asyncio.run(talk("yours")) == ["my xylophone", "I will not tell of the xylophone.", "yours"]
    assert b"xylophone" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.every_engine
def test_what_an_encrypted_session_cannot_read_stays(store: holdfast.Store) -> None:
    """With another key it takes nothing away, however often it is asked."""
    ours = HoldfastSession("trip", store)
    right, wrong = (EncryptedSession("trip", ours, encryption_key=key * 20, ttl=3_600) for key in ("right", "wrong"))

    async def work() -> None:
        await right.add_items(said("1", "2"))
        assert await wrong.get_items() == []
        for _ in range(2):
            with pytest.raises(InvalidToken):
                await wrong.pop_item()
        assert await right.get_items() == said("1", "2")
        await ours.add_items(said("in plain text"))
        assert await right.pop_item() == said("2")[0]

    asyncio.run(work())


def test_what_a_compaction_could_not_read_is_reached_by_a_checkpoint(store: holdfast.Store) -> None:
    """Between the two a compaction replaces and pops without asking for the key: nothing is gone."""
    ours = HoldfastSession("trip", store)
    compacting = OpenAIResponsesCompactionSession("trip", ours, client=Compactor(), compaction_mode="input")  # type: ignore[arg-type]
    right = EncryptedSession("trip", ours, encryption_key="right" * 20, ttl=3_600)
    wrong = EncryptedSession("trip", compacting, encryption_key="wrong" * 20, ttl=3_600)  # type: ignore[arg-type]

    async def work() -> None:
        await right.add_items(said("1", "2"))
        await wrong.run_compaction({"force": True})
        assert await wrong.pop_item() is not None
        assert await wrong.pop_item() is None
        ours.thread.rewind(ours.thread.checkpoints()[0].name)
        assert await right.get_items() == said("1", "2")

    asyncio.run(work())


def test_a_run_that_sees_the_end_of_a_session_compacts_that(store: holdfast.Store) -> None:
    ours = HoldfastSession("trip", store, session_settings={"limit": 2})
    session = OpenAIResponsesCompactionSession(
        "trip", ours, client=Compactor(), compaction_mode="input", should_trigger_compaction=lambda context: True
    )  # type: ignore[arg-type]

    async def work() -> list[Any]:
        await ours.add_items(said("1", "2", "3", "4"))
        await Runner.run(Agent("guide", model=ScriptedModel(says("5"))), "and?", session=session)
        return await ours.get_items(-1)

    found = asyncio.run(work())
    assert [item.get("type") or item["content"] for item in found] == ["1", "2", "compaction"]


# A killed process

CHILD = """
import asyncio, os, signal, sys
import agents
from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from holdfast.adapters.openai_agents import HoldfastSession

agents.set_tracing_disabled(True)

@function_tool
def book(seat: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)

async def work():
    session = HoldfastSession("trip", sys.argv[1])
    model = ScriptedModel([[assistant_message("Which seat?")], [function_call("book", {"seat": "2A"}, call_id="c1")]])
    agent = Agent("guide", model=model, tools=[book])
    await Runner.run(agent, "Book Oslo.", session=session)
    await Runner.run(agent, "2A, please.", session=session)

asyncio.run(work())
"""


def test_a_session_goes_on_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", CHILD, str(path)], env=env, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    model = ScriptedModel(says("Where were we?"))

    async def work() -> list[Any]:
        session = HoldfastSession("trip", path)
        await Runner.run(Agent("guide", model=model), "Hello again.", session=session)
        items = await session.get_items()
        session.close()
        return items

    found = texts(asyncio.run(work()))
    assert found[:3] == ["Book Oslo.", "Which seat?", "2A, please."]
    assert found[-2:] == ["Hello again.", "Where were we?"]
    assert texts(model.calls[0].input)[:3] == found[:3]
    with holdfast.open(path) as store:
        assert not store.verify().problems
