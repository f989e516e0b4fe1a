"""The async store means what its blocking twin means, never half-writes, and survives being cancelled at any moment."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

import holdfast
from holdfast import aio, errors
from holdfast import store as blocking
from holdfast.aio.store import StoreOpening
from holdfast.testing import ManualClock, SeededIds

PATIENCE_S = 30.0  # against hanging for ever; no test waits that long

Opened = Callable[[], StoreOpening]


def said(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.fixture
def opened(place: Any) -> Opened:
    """Opens an async store, new and empty the first time."""
    return lambda: aio.open(place.url, tenant=f"async-{place.number}", clock=place.clock, schemas=place.schemas)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def patiently() -> Any:
        return await asyncio.wait_for(work, PATIENCE_S)

    return asyncio.run(patiently())


async def steps(number: int) -> None:
    """Let everything that is ready go on, so many times."""
    for _ in range(number):
        await asyncio.sleep(0)


# The same meaning


class Flight(msgspec.Struct):
    price: int
    gate: str = "A1"


@pytest.fixture
def flights(schemas: holdfast.Registry) -> holdfast.Registry:
    schemas.schema("flight", version=1, fresh={"price": "10m"})(Flight)
    schemas.refresher("flight", "price")(lambda value, path: value.price + 1)
    return schemas


def story(clock: ManualClock) -> list[tuple[str, Callable[[Any, Any], Any]]]:
    """One call of each method of a thread and of a store, in an order that makes sense."""
    hour = 3600

    def later() -> None:
        clock.advance(hour)

    return [
        ("append", lambda store, thread: thread.append(said("a"))),
        ("append several", lambda store, thread: thread.append(said("b"), holdfast.note("c"), key="k")),
        ("append again", lambda store, thread: thread.append(said("b"), holdfast.note("c"), key="k")),
        ("append badly", lambda store, thread: thread.append("bare")),
        ("append late", lambda store, thread: thread.append(said("d"), expect=1)),
        ("log", lambda store, thread: thread.log()),
        ("log window", lambda store, thread: thread.log(2)),
        ("log page", lambda store, thread: thread.log(after=1, limit=1)),
        ("entry", lambda store, thread: thread.entry(2)),
        ("entry by key", lambda store, thread: thread.entry(key="k")),
        ("no entry", lambda store, thread: thread.entry(99)),
        ("exists", lambda store, thread: thread.exists()),
        ("messages", lambda store, thread: thread.messages()),
        ("tag", lambda store, thread: thread.tag("x", "y")),
        ("untag", lambda store, thread: thread.tag(remove=["x"])),
        ("state before", lambda store, thread: thread.state(Flight, default="none")),
        ("save", lambda store, thread: thread.save(Flight(1), by="ana")),
        ("save blindly", lambda store, thread: store.thread("t").save(Flight(1))),
        ("patch", lambda store, thread: thread.patch("gate", "B2")),
        ("state", lambda store, thread: thread.state(Flight)),
        ("later", lambda store, thread: later()),
        ("stale", lambda store, thread: thread.state(Flight, on_stale="raise")),
        ("confirm", lambda store, thread: thread.confirm("price", by="ben")),
        ("later", lambda store, thread: later()),
        ("refresh", lambda store, thread: thread.refresh(Flight)),
        ("revisions", lambda store, thread: thread.revisions(2)),
        ("checkpoint", lambda store, thread: thread.checkpoint("here", note="n")),
        ("checkpoint twice", lambda store, thread: thread.checkpoint("here")),
        ("rewind", lambda store, thread: thread.rewind(1)),
        ("checkpoints", lambda store, thread: thread.checkpoints()),
        ("fork", lambda store, thread: thread.fork("copy", at="here", user="eve")),
        ("info", lambda store, thread: thread.info()),
        ("threads", lambda store, thread: store.threads(user="eve")),
        ("users", lambda store, thread: store.users()),
        ("erase what would go", lambda store, thread: store.erase(user="eve", dry_run=True)),
        ("erase", lambda store, thread: store.erase(user="eve")),
        ("erase badly", lambda store, thread: store.erase(user="eve", forever="no")),
        ("finish_erasures", lambda store, thread: store.finish_erasures()),
        ("write to what was erased", lambda store, thread: store.thread("copy").append(said("late"))),
        ("submit", lambda store, thread: thread.submit("job", input={"n": 1})),
        ("runs", lambda store, thread: thread.runs()),
        ("runs of the store", lambda store, thread: store.runs(status="interrupted")),
        ("due", lambda store, thread: store.due()),
        ("resume", lambda store, thread: store.resume({"job": waiter})),
        ("signal", lambda store, thread: thread.signal("go", 2)),
        ("signal again", lambda store, thread: thread.signal("go", 3)),
        ("resume on", lambda store, thread: store.resume([waiter], limit=5)),
        ("resume rightly", lambda store, thread: store.resume({"job": waiter})),
        ("timeline", lambda store, thread: thread.timeline("job")),
        ("replay", lambda store, thread: store.replay(thread, "job", waiter)),
        ("signal late", lambda store, thread: thread.signal("go", 4)),
        ("submit another", lambda store, thread: thread.submit("other")),
        ("cancel", lambda store, thread: thread.cancel("other", reason="no need")),
        ("cancel twice", lambda store, thread: thread.cancel("other")),
        ("tenant", lambda store, thread: store.tenant),
    ]


def waiter(run: holdfast.Run) -> list[Any]:
    return [run.step("double", lambda n: 2 * n, run.input["n"], effect="pure"), run.wait("go")]


def plain(result: Any) -> Any:
    """A result that can be compared: handles by what they say of themselves, errors by class and text."""
    if isinstance(result, errors.HoldfastError):
        return type(result), str(result)
    return repr(result).removeprefix("Async") if "Thread(" in repr(result) else result


def test_every_method_does_what_its_blocking_twin_does(flights: holdfast.Registry, any_engine: None) -> None:
    told: list[Any] = []
    heard: list[Any] = []
    clock = ManualClock()
    with holdfast.open("ram:", clock=clock, ids=SeededIds(), schemas=flights) as store:
        thread = store.thread("t", user="ana")
        for name, call in story(clock):
            try:
                told.append((name, plain(call(store, thread))))
            except errors.HoldfastError as error:
                told.append((name, plain(error)))

    async def again() -> None:
        clock = ManualClock()
        async with aio.open("ram:", clock=clock, ids=SeededIds(), schemas=flights) as store:
            thread = store.thread("t", user="ana")
            for name, call in story(clock):
                try:
                    result = call(store, thread)
                    heard.append((name, plain(await result if isinstance(result, Awaitable) else result)))
                except errors.HoldfastError as error:
                    heard.append((name, plain(error)))

    run(again())
    assert heard == told


def test_the_story_leaves_out_no_method() -> None:
    named = {name.split()[0] for name, _ in story(ManualClock())}
    public = {name for name in (*dir(holdfast.Thread), *dir(holdfast.Store)) if not name.startswith("_")}
    elsewhere = {
        "context",  # tests/sessions
        "session",
        "turn",
        "watch",
        "feed_head",  # tests/ledger/test_feed.py
        "follower",
        "followers",
        "trim_feed",
        "expired",
        "for_tenant",  # tests/ledger/test_tenants.py
        "acting_as",
        "actor",
        "tenants",
        "set_quota",
        "usage",
        "verify",
        "close",
        "thread",
        "export",
        "import_",
        "backup",
        "run",
        "work",
        "handoff",
        "hold",  # tests/steps/test_hold.py
        "memory",
        "rebuild",
        "folder",  # test_folder
        "folders",
    }
    assert public - elsewhere <= named


@pytest.mark.every_engine
def test_it_works_on_every_engine(opened: Opened) -> None:
    async def work() -> list[Any]:
        async with opened() as store:
            thread = store.thread("t", user="ana")
            await thread.append(said("a"), said("b"))
            await thread.save({"n": 1})
            await thread.rewind(1)
            copy = await thread.fork("copy")
            await copy.append(said("c"))
            report = await store.verify()
            return [
                [entry.content["content"] for entry in await copy.log()],
                [info.id for info in await store.threads()],
                (await copy.state()).revision,
                report.problems,
            ]

    assert run(work()) == [["a", "c"], ["copy", "t"], 0, ()]


@pytest.mark.usefixtures("durable_engine")
def test_what_one_writes_the_other_reads(opened: Opened, place: Any) -> None:
    async def write() -> str:
        async with opened() as store:
            await store.thread("t").append(said("async"))
            return store.tenant

    with holdfast.open(place.url, tenant=run(write())) as store:
        assert store.thread("t").entry(1).content == said("async")


# Turns


def test_an_async_turn_is_one_commit(opened: Opened) -> None:
    async def work() -> None:
        async with opened() as store:
            thread = store.thread("t")
            async with thread.turn() as turn:
                turn.append(said("a"), said("b"))
                turn.save({"n": 1})
                assert (turn.entries, turn.revision, await thread.exists()) == ([], None, False)
            assert ([entry.number for entry in turn.entries], turn.revision) == ([1, 2], 1)
            async with thread.turn(expect=2) as entries_alone:
                entries_alone.append(said("c"))
            assert entries_alone.revision is None
            assert len([commit async for commit in store.watch(timeout_s=0)]) == 2

    run(work())


def test_an_async_turn_that_fails_leaves_nothing(opened: Opened) -> None:
    async def fail(turn: aio.AsyncTurn, error: Exception) -> None:
        async with turn:
            turn.append(said("a"))
            turn.save({"n": 1})
            raise error

    async def late(thread: aio.AsyncThread) -> None:
        async with thread.turn(expect=5) as turn:
            turn.append(said("a"))
            turn.save({"n": 1})

    async def work() -> None:
        async with opened() as store:
            thread = store.thread("t")
            turn = thread.turn()
            with pytest.raises(ZeroDivisionError):
                await fail(turn, ZeroDivisionError())
            with pytest.raises(errors.Invalid, match="this turn is abandoned"):
                turn.append(said("b"))
            with pytest.raises(errors.Conflict):
                await late(thread)
            assert not await thread.exists()

    run(work())


def test_a_key_makes_an_async_turn_idempotent(opened: Opened, clock: ManualClock) -> None:
    async def take(thread: aio.AsyncThread) -> tuple[Any, Any]:
        async with thread.turn(key="k") as turn:
            turn.append(said("a"))
            turn.save({"n": 1})
        return turn.entries, turn.revision

    async def work() -> None:
        async with opened() as store:
            first = await take(store.thread("t"))
            clock.advance(60)
            assert await take(store.thread("t")) == first

    run(work())


# Errors and context


def test_errors_reach_whoever_awaits(opened: Opened) -> None:
    async def work() -> None:
        async with opened() as store:
            thread = store.thread("t")
            await thread.append(said("a"), key="k")
            with pytest.raises(errors.KeyReused) as caught:
                await thread.append(said("b"), key="k")
            assert (caught.value.key, caught.value.position) == ("k", 1)
            with pytest.raises(errors.Invalid, match="lone surrogate"):
                await thread.append(said("\ud800"))
            outcomes = await asyncio.gather(
                *(thread.append(said(text), expect=1) for text in "bcd"), return_exceptions=True
            )
            assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Conflict", "Entry"]

    run(work())


def test_a_refresher_sees_the_context_of_whoever_awaits(
    opened: Opened, schemas: holdfast.Registry, clock: ManualClock
) -> None:
    request = contextvars.ContextVar[int]("request", default=0)
    schemas.schema("flight", version=1, fresh={"price": "10m"})(Flight)
    schemas.refresher("flight", "price")(lambda value, path: request.get())

    async def refreshed(store: aio.AsyncStore, number: int) -> int:
        request.set(number)
        thread = store.thread(f"t{number}")
        await thread.save(Flight(0))
        clock.advance(3600)
        return (await thread.state(Flight, on_stale="refresh")).value.price  # type: ignore[no-any-return]

    async def work() -> list[int]:
        async with opened() as store:
            return await asyncio.gather(*(refreshed(store, number) for number in (1, 2, 3)))

    assert run(work()) == [1, 2, 3]


# Cancelling


@pytest.mark.every_engine
def test_a_cancelled_append_is_there_whole_or_not_at_all(opened: Opened) -> None:
    async def work() -> None:
        async with opened() as store:
            thread = store.thread("t")
            for moment in range(40):
                task = asyncio.create_task(thread.append(said(moment), said(moment), said(moment)))
                await steps(moment % 8)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                found = [entry.content["content"] for entry in await thread.log()]
                assert all(found.count(number) in (0, 3) for number in set(found))
            last = await thread.append(said("done"))
            assert last.number == thread.blocking.logbook.head() == len(await thread.log())
            assert (await store.verify()).ok

    run(work())


@pytest.mark.every_engine
def test_a_cancelled_turn_is_there_whole_or_not_at_all(opened: Opened) -> None:
    async def take(thread: aio.AsyncThread, number: int) -> None:
        async with thread.turn() as turn:
            turn.append(said(number))
            turn.save({"last": number}, expect="any")

    async def consistent(store: aio.AsyncStore) -> bool:
        """Every turn's entry and state have the same time, and there are as many of the one as of the other."""
        thread = store.thread("t")
        revisions, entries = await thread.revisions(), await thread.log()
        ours = [entry.time for entry in entries]
        return {revision.time for revision in revisions} <= set(ours)

    async def work() -> None:
        async with opened() as store:
            for moment in range(40):
                task = asyncio.create_task(take(store.thread("t"), moment))
                await steps(moment % 10)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert await consistent(store)
            await take(store.thread("t"), 99)
            assert (await store.thread("t").state()).value == {"last": 99}

    run(work())


