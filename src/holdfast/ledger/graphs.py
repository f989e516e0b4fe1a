"""The graphs of a thread, read without the framework that ran them: their frames, what tasks wrote, and plain values.

A framework puts its own objects together from frames (``frames``), lists (``segments``) and blobs; here people and
programs see the same as plain data. A message that is an entry of the log is that entry's content, a date is text, a
set is a list, and an object of a class is a dict of one name, that of the class, with its fields. No class is needed,
and none is imported.

``problems`` reads every part of a graph once, and reports what cannot be read. Deliberately
absent: writing, and putting objects together, which the framework's adapter does.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from holdfast.clock import to_datetime
from holdfast.engine.codec import decode
from holdfast.engine.contract import Event, Mark, Problem, Query, Record, View
from holdfast.errors import Corrupt, HoldfastError, Invalid, NotFound, Unsupported, quoted
from holdfast.ids import check_id
from holdfast.ledger import frames, segments
from holdfast.ledger.core import fetch, scan_all
from holdfast.ledger.frames import BLOB, ENTRIES, GRAPH, INLINE, KEPT, LIST, PAIRS, Frame, Ref, TaskWrite
from holdfast.ledger.segments import SEGMENT, ElementRef
from holdfast.ledger.thread import LogBook, check_count

_PAGE = 500
_TAG = "$"
_ENTRY, _MESSAGE, _SEND = "entry", "message", "send"
_ONTO, _JOIN, _START, _SENT = "branch:to:", "join:", "__start__", "__pregel_tasks"
_PULLED, _PUSHED = "~__pregel_pull, ", "~__pregel_push, "
_ELEMENT = "item"
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


def graphs_of(logbook: LogBook) -> list[GraphInfo]:
    """The graphs of a thread, latest activity first, without reading a frame."""
    logbook.record()  # refuses a handle that names another owner
    core, thread = logbook.core, logbook.id
    found = scan_all(core.engine, core.tenant, Query(GRAPH, thread=thread))
    return [
        GraphInfo(frames.namespace_of(each), to_datetime(each.created), to_datetime(each.time))
        for each in found
        if each.scope.thread == thread
    ]


class Graph:
    """One graph of a thread, for reading: ``store.graph("trip-42")``. Its framework writes it."""

    def __init__(self, logbook: LogBook, namespace: str = "") -> None:
        if not isinstance(namespace, str):
            raise Invalid(f"a namespace is text, not {quoted(namespace)}")
        self._core, self._existing = logbook.core, logbook.existing
        self.thread, self.namespace = logbook.id, namespace

    def __repr__(self) -> str:
        return f"Graph({self.thread!r}, namespace={self.namespace!r})"

    def frames(self, last: int | None = None) -> list[FrameInfo]:
        """List frames, or the ``last`` few, newest first, without their values."""
        if last is not None:
            check_count("last", last)
        with self._reading() as reading:
            return reading.infos(last)

    def frame(self, id: str | None = None) -> FrameInfo:
        """One frame without its values: the newest, or the one with an id."""
        with self._reading() as reading:
            frame, event = self._found(reading, id)
            return reading.info(frame, event, reading.writes(frame))

    def values(self, id: str | None = None) -> dict[str, Any]:
        """The values of the newest frame, or of the one with an id, as plain data by channel."""
        with self._reading() as reading:
            channels = self._found(reading, id)[0].channels
            held = {name: each.ref for name, each in channels.items() if each.ref is not None}
            return dict(zip(held, reading.shown(list(held.items())), strict=True))

    def writes(self, id: str | None = None) -> list[GraphWrite]:
        """What tasks wrote on top of the newest frame, or of the one with an id, in the order of application."""
        with self._reading() as reading:
            frame = self._found(reading, id)[0]
            written, sent = reading.writes(frame), reading.sent(frame)
            values = reading.shown([(each.channel, each.ref) for each in written])
            return [
                GraphWrite(each.task, _node(each, sent), each.channel, value)
                for each, value in zip(written, values, strict=True)
            ]

    @contextmanager
    def _reading(self) -> Iterator[_GraphReader]:
        """Read everything at one moment: pruning would change the graph between reads."""
        self._existing()
        with self._core.engine.snapshot() as view:
            record = view.get(self._core.tenant, GRAPH, frames.graph_id(self.thread, self.namespace))
            if record is None:
                which = f" in namespace {self.namespace!r}" if self.namespace else ""
                raise NotFound(
                    f"thread {self.thread!r} has no graph{which}", thread=self.thread, namespace=self.namespace
                )
            with _sound(_where(record)):
                yield _GraphReader(view, self._core.tenant, record)

    def _found(self, reading: _GraphReader, id: str | None) -> tuple[Frame, Event]:
        event = reading.event(None if id is None else check_id(id, "the id of a frame"))
        if event is None:
            which = "frame yet" if id is None else f"frame {id!r}"
            raise NotFound(f"the graph of thread {self.thread!r} has no {which}", thread=self.thread, frame=id)
        return reading.frame(event), event


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
        self._home = frames.home_of(record)
        self._entries: dict[ElementRef, Any] = {}

    # Frames

    def event(self, id: str | None) -> Event | None:
        """The event of the newest frame, or of the one with an id."""
        if id is not None:
            return frames.found(self._view, self._tenant, self._record.mark, id)
        every = frames.newest(self._view, self._tenant, self._record.mark)
        return next((event for event in every if frames.is_frame(event)), None)

    def frame(self, event: Event) -> Frame:
        return frames.frame_at(self._view, self._tenant, self._record.mark.stream, event)

    def writes(self, frame: Frame) -> list[TaskWrite]:
        return frames.writes_of(self._view, self._tenant, self._record.mark, frame, last=False)

    def infos(self, last: int | None) -> list[FrameInfo]:
        """The last frames, the newest first, put together by one reading."""
        wanted, first = self._wanted(last)
        history = frames.History()
        for event in self._view.read(self._tenant, self._record.mark, after=first - 1):
            history.add(event)
        return [self.info(history.frame(each.position), each, history.writes(each.position)) for each in wanted]

    def _wanted(self, last: int | None) -> tuple[list[Event], int]:
        """The events of the last frames, and where to begin so that all they are differences from is read."""
        wanted: list[Event] = []
        for event in frames.newest(self._view, self._tenant, self._record.mark):
            if len(wanted) == last:
                break
            if frames.is_frame(event):
                wanted.append(event)
        return wanted, min((frames.full_of(event) for event in wanted), default=self._record.head + 1)

    def info(self, frame: Frame, event: Event, written: Sequence[TaskWrite]) -> FrameInfo:
        metadata, sent = self._values([frame.metadata])[0], self.sent(frame)
        return FrameInfo(
            id=frame.id,
            step=metadata.pop("step", None),
            source=metadata.pop("source", None),
            time=_moment(frame.time, event.time),
            parent=frame.parent,
            channels={name: each.version for name, each in frame.channels.items() if each.ref is not None},
            updated=tuple(frame.updated or ()),
            next=(*sent, *sorted(_turns(frame))),
            tasks=tuple({each.task: _node(each, sent) or each.task for each in written}.values()),
            metadata=metadata,
        )

    def sent(self, frame: Frame) -> list[str]:
        """The nodes that something was sent to, once for each time."""
        held = frame.channels.get(_SENT)
        raw = None if held is None or held.ref is None else self._raw(_SENT, held.ref)
        sent = raw if isinstance(raw, list) else []
        return [each["v"][0] for each in sent if isinstance(each, dict) and each.get(_TAG) == _SEND]

    # Values

    def shown(self, held: Sequence[tuple[str, Ref]]) -> list[Any]:
        """Values as plain data, by their channels and how they are held."""
        return self._values([self._raw(channel, ref) for channel, ref in held])

    def _raw(self, channel: str, ref: Ref) -> Any:
        """A value as it is stored: plain data with tags, of which some say where a message is."""
        way, held = ref
        if way == INLINE:
            return held
        if way == KEPT:
            return self._blob(held)
        if way == ENTRIES:
            return [
                _tagged(ElementRef(stream, at), *id)
                for stream, first, last, *id in held
                for at in range(first, last + 1)
            ]
        if way == LIST:
            return self._elements(channel, held)
        if way == PAIRS:
            return {_TAG: "dict", "v": self._elements(channel, held)}
        raise Unsupported(f"a value is stored as {way!r}, which this version does not know: upgrade holdfast")

    def _blob(self, id: str) -> Any:
        record = self._view.get(self._tenant, BLOB, id)
        if record is None:
            raise Corrupt(f"{_where(self._record)}: a value that a frame holds is gone", blob=id)
        return frames.unpacked(record)

    def _elements(self, channel: str, position: int) -> list[Any]:
        record = self._view.get(self._tenant, SEGMENT, frames.segment_id(self._record.id, channel))
        if record is None or record.head < position:
            raise Corrupt(f"{_where(self._record)}: a list that {channel!r} holds is gone", channel=channel)
        stream = record.mark.stream
        places, _ = segments.places_at(self._view, self._tenant, stream, position)
        own = [place for place in places if not place.stream]
        bodies = iter(segments.bodies_at(self._view, self._tenant, stream, own))
        return [_tagged(place) if place.stream else decode(next(bodies)) for place in places]

    def _values(self, raw: Sequence[Any]) -> list[Any]:
        """Readable values: the entries that they name are read together, and then everything is put in its place."""
        places = {ElementRef(stream or self._home, at) for each in raw for stream, at in _entries_in(each)}
        missing = sorted(places - self._entries.keys())
        bodies = segments.bodies_at(self._view, self._tenant, 0, missing)
        self._entries |= {place: decode(body) for place, body in zip(missing, bodies, strict=True)}
        return [self._readable(each) for each in raw]

    def _readable(self, raw: Any) -> Any:
        if type(raw) is list:
            return [self._readable(item) for item in raw]
        if type(raw) is not dict:
            return raw
        name = raw.get(_TAG)
        if name is None:
            return {key: self._readable(item) for key, item in raw.items()}
        held = raw["v"]
        if name == _ENTRY:
            stream, position, *id = held
            content = self._readable(self._entries[ElementRef(stream or self._home, position)])
            return {**content, "id": id[0]} if id else content
        if name == _MESSAGE:
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


def lone_turn(channels: Iterable[str]) -> bool:
    """Whether it is the turn of one node alone, by the channels that hold something.

    What follows its writes can only be the next frame. Where several may come together, it is not known.
    """
    names = [name for name in channels if name.startswith((_START, _ONTO, _JOIN, _SENT))]
    return len(names) == 1 and names[0].startswith((_START, _ONTO))


def held_in(frame: Frame) -> Iterator[str]:
    """The channels of a frame that hold something."""
    return (name for name, channel in frame.channels.items() if channel.ref is not None)


def _turns(frame: Frame) -> Iterator[str]:
    """The nodes whose turn it is, told by the channels that lead to them and hold something."""
    for name, channel in frame.channels.items():
        if channel.ref is None:
            continue
        if name == _START:
            yield name
        elif name.startswith(_ONTO):
            yield name.removeprefix(_ONTO)
        elif name.startswith(_JOIN) and channel.ref[0] == INLINE:
            starts, _, end = name.removeprefix(_JOIN).rpartition(":")
            come = channel.ref[1].get("v") if isinstance(channel.ref[1], dict) else None
            if isinstance(come, list) and len(come) == starts.count("+") + 1:
                yield end


def leads_on(channel: str) -> bool:
    """Whether a channel only says whose turn it is, or is the framework's own in another way."""
    return channel.startswith((_ONTO, _JOIN, "__"))


