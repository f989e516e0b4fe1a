"""What a caller wants remembered, and whether it can be.

A ``Remembering`` is filled in freely; ``checked`` refuses what makes no sense, with a message that says what to
change, and fills in what was left out. Nothing is repaired silently and the text is kept as it was given. Deliberately
absent: ids and times (the collection gives them) and the size of a text (the codec has the limit).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from holdfast.checks import check_choice
from holdfast.clock import to_datetime, to_micros
from holdfast.errors import Invalid, quoted
from holdfast.ids import check_id
from holdfast.memory.metadata import check_metadata, to_vector
from holdfast.records import MEMORY_KINDS, TRUST, EntryRef, Origin, OwnVector

_NO_ORIGIN = Origin()
_PARTS = ("by", "channel", "tool")


class Remembering(msgspec.Struct, frozen=True):
    """Something to be added to a collection.

    ``once`` is the caller's own name for it: the same content under it again returns what is stored. ``corrects`` and
    ``ended`` are set by ``MemoryCollection.correct`` and ``MemoryCollection.end``.
    """

    text: str = ""
    kind: str = "semantic"
    subject: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    origin: Any = None
    trust: str = "stated"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    relation: str | None = None
    object: str | None = None
    once: str | None = None
    type: str | None = None
    metadata: Any = None
    vector: Any = None
    model: str | None = None
    corrects: str | None = None
    ended: bool = False


def checked(draft: Remembering, subject: str) -> Remembering:
    """The draft with everything in its final form; ``subject`` is whom it is about unless it says so itself."""
    if not isinstance(draft, Remembering):
        raise Invalid(f"give a Remembering, not {type(draft).__name__}")
    about = subject if draft.subject is None else _name(draft.subject, "subject")
    valid_from, valid_to = _validity(draft.valid_from, draft.valid_to)
    relation, object = _link(draft.relation, draft.object)
    return Remembering(
        text=_text(draft.text, f"{about} {relation} {object}" if relation is not None else None),
        kind=check_choice("kind", draft.kind, MEMORY_KINDS),
        subject=about,
        key=None if draft.key is None else _name(draft.key, "key"),
        tags=check_labels(draft.tags),
        importance=_importance(draft.importance),
        origin=to_origin(draft.origin),
        trust=check_trust(draft.trust),
        valid_from=valid_from,
        valid_to=valid_to,
        relation=relation,
        object=object,
        once=None if draft.once is None else check_id(draft.once, "once"),
        type=None if draft.type is None else _name(draft.type, "type"),
        metadata=check_metadata(draft.metadata),
        vector=draft.vector if isinstance(draft.vector, OwnVector) else to_vector(draft.vector, draft.model),
        corrects=draft.corrects,
        ended=draft.ended,
    )


def check_trust(trust: Any) -> str:
    """Return it if it is a degree of trust."""
    return check_choice("trust", trust, TRUST)


def to_origin(given: Any) -> Origin:
    """An origin from what callers write: nothing, a name, the parts of one, or one."""
    if given is None:
        return _NO_ORIGIN
    if isinstance(given, str):
        return Origin(by=_name(given, "origin"))
    if isinstance(given, dict):
        unknown = set(given) - {*_PARTS, "entries"}
        if unknown:
            raise Invalid(f"an origin has by, channel, tool and entries, not {', '.join(sorted(map(str, unknown)))}")
        given = Origin(**{**given, "entries": given.get("entries") or ()})
    if not isinstance(given, Origin):
        raise Invalid(f"an origin is a name, a dict or an Origin, not {type(given).__name__}")
    for what in _PARTS:
        if getattr(given, what) is not None:
            _name(getattr(given, what), f"{what} of an origin")
    if isinstance(given.entries, str | bytes | EntryRef) or not isinstance(given.entries, Iterable):
        raise Invalid(f"the entries of an origin are pairs of thread and number, not {quoted(given.entries)}")
    return msgspec.structs.replace(given, entries=tuple(_entry(entry) for entry in given.entries))


def check_labels(tags: Any) -> tuple[str, ...]:
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise Invalid(f"tags must be a collection of strings, not {quoted(tags)}")
    return tuple(sorted({check_id(tag, "tag") for tag in tags}))


def _text(text: object, instead: str | None) -> str:
    if instead is not None and (text is None or text == ""):
        return instead
    if not isinstance(text, str):
        raise Invalid(f"the text to remember must be a string, not {type(text).__name__}")
    if not text.strip():
        raise Invalid("cannot remember an empty text")
    return text if type(text) is str else str.__str__(text)


def _name(value: object, what: str) -> str:
    name = check_id(value, what)
    if not name.strip():
        raise Invalid(f"{what} must not be blank", what=what)
    return name


def _importance(value: object) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not 0 <= value <= 1:  # type: ignore[operator]
        raise Invalid(f"importance is a number from 0 to 1, not {quoted(value)}")
    return float(value)  # type: ignore[arg-type]


def _validity(start: datetime | None, end: datetime | None) -> tuple[datetime | None, datetime | None]:
    start, end = _moment(start, "valid_from"), _moment(end, "valid_to")
    if start is not None and end is not None and end <= start:
        raise Invalid(f"valid_to ({end.isoformat()}) must be after valid_from ({start.isoformat()})")
    return start, end


def _moment(moment: datetime | None, what: str) -> datetime | None:
    if moment is None:
        return None
    try:
        return to_datetime(to_micros(moment))
    except Invalid as error:
        raise Invalid(f"{what}: {error}", what=what) from error


def _link(relation: object, object: object) -> tuple[str | None, str | None]:
    if (relation is None) != (object is None):
        raise Invalid("a link needs both a relation and an object")
    if relation is None:
        return None, None
    return _name(relation, "relation"), _name(object, "object")


def _entry(given: Any) -> EntryRef:
    if isinstance(given, dict) and set(given) == {"thread", "number"}:
        given = EntryRef(**given)
    elif isinstance(given, tuple | list) and len(given) == 2:
        given = EntryRef(*given)
    if not isinstance(given, EntryRef):
        raise Invalid(f"an entry of an origin is a pair of thread and number, not {quoted(given)}")
    if type(given.number) is not int or not 1 <= given.number < 2**63:
        raise Invalid(f"the number of an entry is a whole number, 1 or more, not {quoted(given.number)}")
    return EntryRef(check_id(given.thread, "thread id"), given.number)
