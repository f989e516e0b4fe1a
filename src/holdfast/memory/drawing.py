"""Links as a picture: SVG that any browser shows, or DOT for those who have Graphviz.

The SVG needs no program and no font: entities are boxes, links are arrows with their relation on them, and what does
not hold at the moment asked for is dashed. Colours follow the reader's light or dark setting. Texts are escaped, long
ones cut; the whole text is in the tooltip. Deliberately absent: which links to draw, and anything random.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from itertools import pairwise
from math import atan2, cos, hypot, pi, sin

import msgspec

from holdfast.memory.graph import Link
from holdfast.memory.layout import Point, Size, arrange
from holdfast.memory.names import folded

_FONT, _SMALL = 13.0, 11.0
_HIGH = 30.0
_PAD = 15.0
_MARGIN = 28.0
_LONGEST, _LONGEST_RELATION = 30, 26
_ROUND = 10.0
_BEND = 30.0
_AROUND = 80  # boxes among which an arrow looks for a way around those that are not its own
_LOOP = 34.0
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = """
.paper{fill:#ffffff}.edge{fill:none;stroke:#8a94a6;stroke-width:1.5}.gone{stroke:#b4bac6;stroke-dasharray:5 4}
.head{fill:#8a94a6}.head.pale{fill:#b4bac6}
.name{font:500 13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1c2430;text-anchor:middle}
.says{font:11px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#4d5768;text-anchor:middle}
.was{fill:#868e9c;font-style:italic}.back{fill:#ffffff;fill-opacity:.88}
.box{stroke-width:1.5}.leaf{fill:#f4f6fa;stroke:#c3cad6}.root{fill:#e3edff;stroke:#6d9bf1}
.focus{fill:#2f6fed;stroke:#2f6fed}.name.chosen{fill:#ffffff}
.title{font:600 15px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1c2430}
.note{font:11px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#868e9c}
@media (prefers-color-scheme:dark){
.paper{fill:#12161d}.edge{stroke:#748098}.gone{stroke:#4f596b}.head{fill:#748098}.head.pale{fill:#4f596b}
.name,.title{fill:#e6eaf2}.says{fill:#aab4c5}.was,.note{fill:#7d8798}.back{fill:#12161d}
.leaf{fill:#1c222c;stroke:#3d4757}.root{fill:#1b2a47;stroke:#4a78cf}.focus{fill:#3b7bf5;stroke:#3b7bf5}
}
"""


class _Arrow(msgspec.Struct, frozen=True):
    """A link as it is drawn: between two boxes by number, with what it says."""

    start: int
    end: int
    relation: str
    holds: bool
    more: str


class _Picture(msgspec.Struct, frozen=True):
    names: list[str]
    arrows: list[_Arrow]


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
        arrow = _Arrow(start, end, _clean(link.relation), holds, _told(link))
        before = drawn.get((start, end, folded(link.relation)))
        if before is None or not before.holds:
            drawn[start, end, folded(link.relation)] = arrow
    return _Picture(names, list(drawn.values()))


def _told(link: Link) -> str:
    until = "" if link.until is None else f" until {link.until:%Y-%m-%d}"
    return _clean(f"{link.subject} {link.relation} {link.object}, from {link.since:%Y-%m-%d}{until}")


def _clean(text: str) -> str:
    """Text on one line, without what XML cannot hold."""
    return _NOT_XML.sub("\ufffd", " ".join(text.split()))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


# DOT


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


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


# SVG


def to_svg(
    links: Sequence[Link], as_of: datetime | None = None, *, title: str | None = None, focus: str | None = None
) -> str:
    """The links as an SVG document; what does not hold ``as_of`` a moment is dashed (without one: what ended).

    ``focus`` is the entity that the picture is about; it stands out.
    """
    picture = _picture(links, as_of)
    labels = [_cut(name, _LONGEST) for name in picture.names]
    sizes = [(_width(label, _FONT) + 2 * _PAD, _HIGH) for label in labels]
    spots = arrange(sizes, _edges(picture))
    left, top, _, _ = _frame(spots, sizes, [*_ways(picture, spots, sizes)])
    above = _MARGIN + (26.0 if title is not None else 0.0)
    spots = [(x - left + _MARGIN, y - top + above) for x, y in spots]
    ways = list(_ways(picture, spots, sizes))
    _, _, right, low = _frame(spots, sizes, ways)
    gone = any(not arrow.holds for arrow in picture.arrows)
    width = max(right + _MARGIN, 220.0, 2 * _MARGIN + (0.0 if title is None else _width(_clean(title), 15)))
    height = max(low, above) + _MARGIN + (18.0 if gone else 0.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img">',
        f"<title>{escape(_clean(title or 'What is linked to what'))}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="12"/>',
    ]
    if title is not None:
        parts.append(f'<text class="title" x="{_MARGIN:.0f}" y="32">{escape(_clean(title))}</text>')
    if not picture.names:
        parts.append(f'<text class="note" x="{_MARGIN:.0f}" y="{above + 8:.0f}">There are no links.</text>')
    parts += _drawn_arrows(picture, ways, [*zip(spots, sizes, strict=True)])
    parts += _drawn_boxes(picture, labels, spots, sizes, focus)
    if gone:
        parts.append(f'<text class="note" x="{_MARGIN:.0f}" y="{height - 12:.0f}">dashed: does not hold</text>')
    return "\n".join([*parts, "</svg>", ""])


def _edges(picture: _Picture) -> list[tuple[int, int, float]]:
    """Which boxes are linked, and how much room there must be between them for what is written there."""
    return [
        (arrow.start, arrow.end, max(64.0, _width(_cut(arrow.relation, _LONGEST_RELATION), _SMALL) + 46.0))
        for arrow in picture.arrows
    ]


def _width(text: str, size: float) -> float:
    """About how wide a text is; fonts differ, so it is rather too much."""
    return sum(map(_char_width, text)) * size


def _char_width(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.1
    if char in "iljtfrI.,:;'|!()[] ":
        return 0.4
    return 0.92 if char in "mwMW@%…" else 0.72 if char.isupper() else 0.61


# The way of an arrow: a curve from box to box


class _Way(msgspec.Struct, frozen=True):
    """A curve by its begin, the point that bends it, and its end; or a loop, which has two points to bend it."""

    begin: Point
    bend: Point
    end: Point
    second: Point | None = None

    def at(self, t: float) -> Point:
        if self.second is not None:
            points = (self.begin, self.bend, self.second, self.end)
            shares = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        else:
            points = (self.begin, self.bend, self.end, self.end)
            shares = ((1 - t) ** 2, 2 * t * (1 - t), t * t, 0.0)
        return (
            sum(share * x for share, (x, _) in zip(shares, points, strict=True)),
            sum(share * y for share, (_, y) in zip(shares, points, strict=True)),
        )

    def path(self) -> str:
        middle = [self.bend] if self.second is None else [self.bend, self.second]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*middle, self.end))
        return f"M{self.begin[0]:.1f},{self.begin[1]:.1f} {'Q' if self.second is None else 'C'}{points}"


def _ways(picture: _Picture, spots: Sequence[Point], sizes: Sequence[Size]) -> Iterator[_Way]:
    """One way for each arrow; several between the same two boxes bend away from each other."""
    beside: dict[tuple[int, int], list[int]] = {}
    for number, arrow in enumerate(picture.arrows):
        pair = (min(arrow.start, arrow.end), max(arrow.start, arrow.end))
        beside.setdefault(pair, []).append(number)
    for number, arrow in enumerate(picture.arrows):
        pair = (min(arrow.start, arrow.end), max(arrow.start, arrow.end))
        place, count = beside[pair].index(number), len(beside[pair])
        if arrow.start == arrow.end:
            away = _free_direction(picture, spots, arrow.start)
            yield _loop(spots[arrow.start], sizes[arrow.start], place, away)
            continue
        aside = (place - (count - 1) / 2) * _BEND * (1 if arrow.start < arrow.end else -1)
        ways = [_between(spots, sizes, arrow, aside + more) for more in ((0, 26, -26, 52, -52) if count == 1 else (0,))]
        boxes = [box for box in range(len(spots)) if box not in pair] if len(spots) <= _AROUND else []
        yield min(ways, key=lambda way: _crossed(way, [(spots[box], sizes[box]) for box in boxes]))


def _loop(spot: Point, size: Size, place: int, away: float) -> _Way:
    """A loop on the side of a box that is farthest from where other arrows are; ``away`` is the direction of it."""
    (x, y), reach = spot, _LOOP + 16 * place
    up = -1.0 if sin(away) <= 0 else 1.0
    edge, middle = y + up * size[1] / 2, x + cos(away) * max(0.0, size[0] / 2 - 22)
    return _Way(
        (middle - 12, edge), (middle - 30, edge + up * reach * 1.4), (middle + 12, edge + up * 6),
        (middle + 30, edge + up * reach * 1.4),
    )  # fmt: skip


def _free_direction(picture: _Picture, spots: Sequence[Point], box: int) -> float:
    """The middle of the widest gap between the arrows of a box."""
    others = {
        arrow.end if arrow.start == box else arrow.start for arrow in picture.arrows if box in (arrow.start, arrow.end)
    }
    x, y = spots[box]
    angles = sorted(atan2(spots[other][1] - y, spots[other][0] - x) for other in others - {box})
    if not angles:
        return -pi / 2
    gaps = [(after - before, before) for before, after in pairwise([*angles, angles[0] + 2 * pi])]
    wide, start = max(gaps)
    return start + wide / 2


def _between(spots: Sequence[Point], sizes: Sequence[Size], arrow: _Arrow, aside: float) -> _Way:
    (ax, ay), (bx, by) = spots[arrow.start], spots[arrow.end]
    far = hypot(bx - ax, by - ay) or 1.0
    bend = ((ax + bx) / 2 - (by - ay) / far * aside * 2, (ay + by) / 2 + (bx - ax) / far * aside * 2)
    whole = _Way((ax, ay), bend, (bx, by))
    out = _leaving(whole, spots[arrow.start], sizes[arrow.start], 1.0, (0.0, 1.0))
    into = _leaving(whole, spots[arrow.end], sizes[arrow.end], 7.0, (1.0, 0.0))
    begin, end = whole.at(out), whole.at(into)
    middle = (
        (1 - out) * (1 - into) * ax + (out * (1 - into) + into * (1 - out)) * bend[0] + out * into * bx,
        (1 - out) * (1 - into) * ay + (out * (1 - into) + into * (1 - out)) * bend[1] + out * into * by,
    )
    return _Way(begin, middle, end)


def _crossed(way: _Way, boxes: Sequence[tuple[Point, Size]]) -> int:
    """How many boxes a way goes behind."""
    points = [way.at(step / 16) for step in range(1, 16)]
    return sum(
        any(abs(x - at_x) <= width / 2 + 3 and abs(y - at_y) <= height / 2 + 3 for x, y in points)
        for (at_x, at_y), (width, height) in boxes
    )


def _leaving(way: _Way, spot: Point, size: Size, gap: float, inside_out: tuple[float, float]) -> float:
    """Where on its way a curve crosses the border of a box."""
    inside, outside = inside_out
    for _ in range(24):
        middle = (inside + outside) / 2
        x, y = way.at(middle)
        if abs(x - spot[0]) <= size[0] / 2 + gap and abs(y - spot[1]) <= size[1] / 2 + gap:
            inside = middle
        else:
            outside = middle
    return inside


def _frame(spots: Sequence[Point], sizes: Sequence[Size], ways: Sequence[_Way]) -> tuple[float, float, float, float]:
    """What the picture takes: left, top, right and bottom of all that is drawn."""
    points = [
        (x + side * width / 2, y + side * height / 2)
        for (x, y), (width, height) in zip(spots, sizes, strict=True)
        for side in (-1, 1)
    ]
    points += [way.at(t) for way in ways for t in (0.25, 0.5, 0.75)]
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    return min(xs), min(ys), max(xs), max(ys)


# Drawing


def _drawn_arrows(picture: _Picture, ways: Sequence[_Way], boxes: list[tuple[Point, Size]]) -> Iterator[str]:
    """First all lines, then what is written on them, each where it covers least."""
    for arrow, way in zip(picture.arrows, ways, strict=True):
        kind = "edge" if arrow.holds else "edge gone"
        yield f'<g><title>{escape(arrow.more)}</title><path class="{kind}" d="{way.path()}"/>{_head(way, arrow)}</g>'
    taken = list(boxes)
    for arrow, way in zip(picture.arrows, ways, strict=True):
        label = _cut(arrow.relation, _LONGEST_RELATION)
        size = (_width(label, _SMALL) + 8, _SMALL + 5)
        x, y = _free_spot(way, size, taken)
        taken.append(((x, y), size))
        yield (
            f'<rect class="back" x="{x - size[0] / 2:.1f}" y="{y - size[1] / 2:.1f}" width="{size[0]:.1f}" '
            f'height="{size[1]:.1f}" rx="4"/><text class="says{"" if arrow.holds else " was"}" x="{x:.1f}" '
            f'y="{y + 3.8:.1f}">{escape(label)}</text>'
        )


def _head(way: _Way, arrow: _Arrow) -> str:
    """The head of an arrow, drawn rather than referred to: two pictures on one page share no names."""
    (x, y), (from_x, from_y) = way.at(1.0), way.at(0.93)
    far = hypot(x - from_x, y - from_y) or 1.0
    ahead_x, ahead_y = (x - from_x) / far, (y - from_y) / far
    points = [(x + 6 * ahead_x, y + 6 * ahead_y)]
    points += [(x - 3 * ahead_x - side * ahead_y, y - 3 * ahead_y + side * ahead_x) for side in (4.2, -4.2)]
    corners = " ".join(f"{corner_x:.1f},{corner_y:.1f}" for corner_x, corner_y in points)
    return f'<polygon class="head{"" if arrow.holds else " pale"}" points="{corners}"/>'


def _free_spot(way: _Way, size: Size, taken: Sequence[tuple[Point, Size]]) -> Point:
    """Where on its way a label covers nothing, nearest to the middle; or least, where there is no such place."""
    least, best = float("inf"), way.at(0.5)
    for t in (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8):
        spot = way.at(t)
        covered = _covered(spot, size, taken)
        if covered < least:
            least, best = covered, spot
        if not least:
            break
    return best


def _covered(spot: Point, size: Size, taken: Sequence[tuple[Point, Size]]) -> float:
    area, (at_x, at_y), (width, height) = 0.0, spot, size
    for (x, y), (other_width, other_height) in taken:
        over_y = (height + other_height) / 2 - abs(at_y - y)
        if over_y > 0 and (over_x := (width + other_width) / 2 - abs(at_x - x)) > 0:
            area += over_x * over_y
    return area


def _drawn_boxes(
    picture: _Picture, labels: Sequence[str], spots: Sequence[Point], sizes: Sequence[Size], focus: str | None
) -> Iterator[str]:
    roots = {arrow.start for arrow in picture.arrows}
    chosen = None if focus is None else folded(focus)
    for number, (name, label) in enumerate(zip(picture.names, labels, strict=True)):
        (x, y), (width, height) = spots[number], sizes[number]
        kind = "focus" if folded(name) == chosen else "root" if number in roots else "leaf"
        yield (
            f"<g><title>{escape(name)}</title>"
            f'<rect class="box {kind}" x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" '
            f'width="{width:.1f}" height="{height:.1f}" rx="{_ROUND:.0f}"/>'
            f'<text class="name{" chosen" if kind == "focus" else ""}" x="{x:.1f}" y="{y + 4.6:.1f}">{escape(label)}'
            "</text></g>"
        )
