"""One trial: conversations go into a store, every question is asked, and what comes back is measured.

Everything goes through what any program uses: threads are appended to, notes are remembered, recall is asked. Each
conversation is a user of its own, each session a thread, each turn a message whose key is the turn's id. In a store of
its own a trial has a time and names of its own, so the same questions give the same figures. In one that was there
before, users and threads get a prefix that is used once, and are erased at the end. Deliberately absent: any look
behind recall.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

from holdfast import store as stores
from holdfast.atfork import cached_property
from holdfast.clock import Clock, SystemClock, to_micros
from holdfast.engine.registry import scheme_of
from holdfast.evaluation import plain
from holdfast.evaluation.dataset import Conversation, Utterance
from holdfast.evaluation.ladder import checked
from holdfast.evaluation.measures import (
    DEEPEST,
    FoundTurns,
    Measured,
    Scores,
    averaged,
    by_kind,
    calibration,
    newer_first,
    percentile,
    refusals,
    scores,
    share,
)
from holdfast.ids import Ids
from holdfast.memory.handle import Memories
from holdfast.providers.choose import AUTO, Spec
from holdfast.records import Draft, Hit, Recalled, message
from holdfast.store import Store

Advance = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and how much there is."""

_ROLES = ("user", "assistant", "system")
_BEGINNING = to_micros(datetime(2026, 1, 1, tzinfo=UTC))


def evaluate(
    conversations: Sequence[Conversation],
    engine: str | Path | None = None,
    *,
    embedder: Spec = AUTO,
    without: Iterable[str] = (),
    tenant: str | None = None,
    progress: Advance | None = None,
) -> Measured:
    """Put conversations into a store, ask every question, measure the answers, and leave nothing behind.

    ``engine`` is as for ``holdfast.open``; without one it is a file that exists only meanwhile. ``without`` names
    stages of recall to leave out.
    """
    with opened(conversations, engine, embedder=embedder, tenant=tenant, progress=progress) as trial:
        return trial.ask(without)


@contextmanager
def opened(
    conversations: Sequence[Conversation],
    engine: str | Path | None = None,
    *,
    embedder: Spec = AUTO,
    tenant: str | None = None,
    progress: Advance | None = None,
) -> Iterator[Trial]:
    """A trial whose conversations are in a store, to be asked as often as one likes; afterwards they are gone."""
    with (
        _place(engine) as (where, clock, ids),
        stores.open(where, tenant=tenant, clock=clock, ids=ids, embedder=embedder) as store,
    ):
        kind = "sqlite" if isinstance(where, Path) else scheme_of(where)
        trial = Trial(store, conversations, kind, progress, prefix=f"eval-{ids.stream(clock.now()):x}-")
        try:
            trial.ingest()
            yield trial
        finally:
            trial.erase()


class _IngestedThread(NamedTuple):
    """A database, and where what is kept in it has its time and its names from."""

    database: str | Path
    clock: Clock
    ids: Ids


@contextmanager
def _place(engine: str | Path | None) -> Iterator[_IngestedThread]:
    """The database that is named, or one that exists only meanwhile. There is no chance in that one."""
    if engine is not None:
        yield _IngestedThread(engine, SystemClock(), Ids())
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-eval-") as folder:
        numbers = count()
        yield _IngestedThread(Path(folder) / "trial.db", _OwnTime(), Ids(lambda bits: next(numbers) % 2**bits))


class _OwnTime:
    """A clock of a trial: it always begins at the same moment, and each look moves it on."""

    def __init__(self) -> None:
        self._moments = count(_BEGINNING)

    def now(self) -> int:
        return next(self._moments)


