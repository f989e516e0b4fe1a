"""The commands about files, and how recall shows them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

import holdfast

typer = pytest.importorskip("typer", reason="the command's extra is not installed")

from tests.doors.done import Call, Done  # noqa: E402

from holdfast.doors.cli import exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.app import run  # noqa: E402


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command in this process on a store with a few files."""
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")
    monkeypatch.setenv("HOLDFAST_DB", str(tmp_path / "agent.db"))
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
        notes = store.folder("notes", user="ana")
        notes.write("trips/lisbon.md", "the first plan")
        notes.write("trips/lisbon.md", "Sleep near the\nAlfama", tags=["travel"])
        notes.write("prefs", {"seat": "aisle"})
        notes.write("raw", b"\x00\xff")
        store.folder("wiki").write("start", "Welcome to the Alfama")

    def call(*args: str) -> Done:
        capfd.readouterr()
        code = run(list(args))
        return Done(code, *capfd.readouterr())

    return call


def test_folders_are_listed(call: Call) -> None:
    done = call("files")
    assert [line.split()[:4] for line in done.out.splitlines()] == [
        ["FOLDER", "USER", "AGENT", "FILES"], ["notes", "ana", "-", "3"], ["wiki", "-", "-", "1"],
    ]  # fmt: skip
    found = call("files", "--json", "--user", "ana").data["folders"]
    assert [(each["name"], each["user"], each["files"]) for each in found] == [("notes", "ana", 3)]


def test_files_of_a_folder_are_listed(call: Call) -> None:
    done = call("files", "notes", "--user", "ana")
    assert done.code == exits.OK
    shown = [line.split()[:2] for line in done.out.splitlines()[1:]]
    assert shown == [["prefs", "1"], ["raw", "1"], ["trips/lisbon.md", "2"]]
    assert "(2 bytes)" in done.out
    listed = call("files", "notes", "--user", "ana", "--prefix", "trips/", "--tag", "travel", "--json").data
    assert [(each["path"], each["version"], each["tags"]) for each in listed["files"]] == [
        ("trips/lisbon.md", 2, ["travel"])
    ]
    assert "No files" in call("files", "notes").err


def test_a_file_is_shown_as_it_is(call: Call) -> None:
    assert call("file", "notes", "trips/lisbon.md", "--user", "ana").out == "Sleep near the\nAlfama\n"
    assert call("file", "notes", "trips/lisbon.md", "--user", "ana", "--version", "1").out == "the first plan\n"
    assert call("file", "notes", "prefs", "--user", "ana").out.split() == ["seat:", "aisle"]
    raw = call("file", "notes", "raw", "--user", "ana", "--json").data["file"]
    assert (raw["bytes"], base64.b64decode(raw["content"])) == (True, b"\x00\xff")


def test_the_versions_of_a_file_are_listed(call: Call) -> None:
    done = call("file", "notes", "trips/lisbon.md", "--user", "ana", "--history")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["1", "2"]
    versions = call("file", "notes", "trips/lisbon.md", "--user", "ana", "--history", "--json").data["versions"]
    assert [each["content"] for each in versions] == ["the first plan", "Sleep near the\nAlfama"]


@pytest.mark.parametrize("more", [(), ("--history",), ("--version", "9")])
def test_a_file_that_is_not_there_is_said_so(call: Call, more: tuple[str, ...]) -> None:
    done = call("file", "notes", "none", "--user", "ana", *more)
    assert done.code == exits.NOT_FOUND
    assert "none" in done.err


def test_recall_shows_files(call: Call) -> None:
    done = call("recall", "Alfama", "--user", "ana")
    assert "notes/trips/lisbon.md@2  file  Sleep near the Alfama" in done.out
    found = call("recall", "Alfama", "--user", "ana", "--json").data["hits"]
    assert {each["id"]: each["file"]["folder"] for each in found if each["score"] > 1} == {
        "notes/trips/lisbon.md@2": "notes", "wiki/start@1": "wiki",
    }  # fmt: skip
    assert call("recall", "Alfama", "--user", "ana", "--no-files", "--json").data["hits"] == []
