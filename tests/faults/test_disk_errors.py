"""A disk whose calls fail: everything is answered with an error of ours, and nothing acknowledged is lost.

For each kind of call the first one fails, then the second, and so on, until the script ends before the fault comes.
Each time the disk is repaired, the store goes on, and then is closed or loses its power. An answer is binding: what
was acknowledged is there, what was refused is not; only ``OutcomeUnknown`` leaves it open.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from crashlab.disk import Fault, Kind, PowerDisk
from crashlab.disk_workload import converse, go_on, wrong
from crashlab.power import Tally, Trial, Witness

from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.store import Store
from holdfast.store import open as open_store

EVERY_CALL = "HOLDFAST_TEST_CUTS" in os.environ
LONGEST_S = 10.0
BROKEN: tuple[Kind, ...] = ("open", "read", "write", "sync", "truncate", "delete")
FAULTS = [(kind, False, lasting) for kind in BROKEN for lasting in (False, True)]
FAULTS += [("write", True, False), ("write", True, True)]  # only a write can tell that the disk is full

Record = Callable[[str, object], None]
script = partial(converse, rounds=3)


def fault_after_fault(
    trial: Trial, make_fault: Callable[[int], Fault], *, step: int = 1, dies: bool | None = None
) -> Tally:
    """Fail call 1, 2, 3 … until a run is through before its fault came. Unless told, every other run ends in a cut."""
    tally = Tally()
    for run in itertools.count():
        began = time.monotonic()
        outcome = trial.fault(make_fault(1 + run * step), seed=run, dies=run % 2 == 0 if dies is None else dies)
        assert time.monotonic() - began < LONGEST_S, f"{outcome.name} hung"
        tally.outcomes.append(outcome)
        if not outcome.fired:
            break
    return tally


def assert_answers_hold(tally: Tally, record_property: Record) -> None:
    for name, number in tally.numbers().items():
        record_property(name, number)
    print(tally)
    assert not tally.broken, str(tally)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "full", "lasting"),
    FAULTS,
    ids=[f"{kind}{'-full' * full}-{'lasting' if lasting else 'once'}" for kind, full, lasting in FAULTS],
)
def test_an_answer_holds_whichever_call_fails(
    tmp_path: Path, kind: Kind, full: bool, lasting: bool, record_property: Record
) -> None:
    trial = Trial(tmp_path, script, wrong, after=go_on)
    step = 3 if kind == "write" and not EVERY_CALL else 1  # there are hundreds of writes
    tally = fault_after_fault(trial, lambda nth: Fault(kind, nth, full=full, lasting=lasting), step=step)
    assert_answers_hold(tally, record_property)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "checkpoint_pages"),
    [(False, 25), (False, 1_000), (True, 25), (True, 1_000)],
    ids=["goes on", "goes on without checkpoints", "dies", "dies without checkpoints"],
)
def test_an_answer_holds_when_the_system_forgets_what_it_could_not_sync(
    tmp_path: Path, kills: bool, checkpoint_pages: int, record_property: Record
) -> None:
    """After a failed sync Linux takes lost writes for written, and says so when it is asked again.

    They are still to be seen until the power goes. So whoever goes on, the same process or the next one, must not
    build on them.
    """
    trial = Trial(tmp_path, script, wrong, after=go_on, checkpoint_pages=checkpoint_pages)
    tally = fault_after_fault(trial, lambda nth: Fault("sync", nth, forgets=True, kills=kills), dies=True)
    assert_answers_hold(tally, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
def test_an_answer_holds_when_anything_fails(tmp_path: Path, lasting: bool, record_property: Record) -> None:
    """From the n-th call on a dead disk fails everything, reads included."""
    trial = Trial(tmp_path, script, wrong, after=go_on)
    tally = fault_after_fault(trial, lambda nth: Fault("any", nth, lasting=lasting), step=1 if EVERY_CALL else 3)
    assert_answers_hold(tally, record_property)


@pytest.mark.slow
def test_a_read_that_fails_is_an_error_and_never_a_wrong_answer(tmp_path: Path) -> None:
    """The store is opened anew each time, so that nothing is answered from a cache."""
    disk = PowerDisk(tmp_path / "store.db")
    with disk.store() as store:
        script(store, Witness(disk))
        whole = _look(store)
    failed = 0
    for nth in itertools.count(1):
        fault = disk.fail(Fault("read", nth))
        try:
            with disk.store() as store:
                assert _look(store) == whole
        except HoldfastError:
            failed += 1
        if not disk.repair():
            break
        assert fault.fired == 1
    assert failed > 10


def _look(store: Store) -> list[object]:
    logs = [store.thread(info.id).log() for info in store.threads(limit=None)]
    return [logs, store.thread("trip").state().value, store.thread("trip").checkpoints(), store.verify()]


def test_a_full_disk_is_said_to_be_full_and_the_store_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """The same store, not opened anew: it reads while there is no room, and writes when there is some."""
    disk = PowerDisk(tmp_path / "store.db")
    with disk.store() as store:
        thread = store.thread("t")
        thread.append({"content": "before"})
        disk.fail(Fault("write", 1, full=True, lasting=True))
        for _ in range(2):
            with pytest.raises(Unavailable, match="full") as caught:
                thread.append({"content": "meanwhile"})
            assert not isinstance(caught.value, OutcomeUnknown)
        assert thread.logbook.head() == 1
        assert disk.repair()
        assert thread.append({"content": "after"}).number == 2


def test_a_sync_that_fails_leaves_the_outcome_open_and_a_retry_by_key_settles_it(tmp_path: Path) -> None:
    disk = PowerDisk(tmp_path / "store.db")
    with disk.store() as store:
        thread = store.thread("t")
        disk.fail(Fault("sync", 1))
        with pytest.raises(OutcomeUnknown):
            thread.append({"content": "once"}, key="k")
        thread.append({"content": "once"}, key="k")
        assert thread.logbook.head() == 1
        disk.cut()
    with open_store(disk.recover()) as store:
        assert [entry.key for entry in store.thread("t").log()] == ["k"]
