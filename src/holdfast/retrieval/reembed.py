"""Switching an index to the vectors of another model while it is in use, and back.

Some passages after others get their new vectors, made outside every lock and saved at once; recall continues with the
old ones until all are ready. An interrupted switch keeps its progress. Deliberately absent: how an index is kept.
"""

from __future__ import annotations

import numpy as np

from holdfast.errors import Conflict, Invalid
from holdfast.retrieval.index import Index
from holdfast.retrieval.source import Embeds, Progress

_TRIES = 1_000_000  # one for each portion, and more come while others write
_PORTION = 512


def move(index: Index, wanted: Embeds, progress: Progress | None = None, *, chosen: bool = True) -> int:
    """Give every passage a vector by a model, then let recall use those; return how many were made.

    Where the model was ``chosen``, recall keeps to it until somebody chooses another.
    """
    made = 0
    for _ in range(_TRIES):
        todo = index.lacking(wanted.name, _PORTION)
        if todo is None:
            if index.use(wanted.name, chosen=chosen):
                return made
            continue
        rows = np.asarray(wanted.embed(todo.texts), dtype="<f2").reshape(len(todo.texts), wanted.dimension)
        index.give(todo, wanted.name, rows)
        made += len(todo.texts)
        if progress is not None:
            progress(min(todo.done + len(todo.texts), todo.total), todo.total)
    raise Conflict("the index grows faster than it can be re-embedded; try again when there are fewer writes")


def back(index: Index) -> str:
    """Let recall use the vectors of the model before again; return its name."""
    model = index.previous
    if model is None:
        raise Invalid("there is no earlier model to roll back to")
    index.go_back(model)
    return model
