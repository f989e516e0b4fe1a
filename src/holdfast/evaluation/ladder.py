"""What each stage of recall is worth: the same questions, with more and more of the stages.

Deliberately absent: the stages themselves. They are named as ``retrieval`` names them, and left out by name.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.errors import Invalid


class Rung(msgspec.Struct, frozen=True):
    """One step of the comparison: its name, and the stages that are left out."""

    name: str
    without: frozenset[str]


_LAST = frozenset({"links", "newer first", "doubles", "rerank"})
_LOOKS = frozenset({"speaker", "looks", "time"})
_AROUND = frozenset({"around", "meaning around"})

LADDER = (
    Rung("words only", _LAST | _LOOKS | _AROUND | {"meaning"}),
    Rung("+ vectors", _LAST | _LOOKS | _AROUND),
    Rung("+ neighbours", _LAST | _LOOKS),
    Rung("+ speaker and cues", _LAST),
    Rung("all stages", frozenset()),
)
"""From words alone to everything. Each rung has all that the one before it has."""


def stage_names() -> list[str]:
    """The stages that can be left out."""
    from holdfast.retrieval.pipeline import OPTIONAL  # noqa: PLC0415 - brings numpy

    return list(OPTIONAL)


def checked(without: Iterable[str]) -> frozenset[str]:
    """Stages to leave out; one that there is not is ``Invalid``."""
    chosen, known = frozenset(without), stage_names()
    if unknown := sorted(chosen - set(known)):
        raise Invalid(f"there is no stage {', '.join(unknown)} to leave out; there are {', '.join(known)}")
    return chosen
