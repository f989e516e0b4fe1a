"""What the sections of a context say, as pieces that can be left out one by one.

Pieces come in the order of their worth, and each knows its place on the page: what is chosen is shown in an order that
does not depend on what else was chosen, so that the same facts make the same bytes. Deliberately absent: choosing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from holdfast.context.talk import harmless
from holdfast.ledger.speech import least
from holdfast.records import TRUST, EntryRef, Loaded, Memory

Count = Callable[[str], int]

TITLES = {
    "instructions": "Instructions",
    "identity": "Who you talk to",
    "facts": "What is known",
    "handoff": "Where the work stands",
    "summary": "Earlier in this conversation",
    "recalled": "recalled",
    "news": "news",
    "state": "state",
}
WHO = frozenset(
    {"name", "full_name", "nickname", "pronouns", "language", "timezone", "time_zone", "home", "location", "lives_in",
     "birthday", "age", "occupation", "job", "employer", "role", "company"}
)  # fmt: skip
"""Keys of facts that say who someone is."""
_VALUE = 1_200
_HEADING = re.compile(r"(^|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])([ \t]*)#(?=[#\s]|$)", re.MULTILINE)
MARKS = {"untrusted": "from outside, not verified"}


class ProgressStep(Protocol):
    """A step of a progress document."""

    @property
    def text(self) -> str: ...
    @property
    def done(self) -> bool: ...


class ProgressSection(Protocol):
    """A part of a progress document that only its writer understands."""

    @property
    def heading(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def after(self) -> str: ...


class ProgressDocument(Protocol):
    """A progress document, as far as it is shown."""

    @property
    def start(self) -> str: ...
    @property
    def opening(self) -> str: ...
    @property
    def remarks(self) -> str: ...
    @property
    def feature_remarks(self) -> str: ...
    @property
    def features(self) -> Sequence[ProgressStep]: ...
    @property
    def decisions(self) -> Sequence[str]: ...
    @property
    def data(self) -> dict[str, Any] | list[Any] | None: ...
    @property
    def extra(self) -> Sequence[ProgressSection]: ...

    @property
    def goal(self) -> str: ...
    @property
    def next_action(self) -> str: ...
    @property
    def context(self) -> str: ...
    @property
    def blockers(self) -> Sequence[str]: ...
    @property
    def steps(self) -> Sequence[ProgressStep]: ...


class Piece(NamedTuple):
    """One thing that a section can show. ``group`` is a heading that it shares with others, ``place`` where it goes;
    ``trust`` is the least of the memories that it shows."""

    id: str
    text: str
    place: tuple[Any, ...] = ()
    group: str = ""
    trust: str = TRUST[-1]


def arranged(pieces: Iterable[Piece]) -> str:
    """Chosen pieces as the text of a section."""
    lines: list[str] = []
    group = ""
    for piece in sorted(pieces, key=lambda piece: piece.place):
        if piece.group and piece.group != group:
            lines.append(piece.group)
        group = piece.group
        lines.append(piece.text)
    return shielded("\n".join(lines))


def shielded(text: str) -> str:
    """The text of a section that cannot pass for anything else: for a heading of ours, or for the end of a block."""
    return _HEADING.sub(r"\1\2\#", harmless(text)) if "#" in text or "<" in text else text


# What seldom changes


def procedures(memories: Sequence[Memory]) -> list[Piece]:
    """How to do things, the most useful first; on the page in the order they were learned."""
    return [
        Piece(one.id, f"- {line(one.text)}{trust(one)}", (one.recorded_at, one.id), trust=one.trust) for one in memories
    ]


def identity(user: str | None, agent: str | None, facts: Sequence[Memory]) -> list[Piece]:
    """Who talks with whom, and what says who someone is."""
    found = []
    if agent is not None:
        found.append(Piece("agent", f"- You are the agent {line(agent)}.", (0,)))
    if user is not None:
        found.append(Piece("user", f"- The user is {line(user)}.", (1,)))
    about = [fact for fact in _by_worth(facts) if is_identity(fact, user)]
    return found + [Piece(fact.id, f"- {_fact(fact, user)}", (2, *_keyed(fact)), trust=fact.trust) for fact in about]


def is_identity(fact: Memory, user: str | None) -> bool:
    return fact.key is not None and fact.key.casefold() in WHO and (user is None or fact.subject == user)


def known(facts: Sequence[Memory], user: str | None) -> list[Piece]:
    """Facts, the most important first; on the page by subject and key."""
    return [
        Piece(fact.id, f"- {_fact(fact, user)}", _keyed(fact), trust=fact.trust)
        for fact in _by_worth(facts)
        if not is_identity(fact, user)
    ]


def _fact(fact: Memory, user: str | None) -> str:
    whose = "" if fact.subject == user else f"{line(fact.subject)}, "
    since = f"since {day(fact.valid_from)}"
    until = "" if fact.valid_to is None else f" until {day(fact.valid_to)}"
    return f"{whose}{line(fact.key or '')}: {line(fact.text)} ({since}{until}{trust(fact, '; ')})"


def _by_worth(facts: Sequence[Memory]) -> list[Memory]:
    return sorted(facts, key=lambda fact: (fact.importance, fact.valid_from, fact.id), reverse=True)


def _keyed(fact: Memory) -> tuple[str, str, str]:
    return fact.subject, fact.key or "", fact.id


def trust(memory: Memory, before: str = " (") -> str:
    mark = MARKS.get(memory.trust)
    return "" if mark is None else f"{before}{mark}{')' if before == ' (' else ''}"


_NO_BLOCKER = frozenset({"", "none", "no", "nothing", "n/a", "no blockers", "none at the moment", "none so far"})
"""What people write under a heading that they leave empty."""


def handoff(document: ProgressDocument) -> list[Piece]:
    """The progress document, what is to be done next first; on the page in the order of the document.

    What is to be run first comes first, and what a person wrote under headings of their own comes too.
    """
    steps = [(step.done, f"- [{'x' if step.done else ' '}] {line(step.text)}") for step in document.steps]
    features = [(one.done, f"- [{'x' if one.done else ' '}] {line(one.text)}") for one in document.features]
    group = "Steps:" if features else ""
    parts = _titled(0, "Run first", document.start)
    parts += [(2, f"Goal: {line(document.goal)}", "")] if document.goal else []
    parts += _titled(7, "Next", document.next_action)
    blockers = [one for one in document.blockers if one.strip(" .!-").casefold() not in _NO_BLOCKER]
    parts += [(6, f"- Blocked: {line(blocker)}", "") for blocker in blockers]
    parts += [(3, text, "Features:") for done, text in features if not done]
    parts += [(5, text, group) for done, text in steps if not done]
    parts += [(8, f"- Decided: {line(decision)}", "") for decision in document.decisions]
    parts += [(9, text, "Context:") for text in (*_filled(document.context), *_data_lines(document.data))]
    parts += [(1, text, "") for text in _filled(document.opening)]
    for section in document.extra:
        parts += _titled(10 if section.after else 1, line(section.heading), section.text, alone=True)
    parts += [(10, text, "Remarks:") for text in _filled(f"{document.feature_remarks}\n{document.remarks}")]
    parts += [(3, text, "Features:") for done, text in features if done]
    parts += [(4, text, group) for done, text in reversed(steps) if done]
    return [
        Piece(f"{place}.{number}", text, (place, -number if place == 4 else number), group)
        for number, (place, text, group) in enumerate(parts)
    ]


def _filled(text: str) -> list[str]:
    return [one.rstrip() for one in text.splitlines() if one.strip()]


def _titled(place: int, title: str, text: str, *, alone: bool = False) -> list[tuple[int, str, str]]:
    """A text below its title, or beside it when it is short; ``alone`` for a title that says something by itself."""
    lines = [one for one in _filled(text) if not one.lstrip().startswith(("```", "~~~"))]
    if not lines:
        return [(place, title, "")] if alone and title else []
    if len(lines) == 1 and title:
        return [(place, f"{title}: {line(lines[0])}", "")]
    return [(place, one, title and f"{title}:") for one in lines]


def _data_lines(data: dict[str, Any] | list[Any] | None) -> list[str]:
    """Structured data, a line for each field or item."""
    if isinstance(data, dict):
        return [_field(name, value, ()) for name, value in data.items()]
    return [f"- {line(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False))}" for one in data or ()]


def summaries(found: Sequence[tuple[int, int, str]]) -> list[Piece]:
    """Summaries of ranges of entries, the newest first; on the page the oldest first."""
    return [
        Piece(f"{first}-{last}", f"Entries {first} to {last}:\n{text.strip()}", (first,))
        for first, last, text in sorted(found, reverse=True)
    ]


# What changes from turn to turn


def news(then: Sequence[Memory], now: Sequence[Memory], said: frozenset[EntryRef], user: str | None) -> list[Piece]:
    """What became known, changed or ended since the facts at the top.

    What is only new, and said in the conversation itself, is not said again; what is said otherwise at the top is.
    """
    before = {(fact.subject, fact.key): fact for fact in then}
    after = {(fact.subject, fact.key): fact for fact in now}
    found = []
    for name, fact in after.items():
        old = before.get(name)
        if (old is not None and old.id == fact.id) or (old is None and not said.isdisjoint(fact.origin.entries)):
            continue
        was = "" if old is None else f"; no longer: {line(old.text)}{trust(old)}"
        shown = least(one.trust for one in (fact, old) if one is not None)
        found.append(Piece(fact.id, f"- {_fact(fact, user)}{was}", _keyed(fact), trust=shown))
    for name, fact in before.items():
        if name not in after:
            whose = "" if fact.subject == user else f"{line(fact.subject)}, "
            text = f"- {whose}{line(fact.key or '')}: no longer {line(fact.text)}{trust(fact)}"
            found.append(Piece(fact.id, text, _keyed(fact), trust=fact.trust))
    return found


def state(loaded: Loaded[Any], plain: Any) -> list[Piece]:
    """The fields of a state, those that must be verified first; what is no longer fresh says so."""
    if not loaded:
        return []
    fields = plain if isinstance(plain, dict) else {"value": plain}
    marks: dict[str, list[str]] = {}
    for stale in loaded.stale:
        top = stale.path.split(".")[0].split("[")[0]
        what = "MUST BE VERIFIED before acting on it" if stale.path in loaded.must_verify else "stale"
        within = "" if stale.path == top else f"{stale.path} "
        since = "never confirmed" if stale.confirmed_at is None else f"confirmed {day(stale.confirmed_at)}"
        marks.setdefault(top, []).append(f"{within}{what}, {since}")
    return [
        Piece(str(name), _field(str(name), fields[name], marks.get(name, ())), (place,))
        for place, name in sorted(enumerate(fields), key=lambda item: item[1] not in marks)
    ]


def _field(name: str, value: Any, marks: Sequence[str]) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = line(text if len(text) <= _VALUE else f"{text[:_VALUE]}… ({len(text):,} characters)")
    return f"- {line(name)}: {text}{''.join(f' [{mark}]' for mark in marks)}"


def day(moment: datetime) -> str:
    return moment.date().isoformat()


def line(text: str) -> str:
    return " ".join(text.split())
