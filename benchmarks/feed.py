"""What the feed costs those who follow it: a recall beside other users' commits, and watchers who wait.

A recall is timed when nothing happened since the last one, and after other users committed: right after 10,000 such
commits, and then again and again with one stranger's commit before each. Watchers wait in one async process while
another process commits, for one of them each time and then for all at once; a wake-up counts from the moment before the
commit, so it holds the commit itself. Idle cost is processor time of the whole process.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import Row, percentile, table
from holdfast import aio
from holdfast.engine.contract import Delete, Put
from holdfast.testing.postgres import Server

STRANGERS = 10_000
ASKED = 60
WATCHERS = 1_000
WOKEN = 100
IDLE_S = 5.0


def run(folder: Path) -> Row:
    results: Row = {}
    for engine in ("sqlite", "postgres"):
        with _place(engine, folder) as url:
            results[f"{engine} recall"] = _recalls(url)
        with _place(engine, folder) as url:
            results[f"{engine} watchers"] = asyncio.run(_watchers(url))
    table("A recall in ms, after strangers' commits", [{"engine": e, **r} for e, r in results.items() if "recall" in e])
    table(f"{WATCHERS} async watchers", [{"engine": e, **r} for e, r in results.items() if "watchers" in e])
    return results


@contextmanager
def _place(engine: str, folder: Path) -> Iterator[str]:
    if engine == "sqlite":
        with tempfile.TemporaryDirectory(dir=folder) as made:
            yield str(Path(made) / "store.db")
        return
    with Server(fsync=True) as server:
        yield server.clone()


def _recalls(url: str) -> Row:
    with holdfast.open(url) as store, holdfast.open(url, embedder="none") as other:
        mine = store.memory(user="ana")
        mine.remember_all([f"note {n}: the trip to town number {n} was booked for spring" for n in range(300)])
        thread = store.thread("talk", user="ana")
        thread.append(*({"role": "user", "content": f"message {n} about town {n}"} for n in range(300)))
        quiet = [_asked(mine, n) for n in range(2 * ASKED)][ASKED:]
        for n in range(STRANGERS):
            _stranger(other, n)
        first = _asked(mine, 1)
        after = []
        for n in range(ASKED):
            _stranger(other, n)
            after.append(_asked(mine, n))
        middle, beside = statistics.median(quiet), statistics.median(after)
    return {
        "quiet": middle, f"first after {STRANGERS:,}": first, "one commit before each": beside,
        "ratio": beside / middle, "first ratio": first / middle,
    }  # fmt: skip


def _stranger(store: holdfast.Store, n: int) -> None:
    store.thread(f"t{n % 500}", user=f"user-{n % 100}").append({"role": "user", "content": "hello"})


def _asked(memory: Any, n: int) -> float:
    begin = time.perf_counter()
    memory.recall(f"when was the trip to town number {n}?")
    return (time.perf_counter() - begin) * 1_000


async def _watchers(url: str) -> Row:
    woken: dict[int, float] = {}
    async with aio.open(url, embedder="none") as store:
        await store.thread("first").append({"role": "user", "content": "x"})
        after = await store.feed_head()

        async def watch(n: int) -> None:
            async for _ in store.watch(user=f"user-{n}", after=after):
                woken[n] = time.time()

        tasks = [asyncio.create_task(watch(n)) for n in range(WATCHERS)]
        await asyncio.sleep(2.0)
        began, spent = time.monotonic(), time.process_time()
        await asyncio.sleep(IDLE_S)
        idle = (time.process_time() - spent) / (time.monotonic() - began)
        singly = await _committed(url, "singly", woken, WOKEN)
        together = await _committed(url, "together", woken, WATCHERS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "idle, % of a core": idle * 100,
        "one woken, p50 ms": percentile(singly, 0.5),
        "p95": percentile(singly, 0.95),
        "max": max(singly),
        "all by one commit, p95 ms": percentile(together, 0.95),
    }


async def _committed(url: str, way: str, woken: dict[int, float], wanted: int) -> list[float]:
    """Let another process commit, and say how long after each commit began its watcher was awake."""
    woken.clear()
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.feed", url, way, stdout=subprocess.PIPE
    )
    told, _ = await other.communicate()
    deadline = time.monotonic() + 10
    while len(woken) < wanted and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    began = {int(n): float(at) for n, at in (line.split() for line in told.decode().splitlines())}
    if way == "together":
        return [(at - began[0]) * 1_000 for at in woken.values()]
    return [(woken[n] - at) * 1_000 for n, at in began.items()]


def _commit(url: str, way: str) -> None:
    """In the other process."""
    with holdfast.open(url, embedder="none") as store:
        store.thread("warm", user="nobody").append({"role": "user", "content": "x"})
        if way == "together":
            store.core.write([Put("note", "n", b"")], store.core.clock.now())
            print(0, time.time())
            store.core.write([Delete("note", "n", erase=True)], store.core.clock.now())  # concerns everybody
            return
        for n in range(WOKEN):
            time.sleep(0.02 + (n * 7 % 10) / 1_000)  # at uneven moments, so that no pause is met in step
            print(n, time.time())
            store.thread(f"t{n}", user=f"user-{n}").append({"role": "user", "content": "x"})


if __name__ == "__main__":
    _commit(sys.argv[1], sys.argv[2])
