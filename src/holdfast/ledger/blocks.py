"""The blocks that vendors' clients put into messages: which one calls a tool, and which one came back from outside.

What a tool returned, and a page, a document or a search result, stands in a message of whatever role the vendor's API
wants, often the user's. Anthropic and OpenAI name the kind of a block by its ``type``, Pydantic AI by its
``part_kind``, Gemini and Bedrock by the key it stands under. How a name is written, as ``tool_result`` or
``ToolResult``, makes no difference. Deliberately absent: what such a block is worth (``speech``), and any client.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

_LONG_NAME = 64
_APART = re.compile(r"[\W_]+")
# Names without their case, blanks, dashes and the like: see ``_plain``.
_CALL = re.compile(r"tooluse$|^(?:custom)?(?:function|tool)call$|^function$")
_RESULT = re.compile(
    r"(?:tool|function|call|execution)(?:result|return|response|output|summary|executionevent)s?"
    r"(?:message|block|content|part)?(?:chunk)?$|(?:tool|function)message(?:chunk)?$"
)
_PAGE = re.compile(
    r"(?:search|fetch)results?(?:block|content)?$|^(?:documents?|sourcedocument|sourceurl|resource|resourcelink)$"
    r"|(?:search|interpreter|mcp)call$"  # OpenAI's own tools: one item is the call and what came of it
)
_SPEAKERS = frozenset({"tool", "function", "observation", "environment", "ipython"})
_IDS_OF_CALLS = frozenset({"toolcallid", "tooluseid"})
_CALL_KEYS = ("functionCall", "function_call", "toolUse")
_CALL_IDS = ("call_id", "id", "tool_call_id", "toolUseId")  # OpenAI's Responses have both: their results name the first
_RESULT_IDS = ("tool_use_id", "call_id", "tool_call_id", "toolUseId", "toolCallId", "id")
_ARGUMENTS = ("input", "arguments", "args")
_RETURNED = ("content", "output", "response", "result")
_HELD = ("content", "parts")
_SOURCES = ("source", "url", "title", "name")
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
    if not isinstance(block, dict):
        return None
    inner = next((block[key] for key in _CALL_KEYS if isinstance(block.get(key), dict)), None)
    if kind := _plain(kind_of(block)):
        inner = block if _CALL.search(kind) else None
    if inner is None:
        return None
    function = inner["function"] if isinstance(inner.get("function"), dict) else inner
    arguments = next((function[name] for name in _ARGUMENTS if name in function), None)
    if kind == "function" and function is inner and arguments is None:
        return None  # LangChain's message of a function
    return CallBlock(_first(inner, _CALL_IDS), _first(function, ("name",)), arguments)


def result_in(block: Any) -> ResultBlock | None:
    """The result that a block is, if it is one: by its kind, its key, or the id of a call that it does not make."""
    if not isinstance(block, dict):
        return None
    inner = _inner(block, _RESULT)
    if inner is None and (_plain(kind_of(block)) in _SPEAKERS or _names_call(block)) and call_in(block) is None:
        inner = block
    if inner is None:
        return None
    if not isinstance(inner, dict):
        return ResultBlock("", inner)
    return ResultBlock(_first(inner, _RESULT_IDS), next((inner[name] for name in _RETURNED if name in inner), None))


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a message: what is in its content, or its parts, if that is a list."""
    held = next((content[name] for name in _HELD if name in content), None) if isinstance(content, dict) else content
    return held if isinstance(held, list) else []


def is_outside(block: dict[str, Any]) -> bool:
    """Whether a block, or a message, is what a tool, a page or a document says, whoever sent it.

    A message with words of its own is still its sender's if a document comes along under a key beside them.
    """
    role = block.get("role")
    if isinstance(role, str) and is_outside_role(role):
        return True
    page = _inner(block, _PAGE)
    beside = page is not block and role is not None and any(name in block for name in ("text", *_HELD))
    return (page is not None and not beside) or result_in(block) is not None


def is_outside_role(role: str) -> bool:
    return _says_outside(role[:_LONG_NAME])


@lru_cache(256)
def _says_outside(role: str) -> bool:
    return _plain(role) in _SPEAKERS or is_outside_key(role)


def is_outside_key(name: str) -> bool:
    """Whether what stands under a key is from outside, whatever it is."""
    name = _plain(name)
    return _RESULT.search(name) is not None or _PAGE.search(name) is not None


def brings_outside(message: dict[str, Any]) -> bool:
    """Whether anything stands under such a key in a message."""
    return any(is_outside_key(name) for name, value in message.items() if _is_there(value))


def kind_of(block: dict[str, Any]) -> str:
    """What kind of block it says it is; empty where it does not say."""
    return _first(block, ("type", "part_kind"))


def source_of(block: dict[str, Any]) -> str:
    """Where a block from outside says it comes from; empty where it does not say."""
    held = next((value for name, value in block.items() if isinstance(value, dict) and is_outside_key(name)), block)
    return " ".join(_first(held, _SOURCES).split())[:_LONG]


def _inner(block: dict[str, Any], names: re.Pattern[str]) -> Any:
    """What a block of one of these names holds, if it is one: the block itself, or what is under its key."""
    if kind := kind_of(block):
        return block if names.search(_plain(kind)) else None
    return next((value for name, value in block.items() if _is_there(value) and names.search(_plain(name))), None)


def _names_call(block: dict[str, Any]) -> bool:
    return any(value and isinstance(value, str) and _plain(name) in _IDS_OF_CALLS for name, value in block.items())


def _is_there(value: Any) -> bool:
    return bool(value) or isinstance(value, dict)


def _plain(name: str) -> str:
    """A name as it is compared: clients write ``tool_result``, ``toolResult`` and ``Tool-Result``."""
    return _bare(str(name)[:_LONG_NAME])


@lru_cache(1024)
def _bare(name: str) -> str:
    return _APART.sub("", name.casefold())


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")
