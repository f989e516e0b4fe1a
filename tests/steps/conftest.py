"""Processes that work on runs, on each engine in turn: they share a store, and any of them can die at any commit.

A process here is a store with a holder of its own, as if on a machine of its own, and a wire to the engine that can
break: what dies at a commit reaches nothing any more, just as a killed process. Time is the test's; leases end when it
moves the clock. The outside world is a list of what was done, by key. On Postgres all tests share a server, a cloned
database and an engine, each test under a tenant of its own, and its clock is hidden: the test's clock counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

import holdfast
from holdfast.engine.codec import decode
from holdfast.engine.contract import Append, Op, Receipt
from holdfast.engine.registry import open_engine
from holdfast.ids import Ids
from holdfast.ledger.core import Core
from holdfast.steps.lease import Holder
from holdfast.steps.runs import RunBook
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

LEASE_S = 30.0
_NUMBERS = count(1)
_DRAWS = count()
# A clock that stands still gives every stream of a test the same millisecond; drawn by chance, two might be equal.
_IDS = Ids(lambda bits: next(_DRAWS) % 2**bits)


class Died(BaseException):
    """The end of a process, in the middle of something."""


Hook = Callable[[Sequence[Op]], None]


class Wire:
    """An engine as one process reaches it. ``before`` and ``after`` see each commit; a dead wire reaches nothing."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.dead = False
        self.before: list[Hook] = []
        self.after: list[Hook] = []
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        if name == "now":  # the clock of the test counts, also where the engine has one of its own
            raise AttributeError(name)
        if self.dead and name not in ("close", "durable"):
            raise Died
        return getattr(self._engine, name)

    def commit(self, tenant: str, ops: Sequence[Op], time: int, actor: str | None = None) -> Receipt:
        if self.dead:
            raise Died
        for hook in list(self.before):
            hook(ops)
        receipt: Receipt = self._engine.commit(tenant, ops, time, actor)
        self.commits += 1
        for hook in list(self.after):
            hook(ops)
        return receipt


def facts(ops: Sequence[Op]) -> list[tuple[str, dict[str, Any]]]:
    """What a commit adds to journals of runs."""
    appends = [op for op in ops if isinstance(op, Append) and op.kind == "run"]
    return [(event.kind, decode(event.body)) for op in appends for event in op.events]


class Process:
    """A store in the hands of a holder of its own."""

    def __init__(self, name: str, store: holdfast.Store, wire: Wire, clock: ManualClock) -> None:
        self.name, self.store, self.wire, self.clock = name, store, wire, clock

    def thread(self, id: str = "trip-42") -> holdfast.Thread:
        return self.store.thread(id)

    def dies(self, when: str, kind: str, step: str | None = None) -> None:
        """Die right before or right after the commit that records this, the first time there is one."""

        def hook(ops: Sequence[Op]) -> None:
            if any(found == kind and (step is None or fact.get("step") == step) for found, fact in facts(ops)):
                self.die()
                raise Died(f"{when} {kind}")

        getattr(self.wire, when).append(hook)

    def die(self) -> None:
        """Reach nothing any more, and let go of nothing."""
        self.wire.dead = True
        self.store.wiring.runs.renewer.close()

    def lapse(self) -> None:
        """Let the leases of those who give no sign of life run out."""
        self.clock.advance(self.store.wiring.runs.lease_s + 1)

    def close(self) -> None:
        if self.wire.dead:
            self.store.wiring.runs.renewer.close()
        else:
            self.store.wiring.runs.close()


class Place:
    """Where the processes of one test meet. What it opened, it closes."""

    def __init__(self, engine: str, url: str, clock: ManualClock, shared: Any) -> None:
        self.engine, self.url, self.clock, self._shared = engine, url, clock, shared
        self.tenant = f"steps-{next(_NUMBERS)}"
        self._engines: list[Any] = []
        self._processes: list[Process] = []

    def process(
        self, name: str, *, lease_s: float = LEASE_S, clock: Any = None, seat: str | None = None, pid: int = 0
    ) -> Process:
        """A further process. ``seat`` and ``pid`` say on which machine, and as what, when not on one of its own."""
        wire = Wire(self._reach())
        core = Core(wire, self.tenant, clock or self.clock, holdfast.Registry())  # type: ignore[arg-type]
        runs = RunBook(core, _IDS, lease_s)
        mine = runs.holder
        runs.holder = Holder(name, seat or f"machine of {name}", pid or mine.pid, "" if pid else mine.born)
        process = Process(name, holdfast.Store(Wiring(core, runs)), wire, self.clock)
        self._processes.append(process)
        return process

    def _reach(self) -> Any:
        if self._shared is not None:
            return self._shared
        engine = open_engine(self.url, self.clock, _IDS)
        self._engines.append(engine)
        if self.engine == "ram":  # in memory, sharing it is the only way to meet
            self._shared = engine
        return engine

    def close(self) -> None:
        for process in self._processes:
            process.close()
        for engine in self._engines:
            engine.close()


class World:
    """The outside: what was done there, in order, and under which key. It tells the truth when asked."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.asked: list[tuple[str, str]] = []

    def do(self, what: str = "book") -> dict[str, Any]:
        """Have an effect."""
        self.done.append((what, holdfast.current_step().key))
        return {"did": what, "number": len(self.done)}

    def find(self, what: str = "book") -> dict[str, Any] | None:
        """Say whether it happened under this key, and what came of it."""
        key = holdfast.current_step().key
        self.asked.append((what, key))
        if (what, key) not in self.done:
            return None
        return {"did": what, "number": self.done.index((what, key)) + 1}

    def times(self, what: str = "book") -> int:
        return sum(one == what for one, _ in self.done)

    def keys(self, what: str = "book") -> set[str]:
        return {key for one, key in self.done if one == what}


@pytest.fixture(scope="session")
def shared_database(postgres: Any) -> Iterator[Any]:
    """The address of the one database of all tests, and the engine that they share."""
    url = postgres.clone()
    with holdfast.open(url, ids=_IDS) as store:
        yield url, store.core.engine


@pytest.fixture
def place(engine_name: str, request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Place]:
    url, shared = "ram:", None
    if engine_name == "sqlite":
        url = str(request.getfixturevalue("folder") / "store.db")
    elif engine_name == "postgres":
        url, shared = request.getfixturevalue("database")
    place = Place(engine_name, url, clock, shared)
    yield place
    place.close()


@pytest.fixture
def process(place: Place) -> Process:
    return place.process("first")


@pytest.fixture
def other(place: Place) -> Process:
    return place.process("other")


@pytest.fixture
def store(process: Process) -> holdfast.Store:
    return process.store


@pytest.fixture
def thread(process: Process) -> holdfast.Thread:
    return process.thread()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def died() -> type[Died]:
    """What a test raises to end a process in the middle of a function."""
    return Died


def _kinds(thread: holdfast.Thread, run: str, step: str | None = None) -> list[str]:
    moments = thread.timeline(run).moments
    return [moment.kind for moment in moments if step is None or moment.step == step]


@pytest.fixture
def kinds() -> Callable[..., list[str]]:
    """What kinds of events the journal of a run holds, in order: ``kinds(thread, run, step=None)``."""
    return _kinds


def _told(thread: holdfast.Thread, name: str) -> list[dict[str, Any]]:
    found = [entry.content for entry in thread.log() if entry.kind == "event" and entry.content.get("name") == name]
    return [{what: value for what, value in content.items() if what != "name"} for content in found]


@pytest.fixture
def told() -> Callable[..., list[dict[str, Any]]]:
    """What the log of a thread tells by events of a name: ``told(thread, "resolution")``."""
    return _told
