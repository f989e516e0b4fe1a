"""Rules of what is taken for granted, in a request as in a statement: whom someone has, and of what kind they are.

"Any museum for my 8-year-old who loves dinosaurs?" asks something, but that there is such a child is not in doubt.
Deliberately absent: what is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.clauses import NAME, PERSON, THING, WHO, Clause, Subject, is_person, theirs, verb_group
from holdfast.memory.rules.reading import Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.memory.rules.statements import told
from holdfast.when import Pattern

_NUMBER = r"(?:\d{1,2}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_AGED = rf"{_NUMBER}[\s-](?:year|yr|month|week)s?[\s-]old"
_WHOM = rf"(?:[\w\u2019'-]+\s){{0,2}}?(?:{_AGED}|(?:(?:{_AGED}\s)?{WHO}))(?:\s{NAME})?"
_RELATIVE = Pattern(rf"(?i:\b(?:my|our)\s(?P<whom>{_WHOM}),?\s(?P<who>who|that|which)(?=\s|['\u2019]s\s))")
_CLOSED = Pattern(r"(?i:[,;:()?!\u2013\u2014\x00]|\s-\s|\s(?:but|so|because|what|how|which|where|can|could|please)\b)")
_BESIDE = Pattern(
    rf"(?i:(?:\b(?:my|our)\s|^(?=\w+\s\())(?P<whom>(?:[\w\u2019'-]+\s){{0,2}}?(?:{WHO}|{words.either(words.POSSESSIONS)})(?:\s{NAME})?)"
    r"(?:,\s(?P<what>an?\s(?!bit|lot|few|couple|little)[^,()?!.;:\x00]{3,60})(?=,|\W*$)|"
    r"\s\((?P<closed>(?:an?\s|\d|(?-i:[A-Z]))[^()?!\x00]{1,50})\)))"
)
_OLD = Pattern(
    rf"(?i:\b(?:my|our)\s(?P<age>{_AGED})(?:\s(?P<kin>(?:\w+\s)?{WHO})\b|(?=\W*$|[,.?!)]|\s(?:who|is|has|and|to|for|"
    rf"that|"
    r"with|in|at|on|needs|loves|wants|can|keeps|does|just)\b)))"
)
_COUNTED = Pattern(rf"(?i:\b(?:my|our)\s(?P<what>{_NUMBER}\s(?:\w+\s)?{WHO}(?<=s|n))\b(?!['\u2019]))")
_AS_ONE = Pattern(
    r"(?i:^(?:(?:hi|hello|hey)\W{1,3})?as\s(?P<what>an?\s(?:[\w-]+\s){0,3}?(?:"
    rf"{words.either(words.PROFESSIONS)}|{words.either(words.LIFE)})\b[^,]{{0,50}}?)(?:,\s|\W*$|\s(?=(?:i|we|what|"
    rf"how|can|"
    r"could|which|where)\b))(?!(?:i|we)\s(?:want|would|should|can|need)\b))"
)
_LIKE_ME = Pattern(
    rf"(?i:\b(?P<what>an?\s(?:[\w-]+\s){{0,2}}?(?:{words.either(words.PROFESSIONS)}|{words.either(words.LIFE)}))\s"
    r"(?:like|such\sas)\s(?:me|myself)\b)"
)
_VERB = Pattern(r"(?i:\b(?:is|are|was|were|has|have|had|who|which|i|we|you)\b)")


def _relative_clause(sentence: Sentence) -> Iterator[Extraction]:
    for found in _RELATIVE.finditer(sentence.text):
        if not sentence.states(found.start()):
            continue
        close = _CLOSED.search(sentence.text, found.end() + 2)
        subject = Subject(PERSON, found["whom"], found.start(), found.end("who"))
        clause = Clause(subject, found.start(), close.start() if close else len(sentence.text))
        group = verb_group(sentence.text, clause)
        said = told(sentence, clause, group) if group is not None else None
        if said is not None:
            yield sentence.found(
                "relative clause", clause.start, said.end, said.text, importance=0.6, tags=(said.family,),
                corrects=False,
            )  # fmt: skip


def _apposition(sentence: Sentence) -> Iterator[Extraction]:
    for found in _BESIDE.finditer(sentence.text):
        what = (found["what"] or found["closed"]).strip()
        if sentence.states(found.start()) and not _VERB.search(what):
            text = f"{sentence.who}'s {theirs(found['whom'])} is {theirs(what)}"
            kind = "family" if is_person(found["whom"]) else THING
            yield sentence.found("apposition", *found.span(), text, importance=0.6, tags=(kind,), corrects=False)


def _has(sentence: Sentence) -> Iterator[Extraction]:
    for pattern in (_OLD, _COUNTED):
        for found in pattern.finditer(sentence.text):
            if sentence.states(found.start()):
                what = (found["what"] if pattern is _COUNTED else _an(found[0].split(maxsplit=1)[1])).lower()
                text = f"{sentence.who} has {what}"
                yield sentence.found("has", *found.span(), text, importance=0.6, tags=("people",), corrects=False)


def _an(what: str) -> str:
    return f"an {what}" if what.startswith(("8", "11", "18", "eigh", "elev")) else f"a {what}"


def _as_one(sentence: Sentence) -> Iterator[Extraction]:
    found = _AS_ONE.match(sentence.text) or _LIKE_ME.search(sentence.text)
    if found:
        text = f"{sentence.who} is {theirs(found['what'])}"
        yield sentence.found("as one", *found.span("what"), text, importance=0.7, tags=("person",), corrects=False)


RULES = (
    ExtractionRule("relative clause", "for my brother who lives in Oslo", _relative_clause, asked=True),
    ExtractionRule("apposition", "my car, a 2012 Fabia, …; my son (a drummer)", _apposition, own=False, asked=True),
    ExtractionRule("has", "my 8-year-old; my three cats", _has, asked=True),
    ExtractionRule("as one", "as a single mum of two, …", _as_one, own=False, asked=True),
)
