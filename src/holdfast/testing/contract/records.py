"""What ``Put``, ``Delete``, ``get`` and ``scan`` promise of records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from holdfast.engine.contract import Delete, Fetches, Mark, Put, Query, Scope
from holdfast.errors import Conflict
from holdfast.testing.contract.scene import ACME, ANA, BEN, GLOBEX, Scene, append, contents, note
from holdfast.testing.fakes import ManualClock


class PutPromises:
    """Promises about ``Put`` and ``get``."""

    def test_get_returns_none_for_what_is_absent(self, scene: Scene) -> None:
        """An absent record is None, no error."""
        assert scene.engine.get(ACME, "note", "a") is None

    def test_many_are_fetched_by_one_question(self, scene: Scene) -> None:
        """Where the engine can fetch many, those that are there come back as ``get`` gives them, and no others."""
        if not isinstance(scene.engine, Fetches):
            pytest.skip("this engine does not fetch many")
        scene.commit(*(note(f"n{number}", b"%d" % number) for number in range(5)), Put("other", "n1", b"x"))
        found = scene.engine.get_many(ACME, "note", ["n1", "n3", "absent", *(f"x{number}" for number in range(1_500))])
        assert {record.id: record for record in found} == {id: scene.note(id) for id in ("n1", "n3")}
        assert scene.engine.get_many(GLOBEX, "note", ["n1"]) == []
        assert scene.engine.get_many(ACME, "note", []) == []

    def test_ids_are_found_by_tags_in_one_question(self, scene: Scene) -> None:
        """Where the engine can fetch many, each record is named under each of the tags that it has, within a limit."""
        if not isinstance(scene.engine, Fetches):
            pytest.skip("this engine does not fetch many")
        scene.commit(
            Put("note", "a", b"", tags=("red", "round")), Put("note", "b", b"", tags=("red",)),
            Put("other", "c", b"", tags=("red",)), Put("note", "d", b"", tags=("blue",)),
        )  # fmt: skip
        many = [f"t{number}" for number in range(1_500)]
        found = scene.engine.ids_tagged(ACME, "note", ["red", *many, "round"], 100)
        assert sorted(found) == [("red", "a"), ("red", "b"), ("round", "a")]
        assert len(scene.engine.ids_tagged(ACME, "note", ["red", "round"], 2)) == 2
        assert scene.engine.ids_tagged(GLOBEX, "note", ["red"], 9) == scene.engine.ids_tagged(ACME, "note", [], 9) == []

    def test_many_events_are_fetched_by_one_question(self, scene: Scene) -> None:
        """Where the engine can fetch many, each event comes with the place that was asked for, and no others do."""
        if not isinstance(scene.engine, Fetches):
            pytest.skip("this engine does not fetch many")
        scene.commit(append("t", "one", "two", "three"), append("u", "four"))
        records = [scene.engine.get(ACME, "thread", id) for id in ("t", "u")]
        t, u = (record.mark.stream for record in records if record is not None)
        wanted = [Mark(t, 1), Mark(t, 3), Mark(u, 1), Mark(u, 9), *(Mark(5, number) for number in range(300))]
        found = dict(scene.engine.events_at(ACME, wanted))
        assert found == {mark: scene.engine.read(ACME, mark, after=mark.position - 1)[0] for mark in wanted[:3]}
        assert scene.engine.events_at(GLOBEX, wanted) == []
        assert scene.engine.events_at(ACME, []) == []

    def test_a_put_record_is_returned_whole(self, scene: Scene) -> None:
        """Body, scope, tags and expiry come back as given; version counts from 1; both times are the commit's."""
        scope = Scope(user="ana", agent="travel", thread="trip")
        put = Put("note", "a", b"\x00\xff", scope=scope, tags=("red", "round"), expires=2**62)
        receipt = scene.commit(put)
        record = scene.note("a")
        assert (record.body, record.scope, record.tags, record.expires) == (b"\x00\xff", scope, ("red", "round"), 2**62)
        assert (record.version, record.created, record.time) == (1, receipt.time, receipt.time)
        assert (record.stream, record.base, record.head) == (None, 0, 0)

    def test_each_put_counts_the_version_up_and_keeps_the_day_of_creation(self, scene: Scene) -> None:
        """The second Put is version 2, made when the first was, changed when itself was committed."""
        first, second = scene.commit(note("a", b"1")), scene.commit(note("a", b"2"))
        record = scene.note("a")
        assert (record.version, record.body) == (2, b"2")
        assert (record.created, record.time) == (first.time, second.time)

    def test_a_put_replaces_scope_tags_and_expiry(self, scene: Scene) -> None:
        """A Put writes the whole record: what it leaves out is gone, not kept."""
        scene.commit(note("a", scope=ANA, tags=("red",), expires=2**62))
        scene.commit(note("a", scope=BEN))
        record = scene.note("a")
        assert (record.scope, record.tags, record.expires) == (BEN, (), None)

    def test_a_put_leaves_the_stream_alone(self, scene: Scene) -> None:
        """A record that owns a stream keeps it, and its head, when its body is written."""
        scene.commit(append("t", "one", "two"))
        scene.commit(Put("thread", "t", b"title", scope=ANA))
        assert scene.texts("t") == ["one", "two"]
        assert (scene.thread("t").version, scene.thread("t").body) == (2, b"title")

    @pytest.mark.parametrize("expect", [None, 0])
    def test_a_new_record_meets_no_expectation_or_zero(self, scene: Scene, expect: int | None) -> None:
        """``expect`` None takes any version, 0 takes an absent one."""
        scene.commit(note("a", expect=expect))
        assert scene.note("a").version == 1

    @pytest.mark.parametrize("expect", [0, 1, 3])
    def test_an_expectation_not_met_is_a_conflict(self, scene: Scene, expect: int) -> None:
        """At version 2 only 2 is met; the record is left as it was, and the error says where it is."""
        scene.commit(note("a", b"1"))
        scene.commit(note("a", b"2"))
        with pytest.raises(Conflict) as caught:
            scene.commit(note("a", b"3", expect=expect))
        assert (caught.value.expected, caught.value.actual) == (expect, 2)
        assert scene.note("a").body == b"2"

    def test_the_expected_version_is_overwritten(self, scene: Scene) -> None:
        """``expect`` n writes when the record is at n."""
        scene.commit(note("a", b"1"))
        scene.commit(note("a", b"2", expect=1))
        assert scene.note("a").body == b"2"

    def test_kinds_do_not_share_ids(self, scene: Scene) -> None:
        """The same id in two kinds names two records."""
        scene.commit(Put("note", "a", b"1"), Put("card", "a", b"2"))
        found = [scene.engine.get(ACME, kind, "a") for kind in ("note", "card")]
        assert [record.body for record in found if record is not None] == [b"1", b"2"]

    @pytest.mark.parametrize("id", ["ä", "日本", "🦀", "a b/c?d=e&f", "'; DROP TABLE records; --", "%", "x" * 512])
    def test_any_text_can_be_an_id(self, scene: Scene, id: str) -> None:
        """Ids are compared as text; nothing in them has a meaning to the engine."""
        scene.commit(note(id, b"1", tags=(id,), scope=Scope(user=id)))
        assert scene.note(id).body == b"1"
        assert scene.ids(tag=id, user=id) == [id]


