"""The command on runs: listing, the story of one, carrying on, signals, settling, cancelling, and the handoff."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.clock import to_micros
from holdfast.testing import ManualClock

pytest.importorskip("typer", reason="the command's extra is not installed")

from tests.doors.done import Call, Done

from holdfast.doors.cli import exits, locating, wording
from holdfast.doors.cli.app import run as run_command
from holdfast.doors.cli.desk import Desk, Options
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.runs import show_runs
from holdfast.doors.cli.timeline import show_timeline


class CardDeclined(Exception):
    """The bank said no."""


KEY = re.compile(r"hf-[0-9a-f]{32}")

# A program as a person would have one: what it does outside is counted in a file of its own.
PROGRAM = '''
import os, signal
import holdfast

class CardDeclined(Exception):
    """The bank said no."""

def ask(place):
    return ["TP 533"]

def pay(amount):
    with open("payments.txt", "a") as book:
        book.write(f"{amount}\\n")
    if os.path.exists("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "R-7"

def find(amount):
    if not os.path.exists("payments.txt"):
        return None
    return "R-7, found"

def decline(amount):
    try:
        raise KeyError("card")
    except KeyError as error:
        raise CardDeclined("insufficient funds") from error

def book(run):
    run.step("search", ask, "LIS", effect="pure")
    return run.step("pay", pay, 184, effect="once", probe=find)

def guess(run):
    run.step("search", ask, "LIS", effect="pure")
    return run.step("pay", pay, 184, effect="once", on_unknown="stop")

def fail(run):
    run.step("search", ask, "LIS", effect="pure")
    run.step("pay", decline, 184, effect="idempotent", retry=holdfast.Retry(3, delay_s=0.001))

def confirm(run):
    print("confirming")
    return {"approved": run.wait("approval")}

def undo(run):
    run.step("reserve", ask, "LIS", effect="idempotent", compensate=print)
    run.wait("approval")

HANDLERS = [book, guess, fail, confirm, undo]
'''


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], db: Path) -> Call:
    """Run the command in this process, on the store of the test."""

    def call(*args: str | Path) -> Done:
        capsys.readouterr()
        code = run_command(["--db", str(db), *(str(arg) for arg in args)])
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the current directory, which no other test has imported."""
    name = f"program_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{name}.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield name
    for module in set(sys.modules) - before:
        if module.startswith("program_"):
            del sys.modules[module]


def command(db: Path, *args: str) -> list[str]:
    return [sys.executable, "-m", "holdfast", "--db", str(db), *args]


def submit(db: Path, *names: str, thread: str = "trip-42", **more: Any) -> None:
    with holdfast.open(db) as store:
        for name in names:
            store.thread(thread, user="ana").submit(name, **more)


def killed(db: Path, program: str, name: str, thread: str = "trip-42") -> None:
    """A run whose process dies by SIGKILL when it has paid, and before that is recorded."""
    Path("die").touch()
    script = f"import holdfast, {program} as p\nwith holdfast.open({str(db)!r}).thread({thread!r}).run({name!r}) as r:"
    script += f" p.{name}(r)"
    child = subprocess.run([sys.executable, "-c", script], timeout=60, check=False, capture_output=True, text=True)
    Path("die").unlink()
    assert child.returncode == -signal.SIGKILL, child.stderr


def payments() -> list[str]:
    return Path("payments.txt").read_text(encoding="utf-8").split()


def status(db: Path, run: str = "book", thread: str = "trip-42") -> str:
    with holdfast.open(db) as store:
        return store.thread(thread).timeline(run).run.status


# Listing


def test_runs_of_an_empty_store_say_how_one_begins(call: Call, db: Path) -> None:
    holdfast.open(db).close()
    done = call("runs")
    assert (done.code, done.out) == (exits.OK, "")
    assert "thread.run(NAME)" in done.err
    assert call("runs", "--json").data == {"runs": []}


def test_runs_are_listed_with_what_they_wait_for(call: Call, db: Path, program: str) -> None:
    submit(db, "confirm", input={"to": "LIS"})
    submit(db, "fail")
    submit(db, "book", thread="other")
    assert call("resume", "trip-42/confirm", "--handlers", program).code == exits.OK
    call("resume", "trip-42/fail", "--handlers", program)
    heading, *rows = call("runs").out.splitlines()
    assert heading.split() == ["RUN", "STATUS", "HANDLER", "LAST", "ACTIVE", "NOTE"]
    assert [row.split()[:3] for row in rows] == [
        ["trip-42/fail", "failed", "fail"],
        ["trip-42/confirm", "waiting", "confirm"],
        ["other/book", "submitted", "book"],
    ]
    assert rows[1].endswith("waits for approval")
    found = call("runs", "--status", "waiting", "--json").data["runs"]
    assert [(each["thread"], each["name"], each["waits"], each["input"]) for each in found] == [
        ("trip-42", "confirm", "approval", {"to": "LIS"})
    ]
    assert [each["name"] for each in call("runs", "--thread", "other", "--json").data["runs"]] == ["book"]
    assert len(call("runs", "--user", "ana", "--json").data["runs"]) == 3
    assert "may be more" in call("runs", "--limit", "1").err
    assert call("runs", "--user", "nobody").err == "No such runs.\n"


