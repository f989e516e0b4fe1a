"""Rules of how someone is reached. An address counts when it is said to be the speaker's, not when it only occurs."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.reading import S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_ADDRESS = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}"
_NUMBER = r"\+?[0-9(](?:[0-9]|[ ()./-]{1,2}(?=[0-9(])){5,24}"
_MINE = rf"(?:my{S}|(?<![\w,] )(?=new{S}))(?:new{S}|work{S}|personal{S}|private{S}|main{S})?"
_EMAIL = Pattern(
    rf"(?i:\b(?:{_MINE}e-?mail(?:{S}address)?(?:{S}is(?:{S}now)?|['\u2019]s|:)|(?:e-?mail|write|contact|"
    rf"reach){S}(?:to{S})?me{S}(?:at|on|via)):?(?:{S})?)(?P<value>{_ADDRESS})"
)
_PHONE = Pattern(
    rf"(?i:\b(?:{_MINE}(?:phone|mobile|cell|telephone|whatsapp)?(?:{S}phone)?(?:(?:{S})?number)?(?:{S}(?:is|btw)(?:{S}now)?|"
    rf"['\u2019]s|:)|(?:call|text|phone|ring|contact|reach){S}me{S}(?:at|on|"
    rf"under)):?(?:{S})?)(?P<value>{_NUMBER})(?![0-9]|{S}(?:years|pm|am)\b)"
)
_NAMES_A_PHONE = Pattern(r"(?i:phone|mobile|cell|number|whatsapp|call|text|ring|contact|reach)")


def _email(sentence: Sentence) -> Iterator[Extraction]:
    for match in _EMAIL.finditer(sentence.text):
        if sentence.states(match.start()):
            text = f"{sentence.who} has the e-mail address {match['value']}"
            yield sentence.found("email", *match.span(), text, key="email", importance=0.8, tags=("contact",))


def _phone(sentence: Sentence) -> Iterator[Extraction]:
    for match in _PHONE.finditer(sentence.text):
        lead = match[0][: match.start("value") - match.start()]
        enough = sum(letter.isdigit() for letter in match["value"]) >= 6
        if enough and _NAMES_A_PHONE.search(lead) and sentence.states(match.start()):
            text = f"{sentence.who} has the phone number {match['value']}"
            yield sentence.found("phone", *match.span(), text, key="phone", importance=0.8, tags=("contact",))


RULES = (
    ExtractionRule("email", "my email is ana@example.org; reach me at …", _email),
    ExtractionRule("phone", "my number is +44 …; call me on …; new number …", _phone, own=False),
)
