"""A power cut at any moment loses nothing that was acknowledged, and leaves a store that is whole.

Cuts are simulated below SQLite (``crashlab.disk``): each unsynced write is kept, dropped or torn. The
controls show that the simulation can tell: with ``synchronous=NORMAL`` the same cuts lose a suffix, with ``OFF`` they
damage the store. ``HOLDFAST_TEST_CUTS`` sets how many cuts there are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crashlab.disk import PowerDisk
from crashlab.disk_platter import SECTOR, Chance, Platter, Write
from crashlab.disk_workload import Gone, Said, converse, go_on, make, stands, superseded, unsound, wrong
from crashlab.power import ProcessGone, Tally, Trial, Witness

from holdfast.engine.sqlite_file import pragma
from holdfast.errors import HoldfastError
from holdfast.store import Store
from holdfast.store import open as open_store

CUTS = int(os.environ.get("HOLDFAST_TEST_CUTS", "120"))
SEEDS = range(200)
WRITERS = 4
PATIENCE_S = 30.0

Record = Callable[[str, object], None]


def report(tally: Tally, points: int, record_property: Record) -> None:
    numbers = {"points": points, **tally.numbers()}
    for name, number in numbers.items():
        record_property(name, number)
    print(f"points {points}, {tally}")


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_a_power_cut(tmp_path: Path, record_property: Record) -> None:
    trial = Trial(tmp_path, converse, wrong)
    tally = trial.cuts(CUTS)
    report(tally, trial.points(), record_property)
    assert not tally.broken, str(tally)
    numbers = tally.numbers()
    assert numbers["fired"] == CUTS
    assert numbers["checkpoints"] > CUTS / 2
    assert min(numbers[f"unsynced {fate}"] for fate in ("kept", "dropped", "torn")) > CUTS / 2


@pytest.mark.slow
def test_a_new_process_does_not_rely_on_what_a_killed_one_had_not_synced(
    tmp_path: Path, record_property: Record
) -> None:
    """The killed one's writes are all to be seen, so the next one continues after them; then the power goes."""
    trial = Trial(tmp_path, converse, wrong, after=go_on)
    tally = trial.kills(CUTS)
    report(tally, trial.points(), record_property)
    assert not tally.broken, str(tally)
    assert tally.numbers()["unknown"] > 0


