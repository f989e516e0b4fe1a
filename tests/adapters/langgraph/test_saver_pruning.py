"""What goes and what stays: by count, age, bytes and run. What stays reads as before; what goes leaves nothing."""

from __future__ import annotations

import hashlib
import operator
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, Pruned, frames
from holdfast.adapters.langgraph.frames import GRAPH, ITEMS, Frame
from holdfast.clock import to_datetime
from holdfast.engine.contract import Append, Put, Query, Scope
from holdfast.errors import Conflict, Erased, Invalid
from holdfast.ledger.core import scan_all
from holdfast.testing import ManualClock

KINDS = (GRAPH, ITEMS)


class State(TypedDict, total=False):
    xs: Annotated[list[Any], operator.add]
    messages: Annotated[list[Any], add_messages]
    big: Any
    box: dict[str, Any]


def at(thread: str = "t", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **more}}


def build(saver: Any) -> Any:
    """A graph with each way in which a value may be kept."""
    graph: Any = StateGraph(State)

    def work(state: State) -> State:
        number = len(state.get("xs", []))
        return {
            "xs": [f"{number} " * 100], "messages": [AIMessage(f"answer {number}", id=f"a{number}")],
            "big": f"{number} " * 2_000, "box": {f"key {each}": [number, each] for each in range(number % 3 * 12)},
        }  # fmt: skip

    graph.add_node("work", work)
    graph.add_node("rest", lambda state: {"xs": ["rest"]})
    return graph.add_edge(START, "work").add_edge("work", "rest").compile(checkpointer=saver)


def talk(saver: Any, turns: int, thread: str = "t", **more: Any) -> Any:
    graph = build(saver)
    for number in range(turns):
        message = HumanMessage(f"turn {number}", id=f"h{thread}{number}")
        graph.invoke({"messages": [message], "xs": [number]}, at(thread), **more)
    return graph


def everything(store: holdfast.Store, config: Any = None) -> dict[tuple[str, ...], Any]:
    """Every checkpoint of a thread, or of all, read by a saver that knows nothing."""
    found = {}
    for each in HoldfastSaver(store).list(config):
        named = each.config["configurable"]
        found[named["thread_id"], named["checkpoint_ns"], named["checkpoint_id"]] = each
    single = HoldfastSaver(store)
    for each in found.values():
        assert single.get_tuple(each.config) == each
    return found


def there(store: holdfast.Store, thread: str | None = None) -> dict[str, int]:
    core = store.core
    return {kind: len(list(scan_all(core.engine, core.tenant, Query(kind, thread=thread)))) for kind in KINDS}


def unchanged(before: dict[Any, Any], after: dict[Any, Any]) -> None:
    for key, each in after.items():
        assert each == before[key]


# Rules


def test_the_newest_so_many_stay_and_read_as_before(kept: holdfast.Store) -> None:
    talk(HoldfastSaver(kept), 6)
    before = everything(kept, at())
    assert len(before) == 24
    report = HoldfastSaver(kept).retain(["t"], keep=5)
    after = everything(kept, at())
    unchanged(before, after)
    assert list(after) == list(before)[:5]
    assert (report.threads, report.checkpoints, report.kept) == (1, 19, 5)
    assert report.bytes > 0
    assert isinstance(report, Pruned)
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []
    assert len(build(HoldfastSaver(kept)).invoke({"xs": ["on"]}, at())["xs"]) == 21


def test_age_is_told_by_the_time_of_the_checkpoint() -> None:
    clock = ManualClock()
    with holdfast.open("ram:", embedder="none", clock=clock) as store:
        saver = HoldfastSaver(store)
        config, made = at(checkpoint_ns=""), []
        for day in range(10):
            each: Any = {**empty_checkpoint(), "id": str(uuid6()), "ts": to_datetime(clock.now()).isoformat()}
            each |= {"channel_values": {"x": [f"day {day} " * 100]}, "channel_versions": {"x": day + 1}}
            config = saver.put(config, each, {"source": "loop", "step": day, "parents": {}}, {"x": day + 1})
            made.append(config["configurable"]["checkpoint_id"])
            clock.advance(86_400)
        before = everything(store)
        dry = saver.retain(older_than=timedelta(days=3, hours=1), dry_run=True)
        assert (dry.checkpoints, dry.kept) == (7, 3)
        assert everything(store) == before
        assert saver.retain(older_than=timedelta(days=3, hours=1)) == dry
        after = everything(store)
        unchanged(before, after)
        assert [key[2] for key in after] == made[:-4:-1]
        clock.advance(86_400 * 365)
        assert saver.retain(older_than=timedelta(days=1)).kept == 1, "the newest always stays"


