"""Remembering one thing at a time: durable when it returns, and found by the very next recall.

On a SQLite file, without an embedder and with WordLlama, by turns in small rounds beside a bare durable insert of the
same text. A scope holds 1,000 memories before the clock starts. Each memory carries a word that no other has, and the
recall after it must give it first. Then 8 processes remember in one scope at once, and every memory must be there and
be found.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw

import holdfast
from benchmarks.measure import percentile, spread, table
from benchmarks.texts import Texts

BEFORE, ROUNDS, TURN = 1_000, 25, 20
PROCESSES, EACH = 8, 200
USER = "ana"
Waits = dict[tuple[str, str], list[tuple[float, float]]]
"""Seconds by the clock and of the processor, by case and by what was done."""
CASES = {"no embedder": "none", "WordLlama": "wordllama"}


def run(folder: Path) -> dict[str, Any]:
    return {"one": _one_writer(folder), "processes": [_many_writers(folder, case) for case in CASES]}


# One writer


def _one_writer(folder: Path) -> list[dict[str, Any]]:
    stores = {case: holdfast.open(folder / f"one-{spec}.db", embedder=spec) for case, spec in CASES.items()}
    scopes = {case: store.memory(user=USER) for case, store in stores.items()}
    for memory in scopes.values():
        memory.remember_all(list(Texts(BEFORE)))
        memory.recall("a first question, so that the index is there")
    waits: Waits = {}
    bare, texts = _bare(folder), iter(Texts(10 * ROUNDS * TURN * len(CASES)))
    for number in range(ROUNDS):
        _turn_bare(bare, texts, waits)
        for case in CASES if number % 2 else reversed(CASES):
            _turn_remember(case, scopes[case], texts, waits)
            _turn_found(case, scopes[case], f"{case}-{number}", texts, waits)
    rows = [_row(case, what, found) for (case, what), found in sorted(waits.items())]
    table(f"One writer, {BEFORE:,} memories before: {ROUNDS} rounds of {TURN}", rows)
    for store in stores.values():
        assert store.verify().ok
        store.close()
    return rows


def _bare(folder: Path) -> apsw.Connection:
    connection = apsw.Connection(str(folder / "bare.db"))
    for setting in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("CREATE TABLE memories (num INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    return connection


def _turn_bare(connection: apsw.Connection, texts: Any, waits: Waits) -> None:
    for _ in range(TURN):
        text = next(texts)
        begin = _now()
        with connection:
            connection.execute("INSERT INTO memories (body) VALUES (?)", (text,))
        waits.setdefault(("bare apsw", "insert"), []).append(_since(begin, _now()))


def _turn_remember(case: str, memory: holdfast.Memories, texts: Any, waits: Waits) -> None:
    for _ in range(TURN):
        text = next(texts)
        begin = _now()
        memory.remember(text)
        waits.setdefault((case, "remember"), []).append(_since(begin, _now()))


def _turn_found(case: str, memory: holdfast.Memories, name: str, texts: Any, waits: Waits) -> None:
    """Remember, then ask for it at once. The first recall also takes in what was remembered since the last one."""
    memory.recall("take in what the round before has left")
    for at in range(TURN):
        word = f"zq{_letters(f'{name}-{at}')}"
        text = f"{next(texts)} {word}"
        begin = _now()
        kept = memory.remember(text)
        middle = _now()
        found = memory.recall(f"what about {word}", k=5)
        end = _now()
        assert [hit.memory.id for hit in found[:1] if hit.memory] == [kept.id], f"{word} was not found"
        waits.setdefault((case, "remember after a recall"), []).append(_since(begin, middle))
        waits.setdefault((case, "recall that finds it"), []).append(_since(middle, end))
        waits.setdefault((case, "both"), []).append(_since(begin, end))


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begin: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    return end[0] - begin[0], end[1] - begin[1]


def _letters(name: str) -> str:
    """A name as one word of letters."""
    return name.encode().hex().translate(str.maketrans("0123456789", "ghijklmnop"))


def _row(case: str, what: str, taken: list[tuple[float, float]]) -> dict[str, Any]:
    waits, spent = [wait for wait, _ in taken], [cpu for _, cpu in taken]
    by_round = [statistics.median(waits[at : at + TURN]) * 1e3 for at in range(0, len(waits), TURN)]
    return {
        "case": case,
        "what": what,
        "times": len(waits),
        "p50 ms": percentile(waits, 0.5) * 1e3,
        "p95 ms": percentile(waits, 0.95) * 1e3,
        "p99 ms": percentile(waits, 0.99) * 1e3,
        "medians of rounds": spread(by_round),
        "processor p50": percentile(spent, 0.5) * 1e3,
        "processor p95": percentile(spent, 0.95) * 1e3,
    }


# Many writers


def _many_writers(folder: Path, case: str) -> dict[str, Any]:
    path = folder / f"many-{CASES[case]}.db"
    holdfast.open(path, embedder=CASES[case]).close()
    start = str(time.time() + 3.0)
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.remember", str(path), CASES[case], str(number), start],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    reports = [json.loads(child.communicate(timeout=600)[0]) for child in children]
    row = {"case": case, **_judge(path, CASES[case], reports)}
    table(f"{PROCESSES} processes remember {EACH} times each in one scope; every tenth is looked for at once", [row])
    return row


def _judge(path: Path, spec: str, reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything that was acknowledged is listed and is found, in a process that has seen none of it."""
    waits = [wait for report in reports for wait in report["waits"]]
    words = [_word(number, at) for number in range(PROCESSES) for at in range(EACH)]
    with holdfast.open(path, embedder=spec) as store:
        memory = store.memory(user=USER)
        kept = [one.text.rsplit(" ", 1)[1] for one in memory.memories(limit=None)]
        missed = [word for word in words if not (found := memory.recall(word, k=1)) or word not in found[0].text]
        sound = store.verify().ok
    seconds = max(report["end"] for report in reports) - min(report["begin"] for report in reports)
    return {
        "remembered": len(kept),
        "lost": len(set(words) - set(kept)),
        "doubled": len(kept) - len(set(kept)),
        "not found at once": sum(report["missed"] for report in reports),
        "not found after": len(missed),
        "errors": sum(report["errors"] for report in reports),
        "verified": sound,
        "a second": len(waits) / seconds,
        "p50 ms": percentile(waits, 0.5) * 1e3,
        "p95 ms": percentile(waits, 0.95) * 1e3,
        "worst ms": max(waits) * 1e3,
    }


def _word(number: int, at: int) -> str:
    return f"zq{_letters(f'{number}-{at}')}"


def _child(path: str, spec: str, number: int, start: float) -> None:
    waits, missed, errors = [], 0, 0
    texts = iter(Texts(PROCESSES * EACH).chunk(0)[number * 100 :])
    with holdfast.open(path, embedder=spec) as store:
        memory = store.memory(user=USER)
        memory.recall("a first question")
        time.sleep(max(0.0, start - time.time()))
        first = time.perf_counter()
        for at in range(EACH):
            text = f"{next(texts)} {_word(number, at)}"
            begin = time.perf_counter()
            try:
                memory.remember(text)
            except holdfast.errors.HoldfastError:
                errors += 1
            waits.append(time.perf_counter() - begin)
            if at % 10 == 0:
                found = memory.recall(_word(number, at), k=1)
                missed += not found or found[0].text != text
        end = time.perf_counter()
    print(json.dumps({"waits": waits, "missed": missed, "errors": errors, "begin": first, "end": end}))


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
