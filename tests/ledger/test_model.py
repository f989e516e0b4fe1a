"""Whatever is done to threads, in whatever order, comes out as a few plain lists and dicts say.

The model below knows nothing of streams, strands, marks or revisions of records: a thread is two lists, a checkpoint
is a copy of them, and a fork is another copy. Where the ledger shares, the model copies; where they differ, the ledger
is wrong.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import holdfast
from holdfast import errors
from holdfast.ids import Ids
from holdfast.testing import ManualClock

# The model


class Said(NamedTuple):
    """An entry, and how many revisions there were once it was in."""

    text: str
    key: str | None
    revisions: int


class Saved(NamedTuple):
    """A revision."""

    value: dict[str, Any]
    key: str | None


class Copy(NamedTuple):
    """All that a thread was at some point."""

    entries: tuple[Said, ...]
    revisions: tuple[Saved, ...]


NOTHING = Copy((), ())


class ModelThread:
    """A thread, the simple way. ``seen`` is another object after every change of the state."""

    def __init__(self, copy: Copy = NOTHING) -> None:
        self.entries, self.revisions = list(copy.entries), list(copy.revisions)
        self.checkpoints: dict[str, Copy] = {}
        self.active = 0
        self.seen = object()

    def copy(self) -> Copy:
        return Copy(tuple(self.entries), tuple(self.revisions))

    def at(self, point: str | int | None) -> Copy:
        if point is None:
            return self.copy()
        if isinstance(point, str):
            if point not in self.checkpoints:
                raise errors.NotFound
            return self.checkpoints[point]
        if point > len(self.entries):
            raise errors.NotFound
        entries = self.entries[:point]
        return Copy(tuple(entries), tuple(self.revisions[: entries[-1].revisions if entries else 0]))


class Model:
    """A store, the simple way."""

    def __init__(self) -> None:
        self.threads: dict[str, ModelThread] = {}
        self.gone: set[str] = set()
        self._ticks = count(1)

    def find(self, id: str) -> ModelThread:
        if id not in self.threads:
            raise errors.NotFound
        return self.threads[id]

    def write(self, id: str) -> ModelThread:
        """The thread to write to, new if need be. Whoever calls this has checked everything else."""
        if id not in self.threads and id in self.gone:
            raise errors.Erased
        thread = self.threads.setdefault(id, ModelThread())
        thread.active = next(self._ticks)
        return thread

    def listing(self) -> list[str]:
        return sorted(self.threads, key=lambda id: self.threads[id].active, reverse=True)

    def append(self, id: str, text: str, key: str | None) -> int:
        thread = self.threads.get(id, ModelThread())
        for number, entry in enumerate(thread.entries, 1):
            if key is not None and entry.key == key:
                if entry.text != text:
                    raise errors.KeyReused
                return number
        thread = self.write(id)
        thread.entries.append(Said(text, key, len(thread.revisions)))
        return len(thread.entries)

    def save(self, id: str, value: dict[str, Any], key: str | None = None) -> int:
        thread = self.write(id)
        thread.revisions.append(Saved(value, key))
        thread.seen = object()
        return len(thread.revisions)

    def stale_save(self, id: str, expect: int) -> int:
        if id not in self.threads and id in self.gone:
            raise errors.Erased
        raise errors.Conflict

    def patch(self, id: str, name: str, value: int) -> int:
        thread = self.threads.get(id)
        if thread is None or not thread.revisions:
            raise errors.NotFound
        return self.save(id, {**thread.revisions[-1].value, name: value})

    def turn(self, id: str, text: str, value: dict[str, Any], key: str | None) -> tuple[int, int]:
        known = self.threads.get(id, ModelThread())
        if key is not None:
            for number, saved in enumerate(known.revisions, 1):
                if saved.key == key:
                    entry = next(n for n, said in enumerate(known.entries, 1) if said.key == key)
                    return entry, number
        thread = self.write(id)
        thread.entries.append(Said(text, key, len(thread.revisions) + 1))
        return len(thread.entries), self.save(id, value, key)

    def checkpoint(self, id: str, name: str, replace: bool) -> tuple[int, int]:
        thread = self.find(id)
        if name in thread.checkpoints and not replace:
            raise errors.Conflict
        thread.checkpoints[name] = thread.copy()
        self.write(id)
        return len(thread.entries), len(thread.revisions)

    def rewind(self, id: str, to: str | int) -> Copy:
        thread = self.find(id)
        copy, left = thread.at(to), thread.copy()
        thread.entries, thread.revisions = list(copy.entries), list(copy.revisions)
        thread.seen = object()
        self.write(id)
        return left

    def fork(self, id: str, new: str, at: str | int | None) -> None:
        copy = self.find(id).at(at)
        if new in self.threads:
            raise errors.Conflict
        if new in self.gone:
            raise errors.Erased
        self.threads[new] = ModelThread(copy)
        self.write(new)

    def erase(self, id: str, forever: bool) -> bool:
        if forever and id in self.threads:
            self.gone.add(id)
        return self.threads.pop(id, None) is not None


# The ledger beside it

NAMES = ("a", "b", "c", "d", "e")
ids = st.sampled_from(NAMES)
names = st.sampled_from(["here", "there"])
keys = st.sampled_from(["k1", "k2", "k3"])
texts = st.sampled_from(["hello", "bye", ""])
values = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 3), max_size=2)
points = st.one_of(names, st.integers(0, 6), st.none())


def outcome(work: Callable[[], Any]) -> Any:
    """What something comes to: its result, or the class of its error."""
    try:
        return work()
    except errors.HoldfastError as error:
        return type(error)


class Broken(Exception):
    """Something in the block of a turn went wrong."""


class Handle(NamedTuple):
    """Someone who loaded a state and has not saved yet, with what the model held then."""

    thread: holdfast.Thread
    id: str
    seen: object
    empty: bool


class Ledger(RuleBasedStateMachine):
    """Do the same to a store and to the model, and compare all that can be seen."""

    url = "ram:"
    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.clock, self.made = ManualClock(), count()
        self.store = self.open()
        self.handles: list[Handle] = []

    def open(self) -> holdfast.Store:
        made = self.made
        return holdfast.open(
            self.url, clock=self.clock, ids=Ids(lambda bits: next(made) % 2**bits), schemas=holdfast.Registry()
        )

    def agree(self, expected: Callable[[], Any], actual: Callable[[], Any]) -> bool:
        """Both succeed with the same result, or fail with the same error; say whether they succeeded."""
        wanted, found = outcome(expected), outcome(actual)
        assert found == wanted
        return not isinstance(wanted, type)

    @rule(id=ids, text=texts)
    def append(self, id: str, text: str) -> None:
        self.agree(
            lambda: self.model.append(id, text, None), lambda: self.store.thread(id).append({"text": text}).number
        )

    @rule(id=ids, text=texts, key=keys)
    def append_with_key(self, id: str, text: str, key: str) -> None:
        self.agree(
            lambda: self.model.append(id, text, key),
            lambda: self.store.thread(id).append({"text": text}, key=key).number,
        )

    @rule(id=ids, value=values)
    def save(self, id: str, value: dict[str, Any]) -> None:
        def load_and_save() -> int:
            thread = self.store.thread(id)
            thread.state()
            return thread.save(value)

        self.agree(lambda: self.model.save(id, value), load_and_save)

    @rule(id=ids, off=st.sampled_from([-2, -1, 1, 2]))
    def save_with_a_wrong_expectation(self, id: str, off: int) -> None:
        expect = len(self.model.threads.get(id, ModelThread()).revisions) + off
        if expect >= 0:
            self.agree(lambda: self.model.stale_save(id, expect), lambda: self.store.thread(id).save({}, expect=expect))

    @rule(id=ids)
    def load_and_think(self, id: str) -> None:
        known = self.model.threads.get(id, ModelThread())
        thread = self.store.thread(id)
        thread.state()
        self.handles.append(Handle(thread, id, known.seen, not known.revisions))

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), value=values)
    def save_after_thinking(self, data: st.DataObject, value: dict[str, Any]) -> None:
        """It counts if nobody changed the state since, and is a conflict otherwise, whatever the numbers say."""
        handle = self.handles.pop(data.draw(st.integers(0, len(self.handles) - 1)))
        known = self.model.threads.get(handle.id, ModelThread())

        def expected() -> int:
            same = handle.empty if not known.revisions else handle.seen is known.seen
            if not same:
                raise errors.Conflict
            return self.model.save(handle.id, value)

        self.agree(expected, lambda: handle.thread.save(value))

    @rule(id=ids, name=st.sampled_from(["x", "y"]), value=st.integers(0, 3))
    def patch(self, id: str, name: str, value: int) -> None:
        self.agree(lambda: self.model.patch(id, name, value), lambda: self.store.thread(id).patch(name, value))

    @rule(id=ids, text=texts, value=values)
    def turn(self, id: str, text: str, value: dict[str, Any]) -> None:
        self.agree(lambda: self.model.turn(id, text, value, None), lambda: self.take(id, text, value))

    @rule(id=ids, key=st.sampled_from(["t1", "t2"]))
    def turn_with_key(self, id: str, key: str) -> None:
        value = {"x": len(key)}
        self.agree(lambda: self.model.turn(id, key, value, key), lambda: self.take(id, key, value, key=key))

    @rule(id=ids, value=values)
    def turn_that_fails(self, id: str, value: dict[str, Any]) -> None:
        with pytest.raises(Broken):
            self.take(id, "never", value, broken=True)

    def take(
        self, id: str, text: str, value: dict[str, Any], *, key: str | None = None, broken: bool = False
    ) -> tuple[int, int | None]:
        thread = self.store.thread(id)
        thread.state()
        with thread.turn(key=key) as turn:
            turn.append({"text": text})
            turn.save(value)
            if broken:
                raise Broken
        return turn.entries[0].number, turn.revision

    @rule(id=ids, name=names, replace=st.booleans())
    def checkpoint(self, id: str, name: str, replace: bool) -> None:
        def mark() -> tuple[int, int]:
            made = self.store.thread(id).checkpoint(name, replace=replace)
            return made.entries, made.revision

        self.agree(lambda: self.model.checkpoint(id, name, replace), mark)

    @rule(id=ids, to=points.filter(lambda point: point is not None))
    def rewind(self, id: str, to: str | int) -> None:
        left: list[Copy] = []
        made: list[holdfast.types.Checkpoint] = []

        def simply() -> tuple[int, int]:
            left.append(self.model.rewind(id, to))
            return len(left[0].entries), len(left[0].revisions)

        def really() -> tuple[int, int]:
            made.append(self.store.thread(id).rewind(to))
            return made[0].entries, made[0].revision

        if self.agree(simply, really):
            self.model.threads[id].checkpoints[made[0].name] = left[0]
        # Someone who saw no state may or may not be told of a rewind: there was none, and there is none.
        self.handles = [handle for handle in self.handles if handle.id != id or not handle.empty]

    @rule(id=ids, data=st.data())
    def undo_a_rewind(self, id: str, data: st.DataObject) -> None:
        known = self.model.threads.get(id, ModelThread())
        left = sorted(name for name in known.checkpoints if name.startswith("before-rewind"))
        if left:
            self.rewind(id, data.draw(st.sampled_from(left)))

    @rule(id=ids, new=ids, at=points)
    def fork(self, id: str, new: str, at: str | int | None) -> None:
        self.agree(lambda: self.model.fork(id, new, at), lambda: self.store.thread(id).fork(new, at=at) and None)

    @rule(id=ids, forever=st.sampled_from([False, False, False, True]))
    def erase(self, id: str, forever: bool) -> None:
        self.agree(lambda: self.model.erase(id, forever), lambda: self.store.erase(thread=id, forever=forever) > 0)
        self.handles = [handle for handle in self.handles if handle.id != id]

    @precondition(lambda self: self.store.core.engine.durable)
    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.open()
        self.handles.clear()

    @invariant()
    def the_listing_is_the_same(self) -> None:
        type(self).steps += 1
        assert [info.id for info in self.store.threads()] == self.model.listing()

    @invariant()
    def every_thread_is_the_same(self) -> None:
        for id in NAMES:
            known = self.model.threads.get(id, ModelThread())
            thread = self.store.thread(id)
            assert [(entry.content["text"], entry.key) for entry in thread.log()] == [
                (said.text, said.key) for said in known.entries
            ]
            loaded = thread.state()
            assert loaded.revision == len(known.revisions) == len(thread.revisions())
            assert loaded.value == (known.revisions[-1].value if known.revisions else None)
            assert {point.name: (point.entries, point.revision) for point in thread.checkpoints()} == {
                name: (len(copy.entries), len(copy.revisions)) for name, copy in known.checkpoints.items()
            }

    def teardown(self) -> None:
        try:
            assert self.store.verify().problems == ()
        finally:
            self.store.close()


@contextmanager
def placed(engine: str) -> Iterator[type[Ledger]]:
    """The machine on an engine; each of its runs on a file of its own."""
    if engine == "ram":
        yield Ledger
        return
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        numbers = count()

        class OnSqlite(Ledger):
            def __init__(self) -> None:
                self.url = f"{folder}/{next(numbers)}.db"
                super().__init__()

        yield OnSqlite


@pytest.mark.parametrize("engine", ["ram", "sqlite"])
def test_the_ledger_does_what_plain_lists_would(engine: str) -> None:
    runs = settings().max_examples if engine == "ram" else settings().max_examples // 2
    chosen = settings(max_examples=runs, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])
    with placed(engine) as machine:
        run_state_machine_as_test(machine, settings=chosen)
    assert machine.steps > 0
