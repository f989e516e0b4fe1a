"""How long it takes to erase a user, by parts, until no file holds a word of it. What is to go is looked for in all
bytes of all files, before and after."""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import table

USERS, LARGE = 100, 3
MEMORIES, ENTRIES = 2_000, 20_000
"""What a large user has; the others have a tenth of it."""
WORDS = [f"{a}{b}{c}" for a in "bdfklmnprst" for b in ("a", "e", "i", "o", "ai") for c in ("n", "r", "st", "l", "m")]


def run(folder: Path) -> dict[str, Any]:
    path = folder / "erasing.db"
    with holdfast.open(path, embedder="none") as store:
        for number in range(USERS):
            _fill(store, number, 1 if number < LARGE else 10)
        size = path.stat().st_size
        samples: dict[str, list[float]] = defaultdict(list)
        for number in range(LARGE):
            assert _found(folder, number)
            for part, seconds in _erased(store, f"user-{number}").items():
                samples[part].append(seconds)
            assert not _found(folder, number)
    rows = [
        {"part": part, "median s": statistics.median(times), "best": min(times), "worst": max(times)}
        for part, times in samples.items()
    ]
    title = (
        f"{MEMORIES:,} memories and {ENTRIES:,} entries of one of {USERS} users, SQLite file of {size / 1e6:,.0f} MB"
    )
    table(title, rows)
    return {"mb": round(size / 1e6), **{row["part"]: row["median s"] for row in rows}}


def _fill(store: holdfast.Store, number: int, share: int) -> None:
    user, source = f"user-{number}", random.Random(number)

    def said(count: int) -> str:
        return f"{' '.join(source.choices(WORDS, k=count))} planted-{number}x"

    for part in range(20):
        thread = store.thread(f"{user}-{part}", user=user, agent="helper")
        for _ in range(0, ENTRIES // share // 20, 100):
            thread.append(*({"role": "user", "content": said(15)} for _ in range(100)))
        thread.save({"about": said(5)})
    for _ in range(0, MEMORIES // share, 100):
        store.memory(user=user).remember_all([said(10) for _ in range(100)])
    store.memory(user=user).recall(said(3))


def _found(folder: Path, number: int) -> bool:
    return any(f"planted-{number}x".encode() in path.read_bytes() for path in folder.glob("erasing.db*"))


def _erased(store: holdfast.Store, user: str) -> dict[str, float]:
    spent: dict[str, float] = defaultdict(float)

    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **how: Any) -> Any:
            begin = time.perf_counter()
            try:
                return work(*args, **how)
            finally:
                spent["count" if how.get("dry_run") else name] += time.perf_counter() - begin

        return call

    engine: Any = store.core.engine
    usual = engine.erase, engine.scrub, store._clean
    engine.erase, engine.scrub = timed("remove", engine.erase), timed("scrub", engine.scrub)
    store._clean = timed("purge indexes", store._clean)  # type: ignore[method-assign]
    begin = time.perf_counter()
    store.erase(user=user)
    whole = time.perf_counter() - begin
    engine.erase, engine.scrub, store._clean = usual  # type: ignore[method-assign]
    return {"all": whole, **spent}
