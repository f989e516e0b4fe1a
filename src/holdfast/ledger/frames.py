"""The frames of a graph: what a framework saves after each of its steps, as small differences in one stream.

A framework that runs graphs saves the values of all its channels after every step. Here such a save is a **frame**: an
event of the graph's stream that holds what changed since the frame it came from, and now and then everything, so that
any frame is read from a short stretch. A value is stored in one of five ways: in the frame itself, as ranges of entries
of the thread's log, as a version of a list (``segments``), as a version of a list of pairs, or as a blob that is named
by its content. What the tasks of a step wrote before the next frame are **writes**: events after the frame they belong
to, or part of the frame that follows it, or of that frame itself if they came before it was saved.

There are several frames and writes for each message of a conversation, so their size matters: names are short, and
what follows from the previous frame is left out.

Deliberately absent: any framework. The adapter knows what values mean, and how they become plain data.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.codec import MSGPACK, decode, encode
from holdfast.engine.contract import Event, Mark, Record, View
from holdfast.errors import Corrupt, HoldfastError, Unsupported

GRAPH = "graph"
BLOB = "blob"
_FRAME, _WRITES = "frame", "writes"
_STRETCH = 48  # a difference is stored only while everything it needs lies within this many events
_PAGE = 64
_FORMAT = 1
_ZLIB = b"z1"
_GREGORIAN = 0x01B21DD213814000  # a uuid counts from 1582
_SOURCES = {"i": "input", "l": "loop", "u": "update", "f": "fork"}
_NO_SOURCE = "-"
_MARKS = {"^": "~__pregel_pull, ", ">": "branch:to:", "-": "__no_writes__"}
"""What nearly all paths of tasks, and many channels that tasks write to, begin with, by what is stored for it."""
_ITSELF = "="
_LETTERS = {source: letter for letter, source in _SOURCES.items()}

INLINE, ENTRIES, LIST, PAIRS, KEPT = "v", "l", "s", "d", "b"
_MORE, _NULL = "+", 0
_PLAIN = 3  # parts of a range without an id
_CARRIED, _EARLY = "w", "h"
_NONE = (INLINE, None)  # what every step writes to say which node comes next
HOME = 0
"""Stands for the stream that was the thread's log when the graph began, in the places of entries."""

Ref = tuple[str, Any]
"""How a value is stored: one of the five ways, and the value, the ranges, the position, or the blob's name."""


class Channel(NamedTuple):
    """A channel in a frame: its version in the framework's terms, and its value, or None."""

    version: Any
    ref: Ref | None


class Frame(NamedTuple):
    """One save. ``full`` is the position of the last frame before it that holds everything, or its own.

    It ``strays`` when its id is not greater than those of all frames before it. ``early`` is what tasks had written on
    top of it by the time it was saved.
    """

    id: str
    position: int
    full: int
    parent: str | None
    time: Any
    metadata: dict[str, Any]
    channels: dict[str, Channel]
    seen: dict[str, dict[str, Any]]
    updated: list[str] | None
    more: dict[str, Any]
    schema: int = 0
    strays: bool = False
    early: tuple[TaskWrite, ...] = ()


class TaskWrite(NamedTuple):
    """One thing that a task wrote: which task, its path, the number of the write, its channel, and the value."""

    task: str
    path: str
    number: int
    channel: str
    ref: Ref


def graph_id(thread: str, namespace: str) -> str:
    return hidden(thread, namespace)


def segment_id(graph: str, channel: str) -> str:
    return hidden(graph, channel)


def blob_id(graph: str, body: bytes) -> str:
    """A blob belongs to one graph, so that pruning the graph may remove it: nothing else needs it."""
    return f"{graph}/{blake2b(body, digest_size=16).hexdigest()}"


def packed(body: bytes) -> bytes:
    """The body of a blob that holds an encoded value."""
    return MSGPACK + msgspec.msgpack.encode(_ZLIB + zlib.compress(body))


