"""What a graph saves, seen by the rest of Holdfast: the log, recall, contexts, archives; and senseless configs."""

from __future__ import annotations

import asyncio
import contextlib
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, HoldfastStore
from holdfast.errors import Conflict, Invalid, Misconfigured


def at(thread: Any = "t", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **more}}


def chat(saver: Any) -> Any:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [AIMessage(f"I heard {state['messages'][-1].content!r}.")]})
    return graph.add_edge(START, "answer").compile(checkpointer=saver)


def texts(store: holdfast.Store, thread: str = "t") -> list[tuple[str, Any]]:
    return [(entry.content["role"], entry.content["content"]) for entry in store.thread(thread).log()]


# As LangGraph's own savers are opened


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.getfixturevalue("database") if request.param == "postgres" else str(tmp_path / "agent.db")


@pytest.mark.every_engine
def test_a_program_for_another_saver_changes_one_name(address: str) -> None:
    with HoldfastSaver.from_conn_string(address, user="who") as saver:
        saver.setup()
        chat(saver).invoke({"messages": [HumanMessage("hello")]}, at(who="ana"))
    with pytest.raises(Misconfigured, match="closed"):
        saver.store.threads()
    unmanaged = HoldfastSaver.from_conn_string(address)
    assert len(chat(unmanaged).get_state(at()).values["messages"]) == 2
    assert [info.user for info in unmanaged.store.threads()] == ["ana"]
    unmanaged.close()


@pytest.mark.every_engine
def test_the_same_saver_is_opened_and_set_up_by_async_programs(address: str) -> None:
    async def talk() -> int:
        async with HoldfastSaver.from_conn_string(address) as saver:
            await saver.setup()
            await chat(saver).ainvoke({"messages": [HumanMessage("hello")]}, at())
            return len((await chat(saver).aget_state(at())).values["messages"])

    assert asyncio.run(talk()) == 2


def test_a_store_is_opened_the_same_way(tmp_path: Path) -> None:
    with HoldfastStore.from_conn_string(str(tmp_path / "agent.db"), user="ana") as store:
        store.setup()
        store.put(("likes",), "seat", {"text": "window"})
    with HoldfastStore.from_conn_string(str(tmp_path / "agent.db"), user="ana") as store:
        assert store.get(("likes",), "seat").value == {"text": "window"}


def test_what_a_saver_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="pipeline"):
        HoldfastSaver.from_conn_string(str(tmp_path / "agent.db"), pipeline=True)
    assert list(tmp_path.iterdir()) == []


# Other eyes


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("ids", [True, False], ids=["ids given", "ids made"])
def test_each_message_is_in_the_log_once_in_its_order(kept: holdfast.Store, durability: str, *, ids: bool) -> None:
    graph = chat(HoldfastSaver(kept))
    for number in range(3):
        message = HumanMessage(f"turn {number}", id=f"h{number}" if ids else None)
        graph.invoke({"messages": [message]}, at(), durability=durability)
    want = [
        said for number in range(3)
        for said in (("user", f"turn {number}"), ("assistant", f"I heard 'turn {number}'."))
    ]  # fmt: skip
    assert texts(kept) == want
    again = chat(HoldfastSaver(kept)).get_state(at()).values["messages"]
    assert [(message.type, message.content) for message in again] == [
        ("human" if role == "user" else "ai", text) for role, text in want
    ]
    assert all(message.id for message in again)
    history = [state.values.get("messages", []) for state in chat(HoldfastSaver(kept)).get_state_history(at())]
    for messages in history:
        assert messages == again[: len(messages)]


@pytest.mark.parametrize("given", ["text", ("user", "text"), {"role": "user", "content": "text"}])
def test_messages_given_in_short_are_in_the_log_once(kept: holdfast.Store, given: Any) -> None:
    graph = chat(HoldfastSaver(kept))
    for _ in range(2):
        graph.invoke({"messages": [given]}, at())
    assert [text for _, text in texts(kept)] == ["text", "I heard 'text'."] * 2
    graph.update_state(at(), {"messages": [HumanMessage("by hand")]})
    assert len(texts(kept)) == 5


