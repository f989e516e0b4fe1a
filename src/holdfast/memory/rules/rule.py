"""What a rule is. Deliberately absent: what it finds (``extraction``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.memory.extraction import Extraction

if TYPE_CHECKING:
    from holdfast.memory.rules.reading import Sentence


class ExtractionRule(msgspec.Struct, frozen=True):
    """A named way of reading one sentence. ``own``: it reads only those in which the speaker occurs ("I", "my").

    ``asked``: it reads questions as well, for what they take for granted.
    """

    name: str
    about: str
    find: Callable[[Sentence], Iterator[Extraction]]
    own: bool = True
    asked: bool = False
