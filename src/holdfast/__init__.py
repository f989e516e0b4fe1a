"""Holdfast keeps an AI agent's conversation, state and steps in one durable store.

``holdfast.open("agent.db")`` gives a store; ``store.thread("trip-42")`` a thread to append to, save state in, rewind
and fork. Async callers use ``holdfast.aio``. Deliberately absent: names that are not public. What is not listed in
``__all__``, ``errors``, ``aio`` or ``testing`` may change.
"""

from __future__ import annotations

from holdfast import errors
from holdfast.ledger.agent_state import AgentState, Fact, Task
from holdfast.ledger.schema import Registry, migration, refresher, schema
from holdfast.ledger.thread import Thread
from holdfast.ledger.turn import Turn
from holdfast.records import (
    Checkpoint,
    Entry,
    Loaded,
    Revision,
    StaleField,
    ThreadInfo,
    event,
    message,
    note,
    observation,
    tool_call,
)
from holdfast.store import Store, open, restore

__version__ = "0.1.0"

__all__ = [
    "AgentState",
    "Checkpoint",
    "Entry",
    "Fact",
    "Loaded",
    "Registry",
    "Revision",
    "StaleField",
    "Store",
    "Task",
    "Thread",
    "ThreadInfo",
    "Turn",
    "__version__",
    "errors",
    "event",
    "message",
    "migration",
    "note",
    "observation",
    "open",
    "refresher",
    "restore",
    "schema",
    "tool_call",
]
