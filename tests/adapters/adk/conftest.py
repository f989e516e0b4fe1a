"""What the tests of the ADK adapter share: warnings that are ADK's own, and the same services, bundled and ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

import holdfast
from holdfast.adapters.adk import HoldfastArtifactService, HoldfastSessionService

OURS = ("holdfast ram", "holdfast sqlite")


def pytest_configure(config: pytest.Config) -> None:
    for ignored in (
        "ignore:\\[EXPERIMENTAL\\]:UserWarning",
        "ignore::DeprecationWarning:google.*",
        "ignore::ResourceWarning:aiosqlite.*",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    """Open stores by name, and close them in the end."""
    stores: list[holdfast.Store] = []

    def open_(kind: str) -> holdfast.Store:
        where = "ram:" if kind.endswith("ram") else tmp_path / f"agent{len(stores)}.db"
        stores.append(holdfast.open(where, embedder="none"))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture(params=["in memory", "database", "sqlite", *OURS])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sessions(kind: str, tmp_path: Path, opened: Any) -> Any:
    """A session service: ADK's own three, and ours on two engines."""
    if kind == "in memory":
        return InMemorySessionService()
    if kind == "database":
        return DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/theirs.db")
    if kind == "sqlite":
        return SqliteSessionService(db_path=str(tmp_path / "theirs.db"))
    return HoldfastSessionService(opened(kind))


@pytest.fixture(params=["in memory", "files", *OURS])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path, opened: Any) -> Any:
    """An artifact service: ADK's own two, and ours on two engines."""
    if request.param == "in memory":
        return InMemoryArtifactService()
    if request.param == "files":
        return FileArtifactService(root_dir=tmp_path / "artifacts")
    return HoldfastArtifactService(opened(request.param))
