"""Calls that once hung, were taken for something else, or raised what is none of ours."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import Conflict, HoldfastError, Invalid, Misconfigured, NotFound

SAID = {"role": "user", "content": "hello"}


@pytest.fixture
def odd(tmp_path: Path) -> dict[str, Path]:
    """Things in a folder that are not files."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    return {name: tmp_path / name for name in ("pipe", "device", "folder")}


@pytest.mark.parametrize("what", ["pipe", "device", "folder"])
def test_what_is_no_file_is_no_database_and_no_backup(odd: dict[str, Path], tmp_path: Path, what: str) -> None:
    with pytest.raises(Misconfigured, match="not a database file"):
        holdfast.open(odd[what])
    with pytest.raises(HoldfastError):
        holdfast.restore(odd[what], tmp_path / "agent.db")
    with holdfast.open("ram:") as store:
        for call in (store.import_, store.backup, lambda path: store.export(path, format="json")):
            with pytest.raises(HoldfastError):
                call(odd[what])
    assert odd[what].exists()


@pytest.mark.parametrize("path", ["", "a\x00b", "a\ud800b", "~nobody-here/x", 5, None, b"\xff\x00"], ids=ascii)
def test_what_is_no_path_is_refused(store: holdfast.Store, path: Any) -> None:
    for call in (store.backup, lambda path: holdfast.restore(path, "ram:")):
        with pytest.raises((Invalid, NotFound)):
            call(path)


@pytest.mark.parametrize("timeout_s", [math.nan, math.inf, -1, "1", True, 2**70], ids=ascii)
def test_watching_takes_a_number_of_seconds(store: holdfast.Store, timeout_s: Any) -> None:
    with pytest.raises(Invalid, match="timeout_s is a number of seconds"):
        next(store.watch(timeout_s=timeout_s))


@pytest.mark.parametrize("flag", ["no", "false", 0, 1, None, []])
def test_a_flag_is_true_or_false(store: holdfast.Store, flag: Any) -> None:
    store.thread("t").append(SAID)
    memory = store.memory(user="ana")
    known = memory.remember("likes tea")
    store.folder("f").write("a", "text")
    for call in (
        lambda: store.erase(thread="t", forever=flag),
        lambda: memory.forget(known.id, erase=flag),
        lambda: memory.forget(known.id, dry_run=flag),
        lambda: memory.recall("tea", explain=flag),
        lambda: memory.recall("tea", log=flag),
        lambda: store.thread("t").checkpoint("c", replace=flag),
        lambda: store.folder("f").delete("a", erase=flag),
        lambda: store.import_(b"", dry_run=flag),
        lambda: store.thread("t").handoff.write("x.md", force=flag),
    ):
        with pytest.raises(Invalid, match="is True or False"):
            call()
    assert store.thread("t").logbook.head() == 1
    assert store.folder("f").read("a").content == "text"


def test_what_is_to_be_told_of_progress_can_be_called(store: holdfast.Store, tmp_path: Path) -> None:
    store.thread("t").append(SAID)
    done = store.backup(tmp_path / "copy.db")
    for call in (
        lambda: store.backup(tmp_path / "other.db", progress=5),  # type: ignore[arg-type]
        lambda: store.export(tmp_path / "a.json", progress=5),  # type: ignore[arg-type]
        lambda: store.import_(done, progress=5),  # type: ignore[arg-type]
        lambda: store.rebuild(progress=5),  # type: ignore[arg-type]
        lambda: store.memory().rebuild(progress=5),  # type: ignore[arg-type]
        lambda: holdfast.restore(done, "ram:", progress=5),  # type: ignore[arg-type]
        lambda: store.resume({}, on_run=5),  # type: ignore[arg-type]
    ):
        with pytest.raises(Invalid, match="is a function"):
            call()
    assert not (tmp_path / "other.db").exists()


def test_several_are_a_list(store: holdfast.Store) -> None:
    folder, memory = store.folder("f"), store.memory(user="ana")
    for bad in (5, None, "vector"):
        with pytest.raises(Invalid, match="must be a list"):
            folder.commit(bad)  # type: ignore[arg-type]
        with pytest.raises(Invalid, match="must be a list"):
            memory.recall("tea", without=bad)  # type: ignore[arg-type]
    assert [file.path for file in folder.commit(holdfast.FileWrite(name, "x") for name in "ab")] == ["a", "b"]  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["clock", "ids", "schemas"])
def test_a_part_that_is_given_is_one(part: str) -> None:
    for bad in (object(), 5, "x", dict):
        with pytest.raises(Invalid, match=f"{part} must be an object"):
            holdfast.open("ram:", **{part: bad})  # type: ignore[arg-type]


def test_a_name_that_is_too_long_is_no_error_of_the_system(store: holdfast.Store, tmp_path: Path) -> None:
    long = tmp_path / ("n" * 300)
    for call in (
        lambda: store.backup(long),
        lambda: holdfast.restore(long, "ram:"),
        lambda: holdfast.open(long),
        lambda: holdfast.restore(tmp_path / "missing", long),
    ):
        with pytest.raises(HoldfastError):
            call()


def test_a_number_of_many_digits_is_not_found(store: holdfast.Store) -> None:
    store.thread("t").append(SAID)
    store.thread("t").save({"a": 1})
    for call in (lambda n: store.thread("t").entry(n), lambda n: store.thread("t").state(revision=n)):
        with pytest.raises(NotFound):
            call(10**5000)
    with pytest.raises((Conflict, Invalid)):
        store.thread("t").save({"a": 2}, expect=10**5000)
