"""A piece of work inside a run, with its own log and budget, that ends before the run continues.

Its log is a thread beside the parent's, so the parent's log stays whole: one entry when the subtask ends. Its journal
is a run of its own that only the parent's holder can hold: every commit guards the parent's fence.
Deliberately absent: two subtasks at once, and a parent that continues meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.codec import encode
from holdfast.engine.contract import Append, Op, Put, Record
from holdfast.errors import Cancelled, Conflict, Erased, Fenced, Invalid, StepUnknown, Unavailable
from holdfast.ids import check_id
from holdfast.ledger import schema as schemas
from holdfast.ledger.thread import sibling
from holdfast.steps import budget as budgets
from holdfast.steps.declare import Spec, fingerprint, key_of
from holdfast.steps.flow import CallFunction, Flow, RunBlocking
from holdfast.steps.journal import KIND, RunHeader, fact, record_id, to_header
from holdfast.steps.step_context import Suspended, describe_failure, entry, failed_step, failure_to_plain, set_run
from holdfast.steps.work import Work, refuse_changed, refuse_other

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ledger.thread import LedgerThread


_SHORT = 2_000  # bytes of a result that the parent's log repeats, so that it can be recalled there


def subtask(
    work: Work,
    name: str,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    budget: dict[str, float] | None,
    handle: Callable[[Work], Any],
) -> Flow[Any]:
    """Run a subtask, continue it, or return its recorded result. ``handle`` makes the object that ``fn`` gets."""
    check_id(name, "subtask name")
    limits = budgets.check(budget)
    work.refuse_inside(f"subtask {name!r}")
    input = fingerprint(name, args, kwargs)
    work.visited.append(name)
    known = work.journal.steps.get(name)
    if known is not None:
        refuse_other(known, "subtask")
        refuse_changed(work, known, input)
        if known.standing == "completed":
            return schemas.dump(known.result)
        if known.standing == "failed":
            raise work.failed(known)
    work.refuse_unless_open(f"subtask {name!r}")
    if known is None:  # once started it runs through even in a cancelled run: a step may be in doubt
        work.refuse_when_cancelled()
    budgets.refuse_over(work, name)
    work.subtask = name
    try:
        if known is None:
            yield from _intend(work, name, input)
        child = yield RunBlocking(lambda: _open(work, name, limits))
        work.root.children.append(child)
        return (yield from _carried_out(work, child, fn, args, kwargs, handle(child)))
    finally:
        work.subtask = ""


def _carried_out(
    work: Work, child: Work, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], inner: Any
) -> Flow[Any]:
    name = child.header.name
    what = f"subtask {name!r} of run {work.header.name!r}"
    try:
        result = yield CallFunction(fn, (inner, *args), kwargs, within=lambda: set_run(inner), what=what)
    except (Fenced, Cancelled, StepUnknown, Suspended, Unavailable):
        raise
    except Exception as error:
        step = failed_step(child, error)
        yield from _end(work, child, name, "failed", error=failure_to_plain(error), step=step)
        raise work.failed(work.journal.steps[name]) from error
    plain = child.plain(Spec(name, "idempotent"), result)
    yield from _end(work, child, name, "done", result=plain)
    return plain


def _intend(work: Work, name: str, input: str) -> Flow[None]:
    time = work.time()
    key = key_of(work.runs.core.tenant, work.stream, name)
    intent = fact(
        "intent", time, step=name, attempt=1, key=key, input=input, effect="subtask", on_unknown="rerun", undo=False,
        by=work.runs.holder.name,
    )  # fmt: skip
    yield from work.record((intent,), time=time)


def _open(work: Work, name: str, limits: dict[str, float]) -> Work:
    """Start the subtask's own thread and journal, or read those an earlier process left. Blocks."""
    runs = work.runs
    thread = _thread(work, name)
    id = record_id(thread.id, name)
    record = runs.core.engine.get(runs.core.tenant, KIND, id)
    if record is None:
        record = _begin(work, thread, id, name)
    header = to_header(record.body)
    if (header.parent, record.scope.thread) != (work.header.name, work.root.thread.id):
        raise Invalid(f"subtask {name!r} would share its log {thread.id!r} with another subtask; give it another name")
    if header.status != "open":
        record = _reopen(work, record)
        header = to_header(record.body)
    journal = runs.journal(record, record.head)
    assert record.stream is not None
    child = Work(
        runs, thread, id, header, journal,
        stream=record.stream, version=record.version, scope=record.scope, lease=work.lease,
    )  # fmt: skip
    child.root, child.budget, child.parks = work.root, limits, work.parks
    return child


