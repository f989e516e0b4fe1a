"""The engine on an SQLite file keeps the contract, and does what the engine in memory does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import settings

from holdfast.engine.contract import Engine, Put, Query
from holdfast.engine.relational import Reads
from holdfast.engine.sqlite import SqliteEngine, _LocalKeys
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


def test_a_seldom_tag_leads_to_its_records_and_a_common_one_is_met_on_the_way(
    tmp_path: Path, clock: ManualClock
) -> None:
    """A look for one record does not go through all of its kind, and the newest of many are found without all."""
    engine = SqliteEngine(tmp_path / "store.db", clock, Ids())
    for start in range(0, 1_200, 100):
        clock.advance(3_600)
        engine.commit(
            "acme", [Put("note", f"n{start + n}", b"", tags=_tags(start + n)) for n in range(100)], clock.now()
        )
    engine.close()
    connection, plans = apsw.Connection(str(tmp_path / "store.db")), list[str]()

    def run(tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if "ORDER BY" in sql:
            plans.append(str(connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()))
        return connection.execute(sql, values).fetchall()

    reads = Reads(run, clock, keys=_LocalKeys(run))
    assert [record.id for record in reads.scan("acme", Query("note", tag="seldom", limit=9))] == ["n800", "n400", "n0"]
    assert len(reads.scan("acme", Query("note", tag="common", limit=9))) == 9
    assert "records USING INDEX records_name (tenant=? AND kind=? AND id=?)" in plans[0]
    assert "records USING INDEX records_hour (tenant=? AND kind=?" in plans[1]
    connection.close()


def _tags(number: int) -> tuple[str, ...]:
    return ("common", "seldom") if number % 400 == 0 else ("common",)
