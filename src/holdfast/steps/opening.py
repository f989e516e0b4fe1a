"""How a process comes to hold a run: it begins one, or takes up one that nobody holds.

Claiming writes the run's record at the version that was read, so of many who try only one gets through, and its version
is the fence from then on. Deliberately absent: carrying a run out (``work``), and looking for runs to take
(``resume``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from holdfast.clock import to_datetime
from holdfast.engine.contract import Append, Event, Guard, Op, Put, Record, Scope
from holdfast.errors import Conflict, Invalid, RunHeld
from holdfast.ids import check_id
from holdfast.ledger import schema as schemas
from holdfast.steps.journal import ENDED, KIND, Header, Journal, fact, record_id, to_header
from holdfast.steps.lease import SECOND, Lease, Terms, is_free, plain_terms
from holdfast.steps.runs import Look, Runs
from holdfast.steps.timeline import RunInfo
from holdfast.steps.work import Work

if TYPE_CHECKING:
    from holdfast.ledger.thread import LedgerThread

_TRIES = 100


def open_run(runs: Runs, thread: LedgerThread, name: str, handler: str | None, input: Any) -> Work:
    """Begin a run, or take up one that was left; ``RunHeld`` when another holder is alive. Blocks.

    A run that is done or cancelled is opened for reading: its recorded steps give their results.
    """
    id = record_id(thread.id, name)
    for _ in range(_TRIES):
        record = runs.core.engine.get(runs.core.tenant, KIND, id)
        try:
            if record is None:
                return _begin(runs, thread, id, name, handler, input)
            return _take_up(runs, thread, record, handler, input)
        except RunHeld:
            raise
        except Conflict:
            continue  # someone was faster: look who
    raise RunHeld(f"run {name!r} of thread {thread.id!r} keeps changing hands", thread=thread.id, run=name)


def reading(runs: Runs, thread: LedgerThread, record: Record, *, replaying: bool = False) -> Work:
    """A run that is only looked at. Blocks."""
    assert record.stream is not None
    return Work(
        runs, thread, record.id, to_header(record.body), runs.journal(record, record.head),
        stream=record.stream, version=record.version, scope=record.scope, replaying=replaying,
    )  # fmt: skip


# Beginning


def _begin(runs: Runs, thread: LedgerThread, id: str, name: str, handler: str | None, input: Any) -> Work:
    header = Header(thread.id, name, _handler(handler, name), "open", schemas.dump(input), runs.holder.name, 1)
    opened, terms = _opened(runs, "new", 1), plain_terms(header, _until(runs, runs.now()), runs.holder)
    ops = _beginning(runs, thread, id, header, opened, terms)
    with runs.claiming((id,)):
        receipt = runs.core.write(ops, opened.time)
        runs.heard = max(runs.heard, receipt.feed)
        record = runs.core.engine.get(runs.core.tenant, KIND, id)
        if record is None or record.version != 1:
            raise Conflict(f"run {name!r} of thread {thread.id!r} was taken as it began")
        journal = Journal()
        journal.fold(receipt.events[1])
        return _held(runs, thread, record, header, journal, terms)


def _handler(given: str | None, name: str) -> str:
    return check_id(name, "run name") if given is None else check_id(given, "handler")


def submit(runs: Runs, thread: LedgerThread, name: str, handler: str | None, input: Any) -> RunInfo:
    """Write down a run for whoever resumes next. Doing it again with the same input changes nothing. Blocks."""
    id = record_id(thread.id, name)
    header = Header(thread.id, name, _handler(handler, name), "open", schemas.dump(input))
    submitted = _opened(runs, "submitted", 0)
    ops = _beginning(runs, thread, id, header, submitted, plain_terms(header, 0, None))
    try:
        runs.core.write(ops, submitted.time)
    except Conflict:
        known = runs.core.engine.get(runs.core.tenant, KIND, id)
        if known is None:
            return submit(runs, thread, name, handler, input)  # the thread was begun meanwhile
        there = to_header(known.body)
        if (there.handler, there.input) != (header.handler, header.input):
            raise Invalid(
                f"run {name!r} of thread {thread.id!r} exists with another handler or input", run=name
            ) from None
    return runs.info(thread.id, name)


def _beginning(
    runs: Runs, thread: LedgerThread, id: str, header: Header, opened: Event, terms: Terms
) -> tuple[Op, ...]:
    scope, before = _scope(thread)
    return (
        *before,
        thread.logbook.touch(),
        Put(KIND, id, header.body(), 0, scope, (header.status,)),
        Append(KIND, id, (opened,)),
        terms.put(id, scope),
    )


def _scope(thread: LedgerThread) -> tuple[Scope, tuple[Op, ...]]:
    """A run has the owner of its thread, so that erasing a user erases it too."""
    record = thread.logbook.record()
    if record is None:
        return thread.logbook.scope, (Guard("thread", thread.id, 0),)
    scope = record.scope
    return Scope(scope.user, scope.agent, scope.thread or thread.id), ()


def _opened(runs: Runs, why: str, claims: int) -> Event:
    return fact("opened", runs.core.clock.now(), why=why, by=runs.holder.name, claim=claims)


def _until(runs: Runs, now: int) -> int:
    return now + round(runs.lease_s * SECOND)


def _held(runs: Runs, thread: LedgerThread, record: Record, header: Header, journal: Journal, terms: Terms) -> Work:
    assert record.stream is not None
    lease = Lease(runs.core, record, terms, runs.lease_s)
    work = Work(
        runs, thread, record.id, header, journal,
        stream=record.stream, version=record.version, scope=record.scope, lease=lease,
    )  # fmt: skip
    runs.keeper.keep(lease)
    return work


# Taking over


class Claim(NamedTuple):
    """A run that may be taken, and what is to be written for that."""

    thread: LedgerThread
    record: Record
    header: Header
    journal: Journal
    opened: Event
    terms: Terms

    @property
    def ops(self) -> tuple[Op, ...]:
        record = self.record
        return (
            Put(KIND, record.id, self.header.body(), record.version, record.scope, (self.header.status,)),
            Append(KIND, record.id, (self.opened,)),
            self.terms.put(record.id, record.scope),
        )


def _take_up(runs: Runs, thread: LedgerThread, record: Record, handler: str | None, input: Any) -> Work:
    thread.logbook.record()  # a handle that names another owner stops here
    header = to_header(record.body)
    if handler is not None and check_id(handler, "handler") != header.handler:
        raise Invalid(f"run {header.name!r} was begun for handler {header.handler!r}, not {handler!r}")
    if input is not None and schemas.dump(input) != header.input:
        raise Invalid(f"run {header.name!r} of thread {thread.id!r} was begun with other input", run=header.name)
    if header.parent is not None:
        raise Invalid(f"{header.name!r} is a subtask of run {header.parent!r}; open that one")
    if header.status in ("done", "cancelled"):
        return reading(runs, thread, record)
    why = "reopened" if header.status == "failed" else "resumed"
    look = runs.look((record,))[record.id]
    return take(runs, (claim(runs, thread, look, why, runs.now()),))[0]


def claim(runs: Runs, thread: LedgerThread, look: Look, why: str, now: int, *, due: bool = False) -> Claim:
    """Work out how to take a run over, if nobody holds it; with ``due`` only if someone is to carry it on."""
    record, terms = look.record, look.terms
    header = to_header(record.body)
    if header.status in ENDED and due:
        raise Conflict(f"run {header.name!r} of thread {header.thread!r} has ended meanwhile")
    if due and (terms is None or (not terms.holder and terms.until > now)):
        raise Conflict(f"run {header.name!r} of thread {header.thread!r} was carried on by another meanwhile")
    if terms is not None and not is_free(terms, now, runs.holder) and not runs.is_forgotten(record.id, terms):
        raise RunHeld(
            f"run {header.name!r} of thread {header.thread!r} is held by {_called(runs, terms)} until "
            f"{to_datetime(terms.until):%Y-%m-%d %H:%M:%S} UTC, or longer while that is alive",
            thread=header.thread, run=header.name, holder=terms.holder, until=to_datetime(terms.until),
        )  # fmt: skip
    journal = look.journal()  # first: what cannot be read is not claimed either
    claims = header.claims + 1
    mine = msgspec.structs.replace(header, status="open", holder=runs.holder.name, claims=claims, waits=None)
    mine_terms = plain_terms(header, _until(runs, now), runs.holder)
    return Claim(thread, record, mine, journal, _opened(runs, why, claims), mine_terms)


def take(runs: Runs, claims: Sequence[Claim]) -> list[Work]:
    """Take runs over, all in one commit or none. Blocks."""
    with runs.claiming(one.record.id for one in claims):
        return _take(runs, claims)


def _take(runs: Runs, claims: Sequence[Claim]) -> list[Work]:
    ops = [op for one in claims for op in one.ops]
    receipt = runs.core.write(ops, claims[-1].opened.time)
    runs.heard = max(runs.heard, receipt.feed)
    taken = []
    for one, events, head in zip(claims, receipt.events, receipt.heads, strict=True):
        if one.journal.behind(events[0].position):
            one.journal.fold(runs.events(one.record, head, after=one.journal.head))
        one.journal.fold(events)
        record = msgspec.structs.replace(one.record, version=one.record.version + 1)
        taken.append(_held(runs, one.thread, record, one.header, one.journal, one.terms))
    return taken


def _called(runs: Runs, terms: Terms) -> str:
    mine = terms.holder == runs.holder.name
    return "this very process (use that Run, or release it)" if mine else terms.holder
