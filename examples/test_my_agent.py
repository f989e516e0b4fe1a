"""A test for your own agent: killed at every commit, it must still do everything once.

    python examples/test_my_agent.py

or, as in your own project, ``python -m pytest examples/test_my_agent.py``. The first test crashes the agent in memory;
the second kills real processes, on a SQLite file or on the database that HOLDFAST_DB names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.restarting import crash_everywhere, kill_everywhere


class Bank:
    """Your agent's outside world: a payment service that knows its keys. Here it is a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "charges.txt"

    def charge(self, cents: int) -> int:
        with self._file.open("a") as file:
            file.write(f"{holdfast.current_step().key} {cents}\n")
        return cents

    def find(self, cents: int) -> int | None:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return next((cents for line in lines if line.startswith(holdfast.current_step().key)), None)


def agent(store: holdfast.Store, folder: Path) -> None:
    """Your agent. Start it again after a crash, and it continues."""
    bank = Bank(folder)
    thread = store.thread("trip-42", user="ana")
    thread.append({"role": "user", "content": "Book it."}, key="msg-1")
    with thread.run("pay") as run:
        run.step("charge", bank.charge, 12_000, effect="once", probe=bank.find)
    thread.append({"role": "assistant", "content": "Booked."}, key="msg-2")


def check(store: holdfast.Store) -> None:
    assert [message["content"] for message in store.thread("trip-42").messages()] == ["Book it.", "Booked."]


def test_it_survives_a_crash_at_every_commit(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert crash_everywhere(agent, check, world=lambda: tmp_path_factory.mktemp("world"))


def test_it_survives_being_killed_at_every_commit() -> None:
    points = kill_everywhere(agent, check, url=os.environ.get("HOLDFAST_DB"))
    assert any("completed charge" in point for point in points)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
