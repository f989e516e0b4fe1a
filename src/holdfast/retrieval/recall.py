"""From a question to hits: ask the indexes, rank what they return, and read the texts from the stored data.

The text of a hit is always read from the stored data, so an index that lags behind an erasure can show nothing erased.
Deliberately absent: ranking (``retrieval``), and what is true (``memory``).
"""

from __future__ import annotations

import math
import time as _time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np

from holdfast import text
from holdfast.checks import check_choice, check_flag
from holdfast.clock import to_datetime, to_micros
from holdfast.engine.contract import Event, Mark, Record, Scope
from holdfast.errors import Corrupt, HoldfastError, Invalid, Unsupported, quoted
from holdfast.ids import check_id
from holdfast.ledger import log
from holdfast.ledger.core import Core, fetch, fetch_events
from holdfast.ledger.files import FILE, Within, here, text_of, to_file
from holdfast.ledger.speech import voice, voices
from holdfast.memory import superseding
from holdfast.memory.handle import NearFilters, Only
from holdfast.memory.metadata import UNNAMED, wanted_marks
from holdfast.memory.names import MEMORY, folded, memory_id, subject_of
from holdfast.memory.stored import to_memory
from holdfast.providers.reranker import Passage, Reranker
from holdfast.records import ENTRY_KINDS, MEMORY_KINDS, TRUST, Entry, File, Hit, Memory, Recalled, RecallReport
from holdfast.retrieval import disputes, question, reranking
from holdfast.retrieval import index as indexes
from holdfast.retrieval.candidates import ArrayCandidates, FindsCandidates
from holdfast.retrieval.corpus import Corpus, Rows
from holdfast.retrieval.documents import IndexScope
from holdfast.retrieval.index import Patience
from holdfast.retrieval.library import Indexes, filing, filing_places, places
from holdfast.retrieval.pipeline import OPTIONAL, Ranking, Stopwatch, nearest, search
from holdfast.retrieval.question import ParsedQuery, RecallQuery
from holdfast.retrieval.reranking import Judge
from holdfast.retrieval.segment import CODES, Array, grounded
from holdfast.retrieval.source import Embeds, StreamRange
from holdfast.retrieval.together import Part, agreed, left_out, ready
from holdfast.retrieval.wanted import wanted

MAX_HITS = 1_000
_MEANT = {
    "limit": "k", "top_k": "k", "n": "k", "tags": "tag", "kinds": "kind", "user": "store.memory(user=…)",
    "metadata": "where", "filter": "where", "filters": "where", "vector": "memory.nearest(vector)",
    **dict.fromkeys(
        ("min_score", "score_threshold", "threshold"),
        "nearest(vector, min_score=…), whose scores can be compared (here look at relevant and confidence)",
    ),
}  # fmt: skip
"""What people write for another word of ours."""
_SPARE = 5
_PATIENT_MS = 200
"""With less time than this, a recall waits neither for an embedder far away nor for an index to be saved."""
_LOADING_MS = 60
"""What the first reranking of a process takes: the model is loaded."""
_HOPED = 0.99
"""With each recall that has no time for it, reranking is thought to take less: once slow is not always slow."""


Looked = tuple[IndexScope, Callable[[StreamRange], bool]]
"""A place to look into, and what of it may be seen."""


class SearchableCorpus(NamedTuple):
    """All that a question may be answered from, the indexes that it is made of, and what is to be said."""

    corpus: Corpus
    parts: list[Part]
    notes: list[str]


class HitRow(NamedTuple):
    """What an index says of something that it found."""

    ref: int
    stream: int
    position: int
    time: int
    trust: int
    kind: int


class Read(NamedTuple):
    """What was read from ground for some rows."""

    memories: Mapping[str, Record]
    files: Mapping[str, Record]
    events: Mapping[Mark, Event]


