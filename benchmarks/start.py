"""How long ``import holdfast`` takes in a fresh interpreter, beside an interpreter that imports nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import spread, table

REPEATS = 15
CASES = {"nothing": "pass", "import holdfast": "import holdfast", "import sqlite3": "import sqlite3"}


def run(folder: Path) -> dict[str, Any]:
    spent: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(REPEATS):
        for name, code in CASES.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            spent[name].append(time.perf_counter() - begin)
    floor = statistics.median(spent["nothing"])
    table(
        "Import, in a fresh interpreter",
        [
            {"what": n, "ms": statistics.median(v) * 1e3, "over nothing": (statistics.median(v) - floor) * 1e3}
            for n, v in spent.items()
        ],
    )
    print(f"  import holdfast, middle half: {spread([value * 1e3 for value in spent['import holdfast']])} ms")
    return {"import_ms": (statistics.median(spent["import holdfast"]) - floor) * 1e3}
