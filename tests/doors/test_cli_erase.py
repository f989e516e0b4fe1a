"""The commands that erase: what goes, what they say of it before and after, and when they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

typer = pytest.importorskip("typer", reason="the command's extra is not installed")

from tests.doors.done import Call, Done  # noqa: E402

from holdfast.doors.cli import exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.app import run  # noqa: E402


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, db: Path) -> Call:
    monkeypatch.setenv("HOLDFAST_DB", str(db))
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")

    def call(*args: str) -> Done:
        capsys.readouterr()
        code = run(list(args))
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Ana has two threads, three memories and two files, Ben a thread; one memory was learned from trip-1."""
    path = tmp_path / "agent.db"
    with holdfast.open(path, embedder="none") as store:
        trip = store.thread("trip-1", user="ana", agent="travel", tags=["old"])
        trip.append({"role": "user", "content": "I live in Porto."}, {"role": "assistant", "content": "Good."})
        with trip.run("book") as work:
            work.step("pay", lambda: 1, effect="pure", log=False)
        store.memory(user="ana", agent="travel").learn("trip-1")
        store.thread("trip-2", user="ana", tags=["old"]).append({"role": "user", "content": "Hello."})
        ana = store.memory(user="ana")
        ana.remember("prefers the aisle", key="seat")
        ana.forget(ana.remember("prefers the window").id)
        notes = store.folder("notes", user="ana")
        notes.write("trips/porto.md", "first")
        notes.write("trips/porto.md", "second")
        notes.write("packing.md", "socks")
        store.thread("visit", user="ben").append({"role": "user", "content": "Hello."})
    return path


def left(db: Path) -> list[str]:
    with holdfast.open(db) as store:
        return sorted(info.id for info in store.threads())


def test_a_thread_goes_with_what_was_remembered_from_it_alone(call: Call, db: Path) -> None:
    done = call("erase", "thread", "trip-1", "--yes")
    assert done.code == exits.OK
    assert done.out.startswith("Erased: thread 'trip-1' (")
    assert "1 run" in done.out
    assert "backups and exports" in done.err
    assert left(db) == ["trip-2", "visit"]
    assert "Porto" not in call("facts", "--user", "ana", "--agent", "travel").out
    assert call("erase", "thread", "trip-1", "--yes").code == exits.NOT_FOUND
    with holdfast.open(db) as store, pytest.raises(holdfast.errors.Erased):
        store.thread("trip-1").append(holdfast.note("late"))


def test_threads_go_by_tag_and_their_ids_may_be_used_again(call: Call, db: Path) -> None:
    data = call("erase", "thread", "--tag", "old", "--free", "--yes", "--json").data
    assert sorted(data["erased"]["threads"]) == ["trip-1", "trip-2"]
    assert data["records"] >= 4
    assert left(db) == ["visit"]
    with holdfast.open(db) as store:
        store.thread("trip-1").append(holdfast.note("again"))


@pytest.mark.parametrize("how", ["--yes", "--dry-run"])
def test_an_unknown_user_or_agent_is_told_who_there_is(call: Call, how: str) -> None:
    for args, told in ((("user", "anna"), "it has the users"), (("agent", "trvael"), "it has the agents travel")):
        done = call("erase", *args, how)
        assert done.code == exits.NOT_FOUND
        assert told in " ".join(done.err.split())
    names = " ".join(call("erase", "user", "anna", how).err.split()).partition("it has the users ")[2]
    assert sorted(names.rstrip(".").split(", ")) == ["ana", "ben"]


def test_nothing_goes_when_one_of_the_threads_is_not_there(call: Call, db: Path) -> None:
    assert call("erase", "thread", "trip-1", "trip-9", "--yes").code == exits.NOT_FOUND
    assert left(db) == ["trip-1", "trip-2", "visit"]


