"""A run drawn for a person: how it stands, its steps, what happened in order, and what can be done now.

It is drawn from the records alone, so a run that failed last year looks as it did then. Deliberately absent: what any
of it means (the room ``steps`` says it), and any writing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from holdfast.doors.cli import locating, wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Part, Screen
from holdfast.doors.cli.runs import show_resume, style
from holdfast.types import Moment, StepInfo, Timeline

_BAR = 20
_ROOM_FOR_BARS = 80
_ROOM_FOR_KEYS = 130
_KEY_BEGINS = 11
_LONGEST_NAME = 18
_LONGEST_VALUE = 400
_LONGEST_ASIDE = 60

_HOW = {
    "ran": ("ran", "good"), "probed": ("found by probe", "good"), "settled": ("settled", "good"),
    "skipped": ("skipped", "warn"), "signal": ("signal came", "good"), "timeout": ("no signal", "bad"),
    "subtask": ("subtask ran", "good"), "dropped": ("to be undone", "warn"),
}  # fmt: skip
_MARKS = {
    "intent": ("▸", "quiet"), "completed": ("✓", "good"), "failed": ("✗", "bad"), "probed": ("?", "person"),
    "resolved": ("→", "warn"), "settled": ("→", "warn"), "waiting": ("…", "person"), "signal": ("!", "person"),
    "cancel": ("✗", "warn"), "unstarted": ("○", "warn"),
}  # fmt: skip
_FRAME = '  File "'
_OURS = ("/holdfast/steps/", "/holdfast/aio/")
_LOUD = {"probed": "person", "resolved": "warn", "settled": "warn", "cancel": "warn"}
_ENDINGS = {"done": ("■", "good"), "failed": ("■", "bad"), "cancelled": ("■", "quiet")}


def show_timeline(desk: Desk, screen: Screen, story: Timeline, *, verbose: bool = False) -> None:
    """Show a run from its beginning to where it is."""
    _show_head(desk, screen, story)
    if story.error is not None:
        _show_error(screen, story, verbose)
    if story.steps:
        screen.blank()
        screen.line(("Steps", "title"))
        _show_steps(screen, story, verbose)
    screen.blank()
    screen.line(("What happened", "title"))
    _show_moments(screen, story, verbose)
    _show_advice(screen, story)


# How it stands


def _show_head(desk: Desk, screen: Screen, story: Timeline) -> None:
    run = story.run
    screen.line((locating.written(run.thread, run.name), "title"), "  ", (run.status, style(run.status)))
    began, last = _span(story)
    length = wording.took((last - began).total_seconds())
    length = f"took {length}" if run.status in _ENDINGS else f"{length} so far"
    claims = "" if run.claims <= 1 else f" · taken up {wording.counted(run.claims, 'time')}"
    screen.line(f"handler {run.handler} · {length}{claims}", indent=2)
    ago = f" ({wording.ago(began, desk.clock)})" if screen.terminal else ""
    screen.line((f"began {wording.stamp(began)}{ago}", "quiet"), indent=2)
    if run.holder:
        screen.line((f"held by {run.holder}", "quiet"), indent=2)
    for label, value in (("input", run.input), ("result", story.result)):
        if value is not None:
            screen.line((f"{label:<6}  ", "quiet"), _value(screen, value, _LONGEST_VALUE), indent=2)


def _span(story: Timeline) -> tuple[datetime, datetime]:
    times = [moment.time for moment in story.moments] or [story.run.started]
    return times[0], times[-1]


def _value(screen: Screen, value: Any, longest: int) -> str:
    """A value on one line; on a terminal a long one is left off in the middle of it."""
    text = wording.as_text(value)
    if not screen.terminal or len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text):,} characters; --json has all)"


def _show_error(screen: Screen, story: Timeline, verbose: bool) -> None:
    """What a run failed with: the step, how often it was tried, what it raised, and what that came from."""
    error = story.error or {}
    screen.blank()
    failed = [step for step in story.steps if step.standing == "failed"]
    for step in failed:
        tries = wording.counted(step.attempts, "attempt")
        screen.line(("Failed", "bad"), " in step ", (step.name, "name"), f" after {tries}")
        _show_raised(screen, step.error or error, verbose)
    if not failed:
        screen.line(("Failed", "bad"))
        _show_raised(screen, error, verbose)


def _show_raised(screen: Screen, error: dict[str, Any], verbose: bool) -> None:
    screen.line((str(error.get("type", "error")), "bad"), f": {error.get('message', '')}", indent=2)
    for cause in error.get("causes", ()):
        screen.line((f"from {cause.get('type', 'error')}: {cause.get('message', '')}", "quiet"), indent=2)
    if verbose:
        _show_traceback(screen, error, indent=2)


def _show_traceback(screen: Screen, error: dict[str, Any], indent: int) -> None:
    """Where an error was raised, without the frames of ours between the caller's program and its functions."""
    ours = False
    for line in str(error.get("traceback", "")).splitlines():
        if line.startswith(_FRAME):
            ours = any(room in line.replace("\\", "/") for room in _OURS)
        if not ours and line.strip("^~ "):
            screen.line((line, "quiet"), indent=indent)


# Its steps