def test_cancelling_one_of_many_does_not_touch_the_others(opened: Opened) -> None:
    async def work() -> None:
        async with opened() as store:
            tasks = [asyncio.create_task(store.thread(f"t{n}").append(said(n))) for n in range(30)]
            await steps(1)
            for task in tasks[::3]:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            kept = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, holdfast.types.Entry)]
            assert set(kept) >= {n for n in range(30) if n % 3}
            assert [store.thread(f"t{n}").blocking.logbook.head() for n in kept] == [1] * len(kept)

    run(work())


def test_after_a_cancelled_save_the_handle_finds_its_way_again(opened: Opened) -> None:
    """It may not know that its save counted; then the next one is a conflict, and reloading helps."""

    async def work() -> None:
        async with opened() as store:
            thread = store.thread("t")
            for moment in range(20):
                task = asyncio.create_task(thread.save({"n": moment}))
                await steps(moment % 6)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await thread.state()
            before = (await thread.state()).revision
            assert await thread.save({"n": "last"}, expect="any") >= before + 1
            assert (await thread.state()).value == {"n": "last"}

    run(work())


# Many at once


def test_fifty_concurrent_appends_share_their_commits(folder: Path) -> None:
    """While someone holds the file, all of them queue; then one transaction takes what the first did not."""
    url = folder / "store.db"

    transactions: list[int] = []

    async def work() -> None:
        async with aio.open(url) as store:
            await store.thread("t").append(said("first"))
            group = store.blocking.core.engine._group  # type: ignore[attr-defined]
            run_jobs = group._run
            group._run = lambda jobs: (transactions.append(len(jobs)), run_jobs(jobs))
            holder = apsw.Connection(str(url))
            holder.execute("BEGIN IMMEDIATE")
            tasks = [asyncio.create_task(store.thread(f"t{n}").append(said(n))) for n in range(50)]
            await steps(2)
            holder.execute("ROLLBACK")
            holder.close()
            entries = await asyncio.gather(*tasks)
            assert {entry.number for entry in entries} == {1}
            assert len(await store.threads()) == 51
            assert len([commit async for commit in store.watch(after=1, timeout_s=0)]) == 50

    run(work())
    assert sum(transactions) == 50
    assert len(transactions) <= 2


