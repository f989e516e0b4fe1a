"""Trials: a workload goes through power cuts or disk errors, and a check asks what the store still knows.

A ``Trial`` takes any workload and any check. The workload tells a ``Witness`` of every fact it tries to make durable;
the witness notes what the store answered. The check opens the recovered files with an ordinary store, compares it with
what the witness heard, and yields a sentence for everything that is wrong. Every trial is named by numbers (a point or
a fault, and a seed), and the same numbers give the same trial.

Deliberately absent: facts. What an entry, a state or a step promises is known by those who write the workload.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crashlab.disk import Fault, PowerDisk
from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.store import Store
from holdfast.store import open as open_store

_RECOVERY_CALLS = 12


class ProcessGone(Exception):
    """The power went, or the process was killed, while a workload was running. So the workload ends."""


class Witness:
    """What a workload was told about each fact it tried to make durable. Safe for many threads."""

    def __init__(self, disk: PowerDisk) -> None:
        self._disk, self._life = disk, disk.life
        self.acked: list[Any] = []
        self.unknown: list[Any] = []
        self.refused: list[tuple[Any, HoldfastError]] = []
        self.strays: list[tuple[Any, Exception]] = []

    @contextmanager
    def tries(self, fact: Any) -> Iterator[None]:
        """Note how the block ends. An error is noted and goes no further, except that a dead process ends here."""
        try:
            yield
        except ProcessGone:
            raise
        except Exception as error:
            if self._disk.life != self._life:
                self.unknown.append(fact)
                raise ProcessGone from error
            self._note(fact, error)
        else:
            self.acked.append(fact)

    def _note(self, fact: Any, error: Exception) -> None:
        if isinstance(error, OutcomeUnknown):
            self.unknown.append(fact)
        elif isinstance(error, HoldfastError):
            self.refused.append((fact, error))
        else:
            self.strays.append((fact, error))


Workload = Callable[[Store, Witness], None]
Check = Callable[[Store, Witness], Iterable[str]]


@dataclass(frozen=True)
class Outcome:
    """How one trial ended. ``fired`` says whether its cut or fault happened before the workload was through."""

    name: str
    fired: bool
    acked: int
    unknown: int
    refused: int
    checkpoints: int
    fates: Counter[str]
    problems: tuple[str, ...]


@dataclass
class Tally:
    """Many outcomes together, in numbers that a report can print."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def broken(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.problems]

    @property
    def fates(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for outcome in self.outcomes:
            total.update(outcome.fates)
        return total

    def numbers(self) -> dict[str, int]:
        count = self.outcomes
        return {
            "trials": len(count),
            "fired": sum(outcome.fired for outcome in count),
            "acknowledged": sum(outcome.acked for outcome in count),
            "unknown": sum(outcome.unknown for outcome in count),
            "refused": sum(outcome.refused for outcome in count),
            "checkpoints": sum(outcome.checkpoints for outcome in count),
            **{f"unsynced {fate}" if " " not in fate else fate: number for fate, number in sorted(self.fates.items())},
            "broken": len(self.broken),
        }

    def __str__(self) -> str:
        lines = [", ".join(f"{name} {number}" for name, number in self.numbers().items())]
        lines += [f"{outcome.name}: {'; '.join(outcome.problems[:5])}" for outcome in self.broken[:20]]
        return "\n".join(lines)


class Trial:
    """A workload, with the check it must pass after every fault, in a folder where stores can be made.

    ``after`` is run on the same store once an error is repaired; everything it tries must succeed.
    """

    def __init__(
        self,
        folder: Path,
        workload: Workload,
        check: Check,
        *,
        after: Workload | None = None,
        synchronous: str | None = None,
        checkpoint_pages: int = 25,
    ) -> None:
        self._folder, self._workload, self._check, self._after = folder, workload, check, after
        self._synchronous, self._checkpoint_pages = synchronous, checkpoint_pages

    # Power cuts

    def points(self) -> int:
        """At how many calls of a whole run, opening and closing included, the power can go."""
        with self._disk(0) as disk:
            with disk.store() as store:
                self._workload(store, Witness(disk))
            return disk.changes

    def cuts(self, count: int, seed: int = 0) -> Tally:
        """Cut ``count`` times: at every call when there are enough, otherwise at points spread over the run."""
        return Tally([self.cut(point, seed + i) for i, point in enumerate(self._spread(count))])

    def cut(self, point: int, seed: int) -> Outcome:
        """Run the workload until the power goes, now and then once more during recovery, and look what is left."""
        with self._disk(seed) as disk:
            witness = Witness(disk)
            disk.cut_after(point)
            self._run_until_end(disk, witness)
            fired = disk.off
            disk.cut()
            disk.recover()
            dice = random.Random(seed)
            if dice.random() < 1 / 3:
                disk.cut_after(dice.randint(1, _RECOVERY_CALLS))
                self._open_until_cut(disk)
                disk.cut()
                disk.recover()
            return self._outcome(f"cut at call {point}, seed {seed}", disk, witness, fired)

    def kills(self, count: int, seed: int = 0) -> Tally:
        """Like ``cuts``, but the process is killed, another one goes on, and then the power goes."""
        return Tally([self.kill(point, seed + i) for i, point in enumerate(self._spread(count))])

    def kill(self, point: int, seed: int) -> Outcome:
        """Kill the process; what it wrote but did not sync is seen by the next one, which must not rely on it."""
        with self._disk(seed) as disk:
            witness = Witness(disk)
            disk.kill_after(point)
            self._run_until_end(disk, witness)
            fired = disk.life > 0
            with disk.store() as store:
                troubles = self._run_after(disk, store, witness, dies=True)
            disk.recover()
            return self._outcome(f"killed at call {point}, seed {seed}", disk, witness, fired, troubles)

    def _spread(self, count: int) -> list[int]:
        points = self.points()
        return [1 + (i % points if count >= points else i * points // count) for i in range(count)]

    def _run_until_end(self, disk: PowerDisk, witness: Witness) -> None:
        life = disk.life
        try:
            with disk.store() as store:
                self._workload(store, witness)
        except (ProcessGone, HoldfastError):
            if disk.life == life:
                raise

    def _open_until_cut(self, disk: PowerDisk) -> None:
        with suppress(HoldfastError), disk.store():  # a store that is damaged already is found so at the end
            pass

    # Errors

    def fault(self, fault: Fault, seed: int = 0, *, dies: bool = False) -> Outcome:
        """Run the workload on a disk that fails, repair it, go on, and look what is there.

        With ``dies`` the power goes at the end, instead of the store being closed.
        """
        with self._disk(seed) as disk:
            witness = Witness(disk)
            disk.fail(fault)
            troubles = self._run_with_fault(disk, witness, dies)
            if disk.off:
                disk.recover()
            flags = [flag for flag in ("full", "lasting", "forgets", "kills") if getattr(fault, flag)]
            name = " ".join((fault.kind, str(fault.nth), *flags, *["dies"] * dies, f"seed {seed}"))
            return self._outcome(name, disk, witness, fault.fired > 0, troubles)

    def _run_with_fault(self, disk: PowerDisk, witness: Witness, dies: bool) -> list[str]:
        try:
            with disk.store() as store:
                self._workload(store, witness)
                disk.repair()
                return self._run_after(disk, store, witness, dies)
        except ProcessGone:
            disk.repair()
        except HoldfastError as error:  # it could not even be opened
            if not disk.repair():
                raise
            witness.refused.append(("opening", error))
        with disk.store() as store:
            return self._run_after(disk, store, witness, dies)

    def _run_after(self, disk: PowerDisk, store: Store, witness: Witness, dies: bool) -> list[str]:
        """Whether the store goes on once its disk works again."""
        later = Witness(disk)
        if self._after is not None:
            self._after(store, later)
        if dies:
            disk.cut()
        witness.acked += later.acked
        failed = [*later.refused, *((fact, OutcomeUnknown()) for fact in later.unknown), *later.strays]
        return [f"after the repair {fact!r} failed: {error!r}" for fact, error in failed]

    # Inside

    @contextmanager
    def _disk(self, seed: int) -> Iterator[PowerDisk]:
        place = self._folder / "disk"
        place.mkdir()
        try:
            yield PowerDisk(
                place / "store.db", seed, synchronous=self._synchronous, checkpoint_pages=self._checkpoint_pages
            )
        finally:
            shutil.rmtree(place)

    def _outcome(
        self, name: str, disk: PowerDisk, witness: Witness, fired: bool, troubles: Iterable[str] = ()
    ) -> Outcome:
        problems = [*troubles, *(f"{fact!r} ended with {error!r}, which is not ours" for fact, error in witness.strays)]
        try:
            with open_store(disk.path, tenant="default") as store:
                problems += self._check(store, witness)
        except HoldfastError as error:
            problems.append(f"{type(error).__name__} while looking: {error}")
        counts = len(witness.acked), len(witness.unknown), len(witness.refused)
        return Outcome(name, fired, *counts, disk.checkpoints, disk.fates, tuple(problems))
