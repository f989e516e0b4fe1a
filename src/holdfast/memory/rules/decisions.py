"""Rules of what was decided: by the speaker, or by those the speaker calls "we"."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.reading import ADVERB, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_REST = r"[^\n]{2,300}"
_WHO = rf"\b(?:I|we)(?:{S}have|['\u2019]ve)?"
_DECIDED = Pattern(
    rf"(?i:{_WHO}{S}(?:all{S}|both{S}|finally{S}|just{S}|already{S}|now{S}){{0,2}}(?:decided{S}(?:to|on|that|against|"
    rf"not{S}to)|chosen|chose|agreed{S}(?:to|on|that)|opted{S}for|settled{S}on|picked|selected){S}{_REST})"
)
_GO_WITH = Pattern(
    rf"(?i:(?:^|[,\u2014\u2013]{S}|\b(?:so|ok|okay|then|and){S})(?:let['\u2019]s|let{S}us|we['\u2019]ll|we{S}will|"
    rf"I['\u2019]ll|I{S}will){S}{ADVERB}(?:go{S}with|stick{S}(?:with|to)|use){S}{_REST})"
)
_DECISION = Pattern(
    rf"(?i:\b(?:the|our|my){S}(?:final{S})?decision{S}is{S}(?:to|that|on){S}{_REST}|^(?:final{S})?decision:{S}{_REST})"
)
_PRONOUN = Pattern(
    r"(?i:(?:chosen|chose|picked|selected|use|go with|stick with|stick to)[ \t]+(?:it|that|this|them|these|those|my|"
    r"our|him|her|us|me|you|up|my nose|\w{2,20}ly$)\b|\bchose wisely)"
)
_LEADING = Pattern(r"(?i:(?:[\s,\u2014\u2013]|(?:so|ok|okay|then|and)\b){0,6})")
_TAIL = Pattern(
    r"(?i:,[ \t]+(?:(?:so|and|but|now)[ \t]+)?(?:can|could|would|will|do|does|what|how|which|where|who|why|should|"
    r"you know|I['\u2019]m|I was|I am|I want|I wanna)\b)"
)


def _decision(sentence: Sentence) -> Iterator[Extraction]:
    for pattern in (_DECIDED, _GO_WITH, _DECISION):
        for match in pattern.finditer(sentence.text):
            start = match.start() + _LEADING.match(match[0]).end()  # type: ignore[union-attr]
            if not sentence.states(start) or _PRONOUN.search(match[0]):
                continue
            tail = _TAIL.search(sentence.text, start, match.end())
            quote = sentence.text[start : tail.start() if tail else match.end()].rstrip()
            yield sentence.found(
                "decision",
                start,
                start + len(quote),
                f"{sentence.who}: {sentence.words(start, start + len(quote))}",
                corrects=False,
                importance=0.7,
                tags=("decision",),
            )
            return


RULES = (ExtractionRule("decision", "we decided to …; let's go with …; I chose …", _decision, own=False),)
