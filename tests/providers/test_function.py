"""A function of the caller's, in whatever shape it answers."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from holdfast.errors import Misconfigured, Unavailable
from holdfast.providers.embedding import checked
from holdfast.providers.function import FunctionEmbedder


class Counting:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> Any:
        self.calls.append(texts)
        return self.answer(texts) if callable(self.answer) else self.answer


@pytest.mark.parametrize(
    "answer",
    [
        lambda texts: [[3, 4] for _ in texts],
        lambda texts: numpy.array([[3.0, 4.0]] * len(texts)),
        lambda texts: numpy.array([[3.0, 4.0]] * len(texts), dtype=numpy.float16),
        lambda texts: tuple((3.0, 4.0) for _ in texts),
    ],
)
def test_lists_and_arrays_of_any_precision(answer: Any) -> None:
    rows = checked(FunctionEmbedder(answer, name="mine")).embed(["a", "b"])
    assert rows.dtype == numpy.float32
    assert numpy.allclose(rows, [[0.6, 0.8]] * 2)


def test_the_dimension_is_found_by_one_call() -> None:
    function = Counting(lambda texts: [[1.0, 0.0, 0.0] for _ in texts])
    embedder = FunctionEmbedder(function)
    assert embedder.dimension == 3
    assert embedder.dimension == 3
    assert len(function.calls) == 1


def test_the_first_texts_tell_the_dimension_too() -> None:
    function = Counting(lambda texts: [[1.0, 0.0, 0.0] for _ in texts])
    embedder = checked(FunctionEmbedder(function))
    embedder.embed(["real text"])
    assert embedder.dimension == 3
    assert function.calls == [["real text"]]


def test_a_given_dimension_is_held_against_the_answer() -> None:
    with pytest.raises(Misconfigured, match="dimension 4, and answered with 2"):
        checked(FunctionEmbedder(lambda texts: [[1.0, 2.0]] * len(texts), name="mine", dimension=4)).embed(["a"])


@pytest.mark.parametrize("answer", [None, 3, [], [1.0, 2.0], {"data": 1}])
def test_a_function_that_answers_nonsense(answer: Any) -> None:
    with pytest.raises(Misconfigured):
        checked(FunctionEmbedder(Counting(answer))).embed(["a"])


def test_a_function_that_raises_may_do_better_later() -> None:
    def away(texts: list[str]) -> Any:
        raise ConnectionError("no route")

    with pytest.raises(Unavailable, match="no route"):
        checked(FunctionEmbedder(away)).embed(["a"])


def test_names() -> None:
    assert FunctionEmbedder(Counting(None)).name.endswith(".Counting")
    assert FunctionEmbedder(Counting(None), name="mine-v2").name == "mine-v2"
    assert not FunctionEmbedder(Counting(None)).local
    assert FunctionEmbedder(Counting(None), local=True).local
    with pytest.raises(Misconfigured, match="lambda has no name"):
        FunctionEmbedder(lambda texts: texts)


def test_what_is_no_function() -> None:
    with pytest.raises(Misconfigured, match="function is needed"):
        FunctionEmbedder("wordllama")  # type: ignore[arg-type]
