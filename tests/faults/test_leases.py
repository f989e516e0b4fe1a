"""Who may act: holders that are paused past their lease, clocks that jump, and two workers that want the same runs.

The processes and their signals are real, and so is the time where a process is to sleep through its lease.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from crashlab import scenarios
from crashlab.laboratory import InMemory, Laboratory
from crashlab.promises import Ack, Promises, journals, wrong
from crashlab.scenarios import Life, Scenario
from crashlab.world import World

import holdfast
from holdfast.errors import Fenced, RunHeld
from holdfast.testing import ManualClock

DAY, YEAR = 86_400.0, 365 * 86_400.0
ONCE = Promises(once=frozenset({"charge"}))

PRELUDE = """
    import logging, sys, threading
    logging.disable()  # the keeper tells of a lost lease, as it should
    from pathlib import Path
    import holdfast
    from holdfast.errors import Fenced
    from holdfast.testing import ManualClock
    from crashlab.promises import Ack
    from crashlab.scenarios import Life
    from crashlab.world import World
    url, place = sys.argv[1:]
    def say(*words):
        print(*words, flush=True)
    def opened(world, **options):
        return Life(holdfast.open(url, **options), world, [], 1)
"""


class Process:
    """A program in a process of its own, which talks in lines."""

    def __init__(self, program: str, url: str, world: Path) -> None:
        text = textwrap.dedent(PRELUDE) + textwrap.dedent(program)
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", text, url, str(world)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def send(self, which: signal.Signals) -> None:
        self._process.send_signal(which)

    def await_stop(self) -> None:
        """Wait until it really stands still."""
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def end(self, *, killed: bool = False) -> str:
        """Say the last word, wait, and return what it still said."""
        out, err = self._process.communicate("go\n", timeout=60)
        assert (self._process.returncode, err) == (-signal.SIGKILL if killed else 0, "")
        return out.strip()

    def leave(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@contextmanager
def running(program: str, url: str, world: Path) -> Iterator[Process]:
    process = Process(program, url, world)
    try:
        yield process
    finally:
        process.leave()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "world.jsonl"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "agent.db") if request.param == "sqlite" else request.getfixturevalue("database")


def resume_when_free(life: Life) -> None:
    """Carry the run on as soon as its lease is over."""

    def book(run: holdfast.Run) -> None:
        life.once(run, "charge")

    deadline = time.monotonic() + 30
    while [one.outcome for one in life.store.resume({"book": book})] != ["done"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# A holder that sleeps through its lease

SLEEPER = """
    def pause(name):
        if name == {point!r}:
            say("here")
            sys.stdin.readline()
    life = opened(World(Path(place), keyed=True, point=pause), lease_s=0.4)
    run = life.store.thread("trip").run("book")
    try:
        life.once(run, "charge")
    except Fenced:
        say("fenced")
    else:
        say("recorded")
    for late in (run.heartbeat, lambda: run.step("more", str, effect="pure"), lambda: run.finish("late")):
        try:
            late()
        except Fenced:
            say("fenced")
        else:
            say("recorded")
    life.store.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before effect charge", "after effect charge"])
def test_a_holder_stopped_past_its_lease_is_fenced_when_it_wakes_up(point: str, url: str, place: Path) -> None:
    world, acks = World(place), list[Ack]()
    with running(SLEEPER.format(point=point), url, place) as sleeper, holdfast.open(url) as store:
        assert sleeper.hear() == "here"
        with pytest.raises(RunHeld):
            store.thread("trip").run("book")
        sleeper.send(signal.SIGSTOP)
        sleeper.await_stop()
        resume_when_free(Life(store, world, acks, 2))
        before = [run.timeline for run in journals(store)]
        sleeper.send(signal.SIGCONT)
        assert sleeper.end().split() == ["fenced"] * 4
        assert [run.timeline for run in journals(store)] == before
        assert list(wrong(store, world, acks, ONCE)) == []
        assert world.totals() == {"charge": 1}


@pytest.mark.slow
def test_a_live_holder_keeps_its_run_for_longer_than_its_lease(url: str, place: Path) -> None:
    with running(SLEEPER.format(point="before effect charge"), url, place) as holder, holdfast.open(url) as store:
        assert holder.hear() == "here"
        until = time.monotonic() + 1.5  # nearly four leases
        while time.monotonic() < until:
            assert store.resume({"book": lambda run: pytest.fail("it is held")}) == []
            time.sleep(0.05)
        assert holder.end().split() == ["recorded"] * 4
        assert store.thread("trip").timeline("book").result == "late"


