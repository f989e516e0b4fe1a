"""Somebody else's database: read at one moment, whatever its program does, and left as it is."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from holdfast import importers
from holdfast.errors import Conflict, Corrupt, HoldfastError, Invalid, Unavailable
from holdfast.importers.database import ForeignDatabase, opened

_WRITER = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30)
connection.execute("PRAGMA journal_mode = " + sys.argv[2])
print("ready", flush=True)
number = 0
while True:
    number += 1
    item = json.dumps({"role": "user", "content": f"item {number}"})
    with connection:
        connection.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('busy', ?)", (item,))
        connection.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('busy', ?)", (item,))
"""


@contextmanager
def written_to(path: Path, mode: str) -> Iterator[None]:
    """A process that writes two rows at a time, as fast as it can."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path), mode], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        yield
    finally:
        writer.kill()
        writer.wait()
        if writer.stdout is not None:
            writer.stdout.close()


def journal(path: Path, mode: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.close()


@pytest.mark.slow
def test_a_database_in_use_is_read_at_one_moment(store: holdfast.Store, sessions: Path) -> None:
    journal(sessions, "WAL")
    with written_to(sessions, "WAL"):
        for _ in range(5):
            with importers.read(sessions) as source:
                counted = source.counts["items"]
                done = importers.import_into(store, source)
            assert done.compared == counted
            busy = [entry.content["content"] for entry in store.thread("busy").log()]
            assert len(busy) % 2 == 0, "what was written together comes in together"
            assert busy == [f"item {number // 2 + 1}" for number in range(len(busy))]
    assert store.verify().ok


@pytest.mark.slow
def test_a_busy_database_without_a_log_is_right_or_refused(store: holdfast.Store, sessions: Path) -> None:
    refused = 0
    with written_to(sessions, "DELETE"):
        for _ in range(6):
            try:
                with importers.read(sessions) as source:
                    importers.import_into(store, source)
            except (Conflict, Unavailable, Corrupt) as error:
                refused += 1
                assert "writ" in str(error) or "damaged" in str(error)  # noqa: PT017 - most attempts succeed
            busy = [entry.content["content"] for entry in store.thread("busy").log()]
            assert busy == [f"item {number // 2 + 1}" for number in range(len(busy))]
            assert len(busy) % 2 == 0
    connection = sqlite3.connect(sessions)
    connection.execute("SELECT count(*) FROM agent_messages").fetchall()  # undoes what the killed writer left half done
    connection.close()
    with importers.read(sessions) as source:
        importers.import_into(store, source)
    assert refused < 6


def test_a_writer_is_not_kept_waiting(store: holdfast.Store, sessions: Path) -> None:
    with importers.read(sessions) as source:
        connection = sqlite3.connect(sessions, timeout=0)
        with connection:
            connection.execute("INSERT INTO agent_sessions (session_id) VALUES ('new')")
        connection.close()
        assert importers.import_into(store, source).compared == 8


def test_what_is_only_in_the_log_comes_along(store: holdfast.Store, sessions: Path) -> None:
    connection = sqlite3.connect(sessions)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    item = json.dumps({"role": "user", "content": "in the log"})
    with connection:
        connection.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('logged', ?)", (item,))
    with importers.read(sessions) as source:
        importers.import_into(store, source)
    connection.close()
    assert store.thread("logged").log()[0].content["content"] == "in the log"


def test_the_middle_of_a_write_is_refused(sessions: Path, tmp_path: Path) -> None:
    """A writer that was killed half way left a journal: what the file holds is neither the old nor the new."""
    left = tmp_path / "left.db"
    connection = sqlite3.connect(sessions, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    rows = [("x", "y" * 5000)] * 50
    connection.executemany("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", rows)
    left.write_bytes(sessions.read_bytes())
    Path(f"{left}-journal").write_bytes(Path(f"{sessions}-journal").read_bytes())
    connection.close()
    with pytest.raises(Unavailable, match="left in the middle of a write"):
        importers.read(left)
    assert Path(f"{left}-journal").exists()
    connection = sqlite3.connect(left)
    connection.execute("SELECT count(*) FROM agent_messages").fetchall()
    connection.close()
    with importers.read(left) as source:
        assert source.counts["items"] == 8


def test_a_change_while_it_is_copied_is_found(sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.importers import database  # noqa: PLC0415

    journal(sessions, "WAL")
    copy = database.copy_database

    def slow(source: object, target: Path) -> None:
        copy(source, target)  # type: ignore[arg-type]
        connection = sqlite3.connect(sessions)
        with connection:
            connection.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('new', '{}')")
        connection.close()

    monkeypatch.setattr(database, "copy_database", slow)
    with pytest.raises(Conflict, match="was written to while it was read"):
        importers.read(sessions)


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
def test_a_database_that_is_cut_short(sessions: Path, keep: float) -> None:
    data = sessions.read_bytes()
    sessions.write_bytes(data[: int(len(data) * keep) // 4096 * 4096])
    with pytest.raises(Corrupt):
        importers.read(sessions)


def test_a_damaged_database_is_refused_or_read_right(sessions: Path) -> None:
    """Whatever byte is wrong: either it is told, or what comes in is what is there."""
    data = bytearray(sessions.read_bytes())
    told = 0
    for place in range(100, len(data), 1021):
        broken = bytearray(data)
        broken[place : place + 8] = b"\xff" * 8
        sessions.write_bytes(bytes(broken))
        try:
            with importers.read(sessions) as source, holdfast.open("ram:", embedder="none") as other:
                done = importers.import_into(other, source, skip=True)
                assert sum(done.new.values()) + len(done.refused) == done.counts["items"]
        except HoldfastError:
            told += 1
    assert told > 1


def test_a_database_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE cats (name); CREATE TABLE dogs (name)")
    connection.close()
    with pytest.raises(Invalid, match="unknown kind; its tables are cats, dogs"):
        importers.recognise(path)
    with pytest.raises(Invalid, match="unknown kind"):
        importers.read(path, "openai-agents")
    with holdfast.open(tmp_path / "ours.db", embedder="none") as store:
        store.thread("t").append({"role": "user", "content": "hi"})
        with pytest.raises(Invalid, match="is a Holdfast store"):
            importers.recognise(tmp_path / "ours.db")


def test_text_that_is_none(sessions: Path) -> None:
    connection = sqlite3.connect(sessions)
    with connection:
        connection.execute("UPDATE agent_messages SET message_data = CAST(X'fffe' AS TEXT) WHERE id = 1")
    connection.close()
    with importers.read(sessions) as source, pytest.raises(Corrupt, match="not UTF-8"):
        list(source.parts())


def test_a_file_that_is_no_database(tmp_path: Path, sessions: Path) -> None:
    path = tmp_path / "text"
    path.write_text("hello " * 1000, encoding="utf-8")
    assert opened(path) is None
    with ForeignDatabase(sessions) as database:
        assert database.having("session_id", "message_data") == ["agent_messages"]
        with pytest.raises(HoldfastError):
            list(database.rows("DELETE FROM agent_messages"))


def test_two_imports_at_once(tmp_path: Path, sessions: Path) -> None:
    """One of them brings things in, both end well or one is told that another was faster, and all is there once."""
    failures: list[HoldfastError] = []
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:

        def work() -> None:
            try:
                with importers.read(sessions) as source:
                    importers.import_into(store, source)
            except HoldfastError as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(isinstance(error, Conflict) for error in failures)
        with importers.read(sessions) as source:
            importers.import_into(store, source)
        assert store.thread("trip-42").logbook.head() == 7
        assert store.verify().ok
