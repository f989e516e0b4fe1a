"""Graphs of a thread, for async callers.

Deliberately absent: rules of its own. It wraps its blocking twin, and a test keeps their signatures equal.
"""

from __future__ import annotations

from typing import Any

from holdfast.aio.offload import Offload
from holdfast.ledger.graphs import FrameInfo, Graph, GraphWrite


class AsyncGraph:
    """A ``Graph`` whose methods are awaited."""

    def __init__(self, graph: Graph, offload: Offload) -> None:
        self._graph, self._offload = graph, offload
        self.thread, self.namespace = graph.thread, graph.namespace

    def __repr__(self) -> str:
        return f"Async{self._graph!r}"

    async def frames(self, last: int | None = None) -> list[FrameInfo]:
        return await self._offload.run(self._graph.frames, last)

    async def frame(self, id: str | None = None) -> FrameInfo:
        return await self._offload.run(self._graph.frame, id)

    async def values(self, id: str | None = None) -> dict[str, Any]:
        return await self._offload.run(self._graph.values, id)

    async def writes(self, id: str | None = None) -> list[GraphWrite]:
        return await self._offload.run(self._graph.writes, id)
