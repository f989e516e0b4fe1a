"""From a question to hits: ask the indexes, rank what they give, and read the texts from ground.

What a hit shows is always read from ground, so an index that is behind an erasure can show nothing that is gone.
Deliberately absent: ranking (``retrieval``), and what is true (``memory``).
"""

from __future__ import annotations

import time as _time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.contract import Mark, Scope
from holdfast.errors import HoldfastError, Invalid
from holdfast.ids import check_id
from holdfast.ledger import log
from holdfast.ledger.core import Core
from holdfast.memories.entries import spoken
from holdfast.memories.handle import Only
from holdfast.memories.library import Library, places
from holdfast.memory.names import MEMORY, folded, memory_id
from holdfast.memory.stored import to_memory
from holdfast.records import ENTRY_KINDS, MEMORY_KINDS, TRUST, Entry, Hit, Memory, Recalled, RecallReport
from holdfast.retrieval import asking
from holdfast.retrieval.asking import Asked
from holdfast.retrieval.corpus import Corpus
from holdfast.retrieval.pipeline import Found, search

MOST = 1_000


class Recaller:
    """Answers recalls of any handle of one store."""

    def __init__(self, core: Core, library: Library) -> None:
        self._core, self.library = core, library
        self.without: frozenset[str] = frozenset()

    def recall(
        self,
        scope: Scope,
        query: str,
        k: int,
        as_of: datetime | None,
        explain: bool,
        within_ms: float | None,
        only: Only,
    ) -> Recalled:
        began = _time.perf_counter()
        asked = self._asked(query, k, as_of, within_ms, only)
        corpus, models = self._corpus(scope, only.get("thread"))
        reading = asking.read(query, asked.now)
        vectors, failed = self._vectors(asking.without_names(reading, corpus), models)
        found = search(corpus, asked, reading, vectors, began, self.without)
        notes = (*found.notes, *failed)
        hits = self._hits(corpus, found, k, explain)
        report = RecallReport(
            query=query,
            searched=corpus.rows,
            candidates=found.candidates,
            ms=(_time.perf_counter() - began) * 1_000,
            model=next(iter(vectors), None),
            stages=tuple(found.stages),
            pending=_pending(corpus, models),
            notes=notes,
        )
        return Recalled(hits, found.confidence, bool(hits) and found.relevant, report)

    # What is asked

    def _asked(self, query: str, k: int, as_of: datetime | None, within_ms: float | None, only: Only) -> Asked:
        if not isinstance(query, str):
            raise Invalid(f"a query is text, not {type(query).__name__}")
        if type(k) is not int or not 1 <= k <= MOST:
            raise Invalid(f"k is a whole number from 1 to {MOST:,}, not {k!r}")
        if within_ms is not None and not (isinstance(within_ms, int | float) and within_ms > 0):
            raise Invalid(f"within_ms is a number of milliseconds over 0, not {within_ms!r}")
        if unknown := set(only) - Only.__annotations__.keys():
            raise Invalid(f"recall has no filter {', '.join(sorted(unknown))}")
        now = self._core.clock.now() if as_of is None else to_micros(as_of)
        return Asked(
            text=query,
            k=k,
            now=now,
            as_of=None if as_of is None else now,
            within_ms=within_ms,
            kinds=_kinds(only.get("kind"), only.get("log", True)),
            marks=tuple(_marks(only)),
            since=None if only.get("since") is None else to_micros(only["since"]),  # type: ignore[arg-type]
            until=None if only.get("until") is None else to_micros(only["until"]),  # type: ignore[arg-type]
            trust=_trust(only.get("trust")),
        )

    # What there is

    def _corpus(self, scope: Scope, thread: str | None) -> tuple[Corpus, list[str]]:
        if thread is not None:
            check_id(thread, "thread id")
        found, models = [], []
        for place, sees in places(scope):
            index = self.library.index(place)
            found.append(index.corpus().seen(sees, thread, (scope.agent, thread)))
            if (embedder := index.embedder) is not None and embedder.name not in models:
                models.append(embedder.name)
        return Corpus.of(found), models

    def _vectors(self, topic: str, models: list[str]) -> tuple[dict[str, Any], list[str]]:
        """The query's vector by each model that an index uses; what fails is left out, and said."""
        found, failed = {}, []
        for model in models:
            embedder = self.library.embedder(model)
            try:
                if embedder is not None:
                    found[model] = embedder.embed([topic])[0]
            except HoldfastError as error:
                failed.append(f"without vectors: {error}")
        return found, failed

    # What is shown

    def _hits(self, corpus: Corpus, found: Found, k: int, explain: bool) -> tuple[Hit, ...]:
        hits: list[Hit] = []
        for number in range(len(found.rows)):
            if len(hits) == k:
                break
            hit = self._hit(corpus, found, number)
            if hit is not None:
                why = {name: round(float(values[number]), 4) for name, values in found.parts.items()} if explain else {}
                hits.append(msgspec.structs.replace(hit, why=why))
        return tuple(hits)

    def _hit(self, corpus: Corpus, found: Found, number: int) -> Hit | None:
        row = found.rows.at(slice(number, number + 1))
        score = float(found.scores[number])
        ref = int(corpus.column("ref", row)[0])
        if ref:
            memory = self._memory(memory_id(ref))
            if memory is None:
                return None
            return Hit(memory.text, score, memory.kind, memory.valid_from, memory.trust, memory=memory)
        entry = self._entry(corpus, int(corpus.column("stream", row)[0]), int(corpus.column("position", row)[0]))
        if entry is None:
            return None
        moment = to_datetime(int(corpus.column("time", row)[0]))
        trust = TRUST[int(corpus.column("trust", row)[0])]
        return Hit(spoken(entry.kind, entry.content), score, entry.kind, moment, trust, entry=entry)

    def _memory(self, id: str) -> Memory | None:
        record = self._core.engine.get(self._core.tenant, MEMORY, id)
        memory = None if record is None else to_memory(record)
        return memory if memory is not None and memory.forgotten_at is None else None

    def _entry(self, corpus: Corpus, stream: int, position: int) -> Entry | None:
        thread = corpus.thread_of(stream, position)
        events = self._core.engine.read(self._core.tenant, Mark(stream, position), after=position - 1)
        return log.to_entry(thread, events[0]) if thread is not None and events else None


