"""How likely it is that the hits answer the question, and a limit below which to abstain.

With a reranker it goes by what that says of each of the first hits: whether it answers, and not only whether it is on
the topic. In notes also by whether the best one has most of the question that is here at all. Without a reranker, by
the share of the query's weight that some turn and its neighbours hold. It also goes by how near the nearest row is,
measured by how near texts of this corpus are that have nothing to do with each other; in talk by the kind of
conversation, and by whether anything is of the time that was asked for. Rows that a filter keeps out or that may not
be seen count for nothing: what is elsewhere must not make an answer here look like chance. What it was fitted to, and
how well it holds elsewhere, is in ``docs/recall.md``. Deliberately absent: the ranking.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.retrieval.features import capitalised
from holdfast.retrieval.segment import Array
from holdfast.retrieval.table import Table
from holdfast.text import terms

LIMIT = 0.35
_NOTE_ANSWERS, _NOTE_FOREIGN, _NOTE_DIVIDED, _NOTE_WHOLE, _NOTE_OFFSET = 0.55, 1.1, -2.4, 1.2, 0.9
_NOTE_LACKING, _NOTE_UNNAMED = -1.0, -1.0
_TALK_ANSWERS, _TALK_FOREIGN, _TALK_ASSISTED, _TALK_TIMELY, _TALK_OFFSET = 0.5, 1.0, -0.8, 0.5, 1.1
_NOTE_NEAR, _TALK_NEAR = 2.0, 2.5
"""What is about the question is nearer to it by so many spreads; what is nearer still answers it no better for that."""
_HELD, _NEAR, _ASSISTED, _OFFSET = 7.0, 1.4, -2.9, -5.1
_HELD_ALONE, _ASSISTED_ALONE, _OFFSET_ALONE = 10.1, -2.2, -3.3
_OF_THE_TIME = 3.0
_USUAL = 500
"""How many rows the conversations had that the curve was fitted to."""
_AT_LEAST = 200
"""In a small corpus every word that is there looks common, and every other one decisive."""


def confidence(table: Table, read: Array | None = None, judged: Array | None = None) -> float:
    """From 0, nothing here, to 1. ``judged`` is what a reranker says of the rows that it ``read``."""
    if not any(map(str.isalpha, table.asked.text)) and not (table.lexical.at(table.rows) > 0).any():
        return 0.0  # a number alone, that nothing here has
    value = _guessed(table) if judged is None or read is None or not len(read) else _answered(table, read, judged)
    return (1 + math.tanh(value / 2)) / 2  # the logistic curve, for any value


def _answered(table: Table, read: Array, judged: Array) -> float:
    """From what a reranker says: all of it together, since two half answers are worth something."""
    answers = float(np.logaddexp.reduce(judged[:, 1].astype(float)))
    near, talked = _nearest(table), float(table.spoken[read].mean()) * (1 + table.connected) / 2
    near = math.inf if near is None else near
    note = _NOTE_ANSWERS * answers + _NOTE_FOREIGN * min(near - _NOTE_NEAR, 0.0) + _NOTE_OFFSET
    best = int(judged[:, 1].argmax())
    divided, whole = _shared(table, int(read[best]))
    note += _NOTE_DIVIDED * divided + _NOTE_WHOLE * whole
    note += _NOTE_LACKING * float(judged[best, 2]) + _NOTE_UNNAMED * _unnamed(table, int(read[best]))
    talk = _TALK_ANSWERS * answers + _TALK_FOREIGN * min(near - _TALK_NEAR, 0.0) + _TALK_OFFSET
    talk += _TALK_ASSISTED * table.assisted + _TALK_TIMELY * _timely(table)
    return (1 - talked) * note + talked * talk


def _shared(table: Table, answer: int) -> tuple[float, bool]:
    """How much of what is asked for is in the best answer while as much is only elsewhere here, from 0 to a half; and
    whether the answer has all of it.

    The alarm code of the flat is no answer to a question after that of the shop, if there is a shop. A word that
    nothing here holds tells nothing: it may be another word for the same.
    """
    held = (table.lexical.at(table.rows) > 0) & ~table.echoes(table.rows)
    worth = table.lexical.rarity(table.passed, _AT_LEAST)
    there, here = float(worth @ held[:, answer]), float(worth @ held.any(axis=1))
    return min(there, here - there) / max(here, 1e-9), there > 0 and there >= 0.99 * float(worth.sum())


def _unnamed(table: Table, answer: int) -> bool:
    """Whether the question names somebody or something, and the best answer none of them."""
    named = {term for word in capitalised(table.reading.asks) for term in terms(word)}
    places = [place for place, word in enumerate(table.reading.words) if word in named]
    rows = [table.rows.at([answer]), table.beside(-1).at([answer])]
    if not places or any((table.lexical.at(row)[places] > 0).any() for row in rows):
        return False
    return int(table.stored("speaker")[answer]) not in table.reading.names


def _guessed(table: Table) -> float:
    """From words and vectors alone, which say whether the topic is here."""
    assisted = table.assisted if table.spoken.any() else 0.0  # how people talk says nothing of memories
    near, timely = _nearest(table), _OF_THE_TIME * _timely(table)
    if near is None:
        return _HELD_ALONE * _held(table) + _ASSISTED_ALONE * assisted + _OFFSET_ALONE + 0.5 * _by_size(table) + timely
    near = max(near, 0.0)  # words say that it is here, or that it is not
    return _HELD * _held(table) + _NEAR * near + _ASSISTED * assisted + _OFFSET + _by_size(table) + timely


def _timely(table: Table) -> float:
    """Whether anything is of the time that the query names."""
    return float(table.columns["time"].max(initial=0.0)) if "time" in table.columns else 0.0


def _nearest(table: Table) -> float | None:
    """By how many spreads the nearest row is nearer than texts that have nothing to do with each other."""
    if "cosine" not in table.columns or not table.near:
        return None
    means, spreads = zip(*(by_model.background(table.passed.masks or ()) for by_model in table.near), strict=True)
    nearest = table.columns["cosine"].max(initial=0.0, where=~table.echoes(table.rows))
    return float((nearest - sum(means)) / max(sum(spreads), 0.02))


def _by_size(table: Table) -> float:
    """The best of many is good by chance. What is near among few is near."""
    return min(max(1.2 * math.log(_USUAL / max(table.passed.rows, 1)), -1.0), 3.0)


def enough(sure: float) -> bool:
    """Whether what was found is worth showing to someone who wants an answer."""
    return sure >= LIMIT


def _held(table: Table) -> float:
    """The largest share of the query's weight in three turns that follow one another."""
    weight = table.lexical.rarity(table.passed, _AT_LEAST)
    if not len(weight):
        return 0.0
    held = np.zeros((len(weight), len(table)), dtype=bool)
    around = (table.beside(-1), table.rows, table.beside(1)) if table.spoken.any() else (table.rows,)
    for rows in around:
        held |= (table.lexical.at(rows) > 0) & ~table.echoes(rows)
    return float((weight @ held).max() / max(float(weight.sum()), 1e-9))
