"""What one call to remember writes: new memories, and notes that are here already, counted once more.

A note is a memory with no key, name or period of its own, and no event: two events are two. Of two notes that are the
same in every respect, origin and metadata included, the second adds nothing but that it was said again. Deliberately
absent: committing it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.engine.contract import Op, Record
from holdfast.memory.drafts import Remembering
from holdfast.memory.names import same_tag, tags_of
from holdfast.memory.stored import as_remembered, from_plain, read_plain, rewritten
from holdfast.records import Memory

_NOT_A_NOTE = ("once", "key", "object", "corrects", "valid_from", "valid_to")
Plain = dict[str, Any]


def note_tag(collection: str, draft: Remembering, plain: Plain) -> str | None:
    """The tag that a note shares with what says the same; None for what is no note."""
    if draft.kind == "episodic" or any(getattr(draft, what) is not None for what in _NOT_A_NOTE):
        return None
    return same_tag(collection, json.dumps(as_remembered(plain), sort_keys=True))


class WriteBatch:
    """Collects drafts. ``known`` are the notes that are here already, by their tags."""

    def __init__(self, collection: str, time: int, known: Mapping[str, Record]) -> None:
        self._collection, self._time, self._known = collection, time, known
        self._names: dict[str, str] = {}
        self._tags: dict[str, str] = {}
        self.new: dict[str, tuple[Remembering, Plain]] = {}
        self.again: dict[str, tuple[Record, Plain]] = {}

    def add(self, name: str, draft: Remembering, plain: Plain, tag: str | None) -> str:
        """Take in a draft, and return the name of the memory that it is or repeats."""
        if tag is None:
            self.new[name] = (draft, plain)
            return name
        if tag not in self._names:
            record = self._known.get(tag)
            self._names[tag] = name if record is None else record.id
            if record is None:
                self.new[name], self._tags[name] = (draft, plain), tag
                return name
            self.again[record.id] = (record, read_plain(record))
        name = self._names[tag]
        if name in self.new:
            self.new[name] = (draft, self._counted(self.new[name][1]))
        else:
            record, before = self.again[name]
            self.again[name] = (record, self._counted(before))
        return name

    def _counted(self, plain: Plain) -> Plain:
        return {**plain, "count": plain.get("count", 1) + 1, "repeated": self._time}

    def writing(self) -> Iterator[Op]:
        for record, plain in self.again.values():
            yield rewritten(record, plain)

    def tags(self, name: str) -> tuple[str, ...]:
        own = tags_of(self._collection, self.new[name][0])
        return (*own, self._tags[name]) if name in self._tags else own

    def memories(self, time: int) -> dict[str, Memory]:
        """Everything by its name, once it is written."""
        made = {name: from_plain(name, plain, time) for name, (_, plain) in self.new.items()}
        return made | {name: from_plain(name, plain, record.created) for name, (record, plain) in self.again.items()}
