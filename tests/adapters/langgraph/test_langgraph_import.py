"""Moving in: what LangGraph's own savers wrote is imported, and graphs go on where they were left."""

from __future__ import annotations

import importlib
import logging
import operator
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

import holdfast
from holdfast import importers
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.errors import Conflict, Corrupt, Invalid
from holdfast.testing.postgres import Server

APP = """
import operator, sqlite3
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, NamedTuple, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field

class Size(Enum):
    SMALL = "s"

class Pt(NamedTuple):
    x: int
    y: int

@dataclass(frozen=True)
class Item:
    name: str
    at: Pt
    size: Size = Size.SMALL

class Order(BaseModel):
    number: int = Field(alias="no")
    note: str = ""

class State(TypedDict):
    things: Annotated[list[Any], operator.add]

def graph(saver):
    builder = StateGraph(State)
    made = [Item("tea", Pt(1, 2)), {"in": [Order(no=7)]}, {Item("cup", Pt(3, 4))}]
    builder.add_node("one", lambda _: {"things": made})
    builder.add_node("two", lambda given: {"things": [given["item"]]})
    builder.add_edge(START, "one")
    builder.add_conditional_edges("one", lambda state: [Send("two", {"item": state["things"][0]})], ["two"])
    return builder.compile(checkpointer=saver, interrupt_before=["two"])

HERE = {"configurable": {"thread_id": "order"}}
if __name__ == "__main__":
    graph(SqliteSaver(sqlite3.connect("graphs.db", check_same_thread=False))).invoke({"things": []}, HERE)
"""
ASK: Any = {"configurable": {"thread_id": "ask", "user_id": "ana"}}
MAP: Any = {"configurable": {"thread_id": "map"}}
DEEP: Any = {"configurable": {"thread_id": "deep"}}


@dataclass
class Seat:
    """A class of one's own in a state."""

    row: int
    letter: str


def add_all(state: list[Any], writes: Any) -> list[Any]:
    """What a channel of differences is made of."""
    return [*state, *(message for write in writes for message in (write if isinstance(write, list) else [write]))]


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[Any], operator.add]


def talk(state: State) -> Any:
    return {"messages": [AIMessage(f"reply {len(state['messages'])} ż\x00")], "notes": [{"at": len(state["messages"])}]}


def ask(state: State) -> Any:
    return {"notes": [interrupt("sure?")]} if len(state["messages"]) > 5 else {}


