"""The command: every one of its parts, as text and as JSON, its exit codes, and its manners in a pipe."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock

typer = pytest.importorskip("typer", reason="the command's extra is not installed")

from tests.doors.done import Call, Done  # noqa: E402

from holdfast.doors.cli import exits, wording  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.app import app, run  # noqa: E402
from holdfast.doors.cli.desk import Desk  # noqa: E402
from holdfast.doors.cli.render import Column, Screen, visible  # noqa: E402

ESCAPE = "\x1b"
AGES_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command in this process, as ``main`` does."""

    def call(*args: str | Path) -> Done:
        capsys.readouterr()
        code = run([str(arg) for arg in args])
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A store with two threads: trip-42, which has everything, and other, which has one entry."""
    path = tmp_path / "agent.db"
    with holdfast.open(path) as store:
        trip = store.thread("trip-42", user="ana", agent="travel", tags=["vip"])
        state = holdfast.AgentState(user_preferences={"name": "Ana"}).with_fact(
            "fare", "184 EUR", at=AGES_AGO, by="air"
        )
        with trip.turn() as turn:
            turn.append(holdfast.message("user", "A flight to Lisbon,\nplease."), key="hello")
            turn.append(holdfast.tool_call("search", {"to": "LIS"}), holdfast.observation([{"flight": "TP 533"}]))
            turn.append(holdfast.event("held", seat="14C"), holdfast.note("likes mornings"))
            turn.save(state)
        trip.checkpoint("before-payment", note="nothing paid")
        state.unresolved_issues.append("may the cello come?")
        trip.save(state)
        trip.append(holdfast.message("assistant", "TP 533 at 06:40."))
        store.thread("other").append({"role": "user", "content": "hello"})
    return path


def clean(**more: str) -> dict[str, str]:
    """The environment for a child: as it is, but with Python's output as it usually is in a pipe."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}, **more}


