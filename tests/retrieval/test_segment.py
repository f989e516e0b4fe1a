"""Segments: joined ones are what would have been built at once, and bytes come back exactly or not at all."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import text
from holdfast.errors import Corrupt
from holdfast.retrieval import segment as room
from holdfast.retrieval.segment import COLUMNS, KINDS, Document, Segment, Vectors, build, hashed, merge
from holdfast.testing.embedders import HashEmbedder

WORDS = (
    "anchor",
    "boat",
    "cliff",
    "dune",
    "Ebbe",
    "Flut",
    "文字",
    "الموج",
    "🐟",
    "never",
    "always",
    "when I ask about",
)
TEXTS = st.lists(st.sampled_from(WORDS), max_size=80).map(" ".join) | st.text(max_size=60)
DOCUMENTS = st.lists(
    st.builds(
        Document,
        stream=st.integers(1, 2**63 - 1) | st.integers(1, 3),
        position=st.integers(1, 50),
        kind=st.sampled_from(KINDS),
        time=st.integers(0, 2**60),
        recorded=st.integers(0, 2**60),
        text=TEXTS,
        speaker=st.sampled_from(("", "Ana", "user", "李雷")),
        from_user=st.booleans(),
        trust=st.integers(0, 2),
        importance=st.floats(0, 1, width=32),
        ref=st.integers(0, 5),
        fact=st.none() | st.sampled_from(("ana\x00city", "bo\x00city")),
        corrects=st.integers(0, 5),
        ended=st.booleans(),
        marks=st.lists(st.sampled_from(("tag:a", "tag:b", "by:ana")), max_size=2, unique=True).map(tuple),
    ),
    max_size=14,
    unique_by=lambda document: (document.stream, document.position),
)


def made(documents: list[Document], embedder: HashEmbedder | None = None) -> Segment:
    segment, texts = build(documents)
    if embedder is not None:
        rows = embedder.embed(texts).astype("<f2")
        segment.vectors = {embedder.name: Vectors(embedder.name, rows)}
    return segment


def same(one: Segment, other: Segment) -> bool:
    theirs = other.arrays()
    return all(
        np.array_equal(values, theirs[name]) and values.dtype == theirs[name].dtype
        for name, values in one.arrays().items()
    )


# Joining


@given(DOCUMENTS, st.lists(st.integers(0, 3), min_size=14, max_size=14))
def test_joined_segments_are_what_would_have_been_built_at_once(documents: list[Document], parts: list[int]) -> None:
    embedder = HashEmbedder(16)
    groups = [[document for document, part in zip(documents, parts, strict=False) if part == one] for one in range(4)]
    segments = [made(group, embedder) for group in groups if group]
    if not segments:
        return
    joined, whole = merge(segments), made(documents, embedder)
    assert same(joined, whole)
    assert np.array_equal(joined.vectors[embedder.name].rows, whole.vectors[embedder.name].rows)
    assert joined.whole(embedder.name)


@given(DOCUMENTS.filter(bool))
def test_the_order_in_which_documents_come_does_not_matter(documents: list[Document]) -> None:
    assert same(made(documents), made(documents[::-1]))


@pytest.mark.parametrize("other", [HashEmbedder(16, name="b"), HashEmbedder(32, name="a"), None], ids=str)
def test_vectors_of_two_models_are_not_mixed(other: HashEmbedder | None) -> None:
    """What has none of the first model is said to have none; nothing that was made is thrown away."""
    one = made([Document(1, 2, "message", 1, 1, text="anchor")], HashEmbedder(16, name="a"))
    joined = merge([one, made([Document(1, 1, "message", 1, 1, text="boat")], other)])
    assert joined.vectors["a"].done.tolist() == [False, True]
    assert np.array_equal(joined.vectors["a"].rows[1:], one.vectors["a"].rows)
    assert not joined.vectors["a"].rows[0].any()
    assert ("b" in joined.vectors) == (other is not None and other.name == "b")


# Looking things up


@given(DOCUMENTS)
def test_every_place_is_found_and_no_other(documents: list[Document]) -> None:
    segment = made(documents)
    places = {(document.stream, document.position) for document in documents}
    asked = sorted(
        places | {(stream, position + step) for stream, position in places for step in (-2, -1, 1, 2)} | {(7, 7)}
    )
    streams = np.array([stream for stream, _ in asked], dtype=np.int64)
    positions = np.array([position for _, position in asked], dtype=np.int64)
    for place, row in zip(asked, segment.find(streams, positions).tolist(), strict=True):
        assert (row >= 0) == (place in places)
        if row >= 0:
            assert (segment.columns["stream"][row], segment.columns["position"][row]) == place


@given(DOCUMENTS.filter(bool))
def test_a_segment_reaches_as_far_as_its_last_documents(documents: list[Document]) -> None:
    ends: dict[int, int] = {}
    for document in documents:
        ends[document.stream] = max(document.position, ends.get(document.stream, 0))
    assert made(documents).reaches() == ends


def test_an_empty_segment_reaches_nowhere() -> None:
    assert made([]).reaches() == {}


@given(DOCUMENTS)
def test_marks_are_on_the_rows_that_carry_them(documents: list[Document]) -> None:
    segment = made(documents)
    for mark in ("tag:a", "tag:b", "by:ana", "tag:none"):
        carrying = {(document.stream, document.position) for document in documents if mark in document.marks}
        rows = segment.marked(mark)
        found = set(
            zip(segment.columns["stream"][rows].tolist(), segment.columns["position"][rows].tolist(), strict=True)
        )
        assert found == carrying


@given(DOCUMENTS)
def test_terms_are_counted_in_the_passages_that_hold_them(documents: list[Document]) -> None:
    segment, texts = build(documents)
    assert len(texts) == segment.passages
    for word in ("anchor", "boat", "文"):
        ((holder, count),) = segment.holders([hashed(text.stem(word))])
        per_row = np.zeros(segment.rows, dtype=int)
        np.add.at(per_row, segment.owner[holder], count)
        for document in documents:
            row = int(segment.find(np.array([document.stream]), np.array([document.position]))[0])
            pieces = room.passages(document.text)
            told = [term for piece in pieces[: pieces.own] for term in text.terms(piece)]
            assert per_row[row] == told.count(text.stem(word))


@given(DOCUMENTS, st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=6))
def test_several_terms_are_looked_up_as_one_after_another(documents: list[Document], words: list[str]) -> None:
    segment = made(documents)
    terms = [hashed(word) for word in words]
    together = segment.holders(terms)
    assert len(together) == len(terms)
    for term, (holder, count) in zip(terms, together, strict=True):
        ((alone, counted),) = segment.holders([term])
        assert np.array_equal(holder, alone)
        assert np.array_equal(count, counted)


def test_a_mark_is_not_a_word_and_a_word_no_mark() -> None:
    segment = made([Document(1, 1, "message", 1, 1, text="tag travel", marks=("tag:food",))])
    assert len(segment.marked("tag:travel")) == 0
    assert [len(holder) for holder, _ in segment.holders([hashed("food"), hashed("travel")])] == [0, 1]


def test_a_term_that_is_there_very_often_is_counted_as_often_as_fits() -> None:
    segment = made([Document(1, 1, "message", 1, 1, text="boat " * 60)] * 1)
    assert int(segment.holders([hashed("boat")])[0][1].sum()) == 60
    assert int(segment.columns["length"][0]) == 60


# Bytes


@given(DOCUMENTS)
def test_bytes_come_back_as_they_went(documents: list[Document]) -> None:
    segment = made(documents)
    back = room.of_arrays(room.from_bytes(room.to_bytes(segment.arrays())))
    assert same(back, segment)
    assert room.to_bytes(back.arrays()) == room.to_bytes(segment.arrays())


@given(st.binary(max_size=300))
def test_bytes_that_are_no_part_are_refused(data: bytes) -> None:
    with pytest.raises(Corrupt):
        room.of_arrays(room.from_bytes(data))


@given(DOCUMENTS.filter(bool), st.data())
def test_changed_bytes_are_refused_or_are_a_segment(documents: list[Document], data: st.DataObject) -> None:
    """The digest finds every change; what it has not seen must still not be able to raise anything else."""
    stored = bytearray(room.to_bytes(made(documents).arrays()))
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= data.draw(st.integers(1, 255))
    with suppress(Corrupt):
        room.of_arrays(room.from_bytes(bytes(stored)))


@given(DOCUMENTS.filter(bool), st.data())
def test_a_part_that_was_cut_off_is_refused(documents: list[Document], data: st.DataObject) -> None:
    stored = room.to_bytes(made(documents).arrays())
    with pytest.raises(Corrupt):
        room.of_arrays(room.from_bytes(stored[: data.draw(st.integers(0, len(stored) - 1))]))


@pytest.mark.parametrize("name", [*COLUMNS, "owner", "size", "terms", "offsets", "holder", "count"])
def test_columns_that_do_not_fit_are_refused(name: str) -> None:
    arrays = made([Document(1, n, "message", 1, 1, text="anchor boat") for n in range(1, 4)]).arrays()
    for wrong in ({**arrays, name: arrays[name][:-1]}, {key: arrays[key] for key in arrays if key != name}):
        with pytest.raises(Corrupt):
            room.of_arrays(wrong)


@pytest.mark.parametrize("kind", ["|O", "garbage", "|S0", "<U3", "|V0", "<i8, (", "<M8[s]"])
def test_a_kind_of_number_that_is_none_is_refused(kind: str) -> None:
    plain = msgspec.msgpack.decode(room.to_bytes(made([Document(1, 1, "message", 1, 1, text="anchor")]).arrays()))
    plain["time"][0] = kind
    with pytest.raises(Corrupt):
        room.of_arrays(room.from_bytes(msgspec.msgpack.encode(plain)))


def test_a_term_is_the_same_number_on_every_machine() -> None:
    assert (hashed("boat"), hashed("文")) == (5466900226927393365, 12918189876192945262)
