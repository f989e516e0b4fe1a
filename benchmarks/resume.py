"""Resuming: open a store, load the state with its freshness and the last 50 entries, on a short and a long thread."""

from __future__ import annotations

import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import percentile, table
from holdfast import AgentState, Task

SIZES = (500, 100_000)
REPEATS = 400


def run(folder: Path) -> dict[str, Any]:
    for size in SIZES:
        _fill(folder / f"resume-{size}.db", size)
    spent: dict[int, list[float]] = {size: [] for size in SIZES}
    for number in range(REPEATS):
        for size in SIZES if number % 2 else reversed(SIZES):
            spent[size].append(_resume(folder / f"resume-{size}.db"))
    rows = [
        {
            "entries": size,
            "p50 ms": statistics.median(spent[size]) * 1e3,
            "p99 ms": percentile(spent[size], 0.99) * 1e3,
        }
        for size in SIZES
    ]
    short, long = SIZES
    ratio = statistics.median(spent[long]) / statistics.median(spent[short])
    tail = percentile(spent[long], 0.99) / percentile(spent[short], 0.99)
    table("Resume: open the store, load state with freshness, read the last 50 entries", rows)
    print(f"  long / short: {ratio:.2f} at the median, {tail:.2f} at p99")
    return {
        "ratio_p50": ratio,
        "ratio_p99": tail,
        **{f"p50_ms_{row['entries']}": row["p50 ms"] for row in rows},
        **{f"p99_ms_{row['entries']}": row["p99 ms"] for row in rows},
    }


def _fill(path: Path, size: int) -> None:
    with holdfast.open(path) as store:
        thread = store.thread("trip", user="ana")
        state = AgentState(user_preferences={"seat": "aisle"}, active_task=Task("book a flight"))
        thread.save(state.with_fact("home_airport", "LIS", at=datetime(2026, 1, 1, tzinfo=UTC)))
        for begin in range(0, size, 500):
            batch = [
                {"role": "user", "content": f"message {number} " + "x" * 480} for number in range(begin, begin + 500)
            ]
            thread.append(*batch)


def _resume(path: Path) -> float:
    begin = time.perf_counter()
    with holdfast.open(path) as store:
        thread = store.thread("trip", user="ana")
        loaded = thread.state(AgentState)
        window = thread.log(last=50)
        spent = time.perf_counter() - begin
    assert loaded.must_verify
    assert len(window) == 50
    return spent
