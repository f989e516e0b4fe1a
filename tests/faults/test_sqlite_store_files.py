"""What becomes of a store whose file is damaged, foreign, in the wrong place, or on a disk without room.

Every fault here is real: files are cut and changed on disk, children run under another user or a file size limit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

import holdfast
from holdfast.engine import migrate
from holdfast.errors import Conflict, Corrupt, HoldfastError, Misconfigured, Unavailable
from holdfast.testing import ManualClock

NOBODY = 65_534
ENTRIES = 12
ABSENT = {"-wal", "-shm", "-journal"}

# Programs for a process of its own. ``tell`` runs something and prints the error it ended with, or "fine".
PRELUDE = """
import os, sys
import holdfast
import holdfast.engine.sqlite
from holdfast.errors import HoldfastError, Misconfigured, Unavailable
path = sys.argv[1]
def tell(work):
    try:
        work()
    except HoldfastError as error:
        print(type(error).__name__, flush=True)
    else:
        print("fine", flush=True)
def go_on():
    print("ready", flush=True)
    sys.stdin.readline()
"""


def command(program: str, *arguments: object) -> list[str]:
    code = PRELUDE + textwrap.dedent(program)
    return [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]


def child(program: str, *arguments: object) -> list[str]:
    """Run a program to its end and return the lines it printed. It must end well and complain about nothing."""
    done = subprocess.run(command(program, *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def said(number: int, size: int = 300) -> dict[str, Any]:
    return {"role": "user", "content": f"{number} " + "x" * size}


def furnish(path: Path) -> None:
    """Make a store with a thread of some entries, a state of two revisions and a checkpoint."""
    with holdfast.open(path) as store:
        thread = store.thread("trip", user="ana")
        for number in range(1, ENTRIES + 1):
            thread.append(said(number), key=f"k{number}")
        thread.save({"city": "Lisbon"})
        thread.save({"city": "Porto"})
        thread.checkpoint("booked")


def sql(path: Path, text: str, *values: Any) -> list[tuple[Any, ...]]:
    """Do something to a store behind its back."""
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(text, values).fetchall()
    finally:
        connection.close()


def beside(path: Path) -> set[str]:
    """The names, without the file's own, of what lies beside a store's file."""
    return {each.name.removeprefix(path.name) for each in path.parent.iterdir()} - {""}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store that was closed, so that a copy of it is a store."""
    path = tmp_path_factory.mktemp("template") / "agent.db"
    furnish(path)
    return path.read_bytes()


@pytest.fixture
def furnished(path: Path, template: bytes) -> Path:
    path.write_bytes(template)
    return path


# Files that are not store of ours


