"""What each column is worth: one sum, whose weights depend on the conversation and on the question.

Two sets of weights stand for two kinds of conversation, and a corpus is somewhere between them (``Table.assisted``).
Among people, neighbours and the whole session say as much as a turn itself, and the answer follows the question. With
an assistant, what the user said counts, and the long replies say little of their own. Memories and files have a third
set: they stand alone, and are asked for in other words than they were written in. Two classes of question want many
turns, and have plans of their own. The numbers are round; what they come to, and on what they were chosen, is in
``docs/recall.md``. Deliberately absent: anything learned about names or topics.
"""

from __future__ import annotations

import numpy as np

from holdfast.retrieval.segment import Array
from holdfast.retrieval.table import Table, within_groups

PEERS = {
    "words": 0.4, "passage": 0.5, "window": 2.0, "thread": 1.0, "near": 1.1, "near_passage": 1.0, "near_window": 0.5,
    "speaker": 1.8, "question": 0.5, "near_question": 0.4, "before2": 0.6, "after2": 0.2, "asks": -0.3, "picture": 0.2,
    "own": 0.2, "names": 0.5, "length": 0.2, "date": 1.0, "time": 2.0, "place": 0.8, "suggestion": 0.5, "liking": 0.3,
    "number": 0.2, "code": 3.0,
}  # fmt: skip
ASSISTED = {
    "words": 0.5, "passage": 1.0, "window": 0.5, "near": 1.5, "near_passage": 1.0, "near_window": 0.5, "speaker": 1.5,
    "instruction": 3.0, "preference": 1.5, "date": 0.5, "never": 0.5, "own": 0.2, "time": 0.5,
    "code": 3.0,
}  # fmt: skip
NOTES = {
    "words": 0.3, "passage": 0.2, "near": 3.0, "near_passage": 2.7, "speaker": 0.7, "instruction": 1.0,
    "preference": 0.4, "date": 0.2, "time": 1.5, "place": 0.3, "number": 0.1, "liking": 0.2, "code": 6.0,
}  # fmt: skip
"""Of what stands alone."""
WITHOUT_VECTORS = {
    "PEERS": {
        "passage": 0.9,
        "speaker": 1.5,
        "question": 1.0,
        "after2": 0.4,
        "asks": -0.2,
        "length": 0.3,
        "date": 0.7,
        "number": 0.4,
    },
    "ASSISTED": {"preference": 1.0},
    "NOTES": {"words": 3.0},
}
EITHER_WAY = {"important": 1.0, "memory": 1.0, "fact": 0.5, "linked": 1.0, "recent": 0.1, "faded": -0.5}
_MANY = {"words": 1.0, "passage": 1.0, "window": 0.5, "near": 0.5, "near_passage": 1.0, "near_window": 0.5}


def weights(table: Table) -> dict[str, float]:
    """The worth of each column for this corpus and this question."""
    peers, assisted = PEERS, ASSISTED
    if "near" not in table.columns:
        peers, assisted = {**PEERS, **WITHOUT_VECTORS["PEERS"]}, {**ASSISTED, **WITHOUT_VECTORS["ASSISTED"]}
    found = _between(_between(NOTES, peers, table.connected), assisted, table.assisted)
    if "answered" in table.reading:
        found["speaker"] *= 1 - table.assisted
    if "window" in table.columns:
        return {**found, **EITHER_WAY}
    # With little else looked at, what a thing is must not outweigh what it says.
    return {**found, **{name: 0.2 * worth for name, worth in EITHER_WAY.items()}}


def _between(some: dict[str, float], others: dict[str, float], share: float) -> dict[str, float]:
    """Weights so far from some to others."""
    names = {*some, *others}
    return {name: (1 - share) * some.get(name, 0.0) + share * others.get(name, 0.0) for name in names}


def wants_many(table: Table) -> bool:
    """Whether a question is about an order or a summary, which takes many turns and a plan of its own."""
    return "wide" in table.reading and table.assisted > 0.5 and bool(table.from_user.any())


def weigh(table: Table) -> dict[str, Array]:
    """Each column's part of the score; the score is their sum."""
    if wants_many(table):
        return _many(table)
    talk = weights(table)
    alone = {} if "near" in table.columns else WITHOUT_VECTORS["NOTES"]
    notes = {**NOTES, **alone, **{name: talk[name] for name in EITHER_WAY}}
    found = {}
    for name, values in table.columns.items():
        said, noted = talk.get(name, 0.0), notes.get(name, 0.0)
        if said or noted:
            found[name] = (np.where(table.spoken, said, noted) * values).astype(np.float32)
    return found


def _many(table: Table) -> dict[str, Array]:
    """For questions about an order or a summary: the topic's turns, each judged among those of the same side.

    The user brings topics up, so an order is an order of the user's turns. A summary needs the replies too, and a reply
    is about what it replies to.
    """
    user = table.from_user
    parts = {
        name: worth * within_groups(table.columns[name], user) for name, worth in _MANY.items() if name in table.columns
    }
    total = sum(parts.values(), np.zeros(len(table), dtype=np.float32))
    if "order" in table.reading:
        parts["user"] = np.where(user > 0, 0.0, -30.0).astype(np.float32)
    else:
        before, after = _value_at(table, total, -1), _value_at(table, total, 1)
        parts["exchange"] = np.where(user > 0, 0.6 * after, 2.0 * before).astype(np.float32)
    return parts


def _value_at(table: Table, values: Array, step: int) -> Array:
    """The value of the row beside each, 0 where that is not a candidate."""
    places = table.places(table.beside(step))
    return np.where(places >= 0, values[places], 0.0)
