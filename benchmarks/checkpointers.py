"""Checkpointers to compare: ours and the two that come with LangGraph, each behind the same few verbs, and the graphs
that are run on them.

The graphs are real ones and do nothing but say 500 random characters, which no store can make smaller. LangGraph's
savers are opened as their documentation shows it. Deliberately absent: clocks and tables (``checkpoints``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import psycopg
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer

from holdfast.adapters.langgraph import HoldfastSaver

LENGTH = 500
LETTERS = "abcdefghijklmnopqrstuvwxyz     "
SQLITE, POSTGRES = "SQLite", "Postgres"
THREAD: Any = {"configurable": {"thread_id": "bench"}}
_TABLES = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relkind = 'r' AND relnamespace IN"
_SPACES = "(SELECT oid FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema')"
_source = random.Random(7)

Durability = Literal["sync", "async", "exit"]
Form = Literal["message", "tuple", "dict"]
FORMS: dict[Form, Callable[[str], Any]] = {
    "message": HumanMessage,
    "tuple": lambda said: ("user", said),
    "dict": lambda said: {"role": "user", "content": said},
}
"""How a program gives a graph what somebody said."""


class Keeper(NamedTuple):
    """A checkpointer on an engine: ours, or the one that LangGraph has for it."""

    ours: bool
    engine: str

    @property
    def name(self) -> str:
        return f"holdfast, {self.engine}" if self.ours else "SqliteSaver" if self.engine == SQLITE else "PostgresSaver"

    @contextmanager
    def open(self, place: str, *, hurry: bool = False) -> Iterator[BaseCheckpointSaver[Any]]:
        """A new saver. In a hurry LangGraph's does not wait for the disk, where only bytes are counted."""
        if self.ours:
            with HoldfastSaver(place) as saver:
                yield saver
        elif self.engine == SQLITE:
            with SqliteSaver.from_conn_string(place) as theirs:
                if hurry:
                    theirs.conn.execute("PRAGMA synchronous = OFF")
                yield theirs
        else:
            with PostgresSaver.from_conn_string(place) as server:
                server.setup()
                if hurry:
                    server.conn.execute("SET synchronous_commit = off")
                yield server

    def bytes(self, place: str) -> int:
        """What a closed store takes: its files, or its tables with their indexes and what is stored out of line."""
        if self.engine == SQLITE:
            path = Path(place)
            return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
        with psycopg.connect(place) as connection:
            row = connection.execute(f"{_TABLES} {_SPACES}").fetchone()
            return int(row[0]) if row else 0


OURS, SQLITE_SAVER = Keeper(True, SQLITE), Keeper(False, SQLITE)
OURS_ON_POSTGRES, POSTGRES_SAVER = Keeper(True, POSTGRES), Keeper(False, POSTGRES)


class Way(NamedTuple):
    """A checkpointer and how it is used: with a delta channel or LangGraph's usual one, how durably, given what."""

    keeper: Keeper
    delta: bool = False
    durability: Durability = "async"
    form: Form = "message"

    @property
    def name(self) -> str:
        more = [", DeltaChannel"] * self.delta + [', durability "exit"'] * (self.durability == "exit")
        return self.keeper.name + "".join(more) + (f", as {self.form}s" if self.form != "message" else "")


# Graphs


class DeltaState(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def text() -> str:
    return "".join(_source.choices(LETTERS, k=LENGTH))


def _schema(delta: bool) -> Any:
    return DeltaState if delta else MessagesState


def listening(saver: BaseCheckpointSaver[Any], *, delta: bool = False) -> Any:
    """Each turn brings one message, and the node says nothing."""
    graph = StateGraph(_schema(delta)).add_node("hear", lambda state: None)
    return graph.add_edge(START, "hear").add_edge("hear", END).compile(checkpointer=saver)


def answering(saver: BaseCheckpointSaver[Any] | None, *, delta: bool = False) -> Any:
    """Each turn brings a question, and the node answers it."""
    graph = StateGraph(_schema(delta)).add_node("answer", lambda state: {"messages": [AIMessage(text())]})
    return graph.add_edge(START, "answer").add_edge("answer", END).compile(checkpointer=saver)


def working(saver: BaseCheckpointSaver[Any], steps: int, *, delta: bool = False) -> Any:
    """One run of many steps, each of which says one message."""
    graph = StateGraph(_schema(delta)).add_node("step", lambda state: {"messages": [AIMessage(text())]})
    graph.add_conditional_edges("step", lambda state: END if len(state["messages"]) >= steps else "step")
    return graph.add_edge(START, "step").compile(checkpointer=saver)


def in_turn(saver: BaseCheckpointSaver[Any], steps: Sequence[Callable[[Any], Any]]) -> Any:
    """Steps one after the other."""
    graph = StateGraph(MessagesState)
    names = [START, *(f"step {number}" for number in range(1, len(steps) + 1)), END]
    for name, step in zip(names[1:], steps, strict=False):
        graph.add_node(name, step)
    for one, other in pairwise(names):
        graph.add_edge(one, other)
    return graph.compile(checkpointer=saver)


def count(graph: Any) -> int:
    return len(graph.get_state(THREAD).values.get("messages", ()))


def ask(graph: Any, durability: Durability, form: Form = "message") -> None:
    graph.invoke({"messages": [FORMS[form](text())]}, THREAD, durability=durability)


# Filling


def grown(way: Way, place: str, points: Sequence[int]) -> list[tuple[int, int]]:
    """Bytes at some numbers of messages, one message a turn; the store is closed to be measured."""
    sizes, said = [], 0
    for point in points:
        with way.keeper.open(place, hurry=True) as saver:
            graph = listening(saver, delta=way.delta)
            for _ in range(point - said):
                ask(graph, way.durability, way.form)
            said = count(graph)
        assert said == point, f"{way.name}: {said} of {point} messages are there"
        sizes.append((point, way.keeper.bytes(place)))
    return sizes


def worked(way: Way, place: str, steps: int) -> int:
    """Bytes after one run of so many steps."""
    with way.keeper.open(place, hurry=True) as saver:
        graph = working(saver, steps, delta=way.delta)
        limit: Any = {**THREAD, "recursion_limit": steps + 5}
        graph.invoke({"messages": []}, limit, durability=way.durability)
        assert count(graph) == steps, f"{way.name}: {count(graph)} of {steps} messages are there"
    return way.keeper.bytes(place)


def loaded(way: Way, place: str, messages: int) -> None:
    """A thread that has many messages, by one update."""
    with way.keeper.open(place) as saver:
        graph = answering(saver, delta=way.delta)
        graph.update_state(THREAD, {"messages": [HumanMessage(text()) for _ in range(messages)]}, as_node="answer")
        assert count(graph) == messages
