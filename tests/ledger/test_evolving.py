"""A state that older code wrote is read by newer code or refused by name; what is stored changes with a save alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import msgspec
import pytest

import holdfast
from holdfast import errors
from holdfast.engine.contract import Event
from holdfast.wiring import Wiring


class Travel1(msgspec.Struct):
    name: str


class Travel3(msgspec.Struct):
    first: str
    last: str
    seats: int = 1


OLD = {"name": "Ana Berg"}


def first_code() -> holdfast.Registry:
    """The program as it was last year."""
    schemas = holdfast.Registry()
    schemas.schema("travel", version=1)(Travel1)
    return schemas


def todays_code() -> holdfast.Registry:
    """The program after two changes of its state."""
    schemas = holdfast.Registry()
    schemas.schema("travel", version=3)(Travel3)

    @schemas.migration("travel", 1, 2)
    def split(old: dict[str, Any]) -> dict[str, Any]:
        first, last = old.pop("name").split(" ")
        return {"first": first, "last": last}

    @schemas.migration("travel", 2, 3)
    def count(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "seats": 2}

    return schemas


Open = Callable[[holdfast.Registry], holdfast.Thread]


@pytest.fixture
def running(place: Any) -> Open:
    """The thread in a program with these schemas."""
    return lambda schemas: place.open(schemas=schemas).thread("trip-42")


@pytest.fixture
def old(running: Open) -> Open:
    """A state that last year's program saved, and a way to meet it in other programs."""
    running(first_code()).save(Travel1("Ana Berg"))
    return running


def stored(thread: holdfast.Thread) -> list[Event]:
    """The revisions as they are on disk, bytes and all."""
    core = thread.logbook.core
    record = core.engine.get(core.tenant, "state", thread.id)
    assert record is not None
    return core.engine.read(core.tenant, record.mark)


@pytest.mark.every_engine
def test_migrations_run_on_load_over_several_versions(old: Open) -> None:
    loaded = old(todays_code()).state(Travel3)
    assert loaded.value == Travel3("Ana", "Berg", 2)
    assert (loaded.revision, loaded.version, loaded.migrated_from) == (1, 3, 1)


@pytest.mark.usefixtures("any_engine")
def test_loading_leaves_the_stored_bytes_as_they_were(old: Open) -> None:
    thread = old(todays_code())
    before = stored(thread)
    thread.state(Travel3)
    thread.state()
    thread.state(Travel3, on_stale="raise")
    thread.refresh(Travel3)
    assert stored(thread) == before
    assert [revision.version for revision in thread.revisions()] == [1]


def test_the_next_save_writes_the_new_form_and_keeps_the_old_revision(old: Open) -> None:
    thread = old(todays_code())
    before = stored(thread)
    loaded = thread.state(Travel3)
    thread.save(loaded.value)
    assert thread.state(Travel3).migrated_from is None
    assert [(revision.number, revision.version) for revision in thread.revisions()] == [(1, 1), (2, 3)]
    assert stored(thread)[:1] == before
    assert thread.state(dict, revision=1).value == OLD


@pytest.mark.usefixtures("any_engine")
def test_an_old_revision_is_migrated_as_it_is_read(old: Open) -> None:
    thread = old(todays_code())
    thread.save(Travel3("Ben", "Dahl"), expect="any")
    assert thread.state(Travel3, revision=1).value == Travel3("Ana", "Berg", 2)


@pytest.mark.usefixtures("any_engine")
def test_a_patch_of_an_old_state_saves_the_new_form(old: Open) -> None:
    thread = old(todays_code())
    thread.patch("seats", 5)
    assert thread.state(Travel3).value == Travel3("Ana", "Berg", 5)
    assert thread.revisions()[-1].version == 3


@pytest.mark.usefixtures("any_engine")
def test_a_migration_gets_a_copy_to_do_with_as_it_likes(old: Open) -> None:
    thread = old(todays_code())
    assert thread.state(Travel3).value == thread.state(Travel3).value
    assert thread.state(dict).value == OLD


