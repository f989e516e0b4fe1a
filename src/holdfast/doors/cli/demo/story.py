"""How the demonstration is told: each moment as it happens, then what was measured, then what to try.

Deliberately absent: deciding anything. Every number and every sentence of the agents comes in from outside.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from holdfast.doors.cli.demo.script import QUESTIONS, RUN
from holdfast.doors.cli.render import Column, Part, Screen
from holdfast.doors.cli.wording import age, as_text, database

_LABEL = 13


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

    def under(self, *parts: Part) -> None:
        self.screen.line(*parts, indent=10)

    def begins(self, url: str, thread: str, days: int) -> None:
        self.screen.line(
            ("An agent is killed in the middle of a turn, another in the middle of a booking. What is left?", "title")
        )
        aged = f"To show how facts grow old, the first agent's clock is set {days} days back."
        self.screen.line((f"Everything is kept in {database(url)}, thread {thread}. {aged}", "quiet"))

    def first_agent(self, pid: int) -> None:
        self.heading("An agent talks with Ana", f"process {pid}")

    def turn(self, event: dict[str, Any]) -> None:
        """One acknowledged turn: what was said, and what it took to make it durable."""
        if event["asks"]:
            self.says("Ana", "person", event["asks"])
        self.says("agent", "name", event["answers"])
        kept = f"{event['added']} entries and state revision {event['revision']} on disk in {event['commit_ms']:.1f} ms"
        self.under(("✓ ", "good"), (kept, "quiet"))

    def checkpoint(self, event: dict[str, Any]) -> None:
        self.under(("✓ ", "good"), (f"checkpoint {event['name']} at entry {event['entries']}", "quiet"))

    def busy(self, event: dict[str, Any]) -> None:
        self.says("Ana", "person", event["asks"])
        self.under((f"… the agent has called {event['call']} and waits for the answer", "quiet"))

    def killed(self, pid: int, signal: str, gone_ms: float, turns: int) -> None:
        self.heading("It is killed", f"in the middle of turn {turns + 1}")
        end = f" ended process {pid} within {gone_ms:.1f} ms. It had no chance to react."
        self.screen.line((signal, "bad"), end, indent=3)
        self.screen.line(f"By then {turns} turns had been acknowledged. Turn {turns + 1} had not.", indent=3)

    def second_agent(self, pid: int) -> None:
        self.heading("A new process opens the same store", f"process {pid}, nothing handed over")

    def knows(self, event: dict[str, Any], started_ms: float) -> None:
        """What the new process knew before anyone spoke to it."""
        state = event["state"]
        ready = f"{event['open_ms'] + event['load_ms']:.0f} ms after it began to open the store"
        self.screen.line(f"{ready} ({started_ms:.0f} ms after it was started, Python included) it knew:", indent=3)
        wishes = dict(state["user_preferences"])
        self._fact("name", as_text(wishes.pop("name", "?")))
        self._fact(
            "preferences", ", ".join(f"{name.replace('_', ' ')} {as_text(wish)}" for name, wish in wishes.items())
        )
        task = state["active_task"] or {}
        self._fact("task", f"{task.get('description')} ({task.get('status')})")
        self._fact("last action", f"{task.get('last_action')}")
        for issue in state["unresolved_issues"]:
            self._fact("unresolved", issue)
        for field in event["stale"]:
            self._aged(field, state)
        self.screen.blank()

    def _fact(self, label: str, text: str, style: str = "") -> None:
        self.screen.hanging([("", ""), (label, style or "name")], [3, _LABEL], text)

    def _aged(self, field: dict[str, Any], state: dict[str, Any]) -> None:
        name = field["path"].rsplit(".", 1)[-1]
        fact = state["confirmed_facts"].get(name)
        value = f"{name.replace('_', ' ')} {as_text(fact['value'])}" if fact else name
        old = f"{value}: confirmed {age(field['age_s'])} ago, good for {age(field['fresh_for_s'])}"
        self._fact("must verify" if field["critical"] else "stale", old, "bad" if field["critical"] else "warn")

    def measured(self, claims: list[tuple[str, str, bool]]) -> None:
        self.heading("What was measured in this run")
        rows = [(("✓", "good") if holds else ("✗", "bad"), claim, measured) for claim, measured, holds in claims]
        self.screen.table([Column(""), Column("claim"), Column("measured", "quiet", fits=True)], rows, indent=3)
        failed = sum(not holds for _, _, holds in claims)
        if failed:
            self.screen.blank()
            self.screen.line((f"{failed} of {len(claims)} claims did not hold in this run.", "bad"))

    def offer_chat(self, url: str, thread: str) -> None:
        """The way into the same conversation, to be typed as it stands."""
        self.screen.blank()
        self.screen.line(("Talk with it yourself", "title"), ("  no key is needed; kill it when you like", "quiet"))
        command = f"{launcher()} --db {shlex.quote(database(url))} chat {thread}"
        self.screen.verbatim((command, "name"), indent=3)

    def next_steps(self, url: str, thread: str, user: str, fork: str, revision: int) -> None:
        """Commands that work as they stand, from here, with this store."""
        begin = f"{launcher()} --db {shlex.quote(database(url))}"
        steps = [
            (f"show {thread}", "at a glance"),
            (f"log {thread}", "all that was said and done"),
            (f"state {thread} --diff {revision} {revision + 1}", "what changed on waking up"),
            (f'recall "{QUESTIONS[0].asks}" --user {user} --explain -k 3', "what was found, and why"),
            (f"show {thread}/{RUN}", "the booking, moment by moment"),
            (f"log {fork} --last 3", "the fork"),
            (f"export trip.json --thread {thread}", "take it with you"),
        ]
        self.screen.blank()
        self.screen.line(("What to try next", "title"), (f"  the store is kept in {database(url)}", "quiet"))
        for command, why in steps:
            line, comment = f"{begin} {command}", f"  # {why}"
            fits = not self.screen.terminal or 3 + len(line) + len(comment) <= self.screen.width
            self.screen.verbatim((line, "name"), (comment if fits else "", "quiet"), indent=3)


def launcher() -> str:
    """How this command can be called again from this shell: by its name, by its path, or through Python."""
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
