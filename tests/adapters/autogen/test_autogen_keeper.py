"""The state of AutoGen's agents and teams: kept, ended, restored in another process, and gone on with."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import MultiModalMessage
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_core import FunctionCall, Image
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.models import CreateResult, ModelFamily, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

import holdfast
from holdfast.adapters.autogen import HoldfastMemory, HoldfastStateKeeper
from holdfast.errors import Conflict, Invalid, Misconfigured, NotFound, TooLarge

INFO: Any = {
    "vision": True, "function_calling": True, "json_output": False, "structured_output": False,
    "family": ModelFamily.UNKNOWN,
}  # fmt: skip


class Plain:
    """Anything that has a state."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self.state: Any = state

    async def save_state(self) -> Mapping[str, Any]:
        return self.state

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self.state = state


def said(content: Any, source: str = "user", **more: Any) -> dict[str, Any]:
    return {"type": "UserMessage", "source": source, "content": content, **more}


def make_team(*says: str) -> RoundRobinGroupChat:
    writer = AssistantAgent("writer", ReplayChatCompletionClient([f"{one} written" for one in says]))
    critic = AssistantAgent("critic", ReplayChatCompletionClient([f"{one} seen" for one in says]))
    return RoundRobinGroupChat([writer, critic], termination_condition=MaxMessageTermination(3))


def conversation(store: holdfast.Store, thread: str = "team-1") -> list[tuple[str, str]]:
    entries = store.thread(thread).log()
    return [
        (entry.content["$framework"]["autogen"]["source"], entry.content["content"])
        for entry in entries
        if entry.kind == "message"
    ]


FIRST = [("user", "a poem"), ("writer", "one written"), ("critic", "one seen")]
SECOND = [("user", "another"), ("writer", "two written"), ("critic", "two seen")]


@pytest.mark.every_engine
def test_a_team_goes_on_where_it_was(store: holdfast.Store) -> None:
    async def work() -> None:
        team, keeper = make_team("one"), HoldfastStateKeeper(store, "team-1", user="ana")
        assert await keeper.restore(team) == 0
        await team.run(task="a poem")
        kept = await team.save_state()
        assert await keeper.keep(team) == 1
        assert conversation(store) == FIRST

        again, other = make_team("two"), HoldfastStateKeeper(store, "team-1", user="ana")
        assert await other.restore(again) == 1
        assert await again.save_state() == kept
        await again.run(task="another")
        assert await other.keep(again) == 2
        assert conversation(store) == FIRST + SECOND

        third = make_team()
        assert await other.restore(third) == 2
        assert await third.save_state() == await again.save_state()
        assert await other.restore(third, revision=1) == 1
        assert await third.save_state() == kept
        assert [revision.number for revision in await other.revisions()] == [1, 2]

    asyncio.run(work())


_CHILD = textwrap.dedent("""
    import asyncio, sys
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_ext.models.replay import ReplayChatCompletionClient
    from holdfast.adapters.autogen import HoldfastMemory, HoldfastStateKeeper

    async def main():
        desk = AssistantAgent("desk", ReplayChatCompletionClient([sys.argv[3]]))
        team = RoundRobinGroupChat([desk], termination_condition=MaxMessageTermination(2))
        async with HoldfastStateKeeper(sys.argv[1], "team-1", user="ana") as keeper:
            await keeper.restore(team)
            await team.run(task=sys.argv[2])
            print(await keeper.keep(team), len(await desk.model_context.get_messages()))

    asyncio.run(main())
""")


@pytest.mark.every_engine
def test_a_team_goes_on_in_another_process(address: str) -> None:
    def run(task: str, answer: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, address, task, answer],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("hello", "hi") == "1 2"
    assert run("and then?", "nothing") == "2 4"
    with holdfast.open(address, embedder="none") as store:
        assert conversation(store) == [("user", "hello"), ("desk", "hi"), ("user", "and then?"), ("desk", "nothing")]
        found = store.memory(user="ana").recall("nothing", log=True)
        assert [hit.text for hit in found][0] == "nothing"  # noqa: RUF015
        assert store.verify().ok


