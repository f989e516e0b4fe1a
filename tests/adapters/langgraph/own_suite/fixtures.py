"""Stands in for the conftest of LangGraph's own tests: the same fixtures, with one saver and one store.

``HOLDFAST_SUITE`` says which: ``memory`` is LangGraph's own, the control; ``sqlite`` and ``ram`` are ours. Only tests
that take a saver or a store are kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.cache.sqlite import SqliteCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from tests.agents import AgentAction, AgentFinish  # LangGraph's own, of whose classes some states are made

from holdfast.adapters.langgraph import HoldfastSaver, HoldfastStore

NO_DOCKER = True
_WHICH = os.environ["HOLDFAST_SUITE"]
_TAKEN = {"sync_checkpointer", "async_checkpointer", "sync_store", "async_store"}


def _address(tmp_path: Path) -> str:
    return "ram:" if _WHICH == "ram" else str(tmp_path / "graph.db")


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


def _saver(tmp_path: Path) -> Iterator[Any]:
    if _WHICH == "memory":
        yield InMemorySaver()
        return
    with HoldfastSaver(
        _address(tmp_path), types={f"tests.{kind.__name__}": kind for kind in (AgentAction, AgentFinish)}
    ) as saver:
        yield saver


def _store(tmp_path: Path) -> Iterator[Any]:
    if _WHICH == "memory":
        yield InMemoryStore()
        return
    with HoldfastStore(_address(tmp_path)) as store:
        yield store


# The name of the parameter is part of the names of stored snapshots.
sync_checkpointer = pytest.fixture(_saver, params=["memory"], name="sync_checkpointer")
async_checkpointer = pytest.fixture(_saver, params=["memory"], name="async_checkpointer")
sync_store = pytest.fixture(_store, params=["in_memory"], name="sync_store")
async_store = pytest.fixture(_store, params=["in_memory"], name="async_store")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if _TAKEN & {*getattr(item, "fixturenames", ())}]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
