"""What a turn takes, and how it is stored: a row for each checkpoint and each task, each message once in the log."""

from __future__ import annotations

import operator
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, MessagesState, StateGraph

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, frames
from holdfast.adapters.langgraph.frames import GRAPH, ITEMS, changed, difference
from holdfast.adapters.langgraph.reading import Graph
from holdfast.errors import Conflict, Invalid

AT: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(params=["sync", "async"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def chat(saver: HoldfastSaver, answer: Callable[[Any], Any], schema: Any = MessagesState) -> Any:
    graph: Any = StateGraph(schema)
    return (
        graph.add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END).compile(checkpointer=saver)
    )


def spoken(state: Any) -> Any:
    return {"messages": [AIMessage(f"re {len(state['messages'])}")]}


def events_of(store: holdfast.Store, kind: str) -> list[Any]:
    record = store.core.engine.get(store.tenant, kind, frames.graph_id("t", ""))
    return [] if record is None else store.core.engine.read(store.tenant, record.mark)


def said(store: holdfast.Store) -> list[Any]:
    return [entry.content["content"] for entry in store.thread("t").log()]


def test_a_turn_takes_a_commit_for_each_checkpoint_and_for_each_node(kept: holdfast.Store, durability: str) -> None:
    turns = 12
    graph = chat(HoldfastSaver(kept), spoken)
    for turn in range(turns):
        graph.invoke({"messages": [HumanMessage(f"m{turn}")]}, AT, durability=durability)
    kinds = [event.kind for event in events_of(kept, GRAPH)]
    assert (kinds.count("writes"), len(kinds)) == (2 * turns, 5 * turns)
    assert kinds.count("full") < 5, "nearly all are differences"
    # One began the thread. What passes an input on takes one of its own where the checkpoint that follows comes first.
    assert 4 * turns < len(kept.core.engine.feed(kept.tenant, limit=1_000)) <= 5 * turns + 1
    assert [entry.content["role"] for entry in kept.thread("t").log()] == ["user", "assistant"] * turns


def test_a_question_has_its_id_in_the_log(kept: holdfast.Store, durability: str) -> None:
    chat(HoldfastSaver(kept), spoken).invoke({"messages": [HumanMessage("hi")]}, AT, durability=durability)
    messages = chat(HoldfastSaver(kept), spoken).get_state(AT).values["messages"]
    assert [entry.content["id"] for entry in kept.thread("t").log()] == [message.id for message in messages]
    assert all(message.id for message in messages)


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]


def test_messages_that_nobody_gives_an_id_are_in_the_log_once(kept: holdfast.Store, durability: str) -> None:
    for turn in range(3):  # a new saver each time, that knows nothing of the last
        graph = chat(HoldfastSaver(kept), spoken, Plain)
        graph.invoke({"messages": [HumanMessage("yes")]}, AT, durability=durability)
        assert len(said(kept)) == 2 * turn + 2
    texts = [message.content for message in chat(HoldfastSaver(kept), spoken, Plain).get_state(AT).values["messages"]]
    assert said(kept) == texts == ["yes", "re 1", "yes", "re 3", "yes", "re 5"]


def test_an_object_in_two_channels_is_said_once(kept: holdfast.Store) -> None:
    class Both(Plain):
        other: Annotated[list[AnyMessage], operator.add]

    message = AIMessage("once")
    chat(HoldfastSaver(kept), lambda _: {"messages": [message], "other": [message]}, Both).invoke({"messages": []}, AT)
    assert said(kept) == ["once"]


@pytest.mark.parametrize("form", ["message", "tuple", "dict"])
def test_what_is_given_is_stored_once_besides_the_log(tmp_path: Path, form: str) -> None:
    """However it is given: with the entry of the log a text is there twice at most, though four things hold it."""
    text = "".join(f"word{number} " for number in range(60))
    forms: dict[str, Any] = {
        "message": HumanMessage(text), "tuple": ("user", text), "dict": {"role": "user", "content": text},
    }  # fmt: skip
    with holdfast.open(tmp_path / "a.db", embedder="none") as store:
        chat(HoldfastSaver(store), spoken).invoke({"messages": [forms[form]]}, AT, durability="sync")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        bodies = b"".join(frames.item_body(row[0]) for row in connection.execute("SELECT body FROM events"))
    assert 1 <= bodies.count(text.encode()) <= 2


