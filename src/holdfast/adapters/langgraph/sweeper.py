"""How long things live, and a thread that sweeps every so often. Deliberately absent: what sweeping is."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from holdfast.adapters.langgraph.by_address import AtOnce
from holdfast.errors import Invalid, Misconfigured
from holdfast.extension import quoted

_log = logging.getLogger(__name__)

MINUTE = 60_000_000  # in microseconds
_EVERY_MINUTES = 5  # as LangGraph's own stores do
_LONGEST = 1_000_000_000  # minutes, nearly two thousand years: what ends later has no date


class Number(AtOnce, int):
    """How many, or whether."""


class Sweeper(AtOnce, Future[None]):
    """Calls ``sweep`` after each pause. As a future it is done when the thread has ended; cancelling it ends it."""

    def __init__(self, sweep: Callable[[], object], pause_s: float) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self.add_done_callback(lambda _: self._stopped.set())
        args = (sweep, min(pause_s, threading.TIMEOUT_MAX))
        self._thread = threading.Thread(target=self._run, args=args, name="holdfast-sweeper", daemon=True)
        self._thread.start()

    @property
    def sweeps(self) -> bool:
        """Whether it will sweep again; not in a forked child, which has the object and not the thread."""
        return self._thread.is_alive() and not self._stopped.is_set()

    def stop(self, timeout: float | None = None) -> bool:
        """End the thread, and wait for a sweep that is under way. Return whether it has ended."""
        self._stopped.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self, sweep: Callable[[], object], pause_s: float) -> None:
        while not self._stopped.wait(pause_s):
            try:
                sweep()
            except Misconfigured:  # the store was closed
                break
            except Exception:
                _log.warning("could not sweep what has expired; trying again in %g s", pause_s, exc_info=True)
        if self.set_running_or_notify_cancel():
            self.set_result(None)


class Sweeps:
    """Adds a background sweeper to a class that can sweep what has expired."""

    ttl_config: Mapping[str, Any]
    _sweeper: Sweeper | None = None

    @abstractmethod
    def sweep_ttl(self) -> Number:
        """Remove what has expired, and return how many that were."""

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Sweeper:
        """Sweep every so many minutes, in a thread that ends with the store, and return what waits for its end.

        Without an interval, here or in ``ttl``, it is every five minutes. One thread sweeps, however often this is
        called.
        """
        given = check_minutes("sweep_interval_minutes", sweep_interval_minutes)
        if self._sweeper is None or not self._sweeper.sweeps:
            minutes = given or self.ttl_config.get("sweep_interval_minutes") or _EVERY_MINUTES
            self._sweeper = Sweeper(self.sweep_ttl, minutes * 60)
        return self._sweeper

    def stop_ttl_sweeper(self, timeout: float | None = None) -> Number:
        """Stop sweeping, and wait up to ``timeout`` seconds for a sweep that is under way. Return whether it ended."""
        return Number(self._sweeper is None or self._sweeper.stop(timeout))


def check_minutes(name: str, minutes: Any) -> float | None:
    """A time in minutes, or None for ever. No comparison holds for nan."""
    if minutes is None or (type(minutes) in (int, float) and 0 < minutes <= _LONGEST):
        return minutes
    raise Invalid(f"{name} is a number of minutes over 0, at most {_LONGEST:,}, or None, not {quoted(minutes)}")


def check_ttl(ttl: Any, known: Any, such: str) -> dict[str, Any]:
    """Check a caller's time to live; an empty one means for ever."""
    given = check_config(ttl, known, "ttl", such)
    for name in ("default_ttl", "sweep_interval_minutes"):
        check_minutes(f"ttl: {name}", given.get(name))
    return given


def check_config(config: Any, known: Any, name: str, such: str) -> dict[str, Any]:
    """Check a configuration dict; a misspelled name is an error, because it would have no effect."""
    config = {} if config is None else config
    if not isinstance(config, Mapping):
        raise Invalid(f"{name} is a dict such as {such}, not {quoted(config)}")
    if unknown := [key for key in config if key not in known.__annotations__]:
        raise Invalid(f"{name}: there is no {unknown[0]!r}; there are {', '.join(sorted(known.__annotations__))}")
    return dict(config)
