"""One recall from its question to its ranking: gather candidates, look at them stage by stage, weigh, put in order.

Every stage is timed. With a budget, a stage that can be left out is left out once the time is used up, and the report
says so; only the search by words always runs. Deliberately absent: I/O. Vectors come in, rows go out, and what a
reranker says of the first rows is asked of whoever can read them.
"""

from __future__ import annotations

import time as _time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from holdfast.records import StageReport
from holdfast.retrieval import order, reranking, stages, truth
from holdfast.retrieval.candidates import ArrayCandidates, Candidates, FindsCandidates, allowed
from holdfast.retrieval.confidence import confidence, enough
from holdfast.retrieval.corpus import Corpus, Rows, rows_of
from holdfast.retrieval.lexical import Lexical
from holdfast.retrieval.links import follow
from holdfast.retrieval.question import ParsedQuery, RecallQuery
from holdfast.retrieval.reranking import Judge
from holdfast.retrieval.segment import MEMORY, Array
from holdfast.retrieval.table import AROUND, Table
from holdfast.retrieval.vector import Nearness
from holdfast.retrieval.weights import wants_many, weigh

ALL = 1_200
"""Up to this many rows, every one is a candidate."""
_GATHERED = 300
_WIDENED = 60
_OVERFETCH = 3
_NOISE = 1e-4

STAGES = (
    ("words", stages.words), ("meaning", stages.meaning), ("around", stages.around),
    ("meaning around", stages.meaning_around), ("speaker", stages.speaker), ("looks", stages.looks),
    ("time", stages.time), ("facts", stages.facts), ("links", stages.links),
)  # fmt: skip
NEEDS_VECTORS = {"meaning", "meaning around"}
ALWAYS = {"words", "facts"}
OPTIONAL = (*(name for name, _ in STAGES if name not in ALWAYS), reranking.STAGE, *(name for name, _ in order.STAGES))
"""The stages that may be left out."""


class Ranking(NamedTuple):
    """A ranking: rows, best first, with their scores and each stage's part of them."""

    rows: Rows
    scores: Array
    parts: dict[str, Array]
    candidates: int
    confidence: float
    relevant: bool


class Stopwatch:
    """The stages of one recall, timed."""

    def __init__(self, began: float, within_ms: float | None, without: frozenset[str]) -> None:
        self.began = began
        self._until = None if within_ms is None else began + within_ms / 1_000
        self.without = without
        self.reports: list[StageReport] = []

    def may(self, name: str, takes_ms: float = 0.0) -> bool:
        """Whether a stage that usually takes so long may run; where not, the report says why."""
        if name in self.without:
            self.reports.append(StageReport(name, skipped="left out"))
            return False
        if self._until is not None and _time.perf_counter() + takes_ms / 1_000 >= self._until:
            self.reports.append(StageReport(name, skipped="no time left"))
            return False
        return True

    def timed(self, name: str, began: float) -> None:
        self.reports.append(StageReport(name, (_time.perf_counter() - began) * 1_000))


def search(
    corpus: Corpus,
    asked: RecallQuery,
    reading: ParsedQuery,
    vectors: dict[str, Array],
    run: Stopwatch,
    finds: FindsCandidates = ArrayCandidates,
    judge: Judge | None = None,
) -> Ranking:
    """Rank what a corpus holds for a question. ``judge`` is the reranker, where there is one."""
    near = [] if "meaning" in run.without else [Nearness(corpus, model, query) for model, query in vectors.items()]
    start = _time.perf_counter()
    lexical = Lexical(corpus, reading.terms)
    linked = follow(corpus, reading, lexical, asked)
    rows = _gathered(corpus, asked, lambda: finds(asked, corpus, lexical, near), linked.rows)
    run.timed("gather", start)
    table = Table(corpus, asked, reading, lexical, near, rows, linked)
    if not len(table):
        return Ranking(rows, np.zeros(0), {}, 0, 0.0, False)
    for name, stage in STAGES:
        if name in NEEDS_VECTORS and not table.columns.keys() >= _needed(name, table):
            continue
        if name in ALWAYS or run.may(name):
            start = _time.perf_counter()
            table.columns.update(stage(table))
            run.timed(name, start)
    return _ranked(table, run, judge)


