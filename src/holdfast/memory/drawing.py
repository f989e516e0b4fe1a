"""Links as text that a program draws: DOT for Graphviz, or a Mermaid flowchart.

Entities are boxes, links are arrows with their relation on them, and what does not hold at the moment asked for is
dashed. Deliberately absent: which links to draw, and where anything goes in the picture.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from holdfast.memory.graph import Link
from holdfast.memory.names import folded

_UNPRINTABLE = re.compile("[^\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = str.maketrans({mark: f"#{ord(mark)};" for mark in '#&<>"`|\\'})


class _Arrow(msgspec.Struct, frozen=True):
    """A link as it is drawn: between two boxes by number, with what it says."""

    start: int
    end: int
    relation: str
    holds: bool


class _Picture(msgspec.Struct, frozen=True):
    names: list[str]
    arrows: list[_Arrow]


def to_dot(links: Sequence[Link], as_of: datetime | None = None, *, title: str | None = None) -> str:
    """The links as a graph for Graphviz; what does not hold ``as_of`` a moment is dashed (without one: what ended)."""
    picture = _picture(links, as_of)
    lines = [
        "digraph memory {",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fillcolor="#f4f6fa", color="#c3cad6", fontname="sans-serif"];',
        '  edge [color="#8a94a6", fontname="sans-serif", fontsize=11];',
    ]
    if title is not None:
        lines.append(f'  label="{_quoted(_clean(title))}"; labelloc=t;')
    lines += [f'  n{number} [label="{_quoted(name)}"];' for number, name in enumerate(picture.names)]
    for arrow in picture.arrows:
        dashed = "" if arrow.holds else ', style=dashed, color="#b4bac6"'
        lines.append(f'  n{arrow.start} -> n{arrow.end} [label="{_quoted(arrow.relation)}"{dashed}];')
    return "\n".join([*lines, "}", ""])


def to_mermaid(links: Sequence[Link], as_of: datetime | None = None, *, title: str | None = None) -> str:
    """The links as a Mermaid flowchart; dashed as in ``to_dot``."""
    picture = _picture(links, as_of)
    lines = [] if title is None else ["---", f'title: "{_quoted(_clean(title))}"', "---"]
    lines += ["flowchart LR", *(f'  n{number}["{_escaped(name)}"]' for number, name in enumerate(picture.names))]
    for arrow in picture.arrows:
        line = "-->" if arrow.holds else "-.->"
        lines.append(f'  n{arrow.start} {line}|"{_escaped(arrow.relation)}"| n{arrow.end}')
    return "\n".join([*lines, ""])


def _picture(links: Sequence[Link], as_of: datetime | None) -> _Picture:
    """Each entity once, and each relation between two once; of equal ones, one that holds."""
    places: dict[str, int] = {}
    names: list[str] = []
    drawn: dict[tuple[int, int, str], _Arrow] = {}
    for link in links:
        for name in (link.subject, link.object):
            if folded(name) not in places:
                places[folded(name)] = len(names)
                names.append(_clean(name))
        start, end = places[folded(link.subject)], places[folded(link.object)]
        holds = link.until is None if as_of is None else link.holds(as_of)
        before = drawn.get((start, end, folded(link.relation)))
        if before is None or not before.holds:
            drawn[start, end, folded(link.relation)] = _Arrow(start, end, _clean(link.relation), holds)
    return _Picture(names, list(drawn.values()))


def _clean(text: str) -> str:
    """Text on one line, without control characters."""
    return _UNPRINTABLE.sub("\ufffd", " ".join(text.split()))


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escaped(text: str) -> str:
    """Text in a Mermaid label: marks that it would read as its own syntax become character references."""
    return text.translate(_MARKDOWN) or " "
