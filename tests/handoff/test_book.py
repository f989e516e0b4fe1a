"""The handle: revisions, facts of runs, files and the way back, on every engine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import aio
from holdfast.errors import Conflict, Erased, Invalid, NotFound, TooLarge, Unsupported
from holdfast.handoff import Handoff, HandoffDocument, HandoffItem, HandoffSection
from holdfast.testing import ManualClock

Make = Callable[..., Handoff]

# Reading and updating


def test_nothing_stored_is_an_empty_document(book: Handoff) -> None:
    assert book.read() == HandoffDocument()
    assert book.history() == []


def test_reading_makes_no_thread(store: holdfast.Store, book: Handoff, tmp_path: Path) -> None:
    book.read()
    book.write(tmp_path / "P.md")
    assert not store.thread("trip-42").exists()


def test_an_update_is_one_revision(book: Handoff, clock: ManualClock) -> None:
    assert book.update(goal="Lisbon", done="Asked", todo=["Search", "Book"], blockers="No card") == 1
    clock.advance(60)
    assert book.update(next_action="Ask for a card", done="Search", by="ana") == 2
    steps = (HandoffItem("Asked", True), HandoffItem("Search", True), HandoffItem("Book"))
    assert book.read() == HandoffDocument("Lisbon", steps, ("No card",), "Ask for a card", revision=2)
    assert book.read(revision=1).steps == (HandoffItem("Asked", True), HandoffItem("Search"), HandoffItem("Book"))
    first, second = book.history()
    assert [(item.number, item.by) for item in (first, second)] == [(1, "agent"), (2, "ana")]
    assert (second.time - first.time).total_seconds() == pytest.approx(60, abs=0.01)
    assert book.history(last=1) == [second]


def test_an_update_that_changes_nothing_is_no_revision(book: Handoff) -> None:
    assert book.update() == 0
    book.update(goal="g", done="a")
    assert book.update(goal="g", done="a") == 1


def test_an_update_may_expect_a_revision(book: Handoff) -> None:
    assert book.read().revision == 0
    assert book.update(goal="g", expect=0) == 1
    seen = book.read()
    assert seen.revision == 1
    book.update(goal="of a person", by="ana")
    for changes in ({"goal": "h"}, {"goal": "of a person"}, {"todo": "x"}, {}):
        with pytest.raises(Conflict, match="is at revision 2, not 1; read it again") as refused:
            book.update(**changes, expect=seen.revision)  # type: ignore[arg-type]
        assert (refused.value.expected, refused.value.actual) == (1, 2)
    with pytest.raises(Conflict):
        book.update(goal="h", expect=0)
    assert book.read().goal == "of a person"
    assert book.update(goal="h", expect=2) == 3
    assert book.update(goal="h", expect=3) == 3
    assert book.read(revision=2).revision == 2


def test_an_async_update_may_expect_a_revision() -> None:
    async def story() -> None:
        async with aio.open("ram:") as store:
            book = store.thread("t").handoff
            await book.update(goal="g", expect=0)
            with pytest.raises(Conflict):
                await book.update(goal="h", expect=0)
            assert await book.update(goal="h", expect=(await book.read()).revision) == 2

    asyncio.run(story())


@pytest.mark.parametrize("wrong", [-1, True, "1", 1.0])
def test_what_is_expected_is_a_number(book: Handoff, wrong: Any) -> None:
    with pytest.raises(Invalid, match="expect"):
        book.update(goal="g", expect=wrong)


@pytest.mark.every_engine
def test_of_many_who_expect_the_same_revision_one_gets_through(store: holdfast.Store, make: Make) -> None:
    through: list[int] = []
    together = threading.Barrier(3, timeout=60)

    def work(name: int) -> None:
        for expected in range(10):
            together.wait()
            with suppress(Conflict):
                make(store, "t").update(goal=f"{name} at {expected}", expect=expected)
                through.append(expected)

    workers = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert sorted(through) == list(range(10))


def test_it_survives_a_restart(tmp_path: Path, make: Make) -> None:
    with holdfast.open(tmp_path / "a.db") as store:
        make(store, "t").update(goal="g\r\nwith \\ and é")
    with holdfast.open(tmp_path / "a.db") as store:
        assert make(store, "t").read().goal == "g\r\nwith \\ and é"
        assert store.verify().ok


def test_revisions_that_are_not_there(book: Handoff) -> None:
    with pytest.raises(NotFound, match="is empty, not 1"):
        book.read(revision=1)
    book.update(goal="g")
    for number in (0, 2, -1):
        with pytest.raises(NotFound, match="has revisions 1 to 1"):
            book.read(revision=number)
    for odd in ("1", True, 1.0):
        with pytest.raises(Invalid, match="whole number"):
            book.read(revision=odd)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="last must be"):
        book.history(last=-1)


def test_wrong_input_changes_nothing(book: Handoff) -> None:
    for wrong in ({"goal": 1}, {"goal": "\ud800"}, {"by": ""}, {"done": [1]}):
        with pytest.raises(Invalid):
            book.update(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TooLarge, match="at most 1,000,000"):
        book.update(context="x" * 1_000_000)
    assert book.history() == []


def test_an_update_creates_the_thread_and_is_its_activity(
    store: holdfast.Store, make: Make, clock: ManualClock
) -> None:
    book = make(store, "t", user="ana", agent="travel")
    book.update(goal="g")
    info = store.thread("t").info()
    assert (info.user, info.agent, info.entries) == ("ana", "travel", 0)
    clock.advance(7200)
    book.update(goal="h")
    assert store.thread("t").info().active > info.active


# Owners and erasure


def test_a_handoff_belongs_to_the_owner_of_its_thread(store: holdfast.Store, make: Make) -> None:
    store.thread("t", user="ana").append({"role": "user", "content": "x"})
    make(store, "t").update(goal="by a handle that names nobody")
    with pytest.raises(Invalid, match="belongs to user 'ana'"):
        make(store, "t", user="bob").read()
    with pytest.raises(Invalid):
        make(store, "t", user="bob").update(goal="x")
    store.erase(user="ana")
    assert make(store, "t").read() == HandoffDocument()
    with pytest.raises(Erased):
        make(store, "t").update(goal="late")


@pytest.mark.every_engine
def test_erasing_a_thread_erases_its_handoff(store: holdfast.Store, book: Handoff, make: Make) -> None:
    book.update(goal="g")
    make(store, "other").update(goal="stays")
    store.erase(thread="trip-42")
    assert book.read() == HandoffDocument()
    assert make(store, "other").read().goal == "stays"


def test_a_revision_of_newer_code_is_refused(book: Handoff, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.handoff.handoff._VERSION", 2)
    book.update(goal="g")
    monkeypatch.undo()
    with pytest.raises(Unsupported, match="upgrade holdfast"):
        book.read()


# Facts of runs


def test_what_runs_have_done_is_read_at_that_moment(book: Handoff, facts: Any) -> None:
    book.update(done="by hand", blockers=["mine"])
    facts.items = [HandoffItem("r: a", True, "r/a"), HandoffItem("r: b", False, "r/b")]
    facts.blockers = ["r waits for an answer"]
    assert book.read().steps == (HandoffItem("by hand", True), *facts.items)
    assert book.read().blockers == ("mine", "r waits for an answer")
    facts.items[1] = HandoffItem("r: b", True, "r/b")
    facts.blockers = []
    assert book.read().steps[2].done
    assert book.read().blockers == ("mine",)
    assert len(book.history()) == 1
    assert book.read(revision=1).steps == (HandoffItem("by hand", True),)


def test_blockers_of_runs_do_not_stick(book: Handoff, facts: Any) -> None:
    facts.blockers = ["r waits"]
    book.update(blockers=[*book.read().blockers, "mine"])
    facts.blockers = []
    assert book.read().blockers == ("mine",)


def test_blockers_of_runs_do_not_stick_in_a_file(book: Handoff, facts: Any, tmp_path: Path) -> None:
    facts.blockers = ["r waits"]
    book.update(blockers="mine")
    book.write(tmp_path / "P.md")
    facts.blockers = []
    assert book.load(tmp_path / "P.md").blockers == ("mine",)


# Two at once


@pytest.mark.every_engine
def test_two_handles_lose_nothing(store: holdfast.Store, make: Make) -> None:
    def work(name: str) -> None:
        for number in range(10):
            make(store, "t").update(todo=f"{name}{number}", **{name: f"{number}"})

    workers = [threading.Thread(target=work, args=(name,)) for name in ("goal", "next_action", "context")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    book = make(store, "t")
    document = book.read()
    assert (document.goal, document.next_action, document.context) == ("9", "9", "9")
    assert {item.text for item in document.steps} == {
        f"{name}{number}" for name in ("goal", "next_action", "context") for number in range(10)
    }
    assert [item.number for item in book.history()] == list(range(1, 31))


_WORK = """
import sys
import holdfast
from holdfast.engine.contract import Append, Put, Scope
from holdfast.handoff import Handoff

