"""Many processes of one tenant on Postgres, beside an earlier version of Holdfast in the same run.

One turn is two entries, one of them under a key, and a state, in one commit. Eight processes with a thread each make
turns as fast as they can, version by version in alternating rounds, each in a new database of the same server, which
syncs. Then all eight write into one thread; then 10,000 turns a minute are offered at a steady pace, with the latency
from the planned moment; and interrupted runs are found and claimed. Processor time is of clients and server together;
it is the steadier figure where others work on the machine. ``HOLDFAST_BENCH_BEFORE`` names the revision to
compare with, or a folder with its source. Deliberately absent: what is lost or doubled, which ``processes`` counts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import percentile, spread, table
from holdfast.testing.postgres import Server

PROCESSES, TURNS, ROUNDS = 8, 1_000, 5  # a new connection is slow at first, so rounds are not short
PACE_PER_MINUTE, PACE_SECONDS = 10_000, 20
RUNS = (500, 5_000)
BEFORE = os.environ.get("HOLDFAST_BENCH_BEFORE", "417d0fc")


def run(folder: Path) -> dict[str, Any]:
    with ExitStack() as stack:
        versions = {"before": _source_of(BEFORE, folder), "now": Path(holdfast.__file__).parents[1]}
        server = stack.enter_context(Server())
        results: dict[str, Any] = {}
        for mode in ("own threads", "one thread"):
            results[mode] = _compare(server, versions, mode)
        results["paced"] = {name: _fleet(server, source, "paced") for name, source in versions.items()}
        table(
            f"{PACE_PER_MINUTE:,} turns a minute", [{"version": name, **row} for name, row in results["paced"].items()]
        )
        results["claims"] = [
            _claims(server, source, name, count) for name, source in versions.items() for count in RUNS
        ]
        table("Interrupted runs found and claimed", results["claims"])
        return results


def _source_of(revision: str, folder: Path) -> Path:
    """The source of an earlier version: a folder that holds it, or what git has under that name."""
    if Path(revision).is_dir():
        return Path(revision).resolve()
    archive = subprocess.run(["git", "archive", revision, "src"], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], check=True, input=archive)
    return (folder / "src").resolve()


def _compare(server: Server, versions: dict[str, Path], mode: str) -> dict[str, Any]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in versions}
    for number in range(ROUNDS):
        for name in versions if number % 2 else reversed(versions):
            found[name].append(_fleet(server, versions[name], mode))
    rows = [{"version": name, **_middle(some)} for name, some in found.items()]
    table(f"{PROCESSES} processes, {mode}, {ROUNDS} rounds of {PROCESSES * TURNS:,} turns", rows)
    pairs = list(zip(found["before"], found["now"], strict=True))
    faster = [now["turns/s"] / before["turns/s"] for before, now in pairs]
    less = [before["processor ms a turn"] / now["processor ms a turn"] for before, now in pairs]
    print(f"  now to before: {statistics.median(faster):.2f} times the turns ({spread(faster)})")
    print(f"  before to now: {statistics.median(less):.2f} times the processor time ({spread(less)})")
    return {"rounds": found, "turns": statistics.median(faster), "processor": statistics.median(less)}


def _middle(rounds: list[dict[str, float]]) -> dict[str, Any]:
    middle: dict[str, Any] = {what: statistics.median(one[what] for one in rounds) for what in rounds[0]}
    return {**middle, "middle half of turns/s": spread([one["turns/s"] for one in rounds])}


def _fleet(server: Server, source: Path, mode: str) -> dict[str, float]:
    """Let the processes of one version work on a new database, and say how fast they were."""
    url = server.create()
    turns = PACE_PER_MINUTE * PACE_SECONDS // 60 // PROCESSES if mode == "paced" else TURNS
    start, before = time.time() + 4.0, _spent_by_server(server)
    arguments = [url, mode, str(turns), str(start)]
    children = [_child(source, "benchmarks.fleet", *arguments, str(number)) for number in range(PROCESSES)]
    reports = [json.loads(child.communicate(timeout=600)[0]) for child in children]
    server.drop(url)
    spent = sum(report["spent"] for report in reports) + _spent_by_server(server) - before
    waits = [wait for report in reports for wait in report["waits"]]
    seconds = max(report["end"] for report in reports) - min(report["begin"] for report in reports)
    shares = {f"p{share} ms": percentile(waits, share / 100) * 1e3 for share in (50, 95, 99)}
    return {
        "turns/s": len(waits) / seconds, **shares, "worst ms": max(waits) * 1e3,
        "processor ms a turn": spent / len(waits) * 1e3,
    }  # fmt: skip


def _spent_by_server(server: Server) -> float:
    """Seconds of processor time of the server and of the backends that have ended."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _claims(server: Server, source: Path, name: str, count: int) -> dict[str, Any]:
    url = server.create()
    for what in ("make", "claim"):
        answer = _child(source, "benchmarks.resume_runs", what, url, str(count)).communicate(timeout=600)[0]
    server.drop(url)
    seconds = sum(json.loads(answer).values())
    return {"version": name, "runs": count, "seconds": seconds, "ms a run": seconds / count * 1e3}


def _child(source: Path, module: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _work(url: str, mode: str, turns: int, start: float, number: int) -> None:
    waits = []
    interval = 60 * PROCESSES / PACE_PER_MINUTE if mode == "paced" else 0.0
    with holdfast.open(url, embedder="none") as store:
        thread = store.thread("all" if mode == "one thread" else f"thread-{number}", user="ana")
        thread.state(dict)
        time.sleep(max(0.0, start + number * interval / PROCESSES - time.time()))
        begin, before = time.time(), time.process_time()
        for turn in range(turns):
            planned = max(begin + turn * interval, 0 if interval else time.time())
            time.sleep(max(0.0, planned - time.time()))
            _turn(thread, mode, f"{number}-{turn}")
            waits.append(time.time() - planned)
        end, spent = time.time(), time.process_time() - before
    print(json.dumps({"waits": waits, "begin": begin, "end": end, "spent": spent}))


def _turn(thread: holdfast.Thread, mode: str, key: str) -> None:
    question, answer = {"role": "user", "content": "x" * 200}, {"role": "assistant", "content": "y" * 200}
    if mode == "one thread":  # a state would be a conflict, and another test
        thread.append(question, answer, key=key)
        return
    with thread.turn(key=key) as now:
        now.append(question)
        now.append(answer)
        now.state({"turn": key})


if __name__ == "__main__":
    _work(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
