"""Crashes at every point where a process can die, without hooks in the code under test.

An engine is wrapped so that every commit has a point before and one after it, named by what the commit contains; the
world has points around its effects and probes. A ``Fuse`` counts them, and at the chosen one the process "crashes":
``Crash`` is raised, and from then on the wrapped engine refuses everything, as for a dead process. Instead of dying, a
process may pause there while others act, or a commit may end with an unknown outcome. Deliberately absent: real
processes (``restarting`` has them, and is what to use for an agent) and real disks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Literal

from holdfast.engine.codec import decode
from holdfast.engine.contract import (
    Append,
    Buries,
    Commit,
    Delete,
    Engine,
    Event,
    Fork,
    Interest,
    Mark,
    Measures,
    Op,
    Problem,
    Put,
    Query,
    Receipt,
    Record,
    Removed,
    Scope,
    Scrubs,
    Strand,
    View,
)
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable


class Crash(BaseException):
    """The process dies here. It is no ``Exception``, so that the code under test cannot handle it."""


class Fuse:
    """Counts the points that a process passes. At the one numbered or named ``at`` it crashes, or does ``instead``
    and continues."""

    def __init__(self, at: int | str | None = None, instead: Callable[[], None] | None = None) -> None:
        self._at, self._instead = at, instead
        self.names: list[str] = []
        self.dead = False

    def point(self, name: str) -> None:
        self.refuse_when_dead()
        self.names.append(name)
        if self._at not in (len(self.names) - 1, name):
            return
        if self._instead is not None:
            self._instead()
            return
        self.dead = True
        raise Crash(name)

    def refuse_when_dead(self) -> None:
        if self.dead:
            raise Crash(f"dead since {self.names[-1]}")


Fate = Literal["lost", "landed", "late", "away"]


class Doubt:
    """Makes one commit of a process end badly, though the process lives on.

    ``lost``: its outcome is unknown, and it did not happen. ``landed``: unknown, and it did. ``late``: unknown, and it
    happens just before the next commit, which is as late as an engine with serial commits allows. ``away``: the store
    is unavailable, nothing happened. ``meanwhile`` is what others do: at that moment, or ``later``, just before the
    next try.
    """

    def __init__(
        self, at: int, fate: Fate, meanwhile: Callable[[], None] | None = None, *, later: bool = False
    ) -> None:
        self._at, self._fate, self._meanwhile, self._later = at, fate, meanwhile, later
        self._late: Callable[[], Receipt] | None = None
        self.name = ""

    def commit(self, number: int, label: str, commit: Callable[[], Receipt]) -> Receipt:
        if self._late is not None:
            late, self._late = self._late, None
            with suppress(HoldfastError):  # a fence may have gone up meanwhile
                late()
        if self._later and number == self._at + 1:
            self._others_act()
        if number != self._at:
            return commit()
        self.name = f"{self._fate} commit {number}: {label}"
        if self._fate == "landed":
            commit()
        elif self._fate == "late":
            self._late = commit
        if not self._later:
            self._others_act()
        raise (Unavailable if self._fate == "away" else OutcomeUnknown)(self.name)

    def _others_act(self) -> None:
        if self._meanwhile is not None:
            self._meanwhile()


class MortalEngine:
    """An engine as one process sees it: it forwards everything until the process is dead."""

    def __init__(self, inner: Engine, fuse: Fuse, doubt: Doubt | None = None) -> None:
        self._inner, self._fuse, self._doubt = inner, fuse, doubt
        self.durable = inner.durable
        self.commits = 0

    def commit(self, tenant: str, ops: Sequence[Op], time: int, actor: str | None = None) -> Receipt:
        label = describe(ops)
        number, self.commits = self.commits, self.commits + 1
        self._fuse.point(f"before commit {number}: {label}")
        if self._doubt is None:
            receipt = self._inner.commit(tenant, ops, time, actor)
        else:
            receipt = self._doubt.commit(number, label, lambda: self._inner.commit(tenant, ops, time, actor))
        self._fuse.point(f"after commit {number}: {label}")
        return receipt

    def get(self, tenant: str, kind: str, id: str) -> Record | None:
        return self._alive().get(tenant, kind, id)

    def scan(self, tenant: str, query: Query) -> list[Record]:
        return self._alive().scan(tenant, query)

    def read(self, tenant: str, mark: Mark, **window: Any) -> list[Event]:
        return self._alive().read(tenant, mark, **window)

    def feed(
        self, tenant: str, after: int = 0, limit: int = 100, timeout_s: float = 0.0, only: Interest | None = None
    ) -> list[Commit]:
        return self._alive().feed(tenant, after, limit, timeout_s, only)

    def head(self, tenant: str) -> int:
        return self._alive().head(tenant)

    def strand(self, tenant: str, stream: int) -> Strand | None:
        return self._alive().strand(tenant, stream)

    def tenants(self) -> list[str]:
        return self._alive().tenants()

    def snapshot(self) -> AbstractContextManager[View]:
        return self._alive().snapshot()

    def erase(self, tenant: str, scope: Scope, *, dry_run: bool = False, **how: Any) -> Removed:
        if dry_run:
            return self._alive().erase(tenant, scope, dry_run=True, **how)
        self._fuse.point("before erase")
        removed = self._inner.erase(tenant, scope, **how)
        self._fuse.point("after erase")
        return removed

    def scrub(self, timeout_s: float = 10.0) -> tuple[str, ...]:
        self._fuse.point("before scrub")
        left = self._inner.scrub(timeout_s) if isinstance(self._inner, Scrubs) else ()
        self._fuse.point("after scrub")
        return left

    def limits(self, tenant: str) -> Mapping[tuple[str, str], tuple[int, int]]:
        inner = self._alive()
        assert isinstance(inner, Measures)  # every engine of ours does
        return inner.limits(tenant)

    def buried(self, tenant: str, kind: str, id: str) -> bool:
        inner = self._alive()
        assert isinstance(inner, Buries)
        return inner.buried(tenant, kind, id)

    def check(self, tenant: str | None = None) -> list[Problem]:
        return self._alive().check(tenant)

    def close(self) -> None:
        """Do nothing: a dead process does not close its files tidily; the test closes what it opened."""

    def _alive(self) -> Engine:
        self._fuse.refuse_when_dead()
        return self._inner


def describe(ops: Sequence[Op]) -> str:
    """Name a commit by what it contains, as in "probed, resolved, completed charge; log; state"."""
    words: list[str] = []
    for op in ops:
        if isinstance(op, Append) and op.kind == "run":
            words.append(_journal(op.events))
        elif isinstance(op, Append | Fork) and op.kind in _STREAMS:
            words.append(_STREAMS[op.kind] if isinstance(op, Append) else f"fork {op.kind}")
        elif isinstance(op, Put | Delete) and op.kind == "lease":
            words.append("lease" if isinstance(op, Put) else "no lease")
    return "; ".join(dict.fromkeys(word for word in words if word)) or "other"


_STREAMS = {"thread": "log", "state": "state", "run": "run"}


def _journal(events: tuple[Event, ...]) -> str:
    steps = {str(decode(event.body).get("step") or "") for event in events} - {""}
    return " ".join((", ".join(event.kind for event in events), *sorted(steps)))
