"""LangGraph's own tests of its stores, from the source packages of the installed versions, with ``HoldfastStore``.

What ours fails is exactly what is listed here, each with its reason. Whatever else fails is run with LangGraph's own
store, to tell whose fault it is.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from own_tests import outcomes, own_tests

OURS = Path(__file__).parent / "own_suite" / "store_fixtures.py"
_INDEX = "the embedder belongs to the store beneath, so there is no index_config"
_SCORE = "a score is of words, vectors and more, not a cosine"
CHECKPOINT = {"test_vector_store_initialization": _INDEX, "test_embed_with_path": _SCORE}
SQLITE = {
    "test_vector_store_initialization": _INDEX,
    "test_embed_with_path": _SCORE,
    "test_embed_with_path_operation_config": _SCORE,
    "test_scores": _SCORE,
    "test_no_running_loop": "ours may be called where an event loop runs",
    "test_nonnull_migrations": "looks at the SQL of SqliteStore",
    "test_sql_injection_vulnerability": "wants an error for a field with quotes: here it is a name like any other",
    "test_ttl_override_default": "reads do not refresh unless told; LangGraph's TTLConfig says they do unless told",
}


@pytest.mark.parametrize(
    ("package", "files", "exceptions", "least"),
    [
        ("langgraph-checkpoint", ["store"], CHECKPOINT, 112),
        ("langgraph-checkpoint-sqlite", ["store", "async_store", "ttl"], SQLITE, 132),
    ],
)
def test_ours_fails_nothing_that_theirs_passes(
    package: str, files: list[str], exceptions: dict[str, str], least: int, tmp_path: Path
) -> None:
    suite = own_tests(package, tmp_path, OURS)
    found = outcomes(suite, "ours", [f"tests/test_{file}.py" for file in files])
    failed = [name for name, outcome in found.items() if outcome == "failed"]
    unexpected = [name for name in failed if _function(name) not in exceptions]
    control = outcomes(suite, "theirs", unexpected) if unexpected else {}
    assert [name for name in unexpected if control[name] == "passed"] == []
    assert exceptions.keys() <= set(map(_function, failed)), "an exception is none any more"
    assert list(found.values()).count("passed") >= least


def _function(name: str) -> str:
    return name.rpartition("::")[2].partition("[")[0]
