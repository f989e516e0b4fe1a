"""A text as pieces: sentences, list items and lines of code, each a range of the text itself.

The ends of sentences are found by their marks, in any script. A full stop ends nothing inside a number, an address or
an abbreviation, and after a short number it is taken for part of a date or of a list. Where a mark is in doubt the two
sentences stay together: one that is too long reads better than half of one.

Deliberately absent: rewriting. A piece is cut out of the text as it stands; what is shortened ends in an ellipsis.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

Count = Callable[[str], int]

ELLIPSIS = "…"

OPENING = "\"'*_`([\u201c\u2018\u00ab\u2039\u300c\u300e\uff08\u3010\u3008\u300a"
_CLOSING = "\"'*_`)]\u201d\u2019\u00bb\u203a\u300d\u300f\uff09\u3011\u3009\u300b"
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_SPACED = ".!?\u2026\u061f\u06d4\u1362"  # end a sentence when white space follows: Latin, Arabic, Urdu, Ethiopic
_UNSPACED = "\u3002\uff01\uff1f\uff61\u0964\u0965\u104b\u17d4"  # always do: Chinese, Japanese, Hindi, Burmese, Khmer
_ENDS = re.compile(f"[{_SPACED}{_UNSPACED}]+[{re.escape(_CLOSING)}]*")
_LINE = re.compile(r"[^\r\n]+")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_ITEM = re.compile(
    r"[ \t>]*(?:[-*+\u2022\u2023\u25aa\u25e6\u00b7\u2013]|\(?(?:\d{1,3}|[a-zA-Z])[.)]|[\u2460-\u2473])[ \t\u3000]+"
)
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+")
_MARKERS = {"item": _ITEM, "heading": _HEADING}

# After these a full stop ends no sentence. The second set goes with a number: "no. 5", but "she said no."
_SHORT = """
    mr mrs ms mx dr prof st sr jr gen sen rep rev hon capt lt col sgt mt ft vs cf eg ie viz esp incl al resp
    bzw ca evtl ggf inkl sog vgl str hr fr sra srta mme mlle
"""
_NUMBERED = """
    no nr nos vol p pp fig figs art sec ch approx est tel ext ed n jan feb mar apr jun jul aug sep sept oct nov dec
"""
_ABBREVIATIONS = frozenset(_SHORT.split())
_BEFORE_NUMBER = frozenset(_NUMBERED.split())
_LOOK_BACK = 24
_LINE_CHARS = 80


class TextPiece(NamedTuple):
    """A range of a text. ``kind`` is "said" for a sentence, else "item", "heading" or "code"."""

    start: int
    end: int
    kind: str


def pieces(text: str) -> list[TextPiece]:
    """Cut a text into sentences, list items and lines of code, in order; white space around them is left out."""
    found: list[TextPiece] = []
    fenced = False
    for line in _LINE.finditer(text):
        start, end = _trimmed(text, line.start(), line.end())
        if start == end:
            continue
        if _FENCE.match(text, line.start(), end):
            fenced = not fenced
            found.append(TextPiece(start, end, "code"))
        elif fenced:
            found.append(TextPiece(start, end, "code"))
        else:
            _sentences(text, start, end, found)
    return found


def _sentences(text: str, start: int, end: int, found: list[TextPiece]) -> None:
    """Add the sentences of one line; of a list item all are items, as they belong to it."""
    marker = _ITEM.match(text, start, end)
    kind = "item" if marker else "heading" if _HEADING.match(text, start, end) else "said"
    at = start
    for mark in _ENDS.finditer(text, marker.end() if marker else start, end):
        if mark.end() >= end:
            break
        first = text[mark.start()]
        if first in _SPACED and not text[mark.end()].isspace():
            continue
        if first in ".…" and not _full_stop(text, start, mark.start(), mark.end(), end):
            continue
        _add(text, at, mark.end(), kind, found)
        at = mark.end()
    _add(text, at, end, kind, found)


def _add(text: str, start: int, end: int, kind: str, found: list[TextPiece]) -> None:
    start, end = _trimmed(text, start, end)
    if start < end:
        found.append(TextPiece(start, end, kind))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _full_stop(text: str, line: int, dot: int, after: int, end: int) -> bool:
    """Whether the dots at ``dot`` end a sentence."""
    following = after
    while following < end and text[following].isspace():
        following += 1
    coming = text[following] if following < end else ""
    if text[dot] == "…" or text.startswith("..", dot):
        return not coming.islower()
    back = max(line, dot - _LOOK_BACK)
    word = text[max(back, text.rfind(" ", back, dot) + 1) : dot].lstrip(OPENING).casefold()
    if not word:
        return True
    if word.isdecimal():
        return len(word) > 2
    if len(word) == 1:
        return not (text[dot - 1].isupper() and coming.isupper()) or word == "i"  # J. Smith
    if "." in word and max(map(len, word.split("."))) == 1:  # a.m., e.g., U.S.
        return coming.isupper() and word not in {"e.g", "i.e", "z.b", "d.h", "u.a", "p.ej"}
    if word in _ABBREVIATIONS:
        return False
    return not (word in _BEFORE_NUMBER and coming.isdecimal())


def asks(sentence: str) -> bool:
    """Whether a sentence ends in a question mark, of any script."""
    return sentence.rstrip(_CLOSING).endswith(_QUESTION_MARKS)


def bare(text: str, piece: TextPiece) -> str:
    """The text of a piece without the bullet or number of a list item, or the signs before a heading."""
    start = piece.start
    if piece.kind in _MARKERS and (marker := _MARKERS[piece.kind].match(text, start, piece.end)):
        start = marker.end()
    return text[start : piece.end]


def cut(text: str, limit: int, count: Count) -> str:
    """The beginning of a text with an ellipsis, in at most ``limit`` tokens; a text that fits comes back whole.

    Cut between words where there is a space not too far back, else between what people see as characters. Empty when
    not even that fits.
    """
    if count(text) <= limit:
        return text
    good, bad = 0, 1
    size = max(limit, 1) * 4
    while size < len(text):  # texts are often far longer than the limit: never count all of it again and again
        if count(text[:size] + ELLIPSIS) > limit:
            bad = size
            break
        good, size = size, size * 2
    else:
        bad = len(text)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if count(text[:middle] + ELLIPSIS) <= limit else (good, middle)
    while good > 0:
        end = word_end(text, good)
        shortened = text[:end].rstrip() + ELLIPSIS
        if end and count(shortened) <= limit:  # a tokenizer may need more for less
            return shortened
        good -= max(1, good // 16)
    return ""


def word_end(text: str, at: int) -> int:
    """The last place up to ``at`` to cut a text: between words, if that loses neither a third nor a line."""
    if at < len(text) and not text[at].isspace():
        for place in range(at, max(at * 2 // 3, at - _LINE_CHARS), -1):
            if text[place - 1].isspace():
                return place
    return whole_characters(text, at)


def whole_characters(text: str, at: int) -> int:
    """The last place up to ``at`` that is not inside a visible character; ``at`` itself if there is none near."""
    for place in range(at, max(0, at - 32), -1):
        if place >= len(text) or not _inside(text[place - 1], text[place]):
            return place
    return at


def _inside(before: str, after: str) -> bool:
    """Whether two code points belong to one character: marks, joiners, skin tones, flags, surrogates."""
    if after.isascii():
        return False
    return (
        before == "\u200d"
        or after == "\u200d"
        or "\ufe00" <= after <= "\ufe0f"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff")
        or "\udc00" <= after <= "\udfff"
        or unicodedata.category(after) in ("Mn", "Mc", "Me")
    )
