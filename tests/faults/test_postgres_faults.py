"""What becomes of a store when Postgres, or the way to it, fails at the worst moment. Every fault here is real."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from holdfast.clock import SystemClock
from holdfast.engine.contract import Append, Delete, Event, Op, Outcome, Put, Query, Receipt, Scope
from holdfast.engine.postgres import PostgresEngine
from holdfast.engine.postgres_options import PostgresOptions
from holdfast.errors import Invalid, Misconfigured, NotFound, OutcomeUnknown, Unavailable
from holdfast.ids import Ids
from holdfast.testing.postgres import ROLE, Server

pytestmark = pytest.mark.slow

TENANT = "acme"
NEW = Put("thread", "t", b"j1{}", scope=Scope(user="ana", thread="t"))


def say(key: str, body: bytes = b"j1{}", same: Callable[[Event, Event], bool] | None = None) -> Append:
    events = (Event("message", body, 1, key),)
    return Append("thread", "t", events, new=NEW) if same is None else Append("thread", "t", events, new=NEW, same=same)


def keys(engine: PostgresEngine, tenant: str = TENANT) -> list[str | None]:
    record = engine.get(tenant, "thread", "t")
    return [] if record is None else [event.key for event in engine.read(tenant, record.mark)]


@contextmanager
def opened(url: str, *, busy_timeout_s: float = 20.0, pool_size: int = 10) -> Iterator[PostgresEngine]:
    options: PostgresOptions = {
        "pool_size": pool_size, "pool_timeout": 0.5, "connect_timeout": 0.5, "lock_timeout": busy_timeout_s
    }  # fmt: skip
    engine = PostgresEngine(url, SystemClock(), Ids(), options)
    try:
        yield engine
    finally:
        engine.close()


@pytest.fixture
def engine(database: str) -> Iterator[PostgresEngine]:
    with opened(database) as engine:
        yield engine


# The way to the server breaks


class Proxy:
    """Stands between a client and the server's socket, and can fail exactly when a commit passes by.

    "lose the commit": it never reaches the server. "lose the answer": the server carries it out, the client is not
    told. "hold the commit": it goes nowhere, but the server still believes that its client is there.
    """

    def __init__(self, directory: Path, server: Server) -> None:
        self.directory = directory
        self.fault = ""
        self.commit = b"holdfast_commit"
        self.skip = 0
        self._target = str(server.directory / ".s.PGSQL.5432")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / ".s.PGSQL.5432"))
        self._listener.listen()
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def url(self, database: str) -> str:
        return f"postgresql://{ROLE}@/{name_of(database)}?host={self.directory}"

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._sockets += [client, server]
                self._start(self._forward, client, server)
                self._start(self._back, server, client)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                fault = self._due() if self.commit in data else ""
                if fault.startswith("lose"):
                    client.shutdown(socket.SHUT_RDWR)
                if fault in ("", "lose the answer"):
                    server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _due(self) -> str:
        """The fault that was asked for, once as many as were to be skipped have passed."""
        if not self.fault or self.skip > 0:
            self.skip -= 1
            return ""
        fault, self.fault = self.fault, ""
        return fault

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    proxy = Proxy(tmp_path_factory.mktemp("p"), server)
    yield proxy
    proxy.close()


def name_of(url: str) -> str:
    return urlsplit(url).path[1:]


@pytest.mark.parametrize(("fault", "written"), [("lose the commit", ["a"]), ("lose the answer", ["a", "b"])])
def test_a_cut_during_commit_leaves_the_outcome_unknown_and_a_retry_safe(
    fault: str, written: list[str], proxy: Proxy, database: str, engine: PostgresEngine
) -> None:
    with opened(proxy.url(database)) as remote:
        remote.commit(TENANT, [say("a")], 1)
        proxy.fault = fault
        with pytest.raises(OutcomeUnknown):
            remote.commit(TENANT, [say("b")], 2)
        until = time.monotonic() + 30
        while keys(engine) != written and time.monotonic() < until:  # the server may not be through with the first try
            time.sleep(0.01)
        assert keys(engine) == written
        again = remote.commit(TENANT, [say("b")], 3)
    assert again.heads == (2,)
    assert keys(engine) == ["a", "b"]
    assert [commit.position for commit in engine.feed(TENANT)] == [1, 2]
    assert engine.check() == []


FRESH, AGAIN, GONE = say("b"), say("a"), Delete("note", "n")


@pytest.mark.parametrize("fault", ["lose the commit", "lose the answer"])
@pytest.mark.parametrize("ops", [(FRESH,), (AGAIN, FRESH), (GONE, FRESH, Delete("thread", "u"))])
@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "read"])
def test_a_cut_at_any_round_trip_neither_loses_nor_doubles(
    remembered: bool, ops: Sequence[Op], fault: str, proxy: Proxy, database: str, engine: PostgresEngine
) -> None:
    proxy.commit = b""  # whatever is sent
    for number in range(40):
        tenant = f"tenant-{number}"
        with opened(proxy.url(database)) as remote:
            furniture = [say("a"), Put("note", "n", b""), Append("thread", "u", new=NEW)]
            remote.tenants()  # so that there is a connection
            (remote if remembered else engine).commit(tenant, furniture, 1)
            proxy.fault, proxy.skip = fault, number
            try:
                receipt = remote.commit(tenant, ops, 2)
            except OutcomeUnknown:
                receipt = remote.commit(tenant, ops, 3)
            struck, proxy.fault = not proxy.fault, ""
        assert receipt.heads[-1] == 2
        assert keys(engine, tenant) == ["a", "b"]
        assert [commit.position for commit in engine.feed(tenant)] == [1, 2]
        if not struck:
            break
    assert 1 <= number < 39
    assert engine.check() == []


def test_a_call_that_never_arrives_holds_nothing(proxy: Proxy, database: str, engine: PostgresEngine) -> None:
    with opened(proxy.url(database)) as remote, ThreadPoolExecutor(1) as pool:
        remote.commit(TENANT, [say("a")], 1)
        proxy.fault = "hold the commit"
        stuck = pool.submit(remote.commit, TENANT, [say("b")], 2)
        while proxy.fault and not stuck.done():
            time.sleep(0.01)
        engine.commit(TENANT, [say("c")], 3)
        proxy.close()
        assert isinstance(stuck.exception(), OutcomeUnknown)
    assert keys(engine) == ["a", "c"]


def test_a_vanished_client_does_not_hold_its_tenant_for_ever(
    proxy: Proxy, database: str, engine: PostgresEngine
) -> None:
    with opened(proxy.url(database), busy_timeout_s=0.2) as remote, ThreadPoolExecutor(1) as pool:
        remote.commit(TENANT, [say("a")], 1)
        proxy.fault, proxy.commit = "hold the commit", b"COMMIT\x00"
        stuck = pool.submit(remote.commit, TENANT, [Delete("thread", "t")], 2)  # takes the tenant before it looks
        while proxy.fault and not stuck.done():
            time.sleep(0.01)
        engine.commit(TENANT, [say("c")], 3)
        assert isinstance(stuck.exception(), OutcomeUnknown)
    assert keys(engine) == ["a", "c"]


def test_a_tenant_that_stays_locked_is_unavailable_and_others_are_not(database: str) -> None:
    with opened(database, busy_timeout_s=0.2) as engine, psycopg.connect(database) as other:
        engine.commit(TENANT, [say("a")], 1)
        other.execute("SELECT feed FROM tenants WHERE name = %s FOR UPDATE", (TENANT,))
        with pytest.raises(Unavailable, match="locked by another process"):
            engine.commit(TENANT, [say("b")], 2)
        engine.commit("globex", [say("b")], 2)
        assert keys(engine) == ["a"]  # readers do not wait
        other.rollback()
        engine.commit(TENANT, [say("b")], 3)
        assert keys(engine) == ["a", "b"]


# The server goes away


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
def test_a_stopped_server_is_unavailable_and_the_same_engine_goes_on_after_it(
    mode: str, server: Server, engine: PostgresEngine
) -> None:
    engine.commit(TENANT, [say("a")], 1)
    server.stop(mode)  # type: ignore[arg-type]
    with suppress(Unavailable):
        while True:  # a backend whose server was killed may go on for a moment
            engine.get(TENANT, "thread", "t")
    with pytest.raises(Unavailable, match="cannot be reached") as refusal:
        engine.commit(TENANT, [say("b")], 2)
    assert not isinstance(refusal.value, OutcomeUnknown)
    server.start()
    assert once_it_is_back(lambda: keys(engine)) == ["a"]
    with engine.snapshot() as view:
        assert view.tenants() == [TENANT]
    engine.commit(TENANT, [say("b")], 3)
    assert keys(engine) == ["a", "b"]


def once_it_is_back(ask: Callable[[], Any]) -> Any:
    """What is answered after an outage. A pool that tried in vain waits longer each time before it tries again."""
    said = []
    for _ in range(6):
        try:
            answer = ask()
        except Unavailable as error:
            said.append(str(error))
        else:
            assert not [text for text in said if "in use" in text]  # nobody had a connection
            return answer
    pytest.fail(f"it is not back: {said}")


def test_a_restarted_server_is_not_even_noticed(server: Server, engine: PostgresEngine) -> None:
    engine.commit(TENANT, [say("a")], 1)
    for verb in (lambda: engine.commit(TENANT, [say("b")], 2), lambda: keys(engine), engine.check):
        server.stop("immediate")
        server.start()
        verb()
    assert keys(engine) == ["a", "b"]


def test_what_was_acknowledged_survives_a_crash_under_load(server: Server, engine: PostgresEngine) -> None:
    acknowledged: set[str] = set()
    crashed = threading.Event()

    def write(writer: int) -> None:
        for number in range(10_000):
            key = f"{writer}-{number}"
            try:
                engine.commit(TENANT, [say(key)], 1)
            except Unavailable:
                return
            acknowledged.add(key)
            if len(acknowledged) > 200:
                crashed.set()

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, writer) for writer in range(4)]
        crashed.wait(30)
        server.stop("immediate")
        for each in writers:
            each.result()
    server.start()
    found = keys(engine)
    assert acknowledged <= set(found)
    assert len(found) == len(set(found))
    assert engine.check() == []
    for key in sorted(acknowledged)[:20]:
        engine.commit(TENANT, [say(key)], 2)
    assert keys(engine) == found


def test_a_backend_killed_within_a_transaction_leaves_nothing(
    server: Server, database: str, engine: PostgresEngine
) -> None:
    kills: list[int] = []

    def kill(stored: Event, offered: Event) -> bool:
        kills.append(server.kill_backends(name_of(database)))
        return True

    def kill_once(stored: Event, offered: Event) -> bool:
        return bool(kills) or kill(stored, offered)

    engine.commit(TENANT, [say("a")], 1)
    with pytest.raises(Unavailable) as refusal:  # it tries again, and is killed again
        engine.commit(TENANT, [say("a", same=kill), say("b")], 2)
    assert not isinstance(refusal.value, OutcomeUnknown)
    assert len(kills) > 1
    assert keys(engine) == ["a"]
    kills.clear()
    engine.commit(TENANT, [say("a", same=kill_once), say("b")], 2)
    assert kills
    assert keys(engine) == ["a", "b"]
    assert [commit.position for commit in engine.feed(TENANT)] == [1, 2]


def test_a_snapshot_whose_connection_dies_says_so(server: Server, database: str, engine: PostgresEngine) -> None:
    engine.commit(TENANT, [say("a")], 1)
    with engine.snapshot() as view:
        assert view.tenants() == [TENANT]
        server.kill_backends(name_of(database))
        with pytest.raises(Unavailable):
            view.tenants()
    assert engine.tenants() == [TENANT]


def test_a_full_disk_is_unavailable_and_nothing_is_written(database: str, engine: PostgresEngine) -> None:
    engine.commit(TENANT, [say("a")], 1)
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(
            "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END $$"
        )
        owner.execute("CREATE TRIGGER fill BEFORE INSERT ON feed EXECUTE FUNCTION fill()")
        with pytest.raises(Unavailable, match=r"disk .* is full") as refusal:
            engine.commit(TENANT, [say("b")], 2)
        assert not isinstance(refusal.value, OutcomeUnknown)
        assert keys(engine) == ["a"]
        owner.execute("DROP TRIGGER fill ON feed")
    engine.commit(TENANT, [say("b")], 3)
    assert [commit.position for commit in engine.feed(TENANT)] == [1, 2]


def test_when_all_connections_are_in_use_the_next_caller_is_told(database: str) -> None:
    with opened(database, pool_size=2) as engine:
        with (
            engine.snapshot(),
            engine.snapshot(),
            pytest.raises(Unavailable, match=r"all 2 connections .* in use for 0.5 s; raise pool_size"),
        ):
            engine.tenants()
        assert engine.tenants() == []


# Many processes

PRELUDE = """
    import os, sys
    from holdfast.clock import SystemClock
    from holdfast.engine.contract import Append, Event, Put
    from holdfast.engine.postgres import PostgresEngine
    from holdfast.ids import Ids
    url, name = sys.argv[1:]
    def opened():
        return PostgresEngine(url, SystemClock(), Ids())
    def together():
        print("ready", flush=True)
        sys.stdin.readline()
