"""Every point at which a run can be struck: a crash, a pause past the lease, a commit of unknown outcome. Then resume.

The points come from a dry run of each scenario, so a new commit in the code is a new point here, without being listed.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from crashlab import scenarios
from crashlab.laboratory import Findings, InFile, InMemory, Laboratory, Shared, Trial
from crashlab.scenarios import SCENARIOS, Scenario
from crashlab.world import World

from holdfast.clock import Clock, SystemClock
from holdfast.engine.contract import Engine
from holdfast.engine.postgres import PostgresEngine
from holdfast.engine.ram import RamEngine
from holdfast.errors import Cancelled
from holdfast.ids import Ids
from holdfast.steps.resume import FRUITLESS
from holdfast.testing.crashing import Fuse
from holdfast.testing.postgres import Server

by_name = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(InMemory(), tmp_path)


def assert_kept(found: Findings, *, points: int = 1) -> None:
    assert not found.problems, str(found)
    assert found.points >= points


def test_points_are_named_by_what_a_commit_contains(laboratory: Laboratory) -> None:
    assert laboratory.points(scenarios.SHORT) == [
        "before commit 0: log; opened; lease",
        "after commit 0: log; opened; lease",
        "before commit 1: intent charge",
        "after commit 1: intent charge",
        "before effect charge",
        "after effect charge",
        "before commit 2: completed charge; log; state",
        "after commit 2: completed charge; log; state",
        "before commit 3: ended; log; no lease",
        "after commit 3: ended; log; no lease",
    ]


# Crashes


@by_name
def test_a_crash_at_any_point_breaks_no_promise_on_ram(scenario: Scenario, laboratory: Laboratory) -> None:
    assert_kept(laboratory.crash_everywhere(scenario), points=10)


@pytest.mark.slow
@by_name
def test_a_crash_at_any_point_breaks_no_promise_on_sqlite(scenario: Scenario, tmp_path: Path) -> None:
    assert_kept(Laboratory(InFile(tmp_path), tmp_path).crash_everywhere(scenario), points=10)


@pytest.mark.parametrize("scenario", [scenarios.SHORT, scenarios.STOP], ids=lambda scenario: scenario.name)
def test_a_second_crash_during_the_recovery_breaks_none_either(scenario: Scenario, laboratory: Laboratory) -> None:
    assert_kept(laboratory.crash_twice_everywhere(scenario), points=100)


@pytest.mark.slow
def test_a_second_crash_on_sqlite(tmp_path: Path) -> None:
    assert_kept(Laboratory(InFile(tmp_path), tmp_path).crash_twice_everywhere(scenarios.SHORT), points=100)


@pytest.mark.slow
@pytest.mark.parametrize("technique", ["crash_everywhere", "crash_twice_everywhere", "doubt_everywhere"])
def test_the_short_scenario_on_postgres(technique: str, server: Server, database: str, tmp_path: Path) -> None:
    engine = PostgresEngine(database, SystemClock(), Ids())
    try:
        place = Shared(engine, lambda: server.empty(database))
        assert_kept(getattr(Laboratory(place, tmp_path), technique)(scenarios.SHORT), points=10)
    finally:
        engine.close()


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_run_that_kills_whoever_takes_it_is_given_up_and_can_be_opened_by_name(
    cancelled: bool, tmp_path: Path
) -> None:
    world = World(tmp_path / "world.jsonl")
    trial = Trial(InMemory(), scenarios.WORKER, world)
    assert not trial.live(Fuse("before effect charge"))
    if cancelled:
        trial.live(Fuse(), program=scenarios.cancel_it)
    while trial.crashes <= FRUITLESS:
        assert not trial.live(Fuse("before probe"))
    trial.live(Fuse())
    book = trial.store(Fuse()).thread("trip").timeline("book")
    assert book.run.status == "failed"
    assert book.error is not None
    assert "without progress" in book.error["message"]
    assert world.totals() == {}
    with suppress(Cancelled):
        trial.live(Fuse(), program=scenarios.BOOKING.program)
    book = trial.store(Fuse()).thread("trip").timeline("book")
    assert book.run.status == ("cancelled" if cancelled else "done")
    assert world.totals() == ({} if cancelled else {"charge": 1, "book": 1, "notify": 1})


# Pauses: nobody dies, but somebody comes back too late


@by_name
def test_a_holder_that_wakes_up_after_another_took_over_records_nothing(
    scenario: Scenario, laboratory: Laboratory
) -> None:
    assert_kept(laboratory.pause_everywhere(scenario), points=10)


def test_only_a_service_that_ignores_keys_can_be_used_twice_by_a_late_holder(laboratory: Laboratory) -> None:
    """No store can hold back a function that already runs. This is why each step has a key to give to the service."""
    found = laboratory.pause_everywhere(scenarios.SHORT, keyed=False)
    struck = {problem.partition(":")[0] for problem in found.problems}
    assert struck <= {"paused after commit 1", "paused before effect charge"}
    assert "paused before effect charge" in struck


def test_a_person_may_cancel_at_any_moment(laboratory: Laboratory) -> None:
    assert_kept(laboratory.interrupt_everywhere(scenarios.UNDOABLE, scenarios.cancel_it), points=20)


def test_a_signal_may_come_at_any_moment(laboratory: Laboratory) -> None:
    assert_kept(laboratory.interrupt_everywhere(scenarios.WAIT, scenarios.approve_it), points=20)


# Commits whose outcome nobody knows


@by_name
def test_a_commit_of_unknown_outcome_is_neither_lost_nor_doubled(scenario: Scenario, laboratory: Laboratory) -> None:
    assert_kept(laboratory.doubt_everywhere(scenario), points=16)


def test_a_signal_that_comes_while_a_commit_is_in_doubt_is_not_missed(laboratory: Laboratory) -> None:
    assert_kept(laboratory.doubt_while(scenarios.WAIT, scenarios.approve_it), points=90)


def test_a_cancellation_that_comes_while_a_commit_is_in_doubt_is_no_error(laboratory: Laboratory) -> None:
    assert_kept(laboratory.doubt_while(scenarios.UNDOABLE, scenarios.cancel_it), points=60)


# Negative controls: a laboratory that finds nothing where something is wrong proves nothing


def test_a_probe_that_lies_is_found_out(tmp_path: Path) -> None:
    found = Laboratory(InMemory(), tmp_path, honest=False).crash_everywhere(scenarios.SHORT)
    assert any("charge was done 2 times" in problem for problem in found.problems)


class Forgetful(InMemory):
    """A store that loses its last commit in a crash, as one does that acknowledges before it is durable."""

    def __init__(self) -> None:
        super().__init__()
        self._before: list[dict[str, object]] = []

    def open(self, clock: Clock, ids: Ids) -> Engine:
        engine = super().open(clock, ids)
        assert isinstance(engine, RamEngine)
        if self._before:
            engine._tenants.clear()
            engine._tenants.update(self._before.pop())  # type: ignore[arg-type]
            self._before.clear()
        elif not hasattr(engine, "remembers"):
            self._remember(engine)
        return engine

    def _remember(self, engine: RamEngine) -> None:
        commit = engine.commit

        def remembering(*given: object, **named: object) -> object:
            self._before.append({name: tenant.copy() for name, tenant in engine._tenants.items()})
            return commit(*given, **named)  # type: ignore[arg-type]

        engine.commit = remembering  # type: ignore[method-assign, assignment]
        engine.remembers = True  # type: ignore[attr-defined]

    def end(self) -> None:
        self._before.clear()
        super().end()


@pytest.fixture
def forgetful(tmp_path: Path) -> Laboratory:
    return Laboratory(Forgetful(), tmp_path)


def test_a_store_that_acknowledges_too_early_is_found_out(forgetful: Laboratory) -> None:
    problems = " ".join(forgetful.crash_everywhere(scenarios.BOOKING).problems)
    assert "was told as" in problems  # a result that was returned and is gone
    assert "charge was done 2 times" in problems  # an intent that is gone, so nobody asked