def test_runs_refuse_what_is_not_there(call: Call, db: Path) -> None:
    submit(db, "book")
    assert "interrupted" in call("runs", "--status", "sleepy").err
    assert call("runs", "--status", "sleepy").code == exits.USAGE
    assert call("runs", "--thread", "nobody").code == exits.NOT_FOUND


def test_a_run_that_is_held_says_by_whom(call: Call, db: Path, program: str) -> None:
    with holdfast.open(db) as store:
        run = store.thread("trip-42").run("book")
        (row,) = call("runs", "--json").data["runs"]
        assert (row["status"], str(os.getpid()) in row["holder"]) == ("running", True)
        assert f"held by {row['holder']}" in call("show", "trip-42/book").out
        held = call("resume", "trip-42/book", "--handlers", program)
        assert (held.code, "is held by" in held.err) == (exits.CONFLICT, True)
        assert call("resume", "trip-42/book", "--handlers", program, "--json").error["code"] == "run_held"
        run.release()


# The story of one


@pytest.fixture
def yesterday(db: Path) -> Path:
    """A run that failed a day ago, in its third attempt."""

    clock = ManualClock(to_micros(datetime.now(UTC) - timedelta(days=1)))

    def decline(amount: int) -> None:
        clock.advance(2)
        raise CardDeclined("insufficient funds") from KeyError("card")

    def book(run: holdfast.Run) -> None:
        run.step("search", lambda place: [f"a flight to {place}"], "LIS", effect="pure")
        run.step("pay", decline, 184, effect="idempotent", retry=holdfast.Retry(3, delay_s=10))

    with holdfast.open(db, clock=clock) as store:
        store.thread("trip-42").submit("book", input={"to": "LIS"})
        (report,) = store.resume({"book": book})
    assert report.outcome == "failed"
    return db


def test_yesterdays_failure_can_be_read_today(call: Call, yesterday: Path) -> None:
    out = call("show", "trip-42/book").out
    for words in (
        "trip-42/book  failed\n",
        "handler book · took 36.0 s",
        'input   {"to": "LIS"}',
        "Failed in step pay after 3 attempts\n",
        "CardDeclined: insufficient funds\n",
        "from KeyError: 'card'\n",
        "completed  search  completed  ",
        "failed     pay     failed, to be tried again: CardDeclined: insufficient funds\n",
        "holdfast resume trip-42/book --handlers MODULE:NAME\n",
    ):
        assert words in out
    (row,) = re.findall(r"^  pay .*$", out, re.M)
    assert row.split()[:5] == ["pay", "idempotent", "failed", "3", "36.0"]
    assert KEY.search(row)
    assert "File" not in out
    verbose = call("show", "trip-42/book", "-v").out
    assert verbose.count("in decline") == 3
    assert "holdfast/steps" not in verbose


def test_a_story_as_json_is_whole(call: Call, yesterday: Path) -> None:
    data = call("show", "trip-42/book", "--json").data
    assert (data["run"]["status"], data["run"]["input"]) == ("failed", {"to": "LIS"})
    assert [(each["name"], each["standing"], each["attempts"]) for each in data["steps"]] == [
        ("search", "completed", 1),
        ("pay", "failed", 3),
    ]
    assert round(data["steps"][1]["seconds"]) == 36
    assert data["steps"][1]["error"]["type"] == "CardDeclined"
    assert "in decline" in data["steps"][1]["error"]["traceback"]
    kinds = [each["kind"] for each in data["moments"]]
    assert kinds == ["opened", "opened", "intent", "completed", *["intent", "failed"] * 3, "ended"]
    assert [each["number"] for each in data["moments"]] == list(range(1, len(kinds) + 1))


