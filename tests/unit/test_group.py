"""Group commit: who leads, what goes together, and that nobody's batch is lost or left waiting."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine.contract import Outcome, Receipt
from holdfast.engine.group import GroupCommit, Job
from holdfast.errors import Misconfigured, OutcomeUnknown, Unavailable

PATIENCE_S = 30.0  # a guard against hanging for ever, not a measurement


class Disk:
    """Commits whatever it is given, remembers it, and can be held so that others queue up behind it."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.threads: list[threading.Thread] = []
        self.busy = threading.Semaphore(0)
        self.faults: dict[int, BaseException] = {}
        self._go_on: threading.Semaphore | None = None

    def hold(self) -> None:
        self._go_on = threading.Semaphore(0)

    def let_go(self) -> None:
        assert self._go_on is not None
        go_on, self._go_on = self._go_on, None
        go_on.release()

    def __call__(self, jobs: list[Job]) -> None:
        self.groups.append([job.time for job in jobs])
        self.threads.append(threading.current_thread())
        if self._go_on is not None:
            go_on = self._go_on
            self.busy.release()
            assert go_on.acquire(timeout=PATIENCE_S)
        if len(self.groups) in self.faults:
            raise self.faults[len(self.groups)]
        for job in jobs:
            job.receipt = Receipt(len(self.groups), job.time)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def group(disk: Disk) -> Iterator[GroupCommit]:
    group = GroupCommit(disk)
    yield group
    aside(group.close).result(PATIENCE_S)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released each time a caller begins to wait, so that a test knows who is queued."""
    arrived, wait = threading.Semaphore(0), Job.wait

    def tell_and_wait(job: Job) -> None:
        arrived.release()
        wait(job)

    monkeypatch.setattr(Job, "wait", tell_and_wait)
    return arrived


def aside(act: Callable[[], Any]) -> Future[Any]:
    """Run in a thread that a failing test does not have to wait for."""
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(act())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome


def commit(group: GroupCommit, number: int) -> Future[Receipt]:
    return aside(lambda: group.commit("acme", (), number))


def queue(group: GroupCommit, waiting: threading.Semaphore, *numbers: int) -> list[Future[Receipt]]:
    """Let callers queue up in this order behind a leader that is busy."""
    futures = []
    for number in numbers:
        futures.append(commit(group, number))
        assert waiting.acquire(timeout=PATIENCE_S)
    return futures


def lead(group: GroupCommit, disk: Disk, number: int) -> Future[Receipt]:
    """Let a caller lead and keep it busy."""
    disk.hold()
    future = commit(group, number)
    assert disk.busy.acquire(timeout=PATIENCE_S)
    return future


def times(futures: list[Future[Receipt]]) -> list[int]:
    return [future.result(PATIENCE_S).time for future in futures]


class Ears:
    """Hears of submitted batches."""

    def __init__(self) -> None:
        self.calls: list[list[Outcome]] = []
        self._heard = threading.Semaphore(0)

    def __call__(self, outcomes: list[Outcome]) -> None:
        self.calls.append(outcomes)
        for _ in outcomes:
            self._heard.release()

    def wait_for(self, count: int) -> list[Outcome]:
        for _ in range(count):
            assert self._heard.acquire(timeout=PATIENCE_S)
        return [outcome for call in self.calls for outcome in call]


# Who leads


def test_a_single_caller_commits_in_its_own_thread_and_starts_no_other(group: GroupCommit, disk: Disk) -> None:
    before = threading.active_count()
    receipts = [group.commit("acme", (), number) for number in (1, 2)]
    assert [receipt.time for receipt in receipts] == [1, 2]
    assert disk.groups == [[1], [2]]
    assert set(disk.threads) == {threading.current_thread()}
    assert threading.active_count() == before


def test_what_queues_while_the_leader_is_busy_goes_together(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore
) -> None:
    first = lead(group, disk, 1)
    others = queue(group, waiting, 2, 3, 4)
    disk.let_go()
    assert times([first, *others]) == [1, 2, 3, 4]
    assert disk.groups == [[1], [2, 3, 4]]
    assert {future.result().feed for future in others} == {2}


def test_the_lead_goes_to_the_oldest_waiter(group: GroupCommit, disk: Disk, waiting: threading.Semaphore) -> None:
    names: dict[str, int] = {}
    first = lead(group, disk, 1)
    for number in (2, 3):
        thread = threading.Thread(target=group.commit, args=("acme", (), number), daemon=True)
        thread.start()
        names[thread.name] = number
        assert waiting.acquire(timeout=PATIENCE_S)
    disk.let_go()
    assert first.result(PATIENCE_S).time == 1
    group.commit("acme", (), 4)
    assert names[disk.threads[1].name] == 2


def test_a_group_is_no_larger_than_the_limit(disk: Disk, waiting: threading.Semaphore) -> None:
    group = GroupCommit(disk, limit=2)
    futures = [lead(group, disk, 1), *queue(group, waiting, 2, 3, 4, 5, 6)]
    disk.let_go()
    assert times(futures) == [1, 2, 3, 4, 5, 6]
    assert disk.groups == [[1], [2, 3], [4, 5], [6]]
    group.close()


def test_a_caller_that_arrives_during_the_hand_over_is_not_forgotten(group: GroupCommit, disk: Disk) -> None:
    """Many short commits meet every moment between looking at the queue and letting the lead go."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            done = [pool.submit(group.commit, "acme", (), number) for number in range(3_000)]
            assert times(done) == list(range(3_000))
    finally:
        sys.setswitchinterval(interval)
    assert sorted(number for members in disk.groups for number in members) == list(range(3_000))


