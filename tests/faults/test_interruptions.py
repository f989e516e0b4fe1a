"""A signal may raise an exception in a caller at any point: in the middle of leading a commit, or just after it.

Time limits and Ctrl-C do that. The store must not hang, must not lose what it acknowledged, and must not blame others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import holdfast

INTERRUPTED = """
import random, signal, sys, threading
import holdfast

class TimeLimit(Exception):
    pass

def strike(*_):
    raise TimeLimit

random.seed(int(sys.argv[2]))
store = holdfast.open(sys.argv[1])
acknowledged, foreign, stop = [], [], threading.Event()

def others(name):
    thread = store.thread(name)
    while not stop.is_set():
        try:
            acknowledged.append((name, thread.append({"n": 1}).number))
        except holdfast.errors.OutcomeUnknown:
            pass
        except BaseException as error:
            foreign.append(repr(error))

helpers = [threading.Thread(target=others, args=(f"other-{n}",)) for n in range(int(sys.argv[3]))]
for helper in helpers:
    helper.start()
signal.signal(signal.SIGALRM, strike)
thread = store.thread("main")
struck = 0
while struck < 60:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.002))
        for _ in range(200):
            acknowledged.append(("main", thread.append({"n": 1}).number))
    except TimeLimit:
        struck += 1
    finally:
        while True:  # a strike may come between two lines here as well
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except TimeLimit:
                struck += 1
stop.set()
for helper in helpers:
    helper.join()
thread.append({"n": "still working"})
for name in {name for name, _ in acknowledged}:
    numbers = {entry.number for entry in store.thread(name).log()}
    assert {number for who, number in acknowledged if who == name} <= numbers, "acknowledged and lost"
    assert numbers == set(range(1, len(numbers) + 1)), "a gap"
assert not foreign, foreign[:3]
assert store.verify().ok, store.verify().problems[:3]
store.close()
print("sound", struck)
"""


@pytest.mark.slow
@pytest.mark.parametrize("helpers", [0, 3])
@pytest.mark.parametrize("seed", range(1, 7))
def test_an_interruption_anywhere_loses_neither_the_lead_nor_an_entry(tmp_path: Path, seed: int, helpers: int) -> None:
    script = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(tmp_path / "store.db"), str(seed), str(helpers)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sound")


def test_a_process_may_change_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(there)
    with holdfast.open("agent.db") as store:
        store.thread("t").append({"place": "there"})
    monkeypatch.chdir(here)
    with holdfast.open("agent.db") as store:
        store.thread("t").append({"place": "here"})
        os.chdir(there)
        assert [entry.content["place"] for entry in store.thread("t").log()] == ["here"]


def test_a_log_left_of_an_old_store_is_not_replayed_into_a_restored_one(tmp_path: Path) -> None:
    path, backup = tmp_path / "agent.db", tmp_path / "agent.backup"
    with holdfast.open(path) as store:
        store.thread("t").append({"n": 1})
        store.backup(backup)
        store.thread("t").append({"n": 2})
        wal = Path(f"{path}-wal").read_bytes()
    path.unlink()
    Path(f"{path}-wal").write_bytes(wal)
    with pytest.raises(holdfast.errors.Conflict, match="is left over from a store"):
        holdfast.restore(backup, path)
    holdfast.restore(backup, path, replace=True)
    with holdfast.open(path) as store:
        assert store.thread("t").logbook.head() == 1
        assert store.verify().ok


def test_an_export_never_takes_the_place_of_a_store(tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    with holdfast.open(path) as store:
        store.thread("t").append({"n": 1})
        with pytest.raises(holdfast.errors.Conflict, match="looks like a database"):
            store.export(path)
        assert store.thread("t").logbook.head() == 1
