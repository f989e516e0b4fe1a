"""The notes of an agent of Pydantic AI's harness, each a file of a folder.

A note's version is that of its file, which never goes back, not even by a deletion, so a writer with an old one is
refused; what a note said before stays in the history of the file. The receipt of an operation is a file of the same
folder, under a path that no note can have, and is committed with what the operation did. Deliberately absent: a note
that was half written, and receipts forever: after thirty days a repetition counts as something new.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from holdfast import FileDelete, FileWrite
from holdfast.errors import Conflict
from holdfast.extension import OpenedStore, StoreOrAddress, in_thread, path_of, text_of
from holdfast.types import File

try:
    from pydantic_ai_harness.memory import (
        MemoryConflictError,
        MemoryFile,
        MemoryMutation,
        MemoryOperation,
        MemoryOperationConflictError,
        MemorySearchMatch,
        MemorySearchResult,
    )
except ImportError as error:
    raise ImportError("this needs the harness of Pydantic AI: pip install 'holdfast[pydantic-ai-harness]'") from error

NOTE = "note"
"""The tag of the files that are notes."""
_RECEIPTS = "operation="  # no path of a note has an equals sign
_KEPT_US = 30 * 24 * 3600 * 1_000_000
_SEGMENT = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_MOST_METADATA = 4_096
_MARK = "..."


class HoldfastMemoryStore:
    """Notes in the folder ``folder`` of a user and an agent; any number of processes may use it at once.

    ``store`` is an open store or the address of one; only what was opened here is closed by ``close``.
    """

    def __init__(
        self, store: StoreOrAddress, *, folder: str = "pydantic-ai", user: str | None = None, agent: str | None = None
    ) -> None:
        self._held = OpenedStore(store)
        self.store = self._held.store
        with self._held.begun() as begun:
            self.folder = begun.folder(folder, user=user, agent=agent)

    def __repr__(self) -> str:
        return f"HoldfastMemoryStore({self.folder!r})"

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._held.close()

    # What the harness asks of a store

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        _check_path(path)
        _check_positive("max_chars", max_chars)
        file = await in_thread(self.folder.find, path)
        if file is None:
            return None
        text, about = _text(file), _about(file)
        return MemoryFile(
            content=text[:max_chars],
            version=str(file.version),
            operation_id=about.get("operation"),
            truncated=len(text) > max_chars,
            metadata=about.get("metadata"),
        )

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        return await in_thread(self._repeated, operation)

    async def write(
        self, path: str, content: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Create or replace a note that is at the expected version, recording no metadata."""
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Create or replace a note that is at the expected version, along with what is to be said about the write."""
        _check_path(path)
        about = {"operation": None if operation is None else operation.id, "metadata": _checked(metadata)}
        about = {name: value for name, value in about.items() if value is not None}
        change = FileWrite(path, {"text": content, **about} if about else content, tags=(NOTE,))
        return await in_thread(self._changed, change, expected_version, operation)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Delete a note that is at the expected version. Its history stays in the folder."""
        _check_path(path)
        return await in_thread(self._changed, FileDelete(path), expected_version, operation)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        _check_prefix(prefix)
        _check_positive("limit", limit)
        return (await in_thread(self._paths, prefix))[:limit]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        """Find notes right below a prefix by the words of a query, those first that have the most of them.

        At most ``max_files`` notes are looked at, of each its first ``max_file_chars``; at most ``limit`` are given,
        with ``max_chars`` for all their names and excerpts together.
        """
        _check_prefix(prefix)
        words = query.lower().split()
        if not words or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)
        texts, more = await in_thread(self._below, prefix, max_files)
        cut = more or any(len(text) > max_file_chars for text in texts.values())
        found = []
        for path, text in texts.items():
            text = text[:max_file_chars]
            if score := _score(path.removeprefix(prefix), text, words):
                found.append(MemorySearchMatch(path=path, snippet=text, score=score))
        found.sort(key=lambda match: (-match.score, match.path))
        matches = list(_fitting(found[:limit], prefix, words, max_chars))
        return MemorySearchResult(matches=matches, scanned=len(texts), truncated=cut or len(matches) < len(found))

    # Inside

    def _changed(
        self, change: FileWrite | FileDelete, expected: str | None, operation: MemoryOperation | None
    ) -> MemoryMutation:
        """Carry out a change and its receipt in one commit, unless the operation was carried out before."""
        if operation is not None and (done := self._repeated(operation)) is not None:
            return done
        expect = _expected(change.path, expected)
        changes: list[FileWrite | FileDelete] = [change._replace(expect=expect)]
        if operation is not None:
            receipt = {"fingerprint": operation.fingerprint, "path": change.path, "existed": expect > 0}
            expires = self.store.core.clock.now() + _KEPT_US
            changes.append(FileWrite(_receipt(operation), receipt, 0, expires=expires))
        try:
            file = self.folder.commit(changes)[0]
        except Conflict as error:
            if operation is not None and (done := self._repeated(operation)) is not None:
                return done  # someone carried out the same one meanwhile
            raise MemoryConflictError(f"note {change.path!r} is not at version {expected!r} any more") from error
        version = None if isinstance(change, FileDelete) else str(file.version)
        return MemoryMutation(version=version, replayed=False, existed=expect > 0)

    def _repeated(self, operation: MemoryOperation) -> MemoryMutation | None:
        """What an operation came to before."""
        file = self.folder.find(_receipt(operation))
        if file is None:
            return None
        receipt = file.content
        if receipt["fingerprint"] != operation.fingerprint:
            raise MemoryOperationConflictError(
                f"operation {operation.id!r} was something else: give a new one its own id"
            )
        made = [
            note.version
            for note in self.folder.history(receipt["path"])
            if _about(note).get("operation") == operation.id
        ]
        return MemoryMutation(version=str(made[-1]) if made else None, replayed=True, existed=receipt["existed"])

    def _paths(self, prefix: str) -> list[str]:
        return sorted(map(path_of, self.folder.filebook.listed(self.store.core.engine, prefix, NOTE)))

    def _below(self, prefix: str, most: int) -> tuple[dict[str, str], bool]:
        """The texts of the notes right below a prefix, by path, and whether there are more; deeper ones are others'."""
        book = self.folder.filebook
        with self.store.core.engine.snapshot() as view:
            listed = book.listed(view, prefix, NOTE)
            records = [record for record in listed if "/" not in path_of(record).removeprefix(prefix)]
            files = book.files(sorted(records, key=path_of)[:most], view)
        return {file.path: _text(file) for file in files}, len(records) > most