def test_awaited_turns_are_in_the_log_once(kept: holdfast.Store) -> None:
    async def talk() -> None:
        graph = chat(HoldfastSaver(kept))
        for number in range(3):
            await graph.ainvoke({"messages": [HumanMessage(f"turn {number}")]}, at())

    asyncio.run(talk())
    assert [text for role, text in texts(kept) if role == "user"] == ["turn 0", "turn 1", "turn 2"]
    assert len(texts(kept)) == 6


def test_a_fork_says_only_what_is_new(kept: holdfast.Store) -> None:
    graph = chat(HoldfastSaver(kept))
    graph.invoke({"messages": [HumanMessage("one", id="1")]}, at())
    graph.invoke({"messages": [HumanMessage("two", id="2")]}, at())
    old = [state for state in graph.get_state_history(at()) if not state.next][1]
    graph.invoke({"messages": [HumanMessage("other", id="3")]}, old.config)
    assert [text for _, text in texts(kept)] == [
        "one", "I heard 'one'.", "two", "I heard 'two'.", "other", "I heard 'other'."
    ]  # fmt: skip
    messages = chat(HoldfastSaver(kept)).get_state(at()).values["messages"]
    assert [message.content for message in messages] == ["one", "I heard 'one'.", "other", "I heard 'other'."]


def test_a_log_that_was_rewound_goes_on_and_the_graph_reads_as_before(kept: holdfast.Store) -> None:
    graph = chat(HoldfastSaver(kept))
    for number in range(3):
        graph.invoke({"messages": [HumanMessage(f"turn {number}", id=f"h{number}")]}, at())
    before = [state.values for state in graph.get_state_history(at())]
    kept.thread("t").rewind(to=2)
    assert [state.values for state in chat(HoldfastSaver(kept)).get_state_history(at())] == before
    graph.invoke({"messages": [HumanMessage("after", id="after")]}, at())
    assert len(chat(HoldfastSaver(kept)).get_state(at()).values["messages"]) == 8
    assert [state.values for state in chat(HoldfastSaver(kept)).get_state_history(at())][3:] == before
    log = [text for _, text in texts(kept)]
    assert log.count("after") == 1
    assert len(set(log)) == len(log), "nothing is said twice"
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []


def test_a_thread_may_have_entries_of_its_own(kept: holdfast.Store) -> None:
    graph = chat(HoldfastSaver(kept))
    kept.thread("t").append({"role": "user", "content": "before the graph"})
    graph.invoke({"messages": [HumanMessage("one", id="1")]}, at())
    kept.thread("t").append({"role": "user", "content": "between"})
    graph.invoke({"messages": [HumanMessage("two", id="2")]}, at())
    assert [text for _, text in texts(kept)] == [
        "before the graph", "one", "I heard 'one'.", "between", "two", "I heard 'two'."
    ]  # fmt: skip
    found = chat(HoldfastSaver(kept)).get_state(at()).values["messages"]
    assert [message.content for message in found] == ["one", "I heard 'one'.", "two", "I heard 'two'."]


def test_the_user_of_a_config_owns_the_thread(kept: holdfast.Store) -> None:
    chat(HoldfastSaver(kept)).invoke({"messages": ["a"]}, at("mine", user_id="ana"))
    chat(HoldfastSaver(kept, user="owner")).invoke({"messages": ["a"]}, at("other", owner="bob"))
    chat(HoldfastSaver(kept)).invoke({"messages": ["a"]}, at("nobody"))
    assert [info.id for info in kept.threads(user="ana")] == ["mine"]
    assert [info.id for info in kept.threads(user="bob")] == ["other"]
    chat(HoldfastSaver(kept)).invoke({"messages": ["b"]}, at("mine"))
    assert [info.id for info in kept.threads(user="ana")] == ["mine"]


