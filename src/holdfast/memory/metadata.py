"""What callers keep beside the text of a memory: free metadata, and a vector of their own.

Metadata is plain data under names. A filter asks for equal values; a list also answers to each of its items. Recall
knows a filter as marks, so the same words decide in a listing and in an index. A vector is kept as the model's numbers
in single precision, low byte first, whatever the machine. Deliberately absent: what is near to what.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from math import isfinite
from numbers import Real
from struct import error as StructError
from struct import pack, unpack
from typing import Any

from holdfast.engine.codec import decode, encode
from holdfast.errors import Invalid, quoted
from holdfast.ids import check_id
from holdfast.records import OwnVector

UNNAMED = "own"
"""The model of a vector whose caller named none."""
MAX_NUMBERS = 65_536


def check_metadata(given: object, what: str = "metadata") -> dict[str, Any]:
    """A copy of some metadata, or ``Invalid`` if it is not plain data under names."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise Invalid(f"{what} is a dict of names and plain values, not {type(given).__name__}")
    for name in given:
        check_id(name, f"a name in {what}")
    copy: dict[str, Any] = decode(encode(dict(given), what))
    return copy


def wanted_marks(where: object) -> tuple[str, ...]:
    """The marks that a memory must have to pass a filter."""
    return tuple(_mark(name, value) for name, value in sorted(check_metadata(where, "where").items()))


def marks_of(metadata: Mapping[str, Any]) -> Iterator[str]:
    """The marks of some metadata: each value as a whole, and each item of a list."""
    for name, value in metadata.items():
        yield _mark(name, value)
        if isinstance(value, list):
            yield from (_mark(name, item) for item in value)


def _mark(name: str, value: Any) -> str:
    return f"meta:{name}={json.dumps(_same(value), sort_keys=True, ensure_ascii=False)}"


def _same(value: Any) -> Any:
    """The value with whole numbers written one way: whoever asks for 1 means 1.0 too."""
    if isinstance(value, dict):
        return {name: _same(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_same(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_vector(numbers: object, model: object) -> OwnVector | None:
    """A vector as callers give it, checked."""
    if numbers is None:
        if model is not None:
            raise Invalid("model names the model of a vector; give vector=… as well")
        return None
    name = UNNAMED if model is None else check_id(model, "model")
    return OwnVector(name, b64encode(packed(numbers)).decode())


def count_of(data: int) -> int:
    """How many numbers base64 of this length holds."""
    return data * 3 // 4 // 4


def packed(numbers: object) -> bytes:
    """A vector as bytes: some finite numbers, not all of them 0. A list, or an array of any library."""
    plain = numbers.tolist() if hasattr(numbers, "tolist") else numbers
    if not isinstance(plain, list | tuple):
        raise Invalid(f"a vector is a list of numbers, not {type(numbers).__name__}")
    if not 1 <= len(plain) <= MAX_NUMBERS:
        raise Invalid(f"a vector has 1 to {MAX_NUMBERS:,} numbers, not {len(plain):,}")
    if wrong := [one for one in plain if isinstance(one, bool) or not isinstance(one, Real)]:
        raise Invalid(f"a vector is a list of numbers; this one holds {quoted(wrong[0])}")
    try:
        data = pack(f"<{len(plain)}f", *plain)
    except (OverflowError, StructError):
        raise Invalid("a vector's numbers have single precision; one is too large") from None
    if not all(map(isfinite, plain)):
        raise Invalid("a vector has finite numbers; this one holds NaN or infinity")
    if not any(unpack(f"<{len(plain)}f", data)):
        raise Invalid("a vector of zeros has no direction, so nothing is near it")
    return data
