"""One scope in many real processes: each finds at once what it remembered, all find everything, also when one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.embedders import HashEmbedder

pytestmark = pytest.mark.slow

WORKER = """
import sys
import holdfast
from holdfast.retrieval import index
from holdfast.testing.embedders import HashEmbedder
index.SAVE_AT = 16
name, count = sys.argv[2], int(sys.argv[3])
store = holdfast.open(sys.argv[1], embedder=HashEmbedder(16))
memory = store.memory(user="ana")
def say(*words):
    print(*words, flush=True)
def own(number):
    return f"animal{name}x{number} of {name}"
say("ready")
sys.stdin.readline()
"""
REMEMBER = """
for number in range(count):
    if number % 3 == 2:
        store.thread(f"t{name}", user="ana").append({"role": "user", "content": own(number)})
    else:
        memory.remember(own(number))
    found = [hit.text for hit in memory.recall(f"animal{name}x{number}", 3)]
    assert found[0] == own(number), (number, found)
    say("did", number)
sys.stdin.readline()
seen = {hit.text for hit in memory.recall("animal", 1000)}
say("seen", len(seen))
store.close()
"""
SAVE = """
from holdfast.retrieval.index_store import IndexStore
real = IndexStore.commit
def noisy(self, manifest, ops):
    say("saving")
    real(self, manifest, ops)
    say("saved")
IndexStore.commit = noisy
for number in range(count):
    memory.remember_all([f"{own(number)} {part}" for part in range(4)])
    memory.recall("animal")
    say("did", number)
"""
MOVE = """
from holdfast.providers.automatic import Automatic
from holdfast.providers.embedding import checked
from holdfast.retrieval.index_store import IndexStore
index.SLOW_S = 1e-9  # one portion for each recall
made = 0
class Slow(HashEmbedder):
    def embed(self, texts):
        global made
        made += len(texts) if len(texts) > 1 else 0
        return super().embed(texts)
real = IndexStore.commit
def noisy(self, manifest, ops):
    say("saving")
    real(self, manifest, ops)
    say("saved")
IndexStore.commit = noisy
moving = holdfast.open(sys.argv[1], embedder=Automatic([checked(Slow(32, name="slow")), checked(HashEmbedder(16))]))
for number in range(count):
    report = moving.memory(user="ana").recall(f"animal{number}", 3).report
    if not report.pending:
        break
