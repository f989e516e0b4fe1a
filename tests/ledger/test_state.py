"""The state of a thread: saved as revisions that stay, in the types of the caller, without a lost update."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

import holdfast
from holdfast import errors
from holdfast.engine.contract import Append, Event
from holdfast.ledger.json_path import Difference
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

START = datetime(2026, 3, 1, tzinfo=UTC)


class Model(pydantic.BaseModel):
    city: str
    day: date
    seats: list[int] = []


@dataclasses.dataclass
class Data:
    city: str
    day: date
    seats: list[int] = dataclasses.field(default_factory=list)


class Struct(msgspec.Struct):
    city: str
    day: date
    seats: list[int] = []


class Typed(TypedDict):
    city: str
    day: date
    seats: list[int]


PARTS: dict[str, Any] = {"city": "Rome", "day": date(2026, 5, 1), "seats": [4, 5]}
STORED = {"city": "Rome", "day": "2026-05-01", "seats": [4, 5]}


@pytest.fixture
def thread(store: holdfast.Store) -> holdfast.Thread:
    return store.thread("trip-42", user="ana")


# Types


@pytest.mark.parametrize("kind", [Model, Data, Struct, Typed])
def test_a_typed_state_comes_back_in_its_type(thread: holdfast.Thread, schemas: holdfast.Registry, kind: Any) -> None:
    schemas.schema("trip", version=1)(kind)
    assert thread.save(kind(**PARTS), schema=kind) == 1
    loaded = thread.state(kind)
    assert loaded.value == kind(**PARTS)
    assert (loaded.revision, loaded.schema, loaded.version, loaded.migrated_from) == (1, "trip", 1, None)
    assert thread.state().value == kind(**PARTS)
    assert thread.state("trip").value == kind(**PARTS)  # type: ignore[call-overload]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("kind", [Model, Data, Struct, Typed])
def test_a_typed_state_can_be_read_as_it_is_stored(
    thread: holdfast.Thread, schemas: holdfast.Registry, kind: Any
) -> None:
    schemas.schema("trip", version=1)(kind)
    thread.save(kind(**PARTS), schema=kind)
    assert thread.state(dict).value == STORED


@pytest.mark.usefixtures("any_engine")
def test_a_plain_dict_is_a_state(thread: holdfast.Thread) -> None:
    thread.save({"city": "Rome", "stops": [{"at": None}]})
    loaded = thread.state()
    assert (loaded.value, loaded.schema, loaded.version) == ({"city": "Rome", "stops": [{"at": None}]}, "", 0)
    assert thread.state(dict).value == loaded.value


@pytest.mark.every_engine
def test_a_typed_state_survives_a_restart(
    thread: holdfast.Thread, schemas: holdfast.Registry, reopen: Callable[[], holdfast.Store]
) -> None:
    schemas.schema("trip", version=1)(Struct)
    thread.save(Struct(**PARTS))
    assert reopen().thread("trip-42").state(Struct).value == Struct(**PARTS)


@pytest.mark.usefixtures("any_engine")
def test_a_dict_stays_under_the_schema_it_follows(thread: holdfast.Thread, schemas: holdfast.Registry) -> None:
    schemas.schema("trip", version=1)(Struct)
    thread.save(Struct(**PARTS))
    thread.save({**STORED, "city": "Oslo"})
    assert thread.state(Struct).value == Struct(**{**PARTS, "city": "Oslo"})
    with pytest.raises(errors.StateInvalid) as caught:
        thread.save({"city": 5, "day": "2026-05-01"})
    assert (caught.value.thread, caught.value.revision, caught.value.field) == ("trip-42", 3, "city")


@pytest.mark.usefixtures("any_engine")
def test_a_type_that_nobody_declared_is_refused(thread: holdfast.Thread) -> None:
    with pytest.raises(errors.Invalid, match="Struct is not declared as a schema"):
        thread.save(Struct(**PARTS))
    assert not thread.exists()


@pytest.mark.usefixtures("any_engine")
def test_a_state_of_one_schema_is_not_read_as_another(thread: holdfast.Thread, schemas: holdfast.Registry) -> None:
    schemas.schema("trip", version=1)(Struct)
    schemas.schema("other", version=1)(Data)
    thread.save(Struct(**PARTS))
    with pytest.raises(errors.Invalid, match="'trip', not 'other'") as caught:
        thread.state(Data)
    assert (caught.value.thread, caught.value.revision) == ("trip-42", 1)


def test_the_ready_made_state_works_as_it_comes(place: Any) -> None:
    thread = place.open(schemas=holdfast.ledger.schema.DEFAULT).thread("t")
    thread.save(holdfast.AgentState(user_preferences={"seat": "aisle"}).with_fact("home", "Rome", at=START))
    assert thread.state(holdfast.AgentState).value.fact("home") == holdfast.Fact("Rome", START)


# Nothing saved yet


@pytest.mark.usefixtures("any_engine")
def test_without_a_state_the_default_comes_at_revision_zero(thread: holdfast.Thread) -> None:
    thread.append({"role": "user", "content": "hi"})
    fallback = {"fresh": True}
    loaded = thread.state(default=fallback)
    assert loaded.value is fallback
    assert (loaded.revision, bool(loaded), thread.state().value) == (0, False, None)
    assert thread.state(default=fallback, on_stale="refresh").value is fallback
    assert thread.state(default=fallback, on_stale="raise").value is fallback
    assert thread.revisions() == []


@pytest.mark.usefixtures("any_engine")
def test_a_default_is_not_saved(thread: holdfast.Thread) -> None:
    thread.state(default={"a": 1})
    assert not thread.exists()


@pytest.mark.usefixtures("any_engine")
def test_what_needs_a_state_says_that_there_is_none(thread: holdfast.Thread) -> None:
    thread.append({"role": "user", "content": "hi"})
    for call in (
        lambda: thread.patch("a", 1),
        lambda: thread.confirm("a"),
        thread.refresh,
        lambda: thread.statebook.diff(1),
        lambda: thread.state(revision=1),
    ):
        with pytest.raises(errors.NotFound, match="trip-42"):
            call()


def test_saving_makes_the_thread(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.save({"a": 1})
    assert (thread.logbook.head(), [info.user for info in store.threads()]) == (0, ["ana"])


# Compare and set


def test_revisions_are_numbered_from_one(thread: holdfast.Thread) -> None:
    assert [thread.save({"n": number}) for number in range(3)] == [1, 2, 3]


@pytest.mark.every_engine
def test_of_two_who_loaded_the_same_one_wins_and_the_other_can_reload(store: holdfast.Store) -> None:
    one, other = store.thread("t"), store.thread("t")
    one.save({"n": 0})
    assert one.state().value == other.state().value
    one.save({"n": 1})
    with pytest.raises(errors.Conflict) as caught:
        other.save({"n": 2})
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert other.state().value == {"n": 1}
    assert other.save({"n": 2}) == 3


def test_a_handle_that_never_looked_expects_no_state(store: holdfast.Store) -> None:
    store.thread("t").save({"n": 1})
    with pytest.raises(errors.Conflict):
        store.thread("t").save({"n": 2})
    assert store.thread("t").state().value == {"n": 1}


def test_the_expected_revision_can_be_named(store: holdfast.Store) -> None:
    store.thread("t").save({"n": 1})
    assert store.thread("t").save({"n": 2}, expect=1) == 2
    for wrong in (0, 1, 3):
        with pytest.raises(errors.Conflict):
            store.thread("t").save({"n": 3}, expect=wrong)
    assert len(store.thread("t").revisions()) == 2


@pytest.mark.usefixtures("any_engine")
def test_any_overwrites_whatever_is_there(store: holdfast.Store) -> None:
    assert store.thread("t").save({"n": 1}, expect="any") == 1
    assert store.thread("t").save({"n": 2}, expect="any") == 2
    assert store.thread("t").state().value == {"n": 2}


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("expect", [-1, 1.0, "1", "all", True])
def test_an_expectation_that_is_no_revision_is_invalid(thread: holdfast.Thread, expect: Any) -> None:
    with pytest.raises(errors.Invalid, match="expect must be a revision number"):
        thread.save({}, expect=expect)


@pytest.mark.usefixtures("any_engine")
def test_reading_an_old_revision_does_not_change_what_a_save_is_based_on(thread: holdfast.Thread) -> None:
    thread.save({"n": 1})
    thread.save({"n": 2})
    thread.state(revision=1)
    assert thread.save({"n": 3}) == 3


@pytest.mark.usefixtures("any_engine")
def test_a_load_that_failed_is_no_load(store: holdfast.Store, schemas: holdfast.Registry, place: Any) -> None:
    """Whoever could not read the state must not overwrite it as if it had."""
    schemas.schema("trip", version=1)(Struct)
    store.thread("t").save(Struct(**PARTS))
    blind = place.open(schemas=holdfast.Registry()).thread("t")
    with pytest.raises(errors.SchemaUnknown):
        blind.state()
    with pytest.raises(errors.Conflict):
        blind.save({"n": 1})
    assert store.thread("t").state(Struct).value == Struct(**PARTS)


def test_a_rewind_does_not_pass_for_the_revision_it_replaced(store: holdfast.Store) -> None:
    """After a rewind the numbers come again. Whoever loaded the old revision 2 has not seen the new one."""
    slow, quick = store.thread("t"), store.thread("t")
    quick.save({"n": 1})
    quick.append({"role": "user", "content": "hi"})
    quick.save({"n": 2})
    assert slow.state().revision == 2
    quick.rewind(1)
    quick.state()
    assert quick.save({"n": "another 2"}) == 2
    with pytest.raises(errors.Conflict):
        slow.save({"n": 3})
    with pytest.raises(errors.Conflict):
        slow.save({"n": 3}, expect=2)
    assert slow.state().value == {"n": "another 2"}
    assert slow.save({"n": 3}) == 3


@pytest.mark.usefixtures("any_engine")
def test_a_key_makes_a_save_idempotent(thread: holdfast.Thread, clock: ManualClock) -> None:
    assert thread.save({"n": 1, "m": 2}, key="k") == 1
    clock.advance(60)
    assert thread.save({"m": 2, "n": 1}, key="k") == 1
    assert len(thread.revisions()) == 1
    with pytest.raises(errors.KeyReused):
        thread.save({"n": True, "m": 2}, key="k")


@pytest.mark.every_engine
def test_a_keyed_save_can_be_repeated_by_whoever_comes_after_a_crash(store: holdfast.Store) -> None:
    store.thread("t").save({"n": 0})
    handle = store.thread("t")
    handle.state()
    handle.save({"n": 1}, key="k")
    assert store.thread("t").save({"n": 1}, key="k") == 2
    assert store.thread("t").state().value == {"n": 1}


@pytest.mark.every_engine
def test_concurrent_saves_lose_no_update(store: holdfast.Store) -> None:
    """Read, add one, save, and again after a conflict: the sum comes out."""
    store.thread("t").save({"n": 0})

    def count(_: int) -> None:
        thread = store.thread("t")
        done = 0
        while done < 5:
            try:
                thread.save({"n": thread.state().value["n"] + 1})
                done += 1
            except errors.Conflict:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert store.thread("t").state().value == {"n": 20}
    assert [revision.number for revision in store.thread("t").revisions()] == list(range(1, 22))


# Patches


@pytest.mark.usefixtures("any_engine")
def test_a_patch_sets_one_path(thread: holdfast.Thread) -> None:
    thread.save({"task": {"status": "open", "steps": [1]}, "n": 1})
    assert thread.patch("task.status", "done") == 2
    assert thread.patch("task.steps[+]", {"at": 2}) == 3
    assert thread.patch('task["new name"]', None) == 4
    assert thread.state().value == {"task": {"status": "done", "steps": [1, {"at": 2}], "new name": None}, "n": 1}


def test_a_patch_keeps_what_others_changed_elsewhere(store: holdfast.Store) -> None:
    one, other = store.thread("t"), store.thread("t")
    one.save({"a": 0, "b": 0})
    other.state()
    one.patch("a", 1)
    other.patch("b", 1)
    assert one.state().value == {"a": 1, "b": 1}


@pytest.mark.usefixtures("any_engine")
def test_a_patch_can_expect_a_revision(thread: holdfast.Thread) -> None:
    thread.save({"a": 0})
    thread.patch("a", 1, expect=1)
    with pytest.raises(errors.Conflict) as caught:
        thread.patch("a", 2, expect=1)
    assert (caught.value.expected, caught.value.actual, thread.state().value) == (1, 2, {"a": 1})


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("path", ["", "a.b.c", "list[5]", "a..b", "*", 5])
def test_a_patch_of_no_place_is_invalid_and_saves_nothing(thread: holdfast.Thread, path: Any) -> None:
    thread.save({"a": {"x": 1}, "list": [1]})
    with pytest.raises(errors.Invalid):
        thread.patch(path, 1)
    assert len(thread.revisions()) == 1


@pytest.mark.usefixtures("any_engine")
def test_a_patch_must_fit_the_schema(thread: holdfast.Thread, schemas: holdfast.Registry) -> None:
    schemas.schema("trip", version=1)(Model)
    thread.save(Model(**PARTS))
    thread.patch("day", date(2026, 6, 1))
    with pytest.raises(errors.StateInvalid) as caught:
        thread.patch("seats[0]", "window")
    assert (caught.value.field, caught.value.revision) == ("seats[0]", 3)
    assert thread.state(Model).value.day == date(2026, 6, 1)


@pytest.mark.every_engine
def test_concurrent_patches_of_different_paths_all_survive(store: holdfast.Store) -> None:
    """Of those who change it at once only one gets through at a time, so the last must not have given up by then."""
    names = [f"field_{number}" for number in range(30)]
    store.thread("t").save(dict.fromkeys(names, 0))
    together = threading.Barrier(len(names))

    def patch(name: str) -> int:
        thread = store.thread("t")
        together.wait()
        return thread.patch(name, 1)

    with ThreadPoolExecutor(len(names)) as pool:
        revisions = list(pool.map(patch, names))
    assert store.thread("t").state().value == dict.fromkeys(names, 1)
    assert sorted(revisions) == list(range(2, 32))


# History


@pytest.fixture
def three(thread: holdfast.Thread, clock: ManualClock) -> holdfast.Thread:
    """Three revisions, saved a day apart by three people."""
    for day, who in enumerate(("ana", "ben", "cem")):
        clock.set(START + timedelta(days=day))
        thread.save({"day": day, "kept": True, who: True}, by=who)
    return thread


@pytest.mark.every_engine
def test_revisions_are_listed_without_their_values(three: holdfast.Thread) -> None:
    found = three.revisions()
    assert [(each.number, each.by, each.schema, each.version) for each in found] == [
        (1, "ana", "", 0),
        (2, "ben", "", 0),
        (3, "cem", "", 0),
    ]
    assert [each.time.day for each in found] == [1, 2, 3]
    assert three.revisions(2) == three.revisions(last=2) == found[1:]
    assert three.revisions(0) == []


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("last", [-1, 1.5, "1", True, 2**63])
def test_a_number_of_revisions_that_is_no_count_is_invalid(three: holdfast.Thread, last: Any) -> None:
    with pytest.raises(errors.Invalid, match="last must be a whole number"):
        three.revisions(last)


def test_an_old_revision_can_be_read(three: holdfast.Thread) -> None:
    loaded = three.state(revision=2)
    assert (loaded.value["day"], loaded.revision, loaded.time) == (1, 2, three.revisions()[1].time)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("revision", [0, -1, 4, 2**70])
def test_a_revision_that_is_not_there_is_not_found(three: holdfast.Thread, revision: int) -> None:
    with pytest.raises(errors.NotFound, match="has revisions 1 to 3") as caught:
        three.state(revision=revision)
    assert (caught.value.thread, caught.value.revision) == ("trip-42", revision)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("revision", ["1", 1.0, True])
def test_a_revision_that_is_no_number_is_invalid(three: holdfast.Thread, revision: Any) -> None:
    with pytest.raises(errors.Invalid, match="whole number"):
        three.state(revision=revision)


def test_the_state_as_of_a_moment(three: holdfast.Thread) -> None:
    for hours, revision in ((-1, 0), (0, 0), (1, 1), (25, 2), (49, 3), (10_000, 3)):
        loaded = three.state(as_of=START + timedelta(hours=hours), default="none yet")
        assert (loaded.revision, loaded.value == "none yet") == (revision, revision == 0)


@pytest.mark.every_engine
def test_as_of_is_exact_to_the_moment_of_the_save(three: holdfast.Thread) -> None:
    saved = three.revisions()[1].time
    assert three.state(as_of=saved).revision == 2
    assert three.state(as_of=saved - timedelta(microseconds=1)).revision == 1


def test_as_of_reaches_far_back(thread: holdfast.Thread, clock: ManualClock) -> None:
    """Further than one page of revisions."""
    for number in range(120):
        clock.advance(60)
        thread.save({"n": number})
    early = thread.revisions()[3].time
    assert thread.state(as_of=early).value == {"n": 3}


@pytest.mark.usefixtures("any_engine")
def test_one_way_to_name_an_old_state_at_a_time(three: holdfast.Thread) -> None:
    with pytest.raises(errors.Invalid, match="either revision or as_of"):
        three.state(revision=1, as_of=START)
    with pytest.raises(errors.Invalid, match="no time zone"):
        three.state(as_of=datetime(2026, 3, 1))


@pytest.mark.usefixtures("any_engine")
def test_a_diff_says_what_changed(three: holdfast.Thread) -> None:
    assert three.statebook.diff(1, 2) == [
        Difference("ana", "removed", old=True),
        Difference("ben", "added", new=True),
        Difference("day", "changed", old=0, new=1),
    ]
    assert three.statebook.diff(2) == three.statebook.diff(2, 3)
    assert three.statebook.diff(3) == []
    assert [change.path for change in three.statebook.diff(3, 1)] == ["ana", "cem", "day"]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize(("old", "new"), [(0, 1), (1, 4), (4, None)])
def test_a_diff_of_a_revision_that_is_not_there_is_not_found(three: holdfast.Thread, old: int, new: int | None) -> None:
    with pytest.raises(errors.NotFound, match="has revisions 1 to 3"):
        three.statebook.diff(old, new)


@pytest.mark.usefixtures("any_engine")
def test_changing_what_was_loaded_changes_nothing(thread: holdfast.Thread) -> None:
    given = {"inner": {"n": 1}}
    thread.save(given)
    given["inner"]["n"] = 2
    assert thread.state().value == {"inner": {"n": 1}}
    thread.state().value["inner"]["n"] = 3
    assert thread.state().value == {"inner": {"n": 1}}


def test_a_patch_of_what_the_handle_did_not_see_is_no_look_at_it(store: holdfast.Store) -> None:
    """It changed one path of a state that it never read; saving the whole over that would lose the rest."""
    store.thread("t").save({"a": 1, "b": 1})
    blind = store.thread("t")
    blind.patch("a", 2)
    with pytest.raises(errors.Conflict):
        blind.save({"a": 3})
    seeing = store.thread("t")
    seeing.state()
    seeing.patch("a", 2)
    assert seeing.save({"a": 3, "b": 1}) == 4


class Busy:
    """An engine on which someone else always saves first, so many times."""

    def __init__(self, store: holdfast.Store, times: int) -> None:
        self._store, self._left = store, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.core.engine, name)

    def commit(self, *args: Any) -> Any:
        if self._left > 0:
            self._left -= 1
            self._store.thread("t").save({"n": "theirs"}, expect="any")
        return self._store.core.engine.commit(*args)


@pytest.mark.usefixtures("any_engine")
def test_any_overwrites_also_what_came_at_the_last_moment(store: holdfast.Store) -> None:
    engine: Any = Busy(store, 3)
    thread = holdfast.Store(Wiring(store.core._replace(engine=engine))).thread("t")
    assert thread.save({"n": "ours"}, expect="any") == 4
    assert store.thread("t").state().value == {"n": "ours"}


@pytest.mark.usefixtures("any_engine")
def test_who_never_gets_through_is_told_so_in_the_end(store: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.ledger.state._TRIES", 5)
    store.thread("t").save({"n": 1})
    engine: Any = Busy(store, 10**9)
    thread = holdfast.Store(Wiring(store.core._replace(engine=engine))).thread("t")
    for write in (lambda: thread.save({"n": 2}, expect="any"), lambda: thread.patch("n", 2)):
        with pytest.raises(errors.Conflict, match="keeps changing"):
            write()
    with pytest.raises(errors.Conflict):
        thread.patch("n", 2, expect=thread.state().revision)
    assert store.thread("t").state().value == {"n": "theirs"}


@pytest.mark.usefixtures("any_engine")
def test_a_state_nested_to_the_limit_is_refused_as_a_whole(thread: holdfast.Thread) -> None:
    """The value alone would just fit; with what is stored around it, it does not."""
    deep: dict[str, Any] = {}
    for _ in range(199):
        deep = {"in": deep}
    with pytest.raises(errors.Invalid, match="nested deeper than 200 levels"):
        thread.save(deep)
    assert not thread.exists()


@pytest.mark.usefixtures("any_engine")
def test_a_typed_state_may_replace_a_plain_one_that_has_nothing_to_do_with_it(
    thread: holdfast.Thread, schemas: holdfast.Registry
) -> None:
    schemas.schema("trip", version=1, fresh={"city": "1h"})(Struct)
    thread.save({"anything": 1})
    thread.save(Struct(**PARTS))
    assert thread.state(Struct).value == Struct(**PARTS)


class Forgetful:
    """An engine that has lost the events of a state, though its record still counts them."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def read(self, *args: Any, **options: Any) -> list[Event]:
        return []


@pytest.mark.usefixtures("any_engine")
def test_a_revision_that_is_lost_is_corrupt(store: holdfast.Store) -> None:
    store.thread("t").save({"n": 1})
    engine: Any = Forgetful(store.core.engine)
    thread = holdfast.Store(Wiring(store.core._replace(engine=engine))).thread("t")
    with pytest.raises(errors.Corrupt, match="revision 1 of thread 't' is missing"):
        thread.state()
    assert thread.state(as_of=START, default="none").value == "none"


def test_a_revision_that_is_no_state_is_corrupt(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.save({"a": 1})
    odd = Event("revision", b'j1{"schema": 5}', 7)
    store.core.engine.commit(store.tenant, [Append("state", "trip-42", (odd,))], 7)
    with pytest.raises(errors.Corrupt, match="state revision 2"):
        thread.state()
    assert thread.state(revision=1).value == {"a": 1}
