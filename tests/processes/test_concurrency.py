"""What many processes on one SQLite file may count on, shown with real processes through the public names."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast

PROCESSES = 4
TURNS = 100

PRELUDE = """
import sys
import holdfast
from holdfast.errors import Conflict
path, name = sys.argv[1], int(sys.argv[2])
def say(*words):
    print(*words, flush=True)
def together():
    say("ready")
    sys.stdin.readline()
"""


class Child:
    """A program in a process of its own. It is told to go on by a line, and tells by lines."""

    def __init__(self, program: str, path: Path, name: int = 0) -> None:
        code = PRELUDE + textwrap.dedent(program)
        command = [sys.executable, "-W", "error", "-c", code, str(path), str(name)]
        self._process = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout

    def line(self) -> str:
        """Wait for the next thing it says; nothing when it has ended."""
        return self._out.readline().rstrip("\n")

    def go(self) -> None:
        self._in.write("go\n")
        self._in.flush()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    def end(self, status: int = 0) -> list[str]:
        """Wait for its end, which must be as expected and without complaint, and return what else it said."""
        # Not communicate(): it reads past the lines that line() has already taken into its buffer.
        with self._process as process:
            assert process.stderr is not None
            said, complaints = self._out.read(), process.stderr.read()
        assert (process.returncode, complaints) == (status, "")
        return said.split("\n")[:-1]  # half a line was not said

    def let_go(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@contextmanager
def children(path: Path, *programs: str) -> Iterator[list[Child]]:
    """Start programs and bring all of them to where they say that they are ready."""
    running = [Child(program, path, name) for name, program in enumerate(programs)]
    try:
        for each in running:
            assert each.line() == "ready", each.end()
        yield running
    finally:
        for each in running:
            each.let_go()


def run_together(path: Path, program: str, count: int = PROCESSES) -> list[list[str]]:
    """Run the same program in many processes at once; none may fail. Return what each said."""
    with children(path, *[program] * count) as running:
        for each in running:
            each.go()
        return [each.end() for each in running]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.mark.slow
def test_turns_of_many_processes_are_neither_lost_nor_doubled(path: Path) -> None:
    """Every tenth turn is said twice, as by a caller that did not hear the answer."""
    told = run_together(
        path,
        f"""
        store = holdfast.open(path)
        thread = store.thread("trip")
        together()
        for number in range({TURNS}):
            for again in range(2 if number % 10 == 0 else 1):
                with thread.turn(key=f"{{name}}-{{number}}") as turn:
                    for part in (1, 2):
                        turn.append({{"by": name, "number": number, "part": part}})
                say(number, *(entry.number for entry in turn.entries))
        store.close()
        """,
    )
    with holdfast.open(path) as store:
        log = store.thread("trip").log()
        assert store.verify().ok
        assert len(list(store.watch(timeout_s=0))) == PROCESSES * TURNS  # one commit a turn, none for a repetition
    assert [entry.number for entry in log] == list(range(1, 2 * PROCESSES * TURNS + 1))
    spoken = [(entry.content["by"], entry.content["number"], entry.content["part"]) for entry in log]
    assert sorted(spoken) == [
        (name, number, part) for name in range(PROCESSES) for number in range(TURNS) for part in (1, 2)
    ]
    for first, second in zip(spoken[::2], spoken[1::2], strict=True):
        assert first[:2] == second[:2]  # nobody came between the parts of a turn
    for name, lines in enumerate(told):
        own = [turn for by, turn, _ in spoken if by == name]
        assert own == sorted(own)
        for line in lines:
            number, *places = map(int, line.split())
            assert [spoken[place - 1] for place in places] == [(name, number, 1), (name, number, 2)]


@pytest.mark.slow
def test_turns_on_threads_of_their_own_do_not_disturb_each_other(path: Path) -> None:
    run_together(
        path,
        """
        store = holdfast.open(path)
        thread = store.thread(f"trip-{name}")
        together()
        for number in range(50):
            with thread.turn(expect=number) as turn:
                turn.append({"number": number})
                turn.save({"done": number})
        store.close()
        """,
    )
    with holdfast.open(path) as store:
        for name in range(PROCESSES):
            thread = store.thread(f"trip-{name}")
            assert [entry.content["number"] for entry in thread.log()] == list(range(50))
            assert (thread.state().value, thread.state().revision) == ({"done": 49}, 50)
        assert store.verify().ok


@pytest.mark.slow
def test_a_counter_kept_by_compare_and_set_is_exact(path: Path) -> None:
    told = run_together(
        path,
        """
        store = holdfast.open(path)
        thread = store.thread("trip")
        together()
        done = 0
        while done < 50:
            loaded = thread.state(default={"count": 0})
            try:
                revision = thread.save({"count": loaded.value["count"] + 1}, expect=loaded.revision)
            except Conflict:
                continue
            assert revision == loaded.revision + 1
            done += 1
            say(revision)
        store.close()
        """,
    )
    with holdfast.open(path) as store:
        thread = store.thread("trip")
        assert thread.state().value == {"count": 50 * PROCESSES}
        values = [thread.state(revision=n).value["count"] for n in range(1, 50 * PROCESSES + 1)]
        assert values == list(range(1, 50 * PROCESSES + 1))
        assert store.verify().ok
    won = sorted(int(line) for lines in told for line in lines)
    assert won == list(range(1, 50 * PROCESSES + 1))  # no revision was promised to two


@pytest.mark.slow
def test_patches_of_different_paths_all_survive(path: Path) -> None:
    with holdfast.open(path) as store:
        store.thread("trip").save({"kept": True, "facts": {}})
    run_together(
        path,
        """
        store = holdfast.open(path)
        thread = store.thread("trip")
        together()
        for number in range(30):
            thread.patch(f"facts.from-{name}-{number}", number)
            thread.patch(f"last-{name}", number)
        store.close()
        """,
    )
    with holdfast.open(path) as store:
        loaded = store.thread("trip").state()
        facts = {f"from-{name}-{number}": number for name in range(PROCESSES) for number in range(30)}
        assert loaded.value == {"kept": True, "facts": facts} | {f"last-{name}": 29 for name in range(PROCESSES)}
        assert loaded.revision == 1 + 2 * 30 * PROCESSES
        assert store.verify().ok


WRITER = """
    store = holdfast.open(path)
    thread = store.thread("trip")
    together()
    number = thread.logbook.head() // 2
    while True:
        number += 1
        with thread.turn(key=f"turn-{number}") as turn:
            turn.append({"number": number, "part": 1}, {"number": number, "part": 2, "text": "x" * (number % 7 * 900)})
            turn.save({"turns": number}, expect="any")
        say(number)
