"""Embedders for tests: one that needs no model, and one that fails on demand.

Deliberately absent: anything like meaning. Texts that share words are near each other, and that is all.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from holdfast.providers.embedding import Embedder, Vectors

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Each word is a fixed direction, a text the sum of its words. The same on every machine and in every process."""

    local = True

    def __init__(self, dimension: int = 64, *, name: str | None = None) -> None:
        self.dimension = dimension
        self.name = name or f"hash-{dimension}"

    def __repr__(self) -> str:
        return f"HashEmbedder({self.dimension}, name={self.name!r})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy  # noqa: PLC0415

        rows = numpy.zeros((len(texts), self.dimension), dtype=numpy.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _WORD.findall(text.casefold()):
                digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=16).digest()
                # Four places with a sign each: enough that two words rarely look alike.
                for at in range(0, 16, 4):
                    value = int.from_bytes(digest[at : at + 4], "little")
                    row[(value >> 1) % self.dimension] += 1.0 if value & 1 else -1.0
            length = float(numpy.sqrt(row @ row))
            if length:
                row /= length
        return rows


class Flaky:
    """Wraps an embedder: fails the first ``fail_times`` calls, and then answers, rightly or wrongly.

    ``wrong_dimension`` adds a column, ``nan`` puts a NaN into the last row, ``too_few`` leaves the last row out. The
    attributes may be set at any time; ``calls`` counts the calls, and ``texts`` the texts in them.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        fail_times: int = 0,
        error: Exception | None = None,
        wrong_dimension: bool = False,
        nan: bool = False,
        too_few: bool = False,
    ) -> None:
        self.inner = embedder
        self.fail_times = fail_times
        self.error = error
        self.wrong_dimension = wrong_dimension
        self.nan = nan
        self.too_few = too_few
        self.calls = 0
        self.texts = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def local(self) -> bool:
        return self.inner.local

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy  # noqa: PLC0415

        with self._lock:
            self.calls += 1
            self.texts += len(texts)
            failing = self.fail_times > 0
            self.fail_times -= failing
        if failing:
            raise self.error or Unavailable("The embedder is unavailable, as the test asked.")
        rows = self.inner.embed(texts).copy()
        if self.nan and len(rows):
            rows[-1, 0] = numpy.nan
        if self.wrong_dimension:
            rows = numpy.hstack([rows, numpy.ones((len(rows), 1), dtype=numpy.float32)])
        return rows[:-1] if self.too_few else rows
