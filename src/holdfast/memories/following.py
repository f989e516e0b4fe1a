"""What changed since the last look, for every index of a store at once.

The feed says which threads, books and files a commit touched. One cursor follows it for the whole process; what was
touched is read once and given to whichever indexes it concerns. Where too much happened meanwhile, or something was
erased, each index lists what it covers again. No clock is involved, so none can mislead. Deliberately absent: the
indexes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

from holdfast.engine.contract import Query, Record, Scope
from holdfast.ledger.core import Core, feed_end
from holdfast.ledger.files import FILE
from holdfast.memory.names import BOOK

Name = tuple[str, str]
_KINDS = ("thread", BOOK, FILE)
_MANY = 500
_KNOWN = 100_000


class Concerned(Protocol):
    """Whoever wants to know of some threads, books or files."""

    def wants(self, name: Name, owner: Scope) -> bool:
        """Whether a thread, book or file of this owner concerns it."""
        ...

    def notice(self, name: Name, record: Record | None) -> None:
        """A thread, book or file changed, or is gone."""
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
        self._concerned: WeakSet[Concerned] = WeakSet()  # whoever is let go of need not be told
        self._owners: dict[Name, Scope] = {}
        self._filed, self._unsure = False, True

    @property
    def files(self) -> bool:
        """Whether there are files at all, as of the last look. Most stores have none, and pay nothing for them."""
        with self._lock:
            if not self._filed and self._unsure:
                self._filed = bool(self._core.engine.scan(self._core.tenant, Query(FILE, limit=1)))
                self._unsure = False
            return self._filed

    def join(self, concerned: Concerned) -> None:
        with self._lock:
            self._concerned.add(concerned)

    def look(self) -> None:
        """Tell everybody what happened since the last look."""
        with self._lock:
            engine, tenant = self._core.engine, self._core.tenant
            commits = [] if self._after is None else engine.feed(tenant, self._after, _MANY)
            if self._after is None or len(commits) == _MANY:
                end = feed_end(engine, tenant, commits[-1].position if commits else 0)
                self._tell(lambda one: one.lose_track())
                self._unsure = True
                self._after = end  # only now: whoever is interrupted in between looks again
                return
            touched: dict[Name, None] = {}
            for commit in commits:
                touched.update(((change.kind, change.id), None) for change in commit.changes if change.kind in _KINDS)
            self._filed = self._filed or any(kind == FILE for kind, _ in touched)
            if any(not id for _, id in touched):  # something was erased, and the feed does not say what
                self._tell(lambda one: one.lose_track())
            else:
                for name in touched:
                    self._read(name)
            self._after = commits[-1].position if commits else self._after

    def _read(self, name: Name) -> None:
        """Read what was touched, if it concerns anybody. Whose it is does not change while it lives."""
        owner = self._owners.get(name)
        if owner is not None and not any(one.wants(name, owner) for one in self._concerned):
            return
        record = self._core.engine.get(self._core.tenant, *name)
        if record is None:
            self._owners.pop(name, None)
        elif len(self._owners) < _KNOWN:
            self._owners[name] = record.scope
        for one in self._concerned:
            one.notice(name, record)

    def _tell(self, what: Callable[[Concerned], None]) -> None:
        for one in self._concerned:
            what(one)
