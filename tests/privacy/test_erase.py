"""An erasure ends with nothing of it in any file, wherever it is broken off; and what is others' stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.engine.contract import Put, Query
from holdfast.engine.registry import open_engine
from holdfast.ids import Ids
from holdfast.ledger.core import Core, scan_all
from holdfast.privacy.erase import KIND
from holdfast.retrieval import index
from holdfast.store import Store
from holdfast.testing import ManualClock
from holdfast.testing.crashing import Crash, Fuse, MortalEngine
from holdfast.wiring import Wiring

COUNT = 50
"""How many strings are planted for each user, in entries, states, memories, files, tool calls and results."""


def plant(store: Store, user: str, count: int = COUNT) -> list[str]:
    """Write unique strings of a user everywhere that a store keeps text; return them."""
    words = [f"{user}planted{number:03}x" for number in range(count)]
    memory, folder = store.memory(user=user), store.folder("notes", user=user)
    for number, word in enumerate(words):
        thread = store.thread(f"{user}-{number % 7}", user=user, agent="helper")
        long = f"{word} " * (1 if number % 5 else 900)  # some over several pages
        if number % 5 == 0:
            thread.append({"role": "user", "content": long}, key=f"{word}-key")
        elif number % 5 == 1:
            thread.state()
            thread.save({"about": long, "n": number})
        elif number % 5 == 2:
            memory.remember(long, tags=[word], key=f"fact-{number}", subject=word)
        elif number % 5 == 3:
            folder.write(f"{word}.md", long, tags=[word])
        else:
            with thread.run(f"run-{number}") as run:
                run.step("call", lambda said=long: {"said": said}, effect="pure")
            thread.append(holdfast.tool_call("search", {"for": word}, id=word))
    memory.remember_all([f"filler {number} of {user}" for number in range(30)])
    memory.recall(words[0])
    store.folder("notes", user=user).search(words[3])
    return words


def bytes_of(folder: Path) -> bytes:
    return b"\x00".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def left(folder: Path, words: list[str]) -> list[str]:
    data = bytes_of(folder)
    return [word for word in words if word.encode() in data]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are saved early, so that there is something to purge."""
    monkeypatch.setattr(index, "SAVE_AT", 24)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with holdfast.open(folder / "store.db", embedder="none") as opened:
        yield opened


def test_no_byte_of_any_file_holds_it_while_the_store_is_open(store: Store, folder: Path) -> None:
    mine, others = plant(store, "ana"), plant(store, "ben")
    assert left(folder, mine) == mine
    count = store.erase(user="ana")
    assert count == sum(count.counts.values())
    assert count > 60
    assert left(folder, [*mine, "ana-0", "user=ana"]) == []
    assert left(folder, others) == others
    assert store.verify().ok
    assert store.memory(user="ben").recall(others[2])


def test_the_dry_run_counts_what_goes(store: Store) -> None:
    plant(store, "ana", 10)
    would = store.erase(user="ana", dry_run=True)
    assert store.threads(user="ana")
    done = store.erase(user="ana")
    assert (would, would.counts) == (done, done.counts)
    assert would.counts["thread"] == 6
    assert store.erase(user="ana", dry_run=True) == store.erase(user="ana") == 0


@pytest.mark.parametrize("value", ["no", 1, None, 0.0])
@pytest.mark.parametrize("name", ["forever", "dry_run"])
def test_what_is_no_yes_or_no_is_refused(store: Store, name: str, value: Any) -> None:
    store.thread("t", user="ana").append({"content": "kept"})
    with pytest.raises(errors.Invalid):
        store.erase(user="ana", **{name: value})
    assert store.thread("t").logbook.head() == 1


def test_somebody_unknown_is_nobody(store: Store) -> None:
    store.thread("t", user="ana").append({"content": "kept"})
    head = store.feed_head()
    assert store.erase(user="nobody") == 0
    assert store.feed_head() == head


# Broken off


def mortal(folder: Path, fuse: Fuse) -> tuple[Store, Callable[[], None]]:
    """A store whose process dies at a point, and what takes its files from it then."""
    clock, ids = holdfast.clock.SystemClock(), Ids()
    engine = open_engine(str(folder / "store.db"), clock, ids)
    core = Core(MortalEngine(engine, fuse), "default", clock, holdfast.Registry())
    return Store(Wiring(core, ids=ids)), engine.close


def small(store: Store) -> list[str]:
    words = plant(store, "ana", 10)
    plant(store, "ben", 5)
    for number in range(2):  # learned from a thread of hers, and kept where it is not hers
        origin = holdfast.Origin(entries=(holdfast.types.EntryRef(f"ana-{number}", 1),))
        store.memory(agent="helper").remember(f"{words[number]} taught me", origin=origin)
    return words


def points(tmp_path: Path) -> list[str]:
    folder = tmp_path / "model"
    folder.mkdir()
    fuse = Fuse()
    with holdfast.open(folder / "store.db", embedder="none") as store:
        small(store)
    dying, close = mortal(folder, fuse)
    dying.erase(user="ana")
    close()
    return fuse.names


