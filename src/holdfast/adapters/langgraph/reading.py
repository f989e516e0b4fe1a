"""The graphs of a thread, read without LangGraph: their frames, what tasks wrote, and plain values.

The saver puts LangGraph's own objects together; here people and programs see the same as plain data. A message that is
an entry of the log is that entry's content, a date is text, a set is a list, and an object of a class is a dict of one
name, that of the class, with its fields. No class is needed, and none is imported.

``problems`` reads every part of a graph once, and reports what cannot be read. Deliberately absent: writing.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from holdfast import Thread
from holdfast.adapters.langgraph import frames
from holdfast.adapters.langgraph.frames import DICT, LIST, OWN, TAG, Frame, GraphStream, Place, Ref, TaskWrite
from holdfast.errors import Corrupt, HoldfastError, Invalid, NotFound, Unsupported, quoted
from holdfast.extension import Mark, Problem, Query, Record, View, check_count, check_id, decode, scan_all, to_datetime

_START, _SENT, _SEND = "__start__", "__pregel_tasks", "send"
_PULLED, _PUSHED = "~__pregel_pull, ", "~__pregel_push, "
_OF_CALLER, _OF_SCHEMA = "u:", "schema:"
_UNSAID = ("__given__", "__private__")  # parts of an object that its class needs, but people do not
_WRONG = (KeyError, IndexError, TypeError, ValueError, AttributeError, struct.error)


class GraphInfo(msgspec.Struct, frozen=True):
    """A graph of a thread in a listing. ``namespace`` is empty, or names a graph inside another one."""

    namespace: str
    created: datetime
    active: datetime


class FrameInfo(msgspec.Struct, frozen=True):
    """One save of a graph, without its values.

    ``channels`` has the versions of those that hold a value; ``updated`` names those that changed, ``next`` the nodes
    whose turn it is now, and ``tasks`` those that wrote on top of this frame: the node, or else the id of the task.
    """

    id: str
    step: int | None
    source: str | None
    time: datetime
    parent: str | None
    channels: dict[str, Any]
    updated: tuple[str, ...]
    next: tuple[str, ...]
    tasks: tuple[str, ...]
    metadata: dict[str, Any]


class GraphWrite(msgspec.Struct, frozen=True):
    """What a task wrote to a channel on top of a frame. ``node`` is empty if the stored data does not name it."""

    task: str
    node: str
    channel: str
    value: Any


def graphs_of(thread: Thread) -> list[GraphInfo]:
    """The graphs of a thread, latest activity first, without reading a frame."""
    thread.logbook.record()  # refuses a handle that names another owner
    core = thread.logbook.core
    found = frames.graphs_in(core.engine, core.tenant, thread.id)
    return [GraphInfo(frames.namespace_of(each), to_datetime(each.created), to_datetime(each.time)) for each in found]


class Graph:
    """One graph of a thread, for reading: ``Graph(store.thread("trip-42"))``. LangGraph writes it.

    ``namespace`` names a graph inside another one.
    """

    def __init__(self, thread: Thread, namespace: str = "") -> None:
        if not isinstance(namespace, str):
            raise Invalid(f"a namespace is text, not {quoted(namespace)}")
        self._core, self._existing = thread.logbook.core, thread.logbook.existing
        self.thread, self.namespace = thread.id, namespace

    def __repr__(self) -> str:
        return f"Graph({self.thread!r}, namespace={self.namespace!r})"

    def frames(self, last: int | None = None) -> list[FrameInfo]:
        """List frames, or the ``last`` few, newest first, without their values."""
        if last is not None:
            check_count("last", last)
        with self._reading() as reading:
            return [reading.info(frame) for frame in islice(reading.stream.frames(), last)]

    def frame(self, id: str | None = None) -> FrameInfo:
        """One frame without its values: the newest, or the one with an id."""
        with self._reading() as reading:
            return reading.info(self._found(reading, id))

    def values(self, id: str | None = None) -> dict[str, Any]:
        """The values of the newest frame, or of the one with an id, as plain data by channel."""
        with self._reading() as reading:
            return {name: reading.shown(ref) for name, ref in self._found(reading, id).values.items()}

    def writes(self, id: str | None = None) -> list[GraphWrite]:
        """What tasks wrote on top of the newest frame, or of the one with an id, in the order of application."""
        with self._reading() as reading:
            frame = self._found(reading, id)
            sent = reading.sent(frame)
            return [
                GraphWrite(each.task, _node(each, sent), each.channel, reading.shown(each.ref))
                for each in reading.stream.writes(frame)
            ]

    @contextmanager
    def _reading(self) -> Iterator[_GraphReader]:
        """Read everything at one moment: pruning would change the graph between reads."""
        self._existing()
        with self._core.engine.snapshot() as view:
            record = view.get(self._core.tenant, frames.GRAPH, frames.graph_id(self.thread, self.namespace))
            if record is None:
                which = f" in namespace {self.namespace!r}" if self.namespace else ""
                raise NotFound(
                    f"thread {self.thread!r} has no graph{which}", thread=self.thread, namespace=self.namespace
                )
            with _sound(_where(record)):
                yield _GraphReader(view, self._core.tenant, record)

    def _found(self, reading: _GraphReader, id: str | None) -> Frame:
        if id is not None:
            check_id(id, "the id of a frame")
        frame = reading.stream.newest() if id is None else reading.stream.find(id)
        if frame is None:
            which = "frame yet" if id is None else f"frame {id!r}"
            raise NotFound(f"the graph of thread {self.thread!r} has no {which}", thread=self.thread, frame=id)
        return frame


def _node(write: TaskWrite, sent: Sequence[str]) -> str:
    """The node that a task is of: named by its path, or the one that something was sent to, by its number."""
    if write.path.startswith(_PULLED):
        return write.path.removeprefix(_PULLED)
    number = write.path.removeprefix(_PUSHED).partition(",")[0]
    return sent[int(number)] if number.isdecimal() and int(number) < len(sent) else ""


def _where(record: Record) -> str:
    """A graph in words; one whose description is damaged, by its thread alone."""
    named = "graph"
    with suppress(HoldfastError, *_WRONG):
        if namespace := frames.namespace_of(record):
            named = f"graph {namespace!r}"
    return f"{named} of thread {record.scope.thread!r}"


@contextmanager
def _sound(where: str) -> Iterator[None]:
    """Stored data of the wrong shape is damage, whatever error Python raises."""
    try:
        yield
    except _WRONG as error:
        raise Corrupt(f"{where}: the stored data is not a frame, list or value: {error!r}; run verify") from error


# Reading


class _GraphReader:
    """A graph as it is in one view."""

    def __init__(self, view: View, tenant: str, record: Record) -> None:
        self._view, self._tenant, self._record = view, tenant, record
        self._home = frames.home_of(view, tenant, record)
        self._items = view.get(tenant, frames.ITEMS, record.id)
        self.stream = GraphStream(view, tenant, record.mark)

    # Frames

    def info(self, frame: Frame) -> FrameInfo:
        metadata, sent = {name: self._readable(value) for name, value in frame.metadata.items()}, self.sent(frame)
        held = self._view.read(self._tenant, Mark(self._record.mark.stream, frame.position), limit=1, newest=True)
        return FrameInfo(
            id=frame.id,
            step=metadata.pop("step", None),
            source=metadata.pop("source", None),
            time=_moment(frame.body["time"], held[0].time),
            parent=frame.parent,
            channels={name: frame.versions.get(name) for name in frame.values},
            updated=tuple(frame.body["updated"] or ()),
            next=(*sent, *sorted(self._turns(frame))),
            tasks=tuple({each.task: _node(each, sent) or each.task for each in self.stream.writes(frame)}.values()),
            metadata=metadata,
        )

    def sent(self, frame: Frame) -> list[str]:
        """The nodes that something was sent to, once for each time."""
        raw = self._raw(frame.values[_SENT]) if _SENT in frame.values else None
        sent = raw if isinstance(raw, list) else []
        return [each["v"][0] for each in sent if isinstance(each, dict) and each.get(TAG) == _SEND]

    def _turns(self, frame: Frame) -> Iterator[str]:
        """The nodes whose turn it is, told by the channels that lead to them and hold something."""
        for name, ref in frame.values.items():
            if name == _START:
                yield name
            elif name.startswith(frames.ONTO):
                yield name.removeprefix(frames.ONTO)
            elif name.startswith(frames.JOIN):
                starts, _, end = name.removeprefix(frames.JOIN).rpartition(":")
                raw = self._raw(ref)
                if isinstance(raw, dict) and raw.get(TAG) == "set" and len(raw["v"]) == starts.count("+") + 1:
                    yield end

    # Values

    def shown(self, ref: Ref) -> Any:
        """A value as plain data."""
        return self._readable(self._raw(ref))

    def _raw(self, ref: Ref) -> Any:
        """A value as it is stored: plain data with tags, of which some say where a part of it is."""
        way, *held = ref
        if way == frames.INLINE:
            return held[0]
        if way == frames.ITEM:
            return self._at([(OWN, held[0])])[0]
        if way not in (LIST, DICT):
            raise Unsupported(f"a value is stored as {way!r}, which this version does not know: upgrade holdfast")
        elements = self._at(frames.to_places(held))
        return {TAG: "dict", "v": elements} if way == DICT else elements

    def _at(self, places: Sequence[Place]) -> list[Any]:
        """What is stored at some places."""
        streams = {OWN: 0 if self._items is None else self._items.mark.stream, frames.HOME: self._home}
        real = [(streams.get(stream, stream), position) for stream, position in places]
        bodies = frames.bodies_at(self._view, self._tenant, real)
        return [decode(frames.item_body(bodies[place])) for place in real]

    def _readable(self, raw: Any) -> Any:
        if type(raw) is list:
            return [self._readable(item) for item in raw]
        if type(raw) is not dict:
            return raw
        name = raw.get(TAG)
        if name is None:
            return {key: self._readable(item) for key, item in raw.items()}
        held = raw["v"]
        if name in (frames.ENTRY, frames.PART):
            return self._readable(self._at([(OWN, held) if name == frames.PART else (held[0], held[1])])[0])
        if name == frames.SEALED:
            return {"encrypted": held[0]}
        if name in _AS_STORED:
            return self._readable(held)
        return _READABLE[name](self._readable(held)) if name in _READABLE else self._object(name, held)

    def _object(self, name: str, held: Any) -> dict[str, Any]:
        """An object of a class: its name and what it holds, or of a caller's own class the fields alone."""
        if name.startswith(_OF_SCHEMA):
            held = held[1]
        shown = self._readable(held)
        if not name.startswith((_OF_CALLER, _OF_SCHEMA)):
            return {name: shown}
        if isinstance(shown, list) and [type(each) for each in shown] == [dict, str]:
            shown = {field: value for field, value in shown[0].items() if field not in _UNSAID}
        return {name.removeprefix(_OF_CALLER).removeprefix(_OF_SCHEMA): shown}

    # Checking

    def wrong(self) -> Iterator[tuple[int, str]]:
        """What cannot be read, frame by frame; what frames share is read once."""
        seen: set[Place] = set()
        for frame, events in self.stream.with_writes(self._record.head):
            written = frames.merged([*events, *self.stream.strays(frame.id)])
            held = {**frame.values, **frame.body.get("more", {})}
            for channel, ref in [*held.items(), *((each.channel, each.ref) for each in written)]:
                try:
                    with _sound(f"channel {channel!r}"):
                        self._check(ref, seen)
                except HoldfastError as error:
                    yield frame.position, f"a value of {channel!r}: {error}"

    def _check(self, ref: Ref, seen: set[Place]) -> None:
        """Read what was not read yet of a value."""
        if ref[0] not in (LIST, DICT):
            self.shown(ref)
            return
        fresh = [place for place in frames.to_places(ref[1:]) if place not in seen]
        seen.update(fresh)
        self._readable(self._at(fresh))


