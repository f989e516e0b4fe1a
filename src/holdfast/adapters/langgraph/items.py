"""What an item of LangGraph's store is as a file of a folder, and back again. Pure.

The path of an item is its labels and its key with a slash after each label, so whatever is in a namespace has a path
that begins with that namespace's: ("acme",) is never found for ("acme-corp",). What a search looks at is kept beside
the value where a write says that it is less than all of it, or where other things stand there too. Deliberately
absent: reading and writing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, Literal

import msgspec
from langgraph.store.base import IndexConfig, InvalidNamespaceError, Item, SearchItem, TTLConfig, get_text_at_path

from holdfast.errors import Invalid
from holdfast.extension import LONGEST_BYTES, check_id, decode, encode, escaped, quoted, unescaped
from holdfast.extension import text_of as all_of
from holdfast.types import File

Index = Literal[False] | Sequence[str] | None

WHOLE = "$"
_MINUTE = 60_000_000
_LONGEST = 1_000_000_000  # minutes, nearly two thousand years: what ends later has no date


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
    path = prefix_of(namespace) + escaped(key)
    if (size := len(path.encode("utf-8", "replace"))) > LONGEST_BYTES:
        raise Invalid(
            f"the namespace and key of an item take {size} bytes; at most {LONGEST_BYTES} are kept: use a shorter key, "
            "and put the long one into the value",
            size_bytes=size, limit_bytes=LONGEST_BYTES,
        )  # fmt: skip
    return check_id(path, "the namespace and key of an item")


def prefix_of(namespace: Sequence[str]) -> str:
    """What the paths of a namespace begin with."""
    for label in check_labels(namespace):
        if not isinstance(label, str) or not label:
            raise InvalidNamespaceError(f"a label of a namespace is a text that is not empty, not {quoted(label)}")
    return "".join(f"{escaped(label)}/" for label in namespace)


def check_labels(namespace: Any) -> Sequence[str]:
    """A namespace is a tuple; a text is one too, of letters, and nobody means that."""
    if isinstance(namespace, str | bytes) or not isinstance(namespace, Sequence):
        meant = f": write ({namespace!r},)" if isinstance(namespace, str) else ""
        raise Invalid(f"a namespace is a tuple of labels, not {quoted(namespace)}{meant}")
    return namespace


def name_of(path: str) -> tuple[tuple[str, ...], str]:
    """The namespace and key of a path."""
    *labels, key = map(unescaped, path.split("/"))
    return tuple(labels), key


def tags_of(namespace: tuple[str, ...]) -> tuple[str, ...]:
    """What an item is found by: every namespace that it is in."""
    return tuple(prefix_of(namespace[:depth]) for depth in range(1, len(namespace) + 1))


# Contents


def content_of(
    namespace: tuple[str, ...], key: str, value: Any, index: Index, ttl: float | None, created: str | None
) -> dict[str, Any]:
    """What is written of an item. ``created`` is when it came into being, where that is not when its file did."""
    if not namespace:
        raise InvalidNamespaceError("a namespace has at least one label")
    if not isinstance(value, Mapping):
        raise Invalid(f"the value of {key!r} in {namespace!r} is a dict, not {type(value).__name__}")
    # Refused by its own name, before it is walked through.
    plain = decode(encode(dict(value), f"the value of {key!r} in {namespace!r}"))
    beside = {name: told for name, told in (("created", created), ("ttl", ttl)) if told is not None}
    text = text_of(plain, index)
    if not beside and text == all_of({"value": plain}):
        return {"value": plain}
    return {"value": plain, "text": text, **beside}


def text_of(value: dict[str, Any], index: Index) -> str | None:
    """What a search sees of a value: the named fields, or nothing."""
    if index is False:
        return None
    if isinstance(index, str) or not isinstance(index, Sequence) or not all(isinstance(path, str) for path in index):
        raise Invalid(f"index is False or a list of fields, not {quoted(index)}")
    found = [[all_of({"value": value})] if path == WHOLE else get_text_at_path(value, path) for path in index]
    return "\n".join(line for lines in found for line in lines)


def ends(now: int, ttl: float) -> int:
    """When something that is touched now expires; ``ttl`` is in minutes."""
    return now + round(ttl * _MINUTE)


def check_ttl(ttl: Any) -> float | None:
    """A time to live in minutes, or None for ever."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not isfinite(ttl) or not 0 < ttl <= _LONGEST:
        raise Invalid(f"ttl is a number of minutes over 0, at most {_LONGEST:,}, or None for ever, not {quoted(ttl)}")
    return ttl


def fields_of(fields: Sequence[str] | None, index: Any) -> tuple[str, ...]:
    """What is searched in items that do not say so themselves, as this store is told it or as LangGraph's own are."""
    if index is not None:
        given = _checked(index, IndexConfig, "index", '{"fields": ["text"]}')
        if given.keys() & {"dims", "embed"}:
            raise Invalid(
                "index: what makes vectors is given to the store beneath, holdfast.open(address, embedder=…), and "
                "knows how long they are: leave out dims and embed, and give fields alone"
            )
        if fields is not None:
            raise Invalid("fields and index say the same: give one of them")
        fields = given.get("fields")
    text_of({}, fields := (WHOLE,) if fields is None else fields)  # to hear of nonsense now
    return tuple(fields)


def check_ttl_config(ttl: Any) -> TTLConfig | None:
    """LangGraph's configuration of how long items live, or None where they do for ever."""
    if ttl is None:
        return None
    given = _checked(ttl, TTLConfig, "ttl", '{"default_ttl": 60}')
    check_ttl(given.get("default_ttl"))
    for name in ("refresh_on_read", "omit_expired"):
        if type(given.get(name, True)) is not bool:
            raise Invalid(f"ttl: {name} is True or False, not {quoted(given[name])}")
    return TTLConfig(**given)


def _checked(config: Any, known: Any, name: str, such: str) -> dict[str, Any]:
    """A configuration as LangGraph has it; a name that is none of its own would be passed over."""
    if not isinstance(config, Mapping):
        raise Invalid(f"{name} is a dict such as {such}, not {quoted(config)}")
    if unknown := [key for key in config if key not in known.__annotations__]:
        raise Invalid(f"{name}: there is no {unknown[0]!r}; there are {', '.join(sorted(known.__annotations__))}")
    return dict(config)


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
        created_at=created(file),
        updated_at=file.time,
        expires_at=file.expires,
        deleted=file.deleted,
    )


def created(file: File) -> datetime:
    """When an item came into being: with its file, unless it had been deleted or had expired and was put again."""
    told = None if file.deleted else file.content.get("created")
    return file.created if told is None else datetime.fromisoformat(told)


def _fields(file: File) -> dict[str, Any]:
    namespace, key = name_of(file.path)
    return {
        "namespace": namespace,
        "key": key,
        "value": file.content["value"],
        "created_at": created(file),
        "updated_at": file.time,
    }
