"""Which sentences of what recall found are quoted as an answer, and how they are quoted.

Recall finds entries; an answer is a sentence. Questions are never quoted as answers: what was said next stands in for
them, and for a call of a tool. A sentence counts by the rank of its entry in recall, by the words of the question that
it holds, the rare ones more, and by whether it has the kind of thing that is asked for. Deliberately absent: whether
anything answers at all (recall says so), and any limit on scores.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.context.sentences import asks, bare, pieces
from holdfast.ledger.speech import ASSISTANTS, Speech, voice, voices_in
from holdfast.records import Entry, Hit
from holdfast.retrieval.wanted import WantedThing, wanted
from holdfast.text import stem, terms

MOST = 2
_LONG = 160
_SHORT = 90  # a message of at most so many characters is quoted whole
_AROUND = 6
_RANKS = 2  # how fast a hit loses by its rank
_STANDS_IN = 0.9  # what follows a hit is a little less near than the hit
_HELD, _RIGHT_KIND, _SOME_KIND, _REPLIES, _FACT, _TOOL = 0.3, 0.4, 0.3, 0.3, 0.25, -0.2
_ELSEWHERE = -0.15  # a reply to a question that shares nothing with this one but what it wants
_ALSO = 0.45  # a second sentence is quoted when it is hardly worse
_WORDS = 4
_VAGUE = frozenset(stem(f"{which}{what}") for which in ("any", "some", "every", "no") for what in ("thing", "one")) | {
    "thing"
}
OUTSIDE = ("tool", "function")

Said = Callable[[Entry, str | None], str]
"""The words of an entry that may be quoted, empty for those that may not: of its own voice, or the one trusted so."""
Nearby = Callable[[Entry, int, int], Sequence[Entry]]
"""The entries of the same thread from so many before an entry to so many after it."""


class Quote(NamedTuple):
    """A sentence that may be quoted: of a hit, or of the entry ``of`` that stands in for one. ``to`` is the question
    that it replied to."""

    text: str
    near: float
    hit: Hit
    of: Entry | None = None
    voice: str | None = None  # how far the voice of the entry that said it is trusted, where it is not its own
    to: str = ""
    value: float = 0.0
    held: float = 0.0
    fits: bool = True

    @property
    def where(self) -> str:
        return self.hit.id if self.of is None else f"{self.of.thread}#{self.of.number}"

    @property
    def is_outside(self) -> bool:
        """Whether it came through a tool, a page or a pasted mail, whoever's message that was part of."""
        if self.of is None:
            return False
        return self.of.kind == "observation" or voice_of(self.of, self.voice).role in OUTSIDE

    @property
    def is_fact(self) -> bool:
        return self.hit.memory is not None and self.hit.memory.key is not None

    @property
    def time(self) -> datetime:
        return self.hit.time if self.of is None else self.of.time

    @property
    def words(self) -> str:
        """All that is shown of it when it is quoted, its topic included."""
        topic = (self.hit.memory.key or "").replace("_", " ") if self.hit.memory is not None else ""
        return f"{topic} {self.to} {self.text}"

    def __str__(self) -> str:
        return f"{self._introduced()}“{short(self.text)}” ({self._origin()})"

    def _introduced(self) -> str:
        if self.hit.memory is not None or self.hit.file is not None or self.of is None:
            return ""
        if self.is_outside:
            return "A tool returned: " if self.of.kind == "observation" else "From outside: "
        user, name = role_of(self.of) not in ASSISTANTS, self.of.content.get("name")
        who = name if isinstance(name, str) else "you" if user else "the agent"
        if not self.to:
            return f"{who[0].upper()}{who[1:]} said: "
        return f"{'Asked' if user else 'You asked'} “{short(self.to)}”, {who} said: "

    def _origin(self) -> str:
        memory, file = self.hit.memory, self.hit.file
        if memory is not None:
            heard = "".join(f", from {each.thread}#{each.number}" for each in memory.origin.entries[:1])
            if memory.key is not None:
                return f"fact {memory.key}, since {memory.valid_from:%Y-%m-%d}{heard}"
            return f"memory {memory.id}, {memory.recorded_at:%Y-%m-%d}{heard}"
        if file is not None:
            return f"file {file.path}, {self.hit.time:%Y-%m-%d}"
        return f"{self.where}, {self.time:%Y-%m-%d}"


