"""What a model said, from whatever a client returned: a text, a message, or the whole object of OpenAI or Anthropic.

Deliberately absent: importing a client. Their objects are read by their fields.
"""

from __future__ import annotations

from typing import Any

from holdfast.context.talk import conversation
from holdfast.errors import Invalid
from holdfast.ledger.log import plain
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.records import Entry

_INPUT = ("input_tokens", "prompt_tokens")
_OUTPUT = ("output_tokens", "completion_tokens")
_CACHED = ("cache_read_input_tokens", "cached_tokens")


def reply_of(given: Any) -> Reply:
    """A reply, by what it says. Tools that it calls are not carried out here, so it must not call any."""
    if isinstance(given, Reply):
        return _whole(given)
    if isinstance(given, str):
        given = {"content": given}
    fields = given if isinstance(given, dict | list) else plain(given)
    if isinstance(fields, list):
        fields = {"role": "assistant", "content": fields}
    if not isinstance(fields, dict):
        raise Invalid(f"a reply is a text, a message or a client's answer, not {type(given).__name__}")
    said = _message(fields)
    entry = Entry("", 1, "message", {"role": "assistant", **said}, None, 0, b"")
    try:
        messages = [message for stretch in conversation([entry]) for message in stretch.messages]
    except Exception as error:  # what is no plain data may raise anything
        raise Invalid(f"this reply cannot be read: {type(error).__name__}") from error
    if said.get("role", "assistant") not in ("assistant", "model", "ai"):
        raise Invalid(f"a reply is an assistant's, not a message of role {said['role']!r}")
    calls = tuple(ToolCall(call.id, call.name, {}) for message in messages for call in message.calls)
    text = "\n".join(message.text for message in messages if message.text) or str(said.get("refusal") or "")
    return _whole(Reply(text, calls, _usage(fields.get("usage")), str(fields.get("model") or "")))


def _whole(reply: Reply) -> Reply:
    """A reply that is an answer."""
    if reply.calls:
        raise Invalid("this reply calls tools: carry them out with turn.step, ask the model again, and reply with that")
    if not reply.text.strip():
        raise Invalid("there is nothing in this reply; leave the block without one to keep the question open")
    return reply


def _message(fields: dict[str, Any]) -> dict[str, Any]:
    choices = fields.get("choices")
    if isinstance(choices, list):
        first = choices[0] if choices else None
        if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
            raise Invalid("this answer of a client has no choice in it, so there is nothing to record")
        message: dict[str, Any] = first["message"]
        return message
    if "content" not in fields and "text" not in fields:
        raise Invalid("a reply as a dict has content, as a message has, or choices, as a client's answer has")
    return fields


def _usage(fields: Any) -> Usage:
    if not isinstance(fields, dict):
        return Usage()
    details = fields.get("prompt_tokens_details")
    cached = _number(fields, _CACHED) or (_number(details, _CACHED) if isinstance(details, dict) else 0)
    return Usage(_number(fields, _INPUT), _number(fields, _OUTPUT), cached)


def _number(fields: dict[str, Any], names: tuple[str, ...]) -> int:
    return next((value for name in names if type(value := fields.get(name)) is int), 0)
