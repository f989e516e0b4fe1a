"""What a turn takes: an event for each checkpoint, an entry for each message, and nothing besides, whoever is faster.

LangGraph gives writes and checkpoints to threads of their own, so the saver has a little patience for what is on its
way. Where a test counts, it has plenty, so that no other program can make it fail.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, arrivals, keeper
from holdfast.ledger import frames
from holdfast.ledger.frames import ENTRIES, GRAPH, LIST

AT: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_OVERTAKEN_S", 30.0)
    monkeypatch.setattr(arrivals, "_PASSED_ON_S", 30.0)
    monkeypatch.setattr(arrivals, "_SOON_S", 30.0)
    monkeypatch.setattr(arrivals, "_LOOKS", 60_000)


@pytest.fixture(params=["sync", "async"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def chat(saver: HoldfastSaver, answer: Callable[[Any], Any], schema: Any = MessagesState) -> Any:
    graph: Any = StateGraph(schema)
    return (
        graph.add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END).compile(checkpointer=saver)
    )


def silent(state: Any) -> None:
    return None


def spoken(state: Any) -> Any:
    return {"messages": [AIMessage(f"re {len(state['messages'])}")]}


def events_of(store: holdfast.Store, kind: str, id: str) -> list[str]:
    record = store.core.engine.get(store.tenant, kind, id)
    return [] if record is None else [each.kind for each in store.core.engine.read(store.tenant, record.mark)]


def graph_events(store: holdfast.Store) -> list[str]:
    return events_of(store, GRAPH, frames.graph_id("t", ""))


def held(saver: HoldfastSaver) -> Any:
    """How the messages of the newest frame are held."""
    tip = saver._keeper._line(keeper.Spot("t", "", None)).tip
    assert tip is not None
    assert tip.channels["messages"].ref is not None
    return tip.channels["messages"].ref


def soon(work: Callable[[], None], seconds: float = 20.0) -> bool:
    """Whether something comes to its end, and not after waiting for what does not come."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


@pytest.mark.parametrize("answer", [silent, spoken])
def test_a_turn_takes_an_event_and_a_commit_for_each_checkpoint(
    kept: holdfast.Store, patient: None, durability: str, answer: Callable[[Any], Any]
) -> None:
    turns = 12
    saver = HoldfastSaver(kept)
    graph = chat(saver, answer)
    for turn in range(turns):
        graph.invoke({"messages": [HumanMessage(f"m{turn}")]}, AT, durability=durability)
    assert graph_events(kept) == ["frame"] * (3 * turns)
    assert events_of(kept, "segment", frames.segment_id(frames.graph_id("t", ""), "messages")) == []
    commits = kept.core.engine.feed(kept.tenant, limit=1_000)
    assert len(commits) == 3 * turns + 1  # and the one that began the thread
    log = kept.thread("t").log()
    assert [entry.content["role"] for entry in log] == (["user"] if answer is silent else ["user", "assistant"]) * turns
    assert held(saver)[0] == ENTRIES
    assert len(held(saver)[1]) == 1


def test_a_question_has_its_id_in_the_log(kept: holdfast.Store, patient: None, durability: str) -> None:
    chat(HoldfastSaver(kept), spoken).invoke({"messages": [HumanMessage("hi")]}, AT, durability=durability)
    messages = chat(HoldfastSaver(kept), spoken).get_state(AT).values["messages"]
    assert [entry.content["id"] for entry in kept.thread("t").log()] == [message.id for message in messages]
    assert all(message.id for message in messages)


def test_messages_that_get_their_ids_late_are_noted_in_ranges_and_then_in_a_list(kept: holdfast.Store) -> None:
    """However they are held, they are the same for whoever comes, and so is every older checkpoint."""
    saver, talk, ways = HoldfastSaver(kept), list[AnyMessage](), list[Any]()
    at: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for turn in range(24):
        message = HumanMessage(f"m{turn}")
        at = saver.put(at, checkpoint(xs=[message]), {"step": turn}, {"xs": turn})  # it is in the log now
        message.id = f"id {turn}"
        talk.append(message)
        at = saver.put(at, checkpoint(messages=[*talk]), {"step": turn}, {"messages": turn})
        ways.append(held(saver))
    assert ways[0] == (ENTRIES, [[0, 1, 1, "id 0"]])
    assert [way for way, _ in ways] == [ENTRIES] * 16 + [LIST] * 8
    assert [entry.content["content"] for entry in kept.thread("t").log()] == [message.content for message in talk]
    assert kept.graph("t").values()["messages"][3]["id"] == "id 3"
    for keep in (None, 9):
        if keep is not None:
            saver.retain(["t"], keep=keep)
        found = [each for each in HoldfastSaver(kept).list(AT) if "messages" in each.checkpoint["channel_values"]]
        values = [each.checkpoint["channel_values"]["messages"] for each in found]
        assert values == [talk[:length] for length in range(24, 24 - len(values), -1)]
        assert len(values) == (24 if keep is None else 5)
        assert not kept.verify().problems


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]


