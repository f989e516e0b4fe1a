"""The plain ways to find turns and to fill a prompt: the last ones, the nearest by vector, the best by words.

Each gives the turns of a conversation in the order in which it takes them; ``fitting`` takes as many as there is room
for. Deliberately absent: the store. These look at the turns alone, as a program without a memory would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import log

from holdfast.providers.embedding import Embedder
from holdfast.text import terms

PER_MESSAGE, _ANSWER = 4, 3  # what a prompt of one message costs besides its text
_K1, _B = 1.2, 0.75


def fitting(order: Iterable[int], costs: Sequence[int], room: int) -> set[int]:
    """The turns that fit, the first ones first; one that is too long is passed over."""
    taken: set[int] = set()
    for turn in order:
        if costs[turn] <= room:
            room -= costs[turn]
            taken.add(turn)
    return taken


def room_for(question: str, budget: int, count: Callable[[str], int]) -> int:
    """What a budget leaves for turns beside the question."""
    return budget - PER_MESSAGE - _ANSWER - count(question)


def recent(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """The last turns, whatever is asked."""
    order = list(range(len(texts)))[::-1]
    return lambda question: order


def windows(texts: Sequence[str], sessions: Sequence[str]) -> list[str]:
    """Each turn and its two neighbours in the same session as one text."""
    said = list(zip(texts, sessions, strict=True))
    return [
        "\n".join(text for text, near in said[max(0, turn - 1) : turn + 2] if near == session)
        for turn, session in enumerate(sessions)
    ]


def nearest(texts: Sequence[str], embedder: Embedder) -> Callable[[str], list[int]]:
    """The turns whose vectors are nearest to that of the question."""
    vectors = embedder.embed(texts) if texts else None

    def ranked(question: str) -> list[int]:
        if vectors is None:
            return []
        return _best_first((vectors @ embedder.embed([question])[0]).tolist())

    return ranked


def by_words(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """The turns that share the most telling words with the question (BM25)."""
    counted = [Counter(terms(text)) for text in texts]
    lengths = [found.total() for found in counted]
    usual = sum(lengths) / max(1, len(lengths)) or 1.0
    spread = Counter(term for found in counted for term in found)
    worth = {term: log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for term, n in spread.items()}

    def ranked(question: str) -> list[int]:
        sought = worth.keys() & set(terms(question))
        return _best_first(
            [
                sum(worth[term] * _saturated(found[term], length / usual) for term in sought if term in found)
                for found, length in zip(counted, lengths, strict=True)
            ]
        )

    return ranked


def _saturated(times: int, length: float) -> float:
    return times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length))


def _best_first(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda turn: -scores[turn])
