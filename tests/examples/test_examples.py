"""The examples do what they say, also when they are killed: each runs in a process of its own, in an empty folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import holdfast

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ENV = {**os.environ, "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"}
ENV.pop("HOLDFAST_DB", None)


def start(*args: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *args],
        cwd=folder,
        env={**ENV, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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


@pytest.mark.parametrize("on", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_an_agent_is_tested_by_killing_it(on: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = {} if on == "sqlite" else {"HOLDFAST_DB": request.getfixturevalue("postgres").clone()}
    command = [sys.executable, str(EXAMPLES / "test_my_agent.py")]
    out = finished(subprocess.Popen(command, cwd=tmp_path, env=ENV | url, stdout=-1, stderr=-1, text=True))
    assert "2 passed" in out
    assert not list(tmp_path.iterdir())


def test_examples_leave_nothing_in_the_folder_they_are_run_from(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "checkout", tmp_path / "temporary"
    here.mkdir()
    elsewhere.mkdir()
    for name in ("approval.py", "remembering.py"):
        command = [sys.executable, str(EXAMPLES / name)]
        subprocess.run(command, cwd=here, env={**ENV, "TMPDIR": str(elsewhere)}, capture_output=True, check=True)
    assert not list(here.iterdir())
    storeless = {
        EXAMPLES / "test_my_agent.py",
        EXAMPLES / "adapters" / "scripted_model.py",
    }  # the kit makes it; has none
    for file in set(EXAMPLES.rglob("*.py")) - storeless:
        text = file.read_text(encoding="utf-8")
        assert "tempfile.gettempdir()" in text or "TemporaryDirectory()" in text, f"{file.name} keeps its store here"


# Booking


def test_a_booking_is_made_and_running_it_again_makes_no_other(tmp_path: Path) -> None:
    first = example("book_a_flight.py", "--slow", "0", folder=tmp_path)
    assert "booking TP 533 (attempt 1)" in first
    again = example("book_a_flight.py", "--slow", "0", folder=tmp_path)
    assert "attempt" not in again
    assert "the airline has 1 booking(s)" in again


@pytest.mark.slow
def test_killed_between_the_booking_and_its_record_there_is_one_booking(tmp_path: Path) -> None:
    airline = tmp_path / "holdfast-trip" / "airline.jsonl"
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
    wait_for((tmp_path / "holdfast-trip" / "agent.db").exists)
    kill(process)

    assert "the airline has 1 booking(s)" in example("book_a_flight.py", "--slow", "0", folder=tmp_path)
    assert len(lines(tmp_path / "holdfast-trip" / "airline.jsonl")) == 1


# Approval


@pytest.mark.slow
def test_an_approval_is_waited_for_over_restarts_and_paid_once(tmp_path: Path) -> None:
    database = str(tmp_path / "holdfast-refund" / "agent.db")
    assert "working out" in example("approval.py", folder=tmp_path)
    still = example("approval.py", folder=tmp_path)
    assert "waiting for an approval" in still
    assert "working out" not in still

    shown = next(line.strip() for line in still.splitlines() if "signal" in line)
    assert shown == f"""holdfast --db {database} signal refund-7/refund approval '{{"yes": true}}'"""
    command("--db", database, "signal", "refund-7/refund", "approval", '{"yes": true}', "--by", "bo", folder=tmp_path)

    assert "done: 42 EUR were paid back" in example("approval.py", folder=tmp_path)
    assert "done: 42 EUR were paid back" in example("approval.py", folder=tmp_path)
    assert len(lines(tmp_path / "holdfast-refund" / "bank.txt")) == 1


@pytest.mark.slow
def test_a_refund_that_is_declined_is_not_paid(tmp_path: Path) -> None:
    example("approval.py", folder=tmp_path)
    command(
        "--db", "holdfast-refund/agent.db", "signal", "refund-7/refund", "approval", '{"yes": false}', folder=tmp_path
    )
    assert "done: the refund was declined" in example("approval.py", folder=tmp_path)
    assert lines(tmp_path / "holdfast-refund" / "bank.txt") == []


@pytest.mark.slow
def test_an_approval_that_does_not_come_in_time_is_not_waited_for(tmp_path: Path) -> None:
    example("approval.py", "--within", "0.01", folder=tmp_path)
    assert "nobody answered in time" in example("approval.py", folder=tmp_path)
    assert lines(tmp_path / "holdfast-refund" / "bank.txt") == []


# Workers


@pytest.mark.slow
def test_what_a_killed_worker_leaves_is_done_by_another_and_nothing_twice(tmp_path: Path) -> None:
    out = example("worker.py", folder=tmp_path)
    assert "was killed" in out
    assert "8 runs are done, 8 letters were sent" in out
    assert {len(lines(file)) for file in (tmp_path / "holdfast-post" / "sent").iterdir()} == {1}


@pytest.mark.slow
def test_the_same_workers_share_a_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Any) -> None:
    monkeypatch.setitem(ENV, "HOLDFAST_DB", postgres.create())
    out = example("worker.py", folder=tmp_path)
    assert "was killed" in out
    assert "8 runs are done, 8 letters were sent" in out
    assert not (tmp_path / "holdfast-post" / "agent.db").exists()


@pytest.mark.slow
def test_a_worker_told_to_stop_ends_well(tmp_path: Path) -> None:
    example("worker.py", "submit", folder=tmp_path)
    worker = start(str(EXAMPLES / "worker.py"), "work", folder=tmp_path)
    wait_for(
        lambda: (tmp_path / "holdfast-post" / "sent").is_dir() and any((tmp_path / "holdfast-post" / "sent").iterdir())
    )
    worker.terminate()
    assert "done" in finished(worker)


# Two agents


@pytest.mark.slow
def test_workers_that_are_killed_build_every_feature_once(tmp_path: Path) -> None:
    out = example("two_agents.py", folder=tmp_path)
    for moment in ("before building", "after building", "before ticking"):
        assert f"killed {moment}" in out
    assert out.count("the environment is ready; next: ") == 7, "four features, and three workers that were killed"
    project = tmp_path / "holdfast-two-agents" / "project"
    built = lines(project / "built")
    assert len(built) == len(set(built)) == 4
    log = out.split("The log of the project:\n")[1].splitlines()
    assert log == [*(f"Passes: {feature}" for feature in reversed(built)), "Set the project up"]
    progress = (project / "PROGRESS.md").read_text(encoding="utf-8")
    assert re.findall(r"^- \[(.)\] (.*)$", progress, re.MULTILINE) == [("x", feature) for feature in built]
    with holdfast.open(tmp_path / "holdfast-two-agents" / "agent.db") as store:
        assert {run.status for run in store.runs()} == {"done"}
        assert store.verify().ok
    assert "next:" not in example("two_agents.py", folder=tmp_path)
    assert lines(project / "built") == built


# Remembering


def test_what_the_support_agent_remembers_is_true_and_running_it_again_adds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the models that are there unless somebody chooses others."""
    monkeypatch.setitem(ENV, "HOLDFAST_EMBEDDER", "auto")
    monkeypatch.setitem(ENV, "HOLDFAST_RERANKER", "auto")
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
    ours = ("--db", "holdfast-desk/agent.db", "--json")
    facts = json.loads(command(*ours, "facts", "--user", "ana", "--history", "plan", folder=tmp_path))
    assert "Gold plan" in json.dumps(facts)
    command(*ours, "recall", "Lena", "--user", "ana", "--graph", "ana.dot", folder=tmp_path)
    assert "Oslo" in (tmp_path / "ana.dot").read_text(encoding="utf-8")


