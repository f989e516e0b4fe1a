"""Documents as arrays: one immutable part of an index.

A segment holds a row for each event of the streams it covers, the passages of their texts, and for each term the
passages that hold it. Rows are in order of stream and position, so that neighbours in a thread are found by search.
Terms are 64-bit hashes, and so are the marks that filters go by. A vector block, when there is one, has a row for each
passage. On disk an array is its bytes, low byte first, whatever the machine.

Deliberately absent: which streams are visible now, ranking, and storage (``index`` keeps the bytes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b, shake_128
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from holdfast import text
from holdfast.errors import Corrupt
from holdfast.retrieval import features
from holdfast.retrieval.features import Features

Array = np.ndarray[Any, np.dtype[Any]]

FOREVER = 2**63 - 1
KINDS = (
    "message", "tool_call", "observation", "event", "note",
    "semantic", "episodic", "procedural",
    "file",
    "forget", "restore", "erase",
)  # fmt: skip
"""What a row is: a kind of entry, a kind of memory, a file, or something that happened to a memory."""
CODES = {kind: code for code, kind in enumerate(KINDS)}
MEMORY = CODES["semantic"]
FILE = CODES["file"]
CHANGE = CODES["forget"]
ENDED, FROM_USER = 1, 2

_KNOWN_LIMIT = 200_000
_ALIKE = 2_000
_PLACE_BITS = 40  # of a stream and a position in one number, the position
_hashes: dict[str, int] = {}

COLUMNS: dict[str, str] = {
    "stream": "<i8", "position": "<i8", "time": "<i8", "recorded": "<i8", "until": "<i8", "ref": "<i8",
    "fact": "<u8", "corrects": "<i8", "speaker": "<u8", "length": "<i4", "kind": "|u1", "trust": "|u1", "flags": "|u1",
    "importance": "<f4", "first": "<i4", "cues": "<u4", "own": "|u1", "names": "|u1", "chars": "<i4", "same": "<u8",
    "left": "<u8", "right": "<u8",
}  # fmt: skip
"""The columns of a row: ``time`` is when it was said or is true from, ``first`` the first passage."""
_OTHERS = {"owner": "<i4", "size": "<i4", "terms": "<u8", "offsets": "<i8", "holder": "<i4", "count": "|u1"}

_HASHES = ("terms", "fact", "speaker", "same", "left", "right")
_STORED = {*COLUMNS.values(), *_OTHERS.values(), "<f2", "|b1"}


class Document(msgspec.Struct, frozen=True):
    """What an index gets about one event. ``marks`` are what filters ask for, as ``tag:travel``; ``left`` is whom
    a memory is about, and ``right`` what it links that to."""

    stream: int
    position: int
    kind: str
    time: int
    recorded: int
    text: str = ""
    speaker: str = ""
    from_user: bool = False
    trust: int = 1
    importance: float = 0.5
    until: int = FOREVER
    ref: int = 0
    fact: str | None = None
    corrects: int = 0
    ended: bool = False
    left: str | None = None
    right: str | None = None
    marks: tuple[str, ...] = ()


def hashed(term: str) -> int:
    """A term as a number, the same on every machine."""
    known = _hashes.get(term)
    if known is None:
        known = int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1
        if len(_hashes) >= _KNOWN_LIMIT:
            _hashes.clear()
        _hashes[term] = known
    return known


def grounded(streams: Array) -> Array:
    """The streams that are stored. The rows of ``~stream`` are what came from outside in the messages of a stream."""
    return np.where(streams < 0, ~streams, streams)


def called(speaker: str) -> str:
    """What a speaker is called for short: the first word of the name."""
    return next(text.words(speaker), speaker)


_OTHER_SCRIPT = hashed("\x00script:other")


class Vectors:
    """A model's vectors for the passages of a segment: ``done`` says which have theirs, ``kept`` which of those are
    saved, ``cache`` holds what a search makes of the rows. More vectors are another object."""

    __slots__ = ("cache", "done", "kept", "model", "rows", "whole")

    def __init__(self, model: str, rows: Array, done: Array | None = None, kept: Array | None = None) -> None:
        self.model, self.rows = model, rows
        self.done = np.ones(len(rows), dtype=bool) if done is None else done
        self.kept = np.zeros(len(rows), dtype=bool) if kept is None else kept
        self.whole = bool(self.done.all())
        self.cache: dict[str, Any] = {}


class Segment:
    """One part of an index. ``columns`` has an array per column, which never changes; ``vectors`` has those of each
    model, and as more are made, others take their place."""

    def __init__(self, arrays: dict[str, Array], vectors: Iterable[Vectors] = ()) -> None:
        self.columns = {name: arrays[name] for name in COLUMNS}
        self.owner, self.size = arrays["owner"], arrays["size"]
        self.terms, self.offsets = arrays["terms"], arrays["offsets"]
        self.holder, self.count = arrays["holder"], arrays["count"]
        self.vectors = {one.model: one for one in vectors}
        self.streams, self._starts = np.unique(self.columns["stream"], return_index=True)
        self.stream_of = np.searchsorted(self.streams, self.columns["stream"])
        self._places = (self.stream_of << _PLACE_BITS) | self.columns["position"]
        self.plain = len(self.owner) == self.rows  # each row has one passage, in the same order
        self.cache: dict[str, Any] = {}

    @property
    def rows(self) -> int:
        return len(self.columns["stream"])

    @property
    def passages(self) -> int:
        return len(self.owner)

    def arrays(self) -> dict[str, Array]:
        return {
            **self.columns, "owner": self.owner, "size": self.size, "terms": self.terms, "offsets": self.offsets,
            "holder": self.holder, "count": self.count,
        }  # fmt: skip

    @property
    def ends(self) -> Array:
        """The last position of each stream that this segment covers."""
        if "ends" not in self.cache:
            ends = np.append(self._starts[1:], self.rows)[: len(self.streams)] - 1
            self.cache["ends"] = self.columns["position"][ends]
        found: Array = self.cache["ends"]
        return found

    def reaches(self) -> dict[int, int]:
        """The last position of each stream that this segment covers, by stream."""
        return dict(zip(self.streams.tolist(), self.ends.tolist(), strict=True))

    def lacking(self, model: str) -> Array:
        """The passages that have no vector of a model yet."""
        vectors = self.vectors.get(model)
        return np.arange(self.passages) if vectors is None else np.nonzero(~vectors.done)[0]

    def whole(self, model: str) -> bool:
        """Whether every passage has its vector of a model."""
        return not self.passages or (model in self.vectors and self.vectors[model].whole)

    def add(self, model: str, passages: Array, rows: Array) -> None:
        """Give passages their vectors of a model."""
        known = self.vectors.get(model) or no_vectors(model, self.passages, rows.shape[1])
        full, done = known.rows.copy(), known.done.copy()
        full[passages], done[passages] = rows, True
        self.vectors[model] = Vectors(model, full, done, known.kept)

    def holders(self, terms: Sequence[int]) -> list[tuple[Array, Array]]:
        """For each term the passages that hold it, and how often each does."""
        wanted = np.array(terms, dtype=np.uint64)
        at = np.searchsorted(self.terms, wanted)
        known = np.append(self.terms, np.uint64(0))[at] == wanted
        ends = np.append(self.offsets, self.offsets[-1])
        spans = [
            slice(a, b)
            for a, b in zip(ends[at].tolist(), np.where(known, ends[at + 1], ends[at]).tolist(), strict=True)
        ]
        return [(self.holder[span], self.count[span]) for span in spans]

    @property
    def passage_ends(self) -> Array:
        """For each row, the passage after its last one."""
        if "passage ends" not in self.cache:
            self.cache["passage ends"] = np.append(self.columns["first"][1:], self.passages)
        found: Array = self.cache["passage ends"]
        return found

    def passages_of(self, rows: Array) -> tuple[Array, Array]:
        """The passages of rows, one row's after another's, and where those of each row begin among them."""
        if self.plain:
            return rows, np.arange(len(rows))
        first = self.columns["first"].take(rows).astype(np.int64)
        counts = self.passage_ends.take(rows) - first
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        return within + np.repeat(first, counts), ends - counts

    def marked(self, mark: str) -> Array:
        """The rows that carry a mark."""
        return self.owner[self.holders([hashed(f"\x00{mark}")])[0][0]]

    @property
    def scripts(self) -> tuple[int, int]:
        """How many rows say something, and how many of them in another script than Latin."""
        if "scripts" not in self.cache:
            other = self.holders([_OTHER_SCRIPT])[0][0]
            self.cache["scripts"] = (int((self.columns["chars"] > 0).sum()), len(other))
        found: tuple[int, int] = self.cache["scripts"]
        return found

    def find(self, streams: Array, positions: Array) -> Array:
        """The rows of these places, -1 where this segment has none."""
        if not self.rows:
            return np.full(len(streams), -1, dtype=np.int64)
        code = np.minimum(np.searchsorted(self.streams, streams), len(self.streams) - 1)
        at = np.minimum(np.searchsorted(self._places, (code << _PLACE_BITS) | positions), self.rows - 1)
        exact = (self.columns["stream"][at] == streams) & (self.columns["position"][at] == positions)
        return np.where(exact, at, -1)


class Pieces(list[str]):
    """The passages of a text; those after the first ``own`` are not part of it, but have a vector all the same."""

    own: int


def passages(whole: str, look: Features | None = None) -> Pieces:
    """Cut a text as an index does. The occasion of a standing instruction is one passage more."""
    pieces = Pieces(text.passages(whole) if whole else [""])
    pieces.own = len(pieces)
    if (look or features.look(whole)).cues & features.BITS["instruction"]:
        pieces.append(features.trigger(whole))
    return pieces


def build(documents: Iterable[Document]) -> tuple[Segment, list[str]]:
    """Make a segment from documents, and return the texts of its passages in order, for the embedder."""
    ordered = sorted(documents, key=lambda document: (document.stream, document.position))
    rows: list[tuple[Any, ...]] = []
    owner: list[int] = []
    texts: list[str] = []
    postings: list[list[int]] = []
    marks: list[tuple[int, int]] = []
    for row, document in enumerate(ordered):
        first = len(owner)
        looked = features.look(document.text)
        pieces = passages(document.text, looked)
        for place, piece in enumerate(pieces):
            postings.append([hashed(term) for term in text.terms(piece)] if place < pieces.own else [])
        owner += [row] * len(pieces)
        texts += pieces
        occasion = text.terms(pieces[-1]) if pieces.own < len(pieces) else []
        carried = (*(f"\x00{mark}" for mark in document.marks), *(f"\x01{term}" for term in occasion))
        marks += [(hashed(mark), first) for mark in set(carried)]
        if text.in_another_script(document.text):
            marks.append((_OTHER_SCRIPT, first))
        rows.append(_row(document, sum(map(len, postings[first:])), first, looked))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    arrays = {name: np.array(values, dtype=kind) for (name, kind), values in zip(COLUMNS.items(), columns, strict=True)}
    arrays["owner"] = np.array(owner, dtype="<i4")
    arrays["size"] = np.fromiter(map(len, postings), dtype="<i4", count=len(postings))
    return Segment({**arrays, **_counted(postings, marks)}), texts


def same_words(whole: str) -> int:
    """A number that texts with the same words in the same order share."""
    return hashed(" ".join(text.words(whole[:_ALIKE]))) if whole else 0


def _counted(postings: list[list[int]], marks: list[tuple[int, int]]) -> dict[str, Array]:
    """Terms by passage, and marks, as one inverted list that counts what is repeated."""
    keys = np.array([*chain.from_iterable(postings), *(mark for mark, _ in marks)], dtype="<u8")
    sizes = np.fromiter(map(len, postings), dtype=np.int64, count=len(postings))
    holder = np.concatenate([np.repeat(np.arange(len(postings)), sizes), np.array([at for _, at in marks], dtype=int)])
    order = np.lexsort((holder, keys))
    keys, holder = keys[order], holder[order]
    new = np.append(True, (keys[1:] != keys[:-1]) | (holder[1:] != holder[:-1])) if len(keys) else np.zeros(0, bool)
    starts = np.nonzero(new)[0]
    count = np.minimum(np.diff(np.append(starts, len(keys))), 255).astype("|u1")
    return _inverted(keys[starts], holder[starts], count)


def _row(document: Document, length: int, first: int, look: Features) -> tuple[Any, ...]:
    flags = (ENDED if document.ended else 0) | (FROM_USER if document.from_user else 0)
    return (
        document.stream, document.position, document.time, document.recorded, document.until, document.ref,
        0 if document.fact is None else hashed(document.fact), document.corrects,
        hashed(called(document.speaker)) if document.speaker else 0,
        length, CODES.get(document.kind, CODES["event"]), document.trust, flags, document.importance, first,
        look.cues, look.own, look.names, len(document.text), same_words(document.text),
        hashed(document.left) if document.left else 0, hashed(document.right) if document.right else 0,
    )  # fmt: skip


def _inverted(keys: Array, holder: Array, count: Array) -> dict[str, Array]:
    """Sort postings by term and passage; ``offsets`` says where each term begins."""
    order = np.lexsort((holder, keys))
    keys, holder, count = keys[order], holder[order], count[order]
    terms, starts = np.unique(keys, return_index=True)
    return {
        "terms": terms.astype("<u8"), "offsets": np.append(starts, len(keys)).astype("<i8"),
        "holder": holder.astype("<i4"), "count": count,
    }  # fmt: skip


def only(segment: Segment, rows: Array) -> Segment:
    """The part of a segment that a mask of its rows leaves."""
    placed = np.cumsum(rows) - 1
    kept = rows[segment.owner]
    moved = np.cumsum(kept) - 1
    arrays = {name: column[rows] for name, column in segment.columns.items()}
    arrays["owner"] = placed[segment.owner[kept]].astype("<i4")
    arrays["size"] = segment.size[kept]
    arrays["first"] = np.searchsorted(arrays["owner"], np.arange(int(rows.sum()))).astype("<i4")
    keys = np.repeat(segment.terms, np.diff(segment.offsets))
    held = kept[segment.holder]
    inverted = _inverted(keys[held], moved[segment.holder[held]], segment.count[held])
    vectors = [Vectors(one.model, one.rows[kept], one.done[kept]) for one in segment.vectors.values()]
    return Segment({**arrays, **inverted}, vectors)


def merge(segments: Sequence[Segment]) -> Segment:
    """One segment that holds what several do, with the vectors of every model."""
    columns = {name: np.concatenate([s.columns[name] for s in segments]) for name in COLUMNS}
    passages_before = np.cumsum([0, *(s.passages for s in segments)])
    rows_before = np.cumsum([0, *(s.rows for s in segments)])
    order = np.lexsort((columns["position"], columns["stream"]))
    placed = np.empty(len(order), dtype=np.int64)
    placed[order] = np.arange(len(order))
    owner = np.concatenate([s.owner + rows_before[i] for i, s in enumerate(segments)])
    by_row = np.argsort(placed[owner], kind="stable")
    moved = np.empty(len(by_row), dtype=np.int64)
    moved[by_row] = np.arange(len(by_row))
    arrays = {name: column[order] for name, column in columns.items()}
    arrays["owner"] = placed[owner][by_row].astype("<i4")
    arrays["size"] = np.concatenate([s.size for s in segments])[by_row]
    arrays["first"] = np.searchsorted(arrays["owner"], np.arange(len(order))).astype("<i4")
    keys = np.concatenate([np.repeat(s.terms, np.diff(s.offsets)) for s in segments])
    holder = moved[np.concatenate([s.holder + passages_before[i] for i, s in enumerate(segments)])]
    count = np.concatenate([s.count for s in segments])
    return Segment({**arrays, **_inverted(keys, holder, count)}, _merged_vectors(segments, by_row))


def _merged_vectors(segments: Sequence[Segment], by_row: Array) -> Iterator[Vectors]:
    """The vectors that all have together, of each model. Those of another length than its first count as none."""
    for model in dict.fromkeys(model for segment in segments for model in segment.vectors):
        width = next(s.vectors[model].rows.shape[1] for s in segments if model in s.vectors)
        blocks = [_by_model(segment, model, width) for segment in segments]
        rows, done = np.concatenate([block.rows for block in blocks]), np.concatenate([block.done for block in blocks])
        yield Vectors(model, rows[by_row], done[by_row])


def _by_model(segment: Segment, model: str, width: int) -> Vectors:
    vectors = segment.vectors.get(model)
    return vectors if vectors and vectors.rows.shape[1] == width else no_vectors(model, segment.passages, width)


def no_vectors(model: str, passages: int, width: int) -> Vectors:
    """No vector for any of so many passages."""
    return Vectors(model, np.zeros((passages, width), dtype="<f2"), np.zeros(passages, dtype=bool))


# Bytes


def masked(arrays: dict[str, Array], key: bytes) -> dict[str, Array]:
    """The same arrays with every hash of a word or name hidden by a key, or shown by the same key again.

    A bare hash tells who tries out words which of them are there. In memory it stays as it is, so that a key of its own
    for each index changes nothing in what is found.
    """
    found = dict(arrays)
    stream = np.frombuffer(shake_128(key).digest(8 * sum(arrays[name].size for name in _HASHES)), dtype="<u8")
    for name in _HASHES:
        size = arrays[name].size
        found[name], stream = arrays[name] ^ stream[:size], stream[size:]
    return found


def to_bytes(arrays: dict[str, Array]) -> bytes:
    """Arrays as one value, low byte first."""
    return msgspec.msgpack.encode(
        {name: (array.dtype.newbyteorder("<").str, array.shape, array.astype(array.dtype.newbyteorder("<")).tobytes())
         for name, array in arrays.items()}
    )  # fmt: skip


def from_bytes(data: bytes) -> dict[str, Array]:
    """The arrays of a value, or ``Corrupt``."""
    try:
        plain = msgspec.msgpack.decode(data, type=dict[str, tuple[str, tuple[int, ...], bytes]])
        if not {kind for kind, _, _ in plain.values()} <= _STORED:
            raise Corrupt("a part of an index holds invalid data")
        return {name: np.frombuffer(body, dtype=kind).reshape(shape) for name, (kind, shape, body) in plain.items()}
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError, TypeError) as error:
        raise Corrupt(f"a part of an index does not decode: {error}") from error


def of_arrays(arrays: dict[str, Array], key: bytes | None = None) -> Segment:
    """A segment from stored arrays, which a key may have masked, refused when they cannot be one."""
    wanted = {**COLUMNS, **_OTHERS}
    if wanted.keys() - arrays.keys():
        raise Corrupt("a part of an index lacks columns")
    rows = len(arrays["stream"])
    holds = (
        all(len(arrays[name]) == rows for name in COLUMNS)
        and len(arrays["offsets"]) == len(arrays["terms"]) + 1
        and len(arrays["holder"]) == len(arrays["count"]) == int(arrays["offsets"][-1])
        and len(arrays["owner"]) == len(arrays["size"])
    )
    if not holds:
        raise Corrupt("the columns of a part of an index do not match")
    found = {name: arrays[name].astype(kind, copy=False) for name, kind in wanted.items()}
    return Segment(found if key is None else masked(found, key))
