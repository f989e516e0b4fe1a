"""Builds one commit of a graph: makes values plain, extends lists, puts messages into the log.

A message goes into the log of its thread once: as soon as it is seen with an id, or when a list of messages in the
state holds it without one. Everything else refers to it there. Deliberately absent: what is committed and when
(``keeper``), and reading (``line``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.adapters.langgraph import frames, messages
from holdfast.adapters.langgraph.frames import DICT, GRAPH, INLINE, ITEM, ITEMS, LIST, OWN, TAG, Place, Ref
from holdfast.adapters.langgraph.line import GraphLine, StoredList
from holdfast.adapters.langgraph.serde import sealed
from holdfast.adapters.langgraph.values import Dumping, Kinds, Loading
from holdfast.extension import Append, Event, Guard, Op, Put, Receipt, Record, decode, encode

_SMALL = 32  # bytes that the elements of a list have at least, on average, to be kept one by one
_LARGE = 2_048  # bytes of a value that becomes an item
_LONG = 200  # characters of a text that becomes an item: what a graph is given, it passes on
_MANY = 16  # pairs of a dict that are kept one by one


class GraphSave:
    """One commit in the making."""

    def __init__(self, line: GraphLine, log: Record, time: int) -> None:
        self._line, self._log, self.time = line, log, time
        self.says = not line.namespace and line.serde is None  # graphs inside it hand on what they said
        self._entries: list[Event] = []
        self._items: list[Event] = []
        self._said: list[tuple[Any, Mapping[str, Any], Place, bytes]] = []
        self._places: dict[bytes, Place] = {}
        self._once: dict[int, Place] = {}  # what an object says, it says once
        self._parts: dict[bytes, int] = {}
        self._lists: list[tuple[Ref, StoredList]] = []
        self._home = line.home or log.mark.stream
        self._whole = Dumping(line.kinds, lambda value: messages.tagged(value, self._whole.plain))
        self._elements = Dumping(line.kinds, lambda value: self._aside(value, self._whole))
        self._dumping = Dumping(
            line.kinds, lambda value: self._aside(value, self._dumping), self._text if line.serde is None else None
        )

    def ref(self, channel: str, value: Any, before: Ref | None) -> Ref:
        """How a channel's new value is stored. ``before`` is how the one before it was."""
        path = f"thread {self._line.thread!r}, channel {channel!r}"
        if type(value) is list and value:
            if self.says and messages.all_spoken(value):
                return self._conversation(value, before)
            bodies = [
                encode(self._elements.plain(item, f"{path}[{number}]"), path) for number, item in enumerate(value)
            ]
            if sum(map(len, bodies)) >= _SMALL * len(bodies):
                return self._listed(LIST, bodies, before)
        elif type(value) is dict and len(value) >= _MANY and TAG not in value:
            pairs = [
                [self._elements.plain(name, path), self._elements.plain(item, f"{path}[{name!r}]")]
                for name, item in value.items()
            ]
            return self._listed(DICT, [encode(pair, path) for pair in pairs], before)
        return self.small(value, path)

    def small(self, value: Any, path: str) -> Ref:
        """A value in the frame itself, or as an item when it is large."""
        plain = self._dumping.plain(value, path)
        body = encode(plain, path)
        if len(body) > _LARGE:
            return [ITEM, self._shared(body)]
        return [INLINE, plain if self._line.serde is None else decode(sealed(body, self._line.serde))]

    # Lists

    def _listed(self, way: str, bodies: list[bytes], before: Ref | None) -> Ref:
        """Elements that were stored before are where they were; the others are new items."""
        free: dict[bytes, deque[Place]] = {}
        if before is not None and before[0] == way:
            for place, body in zip(*self._line.elements(before), strict=True):
                if place[0] == OWN:  # an entry of the log is a message, and looks like a dict here
                    free.setdefault(body, deque()).append(place)
        places = [free[body].popleft() if free.get(body) else (OWN, self._item(body)) for body in bodies]
        return self._kept([way, *frames.to_ranges(places)], StoredList(places, bodies))

    def _kept(self, ref: Ref, stored: StoredList) -> Ref:
        self._lists.append((ref, stored))
        return ref

    def _item(self, body: bytes) -> int:
        """The position of a new item."""
        self._items.append(frames.item_event(sealed(body, self._line.serde), self.time))
        return (0 if self._line.items is None else self._line.items.head) + len(self._items)

    def _shared(self, body: bytes) -> int:
        """The position of an item, which may be there already."""
        found = self._parts.get(body) or self._line.parts.get(body)
        if found is None:
            found = self._item(body)
        self._parts[body] = found
        return found

    def _text(self, text: str) -> Any:
        """A text in a value: a long one is kept once."""
        return text if len(text) < _LONG else {TAG: frames.PART, "v": self._shared(encode(text, "a text"))}

    # Messages

    def _conversation(self, value: list[Any], before: Ref | None) -> Ref:
        """A list of messages: entries of the log. Of those without an id, the same words are the entry they were."""
        places = self._line.known.given(value)
        fresh = [number for number, place in enumerate(places) if place is None]
        if fresh and before is not None and before[0] == LIST:
            self._line.read_entries(before)  # who does not know them would say them again
        free = self._free(before, set(places)) if any(value[number].id is None for number in fresh) else {}
        for number in fresh:
            message = value[number]
            places[number] = self._once.get(id(message)) or self._say(message, free)
        return [LIST, *frames.to_ranges(self._near(place) for place in places if place is not None)]

    def _free(self, ref: Ref | None, taken: set[Place | None]) -> dict[bytes, deque[Place]]:
        """The entries that a stored list consists of, by what they say, without those that are recognised."""
        free: dict[bytes, deque[Place]] = {}
        if ref is not None and ref[0] == LIST:
            for place, body in zip(*self._line.elements(ref), strict=True):
                if place[0] != OWN and (near := (place[0] or self._line.home, place[1])) not in taken:
                    free.setdefault(body, deque()).append(near)
        return free

    def _near(self, place: Place) -> Place:
        return (frames.HOME, place[1]) if place[0] == self._home else place

    def _aside(self, value: Any, inner: Dumping) -> Any:
        """A message in a value: where it is in the log, or else what it is."""
        if not messages.is_message(value):
            return None
        place = None
        if messages.spoken(value) and self._line.serde is None:
            place = self._line.known.given([value])[0]
            if place is None and value.id is not None:
                place = self._say(value) if self.says else self._find(self._body(value, messages.fields_of(value)))
        return messages.tagged(value, inner.plain) if place is None else {TAG: frames.ENTRY, "v": [*self._near(place)]}

    def _body(self, message: Any, fields: dict[str, Any]) -> bytes:
        path = f"thread {self._line.thread!r}, a message"
        return encode(self._whole.plain(messages.to_content(message, fields), path), path)

    def _find(self, body: bytes) -> Place | None:
        return self._places.get(body) or self._line.known.places.get(body)

    def _say(self, message: Any, free: Mapping[bytes, deque[Place]] | None = None) -> Place:
        """Where a message is in the log; one that is not there goes in.

        One with an id is there once. One without is another message each time, unless it is ``free`` to be an old one.
        """
        fields = messages.fields_of(message)  # at this moment: another thread may be about to give it an id
        body = self._body(message, fields)
        old = None if free is None else free.get(body)
        place = self._find(body) if fields["id"] is not None else old.popleft() if old else None
        if place is None:
            place = (self._log.mark.stream, self._log.head + len(self._entries) + 1)
            self._entries.append(Event("message", body, self.time))
        self._places[body] = self._once[id(message)] = place
        self._said.append((message, fields, place, body))
        return place

    # The commit

    def operations(self, made: Sequence[Event]) -> list[Op]:
        """What the commit consists of, with the events of the graph itself last."""
        line, ops = self._line, list[Op]()
        # Places are of this very thread: one of the same name that was begun anew has none of them.
        ops.append(Guard("thread", line.thread, self._log.version, self._log.mark.stream))
        if self._entries:
            ops.append(Append("thread", line.thread, tuple(self._entries), self._log.head))
        for kind, record, events in ((ITEMS, line.items, tuple(self._items)), (GRAPH, line.record, tuple(made))):
            if not events:
                continue
            body = frames.graph_body(line.namespace, self._home) if kind == GRAPH else encode({"graph": line.id})
            new = Put(kind, line.id, body, scope=self._log.scope)
            ops.append(Append(kind, line.id, events, 0 if record is None else record.head, new))
            if record is not None:
                ops.append(Guard(kind, line.id, record.version, record.mark.stream))
        return ops

    def learn(self, receipt: Receipt) -> None:
        """Know what was committed: the next look finds nothing new."""
        line = self._line
        line.advance(
            receipt.heads[-1], receipt.heads[-2] if self._items else None, receipt.heads[0] if self._entries else None
        )
        for message, fields, place, body in self._said:
            line.known.take(message, fields, place, body)
        for ref, stored in self._lists:
            line.keep(ref, stored)
        line.parts.update(self._parts)


def plain_metadata(kinds: Kinds, metadata: Mapping[str, Any], thread: str) -> dict[str, Any]:
    """Metadata as it is stored: plain data, with tags where it has to be."""
    path, dumping = f"thread {thread!r}, metadata", Dumping(kinds)
    found = {name: dumping.plain(value, f"{path}.{name}") for name, value in metadata.items()}
    encode(found, path)
    return found


def loaded_metadata(kinds: Kinds, frame: frames.Frame) -> dict[str, Any]:
    """The metadata of a frame as it was given."""
    loading = Loading(kinds, {})
    return {name: loading.value(value, f"metadata.{name}") for name, value in frame.metadata.items()}