def test_bytes_bound_what_stays(kept: holdfast.Store) -> None:
    talk(HoldfastSaver(kept), 8)
    before = everything(kept, at())
    some = HoldfastSaver(kept).retain(["t"], max_bytes=4_000)
    assert 1 <= some.kept < len(before)
    after = everything(kept, at())
    unchanged(before, after)
    assert list(after) == list(before)[: some.kept]
    assert HoldfastSaver(kept).retain(["t"], max_bytes=0).kept == 1
    assert HoldfastSaver(kept).retain(["t"], keep=0).kept == 0
    assert everything(kept, at()) == {}


def noise(number: int) -> str:
    """A text of 50,000 characters that does not get shorter by being packed."""
    return "".join(hashlib.sha256(f"{number}/{part}".encode()).hexdigest() for part in range(782))


def test_large_values_count_as_bytes_too(store: holdfast.Store) -> None:
    saver = HoldfastSaver(store)
    config = at(checkpoint_ns="")
    for number in range(10):
        each: Any = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": {"x": noise(number)}}
        each["channel_versions"] = {"x": number}
        config = saver.put(config, each, {"source": "loop", "step": number, "parents": {}}, {"x": number})
    assert saver.retain(["t"], max_bytes=20_000, dry_run=True).checkpoints > 0, "ten blobs, each of 50,000 characters"


@pytest.mark.parametrize("rule", [
    {}, {"keep": -1}, {"keep": 1.5}, {"keep": True}, {"max_bytes": "1"}, {"older_than": 5}, {"max_bytes": -1},
])  # fmt: skip
def test_rules_that_make_no_sense(store: holdfast.Store, rule: Any) -> None:
    with pytest.raises(Invalid):
        HoldfastSaver(store).retain(["t"], **rule)
    with pytest.raises(Invalid):
        HoldfastSaver(store).prune(["t"], strategy="all")


