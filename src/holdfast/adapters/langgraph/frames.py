"""How a graph is stored: one stream of frames and of what tasks wrote between them, and one of items.

LangGraph saves the values of all channels after every step. Here such a checkpoint is a **frame**: an event that holds
what differs from the frame before it in the stream, and now and then everything ("full"), so that any frame is read
from a short stretch. A frame is found by its key, which is its id. What a task wrote follows the frame that it was
written on top of; where that frame is not the last one, because it is older or not saved yet, the write is found by a
key that names it.

A value is stored in one of four ways:

    ["v", value]          in the frame itself
    ["i", position]       as an item, which is an event of the graph's second stream: what is large
    ["l", range, …]       a list, as ranges of items and of entries of the thread's log: [stream, first, last]
    ["d", range, …]       a dict, as ranges of items, each of them a pair

Deliberately absent: LangGraph, so that the command reads graphs without it, and what a value means (``values``).
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.errors import Corrupt, Invalid, Unsupported
from holdfast.extension import (
    MSGPACK,
    Event,
    Mark,
    Query,
    Record,
    View,
    decode,
    encode,
    scan_all,
    to_datetime,
    to_micros,
)

GRAPH, ITEMS = "graph", "graph items"
TAG = "$"
"""The key of a dict that stands for another value, which is under "v"."""
ENTRY, MESSAGE, PART, SEALED = "entry", "message", "item", "sealed"
"""Tags: a message that is in the log, one that is not, a part of a value that is an item, an encrypted value."""
ONTO, JOIN = "branch:to:", "join:"
"""What LangGraph calls the channels that lead to one node, and to one from several."""
INLINE, ITEM, LIST, DICT = "v", "i", "l", "d"
HOME, OWN = 0, -1
"""Stand for streams in a range: the thread's log as it was when the graph began, and the graph's own items."""
_FULL, _STEP, _WRITES, _ITEM = "full", "step", "writes", "item"
_STRAY = "~"  # no key of a frame begins with it
_FORMAT = 2
_PAGE = 64
_LEAST_STRETCH = 4_096  # bytes of differences after which everything is stored again, or later if that is larger
_PACKED = 256  # bytes of an item from which on it is compressed
_GREGORIAN = 0x01B21DD213814000  # a uuid counts from 1582

Ref = list[Any]
"""How a value is stored, as above."""


class Frame(NamedTuple):
    """One checkpoint as it is stored: ``body`` has all of it but the id, and is never changed.

    ``stretch`` is how many bytes of differences there are since the last full frame, ``full`` how many that one has.
    """

    id: str
    position: int
    body: dict[str, Any]
    stretch: int
    full: int

    @property
    def parent(self) -> str | None:
        return self.body["parent"]

    @property
    def metadata(self) -> dict[str, Any]:
        return self.body["metadata"]

    @property
    def versions(self) -> dict[str, Any]:
        return self.body["versions"]

    @property
    def values(self) -> dict[str, Ref]:
        """How the channels that hold something are stored."""
        return self.body["values"]

    @property
    def schema(self) -> int:
        return self.body.get("schema", 0)


class TaskWrite(NamedTuple):
    """One thing that a task wrote: which task, its path, the number of the write, its channel, and the value."""

    task: str
    path: str
    number: int
    channel: str
    ref: Ref


# Names


def graph_id(thread: str, namespace: str) -> str:
    """The id of a graph, and of its items."""
    return hidden(thread, namespace)


def hidden(*names: str) -> str:
    """A short name made of others. The feed keeps names, so they do not say whose they are."""
    return _short(blake2b(encode(names), digest_size=12).digest())


def to_key(id: str) -> str:
    """An id as a key: a uuid in its shortest form, any other as it is, told apart by what it begins with."""
    try:
        number = UUID(id)
    except ValueError:
        return f"={id}"
    return _short(number.bytes) if str(number) == id else f"={id}"


def _from_key(key: str) -> str:
    return key[1:] if key.startswith("=") else str(UUID(bytes=urlsafe_b64decode(f"{key}==")))


def _short(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def made_at(id: str) -> int | None:
    """When something was made, from its id: microseconds since 1970, or None if the id does not say."""
    try:
        number = UUID(id)
    except ValueError:
        return None
    if number.version != 6:
        return None
    ticks = (number.int >> 80) << 12 | (number.int >> 64 & 0x0FFF)
    return (ticks - _GREGORIAN) // 10


def graph_body(namespace: str, home: int | None) -> bytes:
    return encode({"namespace": namespace, "log": home, "format": _FORMAT})


def graphs_in(view: View, tenant: str, thread: str | None) -> Iterator[Record]:
    """The graphs of a thread, or of all, latest activity first."""
    return scan_all(view, tenant, Query(GRAPH, thread=thread))


def namespace_of(record: Record) -> str:
    return str(_described(record)["namespace"])


def home_of(view: View, tenant: str, record: Record) -> int:
    """The stream that ``HOME`` stands for. In a copied thread it is the one that the copy began with."""
    home = _described(record)["log"]
    if home is not None:
        return int(home)
    thread = view.get(tenant, "thread", record.scope.thread or "")
    stream = 0 if thread is None else thread.mark.stream
    while strand := view.strand(tenant, stream):
        older = None if strand.parent is None else view.strand(tenant, strand.parent)
        if older is None or older.id != record.scope.thread:
            break
        stream = older.stream
    return stream


def _described(record: Record) -> dict[str, Any]:
    body: dict[str, Any] = decode(record.body)
    if body["format"] > _FORMAT:
        raise Unsupported(
            f"the graph of thread {record.scope.thread!r} is in format {body['format']}, newer than this version of "
            "holdfast knows: upgrade holdfast"
        )
    return body


# Frames as events


def frame_event(id: str, body: dict[str, Any], before: Frame | None, time: int) -> tuple[Event, Frame]:
    """The event of a frame that follows ``before`` in the stream, and the frame itself, still without a position."""
    brief = body | {"time": _since_id(id, body["time"])}
    if before is not None:
        told = difference(before.body, brief)
        told[0].pop("parent", None)
        if body["parent"] != before.id:  # mostly it is the frame before
            told[0]["parent"] = body["parent"]
        changed = encode(told, "a checkpoint")
        stretch = before.stretch + len(changed)
        if stretch <= max(before.full, _LEAST_STRETCH):
            return Event(_STEP, changed, time, to_key(id)), Frame(id, 0, body, stretch, before.full)
    whole = encode(brief, "a checkpoint")
    return Event(_FULL, whole, time, to_key(id)), Frame(id, 0, body, 0, len(whole))


def _is_frame(event: Event) -> bool:
    if event.kind not in (_FULL, _STEP, _WRITES):
        raise Unsupported(f"a graph holds an event of kind {event.kind!r}, which this version does not know: upgrade")
    return event.kind != _WRITES


def _folded(event: Event, before: Frame | None) -> Frame:
    """The frame that an event holds. ``before`` is the one before it, which a difference needs."""
    id, held = _from_key(event.key or ""), decode(event.body)
    if event.kind == _FULL:
        return Frame(id, event.position, held | {"time": _as_text(id, held["time"])}, 0, len(event.body))
    if before is None:
        raise Corrupt(f"the frame at position {event.position} is a difference from one that is missing")
    body = {**changed(before.body, held), "parent": held[0].get("parent", before.id)}
    body["time"] = _as_text(id, body["time"])
    return Frame(id, event.position, body, before.stretch + len(event.body), before.full)


def _since_id(id: str, time: Any) -> Any:
    """A time as microseconds since the id was made, which is a moment before; any other as it is."""
    made = made_at(id)
    if made is not None and isinstance(time, str):
        with suppress(ValueError, Invalid):
            since = to_micros(datetime.fromisoformat(time)) - made
            if _as_text(id, since) == time:
                return since
    return time


def _as_text(id: str, time: Any) -> Any:
    return to_datetime((made_at(id) or 0) + time).isoformat() if type(time) is int else time


def difference(old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    """What makes ``new`` of ``old``: what to put, what to cut, and what to change inside. Lists that grow are kept."""
    put: dict[str, Any] = {}
    into: dict[str, Any] = {}
    for name, value in new.items():
        before = old.get(name)
        if name in old and (before is value or (before == value and repr(before) == repr(value))):
            continue  # by their words too: to Python 1, 1.0 and True are equal
        if type(value) is dict and type(before) is dict and before:
            into[name] = difference(before, value)
        elif type(value) is list and type(before) is list and (kept := _kept(before, value)) > len(value) // 2:
            into[name] = [kept, *value[kept:]]
        else:
            put[name] = value
    cut = [name for name in old if name not in new]
    return [put, cut, into] if into else [put, cut] if cut else [put]


def _kept(old: list[Any], new: list[Any]) -> int:
    """How many elements two lists begin with alike."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if repr(one) != repr(other)), min(len(old), len(new)))


