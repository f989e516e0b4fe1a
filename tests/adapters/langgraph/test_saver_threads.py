"""Threads as a whole: how long they live, how they are found, copies by one commit, and what only a key can read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.adapters.langgraph.reading import Graph
from holdfast.errors import Corrupt, Invalid, Unsupported
from holdfast.testing import ManualClock

DAY_S = 86_400


def at(thread: str = "t", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, **more}}


def chat(saver: HoldfastSaver) -> Any:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [AIMessage(f"heard {state['messages'][-1].content}")]})
    return graph.add_edge(START, "answer").compile(checkpointer=saver)


def threads(saver: HoldfastSaver, **query: Any) -> list[str]:
    return [found.thread_id for found in saver.search_threads(**query)]


# How long they live


def test_a_thread_nothing_was_saved_in_for_long_is_deleted() -> None:
    clock = ManualClock()
    with holdfast.open("ram:", embedder="none", clock=clock) as store:
        saver = HoldfastSaver(store, ttl={"default_ttl": 30 * 24 * 60})
        chat(saver).invoke({"messages": ["hello"]}, at("old"))
        chat(saver).invoke({"messages": ["hello"]}, at("used"))
        clock.advance(20 * DAY_S)
        chat(saver).invoke({"messages": ["again"]}, at("used"))
        assert saver.sweep_ttl() == 0
        clock.advance(15 * DAY_S)
        assert saver.sweep_ttl() == 1
        assert threads(saver) == ["used"]
        assert not store.thread("old").exists()
        assert saver.get_tuple(at("old")) is None
        chat(saver).invoke({"messages": ["anew"]}, at("old"))
        assert [entry.content["content"] for entry in store.thread("old").log()] == ["anew", "heard anew"]


def test_a_graph_inside_another_keeps_their_thread_alive() -> None:
    clock = ManualClock()
    with holdfast.open("ram:", embedder="none", clock=clock) as store:
        saver = HoldfastSaver(store, ttl={"default_ttl": 60})
        chat(saver).invoke({"messages": ["hello"]}, at())
        clock.advance(3_600)
        made = saver.get_tuple(at())
        assert made is not None
        saver.put(at(checkpoint_ns="inner:1"), {**made.checkpoint, "id": "1"}, {}, {})
        clock.advance(1_800)
        assert saver.sweep_ttl() == 0
        clock.advance(1_801)
        assert saver.sweep_ttl() == 1


def test_old_checkpoints_go_and_the_newest_of_each_thread_stays(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept, ttl={"default_ttl": 1e-9, "strategy": "keep_latest"})
    for turn in range(3):
        chat(saver).invoke({"messages": [f"turn {turn}"]}, at())
    assert saver.sweep_ttl() == 8
    assert len(list(saver.list(at()))) == 1
    assert len(chat(HoldfastSaver(kept)).get_state(at()).values["messages"]) == 6
    assert saver.sweep_ttl() == 0


def test_without_a_time_to_live_nothing_goes(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    chat(saver).invoke({"messages": ["hello"]}, at())
    assert saver.sweep_ttl() == 0
    assert threads(saver) == ["t"]


def test_a_sweeper_ends_with_its_saver(tmp_path: Path) -> None:
    saver = HoldfastSaver(tmp_path / "agent.db", ttl={"default_ttl": 1, "sweep_interval_minutes": 1e-5})
    chat(saver).invoke({"messages": ["hello"]}, at())
    sweeper = saver.start_ttl_sweeper()
    assert saver.start_ttl_sweeper() is sweeper
    saver.close()
    assert sweeper.result(30) is None


@pytest.mark.parametrize(
    "ttl",
    [
        {"default_ttl": 0}, {"default_ttl": -1}, {"default_ttl": "1"}, {"default_ttl": float("nan")}, 60, "60",
        {"strategy": "delete"}, {"default_ttl": 1, "strategy": "archive"}, {"default_ttl": 1, "every": 2},
        {"default_ttl": 1, "sweep_interval_minutes": 0},
    ],
)  # fmt: skip
def test_a_time_to_live_that_makes_no_sense_is_refused(tmp_path: Path, ttl: Any) -> None:
    with pytest.raises(Invalid, match="ttl"):
        HoldfastSaver(tmp_path / "agent.db", ttl=ttl)
    assert list(tmp_path.iterdir()) == []


# How they are found


@pytest.mark.every_engine
def test_threads_are_found_by_what_their_newest_checkpoint_says(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    for number, (thread, plan) in enumerate([("a", "free"), ("b", "paid"), ("c", "paid"), ("a", "paid")]):
        config = {**at(thread, user_id=f"user {thread}"), "metadata": {"plan": plan, "number": number}}
        chat(saver).invoke({"messages": ["hello"]}, config)
    assert threads(saver) == ["a", "c", "b"]
    assert threads(saver, filter={"plan": "free"}) == []
    assert threads(saver, filter={"plan": "paid"}) == ["a", "c", "b"]
    assert threads(saver, filter={"plan": "paid", "number": 1}) == ["b"]
    assert threads(saver, user="user c") == ["c"]
    assert threads(saver, limit=2) == ["a", "c"]
    found = next(saver.search_threads({"number": 3}))
    assert (found.user, found.metadata["plan"], found.metadata["step"]) == ("user a", "paid", 4)
    newest = saver.get_tuple(at("a"))
    assert newest is not None
    assert found.checkpoint_id == newest.checkpoint["id"]
    with pytest.raises(Invalid, match="limit"):
        saver.search_threads(limit=-1)


# Copies


def test_a_copy_is_one_commit_and_shares_what_was_said(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    for turn in range(5):
        chat(saver).invoke({"messages": [f"turn {turn} " + "word " * 50]}, at(user_id="ana"))
    before = kept.core.engine.head(kept.tenant)
    saver.copy_thread("t", "copy")
    assert kept.core.engine.head(kept.tenant) == before + 1
    assert [entry.content for entry in kept.thread("copy").log()] == [entry.content for entry in kept.thread("t").log()]
    assert [info.id for info in kept.threads(user="ana")] == ["copy", "t"]
    chat(saver).invoke({"messages": ["on"]}, at("copy"))
    kept.thread("copy").rewind(to=11)
    chat(saver).invoke({"messages": ["and on"]}, at("copy"))
    saver.delete_thread("t")
    texts = [message.content for message in chat(HoldfastSaver(kept)).get_state(at("copy")).values["messages"]]
    assert (len(texts), texts[10:]) == (14, ["on", "heard on", "and on", "heard and on"])
    assert not [problem for problem in kept.verify().problems if problem.tenant == kept.tenant]


def test_a_thread_whose_log_was_rewound_is_not_copied(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    chat(saver).invoke({"messages": ["one"]}, at())
    kept.thread("t").rewind(to=1)
    with pytest.raises(Unsupported, match="rewound"):
        saver.copy_thread("t", "copy")
    assert not kept.thread("copy").exists()


# What only a key can read


def aes(key: bytes = b"0123456789abcdef") -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(key=key)


SECRET = "the password is swordfish"


def test_with_langgraphs_encryption_nothing_of_the_state_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with HoldfastSaver(path, serde=aes()) as saver:
        for turn in range(4):
            chat(saver).invoke({"messages": [f"{turn}: {SECRET} " * 20]}, at())
        assert saver.store.thread("t").log() == []
        assert saver.store.verify().ok
        assert list(Graph(saver.store.thread("t")).values()) == ["messages"]
        saver.retain(["t"], keep=2)
        saver.copy_thread("t", "copy")
    for file in tmp_path.iterdir():
        assert b"swordfish" not in file.read_bytes()
    for thread in ("t", "copy"):
        with HoldfastSaver(path, serde=aes()) as saver:
            messages = chat(saver).invoke({"messages": ["more"]}, at(thread))["messages"]
            assert [SECRET in message.content for message in messages] == [True] * 8 + [False, False]


def test_an_encrypted_conversation_grows_with_its_length(tmp_path: Path) -> None:
    """Also when each turn has a process of its own, that knows nothing of what was stored."""
    sizes = []
    for turns in (10, 20, 40):
        path = tmp_path / f"{turns}.db"
        for _ in range(turns):
            with HoldfastSaver(path, serde=aes()) as saver:
                chat(saver).invoke({"messages": [f"{SECRET} " * 20]}, at())
        sizes.append(path.stat().st_size)
    assert sizes[2] - sizes[1] < 3 * (sizes[1] - sizes[0])


def test_another_key_and_no_key_at_all_are_errors_and_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with HoldfastSaver(path, serde=aes()) as saver:
        chat(saver).invoke({"messages": [SECRET]}, at())
    for serde, error in ((aes(b"another key of 1"), Corrupt), (None, Unsupported)):
        with HoldfastSaver(path, serde=serde) as saver, pytest.raises(error, match=r"key|serde="):
            chat(saver).invoke({"messages": ["more"]}, at())
    with HoldfastSaver(path, serde=aes()) as saver:
        assert [each.content for each in chat(saver).get_state(at()).values["messages"]] == [SECRET, f"heard {SECRET}"]


def test_who_turns_encryption_on_later_still_reads_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with HoldfastSaver(path) as saver:
        chat(saver).invoke({"messages": ["in the open"]}, at())

    async def on() -> int:
        async with HoldfastSaver(path, serde=aes()) as saver:
            return len((await chat(saver).ainvoke({"messages": [HumanMessage(SECRET)]}, at()))["messages"])

    assert asyncio.run(on()) == 4
    with HoldfastSaver(path, serde=aes()) as saver:
        assert len(chat(saver).get_state(at()).values["messages"]) == 4
