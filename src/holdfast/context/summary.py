"""A stretch of a conversation in its own words: the sentences that carry most, in order, each with its entry's number.

What a sentence is worth goes by its terms: those that are rare in the stretch say more than those in every line, and a
term that was told already says little again, so a repetition falls out by itself. Numbers, names, requests, decisions
and errors raise the worth; greetings and thanks have none. Quiet speakers count as much as talkative ones, and every
part of the stretch is covered. English words help where they occur; nothing depends on them.

The result never counts more than the limit. Deliberately absent: a model, and words that nobody said, apart from the
stand-ins for code and long lists.
"""

from __future__ import annotations

import math
import re
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import fsum
from typing import NamedTuple

from holdfast.context.sentences import ELLIPSIS, OPENING, Count, TextPiece, asks, bare, cut, pieces, word_end
from holdfast.text import terms

# Stems that say nothing of what a talk was about. What is common in a talk weighs little in it anyway.
_TALK = """
    hey hi hello bye goodby welcom thank thx congrat congratul wow yeah yep yes yay oh ok okay hmm haha lol sure certain
    absolut definit exact cours great good nice cool awesom amaz wonder fantast excel perfect glad happi sound sorri
    pleas feel free hope help luck keep appreci look like seem know let thing stuff lot much tell everyth anyth someth
    super step follow exampl ensur provid
"""
_EMPTY_TALK = frozenset(_TALK.split())

_TO_NOTE = """
    decid decis agre chose chosen prefer favorit favourit need want deadlin due budget cost price paid book plan promis
    remind rememb alway never allergi birthday error fail failur except fix result instead todo
"""
_MATTERS = frozenset(_TO_NOTE.split())
_SELF = ("I", "I'm", "I've", "I'd", "I'll", "My", "my", "We", "we", "We're", "we're", "We've", "we've", "Our", "our")
_OF_ONESELF = frozenset(_SELF) | {word.replace("'", "\u2019") for word in _SELF}
_NUMBER = re.compile(r"\d")

_LONG_SENTENCE = (160, 400)  # characters; what goes on after that is cut, the sooner the less room there is
_LONG_PER_TOKEN = 6
_LONG_NAME = 40
_LONG_WORD = 16
_LONG_LIST = 5
_FRAME = 16  # characters that a line costs beside its sentences
_HEARD_TOKENS = 40  # of the limit for each stretch that must be heard
_HARDLY = 1e-9
_BETWEEN_ITEMS = "\u00b7"  # instead of the bullets and numbers they had
_ROUNDS = 3
_MISSES = 40

# Found by trial on chats of friends and on chats with an assistant: what of a range answers questions asked later.
_TOLD = 0.5  # what a term weighs that was told already
_NEW = 0.2  # the share of a sentence that has to be new
_QUIET = 0.4  # how far the worth of a speaker's sentences falls with how much there is of them
_SAME_ENTRY = 0.3
_ANSWERED, _UNANSWERED = 0.6, 1.2
_FIRST = 1.2
_FEW, _FEW_WORTH = 3, 0.5  # terms of a sentence that says little
_ITEM = 0.5
_LOUD = 0.8
_NUMBERS = 1.5
_NAMES = 1.4
_ONESELF = 1.7
_NOTABLE = 1.1
_LABEL = 0.2  # a heading, or an item such as "Costs:"


class SummaryLine(NamedTuple):
    """What one entry of a conversation says."""

    number: int
    speaker: str
    text: str
    time: datetime | None = None


class _Sentence(NamedTuple):
    entry: int  # its place in what is summarised
    piece: int  # its place in the entry
    kind: str
    text: str
    mark: str  # stands for code or a list behind it
    terms: frozenset[str]
    cues: float  # how much more or less it is worth than its terms


