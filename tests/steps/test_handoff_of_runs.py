"""A handoff shows what runs did without being told, and stays a person's document all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import errors
from holdfast.wiring import Wiring


@pytest.fixture
def thread(tmp_path: Path) -> Iterator[holdfast.Thread]:
    store = holdfast.open(tmp_path / "agent.db")
    yield store.thread("trip-42", user="ana")
    store.close()


def work(thread: holdfast.Thread) -> None:
    with thread.run("book") as run:
        run.step("search", lambda: ["TP1"], effect="pure")
        run.step("charge", lambda: 1, effect="once", on_unknown="stop", compensate=lambda result: None)


def test_it_is_true_in_the_middle_of_a_run_and_after_a_crash(thread: holdfast.Thread) -> None:
    run = thread.run("book")
    run.step("search", lambda: ["TP1"], effect="pure")
    with pytest.raises(KeyboardInterrupt):
        run.step("charge", _killed, effect="once", on_unknown="stop")
    steps = thread.handoff.read().steps
    assert [(item.text, item.done, item.ref) for item in steps] == [
        ("book: search", True, "book/search"),
        ("book: charge", False, "book/charge"),
    ]
    run.release()


def _killed() -> None:
    raise KeyboardInterrupt


def test_blockers_tell_why_runs_do_not_go_on(thread: holdfast.Thread) -> None:
    thread.submit("wait")
    store_resume(thread, {"wait": lambda run: run.wait("approval")})
    with pytest.raises(errors.StepFailed), thread.run("fail") as run:
        run.step("charge", _declined, effect="pure")
    stopped = thread.run("stop")
    with pytest.raises(KeyboardInterrupt):
        stopped.step("charge", _killed, effect="once", on_unknown="stop")
    with pytest.raises(errors.StepUnknown):
        stopped.step("charge", _killed, effect="once", on_unknown="stop")
    thread.handoff.update(blockers="The office is closed")
    assert list(thread.handoff.read().blockers) == [
        "The office is closed",
        "Run wait waits for approval",
        "Run fail failed: charge: ValueError: card declined",
        "Run stop: nobody can say whether charge happened; settle it",
    ]


def _declined() -> None:
    raise ValueError("card declined")


def store_resume(thread: holdfast.Thread, handlers: dict[str, object]) -> None:
    holdfast.Store(Wiring(thread.logbook.core, thread.runbook)).resume(handlers)


def test_a_person_edits_the_file_and_the_run_goes_on(thread: holdfast.Thread, tmp_path: Path) -> None:
    work(thread)
    thread.handoff.update(goal="Fly to Lisbon", todo="Tell Ana", next_action="Write to Ana")
    path = tmp_path / "PROGRESS.md"
    thread.handoff.write(path)
    text = path.read_text()
    assert "1. [ ] Tell Ana" in text
    assert "[x] book: search" in text
    path.write_text(text.replace("book: charge", "Paid 120 EUR").replace("[ ] Tell Ana", "[x] Told Ana"))
    thread.handoff.load(path)
    with thread.run("book-2") as run:
        run.step("hotel", lambda: 1, effect="pure")
    steps = [(item.text, item.done) for item in thread.handoff.read().steps]
    assert steps == [("Told Ana", True), ("book: search", True), ("Paid 120 EUR", True), ("book-2: hotel", True)]


def test_what_a_person_took_out_stays_out(thread: holdfast.Thread, tmp_path: Path) -> None:
    work(thread)
    path = tmp_path / "PROGRESS.md"
    thread.handoff.write(path)
    kept = [line for line in path.read_text().splitlines() if "book: search" not in line]
    path.write_text("\n".join(kept))
    thread.handoff.load(path)
    assert [item.text for item in thread.handoff.read().steps] == ["book: charge"]


def test_it_goes_with_its_thread(thread: holdfast.Thread, tmp_path: Path) -> None:
    thread.handoff.update(goal="Fly")
    work(thread)
    with holdfast.open(tmp_path / "agent.db") as store, holdfast.open(tmp_path / "other.db") as other:
        store.export(tmp_path / "all.json")
        other.import_(tmp_path / "all.json")
        there = other.thread("trip-42")
        assert there.handoff.read() == thread.handoff.read()
        assert there.timeline("book").steps == thread.timeline("book").steps
        assert other.verify().ok
        assert other.resume({"book": lambda run: None}) == []
        store.erase(thread="trip-42")
        assert store.verify().ok
        assert store.runs() == []
    with pytest.raises(errors.Erased):
        thread.handoff.update(goal="Again")
