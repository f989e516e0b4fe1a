"""A coding agent that does not drown in the output of its tools: what is old is masked, and can be looked up.

    python examples/coding_agent.py

makes a tiny project with a bug in it and has an agent run its tests (a real pytest, with more than a hundred lines of
output each time), fix it, and run them again. A turn later such an output is a few lines in the context: how it ended,
what failed, and under which name the whole text is; the log keeps all of it, and the agent looks up what it needs. Kill
it anywhere and run it again: it goes on. The language model is played by a function; to have a real one:

    python examples/coding_agent.py --folder /tmp/fix2 --model anthropic:claude-haiku-4-5
    holdfast --db /tmp/holdfast-fix/agent.db log prices
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import holdfast

FOLDER = Path(tempfile.gettempdir(), "holdfast-fix")
PROJECT = {
    "pytest.ini": "[pytest]\naddopts = -v --color=no\n",
    "prices.py": "def total(cents, percent):\n    return cents - cents * percent // 100\n",
    "test_prices.py": """import pytest
from prices import total

@pytest.mark.parametrize("percent", range(102))
def test_nobody_is_paid_for_buying(percent):
    assert total(500, percent) >= 0
""",
}
RUN, FIX, AGAIN = "Run the tests.", "Please fix what fails.", "Run the tests again."
WHY, SUM = "What exactly did the first failure say?", "Thank you. Sum it up for the changelog."
HOW = "You maintain a small Python project. Use the tools; then say in one sentence what came of it."


def tools(project: Path) -> list[holdfast.Step]:
    """What the agent may do. Each says what repeating it would mean, so that a crash in the middle is no trouble."""

    def inside(path: str) -> Path:
        file = (project / path).resolve()
        if not file.is_relative_to(project.resolve()):
            raise ValueError(f"{path} is outside of the project")  # what a tool raises is told to the model
        return file

    @holdfast.step(effect="pure")
    def run_tests() -> str:
        """Run all tests of the project and return their output."""
        command = [sys.executable, "-B", "-m", "pytest"]
        ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        return f"{ran.stdout}{ran.stderr}exit status {ran.returncode}"

    @holdfast.step(effect="pure")
    def read_file(path: str) -> str:
        """Read a file of the project."""
        return inside(path).read_text(encoding="utf-8")

    @holdfast.step(effect="idempotent")
    def edit_file(path: str, old: str, new: str) -> str:
        """Replace a piece of a file, which must occur in it once, by another."""
        text = inside(path).read_text(encoding="utf-8")
        if new not in text:  # otherwise it was edited before a crash
            if text.count(old) != 1:
                raise ValueError(f"{old!r} occurs {text.count(old)} times in {path}")
            inside(path).write_text(text.replace(old, new), encoding="utf-8")
        return f"{path} now has: {new}"

    return [run_tests, read_file, edit_file]


def stand_in(messages: list[dict[str, Any]], tools: list[Any]) -> str | holdfast.types.Reply:
    """Plays the language model. It knows nothing but what is in the messages, as a real one would."""
    if "one JSON object" in messages[0]["content"]:
        return "{}"  # asked for a handoff at the end of a session; it has nothing to add
    turn = max(at for at, message in enumerate(messages) if message["role"] == "user")
    asked, results = messages[turn]["content"], [one["content"] for one in messages[turn:] if one["role"] == "tool"]
    if asked.endswith((RUN, AGAIN)):
        return use("run_tests") if not results else re.findall(r"=+ (.*(?:passed|failed).*) =+", results[0])[-1]
    if asked.endswith(SUM):
        return "A discount of more than 100 percent no longer makes a price negative."
    if asked.endswith(WHY):
        page = "\n".join(str(message["content"]) for message in messages)
        whole = re.findall(r"\[masked: pytest output.*; the whole text: (\S+)\]", page)
        return use("look_up", ref=whole[0], find="E  ") if not results else results[0].splitlines()[1]
    if not results:
        return use("read_file", path="prices.py")
    if len(results) == 1:
        old = re.findall(r"return (.*)", results[0])[0]
        return use("edit_file", path="prices.py", old=f"return {old}", new=f"return max(0, {old})")
    return f"Fixed: {results[1]}"


def use(tool: str, **arguments: str) -> holdfast.types.Reply:
    return holdfast.types.Reply(calls=(holdfast.types.ToolCall("1", tool, arguments),))


def work(store: holdfast.Store, session: holdfast.Session, question: str) -> None:
    """One turn, and what its context was, beside one in which nothing is masked."""
    whole = store.session(session.thread, budget=session.budget, instructions=HOW, verbatim=1_000).context(question)
    answer = session.turn(question, key=question)  # with a key, it is asked once, however often this runs
    say(f"you:   {question}\nagent: {answer.text}")
    if answer.repeated:
        return
    for entry in answer.entries:
        if entry.kind == "observation":
            say(f"  (a tool gave {len(entry.content['content']):,} characters, kept as {entry.thread}#{entry.number})")
    report = answer.context.report
    say(f"  (context: {report.tokens:,} tokens, {report.masked} result(s) masked; {whole.tokens:,} with none masked)")
    masked = [one["content"] for one in answer.context.messages() if str(one["content"]).startswith("[masked")]
    if masked and question == WHY:
        say("  (this is how it shows the first run of the tests:)\n    " + masked[0].replace("\n", "\n    "))


def main() -> None:
    parser = argparse.ArgumentParser(description="A coding agent with masked observations.")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the store and the project are; default: %(default)s"
    )
    parser.add_argument("--model", help="vendor:name of a real model")
    given = parser.parse_args()
    project = given.folder / "project"
    if not project.exists():
        project.mkdir(parents=True)
        for name, text in PROJECT.items():
            (project / name).write_text(text, encoding="utf-8")
    ways: Any = {"model": given.model} if given.model else {"model": stand_in, "learn": "off"}
    with holdfast.open(given.folder / "agent.db") as store:
        thread = store.thread("prices", agent="coder")
        ways |= {"tools": tools(project), "instructions": HOW, "budget": 24_000, "verbatim": 1}
        with store.session(thread, **ways) as session:
            for question in (RUN, FIX, AGAIN, WHY, SUM):
                work(store, session, question)
    say((project / "prices.py").read_text(encoding="utf-8"))


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
