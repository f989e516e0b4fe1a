"""What a fork, a backup and a newer version may and may not do to runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import errors
from holdfast.engine.codec import encode
from holdfast.engine.contract import Put
from holdfast.steps.journal import to_header


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def test_a_restored_backup_knows_what_is_to_be_carried_on(tmp_path: Path, path: Path) -> None:
    with holdfast.open("ram:") as store:
        thread = store.thread("t")
        thread.submit("job", input=3)
        thread.submit("waits", handler="wait")
        store.resume({"wait": lambda run: run.wait("go", timeout_s=3600)})
        store.backup(tmp_path / "copy")
        store.export(tmp_path / "all.json")
    holdfast.restore(tmp_path / "copy", path)
    with holdfast.open(path) as store:
        assert [info.name for info in store.due()] == ["job"]
        assert [found.result for found in store.resume({"job": lambda run: run.input})] == [3]
        store.thread("t").signal("go", 7)
        assert [found.result for found in store.resume({"wait": lambda run: run.wait("go")})] == [7]
    with holdfast.open(tmp_path / "other.db") as store:  # what was moved out is history; nobody begins to book by it
        store.import_(tmp_path / "all.json")
        assert store.due() == []
        assert store.thread("t").run("job").input == 3


def test_giving_up_a_fork_undoes_what_the_fork_did_and_nothing_else(path: Path) -> None:
    undone: list[Any] = []

    def work(run: holdfast.Run) -> None:
        run.step("a", lambda: "shared", effect="idempotent", compensate=undone.append)
        if run.thread.id == "fork":
            run.step("b", lambda: "own", effect="idempotent", compensate=undone.append)
        run.wait("go")

    with holdfast.open(path) as store:
        origin = store.thread("origin")
        origin.submit("r", handler="work")
        store.resume([work])
        fork = origin.fork("fork")
        assert [found.outcome for found in store.resume([work], thread="fork", run="r")] == ["waiting"]
        fork.cancel("r")
        assert [found.outcome for found in store.resume([work])] == ["cancelled"]
        assert undone == ["own"]
        assert [step.name for step in origin.timeline("r").steps] == ["a", "go"]
        origin.cancel("r")
        assert [found.outcome for found in store.resume([work])] == ["cancelled"]
        assert undone == ["own", "shared"]


def test_a_fork_in_the_middle_of_a_subtask_goes_on_where_the_subtask_was(path: Path) -> None:
    ran: list[str] = []

    def one(name: str) -> str:
        ran.append(name)
        return name

    def task(sub: holdfast.Subtask) -> str:
        sub.thread.append({"role": "user", "content": "look"}, key="look")
        sub.step("first", one, "first", effect="once", on_unknown="stop")
        sub.wait("go")
        return str(sub.step("second", one, "second", effect="once", on_unknown="stop"))

    with holdfast.open(path) as store:
        origin = store.thread("origin")
        origin.submit("r")
        store.resume({"r": lambda run: run.subtask("task", task)})
        fork = origin.fork("fork")
        fork.signal("go")
        (found,) = store.resume({"r": lambda run: run.subtask("task", task)})
        assert (found.thread, found.result, ran) == ("fork", "second", ["first", "second"])
        assert store.thread("fork/r/task").logbook.head() == store.thread("origin/r/task").logbook.head() + 1
        assert origin.runs()[0].status == "waiting"


def test_settling_a_step_is_not_the_end_of_its_run(path: Path) -> None:
    def lost() -> None:
        raise ConnectionError("the answer was lost")

    with holdfast.open(path) as store:
        thread = store.thread("t")
        with pytest.raises(errors.StepUnknown), thread.run("r") as run:
            run.step("pay", lost, effect="once", on_unknown="stop")
        with thread.run("r") as run:
            run.settle("pay", happened=True, result=5)
        assert thread.runs()[0].status == "interrupted"
        with thread.run("r") as run:
            assert run.step("pay", lost, effect="once", on_unknown="stop") == 5
        assert thread.runs()[0].status == "done"


def test_a_run_of_a_newer_version_hides_no_other(path: Path) -> None:
    with holdfast.open(path) as store:
        thread = store.thread("t")
        for name in ("old", "new"):
            thread.submit(name)
        core, record = store.core, store.wiring.runs.record("t", "new")
        header = msgspec.to_builtins(to_header(record.body))
        core.engine.commit(
            core.tenant, (Put("run", record.id, encode({**header, "v": 99}), None, record.scope, record.tags),), 1
        )
        assert {info.name for info in store.runs()} == {"old", "new"}
        outcomes = {found.run: found.outcome for found in store.resume({"old": lambda run: 1, "new": lambda run: 2})}
        assert outcomes == {"old": "done", "new": "failed"}
        with pytest.raises(errors.Unsupported, match="newer Holdfast"):
            thread.run("new")
