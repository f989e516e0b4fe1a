"""What the tests of the OpenAI Agents adapter share: a store on every engine, and an SDK that sends no traces."""

from __future__ import annotations

from collections.abc import Callable

import agents
import pytest

import holdfast

agents.set_tracing_disabled(True)


@pytest.fixture(params=["ram", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, opened: Callable[[str], holdfast.Store]) -> holdfast.Store:
    return opened(request.param)
