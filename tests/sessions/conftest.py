"""Stores on each engine in turn for sessions, several of them in one place, with a clock that the test moves.

``place.open(own=True)`` is the store of another process: a holder of its own, and an engine of its own where there can
be two. The fast tests need no server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine.registry import open_engine
from holdfast.ids import Ids
from holdfast.ledger.core import Core
from holdfast.steps.lease import Holder
from holdfast.steps.runs import RunBook
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

_NUMBERS = count(1)
_DRAWS = count()
# A clock that stands still gives every stream of a test the same millisecond; drawn by chance, two might be equal.
_IDS = Ids(lambda bits: next(_DRAWS) % 2**bits)
_LEASE_S = 30.0


class Place:
    """Where the stores of one test are. What it opened, it closes."""

    def __init__(self, engine: str, url: str, clock: ManualClock, shared: Any = None) -> None:
        self.engine, self.url, self.clock, self._shared = engine, url, clock, shared
        self.tenant = f"sessions-{next(_NUMBERS)}"
        self._engines: list[Any] = []
        self._stores: list[holdfast.Store] = []

    def open(
        self,
        *,
        tenant: str | None = None,
        clock: ManualClock | None = None,
        own: bool = False,
        through: Callable[[Any], Any] | None = None,
    ) -> holdfast.Store:
        """A store. With ``own`` it is another process's: on a machine of its own, so its leases are waited for.

        ``through`` gives the engine that it has in place of the real one.
        """
        if self._shared is None or (own and self.engine == "sqlite"):
            engine = open_engine(self.url, self.clock, _IDS)
            self._engines.append(engine)
            self._shared = self._shared or engine
        else:
            engine = self._shared
        engine = engine if through is None else through(engine)
        core = Core(engine, tenant or self.tenant, clock or self.clock, holdfast.Registry())
        runs = RunBook(core, _IDS, _LEASE_S)
        runs.now = core.clock.now  # the clock of the test counts, also where the engine has one of its own
        if own:
            name = f"process {len(self._stores) + 1}"
            runs.holder = Holder(name, f"machine of {name}", runs.holder.pid, runs.holder.born)
        self._stores.append(holdfast.Store(Wiring(core, runs)))
        return self._stores[-1]

    def lapse(self) -> None:
        """Let the leases of those who give no sign of life run out."""
        self.clock.advance(_LEASE_S + 1)

    def close(self) -> None:
        for store in self._stores:
            store.wiring.runs.renewer.close()
        for engine in self._engines:
            engine.close()


@pytest.fixture(scope="session")
def shared_database(postgres: Any) -> Iterator[Any]:
    """The address of the one database of all tests, and the engine that they share."""
    url = postgres.clone()
    with holdfast.open(url, ids=_IDS) as store:
        yield url, store.core.engine


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
def told() -> Callable[[holdfast.Thread], list[str]]:
    """The log of a thread in short: ``user: hi``, ``call add``, ``result 3``, ``assistant: hello``, ``(usage)``."""
    return lambda thread: [_told(entry) for entry in thread.log()]


def _told(entry: holdfast.types.Entry) -> str:
    content = entry.content
    if entry.kind == "message":
        return f"{content['role']}: {content['content']}"
    if entry.kind == "tool_call":
        return f"call {content['name']}"
    if entry.kind == "observation":
        return f"result {content['content']}"
    return f"({content['name']})" if entry.kind == "event" else f"({entry.kind})"
