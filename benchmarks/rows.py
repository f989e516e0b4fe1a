"""Memories as rows: one fact, the newest, a page and the nearest vectors, among few and among many.

Each look is timed among 100 and among 50,000 memories of one user on a SQLite file, by turns in small rounds, beside a
bare table with an index that is asked for the same row. Constant time means a ratio near 1.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import apsw

import holdfast
from benchmarks.measure import rounds, spread, table

FEW, MANY, EACH, WIDTH = 100, 50_000, 500, 64
REPEATS, TIMES = 15, 20


def run(folder: Path) -> list[dict[str, Any]]:
    looks: dict[str, Callable[[], None]] = {}
    stores = []
    for size in (FEW, MANY):
        store = holdfast.open(folder / f"{size}.db", embedder="none")
        stores.append(store)
        looks.update({f"{what}@{size}": look for what, look in _looks(store, size).items()})
        looks[f"bare row@{size}"] = _bare(folder / f"bare-{size}.db", size)
    spent = rounds(looks, times=TIMES, repeats=REPEATS)
    rows = []
    for what in dict.fromkeys(name.partition("@")[0] for name in looks):
        few, many = (spent[f"{what}@{size}"] for size in (FEW, MANY))
        ratio = statistics.median(many) / statistics.median(few)
        ms = [value * 1_000 for value in many]
        rows.append(
            {"look": what, "ms among 50,000": statistics.median(ms), "middle half": spread(ms), "to 100": ratio}
        )
    table(f"One look among {FEW:,} and {MANY:,} memories, {REPEATS} rounds of {TIMES}", rows)
    for store in stores:
        store.close()
    return rows


def _looks(store: holdfast.Store, size: int) -> dict[str, Callable[[], None]]:
    memory, chance = store.memory("ana"), Random(7)
    for start in range(0, size, EACH):
        memory.remember_all(
            {"text": f"value {number} of something", "key": f"key-{number}", "metadata": {"part": number % 10},
             "vector": [chance.gauss(0, 1) for _ in range(WIDTH)]}
            for number in range(start, min(size, start + EACH))
        )  # fmt: skip
    last = [chance.gauss(0, 1) for _ in range(WIDTH)]
    middle = memory.memories(limit=size // 2)[-1].id
    memory.nearest(last)
    return {
        "fact": lambda: _one(memory.fact(f"key-{chance.randrange(size)}")),
        "the newest 20": lambda: _some(memory.recent(20), 20),
        "a page of 20 from the middle": lambda: _some(memory.memories(limit=20, before=middle), 20),
        "the nearest 10 by vector": lambda: _some(memory.nearest(last), 10),
    }


def _bare(path: Path, size: int) -> Callable[[], None]:
    connection, chance = apsw.Connection(str(path)), Random(7)
    connection.execute("CREATE TABLE facts (user TEXT, key TEXT, text TEXT, PRIMARY KEY (user, key))")
    with connection:
        connection.executemany(
            "INSERT INTO facts VALUES ('ana', ?, ?)", ((f"key-{n}", f"value {n}") for n in range(size))
        )
    sql = "SELECT text FROM facts WHERE user = 'ana' AND key = ?"
    return lambda: _one(connection.execute(sql, (f"key-{chance.randrange(size)}",)).fetchone())


def _one(found: object) -> None:
    assert found is not None


def _some(found: Any, count: int) -> None:
    assert len(found) == count
