"""Stands in for the conftest of LangGraph's own tests: the same fixtures, with one saver and one store.

``HOLDFAST_SUITE`` says which: ``memory`` is LangGraph's own, the control; the others are ours, on that engine. On
Postgres, whose address is in ``HOLDFAST_SUITE_DATABASE``, each test has a tenant of its own. Only tests that take a
saver or a store are kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.cache.sqlite import SqliteCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from tests.agents import AgentAction, AgentFinish  # LangGraph's own, of whose classes some states are made

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, HoldfastStore

NO_DOCKER = True
_WHICH = os.environ["HOLDFAST_SUITE"]
_TENANTS = count(1)
_TAKEN = {"sync_checkpointer", "async_checkpointer", "sync_store", "async_store"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[holdfast.Store]:
    """The store of a test, for its saver and its store alike."""
    where = {"ram": "ram:", "postgres": os.environ.get("HOLDFAST_SUITE_DATABASE", "")}.get(
        _WHICH, tmp_path / "graph.db"
    )
    with holdfast.open(where, tenant=f"test-{next(_TENANTS)}", embedder="none") as store:
        yield store


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def deterministic_uuids(mocker: Any) -> Any:
    numbers = (UUID(f"00000000-0000-4000-8000-{number:012}", version=4) for number in range(10_000))
    return mocker.patch("uuid.uuid4", side_effect=numbers)


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "memory"])
def cache(request: pytest.FixtureRequest) -> Any:
    return SqliteCache(path=":memory:") if request.param == "sqlite" else InMemoryCache()


def _saver(place: holdfast.Store) -> Any:
    types = {f"tests.{kind.__name__}": kind for kind in (AgentAction, AgentFinish)}
    return InMemorySaver() if _WHICH == "memory" else HoldfastSaver(place, types=types)


def _store(place: holdfast.Store) -> Any:
    return InMemoryStore() if _WHICH == "memory" else HoldfastStore(place)


# The name of the parameter is part of the names of stored snapshots.
sync_checkpointer = pytest.fixture(_saver, params=["memory"], name="sync_checkpointer")
async_checkpointer = pytest.fixture(_saver, params=["memory"], name="async_checkpointer")
sync_store = pytest.fixture(_store, params=["in_memory"], name="sync_store")
async_store = pytest.fixture(_store, params=["in_memory"], name="async_store")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if _TAKEN & {*getattr(item, "fixturenames", ())}]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
