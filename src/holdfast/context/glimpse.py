"""One look at a long text: the stretch where most words of a question stand together.

For the many hits that rank low a page has room for a sentence or two each, and ``excerpt``, which weighs every
sentence, would take longer than all of recall. Here a single pattern runs over the text. Deliberately absent: stems and
weights. A word counts when it begins like one of the question's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache

from holdfast.context.sentences import ELLIPSIS, Count, cut, word_end
from holdfast.text import STOP_WORDS, terms, words

_PER_TOKEN = 4  # characters, roughly; what is too long is cut
_TRIES = 3
_BEGINS = 5
_HALF = 2  # of a stretch may come before the first word that was found
_SENTENCE = re.compile("[.!?]\\s+|\n\\s*|[\u3002\uff01\uff1f\u0964]")


def glimpse(text: str, query: str, limit: int, count: Count) -> str:
    """The stretch of a text that has most to do with a query, in at most ``limit`` tokens; else its beginning."""
    size = limit * _PER_TOKEN
    start = _start(text, _densest(text, query, size), size)
    for _ in range(_TRIES):
        shown = _stretch(text, start, size)
        tokens = count(shown)
        if tokens <= limit:
            return shown
        size = max(0, size * limit // tokens - 1)
    return cut(shown, limit, count)


def _stretch(text: str, start: int, size: int) -> str:
    """So many characters of a text, up to the end of a word."""
    end = start + (size if size >= len(text) - start else word_end(text[start : start + size + 1], size))
    before, after = f"{ELLIPSIS} " if start else "", f" {ELLIPSIS}" if end < len(text) else ""
    return f"{before}{text[start:end].strip()}{after}"


def _densest(text: str, query: str, size: int) -> int:
    """Where a stretch begins that has most of the words, counting each once; of equals the first."""
    folded = text.lower()
    folded = folded if len(folded) == len(text) else text
    found = [
        (at, word[0])
        for word in _pattern(query).finditer(folded)
        if (at := word.start()) == 0 or not folded[at].isascii() or not folded[at - 1].isalnum()
    ]
    places = [at for at, _ in found]
    best, most = 0, 0
    for number, at in enumerate(places):
        last = bisect_left(places, at + size // _HALF, number)
        held = len({word for _, word in found[number:last]})
        if held > most:
            best, most = at, held
    return best


def _start(text: str, at: int, size: int) -> int:
    """The beginning of the sentence or line that holds a place, if it is near; else of a word, with text behind it."""
    low = max(0, at - size // _HALF)
    ends = [end.end() for end in _SENTENCE.finditer(text, low, at)]
    if ends or low == 0:
        return ends[-1] if ends else 0
    return min(at, word_end(text, max(0, len(text) - size)))


@lru_cache(64)
def _pattern(query: str) -> re.Pattern[str]:
    """The beginnings of the words of a query; of a query without any, nothing."""
    telling = [word for word in words(query) if word not in STOP_WORDS] + terms(query)
    starts = sorted({re.escape(word[: max(2, min(_BEGINS, len(word) - 1))]) for word in telling})
    return re.compile("|".join(starts) or "(?!)")
