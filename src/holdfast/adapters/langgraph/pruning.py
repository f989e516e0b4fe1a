"""Which checkpoints go, and what goes with them: by count, by age, by size, by run; copies; and threads that stay
deleted.

Events of a stream are never taken out one by one. A graph that is pruned is written anew, with what the remaining
frames need and nothing else, in the same commit that gives up the old: whoever reads sees the one or the other. The
thread's log is not touched: what was said was said. Deliberately absent: when to prune.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from holdfast.adapters.langgraph import frames
from holdfast.adapters.langgraph.frames import DICT, GRAPH, INLINE, ITEM, ITEMS, LIST, OWN, Frame, GraphStream, Ref
from holdfast.adapters.langgraph.values import TAG
from holdfast.errors import Conflict, Invalid, NotFound, Unsupported
from holdfast.extension import (
    Append,
    Core,
    Delete,
    Event,
    Fork,
    Guard,
    Op,
    Put,
    Record,
    Scope,
    View,
    decode,
    encode,
    quoted,
    to_micros,
)

PART = "item"
_DELETED = "deletion"
_REMEMBERED = 7 * 86_400 * 1_000_000  # no run is under way for longer than a week
_BATCH = 50
_TRIES = 200  # of a graph that is being written all the time
_ROW = 100  # bytes that an event takes besides its body, about


class RetentionRule(NamedTuple):
    """What may go: all but the newest ``keep``, what is ``older_than``, what goes beyond ``max_bytes``."""

    keep: int | None = None
    older_than: timedelta | None = None
    max_bytes: int | None = None

    def check(self) -> None:
        if self == RetentionRule():
            raise Invalid("say what to keep: keep=, older_than= or max_bytes=")
        for name in ("keep", "max_bytes"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 0):
                raise Invalid(f"{name} is a whole number of 0 or more, not {quoted(value)}")
        if self.older_than is not None and not isinstance(self.older_than, timedelta):
            raise Invalid(f"older_than is a timedelta, not {type(self.older_than).__name__}")


class Pruned(NamedTuple):
    """What went: of how many threads, how many checkpoints, and about how many bytes they took."""

    threads: int
    checkpoints: int
    bytes: int
    kept: int


# Threads that stay deleted


def note_deletion(core: Core, thread: str) -> None:
    """Remember when a thread was deleted, so that a run that is under way does not bring it back."""
    now = core.clock.now()
    put = Put(_DELETED, frames.hidden(thread), encode({"at": now}), expires=now + _REMEMBERED)
    core.write((put,), now)


def deleted_since(core: Core, thread: str, checkpoint: str, began: int | None) -> bool:
    """Whether a thread was deleted after a checkpoint was made that is not there, or after a run began."""
    record = core.engine.get(core.tenant, _DELETED, frames.hidden(thread))
    if record is None:
        return False
    made, deleted = frames.made_at(checkpoint), decode(record.body)["at"]
    return made is None or made <= deleted or (began is not None and began < deleted)


# Runs and retention


def delete_runs(core: Core, runs: Sequence[str]) -> None:
    """Delete the frames that some runs made, wherever they are: the frames of all threads are looked at."""
    wanted = set(runs)

    def left(found: Sequence[Frame], size: Callable[[Frame], int]) -> list[Frame]:
        return _with_history([frame for frame in found if frame.metadata.get("run_id") not in wanted], found)

    for record in list(frames.graphs_in(core.engine, core.tenant, None)):
        Rewriting(core, record, left).commit()


def retain(core: Core, threads: Sequence[str] | None, rule: RetentionRule, *, dry_run: bool) -> Pruned:
    """Drop what a rule lets go, of some threads or of all."""
    rule.check()
    now = core.clock.now()
    touched: set[str | None] = set()
    went = freed = kept = 0
    batch: list[Rewriting] = []
    for record in list(_graphs(core, threads)):
        graph = Rewriting(core, record, functools.partial(_kept, rule=rule, now=now))
        kept += len(graph.left)
        if graph.changes:
            touched.add(record.scope.thread)
            went, freed = went + len(graph.frames) - len(graph.left), freed + graph.freed
            batch.append(graph)
        if len(batch) >= _BATCH and not dry_run:
            _commit(core, batch)
            batch = []
    if batch and not dry_run:
        _commit(core, batch)
    return Pruned(len(touched), went, freed, kept)


def _graphs(core: Core, threads: Sequence[str] | None) -> Iterator[Record]:
    for thread in (None,) if threads is None else dict.fromkeys(threads):
        yield from frames.graphs_in(core.engine, core.tenant, thread)


def _commit(core: Core, batch: Sequence[Rewriting]) -> None:
    """Many graphs in one commit; when one of them changed meanwhile, each by itself, as it is then."""
    try:
        core.write([op for each in batch for op in each.planned], core.clock.now())
    except (Conflict, NotFound):
        for each in batch:
            each.commit()


def _kept(found: Sequence[Frame], size: Callable[[Frame], int], rule: RetentionRule, now: int) -> list[Frame]:
    """Which of a graph's frames, the newest first, a rule keeps."""
    left = list(found)
    if rule.keep is not None:
        left = left[: rule.keep]
    if rule.older_than is not None:
        least = now - int(rule.older_than / timedelta(microseconds=1))
        left = [frame for number, frame in enumerate(left) if number == 0 or _time(frame) >= least]
    if rule.max_bytes is not None:
        taken = 0
        for number, frame in enumerate(left):
            taken += size(frame)
            if number and taken > rule.max_bytes:
                left = left[:number]
                break
    return _with_history(left, found)


