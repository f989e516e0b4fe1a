"""SIGKILL at moments nobody chose: real processes, one file, one outside world. `make crash` runs the long form."""

from __future__ import annotations

from pathlib import Path

import pytest
from crashlab.killing import Killed, Plan, kill

pytestmark = pytest.mark.slow

SEED = 20_261


def assert_kept(killed: Killed) -> None:
    print(killed)
    assert not killed.problems, str(killed)
    assert killed.inside_step > 0, "no kill hit a step, not even the last, which waits for one"


def test_processes_killed_one_after_the_other_do_everything_once(tmp_path: Path) -> None:
    assert_kept(kill(Plan(str(tmp_path / "agent.db"), str(tmp_path), rounds=60, seed=SEED)))


def test_two_processes_at_once_of_which_one_is_killed_again_and_again(tmp_path: Path) -> None:
    assert_kept(kill(Plan(str(tmp_path / "agent.db"), str(tmp_path), rounds=40, seed=SEED, at_once=2)))


def test_a_probe_that_lies_is_found_out_by_kills_too(tmp_path: Path) -> None:
    """The negative control: without a truthful probe, effects are done twice, and the harness must say so.

    It does not wait for a lucky kill: the child is killed when the effect is in the world, and its completion is not
    in the store.
    """
    killed = kill(Plan(str(tmp_path / "agent.db"), str(tmp_path), rounds=1, seed=SEED, honest=False))
    assert any("was done 2 times under key" in problem for problem in killed.problems), str(killed)
