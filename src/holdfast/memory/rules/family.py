"""Rules of people and animals that belong to someone: each becomes a link from the speaker to a name.

One can have one wife and one boss at a time, so these are keyed and a new one replaces the old; sisters, friends and
dogs stand beside each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.phrases import AGED, name_at, name_before, names_at
from holdfast.memory.rules.reading import ADVERB, AM, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_ONE = (
    "wife|husband|spouse|fianc\u00e9e?|fiancee?|girlfriend|boyfriend|mother|mom|mum|father|dad|boss|manager|supervisor|"
    "landlord|landlady"
)
_MANY = "|".join(
    [
        *sorted(words.each(f"{words.KIN} {words.ROLES} {words.PETS}"), key=len, reverse=True),
        r"[a-z]{3,14}ologist|eldest|youngest",
    ]
).replace("_", r"\s")
_PLURAL = (
    "sons|daughters|kids|children|sisters|brothers|siblings|dogs|cats|twins|pets|friends|cousins|nieces|nephews|parents"
)
_SIZE = (
    rf"(?:(?:older|elder|younger|little|big|baby|new|eldest|oldest|youngest|twin|close|dear|good|old|current|pet|"
    rf"beloved|lovely){S}){{0,2}}"
)
_KIN = rf"(?P<kin>(?:late{S})?(?:{_ONE}|best{S}friend|business{S}partner|{_MANY}))"
_NAMED = (
    rf"(?:['\u2019]s{S}name{S}is{S}|{S}is{S}(?:called|named){S}|{S}(?:called|named){S}|,{S}(?:called{S}|named{S})?|"
    rf"{S}is{S}|{S})"
)
_MY = Pattern(rf"(?i:\b(?:my|our){S}{_SIZE}{_KIN}\b{_NAMED})")
_HAVE_A = Pattern(
    rf"(?i:\b(?:I|we)(?:{S}have|['\u2019]ve{S}got){S}an?{S}(?P<kin>(?:[^\W\d_]{{2,15}}{S}){{0,2}}[^\W\d_]{{2,15}})"
    f"{S}(?:called|named|"
    rf"whose{S}name{S}is){S})"
)
_IS_MY = Pattern(rf"(?i:{S}is{S}(?:my|our){S}{_SIZE}{_KIN}\b)(?!['\u2019-])")
_APPOSED = Pattern(rf"(?i:,{S}(?:my|our){S}{_SIZE}{_KIN}\b)(?=,)")
_COPULA = Pattern(r"(?i:\b(?:is|are|was|were)(?:n['\u2019]?t)?\s\Z)")
_MARRIED = Pattern(rf"(?i:{AM}{S}{ADVERB}(?P<how>married|engaged){S}to{S}|\bI{S}married{S})")
_SEVERAL = Pattern(
    rf"(?i:\b(?:(?:my|our){S}(?:two{S}|three{S}|four{S})?(?P<mine>{_PLURAL})(?:{S}are(?:{S}called|{S}named)?|"
    rf"['\u2019]{S}names{S}are|,)|(?:I|we)(?:{S}have|['\u2019]ve)(?:{S}got)?{S}(?:[^\W_]{{1,8}}{S})?(?P<have>{_PLURAL})(?:,|:|{S}called|"
    rf"{S}named)){S})"
)
_SINGULAR = {"children": "child", "parents": "parent"}


def _link(sentence: Sentence, rule: str, bounds: tuple[int, int], kin: str, name: str) -> Extraction:
    relation = " ".join(kin.lower().split())
    keyed = re.fullmatch(_ONE, relation) is not None
    return sentence.found(
        rule, *bounds, f"{sentence.who}'s {relation} is {name}", key=relation if keyed else None, relation=relation,
        object=name, importance=0.7, corrects=sentence.corrects and keyed, tags=("people",),
    )  # fmt: skip


def _relative(sentence: Sentence) -> Iterator[Extraction]:
    for cue in (*_MY.finditer(sentence.text), *_HAVE_A.finditer(sentence.text)):
        name = name_at(sentence.text, cue.end(), most=3)
        if not name or (sentence.question and _is_asked(sentence.text, cue, name.end)):
            continue
        if sentence.states(cue.start()) and _belongs(sentence.text, cue, name.end):
            yield _link(sentence, "relative", (cue.start(), name.end), cue["kin"], name.text)


def _is_asked(text: str, cue: re.Match[str], end: int) -> bool:
    """Whether a question asks for the name itself: "is my sister called Lena?", but not "is my sister Lena right?"."""
    named = re.search(r"(?i:\b(?:called|named))", cue[0]) or not text[end:].strip(" .!")
    return " is" in cue[0] or (_COPULA.search(text, 0, cue.start()) is not None and bool(named))


def _belongs(text: str, cue: re.Match[str], end: int) -> bool:
    """After a comma the name must close with one ("my wife, Lena, …"), or another clause begins with it."""
    return not cue[0].rstrip().endswith(",") or text[end : end + 1] in {"", ",", ".", "!", ")"}


def _relative_after(sentence: Sentence) -> Iterator[Extraction]:
    for cue in (*_IS_MY.finditer(sentence.text), *_APPOSED.finditer(sentence.text)):
        name = name_before(sentence.text, cue.start())
        if name and sentence.states(name.start):
            yield _link(sentence, "relative after", (name.start, cue.end()), cue["kin"], name.text)


def _married(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _MARRIED.finditer(sentence.text):
        name = name_at(sentence.text, cue.end(), most=3)
        if name and sentence.states(cue.start()):
            kin = "fianc\u00e9" if (cue["how"] or "").lower() == "engaged" else "spouse"
            yield _link(sentence, "married", (cue.start(), name.end), kin, name.text)


def _relatives(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _SEVERAL.finditer(sentence.text):
        names = list(names_at(sentence.text, cue.end()))
        if len(names) < 2 or not sentence.states(cue.start()):
            continue
        plural = (cue["mine"] or cue["have"]).lower()
        for name in names:
            kin = _SINGULAR.get(plural, plural.removesuffix("s"))
            yield _link(sentence, "relatives", (cue.start(), name.end), kin, name.text)
            if (aged := AGED.match(sentence.text, name.end)) is not None:
                text = f"{sentence.who}'s {kin} {name.text} is {aged['age']}"
                yield sentence.found(
                    "relatives", name.start, aged.end(), text, importance=0.6, corrects=False, tags=("people",)
                )


RULES = (
    ExtractionRule("relative", "my wife Lena; my dog is called Rex; I have a cat named Tom", _relative, asked=True),
    ExtractionRule("relative after", "Lena is my sister", _relative_after),
    ExtractionRule("married", "I'm married to Lena; I'm engaged to Lena", _married),
    ExtractionRule("relatives", "my kids are Tom and Max; I have two sons, Tom and Max", _relatives),
)
