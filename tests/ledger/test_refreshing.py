"""What was true once is reported as stale, confirmed, or fetched anew, and an agent can insist on it."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

START = datetime(2026, 3, 1, tzinfo=UTC)


class Flight(msgspec.Struct):
    price: int
    gate: str = "A1"
    notes: dict[str, Any] = {}


@pytest.fixture
def flights(schemas: holdfast.Registry) -> holdfast.Registry:
    schemas.schema("flight", version=1, fresh={"price": "10m", "gate": "1h", "notes.*": "1h"}, critical=["price"])(
        Flight
    )
    return schemas


@pytest.fixture
def thread(store: holdfast.Store, flights: holdfast.Registry, clock: ManualClock) -> holdfast.Thread:
    """A flight whose price is of the first of March."""
    clock.set(START)
    thread = store.thread("trip-42")
    thread.save(Flight(100), by="ana")
    return thread


def stale(thread: holdfast.Thread) -> list[str]:
    return [field.path for field in thread.state(Flight).stale]


# Reports


@pytest.mark.usefixtures("any_engine")
def test_a_fresh_state_reports_nothing(thread: holdfast.Thread) -> None:
    loaded = thread.state(Flight, on_stale="raise")
    assert (loaded.stale, loaded.must_verify) == ((), ())


@pytest.mark.usefixtures("any_engine")
def test_a_stale_field_is_reported_with_its_age_and_who_vouched_for_it(
    thread: holdfast.Thread, clock: ManualClock
) -> None:
    clock.set(START.replace(minute=20))
    loaded = thread.state(Flight)
    (field,) = loaded.stale
    assert (field.path, field.by, field.critical, field.fresh_for_s) == ("price", "ana", True, 600)
    assert field.age_s == pytest.approx(1200)
    assert field.confirmed_at == START.replace(microsecond=1)
    assert loaded.must_verify == ("price",)


@pytest.mark.usefixtures("any_engine")
def test_raise_refuses_a_stale_state_and_says_what_to_verify(thread: holdfast.Thread, clock: ManualClock) -> None:
    clock.advance(2 * 3600)
    with pytest.raises(errors.Stale, match="verify price, gate before acting") as caught:
        thread.state(Flight, on_stale="raise")
    assert (caught.value.thread, caught.value.revision) == ("trip-42", 1)
    assert (caught.value.fields, caught.value.must_verify) == (("price", "gate"), ("price",))


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("choice", ["ignore", "", None, True])
def test_another_choice_is_invalid(thread: holdfast.Thread, choice: Any) -> None:
    with pytest.raises(errors.Invalid, match="report, refresh or raise"):
        thread.state(Flight, on_stale=choice)


@pytest.mark.usefixtures("any_engine")
def test_a_state_that_was_refused_as_stale_can_be_saved_all_the_same(
    thread: holdfast.Thread, clock: ManualClock
) -> None:
    """It was read, so whoever verified by other means goes on from it."""
    clock.advance(3600)
    with pytest.raises(errors.Stale):
        thread.state(Flight, on_stale="raise")
    assert thread.save(Flight(120)) == 2


# Confirming


def test_confirming_renews_a_field_and_no_other(thread: holdfast.Thread, clock: ManualClock) -> None:
    clock.advance(2 * 3600)
    assert thread.confirm("price", by="ben") == 2
    assert stale(thread) == ["gate"]
    clock.advance(3600)
    field = thread.state(Flight).stale[0]
    assert (field.path, field.by) == ("price", "ben")
    assert thread.state(Flight).value == Flight(100)


def test_a_confirmation_survives_a_restart(
    thread: holdfast.Thread, clock: ManualClock, reopen: Callable[[], holdfast.Store]
) -> None:
    clock.advance(2 * 3600)
    thread.confirm("price")
    assert stale(reopen().thread("trip-42")) == ["gate"]


@pytest.mark.usefixtures("any_engine")
def test_a_confirmation_is_a_revision_of_its_own(thread: holdfast.Thread, clock: ManualClock) -> None:
    thread.confirm("price", by="ben")
    assert [revision.by for revision in thread.revisions()] == ["ana", "ben"]
    assert thread.statebook.diff(1, 2) == []


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("path", ["no_such_field", "price.inner", "gate[0]", "notes"])
def test_what_nothing_tracks_cannot_be_confirmed(thread: holdfast.Thread, path: str) -> None:
    with pytest.raises(errors.Invalid):
        thread.confirm(path)
    assert len(thread.revisions()) == 1


@pytest.mark.usefixtures("any_engine")
def test_confirming_the_whole_document_confirms_all_that_is_tracked(
    thread: holdfast.Thread, clock: ManualClock
) -> None:
    clock.advance(2 * 3600)
    thread.confirm("")
    assert stale(thread) == []


@pytest.mark.usefixtures("any_engine")
def test_saving_a_changed_value_confirms_it_and_an_unchanged_one_does_not(
    thread: holdfast.Thread, clock: ManualClock
) -> None:
    clock.advance(2 * 3600)
    thread.state(Flight)
    thread.save(Flight(101))
    assert stale(thread) == ["gate"]


@pytest.mark.usefixtures("any_engine")
def test_patching_confirms_what_it_changed(thread: holdfast.Thread, clock: ManualClock) -> None:
    clock.advance(2 * 3600)
    thread.patch("gate", "B2")
    assert stale(thread) == ["price"]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("load", ["state", "refresh"])
def test_a_value_changed_in_place_is_a_changed_value(thread: holdfast.Thread, clock: ManualClock, load: str) -> None:
    """The handle compares with what was stored, not with the object that it gave away."""
    thread.patch("notes", {"meal": {"kind": "fish"}})
    clock.advance(2 * 3600)
    value = (thread.state(Flight) if load == "state" else thread.refresh(Flight)).value
    value.notes["meal"]["kind"] = "none"
    thread.save(value)
    assert "notes.meal" not in stale(thread)


# Refreshing


def test_a_refresher_fetches_what_is_stale_and_the_result_is_saved(
    thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    asked = []

    @flights.refresher("flight", "price")
    def fetch(value: Flight, path: str) -> int:
        asked.append((value, path))
        return 130

    clock.set(START.replace(minute=20))
    loaded = thread.state(Flight, on_stale="refresh")
    assert (loaded.value, loaded.revision, loaded.stale, loaded.must_verify) == (Flight(130), 2, (), ())
    assert asked == [(Flight(100), "price")]
    assert thread.revisions()[-1].by == "refresher"
    assert thread.state(Flight, on_stale="refresh").revision == 2


@pytest.mark.usefixtures("any_engine")
def test_a_fetched_value_that_did_not_change_counts_as_confirmed(
    thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    flights.refresher("flight", "price")(lambda value, path: 100)
    clock.set(START.replace(minute=20))
    assert thread.refresh(Flight).stale == ()
    assert stale(thread) == []


@pytest.mark.usefixtures("any_engine")
def test_what_has_no_refresher_stays_stale(
    thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    flights.refresher("flight", "price")(lambda value, path: 130)
    clock.advance(2 * 3600)
    assert [field.path for field in thread.refresh().stale] == ["gate"]


@pytest.mark.usefixtures("any_engine")
def test_without_any_refresher_nothing_is_saved(thread: holdfast.Thread, clock: ManualClock) -> None:
    clock.advance(2 * 3600)
    loaded = thread.refresh(Flight)
    assert ([field.path for field in loaded.stale], loaded.revision) == (["price", "gate"], 1)
    assert thread.save(Flight(1)) == 2


def test_a_refresher_that_fails_leaves_its_field_stale_and_the_others_count(
    thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    @flights.refresher("flight", "price")
    def fail(value: Flight, path: str) -> int:
        raise ConnectionError("the airline does not answer")

    flights.refresher("flight", "gate")(lambda value, path: "C3")
    clock.advance(2 * 3600)
    with caplog.at_level(logging.ERROR, "holdfast"):
        loaded = thread.refresh(Flight)
    assert (loaded.value, [field.path for field in loaded.stale]) == (Flight(100, "C3"), ["price"])
    assert "the refresher of price in thread 'trip-42' failed" in caplog.text
    assert "the airline does not answer" in caplog.text


@pytest.mark.usefixtures("any_engine")
def test_a_refresher_whose_value_does_not_fit_is_told_and_nothing_is_saved(
    thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    flights.refresher("flight", "price")(lambda value, path: "cheap")
    clock.advance(2 * 3600)
    with pytest.raises(errors.StateInvalid) as caught:
        thread.refresh(Flight)
    assert (caught.value.field, len(thread.revisions())) == ("price", 1)


@pytest.mark.every_engine
def test_when_someone_saves_while_a_refresher_runs_both_changes_are_kept(
    store: holdfast.Store, thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    calls = []

    @flights.refresher("flight", "price")
    def fetch(value: Flight, path: str) -> int:
        calls.append(value.gate)
        if len(calls) == 1:
            store.thread("trip-42").patch("gate", "D4")
        return 130

    clock.set(START.replace(minute=20))
    assert thread.refresh(Flight).value == Flight(130, "D4")
    assert calls == ["A1", "D4"]
    assert [revision.by for revision in thread.revisions()] == ["ana", "agent", "refresher"]


@pytest.mark.usefixtures("any_engine")
def test_a_field_that_someone_else_confirmed_meanwhile_is_not_fetched_again(
    store: holdfast.Store, thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    calls = []

    @flights.refresher("flight", "price")
    def fetch(value: Flight, path: str) -> int:
        calls.append(path)
        store.thread("trip-42").patch("price", 777)
        return 130

    clock.set(START.replace(minute=20))
    assert thread.refresh(Flight).value.price == 777
    assert calls == ["price"]


@pytest.mark.usefixtures("any_engine")
def test_a_state_that_changes_under_every_refresher_is_a_conflict_in_the_end(
    store: holdfast.Store, thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    @flights.refresher("flight", "price")
    def fetch(value: Flight, path: str) -> int:
        store.thread("trip-42").patch("notes", {"try": len(thread.revisions())})
        return 130

    clock.set(START.replace(minute=20))
    with pytest.raises(errors.Conflict, match="keeps changing"):
        thread.refresh(Flight)
    assert thread.state(Flight).value.price == 100


@pytest.mark.every_engine
def test_a_refresher_runs_outside_any_commit(
    store: holdfast.Store, thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    """It may use the store itself: nothing is held while it works."""

    @flights.refresher("flight", "price")
    def fetch(value: Flight, path: str) -> int:
        return store.thread("prices").append({"asked": path}).number + 200

    clock.set(START.replace(minute=20))
    assert thread.refresh(Flight).value.price == 201


@pytest.mark.usefixtures("any_engine")
def test_a_refresher_sees_the_callers_context(
    thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    request = contextvars.ContextVar[int]("request")
    request.set(42)
    flights.refresher("flight", "price")(lambda value, path: request.get())
    clock.set(START.replace(minute=20))
    assert thread.refresh(Flight).value.price == 42


@pytest.mark.usefixtures("any_engine")
def test_only_the_current_state_can_be_refreshed(thread: holdfast.Thread) -> None:
    for old in ({"revision": 1}, {"as_of": START}):
        with pytest.raises(errors.Invalid, match="only the current state"):
            thread.state(Flight, on_stale="refresh", **old)


@pytest.mark.usefixtures("any_engine")
def test_a_plain_state_is_refreshed_under_the_schema_it_comes_under(
    store: holdfast.Store, flights: holdfast.Registry, clock: ManualClock
) -> None:
    flights.migration("flight", 0, 1)(lambda old: old)
    flights.refresher("flight", "price")(lambda value, path: 130)
    thread = store.thread("plain")
    thread.save({"price": 100})
    clock.advance(3600)
    loaded = thread.refresh(Flight)
    assert (loaded.value, loaded.migrated_from, loaded.must_verify) == (Flight(130), None, ())


class Orders(msgspec.Struct):
    open: list[dict[str, Any]] = []


@pytest.mark.usefixtures("any_engine")
def test_a_stale_item_is_fetched_with_its_list_where_only_the_list_has_a_refresher(
    store: holdfast.Store, schemas: holdfast.Registry, clock: ManualClock
) -> None:
    schemas.schema("orders", version=1, fresh={"open": "1h"}, critical=["open"])(Orders)
    asked: list[str] = []

    def fetch(value: Any, path: str) -> list[dict[str, Any]]:
        asked.append(path)
        return [{"id": 2}, {"id": 3}]

    schemas.refresher("orders", "open")(fetch)
    thread = store.thread("shop-1")
    thread.save(Orders([{"id": 1}, {"id": 2}]))
    clock.advance(7200)
    thread.patch("open[+]", {"id": 9})
    assert thread.state(Orders).must_verify == ("open[0]", "open[1]")
    loaded = thread.state(Orders, on_stale="refresh")
    assert (asked, loaded.value.open, loaded.stale) == (["open"], [{"id": 2}, {"id": 3}], ())


@pytest.mark.usefixtures("any_engine")
def test_a_list_that_comes_back_empty_is_taken_as_it_is(
    store: holdfast.Store, schemas: holdfast.Registry, clock: ManualClock
) -> None:
    schemas.schema("orders", version=1, fresh={"open.*": "1h"})(Orders)
    schemas.refresher("orders", "open")(lambda value, path: [])
    thread = store.thread("shop-1")
    thread.save(Orders([{"id": 1}]))
    clock.advance(7200)
    loaded = thread.state(Orders, on_stale="refresh")
    assert (loaded.value.open, loaded.stale) == ([], ())


@pytest.mark.usefixtures("any_engine")
def test_an_item_keeps_its_age_through_a_migration_that_moves_it(store: holdfast.Store, clock: ManualClock) -> None:
    class Facts(msgspec.Struct):
        facts: list[str]

    def declared(version: int) -> holdfast.Registry:
        found = holdfast.Registry()
        found.schema("facts", version=version, fresh={"facts": "1d"}, critical=["facts"])(Facts)
        if version == 2:
            found.migration("facts", 1, 2)(lambda old: {"facts": sorted(old["facts"])})
        return found

    def thread(version: int) -> holdfast.Thread:
        core = store.core._replace(schemas=declared(version))
        return holdfast.Store(Wiring(core)).thread("t")

    old = thread(1)
    old.save(Facts(["old z"]))
    clock.advance(2 * 86_400)
    old.save(Facts(["old z", "new a"]))
    assert old.state(Facts).must_verify == ("facts[0]",)
    new = thread(2)
    loaded = new.state(Facts)
    assert (loaded.value.facts, loaded.must_verify) == (["new a", "old z"], ("facts[1]",))
    new.save(Facts([*loaded.value.facts, "b"]))
    assert new.state(Facts).must_verify == ("facts[1]",)
