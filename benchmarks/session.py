"""Whole turns of a session: what they take besides the model, and how much of a context is as it was the turn before.

A caller's model answers at once with what the conversation says; summaries and learning do without one. The first table
is of ours alone, part by part, on a SQLite file with fsync. The second compares what a provider's cache can keep: ours,
a window of the last turns that moves on with every turn, and one that also shows what was recalled before the history,
all of the same conversation in the same run. What is kept is counted by the messages themselves, for ours also as it
reports.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.context import AGENT, THREAD, TOKENISER, USER, filled
from benchmarks.measure import percentile, spread, table
from benchmarks.talks import LONG, SHORT, Talk, Turn
from holdfast.providers.tokens import exact
from holdfast.providers.tokens.choose import counter_for

SIZES = (1_000, 100_000)
TURNS, WARM = 200, 20
BUDGET = 8_000
SESSION = 50
PAST = 400
KINDS = {"short turns": SHORT, "long answers": LONG}
BUDGETS = (8_000, 32_000)
RECENT = 0.75
"""The share of the budget that the others give to the history; ours gives as much at most."""
HITS = 6


def run(folder: Path) -> dict[str, Any]:
    return {"turns": [_turns(folder, size) for size in SIZES], "prefix": _prefixes(folder)}


# What a turn takes


class Parts:
    """Seconds by part of a turn. What is measured inside another part is not counted twice."""

    def __init__(self) -> None:
        self.spent: dict[str, tuple[float, float]] = {}
        self._inside: list[tuple[float, float]] = []

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        begin, before = time.perf_counter(), time.process_time()
        self._inside.append((0.0, 0.0))
        try:
            yield
        finally:
            wait, cpu = time.perf_counter() - begin, time.process_time() - before
            inner = self._inside.pop()
            known = self.spent.get(name, (0.0, 0.0))
            self.spent[name] = known[0] + wait - inner[0], known[1] + cpu - inner[1]
            if self._inside:
                outer = self._inside[-1]
                self._inside[-1] = outer[0] + wait, outer[1] + cpu

    def watch(self, owner: Any, method: str, name: Callable[[], str]) -> None:
        """Count what a method of an object takes to a part."""
        call = getattr(owner, method)

        def watched(*args: Any, **options: Any) -> Any:
            with self.of(name()):
                return call(*args, **options)

        setattr(owner, method, watched)

    def taken(self) -> dict[str, tuple[float, float]]:
        found, self.spent = self.spent, {}
        return found


def _turns(folder: Path, size: int) -> dict[str, Any]:
    path = folder / f"turns-{size}.db"
    shutil.copyfile(filled(folder / f"{size}.db", size), path)
    talk = list(islice(Talk(4).turns(), WARM + TURNS))
    parts = Parts()
    taken = []
    with holdfast.open(path) as store:
        session = store.session(THREAD, budget=BUDGET)
        _watch(parts, store, session)
        for turn in talk:
            with parts.of("the rest"):
                _answered(session, turn)
            taken.append(parts.taken())
        assert store.verify().ok
    rows = _part_rows(taken[WARM:])
    table(f"A turn with a model that answers at once, {size:,} entries before: {TURNS} turns", rows)
    return {"entries": size, "parts": rows}


def _answered(session: Any, turn: Turn) -> Any:
    """One turn. It comes in halves, and what a model would be given is made; the answer is known."""
    exchange = session.turn(turn.asked)
    assert exchange.messages
    return exchange.reply(turn.answered)


def _watch(parts: Parts, store: holdfast.Store, session: Any) -> None:
    """Commits are those of the question, of the answer, and what learning and rolling write."""

    def commit() -> str:
        return "commit of the answer" if "context" in parts.spent else "commit of the question"

    parts.watch(session._builder, "build", lambda: "context")
    parts.watch(session, "_learned", lambda: "learning by rules")
    parts.watch(session, "roll", lambda: "rolling")
    parts.watch(store.core.engine, "commit", commit)


def _part_rows(taken: list[dict[str, tuple[float, float]]]) -> list[dict[str, Any]]:
    names = {name: None for turn in taken for name in turn}
    whole = [(sum(wait for wait, _ in turn.values()), sum(cpu for _, cpu in turn.values())) for turn in taken]
    rows = [_row(name, [turn.get(name, (0.0, 0.0)) for turn in taken]) for name in names]
    return [_row("whole turn", whole), *rows]


def _row(name: str, taken: list[tuple[float, float]]) -> dict[str, Any]:
    waits, spent = [wait * 1e3 for wait, _ in taken], [cpu * 1e3 for _, cpu in taken]
    return {
        "part": name,
        "p50 ms": percentile(waits, 0.5),
        "p95 ms": percentile(waits, 0.95),
        "processor p50": percentile(spent, 0.5),
        "processor p95": percentile(spent, 0.95),
        "medians of twenties": spread([statistics.median(waits[at : at + 20]) for at in range(0, len(waits), 20)]),
    }


# What stays as it was


class Prefix:
    """How many tokens there were in all, and how many at the beginning were as in the turn before."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._before: list[str] = []
        self.tokens = self.kept = self.turns = 0

    def add(self, messages: list[dict[str, Any]]) -> None:
        texts = [json.dumps(message, ensure_ascii=False) for message in messages]
        if self._before:
            self.turns += 1
            self.tokens += sum(map(self._count, texts))
            self.kept += self._same(self._before, texts)
        self._before = texts

    def _same(self, before: list[str], after: list[str]) -> int:
        total = 0
        for old, new in zip(before, after, strict=False):
            if old != new:
                same = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(new))
                return total + self._count(new[:same])
            total += self._count(new)
        return total

    @property
    def share(self) -> float:
        return self.kept / self.tokens


