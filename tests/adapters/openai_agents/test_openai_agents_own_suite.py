"""The SDK's own tests that use its ``SQLiteSession``, from the source package of the installed version, with ours.

A test that ours fails must fail with ``SQLiteSession`` too, or test SQLite instead of a session.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest
from own_tests import outcomes, own_tests

PLUGIN = Path(__file__).parent / "own_suite" / "our_sessions.py"
_USES = re.compile(r"\bSQLiteSession\(")
_NEED_MORE = ("test_agent_runner.py", "test_agent_runner_streamed.py")  # an import that we do not have
_OTHERS = ("sandbox", "test_advanced_sqlite_session.py", "test_async_sqlite_session.py")
EXCEPTIONS = {
    r"\bsqlite3\.": "it reads, locks or damages the file of SQLiteSession itself",
    r"\._(get_|locked_|write_)?connections?\b": "it takes the connection of SQLiteSession for its own use",
    r"\._(insert_items|file_locks)\b": "it replaces or looks at a private part of SQLiteSession",
    r"SQLiteSession is closed": "it expects the words of SQLiteSession for an empty add to a closed one",
}
"""What in the text of a test shows that it tests SQLite, and why that says nothing about a session."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_tests("openai-agents", tmp_path_factory.mktemp("suite"))


def test_ours_fails_nothing_that_theirs_passes(suite: Path) -> None:
    files = [str(file.relative_to(suite)) for file in sorted(suite.rglob("test_*.py")) if _concerns_us(file)]
    found = outcomes(suite, "ours", files, PLUGIN)
    failed = [name for name, outcome in found.items() if outcome == "failed"]
    excused = {pattern: [name for name in failed if re.search(pattern, text_of(suite, name))] for pattern in EXCEPTIONS}
    unexpected = sorted(set(failed) - {name for names in excused.values() for name in names})
    if unexpected:
        control = outcomes(suite, "bundled", unexpected, PLUGIN)
        unexpected = [name for name in unexpected if control.get(name) == "passed"]
    assert unexpected == []
    assert [pattern for pattern, names in excused.items() if not names] == []  # every exception is still one
    passed = sum(outcome == "passed" for outcome in found.values())
    print(f"   {passed} of {len(found)} of the SDK's own tests pass; {len(failed)} test SQLite itself")
    assert passed >= 300


def _concerns_us(file: Path) -> bool:
    if file.name in (*_NEED_MORE, *_OTHERS) or set(file.parts) & set(_OTHERS):
        return False
    return bool(_USES.search(file.read_text(encoding="utf-8")))


def text_of(suite: Path, name: str) -> str:
    """The source of a test, by the name that pytest gives it."""
    file, *_, test = name.partition("[")[0].split("::")
    return _functions(suite / file)[test]


@lru_cache
def _functions(file: Path) -> dict[str, str]:
    text = file.read_text(encoding="utf-8")
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: ast.get_source_segment(text, node) or "" for node in found}
