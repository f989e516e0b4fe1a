"""What the demonstration measured, and what it claims about it.

Deliberately absent: measuring, and printing. A claim holds or does not by what is in ``Played`` alone.
"""

from __future__ import annotations

import os
from statistics import median
from typing import Any

import msgspec

from holdfast.doors.cli.demo.script import QUESTIONS
from holdfast.doors.cli.wording import counted
from holdfast.records import VerifyReport
from holdfast.steps.timeline import StepInfo, Timeline


class Kill(msgspec.Struct, frozen=True):
    """How the first agent ended."""

    pid: int
    turn: int
    signal: str
    gone_ms: float


class Forked(msgspec.Struct, frozen=True):
    """What the fork at the checkpoint came to."""

    thread: str
    checkpoint: str
    entries: int
    shared: bool
    fork_ms: float


class Tried(msgspec.Struct):
    """One way to book a flight, killed and started again. What was done is read in the airline's own book."""

    agents: list[int] = []
    killed: str = "it was not"
    killed_ms: float = 0.0
    killed_at: int = 0
    before: list[dict[str, Any]] = []  # the airline's book when the first agent was dead
    after: list[dict[str, Any]] = []  # and what the second one added
    has: str = ""
    has_after_ms: float = 0.0
    said: str = ""

    def did(self, what: str) -> list[dict[str, Any]]:
        """What the airline did for both agents together."""
        return [line for line in (*self.before, *self.after) if line["did"] == what]

    @property
    def booked_when_killed(self) -> bool:
        return [line["did"] for line in self.before] == ["search", "book"]


class Booked(msgspec.Struct):
    """The flight home, booked without Holdfast and with it."""

    without: Tried = msgspec.field(default_factory=Tried)
    held: Tried = msgspec.field(default_factory=Tried)
    left: str = "nothing"  # where the step stood in the store between the two agents
    timeline: Timeline | None = None

    def step(self, name: str) -> StepInfo | None:
        """A step of the run, as it stands in the end."""
        return next((step for step in self.timeline.steps if step.name == name), None) if self.timeline else None


class MeasuredClaim(msgspec.Struct, frozen=True):
    """Something the demonstration says, and whether it was so in this run.

    ``seen`` is whether the story shows it as it happens; the closing table has the rest.
    """

    claim: str
    measured: str
    holds: bool
    seen: bool = False


class Played(msgspec.Struct):
    """Everything that was measured, in the order in which it was."""

    database: str
    thread: str
    user: str = ""
    acknowledged: list[dict[str, Any]] = []
    remembered: list[dict[str, Any]] = []
    checkpoint: dict[str, Any] = {}
    killed: Kill | None = None
    knew: dict[str, Any] = {}
    knew_after_ms: float = 0.0
    afterwards: list[dict[str, Any]] = []
    recalled: list[dict[str, Any]] = []
    final: dict[str, Any] = {}
    numbers: list[int] = []
    verified: VerifyReport | None = None
    verify_ms: float = 0.0
    forked: Forked | None = None
    booked: Booked | None = None


def claims(played: Played) -> list[MeasuredClaim]:
    """Hold what was measured against what is said about it."""
    return [
        *_of_survival(played),
        *_of_knowledge(played),
        *_of_memory(played),
        *_of_order(played),
        *_of_booking(played.booked or Booked()),
    ]


def _of_survival(played: Played) -> list[MeasuredClaim]:
    said: list[str] = [event["turn"] for event in played.acknowledged]
    found: list[str] = played.knew.get("turns", [])
    last: dict[str, Any] = played.acknowledged[-1] if played.acknowledged else {"entries": 0, "digest": ""}
    beyond = played.knew.get("entries", 0) - last["entries"]
    killed = played.killed
    forced = killed is not None and _forced(killed.signal)
    return [
        MeasuredClaim(
            "the agent was killed, not stopped", killed.signal if killed else "it was not", forced, seen=True
        ),
        MeasuredClaim(
            "every acknowledged turn is there",
            f"{len(said)} acknowledged, {len(found)} found",
            bool(said) and said == found,
        ),
        MeasuredClaim(
            "the last one is unchanged",
            f"entry {last['entries']}, digest {last['digest'][:12]}",
            bool(said) and last["digest"] == played.knew.get("digest"),
        ),
        MeasuredClaim(
            "the turn it died in left nothing", f"{beyond} entries after it", forced and bool(said) and beyond == 0
        ),
    ]


def _forced(signal: str) -> bool:
    return signal == "SIGKILL" or (os.name == "nt" and signal == "exit code 1")  # Windows has no signals


def _of_knowledge(played: Played) -> list[MeasuredClaim]:
    name = played.knew.get("state", {}).get("user_preferences", {}).get("name", "nobody")
    verify = played.knew.get("must_verify", [])
    took = played.knew.get("open_ms", 0.0) + played.knew.get("load_ms", 0.0)
    status = (played.final.get("active_task") or {}).get("status", "no task")
    issues = played.final.get("unresolved_issues", ["unknown"])
    return [
        MeasuredClaim(
            "the new process knew who Ana is", f"{name}, after {took:.0f} ms", name in _greeting(played), seen=True
        ),
        MeasuredClaim(
            "it saw which facts were too old", f"{len(verify)} to verify before acting", bool(verify), seen=True
        ),
        MeasuredClaim(
            "it finished the task", f"{status}, {len(issues)} issues open", status == "done" and not issues, seen=True
        ),
    ]


