"""What ``Append`` and ``read`` promise of streams."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine import chain
from holdfast.engine.contract import GENESIS, Append, Event, Mark, Put, Scope
from holdfast.errors import Conflict, Invalid, KeyReused, NotFound
from holdfast.testing.contract.scene import (
    ACME,
    ANA,
    BEN,
    GLOBEX,
    Scene,
    append,
    contents,
    event,
    fork,
    note,
    rewind,
    texts,
)


class AppendPromises:
    """Promises about ``Append``."""

    def test_events_are_numbered_from_one_without_gaps(self, scene: Scene) -> None:
        """Positions are 1, 2, 3 … over any number of commits, and the record's head is the last."""
        scene.commit(append("t", "one", "two"))
        scene.commit(append("t", "three"), append("u", "x"), append("t", "four"))
        assert [e.position for e in scene.events("t")] == [1, 2, 3, 4]
        assert scene.texts("t") == ["one", "two", "three", "four"]
        assert scene.thread("t").head == 4

    def test_a_failed_append_leaves_no_gap(self, scene: Scene) -> None:
        """A number is given out only with the commit that keeps it."""
        scene.commit(append("t", "one"))
        with pytest.raises(Conflict):
            scene.commit(append("t", "two"), append("t", "three", expect=9))
        scene.commit(append("t", "two"))
        assert [e.position for e in scene.events("t")] == [1, 2]

    def test_events_are_chained_by_digest(self, scene: Scene) -> None:
        """Each digest covers the one before it; the record's digest is that of its head."""
        scene.commit(append("t", event("one", "k")), append("t", "two"))
        scene.commit(append("t", "three"))
        events = scene.events("t")
        assert list(chain.breaks(events, 0, GENESIS)) == []
        assert scene.thread("t").digest == events[-1].digest
        assert len({e.digest for e in events}) == 3

    def test_position_and_digest_are_given_by_the_engine(self, scene: Scene) -> None:
        """What a caller writes there is not looked at; kind, body, time and key are kept as given."""
        offered = Event("call", b"\x00\xff", -5, "k", position=77, digest=b"mine")
        scene.commit(append("t", offered))
        (stored,) = scene.events("t")
        assert (stored.kind, stored.body, stored.time, stored.key) == ("call", b"\x00\xff", -5, "k")
        assert stored.position == 1
        assert stored.digest != b"mine"

    def test_appending_makes_the_records_time_the_commits(self, scene: Scene) -> None:
        """The record's time moves; its version, body and day of creation do not."""
        first = scene.commit(append("t", "one"))
        second = scene.commit(append("t", "two"))
        record = scene.thread("t")
        assert (record.created, record.time, record.version) == (first.time, second.time, 1)

    def test_times_in_a_stream_never_fall(self, scene: Scene) -> None:
        """A commit whose clock is behind the record's is given a later time, and so are events that carry its time."""
        first = scene.engine.commit(ACME, [append("t", event("one", time=1_000))], 1_000)
        second = scene.engine.commit(ACME, [append("t", event("two", time=500))], 500)
        third = scene.engine.commit(ACME, [append("t", event("three", time=7))], 500)
        assert first.time == 1_000 < second.time < third.time == scene.thread("t").time
        assert [e.time for e in scene.events("t")] == [1_000, second.time, 7]
        assert second.events[0][0].time == second.time

    def test_no_events_only_touch_the_record(self, scene: Scene) -> None:
        """With no events the time moves and nothing else; the receipt holds an empty tuple and the head."""
        scene.commit(append("t", "one"))
        receipt = scene.commit(append("t"))
        assert scene.thread("t").time == receipt.time
        assert scene.texts("t") == ["one"]
        assert (receipt.events, receipt.heads) == (((),), (1,))

    def test_a_touch_minds_its_expectation(self, scene: Scene) -> None:
        """A touch is not a repetition, so ``expect`` is looked at."""
        scene.commit(append("t", "one"))
        with pytest.raises(Conflict):
            scene.commit(append("t", expect=0))

    def test_new_makes_the_record_when_there_is_none(self, scene: Scene) -> None:
        """``new`` gives body, scope, tags and expiry of the record that the first append makes."""
        new = Put("thread", "t", b"title", scope=ANA, tags=("red",), expires=2**62)
        scene.commit(append("t", "one", new=new))
        record = scene.thread("t")
        assert (record.body, record.scope, record.tags, record.expires) == (b"title", ANA, ("red",), 2**62)
        assert (record.version, record.head) == (1, 1)

    def test_new_is_not_looked_at_when_the_record_is_there(self, scene: Scene) -> None:
        """``new`` never overwrites."""
        scene.commit(append("t", "one", new=Put("thread", "t", b"title")))
        scene.commit(append("t", "two", new=Put("thread", "t", b"other")))
        assert (scene.thread("t").body, scene.thread("t").version) == (b"title", 1)

    @pytest.mark.parametrize("scope", [BEN, Scope(agent="other"), Scope(user="ana", thread="other")])
    def test_new_that_names_another_owner_is_refused(self, scene: Scene, scope: Scope) -> None:
        """Who names a user, agent or thread does not write into a record of the same name that is another's."""
        own = Scope(user="ana", agent="travel", thread="trip")
        scene.commit(append("t", "one", scope=own))
        with pytest.raises(Invalid):
            scene.commit(append("t", "two", scope=scope))
        assert scene.texts("t") == ["one"]

    def test_new_that_leaves_the_owner_open_is_not_refused(self, scene: Scene) -> None:
        """What ``new`` does not name, it does not ask for, and the record's scope stays."""
        own = Scope(user="ana", agent="travel", thread="trip")
        scene.commit(append("t", "one", scope=own))
        scene.commit(append("t", "two", scope=Scope(agent="travel")), append("t", "three", scope=Scope()))
        assert scene.texts("t") == ["one", "two", "three"]
        assert scene.thread("t").scope == own

    def test_without_new_an_absent_record_is_not_found(self, scene: Scene) -> None:
        """An append does not invent what it was not told to make, and nothing is left behind."""
        with pytest.raises(NotFound):
            scene.commit(append("t", "one", new=None))
        assert scene.engine.get(ACME, "thread", "t") is None

    def test_a_record_without_a_stream_gets_one(self, scene: Scene) -> None:
        """Any record may begin to own a stream."""
        scene.commit(note("a", b"body", tags=("red",)))
        scene.commit(Append("note", "a", (event("one"),)))
        record = scene.note("a")
        assert (record.body, record.head, record.tags) == (b"body", 1, ("red",))
        assert texts(scene.engine.read(ACME, record.mark)) == ["one"]

    @pytest.mark.parametrize("expect", [0, 1, 3])
    def test_a_head_that_is_not_the_expected_one_is_a_conflict(self, scene: Scene, expect: int) -> None:
        """At head 2 only 2 is met; the error says where the stream is."""
        scene.commit(append("t", "one", "two"))
        with pytest.raises(Conflict) as caught:
            scene.commit(append("t", "three", expect=expect))
        assert (caught.value.expected, caught.value.actual) == (expect, 2)
        assert scene.texts("t") == ["one", "two"]

    def test_an_expected_head_is_met(self, scene: Scene) -> None:
        """0 is the head of a stream that is yet to begin."""
        scene.commit(append("t", "one", expect=0))
        scene.commit(append("t", "two", expect=1))
        assert scene.texts("t") == ["one", "two"]

    def test_tenants_do_not_share_streams_or_keys(self, scene: Scene) -> None:
        """The same thread and key in two tenants are two of each; a mark of one reads nothing in the other."""
        scene.commit(append("t", event("acme", "k")))
        scene.commit(append("t", event("globex", "k")), tenant=GLOBEX)
        assert (scene.texts("t"), scene.texts("t", GLOBEX)) == (["acme"], ["globex"])
        assert scene.at(scene.mark("t"), GLOBEX) == []
        assert scene.engine.strand(GLOBEX, scene.mark("t").stream) is None


