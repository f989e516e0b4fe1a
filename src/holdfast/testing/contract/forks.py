"""What ``Fork`` promises: sharing without copying, walls between branches, and rewinding without loss."""

from __future__ import annotations

import pytest

from holdfast.engine import chain
from holdfast.engine.contract import GENESIS, Delete, Fork, Mark, Put
from holdfast.errors import Conflict, KeyReused, NotFound
from holdfast.testing.contract.scene import ACME, ANA, GLOBEX, Scene, append, event, fork, rewind, texts


class ForkPromises:
    """Promises about ``Fork`` with ``new``."""

    def test_a_fork_shares_everything_up_to_its_mark(self, scene: Scene) -> None:
        """The shared events read as the fork's own: same positions, same digests, and the head is the mark's."""
        scene.commit(append("t", "one", "two", "three"))
        scene.commit(fork("f", scene.mark("t", at=2)))
        assert scene.events("f") == scene.events("t")[:2]
        record = scene.thread("f")
        assert (record.base, record.head, record.digest) == (2, 2, scene.events("t")[1].digest)

    def test_a_fork_copies_no_events(self, scene: Scene) -> None:
        """O(1) in storage: the new strand names its parent and where it left it."""
        scene.commit(append("t", *"12345"))
        scene.commit(fork("f", scene.mark("t")))
        strand = scene.engine.strand(ACME, scene.mark("f").stream)
        assert strand is not None
        assert (strand.parent, strand.base, strand.id) == (scene.mark("t").stream, 5, "f")

    def test_what_a_fork_adds_its_parent_does_not_see(self, scene: Scene) -> None:
        """Isolation from child to parent; the fork goes on counting where it left."""
        scene.commit(append("t", "one", "two"))
        scene.commit(fork("f", scene.mark("t", at=1)))
        scene.commit(append("f", "second", expect=1))
        assert scene.texts("t") == ["one", "two"]
        assert scene.texts("f") == ["one", "second"]
        assert list(chain.breaks(scene.events("f"), 0, GENESIS)) == []

    def test_what_a_parent_adds_its_fork_does_not_see(self, scene: Scene) -> None:
        """Isolation from parent to child, also for what the parent adds right after the fork point."""
        scene.commit(append("t", "one"))
        scene.commit(fork("f", scene.mark("t")))
        scene.commit(append("t", "two"))
        assert scene.texts("f") == ["one"]
        assert scene.texts("t") == ["one", "two"]

    def test_a_fork_of_a_fork_reads_through_both(self, scene: Scene) -> None:
        """Lines of any depth read as one stream."""
        scene.commit(append("t", "1", "2"))
        scene.commit(fork("f", scene.mark("t", at=1)), append("f", "b", "c"))
        scene.commit(fork("g", scene.mark("f", at=2)), append("g", "x"))
        scene.commit(append("f", "d"), append("t", "3"))
        assert (scene.texts("t"), scene.texts("f")) == (["1", "2", "3"], ["1", "b", "c", "d"])
        assert scene.texts("g") == ["1", "b", "x"]
        assert [e.position for e in scene.events("g")] == [1, 2, 3]

    def test_a_fork_inside_the_shared_part_hangs_on_the_stream_that_holds_it(self, scene: Scene) -> None:
        """Forks of forks do not pile up: the parent is the strand where the position really is."""
        scene.commit(append("t", "one", "two"))
        scene.commit(fork("f", scene.mark("t")))
        scene.commit(fork("g", scene.mark("f", at=1)))
        strand = scene.engine.strand(ACME, scene.mark("g").stream)
        assert strand is not None
        assert strand.parent == scene.mark("t").stream
        assert scene.texts("g") == ["one"]

    def test_a_fork_at_zero_shares_nothing(self, scene: Scene) -> None:
        """Position 0 of a stream that is here begins an empty one."""
        scene.commit(append("t", "one"))
        scene.commit(fork("f", scene.mark("t", at=0)))
        scene.commit(append("f", "other", expect=0))
        assert scene.texts("f") == ["other"]

    def test_new_gives_the_forks_body_scope_and_tags(self, scene: Scene) -> None:
        """The new record is its own: version 1, made now, with what ``new`` says."""
        scene.commit(append("t", "one"))
        new = Put("thread", "f", b"title", scope=ANA, tags=("red",), expires=2**62)
        receipt = scene.commit(Fork("thread", "f", scene.mark("t"), new=new))
        record = scene.thread("f")
        assert (record.body, record.scope, record.tags, record.expires) == (b"title", ANA, ("red",), 2**62)
        assert (record.version, record.created, record.time) == (1, receipt.time, receipt.time)

    def test_with_new_the_record_must_not_exist(self, scene: Scene) -> None:
        """A fork never takes over a thread that is there, not even an empty one."""
        scene.commit(append("t", "one"), append("f"))
        with pytest.raises(Conflict):
            scene.commit(fork("f", scene.mark("t")))
        assert scene.texts("f") == []

    @pytest.mark.parametrize("position", [2, 99, -1])
    def test_a_position_the_stream_does_not_have_is_not_found(self, scene: Scene, position: int) -> None:
        """A fork continues from a point that exists, or not at all."""
        scene.commit(append("t", "one"))
        with pytest.raises(NotFound):
            scene.commit(fork("f", scene.mark("t", at=position)))

    @pytest.mark.parametrize("position", [0, 1])
    def test_an_unknown_stream_is_not_found(self, scene: Scene, position: int) -> None:
        """Position 0 is not an exception."""
        with pytest.raises(NotFound):
            scene.commit(fork("f", Mark(12345, position)))

    def test_another_tenants_stream_is_not_found(self, scene: Scene) -> None:
        """A mark is worth nothing outside its tenant."""
        scene.commit(append("t", "one"))
        with pytest.raises(NotFound):
            scene.commit(fork("f", scene.mark("t")), tenant=GLOBEX)

    def test_forks_keep_what_they_share_when_their_parent_is_deleted(self, scene: Scene) -> None:
        """Shared events live as long as someone reaches them; what only the parent reached is gone."""
        scene.commit(append("t", "one", "two"))
        whole = scene.mark("t")
        scene.commit(fork("f", scene.mark("t", at=1)))
        scene.commit(Delete("thread", "t"))
        scene.commit(append("f", "other"))
        assert scene.texts("f") == ["one", "other"]
        assert scene.at(whole) == ["one"]
        assert scene.engine.check() == []

    @pytest.mark.parametrize("order", ["parent first", "fork first", "together"])
    def test_what_no_one_reaches_any_more_is_gone(self, scene: Scene, order: str) -> None:
        """After the last record that shares events is deleted, no mark reads them, whichever went first."""
        scene.commit(append("t", "one", "two"))
        scene.commit(fork("f", scene.mark("t", at=1)), append("f", "other"))
        marks = [scene.mark("t"), scene.mark("f")]
        names = ["t", "f"] if order != "fork first" else ["f", "t"]
        deletes = [Delete("thread", name) for name in names]
        for batch in [deletes] if order == "together" else [[delete] for delete in deletes]:
            scene.commit(*batch)
        assert [scene.at(mark) for mark in marks] == [[], []]
        assert [scene.engine.strand(ACME, mark.stream) for mark in marks] == [None, None]


