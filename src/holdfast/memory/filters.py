"""Which memories a listing wants: checked once, then asked of each. Deliberately absent: order, and reading."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from math import inf
from typing import Any, TypedDict, Unpack

import msgspec

from holdfast.checks import check_choice, check_flag
from holdfast.ids import check_id
from holdfast.memory.metadata import marks_of, wanted_marks
from holdfast.memory.names import folded, in_order
from holdfast.records import MEMORY_KINDS, Memory

_SOME = 1_000


class ListFilters(TypedDict, total=False):
    """Filters for a listing. ``before`` is where the page before this one ended."""

    kind: str | None
    subject: str | None
    tag: str | None
    type: str | None
    where: Mapping[str, Any] | None
    before: Memory | None
    forgotten: bool


class MemoryFilter(msgspec.Struct, frozen=True):
    """Filters in their final form."""

    kinds: tuple[str, ...] = MEMORY_KINDS
    subject: str | None = None
    tag: str | None = None
    type: str | None = None
    marks: frozenset[str] = frozenset()
    before: Memory | None = None
    forgotten: bool = False

    @staticmethod
    def of(**only: Unpack[ListFilters]) -> MemoryFilter:
        kind, subject, tag, type = only.get("kind"), only.get("subject"), only.get("tag"), only.get("type")
        return MemoryFilter(
            MEMORY_KINDS if kind is None else (check_choice("kind", kind, MEMORY_KINDS),),
            None if subject is None else folded(check_id(subject, "subject")),
            None if tag is None else check_id(tag, "tag"),
            None if type is None else check_id(type, "type"),
            frozenset(wanted_marks(only.get("where"))),
            only.get("before"),
            check_flag("forgotten", only.get("forgotten", False)),
        )

    @property
    def by_stream(self) -> float | None:
        """How many of the newest to go through for this: all, also for a page that follows another; some for a kind,
        which may be a seldom one; and None where a tag leads to what is wanted."""
        if self.forgotten:
            return None
        if self.before is not None:
            return inf
        if self.tag is not None or self.type is not None:
            return None
        return inf if len(self.kinds) > 1 else _SOME

    def accepts(self, memory: Memory) -> bool:
        return (
            (memory.forgotten_at is not None) == self.forgotten
            and memory.kind in self.kinds
            and (self.subject is None or folded(memory.subject) == self.subject)
            and (self.tag is None or self.tag in memory.tags)
            and (self.type is None or memory.type == self.type)
            and (self.before is None or age(memory) < age(self.before))
            and (not self.marks or self.marks <= set(marks_of(memory.metadata)))
        )


def age(memory: Memory) -> tuple[datetime, str]:
    """What listings go by: when it was recorded."""
    return memory.recorded_at, in_order(memory.id)
