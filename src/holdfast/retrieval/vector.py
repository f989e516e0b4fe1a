"""What a query's vector says of every row: exactly, and in a large corpus by a first look at signs alone.

Up to ``EXACT`` passages every vector is compared. Beyond, each vector is also 1 bit per dimension (the sign of its
distance from the mean): counting differing bits finds some candidates, whose real vectors are then compared. Both come
from the same stored rows, so there is no second index to keep in step.

Deliberately absent: making vectors (``providers``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.retrieval.corpus import Corpus, Rows
from holdfast.retrieval.lexical import best_of
from holdfast.retrieval.segment import Array, Segment

EXACT = 50_000
SECOND_LOOK = 4_000
"""How many passages the signs let through to be compared exactly, in the whole corpus."""


class Near(NamedTuple):
    """Passages and how near each is to a query, by segment; of a large corpus only the nearest."""

    parts: list[tuple[Array, Array]]


def has_vectors(segment: Segment, model: str) -> bool:
    return segment.vectors is not None and segment.vectors.model == model


def nearest(corpus: Corpus, model: str, query: Array, exact: int = EXACT) -> list[tuple[Array, Array]]:
    """For each segment, rows and how near their nearest passage is: all rows, or in a large corpus the likeliest."""
    if corpus.passages <= exact:
        return [_all(segment, query) if has_vectors(segment, model) else _none() for segment in corpus.segments]
    return _by_signs(corpus, model, query)


def _none() -> tuple[Array, Array]:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)


def _all(segment: Segment, query: Array) -> tuple[Array, Array]:
    near = np.append(np.vecdot(full(segment), query), np.float32(-2))
    rows = np.arange(segment.rows)
    return rows, best_of(segment, near, rows)


def full(segment: Segment) -> Array:
    """The vectors of a segment as numbers that are quick to multiply."""
    if "full" not in segment.cache:
        assert segment.vectors is not None
        segment.cache["full"] = segment.vectors.rows.astype(np.float32)
    found: Array = segment.cache["full"]
    return found


def _by_signs(corpus: Corpus, model: str, query: Array) -> list[tuple[Array, Array]]:
    """Count differing signs everywhere, and compare exactly where fewest differ."""
    distances = [
        _differing(segment, query) if has_vectors(segment, model) else np.zeros(0, dtype=np.uint16)
        for segment in corpus.segments
    ]
    counted = sum((np.bincount(distance, minlength=len(query) + 1) for distance in distances), np.zeros(len(query) + 1))
    limit = int(np.searchsorted(np.cumsum(counted), SECOND_LOOK))
    found = []
    for segment, distance in zip(corpus.segments, distances, strict=True):
        passages = np.nonzero(distance <= limit)[0]
        if not len(passages):
            found.append(_none())
            continue
        assert segment.vectors is not None
        near = np.vecdot(segment.vectors.rows[passages].astype(np.float32), query)
        rows, starts = np.unique(segment.owner[passages], return_index=True)
        found.append((rows, np.maximum.reduceat(near, starts)))
    return found


def _differing(segment: Segment, query: Array) -> Array:
    mean, columns = _signs(segment)
    bits = np.packbits(query > mean, bitorder="little")
    words = np.frombuffer(np.pad(bits, (0, -len(bits) % 8)).tobytes(), dtype="<u8")
    found: Array = np.bitwise_count(columns[0] ^ words[0]).astype(np.uint16)
    for column, word in zip(columns[1:], words[1:], strict=True):
        found += np.bitwise_count(column ^ word)
    return found


def _signs(segment: Segment) -> tuple[Array, list[Array]]:
    """The signs of a segment's vectors, 64 dimensions to a number, a column each."""
    if "signs" not in segment.cache:
        assert segment.vectors is not None
        rows = segment.vectors.rows
        sample = rows[:: max(1, len(rows) // 4_096)].astype(np.float32)
        mean = sample.mean(axis=0)
        bits = np.packbits(rows > mean.astype(rows.dtype), axis=1, bitorder="little")
        padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
        words = np.ascontiguousarray(padded).view("<u8")
        segment.cache["signs"] = (mean, [np.ascontiguousarray(words[:, at]) for at in range(words.shape[1])])
    found: tuple[Array, list[Array]] = segment.cache["signs"]
    return found


def last_near(corpus: Corpus, model: str, query: Array, rows: Rows) -> Array:
    """How near each row's last passage is: of a standing instruction, the occasion that it is for."""
    found = np.zeros(len(rows), dtype=np.float32)
    for part in np.unique(rows.part):
        segment = corpus.segments[part]
        if has_vectors(segment, model):
            here = np.nonzero(rows.part == part)[0]
            last = np.append(segment.columns["first"][1:], segment.passages)[rows.row[here]] - 1
            assert segment.vectors is not None
            found[here] = np.vecdot(segment.vectors.rows[last].astype(np.float32), query)
    return found


def best_near(corpus: Corpus, model: str, query: Array, rows: Rows) -> Array:
    """How near each row's nearest passage is."""
    found = np.zeros(len(rows), dtype=np.float32)
    for part in np.unique(rows.part):
        segment = corpus.segments[part]
        if not has_vectors(segment, model):
            continue
        here = np.nonzero((rows.part == part) & (rows.row >= 0))[0]
        if corpus.passages <= EXACT:
            near = np.append(np.vecdot(full(segment), query), np.float32(-2))
            found[here] = best_of(segment, near, rows.row[here])
        else:
            found[here] = _best_near(segment, query, rows.row[here])
    return found


def _best_near(segment: Segment, query: Array, rows: Array) -> Array:
    """The same without a second copy of all vectors, which would be large."""
    assert segment.vectors is not None
    first = segment.columns["first"][rows]
    stops = np.append(segment.columns["first"][1:], segment.passages)[rows]
    counts = stops - first
    ends = np.cumsum(counts)
    passages = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts) + np.repeat(first, counts)
    near = np.vecdot(segment.vectors.rows[passages].astype(np.float32), query)
    best: Array = np.maximum.reduceat(near, ends - counts) if len(rows) else near
    return best


def whole(corpus: Corpus, model: str, rows: Rows, dimension: int) -> Array:
    """One vector for each row: that of its passages together, by their length. Zero where there is none."""
    found = np.zeros((len(rows), dimension), dtype=np.float32)
    for part in np.unique(rows.part):
        segment = corpus.segments[part]
        if not has_vectors(segment, model):
            continue
        here = np.nonzero((rows.part == part) & (rows.row >= 0))[0]
        found[here] = _whole(segment, rows.row[here])
    return found


def _whole(segment: Segment, rows: Array) -> Array:
    assert segment.vectors is not None
    if segment.plain:
        return segment.vectors.rows[rows].astype(np.float32)
    if "whole" not in segment.cache:
        first = segment.columns["first"]
        weights = np.maximum(segment.size, 1).astype(np.float32)[:, None]
        sums = np.add.reduceat(segment.vectors.rows.astype(np.float32) * weights, first, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        segment.cache["whole"] = (sums / np.maximum(lengths, 1e-9)).astype(np.float16)
    found: Array = segment.cache["whole"][rows].astype(np.float32)
    return found