@pytest.mark.parametrize("width", [100, 60])
def test_a_story_fits_on_a_terminal(db: Path, yesterday: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    target = db.parent / "shown.txt"
    with holdfast.open(db) as store, target.open("w", encoding="utf-8") as file:
        story = store.thread("trip-42").timeline("book")
        screen = Screen(file, width=width, terminal=True)
        show_timeline(Desk(Options()), screen, story, verbose=True)
    coloured = target.read_text(encoding="utf-8")
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert coloured != bare
    assert max(map(len, bare.splitlines())) <= width
    assert ("━" in bare) == (width == 100)
    assert "✗  pay     failed, to be tried again:" in bare
    assert len(KEY.findall(bare)) == 2
    assert "1 day ago" in bare


def test_a_narrow_terminal_has_no_line_that_breaks(db: Path) -> None:
    submit(db, "book-the-flight", handler="a-handler")
    submit(db, "x" * 60)
    out = io.StringIO()
    with holdfast.open(db) as store:
        show_runs(Desk(Options()), Screen(out, width=60, terminal=True), store.runs())
    bare = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert max(map(len, bare.splitlines())) <= 60
    assert bare.count("…") >= 1
    assert "a-handler" in bare


def test_a_handoff_on_a_terminal_is_drawn_and_cannot_steer_it() -> None:
    out = io.StringIO()
    Screen(out, width=60, terminal=True).markdown("## Goal\n[click](https://example.org) \x1b]0;owned\x07 now\n")
    assert "##" not in out.getvalue()
    assert "click" in out.getvalue()
    assert "\x1b]" not in out.getvalue()


def test_what_was_asked_and_decided_is_in_the_story(call: Call, db: Path, program: str) -> None:
    killed(db, program, "book")
    assert call("resume", "--handlers", program).code == exits.OK
    assert payments() == ["184"]
    out = call("show", "trip-42/book").out
    assert "probed     pay     asked the outside world: the probe found that it happened" in out
    assert "resolved   pay     decided: recorded" in out
    assert re.search(r"^  pay +once +found by probe +1 ", out, re.M)
    assert "taken up 2 times" in out
    assert "result  R-7, found" in out


def test_show_takes_the_thread_first_and_then_every_way_to_cut(call: Call, db: Path) -> None:
    with holdfast.open(db) as store:
        store.thread("a/b/c").append(holdfast.note("a thread"))
        for thread, run in (("a/b", "c"), ("a", "b/d"), ("a/b", "d")):
            store.thread(thread).submit(run)
    assert call("show", "a/b/c", "--json").data["id"] == "a/b/c"
    assert call("show", "a/b", "--run", "c", "--json").data["run"]["thread"] == "a/b"
    done = call("show", "a/b/d")
    assert done.code == exits.USAGE
    assert done.err == (
        "error: 'a/b/d' could be run 'b/d' of thread 'a' or run 'd' of thread 'a/b': give only the thread, and "
        "--run NAME\n"
    )
    assert call("show", "a", "--run", "b/d", "--json").data["run"]["name"] == "b/d"
    assert [each["name"] for each in call("show", "a/b", "--json").data["runs"]] == ["d", "c"]


@pytest.mark.parametrize("name", ["show", "cancel", "signal", "settle", "resume"])
def test_a_run_that_is_not_there(call: Call, db: Path, program: str, name: str) -> None:
    submit(db, "book", "fail")
    more = {"signal": ["approval"], "settle": ["pay", "--happened"], "resume": ["--handlers", program]}.get(name, [])
    done = call(name, "trip-42/none", *more)
    assert done.code == exits.NOT_FOUND
    assert "there is no run 'trip-42/none'" in done.err
    assert call(name, "nobody/none", *more, "--json").error["code"] == "not_found"
    assert "has no run 'none'" in call(name, "trip-42", *more, "--run", "none").err
    for nonsense in ("/", "trip-42/", "/book"):
        assert call(name, nonsense, *more).code == exits.NOT_FOUND
    if name != "show":
        wrong = call(name, "trip-42", *more)
        assert (wrong.code, "trip-42/fail, trip-42/book" in wrong.err) == (exits.USAGE, True)


def test_a_subtask_has_a_story_and_goes_with_its_run(call: Call, db: Path) -> None:
    def inner(sub: holdfast.Subtask) -> int:
        return int(sub.step("count", lambda: 7, effect="pure"))

    with holdfast.open(db) as store, store.thread("trip-42").run("book") as run:
        run.subtask("compare", inner)
        thread = "trip-42/book/compare"
        assert [each["name"] for each in call("runs", "--json").data["runs"]] == ["book"]
        assert call("show", f"{thread}/compare", "--json").data["steps"][0]["result"] == 7
        done = call("cancel", f"{thread}/compare")
        assert (done.code, "is a subtask" in done.err) == (exits.USAGE, True)


def test_nothing_in_a_run_can_steer_a_terminal(call: Call, db: Path) -> None:
    nasty, name = "x\x1b[2J\x1b]0;owned\x07\u202e", "x\u202e"

    def fail(value: str) -> None:
        raise ValueError(nasty)

    def handler(run: holdfast.Run) -> None:
        run.step(name, fail, nasty, effect="pure")

    with holdfast.open(db) as store:
        store.thread("t").submit(name, input=nasty, handler=name)
        store.resume({name: handler})
        store.thread("t").handoff.update(goal=nasty, blockers=[nasty])
    for args in (["runs"], ["show", f"t/{name}", "-v"], ["show", "t"], ["handoff", "t"], ["cancel", f"t/{name}"]):
        done = call(*args)
        assert done.code == exits.OK, done.err
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.out + done.err), args


# Carrying on


def test_resume_without_handlers_lists_and_does_nothing(call: Call, db: Path, program: str) -> None:
    holdfast.open(db).close()
    assert "Nothing to resume" in call("resume").err
    submit(db, "confirm")
    killed(db, program, "book")
    done = call("resume")
    assert done.code == exits.OK
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["trip-42/confirm", "trip-42/book"]
    assert "2 runs can be continued: give --handlers MODULE:NAME" in done.err
    assert [each["name"] for each in call("resume", "trip-42/book", "--json").data["resumable"]] == ["book"]
    assert [status(db), status(db, "confirm")] == ["interrupted", "submitted"]


