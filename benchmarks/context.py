"""Building contexts: how long it takes in short and long threads, warm and cold; and what counting and masking cost.

A thread on a SQLite file holds so many entries, and beside them there are memories, facts, instructions, a state and a
handoff. Contexts of 8,000 tokens are built for inputs of which no two are alike, for all sizes by turns, with recall
and without. Then the first context of a new process. ``python -m benchmarks.context --folder`` keeps what was built.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import holdfast
from benchmarks.measure import percentile, rounds, spread, table
from benchmarks.talks import Talk
from holdfast.context.masking import mask
from holdfast.providers.tokens import exact
from holdfast.providers.tokens.choose import counter_for
from holdfast.providers.tokens.estimate import Estimate
from holdfast.testing.fakes import ManualClock

SIZES = (1_000, 10_000, 100_000)
BUDGET = 8_000
PASSES, ASKED, TURN, WARM, COLD = 3, 200, 20, 20, 5
WAYS = {"with recall": True, "without": False}
USER, AGENT, THREAD = "ana", "travel", "trip-42"
FACTS, MEMORIES, PROCEDURES = 60, 500, 10
VERSIONS, EACH = (100, 1_000, 5_000), 3
LOTS, LOT = 60, 40
MINUTE = 60.0
TOKENISER = "o200k_base"


def run(folder: Path, sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    paths = {size: filled(folder / f"{size}.db", size) for size in sizes}
    return {
        "warm": _warm(paths),
        "cold": _cold(paths),
        "facts": _facts(folder),
        "counting": _counting(),
        "masking": _masking(),
    }


# A thread with a past


def filled(path: Path, size: int) -> Path:
    """A store with a thread of so many entries, and what else an agent has; an index is made of all of it."""
    if path.exists():
        return path
    unfinished = path.with_suffix(".part")
    clock = ManualClock(time.time_ns() // 1_000 - round(size * MINUTE * 1e6))
    talk = Talk()
    with holdfast.open(unfinished, clock=clock) as store:
        thread = store.thread(THREAD, user=USER, agent=AGENT)
        waiting: list[Any] = []
        for drafts in talk.entries(size):
            waiting += drafts
            if len(waiting) >= 500:
                _append(thread, clock, waiting)
        _append(thread, clock, waiting)
        memory = store.memory(user=USER, agent=AGENT)
        memory.remember_all(list(_memories(talk)))
        thread.save({f"field_{number}": talk.said(number, (3, 8)) for number in range(12)})
        thread.handoff.update(
            goal=talk.said(0, (8, 12)), todo=[talk.said(1, (4, 8)) for _ in range(5)], next_action=talk.said(1, (4, 8))
        )
        memory.rebuild()
        store.memory(agent=AGENT).rebuild()
    unfinished.rename(path)
    return path


def _append(thread: holdfast.Thread, clock: ManualClock, drafts: list[Any]) -> None:
    if drafts:
        clock.advance(len(drafts) * MINUTE)
        thread.append(*drafts)
        drafts.clear()


def _memories(talk: Talk) -> Iterator[dict[str, Any]]:
    for number in range(FACTS):
        yield {"text": talk.said(number, (3, 10)), "key": f"key_{number}"}
    for number in range(MEMORIES):
        yield {"text": talk.said(number % 100, (6, 20))}
    for number in range(PROCEDURES):
        yield {"text": talk.said(number, (8, 16)), "kind": "procedural", "trust": "stated"}


# Warm


def _warm(paths: dict[int, Path]) -> dict[str, Any]:
    stores = {size: holdfast.open(path) for size, path in paths.items()}
    inputs = Talk(1).asked(PASSES * ASKED + WARM)
    spent: dict[tuple[int, str], list[tuple[float, float]]] = {}
    tokens: dict[tuple[int, str], list[int]] = {}
    cases = [(size, way) for size in stores for way in WAYS]
    for size, way in cases:
        for input in inputs[-WARM:]:
            _built(stores[size], input, way)
    for at in range(0, PASSES * ASKED, TURN):
        for case in cases if at // TURN % 2 else reversed(cases):
            for input in inputs[at : at + TURN]:
                context, taken = _timed(stores[case[0]], input, case[1])
                spent.setdefault(case, []).append(taken)
                tokens.setdefault(case, []).append(context.tokens)
    for store in stores.values():
        store.close()
    rows = [_row(size, way, spent[size, way], tokens[size, way]) for size, way in cases]
    table(f"A context of {BUDGET:,} tokens: {PASSES} times {ASKED} inputs, {TURN} at a time by turns", rows)
    return {"rows": rows, "flat": _flat(spent, min(stores), max(stores))}


def _built(store: holdfast.Store, input: str, way: str) -> Any:
    return store.context(THREAD, input, budget=BUDGET, recall=WAYS[way])


def _timed(store: holdfast.Store, input: str, way: str) -> tuple[Any, tuple[float, float]]:
    """A context, and the seconds it took by the clock and of the processor."""
    begin, before = time.perf_counter(), time.process_time()
    context = _built(store, input, way)
    return context, (time.perf_counter() - begin, time.process_time() - before)


def _row(size: int, way: str, taken: list[tuple[float, float]], tokens: list[int]) -> dict[str, Any]:
    waits, spent = [wait * 1e3 for wait, _ in taken], [cpu * 1e3 for _, cpu in taken]
    ends = [percentile(waits[at : at + ASKED], 0.95) for at in range(0, len(waits), ASKED)]
    return {
        "entries": size,
        "recall": way,
        "contexts": len(waits),
        "p50 ms": percentile(waits, 0.5),
        "p95 ms": percentile(waits, 0.95),
        "p99 ms": percentile(waits, 0.99),
        "p95 of each pass": " ".join(f"{end:.3g}" for end in ends),
        "processor p50": percentile(spent, 0.5),
        "processor p95": percentile(spent, 0.95),
        "medians of turns": spread([statistics.median(spent[at : at + TURN]) for at in range(0, len(spent), TURN)]),
        "tokens": int(statistics.median(tokens)),
    }


def _flat(spent: dict[tuple[int, str], list[tuple[float, float]]], short: int, long: int) -> dict[str, Any]:
    """How much longer the processor works for the longest thread than for the shortest; a ratio of each round."""
    rows = []
    for way in WAYS:
        pairs = zip(_medians(spent[long, way]), _medians(spent[short, way]), strict=True)
        ratios = [one / other for one, other in pairs]
        rows.append({"recall": way, "ratio": statistics.median(ratios), "middle half": spread(ratios)})
    table(f"Processor time, {long:,} entries to {short:,}", rows)
    return {row["recall"]: row for row in rows}


def _medians(taken: list[tuple[float, float]]) -> list[float]:
    return [statistics.median(cpu for _, cpu in taken[at : at + TURN]) for at in range(0, len(taken), TURN)]


# Cold


def _cold(paths: dict[int, Path]) -> list[dict[str, Any]]:
    """Open and build once, each time in a new process; the files are in the cache of the operating system."""
    found: dict[tuple[int, str], list[dict[str, float]]] = {}
    for _ in range(COLD):
        for size, path in paths.items():
            for way in WAYS:
                command = [sys.executable, "-m", "benchmarks.context", "--first", str(path), "--way", way]
                begin = time.perf_counter()
                told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                whole = time.perf_counter() - begin
                found.setdefault((size, way), []).append({**told, "process": whole})
    rows = [
        {
            "entries": size,
            "recall": way,
            "open and build ms": statistics.median(one["first"] for one in taken) * 1e3,
            "lowest, highest": " ".join(f"{edge(one['first'] for one in taken) * 1e3:.3g}" for edge in (min, max)),
            "processor ms": statistics.median(one["spent"] for one in taken) * 1e3,
            "whole process ms": statistics.median(one["process"] for one in taken) * 1e3,
        }
        for (size, way), taken in found.items()
    ]
    table(f"The first context of a new process, {COLD} times", rows)
    return rows


def _first(path: Path, way: str) -> dict[str, float]:
    input = Talk(2).asked(1)[0]
    begin, before = time.perf_counter(), time.process_time()
    with holdfast.open(path) as store:
        _built(store, input, way)
        return {"first": time.perf_counter() - begin, "spent": time.process_time() - before}


# Facts


def _facts(folder: Path) -> list[dict[str, Any]]:
    """Contexts without recall, by how many values of facts were ever learned; the log is short."""
    inputs, rows = Talk(7).asked(PASSES * TURN + 1), []
    for versions in VERSIONS:
        talk = Talk(8)
        path = folder / f"facts-{versions}.db"
        path.unlink(missing_ok=True)
        with holdfast.open(path) as store:
            thread = store.thread(THREAD, user=USER, agent=AGENT)
            thread.append(*(draft for drafts in Talk(9).entries(40) for draft in drafts))
            values = ({"text": talk.said(at % 100, (3, 10)), "key": f"key_{at // EACH}"} for at in range(versions))
            store.memory(user=USER, agent=AGENT).remember_all(list(values))
            _built(store, inputs[-1], "without")
            taken = [_timed(store, input, "without")[1] for input in inputs[:-1]]
        rows.append({"versions": versions, "facts": -(-versions // EACH), **_times(taken)})
    table(f"A context without recall, by what was ever learned: {PASSES * TURN} inputs", rows)
    return rows


def _times(taken: list[tuple[float, float]]) -> dict[str, float]:
    waits, spent = [wait * 1e3 for wait, _ in taken], [cpu * 1e3 for _, cpu in taken]
    return {
        "p50 ms": percentile(waits, 0.5),
        "p95 ms": percentile(waits, 0.95),
        "processor p50": percentile(spent, 0.5),
        "processor p95": percentile(spent, 0.95),
    }


# Counting


def _counting() -> list[dict[str, Any]]:
    """Messages of a conversation: none of them counted before; then the same again, which a counter has kept."""
    spoken = _spoken(Talk(3))
    lots = [list(islice(spoken, LOT)) for _ in range(LOTS)]
    kinds: dict[str, Callable[[str], int]] = {"estimate": Estimate("any").count}
    if exact.installed():
        kinds[f"exact, {TOKENISER}"] = exact.Exact(TOKENISER).count
    kept = counter_for("estimate")
    for text in (text for lot in lots for text in lot):
        kept.count(text)
    kinds["kept from before"] = kept.count
    for count in kinds.values():
        count("a first text, which loads the vocabulary")
    work = {name: partial(_counted, count, iter(lots)) for name, count in kinds.items()}
    spent = rounds(work, times=1, repeats=LOTS)
    size = [sum(map(kinds["estimate"], lot)) / 1_000 for lot in lots]
    rows = []
    for name, seconds in spent.items():
        each = [one / thousands * 1e6 for one, thousands in zip(seconds, size, strict=True)]
        rows.append({"counter": name, "µs for 1,000 tokens": statistics.median(each), "middle half": spread(each)})
    table(f"Counting tokens, {LOTS} lots of {LOT} messages by turns; tokens are those of the estimate", rows)
    return rows


def _counted(count: Callable[[str], int], lots: Iterator[list[str]]) -> None:
    for text in next(lots):
        count(text)


def _spoken(talk: Talk) -> Iterator[str]:
    for turn in talk.turns():
        yield turn.asked
        yield turn.answered


# Masking


def _masking() -> list[dict[str, Any]]:
    """A coding session of 200 tool results, as the tests have it: its tokens before and after, and what got lost."""
    from tests.context.test_masking_session import MIX, is_told  # noqa: PLC0415 - where the makers of results are

    count = counter_for(TOKENISER if exact.installed() else None).count
    rows = []
    for seed in range(PASSES):
        random = Random(seed)
        session = [make for make, times in MIX.items() for _ in range(times)]
        random.shuffle(session)
        made = [make(random) for make in session]
        before, after, spent, lost = 0, 0, [], 0
        for number, (text, errors) in enumerate(made, 1):
            begin = time.process_time()
            told = mask(text, fetch=f"{THREAD}#{number}", count=count).text
            spent.append((time.process_time() - begin) * 1e3)
            before, after = before + count(text), after + count(told)
            lost += sum(not is_told(error, told) for error in errors)
        rows.append(
            {
                "session": seed,
                "results": len(made),
                "tokens": before,
                "masked": after,
                "times smaller": before / after,
                "error lines": sum(len(errors) for _, errors in made),
                "of these lost": lost,
                "processor p50 ms": percentile(spent, 0.5),
                "p95 ms": percentile(spent, 0.95),
                "ms for 1,000 tokens": sum(spent) / before * 1e3,
            }
        )
    table("Masking all results of a coding session", rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="how many entries, separated by commas")
    parser.add_argument("--folder", type=Path, help="keep what is built here, and use what is here already")
    parser.add_argument("--first", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--way", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = tuple(int(size) for size in given.sizes.split(","))
    if given.first is not None:
        print(json.dumps(_first(given.first, given.way)))
    elif given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        print(json.dumps(run(given.folder, sizes)))
    else:
        with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
            print(json.dumps(run(Path(folder), sizes)))


if __name__ == "__main__":
    main()
