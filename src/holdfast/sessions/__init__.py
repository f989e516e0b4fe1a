"""Contexts and sessions: log, state, memory and handoff, wired into what an agent needs for a turn, and into the turn.

Deliberately absent: how a context is packed (``context``), how a model is called (``providers``), and the rules of
runs, memories and handoffs, which have rooms of their own.
"""

from __future__ import annotations

from holdfast.context.budget import Share
from holdfast.context.page import Dropped
from holdfast.context.report import Context, ContextReport, SectionReport
from holdfast.providers.models.choose import choose as model
from holdfast.providers.models.model import Model, Reply, ToolCall, Usage
from holdfast.sessions.session import Opening, Session
from holdfast.sessions.turn import Answer, Exchange

__all__ = [
    "Answer",
    "Context",
    "ContextReport",
    "Dropped",
    "Exchange",
    "Model",
    "Opening",
    "Reply",
    "SectionReport",
    "Session",
    "Share",
    "ToolCall",
    "Usage",
    "model",
]
