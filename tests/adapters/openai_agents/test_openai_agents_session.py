"""``HoldfastSession`` by itself: what is kept where, what others see of it, what taking away means, bad input."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from agents import Session, SQLiteSession
from agents.memory import SessionSettings
from session_suite import CONVERSATION, said

import holdfast
from holdfast.adapters.openai_agents import MARK, HoldfastSession, to_draft
from holdfast.errors import Corrupt, Erased, Invalid, Misconfigured, TooLarge

T = TypeVar("T")
TALK: list[Any] = [
    {"role": "user", "content": "What is the weather in Oslo?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "ask the tool"}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "heavy rain until Thursday"},
    {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Take an umbrella.", "annotations": []}],
    },
]  # fmt: skip


def run(work: Awaitable[T]) -> T:
    async def waited() -> T:
        return await work

    return asyncio.run(waited())


def talk(store: holdfast.Store, *items: Any, **more: Any) -> HoldfastSession:
    session = HoldfastSession("trip", store, **more)
    run(session.add_items(list(items or TALK)))
    return session


# What the SDK asks for


def test_it_is_a_session(store: holdfast.Store) -> None:
    assert isinstance(HoldfastSession("trip", store), Session)


@pytest.mark.parametrize("settings", [SessionSettings(limit=2), {"limit": 2}])
def test_the_limit_of_the_settings_is_the_default(store: holdfast.Store, settings: Any) -> None:
    session = talk(store, session_settings=settings)
    assert session.session_settings == SessionSettings(limit=2)
    assert run(session.get_items()) == TALK[-2:]
    assert run(session.get_items(limit=4)) == TALK[-4:]
    session.session_settings = None
    assert run(session.get_items()) == TALK


def test_without_settings_there_is_no_limit(store: holdfast.Store) -> None:
    assert HoldfastSession("trip", store).session_settings == SessionSettings(limit=None)


@pytest.mark.parametrize("settings", [None, SessionSettings(), SessionSettings(limit=2), {"limit": 0}, {"limit": -1}])
def test_limits_mean_what_they_mean_in_the_bundled_session(store: holdfast.Store, settings: Any) -> None:
    ours, theirs = talk(store, session_settings=settings), SQLiteSession("trip", session_settings=settings)
    run(theirs.add_items(TALK))
    for limit in (None, 0, 1, 4, 5, 6, -1, -9):
        assert run(ours.get_items(limit)) == run(theirs.get_items(limit))
    theirs.close()


def test_unknown_settings_are_refused(store: holdfast.Store) -> None:
    with pytest.raises(TypeError, match="limits"):
        HoldfastSession("trip", store, session_settings={"limits": 2})


@pytest.mark.parametrize("given", ["address", "path", "async"])
def test_a_store_is_given_in_any_form(tmp_path: Path, given: str) -> None:
    async def there(path: Path) -> None:
        if given == "async":
            async with await holdfast.aio.open(path) as store:
                session = HoldfastSession("trip", store)
                await session.add_items(TALK)
                session.close()
                assert await session.get_items() == TALK  # it is not the session's to close
            return
        session = HoldfastSession("trip", str(path) if given == "address" else path)
        await session.add_items(TALK)
        session.close()
        with pytest.raises(Misconfigured):
            await session.get_items()

    run(there(tmp_path / "agent.db"))
    with holdfast.open(tmp_path / "agent.db") as store:
        assert run(HoldfastSession("trip", store).get_items()) == TALK


# What others see of it


def test_items_are_entries_that_logs_and_contexts_read(store: holdfast.Store) -> None:
    session = talk(store)
    entries = session.thread.log()
    assert [entry.kind for entry in entries] == ["message", "message", "tool_call", "observation", "message"]
    assert entries[0].content == {"role": "user", "content": "What is the weather in Oslo?", "$framework": {MARK: {}}}
    assert entries[2].content == {
        "id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}',
        "$framework": {MARK: {"type": "function_call", "id": "fc_1"}},
    }  # fmt: skip
    shown = store.context(session.thread, "And on Friday?", budget=4_000).messages("openai")
    calls = [call["id"] for message in shown for call in message.get("tool_calls", ())]
    results = [(message["tool_call_id"], message["content"]) for message in shown if message["role"] == "tool"]
    assert calls == ["call_1"]
    assert results == [("call_1", "heavy rain until Thursday")]
    assert "Take an umbrella." in str(shown)


def test_every_item_is_stored_once(store: holdfast.Store) -> None:
    session = talk(store, {"type": "function_call_output", "call_id": "c", "output": "needle " * 10, "status": None})
    assert str(session.thread.log()[0].content).count("needle") == 10


def test_items_are_recalled(store: holdfast.Store) -> None:
    talk(store, user="ana")
    hits = store.memory(user="ana").recall("heavy rain").hits
    assert "heavy rain until Thursday" in [hit.text for hit in hits]
    assert not store.memory(user="ben").recall("heavy rain").hits


def test_what_nobody_can_read_is_neither_shown_nor_recalled(store: holdfast.Store) -> None:
    sealed = {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "gAAAAsealed"}
    compacted = {"type": "compaction", "id": "cmp", "encrypted_content": "gAAAAsealed"}
    session = talk(
        store, *said("hello"), sealed, compacted, {"type": "reasoning", "id": "r", "summary": []}, user="ana"
    )
    assert "sealed" not in str(store.context(session.thread, "gAAAAsealed?", budget=4_000).messages("openai")[:-1])
    assert not [hit for hit in store.memory(user="ana").recall("gAAAAsealed").hits if "sealed" in hit.text]
    assert run(session.get_items())[1:3] == [sealed, compacted]


def test_what_others_write_into_the_thread_is_no_item(store: holdfast.Store) -> None:
    session = talk(store, *said("1"))
    session.thread.append({"role": "user", "content": "from another program"})
    session.thread.append(holdfast.note("checked"), holdfast.event("paid", amount=3))
    for odd in ("odd", {}, 7, None, [{}]):
        session.thread.append(
            {"$framework": {MARK: odd}, "text": "x"}, {"role": "user", "content": "x", "$framework": odd}
        )
    session.thread.append(holdfast.event("x", **{"$framework": {MARK: 7}}))
    run(session.add_items(said("2")))
    assert run(session.get_items()) == said("1", "2")
    assert run(session.get_items(limit=2)) == said("1", "2")
    assert session.thread.logbook.head() == 16


def test_a_limit_reads_no_more_than_it_must(store: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = talk(store, *said(*(str(number) for number in range(3_000))))
    read, count = store.core.engine.read, []

    def counted(*args: Any, **kwargs: Any) -> Any:
        events = read(*args, **kwargs)
        count.append(len(events))
        return events

    monkeypatch.setattr(store.core.engine, "read", counted)
    assert len(run(session.get_items(limit=7))) == 7
    assert sum(count) == 7
    assert run(session.get_items(limit=0)) == []
    assert sum(count) == 7


# Taking away


def test_popping_hides_and_leaves_what_others_wrote(store: holdfast.Store) -> None:
    session = talk(store, *said("1", "2"))
    session.thread.save({"seats": 2})
    session.thread.append(holdfast.note("checked"), holdfast.note("twice"), key="n")
    before = session.thread.log()
    assert run(session.pop_item()) == said("2")[0]
    after = session.thread.log()
    assert [entry.content for entry in after] == [before[0].content, {"text": "checked"}, {"text": "twice"}]
    assert [entry.time for entry in after] == [before[at].time for at in (0, 2, 3)]
    assert session.thread.state().value == {"seats": 2}
    assert session.thread.append(holdfast.note("checked"), holdfast.note("twice"), key="n") == after[1:]
    assert not store.verify().problems


def test_what_was_popped_is_reached_by_a_checkpoint(store: holdfast.Store) -> None:
    session = talk(store, *said("1", "2", "3"))
    run(session.pop_item())
    run(session.pop_item())
    first, second = session.thread.checkpoints()
    session.thread.fork("as it was", at=first.name)
    assert run(HoldfastSession("as it was", store).get_items()) == said("1", "2", "3")
    session.thread.rewind(second.name)
    assert run(session.get_items()) == said("1", "2")


def test_clearing_hides_items_and_what_was_made_of_them(store: holdfast.Store) -> None:
    session = HoldfastSession("trip", store, user="ana")
    session.thread.append(holdfast.note("first"))
    run(session.add_items(said("my secret is plum", "2")))
    session.thread.append({"first": 1, "last": 3, "text": "the secret is plum", "by": "model"}, kind="summary")
    session.thread.append(holdfast.note("last"))
    run(session.clear_session())
    run(session.add_items(said("3")))
    assert [entry.content.get("text") for entry in session.thread.log()] == ["first", "last", None]
    assert run(session.get_items()) == said("3")
    assert not [hit for hit in store.memory(user="ana").recall("plum").hits if "plum" in hit.text]
    assert not store.verify().problems


def test_clearing_a_session_without_items_writes_nothing(store: holdfast.Store) -> None:
    session = HoldfastSession("trip", store)
    run(session.clear_session())
    assert not session.thread.exists()
    session.thread.append(holdfast.note("n"))
    run(session.clear_session())
    assert run(session.pop_item()) is None
    assert session.thread.checkpoints() == []
    assert session.thread.logbook.head() == 1


@pytest.mark.every_engine
def test_items_are_replaced_in_one_commit(store: holdfast.Store) -> None:
    session = HoldfastSession("trip", store)
    run(session.replace_items(said("0")))
    session.thread.append(holdfast.note("n"))
    run(session.replace_items(said("1", "2")))
    commits = len(store.core.engine.feed(store.tenant, limit=1_000))
    run(session.replace_items(said("3")))
    assert len(store.core.engine.feed(store.tenant, limit=1_000)) == commits + 1
    assert run(session.get_items()) == said("3")
    assert session.thread.log()[0].content == {"text": "n"}
    with pytest.raises(Invalid):
        run(session.replace_items([*said("4"), {"role": "user", "content": object()}]))
    assert run(session.get_items()) == said("3")


@pytest.mark.every_engine
@pytest.mark.parametrize("pruned", [[], ["1"], ["1", "2"], ["2"]])
def test_the_end_is_replaced_and_the_beginning_pruned_in_one_commit(store: holdfast.Store, pruned: list[str]) -> None:
    session = HoldfastSession("trip", store)
    for text in "1234":
        run(session.add_items(said(text)))
        session.thread.append(holdfast.note(f"after {text}"))
    snapshot = run(session._get_compaction_snapshot(2, prune_prefix=lambda item: item["content"] in pruned))
    assert snapshot is not None
    assert (snapshot.items, snapshot.complete) == (said("3", "4"), False)
    commits = len(store.core.engine.feed(store.tenant, limit=1_000))
    assert run(snapshot.replace_suffix(1, said("new")))
    assert len(store.core.engine.feed(store.tenant, limit=1_000)) == commits + 1
    kept = [text for text in "12" if pruned[:1] != ["1"] or text not in pruned]  # what is pruned is at the beginning
    assert run(session.get_items()) == said(*kept, "3", "new")
    notes = [entry.content["text"] for entry in session.thread.log() if entry.kind == "note"]
    assert notes == [f"after {text}" for text in "1234"]
    session.thread.rewind(session.thread.checkpoints()[-1].name)
    assert run(session.get_items()) == said(*"1234")
    assert not store.verify().problems


@pytest.mark.every_engine
@pytest.mark.parametrize("meanwhile", ["added", "popped", "replaced", "cleared"])
def test_the_end_is_not_replaced_when_it_is_another_by_then(store: holdfast.Store, meanwhile: str) -> None:
    session = talk(store, *said("1", "2", "3"))
    snapshot = run(session._get_compaction_snapshot(3))
    assert snapshot is not None
    assert snapshot.complete
    match meanwhile:
        case "added":
            run(session.add_items(said("4")))
        case "popped":
            run(session.pop_item())
        case "replaced":
            run(session.replace_items(said("1", "2", "3!")))
        case "cleared":
            run(session.clear_session())
    then = session.thread.log()
    assert not run(snapshot.replace_suffix(0, said("new")))
    assert session.thread.log() == then


def test_a_subclass_that_changes_items_is_not_passed_by(store: holdfast.Store) -> None:
    class Loud(HoldfastSession):
        async def add_items(self, items: Any) -> None:
            await super().add_items([{**item, "content": item["content"].upper()} for item in items])

    session = Loud("trip", store)
    assert run(session._get_compaction_snapshot(3)) is None
    assert not run(session._atomic_replace_items(said("x")))


def test_erasing_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with holdfast.open(path) as store:
        session = talk(store, *said("the word is xylophone"), user="ana")
        run(session.clear_session())
        run(session.erase())
        with pytest.raises(Erased):
            run(session.add_items(said("again")))
        assert run(session.get_items()) == []
        assert run(session.pop_item()) is None
    assert b"xylophone" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_an_id_can_be_freed_by_erasing(store: holdfast.Store) -> None:
    session = talk(store)
    run(session.erase(forever=False))
    run(session.add_items(said("again")))
    assert run(session.get_items()) == said("again")


# Bad input


@pytest.mark.parametrize("limit", [2.0, "3", True])
def test_a_limit_that_is_no_number_of_items_is_refused(store: holdfast.Store, limit: Any) -> None:
    with pytest.raises(Invalid, match="limit"):
        run(talk(store).get_items(limit))


@pytest.mark.parametrize("id", ["", None, 7, "x" * 600, "\ud800"])
def test_an_id_that_cannot_be_one_is_refused(tmp_path: Path, id: Any) -> None:
    with pytest.raises(Invalid):
        HoldfastSession(id, tmp_path / "agent.db")


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(Invalid, match="give a store"):
        HoldfastSession("trip", 7)  # type: ignore[arg-type]


def test_the_session_of_another_user_is_not_touched(store: holdfast.Store) -> None:
    talk(store, *said("hers"), user="ana")
    other = HoldfastSession("trip", store, user="ben")
    for work in (other.get_items, other.pop_item, other.clear_session, other.erase, lambda: other.add_items(said("x"))):
        with pytest.raises(Invalid, match="belongs to user 'ana'"):
            run(work())
    assert run(HoldfastSession("trip", store, user="ana").get_items()) == said("hers")


def test_an_error_names_the_place(store: holdfast.Store) -> None:
    with pytest.raises(Invalid, match=r"content'\[1\]\.'text': text with a lone surrogate"):
        talk(store, {"role": "user", "content": ["a", {"text": "\ud800"}]})


def test_an_item_that_is_too_large_is_refused_with_the_limit(store: holdfast.Store) -> None:
    with pytest.raises(TooLarge, match="16,777,216"):
        talk(store, *said("x" * 17_000_000))


def test_what_cannot_be_read_any_more_is_said(tmp_path: Path) -> None:
    """A damaged item is an error, not a gap in the conversation."""
    import apsw  # noqa: PLC0415 - to break the file; nothing else here needs it

    with holdfast.open(tmp_path / "agent.db") as store:
        talk(store, *said("1", "2"))
    file = apsw.Connection(str(tmp_path / "agent.db"))
    file.execute("UPDATE events SET body = CAST('j1{' AS BLOB) WHERE position = 2")
    file.close()
    with holdfast.open(tmp_path / "agent.db") as store, pytest.raises(Corrupt):
        run(HoldfastSession("trip", store).get_items())


def test_without_the_sdk_it_says_what_to_install() -> None:
    script = "import sys; sys.modules['agents'] = None; import holdfast.adapters.openai_agents"
    failed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "ImportError: this needs the OpenAI Agents SDK: pip install 'holdfast[openai-agents]'" in failed.stderr


def test_drafts_are_plain_entries() -> None:
    """So that something that moves conversations can write items without the SDK's session."""
    assert [to_draft(item).kind for item in CONVERSATION] == [
        "message", "message", "message", "tool_call", "observation", "observation", "tool_call", "observation",
        "message", "message", "event", "event",
    ]  # fmt: skip


