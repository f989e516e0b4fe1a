"""How many lines each pattern takes, with Holdfast and without: ``python benchmarks/pattern_lines.py``.

It prints the table of ``examples/patterns/README.md``. A line counts if it holds code: blank lines, comments and
docstrings do not. Both sides are counted alike, imports and the part that tries it out included. Deliberately absent:
running them; ``tests/examples/test_patterns.py`` does that, and compares what both sides print.
"""

from __future__ import annotations

import ast
import io
import statistics
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATTERNS, PLAIN = ROOT / "examples" / "patterns", ROOT / "benchmarks" / "plain_patterns"
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """The number of lines with code on them."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    spans = (range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in _NO_CODE)
    lines = {line for span in spans for line in span}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def table() -> str:
    """The table, and below it how many times as many lines the plain way has."""
    rows, times = ["| pattern | program | lines | plain | what the plain one lacks |", "|---|---|---|---|---|"], []
    for path in sorted(PATTERNS.glob("*.py")):
        ours, plain, lacks = path.read_text(encoding="utf-8"), "not written", ""
        if (beside := PLAIN / path.name).exists():
            source = beside.read_text(encoding="utf-8")
            plain, lacks = str(code_lines(source)), " ".join(_docstring(source).split("Lacks: ")[1].split())
            times.append(code_lines(source) / code_lines(ours))
        name = _docstring(ours).split(":")[0]
        rows.append(f"| {name} | [{path.name}]({path.name}) | {code_lines(ours)} | {plain} | {lacks} |")
    return "\n".join([*rows, "", f"The plain way takes {statistics.median(times):.1f} times as many lines (median).\n"])


def _docstring(source: str) -> str:
    return ast.get_docstring(ast.parse(source)) or ""


if __name__ == "__main__":
    print(table(), end="")