class Recaller:
    """Answers recalls of any handle of one store."""

    def __init__(
        self,
        core: Core,
        indexes: Indexes,
        candidates: FindsCandidates = ArrayCandidates,
        reranker: Reranker | None = None,
    ) -> None:
        self._core, self.indexes, self._candidates, self._reranker = core, indexes, candidates, reranker
        self._resting: dict[str, float] = {}
        self._rerank_ms: float = _LOADING_MS

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
        asked = msgspec.structs.replace(asked, personal=scope.user is not None)
        run = Stopwatch(began, within_ms, without)
        seen = self._seen(scope, only.get("thread"), asked.kinds, _slow(within_ms))
        return self._answered(asked, seen, run, explain)

    def nearest(
        self, scope: Scope, vector: object, k: int, model: str | None, min_score: float | None, only: NearFilters
    ) -> Recalled:
        """See ``Memories.nearest``."""
        began = _time.perf_counter()
        if unknown := sorted(set(only) - NearFilters.__annotations__.keys()):
            known = ", ".join(sorted(NearFilters.__annotations__))
            raise Invalid(f"nearest has no filter {', '.join(unknown)}; it has {known}, and k, model and min_score")
        least = _least(min_score)
        memories: Only = {**only, "thread": None, "log": False, "files": False}
        asked = self._asked("", k, None, None, memories, folded(subject_of(scope)))
        refs, near = self.indexes.own_vectors.nearness(self.indexes.collections(scope), vector, model)
        seen = self._seen(scope, None, asked.kinds, Patience(0.0))
        asked = msgspec.structs.replace(asked, now=max(asked.now, seen.corpus.latest()))
        found = nearest(seen.corpus, asked, refs, near, least)
        ms = (_time.perf_counter() - began) * 1_000
        report = RecallReport("", seen.corpus.rows, found.candidates, ms, model or UNNAMED)
        hits = self._hits(seen.corpus, found, k, explain=False)
        return Recalled(hits, found.confidence, bool(hits), report)

    def search(self, within: Within, query: str, k: int, *, explain: bool, within_ms: float | None) -> Recalled:
        """See ``Folder.search``: a recall from some files of one owner alone."""
        began = _time.perf_counter()
        asked = self._asked(query, k, None, within_ms, {"tag": within.tag}, "")
        run = Stopwatch(began, within_ms, frozenset())
        under, among = within.under, within.among

        def sees(reach: StreamRange) -> bool:
            file = reach.file or ""
            return file.startswith(under) and (among is None or file in among)

        name = ("under", under, among)
        seen = self._looked_into([(filing(within.scope), sees)], None, name, _slow(within_ms))
        return self._answered(asked, seen, run, explain)

    def purge(self, scope: Scope) -> None:
        """Have nothing saved of files that are gone. What was never searched is not indexed only for that."""
        if any(place == filing(scope) for place in self.indexes.saved()):
            self.indexes.purge([scope])

    def forget(self) -> None:
        """Something was erased: nothing that was read of texts is kept."""
        self.indexes.own_vectors.forget()
        superseding.forget()

    def _answered(self, asked: RecallQuery, seen: SearchableCorpus, run: Stopwatch, explain: bool) -> Recalled:
        corpus, parts, notes = seen
        if asked.as_of is None:  # what was acknowledged is true now, whatever this clock says
            asked = msgspec.structs.replace(asked, now=max(asked.now, corpus.latest()))
        reading = question.telling(question.read(asked.text, asked.now), corpus)
        run.timed("catch up", run.began)
        vectors = self._vectors(question.without_names(reading, corpus), parts, run, notes)
        judge = self._judge(corpus, reading, asked.trust, run, notes)
        found = search(corpus, asked, reading, vectors, run, self._candidates, judge)
        if run.may("disputes"):
            start = _time.perf_counter()
            hits = self._hits(corpus, found, max(asked.k, disputes.LOOKED_AT), explain)
            hits = disputes.settled(hits, asked.text, asked.subject if asked.personal else None)[: asked.k]
            run.timed("disputes", start)
        else:
            hits = self._hits(corpus, found, asked.k, explain)
        report = RecallReport(
            query=asked.text,
            searched=corpus.rows,
            candidates=found.candidates,
            ms=(_time.perf_counter() - run.began) * 1_000,
            model=next(iter(vectors), None),
            stages=tuple(run.reports),
            pending=sum(part.index.pending(part.corpus) for part in parts),
            notes=tuple(dict.fromkeys(notes)),
        )
        return Recalled(hits, found.confidence, bool(hits) and found.relevant, report)

    # What is asked

    def _asked(
        self, query: str, k: int, as_of: datetime | None, within_ms: float | None, only: Only, subject: str
    ) -> RecallQuery:
        if not isinstance(query, str):
            raise Invalid(f"a query is text, not {type(query).__name__}")
        if type(k) is not int or not 1 <= k <= MAX_HITS:
            raise Invalid(f"k is a whole number from 1 to {MAX_HITS:,}, not {quoted(k)}")
        if within_ms is not None and not _positive(within_ms):
            raise Invalid(f"within_ms is a number of milliseconds over 0, not {quoted(within_ms)}")
        if unknown := set(only) - Only.__annotations__.keys():
            meant = [f"{_MEANT[name]}, not {name}" for name in sorted(unknown) if name in _MEANT]
            what = f"give {'; '.join(meant)}" if meant else f"recall has no filter {', '.join(sorted(unknown))}"
            raise Invalid(f"{what}; it has {', '.join(sorted(Only.__annotations__))}, and k")
        for what in ("log", "files"):
            check_flag(what, only.get(what, True))
        now = self._core.clock.now() if as_of is None else to_micros(as_of)
        return RecallQuery(
            text=query,
            k=k,
            now=now,
            as_of=None if as_of is None else now,
            kinds=_kinds(only.get("kind"), log=only.get("log", True), files=only.get("files", True)),
            marks=tuple(_marks(only)),
            since=None if only.get("since") is None else to_micros(only["since"]),  # type: ignore[arg-type]
            until=None if only.get("until") is None else to_micros(only["until"]),  # type: ignore[arg-type]
            trust=_trust(only.get("trust")),
            subject=subject,
        )

    # What there is

    def _seen(
        self, scope: Scope, thread: str | None, kinds: tuple[str, ...] | None, slow: Patience | None
    ) -> SearchableCorpus:
        """All that a handle may see: what was said and remembered, and files where there are any that may answer."""
        if thread is not None:
            check_id(thread, "thread id")
        name = (scope.agent, thread)
        seen = self._looked_into(places(scope), thread, name, slow)
        if thread is not None or (kinds is not None and FILE not in kinds) or not self.indexes.has_files(scope):
            return seen
        files = self._looked_into(filing_places(scope), None, name, slow)
        notes = list(dict.fromkeys([*seen.notes, *files.notes]))
        return SearchableCorpus(Corpus.of([seen.corpus, files.corpus]), [*seen.parts, *files.parts], notes)

    def _looked_into(
        self, places: Iterable[Looked], thread: str | None, name: object, slow: Patience | None
    ) -> SearchableCorpus:
        """``slow`` is None for a recall that waits for nothing."""
        found: list[Corpus] = []
        parts: list[Part] = []
        for place, sees in places:
            index = self.indexes.index(place)
            found.append(index.corpus(patient=slow is not None, slow=slow).seen(sees, thread, name))
            if found[-1].segments:
                parts.append(Part(index, found[-1]))
        notes = dict.fromkeys(note for part in parts for note in part.index.notes(part.corpus))
        return SearchableCorpus(Corpus.of(found), parts, list(notes))

    def _vectors(self, topic: str, parts: list[Part], run: Stopwatch, notes: list[str]) -> dict[str, Any]:
        """The query's vector by the best model of which every passage has its vector; what fails is left out, and said.

        Indexes that share no model are compared by a model each.
        """
        found: dict[str, Any] = {}
        if not any(part.index.usable.ranked for part in parts) or not run.may("embed"):
            return found
        start = _time.perf_counter()
        for embedders, some in agreed(parts):
            for embedder in embedders:
                vector = self._question(topic, embedder, some, notes) if ready(embedder, embedders, some) else None
                if vector is not None:
                    found[embedder.name] = vector
                    break
            if found and (better := left_out(embedders, some)):
                notes.append(f"not compared by {better}: an index that was looked into too is mostly in another script")
        run.timed("embed", start)
        return found

    def _judge(
        self, corpus: Corpus, reading: ParsedQuery, trust: int, run: Stopwatch, notes: list[str]
    ) -> Judge | None:
        """What asks the reranker of the first rows. Where it fails, that is said, and it is left alone for a while."""
        reranker, asks = self._reranker, reading.asks
        if reranker is None or text.in_another_script(asks) or not any(map(str.isalpha, asks)):
            return None

        def judge(rows: Rows) -> Array | None:
            if _time.monotonic() < self._resting.get(reranker.name, 0.0):
                notes.append("not reranked: the reranker failed a moment ago")
                return None
            if not len(rows):
                return None
            if not run.may(reranking.STAGE, self._rerank_ms):
                self._rerank_ms *= _HOPED
                return None
            start = _time.perf_counter()
            try:
                passages = self._passages(corpus, rows, trust)
                found = reranker.judge(asks, passages)
            except HoldfastError as error:
                self._resting[reranker.name] = _time.monotonic() + indexes.RETRY_S
                notes.append(f"not reranked: {error}")
                return None
            self._rerank_ms = (_time.perf_counter() - start) * 1_000
            run.timed(reranking.STAGE, start)
            best, thing = int(found[:, 1].argmax()), wanted(asks)
            lacking = np.zeros(len(found), dtype=np.float32)
            lacking[best] = thing is not None and bool(thing.missing) and not thing.is_in(passages[best].text)
            return np.column_stack([found, lacking])

        return judge

    def _passages(self, corpus: Corpus, rows: Rows, trust: int) -> list[Passage]:
        """The texts of some rows, and of the turns before them that are trusted so much, as a reranker reads them."""
        before = corpus.beside(rows, (-1,))[0]
        read = corpus.column("kind", rows) < CODES["semantic"]
        read &= corpus.column("trust", Rows(before.part, np.maximum(before.row, 0))) >= trust
        before = Rows(before.part, np.where(read, before.row, -1))
        asked = _hit_rows(corpus, rows) + _hit_rows(corpus, before.at(before.row >= 0))
        ground = self._read(corpus, asked)
        found = [self._passage(corpus, row, ground) for row in asked]
        turns = iter(found[len(rows) :])
        return [
            passage._replace(before=next(turns).text) if there else passage
            for passage, there in zip(found, (before.row >= 0).tolist(), strict=False)
        ]

    def _passage(self, corpus: Corpus, row: HitRow, read: Read) -> Passage:
        if row.ref or row.kind == CODES[FILE]:
            hit = self._hit(corpus, row, read, 0.0, {})
            topic = "" if hit is None or hit.memory is None else (hit.memory.key or "").replace("_", " ")
            return Passage(topic, "" if hit is None else hit.text)
        event = self._event(Mark(row.stream, row.position), read.events)
        for said in () if event is None else voices(event):
            if said.trust == TRUST[row.trust]:
                return Passage(said.speaker, said.text)
        return Passage("", "")

    def _question(self, topic: str, embedder: Embeds, parts: list[Part], notes: list[str]) -> Any:
        """A question's vector, or None and a note why there is none."""
        model = embedder.name
        if _time.monotonic() < self._resting.get(model, 0.0):
            notes.append(f"without vectors of {model}: the embedder failed a moment ago")
            return None
        try:
            vector = embedder.embed([topic])[0]
        except HoldfastError as error:
            self._resting[model] = _time.monotonic() + indexes.RETRY_S
            notes.append(f"without vectors of {model}: {error}")
            return None
        width = next((width for part in parts if (width := part.index.width(model))), len(vector))
        if len(vector) != width:
            notes.append(f"without vectors: those of {model} have {len(vector)} numbers, those in the index {width}")
            return None
        return vector

    # What is shown

    def _hits(self, corpus: Corpus, found: Ranking, k: int, explain: bool) -> tuple[Hit, ...]:
        rows = _hit_rows(corpus, found.rows)
        read = self._read(corpus, rows[: k + _SPARE])
        hits: list[Hit] = []
        for number, row in enumerate(rows):
            if len(hits) == k:
                break
            why = {name: round(float(values[number]), 4) for name, values in found.parts.items()} if explain else {}
            hit = self._hit(corpus, row, read, float(found.scores[number]), why)
            if hit is not None:
                hits.append(hit)
        return tuple(hits)

    def _hit(self, corpus: Corpus, row: HitRow, read: Read, score: float, why: dict[str, float]) -> Hit | None:
        """What a row shows, if it is still there."""
        if row.ref:
            memory = self._memory(memory_id(row.ref), read.memories)
            if memory is None:
                return None
            return Hit(memory.text, score, memory.kind, memory.valid_from, memory.trust, memory, why=why)
        trust = TRUST[row.trust]
        if row.kind == CODES[FILE]:
            file = self._file(corpus.file_of(row.stream), row, read)
            if file is None:
                return None
            return Hit(text_of(file.content), score, FILE, file.time, trust, why=why, file=file)
        entry = self._entry(corpus, Mark(row.stream, row.position), read.events)
        if entry is None:
            return None
        shown, said = voice(entry.kind, entry.content, trust).text, to_datetime(row.time)
        return Hit(shown, score, entry.kind, said, trust, entry=entry, why=why)

    def _read(self, corpus: Corpus, rows: Sequence[HitRow]) -> Read:
        """What the first rows are about, by few questions."""
        engine, tenant = self._core.engine, self._core.tenant
        memories = [memory_id(row.ref) for row in rows if row.ref]
        files = [id for row in rows if row.kind == CODES[FILE] and (id := corpus.file_of(row.stream)) is not None]
        marks = [Mark(row.stream, row.position) for row in rows if not row.ref]
        return Read(
            fetch(engine, tenant, MEMORY, memories),
            fetch(engine, tenant, FILE, files) if files else {},
            fetch_events(engine, tenant, marks),
        )

    def _file(self, id: str | None, row: HitRow, read: Read) -> File | None:
        """The version of a file that was found, if the file is still there."""
        record = None if id is None else read.files.get(id) or self._core.engine.get(self._core.tenant, FILE, id)
        if record is None or record.stream != row.stream:
            return None
        try:
            event = self._event(Mark(row.stream, row.position), read.events)
            return to_file(record, event) if event is not None and here(record, self._core.clock.now()) else None
        except (Corrupt, Unsupported):  # verify names it
            return None

    def _event(self, mark: Mark, fetched: Mapping[Mark, Event]) -> Event | None:
        return fetched.get(mark) or fetch_events(self._core.engine, self._core.tenant, [mark]).get(mark)

    def _memory(self, id: str, fetched: Mapping[str, Record]) -> Memory | None:
        record = fetched.get(id) or self._core.engine.get(self._core.tenant, MEMORY, id)
        try:
            memory = None if record is None else to_memory(record)
        except (Corrupt, Unsupported):  # verify names it
            return None
        return memory if memory is not None and memory.forgotten_at is None else None

    def _entry(self, corpus: Corpus, mark: Mark, fetched: Mapping[Mark, Event]) -> Entry | None:
        thread = corpus.thread_of(mark.stream, mark.position)
        event = self._event(mark, fetched)
        try:
            return log.to_entry(thread, event) if thread is not None and event is not None else None
        except (Corrupt, Unsupported):  # verify names it
            return None