class Window:
    """The last turns that fit, as most builders have it: the oldest one goes when a new one comes."""

    def __init__(self, room: int, count: Callable[[str], int]) -> None:
        self._room, self._count = room, count
        self._turns: deque[list[dict[str, Any]]] = deque()
        self._costs: deque[int] = deque()

    def add(self, turn: list[dict[str, Any]]) -> None:
        self._turns.append(turn)
        self._costs.append(sum(self._count(message["content"]) + 8 for message in turn))
        while sum(self._costs) > self._room:
            self._turns.popleft()
            self._costs.popleft()

    def messages(self) -> list[dict[str, Any]]:
        return [message for turn in self._turns for message in turn]


def _prefixes(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for kind, words in KINDS.items():
        for budget in BUDGETS:
            for past in (0, PAST):
                path = folder / f"prefix-{words[1]}-{budget}-{past}.db"
                rows.append({"session": kind, "entries before": past, **_prefix(path, words, budget, past)})
    table(f"Tokens that are as in the turn before, in a session of {SESSION} turns", rows)
    return rows


def _prefix(path: Path, words: tuple[int, int], budget: int, past: int) -> dict[str, Any]:
    name = TOKENISER if exact.installed() else "estimate"
    count = counter_for(name).count
    talk, earlier = Talk(5, words).turns(), Talk(6, words).turns()
    ours, moving, first = (Prefix(count) for _ in range(3))
    window = Window(int(budget * RECENT), count)
    reported = [0, 0]
    with holdfast.open(path) as store:
        thread = store.thread(THREAD, user=USER, agent=AGENT)
        for turn in islice(earlier, past // 2):
            thread.append(*(message for message in _messages(turn)))
            window.add(_messages(turn))
        session = store.session(thread, budget=budget, tokens=name)
        for turn in islice(talk, SESSION):
            recalled = _recalled(store, turn)
            answer = _answered(session, turn)
            ours.add(answer.context.messages("openai"))
            if ours.turns:
                reported = [reported[0] + answer.context.report.kept, reported[1] + answer.context.report.tokens]
            _beside(moving, first, window, answer.context.system, recalled, turn)
            window.add(_messages(turn))
    return {
        "budget": budget,
        "ours": ours.share,
        "as reported": reported[0] / reported[1],
        "moving window": moving.share,
        "recall first": first.share,
        "new tokens a turn": (ours.tokens - ours.kept) // ours.turns,
        "moving": (moving.tokens - moving.kept) // moving.turns,
        "first": (first.tokens - first.kept) // first.turns,
    }


def _beside(moving: Prefix, first: Prefix, window: Window, system: str, recalled: str, turn: Turn) -> None:
    """The same turn as others build it, with the system text that ours has."""
    head, asked = {"role": "system", "content": system}, {"role": "user", "content": turn.asked}
    told = {"role": "user", "content": recalled}
    moving.add([head, *window.messages(), {"role": "user", "content": f"{recalled}\n\n{turn.asked}"}])
    first.add([head, told, *window.messages(), asked])


def _messages(turn: Turn) -> list[dict[str, Any]]:
    return [{"role": "user", "content": turn.asked}, {"role": "assistant", "content": turn.answered}]


def _recalled(store: holdfast.Store, turn: Turn) -> str:
    found = store.memory(user=USER, agent=AGENT).recall(turn.asked, k=HITS)
    return "Recalled:\n" + "\n".join(hit.text for hit in found)