"""


def processes(count: int, body: str, url: str) -> None:
    """Run the same program in many processes at once; all must end well and say nothing but that they are ready."""
    program = textwrap.dedent(PRELUDE) + textwrap.dedent(body)
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program, url]
    running = [
        subprocess.Popen([*command, str(number)], stdin=-1, stdout=-1, stderr=-1, text=True) for number in range(count)
    ]
    for each in running:
        assert each.stdout is not None
        each.stdout.readline()
    ends = [each.communicate("go\n", timeout=60) for each in running]
    assert [(each.returncode, *end) for each, end in zip(running, ends, strict=True)] == [(0, "", "")] * count


def test_ten_processes_may_open_a_new_database_at_once(server: Server) -> None:
    url = server.create()
    processes(10, "together(); engine = opened(); assert engine.tenants() == []; engine.close()", url)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT version FROM holdfast_meta").fetchall() == [(1,)]
    server.drop(url)


def test_four_processes_on_one_new_stream_lose_nothing(database: str, engine: PostgresEngine) -> None:
    processes(
        4,
        """
        engine = opened()
        together()
        for number in range(100):
            event = Event("message", b"j1{}", 1, f"{name}-{number}")
            engine.commit("acme", [Append("thread", "t", (event,), new=Put("thread", "t", b"j1{}"))], 1)
        engine.close()
        """,
        database,
    )
    assert sorted(map(str, keys(engine))) == sorted(f"{name}-{number}" for name in range(4) for number in range(100))
    assert [commit.position for commit in engine.feed(TENANT, limit=1_000)] == list(range(1, 401))
    assert engine.check() == []


# One group, many callers


Ends = dict[object, Receipt | BaseException | None]


@contextmanager
def grouped(engine: PostgresEngine, *batches: tuple[str, Sequence[Op]]) -> Iterator[Ends]:
    """Make the batches one group: they queue up while another commit is under way. Yield how each ended."""
    engine.commit("gate", [say("a")], 1)
    ends: Ends = {}
    done, under_way, go_on = threading.Event(), threading.Event(), threading.Event()

    def notify(outcomes: list[Outcome]) -> None:
        for ticket, receipt, error in outcomes:
            ends[ticket] = receipt if error is None else error
        if len(ends) == len(batches):
            done.set()

    def wait(stored: Event, offered: Event) -> bool:
        under_way.set()
        return go_on.wait(10)

    with ThreadPoolExecutor(1) as pool:
        leader = pool.submit(engine.commit, "gate", [say("a", same=wait)], 1)
        under_way.wait(10)
        for number, (tenant, ops) in enumerate(batches):
            engine.submit(tenant, ops, 1, notify, number)
        go_on.set()
        leader.result()
        assert done.wait(10)
    yield ends


def test_a_value_that_postgres_refuses_fails_its_own_batch_only(engine: PostgresEngine) -> None:
    nul, wide = say("b\x00"), Put("note", "\N{OGHAM LETTER BEITH}" + os.urandom(4_000).hex(), b"")
    with grouped(engine, (TENANT, [say("a")]), (TENANT, [nul]), (TENANT, [wide]), (TENANT, [say("c")])) as ends:
        assert [type(ends[number]) is Receipt for number in range(4)] == [True, False, False, True]
        assert isinstance(ends[1], Invalid)
        assert isinstance(ends[2], Invalid)
    assert keys(engine) == ["a", "c"]


def test_a_tenant_with_nothing_to_write_gets_no_feed_position(engine: PostgresEngine) -> None:
    engine.commit("globex", [say("a")], 1)
    batches = [(TENANT, [say("a")]), ("globex", [say("a")]), ("initech", [Append("thread", "none")])]
    with grouped(engine, *batches) as ends:
        assert isinstance(ends[2], NotFound)
    assert engine.tenants() == [TENANT, "gate", "globex"]
    engine.commit("globex", [say("b")], 1)
    assert [commit.position for commit in engine.feed("globex")] == [1, 2]


# The wall between tenants

TABLES = ["records", "tags", "strands", "events", "graves", "feed"]
VIEWS = ["holdfast_threads", "holdfast_entries"]


@pytest.fixture
def furnished(engine: PostgresEngine) -> PostgresEngine:
    """Two tenants, each with something in every table."""
    for tenant in (TENANT, "globex"):
        engine.commit(tenant, [Put("note", "gone", b"", scope=Scope(user="ben"))], 1)
        engine.erase(tenant, Scope(user="ben"), time=1)
        engine.commit(tenant, [say("a"), Put("note", "n", b"", tags=("x",))], 1)
    return engine


@pytest.fixture
def clerk(server: Server, database: str) -> Iterator[str]:
    """The address for a role that owns nothing and has nothing but grants."""
    with psycopg.connect(server.admin_url(name_of(database)), autocommit=True) as admin:
        admin.execute("CREATE ROLE clerk LOGIN NOSUPERUSER NOBYPASSRLS")
        admin.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk")
        yield database.replace(f"{ROLE}@", "clerk@")
        admin.execute("DROP OWNED BY clerk")
        admin.execute("DROP ROLE clerk")


def number_of(connection: psycopg.Connection[tuple[Any, ...]], tenant: str) -> int:
    return int(connection.execute("SELECT holdfast_tenant(%s)", (tenant,)).fetchall()[0][0])


@pytest.mark.parametrize("table", TABLES)
def test_a_plain_role_sees_only_the_tenant_it_named(table: str, furnished: PostgresEngine, database: str) -> None:
    query = f"SELECT DISTINCT tenant FROM {table}".encode()
    with psycopg.connect(database, autocommit=True) as connection:
        assert connection.execute(query).fetchall() == []
        with connection.transaction():
            connection.execute("SELECT set_config('holdfast.tenant', %s, true)", (TENANT,))
            assert connection.execute(query).fetchall() == [(number_of(connection, TENANT),)]
        assert connection.execute(query).fetchall() == []  # the setting is empty now, not absent


@pytest.mark.parametrize("table", [*TABLES, "tenants"])
def test_a_role_with_grants_alone_sees_one_tenant_or_none(table: str, furnished: PostgresEngine, clerk: str) -> None:
    query = f"SELECT count(*) FROM {table}".encode()
    with psycopg.connect(clerk, autocommit=True) as connection:
        assert connection.execute(query).fetchall() == [(0,)]
        connection.execute("SET holdfast.tenant = 'nobody'")
        assert connection.execute(query).fetchall() == [(0,)]
        connection.execute("SET holdfast.tenant = 'acme'")
        [(seen,)] = connection.execute(query).fetchall()
        assert seen > 0
        assert connection.execute("SELECT name FROM tenants").fetchall() == [(TENANT,)]
        assert connection.execute("SELECT holdfast_tenant('globex')").fetchall() == [(None,)]


@pytest.mark.parametrize("view", VIEWS)
def test_naming_a_tenant_is_all_that_the_views_need(view: str, furnished: PostgresEngine, clerk: str) -> None:
    query = f"SELECT DISTINCT tenant FROM {view}".encode()
    with psycopg.connect(clerk, autocommit=True) as connection:
        assert connection.execute(query).fetchall() == []
        connection.execute("SET holdfast.tenant = 'acme'")
        assert connection.execute(query).fetchall() == [(TENANT,)]


def test_a_plain_role_cannot_write_for_another_tenant(furnished: PostgresEngine, database: str, clerk: str) -> None:
    with psycopg.connect(database) as connection:
        globex = number_of(connection, "globex")
    for url in (database, clerk):
        with psycopg.connect(url) as connection:
            connection.execute("SELECT set_config('holdfast.tenant', %s, true)", (TENANT,))
            assert connection.execute("UPDATE records SET version = 9 WHERE tenant = %s", (globex,)).rowcount == 0
            assert connection.execute("DELETE FROM events WHERE tenant = %s", (globex,)).rowcount == 0
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("INSERT INTO graves (tenant, grave) VALUES (%s, '')", (globex,))
    with psycopg.connect(clerk) as connection:
        connection.execute("SELECT set_config('holdfast.tenant', %s, true)", (TENANT,))
        assert connection.execute("UPDATE tenants SET feed = 0 WHERE num = %s", (globex,)).rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT holdfast_take('initech')")


def test_a_role_with_grants_alone_works_for_its_tenant_and_is_told_that_it_may_not_list_them(
    furnished: PostgresEngine, clerk: str
) -> None:
    with opened(clerk) as engine:
        engine.commit(TENANT, [say("b"), Put("note", "n", b"", tags=("y",))], 2)
        engine.commit("initech", [say("a")], 2)
        assert engine.erase("initech", Scope(user="ana"), time=3).counts == {"thread": 1}
        assert keys(engine) == ["a", "b"]
        for listing in (engine.tenants, engine.check):
            with pytest.raises(Misconfigured, match="role 'clerk' may not list tenants"):
                listing()
    assert furnished.tenants() == [TENANT, "globex", "initech"]
    assert furnished.check() == []


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT thread, user_id, entries, created FROM holdfast_threads", [("t", "ana", 1, "1970-01-01T00:00:00Z")]),
        ("SELECT thread, number, kind, key, content FROM holdfast_entries", [("t", 1, "message", "a", "{}")]),
        ("SELECT thread, revision, content FROM holdfast_states", []),
        ("SELECT thread, checkpoint, content FROM holdfast_checkpoints", []),
        ("SELECT thread, run, status, content FROM holdfast_runs", []),
        ("SELECT run, number, kind, content FROM holdfast_steps", []),
        ("SELECT thread, revision, content FROM holdfast_handoffs", []),
        ("SELECT memory, user_id, content FROM holdfast_memories", []),
        ("SELECT folder, path, version, user_id, content FROM holdfast_files", []),
    ],
)
def test_people_can_look_with_their_own_tools(
    query: str, rows: list[tuple[object, ...]], furnished: PostgresEngine, database: str
) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("SELECT set_config('holdfast.tenant', %s, true)", (TENANT,))
        assert connection.execute(query.encode()).fetchall() == rows


def test_reads_ask_for_no_more_than_their_tenant(furnished: PostgresEngine) -> None:
    assert furnished.scan("nobody", Query("thread")) == []
    assert furnished.feed("nobody") == []
    assert furnished.tenants() == [TENANT, "globex"]


# What cannot be opened


def test_a_database_or_role_that_is_not_there_is_misconfigured(server: Server, database: str) -> None:
    for url in (server.url("nowhere"), database.replace(f"{ROLE}@", "stranger@")):
        with pytest.raises(Misconfigured, match="does not exist"), opened(url):
            pass
    with pytest.raises(Misconfigured, match="not a Postgres address"), opened(f"{database}&nonsense=1"):
        pass


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be reached"), opened(f"postgresql://{ROLE}@/db?host={tmp_path}"):
        pass


@pytest.mark.parametrize(
    ("furniture", "message"),
    [
        ("CREATE TABLE records (name text)", 'relation "records" already exists'),
        ("CREATE TABLE holdfast_meta (colour text)", "not as Holdfast left it"),
        ("CREATE TABLE holdfast_meta AS SELECT 99::bigint AS version", "newer Holdfast"),
    ],
)
def test_a_database_of_others_is_left_alone(furniture: str, message: str, server: Server) -> None:
    url = server.create()
    with psycopg.connect(url) as connection:
        connection.execute(furniture.encode())
    with pytest.raises(Misconfigured, match=message), opened(url):
        pass
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchall() == [(1,)]
    server.drop(url)
