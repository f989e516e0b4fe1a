"""What the tests of both stores share: the bundled one beside ours, so that a test asks no more of ours than of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic_ai.conversation_store import ConversationStore, InMemoryConversationStore
from pydantic_ai_harness.memory import InMemoryStore

import holdfast
from holdfast.adapters.pydantic_ai import HoldfastConversations, HoldfastMemoryStore


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["bundled", "ram", "sqlite"])
def conversations(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ConversationStore]:
    if request.param == "bundled":
        yield InMemoryConversationStore()
        return
    with holdfast.open("ram:" if request.param == "ram" else tmp_path / "agent.db", embedder="none") as store:
        yield HoldfastConversations(store)


@pytest.fixture(params=["bundled", "ram", "sqlite"])
def notes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InMemoryStore | HoldfastMemoryStore]:
    if request.param == "bundled":
        yield InMemoryStore()
        return
    with holdfast.open("ram:" if request.param == "ram" else tmp_path / "agent.db", embedder="none") as store:
        yield HoldfastMemoryStore(store)
