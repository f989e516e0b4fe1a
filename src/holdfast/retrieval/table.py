"""The candidates of one recall and what each stage says of them.

A stage is a function from a table to columns: it reads the corpus, the query and earlier columns, and changes nothing.
Columns that are compared with one another are brought to the same range here. Deliberately absent: the stages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.atfork import cached_property
from holdfast.retrieval.candidates import mask_of
from holdfast.retrieval.corpus import Corpus, Rows, rows_of
from holdfast.retrieval.features import BITS
from holdfast.retrieval.lexical import Lexical, Passed
from holdfast.retrieval.links import Linked
from holdfast.retrieval.question import ParsedQuery, RecallQuery, is_question
from holdfast.retrieval.segment import FILE, FROM_USER, MEMORY, Array, Segment, same_words
from holdfast.retrieval.vector import Nearness

AROUND = (-2, -1, 1, 2)
"""How many places away a neighbour is looked at."""
_ASSISTED = (2.0, 4.5)
_CONNECTED = (0.5, 1.2)
_PAIRS, _FEW_PAIRS = 200, 4
NEARLY_THE_SAME = 0.3
"""Cosines that differ by less say little; of two candidates one would be all and the other nothing."""


class Table:
    """Rows of a corpus that may answer a query, with a column for everything that is known of them."""

    def __init__(
        self,
        corpus: Corpus,
        asked: RecallQuery,
        reading: ParsedQuery,
        lexical: Lexical,
        near: list[Nearness],
        rows: Rows,
        linked: Linked,
    ) -> None:
        self.corpus, self.asked, self.reading, self.lexical = corpus, asked, reading, lexical
        self.near, self.rows, self.linked = near, rows, linked
        self.columns: dict[str, Array] = {}
        self.seen: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def stored(self, name: str) -> Array:
        """A column of the corpus."""
        if name not in self.seen:
            self.seen[name] = self.corpus.column(name, self.rows)
        found: Array = self.seen[name]
        return found

    def cue(self, name: str) -> Array:
        """1 where a row's text has a cue."""
        found: Array = ((self.stored("cues") & np.uint32(BITS[name])) > 0).astype(np.float32)
        return found

    @cached_property
    def spoken(self) -> Array:
        """Whether a row is an entry of a log, which has neighbours."""
        found: Array = self.stored("kind") < MEMORY
        return found

    @cached_property
    def remembered(self) -> Array:
        """Whether a row is a memory."""
        found: Array = ~self.spoken & (self.stored("kind") < FILE)
        return found

    @cached_property
    def from_user(self) -> Array:
        found: Array = ((self.stored("flags") & FROM_USER) > 0).astype(np.float32)
        return found

    def echoes(self, rows: Rows) -> Array:
        """Which rows of the corpus are this very question, asked before: they hold all its words and answer nothing."""
        if not is_question(self.asked.text):
            return np.zeros(len(rows), dtype=bool)
        there = Rows(rows.part, np.maximum(rows.row, 0))
        found: Array = self.corpus.column("same", there) == np.uint64(same_words(self.asked.text))
        return found & (self.corpus.column("kind", there) < MEMORY)

    @cached_property
    def streams(self) -> tuple[Array, Array]:
        """The streams of the rows, and for each row which of them it is in; a memory or a file is in one of its own."""
        names, which = np.unique(self.stored("stream"), return_inverse=True)
        return names, np.where(self.spoken, which, len(names) + np.arange(len(self)))

    def beside(self, step: int) -> Rows:
        """The entries that many places after each row, of those in ``AROUND``; ``row`` is -1 where there is none, or
        none that had been said by then and is trusted as much as is asked for."""
        return self._beside[step]

    @cached_property
    def _beside(self) -> dict[int, Rows]:
        if not self.spoken.any():
            return dict.fromkeys(AROUND, Rows(self.rows.part, np.full(len(self), -1, dtype=np.int64)))
        found = self.corpus.beside(self.rows, AROUND)
        rows = [Rows(each.part, np.where(self.spoken & self._counts(each), each.row, -1)) for each in found]
        return dict(zip(AROUND, rows, strict=True))

    def _counts(self, rows: Rows) -> Array:
        there = Rows(rows.part, np.maximum(rows.row, 0))
        found: Array = self.corpus.column("trust", there) >= self.asked.trust
        return found if self.asked.as_of is None else found & (self.corpus.column("time", there) <= self.asked.as_of)

    def places(self, rows: Rows) -> Array:
        """Where rows of the corpus stand in this table, -1 for those that do not."""
        if not len(self) or not len(rows):
            return np.full(len(rows), -1, dtype=np.int64)
        starts = self.corpus.starts()
        numbers = starts[self.rows.part] + self.rows.row
        order = np.argsort(numbers)
        wanted = np.where(rows.row >= 0, starts[rows.part] + rows.row, -1)
        at = np.minimum(np.searchsorted(numbers[order], wanted), len(order) - 1)
        return np.where(numbers[order][at] == wanted, order[at], -1)

    @cached_property
    def passed(self) -> Passed:
        """What of the corpus passed the filters and may be seen."""
        masks = [mask_of(self.corpus, part, self.asked) for part in range(len(self.corpus.segments))]
        if all(mask.whole for mask in masks):
            return Passed(self.corpus.rows, None)
        rows = [mask.rows for mask in masks]
        return Passed(sum(int(np.count_nonzero(mask)) for mask in rows), rows)

    @cached_property
    def assisted(self) -> float:
        """From 0, people who talk to one another, to 1, a user with an assistant that writes at length.

        It follows from how much longer the assistant's turns are than the user's. Without the role there is no
        assistant, however long somebody talks.
        """
        low, high = _ASSISTED
        share = (np.log(max(unevenness(self.corpus), 1.0)) - np.log(low)) / (np.log(high) - np.log(low))
        return float(np.clip(share, 0.0, 1.0))

    @cached_property
    def connected(self) -> float:
        """From 0, turns that stand alone, as of one who tells an assistant this and that, to 1, turns that follow from
        one another.

        It follows from how much nearer neighbours are to each other than texts here that have nothing to do with each
        other. Where several speak by name, or nothing is known of meaning, they are taken to follow.
        """
        if not self.near or len(self.corpus.voices()) > 1:
            return 1.0
        low, high = _CONNECTED
        return float(np.clip((followed(self.corpus, self.near[0]) - low) / (high - low), 0.0, 1.0))


