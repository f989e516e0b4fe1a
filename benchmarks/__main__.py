"""Run benchmarks by name, or all of them, in a scratch folder on the disk of the current directory."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import apsw

NAMES = (
    "start", "append", "resume", "size", "export", "processes", "fleet", "steps", "resume_runs", "remember", "recall",
    "context", "session", "feed", "forks", "erasing", "rows", "learning",
)  # fmt: skip


def main() -> None:
    wanted = sys.argv[1:] or list(NAMES)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    results = {}
    print(f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {os.cpu_count()} cores")
    for name in wanted:
        with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
            results[name] = importlib.import_module(f"benchmarks.{name}").run(Path(folder))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
