"""The log: what an entry is, and how it is written to and read from a thread's stream.

An entry is stored once, as the event of the same number in its thread's stream. Deliberately absent: any change
to what was said. A correction is another entry; hiding one is up to the reader.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Event
from holdfast.errors import Invalid, quoted
from holdfast.ids import check_id, check_text
from holdfast.ledger.json_path import same
from holdfast.records import ENTRY_KINDS, Draft, Entry

_NUMBERED = "\x1f"


def drafts(items: Sequence[Any], kind: str, key: str | None) -> list[Draft]:
    """Read what a caller wants to append; one key over several items becomes one key for each."""
    if not items:
        raise Invalid("nothing to append")
    found = [_draft(item, kind) for item in items]
    if key is None:
        return found
    if any(draft.key for draft in found):
        raise Invalid("give one key for the whole append, or one for each item, not both")
    return keyed(found, key)


def keyed(drafts: Sequence[Draft], key: str) -> list[Draft]:
    """Give each draft without a key one made from a common key: the first gets the key itself, the others a number."""
    key = check_id(key, "key")
    names = [key if number == 1 else f"{key}{_NUMBERED}{number}" for number in range(1, len(drafts) + 1)]
    return [
        draft if draft.key is not None else Draft(draft.kind, draft.content, check_text(name, "key"))
        for draft, name in zip(drafts, names, strict=True)
    ]


def _draft(item: Any, kind: str) -> Draft:
    draft = item if isinstance(item, Draft) else Draft(kind, item)
    if not isinstance(draft.kind, str) or draft.kind not in ENTRY_KINDS:
        raise Invalid(f"{quoted(draft.kind)} is not a kind of entry; the kinds are {', '.join(ENTRY_KINDS)}")
    content = draft.content if type(draft.content) is dict else plain(draft.content)
    _refuse_empty(draft.kind, content)
    return Draft(str.__str__(draft.kind), content, None if draft.key is None else check_id(draft.key, "key"))


def _refuse_empty(kind: str, content: Any) -> None:
    """Refuse empty content, and a message whose role is not text."""
    if isinstance(content, dict | list | tuple) and not content:
        raise Invalid(f"an empty {type(content).__name__} has nothing to append")
    if kind == "message" and isinstance(content, dict) and not isinstance(content.get("role"), str | None):
        raise Invalid(f"the role of a message is text, not {quoted(content['role'])}")


def plain(content: Any) -> Any:
    """Turn a message object of a client library into the plain data it stands for."""
    if content is None or isinstance(content, str | int | float):
        what = "string" if isinstance(content, str) else type(content).__name__
        raise Invalid(f'a bare {what} has no role; append {{"role": …, "content": …}} or holdfast.note("…")')
    if isinstance(content, type):
        raise Invalid(f"{content.__name__} is a class; append an instance of it")
    try:
        if hasattr(content, "model_dump"):
            return content.model_dump(mode="json", exclude_none=True)
        if isinstance(content, msgspec.Struct) or dataclasses.is_dataclass(content):
            return msgspec.to_builtins(content)
    except Exception as error:  # the caller's serialiser may raise anything
        raise Invalid(f"content: a {type(content).__name__} cannot be turned into plain data: {error}") from error
    return content


def copied(draft: Draft) -> Draft:
    """The same draft with its own copy of the content; refuse here what cannot be stored."""
    return Draft(draft.kind, decode(encode(draft.content, "content")), draft.key)


def to_event(draft: Draft, time: int) -> Event:
    return Event(draft.kind, encode(draft.content, "content"), time, draft.key)


def same_entry(stored: Event, offered: Event) -> bool:
    """Whether content is the same, whatever the order of its fields, so that a key may be repeated."""
    if stored.kind != offered.kind:
        return False
    return stored.body == offered.body or same(decode(stored.body), decode(offered.body))


def to_entry(thread: str, event: Event) -> Entry:
    return Entry(thread, event.position, event.kind, decode(event.body), event.key, event.time, event.digest)
