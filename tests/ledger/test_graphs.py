"""Graphs as LangGraph saved them, read without it: what is seen is what LangGraph itself said of them.

``data/graph.py`` says how the archive and LangGraph's words were made. What no graph of its holds is made by hand.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

import holdfast
from holdfast import aio
from holdfast.engine.codec import MSGPACK, encode
from holdfast.engine.contract import Append, Delete, Event, Op, Put, Query, Record, Scope
from holdfast.errors import Corrupt, Invalid, NotFound, Unsupported
from holdfast.ledger import frames
from holdfast.ledger.frames import (
    BLOB,
    ENTRIES,
    GRAPH,
    INLINE,
    KEPT,
    LIST,
    PAIRS,
    Channel,
    Frame,
    TaskWrite,
    TaskWrites,
)
from holdfast.ledger.segments import SEGMENT

DATA = Path(__file__).parent / "data"
SAID: list[dict[str, Any]] = json.loads((DATA / "graph_said.json").read_text(encoding="utf-8"))
GRAPHS = list(dict.fromkeys((each["thread"], each["namespace"]) for each in SAID))
TIME = 1_767_225_600_000_000


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
        frame = kept.graph(said["thread"], said["namespace"]).frame(said["id"])
        assert (frame.id, frame.parent, frame.step, frame.source, frame.time.isoformat()) == (
            said["id"], said["parent"], said["step"], said["source"], said["time"],
        )  # fmt: skip
        assert frame.channels == said["versions"]
        if said["next"] is not None:
            assert list(frame.next) == said["next"]
        assert len(frame.tasks) == len({task for task, _, _ in said["writes"]})


def test_every_value_and_write_is_as_langgraph_says(kept: holdfast.Store) -> None:
    for said in SAID:
        graph = kept.graph(said["thread"], said["namespace"])
        assert short(graph.values(said["id"])) == said["values"]
        assert [[each.task, each.channel, short(each.value)] for each in graph.writes(said["id"])] == said["writes"]


@pytest.mark.every_engine
def test_the_archive_holds_values_in_all_their_ways(kept: holdfast.Store) -> None:
    """Otherwise the tests above would prove less than they say."""
    ways = set()
    for record in kept.core.engine.scan(kept.tenant, Query(GRAPH)):
        for event in kept.core.engine.read(kept.tenant, record.mark):
            if frames.is_frame(event):
                frame = frames.frame_at(kept.core.engine, kept.tenant, record.mark.stream, event)
                ways |= {channel.ref[0] for channel in frame.channels.values() if channel.ref is not None}
    assert ways == {INLINE, ENTRIES, LIST, PAIRS, KEPT}


@pytest.mark.parametrize(("thread", "namespace"), GRAPHS, ids=lambda name: name.partition(":")[0] or "outermost")
def test_frames_are_listed_newest_first(kept: holdfast.Store, thread: str, namespace: str) -> None:
    graph = kept.graph(thread, namespace)
    every = [graph.frame(said["id"]) for said in of(thread, namespace)]
    assert graph.frames() == every
    for last in range(len(every) + 2):
        assert graph.frames(last) == every[:last]


def test_without_an_id_the_newest_frame_is_meant(kept: holdfast.Store) -> None:
    graph = kept.graph("visa")
    newest = of("visa", "")[0]["id"]
    assert (graph.frame(), graph.values(), graph.writes()) == (
        graph.frame(newest), graph.values(newest), graph.writes(newest),
    )  # fmt: skip


def test_who_wrote_is_told_by_node(kept: holdfast.Store) -> None:
    """Also of tasks that something was sent to, one of which waits for a person."""
    graph = kept.graph("visa")
    assert graph.frame().tasks == ("check", "check")
    assert [(each.node, each.channel) for each in graph.writes()] == [("check", "checked"), ("check", "__interrupt__")]
    assert [frame.tasks for frame in graph.frames()[1:]] == [("ask",), ("__start__",)]


def test_graphs_are_listed_with_those_inside(kept: holdfast.Store) -> None:
    found = kept.graphs("trip")
    assert found[0].namespace == ""
    assert {("trip", each.namespace) for each in found} == {pair for pair in GRAPHS if pair[0] == "trip"}
    assert found == sorted(found, key=lambda each: each.active, reverse=True)
    assert kept.graphs("nobody") == []


def test_a_message_that_got_its_id_later_has_it(kept: holdfast.Store) -> None:
    """Its entry was written before it had one, and stays as it was."""
    shown = [each for each in kept.graph("trip").values()["messages"] if each["content"] == "Or by the sea?"]
    entries = [each.content for each in kept.thread("trip").log() if each.content["content"] == "Or by the sea?"]
    assert "id" not in entries[0]
    assert shown == [{**entries[0], "id": shown[0]["id"]}]


def test_async_callers_see_the_same(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with holdfast.open(path) as store:
        store.import_(DATA / "graph.json")
        graph = store.graph("visa")
        expected = (store.graphs(store.thread("visa")), graph.frames(), graph.frame(), graph.values(), graph.writes())

    async def read() -> tuple[Any, ...]:
        async with aio.open(path) as store:
            thread = store.thread("visa")
            graph = store.graph(thread)
            return (
                await store.graphs(thread), await graph.frames(), await graph.frame(), await graph.values(),
                await graph.writes(),
            )  # fmt: skip

    assert asyncio.run(read()) == expected


# What is not there


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (lambda store: store.graph("nobody").frames(), "no thread 'nobody'"),
        (lambda store: store.graph("plain").values(), "thread 'plain' has no graph"),
        (lambda store: store.graph("trip", "other").frame(), "no graph in namespace 'other'"),
        (lambda store: store.graph("trip").frame("nothing"), "no frame 'nothing'"),
        (lambda store: store.graph("trip").writes("1f1e1348-0000-6000-8000-000000000000"), "no frame"),
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
        lambda store: store.graph("trip", 7),
        lambda store: store.graph("trip").frame(7),
        lambda store: store.graph("trip").frame("\ud800"),
        lambda store: store.graph("trip", "\ud800").frame(),
        lambda store: store.graph("trip").frames(-1),
        lambda store: store.graph(store.thread("trip", user="ben")).values(),
        lambda store: store.graphs(store.thread("trip", user="ben")),
    ],
    ids=["namespace", "id", "no id", "no namespace", "count", "another user's graph", "another user's graphs"],
)
def test_a_wrong_question_is_refused(kept: holdfast.Store, look: Callable[[holdfast.Store], object]) -> None:
    with pytest.raises(Invalid):
        look(kept)


@pytest.mark.every_engine
def test_what_was_erased_is_gone(kept: holdfast.Store) -> None:
    kept.erase(thread="trip")
    assert kept.graphs("trip") == []
    for kind in (SEGMENT, BLOB):
        assert not [each for each in kept.core.engine.scan(kept.tenant, Query(kind)) if each.scope.thread == "trip"]
    assert len(kept.graphs("visa")) == 1


# Made by hand


def commit(store: holdfast.Store, *ops: Op) -> None:
    store.core.engine.commit(store.tenant, ops, TIME)


def record_of(store: holdfast.Store, kind: str, id: str) -> Record:
    found = store.core.engine.get(store.tenant, kind, id)
    assert found is not None
    return found


def saved(
    store: holdfast.Store,
    values: dict[str, Any],
    *,
    thread: str = "made",
    id: str = "one",
    parent: Frame | None = None,
    written: list[TaskWrites] | None = None,
    **more: Any,
) -> Frame:
    """Save a frame whose values are held in the ways that are given, or in the frame itself."""
    if not store.thread(thread).exists():
        store.thread(thread).append({"role": "user", "content": "first"}, {"role": "user", "content": "second"})
    home = record_of(store, "thread", thread).mark.stream
    graph, scope = frames.graph_id(thread, ""), Scope(thread=thread)
    found = store.core.engine.get(store.tenant, GRAPH, graph)
    held = {name: Channel(1, value if isinstance(value, tuple) else (INLINE, value)) for name, value in values.items()}
    position = 1 if found is None else found.head + 1
    metadata = {"source": "loop", "step": position, **more}
    frame = Frame(id, position, 0, parent and parent.id, "today", metadata, held, {}, None, {})
    event, full = frames.frame_event(frame, parent, TIME, written or ())
    new = Put(GRAPH, graph, frames.graph_body("", home), scope=scope)
    commit(store, Append(GRAPH, graph, (event,), new=new))
    return frame._replace(full=full)


def listed(store: holdfast.Store, channel: str, *events: tuple[str, Any], thread: str = "made") -> None:
    """Write the events of a list."""
    id = frames.segment_id(frames.graph_id(thread, ""), channel)
    made = tuple(Event(kind, encode(body), TIME) for kind, body in events)
    commit(store, Append(SEGMENT, id, made, new=Put(SEGMENT, id, encode({}), scope=Scope(thread=thread))))


def blob(store: holdfast.Store, value: Any, thread: str = "made") -> tuple[str, str]:
    body = encode(value)
    id = frames.blob_id(frames.graph_id(thread, ""), body)
    commit(store, Put(BLOB, id, frames.packed(body), scope=Scope(thread=thread)))
    return KEPT, id


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
    (tag("entry", [0, 2, "given"]), {"role": "user", "content": "second", "id": "given"}),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "shown"), READABLE, ids=[each[0]["$"] for each in READABLE])
@pytest.mark.usefixtures("any_engine")
def test_values_are_readable(store: holdfast.Store, stored: Any, shown: Any) -> None:
    saved(store, {"inline": stored, "deep": {"a": [stored]}, "kept": blob(store, [stored])})
    assert store.graph("made").values() == {"inline": shown, "deep": {"a": [shown]}, "kept": [shown]}
    json.dumps(shown)


@pytest.mark.usefixtures("any_engine")
def test_a_list_may_have_its_elements_anywhere(store: holdfast.Store) -> None:
    saved(store, {"xs": (LIST, 4), "pairs": (PAIRS, 2)})
    log = record_of(store, "thread", "made").mark.stream
    noted = ("whole", [[0, 2, 2], [log, 1, 2], [0, 1, 1]])
    listed(store, "xs", ("item", "a"), ("item", tag("entry", [0, 1])), noted, ("item", "b"))
    listed(store, "pairs", ("item", ["k", 1]), ("item", [2, tag("set", [])]))
    first, second = ({"role": "user", "content": text} for text in ("first", "second"))
    assert store.graph("made").values() == {"xs": [first, first, second, "a", "b"], "pairs": {"k": 1, "2": []}}
    assert store.verify().ok


@pytest.mark.usefixtures("any_engine")
def test_a_frame_says_little_where_little_is_told(store: holdfast.Store) -> None:
    saved(store, {"x": 1}, source=None, step=None)
    frame = store.graph("made").frame()
    assert (frame.id, frame.step, frame.source, frame.parent) == ("one", None, None, None)
    assert frame.time.timestamp() == TIME / 1_000_000  # the framework's own time does not read as one


@pytest.mark.usefixtures("any_engine")
def test_nodes_that_join_are_next_when_all_have_come(store: holdfast.Store) -> None:
    saved(store, {"join:a+b:c": tag("set", ["a"]), "join:a+b:d": tag("set", ["b", "a"]), "branch:to:e": None})
    assert store.graph("made").frame().next == ("d", "e")


@pytest.mark.usefixtures("any_engine")
def test_a_task_whose_node_is_not_told_is_named_by_its_id(store: holdfast.Store) -> None:
    first = saved(store, {"x": 1})
    wrote = TaskWrites("task-7", "somewhere", [TaskWrite("task-7", "somewhere", 0, "x", (INLINE, 2))])
    saved(store, {"x": 2}, id="two", parent=first, written=[wrote])
    graph = store.graph("made")
    assert graph.frame("one").tasks == ("task-7",)
    assert [(each.task, each.node, each.value) for each in graph.writes("one")] == [("task-7", "", 2)]


@pytest.mark.usefixtures("any_engine")
def test_a_long_line_of_differences_is_read_from_anywhere(store: holdfast.Store) -> None:
    """With branches, so that a frame is not always the difference from the one before it."""
    made = [saved(store, {"n": 0, "same": "x"}, id="f000")]
    for number in range(1, 120):
        parent = made[max(0, number - 1 - 3 * (number % 4 == 0))]
        made.append(saved(store, {"n": number, "same": "x"}, id=f"f{number:03}", parent=parent))
    graph = store.graph("made")
    every = graph.frames()
    assert [(each.id, each.parent) for each in every] == [(each.id, each.parent) for each in reversed(made)]
    for last in (1, 5, 47, 48, 49, 119):
        assert graph.frames(last) == every[:last]
    assert [graph.values(f"f{number:03}")["n"] for number in (0, 48, 49, 50, 119)] == [0, 48, 49, 50, 119]
    assert store.verify().ok


# What cannot be read


Spoil = Callable[[holdfast.Store], object]


def garbage(body: Any, kind: str = "frame") -> Spoil:
    def spoil(store: holdfast.Store) -> None:
        commit(store, Append(GRAPH, frames.graph_id("made", ""), (Event(kind, encode(body), TIME),)))

    return spoil


def without(kind: str, id: Callable[[], str]) -> Spoil:
    return lambda store: commit(store, Delete(kind, id()))


def segment_id(channel: str) -> str:
    return frames.segment_id(frames.graph_id("made", ""), channel)


def large_id() -> str:
    return frames.blob_id(frames.graph_id("made", ""), encode("large"))


def bad_blob(store: holdfast.Store) -> None:
    commit(store, Put(BLOB, "bad", MSGPACK + msgspec.msgpack.encode(b"z1 and no more"), scope=Scope(thread="made")))
    saved(store, {"page": (KEPT, "bad")}, id="two")


def newer(store: holdfast.Store) -> None:
    body = encode({"namespace": "", "log": 1, "format": 99})
    commit(store, Put(GRAPH, frames.graph_id("made", ""), body, scope=Scope(thread="made")))


def odd_list(kind: str, body: Any) -> Spoil:
    def spoil(store: holdfast.Store) -> None:
        listed(store, "odd", ("item", 1), (kind, body))
        saved(store, {"odd": (LIST, 2)}, id="two")

    return spoil


SPOILED: dict[str, tuple[Spoil, str, type[Exception]]] = {
    "a frame of another shape": (garbage(["?"]), "the stored data is not a frame", Corrupt),
    "a frame that is a difference from nothing": (garbage(["=x", 7, 9, 0, "l", [], []]), "is missing", Corrupt),
    "an event of a kind to come": (garbage({}, "leap"), "upgrade", Unsupported),
    "a graph of a newer version": (newer, "newer than this version", Unsupported),
    "a value held in a way to come": (
        lambda store: saved(store, {"x": ("z", 1)}, id="two"), "upgrade", Unsupported),
    "a blob that is gone": (without(BLOB, large_id), "'page' is gone", Corrupt),
    "a blob that is not a blob": (bad_blob, "a value of 'page'", Corrupt),
    "a list that is gone": (without(SEGMENT, lambda: segment_id("xs")), "the list 'xs' is gone", Corrupt),
    "a list that is too short": (
        lambda store: saved(store, {"xs": (LIST, 9)}, id="two"), "'xs' is shorter than a frame says", Corrupt),
    "a list that names what is not there": (odd_list("whole", [[0, 1, 7]]), "elements 1 to 7", Corrupt),
    "a list that names a stream that is not there": (odd_list("add", [[77, 1, 2]]), "no entry 1 of stream 77", Corrupt),
    "a message that is not in the log": (
        lambda store: saved(store, {"said": tag("entry", [0, 99])}, id="two"), "there is no entry 99", Corrupt),
    "messages that go beyond the log": (
        lambda store: saved(store, {"messages": (ENTRIES, [[0, 1, 4]])}, id="two"), "no entry 3", Corrupt),
    "a place that is none": (
        lambda store: saved(store, {"messages": (ENTRIES, [[0, "a", 4]])}, id="two"), "it names entries 'a'", Corrupt),
    "a thread that is gone": (without("thread", lambda: "made"), "there is no entry 1", NotFound),
}  # fmt: skip


@pytest.mark.parametrize("case", SPOILED)
@pytest.mark.usefixtures("any_engine")
def test_verify_names_what_cannot_be_read(store: holdfast.Store, case: str) -> None:
    spoil, words, error = SPOILED[case]
    listed(store, "xs", ("item", "a"), ("item", "b"))
    saved(store, {"messages": (ENTRIES, [[0, 1, 2]]), "page": blob(store, "large"), "xs": (LIST, 2)})
    assert store.verify().ok
    spoil(store)
    found = [each for each in store.verify().problems if each.kind == GRAPH]
    assert any(words in each.what for each in found), found
    assert {(each.where, each.id) for each in found} == {("graph of thread 'made'", frames.graph_id("made", ""))}
    graph = store.graph("made")
    with pytest.raises(error):
        graph.values()


@pytest.mark.every_engine
def test_verify_names_what_is_missing_of_real_graphs(kept: holdfast.Store) -> None:
    assert kept.verify().ok
    engine = kept.core.engine
    for kind in (BLOB, SEGMENT):
        for record in engine.scan(kept.tenant, Query(kind)):
            commit(kept, Delete(kind, record.id))
    found = [each for each in kept.verify().problems if each.kind == GRAPH]
    told = {(each.where, each.what.split(":")[0]) for each in found}
    assert {what for where, what in told if where == "graph of thread 'trip'"} == {
        "a value of 'page' is gone", "the list 'messages' is gone", "the list 'notes' is gone",
        "the list 'prices' is gone",
    }  # fmt: skip
    inside = [namespace for thread, namespace in GRAPHS if thread == "trip" and namespace]
    assert {(where, what) for where, what in told if "inner" in where} == {
        (f"graph {namespace!r} of thread 'trip'", "a value of '__start__' is gone") for namespace in inside
    }
    with pytest.raises(Corrupt, match="is gone"):
        kept.graph("trip").values()
    assert len(kept.graph("trip").frames()) == len(of("trip", ""))  # what does not need them is there


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
    assert sorted(row[:4] for row in rows) == [
        ("visa", "", 1, "frame"), ("visa", "", 2, "frame"), ("visa", "", 3, "frame"), ("visa", "", 4, "writes"),
        ("visa", "", 5, "writes"),
    ]  # fmt: skip
    assert json.loads(sorted(rows)[2][4])[0] == frames.to_key(of("visa", "")[0]["id"])
