"""CrewAI on Holdfast: the records of its memory as files of a folder, the state of a flow as the state of a thread.

A record of ``Memory`` is the file ``record/ID``, with its text where recall looks for it, and its embedding is the file
``vector/ID``, apart, so that a change of one does not copy the other. Searching is exact: every vector is compared. All
are kept in memory and brought up to date from the feed before every call, so what another process wrote is found.
A flow is the thread of the same id: each saved state is a revision by the method that ended, and each method an event
of the log. Deliberately absent: embedding (CrewAI brings the vectors), and writing when something is merely recalled.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from holdfast import FileDelete, FileWrite, Store, Thread, atfork, event
from holdfast.errors import Corrupt, FeedTrimmed, Invalid, Misconfigured
from holdfast.extension import (
    FILE,
    RESERVED,
    OpenedStore,
    StoreOrAddress,
    check_id,
    compare_and_set,
    in_thread,
    kept_address,
    whole_address,
)
from holdfast.types import Entry, File

try:
    from crewai.flow.async_feedback.types import PendingFeedbackContext
    from crewai.flow.persistence.base import FlowPersistence
    from crewai.flow.persistence.factory import set_flow_persistence_factory
    from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
    from crewai.memory.storage.factory import set_memory_storage_factory
    from crewai.memory.types import MemoryRecord, ScopeInfo
    from crewai.memory.utils import normalize_scope_path
    from pydantic import BaseModel, Field, PrivateAttr
    from pydantic_core import PydanticSerializationError, to_jsonable_python
except ImportError as error:
    raise ImportError("the adapter for CrewAI needs its extra: pip install 'holdfast[crewai]'") from error

Vector = NDArray[np.float32]

_RECORD, _VECTOR = "record/", "vector/"
_FORM, _STORED = b"\xfff4", np.dtype("<f4")  # no text begins with this byte, so recall does not read a vector as one
_PAGE, _PAGES = 500, 20  # of commits; after more of them since the last look, all is read again
_DEFAULT = "lancedb"  # what CrewAI calls the storage of a memory that names none
_METHOD, _ASKED, _GIVEN = (f"{RESERVED}crewai.{what}" for what in ("flow", "feedback-asked", "feedback-given"))
_log = logging.getLogger(__name__)


def install(store: StoreOrAddress, *, user: str | None = None, agent: str | None = None) -> Store:
    """Make Holdfast what CrewAI uses where nothing else is named, in this process: by memories and by flows.

    A ``Memory`` with a storage of its own, and a flow with a persistence of its own, keep it. Returned is the store,
    which is the caller's to close, after the last crew and flow.
    """
    held = OpenedStore(store)
    with held.begun() as used:
        storage = HoldfastStorage(used, user=user, agent=agent)
        persistence = HoldfastFlowPersistence(used, user=user, agent=agent)
    set_memory_storage_factory(lambda spec: storage if spec == _DEFAULT else None)
    set_flow_persistence_factory(lambda: persistence)
    return held.store


def uninstall() -> None:
    """Give CrewAI its own stores back."""
    set_memory_storage_factory(None)
    set_flow_persistence_factory(None)


class HoldfastStorage:
    """A storage backend for CrewAI's memory: ``Memory(storage=HoldfastStorage("agent.db"))``.

    A scope holds what is in it and below it: "/acme" has the records of "/acme/sales", and none of "/acme-corp".
    """

    def __init__(
        self, store: StoreOrAddress, *, user: str | None = None, agent: str | None = None, folder: str = "crewai"
    ) -> None:
        self._held = OpenedStore(store)
        self._store = self._held.store
        with self._held.begun() as begun:
            self._folder = begun.folder(folder, user=user, agent=agent)
        self._begin = f"{self._folder.filebook.place}/"
        self._lock = atfork.lock()
        self._kept: dict[str, _Kept] = {}
        self._vectors = _Vectors()
        self._after: int | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # CrewAI copies crews with all they have; the store stays one

    def close(self) -> None:
        """Close the store, if this storage opened it."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Writing

    def save(self, records: list[MemoryRecord]) -> None:
        """Save records in one commit. One whose id is there already is replaced."""
        if not records:
            return
        given = {record.id: record for record in records}

        def changes() -> list[FileWrite | FileDelete]:
            """Anew, where one of them was changed or deleted meanwhile, perhaps with its vector."""
            with self._lock:
                self._catch_up()
                return self._writings(given.values())

        compare_and_set(changes, self._folder.commit, f"folder {self._folder.name!r}", folder=self._folder.name)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of the same id; what it was stays in the history of its file."""
        self.save([record])

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that are all of what is given, in one commit, and return how many they were.

        An empty list of ids names no record. Versions stay in the history of the files, vectors too.
        """
        wanted = _Wanted(scope_prefix, categories, metadata_filter, record_ids, older_than)

        def going() -> list[list[FileDelete]]:
            """Anew, where one of them was changed meanwhile, and may not be wanted any more."""
            with self._lock:
                self._catch_up()
                return [list(self._deletions(kept)) for kept in self._kept.values() if wanted.has(kept.record)]

        def commit(gone: list[list[FileDelete]]) -> int:
            self._folder.commit([change for changes in gone for change in changes])
            return len(gone)

        return compare_and_set(going, commit, f"folder {self._folder.name!r}", folder=self._folder.name)

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a scope, or all there are."""
        self.delete(scope_prefix)

    # Finding

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Find records by the cosine between their embeddings and the query's, best first, exactly."""
        query = _vector(query_embedding, "the query")
        wanted = _Wanted(scope_prefix, categories, metadata_filter)
        with self._lock:
            self._catch_up()
            found: list[tuple[MemoryRecord, float]] = []
            if not len(query) or not self._vectors.size:
                return found
            if len(query) != self._vectors.size:
                raise EmbeddingDimensionMismatchError(self._vectors.size, len(query))
            for id, score in self._vectors.nearest(query):
                if score < min_score or len(found) >= limit:
                    break
                kept = self._kept.get(id)
                if kept is not None and wanted.has(kept.record):
                    found.append((self._given(kept), score))
            return found

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record of an id, or None."""
        with self._lock:
            self._catch_up()
            kept = self._kept.get(record_id)
            return None if kept is None else self._given(kept)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """The records of a scope, the newest first."""
        if limit <= 0 or offset < 0:
            return []
        with self._lock:
            found = sorted(self._within(scope_prefix), key=lambda kept: _utc(kept.record.created_at), reverse=True)
            return [self._given(kept) for kept in found[offset : offset + limit]]

    # Scopes

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """How many records a scope holds, of which categories and of what time, and the scopes right below it."""
        path = normalize_scope_path(scope)
        with self._lock:
            records = [kept.record for kept in self._within(path)]
        times = sorted((record.created_at for record in records), key=_utc)
        return ScopeInfo(
            path=path,
            record_count=len(records),
            categories=sorted({category for record in records for category in record.categories}),
            oldest_record=times[0] if times else None,
            newest_record=times[-1] if times else None,
            child_scopes=_children(path, records),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes right below one."""
        path = normalize_scope_path(parent)
        with self._lock:
            return _children(path, [kept.record for kept in self._within(path)])

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """The categories of a scope, and how many records have each."""
        counts: dict[str, int] = {}
        with self._lock:
            for kept in self._within(scope_prefix):
                for category in kept.record.categories:
                    counts[category] = counts.get(category, 0) + 1
        return counts

    def count(self, scope_prefix: str | None = None) -> int:
        """How many records a scope holds."""
        with self._lock:
            return len(self._within(scope_prefix))

    # The same without holding up an event loop

    async def asave(self, records: list[MemoryRecord]) -> None:
        await in_thread(self.save, records)

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        return await in_thread(
            self.search, query_embedding, scope_prefix, categories, metadata_filter, limit, min_score
        )

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        return await in_thread(self.delete, scope_prefix, categories, record_ids, older_than, metadata_filter)

    # What is kept in memory

    def _catch_up(self) -> None:
        """Apply what was written since the last check, by anyone."""
        engine, tenant = self._store.core.engine, self._store.core.tenant
        for _ in range(0 if self._after is None else _PAGES):
            assert self._after is not None
            try:
                commits = engine.feed(tenant, self._after, _PAGE)
            except FeedTrimmed:
                break
            touched = {change.id for commit in commits for change in commit.changes if change.kind == FILE}
            if "" in touched:  # something was erased, and the feed does not say what
                break
            self._take_again([id.removeprefix(self._begin) for id in touched if id.startswith(self._begin)])
            self._after = commits[-1].position if commits else self._after
            if len(commits) < _PAGE:
                return
        self._read_all(engine.head(tenant))

    def _read_all(self, end: int) -> None:
        """Read the folder again. The end of the feed was read before: what comes later is read again."""
        self._after = None  # after an interruption in between, start over
        self._kept, self._vectors = {}, _Vectors()
        for file in self._folder.files():
            self._take(file.path, file)
        self._after = end

    def _take_again(self, paths: Sequence[str]) -> None:
        """Apply changes to some files. All are dropped first: a new vector may be longer than all before."""
        book = self._folder.filebook
        there = book.files([record for record in book.records(paths).values() if book.is_here(record)])
        for path in paths:
            self._take(path, None)
        for file in there:
            self._take(file.path, file)

    def _take(self, path: str, file: File | None) -> None:
        if path.startswith(_VECTOR):
            id = path.removeprefix(_VECTOR)
            self._vectors.put(id, None if file is None else _unpacked(file))
        elif path.startswith(_RECORD):
            id = path.removeprefix(_RECORD)
            self._kept.pop(id, None)
            if file is not None:
                self._kept[id] = _Kept(_record(id, file), file.version)

    def _within(self, scope: str | None) -> list[_Kept]:
        self._catch_up()
        wanted = _Wanted(scope)
        return [kept for kept in self._kept.values() if wanted.has(kept.record)]

    def _given(self, kept: _Kept) -> MemoryRecord:
        """A record as CrewAI has it: with its embedding, because it is saved again as a whole, and to be changed."""
        vector = self._vectors.get(kept.record.id)
        copy = kept.record.model_copy(deep=True)
        copy.embedding = None if vector is None else vector.tolist()
        return copy

    def _writings(self, records: Iterable[MemoryRecord]) -> list[FileWrite | FileDelete]:
        """What saving these comes to. A vector that is there already is not written again, if it is there still."""
        changes: list[FileWrite | FileDelete] = []
        size = self._vectors.size
        for record in records:
            vector = _vector(record.embedding or (), f"the record {record.id!r}")
            size = size or len(vector)
            if len(vector) not in (0, size):
                raise EmbeddingDimensionMismatchError(size, len(vector))
            id = check_id(record.id, "the id of a record")
            kept, known = self._kept.get(id), self._vectors.get(id)
            same = known is not None and kept is not None and np.array_equal(known, vector)
            anew = len(vector) > 0 and not same
            # With a vector it is whole, whatever was there; without, it relies on what there is of one.
            expect = None if anew else 0 if kept is None else kept.version
            changes.append(FileWrite(_RECORD + id, _content(record), expect))
            if anew:
                changes.append(FileWrite(_VECTOR + id, _FORM + vector.astype(_STORED).tobytes()))
            elif not len(vector) and known is not None:
                changes.append(FileDelete(_VECTOR + id))
        return changes

    def _deletions(self, kept: _Kept) -> Iterator[FileDelete]:
        yield FileDelete(_RECORD + kept.record.id, kept.version)
        if self._vectors.get(kept.record.id) is not None:
            yield FileDelete(_VECTOR + kept.record.id)


