"""Graphs as LangGraph saved them, read without it: what is seen is what LangGraph itself said of them.

``data/graph.py`` says how the archive and LangGraph's words were made. What no graph of its holds is made by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

import holdfast
from holdfast.adapters.langgraph import frames
from holdfast.adapters.langgraph.frames import DICT, GRAPH, INLINE, ITEM, ITEMS, LIST, GraphStream, TaskWrite
from holdfast.adapters.langgraph.reading import Graph, graphs_of
from holdfast.engine.codec import MSGPACK, encode
from holdfast.engine.contract import Append, Delete, Event, Op, Put, Query, Record, Scope
from holdfast.errors import Corrupt, Invalid, NotFound, Unsupported

DATA = Path(__file__).parent / "data"
SAID: list[dict[str, Any]] = json.loads((DATA / "graph_said.json").read_text(encoding="utf-8"))
GRAPHS = list(dict.fromkeys((each["thread"], each["namespace"]) for each in SAID))
TIME = 1_767_225_600_000_000
MADE = frames.graph_id("made", "")


@pytest.fixture
def kept(store: holdfast.Store) -> holdfast.Store:
    """A store with the graphs that LangGraph saved."""
    store.import_(DATA / "graph.json")
    return store


def short(value: Any) -> Any:
    """Long texts as LangGraph's words have them: by their beginning and digest."""
    if isinstance(value, dict):
        return {name: short(item) for name, item in value.items()}
    if isinstance(value, list):
        return [short(item) for item in value]
    if isinstance(value, str) and len(value) > 60:
        return f"{value[:12]}… {blake2b(value.encode(), digest_size=8).hexdigest()}"
    return value


def of(thread: str, namespace: str) -> list[dict[str, Any]]:
    return [each for each in SAID if (each["thread"], each["namespace"]) == (thread, namespace)]


# What LangGraph said


@pytest.mark.every_engine
def test_every_frame_is_as_langgraph_says(kept: holdfast.Store) -> None:
    for said in SAID:
        frame = Graph(kept.thread(said["thread"]), said["namespace"]).frame(said["id"])
        assert (frame.id, frame.parent, frame.step, frame.source, frame.time.isoformat()) == (
            said["id"], said["parent"], said["step"], said["source"], said["time"],
        )  # fmt: skip
        assert frame.channels == said["versions"]
        if said["next"] is not None:
            assert list(frame.next) == said["next"]
        assert len(frame.tasks) == len({task for task, _, _ in said["writes"]})


def test_every_value_and_write_is_as_langgraph_says(kept: holdfast.Store) -> None:
    for said in SAID:
        graph = Graph(kept.thread(said["thread"]), said["namespace"])
        assert short(graph.values(said["id"])) == said["values"]
        assert [[each.task, each.channel, short(each.value)] for each in graph.writes(said["id"])] == said["writes"]


@pytest.mark.every_engine
def test_the_archive_holds_values_in_all_their_ways(kept: holdfast.Store) -> None:
    """Otherwise the tests above would prove less than they say."""
    ways = set()
    for record in kept.core.engine.scan(kept.tenant, Query(GRAPH)):
        for frame in GraphStream(kept.core.engine, kept.tenant, record.mark).frames():
            ways |= {ref[0] for ref in frame.values.values()}
    assert ways == {INLINE, ITEM, LIST, DICT}


@pytest.mark.parametrize(("thread", "namespace"), GRAPHS, ids=lambda name: name.partition(":")[0] or "outermost")
def test_frames_are_listed_newest_first(kept: holdfast.Store, thread: str, namespace: str) -> None:
    graph = Graph(kept.thread(thread), namespace)
    every = [graph.frame(said["id"]) for said in of(thread, namespace)]
    assert graph.frames() == every
    for last in range(len(every) + 2):
        assert graph.frames(last) == every[:last]


def test_without_an_id_the_newest_frame_is_meant(kept: holdfast.Store) -> None:
    graph = Graph(kept.thread("visa"))
    newest = of("visa", "")[0]["id"]
    assert (graph.frame(), graph.values(), graph.writes()) == (
        graph.frame(newest), graph.values(newest), graph.writes(newest),
    )  # fmt: skip


