"""``import holdfast`` is light and quiet. Its time is measured by the benchmarks; what it pulls in is checked here."""

from __future__ import annotations

import json
import subprocess
import sys

# Drivers, frameworks and the heavier half of the standard library: each is loaded by the first thing that needs it.
HEAVY = {
    "anthropic", "apsw", "asyncio", "click", "email", "http", "httpx2", "hypothesis", "multiprocessing", "numpy",
    "openai", "psycopg", "psycopg_pool", "pydantic", "pydantic_ai", "pytest", "rich", "splintr", "sqlite3", "ssl",
    "subprocess", "typer", "unittest", "xllamacpp", "yaml",
}  # fmt: skip

_PROBE = """
import json, logging, sys, threading
handlers = list(logging.root.handlers)
import holdfast
print(json.dumps({
    "modules": sorted({name.split(".")[0] for name in sys.modules}),
    "threads": threading.active_count(),
    "logging": logging.root.handlers == handlers,
}))
"""


def test_import_is_light_and_quiet() -> None:
    # -I: neither this folder nor the user's site decides what is found. -W error: no warning on import.
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", _PROBE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    found = json.loads(done.stdout)
    assert HEAVY & set(found["modules"]) == set()
    assert found["threads"] == 1
    assert found["logging"]
