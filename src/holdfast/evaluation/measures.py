"""What a ranking is worth: pure sums over what was found and what should have been.

Per question recall@n is the share of gold among the first n, all@10 is 1 when all of it is among the first ten,
ndcg@10 counts what comes earlier for more, and mrr is 1 divided by the place of the first right one. All are averaged
over questions. Deliberately absent: asking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import floor, log2
from typing import Any

import msgspec

DEEPEST = 20
"""How many hits of each question are looked at."""
_CUTS = (1, 5, 10, 20)
_TENTHS = 10

MEASURES = ("recall@1", "recall@5", "recall@10", "recall@20", "all@10", "ndcg@10", "mrr")


class Scores(msgspec.Struct, frozen=True):
    """The seven measures, of one question or averaged over several."""

    recall_1: float = 0.0
    recall_5: float = 0.0
    recall_10: float = 0.0
    recall_20: float = 0.0
    all_10: float = 0.0
    ndcg_10: float = 0.0
    mrr: float = 0.0

    def named(self) -> dict[str, float]:
        """The measures under the names that people know them by."""
        return {
            name: round(getattr(self, field), 4) for name, field in zip(MEASURES, self.__struct_fields__, strict=True)
        }


class FoundTurns(msgspec.Struct, frozen=True):
    """One question as it was answered: the turns or notes found, best first, and how long it took.

    ``order`` says where in the conversation each turn is.
    """

    kind: str
    gold: frozenset[str]
    found: tuple[str | None, ...]
    ms: float
    relevant: bool
    confidence: float
    order: Mapping[str, int]


class Tenth(msgspec.Struct, frozen=True):
    """The questions that were answered with a confidence in one tenth of the scale, and how many have an answer."""

    least: float
    questions: int
    answerable: int


class Measured(msgspec.Struct, frozen=True):
    """How recall did on one file. ``newer_first`` is None where no question tells.

    ``questions`` counts those that have an answer, and ``wrongly_refused`` is the share of them that recall called not
    relevant. ``refused`` is that share for each kind of question without an answer; where there are any,
    ``calibration`` counts all questions by confidence. ``plain`` has the measures of simpler rankings. Notes count as
    turns, and their file is no conversation.
    """

    overall: Scores
    kinds: dict[str, tuple[Scores, int]]
    questions: int
    conversations: int
    turns: int
    ms: float
    ms_p95: float
    newer_first: float | None
    wrongly_refused: float | None
    refused: dict[str, tuple[float, int]]
    calibration: tuple[Tenth, ...]
    plain: dict[str, Scores]
    engine: str
    embedder: str
    notes: tuple[str, ...] = ()

    def margins(self, plain: str) -> dict[str, float]:
        """How much better recall is than one of the simpler rankings."""
        ours, theirs = self.overall.named(), self.plain[plain].named()
        return {name: round(ours[name] - theirs[name], 4) for name in MEASURES}

    def summary(self, file: str) -> dict[str, Any]:
        """Everything that a script wants to know, as plain data."""
        return {
            "file": file,
            **self.overall.named(),
            "ms": round(self.ms, 3),
            "ms_p95": round(self.ms_p95, 3),
            "questions": self.questions,
            "conversations": self.conversations,
            "turns": self.turns,
            "engine": self.engine,
            "embedder": self.embedder,
            "newer_first": None if self.newer_first is None else round(self.newer_first, 4),
            "by_kind": {kind: {**scores.named(), "questions": count} for kind, (scores, count) in self.kinds.items()},
            "plain": {name: scores.named() for name, scores in self.plain.items()},
            "margins": {name: self.margins(name) for name in self.plain},
            "wrongly_refused": None if self.wrongly_refused is None else round(self.wrongly_refused, 4),
            "refused": {kind: {"share": round(held, 4), "questions": n} for kind, (held, n) in self.refused.items()},
            "calibration": [msgspec.structs.asdict(tenth) for tenth in self.calibration],
        }


def scores(gold: frozenset[str], found: Sequence[str | None]) -> Scores:
    """The measures of one question. A turn that is found twice counts once."""
    first = list(dict.fromkeys(found))
    at_1, at_5, at_10, at_20 = (len(gold.intersection(first[:cut])) / len(gold) for cut in _CUTS)
    gain = sum(1 / log2(place + 2) for place, id in enumerate(first[:10]) if id in gold)
    best = sum(1 / log2(place + 2) for place in range(min(10, len(gold))))
    place = next((place for place, id in enumerate(first[:DEEPEST], 1) if id in gold), None)
    return Scores(
        at_1, at_5, at_10, at_20, float(gold <= set(first[:10])), gain / best, 0.0 if place is None else 1 / place
    )


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


def refusals(answers: Sequence[FoundTurns]) -> dict[str, tuple[float, int]]:
    """The share of each kind of question that was called not relevant, and how many there are."""
    groups: dict[str, list[bool]] = {}
    for answer in answers:
        groups.setdefault(answer.kind, []).append(not answer.relevant)
    return {kind: (sum(refused) / len(refused), len(refused)) for kind, refused in sorted(groups.items())}


def calibration(answers: Sequence[FoundTurns]) -> tuple[Tenth, ...]:
    """How many questions fell into each tenth of the confidence, and how many of those have an answer."""
    tenths: list[list[bool]] = [[] for _ in range(_TENTHS)]
    for answer in answers:
        tenths[min(int(answer.confidence * _TENTHS), _TENTHS - 1)].append(bool(answer.gold))
    return tuple(Tenth(at / _TENTHS, len(held), sum(held)) for at, held in enumerate(tenths))
