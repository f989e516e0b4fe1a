"""What a query's terms say of every row: how often each holds them, and how much that weighs (BM25).

Deliberately absent: full-text tables of an engine. The same arrays are searched on every engine, so the same question
gets the same answer everywhere, and a corpus of one user has statistics of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from holdfast.retrieval.corpus import Corpus, Rows
from holdfast.retrieval.segment import Array, Segment

K1 = 1.2
B = 0.75


class Lexical(NamedTuple):
    """How a corpus holds a query's terms. ``counts`` and ``scores`` are by segment: terms by rows, and rows."""

    weights: Array
    idf: Array
    counts: list[Array]
    scores: list[Array]
    mean: float

    def at(self, rows: Rows) -> Array:
        """How often rows hold each term: terms by rows. A row of -1 holds none."""
        found = np.zeros((len(self.weights), len(rows)), dtype=np.float32)
        for part in np.unique(rows.part):
            here = np.nonzero((rows.part == part) & (rows.row >= 0))[0]
            found[:, here] = self.counts[part][:, rows.row[here]]
        return found

    def score_at(self, rows: Rows) -> Array:
        found = np.zeros(len(rows), dtype=np.float32)
        for part in np.unique(rows.part):
            here = np.nonzero((rows.part == part) & (rows.row >= 0))[0]
            found[here] = self.scores[part][rows.row[here]]
        return found


def look_up(corpus: Corpus, terms: Mapping[int, float]) -> Lexical:
    """Score every row of a corpus for weighted terms."""
    mean = max(corpus.length / max(corpus.rows, 1), 1.0)
    weights = np.array(list(terms.values()), dtype=np.float32)
    counts = [_counts(segment, terms) for segment in corpus.segments]
    holding = sum((np.count_nonzero(count, axis=1) for count in counts), np.zeros(len(terms)))
    idf = np.log(1 + (corpus.rows - holding + 0.5) / (holding + 0.5)).astype(np.float32)
    scores = [
        _scores(segment, count, weights * idf, mean) for segment, count in zip(corpus.segments, counts, strict=True)
    ]
    return Lexical(weights, idf, counts, scores, mean)


def _counts(segment: Segment, terms: Mapping[int, float]) -> Array:
    found = np.zeros((len(terms), segment.rows), dtype=np.uint16)
    for number, term in enumerate(terms):
        holder, count = segment.holders(term)
        if segment.plain:
            found[number, holder] = count
        else:
            np.add.at(found[number], segment.owner[holder], count)
    return found


def _scores(segment: Segment, counts: Array, weights: Array, mean: float) -> Array:
    found = np.zeros(segment.rows, dtype=np.float32)
    lengths = segment.columns["length"]
    for number, weight in enumerate(weights):
        rows = np.nonzero(counts[number])[0]
        found[rows] += weight * saturated(counts[number, rows].astype(np.float32), lengths[rows], mean)
    return found


def saturated(counts: Array, lengths: Array, mean: float, b: float = B) -> Array:
    """BM25's weight of a term by how often it is there, and in how long a text."""
    found: Array = counts * (K1 + 1) / (counts + K1 * (1 - b + b * lengths / mean))
    return found


def best_passage(corpus: Corpus, lexical: Lexical, terms: Mapping[int, float], rows: Rows, b: float = B) -> Array:
    """The score of each row's best passage: long texts are judged by the part that answers."""
    found = np.zeros(len(rows), dtype=np.float32)
    sizes = sum(int(segment.size.sum()) for segment in corpus.segments)
    mean = max(sizes / max(corpus.passages, 1), 1.0)
    for part in np.unique(rows.part):
        segment = corpus.segments[part]
        scores = np.zeros(segment.passages + 1, dtype=np.float32)
        for term, weight in zip(terms, lexical.weights * lexical.idf, strict=True):
            holder, count = segment.holders(term)
            scores[holder] += weight * saturated(count.astype(np.float32), segment.size[holder], mean, b)
        here = np.nonzero((rows.part == part) & (rows.row >= 0))[0]
        found[here] = best_of(segment, scores, rows.row[here])
    return found


def best_of(segment: Segment, by_passage: Array, rows: Array) -> Array:
    """The largest value among each row's passages; ``by_passage`` has one value more than there are passages."""
    if segment.plain:
        return by_passage[rows]
    first = segment.columns["first"]
    stops = np.append(first[1:], segment.passages)
    order = np.argsort(rows, kind="stable")
    edges = np.stack([first[rows[order]], stops[rows[order]]], axis=1).ravel()
    best = np.maximum.reduceat(by_passage, edges)[::2] if len(rows) else by_passage[:0]
    found = np.empty(len(rows), dtype=by_passage.dtype)
    found[order] = best
    return found
