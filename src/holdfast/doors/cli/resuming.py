"""The command that continues runs, with functions from a module that you name.

What those functions print goes to standard error where the answer is JSON. Deliberately absent: which runs may be taken
and what becomes of them (the room ``steps`` decides), and starting any process.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from holdfast import Run, Store
from holdfast.doors import plain
from holdfast.doors.cli import exits, importing, locating, options, wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.runs import show_runs, style
from holdfast.errors import Invalid
from holdfast.steps.resume import Handler
from holdfast.types import Resumed

_WELL = {"done", "waiting", "cancelled", "held"}
_POLL_S = 0.5
_OUTCOME = len("interrupted")

Handlers = dict[str, Handler]


class _AtHand:
    """The run whose function was called last: who asks the process to exit does not say who it is."""

    def __init__(self, functions: Handlers) -> None:
        self.functions = {name: self._noting(name, function) for name, function in functions.items()}
        self._run: tuple[str, str, str] | None = None

    def _noting(self, name: str, function: Handler) -> Handler:
        def noting(run: Run) -> Any:
            self._run = run.thread.id, run.name, name
            return function(run)

        return noting

    def left(self, error: SystemExit) -> Resumed:
        """What became of the run whose function asked to exit."""
        if self._run is None:  # then it was not one of them
            raise error
        return Resumed(*self._run, "interrupted", error=f"SystemExit: {error.code}")


def resume(
    desk: Desk,
    run: options.MaybeRun = None,
    name: options.Named = None,
    handlers: options.HandlersAt = None,
    watch: options.Watch = False,
) -> int:
    """Continue runs that no process is working on.

    Use it after a crash, a signal or a submission. Your functions are called from their beginning, and completed steps
    return their recorded results. The module is looked for in the current directory too. Without --handlers the
    command lists the runs and does nothing. A run that failed or stopped is tried again only if you name it.

    \b
    Examples:
      holdfast resume
      holdfast resume --handlers myapp.work:HANDLERS
      holdfast resume trip-42/book --handlers myapp.work
      holdfast resume --handlers myapp.work --watch
    """
    if run is None and name is not None:
        raise Invalid("--run NAME needs its thread as the argument")
    if watch and (run is not None or handlers is None):
        raise Invalid("--watch continues every run: use it with --handlers, and without a RUN")
    with _beside(desk) as answering, desk.open() as store:
        if handlers is None:
            with answering():
                return _list(desk, store, run, name)
        functions = importing.handlers(handlers)
        if watch:
            return _watch(desk, store, functions, answering)
        return _carry_on(desk, store, functions, run, name, answering)


@contextmanager
def _beside(desk: Desk) -> Iterator[Callable[[], Any]]:
    """Keep what the caller's functions print out of a JSON answer; give what lets an answer of ours through."""
    if not desk.options.json:
        yield lambda: redirect_stdout(sys.stdout)
        return
    ours = sys.stdout
    with redirect_stdout(sys.stderr):
        yield lambda: redirect_stdout(ours)


# Without functions


def _list(desk: Desk, store: Store, run: str | None, name: str | None) -> int:
    """List the runs that can be continued."""
    found = store.due()
    if run is not None:
        there = locating.info(store, run, name)
        found = [info for info in found if (info.thread, info.name) == (there.thread, there.name)]

    def picture(screen: Screen) -> None:
        if not found:
            desk.note("Nothing to resume: no run is unfinished without a process working on it.")
            return
        show_runs(desk, screen, found)
        desk.note(f"{wording.counted(len(found), 'run')} can be continued: give --handlers MODULE:NAME.")

    desk.tell({"resumable": plain.plain(found)}, picture)
    return exits.OK


# With functions


def _carry_on(
    desk: Desk, store: Store, functions: Handlers, run: str | None, name: str | None, answering: Callable[[], Any]
) -> int:
    """Continue one run, or all, and report each as it ends; as JSON all at once, also when interrupted."""
    there = None if run is None else locating.info(store, run, name)
    named: dict[str, Any] = {} if there is None else {"thread": there.thread, "run": there.name}
    at_hand = _AtHand(functions)
    report: list[Resumed] = []

    def tell(each: Resumed) -> None:
        report.append(each)
        if not desk.options.json:
            _tell(desk.screen, each)
            sys.stdout.flush()

    def answer(*, interrupted: bool) -> None:
        if desk.options.json:
            with answering():
                desk.document({"resumed": plain.plain(report), "interrupted": interrupted})
                sys.stdout.flush()

    try:
        store.resume(at_hand.functions, **named, on_run=tell)
    except KeyboardInterrupt:
        desk.note("Interrupted. The current run stays as it is; you can resume it.")
        answer(interrupted=True)
        raise
    except SystemExit as error:
        _tell_exit(desk, at_hand.left(error), tell)
        answer(interrupted=True)
        return exits.UNFINISHED
    answer(interrupted=False)
    if run is None:
        desk.note(_summary(report))
    return exits.OK if all(each.outcome in _WELL for each in report) else exits.UNFINISHED


def _tell_exit(desk: Desk, left: Resumed, tell: Callable[[Resumed], None]) -> None:
    """Say whose function ended the command. Its exit code is not ours: it would mean something else."""
    tell(left)
    place = locating.written(left.thread, left.run)
    desk.note(
        f"The handler of run {place} asked to exit ({left.error}), so this ends here. You can resume the run; to end "
        "it, a handler returns or raises an error."
    )


def _tell(screen: Screen, each: Resumed) -> None:
    detail = each.error or ("" if each.result is None else wording.as_text(each.result))
    if each.outcome == "waiting":  # its run and thread stand beside it
        detail = "".join(detail.rpartition("waits for")[1:])
    place = locating.written(each.thread, each.run)
    if each.outcome in _WELL or not screen.terminal:
        detail = f"  {' '.join(detail.split())}" if detail else ""
        screen.cut((f"{each.outcome:<{_OUTCOME}}  ", style(each.outcome)), (place, "name"), (detail, "quiet"))
        return
    screen.cut((f"{each.outcome:<{_OUTCOME}}  ", style(each.outcome)), (place, "name"))
    screen.line(detail, indent=_OUTCOME + 2)


def _summary(report: list[Resumed]) -> str:
    if not report:
        return "Nothing to resume: no run is unfinished without a process working on it."
    counts = ", ".join(f"{number} {outcome}" for outcome, number in Counter(each.outcome for each in report).items())
    return f"{wording.counted(len(report), 'run')}: {counts}."


# As a worker


def _watch(desk: Desk, store: Store, functions: Handlers, answering: Callable[[], Any]) -> int:
    with answering():
        desk.live()
    count, at_hand = 0, _AtHand(functions)

    def tell(each: Resumed) -> None:
        nonlocal count
        count += 1
        with answering():
            if desk.options.json:
                desk.document(plain.plain(each), indent=None)
            else:
                _tell(desk.screen, each)

    desk.note("Working. Ctrl-C stops after the current run; press it again to leave that run for later.")
    try:
        with _stopping() as stop:
            store.work(at_hand.functions, stop=stop, poll_s=_POLL_S, on_run=tell)
    except SystemExit as error:
        _tell_exit(desk, at_hand.left(error), tell)
        return exits.UNFINISHED
    desk.note(f"Stopped after {wording.counted(count, 'run')}.")
    return exits.OK


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Give an event that the first request to stop sets; the second interrupts."""
    stop, asked = threading.Event(), 0

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise KeyboardInterrupt
        # Not here: this may interrupt the very wait that holds the lock which setting needs.
        threading.Thread(target=stop.set, name="stop", daemon=True).start()

    wanted = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in wanted}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
