"""The same store for async callers: the same names with the same meaning, awaited.

``await aio.open("agent.db")`` returns an ``AsyncStore``; you await everything it gives. Deliberately absent:
rules of its own. Each class wraps its blocking twin or drives the same flows, and a test keeps their signatures equal.
"""

from __future__ import annotations

from holdfast.aio.feed import AsyncFollower
from holdfast.aio.folder import AsyncFolder
from holdfast.aio.handoff import AsyncHandoff
from holdfast.aio.memory import AsyncMemories
from holdfast.aio.runs import AsyncRun, AsyncStepContext, AsyncSubtask
from holdfast.aio.session import AsyncExchange, AsyncSession
from holdfast.aio.store import AsyncStore, open
from holdfast.aio.thread import AsyncThread, AsyncTurn

__all__ = [
    "AsyncExchange",
    "AsyncFolder",
    "AsyncFollower",
    "AsyncHandoff",
    "AsyncMemories",
    "AsyncRun",
    "AsyncSession",
    "AsyncStepContext",
    "AsyncStore",
    "AsyncSubtask",
    "AsyncThread",
    "AsyncTurn",
    "open",
]