class KeyPromises:
    """Promises about repeating an ``Append`` by key."""

    def test_a_repeated_key_is_not_added_again(self, scene: Scene) -> None:
        """The stored event is returned, with the position, time and digest it was given the first time."""
        first = scene.commit(append("t", event("one", "k")))
        scene.commit(append("t", "two"))
        again = scene.commit(append("t", event("one", "k", time=99)))
        assert again.events == first.events
        assert scene.texts("t") == ["one", "two"]

    def test_a_pure_repetition_changes_nothing(self, scene: Scene) -> None:
        """Neither the record's time nor the feed moves; the receipt names the head and the last feed item."""
        scene.commit(append("t", event("one", "k")))
        last = scene.commit(append("t", "two"))
        before = contents(scene.engine)
        again = scene.commit(append("t", event("one", "k")))
        assert contents(scene.engine) == before
        assert (again.feed, again.heads) == (last.feed, (2,))

    def test_a_pure_repetition_does_not_look_at_its_expectation(self, scene: Scene) -> None:
        """The first attempt already met it, so a retry after others wrote is not a conflict."""
        attempt = append("t", event("one", "k1"), event("two", "k2"), expect=0)
        first = scene.commit(attempt)
        scene.commit(append("t", "three"))
        assert scene.commit(attempt).events == first.events

    def test_a_partial_repetition_looks_at_its_expectation(self, scene: Scene) -> None:
        """As soon as one event is new, the head must be the expected one."""
        scene.commit(append("t", event("one", "k1")))
        with pytest.raises(Conflict):
            scene.commit(append("t", event("one", "k1"), event("two", "k2"), expect=0))
        scene.commit(append("t", event("one", "k1"), event("two", "k2"), expect=1))
        assert scene.texts("t") == ["one", "two"]

    @pytest.mark.parametrize("other", [event("other", "k"), event("one", "k", kind="note")])
    def test_other_content_under_the_same_key_is_refused(self, scene: Scene, other: Event) -> None:
        """By default the same content is the same kind and bytes; anything else is ``KeyReused``."""
        scene.commit(append("t", event("one", "k")))
        with pytest.raises(KeyReused) as caught:
            scene.commit(append("t", other))
        assert (caught.value.key, caught.value.position) == ("k", 1)
        assert scene.texts("t") == ["one"]

    def test_same_decides_what_is_a_repetition(self, scene: Scene) -> None:
        """The caller's ``same`` sees the stored and the offered event, in that order, and has the last word."""
        seen: list[tuple[bytes, bytes]] = []

        def same(stored: Event, offered: Event) -> bool:
            seen.append((stored.body, offered.body))
            return stored.body.lower() == offered.body.lower()

        scene.commit(append("t", event("one", "k")))
        scene.commit(append("t", event("ONE", "k"), same=same))
        assert scene.texts("t") == ["one"]
        with pytest.raises(KeyReused):
            scene.commit(append("t", event("two", "k"), same=same))
        assert seen == [(b"one", b"ONE"), (b"one", b"two")]

    def test_a_key_repeated_inside_one_batch_is_added_once(self, scene: Scene) -> None:
        """Repetition is recognised within an Append and between the Appends of a batch."""
        receipt = scene.commit(append("t", event("one", "k"), event("one", "k")), append("t", event("one", "k"), "two"))
        assert [[e.position for e in events] for events in receipt.events] == [[1, 1], [1, 2]]
        assert scene.texts("t") == ["one", "two"]
        with pytest.raises(KeyReused):
            scene.commit(append("u", event("one", "k"), event("other", "k")))

    def test_events_without_a_key_are_never_repetitions(self, scene: Scene) -> None:
        """Saying the same thing twice is saying it twice."""
        scene.commit(append("t", "one", "one"))
        assert scene.texts("t") == ["one", "one"]

    def test_keys_belong_to_one_stream(self, scene: Scene) -> None:
        """The same key in another thread names another event."""
        scene.commit(append("t", event("one", "k")))
        scene.commit(append("u", event("two", "k")))
        assert scene.texts("u") == ["two"]


