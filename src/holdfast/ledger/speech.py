"""What an entry says, whichever client library shaped it: its text, who said it, when, and how far it is to be trusted.

A message may hold what its sender did not say: the result of a tool, a page, a pasted mail. That is a voice of its own,
trusted as little as it deserves, and never the user's word.
Deliberately absent: any change of what is stored. An entry that cannot be read says nothing, and ``verify`` names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from holdfast import when
from holdfast.clock import to_micros
from holdfast.engine.codec import decode
from holdfast.engine.contract import Event
from holdfast.errors import HoldfastError
from holdfast.ledger.blocks import (
    brings_outside,
    call_in,
    is_outside,
    is_outside_key,
    is_outside_role,
    kind_of,
    source_of,
)
from holdfast.records import TRUST

_TIMES = ("time", "timestamp", "created_at", "date")
_NAMES = ("name", "speaker", "author")
_SPOKEN = ("text", "content", "input_text", "output_text", "thinking", "refusal", "input")
_VOUCHED = ("system", "developer")
_HELD = ("text", "content", "parts")
_GIVEN = ("input", "arguments", "args")
_RETURNED = ("title", "url", "source", "output", "outputs", "result", "results", "response", "json", "stdout", "stderr")
_LABELS = ("id", "toolUseId", "status", "format")
_NO_TEXT = frozenset({
    "inlineData", "inline_data", "fileData", "file_data", "thoughtSignature", "thought_signature", "bytes", "s3Location"
})  # fmt: skip
"""Keys under which Gemini and Bedrock put files and seals: long, and nothing that anybody said."""
RESERVED = "holdfast."
"""The prefix of events that Holdfast writes for itself. They are no part of what was said."""
_LONG = 64
ASSISTANTS = frozenset({"assistant", "model", "ai", "bot"})
"""What vendors call the side that a model speaks for."""
USERS = frozenset({"user", "human"})

FRAMEWORK = "$framework"
"""The field of an entry's content, or of a state, in which adapters keep what their framework alone understands.

Each has its part of it under a name of its own. None of it is part of what was said either.
"""


def without_framework(content: dict[str, Any]) -> dict[str, Any]:
    """Content, or a state, as shown to people and models."""
    return {name: value for name, value in content.items() if name != FRAMEWORK}


def framework_parts(content: Any) -> dict[str, Any]:
    """What adapters keep in some content, or a state, by the name of each. Anything else in their field is nobody's."""
    parts = content.get(FRAMEWORK) if isinstance(content, dict) else None
    return parts if isinstance(parts, dict) else {}


_MARKS = ("origin", "trust")
_BLOCK = frozenset({"role", "parts", "body", "message", "image", *_SPOKEN, *_NO_TEXT})
"""Keys of blocks and messages. A dict without any, and without a type, is data: its origin may be an airport."""
_UNSAID = ("role", "of", "id", FRAMEWORK, *_TIMES, *_MARKS)
_PLAIN = {"role", "content", "of", "derived", *_NAMES, *_TIMES}
_VOICED = ("message", "observation", "note")
_OUTSIDE = "tool"


class Speech(NamedTuple):
    """What one voice says in an entry. ``speaker`` is the name it gives, otherwise its role.

    What came from outside in a message of somebody else is a voice of its own: its role is ``tool``, and its speaker
    where it comes from, as far as that is told.
    """

    text: str
    speaker: str
    role: str
    tool: str
    time: int
    trust: str


class _Told(NamedTuple):
    """One text of an entry."""

    text: str
    trust: str
    source: str


def voices(event: Event) -> tuple[Speech, ...]:
    """Each voice of an event that says anything, or else one; see ``voices_in``. What is ``derived`` from other entries
    says nothing: it is found where it was said first."""
    try:
        content = decode(event.body)
    except HoldfastError:
        content = None
    if isinstance(content, dict) and content.get("derived") is True:
        content = {**content, "content": ""}
    own, *outside = voices_in(event.kind, content, event.time)
    return (own, *(one for one in outside if one.text))


def voices_in(kind: str, content: Any, time: int = 0) -> tuple[Speech, ...]:
    """Each voice of an entry: whose entry it is, if that says anything, then what came from outside in it, even if that
    has no text: a picture, say.

    No two of them are trusted alike, so the trust of a hit tells which one was found.
    """
    fields = content if isinstance(content, dict) else {}
    role, name = _text(fields, ("role",)), _text(fields, _NAMES)
    time = _said_at(fields, time)
    own = _trust(kind, role)
    said = fields.get("content")
    if isinstance(said, str) and kind in _VOICED and fields.keys() <= _PLAIN:  # as most of them are
        return (Speech(said, (name or role) if said else "", role, "", time, own),)
    if kind == "tool_call":
        return (Speech(spoken(kind, content), "", role, name, time, own),)
    told = list(_told(kind, content))
    text = "\n".join(one.text for one in told if one.trust == own)
    outside = [one for one in told if one.trust != own]
    if not outside:
        return (Speech(text, (name or role) if text else "", role, "", time, own),)  # without text nobody speaks
    sources = {one.source for one in outside if one.source}
    there = Speech(
        "\n".join(one.text for one in outside if one.text),
        sources.pop() if len(sources) == 1 else _OUTSIDE,
        _OUTSIDE,
        "",
        time,
        least(one.trust for one in outside),
    )
    return (Speech(text, name or role, role, "", time, own), there) if text.strip() else (there,)


