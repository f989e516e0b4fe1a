"""What every promise stands on: the fixtures that a store supplies, the skipping of what it makes no claim to.

Deliberately absent: assertions. They belong to the tests, where they can be read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ClassVar, TypeVar

import pytest
from langgraph.store.base import BaseStore

from holdfast.errors import Invalid

T = TypeVar("T")
Later = Callable[[float], None]
Reopen = Callable[[], BaseStore]
Run = Callable[[Coroutine[Any, Any, Any]], Any]

CAPABILITIES = {
    "sync": "calls that block",
    "async": "calls that are awaited",
    "operators": "filters that compare",
    "query": "search by what is asked, in words",
    "ttl": "items that expire",
    "durable": "items that are there after the store was closed",
}
"""What a store may make a claim to."""

NAMES = ["a/b", "a.b", "a b", "a'b\"c", "%", "_", "*", "[a]", "?", "a%2Fb", "..", "Ünï", "日本", "🦊", "-" * 300]
"""Keys, and labels of namespaces, that are easily mistaken for something else."""


class Scene:
    """What the promises ask of every store."""

    can: ClassVar[frozenset[str]] = frozenset({"sync", "async", "operators"})

    def __init_subclass__(cls) -> None:
        """A claim that is misspelt would skip its promises in silence."""
        if unknown := sorted(set(cls.can) - set(CAPABILITIES)):
            known = ", ".join(CAPABILITIES)
            raise Invalid(f"{cls.__name__}.can names {unknown[0]!r}, which is not a capability; there are {known}")

    @pytest.fixture(autouse=True)
    def _claimed(self, request: pytest.FixtureRequest) -> None:
        for name in getattr(request.function, "needs", ()):
            if name not in self.can:
                pytest.skip(f"capability {name}: this store makes no claim to {CAPABILITIES[name]}")

    @pytest.fixture
    def store(self) -> Iterator[BaseStore]:
        pytest.fail("supply the fixture `store`: a new, empty store")

    @pytest.fixture
    def later(self) -> Later:
        pytest.fail("a store with `ttl` must supply the fixture `later`: let this many minutes pass")

    @pytest.fixture
    def tick(self) -> Callable[[], None]:
        """How time passes, so much that a store can see it: some databases tell it in seconds."""
        return lambda: time.sleep(1.1)

    @pytest.fixture
    def reopen(self) -> Reopen:
        pytest.fail("a `durable` store must supply the fixture `reopen`: close the store, and open it again")

    @pytest.fixture
    def run(self) -> Run:
        """How coroutines are run; a store that lives in one event loop runs them there."""
        return asyncio.run


def needs(*names: str) -> Callable[[T], T]:
    """Say what a promise, or each of a class, is about. No mark of pytest's: a class would inherit those of all."""

    def told(promise: T) -> T:
        inside = [part for name, part in vars(promise).items() if name.startswith("test_")]
        for function in inside if isinstance(promise, type) else [promise]:
            vars(function)["needs"] = (*names, *vars(function).get("needs", ()))
        return promise

    return told


def keys(found: list[Any]) -> list[str]:
    """The keys of items, in the order they were found."""
    return [item.key for item in found]


def value_at(store: BaseStore, namespace: tuple[str, ...], key: str) -> Any:
    """The value of an item, or None where there is no such item."""
    item = store.get(namespace, key)
    return None if item is None else item.value


def refused(call: Callable[[], Any]) -> bool:
    """Whether a store says no, in whatever words."""
    try:
        call()
    except Exception:
        return True
    return False
