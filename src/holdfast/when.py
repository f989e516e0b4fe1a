"""Time as people write it: stamps, expressions in running text, and events that time is told by.

``parse_moment`` reads one stamp ("1:56 pm on 8 May, 2023"), ``find`` the expressions in a text, resolved against a
moment that is passed in, and ``find_events`` phrases such as "before the trip" whose moment someone else must look up.
None of them ever raises because of a text, and all take time in proportion to its length. English, and ISO dates
anywhere. The rules, with ``now`` as the moment of speaking:

- An interval is half-open, [since, until), in UTC; None is an open end. Days begin at midnight in the zone of ``now``.
- Weeks begin on Monday, a weekend is Saturday and Sunday. Seasons are those of the north: summer is June to August.
- "last Friday" is the Friday before today, "next Friday" the first one after today, "this Friday" that of this week.
  "last week" and its like are whole calendar units; "the last week" and "the past 10 days" reach back from now.
- "last May" and "last summer" are the latest that are over. "in May", "on Friday", "in summer" are the most recent that
  have begun; "8 May" is the nearest to now. A word that looks ahead earlier in the same sentence ("will", "going to",
  "I have a", "booked", "due") makes them the first that are not over; so do "until" and "by".
- "two days ago" is that day, "two weeks ago" the seven days around that day, "two months ago" and "two years ago" that
  calendar month and year. A couple is 2 to 3, a few 2 to 5, several 3 to 8.
- "early", "mid" and "late" are the thirds of a unit; of a month the days 1-10, 11-20 and the rest.
- "since" and "from" begin with the unit, "after" begins when it is over; "before" ends when the unit begins, "until"
  and "by" when it is over; "between" and "from … to" reach from the first to the end of the second.

Deliberately absent: what cannot be resolved from ``now`` alone ("3 days later", "the next day", "recently"); ambiguous
numbers (03/04/2024); durations; and the wall clock.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple

import msgspec


class Span(msgspec.Struct, frozen=True):
    """A time expression: where it stands in the text, and the interval it means. None is an open end."""

    start: int
    end: int
    since: datetime | None
    until: datetime | None
    phrase: str
    kind: str


class Landmark(msgspec.Struct, frozen=True):
    """A phrase that tells time by an event: before, after, since, until or during, and the event's words."""

    start: int
    end: int
    relation: str
    phrase: str


class Pattern:
    """A regular expression that the first text compiles, so that importing many of them costs nothing."""

    __slots__ = ("_body", "_flags", "_made")

    def __init__(self, body: str, flags: int = 0) -> None:
        self._body, self._flags = body, flags
        self._made: re.Pattern[str] | None = None

    def _ready(self) -> re.Pattern[str]:
        if self._made is None:
            self._made = re.compile(self._body, self._flags)
        return self._made

    def match(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        return self._ready().match(text, start, end)

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        return self._ready().search(text, start, end)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._ready().finditer(text)

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self._ready().sub(by, text)


class _Period(NamedTuple):
    """Local, naive times; ``weak`` ones ("May", "2022") only count behind a word such as "in"."""

    since: datetime | None
    until: datetime | None
    kind: str
    weak: bool = False


class _Context(NamedTuple):
    now: datetime  # local and naive
    ahead: bool

    @property
    def today(self) -> datetime:
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)


DAY = timedelta(days=1)
_YEARS = range(1900, 2101)
_STAMP_CHARS = 80  # nobody writes a longer stamp

# Words

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
_VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 8)}
_HOLIDAYS = {
    "christmas eve": (12, 24, 1), "christmas day": (12, 25, 1), "christmas": (12, 24, 3), "halloween": (10, 31, 1),
    "new year's eve": (12, 31, 1), "new year's day": (1, 1, 1), "valentine's day": (2, 14, 1),
}  # fmt: skip
_DAY_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
_ZONES = {
    "z": 0, "utc": 0, "gmt": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    "cet": 1, "cest": 2,
}  # fmt: skip

# Pieces of patterns. Every repetition is bounded, so that no text can make matching slow.

_S = "[ \\t\\r\\n\u00a0\u202f]{1,4}"
_MONTH = rf"(?:(?:{'|'.join(_FULL_MONTHS)})\b|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_WEEKDAY = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|"
    r"sun(?:day)?)\b"
)
_SEASON = "(?:spring|summer|autumn|fall|winter)"
_WHICH = "(?:this past|this coming|last|past|previous|this|current|next|coming|upcoming)"
_COUNT = f"(?:[0-9]{{1,3}}|a{_S}(?:couple(?:{_S}of)?|few)|couple(?:{_S}of)?|few|several|{'|'.join(_COUNTS)})"
_UNIT = "(?P<unit>minute|hour|day|night|week|fortnight|month|year)s?"
_ORDINAL = "(?:st|nd|rd|th)?"
_TO = f"(?:(?:{_S})?[-\u2013](?:{_S})?|{_S}(?:to|and){_S})"
_D = "(?P<d>[0-9]{1,2})" + _ORDINAL + f"(?:{_TO}(?P<d2>[0-9]{{1,2}}){_ORDINAL})?"
_Y = f"(?:(?:,?{_S}|[-/])(?P<y>[0-9]{{4}})|,?{_S}(?:of{_S})?(?P<yw>last|this|next){_S}year)?"
_CLOCK = r"(?P<h>[0-9]{1,2})(?::(?P<mi>[0-9]{2})(?::(?P<sec>[0-9]{2})(?:[.,][0-9]{1,9})?)?)?"
_NOON = rf"(?:{_S})?(?P<ap>[ap]\.?m\b\.?)"


