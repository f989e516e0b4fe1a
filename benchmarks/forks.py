"""Forks: what a store acknowledged in a forked child is there in the end, whatever its parent did with the same file.

A trial is a tree of real processes. A parent opens a store, gets busy in the way the shape says, and forks workers.
Each opens a store of its own on the same file (or goes on with the parent's), appends, waits until something happened
to the parent or the file, and appends again. Every acknowledgement is noted, and looked for in the end. ``python -m
benchmarks.forks --before SRC`` runs an older source tree by turns beside this one; ``--trials`` says how many.
Deliberately absent: forks that cannot be made safe. The tests show that those are refused.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import holdfast
from benchmarks.measure import percentile, table
from holdfast.errors import HoldfastError

TRIALS, WORKERS, ENTRIES = 100, 3, 10
_FEW = 20  # of the older side, which may hang in each until nobody waits any more, and on Postgres
_AT_ONCE = 20  # trials of one side before it is the turn of the other
_PATIENCE_S = 3  # with a worker that hangs


class Acks:
    """Everything that was acknowledged in one trial, by whichever process, and how long a worker's first one took."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.thread = f"{path.parent.name}/{path.stem}"  # on a server all trials share a store
        path.touch()

    def note(self, *words: object) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, (" ".join(map(str, words)) + "\n").encode())
        os.close(handle)

    def all(self) -> list[list[str]]:
        return [line.split(" ", 2) for line in self._path.read_text().splitlines()]


# What the parent is in the middle of when it forks

Fork = Callable[[], None]
Doing = Callable[[holdfast.Store, Acks, Fork], None]


def _idle(store: holdfast.Store, acks: Acks, fork: Fork) -> None:
    fork()


def _beside(fork: Fork, *work: Callable[[], None]) -> None:
    """Fork while other threads are at work, at a moment nobody chose."""
    over = threading.Event()

    def repeat(once: Callable[[], None]) -> None:
        while not over.is_set():
            once()

    threads = [threading.Thread(target=repeat, args=(once,)) for once in work]
    for thread in threads:
        thread.start()
    time.sleep(0.01)
    fork()
    over.set()
    for thread in threads:
        thread.join()


def _committing(store: holdfast.Store, acks: Acks, fork: Fork) -> None:
    numbers = count()

    def append() -> None:
        key = f"parent-{next(numbers)}"
        store.thread(acks.thread).append(holdfast.note("said by a thread of the parent"), key=key)
        acks.note("ack", key)

    _beside(fork, append, append)


def _reading(store: holdfast.Store, acks: Acks, fork: Fork) -> None:
    def read() -> None:
        with store.core.engine.snapshot() as view:
            view.get("default", "thread", acks.thread)
            time.sleep(0.002)

    _beside(fork, read, lambda: store.thread(acks.thread).log() and None)


def _in_a_step(store: holdfast.Store, acks: Acks, fork: Fork) -> None:
    store.thread(acks.thread).run("forking").step("fork", fork, effect="idempotent")


def _in_a_turn(store: holdfast.Store, acks: Acks, fork: Fork) -> None:
    with store.thread(acks.thread).turn() as turn:
        turn.append(holdfast.note("said by the parent"), key="parent-turn")
        fork()
    acks.note("ack", "parent-turn")


# What happens between the two halves of what the workers write


def _closed(parent: Parent, url: str) -> None:
    parent.order(b"close\n")


def _killed(parent: Parent, url: str) -> None:
    """The parent dies, and somebody looks at the store."""
    os.kill(parent.pid, signal.SIGKILL)
    os.waitpid(parent.pid, 0)
    _look(url)


def _look(url: str) -> None:
    with holdfast.open(url, embedder="none") as store:
        store.threads()


def _looked_at(parent: Parent, url: str) -> None:
    """The parent closes, and somebody lists the threads from another process."""
    _closed(parent, url)
    _look(url)


Event = Callable[["Parent", str], None]
SHAPES: dict[str, tuple[Doing, Event, str]] = {
    "idle; closes": (_idle, _closed, "own"),
    "idle; killed": (_idle, _killed, "own"),
    "idle; closes, a command looks": (_idle, _looked_at, "own"),
    "committing in threads; closes": (_committing, _closed, "own"),
    "committing in threads; killed": (_committing, _killed, "own"),
    "reading in threads; closes": (_reading, _closed, "own"),
    "inside a step; closes": (_in_a_step, _closed, "own"),
    "inside a turn; killed": (_in_a_turn, _killed, "own"),
    "idle; grandchildren; closes": (_idle, _closed, "grandchild"),
    "idle; workers use the parent's store; closes": (_idle, _closed, "inherited"),
    "committing; workers use the parent's store; killed": (_committing, _killed, "inherited"),
}