class ForkKeyPromises:
    """Promises about keys in forks."""

    def test_a_fork_recognises_keys_it_shares(self, scene: Scene) -> None:
        """A retry on the fork of what its parent stored before the fork point is a repetition."""
        scene.commit(append("t", event("one", "k"), "two"))
        scene.commit(fork("f", scene.mark("t")))
        again = scene.commit(append("f", event("one", "k")))
        assert [e.position for e in again.events[0]] == [1]
        assert texts(scene.engine.read(ACME, scene.mark("f"), key="k")) == ["one"]
        with pytest.raises(KeyReused):
            scene.commit(append("f", event("other", "k")))

    def test_a_fork_does_not_see_keys_beyond_the_fork_point(self, scene: Scene) -> None:
        """What its parent said later is not the fork's, so the same key may say something else there."""
        scene.commit(append("t", "one", event("two", "k")))
        scene.commit(fork("f", scene.mark("t", at=1)))
        assert scene.engine.read(ACME, scene.mark("f"), key="k") == []
        scene.commit(append("f", event("other", "k")))
        assert (scene.texts("t"), scene.texts("f")) == (["one", "two"], ["one", "other"])

    def test_a_parent_does_not_see_its_forks_keys(self, scene: Scene) -> None:
        """Keys do not climb."""
        scene.commit(append("t", "one"))
        scene.commit(fork("f", scene.mark("t")), append("f", event("fork's", "k")))
        scene.commit(append("t", event("parent's", "k")))
        assert scene.texts("t") == ["one", "parent's"]

    def test_a_batch_that_forks_and_appends_recognises_shared_keys(self, scene: Scene) -> None:
        """The fork being made in the same batch makes no difference to what is a repetition."""
        scene.commit(append("t", event("one", "k"), event("two", "late")))
        receipt = scene.commit(fork("f", scene.mark("t", at=1)), append("f", event("one", "k"), event("other", "late")))
        assert [e.position for e in receipt.events[0]] == [1, 2]
        assert scene.texts("f") == ["one", "other"]

    def test_a_batch_that_rewinds_twice_and_appends_recognises_shared_keys(self, scene: Scene) -> None:
        """Nor does a line of several streams that are all made in the same batch."""
        scene.commit(append("t", event("one", "k"), "two", "three"))
        scene.commit(
            append("t", event("four", "l")),
            rewind("t", scene.mark("t", at=2)),
            append("t", event("three", "m"), event("one", "k")),
            append("t", event("one", "k"), event("three", "m"), event("four", "l")),
        )
        assert scene.texts("t") == ["one", "two", "three", "four"]