def summarise(said: Sequence[SummaryLine], limit: int, count: Count) -> str:
    """What matters in a stretch of a conversation, in at most ``limit`` tokens as ``count`` counts them.

    One line for each entry that is heard, such as ``- user: Book the morning flight (#17)``, in order. The first line
    of a day has its date behind the number, where times are known. Sentences that are not next to each other have an
    ellipsis between them. Empty when nothing fits or nobody said anything.
    """
    least, most = _LONG_SENTENCE
    longest = min(most, max(least, _LONG_PER_TOKEN * limit // max(1, len(said))))
    sentences = [sentence for at, line in enumerate(said) for sentence in _sentences(at, line.text, longest)]
    if limit <= 0 or not sentences:
        return ""
    choice = _Choice(said, sentences, limit, count)
    choice.hear_open_questions()
    choice.hear_every_stretch()
    choice.fill()
    return choice.text()


def _sentences(at: int, text: str, longest: int) -> Iterator[_Sentence]:
    """Yield what one entry has to offer: its sentences and list items, with a mark where code or a list follows."""
    found = pieces(text)
    marks = _marks(text, found)
    heard = False
    for place, piece in enumerate(found):
        if piece.kind == "code":
            continue
        words = (text[piece.start : piece.end] if piece.kind == "said" else bare(text, piece)).split()
        joined = " ".join(words)
        if len(joined) > longest:
            joined = joined[: word_end(joined, longest)].rstrip() + ELLIPSIS
            words = joined.split()
        if words:
            heard = True
            known = _terms(joined, words)
            mark = marks.get(place, "")
            yield _Sentence(at, place, piece.kind, joined, mark, known, _cues(piece.kind, place, joined, words, known))
    if not heard and marks:
        yield _Sentence(at, -1, "code", "", marks[min(marks)], frozenset(), 1.0)


def _terms(text: str, words: list[str]) -> frozenset[str]:
    """The terms of a sentence. The same words come again and again, so what becomes of them is kept."""
    if len(text) > _LONG_WORD * len(words):  # a script without spaces: these "words" come but once
        return frozenset(terms(text))
    return frozenset().union(*map(_known, words))


@lru_cache(1 << 15)
def _known(word: str) -> tuple[str, ...]:
    return tuple(terms(word))


@lru_cache(1 << 15)
def _name(word: str) -> bool:
    """Whether a word inside a sentence looks like a name: scripts with capitals tell."""
    return len(word) > 1 and word.lstrip(OPENING)[:1].isupper() and word not in _OF_ONESELF


def _cues(kind: str, place: int, text: str, words: list[str], known: frozenset[str]) -> float:
    factor = _FIRST if place == 0 else 1.0
    if _NUMBER.search(text):
        factor *= _NUMBERS
    if any(map(_name, words[1:])):
        factor *= _NAMES
    if not _OF_ONESELF.isdisjoint(words):
        factor *= _ONESELF
    if not _MATTERS.isdisjoint(known):
        factor *= _NOTABLE
    if text[-1] in "!\uff01":
        factor *= _LOUD
    if len(known) < _FEW:
        factor *= _FEW_WORTH
    if kind == "heading" or (kind == "item" and text.rstrip("*_")[-1:] in (":", "\uff1a")):
        factor *= _LABEL
    return factor


def _marks(text: str, found: list[TextPiece]) -> dict[int, str]:
    """What stands for the code and the long lists of an entry, by the piece before each."""
    marks: dict[int, str] = {}
    if all(piece.kind == "said" for piece in found):
        return marks
    start = 0
    for place in range(1, len(found) + 1):
        if place < len(found) and found[place].kind == found[start].kind:
            continue
        kind, size = found[start].kind, place - start
        if kind == "code":
            marks[start - 1] = "[code]"
        elif kind == "item" and size >= _LONG_LIST:
            items = sum(bare(text, piece) != text[piece.start : piece.end] for piece in found[start:place])
            marks[start - 1] = f"[a list of {items}]"
        start = place
    return marks


def _questions(said: Sequence[SummaryLine], sentences: list[_Sentence]) -> dict[int, bool]:
    """Every question, and whether someone else came back to what it asks; the last comes first."""
    found = {at: False for at in range(len(sentences) - 1, -1, -1) if asks(sentences[at].text)}
    sought = {term for at in found for term in sentences[at].terms} - _EMPTY_TALK
    nearest: dict[str, str] = {}  # who spoke of a term next
    for at in range(len(sentences) - 1, -1, -1):
        sentence = sentences[at]
        speaker = said[sentence.entry].speaker
        if at in found:
            found[at] = any(nearest.get(term, speaker) != speaker for term in sentence.terms)
        for term in sentence.terms & sought:
            nearest[term] = speaker
    return found


def _left_open(said: Sequence[SummaryLine], sentences: list[_Sentence], questions: dict[int, bool]) -> Iterator[int]:
    """Yield the questions that were not even followed by someone else's words, the last first."""
    for at, answered in questions.items():
        after = sentences[at].entry + 1
        if not answered and (after == len(said) or said[after].speaker == said[after - 1].speaker):
            yield at


def _weights(sentences: list[_Sentence]) -> dict[str, float]:
    """What each term weighs: the more, the fewer sentences have it."""
    spread = Counter(term for sentence in sentences for term in sentence.terms)
    total = len(sentences)
    return {term: 0.0 if term in _EMPTY_TALK else math.log(1 + total / n) for term, n in spread.items()}


def _factors(said: Sequence[SummaryLine], sentences: list[_Sentence], questions: dict[int, bool]) -> list[float]:
    """How much more or less each sentence is worth than its terms."""
    volume: Counter[str] = Counter()
    for sentence in sentences:
        volume[said[sentence.entry].speaker] += len(sentence.text) + 1
    mean = volume.total() / len(volume)
    quiet = {speaker: (mean / size) ** _QUIET for speaker, size in volume.items()}
    sizes = Counter(sentence.entry for sentence in sentences)
    factors = [quiet[said[sentence.entry].speaker] * sentence.cues for sentence in sentences]
    for at, sentence in enumerate(sentences):
        if sentence.kind == "item" and sizes[sentence.entry] >= _LONG_LIST:
            factors[at] *= _ITEM
    for at, answered in questions.items():
        factors[at] *= _ANSWERED if answered else _UNANSWERED
    return factors


class _Choice:
    """What was chosen so far, and what each other sentence is still worth."""

    def __init__(self, said: Sequence[SummaryLine], sentences: list[_Sentence], limit: int, count: Count) -> None:
        self._said, self._sentences, self._limit, self._count = said, sentences, limit, count
        self._weights = _weights(sentences)
        self._questions = _questions(said, sentences)
        self._factors = _factors(said, sentences, self._questions)
        self._full = [fsum(map(self._weights.__getitem__, sentence.terms)) for sentence in sentences]
        self._told: set[str] = set()
        self._taken: list[int] = []
        self._lines: dict[int, list[int]] = {}  # entry -> its sentences
        self._rates = [self._rate(at) for at in range(len(sentences))]  # as more is told, they fall
        days = len({line.time.date() for line in said if line.time})
        self._room = limit - min(limit // 4, days * count(", 2000-12-31"))

    def hear_open_questions(self) -> None:
        """Take the questions that nobody answered, in not more than half of the room."""
        kept = self._room // 2
        self._room -= kept
        for at in _left_open(self._said, self._sentences, self._questions):
            self._take(at)
        self._room += kept

    def hear_every_stretch(self) -> None:
        """Take the best of every stretch, as long as the room allows, so that nothing long is passed over."""
        entries = len(self._said)
        stretches = max(1, min(self._limit // _HEARD_TOKENS, entries))
        best: dict[int, int] = {}
        for at, rate in enumerate(self._rates):
            stretch = self._sentences[at].entry * stretches // entries
            if rate > (self._rates[best[stretch]] if stretch in best else 0):
                best[stretch] = at
        for at in sorted(best.values(), key=lambda at: (-self._rates[at], at)):
            if not (found := self._sentences[at].terms) or not found <= self._told:
                self._take(at)

    def fill(self) -> None:
        """Take what is worth most for its length until nothing fits."""
        heap = [(-rate, at) for at, rate in enumerate(self._rates) if rate > 0]
        heapify(heap)
        for _ in range(_ROUNDS):
            self._fill(heap)
            room = self._limit - self._count(self._rendered())
            if not heap or room <= self._room:
                break
            self._room = room  # lines together may count less than one by one

    def _fill(self, heap: list[tuple[float, int]]) -> None:
        missed: list[tuple[float, int]] = []
        while heap and len(missed) < _MISSES:
            _, at = heappop(heap)
            rate = self._rate(at)
            if rate <= 0:
                continue
            if heap and -rate > heap[0][0]:
                heappush(heap, (-rate, at))  # worth less by now: others come first
            elif not self._take(at):
                missed.append((-rate, at))
        heap += missed
        heapify(heap)

    def _rate(self, at: int) -> float:
        """What a sentence is worth for its length, after all that was told; nothing when it says little new."""
        entry, _, kind, text, _, found, _ = self._sentences[at]
        full = self._full[at]
        if kind == "code" and entry not in self._lines:
            return _HARDLY  # so that a stretch of nothing but code is mentioned
        old = fsum(map(self._weights.__getitem__, found & self._told))
        if full - old <= _NEW * full:
            return 0.0
        worth = (full - (1 - _TOLD) * old) * self._factors[at]
        return worth * _SAME_ENTRY / len(text) if entry in self._lines else worth / (len(text) + _FRAME)

    def _take(self, at: int) -> bool:
        """Add a sentence, if there is room."""
        entry, _, _, text, mark, found, _ = self._sentences[at]
        heard = entry in self._lines
        cost = self._count(f" {ELLIPSIS} {text} {mark}" if heard else self._line(entry, [at]) + "\n")
        if cost > self._room:
            return False
        self._room -= cost
        insort(self._lines.setdefault(entry, []), at)
        self._taken.append(at)
        self._told |= found
        return True

    def _line(self, entry: int, chosen: list[int], day: date | None = None) -> str:
        parts: list[str] = []
        before = None
        for sentence in map(self._sentences.__getitem__, chosen):
            if before and sentence.piece > before.piece + 1:
                parts.append(ELLIPSIS)
            elif before and sentence.kind != "said":
                parts.append(_BETWEEN_ITEMS)
            parts += [sentence.text, sentence.mark]
            before = sentence
        return _framed(self._said[entry], " ".join(filter(None, parts)), day)

    def _rendered(self) -> str:
        lines = []
        day = None
        for entry in sorted(self._lines):
            time = self._said[entry].time
            new = time.date() if time and time.date() != day else None
            day = new or day
            lines.append(self._line(entry, self._lines[entry], new))
        return "\n".join(lines)

    def text(self) -> str:
        """All lines, without the last ones taken where a counter finds them longer together than one by one."""
        rendered = self._rendered()
        while self._taken and self._count(rendered) > self._limit:
            for at in self._taken[-max(1, len(self._taken) // 16) :]:
                self._drop(at)
            rendered = self._rendered()
        return rendered or self._one()

    def _drop(self, at: int) -> None:
        self._taken.remove(at)
        entry = self._sentences[at].entry
        self._lines[entry].remove(at)
        if not self._lines[entry]:
            del self._lines[entry]

    def _one(self) -> str:
        """The best sentence, shortened; empty when even that does not fit."""
        at = max(range(len(self._sentences)), key=lambda at: (self._rates[at], -at))
        sentence = self._sentences[at]
        line = self._said[sentence.entry]
        shortened = cut(sentence.text or sentence.mark, self._limit, lambda part: self._count(_framed(line, part)))
        return _framed(line, shortened) if shortened else ""


def _framed(line: SummaryLine, words: str, day: date | None = None) -> str:
    """One line of a summary: who said it, what, and where it is to be found."""
    speaker = " ".join(line.speaker.split())[:_LONG_NAME]
    cited = f"#{line.number}, {day.isoformat()}" if day else f"#{line.number}"
    return f"- {speaker}: {words} ({cited})"
