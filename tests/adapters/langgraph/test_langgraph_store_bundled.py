"""The published suite is fair: the stores that come with LangGraph pass it, but for what is written down here.

What fails today is expected to fail, strictly, so that a new version of LangGraph that mends something is noticed, and
the table in ``docs/adapters/langgraph-store.md`` with it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from langgraph_store_suite import LangGraphStoreContract
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from holdfast.errors import Invalid
from holdfast.testing.embedders import HashEmbedder
from holdfast.testing.postgres import Server

SWEPT = "what expired is given until it is swept, also with omit_expired"
TTL: Any = {"omit_expired": True, "refresh_on_read": True}


def embed(texts: list[str]) -> list[list[float]]:
    """One vector for each text; of none is the length 0, for which a cosine has no answer."""
    return [[float(number) + 1e-6 for number in row] for row in HashEmbedder().embed(texts)]


class Bundled(LangGraphStoreContract):
    """``broken`` names promises that a store does not keep, each with what it does instead."""

    broken: ClassVar[dict[str, str]] = {}

    @pytest.fixture(autouse=True)
    def _known(self, request: pytest.FixtureRequest) -> None:
        why = self.broken.get(request.node.name) or self.broken.get(request.node.originalname)
        if why is not None:
            request.node.add_marker(pytest.mark.xfail(reason=why, strict=True))


class TestInMemoryStore(Bundled):
    can = LangGraphStoreContract.can | {"query"}
    broken: ClassVar = {
        "test_a_namespace_goes_with_its_last_item": "a namespace stays listed when it is empty",
        "test_looking_makes_no_namespace": "getting an item makes a namespace",
        "test_deleting_what_is_not_there_is_no_error": "deleting makes a namespace",
        "test_what_is_no_longer_indexed_gets_no_score": "the vectors of the value before stay",
        "test_items_that_say_the_same_are_all_found": "equal texts in one batch are a ValueError, and nothing is put",
        "test_an_item_without_the_field_is_not_found_by_comparing": "an item without the field is a TypeError",
        "test_texts_compare_as_texts": "everything is compared as a number: a text is a ValueError",
        "test_what_a_caller_does_to_a_result_stays_with_the_caller": "results are the stored objects",
        "test_what_a_caller_does_to_a_value_after_putting_it_stays_with_the_caller": "its inside is not copied",
        "test_an_item_keeps_the_moment_it_was_created": "every put is a creation",
    }

    @pytest.fixture
    def store(self) -> InMemoryStore:
        return InMemoryStore(index={"dims": 64, "embed": embed})


class TestSqliteStore(Bundled):
    can = (LangGraphStoreContract.can - {"async"}) | {"ttl", "durable"}
    broken: ClassVar = {
        "test_what_expired_is_nowhere": SWEPT,
        "test_reading_without_refresh_leaves_the_time_alone": SWEPT,
        "test_an_item_keeps_the_moment_it_was_created": "every put is a creation",
    }

    @pytest.fixture
    def connections(self, tmp_path: Path) -> Iterator[list[sqlite3.Connection]]:
        opened = [connected(tmp_path)]
        yield opened
        for one in opened:
            one.close()

    @pytest.fixture
    def store(self, connections: list[sqlite3.Connection]) -> SqliteStore:
        store = SqliteStore(connections[0], ttl=TTL)
        store.setup()
        return store

    @pytest.fixture
    def later(self, connections: list[sqlite3.Connection]) -> Callable[[float], None]:
        def later(minutes: float) -> None:
            connections[0].execute("UPDATE store SET expires_at = datetime(expires_at, ?)", (f"-{minutes} minutes",))

        return later

    @pytest.fixture
    def reopen(self, connections: list[sqlite3.Connection], tmp_path: Path) -> Callable[[], SqliteStore]:
        def again() -> SqliteStore:
            connections[0].close()
            connections.append(connected(tmp_path))
            return SqliteStore(connections[-1])

        return again


def connected(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "store.db", check_same_thread=False, isolation_level=None)


@pytest.fixture(scope="module")
def url(server: Server) -> str:
    url = server.create()
    with psycopg.connect(server.admin_url(str(conninfo_to_dict(url)["dbname"])), autocommit=True) as admin:
        admin.execute("CREATE EXTENSION vector")
    return url


class TestPostgresStore(Bundled):
    can = (LangGraphStoreContract.can - {"async"}) | {"query", "ttl", "durable"}
    broken: ClassVar = {
        "test_pages_of_a_query_are_parts_of_the_whole": "an offset counts within the first few: later pages are cut",
        "test_what_is_no_longer_indexed_gets_no_score": "the vectors of the value before stay",
        "test_an_operator_compares_numbers_as_numbers[$gt]": "numbers are compared as texts",
        "test_an_operator_compares_numbers_as_numbers[$gte]": "numbers are compared as texts",
        "test_an_operator_compares_numbers_as_numbers[$lt]": "numbers are compared as texts",
        "test_an_operator_compares_numbers_as_numbers[$lte]": "numbers are compared as texts",
        "test_a_field_may_have_several_operators": "numbers are compared as texts",
        "test_what_cannot_be_kept_is_refused_and_never_changed[key 1]": "a key that is a number comes back as text",
    }

    @pytest.fixture
    def connections(self, url: str) -> Iterator[list[psycopg.Connection[Any]]]:
        opened = [linked(url)]
        yield opened
        for one in opened:
            one.close()

    @pytest.fixture
    def store(self, connections: list[psycopg.Connection[Any]]) -> PostgresStore:
        store = PostgresStore(connections[0], index={"dims": 64, "embed": embed}, ttl=TTL)
        store.setup()
        connections[0].execute("TRUNCATE store CASCADE")  # what is deleted stays in the index of vectors for a while
        return store

    @pytest.fixture
    def later(self, connections: list[psycopg.Connection[Any]]) -> Callable[[float], None]:
        def later(minutes: float) -> None:
            moved = "UPDATE store SET expires_at = expires_at - make_interval(secs => %s)"
            connections[0].execute(moved, (minutes * 60,))

        return later

    @pytest.fixture
    def reopen(self, connections: list[psycopg.Connection[Any]], url: str) -> Callable[[], PostgresStore]:
        def again() -> PostgresStore:
            connections[0].close()
            connections.append(linked(url))
            return PostgresStore(connections[-1], index={"dims": 64, "embed": embed}, ttl=TTL)

        return again


def linked(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row)


def test_a_claim_that_is_misspelt_is_refused() -> None:
    """Its promises would otherwise be skipped, and nobody would know."""
    with pytest.raises(Invalid, match="'durabel', which is not a capability; there are sync"):
        type("Misspelt", (LangGraphStoreContract,), {"can": LangGraphStoreContract.can | {"durabel"}})
