"""The laboratory: goes through every point at which a scenario can be struck, and asks whether its promises held.

A dry run lists the points. Then, for each, a fresh store lives until it is struck, another process takes up what was
left, and every promise is checked, right after the blow and at the end. A trial is a list of blows, one per life, so
that a crash during the recovery from a crash is just a longer list. The same list gives the same trial.

Deliberately absent: real processes and real disks. ``killing`` kills the former, ``power`` cuts the latter; here the
point is that nothing is left to chance.
"""

from __future__ import annotations

import contextvars
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from crashlab.promises import Ack, wrong
from crashlab.scenarios import Life, Scenario
from crashlab.world import World
from holdfast.clock import Clock
from holdfast.engine.contract import Engine
from holdfast.engine.registry import open_engine
from holdfast.errors import Fenced, HoldfastError, RunHeld, Unavailable
from holdfast.ids import Ids
from holdfast.ledger.core import Core
from holdfast.ledger.schema import Registry
from holdfast.steps.runs import RunBook
from holdfast.store import Store
from holdfast.testing.crashing import Crash, Doubt, Fate, Fuse, MortalEngine
from holdfast.testing.fakes import ManualClock, SeededIds
from holdfast.wiring import Wiring

LEASE_S = 30.0
FATES: tuple[Fate, ...] = ("lost", "landed", "late", "away")
_TENANT = "default"


class Place(Protocol):
    """Where the stores of trials are."""

    def open(self, clock: Clock, ids: Ids) -> Engine:
        """An engine on the store of this trial, for one more process."""
        ...

    def end(self) -> None:
        """The trial is over: close what was opened, and leave an empty store for the next."""
        ...


class InMemory:
    """A store in memory, which the lives of a trial share."""

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def open(self, clock: Clock, ids: Ids) -> Engine:
        self._engine = self._engine or open_engine("ram:", clock, ids)
        return self._engine

    def end(self) -> None:
        self._engine = None


