"""OpenAI's chat format into the messages of pydantic-ai, and its responses into replies.

What cannot be sent is said in the text instead of being dropped: a part of a kind that no vendor knows becomes a short
note. Deliberately absent: thinking. It belongs to the vendor that produced it, and is neither stored nor sent back.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import msgspec
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from holdfast.errors import Invalid
from holdfast.providers.models.model import Reply, ToolCall, Usage

_STOPS = {"stop": "end", "length": "length", "content_filter": "refused", "tool_call": "tools", "error": "error"}
_NO_PARAMETERS = {"type": "object", "properties": {}}


# What is sent


def to_vendor(messages: Sequence[dict[str, Any]]) -> list[ModelMessage]:
    """The conversation, with what was said between two answers in one request."""
    if not messages:
        raise Invalid("There is nothing to ask: messages is empty.")
    out: list[ModelMessage] = []
    waiting: list[ModelRequestPart] = []
    names: dict[str, str] = {}
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            if said := _assistant(message, names, at):
                out += [ModelRequest(waiting)] if waiting else []
                waiting = []
                out.append(ModelResponse(said))
        elif role in {"system", "developer"}:
            waiting.append(SystemPromptPart(_plain(message.get("content"))))
        elif role == "user":
            waiting.append(UserPromptPart(_content(message.get("content"))))
        elif role == "tool":
            waiting.append(_result(message, names, at))
        else:
            raise Invalid(f"Message {at} has the role {role!r}. A role is system, user, assistant or tool.")
    return [*out, ModelRequest(waiting)] if waiting else out


def definitions(tools: Sequence[dict[str, Any]]) -> list[ToolDefinition]:
    found = []
    for at, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Invalid(f'Tool {at} is not {{"type": "function", "function": {{"name": …, "parameters": …}}}}.')
        found.append(
            ToolDefinition(
                name=function["name"],
                description=function.get("description"),
                parameters_json_schema=function.get("parameters") or dict(_NO_PARAMETERS),
                strict=function.get("strict"),
            )
        )
    return found


def _assistant(message: dict[str, Any], names: dict[str, str], at: int) -> list[ModelResponsePart]:
    text = _plain(message.get("content") or message.get("refusal"))
    parts: list[ModelResponsePart] = [TextPart(text)] if text else []
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not function.get("name") or not call.get("id"):
            raise Invalid(f"Message {at} has a tool call without an id or a function with a name.")
        names[call["id"]] = function["name"]
        parts.append(ToolCallPart(function["name"], _arguments(function.get("arguments"))[0], call["id"]))
    return parts


def _result(message: dict[str, Any], names: dict[str, str], at: int) -> ToolReturnPart:
    of = message.get("tool_call_id")
    if not isinstance(of, str) or of not in names:
        raise Invalid(f"Message {at} answers the tool call {of!r}, which no message before it makes.")
    content = _content(message.get("content"))
    return ToolReturnPart(names[of], content if isinstance(content, str) else list(content), of)


def _plain(content: Any) -> str:
    content = _content(content)
    return content if isinstance(content, str) else "\n".join(part for part in content if isinstance(part, str))


def _content(content: Any) -> str | list[UserContent]:
    """A text, or the parts of which some are not text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return msgspec.json.encode(content).decode()
    parts = [_part(part) for part in content]
    if all(isinstance(part, str) for part in parts):
        return "\n".join(str(part) for part in parts)
    return parts


def _part(part: Any) -> UserContent:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, dict) else None
    try:
        if kind in {"text", "input_text", "output_text"}:
            return str(part["text"])
        if kind == "image_url":
            given = part["image_url"]
            return _image(given if isinstance(given, str) else given["url"])
        if kind == "image":  # as Anthropic writes it
            source = part["source"]
            if source["type"] == "url":
                return _image(source["url"])
            return BinaryContent(base64.b64decode(source["data"], validate=True), media_type=source["media_type"])
        if kind == "input_audio":
            sound = part["input_audio"]
            return BinaryContent(base64.b64decode(sound["data"], validate=True), media_type=f"audio/{sound['format']}")
    except (KeyError, TypeError, ValueError, binascii.Error):
        return f"[{kind}: cannot be read]"
    return f"[{kind or type(part).__name__}: not shown]"


def _image(url: str) -> UserContent:
    return BinaryContent.from_data_uri(url) if url.startswith("data:") else ImageUrl(url)


# What comes back


def from_vendor(response: ModelResponse, name: str) -> Reply:
    """The reply. ``name`` is the model that was asked, for vendors that do not say which one answered."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = tuple(_call(part) for part in response.parts if isinstance(part, ToolCallPart))
    stop = _STOPS.get(response.finish_reason or "", "")
    if calls and stop in {"", "end"}:  # several servers say "stop" where they mean their tool calls
        stop = "tools"
    if stop == "refused" and not text:
        text = str((response.provider_details or {}).get("refusal") or "")
    return Reply(text, calls, usage_of(response), response.model_name or name, stop)


def usage_of(response: ModelResponse) -> Usage:
    usage = response.usage
    return Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)


def answer_of(response: ModelResponse) -> str:
    """The answer to a question for a shape: the arguments of the one call, or the text."""
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            return part.args if isinstance(part.args, str) else msgspec.json.encode(part.args or {}).decode()
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _call(part: ToolCallPart) -> ToolCall:
    arguments, invalid = _arguments(part.args)
    return ToolCall(part.tool_call_id, part.tool_name, arguments, invalid)


def _arguments(given: Any) -> tuple[dict[str, Any], str]:
    """The arguments as a dict, and why they are not what the model wrote, if they are not."""
    if isinstance(given, dict):
        return given, ""
    text = given if isinstance(given, str) else "" if given is None else msgspec.json.encode(given).decode()
    if not text.strip():
        return {}, ""
    try:
        read = msgspec.json.decode(text.encode("utf-8", "replace"))
    except msgspec.DecodeError as error:
        return {"raw": text}, f"the arguments are not JSON: {error}"
    if not isinstance(read, dict):
        return {"raw": text}, f"the arguments must be a JSON object, not {type(read).__name__}"
    return read, ""