# Many processes

WORK = {
    "add": "for n in range(40): await session.add_items([said(n, 0), said(n, 1)])",
    "pop": "while (item := await session.pop_item()) is not None: print(item['content'])",
}


def processes(path: Path, what: str, names: str) -> list[str]:
    script = f"""
import asyncio, sys
from holdfast.adapters.openai_agents import HoldfastSession
def said(*numbers):
    return {{"role": "user", "content": ".".join([sys.argv[1], *map(str, numbers)])}}
async def work():
    session = HoldfastSession("trip", {str(path)!r})
    {WORK[what]}
    session.close()
asyncio.run(work())
"""
    begun = [
        subprocess.Popen([sys.executable, "-c", script, name], stdout=subprocess.PIPE, text=True) for name in names
    ]
    told = [process.communicate(timeout=120)[0] for process in begun]
    assert [process.returncode for process in begun] == [0] * len(names)
    return [line for out in told for line in out.splitlines()]


def test_processes_lose_nothing_and_pop_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    processes(path, "add", "abc")
    with holdfast.open(path) as store:
        found = [item["content"] for item in run(HoldfastSession("trip", store).get_items())]
    assert [text for text in found if text.startswith("b")] == [f"b.{n}.{m}" for n in range(40) for m in (0, 1)]
    assert all(found[at][:-1] == found[at + 1][:-1] for at in range(0, len(found), 2))  # each add stands together
    popped = processes(path, "pop", "xyz")
    assert sorted(popped) == sorted(found)
    assert len(popped) == 240
    with holdfast.open(path) as store:
        assert not store.verify().problems


def test_the_page_runs(page: Callable[[str], None]) -> None:
    page("openai_agents")


def test_the_example_remembers(example: Callable[..., str]) -> None:
    first, second = example("openai_agents.py"), example("openai_agents.py")
    assert "nothing yet" in first
    assert "nothing yet" not in second
    assert "aisle" in second


def test_a_session_may_be_a_block(tmp_path: Path) -> None:
    async def work() -> None:
        async with HoldfastSession("trip", tmp_path / "agent.db") as session:
            await session.add_items(TALK)
        with pytest.raises(Misconfigured):
            await session.get_items()
        async with holdfast.aio.open(tmp_path / "agent.db") as store:
            async with HoldfastSession("trip", store) as session:
                assert await session.get_items() == TALK
            assert await store.threads(), "a store that was given stays open"

    asyncio.run(work())
