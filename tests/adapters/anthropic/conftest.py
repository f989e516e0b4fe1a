"""What the tests of the memory tool share: a store on every engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import holdfast


@pytest.fixture(params=["ram", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, opened: Callable[[str], holdfast.Store]) -> holdfast.Store:
    return opened(request.param)
