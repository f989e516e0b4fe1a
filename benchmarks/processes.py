"""Many processes on one store: nothing lost, nothing doubled, no lock error, and how long the unluckiest waited.

On SQLite and on Postgres: 8 processes with 1,000 turns each as fast as they can, then 10,000 turns a minute offered
at a steady pace, with the latency from the planned moment of each turn (a late start counts as waiting).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import percentile, table
from holdfast.testing.postgres import Server

PROCESSES, TURNS = 8, 1_000
PACE_PER_MINUTE, PACE_SECONDS = 10_000, 30


def run(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = {}
    rows = []
    with Server() as server:
        for name, url in (("sqlite", str(folder / "processes.db")), ("postgres", server.clone())):
            for mode in ("flat out", "paced"):
                outcome = _run_processes(url, mode)
                results[f"{name} {mode}"] = outcome
                rows.append({"engine": name, "load": mode, **outcome})
    table(f"{PROCESSES} processes, one store, one shared thread and one own thread each", rows)
    return results


def _run_processes(url: str, mode: str) -> dict[str, Any]:
    turns = TURNS if mode == "flat out" else PACE_PER_MINUTE * PACE_SECONDS // 60 // PROCESSES
    interval = 0.0 if mode == "flat out" else 60 * PROCESSES / PACE_PER_MINUTE
    holdfast.open(url).close()
    start = time.time() + 2.0
    children = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.processes",
                url,
                mode,
                str(number),
                str(turns),
                str(interval),
                str(start),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    reports = [json.loads(child.communicate(timeout=600)[0]) for child in children]
    return _judge(url, mode, turns, reports)


def _judge(url: str, mode: str, turns: int, reports: list[dict[str, Any]]) -> dict[str, Any]:
    waits = [wait for report in reports for wait in report["waits"]]
    keys: list[str | None] = []
    with holdfast.open(url) as store:
        for number in range(PROCESSES):
            keys += [entry.key for entry in store.thread(f"{mode}-{number}").log()]
        sound = store.verify().ok
    expected = {f"{number}-{turn}" for number in range(PROCESSES) for turn in range(turns)}
    seconds = max(report["end"] for report in reports) - min(report["begin"] for report in reports)
    return {
        "turns": len(waits),
        "lost": len(expected - set(keys)),
        "doubled": len(keys) - len(set(keys)),
        "errors": sum(report["errors"] for report in reports),
        "verified": sound,
        "turns/s": len(waits) / seconds,
        "p50 ms": percentile(waits, 0.5) * 1e3,
        "p99 ms": percentile(waits, 0.99) * 1e3,
        "worst ms": max(waits) * 1e3,
    }


def _child(url: str, mode: str, number: str, turns: int, interval: float, start: float) -> None:
    waits, errors = [], 0
    with holdfast.open(url) as store:
        thread = store.thread(f"{mode}-{number}", user=f"user-{number}")
        thread.state(dict)
        time.sleep(max(0.0, start - time.time()))
        begin = time.perf_counter()
        for turn in range(turns):
            planned = begin + (turn + int(number) / PROCESSES) * interval if interval else time.perf_counter()
            time.sleep(max(0.0, planned - time.perf_counter()))
            try:
                with thread.turn(key=f"{number}-{turn}") as now:
                    now.append({"role": "user", "content": f"turn {turn} " + "x" * 200})
                    now.state({"turn": turn})
            except holdfast.errors.HoldfastError:
                errors += 1
            waits.append(time.perf_counter() - planned)
        end = time.perf_counter()
    print(json.dumps({"waits": waits, "errors": errors, "begin": begin, "end": end}))


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6]))
