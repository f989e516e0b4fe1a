"""What the tests of both stores share: the bundled one beside ours, so that a test asks no more of ours than of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic_ai.conversation_store import ConversationStore, InMemoryConversationStore
from pydantic_ai_harness.memory import InMemoryStore

import holdfast
from holdfast.adapters.pydantic_ai import HoldfastConversations, HoldfastMemoryStore

ENGINES = ("ram", "sqlite", "postgres")
Opened = Callable[[str], holdfast.Store]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, opened: Opened) -> holdfast.Store:
    return opened(request.param)


@pytest.fixture(params=["bundled", *ENGINES])
def conversations(request: pytest.FixtureRequest, opened: Opened) -> ConversationStore:
    return InMemoryConversationStore() if request.param == "bundled" else HoldfastConversations(opened(request.param))


@pytest.fixture(params=["bundled", *ENGINES])
def notes(request: pytest.FixtureRequest, opened: Opened) -> InMemoryStore | HoldfastMemoryStore:
    return InMemoryStore() if request.param == "bundled" else HoldfastMemoryStore(opened(request.param))
