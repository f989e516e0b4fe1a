"""Segments seen as one body of text: what is in it for a query, and how far a row is visible.

A corpus never changes; a recall works on one from its beginning to its end. Rows are named by two numbers, the segment
and the row in it. Deliberately absent: scores, which the stages give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from holdfast.retrieval.segment import CHANGE, FILE, FOREVER, MEMORY, Array, Segment, grounded, hashed

_FEW = 8
_ROLES = ("user", "assistant", "system", "tool", "developer", "human", "ai", "model", "function")


_SILENT = 2


class Rows:
    """Rows of a corpus, by segment and by place in it; a place of -1 is none."""

    __slots__ = ("_groups", "part", "row")

    def __init__(self, part: Array, row: Array) -> None:
        self.part, self.row = part, row
        self._groups: list[tuple[int, Any]] | None = None

    def __len__(self) -> int:
        return len(self.part)

    def at(self, which: Any) -> Rows:
        return Rows(self.part[which], self.row[which])

    def groups(self) -> list[tuple[int, Any]]:
        """Each segment that rows are of, with which rows those are."""
        if self._groups is None:
            self._groups = _grouped(self.part)
        return self._groups


def _grouped(part: Array) -> list[tuple[int, Any]]:
    if not len(part):
        return []
    order = None if (part[1:] >= part[:-1]).all() else np.argsort(part, kind="stable")
    ordered = part if order is None else part[order]
    edges = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(part)]
    spans = [slice(a, b) for a, b in pairwise(edges)]
    return [(int(ordered[span.start]), span if order is None else order[span]) for span in spans]


class Corpus:
    """Everything that one recall can find. ``reaches`` are (stream, after, upto, thread, …) of what is visible."""

    def __init__(self, segments: Sequence[Segment], reaches: Sequence[Any]) -> None:
        self.segments = [segment for segment in segments if segment.rows]
        self.reaches = tuple(reaches)
        self._hidden = _hidden(self.segments, self.reaches)
        self.rows = sum(segment.rows for segment in self.segments)
        self.passages = sum(segment.passages for segment in self.segments)
        self.length = sum(_total(segment) for segment in self.segments)
        self.cache: dict[Any, Any] = {}

    @staticmethod
    def of(corpora: Sequence[Corpus]) -> Corpus:
        """Several as one; the same one for the same several."""
        some = [corpus for corpus in corpora if corpus.segments]
        if len(some) < 2:
            return (some or corpora)[0]
        known = some[0].cache.get("joined")
        if known is None or known[0] != [id(corpus) for corpus in some]:
            segments = [segment for corpus in some for segment in corpus.segments]
            joined = Corpus(segments, [reach for corpus in some for reach in corpus.reaches])
            known = some[0].cache["joined"] = ([id(corpus) for corpus in some], joined, some)
        found: Corpus = known[1]
        return found

    def seen(self, sees: Callable[[Any], bool], thread: str | None, name: Any) -> Corpus:
        """What of it may be seen: the reaches that ``sees`` lets through, and of the thread that is named alone."""
        known: dict[Any, Corpus] = self.cache.setdefault("seen", {})
        if name not in known:
            shown = [reach for reach in self.reaches if sees(reach) and (thread is None or reach.thread == thread)]
            if len(known) >= _FEW:
                known.pop(next(iter(known)))
            known[name] = self if len(shown) == len(self.reaches) else Corpus(self.segments, shown)
        return known[name]

    def thread_of(self, stream: int, position: int) -> str | None:
        """The thread that shows an entry; the first by name of several that share it."""
        if "threads" not in self.cache:
            shown: dict[int, list[tuple[str, int]]] = {}
            for reach in self.reaches:
                if reach.thread is not None:
                    shown.setdefault(reach.stream, []).append((reach.thread, reach.upto))
            self.cache["threads"] = shown
        names = [thread for thread, upto in self.cache["threads"].get(stream, ()) if position <= upto]
        return min(names, default=None)

    def file_of(self, stream: int) -> str | None:
        """The id of the file whose versions a stream holds."""
        if "files" not in self.cache:
            self.cache["files"] = {reach.stream: reach.file for reach in self.reaches if reach.file is not None}
        found: str | None = self.cache["files"].get(stream)
        return found

    def expiries(self, rows: Rows) -> Array:
        """When the files that rows are versions of expire."""
        if "expiries" not in self.cache:
            self.cache["expiries"] = {reach.stream: reach.until for reach in self.reaches if reach.until is not None}
        known, streams = self.cache["expiries"], self.column("stream", rows).tolist()
        return np.array([known.get(stream, FOREVER) for stream in streams], dtype=np.int64)

    def speakers(self) -> set[int]:
        """Every speaker's name, as a number, but those that are only roles."""
        found: set[int] = set()
        for segment in self.segments:
            found |= _kept(segment, "speakers", lambda s: set(np.unique(s.columns["speaker"]).tolist()))
        return found - _unnamed()

    def voices(self) -> set[int]:
        """The names of those who speak in the logs, as numbers."""
        found: set[int] = set()
        for segment in self.segments:
            found |= _kept(segment, "voices", _voices)
        return found - _unnamed()

    def latest(self) -> int:
        """When the newest memory was recorded."""
        return max((_kept(segment, "latest", _latest) for segment in self.segments), default=0)

    def times(self) -> tuple[int, int]:
        """When the first and the last of what is here was said or began to be true."""
        spans = [span for segment in self.segments if (span := _kept(segment, "times", _times)) is not None]
        return min((first for first, _ in spans), default=0), max((last for _, last in spans), default=0)

    def streams(self) -> tuple[Array, list[Array], Array]:
        """Every stream, for each segment the place of its own streams among them, and how many terms each has."""
        if "streams" not in self.cache:
            names = np.unique(np.concatenate([segment.streams for segment in self.segments]))
            places = [np.searchsorted(names, segment.streams) for segment in self.segments]
            lengths = np.zeros(len(names))
            for segment, place in zip(self.segments, places, strict=True):
                lengths[place] += _kept(segment, "stream lengths", _stream_lengths)
            self.cache["streams"] = (names, places, lengths)
        found: tuple[Array, list[Array], Array] = self.cache["streams"]
        return found

    def starts(self) -> Array:
        """Where the rows of each segment begin when all rows are numbered through."""
        return np.cumsum([0, *(segment.rows for segment in self.segments)])

    def visible(self, part: int) -> Array | None:
        """Which rows of a segment may be seen; None when all may."""
        return self._hidden.get(part)

    def column(self, name: str, rows: Rows) -> Array:
        """A column's values at some rows."""
        kind = self.segments[0].columns[name].dtype if self.segments else np.int64
        found = np.empty(len(rows), dtype=kind)
        for part, here in rows.groups():
            found[here] = self.segments[part].columns[name].take(rows.row[here])
        return found

    def find(self, streams: Array, positions: Array) -> Rows:
        """The rows of these places; ``row`` is -1 where there is none."""
        part = np.zeros(len(streams), dtype=np.int64)
        row = np.full(len(streams), -1, dtype=np.int64)
        for number, segment in enumerate(self.segments):
            open_ = np.nonzero(row < 0)[0]
            if not len(open_):
                break
            found = segment.find(streams[open_], positions[open_])
            hit = found >= 0
            part[open_[hit]], row[open_[hit]] = number, found[hit]
        return Rows(part, row)

    def beside(self, rows: Rows, steps: Sequence[int]) -> list[Rows]:
        """For each step, the rows that many places later in the same stream; ``row`` is -1 where there is none.

        What says nothing stands between nobody's turns: a few such rows are passed over.
        """
        count = len(rows)
        rows, step = Rows(np.tile(rows.part, len(steps)), np.tile(rows.row, len(steps))), np.repeat(steps, count)
        streams, positions = self.column("stream", rows), self.column("position", rows) + step
        found = self._next_to(rows, step, streams, positions)
        for _ in range(_SILENT if any(map(_has_silence, self.segments)) else 0):
            there = np.nonzero(found.row >= 0)[0]
            silent = there[self.column("chars", found.at(there)) == 0]
            if not len(silent):
                break
            positions[silent] += np.sign(step[silent])
            further = self.find(streams[silent], positions[silent])
            found.part[silent], found.row[silent] = further.part, further.row
        return [found.at(slice(at * count, (at + 1) * count)) for at in range(len(steps))]

    def _next_to(self, rows: Rows, step: Array, streams: Array, positions: Array) -> Rows:
        """The rows of these places, which mostly lie as many rows away in a segment; only others are searched."""
        last = np.array([segment.rows - 1 for segment in self.segments], dtype=np.int64)
        near = Rows(rows.part, np.clip(rows.row + step, 0, last[rows.part] if len(last) else 0))
        there = (self.column("stream", near) == streams) & (self.column("position", near) == positions)
        row = np.where(there, near.row, -1)
        part = near.part.copy()
        if len(rest := np.nonzero(~there)[0]):
            searched = self.find(streams[rest], positions[rest])
            part[rest], row[rest] = searched.part, searched.row
        return Rows(part, row)

    def marked(self, mark: str) -> list[Array]:
        """For each segment, which rows carry a mark."""
        return [_mask(segment.rows, segment.marked(mark)) for segment in self.segments]

    def changes(self) -> Rows:
        """The rows that tell what happened to a memory, or correct one."""
        parts, found = [], []
        for number, segment in enumerate(self.segments):
            if "changes" not in segment.cache:
                columns = segment.columns
                segment.cache["changes"] = np.nonzero((columns["kind"] >= CHANGE) | (columns["corrects"] != 0))[0]
            found.append(segment.cache["changes"])
            parts.append(np.full(len(found[-1]), number))
        return rows_of(parts, found)

    def by(self, column: str, values: Array) -> Rows:
        """Every memory with one of these values in a column."""
        parts, found = [], []
        for number, segment in enumerate(self.segments):
            order, ordered = _ordered(segment, column)
            low = np.searchsorted(ordered, values)
            high = np.searchsorted(ordered, values, side="right")
            rows = [order[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True) if b > a]
            at = np.concatenate(rows) if rows else order[:0]
            kinds = segment.columns["kind"][at]
            at = at[(kinds >= MEMORY) & (kinds < FILE)]
            found.append(at)
            parts.append(np.full(len(at), number))
        return rows_of(parts, found)


