"""A power cut in the middle of runs: the store falls back to what was synced, the outside world keeps its effects.

With ``synchronous=FULL`` the intent is on the disk before anything happens in the world, so everything still happens
once. The control takes that away, and must show it. `make crash` runs the long form.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crashlab.power import Trial
from crashlab.runs_workload import Errands

pytestmark = pytest.mark.slow

CUTS = 60


def test_a_power_cut_at_any_moment_repeats_no_effect_and_loses_no_result(tmp_path: Path) -> None:
    errands = Errands()
    tally = Trial(tmp_path, errands.workload, errands.check).cuts(CUTS)
    print(tally)
    assert not tally.broken, str(tally)
    assert tally.numbers()["fired"] == CUTS
    assert tally.numbers()["acknowledged"] > CUTS


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_without_the_sync_of_each_commit_the_same_cuts_do_harm(synchronous: str, tmp_path: Path) -> None:
    errands = Errands()
    tally = Trial(tmp_path, errands.workload, errands.check, synchronous=synchronous).cuts(CUTS // 2)
    problems = " ".join(problem for outcome in tally.broken for problem in outcome.problems)
    if synchronous == "OFF":
        assert "damaged" in problems
    else:
        assert "was done 2 times" in problems or "no run has on record" in problems  # its intent was lost: nobody asks
        assert "was told as" in problems  # a result that was returned and is gone
