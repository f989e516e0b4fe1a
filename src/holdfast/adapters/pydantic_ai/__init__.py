"""Holdfast under Pydantic AI: its conversations in threads, and the notes of its harness in a folder.

The two come from two packages, of which a program may have one, so each is loaded when it is first asked for.
Deliberately absent: anything that runs before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.adapters.pydantic_ai.conversations import HoldfastConversations
    from holdfast.adapters.pydantic_ai.memory import HoldfastMemoryStore

__all__ = ["HoldfastConversations", "HoldfastMemoryStore"]


def __getattr__(name: str) -> Any:
    if name == "HoldfastConversations":
        from holdfast.adapters.pydantic_ai.conversations import HoldfastConversations  # noqa: PLC0415

        return HoldfastConversations
    if name == "HoldfastMemoryStore":
        from holdfast.adapters.pydantic_ai.memory import HoldfastMemoryStore  # noqa: PLC0415

        return HoldfastMemoryStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
