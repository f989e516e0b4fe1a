"""How bytes grow with messages, as a picture: one line for each way of keeping them, both axes logarithmic.

On such axes what grows with the content is as steep as the content itself, and what grows with its square is twice as
steep. The SVG needs no program and no font, and follows the reader's light or dark setting. Deliberately absent:
measuring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

Points = Sequence[tuple[int, int]]

_WIDTH, _HEIGHT = 860.0, 520.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 74.0, 244.0, 84.0, 58.0
_APART = 34.0  # how far the names of two lines must be from each other
_LIGHT = ("#1d4fb8", "#4f8df0", "#b4481a", "#e08a3c", "#7b5ea7", "#a78bc9", "#8a94a6")
_DARK = ("#7db2ff", "#4f86d8", "#ff9a62", "#c9854a", "#c3a6ef", "#8f78b5", "#7d8798")
_FONT = 'system-ui,-apple-system,"Segoe UI",sans-serif'
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))


def _colours(colours: Sequence[str]) -> str:
    return "".join(f".l{number}{{stroke:{each}}}.n{number}{{fill:{each}}}" for number, each in enumerate(colours))


_STYLE = f"""
.paper{{fill:#ffffff}}.grid{{stroke:#e6e9ef}}.base{{stroke:#8a94a6}}
.title{{font:600 16px {_FONT};fill:#1c2430}}.note{{font:12px {_FONT};fill:#5d6778}}
.axis{{font:11px {_FONT};fill:#868e9c}}.end{{text-anchor:end}}.middle{{text-anchor:middle}}
.line{{fill:none;stroke-width:2.2;stroke-linejoin:round}}.raw{{stroke-dasharray:5 4;stroke-width:1.6}}
.lead{{fill:none;stroke-width:1;opacity:.45}}
.name{{font:600 12px {_FONT}}}.told{{font:11px {_FONT};fill:#5d6778}}
{_colours(_LIGHT)}
@media (prefers-color-scheme:dark){{
.paper{{fill:#12161d}}.grid{{stroke:#262d39}}.base{{stroke:#748098}}
.title{{fill:#e6eaf2}}.note,.told{{fill:#aab4c5}}.axis{{fill:#7d8798}}
{_colours(_DARK)}
}}
"""


class _Axes:
    """Where a number of messages and a number of bytes are on the paper."""

    def __init__(self, lines: Mapping[str, Points]) -> None:
        counts = [count for points in lines.values() for count, _ in points]
        sizes = [size for points in lines.values() for _, size in points]
        self.first, self.last = log10(min(counts)), log10(max(counts))
        self.low, self.high = floor(log10(min(sizes))), ceil(log10(max(sizes)))
        self.counts = sorted(set(counts))

    def x(self, count: float) -> float:
        room = _WIDTH - _LEFT - _RIGHT
        return _LEFT + room * (log10(count) - self.first) / ((self.last - self.first) or 1)

    def y(self, size: float) -> float:
        room = _HEIGHT - _TOP - _BOTTOM
        return _HEIGHT - _BOTTOM - room * (log10(size) - self.low) / ((self.high - self.low) or 1)


def drawn(lines: Mapping[str, Points], *, raw: str, title: str, note: str = "") -> str:
    """The lines as an SVG document. ``raw`` names the one that the others are compared with, which is dashed."""
    if not lines or len(lines) > len(_LIGHT) or raw not in lines or not all(lines.values()):
        raise ValueError(f"1 to {len(_LIGHT)} lines with points, one of them called {raw!r}")
    axes = _Axes(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" width="{_WIDTH:.0f}" '
        f'height="{_HEIGHT:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}" rx="12"/>',
        f'<text class="title" x="28" y="36">{escape(title)}</text>',
        f'<text class="note" x="28" y="57">{escape(note)}</text>',
        *_grid(axes),
        *_curves(lines, axes, raw),
        *_names(lines, axes, raw),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _grid(axes: _Axes) -> Iterator[str]:
    right, low = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for power in range(axes.low, axes.high + 1):
        y = axes.y(10.0**power)
        kind = "base" if power == axes.low else "grid"
        yield f'<line class="{kind}" x1="{_LEFT:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="axis end" x="{_LEFT - 9:.1f}" y="{y + 4:.1f}">{told(10.0**power)}</text>'
    for count in axes.counts:
        x = axes.x(count)
        yield f'<line class="base" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{low + 5:.1f}"/>'
        yield f'<text class="axis middle" x="{x:.1f}" y="{low + 19:.1f}">{count:,}</text>'
    yield f'<text class="axis middle" x="{(_LEFT + right) / 2:.1f}" y="{low + 41:.1f}">messages in the thread</text>'


def _curves(lines: Mapping[str, Points], axes: _Axes, raw: str) -> Iterator[str]:
    for number, (name, points) in enumerate(lines.items()):
        path = "L".join(f"{axes.x(count):.1f},{axes.y(size):.1f}" for count, size in points)
        kind = f"line raw l{number}" if name == raw else f"line l{number}"
        yield f'<path class="{kind}" d="M{path}"/>'
        for count, size in points:
            about = f"{name}: {told(size)} for {count:,} messages"
            yield f'<circle class="n{number}" cx="{axes.x(count):.1f}" cy="{axes.y(size):.1f}" r="3">'
            yield f"<title>{escape(about)}</title></circle>"


def _names(lines: Mapping[str, Points], axes: _Axes, raw: str) -> Iterator[str]:
    """Each line's name where it ends, with what it comes to; those that would cover each other move apart."""
    basis = dict(lines[raw])
    ends = sorted(
        (axes.y(points[-1][1]), number, name, points[-1]) for number, (name, points) in enumerate(lines.items())
    )
    places = _apart([y for y, *_ in ends])
    for (y, number, name, (count, size)), place in zip(ends, places, strict=True):
        x = axes.x(count)
        factor = f", {_times(size / basis[count])} times raw" if name != raw and count in basis else ""
        yield f'<path class="lead l{number}" d="M{x + 5:.1f},{y:.1f}L{x + 18:.1f},{place - 4:.1f}"/>'
        yield f'<text class="name n{number}" x="{x + 22:.1f}" y="{place:.1f}">{escape(name)}</text>'
        yield f'<text class="told" x="{x + 22:.1f}" y="{place + 14:.1f}">{told(size)}{factor}</text>'


def _apart(wanted: Sequence[float]) -> list[float]:
    """The same heights, moved down where two would be too close, and all up again where the last one leaves."""
    places: list[float] = []
    for y in wanted:
        places.append(max(y, places[-1] + _APART) if places else y)
    lowest = _HEIGHT - _BOTTOM - 10
    for number in range(len(places) - 1, -1, -1):
        places[number] = min(places[number], lowest)
        lowest = places[number] - _APART
    return places


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


def told(size: float) -> str:
    """A number of bytes as people say it."""
    unit, name = next((unit, name) for unit, name in _UNITS if size >= unit or unit == 1.0)
    return f"{size / unit:.3g} {name}"
