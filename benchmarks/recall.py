"""Recall in one large scope: how long, how much room, and how near the approximate search is to the exact one.

``python -m benchmarks.recall --sizes 10000,100000,1000000`` does it for several sizes. Each side is filled in a process
of its own, opened cold in others, and then all are asked the same questions by turns, a few at a time. A question is
never asked twice, so its vector is made while the clock runs. ``--folder`` keeps what was built, and uses it again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import percentile, table
from benchmarks.sides import SIDES, USER, K, Ours, Side, version
from benchmarks.texts import CHUNK, Question, Texts
from holdfast.providers.choose import choose
from holdfast.retrieval.documents import IndexScope
from holdfast.retrieval.vector import Nearness

SIZES = (10_000,)
PASSES, ASKED, TURN, WARM, COLD = 3, 200, 20, 20, 3
LIMIT_S = 300.0
"""How long a side may take to be filled with more than the smallest size."""
SLOW_S = 0.25
"""A side that takes longer for a question is asked a tenth of them."""
ALONE = 200_000
"""Above this size only ours is measured."""
ALL_EXACT, ALL_APPROXIMATE = sys.maxsize, 0


def run(
    folder: Path, sizes: tuple[int, ...] = SIZES, sides: tuple[str, ...] = tuple(SIDES), *, rebuild: bool = False
) -> dict[str, Any]:
    installed = {name: found for name in sides if (found := version(name)) is not None}
    results: dict[str, Any] = {"versions": installed, "not installed": sorted(set(sides) - set(installed))}
    for size in sizes:
        place = folder / str(size)
        place.mkdir(parents=True, exist_ok=True)
        names = [name for name in installed if size <= ALONE or issubclass(SIDES[name], Ours)]
        results[str(size)] = _measured(place, size, names, rebuild)
    return results


def _measured(place: Path, size: int, names: list[str], rebuild: bool) -> dict[str, Any]:
    filled = {name: _filled(name, place, size, rebuild) for name in names}
    names = [name for name in names if "failed" not in filled[name]]
    table(f"Filling with {size:,} memories, each side in a process of its own", _filling_rows(filled))
    if any(not issubclass(SIDES[name], Ours) for name in names):
        _find_nearest(place, size)
    cold = _cold(names, place, size)
    asked = _by_turns(names, place, size)
    rows = [_row(name, asked[name], cold[name]) for name in names]
    table(f"{size:,} memories: {PASSES} times {ASKED} questions, {TURN} at a time by turns", rows)
    stages = {name: _stages(asked[name]) for name in names if asked[name][0]["stages"]}
    table("Milliseconds by stage, median (p95)", _stage_rows(stages))
    agreement = _child("holdfast", place, size)("agreement")
    table("Approximate against exact nearest 10, by vectors alone", [agreement])
    return {"filled": filled, "asked": rows, "stages": stages, "agreement": agreement}


# Filling


def _filled(name: str, place: Path, size: int, rebuild: bool) -> dict[str, Any]:
    """Fill a side, or take what an earlier run has left in a folder that was kept, with its index or with a new one."""
    folder = place / _home(name)
    done, peer = folder / "filled.json", not issubclass(SIDES[name], Ours)
    if done.exists():
        found: dict[str, Any] = json.loads(done.read_text())
        if rebuild and not peer:
            found |= _child(name, place, size)("rebuild")
            done.write_text(json.dumps(found))
        return found
    folder.mkdir(exist_ok=True)
    try:
        found = _child(name, place, size, limit=LIMIT_S if peer and size > SIZES[0] else None)("fill")
    except subprocess.TimeoutExpired:
        return {"failed": f"not filled within {LIMIT_S:.0f} s"}
    done.write_text(json.dumps(found))
    return found


def _filling_rows(filled: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    columns = {column: "" for found in filled.values() for column in found}
    return [{"side": name, **columns, **found} for name, found in filled.items()]


# Asking


def _cold(names: list[str], place: Path, size: int) -> dict[str, list[dict[str, float]]]:
    """Open and ask once, each time in a new process; the files are in the cache of the operating system."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(COLD):
        for name in names:
            begin = time.perf_counter()
            asked = _child(name, place, size)("cold")
            found[name].append({**asked, "process": time.perf_counter() - begin})
    return found


