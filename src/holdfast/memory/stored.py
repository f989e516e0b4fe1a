"""A memory as it is stored: plain data with a version inside, and back.

Empty fields are not written, so most bodies are little more than their text. When a memory came to be known is the
time of its record, which the engine gives; a memory without ``valid_from`` is true from then on. Deliberately absent:
what a memory means.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Put, Record
from holdfast.errors import Corrupt, Unsupported
from holdfast.memory.drafts import Remembering
from holdfast.records import MEMORY_KINDS, TRUST, EntryRef, Memory, Origin, OwnVector

_log = logging.getLogger(__name__)
VERSION = 1
_SAID = ("key", "relation", "object", "corrects", "type")
_LATER = ("version", "forgotten", "uses", "helped", "used", "count", "repeated", "recalls", "recalled")
_NO_ORIGIN = Origin()


def to_plain(draft: Remembering) -> dict[str, Any]:
    """A checked draft as plain data."""
    plain: dict[str, Any] = {
        "version": VERSION, "text": draft.text, "kind": draft.kind, "subject": draft.subject, "trust": draft.trust,
        "importance": draft.importance,
    }  # fmt: skip
    plain.update((name, value) for name in _SAID if (value := getattr(draft, name)) is not None)
    if draft.tags:
        plain["tags"] = list(draft.tags)
    if draft.origin != _NO_ORIGIN:
        plain["origin"] = _plain_origin(draft.origin)
    if draft.valid_from is not None:
        plain["valid_from"] = to_micros(draft.valid_from)
    if draft.valid_to is not None:
        plain["valid_to"] = to_micros(draft.valid_to)
    if draft.ended:
        plain["ended"] = True
    if draft.metadata:
        plain["metadata"] = draft.metadata
    if draft.vector is not None:
        plain["vector"] = [draft.vector.model, draft.vector.data]
    return plain


def to_body(plain: dict[str, Any]) -> bytes:
    return encode(plain, "memory")


def rewritten(record: Record, plain: dict[str, Any]) -> Put:
    """The write that changes what is recorded about a memory, if nobody else did so first."""
    return Put(record.kind, record.id, to_body(plain), record.version, record.scope, record.tags, record.expires)


def read_plain(record: Record) -> dict[str, Any]:
    """What a record holds, or ``Corrupt``, or ``Unsupported`` when newer code wrote it."""
    plain = decode(record.body)
    version = plain.get("version") if isinstance(plain, dict) else None
    if type(version) is not int:
        raise Corrupt(f"memory {record.id!r} is not a stored memory; run verify")
    if version > VERSION:
        raise Unsupported(f"memory {record.id!r} was written by a newer version; upgrade holdfast")
    result: dict[str, Any] = plain
    return result


def to_memory(record: Record) -> Memory:
    """A memory from its record."""
    plain = read_plain(record)
    try:
        memory = from_plain(record.id, plain, record.created)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, msgspec.ValidationError) as error:
        raise Corrupt(f"memory {record.id!r} is not a stored memory: {error!r}; run verify") from error
    if not _sound(memory):
        raise Corrupt(f"memory {record.id!r} is not a stored memory: one of its fields has the wrong type; run verify")
    return memory


def readable(records: Iterable[Record]) -> Iterator[Memory]:
    """The memories of records, without unreadable ones: a damaged one must not hide all others.

    ``verify`` names them; here the log does, once.
    """
    for record in records:
        try:
            yield to_memory(record)
        except (Corrupt, Unsupported) as error:
            _say_once(str(error))


@lru_cache(1024)
def _say_once(why: str) -> None:
    _log.warning("a memory is left out: %s", why)


def _sound(memory: Memory) -> bool:
    origin = memory.origin
    said = (memory.key, memory.relation, memory.object, memory.corrects, memory.type)
    maybe = (*said, origin.by, origin.channel, origin.tool)
    return (
        type(memory.text) is str
        and type(memory.subject) is str
        and memory.kind in MEMORY_KINDS
        and memory.trust in TRUST
        and type(memory.importance) in (float, int)
        and type(memory.ended) is bool
        and all(type(number) is int for number in (memory.uses, memory.helped, memory.count, memory.recalls))
        and type(memory.metadata) is dict
        and (memory.vector is None or (type(memory.vector.model), type(memory.vector.data)) == (str, str))
        and all(text is None or type(text) is str for text in maybe)
        and all(type(tag) is str for tag in memory.tags)
        and all((type(entry.thread), type(entry.number)) == (str, int) for entry in origin.entries)
    )


def from_plain(id: str, plain: dict[str, Any], created: int) -> Memory:
    """A memory from its stored data and the moment it became known."""
    recorded = to_datetime(created)
    get = plain.get
    return Memory(
        id, plain["text"], plain["kind"], plain["subject"], recorded, _moment(get("valid_from")) or recorded,
        _moment(get("valid_to")), get("key"), get("relation"), get("object"), tuple(get("tags", ())),
        plain["importance"], _origin(get("origin")), plain["trust"], get("corrects"), get("ended", False),
        _moment(get("forgotten")), get("uses", 0), get("helped", 0), get("type"), get("metadata", {}),
        None if get("vector") is None else OwnVector(*plain["vector"]), get("count", 1), _moment(get("repeated")),
        _moment(get("used")), get("recalls", 0), _moment(get("recalled")),
    )  # fmt: skip


def as_remembered(plain: dict[str, Any]) -> dict[str, Any]:
    """The remembered content, without later changes and independent of how it is written."""
    return {name: value for name, value in plain.items() if name not in _LATER}


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)


def _plain_origin(origin: Origin) -> dict[str, Any]:
    plain: dict[str, Any] = {
        name: value for name in ("by", "channel", "tool") if (value := getattr(origin, name)) is not None
    }
    if origin.entries:
        plain["entries"] = [[entry.thread, entry.number] for entry in origin.entries]
    return plain


def _origin(plain: dict[str, Any] | None) -> Origin:
    if plain is None:
        return _NO_ORIGIN
    entries = tuple(EntryRef(thread, number) for thread, number in plain.get("entries", ()))
    return Origin(plain.get("by"), plain.get("channel"), plain.get("tool"), entries)
