"""The vectors that callers gave their memories, and which of them are nearest to another.

They are ground, so nothing is saved a second time: a collection's vectors of one model are read when somebody first
asks for them, kept as one array, and continued from the collection's stream. Every one is compared, exactly.
Deliberately absent: what is true and what passes a filter (the pipeline decides), and vectors of our embedders.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from holdfast import atfork
from holdfast.engine.contract import Mark
from holdfast.errors import Invalid
from holdfast.ids import check_id
from holdfast.memory.collection import MemoryCollection
from holdfast.memory.metadata import UNNAMED, packed
from holdfast.memory.names import number_of
from holdfast.records import Memory
from holdfast.retrieval.segment import Array

_KEPT = 64
_NO_ROWS: Array = np.zeros((0, 0), dtype=np.float32)


class VectorBlock(NamedTuple):
    """Vectors of length 1 in a row each, the numbers of their memories, and up to where the collection was read."""

    refs: Array
    rows: Array
    upto: Mark


class OwnVectors:
    """The arrays of one tenant, those used last."""

    def __init__(self) -> None:
        self._lock = atfork.lock()
        self._blocks: OrderedDict[tuple[str, str], VectorBlock] = OrderedDict()

    def forget(self) -> None:
        """Keep nothing: something was erased."""
        with self._lock:
            self._blocks.clear()

    def nearness(
        self, collections: Sequence[MemoryCollection], vector: object, model: str | None
    ) -> tuple[Array, Array]:
        """The numbers of all memories with a vector of this model, and the cosine of each to the one given."""
        name = UNNAMED if model is None else check_id(model, "model")
        query = _normal(np.frombuffer(packed(vector), dtype="<f4")[None, :])[0]
        blocks = [block for place in collections if len((block := self._block(place, name)).refs)]
        if not blocks:
            _refuse_other_model(collections, name)
        lengths = sorted({block.rows.shape[1] for block in blocks})
        blocks = [block for block in blocks if block.rows.shape[1] == len(query)]
        if lengths and not blocks:
            has = " or ".join(map(str, lengths))
            raise Invalid(f"the vectors of {name!r} here have {has} numbers, not {len(query)}", model=name)
        near = [np.vecdot(block.rows, query) for block in blocks]
        return (
            np.concatenate([np.zeros(0, dtype=np.int64), *(block.refs for block in blocks)]),
            np.concatenate([np.zeros(0, dtype=np.float32), *near]),
        )

    def _block(self, place: MemoryCollection, model: str) -> VectorBlock:
        record = place.record()
        mark = Mark(0, 0) if record is None else record.mark
        with self._lock:
            known = self._blocks.get((place.id, model))
        if known is None or known.upto.stream != mark.stream or known.upto.position > mark.position:
            known = _block(place.vectors(model), mark)
        elif known.upto != mark:
            new = place.since(known.upto.position, mark)
            if new is None:  # something was erased, and may be among what is known
                known = _block(place.vectors(model), mark)
            else:
                here = {*known.refs.tolist()}
                found = (one for one in new if one.vector is not None and one.vector.model == model)
                known = _joined(known, _block((one for one in found if number_of(one.id) not in here), mark))
        with self._lock:
            self._blocks[place.id, model] = known
            self._blocks.move_to_end((place.id, model))
            while len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return known


def _refuse_other_model(collections: Iterable[MemoryCollection], model: str) -> None:
    """Where there are vectors, but none of this model, a caller has mistaken its name."""
    newest = next((one for place in collections for one in place.vectors(limit=1)), None)
    if newest is not None and newest.vector is not None:
        there = newest.vector.model
        raise Invalid(f"there are no vectors of {model!r} here, but some of {there!r}: give model=…", model=model)


def _block(memories: Iterable[Memory], upto: Mark) -> VectorBlock:
    held = [(number_of(one.id), b64decode(one.vector.data)) for one in memories if one.vector is not None]
    # Two processes may have given a new model two lengths at once; those of the usual length can be compared.
    length, _ = Counter(len(data) for _, data in held).most_common(1)[0] if held else (0, 0)
    kept = [(ref, np.frombuffer(data, dtype="<f4")) for ref, data in held if len(data) == length]
    refs = np.array([ref for ref, _ in kept], dtype=np.int64)
    return VectorBlock(refs, _normal(np.stack([row for _, row in kept])) if kept else _NO_ROWS, upto)


def _joined(known: VectorBlock, more: VectorBlock) -> VectorBlock:
    if known.rows.shape[1] != more.rows.shape[1]:  # one of them is empty, or as above
        return (known if len(known.refs) else more)._replace(upto=more.upto)
    return VectorBlock(np.concatenate([known.refs, more.refs]), np.concatenate([known.rows, more.rows]), more.upto)


def _normal(rows: Array) -> Array:
    wide = rows.astype(np.float64)
    found: Array = (wide / np.sqrt(np.vecdot(wide, wide))[:, None]).astype(np.float32)
    return found
