"""What the tests of the ADK adapter share: warnings that are ADK's own, and the same services, bundled and ours."""

from __future__ import annotations

from collections.abc import Callable
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

ENGINES = ("ram", "sqlite", "postgres")
OURS = tuple(f"holdfast {engine}" for engine in ENGINES)
Opened = Callable[[str], holdfast.Store]


def pytest_configure(config: pytest.Config) -> None:
    for ignored in (
        "ignore:\\[EXPERIMENTAL\\]:UserWarning",
        "ignore::DeprecationWarning:google.*",
        "ignore::ResourceWarning:aiosqlite.*",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, opened: Opened) -> holdfast.Store:
    return opened(request.param)


@pytest.fixture(params=["in memory", "database", "sqlite", *OURS])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sessions(kind: str, tmp_path: Path, opened: Opened) -> Any:
    """A session service: ADK's own three, and ours on each engine."""
    if kind == "in memory":
        return InMemorySessionService()
    if kind == "database":
        return DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/theirs.db")
    if kind == "sqlite":
        return SqliteSessionService(db_path=str(tmp_path / "theirs.db"))
    return HoldfastSessionService(opened(kind.removeprefix("holdfast ")))


@pytest.fixture(params=["in memory", "files", *OURS])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path, opened: Opened) -> Any:
    """An artifact service: ADK's own two, and ours on each engine."""
    if request.param == "in memory":
        return InMemoryArtifactService()
    if request.param == "files":
        return FileArtifactService(root_dir=tmp_path / "artifacts")
    return HoldfastArtifactService(opened(request.param.removeprefix("holdfast ")))