def _with_history(left: Sequence[Frame], found: Sequence[Frame]) -> list[Frame]:
    """The frames that stay, and those that their delta channels are made from: back to the last snapshot of each."""
    named = {frame.id: frame for frame in found}
    wanted = {frame.id for frame in left}
    for frame in left:
        needs = (frame.metadata.get("counters_since_delta_snapshot") or {}).keys() - frame.values.keys()
        parent = named.get(frame.parent or "")
        while needs and parent is not None:
            wanted.add(parent.id)
            needs -= parent.values.keys()
            parent = named.get(parent.parent or "")
    return [frame for frame in found if frame.id in wanted]


def _time(frame: Frame) -> int:
    try:
        return to_micros(datetime.fromisoformat(frame.body["time"]))
    except (ValueError, TypeError):
        return frames.made_at(frame.id) or 0


# Writing a graph anew

Choose = Callable[[Sequence[Frame], Callable[[Frame], int]], Sequence[Frame]]
"""Says which of a graph's frames stay, the newest first; it may ask how many bytes each takes."""


class StoredGraph:
    """A graph as it is in one view: its frames, the newest first, what tasks wrote on top of each, and its items."""

    def __init__(self, view: View, tenant: str, record: Record) -> None:
        self.record, self.frames = record, list[Frame]()
        self.namespace = frames.namespace_of(record)
        self.items = view.get(tenant, ITEMS, record.id)
        self.writes: dict[str, list[frames.TaskWrite]] = {}
        self._bodies = {} if self.items is None else {e.position: e.body for e in view.read(tenant, self.items.mark)}
        self._sizes: dict[int, int] = {}
        stream, upto = GraphStream(view, tenant, record.mark), record.head
        while upto > 0:
            stretch = stream.stretch(upto)
            upto = stretch.first - 1
            for frame in reversed(stretch.frames):
                events = [*stretch.writes[frame.position], *stream.strays(frame.id)]
                self.frames.append(frame)
                self.writes[frame.id] = frames.merged(events)
                self._sizes[frame.position] = sum(len(event.body) + _ROW for event in events)

    def refs(self, frame: Frame) -> Iterator[Ref]:
        """How everything is stored that belongs to a frame."""
        yield from frame.values.values()
        yield from frame.body.get("more", {}).values()
        yield from (write.ref for write in self.writes[frame.id])

    def needed(self, frame: Frame) -> set[int]:
        """The items that a frame needs, with those that they need in their turn."""
        found = {at for ref in self.refs(frame) for at in _items_in(ref)}
        return found | {at for each in found for at in _parts_in(self.item(each))}

    def item(self, position: int) -> Any:
        return decode(frames.item_body(self._bodies[position]))

    def sizes(self) -> dict[str, int]:
        """About how many bytes go when each frame goes: its own, its writes', and the items that none before it
        has."""
        seen, sizes = set[int](), dict[str, int]()
        for frame in reversed(self.frames):
            fresh = self.needed(frame) - seen
            seen |= fresh
            own = len(encode(frame.body)) if frame.stretch == 0 else 2 * _ROW
            sizes[frame.id] = own + self._sizes[frame.position] + sum(len(self._bodies[at]) + _ROW for at in fresh)
        return sizes

    def events(self, left: Sequence[Frame], time: int) -> tuple[list[Event], list[Event]]:
        """The events of the frames that stay, with what was written on top of them, and the items that they need."""
        needed = sorted(set().union(*map(self.needed, left)))
        moved = {old: number for number, old in enumerate(needed, 1)}
        events: list[Event] = []
        before: Frame | None = None
        for frame in reversed(left):
            parts = {name: _moved_refs(frame.body[name], moved) for name in ("values", "more") if name in frame.body}
            event, before = frames.frame_event(frame.id, frame.body | parts, before, time)
            events.append(event)
            by_task: dict[tuple[str, str], list[frames.TaskWrite]] = {}
            for write in self.writes[frame.id]:
                by_task.setdefault(write[:2], []).append(write._replace(ref=_moved(write.ref, moved)))
            events += [frames.writes_event(each, time) for each in by_task.values()]
        return events, [frames.item_event(encode(_moved_parts(self.item(at), moved)), time) for at in needed]


def _items_in(ref: Ref) -> Iterator[int]:
    """The items that a value needs."""
    way, *held = ref
    if way == INLINE:
        yield from _parts_in(held[0])
    elif way == ITEM:
        yield held[0]
    else:
        yield from (position for stream, position in frames.to_places(held) if stream == OWN)