@pytest.mark.parametrize(
    ("args", "counts"),
    [
        (["user", "ana"], {"threads": 2, "runs": 1, "memories": 3, "files": 2}),
        (["user", "ana", "--agent", "travel"], {"threads": 1, "runs": 1, "memories": 1, "files": 0}),
        (["agent", "travel"], {"threads": 1, "runs": 1, "memories": 1, "files": 0}),
        (["user", "ben"], {"threads": 1, "runs": 0, "memories": 0, "files": 0}),
    ],
)
def test_a_dry_run_counts_and_changes_nothing(call: Call, db: Path, args: list[str], counts: dict[str, int]) -> None:
    data = call("erase", *args, "--dry-run", "--json").data
    assert (data["dry_run"], data["records"]) == (True, None)
    assert {noun: number for noun, number in data["counts"].items() if noun != "entries"} == counts
    assert left(db) == ["trip-1", "trip-2", "visit"]


def test_what_an_agent_knows_about_users_is_counted_who_have_nothing_else_here(call: Call, db: Path) -> None:
    with holdfast.open(db, embedder="none") as store:
        store.memory(user="zoe", agent="travel").remember("likes trains")
        store.memory(agent="travel").remember("trains are slow")
    assert call("erase", "agent", "travel", "--dry-run", "--json").data["counts"]["memories"] == 3
    assert call("erase", "agent", "travel", "--yes").code == exits.OK
    with holdfast.open(db, embedder="none") as store:
        assert store.memory(user="zoe", agent="travel").facts() == []


def test_a_user_goes_with_everything(call: Call, db: Path) -> None:
    assert "Would be erased: everything of user 'ana' (2 threads" in call("erase", "user", "ana", "--dry-run").out
    assert call("erase", "user", "ana", "--yes").out.startswith("Erased: everything of user 'ana' (2 threads")
    assert left(db) == ["visit"]
    assert call("files", "--user", "ana", "--json").data["folders"] == []
    for option in ("--yes", "--dry-run"):
        gone = call("erase", "user", "ana", option)
        assert (gone.code, gone.out, "user 'ana'" in gone.err) == (exits.NOT_FOUND, "", True)


def test_old_versions_of_a_deleted_file_go_with_their_user(call: Call, db: Path) -> None:
    with holdfast.open(db, embedder="none") as store:
        folder = store.folder("notes", user="kim")
        folder.write("a.md", "secret")
        folder.delete("a.md")
    assert call("erase", "user", "kim", "--yes").code == exits.OK
    with holdfast.open(db, embedder="none") as store:
        assert store.folder("notes", user="kim").history("a.md") == []


def test_a_file_goes_with_all_its_versions(call: Call) -> None:
    args = ["erase", "file", "notes", "trips/porto.md", "--user", "ana"]
    assert call(*args, "--dry-run").out == "Would be erased: file 'trips/porto.md' of folder 'notes' (2 versions).\n"
    assert call(*args, "--yes").code == exits.OK
    assert call("file", "notes", "trips/porto.md", "--user", "ana", "--version", "1").code == exits.NOT_FOUND
    assert call(*args, "--yes").code == exits.NOT_FOUND


@pytest.mark.parametrize("args", [["thread", "trip-1"], ["user", "ana"], ["agent", "travel"]])
def test_where_nobody_can_be_asked_it_wants_to_be_told(call: Call, db: Path, args: list[str]) -> None:
    done = call("erase", *args)  # the input of a test is no terminal
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "--yes" in done.err
    assert left(db) == ["trip-1", "trip-2", "visit"]


@pytest.mark.parametrize("args", [[], ["--tag", "old", "trip-1"]])
def test_which_threads_is_said_in_one_way(call: Call, args: list[str]) -> None:
    assert call("erase", "thread", *args, "--yes").code == exits.USAGE


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize(("answer", "code", "stays"), [("n", exits.NO, True), ("y", exits.OK, False)])
def test_it_asks_on_a_terminal(db: Path, answer: str, code: int, stays: bool) -> None:
    ours, theirs = os.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        command = [sys.executable, "-m", "holdfast", "erase", "thread", "trip-1", "--db", str(db)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode, "Erase thread 'trip-1' (" in done.stderr) == (code, True)
    assert ("trip-1" in left(db)) == stays
