"""Rules of how someone wants to be treated from now on. They become procedural memories.

A single errand is not an instruction: "please write a poem" asks once, "please always answer in French" asks forever.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.reading import S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_VERBS = (
    "answer|reply|respond|use|give|include|write|keep|put|show|explain|say|call|mention|ask|add|start|begin|end|format|"
    "send|check|provide|cite|avoid|assume|speak|address|remind|tell|translate|quote|list|round|convert|summari[sz]e|"
    "confirm|suggest|recommend|return|prefix|sign|refer|talk|offer|apologi[sz]e|repeat|share|schedule|book|prefer|make|"
    "run|test|commit"
)
_PLEASE = (
    rf"(?:(?:and|so|also|but|ok|okay|oh){S}|,{S})?(?:please,?{S}|can{S}you{S}|could{S}you{S}|you{S}(?:should|must){S}|"
    rf"(?:I{S}want|I{S}need|I['\u2019]d{S}like|I{S}would{S}like){S}you{S}to{S})?"
)
_ALWAYS = Pattern(
    rf"(?i:(?:^|[,\u2014\u2013]{S}|\b(?:and|but|so|please){S}){_PLEASE}(?:always|never|don['\u2019]t{S}ever|"
    rf"do{S}not{S}ever){S}(?:{_VERBS})\b[^\n]{{2,300}})"
)
_FROM_NOW = Pattern(
    rf"(?i:\b(?:from{S}now{S}on|going{S}forward|in{S}(?:the{S})?future|"
    rf"from{S}here{S}on),?{S}(?:please{S})?(?:always{S}|never{S}|only{S}|do{S}not{S}|don['\u2019]t{S})?(?:{_VERBS}|"
    rf"stop)\b[^\n]{{2,300}})"
)
_WHENEVER = Pattern(
    rf"(?i:(?:^|\bplease{S})(?:when|whenever|every{S}time|if){S}I{S}(?:ask|say|write|mention|send|request|type|"
    rf"talk)\b[^\n]{{2,160}},{S}(?:please{S}|then{S}|you{S}should{S}|I{S}want{S}you{S}to{S})?(?:always{S}|never{S}|"
    rf"do{S}not{S}|don['\u2019]t{S})?(?:{_VERBS})\b[^\n]{{2,200}})"
)
_LANGUAGE = Pattern(
    rf"(?i:(?:^|,{S}|\bplease{S})(?:please{S})?(?:answer|reply|respond|speak|talk|write)(?:{S}(?:to|"
    rf"with){S}me)?{S}(?:only{S})?in{S})(?P<in>[A-Z][a-z]{{2,20}})\b(?![ ](?:and|style|manner))"
)
_HABIT = Pattern(
    rf"(?i:(?:^|[,\u2014\u2013]{S})(?:please{S})?(?:(?:{_VERBS})\b[^\n,]{{2,120}}{S}(?:from{S}now{S}on|"
    rf"in{S}(?:the{S})?future|going{S}forward|every{S}time|whenever{S}I{S}ask|when{S}I{S}ask)\b[^\n]{{0,120}}))"
)
_NOT_ONE = Pattern(
    r"(?i:\bnever (?:mind|say never|give up)\b|\balways (?:end|start|run|book|make|share|talk|begin)s?\b(?= up| to|"
    r" into| for))"
)
_LEADING = Pattern(r"(?i:(?:[\s,\u2014\u2013]|(?:and|but|so|also)\b){0,6})")
_DENIED = Pattern(r"(?i:\b(?:said|says|told|they|he|she|wish)\b)")


def _instruction(sentence: Sentence) -> Iterator[Extraction]:
    reached = -1
    matches = [match for pattern in _PATTERNS for match in pattern.finditer(sentence.text)]
    for match in sorted(matches, key=lambda each: (each.start(), -each.end())):
        start = match.start() + _LEADING.match(match[0]).end()  # type: ignore[union-attr]
        if start < reached or _NOT_ONE.search(match[0]) or _DENIED.search(sentence.text[:start]):
            continue
        reached = match.end()
        quote = sentence.text[start : match.end()].rstrip()
        yield sentence.found(
            "instruction",
            start,
            start + len(quote),
            f"{sentence.who} asks: {sentence.words(start, start + len(quote))}",
            kind="procedural",
            corrects=False,
            importance=0.8,
            tags=("instruction",),
        )


_PATTERNS = (_ALWAYS, _FROM_NOW, _WHENEVER, _LANGUAGE, _HABIT)

RULES = (
    ExtractionRule(
        "instruction", "always answer in French; never …; from now on …; when I ask …, …", _instruction, own=False
    ),
)