def unfinished(work: Work) -> list[Work]:
    """The subtasks of a run that have started and not ended. Blocks."""
    begun = [step.name for step in work.journal.in_doubt() if step.effect == "subtask"]
    return [_open(work, name, {}) for name in begun]


def _reopen(work: Work, record: Record) -> Record:
    """Reopen a failed subtask in a reopened run: its failures are no longer final."""
    runs, time = work.runs, work.time()
    assert work.lease is not None
    header = msgspec.structs.replace(to_header(record.body), status="open")
    opened = fact("opened", time, why="reopened", by=runs.holder.name, claim=work.root.header.claims)
    ops = (
        work.lease.guard(),
        Put(KIND, record.id, header.body(), record.version, record.scope, record.tags),
        Append(KIND, record.id, (opened,)),
    )
    _commit(work, ops, time)
    return runs.core.engine.get(runs.core.tenant, KIND, record.id) or record


def _thread(work: Work, name: str) -> LedgerThread:
    """The subtask's own log: next to the parent's, with the same owner, and erased with it."""
    scope = msgspec.structs.replace(work.scope, thread=work.root.thread.id)
    return sibling(work.thread, f"{work.thread.id}/{work.header.name}/{name}", scope, ("subtask",))


def _begin(work: Work, thread: LedgerThread, id: str, name: str) -> Record:
    runs, time = work.runs, work.time()
    assert work.lease is not None
    header = RunHeader(thread.id, name, name, parent=work.header.name)
    scope = thread.logbook.scope
    opened = fact("opened", time, why="new", by=runs.holder.name, claim=1)
    ops = (
        work.lease.guard(),
        thread.logbook.touch(),
        Put(KIND, id, header.body(), 0, scope, ("subtask",)),
        Append(KIND, id, (opened,)),
    )
    _commit(work, ops, time)
    record = runs.core.engine.get(runs.core.tenant, KIND, id)
    if record is None:
        raise Fenced(f"subtask {name!r} was erased as it started")
    return record


def _commit(work: Work, ops: tuple[Op, ...], time: int) -> None:
    try:
        work.runs.core.write(ops, time)
    except (Conflict, Erased) as error:
        raise work.judged(error) from error


def _end(
    work: Work,
    child: Work,
    name: str,
    status: Any,
    *,
    result: Any = None,
    error: dict[str, Any] | None = None,
    step: str | None = None,
) -> Flow[None]:
    """End the subtask and hand its one result to the parent, in one commit."""
    time = work.time()
    ended = fact("ended", time, status=status, result=result, error=error, step=step, unvisited=[])
    if error is None:
        mine = fact("completed", time, step=name, attempt=1, result=result, how="subtask")
        short = {"result": result} if len(encode(result)) <= _SHORT else {}  # the rest is in the subtask's own log
        told = entry(work, name, "completed", subtask=child.thread.id, **short)
    else:
        mine = fact("failed", time, step=name, attempt=1, error=error, final=True)
        told = entry(work, name, "failed", subtask=child.thread.id, error=describe_failure(error))
    header = msgspec.structs.replace(child.header, status=status)
    more = (
        Append(KIND, child.id, (ended,)),
        Put(KIND, child.id, header.body(), child.version, child.scope, ("subtask",)),
    )
    yield from work.record((mine,), drafts=(told,), more=more, time=time, insist=True)
    child.header, child.lease = header, None  # a kept handle can only read from now on


def spend(work: Work, given: dict[str, Any]) -> Flow[dict[str, float]]:
    """Record what was used, and return what is left; raise ``BudgetExceeded`` when it is over the budget."""
    amounts, time = budgets.amounts(given), work.time()
    work.refuse_unless_open("spending")
    yield from work.record((fact("spent", time, amounts=amounts),), time=time)
    budgets.refuse_over(work)
    return budgets.left(work)