class RewindPromises:
    """Promises about ``Fork`` without ``new``."""

    def test_a_rewound_record_continues_from_the_mark(self, scene: Scene) -> None:
        """The same record, at an earlier head: its body, version and scope stay, its time is the commit's."""
        scene.commit(append("t", "one", "two", "three"))
        before = scene.thread("t")
        receipt = scene.commit(rewind("t", scene.mark("t", at=1)))
        record = scene.thread("t")
        assert scene.texts("t") == ["one"]
        assert (record.version, record.scope, record.created) == (before.version, before.scope, before.created)
        assert record.time == receipt.time
        scene.commit(append("t", "other", expect=1))
        assert scene.texts("t") == ["one", "other"]

    def test_what_was_rewound_is_still_reached_by_its_mark(self, scene: Scene) -> None:
        """Rewinding loses nothing: the old end can be read, forked and returned to."""
        scene.commit(append("t", "one", "two", "three"))
        end = scene.mark("t")
        scene.commit(rewind("t", scene.mark("t", at=1)), append("t", "other"))
        assert scene.at(end) == ["one", "two", "three"]
        scene.commit(fork("f", end))
        assert scene.texts("f") == ["one", "two", "three"]
        scene.commit(rewind("t", end))
        assert scene.texts("t") == ["one", "two", "three"]

    def test_keys_that_were_rewound_are_free_again(self, scene: Scene) -> None:
        """What is not in the line any more cannot be repeated."""
        scene.commit(append("t", "one", event("two", "k")))
        scene.commit(rewind("t", scene.mark("t", at=1)))
        scene.commit(append("t", event("other", "k")))
        assert scene.texts("t") == ["one", "other"]

    def test_a_record_may_continue_from_another_records_mark(self, scene: Scene) -> None:
        """The source may be any stream of the tenant."""
        scene.commit(append("t", "one"), append("u", "1", "2"))
        scene.commit(rewind("t", scene.mark("u", at=1)))
        assert scene.texts("t") == ["1"]
        assert scene.texts("u") == ["1", "2"]

    def test_without_new_an_absent_record_is_not_found(self, scene: Scene) -> None:
        """There is nothing to rewind."""
        scene.commit(append("t", "one"))
        with pytest.raises(NotFound):
            scene.commit(rewind("absent", scene.mark("t")))

    def test_a_rewind_minds_the_expected_head(self, scene: Scene) -> None:
        """A rewind of something that has moved on meanwhile is a conflict; at the expected head it happens."""
        scene.commit(append("t", "one", "two"))
        with pytest.raises(Conflict):
            scene.commit(rewind("t", scene.mark("t", at=1), expect=1))
        scene.commit(rewind("t", scene.mark("t", at=1), expect=2))
        assert scene.texts("t") == ["one"]

    def test_deleting_a_rewound_record_gives_up_all_its_streams(self, scene: Scene) -> None:
        """Nothing a deleted record ever added stays behind, where no scope would find it again."""
        scene.commit(append("t", "one", "two", "three"))
        marks = [scene.mark("t")]
        scene.commit(rewind("t", scene.mark("t", at=2)), append("t", "other"))
        marks.append(scene.mark("t"))
        scene.commit(rewind("t", scene.mark("t", at=1)))
        marks.append(scene.mark("t"))
        scene.commit(Delete("thread", "t"))
        assert [scene.at(mark) for mark in marks] == [[], [], []]
        assert scene.engine.check() == []
