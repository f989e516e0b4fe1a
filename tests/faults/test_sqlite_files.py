"""The SQLite engine on files that are damaged, foreign, forbidden, full or shared: every fault is real.

What the whole store makes of such files is tested beside this, in ``test_sqlite_store_files``. Here it is the engine:
which error each verb ends with, and that everything it acknowledged is there afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

import holdfast
from holdfast.engine import sqlite_file
from holdfast.engine.contract import Append, Engine, Event, Fork, Mark, Put
from holdfast.engine.migrate import newest
from holdfast.engine.sqlite import SqliteEngine
from holdfast.errors import Corrupt, HoldfastError, Misconfigured, Unavailable
from holdfast.testing import ManualClock, SeededIds

NOBODY = 65_534

# For a process of its own: everything is imported, and the SQL files read, before rights are given up.
PRELUDE = """
import os, resource, sys
from pathlib import Path
from holdfast.clock import SystemClock
from holdfast.engine import migrate
from holdfast.engine.contract import Append, Event, Mark, Put, Query, Scope
from holdfast.engine.sqlite import SqliteEngine
from holdfast.errors import HoldfastError, Misconfigured, Unavailable
from holdfast.ids import Ids
migrate.migrations("sqlite")
path = Path(sys.argv[1])
def open_engine():
    return SqliteEngine(path, SystemClock(), Ids())
def append(engine, text):
    op = Append("thread", "t", (Event("say", text.encode(), 0),), new=Put("thread", "t", b""))
    return engine.commit("acme", [op], 1).heads[0]
def tell(work):
    try:
        work()
        print("fine", flush=True)
    except HoldfastError as error:
        print(type(error).__name__, flush=True)
"""


def start(program: str, path: Path) -> subprocess.Popen[str]:
    source = str(Path(holdfast.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + program, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    return out.splitlines()


def child(program: str, path: Path) -> list[str]:
    """Run a program to its end and return what it printed."""
    return finish(start(program, path))


def open_engine(path: Path) -> SqliteEngine:
    return SqliteEngine(path, ManualClock(), SeededIds())


def append(engine: Engine, *texts: str, id: str = "t") -> int:
    events = tuple(Event("say", text.encode(), 0) for text in texts)
    return engine.commit("acme", [Append("thread", id, events, new=Put("thread", id, b""))], 1).heads[0]


def bodies(engine: Engine, id: str = "t") -> list[str]:
    record = engine.get("acme", "thread", id)
    return [] if record is None else [event.body.decode() for event in engine.read("acme", record.mark)]


def sql(path: Path, text: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(text).fetchall()
    connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def furnished(path: Path) -> Path:
    """A closed store: thread t with five events, and f, forked from its third, with two of its own."""
    engine = open_engine(path)
    append(engine, "1", "2", "3", "4", "5")
    record = engine.get("acme", "thread", "t")
    assert record is not None
    engine.commit("acme", [Fork("thread", "f", Mark(record.mark.stream, 3), Put("thread", "f", b""))], 2)
    append(engine, "four", "five", id="f")
    engine.close()
    return path


# Files that are not store


@pytest.mark.parametrize("content", [b"no", b"not a database " * 1_000, b"SQLite format 3\x00" + b"\xff" * 4_000])
def test_a_file_that_is_not_sqlite_is_corrupt_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(Corrupt):
        open_engine(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_database_of_someone_else_is_misconfigured_and_left_as_it_is(path: Path, mode: str) -> None:
    sql(path, f"PRAGMA journal_mode = {mode}; CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    content = path.read_bytes()
    with pytest.raises(Misconfigured):
        open_engine(path)
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_newer_store_is_misconfigured_and_left_as_it_is(furnished: Path) -> None:
    sql(furnished, f"PRAGMA user_version = {newest('sqlite') + 1}")
    content = furnished.read_bytes()
    with pytest.raises(Misconfigured, match="newer") as caught:
        open_engine(furnished)
    assert caught.value.version == newest("sqlite") + 1
    assert furnished.read_bytes() == content


@pytest.mark.parametrize("left", [1, 2, 3, 5])
def test_a_store_cut_short_is_corrupt(furnished: Path, left: int) -> None:
    os.truncate(furnished, left * 4_096)
    with pytest.raises(Corrupt):
        open_engine(furnished)


def test_a_directory_is_misconfigured(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="directory"):
        open_engine(tmp_path)


def test_a_missing_directory_is_misconfigured_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="does not exist"):
        open_engine(tmp_path / "absent" / "store.db")
    assert not (tmp_path / "absent").exists()


# Files that may not be written


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that another user can reach; pytest's own folders are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


AS_NOBODY = f"""
if os.getuid() == 0:
    os.setgid({NOBODY})
    os.setuid({NOBODY})