say(report.model, report.pending, made)
moving.close()
store.close()
"""


class Worker:
    """A process that has the store open and waits for its turn."""

    def __init__(self, path: Path, name: str, program: str, count: int) -> None:
        source = str(Path(holdfast.__file__).parents[1])
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WORKER + program, str(path), name, str(count)],
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
        """Wait for its end, which must be a good one, and return what it had left to say."""
        said, complaint = self._end()
        assert (self._process.returncode, complaint) == (0, "")
        return said

    def kill(self) -> list[str]:
        """End it at once, whatever it is doing, and return what it had left to say."""
        self._process.send_signal(signal.SIGKILL)
        return self._end()[0]

    def _end(self) -> tuple[list[str], str]:
        with self._process as process:
            assert process.stdout is not None
            assert process.stderr is not None
            return process.stdout.read().split("\n")[:-1], process.stderr.read()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def ready(path: Path, count: int, program: str, times: int) -> list[Worker]:
    workers = [Worker(path, str(number), program, times) for number in range(count)]
    assert [worker.hear() for worker in workers] == ["ready"] * count
    return workers


def everything(store: holdfast.Store) -> set[str]:
    return {hit.text for hit in store.memory(user="ana").recall("animal", 1_000)}


def test_every_process_finds_its_own_at_once_and_all_in_the_end(path: Path) -> None:
    workers = ready(path, 4, REMEMBER, 30)
    for worker in workers:
        worker.go()
    for worker in workers:
        said = [worker.hear() for _ in range(30)]
        assert said == [f"did {number}" for number in range(30)], worker.finish()
    for worker in workers:
        worker.go()
    assert [worker.finish() for worker in workers] == [["seen 120"]] * 4
    with holdfast.open(path, embedder=HashEmbedder(16)) as store:
        expected = {f"animal{name}x{number} of {name}" for name in range(4) for number in range(30)}
        assert everything(store) == expected
        assert store.verify().problems == ()
        for name in range(4):
            for number in (0, 2, 29):
                found = store.memory(user="ana").recall(f"animal{name}x{number}", 1)
                assert found[0].text == f"animal{name}x{number} of {name}"


@pytest.mark.parametrize("moment", ["saving", "saved"])
@pytest.mark.parametrize("which", [1, 3, 9])
def test_a_process_that_dies_while_it_saves_its_index_costs_nothing(path: Path, moment: str, which: int) -> None:
    (worker,) = ready(path, 1, SAVE, 200)
    worker.go()
    heard: list[str] = []
    while heard.count(moment) < which:
        heard.append(worker.hear())
        assert heard[-1], worker.finish()
    heard += worker.kill()
    done = sum(line.startswith("did") for line in heard)
    with holdfast.open(path, embedder=HashEmbedder(16)) as store:
        assert store.verify().problems == ()
        found = everything(store)
        told = {memory.text for memory in store.memory(user="ana").memories(limit=None)}
        assert found == told
        assert {f"animal0x{number} of 0 {part}" for number in range(done) for part in range(4)} <= found
        assert store.verify().problems == ()


def test_processes_that_die_in_the_middle_of_others_cost_those_nothing(path: Path) -> None:
    doomed = [Worker(path, f"d{number}", SAVE, 500) for number in range(2)]
    lasting = [Worker(path, f"l{number}", REMEMBER, 20) for number in range(2)]
    for worker in (*doomed, *lasting):
        assert worker.hear() == "ready"
        worker.go()
    for worker in doomed:
        while worker.hear() != "saving":
            pass
        worker.kill()
    for worker in lasting:
        said = [worker.hear() for _ in range(20)]
        assert said == [f"did {number}" for number in range(20)], worker.finish()
        worker.go()
        worker.finish()
    with holdfast.open(path, embedder=HashEmbedder(16)) as store:
        assert store.verify().problems == ()
        told = {memory.text for memory in store.memory(user="ana").memories(limit=None)}
        assert told <= everything(store)


SLOW = HashEmbedder(32, name="slow")
MOVED = [f"animal{number} lives in country{number % 7}" for number in range(200)]


@pytest.fixture
def told(path: Path) -> Path:
    """A store whose index was made by a quick model alone."""
    with holdfast.open(path, embedder=HashEmbedder(16)) as store:
        store.memory(user="ana").remember_all(MOVED)
        everything(store)
    return path


def ranked(path: Path, embedder: object) -> tuple[str | None, list[tuple[str, float]]]:
    with holdfast.open(path, embedder=embedder) as store:  # type: ignore[arg-type]
        assert store.verify().problems == ()
        found = store.memory(user="ana").recall("animal7 country2", 20)
        return found.report.model, [(hit.text, round(hit.score, 4)) for hit in found]


def by_slow(tmp_path: Path) -> list[tuple[str, float]]:
    with holdfast.open(tmp_path / "alone.db", embedder=SLOW) as store:
        store.memory(user="ana").remember_all(MOVED)
    return ranked(tmp_path / "alone.db", SLOW)[1]


@pytest.mark.parametrize("moment", ["saving", "saved"])
@pytest.mark.parametrize("which", [1, 4, 8])
def test_a_move_that_is_killed_goes_on_where_it_was(told: Path, tmp_path: Path, moment: str, which: int) -> None:
    before = ranked(told, HashEmbedder(16))
    (worker,) = ready(told, 1, MOVE, 100)
    worker.go()
    heard: list[str] = []
    while heard.count(moment) < which:
        heard.append(worker.hear())
        assert heard[-1], worker.finish()
    heard += worker.kill()
    assert ranked(told, HashEmbedder(16)) == before
    (worker,) = ready(told, 1, MOVE, 100)
    worker.go()
    model, pending, made = worker.finish()[-1].split()
    assert (model, pending) == ("slow", "0")
    assert int(made) <= len(MOVED) - 16 * max(0, heard.count("saved") - 1)
    assert ranked(told, SLOW) == ("slow", by_slow(tmp_path))


def test_two_processes_that_move_at_once_both_get_there(told: Path, tmp_path: Path) -> None:
    workers = ready(told, 2, MOVE, 200)
    for worker in workers:
        worker.go()
    assert [worker.finish()[-1].split()[:2] for worker in workers] == [["slow", "0"]] * 2
    assert ranked(told, SLOW) == ("slow", by_slow(tmp_path))