# Batches without a waiting caller


def test_submitted_batches_are_committed_by_a_thread_of_their_own(group: GroupCommit, disk: Disk) -> None:
    ears = Ears()
    group.submit("acme", (), 1, ears, "ticket")
    ((ticket, receipt, error),) = ears.wait_for(1)
    assert (ticket, error) == ("ticket", None)
    assert receipt is not None
    assert receipt.time == 1
    assert [thread.name for thread in disk.threads] == ["holdfast-writer"]


def test_one_call_tells_of_all_batches_of_a_group(group: GroupCommit, disk: Disk) -> None:
    first, ears, others = lead(group, disk, 1), Ears(), Ears()
    for number in (2, 3):
        group.submit("acme", (), number, ears, number)
    group.submit("acme", (), 4, others, 4)
    disk.let_go()
    assert [ticket for ticket, _, _ in ears.wait_for(2)] == [2, 3]
    assert [ticket for ticket, _, _ in others.wait_for(1)] == [4]
    assert (len(ears.calls), len(others.calls)) == (1, 1)
    assert disk.groups == [[1], [2, 3, 4]]
    assert first.result(PATIENCE_S).time == 1


def test_waiting_and_submitting_callers_share_a_group_in_the_order_they_came(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore
) -> None:
    first, ears = lead(group, disk, 1), Ears()
    group.submit("acme", (), 2, ears, None)
    futures = queue(group, waiting, 3)
    group.submit("acme", (), 4, ears, None)
    disk.let_go()
    assert times([first, *futures]) == [1, 3]
    assert len(ears.wait_for(2)) == 2
    assert disk.groups == [[1], [2, 3, 4]]


def test_many_threads_that_commit_and_submit_lose_nothing(group: GroupCommit, disk: Disk) -> None:
    ears = Ears()

    def work(worker: int) -> None:
        for number in range(worker * 100, worker * 100 + 100):
            if number % 2:
                group.submit("acme", (), number, ears, number)
            else:
                assert group.commit("acme", (), number).time == number

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    told = ears.wait_for(400)
    assert sorted(receipt.time for _, receipt, _ in told if receipt) == list(range(1, 800, 2))
    assert sorted(number for members in disk.groups for number in members) == list(range(800))


