"""Time, passed in as a value.

Inside the store a moment is an integer: microseconds since 1970 in UTC. At the surface it is an aware ``datetime``.
Deliberately absent: any call to the wall clock outside ``SystemClock``; rooms are given a clock.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable

from holdfast.errors import Invalid, quoted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Says what time it is."""

    def now(self) -> int:
        """Return microseconds since 1970 in UTC."""
        ...


class SystemClock:
    """The wall clock of this machine."""

    def now(self) -> int:
        return time.time_ns() // 1_000


@runtime_checkable
class Sleeps(Protocol):
    """A clock of its own time, in which waiting is moving on."""

    def sleep(self, seconds: float) -> None:
        """Let time pass before returning."""
        ...


def sleep(clock: Clock, seconds: float) -> None:
    """Wait by a clock: one that has a time of its own moves on, any other is waited for."""
    if isinstance(clock, Sleeps):
        clock.sleep(seconds)
    else:
        time.sleep(seconds)


def to_micros(moment: datetime) -> int:
    """Turn an aware datetime into microseconds; a naive one is refused, because it names no moment."""
    if not isinstance(moment, datetime):
        raise Invalid(f"a moment is a datetime with a time zone, not {quoted(moment)}")
    if moment.tzinfo is None:
        raise Invalid(f"{moment!r} has no time zone; use datetime.now(timezone.utc) or attach one")
    try:
        return (moment.astimezone(UTC) - _EPOCH) // _MICROSECOND
    except OverflowError:  # the first and last hours of the calendar, in some zones
        raise Invalid(f"{moment!r} is outside the calendar of UTC") from None


def to_datetime(micros: int) -> datetime:
    """Turn microseconds into an aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=micros)