def _text(file: File) -> str:
    return str(_about(file)["text"]) if "text" in _about(file) else text_of(file.content)


def _about(file: File) -> dict[str, Any]:
    """What a version says about the write that made it."""
    return file.content if isinstance(file.content, dict) else {}


def _receipt(operation: MemoryOperation) -> str:
    return _RECEIPTS + blake2b(operation.id.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _expected(path: str, version: str | None) -> int:
    if version is None:
        return 0
    if not (version.isascii() and version.isdecimal() and int(version)):
        raise MemoryConflictError(f"{version!r} was never a version of note {path!r}")
    return int(version)


# What the harness allows


def _check_path(path: str) -> None:
    for segment in path.split("/"):
        if not _SEGMENT.fullmatch(segment) or ".." in segment or segment == ".":
            raise ValueError(
                f"{path!r} is not a path of a note: names of letters, digits, '_', '-' and '.', between slashes"
            )


def _check_prefix(prefix: str) -> None:
    if prefix:
        _check_path(prefix.removesuffix("/"))


def _check_positive(name: str, value: int) -> None:
    if value <= 0:
        raise ValueError(f"{name} must be 1 or more, not {value}")


def _checked(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    if not metadata:
        return None
    texts = [text for pair in metadata.items() for text in pair]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("metadata of a note is text by text")
    if any("\x00" in text for text in texts):
        raise ValueError("metadata of a note cannot hold a NUL character")
    size = len(json.dumps(dict(metadata), ensure_ascii=False, separators=(",", ":")))
    if size > _MOST_METADATA:
        raise ValueError(f"metadata of a note takes {size} characters as JSON; at most {_MOST_METADATA} are allowed")
    return dict(metadata)


# Searching


def _score(name: str, text: str, words: list[str]) -> float:
    """How often the words occur; in a name, one counts twice."""
    name, text = name.lower(), text.lower()
    return float(sum(text.count(word) + 2 * name.count(word) for word in words))


def _fitting(found: list[MemorySearchMatch], prefix: str, words: list[str], room: int) -> Iterator[MemorySearchMatch]:
    """Matches with excerpts, as long as there is room for their names and something more."""
    for match in found:
        room -= len(match.path.removeprefix(prefix))
        if room <= 0:
            return
        excerpt = _excerpt(match.snippet, words, room)
        room -= len(excerpt)
        yield MemorySearchMatch(path=match.path, snippet=excerpt, score=match.score)


def _excerpt(text: str, words: list[str], room: int) -> str:
    """At most ``room`` characters around the first of the words, with a mark at an end that was cut off."""
    if len(text) <= room:
        return text
    lower = text.lower()
    first = min((at for word in words if (at := lower.find(word)) >= 0), default=0)
    start = max(0, min(first - room // 3, len(text) - room))
    mark = _MARK if room > 2 * len(_MARK) else ""
    before, after = mark if start else "", mark if start + room < len(text) else ""
    return before + text[start + len(before) : start + room - len(after)] + after
