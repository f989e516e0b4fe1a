"""The engine on Postgres keeps the contract, and does what the engine in memory does, on a real server.

One server and one database cloned from its template serve all tests, emptied before each: cloning for each of them
would take longer than the tests. Marked slow, so that the fast tests need no server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from holdfast.clock import Clock
from holdfast.engine.contract import Engine
from holdfast.engine.postgres import PostgresEngine
from holdfast.ids import Ids
from holdfast.testing import ManualClock
from holdfast.testing.contract import EngineContract, Reopen
from holdfast.testing.machine import engine_machine
from holdfast.testing.postgres import Server

pytestmark = pytest.mark.slow

SCHEMA = "agents of ours"


class _Database:
    """The database that the tests of this file use one after the other. It starts with the first that asks."""

    def __init__(self) -> None:
        self._server: Server | None = None
        self._url, self._has_schema = "", False

    def emptied(self) -> str:
        if self._server is None:
            self._server = Server(fsync=False)
            self._url = self._server.clone()
        self._server.empty(self._url)
        return self._url

    def emptied_schema(self) -> str:
        """The address of a schema in the same database, beside tables of the same names."""
        url = f"{self.emptied()}&schema={SCHEMA}&statement_timeout=30s"
        if not self._has_schema:
            PostgresEngine(url, ManualClock(), Ids()).close()
            self._has_schema = True
        assert self._server is not None
        self._server.empty(self._url, SCHEMA)
        return url

    def close(self) -> None:
        """Stop it. A worker may come back to this file later, and begins anew."""
        if self._server is not None:
            self._server.close()
        self._server, self._has_schema = None, False


_database = _Database()


@pytest.fixture(scope="module", autouse=True)
def _closed_at_the_end() -> Iterator[None]:
    yield
    _database.close()


class TestPostgresEngine(EngineContract):
    @pytest.fixture
    def url(self) -> str:
        return _database.emptied()

    @pytest.fixture
    def engine(self, clock: ManualClock, ids: Ids, url: str) -> Iterator[Engine]:
        engine = PostgresEngine(url, clock, ids)
        yield engine
        engine.close()

    @pytest.fixture
    def reopen(self, engine: Engine, clock: ManualClock, ids: Ids, url: str) -> Iterator[Reopen]:
        opened: list[Engine] = []

        def again(path: Path | None = None) -> Engine:
            engine.close()
            opened.append(PostgresEngine(url, clock, ids))
            return opened[-1]

        yield again
        for one in opened:
            one.close()


class TestPostgresEngineInASchema(TestPostgresEngine):
    """The same with all that is set for each transaction."""

    @pytest.fixture
    def url(self) -> str:
        return _database.emptied_schema()


def _open(path: Path, clock: Clock, ids: Ids) -> Engine:
    """The machine names a new path for each run and the same one for a second hand or a reopening."""
    if not path.exists():
        path.touch()
        _database.emptied()
    return PostgresEngine(_database._url, clock, ids)


TestPostgresBesideRam = engine_machine(_open).TestCase
TestPostgresBesideRam.settings = settings(stateful_step_count=20, max_examples=settings().max_examples // 3)

TestTwoPostgresBesideRam = engine_machine(_open, hands=2).TestCase
TestTwoPostgresBesideRam.settings = settings(stateful_step_count=20, max_examples=settings().max_examples // 5)
