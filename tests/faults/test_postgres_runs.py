"""Durable steps on a Postgres that fails: stopped in the middle of a run, backends ended and answers lost mid-commit.

The server, its signals and the cut connections are real. What must not happen: an effect done twice, a completion or
its log entry doubled or lost, a run that nobody can carry on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from crashlab import scenarios
from crashlab.killing import Plan, kill
from crashlab.promises import Ack, wrong
from crashlab.proxy import Passage, Proxy
from crashlab.scenarios import Life, Scenario
from crashlab.world import World

import holdfast
from holdfast.errors import Unavailable
from holdfast.testing.postgres import ROLE, Mode, Server

pytestmark = pytest.mark.slow

_LONGEST_S = 60.0


def name_of(url: str) -> str:
    return urlsplit(url).path[1:]


@pytest.fixture
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(tmp_path_factory.mktemp("p"), server.directory) as proxy:
        yield proxy


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world.jsonl")


def carry_to_its_end(scenario: Scenario, url: str, world: World, acks: list[Ack]) -> list[str]:
    """Run the program as a new process would until it ends, and say what is wrong then."""
    with holdfast.open(url) as store:
        scenario.program(Life(store, world, acks, 9))
        return list(wrong(store, world, acks, scenario.promises, crashes=1))


def await_length(found: list[int], count: int) -> None:
    until = time.monotonic() + _LONGEST_S
    while len(found) < count:
        assert time.monotonic() < until
        time.sleep(0.01)


# The server goes away in the middle of a run


@pytest.mark.parametrize("mode", ["immediate", "kill"])
@pytest.mark.parametrize("point", ["before effect charge", "after effect charge"])
def test_a_server_that_is_back_soon_costs_a_run_nothing(
    mode: Mode, point: str, server: Server, database: str, tmp_path: Path
) -> None:
    struck: list[threading.Timer] = []

    def strike(name: str) -> None:
        if name == point:
            server.stop(mode)
            struck.append(threading.Timer(0.3, server.start))
            struck[0].start()

    acks: list[Ack] = []
    world = World(tmp_path / "world.jsonl", point=strike)
    with holdfast.open(database) as store:
        scenarios.SHORT.program(Life(store, world, acks, 1))
        assert struck
        struck[0].join()
        assert list(wrong(store, world, acks, scenarios.SHORT.promises)) == []
        assert store.thread("trip").timeline("book").run.claims == 1


def test_a_server_that_stays_away_leaves_a_run_that_can_be_resumed(
    server: Server, database: str, tmp_path: Path
) -> None:
    def strike(name: str) -> None:
        if name == "after effect charge":
            server.stop("immediate")

    acks: list[Ack] = []
    struck = World(tmp_path / "world.jsonl", point=strike)
    with holdfast.open(database, lease_s=0.5) as store:
        with pytest.raises(Unavailable):
            scenarios.SHORT.program(Life(store, struck, acks, 1))
        server.start()
        until = time.monotonic() + _LONGEST_S
        while not store.runs(status="interrupted"):  # this process lives, but it no longer keeps the lease
            assert time.monotonic() < until
            time.sleep(0.05)
    world = World(tmp_path / "world.jsonl")
    assert carry_to_its_end(scenarios.SHORT, database, world, acks) == []
    assert world.totals() == {"charge": 1}


# A commit fails at the worst moment


class AtCommit:
    """Lets one COMMIT of many end badly."""

    def __init__(self, which: int, fault: Callable[[], Passage]) -> None:
        self._left, self._fault, self.fired = which, fault, False

    def __call__(self) -> Passage:
        self._left -= 1
        if self._left != 0:
            return "pass"
        self.fired = True
        return self._fault()


FAULTS = ("lose the commit", "lose the answer", "end the backend before", "end the backend after")


def fault_of(fault: str, server: Server, database: str) -> Callable[[], Passage]:
    def act() -> Passage:
        if fault == "end the backend before":
            server.kill_backends(name_of(database))
            return "pass"
        return "lose the commit" if fault == "lose the commit" else "lose the answer"

    return act


@pytest.mark.parametrize("fault", FAULTS)
def test_no_commit_of_a_run_is_doubled_or_lost_when_its_answer_is(
    fault: str, proxy: Proxy, server: Server, database: str, tmp_path: Path
) -> None:
    """Every commit of the scenario in turn. What follows is up to the same process, or to the next one."""
    remote = f"postgresql://{ROLE}@/{name_of(database)}?host={proxy.folder}"
    place = tmp_path / "world.jsonl"
    ended: list[int] = []
    if fault == "end the backend after":
        proxy.at_lost_answer = lambda: ended.append(server.kill_backends(name_of(database)))
    struck = 0
    for which in range(1, 40):
        acks, world = list[Ack](), World(place)
        with holdfast.open(remote, lease_s=0.3) as store:
            proxy.at_commit = at_commit = AtCommit(which, fault_of(fault, server, database))
            try:
                scenarios.BOOKING.program(Life(store, world, acks, 1))
            except Unavailable:
                time.sleep(0.35)  # to open a run is not tried again by itself; its lease has to end
            proxy.at_commit = lambda: "pass"
        struck += at_commit.fired
        if fault == "end the backend after":
            await_length(ended, struck)
        assert carry_to_its_end(scenarios.BOOKING, database, world, acks) == [], f"{fault} {which}"
        server.empty(database)
        place.unlink()
        if not at_commit.fired:
            break
    assert struck >= 10
    assert len(ended) == (struck if fault == "end the backend after" else 0)


# A fleet


def test_a_fleet_of_three_whose_members_are_killed_does_everything_once(database: str, tmp_path: Path) -> None:
    killed = kill(Plan(database, str(tmp_path), rounds=30, seed=7, at_once=3, longest_ms=150))
    print(killed)
    assert not killed.problems, str(killed)
    assert killed.inside_step > 0