def unpacked(record: Record) -> Any:
    """The value that a blob holds, as plain data."""
    held: bytes = decode(record.body)
    if held[: len(_ZLIB)] != _ZLIB:
        raise Unsupported(f"a large value is packed as {held[:2]!r}, which this version does not know: upgrade")
    try:
        return decode(zlib.decompress(held[len(_ZLIB) :]))
    except zlib.error as error:
        raise Corrupt(f"blob {record.id!r} cannot be unpacked: {error}") from error


def hidden(*names: str) -> str:
    """A short name made of others. The feed keeps names, so they do not say whose they are."""
    return _short(blake2b(encode(names), digest_size=12).digest())


def graph_body(namespace: str, home: int) -> bytes:
    return encode({"namespace": namespace, "log": home, "format": _FORMAT})


def namespace_of(record: Record) -> str:
    return str(_described(record)["namespace"])


def home_of(record: Record) -> int:
    """The stream that was the thread's log when a graph began."""
    return int(_described(record)["log"])


def _described(record: Record) -> dict[str, Any]:
    body: dict[str, Any] = decode(record.body)
    if body["format"] > _FORMAT:
        raise Unsupported(
            f"the graph of thread {record.scope.thread!r} is in format {body['format']}, newer than this version of "
            "holdfast knows: upgrade holdfast"
        )
    return body


def to_key(id: str) -> str:
    """An id as a key: a uuid in its shortest form, any other as it is, told apart by what it begins with."""
    try:
        number = UUID(id)
    except ValueError:
        return f"={id}"
    return _short(number.bytes) if str(number) == id else f"={id}"


def from_key(key: str) -> str:
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


# A frame as an event


def frame_event(frame: Frame, base: Frame | None, time: int, written: Sequence[TaskWrites] = ()) -> tuple[Event, int]:
    """The event of a frame, as the difference from ``base`` where that is near, and the position of its full one.

    ``written`` is what tasks wrote on top of the frame before, where it was not saved by itself.
    """
    if base is not None and frame.position - base.full > _STRETCH:
        base = None
    origin = _NOTHING if base is None else base
    names, nodes = sorted(origin.channels), sorted(origin.seen)
    changed = _changed(origin.channels, frame.channels)
    body: list[Any] = [
        to_key(frame.id),
        _parent(frame) if base is None else frame.position - base.position,
        0 if base is None else frame.position - base.full,
        _moment(frame),
        _source(frame.metadata),
        [[_number(name, names), *held] for name, held in changed.items()],
        [_number(node, nodes) if held == 0 else [node, held] for node, held in _seen(origin, frame).items()],
    ]
    rest = _rest_of(frame, base, changed)
    if written:
        rest[_CARRIED] = [_written_body(each) for each in written]
    if frame.early:
        rest[_EARLY] = [_written_body(each) for each in by_task(frame.early)]
    key = to_key(frame.id) if frame.strays else None
    event = Event(_FRAME, encode([*body, rest] if rest else body, "a frame"), time, key)
    return event, frame.position if base is None else base.full


def _parent(frame: Frame) -> str | None:
    return None if frame.parent is None else to_key(frame.parent)


def _number(name: str, names: Sequence[str]) -> int | str:
    """A name by its number among those of the frame before: it is the same few names all the time."""
    return names.index(name) if name in names else name


def _rest_of(frame: Frame, base: Frame | None, changed: dict[str, list[Any]]) -> dict[str, Any]:
    """What usually has its expected value, if it does not."""
    origin = _NOTHING if base is None else base
    rest: dict[str, Any] = {
        "x": [name for name in origin.channels if name not in frame.channels],
        "y": [node for node in origin.seen if node not in frame.seen],
    }
    if base is not None and frame.parent != base.id:
        rest["i"] = [_parent(frame)]
    for letter, name, usual in (("n", "step", _next(origin)), ("q", "parents", {})):
        if name not in frame.metadata:
            rest[letter] = None if usual is not None else []
        elif usual is None or not _alike(frame.metadata[name], usual):
            rest[letter] = [frame.metadata[name]]
    if not _alike(_others(frame.metadata), _others(origin.metadata)):
        rest["m"] = _others(frame.metadata)
    if frame.updated != _updated(changed):
        rest["u"] = [frame.updated]
    if not _alike(frame.more, origin.more):
        rest["e"] = [frame.more]
    if frame.schema != origin.schema:
        rest["g"] = frame.schema
    return {name: value for name, value in rest.items() if value != []}


