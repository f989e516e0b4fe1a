"""What the demonstration measured, and what it claims about it.

Deliberately absent: measuring, and telling. A claim holds or does not by what is in ``Played`` alone.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from holdfast.records import Report


class Killed(msgspec.Struct, frozen=True):
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


class Claim(msgspec.Struct, frozen=True):
    """Something the demonstration says, and whether it was so in this run."""

    claim: str
    measured: str
    holds: bool


class Played(msgspec.Struct):
    """Everything that was measured, in the order in which it was."""

    database: str
    thread: str
    acknowledged: list[dict[str, Any]] = []
    checkpoint: dict[str, Any] = {}
    killed: Killed | None = None
    knew: dict[str, Any] = {}
    knew_after_ms: float = 0.0
    afterwards: list[dict[str, Any]] = []
    final: dict[str, Any] = {}
    numbers: list[int] = []
    verified: Report | None = None
    verify_ms: float = 0.0
    forked: Forked | None = None


def claims(played: Played) -> list[Claim]:
    """Hold what was measured against what is said about it."""
    return [*_of_survival(played), *_of_knowledge(played), *_of_order(played)]


def _of_survival(played: Played) -> list[Claim]:
    said: list[str] = [event["turn"] for event in played.acknowledged]
    found: list[str] = played.knew.get("turns", [])
    last: dict[str, Any] = played.acknowledged[-1] if played.acknowledged else {"entries": 0, "digest": ""}
    beyond = played.knew.get("entries", 0) - last["entries"]
    killed = played.killed
    forced = killed is not None and (killed.signal == "SIGKILL" or os.name == "nt")  # Windows has no signals
    return [
        Claim("the agent was killed, not asked", killed.signal if killed else "it was not", forced),
        Claim(
            "every acknowledged turn is there",
            f"{len(said)} acknowledged, {len(found)} found",
            bool(said) and said == found,
        ),
        Claim(
            "the last one is as it was",
            f"entry {last['entries']}, digest {last['digest'][:12]}",
            bool(said) and last["digest"] == played.knew.get("digest"),
        ),
        Claim(
            "the turn it died in left nothing", f"{beyond} entries beyond that", forced and bool(said) and beyond == 0
        ),
    ]


def _of_knowledge(played: Played) -> list[Claim]:
    name = played.knew.get("state", {}).get("user_preferences", {}).get("name", "nobody")
    verify = played.knew.get("must_verify", [])
    took = played.knew.get("open_ms", 0.0) + played.knew.get("load_ms", 0.0)
    status = (played.final.get("active_task") or {}).get("status", "no task")
    issues = played.final.get("unresolved_issues", ["unknown"])
    return [
        Claim("the new process knew whom it talks to", f"{name}, after {took:.0f} ms", name in _greeting(played)),
        Claim("it saw which facts had grown old", f"{len(verify)} to verify before acting", bool(verify)),
        Claim("it finished the task", f"{status}, {len(issues)} issues open", status == "done" and not issues),
    ]


def _greeting(played: Played) -> str:
    return str(played.afterwards[0]["answers"]) if played.afterwards else ""


def _of_order(played: Played) -> list[Claim]:
    whole = played.numbers == list(range(1, len(played.numbers) + 1))
    report, forked = played.verified, played.forked
    looked = f"{report.entries} entries, {len(report.problems)} problems, {played.verify_ms:.0f} ms" if report else "no"
    branch = f"{forked.entries} entries shared in {forked.fork_ms:.1f} ms" if forked else "no fork"
    return [
        Claim("the log has no gap", f"1 to {len(played.numbers)}", whole and bool(played.numbers)),
        Claim("every digest and count agrees", looked, report is not None and report.ok),
        Claim("a fork shares its past", branch, forked is not None and forked.shared),
    ]
