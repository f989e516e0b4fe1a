"""LangGraph's checkpoints: ours beside the savers that come with LangGraph, in the same run.

    PYTHONPATH=src:. ENV/bin/python -m benchmarks.checkpoints [--quick] [--only PART …] [--svg FILE]

ENV is the environment that ``tools/adapters.py`` makes for ``langgraph``: its savers do not live beside everything else
that is measured. ``bytes``: what 200 and 2,000 messages take, one message a turn and as one run. ``turns``: seconds for
a turn and to read the newest state with 40 to 2,000 messages before it, by turns of one each; a warm saver is the one
that served the turn before, a cold one is new, as in a process that was just started. ``many``: 100 threads at once in
an async program, and how long other work waits for a thread meanwhile. ``kills``: finished steps that run again after
SIGKILL. ``together``: turns that are lost when three are asked on one thread at once. All of it takes about a quarter
of an hour and up to 8 GB of disk for a while.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import multiprocessing
import os
import platform
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.func import entrypoint
from langgraph.func import task as bundled_task

from benchmarks.checkpointers import (
    LENGTH,
    OURS,
    OURS_ON_POSTGRES,
    POSTGRES_SAVER,
    SQLITE,
    SQLITE_SAVER,
    THREAD,
    Durability,
    Keeper,
    Way,
    answering,
    ask,
    count,
    grown,
    in_turn,
    loaded,
    text,
    worked,
)
from benchmarks.growth import drawn, told
from benchmarks.measure import Row, spread, table
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.adapters.langgraph import task as durable_task
from holdfast.testing.postgres import Server

PARTS = ("bytes", "turns", "many", "kills", "together")
DURABILITIES: tuple[Durability, ...] = ("sync", "async")
USUAL = [Way(keeper) for keeper in (OURS, SQLITE_SAVER, OURS_ON_POSTGRES, POSTGRES_SAVER)]
DELTA = [Way(keeper, delta=True) for keeper in (SQLITE_SAVER, POSTGRES_SAVER)]
AT_EXIT = [Way(keeper, durability="exit") for keeper in (OURS, SQLITE_SAVER)]
GIVEN = [Way(keeper, form=form) for keeper in (OURS, OURS_ON_POSTGRES) for form in ("tuple", "dict")]
RAW = "raw text"


class Amounts(NamedTuple):
    """How much is measured: points of growth, of which two are compared, and repeats."""

    points: tuple[int, ...] = (25, 50, 100, 200, 400, 800, 2_000)
    few: int = 200
    many: int = 2_000
    lengths: tuple[int, ...] = (40, 200, 600, 2_000)
    turns: int = 21
    rounds: int = 5
    threads: int = 100


FULL = Amounts()
QUICK = Amounts(points=(25, 50, 100, 200, 400), few=50, many=400, lengths=(40, 400), turns=15, rounds=3, threads=30)


class Bench(NamedTuple):
    """Where stores are made, and how much is measured."""

    folder: Path
    server: Server
    amounts: Amounts

    @contextmanager
    def place(self, keeper: Keeper) -> Iterator[str]:
        """A place for one store, gone afterwards: some of them take gigabytes."""
        if keeper.engine != SQLITE:
            url = self.server.create()
            yield url
            self.server.drop(url)
            return
        inside = Path(tempfile.mkdtemp(dir=self.folder))
        yield str(inside / "graph.db")
        shutil.rmtree(inside)


def run(folder: Path, amounts: Amounts = FULL, parts: tuple[str, ...] = PARTS) -> dict[str, Any]:
    packages = ("langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres")
    results: dict[str, Any] = {"versions": {name: importlib.metadata.version(name) for name in packages}}
    measures = {"bytes": _bytes, "turns": _turns, "many": _many, "kills": _kills, "together": _together}
    for part in parts:
        with Server(fsync=part != "bytes") as server:  # bytes are the same, and come sooner without
            results[part] = measures[part](Bench(folder.resolve(), server, amounts))
    return results


# Bytes


def _bytes(bench: Bench) -> dict[str, Any]:
    """They do not depend on the clock, so two are made at once."""
    few, many = bench.amounts.few, bench.amounts.many
    ways = [*USUAL, *DELTA, *AT_EXIT]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        lines = _each(bench, pool, [*ways, *GIVEN], partial(_grown, bench.folder, bench.amounts.points))
        runs = {steps: _each(bench, pool, ways, partial(_worked, bench.folder, steps)) for steps in (few, many)}
    as_turns = [_growth(name, dict(found)[few], dict(found)[many], few, many) for name, found in lines.items()]
    as_run = [_growth(way.name, runs[few][way.name], runs[many][way.name], few, many) for way in ways]
    table(f"Bytes on disk, one message of {LENGTH} characters a turn", as_turns)
    table(f"Bytes on disk, one run that says {few:,} or {many:,} messages of {LENGTH} characters", as_run)
    return {"turns": as_turns, "run": as_run, "growth": lines, "run sizes": runs}


def _each(bench: Bench, pool: ProcessPoolExecutor, ways: list[Way], make: Callable[[Way, str], Any]) -> dict[str, Any]:
    """What ``make`` gives for each way, in a store of its own; a database goes as soon as it is measured."""
    urls = ["" if way.keeper.engine == SQLITE else bench.server.create() for way in ways]
    found = {}
    for way, url, result in zip(ways, urls, pool.map(make, ways, urls), strict=True):
        found[way.name] = result
        if url:
            bench.server.drop(url)
    return found


def _grown(folder: Path, points: tuple[int, ...], way: Way, url: str) -> list[tuple[int, int]]:
    with tempfile.TemporaryDirectory(dir=folder) as inside, _told(f"{way.name}, turns"):
        return grown(way, url or str(Path(inside) / "graph.db"), points)


def _worked(folder: Path, steps: int, way: Way, url: str) -> int:
    with tempfile.TemporaryDirectory(dir=folder) as inside, _told(f"{way.name}, one run of {steps:,}"):
        return worked(way, url or str(Path(inside) / "graph.db"), steps)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Say how long something took, for whoever waits."""
    begin = time.monotonic()
    yield
    print(f"   {what}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def _growth(name: str, one: int, other: int, few: int, many: int) -> Row:
    """Two sizes with their factors to the raw text, and how much the factor grew from one to the other."""
    factors = one / (few * LENGTH), other / (many * LENGTH)
    return {
        "saver": name,
        f"{few:,} messages": told(one),
        "to raw": factors[0],
        f"{many:,} messages": told(other),
        "to raw ": factors[1],
        "factor grew": factors[1] / factors[0],
    }


# Seconds


class Took(NamedTuple):
    """Milliseconds by the clock, and of this process by the processor, which neighbours disturb less."""

    clock: float
    processor: float


def _turns(bench: Bench) -> dict[str, Any]:
    alone = [_alone(messages, bench.amounts.turns) for messages in bench.amounts.lengths]
    table("Milliseconds for a turn of LangGraph itself, without a checkpointer", alone)
    results: dict[str, Any] = {"alone": alone}
    for ours, theirs in ((OURS, SQLITE_SAVER), (OURS_ON_POSTGRES, POSTGRES_SAVER)):
        ways = [Way(ours), Way(theirs), Way(theirs, delta=True)]
        cases = [*((durability, False) for durability in DURABILITIES), ("sync", True)]
        rows, reads = [], []
        for messages in bench.amounts.lengths:
            for durability, cold in cases:
                case = f"{messages:,}, {durability}, {'cold' if cold else 'warm'}"
                rows += _row(case, _timed(bench, ways, messages, partial(_turn, durability=durability), cold=cold))
            for cold in (False, True):
                case = f"{messages:,}, {'cold' if cold else 'warm'}"
                reads += _row(case, _timed(bench, ways, messages, count, cold=cold))
        table(f"Milliseconds for a turn of two messages on {ours.engine}, {bench.amounts.turns} turns each", rows)
        table(f"Milliseconds to read the newest state on {ours.engine}", reads)
        results[ours.engine.lower()] = {"turn": rows, "read": reads}
    return results


def _alone(messages: int, turns: int) -> Row:
    """What a turn takes when nothing is saved, and the messages are handed in: no saver is faster."""
    graph = answering(None)
    said: list[Any] = [HumanMessage(text()) for _ in range(messages)]
    spent = []
    for _ in range(turns + 1):
        question = {"messages": [*said, HumanMessage(text())]}
        begin = time.perf_counter()
        said = graph.invoke(question)["messages"]
        spent.append((time.perf_counter() - begin) * 1e3)
    return {"messages": messages, "ms": statistics.median(spent[1:]), "middle half": spread(spent[1:])}


def _turn(graph: Any, durability: Durability) -> None:
    ask(graph, durability)


def _timed(
    bench: Bench, ways: list[Way], messages: int, call: Callable[[Any], Any], *, cold: bool
) -> dict[str, list[Took]]:
    """What each call took, by turns; the first of each warms up and does not count."""
    spent: dict[str, list[Took]] = {way.name: [] for way in ways}
    with _everything([bench.place(way.keeper) for way in ways]) as places:
        for way, place in zip(ways, places, strict=True):
            loaded(way, place, messages)
        with _everything([way.keeper.open(place) for way, place in zip(ways, places, strict=True)]) as savers:
            graphs = [answering(saver, delta=way.delta) for way, saver in zip(ways, savers, strict=True)]
            for number in range(bench.amounts.turns + 1):
                order = range(len(ways)) if number % 2 else range(len(ways) - 1, -1, -1)
                for each in order:
                    way, place = ways[each], places[each]
                    if cold:
                        with way.keeper.open(place) as saver:
                            took = _clocked(call, answering(saver, delta=way.delta))
                    else:
                        took = _clocked(call, graphs[each])
                    if number:
                        spent[way.name].append(took)
    return spent


@contextmanager
def _everything(managers: list[Any]) -> Iterator[list[Any]]:
    if not managers:
        yield []
        return
    with managers[0] as first, _everything(managers[1:]) as rest:
        yield [first, *rest]


def _clocked(call: Callable[[Any], Any], graph: Any) -> Took:
    begin, processor = time.perf_counter(), time.process_time()
    call(graph)
    return Took((time.perf_counter() - begin) * 1e3, (time.process_time() - processor) * 1e3)


def _row(case: str, spent: dict[str, list[Took]]) -> list[Row]:
    """Medians with the middle half, and how many times faster ours is, of pairs that ran next to each other."""
    (_, ours), *others = spent.items()
    middle = statistics.median(_clock(ours))
    row: Row = {"messages": case, "ours": middle, "middle half": spread(_clock(ours))}
    row["slowest to median"] = max(_clock(ours)) / middle
    for number, (name, theirs) in enumerate(others):
        by_clock = [other / mine for mine, other in zip(_clock(ours), _clock(theirs), strict=True)]
        by_processor = [other.processor / mine.processor for mine, other in zip(ours, theirs, strict=True)]
        short = name.split(", ")[-1]
        row |= {short: statistics.median(_clock(theirs)), "middle half" + " " * (number + 1): spread(_clock(theirs))}
        row[f"{short} to ours"] = f"{statistics.median(by_clock):.3g} ({spread(by_clock)})"
        row["by processor" + " " * number] = statistics.median(by_processor)
    return [row]


def _clock(spent: list[Took]) -> list[float]:
    return [took.clock for took in spent]


# Many


def _many(bench: Bench) -> dict[str, Any]:
    """Turns of many threads at once, ours beside LangGraph's async saver, by turns."""
    rows, ratios = [], []
    for number in range(bench.amounts.rounds):
        found = {}
        for keeper in (OURS, SQLITE_SAVER):
            with bench.place(keeper) as place:
                found[keeper] = asyncio.run(_at_once(keeper, place, bench.amounts.threads))
        for keeper, (seconds, waited) in found.items():
            rows.append({"round": number, "saver": keeper.name, "s": seconds, "another thread waited, ms": waited})
        ratios.append(found[SQLITE_SAVER][0] / found[OURS][0])
    table(f"{bench.amounts.threads} threads at once, two turns each, with ainvoke", rows)
    print(f"   theirs to ours: {statistics.median(ratios):.3g} ({spread(ratios)})")
    return {"rows": rows, "theirs to ours": ratios}


async def _at_once(keeper: Keeper, place: str, threads: int) -> tuple[float, float]:
    """Seconds for all of them, and the median in ms that work for asyncio's own threads waits meanwhile."""
    opened: Any = HoldfastSaver(place) if keeper.ours else AsyncSqliteSaver.from_conn_string(place)
    waited, done = [], asyncio.Event()

    async def beside() -> None:
        while not done.is_set():
            begin = time.perf_counter()
            await asyncio.to_thread(lambda: None)
            waited.append((time.perf_counter() - begin) * 1e3)
            await asyncio.sleep(0.005)

    async with opened as saver:
        graph = answering(saver)

        async def talk(number: int) -> None:
            for _ in range(2):
                question = {"messages": [HumanMessage(text())]}
                await graph.ainvoke(question, {"configurable": {"thread_id": f"thread {number}"}})

        other, begin = asyncio.create_task(beside()), time.perf_counter()
        await asyncio.gather(*map(talk, range(threads)))
        seconds = time.perf_counter() - begin
        done.set()
        await other
    return seconds, statistics.median(waited)


# Kills


def _kills(bench: Bench) -> dict[str, Any]:
    """Five steps finish and are told of outside; then the process is killed, and another one carries on."""
    rows = []
    for keeper in (OURS, SQLITE_SAVER):
        for durability in ("exit", "async", "sync"):
            again = [_killed(bench, keeper, _five_steps, durability) for _ in range(bench.amounts.rounds)]
            rows.append(_again(keeper.name, f'five steps, "{durability}"', again))
        again = [_killed(bench, keeper, _three_tasks, "sync") for _ in range(bench.amounts.rounds)]
        rows.append(_again(keeper.name, 'three tasks in a node, "sync"', again))
    table("Finished work that ran again after SIGKILL", rows)
    return {"rows": rows}


def _again(name: str, case: str, found: list[int | None]) -> Row:
    ended = [number for number in found if number is not None]
    rounds = ", ".join("hung" if number is None else str(number) for number in found)
    return {"saver": name, "case": case, "ran again": statistics.mean(ended) if ended else "", "rounds": rounds}


def _killed(bench: Bench, keeper: Keeper, work: Callable[..., None], durability: Durability) -> int | None:
    """How many pieces of finished work ran a second time; None when a process did not come to its end.

    A process is a fork of one that has loaded everything.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.checkpointers"])
    with bench.place(keeper) as place:
        ran = Path(place).with_suffix(".ran")
        for last in (False, True):
            child = context.Process(target=work, args=(keeper, place, str(ran), durability, last))
            child.start()
            child.join(30)
            if child.exitcode is None:
                child.kill()
                child.join()
                return None
            expected = 0 if last else -signal.SIGKILL
            if child.exitcode != expected:
                raise RuntimeError(f"the process ended with {child.exitcode}, not {expected}")
        done = ran.read_text(encoding="utf-8").split()
    return len(done) - len(set(done))


def _five_steps(keeper: Keeper, place: str, ran: str, durability: Durability, last: bool) -> None:
    def step(name: str, state: Any) -> Any:
        _tell(ran, name)
        return {"messages": [AIMessage(name)]}

    steps = [partial(step, str(number)) for number in range(1, 6)]
    with keeper.open(place) as saver:
        graph = in_turn(saver, [*steps, lambda state: None if last else _die()])
        given = None if last and graph.get_state(THREAD).values else {"messages": [HumanMessage("begin")]}
        graph.invoke(given, THREAD, durability=durability)


def _three_tasks(keeper: Keeper, place: str, ran: str, durability: Durability, last: bool) -> None:
    declare = durable_task if keeper.ours else bundled_task

    @declare
    def work(name: str) -> str:
        _tell(ran, name)
        return name

    with keeper.open(place) as saver:

        @entrypoint(checkpointer=saver)
        def flow(given: Any) -> list[str]:
            found = [work(name).result() for name in "abc"]
            if not last:
                _die()
            return found

        flow.invoke(None if last else {"go": True}, THREAD, durability=durability)


def _tell(file: str, name: str) -> None:
    with open(file, "a", encoding="utf-8") as out:
        out.write(f"{name}\n")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# Together


def _together(bench: Bench) -> dict[str, Any]:
    rows = []
    for keeper in (OURS, SQLITE_SAVER, OURS_ON_POSTGRES, POSTGRES_SAVER):
        found = [_three_at_once(bench, keeper) for _ in range(bench.amounts.rounds)]
        rows.append({
            "saver": keeper.name,
            "turns asked": 3 * len(found),
            "answered": sum(answered for answered, _, _ in found),
            "refused": sum(refused for _, refused, _ in found),
            "answered and lost": sum(lost for _, _, lost in found),
        })  # fmt: skip
    table("Three turns at once on one thread", rows)
    return {"rows": rows}


def _three_at_once(bench: Bench, keeper: Keeper) -> tuple[int, int, int]:
    """How many callers got an answer, how many an error, and how many of the answered turns are not in the thread."""
    ready, answered, refused = threading.Barrier(3), [], []

    def reply(state: Any) -> Any:
        time.sleep(0.05)  # a model takes its time
        return {"messages": [AIMessage(f"to {state['messages'][-1].content}")]}

    def turn(graph: Any, name: str) -> None:
        ready.wait()
        try:
            graph.invoke({"messages": [HumanMessage(name)]}, THREAD)
            answered.append(name)
        except Exception as error:  # whatever a saver refuses with
            refused.append(error)

    with bench.place(keeper) as place, keeper.open(place) as saver:
        graph = in_turn(saver, [reply])
        callers = [threading.Thread(target=turn, args=(graph, name)) for name in ("one", "two", "three")]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        said = {message.content for message in graph.get_state(THREAD).values["messages"]}
    lost = [name for name in answered if not {name, f"to {name}"} <= said]
    return len(answered), len(refused), len(lost)


# The command


def _family(name: str) -> int:
    """Ours, then theirs, then delta channels: lines of one kind have colours of one kind."""
    return 2 if "Delta" in name else 0 if name.startswith("holdfast") else 1


def picture(lines: dict[str, list[tuple[int, int]]]) -> str:
    """The growth of what is kept, one message a turn, without what durability "exit" leaves out and other forms."""
    shown = {name: lines[name] for name in sorted(lines, key=_family) if "exit" not in name and ", as " not in name}
    counts = [number for number, _ in next(iter(shown.values()))]
    raw = {RAW: [(number, number * LENGTH) for number in counts]}
    note = f"LangGraph, one message of {LENGTH} random characters a turn; both axes are logarithmic"
    return drawn({**shown, **raw}, raw=RAW, title="What checkpoints take on disk", note=note)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small amounts, to see that it works")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    parser.add_argument("--svg", metavar="FILE", help="draw the growth of bytes")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        results = run(Path(folder), QUICK if given.quick else FULL, tuple(given.only))
    if given.svg and "bytes" in results:
        Path(given.svg).write_text(picture(results["bytes"]["growth"]), encoding="utf-8")
    print(f"\n{time.monotonic() - begin:.0f} s in all", file=sys.stderr)
    print(json.dumps({"checkpoints": results}))


if __name__ == "__main__":
    main()
