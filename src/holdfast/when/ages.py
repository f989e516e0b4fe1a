"""How long ago something was, in one unit that a reader grasps at a glance."""

from __future__ import annotations

from datetime import datetime

_UNITS = (("year", 365.25), ("month", 30.44), ("week", 7.0))


def age(then: datetime, now: datetime) -> str:
    """How far a moment lies back, by the calendar: all of one day is equally long ago."""
    days = (now.date() - then.date()).days
    if days == 0:
        return "today"
    if abs(days) == 1:
        return "yesterday" if days > 0 else "tomorrow"
    unit, length = next(((unit, length) for unit, length in _UNITS if abs(days) >= 2 * length), ("day", 1.0))
    some = f"{int(abs(days) / length)} {unit}s"
    return f"{some} ago" if days > 0 else f"in {some}"