"""


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_that_it_was_told_is_stored(path: Path) -> None:
    """Each round kills after another number of acknowledged turns and another while, wherever the writer is then."""
    chance = random.Random(7)
    for _ in range(12):
        with children(path, WRITER) as (writer,):
            with holdfast.open(path) as store:
                before = store.thread("trip").logbook.head() // 2
            writer.go()
            acknowledged = [int(writer.line()) for _ in range(chance.randrange(1, 30))]
            for _ in range(chance.randrange(20_000)):  # a while, but shorter than a sleep can be
                pass
            writer.kill()
            acknowledged += map(int, writer.end(-signal.SIGKILL))
        assert acknowledged == list(range(before + 1, before + len(acknowledged) + 1))
        with holdfast.open(path) as store:
            assert store.verify().ok
            thread = store.thread("trip")
            turns = thread.state().value["turns"]
            assert turns - acknowledged[-1] in (0, 1)  # it may have died before it could say so
            spoken = [(entry.number, entry.content["number"], entry.content["part"]) for entry in thread.log()]
            assert spoken == [(2 * n + p - 2, n, p) for n in range(1, turns + 1) for p in (1, 2)]
            assert thread.state().revision == turns


@pytest.mark.slow
def test_other_writers_go_on_when_one_is_killed(path: Path) -> None:
    """Whoever dies may hold the write lock; nobody has to wait for it, and nobody notices."""
    endless = """
        store = holdfast.open(path)
        together()
        number = 0
        while True:
            store.thread("doomed").append({"number": number})
            number += 1
            say(number)
        """
    steady = """
        store = holdfast.open(path)
        together()
        for number in range(150):
            store.thread("steady").append({"number": number})
        store.close()
        """
    with children(path, endless, endless, steady) as (first, second, other):
        for each in (first, second, other):
            each.go()
        for victim in (first, second):
            said = [int(victim.line()) for _ in range(10)][-1]
            assert said == 10
            victim.kill()
            victim.end(-signal.SIGKILL)
        other.end()
    with holdfast.open(path) as store:
        assert [entry.content["number"] for entry in store.thread("steady").log()] == list(range(150))
        assert store.verify().ok


@pytest.mark.slow
def test_a_reader_sees_whole_turns_only(path: Path) -> None:
    reader = """
        store = holdfast.open(path)
        thread = store.thread("trip")
        together()
        seen = 0
        while seen < 80:
            log = thread.log()
            assert [entry.number for entry in log] == list(range(1, len(log) + 1))
            assert len(log) % 2 == 0, len(log)
            assert len(log) >= seen, "entries that were there are gone"
            state = thread.state()
            assert not log or state.value["turns"] >= len(log) // 2  # read later, so never older
            count = 2 * state.value["turns"] if state else 0
            assert thread.logbook.head() >= count
            seen = len(log)
        store.close()
        """
    with children(path, WRITER, reader, reader) as (writer, *readers):
        for each in (*readers, writer):
            each.go()
        for each in readers:
            assert each.end() == []
        writer.kill()
        writer.end(-signal.SIGKILL)


@pytest.mark.slow
def test_a_follower_in_another_process_hears_of_every_commit_once(path: Path) -> None:
    follower = """
        store = holdfast.open(path)
        together()
        heard = []
        for commit in store.watch():
            heard.append(commit.position)
            if len(heard) == 60:
                break
        say(heard == list(range(1, 61)))
        store.close()
        """
    writer = """
        store = holdfast.open(path)
        together()
        for number in range(30):
            store.thread(f"trip-{name}").append({"number": number})
        store.close()
        """
    with children(path, follower, writer, writer) as (listening, *writers):
        for each in (listening, *writers):
            each.go()
        for each in writers:
            each.end()
        assert listening.end() == ["True"]


APPENDING = """
    store = holdfast.open(path)
    thread = store.thread("trip")
    count = thread.logbook.head()
    together()
    try:
        thread.append({"by": name}, expect=count)
        say("won")
    except Conflict:
        say("lost")
    store.close()
