"""Finding threads by the metadata of their newest checkpoint, and those whose time to live is over.

Deliberately absent: reading any state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypedDict

from holdfast.adapters.langgraph import frames
from holdfast.adapters.langgraph.frames import GRAPH, GraphStream
from holdfast.adapters.langgraph.saving import loaded_metadata
from holdfast.adapters.langgraph.sweeper import MINUTE, check_ttl
from holdfast.adapters.langgraph.values import Kinds
from holdfast.errors import Invalid
from holdfast.extension import Core, Query, quoted, scan_all, to_datetime


class ThreadTTL(TypedDict, total=False):
    """How long threads live, in minutes, with the names that LangGraph's server uses.

    "delete" removes a thread once nothing was saved in it for ``default_ttl``. "keep_latest" removes checkpoints older
    than that, except the newest of each thread.
    """

    strategy: Literal["delete", "keep_latest"]
    default_ttl: float
    sweep_interval_minutes: float


def check_thread_ttl(ttl: Any) -> dict[str, Any]:
    """Check a caller's setting; an empty one means that threads live for ever."""
    given = check_ttl(ttl, ThreadTTL, '{"default_ttl": 43200}')
    if given.get("strategy", "delete") not in ("delete", "keep_latest"):
        raise Invalid(f'ttl: strategy is "delete" or "keep_latest", not {quoted(given["strategy"])}')
    if given and given.get("default_ttl") is None:
        raise Invalid('ttl: say how long threads live: {"default_ttl": 43200} is 30 days')
    return given


class ThreadFound(NamedTuple):
    """A thread in a search: who owns it, and the metadata of its newest checkpoint."""

    thread_id: str
    user: str | None
    metadata: dict[str, Any]
    checkpoint_id: str
    created: datetime
    active: datetime


def search(core: Core, kinds: Kinds, wanted: Mapping[str, Any], user: str | None) -> Iterator[ThreadFound]:
    """Threads whose newest checkpoint has these values in its metadata, latest activity first."""
    for record in scan_all(core.engine, core.tenant, Query(GRAPH, user=user)):
        if frames.namespace_of(record):
            continue  # a graph inside another one
        frame = GraphStream(core.engine, core.tenant, record.mark).newest()
        metadata = {} if frame is None else loaded_metadata(kinds, frame)
        if frame is None or any(metadata.get(name) != value for name, value in wanted.items()):
            continue
        yield ThreadFound(
            record.scope.thread or "", record.scope.user, metadata, frame.id,
            to_datetime(record.created), to_datetime(record.time),
        )  # fmt: skip


def idle(core: Core, minutes: float) -> list[str]:
    """Threads in which nothing was saved for so long."""
    least = core.clock.now() - round(minutes * MINUTE)
    found = {record.scope.thread or "" for record in scan_all(core.engine, core.tenant, Query(GRAPH, until=least))}
    return [thread for thread in sorted(found) if is_idle(core, thread, minutes)]


def is_idle(core: Core, thread: str, minutes: float) -> bool:
    """Whether nothing was saved in a thread for so long."""
    newest = next(frames.graphs_in(core.engine, core.tenant, thread), None)
    return newest is not None and newest.time <= core.clock.now() - round(minutes * MINUTE)
