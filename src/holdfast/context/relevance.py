"""Which hits of a recall deserve a place on a page: what may answer, and what the page does not say already.

A memory stands alone: far below the best one it is about something else. A conversation answers with several turns, of
which some share nothing with the question: cutting at a distance lost a tenth of the answers on LoCoMo and BEAM, so
there the budget decides. Scores are compared inside one recall only, by where they lie between the highest and the
lowest; what they are in themselves counts for nothing. Where recall says that nothing answers, the few closest hits
show how near it came. Deliberately absent: searching, and how much is shown of a hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.records import Hit, Memory
from holdfast.text import stem, words

CLOSEST = 3
"""So many hits are shown when none of them answers."""
FIRST, FAR = 5, 0.4
"""So many of the best memories are shown however the scores fall; others only from so far up between the lowest score
of a memory and the highest."""
_LITTLE = frozenset({"a", "am", "an", "are", "i", "im", "is", "my", "the"})


def relevant(hits: Sequence[Hit], answers: bool) -> list[Hit]:
    """The hits that are relevant, in the order given, best first. ``answers``: whether any of them is."""
    if not answers:
        return list(hits[:CLOSEST])
    alone = [hit for hit in hits if hit.entry is None]
    scores = [hit.score for hit in alone] or [0.0]
    least = min(scores) + FAR * (max(scores) - min(scores))
    far = {hit.id for hit in alone[FIRST:] if hit.score < least}
    return [hit for hit in hits if hit.id not in far]


class SaidByFacts:
    """What the facts on a page say, to tell which hits only repeat it."""

    def __init__(self, facts: Iterable[Memory]) -> None:
        self._facts = [(fact.subject, _telling(f"{fact.subject} {fact.key} {fact.text}")) for fact in facts]

    def has(self, hit: Hit, user: str | None) -> bool:
        """Whether a hit says nothing that a fact about the same subject does not say, in the same words."""
        if hit.file is not None or hit.disputed_by or not self._facts:
            return False
        subject = hit.memory.subject if hit.memory is not None else _speaker(hit, user)
        if subject is None or (hit.memory is not None and hit.memory.key is not None):
            return False
        said = _telling(hit.text)
        return bool(said) and any(about == subject and said <= fact for about, fact in self._facts)


def _telling(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text) if word not in _LITTLE)


def _speaker(hit: Hit, user: str | None) -> str | None:
    """The user, if it is the user who says it; of anyone else the facts may say otherwise."""
    content = None if hit.entry is None else hit.entry.content
    own = isinstance(content, dict) and content.get("role") == "user" and not {"name", "speaker"} & content.keys()
    return user if own else None
