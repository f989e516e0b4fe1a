"""What a query asks for: its topic, its class, whom and when it names.

A question has a frame ("Can you list the order in which I brought up …") and a topic; only the topic should be looked
for, and the frame says how. Classes are general patterns of English; a query in another language has none and is taken
whole. Deliberately absent: what a class is worth (``weights``), and any model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from unicodedata import normalize

import msgspec

from holdfast import text, when
from holdfast.clock import to_datetime, to_micros
from holdfast.retrieval.corpus import Corpus
from holdfast.retrieval.segment import hashed

_CLASSES = {
    "past": (
        r"\b(?:did|was|were|have|has|had|been|said|say|mention(?:ed)?|told|discuss(?:ed)?|talked|brought|asked|passed|"
        r"across (?:my|our|all)|throughout|our (?:conversation|chat|discussion|session)s?|previous(?:ly)?|earlier|last time|"
        r"so far|originally|initially)\b"
    ),
    "order": (
        r"\b(?:in (?:what|which) order|order in which|in order\b(?! to)|the order\b|chronolog\w*|sequence (?:of|in)|"
        r"timeline of|in sequence|list in order)"
    ),
    "summary": r"\b(?:summar\w+|overview|recap|sum up|run[- ]?down|big picture|bring me up to speed)\b",
    "advice": (
        r"(?:\b(?:can|could|would|will) you\b|\bplease\b|\bhow (?:do|should|can|would|could|might) (?:i|we|you)\b|"
        r"\bwhat (?:should|would|can|could|do) (?:i|you|we)\b|\bwhat (?:are|is) (?:some|the best|a good|good)\b|"
        r"\bwhat'?s the best\b|\b(?:should|could) i\b|\b(?:suggest|recommend)\b|"
        r"\bi'?m (?:planning|looking|working|thinking|trying|about)\b|\bhelp me\b|\bany (?:tips|ideas|advice|suggestions)\b|"
        r"\bwhat \w+ (?:should|would|can) (?:i|you)\b|\bwalk me through\b|\bexplain\b|\bshow me\b|\btell me\b)"
    ),
    "told": r"\b(?:did|have|had) i\b|\bi (?:said|mentioned|told)\b",
    "whether": (
        r"^\s*(?:have|has|had|did|do|does|am|is|are|was|were|will|would|can|could)\s+(?:i|we|my|he|she|they|[A-Z]\w+)\b"
    ),
    "count": (
        r"\b(?:how (?:many|much|often|long|far|old)|total|number of|"
        r"what (?:percentage|amount|rate|score|price|budget|cost))\b"
    ),
    "when": (
        r"\b(?:when|what (?:date|day|time|year|month)|which (?:date|day|year|month)|how (?:long|recent)|since when|deadline|"
        r"scheduled)\b|\bbetween\b.{1,200}\band\b|\bhow (?:many|long)\b.{1,80}(?:days|weeks|months|years|hours|time)\b"
    ),
    "answered": (
        r"\b(?:did|have|had) you\b|\byou (?:recommend(?:ed)?|suggest(?:ed)?|said|told|gave|mention(?:ed)?|advis\w+|"
        r"explain(?:ed)?|propos\w+|provid\w+|help(?:ed)?)\b|"
        r"\byour (?:advice|suggestion|recommendation|answer|response|explanation)s?\b"
    ),
    "asking_you": r"\b(?:can|could|would|will) you\b",
    "own": r"\b(?:i|me|my|mine|i'm|i've|we|our)\b",
    "where": r"\bwhere\b|\b(?:which|what) (?:city|country|place|state)\b",
    "suggested": r"\b(?:suggest|recommend|advi[cs]e|offer|encourage|propose|tell|tip)",
    "liking": r"\b(?:favou?rite|like|love|enjoy|hobb|prefer)",
    "state": (
        r"^\s*(?:what(?:'s| is| are| does| do)|how (?:many|much|long|often|far|old)|"
        r"when (?:is|are|does|do|am|will|should)|"
        r"what (?:time|date|day|number|percentage|rate|version|size|price|amount|\w+ rate)|which|where (?:is|are|do|does)|"
        r"who (?:is|are))\b"
    ),
    "not_state": (
        r"\b(?:did|was|were|had|said|mention(?:ed)?|told|passed|between|originally|initially|previous(?:ly)?|across|"
        r"throughout|different)\b"
    ),
}
_MATCH = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _CLASSES.items()}

_FRAMES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bmention (?:only|just)\b[^.?!]{0,200}[.?!]?|\b(?:only|exactly|just) \w+ items?\b",
        r"\b(?:can|could|would|will) you (?:please )?(?:also )?(?:help me |quickly |briefly )?(?:list|give me|"
        r"provide(?: me)?(?: with)?|walk me through|tell me|show me|summari[sz]e|recap|outline|describe|explain|"
        r"remind me(?: of)?|suggest|recommend|help me(?: to)?)?\b",
        r"\b(?:a|an|the) (?:\w+ )?(?:summary|overview|recap|rundown) (?:of|about|on)\b|"
        r"\b(?:summari[sz]e|summary|overview|recap|sum up)\b",
        r"\b(?:list )?(?:in )?(?:the )?order (?:in which|of|that)\b|"
        r"\b(?:list )?in (?:chronological |the right )?order\b(?! to)|\bin sequence\b",
        r"\b(?:how )?(?:i|we)(?:'ve| have)? (?:brought up|mentioned|discussed|talked about|raised|covered|asked about|"
        r"worked through|said|told you(?: about)?)\b|\bdid (?:i|we) (?:say|mention|bring up|discuss|tell you)\b|"
        r"\bwe(?:'ve| have) (?:talked|spoken) about\b",
        r"\b(?:throughout|across|during|over|from|in|based on) (?:all )?(?:of )?(?:my|our|the) "
        r"(?:recent |previous |past |various )?(?:conversations?|chats?|discussions?|sessions?|messages?|questions?|requests?)\b|"
        r"\bso far\b|\bover time\b|\bacross all sessions\b",
        r"\b(?:different|various|several|specific|key|certain) (?:aspects?|ways?|types?|kinds?|parts?|details?|concepts?|"
        r"topics?|things?) (?:of|related to|about|in|for|regarding)?\b|\bdifferent\b",
        r"\bhow (?:my|i|the|our) (?=.{0,300}\b(?:has|have|had|evolved|developed|progressed|changed)\b)|"
        r"\b(?:has|have) (?:been )?(?:developed|evolved|progressed|changed)(?: and changed)?\b|\bevolved\b|\bincluding\b|"
        r"\brelated (?:details|plans)\b",
    )
]
_LONG = 400
"""A query longer than this has a sentence that asks, and a preface."""
_READ = 5_000
"""Of a very long query, this many characters of its beginning and of its end are read."""
_MOST_TERMS = 64
_PREFACE = 0.3
"""What a term of the preface is worth beside one of the sentence that asks."""
_SENTENCE = re.compile(r"[^.!?\n\u3002\uff01\uff1f]+[.!?\u3002\uff01\uff1f]*")
_ASKING = ("?", "\uff1f", "\u061f")
_ASKED = re.compile(
    r"\W*(?:what|who|whom|whose|which|where|when|why|how|do|does|did|is|are|was|were|can|could|will|would|have|has|"
    r"should)\b",
    re.IGNORECASE,
)
_MARKS = "\"'.,;:!?()[]{}<>«»“”„…"


class RecallQuery(msgspec.Struct, frozen=True):
    """A recall's question and what it may find. Times are microseconds; ``kinds`` of None means every kind; ``subject``
    is whom a question in the first person is about, and ``personal`` whether that is a user."""

    text: str
    k: int
    now: int
    as_of: int | None = None
    kinds: tuple[str, ...] | None = None
    marks: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    trust: int = 0
    subject: str = ""
    personal: bool = False


class ParsedQuery(NamedTuple):
    """A query as it was understood. ``asks`` is the sentence that asks, or all of a short query. ``terms`` are hashes
    with weights, ``names`` hashes of words that may be speakers, ``grams`` of what may be entities."""

    asks: str
    topic: str
    words: dict[str, float]
    terms: dict[int, float]
    names: dict[int, str]
    grams: tuple[int, ...]
    classes: frozenset[str]
    spans: tuple[when.Span, ...]

    def __contains__(self, name: object) -> bool:
        return name in self.classes


def classes(query: str) -> frozenset[str]:
    """The classes that a query belongs to."""
    query = query.replace("\u2019", "'")
    found = {name for name, pattern in _MATCH.items() if pattern.search(query)}
    if "order" in found:
        found.discard("summary")
    wide = found & {"order", "summary"}
    if "asking_you" in found:
        found.discard("answered")
    if wide or found & {"answered", "told"}:
        found.discard("advice")
    if wide:
        found.add("wide")
    if "advice" in found or "past" not in found:
        found.add("present")
    if "state" in found and "not_state" not in found:
        found.add("current")
    return frozenset(found - {"asking_you", "told", "state", "not_state"})


def topic(query: str) -> str:
    """The query without the words that only say how to answer; the whole query where little would be left."""
    rest = query.replace("\u2019", "'")
    for frame in _FRAMES:
        rest = frame.sub(" ", rest)
    rest = " ".join(rest.split()).strip(" ,.?!")
    return rest if len(re.findall(r"[^\W\d_]{3,}", rest)) >= 2 else query


def read(query: str, now: int) -> ParsedQuery:
    """Read a query. ``now`` is the moment that its time words are meant from.

    What a long query asks for stands in one of its sentences; the terms of the others count for less.
    """
    query = query if len(query) <= 2 * _READ else f"{query[:_READ]}\n{query[-_READ:]}"
    asks = asking(query)
    about = topic(asks)
    words = dict.fromkeys(text.terms(about), 1.0)
    for term in text.terms(query) if asks != query else ():
        words.setdefault(term, _PREFACE)
    names = {hashed(word): word for word in text.words(asks)}
    terms = {hashed(term): weight for term, weight in words.items()}
    spans = tuple(when.find(asks, to_datetime(now)))
    return ParsedQuery(asks, about, words, terms, names, tuple(_grams(asks)), classes(asks), spans)


def asking(query: str) -> str:
    """The sentence of a long query that asks: the last that ends in a question mark, or the last of all."""
    if len(query) <= _LONG:
        return query
    sentences = [found[0].strip() for found in _SENTENCE.finditer(query) if len(list(text.words(found[0]))) > 2]
    asked = [sentence for sentence in sentences if sentence.endswith(_ASKING)]
    return ((asked or sentences)[-1] if sentences else query)[-2 * _LONG :]


def is_question(query: str) -> bool:
    """Whether something is asked, and not told."""
    return query.rstrip().endswith(_ASKING) or _ASKED.match(query) is not None


def telling(reading: ParsedQuery, corpus: Corpus) -> ParsedQuery:
    """A query with the terms that tell most, where it has too many: those that it asks with, then the rarest."""
    if len(reading.terms) <= _MOST_TERMS:
        return reading
    held = [[len(holder) for holder, _ in segment.holders(list(reading.terms))] for segment in corpus.segments]
    rarity = [sum(counts) or 2**62 for counts in zip(*held, strict=True)] or [0] * len(reading.terms)
    order = sorted(zip(reading.words.items(), reading.terms, rarity, strict=True), key=lambda one: (-one[0][1], one[2]))
    kept = order[:_MOST_TERMS]
    words = dict(word for word, _, _ in kept)
    return reading._replace(words=words, terms={term: weight for (_, weight), term, _ in kept})


def _grams(query: str) -> Iterator[int]:
    """What may be the name of an entity: one, two or three words of a query that stand side by side."""
    folded = normalize("NFKC", query.replace("\u2019", "'")).casefold()
    words = [word.strip(_MARKS).removesuffix("'s") for word in folded.split()]
    for size in (1, 2, 3):
        for at in range(len(words) - size + 1):
            yield hashed(" ".join(words[at : at + size]))


def without_names(reading: ParsedQuery, corpus: Corpus) -> str:
    """What is asked for, without the names of speakers: every turn of theirs would be near.

    Sentence models learned from whole questions. Only where many turns are wanted does the frame say nothing.
    """
    whole = reading.topic if "wide" in reading else reading.asks
    spoken = corpus.speakers()
    named = {word for number, word in reading.names.items() if number in spoken}
    if not named:
        return whole
    kept = [word for word in whole.split() if not named & set(text.words(word))]
    return " ".join(kept) if len(kept) >= 2 else whole


def within(reading: ParsedQuery, first: int, last: int) -> list[tuple[int, int]]:
    """The intervals that a query's time words mean, in microseconds, for a corpus that was said from first to last.

    Where nothing was said at the time that is meant from now, the words are taken as if they were asked right after
    the last thing was said: "in May" then is the last May that was talked in.
    """
    found = [_interval(span) for span in reading.spans]
    if not found or any(since <= last and until > first for since, until in found):
        return found
    return [_interval(span) for span in when.find(reading.asks, to_datetime(last))]


def _interval(span: when.Span) -> tuple[int, int]:
    since = -(2**63) if span.since is None else to_micros(span.since)
    return since, 2**63 - 1 if span.until is None else to_micros(span.until)
