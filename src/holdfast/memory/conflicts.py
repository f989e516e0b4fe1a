"""Contradictions between memories without a common key: found by rules, reported to people, and never merged.

Two memories can only contradict when they are about the same subject, are true at the same time, and say nearly the
same. Facts with a key supersede one another, so what was superseded, ended, corrected or forgotten contradicts nothing;
neither do episodes, which may both have happened. Each rule has a name:

- ``home``, ``workplace``, ``age``, ``name``, ``birthday``, ``email``, ``phone``, ``favourite``: two values where there
  is one
- ``opposite``: likes and dislikes, married and single, open and closed
- ``negation``: one of them says not
- ``time``, ``date``, ``weekday``, ``number``: they differ in that alone

What is numbered (note 12 and note 13, the key of flat 3 and that of flat 5) are siblings in a list, and so are two days
without a verb (gym on Monday, gym on Thursday): they contradict nothing.

The rules read English; of other languages only the figures are compared. They prefer silence to a false alarm. Of many
that contradict one another, each is reported with the latest before it, so that the work and the answer grow with the
memories and not with their pairs. Deliberately absent: a model, and deciding which one is right.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from math import ceil

import msgspec

from holdfast.memory.facts import FactVersion, silent, timeline
from holdfast.memory.names import folded, in_order
from holdfast.records import Memory
from holdfast.text import STOP_WORDS, fold, stem

ALIKE = 0.6
"""How much of what two texts say must be shared before a difference between them is a contradiction."""
LONGEST = 2_000
"""Characters of a text that is compared. What is longer says too much to contradict in one point."""
_BACK = 32  # earlier ones of a group that one is compared with
_KEPT = 2_048  # readings of texts that are kept; a text is read far more slowly than two readings are compared


class Contradiction(msgspec.Struct, frozen=True):
    """Two memories that cannot both be true, the earlier recorded first: by which ``rule``, and ``why`` in words."""

    first: Memory
    second: Memory
    rule: str
    why: str


def contradictions(
    memories: Iterable[Memory], limit: int | None = 100, subject: str | None = None
) -> list[Contradiction]:
    """Pairs that contradict, those with the newest memories first, of one subject or of each.

    Give facts and corrections as well. Each memory comes as ``second`` with the latest before it that it contradicts.
    """
    about = None if subject is None else folded(subject)
    standing: dict[str, list[FactVersion]] = {}
    for version in timeline(memories):
        if _can_contradict(version) and about in (None, whose := folded(version.memory.subject)):
            standing.setdefault(whose, []).append(version)
    found: list[Contradiction] = []
    for versions in standing.values():
        if len(versions) > 1:
            found += _among([_Standing(version, _read(version.memory)) for version in versions], limit)
    return sorted(found, key=lambda pair: (_age(pair.second), _age(pair.first)), reverse=True)[:limit]


def _can_contradict(version: FactVersion) -> bool:
    memory = version.memory
    settled = version.never or version.superseded_by or silent(memory)
    return not settled and memory.kind != "episodic" and len(memory.text) <= LONGEST


def _among(standing: list[_Standing], limit: int | None) -> list[Contradiction]:
    """The contradictions among memories of one subject. The newest are looked at first, so there may be an end soon."""
    standing.sort(key=lambda one: _age(one.memory))
    groups = _groups(standing)
    found: list[Contradiction] = []
    for place in reversed(range(len(standing))):
        if limit is not None and len(found) >= limit:
            break
        second, before = standing[place], set[int]()
        for group in groups[place]:
            for earlier in _before(group, place):
                verdict = _verdict_on(standing[earlier], second)
                if verdict is not None and earlier not in before:
                    found.append(Contradiction(standing[earlier].memory, second.memory, *verdict))
                    before.add(earlier)
                if verdict is not None:
                    break
    return found


def _before(group: Sequence[int], place: int) -> Sequence[int]:
    """The last places of a group before one, the latest first."""
    end = bisect_left(group, place)
    return group[max(0, end - _BACK) : end][::-1]


def _verdict_on(first: _Standing, second: _Standing) -> tuple[str, str] | None:
    if first.reading is second.reading or not _together(first.version, second.version):
        return None
    return _verdict(first.reading, second.reading)


def _age(memory: Memory) -> tuple[datetime, str]:
    return memory.recorded_at, in_order(memory.id)


# Reading a text

_FILLERS = frozenset(
    {"now", "currently", "still", "just", "also", "recently", "today", "presently", "actually", "generally", "usually"}
    | {"always", "already", "user"}
)
_NOT = re.compile(
    r"\b(?:(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|must|may|might) not(?! only)"
    r"|\w+n't|(?:do|does|did|is|are|was|were|has|have|had|would|could|should|ca|wo)nt"
    r"|cannot|never|no longer|(?:has|have|had) no)\b"
)
_CONTRAST = re.compile(
    r"(?:,\s*|\b(?:but|and)\s+)not\b(?! only)[^,.;!?]*|\b(?:rather than|instead of|as opposed to)\b[^,.;!?]*"
)
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_OPPOSITES = (
    ("like likes love loves enjoy enjoys adore prefer fond", "dislike hate detest loathe avoid despise"),
    ("married", "single unmarried divorced widowed"),
    ("employed", "unemployed"),
    ("open", "closed"),
    ("allow allowed permitted", "forbid forbidden banned prohibited"),
    ("enabled enable", "disabled disable"),
    ("active", "inactive"),
    ("available", "unavailable"),
    ("early", "late"),
    ("morning", "evening"),
    ("hot", "cold"),
    ("increase increased rising", "decrease decreased falling"),
    ("accept accepted approve approved", "reject rejected decline declined"),
    ("pass passed", "fail failed"),
    ("alive", "dead"),
    ("true", "false"),
    ("safe", "unsafe dangerous"),
    ("cheap", "expensive"),
    ("public", "private"),
    ("agree agreed", "disagree disagreed"),
    ("trust trusts", "distrust mistrust"),
    ("possible", "impossible"),
    ("legal", "illegal"),
    ("happy", "unhappy"),
    ("comfortable", "uncomfortable"),
    ("able", "unable"),
    ("indoor indoors", "outdoor outdoors"),
    ("vegetarian vegan", "carnivore omnivore"),
)
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",), ("june", "jun"),
            ("july", "jul"), ("august", "aug"), ("september", "sep", "sept"), ("october", "oct"), ("november", "nov"),
            ("december", "dec"),
        ),
        1,
    )
    for name in names
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_COUNTED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS = {name: str(number) for number, name in enumerate(_COUNTED, 2)}
_FIGURES = {
    "iso": re.compile(r"\b(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)\b"),
    "month first": re.compile(rf"\b(?P<m>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y>\d{{4}})\b)?"),
    "day first": re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m>{_MONTH})\b(?:,? (?P<y>\d{{4}})\b)?"),
    "time": re.compile(
        r"\b(?P<h>\d{1,2})(?::(?P<min>\d\d))?\s*(?P<half>[ap])\.?m\b\.?|\b(?P<h24>\d{1,2}):(?P<min24>\d\d)\b"
    ),
    "weekday": re.compile(rf"\b(?:{_DAYS})\b"),
    "number": re.compile(rf"\b\d+(?:[.,]\d+)*\b|\b(?:{'|'.join(_NUMBERS)})\b"),
}

_LABELS = re.compile(
    r"\b(?P<what>note|item|step|no|nr|number|entry|part|chapter|point|task|ticket|issue|lesson|episode|section|question|"
    r"example|case|version|room|order|invoice|page|line|memory|message|fact|record|document|day|week|round|level|"
    r"sprint|phase|unit|volume|option|rule|exercise|test)s?\.? ?(?:#|no\.? ?|number )?(?P<number>\d+)\b(?![:.]\d)"
    r"|#(?P<bare>\d+)\b|^\W*(?P<leading>\d+)[.):](?!\d)"
    r"|^\W*(?P<first>(?=\d*[^\W\d_])[^\W_]+) (?P<own>\d+)(?=\s*(?:[:.)-](?!\d)|$))"
)
_OWNER = "the|this|that|my|our|your|his|her|their|its"
_PLACE = "of|for|from|in|into|at|on|by|to|near|with|behind|under|above"
# A noun, its number, and more after it: the sentence is about that one. At the end, the number may be what is said.
_TOPIC = re.compile(
    rf"(?:(?P<start>(?:^|[.;!?]\s)\W{{0,8}}(?:(?:{_OWNER}) )?)|\b(?:{_OWNER}|{_PLACE}) )"
    r"(?!(?:last|next|first|past|other|another|top|best|same|only|least|most|about|around|over|nearly|almost|exactly|age|"
    rf"{_MONTH}|{_DAYS}|take|drink|eat|pay|add|use|buy|order|save|spend|need|keep|have|wait|walk|run|make|give|read|want)\b)"
    r"(?P<what>[^\W\d_]+(?:[^\W\d_s]|us|ss)) (?P<number>\d+)(?:'s\b| (?=[^\W\d_])"
    r"(?!(?:euros?|dollars?|pounds?|francs?|percent|degrees?|[km]?g|[km]?m|cm|ml|am|pm|"
    r"(?:minute|hour|day|week|month|year|time|mile|people|person)s?)\b)"
    rf"(?(start)|(?!(?:{_PLACE}|every|each|and|or|now|since|until)\b)))"
)
_FROM = re.compile(r"\bfrom (?:the |my |our )?(?!to\b|now\b|the\b|my\b|our\b)([a-z]{2,})")
_BARE_WEEKDAY = re.compile(
    rf"^(?!.*(?:\b(?:is|are|am|was|were|be|has|have|due|deadline|starts?|begins?|ends?|leaves?|opens?|closes?|meets?|runs?|works?|moved|"
    rf"happens?|takes?|arrives?|departs?|scheduled|flies|fly|goes|comes?)\b|'s\b)).*\b(?:{_DAYS})\b",
    re.DOTALL,
)

_VALUE = r"(?P<value>[^.;!?\n]+)"
_SINGLE = {
    "home": re.compile(rf"\b(?:lives?|living|resides?|is based|am based) in {_VALUE}"),
    "workplace": re.compile(
        rf"\b(?:works?|working|is employed) (?:at|for) (?!nights?\b|home\b|weekends?\b|least\b|\d|the moment){_VALUE}"
    ),
    "age": re.compile(r"\b(?:is|am|aged|turned) (?P<value>\d{1,3})(?: years? old)?(?=[.;!?,]|\s+now|$|\s+and\b)"),
    "name": re.compile(rf"\bname is {_VALUE}"),
    "birthday": re.compile(rf"\b(?:birthday is|was born|born)(?: on)? (?!in\b){_VALUE}"),
    "email": re.compile(r"\be-?mail(?: address)?(?: is|:) *(?P<value>\S+@\S+)"),
    "phone": re.compile(r"\b(?:phone|telephone|mobile|cell)(?: number)?(?: is|:) *(?P<value>\+?[\d ()/.-]{5,})"),
    "favourite": re.compile(rf"\bfavou?rite (?P<topic>[\w ]{{1,40}}?) (?:is|are) {_VALUE}"),
}
_AFTER_VALUE = re.compile(r",|\b(?:and|but|since|with|because|now|at the moment|these days|until|as|near|so)\b")


@lru_cache(1)
def _sides() -> dict[str, tuple[int, int]]:
    """Which pair of opposites a stem is in, and on which side; worked out by the first text, not on import."""
    return {
        stem(word): (group, side)
        for group, pair in enumerate(_OPPOSITES)
        for side, words in enumerate(pair)
        for word in words.split()
    }


class _Assertion(msgspec.Struct, frozen=True):
    """What the rules see of a text."""

    core: frozenset[str]
    nots: int
    before_not: frozenset[str]
    sides: dict[int, tuple[int, str, frozenset[str]]]
    figures: dict[str, frozenset[str]]
    labels: frozenset[tuple[str, str]]
    single: dict[tuple[str, frozenset[str]], tuple[str, frozenset[str]]]


class _Standing(msgspec.Struct, frozen=True):
    """A memory that holds, with what the rules see of it."""

    version: FactVersion
    reading: _Assertion

    @property
    def memory(self) -> Memory:
        return self.version.memory


def _read(memory: Memory) -> _Assertion:
    return _read_text(memory.text, memory.subject)


@lru_cache(_KEPT)
def _read_text(text: str, subject: str) -> _Assertion:
    text = fold(text)
    own = content_words(fold(subject))
    single = dict(_single_values(text, own))
    plain = _CONTRAST.sub(" ", text)
    nots = list(_NOT.finditer(plain))
    before = content_words(plain[: nots[0].start()]) - own if nots else frozenset()
    figures, rest = figures_of(_NOT.sub(" ", plain))
    sides, known = _opposites(rest, own), _sides()
    core = (frozenset(f"@{known[word][0]}" if word in known else word for word in content_words(rest))) - own
    core |= {f"from {found[1]}" for found in _FROM.finditer(rest)}  # the way there and the way back
    if _BARE_WEEKDAY.search(text):
        figures.pop("weekday", None)
    return _Assertion(core, len(nots), before, sides, figures, _labels(text), single)


def another_number(one: str, other: str) -> bool:
    """Whether two texts say the same but for a number that names nothing."""
    some, others = _read_text(one, ""), _read_text(other, "")
    verdict = None if _siblings(some, others) else _two_figures(some, others)
    return verdict is not None and verdict[0] == "number"


def forget() -> None:
    """Keep no reading of any text: something was erased."""
    _read_text.cache_clear()


def _labels(text: str) -> frozenset[tuple[str, str]]:
    """The numbers that name one of several, with what they number."""
    topics = ((found["what"], found["number"]) for found in _TOPIC.finditer(text))
    return frozenset(topics) | {
        (found["what"] or found["first"] or "", found["number"] or found["bare"] or found["leading"] or found["own"])
        for found in _LABELS.finditer(text)
    }


def _siblings(one: _Assertion, other: _Assertion) -> bool:
    """Whether they are numbered, and the numbers differ."""
    kinds = {kind for kind, _ in one.labels} & {kind for kind, _ in other.labels}
    return any({label for label in one.labels if label[0] == kind}.isdisjoint(other.labels) for kind in kinds)


def content_words(text: str) -> frozenset[str]:
    """The words that carry what a text says."""
    return frozenset(_in_order_of_text(text))


def _in_order_of_text(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match[0].removesuffix("'s").replace("'", "")
        if word not in STOP_WORDS and word not in _FILLERS:
            yield stem(word)


def _opposites(text: str, own: frozenset[str]) -> dict[int, tuple[int, str, frozenset[str]]]:
    """Which side the text takes in a pair of opposites, the word for it, and who or what takes it."""
    found: dict[int, tuple[int, str, frozenset[str]]] = {}
    before: set[str] = set()
    known = _sides()
    for word in _in_order_of_text(text):
        if word in known:
            group, side = known[word]
            found.setdefault(group, (side, word, frozenset(before)))
        elif word not in own:
            before.add(word)
    return found


def figures_of(text: str) -> tuple[dict[str, frozenset[str]], str]:
    """The dates, times, weekdays and numbers in a text, and the text without them."""
    found: dict[str, set[str]] = {}
    for name, pattern in _FIGURES.items():
        for match in pattern.finditer(text):
            for rule, value in _figure(name, match):
                found.setdefault(rule, set()).add(value)
        text = pattern.sub(" ", text)
    return {rule: frozenset(values) for rule, values in found.items()}, text


def _figure(name: str, match: re.Match[str]) -> Iterator[tuple[str, str]]:
    if name in ("iso", "month first", "day first"):
        month = _MONTHS.get(match["m"]) or int(match["m"])
        yield "date", f"{month:02}-{int(match['d']):02}"
        if match["y"]:
            yield "year", match["y"]
    elif name == "time":
        yield "time", _clock(match)
    elif name == "number":
        yield "number", _NUMBERS.get(match[0], match[0].replace(",", ""))
    else:
        yield name, match[0]


def _clock(match: re.Match[str]) -> str:
    if match["h24"]:
        return f"{int(match['h24']):02}:{match['min24']}"
    hour = int(match["h"]) % 12 + (12 if match["half"] == "p" else 0)
    return f"{hour:02}:{match['min'] or '00'}"


def _single_values(
    text: str, own: frozenset[str]
) -> Iterator[tuple[tuple[str, frozenset[str]], tuple[str, frozenset[str]]]]:
    """Values of what has only one, with whose it is: a sister's home is not one's own."""
    for rule, pattern in _SINGLE.items():
        for match in pattern.finditer(text):
            sentence = re.split(r"[.;!?\n]", text[: match.start()])[-1]
            if _NOT.search(sentence + match[0]):
                continue
            whose = content_words(sentence) - own
            if rule == "age" and whose and "old" not in match[0]:
                continue  # what is 35 may be a price
            if "topic" in pattern.groupindex:
                whose |= content_words(match["topic"])
            value = match["value"] if rule in ("email", "phone") else _AFTER_VALUE.split(match["value"])[0]
            words = _parts(rule, value)
            if words:
                yield (rule, whose), (value.strip(), words)


def _parts(rule: str, value: str) -> frozenset[str]:
    """What of a value is compared."""
    if rule == "phone":
        return frozenset([re.sub(r"\D", "", value)])
    if rule == "email":
        return frozenset([value.strip(".,;")])
    figures, rest = figures_of(value)
    return content_words(rest) | {figure for values in figures.values() for figure in values}


# Comparing two


def _groups(standing: Sequence[_Standing]) -> list[list[list[int]]]:
    """For each, the groups it is in, as places in order: those in one may contradict, those in none cannot.

    They name the same single-valued thing, say the same but for figures and opposites, or share enough of their words.
    To share that much, two texts must share one of the rarest words of each, so only those are looked up. There only
    the latest of those that say the same is looked for: the others would take its place among the few.
    """
    often = Counter(word for one in standing for word in one.reading.core)
    groups: dict[object, list[int]] = {}
    found: list[list[list[int]]] = []
    latest = {_gist(one.reading): place for place, one in enumerate(standing)}
    for place, one in enumerate(standing):
        core = one.reading.core
        rare = sorted(core, key=lambda word: (often[word], word))
        words = rare[: len(rare) - ceil(ALIKE * len(rare)) + 1]
        named = [*one.reading.single, *([core] if core else ()), *words]
        found.append([groups.setdefault(name, []) for name in named])
        for name, group in zip(named, found[-1], strict=True):
            if type(name) is not str or latest[_gist(one.reading)] == place:
                group.append(place)
    return found


def _gist(reading: _Assertion) -> object:
    """What decides whether a text contradicts another one of other words."""
    sides = frozenset((group, side, who) for group, (side, _, who) in reading.sides.items())
    return reading.core, reading.nots, reading.before_not, sides


def _together(a: FactVersion, b: FactVersion) -> bool:
    """Whether there is a moment at which both count as true."""
    return (a.until is None or b.since < a.until) and (b.until is None or a.since < b.until)


def _verdict(one: _Assertion, other: _Assertion) -> tuple[str, str] | None:
    if _siblings(one, other):
        return None
    for judge in (_two_values, _two_sides, _yes_and_no, _two_figures):
        verdict = judge(one, other)
        if verdict is not None:
            return verdict
    return None


def _two_values(one: _Assertion, other: _Assertion) -> tuple[str, str] | None:
    for what in sorted(one.single.keys() & other.single.keys(), key=lambda what: (what[0], sorted(what[1]))):
        (first, some), (second, others) = one.single[what], other.single[what]
        if not (some <= others or others <= some):
            return what[0], f"two values of {what[0]}: {first} and {second}"
    return None


def _alike(one: _Assertion, other: _Assertion) -> bool:
    shared = one.core & other.core
    said = any(not word.startswith("@") for word in shared) or one.core == other.core != frozenset()
    return said and len(shared) >= ALIKE * len(one.core | other.core)


def _two_sides(one: _Assertion, other: _Assertion) -> tuple[str, str] | None:
    if one.nots != other.nots or not _alike(one, other):
        return None
    for group in sorted(one.sides.keys() & other.sides.keys()):
        (side, word, who), (other_side, other_word, other_who) = one.sides[group], other.sides[group]
        if side != other_side and who == other_who:
            return "opposite", f"opposite words: {word} and {other_word}"
    return None


def _yes_and_no(one: _Assertion, other: _Assertion) -> tuple[str, str] | None:
    yes, no = sorted((one, other), key=lambda reading: reading.nots)
    if (yes.nots, no.nots) != (0, 1) or not _alike(one, other) or not no.before_not <= yes.core:
        return None
    if any(side[0] != no.sides[group][0] for group, side in yes.sides.items() if group in no.sides):
        return None  # hates it and does not like it
    if any(_differ(yes.figures.get(rule), no.figures.get(rule)) for rule in yes.figures):
        return None  # not on Monday, but on Tuesday
    return "negation", "one of them says not"


def _two_figures(one: _Assertion, other: _Assertion) -> tuple[str, str] | None:
    if one.core != other.core or not one.core or one.nots != other.nots:
        return None
    if any(side[0] != other.sides[group][0] for group, side in one.sides.items()):
        return None
    for rule in ("date", "year", "weekday", "time", "number"):
        if _differ(one.figures.get(rule), other.figures.get(rule)):
            values = (", ".join(sorted(reading.figures[rule])) for reading in (one, other))
            return ("date" if rule == "year" else rule), f"they differ in the {rule}: {' and '.join(values)}"
    return None


def _differ(some: frozenset[str] | None, others: frozenset[str] | None) -> bool:
    return bool(some) and bool(others) and not (some <= others or others <= some)  # type: ignore[operator]
