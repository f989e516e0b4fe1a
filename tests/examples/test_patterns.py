"""The programs of ``examples/patterns`` print what they say, on SQLite and on Postgres, and stay short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import pattern_lines

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = ROOT / "examples" / "patterns"
PROGRAMS = sorted(path.name for path in PATTERNS.glob("*.py"))
HERE = [name for name in PROGRAMS if name != "checkpointed_graph.py"]  # LangGraph's is run by tests/adapters/langgraph
PLAIN = ROOT / "benchmarks" / "plain_patterns"


def promised(program: Path) -> list[str]:
    """The lines that a program says it prints: the comment at its end."""
    said = program.read_text(encoding="utf-8").split("\n# prints:\n")[1]
    return [line.removeprefix("#").removeprefix(" ") for line in said.splitlines()]


def printed(program: Path, *args: str, folder: Path) -> list[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
    env |= {"TMPDIR": str(folder), "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, str(program), *args]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.every_engine
@pytest.mark.parametrize("name", HERE)
def test_a_pattern_prints_what_it_says(
    name: str, engine_name: str, durable_engine: None, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    args = [request.getfixturevalue("postgres").clone()] if engine_name == "postgres" else []
    assert printed(PATTERNS / name, *args, folder=tmp_path) == promised(PATTERNS / name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pattern_is_short(name: str) -> None:
    assert len((PATTERNS / name).read_text(encoding="utf-8").splitlines()) < 40


@pytest.mark.parametrize("name", sorted(path.name for path in PLAIN.glob("[a-z]*.py")))
def test_the_plain_way_prints_the_same(name: str, tmp_path: Path) -> None:
    wanted = promised(PATTERNS / name)
    if name == "full_serialisation.py":
        wanted = [line for line in wanted if "msgpack" not in line]  # the standard library has none
    assert "holdfast" not in (PLAIN / name).read_text(encoding="utf-8")
    assert printed(PLAIN / name, folder=tmp_path) == wanted


def test_the_readme_has_every_program_and_the_counted_lines() -> None:
    readme = (PATTERNS / "README.md").read_text(encoding="utf-8")
    assert [name for name in PROGRAMS if f"[{name}]({name})" not in readme] == []
    assert pattern_lines.table() in readme


def test_lines_with_code_are_counted() -> None:
    source = '''
"""Two
lines."""

import os  # why

# a note
def f():
    """One."""
    return (
        os
    )
'''
    assert pattern_lines.code_lines(source) == 5
    assert pattern_lines.code_lines('text = """one\n\nthree"""\n') == 3
