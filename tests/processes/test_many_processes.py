"""One SQLite file in many real processes: every word about concurrency, with processes that also die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.engine.contract import Adopt, Append, Event, Mark, Put, Scope
from holdfast.engine.sqlite import SqliteEngine
from holdfast.testing import ManualClock, SeededIds
from holdfast.testing.export import export

WORKER = """
import sys, threading
from pathlib import Path
from holdfast.clock import SystemClock
from holdfast.engine.contract import Append, Event, Mark, Put, Query, Scope
from holdfast.engine.sqlite import SqliteEngine
from holdfast.errors import Conflict, Erased
from holdfast.ids import Ids
name = sys.argv[2]
engine = SqliteEngine(Path(sys.argv[1]), SystemClock(), Ids())
def event(text, key=None):
    return Event("say", text.encode(), 0, key)
def append(id, *events, **rest):
    return Append("thread", id, events, new=Put("thread", id, b"", scope=Scope(user="ana")), **rest)
def commit(*ops):
    return engine.commit("acme", ops, 1)
def say(*words):
    print(*words, flush=True)
say("ready")
sys.stdin.readline()
"""


class Worker:
    """A process that has the store open and waits for its turn."""

    def __init__(self, path: Path, name: str, program: str) -> None:
        source = str(Path(holdfast.__file__).parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WORKER + program, str(path), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": source},
        )  # fmt: skip

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def finish(self) -> list[str]:
        """Wait for its end, which must be a good one, and return what it said."""
        said, complaint = self._end()
        assert (self._process.returncode, complaint) == (0, "")
        return said

    def kill(self) -> list[str]:
        """End it at once, whatever it is doing, and return what it had said. Half a line was not said."""
        self._process.send_signal(signal.SIGKILL)
        return self._end()[0]

    def _end(self) -> tuple[list[str], str]:
        # Not communicate(): it reads past the lines that hear() has already taken into its buffer.
        with self._process as process:
            assert process.stdout is not None
            assert process.stderr is not None
            return process.stdout.read().split("\n")[:-1], process.stderr.read()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def engine(path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(path, ManualClock(), SeededIds())
    yield engine
    engine.close()


def ready(path: Path, count: int, program: str) -> list[Worker]:
    workers = [Worker(path, str(number), program) for number in range(count)]
    assert [worker.hear() for worker in workers] == ["ready"] * count
    return workers


def together(path: Path, count: int, program: str) -> list[list[str]]:
    """Run a program in many processes that begin at the same moment."""
    workers = ready(path, count, program)
    for worker in workers:
        worker.go()
    return [worker.finish() for worker in workers]


def bodies(engine: SqliteEngine, id: str = "t") -> list[str]:
    record = engine.get("acme", "thread", id)
    assert record is not None
    events = engine.read("acme", record.mark)
    assert [event.position for event in events] == list(range(1, len(events) + 1))
    return [event.body.decode() for event in events]


APPEND_100 = """
for number in range(100):
    say(commit(append("t", event(f"{name}-{number}"))).heads[0])
engine.close()
"""


@pytest.mark.slow
def test_appends_of_many_processes_are_all_kept_and_leave_no_gap(path: Path, engine: SqliteEngine) -> None:
    """Four processes times a hundred: nothing lost, nothing doubled, no error, and each finds its own at its place."""
    said = together(path, 4, APPEND_100)
    found = bodies(engine)
    assert sorted(found) == sorted(f"{name}-{number}" for name in range(4) for number in range(100))
    for name, positions in enumerate(said):
        assert [found[int(position) - 1] for position in positions] == [f"{name}-{number}" for number in range(100)]
    assert engine.check() == []


COUNT_TO_50 = """
conflicts = 0
done = 0
while done < 50:
    record = engine.get("acme", "note", "counter")
    version, value = (record.version, int(record.body)) if record else (0, 0)
    try:
        commit(Put("note", "counter", str(value + 1).encode(), expect=version))
        done += 1
    except Conflict:
        conflicts += 1
say(conflicts)
engine.close()
"""


@pytest.mark.slow
def test_a_counter_of_many_processes_is_exact(path: Path, engine: SqliteEngine) -> None:
    """Compare and set: whoever wrote on an old version got a conflict and tried again; no increment is lost."""
    together(path, 4, COUNT_TO_50)
    record = engine.get("acme", "note", "counter")
    assert record is not None
    assert (record.version, record.body) == (200, b"200")


RETRY = """
for number in range(20):
    receipt = commit(append("t", event(f"{number}", f"key-{number}")))
    say(receipt.events[0][0].position)
