"""The engine in memory keeps the contract. It is the model other engines are compared with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.engine.contract import Engine, Mark
from holdfast.engine.ram import RamEngine
from holdfast.ids import Ids
from holdfast.testing import ManualClock
from holdfast.testing.contract import EngineContract
from holdfast.testing.contract.scene import ACME, Scene, append, event, fork, texts

_BEYOND = 1_000_000


class TestRamEngine(EngineContract):
    @pytest.fixture
    def engine(self, clock: ManualClock, ids: Ids) -> Engine:
        return RamEngine(clock, ids)

    @pytest.mark.parametrize(
        "read", [{"key": "k5"}, {"limit": 3}, {"limit": 3, "newest": True}, {"limit": 3, "after": 5}]
    )
    def test_reading_does_not_look_through_a_stream(self, scene: Scene, read: dict[str, Any]) -> None:
        """A long stream costs what a short one costs, also where a fork shares it."""
        for id, length in (("short", 10), ("long", 1000)):
            scene.commit(append(id, *(event(f"{n}", f"k{n}") for n in range(length))))
            scene.commit(fork(f"fork of {id}", scene.mark(id)))
        short = _lines_run(lambda: scene.engine.read(ACME, scene.mark("fork of short"), **read))
        assert _lines_run(lambda: scene.engine.read(ACME, scene.mark("fork of long"), **read)) <= short + 10

    def test_a_snapshot_finds_no_key_that_came_later(self, scene: Scene) -> None:
        """It shares what is stored with the engine, and still ends where it began; erasing leaves it alone."""
        scene.commit(append("t", event("one", "a")))
        beyond = Mark(scene.mark("t").stream, _BEYOND)
        with scene.engine.snapshot() as view:
            scene.commit(append("t", event("two", "b")))
            assert view.read(ACME, beyond, key="b") == []
            scene.erase(scene.thread("t").scope)
            assert texts(view.read(ACME, beyond, key="a")) == ["one"]

    def test_the_last_events_of_a_stream_are_found_from_beyond_its_end(self, scene: Scene) -> None:
        scene.commit(append("t", "one", "two", "three"))
        found = scene.engine.read(ACME, Mark(scene.mark("t").stream, _BEYOND), limit=2, newest=True)
        assert texts(found) == ["two", "three"]


def _lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python that takes: what it costs, whatever the machine is doing."""
    count = 0

    def trace(*_: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