# Agents


def said(store: holdfast.Store, thread: str) -> list[tuple[str, str]]:
    """Who said what in a thread."""
    messages = [entry.content for entry in store.thread(thread).log() if entry.kind == "message"]
    return [(message["role"], message["content"]) for message in messages]


@pytest.mark.slow
def test_a_support_agent_that_dies_after_paying_answers_later_and_pays_once(tmp_path: Path) -> None:
    out = example("support_agent.py", folder=tmp_path)
    before, after = out.split("(the process was killed)")
    assert "42 EUR" not in before
    assert "not answered yet: The new kettle leaks as well." in after
    assert "done for it: refund: it is unknown whether this happened" in after
    assert after.count("asking the bank") == 1
    assert "desk: 42 EUR for K-1042 were paid back. A letter to Braga confirms it." in after
    assert re.search(r"its context: \d+ of [45],\d{3} tokens: instructions \d+.*recalled \d+", after)
    assert re.search(r"recalled for it: .*chat#1\b", after)
    assert "the bank paid 1 time(s)" in after

    bank = lines(tmp_path / "holdfast-shop" / "bank.txt")
    assert len(bank) == 1
    with holdfast.open(tmp_path / "holdfast-shop" / "agent.db") as store:
        assert [role for role, _ in said(store, "mail")] == ["user", "assistant"]
        assert {run.status for run in store.runs()} == {"done"}
        memory = store.memory(user="ana")
        home, history = memory.fact("home"), memory.history("home")
        assert home is not None
        assert home.text == "ana lives in Braga"
        assert [version.superseded_by is None for version in history] == [False, True]
        assert ["confirm refunds by mail" in how.text for how in memory.procedures()] == [True]
        entries = [store.thread(thread).logbook.head() for thread in ("chat", "mail")]
        assert store.verify().ok

    again = example("support_agent.py", folder=tmp_path)
    assert "killed" not in again
    assert "desk: 42 EUR for K-1042 were paid back. A letter to Braga confirms it." in again
    assert lines(tmp_path / "holdfast-shop" / "bank.txt") == bank
    with holdfast.open(tmp_path / "holdfast-shop" / "agent.db") as store:
        assert [store.thread(thread).logbook.head() for thread in ("chat", "mail")] == entries


