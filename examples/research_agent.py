"""A research agent whose work outgrows its window, over three sessions and twelve days.

    python examples/research_agent.py

reads what Python's own library says of eight modules, to tell which of them could keep a queue of jobs. Each turn has
1,100 tokens: older turns become summaries, and when these fill the window too, the agent hands off and begins afresh
from the handoff, which goes to ``PROGRESS.md`` as well. What it finds is a state with a schema; the version of SQLite
in it may be relied on for a week, and is then looked up again. At the end, a detail of the first day is asked for. Kill
it anywhere and run it again: it goes on. The language model is played by a function; to have a real one:

    python examples/research_agent.py --folder /tmp/survey2 --model anthropic:claude-haiku-4-5
    holdfast --db /tmp/holdfast-survey/agent.db state queue
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sqlite3
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal, get_args

import holdfast
from holdfast.testing import ManualClock  # so that twelve days take seconds; leave it out in a real program

FOLDER = Path(tempfile.gettempdir(), "holdfast-survey")

Module = Literal["heapq", "sched", "collections", "json", "csv", "tempfile", "pickle", "shelve", "dbm", "sqlite3"]
MODULES = get_args(Module)
GOAL = "Find out which of these modules could keep our queue of jobs over restarts"
FIRST, NEXT = f"{GOAL}: {', '.join(MODULES)}. Two at a time, please.", "Go on with the next two."
ASIDE, LAST = "By the way, Bo wants finished jobs kept for 30 days.", "How long did Bo want finished jobs kept?"
DAYS = {2: [ASIDE, FIRST, NEXT], 5: [NEXT, NEXT], 14: [NEXT, LAST]}
HOW = "For each module: read_docs, then note in a few words whether it keeps things on disk, then tell."


@holdfast.schema("survey", version=1, fresh={"sqlite": "7d"}, critical=["sqlite"])
@dataclass
class Survey:
    """What is found. The version is believed for a week; then it must be verified before anyone relies on it."""

    sqlite: str
    found: dict[str, str] = field(default_factory=dict)


@holdfast.refresher("survey", "sqlite")
def look_again(survey: Survey, path: str) -> str:
    return sqlite3.sqlite_version


@holdfast.step(effect="pure")
def read_docs(module: Module) -> str:
    """Read what the library says about a module."""
    return shorten(inspect.getdoc(importlib.import_module(module)) or "nothing", 600)


@holdfast.step(effect="idempotent")
def note(module: Module, finding: str) -> str:
    """Keep what was found out about a module."""
    holdfast.current_step().patch(f"found.{module}", finding)  # the state and the step's result are one commit
    return f"Noted: {module} {finding}."


def stand_in(messages: list[dict[str, Any]], tools: list[Any]) -> str | holdfast.types.Reply:
    """Plays the language model. It knows nothing but what is in the messages, as a real one would."""
    page = "\n".join(str(message["content"]) for message in messages)
    asked, last = messages[0]["content"], messages[-1]["content"]
    noted = [one for one in MODULES if re.search(rf'Noted: {one}|read of {one}|"{one}": ', page)]
    left = [one for one in MODULES if one not in noted]
    if asked.startswith("Summarise"):
        return "\n".join(re.findall(r"#.*(?:user:|Noted:) .*", last))
    if "one JSON object" in asked:
        then = f"Read of {left[0]}" if left else "Say which of them keep things on disk"
        return json.dumps({"goal": GOAL, "done": [f"read of {one}" for one in noted], "next_action": then})
    if last.endswith(ASIDE):
        return "I will keep that in mind."
    if last.endswith(LAST):
        return f"For {re.findall(r'kept for ([0-9]+ days)', page)[-1]}."
    if messages[-1]["role"] == "tool" and not last.startswith("Noted:"):
        lasting = re.search(r"persistent|database", last)
        return use("note", module=left[0], finding="keeps things on disk" if lasting else "keeps nothing")
    turn = max(at for at, message in enumerate(messages) if message["role"] == "user")
    done = [message["content"] for message in messages[turn:] if str(message["content"]).startswith("Noted:")]
    return "\n    ".join(done) if len(done) == 2 or not left else use("read_docs", module=left[0])


def use(tool: str, **arguments: str) -> holdfast.types.Reply:
    return holdfast.types.Reply(calls=(holdfast.types.ToolCall("1", tool, arguments),))


def work(session: holdfast.Session, question: str, key: str, progress: Path) -> None:
    """One turn, and what became of the window."""
    before = session.thread.logbook.head()
    answer = session.turn(question, key=key)  # with a key, it is asked once, however often this runs
    say(f"  {shorten(question, 60)} {answer.text}")
    if answer.repeated:
        return
    context = answer.context
    if context.window is None and context.section("handoff"):
        say("    (this turn began from the handoff: " + context.section("handoff").replace("\n", " | ") + ")")
    shown = ", ".join(f"{section.name} {section.tokens}" for section in context.report.sections)
    say(f"    (context: {context.tokens} of {context.report.budget:,} tokens: {shown})")
    for summary in (entry.content for entry in session.thread.log(after=before) if entry.kind == "summary"):
        say(f"    (entries {summary['first']} to {summary['last']} are summarised from now on)")
    if question == LAST:
        say(f"    (recalled: {', '.join(hit.id for hit in context.hits)})")
    if answer.handed_off:
        session.thread.handoff.write(progress)
        say("    (the window is nearly full: handed off)")


def main() -> None:
    parser = argparse.ArgumentParser(description="A research agent that hands its work on to itself.")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the store and PROGRESS.md are; default: %(default)s"
    )
    parser.add_argument("--model", help="vendor:name of a real model")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    clock = ManualClock(datetime(2026, 3, 2, 9, tzinfo=UTC))
    ways: Any = {"model": given.model} if given.model else {"model": stand_in, "learn": "rules"}
    ways |= {"tools": [read_docs, note], "state": Survey, "instructions": HOW, "budget": 2_254, "hand_off": 0.9}
    ways |= {"shares": {"recalled": holdfast.types.Share(least=0.15, most=0.25)}}  # of a budget as small as this
    with holdfast.open(given.folder / "agent.db", clock=clock) as store:
        thread = store.thread("queue", user="ana", agent="research")
        if not thread.exists():
            thread.save(Survey(sqlite3.sqlite_version))
        for day, questions in DAYS.items():
            clock.set(datetime(2026, 3, day, 9, tzinfo=UTC))
            say(f"{day} March:")
            with store.session(thread, **ways) as session:
                for path in session.start().must_verify:
                    say(f"  {path} must be verified: it is {thread.refresh(Survey).value.sqlite}")
                for number, question in enumerate(questions):
                    work(session, question, f"{day}-{number}", given.folder / "PROGRESS.md")
        thread.handoff.write(given.folder / "PROGRESS.md")
        for module, finding in thread.state(Survey).value.found.items():
            say(f"{module} {finding}")


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