def test_each_text_is_stored_once(store: holdfast.Store) -> None:
    """Ten rounds, each kept: what is stored grows with what is said, and not with how often it was kept."""
    sizes = []

    async def work() -> None:
        team, keeper = (
            make_team(*(f"{'long ' * 400}{number}" for number in range(10))),
            HoldfastStateKeeper(store, "team-1"),
        )
        for number in range(10):
            await team.run(task=f"{'task ' * 400}{number}")
            await keeper.keep(team)
            sizes.append(len(json.dumps(keeper.thread.state(dict).value)))

    asyncio.run(work())
    log = json.dumps([entry.content for entry in store.thread("team-1").log()])
    assert log.count("long " * 400) == 20  # ten by the writer, ten by the critic
    assert log.count("task " * 400) == 10
    assert max(sizes) < 2_000  # beside 2 kB for each of thirty messages


@pytest.mark.every_engine
def test_an_agent_with_tools_comes_back_as_it_was(store: holdfast.Store) -> None:
    def weather(city: str) -> str:
        return f"sunny in {city}"

    def make(*says: Any) -> AssistantAgent:
        client = ReplayChatCompletionClient(list(says), model_info=INFO)
        return AssistantAgent("desk", client, tools=[weather], reflect_on_tool_use=True)

    async def work() -> None:
        call = CreateResult(
            finish_reason="function_calls", usage=RequestUsage(1, 1), cached=False,
            content=[FunctionCall(id="1", name="weather", arguments='{"city": "Porto"}')],
        )  # fmt: skip
        agent, keeper = make(call, "It is sunny."), HoldfastStateKeeper(store, "desk")
        picture = Image.from_base64(
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        )
        await agent.run(task=[MultiModalMessage(content=["How is the weather?", picture], source="user")])
        kept = await agent.save_state()
        await keeper.keep(agent)
        again = make()
        assert await HoldfastStateKeeper(store, "desk").restore(again) == 1
        assert await again.save_state() == kept
        restored = (await again.model_context.get_messages())[0]
        assert restored.content[1].to_base64() == picture.to_base64()  # type: ignore[union-attr]

    asyncio.run(work())
    kinds = [(entry.kind, entry.content.get("name")) for entry in store.thread("desk").log()]
    assert kinds == [
        ("event", "UserMessage"), ("event", "AssistantMessage"), ("event", "FunctionExecutionResultMessage"),
        ("message", None),
    ]  # fmt: skip


def test_what_was_said_twice_is_in_the_log_twice(store: holdfast.Store) -> None:
    async def work() -> None:
        agent, keeper = (
            AssistantAgent("desk", ReplayChatCompletionClient(["hi"] * 3)),
            HoldfastStateKeeper(store, "team-1"),
        )
        for _ in range(3):
            await agent.run(task="hello")
            await keeper.keep(agent)
        again = AssistantAgent("desk", ReplayChatCompletionClient([]))
        await keeper.restore(again)
        assert await again.save_state() == await agent.save_state()

    asyncio.run(work())
    assert conversation(store) == [("user", "hello"), ("desk", "hi")] * 3


def test_another_kind_of_team(store: holdfast.Store) -> None:
    def make(*says: str) -> SelectorGroupChat:
        agents = [AssistantAgent(name, ReplayChatCompletionClient([name] * 3), description="x") for name in "ab"]
        return SelectorGroupChat(
            agents, ReplayChatCompletionClient(list(says)), termination_condition=MaxMessageTermination(3)
        )  # fmt: skip

    async def work() -> None:
        team, keeper = make("b", "a"), HoldfastStateKeeper(store, "team-1")
        await team.run(task="go")
        await keeper.keep(team)
        again = make()
        await keeper.restore(again)
        assert await again.save_state() == await team.save_state()

    asyncio.run(work())
    assert [text for _, text in conversation(store)] == ["go", "b", "a"]