def to_frame(event: Event, base: Frame | None) -> Frame:
    """A frame from its event, and the frame that it is a difference from."""
    body = decode(event.body)
    key, came, full, moment, source, held_channels, held_seen = body[:7]
    rest = body[7] if len(body) > 7 else {}
    origin = _NOTHING if base is None else base
    names, nodes, id = sorted(origin.channels), sorted(origin.seen), from_key(key)
    changed = {_name(held[0], names): held[1:] for held in held_channels}
    gone, unseen = rest.get("x", ()), rest.get("y", ())
    channels = {name: held for name, held in origin.channels.items() if name not in gone}
    channels |= {name: _channel(held, origin.channels.get(name)) for name, held in changed.items()}
    seen = {node: held for node, held in origin.seen.items() if node not in unseen}
    seen |= dict(_looked(held, nodes, origin) for held in held_seen)
    return Frame(
        id=id,
        position=event.position,
        full=event.position - full,
        parent=_came_from(came, base, rest),
        time=_iso(id, moment),
        metadata=_metadata(origin, source, rest),
        channels=channels,
        seen=seen,
        updated=rest["u"][0] if "u" in rest else _updated(changed),
        more=rest["e"][0] if "e" in rest else origin.more,
        schema=rest.get("g", origin.schema),
        strays=event.key is not None,
        early=tuple(_listed_writes(rest, _EARLY)),
    )


def _name(held: int | str, names: Sequence[str]) -> str:
    return names[held] if isinstance(held, int) else held


def _looked(held: Any, nodes: Sequence[str], origin: Frame) -> tuple[str, dict[str, Any]]:
    if isinstance(held, list):
        return held[0], held[1]
    node = _name(held, nodes)
    return node, _versions(origin, node)


def _came_from(came: Any, base: Frame | None, rest: dict[str, Any]) -> str | None:
    if base is not None and "i" not in rest:
        return base.id
    key = rest["i"][0] if "i" in rest else came
    return None if key is None else from_key(key)


_NOTHING = Frame("", 0, 0, None, "", {}, {}, {}, None, {})


def _changed(old: dict[str, Channel], new: dict[str, Channel]) -> dict[str, list[Any]]:
    return {name: _held(channel, old.get(name)) for name, channel in new.items() if not _alike(old.get(name), channel)}


def _alike(old: Any, new: Any) -> bool:
    """Whether two values are the same in every respect: Python considers 1, 1.0 and True equal, we do not."""
    return old is new or (old == new and repr(old) == repr(new))


def _held(channel: Channel, before: Channel | None) -> list[Any]:
    """A channel as it is stored: of ranges that only grew, the growth, mostly of the last range alone."""
    if channel.ref is None:
        return [channel.version]
    if channel.ref == _NONE:
        return [channel.version, _NULL]
    way, held = channel.ref
    if way == ENTRIES and before is not None and before.ref is not None and before.ref[0] == ENTRIES:
        growth = _growth(before.ref[1], held)
        if growth is not None:
            longer = len(growth) == 1 and len(held) == len(before.ref[1])
            return [channel.version, _MORE, growth[0][2] - growth[0][1] + 1 if longer else growth]
    return [channel.version, way, held]


def _channel(held: list[Any], before: Channel | None) -> Channel:
    if len(held) == 1:
        return Channel(held[0], None)
    if held[1] == _NULL:
        return Channel(held[0], _NONE)
    version, way, value = held
    if way != _MORE:
        return Channel(version, (way, value))
    if before is None or before.ref is None:
        raise Corrupt("a frame continues a list that the previous frame does not have")
    ranges: Ranges = before.ref[1]
    if isinstance(value, int):
        stream, _, last = ranges[-1]
        value = [[stream, last + 1, last + value]]
    return Channel(version, (ENTRIES, continued(ranges, value)))


Ranges = list[list[Any]]
"""Entries of logs: the stream, the first and the last; of one that got its id later than it was said, also the id."""


