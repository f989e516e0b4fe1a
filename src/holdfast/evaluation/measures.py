"""What a ranking is worth: pure sums over what was found and what should have been.

Per question recall@n is the share of gold among the first n, all@10 is 1 when all of it is among the first ten, and
ndcg@10 counts what comes earlier for more. All are averaged over questions. Deliberately absent: asking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import floor, log2
from typing import Any

import msgspec

DEEPEST = 20
"""How many hits of each question are looked at."""
_CUTS = (5, 10, 20)


class Scores(msgspec.Struct, frozen=True):
    """The five measures, of one question or averaged over several."""

    recall_5: float = 0.0
    recall_10: float = 0.0
    recall_20: float = 0.0
    all_10: float = 0.0
    ndcg_10: float = 0.0

    def named(self) -> dict[str, float]:
        """The measures under the names that people know them by."""
        names = ("recall@5", "recall@10", "recall@20", "all@10", "ndcg@10")
        return {name: round(getattr(self, field), 4) for name, field in zip(names, self.__struct_fields__, strict=True)}


class FoundTurns(msgspec.Struct, frozen=True):
    """One question as it was answered: the turns found, best first, and how long it took.

    ``order`` says where in the conversation each turn is.
    """

    kind: str
    gold: frozenset[str]
    found: tuple[str | None, ...]
    ms: float
    relevant: bool
    order: Mapping[str, int]


class Measured(msgspec.Struct, frozen=True):
    """How recall did on one file. ``newer_first`` is None where no question tells.

    ``questions`` counts those that have an answer. ``relevant`` is the share of them that recall believed to have
    answered, ``false_alarms`` the share of those without an answer, where there are any.
    """

    overall: Scores
    kinds: dict[str, tuple[Scores, int]]
    questions: int
    conversations: int
    turns: int
    ms: float
    ms_p95: float
    newer_first: float | None
    relevant: float
    false_alarms: float | None
    engine: str
    embedder: str
    notes: tuple[str, ...] = ()

    def summary(self, file: str) -> dict[str, Any]:
        """Everything that a script wants to know, as plain data."""
        return {
            "file": file,
            **self.overall.named(),
            "ms": round(self.ms, 3),
            "ms_p95": round(self.ms_p95, 3),
            "questions": self.questions,
            "conversations": self.conversations,
            "engine": self.engine,
            "embedder": self.embedder,
            "newer_first": None if self.newer_first is None else round(self.newer_first, 4),
            "by_kind": {kind: {**scores.named(), "questions": count} for kind, (scores, count) in self.kinds.items()},
        }


def scores(gold: frozenset[str], found: Sequence[str | None]) -> Scores:
    """The measures of one question. A turn that is found twice counts once."""
    first = list(dict.fromkeys(found))
    at_5, at_10, at_20 = (len(gold.intersection(first[:cut])) / len(gold) for cut in _CUTS)
    gain = sum(1 / log2(place + 2) for place, id in enumerate(first[:10]) if id in gold)
    best = sum(1 / log2(place + 2) for place in range(min(10, len(gold))))
    return Scores(at_5, at_10, at_20, float(gold <= set(first[:10])), gain / best)


def averaged(several: Sequence[Scores]) -> Scores:
    """The mean of each measure; of nothing, zeros."""
    if not several:
        return Scores()
    return Scores(*(sum(getattr(one, name) for one in several) / len(several) for name in Scores.__struct_fields__))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of all lies, between the two nearest ones; of nothing, 0."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def newer_first(answers: Sequence[FoundTurns]) -> float | None:
    """How often the latest of the right turns found is also the first one, where an update is asked about."""
    told = []
    for answer in answers:
        right = [id for id in dict.fromkeys(answer.found) if id is not None and id in answer.gold]
        if "update" in answer.kind and len(right) >= 2:
            told.append(right[0] == max(right, key=answer.order.__getitem__))
    return sum(told) / len(told) if told else None


def by_kind(answers: Sequence[FoundTurns]) -> dict[str, tuple[Scores, int]]:
    """The measures of each kind of question, and how many there are."""
    groups: dict[str, list[Scores]] = {}
    for answer in answers:
        groups.setdefault(answer.kind, []).append(scores(answer.gold, answer.found))
    return {kind: (averaged(groups[kind]), len(groups[kind])) for kind in sorted(groups)}


def share(answers: Sequence[FoundTurns], holds: Callable[[FoundTurns], bool]) -> float | None:
    """The share of answers of which something holds; None when there are none."""
    return sum(map(holds, answers)) / len(answers) if answers else None