@pytest.mark.every_engine
@pytest.mark.parametrize(
    "state",
    [
        {},
        {"x": {"deep": [1, 2.5, None, True, "ü日本🧭", []]}},
        {"messages": []},
        {"messages": [said("a"), said("b"), said("a"), said("a")], "copy": [said("a"), said("a"), said("c")]},
        {"messages": [said("a", type="SystemMessage"), said({"x": 1}), said(["p", {"data": "…"}]), said("")]},
        {"list": [{"messages": [said("a")]}, {"message_thread": [said("a", id="7"), said("b", id="8")]}]},
        {"$entries": 1, "x": {"$entries": [[1, 2]]}, "y": {"$entries": {"$entries": []}}},
        {"$entries": [[1, 1]], "messages": [said("a", **{"$entries": [[5, 5]]})]},
        {"messages": [{"type": "t"}, {"content": "no type"}], "mixed": [said("a"), 1]},
        {"messages": [{"type": "T", "content": "no source"}, said("x", autogen={"of": 1})]},
        {"messages": [said("a", source=["x"]), said("a", source={"x": 1}), said("a")], "c": [said("a", ["x"], id=1)]},
        {"messages": [said("a\x00b"), said(["\x00"], type="\x00")], "\x00": "\x00"},
    ],
)
def test_every_state_comes_back_as_it_was(store: holdfast.Store, state: dict[str, Any]) -> None:
    async def work() -> None:
        keeper, found = HoldfastStateKeeper(store, "s"), Plain()
        for _ in range(2):  # the second time all of it is in the log already
            await keeper.keep(Plain(state))
            await HoldfastStateKeeper(store, "s").restore(found)
            assert found.state == state
        count = keeper.thread.logbook.head()
        await keeper.keep(Plain(state))
        assert keeper.thread.logbook.head() == count

    asyncio.run(work())


def test_other_entries_of_the_thread_are_left_alone(store: holdfast.Store) -> None:
    async def work() -> None:
        keeper, found = HoldfastStateKeeper(store, "s"), Plain()
        keeper.thread.append({"role": "user", "content": "mine"})
        await keeper.keep(Plain({"messages": [said("a")]}))
        keeper.thread.append(holdfast.note("in between"))
        await keeper.keep(Plain({"messages": [said("a"), said("b")]}))
        await keeper.restore(found)
        assert found.state == {"messages": [said("a"), said("b")]}
        assert [entry.kind for entry in keeper.thread.log()] == ["message", "message", "note", "message"]

    asyncio.run(work())


@pytest.mark.parametrize(
    "foreign",
    [
        {"role": "user", "content": "x", "$framework": {"autogen": 1}},
        {
            "role": "user",
            "content": [{"type": "text", "text": "x"}],
            "$framework": {"autogen": {"type": "UserMessage"}},
        },
        {"role": "user", "content": "x", "$framework": "autogen"},
        holdfast.event("theirs", **{"$framework": {"autogen": "x"}}),
        holdfast.event("theirs", of=99, **{"$framework": {"autogen": {"type": "UserMessage"}}}),
    ],
)
def test_what_others_write_under_the_same_name_is_left_alone(store: holdfast.Store, foreign: Any) -> None:
    async def work() -> None:
        keeper, found = HoldfastStateKeeper(store, "s"), Plain()
        keeper.thread.append(foreign)
        await keeper.keep(Plain({"messages": [said("a")]}))
        await HoldfastStateKeeper(store, "s").restore(found)
        assert found.state == {"messages": [said("a")]}

    asyncio.run(work())
    assert [entry.number for entry in store.thread("s").log()] == [1, 2]


def test_a_state_that_is_too_large_only_because_it_repeats_itself_is_kept(store: holdfast.Store) -> None:
    """A team's state has every message once more for each agent."""
    messages = [said("x" * 3_000_000)]
    state = {"message_thread": messages, "agents": {str(n): {"messages": messages} for n in range(6)}}

    async def work() -> None:
        keeper, found = HoldfastStateKeeper(store, "s"), Plain()
        await keeper.keep(Plain(state))
        await keeper.restore(found)
        assert found.state == state
        with pytest.raises(TooLarge):
            await keeper.keep(Plain({"messages": [said("x" * 17_000_000)]}))
        with pytest.raises(TooLarge):
            await keeper.keep(Plain({"other": "x" * 17_000_000}))

    asyncio.run(work())


