"""Plain data for every door: JSON can hold it, and it knows nothing of any single door."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime
from pathlib import Path

import holdfast
from holdfast.doors import plain
from holdfast.errors import Conflict

MAY = datetime(2026, 5, 1, tzinfo=UTC)


def test_it_knows_no_door() -> None:
    tree = ast.parse(Path(plain.__file__).read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names]
    assert not [name for name in names if "doors" in name or name.split(".")[0] in ("typer", "rich", "sys")]


def test_what_json_has_no_word_for() -> None:
    assert plain.plain({"age": float("inf"), "at": MAY, 7: (b"\x00", float("nan"))}) == {
        "age": None, "at": "2026-05-01T00:00:00Z", "7": ["AA==", None]
    }  # fmt: skip


def test_values_of_a_store(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
        thread = store.thread("trip-42")
        with thread.run("book") as run:
            run.step("search", lambda: "TP 533", effect="pure")
        story = plain.timeline(thread.timeline("book"))
        assert story["steps"][0]["seconds"] >= 0
        folder = store.folder("notes")
        folder.write("a.md", "text")
        folder.write("b.bin", b"\x00")
        assert [plain.file(folder.read(path))["bytes"] for path in ("a.md", "b.bin")] == [False, True]
        memory = store.memory(user="ana")
        memory.remember("prefers the aisle")
        hit = plain.hit(memory.recall("aisle")[0], 1, None)
        assert (hit["rank"], hit["text"], hit["entry"], hit["repeats"]) == (1, "prefers the aisle", None, None)
        entry = plain.entry(thread.append(holdfast.note("hello")))
        json.dumps([story, hit, entry], allow_nan=False)


def test_an_error_has_its_facts_beside_its_sentence() -> None:
    said = plain.error(Conflict("another process changed it", thread="trip-42"))
    assert said == {"thread": "trip-42", "code": "conflict", "message": "another process changed it", "retryable": True}
