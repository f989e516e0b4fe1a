"""A thread that sweeps a store every so often, and what async programs await where blocking ones do not.

Deliberately absent: what sweeping is, and a way to hide what has expired. Nobody sees that, whether or not this runs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Self

from holdfast.errors import Misconfigured

_log = logging.getLogger(__name__)

EVERY_MINUTES = 5  # as LangGraph's own stores do


class _Awaited:
    """A result that is there at once, and that a program written for LangGraph's async stores may await."""

    def __await__(self) -> Generator[Any, None, Self]:
        yield from ()
        return self


class Number(_Awaited, int):
    """How many, or whether."""


class Sweeper(_Awaited, Future[None]):
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
