"""The values that callers get and give: frozen, and without any I/O.

Everything here is data about something stored. Times are aware UTC datetimes at this surface. Deliberately absent:
handles that do work (``Thread``, ``Turn``, ``Store``), and anything that knows how a value is stored.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime
from struct import unpack
from typing import Any, Generic, Self, TypeVar, overload

import msgspec

from holdfast.clock import to_datetime

T = TypeVar("T")

ENTRY_KINDS = ("message", "tool_call", "observation", "event", "note", "summary")
MEMORY_KINDS = ("semantic", "episodic", "procedural")
TRUST = ("untrusted", "stated", "trusted")
"""How far to trust a text, least first: from a tool or a page, said in a conversation, vouched for."""


class Draft(msgspec.Struct, frozen=True):
    """An entry to be appended. Make one with ``message``, ``tool_call``, ``observation``, ``event`` or ``note``."""

    kind: str
    content: Any
    key: str | None = None


def message(role: str, content: Any, *, key: str | None = None, **more: Any) -> Draft:
    """Something said: by a user, an assistant or a system."""
    return Draft("message", {"role": role, "content": content, **more}, key)


def tool_call(name: str, arguments: Any, *, id: str | None = None, key: str | None = None) -> Draft:
    """A tool the agent decided to use, before its result."""
    content = {"name": name, "arguments": arguments}
    return Draft("tool_call", content if id is None else {"id": id, **content}, key)


def observation(content: Any, *, of: str | None = None, key: str | None = None) -> Draft:
    """A result from the outside world; ``of`` is the id of the tool call it answers."""
    return Draft("observation", {"content": content} if of is None else {"of": of, "content": content}, key)


def event(name: str, *, key: str | None = None, **data: Any) -> Draft:
    """Something worth keeping that happened, but was not said."""
    return Draft("event", {"name": name, **data}, key)


def note(text: str, *, key: str | None = None) -> Draft:
    """A remark by the agent or a person, for later readers."""
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
    """A thread in a listing, read without its log or its state."""

    id: str
    user: str | None
    agent: str | None
    tags: tuple[str, ...]
    entries: int
    created: datetime
    active: datetime


class UserInfo(msgspec.Struct, frozen=True):
    """A user in a listing. ``memories`` counts forgotten ones too, ``files`` deleted ones."""

    user: str
    threads: int
    memories: int
    files: int
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
    """A state as read: the value, where it came from, and which fields are stale.

    Before the first save, ``revision`` is 0 and ``value`` the default you gave. ``migrated_from`` is the stored version
    if migrations ran; the stored bytes stay unchanged until the next save. ``defaulted`` names the fields that were
    not stored, so that their values are the type's defaults and nobody's word.
    """

    value: T
    revision: int
    schema: str = ""
    version: int = 0
    migrated_from: int | None = None
    time: datetime | None = None
    stale: tuple[StaleField, ...] = ()
    must_verify: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.revision > 0


class EntryRef(msgspec.Struct, frozen=True):
    """A reference to one entry: its thread and its number there."""

    thread: str
    number: int


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a memory comes from: who said it, through which channel or tool, and in which entries it stands."""

    by: str | None = None
    channel: str | None = None
    tool: str | None = None
    entries: tuple[EntryRef, ...] = ()


class OwnVector(msgspec.Struct, frozen=True):
    """A vector that a caller gave a memory, and the model it comes from. ``data`` holds its numbers as base64."""

    model: str
    data: str

    @property
    def numbers(self) -> list[float]:
        raw = b64decode(self.data)
        return list(unpack(f"<{len(raw) // 4}f", raw))