engine.close()
"""


def test_one_key_from_many_processes_is_stored_once(path: Path, engine: SqliteEngine) -> None:
    said = together(path, 3, RETRY)
    assert said[0] == said[1] == said[2]
    assert sorted(bodies(engine), key=int) == [f"{number}" for number in range(20)]


TAKE_TURNS = """
for number in range(25):
    sys.stdin.readline()
    record = engine.get("acme", "thread", "t")
    head = record.head if record else 0
    say(commit(append("t", event(f"{name}"), expect=head), Put("note", "n", b"", expect=head)).heads[0])
engine.close()
"""


def test_processes_that_take_turns_always_see_each_others_last_word(path: Path, engine: SqliteEngine) -> None:
    """What a process remembers of its own last commit does not hide what another wrote since."""
    workers = ready(path, 2, TAKE_TURNS)
    for worker in workers:
        worker.go()
    heads = []
    for _ in range(25):
        for worker in workers:
            worker.go()
            heads.append(int(worker.hear()))
    assert heads == list(range(1, 51))
    assert [worker.finish() for worker in workers] == [[], []]
    assert bodies(engine) == ["0", "1"] * 25


# Killed writers

APPEND_FOR_EVER = """
number = 0
while True:
    number += 1
    say(commit(append("t", event(f"{number}"), event(f"{number} again"))).heads[0])
"""
APPEND_FOR_EVER_IN_THREADS = """
def write(writer):
    number = 0
    while True:
        number += 1
        position = commit(append("t", event(f"{writer}-{number}"))).heads[0]
        sys.stdout.write(f"{position} {writer}-{number}\\n")
        sys.stdout.flush()
for writer in range(4):
    threading.Thread(target=write, args=(writer,)).start()
"""


@pytest.mark.parametrize("after", [1, 5, 20, 60, 150])
def test_what_a_killed_writer_acknowledged_is_there(path: Path, after: int) -> None:
    """Killed at any moment: all it acknowledged is there, at most one whole batch more, and no gap."""
    (worker,) = ready(path, 1, APPEND_FOR_EVER)
    worker.go()
    said = [worker.hear() for _ in range(after)]
    said += worker.kill()
    assert [int(head) for head in said] == list(range(2, 2 * len(said) + 1, 2))
    engine = SqliteEngine(path, ManualClock(), SeededIds())
    found = bodies(engine)
    assert len(found) in {2 * len(said), 2 * len(said) + 2}
    assert found == [text for number in range(1, len(found) // 2 + 1) for text in (f"{number}", f"{number} again")]
    assert engine.check() == []
    assert [item.position for item in engine.feed("acme", limit=1_000)] == list(range(1, len(found) // 2 + 1))
    engine.close()


@pytest.mark.parametrize("after", [10, 100])
def test_what_a_killed_group_of_threads_acknowledged_is_there(path: Path, after: int) -> None:
    (worker,) = ready(path, 1, APPEND_FOR_EVER_IN_THREADS)
    worker.go()
    said = [worker.hear() for _ in range(after)]
    said += worker.kill()
    engine = SqliteEngine(path, ManualClock(), SeededIds())
    found = bodies(engine)
    acknowledged = dict(line.split() for line in said)
    assert {position: found[int(position) - 1] for position in acknowledged} == acknowledged
    assert len(found) - len(acknowledged) <= 8  # four threads may have a batch under way and a line unsaid
    assert engine.check() == []
    engine.close()


@pytest.mark.slow
def test_others_go_on_while_writers_are_killed(path: Path, engine: SqliteEngine) -> None:
    """Three writers are killed one after the other in full work; a fourth is not held up and loses nothing."""
    survivor, *victims = ready(path, 4, APPEND_100)
    for worker in (survivor, *victims):
        worker.go()
    killed = [victim.kill() for victim in victims if victim.hear()]
    assert len(killed) == 3
    positions = survivor.finish()
    found = bodies(engine)
    assert [found[int(position) - 1] for position in positions] == [f"0-{number}" for number in range(100)]
    assert engine.check() == []


HOLD_THE_LOCK = """
engine._writer._connection.execute("BEGIN IMMEDIATE")
engine._writer._connection.execute("UPDATE records SET body = 'half' WHERE id = 'n'")
say("holding")
sys.stdin.readline()
"""


def test_a_writer_killed_inside_a_transaction_leaves_nothing_and_no_lock(path: Path, engine: SqliteEngine) -> None:
    engine.commit("acme", [Put("note", "n", b"whole")], 1)
    (worker,) = ready(path, 1, HOLD_THE_LOCK)
    worker.go()
    assert worker.hear() == "holding"
    worker.kill()
    engine.commit("acme", [Put("note", "m", b"")], 2)
    record = engine.get("acme", "note", "n")
    assert record is not None
    assert record.body == b"whole"


# Readers

WRITE_WHOLE_BATCHES = """
for number in range(60):
    commit(append("t", event("1"), event("2"), event("3")), append("u", event("x")), Put("note", "n", b""))
