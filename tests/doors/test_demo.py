"""The demonstration, played for real: an agent is killed, and everything that is claimed about it holds."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

pytest.importorskip("typer", reason="the command's extra is not installed")
pytestmark = pytest.mark.slow

from holdfast.doors.cli import demo, exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.demo_claims import Played, claims  # noqa: E402
from holdfast.doors.cli.demo_tale import launcher  # noqa: E402


def play(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", "demo", *args]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", "HOLDFAST_DB": str(folder / "mine.db")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=60, check=False)


def test_it_tells_in_plain_words_what_survived(tmp_path: Path) -> None:
    done = play(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert "\x1b" not in text
    assert re.search(r"SIGKILL ended process \d+ within [\d.]+ ms", text)
    assert "By then 5 turns had been acknowledged. Turn 6 had not." in text
    assert re.search(r"\d+ ms after it began to open the store \(\d+ ms after it was started", text)
    assert "Welcome back, Ana." in text
    assert re.search(r"must verify +fare 184 EUR: confirmed 35 days ago, good for 30 days", text)
    assert "✗" not in text
    assert "every acknowledged turn is there       5 acknowledged, 5 found" in text
    assert text.count("on disk in") == 9
    assert not (tmp_path / "mine.db").exists(), "the demo wrote to a store that is not its own"


def test_what_it_suggests_to_try_works(tmp_path: Path) -> None:
    text = play(tmp_path).stdout
    suggested = text[text.index("What to try next") :].splitlines()[1:]
    assert len(suggested) == 5
    for line in suggested:
        command = shlex.split(line, comments=True)
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, bool(done.stdout)) == (0, True), f"{line}: {done.stderr}"
    assert (tmp_path / "trip.json").stat().st_size > 0


def test_it_can_be_played_again_and_read_by_programs(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        done = play(tmp_path, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        played = json.loads(done.stdout)
        names.append(played["thread"])
        assert played["ok"]
        assert all(claim["holds"] for claim in played["claims"])
        assert [event["turn"] for event in played["acknowledged"]] == played["knew"]["turns"]
        assert played["killed"]["signal"] == "SIGKILL"
        assert played["killed"]["pid"] != played["knew"]["pid"]
        assert played["knew"]["must_verify"] == ["confirmed_facts.fare", "confirmed_facts.passport_name"]
    assert names == ["trip-lisbon", "trip-lisbon-2"]
    with holdfast.open(tmp_path / demo.DATABASE) as store:
        assert store.verify().ok
        thread = store.thread("trip-lisbon")
        assert [entry.number for entry in thread.log()] == list(range(1, 34))
        assert not thread.state(holdfast.AgentState).must_verify
        assert store.thread("trip-lisbon-by-train").count() == 16


def test_a_claim_that_does_not_hold_is_said_and_counts(tmp_path: Path) -> None:
    """In memory nothing is shared between processes, so nothing survives; the demo must not pretend."""
    done = play(tmp_path, "--db", "ram:")
    assert done.returncode == exits.NO
    assert "✗  every acknowledged turn is there       5 acknowledged, 0 found" in done.stdout
    assert "claims did not hold" in done.stdout


def test_nothing_is_claimed_of_an_agent_that_did_not_start() -> None:
    assert not [claim.claim for claim in claims(Played("agent.db", "t")) if claim.holds]


def test_commands_are_suggested_as_they_would_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    script = folder / "holdfast"
    script.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert launcher() == "'with a space/holdfast'"
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    assert launcher() == "holdfast"
    monkeypatch.setattr(sys, "argv", ["elsewhere/__main__.py"])
    assert launcher().endswith(" -m holdfast")