def _parts_in(raw: Any) -> Iterator[int]:
    """The items that a stored value names."""
    if type(raw) is list:
        for each in raw:
            yield from _parts_in(each)
    elif type(raw) is dict:
        if raw.get(TAG) == PART:
            yield raw["v"]
        else:
            for each in raw.values():
                yield from _parts_in(each)


def _moved_refs(refs: dict[str, Ref], moved: dict[int, int]) -> dict[str, Ref]:
    return {name: _moved(ref, moved) for name, ref in refs.items()}


def _moved(ref: Ref, moved: dict[int, int]) -> Ref:
    """How a value is stored once its items are elsewhere."""
    way, *held = ref
    if way == INLINE:
        return [way, _moved_parts(held[0], moved)]
    if way == ITEM:
        return [way, moved[held[0]]]
    if way not in (LIST, DICT):
        raise Unsupported(f"a value is stored as {way!r}, which this version does not know: upgrade holdfast")
    places = [(stream, moved[at] if stream == OWN else at) for stream, at in frames.to_places(held)]
    return [way, *frames.to_ranges(places)]


def _moved_parts(raw: Any, moved: dict[int, int]) -> Any:
    if type(raw) is list:
        return [_moved_parts(each, moved) for each in raw]
    if type(raw) is not dict:
        return raw
    if raw.get(TAG) == PART:
        return {TAG: PART, "v": moved[raw["v"]]}
    return {name: _moved_parts(each, moved) for name, each in raw.items()}


class Rewriting:
    """A graph that is written anew with some of its frames."""

    def __init__(self, core: Core, record: Record, choose: Choose) -> None:
        self.core, self._choose = core, choose
        self._look(record)

    def _look(self, record: Record) -> None:
        """Read all frames, and choose which of them stay."""
        with self.core.engine.snapshot() as view:
            self.record = view.get(self.core.tenant, GRAPH, record.id) or record
            graph = StoredGraph(view, self.core.tenant, self.record)
        self.frames = graph.frames
        sizes = functools.cache(graph.sizes)
        self.left = [*self._choose(self.frames, lambda frame: sizes()[frame.id])]
        stay = {frame.id for frame in self.left}
        self.planned = self._ops(graph) if self.changes else []
        self.freed = sum(sizes()[each.id] for each in self.frames if each.id not in stay) if self.changes else 0

    @property
    def changes(self) -> bool:
        return len(self.left) != len(self.frames)

    def commit(self) -> None:
        """Carry it out; when the graph changed meanwhile, look again."""
        for _ in range(_TRIES):
            try:
                if self.changes:
                    self.core.write(self.planned, self.core.clock.now())
                return
            except (Conflict, NotFound) as error:
                last = error
                record = self.core.engine.get(self.core.tenant, GRAPH, self.record.id)
                if record is None:
                    return
                self._look(record)
        raise last

    def _ops(self, graph: StoredGraph) -> list[Op]:
        """Give up the old and write the new, in an order that a commit can carry out."""
        record = self.record
        ops: list[Op] = [
            Guard(GRAPH, record.id, record.version, record.stream),  # this very graph, not one written anew since
            Append(GRAPH, record.id, (), record.head),
            Delete(GRAPH, record.id, record.version),
            Delete(ITEMS, record.id),
        ]
        events, items = graph.events(self.left, self.core.clock.now())
        return [*ops, *graph_ops(record.id, record.body, record.scope, events, items)]


def graph_ops(id: str, body: bytes, scope: Scope, events: Sequence[Event], items: Sequence[Event]) -> list[Op]:
    """What makes a graph of its events and items."""
    told = encode({"graph": id})
    made = ((ITEMS, told, items), (GRAPH, body, events))
    return [Append(kind, id, tuple(each), 0, Put(kind, id, body, scope=scope)) for kind, body, each in made if each]


# Copies


def copy_thread(core: Core, source: str, target: str) -> None:
    """Copy the log of a thread, which is shared, and its graphs to a new thread, by one commit."""
    with core.engine.snapshot() as view:
        thread = view.get(core.tenant, "thread", source)
        if thread is None:
            return
        if view.get(core.tenant, "thread", target) is not None:
            raise Conflict(f"thread {target!r} exists already; copy to a new thread", thread=target)
        scope = Scope(thread.scope.user, thread.scope.agent, target)
        ops: list[Op] = [
            Guard("thread", source, thread.version, thread.stream),
            Fork("thread", target, thread.mark, Put("thread", target, thread.body, scope=scope, tags=thread.tags)),
        ]
        for record in frames.graphs_in(view, core.tenant, source):
            graph = StoredGraph(view, core.tenant, record)
            if frames.home_of(view, core.tenant, record) != thread.stream:
                raise Unsupported(
                    f"the log of thread {source!r} was rewound, and its checkpoints hold messages that are no longer "
                    "part of it: such a thread is not copied",
                    thread=source,
                )
            body = frames.graph_body(graph.namespace, None)
            events, items = graph.events(graph.frames, core.clock.now())
            ops += graph_ops(frames.graph_id(target, graph.namespace), body, scope, events, items)
    core.write(ops, core.clock.now())
