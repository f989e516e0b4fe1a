"""The examples do what they say, also when they are killed: each runs in a process of its own, in an empty folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ENV = {**os.environ, "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"}
ENV.pop("HOLDFAST_DB", None)


def start(*args: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *args], cwd=folder, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    return out


def example(name: str, *args: str, folder: Path) -> str:
    return finished(start(str(EXAMPLES / name), *args, folder=folder))


def command(*args: str, folder: Path) -> str:
    return finished(start("-m", "holdfast", *args, folder=folder))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, "it was over before it could be killed"


def test_every_example_is_tried_and_says_how_to_try_it() -> None:
    tried = Path(__file__).read_text(encoding="utf-8")
    for file in sorted(EXAMPLES.glob("*.py")):
        assert f'"{file.name}"' in tried, f"no test runs {file.name}"
        assert f"python examples/{file.name}" in file.read_text(encoding="utf-8").split('"""')[1]


# Booking


def test_a_booking_is_made_and_running_it_again_makes_no_other(tmp_path: Path) -> None:
    first = example("book_a_flight.py", "--slow", "0", folder=tmp_path)
    assert "booking TP 533 (attempt 1)" in first
    again = example("book_a_flight.py", "--slow", "0", folder=tmp_path)
    assert "attempt" not in again
    assert "the airline has 1 booking(s)" in again


@pytest.mark.slow
def test_killed_between_the_booking_and_its_record_there_is_one_booking(tmp_path: Path) -> None:
    airline = tmp_path / "trip" / "airline.jsonl"
    process = start(str(EXAMPLES / "book_a_flight.py"), "--slow", "2", folder=tmp_path)
    wait_for(lambda: len(lines(airline)) == 1)
    kill(process)

    again = example("book_a_flight.py", "--slow", "0", folder=tmp_path)
    assert "asking the airline" in again
    assert "attempt" not in again
    assert "completed: the probe found it" in again
    assert [json.loads(line)["number"] for line in lines(airline)] == ["B1"]


@pytest.mark.slow
def test_killed_before_the_booking_there_is_one_booking(tmp_path: Path) -> None:
    process = start(str(EXAMPLES / "book_a_flight.py"), "--slow", "2", folder=tmp_path)
    wait_for((tmp_path / "trip" / "agent.db").exists)
    kill(process)

    assert "the airline has 1 booking(s)" in example("book_a_flight.py", "--slow", "0", folder=tmp_path)
    assert len(lines(tmp_path / "trip" / "airline.jsonl")) == 1


# Approval


@pytest.mark.slow
def test_an_approval_is_waited_for_over_restarts_and_paid_once(tmp_path: Path) -> None:
    database = "refund/agent.db"
    assert "working out" in example("approval.py", folder=tmp_path)
    still = example("approval.py", folder=tmp_path)
    assert "waiting for an approval" in still
    assert "working out" not in still

    shown = next(line.strip() for line in still.splitlines() if "signal" in line)
    assert shown == f"""holdfast --db {database} signal refund-7/refund approval '{{"yes": true}}'"""
    command("--db", database, "signal", "refund-7/refund", "approval", '{"yes": true}', "--by", "bo", folder=tmp_path)

    assert "done: 42 EUR were paid back" in example("approval.py", folder=tmp_path)
    assert "done: 42 EUR were paid back" in example("approval.py", folder=tmp_path)
    assert len(lines(tmp_path / "refund" / "bank.txt")) == 1


@pytest.mark.slow
def test_a_refund_that_is_declined_is_not_paid(tmp_path: Path) -> None:
    example("approval.py", folder=tmp_path)
    command("--db", "refund/agent.db", "signal", "refund-7/refund", "approval", '{"yes": false}', folder=tmp_path)
    assert "done: the refund was declined" in example("approval.py", folder=tmp_path)
    assert lines(tmp_path / "refund" / "bank.txt") == []


@pytest.mark.slow
def test_an_approval_that_does_not_come_in_time_is_not_waited_for(tmp_path: Path) -> None:
    example("approval.py", "--within", "0.01", folder=tmp_path)
    assert "nobody answered in time" in example("approval.py", folder=tmp_path)
    assert lines(tmp_path / "refund" / "bank.txt") == []


# Workers


@pytest.mark.slow
def test_what_a_killed_worker_leaves_is_done_by_another_and_nothing_twice(tmp_path: Path) -> None:
    out = example("worker.py", folder=tmp_path)
    assert "was killed" in out
    assert "8 runs are done, 8 letters were sent" in out
    assert {len(lines(file)) for file in (tmp_path / "post" / "sent").iterdir()} == {1}


@pytest.mark.slow
def test_the_same_workers_share_a_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        from holdfast.testing.postgres import Server, ServerUnavailable  # noqa: PLC0415 - it needs an extra
    except ImportError as error:
        pytest.skip(f"backend postgres: {error}")
    try:
        server = Server(fsync=False)
    except ServerUnavailable as error:
        pytest.skip(f"backend postgres: {error}")
    with server:
        monkeypatch.setitem(ENV, "HOLDFAST_DB", server.create())
        out = example("worker.py", folder=tmp_path)
    assert "was killed" in out
    assert "8 runs are done, 8 letters were sent" in out
    assert not (tmp_path / "post" / "agent.db").exists()


@pytest.mark.slow
def test_a_worker_told_to_stop_ends_well(tmp_path: Path) -> None:
    example("worker.py", "submit", folder=tmp_path)
    worker = start(str(EXAMPLES / "worker.py"), "work", folder=tmp_path)
    wait_for(lambda: (tmp_path / "post" / "sent").is_dir() and any((tmp_path / "post" / "sent").iterdir()))
    worker.terminate()
    assert "done" in finished(worker)


# Remembering


def test_what_the_support_agent_remembers_is_true_and_running_it_again_adds_nothing(tmp_path: Path) -> None:
    first = example("remembering.py", folder=tmp_path)
    assert "plan now: Silver plan, 19 euros a month; in March: Gold plan, 29 euros a month" in first
    assert "what was known of it in March: Gold plan, 29 euros a month\n" in first
    assert "when her contract began: Her contract began in 2019" in first
    assert "two values of home: porto and braga" in first
    assert "link: Lena lives in Oslo" in first
    assert "Where does her sister Lena live? 'Lena lives in Oslo'" in first
    assert "Which firmware version was it? 'Please update the firmware to version 7.57.' (call-1#4;" in first
    assert "What is her dog called? I do not know." in first
    assert example("remembering.py", folder=tmp_path) == first


def test_the_support_agent_remembers_without_vectors_and_the_command_sees_the_same(tmp_path: Path) -> None:
    out = example("remembering.py", "--embedder", "none", folder=tmp_path)
    assert "Where does her sister Lena live? 'Lena lives in Oslo'" in out
    assert "What is her dog called? I do not know." in out
    ours = ("--db", "desk/agent.db", "--json")
    facts = json.loads(command(*ours, "facts", "--user", "ana", "--history", "plan", folder=tmp_path))
    assert "Gold plan" in json.dumps(facts)
    command(*ours, "recall", "Lena", "--user", "ana", "--graph", "ana.svg", folder=tmp_path)
    assert "Oslo" in (tmp_path / "ana.svg").read_text(encoding="utf-8")
