"""The seam for candidates: whatever finds them, the same stages rank them."""

from __future__ import annotations

from typing import Any

import holdfast
from holdfast.retrieval.candidates import ArrayCandidates, DocumentKeys
from holdfast.retrieval.pipeline import ALL
from holdfast.retrieval.recall import Recaller
from holdfast.testing.embedders import HashEmbedder

QUESTIONS = ("Which harbour has pier 7?", "Where is the ferry to Bergen?", "harbour")


class Elsewhere:
    """Candidates as another index would give them: nothing but keys, in an order of its own."""

    asked: list[int] = []  # noqa: RUF012 - one for all, so that the test can look

    def __init__(self, *arrays: Any) -> None:
        self._arrays = ArrayCandidates(*arrays)

    def by_words(self, most: int) -> DocumentKeys:
        self.asked.append(most)
        return DocumentKeys(*(column.copy() for column in self._arrays.by_words(most)))

    def by_vector(self, most: int) -> list[DocumentKeys]:
        return [DocumentKeys(*(column.copy() for column in keys)) for keys in self._arrays.by_vector(most)]


class OnlyTheFirst(Elsewhere):
    """An index that knows one document."""

    def by_words(self, most: int) -> DocumentKeys:
        return DocumentKeys(*(column[:1] for column in super().by_words(most)))

    def by_vector(self, most: int) -> list[DocumentKeys]:
        return []


def filled(here: Any) -> holdfast.Store:
    store: holdfast.Store = here.open(HashEmbedder(32))
    places = ("Bergen", "Oslo", "Kiel", "Turku", "Riga")
    store.memory("ana").remember_all(
        [
            f"Harbour {number}: the ferry to {places[number % 5]} leaves from pier {number % 9}"
            for number in range(ALL + 300)
        ]
    )
    return store


def test_keys_from_elsewhere_give_the_same_ranking(here: Any) -> None:
    store = filled(here)
    memory, ours = store.memory("ana"), store.wiring.recaller()
    expected = [[(hit.id, hit.score) for hit in memory.recall(question, 20)] for question in QUESTIONS]
    Elsewhere.asked.clear()
    store.wiring._recaller = Recaller(store.core, ours.indexes, Elsewhere)
    assert [[(hit.id, hit.score) for hit in memory.recall(question, 20)] for question in QUESTIONS] == expected
    assert len(Elsewhere.asked) >= len(QUESTIONS), "it was not asked"


def test_what_an_index_does_not_give_is_not_found(here: Any) -> None:
    store = filled(here)
    store.wiring._recaller = Recaller(store.core, store.wiring.recaller().indexes, OnlyTheFirst)
    assert len(store.memory("ana").recall("Which harbour has pier 7?", 20)) == 1
