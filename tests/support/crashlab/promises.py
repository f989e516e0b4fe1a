"""What must hold of runs after any crash: the promises of durable steps, as questions to a store and to the world.

``wrong`` yields one sentence for each promise that is broken, and nothing when all are kept. It looks at the store
through its own surface and at the journal of every run; the world and what callers were told come from outside.
Deliberately absent: how the crash was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from crashlab.world import Booking, World
from holdfast.engine.contract import Query
from holdfast.ledger.core import scan_all
from holdfast.records import Entry
from holdfast.steps.declare import UNDO
from holdfast.steps.journal import ENDED, KIND, RunHeader, to_header
from holdfast.steps.timeline import Moment, StepInfo, Timeline
from holdfast.store import Store


class Ack(msgspec.Struct, frozen=True):
    """Something that a caller was told: the result of a step, the end of a run, an entry, a signal that counts."""

    kind: Literal["step", "ended", "entry", "signal"]
    thread: str
    run: str
    name: str
    value: Any = None


@dataclass(frozen=True)
class Bounds:
    """How often a thing may have been done: at least, at most, and how much more for each crash that was survived."""

    least: int
    most: int
    per_crash: int = 0


@dataclass(frozen=True)
class Promises:
    """What a piece of work promises. ``once`` names the effects that may happen once for each key, ``totals`` how often
    each happens in all, ``ends`` what a run may come to (by "thread/run"), and the default is for all others."""

    once: frozenset[str] = frozenset()
    totals: dict[str, Bounds] = field(default_factory=dict)
    ends: dict[str, frozenset[str]] = field(default_factory=dict)
    end: frozenset[str] = frozenset({"done"})


class _Threads:
    """The logs and states of a store, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logs: dict[str, list[Entry]] = {}
        self._states: dict[str, dict[str, Any]] = {}

    def log(self, thread: str) -> list[Entry]:
        if thread not in self._logs:
            handle = self._store.thread(thread)
            self._logs[thread] = list(handle.log()) if handle.exists() else []
        return self._logs[thread]

    def state(self, thread: str) -> dict[str, Any]:
        if thread not in self._states:
            self._states[thread] = self._store.thread(thread).state(dict, default={}).value
        return self._states[thread]


class Journalled(msgspec.Struct, frozen=True):
    """A run as it is recorded, subtasks included."""

    header: RunHeader
    held: bool
    timeline: Timeline


def wrong(
    store: Store, world: World, acks: Iterable[Ack], promises: Promises, *, crashes: int = 0, ended: bool = True
) -> Iterator[str]:
    """Everything that is wrong. While the work has not ``ended``, what is only promised for its end is left out."""
    yield from (f"verify: {problem.where}: {problem.what}" for problem in store.verify().problems)
    runs, bookings, threads = journals(store), world.bookings(), _Threads(store)
    made = {(booking.key, booking.ref) for booking in bookings}
    yield from _effects(bookings, promises, crashes, ended)
    yield from _gaps(store, threads)
    for run in runs:
        where = f"run {run.header.thread}/{run.header.name}"
        yield from (f"{where}: {what}" for what in _journal(run))
        yield from (f"{where}: {what}" for what in _told(threads, run))
        yield from (f"{where}: {what}" for what in _from_the_world(run, made))
        yield from (f"{where}: {what}" for what in _written(threads, run))
    yield from _acknowledged(threads, runs, acks)
    if ended:
        yield from _stuck(store, runs, promises)
        yield from (f"run {run.header.thread}/{run.header.name}: {what}" for run in runs for what in _undone(run))
        yield from _orphans(runs, bookings, promises)


def journals(store: Store) -> list[Journalled]:
    """Every run of a store, subtasks too."""
    core, runs = store.core, store.wiring.runs
    found = []
    for record in scan_all(core.engine, core.tenant, Query(KIND)):
        header = to_header(record.body)
        timeline = runs.timeline(header.thread, header.name)
        found.append(Journalled(header, timeline.run.status == "running", timeline))
    return found


# Effects