def process(*args: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own."""
    command = [sys.executable, "-m", "holdfast", *map(str, args)]
    more = {"stdin": subprocess.DEVNULL, "env": clean(), **more}
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, **more)


# What each command says


def test_threads_lists_latest_first(call: Call, db: Path) -> None:
    done = call("threads", "--db", db)
    heading, first, second = done.out.splitlines()
    assert heading.split() == ["THREAD", "USER", "AGENT", "ENTRIES", "LAST", "ACTIVE", "TAGS"]
    assert first.split()[:4] == ["other", "-", "-", "1"]
    assert second.split()[:4] == ["trip-42", "ana", "travel", "6"]
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--user", "ana"], ["trip-42"]),
        (["--agent", "travel"], ["trip-42"]),
        (["--tag", "vip"], ["trip-42"]),
        (["--tag", "none"], []),
        (["--since", "1h"], ["other", "trip-42"]),
        (["--until", "1h"], []),
        (["--since", "2999-01-01"], []),
        (["--limit", "1"], ["other"]),
        (["--limit", "0"], ["other", "trip-42"]),
    ],
)
def test_threads_can_be_chosen(call: Call, db: Path, options: list[str], expected: list[str]) -> None:
    done = call("--db", db, "threads", "--json", *options)
    assert [each["id"] for each in done.data["threads"]] == expected


def test_threads_says_when_there_are_none_or_more(call: Call, db: Path) -> None:
    assert "No threads" in call("--db", db, "threads", "--tag", "none").err
    assert "may be more" in call("--db", db, "threads", "--limit", "1").err


@pytest.mark.parametrize("since", ["yesterday", "3 days ago", "last monday"])
def test_times_are_typed_as_people_say_them(call: Call, db: Path, since: str) -> None:
    assert len(call("--db", db, "threads", "--since", since, "--json").data["threads"]) == 2
    done = call("state", "trip-42", "--as-of", since, "--db", db)
    assert (done.code, done.out) == (exits.OK, "No state was saved by then.\n")


def test_users_are_listed_with_what_they_own(call: Call, db: Path) -> None:
    with holdfast.open(db, embedder="none") as store:
        store.memory(user="bo").remember("likes trains")
    heading, *rows = call("users", "--db", db).out.splitlines()
    assert heading.split() == ["USER", "THREADS", "MEMORIES", "LAST", "ACTIVE"]
    assert [row.split()[:3] for row in rows] == [["bo", "0", "1"], ["ana", "1", "0"]]
    assert [each["user"] for each in call("users", "--db", db, "--json").data["users"]] == ["bo", "ana"]
    assert call("users", "--db", db, "--tenant", "empty").err == "No users.\n"


def test_append_makes_a_thread_and_adds_to_it(call: Call, tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    done = call("append", "trip-7", "A window seat, please.", "--user", "ana", "--agent", "travel", "--db", new)
    assert (done.code, done.out) == (exits.OK, "Stored in trip-7 as entry 1.\n")
    again = ["append", "trip-7", "Noted.", "--role", "assistant", "--key", "answer", "--db", new]
    assert call(*again, "--json").data["entry"]["number"] == 2
    assert call(*again).out == "Stored in trip-7 as entry 2.\n"  # the same key, so it is there once
    assert call(*again[:2], "Something else.", *again[3:]).code == exits.USAGE
    with holdfast.open(new, embedder="none") as store:
        info = store.thread("trip-7").info()
        assert (info.user, info.agent, info.entries) == ("ana", "travel", 2)
        assert [entry.content["role"] for entry in store.thread("trip-7").log()] == ["user", "assistant"]


def test_append_reads_standard_input(call: Call, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("two\nlines\n"))
    entry = call("append", "other", "-", "--db", db, "--json").data["entry"]
    assert entry["content"] == {"role": "user", "content": "two\nlines\n"}
    assert call("append", "other", " ", "--db", db).code == exits.USAGE


def test_show_gives_the_whole_picture(call: Call, db: Path) -> None:
    done = call("show", "trip-42", "--db", db)
    for words in (
        "user ana · agent travel · #vip",
        "6 entries",
        "State revision 2 · agent version 1",
        "name: Ana",
        "- may the cello come?",
        "Verify before acting\n  confirmed_facts.fare  confirmed ",
        "fresh for 30 days",
        "1  user         A flight to Lisbon, please.",
        '2  tool_call    search {"to": "LIS"}',
        "before-payment",
        "nothing paid",
    ):
        assert words in done.out


def test_show_as_json(call: Call, db: Path) -> None:
    data = call("show", "trip-42", "--db", db, "--json").data
    assert (data["id"], data["user"], data["tags"], data["entries"]) == ("trip-42", "ana", ["vip"], 6)
    assert [entry["number"] for entry in data["newest"]] == [1, 2, 3, 4, 5, 6]
    assert data["state"]["value"]["user_preferences"] == {"name": "Ana"}
    assert data["state"]["must_verify"] == ["confirmed_facts.fare"]
    assert data["state"]["stale"][0]["by"] == "air"
    assert [point["name"] for point in data["checkpoints"]] == ["before-payment"]


def test_show_without_state_or_checkpoints(call: Call, db: Path) -> None:
    done = call("show", "other", "--db", db)
    assert "State" not in done.out
    assert call("show", "other", "--db", db, "--json").data["state"] is None


def test_a_state_of_another_programs_schema_is_shown_as_stored(call: Call, db: Path) -> None:
    kind = dataclasses.make_dataclass("Shop", [("basket", list[str])])
    registry = holdfast.Registry()
    registry.schema("shop", version=7)(kind)
    with holdfast.open(db, schemas=registry) as store:
        store.thread("other").save(kind(["pear"]))
    done = call("show", "other", "--db", db)
    assert "shop version 7" in done.out
    assert "- pear" in done.out
    assert "freshness is unknown here" in done.out
    data = call("state", "other", "--db", db, "--json").data["state"]
    assert (data["schema"], data["version"], data["schema_error"]["code"]) == ("shop", 7, "schema_unknown")


def test_a_state_that_does_not_fit_is_shown_with_the_reason(call: Call, db: Path) -> None:
    newer = holdfast.Registry()
    newer.schema("agent", version=99)(dataclasses.make_dataclass("Later", [("x", int)]))
    with holdfast.open(db, schemas=newer) as store:
        store.thread("other").save({"x": 1}, schema="agent")
    done = call("show", "other", "--db", db)
    assert "x: 1" in done.out
    assert "Does not fit its schema: " in done.out
    data = call("show", "other", "--db", db, "--json").data["state"]
    assert (data["value"], data["schema_error"]["code"]) == ({"x": 1}, "schema_too_new")


def test_log_is_one_line_an_entry(call: Call, db: Path) -> None:
    lines = call("log", "trip-42", "--db", db).out.splitlines()
    assert [re.sub(r"\S+Z", "TIME", line) for line in lines] == [
        r"1  TIME  user         A flight to Lisbon,\nplease.",
        '2  TIME  tool_call    search {"to": "LIS"}',
        '3  TIME  observation  [{"flight": "TP 533"}]',
        '4  TIME  event        held {"seat": "14C"}',
        "5  TIME  note         likes mornings",
        "6  TIME  assistant    TP 533 at 06:40.",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--last", "2"], [5, 6]),
        (["--after", "0", "--limit", "2"], [1, 2]),
        (["--after", "4"], [5, 6]),
        (["--limit", "1"], [1]),
        (["--limit", "0"], []),
        (["--after", "99"], []),
    ],
)
def test_log_windows(call: Call, db: Path, options: list[str], expected: list[int]) -> None:
    data = call("log", "trip-42", "--db", db, "--json", *options).data
    assert [entry["number"] for entry in data["entries"]] == expected
    assert data["total"] == 6


def test_log_begins_with_the_newest_and_says_so(call: Call, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "long.db") as store:
        store.thread("long").append(*({"n": number} for number in range(1200)))
    done = call("log", "long", "--db", tmp_path / "long.db")
    assert len(done.out.splitlines()) == 50
    assert "Entries 1,151 to 1,200" in done.err
    done = call("log", "long", "--db", tmp_path / "long.db", "--after", "0")
    assert (len(done.out.splitlines()), done.err) == (1200, "")


def test_an_entry_as_json_is_exact(call: Call, db: Path) -> None:
    entry = call("log", "trip-42", "--db", db, "--json").data["entries"][0]
    with holdfast.open(db) as store:
        stored = store.thread("trip-42").entry(1)
    assert entry["content"] == stored.content
    assert (entry["key"], entry["digest"]) == ("hello", stored.digest.hex())
    assert datetime.fromisoformat(entry["time"]) == stored.time


def test_state_now_then_and_in_between(call: Call, db: Path) -> None:
    def value(*options: str) -> Any:
        return call("state", "trip-42", "--db", db, "--json", *options).data["state"]

    assert value()["value"]["unresolved_issues"] == ["may the cello come?"]
    assert value("--revision", "1")["value"]["unresolved_issues"] == []
    assert value("--as-of", "2999-01-01T00:00:00Z")["revision"] == 2
    assert value("--as-of", "1h") is None
    assert "by then" in call("state", "trip-42", "--db", db, "--as-of", "1h").out
    assert "yet" in call("state", "other", "--db", db).out
    assert (
        call("state", "trip-42", "--db", db, "--diff", "1", "2").out == "+ unresolved_issues[0]: may the cello come?\n"
    )
    assert call("state", "trip-42", "--db", db, "--diff", "2", "1").out.startswith("- unresolved_issues[0]")
    assert call("state", "trip-42", "--db", db, "--diff", "1", "1").out == "No difference.\n"
    (change,) = call("state", "trip-42", "--db", db, "--diff", "1", "2", "--json").data["differences"]
    assert (change["action"], change["new"]) == ("added", "may the cello come?")
    revisions = call("state", "trip-42", "--db", db, "--history", "--json").data["revisions"]
    assert [each["number"] for each in revisions] == [1, 2]
    assert len(call("state", "trip-42", "--db", db, "--history").out.splitlines()) == 3
    assert "yet" in call("state", "other", "--db", db, "--history").out


def test_checkpoint_makes_and_lists(call: Call, db: Path) -> None:
    done = call("checkpoint", "trip-42", "now", "--note", "a remark", "--db", db)
    assert done.out == "Checkpoint now at 6 entries, state revision 2.\n"
    listed = call("checkpoint", "trip-42", "--list", "--db", db, "--json").data["checkpoints"]
    assert [(each["name"], each["note"]) for each in listed] == [
        ("before-payment", "nothing paid"),
        ("now", "a remark"),
    ]
    assert "before-payment" in call("checkpoint", "trip-42", "--list", "--db", db).out
    assert call("checkpoint", "other", "--list", "--db", db).out == "No checkpoints.\n"
    again = call("checkpoint", "trip-42", "now", "--db", db)
    assert again.code == exits.CONFLICT
    assert "--replace" in again.err
    assert call("checkpoint", "trip-42", "now", "--replace", "--db", db, "--json").data["checkpoint"]["name"] == "now"


@pytest.mark.parametrize(("at", "entries"), [(None, 6), ("before-payment", 5), ("2", 2)])
def test_fork(call: Call, db: Path, at: str | None, entries: int) -> None:
    where = [] if at is None else ["--at", at]
    data = call("fork", "trip-42", "branch", *where, "--db", db, "--json").data
    assert (data["id"], data["entries"], data["user"], data["forked_from"]) == ("branch", entries, "ana", "trip-42")
    assert f"shares {entries} entries with trip-42" in call("fork", "trip-42", "second", *where, "--db", db).out


def test_rewind_leaves_a_way_back(call: Call, db: Path) -> None:
    done = call("rewind", "trip-42", "before-payment", "--db", db)
    assert "is back at 5 entries" in done.out
    data = call("rewind", "trip-42", "2", "--db", db, "--json").data
    assert (data["entries"], data["before"]["entries"]) == (2, 5)
    assert call("rewind", "trip-42", data["before"]["name"], "--db", db, "--json").data["entries"] == 5


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize(("answer", "code", "entries"), [("n", exits.NO, 6), ("y", exits.OK, 5)])
def test_rewind_asks_on_a_terminal(db: Path, answer: str, code: int, entries: int) -> None:
    ours, theirs = os.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        done = process("rewind", "trip-42", "before-payment", "--db", db, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code
    assert "Take 'trip-42', now at 6 entries, back to 'before-payment'?" in done.stderr
    with holdfast.open(db) as store:
        assert store.thread("trip-42").logbook.head() == entries


def test_a_log_since_some_time(call: Call, tmp_path: Path) -> None:
    """Times never go back in a log: what is appended while a clock is wrong counts as said after what is before it."""
    path, start = tmp_path / "timed.db", datetime(2026, 5, 1, tzinfo=UTC)
    clock = ManualClock(start)
    with holdfast.open(path, clock=clock) as store:
        for hour, many in ((0, 600), (5, 2), (1, 1), (6, 1)):
            clock.set(start + timedelta(hours=hour))
            store.thread("t").append(*[holdfast.note(f"hour {hour}")] * many)

    def told(*options: str) -> list[int]:
        return [entry["number"] for entry in call("log", "t", "--db", path, "--json", *options).data["entries"]]

    assert told("--since", "2026-05-01T05:00") == [601, 602, 603, 604]
    assert told("--since", "2026-05-01T00:30", "--limit", "2") == [601, 602]
    assert told("--since", "2026-05-01T05:00", "--after", "603") == [604]
    assert told("--since", "2h ago") == []
    assert len(told("--since", "2026-05-01")) == 604


@pytest.mark.parametrize("name", ["all.json", "all.yaml", "all.yml", "all.msgpack", "all.holdfast"])
def test_export_and_import_again(call: Call, db: Path, tmp_path: Path, name: str) -> None:
    if name.endswith((".yaml", ".yml")):
        pytest.importorskip("yaml")
    file, new = tmp_path / name, tmp_path / "new.db"
    done = call("export", file, "--db", db)
    assert "Exported 2 threads, 7 entries, 2 state revisions, 1 checkpoint" in done.out
    assert "Would import 2 new threads" in call("import", file, "--dry-run", "--db", new).out
    assert not new.exists()
    done = call("import", file, "--db", new)
    assert "The file is intact" in done.out
    assert "2 new threads" in done.out
    assert "already here" in call("import", file, "--db", new).out
    assert call("log", "trip-42", "--json", "--db", new).data == call("log", "trip-42", "--json", "--db", db).data


def test_export_does_not_overwrite_a_file_without_force(call: Call, db: Path, tmp_path: Path) -> None:
    file = tmp_path / "trip.json"
    file.write_text("mine")
    done = call("export", file, "--db", db)
    assert (done.code, done.out) == (exits.CONFLICT, "")
    assert "already exists and is not overwritten; --force overwrites it" in done.err
    assert call("export", file, "--db", db, "--json").error["code"] == "conflict"
    assert file.read_text() == "mine"
    assert call("export", file, "--db", db, "--force").code == exits.OK
    assert json.loads(file.read_text())


def test_export_to_a_file_whose_format_nobody_knows_names_those_there_are(call: Call, db: Path, tmp_path: Path) -> None:
    formats = "json (.json), yaml (.yaml, .yml), msgpack (.msgpack, .holdfast)"
    done = call("export", tmp_path / "all.csv", "--db", db)
    assert done.code == exits.USAGE
    assert f"{formats}, or give --format" in " ".join(done.err.split())
    with holdfast.open(db) as store, pytest.raises(errors.Invalid, match=re.escape(f"{formats}, or give format=")):
        store.export(tmp_path / "all.csv")
    assert call("export", tmp_path / "all.csv", "--format", "json", "--db", db).code == exits.OK


def test_export_as_json_tells_what_is_in_the_file(call: Call, db: Path, tmp_path: Path) -> None:
    data = call("export", tmp_path / "ana.json", "--user", "ana", "--db", db, "--json").data
    assert data["manifest"]["counts"]["threads"] == 1
    report = call("import", tmp_path / "ana.json", "--dry-run", "--db", db, "--json").data
    assert (report["dry_run"], report["threads"], report["manifest"]["counts"]["entries"]) == (True, 0, 6)


def test_export_to_standard_output_is_the_archive_alone(call: Call, db: Path, tmp_path: Path) -> None:
    done = call("export", "--thread", "other", "--db", db)
    assert "Exported 1 thread" in done.err
    assert done.data["format"] == "holdfast-archive"
    assert call("export", "-", "--thread", "other", "--db", db, "--json").err == ""
    piped = process("import", "-", "--db", tmp_path / "new.db", stdin=None, input=done.out)
    assert piped.returncode == 0, piped.stderr
    assert "1 new thread" in piped.stdout


def test_backup_and_restore(call: Call, db: Path, tmp_path: Path) -> None:
    copy, new = tmp_path / "agent.backup", tmp_path / "new.db"
    assert "Backup written to" in call("backup", copy, "--db", db).out
    assert "Restored" in call("restore", copy, "--db", new).out
    assert call("threads", "--json", "--db", new).data == call("threads", "--json", "--db", db).data
    assert call("restore", copy, "--db", new).code == exits.CONFLICT
    assert call("restore", copy, "--db", new, "--replace").code == exits.OK
    other = tmp_path / "second.backup"
    assert call("backup", other, "--db", db, "--json").data["size_bytes"] == other.stat().st_size
    assert call("restore", other, "--db", tmp_path / "third.db", "--json").data["path"] == str(other)


def test_verify_finds_what_was_changed(call: Call, db: Path) -> None:
    done = call("verify", "--db", db)
    assert (done.code, done.out) == (0, "All is well: 2 threads, 7 entries, every digest and count agrees.\n")
    assert call("verify", "--db", db, "--json").data == {"ok": True, "threads": 2, "entries": 7, "problems": []}
    connection = apsw.Connection(str(db))
    connection.execute(
        "UPDATE events SET body = CAST('j1{\"n\":1}' AS BLOB) WHERE position = 3 AND kind = 'observation'"
    )
    connection.close()
    done = call("verify", "--db", db)
    assert done.code == exits.NO
    assert done.out.startswith("1 problem in 2 threads, 7 entries:")
    data = call("verify", "--db", db, "--json").data
    assert (data["ok"], data["problems"][0]["id"], data["problems"][0]["position"]) == (False, "trip-42", 3)


# What holds for all commands

READING = [
    ["threads"],
    ["show", "trip-42"],
    ["log", "trip-42"],
    ["state", "trip-42"],
    ["checkpoint", "trip-42", "--list"],
    ["verify"],
]
WRITING = [
    ["checkpoint", "trip-42", "x"],
    ["fork", "trip-42", "x"],
    ["rewind", "trip-42", "1"],
    ["export"],
    ["backup", "x.backup"],
]


@pytest.mark.parametrize("command", [*READING, *WRITING], ids=" ".join)
def test_a_store_that_is_not_there_is_not_made(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("none.db", "sqlite:none.db"):
        done = call(*command, "--db", url)
        assert (done.code, done.err) == (exits.NOT_FOUND, "error: there is no store at none.db\n")
    assert call(*command, "--json", "--db", "none.db").error["code"] == "not_found"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_the_global_options_may_stand_anywhere(
    call: Call, db: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    def answer(*args: str | Path) -> str:
        return re.sub(r'"age_s": [0-9.]+', "", call(*args).out)  # the one thing that changes by itself

    after = answer(*command, "--db", db, "--json", "--tenant", "default")
    assert after.startswith("{")
    monkeypatch.setenv("HOLDFAST_DB", str(db))
    assert after == answer("--db", db, "--json", "--tenant", "default", *command) == answer(*command, "--json")
    if command != ["verify"]:  # which looks at every tenant, whichever is named
        assert answer("--json", *command, "--tenant", "stranger") != after


def test_the_nearer_option_wins(call: Call, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DB", "of-the-environment.db")
    assert call("--db", db, "threads").code == 0
    assert "there is no store at nearer.db" in call("--db", db, "threads", "--db", "nearer.db").err
    assert "of-the-environment.db" in call("threads").err


def test_without_any_database_the_command_says_how_to_name_one(call: Call) -> None:
    done = call("threads")
    assert done.code == exits.MISCONFIGURED
    assert "--db agent.db" in done.err
    assert "HOLDFAST_DB" in done.err


@pytest.mark.parametrize("command", [["show"], ["log"], ["state"], ["checkpoint", "--list"]], ids=" ".join)
def test_a_thread_that_is_not_there(call: Call, db: Path, command: list[str]) -> None:
    done = call(*command, "nobody", "--db", db)
    assert (done.code, done.err) == (
        exits.NOT_FOUND,
        "error: there is no thread 'nobody'\nTo list them: holdfast threads\n",
    )
    error = call(*command, "nobody", "--db", db, "--json").error
    assert (error["code"], error["thread"], error["retryable"]) == ("not_found", "nobody", False)


@pytest.mark.parametrize(
    "command",
    [
        ["thread"],
        ["threads", "--nonsense"],
        ["threads", "--limit", "many"],
        ["threads", "--since", "soon"],
        ["log", "trip-42", "--last", "0"],
        ["log", "trip-42", "--last", "2", "--after", "1"],
        ["log", "trip-42", "--last", "2", "--since", "2h"],
        ["log", "trip-42", "--since", "soon"],
        ["state", "trip-42", "--history", "--revision", "1"],
        ["checkpoint", "trip-42"],
        ["checkpoint", "trip-42", "x", "--list"],
        ["show"],
        [],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_exit_code_2(call: Call, db: Path, command: list[str]) -> None:
    done = call("--db", db, *command)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "Traceback" not in done.err
    if command:
        assert done.err.startswith("error: ")
        assert call("--db", db, *command, "--json").error["code"] in {"usage", "invalid"}


def _tree(kind: type[errors.HoldfastError]) -> Iterator[type[errors.HoldfastError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child)


ERRORS = list(_tree(errors.HoldfastError))


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_an_exit_code(
    call: Call, monkeypatch: pytest.MonkeyPatch, kind: type[errors.HoldfastError]
) -> None:
    assert kind.code in exits.BY_CODE

    def fail(desk: Desk, **options: Any) -> None:
        raise kind("it went wrong", thread="t-1", moment=AGES_AGO, age_s=float("inf"))

    monkeypatch.setattr(Desk, "open", fail)
    done = call("threads")
    assert (done.code, done.err) == (exits.BY_CODE[kind.code], "error: it went wrong\n")
    assert done.code > exits.NO
    facts = {"thread": "t-1", "moment": "2020-01-01T00:00:00Z", "age_s": None}
    assert call("threads", "--json").error == {
        **facts, "code": kind.code, "message": "it went wrong", "retryable": kind.retryable
    }  # fmt: skip


def test_exit_codes_name_no_error_that_is_not_there() -> None:
    assert set(exits.BY_CODE) - {kind.code for kind in ERRORS} == {"usage", "internal"}
    assert set(exits.BY_CODE.values()) <= set(exits.MEANINGS)


def test_someone_elses_error_counts_as_its_nearest_class() -> None:
    class Busy(errors.Unavailable):
        """Too much to do."""

        code = "busy"

    assert exits.exit_code(Busy()) == exits.UNAVAILABLE


def test_damaged_and_foreign_files(call: Call, tmp_path: Path) -> None:
    junk, foreign = tmp_path / "junk.db", tmp_path / "foreign.db"
    junk.write_bytes(b"nothing that SQLite knows " * 100)
    connection = apsw.Connection(str(foreign))
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    assert call("threads", "--db", junk).code == exits.CORRUPT
    assert call("threads", "--db", foreign).code == exits.MISCONFIGURED
    assert call("threads", "--db", tmp_path).code == exits.MISCONFIGURED
    assert call("threads", "--db", "carrier-pigeon:coop").code == exits.MISCONFIGURED
    assert call("import", junk, "--db", tmp_path / "new.db").code == exits.USAGE
    assert call("import", tmp_path / "none.json", "--db", tmp_path / "new.db").code == exits.NOT_FOUND


def test_a_fault_of_ours_is_told_apart(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(desk: Desk, **options: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Desk, "open", fail)
    done = call("threads")
    assert done.code == exits.INTERNAL
    assert "ZeroDivisionError: a bug" in done.err
    assert "a bug in Holdfast" in done.err
    error = call("threads", "--json").error
    assert (error["code"], error["message"]) == ("internal", "ZeroDivisionError: a bug")
    assert "Traceback" in error["traceback"]


def test_help_names_every_command_and_every_exit_code(call: Call) -> None:
    done = call("--help")
    assert done.code == 0
    names = list(typer.main.get_command(app).commands)
    assert {"threads", "log", "export", "import", "demo"} <= set(names)
    for name in names:
        assert re.search(rf"^  {name} +\S", done.out, re.M), name
        page = call(name, "--help")
        assert "Examples:" in page.out
        assert all(option in page.out for option in ("--db", "--tenant", "--json"))
    for code, meaning in exits.MEANINGS.items():
        assert f"{code}  {meaning}" in done.out


def test_one_line_helps_fit_on_a_line(call: Call) -> None:
    assert "..." not in call("--help").out.replace("[ARGS]...", "")


def test_version(call: Call) -> None:
    assert call("--version") == (0, f"holdfast {holdfast.__version__}\n", "")
    assert call("--version", "--json").data == {"version": holdfast.__version__}


# Manners


def test_nothing_that_is_stored_can_steer_a_terminal(call: Call, tmp_path: Path) -> None:
    nasty = f"a{ESCAPE}[2J{ESCAPE}]0;owned\x07\x9b31m\u202egnp.exe\r"
    name, db = "t\u202egnp.exe", tmp_path / "nasty.db"
    with holdfast.open(db) as store:
        thread = store.thread(name, user=name, tags=[name])
        with thread.turn() as turn:
            turn.append(holdfast.message("user", nasty), holdfast.message(nasty, "x"))
            turn.save({nasty: nasty})
        thread.checkpoint(name, note=nasty)
    for command in (
        ["threads"],
        ["show", name],
        ["log", name],
        ["state", name],
        ["checkpoint", name, "--list"],
        ["show", nasty],
    ):
        done = call(*command, "--db", db)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.out + done.err), command
    assert r"\x1b[2J" in call("log", name, "--db", db).out
    assert visible(nasty) == visible(visible(nasty))
    assert call("show", name, "--db", db, "--json").data["user"] == name


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}], ids=str)
def test_no_colour_in_a_pipe_whatever_the_encoding(db: Path, tmp_path: Path, more: dict[str, str]) -> None:
    with holdfast.open(db) as store:
        store.thread("другой", user="José").append(holdfast.message("user", "¿Qué tal? 日本"))
    for command in (["threads"], ["show", "trip-42"], ["log", "другой"], ["--help"], ["show", "nobody"]):
        done = process(*command, "--db", db, env=clean(**more))
        assert ESCAPE not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    data = process("threads", "--db", db, "--json", env=clean(**more))
    assert json.loads(data.stdout)["threads"][0]["user"] == "José"


def test_colour_and_fitting_lines_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def printed(*, terminal: bool = True) -> str:
        out = io.StringIO()
        screen = Screen(out, width=40, terminal=terminal)
        screen.table([Column("thread", "name", fits=True), Column("entries", right=True)], [("x" * 60, "7")], indent=2)
        screen.cut(("y" * 60, "good"), indent=2)
        screen.hanging([("1", "quiet")], [1], "several words that go on and on, and then some")
        return out.getvalue()

    coloured = printed()
    assert ESCAPE in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert max(map(len, bare.splitlines())) <= 40
    assert bare.count("…") == 2
    assert ESCAPE not in printed(terminal=False)
    assert "x" * 60 in printed(terminal=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert printed() == bare


@pytest.mark.slow
def test_a_reader_who_leaves_is_no_error(tmp_path: Path) -> None:
    db = tmp_path / "long.db"
    with holdfast.open(db) as store:
        store.thread("long").append(*(holdfast.note("words " * 50) for _ in range(2000)))
    for command in (["log", "long", "--after", "0"], ["log", "long", "--after", "0", "--json"], ["export", "-"]):
        child = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *command, "--db", str(db)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean(),
        )
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.read(10)
        child.stdout.close()
        complaint = child.stderr.read()
        child.stderr.close()
        assert (child.wait(30), complaint) == (exits.READER_GONE, b""), command


# Whoever runs the tests in the background may have told them to ignore interrupts, and children inherit that.
_HEARING = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("holdfast", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are sent differently there")
@pytest.mark.parametrize("as_json", [False, True])
def test_follow_shows_what_is_added_and_ends_when_interrupted(db: Path, as_json: bool) -> None:
    command = [
        sys.executable,
        "-c",
        _HEARING,
        "log",
        "other",
        "--follow",
        "--db",
        str(db),
        *(["--json"] if as_json else []),
    ]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean())
    assert child.stdout is not None
    try:
        assert "hello" in child.stdout.readline()
        with holdfast.open(db) as store:
            store.thread("other").append(holdfast.note("just now"))
        line = child.stdout.readline()
        assert "just now" in line
        if as_json:
            assert json.loads(line)["number"] == 2
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, complaint = child.communicate(timeout=30)
    finally:
        child.kill()
        child.communicate()
    assert (child.returncode, complaint) == (exits.INTERRUPTED, "")


_BLOCKED = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
sys.argv = ["holdfast", *{args!r}]
from holdfast.doors.cli import main
main()
"""


@pytest.mark.parametrize("blocked", [["typer"], ["rich"], ["typer", "rich"]], ids=" ".join)
def test_without_the_extra_one_line_says_what_to_install(blocked: list[str]) -> None:
    def without(*args: str) -> subprocess.CompletedProcess[str]:
        script = _BLOCKED.format(blocked=blocked, args=list(args))
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    done = without("threads")
    assert (done.returncode, done.stdout) == (exits.USAGE, "")
    assert done.stderr.count("\n") == 1
    assert 'pip install "holdfast[command]"' in done.stderr
    done = without("threads", "--json")
    assert json.loads(done.stderr)["error"]["extra"] == "command"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_an_output_that_is_full_or_closed(db: Path) -> None:
    shell = f"{shlex.quote(sys.executable)} -m holdfast threads --db {shlex.quote(str(db))}"
    full = subprocess.run(f"{shell} > /dev/full", shell=True, capture_output=True, text=True, env=clean(), check=False)
    assert (full.returncode, full.stderr) == (exits.UNAVAILABLE, "error: No space left on device\n")
    assert subprocess.run(f"{shell} >&- 2>&-", shell=True, env=clean(), check=False).returncode == exits.OK


def test_an_empty_database_name_is_not_taken_for_none(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DB", "of-the-environment.db")
    assert call("threads", "--db", "").code == exits.MISCONFIGURED
    assert call("demo", "--db", "").code == exits.MISCONFIGURED


# Words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a second"),
        (1, "1 second"),
        (59.9, "59 seconds"),
        (3600, "1 hour"),
        (86_400 * 35, "35 days"),
        (float("inf"), "never confirmed"),
    ],
)
def test_ages(seconds: float, words: str) -> None:
    assert wording.age(seconds) == words


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("message", {"role": "user", "content": [{"type": "text", "text": "hi"}, {"id": 1}]}, 'hi {"id": 1}'),
        ("message", {"role": "assistant", "content": None, "tool_calls": [1]}, '{"tool_calls": [1]}'),
        ("message", {"role": "user", "content": "hi", "id": "b0d9", "created_at": "1970-01-01T00:00:01Z"}, "hi"),
        ("message", {"role": "user", "content": "hi", "time": "8 May, 2023"}, 'hi {"time": "8 May, 2023"}'),
        ("message", {"role": "user", "content": "hi", "author": "user"}, "hi"),
        ("message", {"role": "user", "content": "hi", "name": "Ana"}, "Ana: hi"),
        ("message", {"role": "tool", "content": "ok", "name": "book", "tool_call_id": "c"}, "book: ok"),
        ("message", {"content": "Wait.", "tool_calls": [{"id": "c", "name": "book", "args": {}}]}, "Wait. → book {}"),
        ("message", {"tool_calls": [{"function": {"name": "book", "arguments": '{"to":7}'}}]}, '→ book {"to":7}'),
        ("message", {"content": [{"type": "tool_use", "id": "c", "name": "book", "input": {}}]}, "→ book {}"),
        ("message", {"content": [{"type": "tool_result", "content": [{"text": "o"}, {"text": "k"}]}]}, "o k"),
        (
            "message",
            {"content": [{"type": "tool_use", "name": "go", "input": {}}], "tool_calls": [{"name": "go", "args": {}}]},
            "→ go {}",
        ),
        ("message", {"content": [{"type": "file", "name": "a.pdf"}]}, '{"type": "file", "name": "a.pdf"}'),
        ("message", {"content": [{"image": "x" * 3000}]}, '{"image": "(3,000 characters)"}'),
        ("message", {"role": "user", "content": "hi", "$framework": {"adk": {"branch": "x"}}}, "hi"),
        ("message", ["odd"], '["odd"]'),
        ("tool_call", {"tool": "x"}, '{"tool": "x"}'),
        ("observation", {"content": "ok", "of": "c1"}, "ok"),
        ("observation", {"content": "ok", "of": "c1", "type": "output", "url": "x.org"}, 'ok {"url": "x.org"}'),
        ("observation", {"status": 200}, '{"status": 200}'),
        ("event", {"name": "order", "id": 7, "timestamp": "1970-01-01T00:00:01Z"}, 'order {"id": 7}'),
        ("event", {"name": "tick"}, "tick"),
        ("note", {"text": "x", "by": "me"}, '{"text": "x", "by": "me"}'),
    ],
)  # fmt: skip
def test_what_an_entry_says(kind: str, content: Any, said: str) -> None:
    assert wording.words(holdfast.types.Entry("t", 1, kind, content, None, 0, b"")) == said