def test_recall_finds_what_was_said_in_a_graph(kept: holdfast.Store) -> None:
    graph = chat(HoldfastSaver(kept))
    for text in ("my cat is called Pixel", "the train leaves at nine", "I like green tea"):
        graph.invoke({"messages": [HumanMessage(text)]}, at("t", user_id="ana"))
    hits = kept.memory(user="ana").recall("what is the name of the cat?", k=3)
    assert any("Pixel" in hit.text for hit in hits)


def test_a_context_is_built_from_a_thread_of_a_graph(kept: holdfast.Store) -> None:
    call = {"name": "weather", "args": {"city": "Lima"}, "id": "c1", "type": "tool_call"}
    told = [
        SystemMessage("Be brief."), HumanMessage("weather in Lima?"), AIMessage("", tool_calls=[call]),
        ToolMessage("sun", tool_call_id="c1"), AIMessage("Sunny."),
    ]  # fmt: skip
    graph: Any = StateGraph(MessagesState)
    graph.add_node("a", lambda state: {"messages": []})
    graph.add_edge(START, "a").compile(checkpointer=HoldfastSaver(kept)).invoke({"messages": told}, at())
    context = kept.context("t", input="and tomorrow?", budget=2_000)
    page = str(context.messages("openai"))
    for word in ("weather in Lima?", "Sunny.", "and tomorrow?"):
        assert word in page


def test_large_states_are_verified_with_everything_else(kept: holdfast.Store) -> None:
    class State(TypedDict):
        xs: Annotated[list[Any], operator.add]
        big: str

    graph: Any = StateGraph(State)
    graph.add_node("a", lambda state: {"xs": ["x" * 500], "big": f"{len(state['xs'])}" * 5_000})
    compiled = graph.add_edge(START, "a").compile(checkpointer=HoldfastSaver(kept))
    for _ in range(5):
        compiled.invoke({"xs": ["y" * 500]}, at())
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []


def full_graph(saver: Any) -> Any:
    class State(MessagesState):
        xs: Annotated[list[Any], operator.add]
        big: str

    sub: Any = StateGraph(State)
    sub.add_node("in", lambda state: {"xs": ["in " * 200]})
    graph: Any = StateGraph(State)
    graph.add_node("sub", sub.add_edge(START, "in").compile(checkpointer=True))
    graph.add_node("a", lambda state: {"messages": [AIMessage("answer")], "big": f"{len(state['xs'])} " * 3_000})
    return graph.add_edge(START, "sub").add_edge("sub", "a").compile(checkpointer=saver)


def filled(store: holdfast.Store) -> list[Any]:
    graph = full_graph(HoldfastSaver(store))
    for number in range(3):
        graph.invoke({"messages": [HumanMessage(f"turn {number}")], "xs": [number]}, at())
        graph.invoke({"messages": [HumanMessage(f"turn {number}")], "xs": [number]}, at("other", user_id="ana"))
    old = list(graph.get_state_history(at()))[4]
    graph.invoke({"xs": ["fork"]}, old.config)
    return list(HoldfastSaver(store).list(None))


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_graphs_are_exported_and_imported(kept: holdfast.Store, tmp_path: Path, form: str) -> None:
    before = filled(kept)
    kept.export(tmp_path / "all", format=form)
    for url in ("ram:", tmp_path / "new.db"):
        with holdfast.open(url, embedder="none") as other:
            other.import_(tmp_path / "all")
            other.import_(tmp_path / "all")
            assert list(HoldfastSaver(other).list(None)) == before
            assert other.verify().problems == ()
            graph = full_graph(HoldfastSaver(other))
            assert graph.invoke({"messages": [HumanMessage("on")], "xs": []}, at())["messages"][-2].content == "on"


def test_one_thread_is_exported_with_its_graphs_alone(kept: holdfast.Store, tmp_path: Path) -> None:
    before = filled(kept)
    kept.export(tmp_path / "one.json", thread="t")
    kept.export(tmp_path / "user.json", user="ana")
    with holdfast.open("ram:", embedder="none") as other:
        other.import_(tmp_path / "one.json")
        found = list(HoldfastSaver(other).list(None))
        assert found == [each for each in before if each.config["configurable"]["thread_id"] == "t"]
        other.import_(tmp_path / "user.json")
        assert list(HoldfastSaver(other).list(None)) == before


