"""The blocks that vendors' clients put into messages: which one calls a tool, and which one came back from outside.

What a tool returned, and a page, a document or a search result, stands in a message of whatever role the vendor's API
wants, often the user's. Anthropic and OpenAI name the kind of a block by its ``type``, Pydantic AI by its
``part_kind``, Gemini and Bedrock by the key it stands under. Deliberately absent: what such a block is worth
(``speech``), and any client.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_CALL = re.compile(r"(?:^|_)tool_use$|^(?:custom_)?(?:function|tool)[_-]call$|^function$")
_RESULT = re.compile(r"(?:^|[_-])tool[_-](?:result|return)$|_call_output$|^code_execution_result$|^tool$")
_PAGE = re.compile(r"(?:^|_)(?:search|fetch)_results?$|^(?:document|resource)$")
_CALL_KEYS = ("functionCall", "function_call", "toolUse")
_RESULT_KEYS = ("functionResponse", "function_response", "toolResult", "codeExecutionResult", "code_execution_result")
_PAGE_KEYS = ("document", "searchResult")
_CALL_IDS = ("call_id", "id", "tool_call_id", "toolUseId")  # OpenAI's Responses have both: their results name the first
_RESULT_IDS = ("tool_use_id", "call_id", "tool_call_id", "toolUseId", "id")
_ARGUMENTS = ("input", "arguments", "args")
_RETURNED = ("content", "output", "response", "result")
_HELD = ("content", "parts")
_SOURCES = ("source", "url", "title", "name")
_ROLES = frozenset(
    {"tool", "function", "toolresult", "toolresponse", "tooloutput", "observation", "environment", "ipython"}
)
_LONG = 200


class CallBlock(NamedTuple):
    """A tool that a model decided to use."""

    id: str
    name: str
    arguments: Any


class ResultBlock(NamedTuple):
    """What a tool gave back. ``of`` is the id of the call, empty where the vendor has none."""

    of: str
    content: Any


def call_in(block: Any) -> CallBlock | None:
    """The call that a block is, if it is one."""
    inner = _inner(block, _CALL, _CALL_KEYS)
    if inner is None:
        return None
    function = inner["function"] if isinstance(inner.get("function"), dict) else inner
    arguments = next((function[name] for name in _ARGUMENTS if name in function), None)
    return CallBlock(_first(inner, _CALL_IDS), _first(function, ("name",)), arguments)


def result_in(block: Any) -> ResultBlock | None:
    """The result that a block is, if it is one."""
    inner = _inner(block, _RESULT, _RESULT_KEYS)
    if inner is None:
        return None
    return ResultBlock(_first(inner, _RESULT_IDS), next((inner[name] for name in _RETURNED if name in inner), None))


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a message: what is in its content, or its parts, if that is a list."""
    held = next((content[name] for name in _HELD if name in content), None) if isinstance(content, dict) else content
    return held if isinstance(held, list) else []


def is_outside(block: dict[str, Any]) -> bool:
    """Whether a block, or a message, is what a tool, a page or a document says, whoever sent it."""
    if _inner(block, _RESULT, _RESULT_KEYS) is not None or _inner(block, _PAGE, _PAGE_KEYS) is not None:
        return True
    role = block.get("role")
    return isinstance(role, str) and is_outside_role(role)


def is_outside_role(role: str) -> bool:
    return role.casefold().replace("_", "").replace("-", "") in _ROLES


def kind_of(block: dict[str, Any]) -> str:
    """What kind of block it says it is; empty where it does not say."""
    return _first(block, ("type", "part_kind"))


def source_of(block: dict[str, Any]) -> str:
    """Where a block from outside says it comes from; empty where it does not say."""
    inner = next((block[key] for key in (*_RESULT_KEYS, *_PAGE_KEYS) if isinstance(block.get(key), dict)), block)
    return " ".join(_first(inner, _SOURCES).split())[:_LONG]


def _inner(block: Any, kinds: re.Pattern[str], keys: tuple[str, ...]) -> dict[str, Any] | None:
    """What a block of one of these kinds holds, if it is one: the block itself, or what is under its key."""
    if not isinstance(block, dict):
        return None
    if kind := kind_of(block):
        return block if kinds.search(kind) else None
    return next((block[key] for key in keys if isinstance(block.get(key), dict)), None)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")
