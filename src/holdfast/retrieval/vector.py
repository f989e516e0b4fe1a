"""What a query's vector says of every row: exactly, and in a large corpus by a first look at signs alone.

Up to ``EXACT`` passages every vector is compared. Beyond, each vector is also 1 bit per dimension (the sign of its
distance from the mean): counting differing bits lets some through, holding the query's numbers against the bits fewer,
and those few are compared exactly. All comes from the same stored rows, so there is no second index to keep in step.

Deliberately absent: making vectors (``providers``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from holdfast.retrieval.corpus import Corpus, Rows
from holdfast.retrieval.segment import Array, Segment, Vectors

EXACT = 50_000
_LONG = 8  # passages of a text on average
FIRST_LOOK = 20_000
"""How many passages the signs let through."""
SECOND_LOOK = 2_000
"""How many of those are then compared exactly."""

_SAMPLE = 64
_USUAL, _USUAL_PAIRS = (0.12, 0.1), 200
_REPEATED = 0.9  # what is said again and again, such as thanks, is not unrelated to itself

_FAR = np.iinfo(np.uint16).max
_SIGN_AND_NUMBER, _EXPONENTS = np.int32(-0x7000_0001), np.float32(2.0**112)

Scored = tuple[Array, Array]
"""Rows of a segment, and a value for each."""


class Nearness:
    """How near the rows of a corpus are to one query, by one model."""

    def __init__(self, corpus: Corpus, model: str, query: Array, exact: int | None = None) -> None:
        self._corpus, self.model, self.query = corpus, model, query
        self._of = [segment.vectors.get(model) for segment in corpus.segments]  # as of now, whatever is added meanwhile
        self._exact = corpus.passages <= (EXACT if exact is None else exact)
        self._by_passage: dict[int, Array] = {}
        self._by_row: dict[int, Array] = {}
        self._known: dict[int, tuple[Rows, Array]] = {}  # with the rows, so that no others get their id

    def best(self, masks: Sequence[Array | None] = ()) -> list[Scored]:
        """For each segment, rows and how near the best passage of each is: all, or of a large corpus the likeliest."""
        if not self._exact:
            allowed = self._allowed(masks)
            few = sum(len(passages) for passages in allowed.values()) <= EXACT
            return self._of_few(allowed) if allowed and few else self._by_signs(allowed)
        return [
            _NONE
            if self._of[part] is None
            else (np.arange(segment.rows), _best_of(segment, self._passages(part), np.arange(segment.rows)))
            for part, segment in enumerate(self._corpus.segments)
        ]

    def passage(self, rows: Rows) -> Array:
        """How near each row's nearest passage is."""
        found = np.zeros(len(rows), dtype=np.float32)
        for part, here in rows.groups():
            segment, vectors = self._corpus.segments[part], self._of[part]
            if vectors is None:
                continue
            if self._exact:
                found[here] = _best_of(segment, self._passages(part), rows.row[here])
            else:
                found[here] = self._best_of_some(segment, vectors, rows.row[here])
        return found

    def row(self, rows: Rows) -> Array:
        """How near the whole of each row is; 0 for a row of -1."""
        if not self._exact:
            near: Array = np.vecdot(self.vectors(rows), self.query)
            return near
        found = np.zeros(len(rows), dtype=np.float32)
        for part, here in rows.groups():
            if self._of[part] is not None:
                wanted = rows.row[here]
                found[here] = np.where(wanted >= 0, self._rows(part)[wanted], 0.0)
        return found

    def last(self, rows: Rows) -> Array:
        """How near each row's last passage is: of a standing instruction, the occasion that it is for."""
        found = np.zeros(len(rows), dtype=np.float32)
        for part, here in rows.groups():
            vectors = self._of[part]
            if vectors is not None:
                last = self._corpus.segments[part].passage_ends[rows.row[here]] - 1
                found[here] = np.vecdot(_wide(vectors.rows[last]), self.query)
        return found

    def vectors(self, rows: Rows) -> Array:
        """One vector for each row: that of its passages together, by their length. Zero where there is none.

        Several stages ask for the same rows, so they are not to be changed.
        """
        known = self._known.get(id(rows))
        if known is not None:
            return known[1]
        found = np.zeros((len(rows), len(self.query)), dtype=np.float32)
        for part, here in rows.groups():
            vectors = self._of[part]
            if vectors is not None:
                found[here] = _whole(self._corpus.segments[part], vectors, rows.row[here])
        found[rows.row < 0] = 0.0
        self._known[id(rows)] = (rows, found)
        return found

    def background(self, masks: Sequence[Array] = ()) -> tuple[float, float]:
        """The mean cosine of texts here that have nothing to do with each other, and how far cosines lie from it.

        It tells what a cosine of this model is worth in this language: some models see 0.6 between any two Chinese
        texts. A sample of the rows that pass says so; where that is small, what is usual for such models counts too.
        """
        if masks:
            return _background(self._sample(masks))
        cache, name = self._corpus.cache, ("background", self.model)
        if name not in cache or cache[name][0] != self._of:
            cache[name] = (self._of, _background(self._sample()))
        found: tuple[float, float] = cache[name][1]
        return found

    # Inside

    def _sample(self, masks: Sequence[Array] = ()) -> Array:
        """Some of the vectors, from everywhere: of all passages, or of the first ones of the rows that pass."""
        held = [
            (vectors.rows, segment.columns["first"][mask] if mask is not None else None)
            for vectors, segment, mask in zip(self._of, self._corpus.segments, masks or repeat(None), strict=False)
            if vectors is not None
        ]
        step = max(1, sum(len(rows if some is None else some) for rows, some in held) // _SAMPLE)
        picked = [_wide(rows[::step] if some is None else rows[some[::step]]) for rows, some in held]
        return np.concatenate(picked)[: 2 * _SAMPLE] if picked else np.zeros((0, 1))

    def _held(self, part: int) -> Vectors:
        vectors = self._of[part]
        assert vectors is not None
        return vectors

    def _passages(self, part: int) -> Array:
        """How near every passage of a segment is."""
        if part not in self._by_passage:
            self._by_passage[part] = np.vecdot(_full(self._held(part)), self.query)
        return self._by_passage[part]

    def _rows(self, part: int) -> Array:
        segment = self._corpus.segments[part]
        if segment.plain:
            return self._passages(part)
        if part not in self._by_row:
            self._by_row[part] = np.vecdot(_joined(segment, self._held(part)), self.query)
        return self._by_row[part]

    def _best_of_some(self, segment: Segment, vectors: Vectors, rows: Array) -> Array:
        """The nearest passages of some rows, without a second copy of all vectors, which would be large."""
        passages, starts = segment.passages_of(rows)
        near = np.vecdot(_wide(vectors.rows.take(passages, axis=0)), self.query)
        best: Array = np.maximum.reduceat(near, starts) if len(starts) else near
        return best

    def _allowed(self, masks: Sequence[Array | None]) -> dict[int, Array]:
        """The passages that may be found, by segment, where not all may."""
        if all(mask is None for mask in masks):
            return {}
        found = {}
        for part, segment in enumerate(self._corpus.segments):
            mask = masks[part]
            found[part] = np.arange(segment.passages) if mask is None else np.nonzero(mask[segment.owner])[0]
        return found

    def _of_few(self, allowed: dict[int, Array]) -> list[Scored]:
        """Exactly, among the few that a filter leaves."""
        return [
            _NONE if vectors is None else _second_look(self._corpus.segments[part], vectors, allowed[part], self.query)
            for part, vectors in enumerate(self._of)
        ]

    def _by_signs(self, allowed: dict[int, Array]) -> list[Scored]:
        """Three looks, each at fewer passages: differing signs of all, then the query itself against signs, then
        the vectors."""
        segments, mean = self._corpus.segments, self._mean()
        known = {part: vectors for part, vectors in enumerate(self._of) if vectors is not None}
        distances = {part: _differing(_signs(vectors, mean), self.query > mean) for part, vectors in known.items()}
        for part, passages in allowed.items():
            if part in distances:
                shut = np.ones(len(distances[part]), dtype=bool)
                shut[passages] = False
                distances[part][shut] = _FAR
        limit = _limit([d[d != _FAR] if allowed else d for d in distances.values()], FIRST_LOOK)
        few = {part: np.nonzero(distance <= limit)[0] for part, distance in distances.items()}
        tables = _tables(self.query - mean)
        scores = {part: _by_bytes(_signs(vectors, mean), few[part], tables) for part, vectors in known.items()}
        least = _kth(np.concatenate([np.zeros(0, dtype=np.float32), *scores.values()]), SECOND_LOOK)
        return [
            _second_look(segment, known[part], few[part][scores[part] >= least], self.query) if part in few else _NONE
            for part, segment in enumerate(segments)
        ]

    def _mean(self) -> Array:
        """Where the vectors of a corpus lie: the mean of its largest part. All signs are taken from there."""
        largest = max((one for one in self._of if one is not None), key=lambda one: len(one.rows), default=None)
        if largest is None:
            return np.zeros(len(self.query), dtype=np.float32)
        if "mean" not in largest.cache:
            rows = largest.rows
            largest.cache["mean"] = rows[:: max(1, len(rows) // 4_096)].astype(np.float32).mean(axis=0)
        found: Array = largest.cache["mean"]
        return found


def _background(vectors: Array) -> tuple[float, float]:
    vectors = vectors[vectors.any(axis=1)]  # not those that are still to be made
    cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    cosines = cosines[cosines < _REPEATED]
    if not len(cosines):
        return _USUAL
    share = _USUAL_PAIRS / (len(cosines) + _USUAL_PAIRS)
    mean, spread = float(cosines.mean()), float(cosines.std())
    return (1 - share) * mean + share * _USUAL[0], (1 - share) * spread + share * _USUAL[1]


_NONE: Scored = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))


def _limit(distances: list[Array], wanted: int) -> int:
    """The distance up to which about so many are let through, judged by a sample."""
    sample = np.concatenate([np.zeros(0, dtype=np.uint16), *(distance[::16] for distance in distances)])
    if not len(sample):
        return 0
    at = min(wanted // 16, len(sample) - 1)
    return int(np.partition(sample, at)[at])


def _kth(values: Array, wanted: int) -> float:
    """The value that so many reach."""
    if len(values) <= wanted:
        return -np.inf
    return float(-np.partition(-values, wanted)[wanted])


def _tables(query: Array) -> Array:
    """For every eight dimensions, what each of 256 patterns of signs comes to with the query's own numbers."""
    eights = np.append(query, np.zeros(-len(query) % 64, dtype=np.float32)).reshape(-1, 8)
    signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float32) * 2 - 1
    found: Array = (eights @ signs.T).astype(np.float32)
    return found


def _by_bytes(signs: list[Array], passages: Array, tables: Array) -> Array:
    """The query's own numbers against the signs of some passages."""
    held = np.stack([column.take(passages) for column in signs], axis=1).view(np.uint8)
    found = np.zeros(len(passages), dtype=np.float32)
    for at, table in enumerate(tables):
        found += table.take(held[:, at])
    return found


def _best_of(segment: Segment, by_passage: Array, rows: Array) -> Array:
    """The largest value among each row's passages."""
    passages, starts = segment.passages_of(rows)
    return by_passage[rows] if segment.plain else np.maximum.reduceat(by_passage[passages], starts)


def _second_look(segment: Segment, vectors: Vectors, passages: Array, query: Array) -> Scored:
    if not len(passages):
        return _NONE
    near = np.vecdot(_wide(vectors.rows.take(passages, axis=0)), query)
    rows, starts = np.unique(segment.owner[passages], return_index=True)
    return rows, np.maximum.reduceat(near, starts)


def _wide(halves: Array) -> Array:
    """Numbers of 16 bits as numbers of 32: what ``astype`` gives, in a fraction of its time.

    The bits go where a wider number has them, and what is left is to multiply by the difference of the two ways to
    write an exponent. That holds for all numbers but infinity, and vectors have none.
    """
    bits = halves.view("<i2").astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_NUMBER
    found: Array = bits.view(np.float32)
    found *= _EXPONENTS
    return found


def _full(vectors: Vectors) -> Array:
    """Vectors as numbers that are quick to multiply."""
    if "full" not in vectors.cache:
        vectors.cache["full"] = _wide(vectors.rows)
    found: Array = vectors.cache["full"]
    return found


def _whole(segment: Segment, vectors: Vectors, rows: Array) -> Array:
    """The vectors of whole rows."""
    few = segment.passages <= EXACT or segment.rows * _LONG < segment.passages
    if not segment.plain and few:  # of few long texts the sums are small, and take long to make again
        return _joined(segment, vectors).take(rows, axis=0)
    if not segment.plain:
        return _sums(segment, vectors, *segment.passages_of(rows))
    return vectors.cache["full"][rows] if "full" in vectors.cache else _wide(vectors.rows.take(rows, axis=0))


def _joined(segment: Segment, vectors: Vectors) -> Array:
    """One vector for each row: the sum of its passages', each by its length."""
    if "joined" not in vectors.cache:
        vectors.cache["joined"] = _sums(segment, vectors, np.arange(segment.passages), segment.columns["first"])
    found: Array = vectors.cache["joined"]
    return found


def _sums(segment: Segment, vectors: Vectors, passages: Array, starts: Array) -> Array:
    if not len(starts):
        return np.zeros((0, vectors.rows.shape[1]), dtype=np.float32)
    weights = np.maximum(segment.size[passages], 1).astype(np.float32)[:, None]
    sums = np.add.reduceat(_wide(vectors.rows.take(passages, axis=0)) * weights, starts, axis=0)
    found: Array = sums / np.maximum(np.sqrt(np.vecdot(sums, sums))[:, None], 1e-9)
    return found


def _differing(signs: list[Array], query: Array) -> Array:
    """In how many dimensions the sign of each passage differs from the query's."""
    bits = np.packbits(query, bitorder="little")
    words = np.frombuffer(np.pad(bits, (0, -len(bits) % 8)).tobytes(), dtype="<u8")
    found: Array = np.bitwise_count(signs[0] ^ words[0]).astype(np.uint16)
    for column, word in zip(signs[1:], words[1:], strict=True):
        found += np.bitwise_count(column ^ word)
    return found


def _signs(vectors: Vectors, mean: Array) -> list[Array]:
    """On which side of the mean vectors lie, 64 dimensions to a number, a column each."""
    known = vectors.cache.get("signs")
    if known is None or known[0] is not mean:
        bits = np.packbits(vectors.rows > mean.astype(np.float16), axis=1, bitorder="little")
        words = np.ascontiguousarray(np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))).view("<u8")
        known = vectors.cache["signs"] = (mean, [np.ascontiguousarray(words[:, at]) for at in range(words.shape[1])])
    found: list[Array] = known[1]
    return found