class Trial:
    """Conversations in a store, and what to ask about them."""

    def __init__(
        self,
        store: Store,
        conversations: Sequence[Conversation],
        engine: str,
        progress: Advance | None = None,
        *,
        prefix: str,
    ) -> None:
        self.store, self.conversations, self.engine = store, conversations, engine
        self.tell = progress or _silent
        self._prefix = prefix
        self._notes: dict[str, str] = {}  # the id of each memory, and of the note that it was made from

    def ingest(self) -> None:
        """Append every turn, remember every note, and let recall make its index, which is no part of answering."""
        total = sum(len(conversation.turns) for conversation in self.conversations)
        done = 0
        self.tell("ingesting", done, total)
        for conversation in self.conversations:
            memory = self.store.memory(user=self.user(conversation))
            for session, turns in conversation.sessions.items():
                self._take_in(conversation, session, turns, memory)
                done += len(turns)
                self.tell("ingesting", done, total)
            if memory.recall("warm up", 1).report.pending and self.store.wiring.embedder is not None:
                memory.reembed(lambda done, total: self.tell("embedding", done, total))  # one model for all questions

    def _take_in(self, conversation: Conversation, session: str, turns: list[Utterance], memory: Memories) -> None:
        if conversation.remembered:
            made = memory.remember_all(turn.text for turn in turns)
            self._notes |= {note.id: turn.id for note, turn in zip(made, turns, strict=True)}
        else:
            user = self.user(conversation)
            self.store.thread(f"{user}/{session}", user=user).append(*map(_message, turns))

    def id_of(self, hit: Hit) -> str | None:
        """The id of the turn or note that was found."""
        if hit.memory is not None:
            return self._notes.get(hit.memory.id)
        return None if hit.entry is None else hit.entry.key

    @cached_property
    def plain(self) -> dict[str, Scores]:
        """What is found by words alone (BM25), also with each turn's neighbours read along; notes have none."""
        found: dict[str, list[Scores]] = {}
        for conversation in self.conversations:
            texts, sessions = conversation.texts, [turn.session for turn in conversation.turns]
            ways = {"bm25": plain.by_words(texts)}
            if not conversation.remembered:
                ways["bm25_window"] = plain.by_words(plain.windows(texts, sessions))
            for question in filter(lambda question: question.gold, conversation.questions):
                for way, ranked in ways.items():
                    best = [conversation.turns[turn].id for turn in ranked(question.text)[:DEEPEST]]
                    found.setdefault(way, []).append(scores(question.gold, best))
        return {way: averaged(several) for way, several in found.items()}

    def ask(self, without: Iterable[str] = ()) -> Measured:
        """Ask every question, without some stages if so wished, and measure what comes back."""
        chosen = checked(without)
        total = sum(len(conversation.questions) for conversation in self.conversations)
        answers: list[FoundTurns] = []
        notes: dict[str, None] = {}
        model = None
        for conversation in self.conversations:
            memory = self.store.memory(user=self.user(conversation))
            order = {turn.id: place for place, turn in enumerate(conversation.turns)}
            for question in conversation.questions:
                found, ms = _recalled(memory, question.text, chosen)
                ids = tuple(map(self.id_of, found))
                answers.append(
                    FoundTurns(question.kind, question.gold, ids, ms, found.relevant, found.confidence, order)
                )
                model = found.report.model or model
                notes.update(dict.fromkeys(_remarks(found)))
                self.tell("asking", len(answers), total)
        return self._measured(answers, model, tuple(notes))

    def _measured(self, answers: list[FoundTurns], model: str | None, notes: tuple[str, ...]) -> Measured:
        answerable = [answer for answer in answers if answer.gold]
        others = [answer for answer in answers if not answer.gold]
        times = [answer.ms for answer in answers]
        return Measured(
            overall=averaged([scores(answer.gold, answer.found) for answer in answerable]),
            kinds=by_kind(answerable),
            questions=len(answerable),
            conversations=sum(not conversation.remembered for conversation in self.conversations),
            turns=sum(len(conversation.turns) for conversation in self.conversations),
            ms=percentile(times, 0.5),
            ms_p95=percentile(times, 0.95),
            newer_first=newer_first(answerable),
            wrongly_refused=share(answerable, lambda answer: not answer.relevant),
            refused=refusals(others),
            calibration=calibration(answers) if others else (),
            plain=self.plain,
            engine=self.engine,
            embedder=model or "none",
            notes=notes,
        )

    def erase(self) -> None:
        """Remove every conversation from the store, and leave no grave: the names are never used again."""
        for conversation in self.conversations:
            self.store.erase(user=self.user(conversation), forever=False)

    def user(self, conversation: Conversation) -> str:
        """The name under which a conversation is kept."""
        return self._prefix + conversation.id


def _message(turn: Utterance) -> Draft:
    """A turn as a message. A speaker who is neither user nor assistant is named."""
    more = {"time": turn.time} if turn.time else {}
    if turn.speaker in _ROLES:
        return message(turn.speaker, turn.text, key=turn.id, **more)
    return message("user", turn.text, key=turn.id, name=turn.speaker, **more)


def _recalled(memory: Memories, question: str, without: frozenset[str]) -> tuple[Recalled, float]:
    began = time.perf_counter()
    found = memory.recall(question, DEEPEST, without=without)
    return found, (time.perf_counter() - began) * 1_000


def _remarks(found: Recalled) -> Iterator[str]:
    """What makes an answer worth less than it could be."""
    yield from found.report.notes
    if found.report.pending:
        yield f"{found.report.pending} passages of a conversation had no vector yet"


def _silent(stage: str, done: int, total: int) -> None:
    """Nobody watches."""