def problems(view: View, tenant: str) -> Iterator[Problem]:
    """What cannot be read in the graphs of a tenant: frames, items and entries that are missing or damaged."""
    for record in scan_all(view, tenant, Query(frames.GRAPH)):
        try:
            with _sound(_where(record)):
                for position, what in _GraphReader(view, tenant, record).wrong():
                    yield Problem(_where(record), what, tenant, frames.GRAPH, record.id, position)
        except HoldfastError as error:
            yield Problem(_where(record), str(error), tenant, frames.GRAPH, record.id)


def leads_on(channel: str) -> bool:
    """Whether a channel only says whose turn it is, or is LangGraph's own in another way."""
    return channel.startswith((frames.ONTO, frames.JOIN, "__"))


def _moment(told: Any, written: int) -> datetime:
    """When a frame was made, as LangGraph says, or else when it was written."""
    with suppress(TypeError, ValueError):
        found = datetime.fromisoformat(told)
        return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return to_datetime(written)


def _pairs(held: list[Any]) -> Any:
    """A dict whose keys may be anything; where two of them would read alike, or are encrypted, the pairs."""
    if not all(type(pair) is list for pair in held):
        return held
    named = {key if isinstance(key, str) else msgspec.json.encode(key).decode(): value for key, value in held}
    return named if len(named) == len(held) else held


def _zoned(held: Any) -> str:
    return held if isinstance(held, str) else f"{held[0]}[{held[2]}]" if len(held) > 2 else str(held[0])


def _number(held: Sequence[str]) -> Any:
    """A number of numpy's, told by its kind and bytes; of a kind that Python has none of, as it is stored."""
    order, kind = held[0][0], _NUMBERS.get(held[0][1:])
    return list(held) if kind is None else struct.unpack(f"{order.replace('|', '<')}{kind}", b64decode(held[1]))[0]


_NUMBERS = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f2": "e",
    "f4": "f", "f8": "d",
}  # fmt: skip
_AS_STORED = {"message", "tuple", "set", "frozenset", "date", "decimal", "uuid", "path", "posix path", "windows path"}
_READABLE: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("dict", "counter", "ordered dict"), _pairs),
    "default dict": lambda held: _pairs(held[1]),
    "deque": lambda held: held[1],
    **dict.fromkeys(("datetime", "time"), _zoned),
    "number": _number,
    "timedelta": lambda held: str(timedelta(*held)),
    "int": int,
    "float": float,
}
"""How the types that everybody knows are shown; the names are those that values are stored under."""
