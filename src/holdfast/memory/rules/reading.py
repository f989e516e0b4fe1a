"""A text as sentences that may be believed: what is asked, supposed, quoted or reported is kept from the rules.

Offsets always count in the original text: what must not be read is blanked, never cut. Every pattern is bounded, so a
text of any size takes time in proportion to its length. Deliberately absent: grammar. A sentence ends at a full stop, a
mark or a line; a cue word before a statement is enough to leave that statement alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from holdfast import when
from holdfast.atfork import cached_property
from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.pasted import blanked
from holdfast.memory.rules.restoring import IDLE, restored
from holdfast.records import EntryRef
from holdfast.when import Pattern

LONGEST = 600
"""Characters of one sentence; what is longer is a table or a paste, and nobody says it of themselves."""

S = r"[ \t\u00a0]{1,3}"
AM = rf"\bI(?:{S}am|['\u2019]m)"
NAMED = rf"[^\W\d_][\w'-]{{1,20}}(?:{S}[^\W\d_][\w'-]{{1,20}})?,{S}"
AGED = rf"(?:(?:{NAMED})?an?{S})"
HAVE = rf"\bI(?:{S}have|['\u2019]ve)"
ADVERB = (
    rf"(?:(?:actually|really|currently|now|still|also|just|recently|mostly|absolutely|definitely|do|personally|"
    rf"generally|usually|truly|particularly|especially|both|finally){S}){{0,2}}"
)

_END = Pattern(r"[.!?\u2026]{1,5}(?=\s|$|[)\]])|[\u3002\uff01\uff1f\u0964]|\n{1,3}|;(?=\s)")
_SHORT = Pattern(
    r"(?:\b(?:dr|mr|mrs|ms|st|prof|vs|etc|e\.g|i\.e|approx|jr|sr|inc|ltd|co|sgt|capt|lt|col|rev|mt|ft|dept|apt)|"
    r"\b(?!I)[A-Z]|(?<=[\s.])[a-z]|[ap]\.m)$",
    re.IGNORECASE,
)
_COUNTED = Pattern(r"(?:\b(?:no|nr|vol|fig|ca|min|max|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec))$", re.IGNORECASE)

_SUPPOSED = Pattern(
    r"(?i:\b(?:if|as an ai|would(?!\s(?:you|u)\b|\s(?:like|love)\s[^,;]{2,80}[,;])|could(?!\s(?:you|u)\b)|"
    r"wish|wished|might|maybe|perhaps|suppose|supposing|imagine|pretend|"
    "hypothetically|unless|"
    r"whether|probably|possibly|almost|let['\u2019]s say|assume|assuming|as though|dreamed|dreamt|imagined|joked|"
    r"kidding|act as|in another life|hope|hoping|should|ask me|say (?:I|we|my|our)|(?:I|i)\s(?:think|guess|suspect|"
    r"believe|assume|wonder|feel\slike)|not sure|feels? like|for example|for instance|e\.g|in (?:the|"
    r"this|that|a|my) (?:story|novel|book|movie|film|sitcom|show|series|episode|lyrics?|game|dream|scenario|"
    r"play|poem|song|role|simulation))\b|"
    r"['\u2019]d\b(?!\slike\syou\sto\b|\s(?:like|love|prefer|rather)\s[^,;]{2,80}[,;]))"
)
_REPORTED = Pattern(
    r"(?i:\b(?!I\b|we\b|having\b)[^\W\d_]{1,30}\s{1,3}(?:just\s{1,3}|also\s{1,3}|once\s{1,3}|always\s{1,3}|"
    r"still\s{1,3})?(?:said|says|say|told|tell|tells|thinks?|thought|claims?|claimed|believes?|believed|asked|asks|"
    r"wrote|writes|replied|mentioned|insists|insisted|assumed|assumes|suggested|suggests|guessed|reckons|goes|sings|"
    r"heard|wants|wanted)\b|\baccording to\b|\b(?:heard|read|rumou?r)\s{1,3}(?:that|somewhere)\b)"
)
_NEGATED = Pattern(
    r"(?i:n['\u2019]t\b|\b(?:dont|cant|doesnt|isnt|didnt|not|never|neither|nobody|no one|hardly)\b|"
    r"\bfalse\b|\buntrue\b|\bdoubt\b|\bdeny\b|\bwithout\b)"
)
_OWN = Pattern(r"(?i:\b(?:i|my|we|our|me)\b)")
_CLAUSE = Pattern(r"(?i:[,:\u2013\u2014(]|\bbut\b|\band\b|\bso\b|\bbecause\b|\bthough\b|\balthough\b|\binstead\b)")

_WEEKDAY = Pattern(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b")

_ASKING = Pattern(
    r"(?i:,\s{1,3}(?:(?:so|and|but|now)\s{1,3})?(?:can|could|would|will|do|what|how|which|where|who|why|should|"
    r"are there|is there|any)\b(?!\s{1,3}(?:I|we)\s{0,3}$))"
)
_WH = Pattern(r"(?i:\b(?:what|how|which|where|who|why)$)")
_PAUSE = Pattern(r"(?:,|\s-|\s?[\u2013\u2014:;]|\.{2,})\s+(?=\S)")
_TAG = Pattern(
    r"(?i:\s*(?:right|no|yes|yeah|ok|okay|correct|eh|huh|innit|or\swhat|or\snot|true|you\sknow|really|(?:(?:is|are|"
    "do|does|did|was|has|have|"
    r"am|can|will|wo|ca)(?:n['\u2019]t)?\s(?:I|we|he|she|it|they|you)))\W*$)"
)
_ASKS_AT_ONCE = Pattern(
    r"(?i:\W{0,3}(?:(?:so|and|but|ok|okay|well|hi|hey)\W{1,3})?(?:do|did|does|am|is|are|was|were|can|could|would|will|"
    r"should|have|has|had|what|who|how|where|when|why|which|if|isn['\u2019]t|aren['\u2019]t|don['\u2019]t|"
    r"didn['\u2019]t)\b)"
)

_KIN = rf"(?:\w+\s)?(?:{words.either(words.KIN)}|{words.either(words.ROLES)}|{words.either(words.PETS)})\b"
_NT = r"(?:n['\u2019]?t)?"
_ELSE = r"(?<!and\s)(?<!but\s)(?<!or\s)"  # "Lena cooks and is my sister"
_UNMARKED = Pattern(
    r"(?i:(?:^\W{0,3}|[,:;(\u2013\u2014]\s?|\s-\s|\.{2,}\s?|\b(?:so|and|but|or|ok|okay|well|hi|hey|hello|please|"
    r"question|again|wait|remember|forgot|wondering)\s)(?P<asks>"
    rf"(?:do|does|did|am|is|are|was|were|can|could|should|shall|will|would|may|have|has|had){_NT}\s"
    r"(?:i|we|he|she|it|they)\s(?=\w)|"
    rf"{_ELSE}(?:do|does|did|will|can|could|should|would){_NT}\s(?:my|our)\s{_KIN}|"
    rf"{_ELSE}(?:is|are|was|were|has|does){_NT}\s(?:my|our)\s|^(?:has|is|are|does)\s(?-i:[A-Z][\w'-]+\s)(?=\S)|"
    rf"(?:do|did|have|are|were){_NT}\syou\s|would{_NT}\syou\s(?:say|think|know)\b|"
    r"(?:what|how|why|(?<!,\s)(?:who|where|when|which|whose))(?:['\u2019]s|\s(?:(?!(?:i|we|my|our|he|she|they|you|it|"
    r"the|this|that)\b)\w+\s){0,2}?(?:do|does|did|am|is|are|was|were|can|could|should|will|would|have|has|had))"
    rf"{_NT}\s(?=i\b|we\b|my\b|our\b)|"
    r"(?:any|no)\s(?:idea|clue|chance)\b|"
    r"(?:remind\sme|tell\sme|guess)\s(?:what|who|where|when|which|how|if|whether)\b(?!,)))"
)
"""What asks about the speaker without a question mark: "do i live in Berlin", "is my sister called Lena"."""
_UNMARKED_TAG = Pattern(
    r"(?i:,\s(?:right|correct|no|eh|huh|innit|or\swhat|or\snot|(?:is|are|do|does|did|was|has|have|am|can|will|wo|ca)"
    r"(?:n['\u2019]?t)?\s(?:i|we|he|she|it|they))\W*$)"
)
_TOLD_AFTER = Pattern(
    r"(?i:(?:,|\s-|\s?[\u2013\u2014(]|\.{2,}|\s(?:because|since|as|cos|cuz|coz|given\sthat|considering))\s*"
    r"(?:but\s)?(?=(?:i|we|my|our|im)(?:\s|['\u2019])))"
)
_IFS = Pattern(
    r"(?i:^\W{0,3}(?:(?:so|and|but|ok|hi|hey)\W{1,3})?(?:what\s)?if\b|\b(?:how\slong|long\sago|would\syou)\b)"
)

_CORRECTION = Pattern(
    r"(?i:^\W{0,3}(?:(?:no|nope|wait|sorry|oops|ah|oh|hmm|well)\b[,.!\u2014\u2013 -]{0,4}){0,3}(?:(?:no|wait|"
    r"nope),(?=\s)|(?:actually|correction|sorry|oops|my mistake|my bad|(?:i was|i['\u2019]m|that was|that is|"
    r"that['\u2019]s|you['\u2019]re|this is|it['\u2019]s)\s(?:all\s)?(?:wrong|mistaken|incorrect|not right|not true|"
    r"not correct)|i misspoke|i made a mistake|i meant|i mistyped|to correct myself|let me correct)\b))|"
    r"\bI\sactually\b|\bI['\u2019]m\sactually\b"
)
_CHANGE = Pattern(
    r"(?i:\b(?:now|no longer|any ?more|moved|moving|relocated|switched|changed|as of|since|started|joined|recently|"
    r"became|went|just|new|quit|left|these days|nowadays|turned)\b)"
)

_TAKEN_BACK = Pattern(
    r"(?i:\W{0,3}(?:(?:no|nope|nah|wait|sorry|oops|ah|oh|hmm|well|actually|ha|haha|lol|ok|okay)\b"
    r"[,\u2014\u2013 -]{0,4}){0,3}"
    r"(?:(?:that|this|it)(?:['\u2019]?s|\s(?:is|was))\s(?:all\s|just\s|actually\s|totally\s|completely\s)?"
    r"(?:a\s(?:\w{1,12}\s)?lie|false|untrue|incorrect|made\sup|not\s(?:actually\s|really\s)?(?:true|correct))|"
    r"(?:that|this)\s(?:is|was)n['\u2019]?t\s(?:actually\s|really\s)?(?:true|correct)|not\strue|i\s(?:just\s)?lied|"
    r"(?:scratch|strike|ignore|disregard)\sthat|not(?=\s*$))"
    r"(?:\s(?:at\sall|of\scourse|though|actually|sorry|haha|lol))?\s*(?:[,;:\u2013\u2014]|-\s|$))|"
    r"(?i:\W{0,3}(?:(?:no|nope|wait|sorry|oops|actually)\b[,\u2014\u2013 -]{0,4}){1,3}"
    r"(?:that|this)(?:['\u2019]?s|\s(?:is|was))\s(?:all\s)?(?:wrong|mistaken|not\sright)\s*(?:[,;:\u2013\u2014]|-\s|$))"
)
"""What takes back the sentence before it: "NOT!", "That's a lie.", "No wait, that's false"."""
_NOT_SO = Pattern(r"(?i:(?:,|\(|\s-|\s?[\u2013\u2014])\s{0,3}not\s{0,3}$)")
_NO_WAIT = Pattern(r"(?i:\W*(?:(?:no|nope|nah|wait|sorry|oops|ah|oh|hmm|ha|haha|lol)\W*){1,4}$)")


def with_capitals(text: str) -> str:
    """With weekdays as times are read: "on friday" is "on Friday"."""
    return _WEEKDAY.sub(lambda day: day[0].capitalize(), text)


class Sentence(msgspec.Struct, frozen=True, dict=True):
    """One sentence with who says it, of whom, and when. ``at`` is where it begins in the text."""

    text: str
    at: int
    whole: str
    subject: str
    who: str
    time: datetime
    ref: EntryRef | None = None
    after_correction: bool = False
    before: str = ""
    """The sentence before it, which may say who "she" is."""
    asked: str = ""
    """What the assistant said right before the message."""
    first: bool = False
    inserts: tuple[tuple[int, int], ...] = ()
    """Where in ``text`` how much stands that was left out in the whole."""
    question: bool = False
    """Whether it only asks, so that nothing in it is stated but what it takes for granted."""

    @cached_property
    def spans(self) -> list[when.Span]:
        return when.find(with_capitals(self.text), self.time)

    @cached_property
    def own(self) -> bool:
        """Whether the speaker occurs in it."""
        return _OWN.search(self.text) is not None

    @cached_property
    def takes_back(self) -> bool:
        """Whether a word of correction opens it, or stood alone before it."""
        return self.after_correction or _CORRECTION.search(self.text) is not None

    @cached_property
    def corrects(self) -> bool:
        """Whether it takes back what was said before. A change is none: what it replaces was true."""
        return self.takes_back and not _CHANGE.search(self.text)

    @cached_property
    def _doubt(self) -> int:
        """Where the first word stands after which nothing is stated."""
        cues = (None if self.question else _SUPPOSED.search(self.text), _REPORTED.search(self.text))
        return min((cue.start() for cue in cues if cue), default=len(self.text))

    def states(self, start: int) -> bool:
        """Whether what begins at ``start`` is stated: not supposed, reported or denied by what leads up to it."""
        if self._doubt < start:
            return False
        lead = self.text[max(0, start - 120) : start]
        begin = max((cut.end() for cut in _CLAUSE.finditer(lead)), default=0)
        return not _NEGATED.search(lead[begin:])

    def since(self, *, event: bool = False) -> datetime | None:
        """From when on, if the sentence says so: "since 2019", "as of June"; with ``event`` also "last month"."""
        for span in self.spans:
            if span.since is not None and (span.kind == "since" or (event and span.since <= self.time)):
                return span.since
        return None

    def words(self, start: int, end: int) -> str:
        """The words as they were written: what is blanked for the rules is kept in what they find."""
        said = self.whole[self.place(start) : self.place(end)]
        opened = any(length > 1 and at + length == start for at, length in self.inserts) and not said[1:2].isupper()
        return said[:opened].lower() + said[opened:]  # "Deaf in one ear" goes on after a name

    def place(self, at: int) -> int:
        """Where in the whole text stands what is here in the sentence."""
        return self.at + at - sum(min(max(at - begin, 0), length) for begin, length in self.inserts)

    def link(self, rule: str, start: int, end: int, relation: str, to: str, **more: Any) -> Extraction:
        """What is found as a relation to something, of the speaker or whom ``of`` names."""
        who = more.pop("of", self.who)
        return self.found(rule, start, end, f"{who} {relation} {to}", relation=relation, object=to, **more)

    def found(self, rule: str, start: int, end: int, text: str, **more: Any) -> Extraction:
        more.setdefault("subject", self.subject)
        more.setdefault("corrects", self.corrects)
        start, end = self.place(start), self.place(end)
        return Extraction(rule, text, quote=self.whole[start:end], start=start, end=end, ref=self.ref, **more)


def sentences(
    text: str, *, subject: str, who: str, time: datetime, ref: EntryRef | None, asked: str = ""
) -> Iterator[Sentence]:
    """The sentences that state something, in order, and questions for what they take for granted; no endless ones."""
    readable, corrected, before, first = blanked(text), False, "", True
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    bounds = list(_bounds(readable))
    taken_back = _taken_back([readable[start:end] + mark for start, end, mark in bounds])
    for place, (start, end, mark) in enumerate(bounds):
        whole = readable[start:end]
        if place in taken_back:
            before, first = whole, False
            continue
        piece = _before_question(whole) if "?" in mark or "\uff1f" in mark else _before_unmarked(whole)
        one = partial(Sentence, whole=text, subject=subject, who=who, time=time, ref=ref, asked=asked)
        stated = len(piece) <= LONGEST and piece.strip("\x00 \t\r")
        if stated:
            idle = len(found[0]) if (found := IDLE.match(stated)) else 0
            begin = start + len(piece) - len(piece.lstrip()) + idle
            read, inserts = restored(stated[idle:])
            yield one(text=read, inserts=inserts, at=begin, after_correction=corrected, before=before, first=first)
        if len(piece) < len(whole) <= LONGEST:
            yield from _of_question(whole, len(piece), start, partial(one, before=before))
        if stated:
            before, first, corrected = stated, False, bool(_CORRECTION.search(stated)) and len(stated) < 45
        else:
            before = whole[-LONGEST:] or before  # a question, too, may say who "she" is
            first = first and not whole.strip()


def _taken_back(said: list[str]) -> set[int]:
    """Which sentences are taken back, by themselves or by the next one."""
    found: set[int] = set()
    last, opening = -1, ""
    for place, sentence in enumerate(said):
        ended = sentence.rstrip(" \t\n.!\u2026")
        if last >= 0 and len(sentence) <= LONGEST and _TAKEN_BACK.match(opening + ended):
            found.add(last)
        if len(sentence) <= LONGEST and _NOT_SO.search(ended):
            found.add(place)
        if len(ended) <= 40 and _NO_WAIT.match(ended):
            opening = f"{ended}, "  # "No. Wait. That's wrong."
        elif ended.strip("\x00 \t\r"):
            last, opening = place, ""
    return found


def _of_question(whole: str, at: int, start: int, one: Callable[..., Sentence]) -> Iterator[Sentence]:
    """What a question takes for granted, and what is told after it: "is brie safe, I'm pregnant?"."""
    asking = whole[at:]
    at_once = _ASKS_AT_ONCE.match(asking) or _UNMARKED.match(asking)
    told = _TOLD_AFTER.search(asking) if at_once and not _IFS.search(asking) else None
    if told and not _TAG.match(asking, told.end()):
        yield one(text=asking[told.end() :], at=start + at + told.end())
        asking = asking[: told.start()]
    yield one(text=asking, at=start + at, question=True)


def _before_question(piece: str) -> str:
    """What is stated before a question of its own clause begins: "I live in Berlin, what can I do there?"."""
    if _ASKS_AT_ONCE.match(piece):
        return ""
    asking = _ASKING.search(piece) or next((each for each in reversed(list(_PAUSE.finditer(piece)))), None)
    tag = asking and not _WH.search(asking[0]) and _TAG.match(piece, asking.end())
    return piece[: asking.start()] if asking and not tag else ""


def _before_unmarked(piece: str) -> str:
    """The same of a question that has no mark."""
    asking = _UNMARKED.search(piece)
    return "" if _UNMARKED_TAG.search(piece) else piece[: asking.start("asks")] if asking else piece


def _bounds(text: str) -> Iterator[tuple[int, int, str]]:
    begin = 0
    for mark in _END.finditer(text):
        if mark[0] == "." and _goes_on(text, max(begin, mark.start() - 8), mark):
            continue
        yield begin, mark.start(), mark[0]
        begin = mark.end()
    yield begin, len(text), ""


def _goes_on(text: str, start: int, mark: re.Match[str]) -> bool:
    """Whether a full stop only ends a short form: "Dr. K. Meyer", "no. 7"."""
    if _SHORT.search(text, start, mark.start()):
        return True
    after = text[mark.end() : mark.end() + 8].lstrip()
    return (after[:1].isdigit() or after.startswith(("is ", ":"))) and _COUNTED.search(
        text, start, mark.start()
    ) is not None
