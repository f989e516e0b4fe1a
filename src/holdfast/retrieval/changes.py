"""What changed since the last check, for the indexes of a store.

The feed says which threads, collections and files a commit touched, and who owns them. Each owner's part of it is
followed by a cursor of its own, so nobody pays for what others do; what was touched is read at once and given to
the indexes concerned. If too much happened meanwhile, or something was erased, each index of that owner
lists what it covers again. No clock is involved, so none can mislead. Deliberately absent: the indexes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

from holdfast import atfork
from holdfast.engine.contract import Change, Commit, Interest, Query, Record, Scope
from holdfast.errors import FeedTrimmed
from holdfast.ledger.core import Core, fetch
from holdfast.ledger.files import FILE
from holdfast.memory.names import COLLECTION

Name = tuple[str, str]
_KINDS = frozenset({"thread", COLLECTION, FILE})
_MANY = 500
_OWNERS = 200


class Concerned(Protocol):
    """A listener for some threads, collections or files."""

    def wants(self, name: Name, owner: Scope) -> bool:
        """Whether a thread, collection or file of this owner concerns it."""
        ...

    def notice(self, name: Name, record: Record | None) -> None:
        """A thread, collection or file changed, or is gone."""
        ...

    def lose_track(self) -> None:
        """Nobody can say what changed."""
        ...


class ChangeTracker:
    """Follows the feed of one store, for each owner apart: a user, or None for what belongs to nobody."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = atfork.lock(forget=self._look_anew)
        self._after: dict[str | None, int] = {}
        self._concerned: defaultdict[str | None, WeakSet[Concerned]] = defaultdict(WeakSet)  # those in use
        self._filed, self._unsure = False, True

    @property
    def files(self) -> bool:
        """Whether there are files at all, as of the last look. Most stores have none, and pay nothing for them."""
        with self._lock:
            if not self._filed and self._unsure:
                self._filed = bool(self._core.engine.scan(self._core.tenant, Query(FILE, limit=1)))
                self._unsure = False
            return self._filed

    def join(self, concerned: Concerned, owner: str | None) -> None:
        with self._lock:
            self._concerned[owner].add(concerned)

    def _look_anew(self) -> None:
        """This is a forked child, and another thread was in the middle of telling: nobody knows whom it told."""
        self._after.clear()
        self._unsure = True

    def look(self, owner: str | None) -> None:
        """Notify every listener of this owner of what happened since the last check."""
        with self._lock:
            head = self._core.engine.head(self._core.tenant)
            after = self._after.get(owner)
            if after is not None and after >= head:
                return
            commits = self._commits(owner, after)
            if commits is None or len(commits) == _MANY:
                self._lose_track(owner)
            else:
                self._tell(owner, [change for commit in commits for change in commit.changes])
            self._let_go()
            # Only now: after an interruption in between it is read again.
            self._after[owner] = max(head, commits[-1].position if commits else 0)

    def _commits(self, owner: str | None, after: int | None) -> list[Commit] | None:
        if after is None:
            return None
        only = Interest(kinds=_KINDS, user=owner, unowned=owner is None)
        try:
            return self._core.engine.feed(self._core.tenant, after, _MANY, only=only)
        except FeedTrimmed:
            return None

    def _tell(self, owner: str | None, changes: Iterable[Change]) -> None:
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        for change in changes:
            if not change.id:  # something was erased, and the feed does not say what
                self._lose_track(owner)
                return
            self._filed = self._filed or change.kind == FILE
            name = (change.kind, change.id)
            if any(one.wants(name, change.scope) for one in self._concerned[owner]):
                wanted[change.kind].add(change.id)
        for kind, ids in wanted.items():
            found = fetch(self._core.engine, self._core.tenant, kind, sorted(ids))
            for id in ids:
                for one in self._concerned[owner]:
                    one.notice((kind, id), found.get(id))

    def _let_go(self) -> None:
        """Forget owners whom nobody is concerned with any more: who comes again lists everything anyway."""
        if len(self._after) >= _OWNERS:
            for owner in [owner for owner, concerned in self._concerned.items() if not concerned]:
                del self._concerned[owner]
                self._after.pop(owner, None)

    def _lose_track(self, owner: str | None) -> None:
        self._unsure = True
        for one in self._concerned[owner]:
            one.lose_track()
