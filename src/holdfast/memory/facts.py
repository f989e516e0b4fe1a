"""What is true, computed from everything remembered: a pure function, independent of the order of arrival.

Memories with the same subject and key are versions of one fact. In the order of (valid_from, recorded_at, id) each
holds until its own end or the beginning of the next one, whichever comes first. A version that has ``ended`` holds no
value. What another memory ``corrects`` was never true, from the moment that became known; a correction may be corrected
in turn. One that ``corrects`` and has ``ended`` says that a single memory is no longer true.

Trust has two rules. With a ``trust``, only memories of at least that trust count: the others
take no part, neither as values nor as corrections. And in any case, a correction (or an end of a single
memory) counts for nothing against a memory that is trusted more than the correction itself.

There are two times: ``as_of`` is when something is true, ``known_at`` is what was known by then. What was
forgotten never takes part: without it, the version before it continues to hold. Deliberately absent: any
model, any store, and the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from holdfast.clock import to_micros
from holdfast.memory.names import folded, in_order
from holdfast.records import TRUST, Memory

_RANK = {trust: rank for rank, trust in enumerate(TRUST)}


class FactVersion(msgspec.Struct, frozen=True):
    """One value of a fact, or a memory without a key, and when it holds: from ``since`` until ``until``.

    ``superseded_by`` is the version that cut it short. With ``corrected_by`` it was never true and never holds.
    """

    memory: Memory
    since: datetime
    until: datetime | None = None
    superseded_by: str | None = None
    corrected_by: str | None = None

    def holds(self, moment: datetime) -> bool:
        """Whether it is true at a moment. An ended version holds as well: it says that there is no value."""
        try:
            if self.corrected_by is not None or moment < self.since:
                return False
            return self.until is None or moment < self.until
        except TypeError:
            to_micros(moment)  # which says what is wrong with it
            raise

    @property
    def never(self) -> bool:
        """Whether it never holds."""
        return self.corrected_by is not None or (self.until is not None and self.until <= self.since)


def order(memory: Memory) -> tuple[datetime, datetime, str]:
    """What versions of one fact are sorted by."""
    return memory.valid_from, memory.recorded_at, in_order(memory.id)


def rank(trust: str) -> int:
    """A trust as a number, for comparison."""
    return _RANK[trust]


def fact_of(memory: Memory) -> tuple[str, str] | None:
    """The fact that a memory is a value of: its subject and key, as they are compared."""
    return None if memory.key is None else (folded(memory.subject), folded(memory.key))


def denial(id: str) -> str:
    """The text of a correction without a replacement."""
    return f"{id} was never true"


def silent(memory: Memory) -> bool:
    """Whether it only says that another memory has ended or was never true."""
    return memory.ended or (memory.corrects is not None and memory.text == denial(memory.corrects))


def known(memories: Iterable[Memory], known_at: datetime | None = None, trust: str | None = None) -> list[Memory]:
    """Those that were known by then, are trusted that much and are not forgotten, each once."""
    least = 0 if trust is None else _RANK[trust]
    return list(
        {
            memory.id: memory
            for memory in memories
            if memory.forgotten_at is None
            and (known_at is None or memory.recorded_at <= known_at)
            and _RANK[memory.trust] >= least
        }.values()
    )


def timeline(
    memories: Iterable[Memory], known_at: datetime | None = None, trust: str | None = None
) -> list[FactVersion]:
    """Every memory with the time it holds, in order. Give all versions of a fact, and all corrections."""
    seen = known(memories, known_at, trust)
    corrected, ends = corrections(seen)
    groups: dict[tuple[str, str] | str, list[Memory]] = {}
    for memory in seen:
        groups.setdefault(fact_of(memory) or memory.id, []).append(memory)
    found = [version for group in groups.values() for version in _versions(group, corrected, ends)]
    return sorted(found, key=lambda version: order(version.memory))


def _versions(group: list[Memory], corrected: dict[str, str], ends: dict[str, Memory]) -> list[FactVersion]:
    found: list[FactVersion] = []
    later: Memory | None = None
    for memory in sorted(group, key=order, reverse=True):
        if memory.id in corrected:
            found.append(FactVersion(memory, memory.valid_from, memory.valid_to, None, corrected[memory.id]))
            continue
        until, by = memory.valid_to, None
        for other in (ends.get(memory.id), later):
            if other is not None and (until is None or other.valid_from < until):
                until, by = other.valid_from, other.id
        found.append(FactVersion(memory, memory.valid_from, until, by))
        later = memory
    return found


def corrections(seen: Sequence[Memory]) -> tuple[dict[str, str], dict[str, Memory]]:
    """Which ids were never true, and which are no longer true, each with the memory that says so.

    A correction that was itself corrected does not count, nor does one trusted less than the memory it is about.
    The latest comes first: nothing corrects what came after it.
    """
    trusted = {memory.id: _RANK[memory.trust] for memory in seen}
    corrected: dict[str, str] = {}
    ends: dict[str, Memory] = {}
    pointing = (memory for memory in seen if memory.corrects is not None)
    for memory in sorted(pointing, key=lambda memory: (memory.recorded_at, in_order(memory.id)), reverse=True):
        assert memory.corrects is not None
        if memory.id in corrected or trusted[memory.id] < trusted.get(memory.corrects, 0):
            continue
        if not memory.ended:
            corrected.setdefault(memory.corrects, memory.id)
        elif memory.corrects not in ends or order(memory) < order(ends[memory.corrects]):
            ends[memory.corrects] = memory
    return corrected, ends


def facts(
    memories: Iterable[Memory], as_of: datetime, known_at: datetime | None = None, trust: str | None = None
) -> list[Memory]:
    """The value of every fact at a moment, by subject and key; a fact that has none then is left out."""
    holding = [
        version.memory
        for version in timeline(memories, known_at, trust)
        if version.memory.key is not None and not version.memory.ended and version.holds(as_of)
    ]
    return sorted(holding, key=lambda memory: (folded(memory.subject), folded(memory.key or ""), in_order(memory.id)))


def outdated(
    memories: Iterable[Memory], as_of: datetime, known_at: datetime | None = None, trust: str | None = None
) -> dict[str, str]:
    """The ids of what is not true at a moment, each with why: corrected, superseded, ended, over, later or forgotten.

    It includes what a correction points at even if that memory itself was not given.
    """
    given = list(memories)
    why = {memory.id: "forgotten" for memory in given if memory.forgotten_at is not None}
    corrected, ends = corrections(known(given, known_at, trust))
    why.update((id, "ended") for id, end in ends.items() if end.valid_from <= as_of)
    why.update((id, "corrected") for id in corrected)
    for version in timeline(given, known_at, trust):
        if version.memory.id not in why and not version.holds(as_of):
            why[version.memory.id] = _why(version, as_of)
    return why


def _why(version: FactVersion, as_of: datetime) -> str:
    if as_of < version.since:
        return "later"
    return "over" if version.superseded_by is None else "superseded"
