"""Which segments are merged: small ones often, large ones rarely, so that a row is written few times.

Tails that are not saved yet grow by doubling. Saved segments are in tiers, each eight times the one below; where a
tier has eight, they become one of the next. Pure. Deliberately absent: saving.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.retrieval.index_store import Saved
from holdfast.retrieval.segment import Segment, merge

LARGEST = 131_072
"""The most rows of one segment: about a hundred megabytes with vectors, which is as much as one commit should write."""
_TIER = 8


class HeldSegment(NamedTuple):
    """A segment in memory, with what is saved of it."""

    segment: Segment
    saved: Saved | None = None


def joins(last: HeldSegment, new: HeldSegment, most: int) -> bool:
    """Whether an unsaved tail is merged with what came after it; adding one document stays cheap however many wait."""
    return last.saved is None and last.segment.rows < 2 * new.segment.rows and last.segment.rows < most


def tiered(held: Sequence[HeldSegment], smallest: int) -> list[HeldSegment]:
    """What to hold from now on: the tail as one segment, and of eight in one tier as many as fit as one."""
    saved = [one for one in held if one.saved is not None]
    found = [*saved, *joined([one for one in held if one.saved is None])]
    tier = 0
    while smallest * _TIER**tier < LARGEST:
        same = [one for one in found if _tier(one.segment.rows, smallest) == tier]
        if len(same) >= _TIER:
            fitting = _fitting(same)
            found = [*(one for one in found if one not in fitting), *joined(fitting)]
        tier += 1
    return found


def joined(held: Sequence[HeldSegment]) -> list[HeldSegment]:
    """Several segments as one, unsaved."""
    if len(held) < 2:
        return list(held)
    return [HeldSegment(merge([one.segment for one in held]))]


def _tier(rows: int, smallest: int) -> int:
    """0 for a saved tail, 1 for what eight of them come to, and so on."""
    tier = 0
    while rows >= smallest * _TIER ** (tier + 1):
        tier += 1
    return tier


def _fitting(held: Sequence[HeldSegment]) -> list[HeldSegment]:
    """As many of them as are together not too large for one segment, the smallest first."""
    found: list[HeldSegment] = []
    for one in sorted(held, key=lambda one: one.segment.rows):
        if sum(other.segment.rows for other in found) + one.segment.rows > LARGEST:
            break
        found.append(one)
    return found if len(found) > 1 else []
