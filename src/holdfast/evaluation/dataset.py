"""Conversations with questions, and what a file of them holds.

It is a JSON list of ``{"id", "turns": [{"id", "session", "time", "speaker", "text"}], "queries": [{"id", "kind",
"text", "gold": [turn ids]}]}``. ``time`` is free text and may be missing. The turns in ``gold`` must be there. Other
fields are ignored. Deliberately absent: the file itself (``reading``).
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.evaluation.fields import Wrong, an_object, different, each, field, identifier, kind_of, text_of

_THREAD_BYTES = 400  # a conversation and a session make a thread's id, with room for what is put before them


class Utterance(msgspec.Struct, frozen=True):
    """One turn of a conversation: something that someone said in a session of it. A note has no speaker."""

    id: str
    session: str
    speaker: str
    text: str
    time: str | None = None


class Question(msgspec.Struct, frozen=True):
    """Something to ask, and the ids of the turns that answer it. Without any, nothing that was said does."""

    id: str
    kind: str
    text: str
    gold: frozenset[str]


class Conversation(msgspec.Struct, frozen=True):
    """What was said, in order, and what to ask about it; or notes, which nobody said and which are ``remembered``."""

    id: str
    turns: tuple[Utterance, ...]
    questions: tuple[Question, ...]
    remembered: bool = False

    @property
    def texts(self) -> list[str]:
        """The turns as plain text, each with who said it."""
        return [f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text for turn in self.turns]

    @property
    def sessions(self) -> dict[str, list[Utterance]]:
        """The turns of each session, both in the order of the file."""
        found: dict[str, list[Utterance]] = {}
        for turn in self.turns:
            found.setdefault(turn.session, []).append(turn)
        return found


def conversations(value: Any) -> list[Conversation]:
    """The conversations of a parsed file."""
    found = each(value, "the file", "conversation", _conversation)
    different("conversation", found)
    return found


def _conversation(value: Any, place: str) -> Conversation:
    fields = an_object(value, place)
    turns = each(field(fields, "turns", place), f"turns of {place}", "turn", _said, place)
    questions = each(field(fields, "queries", place), f"queries of {place}", "query", _question, place)
    different("turn", turns, place)
    known = {turn.id for turn in turns}
    for at, question in enumerate(questions, 1):
        for id in sorted(question.gold - known):
            raise Wrong(f"{place}, query {at}", f"there is no turn {id!r}")
    return Conversation(identifier(fields, "id", place, _THREAD_BYTES), tuple(turns), tuple(questions))


def _said(value: Any, place: str) -> Utterance:
    fields = an_object(value, place)
    time = fields.get("time")
    if time is not None and not isinstance(time, str):
        raise Wrong(place, f"time is text or missing, not {kind_of(time)}")
    return Utterance(
        identifier(fields, "id", place),
        _session(fields, place),
        identifier(fields, "speaker", place),
        text_of(fields, "text", place),
        time or None,
    )


def _question(value: Any, place: str) -> Question:
    fields = an_object(value, place)
    gold = field(fields, "gold", place)
    if not isinstance(gold, list) or not all(isinstance(id, str) for id in gold):
        raise Wrong(place, "gold is a list of turn ids, each a text")
    return Question(
        identifier(fields, "id", place),
        identifier(fields, "kind", place),
        text_of(fields, "text", place),
        frozenset(gold),
    )


def _session(fields: dict[str, Any], place: str) -> str:
    """Sessions are numbered in some data and named in other."""
    session = field(fields, "session", place)
    return str(session) if type(session) is int else identifier(fields, "session", place, 80)
