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
from holdfast.doors.cli import exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.demo import command  # noqa: E402
from holdfast.doors.cli.demo.claims import Booked, Played, Tried, claims  # noqa: E402
from holdfast.doors.cli.demo.process import AgentProcess  # noqa: E402
from holdfast.doors.cli.demo.story import launcher  # noqa: E402
from holdfast.steps.timeline import RunInfo, StepInfo, Timeline  # noqa: E402

LOOK_AGAIN_S = 0.05
PATIENCE_S = 20.0
AGENT, AIRLINE = r"An agent talks with Ana  process (\d+)", r"The airline is process (\d+)"


def play(folder: Path, *args: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", "demo", *args]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", "HOLDFAST_DB": str(folder / "mine.db"), **settings}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=60, check=False)


Seen = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The folder of a demonstration, and what it told: played once for all who only look at it."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, play(folder)


def test_it_tells_in_plain_words_what_survived(seen: Seen) -> None:
    folder, done = seen
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert "\x1b" not in text
    assert re.search(r"SIGKILL ended process \d+ within [\d.]+ ms", text)
    assert re.search(r"within [\d.]+ ms: 5 turns acknowledged, turn 6 not\.\n", text)
    assert re.search(r"\d+ ms after it began to open the store \(\d+ ms after it was started", text)
    assert "Welcome back, Ana." in text
    assert re.search(r"must verify +fare 184 EUR: confirmed 35 days ago, good for 30 days", text)
    assert "✗" not in text[text.index("What else was measured") :]
    assert "all 19 claims held in this run" in text
    assert len(text.splitlines()) <= 64
    assert "Every acknowledged turn is there (5 acknowledged, 5 found); " in text
    assert text.count("✓ on disk, ") == 9
    assert not (folder / "mine.db").exists(), "the demo wrote to a store that is not its own"


def test_it_tells_of_two_bookings_without_holdfast_and_of_one_with_it(seen: Seen) -> None:
    text = seen[1].stdout
    without, held = text[text.index("5  Ana wants") :].split("6  The same agent with Holdfast")
    for scene in (without, held):
        killed = "SIGKILL before it was recorded"
        assert re.search(rf"first  process \d+ searched for flights, booked 4TZ1K; {killed}\n", scene)
    assert re.search(r"again  process \d+ searched for flights, booked 4TZ2K\n", without)
    assert "✗ 2 bookings in the airline's book: 4TZ1K, 4TZ2K. Ana knows of one.\n" in without
    assert "in the store: the intent to book, with a key, but no result\n" in held
    assert re.search(r"again  process \d+ looked up the key: 4TZ1K; recorded 4TZ1K \d+ ms after it was started\n", held)
    assert "✓ 1 booking in the airline's book: 4TZ1K.\n" in held
    assert "one booking, not two" not in held, "what was just shown is not said again"


@pytest.mark.parametrize("installed", [True, False], ids=["vectors", "words alone"])
def test_it_tells_that_the_new_process_finds_what_the_killed_one_knew(
    tmp_path: Path, seen: Seen, installed: bool
) -> None:
    if installed:
        pytest.importorskip("wordllama", reason="the extra embed is not installed")
    done = seen[1] if installed else play(tmp_path, HOLDFAST_EMBEDDER="none")
    assert (done.returncode, done.stderr) == (0, "")
    before, _, rest = done.stdout.partition("4  What does it remember?  ")
    remembered = re.findall(r"✓ remembered in [\d.]+ ms: (.*)\n", before.split("2  The agent is killed")[0])
    assert remembered == [
        "flies to her sister, who marries in Lisbon on 12 June",
        "prefers to sit on the aisle (fact seat)",
        "prefers to sit by the window (fact seat)",
    ]
    chapter = re.sub(r"[\d.]+ ms", "MS", rest.split("\n\n")[0]).splitlines()
    assert chapter[0] == ("by words and vectors (wordllama-256)" if installed else "by words alone, without vectors")
    assert [re.split(r"(?<=\?) +", line.strip()) for line in chapter[1:-1]] == [
        [
            "Where does she like to sit?",
            "prefers to sit by the window  remembered, MS the first time; before: prefers to sit on the aisle",
        ],
        ["Who is getting married?", "flies to her sister, who marries in Lisbon on 12 June  remembered, MS"],
        [
            "Which food is dangerous for her?",
            "Ana Maria Sousa. No food with nuts: I am allergic.  trip-lisbon#7, MS",
        ],
    ]
    last = r" +What is her phone number\? +it does not know  confidence 0\.\d\d, MS"
    assert re.fullmatch(last, chapter[-1])
    assert re.search(r"recall used the store alone \(0 connections, median [\d.]+ ms\); ", rest)


