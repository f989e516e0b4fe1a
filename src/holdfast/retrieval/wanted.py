"""What kind of thing a question asks for, and which sentences have such a thing in them.

"How much" wants an amount, "when" a date or a time, "what is the code" something with digits. What lacks that answers
less likely, and is quoted less readily. Deliberately absent: languages other than English, where a question asks for
nothing in particular.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from holdfast import when
from holdfast.text import stem

_CURRENCY = (
    r"(?:EUR|USD|GBP|CHF|JPY|INR|CAD|AUD|SEK|NOK|DKK|PLN|euros?|dollars?|pounds?|quid|bucks|cents?|pence|francs?|yen|"
    r"rupees?|kron(?:er|or))\b"
)
_AMOUNT = re.compile(
    rf"[$€£¥₹]\s?\d|\d\s?(?:k\s?)?(?:[€£¥₹]|{_CURRENCY})|\b(?:EUR|USD|GBP|CHF)\s?\d|\bfor free\b|\bfree of charge\b|"
    r"\b\d{1,3},\d{3}\b|\b\d[\d.,]* (?:an?|each|per|every) (?:hour|day|week|month|year|night|person)\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\b(?:[01]?\d|2[0-4])[:.h][0-5]\d\b|\b\d{1,2}\s?(?:[ap]\.?m\b|o'clock)|\b(?:noon|midnight|midday)\b|"
    r"\b(?:half|quarter) (?:past|to)\b|\bat \w+ (?:thirty|fifteen|o'clock)\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"\b(?=[A-Z0-9-]*\d)(?!(?:19|20)\d\d\b)[A-Z0-9][A-Z0-9-]{3,}\b|(?<![\w.,:])\+?\d[\d /-]{4,}\d\b|\b\S+@\S+\.\w+"
)
_LABEL = re.compile(r"\b[A-Z]{1,3} ?\d{1,4}[A-Z]?\b|\b\d{1,4}[A-Z]\b|\b(?:no\.?|number|size|floor|gate) \d")
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|fifty|hundred|"
    r"thousand|million|once|twice|both|none|no)\b",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"\b(?:\d+|an?|half an?|one|two|three|four|five|six|seven|eight|ten|twelve|few|several)[ -]?(?:\w+ )?"
    r"(?:seconds?|min(?:ute)?s?|h|hours?|days?|nights?|weeks?|months?|years?)\b",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:in|at|from|to|near|on|by|behind|under|inside|beside|next to|above|below|opposite)\s+"
    r"(?:(?:the|my|our|her|his|their|your|an?)\s+\w|[A-Z0-9])|\b\d+\w? [A-Z]\w+|"
    r"\b[A-Z]\w+ (?:Street|Road|Avenue|Square)\b"
)
_PERSON = re.compile(
    r"(?<=[a-z,] )[A-Z][a-z]+|^[A-Z][a-z]+ [A-Z][a-z]+\b|(?i:\b(?:mother|mum|mom|father|dad|sister|brother|son|"
    r"daughter|wife|husband|partner|friend|boss|colleague|neighbou?r|doctor|dentist|teacher|aunt|uncle|cousin|grand\w+)\b)"
)
_OWNER = re.compile(
    r"(?<!\bit)(?<!\bthat)(?<!\bhe)(?<!\bshe)(?<!\blet)['\u2019]s\s+\w|\bbelongs? to\b|\b(?:his|hers|theirs)\b"
)
_AT_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def _dated(text: str) -> bool:
    return _CLOCK.search(text) is not None or bool(when.find(text, _AT_ANY_TIME))


def _referred(text: str) -> bool:
    return _REFERENCE.search(_AMOUNT.sub("", _CLOCK.sub("", text))) is not None


class WantedThing(NamedTuple):
    """A kind of thing that is asked for. ``missing`` says that a sentence has none, where that can be told for sure;
    ``words`` are the stems of words by which it is asked for, which the thing itself stands for."""

    name: str
    asks: re.Pattern[str]
    is_in: Callable[[str], bool]
    missing: str = ""
    words: frozenset[str] = frozenset()


def _thing(name: str, asks: str, found: Callable[[str], object], missing: str = "", words: str = "") -> WantedThing:
    stems = frozenset(map(stem, words.split()))
    return WantedThing(
        name, re.compile(asks, re.IGNORECASE), lambda text: found(text) not in (None, False), missing, stems
    )


_WHAT = r"(?:\bwh(?:at|ich)\b|\btell me\b|\bremind me\b|\bgive me\b|\bdo you (?:have|know|remember)\b)"
THINGS = (
    _thing(
        "amount",
        rf"\bhow (?:expensive|cheap)|\bhow much (?:is|was|are|were|for)\b|(?:\bhow much\b|{_WHAT}).*\b(?:price[sd]?|"
        r"costs?|fares?|fees?|pay|paid|rent|budget|charged?|deposit|spen[dt]|salary|earn|owe)\b",
        _AMOUNT.search, "no amount", "price priced cost fare fee pay paid charge charged expensive cheap money",
    ),
    _thing("length", r"\bhow long\b(?! ago| since)|\bhow many (?:minutes|hours|days|weeks|months|years)",
           _LENGTH.search, "no length of time", "long take last"),
    _thing("count", r"\bhow (?:many|much|often|old|far|big|tall|high|heavy)\b", _NUMBER.search, "no number", "many"),
    _thing("clock", r"\b(?:what|which) time\b|\bwhat hour\b|\bhow (?:late|early)\b|"
           r"\bwhen (?:do|does|is|will|should)\b.*\b(?:leave|depart|arrive|land|board|take off|open|close|start)",
           _CLOCK.search, "no time of day", "time hour late early"),
    _thing("date", r"(?:^|[,;:] |\b(?:and|so|since|until|by|know|remember|me|remind me) )when\b|"
           r"\b(?:what|which) (?:day|date|year|month|weekday|week)\b|\bhow soon\b|\bbirthday\b", _dated,
           "no date or time", "day date year month week"),
    _thing("reference", rf"{_WHAT}.*\b(?:code|pin|password|passcode|reference|confirmation|number(?! of)|iban|plate|"
           r"e-?mail|login|serial|postcode|zip)\b", _referred, "no code or number",
           "code reference confirmation confirm number book booking reservation"),
    _thing("label", r"\b(?:which|what) (?:seat|room|gate|platform|flight|bus|train|floor|size|version|channel|"
           r"table|bay)\b", _LABEL.search),
    _thing("place", r"\bwhere\b|\b(?:what|which) (?:city|town|country|place|street|village|room|airport|station)\b|"
           r"\baddress\b", _PLACE.search, words="city town country place address"),
    _thing("owner", r"\bwhose\b", _OWNER.search),
    _thing("person", r"\bwhom?\b|\bwhat (?:name|is the name|was the name)\b|'s name\b", _PERSON.search,
           words="name call called"),
)  # fmt: skip


def wanted(question: str) -> WantedThing | None:
    """The kind of thing that a question asks for, the most definite first; None where it is nothing in particular."""
    return next((thing for thing in THINGS if thing.asks.search(question)), None)