@pytest.mark.every_engine
def test_a_backup_has_the_graphs(kept: holdfast.Store, tmp_path: Path) -> None:
    before = filled(kept)
    kept.backup(tmp_path / "backup")
    holdfast.restore(tmp_path / "backup", tmp_path / "restored.db")
    with holdfast.open(tmp_path / "restored.db", tenant=kept.tenant, embedder="none") as other:
        assert list(HoldfastSaver(other).list(None)) == before
        assert other.verify().problems == ()
        full_graph(HoldfastSaver(other)).invoke({"messages": [HumanMessage("on")], "xs": []}, at())


def test_tenants_do_not_see_each_other(tmp_path: Path) -> None:
    with (
        holdfast.open(tmp_path / "a.db", tenant="one", embedder="none") as one,
        holdfast.open(tmp_path / "a.db", tenant="two", embedder="none") as two,
    ):
        chat(HoldfastSaver(one)).invoke({"messages": ["a"]}, at())
        assert list(HoldfastSaver(two).list(None)) == []
        assert HoldfastSaver(two).get_tuple(at()) is None
        HoldfastSaver(two).delete_thread("t")
        assert HoldfastSaver(one).get_tuple(at()) is not None


def test_a_saver_opens_and_closes_a_store_of_its_own(tmp_path: Path) -> None:
    with HoldfastSaver(tmp_path / "agent.db") as saver:
        chat(saver).invoke({"messages": ["a"]}, at())
    with HoldfastSaver(str(tmp_path / "agent.db")) as saver:
        assert len(chat(saver).get_state(at()).values["messages"]) == 2
    with holdfast.open("ram:", embedder="none") as store:
        with HoldfastSaver(store):
            pass
        assert store.threads() is not None, "a store that was given stays open"


def test_storage_grows_with_what_is_said(tmp_path: Path) -> None:
    sizes = []
    for turns in (25, 50, 100):
        path = tmp_path / f"{turns}.db"
        with holdfast.open(path, embedder="none") as store:
            graph = chat(HoldfastSaver(store))
            for number in range(turns):
                graph.invoke({"messages": [HumanMessage(f"{number} " * 100, id=str(number))]}, at())
        sizes.append(path.stat().st_size)
    assert sizes[2] - sizes[1] < 3 * (sizes[1] - sizes[0]), "twice as many turns take about twice the space"


# Configs, filters and limits


@pytest.mark.parametrize("config", [{}, {"configurable": {}}, {"configurable": {"checkpoint_id": "x"}}])
def test_a_config_without_a_thread_says_what_is_missing(store: holdfast.Store, config: Any) -> None:
    saver = HoldfastSaver(store)
    with pytest.raises(Invalid, match="thread_id"):
        saver.get_tuple(config)
    with pytest.raises(Invalid, match="thread_id"):
        saver.put(config, empty_checkpoint(), {}, {})
    with pytest.raises(Invalid, match="thread_id"):
        saver.put_writes(config, [], "task")


@pytest.mark.parametrize("thread", ["", "x" * 513, "é" * 300, "a\ud800", None, 1.5, ["t"], b"t"])
def test_thread_ids_that_are_none(kept: holdfast.Store, thread: Any) -> None:
    saver = HoldfastSaver(kept)
    for act in (
        lambda: saver.get_tuple(at(thread)),
        lambda: saver.put(at(thread, checkpoint_ns=""), empty_checkpoint(), {}, {}),
        lambda: list(saver.list(at(thread))),
    ):
        with pytest.raises(Invalid):
            act()
    if isinstance(thread, str):
        for refused in (
            lambda: chat(saver).invoke({"messages": ["a"]}, at(thread)), lambda: saver.delete_thread(thread),
            lambda: saver.copy_thread("t", thread), lambda: saver.retain([thread], keep=1),
        ):  # fmt: skip
            with pytest.raises(Invalid):
                refused()


