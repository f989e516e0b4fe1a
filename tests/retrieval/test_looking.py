"""The quick ways to look at many rows give what the plain ways give, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.retrieval import lexical, vector
from holdfast.retrieval.corpus import Corpus, Rows
from holdfast.retrieval.lexical import Lexical
from holdfast.retrieval.segment import Document, Segment, Vectors, build, hashed
from holdfast.retrieval.source import StreamRange

WORDS = ("anchor", "boat", "cliff", "dune", "eel", "fog", "gull", "harbour")
LONG = " ".join(f"{word} sails far away today." for word in WORDS * 40)


@pytest.fixture
def corpus() -> Corpus:
    """Two streams in three segments, with rows that say nothing and some of several passages; vectors for all."""
    random = np.random.default_rng(7)

    def said(position: int) -> str:
        return LONG if position % 17 == 0 else "" if position % 11 == 0 else " ".join(random.choice(WORDS, size=6))

    def segment(stream: int, positions: range) -> Segment:
        made, texts = build(Document(stream, at, "message", at, at, said(at)) for at in positions)
        rows = random.normal(size=(len(texts), 16)).astype("<f2")
        return Segment(made.arrays(), [Vectors("m", rows)])

    segments = [segment(1, range(1, 80)), segment(1, range(80, 121)), segment(2, range(1, 60))]
    return Corpus(segments, [StreamRange(1, 0, 120, "a"), StreamRange(2, 0, 59, "b")])


def some(corpus: Corpus, count: int, *, none: bool = False) -> Rows:
    random = np.random.default_rng(count)
    part = random.integers(0, len(corpus.segments), count)
    row = np.array([random.integers(-1 if none else 0, corpus.segments[one].rows) for one in part], dtype=np.int64)
    return Rows(part, row)


def test_halves_are_widened_as_they_are() -> None:
    every = np.arange(2**16, dtype=np.uint16).view("<f2")
    finite = every[np.isfinite(every)]
    wide = vector._wide(finite)
    assert wide.dtype == np.float32
    assert wide.view(np.uint32).tolist() == finite.astype(np.float32).view(np.uint32).tolist()


@pytest.mark.parametrize("large", [10, 10**6])
def test_rows_that_are_looked_up_together_hold_what_each_holds_alone(
    corpus: Corpus, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "LARGE", large)
    terms = {hashed(word): 1.0 for word in (*WORDS[:4], "nowhere")}
    several = [some(corpus, 40), some(corpus, 30, none=True), some(corpus, 0), some(corpus, 7, none=True)]
    together = Lexical(corpus, terms)
    together.look(several)
    for rows in several:
        assert np.array_equal(together.at(rows), Lexical(corpus, terms).at(rows))
        assert not together.at(rows)[:, rows.row < 0].any()


def test_neighbours_are_the_next_that_say_something(corpus: Corpus) -> None:
    rows = some(corpus, 60)
    places = list(zip(corpus.column("stream", rows).tolist(), corpus.column("position", rows).tolist(), strict=True))
    ends = {1: 120, 2: 59}
    for step, found in zip((-2, 1), corpus.beside(rows, (-2, 1)), strict=True):
        for at, (stream, position) in enumerate(places):
            wanted = position + step
            while wanted % 11 == 0 and wanted % 17 and 0 < wanted <= ends[stream]:
                wanted += 1 if step > 0 else -1
            there = found.at(slice(at, at + 1))
            if 0 < wanted <= ends[stream]:
                assert (corpus.column("stream", there)[0], corpus.column("position", there)[0]) == (stream, wanted)
            else:
                assert there.row[0] == -1


def test_vectors_of_rows_are_near_as_the_rows_are_and_nothing_is_near_none(corpus: Corpus) -> None:
    query = np.random.default_rng(3).normal(size=16).astype(np.float32)
    rows = some(corpus, 50, none=True)
    exact, by_signs = (vector.Nearness(corpus, "m", query, exact) for exact in (10**6, 0))
    assert np.allclose(exact.row(rows), by_signs.row(rows), atol=1e-6)
    assert not by_signs.row(rows)[rows.row < 0].any()
    assert not by_signs.vectors(rows)[rows.row < 0].any()
    assert by_signs.vectors(rows) is by_signs.vectors(rows)


def test_rows_are_grouped_by_segment_in_their_order() -> None:
    for parts in ([], [0, 0, 1, 2, 2], [2, 0, 1, 0, 2], [3]):
        rows = Rows(np.array(parts, dtype=np.int64), np.arange(len(parts)))
        found = {part: rows.row[here].tolist() for part, here in rows.groups()}
        assert found == {part: [at for at, one in enumerate(parts) if one == part] for part in sorted(set(parts))}
