"""The fakes that are shipped for tests, and what importing them costs."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import holdfast
from holdfast.clock import to_datetime
from holdfast.errors import Invalid
from holdfast.testing import ManualClock, SeededIds


def test_each_look_at_the_clock_is_a_microsecond_later() -> None:
    clock = ManualClock(1_000)
    assert [clock.now(), clock.now()] == [1_001, 1_002]


def test_the_clock_stands_where_it_is_put() -> None:
    clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
    assert to_datetime(clock.now()) == datetime(2026, 5, 1, 0, 0, 0, 1, tzinfo=UTC)
    clock.set(7)
    assert clock.now() == 8
    clock.set(datetime(2025, 1, 1, tzinfo=UTC))
    assert to_datetime(clock.now()).year == 2025


def test_time_passes_when_it_is_told_to() -> None:
    clock = ManualClock(0)
    clock.advance(1.5)
    clock.advance(60)
    assert clock.now() == 61_500_001


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(Invalid):
        ManualClock(datetime(2026, 5, 1))


def test_no_two_threads_are_told_the_same_time() -> None:
    clock = ManualClock(0)
    with ThreadPoolExecutor(8) as pool:
        times = [time for own in pool.map(lambda _: [clock.now() for _ in range(500)], range(8)) for time in own]
    assert sorted(times) == list(range(1, 4_001))


def test_equal_seeds_give_equal_numbers() -> None:
    ours, theirs, others = SeededIds(3), SeededIds(3), SeededIds(4)
    numbers = [ours.stream(now) for now in (1_000, 2_000, 2_000)]
    assert numbers == [theirs.stream(now) for now in (1_000, 2_000, 2_000)]
    assert numbers != [others.stream(now) for now in (1_000, 2_000, 2_000)]
    assert len(set(numbers)) == 3


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("holdfast.testing", {"pytest", "hypothesis"}),
        ("holdfast.testing.machine", {"pytest"}),
        ("holdfast.testing.contract", {"hypothesis"}),
    ],
)
def test_only_what_is_used_is_imported(module: str, absent: set[str]) -> None:
    """Fakes need neither pytest nor Hypothesis; the suite needs the one, the machine the other."""
    program = f"import sys, {module}; print(*sorted({absent} & set(sys.modules)))"
    source = str(Path(holdfast.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    assert done.stdout == "\n"