def test_a_note_that_comes_in_between_is_no_conflict(store: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, found = HoldfastStateKeeper(store, "s"), Plain()
    turn = keeper.thread.turn

    def late(**options: Any) -> Any:
        monkeypatch.setattr(keeper.thread, "turn", turn)
        store.thread("s").append(holdfast.note("just now"))
        return turn(**options)

    async def work() -> None:
        await keeper.keep(Plain({"messages": [said("a")]}))
        monkeypatch.setattr(keeper.thread, "turn", late)
        assert await keeper.keep(Plain({"messages": [said("a"), said("b")]})) == 2
        await keeper.restore(found)
        assert found.state == {"messages": [said("a"), said("b")]}

    asyncio.run(work())
    assert [entry.kind for entry in keeper.thread.log()] == ["message", "note", "message"]


def test_the_second_to_keep_is_told(store: holdfast.Store) -> None:
    async def work() -> None:
        one, two, found = HoldfastStateKeeper(store, "s"), HoldfastStateKeeper(store, "s"), Plain()
        await one.keep(Plain({"messages": [said("a")]}))
        with pytest.raises(Conflict):
            await two.keep(Plain({"messages": [said("forgot to restore")]}))
        await two.restore(found)
        await one.keep(Plain({"messages": [said("a"), said("b")]}))
        with pytest.raises(Conflict):
            await two.keep(Plain({"messages": [said("a"), said("c")]}))
        assert await two.restore(found) == 2
        assert found.state == {"messages": [said("a"), said("b")]}
        assert await two.keep(Plain({"messages": [said("a"), said("b"), said("c")]})) == 3
        assert one.thread.logbook.head() == 3  # of what was refused nothing stayed

    asyncio.run(work())


@pytest.mark.every_engine
def test_of_many_at_once_one_is_kept(store: holdfast.Store) -> None:
    async def work() -> None:
        keepers = [HoldfastStateKeeper(store, "s") for _ in range(8)]
        states = [Plain({"messages": [said(f"by {number}")]}) for number in range(8)]
        done = await asyncio.gather(
            *(keeper.keep(state) for keeper, state in zip(keepers, states, strict=True)), return_exceptions=True
        )
        assert sorted(map(str, (one for one in done if isinstance(one, int)))) == ["1"]
        assert sum(isinstance(one, Conflict) for one in done) == 7
        assert keepers[0].thread.logbook.head() == 1

    asyncio.run(work())


def test_an_older_revision_is_gone_on_from(store: holdfast.Store) -> None:
    async def work() -> None:
        keeper, found = HoldfastStateKeeper(store, "s"), Plain()
        for text in "abc":
            await keeper.keep(Plain({"messages": [said(text)]}))
        assert await keeper.restore(found, revision=1) == 1
        assert found.state == {"messages": [said("a")]}
        assert await keeper.keep(Plain({"messages": [said("a"), said("d")]})) == 4
        with pytest.raises(NotFound):
            await keeper.restore(found, revision=9)

    asyncio.run(work())


def test_a_thread_that_was_rewound_gives_what_it_had(store: holdfast.Store) -> None:
    async def work() -> None:
        keeper, found = HoldfastStateKeeper(store, "s"), Plain()
        await keeper.keep(Plain({"messages": [said("a")]}))
        keeper.thread.checkpoint("before")
        await keeper.keep(Plain({"messages": [said("a"), said("b")]}))
        keeper.thread.rewind("before")
        await keeper.restore(found)
        assert found.state == {"messages": [said("a")]}
        await keeper.keep(Plain({"messages": [said("a"), said("c")]}))
        await HoldfastStateKeeper(store, "s").restore(found)
        assert found.state == {"messages": [said("a"), said("c")]}
        twin = HoldfastStateKeeper(store, keeper.thread.fork("twin").id)
        await twin.restore(found)
        assert found.state == {"messages": [said("a"), said("c")]}

    asyncio.run(work())


@pytest.mark.parametrize("wrong", [{"x": {1, 2}}, {"x": float("nan")}, {"x": 2**70}, {"messages": [said("\ud800")]}])
def test_a_state_that_cannot_come_back_is_refused(store: holdfast.Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        asyncio.run(HoldfastStateKeeper(store, "s").keep(Plain(wrong)))
    assert not store.thread("s").exists()


def test_a_thread_belongs_to_its_user(store: holdfast.Store) -> None:
    asyncio.run(HoldfastStateKeeper(store, "s", user="ana").keep(Plain({"messages": [said("a")]})))
    with pytest.raises(Invalid, match="belongs to user"):
        asyncio.run(HoldfastStateKeeper(store, "s", user="ben").restore(Plain()))
    store.erase(user="ana")
    assert asyncio.run(HoldfastStateKeeper(store, "s", user="ana").restore(Plain())) == 0


def test_a_store_that_was_opened_by_the_keeper_is_closed_by_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with HoldfastStateKeeper(tmp_path / "agent.db", "s") as keeper:
            await keeper.keep(Plain({}))
        with pytest.raises(Misconfigured):
            await keeper.keep(Plain({}))

    asyncio.run(work())


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[holdfast.Store]:
    """The stores that adapters opened themselves."""
    stores: list[holdfast.Store] = []

    def opening(*given: Any) -> holdfast.Store:
        stores.append(holdfast.open(*given))
        return stores[-1]

    monkeypatch.setattr("holdfast.extension.open_store", opening)
    return stores


def closed(store: holdfast.Store) -> bool:
    try:
        store.threads()
    except Misconfigured:
        return True
    return False


def test_what_is_refused_leaves_no_store_open(made: list[holdfast.Store]) -> None:
    for refused in (
        lambda: HoldfastStateKeeper("ram:", ""),
        lambda: HoldfastStateKeeper("ram:", "t", user=""),
        lambda: HoldfastMemory("ram:", user=""),
        lambda: HoldfastMemory("ram:", k=0),
        lambda: HoldfastMemory("ram:", k=1_001),
    ):
        with pytest.raises(Invalid):
            refused()
    assert all(map(closed, made))
    assert len(made) == 3


def test_who_forgot_to_restore_is_told_so(store: holdfast.Store) -> None:
    async def work() -> None:
        await HoldfastStateKeeper(store, "t").keep(Plain({"n": 1}))
        with pytest.raises(Conflict, match=r"another state of 't' .* await keeper\.restore"):
            await HoldfastStateKeeper(store, "t").keep(Plain({"n": 2}))

    asyncio.run(work())


def test_recall_finds_what_was_said_and_none_of_its_copies(store: holdfast.Store) -> None:
    async def work() -> None:
        memory = HoldfastMemory(store, user="ana", k=1)
        await memory.add(MemoryContent(content="Ana sits on the aisle", mime_type=MemoryMimeType.TEXT))
        keeper = HoldfastStateKeeper(store, "team-1", user="ana")
        for question in ("Where does Ana sit?", "Where does she sit on trains?"):
            desk = AssistantAgent("desk", ReplayChatCompletionClient(["There, as ever."]), memory=[memory])
            team = RoundRobinGroupChat([desk], termination_condition=MaxMessageTermination(2))
            await keeper.restore(team)
            await team.run(task=question)
            await keeper.keep(team)

    asyncio.run(work())
    names = {entry.content["name"] for entry in store.thread("team-1").log() if entry.kind == "event"}
    assert "holdfast.autogen.context" in names
    assert "holdfast.autogen.MemoryQueryEvent" in names
    found = [hit.text for hit in store.memory(user="ana").recall("where does Ana sit on the aisle", 50)]
    said = ["Where does Ana sit?", "Where does she sit on trains?", "There, as ever.", "There, as ever."]
    assert sorted(found) == sorted(["Ana sits on the aisle", *said])