@pytest.mark.every_engine
def test_fifty_concurrent_appends_to_one_thread_are_numbered_without_gaps(opened: Opened) -> None:
    async def work() -> None:
        async with opened() as store:
            thread = store.thread("t")
            entries = await asyncio.gather(*(thread.append(said(n), key=f"k{n}") for n in range(50)))
            assert sorted(entry.number for entry in entries) == list(range(1, 51))
            again = await asyncio.gather(*(thread.append(said(n), key=f"k{n}") for n in range(50)))
            assert again == entries
            assert thread.blocking.logbook.head() == 50

    run(work())


@pytest.mark.every_engine
def test_concurrent_patches_all_survive(opened: Opened) -> None:
    async def work() -> None:
        async with opened() as store:
            await store.thread("t").save(dict.fromkeys("abcdefghij", 0))
            await asyncio.gather(*(store.thread("t").patch(name, 1) for name in "abcdefghij"))
            assert (await store.thread("t").state()).value == dict.fromkeys("abcdefghij", 1)

    run(work())


# Event loops and closing


def test_one_store_can_be_used_from_one_event_loop_after_the_other(opened: Opened) -> None:
    async def start() -> aio.AsyncStore:
        store = await opened()
        await store.thread("t").append(said("a"))
        return store

    async def go_on(store: aio.AsyncStore) -> list[int]:
        numbers = [(await store.thread("t").append(said(text))).number for text in "bc"]
        return [*numbers, store.thread("t").blocking.logbook.head()]

    async def finish(store: aio.AsyncStore) -> None:
        await store.close()

    store = run(start())
    assert run(go_on(store)) == [2, 3, 3]
    run(finish(store))


@pytest.mark.every_engine
def test_an_append_whose_loop_is_gone_is_carried_out_all_the_same(opened: Opened) -> None:
    """The loop ends while the commit is under way: nobody can be told, but nothing is lost and nothing breaks."""

    async def leave() -> aio.AsyncStore:
        store = await opened()
        await store.thread("t").append(said("first"))
        asyncio.get_running_loop().create_task(store.thread("t").append(said("left behind")))
        await steps(1)
        return store

    async def look(store: aio.AsyncStore) -> int:
        number = (await store.thread("t").append(said("last"))).number
        await store.close()
        return number

    store = run(leave())
    assert run(look(store)) in (2, 3)


@pytest.mark.every_engine
@pytest.mark.usefixtures("durable_engine")
def test_closing_while_appends_are_under_way_loses_none_that_was_acknowledged(opened: Opened) -> None:
    async def work(moment: int) -> None:
        store = await opened()
        tasks = [asyncio.create_task(store.thread(f"t{n}").append(said(moment))) for n in range(20)]
        await steps(moment)
        closing = asyncio.create_task(store.close())
        await steps(moment)
        tasks += [asyncio.create_task(store.thread(f"t{n}").append(said(moment))) for n in range(20)]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await closing
        refused = [outcome for outcome in outcomes if not isinstance(outcome, holdfast.types.Entry)]
        assert all(type(outcome) is errors.Misconfigured for outcome in refused)
        acknowledged.append(sum(isinstance(outcome, holdfast.types.Entry) for outcome in outcomes))

    acknowledged: list[int] = []
    for moment in range(6):
        run(work(moment))

    async def count() -> int:
        async with opened() as store:
            return sum(info.entries for info in await store.threads())

    assert run(count()) >= sum(acknowledged)


