"""The checkpoints of one saver: found, put together, saved, and kept apart from runs that were overtaken.

Deliberately absent: LangGraph's interface (``saver``), what goes when (``pruning``), and what a value is (``values``).
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ERROR, WRITES_IDX_MAP, ChannelVersions, Checkpoint, CheckpointTuple

from holdfast import Store, Thread
from holdfast.adapters.langgraph import pruning
from holdfast.adapters.langgraph.arrivals import START, Arrivals, is_lone
from holdfast.adapters.langgraph.evolution import Evolution
from holdfast.adapters.langgraph.known import MessageCache
from holdfast.adapters.langgraph.line import GraphLine, PendingWrite
from holdfast.adapters.langgraph.saving import GraphSave, GraphSaved
from holdfast.adapters.langgraph.values import Kinds
from holdfast.errors import Conflict, Erased, Invalid, NotFound, Unavailable
from holdfast.extension import Query, Record, Scope, check_id, quoted, scan_all
from holdfast.ledger import frames
from holdfast.ledger.frames import GRAPH, Channel, Frame, TaskWrite

_TRIES = 100
_LINES = 256
_MESSAGES = 200_000
_HELD = 1_000
_RUNS = 100_000
_FEW = 16


class Handed(NamedTuple):
    """A checkpoint that was handed out to the code of one context: by which keeper, of what, and how it was asked for.

    LangGraph, asked to go on from a checkpoint, asks for that one and then, by a config that names None, for the
    newest. So one that was named stays named when that newest turns out to be the same.
    """

    keeper: int
    thread: str
    namespace: str
    checkpoint: str | None
    newest: bool


_handed: ContextVar[tuple[Handed, ...]] = ContextVar("holdfast_langgraph_handed", default=())


class _Without(Exception):
    """Something cannot be part of a commit, and is marked so: work it out again without."""


class Spot(NamedTuple):
    """What a config names: a thread, a namespace in it, and a checkpoint or none."""

    thread: str
    namespace: str
    checkpoint: str | None

    @staticmethod
    def of(config: RunnableConfig) -> Spot:
        named = config.get("configurable") or {}
        if "thread_id" not in named:
            raise Invalid('a checkpoint is kept by its thread: {"configurable": {"thread_id": "…"}}')
        thread = named["thread_id"]
        id = check_id(str(thread) if isinstance(thread, int) else thread, "thread_id")
        return Spot(id, named.get("checkpoint_ns") or "", named.get("checkpoint_id") or None)

    def config(self, checkpoint: str) -> RunnableConfig:
        named = {"thread_id": self.thread, "checkpoint_ns": self.namespace, "checkpoint_id": checkpoint}
        return {"configurable": named}


_NO_LOG = Record("thread", "", 1, b"", Scope(), 0, 0, stream=1)
_log = logging.getLogger(__name__)


class CheckpointKeeper:
    """The checkpoints of one saver. ``evolution`` is how older ones are read."""

    def __init__(self, store: Store, kinds: Kinds, evolution: Evolution, user: str, *, branches: bool) -> None:
        self.store, self.kinds, self.evolution = store, kinds, evolution
        self._user, self._branches = user, branches
        self._lock = threading.Lock()
        self._lines: OrderedDict[tuple[str, str], GraphLine] = OrderedDict()
        self._known: OrderedDict[str, MessageCache] = OrderedDict()
        self._held: OrderedDict[Spot, list[PendingWrite]] = OrderedDict()
        self._own: OrderedDict[tuple[str, str, str | None], bool] = OrderedDict()
        self._noted: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._arrivals = Arrivals()

    # Reading

    def tuple_at(self, spot: Spot) -> CheckpointTuple | None:
        line = self._line(spot)
        with line.lock, self._steady(line):
            self._turn(line)
            frame = line.tip if spot.checkpoint is None else line.frame(spot.checkpoint)
            return None if frame is None else self._tuple(line, frame)

    @contextmanager
    def _steady(self, line: GraphLine) -> Iterator[None]:
        """Look at a line as it is at one moment, with all that this process has for it."""
        if line.waiting:
            self._flush(line)
        with line.steady():
            yield

    def _turn(self, line: GraphLine) -> None:
        """A turn begins: what is known of the thread's messages is of this very thread, and of the last turns."""
        thread = line.view.get(self.store.tenant, "thread", line.thread)
        if thread is not None:
            line.known.begin(thread.created)
        if not line.namespace:  # graphs inside it are part of its turn
            line.known.turn()

    def each(
        self, config: RunnableConfig | None, wanted: dict[str, Any] | None, before: RunnableConfig | None
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first. Nothing is locked while the caller looks at one."""
        for line, frame in self._listed(config, before):
            if not any(frame.metadata.get(name) != value for name, value in (wanted or {}).items()):
                with line.lock, self._steady(line):
                    current = line.frame(frame.id)  # it may have been pruned since, or written anew
                    found = None if current is None else self._tuple(line, current)
                if found is not None:
                    yield found

    def _listed(
        self, config: RunnableConfig | None, before: RunnableConfig | None
    ) -> Iterator[tuple[GraphLine, Frame]]:
        named = (config or {}).get("configurable") or {}
        limit = None if before is None else (before.get("configurable") or {}).get("checkpoint_id")
        lines = [self._line(Spot(thread, space, None)) for thread, space in self._places(config)]
        each = [self._frames(line, limit) for line in lines]
        merged = heapq.merge(*each, key=lambda pair: pair[1].id, reverse=True) if len(each) > 1 else chain(*each)
        wanted = named.get("checkpoint_id")
        return ((line, frame) for line, frame in merged if wanted is None or frame.id == wanted)

    def _frames(self, line: GraphLine, before: str | None) -> Iterator[tuple[GraphLine, Frame]]:
        """The frames of a line, the newest first, page by page: who lists wants the first few, mostly."""
        stream, upto, limit = 0, 1, before
        while upto:
            with line.lock, self._steady(line):
                if line.record is None:
                    return
                if stream != line.record.stream:  # at first, and when it was written anew meanwhile
                    named = None if before is None else line.frame(before)
                    stream, upto = line.record.mark.stream, line.record.head if named is None else named.position - 1
                    limit = before if named is None else None  # what is not there has a place by its id alone
                page, upto = line.page(upto)
            for frame in page:
                if limit is None or frame.id < limit:
                    before = frame.id
                    yield line, frame

    def _places(self, config: RunnableConfig | None) -> list[tuple[str, str]]:
        """The threads and namespaces that a config means."""
        named = (config or {}).get("configurable") or {}
        if "thread_id" in named and "checkpoint_ns" in named:
            spot = Spot.of(config or {})
            return [(spot.thread, spot.namespace)]
        thread = Spot.of(config or {}).thread if "thread_id" in named else None
        return [(record.scope.thread or "", frames.namespace_of(record)) for record in self._graphs(thread)]

    def _graphs(self, thread: str | None) -> list[Record]:
        core = self.store.core
        return list(scan_all(core.engine, core.tenant, Query(GRAPH, thread=thread)))

    def _tuple(self, line: GraphLine, frame: Frame) -> CheckpointTuple:
        spot = Spot(line.thread, line.namespace, frame.id)
        loading = line.loading(pending=frame is line.tip and not line.namespace)
        values = {
            name: line.value(name, channel.ref, loading)
            for name, channel in frame.channels.items()
            if channel.ref is not None
        }
        written = [
            (write.task, write.channel, line.value(write.channel, write.ref, loading)) for write in line.writes(frame)
        ]
        checkpoint: dict[str, Any] = {
            "v": 1, "ts": frame.time, "id": frame.id, "channel_values": values,
            "channel_versions": {name: channel.version for name, channel in frame.channels.items()},
            "versions_seen": {node: dict(seen) for node, seen in frame.seen.items()},
            "updated_channels": None if frame.updated is None else [*frame.updated],
            **{name: line.value(name, (held[0], held[1]), loading) for name, held in frame.more.items()},
        }  # fmt: skip
        versions = checkpoint["channel_versions"]
        checkpoint["channel_versions"] = {name: held for name, held in versions.items() if held is not None}
        written = self.evolution.applied(line.thread, frame.schema, checkpoint, written)
        metadata = loading.value(frame.metadata, f"thread {line.thread!r}, metadata")
        parent = None if frame.parent is None else spot.config(frame.parent)
        return CheckpointTuple(spot.config(frame.id), checkpoint, metadata, parent, written)

    def history(self, spot: Spot, channels: Sequence[str]) -> dict[str, Any]:
        """What was written to channels since their last snapshot, along the line of parents, oldest first."""
        line = self._line(spot)
        writes: dict[str, list[tuple[str, str, Any]]] = {name: [] for name in channels}
        seeds: dict[str, Any] = {}
        with line.lock, self._steady(line):
            loading, open_ = line.loading(), set(channels)
            for frame, written in line.ancestors(spot.checkpoint):
                for write in reversed(written):
                    if write.channel in open_:
                        value = line.value(write.channel, write.ref, loading)
                        writes[write.channel].append((write.task, write.channel, value))
                for name in [*open_]:
                    held = frame.channels.get(name)
                    if held is not None and held.ref is not None:
                        seeds[name] = line.value(name, held.ref, loading)
                        open_.discard(name)
                if not open_:
                    break
        seeded = {name: {"seed": seed} for name, seed in seeds.items()}
        return {name: {"writes": writes[name][::-1], **seeded.get(name, {})} for name in channels}

    # Writing

    def put(
        self, spot: Spot, config: RunnableConfig, checkpoint: Checkpoint, told: dict[str, Any], fresh: ChannelVersions
    ) -> None:
        """Save a checkpoint that follows the one that a spot names, durably.

        ``told`` is its metadata as it is stored, ``fresh`` the channels that changed. A run that was overtaken by
        another, or whose thread was deleted meanwhile, is refused.
        """
        begins = self._handed_newest(spot)
        guarded = self._own.get((spot.thread, spot.namespace, spot.checkpoint), False) if begins is None else begins

        def judge(line: GraphLine) -> None:
            if line.frame(checkpoint["id"]) is None:  # what is saved already may be saved again
                self._refuse_late(line, spot, told)
                if guarded and told.get("source") != "fork":  # a copy stands beside what it copies
                    self._refuse_overtaken(line, spot)

        late = spot._replace(checkpoint=checkpoint["id"])
        self._arrivals.let_come(self._line(spot), spot.checkpoint, checkpoint, lambda: self._held.get(late, ()))
        try:
            self._save(spot, config, checkpoint, told, fresh, judge)
        except BaseException:
            self._let_go(late, self._held.pop(late, []))
            raise
        if begins is None:  # the mark of a run goes along with it; who begins at another's checkpoint leaves that mark
            self._own.pop((spot.thread, spot.namespace, spot.checkpoint), None)
        self._own[(spot.thread, spot.namespace, checkpoint["id"])] = guarded
        while len(self._own) > _RUNS:
            self._own.popitem(last=False)

    def _let_go(self, spot: Spot, overtaking: list[PendingWrite]) -> None:
        """Give up writes whose checkpoint did not come. Whoever waits for them is told."""
        for writing in overtaking:
            writing.error = Unavailable(f"checkpoint {spot.checkpoint!r}, which this belongs to, was not saved")
            writing.done.set()

    def _save(
        self,
        spot: Spot,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        told: dict[str, Any],
        fresh: ChannelVersions,
        judge: Callable[[GraphLine], None],
    ) -> None:
        line = self._line(spot)
        with line.lock:
            if any(each.checkpoint != spot.checkpoint for each in line.waiting):
                self._flush(line)
            self._committed(line, config, lambda saving: self._put(line, spot, saving, checkpoint, told, fresh), judge)
            self._settle(line, config, self._held.pop(spot._replace(checkpoint=checkpoint["id"]), []))
        if isinstance(run := told.get("run_id"), str):
            self._noted[(run, line.id)] = None
            while len(self._noted) > _HELD:
                self._noted.popitem(last=False)

    def _settle(self, line: GraphLine, config: RunnableConfig, overtaking: list[PendingWrite]) -> None:
        """See to it that writes which came before their checkpoint are saved, or are known not to be."""
        for writing in overtaking:
            if not writing.done.is_set() and writing.error is None:  # the checkpoint was there already
                try:
                    self._write(line, config, writing)
                except Exception as error:
                    writing.error = error
            writing.done.set()
        failed = [writing.error for writing in overtaking if writing.error is not None]
        if failed:
            raise failed[0]

    def _put(
        self,
        line: GraphLine,
        spot: Spot,
        saving: GraphSave,
        checkpoint: Checkpoint,
        metadata: dict[str, Any],
        new_versions: ChannelVersions,
    ) -> GraphSaved | None:
        parent = None if spot.checkpoint is None else line.frame(spot.checkpoint)
        if (same := line.frame(checkpoint["id"])) is not None:
            self._refuse_other(line, same, checkpoint)
            return None
        newest = parent is not None and line.tip is not None and line.tip.id == parent.id
        along = [*line.waiting] if newest else []
        written = self._carried(line, saving, parent, along)
        if isinstance(run := metadata.get("run_id"), str) and (run, line.id) not in self._noted:
            saving.also(pruning.run_note(line, run, saving.scope))
        channels = self._channels(saving, checkpoint, parent, new_versions)
        overtaking = [
            writing
            for writing in self._held.get(spot._replace(checkpoint=checkpoint["id"]), ())
            if writing.error is None
        ]
        early = self._early(line, saving, overtaking)  # said after what the channels hold
        frame = Frame(
            id=check_id(checkpoint["id"], "the id of a checkpoint"),
            position=1 if line.record is None else line.record.head + 1,
            full=0,
            parent=spot.checkpoint,
            time=checkpoint["ts"],
            metadata=metadata,
            channels=channels,
            seen={node: dict(seen) for node, seen in checkpoint["versions_seen"].items()},
            updated=_listed(checkpoint.get("updated_channels")),
            more={name: [*saving.small(held, f"checkpoint.{name}")] for name, held in _more(checkpoint).items()},
            schema=self.evolution.version,
            strays=checkpoint["id"] <= line.highest,
            early=tuple(early.values()),
        )
        event, full = frames.frame_event(frame, parent, saving.time, written)

        def then() -> None:
            kept = frame._replace(full=full)
            line.keep(kept)
            line.tip = kept
            line.highest = max(line.highest, kept.id)
            line.asked = kept.id, saving.once
            for writing in along:
                line.waiting.remove(writing)
            for writing in (*along, *overtaking):
                writing.done.set()

        return saving.written(event, then)

    def _carried(
        self, line: GraphLine, saving: GraphSave, parent: Frame | None, along: list[PendingWrite]
    ) -> list[frames.TaskWrites]:
        """What tasks wrote on top of the frame before, and waits to be saved with the next."""
        there = {(write.task, write.number) for write in line.writes(parent)} if along and parent is not None else set()
        written = []
        for writing in along:
            if (fresh := self._fresh(line, saving, writing, there)) is not None:
                written.append(fresh)
                there |= {(write.task, write.number) for write in fresh.writes}
        return written

    def _early(
        self, line: GraphLine, saving: GraphSave, overtaking: list[PendingWrite]
    ) -> dict[tuple[str, int], TaskWrite]:
        """What tasks wrote on top of a frame before it was saved. What cannot be kept must not cost the frame."""
        early: dict[tuple[str, int], TaskWrite] = {}
        for writing in overtaking:
            try:
                fresh = self._fresh(line, saving, writing, early)
            except Exception as error:
                writing.error = error
                raise _Without from error  # whatever of it is in the commit already must not be
            early |= {(write.task, write.number): write for write in (fresh.writes if fresh else ())}
        return early

    def _channels(
        self, saving: GraphSave, checkpoint: Checkpoint, parent: Frame | None, new_versions: ChannelVersions
    ) -> dict[str, Channel]:
        """How every channel is held now: what did not change is as the checkpoint before has it."""
        values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
        channels = {}
        for name in (*versions, *(name for name in values if name not in versions)):
            version = versions.get(name)
            before = None if parent is None else parent.channels.get(name)
            same = before is not None and name not in new_versions and before.version == version and name in versions
            if same and before is not None and (name not in values or self._as_saved(parent)):
                channels[name] = before
            elif name in values:
                ref = saving.ref(name, values[name], None if before is None else before.ref)
                channels[name] = Channel(version, ref)
            else:
                channels[name] = Channel(version, None)
        return channels

    def _as_saved(self, parent: Frame | None) -> bool:
        """Whether values of a frame were read as they were saved, and not migrated on the way."""
        return parent is not None and parent.schema == self.evolution.version

    def _refuse_other(self, line: GraphLine, stored: Frame, checkpoint: Checkpoint) -> None:
        """The same checkpoint may be saved again; another one under its id may not."""
        found = self._tuple(line, stored).checkpoint
        if found["channel_versions"] != checkpoint["channel_versions"] or found["ts"] != checkpoint["ts"]:
            raise Conflict(
                f"thread {line.thread!r} has another checkpoint {stored.id!r} already", thread=line.thread,
                checkpoint=stored.id,
            )  # fmt: skip

    def _refuse_late(self, line: GraphLine, spot: Spot, told: dict[str, Any]) -> None:
        """A run whose thread was deleted meanwhile does not bring it back, nor do the graphs that begin inside it."""
        if spot.checkpoint is not None and line.frame(spot.checkpoint) is None:
            self._refuse_deleted(line, spot.checkpoint, gone=line.record is None)
        if spot.checkpoint is None and spot.namespace and line.record is None:
            for checkpoint in (told.get("parents") or {}).values():
                self._refuse_deleted(line, checkpoint)

    def _refuse_deleted(self, line: GraphLine, parent: str, *, gone: bool = False) -> None:
        if gone or pruning.deleted_since(self.store.core, line.thread, parent):
            raise Erased(
                f"thread {line.thread!r} was deleted while this run was under way: it stays deleted; a new run begins "
                "it anew",
                thread=line.thread,
            )

    def _refuse_overtaken(self, line: GraphLine, spot: Spot) -> None:
        """A run that began at the newest checkpoint goes on from the newest one, or not at all."""
        if self._branches or spot.namespace:
            return  # graphs inside a graph are part of one run, and may be called side by side
        tip = None if line.tip is None else line.tip.id
        if tip != spot.checkpoint:
            raise Conflict(
                f"thread {spot.thread!r} was changed by another run or update since this run began: this step was not "
                "saved, what the run had saved before is in the thread. Run one at a time on a thread; to go on, "
                "invoke with None or with a new message",
                thread=spot.thread, expected=spot.checkpoint, found=tip,
            )  # fmt: skip

    def put_writes(self, spot: Spot, config: RunnableConfig, writing: PendingWrite) -> bool:
        """Keep what a task gave, durably. False when its checkpoint is not saved yet: then it is saved with that."""
        line = self._line(spot)
        with line.lock:
            line.look()
            line.written.append(writing.checkpoint)
            if line.frame(writing.checkpoint) is None:
                self._refuse_deleted(line, writing.checkpoint)
                self._held.setdefault(spot, []).append(writing)
                if len(self._held) > _HELD:
                    self._let_go(*self._held.popitem(last=False))
                line.came.notify_all()
                return False
            newest = line.tip is not None and line.tip.id == spot.checkpoint
            lone = newest and line.tip is not None and is_lone(line.tip)
            if not newest or not self._arrivals.can_wait(line, writing, lone=lone):
                self._write(line, config, writing)
                line.came.notify_all()
                return True
            line.waiting.append(writing)
            line.came.notify_all()
        if writing.path != START:  # that one only passes the input on: made again, it is the same
            self._joined(line, config, writing, lone=lone)
        return True

    def _joined(self, line: GraphLine, config: RunnableConfig, writing: PendingWrite, *, lone: bool) -> None:
        """Save what a node wrote with the frame that follows, by one commit, or else by itself."""
        self._arrivals.let_frame_come(line, writing, lone=lone)
        with line.lock:
            if writing in line.waiting:
                line.waiting.remove(writing)
                self._write(line, config, writing)
            elif writing.error is not None:
                raise writing.error

    def _write(self, line: GraphLine, config: RunnableConfig, writing: PendingWrite) -> None:
        def work(saving: GraphSave) -> GraphSaved | None:
            frame = line.frame(writing.checkpoint)
            if frame is None:
                return None
            there = {(write.task, write.number) for write in line.writes(frame)}
            written = self._fresh(line, saving, writing, there)
            if written is None:
                return None
            late = None
            if line.tip is not None and line.tip.id != frame.id:
                late = frames.late_key(frame.position, self._count_late(line, frame))
            return saving.written(frames.writes_event(frame.position, written, saving.time, late), lambda: None)

        def judge(line: GraphLine) -> None:
            if line.frame(writing.checkpoint) is None:
                self._refuse_deleted(line, writing.checkpoint)

        self._committed(line, config, work, judge)

    def _fresh(
        self, line: GraphLine, saving: GraphSave, writing: PendingWrite, there: Collection[tuple[str, int]] = ()
    ) -> frames.TaskWrites | None:
        """What a task wrote and is not there yet, or None."""
        if writing.path == START and writing.checkpoint == line.asked[0]:
            saving.once |= line.asked[1]  # it passes the very objects on that the input holds: they are not said again
        path = f"thread {line.thread!r}, a write to"
        fresh = [
            TaskWrite(
                writing.task, writing.path, number, channel, saving.small(_told(channel, value), f"{path} {channel!r}")
            )
            for position, (channel, value) in enumerate(writing.writes)
            if (number := WRITES_IDX_MAP.get(channel, position)) < 0 or (writing.task, number) not in there
        ]
        return frames.TaskWrites(writing.task, writing.path, fresh) if fresh else None

    def _flush(self, line: GraphLine) -> None:
        """Save what waits for the next frame, because someone looks before it comes."""
        for writing in [*line.waiting]:
            line.waiting.remove(writing)
            try:
                self._write(line, {"configurable": {"thread_id": line.thread}}, writing)
            except Exception as error:  # whoever wrote is to hear of it, not whoever looks
                writing.error = error
                if writing.path == START:
                    _log.warning("what the input of thread %r was passed on as is not saved: %s", line.thread, error)
            finally:
                writing.done.set()

    def _count_late(self, line: GraphLine, frame: Frame) -> int:
        number, core = 1, self.store.core
        assert line.record is not None
        while core.engine.read(core.tenant, line.record.mark, key=frames.late_key(frame.position, number)):
            number += 1
        return number

    def _committed(
        self,
        line: GraphLine,
        config: RunnableConfig,
        work: Callable[[GraphSave], GraphSaved | None],
        judge: Callable[[GraphLine], None],
    ) -> None:
        """Work out a commit from what is there and carry it out; where another process changed it first, work it out
        again.

        ``judge`` refuses what must not be, before anything at all is written.
        """
        core = self.store.core
        thread = self._thread(line, config)
        last: Exception | None = None
        for _ in range(_TRIES):
            with line.steady():
                judge(line)
                log = line.view.get(core.tenant, "thread", line.thread)
                line.known.begin(0 if log is None else log.created)
                try:
                    written = work(GraphSave(line, log or _NO_LOG, thread.logbook.scope, core.clock.now()))
                except _Without:
                    continue
            if written is None:
                return
            if log is None:  # nothing was refused: now there may be a thread
                thread.logbook.commit((thread.logbook.touch(),))
                continue
            try:
                receipt = core.write(written.ops, core.clock.now())
            except (Conflict, NotFound) as error:
                line.forget()
                last = error
                continue
            written.known()
            line.advance(receipt.heads[-1])
            return
        raise last or Conflict(f"thread {line.thread!r} keeps changing", thread=line.thread)

    def _thread(self, line: GraphLine, config: RunnableConfig) -> Thread:
        named = {**(config.get("metadata") or {}), **(config.get("configurable") or {})}
        user = named.get(self._user)
        found = self.store.core.engine.get(self.store.tenant, "thread", line.thread)
        if found is not None:
            if isinstance(user, str) and found.scope.user not in (None, user):
                raise Invalid(f"thread {line.thread!r} belongs to user {found.scope.user!r}, not {quoted(user)}")
            return self.store.thread(line.thread, user=found.scope.user, agent=found.scope.agent)
        return self.store.thread(line.thread, user=user if isinstance(user, str) and user else None)

    # Lines, and how runs began

    def _line(self, spot: Spot) -> GraphLine:
        with self._lock:
            key = (spot.thread, spot.namespace)
            line = self._lines.get(key)
            if line is None:
                known = self._known.setdefault(spot.thread, MessageCache())
                while len(self._known) > _LINES or (
                    len(self._known) > 1 and sum(map(len, self._known.values())) > _MESSAGES
                ):
                    self._known.popitem(last=False)  # who needs it again reads it again
                line = self._lines[key] = GraphLine(self.store.core, self.kinds, spot.thread, spot.namespace, known)
            self._lines.move_to_end(key)
            self._known.move_to_end(spot.thread)
            if len(self._lines) > _LINES:
                idle = next((each for each, one in self._lines.items() if one is not line and not one.waiting), None)
                if idle is not None:
                    del self._lines[idle]
            return line

    def hand_out(self, config: RunnableConfig, found: CheckpointTuple | None) -> None:
        """Note in this context how a checkpoint was come by: saves after it, from whatever thread, are judged by it."""
        spot = Spot.of(config)
        given = None if found is None else found.checkpoint["id"]
        handed = Handed(id(self), spot.thread, spot.namespace, given, newest=spot.checkpoint is None)
        earlier = _handed.get()
        asked_again = "checkpoint_id" in config["configurable"] and spot.checkpoint is None
        if asked_again and earlier and earlier[-1] == handed._replace(newest=False):
            return
        _handed.set((*(each for each in earlier if each[:4] != handed[:4]), handed)[-_FEW:])

    def _handed_newest(self, spot: Spot) -> bool | None:
        """Whether a run that begins at a checkpoint was given it as the newest; None where it does not begin there."""
        for each in reversed(_handed.get()):
            if each[:4] == (id(self), spot.thread, spot.namespace, spot.checkpoint):
                return each.newest
        return None

    # Copying and forgetting

    def copy(self, source: str, target: str) -> None:
        """Copy every checkpoint of a thread, with its writes, to a new thread, one by one.

        What was copied before something went wrong is removed again; only what a killed process copied stays.
        """
        if self._graphs(target):
            raise Conflict(f"thread {target!r} has checkpoints already; copy to a new thread", thread=target)
        try:
            for record in self._graphs(source):
                self._copy(self._line(Spot(source, frames.namespace_of(record), None)), target)
        except BaseException:
            pruning.retain(self.store.core, self.kinds, [target], pruning.RetentionRule(keep=0), dry_run=False)
            self.forget(target)
            raise

    def _copy(self, line: GraphLine, target: str) -> None:
        with line.lock, self._steady(line):
            found = [frame.id for frame in line.frames()]
        for id in reversed(found):
            with line.lock, self._steady(line):
                frame = line.frame(id)
                if frame is None:
                    raise Conflict(f"thread {line.thread!r} was pruned while it was copied", thread=line.thread)
                each, written = self._tuple(line, frame), line.writes(frame)
                values = [line.value(write.channel, write.ref, line.loading()) for write in written]
                versions = _fresh_versions(line, frame)
                user = line.record and line.record.scope.user
            spot = Spot(target, line.namespace, frame.parent)
            config: RunnableConfig = {"configurable": {"thread_id": target, self._user: user}}
            self._save(spot, config, each.checkpoint, frame.metadata, versions, lambda _: None)
            for write, value in zip(written, values, strict=True):
                self._put_one(spot._replace(checkpoint=frame.id), config, write, value)

    def _put_one(self, spot: Spot, config: RunnableConfig, write: TaskWrite, value: Any) -> None:
        """One write under the number that it had."""
        line = self._line(spot)

        def work(saving: GraphSave) -> GraphSaved | None:
            frame = line.frame(spot.checkpoint or "")
            assert frame is not None
            ref = saving.small(value, f"thread {line.thread!r}, a write to {write.channel!r}")
            one = frames.TaskWrites(write.task, write.path, [write._replace(ref=ref)])
            event = frames.writes_event(frame.position, one, saving.time, None)
            return saving.written(event, lambda: None)

        with line.lock:
            self._committed(line, config, work, lambda _: None)

    def flush(self) -> None:
        """Save what waits for a frame that will not come any more."""
        for line in [*self._lines.values()]:
            with line.lock:
                self._flush(line)

    def forget(self, thread: str) -> None:
        """Know nothing of a thread but what the store tells."""
        with self._lock:
            for key in [key for key in self._lines if key[0] == thread]:
                del self._lines[key]
            self._known.pop(thread, None)


_FIELDS = {"v", "id", "ts", "channel_values", "channel_versions", "versions_seen", "updated_channels"}


def _told(channel: str, value: Any) -> Any:
    """What a task wrote: an error is told, not kept to be raised again."""
    return repr(value) if channel == ERROR and isinstance(value, BaseException) else value


def _more(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a checkpoint holds besides what every one does."""
    more = {name: held for name, held in checkpoint.items() if name not in _FIELDS and held not in (None, [], {})}
    return more if checkpoint["v"] == 1 else {**more, "v": checkpoint["v"]}


def _listed(names: Any) -> list[str] | None:
    return None if names is None else [*names]


def _fresh_versions(line: GraphLine, frame: Frame) -> ChannelVersions:
    """The channels of a frame that its parent has otherwise."""
    parent = None if frame.parent is None else line.frame(frame.parent)
    before = {} if parent is None else parent.channels
    return {name: held.version for name, held in frame.channels.items() if before.get(name) != held}
