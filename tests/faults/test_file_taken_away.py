"""The file of an open store is moved, deleted or replaced: noticed before anything more is acknowledged.

What has the name by then is never written into and never read from, also not by way of the log that lies beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import holdfast
from holdfast.errors import Corrupt, FileGone

Taking = Callable[[Path], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def opened(path: Path) -> holdfast.Store:
    return holdfast.open(path, embedder="none")


def say(store: holdfast.Store, text: str) -> None:
    store.thread("trip").append(holdfast.note(text))


def said(store: holdfast.Store) -> list[str]:
    return [entry.content["text"] for entry in store.thread("trip").log()]


def other_store(path: Path) -> Path:
    """Another store, closed, beside the first."""
    other = path.with_name("other.db")
    with opened(other) as store:
        for number in range(3):
            say(store, f"of the other {number}")
    return other


def unlink(path: Path) -> None:
    path.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def replace_by_store(path: Path) -> None:
    os.replace(other_store(path), path)


def replace_by_text(path: Path) -> None:
    text = path.with_name("text")
    text.write_text("not a database at all\n" * 400)
    os.replace(text, path)


def replace_by_database(path: Path) -> None:
    other = path.with_name("theirs.db")
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    connection.close()
    os.replace(other, path)


TAKINGS = [unlink, move_away, replace_by_store, replace_by_text, replace_by_database]


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize("take", TAKINGS)
def test_nothing_more_is_acknowledged_and_nothing_written_to_what_has_the_name(path: Path, take: Taking) -> None:
    store = opened(path)
    say(store, "before")
    take(path)
    there = content(path)
    for _ in range(2):
        with pytest.raises(FileGone) as caught:
            say(store, "after")
        assert caught.value.path == str(path)
    for call in (lambda: said(store), store.threads, store.verify, lambda: store.erase(thread="trip")):
        with pytest.raises(FileGone):
            call()
    store.close()
    assert content(path) == there


@pytest.mark.parametrize("take", TAKINGS)
def test_a_reader_that_is_opened_later_reads_nothing_else(path: Path, take: Taking) -> None:
    store = opened(path)
    say(store, "before")
    engine: Any = store.core.engine
    engine.disconnect()  # as before a fork: every connection is opened again when it is needed
    engine._writer.identity.check_sometimes()  # so that only opening can notice
    take(path)
    there = content(path)
    with pytest.raises(FileGone):
        said(store)
    store.close()
    assert content(path) == there


def test_a_writer_that_is_opened_again_makes_no_new_file(path: Path) -> None:
    store = opened(path)
    say(store, "before")
    store.core.engine.disconnect()  # type: ignore[attr-defined]
    path.unlink()
    with pytest.raises(FileGone):
        say(store, "after")
    store.close()
    assert not path.exists()


@pytest.mark.parametrize("take", TAKINGS)
def test_taken_away_in_the_middle_of_a_commit(path: Path, take: Taking, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(path)
    say(store, "before")
    writer: Any = store.core.engine._writer  # type: ignore[attr-defined]
    usual, taken = writer._write, []

    def write(*arguments: Any) -> None:
        usual(*arguments)
        if not taken:
            taken.append(take(path))

    monkeypatch.setattr(writer, "_write", write)
    with pytest.raises(FileGone):
        say(store, "in between")
    there = content(path)
    with pytest.raises(FileGone):
        say(store, "after")
    store.close()
    assert content(path) == there


def test_the_store_that_took_the_name_is_not_harmed_by_the_log_of_the_old_one(path: Path) -> None:
    """Its name leads to a log that is not its own. SQLite would replay that into it."""
    old = opened(path)
    for number in range(50):
        say(old, f"before {number}")
    replace_by_store(path)
    with pytest.raises(FileGone):
        say(old, "after")
    with opened(path) as new:
        say(new, "mine")
        assert said(new) == ["of the other 0", "of the other 1", "of the other 2", "mine"]
        old.close()  # deletes no log that is another's by now
        say(new, "mine too")
    with opened(path) as again:
        assert said(again)[3:] == ["mine", "mine too"]
        assert again.verify().ok
    assert [file.name for file in path.parent.glob("agent.db-wal.left-*")]


def test_what_the_log_held_when_the_file_was_moved_can_be_brought_back(path: Path) -> None:
    store = opened(path)
    for number in range(20):
        say(store, f"before {number}")
    moved = path.with_name("moved.db")
    path.rename(moved)
    with pytest.raises(FileGone):
        say(store, "after")
    store.close()
    with pytest.raises(Corrupt, match="its log"):
        opened(path)
    moved.rename(path)
    with opened(path) as again:
        assert said(again) == [f"before {number}" for number in range(20)]
        assert again.verify().ok


def test_moved_away_and_back_unnoticed_is_the_same_file(path: Path) -> None:
    with opened(path) as store:
        say(store, "before")
        path.rename(path.with_name("moved.db"))
        path.with_name("moved.db").rename(path)
        say(store, "after")
        assert said(store) == ["before", "after"]


def test_once_noticed_a_store_stays_refused_until_it_is_opened_again(path: Path) -> None:
    store = opened(path)
    say(store, "before")
    path.rename(path.with_name("moved.db"))
    with pytest.raises(FileGone):
        say(store, "lost?")
    path.with_name("moved.db").rename(path)
    for call in (lambda: say(store, "lost?"), lambda: said(store)):
        with pytest.raises(FileGone):
            call()
    store.close()
    with opened(path) as again:
        assert said(again) == ["before"]


def test_a_symbolic_link_that_leads_elsewhere_is_noticed(path: Path) -> None:
    other = other_store(path)
    real = path.with_name("real.db")
    path.symlink_to(real)
    store = opened(path)
    say(store, "before")
    path.unlink()
    path.symlink_to(other)
    there = content(other)
    with pytest.raises(FileGone):
        say(store, "after")
    store.close()
    assert content(other) == there


CHILD = """
import os, sys
from pathlib import Path
import holdfast
from holdfast.engine import sqlite_process
from holdfast.errors import FileGone

path = Path(sys.argv[1])
if sys.argv[2] == "number":  # as where the new file got the number of the old one, which nobody had open any more
    sqlite_process.place_of = lambda path: sqlite_process.FileIdentity(1, 1) if os.path.exists(path) else None
store = holdfast.open(path, embedder="none")
store.thread("trip").append(holdfast.note("before"))
said, told = os.pipe()
child = os.fork()
if child:
    os.close(told)
    os.read(said, 1)
else:
    os.close(said)
if not child:
    path.unlink()
    for beside in path.parent.glob("agent.db-*"):
        beside.unlink()
    with holdfast.open(path, embedder="none") as other:
        other.thread("trip").append(holdfast.note("of the other"))
there = path.read_bytes()
for call in (lambda: store.thread("trip").append(holdfast.note("after")), store.threads):
    try:
        call()
    except FileGone:
        os.write(1, b"gone\\n")
store.close()
assert path.read_bytes() == there
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("same", ["number", "name"])
def test_replaced_after_a_fork_while_nobody_had_it_open(path: Path, same: str) -> None:
    """After a fork no connection is open, and the file system may give the new file the number of the old one."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CHILD, str(path), same],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(holdfast.__file__).parents[1])},
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "gone\n" * 4)
