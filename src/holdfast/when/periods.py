"""What each time expression means, counted from a moment: a period of local time, a function for each way to say it.

Deliberately absent: where in a text it stands (``spans``), and zones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.when.words import (
    COUNTS,
    DAY,
    DAY_PARTS,
    FULL_MONTHS,
    FULL_WEEKDAYS,
    HOLIDAYS,
    MONTHS,
    SEASONS,
    VAGUE,
    WEEKDAYS,
    YEARS,
)


class Period(NamedTuple):
    """Local, naive times; ``weak`` ones ("May", "2022") only count behind a word such as "in"."""

    since: datetime | None
    until: datetime | None
    kind: str
    weak: bool = False


class TimeContext(NamedTuple):
    now: datetime  # local and naive
    ahead: bool

    @property
    def today(self) -> datetime:
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)


# Calendar


def plus_months(day: datetime, months: int) -> datetime:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    first = day.replace(year=year, month=month + 1, day=1)
    return first + DAY * (min(day.day, _length(first)) - 1)


def _length(first: datetime) -> int:
    return ((first + DAY * 31).replace(day=1) - first).days


def _months(year: int, month: int, kind: str, count: int = 1) -> Period:
    first = datetime(year, month, 1)
    return Period(first, plus_months(first, count), kind)


def _days(day: datetime, count: int = 1, kind: str = "day") -> Period:
    return Period(day, day + DAY * count, kind)


def unit_at(kind: str, moment: datetime, offset: int = 0) -> Period:
    """The calendar unit that a moment is in, or one ``offset`` units later."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if kind in {"week", "weekend"}:
        monday = day - DAY * day.weekday() + 7 * DAY * offset
        return _days(monday, 7, kind) if kind == "week" else _days(monday + 5 * DAY, 2, kind)
    if kind == "month":
        first = plus_months(day.replace(day=1), offset)
        return _months(first.year, first.month, kind)
    if kind == "quarter":
        first = plus_months(day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), 3 * offset)
        return _months(first.year, first.month, kind, 3)
    if kind == "year":
        return _months(day.year + offset, 1, kind, 12)
    return _days(day + DAY * offset)


def _choose(make: Callable[[int], Period], which: str, context: TimeContext, *, nearest: bool = False) -> Period:
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


def _year_of(found: re.Match[str], context: TimeContext) -> int | None:
    if found["y"]:
        return int(found["y"])
    return context.now.year + {"last": -1, "this": 0, "next": 1}[found["yw"].lower()] if found["yw"] else None


def _month_number(word: str) -> int:
    return MONTHS.index(word[:3].lower()) + 1


def iso(found: re.Match[str], context: TimeContext) -> Period | None:
    return _days(datetime(int(found["y"]), int(found["m"]), int(found["d"])))


def iso_month(found: re.Match[str], context: TimeContext) -> Period | None:
    return _months(int(found["y"]), int(found["m"]), "month") if int(found["y"]) in YEARS else None


def numeric(found: re.Match[str], context: TimeContext) -> Period | None:
    first, second, year = int(found["a"]), int(found["b"]), int(found["y"])
    if found["sep"] == "." or first > 12 or first == second:
        return _days(datetime(year, second, first))
    return _days(datetime(year, first, second)) if second > 12 else None


def date(found: re.Match[str], context: TimeContext) -> Period | None:
    month, day, last = _month_number(found["m"]), int(found["d"]), int(found["d2"] or found["d"])
    if last < day:
        return None
    kind, count = "day" if last == day else "range", last - day + 1

    def make(year: int) -> Period:
        # 29 February of a year that has none is its 28th: only such a year's neighbour can be meant.
        return _days(
            datetime(year, month, day if (month, day) != (2, 29) else _length(datetime(year, 2, 1))), count, kind
        )

    year = _year_of(found, context)
    if year is not None:
        return _days(datetime(year, month, day), count, kind)
    return _choose(make, "", context, nearest=True)


def month_alone(found: re.Match[str], context: TimeContext) -> Period | None:
    month, year, which = _month_number(found["m"]), _year_of(found, context), (found["which"] or "").lower()
    if found["m"].rstrip(".").lower() not in FULL_MONTHS and not found["m"][0].isupper():
        return None
    if year is not None:
        return _months(year, month, "month")
    chosen = _choose(lambda each: _months(each, month, "month"), which, context)
    return chosen._replace(weak=not which)


def weekday_at(found: re.Match[str], context: TimeContext) -> Period | None:
    word, which, week = found["w"], (found["which"] or "").lower(), (found["week"] or "").lower()
    wanted, today = WEEKDAYS.index(word[:3].lower()), context.today
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
    weak = word.lower() not in FULL_WEEKDAYS
    return _days(today + DAY * (-back % 7 if context.ahead else -back))._replace(weak=weak)


def named_day(found: re.Match[str], context: TimeContext) -> Period | None:
    words = " ".join(found[0].lower().split())
    offset = {"yesterday": -1, "tomorrow": 1, "the day before yesterday": -2, "the day after tomorrow": 2}.get(words, 0)
    return _days(context.today + DAY * offset)


def day_part(day: datetime, part: str) -> Period:
    begin, end = DAY_PARTS[part]
    return Period(day + timedelta(hours=begin), day + timedelta(hours=end), "part")


def named_part(found: re.Match[str], context: TimeContext) -> Period | None:
    if found["part"] is None:
        return day_part(context.today, "night")  # tonight
    back = found["which"].lower() == "last"
    return day_part(context.today - DAY * back, found["part"].lower())