def test_what_is_stored_again_takes_no_more_than_what_changed(kept: holdfast.Store) -> None:
    """Also where other entries come between the turns: each turn is a range of its own, and all of them are named."""
    graph = chat(HoldfastSaver(kept), spoken)
    for turn in range(150):
        graph.invoke({"messages": [HumanMessage(f"m{turn}", id=str(turn))]}, AT, durability="exit")
        kept.thread("t").append(holdfast.note("aside"))
    sizes: dict[str, list[int]] = {"full": [], "step": []}
    for event in events_of(kept, GRAPH):
        sizes.setdefault(event.kind, []).append(len(event.body))
    assert len(sizes["full"]) > 5
    assert sum(sizes["full"][:-1]) <= sum(sizes["step"])
    assert max(sizes["step"]) < 600, "a range that is added, and not all of them"
    assert len(HoldfastSaver(kept).get_tuple(AT).checkpoint["channel_values"]["messages"]) == 300  # type: ignore[union-attr]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, width=16) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(st.text("abc", max_size=2), PLAIN, max_size=5)


def exactly(value: Any) -> Any:
    """A value in which 1, 1.0 and True differ, and the order of a dict does not matter."""
    if isinstance(value, dict):
        return {name: exactly(item) for name, item in value.items()}
    return [exactly(item) for item in value] if isinstance(value, list) else repr(value)


@given(BODIES, BODIES)
def test_a_difference_makes_the_new_of_the_old_exactly(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = repr(old)
    assert exactly(changed(old, difference(old, new))) == exactly(new)
    assert repr(old) == before


# Writes and their checkpoint, in any order


def checkpoint(**values: Any) -> Any:
    made = empty_checkpoint()
    return {**made, "channel_values": values, "channel_versions": dict.fromkeys(values, 1)}


def named(checkpoint: Any) -> Any:
    return {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}}


BEGIN: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
WRITES = [("task 2", "-", HumanMessage("said", id="m")), ("task 1", "xs", "a" * 5_000), ("task 1", "branch:to:b", None)]


@pytest.fixture
def early(kept: holdfast.Store) -> HoldfastSaver:
    """A saver that was given what two tasks wrote before the checkpoint they wrote on top of."""
    saver = HoldfastSaver(kept)
    first, second = checkpoint(xs=[1]), checkpoint(xs=[1, 2])
    at = saver.put(BEGIN, first, {"step": 1}, {"xs": 1})
    saver.put_writes(named(second), [("xs", "a" * 5_000), ("branch:to:b", None)], "task 1", "~__pregel_pull, a")
    saver.put_writes(named(second), [("-", HumanMessage("said", id="m"))], "task 2", "=path")
    saver.put(at, second, {"step": 2}, {"xs": 1})
    return saver


@pytest.mark.every_engine
def test_what_comes_early_is_there_at_once_and_belongs_to_its_checkpoint(
    kept: holdfast.Store, early: HoldfastSaver
) -> None:
    for saver in (early, HoldfastSaver(kept)):
        newest, oldest = saver.list(AT)
        assert sorted(newest.pending_writes or [], key=str) == sorted(WRITES, key=str)
        assert oldest.pending_writes == []
    assert {write.channel for write in Graph(kept.thread("t")).writes()} == {"xs", "branch:to:b", "-"}


def test_it_is_durable_before_its_checkpoint_is_saved(tmp_path: Path) -> None:
    later = checkpoint(xs=[1])
    with HoldfastSaver(tmp_path / "agent.db") as saver:
        saver.put_writes(named(later), [("xs", "early")], "task", "")
        assert saver.get_tuple(AT) is None
        assert list(saver.list(AT)) == []
    with HoldfastSaver(tmp_path / "agent.db") as saver:
        saver.put(BEGIN, later, {}, {"xs": 1})
        found = saver.get_tuple(AT)
        assert found is not None
        assert found.pending_writes == [("task", "xs", "early")]
        assert saver.store.verify().ok


def test_nothing_is_said_before_what_it_answers(kept: holdfast.Store) -> None:
    """What a node answers may be saved before the checkpoint that holds the question."""
    saver, question, answer = HoldfastSaver(kept), HumanMessage("how?", id="q"), AIMessage("so", id="a")
    asked, done = checkpoint(messages=[question]), checkpoint(messages=[question, answer])
    saver.put_writes(named(asked), [("messages", [answer])], "task", "")
    at = saver.put(BEGIN, asked, {"step": 0}, {"messages": 1})
    saver.put(at, done, {"step": 1}, {"messages": 2})
    assert said(kept) == ["how?", "so"]


def test_it_is_there_when_the_graph_was_pruned_copied_or_moved(
    kept: holdfast.Store, early: HoldfastSaver, tmp_path: Path
) -> None:
    early.copy_thread("t", "copy")
    early.retain(["t"], keep=1)
    kept.export(tmp_path / "all.json")
    with holdfast.open("ram:", embedder="none") as other:
        other.import_(tmp_path / "all.json")
        for store in (kept, other):
            for thread in ("t", "copy"):
                found = HoldfastSaver(store).get_tuple({"configurable": {"thread_id": thread}})
                assert found is not None
                assert sorted(found.pending_writes or [], key=str) == sorted(WRITES, key=str)
            assert not [problem for problem in store.verify().problems if problem.tenant == store.tenant]


