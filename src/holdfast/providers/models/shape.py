"""Answers of a given shape: the schema to ask for, reading the answer, and asking once more when it does not fit.

A shape is a msgspec.Struct type. Deliberately absent: repairs. A text that does not fit is shown to the model with
what is wrong with it, and is never bent until it fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast.errors import Invalid, ModelFailed
from holdfast.providers.models.model import Usage

T = TypeVar("T")

TRIES = 2
_FENCE = re.compile(r"\A\s*```\w*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_SHOWN = 4_000  # characters of a wrong answer that are worth showing again


def schema_of(shape: type[Any]) -> dict[str, Any]:
    """The JSON schema of a shape, an object at its top: several vendors refuse a reference there."""
    try:
        schema = msgspec.json.schema(shape)
    except (TypeError, msgspec.ValidationError) as error:
        raise Invalid(f"{getattr(shape, '__name__', shape)} cannot be asked of a model: {error}") from error
    top = schema.pop("$ref", None)
    if top is not None:
        name = top.rsplit("/", 1)[-1]
        defined = schema["$defs"]
        schema = {**defined[name], **schema}
        if f'"{top}"'.encode() not in msgspec.json.encode(schema):  # nothing inside refers back to the top
            schema["$defs"] = {key: value for key, value in defined.items() if key != name}
        if not schema["$defs"]:
            del schema["$defs"]
    if schema.get("type") != "object":
        raise Invalid(f"{getattr(shape, '__name__', shape)} is not an object. Put it into a field of a msgspec.Struct.")
    return schema


def read(text: str, shape: type[T]) -> T:
    """The text as a value of the shape, or a msgspec error that says where it does not fit."""
    fenced = _FENCE.match(text)
    return msgspec.json.decode((fenced[1] if fenced else text).encode("utf-8", "replace"), type=shape)


def instructions(schema: dict[str, Any]) -> str:
    """The instruction for a model that cannot be given a schema in another way."""
    return (
        "Answer with one JSON object of this schema, and with nothing before or after it:\n"
        + msgspec.json.encode(schema).decode()
    )


def extracted(
    ask: Callable[[list[dict[str, Any]]], tuple[str, Usage]],
    messages: list[dict[str, Any]],
    shape: type[T],
    *,
    model: str,
) -> tuple[T, Usage]:
    """Ask until the answer has the shape, twice at most. ``ask`` gives the text of one answer and what it cost."""
    schema = schema_of(shape)
    asked, spent, wrong = list(messages), Usage(requests=0), ""
    for _ in range(TRIES):
        text, usage = ask(asked)
        spent += usage
        try:
            return read(text, shape), spent
        except msgspec.DecodeError as error:  # ValidationError is one of these
            wrong = str(error)
        asked = [
            *messages,
            {"role": "assistant", "content": text[:_SHOWN] or "(nothing)"},
            {"role": "user", "content": f"That cannot be read: {wrong}. {instructions(schema)}"},
        ]
    raise ModelFailed(
        f"The model {model} answered {TRIES} times with something that is no {shape.__name__}: {wrong}.",
        model=model,
        reason="invalid",
        partial="",
        usage=spent,
    )
