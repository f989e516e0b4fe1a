"""Rules of days: birthdays, and what happened or will happen at a time that can be resolved.

An event needs a verb or a noun that names one and a time in the same sentence; the interval is the time's. An event
without a time stays what it is, an entry of the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from holdfast import when
from holdfast.memory.extraction import Extraction
from holdfast.memory.rules.reading import ADVERB, AM, S, Sentence, with_capitals
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.memory.rules.vocabulary import RECURRING
from holdfast.when import Pattern
from holdfast.when.words import FULL_MONTHS

_BIRTHDAY = Pattern(
    rf"(?i:\bmy{S}birthday{S}(?:is|falls)(?:{S}actually)?(?:{S}on)?{S}(?:the{S})?|"
    rf"\bmy{S}birthday['\u2019]s{S}(?:on{S})?|(?P<mine>\bmine{S}is{S})(?:on{S})?(?:the{S})?|\bI{S}was{S}born{S}(?:on|in){S}(?:the{S})?)"
)
_ANNIVERSARY = Pattern(rf"(?i:\b(?:my|our){S}(?:wedding{S})?anniversary{S}(?:is|falls)(?:{S}on)?{S}(?:the{S})?)")
_NOUN = (
    "flight|appointment|meeting|interview|exam|test|surgery|operation|trip|concert|party|deadline|wedding|date|call|"
    "class|presentation|conference|match|game|race|marathon|holiday|vacation|visit|checkup|check-up|reservation|dinner|"
    "lunch|ceremony|hearing|launch|event|workshop|lesson|course|viewing|audition|performance|recital|show|reunion|"
    "retreat|hike"
)
_OWN = Pattern(
    rf"(?i:\b(?:I|we)(?:{S}have|['\u2019]ve{S}got|{S}have{S}got|{S}had|['\u2019]ve{S}booked|{S}booked|"
    rf"{S}have{S}booked){S}(?:an?|my|our|the|another){S}(?:[^\W_][\w'-]{{0,20}}{S}){{0,4}}(?:{_NOUN})\b)"
)
_MINE = Pattern(
    rf"(?i:\b(?:my|our){S}(?:[^\W_][\w'-]{{0,20}}{S}){{0,3}}(?:{_NOUN}){S}(?:is|was|will{S}be|starts|begins|"
    rf"takes{S}place|got{S}moved{S}to)\b)"
)
_GOING = Pattern(
    rf"(?i:(?:{AM}|\bwe(?:{S}are|['\u2019]re)){S}{ADVERB}(?:flying|travel(?:l)?ing|going|driving|visiting|meeting|"
    rf"starting|moving|getting{S}married|leaving|seeing|attending|running|having{S}(?!trouble|problems?|issues?|"
    rf"difficult|fun\b|a{S}hard|some\b)[^\W\d_]{{1,20}}|hosting|taking|presenting|graduating)\b)"
)
_WILL = Pattern(
    rf"(?i:\b(?:I|we)(?:{S}will|['\u2019]ll){S}(?!(?:not|never|call|try|do|send|let|check|ask|use|see|think|look|"
    "tell|give|need|"
    r"finish|fix|write|wait|read|need|have\sto|get\sback|know|say|show|share|update|text|email|ping|"
    r"reply)\b)[^\W\d_]{2,20}\b)"
)
_DID = Pattern(
    rf"(?i:\b(?:I|we){S}{ADVERB}(?:went|visited|met|attended|adopted|joined|"
    rf"graduated|passed|ran|completed|moved|signed|won|celebrated|flew|drove|launched|"
    rf"released|quit|married|wrote|hosted|organi[sz]ed|volunteered|presented|climbed|hiked|"
    rf"returned|arrived|submitted|published|shipped|"
    rf"performed|participated|hired|proposed|booked|planned)\b)"
)
_RECURS = Pattern(rf"(?i:{RECURRING})")
_PAST = Pattern(r"(?i:\b(?:was|were|had|got\smoved)\b)")
_REACH_CHARS = 160  # a time further off belongs to something else
_LEAD_CHARS = 60


def _birthday(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _BIRTHDAY.finditer(sentence.text):
        span = _span_at(sentence, cue)
        if span is None or not sentence.states(cue.start()):
            continue
        if cue["mine"] and "birthday" not in sentence.text[: cue.start()].lower():
            continue
        if span.kind == "day" and span.since:
            said = f"{_day_and_month(span)}{_year(span)}"
            key, text = (
                "birthday",
                f"{sentence.who} was born on {said}" if _year(span) else f"{sentence.who}'s birthday is {said}",
            )
        elif span.kind in {"year", "month"} and span.since and re.search(r"[0-9]{4}", span.phrase):
            key, text = "birth_year", f"{sentence.who} was born in {span.since.year}"
        else:
            continue
        yield sentence.found("birthday", cue.start(), span.end, text, key=key, importance=0.8, tags=("date",))


def _anniversary(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _ANNIVERSARY.finditer(sentence.text):
        span = _span_at(sentence, cue)
        if span and span.kind == "day" and span.since and sentence.states(cue.start()):
            text = f"{sentence.who}'s anniversary is {_day_and_month(span)}{_year(span)}"
            yield sentence.found(
                "anniversary", cue.start(), span.end, text, key="anniversary", importance=0.7, tags=("date",)
            )


def _span_at(sentence: Sentence, cue: re.Match[str]) -> when.Span | None:
    return next(
        (span for span in sentence.spans if cue.start() < span.end and cue.end() - 8 <= span.start <= cue.end()), None
    )


def _day_and_month(span: when.Span) -> str:
    assert span.since is not None
    return f"{_day_of(span)} {FULL_MONTHS[span.since.month - 1].capitalize()}"


def _day_of(span: when.Span) -> int:
    """The day of a birthday, which may be one that this year does not have."""
    assert span.since is not None
    return 29 if span.since.month == 2 and re.search(r"\b29", span.phrase) else span.since.day


def _year(span: when.Span) -> str:
    found = re.search(r"[0-9]{4}", span.phrase)
    return f" {found[0]}" if found else ""


def _event(sentence: Sentence, rule: str, patterns: tuple[Pattern, ...]) -> Iterator[Extraction]:
    spans = [span for span in sentence.spans if span.since and span.until]
    cues = sorted((cue for pattern in patterns for cue in pattern.finditer(sentence.text)), key=lambda cue: cue.start())
    if not spans or not cues or (rule == "planned" and _RECURS.search(sentence.text)):
        return  # "every Monday at 7" is no one day
    cue = next((cue for cue in cues if sentence.states(cue.start())), None)
    if cue is None:
        return
    # The nearest time after the verb, or one that opens the sentence.
    span = next((span for span in spans if span.start >= cue.end()), spans[0])
    if not -_LEAD_CHARS <= span.start - cue.end() <= _REACH_CHARS:
        return
    if rule == "planned" and not _PAST.search(sentence.text[cue.start() : span.start]):
        span = ahead(sentence, span)
        if span.until is not None and span.until <= sentence.time + when.DAY:
            return  # "a meeting in an hour" is no plan for long
    start, end = min(cue.start(), span.start), max(cue.end(), span.end)
    if len(sentence.text) <= 240:
        start, end = 0, len(sentence.text)
    text = f"{sentence.who}: {sentence.words(start, end)} ({stamp(span)})"
    yield sentence.found(
        rule, start, end, text, kind="episodic", valid_from=span.since, valid_to=span.until, corrects=False,
        importance=0.5, tags=("event",),
    )  # fmt: skip


def ahead(sentence: Sentence, span: when.Span) -> when.Span:
    """A time as someone means it who speaks of what is to come: "on the 12th" is the next one."""
    if span.until is None or span.until > sentence.time or re.search(r"[0-9]{4}", span.phrase):
        return span
    said = with_capitals(sentence.text[max(0, span.start - 3) : span.end])
    again = when.find(f"it will be {said}", sentence.time)
    return msgspec.structs.replace(again[0], start=span.start, end=span.end) if again and again[0].since else span


def stamp(span: when.Span) -> str:
    since, until = span.since, span.until
    assert since is not None
    assert until is not None
    last = until.date() if until.time() != until.min.time() else (until - when.DAY).date()
    return f"{since:%Y-%m-%d}" if last <= since.date() else f"{since:%Y-%m-%d} to {last:%Y-%m-%d}"


def _planned(sentence: Sentence) -> Iterator[Extraction]:
    yield from _event(sentence, "planned", (_OWN, _MINE, _GOING, _WILL))


def _happened(sentence: Sentence) -> Iterator[Extraction]:
    if not any(pattern.search(sentence.text) for pattern in (_OWN, _MINE)):
        yield from _event(sentence, "happened", (_DID,))


RULES = (
    ExtractionRule("birthday", "my birthday is 8 May; I was born in 1990", _birthday),
    ExtractionRule("anniversary", "our anniversary is on 3 June", _anniversary),
    ExtractionRule("planned", "I have a flight on 8 May; I'm flying to Rome on Friday", _planned),
    ExtractionRule("happened", "I met Lena last Friday", _happened),
)