def asking(saver: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("talk", talk)
    builder.add_node("ask", ask)
    builder.add_edge(START, "talk")
    builder.add_edge("talk", "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def mapping(saver: Any) -> Any:
    """Three tasks at once, of which one fails the first time."""
    builder = StateGraph(State)
    builder.add_node("plan", lambda _: {"notes": ["planned"]})
    builder.add_node("work", lambda given: {"notes": [given]})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda _: [Send("work", number) for number in range(3)], ["work"])
    return builder.compile(checkpointer=saver, interrupt_before=["work"])


def deep(saver: Any) -> Any:
    """A graph in a graph, which stops inside: its checkpoints have a namespace."""
    inner = StateGraph(State)
    inner.add_node("within", lambda _: {"notes": [interrupt("within?")]})
    inner.add_edge(START, "within")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    return outer.compile(checkpointer=saver)


def fill(saver: Any) -> None:
    for turn in range(3):
        asking(saver).invoke({"messages": [HumanMessage(f"hi {turn}")]}, ASK)
    mapping(saver).invoke({"messages": [HumanMessage("map")]}, MAP)
    deep(saver).invoke({"messages": [HumanMessage("deep")]}, DEEP)


def shown(graph: Any, config: Any) -> list[tuple[Any, ...]]:
    """A thread's whole history as a graph sees it."""
    return [
        (one.values, one.next, one.config["configurable"]["checkpoint_id"], one.created_at, one.interrupts)
        for one in graph.get_state_history(config)
    ]


class Place:
    """A database of LangGraph's, and its own saver on it."""

    def __init__(self, address: str | Path, saver: Callable[[], Any]) -> None:
        self.address, self.saver = address, saver


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        path = tmp_path / "graphs.db"

        @contextmanager
        def saver() -> Iterator[Any]:
            with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
                yield SqliteSaver(connection)

        yield Place(path, saver)
        return
    server = request.getfixturevalue("server")
    url = server.create()

    @contextmanager
    def there() -> Iterator[Any]:
        with PostgresSaver.from_conn_string(url) as found:
            found.setup()
            yield found

    yield Place(url, there)


def take(store: holdfast.Store, place: Any, **ways: Any) -> importers.ImportOutcome:
    dry, skip = ways.pop("dry_run", False), ways.pop("skip", False)
    with importers.read(place, **ways) as source:
        return importers.import_into(store, source, dry_run=dry, skip=skip)


@pytest.mark.every_engine
def test_graphs_go_on_where_they_were(store: holdfast.Store, place: Place) -> None:
    with place.saver() as saver:
        fill(saver)
        graphs = [(asking, ASK), (mapping, MAP), (deep, DEEP)]
        before = [shown(make(saver), config) for make, config in graphs]
        counted = len(list(saver.list(None)))
    assert importers.recognise(place.address) == "langgraph"
    told = take(store, place.address, dry_run=True)
    assert store.threads() == []
    done = take(store, place.address)
    assert told.new == done.new == {"checkpoints": counted}
    assert done.counts["checkpoints"] == done.compared == counted
    assert done.counts["threads"] == 3
    again = take(store, place.address)
    assert (again.new, again.here) == ({}, done.new)
    ours = HoldfastSaver(store)
    assert [shown(make(ours), config) for make, config in graphs] == before
    assert asking(ours).invoke(Command(resume="yes"), ASK)["notes"][-1] == "yes"
    assert asking(ours).invoke({"messages": [HumanMessage("more")]}, ASK)["messages"][-1].content.startswith("reply 7")
    assert sorted(map(str, mapping(ours).invoke(None, MAP)["notes"])) == ["0", "1", "2", "planned"]
    assert deep(ours).invoke(Command(resume="inside"), DEEP)["notes"] == ["inside"]
    assert store.thread("ask", user="ana").info().user == "ana"
    assert {(owner.user, owner.new > 0) for owner in told.owners} == {("ana", True), (None, True)}
    assert told.owners == done.owners
    assert store.memory(user="ana").recall("hi 2").hits[0].entry is not None
    assert store.verify().ok


def test_what_came_since_is_added_but_nothing_is_mixed_up(store: holdfast.Store, place: Place) -> None:
    with place.saver() as saver:
        asking(saver).invoke({"messages": [HumanMessage("one")]}, ASK)
    take(store, place.address)
    with place.saver() as saver:
        asking(saver).invoke({"messages": [HumanMessage("two")]}, ASK)
        there = shown(asking(saver), ASK)
    assert take(store, place.address).new["checkpoints"] > 0
    ours = HoldfastSaver(store)
    assert shown(asking(ours), ASK) == there
    asking(ours).invoke({"messages": [HumanMessage("three here")]}, ASK)
    here = shown(asking(ours), ASK)
    assert take(store, place.address).new == {}
    with place.saver() as saver:
        asking(saver).invoke({"messages": [HumanMessage("three there")]}, ASK)
    with pytest.raises(Conflict, match="it went on here"):
        take(store, place.address)
    assert shown(asking(ours), ASK) == here


def test_an_interrupt_that_was_answered_in_either_place(store: holdfast.Store, place: Place) -> None:
    with place.saver() as saver:
        fill(saver)
    take(store, place.address)
    with place.saver() as saver:  # answered there: the checkpoint that waited has another write, and others follow
        assert asking(saver).invoke(Command(resume="there"), ASK)["notes"][-1] == "there"
        there = shown(asking(saver), ASK)
    assert take(store, place.address).new["checkpoints"] > 0
    ours = HoldfastSaver(store)
    assert shown(asking(ours), ASK) == there
    assert deep(ours).invoke(Command(resume="here"), DEEP)["notes"] == ["here"]
    assert take(store, place.address).new == {}, "what was answered here is not in the way"
    assert deep(HoldfastSaver(store)).get_state(DEEP).values["notes"] == ["here"]


@pytest.mark.every_engine
@pytest.mark.parametrize("after", range(1, 18, 2))
def test_an_import_that_was_interrupted_is_gone_on_with(place: Place, after: int) -> None:
    with place.saver() as saver:
        fill(saver)
        before = shown(asking(saver), ASK)
    with holdfast.open("ram:", embedder="none") as store:
        commit, left = store.core.engine.commit, [after]

        def cut_off(*given: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return commit(*given)

        store.core.engine.commit = cut_off  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            take(store, place.address)
        store.core.engine.commit = commit  # type: ignore[method-assign]
        take(store, place.address)
        assert shown(asking(HoldfastSaver(store)), ASK) == before
        assert take(store, place.address).new == {}


def test_a_class_comes_along_only_when_it_is_named(store: holdfast.Store, place: Place) -> None:
    with place.saver() as saver:
        asking(saver).update_state(ASK, {"notes": [Seat(14, "C")]}, as_node="talk")
    with pytest.raises(Invalid, match=r"it holds .*Seat, which is not imported unless you name the class") as caught:
        take(store, place.address)
    assert f"--type {Seat.__module__}:Seat" in str(caught.value)
    assert store.threads() == []
    done = take(store, place.address, types=[Seat])
    assert done.new == {"checkpoints": done.counts["checkpoints"]}
    assert asking(HoldfastSaver(store, types=[Seat])).get_state(ASK).values["notes"] == [Seat(14, "C")]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A program that was run as a script, so that its classes are stored as those of ``__main__``; and its module."""
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "shop.py").write_text(APP, encoding="utf-8")
    subprocess.run([sys.executable, "shop.py"], cwd=folder, check=True, timeout=60)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("shop")
    sys.modules.pop("shop", None)


def test_classes_of_the_script_that_was_run(store: holdfast.Store, script: Any) -> None:
    types = [script.Item, script.Pt, script.Size, script.Order]
    done = take(store, "graphs.db", types=types)
    assert done.new == {"checkpoints": done.counts["checkpoints"]}
    assert [(owner.user, owner.agent) for owner in done.owners] == [(None, None)]
    assert [thread.id for thread in store.threads(tag="import:langgraph")] == ["order"]
    graph = script.graph(HoldfastSaver(store, types=types))
    tea = script.Item("tea", script.Pt(1, 2))
    things = [tea, {"in": [script.Order(no=7)]}, {script.Item("cup", script.Pt(3, 4))}]
    assert graph.get_state(script.HERE).values["things"] == things
    assert isinstance(graph.get_state(script.HERE).values["things"][0].at, script.Pt)
    assert graph.invoke(None, script.HERE)["things"] == [*things, tea], "also what was sent"
    again = take(store, "graphs.db", types={f"__main__.{kind.__name__}": kind for kind in types})
    assert (again.new, again.here) == ({}, done.new)


def test_a_class_that_has_another_name_since(store: holdfast.Store, script: Any) -> None:
    script.Thing = type("Thing", (script.Item,), {"__module__": "shop"})
    rest = {f"__main__.{kind.__name__}": kind for kind in (script.Pt, script.Size, script.Order)}
    take(store, "graphs.db", types={**rest, "__main__.Item": script.Thing})
    saver = HoldfastSaver(store, types=[script.Thing, script.Pt, script.Size, script.Order])
    assert type(script.graph(saver).get_state(script.HERE).values["things"][0]) is script.Thing


def test_a_name_that_nothing_stored_has(store: holdfast.Store, script: Any) -> None:
    types = {f"__main__.{kind.__name__}": kind for kind in (script.Item, script.Pt, script.Size)}
    with pytest.raises(Invalid) as caught:
        take(store, "graphs.db", types={**types, "old.Parcel": Seat})
    assert "is stored as old.Parcel; it holds __main__.Item, __main__.Order, __main__.Pt, __main__.Size" in str(
        caught.value
    )
    with pytest.raises(Invalid, match=r"is stored as __main__.Ordr; it holds"):
        take(store, "graphs.db", types={**types, "__main__.Ordr": script.Order})
    with pytest.raises(Invalid, match=r"it holds __main__.Order, which .*\(--type MODULE:Order, or types\)"):
        take(store, "graphs.db", types=types)
    assert take(store, "graphs.db", types=[*types.values(), script.Order, Seat]).new, (
        "a list may hold more than is there"
    )
    for wrong in ({"Order": script.Order}, script.Order, [script.Order(no=1)], {"a.b": "c"}, 7):
        with pytest.raises(Invalid):
            importers.read("graphs.db", types=wrong)  # type: ignore[arg-type]


def test_a_class_that_has_changed_is_no_dict(store: holdfast.Store, script: Any) -> None:
    """LangGraph passes on what it could not make; an import must not keep that for the object."""

    @dataclass(frozen=True)
    class Item:
        name: str

    types = [Item, script.Pt, script.Size, script.Order]
    with pytest.raises(Invalid, match=r"Item cannot be built from the stored data: .*unexpected keyword"):
        take(store, "graphs.db", types=types)
    assert store.threads() == []


def test_what_is_refused_is_told_once_and_in_our_words(
    store: holdfast.Store, script: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for seen in (jsonplus._warned_blocked_types, jsonplus._warned_unreconstructable_types):
        seen.clear()  # which LangGraph logs once in a process
    with pytest.raises(Invalid) as caught:
        take(store, "graphs.db", types=[script.Pt])
    assert caplog.records == []
    assert str(caught.value).count("it holds") == 1
    assert "more: it holds __main__.Item, __main__.Order, __main__.Size" in str(caught.value)
    assert len(caught.value.facts["refused"]) > 1
    logging.getLogger(jsonplus.__name__).warning("of somebody else")
    assert len(caplog.records) == 1


def test_channels_that_keep_differences_come_along(store: holdfast.Store, place: Place) -> None:
    class Growing(TypedDict):
        messages: Annotated[list[AnyMessage], DeltaChannel(add_all)]

    def growing(saver: Any) -> Any:
        builder = StateGraph(Growing)
        builder.add_node("talk", lambda state: {"messages": [AIMessage(f"reply {len(state['messages'])}")]})
        builder.add_edge(START, "talk")
        return builder.compile(checkpointer=saver)

    with place.saver() as saver:
        for turn in range(3):
            growing(saver).invoke({"messages": [HumanMessage(f"hi {turn}")]}, ASK)
        before = shown(growing(saver), ASK)
    take(store, place.address)
    ours = HoldfastSaver(store)
    assert shown(growing(ours), ASK) == before
    assert len(growing(ours).invoke({"messages": [HumanMessage("more")]}, ASK)["messages"]) == 8


@pytest.mark.every_engine
def test_a_thread_erased_here_stays_erased(store: holdfast.Store, place: Place) -> None:
    with place.saver() as saver:
        fill(saver)
    done = take(store, place.address)
    store.erase(thread="ask")
    again = take(store, place.address)
    assert again.new == {}
    assert again.erased["checkpoints"] + again.here["checkpoints"] == done.compared
    assert {info.id for info in store.threads()} == {"map", "deep"}


def test_an_import_is_taken_back_and_repeated(store: holdfast.Store, place: Place) -> None:
    with place.saver() as saver:
        fill(saver)
        before = shown(asking(saver), ASK)
    done = take(store, place.address)
    for thread in store.threads(tag=done.tag, limit=None):
        store.erase(thread=thread.id, forever=False)
    assert store.threads() == []
    assert take(store, place.address).new == done.new
    assert shown(asking(HoldfastSaver(store)), ASK) == before


def test_the_file_is_left_as_it_was(store: holdfast.Store, tmp_path: Path) -> None:
    path = tmp_path / "from" / "graphs.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        fill(SqliteSaver(connection))
        take(store, path)  # while it is in use
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert take(store, path).new == {}
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_damage_inside_a_checkpoint_is_told(store: holdfast.Store, tmp_path: Path) -> None:
    path = tmp_path / "graphs.db"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        fill(SqliteSaver(connection))
        with connection:
            connection.execute("UPDATE checkpoints SET checkpoint = X'c1c1' WHERE rowid = 3")
            connection.execute("UPDATE checkpoints SET type = 'pickle' WHERE rowid = 5")
            connection.execute("UPDATE checkpoints SET type = 'msgpack+aes' WHERE rowid = 6")
    with pytest.raises(Invalid, match="3 items cannot be stored"):
        take(store, path)
    assert store.threads() == []
    done = take(store, path, skip=True)
    assert sorted(one.why.split(" is ", 1)[1][:9] for one in done.refused) == ["damaged: ", "encrypted", "stored as"]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET metadata = 'no JSON' WHERE rowid = 1")
    with pytest.raises(Corrupt, match="metadata of checkpoint"):
        take(store, path, skip=True)


def test_a_server_of_another_kind(server: Server) -> None:
    with pytest.raises(Invalid, match="has no table checkpoints"):
        importers.read(server.create())
    with pytest.raises(holdfast.errors.Unavailable) as caught:
        importers.read("postgresql://ana:rosebud@127.0.0.1:1/none")
    assert "rosebud" not in str(caught.value)


def test_a_server_in_use_is_read_at_one_moment(store: holdfast.Store, server: Server) -> None:
    url = server.create()
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        fill(saver)
        with importers.read(url) as source:
            asking(saver).update_state(ASK, {"notes": ["later"]}, as_node="talk")
            with psycopg.connect(url) as connection:
                connection.execute("DELETE FROM checkpoint_blobs")
            assert importers.import_into(store, source).compared == source.counts["checkpoints"]