class _Kept(NamedTuple):
    """A record without its embedding, and the version of its file."""

    record: MemoryRecord
    version: int


class _Wanted(NamedTuple):
    """What records are asked for. What is not said is not asked for."""

    scope: str | None = None
    categories: Sequence[str] | None = None
    metadata: dict[str, Any] | None = None
    ids: Sequence[str] | None = None
    older_than: datetime | None = None

    def has(self, record: MemoryRecord) -> bool:
        return (
            (self.ids is None or record.id in self.ids)
            and (self.scope is None or _inside(record.scope, normalize_scope_path(self.scope)))
            and (not self.categories or any(category in record.categories for category in self.categories))
            and all(record.metadata.get(name) == value for name, value in (self.metadata or {}).items())
            and (self.older_than is None or _utc(record.created_at) < _utc(self.older_than))
        )


class _Vectors:
    """Vectors by name, side by side in one array that grows by doubling; rows that became free are used again."""

    def __init__(self) -> None:
        self._row: dict[str, int] = {}
        self._begin(0)

    def _begin(self, size: int) -> None:
        self._rows: Vector = np.empty((8, size), np.float32)
        self._lengths: Vector = np.empty(8, np.float32)
        self._names: list[str | None] = []
        self._free: list[int] = []

    @property
    def size(self) -> int:
        """How many numbers a vector has; 0 while there is none."""
        return self._rows.shape[1] if self._row else 0

    def get(self, name: str) -> Vector | None:
        row = self._row.get(name)
        return None if row is None else self._rows[row]

    def put(self, name: str, vector: Vector | None) -> None:
        """Keep a vector under a name, or none any more."""
        if vector is None:
            if (row := self._row.pop(name, None)) is not None:
                self._names[row] = None
                self._free.append(row)
            return
        if not self._row:
            self._begin(len(vector))  # the first one says how long all are
        if len(vector) != self._rows.shape[1]:  # two processes began with different embedders at once
            _log.warning("the embedding of record %r has %d numbers and others have %d: it will not be found",
                         name, len(vector), self._rows.shape[1])  # fmt: skip
            return
        row = self._row.get(name, -1)
        if row < 0:
            row = self._row[name] = self._free.pop() if self._free else self._another()
        self._names[row] = name
        self._rows[row] = vector
        self._lengths[row] = np.linalg.norm(vector.astype(np.float64))

    def _another(self) -> int:
        row = len(self._names)
        self._names.append(None)
        if row == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
            self._lengths = np.concatenate([self._lengths, np.empty_like(self._lengths)])
        return row

    def nearest(self, query: Vector) -> Iterator[tuple[str, float]]:
        """Names with the cosine to a query, highest first. A vector of nothing but zeros is like none."""
        used, length = len(self._names), np.linalg.norm(query.astype(np.float64))  # in 32 bits its square may overflow
        lengths, unit = self._lengths[:used], (query / (length or 1.0)).astype(np.float32)
        dots = self._rows[:used] @ unit
        cosines = np.divide(dots, lengths, out=np.zeros(used, np.float32), where=lengths > 0).clip(-1, 1)
        for row in np.argsort(-cosines, kind="stable"):
            if (name := self._names[row]) is not None:
                yield name, float(cosines[row])


