"""One graph in one thread: its frames, items and writes, and what this process knows of them.

What is known is checked against the record in the store, and forgotten when that record is another one. Every commit
says what it expects to find, so of two writers one has to look again.
Deliberately absent: LangGraph's configs and tuples (``saver``) and what values mean (``values``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph import frames, messages
from holdfast.adapters.langgraph.frames import DICT, GRAPH, ITEMS, MESSAGE, OWN, PART, Frame, GraphStream, Place
from holdfast.adapters.langgraph.known import Latest, MessageCache
from holdfast.adapters.langgraph.serde import opened, unsealed
from holdfast.adapters.langgraph.values import Kinds, Loading
from holdfast.errors import Corrupt
from holdfast.extension import Core, Record, View, decode

_FRAMES, _LISTS, _ITEMS, _PARTS = 64, 16, 256, 1_000


class StoredList(NamedTuple):
    """The elements of a list or a dict as they are stored: where each of them is, and the value, encoded."""

    places: list[Place]
    bodies: list[bytes]


class WrittenBy(NamedTuple):
    """What a task wrote on top of a checkpoint."""

    checkpoint: str
    writes: list[tuple[str, Any]]
    task: str
    path: str


class GraphLine:
    """One graph in one thread, as one process sees it. Its lock is held by whoever uses it."""

    def __init__(
        self,
        core: Core,
        kinds: Kinds,
        thread: str,
        namespace: str,
        known: MessageCache,
        serde: SerializerProtocol | None = None,
    ) -> None:
        self.core, self.kinds, self.thread, self.namespace, self.known = core, kinds, thread, namespace, known
        self.serde = serde
        self.id = frames.graph_id(thread, namespace)
        self.lock = threading.RLock()
        self.view: View = core.engine
        self.sure = False  # whether the store was looked at, or what this process knows is taken for true
        self.loading = Loading(
            kinds,
            {
                frames.ENTRY: self._entry,
                MESSAGE: self._message,
                PART: self.item,
                frames.SEALED: self._open,
            },
        )
        self.passed_on: list[WrittenBy] = []  # what is saved with the next commit
        self.forget()

    def forget(self) -> None:
        self.log: Record | None = None
        self.record: Record | None = None
        self.items: Record | None = None
        self.tip: Frame | None = None
        self.home = 0
        self._frames = Latest[str, Frame](_FRAMES)
        self._lists = Latest[str, StoredList](_LISTS)
        self._items = Latest[int, bytes](_ITEMS)
        self.strays = Latest[str, int](_FRAMES)  # how many writes there are for frames that are not the last
        self.parts = Latest[bytes, int](_PARTS)  # the positions of items that values share, by their bodies

    # What is there

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Everything that is read in here is of one moment: a graph that is written anew meanwhile is not seen."""
        with self.core.engine.snapshot() as view:
            self.view, self.sure = view, True
            try:
                self._look()
                yield
            finally:
                self.view, self.sure = self.core.engine, False

    def _look(self) -> None:
        """Bring what is known up to date with the store."""
        record = self._get(GRAPH)
        log = self.view.get(self.core.tenant, "thread", self.thread)
        if log is not None:
            self.known.begin(log.created)
        if record is None or self.record is None or record.stream != self.record.stream:
            self.forget()
        self.log = log
        if record is None:
            return
        if self.record is None:
            if (record.scope.thread, frames.namespace_of(record)) != (self.thread, self.namespace):
                raise Corrupt(f"what is stored for thread {self.thread!r} belongs to another", thread=self.thread)
            self.home = frames.home_of(self.view, self.core.tenant, record)
        if self.record is None or record.head != self.record.head:
            self.items = self._get(ITEMS)
            self.record = record
            self.tip = self.stream.newest()
        self.record = record

    def advance(self, head: int, items: int | None, log: int | None) -> None:
        """What this process wrote itself is known already: where its streams end now."""
        if self.log is not None and log is not None:
            self.log = msgspec.structs.replace(self.log, head=log)
        record, held = self.record, self.items
        if record is None and (record := self._get(GRAPH)) is not None:
            self.home = frames.home_of(self.view, self.core.tenant, record)
        if items is not None and held is None:
            held = self._get(ITEMS)
        self.record = record and msgspec.structs.replace(record, head=head)
        self.items = held and msgspec.structs.replace(held, head=held.head if items is None else items)

    def _get(self, kind: str) -> Record | None:
        return self.view.get(self.core.tenant, kind, self.id)

    @property
    def stream(self) -> GraphStream:
        assert self.record is not None
        return GraphStream(self.view, self.core.tenant, self.record.mark)

    def frame(self, id: str) -> Frame | None:
        """The frame with an id, or None."""
        if self.record is None:
            return None
        if self.tip is not None and self.tip.id == id:
            return self.tip
        if id not in self._frames and (found := self.stream.find(id)) is not None:
            self._frames[id] = found
        return self._frames.get(id)

    # Values out

    def value(self, ref: frames.Ref, path: str) -> Any:
        """A value as it was."""
        way, *held = ref
        if way == frames.INLINE:
            return self.loading.value(held[0], path)
        if way == frames.ITEM:
            return self.item(held[0])
        places = frames.to_places(held)
        if way != DICT and all(stream != OWN for stream, _ in places):
            return self.messages([(stream or self.home, position) for stream, position in places])
        elements = [self.loading.value(each, path) for each in map(decode, self.elements(ref).bodies)]
        return dict(elements) if way == DICT else elements

    def elements(self, ref: frames.Ref) -> StoredList:
        """The elements of a stored list or dict."""
        found = self._lists.get(repr(ref))
        if found is None:
            places = frames.to_places(ref[1:])
            own = self._own([position for stream, position in places if stream == OWN])
            with self.known.lock:
                self.read_entries(ref)
                told = self.known.bodies
                bodies = [own[at] if stream == OWN else told[stream or self.home, at] for stream, at in places]
            found = StoredList(places, bodies)
        self.keep(ref, found)
        return found

    def keep(self, ref: frames.Ref, stored: StoredList) -> None:
        """Know what a list consists of. The next one is mostly like one of the last."""
        self._lists[repr(ref)] = stored

    def item(self, position: int) -> Any:
        return self.loading.value(decode(self._own([position])[position]), f"thread {self.thread!r}, an item")

    def _own(self, positions: Sequence[int]) -> dict[int, bytes]:
        """Items of the graph, encoded as they were before they were packed or sealed."""
        found = {position: self._items[position] for position in positions if position in self._items}
        if missing := [position for position in positions if position not in found]:
            if self.items is None:
                raise Corrupt(f"thread {self.thread!r}: the items of a graph are gone", thread=self.thread)
            stream = self.items.mark.stream
            read = frames.bodies_at(self.view, self.core.tenant, [(stream, position) for position in missing])
            found |= {position: unsealed(frames.item_body(body), self.serde) for (_, position), body in read.items()}
        self._items.update(found)
        return found

    # Messages

    def messages(self, places: Sequence[Place]) -> list[Any]:
        """New objects of messages that are entries of the log."""
        with self.known.lock:  # graphs inside a graph share what is known of the thread
            self._read(places)
            return self.known.copies(places, lambda body: self._message(decode(body)))

    def read_entries(self, ref: frames.Ref) -> None:
        """Know the messages of a stored list."""
        self._read([(stream or self.home, at) for stream, at in frames.to_places(ref[1:]) if stream != OWN])

    def _read(self, places: Sequence[Place]) -> None:
        self.known.read(places, lambda missing: frames.bodies_at(self.view, self.core.tenant, missing))

    def _entry(self, held: Sequence[int]) -> Any:
        return self.messages([(held[0] or self.home, held[1])])[0]

    def _message(self, content: Any) -> Any:
        return messages.from_content(self.loading.value(content, f"thread {self.thread!r}, a message"))

    def _open(self, held: Any) -> Any:
        return self.loading.value(decode(opened(held, self.serde)), f"thread {self.thread!r}")
