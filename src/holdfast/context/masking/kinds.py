"""What kind of output a text is, told by a few samples of it.

A kind that only *shows* something (source code, a diff, a table) must fit at the beginning, in the middle and at the
end: where a program's output follows what was shown, the text is read as a program's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SAMPLE = 60
_WIDTH = 300
_PATH = r"(?:[A-Za-z]:)?[^\s:]{1,300}"


class OutputKind(NamedTuple):
    """A kind of output.

    ``share`` of each sample must fit the pattern; 0: one line of any sample is enough. With ``mark``, one line of any
    sample must fit that too.
    """

    name: str
    pattern: re.Pattern[str]
    share: float = 0.0
    shown: bool = False
    mark: re.Pattern[str] | None = None


def _said(name: str, *patterns: str, share: float = 0.0) -> OutputKind:
    return OutputKind(name, re.compile("|".join(patterns)), share)


def _only_shown(name: str, *patterns: str, share: float = 0.95, mark: str = "") -> OutputKind:
    return OutputKind(name, re.compile("|".join(patterns)), share, True, re.compile(mark) if mark else None)


TEXT = _said("text")
DOCUMENT = _only_shown("JSON document")
PAGE = _only_shown("HTML page")
MARKUP = _only_shown("XML document")

# The first that fits is the kind, so what is more particular comes first.
KINDS = (
    _said(
        "pytest output",
        r"=+ test session starts =|(?:FAILED|ERROR) \S+\.py::|\S+\.py::\S+ (?:PASSED|FAILED)",
        r"=* ?\d+ (?:passed|failed|errors?)\b.* in [\d.]+s",
    ),
    _said("unittest output", r"Ran \d+ tests? in "),
    _said("jest output", r"Test Suites: |\s*Test Files  |\s*(?:PASS|FAIL) \S+\.(?:test|spec)\.[cm]?[jt]sx?"),
    _said("go test output", r"(?:ok  |FAIL|\?   )\t\S+\t|--- (?:PASS|FAIL|SKIP): |=== RUN "),
    _said(
        "cargo output",
        r"test result: |error\[E\d+\]|\s+(?:Compiling|Checking|Finished|Running) (?:\S+ v\d|`|\S*unittests|dev)",
    ),
    _said("gradle output", r"> Task :|BUILD (?:SUCCESSFUL|FAILED) in|\* What went wrong"),
    _said("maven output", r"\[(?:INFO|ERROR)\] (?:BUILD|Scanning for projects|-{20})"),
    _said("TAP output", r"TAP version \d|(?:not )?ok \d+ "),
    _said(
        "package install",
        r"Collecting \S|Successfully installed |Requirement already satisfied|Resolved \d+ packages",
        r"npm (?:warn|WARN|ERR!|error)|(?:added|removed|changed|audited) \d+ packages?|Setting up \S+ \(|Unpacking ",
    ),
    _only_shown(
        "diff",
        r"diff --git |@@ |[+-]{3} |[-+ ]|index [0-9a-f]+|(?:new|deleted) file|similarity|rename |Binary |\\ No newline",
        r"commit [0-9a-f]{7,}|(?:Author|AuthorDate|Date|Merge|Commit|CommitDate): |old mode|new mode",
        share=0.97,
        mark=r"diff --git |@@ -\d",
    ),
    _said("type checker output", rf"{_PATH}:\d+(?::\d+)?: error: .*\[[a-z-]+\]$", rf"{_PATH}\(\d+,\d+\): error TS\d+"),
    _said(
        "linter output",
        rf"{_PATH}:\d+:\d+:? [A-Z]{{1,5}}\d{{2,5}}[: ]|\s+\d+:\d+\s+(?:error|warning)\s",
        r"\[\*\] \d+ fixable|Found \d+ errors?\.|All checks passed!",
    ),
    _said("compiler output", rf"{_PATH}:\d+:(?:\d+:)? (?:fatal )?(?:error|warning): |make(?:\[\d+\])?: "),
    _only_shown(
        "git log",
        r"commit [0-9a-f]{40}|(?:Author|AuthorDate|Date|Merge|Commit|CommitDate): |    |[*|\\/ ]*[0-9a-f]{7,12} \S",
        mark=r"commit [0-9a-f]{40}|[*|\\/ ]*[0-9a-f]{7,12} \S",
    ),
    _said("git status", r"On branch \S+"),
    _said("stack trace", r"Traceback \(most recent call last\)|\s+at [\w.$<>/ ]+\(.*:\d+|goroutine \d+ \["),
    _said("JSON lines", r"\{.*\}$", share=0.9),
    _said(
        "log",
        r"\W?(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:|\[?(?:INFO|DEBUG|WARN|ERROR|TRACE)\b)",
        r"\S+ - \S+ \[|[IWEF]\d{4} |time=|level=",
        share=0.5,
    ),
    _only_shown("search hits", r"[^\s:]{1,300}[:-]\d+[:-]|--$"),
    _only_shown("change summary", r"\s?\S.* \|\s+(?:\d+|Bin)\b|\s*\d+ files? changed|\s(?:create|delete|rename) "),
    _only_shown(
        "file listing",
        r"[dlcbps-][rwxsStT-]{9}|total \d|[^\s:,;|=<>{}()]*[/.\w][^\s:,;|=<>{}()]*$|[│├└─\s|`]{2,}\S|\d+\t\S+$|\S+:$",
        mark=r".*[./]",
    ),
    _only_shown("table", r"[^|]*\|.*|[+-]{3,}[+-]*$|\(?\d+ rows?\b.*|[─━┌├└│┃╭╰].*"),
    _only_shown("CSV table", r"[^,;\t]*(?:[,;\t][^,;\t]*){2,}$", mark=r"\S*[,;\t]\S"),
    _only_shown(
        "source code",
        r"\s*(?:import|from|def|class|func|fn|pub|use|const|let|var|public|private|return|if|else|for|while|package|type"
        r"|export|@|#|//|/?\*|\"\"\"|<!--)(?:\b|\s|$).*",
        r".*[{};:,(\[)\]]$|\s{2,}\S.*|[\w.]+ ?= ?.*|[\])}]+.*",
        share=0.9,
    ),
    _said("columns", r"\S+(?: \S+){0,6}(?:\s{2,}\S+(?: \S+)*)+", share=0.9),
    _only_shown(
        "Markdown",
        r"#{1,6} |\s*[-*•+] |\s*\d+\. |\||```|\*\*|>|(?:\S+ ){4,}|\s{2,}\S|=+$|-+$|\[|.*[.:;,]$",
        share=0.8,
        mark=r"#{2,4} \w",
    ),
    _only_shown(
        "prose",
        r"\s*#{1,6} |\s*[-*•] .{20}|(?:[^\s=/{}<>|\\]+ ){6,}.*|=+$|-+$|>",
        share=0.6,
        mark=r"(?=.{200}).*[a-z]{2}[.!?] [A-Z]",
    ),
)

_PAGE = re.compile(r"\s*(?:<!doctype html|<html)", re.IGNORECASE)
_MARKUP = re.compile(r"\s*<(?:\?xml|svg|rss|feed)\b", re.IGNORECASE)


def kind_of(lines: list[str]) -> OutputKind:
    """The kind of output that these lines are."""
    if not lines:
        return TEXT
    if _PAGE.match(lines[0]):
        return PAGE
    if _MARKUP.match(lines[0]):
        return MARKUP
    samples = _samples(lines)
    return next((kind for kind in KINDS if _fits(kind, samples)), TEXT)


def _samples(lines: list[str]) -> list[list[str]]:
    middle = max(len(lines) // 2 - _SAMPLE // 2, 0)
    parts = (lines[:_SAMPLE], lines[middle : middle + _SAMPLE], lines[-_SAMPLE:])
    return [[line[:_WIDTH] for line in part] for part in parts]


def _fits(kind: OutputKind, samples: list[list[str]]) -> bool:
    if kind.mark and not _any(kind.mark, samples):
        return False
    if not kind.share:
        return _any(kind.pattern, samples)
    fitting = ((sum(bool(kind.pattern.match(line)) for line in sample), len(sample)) for sample in samples)
    return all(fits >= kind.share * size for fits, size in fitting)


def _any(pattern: re.Pattern[str], samples: list[list[str]]) -> bool:
    return any(pattern.match(line) for sample in samples for line in sample)
