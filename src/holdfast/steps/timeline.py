"""A run as a person reads it: what ran, how long, what was probed, what was decided.

Everything comes from the journal, so yesterday's failed run reads the same today. Deliberately absent: colours
and columns; the doors draw those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from holdfast.clock import to_datetime
from holdfast.engine.codec import decode
from holdfast.engine.contract import Event, Record
from holdfast.steps.journal import Journal, StepRecord, peek_header
from holdfast.steps.step_context import describe_failure

STATUSES = ("submitted", "running", "interrupted", "waiting", "stopped", "done", "failed", "cancelled")


class RunInfo(msgspec.Struct, frozen=True):
    """What a listing says about a run.

    ``status`` is submitted (not taken yet), running, interrupted (no process works on it: ``store.resume`` continues
    it; in a fork, open it by name), waiting (for a signal), stopped (a person must settle a step), done, failed or
    cancelled.
    """

    thread: str
    name: str
    handler: str
    status: str
    input: Any
    holder: str
    claims: int
    waits: str | None
    started: datetime
    active: datetime

    @classmethod
    def of(cls, record: Record, held: bool) -> RunInfo:
        header = peek_header(record.body)
        status: str = header.status
        if status == "open":
            status = "running" if held else "interrupted" if header.claims else "submitted"
        return cls(
            header.thread, header.name, header.handler, status, header.input, header.holder if held else "",
            header.claims, header.waits, to_datetime(record.created), to_datetime(record.time),
        )  # fmt: skip


class StepInfo(msgspec.Struct, frozen=True):
    """The status of one step. ``standing`` is intended (started, its end not recorded), completed, failed or
    waiting; ``how`` says where a result came from: ran, probed, skipped, settled, signal, timeout or subtask."""

    name: str
    standing: str
    how: str
    effect: str
    attempts: int
    key: str
    started: datetime
    ended: datetime | None
    result: Any
    error: dict[str, Any] | None
    progress: Any

    @property
    def seconds(self) -> float | None:
        return None if self.ended is None else (self.ended - self.started).total_seconds()


class Moment(msgspec.Struct, frozen=True):
    """One event of a run: its time, its kind, its step, and a description."""

    number: int
    time: datetime
    kind: str
    step: str | None
    text: str
    facts: dict[str, Any]


class Timeline(msgspec.Struct, frozen=True):
    """A run from its start to its latest event."""

    run: RunInfo
    steps: tuple[StepInfo, ...]
    moments: tuple[Moment, ...]
    result: Any
    error: dict[str, Any] | None


def timeline(run: RunInfo, events: Iterable[Event]) -> Timeline:
    journal, moments = Journal(), []
    for event in events:
        journal.fold((event,))
        facts = decode(event.body)
        step = facts.get("step")
        moments.append(
            Moment(event.position, to_datetime(event.time), event.kind, step, _say(event.kind, facts), facts)
        )
    ended = journal.ended or {}
    steps = tuple(step_info(step) for step in journal.steps.values())
    return Timeline(run, steps, tuple(moments), ended.get("result"), ended.get("error"))


def step_info(step: StepRecord) -> StepInfo:
    return StepInfo(
        step.name, step.standing, step.how, step.effect, step.attempt, step.key, to_datetime(step.begun),
        to_datetime(step.ended) if step.ended else None, step.result, step.error, step.progress,
    )  # fmt: skip


def blocker(run: RunInfo, steps: Iterable[StepInfo]) -> str | None:
    """What blocks a run, in a sentence, or None."""
    if run.status == "waiting":
        return f"Run {run.name} waits for {run.waits}"
    if run.status == "stopped":
        doubtful = [step.name for step in steps if step.standing == "intended"]
        return f"Run {run.name}: nobody can say whether {', '.join(doubtful)} happened; settle it"
    if run.status == "failed":
        failed = [step for step in steps if step.standing == "failed" and step.error is not None]
        return f"Run {run.name} failed" + "".join(
            f": {step.name}: {describe_failure(step.error or {})}" for step in failed[-1:]
        )
    return None


def _say(kind: str, facts: dict[str, Any]) -> str:
    return _WORDS[kind](facts) if kind in _WORDS else kind


def _opened(facts: dict[str, Any]) -> str:
    words = {
        "new": "begun by", "submitted": "submitted by", "resumed": "taken up by", "reopened": "opened again by"
    }  # fmt: skip
    return f"{words.get(facts['why'], facts['why'])} {facts['by']}"


def _intent(facts: dict[str, Any]) -> str:
    again = f", attempt {facts['attempt']}" if facts["attempt"] > 1 else ""
    return f"intends to run ({facts['effect']}{again})"


def _completed(facts: dict[str, Any]) -> str:
    words = {
        "ran": "completed", "probed": "completed: the probe found it", "skipped": "skipped",
        "settled": "completed: a person said so", "signal": "the signal came",
        "timeout": "the signal did not come in time",
        "subtask": "the subtask ended", "dropped": "left as it was, to be undone",
    }  # fmt: skip
    text = words.get(facts["how"], facts["how"])
    return f"{text}; what it brought was not saved: {describe_failure(facts['error'])}" if facts.get("error") else text


def _failed(facts: dict[str, Any]) -> str:
    return f"{'failed' if facts['final'] else 'failed, to be tried again'}: {describe_failure(facts['error'])}"


def _ended(facts: dict[str, Any]) -> str:
    return (
        str(facts["status"]) if facts.get("error") is None else f"{facts['status']}: {describe_failure(facts['error'])}"
    )


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "opened": _opened,
    "intent": _intent,
    "progress": lambda facts: "recorded progress",
    "probed": lambda facts: f"asked the outside world: {facts['why']}",
    "resolved": lambda facts: f"decided: {facts['decision']} ({facts['why']})",
    "completed": _completed,
    "failed": _failed,
    "unstarted": lambda facts: "did not run",
    "waiting": lambda facts: "waits for a signal",
    "parked": lambda facts: "left to wait without a process",
    "signal": lambda facts: f"signal {facts['name']!r} from {facts['by']}",
    "cancel": lambda facts: (
        f"cancellation asked by {facts['by']}" + (f": {facts['reason']}" if facts["reason"] else "")
    ),
    "spent": lambda facts: "spent " + ", ".join(f"{amount:g} {what}" for what, amount in facts["amounts"].items()),
    "released": lambda facts: f"let go by {facts['by']}: {facts['why']}",
    "ended": _ended,
}