def _hit_rows(corpus: Corpus, rows: Rows) -> list[HitRow]:
    values = {name: corpus.column(name, rows) for name in HitRow._fields}
    values["stream"] = grounded(values["stream"])
    columns = [value.tolist() for value in values.values()]
    return [HitRow(*values) for values in zip(*columns, strict=True)]


def _kinds(kind: str | Iterable[str] | None, *, log: bool, files: bool) -> tuple[str, ...] | None:
    known = (*MEMORY_KINDS, *ENTRY_KINDS, FILE)
    left_out = (() if log else ENTRY_KINDS) + (() if files else (FILE,))
    if kind is None and not left_out:
        return None
    kinds = known if kind is None else _several(kind, "kind")
    for one in kinds:
        check_choice("kind", one, known)
    return tuple(one for one in kinds if one not in left_out)


def _slow(within_ms: float | None) -> Patience | None:
    """How long a recall may make vectors of a slow model. One with little time waits for nothing."""
    if within_ms is None:
        return Patience(indexes.SLOW_S)
    return None if within_ms < _PATIENT_MS else Patience(min(indexes.SLOW_S, (within_ms - _PATIENT_MS) / 1_000))


def _marks(only: Only) -> Iterable[str]:
    for tag in _several(only.get("tag"), "tag"):
        yield f"tag:{check_id(tag, 'tag')}"
    for what in ("by", "channel", "tool"):
        if (value := only.get(what)) is not None:
            yield f"{what}:{check_id(value, what)}"
    if (type := only.get("type")) is not None:
        yield f"type:{check_id(type, 'type')}"
    yield from wanted_marks(only.get("where"))
    if (subject := only.get("subject")) is not None:
        yield f"subject:{folded(check_id(subject, 'subject'))}"


def _least(min_score: object) -> float:
    if min_score is None:
        return -math.inf
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not -1 <= min_score <= 1:
        raise Invalid(f"min_score is the least cosine, a number from -1 to 1, not {quoted(min_score)}")
    return float(min_score)


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9


def _several(value: str | Iterable[str] | None, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, str | Iterable):
        raise Invalid(f"{what} is a text or several, not {quoted(value)}")
    return (value,) if isinstance(value, str) else tuple(value)


def _trust(trust: str | None) -> int:
    if trust is None:
        return 0
    return TRUST.index(check_choice("trust", trust, TRUST))
