"""The serialiser that LangGraph is shown: the saver's own values as bytes.

The saver itself stores values by parts, not through it; it is there for what asks a saver for its serialiser.
Deliberately absent: pickle, and importing what stored bytes name.
"""

from __future__ import annotations

from typing import Any

from holdfast.adapters.langgraph import messages
from holdfast.adapters.langgraph.values import TAG, Dumping, Kinds, Loading
from holdfast.extension import decode, encode

_MESSAGE = "message"


class Serde:
    """Values to bytes and back, registered types alone."""

    def __init__(self, kinds: Kinds) -> None:
        self._dumping = Dumping(kinds, self._message)
        self._loading = Loading(kinds, {_MESSAGE: self._revived})

    def _message(self, value: Any) -> Any:
        if not messages.is_message(value):
            return None
        return {TAG: _MESSAGE, "v": self._dumping.plain(messages.to_content(value), "value")}

    def _revived(self, held: Any) -> Any:
        return messages.from_content(self._loading.value(held, "value"))

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "holdfast", encode(self._dumping.plain(obj, "value"))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._loading.value(decode(data[1]), "value")

    def dumps(self, obj: Any) -> bytes:
        return self.dumps_typed(obj)[1]

    def loads(self, data: bytes) -> Any:
        return self.loads_typed(("holdfast", data))
