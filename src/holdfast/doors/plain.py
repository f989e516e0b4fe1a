"""Values as plain data that JSON can hold: the one rendering for every door. Programs rely on these names and shapes.

Moments are ISO 8601 in UTC, digests hexadecimal text, bytes base64; what has no number (the age of something never
confirmed) is null. Deliberately absent: printing, and anything of a single door.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from holdfast.errors import HoldfastError
    from holdfast.types import Entry, File, Hit, Loaded, Timeline


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


def file(value: File) -> dict[str, Any]:
    """A file; ``bytes`` says whether its content is base64."""
    return {**plain(value), "bytes": isinstance(value.content, bytes)}


def hit(value: Hit, rank: int, repeats: int | None) -> dict[str, Any]:
    """A hit at its rank; ``repeats`` is the rank of an earlier one that says the same."""
    return {
        "rank": rank,
        "id": value.id,
        "score": round(value.score, 4),
        "kind": value.kind,
        "time": plain(value.time),
        "trust": value.trust,
        "text": value.text,
        "memory": plain(value.memory),
        "entry": None if value.entry is None else {"thread": value.entry.thread, **entry(value.entry)},
        "file": plain(value.file),
        "why": value.why,
        "disputed_by": list(value.disputed_by),
        "superseded_by": value.superseded_by,
        "repeats": repeats,
    }


def timeline(value: Timeline) -> dict[str, Any]:
    """A run's whole story; each step also says how many seconds it took."""
    found: dict[str, Any] = plain(value)
    for shown, step in zip(found["steps"], value.steps, strict=True):
        shown["seconds"] = step.seconds
    return found


def error(value: HoldfastError) -> dict[str, Any]:
    """An error with its facts beside its code and its sentence."""
    return {**plain(value.facts), "code": value.code, "message": str(value), "retryable": value.retryable}
