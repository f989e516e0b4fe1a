"""Collections and handles of memories on each engine in turn, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import holdfast
from holdfast.engine.contract import Scope
from holdfast.ids import Ids
from holdfast.memory.collection import MemoryCollection
from holdfast.memory.drafts import Remembering
from holdfast.memory.visible import VisibleMemories
from holdfast.records import Memory


class Handle(VisibleMemories):
    """What a handle sees, and writing to it: new memories to its own collection, changes to that of a memory."""

    def remember(self, drafts: Sequence[Remembering]) -> list[Memory]:
        return self.own.remember(drafts)

    def forget(self, id: str) -> Memory:
        return self.collection_of(id).forget(id)

    def unforget(self, id: str) -> Memory:
        return self.collection_of(id).unforget(id)

    def erase(self, id: str) -> None:
        self.collection_of(id).erase(id)

    def used(self, id: str, helped: bool | None = None) -> Memory:
        return self.collection_of(id).used(id, helped)

    def correct(self, id: str, instead: Remembering | None = None) -> Memory:
        return self.collection_of(id).correct(id, instead)


MakeCollection = Callable[..., MemoryCollection]
MakeVisible = Callable[..., VisibleMemories]


@pytest.fixture
def collection_of() -> MakeCollection:
    """How to make a handle of any collection: ``collection_of(store, user=…, agent=…)``."""

    def make(store: holdfast.Store, user: str | None = None, agent: str | None = None) -> MemoryCollection:
        return MemoryCollection(store.core, Ids(), Scope(user, agent))

    return make


@pytest.fixture
def visible_to() -> MakeVisible:
    """How to make a visible: ``visible_to(store, user=…, agent=…)``."""

    def make(store: holdfast.Store, user: str | None = None, agent: str | None = None) -> VisibleMemories:
        return Handle(store.core, Ids(), Scope(user, agent))

    return make


@pytest.fixture
def collection(store: holdfast.Store, collection_of: MakeCollection) -> MemoryCollection:
    """Ana's collection."""
    return collection_of(store, user="ana")


@pytest.fixture
def visible(store: holdfast.Store, visible_to: MakeVisible) -> VisibleMemories:
    """What Ana's handle sees."""
    return visible_to(store, user="ana")
