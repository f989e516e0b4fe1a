"""Rules of facts that are numbers: age, height and weight, and how many children or animals there are."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.reading import ADVERB, AGED, AM, NAMED, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_N = rf"(?P<n>[0-9]{{1,3}}|{'|'.join(_WORDS)})"
_AGE = Pattern(
    rf"(?i:(?:{AM}{S}{ADVERB}{AGED}?{_N}(?:{S}|-)years?(?:{S}|-)old|{AM}{S}(?:{NAMED})?(?P<bare>[1-9][0-9])(?=$|[.!,](?![0-9])|"
    rf"{S}and\b)|\bI{S}{ADVERB}turned{S}(?P<turned>[0-9]{{1,3}}))\b)(?!{S}(?:around|into|pages|degrees))"
)
_COUNT = Pattern(
    rf"(?i:\b(?:I|we)(?:{S}{ADVERB}have|['\u2019]ve{S}got){S}(?P<n>[0-9]{{1,2}}|{'|'.join(_WORDS)}|no){S}(?:(?:older|younger|little|big|"
    rf"young|small|grown|adult|beautiful|lovely|wonderful){S}){{0,2}}(?P<what>kids|children|sons?|daughters?|siblings?|"
    rf"brothers?|sisters?|dogs?|cats?|grandchildren|grandkids|cars?|child|kid)\b)"
)
_BODY = Pattern(
    rf"(?i:{AM}{S}{ADVERB}(?P<height>[0-9](?:[.,][0-9]{{1,2}})?(?:{S})?m|[0-9]{{2,3}}(?:{S})?cm){S}tall|"
    rf"\bI{S}{ADVERB}weigh{S}(?:about{S}|around{S})?(?P<weight>[0-9]{{2,3}}(?:[.,][0-9])?(?:{S})?(?:kg|kilos|pounds|"
    rf"lbs))\b)"
)
_KEYS = {
    "kid": "children",
    "kids": "children",
    "child": "children",
    "children": "children",
    "grandkids": "grandchildren",
}


def _age(sentence: Sentence) -> Iterator[Extraction]:
    for match in _AGE.finditer(sentence.text):
        said = match["n"] or match["bare"] or match["turned"]
        number = int(said) if said.isdigit() else _WORDS.index(said.lower()) + 1
        if number <= 120 and sentence.states(match.start()):
            text = f"{sentence.who} is {number} years old"
            yield sentence.found("age", *match.span(), text, key="age", importance=0.6, tags=("person",))


def _how_many(sentence: Sentence) -> Iterator[Extraction]:
    for match in _COUNT.finditer(sentence.text):
        if sentence.states(match.start()):
            what = match["what"].lower()
            key = _KEYS.get(what) or (what if what.endswith(("s", "n")) and what != "son" else f"{what}s")
            text = f"{sentence.who} has {match['n'].lower()} {what}"
            yield sentence.found("how many", *match.span(), text, key=f"count:{key}", importance=0.6, tags=("people",))


def _body(sentence: Sentence) -> Iterator[Extraction]:
    for match in _BODY.finditer(sentence.text):
        if sentence.states(match.start()):
            key = "height" if match["height"] else "weight"
            text = (
                f"{sentence.who} {'is' if match['height'] else 'weighs'} {match[key]}{' tall' * bool(match['height'])}"
            )
            yield sentence.found("body", *match.span(), text, key=key, importance=0.5, tags=("health",))


RULES = (
    ExtractionRule("age", "I am 34 years old; I just turned 34", _age),
    ExtractionRule("how many", "I have two children, three dogs", _how_many),
    ExtractionRule("body", "I'm 180 cm tall; I weigh 70 kg", _body),
)
