"""What is configured holds on the server: schemas are apart, timeouts end statements, names and TLS reach it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest

import holdfast
from holdfast.engine.postgres import PostgresEngine
from holdfast.errors import Misconfigured, Unavailable
from holdfast.testing.postgres import ROLE, Server
from holdfast.types import PostgresOptions

pytestmark = pytest.mark.slow

HELLO = {"role": "user", "content": "hello"}


def engine_of(store: holdfast.Store) -> PostgresEngine:
    assert isinstance(store.core.engine, PostgresEngine)
    return store.core.engine


def setting(store: holdfast.Store, name: str) -> str:
    """What a session of the store's pool is left with, outside any transaction of ours."""
    with engine_of(store)._borrowed() as connection:
        return str(connection.execute("SELECT current_setting(%s)", (name,)).fetchall()[0][0])


def test_what_must_be_whole_is_not_cut_short(server: Server) -> None:
    url = server.create()
    with holdfast.open(url, embedder="none") as store:
        store.memory("ana").remember_all([f"note {number} {'x' * 200}" for number in range(3_000)])
        store.thread("t", user="ana").append(*(HELLO for _ in range(1_000)))
    with holdfast.open(url, postgres={"statement_timeout": "2ms"}, embedder="none") as hurried:
        with pytest.raises(Unavailable, match="statement_timeout"):
            hurried.memory("ana").memories(limit=None)
        assert hurried.verify().ok
        assert hurried.erase(user="ana") > 3_000


# Schemas


def test_two_schemas_of_a_database_are_two_stores(server: Server) -> None:
    url = server.create()
    with (
        holdfast.open(f"{url}&schema=agents", embedder="none") as agents,
        holdfast.open(url, postgres={"schema": 'Odd "name"'}, embedder="none") as odd,
        holdfast.open(url, embedder="none") as plain,
    ):
        for store, count in ((agents, 1), (odd, 2), (plain, 3)):
            for number in range(count):
                store.thread(f"t{number}", user="ana").append(HELLO)
            store.memory("ana").remember(f"likes {count} cats")
        assert [len(store.threads()) for store in (agents, odd, plain)] == [1, 2, 3]
        assert agents.erase(user="ana") > 0
        assert [len(store.threads()) for store in (agents, odd, plain)] == [0, 2, 3]
        assert [hit.text for hit in odd.memory("ana").recall("cats", log=False)] == ["likes 2 cats"]
        assert all(store.verify().ok for store in (agents, odd, plain))
    with holdfast.open(f"{url}&schema=agents", embedder="none") as again:
        assert (again.tenants(), again.threads()) == (["default"], [])
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'events' ORDER BY 1").fetchall()
    assert found == [('Odd "name"',), ("agents",), ("public",)]
    server.drop(url)


def test_the_wall_between_tenants_stands_in_a_schema(server: Server) -> None:
    url = server.create()
    with holdfast.open(f"{url}&schema=agents", tenant="acme", embedder="none") as store:
        store.thread("t").append(HELLO)
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path TO agents")
        assert connection.execute("SELECT count(*) FROM events").fetchall() == [(0,)]
        connection.execute("SELECT set_config('holdfast.tenant', 'acme', false)")
        assert connection.execute("SELECT count(*) FROM events").fetchall() == [(1,)]
    server.drop(url)


