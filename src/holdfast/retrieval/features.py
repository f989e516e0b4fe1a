"""What a text looks like: a standing instruction, a preference, a date, a question … seen once, when it is indexed.

A cue is one bit of a row. Each is a general pattern of English, none knows a name or a topic, and a text in another
language simply has fewer of them. Only the beginning of a long text is looked at. Deliberately absent: what a cue is
worth (``weights``), and extraction, which needs to be right where this only needs to be likely.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_HEAD = 600
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)

_PATTERNS = {
    "instruction": (
        r"^\W*(?:(?:please|also|and|ok(?:ay)?|so|hey|remember|note|from now on|going forward|in (?:the )?future|can you|"
        r"could you|i(?:'d| would)? (?:want|like|need) you to|make sure (?:to|you|that you)|be sure to|don'?t forget to)"
        r"[,:]?\s+)*(?:always|never|whenever|don'?t ever|do not ever|avoid|only (?:use|give|show|answer|reply)|"
        r"when(?:ever)? i (?:ask|mention|say|talk|request)|every time i|each time i|if i (?:ask|mention))\b"
    ),
    "preference": (
        r"\b(?:i(?:'d| would)?(?: \w+)? prefer|my preference|preferences?\b|i(?:'d| would)(?: much)? rather|"
        r"i (?:really |always |usually |generally |also )?(?:enjoy|like|love|hate|dislike|favou?r)\b(?! to know)|"
        r"i(?:'m| am) (?:not )?(?:a (?:big )?fan|into|fond|comfortable|used to)|my favou?rite|"
        r"i(?:'ve| have)? (?:chose|chosen|choose|decided|opted|picked|switched)|over \w+(?: \w+)? (?:because|due|for|since)|"
        r"rather than|instead of|i try to (?:keep|avoid|use)|i tend to|i usually|works? best for me|most focused|"
        r"so i (?:prefer|want|like))"
    ),
    "never": r"\bi(?:'ve| have)?(?: actually)? never\b",
    "update": (
        r"\b(?:now|recent(?:ly)?|updat\w+|reschedul\w+|increas\w+|decreas\w+|reduc\w+|extend\w*|chang\w+|moved|postpon\w+|"
        r"delay\w+|push(?:ed|ing) (?:back|to)|shorten\w*|new(?:ly)?|no longer|actually|instead|anymore|additional|"
        r"improved? (?:to|from)|reached|grew|growth|raised|lowered|switched|just)\b"
    ),
    "number": r"\d",
    "date": (
        rf"\b{_MONTH}\.? \d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b|\b\d{{1,2}}/\d{{1,2}}\b|"
        r"\b(?:19|20)\d\d\b|\b\d{1,2}(?::\d\d)? ?(?:am|pm)\b|"
        r"\b(?:yesterday|today|tomorrow|tonight|ago|(?:last|next|this|past|previous|coming) (?:night|week|weekend|month|year|"
        r"summer|winter|spring|fall|autumn|few|mon|tue|wed|thu|fri|sat|sun)\w*|recently|lately|soon|"
        r"just (?:got|had|finished|started|went|did|came|bought)|since \w+|"
        r"for (?:the )?(?:\d+|a few|two|three|several) (?:years|months|weeks|days)|"
        r"monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
    ),
    "question": r"\?",
    "picture": r"\[(?:shares?|shared|sends?|attached)\b[^\]]{0,400}\]",
    "amount": (
        r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twice|once|couple|few|several|another|second|third|first|"
        r"dozen|years?|months?|weeks?)\b"
    ),
    "suggestion": (
        r"\b(?:you should|you could|why (?:not|don'?t you)|how about|what about|maybe|try|recommend\w*|suggest\w*|i'?d |"
        r"check (?:it )?out|give it a|let'?s|don'?t forget|you (?:can|need|gotta|might))\b"
    ),
    "liking": r"\b(?:favou?rite|fav|love|like|enjoy|into|fan of|obsessed|prefer|best)\b",
}
_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|around) (?:the |a |my )?(?:[A-Z][a-z]+|beach|park|mountains?|city|studio|office|store|cafe|museum"
    r"|school|gym|forest|lake|country|home)"
)
_CUES = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()}
_TRIGGER = re.compile(
    r"\b(?:when(?:ever)?|every time|each time|any time|if)\s+(?:i|we|you)(?:'m| am)?\s+(?:ask|asking|mention|request|inquire|talk"
    r"|discuss|say|want|need|answer|give|respond|reply)\w*(?:\s+(?:about|for|regarding|on|to))?\s*(.*)",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|me|we|our|we're|we've)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![.!?\n]\s)(?<!^)\b[A-Z][a-z]{2,}\b")

NAMES = (*_CUES, "place")
BITS = {name: 1 << number for number, name in enumerate(NAMES)}


class Features(NamedTuple):
    """What a text looks like: its cues, how much it speaks of the one who speaks (0 to 150), and names in it (0 to 4)."""

    cues: int
    own: int
    names: int


def look(text: str) -> Features:
    """Look at a text once."""
    head = text[:_HEAD].replace("\u2019", "'")
    plain = _CUES["picture"].sub("", head)
    cues = sum(BITS[name] for name, pattern in _CUES.items() if pattern.search(head if name == "picture" else plain))
    if _PLACE.search(plain):
        cues |= BITS["place"]
    if _instructs(plain):
        cues |= BITS["instruction"]
    words = max(len(plain.split()), 1)
    return Features(cues, min(int(len(_OWN.findall(plain)) / words * 1000), 150), min(len(capitalised(plain)), 4))


def capitalised(text: str) -> list[str]:
    """The names in a text: what has a capital within a sentence."""
    return _NAME.findall(text.replace("\u2019", "'"))


def _instructs(text: str) -> bool:
    return len(text) < 200 and not text.rstrip().endswith("?") and _TRIGGER.search(text) is not None


def trigger(text: str) -> str:
    """When a standing instruction applies: what stands after "when I ask about", or all of it."""
    found = _TRIGGER.search(text[:_HEAD])
    return found[1] if found is not None and len(found[1]) > 3 else text