def test_it_is_part_of_the_history_of_a_channel(kept: holdfast.Store, early: HoldfastSaver) -> None:
    tip = early.get_tuple(AT)
    assert tip is not None
    early.put(tip.config, checkpoint(ys=1), {"step": 3}, {"ys": 1})
    found = HoldfastSaver(kept).get_delta_channel_history(config=AT, channels=["-"])
    assert [write[2] for write in found["-"]["writes"]] == [HumanMessage("said", id="m")]


def test_of_what_a_task_gives_twice_the_first_counts_and_of_its_errors_the_last(kept: holdfast.Store) -> None:
    """Whether it comes before the checkpoint, after it, or after the next one."""
    saver, one, two = HoldfastSaver(kept), checkpoint(xs=[1]), checkpoint(xs=[2])

    def write(number: int) -> None:
        saver.put_writes(named(one), [("xs", number), ("ys", number)], "task", "")
        saver.put_writes(named(one), [("__error__", str(number))], "bad", "")

    write(0)
    saver.put(BEGIN, one, {}, {"xs": 1})
    write(1)
    saver.put(named(one), two, {}, {"xs": 2})
    write(2)
    found, newest = HoldfastSaver(kept).get_tuple(named(one)), HoldfastSaver(kept).get_tuple(AT)
    assert found is not None
    assert newest is not None
    assert found.pending_writes == [("bad", "__error__", "2"), ("task", "xs", 0), ("task", "ys", 0)]
    assert newest.pending_writes == []


class Unknown:
    """Of a class that nobody registered."""


def test_what_cannot_be_kept_leaves_nothing_behind(kept: holdfast.Store) -> None:
    saver, later = HoldfastSaver(kept), checkpoint(xs=[1])
    beside = ("messages", [HumanMessage("beside it", id="1")])
    with pytest.raises(Invalid, match="Unknown"):
        saver.put_writes(named(later), [beside, ("xs", Unknown())], "bad", "")
    assert not kept.thread("t").exists() or said(kept) == []
    saver.put(BEGIN, later, {}, {"xs": 1})
    found = HoldfastSaver(kept).get_tuple(AT)
    assert found is not None
    assert (found.checkpoint["channel_values"], found.pending_writes) == ({"xs": [1]}, [])


@pytest.mark.every_engine
def test_what_passes_an_input_on_is_there_for_whoever_looks(kept: holdfast.Store) -> None:
    """It is saved with the next commit, or as soon as somebody looks, whose commit that is then."""
    saver, message = HoldfastSaver(kept), HumanMessage("hello", id="1")
    given = checkpoint(__start__={"messages": [message]})
    at = saver.put(BEGIN, given, {"source": "input"}, {"__start__": 1})
    saver.put_writes(at, [("messages", [message])], "task", "~__pregel_pull, __start__")
    for look in (saver, HoldfastSaver(kept)):
        found = look.get_tuple(AT)
        assert found is not None
        assert found.pending_writes == [("task", "messages", [message])]
    assert said(kept) == ["hello"]


def test_what_led_to_a_refused_checkpoint_is_not_saved_later(kept: holdfast.Store) -> None:
    ours, theirs = HoldfastSaver(kept), HoldfastSaver(kept)
    given = checkpoint(__start__={"messages": ["hi"]})
    at = ours.put(BEGIN, given, {"source": "input"}, {"__start__": 1})
    assert ours.get_tuple(AT) is not None
    theirs.put(at, checkpoint(x=1), {}, {"x": 1})
    ours.put_writes(at, [("messages", [HumanMessage("lost", id="1")])], "task", "~__pregel_pull, __start__")
    with pytest.raises(Conflict):
        ours.put(at, checkpoint(x=2), {}, {"x": 2})
    newest = ours.get_tuple(AT)
    assert newest is not None
    ours.put(newest.config, checkpoint(x=3), {}, {"x": 3})
    assert said(kept) == []
    first = HoldfastSaver(kept).get_tuple(at)
    assert first is not None
    assert first.pending_writes == []


# What a process knows may be old


@pytest.mark.every_engine
def test_a_saver_that_knows_less_than_the_store_looks_again(kept: holdfast.Store) -> None:
    """Each of two savers takes what it knows for true, until a commit says otherwise."""
    savers = [HoldfastSaver(kept), HoldfastSaver(kept)]
    for turn in range(6):
        chat(savers[turn % 2], spoken).invoke({"messages": [HumanMessage(f"m{turn}")]}, AT, durability="sync")
        kept.thread("t").append({"role": "user", "content": "aside"})
    texts = [each.content for each in chat(HoldfastSaver(kept), spoken).get_state(AT).values["messages"]]
    assert texts == [text for turn in range(6) for text in (f"m{turn}", f"re {2 * turn + 1}")]
    assert [text for text in said(kept) if text != "aside"] == texts
    assert not [problem for problem in kept.verify().problems if problem.tenant == kept.tenant]


