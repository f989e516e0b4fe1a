"""Several runs on one thread: no turn is lost without an error. What is deleted stays so, also from runs under way."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import operator
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

import apsw
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.engine.contract import Query
from holdfast.errors import Conflict, Erased, ThreadHeld
from holdfast.ledger.core import scan_all

DURABILITIES = ("sync", "async", "exit")


class State(TypedDict):
    xs: Annotated[list[Any], operator.add]


def at(thread: str = "t", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **more}}


def echo(saver: Any, between: Callable[[Any], None] = lambda state: None) -> Any:
    """A graph of two steps that answers what it was given; ``between`` is called in the first of them."""

    def first(state: State) -> State:
        between(state)
        return {"xs": [f"first after {len(state['xs'])}"]}

    graph: Any = StateGraph(State)
    graph.add_node("first", first)
    graph.add_node("second", lambda state: {"xs": ["second"]})
    return graph.add_edge(START, "first").add_edge("first", "second").compile(checkpointer=saver)


def left(store: holdfast.Store, thread: str = "t") -> list[str]:
    """The kinds of records of a thread that are still there."""
    core = store.core
    kinds = ("thread", "graph", "graph items", "state", "checkpoint")
    return [kind for kind in kinds for _ in scan_all(core.engine, core.tenant, Query(kind, thread=thread))]


# Runs that meet


def waiting(meet: threading.Barrier) -> Callable[[Any], None]:
    """Wait until all are here, or one of them gave up."""

    def wait(state: Any) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            meet.wait(30)

    return wait


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("shared", [True, False], ids=["one saver", "a saver each"])
def test_of_runs_that_meet_each_is_in_the_end_or_has_an_error(
    kept: holdfast.Store, durability: str, *, shared: bool
) -> None:
    saver = HoldfastSaver(kept)
    echo(saver).invoke({"xs": ["begin"]}, at())
    meet = threading.Barrier(3)

    def run(name: str) -> str | None:
        try:
            echo(saver if shared else HoldfastSaver(kept), waiting(meet)).invoke(
                {"xs": [name]}, at(), durability=durability
            )
        except Conflict:
            meet.abort()
            return None
        return name

    with ThreadPoolExecutor(3) as pool:
        won = [name for name in pool.map(run, ["a", "b", "c"]) if name]
    found = [x for x in echo(HoldfastSaver(kept)).get_state(at()).values["xs"] if x in ("a", "b", "c")]
    assert won, "one of them goes on"
    assert set(won) <= set(found), "who was told that it went well is in the end"
    assert echo(HoldfastSaver(kept)).invoke({"xs": ["after"]}, at())["xs"][-3] == "after"
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []


@pytest.mark.parametrize("durability", DURABILITIES)
def test_of_runs_that_meet_in_one_loop_too(kept: holdfast.Store, durability: str) -> None:
    async def runs() -> list[Any]:
        saver = HoldfastSaver(kept)
        here = asyncio.Event()
        count = [0]

        async def first(state: State) -> State:
            count[0] += 1
            if count[0] == 3:
                here.set()
            await asyncio.wait_for(here.wait(), 30)
            return {"xs": ["first"]}

        graph: Any = StateGraph(State)
        graph.add_node("first", first)
        compiled = graph.add_edge(START, "first").compile(checkpointer=saver)
        count[0] = 2
        await compiled.ainvoke({"xs": ["begin"]}, at())
        here.clear()
        count[0] = 0

        async def one(name: str) -> str | None:
            try:
                await compiled.ainvoke({"xs": [name]}, at(), durability=durability)
            except Conflict:
                count[0] += 1
                if count[0] >= 3:
                    here.set()
                return None
            return name

        won = [name for name in await asyncio.gather(*(one(name) for name in "abc")) if name]
        state = await compiled.aget_state(at())
        return [won, [x for x in state.values["xs"] if x in ("a", "b", "c")]]

    won, found = asyncio.run(runs())
    assert won, "somebody goes on"
    assert set(won) <= set(found)


RUN = """
import operator, sys
from typing import Annotated, Any, TypedDict
import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.errors import Conflict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    xs: Annotated[list[Any], operator.add]

