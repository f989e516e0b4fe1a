"""Finding the runs that no process works on, and continuing them.

Every run that may be taken has a lease: one that has ended, whose holder is dead, or that never had a holder because
the run was submitted or its signal came. So one listing of leases finds all work. Deliberately absent: starting threads
or processes that the caller did not ask for, and giving up silently: each run considered is in the report.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.checks import LONGEST_S, check_function, is_seconds
from holdfast.errors import (
    Conflict,
    Corrupt,
    Fenced,
    Invalid,
    NotFound,
    RunEnded,
    StepError,
    StepUnknown,
    Unavailable,
    Unsupported,
    quoted,
)
from holdfast.ids import check_id
from holdfast.ledger.core import fetch
from holdfast.ledger.thread import check_count
from holdfast.steps import lifecycle
from holdfast.steps.flow import CallFunction, Flow
from holdfast.steps.journal import KIND, NOT_BEGUN
from holdfast.steps.lease import Terms, is_due
from holdfast.steps.lifecycle import Claim, claim, open_run, take
from holdfast.steps.run import Run, leaving
from holdfast.steps.step_context import Suspended, describe_failure, failure_to_plain, set_run
from holdfast.steps.work import Work

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread
    from holdfast.steps.runs import RunBook, RunView

Handler = Callable[..., Any]
Handlers = Mapping[str, Handler] | Iterable[Handler]
Outcome = Literal["done", "failed", "waiting", "stopped", "cancelled", "interrupted", "held", "lost", "no handler"]
FRUITLESS = 20
_MOST_AT_ONCE = 10
_SHARES = 20  # the most of what is due that one worker takes at once
_LONG_S = 1.0  # a batch should take no longer than this; what is not started by then is given back
_log = logging.getLogger(__name__)


class Resumed(msgspec.Struct, frozen=True):
    """The outcome of one run that ``resume`` considered."""

    thread: str
    run: str
    handler: str
    outcome: Outcome
    result: Any = None
    error: str = ""


Due = tuple[str, Terms]
Claimed = Generator[Work | Resumed, None, None]


def check_handlers(handlers: Any) -> dict[str, Handler]:
    """Handlers by name. Functions in a list go by their own names."""
    if not isinstance(handlers, Mapping):
        handlers = _by_their_names(handlers)
    for name, handler in handlers.items():
        if not isinstance(name, str):
            raise Invalid(f"give a handler by the name of its runs, not by {name!r}")
        if not callable(handler):
            raise Invalid(f"the handler {name!r} is {quoted(handler)}, which cannot be called")
    return dict(handlers)


def _by_their_names(handlers: Any) -> dict[str, Handler]:
    try:
        named = [(one.__name__, one) for one in handlers]
    except (TypeError, AttributeError):
        raise Invalid(f"handlers are functions by the name of their runs, not {quoted(handlers)}") from None
    if len(dict(named)) < len(named):
        raise Invalid("two handlers have the same name; give them by name, as {'book': book_flight, …}")
    return dict(named)


def find(runs: RunBook) -> list[Due]:
    """Runs that may be taken now, longest waiting first. Blocks."""
    now = runs.now()
    free = [(id, terms) for id, terms in runs.leases() if is_due(terms, now, runs.holder)]
    return sorted(free, key=lambda found: (found[1].until, found[0]))


class Resumer:
    """Continues the runs it finds, one after the other."""

    def __init__(
        self,
        runs: RunBook,
        handlers: Any,
        open_thread: Callable[[str], LedgerThread],
        first: Callable[[], None] = lambda: None,
    ) -> None:
        self._runs, self._handlers = runs, check_handlers(handlers)
        self._open_thread, self._first = open_thread, first
        self._pace = 1  # how many to take at once, from how long the last ones took
        self._begun: Work | None = None

    def taken(self, thread: str | None, run: str | None, limit: int | None) -> Claimed:
        """Take the named run, or all that may be taken, up to a limit. Blocks."""
        if (thread is None) != (run is None):
            raise Invalid("give both thread and run, or neither")
        if limit is not None:
            check_count("limit", limit)
        if thread is None or run is None:
            return self.claimed(limit)
        return self._only(check_id(thread, "thread id"), check_id(run, "run name"))

    def _only(self, thread: str, run: str) -> Claimed:
        work = self._named(thread, run)
        try:
            yield work
        finally:
            self._give_back(work)

    def _named(self, thread: str, run: str) -> Work:
        info = self._runs.info(thread, run)
        if info.handler not in self._handlers:
            known = ", ".join(map(repr, sorted(self._handlers))) or "none"
            raise Invalid(f"run {run!r} of thread {thread!r} needs handler {info.handler!r}; given: {known}", run=run)
        work = open_run(self._runs, self._open_thread(thread), run, None, None)
        if work.lease is None:
            raise RunEnded(f"run {run!r} of thread {thread!r} is {info.status}; there is nothing to resume", run=run)
        work.parks = True
        return work

    def claimed(self, limit: int | None = None) -> Claimed:
        """Take what may be taken, a few at a time if there are many, so that a fleet shares the work. Blocks."""
        self._first()  # also finish what else was left undone in the store
        due = deque(find(self._runs))
        most = max(1, min(_MOST_AT_ONCE, len(due) // _SHARES))
        left = len(due) if limit is None else limit  # counts continued runs only, not those merely reported
        while due and left > 0:
            left -= yield from self._some(due, min(most, left, self._pace))

    def _some(self, due: deque[Due], size: int) -> Generator[Work | Resumed, None, int]:
        """Take the next runs and yield them one by one; count those to continue. Runs not started are given back."""
        some = [due.popleft() for _ in range(min(size, len(due)))]
        taken, count = deque(zip(some, self._claim_some(some), strict=True)), 0
        since = monotonic()
        try:
            while taken and monotonic() - since <= _LONG_S:
                found = taken[0][1]
                count += isinstance(found, Work)
                yield found
                taken.popleft()  # the caller came back, so it is done with this run
        finally:
            for place, found in reversed(taken):
                due.appendleft(place)
                self._give_back(found)
        self._pace = 1 if monotonic() - since > _LONG_S else min(_MOST_AT_ONCE, 2 * self._pace)
        return count

    def _give_back(self, found: Work | Resumed) -> None:
        if isinstance(found, Resumed) or found is self._begun:
            return
        try:
            self._runs.drive(lifecycle.release(found, NOT_BEGUN))
        except Unavailable:
            found.let_go()  # its lease will run out

    def _claim_some(self, due: list[Due]) -> list[Work | Resumed]:
        """Take several in one commit; if that fails, one by one."""
        runs = self._runs
        wanted = [id for id, terms in due if terms.handler in self._handlers]
        records = fetch(runs.core.engine, runs.core.tenant, KIND, wanted)
        looks, now = runs.look(list(records.values())), runs.now()  # once for all: each is a query to a server
        prepared = [self._prepared(terms, looks.get(id), now) for id, terms in due]
        claims = [found for found in prepared if isinstance(found, Claim)]
        try:
            taken = iter(self._take(claims) if claims else ())
            return [next(taken) if isinstance(found, Claim) else found for found in prepared]
        except Conflict as error:
            if len(due) > 1:
                return [found for one in due for found in self._claim_some([one])]
            return [_left_alone(due[0][1], "held", str(error))]

    def _prepared(self, terms: Terms, look: RunView | None, now: int) -> Claim | Resumed:
        if terms.handler not in self._handlers:
            return _left_alone(terms, "no handler", _no_handler(terms))
        try:
            if look is None:
                raise NotFound(f"run {terms.run!r} of thread {terms.thread!r} is gone")
            return claim(self._runs, self._open_thread(terms.thread), look, "resumed", now, due=True)
        except (Conflict, NotFound) as error:
            return _left_alone(terms, "held", str(error))
        except (Unsupported, Corrupt) as error:  # recorded by newer code, or damaged: continue with the others
            return _left_alone(terms, "failed", describe_failure(failure_to_plain(error)))

    def _take(self, claims: list[Claim]) -> list[Work]:
        taken = take(self._runs, claims)
        for work in taken:
            work.parks = True
        return taken

    def handler_of(self, work: Work) -> Handler:
        return self._handlers[work.header.handler]

    def carry_on(self, work: Work, handle: Callable[[Work], Any]) -> Flow[Resumed]:
        """Call the handler of a held run, and end the run with its outcome."""
        header, self._begun = work.header, work

        def told(outcome: Outcome, result: Any = None, error: BaseException | None = None) -> Resumed:
            said = "" if error is None else describe_failure(failure_to_plain(error))
            return Resumed(header.thread, header.name, header.handler, outcome, result, said)

        try:
            if (given_up := fruitless(work)) is not None:
                yield from lifecycle.fail(work, given_up)  # also when cancelled: undoing may be what kills the process
                return told("failed", error=given_up)
            run = handle(work)
            call = CallFunction(
                self.handler_of(work), (run,), within=lambda: set_run(run), what=f"handler {header.handler!r}"
            )
            result = yield call
            if work.lease is None:
                return told(_status(work), (work.journal.ended or {}).get("result"))
            return told("done", (yield from lifecycle.finish(work, result)))
        except BaseException as error:
            ended, why = yield from _left(work, error)
            return told(ended, error=why)


def _left(work: Work, error: BaseException) -> Flow[tuple[Outcome, BaseException]]:
    """End or release a run whose handler raised; return its status, and why. A real interruption is raised again."""
    try:
        yield from leaving(work, error)
    except Fenced as trouble:
        return "lost", trouble
    except Unavailable:
        raise
    except Exception as trouble:  # undoing stopped or failed: continue with the other runs
        yield from lifecycle.release(work, str(trouble))  # does nothing if the run has ended
        return "stopped" if isinstance(trouble, StepUnknown) else _status(work), trouble
    if isinstance(error, Fenced):
        return "lost", error
    if isinstance(error, Suspended):
        return "waiting", error
    if isinstance(error, Unavailable):
        return "interrupted", error
    if not isinstance(error, Exception):
        raise error
    return _status(work), error


def _status(work: Work) -> Outcome:
    status: Any = work.header.status
    return "interrupted" if status == "open" else status


def fruitless(work: Work) -> StepError | None:
    """Fail a run after several claims without progress: it would kill every process that takes it, forever."""
    if work.journal.fruitless <= FRUITLESS:
        return None
    return StepError(
        f"run {work.header.name!r} of thread {work.thread.id!r} was resumed {work.journal.fruitless - 1} times "
        "without progress; open it by name to try once more",
        run=work.header.name, thread=work.thread.id,
    )  # fmt: skip


def _left_alone(terms: Terms, outcome: Outcome, why: str) -> Resumed:
    return Resumed(terms.thread, terms.run, terms.handler, outcome, error=why)


def _no_handler(terms: Terms) -> str:
    return (
        f"there is no handler {terms.handler!r}, so run {terms.run!r} of thread {terms.thread!r} is left as it is; "
        "give one, or cancel the run"
    )


class Shift:
    """What a worker does between finding a run and continuing it, whether it blocks or awaits."""

    def __init__(self, resumer: Resumer, poll_s: float, on_run: Callable[[Resumed], Any] | None) -> None:
        if not (is_seconds(poll_s) and poll_s > 0):
            raise Invalid(f"poll_s is a number of seconds over 0, at most {LONGEST_S:g}, not {quoted(poll_s)}")
        self.resumer, self.poll_s, self._on_run = resumer, poll_s, check_function("on_run", on_run)
        self.count, self.idle = 0, True
        self._told: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """Look for work once more. With none, the worker is ``idle`` and rests for ``poll_s``."""
        self.idle = True

    def note(self, outcome: Resumed) -> None:
        """Count a continued run, and report it."""
        self.count, self.idle = self.count + 1, False
        if self._on_run is not None:
            self._on_run(outcome)

    def mention(self, found: Resumed) -> None:
        """Warn once of a run that is left alone, unless another process holds it."""
        if found.outcome != "held" and (found.thread, found.run) not in self._told:
            self._told.add((found.thread, found.run))
            _log.warning("%s", found.error)

    def wait_for_the_store(self) -> None:
        _log.warning("the store is unavailable; trying again", exc_info=True)


def work_on(
    runs: RunBook,
    resumer: Resumer,
    *,
    stop: threading.Event,
    poll_s: float,
    on_run: Callable[[Resumed], Any] | None,
) -> int:
    """Continue runs until ``stop`` is set; return how many. Wait while the store is unavailable. Blocks."""
    shift = Shift(resumer, poll_s, on_run)
    while not stop.is_set():
        shift.begin()
        try:
            with closing(shift.resumer.claimed()) as claimed:
                for found in claimed:
                    if isinstance(found, Resumed):
                        shift.mention(found)
                        continue
                    shift.note(runs.drive(shift.resumer.carry_on(found, Run)))
                    if stop.is_set():
                        break
        except Unavailable:
            shift.wait_for_the_store()
        if shift.idle:
            stop.wait(poll_s)
    return shift.count
