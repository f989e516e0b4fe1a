"""Waiting for commits: any number of callers, one thread that checks for them, and none when nobody waits.

A commit of this process is announced. Those of other processes are noticed by polling the heads of the feeds, as often
as the engine says. New commits are read once for all waiting callers, and only those concerned are woken. Deliberately
absent: a promise that nothing is missed while nobody waits. A position says where to continue.
"""

from __future__ import annotations

import logging
import queue
import threading
import time as _time
from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import NamedTuple

from holdfast import atfork
from holdfast.engine.contract import Commit, Interest, View
from holdfast.errors import FeedTrimmed

_log = logging.getLogger(__name__)

Heads = Callable[[Collection[str]], Mapping[str, int]]
"""The heads of the feeds of some tenants."""
Call = Callable[[list[Commit]], None]
_MANY = 500
_RETRY_S = 1.0


class _Waiter(NamedTuple):
    """A waiting caller: what it waits for, and what to call."""

    tenant: str
    after: int
    only: Interest | None
    call: Call


class Waiters:
    """Those who wait for commits of one engine. ``naps`` are the shortest and the longest pause between two looks;
    without them only this process writes."""

    def __init__(self, view: View, heads: Heads, naps: tuple[float, float] | None = None) -> None:
        self._view, self._heads, self._naps = view, heads, naps
        self._numbers = count()
        self._closed = False
        self._begin()
        atfork.join(in_child=self._begin)

    def _begin(self) -> None:
        """Start with no waiting callers, also in a forked child: they are the parent's."""
        self._bell = threading.Condition()
        self._waiting: dict[int, _Waiter] = {}
        self._thread: threading.Thread | None = None
        self._look = False

    def feed(self, tenant: str, after: int, limit: int, timeout_s: float, only: Interest | None) -> list[Commit]:
        """What the feed holds after a position; if nothing, what arrives within the time given."""
        deadline = _time.monotonic() + timeout_s
        while True:
            head = self._view.head(tenant)  # before the look: what comes after it is waited for
            found = self._view.feed(tenant, after, limit, only=only)
            left = deadline - _time.monotonic()
            if found or left <= 0:
                return found
            after = max(after, head)
            brought: queue.SimpleQueue[list[Commit]] = queue.SimpleQueue()
            cancel = self.listen(tenant, after, brought.put, only)
            try:
                if came := brought.get(timeout=min(left, threading.TIMEOUT_MAX)):
                    return came[:limit]
            except queue.Empty:
                pass
            finally:
                cancel()

    def listen(self, tenant: str, after: int, call: Call, only: Interest | None = None) -> Callable[[], None]:
        """Call ``call`` once there are matching commits after a position, or the engine closes."""
        number = next(self._numbers)
        with self._bell:
            closed = self._closed
            if not closed:
                self._waiting[number] = _Waiter(tenant, after, only, call)
                self._ring()
                if self._thread is None:
                    thread = threading.Thread(target=self._serve, name="holdfast-waiting", daemon=True)
                    thread.start()
                    self._thread = thread
        if closed:
            call([])
        return lambda: self._cancel(number)

    def announce(self) -> None:
        """Something was committed here. Costs nothing when nobody waits."""
        if self._waiting:
            with self._bell:
                self._ring()

    def close(self) -> None:
        """Call everybody, so that nobody waits for an engine that is gone."""
        with self._bell:
            self._closed = True
            left = list(self._waiting.values())
            self._waiting.clear()
            thread = self._thread
            self._ring()
        for waiter in left:
            _tell(waiter, [])
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _ring(self) -> None:
        self._look = True
        self._bell.notify_all()

    def _cancel(self, number: int) -> None:
        with self._bell:
            if self._waiting.pop(number, None) is not None and not self._waiting:
                self._ring()  # the thread has nothing left to do

    def _serve(self) -> None:
        nap = None if self._naps is None else self._naps[0]
        while self._rest(nap):
            try:
                woken = self._wake()
            except Exception as error:  # it may be back soon, and callers may have a time limit
                _log.warning("cannot check for commits: %s", error)
                self._pause(_RETRY_S)
                continue
            if self._naps is not None and nap is not None:
                nap = self._naps[0] if woken else min(nap * 1.5, self._naps[1])

    def _rest(self, nap: float | None) -> bool:
        """Pause until there is something to check; return whether anybody still waits."""
        with self._bell:
            if not self._look and self._waiting:
                self._bell.wait(nap)
            self._look = False
            if not self._waiting:
                self._thread = None
            return bool(self._waiting)

    def _pause(self, seconds: float) -> None:
        with self._bell:
            self._bell.wait_for(lambda: self._closed, seconds)

    def _wake(self) -> bool:
        """Check the heads of the feeds, and call those whose commits have come; return whether there were any."""
        with self._bell:
            waiting = dict(self._waiting)
        heads = self._heads({waiter.tenant for waiter in waiting.values()})
        behind = {n: waiter for n, waiter in waiting.items() if heads.get(waiter.tenant, 0) > waiter.after}
        for tenant in {waiter.tenant for waiter in behind.values()}:
            self._bring(tenant, {n: waiter for n, waiter in behind.items() if waiter.tenant == tenant}, heads[tenant])
        return bool(behind)

    def _bring(self, tenant: str, behind: Mapping[int, _Waiter], head: int) -> None:
        """Read what a tenant's waiting callers have not seen, and call those concerned."""
        commits = self._read(tenant, min(waiter.after for waiter in behind.values()))
        for number, waiter in behind.items():
            found = [] if commits is None else _concerning(commits, waiter)
            with self._bell:
                if number not in self._waiting:
                    continue
                if commits is not None and not found:  # nothing for this one: it waits on from there
                    self._waiting[number] = waiter._replace(after=max(head, commits[-1].position if commits else 0))
                    continue
                del self._waiting[number]
            _tell(waiter, found)

    def _read(self, tenant: str, after: int) -> list[Commit] | None:
        """The commits after a position, or None if there are too many or they were dropped."""
        try:
            commits = self._view.feed(tenant, after, _MANY)
        except FeedTrimmed:
            return None
        return None if len(commits) == _MANY else commits


def _concerning(commits: list[Commit], waiter: _Waiter) -> list[Commit]:
    new = (commit for commit in commits if commit.position > waiter.after)
    if waiter.only is None:
        return list(new)
    return [found for commit in new if (found := waiter.only.of(commit)) is not None]


def _tell(waiter: _Waiter, commits: list[Commit]) -> None:
    try:
        waiter.call(commits)
    except Exception:  # its event loop is gone, for example
        _log.exception("a waiting caller could not be notified of a commit")
