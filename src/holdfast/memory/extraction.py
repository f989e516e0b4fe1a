"""What an extractor is and what it finds in a text: our rules, yours, or a model of your own.

``rules`` reads English. Deliberately absent: storing, and what was known before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

from holdfast.records import EntryRef


class Extraction(msgspec.Struct, frozen=True):
    """One thing that a text says, with the words that say it: ``quote`` is ``text[start:end]`` of what was read.

    ``corrects``: what was said of this key before was never true. ``ended``: from ``valid_from`` on the key has no
    value; then ``object`` is the value that is over ("Paris" in "I no longer live in Paris"), which need not be the one
    that is known. Without ``valid_from`` it holds from the time of the entry.
    """

    rule: str
    text: str
    subject: str
    quote: str
    start: int
    end: int
    kind: str = "semantic"
    key: str | None = None
    relation: str | None = None
    object: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    corrects: bool = False
    ended: bool = False
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    ref: EntryRef | None = None
    type: str | None = None
    metadata: Mapping[str, Any] = {}


DECISION = "decision"
"""The type of a memory that says what was decided. Its metadata may hold ``reason``, ``choice``, ``about`` and
``instead_of``; its key names what it is about, so that the next decision on that supersedes it."""


def decision_key(told: Mapping[str, Any]) -> str | None:
    """The key of a decision: what it is about, or else what was chosen."""
    subject = told.get("about") or told.get("choice")
    return None if not isinstance(subject, str) or not subject.strip() else f"{DECISION}:{subject.casefold().strip()}"


class Extractor(Protocol):
    """Reads facts from one message, in the order it says them."""

    def __call__(
        self,
        text: str,
        *,
        speaker: str | None = None,
        role: str = "user",
        time: datetime,
        subject: str,
        ref: EntryRef | None = None,
        asked: str | None = None,
    ) -> list[Extraction]:
        """``time`` is when it was said, ``subject`` whom "I" means, ``speaker`` a name where one is given, ``asked``
        what an assistant said right before it, which a fragment may answer."""