def _by_turns(names: list[str], place: Path, size: int) -> dict[str, list[dict[str, Any]]]:
    children = {name: _child(name, place, size) for name in names}
    slow = {name for name in names if children[name]("open")["median"] > SLOW_S}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for number in range(PASSES):
        parts: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for at in range(0, ASKED, TURN):
            for name in names if at // TURN % 2 else reversed(names):
                if at and name in slow:
                    continue
                parts[name].append(children[name](f"ask {number * ASKED + at} {TURN}"))
        for name in names:
            found[name].append(_joined(parts[name]))
    for child in children.values():
        child("end")
    return found


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {name: [value for part in parts for value in part[name]] for name in parts[0]}
    return joined


def _row(name: str, passes: list[dict[str, Any]], cold: list[dict[str, float]]) -> dict[str, Any]:
    waits = [wait * 1e3 for one in passes for wait in one["waits"]]
    ends = [percentile(one["waits"], 0.95) * 1e3 for one in passes]
    near = [share for one in passes for share in one["near"]]
    spent = [one * 1e3 for part in passes for one in part["spent"]]
    return {
        "side": name,
        "asked": len(waits),
        "p50 ms": percentile(waits, 0.5),
        "p95 ms": percentile(waits, 0.95),
        "p99 ms": percentile(waits, 0.99),
        "p95 of each pass": " ".join(f"{end:.3g}" for end in ends),
        "processor p50": percentile(spent, 0.5),
        "processor p95": percentile(spent, 0.95),
        "right one found": f"{statistics.mean(hit for one in passes for hit in one['right']):.3f}",
        "of exact nearest": f"{statistics.mean(near):.3f}" if near else "",
        "cold open+ask ms": statistics.median(one["first"] for one in cold) * 1e3,
        "whole process ms": statistics.median(one["process"] for one in cold) * 1e3,
        "RSS MB": passes[-1]["rss"][-1],
    }