def nearest(corpus: Corpus, asked: RecallQuery, refs: Array, near: Array, least: float) -> Ranking:
    """Rank memories by how near their callers' vectors are, as far as they are true and pass the filters."""
    best = np.argsort(-near, kind="stable")
    best = best[near[best] >= least]
    most = _GATHERED
    while True:
        some = best[:most]
        found = _standing(corpus, asked, corpus.by("ref", np.sort(refs[some])))
        rows, scores = _scored(corpus, found, refs[some], near[some])
        if len(rows) >= asked.k or len(some) == len(best):
            break
        most *= 8
    top = float(np.clip(scores[0], 0.0, 1.0)) if len(rows) else 0.0
    return Ranking(rows, scores, {}, len(rows), top, bool(len(rows)))


def _scored(corpus: Corpus, rows: Rows, refs: Array, near: Array) -> tuple[Rows, Array]:
    """The rows of some memories, nearest first. Others, such as the present values of facts, have no vector here."""
    if not len(refs) or not len(rows):
        return rows.at(slice(0)), near[:0]
    order, wanted = np.argsort(refs), corpus.column("ref", rows)
    at = order[np.minimum(np.searchsorted(refs[order], wanted), len(refs) - 1)]
    there = refs[at] == wanted
    rows, scores = rows.at(there), near[at[there]]
    ranked = np.argsort(-scores, kind="stable")
    return rows.at(ranked), scores[ranked]


def _needed(name: str, table: Table) -> set[str]:
    """What a stage that works with vectors finds in the table; without any vector, something that nobody makes."""
    if not table.near:
        return {"vectors"}
    return {"cosine"} if name == "meaning around" else set()


def _ranked(table: Table, run: Stopwatch, judge: Judge | None) -> Ranking:
    start = _time.perf_counter()
    parts = weigh(table)
    scores = sum(parts.values(), np.zeros(len(table), dtype=np.float32))
    ranked = np.argsort(-scores, kind="stable")[: max(_OVERFETCH * table.asked.k, 50)]
    run.timed("weigh", start)
    read = reranking.first(table, ranked)
    judged = judge(table.rows.at(read)) if judge is not None else None
    if judged is not None and not wants_many(table):
        ranked, scores, parts["rerank"] = reranking.blended(table, ranked, scores, read, judged)
    for name, stage in order.STAGES:
        if run.may(name):
            start = _time.perf_counter()
            ranked, scores = stage(table, ranked, scores)
            run.timed(name, start)
    sure = confidence(table, read, judged)
    shown = {name: values[ranked] for name, values in parts.items()}
    lifted = scores[ranked] - sum(shown.values(), np.zeros(len(ranked), dtype=np.float32))
    if np.abs(lifted).max(initial=0.0) > _NOISE:
        shown["newer first"] = lifted
    return Ranking(table.rows.at(ranked), scores[ranked], shown, len(table), sure, enough(sure))


# Candidates


def _gathered(corpus: Corpus, asked: RecallQuery, find: Callable[[], Candidates], linked: Rows) -> Rows:
    """What may answer and is true. Where much of the best is not true any more, more is gathered."""
    if corpus.rows <= ALL:
        rows = rows_of([np.full(segment.rows, part) for part, segment in enumerate(corpus.segments)], _numbers(corpus))
        return _standing(corpus, asked, rows.at(allowed(corpus, asked, rows)))
    candidates, least = find(), max(_GATHERED, _OVERFETCH * asked.k)
    for most in (least, 8 * least, 64 * least):
        gathered = _gather(corpus, candidates, most)
        rows = _standing(corpus, asked, _distinct([gathered, linked]))
        if len(gathered) < most or len(rows) >= len(gathered) // 2:
            break
    return rows


def _standing(corpus: Corpus, asked: RecallQuery, rows: Rows) -> Rows:
    rows = truth.standing(corpus, rows, asked.now, asked.trust)
    return rows.at(allowed(corpus, asked, rows))


def _numbers(corpus: Corpus) -> list[Array]:
    return [np.arange(segment.rows) for segment in corpus.segments]


def _gather(corpus: Corpus, candidates: Candidates, most: int) -> Rows:
    """The best by words and by meaning, and what stands beside the very best."""
    keys = [candidates.by_words(most), *candidates.by_vector(most)]
    picked = [_there(corpus.find(found.streams, found.positions)) for found in keys]
    head = _distinct([best.at(slice(_WIDENED)) for best in picked])
    head = head.at(corpus.column("kind", head) < MEMORY)
    return _distinct([*picked, *map(_there, corpus.beside(head, AROUND))])


def _there(rows: Rows) -> Rows:
    return rows.at(rows.row >= 0)


def _distinct(picked: list[Rows]) -> Rows:
    found = rows_of([rows.part for rows in picked], [rows.row for rows in picked])
    numbers = np.unique((found.part << 40) | found.row)
    return Rows(numbers >> 40, numbers & ((1 << 40) - 1))
