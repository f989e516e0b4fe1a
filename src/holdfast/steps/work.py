"""A run being worked on: where it stands, the flows that carry out its steps, and writing to it under its fence.

A step goes: intent, committed; the function; completion, committed with the log entry and the state change it brings;
and only then the result. ``resolve`` settles what an earlier process left between the first two before anything runs
again. Every commit guards the fence. A commit with an unknown outcome is looked up in the journal before it is retried,
and facts that have already happened are retried patiently while the store is unavailable. Deliberately absent: how to
open and end a run (``lifecycle``), and blocking or awaiting: everything here is a flow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast import atfork
from holdfast.engine.contract import Append, Event, Mark, Op, Put, Receipt, Record, Scope
from holdfast.errors import (
    Cancelled,
    Conflict,
    Erased,
    Fenced,
    Invalid,
    KeyReused,
    NotSaved,
    OutcomeUnknown,
    ReplayDiverged,
    ResultInvalid,
    RunEnded,
    StepChanged,
    StepFailed,
    TooLarge,
    Unavailable,
)
from holdfast.ids import check_id
from holdfast.ledger import log, typed
from holdfast.ledger import schema as schemas
from holdfast.ledger import turn as turns
from holdfast.records import Draft
from holdfast.steps import budget, resolve
from holdfast.steps.declare import UNDO, Spec, Step, declare, fingerprint, key_of, refuse_async, refuse_calls
from holdfast.steps.flow import CallFunction, Flow, RunBlocking, Sleep
from holdfast.steps.journal import ENDED, KIND, OWN, Journal, RunHeader, StepRecord, check_room, fact
from holdfast.steps.lease import Lease
from holdfast.steps.step_context import (
    Attempt,
    Beginning,
    Ended,
    StepContext,
    describe_failure,
    entry,
    failure_to_plain,
    in_step,
    set_step,
)

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread
    from holdfast.steps.runs import RunBook


_USUAL = ("completed", "failed", "done")
_PATIENCE = 6  # tries to record what has already happened, while the store is unavailable


class RunWrite(msgspec.Struct):
    """What to commit to the thread with events of a run, and what to do afterwards."""

    ops: tuple[Op, ...]
    finish: Any


_log = logging.getLogger(__name__)
_REBASES = 1_000  # of many concurrent changes, one gets through at a time


class Work:
    """One run as one process works on it. ``lease`` is None if it can only be read."""

    def __init__(  # noqa: PLR0913 - all that makes up a run, each by name
        self,
        runs: RunBook,
        thread: LedgerThread,
        id: str,
        header: RunHeader,
        journal: Journal,
        *,
        stream: int,
        version: int,
        scope: Scope,
        lease: Lease | None = None,
        replaying: bool = False,
    ) -> None:
        self.runs, self.thread, self.id = runs, thread, id
        self.header, self.journal = header, journal
        self.stream, self.version, self.scope = stream, version, scope
        self.lease, self.replaying = lease, replaying
        self.root: Work = self
        self.specs: dict[str, Spec] = {}
        self.inputs: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self.visited: list[str] = []
        self.undoing = False
        self.subtask = ""
        self.budget: dict[str, float] = {}
        self.parks = False
        self.awaits = False
        self.children: list[Work] = []
        self.settled = False
        self._under_way: set[str] = set()
        self._counted: set[str] = set()
        self._lock = atfork.lock()

    def lasting(self, name: str, on: bool) -> None:
        """Note that the caller's function has started, or has really ended, even if nobody waits for it."""
        self.runs.note_busy((self.root.id, self.id, name), 1 if on else -1)

    def is_running(self, name: str) -> bool:
        """Whether a step's function still runs in this process, even if nobody waits for it."""
        return self.runs.is_busy(self.root.id, self.id, name)

    # Steps

    def step(
        self, name: str, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]
    ) -> Flow[Any]:
        """Carry out a step, or return its recorded result."""
        self.enter(check_id(name, "step name"))
        try:
            return (yield from self._step(name, fn, args, kwargs, options))
        finally:
            self.leave(name)

    def leave(self, name: str) -> None:
        self._under_way.discard(name)
        self._counted.discard(name)

    def counted(self) -> set[str]:
        """The steps that count against a budget: those recorded, and those about to be."""
        return {step.name for step in self.journal.all()} | self._counted

    def count(self, name: str, most: float) -> None:
        """Count a step before it is recorded, so that concurrent steps cannot exceed the budget."""
        with self._lock:
            if name not in self.counted() and len(self.counted()) + 1 > most:
                raise budget.exceeded(self, budget.STEPS)
            self._counted.add(name)

    def is_under_way(self, but: str | None = None) -> bool:
        """Whether anyone else waits for a step of this run."""
        return bool(self._under_way - {but}) or (self.root is self and any(w.is_under_way() for w in self.children))

    def enter(self, name: str) -> None:
        """Refuse a second call under a name while the first is under way: both would find nothing recorded."""
        with self._lock:
            if name in self._under_way:
                raise Invalid(
                    f"{name!r} of run {self.header.name!r} is already under way; give the second one another name",
                    step=name, run=self.header.name,
                )  # fmt: skip
            self._under_way.add(name)

    def _step(
        self, name: str, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]
    ) -> Flow[Any]:
        spec = declare(name, fn, options)
        self._refuse_undoing(spec)
        self.refuse_inside(f"step {name!r}")
        if not self.awaits:
            refuse_async(spec, fn)
        target = fn.fn if isinstance(fn, Step) else fn
        refuse_calls(spec, target, args, kwargs)
        input = fingerprint(name, args, kwargs)
        self.specs[name], self.inputs[name] = spec, (args, kwargs)
        self.visited.append(name)
        known = self.journal.steps.get(name)
        if known is not None and known.standing == "intended" and self.lease is not None:
            yield RunBlocking(self.catch_up)  # recorded while nobody waited for it
            known = self.journal.steps.get(name)
        if known is not None:
            refuse_other(known, "step")
            refuse_changed(self, known, input)
            if known.standing == "completed":
                self._refuse_unsaved(known)
                return self._recorded(spec, known)
            if known.standing == "failed":
                self._refuse_after_failure(known)
                raise self.failed(known)
        self.refuse_unless_open(f"step {name!r}")
        key = known.key if known is not None and known.key else key_of(self.runs.core.tenant, self.stream, name)
        attempt = Attempt(spec, target, args, kwargs, input, key)
        beginning: Beginning | Ended = Beginning()
        if known is not None:
            beginning = yield from resolve.in_doubt(self, attempt, known)
        if isinstance(beginning, Ended):
            return self.revived(spec, beginning.result)
        self.refuse_when_cancelled()
        budget.refuse_over(self, name)
        return (yield from self._try(attempt, beginning))

    def _refuse_unsaved(self, known: StepRecord) -> None:
        """A step recorded without the state or entries it saves fails the same way on every resume."""
        if known.error is not None:
            raise self._not_saved(known.name, known.result, known.error)

    def _not_saved(self, name: str, result: Any, error: dict[str, Any]) -> NotSaved:
        return NotSaved(
            f"step {name!r} of run {self.header.name!r} is done, but the state or entries it saves with its completion "
            f"were refused: {describe_failure(error)}",
            step=name, run=self.header.name, thread=self.thread.id, error=error, result=schemas.dump(result),
        )  # fmt: skip

    def _refuse_after_failure(self, failed: StepRecord) -> None:
        """A cancelled run stops at the step that failed, unless later steps must be declared to be undone."""
        later = [step for step in self.journal.to_undo() if step.position > failed.position]
        if all(step.name in self.visited for step in later):
            self.refuse_when_cancelled()

    def _try(self, attempt: Attempt, beginning: Beginning) -> Flow[Any]:
        """Run a step until it succeeds or its retries are used up."""
        while True:
            number = beginning.number + 1
            yield from self._intend(attempt, number, beginning)
            context = self._context(attempt, number)
            try:
                result = yield self.call(attempt, attempt.fn, attempt.spec.timeout_s, context)
            except (Fenced, Cancelled):
                raise
            except Exception as error:
                after = yield from resolve.failure_of(self, attempt, number, error)
                if isinstance(after, Ended):
                    return self.revived(attempt.spec, after.result)
                beginning = after
                continue
            finally:
                context.close()
            plain = yield from self._storable(attempt, number, result)
            yield from self.complete(attempt.spec, plain, number, "ran", context=context)
            return self.revived(attempt.spec, plain)

    def _intend(self, attempt: Attempt, number: int, beginning: Beginning) -> Flow[None]:
        """Commit the intent, and stop if the run was cancelled before it."""
        if self.root is not self:  # a cancellation is in the journal of the run, not of its subtask
            yield RunBlocking(self.root.catch_up)
            self.refuse_when_cancelled()
        spec, time = attempt.spec, self.time()
        intent = fact(
            "intent", time, step=spec.name, attempt=number, key=attempt.key, input=attempt.input, effect=spec.effect,
            on_unknown=spec.on_unknown, undo=spec.compensate is not None, by=self.runs.holder.name,
        )  # fmt: skip
        yield from self.record((*beginning.events, intent), drafts=beginning.drafts, time=time)
        if self.journal.cancel is not None and not self.undoing:
            yield from self.record((fact("unstarted", time, step=spec.name),), time=time)
            self.refuse_when_cancelled()

    def _context(self, attempt: Attempt, number: int) -> StepContext:
        known = self.journal.steps.get(attempt.spec.name)
        progress = None if known is None else known.progress
        name = attempt.spec.name

        def pulse(value: Any = None, *, progress: bool = False) -> None:
            self.pulse(fact("progress", self.time(), step=name, value=value) if progress else None)

        return StepContext(self.thread, self.header.name, name, attempt.key, number, progress, pulse)

    def call(self, attempt: Attempt, fn: Any, timeout_s: float | None, context: StepContext) -> CallFunction:
        """Ask for a call of the caller's function, with this step current and turns of the thread refused."""

        def within() -> None:
            set_step(context)
            turns.enter(self.runs.core, self.thread.id)

        name = attempt.spec.name
        what = f"step {name!r} of run {self.header.name!r}"
        lasting = partial(self.lasting, name) if fn is attempt.fn else None
        return CallFunction(fn, attempt.args, attempt.kwargs, timeout_s, within, what, lasting)

    def _storable(self, attempt: Attempt, number: int, result: Any) -> Flow[Any]:
        """The result as plain data. If it cannot be stored, the step is left in doubt, because it did happen."""
        try:
            return self.plain(attempt.spec, result)
        except ResultInvalid as error:
            time = self.time()
            facts = fact(
                "failed", time, step=attempt.spec.name, attempt=number, error=failure_to_plain(error), final=False
            )
            yield from self.record((facts,), time=time, insist=True)
            raise

    def plain(self, spec: Spec, result: Any) -> Any:
        try:
            plain = schemas.dump(result)
            check_room(plain, f"the result of step {spec.name!r}")
            self.revived(spec, plain)
        except Invalid as error:
            raise ResultInvalid(
                f"{error}; the step ran, but is not recorded as done: fix its result, and resume",
                step=spec.name, run=self.header.name,
            ) from error  # fmt: skip
        return plain

    def complete(
        self,
        spec: Spec,
        plain: Any,
        number: int,
        how: str,
        *,
        context: StepContext | None = None,
        events: tuple[Event, ...] = (),
        drafts: Sequence[Draft] = (),
    ) -> Flow[None]:
        """Commit the completion, with everything the step produced."""
        mine, saves = ([], False) if context is None else context.collected()
        given, drafts = drafts, [*drafts, *_entries(self, spec, plain, how)]
        time = self.time()
        facts = {"step": spec.name, "attempt": number, "result": plain, "how": how}
        trouble: Exception | None = None
        if context is not None and saves:
            trouble = yield from self._complete_with_state(context, facts, events, [*drafts, *mine], time)
            if trouble is None:
                return
            facts["error"] = failure_to_plain(trouble)
        try:
            yield from self.record(
                (*events, fact("completed", time, **facts)), drafts=[*drafts, *mine], time=time, insist=True
            )
        except (KeyReused, TooLarge) as error:  # its entries are refused, but the step has happened
            trouble, facts["error"] = error, failure_to_plain(error)
            completed = fact("completed", time, **facts)
            plainly = _entries(self, msgspec.structs.replace(spec, log=bool(spec.log)), plain, how)
            yield from self.record((*events, completed), drafts=[*given, *plainly], time=time, insist=True)
        if trouble is not None:
            raise self._not_saved(spec.name, plain, facts["error"]) from trouble

    def _complete_with_state(
        self, context: StepContext, facts: dict[str, Any], events: tuple[Event, ...], drafts: list[Draft], time: int
    ) -> Flow[Exception | None]:
        """Commit a completion with its state change; return what prevented that, since the step itself has happened."""
        trouble: Exception = Conflict(f"the state of thread {self.thread.id!r} keeps changing", thread=self.thread.id)
        for tries in range(_REBASES):
            try:
                turn = yield RunBlocking(partial(_writing, self.thread, drafts, context, time, tries > 0))
                completed = fact("completed", time, **facts)
                yield from self.record((*events, completed), turn=turn, time=time, insist=True)
                return None
            except (Fenced, Unavailable):
                raise
            except Exception as error:
                trouble = error
                if not (isinstance(error, Conflict) and context.rebased()):
                    break
        return trouble

    def _recorded(self, spec: Spec, known: StepRecord) -> Any:
        return self.revived(spec, schemas.dump(known.result))

    def revived(self, spec: Spec, plain: Any) -> Any:
        if spec.returns is None or plain is None:
            return plain
        try:
            return typed.from_plain(spec.returns, schemas.dump(plain))
        except typed.Misfit as misfit:
            raise ResultInvalid(
                f"the result of step {spec.name!r} does not fit {spec.returns.__name__}: {misfit}",
                step=spec.name, run=self.header.name,
            ) from misfit  # fmt: skip

    def failed(self, known: StepRecord) -> StepFailed:
        """The error of a failed step, the same when it happens and when it is read back."""
        error = known.error or {}
        return StepFailed(
            f"step {known.name!r} of run {self.header.name!r} failed: {describe_failure(error)}",
            step=known.name, run=self.header.name, thread=self.thread.id, attempts=known.attempt,
            type=error.get("type"), error=error, key=known.key,
        )  # fmt: skip

    # Heartbeats

    def pulse(self, progress: Event | None = None) -> None:
        """Renew the lease, record partial progress, and notice a cancellation. Blocks."""
        if self.lease is None:
            raise RunEnded(f"run {self.header.name!r} is not held here")
        try:
            if progress is not None:
                self.runs.drive(self.record((progress,), time=progress.time))
            else:
                self.lease.renew()
            self.root.catch_up()
        except Unavailable:
            if progress is not None:
                raise
            _log.warning("could not send a heartbeat for run %r: the store is unavailable", self.id, exc_info=True)
        self.refuse_when_cancelled()

    # Refusals

    def is_inside(self) -> bool:
        """Whether this code runs in a step of this run."""
        around = in_step()
        return around is not None and (around.thread.id, around.run) == (self.thread.id, self.header.name)

    def refuse_inside(self, what: str) -> None:
        """Refuse durable work inside a step or an open turn: it would be committed at the wrong time."""
        around = in_step()
        if around is not None and self.is_inside():
            raise Invalid(f"{what} inside step {around.name!r}: steps do not nest; use run.subtask", step=around.name)
        if turns.inside(self.runs.core, self.thread.id) and around is None:
            raise Invalid(f"{what} inside a turn of thread {self.thread.id!r}: end the turn first")
        if self.subtask:
            raise Invalid(f"{what}: subtask {self.subtask!r} has not ended", subtask=self.subtask)

    def refuse_unless_open(self, what: str) -> None:
        if self.replaying:
            self.refuse_when_cancelled()  # as it was then
            raise ReplayDiverged(
                f"{what} is not recorded in run {self.header.name!r}", run=self.header.name, thread=self.thread.id
            )
        if self.lease is None or self.header.status in ENDED:
            raise RunEnded(
                f"run {self.header.name!r} of thread {self.thread.id!r} is {self.header.status}; {what} is not "
                "recorded in it and cannot be added",
                thread=self.thread.id, run=self.header.name, status=self.header.status,
            )  # fmt: skip

    def refuse_when_cancelled(self) -> None:
        run, cancel = self.root, self.root.journal.cancel
        if cancel is not None and not run.undoing:
            why = f": {cancel['reason']}" if cancel.get("reason") else ""
            raise Cancelled(
                f"run {run.header.name!r} of thread {run.thread.id!r} was cancelled{why}",
                run=run.header.name, thread=run.thread.id, reason=cancel.get("reason", ""), by=cancel.get("by", ""),
            )  # fmt: skip

    def _refuse_undoing(self, spec: Spec) -> None:
        """Refuse a step that could not be undone, or whose name would clash with undoing."""
        if spec.name.endswith(UNDO) and not self.undoing:
            raise Invalid(f"step {spec.name!r}: names that end in {UNDO!r} are reserved for undoing", step=spec.name)
        if spec.compensate is not None and self.root is not self:
            raise Invalid(
                f"step {spec.name!r}: a step of a subtask cannot be undone, because a subtask that has ended is "
                "not run through again; make it a step of the run itself",
                step=spec.name,
            )

    # Writing

    def time(self) -> int:
        return self.runs.core.clock.now()

    def record(
        self,
        events: tuple[Event, ...],
        *,
        drafts: Sequence[Draft] = (),
        turn: RunWrite | None = None,
        header: RunHeader | None = None,
        more: tuple[Op, ...] = (),
        expect: int | None = None,
        time: int,
        insist: bool = False,
    ) -> Flow[Receipt | None]:
        """Commit events of this run, with whatever belongs to them, under the fence.

        None if a commit with an unknown outcome turned out to have happened. ``insist`` keeps trying for a while when
        the store is unavailable, because the facts have already happened.
        """
        before = self._fenced_ops(header)
        entries: tuple[Op, ...] = ()
        if turn is not None:
            entries = turn.ops
        elif drafts := self._worth_telling(drafts):
            new = tuple(log.to_event(draft, time) for draft in drafts)
            entries = (Append("thread", self.thread.id, new, new=self.thread.logbook.new),)
        receipt = yield from self._write(
            lambda expect: (*before, Append(KIND, self.id, events, expect), *entries, *more),
            events, expect, time, insist=insist,
        )  # fmt: skip
        if receipt is not None:
            yield from self._learn(receipt)
            if turn is not None:
                turn.finish(Receipt(receipt.feed, receipt.time, receipt.events[1:], receipt.heads[1:]))
        self.moved(header)
        return receipt

    def _worth_telling(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        """What goes into the log. Holdfast's own runs log nothing here: their turn records how they went."""
        if not self.header.handler.startswith(OWN):
            return drafts
        return [draft for draft in drafts if draft.kind != "event" or draft.content.get("outcome") not in _USUAL]

    def _write(
        self,
        ops: Callable[[int | None], tuple[Op, ...]],
        events: tuple[Event, ...],
        given: int | None,
        time: int,
        *,
        insist: bool,
    ) -> Flow[Receipt | None]:
        """Commit once, even if the store is unavailable or the outcome unknown; None if it had already happened."""
        since, expect, doubtful, tries = self.journal.head, given, False, 0
        while True:
            tries, conflict = tries + 1, None
            try:
                receipt: Receipt = yield RunBlocking(partial(self._commit, ops(expect), time))
                return receipt
            except OutcomeUnknown:
                doubtful = True
            except Unavailable:
                if not insist and not doubtful:
                    raise
            except (Conflict, Erased) as error:
                conflict = error
            if doubtful:
                landed = yield from self._looked(events, since)
                if landed:
                    return None
                if given is None:  # it may still land late; then this one must not land
                    expect = since if landed is None else self.journal.head
                elif landed is False and self.journal.head != given and conflict is None:
                    raise self._overtaken(given)
            if conflict is not None:
                yield from self._refuse_unless_ours(conflict, retried=doubtful and given is None)
                continue
            if tries >= _PATIENCE:
                raise self._unwritten(doubtful)
            yield Sleep(min(2.0, 0.05 * 2**tries))

    def _refuse_unless_ours(self, conflict: Conflict | Erased, *, retried: bool) -> Flow[None]:
        """Raise what a conflict means, unless something was merely recorded before our retry."""
        judged = yield RunBlocking(partial(self.judged, conflict))
        if not (retried and judged is conflict and conflict.facts.get("kind") == KIND):
            raise judged from conflict

    def _looked(self, events: tuple[Event, ...], since: int) -> Flow[bool | None]:
        """Whether a commit with an unknown outcome happened; None if the store is still unavailable."""
        try:
            landed: bool = yield RunBlocking(partial(self._landed, events, since))
            return landed
        except Unavailable:
            return None

    def _unwritten(self, doubtful: bool) -> Unavailable:
        kind = OutcomeUnknown if doubtful else Unavailable
        return kind(
            f"the store was unavailable for too long to record what run {self.header.name!r} did", run=self.header.name
        )

    def _fenced_ops(self, header: RunHeader | None) -> tuple[Op, ...]:
        lease = self.lease
        if lease is None:
            raise RunEnded(f"run {self.header.name!r} is not held here")
        self.refuse_when_lost()
        if header is None:
            return (lease.guard(),)
        return (lease.guard(), Put(KIND, self.id, header.body(), self.version, self.scope, (header.status,)))

    def _commit(self, ops: tuple[Op, ...], time: int) -> Receipt:
        return self.runs.core.write(ops, time)

    def moved(self, header: RunHeader | None) -> None:
        if header is not None:
            self.header = header
            self.version += 1
            # The fence of the lease stays as it was: writing the header gives up the lease in the same commit, and a
            # renewal already under way in the renewer must not bring it back.

    def _learn(self, receipt: Receipt) -> Flow[None]:
        """Add what was written to the journal; also what others wrote before it."""
        self.runs.heard = max(self.runs.heard, receipt.feed)
        stored = receipt.events[0]
        if stored and self.journal.behind(stored[0].position):
            yield RunBlocking(partial(self.catch_up, stored[0].position - 1))
        self.journal.fold(stored)

    def catch_up(self, upto: int | None = None) -> None:
        """Read what others appended to this run. Blocks."""
        core = self.runs.core
        if upto is None:
            record = core.engine.get(core.tenant, KIND, self.id)
            if record is None and self.lease is not None:
                raise self.lease.fenced(Erased("gone"))
            self._refuse_taken(record)
            upto = self.journal.head if record is None else record.head
        if upto > self.journal.head:
            self.journal.fold(core.engine.read(core.tenant, Mark(self.stream, upto), after=self.journal.head))

    def _refuse_taken(self, record: Record | None) -> None:
        lease = self.lease
        if lease is None or record is None or lease.id != self.id:
            return
        if (record.version, record.stream) != (lease.version, lease.stream):
            raise lease.fenced(Conflict(f"another process holds run {self.header.name!r}", actual=record.version))

    def _landed(self, events: tuple[Event, ...], since: int) -> bool:
        """Whether a commit with an unknown outcome happened. Others write the same only after taking over."""
        core = self.runs.core
        record = core.engine.get(core.tenant, KIND, self.id)
        if record is None:
            return False
        # Also before what is known by now: another thread of this holder may already have read it.
        found = core.engine.read(core.tenant, Mark(self.stream, record.head), after=since)
        self.journal.fold(found)
        mine = takewhile(lambda one: one.kind != "opened", found)
        there = {(one.kind, one.body) for one in mine}
        return bool(events) and all((one.kind, one.body) in there for one in events)

    def _overtaken(self, expect: int) -> Conflict:
        """The error for a caller that expected to write next to this run, when another one did."""
        return Conflict(
            f"run {self.header.name!r} is at {self.journal.head}, not at the expected {expect}",
            kind=KIND, id=self.id, expected=expect, actual=self.journal.head,
        )  # fmt: skip

    def judged(self, error: Conflict | Erased) -> Exception:
        """Whether a conflict means that this holder was taken over, and not something else."""
        if self.lease is None:
            return error
        if isinstance(error, Erased) and error.facts.get("kind") != KIND:
            return self.lease.fenced(error)
        if error.facts.get("kind") != KIND:
            return error
        core = self.runs.core
        record = core.engine.get(core.tenant, KIND, self.lease.id)
        if record is not None and (record.version, record.stream) == (self.lease.version, self.lease.stream):
            return error
        return self.lease.fenced(error if record is not None else Erased("gone"))

    def let_go(self) -> None:
        """Stop holding the run; nothing can be recorded from now on."""
        if self.lease is not None:
            if self.lease.id == self.id:
                self.runs.renewer.drop(self.lease)
            self.lease = None

    def refuse_when_lost(self) -> None:
        if self.lease is not None and self.lease.lost:
            raise Fenced(
                f"run {self.header.name!r} of thread {self.thread.id!r} {self.lease.lost}", run=self.header.name
            )


def _writing(thread: LedgerThread, drafts: Sequence[Draft], context: StepContext, time: int, again: bool) -> RunWrite:
    """The operations that go into a step's completion. Blocks: it may read the revision it is based on."""
    book, given = thread.statebook, context.saving(again)
    saving = book.saving(**given, time=time)
    append = thread.logbook.append(list(drafts), time, None, whole=False)
    finish = book.unseen(saving, given["base"]) if context.rebased() else saving.finish
    return RunWrite((*saving.before, append, *saving.ops), finish)


def refuse_other(known: StepRecord, wanted: str) -> None:
    """Refuse a name already used for something else in this run: a step, a wait, a subtask."""
    there = {"": "wait", "subtask": "subtask"}.get(known.effect, "step")
    if there != wanted:
        raise Invalid(
            f"{known.name!r} is already the name of a {there} of this run; give the {wanted} another", name=known.name
        )


def refuse_changed(work: Work, known: StepRecord, input: str) -> None:
    if known.input and known.input != input:
        raise StepChanged(
            f"step {known.name!r} of run {work.header.name!r} is recorded with other input; use another name",
            step=known.name, run=work.header.name, thread=work.thread.id, recorded=known.input, given=input,
        )  # fmt: skip


def _entries(work: Work, spec: Spec, plain: Any, how: str) -> list[Draft]:
    """The log entry for a completion: as the step declared it, otherwise one plain line."""
    outcome = {"ran": "completed", "probed": "completed", "settled": "completed"}.get(how, how)
    if callable(spec.log):
        try:
            made = spec.log(work.revived(spec, schemas.dump(plain)))
            made = [] if made is None else list(made) if isinstance(made, list | tuple) else [made]
            return [log.copied(draft) for draft in log.drafts(made, "message", None)] if made else []
        except Exception as error:  # the step has happened; its log entry must not undo that
            return [entry(work, spec.name, outcome, log_error=describe_failure(failure_to_plain(error)))]
    return [entry(work, spec.name, outcome)] if spec.log else []
