"""How long ago each tracked field of a state was confirmed, by whom, and whether that is still good enough.

Confirmations are kept beside the value as marks, ``{path: {"at": microseconds, "by": who}}``. A field counts as
confirmed when someone saves a changed value or confirms the current one; saving it unchanged confirms nothing.
An object's own ``confirmed_at`` (as in a fact of ``AgentState``) takes precedence over its mark. A list is tracked item
by item, so adding one fact says nothing about the others; only an empty list is confirmed as a whole.

Deliberately absent: the clock (callers say what time it is), and fetching new values (``state.py`` calls refreshers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from math import inf
from typing import Any, NamedTuple

import msgspec

from holdfast.clock import to_datetime, to_micros
from holdfast.errors import Invalid
from holdfast.ledger import json_path
from holdfast.ledger.json_path import Path, Sign, parse
from holdfast.ledger.schema import Schema
from holdfast.records import StaleField

Marks = dict[str, dict[str, Any]]
"""When and by whom each path was confirmed, as stored."""


class FreshnessReport(msgspec.Struct, frozen=True):
    """What is no longer fresh in a state.

    ``stale`` holds every field past its limit; one that was never confirmed has no ``confirmed_at`` and an infinite
    age. ``must_verify`` names the critical fields that are stale or were never confirmed.
    """

    stale: tuple[StaleField, ...] = ()
    must_verify: tuple[str, ...] = ()


class Confirmed(NamedTuple):
    """A document and its marks after a confirmation."""

    value: Any
    marks: Marks


class _Rule(NamedTuple):
    fresh_for: timedelta | None
    critical: bool


class _Confirmation(NamedTuple):
    at: int | None
    by: str


def tracked(schema: Schema, value: Any) -> dict[str, _Rule]:
    """Return the fields of a document that the schema watches; of a list, its items.

    If patterns overlap, the one with the fewest wildcards decides, and among equals the shortest limit.
    """
    limits: dict[str, list[tuple[int, timedelta]]] = {}
    for pattern, limit in schema.fresh.items():
        wildcards = parse(pattern, pattern=True).count(Sign.ANY)
        for path in _watched(pattern, value):
            limits.setdefault(path, []).append((wildcards, limit))
    critical = dict.fromkeys(path for pattern in schema.critical for path in _watched(pattern, value))
    return {
        path: _Rule(min(limits[path])[1] if path in limits else None, path in critical)
        for path in {**limits, **critical}
    }


def _watched(pattern: str, value: Any) -> Iterator[str]:
    for path in json_path.match(pattern, value):
        item = json_path.get(value, path)
        if isinstance(item, list) and item:
            yield from (f"{path}[{index}]" for index in range(len(item)))
        else:
            yield path


def carry(schema: Schema, old_value: Any, old_marks: Marks, new_value: Any, *, now: int, by: str) -> Marks:
    """Return the marks of a new document that follows an old one (None: there was none).

    A field that changed or is new is confirmed now, by the one who saves; one that stayed keeps its mark or its lack of
    one; one that is gone loses it. An item that moves in its list takes its mark along. The old document must be in
    the form of today's schema: a state that was just migrated is compared as migrated.
    """
    origins = json_path.Origins(old_value, new_value)
    marks: Marks = {}
    for path in tracked(schema, new_value):
        steps = parse(path)
        item, source = json_path.get(new_value, steps), origins.of(steps)
        if source is not None and json_path.same(json_path.get(old_value, source), item):
            kept = old_marks.get(json_path.render(source))
            if kept is not None:
                marks[path] = kept
            continue
        confirmation = _own(item, by) or _Confirmation(now, by)
        if confirmation.at is not None:
            # A date from the future is no better than now, or it would stay fresh until then.
            marks[path] = _mark(min(confirmation.at, now), confirmation.by)
    return marks


def moved(schema: Schema, stored: Any, marks: Marks, migrated: Any) -> Marks:
    """The marks of a document that was migrated. An item of a list takes its mark along; what has no place in the
    stored document was never confirmed."""
    origins = json_path.Origins(stored, migrated)
    found: Marks = {}
    for path in tracked(schema, migrated):
        source = origins.of(parse(path))
        mark = None if source is None else marks.get(json_path.render(source))
        if mark is not None:
            found[path] = mark
    return found


def report(schema: Schema, value: Any, marks: Mapping[str, Mapping[str, Any]], now: int) -> FreshnessReport:
    """Report what is stale in a document, and which critical fields must be verified before acting."""
    stale, must_verify = [], []
    for path, rule in tracked(schema, value).items():
        at, by = _confirmation(json_path.get(value, path), marks.get(path), now)
        age_s = inf if at is None else max(0, now - at) / 1_000_000
        limit_s = rule.fresh_for.total_seconds() if rule.fresh_for is not None else inf
        too_old = rule.fresh_for is not None and age_s > limit_s
        if too_old:
            moment = None if at is None else to_datetime(at)
            stale.append(StaleField(path, age_s, limit_s, moment, by, rule.critical))
        if rule.critical and (too_old or at is None):
            must_verify.append(path)
    return FreshnessReport(tuple(stale), tuple(must_verify))


def confirmed(schema: Schema, value: Any, marks: Marks, path: str, *, now: int, by: str) -> Confirmed:
    """Confirm a field, or every tracked field inside it, as true now.

    An object with its own ``confirmed_at`` (and ``confirmed_by``) gets them renewed in the document too. A path that
    is not in the document, or whose freshness is not tracked, raises ``Invalid``.
    """
    steps = parse(path)
    item = json_path.get(value, steps)
    targets = inside(schema, value, path)
    if not targets and _own(item, by) is not None:
        targets = [json_path.render(steps)]
    if not targets:
        raise _untracked(schema, list(tracked(schema, value)), steps)
    renewed = dict(marks)
    for target in targets:
        renewed[target] = _mark(now, by)
        value = _renewed(value, target, now, by)
    return Confirmed(value, renewed)


def inside(schema: Schema, value: Any, path: str) -> list[str]:
    """The tracked fields at a path and inside what is there."""
    steps = parse(path)
    return [each for each in tracked(schema, value) if parse(each)[: len(steps)] == steps]


def _untracked(schema: Schema, watched: list[str], steps: Path) -> Invalid:
    path = json_path.render(steps)
    around = [each for each in watched if steps[: len(parse(each))] == parse(each)]
    if around:
        return Invalid(f"{path!r} is tracked as part of {around[0]!r}; confirm that", path=path, tracked=around[0])
    patterns = ", ".join({**schema.fresh, **dict.fromkeys(schema.critical)}) or "nothing"
    name = f"schema {schema.name!r}" if schema.name else "a plain dict"
    return Invalid(f"{name} does not track the freshness of {path!r}; it tracks {patterns}", path=path)


def _renewed(value: Any, path: str, now: int, by: str) -> Any:
    item = json_path.get(value, path)
    if _own(item, by) is None:
        return value
    item = {**item, "confirmed_at": msgspec.to_builtins(to_datetime(now))}
    if "confirmed_by" in item:
        item["confirmed_by"] = by
    return json_path.with_value(value, path, item)


def _confirmation(item: Any, mark: Mapping[str, Any] | None, now: int) -> _Confirmation:
    """Who confirmed a field, and when: from its own fields if it has them, otherwise from its mark."""
    stored = _Confirmation(mark["at"], mark["by"]) if mark is not None else _Confirmation(None, "")
    own = _own(item, stored.by)
    if own is None:
        return stored
    if own.at is not None and own.at > now and stored.at is not None:
        return _Confirmation(stored.at, own.by)
    return own


def _own(item: Any, by: str) -> _Confirmation | None:
    """What an object says about its own confirmation: None if it has no such field, no time if it names no moment."""
    if not isinstance(item, dict) or "confirmed_at" not in item:
        return None
    who = item.get("confirmed_by")
    return _Confirmation(_moment(item["confirmed_at"]), who if isinstance(who, str) and who else by)


def _moment(text: Any) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        micros = None if moment.tzinfo is None else to_micros(moment)
        return None if micros is None else to_micros(to_datetime(micros))
    except (ValueError, OverflowError, Invalid):  # the first and last hours of the calendar have no UTC
        return None


def _mark(at: int, by: str) -> dict[str, Any]:
    return {"at": at, "by": by}
