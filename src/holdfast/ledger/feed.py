"""Following what happens in a tenant: watching the feed, named followers that keep their place, and trimming it.

A follower's position is a record under compare-and-set, so of two processes that use one name only one gets ahead. It
moves after the commits were handled: a process killed before that gets the same commits again, and recognises them by
number. Deliberately absent: delivery, and any idea of what a change means.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.checks import check_flag, check_several, is_seconds
from holdfast.clock import to_datetime
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Commit, Delete, Guard, Interest, Op, Put, Query, Record, Trim, View
from holdfast.errors import Conflict, FeedTrimmed, Invalid, quoted
from holdfast.ids import check_id
from holdfast.ledger.core import Core, compare_and_set, scan_all
from holdfast.ledger.thread import check_count

KIND = "follower"
_PAGE = 100
_LONG_S = 60.0
"""The longest wait before a follower moves past commits that do not match its filter."""


def interest(
    kinds: str | Iterable[str] | None, user: str | None, agent: str | None, thread: str | None
) -> Interest | None:
    """A filter for changes; None lets everything through."""
    named = (("user", user), ("agent", agent), ("thread id", thread))
    user, agent, thread = (None if value is None else check_id(value, what) for what, value in named)
    wanted = None
    if kinds is not None:
        several = [kinds] if isinstance(kinds, str) else check_several("kinds", kinds)
        wanted = frozenset(check_id(kind, "kind") for kind in several)
    if wanted is None and user is agent is thread is None:
        return None
    return Interest(wanted, user, agent, thread)


def check_timeout(timeout_s: float | None) -> None:
    if timeout_s is not None and not is_seconds(timeout_s):
        raise Invalid(f"timeout_s is a number of seconds, 0 or more, not {quoted(timeout_s)}")


class FeedPage(NamedTuple):
    """Commits that match, and the position to move to once they are handled."""

    commits: list[Commit]
    upto: int


def page_of(view: View, tenant: str, after: int, only: Interest | None, timeout_s: float = 0.0) -> FeedPage:
    """The next matching commits after a position. If none matches, the position moves past the others."""
    head = view.head(tenant)
    commits = view.feed(tenant, after, _PAGE, timeout_s, only)
    return FeedPage(commits, commits[-1].position if commits else max(after, head))


class Deadline:
    """How long to wait for a commit: up to ``timeout_s`` since the last one, or forever."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = math.inf if timeout_s is None else timeout_s
        self.renew()

    def renew(self) -> None:
        self._end = time.monotonic() + self._timeout_s

    @property
    def left_s(self) -> float:
        """How long to wait now; 0 when time is up."""
        return min(_LONG_S, max(0.0, self._end - time.monotonic()))


def watch(core: Core, after: int, only: Interest | None, timeout_s: float | None) -> Iterator[Commit]:
    """Yield commits in the order they became durable; end after ``timeout_s`` without one."""
    patience = Deadline(timeout_s)
    while True:
        page = page_of(core.engine, core.tenant, after, only, patience.left_s)
        yield from page.commits
        after = page.upto
        if page.commits:
            patience.renew()
        elif not patience.left_s:
            return


class FollowerInfo(NamedTuple):
    """A follower in a listing: its position, how many commits it is behind, and when it last moved."""

    name: str
    position: int
    lag: int
    moved: datetime


