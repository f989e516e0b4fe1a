"""One stamp that stands alone, as people and programs write it: "1:56 pm on 8 May, 2023".

Deliberately absent: guesses. What could be two days is none.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from holdfast.when.periods import plus_months
from holdfast.when.spans import Reader, find, zone_of
from holdfast.when.words import CLOCK, COUNTS, NOON, STAMP_CHARS, UNIT, WEEKDAY, ZONES, Pattern

_STAMP_ZONE = Pattern(r"(?ai:[ \u00a0\u202f]?\(?([a-z]{1,4}|[+-][0-9]{2}:?[0-9]{2})\)?)$")
_STAMP_TIME = Pattern(
    rf"(?ai:(?:^|(?<=[\s,T]))(?:{CLOCK}{NOON}|(?P<h24>[0-9]{{1,2}}):(?P<m24>[0-9]{{2}})"
    rf"(?::(?P<s24>[0-9]{{2}})(?:[.,](?P<f>[0-9]{{1,9}}))?)?)(?!\w))"
)
_STAMP_FILLER = Pattern(rf"(?ai:[\s,.T]|\bon\b|\bat\b|\bthe\b|\bof\b|{WEEKDAY})+")
_SHORT = {
    "second": "second", "sec": "second", "s": "second", "min": "minute", "m": "minute", "hr": "hour", "h": "hour",
    "d": "day", "wk": "week", "w": "week", "mo": "month", "yr": "year", "y": "year",
}  # fmt: skip
_DISTANCE = Pattern(
    rf"(?ai:(?P<n>[0-9]{{1,4}}|(?:{'|'.join(COUNTS)})(?=\s))\s*(?:{UNIT}|(?P<short>{'|'.join(_SHORT)})s?)"
    r"\s+(?P<dir>ago|from\s+now)\Z)"
)
_LENGTHS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1), "night": timedelta(days=1),
    "week": timedelta(weeks=1), "fortnight": timedelta(weeks=2),
}  # fmt: skip


def read_moment(text: str, now: datetime) -> datetime | None:
    """The moment that someone means who types a time for an option, in UTC; None when it is no time.

    A stamp, or an expression such as "yesterday", "last Monday", "3 days ago", "2h ago". A distance is counted from
    ``now`` to the second; a day, a week or a month is its beginning.
    """
    words = " ".join(text.split()).lower() if len(text) <= STAMP_CHARS else ""
    if words == "now":
        return now.astimezone(UTC)
    distance = _DISTANCE.match(words)
    if distance is None:
        return parse_moment(text, today=now) or (parse_moment(f"on {words.capitalize()}", today=now) if words else None)
    count = int(distance["n"]) if distance["n"].isdigit() else COUNTS[distance["n"]]
    count, unit = (-count if distance["dir"] == "ago" else count), distance["unit"] or _SHORT[distance["short"]]
    try:
        if unit in _LENGTHS:
            return (now + count * _LENGTHS[unit]).astimezone(UTC)
        return plus_months(now, count * (12 if unit == "year" else 1)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_moment(text: str, *, today: datetime | None = None) -> datetime | None:
    """The moment that a stamp names, in UTC, or None when it names none. A day alone is its beginning.

    A stamp without a zone is taken as UTC. One without a year, or a word such as "yesterday", needs ``today``.
    """
    stamp = text.strip() if len(text) <= 4 * STAMP_CHARS else ""
    if not stamp or len(stamp) > STAMP_CHARS or (stamp.isdigit() and len(stamp) != 8):
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
    if named and (named[1][0] in "+-" or named[1].lower() in ZONES) and ":" in stamp:
        zone, stamp = zone_of(named[1]), stamp[: named.start()]
    clock = _STAMP_TIME.search(stamp)
    rest = f"{stamp[: clock.start()]} {stamp[clock.end() :]}" if clock else stamp
    day = _stamp_day(rest)
    if day is None:
        return None
    if clock:
        moment = Reader.clock_time(clock, day).since or day
        day = moment.replace(microsecond=int((clock["f"] or "0").ljust(6, "0")[:6]))
    return day.replace(tzinfo=zone or UTC).astimezone(UTC)


def _stamp_day(text: str) -> datetime | None:
    # A date that names its year is the same whenever it is read: two readings years apart agree.
    readings = set()
    for year in (1980, 2013):
        dates = Reader(text, datetime(year, 7, 2, tzinfo=UTC))
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
