"""Sessions of the OpenAI Agents SDK."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import holdfast
from holdfast import importers
from holdfast.errors import Conflict, Invalid, Unsupported


def take(store: holdfast.Store, place: Path, skip: bool = False, **ways: str) -> importers.ImportOutcome:
    with importers.read(place, **ways) as source:  # type: ignore[arg-type]
        return importers.import_into(store, source, skip=skip)


def add(path: Path, *rows: tuple[str, str]) -> None:
    connection = sqlite3.connect(path)
    connection.executemany("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", rows)
    connection.commit()
    connection.close()


def test_items_are_entries_as_the_adapter_makes_them(store: holdfast.Store, sessions: Path) -> None:
    done = take(store, sessions, user="ana")
    assert done.counts == {"sessions": 2, "items": 8}
    log = store.thread("trip-42", user="ana").log()
    assert [entry.kind for entry in log] == [
        "message", "message", "tool_call", "observation", "message", "event", "message"
    ]  # fmt: skip
    assert log[0].content == {
        "role": "user",
        "content": "Book me a flight to Porto ✈️",
        "$framework": {"openai_agents": {}},
    }
    assert log[2].content["name"] == "find_flights"
    assert log[2].content["$framework"]["openai_agents"] == {
        "type": "function_call",
        "id": "fc_1",
        "status": "completed",
    }
    assert log[3].content["of"] == "call_1"
    with sqlite3.connect(sessions) as connection:
        stamps = [
            row[0] for row in connection.execute("SELECT created_at FROM agent_messages WHERE session_id = 'trip-42'")
        ]
    connection.close()
    assert [f"{entry.time:%Y-%m-%d %H:%M:%S}" for entry in log] == stamps
    assert store.thread("żółw", user="ana").log()[0].content["content"] == "hello \x00 there"
    assert store.memory(user="ana").recall("flight to Porto").hits[0].entry is not None


def test_what_came_since_is_added(store: holdfast.Store, sessions: Path) -> None:
    take(store, sessions)
    add(sessions, ("trip-42", '{"role": "user", "content": "And back?"}'))
    done = take(store, sessions)
    assert (done.new, done.here) == ({"entries": 1}, {"entries": 8})
    assert store.thread("trip-42").log(1)[0].content["content"] == "And back?"


def test_a_thread_that_went_on_here_is_not_mixed_up(store: holdfast.Store, sessions: Path) -> None:
    take(store, sessions)
    store.thread("trip-42").append({"role": "user", "content": "here"})
    assert take(store, sessions).new == {}
    add(sessions, ("trip-42", '{"role": "user", "content": "there"}'), ("new", '{"role": "user", "content": "new"}'))
    with pytest.raises(Conflict, match="1 entries of its own"):
        take(store, sessions)
    assert not store.thread("new").exists(), "nothing is imported when a part cannot be"


def test_another_session_of_the_same_name_is_refused(store: holdfast.Store, sessions: Path) -> None:
    take(store, sessions)
    connection = sqlite3.connect(sessions)
    connection.execute('UPDATE agent_messages SET message_data = \'{"role": "user", "content": "x"}\' WHERE id = 1')
    connection.commit()
    connection.close()
    with pytest.raises(Conflict, match="its entry 1 differs here"):
        take(store, sessions)


def test_items_that_cannot_be_read_are_named(store: holdfast.Store, sessions: Path) -> None:
    bad = [
        '{"role": "user',
        "[1]",
        '{"__enc__": 1, "payload": "x"}',
        '{"role": "user", "content": "\\ud800"}',
        "[" * 9999,
    ]
    add(sessions, *(("trip-42", data) for data in bad))
    with pytest.raises(Invalid, match=r"5 items .*session 'trip-42', item 9: it is not JSON"):
        take(store, sessions)
    assert store.threads() == []
    done = take(store, sessions, skip=True)
    assert done.new == {"entries": 8}
    assert sorted(why.why.split(";")[0].split(":")[0] for why in done.refused) == [
        "an item is a dict, not list", "content.'content'", "it is encrypted", "it is not JSON", "it is not JSON"
    ]  # fmt: skip


def test_other_names_of_tables(store: holdfast.Store, sessions: Path) -> None:
    connection = sqlite3.connect(sessions)
    connection.executescript('ALTER TABLE agent_messages RENAME TO "my ""own"" items"')
    connection.close()
    assert take(store, sessions).new == {"entries": 8}


def test_branches_are_not_mixed_up(sessions: Path) -> None:
    connection = sqlite3.connect(sessions)
    connection.executescript(
        "CREATE TABLE message_structure (message_id INTEGER, branch_id TEXT);"
        "INSERT INTO message_structure VALUES (1, 'main'), (2, 'other')"
    )
    connection.close()
    with pytest.raises(Unsupported, match="2 branches"):
        importers.read(sessions)


def test_times_never_fall_and_are_never_ahead(store: holdfast.Store, sessions: Path) -> None:
    connection = sqlite3.connect(sessions)
    connection.execute("UPDATE agent_messages SET created_at = '2999-01-01 00:00:00' WHERE id = 2")
    connection.execute("UPDATE agent_messages SET created_at = 'no time' WHERE id = 4")
    connection.commit()
    connection.close()
    take(store, sessions)
    times = [entry.time_us for entry in store.thread("trip-42").log()]
    assert times == sorted(times)
    assert times[-1] <= store.core.clock.now()