def test_a_killed_run_is_carried_on_by_the_command_and_pays_once(db: Path, program: str) -> None:
    killed(db, program, "book")
    done = subprocess.run(
        command(db, "resume", "--handlers", f"{program}:HANDLERS"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "done         trip-42/book  R-7, found\n"
    assert done.stderr == "1 run: 1 done.\n"
    assert payments() == ["184"]
    assert status(db) == "done"


def test_each_outcome_is_told_and_a_bad_one_is_exit_code_11(call: Call, db: Path, program: str) -> None:
    submit(db, "fail", "confirm")
    submit(db, "old", handler="gone")
    done = call("resume", "--handlers", program)
    assert done.code == exits.UNFINISHED
    told = {line.split("  ")[0].strip(): line for line in done.out.splitlines() if line != "confirming"}
    assert set(told) == {"failed", "waiting", "no handler"}
    assert (
        "trip-42/fail  StepFailed: step 'pay' of run 'fail' failed: CardDeclined: insufficient funds" in told["failed"]
    )
    assert "there is no handler 'gone'" in told["no handler"]
    assert done.err == "3 runs: 1 waiting, 1 failed, 1 no handler.\n"
    assert status(db, "old") == "submitted"


def test_resume_as_json_is_one_document_whatever_handlers_print(call: Call, db: Path, program: str) -> None:
    submit(db, "confirm")
    done = call("resume", "--handlers", program, "--json")
    assert [(each["run"], each["outcome"]) for each in done.data["resumed"]] == [("confirm", "waiting")]
    assert done.data["interrupted"] is False
    assert done.err == "confirming\n"


def test_one_run_is_carried_on_and_the_others_are_left(call: Call, db: Path, program: str) -> None:
    submit(db, "book")
    submit(db, "book", thread="other")
    done = call("resume", "other", "--run", "book", "--handlers", program)
    assert done.out == "done         other/book  R-7\n"
    assert [status(db), status(db, thread="other")] == ["submitted", "done"]
    over = call("resume", "other/book", "--handlers", program)
    assert (over.code, over.err) == (
        exits.USAGE,
        "error: run 'book' of thread 'other' is done; there is nothing to resume\n",
    )
    assert call("resume", "other/book", "--handlers", program, "--json").error["code"] == "run_ended"


def test_a_failed_run_is_tried_again_only_when_it_is_named(call: Call, db: Path, program: str) -> None:
    submit(db, "fail")
    assert call("resume", "--handlers", program).code == exits.UNFINISHED
    assert "Nothing to resume" in call("resume", "--handlers", program).err
    again = call("resume", "trip-42/fail", "--handlers", program)
    assert (again.code, again.out.split()[:2]) == (exits.UNFINISHED, ["failed", "trip-42/fail"])
    assert "opened again by" in call("show", "trip-42/fail").out


def test_a_run_that_waits_with_a_limit_is_no_error(call: Call, db: Path, program: str) -> None:
    with holdfast.open(db) as store:
        store.thread("trip-42").submit("confirm")
        store.resume({"confirm": lambda run: run.wait("approval", timeout_s=3600)})
    done = call("resume", "trip-42/confirm", "--handlers", program)
    assert (done.code, done.out) == (exits.OK, "confirming\nwaiting      trip-42/confirm  waits for 'approval'\n")


BROKEN = {
    "broken": "import no_such_thing_at_all",
    "raising": "def f():\n    raise ZeroDivisionError('at import')\nf()",
    "leaving": "import sys\nsys.exit(3)",
    "wrong": "x = = 1",
    "bare": "def book(run): ...",
    "numbers": "HANDLERS = {'book': 7}",
    "text": "HANDLERS = 'book'",
    "empty": "HANDLERS = {}",
    "later": "async def book(run): ...\nHANDLERS = [book]",
    "asking": "def __getattr__(name):\n    raise RuntimeError(f'no {name} today')",
    "exiting": "def __getattr__(name):\n    raise SystemExit(9)",
    "endless": "class Odd:\n    def __iter__(self):\n        raise OSError('no list today')\nHANDLERS = Odd()",
}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no_such_module_here", "there is no module 'no_such_module_here' in this directory"),
        ("json.no_such_part:X", "there is no module 'json.no_such_part' in this directory"),
        ("program_broken", "does not import: ModuleNotFoundError: No module named 'no_such_thing_at_all'"),
        ("program_raising", "does not import: ZeroDivisionError: at import"),
        ("program_leaving", "does not import: SystemExit: 3"),
        ("program_wrong", "does not import: SyntaxError: invalid syntax"),
        ("program_bare", "has neither HANDLERS nor handlers"),
        ("program_bare:none", "module 'program_bare' has no 'none'"),
        ("program_numbers", "the handler 'book' is 7, which cannot be called"),
        ("program_text", "handlers are functions by the name of their runs"),
        ("program_empty", "'program_empty' has no functions"),
        ("program_later", "handler 'book' is async"),
        ("program_asking", "module 'program_asking' does not give its functions: RuntimeError: no HANDLERS today"),
        ("program_asking:book", "module 'program_asking' does not give its functions: RuntimeError: no book today"),
        ("program_exiting", "module 'program_exiting' does not give its functions: SystemExit: 9"),
        ("program_endless", "module 'program_endless' does not give its functions: OSError: no list today"),
        ("work/program.py", "names a module, not a file: work.program, not work/program.py"),
        ("a b", "--handlers is MODULE or MODULE:NAME"),
        ("", "--handlers is MODULE or MODULE:NAME"),
        (".x", "--handlers is MODULE or MODULE:NAME"),
    ],
)
def test_handlers_that_cannot_be_had(call: Call, db: Path, program: str, given: str, said: str) -> None:
    for name, text in BROKEN.items():
        Path(f"program_{name}.py").write_text(text, encoding="utf-8")
    submit(db, "book")
    done = call("resume", "--handlers", given)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert said in done.err
    assert "Traceback" not in done.err
    if given == "program_raising":
        assert "program_raising.py, line 2)" in done.err
    assert call("resume", "--handlers", given, "--json").error["code"] == "invalid"
    assert status(db) == "submitted"


