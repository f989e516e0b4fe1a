"""What a query's terms say of rows: how often each holds them, and how much that weighs (BM25).

Every term counts for the rows that are looked at. In a large corpus only the rarer ones decide which rows those are:
walking through a tenth of all rows because they say "week" finds nothing that another term would not.

Deliberately absent: full-text tables of an engine. The same arrays are searched on every engine, so the same question
gets the same answer everywhere, and a corpus of one user has statistics of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.retrieval.corpus import Corpus, Rows
from holdfast.retrieval.segment import Array, Segment

K1 = 1.2
B = 0.75
LARGE = 50_000
_COMMON = 0.05
_LEADING = 2


class Holding(NamedTuple):
    """The rows of a segment that hold a term, in order, and how often each does."""

    rows: Array
    counts: Array


class Passed(NamedTuple):
    """What passed the filters of a question: how many rows, and which of each segment, None if all did."""

    rows: int
    masks: list[Array] | None


class Lexical:
    """How a corpus holds the terms of one query. ``worth`` is the weight of each term times how rare it is."""

    def __init__(self, corpus: Corpus, terms: Mapping[int, float]) -> None:
        self._corpus = corpus
        self._holders = [segment.holders(list(terms)) for segment in corpus.segments]
        self.holding = [
            [_holding(segment, *held) for held in by_term]
            for segment, by_term in zip(corpus.segments, self._holders, strict=True)
        ]
        held = np.array([[len(term.rows) for term in by_term] for by_term in self.holding], dtype=float)
        self._held = held.sum(axis=0) if len(held) else np.zeros(len(terms))
        self.weights = np.array(list(terms.values()), dtype=np.float32)
        idf = np.log(1 + (corpus.rows - self._held + 0.5) / (self._held + 0.5))
        self.worth = (self.weights * idf).astype(np.float32)
        self.mean = max(corpus.length / max(corpus.rows, 1), 1.0)
        self._dense: dict[int, Array] = {}
        self._known: dict[int, tuple[Rows, Array]] = {}  # with the rows, so that no others get their id

    def rarity(self, passed: Passed, least: int) -> Array:
        """The worth of each term among the rows that passed, as if those were at least so many."""
        rows, held = max(passed.rows, least), self._held
        if passed.masks is not None:
            held = np.zeros(len(self.weights))
            for mask, by_term in zip(passed.masks, self.holding, strict=True):
                held += [np.count_nonzero(mask[term.rows]) for term in by_term]
        found: Array = self.weights * np.log(1 + (rows - held + 0.5) / (held + 0.5))
        return found

    def best(self, allowed: int) -> list[tuple[Array, Array]]:
        """For each segment, the rows that hold a term which tells rows apart, and their scores by those terms.

        ``allowed`` is how many rows may be found at all.
        """
        leading = self._leading(allowed)
        return [
            _scored([(by_term[number], self.worth[number]) for number in leading], slack)
            for slack, by_term in zip(self._slacks(), self.holding, strict=True)
        ]

    def _slacks(self) -> list[Array]:
        """For each segment, what the counts of its rows are compared with. It is the same for every query."""
        if "slacks" not in self._corpus.cache:
            lengths = (segment.columns["length"] for segment in self._corpus.segments)
            self._corpus.cache["slacks"] = [_slack(of_rows, self.mean) for of_rows in lengths]
        found: list[Array] = self._corpus.cache["slacks"]
        return found

    def _leading(self, allowed: int) -> list[int]:
        """The terms that candidates are found by: all, or in a large corpus the rare ones, and never fewer than two."""
        by_rarity: list[int] = np.argsort(self._held, kind="stable").tolist()
        if allowed <= LARGE:
            return by_rarity
        common = _COMMON * self._corpus.rows
        known = [number for number in by_rarity if self._held[number] > 0]
        return [number for place, number in enumerate(known) if place < _LEADING or self._held[number] <= common]

    def at(self, rows: Rows) -> Array:
        """How often rows hold each term: terms by rows. A row of -1 holds none."""
        if id(rows) not in self._known:
            self.look([rows])
        return self._known[id(rows)][1]

    def look(self, several: Sequence[Rows]) -> None:
        """See ``at``: look all of these up at once, which takes less time than one after the other."""
        every = Rows(np.concatenate([rows.part for rows in several]), np.concatenate([rows.row for rows in several]))
        found = np.zeros((len(self.weights), len(every)), dtype=np.float32)
        for part, here in every.groups():
            wanted = every.row[here]
            if self._corpus.rows <= LARGE:
                found[:, here] = self._all(part)[:, wanted]
                continue
            wanted = wanted.astype(np.int32)
            for number, (held, counts) in enumerate(self.holding[part]):
                if len(held):
                    found[number, here] = _looked_up(held, counts, wanted)
        ends = np.cumsum([len(rows) for rows in several])
        for rows, end in zip(several, ends.tolist(), strict=True):
            self._known[id(rows)] = (rows, found[:, end - len(rows) : end])

    def _all(self, part: int) -> Array:
        """How often every row of a segment holds each term, and one row more that holds none: that of -1."""
        if part not in self._dense:
            found = np.zeros((len(self.weights), self._corpus.segments[part].rows + 1), dtype=np.float32)
            for number, (held, counts) in enumerate(self.holding[part]):
                found[number, held] = counts
            self._dense[part] = found
        return self._dense[part]

    def score(self, rows: Rows) -> Array:
        """The scores of rows by all terms; a row of -1 has none."""
        lengths = self._corpus.column("length", rows)
        found: Array = self.worth @ saturated(self.at(rows), lengths, self.mean)
        return found

    def best_passage(self, rows: Rows) -> Array:
        """The score of each row's best passage: long texts are judged by the part that answers."""
        found = np.zeros(len(rows), dtype=np.float32)
        mean = max(self._corpus.length / max(self._corpus.passages, 1), 1.0)
        for part, here in rows.groups():
            segment = self._corpus.segments[part]
            passages, starts = segment.passages_of(rows.row[here])
            scores = np.zeros(len(passages), dtype=np.float32)
            wanted, slack = passages.astype(np.int32), _slack(segment.size[passages], mean)
            for (holder, count), worth in zip(self._holders[part], self.worth, strict=True):
                if len(holder):
                    scores += worth * _weighed(_looked_up(holder, count, wanted), slack)
            found[here] = np.maximum.reduceat(scores, starts) if len(starts) else scores
        return found


