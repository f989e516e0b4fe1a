"""What ``erase`` and ``check`` promise: what is erased is gone and stays gone, and sound data passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.engine.contract import Adopt, Append, Change, Delete, Fork, Op, Put, Query, Record, Scope, Scrubs
from holdfast.errors import Erased, Invalid
from holdfast.testing.contract.scene import ACME, ANA, BEN, GLOBEX, Scene, append, contents, event, fork, note, rewind

LATE: dict[str, Callable[[Scene], Op]] = {
    "put": lambda s: Put("thread", "t", b""),
    "put that must be new": lambda s: Put("thread", "t", b"", expect=0),
    "append that makes it": lambda s: append("t", "late"),
    "append that does not": lambda s: Append("thread", "t", (event("late"),)),
    "touch": lambda s: append("t"),
    "fork onto it": lambda s: fork("t", s.mark("other")),
    "rewind of it": lambda s: Fork("thread", "t", s.mark("other")),
    "adoption of it": lambda s: Adopt((Record("thread", "t", 1, b"", ANA, 1, 1),)),
}


class ErasePromises:
    """Promises about ``erase``."""

    def test_every_record_of_the_scope_goes_with_its_events(self, scene: Scene) -> None:
        """Records of all kinds, their tags and their streams; the number of records is returned."""
        scene.commit(note("n", scope=ANA, tags=("red",)), append("t", "one"), append("b", "kept", scope=BEN))
        mark = scene.mark("t")
        assert scene.at(mark) == ["one"]
        assert scene.erase(ANA) == 2
        assert scene.engine.get(ACME, "note", "n") is scene.engine.get(ACME, "thread", "t") is None
        assert scene.ids() == scene.ids(tag="red") == scene.at(mark) == []
        assert scene.engine.strand(ACME, mark.stream) is None
        assert scene.texts("b") == ["kept"]
        assert scene.engine.check() == []

    @pytest.mark.parametrize(
        ("scope", "left"),
        [
            (Scope(user="ana"), ["d", "b"]),
            (Scope(agent="travel"), ["d", "c"]),
            (Scope(thread="trip"), ["d", "b", "a"]),
            (Scope(user="ana", agent="travel"), ["d", "c", "b"]),
            (Scope(user="ana", agent="travel", thread="trip"), ["d", "c", "b", "a"]),
            (Scope(user=""), ["d", "c", "b", "a"]),
        ],
    )
    def test_a_scope_means_what_lies_inside_it(self, scene: Scene, scope: Scope, left: list[str]) -> None:
        """Every part the scope names must match exactly; parts it leaves open match anything."""
        scene.commit(note("a", scope=Scope(user="ana", agent="travel")))
        scene.commit(note("b", scope=Scope(user="ben", agent="travel")))
        scene.commit(note("c", scope=Scope(user="ana", thread="trip")))
        scene.commit(note("d"))
        assert scene.erase(scope) == 4 - len(left)
        assert scene.ids() == left

    def test_the_feed_forgets_whom_it_spoke_of(self, scene: Scene) -> None:
        """Older items keep what happened, but no longer the ids of what was erased; others keep theirs."""
        scene.commit(append("t", "one"), append("b", "kept", scope=BEN))
        scene.commit(append("t", "two"))
        before = scene.engine.feed(ACME)
        scene.erase(ANA)
        after = scene.engine.feed(ACME)[: len(before)]
        assert [c.position for c in after] == [c.position for c in before]
        assert {change.id for commit in after for change in commit.changes} == {"", "b"}
        assert [len(commit.changes) for commit in after] == [len(commit.changes) for commit in before]

    def test_an_empty_scope_is_refused(self, scene: Scene) -> None:
        """Nobody erases a whole tenant by leaving something out."""
        scene.commit(note("n"))
        with pytest.raises(Invalid):
            scene.erase(Scope())
        assert scene.ids() == ["n"]

    def test_another_tenant_keeps_the_same_scope(self, scene: Scene) -> None:
        """Erasing stops at the tenant's wall, and so do the graves it leaves."""
        for tenant in (ACME, GLOBEX):
            scene.commit(append("t", "one"), tenant=tenant)
        scene.erase(ANA)
        assert scene.texts("t", GLOBEX) == ["one"]
        scene.commit(append("t", "two"), tenant=GLOBEX)
        assert scene.erase(BEN, tenant="nobody") == 0

    def test_an_erased_rewound_thread_leaves_no_events(self, scene: Scene) -> None:
        """Also what only an old mark could reach is gone."""
        scene.commit(append("t", "one", "two"))
        old = scene.mark("t")
        scene.commit(rewind("t", scene.mark("t", at=1)), append("t", "other"))
        new = scene.mark("t")
        scene.erase(ANA)
        assert scene.at(old) == scene.at(new) == []

    def test_forks_outside_the_scope_keep_what_they_share(self, scene: Scene) -> None:
        """Events another stream reaches stay, nameless; all others go."""
        scene.commit(append("t", "one", "two", "three"))
        whole = scene.mark("t")
        scene.commit(fork("f", scene.mark("t", at=2), scope=BEN), append("f", "other", scope=BEN))
        scene.erase(ANA)
        assert scene.texts("f") == ["one", "two", "other"]
        assert scene.at(whole) == ["one", "two"]
        strand = scene.engine.strand(ACME, whole.stream)
        assert strand is not None
        assert (strand.kind, strand.id) == ("", "")
        assert scene.engine.check() == []

    def test_a_fork_of_an_erased_thread_can_be_forked_and_rewound(self, scene: Scene) -> None:
        """What is kept is kept whole: positions, keys and chain still work below the fork."""
        scene.commit(append("t", event("one", "k"), "two"))
        scene.commit(fork("f", scene.mark("t"), scope=BEN))
        scene.erase(ANA)
        scene.commit(append("f", event("one", "k"), "three", scope=BEN))
        scene.commit(fork("g", scene.mark("f", at=1), scope=BEN), rewind("f", scene.mark("f", at=2)))
        assert (scene.texts("f"), scene.texts("g")) == (["one", "two"], ["one"])
        assert scene.engine.check() == []

    def test_an_erased_fork_leaves_its_parent_whole(self, scene: Scene) -> None:
        """Erasing the fork takes its own events only, and its mark reads nothing any more."""
        scene.commit(append("t", "one", "two", scope=BEN))
        scene.commit(fork("f", scene.mark("t", at=1)), append("f", "other"))
        mark = scene.mark("f")
        assert scene.at(mark) == ["one", "other"]
        scene.erase(ANA)
        assert scene.texts("t") == ["one", "two"]
        assert scene.at(mark) == []
        assert scene.engine.strand(ACME, mark.stream) is None

    @pytest.mark.parametrize("first", [ANA, BEN])
    def test_what_was_kept_for_a_fork_goes_with_the_fork(self, scene: Scene, first: Scope) -> None:
        """When the last record that reaches an event is erased, the event goes, in whatever order they were erased."""
        scene.commit(append("t", "one", "two"))
        scene.commit(fork("f", scene.mark("t", at=1), scope=BEN), append("f", "other", scope=BEN))
        scene.commit(fork("g", scene.mark("f"), scope=BEN))
        marks = [scene.mark(id) for id in "tfg"]
        for scope in (first, BEN if first == ANA else ANA):
            scene.erase(scope)
        assert [scene.at(mark) for mark in marks] == [[], [], []]
        assert [scene.engine.strand(ACME, mark.stream) for mark in marks] == [None, None, None]

    def test_the_feed_tells_how_many_went_and_names_none(self, scene: Scene) -> None:
        """An erasure is one feed item: kinds and counts, no ids."""
        scene.commit(note("n", scope=ANA), note("m", scope=ANA), append("t", "one"))
        scene.erase(ANA)
        assert scene.engine.feed(ACME, after=1)[0].changes == (
            Change("erase", "note", "", 2),
            Change("erase", "thread", "", 1),
        )

    def test_what_was_deleted_before_goes_from_the_feed_with_its_namesake(self, scene: Scene) -> None:
        """An id may be personal whatever kind of record it named, and whether that is still there or not."""
        scene.commit(note("ana-7", scope=ANA), append("ana-7", "one"), note("ben-7", scope=BEN))
        scene.commit(Delete("note", "ana-7"))
        scene.erase(ANA)
        named = [change.id for item in scene.engine.feed(ACME) for change in item.changes if change.id]
        assert named == ["ben-7"]

    @pytest.mark.parametrize("id", ["ana", "100%_\\\n\t'", "Ä" * 200])
    def test_a_record_can_be_erased_alone(self, scene: Scene, id: str) -> None:
        """The feed says that something went, and not what; others keep their names; the id is free."""
        scene.commit(note(id), append("anabel", "x"), note("an"))
        scene.commit(append("anabel", "y"), Delete("note", id, erase=True))
        assert scene.engine.get(ACME, "note", id) is None
        changes = [change for item in scene.engine.feed(ACME) for change in item.changes]
        assert changes[0] == Change("put", "note", "", 1)
        assert changes[-1] == Change("erase", "note", "", 1)
        assert {change.id for change in changes} == {"", "anabel", "an"}
        scene.commit(note(id, expect=0))

    def test_the_feed_forgets_a_scope_whatever_it_named(self, scene: Scene) -> None:
        """Also what was deleted before, under ids of its own, loses id and scope; the actor goes if it was the user."""
        mine = Scope("ana", "travel", "trip")
        scene.engine.commit(ACME, [note("plan", scope=mine), note("b", scope=BEN)], scene.clock.now(), "ana")
        scene.engine.commit(ACME, [Delete("note", "plan")], scene.clock.now(), "ben")
        scene.engine.commit(ACME, [note("c", scope=BEN)], scene.clock.now(), "ana")
        scene.commit(append("trip", "one", scope=mine))
        scene.erase(Scope(user="ana"))
        feed = scene.engine.feed(ACME)
        assert [commit.actor for commit in feed] == [None, "ben", None, None, None]
        gone = [change for commit in feed for change in commit.changes if change.scope != BEN]
        assert {(change.id, change.scope) for change in gone} == {("", Scope())}

    def test_the_feed_forgets_also_where_nothing_is_left(self, scene: Scene) -> None:
        """Things deleted before, a user who only acted, and a user who erases himself: the feed names none of them."""
        scene.engine.commit(ACME, [note("b", scope=BEN)], scene.clock.now(), "ana")
        scene.commit(note("gone", scope=ANA))
        scene.commit(Delete("note", "gone"))
        assert scene.erase(ANA) == 0
        scene.commit(note("n", scope=ANA))
        scene.engine.erase(ACME, ANA, time=scene.clock.now(), actor="ana")
        feed = scene.engine.feed(ACME)
        assert {commit.actor for commit in feed} == {None}
        assert {change.scope.user for commit in feed for change in commit.changes} == {None, "ben"}
        assert {change.id for commit in feed for change in commit.changes} == {"", "b"}

    def test_a_part_of_a_user_is_erased_and_the_user_goes_on_acting(self, scene: Scene) -> None:
        """Only who is erased whole is forgotten as an actor."""
        scene.engine.commit(ACME, [note("a", scope=ANA)], scene.clock.now(), "ana")
        scene.engine.commit(ACME, [note("t", scope=Scope("ana", thread="t"))], scene.clock.now(), "ana")
        scene.erase(Scope(user="ana", thread="t"))
        assert [commit.actor for commit in scene.engine.feed(ACME)][:2] == ["ana", "ana"]

    def test_an_id_that_is_used_again_is_told(self, scene: Scene) -> None:
        """What comes under an erased id in the same batch is another thing."""
        scene.commit(note("x", b"1", scope=ANA))
        scene.commit(note("x", b"2", scope=ANA), Delete("note", "x", erase=True), note("x", b"3", scope=ANA))
        told = [[change.id for change in commit.changes] for commit in scene.engine.feed(ACME)]
        assert told == [[""], ["", "", "x"]]

    def test_a_thread_is_forgotten_by_its_scope(self, scene: Scene) -> None:
        """Erasing a thread takes it out of the items of its owner, and leaves the owner's others alone."""
        one, two = Scope(user="ana", thread="one"), Scope(user="ana", thread="two")
        scene.commit(note("checkpoint", scope=one))
        scene.commit(Delete("note", "checkpoint"))
        scene.commit(note("state", scope=one), note("other", scope=two))
        scene.erase(Scope(thread="one"))
        changes = [change for commit in scene.engine.feed(ACME) for change in commit.changes]
        assert {(change.id, change.scope) for change in changes} == {("", Scope()), ("other", two)}

    def test_many_records_can_be_erased_together(self, scene: Scene) -> None:
        """More than a database is asked about one by one."""
        ids = [f"n{number}" for number in range(60)]
        scene.commit(*map(note, ids), note("stays"))
        scene.commit(*(Delete("note", id, erase=True) for id in ids))
        assert {change.id for item in scene.engine.feed(ACME) for change in item.changes} == {"", "stays"}

    def test_erasing_nothing_is_no_change(self, scene: Scene) -> None:
        """A second erasure finds nothing and does not show in the feed."""
        scene.commit(note("n", scope=ANA))
        scene.erase(ANA)
        before = contents(scene.engine)
        assert scene.erase(ANA) == 0
        assert contents(scene.engine) == before

    @pytest.mark.parametrize("name", LATE)
    def test_a_buried_id_does_not_come_back(self, scene: Scene, name: str) -> None:
        """A late writer gets ``Erased``, whatever it tries, and nothing of its batch stays."""
        scene.commit(append("t", "one"), append("other", "x", scope=BEN))
        scene.erase(ANA)
        before = contents(scene.engine)
        with pytest.raises(Erased):
            scene.commit(note("n"), LATE[name](scene))
        assert contents(scene.engine) == before

    def test_deleting_what_was_erased_is_no_error(self, scene: Scene) -> None:
        """It is absent, and that is all that was asked."""
        scene.commit(note("n", scope=ANA))
        scene.erase(ANA)
        scene.commit(Delete("note", "n"))
        assert scene.ids() == []

    def test_without_bury_the_id_is_free(self, scene: Scene) -> None:
        """``bury=False`` leaves no mark: the id may be used again, from the start."""
        scene.commit(append("t", "one"))
        scene.erase(ANA, bury=False)
        scene.commit(append("t", "two"))
        assert scene.texts("t") == ["two"]
        assert scene.thread("t").version == 1

    def test_a_dry_run_tells_what_would_go_and_changes_nothing(self, scene: Scene) -> None:
        """By kind, with the users and agents who own it; the erasure itself then returns the same."""
        scene.commit(note("n", scope=Scope("ana", "travel")), append("t", "one"), append("b", "kept", scope=BEN))
        scene.commit(Put("part", "p", b"x", scope=ANA, derived=True))
        before = contents(scene.engine)
        would = scene.engine.erase(ACME, ANA, time=1, dry_run=True)
        assert would.counts == {"note": 1, "thread": 1}
        assert would.owners == {Scope("ana", "travel"), ANA}
        assert contents(scene.engine) == before
        assert scene.engine.erase(ACME, ANA, time=1) == would

    def test_ids_of_free_kinds_can_be_used_again_but_their_streams_cannot(self, scene: Scene) -> None:
        """``free`` names kinds whose ids are not the caller's own; an import brings nothing of them back."""
        scene.commit(append("t", "one"))
        archive = scene.export("t")
        scene.engine.erase(ACME, ANA, time=1, free=("thread",))
        with pytest.raises(Erased):
            scene.commit(archive)
        scene.commit(append("t", "two"))
        assert scene.texts("t") == ["two"]
        assert scene.engine.check() == []

    def test_a_single_thing_can_be_buried(self, scene: Scene) -> None:
        """Of what owns a stream that one, and its id stays free; of what owns none its id."""
        scene.commit(append("t", "one"), note("n", b"one"))
        archive = scene.export("t")
        scene.commit(Delete("thread", "t", bury=True), Delete("note", "n", bury=True))
        for late in (archive, note("n", b"again"), Adopt((Record("note", "n", 1, b"", Scope(), 1, 1),))):
            with pytest.raises(Erased):
                scene.commit(late)
        scene.commit(append("t", "two"))
        assert scene.texts("t") == ["two"]

    def test_what_is_buried_in_a_batch_counts_in_the_same_batch(self, scene: Scene) -> None:
        """Deleting and burying first, writing after it in one commit: the later one is refused, and so is all."""
        scene.commit(note("n", b"one"))
        with pytest.raises(Erased):
            scene.commit(Delete("note", "n", bury=True), note("n", b"again"))
        assert scene.ids() == ["n"]

    def test_of_a_buried_stream_a_fork_keeps_what_it_shares_and_no_more(self, scene: Scene) -> None:
        """What is still here may be named by an import; what went is refused."""
        scene.commit(append("t", "one", "two"))
        scene.commit(fork("f", scene.mark("t", at=1), scope=BEN))
        whole = scene.export("t")
        scene.erase(ANA)
        with pytest.raises(Erased):
            scene.commit(Adopt((), whole.strands))
        assert scene.texts("f") == ["one"]
        assert scene.engine.check() == []

    def test_scrubbing_changes_nothing_that_can_be_read(self, scene: Scene) -> None:
        """An engine with files of its own makes what was deleted unreadable in them, as often as it is asked."""
        if not isinstance(scene.engine, Scrubs):
            pytest.skip("capability scrub: this engine has no files")
        scene.commit(append("t", "one"), note("n", scope=BEN))
        scene.erase(ANA)
        before = contents(scene.engine)
        assert (scene.engine.scrub(), scene.engine.scrub()) == ((), ())
        assert contents(scene.engine) == before
        scene.commit(append("b", "next", scope=BEN))
        assert scene.engine.check() == []

    def test_other_ids_of_the_scope_are_not_buried(self, scene: Scene) -> None:
        """Only what was there is marked; the user may come back with new things."""
        scene.commit(note("n", scope=ANA))
        scene.erase(ANA)
        scene.commit(note("m", scope=ANA))
        assert scene.ids(user="ana") == ["m"]


class CheckPromises:
    """Promises about ``check``."""

    def test_an_empty_store_is_sound(self, scene: Scene) -> None:
        """Nothing to check is nothing wrong."""
        assert scene.engine.check() == []

    def test_sound_data_passes_whatever_was_done_to_it(self, scene: Scene) -> None:
        """Forks, rewinds, deletions, adoptions and erasures leave every digest and count in agreement."""
        scene.commit(append("t", "one", event("two", "k"), "three"), note("n", tags=("red",)))
        scene.commit(fork("f", scene.mark("t", at=2), scope=BEN), append("f", "other", scope=BEN))
        scene.commit(rewind("t", scene.mark("t", at=1)), append("t", "again"), rewind("t", scene.mark("f", at=2)))
        scene.commit(scene.export("f"), tenant=GLOBEX)
        scene.commit(fork("g", scene.mark("f", at=1), scope=BEN), Delete("note", "n"))
        scene.commit(Delete("thread", "g"))
        scene.erase(ANA)
        assert scene.engine.check() == []
        assert [r.id for r in scene.engine.scan(ACME, Query("thread"))] == ["f"]
