"""Stores and ``os.fork``: what was acknowledged stays, on both sides, or the child is told that it must not write.

Every test forks in a process of its own, so that a failure does not end in a second pytest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.forks import SHAPES

import holdfast

pytestmark = pytest.mark.every_engine
_SOURCE = str(Path(holdfast.__file__).parents[1])
_ROOT = str(Path(__file__).parents[2])

PRELUDE = """
import asyncio, os, signal, sys, threading, time, traceback
import holdfast
from holdfast.errors import HoldfastError
from holdfast.testing import ManualClock
url = sys.argv[1]
signal.alarm(60)  # a guard against hanging for ever

def opened():
    return holdfast.open(url, embedder="none")

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # whole, and in no buffer that a child could inherit

def tell(what, call):
    try:
        call()
    except HoldfastError as error:
        say(what, type(error).__name__)
    else:
        say(what, "fine")

def append(store, key, thread="trip"):
    store.thread(thread).append(holdfast.note("said"), key=key)

def keys(store, thread="trip"):
    return sorted(entry.key for entry in store.thread(thread).log() if entry.key is not None)

def fork(work):
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.alarm(30)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)

def ended(*pids):
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0

def own(key):
    with opened() as store:
        append(store, key)
"""


def run(program: str, url: str | Path, prelude: str = PRELUDE) -> list[str]:
    """Run a program in a process of its own, which must end well and quietly, and return the lines that it said."""
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", prelude + program, str(url)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": _SOURCE}
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def place(engine_name: str, durable_engine: None, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store is, on each engine that more than one process can use."""
    return request.getfixturevalue("database")[0] if engine_name == "postgres" else str(tmp_path / "store.db")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def trials(shape: str, times: int, *more: str) -> list[dict[str, object]]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "benchmarks.forks", "--side", shape]
    done = subprocess.run(
        [*command, "--trials", str(times), *more], capture_output=True, text=True, timeout=300, check=True, cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": _SOURCE},
    )  # fmt: skip
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


# Workers that write, and what happens to their parent meanwhile


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_that_a_forked_worker_was_told_is_lost(shape: str) -> None:
    for outcome in trials(shape, 2):
        assert (outcome["lost"], outcome["refused"], outcome["stuck"], outcome["sound"]) == (0, [], 0, True), outcome


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_nor_on_postgres(shape: str, database: tuple[str, object]) -> None:
    (outcome,) = trials(shape, 1, "--url", database[0])
    assert (outcome["lost"], outcome["refused"], outcome["stuck"], outcome["sound"]) == (0, [], 0, True), outcome


# The parent's store in the child


def test_a_store_that_was_opened_before_the_fork_works_on_both_sides(place: str) -> None:
    lines = run(
        """
store = opened()
thread = store.thread("trip")
append(store, "1")
state = thread.state(dict)

def child():
    append(store, "2")
    thread.save({"by": "child"})
    say(keys(store), thread.state(dict).value, store.verify().ok)
    store.close()
    tell("closed", lambda: append(store, "3"))

ended(fork(child))
say(keys(store), thread.state(dict).value)
append(store, "4")
say(keys(store), store.verify().ok)
store.close()
""",
        place,
    )
    assert lines == [
        "['1', '2'] {'by': 'child'} True", "closed Misconfigured", "['1', '2'] {'by': 'child'}", "['1', '2', '4'] True",
    ]  # fmt: skip


def test_a_backup_an_export_and_an_erasure_by_a_child_are_those_of_any_process(path: Path) -> None:
    lines = run(
        """
store = opened()
append(store, "1")
append(store, "1", "gone")

def child():
    store.backup(url + ".copy")
    store.export(url + ".json")
    say(store.erase(thread="gone"))

ended(fork(child))
tell("late", lambda: append(store, "2", "gone"))
say([info.id for info in store.threads()], store.verify().ok)
store.close()
with holdfast.open(url + ".copy") as copy:
    say(sorted(info.id for info in copy.threads()))
""",
        path,
    )
    assert int(lines[0]) > 0
    assert lines[1:] == ["late Erased", "['trip'] True", "['gone', 'trip']"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(place: str, tmp_path: Path, method: str) -> None:
    """A pool of workers that was started while the store was open, however it starts them."""
    program = tmp_path / "main.py"
    program.write_text(
        """
import multiprocessing, sys
import holdfast

def write(url, number):
    with holdfast.open(url, embedder="none") as store:
        store.thread("trip").append(holdfast.note("said"), key=str(number))
    return number

if __name__ == "__main__":
    url, method = sys.argv[1:]
    store = holdfast.open(url, embedder="none")
    store.thread("trip").append(holdfast.note("said"), key="parent")
    with multiprocessing.get_context(method).Pool(3) as pool:
        numbers = pool.starmap(write, [(url, number) for number in range(6)])
        store.close()
        numbers += pool.starmap(write, [(url, number) for number in range(6, 12)])
    with holdfast.open(url, embedder="none") as store:
        print(sorted(numbers) == list(range(12)), len(store.thread("trip").log()))
"""
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(program), place, method],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": _SOURCE},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 13\n", "")