def changed(old: dict[str, Any], difference: list[Any]) -> dict[str, Any]:
    """What a difference makes of something; what it was stays as it is."""
    put, cut, into = difference + [[], {}][len(difference) - 1 :]
    new = {name: value for name, value in old.items() if name not in cut} | put
    for name, inner in into.items():
        before = new[name]
        new[name] = changed(before, inner) if type(before) is dict else [*before[: inner[0]], *inner[1:]]
    return new


# What tasks wrote, as events


def writes_event(writes: Sequence[TaskWrite], time: int, key: str | None = None) -> Event:
    """The event of what one task wrote, on top of the last frame or of the one that ``key`` names."""
    task, path = writes[0][:2]
    body = [to_key(task), path, [[write.number, write.channel, *write.ref] for write in writes]]
    return Event(_WRITES, encode(body, "what a task wrote"), time, key)


def stray_key(id: str, number: int) -> str:
    """The key of what is written on top of a frame that is not the last one."""
    return f"{_STRAY}{number}{_STRAY}{to_key(id)}"


def stray_of(event: Event) -> str | None:
    """The id of the frame that a stray write belongs to; None for one in its place."""
    return None if event.key is None else _from_key(event.key.split(_STRAY, 2)[2])


def to_writes(event: Event) -> list[TaskWrite]:
    key, path, writes = decode(event.body)
    task = _from_key(key)
    return [TaskWrite(task, path, number, channel, ref) for number, channel, *ref in writes]