@pytest.mark.parametrize("attribute", ["book", "Work.ALL", "handlers"])
def test_handlers_may_be_one_function_or_inside_something(call: Call, db: Path, program: str, attribute: str) -> None:
    more = "\nclass Work:\n    ALL = {'book': book}\ndel HANDLERS\nhandlers = (book,)\n"
    Path(f"{program}.py").write_text(PROGRAM + more, encoding="utf-8")
    submit(db, "book")
    given = program if attribute == "handlers" else f"{program}:{attribute}"
    assert call("resume", "--handlers", given).out == "done         trip-42/book  R-7\n"


def test_a_named_run_whose_handler_is_missing(call: Call, db: Path, program: str) -> None:
    submit(db, "old", handler="gone")
    done = call("resume", "trip-42/old", "--handlers", f"{program}:book")
    assert (done.code, done.err) == (
        exits.USAGE,
        "error: run 'old' of thread 'trip-42' needs handler 'gone'; given: 'book'\n",
    )
    assert status(db, "old") == "submitted"


@pytest.mark.parametrize("args", [["--run", "book"], ["--watch"], ["trip-42/book", "--watch", "--handlers", "x"]])
def test_calls_of_resume_that_make_no_sense(call: Call, db: Path, args: list[str]) -> None:
    submit(db, "book")
    assert call("resume", *args).code == exits.USAGE


LEAVING = """
import sys
def leave(run):
    run.step("search", ask, "LIS", effect="pure")
    sys.exit(4)
def interrupt(run):
    raise KeyboardInterrupt
HANDLERS = [book, leave, interrupt]
"""


@pytest.mark.parametrize("named", [True, False])
def test_a_handler_that_asks_to_exit_is_named(call: Call, db: Path, program: str, named: bool) -> None:
    Path(f"{program}.py").write_text(PROGRAM + LEAVING, encoding="utf-8")
    submit(db, "leave")
    run = ["trip-42/leave"] if named else []
    done = call("resume", *run, "--handlers", program)
    assert (done.code, done.out) == (exits.UNFINISHED, "interrupted  trip-42/leave  SystemExit: 4\n")
    assert "The handler of run trip-42/leave asked to exit (SystemExit: 4), so this ends here." in done.err
    assert status(db, "leave") == "interrupted"
    told = call("resume", *run, "--handlers", program, "--json")
    assert (told.code, told.err, told.data["interrupted"]) == (exits.UNFINISHED, "", True)
    (left,) = told.data["resumed"]
    assert (left["run"], left["handler"], left["outcome"]) == ("leave", "leave", "interrupted")
    assert left["error"] == "SystemExit: 4"


def test_a_watching_command_ends_when_a_handler_asks_to_exit(call: Call, db: Path, program: str) -> None:
    Path(f"{program}.py").write_text(PROGRAM + LEAVING, encoding="utf-8")
    submit(db, "leave")
    done = call("resume", "--handlers", program, "--watch")
    assert (done.code, done.out) == (exits.UNFINISHED, "interrupted  trip-42/leave  SystemExit: 4\n")
    assert "The handler of run trip-42/leave asked to exit" in done.err
    assert status(db, "leave") == "interrupted"


def test_an_interrupted_resume_as_json_tells_what_was_done(call: Call, db: Path, program: str) -> None:
    Path(f"{program}.py").write_text(PROGRAM + LEAVING, encoding="utf-8")
    submit(db, "book", "interrupt")
    done = call("resume", "--handlers", program, "--json")
    assert (done.code, done.data["interrupted"]) == (exits.INTERRUPTED, True)
    assert [(each["run"], each["outcome"]) for each in done.data["resumed"]] == [("book", "done")]
    assert status(db, "interrupt") == "interrupted"
    assert call("resume", "trip-42/interrupt", "--handlers", program).code == exits.INTERRUPTED