@pytest.mark.parametrize(
    "content",
    [b"hello", b"Dear diary, " * 1_000, bytes(4_096), b"SQLite format 3\0" + b"\7" * 5_000, b"PK\3\4" + bytes(600)],
    ids=["a word", "a text", "zeros", "a lying header", "an archive"],
)
def test_a_file_that_is_not_sqlite_is_corrupt_and_stays_as_it_was(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(Corrupt, match="not an SQLite database"):
        holdfast.open(path)
    assert path.read_bytes() == content
    assert beside(path) == set()


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    furnish(path)
    with holdfast.open(path) as store:
        assert store.thread("trip").logbook.head() == ENTRIES


@pytest.mark.parametrize(
    "owner",
    ["CREATE TABLE songs (name TEXT)", "CREATE TABLE records (num)", "PRAGMA application_id = 7"],
    ids=["other tables", "tables of the same name", "another application's mark"],
)
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_database_of_somebody_else_is_left_alone(owner: str, mode: str, path: Path) -> None:
    sql(path, f"PRAGMA journal_mode = {mode}")
    sql(path, owner)
    before = path.read_bytes()
    with pytest.raises(Misconfigured, match="not a Holdfast store"):
        holdfast.open(path)
    assert path.read_bytes() == before


def test_a_store_of_a_newer_holdfast_is_left_alone(furnished: Path) -> None:
    newer = migrate.newest("sqlite") + 1
    sql(furnished, f"PRAGMA user_version = {newer}")
    before = furnished.read_bytes()
    with pytest.raises(Misconfigured, match="newer Holdfast") as refusal:
        holdfast.open(furnished)
    assert (refusal.value.version, refusal.value.known) == (newer, newer - 1)
    assert furnished.read_bytes() == before


# Stores that were cut


def noticed(path: Path) -> bool:
    """Whether a store says that it is damaged, when it is opened or verified."""
    try:
        with holdfast.open(path) as store:
            return not store.verify().ok
    except Corrupt:
        return True


@pytest.mark.parametrize("cut", [2, 16, 99, 100, 511, 512, 4_095, 4_096, 4_097, "half", "a page", "a byte"])
def test_a_store_that_was_cut_short_is_corrupt(cut: int | str, furnished: Path) -> None:
    size = furnished.stat().st_size
    ends = {"half": size // 2 + 1, "a page": size - 4_096, "a byte": size - 1}
    os.truncate(furnished, ends[cut] if isinstance(cut, str) else cut)
    with pytest.raises(Corrupt) as refusal:
        holdfast.open(furnished)
    assert str(furnished) in str(refusal.value)


def test_a_hole_in_the_file_is_found_wherever_it_is(furnished: Path) -> None:
    """A cut that something filled up again, as some file systems do after a crash: each page in turn is zeros."""
    whole = furnished.read_bytes()
    for start in range(0, len(whole), 4_096):
        furnished.write_bytes(whole[:start] + bytes(4_096) + whole[start + 4_096 :])
        assert noticed(furnished), f"at {start}"


@pytest.fixture
def killed(path: Path) -> Path:
    """A store whose process died: its newest entries are only in the log beside the file."""
    child(
        """
        store = holdfast.open(path)
        for number in range(1, 13):
            store.thread("trip").append({"role": "user", "content": f"{number} " + "x" * 300})
        os._exit(0)
        """,
        path,
    )
    assert path.with_name("agent.db-wal").stat().st_size
    return path


@pytest.mark.slow
@pytest.mark.parametrize("cut", [100, 4_095])
def test_a_store_cut_short_beside_its_log_gives_no_wrong_answer(cut: int, killed: Path) -> None:
    """What the log holds may make up for the cut; then everything must be there."""
    os.truncate(killed, cut)
    if not noticed(killed):
        with holdfast.open(killed) as store:
            assert [entry.content for entry in store.thread("trip").log()] == [said(n) for n in range(1, 13)]


@pytest.mark.slow
@pytest.mark.parametrize("loss", [lambda path: os.truncate(path, 0), Path.unlink], ids=["empty", "missing"])
def test_the_log_of_a_lost_file_is_not_thrown_away(loss: Callable[[Path], None], killed: Path) -> None:
    """SQLite would delete the log of an empty file, and open would give an empty store."""
    loss(killed)
    log = killed.with_name("agent.db-wal")
    before = log.read_bytes()
    with pytest.raises(Corrupt, match="its log"):
        holdfast.open(killed)
    assert log.read_bytes() == before


# Places where no store can be


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="is a directory"):
        holdfast.open(tmp_path)


def test_a_missing_directory_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"directory .*missing does not exist"):
        holdfast.open(tmp_path / "missing" / "agent.db")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_file_can_have_is_misconfigured(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot be reached"):
        holdfast.open(tmp_path / ("n" * 300))


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that every user can reach, unlike the folders of tests."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


AS_SOMEBODY = f"""
import tempfile
with tempfile.TemporaryDirectory() as warm:  # the other user may not be allowed to read modules
    with holdfast.open(warm + "/warm.db") as store:
        store.backup(warm + "/copy.db")
if os.getuid() == 0:  # nothing is read-only to root
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "folder"),
    [(0o444, 0o777), (0o444, 0o555), (0o666, 0o555), (0o000, 0o777), (None, 0o555), (0o666, 0o000)],
    ids=["file", "file and folder", "folder", "unreadable file", "folder of a new file", "unreachable folder"],
)
def test_what_may_not_be_written_is_misconfigured(file: int | None, folder: int, common: Path, template: bytes) -> None:
    path = common / "agent.db"
    if file is not None:
        path.write_bytes(template)
        path.chmod(file)
    common.chmod(folder)
    assert child(AS_SOMEBODY + "tell(lambda: holdfast.open(path))", path) == ["Misconfigured"]
    common.chmod(0o755)
    assert beside(path) == set()
    if file is not None:
        path.chmod(0o644)
        assert path.read_bytes() == template


# A disk without room


def fill(thread: holdfast.Thread) -> None:
    """Append until that fails."""
    for number in range(2, 1_000):
        thread.append(said(number), key=f"k{number}")


def test_a_store_at_its_size_limit_refuses_and_goes_on_once_there_is_room(path: Path) -> None:
    with holdfast.open(path) as store:
        thread = store.thread("trip")
        thread.append(said(1))
        writer: apsw.Connection = store.core.engine._writer._connection  # type: ignore[attr-defined]
        pages = writer.execute("PRAGMA page_count").fetchall()[0][0]
        writer.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall()
        with pytest.raises(Unavailable, match="full"):
            fill(thread)
        written = thread.logbook.head()
        assert thread.entry(written).content == said(written)  # the last one that was acknowledged
        assert thread.append(said(written), key=f"k{written}").number == written
        with holdfast.open(path) as other:
            assert other.thread("trip").logbook.head() == written
            assert other.verify().ok
        writer.execute("PRAGMA max_page_count = 1000000").fetchall()
        assert thread.append(said(written + 1), key=f"k{written + 1}").number == written + 1
        assert store.verify().ok


FILLING = """
    import resource
    room = int(sys.argv[2])
    store = holdfast.open(path)
    thread = store.thread("trip")
    def say(number):
        entry = thread.append({"role": "user", "content": f"{number} " + "x" * 300}, key=f"k{number}")
        assert entry.number == number
        print(number, flush=True)
    for number in range(1, 6):
        say(number)
    if room:
        room += max(os.path.getsize(path + part) for part in ("", "-wal", "-shm"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    for again in range(3):
        try:
            while True:
                say(number + 1)
                number += 1
        except Unavailable as error:
            print(type(error).__name__, flush=True)
    if len(sys.argv) > 3:
        os._exit(0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    say(number + 1)
    assert store.verify().ok
    store.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 1_000, 30_000, 200_000])
@pytest.mark.parametrize("end", ["goes on", "dies"])
def test_a_full_disk_loses_nothing_acknowledged_and_the_same_store_goes_on(room: int, end: str, path: Path) -> None:
    lines = child(FILLING, path, room, *([] if end == "goes on" else ["dies"]))
    acknowledged = [int(line) for line in lines if line.isdigit()]
    refusals = {line for line in lines if not line.isdigit()}
    assert refusals
    assert refusals <= {"Unavailable", "OutcomeUnknown"}
    assert next(line for line in lines if not line.isdigit()) == "OutcomeUnknown"  # it failed while committing
    with holdfast.open(path) as store:
        thread = store.thread("trip")
        assert [entry.content for entry in thread.log()][: len(acknowledged)] == [said(n) for n in acknowledged]
        assert thread.logbook.head() - len(acknowledged) in (0, 1)  # one may have an unknown outcome
        after = len(acknowledged) + 1
        assert thread.append(said(after), key=f"k{after}").number == after
        assert store.verify().ok


# Many openers, and a fork


@pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_many_processes_may_open_a_new_file_at_once(count: int, path: Path) -> None:
    program = """
        go_on()
        with holdfast.open(path) as store:
            store.thread("trip").append({"by": sys.argv[2]})
        """
    running = [
        subprocess.Popen(command(program, path, name), stdin=-1, stdout=-1, stderr=-1, text=True)
        for name in range(count)
    ]
    for each in running:
        assert each.stdout is not None
        each.stdout.readline()
    for each in running:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    ends = [each.communicate(timeout=60) for each in running]
    assert [(each.returncode, *end) for each, end in zip(running, ends, strict=True)] == [(0, "", "")] * count
    with holdfast.open(path) as store:
        log = store.thread("trip").log()
        assert sorted(entry.content["by"] for entry in log) == sorted(map(str, range(count)))
        assert [entry.number for entry in log] == list(range(1, count + 1))
        assert store.verify().ok


# Changes behind the store's back

TRIP = "stream = (SELECT num FROM strands WHERE kind = 'thread' AND id = 'trip')"
FORGED = b'j1{"role":"user","content":"forged"}'
SWAP = f"""
    CREATE TEMP TABLE two AS SELECT position, body FROM events WHERE {TRIP} AND position IN (4, 7);
    UPDATE events SET body = (SELECT body FROM two WHERE two.position = 11 - events.position)
    WHERE {TRIP} AND position IN (4, 7)
"""
LAST = f"{TRIP} AND position = {ENTRIES}"
STATE = "stream = (SELECT num FROM strands WHERE kind = 'state' AND id = 'trip')"
TAMPERINGS: dict[str, tuple[str, str, list[int]]] = {
    "a changed body": (f"UPDATE events SET body = x'{FORGED.hex()}' WHERE {TRIP} AND position = 3", "thread", [3]),
    "a changed key": (f"UPDATE events SET key = 'other' WHERE {TRIP} AND position = 3", "thread", [3]),
    "a changed time": (f"UPDATE events SET time = time + 1 WHERE {TRIP} AND position = 3", "thread", [3]),
    "a changed kind": (f"UPDATE events SET kind = 'note' WHERE {TRIP} AND position = 3", "thread", [3]),
    "a deleted first entry": (f"DELETE FROM events WHERE {TRIP} AND position = 1", "thread", [1]),
    "a deleted entry": (f"DELETE FROM events WHERE {TRIP} AND position = 5", "thread", [5]),
    "a deleted last entry": (f"DELETE FROM events WHERE {LAST}", "thread", [ENTRIES]),
    "all entries deleted": (f"DELETE FROM events WHERE {TRIP}", "thread", [1]),
    "a changed position": (f"UPDATE events SET position = 99 WHERE {TRIP} AND position = 5", "thread", [5]),
    "a moved last entry": (f"UPDATE events SET position = 99 WHERE {LAST}", "thread", [ENTRIES]),
    "swapped bodies": (SWAP, "thread", [4, 7]),
    "a changed digest": (f"UPDATE events SET digest = zeroblob(16) WHERE {TRIP} AND position = 6", "thread", [6]),
    "a changed last digest": (f"UPDATE events SET digest = zeroblob(16) WHERE {LAST}", "thread", [ENTRIES]),
    "a changed head digest": ("UPDATE records SET digest = zeroblob(16) WHERE kind = 'thread'", "thread", [ENTRIES]),
    "a raised head": ("UPDATE records SET head = head + 1 WHERE kind = 'thread'", "thread", [ENTRIES + 1]),
    "a lowered head": ("UPDATE records SET head = head - 1 WHERE kind = 'thread'", "thread", [ENTRIES]),
    "a changed revision": (f"UPDATE events SET body = x'{FORGED.hex()}' WHERE {STATE} AND position = 2", "state", [2]),
    "a deleted revision": (f"DELETE FROM events WHERE {STATE} AND position = 1", "state", [1]),
    "a deleted strand": ("DELETE FROM strands WHERE kind = 'thread'", "thread", []),
    "a deleted thread": ("DELETE FROM records WHERE kind = 'thread'", "thread", []),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_verify_finds_and_names(what: str, furnished: Path) -> None:
    """Each problem names its thread; where single entries are concerned, also their numbers."""
    change, kind, numbers = TAMPERINGS[what]
    sql(furnished, change)
    with holdfast.open(furnished) as store:
        problems = store.verify().problems
    assert problems
    named = [problem for problem in problems if (problem.kind, problem.id) == (kind, "trip")]
    assert {*numbers} <= {problem.position for problem in named}
    assert all(f"{kind} 'trip'" in problem.where and problem.what for problem in named)
    # A checkpoint may have lost the history it points to, but nothing else is named.
    assert {problem.kind for problem in problems} <= {kind, "checkpoint"}
    assert {problem.tenant for problem in problems} == {"default"}
    assert named


def test_a_furnished_store_is_sound(furnished: Path) -> None:
    """Otherwise the findings above would mean nothing."""
    with holdfast.open(furnished) as store:
        report = store.verify()
    assert (report.ok, report.threads, report.entries) == (True, 1, ENTRIES)


def test_a_damaged_store_is_not_backed_up(furnished: Path, tmp_path: Path) -> None:
    """A backup that exists is one that was proved; one of damaged data would replace a good older one."""
    sql(furnished, TAMPERINGS["a changed body"][0])
    with holdfast.open(furnished) as store, pytest.raises(Corrupt, match="entry 3"):
        store.backup(tmp_path / "copy.db")
    assert beside(furnished) == set()


# For people with their own tools


@pytest.mark.parametrize(
    ("view", "columns", "rows"),
    [
        (
            "holdfast_threads",
            "tenant, thread, user_id, agent_id, tags, entries, created, active",
            [("acme", "trip", "ana", "travel", '["paid"]', 2, "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")],
        ),
        (
            "holdfast_entries",
            "tenant, thread, number, kind, key, time, content",
            [
                ("acme", "trip", 1, "message", "k1", "2026-01-01T00:00:00Z", '{"role":"user","content":"hëllo"}'),
                ("acme", "trip", 2, "note", None, "2026-01-01T00:00:00Z", '{"text":"done"}'),
            ],
        ),
        (
            "holdfast_states",
            "tenant, thread, revision, time, content ->> '$.value.city'",
            [
                ("acme", "trip", 1, "2026-01-01T00:00:00Z", "Lisbon"),
                ("acme", "trip", 2, "2026-01-01T00:01:00Z", "Porto"),
            ],
        ),
        (
            "holdfast_checkpoints",
            "tenant, thread, created, content ->> '$.name', content ->> '$.log.position'",
            [("acme", "trip", "2026-01-01T00:01:00Z", "booked", 2)],
        ),
        (
            "holdfast_runs",
            "tenant, thread, content ->> '$.name', status, events, created",
            [("acme", "trip", "book", '["open"]', 2, "2026-01-01T00:01:00Z")],
        ),
        (
            "holdfast_steps",
            "run, number, kind, content ->> '$.step'",
            [("4:trip/book", 1, "opened", None), ("4:trip/book", 2, "released", None)],
        ),
        (
            "holdfast_handoffs",
            "tenant, thread, revision, content ->> '$.document.goal'",
            [("acme", "trip", 1, "Fly")],
        ),
        (
            "holdfast_memories",
            "tenant, user_id, content ->> '$.text', recorded",
            [("acme", "ana", "aisle seats", "2026-01-01T00:01:00Z")],
        ),
        (
            "holdfast_files",
            "tenant, folder, path, version, user_id, content ->> '$.content'",
            [("acme", "notes", "a/b.md", 2, "ana", "new"), ("acme", "notes", "raw", 1, "ana", None)],
        ),
    ],
    ids=["threads", "entries", "states", "checkpoints", "runs", "steps", "handoffs", "memories", "files"],
)
def test_the_views_show_what_is_stored(view: str, columns: str, rows: list[tuple[Any, ...]], path: Path) -> None:
    clock = ManualClock()
    with holdfast.open(path, tenant="acme", clock=clock) as store:
        thread = store.thread("trip", user="ana", agent="travel", tags=["paid"])
        thread.append({"role": "user", "content": "hëllo"}, key="k1")
        thread.append(holdfast.note("done"))
        thread.save({"city": "Lisbon"})
        clock.advance(60)
        thread.save({"city": "Porto"})
        thread.checkpoint("booked")
        thread.run("book").release()
        thread.handoff.update(goal="Fly")
        store.memory(user="ana").remember("aisle seats")
        notes = store.folder("notes", user="ana")
        notes.write("a/b.md", "old")
        notes.write("a/b.md", "new")
        notes.write("raw", b"bytes")
        notes.write("gone", "deleted")
        notes.delete("gone")
    assert sql(path, f"SELECT {columns} FROM {view}") == rows


# Backups


def test_a_backup_taken_while_another_thread_writes_is_sound(path: Path, tmp_path: Path) -> None:
    with holdfast.open(path) as store, ThreadPoolExecutor(1) as pool:
        thread = store.thread("trip")
        begun, stop = threading.Event(), threading.Event()

        def write() -> int:
            number = 0
            while not stop.is_set():
                number += 1
                with thread.turn() as turn:
                    turn.append(said(2 * number - 1), said(2 * number))
                    turn.save({"turns": number})
                begun.set()
            return number

        writing = pool.submit(write)
        assert begun.wait(30)
        copies = []
        for number in range(5):
            before = thread.logbook.head()
            copies.append((store.backup(tmp_path / f"copy-{number}.db"), before, thread.logbook.head()))
        stop.set()
        turns = writing.result()
        assert thread.logbook.head() == 2 * turns
    for copy, before, after in copies:
        assert beside(copy).isdisjoint({f"{copy.name}{part}" for part in ABSENT})
        with holdfast.open(copy) as store:
            thread = store.thread("trip")
            log = thread.log()
            assert before <= len(log) <= after
            assert [entry.content for entry in log] == [said(number) for number in range(1, len(log) + 1)]
            assert thread.state().value == {"turns": len(log) // 2}  # whole turns only
            assert store.verify().ok


def test_a_backup_never_overwrites(furnished: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with holdfast.open(furnished) as store:
        for existing in (target, furnished, tmp_path):
            with pytest.raises(Conflict, match=r"already exists|is a directory"):
                store.backup(existing)
        assert store.verify().ok
    assert target.read_text() == "precious"
    assert beside(furnished) == {"copy.db"}


def test_of_backups_to_one_place_at_once_exactly_one_is_made(furnished: Path, tmp_path: Path) -> None:
    with holdfast.open(furnished) as store, ThreadPoolExecutor(4) as pool:
        line = threading.Barrier(4)

        def backup(_: int) -> bool:
            line.wait()
            try:
                store.backup(tmp_path / "copy.db")
            except Conflict:
                return False
            return True

        assert sorted(pool.map(backup, range(4))) == [False, False, False, True]
    with holdfast.open(tmp_path / "copy.db") as copy:
        assert copy.verify().ok
    assert beside(furnished) == {"copy.db"}


@pytest.mark.parametrize("target", ["missing/copy.db", "agent.db/copy.db", "n" * 300])
def test_a_backup_that_cannot_be_written_names_its_place(target: str, furnished: Path, tmp_path: Path) -> None:
    with holdfast.open(furnished) as store:
        with pytest.raises(Unavailable, match="cannot write the backup") as refusal:
            store.backup(tmp_path / target)
        assert refusal.value.path == str(tmp_path / target)
        assert store.thread("trip").append(said(1)).number == ENTRIES + 1
    assert beside(furnished) == set()


@pytest.mark.slow
def test_a_backup_into_a_read_only_folder_is_unavailable(common: Path) -> None:
    (common / "own").mkdir(mode=0o777)
    (common / "own").chmod(0o777)
    (common / "closed").mkdir(mode=0o555)
    program = """
        store = holdfast.open(path)
        store.thread("trip").append({"n": 1})
        tell(lambda: store.backup(sys.argv[2]))
        print(store.verify().ok)
        store.close()
        """
    lines = child(AS_SOMEBODY + textwrap.dedent(program), common / "own" / "agent.db", common / "closed" / "copy.db")
    assert lines == ["Unavailable", "True"]
    assert list((common / "closed").iterdir()) == []


@pytest.mark.slow
def test_a_backup_without_room_leaves_nothing_and_the_store_works(furnished: Path, tmp_path: Path) -> None:
    lines = child(
        """
        import resource
        store = holdfast.open(path)
        limit = os.path.getsize(path) // 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        tell(lambda: store.backup(sys.argv[2]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        tell(lambda: store.backup(sys.argv[2]))
        store.close()
        """,
        furnished,
        tmp_path / "copy.db",
    )
    assert lines == ["Unavailable", "fine"]
    assert beside(furnished) == {"copy.db"}


def test_every_error_of_a_damaged_store_is_ours(furnished: Path) -> None:
    """Whatever is done with a store whose tables are gone, no error of the driver gets out."""
    with holdfast.open(furnished) as store:
        thread = store.thread("trip")
        sql(furnished, "DROP TABLE events")
        for work in (thread.log, thread.state, store.verify, lambda: thread.append(said(1))):
            with pytest.raises(HoldfastError):
                work()
