"""Rules of taste and diet. Liking and hating one thing share a key, so that a change of mind replaces the old one."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.phrases import folded, thing_at, things_at
from holdfast.memory.rules.reading import ADVERB, AM, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_NOT = rf"(?:do{S}not|don['\u2019]t|never{S}really)"
_LIKE = Pattern(
    rf"(?:(?<=^)|(?<![\w'\u2019]))(?i:I{S}(?!do{S}not){ADVERB}(?P<verb>like|love|enjoy|adore|prefer)|"
    rf"{AM[2:]}{S}{ADVERB}(?:an?{S}(?:big{S}|huge{S}|great{S})?fan{S}of|fond{S}of|crazy{S}about|obsessed{S}with|"
    rf"into)){S}"
)
_HATE = Pattern(
    rf"(?<![\w'\u2019])(?i:I{S}{ADVERB}(?:hate|dislike|detest|loathe|despise|can['\u2019]t{S}stand|cannot{S}stand|"
    rf"can['\u2019]t{S}bear|(?:{_NOT}{S}(?:really{S}|particularly{S})?(?:like|enjoy|love|care{S}for)))|"
    rf"{AM[2:]}{S}not{S}(?:an?{S}(?:big{S}|huge{S})?fan{S}of|fond{S}of|into)){S}"
)
_NO_MORE = Pattern(
    rf"(?<![\w'\u2019])(?i:(?:I{S}no{S}longer{S}(?:like|love|enjoy|prefer)|(?:I{S}have|I['\u2019]ve){S}{ADVERB}gone{S}off){S}"
    rf"(?!(?:track|course|topic|script|road|duty|sick|work|school|grid|air|on|to|with)\b))"
)
_AGAINST = Pattern(rf"(?i:{S}(?:over|to|rather{S}than|instead{S}of|more{S}than|better{S}than){S})")
_FAVOURITE = Pattern(
    rf"(?i:\bmy{S}(?:(?:all[- ]time|absolute|new){S})?favou?rite{S}(?P<what>[^\W\d_][\w-]{{0,24}}(?:{S}(?!is\b|was\b|"
    rf"are\b)[^\W\d_][\w-]{{0,24}}){{0,2}}){S}(?:is|are){S}(?:now{S}|probably{S}|definitely{S})?)"
)
_IS_FAVOURITE = Pattern(
    rf"(?i:{S}is{S}my{S}(?:(?:all[- ]time|absolute|new){S})?favou?rite{S}(?P<what>[^\W\d_][\w-]{{0,24}}(?:{S}(?!in\b|"
    rf"of\b|and\b|but\b|because\b|to\b|so\b|ever\b)[^\W\d_][\w-]{{0,24}})?))"
)
_ANYTHING = frozenset({"thing", "things", "one", "part", "is"})
_ALLERGIC = Pattern(
    rf"(?i:{AM}{S}{ADVERB}(?:(?:severely|very|highly|deathly|mildly|slightly){S})?(?P<how>allergic{S}to|"
    rf"intolerant{S}to){S})"
)
_ALLERGY = Pattern(
    rf"(?i:\bI{S}{ADVERB}have{S}an?{S}(?:(?:severe|bad|serious|mild){S})?(?P<what>[^\W\d_][\w-]{{1,20}}){S}(?:allergy|"
    rf"intolerance))"
)
_DIETS = (
    r"vegetarian|vegan|pescatarian|pescetarian|flexitarian|teetotal(?:l?er)?|gluten[- ]free|lactose[- ]intolerant|"
    r"c(?:o)?eliac|diabetic|kosher|halal"
)
_DIET = Pattern(
    rf"(?i:(?:{AM}{S}{ADVERB}|\bI(?:{S}have|['\u2019]ve)?{S}{ADVERB}(?:became|become|went|gone|turned){S}|"
    rf"{AM}{S}on{S}a{S}|\bI{S}(?:have{S})?switched{S}to{S}(?:a{S})?)(?:an?{S})?(?:(?:strict|lifelong|mostly|committed|"
    rf"completely|fully){S})?(?P<diet>{_DIETS})\b)(?![- ](?:friendly|curious|restaurants?|food|recipes?))"
)
_STATE = Pattern(rf"(?i:{AM})")
_NO_DIET = Pattern(
    rf"(?i:(?:{AM}{S}no{S}longer{S}|{AM}{S}not{S}(?=[^.]{{1,40}}\bany ?more))(?:an?{S})?(?P<diet>{_DIETS})\b)"
)
_NOT_EAT = Pattern(
    rf"(?i:\bI{S}(?:do{S}not|don['\u2019]t|never|can['\u2019]t|cannot|no{S}longer){S}(?P<verb>eat|drink){S})"
)
_HABIT = Pattern(
    r"(?i:\b(?:today|tonight|yesterday|much|enough|yet|right now|another|any more|well|at night|after|before|until|"
    "breakfast|lunch|"
    r"dinner)\b)"
)


def _taste(sentence: Sentence, rule: str, pattern: Pattern, relation: str) -> Iterator[Extraction]:
    for cue in pattern.finditer(sentence.text):
        if not sentence.states(cue.start()):
            continue
        verb = "prefers" if "verb" in cue.groupdict() and (cue["verb"] or "").lower() == "prefer" else relation
        for thing in things_at(sentence.text, cue.end()):
            against = _AGAINST.search(thing.text) if verb == "prefers" else None
            name = thing.text[: against.start()] if against else thing.text
            if folded(name):
                yield sentence.link(
                    rule, cue.start(), thing.start + len(name), verb, name, key=f"likes:{folded(name)}",
                    importance=0.6, tags=("preference",), ended=relation == "no longer likes",
                )  # fmt: skip


def _likes(sentence: Sentence) -> Iterator[Extraction]:
    yield from _taste(sentence, "likes", _LIKE, "likes")


def _dislikes(sentence: Sentence) -> Iterator[Extraction]:
    yield from _taste(sentence, "dislikes", _HATE, "dislikes")


def _no_longer_likes(sentence: Sentence) -> Iterator[Extraction]:
    yield from _taste(sentence, "no longer likes", _NO_MORE, "no longer likes")


def _favourite(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _FAVOURITE.finditer(sentence.text):
        thing = thing_at(sentence.text, cue.end())
        if thing and sentence.states(cue.start()) and folded(cue["what"]) not in _ANYTHING:
            yield _best(sentence, (cue.start(), thing.end), cue["what"], thing.text)
    for cue in _IS_FAVOURITE.finditer(sentence.text):
        lead = sentence.text[: cue.start()]
        begin = max(lead.rfind(","), lead.rfind(" and "), lead.rfind(" but ")) + 1
        name = lead[begin:].strip()
        start = cue.start() - len(lead[begin:].lstrip())
        if name and len(name.split()) <= 4 and sentence.states(start) and thing_at(name, 0):
            yield _best(sentence, (start, cue.end()), cue["what"], name)


def _best(sentence: Sentence, bounds: tuple[int, int], what: str, name: str) -> Extraction:
    what = folded(what)
    return sentence.found(
        "favourite", *bounds, f"{sentence.who}'s favourite {what} is {name}", key=f"favourite:{what}",
        relation=f"favourite {what}", object=name, importance=0.6, tags=("preference",),
    )  # fmt: skip


def _allergy(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _ALLERGIC.finditer(sentence.text):
        if sentence.states(cue.start()):
            for thing in things_at(sentence.text, cue.end()):
                yield _allergic(sentence, (cue.start(), thing.end), thing.text)
    for match in _ALLERGY.finditer(sentence.text):
        if sentence.states(match.start()):
            yield _allergic(sentence, match.span(), match["what"])


def _allergic(sentence: Sentence, bounds: tuple[int, int], what: str) -> Extraction:
    return sentence.link(
        "allergy", *bounds, "is allergic to", what, key=f"allergy:{folded(what)}", importance=0.9, tags=("health",),
    )  # fmt: skip


def _diet(sentence: Sentence) -> Iterator[Extraction]:
    for ended, pattern in ((False, _DIET), (True, _NO_DIET)):
        for match in pattern.finditer(sentence.text):
            if sentence.states(match.start()):
                diet, relation = match["diet"].lower(), "is no longer" if ended else "is"
                yield sentence.link(
                    "diet", *match.span(), relation, diet, key="diet", ended=ended,
                    valid_from=sentence.since(event=not _STATE.match(match[0])), importance=0.8, tags=("health",),
                )  # fmt: skip


def _avoids(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _NOT_EAT.finditer(sentence.text):
        if not sentence.states(cue.start()) or _HABIT.search(sentence.text, cue.end()):
            continue
        for thing in things_at(sentence.text, cue.end()):
            verb = cue["verb"].lower()
            yield sentence.link(
                "avoids", cue.start(), thing.end, f"does not {verb}", thing.text, key=f"eats:{folded(thing.text)}",
                importance=0.8, tags=("health",),
            )  # fmt: skip


RULES = (
    ExtractionRule("likes", "I like, love, enjoy, prefer …; I'm a fan of …", _likes),
    ExtractionRule("dislikes", "I hate, can't stand, don't like …; I'm not a fan of …", _dislikes),
    ExtractionRule("no longer likes", "I no longer like …", _no_longer_likes),
    ExtractionRule("favourite", "my favourite colour is blue; Dune is my favourite book", _favourite),
    ExtractionRule("allergy", "I'm allergic to nuts; I have a nut allergy", _allergy),
    ExtractionRule("diet", "I'm vegetarian; I went vegan; I'm no longer vegan", _diet),
    ExtractionRule("avoids", "I don't eat pork; I never drink alcohol", _avoids),
)
