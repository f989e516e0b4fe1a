"""What one process knows of the messages of a thread, so that a long conversation is not read and written at each turn.

A message is stored once. Each turn a graph asks for all of them and, at each step, hands all of them back: so the ones
that were read stay here, and an object that was handed out and comes back unchanged is recognised without being
encoded. Unchanged is looked at field by field, for messages of text alone; others, whose lists and dicts may have been
changed inside, are encoded and compared. Deliberately absent: anything that is not in the store.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from holdfast.adapters.langgraph import messages
from holdfast.adapters.langgraph.frames import Place
from holdfast.extension import decode

_REMEMBERED = 50_000


class _Pattern(NamedTuple):
    """A message of text alone: what its copies are made from."""

    kind: Any
    fields: dict[str, Any]
    empty: tuple[tuple[str, Any], ...]
    names: set[str]


class MessageCache:
    """The messages of one thread that this process has seen. Places name streams by their numbers."""

    def __init__(self) -> None:
        self.born = 0
        self.lock = threading.RLock()
        self.forget()

    def __len__(self) -> int:
        """About how many messages it holds in memory."""
        return len(self.places) + len(self._given) + len(self._given_before)

    def forget(self) -> None:
        self.places: dict[bytes, Place] = {}  # by all that a message holds, its id included
        self.bodies: dict[Place, bytes] = {}
        self._patterns: dict[Place, _Pattern | None] = {}
        self._given: dict[int, tuple[Any, Mapping[str, Any], Place]] = {}
        self._given_before: dict[int, tuple[Any, Mapping[str, Any], Place]] = {}

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

    def given(self, message: Any) -> Place | None:
        """Where a message is that was handed out or taken in here, if it is still what it was."""
        held = self._given.get(id(message)) or self._given_before.get(id(message))
        if held is None or held[0] is not message or held[1] != message.__dict__ or message.__pydantic_extra__:
            return None
        return held[2]

    def take(self, message: Any, fields: Mapping[str, Any], place: Place, body: bytes) -> None:
        """A message is at a place; and its object is known as long as it holds these fields."""
        with self.lock:
            self.read({place: body})
            if _is_text(fields):
                self._given[id(message)] = (message, _own(fields), place)

    def missing(self, places: Iterable[Place]) -> list[Place]:
        return [place for place in places if place not in self.bodies]

    def read(self, bodies: Mapping[Place, bytes]) -> None:
        """Keep what is at some places. Who needs what was let go reads it again."""
        if len(self.bodies) > _REMEMBERED:
            self.places, self.bodies, self._patterns = {}, {}, {}
            self.turn()
        self.bodies |= bodies
        for place, body in bodies.items():
            self.places.setdefault(body, place)

    def copy(self, place: Place) -> Any:
        """A new object of a message of text alone, or None: then its body tells what it is."""
        if place not in self._patterns:
            self._patterns[place] = _pattern(self.bodies[place])
        pattern = self._patterns[place]
        if pattern is None:
            return None
        fields = pattern.fields.copy()
        for name, empty in pattern.empty:
            fields[name] = empty()
        message = messages.assembled(pattern.kind, fields, pattern.names)
        self._given[id(message)] = (message, pattern.fields, place)
        return message


def _pattern(body: bytes) -> _Pattern | None:
    if b'"$"' in body:
        return None  # it holds values that are not plain data
    content = decode(body)
    if (plain := messages.plain_fields(content)) is not None:
        return _Pattern(*plain)
    message = messages.from_content(content)
    fields = message.__dict__
    if not _is_text(fields) or message.__pydantic_extra__:
        return None
    return _Pattern(type(message), fields, messages.empty_of(fields), set(fields))


def _is_text(fields: Mapping[str, Any]) -> bool:
    """Whether a message consists of text alone, and of lists and dicts that are empty."""
    return all(type(value) is str or not value for value in fields.values())


def _own(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same fields, with lists and dicts that nobody else can change."""
    return {name: type(value)() if isinstance(value, list | dict) else value for name, value in fields.items()}