# Whoever runs the tests in the background may have told them to ignore interrupts, and children inherit that.
_HEARING = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("holdfast", run_name="__main__", alter_sys=True)
"""


@contextmanager
def worker(db: Path, program: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    arguments = ["--db", str(db), "resume", "--handlers", program, "--watch", *args]
    child = subprocess.Popen(
        [sys.executable, "-c", _HEARING, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    guard = threading.Timer(60, child.kill)
    guard.start()
    try:
        yield child
    finally:
        guard.cancel()
        child.kill()
        child.communicate()
        guard.join()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are sent differently there")
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_a_watching_command_works_until_it_is_asked_to_stop(db: Path, program: str, asked: signal.Signals) -> None:
    submit(db, "book")
    with worker(db, program) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "done         trip-42/book  R-7\n"
        submit(db, "book", thread="other")
        assert child.stdout.readline() == "done         other/book  R-7\n"
        child.send_signal(asked)
        out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (exits.OK, "")
    assert err.startswith("Working. Ctrl-C stops")
    assert err.endswith("Stopped after 2 runs.\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are sent differently there")
def test_a_second_interrupt_leaves_the_run_for_later(db: Path, program: str) -> None:
    more = "\nimport time\ndef slow(run):\n    print('began', flush=True)\n    time.sleep(60)\nHANDLERS = [slow]\n"
    Path(f"{program}.py").write_text(PROGRAM + more, encoding="utf-8")
    submit(db, "slow")
    with worker(db, program, "--json") as child:
        assert child.stderr is not None
        assert child.stderr.readline() == "began\n"
        child.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        assert status(db, "slow") == "running"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
    assert (child.returncode, out) == (exits.INTERRUPTED, "")
    assert status(db, "slow") == "interrupted"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are sent differently there")
def test_a_watching_command_tells_each_run_as_a_line_of_json(db: Path, program: str) -> None:
    submit(db, "confirm")
    with worker(db, program, "--json") as child:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["outcome"] == "waiting"
        with holdfast.open(db) as store:
            store.thread("trip-42").signal("approval", "yes")
        told = json.loads(child.stdout.readline())
        assert (told["outcome"], told["result"]) == ("done", {"approved": "yes"})
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=30)
    assert child.returncode == exits.OK


# Signals


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (["true"], True),
        (['{"seat": "14C"}'], {"seat": "14C"}),
        (["yes, please"], "yes, please"),
        (["12"], 12),
        (["12", "--text"], "12"),
        (["{not json", "--text"], "{not json"),
        (["NaN"], "NaN"),
        ([], None),
    ],
)
def test_a_signal_carries_json_or_text(call: Call, db: Path, program: str, given: list[str], value: Any) -> None:
    submit(db, "confirm")
    call("resume", "--handlers", program)
    done = call("signal", "trip-42/confirm", "approval", *given, "--by", "ana")
    assert done.code == exits.OK
    assert "holdfast resume trip-42/confirm --handlers MODULE:NAME" in done.out
    assert "signal 'approval' from ana" in call("show", "trip-42/confirm").out
    resumed = call("resume", "--handlers", program, "--json").data["resumed"]
    assert [each["result"] for each in resumed] == [{"approved": value}]


def test_the_first_signal_counts(call: Call, db: Path, program: str) -> None:
    submit(db, "confirm")
    assert call("signal", "trip-42/confirm", "approval", "true", "--json").data["first"] is True
    late = call("signal", "trip-42/confirm", "approval", "false")
    assert (late.code, late.out) == (exits.CONFLICT, "Run trip-42/confirm had its 'approval' already: true\n")
    assert call("signal", "trip-42/confirm", "approval", "true").code == exits.OK
    call("resume", "--handlers", program)
    over = call("signal", "trip-42/confirm", "approval", "true", "--json")
    assert (over.code, over.error["code"]) == (exits.USAGE, "run_ended")


@pytest.mark.parametrize("value", ["{seat: 14C}", "[1,", '"open', "[NaN]"])
def test_a_signal_that_begins_like_json_must_be_json(call: Call, db: Path, value: str) -> None:
    submit(db, "confirm")
    done = call("signal", "trip-42/confirm", "approval", value)
    assert done.code == exits.USAGE
    assert "VALUE looks like JSON but is not valid" in done.err
    assert "--text" in done.err
    assert [each["kind"] for each in call("show", "trip-42/confirm", "--json").data["moments"]] == ["opened"]


DEEP = "[" * 60_000


@pytest.mark.parametrize("value", [DEEP, DEEP + "]" * 60_000, '{"a":' * 60_000])
def test_json_that_is_nested_without_end_is_refused(call: Call, db: Path, value: str) -> None:
    submit(db, "confirm")
    for args in (
        ["signal", "trip-42/confirm", "approval", value],
        ["settle", "x/y", "z", "--happened", "--result", value],
    ):
        done = call(*args, "--json")
        assert (done.code, done.error["code"]) == (exits.USAGE, "invalid")
        assert "nested too deeply" in done.error["message"]
    assert call("signal", "trip-42/confirm", "approval", value[:100], "--text").code == exits.OK


def test_a_signal_that_the_run_does_not_wait_for_is_kept_and_said(call: Call, db: Path, program: str) -> None:
    submit(db, "confirm")
    early = call("signal", "trip-42/confirm", "seat", '"14C"')
    assert early.err == "The run is not waiting for 'seat' now; the value is stored until it does.\n"
    assert "To continue it:" in early.out
    call("resume", "--handlers", program)
    wrong = call("signal", "trip-42/confirm", "aproval", "true")
    assert (wrong.code, wrong.out) == (exits.OK, "Run trip-42/confirm has its 'aproval': true\n")
    assert wrong.err == (
        "The run is not waiting for 'aproval' now (it is waiting for 'approval'); the value is stored until it does.\n"
    )
    told = call("signal", "trip-42/confirm", "other", "--json")
    assert (told.data["awaited"], told.err) == (False, "")
    assert call("signal", "trip-42/confirm", "approval", "true").err == ""


def test_a_signal_may_be_a_negative_number(call: Call, db: Path) -> None:
    submit(db, "confirm")
    assert "change -- -5" in call("signal", "--help").out
    assert call("signal", "trip-42/confirm", "change", "--json", "--", "-5").data["value"] == -5


# Settling


@pytest.fixture
def stopped(call: Call, db: Path, program: str) -> str:
    """The program of a run that paid, died, and stopped because nobody can say so."""
    killed(db, program, "guess")
    assert call("resume", "--handlers", program).code == exits.UNFINISHED
    return program


def test_a_stopped_run_tells_what_to_look_for_and_what_to_say(call: Call, db: Path, stopped: str) -> None:
    out = call("show", "trip-42/guess").out
    with holdfast.open(db) as store:
        key = store.thread("trip-42").timeline("guess").steps[-1].key
    assert f"Look up its key in the outside system,\n  {key}\n" in out
    assert "  holdfast settle trip-42/guess pay --happened --result JSON\n" in out
    assert re.search(r"^  pay +once +in doubt +1 +- ", out, re.M)
    assert call("runs").out.rstrip().endswith("settle a step")


@pytest.mark.parametrize(
    ("said", "result", "paid"),
    [(["--happened", "--result", '"R-1"'], "R-1", 1), (["--happened"], None, 1), (["--not-happened"], "R-7", 2)],
)
def test_what_a_person_found_is_recorded_and_the_run_goes_on(
    call: Call, db: Path, stopped: str, said: list[str], result: Any, paid: int
) -> None:
    done = call("settle", "trip-42/guess", "pay", *said)
    assert done.code == exits.OK
    assert "holdfast resume trip-42/guess" in done.out
    assert status(db, "guess") == "interrupted"
    (resumed,) = call("resume", "--handlers", stopped, "--json").data["resumed"]
    assert (resumed["outcome"], resumed["result"], len(payments())) == ("done", result, paid)
    over = call("settle", "trip-42/guess", "pay", *said)
    assert (over.code, "is done" in over.err) == (exits.USAGE, True)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["pay"], exits.USAGE, "--happened or --not-happened"),
        (["pay", "--happened", "--result", "R-7"], exits.USAGE, "--result is not JSON"),
        (["pay", "--happened", "--result", "NaN"], exits.USAGE, "--result is not JSON"),
        (["pay", "--not-happened", "--result", "1"], exits.USAGE, "only with --happened"),
        (["search", "--happened"], exits.USAGE, "is completed"),
        (["none", "--happened"], exits.NOT_FOUND, "has no step 'none'; in doubt: 'pay'"),
    ],
)
def test_what_cannot_be_settled_changes_nothing(
    call: Call, db: Path, stopped: str, args: list[str], code: int, said: str
) -> None:
    before = call("show", "trip-42/guess", "--json").data
    done = call("settle", "trip-42/guess", *args)
    assert (done.code, said in done.err) == (code, True), done.err
    assert call("show", "trip-42/guess", "--json").data == before


def test_a_wait_is_not_settled_but_signalled(call: Call, db: Path, program: str) -> None:
    submit(db, "confirm")
    call("resume", "--handlers", program)
    assert "holdfast signal" in call("settle", "trip-42/confirm", "approval", "--happened").err
    assert status(db, "confirm") == "waiting"


# Cancelling


def test_a_run_with_nothing_to_undo_ends_at_once(call: Call, db: Path) -> None:
    submit(db, "book")
    done = call("cancel", "trip-42/book", "--reason", "the trip is off", "--by", "ana")
    assert (done.code, done.out) == (0, "Run trip-42/book is cancelled. There was nothing to undo.\n")
    assert "cancellation asked by ana: the trip is off" in call("show", "trip-42/book").out
    again = call("cancel", "trip-42/book")
    assert (again.code, again.err) == (exits.USAGE, "error: run 'book' of thread 'trip-42' is already cancelled\n")


def test_what_is_to_be_undone_is_undone_by_whoever_resumes(call: Call, db: Path, program: str) -> None:
    submit(db, "undo")
    call("resume", "--handlers", program)
    done = call("cancel", "trip-42/undo")
    assert "The process that resumes it undoes what it did:\n  Start your program again" in done.out
    assert call("cancel", "trip-42/undo", "--json").data["run"]["status"] == "interrupted"
    resumed = call("resume", "--handlers", program)
    assert (resumed.code, "cancelled    trip-42/undo" in resumed.out) == (exits.OK, True)
    assert status(db, "undo") == "cancelled"


def test_a_holder_is_asked_to_stop(call: Call, db: Path) -> None:
    with holdfast.open(db) as store:
        run = store.thread("trip-42").run("book")
        assert "stops before its next step" in call("cancel", "trip-42/book").out
        with pytest.raises(holdfast.errors.Cancelled):
            run.step("pay", lambda: 1, effect="pure")
        run.abandon()
    assert status(db) == "cancelled"


# The handoff


@pytest.fixture
def handed(call: Call, db: Path, program: str) -> Path:
    submit(db, "book")
    call("resume", "--handlers", program)
    with holdfast.open(db) as store:
        store.thread("trip-42").handoff.update(goal="Get Ana to Lisbon", todo="pack", next_action="ask about the cello")
    return Path("PROGRESS.md")


def test_a_handoff_is_printed(call: Call, handed: Path) -> None:
    out = call("handoff", "trip-42").out
    assert "## Goal\nGet Ana to Lisbon\n" in out
    assert "[x] book: search" in out
    assert "[ ] pack" in out
    data = call("handoff", "trip-42", "--json").data
    assert (data["handoff"]["goal"], data["markdown"]) == ("Get Ana to Lisbon", out)
    assert call("handoff", "nobody").code == exits.NOT_FOUND


def test_a_handoff_goes_to_a_file_and_comes_back_edited(call: Call, handed: Path) -> None:
    assert call("handoff", "trip-42", "--write", handed).out == "Handoff written to PROGRESS.md.\n"
    assert call("handoff", "trip-42", "--write", handed).out == "Nothing new in PROGRESS.md.\n"
    handed.write_text(handed.read_text(encoding="utf-8").replace("[ ] pack", "[x] pack"), encoding="utf-8")
    refused = call("handoff", "trip-42", "--write", handed)
    assert (refused.code, "--force" in refused.err) == (exits.CONFLICT, True)
    assert "3 of 3 steps done" in call("handoff", "trip-42", "--load", handed).out
    assert call("handoff", "trip-42", "--load", handed).code == exits.CONFLICT
    assert call("handoff", "trip-42", "--load", handed, "--force").code == exits.OK
    revisions = call("handoff", "trip-42", "--history", "--json").data["revisions"]
    assert [each["by"] for each in revisions] == ["agent", "agent", "person"]
    assert len(call("handoff", "trip-42", "--history").out.splitlines()) == 4


def test_a_handoff_goes_to_json_and_comes_back_edited(call: Call, handed: Path) -> None:
    assert call("handoff", "trip-42", "--write", "progress.json").out == "Handoff written to progress.json.\n"
    file = Path("progress.json")
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["goal"] == "Get Ana to Lisbon"
    file.write_text(json.dumps({**found, "features": {"she arrives": False}}), encoding="utf-8")
    assert call("handoff", "trip-42", "--load", "progress.json").code == exits.OK
    assert "- [ ] she arrives" in call("handoff", "trip-42").out
    file.write_text("{", encoding="utf-8")
    refused = call("handoff", "trip-42", "--load", "progress.json")
    assert (refused.code, "line 1: not JSON" in refused.err) == (exits.USAGE, True)


def test_a_handoff_is_committed_or_it_is_said_why_not(call: Call, handed: Path) -> None:
    done = call("handoff", "trip-42", "--write", handed, "--git")
    assert (done.code, "Not committed: " in done.err, handed.exists()) == (exits.NO, True, True)
    for args in (["init", "-q"], ["config", "user.name", "ana"], ["config", "user.email", "ana@example.org"]):
        subprocess.run(["git", *args], check=True, timeout=30)
    done = call("handoff", "trip-42", "--write", handed, "--git", "--message", "As far as we got")
    assert (done.code, "Committed as " in done.out) == (exits.OK, True)
    log = subprocess.run(["git", "log", "--format=%s"], check=True, timeout=30, capture_output=True, text=True)
    assert log.stdout == "As far as we got\n"


@pytest.mark.parametrize(
    "args",
    [["--git"], ["--write", "x", "--load", "y"], ["--history", "--load", "y"], ["--write", "x", "--message", "m"]],
    ids=" ".join,
)
def test_calls_of_handoff_that_make_no_sense(call: Call, db: Path, args: list[str]) -> None:
    submit(db, "book")
    assert call("handoff", "trip-42", *args).code == exits.USAGE


@pytest.mark.parametrize("message", ["bad\udcff", "\ud800"])
def test_a_message_that_is_no_text_leaves_nothing_behind(call: Call, handed: Path, message: str) -> None:
    before = call("handoff", "trip-42", "--history", "--json").data
    done = call("handoff", "trip-42", "--write", handed, "--git", "--message", message, "--json")
    assert (done.code, done.error["code"], handed.exists()) == (exits.USAGE, "invalid", False)
    assert "a commit message must be text" in done.error["message"]
    assert call("handoff", "trip-42", "--history", "--json").data == before


def test_a_handoff_in_the_middle_of_a_merge_is_not_loaded(call: Call, handed: Path) -> None:
    handed.write_text("## Goal\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> side\n", encoding="utf-8")
    before = call("handoff", "trip-42", "--history", "--json").data
    done = call("handoff", "trip-42", "--load", handed)
    assert (done.code, "line 2 is the marker of a merge conflict (<<<<<<< HEAD)" in done.err) == (exits.USAGE, True)
    assert call("handoff", "trip-42", "--history", "--json").data == before


def test_a_handoff_that_cannot_be_loaded(call: Call, handed: Path) -> None:
    assert call("handoff", "trip-42", "--load", "none.md").code == exits.NOT_FOUND
    handed.write_text("", encoding="utf-8")
    assert call("handoff", "trip-42", "--load", handed).code == exits.USAGE


# What holds for all of them

COMMANDS = [
    ["runs"],
    ["show", "trip-42/book"],
    ["resume"],
    ["resume", "trip-42/book"],
    ["cancel", "trip-42/book"],
    ["signal", "trip-42/book", "approval"],
    ["settle", "trip-42/book", "pay", "--happened"],
    ["handoff", "trip-42"],
]


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_a_store_that_is_not_there_is_not_made(call: Call, db: Path, args: list[str]) -> None:
    assert call(*args).code == exits.NOT_FOUND
    assert call(*args, "--json").error["code"] == "not_found"
    assert not db.exists()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"),
        (0.0214, "21 ms"),
        (1, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (3_599.7, "1 h 00 min"),
        (7_400, "2 h 03 min"),
        (86_400 * 3 + 3_600 * 4, "3 d 04 h"),
    ],
)
def test_how_long_something_took(seconds: float, words: str) -> None:
    assert wording.took(seconds) == words


def test_a_run_in_a_command_to_copy_is_quoted() -> None:
    assert locating.quoted("trip-42", "book") == "trip-42/book"
    assert locating.quoted("Ana's trip", "book") == "'Ana'\"'\"'s trip/book'"
