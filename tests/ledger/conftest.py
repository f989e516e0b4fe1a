"""A store for every test of the ledger, on each engine in turn, with a clock that the test moves.

The file of a test lies in memory where the system has such a place, and the Postgres server does not sync: these tests
are about meaning. What survives a crash is the business of the engines' own tests. On Postgres all tests share one
server, one cloned database and one engine: it is emptied before each, since a clone for each would take longer than
all the tests. A test that closes its store, or looks for what it left, opens one with ``own=True``; one that damages
what is stored asks for the fixture ``damage``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import apsw
import msgspec
import pytest

import holdfast
from holdfast.ids import Ids
from holdfast.ledger.core import Core
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

_NUMBERS = count(1)
_DRAWS = count()
# A clock that stands still gives every stream of a test the same millisecond; drawn by chance, two might be equal.
_IDS = Ids(lambda bits: next(_DRAWS) % 2**bits)


class Place:
    """Where the stores of one test are. What it opened, it closes."""

    def __init__(self, engine: str, url: str, clock: ManualClock, schemas: holdfast.Registry, shared: Any) -> None:
        self.engine, self.url, self.clock, self.schemas = engine, url, clock, schemas
        self._shared = shared
        self.number = next(_NUMBERS)
        self._opened: list[holdfast.Store] = []

    def open(
        self, tenant: str = "default", schemas: holdfast.Registry | None = None, *, own: bool = False
    ) -> holdfast.Store:
        """Open a store here. Those that are not a test's own share an engine; in memory it is the only way to meet."""
        known, tenant = schemas or self.schemas, f"{tenant}-{self.number}"
        if self._shared is not None and not own:
            self._shared._clock = self.clock  # what has expired is hidden by the engine's clock
            return holdfast.Store(Wiring(Core(self._shared, tenant, self.clock, known)))
        store = holdfast.open(self.url, tenant=tenant, clock=self.clock, ids=_IDS, schemas=known)
        self._opened.append(store)
        if self.engine == "ram" and not own:
            self._shared = store.core.engine
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()


@pytest.fixture(scope="session")
def shared_database(postgres: Any) -> Iterator[Any]:
    """The address of the one database of all tests, and the engine that most of them share."""
    url = postgres.clone()
    with holdfast.open(url, ids=_IDS) as store:
        yield url, store.core.engine


@pytest.fixture
def schemas() -> holdfast.Registry:
    """The schemas that the store knows: none, until the test declares one."""
    return holdfast.Registry()


@pytest.fixture
def place(
    engine_name: str, request: pytest.FixtureRequest, clock: ManualClock, schemas: holdfast.Registry
) -> Iterator[Place]:
    url, shared = "ram:", None
    if engine_name == "sqlite":
        url = str(request.getfixturevalue("folder") / "store.db")
    elif engine_name == "postgres":
        url, shared = request.getfixturevalue("database")
    place = Place(engine_name, url, clock, schemas, shared)
    yield place
    place.close()


@pytest.fixture
def store(place: Place) -> holdfast.Store:
    """A new, empty store."""
    return place.open()


@pytest.fixture
def reopen(place: Place, store: holdfast.Store) -> Callable[[], holdfast.Store]:
    """Close the store and open what it left behind. A test that asks for this runs on the durable engines."""

    def again() -> holdfast.Store:
        place.close()
        return place.open(own=True)

    return again


Damage = Callable[[str, int], None]


@pytest.fixture
def damage(place: Place, store: holdfast.Store) -> Damage:
    """Change an entry of a thread behind the store's back: ``damage(thread, number)``."""
    hands = {"ram": _damage_ram, "sqlite": _damage_sqlite, "postgres": _damage_postgres}
    return lambda thread, number: hands[place.engine](store, place.url, thread, number)


_OTHER = b'j1{"content":"forged"}'
_CHANGE = "UPDATE events SET body = {value} WHERE position = {value} AND stream = {stream}"


def _damage_ram(store: holdfast.Store, url: str, thread: str, number: int) -> None:
    engine: Any = store.core.engine
    record = engine.get(store.tenant, "thread", thread)
    events = engine._tenants[store.tenant].events[record.stream]._events
    events[number - 1] = msgspec.structs.replace(events[number - 1], body=_OTHER)


def _damage_sqlite(store: holdfast.Store, url: str, thread: str, number: int) -> None:
    sql = _CHANGE.format(value="?", stream="(SELECT num FROM strands WHERE kind = 'thread' AND id = ?)")
    connection = apsw.Connection(url)
    connection.execute(sql, (_OTHER, number, thread))
    connection.close()


def _damage_postgres(store: holdfast.Store, url: str, thread: str, number: int) -> None:
    sql = _CHANGE.format(value="%s", stream="(SELECT stream FROM strands WHERE kind = 'thread' AND id = %s)")

    def change(connection: Any) -> None:
        connection.execute("SELECT set_config('holdfast.tenant', %s, true)", (store.tenant,))
        connection.execute(sql, (_OTHER, number, thread))

    _as_postgres(url, change)


def _as_postgres(url: str, work: Callable[[Any], Any]) -> None:
    import psycopg  # noqa: PLC0415 - an extra, and only one engine's tests need it

    with psycopg.connect(url) as connection:
        work(connection)
