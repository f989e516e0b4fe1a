"""Writing to a run under its fence: whatever belongs together in one commit, once, or not at all.

Every commit guards the fence. One whose outcome is unknown is looked for in the journal before it is tried again, and
what has happened already is recorded with patience while the store is away. Deliberately absent: what a step is.
``work`` stands on this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.contract import Append, Event, Mark, Op, Put, Receipt, Record, Scope
from holdfast.errors import Conflict, Erased, Fenced, OutcomeUnknown, RunEnded, Unavailable
from holdfast.ledger import log
from holdfast.records import Draft
from holdfast.steps.flow import Do, Flow, Nap
from holdfast.steps.journal import KIND, OWN, Header, Journal
from holdfast.steps.lease import Lease

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread
    from holdfast.steps.runs import Runs

_USUAL = ("completed", "failed", "done")
_PATIENCE = 6  # tries to record what has happened already, while the store is away


class Writing(msgspec.Struct):
    """What is committed to the thread together with events of a run, and what to do once it is."""

    ops: tuple[Op, ...]
    finish: Any


class Recording:
    """A run as one holder writes to it. ``lease`` is None when it can only be read."""

    def __init__(  # noqa: PLR0913 - all that makes up a run, each by name
        self,
        runs: Runs,
        thread: LedgerThread,
        id: str,
        header: Header,
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

    def time(self) -> int:
        return self.runs.core.clock.now()

    def record(
        self,
        events: tuple[Event, ...],
        *,
        drafts: Sequence[Draft] = (),
        turn: Writing | None = None,
        header: Header | None = None,
        more: tuple[Op, ...] = (),
        expect: int | None = None,
        time: int,
        insist: bool = False,
    ) -> Flow[Receipt | None]:
        """Commit events of this run, with whatever belongs to them, under the fence.

        None when a commit whose outcome was unknown turned out to have happened. ``insist`` keeps trying for a while
        when the store is away, because what is to be recorded has happened already.
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
        """What goes into the log. Of a run of Holdfast's own, the turn that it belongs to tells how it went."""
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
        """Commit once, though the store may be away or leave the outcome unknown; None when it had happened already."""
        since, expect, doubtful, tries = self.journal.head, given, False, 0
        while True:
            tries, conflict = tries + 1, None
            try:
                receipt: Receipt = yield Do(partial(self._commit, ops(expect), time))
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
                if given is None:  # it may still land late; then this one must not
                    expect = since if landed is None else self.journal.head
                elif landed is False and self.journal.head != given and conflict is None:
                    raise self._overtaken(given)
            if conflict is not None:
                yield from self._refuse_unless_ours(conflict, retried=doubtful and given is None)
                continue
            if tries >= _PATIENCE:
                raise self._unwritten(doubtful)
            yield Nap(min(2.0, 0.05 * 2**tries))

    def _refuse_unless_ours(self, conflict: Conflict | Erased, *, retried: bool) -> Flow[None]:
        """Raise what a conflict means, unless it only says that something came in before a retry of ours."""
        judged = yield Do(partial(self._judged, conflict))
        if not (retried and judged is conflict and conflict.facts.get("kind") == KIND):
            raise judged from conflict

    def _looked(self, events: tuple[Event, ...], since: int) -> Flow[bool | None]:
        """Whether a commit of unknown outcome is there; None when the store is away and does not say that either."""
        try:
            landed: bool = yield Do(partial(self._landed, events, since))
            return landed
        except Unavailable:
            return None

    def _unwritten(self, doubtful: bool) -> Unavailable:
        kind = OutcomeUnknown if doubtful else Unavailable
        return kind(
            f"the store was away for too long to record what run {self.header.name!r} did", run=self.header.name
        )

    def _fenced_ops(self, header: Header | None) -> tuple[Op, ...]:
        lease = self.lease
        if lease is None:
            raise RunEnded(f"run {self.header.name!r} is not held here")
        self.refuse_when_lost()
        if header is None:
            return (lease.guard(),)
        return (lease.guard(), Put(KIND, self.id, header.body(), self.version, self.scope, (header.status,)))

    def _commit(self, ops: tuple[Op, ...], time: int) -> Receipt:
        return self.runs.core.write(ops, time)

    def moved(self, header: Header | None) -> None:
        if header is not None:
            self.header = header
            self.version += 1
            # The fence of the lease stays as it was: whoever writes the header gives the lease up in the same commit,
            # and a renewal that the keeper had begun by then must not bring it back.

    def _learn(self, receipt: Receipt) -> Flow[None]:
        """Take in what was written; where others wrote before it, that too."""
        self.runs.heard = max(self.runs.heard, receipt.feed)
        stored = receipt.events[0]
        if stored and self.journal.behind(stored[0].position):
            yield Do(partial(self.catch_up, stored[0].position - 1))
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
            raise lease.fenced(Conflict(f"run {self.header.name!r} is another's", actual=record.version))

    def _landed(self, events: tuple[Event, ...], since: int) -> bool:
        """Whether a commit of which nobody knew the outcome is there. Others write the same only after taking over."""
        core = self.runs.core
        record = core.engine.get(core.tenant, KIND, self.id)
        if record is None:
            return False
        # Not only after what is known by now: another thread of this holder may have learnt of it already.
        found = core.engine.read(core.tenant, Mark(self.stream, record.head), after=since)
        self.journal.fold(found)
        mine = takewhile(lambda one: one.kind != "opened", found)
        there = {(one.kind, one.body) for one in mine}
        return bool(events) and all((one.kind, one.body) in there for one in events)

    def _overtaken(self, expect: int) -> Conflict:
        """What a caller is told that wanted to be the next to write to this run, when another was."""
        return Conflict(
            f"run {self.header.name!r} is at {self.journal.head}, not at the expected {expect}",
            kind=KIND, id=self.id, expected=expect, actual=self.journal.head,
        )  # fmt: skip

    def _judged(self, error: Conflict | Erased) -> Exception:
        """Whether a conflict means that this holder was taken over; if not, it is about something else."""
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
        """Hold the run no longer; what may be recorded now is nothing."""
        if self.lease is not None:
            if self.lease.id == self.id:
                self.runs.keeper.drop(self.lease)
            self.lease = None

    def refuse_when_lost(self) -> None:
        if self.lease is not None and self.lease.lost:
            raise Fenced(
                f"run {self.header.name!r} of thread {self.thread.id!r} {self.lease.lost}", run=self.header.name
            )
