"""What a query's entities are linked to, one or two hops away.

The subject and the object of a memory are columns of its row, so a hop is a search in them. The nearer and the more
about the query a link is, the more it counts. Deliberately absent: a graph of its own; the memories are the graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.retrieval import truth
from holdfast.retrieval.corpus import Corpus, Rows
from holdfast.retrieval.lexical import Lexical
from holdfast.retrieval.question import ParsedQuery, RecallQuery
from holdfast.retrieval.segment import Array, hashed

_BESIDE = 0.4
_FURTHER = 0.6
_MOST = 200


class Linked(NamedTuple):
    """Rows that links lead to, and how much each counts."""

    rows: Rows
    worth: Array


def follow(corpus: Corpus, reading: ParsedQuery, lexical: Lexical, asked: RecallQuery) -> Linked:
    """The links of the entities that a query names (or of the asking user), and what is known of their other ends.

    Only links that may be seen, are trusted enough and hold at the moment lead anywhere.
    """
    subject = asked.subject
    named = np.array([*reading.grams, *([hashed(subject)] if subject and "own" in reading else [])], dtype=np.uint64)
    first = truth.standing(corpus, _touching(corpus, named, links=True), asked.now, asked.trust)
    touched = np.isin(corpus.column("left", first), named) | np.isin(corpus.column("right", first), named)
    first = first.at(touched & truth.seen(corpus, first) & (corpus.column("trust", first) >= asked.trust))
    if not len(first):
        return Linked(first, np.zeros(0, dtype=np.float32))
    worth = np.where(lexical.score(first) > 0, 1.0, _BESIDE).astype(np.float32)
    left, right = corpus.column("left", first), corpus.column("right", first)
    ends = np.concatenate([left, right])
    weights = np.concatenate([worth, worth])
    other = ~np.isin(ends, np.append(named, np.uint64(hashed(subject))))  # what is known of them is nearly everything
    names, which = np.unique(ends[other], return_inverse=True)
    best = np.zeros(len(names), dtype=np.float32)
    np.maximum.at(best, which, weights[other])
    second = _touching(corpus, names, links=False)
    by_left = _looked_up(names, best, corpus.column("left", second))
    by_right = _looked_up(names, best, corpus.column("right", second))
    return Linked(
        Rows(np.concatenate([first.part, second.part]), np.concatenate([first.row, second.row])),
        np.concatenate([worth, _FURTHER * np.maximum(by_left, by_right)]),
    )


def _touching(corpus: Corpus, names: Array, *, links: bool) -> Rows:
    """Memories that begin or end at one of these entities; with ``links`` only those that link it to something."""
    about, to = corpus.by("left", names), corpus.by("right", names)
    if links:
        about = about.at(corpus.column("right", about) != 0)
    rows = Rows(np.concatenate([about.part, to.part]), np.concatenate([about.row, to.row]))
    return rows.at(slice(_MOST))


def _looked_up(names: Array, values: Array, wanted: Array) -> Array:
    if not len(names):
        return np.zeros(len(wanted), dtype=np.float32)
    at = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    return np.where(names[at] == wanted, values[at], 0.0).astype(np.float32)