def test_a_schema_that_the_role_may_not_make_is_misconfigured(server: Server) -> None:
    url = server.create()
    with psycopg.connect(server.admin_url(urlsplit(url).path[1:]), autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {urlsplit(url).path[1:]} OWNER TO postgres".encode())
    with pytest.raises(Misconfigured, match="permission denied"):
        holdfast.open(f"{url}&schema=agents")
    server.drop(url)


def test_no_session_is_left_with_what_a_transaction_set(database: str) -> None:
    with holdfast.open(f"{database}&schema=agents&statement_timeout=30s", embedder="none") as store:
        store.thread("t", user="ana").append(HELLO)
        store.threads()
        with store.core.engine.snapshot() as view:
            view.head("default")
        store.erase(user="ana")
        assert setting(store, "search_path") == '"$user", public'
        assert setting(store, "statement_timeout") == "0"


# Timeouts


def test_a_read_that_takes_too_long_is_given_up_and_the_store_goes_on(database: str) -> None:
    with holdfast.open(f"{database}&statement_timeout=50ms", embedder="none") as store:
        engine = engine_of(store)
        with pytest.raises(Unavailable, match=r"statement timeout; the option statement_timeout says") as refusal:
            engine._run_outside("default", "SELECT pg_sleep(5)")
        assert refusal.value.retryable
        store.thread("t").append(HELLO)
        assert len(store.threads()) == 1


def test_setting_up_and_erasing_may_take_longer_than_a_statement(server: Server) -> None:
    """Whoever sets the timeout: the option, or the role as many installations have it."""
    url = server.create()
    name = urlsplit(url).path[1:]
    with psycopg.connect(server.admin_url(name), autocommit=True) as admin:
        admin.execute(f"ALTER ROLE {ROLE} IN DATABASE {name} SET statement_timeout = '40ms'".encode())
        # Every table takes its time to be made: the statements of our migrations are sent as one.
        admin.execute(
            "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.02); END $$"
        )
        admin.execute("CREATE EVENT TRIGGER slow ON ddl_command_end EXECUTE FUNCTION slow()")
    with holdfast.open(f"{url}&statement_timeout=40ms", embedder="none") as store:
        store.thread("t", user="ana").append(HELLO)
        with psycopg.connect(server.admin_url(name), autocommit=True) as admin:
            admin.execute("DROP EVENT TRIGGER slow")
            admin.execute(
                "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM pg_sleep(0.1); RETURN OLD; END $$"
            )
            admin.execute("CREATE TRIGGER slowly BEFORE DELETE ON events FOR EACH STATEMENT EXECUTE FUNCTION slowly()")
        assert store.erase(user="ana") > 0
        assert store.verify().ok
    server.drop(url)


# The pool


def test_the_pool_is_as_large_as_configured(server: Server, database: str) -> None:
    options: PostgresOptions = {"pool_size": 2, "pool_min": 2, "pool_timeout": "100ms", "application_name": "booking"}
    with holdfast.open(database, postgres=options, embedder="none") as store:
        engine = store.core.engine
        with engine.snapshot() as view, engine.snapshot():
            view.head("default")
            with psycopg.connect(server.admin_url()) as admin:
                asked = b"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'booking'"
                assert admin.execute(asked).fetchall() == [(2,)]
            with pytest.raises(Unavailable, match=r"all 2 connections .* pool_size"):
                store.threads()
        assert store.threads() == []


# TLS


@contextmanager
def without_tls() -> Iterator[int]:
    """A server that has no TLS, as far as a client gets with it: it answers the request for it with N."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.recv(8)
                    client.sendall(b"N")

        thread = threading.Thread(target=refuse)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("by", ["address", "parameter"])
def test_tls_that_is_asked_for_is_not_done_without(by: str) -> None:
    with without_tls() as port:
        url = f"postgresql://u@127.0.0.1:{port}/db"
        options: PostgresOptions = {"sslmode": "require"} if by == "parameter" else {}
        with pytest.raises(Misconfigured, match="SSL was required"):
            holdfast.open(url if options else f"{url}?sslmode=require", postgres=options)


# The command


def test_the_command_takes_options_in_the_address(server: Server) -> None:
    url = server.create()
    with holdfast.open(f"{url}&schema=agents", embedder="none") as store:
        store.thread("trip-42").append(HELLO)

    def listed(address: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast", "--db", address, "threads", "--json"]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert "trip-42" in listed(f"{url}&schema=agents&pool_size=2").stdout
    assert "trip-42" not in listed(f"{url}&pool_size=2").stdout
    refused = listed(f"{url}&pool_size=many")
    assert refused.returncode
    assert "pool_size is a whole number" in refused.stderr
    server.drop(url)