path, field = sys.argv[1:]
with holdfast.open(path) as store:
    scope = Scope(thread="t")
    new = Put("thread", "t", b"j1{}", scope=scope)
    book = Handoff(store.core, "t", scope, lambda: Append("thread", "t", new=new))
    for number in range(15):
        book.update(done=f"{field} {number}", **{field: str(number)})
"""


@pytest.mark.slow
def test_two_processes_lose_nothing(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "a.db"
    fields = ("goal", "context")
    workers = [subprocess.Popen([sys.executable, "-c", _WORK, str(path), field]) for field in fields]
    assert [worker.wait(60) for worker in workers] == [0, 0]
    with holdfast.open(path) as store:
        document = make(store, "t").read()
        assert (document.goal, document.context) == ("14", "14")
        assert len(document.done) == 30
        assert store.verify().ok


# Files


def test_write_and_load_change_nothing(book: Handoff, facts: Any, tmp_path: Path) -> None:
    facts.items = [HandoffItem("r: a", True, "r/a")]
    facts.blockers = ["r waits"]
    book.update(goal="g", todo="x\nmore", context="## not a heading")
    before = book.read()
    written = book.write(tmp_path / "P.md")
    assert (written.path, written.changed, written.committed, written.why_not) == (
        tmp_path / "P.md", True, False, None,
    )  # fmt: skip
    number = len(book.history())
    same = msgspec.structs.replace(before, revision=number)  # the step of a run is stored with what is written
    assert book.load(tmp_path / "P.md") == same == book.read()
    assert len(book.history()) == number
    facts.blockers = []
    assert book.read().blockers == ()


def test_writing_again_changes_nothing(book: Handoff, tmp_path: Path) -> None:
    book.update(goal="g")
    path = tmp_path / "P.md"
    book.write(path)
    before = path.stat().st_mtime_ns
    assert not book.write(str(path)).changed
    assert path.stat().st_mtime_ns == before
    book.update(goal="h")
    assert book.write(path).changed


@pytest.mark.every_engine
def test_what_markdown_shows_is_what_is_written(book: Handoff, tmp_path: Path) -> None:
    book.update(goal="g")
    book.write(tmp_path / "P.md")
    assert book.markdown() == (tmp_path / "P.md").read_text(encoding="utf-8")


@pytest.mark.every_engine
def test_a_person_edits_and_everything_comes_back(book: Handoff, facts: Any, tmp_path: Path) -> None:
    facts.items = [
        HandoffItem("r: a", True, "r/a"),
        HandoffItem("r: b", False, "r/b"),
        HandoffItem("r: c", False, "r/c"),
    ]
    book.update(goal="g", todo="mine")
    path = tmp_path / "P.md"
    book.write(path)
    text = path.read_text(encoding="utf-8")
    text = text.replace("2. [x] r: a <!-- r/a -->\n", "")  # takes one out
    text = text.replace("[ ] r: b <!--", "[x] in my words <!--")  # says another one is done, which it is not
    text = text.replace("## Blockers\n", "## Blockers\n- no key\n").replace(
        "## Steps", "## Links\nsee there\n\n## TODO"
    )
    path.write_text(text.replace("\n", "\r\n"), encoding="utf-8")
    document = book.load(path)
    assert document == HandoffDocument(
        "g",
        (HandoffItem("mine"), HandoffItem("in my words", False, "r/b"), HandoffItem("r: c", False, "r/c")),
        ("no key",),
        extra=(HandoffSection("Links", "see there", "goal"),),
        hidden=("r/a",),
        revision=3,
    )
    assert book.history()[-1].by == "person"
    facts.items.append(HandoffItem("r: d", True, "r/d"))
    assert [item.ref for item in book.read().steps] == [None, "r/b", "r/c", "r/d"]
    book.write(path)
    assert "## Links\nsee there\n" in path.read_text(encoding="utf-8")
    assert "r: a" not in path.read_text(encoding="utf-8")


def test_a_hidden_step_comes_back_when_a_person_writes_it_again(book: Handoff, facts: Any) -> None:
    facts.items = [HandoffItem("r: a", True, "r/a")]
    book.load("## Steps\n1. [ ] r: a <!-- r/a -->\n")
    assert book.load("## Steps\n- x\n").hidden == ("r/a",)
    assert book.load("## Steps\n- back <!-- r/a -->\n").steps == (HandoffItem("back", True, "r/a"),)


def test_steps_that_runs_did_after_the_file_was_written_are_not_hidden(
    book: Handoff, facts: Any, tmp_path: Path
) -> None:
    facts.items = [HandoffItem("r: a", True, "r/a")]
    book.write(tmp_path / "P.md")
    facts.items.append(HandoffItem("r: b", True, "r/b"))
    assert [item.ref for item in book.load(tmp_path / "P.md").steps] == ["r/a", "r/b"]


def test_a_file_of_an_older_revision_is_a_conflict(book: Handoff, tmp_path: Path) -> None:
    path = tmp_path / "P.md"
    book.update(goal="g")
    book.write(path)
    path.write_text(path.read_text(encoding="utf-8").replace("g\n", "by a person\n"), encoding="utf-8")
    book.update(goal="h")
    with pytest.raises(Conflict, match=r"from revision 1 .* now at revision 2") as caught:
        book.load(path)
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert book.read().goal == "h"
    assert book.load(path, force=True, by="ana").goal == "by a person"
    assert [item.by for item in book.history()] == ["agent", "agent", "ana"]


def test_a_text_of_a_revision_that_is_not_here_is_a_conflict(book: Handoff) -> None:
    with pytest.raises(Conflict, match=r"revision 9 .* now at revision 0"):
        book.load("## Goal\ng\n<!-- holdfast: thread trip-42, revision 9 -->\n")


def test_a_text_of_another_thread_is_refused(book: Handoff) -> None:
    text = "## Goal\ng\n<!-- holdfast: thread trip-43, revision 1 -->\n"
    with pytest.raises(Invalid, match="thread 'trip-43', not 'trip-42'"):
        book.load(text)
    assert book.load(text, force=True).goal == "g"


def test_a_text_without_a_comment_is_taken(book: Handoff) -> None:
    book.update(goal="g")
    assert book.load(b"## Goal\nh\n").goal == "h"


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a\x00", b"x" * 1_000_001, b"", b" \n\n"])
def test_what_is_no_markdown_changes_nothing(book: Handoff, tmp_path: Path, data: bytes) -> None:
    book.update(goal="g")
    path = tmp_path / "P.md"
    path.write_bytes(data)
    for source in (path, data):
        with pytest.raises(Invalid):
            book.load(source)
    assert len(book.history()) == 1


def test_a_file_that_is_not_there(book: Handoff, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        book.load(tmp_path / "P.md")
    with pytest.raises(NotFound):
        book.load("no such file")


# Nothing of a person is written over


def test_an_edited_file_is_not_written_over(book: Handoff, tmp_path: Path) -> None:
    path = tmp_path / "P.md"
    book.update(goal="g")
    book.write(path)
    path.write_text(path.read_text(encoding="utf-8") + "\nA remark.\n", encoding="utf-8")
    edited = path.read_bytes()
    with pytest.raises(Conflict, match="was edited after revision 1"):
        book.write(path)
    assert path.read_bytes() == edited
    assert book.load(path).context == "A remark."
    assert book.write(path).changed
    path.write_text("# Other\n", encoding="utf-8")
    assert book.write(path, force=True).changed


def test_a_file_in_the_middle_of_a_merge_is_neither_loaded_nor_lost(book: Handoff, tmp_path: Path) -> None:
    path = tmp_path / "P.md"
    book.update(goal="Lisbon")
    book.write(path)
    ours = path.read_text(encoding="utf-8")
    merging = ours.replace("Lisbon\n", "<<<<<<< HEAD\nLisbon\n=======\nPorto\n>>>>>>> side\n")
    path.write_text(merging, encoding="utf-8")
    before = book.history()
    with pytest.raises(Invalid, match="line 4 is the marker of a merge conflict"):
        book.load(path, force=True)
    with pytest.raises(Conflict, match=r"marker of a merge conflict.*force=True"):
        book.write(path)
    assert (book.history(), book.read().goal) == (before, "Lisbon")
    assert path.read_text(encoding="utf-8") == merging
    assert book.write(path, force=True).changed
    assert path.read_text(encoding="utf-8") == ours


def test_a_loaded_file_may_be_written_over_also_after_an_update(book: Handoff, tmp_path: Path) -> None:
    path = tmp_path / "P.md"
    path.write_text("## Goal\nfrom a person\n", encoding="utf-8")
    book.load(path)
    book.update(goal="from the agent", next_action="n")
    assert book.write(path).changed
    path.write_text("## Goal\nfrom a person, later\n", encoding="utf-8")
    with pytest.raises(Conflict, match="not a file written from a handoff"):
        book.write(path)


@pytest.mark.parametrize(
    "data", [b"# My notes\n", b"\xff\xfe", b"## Goal\nx\n<!-- holdfast: thread t, revision 3 -->\n"]
)
def test_a_file_that_is_something_else_is_not_written_over(book: Handoff, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "P.md"
    path.write_bytes(data)
    with pytest.raises(Conflict, match="force=True"):
        book.write(path)
    assert path.read_bytes() == data
    path.write_bytes(b"\n")
    assert book.write(path).changed


def test_a_file_follows_the_runs(book: Handoff, facts: Any, tmp_path: Path) -> None:
    """Facts that changed since the file was written are not edit."""
    path = tmp_path / "P.md"
    for done in (False, True):
        facts.items = [HandoffItem("r: a", done, "r/a")]
        facts.blockers = [] if done else ["r waits"]
        assert book.write(path).changed
    assert "[x] r: a" in path.read_text(encoding="utf-8")
    assert "r waits" not in path.read_text(encoding="utf-8")


def test_bad_paths_are_refused_before_anything_is_stored(book: Handoff, facts: Any, tmp_path: Path) -> None:
    facts.items = [HandoffItem("r: a", True, "r/a")]
    for path in (tmp_path, "", tmp_path / "a.db"):
        with pytest.raises(Invalid):
            book.write(path)
    with pytest.raises(Invalid, match="commit message"):
        book.write(tmp_path / "P.md", message=" ")
    assert book.history() == []


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(TEXTS, st.lists(TEXTS, max_size=3), TEXTS)
def test_any_text_survives_store_file_and_load(goal: str, todo: list[str], context: str) -> None:
    from holdfast.engine.contract import Append, Put, Scope  # noqa: PLC0415 - a handle of its own for every example

    scope = Scope(thread="t")
    with holdfast.open("ram:") as store:
        new = Put("thread", "t", b"j1{}", scope=scope)
        book = Handoff(store.core, "t", scope, lambda: Append("thread", "t", new=new))
        number = book.update(goal=goal, todo=todo, context=context)
        before = book.read()
        assert book.load(book.markdown()) == before
        assert len(book.history()) == number


# Files that people keep


KEPT = """\
# Progress: Repair the ferry timetable

