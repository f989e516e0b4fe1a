"""What an item of LangGraph's store is as a file of a folder, and back again. Pure.

The path of an item is its labels and its key with a slash after each label. A slash inside one of them is written as
"%2F", so no two items share a path, and whatever is in a namespace has a path that begins with that namespace's:
("acme",) is never found for ("acme-corp",). What a search looks at is kept beside the value, because each write may
say anew which fields that is. Deliberately absent: reading and writing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, Literal

import msgspec
from langgraph.store.base import InvalidNamespaceError, Item, SearchItem, get_text_at_path

from holdfast.clock import to_datetime
from holdfast.engine.codec import encode
from holdfast.errors import Invalid
from holdfast.ids import check_id
from holdfast.ledger.folder import LONGEST_BYTES
from holdfast.records import File

Index = Literal[False] | Sequence[str] | None

WHOLE = "$"
_MINUTE = 60_000_000
_LONGEST = 1_000_000_000  # minutes, nearly two thousand years: what ends later has no date
_ESCAPES = str.maketrans({"%": "%25", "/": "%2F", "\x00": "%00"})


class ItemVersion(msgspec.Struct, frozen=True):
    """One version of an item. ``value`` is None and ``deleted`` True in the version that ended it."""

    namespace: tuple[str, ...]
    key: str
    version: int
    value: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    deleted: bool = False


# Names


def path_of(namespace: tuple[str, ...], key: str) -> str:
    """The path of an item."""
    if not isinstance(key, str):
        raise Invalid(f"a key is text, not {type(key).__name__}")
    path = prefix_of(namespace) + key.translate(_ESCAPES)
    if (size := len(path.encode("utf-8", "replace"))) > LONGEST_BYTES:
        raise Invalid(
            f"the namespace and key of an item take {size} bytes; at most {LONGEST_BYTES} are kept: use a shorter key, "
            "and put the long one into the value",
            size_bytes=size, limit_bytes=LONGEST_BYTES,
        )  # fmt: skip
    return check_id(path, "the namespace and key of an item")


def prefix_of(namespace: Sequence[str]) -> str:
    """What the paths of a namespace begin with."""
    for label in namespace:
        if not isinstance(label, str) or not label:
            raise InvalidNamespaceError(f"a label of a namespace is a text that is not empty, not {label!r}")
    return "".join(f"{label.translate(_ESCAPES)}/" for label in namespace)


def name_of(path: str) -> tuple[tuple[str, ...], str]:
    """The namespace and key of a path."""
    *labels, key = (part.replace("%2F", "/").replace("%00", "\x00").replace("%25", "%") for part in path.split("/"))
    return tuple(labels), key


def tags_of(namespace: tuple[str, ...]) -> tuple[str, ...]:
    """What an item is found by: every namespace that it is in."""
    return tuple(prefix_of(namespace[:depth]) for depth in range(1, len(namespace) + 1))


# Contents


def content_of(
    namespace: tuple[str, ...], key: str, value: Any, index: Index, ttl: float | None, created: int
) -> dict[str, Any]:
    """What is written of an item. ``created`` is when it came into being, in microseconds since 1970."""
    if not namespace:
        raise InvalidNamespaceError("a namespace has at least one label")
    if not isinstance(value, Mapping):
        raise Invalid(f"the value of {key!r} in {namespace!r} is a dict, not {type(value).__name__}")
    plain = dict(value)
    encode(plain, f"the value of {key!r} in {namespace!r}")  # refused by its own name, before it is walked through
    return {"value": plain, "text": text_of(plain, index), "created": created, "ttl": ttl}


def text_of(value: dict[str, Any], index: Index) -> str | None:
    """What a search sees of a value: the named fields, or nothing."""
    if index is False:
        return None
    if isinstance(index, str) or not isinstance(index, Sequence) or not all(isinstance(path, str) for path in index):
        raise Invalid(f"index is False or a list of fields, not {index!r}")
    found = [_lines(value) if path == WHOLE else get_text_at_path(value, path) for path in index]
    return "\n".join(line for lines in found for line in lines) or None


def _lines(value: Any, name: str = "") -> list[str]:
    """Every leaf of a value with the name it goes by, since "diet: vegan" is found by either word."""
    if isinstance(value, dict):
        return [line for key, inner in value.items() for line in _lines(inner, key)]
    if isinstance(value, list | tuple):
        return [line for inner in value for line in _lines(inner, name)]
    return [] if value is None else [f"{name}: {value}" if name else str(value)]


def ends(now: int, ttl: float | None) -> int | None:
    """When something that is touched now expires; ``ttl`` is in minutes."""
    return None if ttl is None else now + round(ttl * _MINUTE)


def check_ttl(ttl: Any) -> float | None:
    """A time to live in minutes, or None for ever."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not isfinite(ttl) or not 0 < ttl <= _LONGEST:
        raise Invalid(f"ttl is a number of minutes over 0, at most {_LONGEST:,}, or None for ever, not {ttl!r}")
    return ttl


# What callers get


def to_item(file: File) -> Item:
    return Item(**_fields(file))


def to_found(file: File, score: float | None) -> SearchItem:
    return SearchItem(**_fields(file), score=score)


def to_version(file: File) -> ItemVersion:
    namespace, key = name_of(file.path)
    content = {} if file.deleted else file.content
    return ItemVersion(
        namespace=namespace,
        key=key,
        version=file.version,
        value=content.get("value"),
        created_at=file.created if file.deleted else to_datetime(content["created"]),
        updated_at=file.time,
        expires_at=file.expires,
        deleted=file.deleted,
    )


def _fields(file: File) -> dict[str, Any]:
    namespace, key = name_of(file.path)
    created = to_datetime(file.content["created"])
    return {
        "namespace": namespace,
        "key": key,
        "value": file.content["value"],
        "created_at": created,
        "updated_at": file.time,
    }
