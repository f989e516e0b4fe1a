"""``HoldfastStore`` inside real graphs, in the example, and on the page that tells of it."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.config import get_store
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

import holdfast
from holdfast.adapters.langgraph.store import HoldfastStore
from holdfast.errors import Conflict


class State(TypedDict, total=False):
    user: str
    said: str
    known: Annotated[list[str], operator.add]


def listen(state: State, runtime: Runtime) -> State:
    assert runtime.store is not None
    namespace = ("users", state["user"])
    known = [item.value["text"] for item in runtime.store.search(namespace, limit=100)]
    runtime.store.put(namespace, state["said"], {"text": state["said"]})
    return {"known": sorted(known)}


async def alisten(state: State, runtime: Runtime) -> State:
    assert runtime.store is not None
    namespace = ("users", state["user"])
    known = [item.value["text"] for item in await runtime.store.asearch(namespace, limit=100)]
    await runtime.store.aput(namespace, state["said"], {"text": state["said"]})
    return {"known": sorted(known)}


def graph_of(node: Any) -> StateGraph[Any]:
    return StateGraph(State).add_node("listen", node).add_edge(START, "listen").add_edge("listen", END)


def test_a_node_reads_and_writes_through_its_runtime(store: holdfast.Store) -> None:
    agent = graph_of(listen).compile(store=HoldfastStore(store))
    assert agent.invoke({"user": "ana", "said": "one"})["known"] == []
    assert agent.invoke({"user": "ana", "said": "two"})["known"] == ["one"]
    assert agent.invoke({"user": "bob", "said": "three"})["known"] == []
    assert agent.invoke({"user": "ana", "said": "two"})["known"] == ["one", "two"]


def test_a_node_that_is_awaited_does_so_too(store: holdfast.Store) -> None:
    async def talk() -> list[Any]:
        agent = graph_of(alisten).compile(store=HoldfastStore(store))
        for number in range(3):
            await agent.ainvoke({"user": "ana", "said": str(number)})
        return await asyncio.gather(*(agent.ainvoke({"user": f"user{n}", "said": "hello"}) for n in range(20)))

    assert [state["known"] for state in asyncio.run(talk())] == [[]] * 20
    assert len(HoldfastStore(store).list_namespaces()) == 21


def test_a_graph_in_another_store_knows_what_the_first_one_heard(tmp_path: Path) -> None:
    for known in ([], ["hello"]):
        with HoldfastStore(tmp_path / "agent.db") as items:
            state = graph_of(listen).compile(store=items).invoke({"user": "ana", "said": "hello"})
            assert state["known"] == known


def test_nodes_that_run_beside_each_other_can_count_without_losing(store: holdfast.Store) -> None:
    def count(state: State) -> State:
        items = get_store()
        assert isinstance(items, HoldfastStore)
        while True:
            before = items.current(("counts",), "n")
            try:
                number = 1 if before is None or before.value is None else before.value["n"] + 1
                items.compare_and_put(("counts",), "n", {"n": number}, expect=before.version if before else 0)
                return {}
            except Conflict:
                continue

    graph: StateGraph[Any] = StateGraph(State)
    for number in range(8):
        graph.add_node(str(number), count).add_edge(START, str(number)).add_edge(str(number), END)
    items = HoldfastStore(store)
    graph.compile(store=items).invoke({"user": "ana"})
    assert items.search(("counts",))[0].value == {"n": 8}


def test_the_example_remembers(example: Callable[..., str]) -> None:
    first, second = example("langgraph_memory.py"), example("langgraph_memory.py")
    assert first.count("I do not know yet") == 2
    assert "Agent: I eat no meat" not in first
    assert "I do not know yet" not in second
    assert "Agent: I eat no meat and no fish." in second
    assert "Agent: On trains I like the window seat." in second


@pytest.mark.parametrize("name", ["langgraph-store"])
def test_the_page_is_true(page: Callable[[str], None], name: str) -> None:
    page(name)
