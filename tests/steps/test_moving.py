# ruff: noqa: PT012 - the block is a run, and its end is part of what raises
"""Threads with runs that are forked, rewound, exported, imported, backed up and erased."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.engine.contract import Query


def one() -> int:
    return 1


def never(*_: Any) -> Any:
    raise AssertionError("a completed step was run again")


def handler(world: Any) -> Any:
    def carry_out(run: Any) -> Any:
        run.step("a", world.do, "a", effect="once", probe=world.find)
        run.step("b", world.do, "b", effect="once", probe=world.find)
        return run.wait("approval", timeout_s=0) if run.input == "waits" else "well"

    return carry_out


# Forks


def test_what_is_done_is_not_done_again_in_a_fork(process: Any, other: Any, world: Any) -> None:
    run = process.thread().run("r")
    run.step("a", world.do, "a", effect="once", probe=world.find)
    fork = process.thread().fork("fork")
    run.step("b", world.do, "b", effect="once", probe=world.find)
    assert [step.name for step in fork.run("r").steps] == ["a"]
    fork_run = other.store.thread("fork").timeline("r")
    assert fork_run.run.thread == "fork"
    assert (world.times("a"), world.times("b")) == (1, 1)


@pytest.mark.every_engine
def test_the_run_of_a_fork_goes_its_own_way(process: Any, other: Any, world: Any) -> None:
    run = process.thread().run("r")
    run.step("a", world.do, "a", effect="once", probe=world.find)
    fork = process.thread().fork("fork")
    with other.store.thread("fork").run("r") as mine:  # the origin's holder does not stand in the way
        assert mine.step("a", never, "a", effect="once", probe=never) == {"did": "a", "number": 1}
        mine.step("b", world.do, "b", effect="once", probe=world.find)
    run.step("b", world.do, "b", effect="once", probe=world.find)
    run.finish()
    assert world.times("b") == 2  # one for each, under keys of their own
    assert len(world.keys("b")) == 2
    assert [info.status for info in fork.runs()] == ["done"]


def test_nobody_resumes_a_run_of_a_fork_unasked(process: Any, other: Any, world: Any) -> None:
    process.thread().submit("submitted")
    process.thread().run("open").step("a", world.do, "a", effect="once", probe=world.find)
    process.thread().fork("fork")
    process.die()
    other.lapse()
    code = handler(world)
    report = other.store.resume({"submitted": code, "open": code})
    assert {one.thread for one in report} == {"trip-42"}
    assert world.times("a") == 2  # of the two runs of the origin
    with other.store.thread("fork").run("open") as run:
        assert run.step("a", never, "a", effect="once", probe=never)["number"] == 1


def test_a_step_in_doubt_is_in_doubt_in_the_fork_too(process: Any, other: Any, died: Any, world: Any) -> None:
    process.dies("before", "completed", "a")
    with pytest.raises(died):
        process.thread().run("r").step("a", world.do, "a", effect="once", probe=world.find)
    fork = other.thread().fork("fork")
    assert fork.run("r").step("a", never, "a", effect="once", probe=world.find) == {"did": "a", "number": 1}
    assert len({key for _, key in world.asked}) == 1  # it asked under the key of the origin
    assert world.times("a") == 1


def test_a_fork_of_an_earlier_point_has_the_runs_as_they_were(process: Any, world: Any, clock: Any) -> None:
    thread = process.thread()
    run = thread.run("r")
    run.step("a", world.do, "a", effect="once", probe=world.find)
    thread.checkpoint("between")
    clock.advance(10)
    run.step("b", world.do, "b", effect="once", probe=world.find)
    run.finish("well")
    thread.append(holdfast.note("later"))
    now, then = thread.fork("now"), thread.fork("then", at="between")
    assert [info.status for info in now.runs()] == ["done"]
    assert now.run("r").result == "well"
    (info,) = then.runs()
    assert info.status == "interrupted"
    assert [step.name for step in then.timeline("r").steps] == ["a"]
    assert thread.fork("nothing yet", at=0).runs() == []


def test_an_unfinished_subtask_comes_along_with_its_steps(process: Any, other: Any, died: Any, world: Any) -> None:
    def inner(sub: Any) -> str:
        sub.step("x", world.do, "x", effect="once", probe=world.find)
        sub.step("y", world.do, "y", effect="once", probe=world.find)
        return str(sub.thread.id)

    process.dies("after", "completed", "x")
    with pytest.raises(died):
        process.thread().run("r").subtask("t", inner)
    fork = other.thread().fork("fork")
    assert fork.run("r").subtask("t", inner) == "fork/r/t"
    assert world.times("x") == 1
    other.lapse()
    assert other.thread().run("r").subtask("t", inner) == "trip-42/r/t"
    assert (world.times("x"), world.times("y")) == (1, 2)


def test_rewinding_a_thread_does_not_undo_what_its_runs_did(process: Any, world: Any) -> None:
    thread = process.thread()
    thread.append(holdfast.note("before"))
    thread.checkpoint("start")
    with thread.run("r") as run:
        run.step("a", world.do, "a", effect="once", probe=world.find)
    thread.rewind("start")
    assert thread.logbook.head() == 1
    assert thread.run("r").step("a", never, "a", effect="once", probe=never)["number"] == 1
    assert [info.status for info in thread.runs()] == ["done"]


def test_a_run_goes_on_in_a_thread_that_was_rewound(process: Any, world: Any) -> None:
    thread = process.thread()
    thread.append(holdfast.note("before"))
    thread.checkpoint("start")
    run = thread.run("r")
    run.step("a", world.do, "a", effect="once", probe=world.find)
    thread.rewind("start")
    run.step("b", world.do, "b", effect="once", probe=world.find)
    run.finish()
    numbers = [entry.number for entry in thread.log()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [step.name for step in thread.timeline("r").steps] == ["a", "b"]


# Archives


@pytest.mark.every_engine
@pytest.mark.parametrize("format", ["json", "yaml", "msgpack"])
def test_runs_move_with_their_thread(process: Any, place: Any, world: Any, died: Any, format: str) -> None:
    code = handler(world)
    process.thread().submit("done")
    process.store.resume({"done": code})
    process.dies("before", "completed", "b")
    with pytest.raises(died), process.thread().run("open") as run:
        run.subtask("t", lambda sub: sub.step("x", one, effect="pure"))
        code(run)
    source = place.process("exporter")
    archive = io.BytesIO()
    source.store.export(archive, format=format)
    archive.seek(0)
    with holdfast.open("ram:", tenant="new", clock=place.clock) as target:
        target.import_(archive.getvalue())
        target.import_(archive.getvalue())  # harmless
        thread = target.thread("trip-42")
        assert {info.name: info.status for info in thread.runs()} == {"done": "done", "open": "interrupted"}
        assert thread.run("done").result == "well"
        before, after = source.thread().timeline("open"), thread.timeline("open")
        assert [moment.facts for moment in before.moments] == [moment.facts for moment in after.moments]
        assert target.resume({"open": code}) == []  # it is the origin's to end, unless someone asks
        with thread.run("open") as run:
            assert run.subtask("t", never) == 1
            assert code(run) == "well"
        assert len(world.done) == 4  # a and b of both runs; b of the open one was found under its old key
        assert target.verify().ok


def test_a_backup_holds_the_runs(folder: Path, clock: Any, world: Any) -> None:
    with holdfast.open(folder / "store.db", clock=clock) as store:
        store.thread("t").submit("r")
        store.backup(folder / "copy.db")
    with holdfast.open(folder / "copy.db", clock=clock) as copy:
        assert [one.outcome for one in copy.resume({"r": handler(world)})] == ["done"]


# Erasing


@pytest.mark.every_engine
def test_erasing_leaves_nothing_of_a_run(process: Any, other: Any, world: Any) -> None:
    thread = process.store.thread("t", user="ana")
    thread.submit("submitted")
    with thread.run("done") as run:
        run.step("a", world.do, "a", effect="once", probe=world.find)
    parked = thread.submit("parked")
    assert parked.status == "submitted"
    process.store.resume({"parked": lambda run: run.wait("w", timeout_s=50)})
    process.store.thread("u", user="bo").submit("stays")
    other.store.erase(user="ana")
    engine, tenant = other.store.core.engine, other.store.tenant
    left = {kind: [record.scope.user for record in engine.scan(tenant, Query(kind))] for kind in
            ("thread", "run", "lease", "state")}  # fmt: skip
    assert left == {"thread": ["bo"], "run": ["bo"], "lease": ["bo"], "state": []}
    assert {one.run for one in other.store.resume({"submitted": never, "parked": never, "stays": lambda run: 1})} == {
        "stays"
    }
    with pytest.raises(errors.Erased):
        other.store.thread("t", user="ana").submit("again")


@pytest.mark.every_engine
def test_a_store_with_runs_is_sound(process: Any, world: Any) -> None:
    process.thread().submit("r")
    process.store.resume({"r": handler(world)})
    process.thread().fork("fork")
    report = process.store.verify()
    assert report.problems == ()
