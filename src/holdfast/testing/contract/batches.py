"""What ``commit`` promises of a whole batch: all or nothing, in order, one after the other; and ``Guard``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.engine.contract import Append, Delete, Guard, Limit, Mark, Op, Put
from holdfast.errors import Conflict, Erased, HoldfastError, Invalid, KeyReused, NotFound, QuotaExceeded
from holdfast.testing.contract.scene import ACME, ANA, BEN, GLOBEX, Scene, append, contents, event, fork, note, rewind

FAILING: dict[str, tuple[type[HoldfastError], Callable[[Scene], Op]]] = {
    "put of another version": (Conflict, lambda s: note("n", expect=9)),
    "put of what must be new": (Conflict, lambda s: note("n", expect=0)),
    "put of what was erased": (Erased, lambda s: note("gone")),
    "delete of another version": (Conflict, lambda s: Delete("note", "n", expect=9)),
    "append at another head": (Conflict, lambda s: append("t", "late", expect=1)),
    "append to nothing": (NotFound, lambda s: Append("thread", "absent", (event("x"),))),
    "append to what was erased": (Erased, lambda s: append("gone", "x")),
    "append of a key with other content": (KeyReused, lambda s: append("t", event("other", "k"))),
    "fork onto what exists": (Conflict, lambda s: fork("t", s.mark("t"))),
    "fork of an unknown stream": (NotFound, lambda s: fork("f", Mark(12345, 1))),
    "fork beyond the head": (NotFound, lambda s: fork("f", s.mark("t", at=9))),
    "fork onto what was erased": (Erased, lambda s: fork("gone", s.mark("t"))),
    "rewind of nothing": (NotFound, lambda s: rewind("absent", s.mark("t"))),
    "rewind at another head": (Conflict, lambda s: rewind("t", s.mark("t", at=1), expect=1)),
    "guard of another version": (Conflict, lambda s: Guard("note", "n", 2)),
    "guard of what must be absent": (Conflict, lambda s: Guard("note", "n", 0)),
}


class LimitPromises:
    """Promises about ``Limit``: nothing goes over it, and nothing is written of what would."""

    @pytest.mark.parametrize(
        ("limit", "fits", "over"),
        [
            (Limit("events", "thread", 3), append("t", "3"), append("t", "3", "4")),
            (Limit("records", "note", 2), note("m"), [note("m"), note("o")]),
            (Limit("bytes", "", 10), note("n", b"1234567"), note("n", b"123456789")),
        ],
    )
    def test_what_would_go_over_is_refused_whole(self, scene: Scene, limit: Limit, fits: Op, over: Op) -> None:
        """In the middle of a batch too; what makes nothing larger, and what fits, goes on."""
        scene.commit(append("t", "1", "2"), note("n", b"1"))
        scene.commit(limit)
        before = contents(scene.engine)
        with pytest.raises(QuotaExceeded) as caught:
            scene.commit(note("n", b"1"), *(over if isinstance(over, list) else [over]))
        assert (caught.value.measure, caught.value.most) == (limit.measure, limit.most)
        assert contents(scene.engine) == before
        scene.commit(note("n", b"0"))
        scene.commit(fits)
        with pytest.raises(QuotaExceeded):
            scene.commit(append("t", "again", "and again"), note("more", b"12345678901"))
        assert scene.engine.check() == []

    def test_a_limit_counts_what_goes(self, scene: Scene) -> None:
        """Deleting and erasing make room; raising or lifting a limit does as well; other tenants have their own."""
        scene.commit(append("t", "1"), append("u", "2", scope=BEN))
        scene.commit(Limit("events", "thread", 2))
        with pytest.raises(QuotaExceeded):
            scene.commit(append("t", "3"))
        scene.commit(append("t", "1", "2", "3"), tenant=GLOBEX)
        scene.erase(BEN, bury=False)
        scene.commit(append("t", "3"))
        scene.commit(Delete("thread", "t"))
        scene.commit(append("v", "1", "2"))
        with pytest.raises(QuotaExceeded):
            scene.commit(append("v", "3"))
        scene.commit(Limit("events", "thread", 3))
        scene.commit(append("v", "3"))
        scene.commit(Limit("events", "thread", None))
        scene.commit(append("v", "4", "5"))
        assert scene.engine.check() == []

    def test_repetitions_and_derived_records_take_no_room(self, scene: Scene) -> None:
        """A key that is there already adds nothing, and what can be made again is not the tenant's own."""
        scene.commit(append("t", event("1", "k")))
        scene.commit(Limit("events", "thread", 1), Limit("records", "note", 0))
        scene.commit(append("t", event("1", "k")), note("d", b"x", derived=True))
        assert scene.engine.check() == []

    @pytest.mark.parametrize("limit", [Limit("words", "x", 1), Limit("bytes", "note", 1), Limit("events", "", 1)])
    def test_a_limit_of_something_else_is_refused(self, scene: Scene, limit: Limit) -> None:
        """Events or records of a kind, or bytes; and not below nothing."""
        with pytest.raises(Invalid):
            scene.commit(limit)
        with pytest.raises(Invalid):
            scene.commit(Limit("bytes", "", -1))