tell(open_engine)
"""


@pytest.mark.parametrize(
    ("file", "folder"),
    [(0o444, 0o777), (0o666, 0o555), (None, 0o555), (0o000, 0o777)],
    ids=["read-only file", "read-only folder", "new file in a read-only folder", "unreadable file"],
)
def test_what_may_not_be_written_is_misconfigured(common: Path, file: int | None, folder: int) -> None:
    """Root may write anything, so the child becomes another user first."""
    path = common / "store.db"
    if file is not None:
        open_engine(path).close()
        path.chmod(file)
    common.chmod(folder)
    assert child(AS_NOBODY, path) == ["Misconfigured"]


def test_what_may_be_written_opens_for_the_same_user(common: Path) -> None:
    """The proof that the refusals above are about rights."""
    path = common / "store.db"
    open_engine(path).close()
    path.chmod(0o666)
    assert child(AS_NOBODY, path) == ["fine"]


# No room


def test_a_commit_without_room_fails_alone_and_the_engine_goes_on_when_there_is_some(path: Path) -> None:
    engine = open_engine(path)
    append(engine, "before")
    connection = engine._writer._connection
    pages = connection.pragma("page_count")
    connection.pragma("max_page_count", pages)
    with pytest.raises(Unavailable):
        append(engine, "x" * 100_000)
    assert bodies(engine) == ["before"]
    connection.pragma("max_page_count", pages + 1_000)
    append(engine, "after")
    engine.close()
    assert_holds(path, ["before", "after"])


FILL = """
engine = open_engine()
append(engine, "before")
limit = {room} * 1024
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
acknowledged = 1
try:
    while True:
        append(engine, str(acknowledged) + "x" * 5000)
        acknowledged += 1
except Unavailable as error:
    print(acknowledged, type(error).__name__, flush=True)
tell(lambda: engine.get("acme", "thread", "t"))
tell(lambda: append(engine, "late" + "x" * 5000))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(append(engine, "after"))
{end}
"""


@pytest.mark.parametrize(
    "end", ["engine.close()", "print(end='', flush=True); os._exit(0)"], ids=["closed", "ended without closing"]
)
@pytest.mark.parametrize("room", [64, 200, 1_000])
def test_a_full_disk_loses_nothing_acknowledged(path: Path, room: int, end: str) -> None:
    """A file size limit stands for the full disk. What was Unavailable is not there; what was unknown may be, whole."""
    lines = child(FILL.format(room=room, end=end), path)
    count, first = lines[0].split()
    expected = [(["before"], "fine"), *(([str(n)], "fine") for n in range(1, int(count)))]
    expected += [([count], first), (["late"], lines[2]), (["after"], "fine")]
    engine = open_engine(path)
    found = [text.rstrip("x") for text in bodies(engine)]
    assert engine.check() == []
    engine.close()
    assert lines[1] == "fine"  # reading goes on
    assert found in _possible(expected)
    assert len(found) == int(lines[3])


def _possible(commits: list[tuple[list[str], str]]) -> list[list[str]]:
    """Every content that a store may have after commits with these outcomes."""
    contents: list[list[str]] = [[]]
    for texts, outcome in commits:
        with_it = [content + texts for content in contents]
        contents = {"fine": with_it, "Unavailable": contents, "OutcomeUnknown": contents + with_it}[outcome]
    return contents


def assert_holds(path: Path, texts: list[str]) -> None:
    engine = open_engine(path)
    assert bodies(engine) == texts
    assert engine.check() == []
    engine.close()


# Processes

OPEN_WITH_OTHERS = """
print("ready", flush=True)
sys.stdin.readline()
engine = open_engine()
print(append(engine, sys.argv[1]), flush=True)
engine.close()
"""


@pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_processes_that_open_a_new_file_at_once_make_one_store(path: Path, count: int) -> None:
    processes = [start(OPEN_WITH_OTHERS, path) for _ in range(count)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    heads = [int(finish(process)[0]) for process in processes]
    assert sorted(heads) == list(range(1, count + 1))
    assert_holds(path, [str(path)] * count)


class Interrupting:
    """A connection during whose ``moment``-th statement another process makes the store."""

    def __init__(self, connection: apsw.Connection, moment: int, interrupt: Callable[[], None]) -> None:
        self._connection, self._moment, self._interrupt = connection, moment, interrupt

    def execute(self, *args: Any) -> Any:
        self._moment -= 1
        if self._moment == 0:
            self._interrupt()
        return self._connection.execute(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("moment", range(1, 8))
def test_a_store_that_is_just_being_made_is_not_taken_for_someone_elses(path: Path, moment: int) -> None:
    def make_store() -> None:
        with suppress(Unavailable):  # the look holds a lock by now: then it is made later
            SqliteEngine(path, ManualClock(), SeededIds(), busy_timeout_s=0.01).close()

    connection = apsw.Connection(str(path))
    looking: Any = Interrupting(connection, moment, make_store)
    with closing(connection):
        sqlite_file.recognise(looking, path)
    open_engine(path).close()


FORK = """
engine = open_engine()
append(engine, "before")
child = os.fork()
if not child:
    for use in (
        lambda: append(engine, "child"),
        lambda: engine.get("acme", "thread", "t"),
        lambda: engine.scan("acme", Query("thread")),
        lambda: engine.read("acme", Mark(1, 1)),
        lambda: engine.feed("acme"),
        lambda: engine.snapshot().__enter__(),
        lambda: engine.check(),
        lambda: engine.backup(path.with_name("copy")),
        engine.close,
    ):
        tell(use)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