def _vector(numbers: Sequence[float], whose: str) -> Vector:
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused below
            vector = np.asarray(numbers, np.float32)
    except (TypeError, ValueError) as error:
        raise Invalid(f"the embedding of {whose} is not a list of numbers: {error}") from error
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise Invalid(f"the embedding of {whose} must be one list of finite numbers")
    return vector


def _unpacked(file: File) -> Vector:
    stored = file.content
    if not isinstance(stored, bytes) or not stored.startswith(_FORM) or (len(stored) - len(_FORM)) % _STORED.itemsize:
        raise Corrupt(f"file {file.path!r} is not a vector of CrewAI's memory", path=file.path)
    return np.frombuffer(stored, _STORED, offset=len(_FORM))


def _content(record: MemoryRecord) -> dict[str, Any]:
    """What the file of a record holds. Beside a ``value``, only the ``text`` is what recall reads."""
    value = {
        "scope": record.scope,
        "categories": record.categories,
        "metadata": record.metadata,
        "importance": record.importance,
        "created_at": record.created_at.isoformat(),
        "last_accessed": record.last_accessed.isoformat(),
        "source": record.source,
        "private": record.private,
    }
    return {"text": record.content, "value": value}


def _record(id: str, file: File) -> MemoryRecord:
    try:
        return MemoryRecord(id=id, content=file.content["text"], **file.content["value"])
    except (TypeError, ValueError, KeyError) as error:
        raise Corrupt(f"file {file.path!r} is not a record of CrewAI's memory: {error}", path=file.path) from error