FINISHES: dict[str, Callable[[Store], object]] = {
    "the same erasure": lambda store: store.erase(user="ana"),
    "another erasure": lambda store: store.erase(user="somebody else"),
    "finish_erasures": lambda store: store.finish_erasures(),
    "resume": lambda store: store.resume({}),
}


@pytest.mark.slow
@pytest.mark.parametrize("repeated", [True, False])
def test_an_erasure_that_died_anywhere_is_finished(tmp_path: Path, repeated: bool) -> None:
    """At every point, by a repetition, and by one of the other ways in turn."""
    names, ways = points(tmp_path), list(FINISHES)
    assert {"before erase", "after erase", "before scrub", "after scrub"} <= set(names)
    assert len(names) > 10
    for at in range(len(names)):
        way = ways[0] if repeated else ways[1 + at % (len(ways) - 1)]
        folder = tmp_path / f"at {at}"
        folder.mkdir()
        with holdfast.open(folder / "store.db", embedder="none") as store:
            words = small(store)
            whole = store.erase(user="ana", dry_run=True)
        dying, close = mortal(folder, Fuse(at))
        with pytest.raises(Crash):
            dying.erase(user="ana")
        close()
        with holdfast.open(folder / "store.db", embedder="none") as store:
            begun = bool(list(scan_all(store.core.engine, "default", Query(KIND))))
            done = FINISHES[way](store)
            if way == "the same erasure" and (begun or at < 3):
                assert done == whole, names[at]
            if begun or way == "the same erasure":
                assert left(folder, words) == [], names[at]
                assert not list(scan_all(store.core.engine, "default", Query("index", user="ana")))
            assert not list(scan_all(store.core.engine, "default", Query(KIND)))
            assert store.verify().ok, names[at]


