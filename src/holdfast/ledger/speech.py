"""What an entry says, whichever client library shaped it: its text, who said it, when, and how far it is to be trusted.

Deliberately absent: any change of what is stored. An entry that cannot be read says nothing, and ``verify`` names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast import when
from holdfast.clock import to_micros
from holdfast.engine.codec import decode
from holdfast.engine.contract import Event
from holdfast.errors import HoldfastError

_TIMES = ("time", "timestamp", "created_at", "date")
_NAMES = ("name", "speaker", "author")
_SPOKEN = ("text", "content", "input_text", "output_text", "thinking", "refusal", "input")
_VOUCHED = ("system", "developer")
_OUTSIDE = ("tool", "function")
RESERVED = "holdfast."
"""The prefix of events that Holdfast writes for itself. They are no part of what was said."""
_LONG = 64

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


_UNSAID = ("role", "of", "id", FRAMEWORK, *_TIMES)


class Speech(NamedTuple):
    """One entry, read. ``speaker`` is the name it gives, otherwise its role."""

    text: str
    speaker: str
    role: str
    tool: str
    time: int
    trust: str

    @staticmethod
    def of(event: Event) -> Speech:
        try:
            content = decode(event.body)
        except HoldfastError:
            content = None
        fields = content if isinstance(content, dict) else {}
        role, name = _text(fields, ("role",)), _text(fields, _NAMES)
        called, text = event.kind == "tool_call", spoken(event.kind, content)
        return Speech(
            text,
            "" if called or not text else name or role,  # an entry without text has no speaker
            role,
            name if called else "",
            _said_at(fields, event.time),
            _trust(event.kind, role),
        )


def spoken(kind: str, content: Any) -> str:
    """The text of an entry."""
    if kind == "summary" or (kind == "event" and is_ours(content)):
        return ""  # derived from other entries, which have the original words
    if kind == "tool_call" and isinstance(content, dict):
        return "\n".join(_leaves([content.get("name"), content.get("arguments")]))
    if isinstance(content, dict):
        for name in ("content", "text"):
            if name in content:
                return "\n".join(_leaves(content[name]))
        content = {name: value for name, value in content.items() if name not in _UNSAID}
    return "\n".join(_leaves(content))


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
        shown = value
        if isinstance(value.get("type"), str):  # a part of a message: only its readable text
            shown = {name: value[name] for name in _SPOKEN if name in value}
        for item in shown.values():
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
    if kind == "observation" or role in _OUTSIDE:
        return "untrusted"
    return "trusted" if role in _VOUCHED else "stated"


def _text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")