def test_who_wrote_is_told_by_node(kept: holdfast.Store) -> None:
    """Also of tasks that something was sent to, one of which waits for a person."""
    graph = Graph(kept.thread("visa"))
    assert graph.frame().tasks == ("check", "check")
    assert [(each.node, each.channel) for each in graph.writes()] == [("check", "checked"), ("check", "__interrupt__")]
    assert [frame.tasks for frame in graph.frames()[1:]] == [("ask",), ("__start__",)]


def test_graphs_are_listed_with_those_inside(kept: holdfast.Store) -> None:
    found = graphs_of(kept.thread("trip"))
    assert found[0].namespace == ""
    assert {("trip", each.namespace) for each in found} == {pair for pair in GRAPHS if pair[0] == "trip"}
    assert found == sorted(found, key=lambda each: each.active, reverse=True)
    assert graphs_of(kept.thread("nobody")) == []


# What is not there


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (lambda store: Graph(store.thread("nobody")).frames(), "no thread 'nobody'"),
        (lambda store: Graph(store.thread("plain")).values(), "thread 'plain' has no graph"),
        (lambda store: Graph(store.thread("trip"), "other").frame(), "no graph in namespace 'other'"),
        (lambda store: Graph(store.thread("trip")).frame("nothing"), "no frame 'nothing'"),
        (lambda store: Graph(store.thread("trip")).writes("1f1e1348-0000-6000-8000-000000000000"), "no frame"),
    ],
)
def test_what_is_not_there_is_said_so(
    kept: holdfast.Store, look: Callable[[holdfast.Store], object], words: str
) -> None:
    kept.thread("plain").append(holdfast.note("hello"))
    with pytest.raises(NotFound, match=words):
        look(kept)


@pytest.mark.parametrize(
    "look",
    [
        lambda store: Graph(store.thread("trip"), 7),
        lambda store: Graph(store.thread("trip")).frame(7),
        lambda store: Graph(store.thread("trip")).frame("\ud800"),
        lambda store: Graph(store.thread("trip"), "\ud800").frame(),
        lambda store: Graph(store.thread("trip")).frames(-1),
        lambda store: Graph(store.thread("trip", user="ben")).values(),
        lambda store: graphs_of(store.thread("trip", user="ben")),
    ],
    ids=["namespace", "id", "no id", "no namespace", "count", "another user's graph", "another user's graphs"],
)
def test_a_wrong_question_is_refused(kept: holdfast.Store, look: Callable[[holdfast.Store], object]) -> None:
    with pytest.raises(Invalid):
        look(kept)


@pytest.mark.every_engine
def test_what_was_erased_is_gone(kept: holdfast.Store) -> None:
    kept.erase(thread="trip")
    assert graphs_of(kept.thread("trip")) == []
    assert not [each for each in kept.core.engine.scan(kept.tenant, Query(ITEMS)) if each.scope.thread == "trip"]
    assert len(graphs_of(kept.thread("visa"))) == 1


# Made by hand


def commit(store: holdfast.Store, *ops: Op) -> None:
    store.core.engine.commit(store.tenant, ops, TIME)


def record_of(store: holdfast.Store, kind: str, id: str) -> Record:
    found = store.core.engine.get(store.tenant, kind, id)
    assert found is not None
    return found


def saved(
    store: holdfast.Store, values: dict[str, Any], *, id: str = "one", parent: str | None = None, **more: Any
) -> str:
    """Save a frame whose values are held in the ways that are given as tuples, or in the frame itself."""
    if not store.thread("made").exists():
        store.thread("made").append({"role": "user", "content": "first"}, {"role": "user", "content": "second"})
    home = record_of(store, "thread", "made").mark.stream
    found = store.core.engine.get(store.tenant, GRAPH, MADE)
    before = None if found is None else GraphStream(store.core.engine, store.tenant, found.mark).newest()
    held = {name: [*value] if isinstance(value, tuple) else [INLINE, value] for name, value in values.items()}
    body = {
        "parent": parent, "time": "today", "metadata": {"source": "loop", "step": 1, **more},
        "versions": dict.fromkeys(held, 1), "values": held, "seen": {}, "updated": None,
    }  # fmt: skip
    event, _ = frames.frame_event(id, body, before, TIME)
    added(store, GRAPH, event, body=frames.graph_body("", home))
    return id


def added(store: holdfast.Store, kind: str, *events: Event, body: bytes = b"j1{}") -> None:
    commit(store, Append(kind, MADE, events, new=Put(kind, MADE, body, scope=Scope(thread="made"))))