@pytest.mark.usefixtures("any_engine")
def test_a_state_without_a_schema_comes_under_one_by_its_migration_from_zero(running: Open) -> None:
    running(holdfast.Registry()).save({"name": "Ana Berg"})
    schemas = todays_code()
    schemas.migration("travel", 0, 1)(lambda old: old)
    thread = running(schemas)
    loaded = thread.state(Travel3)
    assert (loaded.value, loaded.migrated_from, loaded.schema) == (Travel3("Ana", "Berg", 2), 0, "travel")
    thread.save(loaded.value)
    assert thread.state().value == Travel3("Ana", "Berg", 2)


@pytest.mark.usefixtures("any_engine")
def test_without_such_a_migration_a_plain_state_is_not_taken_for_another(running: Open) -> None:
    running(holdfast.Registry()).save({"name": "Ana Berg"})
    with pytest.raises(errors.MigrationMissing) as caught:
        running(todays_code()).state(Travel3)
    assert (caught.value.thread, caught.value.revision, caught.value.from_version) == ("trip-42", 1, 0)


# Errors: each names thread and revision, and touches nothing


def unknown() -> holdfast.Registry:
    return holdfast.Registry()


def too_old_a_program() -> holdfast.Registry:
    return first_code()


def with_a_hole() -> holdfast.Registry:
    schemas = holdfast.Registry()
    schemas.schema("travel", version=3)(Travel3)
    schemas.migration("travel", 1, 2)(lambda old: old)
    return schemas


def with_a_failing_migration() -> holdfast.Registry:
    schemas = holdfast.Registry()
    schemas.schema("travel", version=2)(Travel3)
    schemas.migration("travel", 1, 2)(lambda old: {"first": old["no such field"]})
    return schemas


def with_a_migration_to_nothing() -> holdfast.Registry:
    schemas = holdfast.Registry()
    schemas.schema("travel", version=2)(Travel3)
    schemas.migration("travel", 1, 2)(lambda old: None)  # type: ignore[arg-type, return-value]
    return schemas


def with_a_wrong_type() -> holdfast.Registry:
    schemas = holdfast.Registry()
    schemas.schema("travel", version=2)(Travel3)
    schemas.migration("travel", 1, 2)(lambda old: {"first": "Ana", "last": ["Berg"]})
    return schemas


def with_a_field_left_over() -> holdfast.Registry:
    schemas = holdfast.Registry()
    schemas.schema("travel", version=2)(Travel3)
    schemas.migration("travel", 1, 2)(lambda old: {**old, "first": "Ana", "last": "Berg"})
    return schemas


PROGRAMS: list[tuple[Callable[[], holdfast.Registry], type[errors.SchemaError], dict[str, Any]]] = [
    (unknown, errors.SchemaUnknown, {"schema": "travel"}),
    (with_a_hole, errors.MigrationMissing, {"from_version": 2, "to_version": 3}),
    (with_a_failing_migration, errors.MigrationFailed, {"from_version": 1, "to_version": 2}),
    (with_a_migration_to_nothing, errors.MigrationFailed, {"from_version": 1, "to_version": 2}),
    (with_a_wrong_type, errors.StateInvalid, {"field": "last", "version": 2}),
    (with_a_field_left_over, errors.StateInvalid, {"field": "name", "version": 2}),
]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize(("program", "error", "facts"), PROGRAMS, ids=lambda part: getattr(part, "__name__", ""))
def test_a_state_that_does_not_fit_is_an_error_that_names_the_place(
    old: Open, program: Callable[[], holdfast.Registry], error: type[errors.SchemaError], facts: dict[str, Any]
) -> None:
    thread = old(program())
    before = stored(thread)
    with pytest.raises(error, match="thread 'trip-42', revision 1") as caught:
        thread.state()
    assert {"thread": "trip-42", "revision": 1, **facts}.items() <= caught.value.facts.items()
    for write in (lambda: thread.patch("first", "Eva"), thread.refresh):
        with pytest.raises(error):
            write()
    assert stored(thread) == before
    assert thread.state(dict).value == OLD


@pytest.mark.usefixtures("any_engine")
def test_a_state_from_newer_code_is_refused_and_cannot_be_overwritten(running: Open) -> None:
    running(todays_code()).save(Travel3("Ana", "Berg"))
    thread = running(first_code())
    before = stored(thread)
    with pytest.raises(errors.SchemaTooNew, match="thread 'trip-42', revision 1") as caught:
        thread.state(Travel1)
    assert (caught.value.version, caught.value.known) == (3, 1)
    for expect in (1, "any"):
        with pytest.raises(errors.SchemaTooNew):
            thread.save(Travel1("Eva"), expect=expect)
    assert stored(thread) == before