def _moment(told: Any, written: int) -> datetime:
    """When a frame was made, as its framework says, or else when it was written."""
    with suppress(TypeError, ValueError):
        found = datetime.fromisoformat(told)
        return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return to_datetime(written)


def _tagged(place: ElementRef, *id: str) -> dict[str, Any]:
    return {_TAG: _ENTRY, "v": [*place, *id]}


def _entries_in(raw: Any) -> Iterator[ElementRef]:
    """The places of all messages that a stored value names."""
    waiting = [raw]
    while waiting:
        each = waiting.pop()
        if type(each) is list:
            waiting += each
        elif type(each) is dict:
            if each.get(_TAG) == _ENTRY:
                yield ElementRef(*each["v"][:2])
            else:
                waiting += each.values()


def _pairs(held: list[Any]) -> Any:
    """A dict whose keys may be anything; where two of them would read alike, the pairs."""
    named = {key if isinstance(key, str) else msgspec.json.encode(key).decode(): value for key, value in held}
    return named if len(named) == len(held) else held


def _zoned(held: Any) -> str:
    return held if isinstance(held, str) else f"{held[0]}[{held[2]}]" if len(held) > 2 else str(held[0])


def _number(held: Sequence[str]) -> Any:
    """A number of numpy's, told by its kind and bytes; of a kind that Python has none of, as it is stored."""
    order, kind = held[0][0], _NUMBERS.get(held[0][1:])
    return list(held) if kind is None else struct.unpack(f"{order.replace('|', '<')}{kind}", b64decode(held[1]))[0]