engine.close()
"""
LOOK_UNTIL_THE_END = """
apart = 0
while True:
    with engine.snapshot() as view:
        t, u, n = view.get("acme", "thread", "t"), view.get("acme", "thread", "u"), view.get("acme", "note", "n")
        if t is None:
            apart += (u is not None) + (n is not None)
            continue
        read = len(view.read("acme", Mark(t.stream, 10_000)))
        counts = {t.head, read, 3 * u.head, 3 * n.version, 3 * len(view.feed("acme", limit=1_000))}
    apart += len(counts) != 1
    apart += len(engine.read("acme", t.mark)) != t.head
    if t.head == 360:
        break
say(apart)
engine.close()
"""


def test_readers_in_other_processes_see_only_whole_batches(path: Path, engine: SqliteEngine) -> None:
    """In a snapshot all parts of a batch are there: three events, one of another thread, a note, a feed item."""
    readers = ready(path, 2, LOOK_UNTIL_THE_END)
    writers = ready(path, 2, WRITE_WHOLE_BATCHES)
    for worker in (*readers, *writers):
        worker.go()
    assert [writer.finish() for writer in writers] == [[], []]
    assert [reader.finish() for reader in readers] == [["0"], ["0"]]


FOLLOW_100 = """
seen = []
after = 0
while len(seen) < 100:
    for item in engine.feed("acme", after, 10, 60.0):
        after = item.position
        seen += [(item.position, change.id) for change in item.changes]
for position, id in seen:
    say(position, id)
engine.close()
"""
WRITE_50 = """
for number in range(50):
    commit(Put("note", f"{name}-{number}", b""))
engine.close()
"""


def test_a_follower_in_another_process_misses_nothing(path: Path, engine: SqliteEngine) -> None:
    """It wakes up for others' commits and gets every one, in order and without a gap."""
    (follower,) = ready(path, 1, FOLLOW_100)
    writers = ready(path, 2, WRITE_50)
    for worker in (follower, *writers):
        worker.go()
    assert [writer.finish() for writer in writers] == [[], []]
    lines = [line.split() for line in follower.finish()]
    assert [int(position) for position, _ in lines] == list(range(1, 101))
    assert sorted(id for _, id in lines) == sorted(f"{name}-{number}" for name in range(2) for number in range(50))


# Erasing

WRITE_UNTIL_ERASED = """
commit(append("t", event("first")))
say("writing")
try:
    while True:
        commit(append("t", event("x")))
except Erased:
    say("erased")
engine.close()
"""


def test_what_one_process_erases_no_other_brings_back(path: Path, engine: SqliteEngine) -> None:
    workers = ready(path, 2, WRITE_UNTIL_ERASED)
    workers[0].go()
    assert workers[0].hear() == "writing"
    workers[1].go()
    assert workers[1].hear() == "writing"
    record = engine.get("acme", "thread", "t")
    assert record is not None
    assert engine.erase("acme", Scope(user="ana"), time=1).records == 1
    assert [worker.finish() for worker in workers] == [["erased"], ["erased"]]
    assert engine.get("acme", "thread", "t") is None
    assert engine.read("acme", Mark(record.mark.stream, 10_000)) == []
    assert engine.check() == []


REMEMBER_THEN_READ = """
mark = engine.get("acme", "thread", "t").mark
say(len(engine.read("acme", mark)))
sys.stdin.readline()
say(len(engine.read("acme", mark)))
sys.stdin.readline()
say(len(engine.read("acme", mark)), commit(append("t", event("more"))).heads[0])
engine.close()
"""


def test_a_process_that_remembers_a_stream_notices_that_it_went_and_came_back(path: Path, engine: SqliteEngine) -> None:
    """Deleted and taken in again from an export elsewhere: the same stream number, other rows."""
    events = tuple(Event("say", text, 0) for text in (b"1", b"2"))
    engine.commit("acme", [Append("thread", "t", events, new=Put("thread", "t", b"", scope=Scope(user="ana")))], 1)
    record = engine.get("acme", "thread", "t")
    assert record is not None
    whole = _export(engine, "t")
    (worker,) = ready(path, 1, REMEMBER_THEN_READ)
    worker.go()
    assert worker.hear() == "2"
    engine.erase("acme", Scope(user="ana"), time=2, bury=False)
    worker.go()
    assert worker.hear() == "0"
    engine.commit("acme", [whole], 3)
    worker.go()
    assert worker.finish() == ["2 3"]
    assert bodies(engine) == ["1", "2", "more"]


def _export(engine: SqliteEngine, id: str) -> Adopt:
    record = engine.get("acme", "thread", id)
    assert record is not None
    return export(engine, "acme", record)
