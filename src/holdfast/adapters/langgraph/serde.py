"""Serialisers: the one that LangGraph is shown, and a caller's own that encrypts, such as ``EncryptedSerializer``.

The saver stores values by parts, and not through ``Serde``, which is for programs that ask a saver for its serialiser.
A caller's serialiser is given our encoding of a value, so types and lists are handled as without it. Deliberately
absent: pickle, importing what bytes name, ciphers and keys; and metadata is not encrypted, as with LangGraph's savers.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph import messages
from holdfast.adapters.langgraph.frames import MESSAGE, SEALED, TAG
from holdfast.adapters.langgraph.values import Dumping, Kinds, Loading
from holdfast.errors import Corrupt, Unsupported
from holdfast.extension import decode, encode

_MARK = encode({TAG: SEALED})[:-1]


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


def sealed(body: bytes, serde: SerializerProtocol | None) -> bytes:
    """An encoded value as it is kept."""
    if serde is None:
        return body
    kind, held = serde.dumps_typed(body)
    return encode({TAG: SEALED, "v": [kind, b64encode(held).decode()]})


def unsealed(body: bytes, serde: SerializerProtocol | None) -> bytes:
    """The encoded value that was kept."""
    if not body.startswith(_MARK):
        return body
    return opened(decode(body)["v"], serde)


def opened(held: Any, serde: SerializerProtocol | None) -> bytes:
    """The encoded value that a sealed one holds."""
    if serde is None:
        raise Unsupported("a value is encrypted: give HoldfastSaver(…, serde=…) the serialiser that it was saved with")
    kind, text = held
    try:
        found = serde.loads_typed((kind, b64decode(text)))
    except Exception as error:  # a serialiser of the caller's may fail in any way
        raise Corrupt(f"an encrypted value cannot be read with this serialiser and key: {error!r}") from error
    if not isinstance(found, bytes):
        raise Corrupt(f"a serialiser gave {type(found).__name__} instead of the bytes that it was given")
    return found