"""
REWINDING = """
    store = holdfast.open(path)
    thread = store.thread("trip")
    count = thread.logbook.head()
    together()
    try:
        before = thread.rewind(2)
        say("won" if before.entries == count else "late")
    except Conflict:
        say("lost")
    store.close()
"""


@pytest.mark.slow
def test_of_a_rewind_and_an_append_that_expects_the_old_end_exactly_one_wins(tmp_path: Path) -> None:
    """A rewind that looks only after the append takes that back too, and its checkpoint says so: one after the other.

    Never do both succeed from the same point, and never does an entry vanish that no checkpoint leads to.
    """
    for number in range(6):
        path = tmp_path / f"{number}.db"
        with holdfast.open(path) as store:
            store.thread("trip").append({"n": 1}, {"n": 2}, {"n": 3})
        with children(path, APPENDING, REWINDING) as (appending, rewinding):
            for each in (appending, rewinding):
                each.go()
            ends = (appending.end()[0], rewinding.end()[0])
        with holdfast.open(path) as store:
            thread = store.thread("trip")
            log = [entry.content for entry in thread.log()]
            kept = thread.checkpoints()
            assert store.verify().ok
        assert ends in {("won", "lost"), ("lost", "won"), ("won", "late")}
        if ends == ("won", "lost"):
            assert (log, kept) == ([{"n": 1}, {"n": 2}, {"n": 3}, {"by": 0}], [])
        else:
            assert log == [{"n": 1}, {"n": 2}]
            assert [checkpoint.entries for checkpoint in kept] == [4 if ends[1] == "late" else 3]


def test_of_appends_that_expect_the_same_end_exactly_one_wins(path: Path) -> None:
    with holdfast.open(path) as store:
        store.thread("trip").append({"n": 1})
    told = run_together(path, APPENDING, 3)
    assert sorted(lines[0] for lines in told) == ["lost", "lost", "won"]
    with holdfast.open(path) as store:
        log = [entry.content for entry in store.thread("trip").log()]
    assert log == [{"n": 1}, {"by": [lines[0] for lines in told].index("won")}]


def test_what_one_process_was_told_is_stored_another_reads_at_once(path: Path) -> None:
    """The reader has its connections open all the while, so it must not answer from what it knew before."""
    writer = """
        store = holdfast.open(path)
        thread = store.thread("trip")
        together()
        for number in range(1, 21):
            thread.append({"number": number})
            thread.save({"number": number})
            together()
        store.close()
        """
    with holdfast.open(path) as store, children(path, writer) as (child,):
        thread = store.thread("trip")
        assert thread.logbook.head() == 0
        for number in range(1, 21):
            child.go()
            assert child.line() == "ready"
            assert thread.log(last=1)[0].content == {"number": number}
            assert thread.state().value == {"number": number}
        child.go()
        child.end()


def test_an_erased_thread_does_not_come_back_from_a_late_writer(path: Path) -> None:
    writer = """
        from holdfast.errors import Erased
        store = holdfast.open(path)
        thread = store.thread("trip", user="ana")
        thread.append({"n": 1})
        together()
        try:
            thread.append({"n": 2})
        except Erased:
            say("erased")
        store.close()
        """
    with holdfast.open(path) as store, children(path, writer) as (late,):
        assert store.erase(user="ana") == 1
        late.go()
        assert late.end() == ["erased"]
        assert store.threads() == []
        assert store.verify().ok
