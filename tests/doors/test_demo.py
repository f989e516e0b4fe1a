"""The demonstration, played for real: agents are killed, and everything that is claimed about it holds."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast

pytest.importorskip("typer", reason="the command's extra is not installed")
pytestmark = pytest.mark.slow

from holdfast.clock import to_datetime  # noqa: E402
from holdfast.doors.cli import demo, exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.demo_claims import Booked, Played, Tried, claims  # noqa: E402
from holdfast.doors.cli.demo_process import Child  # noqa: E402
from holdfast.doors.cli.demo_tale import launcher  # noqa: E402
from holdfast.steps.timeline import RunInfo, StepInfo, Timeline  # noqa: E402

LOOK_AGAIN_S = 0.05
PATIENCE_S = 20.0


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
    assert "✗" not in text[text.index("What was measured") :]
    assert re.search(r"every acknowledged turn is there +5 acknowledged, 5 found\n", text)
    assert text.count("on disk in") == 9
    assert not (tmp_path / "mine.db").exists(), "the demo wrote to a store that is not its own"


def test_it_tells_of_two_bookings_without_holdfast_and_of_one_with_it(tmp_path: Path) -> None:
    text = play(tmp_path).stdout
    without, held = text[text.index("4  Ana wants") :].split("5  The same agent with Holdfast")
    for scene in (without, held):
        assert re.search(r"first  process \d+ searched for flights, booked 4TZ1K\n", scene)
        assert re.search(r"SIGKILL ended it within [\d.]+ ms: booked, but not yet recorded\n", scene)
    assert re.search(r"again  process \d+ searched for flights, booked 4TZ2K\n", without)
    assert "✗ 2 bookings in the airline's book: 4TZ1K, 4TZ2K. Ana knows of one.\n" in without
    assert "in the store: the intent to book, with a key, and no end of it\n" in held
    assert re.search(r"again  process \d+ looked up the key: 4TZ1K\n", held)
    assert "✓ 1 booking in the airline's book: 4TZ1K.\n" in held
    timeline = re.findall(r"^ +\d+  (\S+) +(.*\S)$", held, re.MULTILINE)
    told = ["begun", "intends", "searched", "completed", "intends", "booked", "SIGKILL", "taken"]
    told += ["looked", "asked", "decided:", "completed:", "intends", "completed", "done"]
    assert [what.split()[0] for _, what in timeline] == told
    assert re.search(r"one booking, nothing orphaned +1 \(without Holdfast: 2\)\n", held)


def test_what_it_suggests_to_try_works(tmp_path: Path) -> None:
    text = play(tmp_path).stdout
    suggested = text[text.index("What to try next") :].splitlines()[1:]
    assert len(suggested) == 6
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
        assert_booked_once(played["booked"])
        assert played["knew"]["must_verify"] == ["confirmed_facts.fare", "confirmed_facts.passport_name"]
    assert names == ["trip-lisbon", "trip-lisbon-2"]
    with holdfast.open(tmp_path / demo.DATABASE) as store:
        assert store.verify().ok
        thread = store.thread("trip-lisbon")
        assert [entry.number for entry in thread.log()] == list(range(1, 40))
        assert not thread.state(holdfast.AgentState).must_verify
        assert store.thread("trip-lisbon-by-train").count() == 16


def assert_booked_once(booked: dict[str, Any]) -> None:
    without, held = booked["without"], booked["held"]
    assert [line["did"] for line in without["before"] + without["after"]] == ["search", "book", "search", "book"]
    assert [line["did"] for line in held["before"]] == ["search", "book"]
    assert [line["did"] for line in held["after"]] == ["look up"]
    assert (without["killed"], held["killed"], booked["left"]) == ("SIGKILL", "SIGKILL", "intended")
    assert len({*without["agents"], *held["agents"]}) == 4
    steps = {step["name"]: step for step in booked["timeline"]["steps"]}
    assert {name: (step["how"], step["attempts"]) for name, step in steps.items()} == {
        "search": ("ran", 1), "book": ("probed", 1), "tell": ("ran", 1)
    }  # fmt: skip
    assert [line["key"] for line in held["before"][1:] + held["after"]] == [steps["book"]["key"]] * 2
    assert steps["book"]["result"]["booking"] == held["before"][1]["booking"] == held["has"]
    assert booked["timeline"]["run"]["status"] == "done"


def test_a_claim_that_does_not_hold_is_said_and_counts(tmp_path: Path) -> None:
    """In memory nothing is shared between processes, so nothing survives; the demo must not pretend."""
    done = play(tmp_path, "--db", "ram:")
    assert done.returncode == exits.NO
    assert re.search(r"✗  every acknowledged turn is there +5 acknowledged, 0 found\n", done.stdout)
    assert re.search(r"✗  one booking, nothing orphaned +2 \(without Holdfast: 2\)\n", done.stdout)
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


def good() -> Booked:
    """What the booking measures when all goes well."""
    search, book, look = ({"did": did, "booking": "4TZ1K"} for did in ("search", "book", "look up"))
    now = to_datetime(0)
    step = StepInfo("book", "completed", "probed", "once", 1, "key", now, now, {"booking": "4TZ1K"}, None, None)
    run = RunInfo("t", "book-flight", "book-flight", "done", None, "", 2, None, now, now)
    without = Tried([1, 2], "SIGKILL", 1.0, 1, [search, book], [search, book], "4TZ1K")
    held = Tried([3, 4], "SIGKILL", 1.0, 1, [search, book], [look], "4TZ1K", 100.0)
    return Booked(without, held, "intended", Timeline(run, (step,), (), None, None))


def no_longer(booked: Booked) -> list[str]:
    """Which claims about the booking do not hold."""
    return [claim.measured for claim in claims(Played("agent.db", "t", booked=booked))[-5:] if not claim.holds]


def _second_booking(booked: Booked) -> None:
    booked.held.after.append({"did": "book", "booking": "4TZ2K"})


def _second_search(booked: Booked) -> None:
    booked.held.after.append({"did": "search"})


def _careful_airline(booked: Booked) -> None:
    booked.without.after.pop()


def _killed_too_late(booked: Booked) -> None:
    booked.left = "completed"


def _killed_too_early(booked: Booked) -> None:
    booked.held.before.pop()


def _ended_by_itself(booked: Booked) -> None:
    booked.held.killed = "exit code 0"


def _other_booking(booked: Booked) -> None:
    booked.held.has = "4TZ9K"


def _nothing_recorded(booked: Booked) -> None:
    booked.timeline = None


def test_each_claim_about_the_booking_can_fail() -> None:
    assert no_longer(good()) == []
    broken: dict[Callable[[Booked], None], list[str]] = {
        _second_booking: ["2 (without Holdfast: 2)", "1 question, 4TZ1K found"],
        _second_search: ["2 searches (without: 2)"],
        _careful_airline: ["1 (without Holdfast: 1)"],
        _killed_too_late: ["SIGKILL, the step was completed"],
        _killed_too_early: [
            "SIGKILL, the step was intended", "0 (without Holdfast: 2)", "1 question, 4TZ1K found"
        ],
        _ended_by_itself: ["exit code 0, the step was intended"],
        _other_booking: ["100 ms after it was started"],
        _nothing_recorded: ["1 question, nothing found", "100 ms after it was started"],
    }  # fmt: skip
    for break_it, expected in broken.items():
        booked = good()
        break_it(booked)
        assert no_longer(booked) == expected, break_it.__name__


def ask(port: int, method: str, path: str, key: str = "", body: Any = None) -> tuple[int, Any]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        line.request(method, path, json.dumps(body) if body else None, {"Idempotency-Key": key} if key else {})
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        line.close()


def test_the_airline_is_as_careless_as_it_is_said_to_be(tmp_path: Path) -> None:
    wanted = {"flight": "TP 534", "passenger": "Ana"}
    with Child("demo_airline", str(tmp_path / "book.jsonl")) as airline:
        port = next(airline.events())["port"]
        for number, key in enumerate(("one", "one", "two"), 1):
            assert ask(port, "POST", "/bookings", key, wanted) == (201, {"booking": f"4TZ{number}K", **wanted})
        assert ask(port, "GET", "/bookings/two") == (200, {"booking": "4TZ3K", **wanted})
        assert ask(port, "GET", "/bookings/three") == (404, None)
        assert ask(port, "GET", "/elsewhere") == (404, None)
    lines = [json.loads(line) for line in (tmp_path / "book.jsonl").read_text().splitlines()]
    assert [line["did"] for line in lines] == ["book", "book", "book", "look up", "look up"]


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody has taken note of yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads in /proc whether a process lives")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("told", [r"An agent talks with Ana  process (\d+)", r"The airline is process (\d+)"])
def test_nobody_outlives_the_demonstration(tmp_path: Path, end: signal.Signals, told: str) -> None:
    command = [sys.executable, "-m", "holdfast", "demo"]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as playing:
        try:
            assert playing.stdout is not None
            child = next(int(found[1]) for line in playing.stdout if (found := re.search(told, line)))
            assert lives(child)
            playing.send_signal(end)
            playing.wait(PATIENCE_S)
        finally:
            playing.kill()
    patience = time.monotonic() + PATIENCE_S
    while lives(child) and time.monotonic() < patience:
        time.sleep(LOOK_AGAIN_S)
    assert not lives(child)
    if end == signal.SIGINT:
        assert not list(tmp_path.glob("holdfast-demo-*")), "the airline's books were left behind"
