"""One at a time on a thread: who holds it keeps those out who ask, and nobody waits for the dead."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio, errors


def test_a_thread_is_held_by_one_at_a_time(process: Any, other: Any) -> None:
    with process.thread().hold():
        for thread, holder in ((other.thread(), "held by first"), (process.thread(), "this very process")):
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
    assert process.thread().count() == 1
    assert [run.name for run in process.store.runs()] == []


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
        listen = other.store._runs.listen
        other.store._runs.listen = lambda seconds: (tried.set(), listen(seconds))
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
    process.store._runs.close()
    other.thread().hold().take()
    del held


def test_erasing_a_thread_ends_its_hold(process: Any, other: Any) -> None:
    process.thread().append(holdfast.note("hello"))
    held = process.thread().hold().take()
    process.store.erase(thread="trip-42", forever=False)
    other.thread().hold().take()
    with pytest.raises(errors.Fenced):
        held.renew()


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("wait_s", [-1, "5", True, float("nan"), None])
def test_a_wait_that_is_none_is_refused(process: Any, wait_s: Any) -> None:
    with pytest.raises(errors.Invalid, match="wait_s"):
        process.thread().hold(wait_s=wait_s)


@pytest.mark.usefixtures("any_engine")
def test_a_hold_is_taken_once(process: Any) -> None:
    with process.thread().hold() as held, pytest.raises(errors.Invalid, match="taken already"):
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
