"""What an item of LangGraph's store is as a file of a folder, and back again. Pure.

The path of an item is its labels and its key with a slash after each label, so whatever is in a namespace has a path
that begins with that namespace's: ("acme",) is never found for ("acme-corp",). What a search looks at is kept beside
the value where a write says that it is less than all of it, or where other things stand there too. Deliberately
absent: reading and writing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, Literal

import msgspec
from langgraph.store.base import (
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    TTLConfig,
    get_text_at_path,
    validate_op_namespace,
)

from holdfast.adapters.langgraph.sweeper import check_config, check_ttl
from holdfast.errors import Invalid
from holdfast.extension import LONGEST_BYTES, check_id, decode, encode, escaped, quoted, unescaped
from holdfast.extension import text_of as all_of
from holdfast.types import File

Index = Literal[False] | Sequence[str] | None

WHOLE = "$"


class InvalidNamespace(Invalid, InvalidNamespaceError):
    """A namespace is a tuple of labels, and LangGraph refuses this one: those who catch its error catch this one."""


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
        long = f"the namespace and key of an item take {size} bytes; at most {LONGEST_BYTES} are kept"
        raise Invalid(f"{long}: use a shorter key, and put the long one into the value")
    return check_id(path, "the namespace and key of an item")


def prefix_of(namespace: Sequence[str]) -> str:
    """What the paths of a namespace begin with."""
    return (tags_of(namespace) or ("",))[-1]


def check_labels(namespace: Any) -> Sequence[str]:
    """Refuse what LangGraph refuses, and a text: it is a tuple too, of letters, and nobody means that."""
    if isinstance(namespace, str | bytes) or not isinstance(namespace, Sequence):
        meant = f": write ({namespace!r},)" if isinstance(namespace, str) else ""
        raise InvalidNamespace(f"a namespace is a tuple of labels, not {quoted(namespace)}{meant}")
    try:
        validate_op_namespace(GetOp(tuple(namespace), ""))
    except InvalidNamespaceError as error:
        raise InvalidNamespace(str(error)) from error
    return namespace


def name_of(path: str) -> tuple[tuple[str, ...], str]:
    """The namespace and key of a path."""
    *labels, key = map(unescaped, path.split("/"))
    return tuple(labels), key


def tags_of(namespace: Sequence[str]) -> tuple[str, ...]:
    """What an item is found by: every namespace that it is in."""
    return tuple(accumulate(f"{escaped(label)}/" for label in check_labels(namespace)))


# Contents


def content_of(
    namespace: tuple[str, ...], key: str, value: Any, index: Index, ttl: float | None, created: str | None
) -> dict[str, Any]:
    """What is written of an item. ``created`` is when it came into being, where that is not when its file did."""
    if not namespace:
        raise InvalidNamespace("a namespace has at least one label")
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


def fields_of(index: Any) -> tuple[str, ...]:
    """What is searched in items that do not say so themselves, as LangGraph's own stores are told it."""
    given = check_config(index, IndexConfig, "index", '{"fields": ["text"]}')
    if given.keys() & {"dims", "embed"}:
        raise Invalid(
            "index: leave out dims and embed, and give fields alone; what makes vectors is given to the store beneath: "
            "HoldfastStore(holdfast.open(address, embedder=…))"
        )
    fields = given.get("fields")
    text_of({}, fields := (WHOLE,) if fields is None else fields)  # to hear of nonsense now
    return tuple(fields)


def check_ttl_config(ttl: Any) -> TTLConfig:
    """LangGraph's configuration of how long items live; an empty one if they live for ever."""
    given = check_ttl(ttl, TTLConfig, '{"default_ttl": 60}')
    for name in ("refresh_on_read", "omit_expired"):
        if type(given.get(name, True)) is not bool:
            raise Invalid(f"ttl: {name} is True or False, not {quoted(given[name])}")
    return TTLConfig(**given)


# What callers get


def to_version(file: File) -> ItemVersion:
    return ItemVersion(**told(file), version=file.version, expires_at=file.expires, deleted=file.deleted)


def told(file: File) -> dict[str, Any]:
    """What every kind of item says of itself, by the names that LangGraph gives it."""
    namespace, key = name_of(file.path)
    content = {} if file.deleted else file.content
    # An item comes into being with its file, unless it had been deleted or had expired and was put again.
    created = datetime.fromisoformat(content["created"]) if "created" in content else file.created
    value = content.get("value")
    return {"namespace": namespace, "key": key, "value": value, "created_at": created, "updated_at": file.time}
