"""Folders, for async callers.

Deliberately absent: rules of its own. It wraps its blocking twin, and a test keeps their signatures equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.aio.offload import Offload
from holdfast.ledger.files import FileDelete, FileWrite
from holdfast.ledger.folder import Folder
from holdfast.records import File, Recalled


class AsyncFolder:
    """A ``Folder`` whose methods are awaited."""

    def __init__(self, folder: Folder, offload: Offload) -> None:
        self._folder, self._offload = folder, offload
        self.name = folder.name

    def __repr__(self) -> str:
        return f"Async{self._folder!r}"

    async def read(self, path: str, *, version: int | None = None) -> File:
        return await self._offload.run(self._folder.read, path, version=version)

    async def find(self, path: str) -> File | None:
        return await self._offload.run(self._folder.find, path)

    async def version(self, path: str) -> int:
        return await self._offload.run(self._folder.version, path)

    async def files(self, prefix: str = "", *, tag: str | None = None, limit: int | None = None) -> list[File]:
        return await self._offload.run(self._folder.files, prefix, tag=tag, limit=limit)

    async def paths(self, prefix: str = "") -> list[str]:
        return await self._offload.run(self._folder.paths, prefix)

    async def history(self, path: str) -> list[File]:
        return await self._offload.run(self._folder.history, path)

    async def search(
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
        return await self._offload.run(
            self._folder.search, query, k, prefix=prefix, tag=tag, among=among, explain=explain, within_ms=within_ms
        )

    async def write(
        self,
        path: str,
        content: Any,
        *,
        expect: int | None = None,
        tags: Iterable[str] = (),
        expires: datetime | int | None = None,
        key: str | None = None,
    ) -> File:
        return await self._offload.to_end(
            self._folder.write, path, content, expect=expect, tags=tags, expires=expires, key=key
        )

    async def delete(
        self, path: str, *, expect: int | None = None, key: str | None = None, erase: bool = False
    ) -> bool:
        return await self._offload.to_end(self._folder.delete, path, expect=expect, key=key, erase=erase)

    async def move(self, path: str, to: str) -> File:
        return await self._offload.to_end(self._folder.move, path, to)

    async def commit(self, changes: Sequence[FileWrite | FileDelete]) -> list[File]:
        return await self._offload.to_end(self._folder.commit, changes)
