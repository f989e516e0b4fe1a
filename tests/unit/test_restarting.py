"""The restart kit: it strikes every commit, finds an agent that repeats itself, and cannot be talked out of it."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

import holdfast
from holdfast.errors import Invalid
from holdfast.testing.restarting import crash_everywhere, kill_everywhere


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


# What the world saw


def pay(store: holdfast.Store, bank: Bank) -> None:
    with store.thread("t").run("pay") as run:
        run.step("charge", bank.charge, effect="once", probe=bank.find)


def test_a_world_is_made_for_each_attempt_and_must_see_the_same_each_time() -> None:
    assert crash_everywhere(pay, world=Bank)  # the keys differ from run to run; what was charged does not


def test_a_world_that_saw_something_twice_is_shown_with_the_point() -> None:
    def careless(store: holdfast.Store, sent: list[str]) -> None:
        sent.append("hello")
        store.thread("t").append({"role": "assistant", "content": "sent"}, key="one")
        sent.append("goodbye")

    with pytest.raises(AssertionError) as caught:
        crash_everywhere(careless, world=list)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the world saw something else:"
    assert " world: 'hello'" in lines
    assert "+world: 'hello'" in lines
    assert caught.value.__notes__ == ["after a crash at 'before commit 0: log'"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda store, world: world.update(seen=len(world)),
        lambda store, world: world.setdefault("deep", [{"in": []}])[0]["in"].append({1, 2}),
    ],
)
def test_a_difference_deep_in_a_world_is_seen(wrong: Any) -> None:
    def agent(store: holdfast.Store, world: dict[str, Any]) -> None:
        wrong(store, world)
        store.thread("t").append({"role": "user", "content": "hello"}, key="one")

    with pytest.raises(AssertionError, match="the world saw something else"):
        crash_everywhere(agent, world=dict)


# Real kills


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else request.getfixturevalue("postgres").clone()


def write(folder: Path, line: str) -> None:
    with (folder / "sent.txt").open("a") as file:
        file.write(f"{line}\n")


def test_a_careful_agent_is_killed_at_every_commit_and_does_it_once(url: str | None) -> None:
    here = os.getpid()

    def careful(store: holdfast.Store, folder: Path) -> None:
        assert os.getpid() != here
        with store.thread("t").run("post") as run:
            run.step("send", lambda: write(folder, "letter"), effect="once", probe=lambda: sent(folder))

    def sent(folder: Path) -> Any:
        return holdfast.Done(None) if (folder / "sent.txt").exists() else None

    def check(store: holdfast.Store) -> None:
        assert store.thread("t").run("post").status == "done"

    points = kill_everywhere(careful, check, url=url)
    assert len(points) >= 6
    assert [point for point in points if "completed send" in point]


def test_what_an_agent_only_had_in_memory_is_gone(url: str | None) -> None:
    """The difference to a crash that is raised: there the memory of the process stays."""
    done: list[str] = []

    def forgetful(store: holdfast.Store, folder: Path) -> None:
        if not done:
            done.append("letter")
            write(folder, "letter")
        store.thread("t").append({"role": "assistant", "content": "sent"}, key="one")

    with pytest.raises(AssertionError, match=r"\+sent.txt: letter") as caught:
        kill_everywhere(forgetful, url=url)
    assert caught.value.__notes__ == ["after a crash at 'before commit 0: log'"]
    assert done == []


def test_an_agent_that_fails_in_its_process_is_told_with_its_traceback() -> None:
    def failing(store: holdfast.Store, folder: Path) -> None:
        if (folder / "sent.txt").exists():
            raise ValueError("the letter is there already")
        write(folder, "letter")
        store.thread("t").append({"role": "assistant", "content": "sent"}, key="one")

    with pytest.raises(AssertionError, match="ValueError: the letter is there already") as caught:
        kill_everywhere(failing)
    assert caught.value.__notes__ == ["after a crash at 'before commit 0: log'"]


def test_the_folders_of_all_attempts_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kill_everywhere(lambda store, folder: store.thread("t").append({"role": "user", "content": "x"}, key="one"))
    assert not list(tmp_path.iterdir())


class Ledger(dict[str, int]):
    """A mapping with something beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []


class Slotted:
    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: list[str] = []


class Knotted:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.itself, self.lock = self, threading.Lock()


class Shared:
    calls: ClassVar[list[str]] = []


def noted(store: holdfast.Store, thread: str = "t") -> None:
    store.thread(thread).append({"role": "user", "content": "x"}, key="k")


@pytest.mark.parametrize("world", [Ledger, Slotted, Knotted])
def test_a_world_of_any_make_tells_what_was_done_twice(world: Any) -> None:
    def twice(store: holdfast.Store, world: Any) -> None:
        world.calls.append("charged")
        noted(store)

    def once(store: holdfast.Store, world: Any) -> None:
        noted(store)
        world.calls[:] = ["charged"]

    with pytest.raises(AssertionError, match="charged"):
        crash_everywhere(twice, world=world)
    assert crash_everywhere(once, world=world)


def test_a_world_that_all_attempts_would_share_is_refused() -> None:
    with pytest.raises(Invalid, match=r"Shared\.calls belongs to the class"):
        crash_everywhere(lambda store, world: noted(store), world=Shared)
    with pytest.raises(Invalid, match="do not share a store in memory"):
        kill_everywhere(lambda store, folder: noted(store), url="ram:")
