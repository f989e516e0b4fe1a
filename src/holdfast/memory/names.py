"""The names of memories, collections and their lookup tags in an engine.

Subjects, keys and entities are compared without case and with single spaces; the text that was given is kept. A tag of
a record is the way to it: it follows from the collection and what is looked up. Deliberately absent:
reading and writing.
"""

from __future__ import annotations

from base64 import b32decode, b32encode
from binascii import Error
from collections.abc import Iterator
from hashlib import blake2b
from unicodedata import normalize
from urllib.parse import quote

from holdfast.engine.contract import Scope
from holdfast.errors import Invalid, quoted
from holdfast.ids import MAX_ID_BYTES
from holdfast.memory.drafts import Remembering

MEMORY = "memory"
COLLECTION = "memories"
_NOBODY = "common"
_COLLECTION_BYTES = 200
_NUMBER = 2**63 - 1
_ID_CHARS = 14
_IN_ORDER = str.maketrans("234567", "{|}~\x7f\x80")  # base32 has its digits after its letters, ASCII before them


def folded(text: str) -> str:
    """A subject, key or entity as it is compared."""
    return " ".join(normalize("NFKC", text).casefold().split())


def collection_id(scope: Scope) -> str:
    """The name of the collection of a pair of user and agent."""
    pair = (("user", scope.user), ("agent", scope.agent))
    name = "&".join(f"{what}={quote(who, safe='')}" for what, who in pair if who is not None) or _NOBODY
    return name if len(name) <= _COLLECTION_BYTES else _hash(name)


def subject_of(scope: Scope) -> str:
    """Whom a memory is about by default."""
    return scope.user or scope.agent or _NOBODY


def memory_id(number: int) -> str:
    """The id of a memory: a number of 63 bits as fourteen characters."""
    return "m" + b32encode(number.to_bytes(8, "big"))[:13].decode().lower()


def number_of(id: str) -> int:
    """The number that an id stands for."""
    try:
        if not isinstance(id, str) or len(id) != _ID_CHARS or id[0] != "m" or not id.islower():
            raise ValueError
        number = int.from_bytes(b32decode(id[1:].upper() + "==="), "big")
    except (ValueError, Error):
        raise Invalid(
            f"{quoted(id)} is not the id of a memory; ids begin with m and have {_ID_CHARS} characters"
        ) from None
    return number


def in_order(id: str) -> str:
    """What ids are sorted by: as their numbers would be."""
    return id.translate(_IN_ORDER)


def once_number(collection: str, once: str) -> int:
    """The number of a memory that a caller named, so that remembering it twice is remembering it once."""
    return int.from_bytes(blake2b(f"{collection}\x00{once}".encode(), digest_size=8).digest(), "big") & _NUMBER


# Tags


def fact_tag(collection: str, subject: str | None = None, key: str | None = None) -> str:
    """Every value of a fact; of one fact when it is named."""
    return (
        f"fact@{collection}"
        if subject is None or key is None
        else f"fact@{collection}:{_hash(folded(subject), folded(key))}"
    )


def key_tag(collection: str, key: str) -> str:
    """Every value of the facts that share a key, whoever they are about."""
    return f"key@{collection}:{_hash(folded(key))}"


def link_tag(collection: str, entity: str | None = None) -> str:
    """Every link; those of one entity, on either end, when it is named."""
    return f"link@{collection}" if entity is None else f"link@{collection}:{_hash(folded(entity))}"


def kind_tag(collection: str, kind: str) -> str:
    return f"kind@{collection}:{kind}"


def label_tag(collection: str, label: str) -> str:
    """What a caller tagged."""
    tag = f"tag@{collection}:{label}"
    return tag if len(tag.encode()) <= MAX_ID_BYTES else f"tag@{collection}:{_hash(label)}"


def type_tag(collection: str, type: str) -> str:
    return f"type@{collection}:{_hash(type)}"


def vector_tag(collection: str, model: str | None = None) -> str:
    """What has a vector of its caller's; of one model when it is named."""
    return f"vector@{collection}" if model is None else f"vector@{collection}:{_hash(model)}"


def same_tag(collection: str, said: str) -> str:
    """Notes that say the same in every respect."""
    return f"same@{collection}:{_hash(said)}"


def correction_tag(collection: str, id: str | None = None) -> str:
    """Memories that say another one was never true or has ended; with an id, those about that memory."""
    return f"correction@{collection}" if id is None else f"correction@{collection}:{_hash(id)}"


def thread_tag(thread: str) -> str:
    """What comes from a thread, whatever collection it is in."""
    return f"from@{_hash(thread)}"


def tags_of(collection: str, draft: Remembering) -> tuple[str, ...]:
    """The tags of a checked draft's record."""
    return tuple(sorted(set(_tags(collection, draft))))


def _tags(collection: str, draft: Remembering) -> Iterator[str]:
    assert draft.subject is not None
    yield kind_tag(collection, draft.kind)
    if draft.key is not None:
        yield fact_tag(collection)
        yield fact_tag(collection, draft.subject, draft.key)
        yield key_tag(collection, draft.key)
    if draft.object is not None:
        yield link_tag(collection)
        yield link_tag(collection, draft.subject)
        yield link_tag(collection, draft.object)
    if draft.corrects is not None:
        yield correction_tag(collection)
        yield correction_tag(collection, draft.corrects)
    if draft.type is not None:
        yield type_tag(collection, draft.type)
    if draft.vector is not None:
        yield vector_tag(collection)
        yield vector_tag(collection, draft.vector.model)
    yield from (label_tag(collection, label) for label in draft.tags)
    yield from (thread_tag(entry.thread) for entry in draft.origin.entries)


def _hash(*parts: str) -> str:
    return blake2b("\x00".join(parts).encode(), digest_size=16).hexdigest()
