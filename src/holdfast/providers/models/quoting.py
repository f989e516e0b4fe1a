"""An answerer without a key or a model: it quotes what it was shown, with place and time, or says it does not know.

It reads the page that a context makes, by the marks that are on it: facts and summaries in the system text, the turns,
the state and what was recalled beside the question. What fits the question is quoted word for word. Its few sentences
are English; it matches words in any script. Deliberately absent: making anything up, extraction (rules do that), and
looking like a language model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec

from holdfast.errors import ModelFailed
from holdfast.providers.models.model import Reply, Usage
from holdfast.text import terms

T = TypeVar("T")

NAME = "quoting"
UNKNOWN = "I do not know that yet."
NOTED = "Noted:"
ABOUT = (
    "I am no language model: I quote what I remember, with where and when it was said. Tell me something, or ask me "
    "about something you told me. --model names a model that can do more."
)
_HELLO = "Hello. Tell me something, and I will remember it; or ask me about what you told me."
_THANKS = "You are welcome."
_MOST = 3
_LISTED = 12
_LONG = 120
_ENOUGH = 0.4
_NEAR = 0.8
_LESS = 0.9  # what an agent said is worth a little less than what the user did
_AGENT = "The agent"
_MARKS = ("?", "\uff1f", "\u061f")

_TITLES = {
    "Instructions": "instruction", "Who you talk to": "fact", "What is known": "fact",
    "Where the work stands": "handoff", "Earlier in this conversation": "summary",
}  # fmt: skip
_BLOCK = re.compile(r"<(news|state|recalled)>\n(.*?)\n</\1>\s*", re.DOTALL)
_FACT = re.compile(r"- (?P<key>.+?): (?P<text>.+?) \((?P<since>since [^()]+)\)")
_FIELD = re.compile(r"- (?P<name>[^:]+): (?P<value>.+?)(?: \[(?P<mark>[^\[\]]+)\])?")
_GROUP = re.compile(r"(?P<day>\d{4}-\d\d-\d\d) \([^()]*\), (?P<thread>.*):")
_ENTRY = re.compile(r"- #(?P<number>\d+) (?P<who>[^:]+): (?P<text>.+)")
_SUMMED = re.compile(r"(?:Context: )?(?:- )?(?P<who>[^:“”]{1,40}): (?P<text>.+) \((?P<at>#\d+[^()]*)\)")
_MEMORY = re.compile(r"- (?P<text>.+) \((?P<id>m[a-z2-7]{13}), (?P<day>\d{4}-\d\d-\d\d), [^();]*(?P<mark>;[^()]*)?\)")

_ASKS = re.compile(
    r"\W*(?:(?:and|so|but|ok(?:ay)?|please|hey|well)\W+)*(?:what|who|whom|whose|which|where|when|why|how|"
    r"(?:do|does|did|is|are|was|were|am|can|could|will|would|have|has|had|should) "
    r"(?:i|you|we|he|she|it|they|my|your|our|his|her|the|this|that|there|any\w*)|tell me|remind me|show me)\b",
    re.IGNORECASE,
)
_GREETS = re.compile(r"\W*(?:hi|hello|hey|good (?:morning|evening|afternoon|day))(?: there)?\W*", re.IGNORECASE)
_THANKED = re.compile(r"\W*(?:thanks?|thank you|thx|cheers)\b(?: \w+){0,3}\W*", re.IGNORECASE)
_WHO = re.compile(
    r"(?:who|what) are you|what can you do|how do(?:es)? (?:you|this) work|help\W*$|are you (?:a|an) ", re.IGNORECASE
)
_ALL = re.compile(
    r"what do(?: you|n't you)? (?:already )?(?:know|remember)(?: of me| about me| so far)?\W*$|what have i told you",
    re.IGNORECASE,
)

# Words that ask for the same thing; what is compared is the first of each row.
_ALIKE = """
    home live move resid reloc
    work job employ compani profess occup
    name call
    birthday born birth
    like prefer love enjoy favourit favorit
    seat sit
    allerg allergi
    marri wed
    eat food diet
    flight fli flew
"""
_LIGHT = frozenset(("get", "go", "come", "tell", "told", "know", "rememb", "remind", "say", "said", "show", "thing"))
_SAME = {word: row.split()[0] for row in _ALIKE.strip().splitlines() for word in row.split()}


class Line(NamedTuple):
    """Something that can be quoted: its words, who said them, where that is, and the fact or field that it is about.

    ``sure`` is what is known, rather than said by someone.
    """

    text: str
    by: str
    where: str
    topic: str = ""
    sure: bool = False

    def quoted(self) -> str:
        said = f"“{self.text}”"
        if self.by == "user":
            said = f"You said: {said}"
        elif self.by:
            said = f"{self.by} said: {said}"
        return f"{said} ({self.where})"


class Quoting:
    """Answers by quoting. ``stream`` gives a line at a time; it uses no tools, and nothing is counted."""

    name = NAME

    def __repr__(self) -> str:
        return "Quoting()"

    def reply(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        return Reply(answer(messages), usage=Usage(requests=0), model=NAME, stop="end")

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


def answer(messages: list[dict[str, Any]]) -> str:
    """What can be said to the last message from what the messages show."""
    asked, blocks = _asked(messages)
    if _GREETS.fullmatch(asked):
        return _HELLO
    if _THANKED.fullmatch(asked):
        return _THANKS
    if _WHO.match(asked):
        return ABOUT
    lines = _remembered(messages, blocks)
    if _ALL.match(asked):
        return _everything(lines)
    if not asked.rstrip().endswith(_MARKS) and not _ASKS.match(asked):
        return f"{NOTED} “{_short(asked)}” From now on I can quote that."
    return _quoting(asked, lines)


def _everything(lines: list[Line]) -> str:
    """Facts first; then what was said here, which no fact needs to repeat."""
    known = [line for line in lines if line.topic] + [line for line in lines if line.by == "user"]
    if not known:
        return f"{UNKNOWN} Tell me something about you."
    return _listed("This is what I know:", known[:_LISTED])


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONG else f"{words[:_LONG].rstrip()}…"


def _quoting(asked: str, lines: list[Line]) -> str:
    found = _matching(asked, lines)
    good = _different([line for score, line in found if score >= _ENOUGH])
    if not good:
        nearest = f" The nearest I have: {found[0][1].quoted()}." if found else " Tell me, and I will."
        return UNKNOWN + nearest
    if known := [line for line in good if line.sure]:  # a fact counts for more than what it was learned from
        good = [*known[: _MOST - 1], *[line for line in good if not line.sure][:1]]
    if len(good) == 1:
        return f"{good[0].quoted()}."
    return _listed("This is what I remember:", good[:_MOST])


def _different(lines: list[Line]) -> list[Line]:
    """Lines that say something which those before them do not say in the same words."""
    found: list[Line] = []
    for line in lines:
        if not any(line.text in other.text or other.text in line.text for other in found if not line.sure):
            found.append(line)
    return found


def _listed(head: str, lines: Sequence[Line]) -> str:
    return "\n".join([head, *(f"- {line.quoted()}" for line in lines)])


# What fits the question


def _matching(asked: str, lines: list[Line]) -> list[tuple[float, Line]]:
    """Lines that share words with a question and how much of it they cover, best first; of equals the latest said."""
    wanted = _meant(asked) - _LIGHT or _meant(asked)
    having = [_meant(f"{line.topic} {line.text}") for line in lines]
    worth = {term: math.log(2 + len(lines) / (1 + sum(term in words for words in having))) for term in wanted}
    whole = sum(worth.values()) or 1.0
    found = [
        (sum(worth[term] for term in wanted & words) / whole * (_LESS if line.by == _AGENT else 1), line)
        for line, words in zip(lines, having, strict=True)
        if wanted & words
    ]
    found.sort(key=lambda pair: -round(pair[0], 6))  # stable: lines come with the latest first
    best = found[0][0] if found else 0.0
    return [(score, line) for score, line in found if score >= best * _NEAR]


def _meant(text: str) -> set[str]:
    return {_SAME.get(term, term) for term in terms(text)}


# What the page shows


def _asked(messages: list[dict[str, Any]]) -> tuple[str, dict[str, str]]:
    """The question itself, and the blocks that stand before it."""
    text, blocks, place = _text(messages[-1]) if messages else "", {}, 0
    while block := _BLOCK.match(text, place):
        blocks[block[1]], place = block[2], block.end()
    return text[place:].strip(), blocks


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def _remembered(messages: list[dict[str, Any]], blocks: dict[str, str]) -> list[Line]:
    """All that can be quoted, what was said last first. Each text once; questions and own answers are not source."""
    system = _sections("\n".join(_text(message) for message in messages if message.get("role") == "system"))
    lines = [
        *_turns(messages[:-1]),
        *_facts(blocks.get("news", "")),
        *_facts(system.get("fact", "")),
        *_fields(blocks.get("state", "")),
        *_recalled(blocks.get("recalled", "")),
        *_loose(system.get("summary", ""), "from the summary of earlier"),
        *_loose(system.get("handoff", ""), "from the handoff"),
        *_loose(system.get("instruction", ""), "as you instructed"),
    ]
    return list({line.text.casefold(): line for line in reversed(lines)}.values())[::-1]


def _sections(system: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    kind = ""
    for line in system.splitlines():
        if line.startswith("# ") and line[2:] in _TITLES:
            kind = _TITLES[line[2:]]
        elif kind:
            found.setdefault(kind, []).append(line)
    return {kind: "\n".join(lines) for kind, lines in found.items()}


def _turns(messages: Sequence[dict[str, Any]]) -> Iterator[Line]:
    for message in reversed(messages):
        text = " ".join(_text(message).split())
        role = message.get("role")
        if role in ("user", "assistant") and text and _is_source(text):
            yield Line(text, _called(str(role)), "in this conversation")


def _facts(text: str) -> Iterator[Line]:
    for line in text.splitlines():
        if fact := _FACT.match(line):
            yield Line(fact["text"], "", f"fact {fact['key']}, {fact['since']}", fact["key"], sure=True)


def _fields(text: str) -> Iterator[Line]:
    """The values of a state, each by itself; what is marked on a field goes with all of its values."""
    for line in text.splitlines():
        if field := _FIELD.fullmatch(line):
            mark = f"; {field['mark']}" if field["mark"] else ""
            for path, value in _leaves(field["name"], _read(field["value"])):
                yield Line(value, "", f"state {path}{mark}", path.replace(".", " "), sure=True)


def _read(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except msgspec.DecodeError:
        return text


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and "value" in value:  # with when and by whom it was confirmed
        yield from _leaves(path, value["value"])
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(path, inner)
    elif value not in (None, ""):
        yield path, str(value)


def _recalled(text: str) -> Iterator[Line]:
    """Hits: memories first, then what was said, the latest day first."""
    memories: list[Line] = []
    entries: list[Line] = []
    group: re.Match[str] | None = None
    for line in text.splitlines():
        group = _GROUP.fullmatch(line) or group
        if memory := _MEMORY.fullmatch(line):
            memories.append(
                Line(memory["text"], "", f"memory {memory['id']}, {memory['day']}{memory['mark'] or ''}", sure=True)
            )
        elif group and (entry := _ENTRY.fullmatch(line)) and _is_source(entry["text"]):
            where = f"{group['thread']}#{entry['number']}, {group['day']}"
            entries.append(Line(entry["text"], _called(entry["who"]), where))
    return iter([*reversed(memories), *reversed(entries)])


def _loose(text: str, where: str) -> Iterator[Line]:
    for line in text.splitlines():
        words = line.strip().removeprefix("- ")
        said = _SUMMED.fullmatch(words)
        if said is not None:
            if _is_source(said["text"]):
                yield Line(said["text"], _called(said["who"]), f"{said['at']}, {where}")
        elif words and _is_source(words) and not re.fullmatch(r"Entries \d+ to \d+:", words):
            yield Line(words, "", where)


def _called(who: str) -> str:
    return _AGENT if who == "assistant" else who


def _is_source(text: str) -> bool:
    """Whether a text says something: no question, no remark of a session, and not what this answerer said itself."""
    if text.endswith(_MARKS) or text.startswith(("[", UNKNOWN, NOTED, _HELLO, _THANKS, ABOUT[:30])):
        return False
    if _ASKS.match(text) or _GREETS.fullmatch(text) or _THANKED.fullmatch(text):
        return False
    return not re.match(r"(?:You said|The agent said|This is what I (?:know|remember)): ?|“", text)