@pytest.mark.slow
def test_a_server_that_preloads_and_restarts_a_worker(place: str) -> None:
    """The parent opens and recalls once; four workers write and recall; one dies and is replaced."""
    lines = run(
        """
store = holdfast.open(url)
memory = store.memory(user="ana")
memory.remember("Ana likes aisle seats.")
assert memory.recall("Which seats does she like?", k=1)

def worker(number):
    for turn in range(5):
        append(store, f"{number}-{turn}", f"of {number}")
        memory.remember(f"Fact {number} of turn {turn} is about the town of Xanten{number}{turn}.")
        found = memory.recall(f"Xanten{number}{turn}", k=3)
        assert any(f"Xanten{number}{turn}" in hit.text for hit in found), (number, turn)
    assert any("aisle" in hit.text for hit in memory.recall("aisle seats", k=3))
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    store.close()

pids = [fork(lambda: worker(number)) for number in range(4)]
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, signal.SIGKILL, 0]
ended(fork(lambda: worker(4)))
say(sum(len(keys(store, f"of {number}")) for number in range(5)), len(memory.memories(limit=None)), store.verify().ok)
assert any("Xanten34" in hit.text for hit in memory.recall("Xanten34", k=3))
store.close()
""",
        place,
    )
    assert lines == ["25 26 True"]


def test_an_async_store_works_in_a_child_with_a_loop_of_its_own(place: str) -> None:
    lines = run(
        """
from holdfast import aio

async def begin():
    store = await aio.open(url, embedder="none")
    await store.thread("trip").append(holdfast.note("said"), key="parent")
    return store, store.for_tenant("acme")

async def go_on(key):
    await asyncio.gather(*(store.thread("trip").append(holdfast.note("said"), key=f"{key}-{n}") for n in range(20)))
    assert await tenant.thread("trip").log() == []
    say(len(await store.thread("trip").log()))
    await store.close()

store, tenant = asyncio.run(begin())
ended(fork(lambda: asyncio.run(go_on("child"))))
asyncio.run(go_on("parent"))
""",
        place,
    )
    assert lines == ["21", "41"]


def test_whoever_waits_for_commits_hears_of_those_of_the_other_side(place: str) -> None:
    lines = run(
        """
store = opened()
append(store, "1")
after, heard, ready = store.core.engine.head("default"), [], threading.Event()

def watch():
    ready.set()
    for commit in store.watch(after=after):
        heard.append(commit)
        return

watching = threading.Thread(target=watch)
watching.start()
ready.wait()
time.sleep(0.05)

def child():
    say(len(list(store.watch(after=0, timeout_s=0.05))))
    append(store, "2")
    say(len(list(store.watch(after=after, timeout_s=0.05))))
    store.close()

ended(fork(child))
watching.join()
say(len(heard))
store.close()
""",
        place,
    )
    assert lines == ["1", "1", "1"]


@pytest.mark.slow
def test_an_embedder_with_threads_of_its_own_works_in_a_child(path: Path) -> None:
    pytest.importorskip("onnxruntime")
    lines = run(
        """
from holdfast.providers.choose import choose
embedder = choose("minilm")
embedder.embed(["aisle seats"])

def tell_sum():
    say(f"{embedder.embed(['a seat at the window, ' * 50]).sum():.4f}")

ended(fork(tell_sum))
tell_sum()
""",
        path,
    )
    assert lines[0] == lines[1]


