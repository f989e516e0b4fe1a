"""What a context is worth: how much of the gold is on the page, for how many tokens.

Every question is asked in a new thread of its user, so that nothing but recall can bring what was said. A turn of the
gold counts as on the page when it is cited there, and as whole when all of its text is; of long turns a page shows the
parts that matter. Beside it stand the plain ways to fill the same budget. Deliberately absent: any look behind
``store.context``, and what a model makes of the page.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.context.report import Context
from holdfast.errors import BudgetTooSmall
from holdfast.evaluation import plain
from holdfast.evaluation.dataset import Conversation, Question
from holdfast.evaluation.measures import percentile
from holdfast.evaluation.trial import Trial
from holdfast.providers.tokens.choose import counter_for
from holdfast.providers.tokens.counting import TokenCounter

BUDGETS = (1_000, 4_000, 8_000)
METHODS = ("gold", "whole", "window", "topk", "bm25")
"""Cited, and cited whole, by a context; then the last turns, the nearest by vector, and the best by words.

Where there is no embedder, ``topk`` is by words too.
"""
NAMES = tuple(f"{method}@{budget}" for method in METHODS for budget in BUDGETS)

Shares = Mapping[str, float]
"""The share of the gold for each of ``NAMES``, of one question or averaged over several."""


class ContextQuestion(msgspec.Struct, frozen=True):
    """One question: the shares of its gold, and what its contexts took."""

    kind: str
    shares: Shares
    tokens: Mapping[int, int]
    ms: tuple[float, ...]
    over: int


class ContextScores(msgspec.Struct, frozen=True):
    """How contexts did on one file. ``tokens`` is the mean that was used of each budget, ``over`` how many exceeded it.

    ``questions`` counts those that have an answer; the others are not asked.
    """

    overall: Shares
    kinds: dict[str, tuple[Shares, int]]
    questions: int
    conversations: int
    turns: int
    tokens: dict[int, float]
    over: int
    ms: float
    ms_p95: float
    counter: str
    engine: str
    embedder: str
    notes: tuple[str, ...] = ()

    def plain(self, budget: int) -> float:
        """The better of the two plain rankings at a budget."""
        return max(self.overall[f"topk@{budget}"], self.overall[f"bm25@{budget}"])

    def summary(self, file: str) -> dict[str, Any]:
        """Everything that a script wants to know, as plain data."""
        return {
            "file": file,
            **rounded(self.overall),
            **{f"tokens@{budget}": round(mean, 1) for budget, mean in self.tokens.items()},
            "over": self.over,
            "ms": round(self.ms, 3),
            "ms_p95": round(self.ms_p95, 3),
            "questions": self.questions,
            "conversations": self.conversations,
            "engine": self.engine,
            "embedder": self.embedder,
            "counter": self.counter,
            "by_kind": {kind: {**rounded(shares), "questions": n} for kind, (shares, n) in self.kinds.items()},
        }


def rounded(shares: Shares) -> dict[str, float]:
    return {name: round(shares[name], 4) for name in NAMES}


def ask_for_contexts(trial: Trial, tokens: str | None = None) -> ContextScores:
    """Build a context for every question that has an answer, at each budget, and measure what is on the page.

    ``tokens`` says how tokens are counted, by all methods alike: as a model or an encoding does, else by the estimate.
    """
    total = sum(bool(question.gold) for conversation in trial.conversations for question in conversation.questions)
    counter = counter_for(tokens)
    asked: list[ContextQuestion] = []
    notes: dict[str, None] = {}
    for conversation in trial.conversations:
        asking = _Asking(trial, conversation, counter)
        for question in conversation.questions:
            if question.gold:
                asked.append(asking.ask(question, notes))
                trial.tell("asking", len(asked), total)
    times = [ms for one in asked for ms in one.ms]
    model = trial.store.wiring.embedder
    return ContextScores(
        overall=_averaged([one.shares for one in asked]),
        kinds=dict(_by_kind(asked)),
        questions=len(asked),
        conversations=sum(not conversation.remembered for conversation in trial.conversations),
        turns=sum(len(conversation.turns) for conversation in trial.conversations),
        tokens={budget: sum(one.tokens[budget] for one in asked) / max(1, len(asked)) for budget in BUDGETS},
        over=sum(one.over for one in asked),
        ms=percentile(times, 0.5),
        ms_p95=percentile(times, 0.95),
        counter=counter.name,
        engine=trial.engine,
        embedder="none" if model is None else model.name,
        notes=tuple(notes),
    )


class _Asking:
    """The questions of one conversation."""

    def __init__(self, trial: Trial, conversation: Conversation, counter: TokenCounter) -> None:
        self._trial, self._counter, self._count = trial, counter, counter.count
        self._user = trial.user(conversation)
        self._ids = [turn.id for turn in conversation.turns]
        texts = conversation.texts
        self._costs = [self._count(text) + 1 for text in texts]
        by_words, embedder = plain.by_words(texts), trial.store.wiring.embedder
        self._plain = {
            "window": plain.recent(texts),
            "topk": by_words if embedder is None else plain.nearest(texts, embedder),
            "bm25": by_words,
        }

    def ask(self, question: Question, notes: dict[str, None]) -> ContextQuestion:
        shares: dict[str, float] = dict(self._baselines(question))
        tokens: dict[int, int] = {}
        times: list[float] = []
        over = 0
        for budget in BUDGETS:
            shares[f"gold@{budget}"] = shares[f"whole@{budget}"] = tokens[budget] = 0
            began = time.perf_counter()
            try:
                context = self._trial.store.context(self._thread(), question.text, budget, tokens=self._counter)
            except BudgetTooSmall:
                continue  # the question alone is longer; the plain ways have no room for anything either
            times.append((time.perf_counter() - began) * 1_000)
            cited = [hit for hit in context.hits if self._trial.id_of(hit) in question.gold]
            page = _line(context.section("recalled"))
            shares[f"gold@{budget}"] = len(cited) / len(question.gold)
            shares[f"whole@{budget}"] = sum(_line(hit.text) in page for hit in cited) / len(question.gold)
            tokens[budget] = context.tokens
            over += max(context.tokens, self._taken(context)) > budget
            notes.update(dict.fromkeys(context.report.notes))
        return ContextQuestion(question.kind, shares, tokens, tuple(times), over)

    def _thread(self) -> Any:
        """A thread that is never written, so every question comes first in it."""
        return self._trial.store.thread(f"asking-{self._user}", user=self._user)

    def _baselines(self, question: Question) -> Iterator[tuple[str, float]]:
        for method, ranked in self._plain.items():
            order = ranked(question.text)
            for budget in BUDGETS:
                taken = plain.fitting(order, self._costs, plain.room_for(question.text, budget, self._count))
                found = sum(self._ids[turn] in question.gold for turn in taken)
                yield f"{method}@{budget}", found / len(question.gold)

    def _taken(self, context: Context) -> int:
        """The texts of a context as they are sent, counted once more."""
        return sum(self._count(message["content"]) + plain.PER_MESSAGE for message in context.messages("openai"))


def _averaged(several: Sequence[Shares]) -> Shares:
    return {name: sum(one[name] for one in several) / max(1, len(several)) for name in NAMES}


def _by_kind(asked: Sequence[ContextQuestion]) -> Iterator[tuple[str, tuple[Shares, int]]]:
    for kind in sorted({one.kind for one in asked}):
        several = [one.shares for one in asked if one.kind == kind]
        yield kind, (_averaged(several), len(several))


def _line(text: str) -> str:
    return " ".join(text.split())
