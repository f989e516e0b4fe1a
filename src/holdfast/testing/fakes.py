"""Stand-ins for what the outside world decides: time and chance.

Both are deterministic and thread-safe. Deliberately absent: a fake engine; ``RamEngine`` is a real one.
"""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime

from holdfast.clock import to_micros
from holdfast.ids import Ids

_START = to_micros(datetime(2026, 1, 1, tzinfo=UTC))


class ManualClock:
    """A clock that stays where you set it. Each reading advances it by one microsecond, so that order is visible."""

    def __init__(self, start: int | datetime = _START) -> None:
        self._lock = threading.Lock()
        self._moment = _micros(start)

    def now(self) -> int:
        with self._lock:
            self._moment += 1
            return self._moment

    def set(self, moment: int | datetime) -> None:
        """Set the clock, even to an earlier moment: wall clocks jump back, and the store must cope."""
        with self._lock:
            self._moment = _micros(moment)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._moment += round(seconds * 1_000_000)

    def sleep(self, seconds: float) -> None:
        """Let time pass without waiting for it."""
        self.advance(seconds)


class SeededIds(Ids):
    """Stream numbers that are the same in every run: equal seeds give equal numbers for equal calls."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(random.Random(seed).getrandbits)


def _micros(moment: int | datetime) -> int:
    return to_micros(moment) if isinstance(moment, datetime) else moment
