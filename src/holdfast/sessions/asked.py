"""The input of a turn: a text, a list of parts, or a whole message of a user, as one message that can be sent.

Deliberately absent: any change of what was said.
"""

from __future__ import annotations

from typing import Any

from holdfast.context.talk import Message
from holdfast.engine.codec import encode
from holdfast.errors import Invalid
from holdfast.records import Draft


def asked_of(input: Any) -> Message:
    """The input as a message: a text, a list of parts, or a whole message of a user."""
    if isinstance(input, Draft):
        input = input.content
    if isinstance(input, dict) and "content" not in input:
        raise Invalid("the input of a context as a message has content; this dict has none")
    if isinstance(input, dict):
        if input.get("role") not in (None, "user"):
            raise Invalid(f"the input of a context is what a user says, not a message of role {input['role']!r}")
        name = input.get("name")
        input = input.get("content")
        if isinstance(name, str) and isinstance(input, str) and input.strip():
            input = f"{name}: {input}"  # as it will be shown from the next turn on
    if isinstance(input, str):
        if not input.strip():
            raise Invalid("the input is empty: say what this turn is about")
        return Message("user", sendable(input))
    if not isinstance(input, list) or not all(isinstance(part, str | dict) for part in input):
        raise Invalid(f"the input of a context is a text, a list of parts or a message, not {type(input).__name__}")
    parts = [_part(part) for part in input]
    parts = [part for part in parts if not _is_text(part) or sendable(part["text"]).strip()]
    if not parts:
        raise Invalid("the input is empty: say what this turn is about")
    if any(part.get("type") in ("tool_use", "tool_result", "tool_call") for part in parts):
        raise Invalid("calls of tools and their results are no input: append them, or use turn.step")
    text = "\n".join(part["text"] for part in parts if _is_text(part))
    return Message("user", text, parts=() if all(map(_is_text, parts)) else tuple(parts))


def _part(part: str | dict[str, Any]) -> dict[str, Any]:
    """A part of the input; a text in the one form that all take."""
    if isinstance(part, str) or isinstance(part.get("text"), str):
        return {"type": "text", "text": part if isinstance(part, str) else part["text"]}
    if part.get("type") == "text":
        raise Invalid("a part of the input is of type text, and has no text")
    if part.get("type") == "image_url" and not part.get("image_url"):
        raise Invalid("a part of the input is an image without an address")
    try:
        encode(part, "a part of the input")
    except Invalid as error:
        raise Invalid(f"a part of the input cannot be sent: {error}") from error
    return part


def sendable(text: str, what: str = "the input has") -> str:
    """A text that can be sent, which half a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"{what} half a character in it (a lone surrogate), which no model takes") from error
    return text


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)