class ReadPromises:
    """Promises about ``read``."""

    @pytest.mark.parametrize(
        ("window", "positions"),
        [
            ({}, [1, 2, 3, 4, 5]),
            ({"after": 3}, [4, 5]),
            ({"after": 5}, []),
            ({"after": 99}, []),
            ({"limit": 2}, [1, 2]),
            ({"limit": 0}, []),
            ({"limit": 99}, [1, 2, 3, 4, 5]),
            ({"after": 1, "limit": 2}, [2, 3]),
            ({"limit": 2, "newest": True}, [4, 5]),
            ({"limit": 0, "newest": True}, []),
            ({"limit": 99, "newest": True}, [1, 2, 3, 4, 5]),
            ({"newest": True}, [1, 2, 3, 4, 5]),
            ({"after": 4, "limit": 3, "newest": True}, [5]),
        ],
    )
    @pytest.mark.parametrize("shape", ["one stream", "a fork of a fork"])
    def test_a_window_is_ascending_and_cut_at_the_right_end(
        self, scene: Scene, window: dict[str, Any], positions: list[int], shape: str
    ) -> None:
        """``limit`` keeps the first ones, ``newest`` the last ones; shared events read as the stream's own."""
        if shape == "one stream":
            scene.commit(append("t", *"12345"))
        else:
            _fork_of_a_fork(scene)
        found = scene.engine.read(ACME, scene.mark("t"), **window)
        assert [e.position for e in found] == positions
        assert texts(found) == [str(position) for position in positions]

    def test_a_mark_ends_the_reading(self, scene: Scene) -> None:
        """Events over the mark's position are not read, whatever came later; position 0 reads nothing."""
        scene.commit(append("t", *"12345"))
        assert scene.at(scene.mark("t", at=3)) == ["1", "2", "3"]
        assert scene.at(scene.mark("t", at=0)) == []
        assert texts(scene.engine.read(ACME, scene.mark("t", at=3), limit=1, newest=True)) == ["3"]

    def test_a_mark_never_moves(self, scene: Scene) -> None:
        """What a mark shows is the same after appends, rewinds and forks."""
        scene.commit(append("t", "one", "two"))
        mark = scene.mark("t")
        _fork_of_a_fork(scene, "t", mark)
        assert scene.at(mark) == ["one", "two"]

    def test_a_key_reads_the_one_event_that_carries_it(self, scene: Scene) -> None:
        """``key`` keeps one event or none, and minds the mark and ``after``."""
        scene.commit(append("t", "one", event("two", "k"), "three"))
        mark = scene.mark("t")
        assert texts(scene.engine.read(ACME, mark, key="k")) == ["two"]
        assert scene.engine.read(ACME, mark, key="unknown") == []
        assert scene.engine.read(ACME, Mark(mark.stream, 1), key="k") == []
        assert scene.engine.read(ACME, mark, key="k", after=2) == []

    def test_a_stream_that_is_not_here_has_no_events(self, scene: Scene) -> None:
        """Reading an unknown stream is not an error, and shows nothing."""
        assert scene.at(Mark(12345, 9)) == []
        assert scene.engine.strand(ACME, 12345) is None

    def test_a_strand_tells_whose_a_stream_is_and_what_it_shares(self, scene: Scene) -> None:
        """``strand`` returns owner, parent, base and the digest it begins with, without events."""
        _fork_of_a_fork(scene)
        record = scene.thread("t")
        assert record.stream is not None
        strand = scene.engine.strand(ACME, record.stream)
        assert strand is not None
        assert (strand.kind, strand.id, strand.base, strand.events) == ("thread", "t", record.base, ())
        assert strand.digest == scene.events("t")[record.base - 1].digest
        assert strand.parent == scene.mark("middle").stream

    def test_any_bytes_come_back_exactly(self, scene: Scene) -> None:
        """Bodies are bytes: empty, with NUL, not UTF-8, and large ones come back as they went."""
        bodies = [b"", b"\x00", b"\xff\xfe", bytes(range(256)) * 4_000]
        scene.commit(append("t", *(Event("raw", body, 0) for body in bodies)))
        assert [e.body for e in scene.events("t")] == bodies

    def test_a_read_sees_every_commit_acknowledged_before_it(self, scene: Scene) -> None:
        """Read your writes: after each commit the next read shows it, in the record, the stream and the scan."""
        for number in range(1, 11):
            scene.commit(append("t", str(number)), note("n"))
            assert scene.thread("t").head == len(scene.events("t")) == scene.note("n").version == number


def _fork_of_a_fork(scene: Scene, name: str = "t", root: Mark | None = None) -> None:
    """Make a thread whose events 1 and 2, 3 and 4, and 5 lie in three streams."""
    if root is None:
        scene.commit(append("first", "1", "2", "not shared"))
        root = scene.mark("first", at=2)
    scene.commit(fork("middle", root))
    scene.commit(append("middle", "3", "4", "not shared"))
    source = scene.mark("middle", at=4)
    scene.commit(rewind(name, source) if scene.engine.get(ACME, "thread", name) else fork(name, source))
    scene.commit(append(name, "5"))