def test_moments_are_utc_unless_they_say_otherwise() -> None:
    class Noon:
        def now(self) -> int:
            return int(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000

    assert wording.moment("2026-05-01", Noon()) == datetime(2026, 5, 1, tzinfo=UTC)
    assert wording.moment("2026-05-01T09:30+02:00", Noon()) == datetime(2026, 5, 1, 7, 30, tzinfo=UTC)
    assert wording.moment("1d12h", Noon()) == datetime(2026, 5, 1, 12, tzinfo=UTC) - timedelta(hours=36)
    assert wording.moment("36 hours ago", Noon()) == wording.moment("1d12h", Noon())
    assert wording.moment("36h ago", Noon()) == wording.moment("1d12h ago", Noon()) == wording.moment("1d12h", Noon())
    assert wording.moment("yesterday", Noon()) == datetime(2026, 4, 30, tzinfo=UTC)
    assert wording.moment("last monday", Noon()) == datetime(2026, 4, 27, tzinfo=UTC)
    with pytest.raises(errors.Invalid, match=r"'soon' is not a time; write a date .* '3 days ago'.* .yesterday"):
        wording.moment("soon", Noon())
    assert wording.stamp(wording.moment("2026-05-01T09:30+02:00", Noon())) == "2026-05-01T07:30:00Z"


def test_a_password_is_not_printed() -> None:
    assert wording.database("postgresql://ana:secret@host/db") == "postgresql://ana:***@host/db"
    assert wording.database("postgresql:///db?user=ana&password=secret") == "postgresql:///db?user=ana&password=***"
    assert wording.database("postgresql://ana@host/db") == "postgresql://ana@host/db"
    assert wording.database("agent.db") == "agent.db"
