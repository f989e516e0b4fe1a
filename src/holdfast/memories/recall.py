"""From a question to hits: ask the indexes, rank what they give, and read the texts from ground.

What a hit shows is always read from ground, so an index that is behind an erasure can show nothing that is gone.
Deliberately absent: ranking (``retrieval``), and what is true (``memory``).
"""

from __future__ import annotations

import time as _time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.contract import Event, Mark, Record, Scope
from holdfast.errors import Corrupt, HoldfastError, Invalid, Unsupported
from holdfast.ids import check_id
from holdfast.ledger import log
from holdfast.ledger.core import Core, fetch, fetch_events
from holdfast.ledger.said import spoken
from holdfast.memories.handle import Only
from holdfast.memories.library import Library, places
from holdfast.memory.conflicts import contradictions
from holdfast.memory.names import MEMORY, folded, memory_id, subject_of
from holdfast.memory.stored import to_memory
from holdfast.records import ENTRY_KINDS, MEMORY_KINDS, TRUST, Entry, Hit, Memory, Recalled, RecallReport
from holdfast.retrieval import asking
from holdfast.retrieval import index as indexes
from holdfast.retrieval.asking import Asked
from holdfast.retrieval.corpus import Corpus
from holdfast.retrieval.pipeline import OPTIONAL, Found, Stopwatch, search

MOST = 1_000
_FIRST = 10
_SPARE = 5
_PATIENT_MS = 200
"""With less time than this, a recall waits neither for an embedder far away nor for an index to be saved."""


class Recaller:
    """Answers recalls of any handle of one store."""

    def __init__(self, core: Core, library: Library) -> None:
        self._core, self.library = core, library
        self._resting: dict[str, float] = {}

    def recall(
        self,
        scope: Scope,
        query: str,
        k: int,
        as_of: datetime | None,
        explain: bool,
        within_ms: float | None,
        only: Only,
        without: frozenset[str] = frozenset(),
    ) -> Recalled:
        """See ``Memories.recall``. ``without`` names stages to leave out, to see what they are worth."""
        if unknown := sorted(map(str, without.difference(OPTIONAL))):
            raise Invalid(f"there is no stage {', '.join(unknown)} to leave out; there are {', '.join(OPTIONAL)}")
        began = _time.perf_counter()
        asked = self._asked(query, k, as_of, within_ms, only, folded(subject_of(scope)))
        corpus, models, notes = self._corpus(
            scope, only.get("thread"), patient=within_ms is None or within_ms >= _PATIENT_MS
        )
        if as_of is None:  # what was acknowledged is true now, whatever this clock says
            asked = msgspec.structs.replace(asked, now=max(asked.now, corpus.latest()))
        reading = asking.read(query, asked.now)
        run = Stopwatch(began, within_ms, without)
        run.timed("catch up", began)
        vectors = self._vectors(asking.without_names(reading, corpus), models, run, notes)
        found = search(corpus, asked, reading, vectors, run)
        hits = self._hits(corpus, found, k, explain)
        if run.may("disputes"):
            start = _time.perf_counter()
            hits = disputed(hits)
            run.timed("disputes", start)
        report = RecallReport(
            query=query,
            searched=corpus.rows,
            candidates=found.candidates,
            ms=(_time.perf_counter() - began) * 1_000,
            model=next(iter(vectors), None),
            stages=tuple(run.reports),
            pending=_pending(corpus, models),
            notes=tuple(notes),
        )
        return Recalled(hits, found.confidence, bool(hits) and found.relevant, report)

    # What is asked

    def _asked(
        self, query: str, k: int, as_of: datetime | None, within_ms: float | None, only: Only, subject: str
    ) -> Asked:
        if not isinstance(query, str):
            raise Invalid(f"a query is text, not {type(query).__name__}")
        if type(k) is not int or not 1 <= k <= MOST:
            raise Invalid(f"k is a whole number from 1 to {MOST:,}, not {k!r}")
        if within_ms is not None and not _positive(within_ms):
            raise Invalid(f"within_ms is a number of milliseconds over 0, not {within_ms!r}")
        if unknown := set(only) - Only.__annotations__.keys():
            raise Invalid(f"recall has no filter {', '.join(sorted(unknown))}")
        now = self._core.clock.now() if as_of is None else to_micros(as_of)
        return Asked(
            text=query,
            k=k,
            now=now,
            as_of=None if as_of is None else now,
            kinds=_kinds(only.get("kind"), only.get("log") is not False),
            marks=tuple(_marks(only)),
            since=None if only.get("since") is None else to_micros(only["since"]),  # type: ignore[arg-type]
            until=None if only.get("until") is None else to_micros(only["until"]),  # type: ignore[arg-type]
            trust=_trust(only.get("trust")),
            subject=subject,
        )

    # What there is

    def _corpus(self, scope: Scope, thread: str | None, *, patient: bool) -> tuple[Corpus, dict[str, int], list[str]]:
        """All that a handle may see, the models of its vectors and how long those are, and what is to be said."""
        if thread is not None:
            check_id(thread, "thread id")
        found: list[Corpus] = []
        models: dict[str, int] = {}
        notes: list[str] = []
        for place, sees in places(scope):
            index = self.library.index(place)
            found.append(index.corpus(patient=patient).seen(sees, thread, (scope.agent, thread)))
            embedder, recorded = index.embedder, index.model
            if embedder is not None and found[-1].segments:
                models.setdefault(embedder.name, index.dimension)
            if embedder is None and recorded is not None and found[-1].segments:
                notes.append(f"by words alone: the vectors are of {recorded}, and this store was not opened with it")
        return Corpus.of(found), models, notes

    def _vectors(self, topic: str, models: dict[str, int], run: Stopwatch, notes: list[str]) -> dict[str, Any]:
        """The query's vector by each model that an index uses; what fails is left out, and said."""
        found: dict[str, Any] = {}
        if not models or not run.may("embed"):
            return found
        start = _time.perf_counter()
        for model, width in models.items():
            embedder = self.library.embedder(model)
            if embedder is None or _time.monotonic() < self._resting.get(model, 0.0):
                notes.append("without vectors: the embedder failed a moment ago")
                continue
            try:
                vector = embedder.embed([topic])[0]
            except HoldfastError as error:
                self._resting[model] = _time.monotonic() + indexes.RETRY_S
                notes.append(f"without vectors: {error}")
                continue
            if width and len(vector) != width:
                notes.append(
                    f"without vectors: those of {model} have {len(vector)} numbers, those in the index {width}"
                )
                continue
            found[model] = vector
        run.timed("embed", start)
        return found

    # What is shown

    def _hits(self, corpus: Corpus, found: Found, k: int, explain: bool) -> tuple[Hit, ...]:
        columns = [corpus.column(name, found.rows).tolist() for name in ("ref", "stream", "position", "time", "trust")]
        wanted = [memory_id(ref) for ref in columns[0][: k + _SPARE] if ref]
        memories = fetch(self._core.engine, self._core.tenant, MEMORY, wanted)
        first = list(zip(*columns, strict=True))[: k + _SPARE]
        marks = [Mark(stream, position) for ref, stream, position, *_ in first if not ref]
        events = fetch_events(self._core.engine, self._core.tenant, marks)
        hits: list[Hit] = []
        for number, (ref, stream, position, time, trust) in enumerate(zip(*columns, strict=True)):
            if len(hits) == k:
                break
            score = float(found.scores[number])
            why = {name: round(float(values[number]), 4) for name, values in found.parts.items()} if explain else {}
            if ref:
                memory = self._memory(memory_id(ref), memories)
                if memory is not None:
                    hits.append(Hit(memory.text, score, memory.kind, memory.valid_from, memory.trust, memory, why=why))
                continue
            entry = self._entry(corpus, Mark(stream, position), events)
            if entry is not None:
                shown, said = spoken(entry.kind, entry.content), to_datetime(time)
                hits.append(Hit(shown, score, entry.kind, said, TRUST[trust], entry=entry, why=why))
        return tuple(hits)

    def _memory(self, id: str, fetched: Mapping[str, Record]) -> Memory | None:
        record = fetched.get(id) or self._core.engine.get(self._core.tenant, MEMORY, id)
        try:
            memory = None if record is None else to_memory(record)
        except (Corrupt, Unsupported):  # verify names it
            return None
        return memory if memory is not None and memory.forgotten_at is None else None

    def _entry(self, corpus: Corpus, mark: Mark, fetched: Mapping[Mark, Event]) -> Entry | None:
        thread = corpus.thread_of(mark.stream, mark.position)
        event = fetched.get(mark)
        if event is None:
            event = fetch_events(self._core.engine, self._core.tenant, [mark]).get(mark)
        try:
            return log.to_entry(thread, event) if thread is not None and event is not None else None
        except (Corrupt, Unsupported):  # verify names it
            return None


