"""A graph that changes while its threads wait: names are mapped, values migrated, and nothing is lost silently."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.engine.codec import encode
from holdfast.engine.contract import Append, Event, Put, Query
from holdfast.errors import Invalid, Unsupported
from holdfast.ledger.core import scan_all


def at(thread: str = "t", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **more}}


class Old(TypedDict, total=False):
    xs: Annotated[list[Any], operator.add]
    city: str


class New(TypedDict, total=False):
    xs: Annotated[list[Any], operator.add]
    town: str


class Without(TypedDict, total=False):
    xs: Annotated[list[Any], operator.add]


def asks(saver: Any, state: Any = Old, name: str = "ask") -> Any:
    graph: Any = StateGraph(state)
    graph.add_node("before", lambda state: {"xs": ["before"]})
    graph.add_node(name, lambda state: {"xs": [name, interrupt("?")]})
    graph.add_node("after", lambda state: {"xs": ["after"]})
    graph.add_edge(START, "before").add_edge("before", name).add_edge(name, "after")
    return graph.compile(checkpointer=saver)


# Channels


def test_a_renamed_channel_keeps_its_value(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "Lima"}, at())
    saver = HoldfastSaver(kept, renamed={"city": "town"})
    graph = saver.guard(asks(saver, New))
    assert graph.get_state(at()).values == {"xs": [1, "before"], "town": "Lima"}
    assert graph.invoke(Command(resume="yes"), at()) == {"xs": [1, "before", "ask", "yes", "after"], "town": "Lima"}
    graph.invoke({"xs": [2], "town": "Cusco"}, at())
    again = HoldfastSaver(kept, renamed={"city": "town"})
    assert asks(again, New).get_state(at()).values["town"] == "Cusco"
    assert [state.values.get("town") for state in asks(again, New).get_state_history(at())][-1] is None


def test_a_channel_that_the_graph_no_longer_has_is_carried_along(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "Lima"}, at())
    graph = asks(HoldfastSaver(kept), Without)
    graph.invoke(Command(resume="yes"), at())
    graph.invoke({"xs": [2]}, at())
    graph.invoke(Command(resume="no"), at())
    graph.update_state(at(), {"xs": ["by hand"]})
    assert asks(HoldfastSaver(kept)).get_state(at()).values["city"] == "Lima"


def test_guard_refuses_a_thread_that_needs_what_is_gone(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "Lima"}, at())
    saver = HoldfastSaver(kept)
    graph = saver.guard(asks(saver, Without))
    for act in (
        lambda: graph.get_state(at()),
        lambda: graph.invoke(Command(resume="yes"), at()),
        lambda: list(graph.get_state_history(at())),
    ):
        with pytest.raises(Unsupported, match=r"'city'.*renamed=.*dropped="):
            act()
    saver = HoldfastSaver(kept, dropped=["city"])
    graph = saver.guard(asks(saver, Without))
    assert graph.invoke(Command(resume="yes"), at())["xs"][-1] == "after"


def test_guard_takes_a_compiled_graph_alone(store: holdfast.Store) -> None:
    saver = HoldfastSaver(store)
    for wrong in (None, "graph", object()):
        with pytest.raises(Invalid, match="compiled graph"):
            saver.guard(wrong)
    graph = saver.guard(asks(saver))
    assert graph.get_graph().draw_mermaid() == asks(saver).get_graph().draw_mermaid()
    assert graph.invoke({"xs": [1], "city": "a"}, at())["xs"] == [1, "before"]


# Nodes


def test_a_renamed_node_that_waits_goes_on(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "Lima"}, at())
    saver = HoldfastSaver(kept, renamed={"ask": "question"})
    graph = saver.guard(asks(saver, name="question"))
    assert graph.get_state(at()).next == ("question",)
    assert graph.invoke(Command(resume="yes"), at())["xs"] == [1, "before", "question", "yes", "after"]


def test_a_node_that_is_gone_is_refused_where_it_is_waited_for(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "Lima"}, at())
    saver = HoldfastSaver(kept)
    graph = saver.guard(asks(saver, name="other"))
    with pytest.raises(Unsupported, match="'ask'"):
        graph.invoke(None, at())
    saver = HoldfastSaver(kept, dropped=["ask", "branch:to:ask"])
    graph = saver.guard(asks(saver, name="other"))
    assert graph.get_state(at()).next == ()


def joining(saver: Any, name: str) -> Any:
    graph: Any = StateGraph(Without)
    graph.add_node(name, lambda state: {"xs": [name]})
    graph.add_node("way", lambda state: {"xs": ["way"]})
    graph.add_node("ask", lambda state: {"xs": [interrupt("?")]})
    graph.add_node("end", lambda state: {"xs": ["end"]})
    graph.add_edge(START, name).add_edge(START, "way").add_edge("way", "ask").add_edge([name, "ask"], "end")
    return graph.compile(checkpointer=saver)


def test_a_join_that_waits_for_another_knows_a_renamed_node(kept: holdfast.Store) -> None:
    joining(HoldfastSaver(kept), "quick").invoke({"xs": []}, at())
    saver = HoldfastSaver(kept, renamed={"quick": "fast"})
    graph = saver.guard(joining(saver, "fast"))
    assert graph.invoke(Command(resume="yes"), at())["xs"] == ["quick", "way", "yes", "end"]


def test_a_join_that_waits_is_refused_where_its_node_is_gone(kept: holdfast.Store) -> None:
    joining(HoldfastSaver(kept), "quick").invoke({"xs": []}, at())
    saver = HoldfastSaver(kept)
    graph = saver.guard(joining(saver, "fast"))
    with pytest.raises(Unsupported, match="quick"):
        graph.invoke(Command(resume="yes"), at())


def sending(saver: Any, name: str) -> Any:
    graph: Any = StateGraph(Without)
    graph.add_node("begin", lambda state: {"xs": ["begin"]})
    graph.add_node(name, lambda given: {"xs": [[given["k"], name]]})
    graph.add_conditional_edges("begin", lambda state: [Send(name, {"k": k}) for k in range(2)], [name])
    return graph.add_edge(START, "begin").compile(checkpointer=saver, interrupt_before=[name])


def test_what_was_sent_to_a_renamed_node_reaches_it(kept: holdfast.Store) -> None:
    sending(HoldfastSaver(kept), "each").invoke({"xs": []}, at())
    saver = HoldfastSaver(kept, renamed={"each": "every"})
    assert saver.guard(sending(saver, "every")).invoke(None, at())["xs"] == ["begin", [0, "every"], [1, "every"]]


def test_what_was_sent_to_a_renamed_node_keeps_its_timeout(kept: holdfast.Store) -> None:
    values: Any = {"channel_values": {"x": [Send("each", 1, timeout=3)]}, "channel_versions": {"x": 1}}
    config = HoldfastSaver(kept).put(at(), {**empty_checkpoint(), **values}, {}, {"x": 1})
    found = HoldfastSaver(kept, renamed={"each": "every"}).get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"]["x"] == [Send("every", 1, timeout=3)]


def test_what_was_sent_to_a_node_that_is_gone_is_refused(kept: holdfast.Store) -> None:
    sending(HoldfastSaver(kept), "each").invoke({"xs": []}, at())
    saver = HoldfastSaver(kept)
    with pytest.raises(Unsupported, match="'each'"):
        saver.guard(sending(saver, "every")).invoke(None, at())


# Versions


def to_list(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "xs": [{"was": x} for x in values["xs"]], "town": values.pop("city", None)}


def test_values_are_migrated_and_saved_as_what_they_became(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "Lima"}, at())

    def no_city(values: dict[str, Any]) -> dict[str, Any]:
        assert "__start__" not in values
        assert not any(name.startswith("branch:") for name in values)
        return {name: value for name, value in to_list(values).items() if name != "city"}

    saver = HoldfastSaver(kept, version=1, migrations={0: no_city})
    graph = saver.guard(asks(saver, New))
    assert graph.get_state(at()).values == {"xs": [{"was": 1}, {"was": "before"}], "town": "Lima"}
    graph.invoke(Command(resume="yes"), at())

    def never(values: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("what is of this version already is not migrated")

    later = asks(HoldfastSaver(kept, version=1, migrations={0: never}), New)
    assert later.get_state(at()).values == {
        "xs": [{"was": 1}, {"was": "before"}, "ask", "yes", "after"], "town": "Lima"
    }  # fmt: skip


def test_several_versions_are_led_through_one_after_the_other(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "a"}, at())

    def step(number: int) -> Any:
        return lambda values: {**values, "city": f"{values['city']}{number}"}

    steps = {number: step(number) for number in range(3)}
    assert asks(HoldfastSaver(kept, version=3, migrations=steps)).get_state(at()).values["city"] == "a012"
    with pytest.raises(Unsupported, match=r"migrations=\{1: …\}"):
        asks(HoldfastSaver(kept, version=3, migrations={0: steps[0], 2: steps[2]})).get_state(at())


def test_a_newer_version_is_refused_and_left_alone(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept, version=2)).invoke({"xs": [1], "city": "a"}, at())
    before = asks(HoldfastSaver(kept, version=2)).get_state(at())
    old = asks(HoldfastSaver(kept, version=1))
    for act in (lambda: old.get_state(at()), lambda: old.invoke({"xs": []}, at()), lambda: old.update_state(at(), {})):
        with pytest.raises(Unsupported, match="run the newer program"):
            act()
    assert asks(HoldfastSaver(kept, version=2)).get_state(at()) == before


def test_a_migration_that_fails_changes_nothing(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "a"}, at())
    before = asks(HoldfastSaver(kept)).get_state(at())

    def wrong(values: dict[str, Any]) -> Any:
        values["xs"].append("spoilt")
        return None

    with pytest.raises(Unsupported, match="gave no dict"):
        asks(HoldfastSaver(kept, version=1, migrations={0: wrong})).get_state(at())
    assert asks(HoldfastSaver(kept)).get_state(at()) == before


def test_pruning_keeps_the_version_that_a_checkpoint_is_of(kept: holdfast.Store) -> None:
    asks(HoldfastSaver(kept)).invoke({"xs": [1], "city": "a"}, at())
    asks(HoldfastSaver(kept, version=1, migrations={0: dict})).invoke(Command(resume="r"), at())
    HoldfastSaver(kept, version=1, migrations={0: dict}).retain(["t"], keep=3)
    with pytest.raises(Unsupported, match="newer program"):
        asks(HoldfastSaver(kept)).get_state(at())
    mark = asks(HoldfastSaver(kept, version=1, migrations={0: lambda values: {**values, "city": "migrated"}}))
    found = [state.values["city"] for state in mark.get_state_history(at())]
    assert found[0] == "a"
    assert found[-1] == "migrated"


def test_messages_survive_a_migration(kept: holdfast.Store) -> None:
    def build(saver: Any) -> Any:
        graph: Any = StateGraph(MessagesState)
        graph.add_node("a", lambda state: {"messages": []})
        return graph.add_edge(START, "a").compile(checkpointer=saver)

    told = [HumanMessage(f"m{number}", id=str(number)) for number in range(5)]
    build(HoldfastSaver(kept)).invoke({"messages": told}, at())

    def last(values: dict[str, Any]) -> dict[str, Any]:
        return {**values, "messages": values["messages"][-2:]} if "messages" in values else values

    saver = HoldfastSaver(kept, version=1, migrations={0: last})
    build(saver).invoke({"messages": [HumanMessage("new", id="new")]}, at())
    found = build(HoldfastSaver(kept, version=1)).get_state(at()).values["messages"]
    assert found == [*told[-2:], HumanMessage("new", id="new")]
    assert len(kept.thread("t").log()) == 6


# What a newer holdfast wrote


def graph_record(store: holdfast.Store) -> Any:
    return next(iter(scan_all(store.core.engine, store.tenant, Query("graph"))))


def test_a_graph_of_a_newer_format_is_refused(store: holdfast.Store) -> None:
    asks(HoldfastSaver(store)).invoke({"xs": [1]}, at())
    record = graph_record(store)
    body = encode({"namespace": "", "log": 1, "format": 99})
    store.core.engine.commit(
        store.tenant,
        (Put("graph", record.id, body, scope=record.scope, expect=record.version),),
        store.core.clock.now(),
    )
    for act in (
        lambda saver: saver.get_tuple(at()), lambda saver: list(saver.list(at())),
        lambda saver: asks(saver).invoke({"xs": []}, at()), lambda saver: saver.retain(["t"], keep=1),
    ):  # fmt: skip
        with pytest.raises(Unsupported, match="upgrade holdfast"):
            act(HoldfastSaver(store))


def test_an_event_of_a_kind_that_is_not_known_is_refused(store: holdfast.Store) -> None:
    asks(HoldfastSaver(store)).invoke({"xs": [1]}, at())
    record = graph_record(store)
    event = Event("squashed frame", b"j1{}", store.core.clock.now())
    store.core.engine.commit(store.tenant, (Append("graph", record.id, (event,), record.head),), store.core.clock.now())
    for act in (
        lambda saver: saver.get_tuple(at()), lambda saver: list(saver.list(at())),
        lambda saver: saver.retain(["t"], keep=1),
    ):  # fmt: skip
        with pytest.raises(Unsupported, match="squashed frame"):
            act(HoldfastSaver(store))