def write_together(store: Store, witness: Witness) -> None:
    """Several callers at once, so that one leads the commits of others. Each must get an answer, power or not."""

    def write(name: str) -> None:
        try:
            for number in range(8):
                with witness.tries(fact := Said(name, f"{name}-{number}", 1_500)):
                    make(store, fact)
        except ProcessGone:
            pass

    names = [f"writer-{number}" for number in range(WRITERS)]
    threads = [threading.Thread(target=write, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "a caller never got an answer"


@pytest.mark.slow
def test_callers_who_share_a_commit_are_all_answered_and_lose_nothing(tmp_path: Path, record_property: Record) -> None:
    trial = Trial(tmp_path, write_together, wrong)
    tally = trial.cuts(CUTS // 2)
    report(tally, trial.points(), record_property)
    assert not tally.broken, str(tally)
    assert tally.numbers()["unknown"] > 0


# Controls: the same cuts on an engine that syncs less


@pytest.mark.slow
def test_control_without_syncs_the_same_cuts_damage_the_store(tmp_path: Path, record_property: Record) -> None:
    trial = Trial(tmp_path, converse, wrong, synchronous="OFF")
    tally = trial.cuts(CUTS)
    report(tally, trial.points(), record_property)
    assert len(tally.broken) > CUTS / 4


@pytest.mark.slow
def test_control_with_fewer_syncs_the_same_cuts_lose_a_suffix_and_damage_nothing(
    tmp_path: Path, record_property: Record
) -> None:
    lost: list[int] = []

    def sound_prefix(store: Store, witness: Witness) -> Iterator[str]:
        yield from unsound(store, witness)
        known = [fact for fact in witness.acked if isinstance(fact, Gone) or fact.thread not in superseded(witness)]
        kept = [stands(store, fact) for fact in known]
        lost.append(kept.count(False))
        if kept != sorted(kept, reverse=True):
            yield f"not only a suffix was lost: {kept}"

    trial = Trial(tmp_path, converse, sound_prefix, synchronous="NORMAL")
    tally = trial.cuts(CUTS)
    report(tally, trial.points(), record_property)
    print(f"{sum(map(bool, lost))} of {len(lost)} cuts lost {sum(lost)} acknowledged facts")
    assert not tally.broken, str(tally)
    assert sum(map(bool, lost)) > CUTS / 4


# The disk itself


def test_the_same_cut_leaves_the_same(tmp_path: Path) -> None:
    trial = Trial(tmp_path, converse, wrong)
    assert trial.cut(300, 7) == trial.cut(300, 7)
    assert trial.cut(300, 7).fates != trial.cut(600, 7).fates


def test_the_engine_on_the_disk_has_its_own_settings(tmp_path: Path) -> None:
    """What the cuts prove, they prove of the settings that users get."""
    with PowerDisk(tmp_path / "store.db").engine() as engine:
        connection = engine._writer._connection
        assert pragma(connection, "journal_mode") == "wal"
        assert pragma(connection, "synchronous") == 2
        with open_store(tmp_path / "other.db") as store:  # another file does not go through the disk
            usual = store.core.engine._writer._connection
            assert pragma(usual, "locking_mode") == "normal"
            assert pragma(usual, "synchronous") == 2


def test_without_power_nothing_is_acknowledged(tmp_path: Path) -> None:
    disk = PowerDisk(tmp_path / "store.db", seed=1)
    with disk.store() as store:
        store.thread("t").append({"content": "before"})
        disk.cut()
        for _ in range(3):
            with pytest.raises(HoldfastError):
                store.thread("t").append({"content": "after"})
        with pytest.raises(HoldfastError):
            store.thread("t").log()
    with open_store(disk.recover()) as store:
        assert [entry.content["content"] for entry in store.thread("t").log()] == ["before"]


def platters(files: dict[str, bytes], use: Callable[[Platter], None]) -> list[dict[str, bytes]]:
    """What many cuts leave after the same use."""
    found = []
    for seed in SEEDS:
        platter = Platter(files)
        use(platter)
        found.append(platter.left(Chance(seed)))
    return found


def test_unsynced_writes_are_kept_dropped_torn_at_sectors_and_reordered() -> None:
    old, new = b"o" * 4 * SECTOR, b"n" * 2 * SECTOR

    def use(platter: Platter) -> None:
        platter.change("f", Write(100, new))
        platter.change("f", Write(3 * SECTOR, b"z" * 10))

    contents = {left["f"] for left in platters({"f": old}, use)}
    first = b"o" * 100 + new + b"o" * (2 * SECTOR - 100)
    assert old in contents
    assert first in contents
    assert old[: 3 * SECTOR] + b"z" * 10 + old[3 * SECTOR + 10 :] in contents  # the second without the first
    assert any(content[100:SECTOR] == b"n" * (SECTOR - 100) and content[SECTOR] == ord("o") for content in contents)
    assert {content[:100] for content in contents} == {b"o" * 100}  # bytes beside a write are not disturbed
    assert {content[3 * SECTOR + 10 :] for content in contents} == {old[3 * SECTOR + 10 :]}


def test_what_was_synced_survives_every_cut() -> None:
    def use(platter: Platter) -> None:
        platter.change("f", Write(0, b"new"))
        platter.sync("f")

    assert all(left == {"f": b"new"} for left in platters({"f": b"old"}, use))


@pytest.mark.parametrize("synced", [False, True])
def test_names_are_certain_once_the_folder_is_synced(synced: bool) -> None:
    def use(platter: Platter) -> None:
        platter.create("made")
        platter.sync("made")
        platter.delete("deleted")
        if synced:
            platter.sync_names()

    found = {frozenset(left) for left in platters({"deleted": b""}, use)}
    certain = {frozenset({"made"})}
    assert found == certain if synced else found > certain