# The processes of a trial


class Pipes(NamedTuple):
    """``up`` tells the trial what happened, ``go`` ends when the workers may go on, ``orders`` are for the parent."""

    up: tuple[int, int]
    go: tuple[int, int]
    orders: tuple[int, int]


class Parent:
    """The process that opens and forks, as the trial sees it."""

    def __init__(self, shape: str, url: str, acks: Acks) -> None:
        self._pipes = Pipes(os.pipe(), os.pipe(), os.pipe())
        self._heard = b""
        self.pid = os.fork()
        if not self.pid:
            os.close(self._pipes.go[1])
            os.close(self._pipes.orders[1])
            _ended(lambda: _be_parent(shape, url, acks, self._pipes))
        for end in (self._pipes.up[1], self._pipes.go[0], self._pipes.orders[0]):
            os.close(end)

    def hear(self, word: bytes, times: int) -> bool:
        """Wait until a word was said so often, by whichever process."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._heard.count(word) < times:
            ready, _, _ = select.select([self._pipes.up[0]], [], [], max(0.0, deadline - time.monotonic()))
            some = os.read(self._pipes.up[0], 4096) if ready else b""
            if not some:
                return False
            self._heard += some
        return True

    def order(self, word: bytes) -> None:
        with suppress(BrokenPipeError):  # it is gone already
            os.write(self._pipes.orders[1], word)
        self.hear(b"closed", 1)

    def end(self) -> None:
        """Let the workers finish, and the parent leave."""
        os.close(self._pipes.go[1])
        os.close(self._pipes.orders[1])
        self.hear(b"nothing says this", 1)  # until every process of the trial has ended
        os.close(self._pipes.up[0])
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _ended(work: Callable[[], None]) -> None:
    """Do the work of a forked process, and end it."""
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _be_parent(shape: str, url: str, acks: Acks, pipes: Pipes) -> None:
    doing, _, whose = SHAPES[shape]
    signal.alarm(3 * _PATIENCE_S)
    store = holdfast.open(url, embedder="none")
    store.thread(acks.thread).append(holdfast.note("the first thing"), key="first")
    workers = []

    def fork() -> None:
        for number in range(WORKERS):
            worker, pid = Worker(number, url, acks, pipes, time.monotonic()), os.fork()
            if not pid:
                os.close(pipes.orders[0])
                _ended(partial(_WORKERS[whose], worker, store))
            workers.append(pid)

    doing(store, acks, fork)
    if os.read(pipes.orders[0], 100):
        store.close()
        os.write(pipes.up[1], b"closed\n")
        os.read(pipes.orders[0], 100)
    for pid in workers:
        os.waitpid(pid, 0)


class Worker(NamedTuple):
    """A forked process that writes; ``begin`` is the moment before the fork."""

    number: int
    url: str
    acks: Acks
    pipes: Pipes
    begin: float

    def write(self, store: holdfast.Store | None) -> None:
        """Append, wait for what happens to the parent, append again; without a store, with one of its own."""
        signal.alarm(2 * _PATIENCE_S)
        try:
            store = store or holdfast.open(self.url, embedder="none")
            thread = store.thread(f"{self.acks.thread}/{self.number}")
            for position in range(2 * ENTRIES):
                if position == ENTRIES:
                    os.write(self.pipes.up[1], b"half\n")
                    os.read(self.pipes.go[0], 1)
                key = f"{self.number}-{position}"
                thread.append(holdfast.note(f"entry {position}"), key=key)
                self.acks.note("ack", key, time.monotonic() - self.begin)
            store.close()
        except HoldfastError as error:
            self.acks.note("refused", self.number, error)
            os.write(self.pipes.up[1], b"half\n")

    def fork_again(self, store: holdfast.Store) -> None:
        """Open a store too, and leave the writing to a child, with a store of its own."""
        with holdfast.open(self.url, embedder="none") as own:
            own.thread(self.acks.thread).append(holdfast.note("said in between"), key=f"between-{self.number}")
            self.acks.note("ack", f"between-{self.number}")
            pid = os.fork()
            if not pid:
                _ended(lambda: self._replace(begin=time.monotonic()).write(None))
            os.read(self.pipes.go[0], 1)
        os.waitpid(pid, 0)


_WORKERS: dict[str, Callable[[Worker, holdfast.Store], None]] = {
    "own": lambda worker, store: worker.write(None),
    "inherited": Worker.write,
    "grandchild": Worker.fork_again,
}


# Trials


def trial(shape: str, url: str, acks: Acks) -> dict[str, Any]:
    """Go through a shape once, and look for everything that was acknowledged."""
    parent = Parent(shape, url, acks)
    parent.hear(b"half", WORKERS)
    SHAPES[shape][1](parent, url)
    parent.end()
    noted = acks.all()
    acked = {key for word, key, *_ in noted if word == "ack"}
    with holdfast.open(url, embedder="none") as store:
        threads = [acks.thread, *(f"{acks.thread}/{number}" for number in range(WORKERS))]
        found = {entry.key for thread in threads for entry in store.thread(thread).log()}
        sound = store.verify().ok
    return {
        "acked": len(acked),
        "lost": len(acked - found),
        "refused": [rest[0] for word, _, *rest in noted if word == "refused"],
        "stuck": WORKERS - len({key for key in acked if key[0].isdigit() and key.endswith(f"-{2 * ENTRIES - 1}")}),
        "sound": sound,
        "first_s": [float(rest[0]) for _, key, *rest in noted if key.endswith("-0") and key[0].isdigit() and rest],
    }


def trials(shape: str, times: int, url: str | None = None) -> list[dict[str, Any]]:
    """Trials of one shape, each on a new file, or all on one server."""
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as made:
        folder = Path(made)
        return [trial(shape, url or str(folder / f"{n}.db"), Acks(folder / f"{n}.acks")) for n in range(times)]


def _side(shape: str, times: int, source: str | None, url: str | None) -> list[dict[str, Any]]:
    """Trials in a process of their own that has nothing open, with the source tree that is to be tried."""
    if not times:
        return []
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "benchmarks.forks", "--side", shape]
    command += ["--trials", str(times), *(["--url", url] if url else [])]
    source = source or str(Path(holdfast.__file__).parents[1])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": source}, stdout=subprocess.PIPE, check=True, text=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def compare(times: int, before: str | None, shapes: list[str]) -> dict[str, Any]:
    from holdfast.testing.postgres import Server  # noqa: PLC0415 - the tests use the rest without a server

    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    with Server() as server:
        sides = {"before": (before, None), "now": (None, None), "postgres": (None, server.clone())}
        for shape in shapes:
            for first in range(0, times, _AT_ONCE):
                for side, (source, url) in sides.items():
                    most = times if side == "now" else 0 if side == "before" and not before else _FEW
                    found[(shape, side)] += _side(shape, max(0, min(_AT_ONCE, most - first)), source, url)
    rows = [
        {"shape": shape, "side": side, **_summed(outcomes)} for (shape, side), outcomes in found.items() if outcomes
    ]
    table(f"{WORKERS} workers forked from a parent that has the store open, {2 * ENTRIES} entries each", rows)
    return {f"{row['shape']} ({row['side']})": row for row in rows}


def _summed(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    first = [1e3 * seconds for outcome in outcomes for seconds in outcome["first_s"]]
    return {
        "trials": len(outcomes),
        "that lost": sum(outcome["lost"] > 0 for outcome in outcomes),
        "acked": sum(outcome["acked"] for outcome in outcomes),
        "lost": sum(outcome["lost"] for outcome in outcomes),
        "refused": sum(len(outcome["refused"]) for outcome in outcomes),
        "unfinished": sum(outcome["stuck"] for outcome in outcomes),
        "sound": all(outcome["sound"] for outcome in outcomes),
        "first p50 ms": percentile(first, 0.5) if first else 0.0,
        "p95 ms": percentile(first, 0.95) if first else 0.0,
        "max ms": max(first, default=0.0),
    }


def run(folder: Path) -> dict[str, Any]:
    return compare(TRIALS, None, list(SHAPES))


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--before", help="the src folder of an older version, to run beside this one")
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(trials(given.side, given.trials, given.url)))
    else:
        print(json.dumps(compare(given.trials, given.before, given.shape or list(SHAPES))))


if __name__ == "__main__":
    _main()