def choose(question: str, hits: Sequence[Hit], said: Said, nearby: Nearby) -> list[Quote]:
    """What may be quoted, best first; nothing that asks. What no longer holds stands behind what says so."""
    thing = wanted(question)
    listed = _distinct(_quotes(hits, said, nearby))
    found = sorted(_weighed(question, thing, listed), key=lambda quote: -quote.value)
    first = (_outdating(found[0], found) or _fact_of(found[0], found)) if found else None
    if first is None:
        return found
    return [first._replace(value=found[0].value), *(quote for quote in found if quote is not first)]


def _outdating(old: Quote, quotes: Sequence[Quote]) -> Quote | None:
    """What says that a quote no longer holds: in the words that were said, where a memory was made of them."""
    newer = next((quote for quote in quotes if quote.hit.id == old.hit.superseded_by), None)
    said = (quote for quote in quotes if newer is not None and quote.of is not None and quote.where in _sources(newer))
    return next(said, newer)


def _fact_of(said: Quote, quotes: Sequence[Quote]) -> Quote | None:
    """The fact that was heard in what is quoted, where it says all of that."""
    if said.of is None:
        return None
    told = set(terms(said.text))
    heard = (quote for quote in quotes if quote.is_fact and said.where in _sources(quote))
    return next((quote for quote in heard if told.issubset(terms(quote.words))), None)


def best(quotes: Sequence[Quote]) -> list[Quote]:
    """The quotes to answer with: the best one, and another one that is as good and says something else."""
    first = quotes[0]
    others = (
        quote
        for quote in quotes[1:]
        if quote.value >= first.value - _ALSO
        and quote.fits >= first.fits
        and 0 < quote.held >= min(first.held, 0.5)
        and not _sources(quote) & _sources(first)
        and quote.text not in first.text
        and first.text not in quote.text
    )
    return [first, *others][:MOST]


def is_earlier(quote: Quote, first: Quote) -> bool:
    """Whether what is quoted beside the first may no longer hold: it is known not to, or said before a fact began."""
    memory = first.hit.memory
    since = memory.valid_from if memory is not None and first.is_fact else None
    return quote.hit.superseded_by is not None or (since is not None and quote.time < since)


def _sources(quote: Quote) -> set[str]:
    """What was said in one place says the same, once as it was said and once as a fact."""
    memory = quote.hit.memory
    return {quote.where, *(f"{each.thread}#{each.number}" for each in (memory.origin.entries if memory else ()))}


def short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONG else f"{words[:_LONG].rstrip()}…"


def voice_of(entry: Entry, trust: str | None = None) -> Speech:
    """The voice of an entry that is trusted so, or its own one."""
    return voices_in(entry.kind, entry.content)[0] if trust is None else voice(entry.kind, entry.content, trust)


def role_of(entry: Entry) -> str:
    return voice_of(entry).role


# What may be quoted


def _quotes(hits: Sequence[Hit], said: Said, nearby: Nearby) -> Iterator[Quote]:
    for rank, hit in enumerate(hits):
        near = _RANKS / (_RANKS + rank)
        if hit.entry is None:
            yield from (Quote(text, near, hit) for text in _told(hit.text, whole=hit.memory is not None))
        else:
            yield from _of_entry(hit, hit.entry, near, said, nearby(hit.entry, _AROUND, _AROUND))


