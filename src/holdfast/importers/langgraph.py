"""Checkpoints of LangGraph, as its SQLite and Postgres savers keep them, imported into the thread of the same id.

Every checkpoint of every namespace comes in through ``HoldfastSaver``, the oldest first, with what its tasks wrote, so
that a graph continues where it was and can go back as far as before. Only LangGraph can read a checkpoint's values, so
LangGraph must be installed. It is asked for values that it knows to be safe and for those of the classes that the
caller named; whatever else a database names is not imported, and its checkpoint is refused. Deliberately absent: values
of LangGraph's long-term store, and encrypted ones.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import Context, ContextVar
from itertools import groupby
from typing import Any, NamedTuple

from holdfast import Store
from holdfast.errors import Conflict, Corrupt, HoldfastError, Invalid, Unsupported
from holdfast.extension import Scope
from holdfast.importers.database import ForeignDatabase
from holdfast.importers.graph_rows import (
    CheckpointRow,
    CheckpointRows,
    CheckpointWrite,
    FileRows,
    ServerRows,
    is_checkpoints,
)
from holdfast.importers.graph_types import Given, Types
from holdfast.importers.parts import ImportPlan, ImportProblem, Step, buried, differs, owner_of
from holdfast.importers.source import ImportOptions, ImportSource, RefusedItem
from holdfast.store import open as open_store

_SENDS = "__pregel_tasks"
_USER = "user_id"
_READING = ContextVar("reading", default=False)


class ForeignCheckpoint(NamedTuple):
    """One checkpoint as LangGraph sees it. ``writes`` are by task and its path."""

    id: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    writes: list[tuple[str, str, list[tuple[str, Any]]]]


class LangGraphCheckpoints(ImportSource):
    """A database of checkpoints."""

    kind = "langgraph"
    title = "LangGraph checkpoints"

    def __init__(self, rows: CheckpointRows, wanted: ImportOptions) -> None:
        self._rows, self._wanted, self.place = rows, wanted, rows.place
        self._reading = CheckpointReader(wanted.types)
        self.counts = rows.counts()
        self.expected = self.counts["checkpoints"]
        if orphans := rows.orphans():
            self.notes = (f"{orphans:,} writes belong to checkpoints that were never saved, and are not imported",)

    @staticmethod
    def fits(database: ForeignDatabase) -> bool:
        """Whether this is such a database."""
        return is_checkpoints(database)

    @classmethod
    def of_file(cls, database: ForeignDatabase, wanted: ImportOptions) -> LangGraphCheckpoints:
        return cls(FileRows(database), wanted)

    @classmethod
    def of_server(cls, url: str, wanted: ImportOptions) -> LangGraphCheckpoints:
        rows = ServerRows(url)
        try:
            return cls(rows, wanted)
        except BaseException:
            rows.close()
            raise

    def parts(self) -> Iterator[CheckpointLine | RefusedItem]:
        for thread, namespace, count in self._rows.lines():
            yield CheckpointLine(thread, namespace, count, self._rows, self._reading, self._wanted)

    def settle(self) -> None:
        if unmet := self._reading.types.unmet():
            held = ", ".join(sorted(self._reading.found())) or "no class but LangGraph's own"
            raise Invalid(f"nothing in {self.place} is stored as {', '.join(unmet)}; it holds {held}", place=self.place)

    def close(self) -> None:
        self._reading.close()
        self._rows.close()


class CheckpointLine:
    """The checkpoints of one namespace of a thread. They are read as they are needed: together they may be large."""

    what = "checkpoints"

    def __init__(
        self, thread: str, namespace: str, size: int,
        rows: CheckpointRows, reading: CheckpointReader, wanted: ImportOptions,
    ) -> None:  # fmt: skip
        self.thread, self.namespace, self.size = thread, namespace, size
        self._rows, self._reading, self._wanted, self._left_out = rows, reading, wanted, set[str]()

    def problems(self) -> list[ImportProblem]:
        found, sends = list[ImportProblem](), set[str]()
        for row in self._rows.rows(self.thread, self.namespace):
            if any(write.channel == _SENDS for write in row.writes):
                sends.add(row.id)
            why = self._reading.problem(row, sends=row.parent in sends)
            if why is not None:
                where = f"thread {self.thread!r}{f', {self.namespace}' if self.namespace else ''}, checkpoint {row.id}"
                found.append(ImportProblem(row.id, where, why))
        return found

    def without(self, names: set[str]) -> CheckpointLine:
        rest = copy.copy(self)
        rest.size, rest._left_out = self.size - len(names), names
        return rest

    def plan(self, store: Store) -> ImportPlan:
        if owner_of(store, self.thread) is None and buried(store, "thread", [self.thread]):
            return ImportPlan(erased=self.size)
        fresh = self._fresh(store)
        return ImportPlan(fresh, self.size - fresh)

    def write(self, store: Store, step: Step) -> ImportPlan:
        planned = self.plan(store)
        if not planned.new:
            step(self.size)
            return planned
        versions = dict[str, dict[str, Any]]()
        for kept in self._kept():
            versions[kept.id] = kept.checkpoint["channel_versions"]
            stored = self._stored(store, kept.id)
            if stored is None or _lacking(stored, kept):
                self._own(store)
                if stored is None:
                    self._put(store, kept, versions.get(kept.parent or "", {}))
                for task, path, writes in kept.writes:
                    self._reading.saver(store).put_writes(self._config(kept.id), writes, task, path)
                stored = self._stored(store, kept.id)
                self._compare_writes(stored, kept)
            if (why := self._difference(stored, kept)) is not None:
                raise differs(f"checkpoint {kept.id} of thread {self.thread!r}: {why}")
            step(1)
        return planned

    def _put(self, store: Store, kept: ForeignCheckpoint, before: dict[str, Any]) -> None:
        """Save a checkpoint after its parent, of which these are the versions."""
        versions = kept.checkpoint["channel_versions"]
        changed = {name: version for name, version in versions.items() if before.get(name) != version}
        self._reading.saver(store).put(self._config(kept.parent), kept.checkpoint, kept.metadata, changed)

    def _compare_writes(self, stored: Any, kept: ForeignCheckpoint) -> None:
        here = _by_place(stored.pending_writes or ())
        for place, values in _by_place(_flat(kept)).items():
            if not self._reading.same(here.get(place), values):
                raise differs(f"a write of checkpoint {kept.id} of thread {self.thread!r} is not what was written")

    def _stored(self, store: Store, checkpoint: str | None) -> Any:
        """A checkpoint as it is here, or the newest. A saver notes what a run began with; this is not a run."""
        return Context().run(self._reading.saver(store).get_tuple, self._config(checkpoint))

    def _fresh(self, store: Store) -> int:
        """How many checkpoints are not here, or not with all that was written. Those that are here are compared; where
        anything is new, the newest one here must be of the source."""
        newest = None if owner_of(store, self.thread) is None else self._stored(store, None)
        ids, fresh = set[str](), 0
        for kept in self._kept():
            ids.add(kept.id)
            stored = None if newest is None else self._stored(store, kept.id)
            fresh += stored is None or _lacking(stored, kept)
            if stored is not None and (why := self._difference(stored, kept)) is not None:
                raise self._parted(f"its checkpoint {kept.id} is another one here: {why}")
        if fresh and newest is not None and newest.config["configurable"]["checkpoint_id"] not in ids:
            raise self._parted("it went on here, and the source has more to add")
        return fresh

    def _kept(self) -> Iterator[ForeignCheckpoint]:
        return map(self._reading.kept, self._taken())

    def _taken(self) -> Iterator[CheckpointRow]:
        return (row for row in self._rows.rows(self.thread, self.namespace) if row.id not in self._left_out)

    def whose(self, store: Store) -> Scope:
        """Whose the thread is, or becomes: of the user that its first checkpoint names."""
        here = owner_of(store, self.thread)
        if here is not None:
            return here
        first = next(self._taken(), None)
        named = None if first is None else first.metadata.get(_USER)
        return Scope(named if isinstance(named, str) and named else self._wanted.user, self._wanted.agent)

    def _own(self, store: Store) -> None:
        """Let the thread be whose it is: the saver would only know of a user that its config names."""
        if owner_of(store, self.thread) is None:
            whose = self.whose(store)
            thread = store.thread(self.thread, user=whose.user, agent=whose.agent, tags=(LangGraphCheckpoints.tag(),))
            thread.logbook.commit((thread.logbook.touch(),))

    def _config(self, checkpoint: str | None) -> dict[str, Any]:
        named = {"thread_id": self.thread, "checkpoint_ns": self.namespace}
        return {"configurable": named if checkpoint is None else {**named, "checkpoint_id": checkpoint}}

    def _difference(self, stored: Any, kept: ForeignCheckpoint) -> str | None:
        """What differs between a checkpoint here and the one in the source; None when nothing does.

        Writes are not looked at: a run that goes on here adds its own to the checkpoint that it goes on from.
        """
        if stored is None:
            return "it is not there"
        told = {**kept.checkpoint, "v": None}
        for name in {*told, *stored.checkpoint} - {"v"}:
            if not self._reading.same(stored.checkpoint.get(name), told.get(name)):
                return f"its {name} differ"
        if not self._reading.same(_told(stored.metadata), _told(kept.metadata)):
            return "its metadata differ"
        parent = None if stored.parent_config is None else stored.parent_config["configurable"]["checkpoint_id"]
        return None if parent == kept.parent else "its parent differs"

    def _parted(self, why: str) -> Conflict:
        return Conflict(
            f"thread {self.thread!r} cannot be imported: {why}; import into another store, or delete this thread first",
            thread=self.thread,
        )


class CheckpointReader:
    """LangGraph's own reader of its bytes, limited to what is safe, and the saver that stores what was read."""

    def __init__(self, types: Given) -> None:
        try:
            from langgraph.checkpoint.serde import event_hooks, jsonplus  # noqa: PLC0415

            from holdfast.adapters.langgraph import HoldfastSaver  # noqa: PLC0415 - only this needs a framework
        except ImportError as error:
            raise Unsupported(
                "what checkpoints hold, only LangGraph can read, and it is not installed here: "
                "pip install 'holdfast[langgraph]'"
            ) from error
        self.types, self._make = Types(types), HoldfastSaver
        self._serde = jsonplus.JsonPlusSerializer(
            allowed_msgpack_modules=self.types.allowed, allowed_json_modules=self.types.allowed_json
        )
        self._blocked, self._refused = set[tuple[str, str]](), set[tuple[str, str]]()
        self._savers: dict[int, Any] = {}
        with open_store("ram:", embedder="none") as nowhere:
            self._dump = HoldfastSaver(nowhere, types=self.types.classes).serde.dumps_typed
        with ExitStack() as closing:
            closing.callback(event_hooks.register_serde_event_listener(self._note))
            closing.enter_context(_silent(logging.getLogger(jsonplus.__name__)))
            self.close: Callable[[], None] = closing.pop_all().close

    def _note(self, event: Any) -> None:
        if _READING.get() and "blocked" in event["kind"]:
            self._blocked.add((event["module"], event["name"]))

    def found(self) -> set[str]:
        """The classes of someone's own that were met so far, as they are stored."""
        return {f"{module}.{name}" for module, name in self._refused | self.types.met}

    def saver(self, store: Store) -> Any:
        """What takes checkpoints into a store. Branches are part of a history, so it does not refuse any."""
        known = self._savers.get(id(store))
        if known is None or known.store is not store:
            known = self._savers[id(store)] = self._make(store, types=self.types.classes, branches=True)
        return known

    def problem(self, row: CheckpointRow, *, sends: bool) -> str | None:
        """Why a checkpoint cannot be taken in; None when it can."""
        self._blocked.clear()
        self.types.failed.clear()
        try:
            kept = self.kept(row)
            if self._blocked:
                return self._foreign()
            if self.types.failed:
                return self.types.failed[0]
            if sends and kept.checkpoint["v"] < 4:
                return "it is of a LangGraph before 0.5 and waits for sends; go on with it there once, then import it"
            self._dump([kept.checkpoint["channel_values"], kept.metadata, [writes for *_, writes in kept.writes]])
        except HoldfastError as error:
            return str(error)
        return None

    def _foreign(self) -> str:
        self._refused |= self._blocked
        names = sorted(self._blocked)
        held = ", ".join(f"{module}.{name}" for module, name in names)
        ways = " ".join(map(self.types.way, names))
        return f"it holds {held}, which is not imported unless you name the class ({ways}, or types)"

    def kept(self, row: CheckpointRow) -> ForeignCheckpoint:
        """A checkpoint with its values."""
        if row.whole is not None:
            checkpoint = self._load(row.whole, row.id)
        else:
            values = {name: self._load(typed, row.id) for name, typed in (row.values or {}).items()}
            plain = row.plain or {}
            checkpoint = {**plain, "channel_values": {**(plain.get("channel_values") or {}), **values}}
        if not isinstance(checkpoint, dict) or checkpoint.get("id") != row.id:
            raise Corrupt("it does not hold itself", checkpoint=row.id)
        checkpoint = _numbered(checkpoint)
        grouped = groupby(row.writes, key=lambda write: (write.task, write.path))
        writes = [
            (task, path, [(one.channel, self._load(one.value, row.id)) for one in sorted(ones, key=_numbered_first)])
            for (task, path), ones in grouped
        ]
        return ForeignCheckpoint(row.id, row.parent, checkpoint, row.metadata, writes)

    def _load(self, typed: tuple[str, bytes], id: str) -> Any:
        if "+" in typed[0]:
            raise Unsupported(f"it is encrypted ({typed[0]}); decrypt it with its program first", checkpoint=id)
        before = _READING.set(True)
        try:
            return self._serde.loads_typed(self.types.renamed(typed))
        except NotImplementedError as error:
            raise Unsupported(
                f"it is stored as {typed[0]}, which is not read: it could run code", checkpoint=id
            ) from error
        except Exception as error:  # whatever a decoder of someone else's raises, the bytes are what is wrong
            raise Corrupt(f"it is damaged: {type(error).__name__}: {error}", checkpoint=id) from error
        finally:
            _READING.reset(before)

    def same(self, one: Any, other: Any) -> bool:
        """Whether two values are the same; what has no equality of its own is compared as LangGraph would write it."""
        if _nothing(one) and _nothing(other):
            return True
        try:
            if bool(one == other):
                return True
        except (TypeError, ValueError):
            pass  # such as an array, which has no one answer
        return bool(self._serde.dumps_typed(one) == self._serde.dumps_typed(other))


@contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    """Suppress what LangGraph's reader would log: we report it in our own words."""

    def others(_: logging.LogRecord) -> bool:
        return not _READING.get()

    logger.addFilter(others)
    try:
        yield
    finally:
        logger.removeFilter(others)


def _numbered(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """A checkpoint whose versions are whole numbers, as our saver counts them. LangGraph's own savers write a whole
    number and a random one behind a point; the first alone says which of two is the later."""
    seen = checkpoint.get("versions_seen") or {}
    versions = checkpoint.get("channel_versions") or {}
    return {
        **checkpoint,
        "channel_versions": {name: _number(version) for name, version in versions.items()},
        "versions_seen": {node: {name: _number(one) for name, one in of.items()} for node, of in seen.items()},
    }


def _number(version: Any) -> Any:
    if not isinstance(version, str):
        return version
    whole = version.split(".", 1)[0]
    if not whole.isdecimal():
        raise Corrupt(f"{version!r} is not a version of a channel")
    return int(whole)


def _flat(kept: ForeignCheckpoint) -> list[tuple[str, str, Any]]:
    return [(task, channel, value) for task, _, writes in kept.writes for channel, value in writes]


def _lacking(stored: Any, kept: ForeignCheckpoint) -> bool:
    """Whether something was written to a checkpoint that is not here: since, or because an import was interrupted."""
    here = _by_place(stored.pending_writes or ())
    return any(place not in here for place in _by_place(_flat(kept)))


def _by_place(writes: Iterable[tuple[str, str, Any]]) -> dict[str, list[Any]]:
    """Written values by task and channel; the order among channels is the saver's own."""
    found: dict[str, list[Any]] = {}
    for task, channel, value in writes:
        found.setdefault(f"{task} {channel}", []).append(value)
    return found


def _told(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata as every saver keeps it: without a copy of the writes, which older versions of LangGraph put there."""
    return {
        name: value.replace("\x00", "") if isinstance(value, str) else value
        for name, value in metadata.items()
        if name != "writes"
    }


def _numbered_first(write: CheckpointWrite) -> tuple[bool, int]:
    """Errors, interrupts and the like have numbers below zero; the others are counted without them."""
    return write.number < 0, write.number


def _nothing(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)
