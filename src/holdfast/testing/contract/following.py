"""What ``feed`` and ``snapshot`` promise: order without gaps, waiting, and views that do not change."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.engine.contract import Change, Commit, Delete, Interest, Listens, Mark, Put, Query, Scope, Trim
from holdfast.errors import Conflict, FeedTrimmed
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


class FeedPromises:
    """Promises about ``feed``."""

    def test_every_commit_is_in_the_feed_in_order_and_without_a_gap(self, scene: Scene) -> None:
        """Positions are 1, 2, 3 …; each item carries its commit's time."""
        receipts = [scene.commit(note(id)) for id in "abc"]
        feed = scene.engine.feed(ACME)
        assert [item.position for item in feed] == [r.feed for r in receipts] == [1, 2, 3]
        assert [item.time for item in feed] == [r.time for r in receipts]

    def test_an_item_names_each_change_with_its_version_or_head(self, scene: Scene) -> None:
        """A record's new version, a stream's new head, in the order of the operations."""
        scene.commit(note("n"), note("n"))
        scene.commit(append("t", "one", "two"))
        scene.commit(append("t", "three"), fork("f", scene.mark("t", at=1)))
        scene.commit(Delete("note", "n"), rewind("t", scene.mark("t", at=2)))
        assert [item.changes for item in scene.engine.feed(ACME)] == [
            (Change("put", "note", "n", 1), Change("put", "note", "n", 2)),
            (Change("put", "thread", "t", 1, ANA), Change("append", "thread", "t", 2, ANA)),
            (
                Change("append", "thread", "t", 3, ANA),
                Change("put", "thread", "f", 1, ANA),
                Change("fork", "thread", "f", 1, ANA),
            ),
            (Change("delete", "note", "n", 2), Change("fork", "thread", "t", 2, ANA)),
        ]

    def test_every_batch_is_an_item_of_its_own(self, scene: Scene) -> None:
        """Also of batches that reach the disk together each has its own position, time and actor."""
        with ThreadPoolExecutor(8) as pool:
            receipts = list(
                pool.map(lambda n: scene.engine.commit(ACME, [note(str(n))], scene.clock.now(), f"a{n}"), range(40))
            )
        feed = {item.position: item for item in scene.engine.feed(ACME)}
        assert len(feed) == 40
        for n, receipt in enumerate(receipts):
            item = feed[receipt.feed]
            assert (item.actor, [change.id for change in item.changes]) == (f"a{n}", [str(n)])

    def test_a_change_tells_whose_it_is(self, scene: Scene) -> None:
        """User, agent and thread of the record at that moment, also where the changes of one commit differ."""
        scopes = [Scope(user="ana"), Scope(agent="a\tb"), Scope("ana", "x", "t\n1"), Scope(), Scope(user="ben")]
        scene.commit(note("alone", scope=scopes[2]))
        scene.commit(*(note(str(n), scope=scope) for n, scope in enumerate(scopes)))
        first, second = scene.engine.feed(ACME)
        assert [change.scope for change in first.changes] == [scopes[2]]
        assert [change.scope for change in second.changes] == scopes

    def test_the_actor_is_told(self, scene: Scene) -> None:
        """Who asked for a commit is in the feed, and nobody where none was named."""
        scene.engine.commit(ACME, [note("a")], scene.clock.now(), actor="support")
        scene.commit(note("b"))
        assert [item.actor for item in scene.engine.feed(ACME)] == ["support", None]

    @pytest.mark.parametrize(
        ("interest", "wanted"),
        [
            (Interest(user="ana"), [(1, "a"), (4, "m1")]),
            (Interest(user="ben"), [(2, "b"), (4, "m2")]),
            (Interest(unowned=True), [(3, "c"), (4, "m3")]),
            (Interest(agent="travel"), [(2, "b")]),
            (Interest(user="ben", agent="other"), []),
            (Interest(thread="t"), [(3, "c")]),
            (Interest(kinds=frozenset({"note"})), [(1, "a"), (2, "b"), (3, "c"), (4, "m1"), (4, "m2"), (4, "m3")]),
            (Interest(kinds=frozenset({"thread"})), [(5, "t"), (5, "t")]),
            (Interest(kinds=frozenset({"thread"}), user="ana"), []),
        ],
    )
    def test_only_what_is_of_interest(self, scene: Scene, interest: Interest, wanted: list[tuple[int, str]]) -> None:
        """``only`` leaves out items, and changes of an item, that are of other kinds or owners."""
        scene.commit(note("a", scope=ANA))
        scene.commit(note("b", scope=Scope(user="ben", agent="travel")))
        scene.commit(note("c", scope=Scope(thread="t")))
        scene.commit(note("m1", scope=ANA), note("m2", scope=BEN), note("m3"))
        scene.commit(append("t", "one", scope=Scope(user="eve")))
        found = scene.engine.feed(ACME, only=interest)
        assert [(item.position, change.id) for item in found for change in item.changes] == wanted
        assert [item.position for item in scene.engine.feed(ACME, 3, 1, only=interest)] == sorted(
            {position for position, _ in wanted if position > 3}
        )[:1]

    def test_an_erasure_is_of_interest_to_everybody(self, scene: Scene) -> None:
        """The feed does not say whom it was about, so everyone who may hold something of it gets it."""
        scene.commit(note("a", scope=ANA), note("b", scope=BEN))
        scene.erase(ANA)
        (item,) = scene.engine.feed(ACME, 1, only=Interest(user="ben"))
        assert item.changes == (Change("erase", "note", "", 1),)

    def test_the_head_is_the_newest_position(self, scene: Scene) -> None:
        """0 when there is none, and as of its moment in a snapshot."""
        assert scene.engine.head(ACME) == 0
        scene.commit(note("a"))
        with scene.engine.snapshot() as view:
            scene.commit(note("b"))
            assert (view.head(ACME), scene.engine.head(ACME), scene.engine.head(GLOBEX)) == (1, 2, 0)

    def test_derived_records_are_not_in_the_feed(self, scene: Scene) -> None:
        """They are read, expected and erased like others, and no item speaks of them."""
        first = scene.commit(note("a", scope=ANA))
        made = scene.commit(note("d", b"1", scope=ANA, derived=True), note("e", derived=True))
        assert made.feed == first.feed
        assert scene.note("d").derived
        with pytest.raises(Conflict):
            scene.commit(note("d", b"2", expect=0, derived=True))
        scene.commit(note("d", b"2", expect=1, scope=ANA, derived=True), Delete("note", "e", derived=True))
        assert (scene.note("d").body, scene.ids()) == (b"2", ["d", "a"])
        assert [change.id for item in scene.engine.feed(ACME) for change in item.changes] == ["a"]
        scene.erase(ANA)
        assert scene.ids() == []

    def test_a_trimmed_feed_goes_on(self, scene: Scene) -> None:
        """What is dropped is ``FeedTrimmed`` for who asks for it; the newest item stays; positions go on."""
        for id in "abcd":
            scene.commit(note(id, scope=ANA))
        assert scene.commit(Trim(2)).feed == 5
        assert [item.position for item in scene.engine.feed(ACME, after=2)] == [3, 4, 5]
        assert [item.position for item in scene.engine.feed(ACME, after=2, only=Interest(user="ana"))] == [3, 4]
        for only in (None, Interest(user="ana"), Interest(user="nobody")):
            with pytest.raises(FeedTrimmed) as caught:
                scene.engine.feed(ACME, after=1, only=only)
            assert caught.value.first == 3
        scene.commit(Trim(99))
        assert [item.position for item in scene.engine.feed(ACME, after=5)] == [6]
        assert scene.commit(note("e")).feed == scene.engine.head(ACME) == 7
        assert scene.engine.check() == []

    def test_whoever_listens_is_called_once(self, scene: Scene) -> None:
        """With what is of interest after the position, at once when it is there, at the end; not after cancelling."""
        if not isinstance(scene.engine, Listens):
            pytest.skip("this engine offers no listening")
        calls: queue.Queue[tuple[str, list[str]]] = queue.Queue()

        def listen(name: str, after: int, only: Interest | None = None) -> Callable[[], None]:
            def call(commits: list[Commit]) -> None:
                calls.put((name, [change.id for commit in commits for change in commit.changes]))

            assert isinstance(scene.engine, Listens)
            return scene.engine.listen(ACME, after, call, only)

        listen("first", 0, Interest(user="ana"))
        listen("cancelled", 0)()
        scene.commit(note("x", scope=ANA), tenant=GLOBEX)
        scene.commit(note("b", scope=BEN))
        scene.commit(note("a", scope=ANA), note("c"))
        assert calls.get(timeout=PATIENCE_S) == ("first", ["a"])
        listen("late", 1)
        assert calls.get(timeout=PATIENCE_S) == ("late", ["a", "c"])
        end = listen("end", 2)
        scene.engine.close()
        assert calls.get(timeout=PATIENCE_S) == ("end", [])
        end()
        assert calls.empty()

    def test_names_come_back_as_they_were_given(self, scene: Scene) -> None:
        """Whatever is in an id, also what a way of writing changes down may use itself."""
        ids = ["a\tb", "a\nb", "a\\nb", "\\", "\\\\t\n", " ", "+1\tnote\tx", "é\u2028", "[]"]
        scene.commit(*map(note, ids))
        assert [change.id for change in scene.engine.feed(ACME)[0].changes] == ids

    def test_after_and_limit_give_a_page(self, scene: Scene) -> None:
        """``after`` is the last position already seen; ``limit`` keeps the first ones."""
        for id in "abcde":
            scene.commit(note(id))
        assert [item.position for item in scene.engine.feed(ACME, after=2)] == [3, 4, 5]
        assert [item.position for item in scene.engine.feed(ACME, after=1, limit=2)] == [2, 3]
        assert scene.engine.feed(ACME, after=5) == scene.engine.feed(ACME, after=99) == []

    def test_repetitions_and_failures_are_not_in_the_feed(self, scene: Scene) -> None:
        """The feed speaks of changes only."""
        scene.commit(append("t", event("one", "k")))
        scene.commit(append("t", event("one", "k")))
        with pytest.raises(Exception):  # noqa: B017, PT011 - which error is another promise
            scene.commit(note("n", expect=5))
        assert [item.position for item in scene.engine.feed(ACME)] == [1]

    def test_each_tenant_has_its_own_feed(self, scene: Scene) -> None:
        """Positions count per tenant, and nobody reads another's."""
        scene.commit(note("a"))
        scene.commit(note("b"), tenant=GLOBEX)
        assert [(item.position, item.changes[0].id) for item in scene.engine.feed(GLOBEX)] == [(1, "b")]
        assert scene.engine.feed("nobody") == []

    def test_tenants_are_listed_sorted(self, scene: Scene) -> None:
        """Every tenant that holds anything, by name; one whose only commit failed or changed nothing is not there."""
        scene.commit(note("a"), tenant="b")
        scene.commit(note("a"), tenant="ä")
        scene.commit(note("a"), tenant="a")
        scene.commit(tenant="empty")
        with pytest.raises(Exception):  # noqa: B017, PT011 - which error is another promise
            scene.commit(note("a", expect=5), tenant="failed")
        assert scene.engine.tenants() == ["a", "b", "ä"]

    def test_waiting_returns_nothing_when_nothing_comes(self, scene: Scene) -> None:
        """After ``timeout_s`` an empty list, also for a tenant that is not there, and while others write."""
        scene.commit(note("a"))
        scene.commit(note("a"), tenant=GLOBEX)
        assert scene.engine.feed(ACME, after=1, timeout_s=0.01) == []
        assert scene.engine.feed("nobody", timeout_s=0.01) == []

    def test_waiting_does_not_delay_what_is_there(self, scene: Scene) -> None:
        """A timeout is only for when there is none."""
        scene.commit(note("a"))
        found = aside(lambda: scene.engine.feed(ACME, timeout_s=PATIENCE_S * 10)).result(PATIENCE_S)
        assert [item.position for item in found] == [1]

    def test_waiting_wakes_up_for_a_commit(self, scene: Scene) -> None:
        """A follower gets the next commit of its tenant, and is not misled by another tenant's."""
        waiting = aside(lambda: scene.engine.feed(ACME, timeout_s=PATIENCE_S * 10))
        scene.commit(note("x"), tenant=GLOBEX)
        scene.commit(note("a"))
        found = waiting.result(PATIENCE_S)
        assert [(item.position, item.changes[0].id) for item in found] == [(1, "a")]

    def test_a_follower_misses_nothing_while_many_write(self, scene: Scene) -> None:
        """Positions arrive in order and without a gap, and every change is in exactly one item."""
        with ThreadPoolExecutor(5) as pool:
            following = pool.submit(_follow_until, scene, 80)
            list(pool.map(lambda n: [scene.commit(note(f"{n}-{i}")) for i in range(20)], range(4)))
            items = following.result(PATIENCE_S)
        assert [item.position for item in items] == list(range(1, len(items) + 1))
        changed = [change.id for item in items for change in item.changes]
        assert sorted(changed) == sorted(f"{n}-{i}" for n in range(4) for i in range(20))