_CHILD = """
import os, signal, sys, threading, time
import holdfast
from holdfast.retrieval import index
index.SAVE_AT = 24
store = holdfast.open(sys.argv[1], embedder="none")
print("ready", flush=True)
threading.Thread(target=lambda: (time.sleep(float(sys.argv[2])), os.kill(os.getpid(), signal.SIGKILL))).start()
store.erase(user="ana")
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1])
def test_a_killed_process_leaves_an_erasure_that_another_finishes(folder: Path, after_s: float) -> None:
    path = folder / "store.db"
    with holdfast.open(path, embedder="none") as store:
        words = plant(store, "ana")
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), str(after_s)], env={**os.environ}, capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, child.stderr
    with holdfast.open(path, embedder="none") as store:
        store.erase(user="ana")
        assert left(folder, words) == []
        assert store.verify().ok


# Several at once


def test_two_erasures_at_once_end_well(store: Store, folder: Path) -> None:
    words = plant(store, "ana")
    other = holdfast.open(folder / "store.db", embedder="none")
    failures: list[BaseException] = []

    def erase(one: Store) -> None:
        try:
            one.erase(user="ana")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=erase, args=(one,)) for one in (store, other, store)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    other.close()
    assert failures == []
    assert left(folder, words) == []
    assert store.verify().ok


def test_who_writes_meanwhile_is_told(store: Store, folder: Path) -> None:
    """A thread that is written to while its user is erased stays erased, and nothing of it is left."""
    words = plant(store, "ana")
    other = holdfast.open(folder / "store.db", embedder="none")
    late: list[BaseException] = []

    def write() -> None:
        try:
            for number in range(10_000):
                other.thread("ana-0").append({"content": f"{words[0]} again {number}"})
        except errors.Erased as error:
            late.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    store.erase(user="ana")
    writer.join(60)
    other.close()
    assert len(late) == 1
    assert left(folder, words) == []
    assert store.verify().ok


def test_a_reader_of_an_older_moment_is_waited_for_and_then_told_of(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = plant(store, "ana", 10)
    scrub = store.core.engine.scrub
    monkeypatch.setattr(store.core.engine, "scrub", lambda: scrub(0.2))
    with store.core.engine.snapshot(), pytest.raises(errors.Unavailable, match="write-ahead log"):
        store.erase(user="ana")
    assert store.threads(user="ana") == []
    assert store.finish_erasures() == 1
    assert left(folder, words) == []
    assert store.finish_erasures() == 0


def test_an_index_in_memory_is_not_saved_after_an_erasure(store: Store, folder: Path) -> None:
    """Another process has the words in memory and was about to save them."""
    plant(store, "ana", 10)
    other = holdfast.open(folder / "store.db", embedder="none")
    memory = other.memory(user="ana")
    memory.remember_all([f"more filler {number}" for number in range(40)])
    found = other.wiring.recaller().indexes
    place = next(place for place in found.saved() if place.user == "ana" and not place.files)
    held = found.index(place)
    commit = held._depot.commit
    calls: list[str] = []

    def late(*args: Any) -> None:
        if not calls:
            calls.append("erased")
            store.erase(user="ana")
        commit(*args)

    held._depot.commit = late  # type: ignore[method-assign]
    memory.recall("filler")
    assert calls
    assert not [record for record in scan_all(store.core.engine, "default", Query("index", user="ana"))]
    assert store.verify().ok
    other.close()


# Tombstones


def archive(store: Store, path: Path) -> Path:
    store.export(path)
    return path


def test_an_archive_brings_back_nothing_that_was_erased(store: Store, folder: Path) -> None:
    mine, others = plant(store, "ana"), plant(store, "ben", 10)
    with_all = archive(store, folder.parent / f"{folder.name}.json")
    store.erase(user="ana")
    report = store.import_(with_all)
    assert report.erased > 50
    assert store.threads(user="ana") == store.folders(user="ana") == store.memory(user="ana").memories() == []
    assert left(folder, mine) == []
    assert left(folder, others) == others
    assert store.verify().ok
    store.memory(user="ana").remember("back again")
    store.folder("notes", user="ana").write(f"{mine[3]}.md", "another one")
    assert store.import_(with_all).erased == report.erased
    assert store.folder("notes", user="ana").read(f"{mine[3]}.md").version == 1
    assert store.verify().ok


def test_a_memory_or_a_file_that_was_erased_alone_stays_erased(store: Store, folder: Path) -> None:
    memory, notes = store.memory(user="ana"), store.folder("notes", user="ana")
    gone, kept = memory.remember("the zanzibar secret"), memory.remember("stays")
    notes.write("a.md", "zanzibar in a file")
    notes.write("b.md", "stays too")
    with_all = archive(store, folder.parent / f"{folder.name}-alone.json")
    memory.forget(gone.id, erase=True)
    notes.delete("a.md", erase=True)
    report = store.import_(with_all)
    assert report.erased == 2
    assert [one.id for one in memory.memories()] == [kept.id]
    assert [file.path for file in notes.files()] == ["b.md"]
    assert store.verify().ok


def test_ids_that_were_freed_come_back_from_an_archive(store: Store, folder: Path) -> None:
    plant(store, "ana", 10)
    with_all = archive(store, folder.parent / f"{folder.name}-freed.json")
    store.erase(user="ana", forever=False)
    report = store.import_(with_all)
    assert report.erased == 0
    assert len(store.threads(user="ana")) == 6
    assert store.verify().ok


def test_what_a_fork_here_shares_is_left_and_no_more_comes_in(store: Store, folder: Path) -> None:
    thread = store.thread("a", user="ana")
    thread.append({"content": "shared"}, {"content": "zanzibar"})
    thread.fork("b", at=1, user="ben")
    with_all = archive(store, folder.parent / f"{folder.name}-fork.json")
    store.erase(thread="a")
    assert store.import_(with_all).erased >= 1
    assert [entry.content for entry in store.thread("b").log()] == [{"content": "shared"}]
    assert left(folder, ["zanzibar"]) == []
    assert store.verify().ok


def test_words_of_a_saved_index_are_hidden_by_a_key(folder: Path) -> None:
    """Two stores with the same content have nothing in common that could be looked up."""
    bodies = []
    for name in ("one", "two"):
        with holdfast.open(folder / f"{name}.db", embedder="none", clock=ManualClock()) as store:
            store.memory(user="ana").remember_all([f"anchor {number}" for number in range(40)])
            store.memory(user="ana").recall("anchor")
            saved = list(scan_all(store.core.engine, "default", Query("index")))
            bodies.append({record.id.rpartition("/")[0] for record in saved})
            bare = [index_hash(f"anchor {number}") for number in range(40)] + [index_hash("anchor")]
            assert saved
            assert not any(mark in record.body for record in saved for mark in bare)
    assert bodies[0].isdisjoint(bodies[1])


def index_hash(words: str) -> bytes:
    from holdfast import text  # noqa: PLC0415
    from holdfast.retrieval.segment import hashed  # noqa: PLC0415

    return hashed(text.terms(words)[0]).to_bytes(8, "little")


def test_a_memory_that_cannot_be_read_does_not_keep_its_thread(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "s.db", embedder=None) as store:
        store.thread("t", user="ana").append({"role": "user", "content": "I live in Oslo."})
        (learned,) = store.memory("ana").learn("t")
        record = store.core.engine.get(store.tenant, "memory", learned.id)
        assert record is not None
        put = Put("memory", record.id, b"j1[]", scope=record.scope, tags=record.tags)
        store.core.engine.commit(store.tenant, [put], record.time)
        assert store.erase(thread="t", dry_run=True).counts["memory"] == 1
        assert store.erase(thread="t").counts["memory"] == 1
        assert store.core.engine.get(store.tenant, "memory", learned.id) is None
        assert store.finish_erasures() == 0


def test_every_store_of_the_tenant_forgets_what_another_one_erased() -> None:
    with holdfast.open("ram:", embedder=None) as store:
        store.thread("t", user="ana").append({"role": "user", "content": "the vault is behind the mirror"})
        before = store.context("t", "where?", budget=2_000)
        assert "behind the mirror" in before.text
        store.acting_as("admin").erase(thread="t")
        builder: Any = store.wiring.contexts()
        assert not builder._pages, "the page of an erased thread is still here"
