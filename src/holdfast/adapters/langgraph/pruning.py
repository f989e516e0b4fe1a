"""Dropping checkpoints by count, age, size or run; copying threads; and keeping deleted threads deleted.

No event is ever taken out of a stream. To prune a graph, one commit deletes it and writes it anew with what the
remaining frames need, so a reader sees either the old or the new. The thread's log is not touched: what was said was
said. Deliberately absent: when to prune.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, chain, groupby
from typing import Any, NamedTuple

from holdfast.adapters.langgraph import frames
from holdfast.adapters.langgraph.frames import DICT, GRAPH, ITEMS, LIST, OWN, PART, TAG, Frame, GraphStream, Ref
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
    check_count,
    decode,
    encode,
    to_micros,
)

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
            if (value := getattr(self, name)) is not None:
                check_count(name, value)
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

    def choose(graph: StoredGraph) -> list[Frame]:
        return [frame for frame in graph.frames if frame.metadata.get("run_id") not in wanted]

    for record in list(frames.graphs_in(core.engine, core.tenant, None)):
        Rewriting(core, record, choose).commit()


def retain(core: Core, threads: Sequence[str] | None, rule: RetentionRule, *, dry_run: bool) -> Pruned:
    """Drop what a rule lets go, of some threads or of all."""
    rule.check()
    choose = functools.partial(_kept, rule=rule, now=core.clock.now())
    ids = (None,) if threads is None else dict.fromkeys(threads)
    records = [record for id in ids for record in frames.graphs_in(core.engine, core.tenant, id)]
    touched: set[str | None] = set()
    went = freed = kept = 0
    for begin in range(0, len(records), _BATCH):
        graphs = [Rewriting(core, record, choose) for record in records[begin : begin + _BATCH]]
        kept += sum(len(graph.left) for graph in graphs)
        changing = [graph for graph in graphs if graph.gone]
        touched |= {graph.record.scope.thread for graph in changing}
        went, freed = went + sum(graph.gone for graph in changing), freed + sum(graph.freed for graph in changing)
        if changing and not dry_run:
            _commit(core, changing)
    return Pruned(len(touched), went, freed, kept)


def _commit(core: Core, batch: Sequence[Rewriting]) -> None:
    """Many graphs in one commit; when one of them changed meanwhile, each by itself, as it is then."""
    try:
        core.write([op for each in batch for op in each.planned], core.clock.now())
    except (Conflict, NotFound):
        for each in batch:
            each.commit()


def _kept(graph: StoredGraph, rule: RetentionRule, now: int) -> list[Frame]:
    """Which frames of a graph, the newest first, a rule keeps."""
    left = graph.frames[: rule.keep]
    if rule.older_than is not None:
        least = now - int(rule.older_than / timedelta(microseconds=1))
        left = [frame for number, frame in enumerate(left) if number == 0 or _time(frame) >= least]
    if rule.max_bytes is not None:
        taken = accumulate(graph.sizes[frame.id] for frame in left)
        left = [frame for frame, size in zip(left, taken, strict=True) if size <= rule.max_bytes] or left[:1]
    return left


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


class StoredGraph:
    """A graph as it is in one view: its frames, the newest first, what tasks wrote on top of each, and its items."""

    def __init__(self, view: View, tenant: str, record: Record) -> None:
        self.record, self.frames = record, list[Frame]()
        self.namespace = frames.namespace_of(record)
        self.items = view.get(tenant, ITEMS, record.id)
        self.writes: dict[str, list[frames.TaskWrite]] = {}
        self._bodies = {} if self.items is None else {e.position: e.body for e in view.read(tenant, self.items.mark)}
        self._written: dict[str, int] = {}  # how many bytes the writes of a frame take
        written: dict[str, list[Event]] = {}
        for stretch in GraphStream(view, tenant, record.mark).stretches(record.head):
            self.frames += reversed(stretch.frames)
            for frame, events in zip(stretch.frames, stretch.writes, strict=True):
                written.setdefault(frame.id, []).extend(events)
            for event in stretch.strays:
                written.setdefault(frames.stray_of(event) or "", []).append(event)
        for id, events in written.items():
            self.writes[id] = frames.merged(events)
            self._written[id] = sum(len(event.body) + _ROW for event in events)
        self.early = sorted(written.keys() - {frame.id for frame in self.frames})  # their frames are yet to come

    def needed(self, frame: Frame) -> set[int]:
        """The items that a frame needs, with those that they need in their turn."""
        held = (frame.values.values(), frame.body.get("more", {}).values())
        return self._needs(chain(*held, (one.ref for one in self.writes.get(frame.id, ()))))

    def _needs(self, refs: Iterable[Ref]) -> set[int]:
        found = _Noted()
        for ref in refs:
            _moved(ref, found.note)
        return found.union(*(self._inside[at] for at in found))

    @functools.cached_property
    def _inside(self) -> dict[int, _Noted]:
        """The items that each item needs."""
        found = {at: _Noted() for at in self._bodies}
        for position, inside in found.items():
            _moved_parts(self._item(position), inside.note)
        return found

    def _item(self, position: int) -> Any:
        return decode(frames.item_body(self._bodies[position]))

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        """About how many bytes go with each frame: its own, its writes', and the items that none before it has."""
        seen, sizes = set[int](), dict[str, int]()
        for frame in reversed(self.frames):
            fresh = self.needed(frame) - seen
            seen |= fresh
            own = len(encode(frame.body)) if frame.stretch == 0 else 2 * _ROW
            sizes[frame.id] = own + self._written.get(frame.id, 0) + sum(len(self._bodies[at]) + _ROW for at in fresh)
        return sizes

    def events(self, left: Sequence[Frame], time: int) -> tuple[list[Event], list[Event]]:
        """The events of the frames that stay, with what was written on top of them, and the items that they need.

        What was written on top of frames that are not saved yet stays too, if any frame does.
        """
        early = self.early if left else []
        written = self._needs(write.ref for id in early for write in self.writes[id])
        needed = sorted(written.union(*map(self.needed, left)))
        move = {old: number for number, old in enumerate(needed, 1)}.__getitem__
        events: list[Event] = []
        before: Frame | None = None
        for frame in reversed(left):
            parts = {name: frame.body[name] for name in ("values", "more") if name in frame.body}
            moved = {name: {each: _moved(ref, move) for each, ref in refs.items()} for name, refs in parts.items()}
            event, before = frames.frame_event(frame.id, frame.body | moved, before, time)
            events.append(event)
            events += (frames.writes_event(writes, time) for writes in self._by_task(frame.id, move))
        for id in early:
            for number, writes in enumerate(self._by_task(id, move), 1):
                events.append(frames.writes_event(writes, time, frames.stray_key(id, number)))
        return events, [frames.item_event(encode(_moved_parts(self._item(at), move)), time) for at in needed]

    def _by_task(self, id: str, move: Callable[[int], int]) -> Iterator[list[frames.TaskWrite]]:
        """What each task wrote on top of a frame, once its items are elsewhere."""
        for _, writes in groupby(self.writes.get(id, ()), key=lambda write: write[:2]):
            yield [one._replace(ref=_moved(one.ref, move)) for one in writes]