def _kinds(kind: str | Iterable[str] | None, with_log: bool) -> tuple[str, ...] | None:
    if kind is None:
        return None if with_log else MEMORY_KINDS
    kinds = (kind,) if isinstance(kind, str) else tuple(kind)
    known = (*MEMORY_KINDS, *ENTRY_KINDS)
    for one in kinds:
        if one not in known:
            raise Invalid(f"kind must be one of {', '.join(known)}, not {one!r}")
    return kinds if with_log else tuple(one for one in kinds if one in MEMORY_KINDS)


def _marks(only: Only) -> Iterable[str]:
    tags = only.get("tag")
    for tag in (tags,) if isinstance(tags, str) else tags or ():
        yield f"tag:{check_id(tag, 'tag')}"
    for what in ("by", "channel", "tool"):
        if (value := only.get(what)) is not None:
            yield f"{what}:{check_id(value, what)}"
    if (subject := only.get("subject")) is not None:
        yield f"subject:{folded(check_id(subject, 'subject'))}"


def _trust(trust: str | None) -> int:
    if trust is None:
        return 0
    if trust not in TRUST:
        raise Invalid(f"trust must be {', '.join(TRUST[:-1])} or {TRUST[-1]}, not {trust!r}")
    return TRUST.index(trust)


def _pending(corpus: Corpus, models: list[str]) -> int:
    if not models:
        return 0
    return sum(
        segment.passages
        for segment in corpus.segments
        if segment.vectors is None or segment.vectors.model not in models
    )
