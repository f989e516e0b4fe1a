"""Books and shelves of memories on each engine in turn, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import holdfast
from holdfast.engine.contract import Scope
from holdfast.ids import Ids
from holdfast.memory.collection import MemoryCollection
from holdfast.memory.visible import VisibleMemories

MakeBook = Callable[..., MemoryCollection]
MakeShelf = Callable[..., VisibleMemories]


@pytest.fixture
def book_of() -> MakeBook:
    """How to make a handle of any book: ``book_of(store, user=…, agent=…)``."""

    def make(store: holdfast.Store, user: str | None = None, agent: str | None = None) -> MemoryCollection:
        return MemoryCollection(store.core, Ids(), Scope(user, agent))

    return make


@pytest.fixture
def shelf_of() -> MakeShelf:
    """How to make a shelf: ``shelf_of(store, user=…, agent=…)``."""

    def make(store: holdfast.Store, user: str | None = None, agent: str | None = None) -> VisibleMemories:
        return VisibleMemories(store.core, Ids(), Scope(user, agent))

    return make


@pytest.fixture
def book(store: holdfast.Store, book_of: MakeBook) -> MemoryCollection:
    """Ana's book."""
    return book_of(store, user="ana")


@pytest.fixture
def shelf(store: holdfast.Store, shelf_of: MakeShelf) -> VisibleMemories:
    """What Ana's handle sees."""
    return shelf_of(store, user="ana")
