"""``holdfast import``: one command for archives and for what other programs keep."""

from __future__ import annotations

import io
import sqlite3
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast

pytest.importorskip("typer", reason="the command's extra is not installed")

from tests.doors.done import Done

from holdfast.doors.cli import exits, importing, options
from holdfast.doors.cli.app import run
from holdfast.doors.cli.render import Screen
from holdfast.importers import ARCHIVE, KINDS


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Done]:
    """Run ``holdfast import`` on a store of the test."""

    def call(*args: str | Path) -> Done:
        capsys.readouterr()
        code = run(["--db", str(tmp_path / "agent.db"), "import", *map(str, args)])
        return Done(code, *capsys.readouterr())

    return call


Call = Callable[..., Done]


def test_every_kind_says_what_came_in(call: Call, source: tuple[str, Path], tmp_path: Path) -> None:
    kind, place = source
    told = call(place, "--dry-run")
    assert (told.code, told.err) == (exits.OK, "")
    assert "Would import" in told.out
    assert not (tmp_path / "agent.db").exists()
    done = call(place, "--json")
    assert (done.data["kind"], done.data["dry_run"]) == (kind, False)
    assert done.data["compared"] == sum(done.data["new"].values())
    again = call(place)
    assert "Nothing in it is new." in again.out
    assert f"Read back and compared: all {done.data['compared']} are equal." in again.out


def test_words(call: Call, graph: Path, sessions: Path) -> None:
    assert call(graph).out.splitlines() == [
        f"{graph}: MCP memory server's graph, 2 entities, 2 observations, 1 relation.",
        "Imported 5 memories for everyone.",
        "All of it has the tag import:mcp-memory.",
        "Read back and compared: all 5 are equal.",
    ]
    connection = sqlite3.connect(sessions)
    with connection:
        connection.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('bad', 'no JSON \x1b[31m')")
    connection.close()
    refused = call(sessions)
    assert refused.code == exits.USAGE
    assert "session 'bad', item 9" in refused.err
    done = call(sessions, "--skip", "--user", "ana")
    assert "left out: session 'bad', item 9: it is not JSON" in done.out
    assert "entries for user ana." in done.out
    assert "\x1b" not in done.out


def test_archives_still_come_in(call: Call, tmp_path: Path) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        store.thread("t").append({"role": "user", "content": "hi"})
        for name in ("a.json", "a.yaml", "a.msgpack"):
            store.export(tmp_path / name)
    for name in ("a.json", "a.yaml", "a.msgpack"):
        done = call(tmp_path / name)
        assert (done.code, done.out.splitlines()[0][:18]) == (exits.OK, "The file is intact")
    assert call(tmp_path / "a.json", "--from", "archive").code == exits.OK
    refused = call(tmp_path / "a.json", "--user", "ana")
    assert (refused.code, "is an archive" in refused.err) == (exits.USAGE, True)


def test_an_archive_from_standard_input(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        store.thread("t").append({"role": "user", "content": "hi"})
        archive = io.BytesIO()
        store.export(archive, format="json")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(archive.getvalue())))
    assert call("-").code == exits.OK


