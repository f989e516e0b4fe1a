"""The engine on an SQLite file keeps the contract, and does what the engine in memory does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from holdfast.engine.contract import Engine
from holdfast.engine.sqlite import SqliteEngine
from holdfast.ids import Ids
from holdfast.testing import ManualClock
from holdfast.testing.contract import EngineContract, Reopen
from holdfast.testing.machine import engine_machine


class TestSqliteEngine(EngineContract):
    @pytest.fixture
    def engine(self, clock: ManualClock, ids: Ids, tmp_path: Path) -> Iterator[Engine]:
        engine = SqliteEngine(tmp_path / "store.db", clock, ids)
        yield engine
        engine.close()

    @pytest.fixture
    def reopen(self, engine: Engine, clock: ManualClock, ids: Ids, tmp_path: Path) -> Iterator[Reopen]:
        opened: list[Engine] = []

        def again(path: Path | None = None) -> Engine:
            engine.close()
            opened.append(SqliteEngine(path or tmp_path / "store.db", clock, ids))
            return opened[-1]

        yield again
        for one in opened:
            one.close()


TestSqliteBesideRam = engine_machine(SqliteEngine).TestCase
TestSqliteBesideRam.settings = settings(stateful_step_count=20)

TestTwoSqliteBesideRam = engine_machine(SqliteEngine, hands=2).TestCase
TestTwoSqliteBesideRam.settings = settings(stateful_step_count=20)
