"""The values callers get and give: frozen, and without any I/O.

Everything here is data about something stored. Times are aware UTC datetimes at this surface. Deliberately absent:
handles that do work (``Thread``, ``Turn``, ``Store``), and anything that knows how a value is stored.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.clock import to_datetime

T = TypeVar("T")

ENTRY_KINDS = ("message", "tool_call", "observation", "event", "note")


class Draft(msgspec.Struct, frozen=True):
    """An entry on its way into a log. Made by ``message``, ``tool_call``, ``observation``, ``event`` and ``note``."""

    kind: str
    content: Any
    key: str | None = None


def message(role: str, content: Any, *, key: str | None = None, **more: Any) -> Draft:
    """Something said: by a user, an assistant or a system."""
    return Draft("message", {"role": role, "content": content, **more}, key)


def tool_call(name: str, arguments: Any, *, id: str | None = None, key: str | None = None) -> Draft:
    """A tool the agent decided to use, before anything came back."""
    content = {"name": name, "arguments": arguments}
    return Draft("tool_call", content if id is None else {"id": id, **content}, key)


def observation(content: Any, *, of: str | None = None, key: str | None = None) -> Draft:
    """What came back from the outside; ``of`` is the id of the tool call it answers."""
    return Draft("observation", {"content": content} if of is None else {"of": of, "content": content}, key)


def event(name: str, *, key: str | None = None, **data: Any) -> Draft:
    """Something that happened and is worth keeping, but was not said."""
    return Draft("event", {"name": name, **data}, key)


def note(text: str, *, key: str | None = None) -> Draft:
    """A remark of the agent or of a person, for later readers."""
    return Draft("note", {"text": text}, key)


class Entry(msgspec.Struct, frozen=True):
    """One item of a thread's log."""

    thread: str
    number: int
    kind: str
    content: Any
    key: str | None
    time_us: int
    digest: bytes

    @property
    def time(self) -> datetime:
        return to_datetime(self.time_us)

    def __repr__(self) -> str:
        return f"Entry({self.thread!r} #{self.number} {self.kind} {self.content!r})"


class ThreadInfo(msgspec.Struct, frozen=True):
    """What a listing says about a thread, read without touching its log or its state."""

    id: str
    user: str | None
    agent: str | None
    tags: tuple[str, ...]
    entries: int
    created: datetime
    active: datetime


class Revision(msgspec.Struct, frozen=True):
    """One saved version of a thread's state, without its value."""

    number: int
    time: datetime
    schema: str
    version: int
    by: str


class Checkpoint(msgspec.Struct, frozen=True):
    """A named point of a thread: how many entries there were and which state revision was current (0: none)."""

    name: str
    entries: int
    revision: int
    time: datetime
    note: str = ""


class StaleField(msgspec.Struct, frozen=True):
    """A field of a state that is older than its schema allows."""

    path: str
    age_s: float
    fresh_for_s: float
    confirmed_at: datetime | None
    by: str
    critical: bool


class Loaded(msgspec.Struct, Generic[T], frozen=True):
    """A state as it was read: the value, where it came from, and what in it must be looked at again.

    ``revision`` is 0 and ``value`` the caller's default when nothing was saved yet. ``migrated_from`` is the stored
    version when migrations ran; the stored bytes stay as they were until the next save.
    """

    value: T
    revision: int
    schema: str = ""
    version: int = 0
    migrated_from: int | None = None
    time: datetime | None = None
    stale: tuple[StaleField, ...] = ()
    must_verify: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.revision > 0


class Report(msgspec.Struct, frozen=True):
    """What ``verify`` found."""

    threads: int
    entries: int
    problems: tuple[Any, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems
