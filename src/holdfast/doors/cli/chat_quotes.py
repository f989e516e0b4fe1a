"""An answerer that needs no key and no model: it quotes what recall finds, with where and when, or does not know.

Deliberately absent: making anything up, extraction (rules do that), and looking like a language model. Its sentences
are English; recall works in any script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from holdfast.errors import ModelFailed
from holdfast.ledger.speech import voice
from holdfast.providers.models.model import Reply, Usage
from holdfast.text import terms

if TYPE_CHECKING:
    from holdfast import Memories
    from holdfast.types import Hit, Memory

T = TypeVar("T")

NAME = "quoting"
UNKNOWN = "I do not know that yet."
UNSURE = "I am not sure. The nearest I have:"
NOTED = "Noted:"
ABOUT = (
    "I am no language model: I quote what I remember, with where and when it was said. Tell me something, or ask me "
    "about something you told me. --model names a model that can do more."
)
HELLO = "Hello. Tell me something, and I will remember it; or ask me about what you told me."
_MOST = 3
_LISTED = 12
_LONG = 120
_OWN = ("[", UNKNOWN, UNSURE, NOTED, HELLO, ABOUT[:30], "You said:", "The agent said:", "This is what I", "“")
_BLOCKS = re.compile(r"(?:<(news|state|recalled)>\n.*?\n</\1>\s*)*", re.DOTALL)
_ASKS = re.compile(
    r".*[?\uff1f\u061f]\s*\Z|\W*(?:(?:and|so|but|ok(?:ay)?|please|hey|well)\W+)*(?:tell me|remind me|show me|"
    r"(?:what|who|whom|whose|which|where|when|why|how)(?:'s|(?: \w+)? (?:is|are|was|were|do|does|did|can|could|will|"
    r"would|have|has|had|should))|"
    r"(?:do|does|did|is|are|was|were|am|can|could|will|would|have|has|had|should) "
    r"(?:i|you|we|he|she|it|they|my|your|our|his|her|the|this|that|there|any\w*))\b",
    re.IGNORECASE | re.DOTALL,
)
_GREETS = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|evening|afternoon|day)|thanks?|thank you)(?: there)?\W*", re.IGNORECASE
)
_WHO = re.compile(r"(?:(?:who|what) are you|what can you do|how do(?:es)? (?:you|this) work|help)\W*", re.IGNORECASE)
_ALL = re.compile(r"what do you (?:already )?(?:know|remember)(?: of me| about me| so far)?\W*$", re.IGNORECASE)


class Quoting:
    """Answers by quoting from a handle of memories, which the chat gives it. It uses no tools and counts no tokens."""

    name = NAME

    def __init__(self, memory: Memories | None = None) -> None:
        self.memory = memory

    def reply(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        return Reply(self._answer(_asked(messages)), usage=Usage(requests=0), model=NAME, stop="end")

    def stream(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Iterator[str | Reply]:
        whole = self.reply(messages)
        yield from whole.text.splitlines(keepends=True)
        yield whole

    def extract(self, messages: list[dict[str, Any]], shape: type[T], *, timeout_s: float | None = None) -> NoReturn:
        raise ModelFailed(
            f"The answerer {NAME!r} only quotes: it cannot make a {shape.__name__}. Name a model for that.",
            model=NAME, reason="quoting", partial="",
        )  # fmt: skip

    def _answer(self, asked: str) -> str:
        if self.memory is None or _WHO.fullmatch(asked):
            return ABOUT
        if _GREETS.fullmatch(asked):
            return HELLO
        if _ALL.match(asked):
            return _everything(self.memory)
        if not _ASKS.match(asked):
            return f"{NOTED} “{_short(asked)}” From now on I can quote that."
        found = self.memory.recall(asked, 10)
        lines = _different([hit for hit in found if _says_something(hit)])
        if not lines:
            return f"{UNKNOWN} Tell me, and I will."
        good = [hit for hit in lines if _shares_a_word(hit, asked)][:_MOST]
        if not good or not found.relevant:
            return f"{UNSURE} {_quoted((good or lines)[0])}."
        return f"{_quoted(good[0])}." if len(good) == 1 else _listed("This is what I remember:", map(_quoted, good))


def _everything(memory: Memories) -> str:
    """Facts as they are now, then what is remembered without being a fact."""
    known = [*memory.facts(), *(each for each in memory.memories(limit=100) if each.key is None)]
    if not known:
        return f"{UNKNOWN} Tell me something about you."
    return _listed("This is what I know:", map(_remembered, known[:_LISTED]))


def _asked(messages: list[dict[str, Any]]) -> str:
    """The question itself, without the blocks that a context puts before it."""
    content = messages[-1].get("content") or "" if messages else ""
    if not isinstance(content, str):
        content = "\n".join(part["text"] for part in content if isinstance(part, dict) and "text" in part)
    blocks = _BLOCKS.match(content)
    return content[blocks.end() if blocks else 0 :].strip()


def _says_something(hit: Hit) -> bool:
    """Whether a hit is worth quoting: not a tool call or a question, nor what a session or this answerer said."""
    if hit.entry is not None and hit.entry.kind != "message":
        return False
    text = hit.text.strip()
    return bool(text) and not _ASKS.match(text) and not _GREETS.fullmatch(text) and not text.startswith(_OWN)


def _shares_a_word(hit: Hit, asked: str) -> bool:
    """Whether a hit can be believed to answer: what only lies near in meaning may be about something else."""
    topic = "" if hit.memory is None else hit.memory.key or ""
    return not set(terms(asked)).isdisjoint(terms(f"{topic} {hit.text}"))


def _different(hits: list[Hit]) -> list[Hit]:
    """Hits that say something which those before them do not say in the same words."""
    found: list[Hit] = []
    for hit in hits:
        if not any(hit.text in other.text or other.text in hit.text for other in found):
            found.append(hit)
    return found


def _quoted(hit: Hit) -> str:
    if hit.memory is not None:
        return _remembered(hit.memory)
    words = f"“{_short(hit.text)}”"
    if hit.file is not None:
        return f"{words} (file {hit.file.path}, {hit.time:%Y-%m-%d})"
    if hit.entry is None:
        return words
    role = voice(hit.entry.kind, hit.entry.content, hit.trust).role
    said = {"user": "You said: ", "assistant": "The agent said: "}.get(role, "")
    return f"{said}{words} ({hit.entry.thread}#{hit.entry.number}, {hit.time:%Y-%m-%d})"


def _remembered(memory: Memory) -> str:
    if memory.key is not None:
        return f"“{_short(memory.text)}” (fact {memory.key}, since {memory.valid_from:%Y-%m-%d})"
    return f"“{_short(memory.text)}” (memory {memory.id}, {memory.recorded_at:%Y-%m-%d})"


def _listed(head: str, lines: Any) -> str:
    return "\n".join([head, *(f"- {line}" for line in lines)])


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONG else f"{words[:_LONG].rstrip()}…"