def _effects(bookings: list[Booking], promises: Promises, crashes: int, ended: bool) -> Iterator[str]:
    for (key, what), count in Counter((booking.key, booking.what) for booking in bookings).items():
        if what in promises.once and count > 1:
            yield f"{what} was done {count} times under key {key}"
    totals = Counter(booking.what for booking in bookings)
    for what, bounds in promises.totals.items():
        most = bounds.most + crashes * bounds.per_crash
        if totals[what] > most or (ended and totals[what] < bounds.least):
            yield f"{what} was done {totals[what]} times; allowed are {bounds.least} to {most}"


def _from_the_world(run: Journalled, made: set[tuple[str, str]]) -> Iterator[str]:
    """A recorded booking is one that was made, under the key of its step."""
    for step in run.timeline.steps:
        ref = _ref(step)
        if ref is not None and (step.key, ref) not in made:
            yield f"step {step.name} is recorded with {ref}, which the world does not know"


def _orphans(runs: list[Journalled], bookings: list[Booking], promises: Promises) -> Iterator[str]:
    """Once a run is done, what it did once is recorded, each by the reference that the world has."""
    steps = {step.key: (run, step) for run in runs for step in run.timeline.steps if step.key}
    for booking in bookings:
        if booking.what not in promises.once:
            continue
        run, step = steps.get(booking.key, (None, None))
        if run is None or step is None:
            yield f"{booking.ref} was made under key {booking.key}, which no run has on record"
        elif run.header.status == "done" and _ref(step) != booking.ref and step.how != "skipped":
            yield f"{booking.ref} is not what step {step.name} recorded: {step.result!r}"


def _ref(step: StepInfo) -> str | None:
    known = step.standing == "completed" and isinstance(step.result, dict)
    return step.result.get("ref") if known else None


def _undone(run: Journalled) -> Iterator[str]:
    """A cancelled run has undone what it did and could undo; any other has undone nothing."""
    done = {step.name for step in run.timeline.steps if step.standing == "completed" and step.how != "skipped"}
    undoable = {moment.step for moment in run.timeline.moments if moment.kind == "intent" and moment.facts["undo"]}
    undone = {name.removesuffix(UNDO) for name in done if name.endswith(UNDO)}
    wanted = done & undoable if run.header.status == "cancelled" else set()
    if undone != wanted:
        yield f"it is {run.header.status}, did {sorted(done & undoable)} and undid {sorted(undone)}"


# Logs and journals


def _gaps(store: Store, threads: _Threads) -> Iterator[str]:
    for info in store.threads(limit=None):
        numbers = [entry.number for entry in threads.log(info.id)]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"thread {info.id} has a gap: {numbers}"
    positions = [commit.position for commit in store.watch(timeout_s=0)]
    if positions != list(range(1, len(positions) + 1)):
        yield f"the feed has a gap: {positions}"


def _journal(run: Journalled) -> Iterator[str]:
    """One completion per step, after an intent, by whoever held the run then; nothing after the end."""
    moments = run.timeline.moments
    if [moment.number for moment in moments] != list(range(1, len(moments) + 1)):
        yield "its journal has a gap"
    completed = Counter(moment.step for moment in moments if moment.kind == "completed")
    yield from (f"step {step} is completed {count} times" for step, count in completed.items() if count > 1)
    holder, ended, intended = "", False, set[str | None]()
    for moment in moments:
        if moment.kind == "opened":
            holder, ended = moment.facts["by"], False
        elif ended:
            yield f"{moment.kind} was recorded after its end"
        if moment.kind == "intent":
            intended.add(moment.step)
            # A subtask is opened once and carried on by whoever holds its run, so its journal has no holders.
            if run.header.parent is None and moment.facts["by"] != holder:
                yield f"{moment.facts['by']} intended {moment.step} while {holder} held it"
        if moment.kind == "completed" and moment.facts["how"] in ("ran", "probed") and moment.step not in intended:
            yield f"step {moment.step} was completed without an intent"
        ended = ended or moment.kind == "ended"


