"""Commits that meet on Postgres: each race by construction, many processes at once beside a serial model, and a pooler.

A plan is made from what was read without a lock, so the tests put another's commit exactly between the reading and the
call. What must hold is what held when the tenant's row was taken first: commits of a tenant are made one after the
other, each sees all before it, and the feed has their order.
"""

from __future__ import annotations

import pickle
import random
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest

from holdfast.clock import SystemClock
from holdfast.engine.contract import Commit, Delete, Engine, Guard, Limit, Mark, Op, Put, Query, Receipt, Removed, Scope
from holdfast.engine.postgres import PostgresEngine
from holdfast.engine.ram import RamEngine
from holdfast.errors import Conflict, Erased, HoldfastError, KeyReused, NotFound, QuotaExceeded
from holdfast.ids import Ids
from holdfast.testing.contract.scene import ANA, append, event, fork, note, rewind
from holdfast.testing.postgres import ROLE, Server

pytestmark = pytest.mark.slow

TENANT = "acme"


class Interrupted(PostgresEngine):
    """Lets another act each time between planning a commit and making it."""

    def __init__(self, url: str) -> None:
        self.meanwhile: list[Callable[[], object]] = []
        self.calls = 0
        super().__init__(url, SystemClock(), Ids())

    def _call(self, connection: Any, decided: Any) -> Any:
        self.calls += 1
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return super()._call(connection, decided)


@pytest.fixture
def ours(database: str) -> Iterator[Interrupted]:
    engine = Interrupted(database)
    yield engine
    engine.close()


@pytest.fixture
def other(database: str) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(database, SystemClock(), Ids())
    yield engine
    engine.close()


class Race(NamedTuple):
    """What is there, what we want, what another does between our plan and our call, and how ours has to end."""

    before: Sequence[Op]
    ours: Sequence[Op]
    other: Callable[[PostgresEngine], object]
    end: type[HoldfastError] | tuple[int, ...]


def does(*ops: Op) -> Callable[[PostgresEngine], object]:
    return lambda engine: engine.commit(TENANT, ops, 50)


def erases(engine: PostgresEngine) -> object:
    return engine.erase(TENANT, ANA, time=50)


def makes_and_erases(engine: PostgresEngine) -> object:
    engine.commit(TENANT, [append("t", "x")], 50)
    return erases(engine)


def begins_anew(engine: PostgresEngine) -> object:
    engine.commit(TENANT, [Delete("note", "n")], 50)
    return engine.commit(TENANT, [note("n", b"anew", tags=("c",))], 50)


SAME, OTHER = event("same", "k"), event("other", "k")
LIMITED = Limit("records", "note", 1)
DERIVED = note("n", b"made", scope=ANA, derived=True)
RACES = {
    "both append": Race([append("t", "a")], [append("t", "b")], does(append("t", "x")), (3,)),
    "both append where ours expects a head": Race(
        [append("t", "a")], [append("t", "b", expect=1)], does(append("t", "x")), Conflict
    ),
    "both begin a thread": Race([], [append("t", "b")], does(append("t", "x")), (2,)),
    "both make a record": Race([], [note("n", expect=0)], does(note("n")), Conflict),
    "both write a record": Race([note("n", tags=("a",))], [note("n", tags=("b",))], does(note("n", tags=("c",))), ()),
    "both write a version": Race([note("n")], [note("n", expect=1)], does(note("n")), Conflict),
    "a guard is passed": Race([note("n")], [Guard("note", "n", 1), note("m")], does(note("n")), Conflict),
    "what was absent is made": Race([], [Guard("note", "n", 0), note("m")], does(note("n")), Conflict),
    "a guarded stream is begun anew": Race(
        [append("t", "a")], [Guard("thread", "t", 1), note("m")], does(Delete("thread", "t"), append("t", "x")), ()
    ),
    "a version comes back": Race([note("n", tags=("a",))], [note("n", b"us", tags=("b",))], begins_anew, ()),
    "it is deleted": Race([note("n")], [note("n", b"us", expect=1)], does(Delete("note", "n")), Conflict),
    "ours deletes what was changed": Race([note("n")], [Delete("note", "n", expect=1)], does(note("n")), Conflict),
    "the thread is erased": Race([append("t", "a")], [append("t", "b")], erases, Erased),
    "a new one is erased": Race([], [append("t", "b")], makes_and_erases, Erased),
    "the key is taken for the same": Race([append("t", "a")], [append("t", SAME)], does(append("t", SAME)), (2,)),
    "the key is taken for another": Race([append("t", "a")], [append("t", SAME)], does(append("t", OTHER)), KeyReused),
    "the last place is taken": Race([LIMITED], [note("m")], does(note("n")), QuotaExceeded),
    "a limit is set": Race([], [note("m"), note("o")], does(LIMITED), QuotaExceeded),
    "a limit is set that lets ours in": Race([], [note("m")], does(LIMITED), ()),
    "both write what is derived": Race([DERIVED], [DERIVED], does(DERIVED), ()),
    "what is derived is erased": Race([DERIVED], [DERIVED], erases, ()),
    "what is derived has a guard": Race([note("m")], [Guard("note", "m", 1), DERIVED], does(note("m")), Conflict),
    "ours only touches": Race([append("t", "a")], [append("t")], does(append("t", "x")), (2,)),
}


