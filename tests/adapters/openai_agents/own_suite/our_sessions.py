"""Puts our session in the place of the SDK's ``SQLiteSession`` in the SDK's own tests, as a plugin of pytest.

``HOLDFAST_SUITE`` says which is judged: ``ours``, or ``bundled``, which is the control. What became of each test that
made such a session is written to ``HOLDFAST_SUITE_OUTCOMES``.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import agents
import agents.memory
import pytest

from holdfast.adapters.openai_agents import HoldfastSession

_TOO_LONG_S = 12
_judged: set[str] = set()
_outcomes: dict[str, str] = {}


class Ours(HoldfastSession):
    """Takes what ``SQLiteSession`` takes, and tells which test made one."""

    test = ""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **settings: Any) -> None:
        _judged.add(Ours.test)
        where = "ram:" if str(db_path) == ":memory:" else str(db_path)
        super().__init__(session_id, where, session_settings=settings.get("session_settings"))


if os.environ["HOLDFAST_SUITE"] == "ours":
    agents.SQLiteSession = agents.memory.SQLiteSession = Ours  # type: ignore[misc, assignment]


def pytest_configure(config: pytest.Config) -> None:
    for mark in ("asyncio", "allow_call_model_methods", "serial"):
        config.addinivalue_line("markers", f"{mark}: the SDK's")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_runtest_logstart(nodeid: str) -> None:
    Ours.test = nodeid


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Some tests wait for something that only ``SQLiteSession`` does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it took longer than {_TOO_LONG_S} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(_TOO_LONG_S)
    try:
        yield
    finally:
        signal.alarm(0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        _outcomes.setdefault(report.nodeid, report.outcome)


def pytest_sessionfinish() -> None:
    judged = _outcomes if os.environ["HOLDFAST_SUITE"] == "bundled" else {name: _outcomes[name] for name in _judged}
    Path(os.environ["HOLDFAST_SUITE_OUTCOMES"]).write_text(json.dumps(judged), encoding="utf-8")
