"""Which model the indexes of one recall are compared by: one for all of them, since two models' cosines say nothing of
each other.

Deliberately absent: which models one index may use (``index``), and questions (``recall``).
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.retrieval.corpus import Corpus
from holdfast.retrieval.index import Index
from holdfast.retrieval.source import Embeds


class Part:
    """An index that a recall looks into, and what it sees of it."""

    def __init__(self, index: Index, corpus: Corpus) -> None:
        self.index, self.corpus = index, corpus


def agreed(parts: Sequence[Part]) -> list[tuple[Sequence[Embeds], list[Part]]]:
    """The embedders that all of some parts may use, best first: of all parts together where they share any."""
    ranked = [(part, part.index.usable.ranked) for part in parts]
    ranked = [(part, embedders) for part, embedders in ranked if embedders]
    shared = set.intersection(*({one.name for one in embedders} for _, embedders in ranked)) if ranked else set()
    if shared:
        return [([one for one in ranked[0][1] if one.name in shared], [part for part, _ in ranked])]
    return [(embedders, [part]) for part, embedders in ranked]


def left_out(embedders: Sequence[Embeds], parts: Sequence[Part]) -> str | None:
    """A better model that some of the parts have and others may not use."""
    best = (part.index.usable.ranked[0].name for part in parts)
    return next((name for name in best if name not in {one.name for one in embedders}), None)


def ready(embedder: Embeds, ranked: Sequence[Embeds], parts: Sequence[Part]) -> bool:
    """Whether parts can be compared by a model now: all of its vectors are there, or it is the last that is left.

    Where that is a quick one, what is missing is made at once.
    """
    if all(segment.whole(embedder.name) for part in parts for segment in part.corpus.segments):
        return True
    if embedder is not ranked[-1]:
        return False
    for part in parts:
        part.index.bridge(part.corpus, embedder)
    return True
