"""Where the candidates of a recall come from: the best by words and the nearest by vector.

This is the seam for plugging in another index (pgvector, Qdrant): a candidate is named by the stream and the
position of its document and by the passage that was found, never by a row of an array. Ours reads the arrays that every
store has. Whatever gives the candidates, the same stages rank them afterwards, so it decides what is considered and not
what comes first. Deliberately absent: ranking, and what is true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from holdfast.retrieval.corpus import Corpus, Rows, rows_of
from holdfast.retrieval.lexical import Lexical
from holdfast.retrieval.question import RecallQuery
from holdfast.retrieval.segment import CHANGE, CODES, Array, Segment
from holdfast.retrieval.vector import Nearness, Scored

WHOLE = -1
"""In place of the number of a passage: the document as a whole was found."""
_MASKS = 300


class DocumentKeys(NamedTuple):
    """Documents that were found, best first: their streams, their positions, and which passage of each it was.

    The stream ``~n`` holds what came from outside in the messages of stream ``n``.
    """

    streams: Array
    positions: Array
    passages: Array


class Candidates(Protocol):
    """What finds candidates for one question.

    ``most`` is how many are wanted; fewer means that there are no more. Filters of the question (kinds, marks, times,
    trust) and who may see what should be applied here, where it saves work; what comes through is looked at again.
    """

    def by_words(self, most: int) -> DocumentKeys: ...

    def by_vector(self, most: int) -> list[DocumentKeys]:
        """The nearest, for each model that the question has a vector of."""


FindsCandidates = Callable[[RecallQuery, Corpus, Lexical, list[Nearness]], Candidates]
"""Makes what finds candidates for one question, given what the arrays know of it."""


class ArrayCandidates:
    """Candidates out of the arrays of a corpus, which a question was looked up in already."""

    def __init__(self, asked: RecallQuery, corpus: Corpus, lexical: Lexical, near: list[Nearness]) -> None:
        self._asked, self._corpus, self._lexical, self._near = asked, corpus, lexical, near
        self._masks = [mask_of(corpus, part, asked) for part in range(len(corpus.segments))]
        self._words: list[Scored] | None = None
        self._vectors: list[list[Scored]] | None = None

    def by_words(self, most: int) -> DocumentKeys:
        if self._words is None:
            masks = self._masks
            self._words = self._lexical.best(
                sum(len(mask.rows) if mask.whole else int(mask.rows.sum()) for mask in masks)
            )
        return self._best(self._words, most)

    def by_vector(self, most: int) -> list[DocumentKeys]:
        if self._vectors is None:
            open_rows = [None if mask.whole else mask.rows for mask in self._masks]
            self._vectors = [by_model.best(open_rows) for by_model in self._near]
        return [self._best(scored, most) for scored in self._vectors]

    def _best(self, scored: list[Scored], most: int) -> DocumentKeys:
        rows = _best(self._corpus, scored, self._asked, most)
        streams, positions = self._corpus.column("stream", rows), self._corpus.column("position", rows)
        return DocumentKeys(streams, positions, np.full(len(rows), WHOLE))


def _best(corpus: Corpus, scored: list[Scored], asked: RecallQuery, most: int) -> Rows:
    """The best rows that may be found at all, best first."""
    parts, rows, scores = [], [], []
    for part, (some, values) in enumerate(scored):
        mask = mask_of(corpus, part, asked)
        if not mask.whole:
            allowed = mask.rows[some]
            some, values = some[allowed], values[allowed]
        if len(some) > most * 2:  # far more than are wanted
            keep = np.argpartition(-values, most)[:most]
            some, values = some[keep], values[keep]
        parts.append(np.full(len(some), part))
        rows.append(some)
        scores.append(values)
    found = rows_of(parts, rows)
    best = np.argsort(-np.concatenate([np.zeros(0), *scores]), kind="stable")[:most]
    return found.at(best)


def allowed(corpus: Corpus, asked: RecallQuery, rows: Rows) -> Array:
    """Which rows pass the filters of a question and may be seen."""
    found = np.ones(len(rows), dtype=bool)
    for part, here in rows.groups():
        mask = mask_of(corpus, part, asked)
        if not mask.whole:
            found[here] = mask.rows[rows.row[here]]
    return found


class Mask(NamedTuple):
    """Which rows of a segment may be found; ``whole`` when all may."""

    rows: Array
    whole: bool


def mask_of(corpus: Corpus, part: int, asked: RecallQuery) -> Mask:
    name = ("mask", part, asked.kinds, asked.marks, asked.since, asked.until, asked.trust, asked.as_of)
    known: Mask | None = corpus.cache.get(name)
    if known is None:
        masks = [key for key in list(corpus.cache) if isinstance(key, tuple) and key[0] == "mask"]
        for old in masks[: max(0, len(masks) - _MASKS)]:  # of questions with many different filters
            corpus.cache.pop(old, None)
        rows = _made_mask(corpus, part, corpus.segments[part], asked)
        known = corpus.cache[name] = Mask(rows, bool(rows.all()))
    return known


def _made_mask(corpus: Corpus, part: int, segment: Segment, asked: RecallQuery) -> Array:
    columns = segment.columns
    mask = (columns["kind"] < CHANGE) & (columns["chars"] > 0)
    visible = corpus.visible(part)
    if visible is not None:
        mask &= visible
    if asked.kinds is not None:
        mask &= np.isin(columns["kind"], [CODES[kind] for kind in asked.kinds if kind in CODES])
    for mark in asked.marks:
        carrying = np.zeros(segment.rows, dtype=bool)
        carrying[segment.marked(mark)] = True
        mask &= carrying
    if asked.trust:
        mask &= columns["trust"] >= asked.trust
    if asked.since is not None:
        mask &= columns["time"] >= asked.since
    if asked.until is not None:
        mask &= columns["time"] < asked.until
    if asked.as_of is not None:
        mask &= columns["time"] <= asked.as_of
    return mask
