"""What an index is built from and with: stored data as documents, and an embedder.

Also what can be read again later: the texts of a segment, and whether they are still the same. Deliberately
absent: the documents' origin, which the wiring knows, and the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

import numpy as np

from holdfast.retrieval.segment import Array, Document, Segment, build, passages


class StreamRange(NamedTuple):
    """Positions ``after`` < n <= ``upto`` of a stream that are visible: in a thread, as a file, or in a collection when
    neither is named. Of a file's versions that is the newest, or none once it was deleted; ``until`` is when the file
    expires, which may be put off without another version."""

    stream: int
    after: int
    upto: int
    thread: str | None
    agent: str | None = None
    file: str | None = None
    until: int | None = None


class Source(Protocol):
    """Ground, as far as one index is concerned."""

    def reaches(self) -> Sequence[StreamRange]:
        """What is visible now. The same object is returned as long as nothing changed."""
        ...

    def ahead(self, parts: Sequence[StreamRange]) -> None:
        """The documents of these parts are asked for next: they may be read together."""
        ...

    def documents(self, stream: int, after: int, upto: int) -> Iterator[Document]:
        """The documents of a stream, one for each event."""
        ...


class Embeds(Protocol):
    """What makes vectors."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def local(self) -> bool: ...

    def embed(self, texts: Sequence[str]) -> Array: ...


Progress = Callable[[int, int], None]
Embedders = Callable[[str | None], Embeds | None]
"""Returns the embedder for a recorded model (None if it is not available), or the wanted one for None."""


def texts_of(source: Source, segment: Segment) -> list[str]:
    """The passages of a segment, read again from ground. What was erased since has none."""
    texts: list[str] = []
    columns = segment.columns
    counts = np.diff(np.append(columns["first"], segment.passages))
    places = zip(columns["stream"].tolist(), columns["position"].tolist(), counts.tolist(), strict=True)
    for stream, rows in groupby(places, key=lambda place: place[0]):
        listed = list(rows)
        found = {
            document.position: document.text
            for document in source.documents(stream, listed[0][1] - 1, listed[-1][1])
            if document.stream == stream
        }
        for _, position, count in listed:
            pieces = passages(found.get(position, ""))
            texts += pieces if len(pieces) == count else [""] * count
    return texts


def agrees(source: Source, segment: Segment) -> bool:
    """Whether a segment is what would be made of its events now."""
    columns = segment.columns
    places = zip(columns["stream"].tolist(), columns["position"].tolist(), strict=True)
    documents: list[Document] = []
    for stream, rows in groupby(places, key=lambda place: place[0]):
        positions = [position for _, position in rows]
        wanted = set(positions)
        found = source.documents(stream, positions[0] - 1, positions[-1])
        documents += [one for one in found if one.stream == stream and one.position in wanted]
    made, _ = build(documents)
    stored = segment.arrays()
    return all(np.array_equal(values, stored[name]) for name, values in made.arrays().items())