def _pattern(body: str, border: str = r"\w") -> Pattern:
    # ASCII inside, so that no letter of another script passes for one of ours; any script at the border.
    return Pattern(rf"(?ai:{body})(?:(?!{border})|(?=T[0-9]))")


# Calendar


def _plus_months(day: datetime, months: int) -> datetime:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    first = day.replace(year=year, month=month + 1, day=1)
    return first + DAY * (min(day.day, _length(first)) - 1)


def _length(first: datetime) -> int:
    return ((first + DAY * 31).replace(day=1) - first).days


def _months(year: int, month: int, kind: str, count: int = 1) -> _Period:
    first = datetime(year, month, 1)
    return _Period(first, _plus_months(first, count), kind)


def _days(day: datetime, count: int = 1, kind: str = "day") -> _Period:
    return _Period(day, day + DAY * count, kind)


def _unit(kind: str, moment: datetime, offset: int = 0) -> _Period:
    """The calendar unit that a moment is in, or one ``offset`` units later."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if kind in {"week", "weekend"}:
        monday = day - DAY * day.weekday() + 7 * DAY * offset
        return _days(monday, 7, kind) if kind == "week" else _days(monday + 5 * DAY, 2, kind)
    if kind == "month":
        first = _plus_months(day.replace(day=1), offset)
        return _months(first.year, first.month, kind)
    if kind == "quarter":
        first = _plus_months(day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), 3 * offset)
        return _months(first.year, first.month, kind, 3)
    if kind == "year":
        return _months(day.year + offset, 1, kind, 12)
    return _days(day + DAY * offset)


def _choose(make: Callable[[int], _Period], which: str, context: _Context, *, nearest: bool = False) -> _Period:
    """Of the yearly repetitions that ``make`` gives, the one that ``which`` and the rules at the top mean."""
    now, options = context.now, [make(context.now.year + step) for step in (-2, -1, 0, 1, 2)]
    begun = [option for option in options if option.since and option.since <= now]
    over = [option for option in options if option.until and option.until <= now]
    if which in {"last", "past", "previous", "this past"}:
        return over[-1]
    if which in {"next", "coming", "upcoming", "this coming"}:
        return options[len(begun)]
    if which in {"this", "current"}:
        return begun[-1] if len(begun) > len(over) else options[2]
    if context.ahead:
        return options[len(over)]
    if nearest:
        return min(options, key=lambda option: abs((option.since or now) - context.today))
    return begun[-1]


# Resolvers: from what a pattern found to a period, or None when it means nothing after all


def _year_of(found: re.Match[str], context: _Context) -> int | None:
    if found["y"]:
        return int(found["y"])
    return context.now.year + {"last": -1, "this": 0, "next": 1}[found["yw"].lower()] if found["yw"] else None


def _month_number(word: str) -> int:
    return _MONTHS.index(word[:3].lower()) + 1


def _iso(found: re.Match[str], context: _Context) -> _Period | None:
    return _days(datetime(int(found["y"]), int(found["m"]), int(found["d"])))


def _iso_month(found: re.Match[str], context: _Context) -> _Period | None:
    return _months(int(found["y"]), int(found["m"]), "month") if int(found["y"]) in _YEARS else None


def _numeric(found: re.Match[str], context: _Context) -> _Period | None:
    first, second, year = int(found["a"]), int(found["b"]), int(found["y"])
    if found["sep"] == "." or first > 12 or first == second:
        return _days(datetime(year, second, first))
    return _days(datetime(year, first, second)) if second > 12 else None


def _date(found: re.Match[str], context: _Context) -> _Period | None:
    month, day, last = _month_number(found["m"]), int(found["d"]), int(found["d2"] or found["d"])
    if last < day:
        return None
    kind, count = "day" if last == day else "range", last - day + 1

    def make(year: int) -> _Period:
        # 29 February of a year that has none is its 28th: only such a year's neighbour can be meant.
        return _days(
            datetime(year, month, day if (month, day) != (2, 29) else _length(datetime(year, 2, 1))), count, kind
        )

    year = _year_of(found, context)
    if year is not None:
        return _days(datetime(year, month, day), count, kind)
    return _choose(make, "", context, nearest=True)


def _month_alone(found: re.Match[str], context: _Context) -> _Period | None:
    month, year, which = _month_number(found["m"]), _year_of(found, context), (found["which"] or "").lower()
    if found["m"].rstrip(".").lower() not in _FULL_MONTHS and not found["m"][0].isupper():
        return None
    if year is not None:
        return _months(year, month, "month")
    chosen = _choose(lambda each: _months(each, month, "month"), which, context)
    return chosen._replace(weak=not which)


def _weekday(found: re.Match[str], context: _Context) -> _Period | None:
    word, which, week = found["w"], (found["which"] or "").lower(), (found["week"] or "").lower()
    wanted, today = _WEEKDAYS.index(word[:3].lower()), context.today
    if not which and not week and not word[0].isupper():
        return None
    back = (today.weekday() - wanted) % 7
    if week:
        return _days(today + DAY * (wanted - today.weekday() + 7 * {"last": -1, "this": 0, "next": 1}[week]))
    if which in {"last", "past", "previous", "this past"}:
        return _days(today - DAY * (back or 7))
    if which in {"next", "coming", "upcoming", "this coming"}:
        return _days(today + DAY * (7 - back))
    if which in {"this", "current"}:
        return _days(today + DAY * (wanted - today.weekday()))
    weak = word.lower() not in _FULL_WEEKDAYS
    return _days(today + DAY * (-back % 7 if context.ahead else -back))._replace(weak=weak)


def _named_day(found: re.Match[str], context: _Context) -> _Period | None:
    words = " ".join(found[0].lower().split())
    offset = {"yesterday": -1, "tomorrow": 1, "the day before yesterday": -2, "the day after tomorrow": 2}.get(words, 0)
    return _days(context.today + DAY * offset)


def _day_part(day: datetime, part: str) -> _Period:
    begin, end = _DAY_PARTS[part]
    return _Period(day + timedelta(hours=begin), day + timedelta(hours=end), "part")


def _named_part(found: re.Match[str], context: _Context) -> _Period | None:
    if found["part"] is None:
        return _day_part(context.today, "night")  # tonight
    back = found["which"].lower() == "last"
    return _day_part(context.today - DAY * back, found["part"].lower())


def _calendar(found: re.Match[str], context: _Context) -> _Period | None:
    which, kind = found["which"].lower(), found["kind"].lower()
    rolling = (found["the"] and which == "last") or which == "past"
    if rolling and kind in {"week", "month", "year", "quarter"}:
        return _window(-1, 3 if kind == "quarter" else 1, "month" if kind == "quarter" else kind, context)
    if which == "before last":
        return _unit(kind, context.now, -2)
    offset = -1 if which in {"last", "past", "previous"} else 1 if which in {"next", "coming", "upcoming"} else 0
    return _unit(kind, context.now, offset)


def _before_last(found: re.Match[str], context: _Context) -> _Period | None:
    return _unit(found["kind"].lower(), context.now, -2)


def _the_weekend(found: re.Match[str], context: _Context) -> _Period | None:
    this = _unit("weekend", context.now)
    chosen = this if context.ahead or (this.since and this.since <= context.now) else _unit("weekend", context.now, -1)
    return chosen._replace(weak=True)


def _season(found: re.Match[str], context: _Context) -> _Period | None:
    month, which, year = _SEASONS[found["s"].lower()], (found["which"] or "").lower(), _year_of(found, context)
    if year is not None:
        return _months(year, month, "season", 3)
    chosen = _choose(lambda each: _months(each, month, "season", 3), which, context)
    return chosen._replace(weak=not which)


def _quarter(found: re.Match[str], context: _Context) -> _Period | None:
    month, year = int(found["q"]) * 3 - 2, _year_of(found, context)
    if year is not None:
        return _months(year, month, "quarter", 3)
    return _choose(lambda each: _months(each, month, "quarter", 3), "", context)


def _year(found: re.Match[str], context: _Context) -> _Period | None:
    year = int(found["y"])
    return _months(year, 1, "year", 12)._replace(weak=not found["the"]) if year in _YEARS else None


def _decade(found: re.Match[str], context: _Context) -> _Period | None:
    year = int(found["y"])
    if year < 100:
        year += 2000 if year <= 20 else 1900
    return _months(year, 1, "decade", 120)._replace(weak=not found["the"]) if year in _YEARS else None


def _holiday(found: re.Match[str], context: _Context) -> _Period | None:
    name = " ".join(found["name"].lower().replace("\u2019", "'").split())
    month, day, count = _HOLIDAYS[name]
    return _choose(lambda year: _days(datetime(year, month, day), count), (found["which"] or "").lower(), context)


def _ordinal_day(found: re.Match[str], context: _Context) -> _Period | None:
    day, first = int(found["d"]), context.today.replace(day=1)
    for step in (0, 1, 2) if context.ahead else (0, -1, -2):
        month = _plus_months(first, step)
        if 1 <= day <= _length(month):
            chosen = month + DAY * (day - 1)
            if chosen >= context.today if context.ahead else chosen <= context.today:
                return _days(chosen)._replace(weak=True)
    return None


def _count(words: str) -> tuple[int, int]:
    """The least and the most that a number in words or digits can mean."""
    for name, bounds in _VAGUE.items():
        if name in words.lower():
            return bounds
    number = int(words) if words.isdigit() else _COUNTS[words.lower()]
    return number, number


def _shifted(unit: str, steps: int, context: _Context) -> _Period:
    """The unit that lies ``steps`` of its kind from now, as exact as people are when they count in it."""
    if unit in {"minute", "hour"}:
        length = timedelta(minutes=1) if unit == "minute" else timedelta(hours=1)
        middle = context.now + length * steps
        return _Period(middle - length / 2, middle + length / 2, "moment")
    if unit in {"week", "fortnight"}:
        day = context.today + DAY * (7 if unit == "week" else 14) * steps
        return _Period(day - 3 * DAY, day + 4 * DAY, "week")
    return _unit("day" if unit == "night" else unit, context.now, steps)


def _distance(found: re.Match[str], context: _Context) -> _Period | None:
    least, most = _count(found["n"])
    sign = -1 if found["dir"].lower() in {"ago", "back"} else 1
    near, far = (_shifted(found["unit"].lower(), sign * each, context) for each in (least, most))
    early, late = (far, near) if sign < 0 else (near, far)
    return _Period(early.since, late.until, near.kind if least == most else "range")


def _half(found: re.Match[str], context: _Context) -> _Period | None:
    return _shifted("month", -6 if found["dir"].lower() in {"ago", "back"} else 6, context)


def _window(sign: int, count: int, unit: str, context: _Context) -> _Period:
    if unit in {"minute", "hour"}:
        edge = context.now + sign * count * (timedelta(minutes=1) if unit == "minute" else timedelta(hours=1))
        return _Period(min(edge, context.now), max(edge, context.now), "range")
    if unit in {"month", "year"}:
        edge = _plus_months(context.today, sign * count * (12 if unit == "year" else 1))
    else:
        edge = context.today + sign * count * DAY * {"week": 7, "fortnight": 14}.get(unit, 1)
    if sign < 0:
        return _Period(edge, context.today + DAY, "range")
    return _Period(context.today, edge + DAY, "range")


def _rolling(found: re.Match[str], context: _Context) -> _Period | None:
    sign = -1 if found["dir"].lower() in {"last", "past", "previous"} else 1
    return _window(sign, _count(found["n"])[1], found["unit"].lower(), context)


_Resolver = Callable[[re.Match[str], _Context], _Period | None]
_ALL_MONTHS = (*_MONTHS, *_FULL_MONTHS, "sept")
_ALL_WEEKDAYS = (*_WEEKDAYS, *_FULL_WEEKDAYS, "tues", "thur", "thurs")
_WHICHES = ("last", "past", "previous", "this", "current", "next", "coming", "upcoming")
_NUMERALS = ("#", "couple", "few", "several", *_COUNTS)
_ON = rf"(?:{_WEEKDAY}\.?,?{_S})?"  # "Friday, 8 May"
_THE = f"(?P<the>the{_S})?"
_WHICH_S = f"(?:the{_S})?(?:(?P<which>{_WHICH}){_S})?"

_ISO = r"(?P<y>[0-9]{4})(?P<sep>[-/.])(?P<m>[0-9]{1,2})(?P=sep)(?P<d>[0-9]{1,2})(?![-/][0-9])"
_DMY = r"(?P<a>[0-9]{1,2})(?P<sep>[-/.])(?P<b>[0-9]{1,2})(?P=sep)(?P<y>[0-9]{4})(?![-/.][0-9])"
_OF = f"(?:{_S}of(?={_S}[0-9ltn]))?"
_KIND = "(?P<kind>weekend|week|month|quarter|year)"
_WEEK = f"(?:{_S}(?:of{_S})?(?P<week>last|this|next){_S}week)?"
_NEAR = f"today|yesterday|tomorrow|the{_S}day{_S}(?:before{_S}yesterday|after{_S}tomorrow)"
_NOT_A_YEAR = rf"(?![-/.:,%]?[0-9])(?!{_S}(?:{_UNIT}|people|users|words|steps|miles|dollars|euros|pounds)\b)"
_NAMES = (
    f"christmas(?:{_S}(?:eve|day))?|halloween|new{_S}year['\u2019]s{_S}(?:eve|day)|valentine['\u2019]s{_S}day"
)  # fmt: skip
_DIR = f"(?P<dir>ago|back|from{_S}now)"
_AROUND = "(?P<dir>last|past|previous|next|coming)"
_THE_WHICHES = ("the", *_WHICHES)

# Each line: the words it can begin with ("#" is a digit), the pattern, what it means.
_BASES: tuple[tuple[tuple[str, ...], str, _Resolver], ...] = (
    (("#", *_ALL_WEEKDAYS), _ON + _ISO, _iso),
    (("#",), "(?P<y>[0-9]{4})\u5e74(?P<m>[0-9]{1,2})\u6708(?P<d>[0-9]{1,2})\u65e5", _iso),
    (("#",), r"(?P<y>[0-9]{4})-(?P<m>[0-9]{2})(?!-)", _iso_month),
    (("#", *_ALL_WEEKDAYS), _ON + _DMY, _numeric),
    (("#", "the", *_ALL_WEEKDAYS), f"{_ON}(?:the{_S})?{_D}(?:{_S}|-)(?:of{_S})?(?P<m>{_MONTH}){_Y}", _date),
    ((*_ALL_WEEKDAYS, *_ALL_MONTHS), f"{_ON}(?P<m>{_MONTH})(?:{_S}|-)(?:the{_S})?{_D}(?!:[0-9]){_Y}", _date),
    ((*_THE_WHICHES, *_ALL_MONTHS), f"{_WHICH_S}(?P<m>{_MONTH}){_OF}{_Y}(?![-/ ]?[0-9])", _month_alone),
    ((*_THE_WHICHES, *_ALL_WEEKDAYS), f"{_WHICH_S}(?P<w>{_WEEKDAY}){_WEEK}", _weekday),
    (("today", "yesterday", "tomorrow", "the"), _NEAR, _named_day),
    (
        ("tonight", "this", "last"),
        f"tonight|(?P<which>this|last){_S}(?P<part>morning|afternoon|evening|night)",
        _named_part,
    ),
    (_THE_WHICHES, f"{_THE}(?P<which>{_WHICH}){_S}{_KIND}", _calendar),
    (("the",), f"the{_S}{_KIND}{_S}before{_S}last", _before_last),
    (("the", "weekend"), f"(?:the{_S})?weekend", _the_weekend),
    ((*_THE_WHICHES, *_SEASONS), f"{_WHICH_S}(?P<s>{_SEASON}){_OF}{_Y}", _season),
    (("q1", "q2", "q3", "q4"), f"Q(?P<q>[1-4]){_OF}{_Y}", _quarter),
    (("the", "#"), f"(?P<the>the{_S}year{_S})?(?P<y>[0-9]{{4}}){_NOT_A_YEAR}", _year),
    (("the", "#"), rf"{_THE}['\u2019]?(?P<y>(?:19|20)?[0-9]0)['\u2019]?s", _decade),
    ((*_THE_WHICHES, "christmas", "new", "halloween", "valentine"), f"{_WHICH_S}(?P<name>{_NAMES})", _holiday),
    (("the",), rf"the{_S}(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)(?!{_S}[a-z]|-)", _ordinal_day),
    (_NUMERALS, f"(?P<n>{_COUNT}){_S}{_UNIT}{_S}{_DIR}", _distance),
    (("half",), f"half{_S}a{_S}year{_S}{_DIR}", _half),
    (_THE_WHICHES, f"(?:the{_S})?{_AROUND}{_S}(?P<n>{_COUNT}){_S}{_UNIT}", _rolling),
)


@lru_cache(1)
def _table() -> dict[str, list[tuple[Pattern, _Resolver]]]:
    """The bases by the word they begin with; made for the first text, because making them takes long."""
    table: dict[str, list[tuple[Pattern, _Resolver]]] = {}
    for firsts, body, resolver in _BASES:
        # Dates in digits stand between the letters of scripts that put no spaces around them.
        pattern = _pattern(body, "[0-9A-Za-z_]") if resolver in (_iso, _numeric) else _pattern(body)
        for first in dict.fromkeys(firsts):
            table.setdefault(first, []).append((pattern, resolver))
    return table


# What may stand around a base: parts of a unit, a time of day, a relation, a second end

_PARTS = {
    "early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2, "earlier": -1, "later": -2
}  # fmt: skip
_PART = Pattern(
    rf"(?ai:(?:the{_S})?(?P<word>early|mid|late|earlier|later)(?:{_S}(?:in{_S})?|-)|"
    rf"(?:the{_S})?(?P<edge>start|beginning|middle|end){_S}of{_S})"
)
_WEEK_OF = Pattern(rf"(?ai:(?:the{_S})?week{_S}of{_S})")
_TIME_AFTER = _pattern(
    rf"(?:T|,?{_S}(?:(?:at|around|about|@){_S})?)(?:{_CLOCK}{_NOON}|(?P<h24>[0-9]{{1,2}}):(?P<m24>[0-9]{{2}})"
    rf"(?::(?P<s24>[0-9]{{2}})(?:[.,][0-9]{{1,9}})?)?(?:(?:{_S})?(?P<zone>Z|UTC|GMT|[+-][0-9]{{2}}:?[0-9]{{2}}))?|"
    rf"(?P<noon>noon|midnight))"
)
_PART_AFTER = _pattern(rf"{_S}(?:(?:in{_S}the|at){_S})?(?P<part>morning|afternoon|evening|night)")
_TIME_BEFORE = _pattern(rf"(?:at{_S})?(?:{_CLOCK}{_NOON}|(?P<h24>[0-9]{{1,2}}):(?P<m24>[0-9]{{2}}))(?=,?{_S})")
_THEN_DAY = Pattern(rf"(?ai:,?{_S}(?:on{_S})?)")
_RELATION = Pattern(
    rf"(?ai:(?P<word>ever{_S}since|since|until|till|up{_S}to|before|prior{_S}to|after|by|between|from|as{_S}of|"
    rf"starting(?:{_S}(?:in|on|from))?|back{_S}in|in|on|at|during|over|throughout|within|for|of){_S}"
    rf"(?:about{_S}|around{_S})?)"
)
_JOIN = Pattern(rf"(?ai:(?:{_S}(?:and|to|until|till|through)|(?:{_S})?[-\u2013](?:{_S})?)(?:{_S})?)")
_IN_COUNT = _pattern(
    f"in{_S}(?:about{_S}|around{_S})?(?P<n>{_COUNT}){_S}{_UNIT}(?P<dir>)(?!{_S}(?:a|or|time{_S}[a-z]))"
)
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
    period: _Period
    end: int


def _first(word: re.Match[str]) -> str:
    """How ``_BASES`` names a word that something begins with."""
    return "#" if word[0][0].isdigit() else word[0].lower().removesuffix("'s").removesuffix("\u2019s")


def _thirds(since: datetime, until: datetime, kind: str) -> tuple[datetime, datetime]:
    """Where the middle of a unit begins and ends."""
    months = {"year": 4, "season": 1, "quarter": 1, "decade": 40}.get(kind)
    if months:
        return _plus_months(since, months), _plus_months(since, 2 * months)
    days = {"month": 10, "week": 2}.get(kind)
    length = days * DAY if days else (until - since) // 3
    return since + length, since + 2 * length


class _Reader:
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
        """Whether "every" stands before: "every Monday" is no time but a habit."""
        return _EVERY.search(self.text, max(0, at - 12), at) is not None

    def _span(self, start: int, found: _Found) -> Span | None:
        period = found.period
        if period.since is not None and period.until is not None and period.since >= period.until:
            return None
        since, until = self._utc(period.since), self._utc(period.until)
        return Span(start, found.end, since, until, self.text[start : found.end], period.kind)

    def _utc(self, local: datetime | None) -> datetime | None:
        return None if local is None else local.replace(tzinfo=local.tzinfo or self._zone).astimezone(UTC)

    def _context(self, at: int) -> _Context:
        index = bisect_right(self._ahead, at)
        if not index:
            return _Context(self._now, False)
        # Forward when a forward word stands before this place with no end of sentence between.
        last = self._ahead[index - 1]
        return _Context(self._now, bisect_left(self._ends, last) == bisect_left(self._ends, at))

    def _expression(self, at: int) -> _Found | None:
        context = self._context(at)
        relation = _RELATION.match(self.text, at)
        if relation:
            found = self._related(at, relation, context)
            if found:
                return found
        found = self._timed(at, context)
        return found if found and not found.period.weak else None

    def _related(self, at: int, relation: re.Match[str], context: _Context) -> _Found | None:
        word = relation["word"].lower().split()[0]
        soon = _IN_COUNT.match(self.text, at) if word == "in" else None
        if soon:
            period = _distance(soon, context)
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

    def _both(self, first: _Found, context: _Context) -> _Found | None:
        joined = _JOIN.match(self.text, first.end)
        second = self._timed(joined.end(), context) if joined else None
        if second is None or first.period.since is None:
            return None
        since = first.period.since
        if second.period.until is not None and since >= second.period.until:
            # "between November and February" begins in the year before, "from Monday to Friday" in the week before.
            near = first.period.kind == "day" and since - second.period.until < 7 * DAY
            since = since - 7 * DAY if near else _plus_months(since, -12)
        return _Found(_Period(since, second.period.until, "range"), second.end)

    @staticmethod
    def _open(word: str, found: _Found) -> _Found:
        since, until, kind, _ = found.period
        if word in {"since", "ever", "from", "as", "starting"}:
            return _Found(_Period(since, None, "since"), found.end)
        if word == "after":
            return _Found(_Period(until, None, "after"), found.end)
        if word in {"before", "prior"}:
            return _Found(_Period(None, since, "before"), found.end)
        if word in {"until", "till", "by", "up"}:
            return _Found(_Period(None, until, "until"), found.end)
        return _Found(_Period(since, until, kind), found.end)

    def _timed(self, at: int, context: _Context) -> _Found | None:
        """A base with what belongs to it: a part of the unit before it, or a time of day on either side."""
        part = _PART.match(self.text, at)
        if part:
            return self._part(part, context)
        week = _WEEK_OF.match(self.text, at)
        if week:
            inner = self._base(week.end(), context)
            return _Found(_unit("week", inner.period.since), inner.end) if inner and inner.period.since else None
        before = _TIME_BEFORE.match(self.text, at)
        then = _THEN_DAY.match(self.text, before.end()) if before else None
        found = self._base(then.end() if then else at, context)
        if found is None or found.period.kind != "day" or found.period.since is None:
            return found if not then else None
        if before and then:
            return _Found(self._clock(before, found.period.since), found.end)
        return self._time_after(found, found.period.since)

    def _time_after(self, found: _Found, day: datetime) -> _Found:
        part = _PART_AFTER.match(self.text, found.end)
        if part:
            return _Found(_day_part(day, part["part"].lower()), part.end())
        after = _TIME_AFTER.match(self.text, found.end)
        if after:
            try:
                return _Found(self._clock(after, day), after.end())
            except ValueError:
                return found  # "on Friday 99:99" is still that Friday
        return found

    @staticmethod
    def _clock(found: re.Match[str], day: datetime) -> _Period:
        groups = found.groupdict()
        if groups.get("noon"):
            moment = day + timedelta(hours=12 if groups["noon"].lower() == "noon" else 24)
            return _Period(moment, moment + timedelta(hours=1), "moment")
        hour, minute = int(groups["h"] or groups["h24"]), groups["mi"] or groups["m24"]
        if groups["ap"]:
            if not 1 <= hour <= 12:
                raise ValueError(hour)
            hour = hour % 12 + (12 if groups["ap"][0] in "pP" else 0)
        second = int(groups.get("sec") or groups.get("s24") or 0)
        moment = day.replace(hour=hour, minute=int(minute or 0), second=second)
        zone = _zone(groups.get("zone") or "")
        moment = moment.replace(tzinfo=zone)
        return _Period(moment, moment + (timedelta(minutes=1) if minute else timedelta(hours=1)), "moment")

    def _part(self, part: re.Match[str], context: _Context) -> _Found | None:
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
        return _Found(_Period(since, until, "part" if kind == "day" else "range"), found.end)

    def _base(self, at: int, context: _Context) -> _Found | None:
        word = _WORD.match(self.text, at)
        best: _Found | None = None
        for pattern, resolver in _table().get(_first(word), ()) if word else ():
            found = pattern.match(self.text, at)
            if found and (best is None or found.end() > best.end):
                period = self._resolved(resolver, found, context)
                best = _Found(period, found.end()) if period else best
        return best

    @staticmethod
    def _resolved(resolver: _Resolver, found: re.Match[str], context: _Context) -> _Period | None:
        try:
            return resolver(found, context)
        except (ValueError, OverflowError, IndexError):
            return None  # 31 June, or a year that no calendar holds: another reading may still fit


def _zone(text: str) -> tzinfo | None:
    if not text:
        return None
    if text[0] in "+-":
        digits = text[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
        return timezone(-offset if text[0] == "-" else offset)
    return timezone(timedelta(hours=_ZONES[text.lower()]))


def find(text: str, now: datetime) -> list[Span]:
    """The time expressions of a text in the order they stand, without overlaps, resolved against ``now``.

    ``now`` is the time of the entry when its text is read, and the time of asking for a query; UTC if it has no zone.
    """
    return list(_Reader(text, now).spans())


# Stamps

_STAMP_ZONE = Pattern(r"(?ai:[ \u00a0\u202f]?\(?([a-z]{1,4}|[+-][0-9]{2}:?[0-9]{2})\)?)$")
_STAMP_TIME = Pattern(
    rf"(?ai:(?:^|(?<=[\s,T]))(?:{_CLOCK}{_NOON}|(?P<h24>[0-9]{{1,2}}):(?P<m24>[0-9]{{2}})"
    rf"(?::(?P<s24>[0-9]{{2}})(?:[.,](?P<f>[0-9]{{1,9}}))?)?)(?!\w))"
)
_STAMP_FILLER = Pattern(rf"(?ai:[\s,.T]|\bon\b|\bat\b|\bthe\b|\bof\b|{_WEEKDAY})+")


def parse_moment(text: str, *, today: datetime | None = None) -> datetime | None:
    """The moment that a stamp names, in UTC, or None when it names none. A day alone is its beginning.

    A stamp without a zone is taken as UTC. One without a year, or a word such as "yesterday", needs ``today``.
    """
    stamp = text.strip() if len(text) <= 4 * _STAMP_CHARS else ""
    if not stamp or len(stamp) > _STAMP_CHARS or (stamp.isdigit() and len(stamp) != 8):
        return None
    try:
        return _iso_stamp(stamp) or _written_stamp(stamp) or (_spoken_stamp(stamp, today) if today else None)
    except (ValueError, OverflowError, IndexError):
        return None


def _iso_stamp(stamp: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)


def _written_stamp(stamp: str) -> datetime | None:
    """A date with a year, perhaps a time of day and a zone, in any order, and nothing else but filler."""
    zone: tzinfo | None = None
    named = _STAMP_ZONE.search(stamp)
    if named and (named[1][0] in "+-" or named[1].lower() in _ZONES) and ":" in stamp:
        zone, stamp = _zone(named[1]), stamp[: named.start()]
    clock = _STAMP_TIME.search(stamp)
    rest = f"{stamp[: clock.start()]} {stamp[clock.end() :]}" if clock else stamp
    day = _stamp_day(rest)
    if day is None:
        return None
    if clock:
        moment = _Reader._clock(clock, day).since or day
        day = moment.replace(microsecond=int((clock["f"] or "0").ljust(6, "0")[:6]))
    return day.replace(tzinfo=zone or UTC).astimezone(UTC)


def _stamp_day(text: str) -> datetime | None:
    # A date that names its year is the same whenever it is read: two readings years apart agree.
    readings = set()
    for year in (1980, 2013):
        dates = _Reader(text, datetime(year, 7, 2, tzinfo=UTC))
        found = next(iter(dates.spans()), None)
        if found is None or found.kind not in {"day", "month"} or found.since is None:
            return None
        if _STAMP_FILLER.sub("", text[: found.start] + " " + text[found.end :]):
            return None
        readings.add(found.since)
    return readings.pop().replace(tzinfo=None) if len(readings) == 1 else None


def _spoken_stamp(stamp: str, today: datetime) -> datetime | None:
    spans = find(stamp, today)
    if len(spans) != 1 or _STAMP_FILLER.sub("", stamp[: spans[0].start] + " " + stamp[spans[0].end :]):
        return None
    return spans[0].since


# Events

_EVENT = Pattern(
    rf"(?ai:(?<![a-z])(?P<relation>before|prior{_S}to|after|following|ever{_S}since|since|until|till|during){_S})"
)
_EVENT_WORD = Pattern("(?:[ \\t\u00a0]{1,3})?([^\\W_]+(?:['\u2019-][^\\W_]+){0,3})")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DETERMINERS = _words("the my our his her their your its this that these those")
_PRONOUNS = _words("i we he she they you it")
_STOPS = _words(
    "i we he she they you it did do does was were is are am be been has have had will would can could should shall "
    "may might must what when where who why how which and or but because so then than if that as"
)
_DANGLING = _words("the my our his her their your a an to of in at with for on from by")
_NOT_EVENTS = _words("fact same way moment time end day week month year other first last next")
_NOT_GERUNDS = _words("during evening morning nothing something anything everything")
_PHRASE_WORDS = 6
_CLAUSE_WORDS = 8


def find_events(text: str) -> list[Landmark]:
    """Phrases that tell time by an event: "before the trip", "after my surgery", "since we met"."""
    # Any moment will do: what matters is only which places are dates already.
    dates = [(span.start, span.end) for span in find(text, datetime(2020, 6, 15, tzinfo=UTC))]
    starts, marks, reached = [start for start, _ in dates], [], 0
    for found in _EVENT.finditer(text):
        if found.start() < reached:
            continue
        index = bisect_right(starts, found.start()) - 1
        if index >= 0 and dates[index][1] > found.start():
            continue
        phrase_end = _event_end(text, found.end())
        if phrase_end:
            relation = _RELATIONS.get(found["relation"].split()[0].lower(), "after")
            marks.append(Landmark(found.start(), phrase_end, relation, text[found.end() : phrase_end]))
            reached = phrase_end
    return marks


_RELATIONS = {
    "before": "before", "prior": "before", "after": "after", "following": "after", "ever": "since", "since": "since",
    "until": "until", "till": "until", "during": "during",
}  # fmt: skip


def _event_end(text: str, at: int) -> int | None:
    """Where the words of an event end that begin at ``at``, or None when they name no event."""
    first = _EVENT_WORD.match(text, at)
    if first is None:
        return None
    word = first[1].lower()
    if word in _PRONOUNS:
        return _phrase_end(text, at, _CLAUSE_WORDS, clause=True, least=2)
    if word in _DETERMINERS:
        second = _EVENT_WORD.match(text, first.end())
        if second is None or second[1].lower() in _NOT_EVENTS:
            return None
        return _phrase_end(text, at, _PHRASE_WORDS, clause=False, least=2)
    gerund = len(word) > 4 and word.endswith("ing") and word not in _NOT_GERUNDS
    named = first[1][0].isupper() and word.rstrip(".") not in _STOPS
    return _phrase_end(text, at, _PHRASE_WORDS, clause=False, least=1) if gerund or named else None


def _phrase_end(text: str, at: int, most: int, *, clause: bool, least: int) -> int | None:
    ends: list[tuple[str, int]] = []
    for index in range(most):
        word = _EVENT_WORD.match(text, at)
        if word is None:
            break
        lower = word[1].lower()
        if index and lower in _STOPS and not (clause and index == 1):
            break
        ends.append((lower, word.end()))
        at = word.end()
    while ends and ends[-1][0] in _DANGLING:
        ends.pop()
    return ends[-1][1] if len(ends) >= least else None
