"""Timing by turns: the things to compare run alternately in small rounds, so that a busy moment hits all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


def rounds(work: dict[str, Callable[[], None]], *, times: int, repeats: int) -> dict[str, list[float]]:
    """Run each piece ``times`` times per round, ``repeats`` rounds; return seconds per call, one figure a round."""
    spent: dict[str, list[float]] = {name: [] for name in work}
    names = list(work)
    for number in range(repeats):
        for name in names if number % 2 else reversed(names):
            call = work[name]
            begin = time.perf_counter()
            for _ in range(times):
                call()
            spent[name].append((time.perf_counter() - begin) / times)
    return spent


def spread(values: list[float]) -> str:
    """The middle half of some figures, for a reader who wants to know how steady they are."""
    low, _, high = statistics.quantiles(values, n=4)
    return f"{low:.3g} … {high:.3g}"


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(title: str, rows: list[Row]) -> None:
    """Print rows of equal keys as a table."""
    print(f"\n{title}")
    if not rows:
        return
    columns = list(rows[0])
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    print("  " + "  ".join(column.ljust(width) for column, width in zip(columns, widths, strict=True)))
    for line in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))


def _cell(value: Any) -> str:
    return f"{value:,.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
