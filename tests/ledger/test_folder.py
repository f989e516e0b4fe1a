"""A folder keeps every version of its files, lets exactly one of several writers through, and finds what is in them."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

import holdfast
from holdfast import aio, errors
from holdfast.clock import to_datetime
from holdfast.engine.contract import Put
from holdfast.ledger.files import LONGEST_BYTES, FileDelete, FileWrite, text_of
from holdfast.ledger.folder import Folder
from holdfast.testing import ManualClock

Reopen = Callable[[], holdfast.Store]


@pytest.fixture
def notes(store: holdfast.Store) -> Folder:
    return store.folder("notes", user="ana")


def contents(folder: Folder) -> dict[str, Any]:
    return {file.path: file.content for file in folder.files()}


# Versions


def test_a_file_comes_back_as_it_was_written(notes: Folder, clock: ManualClock) -> None:
    written = notes.write("a.txt", "first", tags=["one", "two", "one"])
    assert notes.read("a.txt") == notes.find("a.txt") == written
    assert (written.path, written.content, written.version, written.folder) == ("a.txt", "first", 1, "notes")
    assert written.tags == ("one", "two")
    assert written.created == written.time


@pytest.mark.every_engine
@pytest.mark.parametrize(
    "content",
    ["", "text", "\x00 and \U0001f980", None, 0, 1.5, True, [], {}, {"a": [1, {"b": None}]}, b"", b"\x00\xff", b"text"],
)
def test_every_content_comes_back_with_its_type(notes: Folder, content: Any) -> None:
    notes.write("a", content)
    assert (type(notes.read("a").content), notes.read("a").content) == (type(content), content)


@pytest.mark.every_engine
def test_bytes_come_back_as_bytes_whatever_held_them(notes: Folder) -> None:
    notes.write("a", bytearray(b"one"))
    notes.write("b", memoryview(b"two"))
    assert contents(notes) == {"a": b"one", "b": b"two"}


def test_every_version_is_kept_with_its_tags_and_its_end(notes: Folder, clock: ManualClock) -> None:
    later = clock.now() + 60_000_000
    notes.write("a", 1, tags=["x"])
    notes.write("a", 2, expires=later)
    notes.delete("a")
    notes.write("a", b"4", tags=["y"])
    history = notes.history("a")
    assert [(file.version, file.content, file.tags, file.deleted) for file in history] == [
        (1, 1, ("x",), False), (2, 2, (), False), (3, None, (), True), (4, b"4", ("y",), False),
    ]  # fmt: skip
    assert [file.expires is None for file in history] == [True, False, True, True]
    assert [notes.read("a", version=number).content for number in (1, 2, 4)] == [1, 2, b"4"]
    for number in (0, 3, 5, -1):
        with pytest.raises(errors.NotFound):
            notes.read("a", version=number)


def test_what_is_not_there_is_not_found(notes: Folder) -> None:
    assert notes.find("a") is None
    assert notes.version("a") == 0
    assert notes.history("a") == []
    assert (notes.files(), notes.paths()) == ([], [])
    assert notes.delete("a") is False
    assert notes.delete("a", erase=True) is False
    assert notes.history("a") == []
    with pytest.raises(errors.NotFound, match="'a' in folder 'notes'"):
        notes.read("a")


def test_folders_of_others_are_others(store: holdfast.Store) -> None:
    folders = [
        store.folder("notes"), store.folder("notes", user="ana"), store.folder("notes", agent="ana"),
        store.folder("notes", user="ana", agent="ana"), store.folder("more", user="ana"),
        store.folder("notes", user="bo"),
    ]  # fmt: skip
    for number, folder in enumerate(folders):
        folder.write("a", number, expect=0)
    assert [folder.read("a").content for folder in folders] == list(range(6))


@pytest.mark.every_engine
def test_files_are_there_after_a_restart(notes: Folder, reopen: Reopen) -> None:
    notes.write("a", {"n": 1}, tags=["t"])
    notes.write("a", {"n": 2})
    again = reopen().folder("notes", user="ana")
    assert (again.read("a").content, again.version("a"), len(again.history("a"))) == ({"n": 2}, 2, 2)


# Compare and set


def test_a_write_that_expects_another_version_is_refused(notes: Folder) -> None:
    notes.write("a", 1, expect=0)
    for expect in (0, 2):
        with pytest.raises(errors.Conflict, match="is at version 1"):
            notes.write("a", 2, expect=expect)
    assert notes.write("a", 2, expect=1).version == 2
    with pytest.raises(errors.Conflict):
        notes.delete("a", expect=1)
    assert notes.read("a").content == 2


def test_an_old_writer_is_refused_also_after_the_file_was_deleted_and_written_again(notes: Folder) -> None:
    old = notes.write("a", "old").version
    notes.delete("a")
    with pytest.raises(errors.Conflict, match="is at version 0"):
        notes.write("a", "late", expect=old)
    with pytest.raises(errors.Conflict):
        notes.delete("a", expect=old)
    assert notes.write("a", "new", expect=0).version == 3
    with pytest.raises(errors.Conflict):
        notes.write("a", "late", expect=old)
    assert notes.read("a").content == "new"


@pytest.mark.every_engine
def test_of_eight_threads_exactly_one_gets_through(notes: Folder) -> None:
    notes.write("a", "start")
    won: list[int] = []
    together = threading.Barrier(8)

    def write(number: int) -> None:
        together.wait()
        try:
            notes.write("a", number, expect=1)
        except errors.Conflict:
            return
        won.append(number)

    in_threads(write, 8)
    assert len(won) == 1
    assert (notes.read("a").content, notes.version("a")) == (won[0], 2)


def test_who_expects_nothing_always_gets_through(notes: Folder) -> None:
    together = threading.Barrier(8)

    def write(number: int) -> None:
        together.wait()
        for turn in range(5):
            notes.write("a", [number, turn])

    in_threads(write, 8)
    assert sorted(file.content for file in notes.history("a")) == [[n, turn] for n in range(8) for turn in range(5)]


def in_threads(work: Callable[[int], Any], number: int) -> None:
    threads = [threading.Thread(target=work, args=(each,)) for each in range(number)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def _race(url: str, tenant: str, number: int, ready: Any, results: Any) -> None:
    with holdfast.open(url, tenant=tenant, embedder="none") as store:
        ready.wait()
        try:
            store.folder("notes", user="ana").write("a", number, expect=1)
            results.put(number)
        except errors.Conflict:
            results.put(None)


@pytest.mark.every_engine
@pytest.mark.slow
def test_of_eight_processes_exactly_one_gets_through(notes: Folder, place: Any, durable_engine: None) -> None:
    notes.write("a", "start")
    spawned = multiprocessing.get_context("spawn")
    ready, results = spawned.Barrier(8), spawned.Queue()
    tenant = notes.filebook.core.tenant
    racers = [spawned.Process(target=_race, args=(place.url, tenant, each, ready, results)) for each in range(8)]
    for racer in racers:
        racer.start()
    won = [each for each in (results.get(timeout=120) for _ in racers) if each is not None]
    for racer in racers:
        racer.join()
    results.close()
    results.join_thread()
    assert len(won) == 1
    assert notes.read("a").content == won[0]


# Keys


def test_a_key_makes_a_repetition_harmless(notes: Folder, clock: ManualClock) -> None:
    first = notes.write("a", {"b": 1, "a": 2}, key="k", expires=clock.now() + 10_000_000)
    notes.write("a", "since")
    assert notes.write("a", {"b": 1, "a": 2}, key="k", expires=clock.now() + 20_000_000) == first
    assert notes.read("a").content == "since"
    with pytest.raises(errors.KeyReused):
        notes.write("a", "other", key="k")
    with pytest.raises(errors.KeyReused):
        notes.delete("a", key="k")
    assert len(notes.history("a")) == 2


def test_a_deletion_can_be_repeated_under_its_key(notes: Folder) -> None:
    notes.write("a", 1)
    assert notes.delete("a", key="gone") is True
    notes.write("a", 2)
    assert notes.delete("a", key="gone") is True
    assert notes.read("a").content == 2


@pytest.mark.every_engine
def test_eight_threads_under_one_key_write_once(notes: Folder) -> None:
    in_threads(lambda _: notes.write("a", "same", key="k"), 8)
    assert [file.content for file in notes.history("a")] == ["same"]


# Several at once


@pytest.mark.every_engine
def test_a_commit_is_all_or_nothing(notes: Folder) -> None:
    notes.write("a", 1)
    with pytest.raises(errors.Conflict):
        notes.commit([FileWrite("b", 2), FileWrite("a", 3, expect=7)])
    assert contents(notes) == {"a": 1}
    done = notes.commit([FileWrite("b", 2), FileDelete("a"), FileDelete("never there")])
    assert [(file.path, file.version, file.deleted) for file in done] == [
        ("b", 1, False), ("a", 2, True), ("never there", 0, True),
    ]  # fmt: skip
    assert contents(notes) == {"b": 2}
    assert notes.history("never there") == []


def test_one_commit_changes_a_file_once(notes: Folder) -> None:
    with pytest.raises(errors.Invalid, match="one change per file"):
        notes.commit([FileWrite("a", 1), FileDelete("a")])
    assert notes.commit([]) == []


def test_a_file_can_be_moved(notes: Folder, clock: ManualClock) -> None:
    until = clock.now() + 60_000_000
    written = notes.write("a", "text", tags=["t"], expires=until)
    moved = notes.move("a", "b/a")
    assert (moved.path, moved.content, moved.tags, moved.expires) == ("b/a", "text", ("t",), written.expires)
    assert notes.paths() == ["b/a"]
    assert [file.path for file in notes.files(tag="t")] == ["b/a"]
    assert len(notes.history("a")) == 2


def test_a_file_that_is_written_as_it_was_read_expires_when_it_did(notes: Folder, clock: ManualClock) -> None:
    until = to_datetime(clock.now() + 60_000_000)
    read = notes.write("a", "text", expires=until)
    assert read.expires == until
    assert notes.write("b", read.content, expires=read.expires).expires == until
    clock.advance(61)
    assert notes.paths() == []
    with pytest.raises(errors.Invalid, match="no time zone"):
        notes.write("c", "text", expires=until.replace(tzinfo=None))


def test_a_file_moves_neither_onto_itself_nor_onto_another(notes: Folder) -> None:
    notes.write("a", 1)
    notes.write("b", 2)
    with pytest.raises(errors.Invalid, match="already has this path"):
        notes.move("a", "a")
    with pytest.raises(errors.Conflict):
        notes.move("a", "b")
    with pytest.raises(errors.NotFound):
        notes.move("c", "d")
    assert contents(notes) == {"a": 1, "b": 2}


def test_a_file_moves_to_where_one_was_deleted(notes: Folder) -> None:
    notes.write("a", 1)
    notes.write("b", 2)
    notes.delete("b")
    assert notes.move("a", "b").version == 3


# Listing


@pytest.mark.every_engine
def test_files_are_listed_by_path(notes: Folder) -> None:
    for path in ("b", "a/2", "a/10", "a", "ab"):
        notes.write(path, path)
    assert notes.paths() == ["a", "a/10", "a/2", "ab", "b"]
    assert notes.paths("a/") == [file.path for file in notes.files("a/")] == ["a/10", "a/2"]
    assert [file.path for file in notes.files(limit=2)] == ["a", "a/10"]
    assert notes.files(limit=0) == notes.files("zzz") == []


@pytest.mark.every_engine
def test_more_files_than_one_page_are_listed(notes: Folder) -> None:
    notes.commit([FileWrite(f"{number:04}", number) for number in range(1_201)])
    assert [file.content for file in notes.files()] == list(range(1_201))


def test_tags_are_those_of_the_newest_version(notes: Folder) -> None:
    notes.write("a", 1, tags=["x", "y"])
    notes.write("b", 1, tags=["x"])
    notes.write("a", 2, tags=["y"])
    assert [file.path for file in notes.files(tag="x")] == ["b"]
    assert [file.path for file in notes.files(tag="y")] == ["a"]
    notes.delete("b")
    assert notes.files(tag="x") == []


# Ending


@pytest.mark.every_engine
def test_an_expired_file_is_gone_and_its_path_is_free(store: holdfast.Store, notes: Folder, clock: ManualClock) -> None:
    notes.write("a", "heron", tags=["t"], expires=clock.now() + 10_000_000)
    notes.write("b", "heron")
    assert notes.paths() == ["a", "b"]
    assert [hit.id for hit in notes.search("heron")] == ["notes/a@1", "notes/b@1"]
    clock.advance(10)
    assert notes.find("a") is None
    assert notes.paths() == [file.path for file in notes.files()] == ["b"]
    assert notes.files(tag="t") == []
    assert [hit.id for hit in notes.search("heron")] == ["notes/b@1"]
    assert [hit.id for hit in store.memory(user="ana").recall("heron")] == ["notes/b@1"]
    assert notes.delete("a") is False
    with pytest.raises(errors.Conflict):
        notes.write("a", "late", expect=1)
    assert notes.write("a", "new", expect=0).version == 2
    assert notes.read("a").expires is None


@pytest.mark.every_engine
def test_what_is_erased_leaves_nothing(notes: Folder) -> None:
    notes.write("a", 1)
    notes.write("a", 2)
    with pytest.raises(errors.Conflict):
        notes.delete("a", expect=1, erase=True)
    assert notes.delete("a", expect=2, erase=True) is True
    assert notes.history("a") == []
    assert notes.write("a", "new").version == 1


def test_what_was_deleted_can_be_erased(notes: Folder) -> None:
    notes.write("a", 1)
    notes.delete("a")
    assert notes.delete("a", erase=True) is True
    assert notes.history("a") == []


# Finding


def test_only_the_newest_version_is_found(notes: Folder) -> None:
    notes.write("a", "the heron stands in the pond")
    notes.search("heron")
    notes.write("a", "the stork stands on the roof")
    found = notes.search("heron pond")
    assert [hit.id for hit in found if "heron" in hit.text] == []
    assert notes.search("stork")[0].file == notes.read("a")
    notes.delete("a")
    assert len(notes.search("stork")) == 0
    notes.write("a", "a stork again")
    assert notes.search("stork")[0].id == "notes/a@4"


def test_a_search_is_narrowed_by_prefix_tag_and_paths(notes: Folder) -> None:
    for number, path in enumerate(("x/1", "x/2", "y/1")):
        notes.write(path, f"heron number {number}", tags=["odd"] if number % 2 else [])
    found = {
        "all": notes.search("heron"), "prefix": notes.search("heron", prefix="x/"),
        "tag": notes.search("heron", tag="odd"),
        "among": notes.search("heron", among=["y/1", "x/2", "none"]), "one": notes.search("heron", 1),
        "both": notes.search("heron", prefix="y", tag="odd"),
    }  # fmt: skip
    paths = {name: sorted(hit.file.path for hit in hits if hit.file) for name, hits in found.items()}
    assert paths["all"] == ["x/1", "x/2", "y/1"]
    assert paths["prefix"] == ["x/1", "x/2"]
    assert paths["tag"] == ["x/2"]
    assert paths["among"] == ["x/2", "y/1"]
    assert len(paths["one"]) == 1
    assert paths["both"] == []


def test_other_folders_are_not_searched(store: holdfast.Store, notes: Folder) -> None:
    for other in (
        store.folder("other", user="ana"), store.folder("notes"), store.folder("notes", user="ana", agent="x"),
        store.folder("notes", user="bo"),
    ):  # fmt: skip
        other.write("a", "the heron")
    assert len(notes.search("heron")) == 0
    notes.write("b", "the heron")
    assert [hit.id for hit in notes.search("heron")] == ["notes/b@1"]


def test_data_and_bytes_are_found_by_what_can_be_read_of_them(notes: Folder) -> None:
    notes.write("data", {"bird": "heron", "places": ["pond", {"name": "reed"}], "count": 3})
    notes.write("text", b"the stork")
    notes.write("picture", b"\xff\xfeheron stork")
    assert notes.search("heron reed")[0].id == "notes/data@1"
    assert notes.search("stork")[0].id == "notes/text@1"
    assert "notes/picture@1" not in {hit.id for hit in notes.search("heron stork picture", 100)}
    assert notes.search("stork")[0].text == "the stork"


def test_data_is_shown_as_lines() -> None:
    assert text_of({"text": "alone"}) == "alone"
    assert text_of({"a": 1, "b": ["x", {"c": "y", "d": None}], "e": ""}) == "a: 1\nb: x\nc: y"
    assert text_of(["x", 2]) == "x\n2"
    assert text_of(None) == text_of(b"\xff") == text_of({}) == ""


@pytest.mark.every_engine
def test_a_search_finds_what_another_process_wrote(notes: Folder, place: Any, durable_engine: None) -> None:
    notes.write("a", "the heron")
    assert len(notes.search("heron")) == 1
    other = place.open(own=True).folder("notes", user="ana")
    other.write("b", "the heron too")
    assert {hit.id for hit in notes.search("heron")} == {"notes/a@1", "notes/b@1"}
    notes.write("a", "nothing")
    assert "notes/a@1" not in {hit.id for hit in other.search("heron")}


# What makes no sense


_NUMBER = count()
_PATHS: list[Any] = ["", "a\x00b", "\ud800", "x" * 600, "é" * (LONGEST_BYTES // 2 + 1), None, 7, b"a", ["a"]]


@pytest.mark.parametrize("path", _PATHS, ids=lambda path: f"{type(path).__name__}-{next(_NUMBER)}")
def test_a_path_that_is_none_is_refused(notes: Folder, path: Any, any_engine: None) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: notes.read(path), lambda: notes.read(path, version=1), lambda: notes.find(path),
        lambda: notes.version(path), lambda: notes.history(path), lambda: notes.write(path, 1),
        lambda: notes.delete(path), lambda: notes.delete(path, erase=True), lambda: notes.move(path, "b"),
        lambda: notes.search("x", among=[path]),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(errors.Invalid):
            call()
    notes.write("a", 1)
    with pytest.raises(errors.Invalid):
        notes.move("a", path)
    assert contents(notes) == {"a": 1}


@pytest.mark.every_engine
def test_the_longest_path_and_tag_are_taken(notes: Folder) -> None:
    path, tag = "p" * LONGEST_BYTES, "t" * LONGEST_BYTES
    notes.write(path, 1, tags=[tag])
    assert [file.path for file in notes.files(tag=tag)] == [path]
    with pytest.raises(errors.Invalid, match=f"at most {LONGEST_BYTES}"):
        notes.write("a", 1, tags=[tag + "t"])


@pytest.mark.parametrize(
    "given",
    [
        {"expect": "1"}, {"expect": -1}, {"expect": True}, {"expect": 1.0}, {"expect": 2**70},
        {"tags": "tag"}, {"tags": 7}, {"tags": [7]}, {"tags": [""]}, {"tags": None},
        {"expires": "soon"}, {"expires": 1.5}, {"expires": -1}, {"expires": 2**62}, {"expires": True},
        {"key": ""}, {"key": 7}, {"key": "\ud800"},
    ],
)  # fmt: skip
def test_an_option_that_is_none_is_refused(notes: Folder, given: dict[str, Any], any_engine: None) -> None:
    with pytest.raises(errors.Invalid):
        notes.write("a", 1, **given)
    for name in given.keys() & {"expect", "key"}:
        for erase in (False, True):
            with pytest.raises(errors.Invalid):
                notes.delete("a", erase=erase, **{name: given[name]})
    assert notes.files() == []


@pytest.mark.parametrize(
    "content", [{1, 2}, object(), float("nan"), {1: 2}, "\ud800", 2**70, [b"inside"], {"a": b"inside"}]
)
def test_content_that_cannot_come_back_is_refused(notes: Folder, content: Any, any_engine: None) -> None:
    with pytest.raises(errors.Invalid, match="file 'a'"):
        notes.write("a", content)
    assert notes.files() == []


@pytest.mark.parametrize("content", ["x" * (16 * 1024 * 1024), b"x" * (16 * 1024 * 1024)], ids=["text", "bytes"])
def test_content_over_the_limit_is_refused(notes: Folder, content: Any, any_engine: None) -> None:
    with pytest.raises(errors.TooLarge, match="file 'a'"):
        notes.write("a", content)


def test_questions_that_make_no_sense_are_refused(store: holdfast.Store, notes: Folder, any_engine: None) -> None:
    odd: Any = 7
    calls: list[Callable[[], Any]] = [
        lambda: notes.files(odd), lambda: notes.paths(odd), lambda: notes.files(limit=-1), lambda: notes.files(tag=odd),
        lambda: notes.files(limit="2"), lambda: notes.search(odd), lambda: notes.search("x", 0),  # type: ignore[arg-type]
        lambda: notes.search("x", prefix=odd), lambda: notes.search("x", tag=odd), lambda: notes.search("x", among=odd),
        lambda: notes.search("x", within_ms=-1), lambda: notes.read("a", version="1"),  # type: ignore[arg-type]
        lambda: notes.commit(["a"]), lambda: store.folder(""), lambda: store.folder("a", user=""),  # type: ignore[list-item]
        lambda: store.folder(odd), lambda: notes.search("x", among="path"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(errors.Invalid):
            call()


def test_a_handle_without_what_finds_says_so(notes: Folder, any_engine: None) -> None:
    with pytest.raises(errors.Unsupported, match="this handle cannot search"):
        Folder(notes.filebook.core, "notes", notes.filebook.scope).search("x")


# For async callers


def test_async_callers_have_the_same() -> None:
    async def story() -> None:
        async with aio.open("ram:", embedder="none") as store:
            notes = store.folder("notes", user="ana")
            first = await notes.write("a", "the heron", tags=iter(["t"]), expect=0)
            assert [file.path for file in await notes.commit([FileWrite("b", 1), FileWrite("c", 2)])] == ["b", "c"]
            assert (await notes.move("b", "d")).content == 1
            assert await notes.read("a") == await notes.find("a") == first
            assert await notes.version("a") == 1
            assert await notes.paths() == ["a", "c", "d"]
            assert [file.content for file in await notes.files("c")] == [2]
            assert await notes.delete("c") is True
            assert len(await notes.history("c")) == 2
            assert [hit.id for hit in await notes.search("heron", tag="t")] == ["notes/a@1"]
            found = await store.folders(user="ana")
            assert [(info.name, info.user, info.files) for info in found] == [("notes", "ana", 2)]

    asyncio.run(story())


# Moving, erasing and proving whole


def test_a_users_files_go_along(store: holdfast.Store, notes: Folder, place: Any, tmp_path: Any) -> None:
    notes.write("a", "one", tags=["t"])
    notes.write("a", b"\x00two", tags=["u"])
    notes.write("gone", 1)
    notes.delete("gone")
    store.folder("notes", user="bo").write("b", "not ana's")
    manifest = store.export(tmp_path / "ana.json", user="ana")
    assert manifest.counts.files == 2
    with holdfast.open("ram:", embedder="none") as other:
        assert other.import_(tmp_path / "ana.json").records == 2
        other.import_(tmp_path / "ana.json")
        copy = other.folder("notes", user="ana")
        assert copy.history("a") == notes.history("a")
        assert [file.path for file in copy.files(tag="u")] == ["a"]
        assert copy.version("gone") == 0
        assert copy.write("gone", 2, expect=0).version == 3
        assert other.folder("notes", user="bo").files() == []
        assert other.verify().ok


@pytest.mark.every_engine
def test_erasing_a_user_leaves_no_file_and_a_folder_that_works(
    store: holdfast.Store, notes: Folder, clock: ManualClock
) -> None:
    notes.write("a", "heron")
    notes.write("old", "heron", expires=clock.now() + 1_000)
    notes.write("gone", "heron")
    notes.delete("gone")
    agents = store.folder("notes", user="ana", agent="x")
    agents.write("a", "heron")
    kept = store.folder("notes", user="bo")
    kept.write("a", "heron")
    clock.advance(1)
    assert len(store.memory(user="ana").recall("heron")) == 2
    assert store.erase(user="ana") >= 4
    assert len(store.memory(user="ana").recall("heron")) == 0
    for folder, path in ((notes, "a"), (notes, "old"), (notes, "gone"), (agents, "a")):
        assert folder.history(path) == []
        assert folder.write(path, "new").version == 1
    assert kept.read("a").content == "heron"
    assert len(notes.search("new")) == 3


@pytest.mark.every_engine
def test_files_stand_in_a_proof(store: holdfast.Store, notes: Folder) -> None:
    notes.write("a", "text", tags=["t"])
    notes.write("b", b"\xff")
    notes.delete("a")
    store.folder("shared").write("c", {"x": 1})
    assert store.verify().problems == ()


def test_a_record_that_does_not_fit_its_file_is_named(any_engine: None, store: holdfast.Store, notes: Folder) -> None:
    notes.write("a", "text", tags=["t"])
    record = store.core.engine.get(store.tenant, "file", notes.filebook.id("a"))
    assert record is not None
    put = Put("file", record.id, record.body, None, record.scope, (notes.filebook.place,))
    store.core.engine.commit(store.tenant, [put], 1)
    assert [(p.where, p.what) for p in store.verify().problems] == [
        ("file 'a'", "its tags are not those of its newest version")
    ]


def test_a_backup_holds_the_files(notes: Folder, store: holdfast.Store, tmp_path: Any, any_engine: None) -> None:
    notes.write("a", "one")
    notes.write("a", "two")
    store.backup(tmp_path / "copy")
    holdfast.restore(tmp_path / "copy", tmp_path / "again.db")
    with holdfast.open(tmp_path / "again.db", tenant=store.tenant, embedder="none") as again:
        assert again.folder("notes", user="ana").history("a") == notes.history("a")