class BatchPromises:
    """Promises about batches, whatever is in them."""

    @pytest.mark.parametrize("name", FAILING)
    def test_a_batch_with_a_failing_operation_changes_nothing(self, scene: Scene, name: str) -> None:
        """Atomic: operations before and after the failing one leave no trace, neither in records nor in the feed."""
        scene.commit(note("n"), note("p"), append("t", "one", event("two", "k")))
        scene.commit(note("gone", scope=BEN), append("gone", scope=BEN))
        scene.erase(BEN)
        error, make = FAILING[name]
        failing, before = make(scene), contents(scene.engine)
        with pytest.raises(error):
            scene.commit(append("t", "three"), append("new", "x"), Delete("note", "p"), note("q"), failing)
        with pytest.raises(error):
            scene.commit(failing, note("q"))
        assert contents(scene.engine) == before
        assert scene.engine.check() == []

    def test_operations_apply_in_the_order_given(self, scene: Scene) -> None:
        """In order: each operation sees what those before it in the batch did."""
        scene.commit(note("a", expect=0), note("a", expect=1), Delete("note", "a", expect=2), note("a", b"3", expect=0))
        assert (scene.note("a").version, scene.note("a").body) == (1, b"3")
        scene.commit(append("t", "one"), append("t", "two", expect=1), append("t", "three", expect=2))
        assert scene.texts("t") == ["one", "two", "three"]

    def test_a_batch_may_delete_a_thread_and_begin_it_anew(self, scene: Scene) -> None:
        """In order: what a batch deletes and makes again is a new thing, with nothing of the old one."""
        scene.commit(append("t", "old", event("old", "k")))
        old = scene.mark("t")
        scene.commit(Delete("thread", "t"), append("t", event("new", "k")))
        record = scene.thread("t")
        assert scene.texts("t") == ["new"]
        assert (record.version, record.created) == (1, record.time)
        assert scene.at(old) == []

    def test_a_batch_may_make_a_thread_and_delete_it_again(self, scene: Scene) -> None:
        """In order: what a batch makes and deletes is not there afterwards."""
        receipt = scene.commit(append("t", event("x", "k")), note("a"), Delete("thread", "t"), Delete("note", "a"))
        assert scene.engine.get(ACME, "thread", "t") is None
        assert scene.ids() == []
        assert receipt.heads == (1,)
        assert scene.engine.check() == []

    def test_no_operation_reaches_into_another_tenant(self, scene: Scene) -> None:
        """What is deleted, guarded, appended to, rewound or erased under one tenant's name is that tenant's alone."""
        scene.commit(note("n", scope=ANA), append("t", event("one", "k")))
        mark, before = scene.mark("t"), contents(scene.engine)
        scene.commit(Delete("note", "n"), Delete("thread", "t"), Guard("note", "n", 0), tenant=GLOBEX)
        for op in (append("t", "x", new=None), rewind("t", mark), fork("f", mark)):
            with pytest.raises(NotFound):
                scene.commit(op, tenant=GLOBEX)
        assert scene.erase(ANA, tenant=GLOBEX) == 0
        assert scene.engine.read(GLOBEX, mark, key="k") == []
        assert scene.at(mark, GLOBEX) == []
        assert contents(scene.engine, GLOBEX) == ([], [], [])
        assert contents(scene.engine) == before

    def test_an_empty_batch_changes_nothing(self, scene: Scene) -> None:
        """A commit of nothing is not a change: no feed item, and the receipt names the last one there is."""
        first = scene.commit(note("a"))
        assert scene.commit().feed == first.feed
        assert len(scene.engine.feed(ACME)) == 1

    def test_a_receipt_tells_time_and_feed_position(self, scene: Scene) -> None:
        """A receipt carries the commit's own time and the feed position that speaks of it."""
        receipt = scene.engine.commit(ACME, [note("a")], 1_234)
        (item,) = scene.engine.feed(ACME)
        assert (receipt.time, receipt.feed) == (1_234, item.position)
        assert item.time == 1_234

    def test_a_receipt_holds_the_events_of_each_append_as_stored(self, scene: Scene) -> None:
        """Per Append: its events with position and digest, repetitions included, and the head after it."""
        scene.commit(append("t", event("one", "k1")))
        receipt = scene.commit(append("t", event("one", "k1"), "two"), note("n"), append("u", "x"))
        assert [[e.position for e in events] for events in receipt.events] == [[1, 2], [1]]
        assert receipt.heads == (2, 1)
        assert list(receipt.events[0]) == scene.events("t")

    def test_commits_of_one_tenant_are_serial(self, scene: Scene) -> None:
        """Each commit sees all of those before it: no increment of a counter is lost between threads."""

        def increment_ten_times(_: int) -> None:
            for _ in range(10):
                _increment(scene)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(increment_ten_times, range(4)))
        assert scene.note("counter").version == scene.note("counter").body.count(b"+") == 40