def followed(corpus: Corpus, near: Nearness) -> float:
    """By how many spreads a turn is nearer to the next one than texts that have nothing to do with each other."""
    name = ("followed", near.model)
    if name not in corpus.cache:
        places = [np.nonzero(segment.columns["kind"] < MEMORY)[0] for segment in corpus.segments]
        spoken = rows_of([np.full(len(rows), part) for part, rows in enumerate(places)], places)
        rows = spoken.at(slice(None, None, max(1, len(spoken) // _PAIRS)))
        after = corpus.beside(rows, (1,))[0]
        pairs = after.row >= 0
        cosines = np.vecdot(near.vectors(rows.at(pairs)), near.vectors(after.at(pairs)))
        mean, spread_ = near.background()
        usual = 0.5 * sum(_CONNECTED)  # what few pairs say is little
        far = (float(cosines.sum()) - len(cosines) * mean) / max(spread_, 0.02)
        corpus.cache[name] = (far + _FEW_PAIRS * usual) / (len(cosines) + _FEW_PAIRS)
    return float(corpus.cache[name])


def unevenness(corpus: Corpus) -> float:
    """How many times longer the turns of assistants are than those of users; 1 where a side hardly speaks."""
    if "unevenness" not in corpus.cache:
        samples = [_sample(segment) for segment in corpus.segments]
        chars = [np.concatenate([sample[side] for sample in samples]) if samples else np.zeros(0) for side in (0, 1)]
        enough = max(3, 0.05 * (len(chars[0]) + len(chars[1])))
        heard = min(len(chars[0]), len(chars[1])) >= enough
        corpus.cache["unevenness"] = np.median(chars[1]) / max(np.median(chars[0]), 1.0) if heard else 1.0
    return float(corpus.cache["unevenness"])


def _sample(segment: Segment) -> tuple[Array, Array]:
    """How long some of the turns are, of users and of assistants."""
    if "sample" not in segment.cache:
        chars = segment.columns["chars"]
        sides = (segment.marked("role:user"), segment.marked("role:assistant"))
        segment.cache["sample"] = tuple(chars[np.unique(rows)[:: max(1, len(rows) // 2_000)]] for rows in sides)
    found: tuple[Array, Array] = segment.cache["sample"]
    return found


def share(values: Array) -> Array:
    """Values as shares of the largest one."""
    most = values.max(initial=0.0)
    return values / most if most > 0 else np.zeros_like(values)


def spread(values: Array, over: float = 1e-9) -> Array:
    """Values from the smallest, 0, to the largest, 1; less far apart where they differ by less than ``over``."""
    if not len(values):
        return values
    least, most = values.min(), values.max()
    found: Array = (values - least) / max(most - least, over)
    return found


def within_groups(values: Array, groups: Array) -> Array:
    """Values by how far each is above the mean of its group, in standard deviations."""
    found = np.zeros(len(values), dtype=np.float32)
    for group in np.unique(groups):
        here = groups == group
        found[here] = (values[here] - values[here].mean()) / (values[here].std() + 1e-9)
    return found