def _looked_up(held: Array, counts: Array, wanted: Array) -> Array:
    """How often each of the wanted is counted, 0 where it is not held. ``held`` is in order, and of the same type: if
    it were not, all of it would be converted for every search."""
    at = held.searchsorted(wanted)
    found: Array = counts.take(at, mode="clip") * (held.take(at, mode="clip") == wanted)
    return found


def _holding(segment: Segment, holder: Array, count: Array) -> Holding:
    if segment.plain or not len(holder):
        return Holding(holder, count)
    rows = segment.owner.take(holder)
    changes = rows[1:] != rows[:-1]
    if changes.all():
        return Holding(rows, count)
    starts = np.flatnonzero(np.append(True, changes))
    return Holding(rows[starts], np.add.reduceat(count.astype(np.float32), starts))


def _scored(holding: list[tuple[Holding, float]], slack: Array) -> tuple[Array, Array]:
    found = np.zeros(len(slack), dtype=np.float32)
    for (rows, counts), worth in holding:
        if len(rows):
            found[rows] += worth * _weighed(counts.astype(np.float32), slack.take(rows))
    some = np.nonzero(found)[0]
    return some, found[some]


def saturated(counts: Array, lengths: Array, mean: float, b: float = B) -> Array:
    """BM25's weight of a term by how often it is there, and in how long a text."""
    return _weighed(counts, _slack(lengths, mean, b))


def _weighed(counts: Array, slack: Array) -> Array:
    found: Array = counts * np.float32(K1 + 1) / (counts + slack)
    return found


def _slack(lengths: Array, mean: float, b: float = B) -> Array:
    """What a count is held against: the more, the longer the text."""
    found: Array = (K1 * (1 - b + b * lengths / mean)).astype(np.float32)
    return found
