"""Stored values in words: when something was, how old it is, what an entry says.

Moments are shown in UTC, and a moment given without a zone means UTC. Deliberately absent: colours and columns.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from holdfast.clock import Clock, to_datetime
from holdfast.errors import Invalid
from holdfast.ledger.schema import duration
from holdfast.ledger.speech import without_framework
from holdfast.records import Entry
from holdfast.when import parse_moment, read_moment

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_NAMES = ("name", "speaker", "author")
_TIMES = ("time", "timestamp", "created_at", "date")
_EXAMPLES = (
    "write a date (2026-05-01, 2026-05-01T09:30, 2026-05-01T09:30+02:00), how long ago (3d, 1h30m, '3 days ago'), or "
    "words (yesterday, 'last monday', 'yesterday 9:30'); without a zone it is UTC"
)
_SAME_TIME_S = 60
_BULK = 200


def named_values(pairs: Collection[str] | None) -> dict[str, Any] | None:
    """Read ``name=value`` as someone types it: a value that is JSON is that, anything else is text."""
    if not pairs:
        return None
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise Invalid(f"{pair!r} is not NAME=VALUE, as in project=apollo")
        if name in found:
            raise Invalid(f"{name} is given twice")
        found[name] = text
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            found[name] = text if number and json.dumps(value) != text else value  # 1.10 is a version
    return found


def moment(text: str, clock: Clock) -> datetime:
    """Read a time that someone typed: a date, words such as "yesterday", or ``2h`` or ``3d`` for that long ago."""
    now = to_datetime(clock.now())
    with suppress(Invalid, OverflowError):
        return now - duration(text.strip().removesuffix(" ago"))
    found = read_moment(text, now)
    if found is None:
        raise Invalid(f"{text!r} is not a time; {_EXAMPLES}")
    return found


def stamp(when: datetime | None) -> str:
    """Write a moment so that it sorts and says its zone."""
    return "" if when is None else when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age(seconds: float) -> str:
    """Write a length of time in its largest unit."""
    if math.isinf(seconds):
        return "never confirmed"
    for unit, size in _UNITS:
        if seconds >= size:
            return counted(int(seconds // size), unit)
    return "less than a second"


def ago(when: datetime | None, clock: Clock) -> str:
    """Write how long ago a moment was."""
    if when is None:
        return ""
    return f"{age(max(0.0, (to_datetime(clock.now()) - when).total_seconds()))} ago"


def took(seconds: float) -> str:
    """Write how long something took, in a few characters."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for (large, size), (small, part) in pairwise((("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))):
        if whole >= size:
            return f"{whole // size} {large} {whole % size // part:02} {small}"
    return f"{whole} s"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def database(url: str) -> str:
    """Write where a store is, without the password that a URL may carry."""
    masked = re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&]password=)[^&]+", "***", masked)


def speaker(entry: Entry) -> str:
    """Who or what an entry comes from: the role of a message, otherwise its kind."""
    content = entry.content
    if entry.kind == "message" and isinstance(content, dict) and isinstance(content.get("role"), str):
        return str(content["role"])
    return entry.kind


def words(entry: Entry) -> str:
    """What an entry says, as text: without what programs pair and sort it by. An unknown shape is shown as it is."""
    content = entry.content
    if not isinstance(content, dict):
        return as_text(content)
    said = {
        "message": _message,
        "tool_call": _tool_call,
        "observation": _observation,
        "event": _event,
        "note": _note,
    }.get(entry.kind, as_text)
    return said({name: value for name, value in without_framework(content).items() if not _is_time(entry, name, value)})


def _is_time(entry: Entry, name: str, value: Any) -> bool:
    """Whether a field only says when the entry was appended, which stands before it already."""
    at = parse_moment(value) if name in _TIMES and isinstance(value, str) else None
    return at is not None and abs((at - entry.time).total_seconds()) < _SAME_TIME_S


def _message(content: dict[str, Any]) -> str:
    role, said, calls = content.get("role"), content.get("content"), _calls(content)
    body = [_part(part) for part in said] if isinstance(said, list) else [] if said is None else [as_text(said)]
    names = [field for field in _NAMES if isinstance(content.get(field), str)]
    known = {"role", "content", "id", "tool_call_id", *names, *(("tool_calls", "function_call") if calls else ())}
    known |= {field for field, value in content.items() if value is None}
    who = f"{content[names[0]]}:" if names and content[names[0]] != role else ""
    anew = [call for call in calls if call not in body]  # some frameworks say a call in both places
    return " ".join(part for part in (who, *body, *anew, _rest(content, known)) if part)


def _calls(content: dict[str, Any]) -> list[str]:
    """The tools that a message calls, in whichever shape; none where any of it has a shape of its own."""
    given = content.get("tool_calls")
    calls = [*(given if isinstance(given, list) else []), content.get("function_call")]
    shown = [_call(call) for call in calls if call is not None]
    return shown if all(shown) else []


def _call(call: Any) -> str:
    call = call.get("function", call) if isinstance(call, dict) else call
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return ""
    given = next((field for field in ("arguments", "args", "input") if field in call), None)
    return "" if given is None else f"→ {call['name']} {as_text(call[given])}"


def _part(part: Any) -> str:
    """One part of a message that has several: its text where it has one, what it calls, or what came back."""
    if not isinstance(part, dict):
        return as_text(part)
    for field in ("text", "thinking"):
        if isinstance(part.get(field), str):
            return str(part[field])
    if part.get("type") in ("tool_result", "function_call_output"):
        found = part.get("content", part.get("output"))
        return " ".join(map(_part, found)) if isinstance(found, list) else as_text(found)
    return _call(part) or as_text(_without_bulk(part))


def _without_bulk(value: Any) -> Any:
    """The same without what is for programs alone, such as the bytes of a picture."""
    if isinstance(value, dict):
        return {name: _without_bulk(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_bulk(item) for item in value]
    bulky = isinstance(value, str) and len(value) > _BULK and len(value.split(maxsplit=1)) == 1
    return f"({counted(len(value), 'character')})" if bulky else value


def _rest(content: dict[str, Any], known: Collection[str]) -> str:
    more = {name: value for name, value in content.items() if name not in known}
    return as_text(more) if more else ""


def _tool_call(content: dict[str, Any]) -> str:
    if not isinstance(content.get("name"), str):
        return as_text(content)
    return f"{content['name']} {as_text(content.get('arguments', {}))}"


def _observation(content: dict[str, Any]) -> str:
    if "content" not in content:
        return as_text(content)
    known = {"content", "of", "id", "type", "author"}
    return " ".join(part for part in (as_text(content["content"]), _rest(content, known)) if part)


def _event(content: dict[str, Any]) -> str:
    if not isinstance(content.get("name"), str):
        return as_text(content)
    return " ".join(part for part in (content["name"], _rest(content, {"name"})) if part)


def _note(content: dict[str, Any]) -> str:
    return as_text(content["text"]) if set(content) == {"text"} else as_text(content)


def as_text(value: Any) -> str:
    """Text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
