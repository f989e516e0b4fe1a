"""Our own tables change forward only, whole or not at all, and from every version there ever was."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast.engine import migrate
from holdfast.errors import HoldfastError, Misconfigured

SECOND = "CREATE TABLE later (num INTEGER PRIMARY KEY); INSERT INTO later VALUES (7);"


def with_second(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    """Pretend that the package has one more migration than it has."""
    known = migrate.migrations("sqlite")
    monkeypatch.setattr(migrate, "migrations", lambda dialect: (*known, (len(known) + 1, sql)))


def store_with_an_entry(path: Path) -> None:
    with holdfast.open(path) as store:
        store.thread("trip").append({"role": "user", "content": "hello"})


def version_of(path: Path) -> int:
    connection = apsw.Connection(str(path))
    try:
        return int(connection.execute("PRAGMA user_version").fetchall()[0][0])
    finally:
        connection.close()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_migrations_are_numbered_without_gaps(dialect: str) -> None:
    versions = [version for version, _ in migrate.migrations(dialect)]
    assert versions == list(range(1, len(versions) + 1))


@pytest.mark.parametrize("version", range(migrate.newest("sqlite")))
def test_a_store_of_every_version_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    path = tmp_path / "old.db"
    connection = apsw.Connection(str(path))
    for number, sql in migrate.migrations("sqlite")[:version]:
        connection.execute(sql).fetchall()
        connection.execute(f"PRAGMA user_version = {number}").fetchall()
    connection.close()
    store_with_an_entry(path)
    assert version_of(path) == migrate.newest("sqlite")


def test_a_migration_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.db"
    store_with_an_entry(path)
    with_second(monkeypatch, SECOND)
    with holdfast.open(path) as store:
        assert store.thread("trip").logbook.head() == 1
        assert store.verify().ok
    assert version_of(path) == migrate.newest("sqlite")


@pytest.mark.parametrize("broken", ["CREATE TABLE later (x); SELECT no_such_function();", "CREATE TABLE records (x);"])
def test_a_migration_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "agent.db"
    store_with_an_entry(path)
    before = version_of(path)
    with monkeypatch.context() as patch:
        with_second(patch, broken)
        with pytest.raises(HoldfastError):
            holdfast.open(path)
    assert version_of(path) == before
    with holdfast.open(path) as store:
        assert store.thread("trip").logbook.head() == 1


def test_there_is_no_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.db"
    with monkeypatch.context() as patch:
        with_second(patch, SECOND)
        store_with_an_entry(path)
    with pytest.raises(Misconfigured, match="newer Holdfast"):
        holdfast.open(path)
