"""Events of ADK as entries of a log, and back.

An entry shows what people and recall read: who, the text, the tool called, what it gave back. The rest of the event
lies beside it, in ADK's part of ``FRAMEWORK``, and nothing is stored twice: what is shown is taken out there and put
back on reading, so an event comes back equal to the one that went in. Deliberately absent: meaning of any field that
ADK may add.
"""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from pydantic_core import PydanticSerializationError, to_jsonable_python

from holdfast.errors import Corrupt, Invalid
from holdfast.extension import FRAMEWORK, Draft, framework_parts
from holdfast.types import Entry

_PART = "adk"
_CALL, _RESPONSE, _OUTPUT = "function_call", "function_response", "function_call_output"
_SILENT = "holdfast.adk"
"""The name of an event that says nothing: a change of state, a rewind. Recall leaves those of Holdfast alone."""
_REFUSALS = (PydanticSerializationError, ValueError, RecursionError)


def to_draft(event: Event) -> Draft:
    """An event as an entry on its way in, under the event's id."""
    plain(event.actions.state_delta, "state")  # ADK itself would store the text "<function f>" for a function f
    plain(event.actions.agent_state or {}, "agent state")
    try:
        rest = event.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude={"id", "author"})
    except _REFUSALS as error:
        raise Invalid(f"event {event.id!r} cannot be stored: {error}", event=event.id) from error
    rest["timestamp"] = event.timestamp  # which by default is the time of asking
    shown = {"author": event.author, FRAMEWORK: {_PART: rest}}
    blocks = [_block(part) for part in (rest.get("content") or {}).get("parts") or []]
    if not blocks:
        return Draft("event", {"name": _SILENT, **shown}, event.id)
    del rest["content"]["parts"]
    kinds = [block["type"] for block in blocks]
    if kinds == [_CALL]:
        return Draft("tool_call", {**blocks[0], **shown}, event.id)
    if kinds == [_OUTPUT]:
        return Draft("observation", {"of": blocks[0].pop("call_id"), **blocks[0], **shown}, event.id)
    said = {"role": _role(event.author, kinds), "content": _simplest(blocks), **shown}
    return Draft("message", said, event.id)


def to_event(entry: Entry) -> Event:
    """The event that an entry was made of. ``Corrupt`` where it was made of none."""
    try:
        told = entry.content
        rest = {**framework_parts(told)[_PART], "id": entry.key, "author": told["author"]}
        if entry.kind != "event":
            rest["content"] = {**rest["content"], "parts": [_part(block) for block in _blocks(entry.kind, told)]}
        return Event.model_validate(rest)
    except (LookupError, TypeError, ValueError) as error:
        raise Corrupt(f"entry {entry.number} of thread {entry.thread!r} is not an event of ADK: {error}") from error


def is_event(entry: Entry) -> bool:
    """Whether an entry was made of an event of ADK: others may write to a thread too."""
    part = framework_parts(entry.content).get(_PART)
    return isinstance(part, dict) and isinstance(part.get("timestamp"), int | float) and entry.key is not None


def timestamp_of(entry: Entry) -> float:
    """The time that the event of an entry says."""
    return float(framework_parts(entry.content)[_PART]["timestamp"])


def text_of(event: Event) -> str:
    """The words of an event, without what a model only thought to itself."""
    parts = (event.content.parts if event.content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def plain(values: dict[str, Any], what: str) -> dict[str, Any]:
    """Values as plain data: dates, sets and models in their JSON form. What has none is refused, and named."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        try:
            found[key] = to_jsonable_python(value, inf_nan_mode="constants")
        except _REFUSALS as error:
            raise Invalid(f"{what} {key!r} cannot be stored: {error}", key=key) from error
    return found


def _role(author: str, kinds: list[str]) -> str:
    if _OUTPUT in kinds:
        return "tool"  # it came from outside, whoever passes it on
    return "user" if author == "user" else "assistant"


def _block(part: dict[str, Any]) -> dict[str, Any]:
    """A part as a block of a message, of the usual types; what has none of these keeps its own."""
    if _CALL in part:
        call = part[_CALL]
        shown = {"id": call.pop("id", None), "name": call.pop("name", None), "arguments": call.pop("args", None)}
        return {"type": _CALL, **shown, "part": part}
    if _RESPONSE in part:
        response = part[_RESPONSE]
        shown = {"call_id": response.pop("id", None), "content": response.pop("response", None)}
        return {"type": _OUTPUT, **shown, "part": part}
    if "text" in part:
        return {"type": "thinking" if part.get("thought") else "text", "text": part.pop("text"), "part": part}
    return {"type": next(iter(part), "empty"), "part": part}


def _part(block: dict[str, Any]) -> dict[str, Any]:
    kind, part = block["type"], block["part"]
    if kind == _CALL:
        return {**part, _CALL: _whole(part[_CALL], id=block["id"], name=block["name"], args=block["arguments"])}
    if kind == _OUTPUT:
        return {**part, _RESPONSE: _whole(part[_RESPONSE], id=block["call_id"], response=block["content"])}
    return {**part, "text": block["text"]} if kind in ("text", "thinking") else part


def _whole(inner: dict[str, Any], **shown: Any) -> dict[str, Any]:
    return {**inner, **{name: value for name, value in shown.items() if value is not None}}


def _simplest(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Most messages are one text and nothing else."""
    alone = len(blocks) == 1 and blocks[0]["type"] == "text" and not blocks[0]["part"]
    return str(blocks[0]["text"]) if alone else blocks


def _blocks(kind: str, told: dict[str, Any]) -> list[dict[str, Any]]:
    if kind == "tool_call":
        return [told]
    if kind == "observation":
        return [{**told, "call_id": told["of"]}]
    content = told["content"]
    return [{"type": "text", "text": content, "part": {}}] if isinstance(content, str) else content