@pytest.mark.every_engine
@pytest.mark.parametrize("thread", [7, "t/../x", "тред", "a b c", "%_'\";--", "a" * 512])
def test_thread_ids_of_any_other_kind(kept: holdfast.Store, thread: Any) -> None:
    saver = HoldfastSaver(kept)
    chat(saver).invoke({"messages": ["a"]}, at(thread))
    assert len(chat(HoldfastSaver(kept)).get_state(at(thread)).values["messages"]) == 2
    assert next(saver.list(None)).config["configurable"]["thread_id"] == str(thread)
    saver.delete_thread(thread)
    assert saver.get_tuple(at(thread)) is None


@pytest.mark.parametrize("thread", ["a\tb", "\x01", "a\nb"])
def test_a_thread_id_with_a_control_character_is_refused(store: holdfast.Store, thread: str) -> None:
    with pytest.raises(Invalid, match="control character"):
        chat(HoldfastSaver(store)).invoke({"messages": ["a"]}, at(thread))


def test_a_number_and_its_text_are_one_thread(store: holdfast.Store) -> None:
    chat(HoldfastSaver(store)).invoke({"messages": ["a"]}, at(7))
    assert len(chat(HoldfastSaver(store)).get_state(at("7")).values["messages"]) == 2


HOSTILE = ["'; DROP TABLE events; --", "a.b", "$.x", "a[0]", '"', "%", "é", "", "\x01"]


