"""``holdfast import``: one command for archives and for what other programs keep."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import holdfast

pytest.importorskip("typer", reason="the command's extra is not installed")

from holdfast.doors.cli import exits, importing, options
from holdfast.doors.cli.app import run
from holdfast.doors.cli.render import Screen
from holdfast.moving import ARCHIVE, KINDS


class Done(NamedTuple):
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


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
    assert "Would bring in" in told.out
    assert not (tmp_path / "agent.db").exists()
    done = call(place, "--json")
    assert (done.data["kind"], done.data["dry_run"]) == (kind, False)
    assert done.data["compared"] == sum(done.data["new"].values())
    again = call(place)
    assert "Nothing in it is new." in again.out
    assert f"Read back and compared: all {done.data['compared']} agree." in again.out


def test_words(call: Call, graph: Path, sessions: Path) -> None:
    assert call(graph).out.splitlines() == [
        f"{graph}: MCP memory server's graph, 2 entities, 2 observations, 1 relation.",
        "Brought in 5 memories.",
        "Read back and compared: all 5 agree.",
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
    assert "\x1b" not in done.out


def test_archives_still_come_in(call: Call, tmp_path: Path) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        store.thread("t").append({"role": "user", "content": "hi"})
        for name in ("a.json", "a.yaml", "a.msgpack"):
            store.export_to(tmp_path / name)
    for name in ("a.json", "a.yaml", "a.msgpack"):
        done = call(tmp_path / name)
        assert (done.code, done.out.splitlines()[0][:17]) == (exits.OK, "The file is sound")
    assert call(tmp_path / "a.json", "--from", "archive").code == exits.OK
    refused = call(tmp_path / "a.json", "--user", "ana")
    assert (refused.code, "is an archive" in refused.err) == (exits.USAGE, True)


def test_an_archive_from_standard_input(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        store.thread("t").append({"role": "user", "content": "hi"})
        archive = io.BytesIO()
        store.export_to(archive, format="json")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(archive.getvalue())))
    assert call("-").code == exits.OK


def test_what_it_is_can_be_said(call: Call, tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text("- a note\n", encoding="utf-8")
    assert call(page).code == exits.USAGE
    assert "1 memory" in call(page, "--from", "memory-files").out
    wrong = call(page, "--from", "openai-agents")
    assert (wrong.code, "not an SQLite database" in wrong.err) == (exits.USAGE, True)
    assert call(page, "--from", "letters").code == exits.USAGE
    assert set(options.SOURCES) == {ARCHIVE, *KINDS}


def test_wrong_and_damaged_files(call: Call, tmp_path: Path, sessions: Path) -> None:
    assert call(tmp_path / "nowhere").code == exits.NOT_FOUND
    data = sessions.read_bytes()
    sessions.write_bytes(data[:8192])
    assert call(sessions).code == exits.CORRUPT
    assert call("postgresql://127.0.0.1:1/x").code in (exits.UNAVAILABLE, exits.UNSUPPORTED)
    assert not (tmp_path / "agent.db").exists()


def test_a_bar_on_a_terminal_alone(call: Call, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(graph, "--dry-run").err == ""
    shown = io.StringIO()
    monkeypatch.setattr("holdfast.doors.cli.desk.Screen", lambda _: Screen(shown, width=80, terminal=True))
    assert call(graph).code == exits.OK
    assert "import" in shown.getvalue()
    assert "5/5" in shown.getvalue()


def test_a_class_is_named_by_its_module() -> None:
    assert importing.classes(["collections:OrderedDict"])[0].__name__ == "OrderedDict"
    for wrong in ("collections", "collections:namedtuple", "no.such.module:X", "a b:C"):
        with pytest.raises(holdfast.errors.Invalid):
            importing.classes([wrong])
