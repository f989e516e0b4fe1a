"""What went wrong once at the edges of the saver, and must not again."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, keeper, known
from holdfast.errors import Conflict, Erased
from holdfast.testing import ManualClock

AT: Any = {"configurable": {"thread_id": "t"}}
BEGIN: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def checkpoint(**values: Any) -> Any:
    made = empty_checkpoint()
    return {**made, "channel_values": values, "channel_versions": dict.fromkeys(values, 1)}


def named(checkpoint: Any) -> Any:
    return {"configurable": {**BEGIN["configurable"], "checkpoint_id": checkpoint["id"]}}


def appended(state: Any, writes: Any) -> Any:
    return [*(state or []), *(item for write in writes for item in write)]


class Delta(TypedDict):
    log: Annotated[list[str], DeltaChannel(appended, snapshot_frequency=1_000)]


def steps(saver: Any, schema: Any, *nodes: Any) -> Any:
    graph: Any = StateGraph(schema)
    names = [START, *(f"n{number}" for number in range(len(nodes)))]
    for name, node in zip(names[1:], nodes, strict=True):
        graph.add_node(name, node)
    for one, other in pairwise(names):
        graph.add_edge(one, other)
    return graph.compile(checkpointer=saver)


def test_threads_that_are_no_longer_kept_in_mind_are_served(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_MESSAGES", 30)
    saver = HoldfastSaver(store)
    for _ in range(2):
        for number in range(6):
            config: Any = {"configurable": {"thread_id": f"t{number}"}}
            steps(saver, MessagesState, lambda _: {"messages": [AIMessage("yes")] * 5}).invoke(
                {"messages": ["hi"]}, config
            )
    assert len(list(saver.list({"configurable": {"thread_id": "t0"}}))) == 6


def test_a_thread_with_more_messages_than_are_remembered_is_read(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "_REMEMBERED", 10)
    one, two = HoldfastSaver(store), HoldfastSaver(store)
    said = [HumanMessage(f"m{number}", id=str(number)) for number in range(25)]
    at = one.put(BEGIN, checkpoint(messages=said), {}, {"messages": 1})
    two.put(at, checkpoint(messages=[*said, AIMessage("more", id="more")]), {}, {"messages": 2})
    found = one.get_tuple(AT)
    assert found is not None
    assert len(found.checkpoint["channel_values"]["messages"]) == 26
    assert len(store.thread("t").log()) == 26


def test_a_message_inside_a_message_comes_back(kept: holdfast.Store) -> None:
    inner = AIMessage("inner", id="a1")
    outer = ToolMessage("done", tool_call_id="c1", artifact={"steps": [inner, AIMessage("too")]})
    saver = HoldfastSaver(kept)
    base = checkpoint(last=outer, listed=[outer], deep={"a": [outer]})
    saver.put(BEGIN, base, {}, dict.fromkeys(base["channel_values"], 1))
    saver.put_writes(named(base), [("last", outer), ("listed", [outer])], "task")
    found = HoldfastSaver(kept).get_tuple(AT)
    assert found is not None
    assert found.checkpoint["channel_values"] == base["channel_values"]
    assert [value for _, _, value in found.pending_writes or []] == [outer, [outer]]


@pytest.mark.every_engine
def test_what_comes_before_its_checkpoint_outlives_a_pruning(kept: holdfast.Store) -> None:
    saver, one, two, three = HoldfastSaver(kept), checkpoint(x=1), checkpoint(x=2), checkpoint(x=3)
    saver.put(BEGIN, one, {}, {"x": 1})
    saver.put(named(one), two, {}, {"x": 2})
    saver.put_writes(named(three), [("y", "precious " * 500), ("z", HumanMessage("said", id="1"))], "task 1")
    saver.put_writes(named(three), [("y", "too")], "task 2")
    HoldfastSaver(kept).retain(["t"], keep=1)
    saver.put_writes(named(three), [("y", "three")], "task 3")
    saver.put(named(two), three, {}, {"x": 3})
    found = HoldfastSaver(kept).get_tuple(AT)
    assert found is not None
    assert found.pending_writes == [
        ("task 1", "y", "precious " * 500), ("task 1", "z", HumanMessage("said", id="1")), ("task 2", "y", "too"),
        ("task 3", "y", "three"),
    ]  # fmt: skip


def test_a_delta_channel_whose_parent_was_pruned_is_refused_not_emptied(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    for turn in ("one", "two"):
        steps(saver, Delta, lambda _: {"log": ["a"]}).invoke({"log": [turn]}, AT, durability="sync")
    newest, old = [state for state in steps(saver, Delta, lambda _: {}).get_state_history(AT) if not state.next]

    def meanwhile(state: Any) -> Any:
        other = HoldfastSaver(kept)
        steps(other, Delta, lambda _: {}).update_state(newest.config, {"log": ["main"]}, as_node="n0")
        other.retain(["t"], keep=1)
        return {"log": ["lost"]}

    with pytest.raises(Conflict, match="pruned"):
        steps(saver, Delta, meanwhile).invoke({"log": ["fork"]}, old.config, durability="sync")
    assert steps(HoldfastSaver(kept), Delta, lambda _: {}).get_state(AT).values["log"][-1] == "main"


@pytest.mark.parametrize("key", ["$", "plan"])
def test_metadata_of_any_name_and_kind_is_found_and_kept(kept: holdfast.Store, key: str) -> None:
    saver = HoldfastSaver(kept)
    graph = steps(saver, Delta, lambda _: {"log": ["answer"]})
    config = {**AT, "metadata": {key: "paid", "most": float("inf"), "large": 2**80}}
    for turn in range(2):
        graph.invoke({"log": [f"q{turn}"]}, config, durability="sync")
    saver.retain(["t"], keep=1)
    assert steps(HoldfastSaver(kept), Delta, lambda _: {}).get_state(AT).values["log"] == [
        "q0",
        "answer",
        "q1",
        "answer",
    ]
    for name, value in ((key, "paid"), ("most", float("inf")), ("large", 2**80)):
        assert next(saver.list(AT, filter={name: value})).metadata[name] == value  # type: ignore[literal-required]
        assert next(saver.search_threads({name: value})).metadata[name] == value
    assert list(saver.list(AT, filter={key: "free"})) == []


def test_dicts_that_look_like_the_messages_before_them_stay_dicts(kept: holdfast.Store) -> None:
    class Loose(TypedDict, total=False):
        messages: list[Any]

    saver = HoldfastSaver(kept)
    graph = steps(
        saver, Loose, lambda state: {"messages": [{"role": "user", "content": m.content} for m in state["messages"]]}
    )
    graph.invoke({"messages": [HumanMessage("hi there, how are you today?")]}, AT)
    found = steps(HoldfastSaver(kept), Loose, lambda _: {}).get_state(AT).values["messages"]
    assert found == [{"role": "user", "content": "hi there, how are you today?"}]


def test_a_sweep_spares_a_thread_that_is_used_again_meanwhile() -> None:
    clock = ManualClock()
    with holdfast.open("ram:", embedder="none", clock=clock) as store:
        saver = HoldfastSaver(store, ttl={"default_ttl": 60})
        talking = steps(saver, MessagesState, lambda _: {"messages": [AIMessage("yes")]})
        places: list[Any] = [{"configurable": {"thread_id": name}} for name in "ab"]
        for place in places:
            talking.invoke({"messages": ["hi"]}, place)
        clock.advance(7_200)
        delete = saver.delete_thread

        def slowly(thread: str) -> None:
            delete(thread)
            talking.invoke({"messages": ["still here"]}, places[1])

        saver.delete_thread = slowly  # type: ignore[method-assign]
        assert saver.sweep_ttl() == 1
        assert len(talking.get_state(places[1]).values["messages"]) == 4


@pytest.mark.parametrize("early", [False, True], ids=["on what was saved", "on what is yet to be saved"])
def test_a_task_does_not_bring_an_erased_thread_back(kept: holdfast.Store, *, early: bool) -> None:
    saver, base, later = HoldfastSaver(kept), checkpoint(x=1), checkpoint(x=2)
    saver.put(BEGIN, base, {}, {"x": 1})
    kept.erase(thread="t", forever=False)
    with pytest.raises(Erased):
        saver.put_writes(named(later if early else base), [("x", "secret")], "task")
    assert not kept.thread("t").exists()
    assert saver.get_tuple(AT) is None
    saver.put(BEGIN, checkpoint(x=3), {}, {"x": 3})
    assert saver.get_tuple(AT) is not None


def test_listing_keeps_nothing_of_what_it_has_shown(store: holdfast.Store) -> None:
    saver = HoldfastSaver(store)
    graph = steps(saver, MessagesState, lambda _: {"messages": [AIMessage("yes")]})
    for turn in range(5):
        graph.invoke({"messages": [f"turn {turn}"]}, AT)
    cache = saver._keeper._line(keeper.Spot("t", "", None)).known
    before = len(cache)
    for _ in range(20):
        assert len(list(saver.list(AT))) == 15
    assert len(cache) == before


def test_who_empties_the_list_that_was_handed_out_says_nothing_less(store: holdfast.Store) -> None:
    class Plain(TypedDict):
        messages: Annotated[list[Any], operator.add]

    saver = HoldfastSaver(store)
    graph = steps(saver, Plain, lambda _: {})
    for _ in range(4):
        graph.invoke({"messages": [HumanMessage("yes")]}, AT, durability="sync")
        found = saver.get_tuple(AT)
        assert found is not None
        found.checkpoint["channel_values"]["messages"].clear()
    assert len(store.thread("t").log()) == 4


def test_many_writes_before_their_checkpoint_are_all_there(kept: holdfast.Store) -> None:
    saver, later = HoldfastSaver(kept), checkpoint(x=1)
    for number in range(30):
        (saver if number % 3 else HoldfastSaver(kept)).put_writes(named(later), [("x", number)], f"task {number:02}")
    saver.put(BEGIN, later, {}, {"x": 1})
    found = HoldfastSaver(kept).get_tuple(AT)
    assert found is not None
    assert [value for _, _, value in found.pending_writes or []] == [*range(30)]
