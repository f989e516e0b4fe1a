"""What rooms and adapters stand on: the books of files and threads, whose operations join one commit with others, and
the one way to insist on a write that somebody else may overtake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import errors
from holdfast.clock import to_datetime
from holdfast.engine.contract import Append, Op
from holdfast.ledger import log
from holdfast.ledger.core import Pending, compare_and_set
from holdfast.ledger.files import FileBook, FileDelete, FileWrite, path_of
from holdfast.ledger.folder import Folder
from holdfast.ledger.thread import LogBook
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring


@pytest.fixture
def notes(store: holdfast.Store) -> Folder:
    return store.folder("notes", user="ana")


@pytest.fixture
def files(notes: Folder) -> FileBook:
    return notes.filebook


@pytest.fixture
def logbook(store: holdfast.Store) -> LogBook:
    return store.thread("trip", user="ana", tags=["travel"]).logbook


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


class Overtaken:
    """An engine on which somebody else commits first, as often as there are things to do."""

    def __init__(self, engine: Any, happening: list[Callable[[], Any]]) -> None:
        self._engine, self._happening = engine, happening

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def commit(self, *args: Any) -> Any:
        if self._happening:
            self._happening.pop(0)()
        return self._engine.commit(*args)


def overtaken(store: holdfast.Store, *happening: Callable[[], Any]) -> Folder:
    engine: Any = Overtaken(store.core.engine, list(happening))
    return holdfast.Store(Wiring(store.core._replace(engine=engine))).folder("notes", user="ana")


# Insisting


def test_who_was_overtaken_prepares_anew() -> None:
    numbers, tried = iter([1, 2, 3, 4]), list[int]()

    def commit(number: int) -> str:
        tried.append(number)
        if number < 3:
            raise errors.Conflict("somebody was faster")
        return f"at {number}"

    assert compare_and_set(lambda: next(numbers), commit, "it") == "at 3"
    assert tried == [1, 2, 3]


def test_what_keeps_changing_is_a_conflict_that_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.ledger.core._TRIES", 4)
    tried = list[int]()

    def commit(_: int) -> None:
        tried.append(1)
        raise errors.Conflict("somebody was faster")

    with pytest.raises(errors.Conflict, match="file 'a' keeps changing: try again") as caught:
        compare_and_set(int, commit, "file 'a'", path="a")
    assert (len(tried), caught.value.path, str(caught.value.__cause__)) == (4, "a", "somebody was faster")


def test_a_refusal_is_not_tried_again() -> None:
    tried = list[str]()

    def refuse(error: errors.HoldfastError) -> Any:
        tried.append(error.code)
        raise error

    with pytest.raises(errors.Conflict, match="this must not be"):
        compare_and_set(lambda: refuse(errors.Conflict("this must not be")), lambda _: None, "it")
    with pytest.raises(errors.Invalid):
        compare_and_set(lambda: errors.Invalid("nor this"), refuse, "it")
    assert tried == ["conflict", "invalid"]


def test_a_write_without_operations_is_no_commit(store: holdfast.Store) -> None:
    before = list(store.watch(timeout_s=0))
    assert store.core.commit(Pending((), 7, lambda receipt: (receipt.events, receipt.time))) == ((), 7)
    assert list(store.watch(timeout_s=0)) == before


# Files


def test_a_change_of_a_file_joins_a_commit_with_other_things(
    store: holdfast.Store, notes: Folder, files: FileBook, logbook: LogBook, clock: ManualClock
) -> None:
    notes.write("a", 1)
    ops = files.ops(FileWrite("a", 2, tags=("t",)), files.record("a"), clock.now())
    append = logbook.append(log.drafts([said("hello")], "message", None), clock.now())
    before = len(list(store.watch(timeout_s=0)))
    logbook.commit((append, *ops))
    assert len(list(store.watch(timeout_s=0))) == before + 1
    assert (notes.read("a").content, notes.read("a").version, notes.files(tag="t")) == (2, 2, [notes.read("a")])
    assert [entry.content for entry in store.thread("trip").log()] == [said("hello")]


def test_operations_hold_for_the_file_as_it_was_read(notes: Folder, files: FileBook, logbook: LogBook) -> None:
    stale: list[list[Op]] = [files.ops(FileWrite("new", 1), files.record("new"), 1)]
    notes.write("new", "theirs")
    stale += [files.ops(change, files.record("new"), 1) for change in (FileWrite("new", 2), FileDelete("new"))]
    notes.write("new", "theirs again")
    for ops in stale:
        with pytest.raises(errors.Conflict):
            logbook.commit(ops)
    assert notes.read("new").content == "theirs again"


def test_an_expectation_is_refused_before_there_are_operations(notes: Folder, files: FileBook) -> None:
    notes.write("a", 1)
    with pytest.raises(errors.Conflict, match="is at version 1, not 0"):
        files.ops(FileWrite("a", 2, 0), files.record("a"), 1)
    assert files.ops(FileDelete("b"), files.record("b"), 1) == []
    with pytest.raises(errors.Conflict, match="is at version 0, not 1"):
        files.ops(FileDelete("b", 1), files.record("b"), 1)


def test_what_is_there_and_what_ever_was(
    notes: Folder, files: FileBook, store: holdfast.Store, clock: ManualClock
) -> None:
    notes.write("a/1", 1, tags=["t"])
    notes.write("a/2", 2)
    notes.write("b", 3, tags=["t"], expires=clock.now() + 5)
    notes.write("c", 4, tags=["t"])
    notes.delete("c")
    store.folder("others", user="ana").write("d", 5, tags=["t"])
    clock.advance(1)
    with store.core.engine.snapshot() as view:
        assert {path_of(record) for record in files.listed(view)} == {"a/1", "a/2"}
        assert {path_of(record) for record in files.listed(view, "a/", wanted=1)} == {"a/1", "a/2"}
        assert {path_of(record) for record in files.listed(view, tag="t")} == {"a/1"}
        assert [file.content for file in files.files([files.records(["a/2"])["a/2"]], view)] == [2]
    assert {path_of(record) for record in files.ever()} == {"a/1", "a/2", "b", "c"}
    assert {path: files.is_here(record) for path, record in files.records(["a/1", "b", "c", "d"]).items()} == {
        "a/1": True, "b": False, "c": False,
    }  # fmt: skip


def test_a_file_can_be_given_longer_to_live(
    store: holdfast.Store, notes: Folder, files: FileBook, logbook: LogBook, clock: ManualClock
) -> None:
    soon, late = clock.now() + 500_000, clock.now() + 60_000_000
    written = notes.write("a", 1, tags=["t"], expires=soon)
    record = files.record("a")
    assert record is not None
    later = files.prolonging(record, late)
    logbook.commit((later,))
    clock.advance(1)
    assert notes.files(tag="t") == [msgspec.structs.replace(written, expires=to_datetime(late))]
    assert not store.verify().problems
    prolonged = files.record("a")
    assert prolonged is not None
    assert (record.expires, prolonged.expires) == (soon, late)
    with pytest.raises(errors.Conflict):
        logbook.commit((later,))
    notes.move("a", "b")
    assert notes.paths() == ["b"]
    clock.advance(60)
    assert notes.paths() == []


@pytest.mark.every_engine
def test_several_files_are_erased_together_or_not_at_all(store: holdfast.Store, notes: Folder, files: FileBook) -> None:
    for path in ("a", "b", "c"):
        notes.write(path, f"the word of {path}")
    assert notes.search("word", 5).hits
    with pytest.raises(errors.Conflict):
        files.erase([FileDelete("a"), FileDelete("b", expect=7)])
    assert notes.paths() == ["a", "b", "c"]
    before = len(list(store.watch(timeout_s=0)))
    assert files.erase([FileDelete("a", expect=1), FileDelete("b"), FileDelete("never there")]) == 2
    changed = [commit for commit in list(store.watch(timeout_s=0))[before:] if commit.changes[0].kind == "file"]
    assert len(changed) == 1
    assert [path_of(record) for record in files.ever()] == ["c"]
    assert [hit.file.path for hit in notes.search("word", 5).hits if hit.file] == ["c"]
    assert files.erase([FileDelete("a")]) == 0


def test_a_repetition_under_a_key_that_was_overtaken_by_itself_is_no_conflict(
    store: holdfast.Store, notes: Folder
) -> None:
    """The first attempt was slow, and its caller has tried again meanwhile: it is one write, whoever gets through."""
    for version in (0, 1):
        key = f"from {version}"
        slow = overtaken(store, lambda version=version, key=key: notes.write("a", "it", expect=version, key=key))
        assert slow.write("a", "it", expect=version, key=key) == notes.read("a")
    assert len(notes.history("a")) == 2


@pytest.mark.every_engine
def test_who_expects_a_version_hears_that_it_was_overtaken(store: holdfast.Store, notes: Folder) -> None:
    with pytest.raises(errors.Conflict, match="file 'a' of folder 'notes' is at version 1, not 0"):
        overtaken(store, lambda: notes.write("a", "theirs")).write("a", "ours", expect=0)
    first, second = (lambda: notes.write("a", "again")), (lambda: notes.delete("a"))
    assert overtaken(store, first, second).write("a", "ours").version == 4
    assert notes.read("a").content == "ours"


def test_a_file_that_never_stops_changing_is_a_conflict(
    store: holdfast.Store, notes: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.ledger.core._TRIES", 3)
    busy = overtaken(store, *[lambda: notes.write("a", "theirs")] * 3)
    with pytest.raises(errors.Conflict, match="folder 'notes' keeps changing: try again"):
        busy.write("a", "ours")
    assert notes.version("a") == 3


# Threads


def test_a_thread_begins_with_whatever_touches_it(store: holdfast.Store, logbook: LogBook) -> None:
    assert logbook.record() is None
    with pytest.raises(errors.NotFound):
        logbook.existing()
    logbook.commit((logbook.touch(),))
    info = store.thread("trip").info()
    assert (info.user, info.tags, info.entries) == ("ana", ("travel",), 0)
    assert logbook.record() == logbook.existing() == logbook.with_state()[0]


@pytest.mark.every_engine
def test_the_thread_and_its_state_are_of_one_moment(store: holdfast.Store, logbook: LogBook) -> None:
    thread = store.thread("trip", user="ana")
    thread.append(said("one"), key="k")
    assert logbook.with_state()[1] is None
    thread.save({"n": 1})
    with store.core.engine.snapshot() as view:
        thread.append(said("two"))
        thread.save({"n": 2})
        record, state = logbook.with_state(view)
    assert state is not None
    assert (record.head, state.head) == (1, 1)
    by_key, by_number = logbook.event(record, key="k"), logbook.event(record, 1)
    assert by_key is not None
    assert by_key == by_number
    assert logbook.event(record, 2) is logbook.event(record, key="none") is None


def test_entries_hold_what_they_held_when_the_commit_was_prepared(logbook: LogBook) -> None:
    item = said("before")
    pending = logbook.appending(log.drafts([item], "message", None), 0)
    item["content"] = "after"
    entry: Any = logbook.core.commit(pending)
    assert (entry.content, entry.number) == (said("before"), 1)
    with pytest.raises(errors.Conflict):
        logbook.core.commit(logbook.appending(log.drafts([item], "message", None), 0))
    with pytest.raises(errors.Invalid):
        logbook.append([], 1, -1)


def test_a_book_opens_for_its_owner_alone(store: holdfast.Store, logbook: LogBook) -> None:
    logbook.commit((logbook.touch(),))
    eves = store.thread("trip", user="eve").logbook
    for attempt in (eves.record, eves.existing, eves.with_state, lambda: eves.commit((eves.touch(),))):
        with pytest.raises(errors.Invalid, match="belongs to user 'ana', not 'eve'"):
            attempt()
    assert isinstance(eves.touch(), Append)
