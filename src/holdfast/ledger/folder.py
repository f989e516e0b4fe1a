"""Folders: files by path, every version kept, written by compare-and-set.

A file holds plain data (text, or anything JSON can hold) or bytes. Deleting leaves a mark in the history, so that a
late writer with an old version is refused and the file can be brought back; erasing leaves nothing.
Deliberately absent: how files are stored (``ledger.files``), and what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.checks import check_flag, check_several, check_whole
from holdfast.clock import to_datetime
from holdfast.engine.contract import Mark, Query, Record, Scope
from holdfast.errors import Invalid, NotFound, Unsupported, quoted
from holdfast.ledger.core import Core, fetch_events, scan_all
from holdfast.ledger.files import (
    FILE,
    FileBook,
    FileDelete,
    FileWrite,
    FindsFiles,
    Within,
    folder_of,
    here,
    path_of,
    to_file,
)
from holdfast.ledger.thread import check_count, check_tags
from holdfast.records import File, FolderInfo, Recalled


class Folder:
    """Files by path. ``store.folder("notes", user="ana")`` returns one; its first file creates it."""

    def __init__(self, core: Core, name: str, scope: Scope, finding: Callable[[], FindsFiles] | None = None) -> None:
        self.filebook = FileBook(core, name, scope, finding)
        self.name = self.filebook.name

    def __repr__(self) -> str:
        scope = self.filebook.scope
        return f"Folder({self.name!r}, user={scope.user!r}, agent={scope.agent!r})"

    # Reading

    def read(self, path: str, *, version: int | None = None) -> File:
        """The file at a path, or an older version of it. Raises ``NotFound`` if it does not exist or was deleted."""
        file = self.find(path) if version is None else self._older(path, version)
        if file is None:
            which = "" if version is None else f" in version {quoted(version)}"
            raise NotFound(f"there is no file {path!r}{which} in folder {self.name!r}", folder=self.name, path=path)
        return file

    def find(self, path: str) -> File | None:
        """The file at a path, or None."""
        record = self.filebook.record(path)
        return next(iter(self.filebook.files([record])), None) if self.filebook.is_here(record) else None

    def version(self, path: str) -> int:
        """The version number that the next write must expect; 0 if there is no file."""
        file = self.find(path)
        return 0 if file is None else file.version

    def files(self, prefix: str = "", *, tag: str | None = None, limit: int | None = None) -> list[File]:
        """The files whose paths begin with a prefix, by path; with ``tag``, only those that carry it."""
        if limit is not None:
            check_count("limit", limit)
        with self.filebook.core.engine.snapshot() as view:
            found = self.filebook.listed(view, _prefix(prefix), tag)
            return self.filebook.files(sorted(found, key=path_of)[:limit], view)

    def paths(self, prefix: str = "") -> list[str]:
        """The paths that begin with a prefix, in order, without reading the files."""
        return sorted(map(path_of, self.filebook.listed(self.filebook.core.engine, _prefix(prefix))))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        prefix: str = "",
        tag: str | None = None,
        among: Iterable[str] | None = None,
        explain: bool = False,
        within_ms: float | None = None,
    ) -> Recalled:
        """Find files by content, best first: by words and by meaning, as ``recall`` does.

        Only the newest versions are searched, of files whose paths begin with ``prefix``, that carry ``tag`` and whose
        paths are ``among`` those given. Bytes that are not UTF-8 text are not found. ``explain`` and ``within_ms`` work
        as in ``recall``.
        """
        book = self.filebook
        if book.finding is None:
            raise Unsupported("this handle cannot search; use one from store.folder(...)")
        named = None if among is None else frozenset(map(book.id, check_several("paths to search", among)))
        within = Within(book.scope, f"{book.place}/{_prefix(prefix)}", named, tag)
        return book.finding().search(within, query, k, explain=explain, within_ms=within_ms)

    def history(self, path: str) -> list[File]:
        """Every version of a file, oldest first; a deletion is a version that is ``deleted`` and has no content."""
        core, record = self.filebook.core, self.filebook.record(path)
        events = [] if record is None else core.engine.read(core.tenant, record.mark)
        return [to_file(record, event) for event in events if record is not None]

    # Writing

    def write(
        self,
        path: str,
        content: Any,
        *,
        expect: int | None = None,
        tags: Iterable[str] = (),
        expires: datetime | int | None = None,
        key: str | None = None,
    ) -> File:
        """Write a file as its next version, and return it.

        With ``expect`` it must be at that version (0: no file), or it raises ``Conflict``. ``tags`` and ``expires``
        (a datetime with a zone, or microseconds since 1970) replace the earlier ones. With ``key`` a repetition changes
        nothing.
        """
        return self.commit([FileWrite(path, content, expect, check_tags(tags), expires, key)])[0]

    def delete(self, path: str, *, expect: int | None = None, key: str | None = None, erase: bool = False) -> bool:
        """Delete a file; its history stays unless you give ``erase``. Return whether the file existed."""
        change = FileDelete(path, expect, key)
        if check_flag("erase", erase):
            return self.filebook.erase([change]) > 0
        return self.commit([change])[0].version > 0

    def move(self, path: str, to: str) -> File:
        """Move a file to another path, in one commit; its earlier versions stay under the old path."""
        if self.filebook.id(path) == self.filebook.id(to):
            raise Invalid(f"file {path!r} already has this path")
        file = self.read(path)
        return self.commit([FileDelete(path, file.version), FileWrite(to, file.content, 0, file.tags, file.expires)])[1]

    def commit(self, changes: Sequence[FileWrite | FileDelete]) -> list[File]:
        """Carry out several writes and deletions in one commit, all or none; at most one change per path.

        Deleting a file that does not exist changes nothing, and returns version 0.
        """
        return self.filebook.commit(changes)

    def _older(self, path: str, version: int) -> File | None:
        check_whole("a version", version)
        core, record = self.filebook.core, self.filebook.record(path)
        if record is None or not 1 <= version <= record.head:
            return None
        mark = Mark(record.mark.stream, version)
        event = fetch_events(core.engine, core.tenant, [mark]).get(mark)
        file = None if event is None else to_file(record, event)
        return None if file is None or file.deleted else file


def folders(core: Core, scope: Scope) -> list[FolderInfo]:
    """The folders that hold files of a user or an agent, or, with neither, of anyone, by name and owner."""
    now = core.clock.now()
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in scan_all(core.engine, core.tenant, Query(FILE, user=scope.user, agent=scope.agent)):
        if here(record, now):
            name = (folder_of(record), record.scope.user or "", record.scope.agent or "")
            found.setdefault(name, []).append(record)
    return [
        FolderInfo(
            name, records[0].scope.user, records[0].scope.agent, len(records), to_datetime(max(r.time for r in records))
        )
        for (name, *_), records in sorted(found.items(), key=lambda item: item[0])
    ]


def _prefix(prefix: object) -> str:
    if not isinstance(prefix, str):
        raise Invalid(f"a prefix is text, not {type(prefix).__name__}")
    return prefix