def _growth(old: Ranges, new: Ranges) -> Ranges | None:
    """The ranges that were added to the end, or None when something else happened too."""
    if not old or not new or len(new) < len(old) or new[: len(old) - 1] != old[:-1]:
        return None
    last, now = old[-1], new[len(old) - 1]
    if now[:2] != last[:2] or now[2] < last[2] or now[3:] != last[3:]:
        return None
    rest = new[len(old) :]
    return rest if now[2] == last[2] else [[last[0], last[2] + 1, now[2]], *rest]


def named(ranges: Ranges) -> int:
    """How many entries are named one by one, with an id."""
    return sum(len(each) > _PLAIN for each in ranges)


def continued(old: Ranges, more: Ranges) -> Ranges:
    """Ranges with others added to their end: what follows directly on the last one makes that longer."""
    ranges = [list(each) for each in old]
    for stream, first, last, *id in more:
        if not id and ranges and len(ranges[-1]) == _PLAIN and ranges[-1][0] == stream and ranges[-1][2] == first - 1:
            ranges[-1][2] = last
        else:
            ranges.append([stream, first, last, *id])
    return ranges


def _seen(origin: Frame, frame: Frame) -> dict[str, Any]:
    """What each node has seen, where that changed: mostly the versions that the channels had before, which is a 0."""
    changed = {node: held for node, held in frame.seen.items() if not _alike(origin.seen.get(node), held)}
    usual = {node for node, held in changed.items() if node in origin.seen and _alike(held, _versions(origin, node))}
    return {node: 0 if node in usual else held for node, held in changed.items()}


def _versions(origin: Frame, node: str) -> dict[str, Any]:
    """The versions that the channels a node looks at have in a frame."""
    known = origin.seen.get(node, {})
    return {name: origin.channels[name].version if name in origin.channels else held for name, held in known.items()}


def _updated(changed: dict[str, list[Any]]) -> list[str] | None:
    """Which channels were updated, as it mostly is: those that changed and have a value."""
    return sorted(name for name, held in changed.items() if len(held) > 1)


