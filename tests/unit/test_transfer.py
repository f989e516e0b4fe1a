"""What leaves a store comes back as it was, into any engine, once; and what cannot come back changes nothing."""

from __future__ import annotations

import io
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.archive import (
    Selection,
    check_archive,
    contents,
    export,
    import_archive,
    importing,
    restore_engine,
    restore_file,
    write_backup,
)
from holdfast.engine.codec import encode
from holdfast.engine.contract import Append, Engine, Event, Fork, Put, Query, Scope, View
from holdfast.engine.registry import open_engine
from holdfast.errors import (
    Conflict,
    Corrupt,
    HoldfastError,
    Invalid,
    Misconfigured,
    NotFound,
    Unavailable,
)
from holdfast.ledger.core import Core
from holdfast.ledger.schema import Registry
from holdfast.store import Store
from holdfast.testing import ManualClock, SeededIds
from holdfast.wiring import Wiring

FORMATS = ("json", "yaml", "msgpack")
KINDS = ("thread", "state", "checkpoint")
EVERYTHING = Selection()

Make = Callable[[], Engine]


def ram(seed: int = 0) -> Engine:
    return open_engine("ram:", ManualClock(), SeededIds(seed))


@pytest.fixture(params=["ram", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes empty engines of one kind."""
    made: list[Engine] = []

    def one() -> Engine:
        url = "ram:" if request.param == "ram" else str(tmp_path / f"{len(made)}.db")
        made.append(open_engine(url, ManualClock(), SeededIds(len(made))))
        return made[-1]

    yield one
    for engine in made:
        engine.close()


def picture(engine: View) -> dict[str, Any]:
    """All that can be read of a store, without going through the room that is tested."""
    found: dict[str, Any] = {}
    for tenant in engine.tenants():
        for kind in KINDS:
            for record in engine.scan(tenant, Query(kind, limit=10_000)):
                log = engine.read(tenant, record.mark) if record.stream is not None else []
                found[f"{tenant}/{kind}/{record.id}"] = (record, log)
    return found


def archive_of(engine: Engine, selection: Selection = EVERYTHING, fmt: str = "msgpack") -> bytes:
    out = io.BytesIO()
    with engine.snapshot() as view:
        export(view, selection, out, fmt, time=1)
    return out.getvalue()


def say(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def opened(engine: Engine, tenant: str = "default") -> Store:
    """A store over an engine that is already there."""
    return Store(Wiring(Core(engine, tenant, ManualClock(), Registry())))


def fill(engine: Engine, tenant: str = "default") -> Store:
    """Two users; a thread with states, checkpoints, a rewind and a fork that belongs to someone else."""
    store = opened(engine, tenant)
    trip = store.thread("trip", user="ana", agent="travel", tags=["b", "a"])
    trip.append(say("one"), say("two"), say("three"))
    trip.save({"seat": "aisle"})
    trip.checkpoint("early")
    trip.append(say("four"), key="four")
    trip.save({"seat": "window"})
    trip.checkpoint("late")
    store.thread("trip").fork("trip-b", at="early", user="bob").append(say("other"))
    trip.append(say("SECRET"))
    trip.rewind("early")
    trip.append(say("again"))
    store.thread("plain", user="bob").append(say("hello"))
    return store


# Round trips


@pytest.mark.parametrize("fmt", FORMATS)
def test_everything_comes_back_as_it_was(make: Make, fmt: str) -> None:
    source, target = make(), make()
    fill(source)
    fill(source, "other")
    report = import_archive(target, archive_of(source, fmt=fmt), time=5)
    assert picture(target) == picture(source)
    assert target.check() == []
    assert (report.threads, report.updated, report.skipped, report.dry_run) == (6, 0, 0, False)
    assert report.records == report.manifest.counts.records == len(picture(source))
    assert report.events == report.manifest.counts.events


def test_the_thread_goes_on_after_it_moved(make: Make) -> None:
    source, target = make(), make()
    fill(source)
    import_archive(target, archive_of(source), time=5)
    thread = opened(target).thread("trip")
    assert [entry.content["content"] for entry in thread.log()] == ["one", "two", "three", "again"]
    assert thread.state().value == {"seat": "aisle"}
    thread.rewind("late")
    assert thread.append(say("four"), key="four").number == 4
    assert thread.append(say("five")).number == 5
    assert thread.state().value == {"seat": "window"}
    assert target.check() == []


steps = st.one_of(
    st.tuples(
        st.just("append"),
        st.integers(0, 3),
        st.text(max_size=20),
        st.one_of(st.none(), st.text("xyz", min_size=1, max_size=2)),
    ),
    st.tuples(
        st.just("save"),
        st.integers(0, 3),
        st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    ),
    st.tuples(st.just("checkpoint"), st.integers(0, 3), st.sampled_from("pqr")),
    st.tuples(st.just("rewind"), st.integers(0, 3), st.sampled_from("pqr")),
    st.tuples(st.just("fork"), st.integers(0, 3), st.integers(0, 3)),
)


def play(store: Store, program: list[Any]) -> None:
    """Carry out steps; those that make no sense at that point are passed over."""
    for verb, number, *rest in program:
        thread = store.thread(f"t{number}", user=f"u{number % 2}")
        try:
            match verb:
                case "append":
                    thread.append(say(rest[0]), key=rest[1])
                case "fork":
                    thread.fork(f"t{rest[0]}")
                case "checkpoint":
                    thread.checkpoint(rest[0], replace=True)
                case _:
                    getattr(thread, verb)(rest[0])
        except HoldfastError:
            continue


@settings(max_examples=settings().max_examples // 3)
@given(program=st.lists(steps, max_size=25), fmt=st.sampled_from(FORMATS))
def test_any_history_crosses_engines_unchanged(program: list[Any], fmt: str) -> None:
    source, target = ram(1), ram(2)
    play(opened(source), program)
    with tempfile.TemporaryDirectory() as folder:
        between = open_engine(str(Path(folder) / "between.db"), ManualClock(), SeededIds(3))
        try:
            import_archive(between, archive_of(source, fmt=fmt), time=5)
            assert between.check() == []
            import_archive(target, archive_of(between, fmt=fmt), time=5)
        finally:
            between.close()
    assert picture(target) == picture(source)
    assert archive_of(target, fmt=fmt) == archive_of(source, fmt=fmt)


@settings(max_examples=settings().max_examples // 3)
@given(program=st.lists(steps, max_size=25), thread=st.integers(0, 3))
def test_any_thread_crosses_alone_and_with_its_family(program: list[Any], thread: int) -> None:
    source, target = ram(1), ram(2)
    play(opened(source), program)
    here = picture(source)
    if f"default/thread/t{thread}" not in here:
        return
    import_archive(target, archive_of(source, Selection("default", thread=f"t{thread}")), time=5)
    found = picture(target)
    assert found == {name: seen for name, seen in here.items() if seen[0].scope.thread == f"t{thread}"}
    import_archive(target, archive_of(source), time=6)
    assert picture(target) == here


# Once is enough


def test_importing_again_changes_nothing(make: Make) -> None:
    source, target = make(), make()
    fill(source)
    data = archive_of(source)
    import_archive(target, data, time=5)
    before, feed = picture(target), target.feed("default", limit=1000)
    report = import_archive(target, data, time=6)
    assert (report.threads, report.records, report.events, report.updated) == (0, 0, 0, 0)
    assert report.skipped == report.manifest.counts.records
    assert picture(target) == before
    assert target.feed("default", limit=1000) == feed
    assert import_archive(source, data, time=7).skipped == report.skipped


def test_what_grew_since_is_brought_up_to_date(make: Make) -> None:
    source, target = make(), make()
    store = fill(source)
    import_archive(target, archive_of(source), time=5)
    older = archive_of(source)
    store.thread("trip").append(say("more"))
    store.thread("new").append(say("first"))
    report = import_archive(target, archive_of(source), time=6)
    assert (report.threads, report.records, report.events, report.updated) == (1, 1, 2, 1)
    assert picture(target) == picture(source)
    assert import_archive(target, older, time=7).updated == 0
    assert picture(target) == picture(source)


def test_a_dry_run_tells_and_does_nothing(make: Make) -> None:
    source, target = make(), make()
    fill(source)
    data = archive_of(source)
    told = import_archive(target, data, time=5, dry_run=True)
    assert told.dry_run
    assert picture(target) == {}
    assert msgspec.structs.replace(told, dry_run=False) == import_archive(target, data, time=5)


def test_progress_is_told_for_each_stage(make: Make) -> None:
    source, target = make(), make()
    fill(source)
    calls: list[tuple[str, int, int]] = []
    import_archive(target, archive_of(source), time=5, progress=lambda *call: calls.append(call))
    assert [call for call in calls if call[0] == "check"] == [("check", n, 0) for n in (1, 2, 3)]
    assert calls[-2:] == [("plan", 3, 3), ("import", 3, 3)]


# Refusals


def test_a_thread_that_went_another_way_is_named(make: Make) -> None:
    source, target = make(), make()
    store = fill(source)
    import_archive(target, archive_of(source), time=5)
    opened(target).thread("trip").append(say("here"))
    store.thread("trip").append(say("there"))
    store.thread("aaa-new").append(say("not to be imported"))
    before = picture(target)
    for dry_run in (True, False):
        with pytest.raises(Conflict, match=r"thread 'trip'.*entry 5") as caught:
            import_archive(target, archive_of(source), time=6, dry_run=dry_run)
        assert caught.value.id == "trip"
    assert picture(target) == before


def test_a_thread_begun_elsewhere_under_the_same_name_is_a_conflict(make: Make) -> None:
    source, target = make(), make()
    fill(source)
    opened(target).thread("plain").append(say("mine"))
    before = picture(target)
    with pytest.raises(Conflict, match="'plain'"):
        import_archive(target, archive_of(source), time=5)
    assert picture(target) == before


def test_what_was_erased_stays_erased(make: Make) -> None:
    source, target = make(), make()
    fill(source)
    data = archive_of(source)
    import_archive(target, data, time=5)
    opened(target).erase(thread="plain")
    before = picture(target)
    for dry_run in (True, False):
        report = import_archive(target, data, time=6, dry_run=dry_run)
        assert report.erased > 0
        assert (report.records, report.events) == (0, 0)
    assert picture(target) == before


def test_a_thread_that_comes_back_owns_its_history_again(make: Make) -> None:
    """After an erasure a fork keeps the shared history without a name; the imported owner must not lose it with it."""
    source, target = make(), make()
    store = opened(source)
    store.thread("parent").append(say("1"), say("2"))
    store.thread("parent").fork("child")
    data = archive_of(source)
    import_archive(target, data, time=5)
    opened(target).erase(thread="parent", forever=False)
    import_archive(target, data, time=6)
    opened(target).erase(thread="child")
    with target.snapshot() as view:
        (parent,) = view.scan("default", Query("thread"))
        assert len(view.read("default", parent.mark)) == parent.head == 2


def test_a_thread_erased_and_imported_again_is_whole(make: Make) -> None:
    source, target = make(), make()
    opened(source).thread("trip").append(say("1"), say("2"))
    import_archive(target, archive_of(source), time=5)
    opened(target).erase(thread="trip", forever=False)
    opened(target).thread("other").append(say("x"))
    import_archive(target, archive_of(source), time=6)
    assert [entry.content["content"] for entry in opened(target).thread("trip").log()] == ["1", "2"]
    assert target.check() == []


def test_an_import_follows_a_rewind_at_the_source(make: Make) -> None:
    source, target = make(), make()
    thread = opened(source).thread("trip")
    thread.append(say("1"), say("2"))
    import_archive(target, archive_of(source), time=5)
    thread.rewind(1)
    thread.append(say("3"))
    import_archive(target, archive_of(source), time=6)
    assert [entry.content["content"] for entry in opened(target).thread("trip").log()] == ["1", "3"]
    assert target.check() == []


def test_an_older_archive_does_not_undo_a_rewind_here(make: Make) -> None:
    source = make()
    thread = opened(source).thread("trip")
    thread.append(say("1"), say("2"))
    older = archive_of(source)
    thread.rewind(1)
    import_archive(source, older, time=6)
    assert thread.logbook.head() == 1


def test_both_sides_gone_on_after_a_rewind_are_a_conflict(make: Make) -> None:
    source, target = make(), make()
    thread = opened(source).thread("trip")
    thread.append(say("1"), say("2"))
    import_archive(target, archive_of(source), time=5)
    thread.rewind(1)
    opened(target).thread("trip").append(say("here"))
    with pytest.raises(Conflict, match="rewound separately"):
        import_archive(target, archive_of(source), time=6)


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_damaged_archive_imports_nothing(fmt: str) -> None:
    source, target = ram(1), ram(2)
    fill(source)
    data = archive_of(source, fmt=fmt)
    for damaged in (data[:-5], data.replace(b"hello", b"hellp"), data[: len(data) // 2]):
        with pytest.raises(Corrupt):
            import_archive(target, damaged, time=5)
    assert target.tenants() == []


def test_a_damaged_store_gives_no_archive() -> None:
    engine = ram()
    fill(engine)
    (stream,) = [record.stream for record in engine.scan("default", Query("thread")) if record.id == "plain"]
    own = engine._tenants["default"].events[stream]  # type: ignore[attr-defined]
    own._events[0] = msgspec.structs.replace(own._events[0], body=encode("forged"))
    with pytest.raises(Corrupt, match=r"the store is damaged: .*thread 'plain': entry 1 was changed"):
        archive_of(engine)


# Large archives


def test_a_large_archive_is_committed_in_batches(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH_EVENTS", 1)
    source, target = make(), make()
    fill(source)
    data = archive_of(source)
    import_archive(target, data, time=5)
    assert len(target.feed("default", limit=100)) == 3
    assert picture(target) == picture(source)
    monkeypatch.setattr(importing, "BATCH_EVENTS", 1000)
    monkeypatch.setattr(importing, "BATCH_BYTES", 10)
    assert import_archive(target, data, time=6).events == 0


def test_conflicts_are_found_before_the_first_batch(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH_EVENTS", 1)
    source, target = make(), make()
    fill(source)
    opened(target).thread("plain").append(say("mine"))
    before = picture(target)
    with pytest.raises(Conflict, match="'plain'"):
        import_archive(target, archive_of(source), time=5)
    assert picture(target) == before


class Failing:
    """An engine whose store becomes unavailable after some commits."""

    def __init__(self, engine: Engine, commits: int) -> None:
        self._engine = engine
        self._left = commits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def commit(self, *args: Any) -> Any:
        if not self._left:
            raise Unavailable
        self._left -= 1
        return self._engine.commit(*args)


def test_an_interrupted_import_is_finished_by_repeating_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH_EVENTS", 1)
    source, target = make(), make()
    fill(source)
    for commits in (0, 1, 2):
        with pytest.raises(Unavailable):
            import_archive(Failing(target, commits), archive_of(source), time=5)  # type: ignore[arg-type]
        assert target.check() == []
    import_archive(target, archive_of(source), time=6)
    assert picture(target) == picture(source)


# What is selected


def test_a_thread_takes_its_abandoned_branches_along() -> None:
    source, target = ram(1), ram(2)
    fill(source)
    data = archive_of(source, Selection("default", thread="trip"), "json")
    assert check_archive(data).counts.threads == 1
    import_archive(target, data, time=5)
    trip = opened(target).thread("trip")
    trip.rewind("late")
    assert [entry.content["content"] for entry in trip.log()] == ["one", "two", "three", "four"]
    assert b"SECRET" in data  # the thread's own, though it was rewound away


def test_a_fork_takes_only_what_it_shares() -> None:
    source, target = ram(1), ram(2)
    fill(source)
    data = archive_of(source, Selection("default", thread="trip-b"), "json")
    assert b"SECRET" not in data
    assert b"four" not in data
    import_archive(target, data, time=5)
    assert [entry.content["content"] for entry in opened(target).thread("trip-b").log()] == [
        "one",
        "two",
        "three",
        "other",
    ]
    assert opened(target).threads() == opened(target).threads(user="bob")


def test_a_user_takes_all_their_threads_and_no_others() -> None:
    source, target = ram(1), ram(2)
    fill(source)
    import_archive(target, archive_of(source, Selection("default", user="bob")), time=5)
    assert {info.id for info in opened(target).threads()} == {"trip-b", "plain"}
    assert {name for name, (record, _) in picture(source).items() if record.scope.user == "bob"} == set(picture(target))


def test_records_of_a_users_thread_go_even_if_they_do_not_name_the_user() -> None:
    source = ram()
    note = Put("checkpoint", "note", encode({"log": None}), scope=Scope(thread="plain"))
    fill(source)
    source.commit("default", [note], 9)
    assert check_archive(archive_of(source, Selection("default", user="bob"))).counts.checkpoints == 1


def test_what_is_not_there_cannot_be_exported() -> None:
    engine = ram()
    fill(engine)
    for selection, error in (
        (Selection("default", thread="absent"), NotFound),
        (Selection("default", user="absent"), NotFound),
        (Selection("default", thread="trip", user="ana"), Invalid),
        (Selection(thread="trip"), Invalid),
        (Selection(user="ana"), Invalid),
        (Selection(""), Invalid),
    ):
        with pytest.raises(error):
            archive_of(engine, selection)
    assert check_archive(archive_of(engine, Selection("nobody"))).sections == 0
    with pytest.raises(Invalid, match="json, yaml or msgpack"):
        archive_of(engine, fmt="xml")


def test_other_kinds_go_when_they_are_named() -> None:
    source, target = ram(1), ram(2)
    source.commit("default", [Put("index", "m", encode("aisle seats"), scope=Scope("ana"))], 5)
    assert check_archive(archive_of(source)).counts.records == 0
    import_archive(target, archive_of(source, Selection("default", user="ana", kinds=("index",))), time=5)
    assert target.get("default", "index", "m") == source.get("default", "index", "m")


def test_expired_records_stay_behind() -> None:
    engine = ram()
    engine.commit("default", [Put("thread", "t", encode({}), expires=1)], 5)
    assert check_archive(archive_of(engine)).counts.records == 0


def test_many_records_are_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.archive.selection._PAGE", 3)
    source, target = ram(1), ram(2)
    store = opened(source)
    for number in range(10):
        store.thread(f"t{number}").append(*(say(str(n)) for n in range(number)), say("x"))
    import_archive(target, archive_of(source), time=5)
    assert picture(target) == picture(source)


def test_ancestors_come_first_whatever_the_clock_said(make: Make) -> None:
    source, target = make(), make()
    new = Put("thread", "parent", encode({}), scope=Scope(thread="parent"))
    source.commit("default", [Append("thread", "parent", (Event("note", encode(1), 900),), new=new)], 900)
    parent = source.get("default", "thread", "parent")
    assert parent is not None
    child = Put("thread", "child", encode({}), scope=Scope(thread="child"))
    source.commit("default", [Fork("thread", "child", parent.mark, new=child)], 100)
    import_archive(target, archive_of(source), time=5)
    assert picture(target) == picture(source)


def test_history_of_an_erased_parent_stays_with_its_fork(make: Make) -> None:
    source, target = make(), make()
    fill(source).erase(thread="trip")
    import_archive(target, archive_of(source), time=5)
    assert picture(target) == picture(source)


def test_the_manifest_names_schemas() -> None:
    engine = ram()
    body = encode({"schema": "travel", "version": 3, "value": {}})
    new = Put("state", "t", encode({}), scope=Scope(thread="t"))
    events = (Event("revision", body, 1), Event("revision", body, 2), Event("revision", encode({"schema": 7}), 3))
    engine.commit("default", [Append("state", "t", events, new=new)], 3)
    (schema,) = check_archive(archive_of(engine)).schemas
    assert (schema.name, schema.version, schema.revisions) == ("travel", 3, 2)


# A shared beginning must not outrun the thread it belongs to


def test_a_fork_may_not_carry_entries_that_its_parent_here_lacks(make: Make) -> None:
    source, target = make(), make()
    store = opened(source)
    store.thread("parent").append(say("1"))
    import_archive(target, archive_of(source), time=5)
    store.thread("parent").append(say("2"))
    store.thread("parent").fork("child")
    with pytest.raises(Conflict, match=r"thread 'parent' .* entry 2"):
        import_archive(target, archive_of(source, Selection("default", thread="child")), time=6)
    import_archive(target, archive_of(source), time=7)
    assert opened(target).thread("parent").append(say("3")).number == 3


def test_a_parent_may_not_come_in_shorter_than_what_a_fork_here_shares(make: Make) -> None:
    source, target = make(), make()
    store = opened(source)
    store.thread("parent").append(say("1"))
    older = archive_of(source)
    store.thread("parent").append(say("2"))
    store.thread("parent").fork("child")
    import_archive(target, archive_of(source, Selection("default", thread="child")), time=5)
    with pytest.raises(Conflict, match=r"thread 'parent' .* entry 2"):
        import_archive(target, older, time=6)
    import_archive(target, archive_of(source), time=7)
    assert picture(target) == picture(source)


# Tenants


def test_a_tenant_may_be_imported_under_another_name(make: Make) -> None:
    source, target = make(), make()
    fill(source)
    import_archive(target, archive_of(source), tenant="copy", time=5)
    import_archive(target, archive_of(source), tenant="second", time=5)
    assert target.tenants() == ["copy", "second"]
    renamed = {name.replace("copy/", "default/"): seen for name, seen in picture(target).items() if "copy/" in name}
    assert renamed == picture(source)


def test_several_tenants_cannot_become_one() -> None:
    source, target = ram(1), ram(2)
    fill(source)
    fill(source, "other")
    with pytest.raises(Invalid, match="2 tenants"):
        import_archive(target, archive_of(source), tenant="copy", time=5)
    with pytest.raises(Invalid):
        import_archive(target, archive_of(source, Selection("default")), tenant="", time=5)
    assert target.tenants() == []


# While others write


def test_an_export_is_of_one_moment(make: Make) -> None:
    source, target = make(), make()
    store = fill(source)
    expected = picture(source)
    with source.snapshot() as view:
        store.thread("trip").append(say("too late"))
        store.thread("late").append(say("too late"))
        out = io.BytesIO()
        export(view, EVERYTHING, out, "json", time=5)
    import_archive(target, out.getvalue(), time=6)
    assert picture(target) == expected


def test_exporting_beside_a_writer_always_gives_a_sound_archive(make: Make) -> None:
    source = make()
    store = fill(source)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            store.thread("trip").append(say("busy"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        entries = [check_archive(archive_of(source)).counts.entries for _ in range(10)]
    finally:
        done.set()
        writer.join()
    assert entries == sorted(entries)


# Backup and restore

CLOCK, IDS = ManualClock(), SeededIds(9)


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    engine = ram()
    fill(engine)
    fill(engine, "other")
    write_backup(engine, tmp_path / "store.backup", time=5)
    return tmp_path / "store.backup"


@pytest.fixture
def copy(tmp_path: Path, backup: Path) -> Path:
    """A backup that is a copy of an SQLite store."""
    engine = open_engine(str(tmp_path / "source.db"), CLOCK, IDS)
    import_archive(engine, backup, time=5)
    engine.backup(tmp_path / "copy.db")
    engine.close()
    return tmp_path / "copy.db"


def seen(path: Path) -> dict[str, Any]:
    engine = open_engine(str(path), CLOCK, IDS)
    try:
        assert engine.check() == []
        return picture(engine)
    finally:
        engine.close()


def wanted() -> dict[str, Any]:
    engine = ram()
    fill(engine)
    fill(engine, "other")
    return picture(engine)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_backup_holds_every_tenant_and_is_proved(backup: Path) -> None:
    manifest = check_archive(backup)
    assert (list(manifest.tenants), manifest.selection) == (
        ["default", "other"],
        Selection(kinds=(*contents.KINDS, contents.LEASE)),
    )
    assert leftovers(backup.parent) == []


def test_a_backup_never_overwrites(backup: Path) -> None:
    before = backup.read_bytes()
    with pytest.raises(Conflict, match="already exists"):
        write_backup(ram(), backup, time=6)
    assert backup.read_bytes() == before


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ram()
    fill(engine)

    def fail(*args: Any, **kwargs: Any) -> None:
        raise Corrupt

    monkeypatch.setattr("holdfast.archive.backup.check_archive", fail)
    with pytest.raises(Corrupt):
        write_backup(engine, tmp_path / "b", time=5)
    with pytest.raises(Unavailable):
        write_backup(engine, tmp_path / "absent" / "b", time=5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["backup", "copy"])
def test_either_kind_of_backup_restores_into_a_file(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    kept: Path = request.getfixturevalue(kind)
    before = kept.read_bytes()
    restored = restore_file(kept, tmp_path / "new.db", clock=CLOCK, ids=IDS)
    assert restored.tenants == ("default", "other")
    assert (restored.manifest is None) == (kind == "copy")
    assert seen(tmp_path / "new.db") == wanted()
    assert kept.read_bytes() == before
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("kind", ["backup", "copy"])
def test_either_kind_of_backup_restores_into_an_engine(kind: str, request: pytest.FixtureRequest) -> None:
    engine = ram(7)
    restored = restore_engine(request.getfixturevalue(kind), engine, clock=CLOCK)
    assert restored.tenants == ("default", "other")
    assert picture(engine) == wanted()


@pytest.mark.parametrize("kind", ["backup", "copy"])
def test_a_store_that_holds_data_is_not_restored_over(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    kept = request.getfixturevalue(kind)
    target = tmp_path / "mine.db"
    engine = open_engine(str(target), CLOCK, IDS)
    opened(engine).thread("mine").append(say("precious"))
    with pytest.raises(Conflict, match="holds data"):
        restore_engine(kept, engine, clock=CLOCK)
    with pytest.raises(Unavailable):  # it is open
        restore_file(kept, target, clock=CLOCK, ids=IDS, replace=True)
    assert len(picture(engine)) == 1
    assert restore_engine(kept, engine, clock=CLOCK, merge=True).tenants == ("default", "other")
    assert len(picture(engine)) == 1 + len(wanted())
    engine.close()
    with pytest.raises(Conflict, match="already exists"):
        restore_file(kept, target, clock=CLOCK, ids=IDS)
    restore_file(kept, target, clock=CLOCK, ids=IDS, replace=True)
    assert seen(target) == wanted()
    assert leftovers(tmp_path) == []


def test_a_store_too_damaged_to_open_can_be_replaced(copy: Path, tmp_path: Path) -> None:
    target = tmp_path / "broken.db"
    target.write_bytes(b"SQLite format 3\x00" + b"x" * 5000)
    Path(f"{target}-wal").write_bytes(b"y" * 5000)
    restore_file(copy, target, clock=CLOCK, ids=IDS, replace=True)
    assert seen(target) == wanted()


def test_a_damaged_backup_is_refused_and_the_old_store_stays(backup: Path, copy: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.db"
    engine = open_engine(str(target), CLOCK, IDS)
    opened(engine).thread("mine").append(say("precious"))
    engine.close()
    before = seen(target)
    whole = copy.read_bytes()
    broken = tmp_path / "broken"
    for data in (
        backup.read_bytes()[:-20],
        whole[: len(whole) // 2],
        whole.replace(b"hello", b"hellp"),
        whole[:4096] + bytes(8192) + whole[12288:],
    ):
        broken.write_bytes(data)
        with pytest.raises(Corrupt):
            restore_file(broken, target, clock=CLOCK, ids=IDS, replace=True)
        with pytest.raises(Corrupt):
            restore_engine(broken, ram(5), clock=CLOCK)
    assert seen(target) == before
    assert leftovers(tmp_path) == []


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    import sqlite3  # noqa: PLC0415 - only to make a database that is not ours

    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    (tmp_path / "text").write_text("hello")
    for path, error in ((other, Misconfigured), (tmp_path / "text", Invalid), (tmp_path / "absent", NotFound)):
        with pytest.raises(error):
            restore_file(path, tmp_path / "new.db", clock=CLOCK, ids=IDS)
        with pytest.raises(error):
            restore_engine(path, ram(), clock=CLOCK)
    with pytest.raises(HoldfastError):
        restore_file(tmp_path, tmp_path / "new.db", clock=CLOCK, ids=IDS)
    assert not (tmp_path / "new.db").exists()
