"""What the hits of one recall say of one another: which contradict, which outdates which, and the newer one first.

Facts with a key were settled before. Of notes and messages without one the rules of ``memory.superseding`` and
``memory.conflicts`` tell; the later one counts, if it is trusted at least as much. One hit at most is moved, to just
above the best one that it outdates or contradicts, and none where the question is about the past. Deliberately absent:
hiding anything, and any other change of the order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.memory.conflicts import contradictions
from holdfast.memory.names import folded, in_order
from holdfast.memory.superseding import outdates, tells_change
from holdfast.records import TRUST, EntryRef, Hit

LOOKED_AT = 30
"""How many hits are compared: what has changed is often said in other words than those of the question."""
_DISPUTED = 10
_ONE_VALUE = frozenset({"home", "workplace", "age", "email", "phone", "favourite", "time", "date", "weekday", "number"})
_FIGURE = re.compile(r"\b\d[\d.:,]*\b")
_PAST = re.compile(
    r"\b(?:did|was|were|had|used to|before|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|initial(?:ly)?|"
    r"(?:my|our|the|his|her|their) old|back then|ago|at first|until|last (?:year|month|week|time|summer|winter)|"
    r"in (?:19|20)\d\d|history|change[sd]?)\b",
    re.IGNORECASE,
)


class _Said(NamedTuple):
    """A hit that may outdate another one: who said it, its place in the order in which everything was recorded, in
    which entry, and in the words of whoever it is about."""

    hit: Hit
    who: str
    order: tuple[datetime, datetime, str]
    entry: EntryRef | None
    text: str


def settled(hits: Sequence[Hit], query: str, owner: str | None) -> tuple[Hit, ...]:
    """The hits, each marked with what contradicts or outdates it. ``owner`` is whom "I" means in all threads;
    None where each may be somebody else's."""
    said = [one for hit in hits[:LOOKED_AT] if (one := _said(hit, owner)) is not None]
    outdated = _outdated(said)
    against, newer = _disputed(hits[:_DISPUTED], outdated)
    marked = [
        replace(hit, disputed_by=tuple(against.get(hit.id, ())), superseded_by=outdated.get(hit.id))
        if (hit.id in against or hit.id in outdated) and not _from_outside(hit)
        else hit
        for hit in hits
    ]
    return tuple(marked if _PAST.search(query) else _newer_first(marked, {**newer, **outdated}, query))


def _from_outside(hit: Hit) -> bool:
    """Whether it is what a tool or a page says in an entry, which may be in the hits with its own words as well."""
    return hit.entry is not None and hit.trust == TRUST[0]


def _said(hit: Hit, owner: str | None) -> _Said | None:
    """Files say nothing, nor do tools and assistants about the state of the one they talk with."""
    if hit.memory is not None:
        memory = hit.memory
        entry = memory.origin.entries[-1] if memory.origin.entries else None
        order = memory.recorded_at, memory.recorded_at, in_order(memory.id)
        return _Said(hit, folded(memory.subject), order, entry, _in_first_person(hit.text, memory.subject))
    if hit.entry is None or hit.kind != "message" or _from_outside(hit) or not isinstance(hit.entry.content, dict):
        return None
    name, role = (hit.entry.content.get(field) for field in ("name", "role"))
    if role not in ("user", None) or not (role or name):
        return None
    who = folded(name) if isinstance(name, str) and name else f"#{hit.entry.thread}" if owner is None else owner
    entry = EntryRef(hit.entry.thread, hit.entry.number)
    # A message may name any time as its own, even one that is still to come; when it was recorded the store knows.
    return _Said(hit, who, (hit.entry.time, hit.time, f"{entry.number:020}"), entry, hit.text)


def _in_first_person(text: str, subject: str) -> str:
    """What was learned of a user as they would say it: of "nadia drives a Fiat" the rules see that I do."""
    if not text[: len(subject) + 2].casefold().startswith((f"{subject} ".casefold(), f"{subject}'s ".casefold())):
        return text
    rest = text[len(subject) :]
    return f"My{rest[2:]}" if rest.startswith("'") else f"I{rest}"


def _outdated(said: list[_Said]) -> dict[str, str]:
    """For each hit that is outdated, the latest one that outdates it."""
    found: dict[str, str] = {}
    for later in sorted(said, key=lambda one: one.order, reverse=True):
        for earlier in said if tells_change(later.text) else ():
            if earlier.hit.id not in found and _may(later, earlier) and outdates(later.text, earlier.text):
                found[earlier.hit.id] = later.hit.id
    return found


def _may(later: _Said, earlier: _Said) -> bool:
    """Whether one is by the same person, was both recorded and said after the other, and is trusted as much."""
    if later.who != earlier.who or earlier.hit.kind == "episodic":
        return False
    after = later.order > earlier.order
    if later.entry is not None and earlier.entry is not None and later.entry.thread == earlier.entry.thread:
        after = later.entry.number > earlier.entry.number  # it may have been learned long after it was said
    if not after or later.hit.time < earlier.hit.time:
        return False
    return TRUST.index(later.hit.trust) >= TRUST.index(earlier.hit.trust)


def _disputed(hits: Sequence[Hit], outdated: dict[str, str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Which memories contradict each other, and for those of one value the later one."""
    memories = {hit.id: hit.memory for hit in hits if hit.memory is not None and hit.memory.key is None}
    against: dict[str, list[str]] = {}
    newer: dict[str, str] = {}
    for pair in contradictions(memories.values()) if len(memories) > 1 else ():
        if outdated.get(pair.first.id) == pair.second.id:
            continue
        against.setdefault(pair.first.id, []).append(pair.second.id)
        against.setdefault(pair.second.id, []).append(pair.first.id)
        trusted = TRUST.index(pair.second.trust) >= TRUST.index(pair.first.trust)
        if pair.rule in _ONE_VALUE and trusted and pair.second.valid_from >= pair.first.valid_from:
            newer.setdefault(pair.first.id, pair.second.id)
    return against, newer


def _newer_first(hits: list[Hit], newer: dict[str, str], query: str) -> list[Hit]:
    """One newer hit lifted to just above the best older one, unless the older one's very figure is asked for."""
    places = {hit.id: place for place, hit in enumerate(hits) if not _from_outside(hit)}
    asked = set(_FIGURE.findall(query))
    for place, hit in enumerate(hits):
        at = -1 if _from_outside(hit) else places.get(newer.get(hit.id, ""), -1)
        if at > place and not asked & (set(_FIGURE.findall(hit.text)) - set(_FIGURE.findall(hits[at].text))):
            lifted = hits[at]
            above = hits[place - 1].score if place else hit.score + 2e-4
            score = hit.score + min(1e-4, max(above - hit.score, 0.0) / 2)
            why = {**lifted.why, "newer first": round(score - lifted.score, 4)} if lifted.why else lifted.why
            return [*hits[:place], replace(lifted, score=score, why=why), *hits[place:at], *hits[at + 1 :]]
    return hits
