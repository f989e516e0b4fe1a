"""What one process knows of the messages of a thread, so that a turn does not read and encode a whole conversation.

A graph asks for all messages at each turn and hands all of them back at each step. So what was read is kept here, and
an object that comes back unchanged is recognised without being encoded. Messages of text alone are compared field by
field; the others, whose lists and dicts may have changed inside, are encoded and compared. Deliberately absent:
anything that is not in the store.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from holdfast.adapters.langgraph import messages
from holdfast.adapters.langgraph.frames import Place
from holdfast.extension import decode

_REMEMBERED = 50_000
K = TypeVar("K")
V = TypeVar("V")


class Latest(OrderedDict[K, V]):
    """A dict of the last so many that were put into it."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        while len(self) > self._limit:
            self.popitem(last=False)


class _Pattern(NamedTuple):
    """A message of text alone: what its copies are made from."""

    kind: Any
    fields: dict[str, Any]
    empty: tuple[tuple[str, Any], ...]
    names: set[str]
    known_as: tuple[Mapping[str, Any], Place]


class _Given(NamedTuple):
    """What objects hold and where they are, by their ids; they are kept alive, so that no other takes such an id."""

    known: dict[int, tuple[Mapping[str, Any], Place]]
    alive: list[Any]


class MessageCache:
    """The messages of one thread that this process has seen. Places name streams by their numbers."""

    def __init__(self) -> None:
        self.born = 0
        self.lock = threading.RLock()
        self.forget()

    def __len__(self) -> int:
        """About how many messages it holds in memory."""
        return len(self.places) + len(self._given.known) + len(self._given_before.known)

    def forget(self) -> None:
        self.places: dict[bytes, Place] = {}  # by all that a message holds, its id included
        self.bodies: dict[Place, bytes] = {}
        self._patterns: dict[Place, _Pattern | None] = {}
        self._given, self._given_before = _Given({}, []), _Given({}, [])

    def begin(self, born: int) -> None:
        """Forget everything when the thread is another one than before, of the same name."""
        with self.lock:
            if born != self.born:
                self.forget()
                self.born = born

    def turn(self) -> None:
        """Let go of the objects that were handed out before the last time: another turn has begun."""
        with self.lock:
            self._given_before, self._given = self._given, _Given({}, [])

    @contextmanager
    def unnoticed(self) -> Iterator[None]:
        """Do not note what is handed out in here: it is to be looked at, not to be saved again."""
        with self.lock:
            given, self._given = self._given, _Given({}, [])
            try:
                yield
            finally:
                self._given = given

    def given(self, values: Iterable[Any]) -> list[Place | None]:
        """Where messages are that were handed out or taken in here, if they are still what they were."""
        now, before = self._given.known.get, self._given_before.known.get
        found: list[Place | None] = []
        for message in values:
            held = now(id(message)) or before(id(message))
            same = held is not None and held[0] == message.__dict__ and not message.__pydantic_extra__
            found.append(held[1] if same and held is not None else None)
        return found

    def take(self, message: Any, fields: Mapping[str, Any], place: Place, body: bytes) -> None:
        """A message is at a place; and its object is known as long as it holds these fields."""
        with self.lock:
            self.read([place], lambda _: {place: body})
            if _is_text(fields):
                self._given.known[id(message)] = (_own(fields), place)
                self._given.alive.append(message)

    def read(self, places: Sequence[Place], reading: Callable[[Sequence[Place]], Mapping[Place, bytes]]) -> None:
        """Know what is at some places, by ``reading`` those that are not known yet. Of too many, the others go."""
        with self.lock:
            missing: Sequence[Place] = [place for place in places if place not in self.bodies]
            if missing and len(self.bodies) > _REMEMBERED:
                self.places, self.bodies, self._patterns = {}, {}, {}
                self.turn()
                missing = places
            for place, body in reading(missing).items() if missing else ():
                self.bodies[place] = body
                self.places.setdefault(body, place)

    def copies(self, places: Sequence[Place], otherwise: Callable[[bytes], Any]) -> list[Any]:
        """New objects of messages; those that are not of text alone are made by ``otherwise`` of their bodies."""
        patterns, known, made = self._patterns, self._given.known, list[Any]()
        for place in places:
            if place not in patterns:
                patterns[place] = _pattern(self.bodies[place], place)
            pattern = patterns[place]
            if pattern is None:
                made.append(otherwise(self.bodies[place]))
                continue
            kind, usual, empty, names, known_as = pattern
            fields = usual.copy()
            for name, type_ in empty:
                fields[name] = type_()
            message = messages.assembled(kind, fields, names)
            known[id(message)] = known_as
            made.append(message)
        self._given.alive.extend(made)  # and not the list itself, which is the caller's
        return made


def _pattern(body: bytes, place: Place) -> _Pattern | None:
    if b'"$"' in body:
        return None  # it holds values that are not plain data
    content = decode(body)
    if (plain := messages.plain_fields(content)) is not None:
        return _Pattern(*plain, (plain[1], place))
    message = messages.from_content(content)
    fields = message.__dict__
    if not _is_text(fields) or message.__pydantic_extra__:
        return None
    return _Pattern(type(message), fields, messages.empty_of(fields), set(fields), (fields, place))


def _is_text(fields: Mapping[str, Any]) -> bool:
    """Whether a message consists of text alone, and of lists and dicts that are empty."""
    return all(type(value) is str or not value for value in fields.values())


def _own(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same fields, with lists and dicts that nobody else can change."""
    return {name: type(value)() if isinstance(value, list | dict) else value for name, value in fields.items()}
