"""Checkpoints of LangGraph, where LangGraph is not installed: recognised, and refused with what to install."""

from __future__ import annotations

import importlib.util
import sqlite3
from pathlib import Path

import pytest

from holdfast import importers
from holdfast.errors import Unsupported

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("langgraph") is not None, reason="LangGraph is installed here; its own tests import it"
)


def test_what_to_install_is_said(tmp_path: Path) -> None:
    path = tmp_path / "graphs.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, "
        "metadata); CREATE TABLE writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)"
    )
    connection.close()
    assert importers.recognise(path) == "langgraph"
    with pytest.raises(Unsupported, match=r"pip install 'holdfast\[langgraph\]'"):
        importers.read(path)
