"""A counter is asked once for a short text, believed only when it makes sense, and never grows without end."""

from __future__ import annotations

import threading
from typing import Any

import numpy
import pytest

from holdfast.errors import Invalid, Misconfigured
from holdfast.providers.tokens import counting
from holdfast.providers.tokens.counting import Counted, TokenCounter
from holdfast.providers.tokens.estimate import Estimate


class Words:
    """Counts words, and how often it was asked."""

    name = "words"
    exact = True

    def __init__(self, answer: Any = None, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._answer, self._error = answer, error

    def count(self, text: str) -> Any:
        self.asked.append(text)
        if self._error is not None:
            raise self._error
        return len(text.split()) if self._answer is None else self._answer


def test_it_counts_as_the_counter_does_and_says_so() -> None:
    counted = Counted(Words())
    assert counted.count("one two three") == 3
    assert counted.count("") == 0
    assert (counted.name, counted.exact) == ("words", True)
    assert isinstance(counted, TokenCounter)


def test_a_short_text_is_counted_once() -> None:
    words = Words()
    counted = Counted(words)
    assert [counted.count("the same text") for _ in range(5)] == [3] * 5
    assert words.asked == ["the same text"]


def test_a_long_text_is_not_kept() -> None:
    words = Words()
    counted = Counted(words)
    text = "word " * counting.SHORT
    assert counted.count(text) == counted.count(text) == counting.SHORT
    assert len(words.asked) == 2


def test_what_is_asked_for_every_turn_stays_while_others_come_and_go() -> None:
    words = Words()
    counted = Counted(words)
    for turn in range(2 * counting.GENERATION_TEXTS):
        counted.count(f"passing by {turn}")
        assert counted.count("the system prompt") == 3
    assert words.asked.count("the system prompt") == 1


def test_it_does_not_grow_without_end() -> None:
    counted = Counted(Words())
    for number in range(3 * counting.GENERATION_TEXTS):
        counted.count(str(number))
    assert len(counted._young) + len(counted._old) <= 2 * counting.GENERATION_TEXTS
    padding = "x" * (counting.SHORT - 10)
    for number in range(4 * counting.GENERATION_CHARACTERS // counting.SHORT):
        counted.count(f"{padding}{number}")
    assert sum(map(len, counted._young)) + sum(map(len, counted._old)) <= 2 * counting.GENERATION_CHARACTERS


def test_many_threads_count_alike() -> None:
    counted = Counted(Estimate())
    texts = [f"text number {number} of a conversation" for number in range(500)]
    expected = [Estimate().count(text) for text in texts]
    found: list[list[int]] = []

    def work() -> None:
        found.append([counted.count(text) for _ in range(3) for text in texts])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected * 3] * 8


@pytest.mark.parametrize("answer", [-1, 2.0, "7", True, [1, 2]])
def test_a_count_that_is_none_is_refused(answer: Any) -> None:
    counted = Counted(Words(answer))
    for _ in range(2):  # nothing of it was kept
        with pytest.raises(Misconfigured, match=r"'words'.*zero or more"):
            counted.count("text")


def test_the_integers_of_numpy_are_integers() -> None:
    tokens = Counted(Words(numpy.int64(7))).count("text")
    assert tokens == 7
    assert type(tokens) is int


def test_a_counter_that_raises_is_named() -> None:
    with pytest.raises(Misconfigured, match="'words' raised KeyError") as caught:
        Counted(Words(error=KeyError("vocabulary"))).count("text")
    assert isinstance(caught.value.__cause__, KeyError)


def test_our_own_errors_pass() -> None:
    with pytest.raises(Invalid, match="as it is"):
        Counted(Words(error=Invalid("as it is"))).count("text")