def test_threads_that_are_not_named_are_not_touched(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    talk(saver, 2, "t")
    talk(saver, 2, "other")
    before = everything(kept)
    saver.prune(["t", "t", "unknown"])
    after = everything(kept)
    unchanged(before, after)
    assert [key[0] for key in after].count("t") == 1
    assert [key[0] for key in after].count("other") == 8
    saver.prune([])
    assert everything(kept) == after


@pytest.mark.every_engine
def test_nothing_is_left_of_what_nobody_reaches(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    talk(saver, 6)
    full = there(kept)
    assert min(full.values()) > 0
    saver.retain(["t"], keep=1)
    some = there(kept)
    assert some == full, "one of each, with less in it"
    saver.prune(["t"], strategy="delete")
    assert there(kept) == dict.fromkeys(KINDS, 0)
    assert len(kept.thread("t").log()) == 12, "what was said was said"


@pytest.mark.parametrize("checkpointer", [None, True], ids=["inherits", "keeps its own"])
def test_a_large_value_that_graphs_share_goes_with_the_last_of_them(kept: holdfast.Store, checkpointer: Any) -> None:
    saver = HoldfastSaver(kept)
    graph: Any = StateGraph(State)
    graph.add_node("sub", build(checkpointer))
    compiled = graph.add_edge(START, "sub").compile(checkpointer=saver)
    for number in range(3):
        compiled.invoke({"big": f"{number}SHARED" * 2_000, "xs": []}, at())
    before = everything(kept, at())
    saver.retain(["t"], keep=2)
    unchanged(before, everything(kept, at()))
    saver.prune(["t"], strategy="delete")
    assert there(kept) == dict.fromkeys(KINDS, 0)


def test_the_log_can_grow_on_after_everything_was_pruned(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    talk(saver, 2)
    saver.prune(["t"], strategy="delete")
    graph = build(saver)
    assert graph.get_state(at()).values == {}
    graph.invoke({"messages": [HumanMessage("anew", id="n")], "xs": []}, at())
    assert [m.content for m in build(HoldfastSaver(kept)).get_state(at()).values["messages"]] == ["anew", "answer 0"]
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []


def test_interrupts_and_writes_that_wait_survive(kept: holdfast.Store) -> None:
    def asks(saver: Any) -> Any:
        graph: Any = StateGraph(State)
        graph.add_node("a", lambda state: {"xs": ["a" * 3_000]})
        graph.add_node("ask", lambda state: {"xs": [interrupt("q" * 3_000)]})
        return graph.add_edge(START, "a").add_edge(START, "ask").compile(checkpointer=saver)

    asks(HoldfastSaver(kept)).invoke({"xs": []}, at())
    before = asks(HoldfastSaver(kept)).get_state(at())
    HoldfastSaver(kept).prune(["t"])
    after = asks(HoldfastSaver(kept)).get_state(at())
    assert after == before
    assert asks(HoldfastSaver(kept)).invoke(Command(resume="r"), at())["xs"] == ["a" * 3_000, "r"]


OPS = st.lists(st.tuples(st.sampled_from(["grow", "edit", "cut", "fork", "write", "blob"]), st.integers(0, 30)),
               min_size=1, max_size=25)  # fmt: skip


@given(ops=OPS, keep=st.integers(0, 12), max_bytes=st.none() | st.integers(0, 6_000), pages=st.integers(1, 3))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_the_history_what_survives_is_as_it_was(
    ops: list[Any], keep: int, max_bytes: int | None, pages: int
) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        saver = HoldfastSaver(store, branches=True)
        values: dict[str, dict[str, Any]] = {"": {"xs": [], "n": 0}}
        configs: list[Any] = [at(checkpoint_ns="")]
        for step, (what, number) in enumerate(ops):
            parent = configs[number % len(configs)] if what == "fork" else configs[-1]
            state = {**values[parent["configurable"].get("checkpoint_id", "")]}
            xs = [*state["xs"]]
            if what in ("grow", "fork"):
                xs += [f"{step}/{each} " * 30 for each in range(1 + number % 4)]
            elif what == "edit" and xs:
                xs[number % len(xs)] = f"edited {step} " * 20
            elif what == "cut":
                xs = xs[: number % (len(xs) + 1)]
            state |= {"xs": xs, "n": step, "big": f"{number % 3}" * 3_000 if what == "blob" else state.get("big", "")}
            each: Any = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": state}
            each["channel_versions"] = dict.fromkeys(state, step + 1)
            told: Any = {"source": "loop", "step": step, "parents": {}}
            configs.append(saver.put(parent, each, told, each["channel_versions"]))
            values[each["id"]] = state
            if what == "write":
                saver.put_writes(configs[-1], [("xs", ["w" * 100 * number])], f"task {step}", "p")
        before = everything(store)
        for _ in range(pages):
            HoldfastSaver(store).retain(["t"], keep=keep, max_bytes=max_bytes)
        after = everything(store)
        unchanged(before, after)
        assert list(after) == list(before)[: len(after)]
        assert len(after) <= keep
        assert store.verify().problems == ()
        if not after:
            assert there(store) == dict.fromkeys(KINDS, 0)


def test_ten_thousand_threads_at_once(tmp_path: Any) -> None:
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
        saver = HoldfastSaver(store)
        saver.put(at("0", checkpoint_ns=""), {**empty_checkpoint(), "id": str(uuid6())}, {}, {})
        several(store, 10_000, 2)
        report = saver.retain(keep=1)
        assert (report.threads, report.checkpoints, report.kept) == (10_000, 10_000, 10_001)
        assert saver.get_tuple(at("t9999")) is not None


def several(store: holdfast.Store, threads: int, each: int) -> None:
    """Many threads with checkpoints, by commits of many at once: saving them one by one would take a minute."""
    core, now = store.core, store.core.clock.now()
    for begin in range(0, threads, 500):
        ops: list[Any] = []
        for number in range(begin, min(begin + 500, threads)):
            events: list[Any] = []
            last: Frame | None = None
            thread = f"t{number}"
            for step in range(each):
                body = {
                    "parent": last and last.id, "time": "", "metadata": {"source": "loop", "step": step},
                    "versions": {"x": step}, "values": {"x": ["v", step]}, "seen": {}, "updated": None,
                }  # fmt: skip
                event, last = frames.frame_event(str(uuid6()), body, last, now)
                events.append(event)
            scope = Scope(thread=thread)
            ops.append(Put("thread", thread, b"j1{}", scope=scope))
            new = Put(GRAPH, frames.graph_id(thread, ""), frames.graph_body("", 1), scope=scope)
            ops.append(Append(GRAPH, frames.graph_id(thread, ""), tuple(events), 0, new))
        core.engine.commit(core.tenant, ops, now)


def test_pruning_beside_a_run(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    stop = threading.Event()

    def prune() -> int:
        count = 0
        while not stop.is_set():
            HoldfastSaver(kept).retain(["t"], keep=2)
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        pruning = pool.submit(prune)
        try:
            talk(saver, 6, durability="sync")
        finally:
            stop.set()
        assert pruning.result(60) > 0
    values = build(HoldfastSaver(kept)).get_state(at()).values
    assert [m.content for m in values["messages"]] == [
        text for number in range(6) for text in (f"turn {number}", f"answer {number * 3 + 1}")
    ]
    assert len(values["xs"]) == 18
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []


# Copying


def test_a_copy_is_whole_and_stands_alone(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    graph = build(saver)
    talk(saver, 3)
    old = list(graph.get_state_history(at()))[5]
    graph.invoke({"xs": ["fork"]}, old.config)
    assert graph.get_state(at("copy")).values == {}
    before = everything(kept, at())
    saver.copy_thread("t", "copy")
    assert everything(kept, at()) == before
    saver.delete_thread("t")
    after = everything(kept, at("copy"))
    assert len(after) == len(before)
    for (_, space, id), each in before.items():
        copy = after["copy", space, id]
        assert copy.checkpoint == each.checkpoint
        assert copy.metadata == each.metadata
        assert copy.pending_writes == each.pending_writes
        assert (copy.parent_config or {}).get("configurable", {}).get("checkpoint_id") == (
            (each.parent_config or {}).get("configurable", {}).get("checkpoint_id")
        )
    assert len(build(HoldfastSaver(kept)).invoke({"xs": ["on"]}, at("copy"))["xs"]) > 3
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []


def test_a_copy_has_the_subgraphs_too(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    graph: Any = StateGraph(State)
    graph.add_node("sub", build(True))
    compiled = graph.add_edge(START, "sub").compile(checkpointer=saver)
    compiled.invoke({"xs": [1], "messages": [HumanMessage("h", id="h")]}, at())
    compiled.invoke({"xs": [2]}, at())
    before = [(key[1:], each.checkpoint) for key, each in everything(kept, at()).items()]
    assert len({key[0] for key, _ in before}) == 2
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")
    assert [(key[1:], each.checkpoint) for key, each in everything(kept, at("copy")).items()] == before


def test_copies_that_are_refused_and_copies_of_nothing(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    talk(saver, 1, "a")
    talk(saver, 1, "b")
    with pytest.raises(Conflict, match="copy to a new thread"):
        saver.copy_thread("a", "b")
    with pytest.raises(Conflict):
        saver.copy_thread("a", "a")
    saver.copy_thread("nothing", "c")
    assert everything(kept, at("c")) == {}


def test_a_pruned_thread_is_copied_to_a_name_that_was_deleted(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    talk(saver, 2, "a")
    talk(saver, 1, "b")
    saver.retain(["a"], keep=3)
    saver.delete_thread("b")
    saver.copy_thread("a", "b")
    assert len(everything(kept, at("b"))) == 3


# Runs


def test_the_checkpoints_of_a_run_go_and_the_others_stay(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    graph = build(saver)
    for number in range(3):
        config = {**at(), "metadata": {"run_id": f"run {number}"}}
        graph.invoke({"xs": [number], "messages": [HumanMessage("h", id=f"h{number}")]}, config)
    graph.invoke({"xs": [9]}, {**at("other"), "metadata": {"run_id": "run 1"}})
    before = everything(kept)
    assert {each.metadata.get("run_id") for each in before.values()} == {"run 0", "run 1", "run 2"}
    saver.delete_for_runs(["run 1", "unknown"])
    after = everything(kept)
    unchanged(before, after)
    assert list(after) == [key for key, each in before.items() if each.metadata["run_id"] != "run 1"]
    assert graph.get_state(at("other")).values == {}
    saver.delete_for_runs(["run 1"])
    assert everything(kept) == after
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []


@pytest.mark.every_engine
def test_an_erased_thread_is_not_brought_back_by_pruning(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    talk(saver, 2)
    kept.erase(thread="t")
    assert saver.retain(["t"], keep=1) == Pruned(0, 0, 0, 0)
    assert there(kept) == dict.fromkeys(KINDS, 0)
    with pytest.raises(Erased):
        talk(saver, 1)