class InFile:
    """A SQLite file that each life opens for itself. The dead ones keep theirs open, so none of them closes it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "trial.db"
        self._engines: list[Engine] = []

    def open(self, clock: Clock, ids: Ids) -> Engine:
        self._engines.append(open_engine(str(self._path), clock, ids))
        return self._engines[-1]

    def end(self) -> None:
        while self._engines:
            self._engines.pop().close()
        for path in self._path.parent.glob(f"{self._path.name}*"):
            path.unlink()


class Shared:
    """A store that is costly to open, as one on a server: opened once, and emptied after each trial."""

    def __init__(self, engine: Engine, empty: Callable[[], None]) -> None:
        self._engine, self._empty = engine, empty

    def open(self, clock: Clock, ids: Ids) -> Engine:
        return self._engine

    def end(self) -> None:
        self._empty()


@dataclass
class Findings:
    """What a technique came to: how many trials, over which points, and what was wrong."""

    technique: str
    trials: int = 0
    points: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"{self.technique}: {self.trials} trials over {self.points} points, {len(self.problems)} violations"
        return "\n  ".join((head, *self.problems[:20]))


class Trial:
    """One store, one world, and the processes that live on them one after the other."""

    def __init__(self, place: Place, scenario: Scenario, world: World) -> None:
        self._place, self._scenario, self._world = place, scenario, world
        self.clock = ManualClock()
        self.acks: list[Ack] = []
        self.crashes = self._lives = 0
        self._stores: list[Store] = []

    def live(self, fuse: Fuse, doubt: Doubt | None = None, program: Callable[[Life], None] | None = None) -> bool:
        """Let a process run the program; say whether it came to its end."""
        self._lives += 1
        life = Life(self.store(fuse, doubt), self._world.told(fuse.point), self.acks, self._lives)
        try:
            # A life of its own: what is current in another one, paused in this very thread, is not current here.
            contextvars.Context().run(program or self._scenario.program, life)
        except Crash:
            self.crashes += 1
        else:
            return True
        finally:
            life.store.wiring.runs.renewer.close()
        self.clock.advance(LEASE_S + 1)
        return False

    def store(self, fuse: Fuse, doubt: Doubt | None = None) -> Store:
        """The store as one more process opens it."""
        ids = SeededIds(len(self._stores) + 1)
        engine = MortalEngine(self._place.open(self.clock, ids), fuse, doubt)
        core = Core(engine, _TENANT, self.clock, Registry())
        self._stores.append(Store(Wiring(core, RunBook(core, ids, LEASE_S))))
        return self._stores[-1]

    def wrong(self, *, ended: bool) -> Iterator[str]:
        promises = self._scenario.promises
        yield from wrong(self.store(Fuse()), self._world, self.acks, promises, crashes=self.crashes, ended=ended)


class Laboratory:
    """Strikes scenarios in one place. ``folder`` is where the outside world is kept, whose probe may not be honest."""

    def __init__(self, place: Place, folder: Path, *, honest: bool = True) -> None:
        self._place, self._world, self._honest = place, folder / "world.jsonl", honest
        self._now: Trial | None = None

    # What can be struck

    def points(self, scenario: Scenario, *before: int) -> list[str]:
        """The points of a scenario, by name, in the life after crashes at the given ones."""
        with self._trial(scenario) as trial:
            for at in before:
                trial.live(Fuse(at))
            trial.live(last := Fuse())
            return last.names

    # Crashes

    def crash_everywhere(self, scenario: Scenario) -> Findings:
        """Crash at every point, each in a trial of its own."""
        with self._measured(f"crash points: {scenario.name}") as found:
            for at in range(len(self.points(scenario))):
                self._crash(scenario, (at,), found)
        return found

    def crash_twice_everywhere(self, scenario: Scenario) -> Findings:
        """Crash at every point, and then at every point of what follows."""
        with self._measured(f"pairs of crash points: {scenario.name}") as found:
            for first in range(len(self.points(scenario))):
                for second in range(len(self.points(scenario, first))):
                    self._crash(scenario, (first, second), found)
        return found

    def _crash(self, scenario: Scenario, at: tuple[int, ...], found: Findings) -> None:
        with self._trial(scenario) as trial:
            names = []
            for number in at:
                fuse = Fuse(number)
                trial.live(fuse)
                names.append(fuse.names[-1] if fuse.dead else f"point {number}, which was not reached")
                self._note(found, names, trial.wrong(ended=False))
            self._finish(trial, names, found)
        found.trials, found.points = found.trials + 1, found.points + len(at)

    # Pauses

    def pause_everywhere(self, scenario: Scenario, *, keyed: bool = True) -> Findings:
        """Pause at every point for longer than the lease, let another process end the work, and wake the first."""
        with self._measured(f"paused holder: {scenario.name}") as found:
            for at in range(len(self.points(scenario))):
                self._pause(scenario, at, keyed, found)
        return found

    def _pause(self, scenario: Scenario, at: int, keyed: bool, found: Findings) -> None:
        with self._trial(scenario, keyed=keyed) as trial:

            def other_takes_over() -> None:
                trial.clock.advance(LEASE_S + 1)
                trial.live(Fuse())

            fuse = Fuse(at, other_takes_over)
            self._survive(trial, fuse, None, found)
            self._finish(trial, [f"paused {fuse.names[at]}"], found)
        found.trials, found.points = found.trials + 1, found.points + 1

    def interrupt_everywhere(self, scenario: Scenario, act: Callable[[Life], None]) -> Findings:
        """At every point let another process do something, as a person who cancels would; nobody crashes."""
        with self._measured(f"interrupted: {scenario.name}") as found:
            for at in range(len(self.points(scenario))):
                with self._trial(scenario) as trial:
                    fuse = Fuse(at, lambda: self._other(act))
                    self._survive(trial, fuse, None, found)
                    trial.clock.advance(LEASE_S + 1)
                    self._finish(trial, [f"interrupted {fuse.names[at]}"], found)
                found.trials, found.points = found.trials + 1, found.points + 1
        return found

    def jump_everywhere(self, scenario: Scenario, seconds: float) -> Findings:
        """Set the clock by so much, forwards or backwards, at every point; nobody crashes."""
        with self._measured(f"clock jumps by {seconds / 86_400:g} days: {scenario.name}") as found:
            for at in range(len(self.points(scenario))):
                with self._trial(scenario) as trial:
                    fuse = Fuse(at, partial(trial.clock.advance, seconds))
                    self._survive(trial, fuse, None, found)
                    self._finish(trial, [f"clock jumped {fuse.names[at]}"], found)
                found.trials, found.points = found.trials + 1, found.points + 1
        return found

    # Doubt

    def doubt_everywhere(self, scenario: Scenario) -> Findings:
        """Let every commit once end with its outcome unknown, or the store away, while the process lives on."""
        with self._measured(f"commits in doubt: {scenario.name}") as found:
            commits = sum(name.startswith("before commit") for name in self.points(scenario))
            for at, fate in itertools.product(range(commits), FATES):
                self._doubt(scenario, Doubt(at, fate), found)
        return found

    def doubt_while(self, scenario: Scenario, act: Callable[[Life], None]) -> Findings:
        """The same, while another process does something: at that moment, or just before the next try."""
        with self._measured(f"commits in doubt while others act: {scenario.name}") as found:
            commits = sum(name.startswith("before commit") for name in self.points(scenario))
            for at, fate, later in itertools.product(range(commits), FATES, (False, True)):
                self._doubt(scenario, Doubt(at, fate, lambda: self._other(act), later=later), found)
        return found

    def _other(self, act: Callable[[Life], None]) -> None:
        """Another process, which does something beside the one that is being watched."""
        assert self._now is not None
        self._now.live(Fuse(), program=act)

    def _doubt(self, scenario: Scenario, doubt: Doubt, found: Findings) -> None:
        with self._trial(scenario) as trial:
            self._survive(trial, Fuse(), doubt, found)
            self._note(found, [doubt.name], trial.wrong(ended=False))
            trial.clock.advance(LEASE_S + 1)
            self._finish(trial, [doubt.name], found)
        found.trials, found.points = found.trials + 1, found.points + 1

    def _survive(self, trial: Trial, fuse: Fuse, doubt: Doubt | None, found: Findings) -> None:
        """A life that may end with an error that a caller must expect: it was fenced, or the store was away."""
        try:
            trial.live(fuse, doubt)
        except (Fenced, RunHeld, Unavailable):
            trial.crashes += 1
        except Exception as error:
            where = doubt.name if doubt is not None else fuse.names[-1]
            found.problems.append(f"{where}: the process ended with {type(error).__name__}: {error}")

    # Inside

    def _finish(self, trial: Trial, names: list[str], found: Findings) -> None:
        """One more life, which must bring everything to its end; then every promise."""
        try:
            trial.live(Fuse())
        except Exception as error:
            found.problems.append(f"{'; then '.join(names)}: the last life ended with {type(error).__name__}: {error}")
        self._note(found, names, trial.wrong(ended=True))

    @contextmanager
    def _trial(self, scenario: Scenario, *, keyed: bool = False) -> Iterator[Trial]:
        self._world.unlink(missing_ok=True)
        try:
            world = World(self._world, keyed=keyed, synced=False, honest=self._honest)
            self._now = Trial(self._place, scenario, world)
            yield self._now
        finally:
            self._place.end()

    @contextmanager
    def _measured(self, technique: str) -> Iterator[Findings]:
        found, began = Findings(technique), time.monotonic()
        try:
            yield found
        finally:
            found.seconds = time.monotonic() - began

    def _note(self, found: Findings, names: list[str], problems: Iterator[str]) -> None:
        where = "; then ".join(names)
        try:
            found.problems += [f"{where}: {problem}" for problem in problems]
        except HoldfastError as error:
            found.problems.append(f"{where}: looking failed with {type(error).__name__}: {error}")