def test_where_nobody_gives_ids_nobody_waits_for_them_again(
    kept: holdfast.Store, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_PASSED_ON_S", 30.0)
    saver = HoldfastSaver(kept)
    graph = chat(saver, spoken, Plain)
    for turn in range(3):
        graph.invoke({"messages": [HumanMessage(f"m{turn}")]}, AT, durability=durability)
    assert not saver._keeper._arrivals.naming.left()
    texts = [message.content for message in chat(HoldfastSaver(kept), spoken, Plain).get_state(AT).values["messages"]]
    assert texts == ["m0", "re 1", "m1", "re 3", "m2", "re 5"]
    assert [entry.content["content"] for entry in kept.thread("t").log()] == texts


class Counted(MessagesState):
    cfg: dict[str, int]


def test_what_a_node_might_change_does_not_wait(kept: holdfast.Store, patient: None, durability: str) -> None:
    """A node is given the very objects that are being saved. What is on its way is not waited for then."""
    given = {"messages": [HumanMessage("hi")], "cfg": {"x": 1}}
    waited: list[str] = []
    saver = HoldfastSaver(kept)
    waits: Any = saver._keeper._arrivals
    waits.let_ids_come = waits.let_writes_come = lambda *_: waited.append("")
    chat(saver, spoken, Counted).invoke(given, AT, durability=durability)
    assert waited == []
    chat(saver, spoken).invoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "u"}})
    assert waited
    found = chat(HoldfastSaver(kept), spoken, Counted).get_state(AT).values
    assert (found["cfg"], [each.content for each in found["messages"]]) == ({"x": 1}, ["hi", "re 1"])


def test_who_fails_or_waits_for_somebody_is_saved_at_once(kept: holdfast.Store, patient: None, durability: str) -> None:
    """No checkpoint follows. Had its writes waited for one, this would take half a minute for each."""

    def asking(state: Any) -> Any:
        if interrupt("sure?") == "no":
            raise ValueError("not sure")
        return {"messages": [AIMessage("done")]}

    graph, ends = chat(HoldfastSaver(kept), asking), []

    def run() -> None:
        ends.append(graph.invoke({"messages": [HumanMessage("go")]}, AT, durability=durability)["__interrupt__"])
        with pytest.raises(ValueError, match="not sure"):
            graph.invoke(Command(resume="no"), AT, durability=durability)
        ends.append(chat(HoldfastSaver(kept), asking).get_state(AT).tasks[0].error)

    assert soon(run)
    assert ends[0][0].value == "sure?"
    assert "not sure" in ends[1]


def test_where_no_thread_is_free_to_bring_anything_nobody_waits_twice(
    kept: holdfast.Store, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    """With one thread alone, what is waited for comes after who waits: that is found out once."""
    graph = chat(HoldfastSaver(kept), spoken)
    alone: Any = {**AT, "max_concurrency": 1}
    graph.invoke({"messages": [HumanMessage("first")]}, alone, durability=durability)
    for name in ("_OVERTAKEN_S", "_PASSED_ON_S", "_SOON_S"):
        monkeypatch.setattr(arrivals, name, 60.0)
    assert soon(lambda: graph.invoke({"messages": [HumanMessage("second")]}, alone, durability=durability))
    texts = ["first", "re 1", "second", "re 3"]
    assert [entry.content["content"] for entry in kept.thread("t").log()] == texts


# Writes that come before their checkpoint


def checkpoint(**values: Any) -> Any:
    made = empty_checkpoint()
    return {**made, "channel_values": values, "channel_versions": dict.fromkeys(values, 1)}


@pytest.fixture
def early(kept: holdfast.Store) -> HoldfastSaver:
    """A saver that was given what two tasks wrote before the checkpoint they wrote on top of."""
    saver = HoldfastSaver(kept)
    first, second = checkpoint(xs=[1]), checkpoint(xs=[1, 2])
    at = saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, first, {"step": 1}, {"xs": 1})
    before = len(kept.core.engine.feed(kept.tenant))
    named: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": second["id"]}}
    saver.put_writes(named, [("xs", "a" * 5_000), ("branch:to:b", None)], "task 1", "~__pregel_pull, a")
    saver.put_writes(named, [("-", HumanMessage("said", id="m"))], "task 2", "=path")
    assert len(kept.core.engine.feed(kept.tenant)) == before
    saver.put(at, second, {"step": 2}, {"xs": 1})
    assert len(kept.core.engine.feed(kept.tenant)) == before + 1
    return saver


WRITES = [("task 2", "-", HumanMessage("said", id="m")), ("task 1", "xs", "a" * 5_000), ("task 1", "branch:to:b", None)]


@pytest.mark.every_engine
def test_they_are_saved_with_it_in_one_commit(kept: holdfast.Store, early: HoldfastSaver) -> None:
    assert graph_events(kept) == ["frame", "frame"]
    for saver in (early, HoldfastSaver(kept)):
        found = saver.get_tuple(AT)
        assert found is not None
        assert sorted(found.pending_writes or [], key=str) == sorted(WRITES, key=str)
    assert {write.channel for write in kept.graph("t").writes()} == {"xs", "branch:to:b", "-"}
    assert [entry.content["content"] for entry in kept.thread("t").log()] == ["said"]


