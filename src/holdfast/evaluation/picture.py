"""Measures as a picture: groups of bars, the same bars in each group, for what is compared on each file.

The SVG needs no program and no font, and follows the reader's light or dark setting. The axis begins at zero, so that
bars are as long as what they stand for. Deliberately absent: measuring.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

import msgspec

from holdfast.errors import Invalid

_LEFT, _RIGHT, _BOTTOM = 58.0, 32.0, 70.0
_NARROWEST = 720.0
_PLOT = 300.0
_BAR, _GAP, _BETWEEN = 44.0, 7.0, 54.0
_SWATCH, _LINE = 12.0, 22.0
_CHAR, _BOLD = 6.6, 7.3  # how wide a character is at most, in small and in bold text
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LIGHT = ("#c6d0e0", "#9dbcea", "#6b9ef0", "#3a7bea", "#1d4fb8")
_DARK = ("#465064", "#3e5f98", "#3f78cc", "#5b9bf5", "#a3caff")
_FONT = 'system-ui,-apple-system,"Segoe UI",sans-serif'
_STYLE = f"""
.paper{{fill:#ffffff}}.grid{{stroke:#e6e9ef}}.base{{stroke:#8a94a6}}
.title{{font:600 16px {_FONT};fill:#1c2430}}.note{{font:12px {_FONT};fill:#5d6778}}
.axis{{font:11px {_FONT};fill:#868e9c;text-anchor:end}}.key{{font:12px {_FONT};fill:#3a4454}}
.value{{font:600 12px {_FONT};fill:#1c2430;text-anchor:middle}}
.file{{font:600 13px {_FONT};fill:#1c2430;text-anchor:middle}}
.count{{font:11px {_FONT};fill:#868e9c;text-anchor:middle}}
{"".join(f".b{number}{{fill:{colour}}}" for number, colour in enumerate(_LIGHT))}
@media (prefers-color-scheme:dark){{
.paper{{fill:#12161d}}.grid{{stroke:#262d39}}.base{{stroke:#748098}}
.title,.value,.file{{fill:#e6eaf2}}.note{{fill:#aab4c5}}.axis,.count{{fill:#7d8798}}.key{{fill:#c6cedb}}
{"".join(f".b{number}{{fill:{colour}}}" for number, colour in enumerate(_DARK))}
}}
"""


class Group(msgspec.Struct, frozen=True):
    """The bars of one group: its name, what stands below it, and one value from 0 to 1 for each bar."""

    name: str
    note: str
    values: tuple[float, ...]


def picture(bars: Sequence[str], groups: Sequence[Group], *, title: str, note: str = "") -> str:
    """The values of all groups as an SVG document. ``bars`` names the bars, which are the same in each group."""
    if not groups or not 1 <= len(bars) <= len(_LIGHT) or any(len(group.values) != len(bars) for group in groups):
        raise Invalid(f"a picture needs at least one group, and 1 to {len(_LIGHT)} bars, the same in each")
    wide = len(bars) * (_BAR + _GAP) - _GAP
    width = max(_NARROWEST, _LEFT + _RIGHT + len(groups) * (wide + _BETWEEN))
    legend, lines = _legend(bars, width)
    top = 96.0 + lines * _LINE  # with room for the number on a bar that reaches it
    height = top + _PLOT + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img">',
        f"<title>{_safe(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="12"/>',
        f'<text class="title" x="28" y="36">{_safe(title)}</text>',
        f'<text class="note" x="28" y="57">{_safe(note)}</text>',
        *legend,
        *_grid(width, top),
    ]
    room = (width - _LEFT - _RIGHT) / len(groups)
    for number, group in enumerate(groups):
        middle = _LEFT + room * (number + 0.5)
        parts += _group(group, bars, middle, middle - wide / 2, top, room)
    return "\n".join([*parts, "</svg>", ""])


def _legend(bars: Sequence[str], width: float) -> tuple[list[str], int]:
    """Which colour is which, on as many lines as that takes."""
    parts, x, line = [], 28.0, 0
    for number, name in enumerate(bars):
        takes = _SWATCH + 6 + len(name) * _CHAR + 18
        if number and x + takes > width - _RIGHT:
            x, line = 28.0, line + 1
        y = 74.0 + line * _LINE
        parts.append(
            f'<rect class="b{number}" x="{x:.1f}" y="{y:.1f}" width="{_SWATCH:.0f}" height="{_SWATCH:.0f}" rx="3"/>'
            f'<text class="key" x="{x + _SWATCH + 6:.1f}" y="{y + 10.5:.1f}">{_safe(name)}</text>'
        )
        x += takes
    return parts, line + 1


def _grid(width: float, top: float) -> Iterator[str]:
    for tenths in range(0, 11, 2):
        y = _height_of(tenths / 10, top)
        kind = "base" if tenths == 0 else "grid"
        yield f'<line class="{kind}" x1="{_LEFT:.1f}" y1="{y:.1f}" x2="{width - _RIGHT:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="axis" x="{_LEFT - 10:.1f}" y="{y + 4:.1f}">{tenths / 10:.1f}</text>'


def _group(group: Group, bars: Sequence[str], middle: float, left: float, top: float, room: float) -> Iterator[str]:
    for number, (name, value) in enumerate(zip(bars, group.values, strict=True)):
        x, y = left + number * (_BAR + _GAP), _height_of(min(max(value, 0.0), 1.0), top)
        told = _safe(f"{group.name}, {name}: {value:.3f}")
        yield f'<g><title>{told}</title><path class="b{number}" d="{_bar(x, y, top + _PLOT)}"/>'
        yield f'<text class="value" x="{x + _BAR / 2:.1f}" y="{y - 6:.1f}">{value:.2f}</text></g>'
    low = top + _PLOT
    name, note = _cut(group.name, room, _BOLD), _cut(group.note, room, _CHAR)
    yield f'<text class="file" x="{middle:.1f}" y="{low + 25:.1f}">{_safe(name)}</text>'
    yield f'<text class="count" x="{middle:.1f}" y="{low + 43:.1f}">{_safe(note)}</text>'


def _bar(x: float, y: float, low: float) -> str:
    """A bar that stands on the axis, its upper corners rounded."""
    round_by = min(4.0, low - y)
    return (
        f"M{x:.1f},{low:.1f}V{y + round_by:.1f}q0,{-round_by:.1f} {round_by:.1f},{-round_by:.1f}"
        f"h{_BAR - 2 * round_by:.1f}q{round_by:.1f},0 {round_by:.1f},{round_by:.1f}V{low:.1f}z"
    )


def _height_of(value: float, top: float) -> float:
    return top + _PLOT * (1 - value)


def _cut(text: str, room: float, char: float) -> str:
    most = max(4, int((room - 12) / char))
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _safe(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", " ".join(text.split())))
