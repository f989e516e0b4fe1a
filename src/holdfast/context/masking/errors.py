"""Which lines say that something went wrong.

There are two ways to say so. A *format* is how a tool reports: ``error: …`` at the beginning, ``E   assert …``,
``path:3:1: F401 …``, ``--- FAIL: …``. It counts everywhere. A *word* such as "failed" counts in what a program said,
and not in what it only showed (source code, a page, a table): such a text is read with ``shown=True``.

Deliberately absent: warnings, and any judgement of how bad an error is. In doubt a line is kept.
"""

from __future__ import annotations

import re

from holdfast.context.masking.lines import holding

# One of these is in every line that says an error by a word. Looking for them is many times faster than a pattern.
_STEMS = (
    "err", "fail", "exception", "panic", "fatal", "denied", "not found", "abort", "crit", "severe", "emerg",
    "cannot", "could not", "couldn't", "can't", "unable", "undefined", "not defined", "not exist", "refused", "reject",
    "timed out", "no such", "killed", "segfault", "segmentation", "dumped", "out of memory", "no space", "unhandled",
    "uncaught", "crash", "invalid ", "unexpected ", "unknown ", "unrecognized ", "missing ", "conflict", "imagepull",
    "unauthorized", "forbidden", "broken", "http/", "fehler", "ошибка", "错误", "エラー", "오류", "***",
)  # fmt: skip

_PATH = r"(?:[A-Za-z]:)?[^\s:]{1,300}"
_CROSSES = r"[●✕✗✖✘❌\u00d7\u2a2f]"
# Formats that hold none of the stems.
_SILENT = (
    r"E {2,}\S",  # pytest
    rf"{_PATH}:\d+: [A-Z]\w+$",
    rf"{_PATH}:\d+(?::\d+)?:? [A-Z]{{1,5}}\d{{2,5}}\b",  # linters
    r"[A-Z]{1,4}\d{3,4} (?:\[\*\] )?[`'\w]",
    rf"\s+\S{{1,200}}_test\.go:\d+: |(?:vet: )?{_PATH}\.go:\d+:\d+: \S|not ok \d",  # go, TAP
    rf"\s*{_CROSSES} ?\S",  # jest, mocha, vitest
    r"\s+(?:Expected|Received)\b[^:]{0,40}:|\s*expect\(.{0,80}\b(?:received|expected)\b",
    r"\s+(?:left|right): |e: (?:file:|/)",  # cargo, kotlin
    r"\* What went wrong|[A-Z]{2,4}-\d{4,5}: |[EF]\d{4} \d\d:\d\d:\d\d",  # gradle, Oracle, klog
    r"(?:KeyboardInterrupt|SystemExit)\b",
)
_FORMAL = (
    r"(?:FAILED|ERROR) \S|\s*--- FAIL: |FAIL\b",
    rf"{_PATH}:\d+(?::\d+)?:? (?:fatal )?error\b|{_PATH}\(\d+,\d+\): error|\s+\d+:\d+\s+(?:error|✖)\s",
    r"> Task \S+ FAILED|BUILD FAILED|\[ERROR\]|npm (?:ERR!|error)|\s*! \[(?:remote )?rejected\]|CONFLICT \(",
    r"make(?:\[\d+\])?: \*\*\* |thread '.{0,200}' (?:\(\d+\) )?panicked at|Segmentation fault|Killed$",
    r"[\s|+]*(?:Caused by: |Uncaught |Unhandled |Exception in thread \"[^\"]{0,80}\" )?(?:[\w$]{1,80}\.){0,12}"
    r"\w{0,80}(?:Error|Exception)\b(?: \[\w+\])?:",
    r"(?:[\w$]{1,80}\.){0,12}\w{0,80}(?:Error|Exception)$",
    rf"\s*(?:{_PATH}(?:\[\d+\])?: )?(?:{_PATH}:\d+(?::\d+)?: )?(?i:fatal error|fatal|error|panic|critical|fehler|erreur"
    r"|schwerwiegend|ошибка|错误|エラー|오류)(?:\[\w+\])?\s?[:!\uff1a]",
    r"[\w./+-]{1,80}: (?:.{1,200}: )?(?:No such file|Permission denied|command not found|cannot |not found)",
)
_CELL = re.compile(  # of a table that is shown
    r"[,;\t]\"?(?i:failed|fail|failure|error)\"?(?:[,;\t]|$)|[|│]\s{0,40}(?:failed|FAILED|FAIL|failure|ERROR)\s*(?:[|│]|$)"
)
_QUIET = re.compile("|".join(_SILENT))
_FORMATS = re.compile("|".join((*_SILENT, *_FORMAL)))

# A word is part of a name where a letter, a path or a call touches it: error_handler.py, on-error, errors::new.
_WORDS = re.compile(
    r"(?<![\w/\\.-])(?:"
    r"errors?(?:\(s\))?|err!?|fatal|fail(?:ed|ures?|s|ing)?|exceptions?|panic(?:ked)?|abort(?:ed|ing)?|critical"
    r"|crit|severe|emerg|denied|refused|rejected|crash(?:ed|loopbackoff)?|unhandled|uncaught|oomkilled|killed|segfault"
    r"|segmentation fault|unauthorized|forbidden|conflict|timed out|core dumped|out of memory|no space left|not found"
    r"|no such|cannot|can't|could(?: not|n't)|unable to|undefined (?:reference|symbol|variable|name|method)"
    r"|(?:is )?not defined|(?:does not|doesn't|not) exist|(?:err)?imagepull\w*|invalid (?:option|argument|syntax|token)"
    r"|unexpected (?:token|end|argument|keyword)|(?:unknown|unrecognized) (?:option|command|flag|argument)s?"
    r"|missing (?:required|module|argument|separator)|fehler|ошибка|错误|エラー|오류|\*\*\*"
    r")(?![\w/\\(-]|\.\w|::)"
    r"|(?-i:(?<![\w/\\])(?:ERROR|FATAL|FAILED|FAIL|CRITICAL|PANIC|BROKEN)(?![\w/\\(.]))"
    r"|(?-i:[A-Za-z]\w{0,80}(?:Error|Exception)\b(?![\w/\\(.:-]|::)|\w(?:Error|Exception): )"
    r"|http/[\d.]{1,8}\"? [45]\d\d\b",
    re.IGNORECASE,
)