def test_a_closed_async_store_says_so(opened: Opened) -> None:
    async def work() -> None:
        store = await opened()
        thread = store.thread("t")
        await thread.append(said("a"))
        await store.close()
        await store.close()
        for use in (
            lambda: thread.append(said("b")),
            thread.log,
            lambda: thread.save({}),
            thread.fork,
            store.threads,
            store.verify,
            lambda: store.erase(thread="t"),
            lambda: anext(aiter(store.watch(timeout_s=0))),
        ):
            with pytest.raises(errors.Misconfigured, match="this store is closed"):
                await (use("copy") if use == thread.fork else use())

    run(work())


def test_a_with_block_closes_the_async_store_also_when_it_fails(opened: Opened) -> None:
    kept: list[aio.AsyncStore] = []

    async def fail() -> None:
        async with opened() as store:
            kept.append(store)
            raise ZeroDivisionError

    async def work() -> None:
        with pytest.raises(ZeroDivisionError):
            await fail()
        with pytest.raises(errors.Misconfigured):
            await kept[0].threads()
        async with await opened() as store:
            kept.append(store)
        with pytest.raises(errors.Misconfigured):
            await kept[1].threads()

    run(work())


def test_a_store_that_cannot_be_opened_says_why(folder: Path) -> None:
    async def work() -> None:
        with pytest.raises(errors.Misconfigured, match="no engine for ftp:"):
            await aio.open("ftp://x")
        with pytest.raises(errors.HoldfastError):
            async with aio.open(folder):
                pass

    run(work())