def test_a_run_on_what_is_known_to_be_newest_and_is_not_is_refused(kept: holdfast.Store) -> None:
    ours, theirs = HoldfastSaver(kept), HoldfastSaver(kept)
    chat(ours, spoken).invoke({"messages": [HumanMessage("one")]}, AT)

    def meanwhile(state: Any) -> Any:
        chat(theirs, spoken).invoke({"messages": [HumanMessage("other")]}, AT)
        return spoken(state)

    with pytest.raises(Conflict, match="changed by another run"):
        chat(ours, meanwhile).invoke({"messages": [HumanMessage("two")]}, AT, durability="sync")
    chat(ours, spoken).invoke({"messages": [HumanMessage("three")]}, AT)
    assert "three" in [each.content for each in chat(HoldfastSaver(kept), spoken).get_state(AT).values["messages"]]


def test_a_thread_that_was_deleted_and_begun_anew_elsewhere_has_none_of_the_old(kept: holdfast.Store) -> None:
    ours, theirs = HoldfastSaver(kept), HoldfastSaver(kept)
    chat(ours, spoken).invoke({"messages": [HumanMessage("old", id="old")]}, AT)
    theirs.delete_thread("t")
    chat(theirs, spoken).invoke({"messages": [HumanMessage("new", id="new")]}, AT)
    chat(ours, spoken).invoke({"messages": [HumanMessage("more", id="more")]}, AT)
    assert said(kept) == ["new", "re 1", "more", "re 3"]
    assert kept.verify().ok


def test_many_write_on_one_checkpoint_at_once(kept: holdfast.Store) -> None:
    saver, base = HoldfastSaver(kept), checkpoint(xs=[1])
    saver.put(BEGIN, base, {}, {"xs": 1})
    workers = [
        threading.Thread(target=HoldfastSaver(kept).put_writes, args=(named(base), [("xs", n)], f"task {n}"))
        for n in range(8)
    ]
    for each in workers:
        each.start()
    for each in workers:
        each.join(60)
    found = saver.get_tuple(AT)
    assert found is not None
    assert sorted(value for _, _, value in found.pending_writes or []) == [*range(8)]


def test_items_are_stored_only_where_something_is_large(kept: holdfast.Store) -> None:
    chat(HoldfastSaver(kept), spoken).invoke({"messages": [HumanMessage("short")]}, AT)
    assert events_of(kept, ITEMS) == []


# Listing, page by page


def ids(found: Any) -> list[str]:
    return [each.config["configurable"]["checkpoint_id"] for each in found]


@pytest.fixture
def long(kept: holdfast.Store) -> Any:
    """A graph with more checkpoints than are read at once."""
    graph = chat(HoldfastSaver(kept), spoken)
    for turn in range(60):
        graph.invoke({"messages": [HumanMessage(f"m{turn}")]}, AT, durability="sync")
    return graph


def test_the_first_few_are_those_of_the_whole_list(kept: holdfast.Store, long: Any) -> None:
    saver = HoldfastSaver(kept)
    every = ids(saver.list(AT))
    assert len(every) == 180
    assert every == sorted(every, reverse=True) == [frame.id for frame in Graph(kept.thread("t")).frames()]
    for limit in (0, 1, 63, 64, 65, 179, 181):
        assert ids(saver.list(AT, limit=limit)) == every[:limit]
    for at in (0, 1, 63, 64, 130, 179):
        before: Any = {"configurable": {"thread_id": "t", "checkpoint_id": every[at]}}
        assert ids(saver.list(AT, before=before)) == every[at + 1 :]
    unknown: Any = {"configurable": {"thread_id": "t", "checkpoint_id": every[100] + "0"}}
    assert ids(saver.list(AT, before=unknown)) == every[100:]


@pytest.mark.every_engine
def test_who_lists_while_others_write_or_prune_sees_each_once(kept: holdfast.Store, long: Any) -> None:
    saver = HoldfastSaver(kept)
    every = ids(saver.list(AT))
    found = saver.list(AT)
    seen = ids(next(found) for _ in range(70))
    long.invoke({"messages": [HumanMessage("more")]}, AT, durability="sync")
    seen += ids(next(found) for _ in range(5))
    saver.retain(["t"], keep=120)
    seen += ids(found)
    assert seen == every[: len(seen)]
    assert len(seen) >= 117  # those that are left of them
