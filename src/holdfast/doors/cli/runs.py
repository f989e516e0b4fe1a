"""Commands about runs from outside: list them, cancel one, give one what it waits for, settle a step of one.

None of them calls a function of the program that works on the run. Deliberately absent: carrying a run on
(``resuming``), and its story (``timeline``).
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from holdfast import Store
from holdfast.doors import plain
from holdfast.doors.cli import exits, locating, options, wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Part, Screen
from holdfast.errors import Invalid, NotFound, RunEnded
from holdfast.types import RunInfo, StepInfo

_STYLES = {
    "running": "name", "interrupted": "warn", "waiting": "person", "stopped": "bad", "done": "good", "failed": "bad",
    "cancelled": "quiet",
}  # fmt: skip
_ROOM_FOR_REMARKS = 80
_BEGINS_JSON = ("{", "[", '"')


def style(status: str) -> str:
    """The style of a run that is, or ended, like this."""
    return _STYLES.get(status, "warn")


def runs(
    desk: Desk,
    thread: options.OfThread = None,
    user: options.OfUser = None,
    agent: options.OfAgent = None,
    status: options.OfStatus = None,
    limit: options.AtMost = 100,
) -> None:
    """List runs, latest activity first.

    \b
    Examples:
      holdfast runs
      holdfast runs --status interrupted
      holdfast runs --thread trip-42 --json
    """
    with desk.open() as store:
        if thread is not None:
            store.thread(thread).info()  # a thread that is not there is an error, not one without runs
        found = store.runs(thread=thread, user=user, agent=agent, status=status, limit=limit or None)
    chosen = any(each is not None for each in (thread, user, agent, status))

    def picture(screen: Screen) -> None:
        if found:
            show_runs(desk, screen, found)
        elif chosen:
            desk.note("No such runs.")
        else:
            desk.note("No runs yet. A program starts one with thread.run(NAME), or hands it to a worker with submit.")

    desk.tell({"runs": plain.plain(found)}, picture)
    if limit and len(found) == limit:
        desk.note(f"These are the first {limit}; there may be more (--limit 0 lists all).")


def show_runs(desk: Desk, screen: Screen, found: list[RunInfo]) -> None:
    """Show runs as a table. A terminal has no room to spare for columns that say nothing."""
    handlers = not screen.terminal or any(each.handler != each.name for each in found)
    remarks = not screen.terminal or (screen.width >= _ROOM_FOR_REMARKS and any(map(_remark, found)))
    columns = [
        Column("run", "name", fits=True),
        Column("status"),
        *([Column("handler", fits=True)] if handlers else []),
        Column("last active"),
        *([Column("note", "quiet", fits=True)] if remarks else []),
    ]
    rows: list[list[Part]] = []
    for each in found:
        handler = [each.handler] if handlers else []
        remark = [_remark(each)] if remarks else []
        status = (each.status, style(each.status))
        rows.append([locating.written(each.thread, each.name), status, *handler, desk.when(each.active), *remark])
    screen.table(columns, rows)


def _remark(each: RunInfo) -> str:
    if each.holder:
        return f"held by {each.holder}"
    if each.waits:
        return f"waits for {each.waits}"
    return "settle a step" if each.status == "stopped" else ""


# Changing one from outside


def cancel(
    desk: Desk,
    run: options.RunPlace,
    name: options.Named = None,
    reason: options.Reason = "",
    by: options.By = "command",
) -> None:
    """Ask a run to stop, and to undo what it did.

    The process that works on it stops before its next step. Undoing needs the code of the run: that process does it,
    or the next one that resumes the run.

    \b
    Examples:
      holdfast cancel trip-42/book --reason "the trip is off"
    """
    with desk.open() as store:
        there = locating.info(store, run, name)
        after = store.thread(there.thread).cancel(there.name, reason=reason, by=by)
    desk.tell({"run": plain.plain(after)}, lambda screen: _show_cancel(screen, after))


def _show_cancel(screen: Screen, after: RunInfo) -> None:
    run = locating.written(after.thread, after.name)
    if after.status == "cancelled":
        screen.line("Run ", (run, "name"), " is cancelled. There was nothing to undo.")
    elif after.status == "running":
        screen.line("Run ", (run, "name"), f" will stop: {after.holder} stops before its next step.")
    else:
        screen.line("Run ", (run, "name"), " will stop. The process that resumes it undoes what it did:")
        show_resume(screen, after)


def show_resume(screen: Screen, run: RunInfo) -> None:
    """Show how to continue a run."""
    place = locating.quoted(run.thread, run.name)
    screen.line("Start your program again, or carry it on from here with the functions of a module:", indent=2)
    screen.verbatim((f"holdfast resume {place} --handlers MODULE:NAME", "name"), indent=2)


def signal_(
    desk: Desk,
    run: options.RunPlace,
    signal: options.SignalName,
    value: options.SignalValue = None,
    name: options.Named = None,
    text: options.AsText = False,
    by: options.By = "command",
) -> int:
    """Give a run what it waits for.

    The first signal of a name counts. A later one with another value changes nothing and ends with exit code 4.

    \b
    Examples:
      holdfast signal trip-42/book approval true --by ana
      holdfast signal trip-42/book choice '{"flight": "TP 533"}'
      holdfast signal trip-42/book change -- -5
    """
    given = value if text or value is None else _value(value)
    with desk.open() as store:
        there = locating.info(store, run, name)
        sent = store.thread(there.thread).signal(signal, given, run=there.name, by=by)

    def picture(screen: Screen) -> None:
        place = (locating.written(sent.thread, sent.run), "name")
        if not sent.first:
            screen.line("Run ", place, f" had its {signal!r} already: {wording.as_text(sent.value)}")
            return
        screen.line("Run ", place, f" has its {signal!r}: {wording.as_text(sent.value)}")
        if there.status != "running" and (sent.awaited or there.status != "waiting"):
            screen.line("No process is working on it. To continue it:")
            show_resume(screen, there)

    desk.tell(plain.plain(sent), picture)
    if sent.first and not sent.awaited:
        waits = f" (it is waiting for {there.waits!r})" if there.waits else ""
        desk.note(f"The run is not waiting for {signal!r} now{waits}; the value is stored until it does.")
    return exits.OK if sent.first or sent.value == given else exits.CONFLICT


def _value(text: str) -> Any:
    """JSON where it is JSON; text where it cannot have been meant as JSON."""
    try:
        return _json(text)
    except ValueError as error:
        if not text.lstrip().startswith(_BEGINS_JSON):
            return text
        raise Invalid(f"VALUE looks like JSON but is not valid: {error}; use --text to send it as text") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise Invalid("the JSON is nested too deeply to be stored") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def settle(
    desk: Desk,
    run: options.RunPlace,
    step: options.StepName,
    name: options.Named = None,
    happened: options.Happened = None,
    result: options.StepResult = None,
) -> None:
    """Say whether a step in doubt happened.

    For a run that stopped because no one could tell. Look up the step's key (show prints it) in the outside system and
    say what you found. Holdfast records it, and you can resume the run.

    \b
    Examples:
      holdfast settle trip-42/book charge --happened --result '{"receipt": "R-7"}'
      holdfast settle trip-42/book charge --not-happened
    """
    outcome = _outcome(happened, result)
    with desk.open() as store:
        there = _refuse_settled(store, locating.info(store, run, name), step)
        held = store.thread(there.thread).run(there.name)
        try:
            held.settle(step, happened=bool(happened), result=outcome)
        finally:
            held.release("a person settled a step")
        after = store.thread(there.thread).timeline(there.name).run
    said = {"step": step, "happened": happened, "result": outcome, "run": plain.plain(after)}
    desk.tell(said, lambda screen: _show_settled(screen, after, step, bool(happened), outcome))


def _outcome(happened: bool | None, result: str | None) -> Any:
    if happened is None:
        raise Invalid("say what you found: --happened or --not-happened")
    if result is None:
        return None
    if not happened:
        raise Invalid("a step that did not happen has no result: use --result only with --happened")
    try:
        return _json(result)
    except ValueError as error:
        raise Invalid(f"--result is not JSON: {error}; put text in double quotes, as in '\"R-7\"'") from None


def _refuse_settled(store: Store, there: RunInfo, step: str) -> RunInfo:
    """Find out what cannot be settled before the run is opened: opening one that ended would begin it again."""
    place = locating.written(there.thread, there.name)
    if there.status in ("done", "cancelled"):
        raise RunEnded(f"run {place!r} is {there.status}; there is nothing to settle", run=there.name)
    steps = {each.name: each for each in store.thread(there.thread).timeline(there.name).steps}
    if step not in steps:
        doubtful = ", ".join(repr(each.name) for each in steps.values() if _in_doubt(each))
        known = f"; in doubt: {doubtful}" if doubtful else "; none of its steps is in doubt"
        raise NotFound(f"run {place!r} has no step {step!r}{known}", run=there.name, step=step)
    if steps[step].standing == "waiting":
        raise Invalid(f"step {step!r} is waiting for a signal: send it with holdfast signal", run=there.name, step=step)
    if not _in_doubt(steps[step]):
        raise Invalid(f"step {step!r} of run {place!r} is completed; there is nothing to settle", step=step)
    return there


def _in_doubt(step: StepInfo) -> bool:
    return step.standing in ("intended", "failed")


def _show_settled(screen: Screen, after: RunInfo, step: str, happened: bool, outcome: Any) -> None:
    place = (locating.written(after.thread, after.name), "name")
    if happened:
        screen.line("Step ", (step, "name"), " of ", place, f" is completed, with result {wording.as_text(outcome)}.")
    else:
        screen.line("Step ", (step, "name"), " of ", place, " did not happen; it will run.")
    screen.line("To continue the run:")
    show_resume(screen, after)
