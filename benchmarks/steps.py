"""Durable steps a second: ours beside DBOS, each in a process of its own, by turns, on the same disk.

A step of ours is two commits: the intent before the function, and after it the completion with a log entry and a
state change. DBOS records a step once, after it ran. Its default on SQLite is a rollback journal; the second row of it
is the fair one: its file is put into WAL mode before DBOS opens it (the mode stays with the file), and
``synchronous=FULL`` is set on each of its connections. The function does nothing, so all that is measured is recording.
"""

from __future__ import annotations

import importlib.metadata
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

import holdfast
from benchmarks.measure import percentile, spread, table
from holdfast.testing.postgres import Server

STEPS, REPEATS = 200, 9
OURS = "holdfast: intent, completion, log, state"
ENGINES = {
    "SQLite": {
        "bare apsw, two inserts in two commits": "bare",
        OURS: "ours",
        "holdfast: intent, completion, log": "ours-without-state",
        "DBOS, as it comes": "dbos",
        "DBOS, WAL and FULL": "dbos-wal",
    },
    "Postgres": {
        OURS: "ours",
        "holdfast: intent, completion, log": "ours-without-state",
        "DBOS, as it comes": "dbos",
    },
}
Round = dict[str, Any]
Go = Callable[[int], Round]


def run(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = {"dbos": importlib.metadata.version("dbos")}
    with Server() as server:
        places = {
            "SQLite": lambda kind: str((folder / f"{kind}.db").resolve()),
            "Postgres": lambda kind: server.create(),
        }
        for engine, cases in ENGINES.items():
            urls = {kind: places[engine](kind) for kind in cases.values()}
            results[engine.lower()] = _compare(engine, cases, urls)
    return results


def _compare(engine: str, cases: dict[str, str], urls: dict[str, str]) -> dict[str, Any]:
    rounds = _by_turns({case: _start(kind, urls[kind]) for case, kind in cases.items()})
    rates = {case: [STEPS / one["seconds"] for one in found] for case, found in rounds.items()}
    ratios = {
        case: [mine / theirs for mine, theirs in zip(rates[OURS], rates[case], strict=True)]
        for case, kind in cases.items()
        if kind.startswith("dbos")
    }
    rows = []
    for case, found in rounds.items():
        waits = [wait for one in found for wait in one["waits"]]
        ratio = ratios.get(case)
        rows.append({
            "case": case,
            "steps/s": round(statistics.median(rates[case])),
            "middle half": "{:,.0f} … {:,.0f}".format(*statistics.quantiles(rates[case], n=4)[::2]),
            "p50 ms": percentile(waits, 0.5) * 1e3,
            "p99 ms": percentile(waits, 0.99) * 1e3,
            "ours to it": "" if ratio is None else f"{statistics.median(ratio):.2f} ({spread(ratio)})",
        })  # fmt: skip
    table(f"Durable steps on {engine}, {STEPS} steps a run, {REPEATS} runs each by turns", rows)
    return {
        "rows": rows,
        "ours_to": {
            case: {"median": statistics.median(ratio), "pairs": [round(one, 2) for one in ratio]}
            for case, ratio in ratios.items()
        },
    }


def _start(kind: str, url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.steps", kind, url]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _by_turns(children: dict[str, subprocess.Popen[str]]) -> dict[str, list[Round]]:
    """Let one child work at a time. The first round of each warms it up and does not count."""
    found: dict[str, list[Round]] = {case: [] for case in children}
    names = list(children)
    for number in range(REPEATS + 1):
        for case in names if number % 2 else reversed(names):
            outcome = _ask(children[case], number)
            if number:
                found[case].append(outcome)
    for child in children.values():
        child.communicate(timeout=60)
        if child.returncode:
            raise RuntimeError(f"{' '.join(map(str, child.args))} ended with {child.returncode}")
    return found


def _ask(child: subprocess.Popen[str], number: int) -> Round:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{number}\n")
    child.stdin.flush()
    answer = child.stdout.readline()
    if not answer:
        raise RuntimeError(f"{' '.join(map(str, child.args))} ended with {child.wait()}")
    outcome: Round = json.loads(answer)
    return outcome


# The children


def _serve(go: Go) -> None:
    """Carry out one run for each line that comes in, and say how long it and each of its steps took."""
    for line in sys.stdin:
        print(json.dumps(go(int(line))), flush=True)


def _ours(url: str, *, state: bool) -> None:
    def work(number: int) -> int:
        if state:
            holdfast.current_step().patch("last", number)
        return number

    with holdfast.open(url) as store:
        thread = store.thread("bench", user="ana")

        def go(number: int) -> Round:
            waits = []
            begin = time.perf_counter()
            with thread.run(f"run-{number}") as run:
                for step in range(STEPS):
                    before = time.perf_counter()
                    run.step(f"step-{step}", work, step, effect="once", on_unknown="stop")
                    waits.append(time.perf_counter() - before)
            return {"seconds": time.perf_counter() - begin, "waits": waits}

        _serve(go)
        _check(store, thread, state)


def _check(store: holdfast.Store, thread: holdfast.Thread, state: bool) -> None:
    """What was measured must have happened: every step in the log, each state change a revision, all digests right."""
    entries = thread.logbook.head()
    assert entries == (STEPS + 1) * (REPEATS + 1), f"{entries} log entries"
    if state:
        assert thread.state().revision == STEPS * (REPEATS + 1), f"{thread.state().revision} revisions"
    assert store.verify().ok


def _dbos(url: str, *, wal: bool) -> None:
    from dbos import DBOS  # noqa: PLC0415 - only the children that measure it load it

    if wal:
        _make_wal(url)
    address = url if url.startswith("postgres") else f"sqlite:///{url}"
    DBOS(
        config={"name": "bench", "system_database_url": address, "run_admin_server": False, "log_level": "ERROR"},
    )

    @DBOS.step()
    def work(number: int) -> int:
        return number

    waits: list[float] = []

    @DBOS.workflow()
    def flow() -> None:
        for step in range(STEPS):
            before = time.perf_counter()
            work(step)
            waits.append(time.perf_counter() - before)

    def go(number: int) -> Round:
        waits.clear()
        begin = time.perf_counter()
        flow()
        return {"seconds": time.perf_counter() - begin, "waits": waits}

    DBOS.launch()
    try:
        _serve(go)
    finally:
        DBOS.destroy()


def _make_wal(path: str) -> None:
    """Put a new file into WAL mode, and see to it that every connection to it syncs at each commit."""
    import sqlite3  # noqa: PLC0415 - never in a process of ours, which has another SQLite

    import sqlalchemy  # noqa: PLC0415

    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    connection.close()

    @sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
    def set_full(connection: sqlite3.Connection, _: Any) -> None:
        connection.execute("PRAGMA synchronous = FULL")
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def _bare(path: str) -> None:
    """What the disk and SQLite alone cost for two durable commits a step."""
    connection = apsw.Connection(path)
    for setting in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("CREATE TABLE steps (num INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    body = b"x" * 250

    def go(number: int) -> Round:
        waits = []
        begin = time.perf_counter()
        for _ in range(STEPS):
            before = time.perf_counter()
            for _ in range(2):
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO steps (body) VALUES (?)", (body,))
                connection.execute("COMMIT")
            waits.append(time.perf_counter() - before)
        return {"seconds": time.perf_counter() - begin, "waits": waits}

    _serve(go)
    connection.close()


def _child(kind: str, url: str) -> None:
    if kind == "bare":
        _bare(url)
    elif kind.startswith("dbos"):
        _dbos(url, wal=kind == "dbos-wal")
    else:
        _ours(url, state=kind == "ours")


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2])
