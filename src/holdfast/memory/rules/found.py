"""What a rule is and what it finds. Deliberately absent: storing, and what was known before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from holdfast.records import EntryRef

if TYPE_CHECKING:
    from holdfast.memory.rules.reading import Sentence


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


class ExtractionRule(msgspec.Struct, frozen=True):
    """A named way of reading one sentence. ``own``: it reads only those in which the speaker occurs ("I", "my")."""

    name: str
    about: str
    find: Callable[[Sentence], Iterator[Extraction]]
    own: bool = True