append(engine, "after")
engine.close()
"""


def test_an_engine_works_on_both_sides_of_a_fork(path: Path) -> None:
    assert child(FORK, path) == ["fine"] * 9
    assert_holds(path, ["before", "child", "after"])
    assert path.with_name("copy").exists()


# Tampering

T = "stream = (SELECT num FROM strands WHERE id = 't')"
F = "stream = (SELECT num FROM strands WHERE id = 'f')"
SWAP = f"""
    UPDATE events SET position = 99 WHERE {T} AND position = 2;
    UPDATE events SET position = 2 WHERE {T} AND position = 4;
    UPDATE events SET position = 4 WHERE {T} AND position = 99
"""
TAMPERINGS: dict[str, tuple[str, str, int]] = {
    "changed body": (f"UPDATE events SET body = x'00' WHERE {T} AND position = 2", "t", 2),
    "body that is text": (f"UPDATE events SET body = 'x' WHERE {T} AND position = 2", "t", 2),
    "kind that is bytes": (f"UPDATE events SET kind = x'00' WHERE {T} AND position = 2", "t", 2),
    "changed body of a fork": (f"UPDATE events SET body = x'00' WHERE {F} AND position = 4", "f", 4),
    "changed kind": (f"UPDATE events SET kind = 'do' WHERE {T} AND position = 2", "t", 2),
    "changed key": (f"UPDATE events SET key = 'k' WHERE {T} AND position = 2", "t", 2),
    "changed time": (f"UPDATE events SET time = 1 WHERE {T} AND position = 2", "t", 2),
    "changed digest": (f"UPDATE events SET digest = zeroblob(16) WHERE {T} AND position = 2", "t", 2),
    "deleted first row": (f"DELETE FROM events WHERE {T} AND position = 1", "t", 1),
    "deleted middle row": (f"DELETE FROM events WHERE {T} AND position = 3", "t", 3),
    "deleted last row": (f"DELETE FROM events WHERE {T} AND position = 5", "t", 5),
    "deleted rows": (f"DELETE FROM events WHERE {T} AND position IN (2, 3)", "t", 2),
    "all rows deleted": (f"DELETE FROM events WHERE {T}", "t", 1),
    "deleted last row of a fork": (f"DELETE FROM events WHERE {F} AND position = 5", "f", 5),
    "changed position": (f"UPDATE events SET position = 30 WHERE {T} AND position = 3", "t", 3),
    "changed last position": (f"UPDATE events SET position = 30 WHERE {T} AND position = 5", "t", 5),
    "swapped rows": (SWAP, "t", 2),
    "deleted strand": ("DELETE FROM strands WHERE id = 't'", "t", 1),
    "deleted strand of a fork": ("DELETE FROM strands WHERE id = 'f'", "f", 4),
    "another beginning of a fork": ("UPDATE strands SET digest = zeroblob(16) WHERE id = 'f'", "f", 4),
    "row added at the end": (
        f"INSERT INTO events SELECT NULL, tenant, stream, 6, kind, key, time, digest, body FROM events "
        f"WHERE {T} AND position = 5",
        "t",
        6,
    ),
    "raised head": ("UPDATE records SET head = 6 WHERE id = 't'", "t", 6),
    "lowered head": ("UPDATE records SET head = 4 WHERE id = 't'", "t", 5),
    "changed head": ("UPDATE records SET digest = zeroblob(16) WHERE id = 't'", "t", 5),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found_and_named(furnished: Path, name: str) -> None:
    """By tenant, owner and the first position concerned; the other thread is not accused."""
    statement, id, position = TAMPERINGS[name]
    sql(furnished, statement)
    engine = open_engine(furnished)
    problems = engine.check()
    engine.close()
    assert problems
    assert {(problem.tenant, problem.kind, problem.id) for problem in problems} == {("acme", "thread", id)}
    assert min(problem.position for problem in problems) == position
    assert all(f"thread {id!r}" in problem.where for problem in problems)


@pytest.mark.parametrize("index", ["events_position", "records_name", "strands_stream"])
def test_an_index_that_lost_a_row_is_found(furnished: Path, index: str) -> None:
    """An index that disagrees with its table answers wrongly, though every chain is whole."""
    connection = apsw.Connection(str(furnished))
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).fetchall()[0][0]
    count_of_cells = (root - 1) * connection.pragma("page_size") + 3
    connection.close()
    with furnished.open("r+b") as file:
        file.seek(count_of_cells)
        cells = int.from_bytes(file.read(2))
        file.seek(count_of_cells)
        file.write((cells - 1).to_bytes(2))
    assert _problem_or_error(lambda: _check(furnished))


def _check(path: Path) -> bool:
    engine = open_engine(path)
    try:
        return bool(engine.check())
    finally:
        engine.close()


def _problem_or_error(look: Callable[[], bool]) -> bool:
    """Found by the check, or so damaged that the engine says so at once."""
    try:
        return look()
    except HoldfastError as error:
        return isinstance(error, Corrupt)