def _greeting(played: Played) -> str:
    return str(played.afterwards[0]["answers"]) if played.afterwards else ""


def _of_memory(played: Played) -> list[MeasuredClaim]:
    known = [each for each in played.recalled if each["turn"]]
    unknown = [each for each in played.recalled if not each["turn"]]
    right = [each for each in known if each["relevant"] and _found(each)[0] == _source(played, each["turn"])]
    sure = max((each["confidence"] for each in unknown), default=1.0)
    opened = sum(each["connections"] for each in played.recalled)
    pace = f"median {median(each['ms'] for each in played.recalled):.1f} ms" if played.recalled else "no recall"
    all_asked = len(played.recalled) == len(QUESTIONS)
    return [
        MeasuredClaim(
            "it found what the first agent knew",
            f"{counted(len(known), 'question')}, {len(right)} first hits right",
            all_asked and right == known,
            seen=True,
        ),
        _of_change(played),
        MeasuredClaim(
            "it made nothing up",
            f"{counted(len(unknown), 'question')}, confidence {sure:.2f}",
            all_asked and not any(each["relevant"] for each in unknown),
            seen=True,
        ),
        MeasuredClaim(
            "recall used the store alone", f"{counted(opened, 'connection')}, {pace}", all_asked and not opened
        ),
    ]


def _source(played: Played, turn: str) -> str:
    """Where the answer is by what the first agent acknowledged: a memory, or else the message that began the turn."""
    kept = [event["id"] for event in played.remembered if event["turn"] == turn]
    said = [f"{played.thread}#{event['entries'] - event['added'] + 1}" for event in _turn(played, turn)]
    return next(iter([*kept, *said]), "")


def _turn(played: Played, turn: str) -> list[dict[str, Any]]:
    return [event for event in played.acknowledged if event["turn"] == turn]


def _found(recalled: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in recalled["hits"]] or ["nothing"]


def _of_change(played: Played) -> MeasuredClaim:
    nothing: dict[str, Any] = {"key": "", "hits": [], "history": []}
    about = next((each for each in played.recalled if each["key"]), nothing)
    told = [event["id"] for event in played.remembered if event["key"] == about["key"]]
    kept = [version["id"] for version in about["history"]]
    found = _found(about)
    new = kept == told and len(told) > 1 and found[0] == told[-1] and not set(found) & set(told[:-1])
    measured = f"{counted(len(set(kept) & set(told)), 'value')} kept, the newest {'first' if new else 'not first'}"
    return MeasuredClaim("a fact that changed has its new value", measured, new, seen=True)


def _of_order(played: Played) -> list[MeasuredClaim]:
    whole = played.numbers == list(range(1, len(played.numbers) + 1))
    report, forked = played.verified, played.forked
    looked = f"{report.entries} entries, {len(report.problems)} problems, {played.verify_ms:.0f} ms" if report else "no"
    branch = f"{forked.entries} entries shared in {forked.fork_ms:.1f} ms" if forked else "no fork"
    return [
        MeasuredClaim("the log has no gap", f"1 to {len(played.numbers)}", whole and bool(played.numbers)),
        MeasuredClaim("every digest and count is right", looked, report is not None and report.ok),
        MeasuredClaim("a fork shares its history", branch, forked is not None and forked.shared),
    ]


def _of_booking(booked: Booked) -> list[MeasuredClaim]:
    held, without = booked.held, booked.without
    once, twice = len(held.did("book")), len(without.did("book"))
    between = all(_forced(each.killed) and each.booked_when_killed for each in (held, without))
    step, searches = booked.step("book"), len(held.did("search"))
    found = step.result["booking"] if step is not None and step.how == "probed" else ""
    return [
        MeasuredClaim(
            "killed after booking, before recording",
            f"{held.killed}, the step was {booked.left}",
            between and booked.left == "intended",
            seen=True,
        ),
        MeasuredClaim(
            "one booking, not two", f"{once} (without Holdfast: {twice})", (once, twice) == (1, 2), seen=True
        ),
        MeasuredClaim(
            "completed steps did not run again",
            f"{counted(searches, 'search', 'searches')} (without: {len(without.did('search'))})",
            searches == 1 and bool(held.after),
            seen=True,
        ),
        MeasuredClaim(
            "the probe asked the airline",
            f"{counted(len(held.did('look up')), 'question')}, {found or 'nothing'} found",
            bool(found) and [line["booking"] for line in held.did("book")] == [found],
            seen=True,
        ),
        MeasuredClaim(
            "the new agent recorded it",
            f"{held.has_after_ms:.0f} ms after it was started",
            held.has == found != "",
            seen=True,
        ),
    ]
