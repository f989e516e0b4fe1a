"""``crash_everywhere``: it strikes every commit, finds an agent that repeats itself, and cannot be talked out of it."""

from __future__ import annotations

from contextlib import suppress

import pytest

import holdfast
from holdfast.testing.crashing import crash_everywhere


class Bank:
    """An outside world that remembers which keys were charged, and how often anybody charged."""

    def __init__(self) -> None:
        self.charged: dict[str, int] = {}

    def charge(self) -> int:
        key = holdfast.current_step().key
        self.charged[key] = self.charged.get(key, 0) + 1
        return 1

    def find(self) -> int | None:
        return 1 if holdfast.current_step().key in self.charged else None


def careful(banks: list[Bank]) -> object:
    def agent(store: holdfast.Store) -> None:
        if not store.runs():
            banks.append(Bank())
        bank = banks[-1]
        with store.thread("t").run("pay") as run:
            run.step("charge", bank.charge, effect="once", probe=bank.find)

    return agent


def test_a_careful_agent_is_struck_at_every_commit_and_charges_once() -> None:
    banks: list[Bank] = []

    def check(store: holdfast.Store) -> None:
        assert store.thread("t").run("pay").status == "done"
        assert sum(banks[-1].charged.values()) == 1

    points = crash_everywhere(careful(banks), check)  # type: ignore[arg-type]
    assert len(points) >= 6
    assert points[0].startswith("before commit 0")
    assert [point for point in points if "completed charge" in point]


def test_an_agent_that_repeats_itself_is_found_out_with_the_point() -> None:
    def forgetful(store: holdfast.Store) -> None:
        store.thread("t").append({"role": "user", "content": "hello"})

    with pytest.raises(pytest.fail.Exception) as caught:
        crash_everywhere(forgetful, lambda store: pytest.fail("twice") if len(store.thread("t").log()) > 1 else None)
    assert "after a crash at 'after commit 0" in caught.value.__notes__[0]


def test_one_that_swallows_its_death_is_dead_all_the_same() -> None:
    def stubborn(store: holdfast.Store) -> None:
        with suppress(BaseException):  # what an agent should not do
            store.thread("t").append({"role": "user", "content": "hello"}, key="one")

    assert len(crash_everywhere(stubborn, lambda store: None)) == 2


def test_the_run_without_a_crash_is_checked_too() -> None:
    with pytest.raises(ValueError, match="nothing") as caught:
        crash_everywhere(lambda store: None, lambda store: (_ for _ in ()).throw(ValueError("nothing was done")))
    assert caught.value.__notes__ == ["without a crash"]
    assert crash_everywhere(lambda store: store.set_quota(entries=5), lambda store: store.usage()) != []