def _metadata(origin: Frame, source: Any, rest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if source != _NO_SOURCE:
        found["source"] = source[0] if isinstance(source, list) else _SOURCES[source]
    for letter, name, usual in (("n", "step", _next(origin)), ("q", "parents", {})):
        held = rest.get(letter, None if usual is None else [usual])
        if held is not None:
            found[name] = held[0]
    return found | (rest["m"] if "m" in rest else _others(origin.metadata))


def _source(metadata: dict[str, Any]) -> Any:
    """The source by its first letter, where it is one that every graph has."""
    source = metadata.get("source")
    letter = _LETTERS.get(source) if isinstance(source, str) else None
    return letter or ([source] if "source" in metadata else _NO_SOURCE)


def _others(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in ("source", "step", "parents")}


def _next(origin: Frame) -> int | None:
    step = origin.metadata.get("step")
    return step + 1 if type(step) is int else None


def _moment(frame: Frame) -> Any:
    """When a frame was made: how many microseconds its time is from that of its id, or the time as it is."""
    made = made_at(frame.id)
    if made is None or not isinstance(frame.time, str):
        return frame.time
    try:
        away = to_micros(datetime.fromisoformat(frame.time)) - made
    except (ValueError, HoldfastError):
        return frame.time
    return away if _iso(frame.id, away) == frame.time else frame.time


def _iso(id: str, held: Any) -> Any:
    made = made_at(id)
    return to_datetime(made + held).isoformat() if type(held) is int and made is not None else held


def is_frame(event: Event) -> bool:
    if event.kind not in (_FRAME, _WRITES):
        raise Unsupported(f"a graph holds an event of kind {event.kind!r}, which this version does not know: upgrade")
    return event.kind == _FRAME


# Writes as an event


class TaskWrites(NamedTuple):
    """What one task wrote."""

    task: str
    path: str
    writes: Sequence[TaskWrite]


def _written_body(written: TaskWrites) -> list[Any]:
    held = [[each.number, _brief(each.channel), *(() if each.ref == _NONE else each.ref)] for each in written.writes]
    return [to_key(written.task), _brief(written.path), *held]


def _from_written(body: Sequence[Any]) -> list[TaskWrite]:
    key, brief, *held = body
    task, path = from_key(key), _spelled(brief)
    return [TaskWrite(task, path, number, _spelled(name), tuple(ref) if ref else _NONE) for number, name, *ref in held]


def _brief(name: str) -> str:
    """A name as it is stored, with a mark for what such names mostly begin with."""
    for mark, usual in _MARKS.items():
        if name.startswith(usual):
            return f"{mark}{name[len(usual) :]}"
    return f"{_ITSELF}{name}" if name[:1] in _MARKS or name.startswith(_ITSELF) else name


def _spelled(brief: str) -> str:
    mark = brief[:1]
    return _MARKS[mark] + brief[1:] if mark in _MARKS else brief[1:] if mark == _ITSELF else brief


def writes_event(frame: int, written: TaskWrites, time: int, key: str | None) -> Event:
    """The event of what one task wrote. ``key`` tells writes that came after a newer frame; by it they are found."""
    return Event(_WRITES, encode([frame, *_written_body(written)], "writes"), time, key)


def to_writes(event: Event) -> tuple[int, list[TaskWrite]]:
    """The position of the frame that writes belong to, and the writes."""
    frame, *body = decode(event.body)
    return frame, _from_written(body)


def carried(event: Event) -> list[TaskWrite]:
    """What a frame's event carries that was written on top of the frame before it."""
    return _listed_writes(_rest(event), _CARRIED)


def early(event: Event) -> list[TaskWrite]:
    """What a frame's event holds that was written on top of that very frame."""
    return _listed_writes(_rest(event), _EARLY)


def _rest(event: Event) -> dict[str, Any]:
    body = decode(event.body)
    return body[7] if len(body) > 7 else {}


def _listed_writes(rest: dict[str, Any], letter: str) -> list[TaskWrite]:
    return [write for each in rest.get(letter, ()) for write in _from_written(each)]


def by_task(writes: Iterable[TaskWrite]) -> list[TaskWrites]:
    """Writes together with the others of their task."""
    tasks: dict[tuple[str, str], list[TaskWrite]] = {}
    for write in writes:
        tasks.setdefault((write.task, write.path), []).append(write)
    return [TaskWrites(task, path, each) for (task, path), each in tasks.items()]


def late_key(frame: int, number: int) -> str:
    """The key of the writes that reached a frame when a newer one was there already."""
    return f"{frame}#{number}"


# Reading


def base_of(event: Event) -> int | None:
    """The position of the frame that a frame's event is a difference from; None for one that holds everything."""
    body = decode(event.body)
    return event.position - body[1] if body[2] else None


def full_of(event: Event) -> int:
    """The position of the last frame up to a frame's event that holds everything."""
    return event.position - int(decode(event.body)[2])


def frame_at(view: View, tenant: str, stream: int, event: Event) -> Frame:
    """The frame of an event, put together from the full one before it."""
    full = full_of(event)
    needed = {event.position: event}
    if full != event.position:
        between = view.read(tenant, Mark(stream, event.position), after=full - 1)
        needed |= {each.position: each for each in between if is_frame(each)}
    chain = [event.position]
    while (origin := base_of(needed[chain[-1]])) is not None:
        if origin not in needed:
            raise Corrupt(f"a frame at position {event.position} is a difference from one that is missing")
        chain.append(origin)
    frame = None
    for position in reversed(chain):
        frame = to_frame(needed[position], frame)
    assert frame is not None
    return frame


def id_of(event: Event) -> str:
    """The id of a frame, told from its event alone."""
    return from_key(decode(event.body)[0])


def found(view: View, tenant: str, mark: Mark, id: str) -> Event | None:
    """The event of the frame with an id.

    Ids grow with time, and so do positions: it is looked for by halves. A frame whose id is not greater than all before
    it strays, and is found by its key.
    """
    if stray := view.read(tenant, mark, key=to_key(id)):
        return stray[0]
    least, most = 1, mark.position
    while least <= most:
        middle = (least + most) // 2
        event = _at_or_before(view, tenant, Mark(mark.stream, middle), least)
        if event is None or id_of(event) < id:
            least = middle + 1
        elif id_of(event) == id:
            return event
        else:
            most = event.position - 1
    return None


def _at_or_before(view: View, tenant: str, mark: Mark, least: int) -> Event | None:
    """The last frame up to a mark, but not before a position, that does not stray."""
    upto, size = mark.position, 4
    while upto >= least:
        page = view.read(tenant, Mark(mark.stream, upto), limit=size, newest=True)
        for event in reversed(page):
            if event.position >= least and is_frame(event) and event.key is None:
                return event
        if not page:
            return None
        upto, size = page[0].position - 1, _PAGE
    return None


def newest(view: View, tenant: str, mark: Mark) -> Iterator[Event]:
    """The events of a graph's stream, the last first, page by page."""
    upto = mark.position
    while upto > 0:
        page = view.read(tenant, Mark(mark.stream, upto), limit=_PAGE, newest=True)
        if not page:
            return
        yield from reversed(page)
        upto = page[0].position - 1


class History:
    """A stretch of a graph's stream, in order: frames by position, and what was written on top of each."""

    def __init__(self) -> None:
        self._events: dict[int, Event] = {}
        self._made: dict[int, Frame] = {}
        self._writes: dict[int, dict[tuple[str, int], TaskWrite]] = {}
        self._newest: int | None = None

    def add(self, event: Event) -> None:
        if is_frame(event):
            if self._newest is not None:
                self._note(self._newest, carried(event))
            self._note(event.position, early(event))
            self._events[event.position] = event
            self._newest = event.position
        else:
            self._note(*to_writes(event))

    def _note(self, position: int, writes: Iterable[TaskWrite]) -> None:
        self._writes.setdefault(position, {}).update({(write.task, write.number): write for write in writes})

    def frame(self, position: int) -> Frame:
        """The frame at a position, made from the nearest one before it that is made already."""
        chain: list[int] = []
        at: int | None = position
        while at is not None and at not in self._made:
            if at not in self._events:
                raise Corrupt(f"a frame at position {position} is a difference from one that is missing")
            chain.append(at)
            at = base_of(self._events[at])
        for each in reversed(chain):
            self._made[each] = to_frame(self._events[each], None if at is None else self._made[at])
            at = each
        return self._made[position]

    def writes(self, position: int) -> list[TaskWrite]:
        return in_order(self._writes.get(position, {}).values())


def page(view: View, tenant: str, mark: Mark) -> tuple[list[Frame], int]:
    """Some frames up to a mark, the newest first, and the position before them: 0 when there are no more."""
    events = view.read(tenant, mark, limit=_PAGE, newest=True)
    if not events:
        return [], 0
    before = events[0].position - 1
    shown = [event for event in events if is_frame(event)]
    first = min((full_of(event) for event in shown), default=before + 1)
    history = History()
    for event in (*(view.read(tenant, Mark(mark.stream, before), after=first - 1) if first <= before else ()), *events):
        history.add(event)
    return [history.frame(event.position) for event in reversed(shown)], before


def writes_of(view: View, tenant: str, mark: Mark, frame: Frame, *, last: bool) -> list[TaskWrite]:
    """What tasks wrote on top of a frame, each once, in the order in which a framework applies them."""
    held = {(write.task, write.number): write for write in frame.early}
    for event in _written(view, tenant, mark, frame.position, last=last):
        position, writes = (frame.position, carried(event)) if is_frame(event) else to_writes(event)
        if position == frame.position:
            held |= {(write.task, write.number): write for write in writes}
    return in_order(held.values())


def in_order(writes: Iterable[TaskWrite]) -> list[TaskWrite]:
    """Writes in the order in which a framework applies them."""
    return sorted(writes, key=lambda write: (write.path, write.task, write.number))


def _written(view: View, tenant: str, mark: Mark, position: int, *, last: bool) -> Iterator[Event]:
    after, size = position, 8  # most frames have one or two
    while page := view.read(tenant, mark, after=after, limit=size):
        for event in page:
            yield event
            if is_frame(event):  # it may carry writes of the frame before, and nothing after it is of that one
                break
        else:
            if len(page) < size:
                break
            after, size = page[-1].position, _PAGE
            continue
        break
    number = 1
    while not last and (late := view.read(tenant, mark, key=late_key(position, number))):
        yield late[0]
        number += 1
