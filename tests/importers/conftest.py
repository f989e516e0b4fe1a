"""What the tests of moving in share: stores, and sources as their own programs wrote them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.clock import SystemClock

DATA = Path(__file__).parent / "data"
NOTES = {
    "MEMORY.md": """\
---
title: notes
---
# About Ana
Ana owns the bakery.
She lives in Porto.

## Coffee
- black, no sugar
- two cups
  - never after 4 pm
1. beans from Colombia

<!-- hidden -->
***
```sh
make run

make test
```
""",
    "SOUL.md": "- Be kind ♥\n",
    "USER.md": "Her name is Ana.\n",
    "memory/2026-05-01.md": "# Friday\nWent to the dentist.\n",
}
GRAPH = [
    {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["lives in Porto", "speaks żółć \x00"]},
    {"type": "entity", "name": "Acme", "entityType": "company", "observations": []},
    {"type": "relation", "from": "Ana", "to": "Acme", "relationType": "works at"},
]


@pytest.fixture
def clock() -> SystemClock:
    """The time of day, as whoever moves in has it."""
    return SystemClock()


def database(path: Path, name: str) -> Path:
    """A database as its program wrote it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript((DATA / f"{name}.sql").read_text(encoding="utf-8"))
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    return database(tmp_path / "from" / "anything.xyz", "sessions")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for name, text in NOTES.items():
        path = tmp_path / "from" / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "from" / "workspace"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "from" / "graph.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(line) for line in GRAPH), encoding="utf-8")
    return path


@pytest.fixture
def mem0(tmp_path: Path) -> Callable[[str], Path]:
    """A folder of Mem0 with its history beside the store."""

    def make(kind: str) -> Path:
        folder = tmp_path / "from" / f"mem0-{kind}"
        database(folder / "history.db", f"mem0-{kind}-history")
        if kind == "qdrant":
            database(folder / "store" / "collection" / "mem0" / "storage.sqlite", "mem0-qdrant")
        elif kind == "chroma":
            database(folder / "chroma.sqlite3", "mem0-chroma")
        else:
            shutil.copy(DATA / "mem0-faiss.json", folder / "mem0.json")
            (folder / "mem0.faiss").write_bytes(b"an index, which is not read")
        return folder

    return make


@pytest.fixture(params=["openai-agents", "memory-files", "mcp-memory", "mem0"])
def source(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """Each kind of source that needs no framework."""
    names = {"openai-agents": "sessions", "memory-files": "notes", "mcp-memory": "graph"}
    if request.param == "mem0":
        return "mem0", request.getfixturevalue("mem0")("qdrant")
    return request.param, request.getfixturevalue(names[request.param])
