"""Holdfast keeps an AI agent's conversation, state, steps and memories in one durable store.

``holdfast.open("agent.db")`` returns a store; ``store.thread("trip-42")`` a thread to append to, save state in, rewind
and fork; ``thread.run("book-flight")`` durable work in it, step by step; ``store.memory("ana")`` what is known, to
remember and to recall; ``store.context(thread, "…", budget=8000)`` what goes into a model for a turn, and
``store.session(thread, model="…")`` whole turns. Async callers use ``holdfast.aio``. The values that these return are
in ``holdfast.types``.
Deliberately absent: names that are not public. What is not listed in ``__all__``, ``types``, ``errors``, ``aio``,
``extension`` or ``testing`` may change.
"""

from __future__ import annotations

import typing as _typing

from holdfast import errors
from holdfast.handoff import Handoff
from holdfast.ledger.agent_state import AgentState, Fact, Task
from holdfast.ledger.feed import Follower
from holdfast.ledger.files import FileDelete, FileWrite
from holdfast.ledger.folder import Folder
from holdfast.ledger.schema import Registry, migration, refresher, schema
from holdfast.ledger.turn import Turn
from holdfast.memory.handle import Memories
from holdfast.records import Origin, event, message, note, observation, tool_call
from holdfast.steps.declare import Done, NotDone, Retry, Step, Unknown, step
from holdfast.steps.run import Run, Subtask
from holdfast.steps.step_context import StepContext, Suspended, current_step
from holdfast.store import Store, open, restore
from holdfast.thread import Thread

if _typing.TYPE_CHECKING:
    from holdfast import types
    from holdfast.sessions import Context, Exchange, Session, model

__version__ = "0.1.0"

__all__ = [
    "AgentState",
    "Context",
    "Done",
    "Exchange",
    "Fact",
    "FileDelete",
    "FileWrite",
    "Folder",
    "Follower",
    "Handoff",
    "Memories",
    "NotDone",
    "Origin",
    "Registry",
    "Retry",
    "Run",
    "Session",
    "Step",
    "StepContext",
    "Store",
    "Subtask",
    "Suspended",
    "Task",
    "Thread",
    "Turn",
    "Unknown",
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
    "types",
]


def __getattr__(name: str) -> _typing.Any:
    """``types`` and the names of contexts and sessions, loaded on first use: many programs never need them."""
    if name == "types":
        import holdfast.types as found  # noqa: PLC0415

        return found
    if name in __all__:
        from holdfast import sessions  # noqa: PLC0415

        return getattr(sessions, name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
