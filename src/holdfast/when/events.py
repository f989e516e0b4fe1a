"""Phrases that tell time by an event: "before the trip". When that was, someone else must look up.

Deliberately absent: any moment.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime

import msgspec

from holdfast.when.spans import find
from holdfast.when.words import Pattern, S


class Landmark(msgspec.Struct, frozen=True):
    """A phrase that tells time by an event: before, after, since, until or during, and the event's words."""

    start: int
    end: int
    relation: str
    phrase: str


_EVENT = Pattern(
    rf"(?ai:(?<![a-z])(?P<relation>before|prior{S}to|after|following|ever{S}since|since|until|till|during){S})"
)
_EVENT_WORD = Pattern("(?:[ \\t\u00a0]{1,3})?([^\\W_]+(?:['\u2019-][^\\W_]+){0,3})")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DETERMINERS = _words("the my our his her their your its this that these those")
_PRONOUNS = _words("i we he she they you it")
_STOPS = _words(
    "i we he she they you it did do does was were is are am be been has have had will would can could should shall "
    "may might must what when where who why how which and or but because so then than if that as"
)
_DANGLING = _words("the my our his her their your a an to of in at with for on from by")
_NOT_EVENTS = _words("fact same way moment time end day week month year other first last next")
_NOT_GERUNDS = _words("during evening morning nothing something anything everything")
_PHRASE_WORDS = 6
_CLAUSE_WORDS = 8


def find_events(text: str) -> list[Landmark]:
    """Phrases that tell time by an event: "before the trip", "after my surgery", "since we met"."""
    # Any moment will do: what matters is only which places are dates already.
    dates = [(span.start, span.end) for span in find(text, datetime(2020, 6, 15, tzinfo=UTC))]
    starts, marks, reached = [start for start, _ in dates], [], 0
    for found in _EVENT.finditer(text):
        if found.start() < reached:
            continue
        index = bisect_right(starts, found.start()) - 1
        if index >= 0 and dates[index][1] > found.start():
            continue
        phrase_end = _event_end(text, found.end())
        if phrase_end:
            relation = _RELATIONS.get(found["relation"].split()[0].lower(), "after")
            marks.append(Landmark(found.start(), phrase_end, relation, text[found.end() : phrase_end]))
            reached = phrase_end
    return marks


_RELATIONS = {
    "before": "before", "prior": "before", "after": "after", "following": "after", "ever": "since", "since": "since",
    "until": "until", "till": "until", "during": "during",
}  # fmt: skip


def _event_end(text: str, at: int) -> int | None:
    """Where the words of an event end that begin at ``at``, or None when they name no event."""
    first = _EVENT_WORD.match(text, at)
    if first is None:
        return None
    word = first[1].lower()
    if word in _PRONOUNS:
        return _phrase_end(text, at, _CLAUSE_WORDS, clause=True, least=2)
    if word in _DETERMINERS:
        second = _EVENT_WORD.match(text, first.end())
        if second is None or second[1].lower() in _NOT_EVENTS:
            return None
        return _phrase_end(text, at, _PHRASE_WORDS, clause=False, least=2)
    gerund = len(word) > 4 and word.endswith("ing") and word not in _NOT_GERUNDS
    named = first[1][0].isupper() and word.rstrip(".") not in _STOPS
    return _phrase_end(text, at, _PHRASE_WORDS, clause=False, least=1) if gerund or named else None


def _phrase_end(text: str, at: int, most: int, *, clause: bool, least: int) -> int | None:
    ends: list[tuple[str, int]] = []
    for index in range(most):
        word = _EVENT_WORD.match(text, at)
        if word is None:
            break
        lower = word[1].lower()
        if index and lower in _STOPS and not (clause and index == 1):
            break
        ends.append((lower, word.end()))
        at = word.end()
    while ends and ends[-1][0] in _DANGLING:
        ends.pop()
    return ends[-1][1] if len(ends) >= least else None