class DeletePromises:
    """Promises about ``Delete``."""

    def test_a_deleted_record_is_gone(self, scene: Scene) -> None:
        """Neither get nor scan shows it again."""
        scene.commit(note("a", tags=("red",)))
        scene.commit(Delete("note", "a"))
        assert scene.engine.get(ACME, "note", "a") is None
        assert scene.ids() == scene.ids(tag="red") == []

    def test_a_deleted_record_gives_up_its_stream(self, scene: Scene) -> None:
        """The events go with the record: its mark reads nothing, and its stream is not here."""
        scene.commit(append("t", "one"))
        mark = scene.mark("t")
        assert scene.at(mark) == ["one"]
        scene.commit(Delete("thread", "t"))
        assert scene.at(mark) == []
        assert scene.engine.strand(ACME, mark.stream) is None

    def test_deleting_what_is_absent_is_no_error_and_no_change(self, scene: Scene) -> None:
        """Without ``expect`` a second Delete is harmless, and the feed does not speak of it."""
        before = contents(scene.engine)
        scene.commit(Delete("note", "a"))
        scene.commit(Delete("note", "a", expect=0))
        assert contents(scene.engine) == before

    def test_deleting_what_is_absent_with_an_expected_version_is_a_conflict(self, scene: Scene) -> None:
        """A delete that expects a version and finds nothing is a conflict."""
        with pytest.raises(Conflict):
            scene.commit(Delete("note", "a", expect=1))

    def test_a_delete_of_another_version_is_a_conflict(self, scene: Scene) -> None:
        """The record stays when it is not at the expected version, and goes when it is."""
        scene.commit(note("a"))
        with pytest.raises(Conflict):
            scene.commit(Delete("note", "a", expect=2))
        assert scene.note("a").version == 1
        scene.commit(Delete("note", "a", expect=1))
        assert scene.ids() == []

    def test_a_deleted_record_may_be_made_again_from_the_start(self, scene: Scene) -> None:
        """Deleting is not erasing: the id is free, and version, times and stream start over."""
        scene.commit(append("t", "one"))
        scene.commit(Delete("thread", "t"))
        receipt = scene.commit(append("t", "two"))
        record = scene.thread("t")
        assert (record.version, record.created, record.head) == (1, receipt.time, 1)
        assert scene.texts("t") == ["two"]


