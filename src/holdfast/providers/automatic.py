"""What "auto" stands for: the best of the offline embedders that are installed, with a quick one that stands in for it.

To a caller it is the best one. An index also asks for the quick one, and lets it answer until the best one has made all
of its vectors. Deliberately absent: when that is (``retrieval.index``).
"""

from __future__ import annotations

from holdfast.providers.embedding import Checked


class Automatic(Checked):
    """Embedders, best first; the last is quick enough to be waited for."""

    def __init__(self, *ranked: Checked) -> None:
        super().__init__(ranked[0].inner)
        self.ranked = ranked

    def __repr__(self) -> str:
        return f"auto({', '.join(map(repr, self.ranked))})"