def test_a_store_in_memory_is_copied(path: Path) -> None:
    lines = run(
        """
store = holdfast.open("ram:", embedder="none")
over = threading.Event()
writing = threading.Thread(target=lambda: [append(store, f"t{n}") for n in range(3000) if not over.is_set()])
writing.start()
for number in range(10):
    def child():
        append(store, f"child {number}")
        assert store.verify().ok
        assert len([key for key in keys(store) if key.startswith("child")]) == 1
    ended(fork(child))
over.set()
writing.join()
say([key for key in keys(store) if key.startswith("child")], store.verify().ok)
""",
        path,
    )
    assert lines == ["[] True"]


# In the middle of something


def test_a_child_that_is_forked_while_a_commit_runs_writes_and_the_commit_is_whole(place: str) -> None:
    lines = run(
        """
store = opened()
numbers, over = [], threading.Event()

def write(name):
    while not over.is_set():
        with store.thread(name).turn() as turn:
            turn.append(holdfast.note("a"))
            turn.append(holdfast.note("b"))
        numbers.append(name)

threads = [threading.Thread(target=write, args=(f"thread {n}",)) for n in range(3)]
for thread in threads:
    thread.start()
pids = []
for number in range(8):
    pids.append(fork(lambda: own(f"own {number}") if number % 2 else append(store, f"inherited {number}")))
    time.sleep(0.01)
ended(*pids)
over.set()
for thread in threads:
    thread.join()
say(len(keys(store)), store.verify().ok)
say(sum(len(store.thread(f"thread {n}").log()) for n in range(3)) == 2 * len(numbers))
store.close()
""",
        place,
    )
    assert lines == ["8 True", "True"]


def test_a_fork_waits_for_a_reader_in_another_thread(path: Path) -> None:
    lines = run(
        """
store = opened()
append(store, "1")
reading, enough = threading.Event(), threading.Event()

def read():
    with store.core.engine.snapshot() as view:
        reading.set()
        enough.wait(0.3)
        store.thread("trip").log()  # a second connection, while the fork waits for the first
        view.get("default", "thread", "trip")

thread = threading.Thread(target=read)
thread.start()
reading.wait()
ended(fork(lambda: own("2")))
thread.join()
say(keys(store))
store.close()
""",
        path,
    )
    assert lines == ["['1', '2']"]


REFUSED = ["own Misconfigured", "inherited Misconfigured", "reading Misconfigured"]
REFUSING = """
import sqlite3  # not the SQLite of the store, and in processes of their own
from holdfast.engine import sqlite_process
sqlite_process.WAIT_S = 0.2

def child(then=lambda: None):
    tell("own", lambda: own("lost?"))
    tell("inherited", lambda: append(store, "lost?"))
    tell("reading", store.threads)
    then()
    store.close()

def left():
    '''A child that ends as Python ends, so that whatever it still has is finalised.'''
    pid = os.fork()
    if not pid:
        child()
        sys.exit(0)
    return pid
"""


def test_a_child_is_refused_when_another_thread_did_not_finish_in_time(path: Path) -> None:
    lines = run(
        """
import logging
logging.disable()
store = opened()
append(store, "1")
reading, over = threading.Event(), threading.Event()

def read():
    with store.core.engine.snapshot() as view:
        reading.set()
        over.wait()

thread = threading.Thread(target=read)
thread.start()
reading.wait()
append(store, "2")
ended(left())
append(store, "3")
over.set()
thread.join()
ended(fork(lambda: own("4")))
say(keys(store), store.verify().ok)
store.close()
with opened() as again:
    say(keys(again))
""",
        path,
        PRELUDE + REFUSING,
    )
    assert lines == [*REFUSED, "['1', '2', '3', '4'] True", "['1', '2', '3', '4']"]


def test_a_child_that_is_forked_inside_a_read_of_its_own_is_refused(path: Path) -> None:
    lines = run(
        """
store = opened()
append(store, "1")
with store.core.engine.snapshot() as view:
    pid = fork(lambda: child(lambda: tell("view", lambda: view.get("default", "thread", "trip"))))
    ended(pid)
    append(store, "2")
    say(view.get("default", "thread", "trip").head)
say(keys(store), store.verify().ok)
store.close()
""",
        path,
        PRELUDE + REFUSING,
    )
    assert lines == [*REFUSED, "view Misconfigured", "1", "['1', '2'] True"]


