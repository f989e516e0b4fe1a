"""What the tests of the memory tool share: a store on every engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast


@pytest.fixture(params=["ram", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, opened: Callable[[str], holdfast.Store]) -> holdfast.Store:
    return opened(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store is kept that several processes open."""
    return str(tmp_path / "agent.db") if request.param == "sqlite" else str(request.getfixturevalue("database"))
