"""A message of Pydantic AI as an entry of a thread, and back, nothing kept twice.

What was said, called and returned goes into ``role`` and ``content``, in the form that logs, contexts and recall read.
The rest of the message stays beside it as Pydantic AI writes it, with a hole wherever something was taken out; filling
the holes in order gives the message again. Deliberately absent: any knowledge of parts that nobody reads (a system
prompt, a change of instructions, a picture), which stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.extension import FRAMEWORK, framework_parts

NATIVE = "pydantic_ai"
"""The part of ``FRAMEWORK`` that says that an entry is a message of Pydantic AI, with what its other fields lack."""

_FORMS: dict[str, tuple[str, dict[str, str]]] = {
    "user-prompt": ("text", {"content": "text"}),
    "text": ("text", {"content": "text"}),
    "thinking": ("thinking", {"content": "thinking"}),
    "tool-call": ("tool_use", {"tool_call_id": "id", "tool_name": "name", "args": "input"}),
    "tool-return": ("tool_result", {"tool_call_id": "tool_use_id", "content": "content"}),
}
"""For each kind of part that is taken out: the type of its block, and what its fields are called there."""

Plain = dict[str, Any]


def to_content(message: Plain) -> Plain:
    """The content of an entry for a message, both as plain data."""
    blocks: list[Plain] = []
    parts = [_taken(part, blocks) for part in message["parts"]]
    role, rest = _role(message), {**message, "parts": parts}
    if len(blocks) == 1 and role == "tool":
        [block] = blocks
        return {
            "role": role,
            "tool_call_id": block["tool_use_id"],
            "content": block["content"],
            FRAMEWORK: {NATIVE: rest},
        }
    return {"role": role, "content": _shortest(blocks), FRAMEWORK: {NATIVE: rest}}


def to_message(content: Plain) -> Plain:
    """The message that an entry's content was made of."""
    blocks = iter(_blocks(content))
    rest: Plain = framework_parts(content)[NATIVE]
    return {**rest, "parts": [_filled(part, blocks) for part in rest["parts"]]}


def _role(message: Plain) -> str:
    """Who speaks. Where a user's words come along with what a tool returned, all of it is trusted as little as that."""
    if message["kind"] == "response":
        return "assistant"
    kinds = {part["part_kind"] for part in message["parts"]}
    return "tool" if "tool-return" in kinds else "user" if "user-prompt" in kinds else "system"


def _shortest(blocks: list[Plain]) -> str | list[Plain]:
    """A single text is shown as such, as most messages are."""
    if not blocks:
        return ""
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks


def _blocks(content: Plain) -> list[Plain]:
    if "tool_call_id" in content:
        return [{"tool_use_id": content["tool_call_id"], "content": content["content"]}]
    return [{"text": content["content"]}] if isinstance(content["content"], str) else content["content"]


def _taken(part: Plain, blocks: list[Plain]) -> Plain:
    """What stays of a part once what can be read of it is added to the blocks."""
    kind = part["part_kind"]
    type, names = _FORMS.get(kind, ("", {}))
    if kind == "user-prompt" and isinstance(part["content"], list):  # words between pictures
        blocks += [{"type": type, "text": item} for item in part["content"] if isinstance(item, str)]
        return {**part, "content": [None if isinstance(item, str) else item for item in part["content"]]}
    if not type or any(name not in part or _binary(part[name]) for name in names):
        return part
    blocks.append({"type": type, **{to: part[name] for name, to in names.items()}})
    return {name: value for name, value in part.items() if name not in names}


def _filled(part: Plain, blocks: Iterator[Plain]) -> Plain:
    kind = part["part_kind"]
    _, names = _FORMS.get(kind, ("", {}))
    if kind == "user-prompt" and "content" in part:
        return {**part, "content": [next(blocks)["text"] if item is None else item for item in part["content"]]}
    if not names or names.keys() & part.keys():
        return part
    block = next(blocks)
    return {**part, **{name: block[to] for name, to in names.items()}}


def _binary(value: Any) -> bool:
    """Whether something in a value is a file, which nobody reads as text."""
    if isinstance(value, list):
        return any(map(_binary, value))
    if isinstance(value, dict):
        return value.get("kind") == "binary" or any(map(_binary, value.values()))
    return False
