"""Rules of who is speaking. "I'm Ana" only counts as a greeting or a whole clause: "I'm German" has the same form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.phrases import name_at
from holdfast.memory.rules.reading import ADVERB, AM, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_NAME = Pattern(
    rf"(?i:\bmy{S}(?:(?:full|first|real|given|actual){S})?name(?:{S}is|['\u2019]s){S}{ADVERB}(?:spel(?:led|t){S})?)"
)
_CALLED = Pattern(
    rf"(?i:(?:^|[,.!]{S}|\b(?:please|just|can|and|but|so|you{S}to){S})(?:call|address){S}me{S}(?:as{S})?|\b(?:people|friends|"
    rf"everyone|everybody|they|"
    rf"folks){S}(?:all{S})?calls?{S}me{S}|\bI{S}go{S}by{S}(?:the{S}name{S}(?:of{S})?)?|\bmy{S}nickname{S}is{S})"
)
_GREETING = Pattern(
    rf"(?i:^(?:(?:hi|hello|hey|greetings|good{S}(?:morning|evening|afternoon))(?:{S}(?:there|all|everyone|everybody|"
    rf"team))?[,!.:]{{0,2}}(?:{S})?)?(?:{AM[2:]}|this{S}is|(?:the{S})?name(?:{S}is|['\u2019]s)){S})"
)
_CALL_NOT = Pattern(r"(?i:(?:\bnot|n['\u2019]?t|\bstop|\bnever)\s(?:call(?:ing)?|address(?:ing)?)\sme\b)")
_IT_IS = Pattern(r"(?i:^(?:it['\u2019]?s|my\sname\sis|i['\u2019]?m)\s(?:just\s)?)")
_SPEAKING = Pattern(
    rf"(?i:^(?:hi|hello|hey)(?:{S}there)?[,!.]?{S}(?:it['\u2019]?s{S})?)(?=[A-Z][\w'-]{{1,20}}{S}(?:here|again)\b)"
)
_IS_SAID_OF = Pattern(r"[ ](?:is|was|are)[ ]")  # "call me Ishmael is how the book begins"
_ENOUGH = Pattern(rf"$|[,.!](?:{S}|$)|{S}(?:and|from|here|again|by{S}the{S}way)\b")


def _name(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _NAME.finditer(sentence.text):
        yield from _given(sentence, "name", cue, "name", "is called")


def _nickname(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _CALLED.finditer(sentence.text):
        yield from _given(sentence, "nickname", cue, "called", "wants to be called")
    corrected = _IT_IS.match(sentence.text) if _CALL_NOT.search(sentence.before) else None
    if corrected:
        yield from _given(sentence, "nickname", corrected, "called", "wants to be called")


def _introduction(sentence: Sentence) -> Iterator[Extraction]:
    cue = _GREETING.match(sentence.text) or _SPEAKING.match(sentence.text)
    name = name_at(sentence.text, cue.end(), most=3) if cue else None
    if cue and name and _ENOUGH.match(sentence.text, name.end):
        yield from _given(sentence, "introduction", cue, "name", "is called")


def _given(sentence: Sentence, rule: str, cue: re.Match[str], key: str, verb: str) -> Iterator[Extraction]:
    name = name_at(sentence.text, cue.end(), most=3)
    if name and sentence.states(cue.start()) and not _IS_SAID_OF.match(sentence.text, name.end):
        text = f"{sentence.who} {verb} {name.text}"
        yield sentence.found(rule, cue.start(), name.end, text, key=key, importance=0.9, tags=("person",))


RULES = (
    ExtractionRule("name", "my name is Ana", _name),
    ExtractionRule("nickname", "call me Ana; I go by Ana", _nickname, own=False),
    ExtractionRule("introduction", "hi, I'm Ana, as a greeting or a whole clause", _introduction, own=False),
)
