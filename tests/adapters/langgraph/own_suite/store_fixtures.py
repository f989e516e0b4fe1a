"""Stands in for the conftest of LangGraph's tests of its stores: where they make a store, they get ours.

``HOLDFAST_SUITE`` says which: ``theirs`` changes nothing, for a control. Where tests wait for items to expire, the
clock of our stores is put forward instead.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import langgraph.store.memory
import langgraph.store.sqlite
import langgraph.store.sqlite.aio
import numpy as np
import pytest

import holdfast
from holdfast.adapters.langgraph import HoldfastStore
from holdfast.testing import ManualClock

OURS = os.environ["HOLDFAST_SUITE"] == "ours"
CLOCK = ManualClock()


class Embedder:
    """LangChain's embeddings, as a store takes them."""

    name, local = "theirs", True

    def __init__(self, embed: Any, dims: int) -> None:
        self.dimension, self._embed = dims, embed

    def embed(self, texts: Any) -> Any:
        return np.asarray(self._embed.embed_documents(list(texts)), dtype=np.float32)


class Ours(HoldfastStore):
    """Made as LangGraph's are, whose index names what makes vectors; in memory, if no address is given."""

    def __init__(self, address: str = ":memory:", *, index: Any = None, ttl: Any = None) -> None:
        index = index or {}
        embedder: Any = Embedder(index["embed"], index["dims"]) if index else "none"
        self.inner = holdfast.open("ram:" if address == ":memory:" else address, clock=CLOCK, embedder=embedder)
        super().__init__(self.inner, index={"fields": index.get("fields") or index.get("text_fields")}, ttl=ttl)

    def close(self) -> None:
        super().close()
        self.inner.close()


if OURS:
    langgraph.store.memory.InMemoryStore = Ours
    langgraph.store.sqlite.SqliteStore = Ours
    langgraph.store.sqlite.AsyncSqliteStore = langgraph.store.sqlite.aio.AsyncSqliteStore = Ours


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _time_passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    async def later(seconds: float) -> None:
        CLOCK.advance(seconds)

    if OURS and request.module.__name__.endswith("test_ttl"):
        monkeypatch.setattr(request.module, "time", SimpleNamespace(sleep=CLOCK.advance))
        monkeypatch.setattr(request.module, "asyncio", SimpleNamespace(sleep=later))
