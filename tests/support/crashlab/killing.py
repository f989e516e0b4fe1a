"""Real processes, killed with SIGKILL at moments nobody chose, and looked at afterwards.

One process is started that imports everything, opens nothing and has no threads: the nursery. It forks a child for each
round, kills one after a short random while, and starts the next. A child resumes what the last one left, then begins
new work without end; what it was told it writes to a file before it goes on. In the end everything is resumed and every
promise is checked. The times come from a seed; what they hit does not, so a report also says what was hit. The child of
the last round leaves nothing to chance: it stops where an effect has happened that nobody recorded and is killed there.

Deliberately absent: the loss of what the system had not yet written to disk. A kill is blind to that; ``power`` is not.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from crashlab.promises import Ack, Journalled, journals, wrong
from crashlab.runs_workload import PROMISES, begin, handlers, settle
from crashlab.scenarios import Life
from crashlab.world import World, whole_lines
from holdfast.store import open as open_store

_ENOUGH_RUNS = 5_000
_LONGEST_S = 1_800
_OPENED = 0.9
_OPEN_S = 10.0
_HELD_S = 120.0
_OPEN, _INSIDE = b".", b"!"


class Plan(msgspec.Struct, frozen=True):
    """How often to kill, and after how long. ``at_once`` children live at the same time, in a world whose probe may not
    be ``honest``. The child of the last round is killed inside a step, however slow the machine is."""

    url: str
    folder: str
    rounds: int
    seed: int
    at_once: int = 1
    longest_ms: float = 30.0
    honest: bool = True

    def world(self) -> World:
        return World(Path(self.folder) / "world.jsonl", honest=self.honest)

    @property
    def acks(self) -> Path:
        return Path(self.folder) / "acks.jsonl"

    @property
    def troubles(self) -> Path:
        return Path(self.folder) / "troubles.txt"


class Killed(msgspec.Struct, frozen=True):
    """What came of it. A kill was ``inside_run`` when another process had to take the run up, and ``inside_step`` when
    a step was left of which nobody had recorded the end; ``given_up`` runs had been killed too often in one place."""

    rounds: int
    seed: int
    seconds: float
    runs: int
    effects: int
    acks: int
    inside_run: int
    inside_step: int
    asked: int
    given_up: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        head = (
            f"{self.rounds} kills in {self.seconds:.1f} s (seed {self.seed}): {self.inside_run} inside a run, "
            f"{self.inside_step} inside a step, {self.asked} probes; {self.runs} runs, {self.effects} effects, "
            f"{self.acks} acknowledged, {self.given_up} given up and opened again; {len(self.problems)} violations"
        )
        return "\n  ".join((head, *self.problems[:20]))


def kill(plan: Plan) -> Killed:
    """Go through a plan, resume what is left, and say what is wrong. The folder must be new."""
    began = time.monotonic()
    _run_nursery(plan)
    seconds = time.monotonic() - began
    acks: list[Ack] = []
    with open_store(plan.url, tenant="default") as store:
        given_up = settle(store, plan.world(), acks)
        acks += _told(plan.acks)
        runs = journals(store)
        problems = [*wrong(store, plan.world(), acks, PROMISES), *_troubles(plan)]
    return Killed(
        plan.rounds, plan.seed, seconds, len(runs), len(plan.world().bookings()), len(acks), sum(map(_left, runs)),
        _count(runs, "resolved", lambda facts: facts["decision"] != "dropped"), _count(runs, "probed", bool),
        given_up, tuple(problems),
    )  # fmt: skip


def _run_nursery(plan: Plan) -> None:
    program = "import sys; from crashlab.killing import nursery; nursery(sys.argv[1])"
    command = [sys.executable, "-c", program, msgspec.json.encode(plan).decode()]
    found_in = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(command, start_new_session=True, env={**os.environ, "PYTHONPATH": found_in})
    try:
        if process.wait(_LONGEST_S):
            raise RuntimeError(f"the nursery ended with {process.returncode}")
    finally:
        with suppress(ProcessLookupError):  # its children are of its group
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _told(path: Path) -> Iterator[Ack]:
    with suppress(FileNotFoundError):
        yield from whole_lines(path.read_bytes(), Ack)


def _troubles(plan: Plan) -> list[str]:
    """What children ended with by themselves, which none should: the last of it."""
    return [plan.troubles.read_text()[-2_000:]] if plan.troubles.exists() else []


def _count(runs: list[Journalled], kind: str, wanted: Callable[[dict[str, Any]], Any]) -> int:
    return sum(bool(wanted(moment.facts)) for run in runs for moment in run.timeline.moments if moment.kind == kind)


def _left(run: Journalled) -> int:
    """How often a run was taken up that its holder had neither ended nor let go."""
    held = count = 0
    for moment in run.timeline.moments:
        if moment.kind == "opened":
            count += held
            held = moment.facts["why"] != "submitted"
        elif moment.kind in ("parked", "released", "ended"):
            held = 0
    return count


# In the nursery


def nursery(text: str) -> None:
    """Fork and kill, round by round. This process has no thread and no store of its own."""
    plan = msgspec.json.decode(text, type=Plan)
    _load(plan.url)
    dice = random.Random(plan.seed)
    gc.freeze()
    living: list[Child] = []
    for number in range(1, plan.rounds + 1):
        while len(living) < plan.at_once:
            living.append(_born(plan, number, len(living)))
        if number == plan.rounds:
            child = living.pop()
            child.hear(_INSIDE, _HELD_S)
        else:
            child = living.pop(dice.randrange(len(living)))
            if dice.random() < _OPENED:  # the others may be killed while they open the store
                child.hear(_OPEN, _OPEN_S)
            time.sleep(plan.longest_ms * dice.random() / 1_000)
        child.end()
    for child in living:
        child.end()


def _load(url: str) -> None:
    """Import what a child will need, so that it is not killed while it imports."""
    if url.startswith("postgres"):
        import holdfast.engine.postgres  # noqa: PLC0415 - only where it is asked for
    else:
        import holdfast.engine.sqlite  # noqa: F401, PLC0415 - only where it is asked for


class Child:
    """A forked process, and the pipe on which it says that its store is open, or that it has stopped inside a step."""

    def __init__(self, pid: int, told: int) -> None:
        self._pid, self._told = pid, told

    def hear(self, word: bytes, patience_s: float) -> None:
        """Wait until the child says a word; one that ended, or takes too long, is left to be killed as it is."""
        deadline = time.monotonic() + patience_s
        while select.select([self._told], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if os.read(self._told, 1) in (word, b""):
                return

    def end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._told)


def _born(plan: Plan, number: int, place: int) -> Child:
    told, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        return Child(child, told)
    try:
        _live(plan, number, place, tell)
    except BaseException:
        with contextlib.suppress(OSError), plan.troubles.open("a") as file:
            traceback.print_exc(file=file)
    os._exit(0)


# In a child


class Told(list[Ack]):
    """Acknowledgements, each written down before the caller goes on."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def append(self, ack: Ack) -> None:
        os.write(self._file, b"\n" + msgspec.json.encode(ack) + b"\n")


def _live(plan: Plan, number: int, place: int, tell: int) -> None:
    """Carry on what others left, then begin one thing after the other, until killed (or left by the nursery)."""

    def stop(point: str) -> None:
        if point.startswith("after effect") and number == plan.rounds:
            os.write(tell, _INSIDE)
            signal.pause()

    parent = os.getppid()
    life = Life(open_store(plan.url, tenant="default"), plan.world().told(stop), Told(plan.acks), 0)
    os.write(tell, _OPEN)
    life.store.resume(handlers(life))
    for errand in range(_ENOUGH_RUNS):
        if os.getppid() != parent:
            return
        begin(life, f"trip_{number}x{place}", errand)
