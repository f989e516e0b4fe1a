"""Named points of a thread, and the operations that go back to one or branch off from one.

A checkpoint holds marks, not copies: a stream and a position for the log and one for the state. History is never
changed, so a mark stays valid whatever happens to the thread later. Deliberately absent: deleting what was rewound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from holdfast.checks import check_flag
from holdfast.clock import to_datetime
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Fork, Guard, Mark, Op, Problem, Put, Query, Record, Scope, Strand, View
from holdfast.errors import HoldfastError, Invalid
from holdfast.ids import check_id
from holdfast.ledger.core import scan_all
from holdfast.records import Checkpoint

KIND = "checkpoint"


class Point(NamedTuple):
    """Where a thread's log and state stood together. ``state`` is None when no state was saved by then."""

    log: Mark
    state: Mark | None


def record_id(thread: str, name: str) -> str:
    """Checkpoints of all threads share one kind; the length in front keeps ("a/b", "c") apart from ("a", "b/c")."""
    return f"{len(thread)}:{thread}/{check_id(name, 'checkpoint name')}"


def to_put(thread: str, name: str, point: Point, note: str, scope: Scope, *, replace: bool) -> Put:
    if not isinstance(note, str):
        raise Invalid(f"the note of a checkpoint is text, not {type(note).__name__}")
    content = {"name": name, "note": note, "log": _plain(point.log), "state": _plain(point.state)}
    expect = None if check_flag("replace", replace) else 0
    return Put(KIND, record_id(thread, name), encode(content), expect, scope)


def _plain(mark: Mark | None) -> dict[str, int] | None:
    return None if mark is None else {"stream": mark.stream, "position": mark.position}


def _mark(plain: dict[str, int] | None) -> Mark | None:
    return None if plain is None else Mark(plain["stream"], plain["position"])


def to_point(record: Record) -> Point:
    content = decode(record.body)
    log = _mark(content["log"])
    assert log is not None
    return Point(log, _mark(content["state"]))


def to_checkpoint(record: Record) -> Checkpoint:
    content: dict[str, Any] = decode(record.body)
    state = content["state"]
    return Checkpoint(
        name=content["name"],
        entries=content["log"]["position"],
        revision=state["position"] if state else 0,
        time=to_datetime(record.time),
        note=content["note"],
    )


def problems(view: View, tenant: str) -> Iterator[Problem]:
    """Checkpoints of a tenant that cannot be read, or point to nothing."""
    for record in scan_all(view, tenant, Query(KIND)):
        what = problem(record, lambda stream: view.strand(tenant, stream))
        if what is not None:
            yield Problem(f"checkpoint {record.id!r}", what, tenant, KIND, record.id)


def problem(record: Record, strand_of: Callable[[int], Strand | None]) -> str | None:
    """What is wrong with a stored checkpoint: it cannot be read, or points to nothing."""
    try:
        point, _ = to_point(record), to_checkpoint(record)
    except (HoldfastError, KeyError, TypeError, AssertionError):
        return "it is not a valid checkpoint"
    lost = [mark for mark in point if mark is not None and strand_of(mark.stream) is None]
    return "the history it points to is gone" if lost else None


def rewind_ops(thread: str, point: Point, log: Record, state: Record | None) -> tuple[Op, ...]:
    """Make a thread continue from a point. Both are expected as read, so a late writer is not cut off unseen.

    Both get a new version too, because heads alone are not enough: after a rewind and two appends a log may be as long
    as before, and an earlier reader must not take it for the same.
    """
    if state is None:
        return (*_moved(log, point.log), Guard("state", thread, 0))
    return (*_moved(log, point.log), *_moved(state, point.state or Mark(state.mark.stream, 0)))


def _moved(record: Record, to: Mark) -> tuple[Op, Op]:
    return (
        Put(record.kind, record.id, record.body, record.version, record.scope, record.tags),
        Fork(record.kind, record.id, to, expect=record.head),
    )


def fork_ops(thread: str, point: Point, new: Put, new_state: Put) -> tuple[Op, ...]:
    """Make a new thread that shares everything up to a point."""
    ops: list[Op] = [Fork("thread", thread, point.log, new=new)]
    if point.state is not None:
        ops.append(Fork("state", thread, point.state, new=new_state))
    return tuple(ops)
