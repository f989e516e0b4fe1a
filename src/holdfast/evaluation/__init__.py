"""Measuring recall and contexts: conversations or notes with questions whose answers are known.

``read`` takes a file of them, ``opened`` puts them into a store. ``evaluate`` asks every question and says how
much of the right answers came back; ``ask_for_contexts`` says how much of them is in a context of so many tokens,
beside the plain ways to fill a prompt. ``picture`` draws either. Nothing knows one data set from another. Deliberately
absent: printing, and answers written by a model.
"""

from __future__ import annotations

from holdfast.evaluation.dataset import Conversation, Question, Utterance
from holdfast.evaluation.gold import BUDGETS, ContextScores, Shares, ask_for_contexts, rounded
from holdfast.evaluation.ladder import LADDER, Rung, stage_names
from holdfast.evaluation.measures import MEASURES, Measured, Scores
from holdfast.evaluation.picture import Group, picture
from holdfast.evaluation.reading import read
from holdfast.evaluation.trial import Trial, evaluate, opened

__all__ = [
    "BUDGETS",
    "LADDER",
    "MEASURES",
    "ContextScores",
    "Conversation",
    "Group",
    "Measured",
    "Question",
    "Rung",
    "Scores",
    "Shares",
    "Trial",
    "Utterance",
    "ask_for_contexts",
    "evaluate",
    "opened",
    "picture",
    "read",
    "rounded",
    "stage_names",
]
