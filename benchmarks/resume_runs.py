"""Resuming after a crash: how long it takes to find and claim every interrupted run, and to carry them all on.

The interruptions are real. One process begins the runs, each in a thread of its own and each inside its first step,
whose intent is committed, and is killed. A second finds and claims them all and is killed as well, so that the third
has as many to carry on, with a handler whose two steps do nothing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import table
from holdfast.steps.resume import Resumer, find
from holdfast.steps.work import Work
from holdfast.testing.postgres import Server

COUNTS = (100, 1_000, 5_000)
MAKERS = 16  # threads that share the commits, or making them would take longest


def run(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = {}
    with Server() as server:
        places: dict[str, Callable[[int], str]] = {
            "SQLite": lambda count: str((folder / f"{count}.db").resolve()),
            "Postgres": lambda count: server.create(),
        }
        for engine, place in places.items():
            rows = [_measure(place(count), count) for count in COUNTS]
            table(f"Interrupted runs on {engine}", rows)
            results[engine.lower()] = rows
    return results


def _measure(url: str, count: int) -> dict[str, Any]:
    _child("make", url, count)
    claimed = _child("claim", url, count)
    resumed = _child("resume", url, count)
    both = claimed["find"] + claimed["claim"]
    return {
        "runs": count,
        "find s": claimed["find"],
        "claim s": claimed["claim"],
        "both s": both,
        "both, ms a run": both / count * 1e3,
        "resume s": resumed["resume"],
        "resume, ms a run": resumed["resume"] / count * 1e3,
    }


def _child(what: str, url: str, count: int) -> dict[str, float]:
    """Run one of the processes. It is killed when it has said what it measured, as it holds what it holds."""
    command = [sys.executable, "-m", "benchmarks.resume_runs", what, url, str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=600)
    if done.returncode != -signal.SIGKILL:
        raise RuntimeError(f"{what} ended with {done.returncode}")
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


# The children


class _Left(BaseException):
    """Leaves a step in the middle without telling its run, as the end of the process will."""


def _leave(number: int) -> None:
    raise _Left


def _nothing(number: int) -> int:
    return number


def _make(url: str, count: int) -> dict[str, float]:
    store = holdfast.open(url, lease_s=3_600)
    held = []

    def begin(number: int) -> None:
        run = store.thread(f"thread-{number}", user=f"user-{number % 10}").run("job", input={"number": number})
        held.append(run)
        try:
            run.step("first", _leave, number, effect="idempotent")
        except _Left:
            return
        raise AssertionError("the step came to its end")

    with ThreadPoolExecutor(MAKERS) as pool:
        list(pool.map(begin, range(count)))
    return {}


def _claim(url: str, count: int) -> dict[str, float]:
    store = holdfast.open(url, lease_s=3_600)
    runs = store.wiring.runs
    begin = time.perf_counter()
    free = find(runs)
    middle = time.perf_counter()
    held = [found for found in Resumer(runs, {"job": _handle}, store.thread).claimed() if isinstance(found, Work)]
    end = time.perf_counter()
    assert len(free) == len(held) == count, f"{len(free)} found, {len(held)} claimed"
    # What claims looks for them itself, so the first look is taken off and counted once.
    return {"find": middle - begin, "claim": end - middle - (middle - begin)}


def _handle(run: holdfast.Run) -> int:
    number: int = run.step("first", _nothing, run.input["number"], effect="idempotent")
    run.step("second", _nothing, number, effect="idempotent")
    return number


def _resume(url: str, count: int) -> dict[str, float]:
    store = holdfast.open(url)
    begin = time.perf_counter()
    report = store.resume({"job": _handle})
    seconds = time.perf_counter() - begin
    assert sorted(one.result for one in report if one.outcome == "done") == list(range(count))
    assert not find(store.wiring.runs)
    return {"resume": seconds}


def _main(what: str, url: str, count: int) -> None:
    measured = {"make": _make, "claim": _claim, "resume": _resume}[what](url, count)
    print(json.dumps(measured), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
