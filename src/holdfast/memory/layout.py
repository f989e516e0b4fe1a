"""Where the boxes of a drawing go: near what they are linked to, and never on top of one another.

Each connected part is laid out by itself: boxes are moved until their distances are close to the length of the way
between them along the links (stress majorisation). The part is turned so that it lies flat, boxes that still overlap
are pushed apart, and the parts are set in rows. The same links always give the same picture: nothing here is drawn by
lot. Deliberately absent: text, colours and SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import combinations
from math import atan2, cos, hypot, pi, sin, sqrt

Point = tuple[float, float]
Size = tuple[float, float]
Edge = tuple[int, int, float]
"""Two boxes, and how much room is needed between them when they are side by side."""

_APART = 18.0  # between two boxes
_PARTS_APART = 46.0
_WORK = 1_500_000  # looks at pairs of boxes
_ROUNDS = 240
_WIDE = 1.5  # width of the whole to its height
_STRETCH = (1.3, 0.85)  # boxes and what is written between them are wide, so ways from left to right are longer
_SHARE = 0.36  # of the widths of two boxes in the way between them: they are seldom side by side
_AROUND = 12.0  # how much farther out a box is for each that shares its only neighbour with it


def arrange(sizes: Sequence[Size], edges: Sequence[Edge]) -> list[Point]:
    """The centres of boxes, so that nothing is left of or above the origin."""
    laid: list[tuple[list[int], list[Point]]] = []
    for part in _parts(len(sizes), edges):
        place = {box: number for number, box in enumerate(part)}
        inside = [(place[a], place[b], room) for a, b, room in edges if a in place and a != b]
        boxes = [sizes[box] for box in part]
        spots = _stretched(_flat(_stress(len(part), _lengths(boxes, inside))))
        laid.append((part, _apart(spots, boxes, inside)))
    return _in_rows(laid, sizes)


def _lengths(sizes: Sequence[Size], edges: Sequence[Edge]) -> list[Edge]:
    """How far apart the centres of linked boxes should be. Many around one go farther out."""
    degree = [0] * len(sizes)
    for a, b, _ in edges:
        degree[a] += 1
        degree[b] += 1
    return [
        (a, b, max(_SHARE * (sizes[a][0] + sizes[b][0]) + room, _AROUND * max(degree[a], degree[b])))
        for a, b, room in edges
    ]


def _stretched(spots: Sequence[Point]) -> list[Point]:
    return [(x * _STRETCH[0], y * _STRETCH[1]) for x, y in spots]


def _parts(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Connected parts, the largest first."""
    around: list[list[int]] = [[] for _ in range(count)]
    for a, b, _ in edges:
        around[a].append(b)
        around[b].append(a)
    seen: set[int] = set()
    parts = []
    for start in range(count):
        if start in seen:
            continue
        part, waiting = [], [start]
        seen.add(start)
        while waiting:
            box = waiting.pop(0)
            part.append(box)
            for other in around[box]:
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        parts.append(part)
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def _stress(count: int, edges: Sequence[Edge]) -> list[Point]:
    """Move every box to where the ways to all others would have it, again and again."""
    ways = _ways(count, edges)
    pull = _pull(count, edges)
    turn = pi * (3 - sqrt(5))  # a spiral: no two boxes in one place, no two in line
    spot = [(60 * sqrt(n + 0.5) * cos(n * turn), 60 * sqrt(n + 0.5) * sin(n * turn)) for n in range(count)]
    for _ in range(max(4, min(_ROUNDS, _WORK // max(1, count * count)))):
        moved = 0.0
        for i in range(count):
            (x, y), total, sum_x, sum_y = spot[i], 0.0, 0.0, 0.0
            for j, way in enumerate(ways[i]):
                if i == j:
                    continue
                away_x, away_y = x - spot[j][0], y - spot[j][1]
                far = hypot(away_x, away_y) or 1e-6
                weight = pull.get((i, j), 1.0) / (way * way)
                sum_x += weight * (spot[j][0] + way * away_x / far)
                sum_y += weight * (spot[j][1] + way * away_y / far)
                total += weight
            if total:
                spot[i] = (sum_x / total, sum_y / total)
                moved = max(moved, hypot(spot[i][0] - x, spot[i][1] - y))
        if moved < 0.05:
            break
    return spot


def _pull(count: int, edges: Sequence[Edge]) -> dict[tuple[int, int], float]:
    """How much more a link counts than the way to boxes farther off: as much as those are many around one."""
    degree = [0] * count
    for a, b, _ in edges:
        degree[a] += 1
        degree[b] += 1
    return {pair: 1 + max(degree[a], degree[b]) / 2 for a, b, _ in edges for pair in ((a, b), (b, a))}


def _ways(count: int, edges: Sequence[Edge]) -> list[list[float]]:
    """The length of the shortest way between every two boxes of a connected part."""
    around: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    for a, b, length in edges:
        around[a].append((b, length))
        around[b].append((a, length))
    found = []
    for start in range(count):
        ways = [float("inf")] * count
        ways[start] = 0.0
        waiting = [(0.0, start)]
        while waiting:
            way, box = heappop(waiting)
            if way > ways[box]:
                continue
            for other, length in around[box]:
                if way + length < ways[other]:
                    ways[other] = way + length
                    heappush(waiting, (way + length, other))
        found.append(ways)
    return found


def _flat(spots: Sequence[Point]) -> list[Point]:
    """Turned so that the longest way across is from left to right."""
    count = len(spots)
    mid_x, mid_y = sum(x for x, _ in spots) / count, sum(y for _, y in spots) / count
    moved = [(x - mid_x, y - mid_y) for x, y in spots]
    across = sum(x * x for x, _ in moved) - sum(y * y for _, y in moved)
    angle = -0.5 * atan2(2 * sum(x * y for x, y in moved), across)
    return [(x * cos(angle) - y * sin(angle), x * sin(angle) + y * cos(angle)) for x, y in moved]


def _apart(spots: list[Point], sizes: Sequence[Size], edges: Sequence[Edge]) -> list[Point]:
    """Push boxes away from each other until none overlap, and linked ones have room for what is between them.

    Where that takes too long, the boxes that still overlap go down, for certain.
    """
    rooms: dict[tuple[int, int], float] = {}
    for a, b, room in edges:
        pair = (min(a, b), max(a, b))
        rooms[pair] = max(rooms.get(pair, 0.0), room)
    for _ in range(max(2, min(300, _WORK // max(1, len(spots) ** 2)))):
        clear = True
        for i, j in combinations(range(len(spots)), 2):
            over_x, over_y = _overlap(spots[i], sizes[i], spots[j], sizes[j], rooms.get((i, j), _APART))
            if over_x > 0 and over_y > 0:
                spots[i], spots[j] = _pushed(spots[i], spots[j], over_x, over_y)
                clear = False
        if clear:
            break
    return _downwards(spots, sizes)


def _pushed(a: Point, b: Point, over_x: float, over_y: float) -> tuple[Point, Point]:
    """Both moved by half of what is missing, the shorter way."""
    if over_y <= over_x:
        half = over_y / 2 + 0.01 if a[1] > b[1] else -over_y / 2 - 0.01
        return (a[0], a[1] + half), (b[0], b[1] - half)
    half = over_x / 2 + 0.01 if a[0] > b[0] else -over_x / 2 - 0.01
    return (a[0] + half, a[1]), (b[0] - half, b[1])


def _downwards(spots: list[Point], sizes: Sequence[Size]) -> list[Point]:
    placed: list[int] = []
    for i in sorted(range(len(spots)), key=lambda i: (spots[i][1], i)):
        blocked = True
        while blocked:
            blocked = False
            for j in placed:
                over_x, over_y = _overlap(spots[i], sizes[i], spots[j], sizes[j])
                if over_x > 0 and over_y > 0:
                    low = spots[j][1] + (sizes[i][1] + sizes[j][1]) / 2 + _APART + 0.01
                    spots[i], blocked = (spots[i][0], low), True
        placed.append(i)
    return spots


def _overlap(a: Point, size_a: Size, b: Point, size_b: Size, room: float = _APART) -> tuple[float, float]:
    return (
        (size_a[0] + size_b[0]) / 2 + room - abs(a[0] - b[0]),
        (size_a[1] + size_b[1]) / 2 + _APART - abs(a[1] - b[1]),
    )


def _in_rows(laid: Sequence[tuple[list[int], list[Point]]], sizes: Sequence[Size]) -> list[Point]:
    """Set the parts beside each other, and begin a row when one is full."""
    frames = [_frame(spots, [sizes[box] for box in part]) for part, spots in laid]
    area = sum((right - left + _PARTS_APART) * (low - top + _PARTS_APART) for left, top, right, low in frames)
    widest = max((right - left for left, _, right, _ in frames), default=0.0)
    full = max(widest, sqrt(area * _WIDE))
    found: list[Point] = [(0.0, 0.0)] * len(sizes)
    x = y = deep = 0.0
    for (part, spots), (left, top, right, low) in zip(laid, frames, strict=True):
        if x > 0 and x + right - left > full + 1:
            x, y, deep = 0.0, y + deep + _PARTS_APART, 0.0
        for box, (at_x, at_y) in zip(part, spots, strict=True):
            found[box] = (at_x - left + x, at_y - top + y)
        x, deep = x + right - left + _PARTS_APART, max(deep, low - top)
    return found


def _frame(spots: Sequence[Point], sizes: Sequence[Size]) -> tuple[float, float, float, float]:
    boxes = list(zip(spots, sizes, strict=True))
    return (
        min(x - width / 2 for (x, _), (width, _) in boxes), min(y - height / 2 for (_, y), (_, height) in boxes),
        max(x + width / 2 for (x, _), (width, _) in boxes), max(y + height / 2 for (_, y), (_, height) in boxes),
    )  # fmt: skip