def disputed(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Hits of which each names the others that say otherwise."""
    known = [hit.memory for hit in hits if hit.memory is not None and hit.memory.key is None]
    memories = known[:_FIRST]
    against: dict[str, list[str]] = {}
    if len(memories) > 1:
        for pair in contradictions(memories):
            against.setdefault(pair.first.id, []).append(pair.second.id)
            against.setdefault(pair.second.id, []).append(pair.first.id)
    if not against:
        return hits
    return tuple(msgspec.structs.replace(hit, disputed_by=tuple(against.get(hit.id, ()))) for hit in hits)


def _kinds(kind: str | Iterable[str] | None, with_log: bool) -> tuple[str, ...] | None:
    if kind is None:
        return None if with_log else MEMORY_KINDS
    kinds = _several(kind, "kind")
    known = (*MEMORY_KINDS, *ENTRY_KINDS)
    for one in kinds:
        if one not in known:
            raise Invalid(f"kind must be one of {', '.join(known)}, not {one!r}")
    return kinds if with_log else tuple(one for one in kinds if one in MEMORY_KINDS)


def _marks(only: Only) -> Iterable[str]:
    for tag in _several(only.get("tag"), "tag"):
        yield f"tag:{check_id(tag, 'tag')}"
    for what in ("by", "channel", "tool"):
        if (value := only.get(what)) is not None:
            yield f"{what}:{check_id(value, what)}"
    if (subject := only.get("subject")) is not None:
        yield f"subject:{folded(check_id(subject, 'subject'))}"


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9


def _several(value: str | Iterable[str] | None, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, str | Iterable):
        raise Invalid(f"{what} is a text or several, not {value!r}")
    return (value,) if isinstance(value, str) else tuple(value)


def _trust(trust: str | None) -> int:
    if trust is None:
        return 0
    if trust not in TRUST:
        raise Invalid(f"trust must be {', '.join(TRUST[:-1])} or {TRUST[-1]}, not {trust!r}")
    return TRUST.index(trust)


def _pending(corpus: Corpus, models: dict[str, int]) -> int:
    if not models:
        return 0
    return sum(
        segment.passages
        if segment.vectors is None or segment.vectors.model not in models
        else int((~segment.vectors.done).sum())
        for segment in corpus.segments
    )
