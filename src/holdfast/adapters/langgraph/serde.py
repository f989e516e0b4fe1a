"""The serialiser that LangGraph is shown: the saver's own values as bytes.

The saver itself stores values by parts, not through it; it is there for what asks a saver for its serialiser.
Deliberately absent: pickle, and importing what stored bytes name.
"""

from __future__ import annotations

from typing import Any

from holdfast.adapters.langgraph import messages
from holdfast.adapters.langgraph.frames import MESSAGE
from holdfast.adapters.langgraph.values import Dumping, Kinds, Loading
from holdfast.extension import decode, encode


class Serde:
    """Values to bytes and back, registered types alone."""

    def __init__(self, kinds: Kinds) -> None:
        self._dumping = Dumping(kinds, lambda value: messages.tagged(value, self._dumping.plain))
        self._loading = Loading(
            kinds, {MESSAGE: lambda held: messages.from_content(self._loading.value(held, "value"))}
        )

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "holdfast", encode(self._dumping.plain(obj, "value"))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._loading.value(decode(data[1]), "value")
