"""How Postgres looks things up in tables that were never analysed, as those of a new store are for a while.

It knows nothing of them then, every index seems as good as any other, and a wrong one means that each look at one
record is a look at all of them: what is asked for by its name is found by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import psycopg
import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine import postgres as engine
from holdfast.engine.contract import Append, Delete, Event, Guard, Op, Put, Query
from holdfast.engine.lineage import StreamPart
from holdfast.engine.plan import Plan
from holdfast.engine.postgres_commit import CALL, LOAD, FreshIds, LoadedRows, NeededRows
from holdfast.engine.relational import Reads
from holdfast.ids import Ids
from holdfast.ledger.files import FileWrite

pytestmark = pytest.mark.slow
SIZES = (20, 300, 3_000)  # of one page, of several, and of more than one level of an index


class Plans:
    """Runs nothing, and keeps how the server would."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.lines: list[str] = []

    def run(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        asked = b"EXPLAIN (COSTS OFF) " + engine._dialect(sql)
        self.lines = [line for (line,) in self._connection.execute(asked, values)]
        return []

    def index(self, of: str) -> str:
        """The index by which a table is searched, with what it is searched for."""
        for line, following in pairwise(self.lines):
            if f" on {of}" in line:
                return f"{line.split(' using ')[-1].split(' on ')[0]}: {following}"
        return f"none: {self.lines}"


def fail(tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Any]:
    raise AssertionError(f"this should have been loaded: {sql}")


def any_of(stored: Event, offered: Event) -> bool:
    return True


@pytest.fixture(scope="module", params=SIZES)
def filled(request: pytest.FixtureRequest, postgres: Any) -> Iterator[str]:
    url = str(postgres.clone())
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("records", "tags", "strands", "events"):
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
    with holdfast.open(url, embedder="none") as store:
        store.folder("notes").commit([FileWrite(f"n/{number}", number) for number in range(request.param)])
        store.thread("t").append(*({"role": "user", "content": "x"} for _ in range(request.param)))
        store.thread("t").append({"role": "user", "content": "x"}, key="k")
    yield url
    postgres.drop(url)


@pytest.fixture
def plans(filled: str) -> Iterator[Plans]:
    with psycopg.connect(filled) as connection:
        connection.execute("SELECT set_config('holdfast.tenant', 'default', false)")
        unknown = connection.execute("SELECT count(*) FROM pg_class WHERE reltuples = -1 AND relname = 'records'")
        assert unknown.fetchone() == (1,)
        yield Plans(connection)


def test_one_record_by_its_name(plans: Plans) -> None:
    Reads(plans.run, SystemClock()).get("default", "file", "any")
    assert plans.index("records").startswith("records_pkey:")
    assert "id = " in plans.index("records")


def test_some_records_by_their_names(plans: Plans) -> None:
    Reads(plans.run, SystemClock()).get_many("default", "file", ["one", "other", "third"])
    assert plans.index("records").startswith("records_pkey:")


class Looked:
    """How many rows a session came upon since: by going through a table, and by an index."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._before = self._counted()

    def _counted(self) -> tuple[int, int]:
        of = "relname = ANY (ARRAY['records', 'tags', 'strands', 'events', 'graves', 'feed', 'limits'])"
        sql = f"SELECT sum(seq_tup_read), sum(idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE {of}"
        [(walked, found)] = self._connection.execute(sql.encode()).fetchall()
        return int(walked), int(found)

    def at(self) -> tuple[int, int]:
        walked, found = self._counted()
        return walked - self._before[0], found - self._before[1]


def test_what_a_commit_reads_and_writes_is_found_by_name(filled: str) -> None:
    """Inside the functions, too: of all rows a commit comes upon those that it names, also when plans are generic."""
    ops: tuple[Op, ...] = (
        Append("thread", "t", (Event("message", b"j1{}", 1, "k"), Event("message", b"", 1, "fresh")), same=any_of),
        Put("file", "new", b"j1{}", 0, tags=("a", "b")),
        Guard("file", "absent", 0),
        Delete("note", "absent"),
    )
    wanted = NeededRows()
    wanted.add(ops)
    with psycopg.connect(filled) as connection:
        for _ in range(8):  # after five times the server may settle for a plan that fits any values
            with connection.transaction(force_rollback=True):
                looked = Looked(connection)
                source = LoadedRows(fail, SystemClock(), engine.KEYS, wanted, FreshIds(Ids()))
                source.loaded(connection.execute(LOAD, wanted.values("default"), binary=True).fetchall())
                assert looked.at() == (0, 4)  # the thread, once more for each key, and the event
                plan = Plan("default", source, FreshIds(Ids()))
                plan.add(ops, 1)
                values = ("default", "1s", "1s", "9s", *source.conditions(plan.changes), *source.rows(plan.changes))
                connection.execute(CALL, values, binary=True)
                walked, found = looked.at()
                assert walked == 0
                assert found <= 10


def test_records_with_a_tag_are_looked_up_one_by_one(plans: Plans) -> None:
    Reads(plans.run, SystemClock()).scan("default", Query("file", tag="any", limit=500))
    assert plans.index("tags").startswith("tags_pkey:")
    assert plans.index("records").startswith("records_pkey:")
    assert "id = " in plans.index("records")


def test_the_latest_of_a_kind_come_from_the_index_in_order(plans: Plans) -> None:
    Reads(plans.run, SystemClock()).scan("default", Query("file", limit=5))
    assert plans.index("records").startswith("records_hour:")


def test_a_part_of_a_log(plans: Plans) -> None:
    reads = Reads(plans.run, SystemClock())
    reads.strand("default", 7)
    assert plans.index("strands").startswith("strands_pkey:")
    reads._read_part("default", StreamPart(7, after=0, upto=100), 5, newest=True)
    assert plans.index("events").startswith("events_pkey:")