def _same(held: Any) -> Any:
    return held


_NUMBERS = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f2": "e",
    "f4": "f", "f8": "d",
}  # fmt: skip
_READABLE: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("tuple", "set", "frozenset", "date", "decimal", "uuid"), _same),
    **dict.fromkeys(("path", "posix path", "windows path"), _same),
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


# Checking


def problems(view: View, tenant: str) -> Iterator[Problem]:
    """What cannot be read in the graphs of a tenant: frames, lists with missing elements, missing blobs."""
    for record in scan_all(view, tenant, Query(GRAPH)):
        where = _where(record)
        for position, what in _Checking(view, tenant, record).found():
            yield Problem(where, what, tenant, GRAPH, record.id, position)


class _GraphPart(NamedTuple):
    """Something that a value consists of, and the first that needs it: the frame's position, and the channel."""

    frame: int
    channel: str


class _Checking:
    """One graph, checked part by part: what a hundred frames share is checked once."""

    def __init__(self, view: View, tenant: str, record: Record) -> None:
        self._view, self._tenant, self._record = view, tenant, record
        self._ranges: dict[tuple[int, int, int], _GraphPart] = {}
        self._lists: dict[str, tuple[int, int]] = {}
        self._blobs: dict[str, _GraphPart] = {}
        self._home = 0

    def found(self) -> Iterator[tuple[int, str]]:
        try:
            with _sound("its description"):
                self._home = frames.home_of(self._record)
        except HoldfastError as error:
            yield 0, str(error)
            return
        yield from self._wrong_frames()
        for channel, (position, frame) in self._lists.items():
            yield from self._wrong_list(channel, position, frame)
        yield from self._wrong_blobs()
        yield from self._missing_entries()

    def _wrong_frames(self) -> Iterator[tuple[int, str]]:
        history, before = frames.History(), None
        for event in self._events(self._record.mark):
            try:
                with _sound(f"event {event.position}"):
                    history.add(event)
                    before = self._note_event(history, event, before)
            except HoldfastError as error:
                yield event.position, str(error)

    def _note_event(self, history: frames.History, event: Event, before: Frame | None) -> Frame | None:
        """Note what a frame, or what tasks wrote, needs; what it has as the frame before is noted already."""
        if not frames.is_frame(event):
            self._note_writes(event.position, frames.to_writes(event)[1])
            return before
        frame = history.frame(event.position)
        self._note_writes(event.position, [*frames.carried(event), *frame.early])
        known = {} if before is None else before.channels
        for name, channel in frame.channels.items():
            if channel.ref is not None and known.get(name) is not channel:
                self._note(_GraphPart(event.position, name), channel.ref)
        for name, held in frame.more.items():
            self._note(_GraphPart(event.position, name), (held[0], held[1]))
        return frame

    def _note_writes(self, position: int, writes: Iterable[TaskWrite]) -> None:
        for write in writes:
            self._note(_GraphPart(position, write.channel), write.ref)

    def _note(self, part: _GraphPart, ref: Ref) -> None:
        way, held = ref
        if way == INLINE:
            self._note_raw(part, held)
        elif way == KEPT:
            self._blobs.setdefault(held, part)
        elif way == ENTRIES:
            for stream, first, last, *_ in held:
                self._note_range(part, stream, first, last)
        elif way in (LIST, PAIRS):
            self._lists[part.channel] = max(self._lists.get(part.channel, (0, 0)), (held, part.frame))
        else:
            raise Unsupported(f"a value is stored as {way!r}, which this version does not know: upgrade holdfast")

    def _note_raw(self, part: _GraphPart, raw: Any) -> None:
        for stream, position in _entries_in(raw):
            self._note_range(part, stream, position, position)

    def _note_range(self, part: _GraphPart, stream: int, first: int, last: int) -> None:
        if {type(stream), type(first), type(last)} != {int} or not 0 < first <= last:
            raise Corrupt(f"it names entries {first!r} to {last!r} of stream {stream!r}, which do not exist")
        self._ranges.setdefault((stream or self._home, first, last), part)

    def _wrong_list(self, channel: str, position: int, frame: int) -> Iterator[tuple[int, str]]:
        """A list is read whole if each of its events is, and names nothing but elements."""
        record = self._view.get(self._tenant, SEGMENT, frames.segment_id(self._record.id, channel))
        if record is None or record.head < position:
            yield frame, f"the list {channel!r} is {'gone' if record is None else 'shorter than a frame says'}"
            return
        notes: list[int] = []  # the positions of what is not an element
        for event in self._events(Mark(record.mark.stream, position)):
            try:
                with _sound(f"event {event.position}"):
                    if event.kind == _ELEMENT:
                        self._note_raw(_GraphPart(frame, channel), decode(event.body))
                        continue
                    self._note_places(_GraphPart(frame, channel), event, notes)
            except HoldfastError as error:
                yield frame, f"the list {channel!r}: {error}"
            notes.append(event.position)

    def _note_places(self, part: _GraphPart, event: Event, notes: Sequence[int]) -> None:
        for stream, first, last in decode(event.body):
            if stream:
                self._note_range(part, stream, first, last)
            elif not 0 < first <= last < event.position or _within(notes, first, last) is not None:
                raise Corrupt(f"event {event.position} names elements {first} to {last}, which do not exist")

    def _wrong_blobs(self) -> Iterator[tuple[int, str]]:
        ids = list(self._blobs)
        for begin in range(0, len(ids), _PAGE):
            page = ids[begin : begin + _PAGE]
            there = fetch(self._view, self._tenant, BLOB, page)
            for id in page:
                part = self._blobs[id]
                if id not in there:
                    yield part.frame, f"a value of {part.channel!r} is gone: there is no blob {id!r}"
                    continue
                try:
                    with _sound(f"blob {id!r}"):
                        self._note_raw(part, frames.unpacked(there[id]))
                except HoldfastError as error:
                    yield part.frame, f"a value of {part.channel!r}: {error}"

    def _missing_entries(self) -> Iterator[tuple[int, str]]:
        """Entries that values name and that are missing, the first one of each log and channel."""
        upto: dict[int, int] = {}
        for stream, _, last in self._ranges:
            upto[stream] = max(last, upto.get(stream, 0))
        there = {stream: self._there(Mark(stream, last)) for stream, last in upto.items()}
        told = set()
        for (stream, first, last), part in self._ranges.items():
            gaps, end = there[stream]
            at = _within(gaps, first, last) or (max(first, end + 1) if last > end else None)
            if at is not None and (stream, part.channel) not in told:
                told.add((stream, part.channel))
                yield part.frame, f"a message in {part.channel!r} is gone: there is no entry {at} of stream {stream}"

    def _there(self, mark: Mark) -> tuple[Sequence[int], int]:
        """What a stream lacks, and where it ends."""
        there = {event.position for event in self._events(mark)}
        end = max(there, default=0)
        return sorted(set(range(1, end + 1)) - there), end

    def _events(self, mark: Mark) -> Iterator[Event]:
        after = 0
        while page := self._view.read(self._tenant, mark, after=after, limit=_PAGE):
            yield from page
            after = page[-1].position


def _within(positions: Sequence[int], first: int, last: int) -> int | None:
    """The first of some positions, in order, that lies in a range."""
    at = bisect_left(positions, first)
    return positions[at] if at < len(positions) and positions[at] <= last else None
