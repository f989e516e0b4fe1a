"""What is imported: conversations, memories and files, each planned, written and read back.

A part knows what it would add (``plan``) and adds exactly that (``write``), after which it is read from the engine and
compared with what should be there. What already exists under the same name is left as it is, and what was erased
here stays erased. Deliberately absent: where parts come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from holdfast import FileWrite, Folder, Store, Thread
from holdfast.errors import Conflict, Corrupt, HoldfastError, Invalid
from holdfast.extension import (
    FILE,
    LONGEST_BYTES,
    MEMORY,
    Append,
    Buries,
    Draft,
    Event,
    MemoryCollection,
    Record,
    Remembering,
    Scope,
    as_remembered,
    check_id,
    check_text,
    checked,
    decode,
    encode,
    fetch,
    memory_id,
    once_number,
    read_plain,
    same,
    to_event,
    to_plain,
)

BATCH = 500
"""At most so many entries, memories or files are one commit."""
BATCH_BYTES = 8 * 1024 * 1024

T = TypeVar("T")
Step = Callable[[int], None]
"""Is told how many more are done."""


class ImportPlan(msgspec.Struct, frozen=True):
    """How many of a part are new, how many here already, and how many were erased here, which they stay."""

    new: int = 0
    here: int = 0
    erased: int = 0


class ImportProblem(NamedTuple):
    """An item that no store can hold: its name in the part, where a person finds it, and why it cannot be held."""

    name: str
    where: str
    why: str


class ImportPart(Protocol):
    """Something on its way into a store. ``what`` names its items, ``size`` counts them."""

    @property
    def what(self) -> str: ...

    @property
    def size(self) -> int: ...

    def whose(self, store: Store) -> Scope:
        """Whose the items are, or become."""
        ...

    def problems(self) -> list[ImportProblem]:
        """The items that no store can hold."""
        ...

    def without(self, names: set[str]) -> ImportPart:
        """The same without those items."""
        ...

    def plan(self, store: Store) -> ImportPlan:
        """Say what would be added. ``Conflict`` when what is here cannot be gone on with."""
        ...

    def write(self, store: Store, step: Step) -> ImportPlan:
        """Add what is new, read it back and compare it."""
        ...


class ImportedEntry(msgspec.Struct, frozen=True):
    """One entry on its way in: its key, what it is, and when it was said, in microseconds, where that is known."""

    key: str
    kind: str
    content: Any
    time: int | None = None


class ImportedThread(msgspec.Struct, frozen=True):
    """A conversation: entries of one thread, in order."""

    thread: str
    sayings: tuple[ImportedEntry, ...]
    user: str | None = None
    agent: str | None = None
    tags: tuple[str, ...] = ()
    what = "entries"

    @property
    def size(self) -> int:
        return len(self.sayings)

    def whose(self, store: Store) -> Scope:
        return owner_of(store, self.thread) or Scope(self.user, self.agent)

    def problems(self) -> list[ImportProblem]:
        found = ((saying.key, refusal(_held, self, saying)) for saying in self.sayings)
        return [ImportProblem(key, f"thread {self.thread!a}, {key}", why) for key, why in found if why is not None]

    def without(self, names: set[str]) -> ImportedThread:
        """The conversation without some of its entries."""
        return msgspec.structs.replace(self, sayings=tuple(one for one in self.sayings if one.key not in names))

    def plan(self, store: Store) -> ImportPlan:
        fresh, _ = self._fresh(store)
        here = self.size - len(fresh)
        if not here and buried(store, "thread", [self.thread]):
            return ImportPlan(erased=self.size)
        return ImportPlan(len(fresh), here)

    def write(self, store: Store, step: Step) -> ImportPlan:
        planned = self.plan(store)
        if planned.new:
            fresh, head = self._fresh(store)
            self._append(fresh, head, self._thread(store), step)
            still, _ = self._fresh(store)
            if still:
                raise differs(f"entry {still[0].key!r} of thread {self.thread!r} is missing")
        step(planned.here + planned.erased)
        return planned

    def _append(self, fresh: Sequence[ImportedEntry], head: int, thread: Thread, step: Step) -> None:
        collection, last = thread.logbook, thread.entry(head).time_us if head else 0
        now = collection.core.clock.now()
        events = list[Event]()
        for saying in fresh:  # times in a thread never fall, nor are they ahead of us
            last = max(last, min(now if saying.time is None else saying.time, now))
            events.append(to_event(Draft(saying.kind, saying.content, saying.key), last))
        for some in batches(events, lambda event: len(event.body)):
            append = Append("thread", self.thread, tuple(some), head, collection.new)
            collection.core.write((append,), now)
            head += len(some)
            step(len(some))

    def _fresh(self, store: Store) -> tuple[Sequence[ImportedEntry], int]:
        """The entries that are not here yet, and how many the thread has. Those that are here are compared."""
        log = self._thread(store).log()
        here = {entry.key: entry for entry in log if entry.key is not None}
        known = next((at for at, one in enumerate(self.sayings) if one.key not in here), self.size)
        for saying in self.sayings[:known]:
            entry = here[saying.key]
            if entry.kind != saying.kind or not same(entry.content, decode(encode(saying.content))):
                raise self._parted(f"its entry {entry.number} differs here")
        fresh = self.sayings[known:]
        if any(saying.key in here for saying in fresh):
            raise self._parted("some of its entries exist here, but earlier ones do not")
        if fresh and len(log) > known:
            raise self._parted(f"it has {len(log) - known} entries of its own here, and the source has more to add")
        return fresh, len(log)

    def _thread(self, store: Store) -> Thread:
        return store.thread(self.thread, user=self.user, agent=self.agent, tags=self.tags)

    def _parted(self, why: str) -> Conflict:
        return Conflict(
            f"thread {self.thread!r} cannot be imported: {why}; import into another store, or erase this thread first "
            "with forever=False",
            thread=self.thread,
        )


class ImportedMemories(msgspec.Struct, frozen=True):
    """Memories of one collection. Each has a name of its own (``once``)."""

    drafts: tuple[Remembering, ...]
    user: str | None = None
    agent: str | None = None
    what: str = "memories"

    @property
    def size(self) -> int:
        return len(self.drafts)

    def whose(self, store: Store) -> Scope:
        return Scope(self.user, self.agent)

    def problems(self) -> list[ImportProblem]:
        found = ((draft, refusal(_remembered, self, draft)) for draft in self.drafts)
        return [ImportProblem(draft.once or "", _shown(draft), why) for draft, why in found if why is not None]

    def without(self, names: set[str]) -> ImportedMemories:
        """These memories without some, by their names."""
        return msgspec.structs.replace(self, drafts=tuple(one for one in self.drafts if one.once not in names))

    def plan(self, store: Store) -> ImportPlan:
        fresh, erased = self._fresh(store)
        return ImportPlan(len(fresh), self.size - len(fresh) - erased, erased)

    def write(self, store: Store, step: Step) -> ImportPlan:
        fresh, erased = self._fresh(store)
        collection = self._book(store)
        for some in batches(fresh, lambda draft: len(draft.text)):
            collection.remember(some)
            self._compare(store, some)
            step(len(some))
        step(self.size - len(fresh))
        return ImportPlan(len(fresh), self.size - len(fresh) - erased, erased)

    def _fresh(self, store: Store) -> tuple[list[Remembering], int]:
        """Those that are not here yet, and how many of the rest were erased here. Those that are here are compared."""
        collection, found = self._book(store), self._stored(store, self.drafts)
        missing = list[Remembering]()
        for draft in self.drafts:
            record = found.get(name_of(collection, draft))
            if record is None:
                missing.append(draft)
            elif read_plain(record)["text"] != checked(draft, collection.subject).text:
                raise Conflict(f"{draft.once!r} names another memory here ({record.id})", memory=record.id)
        gone = (
            self._gone(store, collection, [name_of(collection, draft) for draft in missing]) if missing else set[str]()
        )
        fresh = [draft for draft in missing if name_of(collection, draft) not in gone]
        return fresh, len(missing) - len(fresh)

    def _gone(self, store: Store, collection: MemoryCollection, names: list[str]) -> set[str]:
        """Those that were here once: erased one by one, which the collection tells, or with all of their scope."""
        record = collection.record()
        events = [] if record is None else store.core.engine.read(store.tenant, record.mark)
        told = {event.key for event in events if event.key is not None}
        return {name for name in names if name in told} | buried(store, MEMORY, names)

    def _compare(self, store: Store, drafts: Sequence[Remembering]) -> None:
        collection, found = self._book(store), self._stored(store, drafts)
        for draft in drafts:
            record = found.get(name_of(collection, draft))
            if record is None:
                raise differs(f"memory {draft.once!r} is missing")
            if as_remembered(read_plain(record)) != as_remembered(to_plain(checked(draft, collection.subject))):
                raise differs(f"memory {record.id!r}, imported as {draft.once!r}, is not what was written")

    def _stored(self, store: Store, drafts: Iterable[Remembering]) -> dict[str, Record]:
        collection = self._book(store)
        names = [name_of(collection, draft) for draft in drafts]
        return fetch(store.core.engine, store.tenant, MEMORY, names)

    def _book(self, store: Store) -> MemoryCollection:
        return store.memory(user=self.user, agent=self.agent).visible.own


class ImportedFiles(msgspec.Struct, frozen=True):
    """Files that are kept as they were: their content by path."""

    folder: str
    files: dict[str, Any]
    user: str | None = None
    agent: str | None = None
    tags: tuple[str, ...] = ()
    what = "files"

    @property
    def size(self) -> int:
        return len(self.files)

    def whose(self, store: Store) -> Scope:
        return Scope(self.user, self.agent)

    def problems(self) -> list[ImportProblem]:
        found = ((path, refusal(_filed, path, self.files[path])) for path in self.files)
        return [ImportProblem(path, f"file {path!a}", why) for path, why in found if why is not None]

    def without(self, names: set[str]) -> ImportedFiles:
        """These files without some."""
        kept = {path: content for path, content in self.files.items() if path not in names}
        return msgspec.structs.replace(self, files=kept)

    def plan(self, store: Store) -> ImportPlan:
        fresh, erased = self._fresh(store)
        return ImportPlan(len(fresh), self.size - len(fresh) - erased, erased)

    def write(self, store: Store, step: Step) -> ImportPlan:
        fresh, erased = self._fresh(store)
        for some in batches(fresh, lambda path: len(str(self.files[path]))):
            self._folder(store).commit([FileWrite(path, self.files[path], tags=self.tags) for path in some])
            step(len(some))
        if still := self._fresh(store)[0]:
            raise differs(f"file {still[0]!r} of folder {self.folder!r} is not what was written")
        step(self.size - len(fresh))
        return ImportPlan(len(fresh), self.size - len(fresh) - erased, erased)

    def _fresh(self, store: Store) -> tuple[list[str], int]:
        folder = self._folder(store)
        found = ((path, folder.find(path)) for path in self.files)
        changed = [path for path, file in found if file is None or not same(file.content, self.files[path])]
        id = folder.filebook.id
        gone = buried(store, FILE, map(id, changed))
        fresh = [path for path in changed if id(path) not in gone]
        return fresh, len(changed) - len(fresh)

    def _folder(self, store: Store) -> Folder:
        return store.folder(self.folder, user=self.user, agent=self.agent)


def owner_of(store: Store, thread: str) -> Scope | None:
    """Whose a thread is; None when there is no such thread."""
    record = store.core.engine.get(store.tenant, "thread", thread)
    return None if record is None else Scope(record.scope.user, record.scope.agent)


def name_of(collection: MemoryCollection, draft: Remembering) -> str:
    """The id that a memory has under its name."""
    assert draft.once is not None
    return memory_id(once_number(collection.id, draft.once))


def batches(items: Sequence[T], weight: Callable[[T], int]) -> Iterator[list[T]]:
    """Items in groups that make a fair commit each."""
    some, size = list[T](), 0
    for item in items:
        if some and (len(some) == BATCH or size + weight(item) > BATCH_BYTES):
            yield some
            some, size = [], 0
        some.append(item)
        size += weight(item)
    if some:
        yield some


def refusal(attempt: Callable[..., object], *given: Any) -> str | None:
    """Why something cannot be stored; None when it can."""
    try:
        attempt(*given)
    except HoldfastError as error:
        return str(error)
    return None


def differs(what: str) -> Corrupt:
    """The error for something that was written and does not come back."""
    return Corrupt(f"reading back what was imported: {what}; run verify, then import again")


def _held(talk: ImportedThread, saying: ImportedEntry) -> None:
    check_id(talk.thread, "thread id")
    check_id(saying.key, "key")
    encode(saying.content, "content")


def _remembered(knowledge: ImportedMemories, draft: Remembering) -> None:
    for what, name in (("user", knowledge.user), ("agent", knowledge.agent)):
        if name is not None:
            check_id(name, what)
    encode(to_plain(checked(draft, "someone")), "memory")


def _filed(path: str, content: Any) -> None:
    if len(check_text(path, "path").encode()) > LONGEST_BYTES:
        raise Invalid(f"its path is longer than {LONGEST_BYTES} bytes")
    encode(content, "file")


def _shown(draft: Remembering) -> str:
    """A memory as it is named in an error, where a character that cannot be stored must not be either."""
    return f"{draft.subject or draft.once!s:.40} {draft.text!a:.60}"


def buried(store: Store, kind: str, ids: Iterable[str]) -> set[str]:
    """Those of the ids that were erased here for good."""
    with store.core.engine.snapshot() as view:
        if not isinstance(view, Buries):
            return set()
        return {id for id in ids if view.buried(store.tenant, kind, id)}
