"""The index of one collection and the threads beside it: kept in memory, saved in parts, brought up to date by every
reader.

Writes do not touch it. A reader asks which streams are visible and how far they reach, reads what it has not
seen, and adds a segment; so whatever was acknowledged before a recall began is found by it, in whichever process.
Segments that have grown are saved; if another process saved first, its segments are taken over. What is
saved and does not match its digest is dropped and rebuilt.

Deliberately absent: ranking, what a document is made of (the source says), and threads of its own.
"""

from __future__ import annotations

import logging
import time as _time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from holdfast import atfork
from holdfast.engine.contract import Op
from holdfast.errors import (
    Conflict,
    Corrupt,
    Erased,
    HoldfastError,
    Misconfigured,
    TooLarge,
    Unavailable,
    Unsupported,
)
from holdfast.retrieval.compaction import HeldSegment, joins, tiered
from holdfast.retrieval.corpus import Corpus, Outdated
from holdfast.retrieval.index_store import IndexManifest, IndexStore, Overtaken
from holdfast.retrieval.segment import CHANGE, MEMORY, Array, Document, Segment, Vectors, build, grounded, merge, only
from holdfast.retrieval.source import Embedders, Embeds, Progress, Source, StreamRange, agrees, texts_of

SAVE_AT = 256
"""How many rows an unsaved tail may have: about what a new process reads again in twenty milliseconds."""
_BATCH = 4_096
RETRY_S = 5.0
_TRIES = 8
_PORTION = 4_096
_TOGETHER = 500

_log = logging.getLogger(__name__)


class Lacking(NamedTuple):
    """A saved segment without some vectors: its token, the texts of its passages, and how much is done in all."""

    token: str
    texts: list[str]
    done: int
    total: int


class Index:
    """What is known of one place, ready to be searched."""

    def __init__(self, depot: IndexStore, source: Source, embedders: Embedders = lambda _: None) -> None:
        self._depot, self._source, self._embedders = depot, source, embedders
        self._lock = atfork.lock(forget=self._forget)
        self._held: list[HeldSegment] = []
        self._reached: dict[int, int] = {}
        self._loaded = False
        self._shown: Sequence[StreamRange] | None = None
        self._corpus: Corpus | None = None
        self._retry_at = self._save_again_at = 0.0
        self._saving_on = self._may_wait = True
        self._saves = 0
        self._spare: dict[tuple[str, str | None, str], Segment] = {}
        self._unclean = False  # what is saved knows something that is gone

    # Being read

    def corpus(self, progress: Progress | None = None, *, patient: bool = True) -> Corpus:
        """Everything acknowledged so far, as one thing to search.

        Without ``patient`` it waits neither for a slow embedder nor for saving; others do that later.
        """
        with self._lock:
            for attempt in range(_TRIES):
                try:
                    self._saving_on = patient and attempt < _TRIES - 1
                    return self._current(progress, patient)
                except Overtaken:
                    self._forget()
                except BaseException:  # also a signal: what is in memory may be half of something
                    self._forget()
                    raise
            raise AssertionError("the last attempt saves nothing, so it cannot conflict")

    def _current(self, progress: Progress | None, patient: bool = True) -> Corpus:
        if not self._loaded:
            self._load()
        self._may_wait = patient
        for _ in range(_TRIES):
            reaches = self._source.reaches()
            if reaches is self._shown and self._corpus is not None:
                break
            self._depot.look()
            reaches = self._source.reaches()  # again: what was erased before the look is not among them
            saves = self._saves
            self._catch_up(reaches, progress)
            self._shown, self._corpus = reaches, Corpus([held.segment for held in self._held], reaches)
            if saves == self._saves:  # what was saved must not know more than there is: then look once more
                break
        if self._pending() and self._may_embed():
            self._embed_pending(progress)
            self._corpus = Corpus([held.segment for held in self._held], self._shown or ())
        assert self._corpus is not None
        return self._corpus

    def _may_embed(self) -> bool:
        embedder = self.embedder
        if embedder is None or _time.monotonic() < self._retry_at:
            return False
        return embedder.local or self._may_wait

    @property
    def embedder(self) -> Embeds | None:
        """What makes the vectors that recall compares: for the recorded model, else for the one that is wanted."""
        return self._embedders(self._depot.manifest.model)

    @property
    def passages(self) -> int:
        """How many passages are held in memory."""
        return sum(held.segment.passages for held in self._held)

    @property
    def model(self) -> str | None:
        """The model that is recorded."""
        return self._depot.manifest.model

    @property
    def dimension(self) -> int:
        """How many numbers the recorded vectors have; 0 when there are none."""
        return self._depot.manifest.dimension

    def _catch_up(self, reaches: Sequence[StreamRange], progress: Progress | None) -> None:
        self._drop_hidden(reaches)
        behind = self._behind(reaches)
        total, done = sum(part.upto - part.after for part in behind), 0
        batch: list[Document] = []
        for number, part in enumerate(behind):
            if number % _TOGETHER == 0:
                self._source.ahead(behind[number : number + _TOGETHER])
            for document in self._source.documents(part.stream, part.after, part.upto):
                batch.append(document)
                if len(batch) >= _BATCH:
                    done += len(batch)
                    self._add(batch)
                    batch = []
                    self._save_grown(reaches)
                    if progress is not None:
                        progress(done, total)
            self._reached[part.stream] = part.upto
        self._add(batch)
        if progress is not None and total:
            progress(total, total)
        self._save_grown(reaches)

    def _drop_hidden(self, reaches: Sequence[StreamRange]) -> None:
        """Let go of what nothing shows any more: what was erased must not be saved again."""
        upto: dict[int, int] = {}
        for reach in reaches:  # there may be one for each of many files, so nothing more is done with it than must be
            stream, end = reach[0], reach[2]
            if end > upto.get(stream, 0):
                upto[stream] = end
        if all(reached <= upto.get(max(stream, ~stream), 0) for stream, reached in self._reached.items()):
            return

        def shown(segment: Segment) -> Array:
            streams = grounded(segment.streams).tolist()
            limits = np.array([upto.get(stream, 0) for stream in streams], dtype=np.int64)
            found: Array = segment.columns["position"] <= limits[segment.stream_of]
            return found

        self._keep(shown)
        self._reached = {
            stream: min(reached, upto[stream]) for stream, reached in self._reached.items() if stream in upto
        }

    def _keep(self, wanted: Callable[[Segment], Array]) -> None:
        """Keep only some rows. Where rows of a saved segment go, it is saved again without them, at once."""
        held = []
        for one in self._held:
            mask = wanted(one.segment)
            held.append(one if mask.all() else HeldSegment(only(one.segment, mask)))
        changed = any(new.saved is None and old.saved is not None for new, old in zip(held, self._held, strict=True))
        self._held = [one for one in held if one.segment.rows]
        self._corpus = None
        if changed:
            self._unclean = True
            self._save(self._held)

    def _behind(self, reaches: Iterable[StreamRange]) -> list[StreamRange]:
        """What is visible and not covered yet, each stream once, from where its coverage ends."""
        wanted: dict[int, StreamRange] = {}
        for part in reaches:
            if part[2] <= self._reached.get(part[0], 0):
                continue
            start = max(part.after, self._reached.get(part.stream, 0))
            known = wanted.get(part.stream)
            if part.upto > start and (known is None or known.upto < part.upto):
                wanted[part.stream] = part._replace(after=start)
        return sorted(wanted.values(), key=lambda part: part.stream)

    def _add(self, batch: list[Document]) -> None:
        """Add a segment for new documents, joined with small ones that are not saved yet."""
        if not batch:
            return
        segment, texts = build(batch)
        held = self._with_vectors(HeldSegment(segment, None, texts))
        while self._held and joins(self._held[-1], held, _BATCH):
            other = self._held.pop()
            joined = merge([other.segment, held.segment])
            held = HeldSegment(joined)
        self._held.append(held)
        erased = [document.ref for document in batch if document.kind == "erase"]
        if erased:
            self._keep(lambda segment: ~_remembers(segment, erased))

    # Vectors

    def _with_vectors(self, held: HeldSegment) -> HeldSegment:
        """A segment with the vectors that it lacks, or as it is when they cannot be made now."""
        embedder = self.embedder
        if embedder is None or held.texts is None or not self._may_embed():
            return held
        open_ = _open(held.segment, embedder.name)
        try:
            made = _in_portions(embedder, [held.texts[at] for at in open_])
            self._refuse_other_width(embedder, made)
        except HoldfastError as error:
            self._retry_at = _time.monotonic() + RETRY_S
            _log.warning("%d passages have no vectors yet: %s", len(open_), error)
            return held
        vectors, count = held.segment.vectors, held.segment.passages
        if vectors is not None and vectors.model == embedder.name:
            rows = vectors.rows.copy()
        else:
            rows = np.zeros((count, embedder.dimension), dtype="<f2")
        if len(open_):
            rows[open_] = made
        vectors = Vectors(embedder.name, rows, np.ones(count, dtype=bool))
        return HeldSegment(Segment(held.segment.arrays(), vectors), held.saved, None)

    def _refuse_other_width(self, embedder: Embeds, made: Array) -> None:
        if len(made) and self.dimension and made.shape[1] != self.dimension:
            raise Misconfigured(
                f"the vectors of {embedder.name} have {made.shape[1]} numbers, those in the index {self.dimension}; "
                "give the embedder another name and reembed"
            )

    def _pending(self) -> bool:
        embedder = self.embedder
        return embedder is not None and any(_lacks(held, embedder.name) for held in self._held)

    def _embed_pending(self, progress: Progress | None) -> None:
        """Make the vectors that a failing embedder, or none at all, left open."""
        changed = False
        embedder = self.embedder
        for at, held in enumerate(self._held):
            if embedder is None or not _lacks(held, embedder.name):
                continue
            texts = held.texts if held.texts is not None else texts_of(self._source, held.segment)
            new = self._with_vectors(HeldSegment(held.segment, held.saved, texts))
            if _lacks(new, embedder.name):
                break
            self._held[at], changed = new, True
            if progress is not None:
                progress(at + 1, len(self._held))
        if changed:
            self._corpus = None
            if any(held.saved is not None for held in self._held):
                self._save(self._held)

    # Another model

    def lacking(self, model: str) -> Lacking | None:
        """A saved segment that has no vectors of a model yet, or None when every one has."""
        with self._lock:
            self._settle()
            total = sum(held.segment.passages for held in self._held)
            done = 0
            for held in self._held:
                assert held.saved is not None
                if held.saved.whole.get(model, False):
                    done += held.segment.passages
            for held in self._held:
                assert held.saved is not None
                if not held.saved.whole.get(model, False):
                    return Lacking(held.saved.token, texts_of(self._source, held.segment), done, total)
            return None

    def give(self, token: str, vectors: Vectors) -> None:
        """Save vectors for a segment, unless it has been merged into another one meanwhile."""
        with self._lock:
            ops: list[Op] = []
            new = [
                held
                if held.saved is None or held.saved.token != token
                else HeldSegment(held.segment, self._depot.saving_vectors(held.saved, vectors, ops))
                for held in self._held
            ]
            segments = tuple(held.saved for held in new if held.saved is not None)
            if ops and self._committed(msgspec.structs.replace(self._depot.manifest, segments=segments), ops):
                self._held = new

    def use(self, model: str, dimension: int) -> bool:
        """Let recall use a model's vectors from now on, keep those it used until now, and drop any others.

        Return whether that was done: a segment that came to be meanwhile may lack them.
        """
        with self._lock:
            self._settle()
            manifest = self._depot.manifest
            if not all(saved.whole.get(model, False) for saved in manifest.segments):
                return False
            before = manifest.model if manifest.model != model else manifest.previous
            segments = tuple(saved.only((model, before)) for saved in manifest.segments)
            moved = msgspec.structs.replace(
                manifest, model=model, dimension=dimension, previous=before, segments=segments
            )
            done = self._committed(moved, [])
            self._forget()
            return done

    def previous(self) -> tuple[str, int] | None:
        """The model before, if its vectors are still here, and how many numbers they have."""
        with self._lock:
            self._load()
            model = self._depot.manifest.previous
            if model is None:
                return None
            with self._depot.read() as reading:
                widths = [
                    reading.width(saved, model) for saved in self._depot.manifest.segments if model in saved.vectors
                ]
            return model, widths[0] if widths else 0

    def go_back(self, model: str, dimension: int) -> None:
        """Use the vectors of the model before again; what came since gets them as it is recalled."""
        with self._lock:
            manifest = self._depot.manifest
            moved = msgspec.structs.replace(manifest, model=model, dimension=dimension, previous=manifest.model)
            self._committed(moved, [])
            self._forget()

    def _settle(self) -> None:
        """Have everything that there is in saved segments."""
        for _ in range(_TRIES):
            try:
                self._saving_on = self._may_wait = True
                self._save_again_at = 0.0
                self._current(None)
                if any(held.saved is None for held in self._held):
                    self._saved_as(tiered(self._held, SAVE_AT))
                return
            except Overtaken:
                self._forget()
        raise Conflict(f"other processes keep saving the index {self._depot}; try again")

    def _committed(self, manifest: IndexManifest, ops: Sequence[Op]) -> bool:
        try:
            self._depot.commit(manifest, ops)
        except Overtaken:
            self._forget()
            return False
        return True

    # Being tended

    def rebuild(self, progress: Progress | None = None) -> int:
        """Drop what is saved and rebuild it from the stored data; return how many rows there are."""
        with self._lock:
            self.discard()
            return self.corpus(progress).rows

    def purge(self) -> None:
        """Remove from the saved index what no longer exists. If that cannot be saved, nothing stays saved."""
        with self._lock:
            try:
                self._save_again_at = 0.0
                self.corpus()
            except HoldfastError as error:
                _log.warning("the index %s is dropped because it could not be cleaned: %s", self._depot, error)
                self._unclean = True
            if self._unclean:
                self.discard()
            else:
                self._depot.sweep()

    def discard(self) -> None:
        """Throw away what is saved and what is in memory."""
        with self._lock:
            self._depot.discard()
            self._forget()
            self._spare = {}
            self._unclean = False

    def problems(self) -> Iterator[str]:
        """Compare what is saved with the stored data, row by row, and report mismatches."""
        try:
            with self._depot.read() as reading:
                self._source.reaches()  # after the manifest: what that covers is known then
                for saved in self._depot.manifest.segments:
                    segment = reading.segment(saved, None)
                    for model in saved.vectors:
                        reading.vectors(saved, model, segment.passages)
                    if not agrees(self._source, segment):
                        yield "a part of it does not match the stored data"
        except (Corrupt, Unsupported) as error:
            yield str(error)

    # Being saved

    def _save_grown(self, reaches: Sequence[StreamRange]) -> None:
        """Save when the unsaved tail has grown, or when its vectors were dear."""
        tail = [held for held in self._held if held.saved is None]
        rows = sum(held.segment.rows for held in tail)
        embedder = self.embedder
        dear = embedder is not None and not embedder.local and bool(tail)
        if rows >= 8 * SAVE_AT:  # nobody has the time, and a new process would have to read it all
            self._saving_on = True
        if rows >= SAVE_AT or dear:
            self._save(tiered(self._without_outdated(reaches), SAVE_AT))

    def _without_outdated(self, reaches: Sequence[StreamRange]) -> list[HeldSegment]:
        """What is held, without older versions of files: none in what is not saved yet, and where they are the most.

        They are not shown in any case; a file that is written often must not let an index grow.
        """
        outdated = Outdated(reaches)
        if not outdated:
            return self._held
        kept = []
        for held in self._held:
            older = outdated.rows(held.segment)
            many = int(older.sum()) * 2 > held.segment.rows if held.saved is not None else bool(older.any())
            kept.append(HeldSegment(only(held.segment, ~older)) if many else held)
        return [held for held in kept if held.segment.rows]

    def _save(self, wanted: list[HeldSegment]) -> None:
        """Save these segments in place of what is saved. If that fails, reading continues without it."""
        if not self._saving_on or _time.monotonic() < self._save_again_at:
            return
        try:
            self._saved_as(wanted)
        except (Unavailable, TooLarge, Erased) as error:
            self._save_again_at = _time.monotonic() + RETRY_S
            _log.warning("the index %s could not be saved: %s", self._depot, error)

    def _saved_as(self, wanted: list[HeldSegment]) -> None:
        ops: list[Op] = []
        saved = [self._depot.saving(held.segment, held.saved, ops) for held in wanted]
        manifest, embedder = self._depot.manifest, self.embedder
        if embedder is not None and manifest.model is None:
            manifest = msgspec.structs.replace(manifest, model=embedder.name, dimension=embedder.dimension)
        self._depot.commit(msgspec.structs.replace(manifest, segments=tuple(saved)), ops)
        self._saves += 1
        self._unclean = False
        self._held = [HeldSegment(held.segment, now, held.texts) for held, now in zip(wanted, saved, strict=True)]

    # Being loaded

    def _load(self) -> None:
        """Read what is saved; if it is damaged, start over."""
        self._forget()
        self._loaded = True
        self._depot.look()
        try:
            with self._depot.read() as reading:
                manifest = self._depot.manifest
                spare, self._spare = self._spare, {}
                self._held = [
                    HeldSegment(
                        spare.get((saved.token, manifest.model, saved.digest))
                        or reading.segment(saved, manifest.model),
                        saved,
                    )
                    for saved in manifest.segments
                ]
        except (Corrupt, Unsupported) as error:
            _log.warning("the index %s is rebuilt: %s", self._depot, error)
            self._depot.discard()
            self._held = []
        for held in self._held:
            for stream, position in held.segment.reaches().items():
                self._reached[stream] = max(position, self._reached.get(stream, 0))

    def _forget(self) -> None:
        """Start over. What is saved does not change, so segments already read need not be read again."""
        self._depot.forget()
        for held in self._held:
            vectors, saved = held.segment.vectors, held.saved
            if saved is not None and (
                saved.whole.get(vectors.model, False) if vectors is not None else not saved.vectors
            ):
                self._spare[saved.token, None if vectors is None else vectors.model, saved.digest] = held.segment
        self._held, self._reached = [], {}
        self._shown = self._corpus = None
        self._loaded = False


def _remembers(segment: Segment, refs: Sequence[int]) -> Array:
    """Which rows are memories of these numbers, and not what happened to them."""
    kinds = segment.columns["kind"]
    found: Array = np.isin(segment.columns["ref"], refs) & (kinds >= MEMORY) & (kinds < CHANGE)
    return found


def _lacks(held: HeldSegment, model: str) -> bool:
    return bool(len(_open(held.segment, model)))


def _open(segment: Segment, model: str) -> Array:
    """The passages that have no vector of a model yet."""
    vectors = segment.vectors
    if vectors is None or vectors.model != model:
        return np.arange(segment.passages)
    return np.nonzero(~vectors.done)[0]


def _in_portions(embedder: Embeds, texts: list[str]) -> Array:
    made = [embedder.embed(texts[at : at + _PORTION]) for at in range(0, len(texts), _PORTION)]
    return np.concatenate(made) if made else np.zeros((0, 0), dtype=np.float32)
