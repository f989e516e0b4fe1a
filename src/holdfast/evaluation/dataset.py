"""Files of conversations with questions: JSON, gzipped or plain.

A file is a list of ``{"id", "turns": [{"id", "session", "time", "speaker", "text"}], "queries": [{"id", "kind",
"text", "gold": [turn ids]}]}``. ``time`` is free text and may be missing. Other fields are ignored. What is wrong with
a file is said with the place where it is wrong. Deliberately absent: any repair.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.errors import Invalid, NotFound
from holdfast.ids import check_id

T = TypeVar("T")
_GZIP = b"\x1f\x8b"
_THREAD_BYTES = 400  # a conversation and a session make a thread's id, with room for what is put before them


class Utterance(msgspec.Struct, frozen=True):
    """One turn of a conversation: something that someone said in a session of it."""

    id: str
    session: str
    speaker: str
    text: str
    time: str | None = None


class Question(msgspec.Struct, frozen=True):
    """Something to ask, and the ids of the turns that answer it. Without any, nothing that was said does."""

    id: str
    kind: str
    text: str
    gold: frozenset[str]


class Conversation(msgspec.Struct, frozen=True):
    """What was said, in order, and what to ask about it."""

    id: str
    turns: tuple[Utterance, ...]
    questions: tuple[Question, ...]

    @property
    def sessions(self) -> dict[str, list[Utterance]]:
        """The turns of each session, both in the order of the file."""
        found: dict[str, list[Utterance]] = {}
        for turn in self.turns:
            found.setdefault(turn.session, []).append(turn)
        return found


class _Wrong(Exception):
    """What is wrong, and where in the file."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}")


def read(path: str | Path) -> list[Conversation]:
    """The conversations of a file. ``Invalid`` says what is wrong with it, and where."""
    file = Path(path)
    try:
        found = _each(_parsed(_bytes(file)), "the file", "conversation", _conversation)
        _different("conversation", found)
        if not any(conversation.questions for conversation in found):
            raise _Wrong("the file", "there is no question in it")
    except _Wrong as wrong:
        raise Invalid(f"{file}: {wrong}", path=str(file)) from wrong
    return found


def _bytes(file: Path) -> bytes:
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"there is no file {file}", path=str(file)) from error
    except (OSError, ValueError) as error:
        raise Invalid(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}", path=str(file)) from error
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise _Wrong("the file", f"it is gzipped, and damaged or cut off ({error})") from error


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _Wrong(f"byte {error.start}", "this is not UTF-8 text") from error
    except json.JSONDecodeError as error:
        raise _Wrong(f"line {error.lineno}, column {error.colno}", f"this is not JSON ({error.msg})") from error
    except RecursionError as error:
        raise _Wrong("the file", "it is nested too deeply") from error


# What the parts must be


def _conversation(value: Any, place: str) -> Conversation:
    fields = _fields(value, place)
    turns = _each(_field(fields, "turns", place), f"turns of {place}", "turn", _said, place)
    questions = _each(_field(fields, "queries", place), f"queries of {place}", "query", _question, place)
    _different("turn", turns, place)
    return Conversation(_id(fields, "id", place, _THREAD_BYTES), tuple(turns), tuple(questions))


def _said(value: Any, place: str) -> Utterance:
    fields = _fields(value, place)
    time = fields.get("time")
    if time is not None and not isinstance(time, str):
        raise _Wrong(place, f"time is text or missing, not {_kind(time)}")
    return Utterance(
        _id(fields, "id", place),
        _session(fields, place),
        _id(fields, "speaker", place),
        _text(fields, "text", place),
        time or None,
    )


def _question(value: Any, place: str) -> Question:
    fields = _fields(value, place)
    gold = _field(fields, "gold", place)
    if not isinstance(gold, list) or not all(isinstance(id, str) for id in gold):
        raise _Wrong(place, "gold is a list of turn ids, each a text")
    return Question(_id(fields, "id", place), _id(fields, "kind", place), _text(fields, "text", place), frozenset(gold))


def _session(fields: dict[str, Any], place: str) -> str:
    """Sessions are numbered in some data and named in other."""
    session = _field(fields, "session", place)
    return str(session) if type(session) is int else _id(fields, "session", place, 80)


def _id(fields: dict[str, Any], name: str, place: str, most: int | None = None) -> str:
    value = _field(fields, name, place)
    try:
        found = check_id(value, name)
    except Invalid as error:
        raise _Wrong(place, str(error)) from error
    if most is not None and len(found.encode()) > most:
        raise _Wrong(place, f"{name} takes {len(found.encode())} bytes; at most {most} are allowed")
    return found


def _text(fields: dict[str, Any], name: str, place: str) -> str:
    value = _field(fields, name, place)
    if not isinstance(value, str):
        raise _Wrong(place, f"{name} must be text, not {_kind(value)}")
    return value


def _field(fields: dict[str, Any], name: str, place: str) -> Any:
    if name not in fields:
        raise _Wrong(place, f"{name} is missing")
    return fields[name]


def _fields(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(place, f"this must be an object, not {_kind(value)}")
    return value


def _each(value: Any, place: str, noun: str, make: Callable[[Any, str], T], inside: str = "") -> list[T]:
    if not isinstance(value, list):
        raise _Wrong(place, f"this must be a list, not {_kind(value)}")
    return [make(item, where) for item, where in zip(value, _places(noun, inside), strict=False)]


def _places(noun: str, inside: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"{inside}, {noun} {number}" if inside else f"{noun} {number}"


def _different(noun: str, found: list[Any], inside: str = "") -> None:
    """Refuse repeated ids: an answer could not tell them apart."""
    seen: set[str] = set()
    for item, place in zip(found, _places(noun, inside), strict=False):
        if item.id in seen:
            raise _Wrong(place, f"the id {item.id!r} is that of an earlier {noun}")
        seen.add(item.id)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
