"""Messages of LangChain as entries of a thread's log, and back: what a person can read first, the rest beside it.

An entry holds who spoke and what was said in the form every other part of Holdfast understands; what LangChain knows
besides is in its part of ``FRAMEWORK``, without the fields that hold their defaults. Deliberately absent: where the
entry is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from pydantic import BaseModel

from holdfast.adapters.langgraph.frames import MESSAGE, TAG
from holdfast.errors import Unsupported
from holdfast.extension import FRAMEWORK

MORE = "langchain"
"""LangChain's part of ``FRAMEWORK``."""
_ROLES: dict[Any, str] = {
    HumanMessage: "user", HumanMessageChunk: "user", AIMessage: "assistant", AIMessageChunk: "assistant",
    SystemMessage: "system", SystemMessageChunk: "system", ToolMessage: "tool", ToolMessageChunk: "tool",
    FunctionMessage: "function", FunctionMessageChunk: "function", ChatMessage: "user", ChatMessageChunk: "user",
}  # fmt: skip
TYPES: dict[type[BaseMessage], str] = {kind: kind.__name__ for kind in (*_ROLES, RemoveMessage)}
_NAMED = {name: kind for kind, name in TYPES.items()}
_SHOWN = ("content", "name", "tool_calls", "tool_call_id")
_PLAIN = {HumanMessage: "user", AIMessage: "assistant", SystemMessage: "system", ToolMessage: "tool"}
_BY_ROLE = {role: kind for kind, role in _PLAIN.items()}
_PLAIN_KEYS = {"role", "content", "id", "name"}

_new = object.__new__
# The slots of a model, set without asking the model: half of the time it takes to make a message.
_set_fields, _set_names, _set_extra, _set_private = (
    BaseModel.__dict__[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def _defaults(kind: type[BaseMessage]) -> dict[str, Any]:
    fields = {name: field for name, field in kind.model_fields.items() if not field.is_required()}
    return {name: field.get_default(call_default_factory=True) for name, field in fields.items()}


_DEFAULTS = {kind: _defaults(kind) for kind in TYPES}


def is_message(value: Any) -> bool:
    """Whether a value is one of LangChain's own messages; a class of the caller's own is registered by the caller."""
    return type(value) in TYPES


def spoken(value: Any) -> bool:
    """Whether it is something that was said, and not the wish to remove something."""
    return type(value) in _ROLES


def all_spoken(values: Iterable[Any]) -> bool:
    """Whether everything in a list was said."""
    return _ROLES.keys() >= set(map(type, values))


def fields_of(message: BaseMessage) -> dict[str, Any]:
    """What a message holds at this moment: another thread may be about to give it an id."""
    return {**message.__dict__, **(message.__pydantic_extra__ or {})}


def to_content(message: BaseMessage, fields: dict[str, Any] | None = None) -> dict[str, Any]:
    """The content of the entry for a message: values in it are still to be made plain."""
    kind = type(message)
    usual = _DEFAULTS[kind]
    fields = fields_of(message) if fields is None else fields
    told: dict[str, Any] = {"role": fields["role"] if kind is ChatMessage else _ROLES.get(kind, "")}
    more: dict[str, Any] = {}
    for name, value in fields.items():
        if name in usual and usual[name] == value and type(usual[name]) is type(value):
            continue
        (told if name in _SHOWN or name == "id" else more)[name] = value
    if kind not in _PLAIN:
        told[FRAMEWORK] = {MORE: {"class": TYPES[kind], "fields": more}}
    elif more:
        told[FRAMEWORK] = {MORE: {"fields": more}}
    return told


def tagged(value: Any, plain: Callable[[Any, str], Any]) -> Any:
    """A message as a part of a value, not of the log; None for anything else."""
    return {TAG: MESSAGE, "v": plain(to_content(value), "a message")} if is_message(value) else None


def empty_of(fields: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The fields that hold lists and dicts, of which each message needs its own, with their types."""
    return tuple((name, type(value)) for name, value in fields.items() if isinstance(value, list | dict))


_EMPTY = {kind: empty_of(fields) for kind, fields in _DEFAULTS.items()}
_NAMES = {kind: set(kind.model_fields) for kind in TYPES}
_WHOLE = {kind: {name: _DEFAULTS[kind].get(name, "") for name in kind.model_fields} for kind in TYPES}


def plain_fields(content: dict[str, Any]) -> tuple[Any, dict[str, Any], tuple[tuple[str, Any], ...], set[str]] | None:
    """What ``from_content`` would make of a message of which only who, what, name and id are not as usual.

    It gives the class, the fields, those of them that are empty lists and dicts, and the names of all: most messages
    are of this kind, and it takes a fifth of the time. None for any other.
    """
    kind = _BY_ROLE.get(content["role"])
    if kind is None or kind is ToolMessage or not _PLAIN_KEYS.issuperset(content):
        return None
    if not all(type(value) is str for value in content.values()):
        return None
    fields = {**_WHOLE[kind], **content}
    del fields["role"]
    return kind, fields, _EMPTY[kind], _NAMES[kind]


def from_content(content: dict[str, Any]) -> Any:
    """The message that an entry holds; its fields are as they were, so nothing is validated a second time."""
    fields = dict(content)
    more = fields.pop(FRAMEWORK, {}).get(MORE, {})
    role = fields.pop("role")
    kind = _NAMED.get(more["class"]) if "class" in more else _BY_ROLE.get(role)
    if kind is None:
        raise Unsupported(f"a message of class {more.get('class', role)!r} is not known here: upgrade langchain-core")
    return _made(kind, fields | more.get("fields", {}))


def _made(kind: Any, fields: dict[str, Any]) -> Any:
    """What ``model_construct`` makes of known fields, at a hundredth of its cost: a thread has thousands of them."""
    known = kind.model_fields
    extra = {name: fields.pop(name) for name in [name for name in fields if name not in known]}
    for name, value in _DEFAULTS[kind].items():
        if name not in fields:
            fields[name] = value if not isinstance(value, list | dict) else type(value)(value)
    return assembled(kind, fields, set(fields), extra)


def assembled(kind: Any, fields: dict[str, Any], names: set[str], extra: dict[str, Any] | None = None) -> Any:
    """A message of these fields, which are all there and are as they were when they were validated."""
    made = _new(kind)
    _set_fields(made, fields)
    _set_names(made, names.copy())  # pydantic adds to it what a caller sets
    _set_extra(made, {} if extra is None else extra)
    _set_private(made, None)
    return made