def consistent(engine: PostgresEngine) -> None:
    assert engine.check() == []
    feed = engine.feed(TENANT, limit=1_000)
    assert [commit.position for commit in feed] == list(range(1, len(feed) + 1))


@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "read"])
@pytest.mark.parametrize("name", RACES)
def test_what_happens_between_plan_and_call(
    name: str, remembered: bool, ours: Interrupted, other: PostgresEngine
) -> None:
    race = RACES[name]
    if race.before:
        (ours if remembered else other).commit(TENANT, race.before, 1)
    ours.meanwhile.append(lambda: race.other(other))
    model = RamEngine(SystemClock(), Ids())
    for act in (lambda engine: engine.commit(TENANT, race.before, 1) if race.before else None, race.other):
        act(model)  # type: ignore[arg-type]
    ends = []
    for engine in (ours, model):
        try:
            ends.append(engine.commit(TENANT, race.ours, 9).heads)
        except HoldfastError as error:
            ends.append(type(error))
    assert not ours.meanwhile
    assert ends == [race.end, race.end]
    assert plain(other) == plain(model)
    consistent(other)


def plain(view: Any) -> object:
    """What is there, but for the numbers of streams, which are chance."""
    kinds = ("thread", "note")
    records = sorted((r for kind in kinds for r in view.scan(TENANT, Query(kind))), key=lambda r: (r.kind, r.id))
    tagged = [(tag, r.id) for kind in kinds for tag in "abc" for r in view.scan(TENANT, Query(kind, tag=tag))]
    return (
        [(r.kind, r.id, r.version, r.body, r.tags, r.created, r.time, r.head, r.digest) for r in records],
        [[e.body for e in view.read(TENANT, r.mark)] for r in records if r.stream is not None],
        tagged,
        [(commit.position, commit.changes) for commit in view.feed(TENANT)],
    )


@pytest.mark.parametrize("gone", ["deleted", "erased", "cut short"])
def test_a_fork_of_what_is_pruned_meanwhile(gone: str, ours: Interrupted, other: PostgresEngine) -> None:
    other.commit(TENANT, [append("t", "a", "b", "c")], 1)
    record = other.get(TENANT, "thread", "t")
    assert record is not None
    mark = record.mark
    if gone == "cut short":  # a fork needs its beginning, and keeps the stream
        other.commit(TENANT, [fork("keeper", Mark(mark.stream, 1), scope=Scope(user="ben"))], 1)
    ours.meanwhile.append(lambda: erases(other) if gone == "erased" else does(Delete("thread", "t"))(other))
    with pytest.raises(NotFound):
        ours.commit(TENANT, [fork("f", mark), note("n")], 2)
    assert ours.get(TENANT, "note", "n") is None
    consistent(other)


