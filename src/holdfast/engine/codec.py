"""Values to bytes and back, exactly or not at all.

On disk a value is two characters that name its encoding and version ("j1": JSON, "m1": msgpack), then the encoding.
Only plain data goes in: None, bool, int of 64 bits, finite float, text, list, dict with text keys. Anything that would
come back different (NaN, a set, an integer key, a lone surrogate) is refused with the path to it; only a tuple may
come back as a list. Deliberately absent: pickle, import by name, and reviving objects; types are restored by the room
that knows the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

from holdfast.errors import Corrupt, Invalid, TooLarge, Unsupported

JSON = b"j1"
MSGPACK = b"m1"
MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 200
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1

_json_encoder = msgspec.json.Encoder()
_json_decoder = msgspec.json.Decoder()
_decoders: dict[bytes, Callable[[bytes], Any]] = {JSON: _json_decoder.decode, MSGPACK: msgspec.msgpack.Decoder().decode}


def encode(value: Any, what: str = "value") -> bytes:
    """Turn plain data into bytes. ``what`` names it in an error, which also gives the path to the culprit."""
    try:
        _check(value, "", MAX_DEPTH)
        body = JSON + _json_encoder.encode(value)
    except _NotPlain as refusal:
        raise Invalid(f"{what}{refusal.path}: {refusal.why}", path=refusal.path, what=what) from None
    except UnicodeEncodeError:
        path = _surrogate_path(value, "") or ""
        raise Invalid(f"{what}{path}: text with a lone surrogate cannot be stored", path=path, what=what) from None
    if len(body) > MAX_BODY_BYTES:
        raise TooLarge(
            f"{what} takes {len(body):,} bytes; at most {MAX_BODY_BYTES:,} are accepted: keep the large part elsewhere "
            "and store a reference",
            size_bytes=len(body), limit_bytes=MAX_BODY_BYTES, what=what,
        )  # fmt: skip
    return body


def decode(body: bytes) -> Any:
    """Turn stored bytes into plain data."""
    decoder = _decoders.get(body[:2])
    if decoder is None:
        raise Unsupported(f"stored with encoding {body[:2]!r}, which this version cannot read; upgrade holdfast")
    try:
        return decoder(body[2:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(f"a stored value does not decode: {error}") from error


class _NotPlain(Exception):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why


def _check(value: Any, path: str, depth: int) -> None:
    """Refuse what JSON would change on the way. Types are compared exactly: a subclass would come back as its base."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return
    if kind is int or kind is float:
        _check_number(value, path)
        return
    if depth == 0:
        raise _NotPlain(path, f"nested deeper than {MAX_DEPTH} levels")
    if kind is dict:
        for name, item in value.items():
            if type(name) is not str:
                raise _NotPlain(path, f"the key {name!r} is {type(name).__name__}, not text")
            what = type(item)
            if what is str or what is bool or item is None or (what is int and _INT_MIN <= item <= _INT_MAX):
                continue  # the common case; checking here saves a call and a path
            _check(item, f"{path}.{name}", depth - 1)
    elif kind is list or kind is tuple:
        for number, item in enumerate(value):
            if type(item) is not str:
                _check(item, f"{path}[{number}]", depth - 1)
    else:
        raise _NotPlain(path, f"{kind.__name__} is not plain data (text, number, bool, None, list or dict)")


def _check_number(value: int | float, path: str) -> None:
    if isinstance(value, int):
        if not _INT_MIN <= value <= _INT_MAX:
            raise _NotPlain(path, "an integer over 64 bits cannot be stored exactly; store it as text")
    elif not isfinite(value):
        raise _NotPlain(path, f"{value} is not a number that JSON can hold")


def _surrogate_path(value: Any, path: str) -> str | None:
    if isinstance(value, str):
        return path if any(0xD800 <= ord(char) <= 0xDFFF for char in value) else None
    if isinstance(value, dict):
        pairs = [(f"{path}.{name!a}", part) for name, item in value.items() for part in (name, item)]
    elif isinstance(value, list | tuple):
        pairs = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    else:
        return None
    return next((found for where, part in pairs if (found := _surrogate_path(part, where)) is not None), None)
