"""What the tests of the LangGraph adapter share: a store on each engine, and warnings that are LangGraph's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast

Open = Callable[..., holdfast.Store]


def pytest_configure(config: pytest.Config) -> None:
    for ignored in (
        "ignore:`DeltaChannel`",
        "ignore:.*DeltaChannel.*beta",
        "ignore::langchain_core._api.beta_decorator.LangChainBetaWarning",
        "ignore::langgraph.warnings.LangGraphDeprecationWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture(params=["ram", "sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opening(engine: str, opened: Open) -> Open:
    """Open the test's store, on each engine in turn; again gives one that knows nothing but what is kept."""
    first: list[holdfast.Store] = []

    def open_(**settings: Any) -> holdfast.Store:
        if engine == "ram" and first and not settings:  # nothing outlives it, so again gives the same
            return first[0]
        first.append(opened(engine, **settings))
        return first[-1]

    return open_


@pytest.fixture
def kept(opening: Open) -> holdfast.Store:
    """A store on each engine, Postgres too."""
    return opening()
