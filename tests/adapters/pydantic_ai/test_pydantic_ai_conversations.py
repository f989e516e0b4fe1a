"""What any store of conversations must do: asked of the bundled one and of ours alike."""

from __future__ import annotations

import dataclasses

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage

pytestmark = pytest.mark.anyio


def turn(text: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(text)]), ModelResponse(parts=[TextPart(f"{text}!")])]


def texts(conversation: Conversation | None) -> list[str]:
    assert conversation is not None
    return [str(message.parts[0].content) for message in conversation.messages]


async def saved(store: ConversationStore, id: str, *turns: str, scope: str | None = None) -> Conversation:
    conversation = Conversation(messages=[message for text in turns for message in turn(text)], conversation_id=id)
    await store.save(conversation, scope=scope)
    return conversation


async def loaded(store: ConversationStore, id: str) -> Conversation:
    conversation = await store.load(id)
    assert conversation is not None
    return conversation


@pytest.mark.every_engine
async def test_an_agent_remembers_over_several_turns(conversations: ConversationStore) -> None:
    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        said = [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
        return ModelResponse(parts=[TextPart(f"heard {len(said)}: {', '.join(map(str, said))}")])

    agent = Agent(FunctionModel(answer))
    for number, text in enumerate(("one", "two", "three"), 1):
        conversation = await conversations.load("talk") or Conversation(conversation_id="talk")
        result = await agent.run(text, conversation=conversation)
        assert result.output.startswith(f"heard {number}: one")
        assert len(await conversations.save(result)) == 2
    kept = await loaded(conversations, "talk")
    assert kept.messages == result.all_messages()
    assert kept.usage.requests == 3


async def test_tool_calls_and_usage_survive(conversations: ConversationStore) -> None:
    agent = Agent(TestModel(), system_prompt="be kind", instructions="and brief")

    @agent.tool_plain
    def weather(city: str) -> dict[str, object]:
        return {"city": city, "warm": None, "degrees": [1, 2.5]}

    @agent.tool_plain
    def tides(city: str) -> str:
        return "low"

    result = await agent.run("hello", conversation=Conversation(conversation_id="talk"))
    await conversations.save(result)
    kept = await loaded(conversations, "talk")
    assert kept.messages == result.all_messages()
    assert kept.usage == result.usage
    again = await agent.run("and now?", conversation=kept)
    await conversations.save(again)
    assert (await loaded(conversations, "talk")).messages == again.all_messages()


async def test_deferred_calls_survive(conversations: ConversationStore) -> None:
    waiting = DeferredToolRequests(
        approvals=[ToolCallPart("pay", {"amount": 12.5}, "c1")],
        calls=[ToolCallPart("ask", '{"whom": "ana"}', "c2")],
        metadata={"c1": {"why": "over the limit"}},
    )
    usage = RunUsage(input_tokens=5, requests=2, details={"cached": 3})
    await conversations.save(
        Conversation(messages=turn("pay"), conversation_id="talk", usage=usage, deferred_tool_requests=waiting)
    )
    kept = await loaded(conversations, "talk")
    assert kept.deferred_tool_requests == waiting
    assert kept.usage == usage


async def test_there_is_nothing_at_first(conversations: ConversationStore) -> None:
    assert await conversations.load("talk") is None
    assert await conversations.load_entries("talk") is None
    assert await conversations.list_conversations() == []
    await conversations.delete("talk")
    with pytest.raises(LookupError):
        await conversations.read_entry("nowhere")
    with pytest.raises(LookupError):
        await conversations.read_history("nowhere")
    assert await conversations.read_history(None) == []


async def test_a_conversation_without_messages_is_one(conversations: ConversationStore) -> None:
    conversation = await saved(conversations, "talk")
    assert texts(await conversations.load("talk")) == []
    conversation.messages += turn("one")
    await conversations.save(conversation)
    assert texts(await conversations.load("talk")) == ["one", "one!"]


async def test_a_save_stores_what_is_new_and_links_it(conversations: ConversationStore) -> None:
    conversation = Conversation(messages=turn("one"), conversation_id="talk")
    first = await conversations.save(conversation)
    assert await conversations.save(conversation) == []
    conversation.messages += turn("two")
    second = await conversations.save(conversation)
    entries = await conversations.load_entries("talk")
    assert entries == [*first, *second]
    assert [entry.parent_id for entry in entries] == [None, *(entry.id for entry in entries[:-1])]
    for entry in entries:
        assert await conversations.read_entry(entry.id) == entry
    assert await conversations.load_entries("talk", limit=1) == entries[-1:]
    assert await conversations.read_history(entries[1].id) == entries[:2]


async def test_what_is_kept_is_a_copy(conversations: ConversationStore) -> None:
    conversation = await saved(conversations, "talk", "one")
    conversation.messages[0].parts[0].content = "changed"  # type: ignore[union-attr]
    conversation.usage.requests = 99
    kept = await loaded(conversations, "talk")
    kept.messages.clear()
    record = await conversations.read_record("talk")
    assert record is not None
    record.branches.append("changed")
    again = await conversations.read_record("talk")
    assert again is not None
    assert again.branches == []
    assert again.usage.requests == 0
    assert texts(await conversations.load("talk")) == ["one", "one!"]


async def test_a_window_is_saved_onto_the_whole(conversations: ConversationStore) -> None:
    await saved(conversations, "talk", "one", "two")
    window = await conversations.load("talk", limit=1)
    assert texts(window) == ["two!"]
    assert window is not None
    window.messages += turn("three")
    await conversations.save(window)
    assert texts(await conversations.load("talk")) == ["one", "one!", "two", "two!", "three", "three!"]
    assert texts(await conversations.load("talk", limit=0)) == []
    assert len(texts(await conversations.load("talk", limit=100))) == 6
    with pytest.raises(UserError):
        await conversations.load("talk", limit=-1)


async def test_a_history_that_was_rewritten_leaves_the_old_one_as_a_branch(conversations: ConversationStore) -> None:
    old = await saved(conversations, "talk", "one", "two")
    tip = (await conversations.load_entries("talk") or [])[-1].id
    new = Conversation(messages=[*old.messages[:2], *turn("other")], conversation_id="talk", revision=old.revision)
    assert len(await conversations.save(new)) == 2
    assert texts(await conversations.load("talk")) == ["one", "one!", "other", "other!"]
    record = await conversations.read_record("talk")
    assert record is not None
    assert record.branches == [tip]
    assert [str(entry.message.parts[0].content) for entry in await conversations.read_history(tip)][2:] == [
        "two",
        "two!",
    ]
    whole = Conversation(messages=turn("afresh"), conversation_id="talk", revision=new.revision)
    await conversations.save(whole)
    assert texts(await conversations.load("talk")) == ["afresh", "afresh!"]


async def test_branching_there_and_back(conversations: ConversationStore) -> None:
    first = await saved(conversations, "talk", "one", "two")
    entries = await conversations.load_entries("talk") or []
    there = await conversations.branch("talk", at=2, expected_revision=first.revision)
    assert texts(there) == texts(await conversations.load("talk")) == ["one", "one!"]
    there.messages += turn("other")
    await conversations.save(there)
    record = await conversations.read_record("talk")
    assert record is not None
    assert record.branches == [entries[-1].id]

    back = await conversations.branch("talk", from_entry=entries[-1].id, expected_revision=there.revision)
    assert texts(back) == ["one", "one!", "two", "two!"]
    assert await conversations.load_entries("talk") == entries
    record = await conversations.read_record("talk")
    assert record is not None
    [other] = record.branches
    back.messages += turn("three")
    await conversations.save(back)
    middle = (await conversations.read_history(other))[2].id
    inside = await conversations.branch("talk", from_entry=middle, expected_revision=back.revision)
    assert texts(inside) == ["one", "one!", "other"]
    nothing = await conversations.branch("talk", at=0, expected_revision=inside.revision)
    assert texts(nothing) == []
    nothing.messages += turn("afresh")
    await conversations.save(nothing)
    record = await conversations.read_record("talk")
    assert record is not None
    lines = [len(await conversations.read_history(tip)) for tip in record.branches]
    assert sorted(lines) == [3, 4, 6]


async def test_a_branch_that_cannot_be_made(conversations: ConversationStore) -> None:
    conversation = await saved(conversations, "talk", "one")
    other = await saved(conversations, "other", "one")
    for wrong in ({"at": 3}, {"at": -1}, {}, {"at": 1, "from_entry": "x"}, {"from_entry": "nowhere"}):
        with pytest.raises(UserError):
            await conversations.branch("talk", expected_revision=conversation.revision, **wrong)
    foreign = (await conversations.load_entries("other") or [])[0].id
    with pytest.raises(UserError):
        await conversations.branch("talk", from_entry=foreign, expected_revision=conversation.revision)
    with pytest.raises(UserError):
        await conversations.branch("nowhere", at=0, expected_revision=None)
    with pytest.raises(ConversationConflict):
        await conversations.branch("talk", at=1, expected_revision=other.revision)
    assert texts(await conversations.load("talk")) == ["one", "one!"]


async def test_a_fork_shares_its_history_and_goes_its_own_way(conversations: ConversationStore) -> None:
    first = await saved(conversations, "talk", "one", "two", scope="ana")
    fork = await conversations.fork("talk", at=2, new_conversation_id="fork", scope="ben")
    whole = await conversations.fork("talk")
    assert texts(fork) == ["one", "one!"]
    assert texts(whole) == texts(first)
    fork.messages += turn("mine")
    await conversations.save(fork)
    first.messages += turn("yours")
    await conversations.save(first)
    assert texts(await conversations.load("fork", scope="ben")) == ["one", "one!", "mine", "mine!"]
    assert texts(await conversations.load("talk")) == ["one", "one!", "two", "two!", "yours", "yours!"]
    assert texts(await conversations.load(whole.conversation_id, scope="ana")) == ["one", "one!", "two", "two!"]
    record = await conversations.read_record("fork")
    ours, theirs = await conversations.load_entries("fork") or [], await conversations.load_entries("talk") or []
    assert record is not None
    assert (record.forked_from, record.forked_at) == ("talk", theirs[1].id)
    assert ours[:2] == theirs[:2]
    again = await conversations.fork("fork", at=3)
    assert texts(again) == ["one", "one!", "mine"]
    empty = await conversations.fork("talk", at=0)
    assert texts(empty) == []
    empty.messages += turn("new")
    await conversations.save(empty)
    assert texts(await conversations.load(empty.conversation_id)) == ["new", "new!"]


async def test_a_fork_from_a_branch_that_was_left(conversations: ConversationStore) -> None:
    first = await saved(conversations, "talk", "one", "two")
    entries = await conversations.load_entries("talk") or []
    await conversations.branch("talk", at=1, expected_revision=first.revision)
    fork = await conversations.fork("talk", from_entry=entries[2].id, new_conversation_id="fork")
    assert texts(fork) == ["one", "one!", "two"]
    assert await conversations.load_entries("fork") == entries[:3]


async def test_a_fork_that_cannot_be_made(conversations: ConversationStore) -> None:
    await saved(conversations, "talk", "one", scope="ana")
    await saved(conversations, "taken", "two")
    with pytest.raises(ConversationConflict):
        await conversations.fork("talk", new_conversation_id="taken")
    with pytest.raises(UserError):
        await conversations.fork("nowhere")
    with pytest.raises(UserError):
        await conversations.fork("talk", source_scope="ben")
    with pytest.raises(UserError):
        await conversations.fork("talk", at=5)
    assert texts(await conversations.load("taken")) == ["two", "two!"]


async def test_a_scope_keeps_a_conversation_to_its_owner(conversations: ConversationStore) -> None:
    mine = await saved(conversations, "talk", "one", scope="ana")
    await saved(conversations, "open", "two")
    assert texts(await conversations.load("talk", scope="ana")) == ["one", "one!"]
    assert await conversations.load("talk", scope="ben") is None
    assert await conversations.load_entries("talk", scope="ben") is None
    assert await conversations.load("open", scope="ana") is None
    mine.messages += turn("three")
    with pytest.raises(ConversationConflict):
        await conversations.save(mine, scope="ben")
    await conversations.save(mine)
    await conversations.delete("talk", scope="ben")
    assert [record.scope for record in await conversations.list_conversations(scope="ana")] == ["ana"]
    assert await conversations.list_conversations(scope="ben") == []
    assert len(await conversations.list_conversations()) == 2
    await conversations.delete("talk", scope="ana")
    assert await conversations.load("talk") is None


@pytest.mark.every_engine
async def test_the_newest_are_listed_first(conversations: ConversationStore) -> None:
    every = [await saved(conversations, f"talk-{number}", "one", scope=f"user-{number % 2}") for number in range(6)]
    every[1].messages += turn("again")
    await conversations.save(every[1])
    listed = [record.conversation_id for record in await conversations.list_conversations()]
    assert listed == ["talk-1", "talk-5", "talk-4", "talk-3", "talk-2", "talk-0"]
    assert [record.conversation_id for record in await conversations.list_conversations(limit=2)] == listed[:2]
    few = await conversations.list_conversations(scope="user-0", limit=2)
    assert [record.conversation_id for record in few] == ["talk-4", "talk-2"]
    assert await conversations.list_conversations(limit=0) == []
    with pytest.raises(UserError):
        await conversations.list_conversations(limit=-1)


@pytest.mark.every_engine
async def test_of_two_who_save_the_second_is_refused(conversations: ConversationStore) -> None:
    await saved(conversations, "talk", "one")
    ours, theirs = await loaded(conversations, "talk"), await loaded(conversations, "talk")
    ours.messages += turn("ours")
    theirs.messages += turn("theirs")
    await conversations.save(ours)
    with pytest.raises(ConversationConflict) as refused:
        await conversations.save(theirs)
    assert refused.value.conversation_id == "talk"
    assert texts(await conversations.load("talk")) == ["one", "one!", "ours", "ours!"]
    with pytest.raises(ConversationConflict):
        await saved(conversations, "talk", "as if it were new")
    ours.messages += turn("more")
    await conversations.save(ours)
    assert len(texts(await conversations.load("talk"))) == 6


@pytest.mark.every_engine
async def test_what_was_deleted_is_gone_and_stays_so(conversations: ConversationStore) -> None:
    late = await saved(conversations, "talk", "one")
    entries = await conversations.load_entries("talk") or []
    await conversations.delete("talk")
    assert await conversations.load("talk") is None
    assert await conversations.list_conversations() == []
    with pytest.raises(LookupError):
        await conversations.read_entry(entries[0].id)
    late.messages += turn("late")
    with pytest.raises(ConversationConflict):
        await conversations.save(late)
    new = await saved(conversations, "talk", "afresh")
    assert new.revision != late.revision
    with pytest.raises(ConversationConflict):
        await conversations.save(late)
    assert texts(await conversations.load("talk")) == ["afresh", "afresh!"]
    with pytest.raises(ConversationConflict):
        await conversations.delete_record("talk", expected_revision=str(late.revision))
    with pytest.raises(ConversationConflict):
        await conversations.delete_record("nowhere", expected_revision="x")


async def test_a_fork_keeps_what_it_shares_with_what_was_deleted(conversations: ConversationStore) -> None:
    first = await saved(conversations, "talk", "one", "two")
    entries = await conversations.load_entries("talk") or []
    await conversations.fork("talk", at=2, new_conversation_id="fork")
    await conversations.branch("talk", at=3, expected_revision=first.revision)
    await conversations.delete("talk")
    assert await conversations.load_entries("fork") == entries[:2]
    assert await conversations.read_entry(entries[0].id) == entries[0]
    for gone in entries[2:]:
        with pytest.raises(LookupError):
            await conversations.read_entry(gone.id)
    await conversations.delete("fork")
    with pytest.raises(LookupError):
        await conversations.read_entry(entries[0].id)


async def test_a_record_that_points_nowhere_is_refused(conversations: ConversationStore) -> None:
    first = await saved(conversations, "talk", "one")
    with pytest.raises(ConversationConflict):
        await conversations.write_record(
            ConversationRecord(conversation_id="fork", head_id="nowhere"), expected_revision=None
        )
    record = await conversations.read_record("talk")
    assert record is not None
    with pytest.raises(ConversationConflict):
        await conversations.write_record(
            dataclasses.replace(record, head_id="nowhere"), expected_revision=first.revision
        )
    assert await conversations.load("fork") is None
    assert texts(await conversations.load("talk")) == ["one", "one!"]


async def test_a_fork_that_says_something_at_once(conversations: ConversationStore) -> None:
    await saved(conversations, "talk", "one")
    entries = await conversations.load_entries("talk") or []
    more = ConversationEntry(parent_id=entries[0].id, message=turn("x")[1])
    await conversations.write_record(
        ConversationRecord(conversation_id="fork", head_id=more.id), new_entries=[more], expected_revision=None
    )
    assert await conversations.load_entries("fork") == [entries[0], more]


async def test_a_message_may_be_said_twice(conversations: ConversationStore) -> None:
    conversation = Conversation(messages=[*turn("one"), *turn("one")], conversation_id="talk")
    conversation.messages[2:] = conversation.messages[:2]
    await conversations.save(conversation)
    entries = await conversations.load_entries("talk") or []
    assert len({entry.id for entry in entries}) == 4
    assert entries[0].message == entries[2].message