class _Noted(set[int]):
    """The items that are met."""

    def note(self, position: int) -> int:
        self.add(position)
        return position


def _moved(ref: Ref, move: Callable[[int], int]) -> Ref:
    """How a value is stored once its items are elsewhere."""
    way, *held = ref
    if way == frames.INLINE:
        return [way, _moved_parts(held[0], move)]
    if way == frames.ITEM:
        return [way, move(held[0])]
    if way not in (LIST, DICT):
        raise Unsupported(f"a value is stored as {way!r}, which this version does not know: upgrade holdfast")
    if all(stream != OWN for stream, *_ in held):
        return ref
    places = [(stream, move(at) if stream == OWN else at) for stream, at in frames.to_places(held)]
    return [way, *frames.to_ranges(places)]


def _moved_parts(raw: Any, move: Callable[[int], int]) -> Any:
    """A stored value that names items, once these are elsewhere."""
    if type(raw) is list:
        return [_moved_parts(each, move) for each in raw]
    if type(raw) is not dict:
        return raw
    if raw.get(TAG) == PART:
        return {TAG: PART, "v": move(raw["v"])}
    return {name: _moved_parts(each, move) for name, each in raw.items()}


class Rewriting:
    """A graph that is written anew with the frames that are chosen, and those that these need."""

    def __init__(self, core: Core, record: Record, choose: Callable[[StoredGraph], list[Frame]]) -> None:
        self.core, self.record, self._choose = core, record, choose
        self._look()

    def _look(self) -> None:
        """Read all frames, and choose which of them stay."""
        with self.core.engine.snapshot() as view:
            self.record = view.get(self.core.tenant, GRAPH, self.record.id) or self.record
            graph = StoredGraph(view, self.core.tenant, self.record)
        self.left = _with_history(self._choose(graph), graph.frames)
        self.gone = len(graph.frames) - len(self.left)
        self.planned = self._ops(graph) if self.gone else []
        stay = {frame.id for frame in self.left}
        self.freed = sum(size for id, size in graph.sizes.items() if id not in stay) if self.gone else 0

    def commit(self) -> None:
        """Carry it out; when the graph changed meanwhile, look again."""
        for _ in range(_TRIES):
            try:
                if self.gone:
                    self.core.write(self.planned, self.core.clock.now())
                return
            except (Conflict, NotFound) as error:
                last = error
                if self.core.engine.get(self.core.tenant, GRAPH, self.record.id) is None:
                    return
                self._look()
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
