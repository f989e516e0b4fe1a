"""``import holdfast`` is light and quiet, and so is the start of the command.

Their time is measured by the benchmarks; what they pull in is checked here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

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


# What only some commands need; each is loaded by the command that does.
ROOMS = {
    "holdfast.adapters", "holdfast.aio", "holdfast.archive", "holdfast.context", "holdfast.evaluation",
    "holdfast.importers", "holdfast.providers.models", "holdfast.retrieval", "holdfast.sessions", "holdfast.testing",
    "holdfast.doors.cli.chat", "holdfast.doors.cli.demo", "numpy", "rich.markdown", "rich.progress",
}  # fmt: skip
_COMMAND = """
import sys
sys.argv = ["holdfast", *{args!r}]
from holdfast.doors.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("args", [["--version"], ["threads"]], ids=" ".join)
def test_a_command_loads_only_what_it_needs(args: list[str], tmp_path: Path) -> None:
    pytest.importorskip("typer", reason="the command's extra is not installed")
    path = tmp_path / "agent.db"
    with holdfast.open(path, embedder="none") as store:
        store.thread("trip-42").append(holdfast.note("hello"))
    script = _COMMAND.format(args=["--db", str(path), *args])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ROOMS & set(done.stderr.split()) == set()
