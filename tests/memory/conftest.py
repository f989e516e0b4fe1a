"""Books and shelves of memories on each engine in turn, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine.contract import Scope
from holdfast.ids import Ids
from holdfast.ledger.core import Core
from holdfast.memory.book import Book
from holdfast.memory.shelf import Shelf
from holdfast.testing import ManualClock

_NUMBERS = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the server before a test's own fixtures: what it needs to run is nothing that the test left behind."""
    for item in items:
        known = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if known.get("store") == "postgres":
            item.fixturenames = ["postgres_engine", *item.fixturenames]  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def postgres_engine() -> Iterator[Any]:
    try:
        from holdfast.testing.postgres import Server, ServerUnavailable  # noqa: PLC0415 - it needs an extra
    except ImportError as error:
        pytest.skip(f"backend postgres: {error}")
    try:
        server = Server(fsync=False)
    except ServerUnavailable as error:
        pytest.skip(f"backend postgres: {error}")
    with server, holdfast.open(server.clone()) as store:
        yield store._core.engine


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["ram", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[holdfast.Store]:
    if request.param == "postgres":
        engine = request.getfixturevalue("postgres_engine")
        yield holdfast.Store(Core(engine, f"tenant-{next(_NUMBERS)}", clock, holdfast.Registry()))
        return
    url = "ram:" if request.param == "ram" else str(tmp_path / "store.db")
    with holdfast.open(url, clock=clock) as opened:
        yield opened


@pytest.fixture
def ram(clock: ManualClock) -> Iterator[holdfast.Store]:
    """A store for tests of what does not depend on the engine."""
    with holdfast.open("ram:", clock=clock) as opened:
        yield opened


MakeBook = Callable[..., Book]
MakeShelf = Callable[..., Shelf]


@pytest.fixture
def book_of() -> MakeBook:
    """How to make a handle of any book: ``book_of(store, user=…, agent=…)``."""

    def make(store: holdfast.Store, user: str | None = None, agent: str | None = None) -> Book:
        return Book(store._core, Ids(), Scope(user, agent))

    return make


@pytest.fixture
def shelf_of() -> MakeShelf:
    """How to make a shelf: ``shelf_of(store, user=…, agent=…)``."""

    def make(store: holdfast.Store, user: str | None = None, agent: str | None = None) -> Shelf:
        return Shelf(store._core, Ids(), Scope(user, agent))

    return make


@pytest.fixture
def book(store: holdfast.Store, book_of: MakeBook) -> Book:
    """Ana's book."""
    return book_of(store, user="ana")


@pytest.fixture
def shelf(store: holdfast.Store, shelf_of: MakeShelf) -> Shelf:
    """What Ana's handle sees."""
    return shelf_of(store, user="ana")