def test_on_postgres_such_a_child_works_but_for_that_read(database: tuple[str, object]) -> None:
    lines = run(
        """
store = opened()
append(store, "1")
with store.core.engine.snapshot() as view:
    def child():
        own("2")
        append(store, "3")
        tell("view", lambda: view.get("default", "thread", "trip"))
    pid = os.fork()
    if not pid:
        child()
        raise SystemExit(0)  # out of the block: what ends it must not reach the server
    ended(pid)
    say(view.get("default", "thread", "trip").head)
say(keys(store), store.verify().ok)
store.close()
""",
        database[0],
    )
    assert lines == ["view Misconfigured", "1", "['1', '2', '3'] True"]


def test_a_callback_that_forks(path: Path) -> None:
    """Inside an export the child is refused, and after a resumed run it is not; the parent goes on in both."""
    lines = run(
        """
store = opened()
append(store, "1")
pids = []

def progress(*_):
    if not pids:
        pids.append(fork(child))

store.export(url + ".json", progress=progress)
store.thread("trip").submit("job")
store.resume({"job": lambda run: 1}, on_run=lambda _: pids.append(fork(lambda: own("2"))))
ended(*pids)
say(len(pids), keys(store), store.verify().ok)
store.close()
with holdfast.open("ram:", embedder="none") as other:
    other.import_(url + ".json")
    say(keys(other))
""",
        path,
        PRELUDE + REFUSING,
    )
    assert lines[:3] == REFUSED
    assert lines[3:] == ["2 ['1', '2'] True", "['1']"]


def test_a_child_is_refused_when_other_code_had_the_file_open(path: Path) -> None:
    lines = run(
        """
import apsw
store = opened()
append(store, "1")
theirs = apsw.Connection(url)
theirs.execute("SELECT count(*) FROM events").fetchall()
ended(left())
theirs.close()
ended(fork(lambda: own("2")))
say(keys(store))
store.close()
""",
        path,
        PRELUDE + REFUSING,
    )
    assert lines == [*REFUSED, "['1', '2']"]


def test_a_child_is_refused_when_someone_used_the_store_while_the_fork_was_prepared(path: Path) -> None:
    """Hooks of others may run after ours. They must not wait for ever, and what they open is inherited."""
    lines = run(
        """
store = opened()
append(store, "1")
used = []
ended(left())
append(store, "2")
used.append(True)
ended(fork(lambda: own("3")))
say(keys(store))
store.close()
""",
        path,
        "import os\nos.register_at_fork(before=lambda: used or append(store, 'in the hook'))\n" + PRELUDE + REFUSING,
    )
    assert lines == [*REFUSED, "['1', '2', '3', 'in the hook']"]


def test_a_fork_that_python_was_not_told_of(place: str) -> None:
    """Other code may fork. On SQLite that child is refused; connections to a server are simply made anew."""
    lines = run(
        """
import ctypes
store = opened()
append(store, "1")
pid = ctypes.PyDLL(None).fork()
if not pid:
    try:
        tell("inherited", lambda: append(store, "2"))
        tell("own", lambda: own("3"))
        store.close()
    finally:
        os._exit(0)
ended(pid)
append(store, "4")
say(keys(store), store.verify().ok)
store.close()
""",
        place,
    )
    if place.startswith("postgres"):
        assert lines == ["inherited fine", "own fine", "['1', '2', '3', '4'] True"]
    else:
        assert lines == ["inherited Misconfigured", "own Misconfigured", "['1', '4'] True"]


def test_closing_in_another_thread_meanwhile(place: str) -> None:
    lines = run(
        """
for number in range(20):
    store = opened()
    append(store, f"parent {number}")
    closing = threading.Thread(target=store.close)
    closing.start()
    ended(fork(lambda: own(f"child {number}")))
    closing.join()
with opened() as store:
    say(len(keys(store)), store.verify().ok)
""",
        place,
    )
    assert lines == ["40 True"]