def _stages(passes: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    told = [one for part in passes for one in part["stages"]]
    names = {name: None for one in told for name in one}
    return {
        name: (
            statistics.median(one.get(name, 0.0) for one in told),
            percentile([one.get(name, 0.0) for one in told], 0.95),
        )
        for name in names
    }


def _stage_rows(stages: dict[str, dict[str, tuple[float, float]]]) -> list[dict[str, Any]]:
    names = {name: None for found in stages.values() for name in found}
    return [
        {
            "stage": name,
            **{side: "{:.3f} ({:.3f})".format(*found[name]) if name in found else "" for side, found in stages.items()},
        }
        for name in names
    ]


# Children


def _child(name: str, place: Path, size: int, limit: float | None = None) -> Callable[[str], Any]:
    """Start a process for a side, and give what sends it a command and waits for the answer."""
    command = [sys.executable, "-m", "benchmarks.recall", "--side", name, "--folder", str(place), "--sizes", str(size)]
    settings = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings)

    def tell(what: str) -> Any:
        if what in ("fill", "rebuild", "cold", "agreement"):
            try:
                answer, _ = child.communicate(what + "\n", timeout=limit)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                raise
        else:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(what + "\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        if not answer:
            raise RuntimeError(f"{name} ended with {child.wait()}")
        return json.loads(answer)

    return tell


class _Served:
    """A side in its own process."""

    def __init__(self, name: str, place: Path, size: int) -> None:
        self._texts, self._place = Texts(size), place
        self.side: Side = SIDES[name](place / _home(name))
        self._questions: list[Question] = []

    def fill(self) -> dict[str, Any]:
        found = self.side.fill(self._texts)
        return {**found, "peak RSS MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}

    def rebuild(self) -> dict[str, Any]:
        assert isinstance(self.side, Ours)
        found = self.side.rebuild(self._texts)
        return {**found, "peak RSS MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}

    def cold(self) -> dict[str, float]:
        question = self._texts.questions(1)[0].text
        self.side.load()
        begin = time.perf_counter()
        self.side.open()
        self.side.ask(question)
        first = time.perf_counter() - begin
        self.side.close()
        return {"first": first}

    def open(self) -> dict[str, Any]:
        self.side.open()
        known = self._texts.questions(PASSES * ASKED + WARM)
        self._questions, warm = known[:-WARM], known[-WARM:]
        waits = []
        for question in warm:
            begin = time.perf_counter()
            self.side.ask(question.text)
            waits.append(time.perf_counter() - begin)
        self._answers = [self._texts.chunk(at // CHUNK)[at % CHUNK] for _, at in self._questions]
        self._nearest = _nearest_known(self._place)
        return {"median": statistics.median(waits)}

    def ask(self, first: int, count: int) -> dict[str, Any]:
        waits, spent, right, near, stages = [], [], [], [], []
        for at in range(first, first + count):
            begin, before = time.perf_counter(), time.process_time()
            found = self.side.ask(self._questions[at].text)
            waits.append(time.perf_counter() - begin)
            spent.append(time.process_time() - before)
            right.append(self._answers[at] in found)
            if told := self.side.stages():
                stages.append(told)
            elif self._nearest:
                near.append(len(set(found) & set(self._nearest[at])) / K)
        return {"waits": waits, "spent": spent, "right": right, "near": near, "stages": stages, "rss": [_rss()]}

    def agreement(self) -> dict[str, Any]:
        """How many of the exact nearest rows the approximate search finds; rows that are equally near count alike."""
        assert isinstance(self.side, Ours)
        self.side.open()
        corpus = self.side.store.wiring.recaller().indexes.index(IndexScope(user=USER)).corpus()
        embedder = choose("wordllama")
        assert embedder is not None
        shares, exact_s, quick_s = [], [], []
        for question in self._texts.questions(ASKED + WARM):
            query = embedder.embed([question.text])[0]
            begin = time.perf_counter()
            exact = _top(Nearness(corpus, embedder.name, query, ALL_EXACT).best())
            middle = time.perf_counter()
            quick = _top(Nearness(corpus, embedder.name, query, ALL_APPROXIMATE).best())
            end = time.perf_counter()
            exact_s.append(middle - begin)
            quick_s.append(end - middle)
            shares.append(float((quick >= exact[-1] - 1e-6).sum()) / K)
        times = {
            "exact p50 ms": percentile(exact_s[WARM:], 0.5) * 1e3,
            "signs p50 ms": percentile(quick_s[WARM:], 0.5) * 1e3,
        }
        return {"questions": len(shares), "agreement": statistics.mean(shares), "worst": min(shares), **times}


def _top(found: list[tuple[Any, Any]]) -> Any:
    near = np.concatenate([values for _, values in found])
    return -np.sort(-near)[:K]


def _find_nearest(place: Path, size: int) -> None:
    """Write down the texts that are really nearest to each question, for the sides that go by vectors alone."""
    texts, embedder = Texts(size), choose("wordllama")
    if embedder is None or (place / "nearest.json").exists():
        return
    every = list(texts)
    vectors = embedder.embed(every)
    asked = embedder.embed([question.text for question in texts.questions(PASSES * ASKED + WARM)])
    order = np.argpartition(-(asked @ vectors.T), K, axis=1)[:, :K]
    (place / "nearest.json").write_text(json.dumps([[every[at] for at in row] for row in order.tolist()]))


def _nearest_known(place: Path) -> list[list[str]]:
    known = place / "nearest.json"
    found: list[list[str]] = json.loads(known.read_text()) if known.exists() else []
    return found


def _rss() -> float:
    """Memory that is in use now, where the system tells it, else the most that ever was."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 2**20


def _home(name: str) -> str:
    """The folder of a side; two that only ask differently share one."""
    return "".join(letter if letter.isalnum() else "-" for letter in (SIDES[name].home or name).lower())


def _serve(name: str, place: Path, size: int) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a side prints is no answer
    served = _Served(name, place, size)
    for line in sys.stdin:
        what, *numbers = line.split()
        if what == "end":
            print(json.dumps({}), file=answers, flush=True)
            return
        print(json.dumps(getattr(served, what)(*map(int, numbers))), file=answers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="how many memories, separated by commas")
    parser.add_argument("--folder", type=Path, help="keep what is built here, and use what is here already")
    parser.add_argument("--rebuild", action="store_true", help="make our indexes again in a folder that was kept")
    parser.add_argument("--only", help="sides to measure, separated by semicolons")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = tuple(int(size) for size in given.sizes.split(","))
    sides = tuple(SIDES) if given.only is None else tuple(given.only.split(";"))
    if given.side is not None:
        _serve(given.side, given.folder, sizes[0])
    elif given.folder is not None:
        print(json.dumps(run(given.folder, sizes, sides, rebuild=given.rebuild)))
    else:
        with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
            print(json.dumps(run(Path(folder), sizes, sides)))


if __name__ == "__main__":
    main()
