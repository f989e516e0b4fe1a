"""What an agent knows, for async callers.

Deliberately absent: rules of its own. It wraps its blocking twin, and a test keeps their signatures equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from holdfast.aio.offload import Offload
from holdfast.checks import check_several
from holdfast.memory.conflicts import Contradiction
from holdfast.memory.extraction import Extractor
from holdfast.memory.facts import FactVersion
from holdfast.memory.graph import Link
from holdfast.memory.handle import Details, Memories, NearFilters, Only, Progress
from holdfast.records import Memory, Origin, Recalled


class AsyncMemories:
    """A ``Memories`` whose methods are awaited."""

    def __init__(self, memories: Memories, offload: Offload) -> None:
        self._memories, self._offload = memories, offload

    def __repr__(self) -> str:
        return f"Async{self._memories!r}"

    async def remember(
        self,
        text: str,
        *,
        kind: str = "semantic",
        subject: str | None = None,
        key: str | None = None,
        origin: str | dict[str, Any] | Origin | None = None,
        **details: Unpack[Details],
    ) -> Memory:
        return await self._offload.to_end(
            self._memories.remember, text, kind=kind, subject=subject, key=key, origin=origin, **details
        )

    async def remember_all(self, items: Iterable[str | dict[str, Any]]) -> list[Memory]:
        return await self._offload.to_end(self._memories.remember_all, check_several("items", items))

    async def link(self, subject: str, relation: str, object: str, **details: Any) -> Memory:
        return await self._offload.to_end(self._memories.link, subject, relation, object, **details)

    async def decide(
        self,
        decision: str,
        *,
        because: str | None = None,
        about: str | None = None,
        subject: str | None = None,
        origin: str | dict[str, Any] | Origin | None = None,
        **details: Unpack[Details],
    ) -> Memory:
        return await self._offload.to_end(
            self._memories.decide, decision, because=because, about=about, subject=subject, origin=origin, **details
        )

    async def get(self, id: str) -> Memory:
        return await self._offload.run(self._memories.get, id)

    async def memories(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        tag: str | None = None,
        type: str | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        before: str | None = None,
        forgotten: bool = False,
    ) -> list[Memory]:
        return await self._offload.run(
            self._memories.memories, kind=kind, subject=subject, tag=tag, type=type, where=where, limit=limit,
            before=before, forgotten=forgotten,
        )  # fmt: skip

    async def recent(
        self,
        limit: int = 20,
        *,
        kind: str | None = None,
        type: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> list[Memory]:
        return await self._offload.run(self._memories.recent, limit, kind=kind, type=type, where=where)

    async def facts(
        self,
        *,
        subject: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        trust: str | None = None,
    ) -> list[Memory]:
        return await self._offload.run(
            self._memories.facts, subject=subject, as_of=as_of, known_at=known_at, trust=trust
        )

    async def fact(
        self,
        key: str,
        subject: str | None = None,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        trust: str | None = None,
    ) -> Memory | None:
        return await self._offload.run(self._memories.fact, key, subject, as_of=as_of, known_at=known_at, trust=trust)

    async def history(
        self, key: str, subject: str | None = None, *, known_at: datetime | None = None, trust: str | None = None
    ) -> list[FactVersion]:
        return await self._offload.run(self._memories.history, key, subject, known_at=known_at, trust=trust)

    async def links(self, entity: str | None = None, *, hops: int = 1, as_of: datetime | None = None) -> list[Link]:
        return await self._offload.run(self._memories.links, entity, hops=hops, as_of=as_of)

    async def procedures(self, limit: int | None = None, *, trust: str | None = None) -> list[Memory]:
        return await self._offload.run(self._memories.procedures, limit, trust=trust)

    async def contradictions(self, *, subject: str | None = None, limit: int | None = 100) -> list[Contradiction]:
        return await self._offload.run(self._memories.contradictions, subject=subject, limit=limit)

    async def correct(
        self,
        id: str,
        text: str | None = None,
        *,
        origin: str | dict[str, Any] | Origin | None = None,
        **details: Unpack[Details],
    ) -> Memory:
        return await self._offload.to_end(self._memories.correct, id, text, origin=origin, **details)

    async def end(self, id: str, at: datetime | None = None) -> Memory:
        return await self._offload.to_end(self._memories.end, id, at)

    async def forget(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        subject: str | None = None,
        tag: str | None = None,
        kind: str | None = None,
        dry_run: bool = False,
        erase: bool = False,
    ) -> list[Memory]:
        return await self._offload.to_end(
            self._memories.forget, id, key=key, subject=subject, tag=tag, kind=kind, dry_run=dry_run, erase=erase
        )

    async def unforget(self, id: str) -> Memory:
        return await self._offload.to_end(self._memories.unforget, id)

    async def used(self, id: str, *, helped: bool | None = None) -> Memory:
        return await self._offload.to_end(self._memories.used, id, helped=helped)

    async def recall(
        self,
        query: str,
        k: int = 10,
        *,
        as_of: datetime | None = None,
        explain: bool = False,
        within_ms: float | None = None,
        without: Collection[str] = (),
        touch: bool = False,
        **only: Unpack[Only],
    ) -> Recalled:
        return await self._offload.run(
            self._memories.recall, query, k, as_of=as_of, explain=explain, within_ms=within_ms, without=without,
            touch=touch, **only,
        )  # fmt: skip

    async def nearest(
        self,
        vector: Sequence[float],
        k: int = 10,
        *,
        model: str | None = None,
        min_score: float | None = None,
        touch: bool = False,
        **only: Unpack[NearFilters],
    ) -> Recalled:
        return await self._offload.run(
            self._memories.nearest, vector, k, model=model, min_score=min_score, touch=touch, **only
        )

    async def learn(self, thread: str, *, after: int = 0, extractor: Extractor | None = None) -> list[Memory]:
        return await self._offload.to_end(self._memories.learn, thread, after=after, extractor=extractor)

    def tools(self, format: str = "openai") -> list[dict[str, Any]]:
        return self._memories.tools(format)

    async def use(
        self,
        name: str,
        arguments: dict[str, Any] | str,
        *,
        origin: str | dict[str, Any] | Origin | None = None,
        trust: str = "stated",
        once: str | None = None,
        thread: str | None = None,
    ) -> str:
        return await self._offload.to_end(
            self._memories.use, name, arguments, origin=origin, trust=trust, once=once, thread=thread
        )

    async def rebuild(self, progress: Progress | None = None) -> int:
        return await self._offload.run(self._memories.rebuild, progress)

    async def reembed(self, progress: Progress | None = None) -> int:
        return await self._offload.run(self._memories.reembed, progress)

    async def rollback(self) -> str | None:
        return await self._offload.run(self._memories.rollback)