def merged(events: Iterable[Event]) -> list[TaskWrite]:
    """What tasks wrote, each once, in the order of application: of errors and resumes the last counts, else the
    first."""
    held: dict[tuple[str, int], TaskWrite] = {}
    for event in sorted(events, key=lambda event: event.position):
        for write in to_writes(event):
            if write.number < 0 or (write.task, write.number) not in held:
                held[write.task, write.number] = write
    return sorted(held.values(), key=lambda write: (write.path, write.task, write.number))


# Reading


class FrameStretch(NamedTuple):
    """A part of a graph that is read by itself: its frames, what was written on top of each, stray writes, and where it
    begins."""

    frames: list[Frame]
    writes: list[list[Event]]
    strays: list[Event]
    first: int


class GraphStream(NamedTuple):
    """The stream of a graph, up to a mark."""

    view: View
    tenant: str
    mark: Mark

    def stretch(self, upto: int) -> FrameStretch:
        """The frames from the last full one up to a position."""
        events: list[Event] = []
        while upto > 0 and (
            page := self.view.read(self.tenant, Mark(self.mark.stream, upto), limit=_PAGE, newest=True)
        ):
            full = next((at for at in range(len(page) - 1, -1, -1) if page[at].kind == _FULL), None)
            events = [*page[full or 0 :], *events]
            upto = 0 if full is not None else events[0].position - 1
        found = FrameStretch([], [], [], events[0].position if events else 1)
        for event in events:
            if _is_frame(event):
                found.frames.append(_folded(event, found.frames[-1] if found.frames else None))
                found.writes.append([])
            elif event.key is not None:
                found.strays.append(event)
            elif found.frames:
                found.writes[-1].append(event)
        return found

    def newest(self) -> Frame | None:
        return next(self.frames(), None)

    def frames(self) -> Iterator[Frame]:
        """Every frame, the newest first, read stretch by stretch."""
        return (frame for frame, _ in self.with_writes(self.mark.position))

    def with_writes(self, upto: int) -> Iterator[tuple[Frame, list[Event]]]:
        """Every frame up to a position, the newest first, and what was written on top of it while it was the last."""
        for stretch in self.stretches(upto):
            yield from zip(reversed(stretch.frames), reversed(stretch.writes), strict=True)

    def stretches(self, upto: int) -> Iterator[FrameStretch]:
        """All there is up to a position, the newest first."""
        while upto > 0:
            stretch = self.stretch(upto)
            upto = stretch.first - 1
            yield stretch

    def find(self, id: str) -> Frame | None:
        events = self.view.read(self.tenant, self.mark, key=to_key(id))
        found = self.stretch(events[0].position).frames if events else []
        return found[-1] if found else None  # it may be written anew between the two

    def writes(self, frame: Frame) -> list[TaskWrite]:
        """What tasks wrote on top of a frame."""
        return merged([*self._after(frame.position), *self.strays(frame.id)])

    def _after(self, position: int) -> Iterator[Event]:
        size = 8  # most frames have one or two
        while position < self.mark.position:
            page = self.view.read(self.tenant, self.mark, after=position, limit=size)
            for event in page:
                if _is_frame(event):
                    return
                if event.key is None:
                    yield event
            if len(page) < size:
                return
            position, size = page[-1].position, _PAGE

    def strays(self, id: str) -> Iterator[Event]:
        """What was written on top of a frame when it was not the last one."""
        number = 1
        while found := self.view.read(self.tenant, self.mark, key=stray_key(id, number)):
            yield found[0]
            number += 1

    def ancestors(self, frame: Frame) -> Iterator[tuple[Frame, list[TaskWrite]]]:
        """The frames that one came from, the nearest first, each with what tasks wrote on top of it."""
        wanted = frame.parent
        for each, events in () if wanted is None else self.with_writes(frame.position - 1):
            if each.id == wanted:
                yield each, merged([*events, *self.strays(each.id)])
                wanted = each.parent
                if wanted is None:
                    return


