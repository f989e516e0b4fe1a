"""What the tests of the LangGraph adapter share: a store on each engine, and a real Postgres, one for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.testing.postgres import Server

ENGINES = ("ram", "sqlite", "postgres")
_TENANTS = count(1)


def pytest_configure(config: pytest.Config) -> None:
    for ignored in (
        "ignore:`DeltaChannel`",
        "ignore:.*DeltaChannel.*beta",
        "ignore::langchain_core._api.beta_decorator.LangChainBetaWarning",
        "ignore::langgraph.warnings.LangGraphDeprecationWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server(fsync=False) as server:
        yield server


@pytest.fixture(scope="session")
def database(server: Server) -> str:
    """The address of the one database that all tests share, each under a tenant of its own."""
    return server.clone()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


Open = Callable[..., holdfast.Store]


@pytest.fixture
def opening(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open the test's store, on each engine in turn; again gives one that knows nothing but what is kept."""
    tenant = f"test-{next(_TENANTS)}"
    url: Any = {"ram": "ram:", "sqlite": tmp_path / "agent.db"}.get(engine) or request.getfixturevalue("database")
    stores: list[holdfast.Store] = []

    def open_(**settings: Any) -> holdfast.Store:
        if engine == "ram" and stores and not settings:
            return stores[0]
        stores.append(holdfast.open(url, tenant=tenant, embedder="none", **settings))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture
def kept(opening: Open) -> holdfast.Store:
    """A store on each engine, Postgres too."""
    return opening()