def _kept(segment: Segment, name: str, make: Callable[[Segment], Any]) -> Any:
    """What is worked out once for a segment, however many corpora it is part of."""
    if name not in segment.cache:
        segment.cache[name] = make(segment)
    return segment.cache[name]


def _latest(segment: Segment) -> int:
    kinds = segment.columns["kind"]
    times = segment.columns["recorded"][(kinds >= MEMORY) & (kinds != FILE)]
    return int(times.max()) if len(times) else 0


def _times(segment: Segment) -> tuple[int, int] | None:
    times = segment.columns["time"][segment.columns["kind"] < CHANGE]
    return (int(times.min()), int(times.max())) if len(times) else None


def _stream_lengths(segment: Segment) -> Array:
    return np.bincount(segment.stream_of, weights=segment.columns["length"], minlength=len(segment.streams))


def _ordered(segment: Segment, column: str) -> tuple[Array, Array]:
    """The rows that have something in a column, ordered by it."""
    if column not in segment.cache:
        values = segment.columns[column]
        some = np.nonzero(values)[0]
        order = some[np.argsort(values[some], kind="stable")]
        segment.cache[column] = (order, values[order])
    found: tuple[Array, Array] = segment.cache[column]
    return found


def _voices(segment: Segment) -> set[int]:
    return set(np.unique(segment.columns["speaker"][segment.columns["kind"] < MEMORY]).tolist())


