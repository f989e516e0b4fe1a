"""Facts read from a text without a model: by rules that each have a name and can be tested alone.

A rule reads one sentence and yields what it says of its speaker, or of a person it names; ``extract`` runs them all.
What is asked, supposed, reported, denied or quoted yields nothing: a fact that is missed is found by recall in the log
anyway, a wrong fact would be believed. English only. Deliberately absent: storing, and judging what was known before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from holdfast.errors import NotFound
from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import (
    answers,
    changes,
    contact,
    dates,
    decisions,
    family,
    granted,
    instructions,
    mentions,
    names,
    numbers,
    others,
    places,
    preferences,
    reading,
    statements,
    vocabulary,
    work,
)
from holdfast.memory.rules.complements import SECRET
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.records import EntryRef
from holdfast.when import Pattern

__all__ = ["RULES", "Extraction", "ExtractionRule", "extract", "rule"]

_ROOMS = (
    names,
    contact,
    places,
    work,
    family,
    preferences,
    instructions,
    mentions,
    dates,
    decisions,
    changes,
    numbers,
    granted,
    statements,
    others,
    answers,
)
RULES: dict[str, ExtractionRule] = {each.name: each for room in _ROOMS for each in room.RULES}

_BESIDE = vocabulary.each("statement relative relatives married happened introduction identifier apposition has") | {
    "relative after",
    "as one",
}
_DIGIT = Pattern(r"\d")
_OTHERWISE = Pattern(r"(?i:\b(?:token|secret)\b)")
_SPEAKERS = frozenset({"user", "human", "person", "customer", ""})
"""Roles whose "I" is a person. An assistant's "I", a tool's output and a system's text state nothing about anyone."""


def rule(name: str) -> ExtractionRule:
    """The rule of this name."""
    found = RULES.get(name)
    if found is None:
        raise NotFound(f"there is no rule {name!r}; there are {', '.join(RULES)}", rule=name)
    return found


def extract(
    text: str,
    *,
    speaker: str | None = None,
    role: str = "user",
    time: datetime,
    subject: str,
    ref: EntryRef | None = None,
    asked: str | None = None,
    rules: Iterable[ExtractionRule] | None = None,
) -> list[Extraction]:
    """What a text says, in the order it says it. ``time`` is when it was said; "last Friday" counts from there.

    ``asked`` is what an assistant said right before it: "From Berlin." answers a question.
    """
    if role.lower() not in _SPEAKERS:
        return []
    chosen = tuple(RULES.values()) if rules is None else tuple(rules)
    found: list[Extraction] = []
    for sentence in reading.sentences(
        text, subject=subject, who=speaker or subject, time=time, ref=ref, asked=asked or ""
    ):
        reading_it = [one for one in chosen if (one.asked or not sentence.question) and (sentence.own or not one.own)]
        told = [each for one in reading_it for each in one.find(sentence)]
        found += _not_twice([each for each in told if not _secret(each, sentence.text)])
    return _settled(found)


def _secret(found: Extraction, sentence: str) -> bool:
    """Whether a finding may hold a password or the like. A token or a secret may be any, where there is no digit."""
    said = sentence if found.rule == "correction" else found.quote
    return SECRET.search(said if _DIGIT.search(said) else _OTHERWISE.sub("", said)) is not None


def _not_twice(found: list[Extraction]) -> list[Extraction]:
    """Without a statement of what another rule found in a form of its own, and without an event that is a statement."""
    found = [each for each in found if each.rule != "others" or not _overlaps(each, found, _is_other)]
    told = [each for each in found if each.rule != "statement" or not _overlaps(each, found, _covers)]
    return [each for each in told if each.rule != "happened" or not _overlaps(each, told, _is_statement)]


def _overlaps(each: Extraction, found: list[Extraction], of: Callable[[Extraction, Extraction], bool]) -> bool:
    return any(one.start < each.end and each.start < one.end and of(one, each) for one in found)


def _is_other(one: Extraction, other: Extraction) -> bool:
    return one.rule not in (other.rule, "condition")  # "wine triggers my migraines" says more


def _is_statement(one: Extraction, other: Extraction) -> bool:
    return one.rule == "statement" and (one.start == other.start or one.valid_from is not None)


def _covers(one: Extraction, statement: Extraction) -> bool:
    """Whether a finding says what a statement of the same words says."""
    if one.rule == "statement" or (one.rule == "age" and one.end < statement.end and " and " in statement.text):
        return False  # "I'm 16 and dyslexic" says more than an age
    same = one.key is not None and one.key == statement.key
    same = same or (one.rule == "identifier" and one.start == statement.start)
    return one.rule not in _BESIDE or same or bool(one.object and statement.text.endswith(one.object))


def _settled(found: list[Extraction]) -> list[Extraction]:
    """Each statement once, in order; and what a text says is over does not end what the same text says is so."""
    current = {(each.subject, each.key) for each in found if each.key and not each.ended}
    kept: dict[tuple[object, ...], Extraction] = {}
    for each in sorted(found, key=lambda one: (one.start, one.end)):
        if each.ended and (each.subject, each.key) in current:
            each = msgspec.structs.replace(each, key=None, ended=False)
        kept.setdefault((each.subject, each.key, each.relation, each.object, each.text), each)
    return list(kept.values())