def items(store: holdfast.Store, *values: Any) -> None:
    added(store, ITEMS, *(frames.item_event(encode(value), TIME) for value in values))


def tag(name: str, held: Any) -> dict[str, Any]:
    return {"$": name, "v": held}


READABLE = [
    (tag("int", "170141183460469231731687303715884105728"), 2**127),
    (tag("float", "inf"), float("inf")),
    (tag("tuple", [1, tag("set", ["a"])]), [1, ["a"]]),
    (tag("frozenset", []), []),
    (tag("dict", [[1, "a"], [tag("tuple", [2, 3]), "b"], ["c", None]]), {"1": "a", "[2,3]": "b", "c": None}),
    (tag("dict", [[1, "a"], ["1", "b"]]), [[1, "a"], ["1", "b"]]),
    (tag("dict", [["$", "a"]]), {"$": "a"}),
    (tag("counter", [["a", 2]]), {"a": 2}),
    (tag("ordered dict", [["b", 1], ["a", 2]]), {"b": 1, "a": 2}),
    (tag("default dict", ["list", [["a", [1]]]]), {"a": [1]}),
    (tag("deque", [2, [1, 2]]), [1, 2]),
    (tag("datetime", "2026-05-01T09:30:00+02:00"), "2026-05-01T09:30:00+02:00"),
    (tag("datetime", ["2026-05-01T09:30:00", 1]), "2026-05-01T09:30:00"),
    (tag("datetime", ["2026-05-01T09:30:00", 0, "Europe/Lisbon"]), "2026-05-01T09:30:00[Europe/Lisbon]"),
    (tag("timedelta", [1, 7200, 0]), "1 day, 2:00:00"),
    (tag("time", ["09:30:00", 0, "Europe/Lisbon"]), "09:30:00[Europe/Lisbon]"),
    (tag("number", ["<f4", "AADAPw=="]), 1.5),
    (tag("number", ["|b1", "AQ=="]), True),
    (tag("number", ["<c8", "AADAPwAAwD8="]), ["<c8", "AADAPwAAwD8="]),
    (tag("array", ["|i1", [2], "AQI="]), {"array": ["|i1", [2], "AQI="]}),
    (tag("decimal", "1.50"), "1.50"),
    (tag("path", "a/b"), "a/b"),
    (tag("bytes", "aGk="), {"bytes": "aGk="}),
    (tag("u:Seat", [{"row": 7, "__given__": ["row"], "__private__": {"x": 1}}, "d16b4c7bdc99"]), {"Seat": {"row": 7}}),
    (tag("schema:seat", [3, [{"row": tag("int", "7")}, "d16b4c7bdc99"]]), {"seat": {"row": 7}}),
    (tag("u:send", ["a", "b"]), {"send": ["a", "b"]}),
    (tag("u:Colour", "red"), {"Colour": "red"}),
    (tag("send", ["node", tag("entry", [0, 1])]), {"send": ["node", {"role": "user", "content": "first"}]}),
    (tag("message", {"role": "user", "content": [tag("date", "2026-05-01")]}),
     {"role": "user", "content": ["2026-05-01"]}),
    (tag("entry", [0, 2]), {"role": "user", "content": "second"}),
    (tag("item", 2), "a part"),
    (tag("sealed", ["bytes+aes", "aGk="]), {"encrypted": "bytes+aes"}),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "shown"), READABLE, ids=[each[0]["$"] for each in READABLE])
@pytest.mark.usefixtures("any_engine")
def test_values_are_readable(store: holdfast.Store, stored: Any, shown: Any) -> None:
    items(store, [stored], "a part")
    saved(store, {"inline": stored, "deep": {"a": [stored]}, "kept": (ITEM, 1)})
    assert Graph(store.thread("made")).values() == {"inline": shown, "deep": {"a": [shown]}, "kept": [shown]}
    json.dumps(shown)


@pytest.mark.usefixtures("any_engine")
def test_a_list_may_have_its_elements_anywhere(store: holdfast.Store) -> None:
    items(store, "a", tag("entry", [0, 1]), "b", ["k", 1], [2, tag("set", [])])
    saved(store, {"xs": (LIST, [-1, 2, 2], [0, 1, 2], [-1, 1, 1], [-1, 3, 3]), "pairs": (DICT, [-1, 4, 5])})
    first, second = ({"role": "user", "content": text} for text in ("first", "second"))
    shown = {"xs": [first, first, second, "a", "b"], "pairs": {"k": 1, "2": []}}
    assert Graph(store.thread("made")).values() == shown
    assert store.verify().ok


