"""Entities and what links them: who is related to whom, at which time, and what is near.

A link is a memory with a relation and an object. Its time is that of its memory, cut short by whatever superseded or
ended it. An entity is a text compared without case, as subjects are. Deliberately absent: a second store of edges, and
anything that guesses that two entities are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from holdfast.clock import to_micros
from holdfast.errors import Invalid, quoted
from holdfast.memory.facts import timeline
from holdfast.memory.names import folded
from holdfast.records import Memory

MOST_HOPS = 2


class Link(msgspec.Struct, frozen=True):
    """One typed relation between two entities, and when it holds."""

    id: str
    subject: str
    relation: str
    object: str
    since: datetime
    until: datetime | None = None

    def holds(self, moment: datetime) -> bool:
        try:
            return self.since <= moment and (self.until is None or moment < self.until)
        except TypeError:
            to_micros(moment)  # which says what is wrong with it
            raise


class Neighbour(msgspec.Struct, frozen=True):
    """A nearby entity: how many hops away, and the links that lead to it, in order."""

    entity: str
    hops: int
    path: tuple[Link, ...]


def to_links(memories: Iterable[Memory], known_at: datetime | None = None) -> list[Link]:
    """The links among memories, in order; those that were never true are left out. Give facts and corrections too.

    A memory that ends a link ("no longer lives in") is no link.
    """
    return [
        Link(memory.id, memory.subject, memory.relation, memory.object, version.since, version.until)
        for version in timeline(memories, known_at)
        if (memory := version.memory).relation is not None
        and memory.object is not None
        and not version.never
        and not memory.ended
    ]


def check_hops(hops: object) -> None:
    if type(hops) is not int or not 1 <= hops <= MOST_HOPS:
        raise Invalid(f"hops is a whole number from 1 to {MOST_HOPS}, not {quoted(hops)}")


def neighbours(links: Sequence[Link], start: str, hops: int = 1, as_of: datetime | None = None) -> list[Neighbour]:
    """The entities within one or two hops of another, in either direction, nearest first.

    ``as_of`` leaves out the links that do not hold at that moment. Each entity comes once, by its shortest path; of
    paths of the same length by the one whose links come first.
    """
    check_hops(hops)
    around: dict[str, list[Link]] = {}
    for link in links:
        if as_of is None or link.holds(as_of):
            for end in {folded(link.subject), folded(link.object)}:
                around.setdefault(end, []).append(link)
    met, edge = {folded(start)}, [Neighbour(start, 0, ())]
    found: list[Neighbour] = []
    for _ in range(hops):
        edge = [near for here in edge for near in _next(here, around.get(folded(here.entity), ()), met)]
        found += edge
    return found


def _next(here: Neighbour, links: Iterable[Link], met: set[str]) -> list[Neighbour]:
    name, found = folded(here.entity), []
    for link in links:
        other = link.object if folded(link.subject) == name else link.subject
        if folded(other) not in met:
            met.add(folded(other))
            found.append(Neighbour(other, here.hops + 1, (*here.path, link)))
    return found
