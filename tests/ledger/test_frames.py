"""Frames: whatever a save holds is read back from its small difference, and found by its id or its place."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.clock import to_datetime
from holdfast.engine.codec import encode
from holdfast.engine.contract import Append, Event, Put, Record, Scope
from holdfast.errors import Corrupt, Unsupported
from holdfast.ledger import frames
from holdfast.ledger.frames import ENTRIES, GRAPH, INLINE, KEPT, LIST, PAIRS, Channel, Frame, TaskWrite, TaskWrites


def uuid6(number: int) -> str:
    """A uuid of the sixth version that was made so many hundreds of nanoseconds after some moment."""
    ticks = 0x1F1E1300000000 + number + 0x0100000000000000
    return str(UUID(int=(ticks >> 12) << 80 | 6 << 76 | (ticks & 0xFFF) << 64 | 2 << 62 | 7))


class Graph:
    """The stream of one graph in a store, and every frame and write that went into it."""

    def __init__(self, store: holdfast.Store) -> None:
        self.engine, self.tenant = store.core.engine, store.tenant
        self.head = 0
        self.frames: list[Frame] = []
        self.written: dict[str, dict[tuple[str, int], TaskWrite]] = {}
        self.bytes = 0

    def add(self, event: Event) -> None:
        new = Put(GRAPH, "graph", frames.graph_body("", 1), scope=Scope(thread="t"))
        self.engine.commit(self.tenant, (Append(GRAPH, "graph", (event,), self.head, new),), 0)
        self.head += 1
        self.bytes += len(event.body)

    def save(self, frame: Frame, parent: Frame | None, carried: list[TaskWrites] | None = None) -> Frame:
        highest = max((each.id for each in self.frames), default="")
        new = frame._replace(position=self.head + 1, strays=frame.id <= highest)
        event, full = frames.frame_event(new, parent, 0, carried or ())
        self.add(event)
        self.frames.append(new._replace(full=full))
        return self.frames[-1]

    def write(self, frame: Frame, written: TaskWrites) -> None:
        late = None
        if frame != self.frames[-1]:
            number = 1
            while self.engine.read(self.tenant, self.record.mark, key=frames.late_key(frame.position, number)):
                number += 1
            late = frames.late_key(frame.position, number)
        self.add(frames.writes_event(frame.position, written, 0, late))
        self.note(frame, written)

    def note(self, frame: Frame, written: TaskWrites) -> None:
        held = self.written.setdefault(frame.id, {})
        held.update({(write.task, write.number): write for write in written.writes})

    @property
    def record(self) -> Record:
        record = self.engine.get(self.tenant, GRAPH, "graph")
        assert record is not None
        return record

    def read(self, id: str) -> Frame | None:
        event = frames.found(self.engine, self.tenant, self.record.mark, id)
        return event and frames.frame_at(self.engine, self.tenant, self.record.mark.stream, event)

    def check(self) -> None:
        for frame in self.frames:
            assert self.read(frame.id) == frame
            for last in {False, frame == self.frames[-1]}:
                writes = frames.writes_of(self.engine, self.tenant, self.record.mark, frame, last=last)
                held = self.written.get(frame.id, {}).values()
                assert writes == sorted(held, key=lambda write: (write.path, write.task, write.number))
        if self.frames:
            events = list(frames.newest(self.engine, self.tenant, self.record.mark))
            assert [event.position for event in events] == list(range(self.head, 0, -1))


NAMES = st.sampled_from(["messages", "xs", "__start__", "branch:to:a", "", "é", "0", "a\0b"])
MARKED = NAMES | st.sampled_from(
    ["__no_writes__", "__no_writes__2", "~__pregel_pull, a", "-", "=", "==a", ">a", "^", "branch:"]
)
VERSIONS = st.none() | st.integers(0, 5) | st.sampled_from(["1.5", 0.5])
PLAIN = st.none() | st.booleans() | st.integers(-5, 5) | st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2))
RANGES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 4), st.integers(0, 3)).map(lambda found: [*found[:2], sum(found[1:])])
    | st.tuples(st.integers(0, 1), st.integers(1, 4), NAMES).map(lambda found: [*found[:2], *found[1:]]),
    max_size=4,
)
REFS = (
    st.tuples(st.just(INLINE), VALUES) | st.tuples(st.just(ENTRIES), RANGES) | st.tuples(st.just(KEPT), NAMES)
    | st.tuples(st.sampled_from([LIST, PAIRS]), st.integers(1, 9))
)  # fmt: skip
CHANNELS = st.dictionaries(NAMES, st.builds(Channel, VERSIONS, st.none() | REFS), max_size=4)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["input", "loop", "update", "fork", "mine", None]),
        "step": st.integers(-1, 3) | PLAIN,
        "parents": st.none() | st.dictionaries(NAMES, NAMES, max_size=1), "run_id": NAMES, "é": VALUES,
    },
)  # fmt: skip
TIMES = st.sampled_from(["", "yesterday", None, "2024-01-01T00:00:00+00:00", "2024-01-01T00:00:00.000001+05:30",
                         "2024-01-01"]) | st.just("near")  # fmt: skip
SAVES = st.fixed_dictionaries({
    "parent": st.integers(0, 3), "id": st.integers(0, 2), "time": TIMES, "metadata": METADATA, "channels": CHANNELS,
    "keep": st.booleans(), "seen": st.dictionaries(NAMES, st.dictionaries(NAMES, VERSIONS, max_size=2), max_size=3),
    "updated": st.none() | st.lists(NAMES, max_size=2), "more": st.dictionaries(NAMES, VALUES, max_size=1),
    "schema": st.integers(0, 2), "writes": st.lists(st.tuples(MARKED, st.integers(-3, 3), REFS), max_size=3),
    "path": MARKED, "how": st.sampled_from(["carried", "early", "after"]), "late": st.integers(0, 5),
})  # fmt: skip


def made(graph: Graph, number: int, save: dict[str, Any]) -> tuple[Frame, Frame | None]:
    """A frame of a save, and the one that it comes from."""
    parent = graph.frames[-1 - save["parent"]] if save["parent"] < len(graph.frames) else None
    id = [uuid6(1_000 * number), f"{'abc'[number % 3]}{number}", uuid6(900_000 - number)][save["id"]]
    near = to_datetime((frames.made_at(id) or 0) + number).isoformat()
    base = parent if save["keep"] else None
    channels = {**(base.channels if base else {}), **save["channels"]}
    frame = Frame(
        id=id, position=0, full=0, parent=parent.id if parent else None,
        time=near if save["time"] == "near" else save["time"], metadata=save["metadata"], channels=channels,
        seen={**(base.seen if base else {}), **save["seen"]}, updated=save["updated"], more=save["more"],
        schema=save["schema"],
    )  # fmt: skip
    return frame, parent


@given(saves=st.lists(SAVES, max_size=12))
@settings(max_examples=2 * settings().max_examples)
def test_any_sequence_of_frames_and_writes_reads_back(saves: list[dict[str, Any]]) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        graph = Graph(store)
        for number, save in enumerate(saves, 1):
            frame, parent = made(graph, number, save)
            written = TaskWrites(f"task {number}", save["path"], [
                TaskWrite(f"task {number}", save["path"], place, channel, ref)
                for place, (channel, _, ref) in {each[1]: each for each in save["writes"]}.items()
            ])  # fmt: skip
            early, last = save["how"] == "early", parent is not None and parent == graph.frames[-1]
            carries = bool(save["how"] == "carried" and written.writes and last)
            if carries and parent is not None:
                graph.note(parent, written)
            if early:
                frame = frame._replace(early=tuple(written.writes))
            saved = graph.save(frame, parent, [written] if carries else None)
            if early:
                graph.note(saved, written)
            elif written.writes and not carries:
                graph.write(graph.frames[-1 - save["late"] % len(graph.frames)], written)
        if graph.frames:
            graph.check()
            assert graph.read("missing") is None
            assert graph.read(uuid6(1_500)) is None


def conversation(graph: Graph, steps: int) -> None:
    """What a graph of two nodes saves: the same few channels, and a list of messages that grows."""
    parent: Frame | None = None
    for step in range(steps):
        ref = (ENTRIES, [[0, 1, step // 2 + 1]])
        channels = {
            "messages": Channel(step // 2 + 1, ref), f"branch:to:{'ab'[step % 2]}": Channel(step + 1, (INLINE, None)),
            f"branch:to:{'ba'[step % 2]}": Channel(step, None), "__start__": Channel(1, None),
        }  # fmt: skip
        id = uuid6(10_000_000 * step + 1)
        frame = Frame(
            id, 0, 0, parent.id if parent else None, to_datetime((frames.made_at(id) or 0) + 3).isoformat(),
            {"source": "loop", "step": step, "parents": {}}, channels,
            {"a": {"branch:to:a": step}, "b": {"branch:to:b": step}}, ["messages"], {"v": 4},
        )  # fmt: skip
        parent = graph.save(frame, parent)


def test_a_frame_of_a_conversation_is_small(store: holdfast.Store, any_engine: None) -> None:
    graph = Graph(store)
    conversation(graph, 400)
    assert graph.bytes / 400 < 220
    graph.check()


def test_any_frame_is_read_from_a_short_stretch(store: holdfast.Store, any_engine: None) -> None:
    graph = Graph(store)
    conversation(graph, 300)
    assert max(frame.position - frame.full for frame in graph.frames) <= 48


@pytest.mark.every_engine
def test_frames_on_every_engine(store: holdfast.Store) -> None:
    graph = Graph(store)
    conversation(graph, 70)
    graph.check()


def test_an_id_that_is_no_uuid_or_not_in_its_usual_form_stays_what_it_is() -> None:
    usual = uuid6(5)
    for id in (usual, usual.upper(), usual.replace("-", ""), f"{{{usual}}}", "a", "", "=", "=a", "é", "1" * 22):
        assert frames.from_key(frames.to_key(id)) == id
    assert len(frames.to_key(usual)) == 22


def test_when_something_was_made_is_told_by_a_uuid_of_the_sixth_version_alone() -> None:
    assert frames.made_at("1f1e130c-5467-6759-8001-bbfa3b3101a1") is not None
    for id in ("a", "", "00000000-0000-4000-8000-000000000000"):
        assert frames.made_at(id) is None
    assert (frames.made_at(uuid6(20)) or 0) - (frames.made_at(uuid6(0)) or 0) == 2


def test_a_graph_of_a_newer_format_is_refused(store: holdfast.Store, any_engine: None) -> None:
    graph = Graph(store)
    conversation(graph, 1)
    record = graph.record
    body = encode({"namespace": "", "log": 1, "format": 2, "new": True})
    store.core.engine.commit(store.tenant, (Put(GRAPH, "graph", body, scope=record.scope),), 0)
    for read in (frames.home_of, frames.namespace_of):
        with pytest.raises(Unsupported, match="upgrade holdfast"):
            read(graph.record)


def test_an_event_of_a_kind_that_is_not_known_is_refused(store: holdfast.Store, any_engine: None) -> None:
    with pytest.raises(Unsupported, match="'squash'"):
        frames.is_frame(Event("squash", b"j1[]", 0))


def test_a_difference_from_nothing_is_corrupt(store: holdfast.Store, any_engine: None) -> None:
    graph = Graph(store)
    conversation(graph, 2)
    event, _ = frames.frame_event(graph.frames[1]._replace(position=9), graph.frames[0], 0)
    other = Event(event.kind, event.body, 0, None, 3)
    with pytest.raises((Corrupt, KeyError)) as caught:
        frames.frame_at(graph.engine, graph.tenant, graph.record.mark.stream, other)
    assert caught.type is Corrupt


def test_names_do_not_say_whose_they_are() -> None:
    assert "ana" not in frames.graph_id("ana", "")
    assert frames.graph_id("a", "b") != frames.graph_id("ab", "")
    assert frames.graph_id("a", "b") != frames.graph_id("a", "c")
    assert frames.blob_id("a", b"x") != frames.blob_id("b", b"x")
