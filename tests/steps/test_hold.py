"""One at a time on a thread: who holds it keeps those out who ask, and nobody waits for the dead."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio, errors


@pytest.mark.every_engine
def test_a_thread_is_held_by_one_at_a_time(process: Any, other: Any) -> None:
    with process.thread().hold():
        for thread, holder in ((other.thread(), "held by first"), (process.thread(), "this process")):
            with pytest.raises(errors.ThreadHeld, match=holder) as caught:
                thread.hold().take()
            assert (caught.value.facts["holder"], caught.value.facts["thread"]) == ("first", "trip-42")
        with other.thread("another").hold():
            pass
    with other.thread().hold() as held:
        assert repr(held) == "Hold('trip-42', held)"
        with pytest.raises(errors.ThreadHeld):
            process.thread().hold().take()
    assert repr(held) == "Hold('trip-42', not held)"


def test_what_goes_wrong_inside_lets_it_go(process: Any, other: Any) -> None:
    with pytest.raises(ZeroDivisionError), process.thread().hold():
        _ = 1 // 0
    other.thread().hold().take()


def test_it_keeps_nobody_out_who_does_not_ask(process: Any, other: Any) -> None:
    with process.thread().hold():
        other.thread().append(holdfast.note("hello"))
    assert process.thread().logbook.head() == 1
    assert [run.name for run in process.store.runs()] == []


@pytest.mark.every_engine
def test_one_that_is_renewed_lasts_and_one_that_is_not_ends(process: Any, other: Any) -> None:
    held = process.thread().hold().take()
    process.clock.advance(20)
    held.renew()
    process.clock.advance(20)
    with pytest.raises(errors.ThreadHeld):
        other.thread().hold().take()
    process.lapse()
    with other.thread().hold():
        with pytest.raises(errors.Fenced):
            held.renew()
        held.release()  # it is another's now, and stays so
        with pytest.raises(errors.ThreadHeld):
            process.thread().hold().take()


def test_a_dead_holder_of_this_machine_is_not_waited_for(place: Any) -> None:
    dead = place.process("dead", seat="here", pid=4_000_000)  # no such process
    alive = place.process("alive", seat="here")
    dead.thread().hold().take()
    dead.die()
    with alive.thread().hold():
        pass


def test_a_hold_that_nobody_refers_to_is_free_in_this_process(process: Any) -> None:
    process.thread().hold().take()
    with process.thread().hold():
        pass


def test_who_waits_gets_it_when_it_is_let_go(process: Any, other: Any) -> None:
    held = process.thread().hold().take()
    order: list[str] = []
    tried = threading.Event()

    def wait() -> None:
        hold = other.thread().hold(wait_s=60)
        listen = other.store.wiring.runs.listen
        other.store.wiring.runs.listen = lambda seconds: (tried.set(), listen(seconds))
        with hold:
            order.append("second")

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert tried.wait(60)
    order.append("first")
    held.release()
    waiter.join(60)
    assert order == ["first", "second"]


def test_closing_a_store_lets_go(process: Any, other: Any) -> None:
    held = process.thread().hold().take()
    process.store.wiring.runs.close()
    other.thread().hold().take()
    del held


@pytest.mark.every_engine
def test_erasing_a_thread_ends_its_hold(process: Any, other: Any) -> None:
    process.thread().append(holdfast.note("hello"))
    held = process.thread().hold().take()
    process.store.erase(thread="trip-42", forever=False)
    other.thread().hold().take()
    with pytest.raises(errors.Fenced):
        held.renew()


def test_closing_a_store_leaves_what_another_holds_since_an_erasure(process: Any, other: Any) -> None:
    """A record that was made anew has the old versions again."""
    held = process.thread().hold().take()
    other.store.erase(thread="trip-42", forever=False)
    with other.thread().hold():
        process.store.wiring.runs.close()
        with pytest.raises(errors.ThreadHeld):
            process.thread().hold().take()
    del held


def test_one_that_was_renewed_without_hearing_of_it_is_kept_and_let_go(process: Any, other: Any) -> None:
    def lose_the_answer(ops: Any) -> None:
        process.wire.after.clear()
        raise errors.Unavailable("the answer got lost")

    held = process.thread().hold().take()
    for _ in range(2):
        process.wire.after.append(lose_the_answer)
        with pytest.raises(errors.Unavailable):
            held.renew()
        process.clock.advance(20)
        held.renew()
        with pytest.raises(errors.ThreadHeld):
            other.thread().hold().take()
    process.wire.after.append(lose_the_answer)
    with pytest.raises(errors.Unavailable):
        held.renew()
    held.release()
    other.thread().hold().take()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, errors.Unavailable("the answer got lost")])
def test_one_that_is_interrupted_as_it_takes_a_thread_leaves_it_free(process: Any, other: Any, failure: Any) -> None:
    def break_off(ops: Any) -> None:
        process.wire.after.clear()
        raise failure

    process.wire.after.append(break_off)
    with pytest.raises((KeyboardInterrupt, errors.Unavailable)):
        process.thread().hold().take()
    with other.thread().hold():
        pass


def test_one_that_is_interrupted_as_it_lets_go_does_so(process: Any, other: Any) -> None:
    def interrupt(ops: Any) -> None:
        process.wire.before.clear()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), process.thread().hold():
        process.wire.before.append(interrupt)
    with other.thread().hold():
        pass


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("wait_s", [-1, "5", True, float("nan"), None])
def test_a_wait_that_is_none_is_refused(process: Any, wait_s: Any) -> None:
    with pytest.raises(errors.Invalid, match="wait_s"):
        process.thread().hold(wait_s=wait_s)


@pytest.mark.usefixtures("any_engine")
def test_a_hold_is_taken_once(process: Any) -> None:
    with process.thread().hold() as held, pytest.raises(errors.Invalid, match="already in use"):
        held.take()
    with held:
        pass
    held.release()


# Async


def test_tasks_take_turns(tmp_path: Path) -> None:
    async def main() -> list[str]:
        said: list[str] = []
        async with aio.open(tmp_path / "agent.db") as store:

            async def turn(name: str) -> None:
                async with store.thread("t").hold(wait_s=60):
                    said.append(f"{name} begins")
                    await asyncio.sleep(0)
                    await store.thread("t").append(holdfast.note(name))
                    said.append(f"{name} ends")

            await asyncio.gather(*(turn(f"task {number}") for number in range(40)))
            async with store.thread("t").hold():
                with pytest.raises(errors.ThreadHeld):
                    await store.thread("t").hold().take()
        return said

    said = asyncio.run(main())
    assert len(said) == 80
    assert [one.replace("begins", "ends") for one in said[::2]] == said[1::2]


def test_a_task_that_is_cancelled_while_it_takes_a_thread_leaves_it_free(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path / "agent.db") as store:
            for pauses in range(6):
                hold = store.thread("t").hold()
                task = asyncio.ensure_future(hold.take())
                for _ in range(pauses):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                async with store.thread("t").hold():
                    pass

    asyncio.run(main())


def test_a_thread_is_let_go_however_often_its_task_is_cancelled_and_however_busy_the_store_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path / "agent.db") as store, aio.open(tmp_path / "agent.db") as other:
            hold, inside, busy = store.thread("t").hold(), asyncio.Event(), threading.Event()

            async def work() -> None:
                async with hold:
                    inside.set()
                    await asyncio.Event().wait()

            task = asyncio.ensure_future(work())
            await inside.wait()
            others = [asyncio.ensure_future(store._offload.run(busy.wait)) for _ in range(64)]
            try:
                while not task.done():  # as cancel scopes do it
                    task.cancel()
                    await asyncio.sleep(0)
                async with other.thread("t").hold():
                    assert repr(hold) == "AsyncHold('t', not held)"
            finally:
                busy.set()
                await asyncio.gather(*others)

    asyncio.run(main())


def test_one_that_waits_for_a_hold_of_its_own_and_is_cancelled_does_not_let_it_go(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path / "agent.db") as store:
            first, shared = store.thread("t").hold(), store.thread("t").hold(wait_s=60)
            await first.take()
            waiters = [asyncio.ensure_future(shared.take()) for _ in range(2)]
            await asyncio.sleep(0)
            await first.release()
            done, waiting = await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiters)
            assert len(done) == 1
            with pytest.raises(errors.ThreadHeld):
                await store.thread("t").hold().take()
            await shared.release()

    asyncio.run(main())


def test_a_store_that_is_closed_inside_hides_no_error(tmp_path: Path) -> None:
    async def main() -> None:
        store = await aio.open(tmp_path / "agent.db")
        async with store.thread("t").hold():
            await store.close()
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(main())


def test_a_thread_that_was_held_before_it_had_an_owner_is_erased_with_its_owner(process: Any) -> None:
    with process.store.thread("ana@example.com").hold():
        process.store.thread("ana@example.com", user="ana").append(holdfast.note("hello"))
    process.store.erase(user="ana")
    named = {change.id for commit in process.store.watch(timeout_s=0) for change in commit.changes}
    assert named == {""}
    assert process.store.core.engine.get(process.store.tenant, "hold", "ana@example.com") is None


@pytest.mark.every_engine
def test_who_is_refused_is_told_by_whom_also_when_many_ask_at_once(process: Any, other: Any) -> None:
    refused: list[errors.ThreadHeld] = []

    def ask(one: Any) -> None:
        for _ in range(30):
            try:
                with one.thread().hold():
                    pass
            except errors.ThreadHeld as error:
                refused.append(error)

    askers = [threading.Thread(target=ask, args=(one,)) for one in (process, other) * 3]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(60)
    assert all(error.facts["holder"] in ("first", "second", process.name, other.name) for error in refused)
