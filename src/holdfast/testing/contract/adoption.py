"""What ``Adopt`` promises: importing records and strands from elsewhere, number for number, as often as you like."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.engine.contract import Adopt, Delete, Put, Record, Scope, Strand
from holdfast.errors import Conflict, Erased
from holdfast.testing.contract.scene import ACME, ANA, BEN, GLOBEX, Scene, append, contents, event, fork, note, rewind


class AdoptPromises:
    """Promises about ``Adopt``. One tenant's things are given to another, which stands for another store."""

    def test_everything_is_kept_as_it_was(self, scene: Scene) -> None:
        """Records, positions, times, keys, digests, streams and lines of ancestors arrive unchanged."""
        scene.commit(append("t", event("one", "k"), "two"))
        scene.commit(
            fork("f", scene.mark("t", at=1)), append("f", "other"), Put("thread", "f", b"title", tags=("red",))
        )
        scene.commit(scene.export("f"), tenant=GLOBEX)
        assert scene.thread("f", GLOBEX) == scene.thread("f")
        assert scene.events("f", GLOBEX) == scene.events("f")
        assert scene.engine.check() == []

    def test_an_adopted_thread_goes_on(self, scene: Scene) -> None:
        """The next append continues numbers and chain, and recognises keys that came along."""
        scene.commit(append("t", event("one", "k")))
        scene.commit(scene.export("t"), tenant=GLOBEX)
        scene.commit(append("t", event("one", "k"), "two", expect=1), tenant=GLOBEX)
        assert scene.texts("t", GLOBEX) == ["one", "two"]
        assert scene.texts("t") == ["one"]
        assert scene.engine.check() == []

    def test_repeating_is_harmless(self, scene: Scene) -> None:
        """What is here and equal is left alone: no change, no feed item."""
        scene.commit(append("t", event("one", "k"), "two"))
        scene.commit(scene.export("t"), tenant=GLOBEX)
        before = contents(scene.engine, GLOBEX)
        scene.commit(scene.export("t"), tenant=GLOBEX)
        assert contents(scene.engine, GLOBEX) == before

    def test_repeating_inside_one_batch_is_harmless(self, scene: Scene) -> None:
        """Two exports that overlap may be taken in together."""
        scene.commit(append("t", event("one", "k"), "two"))
        scene.commit(scene.export("t"), scene.export("t"), tenant=GLOBEX)
        assert scene.texts("t", GLOBEX) == ["one", "two"]
        assert scene.engine.check() == []

    def test_what_is_further_along_here_is_left_alone(self, scene: Scene) -> None:
        """An older export does not take anything back."""
        scene.commit(append("t", "one"))
        older = scene.export("t")
        scene.commit(append("t", "two"), Put("thread", "t", b"title", scope=ANA))
        scene.commit(scene.export("t"), tenant=GLOBEX)
        before = contents(scene.engine, GLOBEX)
        scene.commit(older, tenant=GLOBEX)
        assert contents(scene.engine, GLOBEX) == before

    def test_what_is_further_along_there_is_caught_up(self, scene: Scene) -> None:
        """A newer export of the same thread adds what is missing."""
        scene.commit(append("t", "one"))
        scene.commit(scene.export("t"), tenant=GLOBEX)
        scene.commit(append("t", "two"), Put("thread", "t", b"title", scope=ANA))
        scene.commit(scene.export("t"), tenant=GLOBEX)
        assert scene.thread("t", GLOBEX) == scene.thread("t")
        assert scene.texts("t", GLOBEX) == ["one", "two"]

    def test_a_rewind_made_there_is_followed(self, scene: Scene) -> None:
        """As long as the rewound history holds all of ours, nothing is lost by it, nor what was changed here."""
        scene.commit(append("t", "one", "two"))
        scene.commit(scene.export("t"), tenant=GLOBEX)
        end = scene.mark("t")
        scene.commit(Put("thread", "t", b"title", scope=ANA), tenant=GLOBEX)
        scene.commit(rewind("t", scene.mark("t", at=1)), append("t", "other"))
        for _ in range(2):
            scene.commit(scene.export("t", whole=True), tenant=GLOBEX)
        assert scene.events("t", GLOBEX) == scene.events("t")
        assert scene.at(end, GLOBEX) == ["one", "two"]
        assert (scene.thread("t", GLOBEX).version, scene.thread("t", GLOBEX).body) == (2, b"title")
        assert scene.engine.check() == []

    def test_a_rewind_made_here_is_kept(self, scene: Scene) -> None:
        """An export from before it is behind: its history is all here. A newer body it brings is taken."""
        scene.commit(append("t", "one", "two"))
        scene.commit(scene.export("t"), tenant=GLOBEX)
        scene.commit(Put("thread", "t", b"title", scope=ANA))
        older = scene.export("t")
        scene.commit(rewind("t", scene.mark("t", at=1)), tenant=GLOBEX)
        for _ in range(2):
            scene.commit(older, tenant=GLOBEX)
        assert scene.texts("t", GLOBEX) == ["one"]
        assert (scene.thread("t", GLOBEX).version, scene.thread("t", GLOBEX).body) == (2, b"title")
        assert scene.engine.check() == []

    @pytest.mark.parametrize("there", ["rewound without the end", "begun separately"])
    def test_histories_of_which_neither_holds_the_other_are_a_conflict(self, scene: Scene, there: str) -> None:
        """A record that continues in another stream here was begun or rewound separately."""
        scene.commit(append("t", "one", "two"))
        if there == "begun separately":
            scene.commit(append("t", "one", "two"), tenant=GLOBEX)
        else:
            scene.commit(scene.export("t"), tenant=GLOBEX)
            scene.commit(rewind("t", scene.mark("t", at=1)))
        before = contents(scene.engine, GLOBEX)
        with pytest.raises(Conflict):
            scene.commit(scene.export("t"), tenant=GLOBEX)
        assert contents(scene.engine, GLOBEX) == before

    def test_other_events_at_the_same_positions_are_a_conflict(self, scene: Scene) -> None:
        """Two histories that went apart are not mixed, and nothing of the offered one stays."""
        scene.commit(append("t", "one"))
        scene.commit(scene.export("t"), tenant=GLOBEX)
        scene.commit(append("t", "two"))
        scene.commit(append("t", "zwei"), tenant=GLOBEX)
        before = contents(scene.engine, GLOBEX)
        with pytest.raises(Conflict):
            scene.commit(note("n"), scene.export("t"), tenant=GLOBEX)
        assert contents(scene.engine, GLOBEX) == before

    def test_another_body_at_the_same_version_is_a_conflict(self, scene: Scene) -> None:
        """A record is different when its version says it should be equal."""
        scene.commit(note("n", b"here"), tenant=GLOBEX)
        scene.commit(note("n", b"there"))
        with pytest.raises(Conflict):
            scene.commit(Adopt((scene.note("n"),)), tenant=GLOBEX)

    def test_a_record_without_a_stream_is_taken_in(self, scene: Scene) -> None:
        """Version and both times are kept; an older version later changes nothing, a newer one does."""
        given = Record("note", "n", 5, b"body", Scope(user="ana"), 10, 20, None, ("red",))
        scene.commit(Adopt((given,)))
        assert scene.note("n") == given
        assert scene.ids(tag="red", user="ana") == ["n"]
        scene.commit(Adopt((msgspec.structs.replace(given, version=4, body=b"older"),)))
        assert scene.note("n") == given
        newer = msgspec.structs.replace(given, version=6, body=b"newer", tags=())
        scene.commit(Adopt((newer,)))
        assert scene.note("n") == newer
        assert scene.ids(tag="red") == []

    @pytest.mark.parametrize("change", [{"body": b"forged"}, {"position": 7}, {"time": 0}, {"digest": bytes(32)}])
    def test_events_that_do_not_continue_the_chain_are_a_conflict(
        self, scene: Scene, change: dict[str, object]
    ) -> None:
        """Nothing is taken in that ``check`` would complain about."""
        scene.commit(append("t", "one", "two"))
        export = scene.export("t")
        (strand,) = export.strands
        events = (strand.events[0], msgspec.structs.replace(strand.events[1], **change))
        forged = Adopt(export.records, (msgspec.structs.replace(strand, events=events),))
        with pytest.raises(Conflict):
            scene.commit(forged, tenant=GLOBEX)
        assert scene.engine.get(GLOBEX, "thread", "t") is None

    def test_a_strand_that_begins_elsewhere_is_a_conflict(self, scene: Scene) -> None:
        """The same stream number with another parent, base or digest is another history."""
        scene.commit(append("t", "one"))
        stream = scene.mark("t").stream
        with pytest.raises(Conflict):
            scene.commit(Adopt(strands=(Strand(stream, "thread", "t", 1, 1, b"x" * 32),)))

    @pytest.mark.parametrize("way", ["delete", "erase without burying"])
    def test_what_was_removed_may_be_taken_in_again(self, scene: Scene, way: str) -> None:
        """A thread that was deleted comes back from its export whole, under the stream number it had before."""
        scene.commit(append("t", event("one", "k"), "two"))
        scene.commit(fork("f", scene.mark("t", at=1)), append("f", "other"))
        exports, before = [scene.export("t"), scene.export("f")], [scene.events("t"), scene.events("f")]
        if way == "delete":
            scene.commit(Delete("thread", "f"), Delete("thread", "t"))
        else:
            scene.erase(ANA, bury=False)
        scene.commit(*exports)
        assert [scene.events("t"), scene.events("f")] == before
        scene.commit(append("f", event("one", "k"), "more"))
        assert scene.texts("f") == ["one", "other", "more"]
        assert scene.engine.check() == []

    def test_what_was_kept_for_a_fork_gets_its_owner_back(self, scene: Scene) -> None:
        """Events that a fork kept after its parent was removed are the parent's again, and the rest comes back."""
        scene.commit(append("t", event("one", "k"), event("two", "l"), "three"))
        scene.commit(fork("f", scene.mark("t", at=2), scope=BEN))
        export, before = scene.export("t"), scene.events("t")
        scene.erase(ANA, bury=False)
        scene.commit(export)
        strand = scene.engine.strand(ACME, scene.mark("t").stream)
        assert strand is not None
        assert (strand.kind, strand.id) == ("thread", "t")
        assert scene.events("t") == before
        assert scene.texts("f") == ["one", "two"]
        assert scene.engine.check() == []

    def test_a_record_that_comes_back_goes_on_where_its_stream_is(self, scene: Scene) -> None:
        """An older export of a thread whose later events a fork kept is caught up: no number is given twice."""
        scene.commit(append("t", event("one", "k")))
        older = scene.export("t")
        scene.commit(append("t", event("two", "l")))
        scene.commit(fork("f", scene.mark("t"), scope=BEN))
        scene.erase(ANA, bury=False)
        scene.commit(older, append("t", event("two", "l")))
        scene.commit(append("t", event("two", "l"), "three"))
        assert scene.texts("t") == ["one", "two", "three"]
        assert scene.texts("f") == ["one", "two"]
        assert scene.engine.check() == []

    @pytest.mark.parametrize("missing", ["all strands", "the last event"])
    def test_a_record_without_its_whole_history_is_a_conflict(self, scene: Scene, missing: str) -> None:
        """A head that no event stands for would be a gap."""
        scene.commit(append("t", "one", "two"))
        export = scene.export("t")
        (strand,) = export.strands
        short = msgspec.structs.replace(strand, events=strand.events[:1])
        with pytest.raises(Conflict):
            scene.commit(Adopt(export.records, () if missing == "all strands" else (short,)), tenant=GLOBEX)
        assert scene.engine.get(GLOBEX, "thread", "t") is None

    def test_keys_are_recognised_in_the_batch_that_takes_them_in(self, scene: Scene) -> None:
        """An append right after the adoption repeats by key what came along, and what a fork had kept."""
        scene.commit(append("t", event("one", "k"), event("two", "l")))
        scene.commit(fork("f", scene.mark("t", at=1), scope=BEN))
        export = scene.export("t")
        scene.commit(export, append("t", event("one", "k"), event("two", "l"), "three"), tenant=GLOBEX)
        assert scene.texts("t", GLOBEX) == ["one", "two", "three"]
        scene.erase(ANA, bury=False)
        scene.commit(export, append("t", event("one", "k"), event("two", "l"), "three"))
        assert scene.texts("t") == ["one", "two", "three"]
        assert scene.engine.check() == []

    def test_what_was_erased_is_not_taken_in_again(self, scene: Scene) -> None:
        """Deleted stays deleted, also when an old export comes back."""
        scene.commit(append("t", "one"))
        export = scene.export("t")
        scene.erase(ANA)
        before = contents(scene.engine)
        with pytest.raises(Erased):
            scene.commit(export)
        assert contents(scene.engine) == before
        assert scene.engine.strand(ACME, export.strands[0].stream) is None
