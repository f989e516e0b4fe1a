"""What the demonstration prints: each moment as it happens, then what else was measured, then what to try.

Deliberately absent: deciding anything. Every number and every sentence of the agents comes in from outside.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from holdfast.doors.cli.demo.claims import MeasuredClaim
from holdfast.doors.cli.demo.script import QUESTIONS, RUN
from holdfast.doors.cli.render import Column, Part, Screen
from holdfast.doors.cli.wording import age, as_text, database

_LABEL = 13
_QUESTION = max(len(question.asks) for question in QUESTIONS)


class Story:
    """Tells the demonstration on a screen."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._act = 0

    def heading(self, text: str, more: str = "") -> None:
        self._act += 1
        self.screen.blank()
        self.screen.line((f"{self._act}  {text}", "title"), (f"  {more}" if more else "", "quiet"))

    def says(self, who: str, style: str, *text: Part) -> None:
        self.screen.hanging([("", ""), (who, style)], [1, 5], *text)

    def asked(self, question: str, *found: Part) -> None:
        self.screen.hanging([("", ""), (question, "person")], [1, _QUESTION], *found)

    def under(self, *parts: Part) -> None:
        self.screen.line(*parts, indent=10)

    def begins(self, url: str, thread: str, days: int) -> None:
        self.screen.line(("One agent is killed in the middle of a turn, another in the middle of a booking.", "title"))
        aged = f"The first agent's clock is {days} days slow, so that its facts are old when the second one starts."
        self.screen.line((f"The store is {database(url)}, the thread {thread}. {aged}", "quiet"))

    def first_agent(self, pid: int) -> None:
        self.heading("An agent talks with Ana", f"process {pid}")

    def turn(self, event: dict[str, Any]) -> None:
        """One acknowledged turn: what was said, and how long it took to make it durable."""
        if event["asks"]:
            self.says("Ana", "person", event["asks"])
        kept = f"  ✓ on disk, {event['commit_ms']:.1f} ms"
        self.says("agent", "name", event["answers"], (kept, "good"))

    def busy(self, event: dict[str, Any]) -> None:
        self.says("Ana", "person", event["asks"])
        self.under((f"… the agent has called {event['call']} and is waiting for the answer", "quiet"))

    def killed(self, pid: int, signal: str, gone_ms: float, turns: int) -> None:
        self.heading("The agent is killed", f"in the middle of turn {turns + 1}")
        end = f" ended process {pid} within {gone_ms:.1f} ms: {turns} turns acknowledged, turn {turns + 1} not."
        self.screen.line((signal, "bad"), end, indent=3)

    def second_agent(self, pid: int) -> None:
        self.heading("A new process opens the same store", f"process {pid}, which has nothing but the store")

    def knows(self, event: dict[str, Any], started_ms: float) -> None:
        """What the new process knew before anyone spoke to it; its greeting says the rest."""
        state = event["state"]
        ready = f"{event['open_ms'] + event['load_ms']:.0f} ms after it began to open the store"
        self.screen.line(f"{ready} ({started_ms:.0f} ms after it was started, Python included) it knew:", indent=3)
        wishes = state["user_preferences"].items()
        self._fact("user", ", ".join(f"{name.replace('_', ' ')} {as_text(wish)}" for name, wish in wishes))
        task = state["active_task"] or {}
        self._fact("task", f"{task.get('description')} ({task.get('status')})")
        for field in event["stale"]:
            if field["critical"]:
                self._aged(field, state)

    def _fact(self, label: str, text: str, style: str = "name") -> None:
        self.screen.hanging([("", ""), (label, style)], [3, _LABEL], text)

    def _aged(self, field: dict[str, Any], state: dict[str, Any]) -> None:
        name = field["path"].rsplit(".", 1)[-1]
        fact = state["confirmed_facts"].get(name)
        value = f"{name.replace('_', ' ')} {as_text(fact['value'])}" if fact else name
        old = f"{value}: confirmed {age(field['age_s'])} ago, good for {age(field['fresh_for_s'])}"
        self._fact("must verify", old, "bad")

    def measured(self, claims: list[MeasuredClaim]) -> None:
        """What was measured and not seen yet, in a few lines; whatever did not hold, as a table."""
        failed = [(("✗", "bad"), each.claim, each.measured) for each in claims if not each.holds]
        held = "" if failed else f"all {len(claims)} claims held in this run, those shown above included"
        self.heading("What else was measured", held)
        if failed:
            columns = [Column(""), Column("claim"), Column("measured", "quiet", fits=True)]
            self.screen.table(columns, failed, indent=3)
            self.screen.line((f"{len(failed)} of {len(claims)} claims did not hold in this run.", "bad"), indent=3)
            return
        unseen = "; ".join(f"{each.claim} ({each.measured})" for each in claims if not each.seen)
        self.screen.hanging([("", ""), ("✓", "good")], [2, 1], f"{unseen[0].upper()}{unseen[1:]}.")

    def next_steps(self, url: str, thread: str, user: str) -> None:
        """Commands that work as they stand, from here, with this store."""
        begin = f"{launcher()} --db {shlex.quote(database(url))}"
        steps = [
            (f"chat {thread}", "talk with it; no key needed, kill it when you like"),
            (f"show {thread}/{RUN}", "the booking, moment by moment"),
            (f'recall "{QUESTIONS[0].asks}" --user {user} --explain -k 3', "what is found, and why"),
        ]
        self.screen.blank()
        self.screen.line(("Try it yourself", "title"), (f"  the store stays in {database(url)}", "quiet"))
        for command, why in steps:
            line, comment = f"{begin} {command}", f"  # {why}"
            fits = not self.screen.terminal or 3 + len(line) + len(comment) <= self.screen.width
            self.screen.verbatim((line, "name"), (comment if fits else "", "quiet"), indent=3)


def launcher() -> str:
    """How you call this command again from this shell: by its name, by its path, or through Python."""
    started = sys.argv[0]
    if Path(started).stem == "holdfast":
        return _typed("holdfast", started)
    return f"{_typed('python', sys.executable)} -m holdfast"


def _typed(name: str, path: str) -> str:
    """A program as it would be typed here: by its name where the shell finds this very one under it."""
    found = shutil.which(name)
    return name if found and Path(found).absolute() == Path(path).absolute() else shlex.quote(_from_here(path))


def _from_here(path: str) -> str:
    """A path as it would be typed here: relative where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(path) and not relative.startswith("..") else path