class Hooked(ManualClock):
    """A clock during whose next look something happens, as it may while a renewal asks a server for the time."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def now(self) -> int:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        return super().now()


@pytest.mark.parametrize("end", [lambda run: run.finish(), lambda run: run.abandon(), lambda run: run.release()])
def test_a_renewal_that_was_under_way_does_not_bring_the_lease_of_an_ended_run_back(
    end: Callable[[holdfast.Run], object],
) -> None:
    clock = Hooked()
    with holdfast.open("ram:", clock=clock) as store:
        run = store.thread("trip").run("book")
        [lease] = store.wiring.runs.renewer.held()
        clock.meanwhile = lambda: end(run)
        with suppress(Fenced):
            lease.renew()
        assert [terms.holder for _, terms in store.wiring.runs.leases() if terms.holder] == []


# Clocks


@pytest.mark.parametrize("days", [1, 3_650, -1, -3_650])
@pytest.mark.parametrize("scenario", [scenarios.BOOKING, scenarios.WAIT, scenarios.CANCEL], ids=lambda each: each.name)
def test_a_clock_that_jumps_at_any_point_breaks_no_promise(scenario: Scenario, days: int, tmp_path: Path) -> None:
    found = Laboratory(InMemory(), tmp_path).jump_everywhere(scenario, days * DAY)
    assert not found.problems, str(found)
    assert found.points > 20


def test_a_process_whose_clock_is_years_ahead_takes_over_and_the_other_is_fenced(tmp_path: Path, place: Path) -> None:
    """Two clocks that do not agree cost the slower one its run, and nobody a second effect."""
    url, world, acks = str(tmp_path / "agent.db"), World(place, keyed=True), list[Ack]()
    here, ahead = ManualClock(), ManualClock()
    ahead.advance(5 * YEAR)
    with holdfast.open(url, clock=here) as one, holdfast.open(url, clock=ahead) as other:
        run = one.thread("trip").run("book")
        Life(one, world, acks, 1).once(run, "charge")
        with other.thread("trip").run("book") as taken:
            Life(other, world, acks, 2).once(taken, "charge")
        with pytest.raises(Fenced):
            run.finish()
        assert list(wrong(other, world, acks, ONCE)) == []
    assert world.totals() == {"charge": 1}


@pytest.mark.slow
def test_the_lease_of_a_dead_process_whose_clock_was_years_ahead_holds_nobody_up(tmp_path: Path, place: Path) -> None:
    program = """
        clock = ManualClock()
        clock.advance(5 * 365 * 86_400)
        def pause(name):
            if name == "after effect charge":
                say("here")
                sys.stdin.readline()
        life = opened(World(Path(place), point=pause), clock=clock)
        life.once(life.store.thread("trip").run("book"), "charge")
    """
    url, world, acks = str(tmp_path / "agent.db"), World(place), list[Ack]()
    with running(program, url, place) as dead, holdfast.open(url, clock=ManualClock()) as store:
        assert dead.hear() == "here"
        with pytest.raises(RunHeld):
            store.thread("trip").run("book")
        dead.send(signal.SIGKILL)
        dead.end(killed=True)
        with store.thread("trip").run("book") as run:
            Life(store, world, acks, 2).once(run, "charge")
        assert list(wrong(store, world, acks, ONCE)) == []
    assert world.totals() == {"charge": 1}


# Two workers

WORKER = """
    stop = threading.Event()
    life = opened(World(Path(place)))
    def book(run):
        life.once(run, "charge")
        life.once(run, "book")
    say("ready")
    sys.stdin.readline()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set())).start()
    print(life.store.work({"book": book}, stop=stop, poll_s=0.01), flush=True)
    life.store.close()
"""


@pytest.mark.slow
def test_two_live_workers_carry_out_each_of_a_hundred_runs_exactly_once(url: str, place: Path) -> None:
    runs = 100
    with (
        holdfast.open(url) as store,
        running(WORKER, url, place) as one,
        running(WORKER, url, place) as other,
    ):
        for number in range(runs):
            store.thread(f"trip_{number % 10}").submit(f"book_{number}", handler="book")
        workers = (one, other)
        for worker in workers:
            assert worker.hear() == "ready"
        for worker in workers:
            worker.say("go")
        deadline = time.monotonic() + 60
        while len(store.runs(status="done", limit=None)) < runs:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        shares = [int(worker.end()) for worker in workers]
        claims = Counter(
            moment.facts["why"] for run in journals(store) for moment in run.timeline.moments if moment.kind == "opened"
        )
        assert claims == {"submitted": runs, "resumed": runs}
        assert list(wrong(store, World(place), [], Promises(once=frozenset({"charge", "book"})))) == []
    assert World(place).totals() == {"charge": runs, "book": runs}
    assert sum(shares) == runs
    assert min(shares) > 0
