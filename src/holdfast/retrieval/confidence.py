"""How likely it is that anything relevant was found, and a limit below which to abstain.

It goes by the share of the query's weight that some turn and its neighbours hold, by how near the nearest row is, by
the kind of conversation, by how many rows there are, and by whether anything is of the time that was asked for. Rows
that a filter keeps out count for nothing: what is elsewhere must not make an answer here look like chance. The
first three were fitted to questions of a conversation asked to it and to others, the rest set by hand
(``docs/recall.md``). Deliberately absent: the ranking.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.retrieval.segment import Array
from holdfast.retrieval.table import Table

_HELD, _NEAR, _ASSISTED, _OFFSET, LIMIT = 7.0, 13.9, -2.9, -7.8, 0.17
_HELD_ALONE, _ASSISTED_ALONE, _OFFSET_ALONE, LIMIT_ALONE = 10.1, -2.2, -4.1, 0.2


_OF_THE_TIME = 3.0
_USUAL = 500
"""How many rows the conversations had that the curve was fitted to."""
_AT_LEAST = 200
"""In a small corpus every word that is there looks common, and every other one decisive."""


def confidence(table: Table, ranked: Array | None = None, judged: Array | None = None) -> float:
    """From 0, nothing here, to 1."""
    held = _held(table)
    assisted = table.assisted if table.spoken.any() else 0.0  # how people talk says nothing of memories
    if "cosine" in table.columns:
        nearest = float(table.columns["cosine"].max(initial=0.0))
        value = _HELD * held + _NEAR * nearest + _ASSISTED * assisted + _OFFSET + _by_size(table)
    else:
        value = _HELD_ALONE * held + _ASSISTED_ALONE * assisted + _OFFSET_ALONE + 0.5 * _by_size(table)
    value += _OF_THE_TIME * float(table.columns["time"].max(initial=0.0)) if "time" in table.columns else 0.0
    return 1 / (1 + math.exp(-value))


def _by_size(table: Table) -> float:
    """The best of many is good by chance. What is near among few is near."""
    return min(max(1.2 * math.log(_USUAL / max(table.passed.rows, 1)), -1.0), 3.0)


def enough(table: Table, sure: float) -> bool:
    """Whether what was found is worth showing to someone who wants an answer."""
    return sure >= (LIMIT if "cosine" in table.columns else LIMIT_ALONE)


def _held(table: Table) -> float:
    """The largest share of the query's weight in three turns that follow one another."""
    weight = table.lexical.rarity(table.passed, _AT_LEAST)
    if not len(weight):
        return 0.0
    held = np.zeros((len(weight), len(table)), dtype=bool)
    around = (table.beside(-1), table.rows, table.beside(1)) if table.spoken.any() else (table.rows,)
    for rows in around:
        held |= table.lexical.at(rows) > 0
    return float((weight @ held).max() / max(float(weight.sum()), 1e-9))
