"""What "auto" stands for: the best of the offline embedders that are installed, with a quick one that stands in for it.

To a caller it is the best one. An index also asks for the quick one, and lets it answer until the best one has made all
of its vectors. Where a corpus is mostly not in Latin script, MiniLM is worse than WordLlama, so another takes its place
or none does. Deliberately absent: when an index changes from one to the other (``retrieval.index``).
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.providers.embedding import Checked


class Automatic(Checked):
    """Embedders, best first, for Latin script and for others. The last of each is quick, or the only one."""

    def __init__(self, latin: Sequence[Checked], others: Sequence[Checked] = ()) -> None:
        super().__init__(latin[0].inner)
        self._latin, self._others = tuple(latin), tuple(others) or tuple(latin)
        self.known = {embedder.name: embedder for embedder in (*self._latin, *self._others)}

    def __repr__(self) -> str:
        return f"auto({', '.join(self.known)})"

    def ranked(self, *, latin: bool) -> tuple[Checked, ...]:
        """The embedders for a corpus that is mostly in Latin script, or mostly not."""
        return self._latin if latin else self._others