class Memory(msgspec.Struct, frozen=True):
    """One thing remembered. What it says never changes: later knowledge is another memory.

    ``valid_from`` and ``valid_to`` say when it is true, ``recorded_at`` since when it is known. With a ``key`` it is
    one value of a fact about its subject. With ``relation`` and ``object`` it links its subject to something else.
    ``ended`` means that the fact has no value from ``valid_from`` on; ``corrects`` names a memory that was never true
    or, with ``ended``, one that is no longer true. ``count`` is how often the same note was remembered, ``uses`` how
    often it was reported as used, ``recalls`` how often a recall that keeps count returned it, each with its last time.
    """

    id: str
    text: str
    kind: str
    subject: str
    recorded_at: datetime
    valid_from: datetime
    valid_to: datetime | None = None
    key: str | None = None
    relation: str | None = None
    object: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    origin: Origin = Origin()
    trust: str = "stated"
    corrects: str | None = None
    ended: bool = False
    forgotten_at: datetime | None = None
    uses: int = 0
    helped: int = 0
    type: str | None = None
    metadata: dict[str, Any] = {}
    vector: OwnVector | None = None
    count: int = 1
    repeated_at: datetime | None = None
    used_at: datetime | None = None
    recalls: int = 0
    recalled_at: datetime | None = None

    def __hash__(self) -> int:
        return hash(self.id)


class File(msgspec.Struct, frozen=True):
    """One version of a file in a folder: plain data, or bytes. ``deleted`` marks the version that ended it."""

    path: str
    content: Any
    version: int
    created: datetime
    time: datetime
    expires: datetime | None = None
    deleted: bool = False
    folder: str = ""
    tags: tuple[str, ...] = ()


class FolderInfo(msgspec.Struct, frozen=True):
    """A folder in a listing: its owner, how many files it holds, and when one was last written."""

    name: str
    user: str | None
    agent: str | None
    files: int
    active: datetime


class Hit(msgspec.Struct, frozen=True):
    """Something that recall found: exactly one of a memory, a log entry or a file.

    A message that also holds what a tool or a page says can be found twice: ``text`` and ``trust`` are those of the
    part that was found.

    ``score`` orders the hits of one recall, except that word-for-word repetitions of better hits come last; you cannot
    compare scores of two recalls. ``why`` has each stage's part of the score if you asked to ``explain``.
    ``disputed_by`` names memories that contradict this one, ``superseded_by`` the hit that says what has changed since.
    """

    text: str
    score: float
    kind: str
    time: datetime
    trust: str
    memory: Memory | None = None
    entry: Entry | None = None
    why: dict[str, float] = {}
    disputed_by: tuple[str, ...] = ()
    file: File | None = None
    superseded_by: str | None = None

    @property
    def id(self) -> str:
        """The id of the memory, the thread and number of the entry, or the folder, path and version of the file."""
        if self.memory is not None:
            return self.memory.id
        if self.file is not None:
            return f"{self.file.folder}/{self.file.path}@{self.file.version}"
        assert self.entry is not None
        return f"{self.entry.thread}#{self.entry.number}"


class StageReport(msgspec.Struct, frozen=True):
    """One stage of a recall: how long it took, or why it was left out."""

    name: str
    ms: float = 0.0
    skipped: str = ""


class RecallReport(msgspec.Struct, frozen=True):
    """How a recall went. ``searched`` is how many documents were searched, ``pending`` how many passages still lack a
    vector of the model that recall uses or is moving to."""

    query: str
    searched: int
    candidates: int
    ms: float
    model: str | None
    stages: tuple[StageReport, ...] = ()
    pending: int = 0
    notes: tuple[str, ...] = ()

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(stage.name for stage in self.stages if stage.skipped)


class Recalled(msgspec.Struct, frozen=True):
    """The hits of one recall, best first; use it like a list.

    ``confidence`` is how likely it is that they contain anything relevant. If ``relevant`` is False, nothing here
    answers the question, and an agent should say so.
    """

    hits: tuple[Hit, ...]
    confidence: float
    relevant: bool
    report: RecallReport

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, at: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[at]


class Erasure(int):
    """How many records an erasure removed, or with ``dry_run`` would remove: an int with details.

    ``counts`` has the number of each kind; ``notes`` says what the store had no permission to clean up in its database.
    """

    counts: dict[str, int]
    notes: tuple[str, ...]

    def __new__(cls, records: int = 0, counts: dict[str, int] | None = None, notes: tuple[str, ...] = ()) -> Self:
        made = super().__new__(cls, records)
        made.counts, made.notes = dict(counts or {}), notes
        return made


class VerifyReport(msgspec.Struct, frozen=True):
    """What ``verify`` found."""

    threads: int
    entries: int
    problems: tuple[Any, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems
