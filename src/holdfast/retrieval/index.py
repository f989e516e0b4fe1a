"""The index of one collection and the threads beside it: kept in memory, saved in parts, brought up to date by every
reader.

Writes do not touch it. A reader asks which streams are visible and how far they reach, reads what it has not
seen, and adds a segment; so whatever was acknowledged before a recall began is found by it, in whichever process.
Segments that have grown are saved; if another process saved first, its segments are taken over. What is
saved and does not match its digest is dropped and rebuilt.

Vectors are made by readers too. Where a slow model is wanted and a quick one can stand in for it, each reader makes as
many of the slow model's as it has time for, and all of the quick one's that are needed meanwhile. What a segment has by
either is kept, so nothing is lost whoever goes on, and a recall never compares the vectors of two.

Deliberately absent: ranking, what a document is made of (the source says), and threads of its own.
"""

from __future__ import annotations

import logging
import time as _time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

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
from holdfast.retrieval.index_store import IndexManifest, IndexStore, Overtaken, Saved, Stored
from holdfast.retrieval.segment import CHANGE, MEMORY, Array, Document, Segment, build, grounded, merge, only
from holdfast.retrieval.source import Embeds, Progress, Source, StreamRange, agrees, texts_of

SAVE_AT = 256
"""How many rows an unsaved tail may have: about what a new process reads again in twenty milliseconds."""
SLOW_S = 0.3
"""How long a recall may take to make vectors of a slow model, if nothing is said."""
MOST_LACKING = 50_000
"""Where more passages than this lack the slow model's vectors, the quick one's are used until somebody reembeds."""
_BRIDGED = 512
_DEAR = 16
_BATCH = 4_096
RETRY_S = 5.0
_TRIES = 8
_PORTION = 4_096
_SLOW_PORTION = 16
_TOGETHER = 500

_log = logging.getLogger(__name__)


class Usable(NamedTuple):
    """The embedders that an index works with, best first. The last is quick, or the only one; ``note`` is what a person
    should know about the choice."""

    ranked: tuple[Embeds, ...] = ()
    note: str | None = None


class Embedders(Protocol):
    """Says what an index may use, by what it records and by whether most of it is in Latin script."""

    def __call__(self, manifest: IndexManifest, *, latin: bool) -> Usable: ...


def _no_embedders(manifest: IndexManifest, *, latin: bool) -> Usable:
    return Usable()


class Patience:
    """How many seconds one recall may still spend on vectors of a slow model, in all the indexes it looks into."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds


class Lacking(NamedTuple):
    """Passages of a saved segment that have no vector of a model, their texts, and how much is done in all."""

    token: str
    passages: Array
    texts: list[str]
    done: int
    total: int


class Index:
    """What is known of one place, ready to be searched."""

    def __init__(self, depot: IndexStore, source: Source, embedders: Embedders = _no_embedders) -> None:
        self._depot, self._source, self._embedders = depot, source, embedders
        self._lock = atfork.lock(forget=self._forget)
        self._making = atfork.lock()  # held by whoever makes slow vectors, while nobody has to wait
        self._made = False  # vectors that may have to be saved
        self._held: list[HeldSegment] = []
        self._reached: dict[int, int] = {}
        self._loaded = False
        self._shown: Sequence[StreamRange] | None = None
        self._corpus: Corpus | None = None
        self._save_again_at = 0.0
        self._resting: dict[str, float] = {}
        self._asked_for: set[str] = set()
        self._troubles: dict[str, str] = {}
        self._saving_on = self._may_wait = True
        self._saves = 0
        self._spare: dict[str, HeldSegment] = {}
        self._unclean = False  # what is saved knows something that is gone

    # Being read

    def corpus(self, progress: Progress | None = None, *, patient: bool = True, slow: Patience | None = None) -> Corpus:
        """Everything acknowledged so far, as one thing to search.

        Without ``patient`` it waits neither for a slow embedder nor for saving; others do that later.
        """
        slow = Patience(SLOW_S if patient else 0.0) if slow is None else slow
        found = self._read(progress, patient=patient, slowly=slow.left > 0)
        if found is None:
            self._make_slowly(slow)
            found = self._read(progress, patient=patient, slowly=False)
            assert found is not None
        return found

    def _read(self, progress: Progress | None, *, patient: bool, slowly: bool) -> Corpus | None:
        """What there is; None where vectors of the slow model should be made first, and ``slowly`` allows it."""
        with self._lock:
            for attempt in range(_TRIES):
                try:
                    self._saving_on = patient and attempt < _TRIES - 1
                    return self._current(progress, patient=patient, slowly=slowly)
                except Overtaken:
                    self._forget()
                except BaseException:  # also a signal: what is in memory may be half of something
                    self._forget()
                    raise
            raise AssertionError("the last attempt saves nothing, so it cannot conflict")

    def _current(self, progress: Progress | None, *, patient: bool, slowly: bool) -> Corpus | None:
        if not self._loaded:
            self._load()
        self._may_wait = patient
        for _ in range(_TRIES):
            reaches = self._source.reaches()
            if reaches is self._shown:
                break
            self._depot.look()
            reaches = self._source.reaches()  # again: what was erased before the look is not among them
            saves = self._saves
            self._catch_up(reaches, progress)
            self._shown, self._corpus = reaches, None
            if saves == self._saves:  # what was saved must not know more than there is: then look once more
                break
        assert self._shown is not None
        if slowly and self._awaits_slow():
            return None
        self._top_up(self._shown)
        segments = [held.segment for held in self._held]
        if self._corpus is None or self._corpus.segments != segments:
            self._corpus = Corpus(segments, self._shown)
        return self._corpus

    @property
    def passages(self) -> int:
        """How many passages are held in memory."""
        return sum(held.segment.passages for held in self._held)

    @property
    def usable(self) -> Usable:
        """What makes the vectors that a recall may compare."""
        return self._embedders(self._depot.manifest, latin=self._latin())

    @property
    def latin(self) -> bool:
        """Whether most of what there is is in Latin script."""
        with self._lock:
            self.corpus(slow=Patience(0.0))
            return self._latin()

    def _latin(self) -> bool:
        scripts = [held.segment.scripts for held in self._held]
        return 2 * sum(other for _, other in scripts) <= sum(all_ for all_, _ in scripts)

    def _catch_up(self, reaches: Sequence[StreamRange], progress: Progress | None) -> None:
        self._drop_hidden(reaches)
        behind = self._behind(reaches)
        total, done = sum(part.upto - part.after for part in behind), 0
        batch: list[Document] = []
        for number, part in enumerate(behind):
            if number % _TOGETHER == 0:
                self._source.ahead(behind[number : number + _TOGETHER])
            for document in self._source.documents(part.stream, part.after, part.upto):
                if len(batch) >= _BATCH and document.stream >= 0:  # all that one event says is saved together
                    done += len(batch)
                    self._add(batch)
                    batch = []
                    self._save_grown(reaches)
                    if progress is not None:
                        progress(min(done, total), total)
                batch.append(document)
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
        ranked = self.usable.ranked
        if ranked and (len(ranked) == 1 or len(texts) > _BRIDGED):  # of few, the slow model's vectors may be made soon
            self._make(ranked[-1], [segment], texts=texts)
        held = HeldSegment(segment)
        while self._held and joins(self._held[-1], held, _BATCH):
            other = self._held.pop()
            joined = merge([other.segment, held.segment])
            held = HeldSegment(joined)
        self._held.append(held)
        erased = [document.ref for document in batch if document.kind == "erase"]
        if erased:
            self._keep(lambda segment: ~_remembers(segment, erased))

    # Vectors

    def _awaits_slow(self) -> bool:
        """Whether vectors of the slow model are missing that a recall may make."""
        ranked, segments = self.usable.ranked, [held.segment for held in self._held]
        return len(ranked) > 1 and 0 < _lacking(segments, ranked[0].name) <= MOST_LACKING

    def _make_slowly(self, slow: Patience) -> None:
        """Make some vectors of the slow model. One recall at a time does so, and none has to wait for it."""
        if not self._making.acquire(blocking=False):
            return
        try:
            with self._lock:
                ranked, segments = self.usable.ranked, [held.segment for held in self._held]
            self._make(ranked[0], segments, slow)
        finally:
            self._making.release()

    def _top_up(self, reaches: Sequence[StreamRange]) -> None:
        """Make the vectors that are missing and that every recall waits for, and save what was dear."""
        ranked, segments = self.usable.ranked, [held.segment for held in self._held]
        if ranked and (len(ranked) == 1 or not _bridged(segments, ranked)):
            self._make(ranked[-1], segments)
        if self._made and self._worth_saving(ranked):
            self._save(tiered(self._without_outdated(reaches), SAVE_AT))

    def _make(
        self,
        embedder: Embeds,
        segments: Sequence[Segment],
        slow: Patience | None = None,
        texts: list[str] | None = None,
    ) -> None:
        """Give passages their vectors: all that lack one, or as many as there is time for."""
        name = embedder.name
        if _time.monotonic() < self._resting.get(name, 0.0) or not (embedder.local or self._may_wait):
            return
        try:
            for segment in segments:
                self._fill(embedder, segment, slow, texts)
        except HoldfastError as error:
            self._resting[name], self._troubles[name] = _time.monotonic() + RETRY_S, str(error)
            _log.warning("passages have no vectors by %s yet: %s", name, error)

    def _fill(self, embedder: Embeds, segment: Segment, slow: Patience | None, texts: list[str] | None) -> None:
        """Make vectors of one segment, and add them at once, however few: every addition copies all of them."""
        open_, portion = segment.lacking(embedder.name), _PORTION if slow is None else _SLOW_PORTION
        made: list[Array] = []
        try:
            for start in range(0, len(open_), portion):
                if slow is not None and slow.left <= 0:
                    break
                some, began = open_[start : start + portion], _time.monotonic()
                with self._lock:
                    read = texts_of(self._source, segment, some) if texts is None else [texts[at] for at in some]
                if slow is not None:
                    slow.left -= _time.monotonic() - began
                made.append(self._embed(embedder, read, slow))
        finally:
            if made:
                rows = np.concatenate(made)
                with self._lock:
                    segment.add(embedder.name, open_[: len(rows)], rows)
                    self._made = True

    def _embed(self, embedder: Embeds, texts: list[str], slow: Patience | None) -> Array:
        width = embedder.dimension  # asked for before the clock runs: a model is loaded once
        began = _time.monotonic()
        made = embedder.embed(texts)
        if slow is not None:
            slow.left -= _time.monotonic() - began
        self._refuse_other_width(embedder.name, width)
        self._troubles.pop(embedder.name, None)
        return made

    def _refuse_other_width(self, model: str, width: int) -> None:
        known = self.width(model)
        if known not in {0, width}:
            raise Misconfigured(
                f"the vectors of {model} have {width} numbers, those in the index {known}; "
                "give the embedder another name and reembed"
            )

    def width(self, model: str) -> int:
        """How many numbers the vectors of a model have that are here; 0 when there are none."""
        held = (held.segment.vectors[model] for held in self._held if model in held.segment.vectors)
        found: int = next((vectors.rows.shape[1] for vectors in held), 0)
        return found

    def bridge(self, corpus: Corpus, embedder: Embeds) -> None:
        """Make all the quick model's vectors of a corpus: where the better ones cannot be used after all."""
        with self._lock:
            if len(ranked := self.usable.ranked) > 1 and embedder is ranked[-1]:
                self._make(embedder, corpus.segments)

    def notes(self, corpus: Corpus) -> Iterator[str]:
        """What a person should know of the vectors of a corpus."""
        if (note := self.usable.note) is not None:
            yield note
        for model, error in list(self._troubles.items()):
            if _lacking(corpus.segments, model):
                yield f"without vectors of {model}: {error}"

    def pending(self, corpus: Corpus) -> int:
        """How many passages of a corpus still lack a vector of the model that recall uses or is moving to."""
        ranked = self.usable.ranked
        lacking = [_lacking(corpus.segments, embedder.name) for embedder in ranked]
        return next((count for count in lacking if count <= MOST_LACKING), lacking[-1]) if lacking else 0

    def _worth_saving(self, ranked: Sequence[Embeds]) -> bool:
        """Whether vectors are not saved that belong to a saved segment, or took long to make."""
        dear = {embedder.name for embedder in ranked[:1] if len(ranked) > 1 or not embedder.local}
        limit = _DEAR if ranked[0].local else 1
        unsaved = 0
        for held in self._held:
            for model, vectors in held.segment.vectors.items():
                new = int((vectors.done & ~vectors.kept).sum())
                unsaved += limit if new and held.saved is not None else new if model in dear else 0
        return unsaved >= limit

    # Another model

    def lacking(self, model: str, most: int) -> Lacking | None:
        """Some passages that have no vector of a model yet, or None when every one has."""
        with self._lock:
            if model not in self._asked_for:  # from now on, what is saved of it is loaded too
                self._asked_for.add(model)
                self._forget()
            self._settle()
            segments = [held.segment for held in self._held]
            total = sum(segment.passages for segment in segments)
            done = total - _lacking(segments, model)
            for held in self._held:
                assert held.saved is not None
                if len(open_ := held.segment.lacking(model)[:most]):
                    return Lacking(held.saved.token, open_, texts_of(self._source, held.segment, open_), done, total)
            return None

    def give(self, todo: Lacking, model: str, rows: Array) -> None:
        """Save vectors for passages, unless their segment has been merged into another one meanwhile."""
        with self._lock:
            for held in self._held:
                if held.saved is not None and held.saved.token == todo.token:
                    self._refuse_other_width(model, rows.shape[1])
                    held.segment.add(model, todo.passages, rows)
                    try:
                        self._saved_as(self._held)
                    except Overtaken:
                        self._forget()
                    return

    def use(self, model: str, *, chosen: bool) -> bool:
        """Let recall use a model's vectors from now on, keep those it used until now, and drop any others.

        Return whether that was done: a segment that came to be meanwhile may lack them.
        """
        with self._lock:
            self._settle()
            manifest = self._depot.manifest
            if not manifest.whole(model):
                return False
            before = manifest.model if manifest.model != model else manifest.previous
            keep = {model, before, *(embedder.name for embedder in self.usable.ranked)}
            segments = tuple(saved.only(keep) for saved in manifest.segments)
            return self._recorded(model=model, chosen=chosen, previous=before, segments=segments)

    @property
    def previous(self) -> str | None:
        """The model before, if its vectors are still here."""
        with self._lock:
            self._load()
            return self._depot.manifest.previous

    def go_back(self, model: str) -> None:
        """Use the vectors of the model before again; what came since gets them as it is recalled."""
        with self._lock:
            self._recorded(model=model, chosen=True, previous=self._depot.manifest.model)

    def _recorded(self, **changes: Any) -> bool:
        try:
            self._depot.commit(msgspec.structs.replace(self._depot.manifest, **changes), [])
        except Overtaken:
            return False
        finally:
            self._forget()
        return True

    def _settle(self) -> None:
        """Have everything that there is in saved segments."""
        for _ in range(_TRIES):
            try:
                self._saving_on, self._save_again_at = True, 0.0
                self._current(None, patient=True, slowly=False)
                if any(held.saved is None for held in self._held):
                    self._saved_as(tiered(self._held, SAVE_AT))
                return
            except Overtaken:
                self._forget()
        raise Conflict(f"other processes keep saving the index {self._depot}; try again")

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
                self.corpus(slow=Patience(0.0))
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
                    segment = reading.segment(saved)
                    for model in saved.vectors:
                        reading.vectors(saved, model)
                    if not agrees(self._source, segment):
                        yield "a part of it does not match the stored data"
        except (Corrupt, Unsupported) as error:
            yield str(error)

    # Being saved

    def _save_grown(self, reaches: Sequence[StreamRange]) -> None:
        """Save when the unsaved tail has grown, or when its vectors were dear."""
        tail = [held for held in self._held if held.saved is None]
        rows = sum(held.segment.rows for held in tail)
        ranked = self.usable.ranked
        dear = bool(ranked) and not ranked[0].local and bool(tail)
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
        manifest = self._named([held.segment for held in wanted])
        self._depot.commit(msgspec.structs.replace(manifest, segments=tuple(saved)), ops)
        self._saves += 1
        self._unclean = False
        self._held = [HeldSegment(held.segment, now) for held, now in zip(wanted, saved, strict=True)]
        self._made = False
        for held in wanted:
            for vectors in held.segment.vectors.values():
                vectors.kept = vectors.done

    def _named(self, segments: Sequence[Segment]) -> IndexManifest:
        """The manifest with the model that recall uses: the better one as soon as every passage has its vector."""
        manifest, ranked = self._depot.manifest, self.usable.ranked
        if ranked and manifest.model is None:
            manifest = msgspec.structs.replace(manifest, model=ranked[-1].name)
        if len(ranked) > 1 and manifest.model != ranked[0].name and not _lacking(segments, ranked[0].name):
            manifest = msgspec.structs.replace(manifest, model=ranked[0].name, previous=manifest.model)
        return manifest

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
                found = [_same(saved, spare.get(saved.token)) for saved in manifest.segments]
                self._held = [
                    HeldSegment(known.segment if known else reading.segment(saved), saved)
                    for saved, known in zip(manifest.segments, found, strict=True)
                ]
                models = {manifest.model, *self._asked_for, *(embedder.name for embedder in self.usable.ranked)}
                for held, known in zip(self._held, found, strict=True):
                    _read_vectors(reading, held, models, known)
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
        self._spare.update((held.saved.token, held) for held in self._held if held.saved is not None)
        self._held, self._reached = [], {}
        self._shown = self._corpus = None
        self._loaded = False


def _remembers(segment: Segment, refs: Sequence[int]) -> Array:
    """Which rows are memories of these numbers, and not what happened to them."""
    kinds = segment.columns["kind"]
    found: Array = np.isin(segment.columns["ref"], refs) & (kinds >= MEMORY) & (kinds < CHANGE)
    return found


def _lacking(segments: Iterable[Segment], model: str) -> int:
    """How many passages have no vector of a model yet."""
    return sum(len(segment.lacking(model)) for segment in segments if not segment.whole(model))


def _bridged(segments: Sequence[Segment], ranked: Sequence[Embeds]) -> bool:
    """Whether a recall can do without more vectors of the quick model, and their number is not growing without end."""
    return not _lacking(segments, ranked[0].name) and _lacking(segments, ranked[-1].name) <= _BRIDGED


def _same(saved: Saved, spare: HeldSegment | None) -> HeldSegment | None:
    """What was in memory of a segment, if that is still what is saved."""
    return spare if spare and spare.saved and spare.saved.digest == saved.digest else None


def _read_vectors(reading: Stored, held: HeldSegment, models: Iterable[str | None], known: HeldSegment | None) -> None:
    """Read a segment's vectors by some models. What was in memory is used as far as it is the same, and so are vectors
    that were made and could not be saved."""
    segment, saved = held.segment, held.saved
    assert saved is not None
    for model in saved.vectors.keys() & set(models):
        mine = segment.vectors.get(model)
        if mine and known and known.saved and known.saved.vectors.get(model) == saved.vectors[model]:
            continue
        segment.vectors[model] = reading.vectors(saved, model)
        if mine and mine.rows.shape[1] == segment.vectors[model].rows.shape[1]:
            more = np.nonzero(mine.done & ~segment.vectors[model].done)[0]
            if len(more):
                segment.add(model, more, mine.rows[more])
