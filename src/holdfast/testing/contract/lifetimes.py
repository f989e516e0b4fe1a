"""What an engine promises over its life: many threads, submitted batches, closing, opening again, and copies."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

import pytest

from holdfast.clock import Clock
from holdfast.engine.contract import Copies, Delete, Engine, Mark, Op, Outcome, Query, Receipt, Submits
from holdfast.errors import Conflict, Erased, Misconfigured
from holdfast.testing.contract.scene import (
    ACME,
    ANA,
    BEN,
    GLOBEX,
    PATIENCE_S,
    Scene,
    append,
    aside,
    contents,
    event,
    fork,
    note,
    rewind,
)


class Submit(Protocol):
    """Hands operations over and gives a future of how they end."""

    def __call__(self, *ops: Op, time: int = 1) -> Future[Receipt]: ...


class Reopen(Protocol):
    """The fixture of a durable engine: close it if it is open, and open the same store, or a backup, again."""

    def __call__(self, path: Path | None = None) -> Engine: ...


VERBS: dict[str, Callable[[Engine, Path], object]] = {
    "get": lambda engine, _: engine.get(ACME, "note", "a"),
    "scan": lambda engine, _: engine.scan(ACME, Query("note")),
    "read": lambda engine, _: engine.read(ACME, Mark(1, 1)),
    "feed": lambda engine, _: engine.feed(ACME),
    "strand": lambda engine, _: engine.strand(ACME, 1),
    "tenants": lambda engine, _: engine.tenants(),
    "commit": lambda engine, _: engine.commit(ACME, [note("b")], 1),
    "snapshot": lambda engine, _: engine.snapshot().__enter__(),
    "erase": lambda engine, _: engine.erase(ACME, ANA, time=1),
    "head": lambda engine, _: engine.head(ACME),
    "check": lambda engine, _: engine.check(),
}


class ThreadPromises:
    """Promises about many threads on one engine."""

    def test_appends_of_many_threads_are_all_kept_and_leave_no_gap(self, scene: Scene) -> None:
        """Eight threads times fifty appends to one stream: nothing lost, nothing doubled, each sees its own order."""

        def write(writer: int) -> list[int]:
            return [scene.commit(append("t", f"{writer} {n}")).heads[0] for n in range(50)]

        with ThreadPoolExecutor(8) as pool:
            heads = list(pool.map(write, range(8)))
        events = scene.events("t")
        assert [e.position for e in events] == list(range(1, 401))
        assert sorted(position for own in heads for position in own) == list(range(1, 401))
        for writer, own in enumerate(heads):
            assert [events[position - 1].body for position in own] == [f"{writer} {n}".encode() for n in range(50)]
        assert scene.engine.check() == []

    def test_one_retry_key_from_many_threads_is_stored_once(self, scene: Scene) -> None:
        """The second writer gets what the first stored."""
        with ThreadPoolExecutor(8) as pool:
            receipts = list(pool.map(lambda _: scene.commit(append("t", event("one", "k"))), range(16)))
        assert {r.events for r in receipts} == {receipts[0].events}
        assert scene.texts("t") == ["one"]

    def test_a_failing_batch_does_not_harm_those_committed_with_it(self, scene: Scene) -> None:
        """Batches of many callers may share a transaction; one that fails fails alone."""
        scene.commit(note("n"))

        def attempt(number: int) -> bool:
            try:
                scene.commit(note(f"{number}"), note("n", expect=10_000) if number % 2 else note("n"))
                return True
            except Conflict:
                return False

        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(attempt, range(40)))
        assert done == [number % 2 == 0 for number in range(40)]
        assert set(scene.ids()) == {"n", *(str(number) for number in range(0, 40, 2))}

    def test_readers_see_only_whole_batches(self, scene: Scene) -> None:
        """Two records that every commit writes together are never seen apart in one snapshot."""
        scene.commit(note("a"), note("b"))

        def write(_: int) -> None:
            for _ in range(25):
                scene.commit(note("a"), note("b"))

        def look(_: int) -> set[int]:
            apart = set()
            for _ in range(50):
                with scene.engine.snapshot() as view:
                    a, b = (view.get(ACME, "note", id) for id in "ab")
                assert a is not None
                assert b is not None
                apart.add(a.version - b.version)
            return apart

        with ThreadPoolExecutor(4) as pool:
            writing = [pool.submit(write, n) for n in range(2)]
            seen = list(pool.map(look, range(2)))
            wait(writing)
        assert seen == [{0}, {0}]
        assert scene.note("a").version == 51

    def test_erasing_comes_through_while_others_write(self, scene: Scene) -> None:
        """Erasure waits its turn, not for a quiet moment, and afterwards nobody brings the erased back."""
        scene.commit(append("t", "one"), append("b", "one", scope=BEN))

        def write(_: int) -> int:
            for written in range(5_000):
                try:
                    scene.commit(append("b", "x", scope=BEN), append("t", "late"))
                except Erased:
                    return written
            return -1

        with ThreadPoolExecutor(5) as pool:
            writing = [pool.submit(write, n) for n in range(4)]
            assert scene.erase(ANA) == 1
            written = [future.result(PATIENCE_S) for future in writing]
        assert -1 not in written
        assert scene.thread("b").head == 1 + sum(written)
        assert scene.engine.get(ACME, "thread", "t") is None


class SubmitPromises:
    """Promises about ``submit``, for engines that are ``Submits``."""

    @pytest.fixture
    def submit(self, engine: Engine) -> Submit:
        if not isinstance(engine, Submits):
            pytest.skip("capability submits: this engine commits only with a waiting caller")

        def submit(*ops: Op, time: int = 1) -> Future[Receipt]:
            future: Future[Receipt] = Future()
            engine.submit(ACME, ops, time, _settle, future)
            return future

        return submit

    def test_a_submitted_batch_ends_with_its_receipt(self, submit: Submit, scene: Scene) -> None:
        """The ticket comes back with what ``commit`` would have returned, and the data is there."""
        receipt = submit(append("t", "one"), time=5).result(PATIENCE_S)
        assert (receipt.time, receipt.heads, receipt.feed) == (5, (1,), 1)
        assert scene.texts("t") == ["one"]

    def test_a_submitted_batch_ends_with_its_error(self, submit: Submit, scene: Scene) -> None:
        """The ticket comes back with what ``commit`` would have raised; batches around it are not harmed."""
        before = submit(note("a"), time=1)
        failing = submit(note("b"), note("a", expect=9), time=2)
        after = submit(note("c"), time=3)
        assert isinstance(failing.exception(PATIENCE_S), Conflict)
        assert before.result(PATIENCE_S).time == 1
        assert after.result(PATIENCE_S).time == 3
        assert scene.ids() == ["c", "a"]

    def test_every_ticket_comes_back_exactly_once(self, engine: Engine, submit: Submit) -> None:
        """``notify`` gets each batch once, whatever else is in its group; tickets need not be hashable."""
        assert isinstance(engine, Submits)
        told: list[object] = []
        last = submit()
        for number in range(50):
            engine.submit(
                ACME, [note(f"{number}")], 1, lambda ends: told.extend(ticket for ticket, _, _ in ends), [number]
            )
            last = submit(note("mixed"))
        last.result(PATIENCE_S)
        engine.close()
        assert sorted(told, key=str) == sorted(([number] for number in range(50)), key=str)

    def test_submitted_batches_keep_the_order_of_their_caller(self, submit: Submit, scene: Scene) -> None:
        """One caller's batches are committed in the order it handed them over, mixed with waiting callers' ones."""
        futures = []
        for number in range(50):
            futures.append(submit(append("t", f"{number}")))
            scene.commit(append("u", f"{number}"))
        assert [future.result(PATIENCE_S).heads[0] for future in futures] == list(range(1, 51))
        assert scene.texts("t") == scene.texts("u") == [f"{number}" for number in range(50)]

    def test_an_accepted_batch_is_carried_out_whatever_its_caller_does(
        self, engine: Engine, submit: Submit, scene: Scene
    ) -> None:
        """A ``notify`` that fails harms neither its batch nor those of others."""
        assert isinstance(engine, Submits)

        def gone(ends: list[Outcome]) -> None:
            raise RuntimeError("this caller's event loop is closed")

        engine.submit(ACME, [append("t", "one")], 1, gone, None)
        assert submit(append("t", "two")).result(PATIENCE_S).heads == (2,)
        assert scene.texts("t") == ["one", "two"]

    def test_closing_finishes_what_was_submitted(self, submit: Submit, scene: Scene) -> None:
        """Every batch that was accepted has an outcome when ``close`` returns."""
        futures = [submit(append("t", f"{number}")) for number in range(20)]
        scene.engine.close()
        assert [future.result(0).heads[0] for future in futures] == list(range(1, 21))

    def test_submitting_after_close_is_misconfigured(self, submit: Submit, scene: Scene) -> None:
        """Raised at once, not told later."""
        scene.engine.close()
        with pytest.raises(Misconfigured):
            submit(note("a"))


class ClosePromises:
    """Promises about ``close``."""

    def test_closing_twice_is_harmless(self, scene: Scene) -> None:
        """The second close finds nothing to do."""
        scene.commit(note("a"))
        scene.engine.close()
        scene.engine.close()
        with pytest.raises(Misconfigured):
            scene.ids()

    @pytest.mark.parametrize("verb", VERBS)
    def test_any_call_after_close_is_misconfigured(self, scene: Scene, tmp_path: Path, verb: str) -> None:
        """A closed engine says so, in every verb, instead of answering from what it remembers."""
        scene.commit(note("a"))
        scene.engine.close()
        with pytest.raises(Misconfigured):
            VERBS[verb](scene.engine, tmp_path)

    def test_closing_wakes_those_who_wait_for_the_feed(self, scene: Scene) -> None:
        """A follower learns that the engine is closed; it does not sit out its timeout."""
        waiting = aside(lambda: scene.engine.feed(ACME, timeout_s=PATIENCE_S * 10))
        scene.engine.close()
        assert isinstance(waiting.exception(PATIENCE_S), Misconfigured)


class DurablePromises:
    """Promises of durable engines, which supply the fixture ``reopen``."""

    def test_everything_acknowledged_is_there_after_reopening(self, scene: Scene, clock: Clock, reopen: Reopen) -> None:
        """Records, streams, forks, tags, the feed and what old marks reach, of every tenant."""
        scene.commit(note("n", b"1", scope=ANA, tags=("red",), expires=2**62), append("t", event("one", "k"), "two"))
        end = scene.mark("t")
        scene.commit(fork("f", scene.mark("t", at=1)), append("f", "other"), rewind("t", scene.mark("t", at=1)))
        scene.commit(append("t", "globex"), tenant=GLOBEX)
        before = [contents(scene.engine, tenant) for tenant in (ACME, GLOBEX)]
        again = Scene(reopen(), clock)
        assert [contents(again.engine, tenant) for tenant in (ACME, GLOBEX)] == before
        assert again.at(end) == ["one", "two"]
        assert again.ids(tag="red") == ["n"]
        assert again.engine.check() == []

    def test_a_reopened_engine_goes_on_where_it_stopped(self, scene: Scene, clock: Clock, reopen: Reopen) -> None:
        """Positions, versions, keys and the feed continue."""
        scene.commit(note("n"), append("t", event("one", "k")))
        again = Scene(reopen(), clock)
        receipt = again.commit(note("n", expect=1), append("t", event("one", "k"), "two", expect=1))
        assert (receipt.feed, receipt.heads) == (2, (2,))
        assert again.texts("t") == ["one", "two"]

    def test_what_was_erased_or_deleted_stays_so_after_reopening(
        self, scene: Scene, clock: Clock, reopen: Reopen
    ) -> None:
        """Graves are as durable as the rest."""
        scene.commit(append("t", "one"), note("n"))
        mark = scene.mark("t")
        scene.commit(Delete("note", "n"))
        scene.erase(ANA)
        again = Scene(reopen(), clock)
        assert again.ids() == again.at(mark) == []
        with pytest.raises(Erased):
            again.commit(append("t", "late"))


class BackupPromises:
    """Promises about ``backup``, for engines that have a physical form."""

    @pytest.fixture
    def copy(self, scene: Scene, tmp_path: Path) -> Path:
        """Back up a store that has something in it."""
        scene.commit(append("t", "one", "two"), note("n", tags=("red",)))
        scene.commit(fork("f", scene.mark("t", at=1)), append("f", "other"))
        path = tmp_path / "copy"
        if not isinstance(scene.engine, Copies):
            pytest.skip("capability backup: this engine has no physical form")
        scene.engine.backup(path)
        return path

    def test_a_backup_holds_everything(self, scene: Scene, copy: Path, reopen: Reopen) -> None:
        """The copy opens like the original, is sound, and does not follow later commits."""
        before = contents(scene.engine)
        scene.commit(note("later"))
        opened = reopen(copy)
        assert contents(opened) == before
        assert opened.check() == []

    def test_a_backup_never_overwrites(self, scene: Scene, copy: Path) -> None:
        """A path that is taken is a conflict, and the existing file stays."""
        size_bytes = copy.stat().st_size
        scene.commit(append("t", "x" * 100_000))
        assert isinstance(scene.engine, Copies)
        with pytest.raises(Conflict):
            scene.engine.backup(copy)
        assert copy.stat().st_size == size_bytes

    def test_a_backup_is_consistent_while_others_write(
        self, scene: Scene, tmp_path: Path, copy: Path, reopen: Reopen
    ) -> None:
        """It shows one moment: whole batches, no gap, every digest in place."""
        assert isinstance(scene.engine, Copies)
        with ThreadPoolExecutor(2) as pool:
            writing = [pool.submit(_write_pairs, scene) for _ in range(2)]
            scene.engine.backup(tmp_path / "busy")
            wait(writing)
        opened = reopen(tmp_path / "busy")
        versions = [record.version for id in "ab" if (record := opened.get(ACME, "note", id))]
        assert len(set(versions)) <= 1
        assert opened.check() == []


def _write_pairs(scene: Scene) -> None:
    for number in range(50):
        scene.commit(note("a"), note("b"), append("t", f"{number}"))


def _settle(ends: list[Outcome]) -> None:
    for future, receipt, error in ends:
        assert isinstance(future, Future)
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(receipt)
