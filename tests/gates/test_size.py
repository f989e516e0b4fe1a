"""Functions stay short enough to be read at once. Ruff holds their complexity; this holds their length."""

from __future__ import annotations

import ast

LOOK_AGAIN = 60
NEVER = 120
BUDGET = 0.02


def test_functions_are_short(trees: dict[str, ast.Module]) -> None:
    sizes = sorted(
        (
            (node.end_lineno or node.lineno) - node.lineno + 1,
            f"{name}:{node.name}",
        )
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    long = [item for item in sizes if item[0] > LOOK_AGAIN]
    report = ", ".join(f"{name} ({lines} lines)" for lines, name in reversed(sizes[-5:]))
    print(f"{len(sizes)} functions, {len(long)} above {LOOK_AGAIN} lines; the longest: {report}")
    assert sizes[-1][0] <= NEVER, report
    assert len(long) <= BUDGET * len(sizes), report
