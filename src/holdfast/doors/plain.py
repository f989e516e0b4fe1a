"""Stored values as plain data, for ``--json``. These names and shapes are what scripts rely on.

Moments are ISO 8601 in UTC, digests hexadecimal text; what has no number (the age of something never confirmed) is
null. Deliberately absent: printing.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from holdfast.errors import HoldfastError
from holdfast.records import Entry, Loaded


def plain(value: Any) -> Any:
    """Turn any of our values into data that JSON can hold."""
    return _finite(msgspec.to_builtins(value, enc_hook=str, str_keys=True))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def entry(value: Entry) -> dict[str, Any]:
    return {
        "number": value.number,
        "time": plain(value.time),
        "kind": value.kind,
        "content": value.content,
        "key": value.key,
        "digest": value.digest.hex(),
    }


def state(value: Loaded[Any], fresh: Loaded[Any] | None, refusal: HoldfastError | None) -> dict[str, Any]:
    """A state as stored; ``fresh`` is the same revision as its schema sees it, or else ``refusal`` says why not."""
    return {
        "revision": value.revision,
        "time": plain(value.time),
        "schema": value.schema or None,
        "version": value.version,
        "value": value.value,
        "stale": plain(fresh.stale) if fresh is not None else [],
        "must_verify": list(fresh.must_verify) if fresh is not None else [],
        "schema_error": None if refusal is None else error(refusal),
    }


def error(value: HoldfastError) -> dict[str, Any]:
    """An error with its facts beside its code and its sentence."""
    return {**plain(value.facts), "code": value.code, "message": str(value), "retryable": value.retryable}