class GuardPromises:
    """Promises about ``Guard``."""

    def test_a_guard_lets_the_commit_pass_at_its_version(self, scene: Scene) -> None:
        """A guard that holds lets the rest of the batch happen."""
        scene.commit(note("a"), note("a"))
        scene.commit(Guard("note", "a", 2), note("b"))
        assert scene.ids() == ["b", "a"]

    def test_a_guard_of_version_zero_means_absent(self, scene: Scene) -> None:
        """Version 0 holds only while there is no such record."""
        scene.commit(Guard("note", "a", 0), note("b"))
        with pytest.raises(Conflict):
            scene.commit(Guard("note", "b", 0))

    def test_a_guard_of_a_stream_fails_when_the_record_was_begun_anew(self, scene: Scene) -> None:
        """What was deleted and made again has its old version, but another stream."""
        scene.commit(append("t", "one"))
        old = scene.thread("t")
        scene.commit(Guard("thread", "t", 1, old.stream), note("a"))
        scene.commit(Delete("thread", "t"))
        scene.commit(append("t", "two"))
        assert scene.thread("t").version == old.version
        with pytest.raises(Conflict):
            scene.commit(Guard("thread", "t", old.version, old.stream), note("b"))
        scene.commit(Guard("thread", "t", old.version, scene.thread("t").stream), note("b"))

    def test_a_guard_writes_nothing(self, scene: Scene) -> None:
        """A guard alone is not a change: the record's time stays, and the feed does not speak of it."""
        scene.commit(note("a"))
        before = contents(scene.engine)
        scene.commit(Guard("note", "a", 1))
        assert contents(scene.engine) == before

    def test_a_guard_looks_at_the_version_and_not_at_the_head(self, scene: Scene) -> None:
        """Appending moves a head, not a version, so a guard does not mind it."""
        scene.commit(append("t", "one", scope=ANA))
        scene.commit(append("t", "two"), Guard("thread", "t", 1))
        assert scene.texts("t") == ["one", "two"]


def _increment(scene: Scene) -> None:
    while True:
        record = scene.engine.get(ACME, "note", "counter")
        version, body = (record.version, record.body) if record is not None else (0, b"")
        try:
            scene.commit(Put("note", "counter", body + b"+", expect=version))
            return
        except Conflict:
            continue