# What says that nothing went wrong is taken out before words are looked for.
_NOTHING = re.compile(
    r"\b(?:0|no|zero|without(?: any)?|never) (?:(?:tests?|known|new|fatal|critical|syntax|type|lint|build|more|other"
    r"|merge|unhandled|specs?|checks?|jobs?|further|\w+ or) ){0,2}?"
    r"(?:errors?|fail(?:ed|ures?|ing)|exceptions?|conflicts?|crash(?:ed|es)?)(?:\(s\))?(?: or \w+)?"
    r"|\b(?:errors?|err|fail(?:ed|ures?)?|exceptions?|conflicts?)(?:[ _-](?:count|rate|total))?[\"']?\s{0,4}[:=]\s{0,4}"
    r"(?:0|null|none|nil|false|no|\[\]|\{\}|\"\"|''|<nil>)(?=\s*(?:[,;|})\]]|$)|\s+\w+[=:])"
    r"|\bfail-?fast\b|\berror[- ]free\b",
    re.IGNORECASE,
)
# A test that passed, a package that was fetched, a file in a listing, a heading over what is told below it.
_FINE = re.compile(
    "|".join(
        (
            r"\s*[✓✔√☑]|\s*--- (?:PASS|SKIP)|=== (?:RUN|PAUSE|CONT|NAME)|PASS(?:ED)?(?::| \S+$|$)|\s*ok \d+\b",
            r"ok\s+\S+\s+(?:[\d.]+s|\(cached\))|(?:\s|.{1,300}\.\.\. )(?:ok|PASSED|SKIPPED|ignored|skipped\b.*)$",
            r"\S{1,300} (?:PASSED|SKIPPED|XFAIL|XPASS)\b(?!.*FAILED)",
            r"\s*(?:Compiling|Checking|Collecting|Download(?:ed|ing)|Installing|Using cached|Adding|Locking) \S+"
            r"(?: (?:v?\d|\().*)?$|\s*Requirement already satisfied: |Get:\d+ ",
            r"(?:Unpacking|Preparing to unpack|Selecting|Setting up) .*\.$",
            r"[dlcbps-][rwxsStT-]{9}[.+@]?\s|[\s│|]*(?:[├└]──|[|`]--) |[^\s:]*[/.]\w[^\s:]*$",
            r"\s?\S+\s+\|\s+(?:\d+ [+-]*|Bin .*)$|=+ (?:ERRORS|FAILURES) =+$|(?:failures|Failures|errors|Errors):$",
            r"Traceback \(most recent|The above exception was|During handling of the above exception",
            r"For more information about this error|Some errors have detailed",
        )
    )
)
# Narrow on purpose: what a program says may begin with the same words ("import of seats failed").
_CODE = re.compile(
    r"(?:\S{1,300}[:-]\d+[:-])?\s*(?:[+-]\s*)?(?:\d+\s*[|:→\t]\s*)?(?:>\s+)?(?:"
    + "|".join(
        (
            r"raise \w+(?:\.\w+)*(?:\(|$| from\b)|throw (?:new )?\w+(?:\(|;|$)|except\b.*:$|(?:} )?catch ?[({]",
            r"import (?!failed|error\b)[\w.]+(?: as \w+)?;?$|from \S+ import\b|import .* from ['\"]|#include ",
            r"rescue \w+(?: =>|$)|use \S+;$",
            r"(?:async )?(?:def|func|fn|class|pub|interface|struct|enum)\b.*[({:;]$",
            r"(?:if|elif|else|for|while|with|try|case|} ?else)\b.*[({:;]$",
            r"(?:return|assert|await|const|let|var|public|private|protected|static|export|yield)\b.*(?:[({;]|\w\(.*\))$",
            r"(?://|/\*|<!--|\"\"\")\s?\S|@[\w.]+(?:\(.*\))?$",
            r"[\w.]{1,100} (?:[:+]?=|=>) .*(?:[({\[,;]|\w\(.*\))$|[\w.]{1,100}\([^()]{0,300}(?:\)[;,:]?|[({,])$",
        )
    )
    + ")"
)


def suspects(lines: list[str]) -> set[int]:
    """Which lines are worth a closer look."""
    found = holding(_STEMS, lines, fold=True)
    found.update(at for at, line in enumerate(lines) if _QUIET.match(line))
    return found


def is_error(line: str, *, shown: bool = False) -> bool:
    """Whether a line says that something went wrong. ``shown``: it is of a text that was only shown."""
    if _FORMATS.match(line):
        said = _NOTHING.sub("", line)
        return said == line or bool(_FORMATS.match(said)) or bool(_WORDS.search(said))
    if shown:
        return bool(_CELL.search(line))
    if _FINE.match(line) or _CODE.match(line):
        return False
    return bool(_WORDS.search(_NOTHING.sub("", line)))
