"""A Hypothesis state machine that uses an engine at random and compares it with the one in memory at every step.

``RamEngine`` itself passes the contract suite, so it can be the model. Both sides get equal clocks and equally seeded
ids, and everything must be equal: receipts, errors, stream numbers, and at the end the whole contents. An engine
therefore takes its stream numbers from the given ids in the order in which streams are begun, as the shared plan does.
Few names, few keys and two tenants make collisions likely. Deliberately absent: threads; with one caller there is one
right answer to every call.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.clock import Clock
from holdfast.engine.contract import (
    Adopt,
    Append,
    Delete,
    Engine,
    Event,
    Fork,
    Guard,
    Mark,
    Op,
    Put,
    Query,
    Scope,
    View,
)
from holdfast.engine.ram import RamEngine
from holdfast.errors import HoldfastError
from holdfast.ids import Ids
from holdfast.testing.export import export
from holdfast.testing.fakes import ManualClock, SeededIds

OpenEngine = Callable[[Path, Clock, Ids], Engine]

KIND = "thread"
TENANTS = ("acme", "globex")
IDS = ("a", "b", "c")
START = 1_767_225_600_000_000
HOUR = 3_600_000_000

tenants = st.sampled_from(TENANTS)
names = st.sampled_from(IDS)
texts = st.sampled_from([b"", b"x", b"y"])
tags = st.lists(st.sampled_from(["red", "green"]), max_size=2).map(tuple)
scopes = st.builds(Scope, user=st.sampled_from([None, "ana", "ben"]), agent=st.sampled_from([None, "travel"]))
lifetimes = st.sampled_from([None, -HOUR, HOUR])
expectations = st.sampled_from([None, None, None, 0, 1, 2, 3])
events = st.lists(
    st.builds(Event, st.sampled_from(["say", "do"]), texts, st.integers(0, 3), st.sampled_from([None, "k", "l", "m"])),
    max_size=3,
).map(tuple)
small = st.integers(0, 6)
steps = st.sampled_from([0, 1, 1, 1_000, HOUR, -HOUR])
more = st.sampled_from([False, False, True])


class EngineMachine(RuleBasedStateMachine):
    """Uses two engines in the same way. ``engine_machine`` makes the subclass for an engine."""

    open_engine: OpenEngine
    hands: int = 1

    def __init__(self) -> None:
        super().__init__()
        self._cleanup = ExitStack()
        self._folder = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory()))
        self._clocks = ManualClock(START), ManualClock(START)
        self._model: Engine = RamEngine(self._clocks[0], SeededIds())
        self._ids = SeededIds()
        self._time = START
        self._batches: dict[str, list[Op]] = {tenant: [] for tenant in TENANTS}
        self._marks: list[Mark] = [Mark(1, 1)]
        self._exports: list[Adopt] = []
        self._frozen: tuple[ExitStack, View, View, list[int], object] | None = None
        self._hands = [self._open()]
        durable = self._hands[0].durable
        self._hands += [self._open() for _ in range(self.hands - 1 if durable else 0)]
        self._subject = self._hands[0]

    def _open(self) -> Engine:
        return type(self).open_engine(self._folder / "store", self._clocks[1], self._ids)

    # What is done

    @rule(tenant=tenants, id=names, body=texts, expect=expectations, scope=scopes, tags=tags, life=lifetimes, more=more)
    def put(
        self, tenant: str, id: str, body: bytes, expect: int | None, scope: Scope, tags: tuple[str, ...],
        life: int | None, more: bool,
    ) -> None:  # fmt: skip
        expires = None if life is None else self._time + life
        self._plan(tenant, Put(KIND, id, body, expect, scope, tags, expires), more)

    @rule(tenant=tenants, id=names, events=events, expect=expectations, scope=scopes, make=st.booleans(), more=more)
    def append(
        self, tenant: str, id: str, events: tuple[Event, ...], expect: int | None, scope: Scope, make: bool, more: bool
    ) -> None:
        new = Put(KIND, id, b"new", scope=scope) if make else None
        self._plan(tenant, Append(KIND, id, events, expect, new), more)

    @rule(tenant=tenants, id=names, mark=small, back=small, scope=scopes, more=more)
    def fork(self, tenant: str, id: str, mark: int, back: int, scope: Scope, more: bool) -> None:
        self._plan(tenant, Fork(KIND, id, self._mark(mark, back), Put(KIND, id, b"fork", scope=scope)), more)

    @rule(tenant=tenants, id=names, mark=small, back=small, expect=expectations, more=more)
    def rewind(self, tenant: str, id: str, mark: int, back: int, expect: int | None, more: bool) -> None:
        self._plan(tenant, Fork(KIND, id, self._mark(mark, back), expect=expect), more)

    @rule(tenant=tenants, id=names, expect=expectations, more=more)
    def delete(self, tenant: str, id: str, expect: int | None, more: bool) -> None:
        self._plan(tenant, Delete(KIND, id, expect), more)

    @rule(tenant=tenants, id=names, version=small, more=more)
    def guard(self, tenant: str, id: str, version: int, more: bool) -> None:
        self._plan(tenant, Guard(KIND, id, version), more)

    @rule(tenant=tenants, id=names)
    def take_export(self, tenant: str, id: str) -> None:
        record = self._model.get(tenant, KIND, id)
        if record is not None:
            self._exports.append(export(self._model, tenant, record))

    @precondition(lambda self: self._exports)
    @rule(tenant=tenants, which=small, more=more)
    def adopt(self, tenant: str, which: int, more: bool) -> None:
        self._plan(tenant, self._exports[which % len(self._exports)], more)

    @rule(tenant=tenants, scope=scopes, bury=st.booleans())
    def erase(self, tenant: str, scope: Scope, bury: bool) -> None:
        self._same(lambda engine: engine.erase(tenant, scope, time=self._time, bury=bury))

    @rule(step=steps)
    def let_time_pass(self, step: int) -> None:
        self._time += step

    @precondition(lambda self: self._subject.durable)
    @rule()
    def reopen(self) -> None:
        self.end_snapshot()
        for hand in self._hands:
            hand.close()
        self._hands = [self._open() for _ in self._hands]
        self._subject = self._hands[0]

    @precondition(lambda self: len(self._hands) > 1)
    @rule()
    def use_the_other_hand(self) -> None:
        """Go on with another opening of the same store, as another process would."""
        self._hands.append(self._hands.pop(0))
        self._subject = self._hands[0]

    # What is looked at

    @rule(tenant=tenants, mark=small, back=small, after=small, limit=st.none() | small, newest=st.booleans())
    def read(self, tenant: str, mark: int, back: int, after: int, limit: int | None, newest: bool) -> None:
        where = self._mark(mark, back)
        self._same(lambda engine: engine.read(tenant, where, after=after, limit=limit, newest=newest))

    @rule(tenant=tenants, mark=small, back=small, key=st.sampled_from("klm"))
    def read_key(self, tenant: str, mark: int, back: int, key: str) -> None:
        where = self._mark(mark, back)
        self._same(lambda engine: engine.read(tenant, where, key=key))

    @rule(
        tenant=tenants, scope=scopes, tag=st.sampled_from([None, "red"]), since=st.none() | steps, until=st.none() | steps,
        before=st.none() | names, limit=small,
    )  # fmt: skip
    def scan(
        self, tenant: str, scope: Scope, tag: str | None, since: int | None, until: int | None, before: str | None, limit: int
    ) -> None:  # fmt: skip
        query = Query(
            KIND, scope.user, scope.agent, None, tag,
            None if since is None else self._time - since,
            None if until is None else self._time + until,
            None if before is None else (self._time, before),
            limit,
        )  # fmt: skip
        for clock in self._clocks:
            clock.set(self._time)
        self._same(lambda engine: engine.scan(tenant, query))

    @rule()
    def begin_snapshot(self) -> None:
        self.end_snapshot()
        stack = ExitStack()
        ours, theirs = (stack.enter_context(engine.snapshot()) for engine in (self._model, self._subject))
        streams = self._streams()
        before = _contents(theirs, streams)
        assert before == _contents(self._subject, streams)
        self._frozen = stack, ours, theirs, streams, before

    @rule()
    def end_snapshot(self) -> None:
        if self._frozen is None:
            return
        stack, ours, theirs, streams, before = self._frozen
        self._frozen = None
        with stack:
            assert _contents(theirs, streams) == before
            assert _contents(ours, streams) == before

    @invariant()
    def records_are_the_same(self) -> None:
        for tenant in TENANTS:
            for id in IDS:
                self._same(lambda engine, tenant=tenant, id=id: engine.get(tenant, KIND, id))  # type: ignore[misc]

    def teardown(self) -> None:
        with self._cleanup:
            try:
                self.end_snapshot()
                for hand in self._hands:
                    assert _contents(hand, self._streams()) == _contents(self._model, self._streams())
                    assert hand.check() == []
            finally:
                for hand in self._hands:
                    hand.close()

    # How both are kept in step

    def _plan(self, tenant: str, op: Op, more: bool) -> None:
        """Add to the tenant's batch, and commit it unless more is to come."""
        batch = self._batches[tenant]
        batch.append(op)
        if more:
            return
        self._batches[tenant] = []
        self._time += 1
        self._same(lambda engine: engine.commit(tenant, batch, self._time))
        for id in IDS:
            record = self._model.get(tenant, KIND, id)
            if record is not None and record.stream is not None and record.mark not in self._marks:
                self._marks.insert(0, record.mark)

    def _mark(self, which: int, back: int) -> Mark:
        mark = self._marks[which % len(self._marks)]
        return Mark(mark.stream, max(0, mark.position - back))

    def _same(self, act: Callable[[Engine], object]) -> None:
        expected, actual = _outcome(act, self._model), _outcome(act, self._subject)
        assert actual == expected

    def _streams(self) -> list[int]:
        return sorted({mark.stream for mark in self._marks})


def _contents(view: View, streams: list[int]) -> object:
    """All that the reading verbs show of these streams, of every record and of every feed."""
    return [
        (
            tenant,
            [view.get(tenant, KIND, id) for id in IDS],
            [view.strand(tenant, stream) for stream in streams],
            [view.read(tenant, Mark(stream, 1_000)) for stream in streams],
            view.feed(tenant, limit=1_000),
        )
        for tenant in view.tenants()
    ]


def _outcome(act: Callable[[Engine], object], engine: Engine) -> object:
    """What a call came to: its value, or the class of its error."""
    try:
        return act(engine)
    except HoldfastError as error:
        return type(error)


def engine_machine(open_engine: OpenEngine, *, hands: int = 1) -> type[EngineMachine]:
    """Make the machine for an engine. ``open_engine`` gets a path that is new for each run, a clock and ids.

    Durable engines are also closed and opened again at random; with ``hands`` over 1 the same store is open that many
    times at once, and they take turns. Use it as ``TestMyEngine = engine_machine(MyEngine).TestCase``.
    """

    class Machine(EngineMachine):
        pass

    Machine.open_engine = staticmethod(open_engine)
    Machine.hands = hands
    return Machine
