"""Rerankers of other people: whatever they answer, recall goes on and its numbers stay numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import holdfast
from holdfast.providers.reranker import Passage


class _Judges:
    """A reranker that answers with the same for every passage, or with what a function makes of their number."""

    name = "judges"

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self._answer = answer

    def judge(self, question: str, passages: Sequence[Passage]) -> Any:
        return self._answer(len(passages))


def _asked(answer: Callable[[int], Any]) -> holdfast.types.Recalled:
    with holdfast.open("ram:", embedder=None, reranker=_Judges(answer)) as store:
        memory = store.memory(user="ana")
        memory.remember_all(["The key is with Rita", "The dog is called Rex", "The bicycle is red"])
        return memory.recall("Who has the key?")


@pytest.mark.parametrize(("score", "sure"), [(-1000.0, 0.0), (-1e9, 0.0), (1e9, 1.0)])
def test_any_scale_of_answers_gives_a_confidence(score: float, sure: float) -> None:
    found = _asked(lambda count: np.full((count, 2), score))
    assert (found[0].text, found.confidence, found.report.notes) == ("The key is with Rita", sure, ())


@pytest.mark.parametrize(
    "answer",
    [
        lambda count: np.full((count, 2), np.nan),
        lambda count: [[(-1) ** at * 3e38] * 2 for at in range(count)],
        lambda count: np.full((count, 2), 1e300),
        lambda count: np.zeros((1, 3)),
        lambda count: None,
        lambda count: "no",
        lambda count: 1 / 0,
    ],
)
def test_an_answer_that_is_none_is_said_and_left_out(answer: Callable[[int], Any]) -> None:
    found = _asked(answer)
    assert found.relevant
    assert found[0].text == "The key is with Rita"
    assert all(np.isfinite(hit.score) for hit in found)
    assert [note.startswith("not reranked") for note in found.report.notes] == [True]


def test_it_reads_no_neighbour_that_is_trusted_less() -> None:
    read: list[Passage] = []

    class Reads(_Judges):
        def judge(self, question: str, passages: Sequence[Passage]) -> Any:
            read.extend(passages)
            return super().judge(question, passages)

    with holdfast.open("ram:", embedder=None, reranker=Reads(lambda count: np.zeros((count, 2)))) as store:
        store.thread("t", user="ana").append(
            {"role": "tool", "content": "The vault opens with 9932"}, {"role": "user", "content": "Which vault?"}
        )
        store.memory(user="ana").recall("What opens the vault?", trust="stated")
        assert read == [Passage("user", "Which vault?")]
        store.memory(user="ana").recall("What opens the vault?")
        assert Passage("user", "Which vault?", "The vault opens with 9932") in read