class SnapshotPromises:
    """Promises about ``snapshot``."""

    def test_nothing_changes_in_a_snapshot(self, scene: Scene) -> None:
        """While it is open every verb shows what was there when it began, whatever others commit."""
        scene.commit(note("n", b"1", tags=("red",)), append("t", "one"))
        mark = scene.mark("t")
        with scene.engine.snapshot() as view:
            before = contents(view)
            scene.commit(note("n", b"2"), append("t", "two"), note("m"))
            scene.commit(note("n"), tenant=GLOBEX)
            assert contents(view) == before
            record = view.get(ACME, "note", "n")
            assert record is not None
            assert record.body == b"1"
            assert [e.body for e in view.read(ACME, Mark(mark.stream, 99))] == [b"one"]
            assert [r.id for r in view.scan(ACME, Query("note", tag="red"))] == ["n"]
            assert view.tenants() == [ACME]
        assert contents(scene.engine) != before

    def test_a_snapshot_outlives_what_is_erased_meanwhile(self, scene: Scene) -> None:
        """Erasing is a change like any other: an open snapshot does not see it, a new one does."""
        scene.commit(append("t", "one"))
        mark = scene.mark("t")
        with scene.engine.snapshot() as view:
            scene.erase(ANA)
            assert [e.body for e in view.read(ACME, mark)] == [b"one"]
            assert view.strand(ACME, mark.stream) is not None
        with scene.engine.snapshot() as view:
            assert view.read(ACME, mark) == []

    def test_a_snapshot_sees_what_was_acknowledged_before_it(self, scene: Scene) -> None:
        """Read your writes, here too."""
        scene.commit(append("t", "one"), Put("note", "n", b""))
        with scene.engine.snapshot() as view:
            assert contents(view) == contents(scene.engine)

    def test_a_snapshot_never_waits(self, scene: Scene) -> None:
        """Nothing can come, so a timeout has no meaning in it."""
        scene.commit(note("a"))
        with scene.engine.snapshot() as view:
            found = aside(lambda: view.feed(ACME, after=1, timeout_s=PATIENCE_S * 10)).result(PATIENCE_S)
        assert found == []

    def test_snapshots_may_be_open_side_by_side(self, scene: Scene) -> None:
        """Each stands at its own moment."""
        scene.commit(note("a"))
        with scene.engine.snapshot() as first:
            scene.commit(note("b"))
            with scene.engine.snapshot() as second:
                scene.commit(note("c"))
                seen = [len(view.scan(ACME, Query("note"))) for view in (first, second)]
        assert seen == [1, 2]

    def test_an_error_inside_a_snapshot_passes_through(self, scene: Scene) -> None:
        """Leaving by an error closes the snapshot like any other way out; the engine goes on."""
        with pytest.raises(ZeroDivisionError), scene.engine.snapshot():
            raise ZeroDivisionError
        scene.commit(note("a"))
        with scene.engine.snapshot() as view:
            assert view.get(ACME, "note", "a") is not None


def _follow_until(scene: Scene, wanted: int) -> list[Commit]:
    items: list[Commit] = []
    while sum(len(item.changes) for item in items) < wanted:
        found = scene.engine.feed(ACME, items[-1].position if items else 0, 7, PATIENCE_S)
        if not found:
            break
        items += found
    return items
