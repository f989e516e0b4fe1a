"""Bytes on disk for 10,000 messages of 500 characters, beside their raw size."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import table

COUNT, LENGTH = 10_000, 500
LETTERS = "abcdefghijklmnopqrstuvwxyz     "


def run(folder: Path) -> dict[str, Any]:
    rows = [
        _case(folder, "one thread, one message a commit", threads=1, batch=1, keys=False),
        _case(folder, "one thread, with a key for each", threads=1, batch=1, keys=True),
        _case(folder, "100 threads, interleaved", threads=100, batch=1, keys=False),
        _case(folder, "one thread, 10 messages a commit", threads=1, batch=10, keys=False),
    ]
    table(f"{COUNT:,} messages of {LENGTH} characters ({COUNT * LENGTH:,} bytes raw), file after close", rows)
    return {row["case"]: row["ratio"] for row in rows}


def _case(folder: Path, name: str, *, threads: int, batch: int, keys: bool) -> dict[str, Any]:
    path = folder / f"size-{threads}-{batch}-{keys}.db"
    source = random.Random(7)
    with holdfast.open(path) as store:
        handles = [store.thread(f"thread-{number}", user="ana") for number in range(threads)]
        for number in range(0, COUNT, batch):
            texts = ["".join(source.choices(LETTERS, k=LENGTH)) for _ in range(batch)]
            messages = [{"role": "user", "content": text} for text in texts]
            handles[number // batch % threads].append(*messages, key=f"message-{number}" if keys else None)
        open_size = sum(part.stat().st_size for part in folder.glob(f"{path.name}*"))
    size = path.stat().st_size
    raw = COUNT * LENGTH
    return {"case": name, "bytes": size, "ratio": size / raw, "while open, with WAL": open_size / raw}