## Current Goal

Publish the winter timetable before Friday

## Completed Steps

1. [x] Read the old timetable: 31 departures
2. [x] Found the three that changed
3. Asked the harbour about berths

## Current Blocker

The harbour has not answered

## Next Action

Call the harbour at nine

## Context

- Sundays have no first ferry
- Times are local
"""


@pytest.mark.parametrize("name", ["claude-progress.txt", "PROGRESS", "notes.md", "x.markdown"])
def test_a_progress_file_of_the_usual_kind_fills_the_handoff(book: Handoff, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(KEPT, encoding="utf-8")
    document = book.load(tmp_path / name)
    assert document.goal == "Publish the winter timetable before Friday"
    assert [(step.text[:10], step.done) for step in document.steps] == [
        ("Read the o", True), ("Found the ", True), ("Asked the ", True),
    ]  # fmt: skip
    assert document.blockers == ("The harbour has not answered",)
    assert document.next_action == "Call the harbour at nine"
    assert document.context == "- Sundays have no first ferry\n- Times are local"
    assert document.extra[0].heading == "Progress: Repair the ferry timetable"
    written = book.write(tmp_path / name).path.read_text(encoding="utf-8")
    for line in KEPT.splitlines():
        assert line.startswith("## ") or line.lstrip("123. ").removeprefix("[x] ") in written


@pytest.mark.parametrize(
    "text",
    [
        "# Fortschritt\n\n## Ziel\nDer Winterfahrplan\n\n## Erledigt\n- gelesen\n",
        "<html>\n<body><h1>Goal</h1>\n<p>the winter timetable</p></body>\n</html>\n",
        "\ufeff## Plan\r\nfirst this\r\n\r\n## Risks\r\nthe harbour\r\n",
        "just a line\nand another\n",
    ],
)
def test_what_only_a_person_understands_reaches_the_model_and_comes_back(
    ram: holdfast.Store, tmp_path: Path, text: str
) -> None:
    thread = ram.thread("t")
    (tmp_path / "p.txt").write_bytes(text.encode())
    thread.handoff.load(tmp_path / "p.txt")
    shown = ram.context(thread, "What now?", budget=4_000).section("handoff")
    written = thread.handoff.write(tmp_path / "p.txt").path.read_text(encoding="utf-8")
    for line in text.removeprefix("\ufeff").splitlines():
        words = line.strip("#- ")
        assert words in shown.replace("\u200b", "")
        assert words in written


def test_a_reload_loads_only_what_someone_changed(book: Handoff, facts: Any, tmp_path: Path) -> None:
    path = tmp_path / "PROGRESS.md"
    assert not book.reload(path)
    path.write_text(" \n", encoding="utf-8")
    assert not book.reload(path)
    path.write_text("# Goal\na\n", encoding="utf-8")
    assert [book.reload(path), book.reload(path)] == [True, False]
    book.update(todo="b")
    facts.items = [HandoffItem("r: a", True, "r/a")]
    assert not book.reload(path), "it was loaded before, and nobody touched it"
    book.write(path)
    assert not book.reload(path)
    path.write_text(path.read_text(encoding="utf-8").replace("[ ] b", "[x] b"), encoding="utf-8")
    assert book.reload(path, by="bo")
    assert (book.read().steps[0], book.history()[-1].by) == (HandoffItem("b", True), "bo")
    book.write(path)
    book.update(todo="c")
    path.write_text(path.read_text(encoding="utf-8").replace("[x] b", "[ ] b"), encoding="utf-8")
    with pytest.raises(Conflict, match="written from revision"):
        book.reload(path)