def calendar(found: re.Match[str], context: TimeContext) -> Period | None:
    which, kind = found["which"].lower(), found["kind"].lower()
    rolling = (found["the"] and which == "last") or which == "past"
    if rolling and kind in {"week", "month", "year", "quarter"}:
        return _window(-1, 3 if kind == "quarter" else 1, "month" if kind == "quarter" else kind, context)
    if which == "before last":
        return unit_at(kind, context.now, -2)
    offset = -1 if which in {"last", "past", "previous"} else 1 if which in {"next", "coming", "upcoming"} else 0
    return unit_at(kind, context.now, offset)


def before_last(found: re.Match[str], context: TimeContext) -> Period | None:
    return unit_at(found["kind"].lower(), context.now, -2)


def the_weekend(found: re.Match[str], context: TimeContext) -> Period | None:
    this = unit_at("weekend", context.now)
    chosen = (
        this if context.ahead or (this.since and this.since <= context.now) else unit_at("weekend", context.now, -1)
    )
    return chosen._replace(weak=True)


def season(found: re.Match[str], context: TimeContext) -> Period | None:
    month, which, year = SEASONS[found["s"].lower()], (found["which"] or "").lower(), _year_of(found, context)
    if year is not None:
        return _months(year, month, "season", 3)
    chosen = _choose(lambda each: _months(each, month, "season", 3), which, context)
    return chosen._replace(weak=not which)


def quarter(found: re.Match[str], context: TimeContext) -> Period | None:
    month, year = int(found["q"]) * 3 - 2, _year_of(found, context)
    if year is not None:
        return _months(year, month, "quarter", 3)
    return _choose(lambda each: _months(each, month, "quarter", 3), "", context)


def year_alone(found: re.Match[str], context: TimeContext) -> Period | None:
    year = int(found["y"])
    return _months(year, 1, "year", 12)._replace(weak=not found["the"]) if year in YEARS else None


def decade(found: re.Match[str], context: TimeContext) -> Period | None:
    year = int(found["y"])
    if year < 100:
        year += 2000 if year <= 20 else 1900
    return _months(year, 1, "decade", 120)._replace(weak=not found["the"]) if year in YEARS else None


def holiday(found: re.Match[str], context: TimeContext) -> Period | None:
    name = " ".join(found["name"].lower().replace("\u2019", "'").split())
    month, day, count = HOLIDAYS[name]
    return _choose(lambda year: _days(datetime(year, month, day), count), (found["which"] or "").lower(), context)


def ordinal_day(found: re.Match[str], context: TimeContext) -> Period | None:
    day, first = int(found["d"]), context.today.replace(day=1)
    for step in (0, 1, 2) if context.ahead else (0, -1, -2):
        month = plus_months(first, step)
        if 1 <= day <= _length(month):
            chosen = month + DAY * (day - 1)
            if chosen >= context.today if context.ahead else chosen <= context.today:
                return _days(chosen)._replace(weak=True)
    return None


def _count(words: str) -> tuple[int, int]:
    """The least and the most that a number in words or digits can mean."""
    for name, bounds in VAGUE.items():
        if name in words.lower():
            return bounds
    number = int(words) if words.isdigit() else COUNTS[words.lower()]
    return number, number


def _shifted(unit: str, steps: int, context: TimeContext) -> Period:
    """The unit that lies ``steps`` of its kind from now, as exact as people are when they count in it."""
    if unit in {"minute", "hour"}:
        length = timedelta(minutes=1) if unit == "minute" else timedelta(hours=1)
        middle = context.now + length * steps
        return Period(middle - length / 2, middle + length / 2, "moment")
    if unit in {"week", "fortnight"}:
        day = context.today + DAY * (7 if unit == "week" else 14) * steps
        return Period(day - 3 * DAY, day + 4 * DAY, "week")
    return unit_at("day" if unit == "night" else unit, context.now, steps)


def distance(found: re.Match[str], context: TimeContext) -> Period | None:
    least, most = _count(found["n"])
    sign = -1 if found["dir"].lower() in {"ago", "back"} else 1
    near, far = (_shifted(found["unit"].lower(), sign * each, context) for each in (least, most))
    early, late = (far, near) if sign < 0 else (near, far)
    return Period(early.since, late.until, near.kind if least == most else "range")


def half(found: re.Match[str], context: TimeContext) -> Period | None:
    return _shifted("month", -6 if found["dir"].lower() in {"ago", "back"} else 6, context)


def _window(sign: int, count: int, unit: str, context: TimeContext) -> Period:
    if unit in {"minute", "hour"}:
        edge = context.now + sign * count * (timedelta(minutes=1) if unit == "minute" else timedelta(hours=1))
        return Period(min(edge, context.now), max(edge, context.now), "range")
    if unit in {"month", "year"}:
        edge = plus_months(context.today, sign * count * (12 if unit == "year" else 1))
    else:
        edge = context.today + sign * count * DAY * {"week": 7, "fortnight": 14}.get(unit, 1)
    if sign < 0:
        return Period(edge, context.today + DAY, "range")
    return Period(context.today, edge + DAY, "range")


def rolling_window(found: re.Match[str], context: TimeContext) -> Period | None:
    sign = -1 if found["dir"].lower() in {"last", "past", "previous"} else 1
    return _window(sign, _count(found["n"])[1], found["unit"].lower(), context)
