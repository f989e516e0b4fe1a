"""Watching and following what happens: filters, followers that keep their place, and a feed that is trimmed."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio
from holdfast.clock import to_datetime
from holdfast.engine.contract import Commit
from holdfast.errors import Conflict, FeedTrimmed, Invalid, QuotaExceeded
from holdfast.testing import ManualClock

pytestmark = pytest.mark.every_engine  # order, clocks and other processes are the engine's

PATIENCE_S = 30.0


def filled(store: holdfast.Store) -> None:
    store.thread("a", user="ana", agent="travel").append({"role": "user", "content": "one"})
    store.thread("b", user="ben").append({"role": "user", "content": "two"})
    store.memory(user="ana").remember("likes tea")
    store.thread("c").append({"role": "user", "content": "three"})


def positions(commits: Any) -> list[int]:
    return [commit.position for commit in commits]


def test_watching_shows_what_was_asked_for(store: holdfast.Store) -> None:
    filled(store)
    assert positions(store.watch(timeout_s=0)) == [1, 2, 3, 4]
    assert positions(store.watch(user="ana", timeout_s=0)) == [1, 3]
    assert positions(store.watch(thread="b", timeout_s=0)) == [2]
    assert positions(store.watch(agent="travel", timeout_s=0)) == [1]
    assert positions(store.watch(kinds="memory", timeout_s=0)) == [3]
    assert positions(store.watch(kinds=["memory", "thread"], user="ana", after=1, timeout_s=0)) == [3]
    (commit,) = store.watch(kinds="memory", timeout_s=0)
    assert {change.kind for change in commit.changes} == {"memory"}
    assert commit.changes[0].scope.user == "ana"


def test_the_head_needs_no_search(store: holdfast.Store) -> None:
    assert store.feed_head() == 0
    filled(store)
    assert store.feed_head() == 4
    assert list(store.watch(after=store.feed_head(), timeout_s=0)) == []


def test_the_actor_is_told(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "s.db", actor="service", embedder="none") as store:
        store.thread("t").append({"role": "user", "content": "one"})
        store.acting_as("bob").thread("t").save({"x": 1})
        store.for_tenant(store.tenant, actor="key-7").memory(user="ana").remember("likes tea")
        with store.acting_as("bob").thread("t").run("r") as run:
            run.step("s", lambda: 1, effect="pure")
        store.erase(user="ana")
        actors = [commit.actor for commit in store.watch(timeout_s=0)]
    assert actors[:3] == ["service", "bob", "key-7"]
    assert set(actors[3:]) == {"bob", "service"}
    assert actors[-1] == "service"


@pytest.mark.parametrize(
    "wanted",
    [{"kinds": 5}, {"kinds": [5]}, {"kinds": ""}, {"user": 5}, {"after": -1}, {"after": "1"},
     {"timeout_s": float("nan")}, {"timeout_s": -1}, {"timeout_s": "soon"}, {"thread": ""}],
)  # fmt: skip
def test_watching_for_nonsense_is_refused(store: holdfast.Store, wanted: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        next(store.watch(**{"timeout_s": 0, **wanted}))


# Followers


def test_a_follower_keeps_its_place(store: holdfast.Store) -> None:
    filled(store)
    follower = store.follower("indexer")
    assert (follower.position, follower.lag) == (0, 4)
    seen = []
    for commit in follower.follow(timeout_s=0):
        seen.append(commit.position)
        if len(seen) == 2:
            break  # killed before it could say that it was through with the second
    again = store.follower("indexer")
    assert (again.position, again.lag) == (1, 3)
    assert positions(again.follow(timeout_s=0)) == [2, 3, 4]
    assert (again.position, again.lag) == (4, 0)
    assert store.feed_head() == 4, "moving is not a commit"


def test_a_follower_of_some_moves_past_the_others(store: holdfast.Store) -> None:
    filled(store)
    follower = store.follower("ben", user="ben")
    assert positions(follower.follow(timeout_s=0)) == [2]
    assert follower.lag == 0


def test_reading_moves_nothing_until_told(store: holdfast.Store) -> None:
    filled(store)
    follower = store.follower("indexer", after=1)
    assert positions(follower.read()) == positions(follower.read()) == [2, 3, 4]
    follower.advance(3)
    assert positions(follower.read()) == [4]
    follower.reset(0)
    assert positions(follower.read()) == [1, 2, 3, 4]


def test_two_processes_with_one_name_do_not_both_get_on(store: holdfast.Store) -> None:
    filled(store)
    one, two = store.follower("indexer"), store.follower("indexer")
    assert positions(one.read()) == positions(two.read())
    one.advance(2)
    with pytest.raises(Conflict, match="another process"):
        two.advance(1)
    assert positions(two.read()) == [3, 4]


def test_a_follower_goes_neither_past_the_end_nor_back_by_mistake(store: holdfast.Store) -> None:
    filled(store)
    follower = store.follower("indexer")
    with pytest.raises(Invalid, match="the feed is at 4"):
        follower.advance(5)
    with pytest.raises(Invalid, match="the feed is at 4"):
        follower.reset(5)
    follower.advance(3)
    with pytest.raises(Invalid, match="use reset"):
        follower.advance(2)
    for nonsense in (-1, "3", None, True):
        with pytest.raises(Invalid):
            follower.advance(nonsense)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        store.follower("")
    with pytest.raises(Invalid):
        store.follower("x", after=-1)


def test_followers_are_listed_and_removed(store: holdfast.Store) -> None:
    filled(store)
    store.follower("fast").advance(4)
    store.follower("slow").advance(1)
    assert [(info.name, info.position, info.lag) for info in store.followers()] == [("slow", 1, 3), ("fast", 4, 0)]
    store.follower("slow").remove()
    assert [info.name for info in store.followers()] == ["fast"]
    assert store.follower("slow").position == 0


# Trimming


def test_trimming_stops_at_the_slowest_follower(store: holdfast.Store) -> None:
    filled(store)
    follower = store.follower("slow")
    follower.advance(2)
    assert store.trim_feed(keep=1) == 2
    assert positions(store.watch(after=2, timeout_s=0)) == [3, 4, 5]
    assert positions(follower.read()) == [3, 4, 5]
    assert store.trim_feed(keep=0, past_followers=True) == 3
    with pytest.raises(FeedTrimmed, match=r"follower 'slow' is at 2.*reset\(5\)") as caught:
        follower.read()
    follower.reset(caught.value.first - 1)
    assert positions(follower.read()) == [6]
    with pytest.raises(FeedTrimmed):
        next(store.watch(timeout_s=0))
    assert store.verify().problems == ()
    store.thread("a", user="ana").append({"role": "user", "content": "on it goes"})
    assert store.feed_head() == 7


def test_trimming_by_age(store: holdfast.Store, clock: ManualClock) -> None:
    filled(store)
    clock.advance(3_600)
    store.thread("d").append({"role": "user", "content": "later"})
    assert store.trim_feed(older_than=timedelta(hours=2)) == 0
    assert store.trim_feed(older_than=timedelta(minutes=30), keep=3) == 2
    assert store.trim_feed(older_than=timedelta(minutes=30)) == 2
    assert positions(store.watch(after=4, timeout_s=0)) == [5, 6, 7]


def test_trimming_needs_to_know_what(store: holdfast.Store) -> None:
    with pytest.raises(Invalid):
        store.trim_feed()
    with pytest.raises(Invalid):
        store.trim_feed(keep=-1)
    with pytest.raises(Invalid):
        store.trim_feed(older_than=30)  # type: ignore[arg-type]
    assert store.trim_feed(keep=0) == 0


def test_recall_finds_everything_after_a_trim(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    memory.remember("prefers aisle seats")
    assert memory.recall("seats").hits
    for n in range(5):
        memory.remember(f"visited town number {n}")
    store.trim_feed(keep=0)
    assert "number 3" in memory.recall("town number 3").hits[0].text


# Waiting


def test_a_watcher_hears_of_its_own_alone(store: holdfast.Store) -> None:
    heard: list[Commit] = []
    ready = threading.Event()

    def listen() -> None:
        ready.set()
        heard.extend([next(store.watch(user="ana", timeout_s=PATIENCE_S))])

    thread = threading.Thread(target=listen)
    thread.start()
    ready.wait()
    for n in range(20):
        store.thread(f"t{n}", user="ben").append({"role": "user", "content": "x"})
    store.thread("mine", user="ana").append({"role": "user", "content": "x"})
    thread.join(PATIENCE_S)
    assert [change.id for commit in heard for change in commit.changes][-1] == "mine"


def test_a_thousand_async_watchers_need_one_thread(tmp_path: Path) -> None:
    async def watch_one(store: aio.AsyncStore, n: int) -> str:
        async for commit in store.watch(user=f"u{n}", timeout_s=PATIENCE_S):
            return commit.changes[-1].id
        return ""

    async def work() -> None:
        async with aio.open(tmp_path / "s.db", embedder="none") as store:
            tasks = [asyncio.create_task(watch_one(store, n)) for n in range(1_000)]
            engine: Any = store.blocking.core.engine
            while len(engine._waiters._waiting) < 1_000:
                await asyncio.sleep(0.01)
            waiting = [t for t in threading.enumerate() if t.name == "holdfast-waiting"]
            assert len(waiting) == 1
            assert len([t for t in threading.enumerate() if t.name.startswith("holdfast-aio")]) <= 8
            for n in (7, 500, 999):
                await store.thread(f"t{n}", user=f"u{n}").append({"role": "user", "content": "x"})
                assert await tasks[n] == f"t{n}"
            assert sum(task.done() for task in tasks) == 3
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert not engine._waiters._waiting

    asyncio.run(work())


def test_an_async_follower(tmp_path: Path) -> None:
    async def work() -> None:
        async with aio.open(tmp_path / "s.db", embedder="none") as store:
            for n in range(3):
                await store.thread(f"t{n}", user="ana").append({"role": "user", "content": "x"})
            follower = store.follower("f", user="ana")
            assert positions([commit async for commit in follower.follow(timeout_s=0)]) == [1, 2, 3]
            assert (await follower.position(), await follower.lag()) == (3, 0)
            assert [info.name for info in await store.followers()] == ["f"]
            assert await store.trim_feed(keep=1) == 2
            await follower.reset(2)
            assert positions(await follower.read()) == [3]
            await follower.remove()
            assert await store.followers() == []

    asyncio.run(work())


# What has expired


def test_expired_files_are_hidden_listed_and_kept_until_swept(store: holdfast.Store, clock: ManualClock) -> None:
    folder = store.folder("notes", user="ana")
    now = clock.now()
    folder.write("soon.md", "gone soon", expires=now + 1_000_000)
    folder.write("stays.md", "stays")
    assert store.expired() == []
    clock.advance(2)
    assert [file.path for file in folder.files()] == ["stays.md"]
    (gone,) = store.expired()
    assert (gone.kind, gone.id, gone.folder, gone.user) == ("file", "soon.md", "notes", "ana")
    assert gone.expires == to_datetime(now + 1_000_000)
    assert store.expired(before=to_datetime(now)) == []
    assert store.verify(tenant=store.tenant).problems == ()
    folder.write("soon.md", "back again")
    assert store.expired() == []


# What attacks found


def test_looking_at_a_follower_makes_none(store: holdfast.Store) -> None:
    filled(store)
    follower = store.follower("looked at")
    assert (follower.position, follower.lag) == (0, 4)
    assert store.followers() == []
    with pytest.raises(Invalid, match="the feed is at 4"):
        store.follower("future", after=1_000).read()


def test_a_follower_that_is_moved_in_the_loop_goes_on_from_there(store: holdfast.Store) -> None:
    filled(store)
    follower, seen = store.follower("f"), []
    for commit in follower.follow(timeout_s=0):
        seen.append(commit.position)
        if seen == [1]:
            follower.advance(3)
        if seen == [1, 4]:
            follower.reset(2)
        if len(seen) == 4:
            break
    assert seen == [1, 4, 3, 4]


def test_a_waiting_reader_holds_no_thread(tmp_path: Path) -> None:
    async def work() -> None:
        async with aio.open(tmp_path / "s.db", embedder="none") as store:
            readers = [asyncio.create_task(store.follower(f"f{n}").read(timeout_s=PATIENCE_S)) for n in range(20)]
            engine: Any = store.blocking.core.engine
            while len(engine._waiters._waiting) < 20:
                await asyncio.sleep(0.01)
            assert await asyncio.wait_for(store.feed_head(), PATIENCE_S) == 0
            await store.thread("t").append({"role": "user", "content": "x"})
            assert [positions(commits) for commits in await asyncio.gather(*readers)] == [[1]] * 20

    asyncio.run(work())


def test_a_file_is_found_through_every_handle_of_a_tenant(store: holdfast.Store) -> None:
    store.thread("t", user="ana").append({"role": "user", "content": "hello penguin"})
    other = store.acting_as("worker")
    for handle in (store, other):
        handle.memory(user="ana").recall("penguin")
    store.folder("docs", user="ana").write("zebra.txt", "the zebra file")
    for handle in (store, other, store.for_tenant(store.tenant)):
        assert any(hit.file for hit in handle.memory(user="ana").recall("zebra").hits)


def test_a_run_that_meets_a_quota_is_let_go(ram: holdfast.Store) -> None:
    store = ram
    store.set_quota(bytes=10**9)

    def too_much() -> None:
        with store.thread("t").run("r") as run:
            run.step("s", lambda: 1, effect="pure")
            held = store.usage().bytes
            assert held is not None
            store.set_quota(bytes=held.used)
            run.step("more", lambda: 1, effect="pure")

    with pytest.raises(QuotaExceeded):
        too_much()
    store.set_quota(bytes=None)
    with store.thread("t").run("r") as run:
        assert run.step("s", lambda: 2, effect="pure") == 1


def test_an_import_says_who_asked_for_it(tmp_path: Path) -> None:
    with holdfast.open("ram:", embedder=None) as source:
        source.thread("t").append({"role": "user", "content": "hello"})
        source.export(tmp_path / "all.json")
    with holdfast.open("ram:", actor="ops", embedder=None) as store:
        store.import_(tmp_path / "all.json")
        assert {commit.actor for commit in store.watch(timeout_s=0)} == {"ops"}