class SlowOpening:
    """Opening a store waits in the middle until it may go on; what it opens is kept to be looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.may_go_on, self.closed = threading.Event(), threading.Event(), threading.Event()
        self.made: list[holdfast.Store] = []
        self._open, self._close = blocking.open, blocking.Store.close
        monkeypatch.setattr(blocking, "open", self.open)

        def close(store: holdfast.Store) -> None:
            self._close(store)
            self.closed.set()

        monkeypatch.setattr(blocking.Store, "close", close)

    def open(self, *args: Any, **options: Any) -> holdfast.Store:
        self.begun.set()
        self.may_go_on.wait(PATIENCE_S)
        self.made.append(self._open(*args, **options))
        return self.made[-1]


def test_cancelling_the_opening_leaves_nothing_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowOpening(monkeypatch)

    async def open_it() -> aio.AsyncStore:
        return await aio.open(folder / "store.db")

    async def work() -> None:
        opening = asyncio.create_task(open_it())
        await asyncio.to_thread(slow.begun.wait, PATIENCE_S)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        slow.may_go_on.set()
        assert await asyncio.to_thread(slow.closed.wait, PATIENCE_S)

    run(work())
    with pytest.raises(errors.Misconfigured):
        slow.made[0].threads()


@pytest.mark.every_engine
def test_cancelling_the_closing_still_closes(opened: Opened) -> None:
    async def work() -> None:
        store = await opened()
        await store.thread("t").append(said("a"))
        closing = asyncio.create_task(store.close())
        await steps(1)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        with pytest.raises(errors.Misconfigured):
            await store.threads()

    run(work())


# Watching


@pytest.mark.every_engine
def test_an_async_watcher_sees_commits_in_order_and_waits_for_more(opened: Opened) -> None:
    async def work() -> list[int]:
        async with opened() as store:
            await store.thread("t").append(said("a"))
            seen: list[int] = []
            more = asyncio.Event()

            async def watch() -> None:
                async for commit in store.watch():
                    seen.append(commit.position)
                    more.set()
                    if len(seen) == 3:
                        return

            watching = asyncio.create_task(watch())
            for text in "bc":
                await more.wait()
                more.clear()
                await store.thread("t").append(said(text))
            await watching
            return seen

    assert run(work()) == [1, 2, 3]


def test_async_watching_goes_on_from_a_position_and_ends(opened: Opened) -> None:
    async def work() -> list[int]:
        async with opened() as store:
            for text in "abc":
                await store.thread("t").append(said(text))
            with pytest.raises(errors.Invalid, match="after must be a whole number"):
                await anext(aiter(store.watch(after=-1)))
            return [commit.position async for commit in store.watch(after=1, timeout_s=0)]

    assert run(work()) == [2, 3]


@pytest.mark.every_engine
def test_more_watchers_than_threads_leave_room_for_work(opened: Opened) -> None:
    async def first(store: aio.AsyncStore) -> int:
        async for commit in store.watch():
            return commit.position
        return 0

    async def work() -> list[int]:
        async with opened() as store:
            watchers = [asyncio.create_task(first(store)) for _ in range(20)]
            await steps(3)
            await store.thread("t").append(said("a"))
            return await asyncio.gather(*watchers)

    assert run(work()) == [1] * 20