def _inside(scope: str, prefix: str) -> bool:
    path = normalize_scope_path(scope)
    return prefix in ("/", path) or path.startswith(f"{prefix}/")


def _children(parent: str, records: Iterable[MemoryRecord]) -> list[str]:
    root = parent.rstrip("/") + "/"
    paths = (normalize_scope_path(record.scope) for record in records)
    return sorted({root + path[len(root) :].split("/")[0] for path in paths if path.startswith(root) and path != root})


def _utc(moment: datetime) -> datetime:
    """CrewAI's own times are in UTC without saying so."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class HoldfastFlowPersistence(FlowPersistence):
    """Where flows keep their state: ``@persist(HoldfastFlowPersistence("agent.db"))``.

    Each flow is the thread of its id. Every saved state stays a revision, so ``thread.state(dict, revision=2)`` says
    what it was and ``thread.revisions()`` which method left it. The last save counts, as in CrewAI.
    """

    persistence_type: str = Field(default="HoldfastFlowPersistence")
    address: str | None = None
    user: str | None = None
    agent: str | None = None
    _held: OpenedStore = PrivateAttr()

    def __init__(self, store: StoreOrAddress | None = None, /, **fields: Any) -> None:
        kept = store if isinstance(store, str | Path) else fields.get("address")
        if kept is not None:
            fields["address"] = kept_address(kept)
        super().__init__(**fields)
        given = store if store is not None or kept is None else whole_address(str(kept))
        if given is None:
            raise Misconfigured("a persistence made from an open store cannot be made again from its fields: "
                                "give HoldfastFlowPersistence the address of the store")  # fmt: skip
        self._held = OpenedStore(given)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def init_db(self) -> None:
        """Nothing to do: an open store is ready."""

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def save_state(self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel) -> None:
        """Save the state that a method left, and that it ended, in one commit."""
        value = _plain(state_data)

        def commit(thread: Thread) -> None:
            with thread.turn() as turn:
                turn.append(event(_METHOD, method=method_name))
                turn.save(value, expect="any", by=method_name)

        # Methods of one flow may end at the same time.
        compare_and_set(lambda: self._thread(flow_uuid), commit, f"flow {flow_uuid!r}", thread=flow_uuid)

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """The state that was saved last, or None."""
        loaded = self._thread(flow_uuid).state(dict)
        return dict(loaded.value) if loaded else None

    def save_pending_feedback(
        self, flow_uuid: str, context: PendingFeedbackContext, state_data: dict[str, Any] | BaseModel
    ) -> None:
        """Save the state in which a flow waits for a person, and what that person was asked, in one commit."""
        value, asked = _plain(state_data), _asked(context)
        thread = self._thread(flow_uuid)

        def commit(revision: int) -> None:
            with thread.turn() as turn:
                turn.append(event(_ASKED, method=context.method_name, revision=revision + 1, context=asked))
                turn.save(value, expect=revision, by=context.method_name)

        compare_and_set(lambda: thread.state(dict).revision, commit, f"flow {flow_uuid!r}", thread=flow_uuid)

    def load_pending_feedback(self, flow_uuid: str) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        """The state in which a flow waits for a person, and what was asked; None when it does not wait."""
        thread = self._thread(flow_uuid)
        waiting = _waiting(thread)
        if waiting is None:
            return None
        state = thread.state(dict, revision=waiting.content["revision"])
        return dict(state.value), _asked_again(waiting.content["context"])

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """Record that the flow waits no longer."""
        thread = self._thread(flow_uuid)
        waiting = _waiting(thread)
        if waiting is not None:
            thread.append(event(_GIVEN, method=waiting.content["method"]), key=f"feedback-given:{waiting.number}")

    def _thread(self, flow: str) -> Thread:
        return self._held.store.thread(flow, user=self.user, agent=self.agent, tags=("crewai-flow",))


def _plain(state: dict[str, Any] | BaseModel) -> dict[str, Any]:
    if not isinstance(state, dict | BaseModel):
        raise Invalid(f"the state of a flow is a dict or a pydantic model, not {type(state).__name__}")
    try:
        return dict(to_jsonable_python(state))
    except (PydanticSerializationError, ValueError) as error:
        raise Invalid(f"this state of a flow cannot be stored: {error}") from error


def _waiting(thread: Thread) -> Entry | None:
    """The entry of a question to a person that is still open."""
    for entry in reversed(thread.log()):
        name = entry.content.get("name") if entry.kind == "event" else None
        if name in (_ASKED, _GIVEN):
            return entry if name == _ASKED else None
    return None


def _asked(context: PendingFeedbackContext) -> dict[str, Any]:
    """A context as plain data. The numbers of a trace have 128 bits, which JSON readers do not keep."""
    trace = context.trace_context
    return {**to_jsonable_python(context.to_dict()), "trace_context": [str(one) for one in trace] if trace else None}


def _asked_again(content: dict[str, Any]) -> PendingFeedbackContext:
    trace = content.get("trace_context")
    return PendingFeedbackContext.from_dict(
        {**content, "trace_context": [int(one) for one in trace] if trace else None}
    )