path, name, turns, durability = sys.argv[1:]
with holdfast.open(path, embedder="none") as store:
    graph = StateGraph(State)
    graph.add_node("a", lambda state: {"xs": ["a"]})
    graph.add_node("b", lambda state: {"xs": ["b"]})
    graph = graph.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=HoldfastSaver(store))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(turns)):
        try:
            graph.invoke({"xs": [f"{name}{number}"]}, {"configurable": {"thread_id": "t"}}, durability=durability)
            print(f"won {name}{number}", flush=True)
        except Conflict:
            print(f"lost {name}{number}", flush=True)
"""


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_no_turn_of_three_processes_is_lost_without_an_error(tmp_path: Path, durability: str) -> None:
    path = tmp_path / "agent.db"
    holdfast.open(path, embedder="none").close()
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, str(path), name, "8", durability],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in "abc"
    ]  # fmt: skip
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    told = [line.split() for run in runs for line in run.communicate(timeout=120)[0].splitlines()]
    assert len(told) == 24
    won = {name for what, name in told if what == "won"}
    with holdfast.open(path, embedder="none") as store:
        xs = echo(HoldfastSaver(store)).get_state(at()).values["xs"]
        found = [x for x in xs if x not in ("a", "b")]
        assert len(found) == len(set(found))
        assert won <= set(found), "what succeeded is in the final state"
        assert won
        assert store.verify().problems == ()


def test_a_lost_run_leaves_the_others_alone_and_may_be_run_again(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    other = [True]

    def overtake(state: Any) -> None:
        if other:
            other.clear()
            contextvars.Context().run(echo(HoldfastSaver(kept)).invoke, {"xs": ["quick"]}, at())

    with pytest.raises(Conflict, match="Run one at a time"):
        echo(saver, overtake).invoke({"xs": ["slow"]}, at(), durability="sync")
    assert echo(saver).get_state(at()).values["xs"][0] == "slow"
    assert echo(saver).invoke({"xs": ["slow again"]}, at())["xs"][-3] == "slow again"


@pytest.mark.every_engine
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("shared", [True, False], ids=["one saver", "a saver each"])
def test_of_runs_that_overlap_each_is_in_the_end_or_has_an_error(
    kept: holdfast.Store, durability: str, *, shared: bool
) -> None:
    """A second run begins and ends while the first is in its first step."""
    saver = HoldfastSaver(kept)
    told: list[str] = []

    def run(name: str, between: Callable[[Any], None] = lambda state: None) -> None:
        graph = echo(saver if shared else HoldfastSaver(kept), between)
        with contextlib.suppress(Conflict):
            graph.invoke({"xs": [name]}, at(), durability=durability)
            told.append(name)

    run("zero")
    run("one", lambda state: contextvars.Context().run(run, "two"))
    found = echo(HoldfastSaver(kept)).get_state(at()).values["xs"]
    assert set(told) <= set(found), "who was told that it went well is in the end"
    assert len(told) == 2, "one goes on, and one has an error"
    assert durability == "async" or told == ["zero", "two"]  # there a save of the first may come between


# One at a time


@pytest.mark.every_engine
def test_the_second_of_two_runs_is_refused_before_it_begins(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    refused: list[ThreadHeld] = []

    def meanwhile(state: State) -> None:
        try:
            with saver.hold(at()):
                contextvars.Context().run(echo(saver).invoke, {"xs": ["two"]}, at())
        except ThreadHeld as error:
            refused.append(error)

    with saver.hold(at()):
        found = echo(saver, meanwhile).invoke({"xs": ["one"]}, at())
    assert found["xs"] == ["one", "first after 1", "second"]
    assert [error.facts["thread"] for error in refused] == ["t"]
    assert echo(saver).get_state(at()).values == found


def test_runs_that_wait_for_each_other_are_all_answered(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)

    def run(number: int) -> None:
        with saver.hold(at(), wait_s=120):
            echo(saver).invoke({"xs": [number]}, at())

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(contextvars.Context().run, run, number) for number in range(12)]:
            done.result()
    values = echo(saver).get_state(at()).values["xs"]
    assert sorted(values[::3]) == list(range(12))
    assert values[2::3] == ["second"] * 12


def test_tasks_that_wait_for_each_other_are_all_answered(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)

    async def run(number: int) -> None:
        async with saver.hold(at(), wait_s=120):
            await echo(saver).ainvoke({"xs": [number]}, at())

    async def main() -> None:
        await asyncio.gather(*map(run, range(12)))

    asyncio.run(main())
    values = echo(saver).get_state(at()).values["xs"]
    assert sorted(values[::3]) == list(range(12))


def test_explicit_forks_may_go_on_beside_each_other(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    graph = echo(saver)
    graph.invoke({"xs": ["begin"]}, at())
    old = graph.get_state(at()).config
    graph.invoke({"xs": ["main"]}, at())
    meet = threading.Barrier(3)

    def fork(name: str) -> list[Any]:
        found: list[Any] = echo(saver, waiting(meet)).invoke({"xs": [name]}, old)["xs"]
        return found

    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(fork, ["a", "b", "c"]))
    assert [end[3] for end in ends] == ["a", "b", "c"]
    assert all("main" not in end for end in ends)
    tips = [state.values["xs"] for state in graph.get_state_history(at()) if not state.next]
    assert sorted(map(str, tips)) == sorted(
        map(str, [*ends, ["begin", "first after 1", "second"],
                  ["begin", "first after 1", "second", "main", "first after 4", "second"]])
    )  # fmt: skip


def test_with_branches_every_run_goes_on_from_where_it_began(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept, branches=True)
    echo(saver).invoke({"xs": ["begin"]}, at())
    meet = threading.Barrier(3)

    def run(name: str) -> list[Any]:
        found: list[Any] = echo(saver, waiting(meet)).invoke({"xs": [name]}, at())["xs"]
        return found

    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(run, ["a", "b", "c"]))
    assert all(name in end for name, end in zip("abc", ends, strict=True))  # whoever began later saw who was there
    tips = [state.values["xs"] for state in echo(saver).get_state_history(at()) if not state.next]
    assert all(end in tips for end in ends)


@pytest.mark.every_engine
def test_many_threads_at_once(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)

    def talk(number: int) -> list[Any]:
        for turn in range(4):
            found: list[Any] = echo(saver).invoke({"xs": [f"{number}/{turn}"]}, at(f"t{number}"))["xs"]
        return found

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(talk, range(24)))
    for number, end in enumerate(ends):
        assert end[::3] == [f"{number}/{turn}" for turn in range(4)]
    assert len(list(saver.list(None))) == 24 * 4 * 4


def test_one_context_that_serves_many_threads_remembers_few(store: holdfast.Store) -> None:
    saver = HoldfastSaver(store)
    for number in range(2_000):
        saver.get_tuple(at(f"t{number}"))
    sizes = [len(value) for value in contextvars.copy_context().values() if isinstance(value, dict | list | tuple)]
    assert max(sizes, default=0) < 600


@pytest.mark.every_engine
def test_a_listing_holds_no_lock_and_stays_true_while_others_write_and_prune(kept: holdfast.Store) -> None:
    class Last(TypedDict):
        xs: list[str]
        n: int

    def build(saver: Any) -> Any:
        graph: Any = StateGraph(Last)
        made = lambda state: {"xs": [f"{state['n']} {k} " * 60 for k in range(1 + state["n"] % 3)]}  # noqa: E731
        return graph.add_node("a", made).add_edge(START, "a").compile(checkpointer=saver)

    saver = HoldfastSaver(kept)
    graph = build(saver)
    for number in range(6):
        graph.invoke({"n": number}, at())
    want = {each.config["configurable"]["checkpoint_id"]: each.checkpoint for each in saver.list(at())}
    listing = HoldfastSaver(kept).list(at())
    seen = [next(listing)]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(graph.invoke, {"n": 7}, at()).result(30)
        pool.submit(HoldfastSaver(kept).retain, ["t"], keep=8).result(30)
    seen += list(listing)
    for each in seen:
        assert each.checkpoint["channel_values"] == want[each.config["configurable"]["checkpoint_id"]]["channel_values"]
    assert len(seen) >= 4, "what is still there is listed"


# Deleting


@pytest.mark.every_engine
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_thread_deleted_during_a_run_stays_deleted(kept: holdfast.Store, durability: str) -> None:
    saver = HoldfastSaver(kept)
    echo(saver).invoke({"xs": ["before"]}, at())

    def delete(state: Any) -> None:
        worker = threading.Thread(target=HoldfastSaver(kept).delete_thread, args=("t",))
        worker.start()
        worker.join()

    with pytest.raises(Erased, match="deleted"):
        echo(saver, delete).invoke({"xs": ["during"]}, at(), durability=durability)
    assert left(kept) == []
    assert echo(saver).get_state(at()).values == {}
    assert echo(saver).invoke({"xs": ["anew"]}, at())["xs"] == ["anew", "first after 1", "second"]
    assert [entry.kind for entry in kept.thread("t").log()] == []


@pytest.mark.parametrize("checkpointer", [None, True], ids=["inherits", "keeps its own"])
def test_a_subgraph_does_not_bring_a_deleted_thread_back(kept: holdfast.Store, checkpointer: Any) -> None:
    saver = HoldfastSaver(kept)
    sub: Any = StateGraph(State)
    sub.add_node("in", lambda state: {"xs": ["in"]})
    inner = sub.add_edge(START, "in").compile(checkpointer=checkpointer)

    def node(state: State) -> Any:
        HoldfastSaver(kept).delete_thread("t")
        return inner.invoke({"xs": ["sub"]})

    graph: Any = StateGraph(State)
    graph.add_node("node", node)
    with pytest.raises(Erased):
        graph.add_edge(START, "node").compile(checkpointer=saver).invoke({"xs": [1]}, at(), durability="sync")
    assert left(kept) == []


def test_a_run_that_begins_anew_while_an_old_one_is_under_way(kept: holdfast.Store) -> None:
    def anew(state: Any) -> None:
        def work() -> None:
            saver = HoldfastSaver(kept)
            saver.delete_thread("t")
            echo(saver).invoke({"xs": ["anew"]}, at())

        worker = threading.Thread(target=work)
        worker.start()
        worker.join()

    with pytest.raises((Erased, Conflict)):
        echo(HoldfastSaver(kept), anew).invoke({"xs": ["old"]}, at(), durability="sync")
    assert echo(HoldfastSaver(kept)).get_state(at()).values["xs"] == ["anew", "first after 1", "second"]


def test_writes_that_come_after_the_deletion_are_refused(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    echo(saver).invoke({"xs": ["x"]}, at())
    config = echo(saver).get_state(at()).config
    HoldfastSaver(kept).delete_thread("t")
    with pytest.raises(Erased):
        saver.put_writes(config, [("xs", ["late"])], "task", "path")
    assert left(kept) == []


def test_the_bytes_of_a_deleted_thread_are_gone_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    secret = "PurpleElephant"
    with holdfast.open(path, embedder="none") as store:
        saver = HoldfastSaver(store)

        class Mine(MessagesState):
            big: Any

        graph: Any = StateGraph(Mine)
        big = [f"{secret} {number}" * 200 for number in range(9)]
        graph.add_node("a", lambda state: {"messages": [AIMessage(f"{secret} answer")], "big": big})
        compiled = graph.add_edge(START, "a").compile(checkpointer=saver)
        for thread in ("t", "other"):
            compiled.invoke({"messages": [HumanMessage(f"{secret} {thread}")]}, at(thread))
        saver.delete_thread("t")
        saver.delete_thread("other")
        assert left(store) == []
        assert store.verify().problems == ()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes(), file.name


def test_deleting_what_is_not_there_and_deleting_twice(kept: holdfast.Store) -> None:
    saver = HoldfastSaver(kept)
    saver.delete_thread("never")
    echo(saver).invoke({"xs": [1]}, at())
    saver.delete_thread("t")
    saver.delete_thread("t")
    assert asyncio.run(saver.adelete_thread("t")) is None
    assert json.dumps(echo(saver).get_state(at()).values) == "{}"
