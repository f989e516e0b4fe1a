"""One graph in one thread: its frames, lists and writes, with what of them is known in this process.

What is known is never trusted for long: each use compares it with the record in the store, reads what was added since,
and forgets everything when the record is another one. Every commit expects what was known, so that of two writers one
has to look again. Deliberately absent: LangGraph's configs and tuples (``saver``) and what values mean (``values``).
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from holdfast.adapters.langgraph import messages
from holdfast.adapters.langgraph.arrivals import WaitAllowance
from holdfast.adapters.langgraph.known import CachedMessage, MessageCache, identified, no_collecting
from holdfast.adapters.langgraph.values import TAG, Dumping, Kinds, Loading
from holdfast.errors import Corrupt
from holdfast.extension import Core, Event, Mark, Record, View, decode, encode
from holdfast.ledger import frames, segments
from holdfast.ledger.frames import BLOB, ENTRIES, GRAPH, INLINE, KEPT, LIST, PAIRS, Frame, Ranges, Ref, TaskWrite
from holdfast.ledger.segments import SEGMENT, ElementRef, ListVersion

ENTRY, MESSAGE = "entry", "message"
"""The tags of a message that is in the log, and of one that is not."""
_FRAMES, _VERSIONS = 64, 2


_REFERENCE = encode({TAG: ENTRY})[:-1]  # how the body of an element begins that stands for a message


class ListSegment:
    """What is known of a channel's list: its stream, where it ends, and some of its versions."""

    def __init__(self, stream: int = 0, head: int = 0) -> None:
        self.stream, self.head = stream, head
        self.versions: OrderedDict[int, ListVersion] = OrderedDict()
        self.bodies: dict[int, bytes] = {}  # elements of the list's own stream, which never change
        self.said: dict[int, CachedMessage] = {}  # those of them that stand for a message
        self.talks: OrderedDict[int, list[CachedMessage]] = OrderedDict()  # versions that are messages alone

    def keep(self, version: ListVersion, talk: list[CachedMessage] | None = None) -> None:
        self.versions[version.position] = version
        self.versions.move_to_end(version.position)
        if talk is not None:
            self.talks[version.position] = talk
        for kept in (self.versions, self.talks):
            while len(kept) > _VERSIONS:
                kept.popitem(last=False)


class LoggedMessages(NamedTuple):
    """Messages that are ranges of the log: the ranges, and each of them."""

    ranges: Ranges
    said: list[CachedMessage]


class PendingWrite:
    """What a task wrote on top of a checkpoint, on its way in. ``done`` is set once it is saved or has an ``error``."""

    def __init__(self, checkpoint: str, writes: list[tuple[str, Any]], task: str, path: str) -> None:
        self.checkpoint, self.writes, self.task, self.path = checkpoint, writes, task, path
        self.done = threading.Event()
        self.error: Exception | None = None