def voice(kind: str, content: Any, trust: str) -> Speech:
    """The voice of an entry that is trusted so much."""
    found = voices_in(kind, content)
    return next((one for one in found if one.trust == trust), found[0])


def spoken(kind: str, content: Any) -> str:
    """The text of an entry, with what came from outside in it."""
    if kind == "tool_call" and isinstance(content, dict):
        return "\n".join(_leaves([content.get("name"), content.get("arguments")]))
    return "\n".join(one.text for one in _told(kind, content) if one.text)


def least(trusts: Iterable[str]) -> str:
    """The lowest of some degrees of trust; the highest there is where there are none."""
    return min(trusts, key=TRUST.index, default=TRUST[-1])


def marked(block: dict[str, Any]) -> tuple[str, str] | None:
    """How a block, or a message, is to be trusted at most, and where it comes from; None where it is its sender's own.

    What is from outside by its shape is untrusted. So is what its caller gave an ``origin``, unless a ``trust`` stands
    beside it. A mark can only lower: nothing that a client sends is trusted more than its role.
    """
    origin, given = block.get("origin"), block.get("trust")
    named = " ".join(origin.split()) if isinstance(origin, str) else ""
    if is_outside(block):
        return TRUST[0], named or source_of(block)
    if (origin or given) and (kind_of(block) or not _BLOCK.isdisjoint(block)):
        return given if given in TRUST else TRUST[0], named
    return None


# The texts of an entry


def _told(kind: str, content: Any) -> Iterator[_Told]:
    """Every text of an entry, in order, with an empty one where something from outside begins."""
    if kind == "summary" or (kind == "event" and is_ours(content)):
        return  # derived from other entries, which have the original words
    trust, source, calls = _trust(kind, ""), "", False
    if isinstance(content, dict):
        role = _text(content, ("role",))
        own = trust = _trust(kind, role)
        if kind in _VOICED:
            calls = role.casefold() in ASSISTANTS or (not role and call_in(content) is not None)
            trust, source = _lowered(content, trust, source)
            if trust != own or (own != TRUST[0] and brings_outside(content)):
                yield _Told("", trust if trust != own else TRUST[0], source)
        said = next((content[name] for name in ("content", "text") if name in content), None)
        whole = {name: value for name, value in content.items() if name not in _UNSAID}
        content = said if "content" in content or "text" in content else whole
    if kind in _VOICED:
        yield from _voiced(content, trust, source, calls)
    else:
        yield from (_Told(text, trust, source) for text in _leaves(content))


def _voiced(value: Any, trust: str, source: str, calls: bool) -> Iterator[_Told]:
    """Every text in a value with how far it is to be trusted. ``calls``: what is given to tools in it is its sender's
    own, as it is in an assistant's messages."""
    if isinstance(value, list):
        for item in value:
            yield from _voiced(item, trust, source, calls)
    elif isinstance(value, dict):
        own = trust
        trust, source = _lowered(value, trust, source)
        if trust != own:
            yield _Told("", trust, source)
        gives = calls and call_in(value) is not None
        for name, item in _shown(value, outside=trust == TRUST[0]).items():
            if gives or (calls and name in _GIVEN):
                yield from (_Told(text, trust, source) for text in _leaves(item))
            elif item and trust != TRUST[0] and is_outside_key(name):
                yield from (_Told("", TRUST[0], source), *_voiced(item, TRUST[0], source, calls))
            else:
                yield from _voiced(item, trust, source, calls)
    else:
        yield from (_Told(text, trust, source) for text in _leaves(value))


def _lowered(block: dict[str, Any], trust: str, source: str) -> tuple[str, str]:
    mark = marked(block)
    return (trust, source) if mark is None else (least((trust, mark[0])), mark[1] or source)


def _shown(block: dict[str, Any], *, outside: bool = False) -> dict[str, Any]:
    """What of a block is to be read. Without a type it is data, and all of it is."""
    kind = kind_of(block)
    if not kind:
        hidden = (*_LABELS, *_MARKS) if outside else _MARKS if any(name in block for name in _HELD) else ()
        if "text" in block:
            hidden = (*hidden, "signature")
        return {name: value for name, value in block.items() if name not in hidden and name not in _NO_TEXT}
    if kind == "text" and isinstance(block.get("data"), str):  # the source of a document
        return {"data": block["data"]}
    names = (*_SPOKEN, *_RETURNED) if outside else _SPOKEN
    return {name: block[name] for name in names if name in block}


def is_ours(content: Any) -> bool:
    """Whether an event was written by Holdfast for itself."""
    name = content.get("name") if isinstance(content, dict) else None
    return isinstance(name, str) and name.startswith(RESERVED)


def _leaves(value: Any) -> Iterator[str]:
    """Every text in a value, without what client libraries put around it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield str(value)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in _shown(value).values():
            yield from _leaves(item)


def _said_at(fields: dict[str, Any], time: int) -> int:
    """When it was said: the time it gives itself, if it was imported later, or when it was appended."""
    for name in _TIMES:
        value = fields.get(name)
        if isinstance(value, str) and len(value) <= _LONG and (moment := when.parse_moment(value)) is not None:
            return to_micros(moment)
    return time


def _trust(kind: str, role: str) -> str:
    """Text from outside is trusted least; text from the operator, most."""
    if kind == "observation" or is_outside_role(role):
        return "untrusted"
    return "trusted" if role in _VOUCHED else "stated"


def _text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")
