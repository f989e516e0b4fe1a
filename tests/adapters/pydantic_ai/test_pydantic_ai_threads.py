"""A conversation is a thread: what all else in Holdfast sees of it, and what it promises beyond the interface."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

import holdfast
from holdfast import errors
from holdfast.adapters.pydantic_ai import HoldfastConversations
from holdfast.archive.contents import KINDS, LEASE
from holdfast.engine.codec import encode
from holdfast.engine.contract import Put, Query, Scope
from holdfast.ledger.state import StateBook

pytestmark = pytest.mark.anyio


def turn(text: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(text)]), ModelResponse(parts=[TextPart(f"{text}!")])]


def texts(conversation: Conversation | None) -> list[str]:
    assert conversation is not None
    return [str(message.parts[0].content) for message in conversation.messages]


async def saved(kept: HoldfastConversations, id: str, *turns: str, scope: str | None = None) -> Conversation:
    conversation = Conversation(messages=[message for text in turns for message in turn(text)], conversation_id=id)
    await kept.save(conversation, scope=scope)
    return conversation


def log(store: holdfast.Store, id: str) -> list[tuple[str, str]]:
    return [(entry.content["role"], entry.content["content"]) for entry in store.thread(id).log()]


# The thread


async def test_the_log_of_the_thread_is_the_history(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store, agent="travel")
    first = await saved(kept, "talk", "one", "two", scope="ana")
    assert log(store, "talk") == [("user", "one"), ("assistant", "one!"), ("user", "two"), ("assistant", "two!")]
    entries = await kept.load_entries("talk") or []
    assert [entry.key for entry in store.thread("talk").log()] == [entry.id for entry in entries]
    info = store.thread("talk").info()
    assert (info.user, info.agent, info.tags) == ("ana", "travel", ("pydantic-ai",))

    there = await kept.branch("talk", at=2, expected_revision=first.revision)
    assert log(store, "talk") == [("user", "one"), ("assistant", "one!")]
    there.messages += turn("other")
    await kept.save(there)
    assert log(store, "talk")[2:] == [("user", "other"), ("assistant", "other!")]
    [left] = store.thread("talk").checkpoints()
    assert (left.name, left.entries) == (f"branch-{entries[-1].id}", 4)

    await kept.fork("talk", at=3, new_conversation_id="fork")
    assert log(store, "fork") == log(store, "talk")[:3]
    assert store.verify().ok


async def test_recall_finds_what_was_said(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    await saved(kept, "talk", "the ferry to Naxos leaves at seven", "thanks", scope="ana")
    await saved(kept, "other", "the ferry to Paros leaves at nine", scope="ben")
    [hit] = [hit for hit in store.memory(user="ana").recall("when does the ferry leave?", k=1)]
    assert hit.entry is not None
    assert (hit.entry.thread, hit.entry.content["role"]) == ("talk", "user")
    await kept.delete("talk")
    assert not [hit for hit in store.memory(user="ana").recall("ferry Naxos") if "Naxos" in hit.text]
    assert store.verify().ok


async def test_what_a_tool_returned_is_trusted_least(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    messages = [*turn("look"), ModelRequest(parts=[ToolReturnPart("page", "the password is swordfish", "c1")])]
    await kept.save(Conversation(messages=messages, conversation_id="talk"), scope="ana")
    found = {hit.entry.number: hit.trust for hit in store.memory(user="ana").recall("swordfish look") if hit.entry}
    assert found[3] == "untrusted"
    assert found[1] == "stated"


@pytest.mark.every_engine
async def test_a_save_is_one_commit(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    first = await saved(kept, "talk", "one")
    assert len(list(store.watch(timeout_s=0))) == 1
    first.messages += turn("two")
    await kept.save(first)
    assert len(list(store.watch(timeout_s=0))) == 2
    rewritten = Conversation(messages=turn("three"), conversation_id="talk", revision=first.revision)
    await kept.save(rewritten)
    assert len(list(store.watch(timeout_s=0))) == 3
    await kept.fork("talk")
    assert len(list(store.watch(timeout_s=0))) == 4


async def test_a_message_is_stored_once(tmp_path: Path) -> None:
    words = "sesquipedalian"
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
        kept = HoldfastConversations(store)
        talk = await saved(kept, "talk", words)
        for number in range(3):
            talk.messages += turn(f"turn {number}")
            await kept.save(talk)
            await kept.fork("talk")
    assert b"".join(file.read_bytes() for file in tmp_path.iterdir()).count(words.encode()) == 2  # question and answer


async def test_what_was_deleted_is_not_in_the_file(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
        kept = HoldfastConversations(store)
        talk = await saved(kept, "talk", "swordfish", "barracuda")
        store.thread("other").append(*({"role": "user", "content": f"word{number}"} for number in range(300)))
        assert store.memory().recall("barracuda")
        assert store.rebuild() > 300  # an index is saved, and it knows the conversation
        await kept.branch("talk", at=1, expected_revision=talk.revision)
        await kept.fork("talk", at=1, new_conversation_id="fork")
        await kept.delete("talk")
        assert store.verify().ok
        assert texts(await kept.load("fork")) == ["swordfish"]
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"barracuda" not in left
    assert b"swordfish!" not in left
    assert b"swordfish" in left


async def test_others_may_write_to_the_thread(store: holdfast.Store) -> None:
    kept, thread = HoldfastConversations(store), store.thread("talk")
    talk = await saved(kept, "talk", "one", scope="ana")
    thread.append(holdfast.note("called back"), {"role": "user", "content": "by mail"})
    thread.patch("mood", "good")
    talk.messages += turn("two")
    await kept.save(talk)
    thread.append(holdfast.note("and again"))
    assert texts(await kept.load("talk")) == ["one", "one!", "two", "two!"]
    assert texts(await kept.load("talk", limit=3)) == ["one!", "two", "two!"]
    assert thread.state().value["mood"] == "good"
    assert [entry.kind for entry in thread.log()] == [
        "message",
        "message",
        "note",
        "message",
        "message",
        "message",
        "note",
    ]
    entries = await kept.load_entries("talk") or []
    assert [entry.parent_id for entry in entries] == [None, *(entry.id for entry in entries[:-1])]


async def test_a_thread_that_was_rewound_by_hand_ends_where_its_log_does(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    talk = await saved(kept, "talk", "one")
    talk.messages += turn("two")
    await kept.save(talk)
    store.thread("talk").rewind(3)
    again = await kept.load("talk")
    assert texts(again) == ["one", "one!", "two"]
    assert again is not None
    again.messages.append(turn("otherwise")[1])
    await kept.save(again)
    assert texts(await kept.load("talk")) == ["one", "one!", "two", "otherwise!"]


@pytest.mark.every_engine
async def test_who_was_active_without_being_saved_is_not_listed_first(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    for number in range(5):
        await saved(kept, f"talk-{number}", "one")
    for number in range(3):
        store.thread(f"talk-{number}").append(holdfast.note("called back"))
    listed = [record.conversation_id for record in await kept.list_conversations()]
    assert listed == ["talk-4", "talk-3", "talk-2", "talk-1", "talk-0"]
    for limit in range(6):
        few = await kept.list_conversations(limit=limit)
        assert [record.conversation_id for record in few] == listed[:limit]


# Restarts and others


async def test_it_is_there_after_a_restart(tmp_path: Path) -> None:
    place = tmp_path / "agent.db"
    with holdfast.open(place, embedder="none") as store:
        talk = await saved(HoldfastConversations(store), "talk", "one", "two")
        branched = await HoldfastConversations(store).branch("talk", at=2, expected_revision=talk.revision)
        branched.messages += turn("other")
        await HoldfastConversations(store).save(branched)
    kept = HoldfastConversations(place)
    try:
        again = await kept.load("talk")
        assert again is not None
        assert again.messages == branched.messages
        record = await kept.read_record("talk")
        assert record is not None
        assert len(await kept.read_history(record.branches[0])) == 4
        again.messages += turn("three")
        await kept.save(again)
    finally:
        kept.close()
    with pytest.raises(errors.Misconfigured):
        await kept.load("talk")


async def test_a_store_that_was_given_is_left_open(store: holdfast.Store) -> None:
    HoldfastConversations(store).close()
    assert await HoldfastConversations(store).load("talk") is None


async def test_an_entry_is_found_by_whoever_has_not_seen_it(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    for number in range(5):
        talk = await saved(kept, f"talk-{number}", "one", "two")
        entries = await kept.load_entries(f"talk-{number}") or []
        await kept.branch(f"talk-{number}", at=1, expected_revision=talk.revision)
        for entry in entries:
            assert await HoldfastConversations(store).read_entry(entry.id) == entry


async def test_of_many_who_save_at_once_one_wins(tmp_path: Path) -> None:
    place = tmp_path / "agent.db"
    with holdfast.open(place, embedder="none") as ours, holdfast.open(place, embedder="none") as theirs:
        both = [HoldfastConversations(ours), HoldfastConversations(theirs)]
        await saved(both[0], "talk", "zero")
        for count in range(5):
            copies = [await both[number % 2].load("talk") for number in range(8)]
            for number, copy in enumerate(copies):
                assert copy is not None
                copy.messages += turn(f"{count} by {number}")
            tries = [both[number % 2].save(copy) for number, copy in enumerate(copies) if copy is not None]
            ended = await asyncio.gather(*tries, return_exceptions=True)
            assert sorted(type(end).__name__ for end in ended) == ["ConversationConflict"] * 7 + ["list"]
            won = [number for number, end in enumerate(ended) if isinstance(end, list)]
            assert texts(await both[0].load("talk"))[-2:] == [f"{count} by {won[0]}", f"{count} by {won[0]}!"]
        assert len(ours.thread("talk").log()) == 12
        assert ours.verify().ok


@pytest.mark.every_engine
async def test_of_many_who_begin_at_once_one_wins(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    ended = await asyncio.gather(*(saved(kept, "talk", f"by {n}") for n in range(8)), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ended) == ["Conversation"] + ["ConversationConflict"] * 7
    assert store.thread("talk").logbook.head() == 2


async def test_a_save_and_a_deletion_at_once_do_not_both_count(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    for number in range(10):
        talk = await saved(kept, f"talk-{number}", "one")
        revision = str(talk.revision)
        talk.messages += turn("two")
        ended = await asyncio.gather(
            kept.save(talk),
            kept.delete_record(f"talk-{number}", expected_revision=revision),
            return_exceptions=True,
        )
        assert sum(isinstance(end, ConversationConflict) for end in ended) == 1, ended
        left = await kept.load(f"talk-{number}")
        assert (left is None) == isinstance(ended[0], ConversationConflict)


async def test_forking_what_is_being_deleted_gives_a_whole_fork_or_none(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    for number in range(10):
        await saved(kept, f"talk-{number}", "one", "two")
        entries = await kept.load_entries(f"talk-{number}") or []
        fork = ConversationRecord(conversation_id=f"fork-{number}", head_id=entries[2].id)
        ended = await asyncio.gather(
            kept.write_record(fork, expected_revision=None), kept.delete(f"talk-{number}"), return_exceptions=True
        )
        if ended[0] is None:
            assert texts(await kept.load(f"fork-{number}")) == ["one", "one!", "two"]
        else:
            assert isinstance(ended[0], ConversationConflict)
            assert not store.thread(f"fork-{number}").exists()
    assert store.verify().ok


# Whose it is


async def test_another_users_conversation_is_not_there(store: holdfast.Store) -> None:
    ana, ben = HoldfastConversations(store, user="ana"), HoldfastConversations(store, user="ben")
    await saved(ana, "talk", "one", scope="web")
    entries = await ana.load_entries("talk") or []
    assert await ben.load("talk") is None
    assert await ben.list_conversations() == []
    with pytest.raises(LookupError):
        await ben.read_entry(entries[0].id)
    with pytest.raises(ConversationConflict):
        await saved(ben, "talk", "two")
    with pytest.raises(ConversationConflict):
        await ben.write_record(
            ConversationRecord(conversation_id="fork", head_id=entries[0].id), expected_revision=None
        )
    assert store.thread("talk").info().user == "ana"
    assert [record.scope for record in await ana.list_conversations(scope="web")] == ["web"]
    everybody = HoldfastConversations(store)
    again = await everybody.load("talk", scope="web")
    assert again is not None
    again.messages += turn("two")
    await everybody.save(again)
    assert len(texts(await ana.load("talk"))) == 4


async def test_erasing_a_user_takes_the_conversations_of_that_scope(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    late = await saved(kept, "talk", "one", scope="ana")
    await saved(kept, "other", "one", scope="ben")
    store.erase(user="ana")
    assert await kept.load("talk") is None
    assert [record.conversation_id for record in await kept.list_conversations()] == ["other"]
    late.messages += turn("two")
    with pytest.raises(ConversationConflict):
        await kept.save(late)
    with pytest.raises(errors.Erased):
        await saved(kept, "talk", "back again", scope="ana")


# What cannot be


async def test_a_newer_format_is_refused(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    talk = await saved(kept, "talk", "one")
    store.thread("talk").patch('["$framework"].pydantic_ai.format_version', 2)
    for attempt in (kept.load("talk"), kept.save(talk), kept.list_conversations(), kept.delete("talk")):
        with pytest.raises(errors.SchemaTooNew, match="'talk' is of format 2"):
            await attempt
    assert store.thread("talk").logbook.head() == 2


async def test_a_message_that_nobody_knows_is_an_error_not_a_gap(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    await saved(kept, "talk", "one")
    unknown = {"kind": "request", "parts": [{"part_kind": "telepathy", "content": "hm"}]}
    store.thread("talk").append({"role": "user", "content": "hm", "$framework": {"pydantic_ai": unknown}}, key="new")
    store.thread("talk").patch('["$framework"].pydantic_ai.head_id', "new")
    with pytest.raises(errors.Unsupported, match="cannot read these messages"):
        await kept.load("talk")


async def test_a_thread_of_something_else_is_not_taken_over(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    store.thread("talk").append({"role": "user", "content": "hello"})
    store.thread("talk").save({"goal": "Naxos"})
    assert await kept.load("talk") is None
    assert await kept.list_conversations() == []
    with pytest.raises(errors.Invalid, match="not a Pydantic AI conversation"):
        await saved(kept, "talk", "one")
    assert store.thread("talk").state().value == {"goal": "Naxos"}


@pytest.mark.parametrize("id", ["", "x" * 513, "a\x00b", "\ud800", 7])
async def test_what_is_no_id_is_refused(store: holdfast.Store, id: object) -> None:
    kept = HoldfastConversations(store)
    with pytest.raises(errors.Invalid):
        await kept.load(id)  # type: ignore[arg-type]
    with pytest.raises(errors.Invalid):
        await kept.write_record(ConversationRecord(conversation_id=id, head_id=None), expected_revision=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["\ud800", 2**70, object()])
async def test_a_message_that_cannot_be_kept_leaves_nothing_behind(store: holdfast.Store, bad: object) -> None:
    kept = HoldfastConversations(store)
    talk = await saved(kept, "talk", "one")
    talk.messages += [*turn("two"), ModelRequest(parts=[ToolReturnPart("t", bad, "c1")])]
    with pytest.raises(errors.Invalid):
        await kept.save(talk)
    assert texts(await kept.load("talk")) == ["one", "one!"]
    assert store.thread("talk").logbook.head() == 2


async def test_what_is_no_json_comes_back_as_pydantic_ai_writes_it(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    odd = {"set": {1}, "nan": float("nan"), "when": datetime(2026, 3, 1, tzinfo=UTC), "tuple": (1, (2,))}
    messages: list[ModelMessage] = [ModelRequest(parts=[ToolReturnPart("t", odd, "c1")])]
    await kept.save(Conversation(messages=messages, conversation_id="talk"))
    talk = await kept.load("talk")
    assert talk is not None
    assert talk.messages == ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))


async def test_new_entries_must_be_one_line_to_the_head(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    one, two = (ConversationEntry(parent_id=None, message=message) for message in turn("one"))
    with pytest.raises(errors.Invalid, match="one line"):
        await kept.write_record(
            ConversationRecord(conversation_id="talk", head_id=two.id), new_entries=[one, two], expected_revision=None
        )
    with pytest.raises(errors.Invalid, match="ends at"):
        await kept.write_record(
            ConversationRecord(conversation_id="talk", head_id=None), new_entries=[one], expected_revision=None
        )
    assert not store.thread("talk").exists()


async def test_an_entry_is_new_or_it_is_refused(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    talk = await saved(kept, "talk", "one")
    entries, record = await kept.load_entries("talk") or [], await kept.read_record("talk")
    assert record is not None
    again = ConversationEntry(id=entries[0].id, parent_id=entries[1].id, message=entries[0].message)
    record.head_id = again.id
    with pytest.raises(errors.KeyReused):
        await kept.write_record(record, new_entries=[again], expected_revision=talk.revision)
    assert await kept.load_entries("talk") == entries


async def test_a_conversation_keeps_its_scope(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    talk = await saved(kept, "talk", "one", scope="ana")
    record = await kept.read_record("talk")
    assert record is not None
    record.scope = "ben"
    with pytest.raises(errors.Invalid, match="keeps the scope"):
        await kept.write_record(record, expected_revision=talk.revision)


@pytest.mark.parametrize(
    ("missing", "name", "told"),
    [
        ("pydantic_ai.conversation_store", "HoldfastConversations", "holdfast[pydantic-ai]"),
        ("pydantic_ai_harness.memory", "HoldfastMemoryStore", "holdfast[pydantic-ai-harness]"),
    ],
)
def test_a_framework_that_is_missing_is_named(missing: str, name: str, told: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom holdfast.adapters.pydantic_ai import {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert told in done.stderr
    other = "HoldfastMemoryStore" if name == "HoldfastConversations" else "HoldfastConversations"
    code = code.replace(f"import {name}", f"import {other}")
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


async def test_nothing_of_a_deleted_conversation_stays_behind(store: holdfast.Store) -> None:
    kept = HoldfastConversations(store)
    await saved(kept, "talk", "one")
    await saved(kept, "other", "one")
    engine, tenant, now = store.core.engine, store.tenant, store.core.clock.now()
    for kind in KINDS:
        if kind not in ("thread", "state", "memories", "memory"):
            puts = [Put(kind, f"{kind} of {id}", encode({}), scope=Scope(thread=id)) for id in ("talk", "other")]
            engine.commit(tenant, puts, now)
    await kept.delete("talk")
    assert [kind for kind in (*KINDS, LEASE) if engine.scan(tenant, Query(kind, thread="talk"))] == []
    assert len([kind for kind in KINDS if engine.scan(tenant, Query(kind, thread="other"))]) >= 9


async def test_conversations_may_be_a_block(tmp_path: Path) -> None:
    async with HoldfastConversations(tmp_path / "agent.db") as kept:
        await saved(kept, "talk", "one")
    with pytest.raises(errors.Misconfigured):
        await kept.load("talk")


async def test_a_deletion_while_the_state_is_read_is_a_conflict(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = HoldfastConversations(store)
    talk = await saved(kept, "talk", "one")
    real, gone = StateBook._event, []

    def late(book: StateBook, *given: Any) -> Any:
        if not gone:
            gone.append(True)
            kept._delete("talk", str(talk.revision))
        return real(book, *given)

    monkeypatch.setattr(StateBook, "_event", late)
    talk.messages += turn("two")
    with pytest.raises(ConversationConflict):
        await kept.save(talk)
    assert gone
    assert await kept.load("talk") is None
