"""Rules of where people live and come from. A place has a capital: "I live in a small flat" names none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.phrases import Phrase, name_at, place_at, someone_before
from holdfast.memory.rules.reading import ADVERB, AM, HAVE, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_WE = rf"(?:\bI|\bwe|\b(?:my|our){S}family(?:{S}and{S}I)?|\bmy{S}(?:wife|husband|partner){S}and{S}I)"
_BEEN = rf"(?:(?:have|['\u2019]ve){S})(?:(?:already|just|recently){S})?(?:been{S}living|lived)"
_LIVES = Pattern(
    rf"(?i:{_WE}{S}{ADVERB}live{S}{ADVERB}in{S}|{_WE}(?:{S})?{_BEEN}{S}in{S}|(?:{AM}|\bwe(?:{S}are|"
    rf"['\u2019]re)){S}{ADVERB}(?:living|based|residing){S}{ADVERB}in{S}|\bI{S}{ADVERB}reside{S}in{S}|"
    rf"{AM}{S}[0-9]{{2}}{S}and{S}(?:living|based){S}in{S}|\bmy{S}home{S}(?:town{S}|city{S})?is{S}(?:now{S})?(?:in{S})?)"
)
_MOVED = Pattern(
    rf"(?i:(?:{_WE}|{HAVE}|\bwe(?:{S}have|['\u2019]ve)){S}{ADVERB}(?:moved|relocated){S}(?:back{S}|here{S}|over{S})?)"
)
_DWELLING = Pattern(
    r"(?i:\b(?:house|home|flat|apartment|family|kids|children|school|abroad|country|city|town|village|suburbs?|"
    r"here|there|back|over|relocated|alone|uni|university|landlord|rent|live|living|as\sa\s(?:kid|child|teenager|student)|"
    r"(?:for|because\sof)\s(?:work|love|(?:a|my|the|his|her)\s(?:\w+\s)?(?:job|studies|degree|phd))|when\s(?:i|we)\s(?:was|were)|"
    rf"with\s(?:my|our|his|her)\s(?:{words.either(words.KIN)}|{words.either(words.PETS)}))\b)"
)  # a team moves to Buildkite, and says no more of it
_MOVED_TO = Pattern(rf"(?i:to{S}|into{S})")
_SEASON = Pattern(
    rf"(?i:\bin{S}(?:the{S})?(?:summer|winter)s?,?{S}(?:I|we|in)\b|\bduring{S}the{S}week\b)"
)  # one home of several
_GAP = Pattern(S)
_FROM = Pattern(rf"(?i:from{S})")
_ORIGIN = Pattern(
    rf"(?i:{AM}{S}{ADVERB}(?:originally{S})?from{S}|\bI{S}(?:originally{S})?(?:come|hail){S}from{S}|"
    rf"\bI{S}{ADVERB}grew{S}up{S}in{S}|\bI{S}was{S}raised{S}in{S}|\bI{S}was{S}born(?:{S}and{S}raised)?{S}in{S}|"
    rf"\bmy{S}hometown{S}is{S})"
)
_LEFT = Pattern(rf"(?i:\bI{S}(?:no{S}longer|don['\u2019]t|do{S}not){S}live{S}in{S})")
_NOT_ANY_MORE = Pattern(r"(?i:\b(?:no longer|any ?more)\b)")
_UNIT = Pattern(rf"(?i:(?:the\s)?(?:{'|'.join(sorted(words.UNITS))})\b)")
_THEY_LIVE = Pattern(
    rf"(?:{S}(?:(?:now|currently|still|also){S})?(?:lives|is{S}living|is{S}based|moved|has{S}(?:just{S})?moved|relocated)|"
    rf"['\u2019]s{S}(?:(?:now|just|recently){S})?(?:living|based|moved|relocated)){S}(?P<way>in|to){S}"
)
_HAS_MOVED = Pattern(r"(?i:['\u2019]s\s|\shas\s)")


def _home(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _LIVES.finditer(sentence.text):
        yield from _at(sentence, "home", cue.start(), cue.end())


def _move(sentence: Sentence) -> Iterator[Extraction]:
    text = sentence.text
    for cue in _MOVED.finditer(text):
        at, origin = cue.end(), _FROM.match(text, cue.end())
        old = place_at(text, origin.end()) if origin else None
        if old:
            gap = _GAP.match(text, old.end)
            at = gap.end() if gap else old.end
        toward = _MOVED_TO.match(text, at)
        we = cue[0].lower().startswith("we")
        if toward and ((old and not we) or _is_home(sentence, toward.end(), we=we)):
            yield from _at(sentence, "move", cue.start(), toward.end(), moved=True)


def _is_home(sentence: Sentence, at: int, *, we: bool = False) -> bool:
    """Whether what someone moved to is where they live: a time says so of one, but "we" may be a team."""
    place = place_at(sentence.text, at)
    past = any(span.since and span.since < sentence.time for span in sentence.spans)
    dated = past and (sentence.takes_back or not we)
    return place is not None and (dated or "," in place.text or _DWELLING.search(sentence.text) is not None)


def _is_unit(text: str, place: Phrase) -> bool:
    """Whether a name is a part of a firm, a stage or a version: "Marketing", "Plan B", "Python 3.12"."""
    return _UNIT.match(place.text) is not None or re.match(r"\s?v?\d+\.\d", text[place.end :]) is not None


def _at(sentence: Sentence, rule: str, start: int, at: int, *, moved: bool = False) -> Iterator[Extraction]:
    place = place_at(sentence.text, at)
    if place is None or not sentence.states(start) or _SEASON.search(sentence.text) or _is_unit(sentence.text, place):
        return
    yield sentence.link(
        rule, start, place.end, "lives in", place.text, key="home", valid_from=sentence.since(event=moved),
        importance=0.7, corrects=sentence.corrects and not moved, tags=("place",),
    )  # fmt: skip


def _origin(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _ORIGIN.finditer(sentence.text):
        place = place_at(sentence.text, cue.end())
        if place and sentence.states(cue.start()):
            yield sentence.link(
                "origin", cue.start(), place.end, "is from", place.text, key="origin", importance=0.6, tags=("place",),
            )  # fmt: skip


def _left_home(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _LEFT.finditer(sentence.text):
        place = place_at(sentence.text, cue.end())
        over = _NOT_ANY_MORE.search(sentence.text)
        if place and over and sentence.states(cue.start()):
            yield sentence.link(
                "left home", cue.start(), place.end, "no longer lives in", place.text, key="home", ended=True,
                valid_from=sentence.since(), tags=("place",),
            )  # fmt: skip


def _their_home(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _THEY_LIVE.finditer(sentence.text):
        name, place = someone_before(sentence.text, cue.start()), place_at(sentence.text, cue.end())
        going = "moved" in cue[0] or "relocated" in cue[0]
        if (
            name
            and place
            and going == (cue["way"] == "to")
            and sentence.states(name.start)
            and name_at(sentence.text, name.start)
            and not _is_unit(sentence.text, place)
            and (not going or _HAS_MOVED.match(cue[0]) or " " in name.text or _is_home(sentence, cue.end()))
        ):
            yield sentence.link(
                "their home", name.start, place.end, "lives in", place.text, of=name.text, subject=name.text,
                key="home", valid_from=sentence.since(event=going), importance=0.6, tags=("place",),
            )  # fmt: skip


RULES = (
    ExtractionRule("home", "I live in Berlin; I'm based in Berlin", _home),
    ExtractionRule("move", "I moved (from Bonn) to Berlin: a change, with its time", _move),
    ExtractionRule("origin", "I'm from Porto; I grew up in Porto", _origin),
    ExtractionRule("left home", "I no longer live in Berlin", _left_home),
    ExtractionRule("their home", "Lena lives in Oslo, of a person with a name", _their_home, own=False),
)