class ScanPromises:
    """Promises about ``scan``."""

    def test_scan_returns_newest_activity_first(self, scene: Scene) -> None:
        """Order is time descending; any write makes a record the newest."""
        for id in ("a", "b", "c"):
            scene.commit(note(id))
        scene.commit(note("a"))
        assert scene.ids() == ["a", "c", "b"]

    def test_scan_orders_equal_times_by_id_descending(self, scene: Scene) -> None:
        """The second key is the id, so that an order exists and pages can rely on it."""
        scene.commit(note("b"), note("ä"), note("a"), note("C"))
        assert scene.ids() == ["ä", "b", "a", "C"]

    def test_appending_counts_as_activity(self, scene: Scene) -> None:
        """A thread that grew comes before one that did not."""
        scene.commit(append("t", "one"))
        scene.commit(append("u", "one"))
        scene.commit(append("t", "two"))
        assert [r.id for r in scene.engine.scan(ACME, Query("thread"))] == ["t", "u"]

    @pytest.mark.parametrize(
        ("query", "ids"),
        [
            ({}, ["c", "b", "a"]),
            ({"user": "ana"}, ["c", "a"]),
            ({"agent": "travel"}, ["b", "a"]),
            ({"thread": "trip"}, ["c"]),
            ({"tag": "red"}, ["b", "a"]),
            ({"user": "ana", "agent": "travel", "tag": "red"}, ["a"]),
            ({"user": "ben", "thread": "trip"}, []),
            ({"tag": "re"}, []),
            ({"user": ""}, []),
        ],
    )
    def test_scan_keeps_what_matches_every_filter(self, scene: Scene, query: dict[str, str], ids: list[str]) -> None:
        """Filters on user, agent, thread and tag are exact, and all must hold."""
        scene.commit(note("a", scope=Scope(user="ana", agent="travel"), tags=("red", "round")))
        scene.commit(note("b", scope=Scope(user="ben", agent="travel"), tags=("red",)))
        scene.commit(note("c", scope=Scope(user="ana", thread="trip"), tags=("green",)))
        assert scene.ids(**query) == ids

    def test_since_is_inclusive_and_until_is_not(self, scene: Scene) -> None:
        """A span of time includes its beginning, and leaves its end to the next span."""
        times = [scene.commit(note(id)).time for id in ("a", "b", "c")]
        assert scene.ids(since=times[1]) == ["c", "b"]
        assert scene.ids(until=times[1]) == ["a"]
        assert scene.ids(since=times[1], until=times[2]) == ["b"]

    def test_scan_of_another_kind_finds_nothing(self, scene: Scene) -> None:
        """A scan is of one kind."""
        scene.commit(note("a"))
        assert scene.engine.scan(ACME, Query("card")) == []

    def test_pages_continue_from_their_last_record_without_loss_or_repetition(self, scene: Scene) -> None:
        """``before`` takes the last record's (time, id), also where many records share one time."""
        scene.commit(*(note(f"{n}") for n in range(5)))
        scene.commit(*(note(f"{n}") for n in range(5, 8)))
        seen: list[str] = []
        page = scene.engine.scan(ACME, Query("note", limit=2))
        while page:
            seen += [record.id for record in page]
            page = scene.engine.scan(ACME, Query("note", limit=2, before=(page[-1].time, page[-1].id)))
        assert seen == ["7", "6", "5", "4", "3", "2", "1", "0"]

    @pytest.mark.parametrize("limit", [0, 1, 3, 4, 100])
    def test_scan_returns_at_most_its_limit(self, scene: Scene, limit: int) -> None:
        """Never more than ``limit``, and the newest of them."""
        scene.commit(*(note(id) for id in "abcd"))
        assert scene.ids(limit=limit) == list("dcba")[:limit]

    def test_tags_follow_the_record(self, scene: Scene) -> None:
        """A new version's tags replace the old ones, in the record and in the filter; repeating one is harmless."""
        scene.commit(note("a", tags=("red", "round")))
        scene.commit(note("a", tags=("round", "green", "green")))
        assert (scene.ids(tag="red"), scene.ids(tag="round"), scene.ids(tag="green")) == ([], ["a"], ["a"])
        assert set(scene.note("a").tags) == {"round", "green"}

    def test_appending_leaves_the_tags_alone(self, scene: Scene) -> None:
        """A thread is still found by its tag after it grew."""
        scene.commit(append("t", "one", new=Put("thread", "t", b"", tags=("red",))))
        scene.commit(append("t", "two", new=None))
        assert [r.id for r in scene.engine.scan(ACME, Query("thread", tag="red"))] == ["t"]

    def test_expired_records_are_left_out(self, scene: Scene, clock: ManualClock) -> None:
        """From the moment of its expiry on, a record is not scanned; a new expiry brings it back."""
        soon = clock.now() + _micros(minutes=1)
        scene.commit(note("a", expires=soon), note("b"))
        assert scene.ids() == ["b", "a"]
        clock.set(soon)
        assert scene.ids() == ["b"]
        scene.commit(note("a"))
        assert scene.ids() == ["a", "b"]

    def test_expired_records_can_be_listed(self, scene: Scene, clock: ManualClock) -> None:
        """Just those that expired up to a moment, by kind and owner like others, newest activity first."""
        now = clock.now()
        scene.commit(note("a", expires=now + 1), note("b", expires=now + 2, scope=ANA), note("c"))
        clock.set(now + 5)
        scene.commit(note("d", expires=now + 4, scope=ANA), note("later", expires=now + 99))
        assert scene.ids(expired_before=now) == []
        assert scene.ids(expired_before=now + 1) == ["a"]
        assert scene.ids(expired_before=now + 5) == ["d", "b", "a"]
        assert scene.ids(expired_before=now + 5, user="ana") == ["d", "b"]
        assert scene.ids(expired_before=now + 5, limit=1) == ["d"]
        newest = scene.note("d")
        assert scene.ids(expired_before=now + 5, before=(newest.time, newest.id)) == ["b", "a"]
        assert scene.ids() == ["later", "c"]

    def test_an_expired_record_counts_as_present_for_a_commit(self, scene: Scene, clock: ManualClock) -> None:
        """Expiry hides from scans only: versions go on, so that two writers still meet in one place."""
        scene.commit(note("a", expires=clock.now() + 1))
        clock.advance(60)
        with pytest.raises(Conflict):
            scene.commit(note("a", expect=0))
        assert scene.note("a").version == 1

    @pytest.mark.parametrize("verb", ["get", "scan", "tag"])
    def test_tenants_do_not_see_each_others_records(self, scene: Scene, verb: str) -> None:
        """The same name in two tenants is two records; nothing crosses."""
        scene.commit(note("a", b"acme", tags=("red",)))
        scene.commit(note("a", b"globex", tags=("red",)), tenant=GLOBEX)
        scene.commit(note("b", b"acme", tags=("red",)))
        look: dict[str, Callable[[], list[bytes]]] = {
            "get": lambda: [scene.note("a", GLOBEX).body],
            "scan": lambda: [r.body for r in scene.engine.scan(GLOBEX, Query("note"))],
            "tag": lambda: [r.body for r in scene.engine.scan(GLOBEX, Query("note", tag="red"))],
        }
        assert look[verb]() == [b"globex"]


def _micros(**span: float) -> int:
    return timedelta(**span) // timedelta(microseconds=1)
