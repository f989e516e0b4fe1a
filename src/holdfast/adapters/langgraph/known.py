"""What one process knows of the messages of a thread, so that a long conversation is not read and written at each turn.

A message is stored once. Each turn a graph asks for all of them and, at each step, hands all of them back: so the ones
that were read stay here, and an object that was handed out and comes back unchanged is recognised without being
encoded. Unchanged is looked at field by field, for messages of text alone; others, whose lists and dicts may have been
changed inside, are encoded and compared.

Most people give a message without an id, and LangGraph gives it one a moment later; the saver waits for that. Where it
comes later still, the entry is without, and the graph holds its place and the id. Deliberately absent: anything that is
not in the store.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from holdfast.adapters.langgraph import messages
from holdfast.extension import decode
from holdfast.ledger.segments import Element, ElementRef, digest_of

_REMEMBERED = 50_000
_LISTS = 1_000


class CachedMessage(NamedTuple):
    """Where a message is in the log, and the id it has, if its entry was written before it had one."""

    place: ElementRef
    id: str | None = None


class _Pattern(NamedTuple):
    """A message of text alone: what its copies are made from."""

    kind: Any
    fields: dict[str, Any]
    empty: tuple[tuple[str, Any], ...]
    names: set[str]


class MessageCache:
    """The messages of one thread that this process has seen."""

    def __init__(self) -> None:
        self.born = 0
        self.lock = threading.RLock()
        self.forget()

    def __len__(self) -> int:
        """About how many messages it holds in memory."""
        return max(len(self._read), len(self._said)) + len(self._given) + len(self._given_before)

    def forget(self) -> None:
        self._said: dict[bytes, CachedMessage] = {}
        self._ids: dict[str, CachedMessage] = {}
        self._digests: dict[ElementRef, bytes] = {}
        self._lists: set[tuple[str, str, str]] = set()
        self.notes: dict[CachedMessage, Element] = {}
        self._loose: dict[bytes, list[ElementRef]] = {}
        self._read: dict[ElementRef, _Pattern | bytes] = {}
        self._patterns: dict[CachedMessage, _Pattern] = {}
        self._given: dict[int, tuple[Any, dict[str, Any], CachedMessage]] = {}
        self._given_before: dict[int, tuple[Any, dict[str, Any], CachedMessage]] = {}

    def begin(self, born: int) -> None:
        """Forget everything when the thread is another one than before, of the same name."""
        with self.lock:
            if born != self.born:
                self.forget()
                self.born = born

    def turn(self) -> None:
        """Let go of the objects that were handed out before the last time: another turn has begun."""
        with self.lock:
            self._given_before, self._given = self._given, {}
            self._loose = {}

    # Where messages are

    def find(self, digest: bytes) -> CachedMessage | None:
        """Where a message is, by the digest of all that it holds, its id included."""
        return self._said.get(digest)

    def find_named(self, id: str, digest: bytes) -> CachedMessage | None:
        """Where the message with an id is whose entry has none, by the digest of all that it holds but the id."""
        said = self._ids.get(id)
        return said if said is not None and self._digests.get(said.place) == digest else None

    def knows(self, graph: str, channel: str, ref: Any) -> bool:
        """Whether all messages of a list are known, as it is held."""
        return (graph, channel, str(ref)) in self._lists

    def know(self, graph: str, channel: str, ref: Any) -> None:
        if len(self._lists) > _LISTS:
            self._lists.clear()
        self._lists.add((graph, channel, str(ref)))

    def given(self, message: Any) -> CachedMessage | None:
        """Where a message is that was handed out or taken in here, if it is still what it was."""
        held = self._given.get(id(message)) or self._given_before.get(id(message))
        if held is None or held[0] is not message or held[1] != message.__dict__ or message.__pydantic_extra__:
            return None
        return held[2]

    def loose(self, digest: bytes) -> list[ElementRef]:
        """The entries without an id that no message with one has been found to be yet."""
        return self._loose.get(digest, [])

    def learn(self, digest: bytes, said: CachedMessage, message: Any, fields: dict[str, Any]) -> None:
        """A message is known to be somewhere; and so is its object, as long as it holds these fields."""
        with self.lock:
            if len(self._said) > _REMEMBERED:
                self._let_go()
            self._said[digest] = said
            if said.id is not None:
                self._ids[said.id] = said
            if _is_text(fields):
                if len(self._given) > _REMEMBERED:
                    self.turn()
                self._given[id(message)] = (message, _own(fields), said)

    def loosen(self, digest: bytes, place: ElementRef) -> None:
        """An entry has no id, and its message may be given one."""
        places = self._loose.setdefault(digest, [])
        if place not in places:
            places.append(place)

    def claim(self, digest: bytes, place: ElementRef) -> None:
        """A message with an id turned out to be the one of an entry without."""
        if place in self._loose.get(digest, ()):
            self._loose[digest].remove(place)

    def _let_go(self) -> None:
        """Forget where messages are, but not what was handed out: who needs to know reads it again."""
        for each in (self._said, self._ids, self._digests, self._lists, self._read, self._patterns, self.notes):
            each.clear()

    # Reading

    def missing(self, places: Iterable[ElementRef]) -> list[ElementRef]:
        if len(self._read) > _REMEMBERED:
            self._let_go()
        return [place for place in places if place not in self._read]

    def read(self, place: ElementRef, body: bytes) -> None:
        """Keep what is at a place."""
        self._digests[place] = digest = digest_of(body)
        self._said[digest] = CachedMessage(place)
        self._read[place] = body if b'"$"' in body else _pattern(body) or body

    def messages(self, said: Sequence[CachedMessage]) -> list[Any]:
        """New objects of some messages; None where a body says more than this room can tell."""
        known, given = self._patterns, self._given
        made: list[Any] = []
        for each in said:
            pattern = known.get(each) or self._pattern(each)
            if pattern is None:
                made.append(self._decoded(each))
                continue
            fields = pattern.fields.copy()
            for name, empty in pattern.empty:
                fields[name] = empty()
            message = messages.assembled(pattern.kind, fields, pattern.names)
            given[id(message)] = (message, pattern.fields, each)
            made.append(message)
        return made

    def _pattern(self, said: CachedMessage) -> _Pattern | None:
        """What copies of a message are made from, with the id that it got later; None if it is not of text alone."""
        held = self._read[said.place]
        if said.id is not None:
            self._ids[said.id] = said
        if isinstance(held, bytes):
            return None
        fields = held.fields if said.id is None else {**held.fields, "id": said.id}
        found = self._patterns[said] = held._replace(fields=fields)
        return found

    def _decoded(self, said: CachedMessage) -> Any:
        held = self.body(said.place)
        return None if b'"$"' in held else identified(messages.from_content(decode(held)), said.id)

    def body(self, place: ElementRef) -> bytes:
        held = self._read[place]
        assert isinstance(held, bytes)
        return held


@contextmanager
def no_collecting() -> Iterator[None]:
    """Let no garbage be looked for while thousands of objects are made that are all wanted.

    Python would look among everything there is, again and again, for the few milliseconds that it takes.
    """
    looks = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looks:
            gc.enable()


def identified(message: Any, id: str | None) -> Any:
    if id is not None:
        message.id = id
    return message


def _pattern(body: bytes) -> _Pattern | None:
    content = decode(body)
    if (plain := messages.plain_fields(content)) is not None:
        return _Pattern(*plain)
    message = messages.from_content(content)
    fields = message.__dict__
    if not _is_text(fields) or message.__pydantic_extra__:
        return None
    return _Pattern(type(message), fields, messages.empty_of(fields), set(fields))


def _is_text(fields: dict[str, Any]) -> bool:
    """Whether a message consists of text alone, and of lists and dicts that are empty."""
    return all(type(value) is str or not value for value in fields.values())


def _own(fields: dict[str, Any]) -> dict[str, Any]:
    """The same fields, with lists and dicts that nobody else can change."""
    return {name: type(value)() if isinstance(value, list | dict) else value for name, value in fields.items()}