class Follower:
    """A named place in the feed that outlives its process. Use the same name again to continue from there."""

    def __init__(self, core: Core, name: str, only: Interest | None = None, after: int = 0) -> None:
        check_count("after", after)
        self.name = check_id(name, "follower")
        self.core, self.only, self._start = core, only, after
        self._version = 0
        self.known: int | None = None  # the position as this handle knows it

    def __repr__(self) -> str:
        return f"Follower({self.name!r})"

    @property
    def position(self) -> int:
        """The number of the last commit that was handled."""
        record = self.core.engine.get(self.core.tenant, KIND, self.name)
        return self._start if record is None else _position(record)

    @property
    def lag(self) -> int:
        """How many commits there are after its position, matching or not."""
        return max(0, self.core.engine.head(self.core.tenant) - self.position)

    def read(self, *, timeout_s: float | None = 0.0) -> list[Commit]:
        """Return the next matching commits without moving; wait up to ``timeout_s`` if there are none."""
        check_timeout(timeout_s)
        patience = Deadline(timeout_s)
        while not (commits := self.page(patience.left_s).commits) and patience.left_s:
            pass
        return commits

    def follow(self, *, timeout_s: float | None = None) -> Iterator[Commit]:
        """Yield matching commits, and mark each as handled when you ask for the next.

        After a crash you get the commit you were at again: delivery is at least once; recognise it by its
        ``position``. It ends after ``timeout_s`` without a commit. Raises ``Conflict`` when another process uses the
        same name.
        """
        check_timeout(timeout_s)
        patience = Deadline(timeout_s)
        while True:
            page = self.page(patience.left_s)
            for commit in page.commits:
                at = self.known
                yield commit
                if self.known != at:  # moved by hand in the meantime: continue from there
                    break
                self.advance(commit.position)
            if page.commits:
                patience.renew()
            elif not patience.left_s:
                return

    def page(self, wait_s: float = 0.0) -> FeedPage:
        """The next matching commits. If there are none, the follower moves past the others."""
        at = self._load()
        try:
            page = page_of(self.core.engine, self.core.tenant, at, self.only, wait_s)
        except FeedTrimmed as error:
            raise FeedTrimmed(
                f"follower {self.name!r} is at {at}, and the feed begins at {error.first}: read what you need from the "
                f"store, then reset({error.first - 1})",
                first=error.first, after=at,
            ) from error  # fmt: skip
        if page.upto > at and not page.commits:
            self._move(page.upto)
        return page

    def advance(self, position: int) -> None:
        """Mark everything up to a position as handled. Raises ``Conflict`` if another process moved the follower."""
        check_count("position", position)
        at = self._load() if self.known is None else self.known
        self._refuse_past_end(position)
        if position < at:
            raise Invalid(f"follower {self.name!r} is at {at}; to go back to {position}, use reset", position=at)
        self._move(position)

    def reset(self, position: int = 0) -> None:
        """Continue from another position, even an earlier one, no matter which process moved it last."""
        check_count("position", position)
        self._refuse_past_end(position)
        self._load()
        self._move(position)

    def remove(self) -> None:
        """Remove the follower. The feed may now be trimmed past it, and the name is free."""
        self.core.write([Delete(KIND, self.name, derived=True)], self.core.clock.now())
        self._version, self.known = 0, None

    def _refuse_past_end(self, position: int) -> None:
        head = self.core.engine.head(self.core.tenant)
        if position > head:
            raise Invalid(f"the feed is at {head}; follower {self.name!r} cannot be at {position}", head=head)

    def _load(self) -> int:
        """Read its position; a new follower is stored at its start."""
        record = self.core.engine.get(self.core.tenant, KIND, self.name)
        if record is None:
            self._version = 0
            self._refuse_past_end(self._start)
            self._move(self._start)
            return self._start
        self._version, self.known = record.version, _position(record)
        return self.known

    def _move(self, position: int) -> None:
        """Derived, so that a move is not itself a commit in the feed."""
        put = Put(KIND, self.name, encode({"position": position}), expect=self._version, derived=True)
        try:
            self.core.write([put], self.core.clock.now())
        except Conflict as error:
            raise Conflict(
                f"another process moved follower {self.name!r}; use one name per process, or follow from one process",
                name=self.name, position=position,
            ) from error  # fmt: skip
        self._version, self.known = self._version + 1, position


def followers(core: Core) -> list[FollowerInfo]:
    """Every follower of a tenant, furthest behind first."""
    head = core.engine.head(core.tenant)
    found = [
        FollowerInfo(record.id, at := _position(record), max(0, head - at), to_datetime(record.time))
        for record in scan_all(core.engine, core.tenant, Query(KIND))
    ]
    return sorted(found, key=lambda info: (info.position, info.name))


def trim(core: Core, older_than: timedelta | None, keep: int | None, past_followers: bool) -> int:
    """Drop old commits from the feed; return how many. Commits a follower has not seen stay, unless you say so."""
    if older_than is None and keep is None:
        raise Invalid("say what to drop from the feed: give older_than=…, keep=…, or both")
    check_flag("past_followers", past_followers)
    if keep is not None:
        check_count("keep", keep)
    if older_than is not None and (not isinstance(older_than, timedelta) or older_than < timedelta(0)):
        raise Invalid(f"older_than is a span of time such as timedelta(days=30), not {quoted(older_than)}")
    first, head = _first(core), core.engine.head(core.tenant)
    upto = head if keep is None else head - keep
    if older_than is not None:
        before = core.clock.now() - older_than // timedelta(microseconds=1)
        upto = min(upto, _last_before(core, first, before))

    def trimming() -> tuple[int, list[Op]]:
        """How much may be dropped, guarded against a follower that moves back in the meantime."""
        behind = [] if past_followers else list(scan_all(core.engine, core.tenant, Query(KIND)))
        most = min([upto, *map(_position, behind)])
        return most, [*(Guard(KIND, record.id, record.version) for record in behind), Trim(most)]

    def commit(planned: tuple[int, list[Op]]) -> int:
        most, ops = planned
        if most >= first:
            core.write(ops, core.clock.now())
        return max(0, most - first + 1)

    return compare_and_set(trimming, commit, "a follower")


def _first(core: Core) -> int:
    """The oldest position that the feed still holds."""
    try:
        core.engine.feed(core.tenant, 0, 1)
    except FeedTrimmed as error:
        first: int = error.first
        return first
    return 1


def _last_before(core: Core, first: int, moment: int) -> int:
    """The last position before the first commit that is not older than a moment. Clocks differ, so it reads on."""
    after = first - 1
    while commits := core.engine.feed(core.tenant, after, _PAGE):
        for commit in commits:
            if commit.time >= moment:
                return commit.position - 1
        after = commits[-1].position
    return after


def _position(record: Record) -> int:
    position: int = decode(record.body)["position"]
    return position