class GraphLine:
    """One graph in one thread, as one process sees it. Its lock is held by whoever uses it."""

    def __init__(self, core: Core, kinds: Kinds, thread: str, namespace: str, known: MessageCache) -> None:
        self.core, self.kinds, self.thread, self.namespace, self.known = core, kinds, thread, namespace, known
        self.id = frames.graph_id(thread, namespace)
        self.lock = threading.RLock()
        self.waiting: list[PendingWrite] = []
        self.company = WaitAllowance()  # for a step of several tasks to end
        self.written: deque[str] = deque(maxlen=_FRAMES)  # the last frames that tasks wrote on top of
        self.came = threading.Condition(self.lock)
        self.asked: tuple[str, dict[int, tuple[Any, CachedMessage, str | None]]] = (
            "",
            {},
        )  # the last frame that was saved, and what it says
        self.view: View = core.engine
        self.inner = Dumping(kinds, self.whole)
        self.forget()

    def forget(self) -> None:
        self.record: Record | None = None
        self.tip: Frame | None = None
        self._frames: OrderedDict[str, Frame] = OrderedDict()
        self._segments: dict[str, ListSegment] = {}
        # The last one of each channel: thousands of places are not named anew each time.
        self.talks: dict[str, LoggedMessages] = {}
        self.home, self.highest = 0, ""

    # What is there

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Everything that is read in here is of one moment: a graph that is written anew meanwhile is not seen."""
        with self.core.engine.snapshot() as view:
            self.view = view
            try:
                self.look()
                yield
            finally:
                self.view = self.core.engine

    def look(self) -> Record | None:
        """Bring what is known up to date with the store."""
        record = self.view.get(self.core.tenant, GRAPH, self.id)
        if record is None:
            self.forget()
            return None
        if self.record is None or record.stream != self.record.stream or record.head < self.record.head:
            self.forget()
            self.home = frames.home_of(record)  # of a newer version: refused here
            if (record.scope.thread, frames.namespace_of(record)) != (self.thread, self.namespace):
                raise Corrupt(f"what is stored for thread {self.thread!r} belongs to another", thread=self.thread)
        if self.record is None or record.head != self.record.head:
            self.record = record
            self.tip = self._newest(record)
        self.record = record
        return record

    def advance(self, head: int) -> None:
        """What this process wrote itself is known already: the next look finds nothing new."""
        if self.record is not None:
            self.record = msgspec.structs.replace(self.record, head=head)
        elif (record := self.view.get(self.core.tenant, GRAPH, self.id)) is not None:
            self.record, self.home = msgspec.structs.replace(record, head=head), frames.home_of(record)

    def _newest(self, record: Record) -> Frame | None:
        tip = None
        for event in frames.newest(self.view, self.core.tenant, record.mark):
            if frames.is_frame(event):
                tip = tip or self._frame(event)
                if event.key is None:
                    self.highest = frames.id_of(event)
                    return tip
        return tip

    def _frame(self, event: Event) -> Frame:
        assert self.record is not None
        frame = self._frames.get(frames.id_of(event))
        if frame is None:
            frame = frames.frame_at(self.view, self.core.tenant, self.record.mark.stream, event)
            self.keep(frame)
        return frame

    def keep(self, frame: Frame) -> None:
        self._frames[frame.id] = frame
        self._frames.move_to_end(frame.id)
        while len(self._frames) > _FRAMES:
            self._frames.popitem(last=False)

    def frame(self, id: str) -> Frame | None:
        """The frame with an id, or None."""
        if self.record is None or id > self.highest:
            return None  # no id is greater than the highest: most questions are about one that is yet to be saved
        if id in self._frames:
            return self._frames[id]
        event = frames.found(self.view, self.core.tenant, self.record.mark, id)
        return None if event is None else self._frame(event)

    def page(self, upto: int) -> tuple[list[Frame], int]:
        """Some frames up to a position, the newest first, and the position before them: 0 when there are no more."""
        assert self.record is not None
        return frames.page(self.view, self.core.tenant, Mark(self.record.mark.stream, upto))

    def frames(self) -> list[Frame]:
        """Every frame, the newest first."""
        return [] if self.record is None else frames_of(self.view, self.core.tenant, self.record)

    def writes(self, frame: Frame) -> list[TaskWrite]:
        if self.record is None:
            return []
        last = self.tip is not None and self.tip.id == frame.id
        return frames.writes_of(self.view, self.core.tenant, self.record.mark, frame, last=last)

    def ancestors(self, id: str | None) -> Iterator[tuple[Frame, list[TaskWrite]]]:
        """The frames that one came from, the nearest first, each with what tasks wrote on top of it: by one reading."""
        if self.record is None:
            return
        events = self.view.read(self.core.tenant, self.record.mark)
        found: dict[int, Frame] = {}
        written: dict[int, dict[tuple[str, int], TaskWrite]] = {}
        last = 0
        for event in events:
            if frames.is_frame(event):
                base = frames.base_of(event)
                found[event.position] = frames.to_frame(event, None if base is None else found[base])
                early = {(write.task, write.number): write for write in found[event.position].early}
                written.setdefault(event.position, {}).update(early)
                position, writes = last, frames.carried(event)
                last = event.position
            else:
                position, writes = frames.to_writes(event)
            written.setdefault(position, {}).update({(write.task, write.number): write for write in writes})
        named = {frame.id: frame for frame in found.values()}
        frame = named.get(id) if id is not None else self.tip
        while frame is not None and (frame := named.get(frame.parent or "")) is not None:
            yield frame, frames.in_order(written.get(frame.position, {}).values())

    # Values out

    def value(self, channel: str, ref: Ref, loading: Loading) -> Any:
        """A value as it was."""
        way, held = ref
        path = f"thread {self.thread!r}, channel {channel!r}"
        if way == INLINE:
            return loading.value(held, path)
        if way == KEPT:
            return loading.value(self._blob(held), path)
        values = self._said(channel, held) if way == ENTRIES else self._values(channel, held, loading, path)
        self.known.know(self.id, channel, ref)
        return dict(values) if way == PAIRS else values

    def recognise(self, channel: str, ref: Ref) -> None:
        """Make the messages of a list known, where they are not: who does not know them would say them again."""
        if ref[0] in (ENTRIES, LIST) and not self.known.knows(self.id, channel, ref):
            self.value(channel, ref, self.loading())

    def _values(self, channel: str, position: int, loading: Loading, path: str) -> list[Any]:
        """The elements of a list: entries of the log, or what the list's own stream holds."""
        segment = self.segment(channel)
        if position in segment.talks and position in segment.versions:
            return self._messages(segment.talks[position])
        segment, places = self.elements(channel, position)
        said = [CachedMessage(place) if place.stream else segment.said.get(place.position) for place in places]
        whole = [each for each in said if each is not None]
        if len(whole) == len(said):
            segment.keep(segment.versions[position], whole)
            return self._messages(whole)
        talk = iter(self._messages([each for each in said if each is not None]))
        return [
            loading.value(decode(segment.bodies[place.position]), path) if each is None else next(talk)
            for each, place in zip(said, places, strict=True)
        ]

    def _referred(self, plain: Any) -> CachedMessage | None:
        """The message that an element stands for, if it does nothing else."""
        if type(plain) is not dict or plain.get(TAG) != ENTRY:
            return None
        stream, position, *id = plain["v"]
        return CachedMessage(ElementRef(stream or self.home, position), id[0] if id else None)

    def _said(self, channel: str, ranges: Ranges) -> list[Any]:
        """Messages that are entries of the log, some of them by the ids that they got later."""
        talk = self.talks.get(channel)
        if talk is None or talk.ranges != ranges:
            said = [
                CachedMessage(ElementRef(stream or self.home, position), *id)
                for stream, first, last, *id in ranges
                for position in range(first, last + 1)
            ]
            talk = self.talks[channel] = LoggedMessages(ranges, said)
        return self._messages(talk.said)

    def _messages(self, said: Sequence[CachedMessage]) -> list[Any]:
        with self.known.lock:  # graphs inside a graph share what is known of the thread
            missing = self.known.missing(each.place for each in said)
            bodies = segments.bodies_at(self.view, self.core.tenant, 0, missing) if missing else []
            with no_collecting():
                for place, body in zip(missing, bodies, strict=True):
                    self.known.read(place, body)
                made = zip(self.known.messages(said), said, strict=True)
                return [message if message is not None else self._unusual(each) for message, each in made]

    def _unusual(self, said: CachedMessage) -> Any:
        """A message that holds values of types that are not plain data."""
        return identified(self._message(decode(self.known.body(said.place))), said.id)

    def _message(self, content: Any) -> Any:
        inner = Loading(self.kinds, {MESSAGE: self._message})
        return messages.from_content(inner.value(content, f"thread {self.thread!r}, a message"))

    def loading(self, *, pending: bool = False) -> Loading:
        """What puts values together, with the messages that are in the log.

        With ``pending`` they are of the newest frame: entries without an id in it are yet to become messages with one.
        """

        def entry(held: Sequence[Any]) -> Any:
            said = self._referred({TAG: ENTRY, "v": held})
            assert said is not None
            message = self._messages([said])[0]
            if pending and message.id is None:
                self.known.loosen(self._digest(message), said.place)
            return message

        return Loading(self.kinds, {ENTRY: entry, MESSAGE: self._message})

    def _digest(self, message: Any) -> bytes:
        return segments.digest_of(encode(self.inner.plain(messages.to_content(message), "a message")))

    def whole(self, value: Any) -> Any:
        """A message inside a message stays where it is."""
        if not messages.is_message(value):
            return None
        return {TAG: MESSAGE, "v": self.inner.plain(messages.to_content(value), "a message")}

    def _blob(self, id: str) -> Any:
        record = self.view.get(self.core.tenant, BLOB, id)
        if record is None:
            raise Corrupt(f"thread {self.thread!r}: a value that a frame holds is gone", blob=id)
        return frames.unpacked(record)

    def elements(self, channel: str, position: int) -> tuple[ListSegment, tuple[ElementRef, ...]]:
        """A version of a list: where its elements are, those of its own stream read."""
        segment = self.segment(channel)
        version = segment.versions.get(position)
        if version is None:
            places, noted = segments.places_at(self.view, self.core.tenant, segment.stream, position)
        else:
            places, noted = version.places, version.noted
        missing = [place for place in places if not place.stream and place.position not in segment.bodies]
        if missing:
            bodies = segments.bodies_at(self.view, self.core.tenant, segment.stream, missing)
            for place, body in zip(missing, bodies, strict=True):
                segment.bodies[place.position] = body
                if body.startswith(_REFERENCE) and (said := self._referred(decode(body))) is not None:
                    segment.said[place.position] = said
        if version is None:
            digests = tuple(
                b"%d/%d" % place if place.stream else segments.digest_of(segment.bodies[place.position])
                for place in places
            )
            segment.keep(ListVersion(position, places, digests, noted))
        return segment, places

    def segment(self, channel: str) -> ListSegment:
        """What is known of a channel's list, if it still ends where it did."""
        id = frames.segment_id(self.id, channel)
        record = self.view.get(self.core.tenant, SEGMENT, id)
        known = self._segments.get(channel)
        if record is None:
            self._segments.pop(channel, None)
            return ListSegment()
        if known is None or known.stream != record.mark.stream:
            known = self._segments[channel] = ListSegment(record.mark.stream, record.head)
        known.head = record.head
        return known

    def version(self, channel: str, position: int) -> ListVersion:
        """A version of a channel's list, known also by the digests of its elements."""
        segment = self.segment(channel)
        if position not in segment.versions:
            self.elements(channel, position)
        return segment.versions[position]


def frames_of(view: View, tenant: str, record: Record) -> list[Frame]:
    """Every frame of a graph, the newest first, by one reading."""
    found: dict[int, Frame] = {}
    for event in view.read(tenant, record.mark):
        if frames.is_frame(event):
            base = frames.base_of(event)
            found[event.position] = frames.to_frame(event, None if base is None else found[base])
    return [found[position] for position in sorted(found, reverse=True)]
