"""What every kind of source has in common: it is open, says what it holds, and yields it part by part, as often as
asked.

Deliberately absent: what any one kind looks like.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import ClassVar, Self

import msgspec

from holdfast import when
from holdfast.extension import Remembering, to_micros
from holdfast.importers.graph_types import Given
from holdfast.importers.parts import ImportPart


class RefusedItem(msgspec.Struct, frozen=True):
    """Something in a source that a store cannot hold: where it is, and why it cannot."""

    where: str
    why: str


class ImportOptions(msgspec.Struct, frozen=True):
    """How to take things in: whose those are that do not say so, whether what memories were made of is kept as well,
    and which of the caller's own classes a state may hold."""

    user: str | None = None
    agent: str | None = None
    originals: bool = False
    types: Given = ()


class ImportSource(ABC):
    """Something to import, opened and recognised. Close it, or use it in a ``with`` block.

    ``counts`` is what it holds in its own words, counted before anything is read; ``notes`` say what is in it that does
    not come along. ``expected`` is how many items the parts have together, those that are refused as well.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    place: str
    counts: dict[str, int]
    notes: tuple[str, ...] = ()
    expected: int

    @abstractmethod
    def parts(self) -> Iterator[ImportPart | RefusedItem]:
        """Everything in the source, from the beginning, the same each time."""

    @classmethod
    def tag(cls) -> str:
        """What every memory, thread and file of such a source carries, to be found by."""
        return f"import:{cls.kind}"

    def settle(self) -> None:  # noqa: B027 - most sources need nothing
        """Asked when all parts were gone through: ``Conflict`` when the source was written to since it was opened,
        ``Invalid`` when it is not what the caller said of it."""

    def close(self) -> None:  # noqa: B027 - most sources need nothing
        """Let go of files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def tagged(drafts: Iterable[Remembering], tag: str) -> tuple[Remembering, ...]:
    """Memories with one tag more, each name once: of two with the same name the later counts."""
    named = {draft.once: msgspec.structs.replace(draft, tags=(*draft.tags, tag)) for draft in drafts}
    return tuple(named.values())


def fingerprint(*parts: str) -> str:
    """A name for something that has none of its own: the same for the same parts, in any import."""
    text = "\x00".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def micros(stamp: object) -> int | None:
    """The moment that a stamp names, in microseconds; without a zone it is UTC. None where it names none."""
    moment = when.parse_moment(stamp) if isinstance(stamp, str) else None
    return None if moment is None else to_micros(moment)
