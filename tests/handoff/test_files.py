"""A file appears whole or not at all, keeps its mode, and is never a database."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.errors import Invalid, NotFound, Unavailable
from holdfast.handoff import files


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "P.md"
    files.write_text(path, "é\n")
    files.write_text(path, "zwei\n")
    assert path.read_bytes() == b"zwei\n"
    assert [item.name for item in tmp_path.iterdir()] == ["P.md"]


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "P.md"
    path.write_text("old", encoding="utf-8")
    path.chmod(mode)
    files.write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "any").write_text("", encoding="utf-8")
    files.write_text(tmp_path / "P.md", "x")
    assert (tmp_path / "P.md").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "P.md"
    path.write_text("old", encoding="utf-8")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="cannot be written: No space left"):
        files.write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["P.md"]


def test_content_and_folder_are_synced_and_in_that_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "P.md", []
    real = os.fsync

    def sync(handle: int) -> None:
        seen.append((stat.S_ISDIR(os.fstat(handle).st_mode), path.exists()))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    files.write_text(path, "x")
    assert seen == [(False, False), (True, True)]


def test_leftovers_of_a_killed_process_are_in_nobodys_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "get_ident", lambda: 1)
    left = tmp_path / f".holdfast-{os.getpid()}-1-0.tmp"
    left.write_text("left", encoding="utf-8")
    files.write_text(tmp_path / "P.md", "x")
    assert left.read_text(encoding="utf-8") == "left"
    assert (tmp_path / "P.md").read_text(encoding="utf-8") == "x"


def test_a_read_only_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "P.md"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda *_: False)  # for the superuser nothing is read-only
    with pytest.raises(Unavailable, match="read-only"):
        files.write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="make it first"):
        files.write_text(tmp_path / "no" / "P.md", "x")


# Which paths


@pytest.mark.parametrize("path", ["", "a\0b", 3, None, b"x.md", "x" * 5_000, "\ud800.md"])
def test_what_is_no_path(path: object) -> None:
    with pytest.raises(Invalid):
        files.located(path)


def test_directories_and_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="is a directory; name the file in it"):
        files.located(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Invalid, match="not a regular file"):
        files.located(tmp_path / "pipe")


def test_databases_are_refused_unopened(tmp_path: Path) -> None:
    (tmp_path / "agent-wal").touch()
    for name in ("agent.db", "AGENT.SQLite3", "agent"):
        with pytest.raises(Invalid, match="looks like a database"):
            files.located(tmp_path / name)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old", encoding="utf-8")
    (tmp_path / "P.md").symlink_to("real.md")
    files.write_text(files.located(tmp_path / "P.md"), "new")
    assert (tmp_path / "P.md").is_symlink()
    assert (tmp_path / "real.md").read_text(encoding="utf-8") == "new"


# Reading


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"a\nb\xff\n", "line 2: not UTF-8"),
        (b"\xff\xfeG\x00\n\x00", "line 1: a NUL character"),
        (b"a\nb\nc\x00", "line 3: a NUL"),
        (b"x" * 101, "longer than 100 bytes"),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "P.md"
    path.write_bytes(data)
    with pytest.raises(Invalid, match=sentence):
        files.read_text(path, 100)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        files.read_text(tmp_path / "P.md", 100)