def _told(threads: _Threads, run: Journalled) -> Iterator[str]:
    """The thread's log tells each completion, decision and end exactly once."""
    own = run.header.name
    entries = [entry.content for entry in threads.log(run.header.thread) if entry.kind == "event"]
    said = Counter(_line(content) for content in entries if content.get("run") == own)
    facts = Counter(line for moment in run.timeline.moments if (line := _expected(run, moment)) is not None)
    for line in facts.keys() | said.keys():
        if line[0] in ("step", "resolution", "ended") and facts[line] != said[line]:
            yield f"{line} happened {facts[line]} times and is in the log {said[line]} times"


def _line(content: dict[str, Any]) -> tuple[str, str, str]:
    name = str(content["name"])
    outcome = str(content.get("outcome") or content.get("decision"))
    if name == "run" and outcome in ENDED:
        name = "ended"
    return name, str(content.get("step") or content.get("signal") or ""), outcome


def _expected(run: Journalled, moment: Moment) -> tuple[str, str, str] | None:
    step = moment.step or ""
    if moment.kind == "completed" and moment.facts["how"] in ("ran", "probed", "subtask"):
        return "step", step, "completed"
    if moment.kind == "completed" and moment.facts["how"] == "skipped":
        return "step", step, "skipped"
    if moment.kind == "failed" and moment.facts["final"]:
        return "step", step, "failed"
    if moment.kind == "resolved":
        return "resolution", step, moment.facts["decision"]
    if moment.kind == "ended" and run.header.parent is None:
        return "ended", "", moment.facts["status"]
    return None


def _written(threads: _Threads, run: Journalled) -> Iterator[str]:
    """What a step's function wrote is there with its completion, once; a completion by probe brings nothing of it."""
    entries = Counter(entry.key for entry in threads.log(run.header.thread) if entry.kind == "message")
    for step in run.timeline.steps:
        ref = _ref(step)
        if ref is None:
            continue
        wanted = 1 if "writes" in step.result else 0
        if entries[ref] != wanted:
            yield f"step {step.name} completed ({step.how}), and its entry is there {entries[ref]} times"
        value = threads.state(run.header.thread).get(f"{run.header.name}_{step.name}")
        if wanted and value != ref:
            yield f"step {step.name} completed, and the state has {value!r} instead of {ref}"


# What callers were told


def _acknowledged(threads: _Threads, runs: list[Journalled], acks: Iterable[Ack]) -> Iterator[str]:
    known = {(run.header.thread, run.header.name): run for run in runs}
    for ack in acks:
        run = known.get((ack.thread, ack.run))
        if ack.kind == "entry":
            if not any(entry.key == ack.name for entry in threads.log(ack.thread)):
                yield f"entry {ack.name} of {ack.thread} was acknowledged and is missing"
        elif run is None:
            yield f"run {ack.thread}/{ack.run} was acknowledged and is missing"
        elif (found := _recorded(run, ack)) != [ack.value]:
            yield f"{ack.kind} {ack.name} of {ack.thread}/{ack.run} was told as {ack.value!r}; recorded is {found}"


def _recorded(run: Journalled, ack: Ack) -> list[Any]:
    match ack.kind:
        case "step":
            return [step.result for step in run.timeline.steps if step.name == ack.name and step.ended is not None]
        case "signal":
            signals = [moment.facts for moment in run.timeline.moments if moment.kind == "signal"]
            return [facts["value"] for facts in signals if facts["name"] == ack.name]
        case _:
            return [run.timeline.result]


def _stuck(store: Store, runs: list[Journalled], promises: Promises) -> Iterator[str]:
    for run in runs:
        if run.header.parent is not None:
            continue
        name, status = f"{run.header.thread}/{run.header.name}", run.timeline.run.status
        if status not in promises.ends.get(name, promises.end):
            wanted, error = "/".join(sorted(promises.ends.get(name, promises.end))), run.timeline.error
            yield f"run {name} is {status}; expected {wanted}" + (f" ({error.get('message')})" if error else "")
    for name in promises.ends.keys() - {f"{run.header.thread}/{run.header.name}" for run in runs}:
        yield f"run {name} is not there"
    ended = {(run.header.thread, run.header.name) for run in runs if run.header.status in ENDED}
    for _, terms in store.wiring.runs.leases():
        if (terms.thread, terms.run) in ended:
            yield f"run {terms.thread}/{terms.run} has ended and still has a lease"