def test_what_it_is_can_be_said(call: Call, tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text("- a note\n", encoding="utf-8")
    assert call(page).code == exits.USAGE
    assert "1 memory" in call(page, "--from", "memory-files").out
    wrong = call(page, "--from", "openai-agents")
    assert (wrong.code, "not an SQLite database" in wrong.err) == (exits.USAGE, True)
    unknown = call(page, "--from", "letters")
    assert (unknown.code, all(kind in unknown.err for kind in (ARCHIVE, *KINDS))) == (exits.USAGE, True)
    assert set(options.SOURCES) == {ARCHIVE, *KINDS}


def test_wrong_and_damaged_files(call: Call, tmp_path: Path, sessions: Path) -> None:
    assert call(tmp_path / "nowhere").code == exits.NOT_FOUND
    data = sessions.read_bytes()
    sessions.write_bytes(data[:8192])
    assert call(sessions).code == exits.CORRUPT
    assert call("postgresql://127.0.0.1:1/x").code in (exits.UNAVAILABLE, exits.UNSUPPORTED)
    assert not (tmp_path / "agent.db").exists()


def test_a_page_that_is_nothing_known(call: Call, tmp_path: Path) -> None:
    for name, text in (("README.md", "# About\n\n- a note\n"), ("memory.md", "- a note\n"), ("x.toml", "a = 1\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        refused = call(tmp_path / name)
        assert (refused.code, "has no known format" in refused.err) == (exits.USAGE, True)
        assert ("--from memory-files" in refused.err) == name.endswith(".md")
    (tmp_path / "package.json").write_text('{"name": "x", "type": "module"}', encoding="utf-8")
    assert "has no known format" in call(tmp_path / "package.json").err
    assert "1 memory for everyone" in call(tmp_path / "README.md", "--from", "memory-files").out


def test_what_is_refused_leaves_no_new_store(
    call: Call, sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = sqlite3.connect(sessions)
    with connection:
        rows = [(f"s{number}", "no JSON") for number in range(5)]
        connection.executemany("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", rows)
    connection.close()
    refused = call(sessions)
    assert (refused.code, refused.err.count("it is not JSON")) == (exits.USAGE, 1)
    assert "session 's0', item 9, and 4 more: it is not JSON" in refused.err
    with holdfast.open("ram:", embedder="none") as store:
        store.thread("t").append({"role": "user", "content": "hi"})
        store.export(tmp_path / "a.json")
    whole = (tmp_path / "a.json").read_bytes()
    (tmp_path / "cut.json").write_bytes(whole[: len(whole) // 2])
    assert call(tmp_path / "cut.json").code == exits.CORRUPT
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no archive")))
    assert call("-").code == exits.USAGE
    assert call(tmp_path / "a.json", "--dry-run").code == exits.OK
    assert not (tmp_path / "agent.db").exists()
    assert call(sessions, "--skip").out.count("left out") == 1


def test_a_mistaken_import_is_forgotten_by_its_tag(
    call: Call, notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the page says: forgotten for everyone, and then brought in for the one it was meant for."""
    assert "for everyone." in call(notes).out
    store = ["--db", str(tmp_path / "agent.db")]
    assert run([*store, "remember", "Ana is tall"]) == exits.OK
    assert run([*store, "forget", "--tag", "import:memory-files", "--yes"]) == exits.OK
    assert "8 memories for user ana." in call(notes, "--user", "ana").out
    with holdfast.open(tmp_path / "agent.db", embedder="none") as opened:
        assert [memory.text for memory in opened.memory().memories()] == ["Ana is tall"]
        assert len(opened.memory(user="ana").visible.own.memories()) == 8


def test_several_owners_are_named(call: Call, mem0: Callable[[str], Path]) -> None:
    done = call(mem0("qdrant"))
    assert "Mem0 store, 3 memories, 6 changes." in done.out
    assert "Imported 3 memories, 1 earlier text, 1 ending: " in done.out
    assert "3 for user ana with agent travel" in done.out


def test_a_bar_on_a_terminal_alone(call: Call, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(graph, "--dry-run").err == ""
    shown = io.StringIO()
    monkeypatch.setattr("holdfast.doors.cli.desk.Screen", lambda _: Screen(shown, width=80, terminal=True))
    assert call(graph).code == exits.OK
    assert "import" in shown.getvalue()
    assert "5/5" in shown.getvalue()


def test_a_class_is_named_by_its_module() -> None:
    assert importing.classes(["collections:OrderedDict"]) == {"collections.OrderedDict": OrderedDict}
    assert importing.classes(["__main__.Old=collections:OrderedDict"]) == {"__main__.Old": OrderedDict}
    for wrong in ("collections", "collections:namedtuple", "no.such.module:X", "a b:C", "x.Y=collections", "x.Y="):
        with pytest.raises(holdfast.errors.Invalid):
            importing.classes([wrong])