def test_a_notify_that_fails_harms_nobody(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(outcomes: list[Outcome]) -> None:
        raise RuntimeError("the event loop is closed")

    first, ears = lead(group, disk, 1), Ears()
    group.submit("acme", (), 2, gone, None)
    group.submit("acme", (), 3, ears, None)
    futures = queue(group, waiting, 4)
    with caplog.at_level(logging.CRITICAL):
        disk.let_go()
        assert times([first, *futures]) == [1, 4]
        assert len(ears.wait_for(1)) == 1
    assert group.commit("acme", (), 5).time == 5


# Interruptions and errors


def test_an_interrupted_waiter_leaves_its_batch_behind_and_it_is_committed(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lead(group, disk, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Job, "wait", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            group.commit("acme", (), 2)
    (third,) = queue(group, waiting, 3)
    disk.let_go()
    assert times([first, third]) == [1, 3]
    assert disk.groups == [[1], [2, 3]]
    assert group.commit("acme", (), 4).time == 4


def test_an_interrupted_waiter_that_already_leads_commits_before_it_goes(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    promoted = threading.Event()

    def interrupted_after_promotion(job: Job) -> None:
        waiting.release()
        job._gate.acquire()
        job._gate.release()  # as if the signal had come before the gate was passed
        promoted.set()
        raise KeyboardInterrupt

    first = lead(group, disk, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Job, "wait", interrupted_after_promotion)
        second = commit(group, 2)
        assert waiting.acquire(timeout=PATIENCE_S)
    (third,) = queue(group, waiting, 3)
    disk.let_go()
    assert isinstance(second.exception(PATIENCE_S), KeyboardInterrupt)
    assert promoted.is_set()
    assert times([first, third]) == [1, 3]
    assert disk.groups == [[1], [2, 3]]
    assert aside(lambda: group.commit("acme", (), 4)).result(PATIENCE_S).time == 4


def test_an_error_of_ours_ends_every_batch_of_its_group_and_no_other(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore
) -> None:
    """Each caller gets an error of its own to raise: one that is raised in two threads mixes up their tracebacks."""
    disk.faults[2] = Unavailable("the disk is full", path="store.db")
    first, ears = lead(group, disk, 1), Ears()
    failing = queue(group, waiting, 2, 3)
    group.submit("acme", (), 4, ears, "ticket")
    disk.let_go()
    errors = [future.exception(PATIENCE_S) for future in failing]
    ((ticket, receipt, error),) = ears.wait_for(1)
    assert (ticket, receipt) == ("ticket", None)
    assert [(type(e), str(e)) for e in (*errors, error)] == [(Unavailable, "the disk is full")] * 3
    assert len({id(e) for e in (*errors, error)}) == 3
    assert first.result(PATIENCE_S).time == 1
    assert group.commit("acme", (), 5).time == 5


def test_a_mistake_in_the_engine_is_raised_to_its_leader_and_unknown_to_the_others(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore
) -> None:
    mistake = disk.faults[2] = ZeroDivisionError()
    first, ears = lead(group, disk, 1), Ears()
    leader, follower = queue(group, waiting, 2, 3)
    group.submit("acme", (), 4, ears, None)
    disk.let_go()
    assert leader.exception(PATIENCE_S) is mistake
    assert isinstance(follower.exception(PATIENCE_S), OutcomeUnknown)
    assert [type(error) for _, _, error in ears.wait_for(1)] == [OutcomeUnknown]
    assert first.result(PATIENCE_S).time == 1
    assert group.commit("acme", (), 5).time == 5


def test_an_interrupted_leader_tells_the_others_that_the_outcome_is_unknown(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore
) -> None:
    disk.faults[2] = KeyboardInterrupt()
    first = lead(group, disk, 1)
    leader, follower = queue(group, waiting, 2, 3)
    disk.let_go()
    assert isinstance(leader.exception(PATIENCE_S), KeyboardInterrupt)
    assert isinstance(follower.exception(PATIENCE_S), OutcomeUnknown)
    assert first.result(PATIENCE_S).time == 1
    assert group.commit("acme", (), 4).time == 4


def test_a_batch_with_an_end_keeps_it_when_its_group_fails_later(waiting: threading.Semaphore) -> None:
    def end_the_first_and_fail(jobs: list[Job]) -> None:
        jobs[0].receipt = Receipt(1, jobs[0].time)
        raise OSError("too late for the first")

    group = GroupCommit(end_the_first_and_fail)
    assert group.commit("acme", (), 1).time == 1
    group.close()


SIGNALS = """
import random, signal, threading
from holdfast.engine.contract import Receipt
from holdfast.engine.group import GroupCommit
from holdfast.errors import OutcomeUnknown

class Interrupted(BaseException): pass
def interrupt(*_): raise Interrupted

ran, acknowledged, stop = [], [], threading.Event()
def run(jobs):
    ran.extend(job.time for job in jobs)
    for job in jobs:
        job.receipt = Receipt(1, job.time)
group = GroupCommit(run)

def commit(number):
    try:
        group.commit("acme", (), number)
    except OutcomeUnknown:
        return
    acknowledged.append(number)

def work(worker):
    number = worker * 10_000_000
    while not stop.is_set():
        number += 1
        commit(number)

def attempt(number):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.0002))
        commit(number)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        return 1
    return 0

random.seed(0)
signal.signal(signal.SIGALRM, interrupt)
threads = [threading.Thread(target=work, args=(worker,)) for worker in (1, 2, 3)]
for thread in threads:
    thread.start()
interrupted = sum(attempt(number) for number in range(4_000))
stop.set()
for thread in threads:
    thread.join()
group.close()
print(interrupted > 0, len(ran) == len(set(ran)), set(acknowledged) <= set(ran))
"""


def test_a_signal_that_raises_in_a_caller_at_any_point_harms_nobody() -> None:
    """Real signals into a thread that commits beside three others: nobody hangs, nothing is lost or done twice."""
    source = str(Path(holdfast.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SIGNALS], capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True True True\n", "")


# The end


def test_closing_while_busy_finishes_everything_that_was_accepted(
    group: GroupCommit, disk: Disk, waiting: threading.Semaphore
) -> None:
    first, ears = lead(group, disk, 1), Ears()
    futures = queue(group, waiting, 2, 3)
    group.submit("acme", (), 4, ears, None)
    closing = aside(group.close)
    disk.let_go()
    closing.result(PATIENCE_S)
    assert all(future.done() or future.result(PATIENCE_S) for future in [first, *futures])
    assert len(ears.wait_for(1)) == 1
    assert sorted(number for members in disk.groups for number in members) == [1, 2, 3, 4]


def test_nothing_is_accepted_after_close(group: GroupCommit, disk: Disk) -> None:
    group.close()
    group.close()
    with pytest.raises(Misconfigured):
        group.commit("acme", (), 1)
    with pytest.raises(Misconfigured):
        group.submit("acme", (), 1, Ears(), None)
    assert disk.groups == []


def test_closing_ends_the_writer_thread(group: GroupCommit) -> None:
    ears = Ears()
    group.submit("acme", (), 1, ears, None)
    ears.wait_for(1)
    group.close()
    assert "holdfast-writer" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("way", ["commit", "submit"])
def test_whoever_comes_too_late_for_the_close_is_refused(
    group: GroupCommit, disk: Disk, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Also when the close happens while the call is on its way: nothing runs after it, and nobody waits for ever."""
    arrived, go_on, make = threading.Semaphore(0), threading.Semaphore(0), Job.__init__

    def make_slowly(job: Job, *args: Any) -> None:
        arrived.release()
        assert go_on.acquire(timeout=PATIENCE_S)
        make(job, *args)

    monkeypatch.setattr(Job, "__init__", make_slowly)
    calls: dict[str, Callable[[], object]] = {
        "commit": lambda: group.commit("acme", (), 1),
        "submit": lambda: group.submit("acme", (), 1, Ears(), None),
    }
    late = aside(calls[way])
    assert arrived.acquire(timeout=PATIENCE_S)
    group.close()
    go_on.release()
    assert isinstance(late.exception(PATIENCE_S), Misconfigured)
    assert disk.groups == []


def test_callers_that_race_with_the_close_end_or_are_refused() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            _race_with_close(GroupCommit(Disk()))
    finally:
        sys.setswitchinterval(interval)


def _race_with_close(group: GroupCommit) -> None:
    busy, ears = threading.Semaphore(0), Ears()

    def until_closed(act: Callable[[int], object]) -> int:
        for number in range(1_000_000):
            try:
                act(number)
            except Misconfigured:
                return number
            busy.release()
        return -1

    committing = [aside(lambda: until_closed(lambda n: group.commit("acme", (), n))) for _ in range(2)]
    submitting = [aside(lambda: until_closed(lambda n: group.submit("acme", (), n, ears, n))) for _ in range(2)]
    for _ in range(40):
        assert busy.acquire(timeout=PATIENCE_S)
    group.close()
    assert all(future.result(PATIENCE_S) >= 0 for future in committing)
    ears.wait_for(sum(future.result(PATIENCE_S) for future in submitting))


def _interrupted(job: Job) -> None:
    raise KeyboardInterrupt
