"""Each message is in the log of its thread once, whatever a process forgets between reading and saving."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, keeper, known

AT: Any = {"configurable": {"thread_id": "t"}}


def chat(saver: HoldfastSaver, during: Callable[[Any], None] | None = None) -> Any:
    """A graph that answers once; ``during`` happens between its reading and its saving, and is given the graph."""

    def answer(state: MessagesState) -> dict[str, Any]:
        if during is not None:
            during(graph)
        return {"messages": [AIMessage(f"re {len(state['messages'])}")]}

    builder: Any = StateGraph(MessagesState)
    graph = builder.add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)
    return graph


def said(store: holdfast.Store, thread: str = "t") -> list[str]:
    return [entry.content["content"] for entry in store.thread(thread).log()]


def state(saver: HoldfastSaver) -> list[str]:
    return [message.content for message in chat(saver).get_state(AT).values["messages"]]


def talked(store: holdfast.Store, turns: int = 3) -> None:
    for turn in range(turns):
        chat(HoldfastSaver(store)).invoke({"messages": [HumanMessage(f"m{turn}")]}, AT)


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_when_old_checkpoints_go_in_the_middle_of_a_run(store: holdfast.Store, durability: str) -> None:
    talked(store)
    saver = HoldfastSaver(store)
    graph = chat(saver, lambda _: saver.retain(["t"], keep=1) and None)
    graph.invoke({"messages": [HumanMessage("x")]}, AT, durability=durability)
    assert said(store) == state(HoldfastSaver(store)) == ["m0", "re 1", "m1", "re 3", "m2", "re 5", "x", "re 7"]


def test_when_others_look_in_the_middle_of_a_run(store: holdfast.Store, durability: str) -> None:
    talked(store)
    graph = chat(HoldfastSaver(store), lambda graph: [graph.get_state(AT) for _ in range(4)] and None)
    graph.invoke({"messages": [HumanMessage("x")]}, AT, durability=durability)
    assert said(store) == state(HoldfastSaver(store))
    assert len(said(store)) == 8


def test_when_a_process_has_more_threads_than_it_keeps_in_mind(
    store: holdfast.Store, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_LINES", 2)
    talked(store)
    saver = HoldfastSaver(store)

    def others(_: Any) -> None:
        for number in range(5):
            chat(saver).invoke({"messages": [HumanMessage("hello")]}, {"configurable": {"thread_id": f"o{number}"}})

    chat(saver, others).invoke({"messages": [HumanMessage("x")]}, AT, durability=durability)
    assert said(store) == state(HoldfastSaver(store))
    assert len(said(store)) == 8


def test_when_threads_hold_more_messages_than_a_process_keeps_in_mind(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_MESSAGES", 3)
    saver = HoldfastSaver(store)
    for turn in range(3):
        for thread in ("a", "b"):
            chat(saver).invoke({"messages": [HumanMessage(f"m{turn}")]}, {"configurable": {"thread_id": thread}})
    for thread in ("a", "b"):
        assert said(store, thread) == ["m0", "re 1", "m1", "re 3", "m2", "re 5"]


def test_when_another_process_adds_to_more_messages_than_are_kept_in_mind(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "_REMEMBERED", 2)
    talked(store)
    mine, other = HoldfastSaver(store), HoldfastSaver(store)
    assert len(state(mine)) == 6
    chat(other).invoke({"messages": [HumanMessage("x")]}, AT)
    assert state(mine) == state(other) == said(store)


def test_when_the_words_are_the_same_each_time(store: holdfast.Store, durability: str) -> None:
    for _ in range(4):
        chat(HoldfastSaver(store)).invoke({"messages": [HumanMessage("yes")]}, AT, durability=durability)
    assert said(store).count("yes") == 4
    assert said(store) == state(HoldfastSaver(store))


def test_when_graphs_inside_it_run_side_by_side(store: holdfast.Store) -> None:
    inner: Any = StateGraph(MessagesState)
    inner.add_node("one", lambda _: {"messages": [AIMessage("sub")]}).add_edge(START, "one")
    builder: Any = StateGraph(MessagesState)
    builder.add_node("sub", inner.compile(checkpointer=True))
    builder.add_conditional_edges(START, lambda state: [Send("sub", {"messages": []}) for _ in range(3)], ["sub"])
    graph = builder.compile(checkpointer=HoldfastSaver(store))
    for turn in range(3):
        graph.invoke({"messages": [HumanMessage(f"m{turn}")]}, AT)
    assert [text for text in said(store) if text != "sub"] == ["m0", "m1", "m2"]
    assert len(said(store)) == len(graph.get_state(AT).values["messages"])


def test_content_in_parts_is_said_once_over_restarts(tmp_path: Path) -> None:
    for turn in range(3):
        with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
            parts: list[Any] = [{"type": "text", "text": f"picture {turn}"}]
            chat(HoldfastSaver(store)).invoke({"messages": [HumanMessage(parts)]}, AT)
            assert len(said(store)) == 2 * turn + 2
