"""LangGraph's own conformance suite, whole, on engines that outlive a process; and what it does not ask yet: deltas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import ProgressCallbacks
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver

SUITE = {
    "put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5, "delete_for_runs": 7,
    "copy_thread": 8, "prune": 8,
}  # fmt: skip


@pytest.mark.every_engine
def test_the_whole_conformance_suite_passes(
    kept: holdfast.Store, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @checkpointer_test(name=f"HoldfastSaver on {engine}")
    async def saver() -> AsyncIterator[HoldfastSaver]:
        yield HoldfastSaver(kept)

    report = asyncio.run(validate(saver, progress=ProgressCallbacks.quiet()))
    passed = {name: result.tests_passed for name, result in report.results.items() if result.detected}
    with capsys.disabled():
        print(f"\n   conformance on {engine}: {sum(passed.values())} of {sum(SUITE.values())}; {passed}")
    assert [failure for result in report.results.values() for failure in result.failures] == []
    assert passed == SUITE
    assert sum(passed.values()) == 81


# Delta channels


def joined(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*state, *(text for write in writes for text in write)]


class Deltas(TypedDict):
    xs: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=3)]
    rare: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=1_000)]


def delta_graph(saver: Any) -> Any:
    graph: Any = StateGraph(Deltas)
    graph.add_node("one", lambda state: {"xs": [f"one after {len(state['xs'])}"]})
    graph.add_node("two", lambda state: {"xs": [f"two after {len(state['xs'])}"], "rare": ["two"]})
    graph.add_edge(START, "one").add_edge("one", "two")
    return graph.compile(checkpointer=saver)


def at(thread: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **more}}


def states(graph: Any, thread: str = "t") -> list[Any]:
    return [(state.values, state.next, state.metadata.get("step")) for state in graph.get_state_history(at(thread))]


@pytest.fixture
def both(kept: holdfast.Store) -> list[Any]:
    """The same graph, on our saver and on LangGraph's own in memory."""
    return [delta_graph(HoldfastSaver(kept)), delta_graph(InMemorySaver())]


def test_a_delta_channel_reads_as_on_the_bundled_saver(both: list[Any]) -> None:
    for turn in range(6):
        ours, theirs = (graph.invoke({"xs": [f"turn {turn}"]}, at("t")) for graph in both)
        assert ours == theirs
    ours, theirs = map(states, both)
    assert ours == theirs
    assert len(ours[0][0]["xs"]) == 18


def test_only_snapshots_hold_the_value_of_a_delta_channel(both: list[Any], kept: holdfast.Store) -> None:
    for turn in range(4):
        both[0].invoke({"xs": [f"turn {turn}"]}, at("t"))
    held = ["xs" in each.checkpoint["channel_values"] for each in HoldfastSaver(kept).list(at("t"))]
    assert True in held, "a snapshot is due after every third write"
    assert False in held, "between two snapshots the value is made of writes"


def test_the_seed_and_the_writes_of_a_delta_channel(both: list[Any], kept: holdfast.Store) -> None:
    answers = []
    for graph, saver in zip(both, [HoldfastSaver(kept), both[1].checkpointer], strict=True):
        for turn in range(4):
            graph.invoke({"xs": [f"turn {turn}"]}, at("t"))
        history = saver.get_delta_channel_history(config=at("t", checkpoint_ns=""), channels=["xs", "rare", "none"])
        answers.append(
            {
                name: (part.get("seed"), [(ch, value) for _, ch, value in part["writes"]])
                for name, part in history.items()
            }
        )
    assert answers[0] == answers[1]
    assert answers[0]["none"] == (None, [])


def test_the_history_of_a_delta_channel_at_every_checkpoint(both: list[Any], kept: holdfast.Store) -> None:
    found = []
    for graph, saver in zip(both, [HoldfastSaver(kept), both[1].checkpointer], strict=True):
        for turn in range(4):
            graph.invoke({"xs": [f"turn {turn}"]}, at("t"))
        parts = [
            saver.get_delta_channel_history(config=each.config, channels=["xs", "rare"]) for each in saver.list(at("t"))
        ]
        found.append([
            {name: (part.get("seed"), [value for _, _, value in part["writes"]]) for name, part in each.items()}
            for each in parts
        ])  # fmt: skip
    assert found[0] == found[1]


def test_a_fork_of_a_delta_channel_goes_its_own_way(both: list[Any]) -> None:
    ends = []
    for graph in both:
        for turn in range(3):
            graph.invoke({"xs": [f"turn {turn}"]}, at("t"))
        old = [state for state in graph.get_state_history(at("t")) if not state.next][1]
        graph.invoke({"xs": ["another way"]}, old.config)
        ends.append(states(graph))
    assert ends[0] == ends[1]
    assert "turn 2" not in ends[0][0][0]["xs"]
    assert "another way" in ends[0][0][0]["xs"]


def test_an_update_of_a_delta_channel_stays_in_its_branch(both: list[Any]) -> None:
    ends = []
    for graph in both:
        for turn in range(2):
            graph.invoke({"xs": [f"turn {turn}"]}, at("t"))
        old = [state for state in graph.get_state_history(at("t")) if not state.next][1]
        graph.update_state(old.config, {"xs": ["by hand"]}, as_node="two")
        graph.invoke({"xs": ["on"]}, at("t"))
        ends.append(states(graph))
    assert ends[0] == ends[1]
    assert "turn 1" not in ends[0][0][0]["xs"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_delta_channels_with_every_durability(both: list[Any], durability: str) -> None:
    for turn in range(4):
        for graph in both:
            graph.invoke({"xs": [f"turn {turn}"]}, at("t"), durability=durability)
    ours, theirs = (graph.get_state(at("t")).values for graph in both)
    assert ours == theirs
    assert len(ours["xs"]) == 12


def test_pruning_keeps_what_a_delta_channel_is_made_from(both: list[Any], kept: holdfast.Store) -> None:
    graph = both[0]
    for turn in range(5):
        graph.invoke({"xs": [f"turn {turn}"]}, at("t"))
    before = graph.get_state(at("t"))
    HoldfastSaver(kept).prune(["t"])
    after = delta_graph(HoldfastSaver(kept)).get_state(at("t"))
    assert (after.values, after.config, after.next) == (before.values, before.config, before.next)
    assert graph.invoke({"xs": ["more"]}, at("t"))["rare"] == ["two"] * 6


def test_a_copy_of_a_thread_with_delta_channels_is_whole(both: list[Any], kept: holdfast.Store) -> None:
    graph = both[0]
    for turn in range(4):
        graph.invoke({"xs": [f"turn {turn}"]}, at("t"))
    saver = HoldfastSaver(kept)
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")
    copied = delta_graph(saver)
    assert len(states(copied, "copy")) == 16
    assert len(copied.get_state(at("copy")).values["xs"]) == 12