def test_a_rewound_thread_knows_keys_that_its_parent_has(ours: Interrupted) -> None:
    """Not from memory: the server would take such a key a second time."""
    ours.commit(TENANT, [append("t", event("one", "k"), "two")], 1)
    record = ours.get(TENANT, "thread", "t")
    assert record is not None
    ours.commit(TENANT, [rewind("t", Mark(record.mark.stream, 1))], 2)
    assert ours.commit(TENANT, [append("t", event("one", "k"))], 3).heads == (1,)
    assert ours.commit(TENANT, [append("t", event("one", "k"), "three")], 4).heads == (2,)
    consistent(ours)


def test_who_keeps_losing_takes_the_tenant_first_and_gets_through(ours: Interrupted, other: PostgresEngine) -> None:
    other.commit(TENANT, [append("t", "a")], 1)
    ours.meanwhile = [lambda: does(append("t", "x"))(other) for _ in range(100)]
    assert ours.commit(TENANT, [append("t", "b")], 2).heads[0] == 2 + ours.calls
    assert 0 < ours.calls < 10
    before = ours.calls
    ours.commit(TENANT, [append("t", "c")], 2)  # and does not try again at once what it keeps losing
    assert ours.calls == before


def test_what_is_derived_waits_for_no_commit_of_its_tenant(ours: Interrupted, database: str) -> None:
    ours.commit(TENANT, [note("m"), DERIVED], 1)
    with psycopg.connect(database) as holder:
        holder.execute("SELECT FROM tenants WHERE name = 'acme' FOR NO KEY UPDATE")  # as a commit holds it
        assert ours.commit(TENANT, [DERIVED], 2).feed == 1
    consistent(ours)