def test_what_is_put_into_the_store_between_two_runs_changes_nothing(tmp_path: Path) -> None:
    """The store is left for people to play with, and the first agent's clock is set back: each run has its own Ana."""
    with holdfast.open(tmp_path / command.DATABASE) as store:
        for user in ("ana", "ana-2"):
            memory = store.memory(user=user)
            memory.remember("prefers to stand", key="seat")
            memory.remember("supports the football team of Porto")
        store.thread("her own", user="ana-3").append({"role": "user", "content": "Where do I like to sit?"})
    played = json.loads(play(tmp_path, "--json").stdout)
    assert (played["ok"], played["thread"], played["user"]) == (True, "trip-lisbon-4", "ana-4")


def test_what_it_suggests_to_try_works(seen: Seen) -> None:
    folder, text = seen[0], seen[1].stdout
    suggested = text[text.index("Try it yourself") :].splitlines()[1:]
    assert len(suggested) == 3
    for line in suggested:
        command = shlex.split(line, comments=True)
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert (done.returncode, bool(done.stdout)) == (0, True), f"{line}: {done.stderr}"


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
    with holdfast.open(tmp_path / command.DATABASE) as store:
        assert store.verify().ok
        thread = store.thread("trip-lisbon")
        assert [entry.number for entry in thread.log()] == list(range(1, 40))
        assert not thread.state(holdfast.AgentState).must_verify
        assert store.thread("trip-lisbon-by-train").logbook.head() == 16


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
    assert re.search(r"✗  it found what the first agent knew +3 questions, \d first hits right\n", done.stdout)
    assert re.search(r"✗  a fact that changed has its new value +0 values kept, the newest not first\n", done.stdout)
    assert re.search(r"✗  one booking, not two +2 \(without Holdfast: 2\)\n", done.stdout)
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


def recalled() -> Played:
    """What remembering and recall measure when all goes well."""
    told = [("turn-1", "m1", None), ("turn-2", "m2", "seat"), ("turn-5", "m3", "seat")]
    remembered = [{"turn": turn, "id": id, "key": key} for turn, id, key in told]
    hits = [
        ("turn-5", "seat", ["m3", "t#2"]),
        ("turn-1", None, ["m1"]),
        ("turn-3", None, ["t#7"]),
        (None, None, ["m1"]),
    ]
    found = [
        {
            "turn": turn, "key": key, "ms": 2.0, "connections": 0, "relevant": turn is not None, "confidence": 0.1,
            "hits": [{"id": id} for id in ids], "history": [{"id": "m2"}, {"id": "m3"}] if key else [],
        }
        for turn, key, ids in hits
    ]  # fmt: skip
    acknowledged = [{"turn": "turn-3", "entries": 8, "added": 2, "digest": ""}]
    return Played("agent.db", "t", acknowledged=acknowledged, remembered=remembered, recalled=found)


def _another_first(seat: dict[str, Any]) -> None:
    seat["hits"].reverse()


def _old_value_found(seat: dict[str, Any]) -> None:
    seat["hits"].append({"id": "m2"})


def _no_history(seat: dict[str, Any]) -> None:
    seat["history"].pop(0)


def _not_sure(seat: dict[str, Any]) -> None:
    seat["relevant"] = False


def _nothing_found(seat: dict[str, Any]) -> None:
    seat["hits"].clear()


def _called_out(seat: dict[str, Any]) -> None:
    seat["connections"] = 1


def test_each_claim_about_memory_can_fail() -> None:
    def fails(played: Played) -> list[str]:
        return [claim.measured for claim in claims(played)[7:11] if not claim.holds]

    assert fails(recalled()) == []
    broken: dict[Callable[[dict[str, Any]], None], list[str]] = {
        _another_first: ["3 questions, 2 first hits right", "2 values kept, the newest not first"],
        _old_value_found: ["2 values kept, the newest not first"],
        _no_history: ["1 value kept, the newest not first"],
        _not_sure: ["3 questions, 2 first hits right"],
        _nothing_found: ["3 questions, 2 first hits right", "2 values kept, the newest not first"],
        _called_out: ["1 connection, median 2.0 ms"],
    }
    for break_it, expected in broken.items():
        played = recalled()
        break_it(played.recalled[0])
        assert fails(played) == expected, break_it.__name__
    guessing = recalled()
    guessing.recalled[-1]["relevant"] = True
    assert fails(guessing) == ["1 question, confidence 0.10"]
    silent = recalled()
    silent.recalled.pop()
    assert len(fails(silent)) == 3, "a question that was not asked proves nothing"


def test_connections_are_counted() -> None:
    """In a process of its own, because nobody can take back a hook."""
    script = """if True:
        import socket
        from holdfast.doors.cli.demo.memory import Connections

        with socket.create_server(("127.0.0.1", 0)) as server:
            counted = Connections()
            before = counted.opened
            socket.create_connection(server.getsockname()).close()
        print(before, counted.opened)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]


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
    with AgentProcess("airline", str(tmp_path / "book.jsonl")) as airline:
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
@pytest.mark.parametrize(
    ("end", "told"),
    [
        (signal.SIGINT, AGENT),
        (signal.SIGTERM, AGENT),
        (signal.SIGINT, AIRLINE),
        (signal.SIGKILL, AIRLINE),
    ],
)
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