def _of_entry(hit: Hit, entry: Entry, near: float, said: Said, around: Sequence[Entry]) -> Iterator[Quote]:
    """What an entry says, and what was said next where it asks something or calls a tool."""
    text = said(entry, hit.trust)
    outside = voice_of(entry, hit.trust) != voice_of(entry)
    if entry.kind == "message" or len(text.split()) >= _WORDS:
        asked = "" if outside else _question_before(entry, around, said)
        yield from (Quote(each, near, hit, entry, hit.trust, asked) for each in _told(text))
    open_question = _asked(text) if entry.kind == "message" and not outside else ""
    if open_question or entry.kind in ("tool_call", "observation"):
        reply = _reply(entry, around)
        if reply is not None:
            asked = open_question or _question_before(reply, around, said)
            yield from (Quote(each, near * _STANDS_IN, hit, reply, None, asked) for each in _told(said(reply, None)))


def _told(text: str, *, whole: bool = False) -> list[str]:
    """The sentences of a text that tell something; a short text that asks nothing stays whole."""
    sentences = [bare(text, piece) for piece in pieces(text) if piece.kind != "code"]
    telling = [sentence for sentence in sentences if not asks(sentence)]
    if telling and len(telling) == len(sentences) and (whole or len(text) <= _SHORT):
        return [text.strip()]
    return telling


def _asked(text: str) -> str:
    """The last question of a text, empty where it ends in none."""
    sentences = [bare(text, piece) for piece in pieces(text)]
    return sentences[-1] if sentences and asks(sentences[-1]) else ""


def _question_before(entry: Entry, around: Sequence[Entry], said: Said) -> str:
    """The question that an entry replies to: what the other side said right before it ends in one."""
    before = [each for each in around if each.number < entry.number and each.kind == "message"]
    return _asked(said(before[-1], None)) if before and role_of(before[-1]) != role_of(entry) else ""


def _reply(entry: Entry, around: Sequence[Entry]) -> Entry | None:
    """What was said next, by the other side; after a tool was called, by the agent."""
    later = next((each for each in around if each.number > entry.number and each.kind == "message"), None)
    return later if later is not None and role_of(later) != role_of(entry) else None


def _distinct(quotes: Iterable[Quote]) -> list[Quote]:
    """Each sentence once, as near as it ever was; of the same words, a fact before what it was heard in."""
    found: dict[tuple[str, str], Quote] = {}
    for quote in quotes:
        name = (quote.where, quote.text)
        if name not in found or quote.near > found[name].near:
            found[name] = quote
    return list(found.values())


# What they are worth


def _weighed(question: str, thing: WantedThing | None, quotes: list[Quote]) -> Iterator[Quote]:
    sought = set(terms(question)) - _VAGUE
    named = sought & thing.words if thing is not None else set()
    held = [sought.intersection(terms(quote.words)) for quote in quotes]
    often = Counter(term for each in held for term in each)
    weight = {term: math.log(1 + len(quotes) / (0.5 + often[term])) for term in sought}
    total = sum(weight.values())
    for quote, words in zip(quotes, held, strict=True):
        replies = thing is not None and thing.asks.search(quote.to) is not None
        has = replies or (thing is not None and thing.is_in(quote.text))
        shared = words - named
        share = sum(weight[term] for term in (words | named if has else words)) / total if total else 0.0
        value = quote.near + _HELD * share
        if has and thing is not None:
            value += _RIGHT_KIND if shared or sought == named else _SOME_KIND
            value += _REPLIES * (replies and bool(shared or not thing.missing))
            value += _ELSEWHERE * (bool(quote.to) and replies and not shared and bool(thing.missing))
        value += _FACT * (quote.is_fact and bool(shared or has)) + _TOOL * (
            quote.of is not None and quote.of.kind == "observation"
        )
        fits = has or thing is None or not thing.missing
        helps = replies or not words.issubset(terms(quote.text))  # else the question before it is beside the point
        yield quote._replace(value=value, held=share, fits=fits, to=quote.to if helps else "")


_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")


def sought(question: str) -> list[str]:
    """The words of a question that count, as they were typed, each once."""
    return list(dict.fromkeys(word for word in _WORD.findall(question) if terms(word)))