def test_hostile_keys_and_values_of_filters(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    config = at(checkpoint_ns="")
    for key in HOSTILE:
        made: Any = {**empty_checkpoint(), "id": str(uuid6())}
        saver.put(config, made, {"source": "loop", "step": 1, "parents": {}, key: key}, {})  # type: ignore[misc]
    for key in HOSTILE:
        found = list(saver.list(at(), filter={key: key}))
        assert [each.metadata.get(key) for each in found] == [key]
        assert list(saver.list(at(), filter={key: "other"})) == []
        assert list(saver.list(None, filter={key: {"$gt": ""}})) == []
    assert len(list(saver.list(at(), filter={}))) == len(HOSTILE)


def test_filters_limits_and_bounds_are_as_on_the_bundled_saver(kept: holdfast.Store) -> None:
    ours, theirs = HoldfastSaver(kept), InMemorySaver()
    ids = []
    for saver in (ours, theirs):
        config: Any = at(checkpoint_ns="")
        for step in range(8):
            if saver is ours:
                ids.append(str(uuid6()))
            made: Any = {**empty_checkpoint(), "id": ids[step]}
            told: Any = {"source": ["loop", "update"][step % 2], "step": step, "parents": {}, "tag": {"a": [step % 3]}}
            config = saver.put(config, made, told, {})
    middle = at(checkpoint_ns="", checkpoint_id=ids[4])
    absent = at(checkpoint_ns="", checkpoint_id=str(uuid6()))
    for query in (
        {}, {"limit": 3}, {"limit": 0}, {"limit": 100}, {"filter": {"source": "loop"}}, {"before": middle},
        {"before": middle, "limit": 2, "filter": {"source": "update"}}, {"filter": {"tag": {"a": [1]}}},
        {"filter": {"step": 3}}, {"filter": {"step": "3"}}, {"filter": {"missing": None}}, {"before": absent},
        {"filter": {"step": 3, "source": "loop"}},
    ):  # fmt: skip
        for config in (at(), at(checkpoint_ns=""), middle, None, at("unknown"), at(checkpoint_ns="unknown")):
            answers = [
                [each.config["configurable"]["checkpoint_id"] for each in saver.list(config, **query)]
                for saver in (ours, theirs)
            ]
            assert answers[0] == answers[1], (query, config)


@pytest.mark.parametrize("limit", [-1, "1", 1.5])
def test_limits_that_make_no_sense(store: holdfast.Store, limit: Any) -> None:
    saver = HoldfastSaver(store)
    chat(saver).invoke({"messages": ["a"]}, at())
    with contextlib.suppress(Invalid):
        assert list(saver.list(at(), limit=limit)) == []


def test_an_id_that_is_taken_by_another_checkpoint(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    made: Any = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": {"x": 1}, "channel_versions": {"x": 1}}
    config = saver.put(at(checkpoint_ns=""), made, {}, {"x": 1})
    assert saver.put(at(checkpoint_ns=""), made, {}, {"x": 1}) == config, "the same again is the same"
    with pytest.raises(Conflict):
        saver.put(at(checkpoint_ns=""), {**made, "channel_versions": {"x": 2}}, {}, {"x": 2})
    assert len(list(saver.list(at()))) == 1


def test_ids_of_checkpoints_that_are_no_uuids_and_come_in_any_order(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept, branches=True)
    ids = ["b", "a", "c", "UPPER", "0a1b", str(uuid6()).upper(), "=x", "é", "1f1e130c-5467-6759-8001-bbfa3b3101a1"]
    for number, id in enumerate(ids):
        made: Any = {**empty_checkpoint(), "id": id, "channel_values": {"x": [number]}}
        made["channel_versions"] = {"x": number}
        saver.put(at(checkpoint_ns=""), made, {"step": number}, {"x": number})
        saver.put_writes(at(checkpoint_ns="", checkpoint_id=id), [("x", id)], "task")
    for reader in (saver, HoldfastSaver(kept)):
        for number, id in enumerate(ids):
            found = reader.get_tuple(at(checkpoint_ns="", checkpoint_id=id))
            assert found is not None
            assert found.checkpoint["id"] == id
            assert found.checkpoint["channel_values"] == {"x": [number]}
            assert found.pending_writes == [("task", "x", id)]
    assert sorted(each.checkpoint["id"] for each in saver.list(at())) == sorted(ids)
    assert saver.get_tuple(at(checkpoint_id="missing")) is None


def test_writes_before_their_checkpoint_and_writes_that_come_late(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    first, second = (str(uuid6()) for _ in range(2))
    saver.put_writes(at(checkpoint_ns="", checkpoint_id=first), [("x", "early")], "task")
    config = saver.put(at(checkpoint_ns=""), {**empty_checkpoint(), "id": first}, {}, {})
    saver.put(config, {**empty_checkpoint(), "id": second}, {}, {})
    saver.put_writes(config, [("x", "late"), ("y", "late")], "other", "path")
    saver.put_writes(config, [("x", "ignored"), ("y", "ignored")], "other", "path")
    saver.put_writes(config, [("__error__", "one")], "bad")
    saver.put_writes(config, [("__error__", "two")], "bad")
    found = HoldfastSaver(kept).get_tuple(config)
    assert found is not None
    assert sorted(found.pending_writes or []) == [
        ("bad", "__error__", "two"), ("other", "x", "late"), ("other", "y", "late"), ("task", "x", "early"),
    ]  # fmt: skip
    with pytest.raises(Invalid, match="must name one"):
        saver.put_writes(at(), [("x", 1)], "task")


def test_a_thousand_checkpoints_are_read_in_any_place() -> None:
    store = holdfast.open("ram:", embedder="none")
    saver = HoldfastSaver(store)
    config: Any = at(checkpoint_ns="")
    configs = []
    for number in range(1_000):
        made: Any = {**empty_checkpoint(), "id": str(uuid6())}
        made["channel_values"] = {"n": number, "xs": list(range(number % 7))}
        made["channel_versions"] = {"n": number, "xs": number}
        config = saver.put(config, made, {"source": "loop", "step": number, "parents": {}}, made["channel_versions"])
        configs.append(config)
    reader = HoldfastSaver(store)
    for number in range(0, 1_000, 37):
        found = reader.get_tuple(configs[number])
        assert found is not None
        assert found.checkpoint["channel_values"] == {"n": number, "xs": list(range(number % 7))}
    store.close()
