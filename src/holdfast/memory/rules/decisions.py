"""Rules of what was decided, by the speaker or by those the speaker calls "we", and why.

A decision carries its reason, what was chosen, what it is about and what it was chosen over, as far as the sentence
says so. Its key names what it is about, or else what was chosen, so that a later decision on that takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.memory.extraction import DECISION, Extraction, decision_key
from holdfast.memory.rules.reading import ADVERB, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_REST = r"[^\n]{2,300}"
_WHO = rf"\b(?:I|we)(?:{S}have|['\u2019]ve)?"
_DECIDED = Pattern(
    rf"(?i:{_WHO}{S}(?:all{S}|both{S}|finally{S}|just{S}|already{S}|now{S}){{0,2}}(?:decided{S}(?:to|on|that|against|"
    rf"not{S}to)|made{S}up{S}(?:my|our){S}minds?{S}(?:to|that|on)|ended{S}up{S}(?:cancel|go(?=ing{S}with)|buy|choos|pick|switch|sell|"
    rf"mov|keep|quitt|sign)l?ing|chosen|chose|agreed{S}(?:to|on|that)|opted{S}for|settled{S}on|picked|selected|"
    rf"(?:dropped|abandoned)(?=[^\n]{{1,80}}{S}in{S}favou?r{S}of{S})|replaced(?=[^\n]{{1,80}}{S}with{S})|"
    rf"switched(?={S}from{S}[^\n]{{1,80}}{S}to{S}|{S}to{S}[^\n]{{1,160}}{S}(?:because|since|due{S}to){S})){S}{_REST})"
)
_GO_WITH = Pattern(
    rf"(?i:(?:^|[,\u2014\u2013]{S}|\b(?:so|ok|okay|then|and){S})(?:let['\u2019]s|let{S}us|we['\u2019]ll|we{S}will|"
    rf"I['\u2019]ll|I{S}will){S}{ADVERB}(?:go{S}with|stick{S}(?:with|to)|use){S}{_REST}|"
    rf"\b(?:we['\u2019]re|we{S}are|I['\u2019]m|I{S}am){S}going{S}with{S}{_REST})"
)
_DECISION = Pattern(
    rf"(?i:\b(?:the|our|my){S}(?:final{S})?decision{S}is{S}(?:to|that|on){S}{_REST}|^(?:final{S})?decision:{S}{_REST})"
)
_PRONOUN = Pattern(
    r"(?i:\b(?:chosen|chose|picked|selected|use|go with|going with|stick with|stick to|"
    r"ended up [a-z]+|decided on)[ \t]+(?:the wrong|nothing|a (?:name|date|place|venue|time)$|it|that|this|"
    r"them|these|those|my|our|him|her|us|me|you|up|all|a fight|(?-i:[a-z]{2,20}ly))\b)"
)
_LEADING = Pattern(r"(?i:(?:[\s,\u2014\u2013]|(?:so|ok|okay|then|and)\b){0,6})")
_TAIL = Pattern(
    r"(?i:,[ \t]+(?:(?:so|and|but|now)[ \t]+)?(?:can|could|would|will|do|does|what|how|which|where|who|why|should|"
    r"you know|I['\u2019]m|I was|I am|I want|I wanna)\b)"
)
_BECAUSE = rf"(?:because(?:{S}of)?|due{S}to|thanks{S}to|on{S}account{S}of|so{S}that|so{S}we{S}can|so{S}I{S}can|since)"
_REASON = Pattern(rf"(?i:,?{S}(?P<why>{_BECAUSE}){S}(?P<reason>[^\n]{{3,200}}?)[.!]?$)")
_REASON_BEFORE = Pattern(
    rf"(?i:(?:^|[,.\u2014\u2013]{S})(?P<how>because(?:{S}of)?|due{S}to|given|since){S}(?P<what>[^\n,]{{3,150}}),{S}$)"
)
_ABOUT_BEFORE = Pattern(rf"(?i:^(?P<how>for|as){S}(?:(?:the|our|my|a|an){S})?(?P<what>[^\W\d_][^\n,]{{2,60}}),?{S}$)")
_CHOSEN = Pattern(
    rf"(?i:\b(?:chosen|chose|picked|selected|opted{S}for|settled{S}on|decided{S}on|agreed{S}on|go(?:ing)?{S}with|"
    rf"stick{S}(?:with|to)|stay{S}with|use|adopt|move{S}to|switch{S}to|in{S}favou?r{S}of|"
    rf"(?:replaced|switched)\b[^\n]{{0,80}}?{S}(?:with|to)){S}(?!not\b|to\b)(?P<choice>[^\n]{{2,120}}))"
)
_STOP = Pattern(
    rf"(?i:,|{S}(?:{_BECAUSE}|as|for|with|over|instead|rather|in{S}place|and{S}not|to|in{S}favou?r|until|when|if|from|on|at|"
    rf"tonight|today|tomorrow|now)\b)"
)
_INSTEAD = Pattern(
    rf"(?i:\b(?:over|instead{S}of|rather{S}than|in{S}place{S}of|and{S}not|against|dropped|replaced|abandoned|"
    rf"not{S}to{S}(?:use|buy|adopt)|from){S}(?:using{S}|buying{S})?(?P<old>[^\n,]{{2,80}}))"
)
_FOR = Pattern(
    rf"(?i:{S}(?:for|as){S}(?:(?:the|our|my|a|an|all|this){S})?(?P<about>(?!(?:now|us|me|you|example|good|once|two|three|"
    rf"reasons?|today|it|that|this|long|well|soon|far)\b)[^\W\d_][\w-]{{1,30}}(?:{S}(?!because|since|due|so|over|instead|"
    rf"rather|and|but|in|on|at|with|from|to)[^\W\d_][\w-]{{1,30}}){{0,2}}))"
)
_NOT_TO = Pattern(rf"(?i:\b(?:not{S}to|against)\b)")
_AMOUNT = Pattern(rf"(?i:(?:an?|the){S}(?P<about>[^\W\d_]{{3,30}}){S}of{S}(?=[\d$\u20ac\u00a3]))")
_ARTICLE = Pattern(r"(?i:(?:the|an?|our|my|his|her|their|using)[ \t]+)")
_VAGUE = Pattern(r"(?i:(?:^|[ \t])(?:one|ones|thing|things|option|way|side|seat|first|second|last|best|same)$)")
_WORDS = 5


def _decision(sentence: Sentence) -> Iterator[Extraction]:
    for pattern in (_DECIDED, _GO_WITH, _DECISION):
        for match in pattern.finditer(sentence.text):
            start = match.start() + _LEADING.match(match[0]).end()  # type: ignore[union-attr]
            if not sentence.states(start) or _PRONOUN.search(match[0]):
                continue
            tail = _TAIL.search(sentence.text, start, match.end())
            quote = sentence.text[start : tail.start() if tail else match.end()].rstrip()
            told, said = _details(quote), sentence.words(start, start + len(quote))
            for before in (_REASON_BEFORE, _ABOUT_BEFORE):
                found = before.search(sentence.text, 0, start)
                if found is not None and found["what"] is not None:
                    told.setdefault("reason" if before is _REASON_BEFORE else "about", found["what"].strip())
                    said = f"{said} ({found['how'].lower()} {found['what'].strip()})"
            yield sentence.found(
                DECISION, start, start + len(quote), f"{sentence.who}: {said}", key=decision_key(told), corrects=False,
                importance=0.7, tags=(DECISION,), type=DECISION, metadata=told,
            )  # fmt: skip
            return


def _details(quote: str) -> dict[str, Any]:
    """What a decision says of itself: the reason, the choice, what it is about, and what was not chosen."""
    found: dict[str, Any] = {}
    if (reason := _REASON.search(quote)) is not None:
        found["reason"] = reason["reason"].strip()
        quote = quote[: reason.start()]
    chosen = None if _NOT_TO.search(quote) else _CHOSEN.search(quote)
    if chosen is not None:
        choice = _until_stop(chosen["choice"])
        if choice and len(choice.split()) <= _WORDS and not _VAGUE.search(choice):
            found["choice"] = choice
    old = _INSTEAD.search(quote)
    if old is not None and (name := _until_stop(old["old"])) and name != found.get("choice"):
        found["instead_of"] = name
    about = _FOR.search(quote) or _AMOUNT.search(quote)
    if about is not None and about["about"].strip() != found.get("choice"):
        found["about"] = about["about"].strip()
    return found


def _until_stop(text: str) -> str:
    """A thing that is named, up to where the sentence goes on; without its article."""
    stop = _STOP.search(text)
    text = text[: stop.start() if stop else None].strip(" .!")
    article = _ARTICLE.match(text)
    return text[article.end() if article else 0 :]


RULES = (ExtractionRule(DECISION, "we decided to …, because …; let's go with …; I chose …", _decision, own=False),)
