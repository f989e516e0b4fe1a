"""An answerer that needs no key and no model: it quotes what recall finds, with who said it and when, or does not know.

It does not know when recall says that nothing answers (``found.relevant``); then it says what it looked for, and shows
what came closest, as such. Deliberately absent: making anything up, a limit of its own below which it gives up,
extraction (rules do that), and looking like a language model. Its sentences are English; recall works in any script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from holdfast.doors.cli import chat_choosing
from holdfast.doors.cli.chat_choosing import OUTSIDE, Quote, short, sought, voice_of
from holdfast.errors import ModelFailed
from holdfast.ledger.speech import ASSISTANTS
from holdfast.providers.models.model import Reply, Usage
from holdfast.retrieval.wanted import wanted
from holdfast.types import Entry, Hit

if TYPE_CHECKING:
    from holdfast import Memories, Store

T = TypeVar("T")

NAME = "quoting"
UNKNOWN = "I do not know that."
CLOSE = "Not an answer, but close:"
LACKING = "I find {}, only this:"
SOURCE = "\nFrom: "
NOTED = "Noted:"
ABOUT = (
    "I am no language model: I quote what I remember, with where and when it was said. Tell me something, or ask me "
    "about something you told me. --model names a model that can do more."
)
WELCOME = "You are welcome."
UNFORGOTTEN = (
    "I forget nothing because I am told to in passing. /memory lists what is remembered, /forget ID forgets one of it; "
    "`holdfast erase` removes messages, too."
)
HELLO = "Hello. Tell me something, and I will remember it; or ask me about what you told me."
_HITS = 50
_LISTED = 12
_NAMED = 6
_OWN = (
    UNKNOWN, NOTED, HELLO, WELCOME, UNFORGOTTEN, ABOUT[:30], "I find no ", "You said: “", "The agent said: “",
    "You asked “", "Asked “", "A tool returned: “", "From outside: “", "This is what I", "“",
)  # fmt: skip
_BLOCKS = re.compile(r"(?:<(news|state|recalled)>\n.*?\n</\1>\s*)*", re.DOTALL)
_ASKS = re.compile(
    r".*[?\uff1f\u061f]\s*\Z|\W*(?:(?:and|so|but|ok(?:ay)?|please|hey|well)\W+)*(?:tell me|remind me(?! that)|show me|"
    r"(?:who|whom|where|when|why|(?:how|what|which|whose)(?: (?!(?:i|we|you|he|she|it|they|my|our)\b)\w+){0,3})(?:'s| "
    r"(?:is|are|was|were|do|does|did|can|could|will|would|have|has|had|should))|"
    r"(?:do|does|is|are|am|can|could|will|would|should|did|was|were|have|has|had) "
    r"(?:i|you|we|he|she|it|they|my|your|our|his|her|there|any\w*)|(?:do|does|is|are|can|could|will|would) "
    r"(?:the|this|that))\b",
    re.IGNORECASE | re.DOTALL,
)
_GREETS = re.compile(r"\W*(?:hi|hello|hey|good (?:morning|evening|afternoon|day))(?: there)?\W*", re.IGNORECASE)
_THANKS = re.compile(r"\W*(?:many )?(?:thanks?|thank you|cheers)(?: (?:so|very) much| a lot| again)?\W*", re.IGNORECASE)
_FORGETS = re.compile(r"\W*(?:please )?(?:forget|delete|erase|remove)\b(?! to\b)", re.IGNORECASE)
_WHO = re.compile(r"(?:(?:who|what) are you|what can you do|how do(?:es)? (?:you|this) work|help)\W*", re.IGNORECASE)
_ALL = re.compile(r"what do you (?:already )?(?:know|remember)(?: of me| about me| so far)?\W*$", re.IGNORECASE)


class FoundQuotes(NamedTuple):
    """What may be quoted for a question, best first, and whether it answers it."""

    known: bool
    quotes: list[Quote]


class Quoting:
    """Answers by quoting from a handle of memories, which the chat gives it. It uses no tools and counts no tokens."""

    name = NAME

    def __init__(self, store: Store | None = None, memory: Memories | None = None) -> None:
        self._store, self._memory = store, memory
        self._heard: tuple[str, FoundQuotes] | None = None
        self.quoted: tuple[str, ...] = ()
        """Where the quotes of the last answer are from."""

    def look_into(self, store: Store, memory: Memories) -> None:
        """Answer from these memories, and from the threads that they see."""
        self._store, self._memory = store, memory

    def reply(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        return whole(self._answer(question_in(messages)))

    def stream(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Iterator[str | Reply]:
        reply = self.reply(messages)
        yield from reply.text.splitlines(keepends=True)
        yield reply

    def extract(self, messages: list[dict[str, Any]], shape: type[T], *, timeout_s: float | None = None) -> NoReturn:
        raise ModelFailed(
            f"The answerer {NAME!r} only quotes: it cannot make a {shape.__name__}. Name a model for that.",
            model=NAME, reason="quoting", partial="",
        )  # fmt: skip

    def _answer(self, asked: str) -> str:
        return self.courtesy(asked) or told(asked, self.find(asked))

    def courtesy(self, asked: str) -> str:
        """The reply to what is no question after something particular; empty for what is."""
        self.quoted = ()
        if self._memory is None or _WHO.fullmatch(asked):
            return ABOUT
        for says, reply in ((_GREETS, HELLO), (_THANKS, WELCOME)):
            if says.fullmatch(asked):
                return reply
        if _FORGETS.match(asked):
            return UNFORGOTTEN
        if _ALL.match(asked):
            return _everything(self._memory)
        return "" if _ASKS.match(asked) else f"{NOTED} “{short(asked)}” From now on I can quote that."

    def listen(self, asked: str) -> None:
        """Recall for a question that is not on record yet: in the log it would hold all of its own words."""
        if not self.courtesy(asked):
            self._heard = asked, self._find(asked)

    def find(self, asked: str) -> FoundQuotes:
        """What may be quoted for a question."""
        heard, self._heard = self._heard, None
        found = heard[1] if heard is not None and heard[0] == asked else self._find(asked)
        self.quoted = tuple(quote.where for quote in chat_choosing.best(found.quotes)) if found.known else ()
        return found

    def _find(self, asked: str) -> FoundQuotes:
        assert self._memory is not None
        found = self._memory.recall(asked, _HITS)
        quotes = self._chosen(asked, found.hits)
        return FoundQuotes(found.relevant and bool(quotes), quotes)

    def _chosen(self, asked: str, hits: Sequence[Hit]) -> list[Quote]:
        return chat_choosing.choose(asked, hits, _said, self._nearby)

    def _nearby(self, entry: Entry, before: int, after: int) -> list[Entry]:
        assert self._store is not None
        first = max(entry.number - before, 1)
        return self._store.thread(entry.thread).log(after=first - 1, limit=before + 1 + after)


# What it says


def told(asked: str, found: FoundQuotes) -> str:
    """The answer in words: what is known, or that it is not, and what is near."""
    if found.known and found.quotes:
        return answered(asked, found.quotes)
    words = sought(asked)
    looked = f" I looked for {_listed_words(words)}." if words else ""
    close = next((quote for quote in found.quotes if quote.held), None)
    return f"{UNKNOWN}{looked}" + (f" {CLOSE} {close}." if close is not None else " Tell me, and I will.")


def answered(asked: str, quotes: Sequence[Quote]) -> str:
    """The best quotes, and where none of them has what was asked for, what is missing in them."""
    chosen, thing = chat_choosing.best(quotes), wanted(asked)
    lacking = thing is not None and thing.missing and not chosen[0].fits
    first = f"{LACKING.format(thing.missing)} {chosen[0]}." if lacking and thing else f"{chosen[0]}."
    more = [("Earlier" if chat_choosing.is_earlier(quote, chosen[0]) else "Also", quote) for quote in chosen[1:]]
    return "\n".join([first, *(f"{word}: {quote}." for word, quote in more)])


def _listed_words(words: Sequence[str]) -> str:
    named = [f"“{word}”" for word in words[:_NAMED]]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def whole(text: str, usage: Usage | None = None, model: str = NAME) -> Reply:
    return Reply(text, usage=usage or Usage(requests=0), model=model, stop="end", derived=True)


def _everything(memory: Memories) -> str:
    """Facts as they are now, then what is remembered without being a fact."""
    known = [*memory.facts(), *(each for each in memory.memories(limit=100) if each.key is None)]
    if not known:
        return f"{UNKNOWN} Tell me something about you."
    hits = [Hit(each.text, 0.0, each.kind, each.recorded_at, each.trust, each) for each in known[:_LISTED]]
    return "\n".join(["This is what I know:", *(f"- {Quote(hit.text, 0.0, hit)}" for hit in hits)])


def question_in(messages: Sequence[dict[str, Any]]) -> str:
    """The question itself, without the blocks that a context puts before it."""
    content = messages[-1].get("content") or "" if messages else ""
    if not isinstance(content, str):
        content = "\n".join(part["text"] for part in content if isinstance(part, dict) and "text" in part)
    blocks = _BLOCKS.match(content)
    return content[blocks.end() if blocks else 0 :].strip()


def _said(entry: Entry, trust: str | None) -> str:
    """The words of a voice that may be quoted: none of greetings, events, and what this answerer said."""
    if entry.kind not in ("message", "observation"):
        return ""
    voice = voice_of(entry, trust)
    text = "" if trust is None and voice.role in OUTSIDE else voice.text.strip()
    own = voice.role in ASSISTANTS and (text.startswith(_OWN) or SOURCE in text)
    return "" if own or _GREETS.fullmatch(text) or _THANKS.fullmatch(text) or _FORGETS.match(text) else text