@pytest.mark.usefixtures("any_engine")
def test_a_frame_says_little_where_little_is_told(store: holdfast.Store) -> None:
    saved(store, {"x": 1}, source=None, step=None)
    frame = Graph(store.thread("made")).frame()
    assert (frame.id, frame.step, frame.source, frame.parent) == ("one", None, None, None)
    assert frame.time.timestamp() == TIME / 1_000_000  # the framework's own time does not read as one


@pytest.mark.usefixtures("any_engine")
def test_nodes_that_join_are_next_when_all_have_come(store: holdfast.Store) -> None:
    saved(store, {"join:a+b:c": tag("set", ["a"]), "join:a+b:d": tag("set", ["b", "a"]), "branch:to:e": None})
    assert Graph(store.thread("made")).frame().next == ("d", "e")


@pytest.mark.usefixtures("any_engine")
def test_an_encrypted_dict_and_an_encrypted_join_are_only_known_to_be_there(store: holdfast.Store) -> None:
    sealed = tag("sealed", ["bytes+aes", "aGk="])
    items(store, sealed, sealed)
    saved(store, {"pairs": (DICT, [-1, 1, 2]), "join:a+b:c": sealed})
    graph = Graph(store.thread("made"))
    assert graph.values()["pairs"] == [{"encrypted": "bytes+aes"}, {"encrypted": "bytes+aes"}]
    assert graph.frame().next == ()


@pytest.mark.usefixtures("any_engine")
def test_a_task_whose_node_is_not_told_is_named_by_its_id(store: holdfast.Store) -> None:
    saved(store, {"x": 1})
    added(store, GRAPH, frames.writes_event([TaskWrite("task-7", "somewhere", 0, "x", [INLINE, 2])], TIME))
    saved(store, {"x": 2}, id="two", parent="one")
    graph = Graph(store.thread("made"))
    assert graph.frame("one").tasks == ("task-7",)
    assert [(each.task, each.node, each.value) for each in graph.writes("one")] == [("task-7", "", 2)]
    assert graph.writes("two") == []


@pytest.mark.usefixtures("any_engine")
def test_a_long_line_of_differences_is_read_from_anywhere(store: holdfast.Store) -> None:
    """With branches, and so many that everything is stored again several times."""
    made = [saved(store, {"n": 0, "same": "x" * 900}, id="f000")]
    parents: list[str | None] = [None]
    for number in range(1, 120):
        parents.append(made[max(0, number - 1 - 3 * (number % 4 == 0))])
        made.append(saved(store, {"n": number, "same": "x" * 900}, id=f"f{number:03}", parent=parents[-1]))
    graph = Graph(store.thread("made"))
    kinds = [event.kind for event in store.core.engine.read(store.tenant, record_of(store, GRAPH, MADE).mark)]
    assert 1 < kinds.count("full") < 20
    every = graph.frames()
    assert [(each.id, each.parent) for each in every] == [*zip(reversed(made), reversed(parents), strict=True)]
    for last in (0, 1, 5, 47, 48, 49, 119):
        assert graph.frames(last) == every[:last]
    assert [graph.values(f"f{number:03}")["n"] for number in (0, 48, 49, 50, 119)] == [0, 48, 49, 50, 119]
    assert store.verify().ok


# What cannot be read


Spoil = Callable[[holdfast.Store], object]


def garbage(body: Any, kind: str = "full", key: str = "=bad") -> Spoil:
    return lambda store: added(store, GRAPH, Event(kind, encode(body), TIME, key))


def without(kind: str, id: str) -> Spoil:
    return lambda store: commit(store, Delete(kind, id))


def bad_item(store: holdfast.Store) -> None:
    added(store, ITEMS, Event("item", MSGPACK + msgspec.msgpack.encode(b"and no more"), TIME))
    saved(store, {"page": (ITEM, 4)}, id="two")


def newer(store: holdfast.Store) -> None:
    body = encode({"namespace": "", "log": 1, "format": 99})
    commit(store, Put(GRAPH, MADE, body, scope=Scope(thread="made")))


