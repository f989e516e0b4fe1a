"""Stores with memories on each engine in turn, several of them in one place, with a clock that the test moves.

Stores of one place that are opened with ``own=True`` do not know of each other, as those of two processes. The fast
tests need no server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import text
from holdfast.engine.codec import decode
from holdfast.engine.contract import Query, Record
from holdfast.ledger.core import Core, scan_all
from holdfast.providers.choose import choose
from holdfast.retrieval import index
from holdfast.retrieval.index_store import IndexManifest
from holdfast.retrieval.segment import from_bytes, hashed, masked
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

_NUMBERS = count(1)


class Place:
    """Where the stores of one test are. What it opened, it closes."""

    def __init__(self, engine: str, url: str, clock: ManualClock, shared: Any = None) -> None:
        self.engine, self.url, self.clock = engine, url, clock
        self._shared = shared
        self.tenant = f"memories-{next(_NUMBERS)}"
        self._opened: list[holdfast.Store] = []

    def open(
        self, embedder: Any = None, *, tenant: str | None = None, clock: ManualClock | None = None, own: bool = False
    ) -> holdfast.Store:
        tenant, clock = tenant or self.tenant, clock or self.clock
        if self._shared is not None and not (own and self.engine != "ram"):
            core = Core(self._shared, tenant, clock, holdfast.Registry())
            return holdfast.Store(Wiring(core, embedder=choose(embedder)))
        store = holdfast.open(self.url, tenant=tenant, clock=clock, embedder=embedder)
        self._opened.append(store)
        if self.engine == "ram":
            self._shared = store.core.engine
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()


@pytest.fixture
def place(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Place]:
    url, shared = "ram:", None
    if engine_name == "sqlite":
        url = str(tmp_path / "store.db")
    elif engine_name == "postgres":
        url, shared = request.getfixturevalue("database")
    place = Place(engine_name, url, clock, shared)
    yield place
    place.close()


@pytest.fixture(params=["ram", "sqlite"])
def near(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Place]:
    """A place that needs no server, for tests of many cases."""
    place = Place(request.param, "ram:" if request.param == "ram" else str(tmp_path / "store.db"), clock)
    yield place
    place.close()


@pytest.fixture
def store(place: Place) -> holdfast.Store:
    """A store without an embedder, on each engine in turn."""
    return place.open()


@pytest.fixture
def here(clock: ManualClock) -> Iterator[Place]:
    """A place in memory, for what does not depend on the engine."""
    place = Place("ram", "ram:", clock)
    yield place
    place.close()


@pytest.fixture
def ram(here: Place) -> holdfast.Store:
    return here.open()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> int:
    """Indexes are saved when they have grown by this much, so that a test need not write hundreds of things."""
    monkeypatch.setattr(index, "SAVE_AT", 24)
    return index.SAVE_AT


@pytest.fixture
def saved() -> Callable[[holdfast.Store], list[Record]]:
    """Every record of the saved indexes of a store's tenant: ``saved(store)``."""
    return _saved


@pytest.fixture
def orphans() -> Callable[[holdfast.Store], set[str]]:
    """The parts of indexes that no manifest names, and those named that are not there: ``orphans(store)``."""

    def find(store: holdfast.Store) -> set[str]:
        records = _saved(store)
        there = {record.id for record in records if "manifest" not in record.tags}
        return there ^ {name for record in records if "manifest" in record.tags for name in _parts(record)}

    return find


@pytest.fixture
def residue() -> Callable[..., list[str]]:
    """The index records that know one of these words, or hold one of these bytes: ``residue(store, words, *bytes)``."""

    def find(store: holdfast.Store, words: str, *data: bytes) -> list[str]:
        bare = [*(hashed(term).to_bytes(8, "little") for term in text.terms(words)), *data]
        records = _saved(store)
        found = [record.id for record in records if any(mark in record.body for mark in bare)]
        return found + [id for id, terms in _terms(records) if not terms.isdisjoint(map(hashed, text.terms(words)))]

    return find


@pytest.fixture
def fill() -> Callable[..., None]:
    """Remember so much that the next recall saves its index: ``fill(store, user="ana")``."""

    def remember(store: holdfast.Store, user: str | None = "ana", agent: str | None = None) -> None:
        store.memory(user=user, agent=agent).remember_all([f"filler {number}" for number in range(index.SAVE_AT)])

    return remember


def _saved(store: holdfast.Store) -> list[Record]:
    return list(scan_all(store.core.engine, store.tenant, Query("index")))


def _terms(records: list[Record]) -> Iterator[tuple[str, set[int]]]:
    """The hashes that parts of indexes hold, as whoever has the keys in the manifests can read them."""
    keys = {
        record.id.rpartition("/")[0]: msgspec.convert(decode(record.body)["manifest"], IndexManifest).key
        for record in records
        if "manifest" in record.tags
    }
    for record in records:
        name, _, rest = record.id.partition("/t/")[0].rpartition("/")
        if record.id.endswith(f"/{rest}/t/0") and name in keys:
            shown = masked(from_bytes(record.body), keys[name] + rest.encode())
            yield record.id, set(shown["terms"].tolist())


def _parts(record: Record) -> Iterator[str]:
    """The names of the parts that a manifest names."""
    index_name = record.id.rpartition("/")[0]
    for saved in decode(record.body)["manifest"]["segments"]:
        yield from (f"{index_name}/{saved['token']}/t/{number}" for number in range(saved["parts"]))
        for model, blocks in saved["vectors"].items():
            for token, parts, *_ in blocks:
                yield from (f"{index_name}/{saved['token']}/v/{model}/{token}/{number}" for number in range(parts))
