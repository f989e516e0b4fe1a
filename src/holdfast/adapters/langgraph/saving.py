"""One commit of a graph in the making: values made plain, lists grown, messages put into the log, all as operations.

Deliberately absent: what is committed and when (``keeper``), and reading (``line``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.adapters.langgraph import messages
from holdfast.adapters.langgraph.known import CachedMessage
from holdfast.adapters.langgraph.line import ENTRY, MESSAGE, GraphLine, ListSegment, LoggedMessages
from holdfast.adapters.langgraph.values import TAG, Dumping, Kinds
from holdfast.extension import Append, Event, Guard, Op, Put, Record, Scope, encode
from holdfast.ledger import frames, segments
from holdfast.ledger.frames import BLOB, ENTRIES, GRAPH, HOME, INLINE, KEPT, LIST, PAIRS, Ref
from holdfast.ledger.segments import SEGMENT, Element, ElementRef, ListVersion

_SMALL = 400  # bytes of a list that is not worth a segment of its own
_LARGE = 2_048  # bytes of a value that goes into a blob
_RANGES = 64  # of entries that are named in the frame itself
_NAMED = 16  # of them those that are named one by one, with an id
_SILENCE = LoggedMessages([], [])
_MANY = 16  # pairs of a dict from which on it is kept as a list of pairs


class GraphSaved(NamedTuple):
    """What a commit would add: its operations, and what is then known."""

    ops: list[Op]
    known: Callable[[], None]


class GraphSave:
    """One commit in the making: values made plain, lists grown, messages put into the log, all as operations."""

    def __init__(self, line: GraphLine, log: Record, scope: Scope, time: int) -> None:
        self._line, self._log, self._scope, self.time = line, log, scope, time
        self._entries: list[Event] = []
        self._fresh: dict[bytes, CachedMessage] = {}
        # Objects by their identity: where what they said is, and the id that they had then.
        self.once: dict[int, tuple[Any, CachedMessage, str | None]] = {}
        self._claims: set[ElementRef] = set()
        self._then: list[Callable[[], None]] = []
        self._ops: list[Op] = []
        self._blobs: set[str] = set()
        self._versions: list[tuple[str, ListVersion, list[CachedMessage] | None]] = []
        self._lists: list[tuple[str, Ref]] = []
        self._talks: dict[str, LoggedMessages] = {}
        self.home = line.home or log.mark.stream
        self._dumping = Dumping(line.kinds, self._aside)

    def ref(self, channel: str, value: Any, before: Ref | None) -> Ref:
        """How a channel's new value is held. ``before`` is how the one before it was."""
        path = f"thread {self._line.thread!r}, channel {channel!r}"
        if type(value) is list and value:
            listed = self._list(channel, value, before, path)
        elif type(value) is dict and len(value) >= _MANY and TAG not in value:
            listed = self._pairs(channel, value, before, path)
        else:
            listed = None
        if listed is None:
            return self.small(value, path)
        self._lists.append((channel, listed))
        return listed

    def small(self, value: Any, path: str) -> Ref:
        """A value in the frame itself, or as a blob when it is large."""
        plain = self._dumping.plain(value, path)
        if type(plain) in (str, list, dict):
            body = encode(plain, path)
            if len(body) > _LARGE:
                return KEPT, self._blob(body)
        else:
            encode(plain, path)
        return INLINE, plain

    def _list(self, channel: str, value: list[Any], before: Ref | None, path: str) -> Ref | None:
        grown = before is not None and before[0] == LIST
        if not self._line.namespace and messages.all_spoken(value):
            if before is not None:
                self._line.recognise(channel, before)
            given = self._line.known.given
            said = [given(message) or self._said(message) for message in value]
            return self._talk(channel, said, before if grown else None)
        elements = [
            self._element(self._dumping.plain(item, f"{path}[{number}]"), path) for number, item in enumerate(value)
        ]
        if not grown and sum(len(element.body) for element in elements) < _SMALL:
            return None
        return LIST, self._grown(channel, elements, before if grown else None)

    def _talk(self, channel: str, said: list[CachedMessage], before: Ref | None) -> Ref:
        """Messages that were all said: ranges of the log, or a list where that takes many."""
        ranges = self._ranges(channel, said)
        if len(ranges) <= _RANGES and frames.named(ranges) <= _NAMED:
            self._talks[channel] = LoggedMessages(ranges, said)
            return ENTRIES, ranges
        segment = self._line.segment(channel)
        position = segment.head if before is None else before[1]
        talk = segment.talks.get(position)
        if position == segment.head and talk is not None and position in segment.versions and said[: len(talk)] == talk:
            fresh = [self._spoken(each) for each in said[len(talk) :]]
            return LIST, self._appended(
                channel, segment, *segments.grown(segment.versions[position], fresh, self.time), said
            )
        return LIST, self._grown(channel, [self._spoken(each) for each in said], before, said)

    def _ranges(self, channel: str, said: list[CachedMessage]) -> frames.Ranges:
        """Ranges of the log; an entry that is known by an id it got later is one of its own."""
        before = self._line.talks.get(channel, _SILENCE)
        if said[: len(before.said)] != before.said:
            before = _SILENCE
        fresh: frames.Ranges = []
        for (stream, position), id in said[len(before.said) :]:
            log = HOME if stream == self.home else stream
            fresh.append([log, position, position] if id is None else [log, position, position, id])
        return frames.continued(before.ranges, fresh)

    def _spoken(self, said: CachedMessage) -> Element:
        """A message as an element of a list: its entry, or a note of its entry and its id."""
        if said.id is None:
            return Element(b"%d/%d" % said.place, b"", said.place)
        known = self._line.known.notes
        if said not in known:
            known[said] = self._element(self._reference(said), "a message")
        return known[said]

    def _pairs(self, channel: str, value: dict[Any, Any], before: Ref | None, path: str) -> Ref:
        elements = [
            self._element([self._dumping.plain(name, path), self._dumping.plain(item, f"{path}[{name!r}]")], path)
            for name, item in value.items()
        ]
        grown = before is not None and before[0] == PAIRS
        return PAIRS, self._grown(channel, elements, before if grown else None)

    def _element(self, plain: Any, path: str) -> Element:
        body = encode(plain, path)
        return Element(segments.digest_of(body), body)

    def _grown(
        self, channel: str, elements: Sequence[Element], before: Ref | None, said: list[CachedMessage] | None = None
    ) -> int:
        segment = self._line.segment(channel)
        version = segments.EMPTY if before is None else self._line.version(channel, before[1])
        return self._appended(channel, segment, *segments.saved(version, segment.head, elements, self.time), said)

    def _appended(
        self,
        channel: str,
        segment: ListSegment,
        events: list[Event],
        version: ListVersion,
        said: list[CachedMessage] | None,
    ) -> int:
        """Have events in the commit that make a version of a list; return its position."""
        if events:
            id = frames.segment_id(self._line.id, channel)
            new = Put(SEGMENT, id, encode({"graph": self._line.id, "channel": channel}), scope=self._scope)
            self._ops.append(Append(SEGMENT, id, tuple(events), segment.head, new))
            if segment.stream:
                self._ops.append(Guard(SEGMENT, id, 1, segment.stream))
        self._versions.append((channel, version, said))
        return version.position

    # Messages

    def _aside(self, value: Any) -> Any:
        """Messages go into the log of the thread, once, and everything else refers to them there."""
        if not messages.is_message(value):
            return None
        if not messages.spoken(value):
            return self._line.whole(value)
        if self._line.namespace:
            digest, plain = self._encoded(value, messages.fields_of(value))[:2]
            said = self._line.known.find(digest)
            return {TAG: MESSAGE, "v": plain} if said is None else self._reference(said)
        return self._reference(self._said(value, listed=False))

    def _reference(self, said: CachedMessage) -> dict[str, Any]:
        stream, position = said.place
        place = [HOME if stream == self.home else stream, position]
        return {TAG: ENTRY, "v": place if said.id is None else [*place, said.id]}

    def _encoded(self, message: Any, fields: dict[str, Any]) -> tuple[bytes, Any, bytes]:
        """A message's digest, its content as plain data, and that as bytes."""
        path = f"thread {self._line.thread!r}, a message"
        plain = self._line.inner.plain(messages.to_content(message, fields), path)
        body = encode(plain, path)
        return segments.digest_of(body), plain, body

    def _said(self, message: Any, *, listed: bool = True) -> CachedMessage:
        """Where a message is in the log; one that is not there goes in.

        One without an id is looked for by what it says only in a list of messages that were all said: anywhere else
        the same words are said once more. But one object says it once, even if it is given its id meanwhile.
        """
        known = self._line.known
        found = known.given(message)
        if found is not None:
            return found
        fields = messages.fields_of(message)
        identity = fields["id"]
        before = self.once.get(id(message))
        if before is not None and (before[2] is not None or identity is None):
            return before[1]
        digest, plain, body = self._encoded(message, fields)
        if before is not None:  # said without an id, which it was given meanwhile
            found = self._claimed(_digest_without_id(plain), before[1].place, identity)
        elif listed or identity is not None:
            found = self._fresh.get(digest) or known.find(digest)
        if found is None and identity is not None:
            found = self._named(plain, identity)
        if found is None:
            found = CachedMessage(ElementRef(self._log.mark.stream, self._log.head + len(self._entries) + 1))
            self._entries.append(Event("message", body, self.time))
            if identity is None:
                self._then.append(functools.partial(known.loosen, digest, found.place))
        self._fresh[digest] = found
        self.once[id(message)] = message, found, identity
        self._then.append(functools.partial(known.learn, digest, found, message, fields))
        return found

    def _named(self, plain: dict[str, Any], id: str) -> CachedMessage | None:
        """The entry of a message that was said before it was given its id."""
        digest = _digest_without_id(plain)
        if (found := self._line.known.find_named(id, digest)) is not None:
            return found
        free = [place for place in self._line.known.loose(digest) if place not in self._claims]
        if not free:
            return None
        return self._claimed(digest, free[0], id)

    def _claimed(self, digest: bytes, place: ElementRef, id: str | None) -> CachedMessage:
        """An entry without an id as the one of a message that has been given one."""
        self._claims.add(place)
        self._then.append(functools.partial(self._line.known.claim, digest, place))
        return CachedMessage(place, id)

    def _blob(self, body: bytes) -> str:
        id = frames.blob_id(self._line.id, body)
        if id not in self._blobs and self._line.core.engine.get(self._line.core.tenant, BLOB, id) is None:
            self._ops.append(Put(BLOB, id, frames.packed(body), scope=self._scope))
        self._blobs.add(id)
        return id

    # The commit

    def also(self, op: Op) -> None:
        """Have one more operation in the commit."""
        self._ops.append(op)

    @property
    def scope(self) -> Scope:
        return self._scope

    def written(self, event: Event, then: Callable[[], None]) -> GraphSaved:
        """The operations, with the event of the graph itself, and what is known once they are done."""
        line = self._line
        ops = list(self._ops)
        if self._entries:
            ops.append(Append("thread", line.thread, tuple(self._entries), self._log.head))
        # Places are of this very thread: one of the same name that was begun anew has none of them.
        ops.append(Guard("thread", line.thread, self._log.version, self._log.mark.stream))
        head = 0 if line.record is None else line.record.head
        new = Put(GRAPH, line.id, frames.graph_body(line.namespace, self.home), scope=self._scope)
        ops.append(Append(GRAPH, line.id, (event,), head, new))
        if line.record is not None:
            ops.append(Guard(GRAPH, line.id, line.record.version, line.record.mark.stream))

        def known() -> None:
            for learn in self._then:
                learn()
            for channel, version, said in self._versions:
                line.segment(channel).keep(version, said)
            for channel, ref in self._lists:
                line.known.know(line.id, channel, ref)
            line.talks.update(self._talks)
            then()

        return GraphSaved(ops, known)


def plain_metadata(kinds: Kinds, metadata: Mapping[str, Any], thread: str) -> dict[str, Any]:
    """Metadata as it is stored: plain data, with tags where it has to be."""
    found = Dumping(kinds).plain(dict(metadata), f"thread {thread!r}, metadata")
    encode(found, f"thread {thread!r}, metadata")
    return dict(found)


def _digest_without_id(plain: dict[str, Any]) -> bytes:
    return segments.digest_of(encode({name: value for name, value in plain.items() if name != "id"}))
