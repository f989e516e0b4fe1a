"""A thread's handoff for async callers.

Deliberately absent: rules of its own. It wraps its blocking twin, and a test keeps their signatures equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from holdfast.aio.offload import Offload
from holdfast.handoff import Handoff, HandoffDocument, HandoffFile, HandoffRevision
from holdfast.handoff.handoff import Format


class AsyncHandoff:
    """A ``Handoff`` whose methods are awaited."""

    def __init__(self, handoff: Handoff, offload: Offload) -> None:
        self._handoff, self._offload = handoff, offload

    def __repr__(self) -> str:
        return f"Async{self._handoff!r}"

    async def read(self, revision: int | None = None) -> HandoffDocument:
        return await self._offload.run(self._handoff.read, revision)

    async def markdown(self) -> str:
        return await self._offload.run(self._handoff.markdown)

    async def history(self, last: int | None = None) -> list[HandoffRevision]:
        return await self._offload.run(self._handoff.history, last)

    async def update(  # noqa: PLR0913 - as in its blocking twin
        self,
        *,
        goal: str | None = None,
        start: str | None = None,
        features: str | Sequence[str | Mapping[str, Any]] | Mapping[str, bool] | None = None,
        done: str | Sequence[str] | None = None,
        todo: str | Sequence[str] | None = None,
        blockers: str | Sequence[str] | None = None,
        next_action: str | None = None,
        decisions: str | Sequence[str] | None = None,
        context: str | dict[str, Any] | list[Any] | None = None,
        replace: bool = False,
        expect: int | None = None,
        by: str = "agent",
    ) -> int:
        return await self._offload.run(
            self._handoff.update,
            goal=goal, start=start, features=features, done=done, todo=todo, blockers=blockers,
            next_action=next_action, decisions=decisions, context=context, replace=replace, expect=expect, by=by,
        )  # fmt: skip

    async def write(
        self,
        path: str | PathLike[str],
        *,
        format: Format | None = None,
        git: bool = False,
        message: str | None = None,
        force: bool = False,
        by: str = "agent",
    ) -> HandoffFile:
        return await self._offload.run(
            self._handoff.write, path, format=format, git=git, message=message, force=force, by=by
        )

    async def load(
        self,
        path_or_text: str | bytes | PathLike[str],
        *,
        format: Format | None = None,
        by: str = "person",
        force: bool = False,
    ) -> HandoffDocument:
        return await self._offload.run(self._handoff.load, path_or_text, format=format, by=by, force=force)

    async def reload(self, path: str | PathLike[str], *, by: str = "person") -> bool:
        return await self._offload.run(self._handoff.reload, path, by=by)