def value(**values: Any) -> Spoil:
    return lambda store: saved(store, values, id="two")


SPOILED: dict[str, tuple[Spoil, str, type[Exception]]] = {
    "a frame of another shape": (garbage(["?"]), "the stored data is not a frame", Corrupt),
    "a frame that changes what is not there": (garbage([{}, [], {"no": [{}]}], "step"), "not a frame", Corrupt),
    "an event of a kind to come": (garbage({}, "leap"), "upgrade", Unsupported),
    "a graph of a newer version": (newer, "newer than this version", Unsupported),
    "a value held in a way to come": (value(x=("z", 1)), "upgrade", Unsupported),
    "items that are gone": (without(ITEMS, MADE), "which does not exist", Corrupt),
    "an item that is none": (bad_item, "a value of 'page'", Corrupt),
    "a list that goes beyond its items": (value(xs=(LIST, [-1, 2, 9])), "event 4 of stream", Corrupt),
    "a list in a stream that is not there": (value(xs=(LIST, [77, 1, 2])), "event 1 of stream 77", Corrupt),
    "a message that is not in the log": (value(said=tag("entry", [0, 99])), "names event 99", Corrupt),
    "messages that go beyond the log": (value(messages=(LIST, [0, 1, 4])), "names event 3", Corrupt),
    "a place that is none": (value(messages=(LIST, [0, "a", 4])), "a value of 'messages'", Corrupt),
    "a thread that is gone": (without("thread", "made"), "which does not exist", NotFound),
}  # fmt: skip


@pytest.mark.parametrize("case", SPOILED)
@pytest.mark.usefixtures("any_engine")
def test_verify_names_what_cannot_be_read(store: holdfast.Store, case: str) -> None:
    spoil, words, error = SPOILED[case]
    items(store, "large" * 1_000, "a", "b")
    saved(store, {"messages": (LIST, [0, 1, 2]), "page": (ITEM, 1), "xs": (LIST, [-1, 2, 3])})
    assert store.verify().ok
    spoil(store)
    found = [each for each in store.verify().problems if each.kind == GRAPH]
    assert any(words in each.what for each in found), found
    assert {(each.where, each.id) for each in found} == {("graph of thread 'made'", MADE)}
    with pytest.raises(error):
        Graph(store.thread("made")).values()


@pytest.mark.every_engine
def test_verify_names_what_is_missing_of_real_graphs(kept: holdfast.Store) -> None:
    assert kept.verify().ok
    for record in kept.core.engine.scan(kept.tenant, Query(ITEMS)):
        commit(kept, Delete(ITEMS, record.id))
    found = [each for each in kept.verify().problems if each.kind == GRAPH]
    told = {(each.where, each.what.split(":")[0]) for each in found}
    assert {"a value of 'page'", "a value of 'notes'", "a value of 'prices'"} <= {
        what for where, what in told if where == "graph of thread 'trip'"
    }
    with pytest.raises(Corrupt, match="does not exist"):
        Graph(kept.thread("trip")).values()
    assert len(Graph(kept.thread("trip")).frames()) == len(of("trip", ""))  # what does not need them is there


# With other tools


@pytest.mark.every_engine
def test_the_view_shows_what_is_stored(place: Any, kept: holdfast.Store, durable_engine: None) -> None:
    query = "SELECT thread, namespace, number, kind, content FROM holdfast_frames WHERE tenant = {} AND thread = 'visa'"
    if place.engine == "sqlite":
        connection = apsw.Connection(place.url, flags=apsw.SQLITE_OPEN_READONLY)
        rows = list(connection.execute(query.format("?"), (kept.tenant,)))
        connection.close()
    else:
        import psycopg  # noqa: PLC0415 - an extra

        with psycopg.connect(place.url) as connection:
            connection.execute("SELECT set_config('holdfast.tenant', %s, true)", (kept.tenant,))
            rows = connection.execute(query.format("%s"), (kept.tenant,)).fetchall()
    assert sorted(row[:4] for row in rows)[0] == ("visa", "", 1, "full")
    kinds = [row[3] for row in sorted(rows)]
    assert (kinds.count("full") + kinds.count("step"), len(kinds)) == (3, len(kinds))
    assert {"step", "writes"} <= set(kinds)
    assert json.loads(sorted(rows)[0][4])["metadata"]["source"] == "input"
