"""The last look at a ranking: the newer of two that contradict first, and the same thing not twice.

Each stage takes a table, the ranked rows and all scores, and gives ranking and scores back. Deliberately absent:
dropping anything but doubles.
"""

from __future__ import annotations

import numpy as np

from holdfast.retrieval.segment import Array
from holdfast.retrieval.table import Table

_LOOKED_AT = 10
_ALIKE, _SOMEWHAT, _SAME_TERMS, _MOST = 0.5, 0.25, 0.5, 0.85
_BEST = 3  # below these, an outdated turn misleads nobody


def newer(table: Table, ranked: Array, scores: Array) -> tuple[Array, Array]:
    """Put one turn that says that something changed just above the best older one that it outdates.

    They are about the same when the same side says both, they are alike and each holds most of what is asked; the older
    one carries a number, which is what changes, and the newer one is trusted as much. Nothing else moves: what is
    better and about something else stays above it, and a second turn would push the answer away.
    """
    head = ranked[:_LOOKED_AT]
    if "current" not in table.reading or len(head) < 2:
        return ranked, scores
    alike, held = _alike(table, head)
    time, place = table.stored("time")[head], table.stored("position")[head]
    later = (time[None, :] > time[:, None]) | ((time[None, :] == time[:, None]) & (place[None, :] > place[:, None]))
    speaker, most = table.stored("speaker")[head], held >= _MOST
    number, update = table.cue("number")[head] > 0, table.cue("update")[head] > 0
    trust = table.stored("trust")[head]
    outdates = later & alike & (trust[None, :] >= trust[:, None])
    outdates &= (speaker[None, :] == speaker[:, None]) & most[:, None] & most[None, :]
    outdates = np.triu(outdates & number[:, None] & update[None, :], 1)
    outdates[_BEST:] = False
    if not outdates.any():
        return ranked, scores
    older = int(np.argmax(outdates.any(axis=1)))
    lifted = int(np.argmax(outdates[older]))
    new = scores.copy()
    new[head[lifted]] = new[head[older]] + 1e-4
    return np.insert(np.delete(ranked, lifted), older, head[lifted]), new


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
