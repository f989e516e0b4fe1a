"""The last look at a ranking: the newer of two that contradict first, and the same thing not twice.

Each stage takes a table, the ranked rows and all scores, and gives ranking and scores back. Deliberately absent:
dropping anything but doubles.
"""

from __future__ import annotations

import numpy as np

from holdfast.retrieval.segment import Array
from holdfast.retrieval.table import Table

_LOOKED_AT = 10
_ALIKE, _SOMEWHAT, _SAME_TERMS, _STRONG, _MOST = 0.5, 0.25, 0.5, 0.3, 0.5


def newer(table: Table, ranked: Array, scores: Array) -> tuple[Array, Array]:
    """Of two that say different things about the same, put the newer one first, where the present state is asked for.

    They are about the same when the same side says both and they are alike, and the newer one says that something
    changed; the older one has to carry a number, which is what changes.
    """
    head = ranked[:_LOOKED_AT]
    if "current" not in table.reading or len(head) < 2:
        return ranked, scores
    alike, held = _alike(table, head)
    strong, most = held >= _STRONG, held >= _MOST
    time, place = table.stored("time")[head], table.stored("position")[head]
    later = (time[None, :] > time[:, None]) | ((time[None, :] == time[:, None]) & (place[None, :] > place[:, None]))
    speaker = table.stored("speaker")[head]
    number, update = table.cue("number")[head] > 0, table.cue("update")[head] > 0
    both_numbers = number[None, :] & most[:, None] & most[None, :]
    outdates = later & alike & (speaker[None, :] == speaker[:, None]) & number[:, None]
    outdates &= (update[None, :] | both_numbers) & strong[:, None] & strong[None, :]
    new = scores.copy()
    for at in np.lexsort((place, time)):
        older = np.nonzero(outdates[:, at])[0]
        if len(older):
            new[head[at]] = max(new[head[at]], float(new[head[older]].max()) + 1e-4)
    return ranked[np.argsort(-new[ranked], kind="stable")], new


def _alike(table: Table, head: Array) -> tuple[Array, Array]:
    """Which of the first hits are alike, and how much of what is asked for each holds."""
    rows = table.rows.at(head)
    held = (table.lexical.at(rows) > 0).astype(np.float32).T
    weight = held * table.lexical.worth
    both, each = weight @ held.T, weight.sum(axis=1)
    same_terms = both / np.maximum(each[:, None] + each[None, :] - both, 1e-9)
    held_most = each / max(float(each.max(initial=0.0)), 1e-9)
    if not table.near:
        return same_terms >= 0.8 * _SAME_TERMS, held_most
    cosine = np.zeros((len(head), len(head)), dtype=np.float32)
    for near in table.near:
        vectors = near.vectors(rows)
        cosine += vectors @ vectors.T
    return (cosine >= _ALIKE) | ((same_terms >= _SAME_TERMS) & (cosine >= _SOMEWHAT)), held_most


def doubles(table: Table, ranked: Array, scores: Array) -> tuple[Array, Array]:
    """Move what only repeats the text of a better hit to the end."""
    _, first, which = np.unique(table.stored("same")[ranked], return_index=True, return_inverse=True)
    repeated = first[which.ravel()] != np.arange(len(ranked))
    return np.concatenate([ranked[~repeated], ranked[repeated]]), scores


STAGES = (("newer first", newer), ("doubles", doubles))
