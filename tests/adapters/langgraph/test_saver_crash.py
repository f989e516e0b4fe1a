"""A process that is killed between its steps: how many of them are done again, here and with the bundled saver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState
from langgraph.types import Command

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver

AT: Any = {"configurable": {"thread_id": "t"}}
STEPS = 5

# What the killed process and this one have in common. Each step leaves a line behind, outside of any store.
GRAPH = """
import operator, os, signal, sys
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict
import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, task
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task as bundled_task
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

class State(TypedDict):
    xs: Annotated[list[Any], operator.add]

def note(path, what):
    with open(path, "a") as file:
        file.write(f"{what}\\n")
        file.flush()
        os.fsync(file.fileno())

def die():
    os.kill(os.getpid(), signal.SIGKILL)

@contextmanager
def saving(kind, path):
    if kind == "holdfast":
        with holdfast.open(path, embedder="none") as store:
            yield HoldfastSaver(store)
    else:
        with SqliteSaver.from_conn_string(path) as saver:
            yield saver

def steps(saver, notes, dies_at=0, count=5):
    def step(number):
        def node(state):
            if number == dies_at:
                die()
            note(notes, number)
            return {"xs": [number]}
        return node

    graph = StateGraph(State)
    names = [START, *(f"step{number}" for number in range(1, count + 1))]
    for number, name in enumerate(names[1:], 1):
        graph.add_node(name, step(number))
    for before, after in zip(names, names[1:]):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)

def tasks(saver, notes, dies=False, declare=task):
    @declare
    def work(number):
        note(notes, number)
        return number * 10

    @entrypoint(checkpointer=saver)
    def flow(numbers):
        made = [work(number).result() for number in numbers]
        if dies:
            die()
        return made

    return flow

def beside(saver, notes, path, dies=False):
    def quick(state):
        note(notes, "quick")
        return {"xs": ["quick"]}

    def slow(state):
        if dies:
            # Killed once the other task's result is to be seen by somebody else: this one runs for as long as it takes.
            with holdfast.open(path, embedder="none") as other:
                reader = HoldfastSaver(other)
                while not any("quick" in str(write) for write in
                              reader.get_tuple({"configurable": {"thread_id": "t"}}).pending_writes):
                    pass
            die()
        note(notes, "slow")
        return {"xs": ["slow"]}

    graph = StateGraph(State)
    graph.add_node("quick", quick)
    graph.add_node("slow", slow)
    return graph.add_edge(START, "quick").add_edge(START, "slow").compile(checkpointer=saver)
"""
HERE: dict[str, Any] = {}
exec(compile(GRAPH, "graphs of this test", "exec", dont_inherit=True), HERE)


def killed(path: Path, kind: str, do: str) -> None:
    """Do something in a process that kills itself on the way."""
    script = f"{GRAPH}\nAT = {AT!r}\npath, notes = sys.argv[1:]\nwith saving({kind!r}, path) as saver:\n    {do}\n"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), str(path.parent / "notes")], capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


@contextmanager
def opened(kind: str, path: Path) -> Iterator[Any]:
    if kind == "holdfast":
        with holdfast.open(path, embedder="none") as store:
            yield HoldfastSaver(store)
            assert store.verify().problems == ()
    else:
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield saver


def notes(path: Path) -> Counter[str]:
    return Counter((path.parent / "notes").read_text().split())


def carried_on(graph: Any) -> Any:
    """Go on where the thread is, or begin again where nothing of it was kept."""
    return graph.invoke(None if graph.get_state(AT).tasks else {"xs": []}, AT, durability="sync")


def again(path: Path, kind: str, durability: str, dies_at: int) -> int:
    """How many steps are done a second time when the process was killed at the beginning of one."""
    killed(path, kind, f"steps(saver, notes, {dies_at}).invoke({{'xs': []}}, AT, durability={durability!r})")
    with opened(kind, path) as saver:
        done = carried_on(HERE["steps"](saver, str(path.parent / "notes")))
    assert done["xs"] == [1, 2, 3, 4, 5]
    found = notes(path)
    assert set(found) == {"1", "2", "3", "4", "5"}
    return sum(count - 1 for count in found.values())


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_steps_done_again_after_a_kill(tmp_path: Path, durability: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = {}
    for kind in ("holdfast", "bundled"):
        (tmp_path / kind).mkdir()
        counts[kind] = again(tmp_path / kind / "agent.db", kind, durability, 4)
    with capsys.disabled():
        print(f"\n   killed before step 4 of {STEPS}, {durability}: steps done again: {counts}")
    if durability == "sync":
        assert counts["holdfast"] == 0
    elif durability == "exit":
        assert counts == {"holdfast": 3, "bundled": 3}, "with exit nothing is kept before the end"
    else:
        assert counts["holdfast"] <= 3


@pytest.mark.parametrize("dies_at", [1, 2, 5])
def test_no_step_is_done_again_wherever_the_kill_comes(tmp_path: Path, dies_at: int) -> None:
    assert again(tmp_path / "agent.db", "holdfast", "sync", dies_at) == 0


@pytest.mark.parametrize("declare", ["task", "bundled_task"])
def test_a_task_that_is_done_is_never_done_again(
    tmp_path: Path, declare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.db"
    killed(path, "holdfast", f"tasks(saver, notes, True, {declare}).invoke([1, 2, 3], AT)")
    assert notes(path) == {"1": 1, "2": 1, "3": 1}
    with opened("holdfast", path) as saver:
        flow = HERE["tasks"](saver, str(tmp_path / "notes"), declare=HERE[declare])
        assert flow.invoke(None, AT) == [10, 20, 30]
    repeated = sum(notes(path).values()) - 3
    with capsys.disabled():
        print(f"\n   killed right after 3 tasks, {declare}: tasks done again: {repeated}")
    if declare == "task":
        assert repeated == 0


def test_what_a_task_gave_is_kept_while_others_of_its_step_run(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    killed(path, "holdfast", "beside(saver, notes, path, True).invoke({'xs': []}, AT, durability='sync')")
    with opened("holdfast", path) as saver:
        graph = HERE["beside"](saver, str(tmp_path / "notes"), str(path))
        assert graph.invoke(None, AT)["xs"] == ["quick", "slow"]
    assert notes(path) == {"quick": 1, "slow": 1}


def test_a_question_outlives_the_process_that_asked(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    asking = """
    graph = StateGraph(State)
    graph.add_node("ask", lambda state: {"xs": [interrupt("sure?")]})
    graph.add_edge(START, "ask").compile(checkpointer=saver).invoke({"xs": [1]}, AT, durability="sync"); die()"""
    killed(path, "holdfast", asking.strip())
    with opened("holdfast", path) as saver:
        graph: Any = HERE["StateGraph"](HERE["State"])
        graph.add_node("ask", lambda state: {"xs": [HERE["interrupt"]("sure?")]})
        compiled = graph.add_edge(HERE["START"], "ask").compile(checkpointer=saver)
        assert [each.value for each in compiled.get_state(AT).interrupts] == ["sure?"]
        assert compiled.invoke(Command(resume="yes"), AT)["xs"] == [1, "yes"]


# Killed at any moment


KILLS = int(os.environ.get("HOLDFAST_TEST_KILLS", "25"))
TALK = """
import random, time
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import MessagesState

