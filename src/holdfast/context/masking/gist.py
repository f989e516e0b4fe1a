"""What is kept of an output besides its errors: the lines that sum it up, what can be counted, what it is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from holdfast.context.masking.kinds import OutputKind
from holdfast.context.masking.lines import holding

# One of these is in every line that sums an output up; looking for them is many times faster than the patterns.
_STEMS = (
    " passed", " failed", " failing", " passing", " pending", " skipped", " flaky", "# ", "\u2139 ", "Tests",
    "Test Suites", "Test Files", "Snapshots", "Time:", "Duration", "test result", "Ran ", "Found ", "TOTAL", "exit",
    "Exit", "packages", "row", "changed", "uccess", "BUILD", "Finished", "problem", "checks", "completed", "tasks",
    "returncode", "generated", "HTTP/", "OK", "director", "upgraded", "branch", "nothing to", "example", "rated at",
    " kept", "INSERT ", "UPDATE ", "DELETE ", "SELECT ", "COPY ", "FAILED (", "Total time", "tests passed",
    " error", "up to date",
)  # fmt: skip
_BEGINS = re.compile(
    "|".join(
        (
            r"Ran \d+ tests? in|(?:OK|FAILED)(?: \(.*|$)|test result: |\s*Finished |Contracts: \d+ kept",
            r"\s*(?:Tests|Test Suites|Test Files|Snapshots|Time|Duration):?\s+.*\d",
            r"\s*\d+ (?:passing|failing|pending|passed|failed|skipped|flaky)\b",
            r"[#\u2139] (?:tests|pass|fail|duration_ms) \d",
            r"\d+ (?:actionable tasks|tests completed|upgraded)|\d+ (?:errors?|warnings?)(?: and \d+ \w+)? generated",
            r"Found \d+ |All checks passed|Success: |✖ \d+ problems?|Your code has been rated|Successfully ",
            r"(?:added|removed|changed|audited|up to date)\b.*packages?",
            r"\s*\d+ files? changed|On branch |Your branch is",
            r"nothing to commit|\(?\d+ rows?\b|(?:INSERT|UPDATE|DELETE|SELECT|COPY) \d+|Query OK",
            r"TOTAL\s+\d|HTTP/[\d.]+ \d{3}",
            r"\d+ director(?:y|ies), \d+ files?|\d+ examples?, \d+ failures?|\d+% tests passed",
            r"\W?[Ee]xit(?:ed)?\W{1,3}\d+",
        )
    )
)
_HOLDS = re.compile(
    r"\b\d+ (?:passed|failed|errors?|skipped|xfailed|deselected)\b.* in [\d.]+|BUILD (?:SUCCESS|FAIL)|Tests run: \d"
    r"|generated \d+ warning|Total time: |\b[Ee]xit(?:ed)?\b.{0,40}\b(?:code|status)\b\D{0,4}-?\d+"
    r"|\b(?:returncode|exit_code)\W{1,4}-?\d+"
)
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


def sums(lines: list[str]) -> list[str]:
    """The lines that sum an output up. Of those that differ in numbers alone, the last."""
    found: dict[str, str] = {}
    for at in sorted(holding(_STEMS, lines)):
        line = lines[at]
        if _BEGINS.match(line) or _HOLDS.search(line):
            form = _DIGITS.sub("#", line)
            found.pop(form, None)
            found[form] = line
    return list(found.values())


_CHANGED = re.compile(r"\+\+\+ (?:b/)?(\S+)")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,300})|<h1[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)
_HEADING = re.compile(r"\s*#{1,6} +(.+)")


def about(kind: OutputKind, lines: list[str]) -> str:
    """The files of a diff, the title of a page, the headings of a text, in one line."""
    if kind.name == "diff":
        return ", ".join(changed[1] for line in lines if (changed := _CHANGED.match(line)))
    if kind.name == "HTML page":
        titles = (_TITLE.search(line) for line in lines[:400] if "<" in line)
        return next(((title[1] or title[2]).strip() for title in titles if title), "")
    if kind.name == "Markdown":
        return " · ".join(heading[1] for line in lines if (heading := _HEADING.match(line)))
    return ""


def counts(kind: OutputKind, lines: list[str]) -> str:
    """What a kind of output lets one count, in our own words: nothing in it is quoted but endings and levels."""
    counted = _COUNTS.get(kind.name)
    return counted(lines) if counted else ""


def _listed(numbers: Counter[str], most: int, form: str = "{0:,} {1}") -> str:
    return ", ".join(form.format(number, name) for name, number in numbers.most_common(most))


_ENDING = re.compile(r"(?<=\w)\.[A-Za-z][A-Za-z0-9]{0,7}$")
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b", re.IGNORECASE)
_WARNING = re.compile(r"(?:.{0,300}: |\s*)warning\b(?:\[\w+\])?:? |\s+\d+:\d+\s+warning\s", re.IGNORECASE)


def _of_listing(lines: list[str]) -> str:
    return _listed(Counter(ending[0] for line in lines if (ending := _ENDING.search(line[-12:]))), 4)


def _of_log(lines: list[str]) -> str:
    return _listed(Counter(level[1].upper() for line in lines if (level := _LEVEL.search(line[:120]))), 6)


def _of_diff(lines: list[str]) -> str:
    marks = Counter(line[0] for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---"))
    files = sum(line.startswith("+++ ") for line in lines)
    return f"{files:,} files, {marks['+']:,} lines added, {marks['-']:,} removed"


def _of_hits(lines: list[str]) -> str:
    return f"hits in {len({line.partition(':')[0] for line in lines}):,} files"


def _of_commits(lines: list[str]) -> str:
    whole = sum(line.startswith("commit ") for line in lines)
    return f"{whole or len(lines):,} commits"


def _of_go(lines: list[str]) -> str:
    packages = Counter(line[:4].strip() for line in lines if line.startswith(("ok  \t", "FAIL\t")))
    tests = Counter(line.lstrip()[4:8] for line in lines if line.lstrip()[:8] in ("--- PASS", "--- FAIL", "--- SKIP"))
    return "; ".join(filter(None, (_listed(packages, 2, "{0:,} packages {1}"), _listed(tests, 3))))


def _of_rows(lines: list[str]) -> str:
    separator = max(",;\t", key=lines[0].count)
    return f"{len(lines) - 1:,} rows, {lines[0].count(separator) + 1} columns"


def _of_warnings(lines: list[str]) -> str:
    number = sum("arning" in line and bool(_WARNING.match(line)) for line in lines)
    return f"{number:,} warnings" if number else ""


_COUNTS: dict[str, Callable[[list[str]], str]] = {
    "file listing": _of_listing,
    "log": _of_log,
    "JSON lines": _of_log,
    "diff": _of_diff,
    "search hits": _of_hits,
    "git log": _of_commits,
    "go test output": _of_go,
    "CSV table": _of_rows,
    "compiler output": _of_warnings,
    "cargo output": _of_warnings,
    "linter output": _of_warnings,
    "gradle output": _of_warnings,
}
