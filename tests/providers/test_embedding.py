"""What comes from an embedder is looked at before it is believed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy
import pytest

from holdfast.errors import HoldfastError, Invalid, Misconfigured, Unavailable
from holdfast.providers.embedding import BATCH_CHARACTERS, Checked, Embedder, checked
from holdfast.testing.embedders import Flaky, HashEmbedder

SEAT = [3, 40, 42, 49]  # places, by a digest that never changes


class Answering:
    """An embedder that answers what the test says."""

    name = "answering"
    local = True

    def __init__(self, answer: Any, dimension: Any = 3) -> None:
        self.answer = answer
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Any:
        return self.answer(texts) if callable(self.answer) else self.answer


def test_rows_are_float32_of_length_one_in_the_order_of_the_texts() -> None:
    embedder = checked(Answering(lambda texts: [[float(len(text)), 0, 0] for text in texts]))
    rows = embedder.embed(["a", "bbb"])
    assert rows.dtype == numpy.float32
    assert rows.tolist() == [[1, 0, 0], [1, 0, 0]]


def test_numbers_that_overflow_when_squared_are_made_unit_length_all_the_same() -> None:
    rows = checked(Answering([[3e30, 4e30, 0], [3e-30, 4e-30, 0]])).embed(["a", "b"])
    assert numpy.allclose(rows, [[0.6, 0.8, 0], [0.6, 0.8, 0]])


def test_the_same_texts_in_any_batching_give_the_same_rows() -> None:
    texts = [f"word{number % 7} and {number}" for number in range(50)]
    whole = checked(HashEmbedder()).embed(texts)
    for batch in (1, 3, 49, 50, 51):
        assert numpy.array_equal(checked(HashEmbedder(), batch=batch).embed(texts), whole)


def test_batches_keep_to_their_limits() -> None:
    sizes: list[tuple[int, int]] = []

    def answer(texts: Sequence[str]) -> list[list[float]]:
        sizes.append((len(texts), sum(map(len, texts))))
        return [[1.0, 0, 0]] * len(texts)

    texts = [f"{number} " + "x" * 30_000 for number in range(20)]
    checked(Answering(answer), batch=4).embed([*texts, "y" * (2 * BATCH_CHARACTERS)])
    assert all(count <= 4 for count, _ in sizes)
    assert all(length <= BATCH_CHARACTERS or count == 1 for count, length in sizes)
    assert sum(count for count, _ in sizes) == 21


def test_blank_texts_are_zero_rows_and_nobody_is_asked() -> None:
    inner = Flaky(HashEmbedder(8))
    rows = checked(inner).embed(["", " \n\t", "word"])
    assert inner.texts == 1
    assert not rows[:2].any()
    assert rows[2].any()


def test_no_texts_give_no_rows() -> None:
    assert checked(HashEmbedder(8)).embed([]).shape == (0, 8)


@pytest.mark.parametrize("texts", ["one text", b"bytes", [1], ["fine", None]])
def test_what_is_not_a_list_of_texts_is_refused(texts: Any) -> None:
    with pytest.raises(Invalid):
        checked(HashEmbedder()).embed(texts)


# Answers that break the promise


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([[1.0, 2.0]], "dimension 3"),
        ([[1.0, 2.0, 3.0, 4.0]], "dimension 3"),
        ([[1.0, 2.0, float("nan")]], "NaN"),
        ([[1.0, 2.0, float("inf")]], "NaN or infinity"),
        ([[1e300, 2.0, 3.0]], "infinity"),
        ([1.0, 2.0, 3.0], "shape"),
        ([[[1.0, 2.0, 3.0]]], "shape"),
        ([], "shape"),
        ([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], "shape"),
        ([["a", "b", "c"]], "instead of numbers"),
        ([[1.0, None, 3.0]], "instead of numbers"),
        ([[True, False, True]], "instead of numbers"),
        ([[1j, 0, 0]], "instead of numbers"),
        (None, "instead of numbers"),
    ],
)
def test_a_wrong_answer_is_refused_with_a_sentence(answer: Any, says: str) -> None:
    with pytest.raises(Misconfigured, match=says) as caught:
        checked(Answering(answer)).embed(["text"])
    assert caught.value.embedder == "answering"


def test_rows_of_unequal_length_are_refused() -> None:
    with pytest.raises(Misconfigured, match="unequal"):
        checked(Answering([[1.0, 2.0, 3.0], [1.0]])).embed(["a", "b"])


def test_the_texts_that_gave_nan_are_named_by_their_place() -> None:
    embedder = checked(
        Answering(lambda texts: [[float("nan") if "bad" in text else 1.0, 0, 0] for text in texts]), batch=2
    )
    with pytest.raises(Misconfigured) as caught:
        embedder.embed(["a", "", "b", "c", "bad", "d"])
    assert caught.value.texts == [4]


def test_a_dimension_that_drifts_is_noticed() -> None:
    inner = Answering(lambda texts: [[1.0] * 3] * len(texts))
    embedder = checked(inner)
    embedder.embed(["a"])
    inner.answer, inner.dimension = (lambda texts: [[1.0] * 4] * len(texts)), 4
    with pytest.raises(Misconfigured, match="dimension 3, and answered with 4"):
        embedder.embed(["b"])


@pytest.mark.parametrize("dimension", [0, -1, 2.5, "3", None, True, 10**9])
def test_an_impossible_dimension_is_refused(dimension: Any) -> None:
    with pytest.raises(Misconfigured, match="dimension"):
        checked(Answering([[1.0, 2.0, 3.0]], dimension)).embed(["a"])


@pytest.mark.parametrize("name", ["", "  ", None, 7, "x" * 201])
def test_a_name_is_needed(name: Any) -> None:
    inner = HashEmbedder()
    inner.name = name
    with pytest.raises(Misconfigured, match="name"):
        checked(inner)


# Failures


def test_an_error_of_somebody_elses_is_a_failure_that_may_pass() -> None:
    with pytest.raises(Unavailable, match="KeyError") as caught:
        checked(Flaky(HashEmbedder(), fail_times=1, error=KeyError("token"))).embed(["a"])
    assert caught.value.retryable
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_missing_package_is_not_retried() -> None:
    with pytest.raises(Misconfigured, match="needs a package"):
        checked(Flaky(HashEmbedder(), fail_times=1, error=ImportError("No module named 'x'"))).embed(["a"])


def test_our_own_errors_come_through_as_they_are() -> None:
    for error in (Unavailable("away"), Invalid("too long"), Misconfigured("no key")):
        with pytest.raises(HoldfastError) as caught:
            checked(Flaky(HashEmbedder(), fail_times=1, error=error)).embed(["a"])
        assert caught.value is error


def test_a_failure_leaves_nothing_behind_and_the_next_call_is_right() -> None:
    inner = Flaky(HashEmbedder(), fail_times=2)
    embedder = checked(inner)
    for _ in range(2):
        with pytest.raises(Unavailable):
            embedder.embed(["one", "two"])
    inner.nan = True
    with pytest.raises(Misconfigured):
        embedder.embed(["one", "two"])
    inner.nan = False
    assert numpy.allclose(embedder.embed(["one", "two"]), HashEmbedder().embed(["one", "two"]))


# Recent texts


def test_a_question_asked_twice_is_embedded_once() -> None:
    inner = Flaky(HashEmbedder())
    embedder = checked(inner)
    first = embedder.embed(["where does she like to sit?"])
    assert numpy.array_equal(embedder.embed(["where does she like to sit?"]), first)
    assert inner.calls == 1


def test_what_a_caller_does_to_its_rows_does_not_change_the_next_answer() -> None:
    embedder = checked(HashEmbedder())
    first = embedder.embed(["a"])
    kept = first.copy()
    first[:] = 7.0
    assert numpy.array_equal(embedder.embed(["a"]), kept)


def test_a_text_that_comes_twice_in_one_call_is_sent_once() -> None:
    inner = Flaky(HashEmbedder())
    rows = checked(inner).embed(["a", "b", "a"])
    assert inner.texts == 2
    assert numpy.array_equal(rows[0], rows[2])


def test_only_the_recent_ones_are_kept() -> None:
    inner = Flaky(HashEmbedder())
    embedder = checked(inner, recent=2)
    for text in ("a", "b", "a", "c", "a", "b"):  # c pushes out b, which was used longer ago than a
        embedder.embed([text])
    assert inner.calls == 4


def test_a_bulk_load_does_not_push_out_a_question() -> None:
    inner = Flaky(HashEmbedder())
    embedder = checked(inner, recent=4)
    embedder.embed(["question"])
    embedder.embed([f"text {number}" for number in range(100)])
    before = inner.calls
    embedder.embed(["question"])
    assert inner.calls == before


def test_many_threads_get_right_answers() -> None:
    embedder = checked(HashEmbedder(), recent=8)
    texts = [f"text {number}" for number in range(32)]
    right = HashEmbedder().embed(texts)
    wrong: list[str] = []

    def work(offset: int) -> None:
        for turn in range(200):
            at = (turn * 7 + offset) % len(texts)
            if not numpy.allclose(embedder.embed([texts[at]])[0], right[at]):
                wrong.append(texts[at])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Shapes of the thing itself


def test_one_that_is_checked_is_not_wrapped_again() -> None:
    embedder = checked(HashEmbedder())
    assert checked(embedder) is embedder
    assert isinstance(embedder, Embedder)
    assert isinstance(HashEmbedder(), Embedder)
    assert (embedder.name, embedder.dimension, embedder.local) == ("hash-64", 64, True)


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"recent": -1}])
def test_impossible_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        Checked(HashEmbedder(), **wrong)


def test_the_fake_is_the_same_on_every_machine_and_puts_shared_words_near() -> None:
    rows = HashEmbedder(64).embed(["aisle seat", "an aisle seat please", "quarterly budget", ""])
    assert rows[0] @ rows[1] > 0.5 > rows[0] @ rows[2]
    assert not rows[3].any()
    assert [int(at) for at in numpy.flatnonzero(HashEmbedder(64).embed(["seat"])[0])] == SEAT
