"""The second look at the first few hits, by a model that reads the question and a passage together.

A reranker alone ranks worse than all the stages do, so what it says is one more part of the score, and only of the
first hits. Deliberately absent: the model (``providers``) and reading texts (``recall``), which ``Judge`` stands for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holdfast.retrieval.corpus import Rows
from holdfast.retrieval.segment import Array
from holdfast.retrieval.table import Table

STAGE = "rerank"
FIRST = 10
"""How many hits are looked at again: more take longer and put no better one first."""
_SPREAD_OF = 20
_AMONG_PEOPLE, _ELSEWHERE = 0.3, 0.1
"""What its word counts for: of what people say to one another; and of notes, and of talk with an assistant that writes
at length, where all the stages together err less often than it does."""

Judge = Callable[[Rows], Array | None]
"""What a reranker says of rows, three numbers a row, or None: how well each fits, whether it answers, and whether it
lacks the kind of thing that is asked for. The last is said of the one that answers best alone."""


def first(table: Table, ranked: Array) -> Array:
    """The rows worth a second look: the first ones, each text once, and not the question itself."""
    ranked = ranked[: 3 * FIRST]
    ranked = ranked[~table.echoes(table.rows.at(ranked))][: 2 * FIRST]
    _, once = np.unique(table.stored("same")[ranked], return_index=True)
    found: Array = ranked[np.sort(once)[:FIRST]]
    return found


def blended(table: Table, ranked: Array, scores: Array, read: Array, judged: Array) -> tuple[Array, Array, Array]:
    """The ranking with a reranker's part in it, all scores, and that part. ``read`` are the rows that it judged.

    How far the scores lie apart differs from question to question, so the part is measured by their spread. It is
    never below zero: nothing that was looked at falls behind what was not.
    """
    part = np.zeros_like(scores)
    fits = judged[:, 0] - judged[:, 0].min(initial=np.inf)
    people = float(table.spoken[read].mean()) * (1 - table.assisted)  # the same for all, or memories would fall behind
    worth = _ELSEWHERE + (_AMONG_PEOPLE - _ELSEWHERE) * people
    part[read] = worth * float(scores[ranked[:_SPREAD_OF]].std()) * fits
    scores = scores + part
    return ranked[np.argsort(-scores[ranked], kind="stable")], scores, part
