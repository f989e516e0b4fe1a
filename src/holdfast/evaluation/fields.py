"""What the parts of a file must be. What is not is ``Wrong``, with the place where it stands.

Deliberately absent: what the parts mean, and any repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from holdfast.errors import Invalid
from holdfast.ids import check_id

T = TypeVar("T")


class Wrong(Exception):
    """What is wrong, and where in the file."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}")


def identifier(fields: dict[str, Any], name: str, place: str, most: int | None = None) -> str:
    value = field(fields, name, place)
    try:
        found = check_id(value, name)
    except Invalid as error:
        raise Wrong(place, str(error)) from error
    if most is not None and len(found.encode()) > most:
        raise Wrong(place, f"{name} takes {len(found.encode())} bytes; at most {most} are allowed")
    return found


def text_of(fields: dict[str, Any], name: str, place: str) -> str:
    value = field(fields, name, place)
    if not isinstance(value, str):
        raise Wrong(place, f"{name} must be text, not {kind_of(value)}")
    return value


def field(fields: dict[str, Any], name: str, place: str) -> Any:
    if name not in fields:
        raise Wrong(place, f"{name} is missing")
    return fields[name]


def an_object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Wrong(place, f"this must be an object, not {kind_of(value)}")
    return value


def each(value: Any, place: str, noun: str, make: Callable[[Any, str], T], inside: str = "") -> list[T]:
    if not isinstance(value, list):
        raise Wrong(place, f"this must be a list, not {kind_of(value)}")
    return [make(item, where) for item, where in zip(value, _places(noun, inside), strict=False)]


def _places(noun: str, inside: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"{inside}, {noun} {number}" if inside else f"{noun} {number}"


def different(noun: str, found: list[Any], inside: str = "") -> None:
    """Refuse repeated ids: an answer could not tell them apart."""
    seen: set[str] = set()
    for item, place in zip(found, _places(noun, inside), strict=False):
        if item.id in seen:
            raise Wrong(place, f"the id {item.id!r} is that of an earlier {noun}")
        seen.add(item.id)


def kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
