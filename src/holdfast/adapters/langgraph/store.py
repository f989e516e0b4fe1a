"""Long-term memory of LangGraph: its ``BaseStore`` on a folder of a Holdfast store.

An item is one file, whose versions are the item's history. All puts of a batch are one commit, and the reads of a
batch see what was there before it. An item whose time to live is over is not there, from that moment on, whether or
not anybody has swept. Deliberately absent: an embedder of LangGraph's own (the store that is given has one), and a
second class for async callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, TypeVar

import msgspec
from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from holdfast import FileDelete, FileWrite
from holdfast.adapters.langgraph import items
from holdfast.adapters.langgraph.by_address import OpensByAddress, awaited
from holdfast.adapters.langgraph.items import Index, InvalidNamespace, ItemVersion
from holdfast.adapters.langgraph.matching import check_filter, matches, names_match
from holdfast.adapters.langgraph.sweeper import MINUTE, Number, Sweeps, check_minutes
from holdfast.errors import Conflict, Invalid
from holdfast.extension import (
    FILE,
    MAX_HITS,
    Delete,
    OpenedStore,
    Put,
    Query,
    Record,
    StoreOrAddress,
    View,
    in_thread,
    path_of,
    quoted,
    scan_all,
    to_datetime,
)
from holdfast.types import File, Recalled, RecallReport

__all__ = ["Explained", "Explanation", "HoldfastStore", "ItemVersion"]

T = TypeVar("T")
_PAGE = 500


class Explained(msgspec.Struct, frozen=True):
    """One item that a search found, and what each stage of the search gave it."""

    item: SearchItem
    why: dict[str, float]


class Explanation(msgspec.Struct, frozen=True):
    """How a search came to what it found, best first. See ``Recalled`` for ``confidence`` and ``relevant``."""

    found: tuple[Explained, ...]
    confidence: float
    relevant: bool
    report: RecallReport

    def __iter__(self) -> Iterator[Explained]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


class HoldfastStore(OpensByAddress, Sweeps, BaseStore):
    """LangGraph's store on a Holdfast store, or on the address of one, which it then opens, and ``close`` closes.

    ``index`` and ``ttl`` are as LangGraph's own stores take them; ``index={"fields": […]}`` is what a search looks at
    in items that do not say so themselves, everything without it. ``folder``, ``user`` and ``agent`` say where the
    items are kept: what belongs to a user is erased with the user.
    """

    supports_ttl = True

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        index: IndexConfig | Mapping[str, Any] | None = None,
        ttl: TTLConfig | None = None,
        folder: str = "langgraph",
        user: str | None = None,
        agent: str | None = None,
    ) -> None:
        self._fields, self.ttl_config = items.fields_of(index), items.check_ttl_config(ttl)
        self._held = OpenedStore(store)
        self._core = self._held.store.core
        with self._held.begun() as begun:
            self._folder = begun.folder(folder, user=user, agent=agent)
        self._book = self._folder.filebook

    def __repr__(self) -> str:
        return f"HoldfastStore({self._folder!r})"

    def close(self) -> None:
        """Stop sweeping, and close the store if it was opened here."""
        self.stop_ttl_sweeper()
        self._held.close()

    # The interface of LangGraph

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out several operations: first all reads, then all puts in one commit, the last of each key."""
        asked = list(ops)
        changes = self._changes({items.path_of(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)})
        results = self._reads(asked)
        if changes:
            self._folder.commit(changes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """``batch``, away from the event loop. A caller that is cancelled leaves it whole, never half written."""
        return await in_thread(self.batch, list(ops))

    def sweep_ttl(self) -> Number:
        """Remove what has expired, with its history, and return how many items that were.

        Nobody sees them any more in any case; this gives back the space that they take. Async programs may await it, as
        with LangGraph's async stores, but it blocks: ``asweep_ttl`` does not.
        """
        swept, query = 0, Query(FILE, tag=self._book.place, expired_before=self._core.clock.now())
        with self._core.engine.snapshot() as view:
            listed = list(scan_all(view, self._core.tenant, query))
        for expired in _pages(listed):
            swept += self._unless_changed([Delete(FILE, record.id, record.version) for record in expired])
        if swept:
            self._book.purge()
        return Number(swept)

    # Beyond it

    def current(self, namespace: tuple[str, ...], key: str) -> ItemVersion | None:
        """The item with its version, as ``compare_and_put`` wants it, or None. Reading so refreshes nothing."""
        file = self._folder.find(items.path_of(namespace, key))
        return None if file is None else items.to_version(file)

    def compare_and_put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        *,
        expect: int,
        index: Index = None,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> int:
        """Write an item that is still at version ``expect`` (0: that is not there), and return its new version.

        ``Conflict`` says that someone else was first: read it again.
        """
        _check_counts(expect=expect)
        path = items.path_of(namespace, key)
        if path.startswith("langgraph/"):
            raise InvalidNamespace('LangGraph keeps namespaces that begin with "langgraph" for itself')
        lasting = self.ttl_config.get("default_ttl") if isinstance(ttl, NotProvided) else ttl
        put = PutOp(namespace, key, value, index=index, ttl=lasting)
        writing = self._writing(path, put, self._created([path])[path])
        return self._folder.commit([writing._replace(expect=expect)])[0].version

    def history(self, namespace: tuple[str, ...], key: str) -> list[ItemVersion]:
        """Every version of an item, oldest first, deletions among them."""
        return [items.to_version(file) for file in self._folder.history(items.path_of(namespace, key))]

    def explain(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        query: str,
        *,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Explanation:
        """Search as ``search`` does, and say what each stage of it gave to each item. Refreshes nothing."""
        _check_counts(limit=limit, offset=offset)
        recalled = self._recalled(SearchOp(namespace_prefix, filter, limit, offset, query), explain=True)
        found = [
            Explained(SearchItem(**items.told(file), score=hit.score), hit.why)
            for hit in recalled.hits[offset : offset + limit]
            if (file := hit.file)
        ]
        return Explanation(tuple(found), recalled.confidence, recalled.relevant, recalled.report)

    def erase(self, namespace: tuple[str, ...], key: str) -> bool:
        """Remove an item with its history. Return whether there was anything."""
        return self._folder.delete(items.path_of(namespace, key), erase=True)

    acurrent, acompare_and_put, ahistory = awaited(current), awaited(compare_and_put), awaited(history)
    aexplain, aerase, asweep_ttl = awaited(explain), awaited(erase), awaited(sweep_ttl)

    # Writing

    def _changes(self, puts: Mapping[str, PutOp]) -> list[FileWrite | FileDelete]:
        """What puts come to as changes of files; one that is refused is refused before anything is done."""
        created = self._created(list(puts)) if puts else {}
        return [
            FileDelete(path) if op.value is None else self._writing(path, op, created[path])
            for path, op in puts.items()
        ]

    def _created(self, paths: Sequence[str]) -> dict[str, str | None]:
        """When items came into being; None where their files say so, which someone else may be making just now."""
        kept, now = self._book.records(paths), to_datetime(self._core.clock.now()).isoformat()
        told: dict[str, str | None] = dict.fromkeys(paths)
        told |= dict.fromkeys(kept, now)  # deleted or expired: it comes into being again
        return told | {file.path: file.content.get("created") for file in self._those_here(kept)}

    def _writing(self, path: str, op: PutOp, created: str | None) -> FileWrite:
        ttl, index = check_minutes("ttl", op.ttl), self._fields if op.index is None else op.index
        content = items.content_of(op.namespace, op.key, op.value, index, ttl, created)
        return FileWrite(path, content, tags=items.tags_of(op.namespace), expires=self._end(ttl) if ttl else None)

    def _end(self, ttl: float) -> int:
        """When an item expires that is touched now."""
        return self._core.clock.now() + round(ttl * MINUTE)

    def _refresh(self, read: Iterable[File]) -> None:
        """Let what was read live on for its whole time; its versions and their times stay as they are."""
        mortal = {file.path: file for file in read if "ttl" in file.content}
        puts = [
            self._book.prolonging(record, self._end(mortal[path].content["ttl"]))
            for path, record in (self._book.records(list(mortal)) if mortal else {}).items()
            if record.head == mortal[path].version and self._book.is_here(record)
        ]
        self._unless_changed(puts)  # whoever wrote or read one of them meanwhile did as much for it

    def _unless_changed(self, ops: Sequence[Put | Delete]) -> int:
        """Carry out what still finds the version that it expects, and return how many that were."""
        if not ops:
            return 0
        try:
            self._core.write(ops, self._core.clock.now())
        except Conflict:
            return 0 if len(ops) == 1 else sum(self._unless_changed([op]) for op in ops)
        return len(ops)

    # Reading

    def _reads(self, ops: Sequence[Op]) -> list[Result]:
        paths = {items.path_of(op.namespace, op.key) for op in ops if isinstance(op, GetOp)}
        got = {file.path: file for file in self._those_here(self._book.records([*paths]))} if paths else {}
        read: list[File] = []
        results = [self._read(op, got, read) for op in ops]
        self._refresh(read)
        return results

    def _read(self, op: Op, got: Mapping[str, File], read: list[File]) -> Result:
        """What an operation gives. The files whose time begins anew by it are added to ``read``."""
        if isinstance(op, GetOp):
            file = got.get(items.path_of(op.namespace, op.key))
            read += [file] if file is not None and op.refresh_ttl else []
            return None if file is None else Item(**items.told(file))
        if isinstance(op, SearchOp):
            found = self._found(op)
            read += [file for file, _ in found] if op.refresh_ttl else []
            return [SearchItem(**items.told(file), score=score) for file, score in found]
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise Invalid(f"{type(op).__name__} is not an operation of a store")

    def _found(self, op: SearchOp) -> list[tuple[File, float | None]]:
        _check_counts(limit=op.limit, offset=op.offset)
        end = op.offset + op.limit
        if not op.limit:
            return []
        if op.query and op.query.strip():
            return [(file, hit.score) for hit in self._recalled(op).hits[op.offset : end] if (file := hit.file)]
        with self._core.engine.snapshot() as view:
            if op.filter:
                return [(file, None) for file in islice(self._matching(op, view), op.offset, end)]
            records = list(islice(self._records(op.namespace_prefix, view, end), op.offset, end))
            return [(file, None) for file in self._book.files(records, view)]

    def _recalled(self, op: SearchOp, *, explain: bool = False) -> Recalled:
        """What a query finds among the items that a prefix and a filter leave."""
        among: set[str] | None = None
        if op.filter:
            with self._core.engine.snapshot() as view:
                among = {file.path for file in self._matching(op, view)}
        k, prefix = min(op.offset + op.limit, MAX_HITS), items.prefix_of(op.namespace_prefix)
        return self._folder.search(op.query or "", k, prefix=prefix, among=among, explain=explain)

    def _matching(self, op: SearchOp, view: View) -> Iterator[File]:
        """The files under a prefix that fit a filter, latest first."""
        check_filter(wanted := op.filter or {})
        for records in _pages(self._records(op.namespace_prefix, view)):
            files = self._book.files(records, view)
            yield from (file for file in files if matches(file.content["value"], wanted))

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        _check_counts(limit=op.limit, offset=op.offset)
        _check_counts(1, max_depth=1 if op.max_depth is None else op.max_depth)
        conditions = op.match_conditions or ()
        for _, pattern in conditions:
            items.check_labels(pattern)
        prefixes = (takewhile("*".__ne__, path) for kind, path in conditions if kind == "prefix")
        sure = max(map(tuple, prefixes), key=len, default=())
        with self._core.engine.snapshot() as view:
            spaces = {items.name_of(path_of(record))[0] for record in self._records(sure, view)}
        met = (space for space in spaces if all(names_match(space, *condition) for condition in conditions))
        return sorted({space[: op.max_depth] for space in met})[op.offset : op.offset + op.limit]

    def _records(self, namespace: Sequence[str], view: View, wanted: int | None = None) -> Iterator[Record]:
        """The records of what is in a namespace and below, latest first."""
        return self._book.listed(view, tag=items.prefix_of(namespace) or None, wanted=wanted)

    def _those_here(self, records: Mapping[str, Record]) -> list[File]:
        """Of what is kept under some paths, also of what was deleted or has expired, the files that are there."""
        present = [record for record in records.values() if self._book.is_here(record)]
        return self._book.files(present)


def _check_counts(least: int = 0, **given: Any) -> None:
    for name, value in given.items():
        if type(value) is not int or value < least:
            raise Invalid(f"{name} is a whole number, at least {least}, not {quoted(value)}")


def _pages(things: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(things)
    while page := list(islice(rest, _PAGE)):
        yield page
