"""The parts of a long text that matter for a query, in its own words and order: weighed sentences, or one quick look.

``excerpt`` weighs every sentence. ``glimpse`` is for the many hits that rank low, where a page has room for a sentence
or two each and weighing would take longer than all of recall: a single pattern finds the stretch where most words of
the question stand together. Deliberately absent: rewriting, and in a glimpse stems and weights.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from functools import lru_cache
from heapq import nlargest
from itertools import islice
from math import fsum

from holdfast.context.sentences import ELLIPSIS, Count, cut, pieces, word_end
from holdfast.text import STOP_WORDS, terms, words

_LONG_PART = 320  # characters; what is longer is looked at in parts
_COVERED = 0.4  # what a term is worth that is shown already
_BEFORE, _AFTER = 0.2, 0.3  # how much of a part's score goes to what is next to it
_SHORT_PART = 40
_CONSIDERED = 64
_HUGE, _NEAR, _PLACES = 20_000, 400, 24
_MISSES = 4
_PER_TOKEN = 8  # characters; hardly a text has more
_WORD = re.compile(r"\S+")

Part = tuple[int, int]


def excerpt(text: str, query: str, limit: int, count: Count) -> str:
    """What of a text matters for a query, in at most ``limit`` tokens as ``count`` counts them.

    A text that fits comes back unchanged. Of a longer one whole sentences and lines are shown, and ``…`` for what is
    left out. Only a sentence that is longer than the limit is cut, between words if possible.
    """
    if limit <= 0 and count(text) > limit:
        return ""
    if _fits(text, limit, count):
        return text
    if len(text) > _HUGE:
        text = _around(text, query)
    parts = _parts(text)
    matches = _matches(text, parts, query)
    if not any(matches):
        return cut(text, limit, count)
    chosen = _chosen(text, parts, matches, limit, count)
    best = chosen[0]
    while chosen:
        shown = _shown(text, parts, sorted(chosen))
        if count(shown) <= limit:
            return shown
        chosen.pop()
    return _window(text, parts[best], _sought(query)[0], limit, count)


def _around(text: str, query: str) -> str:
    """What of a huge text is near the words of a query: of ten thousand lines of a log nobody reads all."""
    found = islice(_sought(query)[1].finditer(text.lower()), _PLACES)
    spans: list[list[int]] = []
    for word in found:
        start, end = max(0, word.start() - _NEAR), word.end() + _NEAR
        if spans and start <= spans[-1][1]:
            spans[-1][1] = end
        else:
            spans.append([start, end])
    return "\n".join(text[start:end] for start, end in spans) or text[:_HUGE]


def _fits(text: str, limit: int, count: Count) -> bool:
    """Whether a text has at most so many tokens. Of a long one the beginning tells, and counting it all takes time."""
    most = limit * _PER_TOKEN
    return count(text[:most]) <= limit and (len(text) <= most or count(text) <= limit)


def _parts(text: str) -> list[Part]:
    """The sentences and lines of a text; very long ones in several parts."""
    found: list[Part] = []
    for start, end, _ in pieces(text):
        while end - start > _LONG_PART * 3 // 2:
            size = word_end(text[start : start + _LONG_PART + 1], _LONG_PART)
            found.append((start, start + size))
            start += size
            while start < end and text[start].isspace():
                start += 1
        found.append((start, end))
    return found


def _matches(text: str, parts: list[Part], query: str) -> list[frozenset[str]]:
    """The terms of the query in each part."""
    sought, likely = _sought(query)
    if not text.isascii():
        return [sought.intersection(terms(text[start:end])) for start, end in parts]
    listed: list[set[str]] = [set() for _ in parts]
    folded, at = text.lower(), 0
    for word in likely.finditer(folded):
        place = word.start()
        if place and folded[place - 1].isalnum():
            continue
        while at < len(parts) - 1 and parts[at][1] <= place:
            at += 1
        listed[at].update(sought.intersection(terms(word[0])))
    return [frozenset(found) for found in listed]


@lru_cache(64)
def _sought(query: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """The terms of a query, and a pattern for words that may be one of them.

    In ASCII letters a word begins like its stem, but for the last letter, so most words are passed over unlooked at.
    """
    sought = frozenset(terms(query))
    starts = {term[: max(2, min(4, len(term) - 1))] for term in sought}
    starts |= {word[:4] for word in words(query) if word not in STOP_WORDS}
    starts = {re.escape(start) for start in starts if start.isascii()} or {"(?!)"}
    return sought, re.compile(f"(?:{'|'.join(sorted(starts))})[a-z0-9]*(?:'[a-z]+)?")


def _weights(matches: list[frozenset[str]]) -> dict[str, float]:
    """What each term is worth: the more, the fewer parts have it."""
    spread = Counter(term for found in matches for term in found)
    return {term: math.log(1 + len(matches) / n) for term, n in spread.items()}


def _chosen(text: str, parts: list[Part], matches: list[frozenset[str]], limit: int, count: Count) -> list[int]:
    """The parts to show, best first, as many as there is room for; always the best one, even if it has none."""
    weights = _weights(matches)
    scores = [fsum(weights[term] for term in found) for found in matches]
    near = [0.0] * len(parts)
    covered: set[str] = set()

    def rate(at: int) -> tuple[float, int]:
        start, end = parts[at]
        worth = near[at] + fsum(weights[term] * (_COVERED if term in covered else 1) for term in matches[at])
        return worth / math.sqrt(end - start + _SHORT_PART), -at

    gap = count(f" {ELLIPSIS} ")
    room = limit - gap
    matching = [at for at, found in enumerate(matches) if found]
    waiting = set(nlargest(_CONSIDERED, matching, key=lambda at: (scores[at], -at)))
    at = max(waiting, key=lambda at: (scores[at], -at))
    chosen: list[int] = []
    misses = 0
    while misses < _MISSES:
        waiting.discard(at)
        start, end = parts[at]
        cost = count(text[start:end]) + gap
        if cost <= room or not chosen:
            room -= cost
            chosen.append(at)
            covered |= matches[at]
            for neighbour, share in ((at - 1, _BEFORE), (at + 1, _AFTER)):
                if 0 <= neighbour < len(parts) and neighbour not in chosen:
                    near[neighbour] = max(near[neighbour], share * scores[at])
                    waiting.add(neighbour)
        else:
            misses += 1
        if room <= gap or not waiting:
            break
        at = max(waiting, key=rate)
    return chosen


def _shown(text: str, parts: list[Part], chosen: list[int]) -> str:
    """The chosen parts in order; what stood side by side is shown as it stood."""
    shown = f"{ELLIPSIS} " if chosen[0] > 0 else ""
    for before, at in zip([None, *chosen], chosen, strict=False):
        start, end = parts[at]
        if before is not None:
            between = text[parts[before][1] : start]
            if at > before + 1:
                between = f"\n{ELLIPSIS}\n" if "\n" in between else f" {ELLIPSIS} "
            shown += between
        shown += text[start:end]
    return f"{shown} {ELLIPSIS}" if chosen[-1] < len(parts) - 1 else shown


def _window(text: str, part: Part, sought: frozenset[str], limit: int, count: Count) -> str:
    """A piece of a part that is longer than the limit, from shortly before its first match on."""
    start, end = part
    for word in _WORD.finditer(text, start, end):
        if not sought.isdisjoint(terms(word[0])):
            lead = max(start, word_end(text, max(start, word.start() - limit)))
            start = lead if count(text[lead : word.start()]) * 4 <= limit else word.start()
            break
    return cut(f"{ELLIPSIS} {text[start:]}" if start else text, limit, count)


_GLIMPSE_PER_TOKEN = 4  # characters, roughly; what is too long is cut
_TRIES = 3
_BEGINS = 5
_HALF = 2  # of a stretch may come before the first word that was found
_SENTENCE = re.compile("[.!?]\\s+|\n\\s*|[\u3002\uff01\uff1f\u0964]")


def glimpse(text: str, query: str, limit: int, count: Count) -> str:
    """The stretch of a text that has most to do with a query, in at most ``limit`` tokens; else its beginning."""
    size = limit * _GLIMPSE_PER_TOKEN
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