def _show_steps(screen: Screen, story: Timeline, verbose: bool) -> None:
    bars = screen.terminal and screen.width >= _ROOM_FOR_BARS
    whole = not screen.terminal or screen.width >= _ROOM_FOR_KEYS
    columns = [
        Column("step", "name", fits=True),
        Column("effect", "quiet"),
        Column("ended"),
        Column("tries", right=True),
        Column("took", right=True),
        *([Column(" " * _BAR)] if bars else []),
        Column("key", "quiet", fits=not whole),
    ]
    rows = []
    for step in story.steps:
        said, colour = _standing(step, story)
        key = step.key if whole or not step.key else f"{step.key[:_KEY_BEGINS]}…"
        bar: list[Part] = [(_bar(step, story), colour)] if bars else []
        tries = str(step.attempts) if step.attempts else ""
        rows.append((step.name, step.effect, (said, colour), tries, _length(step), *bar, key))
    screen.table(columns, rows, indent=2)
    if verbose and not whole:
        screen.blank()
        screen.line(("Keys", "title"))
        keys = [(step.name, step.key) for step in story.steps if step.key]
        screen.table([Column("step", "name", fits=True), Column("key")], keys, indent=2)


def _standing(step: StepInfo, story: Timeline) -> tuple[str, str]:
    """How a step ended, or where it is, in a word or two."""
    if step.standing == "completed":
        return _HOW.get(step.how, (step.how, "good"))
    if step.standing == "failed":
        return "failed", "bad"
    if step.standing == "waiting":
        return "waits", "person"
    if story.run.status == "running":
        return "under way", "name"
    return ("in doubt" if step.effect == "once" else "cut off"), ("bad" if story.run.status == "stopped" else "warn")


def _length(step: StepInfo) -> str:
    return "" if step.seconds is None else wording.took(step.seconds)


def _bar(step: StepInfo, story: Timeline) -> str:
    """Where in the run's time a step lies, as a line in a column."""
    began, last = _span(story)
    whole = max((last - began).total_seconds(), 1e-9)
    start = (step.started - began).total_seconds() / whole
    end = ((step.ended or last) - began).total_seconds() / whole
    first = min(int(start * _BAR), _BAR - 1)
    return " " * first + "━" * max(1, round(end * _BAR) - first)


# What happened


def _show_moments(screen: Screen, story: Timeline, verbose: bool) -> None:
    began = _span(story)[0]
    offsets = [wording.took((moment.time - began).total_seconds()) for moment in story.moments]
    room = max(map(len, offsets), default=0)
    names = max((len(moment.step or "") for moment in story.moments), default=0)
    names = min(names, _LONGEST_NAME) if screen.terminal else names
    for offset, moment in zip(offsets, story.moments, strict=True):
        mark, colour = _mark(moment)
        shown = (mark, colour) if screen.terminal else (moment.kind, "")
        left: list[Part] = [(f"{offset:>{room}}", "quiet"), shown]
        widths = [room, 1 if screen.terminal else len("completed")]
        if names:
            left.append((moment.step or "", "name"))
            widths.append(names)
        said = (_text(moment, story), _LOUD.get(moment.kind, ""))
        screen.hanging(left, widths, said, (_aside(screen, moment), "quiet"), indent=2)
        if verbose and moment.facts.get("error") and not _is_told_above(moment):
            _show_traceback(screen, moment.facts["error"], indent=room + 5)


def _is_told_above(moment: Moment) -> bool:
    """Whether this is what the whole run failed with, which stands at the top."""
    return moment.kind == "ended" or bool(moment.facts.get("final"))


def _mark(moment: Moment) -> tuple[str, str]:
    if moment.kind == "ended":
        return _ENDINGS.get(str(moment.facts.get("status")), ("■", "warn"))
    return _MARKS.get(moment.kind, ("·", "quiet"))


def _text(moment: Moment, story: Timeline) -> str:
    """What a moment says. The end of a run that a step failed does not say once more what that step raised."""
    failed = any(step.standing == "failed" for step in story.steps)
    return "failed" if failed and moment.kind == "ended" and moment.facts.get("error") else moment.text


def _aside(screen: Screen, moment: Moment) -> str:
    """What came with a moment: a result, a value."""
    values = {"completed": "result", "signal": "value", "progress": "value", "ended": "result"}
    value = moment.facts.get(values.get(moment.kind, ""))
    return "" if value is None else f"  {_short(screen, value)}"


def _short(screen: Screen, value: Any) -> str:
    text = wording.as_text(value)
    return f"{text[:_LONGEST_ASIDE]}…" if screen.terminal and len(text) > _LONGEST_ASIDE else text


# What can be done


def _show_advice(screen: Screen, story: Timeline) -> None:
    run = story.run
    if run.status in ("running", "done", "cancelled"):
        return
    screen.blank()
    if run.status == "stopped":
        for step in _doubtful(story):
            _show_settling(screen, story, step)
        return
    if run.status == "waiting":
        place, name = locating.quoted(run.thread, run.name), shlex.quote(run.waits or "NAME")
        screen.line("It is waiting for ", (run.waits or "a signal", "name"), ". To send it:")
        screen.verbatim((f"holdfast signal {place} {name} VALUE", "name"), indent=2)
        return
    again = {"failed": "To try again:"}.get(run.status, "No process is working on it. To continue it:")
    screen.line(again)
    show_resume(screen, run)


def _doubtful(story: Timeline) -> Iterator[StepInfo]:
    return (step for step in story.steps if step.standing == "intended" and step.effect == "once")


def _show_settling(screen: Screen, story: Timeline, step: StepInfo) -> None:
    run = locating.quoted(story.run.thread, story.run.name)
    screen.line("It is unknown whether step ", (step.name, "name"), " happened. Look up its key in the outside system,")
    screen.verbatim((step.key, "title"), indent=2)
    screen.line("then say what you found:")
    settle = f"holdfast settle {run} {shlex.quote(step.name)}"
    screen.verbatim((f"{settle} --happened --result JSON", "name"), indent=2)
    screen.verbatim((f"{settle} --not-happened", "name"), indent=2)
