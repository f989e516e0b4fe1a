"""Stored values in words: when something was, how old it is, what an entry says.

Moments are shown in UTC, and a moment given without a zone means UTC. Deliberately absent: colours and columns.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from holdfast.clock import Clock, to_datetime
from holdfast.errors import Invalid
from holdfast.ledger.said import without_frameworks
from holdfast.ledger.schema import duration
from holdfast.records import Entry

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def moment(text: str, clock: Clock) -> datetime:
    """Read a moment: ISO 8601, or a length of time such as ``2h`` or ``3d``, meaning that long ago."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return to_datetime(clock.now()) - _length(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _length(text: str) -> timedelta:
    try:
        return duration(text)
    except Invalid:
        raise Invalid(
            f"{text!r} is no moment: write 2026-05-01, 2026-05-01T09:30 (UTC), 2026-05-01T09:30+02:00, or 3d or 1h30m "
            "for that long ago"
        ) from None


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
    """What an entry says, as text. Content of an unknown shape is shown as it is."""
    content = entry.content
    if not isinstance(content, dict):
        return as_text(content)
    content = without_frameworks(content)
    said = {
        "message": _message,
        "tool_call": _tool_call,
        "observation": _observation,
        "event": _event,
        "note": _note,
    }.get(entry.kind, as_text)
    return said(content)


def _message(content: dict[str, Any]) -> str:
    more = {name: value for name, value in content.items() if name not in ("role", "content") and value is not None}
    said = content.get("content")
    body = " ".join(map(_part, said)) if isinstance(said, list) else "" if said is None else as_text(said)
    return " ".join(part for part in (body, as_text(more) if more else "") if part)


def _part(part: Any) -> str:
    """One part of a message that has several: its text where it has one."""
    return part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else as_text(part)


def _tool_call(content: dict[str, Any]) -> str:
    if not isinstance(content.get("name"), str):
        return as_text(content)
    return f"{content['name']} {as_text(content.get('arguments', {}))}"


def _observation(content: dict[str, Any]) -> str:
    known = "content" in content and set(content) <= {"content", "of"}
    return as_text(content["content"] if known else content)


def _event(content: dict[str, Any]) -> str:
    data = {name: value for name, value in content.items() if name != "name"}
    if not isinstance(content.get("name"), str):
        return as_text(content)
    return f"{content['name']} {as_text(data)}" if data else str(content["name"])


def _note(content: dict[str, Any]) -> str:
    return as_text(content["text"]) if set(content) == {"text"} else as_text(content)


def as_text(value: Any) -> str:
    """Text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
