"""Options of Postgres mean the same as parameters and in the address, and a slip in them is refused in one sentence."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.engine.postgres_options import PostgresOptions, PostgresSettings, apart, settled
from holdfast.engine.registry import scheme_of
from holdfast.errors import Misconfigured

HOST = "postgresql://u:hush@h:5432/db"
SECONDS = st.integers(1, 86_400)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "pool_size": st.integers(5, 1_000),
        "pool_min": st.integers(0, 5),
        "pool_timeout": SECONDS,
        "connect_timeout": SECONDS,
        "statement_timeout": st.integers(0, 86_400),
        "lock_timeout": SECONDS,
        "schema": st.text("abc &=?%äß\"'", min_size=1, max_size=20),
    },
)
FOREIGN = st.lists(
    st.sampled_from(["sslmode=require", "application_name=a%20b", "options=-c%20x", "target_session_attrs="])
)


@given(OPTIONS, FOREIGN, st.randoms())
def test_an_address_says_the_same_as_a_dict_and_libpq_gets_the_rest_as_it_was(
    options: dict[str, Any], foreign: list[str], random: Any
) -> None:
    ours = [f"{name}={quote(str(value), safe='')}" for name, value in options.items()]
    parts = [*ours, *foreign]
    random.shuffle(parts)
    rest, found = apart(f"{HOST}?{'&'.join(parts)}" if parts else HOST)
    assert settled(None, found) == settled(options, {})
    left = [part for part in parts if part in foreign]
    assert rest == (f"{HOST}?{'&'.join(left)}" if left else HOST)


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("30s", 30), ("1.5 s", 1.5), ("5min", 300), ("7", 7)])
def test_times_are_seconds_or_name_their_unit(text: str, seconds: float) -> None:
    assert settled(None, {"pool_timeout": text}).pool_timeout == seconds
    assert settled({"pool_timeout": text}, {}).pool_timeout == seconds


def test_a_parameter_goes_before_the_address_and_that_before_what_is_beneath() -> None:
    under = PostgresSettings(pool_size=7, schema="agents", pool_min=2)
    found = settled({"pool_size": 20}, {"pool_size": "15", "pool_timeout": "3"}, under)
    assert (found.pool_size, found.pool_timeout, found.schema, found.pool_min) == (20, 3.0, "agents", 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pool_size": 0}, "pool_size is a whole number from 2 to 1,000, not 0"),
        ({"pool_size": "20"}, "pool_size is a whole number .* not '20'"),
        ({"pool_size": True}, "pool_size is a whole number"),
        ({"pool_min": -1}, "pool_min is a whole number from 0"),
        ({"pool_min": 20}, "pool_min is 20, which is more than pool_size, 10"),
        ({"pool_timeout": 0}, "pool_timeout is a time over 0"),
        ({"statement_timeout": -1}, r"statement_timeout is a time of 0 \(no limit\) or more"),
        ({"statement_timeout": "30 seconds"}, "seconds, or a text such as"),
        ({"connect_timeout": float("nan")}, "connect_timeout is a time"),
        ({"lock_timeout": 1e9}, "at most a day"),
        ({"schema": ""}, "schema is a name"),
        ({"schema": "pg_temp"}, "does not begin with pg_"),
        ({"schema": "ä" * 40}, "at most 63 bytes"),
        ({"sslmode": 1}, "sslmode is a text"),
        ({"max_open": 5}, "postgres has no option 'max_open'; there are pool_size"),
        ({"poolsize": 5}, "did you mean pool_size"),
        ({3: 5}, "postgres has no option 3"),
        ([("pool_size", 5)], "postgres is a dict"),
        (HOST, "postgres is a dict"),
    ],
)
def test_a_slip_in_a_parameter_is_refused_and_shown(options: Any, said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        holdfast.open("postgresql://h/db", postgres=options)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("pool_size=hush", "pool_size is a whole number from 2 to 1,000; the address says otherwise"),
        ("pool_size=-5", "pool_size is a whole number"),
        ("pool_size=٣", "pool_size is a whole number"),
        ("pool_size=" + "9" * 5_000, "pool_size is a whole number"),
        ("statement_timeout=hush", "statement_timeout is a time"),
        ("pool_size=1&pool_size=2", "gives pool_size twice"),
        ("pool_sise=20", r"invalid URI query parameter; did you mean pool_size\?"),
        ("nonsense=hush", "not a Postgres address: invalid URI query parameter"),
    ],
)
def test_a_slip_in_the_address_is_refused_and_nothing_of_it_is_shown(query: str, said: str) -> None:
    with pytest.raises(Misconfigured, match=said) as refusal:
        holdfast.open(f"{HOST}?{query}")
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("url", ["ram:", "agent.db"])
def test_other_stores_have_neither_options_nor_a_replica(url: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Misconfigured, match="goes with a postgresql:// address"):
        holdfast.open(url, postgres={"pool_size": 2})
    with pytest.raises(Misconfigured, match="goes with a postgresql:// address"):
        holdfast.open(url, replica="postgresql://h/db")
    assert list(tmp_path.iterdir()) == []


def test_the_replica_of_the_environment_belongs_to_the_database_of_the_environment(monkeypatch: Any) -> None:
    monkeypatch.setenv("HOLDFAST_REPLICA", "postgresql://h/db")
    holdfast.open("ram:", embedder="none").close()
    monkeypatch.setenv("HOLDFAST_DB", "ram:")
    with pytest.raises(Misconfigured, match="other stores have none"):
        holdfast.open()


@pytest.mark.parametrize("lag", [0, -1, float("nan"), "5", 3_601, True])
def test_the_bound_of_a_replica_is_a_number_of_seconds(lag: Any) -> None:
    with pytest.raises(Misconfigured, match="replica_lag_s is a number of seconds"):
        holdfast.open("postgresql://h/db", replica="postgresql://h/db", replica_lag_s=lag)


def test_every_option_is_read() -> None:
    """One that is declared and not read would be accepted without a meaning."""
    assert set(PostgresOptions.__annotations__) - {
        "application_name",
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
    } == (set(PostgresSettings.__struct_fields__) - {"libpq"})


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "postgres+asyncpg", "POSTGRESQL+psycopg2"])
def test_a_driver_in_the_scheme_is_left_out(scheme: str) -> None:
    assert scheme_of(f"{scheme}://db/agents") in ("postgresql", "postgres")
    address, ours = apart(f"{scheme}://user:a+b@db/agents?pool_size=3")
    assert (address.lower().split("+")[0].split(":")[0], ours) == (scheme.lower().split("+")[0], {"pool_size": "3"})
    assert address.endswith("://user:a+b@db/agents")
