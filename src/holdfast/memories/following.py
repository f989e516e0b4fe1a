"""What changed since the last look, for every index of a store at once.

The feed says which threads and books a commit touched. One cursor follows it for the whole process; what was touched is
read once and given to whichever indexes it concerns. Where too much happened meanwhile, or something was erased, each
index lists what it covers again. No clock is involved, so none can mislead. Deliberately absent: the indexes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from holdfast.engine.contract import Record, View
from holdfast.ledger.core import Core
from holdfast.memory.names import BOOK

Name = tuple[str, str]
KINDS = ("thread", BOOK)
_MANY = 500


class Concerned(Protocol):
    """Whoever wants to know of some threads and books."""

    def notice(self, name: Name, record: Record | None) -> None:
        """A thread or book changed, or is gone."""
        ...

    def lose_track(self) -> None:
        """Nobody can say what changed."""
        ...


class Follower:
    """Follows the feed of one store."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._after: int | None = None
        self._concerned: list[Concerned] = []

    def join(self, concerned: Concerned) -> None:
        with self._lock:
            self._concerned.append(concerned)

    def leave(self, concerned: Concerned) -> None:
        with self._lock:
            self._concerned = [one for one in self._concerned if one is not concerned]

    def look(self) -> None:
        """Tell everybody what happened since the last look."""
        with self._lock:
            if self._after is None:
                self._after = _feed_end(self._core.engine, self._core.tenant)
                self._tell(lambda one: one.lose_track())
                return
            commits = self._core.engine.feed(self._core.tenant, self._after, _MANY)
            if len(commits) == _MANY:
                self._after = _feed_end(self._core.engine, self._core.tenant, commits[-1].position)
                self._tell(lambda one: one.lose_track())
                return
            touched: dict[Name, None] = {}
            for commit in commits:
                touched.update(((change.kind, change.id), None) for change in commit.changes if change.kind in KINDS)
            if any(not id for _, id in touched):  # something was erased, and the feed does not say what
                self._tell(lambda one: one.lose_track())
            else:
                for name in touched:
                    record = self._core.engine.get(self._core.tenant, *name)
                    self._tell(lambda one, name=name, record=record: one.notice(name, record))  # type: ignore[misc]
            self._after = commits[-1].position if commits else self._after

    def _tell(self, what: Callable[[Concerned], None]) -> None:
        for one in self._concerned:
            what(one)


def _feed_end(view: View, tenant: str, known: int = 0) -> int:
    """The position of the newest commit, found by doubling and halving: the contract has no verb for it."""
    step = 1
    while view.feed(tenant, known + step, 1):
        known += step
        step *= 2
    low, high = known, known + step
    while low < high:
        middle = (low + high) // 2
        if view.feed(tenant, middle, 1):
            low = middle + 1
        else:
            high = middle
    return low
