"""Measuring recall: conversations with questions whose answers are known, asked through the front door.

``read`` takes a file of conversations, ``evaluate`` puts them into a store, asks every question and says how much of
the right answers came back, and ``picture`` draws what each stage of recall adds. Nothing here ranks, and nothing knows
one data set from another. Deliberately absent: printing, and answers written by a model.
"""

from __future__ import annotations

from holdfast.evaluation.dataset import Conversation, Question, Said, read
from holdfast.evaluation.ladder import LADDER, Rung, stage_names
from holdfast.evaluation.measures import Measured, Scores
from holdfast.evaluation.picture import Group, picture
from holdfast.evaluation.trial import Trial, evaluate, opened

__all__ = [
    "LADDER",
    "Conversation",
    "Group",
    "Measured",
    "Question",
    "Rung",
    "Said",
    "Scores",
    "Trial",
    "evaluate",
    "opened",
    "picture",
    "read",
    "stage_names",
]
