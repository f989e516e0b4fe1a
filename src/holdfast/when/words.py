"""The words for times, and the patterns made of them.

A pattern is compiled by the first text that needs it. Deliberately absent: what the words mean.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta


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


DAY = timedelta(days=1)
YEARS = range(1900, 2101)
STAMP_CHARS = 80  # nobody writes a longer stamp

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FULL_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FULL_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 8)}
HOLIDAYS = {
    "christmas eve": (12, 24, 1), "christmas day": (12, 25, 1), "christmas": (12, 24, 3), "halloween": (10, 31, 1),
    "new year's eve": (12, 31, 1), "new year's day": (1, 1, 1), "valentine's day": (2, 14, 1),
}  # fmt: skip
DAY_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
ZONES = {
    "z": 0, "utc": 0, "gmt": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    "cet": 1, "cest": 2,
}  # fmt: skip

# Pieces of patterns. Every repetition is bounded, so that no text can make matching slow.

S = "[ \\t\\r\\n\u00a0\u202f]{1,4}"
MONTH = rf"(?:(?:{'|'.join(FULL_MONTHS)})\b|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
WEEKDAY = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|"
    r"sun(?:day)?)\b"
)
SEASON = "(?:spring|summer|autumn|fall|winter)"
WHICH = "(?:this past|this coming|last|past|previous|this|current|next|coming|upcoming)"
COUNT = f"(?:[0-9]{{1,3}}|a{S}(?:couple(?:{S}of)?|few)|couple(?:{S}of)?|few|several|{'|'.join(COUNTS)})"
UNIT = "(?P<unit>minute|hour|day|night|week|fortnight|month|year)s?"
_ORDINAL = "(?:st|nd|rd|th)?"
_TO = f"(?:(?:{S})?[-\u2013](?:{S})?|{S}(?:to|and){S})"
D = "(?P<d>[0-9]{1,2})" + _ORDINAL + f"(?:{_TO}(?P<d2>[0-9]{{1,2}}){_ORDINAL})?"
Y = f"(?:(?:,?{S}|[-/])(?P<y>[0-9]{{4}})|,?{S}(?:of{S})?(?P<yw>last|this|next){S}year)?"
CLOCK = r"(?P<h>[0-9]{1,2})(?::(?P<mi>[0-9]{2})(?::(?P<sec>[0-9]{2})(?:[.,][0-9]{1,9})?)?)?"
NOON = rf"(?:{S})?(?P<ap>[ap]\.?m\b\.?)"


def bordered(body: str, border: str = r"\w") -> Pattern:
    # ASCII inside, so that no letter of another script passes for one of ours; any script at the border.
    return Pattern(rf"(?ai:{body})(?:(?!{border})|(?=T[0-9]))")
