"""Holdfast keeps an AI agent's conversation, state, steps and memories in one durable store.

``holdfast.open("agent.db")`` gives a store; ``store.thread("trip-42")`` a thread to append to, save state in, rewind
and fork; ``thread.run("book-flight")`` durable work in it, step by step; ``store.memory(user="ana")`` what is known,
to remember and to recall; ``store.context(thread, "…", budget=8000)`` what goes into a model for a turn, and
``store.session(thread, model="…")`` whole turns. Async callers use ``holdfast.aio``.
Deliberately absent: names that are not public. What is not listed in ``__all__``, ``errors``, ``aio`` or ``testing``
may change.
"""

from __future__ import annotations

import typing as _typing

from holdfast import errors
from holdfast.handoff import Document, Handoff, HandoffRevision, Item, Section, Written
from holdfast.ledger.agent_state import AgentState, Fact, Task
from holdfast.ledger.feed import Follower
from holdfast.ledger.files import Deleting, Writing
from holdfast.ledger.folder import Folder
from holdfast.ledger.graphs import FrameInfo, Graph, GraphInfo, GraphWrite
from holdfast.ledger.schema import Registry, migration, refresher, schema
from holdfast.ledger.turn import Turn
from holdfast.memories.handle import Memories
from holdfast.memory.conflicts import Contradiction
from holdfast.memory.facts import Version
from holdfast.memory.graph import Link
from holdfast.records import (
    Checkpoint,
    Entry,
    EntryRef,
    File,
    FolderInfo,
    Hit,
    Loaded,
    Memory,
    Origin,
    Recalled,
    RecallReport,
    Revision,
    StageReport,
    StaleField,
    ThreadInfo,
    event,
    message,
    note,
    observation,
    tool_call,
)
from holdfast.steps.attempt import Suspended
from holdfast.steps.context import StepContext
from holdfast.steps.current import current_step
from holdfast.steps.declare import Done, NotDone, Retry, Step, Unknown, step
from holdfast.steps.replay import Replayed
from holdfast.steps.resume import Resumed
from holdfast.steps.run import Run, Subtask
from holdfast.steps.timeline import Moment, RunInfo, StepInfo, Timeline
from holdfast.steps.waiting import Signal
from holdfast.store import Store, open, restore
from holdfast.thread import Thread

if _typing.TYPE_CHECKING:
    from holdfast.sessions import (
        Answer,
        Context,
        ContextReport,
        Dropped,
        Exchange,
        Model,
        Opening,
        Reply,
        SectionReport,
        Session,
        Share,
        ToolCall,
        Usage,
        model,
    )

__version__ = "0.1.0"

__all__ = [
    "AgentState",
    "Answer",
    "Checkpoint",
    "Context",
    "ContextReport",
    "Contradiction",
    "Deleting",
    "Document",
    "Done",
    "Dropped",
    "Entry",
    "EntryRef",
    "Exchange",
    "Fact",
    "File",
    "Folder",
    "FolderInfo",
    "Follower",
    "FrameInfo",
    "Graph",
    "GraphInfo",
    "GraphWrite",
    "Handoff",
    "HandoffRevision",
    "Hit",
    "Item",
    "Link",
    "Loaded",
    "Memories",
    "Memory",
    "Model",
    "Moment",
    "NotDone",
    "Opening",
    "Origin",
    "RecallReport",
    "Recalled",
    "Registry",
    "Replayed",
    "Reply",
    "Resumed",
    "Retry",
    "Revision",
    "Run",
    "RunInfo",
    "Section",
    "SectionReport",
    "Session",
    "Share",
    "Signal",
    "StageReport",
    "StaleField",
    "Step",
    "StepContext",
    "StepInfo",
    "Store",
    "Subtask",
    "Suspended",
    "Task",
    "Thread",
    "ThreadInfo",
    "Timeline",
    "ToolCall",
    "Turn",
    "Unknown",
    "Usage",
    "Version",
    "Writing",
    "Written",
    "__version__",
    "current_step",
    "errors",
    "event",
    "message",
    "migration",
    "model",
    "note",
    "observation",
    "open",
    "refresher",
    "restore",
    "schema",
    "step",
    "tool_call",
]


def __getattr__(name: str) -> _typing.Any:
    """The names of contexts and sessions, loaded when they are first asked for: many programs never need them."""
    if name in __all__:
        from holdfast import sessions  # noqa: PLC0415

        return getattr(sessions, name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
