"""The rule of what others are and do to the speaker: "spiders freak me out", "nobody in my family eats fish".

The subject is no word of the speaker's, and what follows the verb names the speaker or what is the speaker's. Only the
present counts, of verbs that tell a habit. Deliberately absent: what "it", "this" or "the …" does, which is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.clauses import PERSON, WHO, Clause, Subject, is_person, segments, verb_group
from holdfast.memory.rules.complements import FOOD, SPORT
from holdfast.memory.rules.phrases import someone_before
from holdfast.memory.rules.reading import Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.memory.rules.statements import told
from holdfast.when import Pattern

_SOME = Pattern(
    r"(?i:(?P<who>(?:nobody|no\sone|everyone|everybody|all|most|both|half|one|two|three|four|five|some|none|neither)\s"
    r"(?:(?:in|at|of)\s)?(?:my|our)\s(?P<of>[\w-]+))\s)"
)
_OF_A_NAME = Pattern(
    rf"(?i:\s(?P<not>can['\u2019]?t|cannot|must\snot|mustn['\u2019]t)\s(?P<what>(?:have|eat|drink|tolerate)\s(?:any\s)?{FOOD}\b"
    rf"(?:\s(?:or|and)\s{FOOD}\b)*)|\s(?P<does>is\s(?:\w+ly\s)?allergic\sto\s(?!nothing\b|any|the\b|it\b)[\w-]+|"
    rf"plays\sthe\s(?:{SPORT}))(?=\W*$|[,;.!)]|\s(?:and|but|in|at|on|with|since|for|so|too)\b)|"
    r",\swho(?:['\u2019]s|\sis)\s(?P<age>1?\d)(?=\W*$|[,;)]|\sand\b|\s(?:years|months)\b))"
)
_WORD = Pattern(r"[\w'\u2019-]+\s")
_NOT_WHO = (words.NO_VERB - {"of", "in", "from", "and"}) | words.each(
    "someone somebody people everyone nobody anyone nothing everything something let to please will would can "
    "could should must may might do does did don't doesn't didn't dont won't can't have has had its"
)
_CIRCLE = words.each("family house household home flat team office class students street pupils clients")
_WHO_WORDS = 5
_DOES = Pattern(
    r"(?i:(?P<not>(?:do|does)n['\u2019]?t\s)?(?P<verb>freaks?|scares?|terrif(?:y|ies)|annoys?|irritates?|relaxes|"
    r"relax|calms?|soothes?|triggers?|bothers?|"
    r"bores?|disgusts?|upsets?|stresses|stress|call|calls|makes?|gives?|works?|lives?|minds|owes?|pays?|teaches|teach|"
    r"picks?|looks?|helps?|agrees?|disagrees?|visits?|suits?|(?:is|are)\s(?:banned|forbidden|off\slimits)\s(?:in|at|"
    r"for)|(?:is|are|works?)\s"
    r"(?:(?:very|too|usually|always)\s)?(?:hard|difficult|tough|impossible|easy|best|better|good|fine|"
    r"well)\sfor)\s(?P<rest>[^,;:.()!?\x00]*?\b(?:me|my|our|us)\b[^,;:.()!?\x00]*))"
)
_IS_MINE = Pattern(
    rf"(?i:(?P<verb>is|are)\s(?P<rest>(?:my|our)\s(?:(?:new|favou?rite|first|second|biggest|old|best|preferred|main|"
    rf"native)\s)*(?:{WHO}|thing|passion|weakness|hobby|colou?r|kryptonite|jam|mother\stongue|language|sport|team|"
    rf"comfort\s"
    r"\w+|favou?rite(?:\s\w+){{1,2}})(?:\s(?:and|by|in|at|from|on|for|since|as|now)\b[^,;.!?]*)?)(?=\W*$|[,;]))"
)
_ONCE = Pattern(
    r"(?i:\b(?:right\snow|today|tonight|tomorrow|this|that|an?\s(?:message|break|sec|error|moment|idea|hint)|your?|"
    r"now|so\s"
    r"(?:much|bad)|crazy|wonder|think|feel\slike|laugh|smile|sad|happy|angry|mad|want|hungry|blush|a\sheadache)\b)"
)
_BARE_ME = Pattern(r"(?i:^(?:makes?|gives?|helps?)\s(?:me|us)\W*$|\b(?:it|them|him|her|myself)\b)")
_BELONGS = Pattern(r"(?i:\b(?P<word>me|us|my|our|mine|ours)\b)")


def _others(sentence: Sentence) -> Iterator[Extraction]:
    yield from _of_a_name(sentence)
    for start, end, join in segments(sentence.text):
        if join in ("if", "unless", "which", "who", "that's") or not sentence.states(start):
            continue
        found = _some(sentence, start, end) or _does(sentence, start, end)
        if found is not None:
            yield found


def _of_a_name(sentence: Sentence) -> Iterator[Extraction]:
    """What is said of a person by a first name alone: a food they cannot have, an instrument, the age of a child."""
    for said in _OF_A_NAME.finditer(sentence.text):
        name = someone_before(sentence.text, said.start())
        if name is None or " " in name.text or name.text.endswith("s") or not sentence.states(name.start):
            continue  # "Dogs can't eat onions"; "Glenn Gould plays the piano"
        told = said["does"] or (f"is {said['age']}" if said["age"] else f"cannot {said['what']}")
        yield sentence.found(
            "others", name.start, said.end(), f"{name.text} {told}", subject=name.text, importance=0.6,
            tags=("person",), corrects=False,
        )  # fmt: skip


def _does(sentence: Sentence, start: int, end: int) -> Extraction | None:
    text, at = sentence.text, start
    for _ in range(_WHO_WORDS):
        word = _WORD.match(text, at, end)
        one = word[0].strip().lower().replace("\u2019", "'") if word else ""
        if word is None or one in _NOT_WHO or ("'" in one and one.split("'")[0] in _NOT_WHO):
            return None
        at = word.end()
        said = _DOES.match(text, at, end) or _IS_MINE.match(text, at, end)
        if said is not None:
            passing = _ONCE.search(text, start, said.end()) or _BARE_ME.search(said[0])
            return None if passing else _found(sentence, start, said.end(), of_the_speaker(sentence, start, said.end()))
    return None


def _some(sentence: Sentence, start: int, end: int) -> Extraction | None:
    """What holds of some of those the speaker has: judged as if it were said of one of them."""
    some = _SOME.match(sentence.text, start, end)
    if some is None:
        return None
    noun = some["of"].rstrip("s")
    if not is_person(noun) and not is_person(some["of"]) and some["of"].lower() not in _CIRCLE:
        return None
    for words_ in (f"{noun}s", noun):
        clause = Clause(Subject(PERSON, words_, start, some.end("who")), start, end)
        group = verb_group(sentence.text, clause)
        if group is not None:
            denied = some["who"].lower().startswith(("nobody", "no ", "none", "neither"))
            said = told(sentence, clause, group._replace(negated=group.negated or denied))
            return _found(sentence, start, said.end, of_the_speaker(sentence, start, said.end)) if said else None
    return None


def of_the_speaker(sentence: Sentence, start: int, end: int) -> str:
    """Words of the text in which the speaker stands by name: "my family" as "Ana's family"."""
    own = {"me": sentence.who, "us": sentence.who, "mine": f"{sentence.who}'s", "ours": f"{sentence.who}'s"}
    said = _BELONGS.sub(lambda word: own.get(word[0].lower(), f"{sentence.who}'s"), sentence.words(start, end).strip())
    return said[:1].upper() + said[1:]


def _found(sentence: Sentence, start: int, end: int, text: str) -> Extraction:
    return sentence.found("others", start, end, text, importance=0.6, tags=("person",), corrects=False)


RULES = (ExtractionRule("others", "spiders freak me out; nobody in our house eats pork", _others, own=False),)