@pytest.mark.slow
def test_a_message_that_is_delivered_again_after_the_crash_is_answered_and_paid_once(tmp_path: Path) -> None:
    for day in ("monday", "wednesday"):
        example("support_agent.py", day, folder=tmp_path)
    dead = start(str(EXAMPLES / "support_agent.py"), "next-monday", folder=tmp_path)
    dead.communicate(timeout=60)
    assert dead.returncode == -signal.SIGKILL
    again = example("support_agent.py", "next-monday", folder=tmp_path)
    assert "desk: 42 EUR for K-1042 were paid back. A letter to Braga confirms it." in again
    assert len(lines(tmp_path / "holdfast-shop" / "bank.txt")) == 1


FOUND = {
    **dict.fromkeys(("heapq", "sched", "collections", "json", "csv", "tempfile", "pickle"), "keeps nothing"),
    **dict.fromkeys(("shelve", "dbm", "sqlite3"), "keeps things on disk"),
}


@pytest.mark.slow
def test_a_research_agent_hands_off_and_goes_on_from_there(tmp_path: Path) -> None:
    out = example("research_agent.py", folder=tmp_path)
    handed, after = out.split("(the window is nearly full: handed off)", 1)
    assert "began from the handoff" not in handed
    assert "(this turn began from the handoff: Goal: Find out which of these modules" in after
    assert "are summarised from now on" in out
    assert out.count("sqlite must be verified") == 1
    assert out.index("14 March") < out.index("sqlite must be verified")
    assert "How long did Bo want finished jobs kept? For 30 days." in out
    assert re.search(r"recalled: .*queue#1\b", out)
    assert all(int(used.replace(",", "")) <= 1_100 for used in re.findall(r"context: ([\d,]+) of 1,100 tokens", out))

    progress = (tmp_path / "holdfast-survey" / "PROGRESS.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\[x\] read of (\w+)", progress)) == FOUND.keys()
    with holdfast.open(tmp_path / "holdfast-survey" / "agent.db") as store:
        thread = store.thread("queue")
        assert thread.state(dict).value["found"] == FOUND
        covered = [(one.content["first"], one.content["last"]) for one in thread.log() if one.kind == "summary"]
        assert covered
        assert all(last < first for (_, last), (first, _) in pairwise(covered))
        fresh = [one for one in thread.log() if one.kind == "event" and one.content.get("fresh")]
        assert len(fresh) == out.count("handed off")
        entries = thread.logbook.head()
        assert store.verify().ok

    again = example("research_agent.py", folder=tmp_path)
    assert "For 30 days." in again
    with holdfast.open(tmp_path / "holdfast-survey" / "agent.db") as store:
        assert store.thread("queue").logbook.head() == entries


@pytest.mark.slow
def test_a_research_agent_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    process = start(str(EXAMPLES / "research_agent.py"), folder=tmp_path)
    assert process.stdout is not None
    while "5 March" not in process.stdout.readline():
        assert process.poll() is None
    process.kill()
    process.communicate(timeout=60)

    assert "For 30 days." in example("research_agent.py", folder=tmp_path)
    with holdfast.open(tmp_path / "holdfast-survey" / "agent.db") as store:
        assert store.thread("queue").state(dict).value["found"] == FOUND
        assert [text for role, text in said(store, "queue") if role == "user"].count("Go on with the next two.") == 4


@pytest.mark.slow
def test_a_coding_agent_masks_old_output_and_looks_it_up(tmp_path: Path) -> None:
    out = example("coding_agent.py", folder=tmp_path)
    assert "agent: 1 failed, 101 passed" in out
    assert "agent: 102 passed" in out
    assert re.search(r"agent: \d+: E +assert -5 >= 0", out)
    shown = out.split("this is how it shows the first run of the tests:")[1].split("\nyou:")[0]
    assert re.search(r"\[masked: pytest output, \d+ lines, [\d,]+ characters; the whole text: prices#\d+\]", shown)
    for kept in ("E       assert -5 >= 0", "FAILED test_prices.py::", "1 failed, 101 passed", "exit status 1"):
        assert kept in shown
    assert "PASSED" not in shown
    contexts = re.findall(r"context: ([\d,]+) tokens, (\d+) result\(s\) masked; ([\d,]+) with none masked", out)
    last, masked, whole = (int(number.replace(",", "")) for number in contexts[-1])
    assert masked == 2
    assert whole > 5 * last

    project = tmp_path / "holdfast-fix" / "project"
    assert "return max(0, cents - cents * percent // 100)" in (project / "prices.py").read_text(encoding="utf-8")
    with holdfast.open(tmp_path / "holdfast-fix" / "agent.db") as store:
        thread = store.thread("prices")
        log = thread.log()
        calls = [entry.content["name"] for entry in log if entry.kind == "tool_call"]
        assert calls == ["run_tests", "read_file", "edit_file", "run_tests", "look_up"]
        texts = [entry.content["content"] for entry in log if entry.kind == "observation"]
        assert texts[0].count(" PASSED") == 101
        assert texts[3].count(" PASSED") == 102
        assert store.verify().ok

    again = example("coding_agent.py", folder=tmp_path)
    assert "agent: 102 passed" in again
    with holdfast.open(tmp_path / "holdfast-fix" / "agent.db") as store:
        assert store.thread("prices").logbook.head() == len(log)