def test_they_are_there_when_the_graph_was_pruned_copied_or_moved(
    kept: holdfast.Store, early: HoldfastSaver, tmp_path: Any
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


def test_they_are_part_of_the_history_of_a_channel(kept: holdfast.Store, early: HoldfastSaver) -> None:
    tip = early.get_tuple(AT)
    assert tip is not None
    early.put(tip.config, checkpoint(ys=1), {"step": 3}, {"ys": 1})
    found = HoldfastSaver(kept).get_delta_channel_history(config=AT, channels=["-"])
    assert [write[2] for write in found["-"]["writes"]] == [HumanMessage("said", id="m")]


@pytest.mark.parametrize("content", ["text", [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]])
def test_what_an_input_is_passed_on_as_is_not_said_again(kept: holdfast.Store, content: Any) -> None:
    """Also when somebody looks before the next checkpoint comes, and has it saved by itself."""
    saver, message = HoldfastSaver(kept), HumanMessage(content)
    given = checkpoint(__start__={"messages": [message]})
    at = saver.put(
        {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, given, {"source": "input"}, {"__start__": 1}
    )
    saver.put_writes(at, [("messages", [message])], "task", "~__pregel_pull, __start__")
    for _ in range(3):
        found = saver.get_tuple(AT)
        assert found is not None
        assert found.pending_writes == [("task", "messages", [message])]
    assert [entry.content["content"] for entry in kept.thread("t").log()] == [content]


def test_the_first_of_two_that_a_task_gives_is_kept(kept: holdfast.Store) -> None:
    saver, later = HoldfastSaver(kept), checkpoint(xs=[1])
    named: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": later["id"]}}
    saver.put_writes(named, [("xs", "first")], "task", "")
    saver.put_writes(named, [("xs", "second"), ("ys", "more")], "task", "")
    saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, later, {}, {"xs": 1})
    found = HoldfastSaver(kept).get_tuple(AT)
    assert found is not None
    assert found.pending_writes == [("task", "xs", "first"), ("task", "ys", "more")]


class Unknown:
    """Of a class that nobody registered."""


def test_so_is_the_first_of_two_that_wait_for_the_next_checkpoint(kept: holdfast.Store, patient: None) -> None:
    saver = HoldfastSaver(kept)
    at = saver.put(
        {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint(__start__=1), {}, {"__start__": 1}
    )
    for value in ("first", "second"):
        saver.put_writes(at, [("xs", value)], "task", "~__pregel_pull, __start__")
    saver.put(at, checkpoint(xs=1), {}, {"xs": 1})
    found = HoldfastSaver(kept).get_tuple(at)
    assert found is not None
    assert found.pending_writes == [("task", "xs", "first")]


def test_what_waits_for_too_many_checkpoints_is_given_up_aloud(
    kept: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_HELD", 3)
    saver = HoldfastSaver(kept)
    given = []
    for number in range(5):
        named: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": f"c{number}"}}
        given.append(saver._put_writes(named, [("xs", number)], "task", ""))
    assert [each is not None and isinstance(each.error, holdfast.errors.Unavailable) for each in given] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_what_cannot_be_kept_does_not_cost_the_checkpoint(kept: holdfast.Store) -> None:
    """Nor is anything of it kept: neither a message beside it nor what is said to be durable."""
    saver, later = HoldfastSaver(kept), checkpoint(xs=[1])
    named: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": later["id"]}}
    saver.put_writes(named, [("messages", [HumanMessage("beside it")]), ("xs", Unknown())], "bad", "")
    saver.put_writes(named, [("xs", "good")], "good", "")
    with pytest.raises(holdfast.errors.Invalid, match="Unknown"):
        saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, later, {}, {"xs": 1})
    found = HoldfastSaver(kept).get_tuple(AT)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"xs": [1]}
    assert found.pending_writes == [("good", "xs", "good")]
    assert kept.thread("t").log() == []


def test_who_waits_for_a_checkpoint_that_is_refused_is_told(kept: holdfast.Store, early: HoldfastSaver) -> None:
    """And nothing of what waited is left to be saved with something else."""
    newest = early.get_tuple(AT)
    assert newest is not None
    ours, theirs = checkpoint(xs=[3]), checkpoint(xs=[4])
    HoldfastSaver(kept).put(newest.config, theirs, {"step": 3}, {"xs": 1})
    named: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": ours["id"]}}
    told: list[BaseException] = []

    def result() -> None:
        try:
            early.put_result(named, [("xs", "lost")], "task 3")
        except holdfast.errors.HoldfastError as error:
            told.append(error)

    waiting = threading.Thread(target=result)
    waiting.start()
    for _ in range(30_000):
        if early._keeper._held:
            break
        waiting.join(0.001)
    early._keeper.hand_out(AT, newest)
    with pytest.raises(holdfast.errors.Conflict):
        early.put(newest.config, ours, {"step": 3}, {"xs": 1})
    waiting.join(30)
    assert isinstance(told[0], holdfast.errors.Unavailable)
    assert not early._keeper._held


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
    assert every == sorted(every, reverse=True) == [frame.id for frame in kept.graph("t").frames()]
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