# Items, and ranges of them


def item_event(body: bytes, time: int) -> Event:
    """An item: an encoded value, compressed if that is worth it."""
    packed = MSGPACK + msgspec.msgpack.encode(zlib.compress(body)) if len(body) > _PACKED else body
    return Event(_ITEM, min(body, packed, key=len), time)


def item_body(body: bytes) -> bytes:
    """The encoded value that an item holds."""
    if not body.startswith(MSGPACK):
        return body
    try:
        return zlib.decompress(decode(body))
    except zlib.error as error:
        raise Corrupt(f"a stored value cannot be unpacked: {error}") from error


Place = tuple[int, int]
"""Where an element of a list is: a stream, or ``OWN``, and a position of it."""


def to_ranges(places: Iterable[Place]) -> list[list[int]]:
    """Places as ranges: stream, first and last."""
    ranges: list[list[int]] = []
    for stream, position in places:
        if ranges and ranges[-1][0] == stream and ranges[-1][2] == position - 1:
            ranges[-1][2] = position
        else:
            ranges.append([stream, position, position])
    return ranges


def to_places(ranges: Iterable[Sequence[int]]) -> list[Place]:
    return [(stream, position) for stream, first, last in ranges for position in range(first, last + 1)]


def bodies_at(view: View, tenant: str, places: Iterable[Place]) -> dict[Place, bytes]:
    """What is at some places of streams: read by ranges, or by one range where they lie close together."""
    wanted: dict[int, set[int]] = {}
    for stream, position in places:
        wanted.setdefault(stream, set()).add(position)
    found: dict[Place, bytes] = {}
    for stream, positions in wanted.items():
        for first, last in _spans(sorted(positions)):
            for event in view.read(tenant, Mark(stream, last), after=first - 1):
                found[stream, event.position] = event.body
        if missing := positions - {at for each, at in found if each == stream}:
            raise Corrupt(f"a value names event {min(missing)} of stream {stream}, which does not exist")
    return found


def _spans(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges to read for some positions: reading a small gap costs less than another query."""
    spans: list[tuple[int, int]] = []
    for position in positions:
        if spans and position - spans[-1][1] <= _PAGE:
            spans[-1] = (spans[-1][0], position)
        else:
            spans.append((position, position))
    return spans
