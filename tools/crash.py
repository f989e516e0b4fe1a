"""The long form of the crash tests, which `make crash` runs: every crash point, thousands of kills, hundreds of cuts.

It prints one line for each technique (rounds, points, seed, violations, seconds) and ends with 1 if any promise was
broken. Everything happens in a temporary folder on this machine, and ends by itself.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from crashlab import scenarios
from crashlab.killing import Plan, kill
from crashlab.laboratory import Findings, InFile, InMemory, Laboratory
from crashlab.power import Trial
from crashlab.runs_workload import Errands
from crashlab.scenarios import SCENARIOS

YEAR_S = 365 * 86_400.0


@dataclass(frozen=True)
class Row:
    technique: str
    rounds: int
    points: int
    seed: str
    problems: tuple[str, ...]
    seconds: float
    note: str = ""

    def __str__(self) -> str:
        figures = f"{self.rounds:>7,} {self.points:>8,} {self.seed:>10} {len(self.problems):>10} {self.seconds:>8.1f}"
        return f"{self.technique:<34} {figures}  {self.note}".rstrip()


HEAD = f"{'technique':<34} {'rounds':>7} {'points':>8} {'seed':>10} {'violations':>10} {'seconds':>8}"


def laboratory(folder: Path) -> Iterator[Row]:
    """Every point of every scenario, on both embedded engines; nothing is left to chance, so there is no seed."""
    ram, file = Laboratory(InMemory(), folder), Laboratory(InFile(folder), folder)
    together: list[tuple[str, Callable[[], list[Findings]]]] = [
        ("crash points, ram", lambda: [ram.crash_everywhere(one) for one in SCENARIOS]),
        ("crash points, SQLite", lambda: [file.crash_everywhere(one) for one in SCENARIOS]),
        ("pairs of crash points, ram", lambda: [ram.crash_twice_everywhere(one) for one in SCENARIOS]),
        ("pairs, short scenario, SQLite", lambda: [file.crash_twice_everywhere(scenarios.SHORT)]),
        ("holder paused past its lease", lambda: [ram.pause_everywhere(one) for one in SCENARIOS]),
        ("commits in doubt", lambda: [ram.doubt_everywhere(one) for one in SCENARIOS]),
        (
            "commits in doubt while others act",
            lambda: [
                ram.doubt_while(scenarios.WAIT, scenarios.approve_it),
                ram.doubt_while(scenarios.UNDOABLE, scenarios.cancel_it),
            ],
        ),
        (
            "cancelled or signalled anywhere",
            lambda: [
                ram.interrupt_everywhere(scenarios.UNDOABLE, scenarios.cancel_it),
                ram.interrupt_everywhere(scenarios.WAIT, scenarios.approve_it),
            ],
        ),
        (
            "clock jumps by ten years",
            lambda: [ram.jump_everywhere(one, by) for one in SCENARIOS for by in (10 * YEAR_S, -10 * YEAR_S)],
        ),
    ]
    for technique, work in together:
        found = work()
        problems = tuple(problem for each in found for problem in each.problems)
        totals = (sum(each.trials for each in found), sum(each.points for each in found))
        yield Row(technique, *totals, "-", problems, sum(each.seconds for each in found))


def kills(folder: Path, rounds: int, seed: int) -> Iterator[Row]:
    """SIGKILL, in the long run one process at a time, in a fifth of the rounds three at once."""
    shares = (("SIGKILL, one process", rounds - rounds // 5, 1), ("SIGKILL, three processes", rounds // 5, 3))
    for technique, share, at_once in shares:
        place = folder / f"kills-{at_once}"
        place.mkdir()
        killed = kill(Plan(str(place / "agent.db"), str(place), share, seed, at_once))
        note = f"{killed.inside_run} inside a run, {killed.runs:,} runs, {killed.effects:,} effects"
        yield Row(technique, share, killed.inside_step, str(seed), killed.problems, killed.seconds, note)


def cuts(folder: Path, count: int, seed: int) -> Iterator[Row]:
    """Power cuts in the middle of runs, and a control without syncs that must show harm."""
    errands = Errands()
    for technique, many, synchronous in (("power cuts", count, None), ("control: cuts without sync", 30, "NORMAL")):
        began = time.monotonic()
        trial = Trial(folder, errands.workload, errands.check, synchronous=synchronous)
        tally = trial.cuts(many, seed)
        problems = tuple(f"{broken.name}: {'; '.join(broken.problems[:3])}" for broken in tally.broken)
        numbers = tally.numbers()
        note = f"of {trial.points()} points; {numbers['acknowledged']:,} acknowledged"
        if synchronous is not None:
            note = f"{len(problems)} of {many} did harm, as they must"
            problems = () if problems else ("cuts without sync did no harm: this harness proves nothing",)
        yield Row(technique, many, numbers["fired"], str(seed), problems, time.monotonic() - began, note)


def main() -> int:
    """Run everything, print the table, and say what is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000, help="kills")
    parser.add_argument("--cuts", type=int, default=500, help="power cuts")
    parser.add_argument("--seed", type=int, help="of the kills and cuts; without it a new one, which is printed")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    broken: list[Row] = []
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as name:
        folder = Path(name)
        rows = (laboratory(folder), kills(folder, given.rounds, seed), cuts(folder, given.cuts, seed))
        for row in (row for group in rows for row in group):
            print(row, flush=True)
            broken += [row] if row.problems else []
    for row in broken:
        print(f"\n{row.technique}:", *row.problems[:20], sep="\n  ")
    print(f"\nseed {seed}: {'broken promises above' if broken else 'every promise was kept'}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
