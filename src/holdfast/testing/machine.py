"""A Hypothesis state machine that uses an engine at random and compares it with the one in memory at every step.

``RamEngine`` itself passes the contract suite, so it can be the model. Both sides get equal clocks and equally seeded
ids, and everything must be equal: receipts, errors, stream numbers, and at the end the whole contents. An engine
therefore takes its stream numbers from the given ids in the order in which streams are begun, as the shared plan does.
Few names, few keys and two tenants make collisions likely. Deliberately absent: threads (with one caller there is one
right answer to every call), and mistakes in what both sides share, which the contract suite finds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.clock import Clock
from holdfast.engine.contract import (
    Adopt,
    Append,
    Commit,
    Delete,
    Engine,
    Event,
    Fork,
    Guard,
    Interest,
    Limit,
    Mark,
    Op,
    Put,
    Query,
    Record,
    Scope,
    Trim,
    View,
)
from holdfast.engine.ram import RamEngine
from holdfast.errors import FeedTrimmed, HoldfastError
from holdfast.ids import Ids
from holdfast.testing.export import export
from holdfast.testing.fakes import ManualClock, SeededIds

OpenEngine = Callable[[Path, Clock, Ids], Engine]
Draw = Callable[[st.SearchStrategy[Any]], Any]

KIND = "thread"
TENANTS = ("acme", "globex")
IDS = ("a", "b", "c", "d", "e")
START = 1_767_225_600_000_000
HOUR = 3_600_000_000
NO_MARK = Mark(1, 1)

# Calls that succeed are drawn more often than calls that are refused, so that long lines of forks arise.
tenants = st.sampled_from(["acme", "acme", "acme", "globex"])
names = st.sampled_from(IDS)
bodies = st.sampled_from([b"", b"x", b"y"])
keys = st.sampled_from([None, None, "k", "l", "m"])
tags = st.lists(st.sampled_from(["red", "green"]), max_size=2).map(tuple)
scopes = st.builds(Scope, user=st.sampled_from([None, "ana", "ben"]), agent=st.sampled_from([None, "travel"]))
owners = st.sampled_from([Scope(), Scope(), Scope(user="ana"), Scope(user="ben")])
lifetimes = st.sampled_from([None, None, -HOUR, HOUR])
expectations = st.sampled_from([None, None, None, None, None, None, 0, 1, 2])
events = st.lists(st.builds(Event, st.just("say"), bodies, st.integers(0, 3), keys), max_size=3).map(tuple)
small = st.integers(0, 6)
counts = st.integers(1, 4)
steps = st.sampled_from([1, 1_000, HOUR, -HOUR])
few = st.sampled_from([False, False, False, True])
interests = st.none() | st.builds(
    Interest,
    kinds=st.sampled_from([None, frozenset({KIND}), frozenset({"other"})]),
    user=st.sampled_from([None, "ana", "ben"]),
    agent=st.sampled_from([None, None, "travel"]),
    unowned=st.booleans(),
)
LIMITS = [Limit(measure, kind, most) for measure, kind in (("events", KIND), ("records", KIND), ("bytes", ""))
          for most in (None, None, 4, 12)]  # fmt: skip


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
        self._marks: dict[str, list[Mark]] = {tenant: [] for tenant in TENANTS}
        self._exports: list[Adopt] = []
        self._frozen: tuple[ExitStack, View, View, list[int], object] | None = None
        self._offload = [self._open()]
        if self._offload[0].durable:
            self._offload += [self._open() for _ in range(self.hands - 1)]

    def _open(self) -> Engine:
        return type(self).open_engine(self._folder / "store", self._clocks[1], self._ids)

    @property
    def _subject(self) -> Engine:
        return self._offload[0]

    @initialize()
    def begin_with_a_thread_and_its_fork(self) -> None:
        said = tuple(Event("say", b"x", 0, key) for key in ("k", None, "l"))
        self._commit("acme", Append(KIND, "a", said, new=Put(KIND, "a", b"", scope=Scope(user="ana"))))
        self._commit("acme", Fork(KIND, "b", self._mark("acme", 0, 1), Put(KIND, "b", b"", scope=Scope(user="ben"))))
        self._commit("acme", Append(KIND, "b", said[:1]))

    # Writing

    # Hypothesis leaves out whole rules in some runs, so there is more than one way to get on.

    @rule(tenant=tenants, data=st.data(), count=counts)
    def append(self, tenant: str, data: st.DataObject, count: int) -> None:
        for _ in range(count):
            self._commit(tenant, self._append(tenant, data.draw))

    @rule(tenant=tenants, data=st.data(), count=counts)
    def branch(self, tenant: str, data: st.DataObject, count: int) -> None:
        for _ in range(count):
            self._commit(tenant, data.draw(st.sampled_from([self._fork, self._rewind]))(tenant, data.draw))
            self._commit(tenant, self._append(tenant, data.draw))

    @rule(tenant=tenants, data=st.data(), count=counts)
    def change(self, tenant: str, data: st.DataObject, count: int) -> None:
        makers = [self._put, self._delete, self._guard, self._adopt]
        for _ in range(count):
            self._commit(tenant, data.draw(st.sampled_from(makers))(tenant, data.draw))

    @rule(tenant=tenants, data=st.data(), count=counts)
    def batch(self, tenant: str, data: st.DataObject, count: int) -> None:
        """Do a few things in one commit."""
        makers = [self._append] * 4 + [self._fork, self._rewind] * 2 + [self._put, self._delete, self._adopt]
        self._commit(tenant, *(data.draw(st.sampled_from(makers))(tenant, data.draw) for _ in range(1 + count)))

    @rule(tenant=tenants, data=st.data())
    def begin_anew(self, tenant: str, data: st.DataObject) -> None:
        """Delete a thread, and perhaps make it again in the same batch."""
        delete = Delete(KIND, self._present(tenant, data.draw(small)))
        self._commit(tenant, delete, Append(KIND, delete.id, data.draw(events), new=Put(KIND, delete.id, b"anew")))

    @rule(tenant=tenants, scope=scopes, bury=few)
    def erase(self, tenant: str, scope: Scope, bury: bool) -> None:
        self._same(lambda engine: engine.erase(tenant, scope, time=self._time, dry_run=True))
        self._same(lambda engine: engine.erase(tenant, scope, time=self._time, bury=bury))

    @rule(tenant=tenants, which=small)
    def take_export(self, tenant: str, which: int) -> None:
        record = self._model.get(tenant, KIND, self._present(tenant, which))
        if record is not None:
            self._exports.insert(0, export(self._model, tenant, record))

    @rule(step=steps)
    def let_time_pass(self, step: int) -> None:
        self._time += step

    @precondition(lambda self: self._subject.durable)
    @rule()
    def reopen(self) -> None:
        self._thaw()
        for hand in self._offload:
            hand.close()
        self._offload = [self._open() for _ in self._offload]

    @precondition(lambda self: len(self._offload) > 1)
    @rule()
    def use_the_other_hand(self) -> None:
        """Continue on another connection to the same store, as another process would."""
        self._offload.append(self._offload.pop(0))

    # Reading

    @rule(tenant=tenants, which=small, back=small, after=small, limit=st.none() | small, newest=st.booleans(), key=keys)
    def read(
        self, tenant: str, which: int, back: int, after: int, limit: int | None, newest: bool, key: str | None
    ) -> None:
        mark = self._mark(tenant, which, back)
        if key is not None:
            self._same(lambda engine: engine.read(tenant, mark, key=key, after=after))
        else:
            self._same(lambda engine: engine.read(tenant, mark, after=after, limit=limit, newest=newest))

    @rule(tenant=tenants, data=st.data(), limit=small)
    def scan(self, tenant: str, data: st.DataObject, limit: int) -> None:
        since, until, before = (data.draw(st.none() | steps, label=name) for name in ("since", "until", "before"))
        query = Query(
            KIND,
            user=data.draw(st.sampled_from([None, None, "ana"])),
            agent=data.draw(st.sampled_from([None, None, "travel"])),
            tag=data.draw(st.sampled_from([None, None, "red"])),
            since=None if since is None else self._time - since,
            until=None if until is None else self._time + until,
            before=None if before is None else (self._time + before, data.draw(names)),
            limit=limit,
        )
        for clock in self._clocks:
            clock.set(self._time)
        self._same(lambda engine: engine.scan(tenant, query))
        late = msgspec.structs.replace(query, expired_before=self._time)
        self._same(lambda engine: engine.scan(tenant, late))

    @rule(tenant=tenants, data=st.data(), after=small)
    def follow(self, tenant: str, data: st.DataObject, after: int) -> None:
        """Read a part of the feed, unfiltered or filtered."""
        only = data.draw(interests)
        self._same(lambda engine: (engine.head(tenant), engine.feed(tenant, after, 5, only=only)))

    @rule(tenant=tenants, upto=small, data=st.data())
    def trim_or_limit(self, tenant: str, upto: int, data: st.DataObject) -> None:
        ops: list[Op] = [Trim(upto), *LIMITS]
        self._commit(tenant, data.draw(st.sampled_from(ops)))

    @rule()
    def freeze(self) -> None:
        """Open a snapshot; when it is closed, it must still show the same."""
        self._thaw()
        stack = ExitStack()
        ours, theirs = (stack.enter_context(engine.snapshot()) for engine in (self._model, self._subject))
        streams = self._streams()
        before = _contents(self._subject, streams)
        self._frozen = stack, ours, theirs, streams, before

    def _thaw(self) -> None:
        if self._frozen is None:
            return
        stack, ours, theirs, streams, before = self._frozen
        self._frozen = None
        with stack:
            assert _contents(theirs, streams) == before
            assert _contents(ours, streams) == before

    @invariant()
    def records_are_the_same(self) -> None:
        self._same(lambda engine: [engine.get(tenant, KIND, id) for tenant in TENANTS for id in IDS])

    def teardown(self) -> None:
        with self._cleanup:
            try:
                self._thaw()
                streams = self._streams()
                for hand in self._offload:
                    assert _contents(hand, streams) == _contents(self._model, streams)
                    assert hand.check() == []
            finally:
                for hand in self._offload:
                    hand.close()

    # Keeping both in step

    def _commit(self, tenant: str, *ops: Op) -> None:
        self._time += 1
        actor = (None, "ana", "support")[self._time % 3]
        self._same(lambda engine: engine.commit(tenant, ops, self._time, actor))
        for record in self._records(tenant):
            if record.stream is not None and record.mark not in self._marks[tenant]:
                self._marks[tenant].insert(0, record.mark)

    def _same(self, act: Callable[[Engine], object]) -> None:
        expected, actual = _outcome(act, self._model), _outcome(act, self._subject)
        assert actual == expected

    # Drawing arguments

    def _append(self, tenant: str, draw: Draw) -> Op:
        id, scope = draw(names), draw(owners)
        new = None if draw(few) else Put(KIND, id, b"new", scope=scope, tags=draw(tags))
        return Append(KIND, id, draw(events), draw(expectations), new)

    def _fork(self, tenant: str, draw: Draw) -> Op:
        id = self._absent(tenant, draw(small))
        new = Put(KIND, id, b"fork", scope=draw(scopes), tags=draw(tags))
        return Fork(KIND, id, self._mark(tenant, draw(small), draw(small)), new)

    def _rewind(self, tenant: str, draw: Draw) -> Op:
        id = self._present(tenant, draw(small))
        return Fork(KIND, id, self._mark(tenant, draw(small), draw(small)), expect=draw(expectations))

    def _put(self, tenant: str, draw: Draw) -> Op:
        life, derived = draw(lifetimes), draw(few)
        expires = None if life is None else self._time + life
        return Put(KIND, draw(names), draw(bodies), draw(expectations), draw(scopes), draw(tags), expires, derived)

    def _delete(self, tenant: str, draw: Draw) -> Op:
        return Delete(KIND, self._present(tenant, draw(small)), draw(expectations), draw(few), draw(few))

    def _guard(self, tenant: str, draw: Draw) -> Op:
        id = self._present(tenant, draw(small))
        record = self._model.get(tenant, KIND, id)
        return Guard(KIND, id, draw(small) if draw(few) or record is None else record.version)

    def _adopt(self, tenant: str, draw: Draw) -> Op:
        return self._exports[draw(small) % len(self._exports)] if self._exports else Adopt()

    def _records(self, tenant: str) -> Iterator[Record]:
        found = (self._model.get(tenant, KIND, id) for id in IDS)
        return (record for record in found if record is not None)

    def _present(self, tenant: str, which: int) -> str:
        ids = [record.id for record in self._records(tenant)] or IDS
        return ids[which % len(ids)]

    def _absent(self, tenant: str, which: int) -> str:
        ids = [id for id in IDS if self._model.get(tenant, KIND, id) is None] or IDS
        return ids[which % len(ids)]

    def _mark(self, tenant: str, which: int, back: int) -> Mark:
        """A point in a stream of the tenant, or a little before it; of the other tenant if it has none."""
        known = self._marks[tenant] or self._marks[TENANTS[0]] or [NO_MARK]
        mark = known[which % len(known)]
        return Mark(mark.stream, max(0, mark.position - back // 2))

    def _streams(self) -> list[int]:
        return sorted({mark.stream for marks in self._marks.values() for mark in marks})


def _contents(view: View, streams: list[int]) -> object:
    """All that the reading verbs show of these streams, of every record and of every feed."""
    return [
        (
            tenant,
            [view.get(tenant, KIND, id) for id in IDS],
            [view.strand(tenant, stream) for stream in streams],
            [view.read(tenant, Mark(stream, 1_000)) for stream in streams],
            view.head(tenant),
            _whole_feed(view, tenant),
        )
        for tenant in view.tenants()
    ]


def _whole_feed(view: View, tenant: str) -> list[Commit]:
    try:
        return view.feed(tenant, limit=1_000)
    except FeedTrimmed as error:
        return view.feed(tenant, error.first - 1, limit=1_000)


def _outcome(act: Callable[[Engine], object], engine: Engine) -> object:
    """The outcome of a call: its value, or the class of its error."""
    try:
        return act(engine)
    except HoldfastError as error:
        return type(error)


def engine_machine(open_engine: OpenEngine, *, hands: int = 1) -> type[EngineMachine]:
    """Make the machine for an engine. ``open_engine`` gets a new path for each run, a clock and ids.

    Durable engines are also closed and reopened at random; with ``hands`` over 1 the same store is open that many
    times at once, and they take turns. Use it as ``TestMyEngine = engine_machine(MyEngine).TestCase``.
    """

    class Machine(EngineMachine):
        pass

    Machine.open_engine = staticmethod(open_engine)
    Machine.hands = hands
    return Machine