@pytest.mark.parametrize("setting", ["isolation = 'repeatable read'", "isolation = 'serializable'", "read_only = on"])
def test_a_server_whose_transactions_are_otherwise_by_default(setting: str, database: str, server: Server) -> None:
    name = urlsplit(database).path[1:]
    with psycopg.connect(server.admin_url(name), autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_{setting}".encode())
    engines = [PostgresEngine(database, SystemClock(), Ids()) for _ in range(2)]
    for number in range(6):
        assert engines[number % 2].commit(TENANT, [append("t", f"{number}")], number).heads == (number + 1,)
    consistent(engines[0])
    for engine in engines:
        engine.close()


# Others hold a row


@pytest.mark.parametrize(
    "row", ["SELECT FROM tenants WHERE name = 'acme' FOR UPDATE", "UPDATE records SET version = version WHERE id = 't'"]
)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_commit_waits_for_a_row_and_goes_on_when_it_is_let_go(
    row: str, end: str, ours: Interrupted, database: str
) -> None:
    ours.commit(TENANT, [append("t", "a")], 1)
    with psycopg.connect(database) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("SELECT set_config('holdfast.tenant', 'acme', true)")
        assert holder.execute(row.encode()).rowcount == 1
        waiting = pool.submit(ours.commit, TENANT, [append("t", "b")], 2)
        _until_someone_waits(database)
        getattr(holder, end)()
        assert waiting.result(30).heads == (2,)
    consistent(ours)


def _until_someone_waits(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as watcher:
        while not watcher.execute("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchall():
            pass


# Many processes beside a serial model


class Numbered(Ids):
    """Numbers of streams that follow from the moment of the commit, so that a model makes the same ones."""

    def __init__(self) -> None:
        super().__init__()
        self.moment, self._count = 0, 0

    def begin(self, moment: int) -> int:
        self.moment, self._count = moment, 0
        return moment

    def stream(self, now: int) -> int:
        self._count += 1
        return self.moment * 100 + self._count


Act = tuple[str, Any]  # "commit" with operations, or "erase" with a scope
WRITERS, ACTS = 5, 120


def perform(engine: Engine, act: Act, moment: int) -> object:
    what, asked = act
    if what == "commit":
        return engine.commit(TENANT, asked, moment, str(moment))
    return engine.erase(TENANT, asked, time=moment, actor=str(moment))


def choose(chance: random.Random, engine: Engine, who: int, number: int) -> Act:
    """Something that others are about to do as well: few names, few keys, and what depends on what was seen."""
    thread, name = f"t{chance.randrange(3)}", f"n{chance.randrange(3)}"
    owner = Scope(user=f"u{thread[1]}")
    seen, seen_note = engine.get(TENANT, "thread", thread), engine.get(TENANT, "note", name)
    version = 0 if seen_note is None else seen_note.version
    key = f"k{chance.randrange(40)}"
    said = append(thread, event(key if chance.random() < 0.9 else "other", key), scope=owner)
    choices: list[tuple[int, Act]] = [
        (8, ("commit", [said])),
        (4, ("commit", [append(thread, f"{who}", scope=owner), note(name, b"%d" % number, tags=(f"g{number % 3}",))])),
        (3, ("commit", [note(name, b"%d" % who, expect=version, tags=(f"g{who % 3}",))])),
        (3, ("commit", [Guard("note", name, version), append(thread, f"guarded {who}", scope=owner)])),
        (2, ("commit", [append(thread, scope=owner)])),
        (1, ("commit", [Delete("note", name)])),
        (1, ("commit", [Delete("thread", thread)])),
        (1, ("erase", Scope(user=f"u{chance.randrange(3, 5)}"))),
        (2, ("commit", [append(f"x{chance.randrange(6)}", "x", scope=Scope(user=f"u{chance.randrange(3, 5)}"))])),
    ]
    if seen is not None and seen.stream is not None:
        mark = Mark(seen.stream, chance.randint(0, seen.head))
        choices += [
            (2, ("commit", [fork(f"f{chance.randrange(4)}", mark)])),
            (2, ("commit", [rewind(thread, mark, expect=seen.head)])),
            (3, ("commit", [append(thread, "expected", expect=seen.head, scope=owner)])),
        ]
    return chance.choices([act for _, act in choices], [weight for weight, _ in choices])[0]


def work(url: str, who: int, seed: int) -> list[tuple[int, Act, object]]:
    """What one process did, with its moment and what it was told."""
    ids, done = Numbered(), list[tuple[int, Act, object]]()
    engine = PostgresEngine(url, SystemClock(), ids)
    chance = random.Random(seed * 100 + who)
    for number in range(ACTS):
        act = choose(chance, engine, who, number)
        moment = ids.begin(1_000_000 + number * WRITERS + who)
        try:
            told = perform(engine, act, moment)
        except HoldfastError as error:
            told = type(error)
        done.append((moment, act, told))
    engine.close()
    return done


@pytest.mark.parametrize("seed", range(2))
def test_many_processes_come_to_what_one_after_the_other_would(seed: int, database: str, tmp_path: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, __file__, database, str(who), str(seed), str(tmp_path / str(who))])
        for who in range(WRITERS)
    ]
    assert [each.wait(300) for each in running] == [0] * WRITERS
    done: dict[int, tuple[Act, object]] = {}
    for who in range(WRITERS):
        for moment, act, told in pickle.loads((tmp_path / str(who)).read_bytes()):  # our own
            done[moment] = act, told
    engine = PostgresEngine(database, SystemClock(), Ids())
    try:
        replayed(engine, done)
    finally:
        engine.close()


def replayed(engine: PostgresEngine, done: dict[int, tuple[Act, object]]) -> None:
    """Make the same commits in the order of the feed on the engine in memory, and compare."""
    consistent(engine)
    ids = Numbered()
    model = RamEngine(SystemClock(), ids)
    feed = engine.feed(TENANT, limit=100_000)
    for commit in feed:
        moment = int(commit.actor or 0)
        act, told = done.pop(moment)
        again = perform(model, act, ids.begin(moment))
        assert told == again, (commit, act)
    for act, told in done.values():  # what changed nothing must have been told so
        assert isinstance(told, Receipt | Removed | type), (act, told)
    assert contents(engine, feed) == contents(model, feed)


def contents(view: Any, feed: list[Commit]) -> object:
    records = {r for kind in ("thread", "note") for r in view.scan(TENANT, Query(kind, limit=1_000))}
    ordered = sorted(records, key=lambda r: (r.kind, r.id))
    tagged = [(tag, r.id) for tag in ("g0", "g1", "g2") for r in view.scan(TENANT, Query("note", tag=tag))]
    events = [view.read(TENANT, r.mark) for r in ordered if r.stream is not None]
    return ordered, tagged, events, view.feed(TENANT, limit=100_000), len(feed)


# A pooler


class Pooler:
    """Stands between clients and the server as a transaction pooler does: each transaction gets a new backend."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self._target = str(server.directory / ".s.PGSQL.5432")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self.backends = 0
        self._clients: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in (self._listener, *self._clients):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError):
            startup = _startup(client)
            backend, hello, _ = self._connect(startup)
            client.sendall(hello)
            backend.close()
            while True:
                request = _batch(client)
                backend, _, _ = self._connect(startup)
                while True:
                    backend.sendall(request)
                    answer, state = _answer(backend)
                    client.sendall(answer)
                    if state == b"I":
                        break
                    request = _batch(client)
                backend.close()

    def _connect(self, startup: bytes) -> tuple[socket.socket, bytes, bytes]:
        self.backends += 1
        backend = socket.socket(socket.AF_UNIX)
        backend.connect(self._target)
        backend.sendall(startup)
        return backend, *_answer(backend)


def _exactly(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = source.recv(count - len(found))
        if not more:
            raise EOFError
        found += more
    return found


def _startup(client: socket.socket) -> bytes:
    head = _exactly(client, 4)
    return head + _exactly(client, struct.unpack("!I", head)[0] - 4)


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(source, 5)
    return head[:1], head + _exactly(source, struct.unpack("!I", head[1:])[0] - 4)


def _batch(client: socket.socket) -> bytes:
    """What a client sends up to where it waits for an answer."""
    found = b""
    while True:
        kind, message = _message(client)
        found += message
        if kind in b"SQ":
            return found
        if kind == b"X":
            raise EOFError


def _answer(backend: socket.socket) -> tuple[bytes, bytes]:
    found = b""
    while True:
        kind, message = _message(backend)
        found += message
        if kind == b"Z":
            return found, message[-1:]


@pytest.fixture
def pooler(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooler]:
    pooler = Pooler(tmp_path_factory.mktemp("p"), server)
    yield pooler
    pooler.close()


@pytest.mark.parametrize("options", ["", "&schema=agents&statement_timeout=30s"])
def test_every_transaction_may_have_a_backend_of_its_own(pooler: Pooler, database: str, options: str) -> None:
    url = f"postgresql://{ROLE}@/{urlsplit(database).path[1:]}?host={pooler.folder}{options}"
    engine = PostgresEngine(url, SystemClock(), Ids())
    try:
        for number in range(5):
            engine.commit(TENANT, [append("t", event(str(number), f"k{number}")), note("n", tags=("a",))], number)
            assert engine.commit(TENANT, [append("t", event(str(number), f"k{number}"))], 9).heads == (number + 1,)
        engine.commit("globex", [append("t", "x")], 1)
        engine.commit(TENANT, [Delete("note", "n"), Put("note", "m", b"")], 9)
        with pytest.raises(Conflict):
            engine.commit(TENANT, [Guard("note", "m", 2), append("t", "no")], 9)
        with engine.snapshot() as view:
            assert view.tenants() == [TENANT, "globex"]
        engine.erase(TENANT, ANA, time=9)
        engine.scrub()
        consistent(engine)
    finally:
        engine.close()
    assert pooler.backends > 20


if __name__ == "__main__":
    url, who, seed, place = sys.argv[1:]
    Path(place).write_bytes(pickle.dumps(work(url, int(who), int(seed))))
