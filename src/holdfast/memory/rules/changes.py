"""Rules of what is taken back and of what is over, where no other rule knows the key.

A correction says that something was never true, a change that it is no longer so. Keyed facts carry that in their own
finding; here is what remains: "not X but Y", "I meant Y", "I used to …", "I switched to …".
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.reading import HAVE, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_SIDE = r"[^\x00\n,;]{1,80}"
_NOT_BUT = Pattern(
    rf"(?i:\b(?:it|that|this|the{S}[^\W\d_]{{1,20}}|my{S}[^\W\d_]{{1,20}})(?:{S}is|['\u2019]s|"
    rf"{S}was){S}not{S}(?P<old>{_SIDE}?),?{S}but{S}(?:rather{S})?(?P<new>{_SIDE}))"
)
_BUT_NOT = Pattern(
    rf"(?i:\b(?:it|that|this)(?:{S}is|['\u2019]s|"
    rf"{S}was){S}(?:actually{S})?(?P<new>{_SIDE}?),?{S}not{S}(?P<old>{_SIDE}))"
)
_MEANT = Pattern(
    rf"(?i:(?:^|[,.\u2014\u2013]{S})(?:(?:no|sorry|wait|"
    rf"oops)[,.]?{S}){{0,2}}(?:what{S})?I{S}(?:actually{S})?meant{S}(?!to\b|that{S}as\b|it\b|well\b|no\b|what\b|"
    rf"the{S}(?:other|first|last|second)\b|this\b|that\b|every\b)(?:to{S}say{S})?(?P<new>{_SIDE}))"
)
_WRONG = Pattern(
    rf"(?i:\b(?:that['\u2019]s|that{S}(?:is|was)|I{S}was|you['\u2019]re|it['\u2019]s){S}(?:wrong|incorrect|"
    rf"not{S}(?:right|true|correct)|mistaken)[,.:\u2014\u2013 ]{{1,4}}(?:it|the{S}[^\W\d_]{{1,20}}|he|she|"
    rf"they)(?:{S}is|{S}was|['\u2019]s|{S}are){S}(?:actually{S})?(?P<new>{_SIDE}))"
)
_USED_TO = Pattern(
    rf"(?i:\bI{S}used{S}to{S}(?P<what>(?!be{S}(?:so|very)\b)[^\W\d_]{{2,20}}(?:{S}[^\x00\n,;.]{{1,100}})?))"
)
_BUT = Pattern(r"(?i:[ \t]*\b(?:but|before|until|and now|however|though)\b)")
_ADDING = Pattern(r"(?i:(?:just|only|merely|simply|that|because)\b)")
_HANGING = Pattern(r"(?i:\b(?:on|in|at|with|to|for|from|be|do|have)\Z)")
_SWITCHED = Pattern(
    rf"(?i:(?:\b(?:I|we)|{HAVE}|\bwe(?:{S}have|['\u2019]ve)){S}(?:just{S}|recently{S}|finally{S}|"
    rf"now{S})?switched{S}(?:over{S})?(?:from{S}(?P<old>[^\x00\n,;]{{1,60}}?){S})?to{S}(?P<new>[^\x00\n,;]{{1,60}}))"
)
_TAIL = Pattern(
    r"(?i:[ \t]+(?:because|since|last|this|yesterday|today|in [0-9]{4}|in [A-Z]|on|so|and|when|as|after|but|for|ago)\b)"
)
_NO_LONGER = Pattern(
    rf"(?i:\b(?:we{S}(?=don|do{S}not)|I{S})(?:no{S}longer{S}(?!like|love|enjoy|prefer|live|work|eat|drink|"
    rf"am)[^\W\d_]{{2,20}}\b[^\x00\n,;]{{0,80}}|(?:don['\u2019]t|do{S}not){S}(?!live|work{S}(?:at|for|in)|like|"
    rf"love)[^\W\d_]{{2,20}}{S}(?:[^\x00\n,;]{{1,80}}?{S})?any(?:{S})?more))"
)


def _exact(*sides: str) -> bool:
    """Whether both sides are names or numbers, of which only one can be right."""
    return all(side[0].isdigit() or side[0].isupper() for side in sides)


def _correction(sentence: Sentence) -> Iterator[Extraction]:
    for pattern in (_NOT_BUT, _WRONG, _MEANT, _BUT_NOT):
        for match in pattern.finditer(sentence.text):
            start = match.start() + len(match[0]) - len(match[0].lstrip(" ,.\u2014\u2013"))
            if not sentence.states(start) or _ADDING.match(match.groupdict().get("old") or ""):
                continue  # "not just X but Y" takes nothing back
            if pattern is _BUT_NOT and not sentence.takes_back and not _exact(match["new"], match["old"]):
                continue  # "it's fine, not great" describes
            yield sentence.found(
                "correction", start, match.end(), f"{sentence.who} corrects: {sentence.words(start, match.end())}",
                corrects=True, importance=0.7, tags=("correction",),
            )  # fmt: skip
            return


def _formerly(sentence: Sentence) -> Iterator[Extraction]:
    for match in _USED_TO.finditer(sentence.text):
        cut = _BUT.search(match["what"])
        end = match.start("what") + (cut.start() if cut else len(match["what"]))
        if sentence.states(match.start()) and not _HANGING.search(sentence.text, match.start(), end):
            text = f"{sentence.who} used to {sentence.words(match.start('what'), end)}"
            yield sentence.found(
                "formerly", match.start(), end, text, kind="episodic", corrects=False, tags=("change",)
            )


def _switch(sentence: Sentence) -> Iterator[Extraction]:
    for match in _SWITCHED.finditer(sentence.text):
        cut = _TAIL.search(match["new"])
        end = match.start("new") + (cut.start() if cut else len(match["new"]))
        new = sentence.text[match.start("new") : end]
        if sentence.states(match.start()) and new:
            yield sentence.link(
                "switch", match.start(), end, "switched to", new, valid_from=sentence.since(event=True),
                corrects=False, importance=0.6, tags=("change",),
            )  # fmt: skip


def _stopped(sentence: Sentence) -> Iterator[Extraction]:
    for match in _NO_LONGER.finditer(sentence.text):
        if sentence.states(match.start()):
            yield sentence.found(
                "stopped", *match.span(), f"{sentence.who}: {sentence.words(*match.span())}",
                valid_from=sentence.since(event=True), corrects=False, tags=("change",),
            )  # fmt: skip


RULES = (
    ExtractionRule("correction", "it's not X but Y; I meant Y; that's wrong, it is Y", _correction, own=False),
    ExtractionRule("formerly", "I used to …", _formerly),
    ExtractionRule("switch", "I switched (from X) to Y", _switch),
    ExtractionRule("stopped", "I no longer …; I don't … anymore", _stopped),
)