@pytest.mark.slow
def test_a_signal_that_forks_in_the_middle_of_commits(place: str) -> None:
    """The child falls out of the handler into whatever was under way. It is told; the parent does not notice."""
    lines = run(
        """
import logging, random
logging.disable()  # the driver tells of connections that were cut off
random.seed(7)
store = opened()
mother, acked, pids, (over, end) = os.getpid(), [], [], os.pipe()

def strike(*_):
    if os.getpid() == mother and len(pids) < 40:
        pid = os.fork()
        if pid:
            pids.append(pid)
        else:
            os.close(end)

signal.signal(signal.SIGALRM, strike)
try:
    for number in range(100_000):
        if len(pids) == 40 or os.getpid() != mother:
            break
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.003))
        append(store, f"{number}")
        if os.getpid() == mother:
            acked.append(f"{number}")
except HoldfastError as error:
    assert os.getpid() != mother, error
finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
if os.getpid() != mother:
    os.read(over, 1)
    tell("child", lambda: own(f"child {os.getpid()}"))
    os._exit(0)
os.close(end)
ended(*pids)
found = keys(store)
say(set(acked) <= set(found), store.verify().ok)
store.close()
""",
        place,
    )
    assert lines[-1] == "True True"
    assert len(lines) == 41, lines
    assert set(lines[:-1]) <= {"child fine", "child Misconfigured"}


# What the parent holds


def test_a_fork_inside_a_step_leaves_the_run_to_the_parent(place: str) -> None:
    lines = run(
        """
store = opened()
run = store.thread("trip").run("book")

def book():
    global pid
    pid = os.fork()
    return "booked"

mother = os.getpid()
try:
    result = run.step("book", book, effect="once", on_unknown="stop")
except HoldfastError as error:
    if os.getpid() != mother:
        say("child", type(error).__name__, "forked" in str(error))
        tell("child again", lambda: run.step("other", lambda: 1, effect="pure"))
        tell("child takes", lambda: store.thread("trip").run("book"))
        tell("child ends", lambda: run.finish())
        tell("child appends", lambda: append(store, "child"))
        store.close()
        os._exit(0)
    raise
assert os.getpid() == mother
ended(pid)
say("parent", result, run.step("next", lambda: 2, effect="pure"))
run.finish()
say([step.name for step in store.thread("trip").timeline("book").steps])
say(store.runs()[0].status, store.verify().ok)
store.close()
""",
        place,
    )
    assert lines[0] == "child Fenced True"
    assert lines[1:5] == ["child again Fenced", "child takes RunHeld", "child ends Fenced", "child appends fine"]
    assert lines[5] == "parent booked 2"
    assert lines[6] == "['book', 'next']"
    assert lines[7] == "done True"


def test_a_child_neither_renews_nor_lets_go_what_its_parent_holds(place: str) -> None:
    lines = run(
        """
store = holdfast.open(url, embedder="none", lease_s=2.0)
run = store.thread("trip").run("book")
hold = store.thread("trip").hold()
hold.take()
goes_on = threading.Event()

def child():
    say(store.wiring.runs.holder.pid == os.getpid(), store.wiring.runs.renewer.held())
    hold.release()
    run.release()
    store.close()
    with opened() as other:
        tell("hold", lambda: other.thread("trip").hold().take())
        tell("run", lambda: other.thread("trip").run("book"))

ended(fork(child))
say(len(store.wiring.runs.renewer.held()))
hold.release()
run.finish()
ended(fork(lambda: opened().thread("trip").hold().take()))
store.close()
""",
        place,
    )
    assert lines == ["True []", "hold ThreadHeld", "run RunHeld", "2"]


def test_a_turn_that_was_begun_before_the_fork_is_the_parents(place: str) -> None:
    lines = run(
        """
store = opened()
thread = store.thread("trip")
mother = os.getpid()
try:
    with thread.turn() as turn:
        turn.append(holdfast.note("said"), key="turn")
        pid = os.fork()
        if not pid:
            tell("append", lambda: turn.append(holdfast.note("more")))
except HoldfastError as error:
    say("commit", type(error).__name__, os.getpid() != mother)
    with thread.turn() as turn:
        turn.append(holdfast.note("said"), key="of the child")
    store.close()
    os._exit(0)
ended(pid)
say([entry.key for entry in turn.entries], keys(store))
store.close()
""",
        place,
    )
    assert lines == ["append Invalid", "commit Invalid True", "['turn'] ['of the child', 'turn']"]
