"""The rule of answers: a fragment says something only beside the question it answers.

"From Berlin." after "Where do you fly from?" becomes "Ana flies from Berlin". Read are the words up to the first full
stop, and only where they are no clause of their own. Deliberately absent: yes and no, and questions not listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.clauses import third
from holdfast.memory.rules.complements import SECRET
from holdfast.memory.rules.phrases import folded, place_at, things_at
from holdfast.memory.rules.reading import Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.memory.rules.vocabulary import MONEY
from holdfast.when import Pattern

_WHERE = Pattern(r"(?i:\bwhere\s(?:do|will|would)\syou\s(?P<verb>fly|travel|leave|depart|start|set\soff)\sfrom\b)")
_HOME = Pattern(r"(?i:\bwhere\s(?:do\syou\slive|are\syou\s(?:based|living))\b)")
_WORK = Pattern(r"(?i:\b(?:where|who)\sdo\syou\swork(?:\sfor|\sat)?\b)")
_ALLERGIES = Pattern(
    r"(?i:\b(?:any|have|has)\s(?:food\s)?allergies\b|\ballergic\sto\s(?:anything|something|any)|"
    r"\bwhat\sare\syou\sallergic\sto\b)"
)
_WHAT = Pattern(
    r"(?i:\b(?:what(?:['\u2019]s|\sis)\s(?:the\s)?your\s(?P<what>[\w-]+(?:\s[\w-]+){0,3})|"
    r"what\s(?P<noun>\w+)\sis\s(?P<at>in|on)\syour\s(?P<place>\w+))\W*(?:,|\?|$))"
)
_LEAD = Pattern(r"(?i:(?:(?:from|in|at|it['\u2019]s|to|just|only|oh|well|ok|sure|yes)[,\s]\s?){0,3})")
_NO_VALUE = Pattern(
    "(?i:(?:no|none|nope|nothing|not|never|yes|yeah|ok|okay|sure|maybe|perhaps|idk|i|we|you|he|she|it|they|why|"
    "what|how|who|where|when|that|"
    r"this|depends|whatever|any|same|later|both|either|tell|thanks|please|don['\u2019]t)\b)"
)
_NOT_KEPT = Pattern(r"(?i:\b(?:card|question|opinion|favou?rite|point|plan|problem)\b)")
_VALUE = Pattern(rf"(?:.*[A-Z\d]|(?i:.*{MONEY}))")
_WORDS = 8


def _answer(sentence: Sentence) -> Iterator[Extraction]:
    asked = sentence.asked[-400:]
    if not sentence.first or "?" not in asked or sentence.own:
        return
    lead = _LEAD.match(sentence.text)
    start = lead.end() if lead else 0
    if _NO_VALUE.match(sentence.text, start) or len(sentence.text.split()) > _WORDS:
        return
    who = sentence.who
    if (where := _WHERE.search(asked)) is not None and (place := place_at(sentence.text, start)) is not None:
        verb = where["verb"].lower().replace("set off", "sets off")
        verb = verb if verb.endswith("s off") else third(verb)
        yield _found(sentence, place.end, f"{who} {verb} from {place.text}", relation=f"{verb} from", object=place.text)
    elif _HOME.search(asked) and (place := place_at(sentence.text, start)) is not None:
        yield _found(
            sentence, place.end, f"{who} lives in {place.text}", key="home", relation="lives in", object=place.text
        )
    elif _WORK.search(asked) and (place := place_at(sentence.text, start)) is not None:
        yield _found(
            sentence, place.end, f"{who} works at {place.text}", key="employer", relation="works at", object=place.text
        )
    elif _ALLERGIES.search(asked):
        for thing in things_at(sentence.text, start):
            text = f"{who} is allergic to {thing.text}"
            yield _found(
                sentence,
                thing.end,
                text,
                key=f"allergy:{folded(thing.text)}",
                relation="is allergic to",
                object=thing.text,
            )
    elif (
        (what := _WHAT.search(asked)) is not None
        and not (SECRET.search(what[0]) or _NOT_KEPT.search(what[0]))
        and _VALUE.match(sentence.text, start)
    ):
        name = what["what"] or f"{what['noun']} {what['at']} their {what['place']}"
        name, value = name.lower(), sentence.words(start, len(sentence.text))
        yield _found(
            sentence, len(sentence.text), f"{who}'s {name} is {value}", key=None if name == "name" else folded(name)
        )


def _found(sentence: Sentence, end: int, text: str, **more: object) -> Extraction:
    return sentence.found("answer", 0, end, re.sub(r"\s+", " ", text), importance=0.7, tags=("answer",), **more)


RULES = (ExtractionRule("answer", "From Berlin, after: Where do you fly from?", _answer, own=False),)