@pytest.mark.usefixtures("any_engine")
def test_a_dict_after_a_schema_that_this_program_does_not_know_names_the_revision(old: Open) -> None:
    with pytest.raises(errors.SchemaUnknown, match="thread 'trip-42', revision 1") as caught:
        old(unknown()).save({"name": "Eva"}, expect=1)
    assert caught.value.revision == 1


@pytest.mark.usefixtures("any_engine")
def test_a_value_that_does_not_fit_is_not_saved(running: Open) -> None:
    thread = running(first_code())
    with pytest.raises(errors.StateInvalid, match="thread 'trip-42', revision 1: name does not fit") as caught:
        thread.save(Travel1(name=5))  # type: ignore[arg-type]
    assert (caught.value.thread, caught.value.revision, caught.value.field) == ("trip-42", 1, "name")
    assert not thread.exists()


# A plain dict and a type: what a handle loaded, it writes


class Trip(TypedDict):
    stops: list[str]


def trips() -> holdfast.Registry:
    schemas = holdfast.Registry()
    schemas.schema("trip", version=1, fresh={"stops": "1d"})(Trip)
    schemas.migration("trip", 0, 1)(lambda old: {"stops": [old["to"]]})
    return schemas


def _in_a_turn(thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.save({"stops": ["LIS"]})


def _in_a_step(thread: holdfast.Thread) -> None:
    with thread.run("book") as run:
        run.step("stop", lambda: holdfast.current_step().patch("stops[0]", "LIS"), effect="pure")


WRITES: dict[str, Callable[[holdfast.Thread], Any]] = {
    "save": lambda thread: thread.save({"stops": ["LIS"]}),
    "save over any": lambda thread: thread.save({"stops": ["LIS"]}, expect="any"),
    "turn": _in_a_turn,
    "step": _in_a_step,
    "patch": lambda thread: thread.patch("stops[0]", "LIS"),
    "confirm": lambda thread: thread.confirm("stops"),
}


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("how", WRITES)
def test_a_plain_dict_that_was_loaded_as_a_type_is_written_as_that_and_not_migrated_twice(
    running: Open, how: str
) -> None:
    thread = running(trips())
    thread.save({"to": "LIS"})
    assert thread.state(Trip).migrated_from == 0
    WRITES[how](thread)
    again = running(trips()).state(Trip)
    assert (again.value, again.migrated_from, again.version) == ({"stops": ["LIS"]}, None, 1)


@pytest.mark.usefixtures("any_engine")
def test_a_state_that_was_looked_for_as_a_type_begins_as_that_type(running: Open) -> None:
    thread = running(trips())
    begun = thread.state(Trip, default={"stops": []}).value
    thread.save({**begun, "stops": ["LIS"]})
    assert running(trips()).state(Trip).value == {"stops": ["LIS"]}


@pytest.mark.usefixtures("any_engine")
def test_a_state_that_was_loaded_as_stored_is_saved_as_stored(running: Open) -> None:
    thread = running(trips())
    thread.save({"to": "LIS"})
    thread.state(Trip)
    thread.save(thread.state(dict).value)
    assert running(trips()).state(Trip).migrated_from == 0


def test_a_field_that_was_never_stored_is_named(ram: holdfast.Store) -> None:
    """The type fills it in; that is no error, and must not look like somebody's word."""

    class Before(msgspec.Struct):
        name: str
        at: dict[str, int] = {}

    class Later(msgspec.Struct):
        name: str
        at: dict[str, int] = {}
        seat: str | None = None

    def thread(kind: type) -> holdfast.Thread:
        schemas = holdfast.Registry()
        schemas.schema("s", version=1)(kind)
        return holdfast.Store(Wiring(ram.core._replace(schemas=schemas))).thread("t")

    thread(Before).save(Before("Ana", {"x": 1}))
    loaded = thread(Later).state(Later)
    assert (loaded.value, loaded.defaulted) == (Later("Ana", {"x": 1}), ("seat",))
    assert thread(Before).state(Before).defaulted == ()
    thread(Later).save(loaded.value, expect=loaded.revision)
    assert thread(Later).state(Later).defaulted == ()
