"""Reading from a streaming replica that is fresh enough, and from the primary when it is not.

Commits of a tenant have positions in its feed, and a replica replays them in order. So how fresh a replica is needs no
clock of a server: every read asks, in its own transaction, which position it sees. It must be at least

- the primary's newest position as asked at most ``lag_s`` seconds ago: that bounds how old an answer can be; and
- every position that this process committed or saw: it reads its own writes, and never goes back in time.

The primary is asked twice in ``lag_s`` seconds and tenant. A replica that does not answer, is too far behind, or is no
replica of this primary (any more) is left alone for a while and the primary answers; that is logged once.

Deliberately absent: a way to write, choosing between several replicas (an address may lead to any of them: each read
is checked by itself), and reads that a write is based on; those go to the primary, without coming here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar

from holdfast import atfork
from holdfast.engine.contract import View
from holdfast.engine.postgres import KEYS, PostgresEngine
from holdfast.engine.relational import Reads, Row
from holdfast.errors import HoldfastError, Misconfigured, Unavailable

T = TypeVar("T")

RETRY_S = 5.0
_PAUSE_S = 0.5  # one that is behind may have caught up soon
_TENANTS = 10_000

_log = logging.getLogger(__name__)


class _Check(NamedTuple):
    """Where the primary was, and when it was asked."""

    asked: float
    position: int


class PostgresReplica:
    """A standby of a primary, and what is known about both. ``elapsed`` counts seconds."""

    def __init__(
        self, primary: PostgresEngine, standby: PostgresEngine, lag_s: float, elapsed: Callable[[], float], tenant: str
    ) -> None:
        self.primary, self.standby = primary, standby
        self._lag_s, self._elapsed = lag_s, elapsed
        self._lock = atfork.lock()
        self._checks: dict[str, deque[_Check]] = {}
        self._recognised: set[str] = set()
        self._rest_until: float | None = None
        self._troubled = False
        try:
            self._recognise(tenant)
        except Misconfigured:
            raise
        except HoldfastError as error:
            self._rest(str(error), RETRY_S)

    def reader(self, tenant: str) -> ReplicaReader:
        """What reads for one tenant: an engine whose reads go to the replica when that is fresh."""
        return ReplicaReader(self, tenant)

    def require(self, tenant: str) -> None:
        """Have every read that begins after this see what was committed before it."""
        self.primary.reach(tenant, self.primary.head(tenant))

    def close(self) -> None:
        self.standby.close()

    def fresh(self, tenant: str, ask: Callable[[], tuple[Row, T]]) -> T | None:
        """What the replica says, or None when the primary has to be asked.

        ``ask`` also returns what the replica saw: whether it is a replica, and a position.
        """
        if not self._is_due():
            return None
        began = self._elapsed()
        bound = self._bound(tenant, began)
        must = max(bound.position, self.primary.reached.get(tenant, 0))
        try:
            self._recognise(tenant)
            (follows, position), found = ask()
        except HoldfastError as error:
            self._rest(str(error), RETRY_S)
            return None
        if not follows:
            self._rest(f"{self.standby} accepts writes, so it is no replica any more", RETRY_S)
        elif position < bound.position and (behind_s := began - bound.asked) >= self._lag_s / 2:
            self._rest(f"{self.standby} is at least {behind_s:.1f} s behind", _PAUSE_S)
        if not follows or position < must:
            return None
        self._end_rest()
        self.primary.reach(tenant, position)
        return found

    # How fresh it must be

    def _bound(self, tenant: str, now: float) -> _Check:
        """Where the primary was at most ``lag_s`` seconds ago; of several such answers the oldest is enough."""
        with self._lock:
            if len(self._checks) > _TENANTS:
                self._checks.clear()
            checks = self._checks.setdefault(tenant, deque())
            recent = bool(checks) and 0 <= now - checks[-1].asked <= self._lag_s / 2
        if not recent:
            position = self.primary.head(tenant)
            with self._lock:
                checks.append(_Check(now, position))
        with self._lock:
            while not 0 <= now - checks[0].asked <= self._lag_s and len(checks) > 1:
                checks.popleft()
            return checks[0]

    # Whether it can be used

    def _is_due(self) -> bool:
        """Whether to try the replica. After a failure one caller tries it, and the others need not wait for that."""
        with self._lock:
            now = self._elapsed()
            if self._rest_until is None:
                return True
            if 0 <= self._rest_until - now <= RETRY_S:
                return False
            self._rest_until = now + RETRY_S
            return True

    def _rest(self, why: str, seconds: float) -> None:
        with self._lock:
            self._rest_until = self._elapsed() + seconds
            known, self._troubled = self._troubled, True
            self._recognised.clear()
        if not known:
            _log.warning("reading from the primary instead of the replica: %s", why)

    def _end_rest(self) -> None:
        with self._lock:
            self._rest_until = None
            known, self._troubled = self._troubled, False
        if known:
            _log.info("reading from the replica %s again", self.standby)

    def _recognise(self, tenant: str) -> None:
        """Refuse what is no replica of this primary: another server or database, or one that went its own way."""
        if tenant in self._recognised:
            return
        theirs, ours = self.standby.identity(), self.primary.identity()
        if not theirs.follows:
            raise Misconfigured(f"{self.standby} is not a replica: it accepts writes")
        if theirs.table is None and theirs.store == ours.store:
            raise Unavailable(f"{self.standby} does not have the tables yet")
        if theirs[1:] != ours[1:]:
            raise Misconfigured(f"{self.standby} is a replica, but not of this store, {self.primary}")
        position, commit = self.standby.newest(tenant)
        if self.primary.contradicts(tenant, position, commit):
            raise Misconfigured(f"{self.standby} holds another history than {self.primary}: it follows another server")
        with self._lock:
            self._recognised.add(tenant)


class ReplicaReader(Reads):
    """Reads of one tenant, each from the replica if it is fresh enough, else from the primary, which does all else.

    A snapshot is of one of the two. If its connection breaks, the error reaches the caller, who may begin again.
    """

    durable = True

    def __init__(self, replica: PostgresReplica, tenant: str) -> None:
        super().__init__(self._run_near, replica.primary.clock, remember=True, keys=KEYS)
        self._replica, self._tenant, self._primary = replica, tenant, replica.primary
        self.commit, self.erase = self._primary.commit, self._primary.erase
        self.check, self.close = self._primary.check, self._primary.close

    def head(self, tenant: str) -> int:
        return int(self._run_near(tenant, "SELECT coalesce(max(feed), 0) FROM tenants WHERE name = ?", (tenant,))[0][0])

    @contextmanager
    def snapshot(self) -> Iterator[View]:
        with ExitStack() as stack:
            view = self._replica.fresh(
                self._tenant, lambda: stack.enter_context(self._replica.standby.snapshot_at(self._tenant))
            )
            if view is None:
                stack.close()
                (_, position), view = stack.enter_context(self._primary.snapshot_at(self._tenant))
                self._primary.reach(self._tenant, position)
            yield view

    def _run_near(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        if tenant != self._tenant:  # also the list of tenants, which is nobody's
            return self._primary.ask_at(tenant, sql, values)[1]
        standby = self._replica.standby
        found = self._replica.fresh(tenant, lambda: standby.ask_at(tenant, sql, values))
        if found is not None:
            return found
        (_, position), found = self._primary.ask_at(tenant, sql, values)
        self._primary.reach(tenant, position)
        return found