@cache
def _unnamed() -> frozenset[int]:
    """Nobody, and whoever is only called by a role."""
    return frozenset({0, *(hashed(role) for role in _ROLES)})


def rows_of(parts: Iterable[Array], found: Iterable[Array]) -> Rows:
    """Rows from arrays of segments and of places."""
    none = [np.zeros(0, dtype=np.int64)]
    return Rows(np.concatenate([*none, *parts]).astype(np.int64), np.concatenate([*none, *found]).astype(np.int64))


def _mask(rows: int, at: Array) -> Array:
    mask = np.zeros(rows, dtype=bool)
    mask[at] = True
    return mask


def _total(segment: Segment) -> int:
    return int(_kept(segment, "total", lambda one: int(one.columns["length"].sum())))


def _hidden(segments: Sequence[Segment], reaches: Sequence[Any]) -> dict[int, Array]:
    """For segments with rows that a rewind, an erasure or a newer version took out of sight: which rows are left."""
    streams = np.array([reach[0] for reach in reaches], dtype=np.int64)
    names, which = np.unique(streams, return_inverse=True)
    upto = np.zeros(len(names) + 1, dtype=np.int64)
    np.maximum.at(upto, which, np.array([reach[2] for reach in reaches], dtype=np.int64))
    outdated = Outdated(reaches)
    found: dict[int, Array] = {}
    for number, segment in enumerate(segments):
        limits = upto[_looked_up(names, grounded(segment.streams))]
        if (segment.ends > limits).any():
            found[number] = segment.columns["position"] <= limits[segment.stream_of]
        if outdated and (older := outdated.rows(segment)).any():
            found[number] = found.get(number, True) & ~older
    return found


def _looked_up(names: Array, wanted: Array) -> Array:
    """Where each of the wanted is among names in order; one place further than the last where it is not."""
    at = np.searchsorted(names, wanted)
    return np.where(np.append(names, -1)[at] == wanted, at, len(names))


class Outdated:
    """The versions of files that newer ones, or a deletion, came after."""

    def __init__(self, reaches: Sequence[Any]) -> None:
        files = sorted((reach[0], reach[1]) for reach in reaches if reach[1] and reach.file is not None)
        self._names = np.array([stream for stream, _ in files], dtype=np.int64)
        self._after = np.array([*(after for _, after in files), 0], dtype=np.int64)

    def __bool__(self) -> bool:
        return len(self._names) > 0

    def rows(self, segment: Segment) -> Array:
        """Which rows of a segment are such versions."""
        after = self._after[_looked_up(self._names, segment.streams)]
        found: Array = segment.columns["position"] <= after[segment.stream_of]
        return found


def _has_silence(segment: Segment) -> bool:
    """Whether some row of a segment says nothing."""
    if "silence" not in segment.cache:
        segment.cache["silence"] = bool((segment.columns["chars"] == 0).any())
    found: bool = segment.cache["silence"]
    return found