def talk(path, notes):
    with holdfast.open(path, embedder="none") as store:
        graph = StateGraph(MessagesState)

        def step(number):
            def node(state):
                turn = sum(message.type == "human" for message in state["messages"]) - 1
                note(notes, f"{turn}.{number}")
                return {"messages": [AIMessage(f"{turn}.{number}")]}
            return node

        for number in range(3):
            graph.add_node(f"s{number}", step(number))
            graph.add_edge(f"s{number - 1}" if number else START, f"s{number}")
        talking = graph.compile(checkpointer=HoldfastSaver(store))
        while True:
            state = talking.get_state(AT)
            turn = sum(message.type == "human" for message in state.values.get("messages", ()))
            given = None if state.tasks else {"messages": [HumanMessage(f"ask {turn}")]}
            talking.invoke(given, AT, durability="sync")

path, notes, kills = sys.argv[1:]
chance, usual = random.Random(16), 0.0
for _ in range(int(kills)):
    began, child = time.monotonic(), os.fork()
    if not child:
        talk(path, notes)
    while not usual and time.monotonic() - began < 60:  # how long a first step takes, on a busy machine too
        if os.path.exists(notes):
            usual = max(0.15, 2 * (time.monotonic() - began))
        time.sleep(0.002)
    time.sleep(chance.uniform(0.01, usual or 1))  # so that it is killed anywhere, while it opens the store too
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_killed_at_any_moment_nothing_is_lost_doubled_or_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, told = tmp_path / "agent.db", tmp_path / "notes"
    script = f"{GRAPH}\nAT = {AT!r}\n{TALK}"
    subprocess.run([sys.executable, "-c", script, str(path), str(told), str(KILLS)], timeout=600, check=True)
    begun = [tuple(map(int, line.split("."))) for line in told.read_text().split()]
    assert begun == sorted(begun), "a step began again after the one that follows it had begun"
    with opened("holdfast", path) as saver:
        graph: Any = HERE["StateGraph"](MessagesState)
        for number in range(3):
            graph.add_node(f"s{number}", lambda _: {})
        found = graph.add_edge(START, "s0").compile(checkpointer=saver).get_state(AT).values["messages"]
        said = [message.content for message in found]
        turns = sum(message.type == "human" for message in found)
        expected = [text for n in range(turns) for text in (f"ask {n}", f"{n}.0", f"{n}.1", f"{n}.2")]
        assert said == expected[: len(said)]
        assert len(said) > len(expected) - 4
        log = [entry.content["content"] for entry in saver.store.thread("t").log()]
        assert log[: len(said)] == said[: len(log)]
        assert abs(len(log) - len(said)) <= 1  # what came before its checkpoint is logged with the next
    assert turns > 2
    with capsys.disabled():
        print(f"\n   {KILLS} kills, {turns} turns: {len(begun) - len(set(begun))} unfinished steps began again")
