"""The small language the promises are written in: sessions that are opened and closed, and the items put into them.

Deliberately absent: assertions. They belong to the tests, where they can be read.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

Item = Any  # a dict of plain data; the SDK has a union of some dozens of typed dicts for it


class SessionStore(Protocol):
    """What is tested: the newest items in order, adding, taking back the newest, beginning anew."""

    async def get_items(self, limit: int | None = None) -> list[Item]: ...

    async def add_items(self, items: list[Item]) -> None: ...

    async def pop_item(self) -> Item | None: ...

    async def clear_session(self) -> None: ...


class Sessions:
    """Opens sessions of one store, and closes them at the end of a test."""

    def __init__(self, make: Callable[[str], SessionStore]) -> None:
        self._make, self._open = make, list[SessionStore]()

    def __call__(self, session_id: str = "trip") -> SessionStore:
        session = self._make(session_id)
        self._open.append(session)
        return session

    async def close(self) -> None:
        """Close all that are open, as far as they can be closed."""
        while self._open:
            closed = getattr(self._open.pop(), "close", lambda: None)()
            if inspect.isawaitable(closed):
                await closed


class Scene:
    """What the promises ask of every store."""

    def make(self, place: Path, session_id: str) -> SessionStore:
        """Open the session of this id, on the store at this place."""
        raise NotImplementedError(f"{type(self).__name__} is to say how a session is opened: make(place, session_id)")

    @pytest.fixture
    def sessions(self, tmp_path: Path) -> Sessions:
        return Sessions(functools.partial(self.make, tmp_path))


def awaited(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test in a loop of its own, and close its sessions in the same one."""

    @functools.wraps(test)
    def run(self: Any, sessions: Sessions, **given: Any) -> None:
        async def work() -> None:
            try:
                await test(self, sessions, **given)
            finally:
                await sessions.close()

        asyncio.run(work())

    return run


async def refused(call: Awaitable[Any]) -> bool:
    """Whether a store says no, in whatever words."""
    try:
        await call
    except Exception:
        return True
    return False


def said(*texts: str, role: str = "user") -> list[Item]:
    """Messages, one for each text."""
    return [{"role": role, "content": text} for text in texts]


def exactly(value: Any) -> Any:
    """A value with the types of all that is in it, to compare: 1, 1.0 and True are three things, and so are 0.0, -0.0.

    What is plain to look at stays as it is, so that what pytest shows of a difference can be read.
    """
    if isinstance(value, dict):
        return {key if isinstance(key, str) else (type(key), key): exactly(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(exactly, value))
    if value is None or type(value) is str:
        return value
    return type(value), repr(value) if isinstance(value, float) else value


CONVERSATION: list[Item] = [
    {"role": "user", "content": "What is the weather in Oslo?"},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "gAAA", "status": None},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "rain", "status": "completed"},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "ø"}], "id": None},
    {"type": "custom_tool_call", "call_id": "call_3", "name": "shell", "input": "ls -l\n"},
    {"type": "custom_tool_call_output", "call_id": "call_3", "output": ""},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "Oslo"}},
    {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Rain.", "annotations": [], "logprobs": [], "score": 0.5}],
    },
    {"type": "item_reference", "id": "msg_0"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB"},
]  # fmt: skip
"""One item of every shape that matters."""
