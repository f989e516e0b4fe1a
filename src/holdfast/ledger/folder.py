"""Folders: files by path, every version kept, written by compare-and-set.

What is in a file is plain data (text, or anything JSON can hold) or bytes. Deleting leaves a mark in the history, so
that a late writer with an old version is refused and the file can be brought back; erasing leaves nothing.
Deliberately absent: how files are stored (``ledger.files``), and what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from holdfast.checks import check_flag, check_several, check_whole
from holdfast.clock import to_datetime, to_micros
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
    """The files of one place. ``store.folder("notes", user="ana")`` gives one; it comes into being with its first."""

    def __init__(self, core: Core, name: str, scope: Scope, finding: Callable[[], FindsFiles] | None = None) -> None:
        self.filebook = FileBook(core, name, scope, finding)
        self.name = self.filebook.name

    def __repr__(self) -> str:
        scope = self.filebook.scope
        return f"Folder({self.name!r}, user={scope.user!r}, agent={scope.agent!r})"

    # Reading

    def read(self, path: str, *, version: int | None = None) -> File:
        """The file at a path, or an older version of it. ``NotFound`` when it is not there (any more)."""
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
        """The number that the next write must expect: of the file as it is, and 0 where there is none."""
        file = self.find(path)
        return 0 if file is None else file.version

    def files(self, prefix: str = "", *, tag: str | None = None, limit: int | None = None) -> list[File]:
        """The files whose paths begin with a prefix, by path; with ``tag`` those that carry it."""
        if limit is not None:
            check_count("limit", limit)
        with self.filebook.core.engine.snapshot() as view:
            found = self.filebook.listed(view, _prefix(prefix), tag)
            return self.filebook.files(sorted(found, key=path_of)[:limit], view)

    def paths(self, prefix: str = "") -> list[str]:
        """The paths that begin with a prefix, in order, without reading what is in the files."""
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
        """Find files by what is in them, best first: by words and by meaning, as ``recall`` does.

        Only the newest versions are looked at, of files whose paths begin with ``prefix``, that carry ``tag`` and whose
        paths are ``among`` some. Bytes that are not text (UTF-8) are not found. ``explain`` and ``within_ms`` are as
        with ``recall``.
        """
        book = self.filebook
        if book.finding is None:
            raise Unsupported("this handle was made without what finds; store.folder(...) gives one that can search")
        named = None if among is None else frozenset(map(book.id, check_several("paths to look among", among)))
        within = Within(book.scope, f"{book.place}/{_prefix(prefix)}", named, tag)
        return book.finding().search(within, query, k, explain=explain, within_ms=within_ms)

    def history(self, path: str) -> list[File]:
        """Every version of a file, oldest first; one whose content is None and that is ``deleted`` ended it."""
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
        expires: int | None = None,
        key: str | None = None,
    ) -> File:
        """Write a file as its next version, and return it.

        With ``expect`` it must be at that version (0: not there), or it is ``Conflict``. ``tags`` and ``expires``
        (microseconds since 1970) replace those of before. With ``key`` a repetition changes nothing.
        """
        return self.commit([FileWrite(path, content, expect, check_tags(tags), expires, key)])[0]

    def delete(self, path: str, *, expect: int | None = None, key: str | None = None, erase: bool = False) -> bool:
        """Delete a file; its history stays, unless ``erase`` is given. Return whether it was there."""
        change = FileDelete(path, expect, key)
        if check_flag("erase", erase):
            return self.filebook.erase([change]) > 0
        return self.commit([change])[0].version > 0

    def move(self, path: str, to: str) -> File:
        """Give a file another path, in one commit; its earlier versions stay under the old one."""
        if self.filebook.id(path) == self.filebook.id(to):
            raise Invalid(f"file {path!r} has this path already")
        file = self.read(path)
        expires = None if file.expires is None else to_micros(file.expires)
        return self.commit([FileDelete(path, file.version), FileWrite(to, file.content, 0, file.tags, expires)])[1]

    def commit(self, changes: Sequence[FileWrite | FileDelete]) -> list[File]:
        """Carry out several writes and deletions in one commit, all of them or none; one change for each path.

        Deleting what is not there changes nothing, and is told by a version of 0.
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
    """The folders that hold files of a user or an agent, or of anybody where neither is named, by name and owner."""
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
