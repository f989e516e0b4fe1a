"""Time expressions in running text: found, put together with clock times and words such as "before", and resolved.

Deliberately absent: stamps that stand alone (``stamps``), and events (``events``).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple

import msgspec

from holdfast.when.periods import (
    Period,
    TimeContext,
    before_last,
    calendar,
    date,
    day_part,
    decade,
    distance,
    half,
    holiday,
    iso,
    iso_month,
    month_alone,
    named_day,
    named_part,
    numeric,
    ordinal_day,
    plus_months,
    quarter,
    rolling_window,
    season,
    the_weekend,
    unit_at,
    weekday_at,
    year_alone,
)
from holdfast.when.words import (
    CLOCK,
    COUNT,
    COUNTS,
    DAY,
    FULL_MONTHS,
    FULL_WEEKDAYS,
    MONTH,
    MONTHS,
    NOON,
    SEASON,
    SEASONS,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    WHICH,
    ZONES,
    D,
    Pattern,
    S,
    Y,
    bordered,
)


class Span(msgspec.Struct, frozen=True):
    """A time expression: where it stands in the text, and the interval it means. None is an open end."""

    start: int
    end: int
    since: datetime | None
    until: datetime | None
    phrase: str
    kind: str


_Resolver = Callable[[re.Match[str], TimeContext], Period | None]
_ALL_MONTHS = (*MONTHS, *FULL_MONTHS, "sept")
_ALL_WEEKDAYS = (*WEEKDAYS, *FULL_WEEKDAYS, "tues", "thur", "thurs")
_WHICHES = ("last", "past", "previous", "this", "current", "next", "coming", "upcoming")
_NUMERALS = ("#", "couple", "few", "several", *COUNTS)
_ON = rf"(?:{WEEKDAY}\.?,?{S})?"  # "Friday, 8 May"
_THE = f"(?P<the>the{S})?"
_WHICH_S = f"(?:the{S})?(?:(?P<which>{WHICH}){S})?"

_ISO = r"(?P<y>[0-9]{4})(?P<sep>[-/.])(?P<m>[0-9]{1,2})(?P=sep)(?P<d>[0-9]{1,2})(?![-/][0-9])"
_DMY = r"(?P<a>[0-9]{1,2})(?P<sep>[-/.])(?P<b>[0-9]{1,2})(?P=sep)(?P<y>[0-9]{4})(?![-/.][0-9])"
_OF = f"(?:{S}of(?={S}[0-9ltn]))?"
_KIND = "(?P<kind>weekend|week|month|quarter|year)"
_WEEK = f"(?:{S}(?:of{S})?(?P<week>last|this|next){S}week)?"
_NEAR = f"today|yesterday|tomorrow|the{S}day{S}(?:before{S}yesterday|after{S}tomorrow)"
_NOT_A_YEAR = rf"(?![-/.:,%]?[0-9])(?!{S}(?:{UNIT}|people|users|words|steps|miles|dollars|euros|pounds)\b)"
_NAMES = (
    f"christmas(?:{S}(?:eve|day))?|halloween|new{S}year['\u2019]s{S}(?:eve|day)|valentine['\u2019]s{S}day"
)  # fmt: skip
_DIR = f"(?P<dir>ago|back|from{S}now)"
_AROUND = "(?P<dir>last|past|previous|next|coming)"
_THE_WHICHES = ("the", *_WHICHES)

# Each line: the words it can begin with ("#" is a digit), the pattern, what it means.
_BASES: tuple[tuple[tuple[str, ...], str, _Resolver], ...] = (
    (("#", *_ALL_WEEKDAYS), _ON + _ISO, iso),
    (("#",), "(?P<y>[0-9]{4})\u5e74(?P<m>[0-9]{1,2})\u6708(?P<d>[0-9]{1,2})\u65e5", iso),
    (("#",), r"(?P<y>[0-9]{4})-(?P<m>[0-9]{2})(?!-)", iso_month),
    (("#", *_ALL_WEEKDAYS), _ON + _DMY, numeric),
    (("#", "the", *_ALL_WEEKDAYS), f"{_ON}(?:the{S})?{D}(?:{S}|-)(?:of{S})?(?P<m>{MONTH}){Y}", date),
    ((*_ALL_WEEKDAYS, *_ALL_MONTHS), f"{_ON}(?P<m>{MONTH})(?:{S}|-)(?:the{S})?{D}(?!:[0-9]){Y}", date),
    ((*_THE_WHICHES, *_ALL_MONTHS), f"{_WHICH_S}(?P<m>{MONTH}){_OF}{Y}(?![-/ ]?[0-9])", month_alone),
    ((*_THE_WHICHES, *_ALL_WEEKDAYS), f"{_WHICH_S}(?P<w>{WEEKDAY}){_WEEK}", weekday_at),
    (("today", "yesterday", "tomorrow", "the"), _NEAR, named_day),
    (
        ("tonight", "this", "last"),
        f"tonight|(?P<which>this|last){S}(?P<part>morning|afternoon|evening|night)",
        named_part,
    ),
    (_THE_WHICHES, f"{_THE}(?P<which>{WHICH}){S}{_KIND}", calendar),
    (("the",), f"the{S}{_KIND}{S}before{S}last", before_last),
    (("the", "weekend"), f"(?:the{S})?weekend", the_weekend),
    ((*_THE_WHICHES, *SEASONS), f"{_WHICH_S}(?P<s>{SEASON}){_OF}{Y}", season),
    (("q1", "q2", "q3", "q4"), f"Q(?P<q>[1-4]){_OF}{Y}", quarter),
    (("the", "#"), f"(?P<the>the{S}year{S})?(?P<y>[0-9]{{4}}){_NOT_A_YEAR}", year_alone),
    (("the", "#"), rf"{_THE}['\u2019]?(?P<y>(?:19|20)?[0-9]0)['\u2019]?s", decade),
    ((*_THE_WHICHES, "christmas", "new", "halloween", "valentine"), f"{_WHICH_S}(?P<name>{_NAMES})", holiday),
    (("the",), rf"the{S}(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)(?!{S}[a-z]|-)", ordinal_day),
    (_NUMERALS, f"(?P<n>{COUNT}){S}{UNIT}{S}{_DIR}", distance),
    (("half",), f"half{S}a{S}year{S}{_DIR}", half),
    (_THE_WHICHES, f"(?:the{S})?{_AROUND}{S}(?P<n>{COUNT}){S}{UNIT}", rolling_window),
)


@lru_cache(1)
def _table() -> dict[str, list[tuple[Pattern, _Resolver]]]:
    """The bases by the word they begin with; made for the first text, because making them takes long."""
    table: dict[str, list[tuple[Pattern, _Resolver]]] = {}
    for firsts, body, resolver in _BASES:
        # Dates in digits stand between the letters of scripts that put no spaces around them.
        pattern = bordered(body, "[0-9A-Za-z_]") if resolver in (iso, numeric) else bordered(body)
        for first in dict.fromkeys(firsts):
            table.setdefault(first, []).append((pattern, resolver))
    return table


# What may stand around a base: parts of a unit, a time of day, a relation, a second end

_PARTS = {
    "early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2, "earlier": -1, "later": -2
}  # fmt: skip
_PART = Pattern(
    rf"(?ai:(?:the{S})?(?P<word>early|mid|late|earlier|later)(?:{S}(?:in{S})?|-)|"
    rf"(?:the{S})?(?P<edge>start|beginning|middle|end){S}of{S})"
)
_WEEK_OF = Pattern(rf"(?ai:(?:the{S})?week{S}of{S})")
_TIME_AFTER = bordered(
    rf"(?:T|,?{S}(?:(?:at|around|about|@){S})?)(?:{CLOCK}{NOON}|(?P<h24>[0-9]{{1,2}}):(?P<m24>[0-9]{{2}})"
    rf"(?::(?P<s24>[0-9]{{2}})(?:[.,][0-9]{{1,9}})?)?(?:(?:{S})?(?P<zone>Z|UTC|GMT|[+-][0-9]{{2}}:?[0-9]{{2}}))?|"
    rf"(?P<noon>noon|midnight))"
)
_PART_AFTER = bordered(rf"{S}(?:(?:in{S}the|at){S})?(?P<part>morning|afternoon|evening|night)")
_TIME_BEFORE = bordered(rf"(?:at{S})?(?:{CLOCK}{NOON}|(?P<h24>[0-9]{{1,2}}):(?P<m24>[0-9]{{2}}))(?=,?{S})")
_THEN_DAY = Pattern(rf"(?ai:,?{S}(?:on{S})?)")
_RELATION = Pattern(
    rf"(?ai:(?P<word>ever{S}since|since|until|till|up{S}to|before|prior{S}to|after|by|between|from|as{S}of|"
    rf"starting(?:{S}(?:in|on|from))?|back{S}in|in|on|at|during|over|throughout|within|for|of){S}"
    rf"(?:about{S}|around{S})?)"
)
_JOIN = Pattern(rf"(?ai:(?:{S}(?:and|to|until|till|through)|(?:{S})?[-\u2013](?:{S})?)(?:{S})?)")
_IN_COUNT = bordered(f"in{S}(?:about{S}|around{S})?(?P<n>{COUNT}){S}{UNIT}(?P<dir>)(?!{S}(?:a|or|time{S}[a-z]))")
_RELATION_WORDS = (
    "ever", "since", "until", "till", "up", "before", "prior", "after", "by", "between", "from", "as", "starting",
    "back", "in", "on", "at", "during", "over", "throughout", "within", "for", "of",
)  # fmt: skip
_TRIGGERS = frozenset(
    (*(first for firsts, _, _ in _BASES for first in firsts), *_RELATION_WORDS, *_PARTS, "week", "about")
)

_WORD = Pattern(r"[0-9A-Za-z]+(?:['\u2019]s)?")
_NOT_A_NUMBER = frozenset("./-:,$\u00a3\u20ac#")
_AHEAD = Pattern(
    r"(?i:\b(?:will|shall|gonna|going to|plan|plans|planning|planned|scheduled|booked|due|deadline|upcoming|"
    r"appointment|(?:i|we)\s{1,3}have\s{1,3}(?:a|an|my|our|to)|(?:i|we)['\u2019]ve\s{1,3}got|"
    r"remind|looking forward|(?:i|we)(?:['\u2019][mr]e?|\s{1,3}am|\s{1,3}are)\s{1,3}(?:flying|travell?ing|"
    r"visiting|leaving|"
    r"moving|starting|meeting|seeing|hosting|attending|getting|presenting|graduating|driving|having))\b|"
    r"['\u2019]ll\b)"
)
_EVERY = Pattern(r"(?i:\b(?:every|each|most))\s{1,3}(?i:(?:other|single)\s{1,3})?\Z")
_SENTENCE_END = Pattern(r"[.!?\n](?=\s|$)|[;\u3002\uff01\uff1f]")


class _Found(NamedTuple):
    period: Period
    end: int


def _first(word: re.Match[str]) -> str:
    """How ``_BASES`` names a word that something begins with."""
    return "#" if word[0][0].isdigit() else word[0].lower().removesuffix("'s").removesuffix("\u2019s")


def _thirds(since: datetime, until: datetime, kind: str) -> tuple[datetime, datetime]:
    """Where the middle of a unit begins and ends."""
    months = {"year": 4, "season": 1, "quarter": 1, "decade": 40}.get(kind)
    if months:
        return plus_months(since, months), plus_months(since, 2 * months)
    days = {"month": 10, "week": 2}.get(kind)
    length = days * DAY if days else (until - since) // 3
    return since + length, since + 2 * length


class Reader:
    """Reads expressions at places of one text. Local times inside, UTC when a span is made."""

    def __init__(self, text: str, now: datetime) -> None:
        zone = now.tzinfo or UTC
        self.text, self._zone, self._now = text, zone, now.replace(tzinfo=None)
        self._ahead = [found.start() for found in _AHEAD.finditer(text)]
        self._ends = [found.start() for found in _SENTENCE_END.finditer(text)] if self._ahead else []

    def spans(self) -> Iterator[Span]:
        reached = 0
        for word in _WORD.finditer(self.text):
            if word.start() < reached or not self._begins(word):
                continue
            try:
                found = None if self._repeated(word.start()) else self._expression(word.start())
                span = self._span(word.start(), found) if found else None
            except (ValueError, OverflowError, IndexError):
                continue  # a date that does not exist, or one outside of what a calendar can hold
            if span:
                reached = span.end
                yield span

    def _begins(self, word: re.Match[str]) -> bool:
        """Whether an expression can begin with this word: not inside of a longer number, or of a word."""
        start = word.start()
        before, earlier = self.text[start - 1 : start], self.text[start - 2 : start - 1]
        if word[0][0].isdigit():
            return before not in _NOT_A_NUMBER or not earlier or earlier.isspace()
        return not before.isalpha() and _first(word) in _TRIGGERS

    def _repeated(self, at: int) -> bool:
        """Whether "every" stands before: "every Monday" is not time but a habit."""
        return _EVERY.search(self.text, max(0, at - 12), at) is not None

    def _span(self, start: int, found: _Found) -> Span | None:
        period = found.period
        if period.since is not None and period.until is not None and period.since >= period.until:
            return None
        since, until = self._utc(period.since), self._utc(period.until)
        return Span(start, found.end, since, until, self.text[start : found.end], period.kind)

    def _utc(self, local: datetime | None) -> datetime | None:
        return None if local is None else local.replace(tzinfo=local.tzinfo or self._zone).astimezone(UTC)

    def _context(self, at: int) -> TimeContext:
        index = bisect_right(self._ahead, at)
        if not index:
            return TimeContext(self._now, False)
        # Forward when a forward word stands before this place with no end of sentence between.
        last = self._ahead[index - 1]
        return TimeContext(self._now, bisect_left(self._ends, last) == bisect_left(self._ends, at))

    def _expression(self, at: int) -> _Found | None:
        context = self._context(at)
        relation = _RELATION.match(self.text, at)
        if relation:
            found = self._related(at, relation, context)
            if found:
                return found
        found = self._timed(at, context)
        return found if found and not found.period.weak else None

    def _related(self, at: int, relation: re.Match[str], context: TimeContext) -> _Found | None:
        word = relation["word"].lower().split()[0]
        soon = _IN_COUNT.match(self.text, at) if word == "in" else None
        if soon:
            period = distance(soon, context)
            return _Found(period, soon.end()) if period else None
        if word in {"until", "till", "by", "up"}:
            context = context._replace(ahead=True)
        first = self._timed(relation.end(), context)
        if first is None:
            return None
        if word in {"between", "from"}:
            both = self._both(first, context)
            if both or first.period.kind == "range":
                return both or first
            if word == "between":
                return None
        if word in {"of", "for"} and first.period.weak:
            return None
        return self._open(word, first)

    def _both(self, first: _Found, context: TimeContext) -> _Found | None:
        joined = _JOIN.match(self.text, first.end)
        second = self._timed(joined.end(), context) if joined else None
        if second is None or first.period.since is None:
            return None
        since = first.period.since
        if second.period.until is not None and since >= second.period.until:
            # "between November and February" begins in the year before, "from Monday to Friday" in the week before.
            near = first.period.kind == "day" and since - second.period.until < 7 * DAY
            since = since - 7 * DAY if near else plus_months(since, -12)
        return _Found(Period(since, second.period.until, "range"), second.end)

    @staticmethod
    def _open(word: str, found: _Found) -> _Found:
        since, until, kind, _ = found.period
        if word in {"since", "ever", "from", "as", "starting"}:
            return _Found(Period(since, None, "since"), found.end)
        if word == "after":
            return _Found(Period(until, None, "after"), found.end)
        if word in {"before", "prior"}:
            return _Found(Period(None, since, "before"), found.end)
        if word in {"until", "till", "by", "up"}:
            return _Found(Period(None, until, "until"), found.end)
        return _Found(Period(since, until, kind), found.end)

    def _timed(self, at: int, context: TimeContext) -> _Found | None:
        """A base with what belongs to it: a part of the unit before it, or a time of day on either side."""
        part = _PART.match(self.text, at)
        if part:
            return self._part(part, context)
        week = _WEEK_OF.match(self.text, at)
        if week:
            inner = self._base(week.end(), context)
            return _Found(unit_at("week", inner.period.since), inner.end) if inner and inner.period.since else None
        before = _TIME_BEFORE.match(self.text, at)
        then = _THEN_DAY.match(self.text, before.end()) if before else None
        found = self._base(then.end() if then else at, context)
        if found is None or found.period.kind != "day" or found.period.since is None:
            return found if not then else None
        if before and then:
            return _Found(self.clock_time(before, found.period.since), found.end)
        return self._time_after(found, found.period.since)

    def _time_after(self, found: _Found, day: datetime) -> _Found:
        part = _PART_AFTER.match(self.text, found.end)
        if part:
            return _Found(day_part(day, part["part"].lower()), part.end())
        after = _TIME_AFTER.match(self.text, found.end)
        if after:
            try:
                return _Found(self.clock_time(after, day), after.end())
            except ValueError:
                return found  # "on Friday 99:99" is still that Friday
        return found

    @staticmethod
    def clock_time(found: re.Match[str], day: datetime) -> Period:
        groups = found.groupdict()
        if groups.get("noon"):
            moment = day + timedelta(hours=12 if groups["noon"].lower() == "noon" else 24)
            return Period(moment, moment + timedelta(hours=1), "moment")
        hour, minute = int(groups["h"] or groups["h24"]), groups["mi"] or groups["m24"]
        if groups["ap"]:
            if not 1 <= hour <= 12:
                raise ValueError(hour)
            hour = hour % 12 + (12 if groups["ap"][0] in "pP" else 0)
        second = int(groups.get("sec") or groups.get("s24") or 0)
        moment = day.replace(hour=hour, minute=int(minute or 0), second=second)
        zone = zone_of(groups.get("zone") or "")
        moment = moment.replace(tzinfo=zone)
        return Period(moment, moment + (timedelta(minutes=1) if minute else timedelta(hours=1)), "moment")

    def _part(self, part: re.Match[str], context: TimeContext) -> _Found | None:
        which = _PARTS[(part["word"] or part["edge"]).lower()]
        found = self._base(part.end(), context)
        if found is None or found.period.since is None or found.period.until is None:
            return None
        since, until, kind = found.period.since, found.period.until, found.period.kind
        if which < 0:
            since, until = (since, context.now) if which == -1 else (context.now, until)
        else:
            marks = (since, *_thirds(since, until, kind), until)
            since, until = marks[which], marks[which + 1]
        return _Found(Period(since, until, "part" if kind == "day" else "range"), found.end)

    def _base(self, at: int, context: TimeContext) -> _Found | None:
        word = _WORD.match(self.text, at)
        best: _Found | None = None
        for pattern, resolver in _table().get(_first(word), ()) if word else ():
            found = pattern.match(self.text, at)
            if found and (best is None or found.end() > best.end):
                period = self._resolved(resolver, found, context)
                best = _Found(period, found.end()) if period else best
        return best

    @staticmethod
    def _resolved(resolver: _Resolver, found: re.Match[str], context: TimeContext) -> Period | None:
        try:
            return resolver(found, context)
        except (ValueError, OverflowError, IndexError):
            return None  # 31 June, or a year that no calendar holds: another reading may still fit


def zone_of(text: str) -> tzinfo | None:
    if not text:
        return None
    if text[0] in "+-":
        digits = text[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
        return timezone(-offset if text[0] == "-" else offset)
    return timezone(timedelta(hours=ZONES[text.lower()]))


def find(text: str, now: datetime) -> list[Span]:
    """The time expressions of a text in the order they stand, without overlaps, resolved against ``now``.

    ``now`` is the time of the entry when its text is read, and the time of asking for a query; UTC if it has no zone.
    """
    return list(Reader(text, now).spans())
