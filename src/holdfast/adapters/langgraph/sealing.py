"""Values that a serialiser of the caller's encrypts, such as LangGraph's ``EncryptedSerializer``.

What is given to it is our own encoding, so types and lists are handled as without it; only what is kept is its bytes.
Deliberately absent: ciphers and keys, which are the serialiser's, and the metadata of checkpoints, which LangGraph
leaves readable as well.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph.frames import SEALED, TAG
from holdfast.errors import Corrupt, Unsupported
from holdfast.extension import decode, encode

_MARK = encode({TAG: SEALED})[:-1]


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
