"""Reads and saves the checkpoints of one saver, and refuses runs that another run has overtaken.

Deliberately absent: LangGraph's interface (``saver``), what goes when (``pruning``), and what a value is (``values``).
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ERROR, WRITES_IDX_MAP, ChannelVersions, Checkpoint, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast import Store
from holdfast.adapters.langgraph import frames, pruning
from holdfast.adapters.langgraph.evolution import Evolution
from holdfast.adapters.langgraph.frames import Frame, Ref, TaskWrite
from holdfast.adapters.langgraph.known import Latest, MessageCache
from holdfast.adapters.langgraph.line import GraphLine, WrittenBy
from holdfast.adapters.langgraph.saving import GraphSave, loaded_metadata
from holdfast.adapters.langgraph.values import Kinds
from holdfast.errors import Conflict, Erased, HoldfastError, Invalid, KeyReused, NotFound
from holdfast.extension import Event, check_id, quoted

_TRIES = 100
_LINES = 256
_MESSAGES = 200_000
_RUNS = 100_000
_FEW = 16
_DELTAS = "counters_since_delta_snapshot"
_INPUT = "~__pregel_pull, __start__"  # the path of the task that passes an input on


class Handed(NamedTuple):
    """Notes that code in this context was given a checkpoint: which one, by which keeper, as the newest or not, when.

    To continue from a checkpoint, LangGraph asks for it by its id, and then, with None as the id, for the newest. If
    both are the same one, it still counts as named.
    """

    keeper: int
    thread: str
    namespace: str
    checkpoint: str | None
    newest: bool
    time: int


_handed: ContextVar[tuple[Handed, ...]] = ContextVar("holdfast_langgraph_handed", default=())


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


Judge = Callable[[GraphLine], bool]
"""Says whether there is anything to save, or refuses it."""
Work = Callable[[GraphLine, GraphSave], tuple[list[Event], Frame | None]]
"""Makes what to save, and the frame that the last of it is, if it is one."""


class CheckpointKeeper:
    """The checkpoints of one saver. ``evolution`` is how older ones are read."""

    def __init__(
        self,
        store: Store,
        kinds: Kinds,
        evolution: Evolution,
        user: str,
        serde: SerializerProtocol | None = None,
        *,
        branches: bool = False,
    ) -> None:
        self.store, self.kinds, self.evolution = store, kinds, evolution
        self._user, self._branches, self._serde = user, branches, serde
        self._lock = threading.Lock()
        self._lines = Latest[tuple[str, str], GraphLine](_LINES)
        self._own = Latest[tuple[str, str, str | None], bool](
            _RUNS
        )  # checkpoints it saved: must the next be the newest
        self._begun = Latest[tuple[str, str], None](_RUNS)  # graphs that this saver has saved, and not found gone since

    # Reading

    def tuple_at(self, spot: Spot) -> CheckpointTuple | None:
        line = self._line(spot)
        self._save_passed_on(line)
        with line.lock, line.steady():
            if not line.namespace:  # graphs inside it are part of its turn
                line.known.turn()
            frame = line.tip if spot.checkpoint is None else line.frame(spot.checkpoint)
            if line.tip is None:
                self._begun.pop((spot.thread, spot.namespace), None)
            return None if frame is None else self._tuple(line, frame)

    def each(
        self, config: RunnableConfig | None, wanted: dict[str, Any] | None, before: RunnableConfig | None
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first. Nothing is locked while the caller looks at one."""
        for line, frame in self._listed(config, before):
            told = loaded_metadata(self.kinds, frame) if wanted else {}
            if not any(told.get(name) != value for name, value in (wanted or {}).items()):
                with line.lock, line.steady(), line.known.unnoticed():
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
        for line in lines:
            self._save_passed_on(line)
        each = (self._frames(line, limit) for line in lines)
        merged = heapq.merge(*each, key=lambda pair: pair[1].id, reverse=True)
        wanted = named.get("checkpoint_id")
        return ((line, frame) for line, frame in merged if wanted is None or frame.id == wanted)

    def _frames(self, line: GraphLine, before: str | None) -> Iterator[tuple[GraphLine, Frame]]:
        """The frames of a line, the newest first, page by page: who lists wants the first few, mostly."""
        stream, upto, limit = 0, 1, before
        while upto:
            with line.lock, line.steady():
                if line.record is None:
                    return
                if stream != line.record.stream:  # at first, and when it was written anew meanwhile
                    named = None if before is None else line.frame(before)
                    stream, upto = line.record.mark.stream, line.record.head if named is None else named.position - 1
                    limit = before if named is None else None  # what is not there has a place by its id alone
                page = line.stream.stretch(upto)
                upto = page.first - 1 if upto else 0
            for frame in reversed(page.frames):
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
        found = frames.graphs_in(self.store.core.engine, self.store.core.tenant, thread)
        return [(record.scope.thread or "", frames.namespace_of(record)) for record in found]

    def _tuple(self, line: GraphLine, frame: Frame) -> CheckpointTuple:
        spot, body = Spot(line.thread, line.namespace, frame.id), frame.body

        def value(name: str, ref: Ref) -> Any:
            return line.value(ref, f"thread {line.thread!r}, channel {name!r}")

        checkpoint: dict[str, Any] = {
            "v": 1, "ts": body["time"], "id": frame.id,
            "channel_values": {name: value(name, ref) for name, ref in frame.values.items()},
            "channel_versions": dict(frame.versions),
            "versions_seen": {node: dict(seen) for node, seen in body["seen"].items()},
            "updated_channels": None if body["updated"] is None else [*body["updated"]],
            **{name: value(name, ref) for name, ref in body.get("more", {}).items()},
        }  # fmt: skip
        written = [(write.task, write.channel, value(write.channel, write.ref)) for write in line.stream.writes(frame)]
        written = self.evolution.applied(line.thread, frame.schema, checkpoint, written)
        metadata: Any = loaded_metadata(self.kinds, frame)
        parent = None if frame.parent is None else spot.config(frame.parent)
        return CheckpointTuple(spot.config(frame.id), checkpoint, metadata, parent, written)

    def history(self, spot: Spot, channels: Sequence[str]) -> dict[str, Any]:
        """What was written to channels since their last snapshot, along the line of parents, oldest first."""
        line = self._line(spot)
        found: dict[str, dict[str, Any]] = {name: {"writes": []} for name in channels}
        self._save_passed_on(line)
        with line.lock, line.steady():
            frame = line.frame(spot.checkpoint) if spot.checkpoint is not None else line.tip
            for ancestor, written in () if frame is None else line.stream.ancestors(frame):
                unseeded = {name for name, held in found.items() if "seed" not in held}
                for write in reversed(written):
                    if write.channel in unseeded:
                        value = line.value(write.ref, f"thread {line.thread!r}, a write to {write.channel!r}")
                        found[write.channel]["writes"].append((write.task, write.channel, value))
                for name in unseeded & ancestor.values.keys():
                    found[name]["seed"] = line.value(ancestor.values[name], f"thread {line.thread!r}, {name!r}")
                if all("seed" in held for held in found.values()):
                    break
        for held in found.values():
            held["writes"].reverse()
        return found

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

        def work(line: GraphLine, saving: GraphSave) -> tuple[list[Event], Frame]:
            parent = None if spot.checkpoint is None else line.frame(spot.checkpoint)
            if parent is not None and parent.metadata.get(_DELTAS):
                self._say_early(line, saving, parent)
            body = {"parent": spot.checkpoint, "metadata": told, **self._body(saving, checkpoint, fresh, parent)}
            id = check_id(checkpoint["id"], "the id of a checkpoint")
            event, frame = frames.frame_event(id, body, line.tip, saving.time)
            return [event], frame

        def judge(line: GraphLine) -> bool:
            if line.sure and (same := line.frame(checkpoint["id"])) is not None:
                _refuse_other(line, same, checkpoint)
                return False
            self._refuse_late(line, spot, told)
            self._refuse_cut_off(line, spot, checkpoint, told)
            if guarded and told.get("source") != "fork":  # a copy stands beside what it copies
                self._refuse_overtaken(line, spot)
            return True

        try:
            self._commit(spot, config, judge, work)
        except BaseException:
            line = self._line(spot)
            with line.lock:  # nor is anything saved later that only led to this
                line.passed_on = [each for each in line.passed_on if each.checkpoint != spot.checkpoint]
            raise
        if begins is None:  # the mark of a run goes along with it; who begins at another's checkpoint leaves that mark
            self._own.pop((spot.thread, spot.namespace, spot.checkpoint), None)
        self._own[(spot.thread, spot.namespace, checkpoint["id"])] = guarded
        self._begun[(spot.thread, spot.namespace)] = None

    def _say_early(self, line: GraphLine, saving: GraphSave, frame: Frame) -> None:
        """Put messages into the log that tasks wrote to delta channels before this frame was saved.

        No frame has them, only those writes; and they had to wait, since nothing is said before what it answers.
        """
        for write in frames.merged(line.stream.strays(frame.id)):
            saving.small(line.value(write.ref, f"a write to {write.channel!r}"), "")

    def _body(
        self, saving: GraphSave, checkpoint: Checkpoint, fresh: ChannelVersions, parent: Frame | None
    ) -> dict[str, Any]:
        """What of a checkpoint is stored, besides its parent and metadata.

        A channel that did not change is as the checkpoint before has it, even if the graph no longer has it.
        """
        versions, given, values = checkpoint["channel_versions"], checkpoint["channel_values"], dict[str, Ref]()
        old = {} if parent is None else parent.values
        as_saved = parent is not None and parent.schema == self.evolution.version  # and not migrated on the way
        for name in dict.fromkeys((*given, *old)):
            same = parent is not None and name in versions and parent.versions.get(name) == versions[name]
            if name in old and same and name not in fresh and (as_saved or name not in given):
                values[name] = old[name]
            elif name in given:
                values[name] = saving.ref(name, given[name], old.get(name))
        updated = checkpoint.get("updated_channels")
        body: dict[str, Any] = {
            "time": checkpoint["ts"], "versions": dict(versions), "values": values,
            "seen": {node: dict(seen) for node, seen in checkpoint["versions_seen"].items()},
            "updated": None if updated is None else [*updated],
        }  # fmt: skip
        if more := _more(checkpoint):
            body["more"] = {name: saving.small(held, f"checkpoint.{name}") for name, held in more.items()}
        return body | ({"schema": self.evolution.version} if self.evolution.version else {})

    def _refuse_late(self, line: GraphLine, spot: Spot, told: dict[str, Any]) -> None:
        """A run whose thread was deleted meanwhile does not bring it back, nor do the graphs that begin inside it."""
        if spot.checkpoint is not None and line.frame(spot.checkpoint) is None:
            self._refuse_deleted(line, spot.checkpoint, gone=line.tip is None)
        if spot.checkpoint is None and spot.namespace and line.tip is None:
            for checkpoint in (told.get("parents") or {}).values():
                self._refuse_deleted(line, checkpoint)

    def _refuse_cut_off(self, line: GraphLine, spot: Spot, checkpoint: Checkpoint, told: dict[str, Any]) -> None:
        """A delta channel is made of what came before: without the parent it would be empty."""
        missing = spot.checkpoint is not None and line.frame(spot.checkpoint) is None
        if missing and (told.get(_DELTAS) or {}).keys() - checkpoint["channel_values"].keys():
            raise Conflict(
                f"thread {line.thread!r} no longer has checkpoint {spot.checkpoint!r}, which this one needs: it was "
                "pruned while the run was under way. To go on, invoke with None or with a new message",
                thread=spot.thread, expected=spot.checkpoint,
            )  # fmt: skip

    def _refuse_deleted(self, line: GraphLine, parent: str, *, gone: bool = False) -> None:
        if gone or pruning.deleted_since(self.store.core, line.thread, parent, self._began(line.thread)):
            raise Erased(
                f"thread {line.thread!r} or its checkpoints were deleted while this run was under way: they stay "
                "deleted; a new run begins anew",
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

    def put_writes(
        self, spot: Spot, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str
    ) -> None:
        """Keep what a task wrote on top of the checkpoint that a spot names, which may be yet to be saved, durably.

        What only passes the input on is saved with the next commit of its graph: made again, it is the same.
        """
        checkpoint = spot.checkpoint
        assert checkpoint is not None
        written = WrittenBy(checkpoint, [*writes], task, path)
        if path == _INPUT and self._pass_on(self._line(spot), written):
            return

        def judge(line: GraphLine) -> bool:
            if line.frame(checkpoint) is None:
                gone = line.tip is None and (line.thread, line.namespace) in self._begun
                self._refuse_deleted(line, checkpoint, gone=gone)
            return True

        if writes:
            self._commit(spot, config, judge, lambda line, saving: ([_writes_event(line, saving, written)], None))

    def _pass_on(self, line: GraphLine, written: WrittenBy) -> bool:
        """Leave something for the next commit, unless the checkpoint that follows came first."""
        with line.lock:
            last = line.tip is None or line.tip.id == written.checkpoint
            if last or line.frame(written.checkpoint) is None:
                line.passed_on = [*line.passed_on, written][-_FEW:]
                return True
        return False

    def _save_passed_on(self, line: GraphLine) -> None:
        """Save what passes an input on, since somebody looks before the next commit comes."""
        if line.passed_on:
            with suppress(HoldfastError):  # it is made again
                self._commit(Spot(line.thread, line.namespace, None), {}, lambda _: True, lambda *_: ([], None))

    def _commit(self, spot: Spot, config: RunnableConfig, judge: Judge, work: Work) -> None:
        """Make events and commit them; if someone else committed first, make them again from what is there now.

        The first try trusts what this process knows and reads nothing: a commit says what it expects to find, so one
        that is out of date is refused. ``judge`` says whether there is anything to do, or refuses it.
        """
        line, core = self._line(spot), self.store.core
        last: HoldfastError | None = None
        with line.lock:
            for _ in range(_TRIES):
                sure = line.tip is None or last is not None
                try:
                    with line.steady() if sure else nullcontext():
                        user = self._user_of(line, config)
                        if not judge(line):
                            return
                        if line.log is not None:
                            saving = GraphSave(line, line.log, core.clock.now())
                            events, frame = work(line, saving)
                            along = [each for each in line.passed_on if _goes_along(line, each, frame)]
                            events = [*(_writes_event(line, saving, each) for each in along), *events]
                except HoldfastError as error:
                    if sure:
                        raise
                    last = error
                    continue
                if line.log is None:  # nothing was refused: now there may be a thread
                    logbook = self.store.thread(line.thread, user=user).logbook
                    logbook.commit((logbook.touch(),))
                    continue
                if not events:
                    return
                try:
                    saving.learn(core.write(saving.operations(events), saving.time))
                except (Conflict, NotFound, KeyReused) as error:
                    line.forget()
                    last = error
                    continue
                saved = set(map(id, along))
                line.passed_on = [each for each in line.passed_on if id(each) not in saved]
                for stray in filter(None, map(frames.stray_of, events[: -1 if frame else None])):
                    line.strays[stray] = line.strays.get(stray, 0) + 1
                if frame is not None:
                    assert line.record is not None
                    line.tip = frame._replace(position=line.record.head)
                return
        raise last or Conflict(f"thread {line.thread!r} keeps changing", thread=line.thread)

    def _user_of(self, line: GraphLine, config: RunnableConfig) -> str | None:
        """The user whom a config names, who must be the owner of the thread if it has one."""
        named = {**(config.get("metadata") or {}), **(config.get("configurable") or {})}
        user = named.get(self._user)
        if not isinstance(user, str) or not user:
            return None
        if line.log is not None and line.log.scope.user not in (None, user):
            raise Invalid(f"thread {line.thread!r} belongs to user {line.log.scope.user!r}, not {quoted(user)}")
        return user

    # Lines, and how runs began

    def _line(self, spot: Spot) -> GraphLine:
        with self._lock:
            key, held = (spot.thread, spot.namespace), self._lines
            if (line := held.get(key)) is not None:
                held.move_to_end(key)
                return line
            lines = (each for (thread, _), each in held.items() if thread == spot.thread)
            known = next((each.known for each in lines), MessageCache())  # the graphs of a thread share it
            line = held[key] = GraphLine(self.store.core, self.kinds, *key, known, self._serde)
            while len(held) > 1 and sum(map(len, {each.known for each in held.values()})) > _MESSAGES:
                held.popitem(last=False)  # who needs it again reads it again
            return line

    def hand_out(self, config: RunnableConfig, found: CheckpointTuple | None) -> None:
        """Note in this context that a checkpoint was given, and how: later saves, from any thread, are judged by it."""
        spot = Spot.of(config)
        given = None if found is None else found.checkpoint["id"]
        now = self.store.core.clock.now()
        handed = Handed(id(self), spot.thread, spot.namespace, given, newest=spot.checkpoint is None, time=now)
        earlier = _handed.get()
        asked_again = "checkpoint_id" in config["configurable"] and spot.checkpoint is None
        if asked_again and earlier and earlier[-1][:5] == (*handed[:4], False):
            return
        _handed.set((*(each for each in earlier if each[:4] != handed[:4]), handed)[-_FEW:])

    def _handed_newest(self, spot: Spot) -> bool | None:
        """Whether a run that begins at a checkpoint was given it as the newest; None if no run begins there."""
        for each in reversed(_handed.get()):
            if each[:4] == (id(self), spot.thread, spot.namespace, spot.checkpoint):
                return each.newest
        return None

    def _began(self, thread: str) -> int | None:
        """When the run began that this code is part of, if it is part of one."""
        own = (each.time for each in reversed(_handed.get()) if each[:3] == (id(self), thread, ""))
        return next(own, None)

    def forget(self, thread: str) -> None:
        """Drop what is known of a thread."""
        with self._lock:
            for key in [key for key in self._lines if key[0] == thread]:
                del self._lines[key]


_FIELDS = {"v", "id", "ts", "channel_values", "channel_versions", "versions_seen", "updated_channels"}


def _goes_along(line: GraphLine, written: WrittenBy, frame: Frame | None) -> bool:
    """Whether what passes an input on can be part of a commit: on top of the last frame, or before a new one."""
    if line.tip is not None and line.tip.id == written.checkpoint:
        return True
    return frame is not None and line.frame(written.checkpoint) is not None


def _writes_event(line: GraphLine, saving: GraphSave, written: WrittenBy) -> Event:
    """The event of what a task wrote."""
    checkpoint, writes, task, path = written
    says = saving.says
    saving.says &= line.frame(checkpoint) is not None  # otherwise what it answers may not be said yet
    made = [
        TaskWrite(
            task, path, WRITES_IDX_MAP.get(channel, number), channel,
            saving.small(_told(channel, value), f"thread {line.thread!r}, a write to {channel!r}"),
        )
        for number, (channel, value) in enumerate(writes)
    ]  # fmt: skip
    saving.says = says
    key = None
    if line.tip is None or line.tip.id != checkpoint:
        if line.record is not None and checkpoint not in line.strays:
            line.strays[checkpoint] = sum(1 for _ in line.stream.strays(checkpoint))
        key = frames.stray_key(checkpoint, line.strays.get(checkpoint, 0) + 1)
    return frames.writes_event(made, saving.time, key)


def _told(channel: str, value: Any) -> Any:
    """What a task wrote: an error is told, not kept to be raised again."""
    return repr(value) if channel == ERROR and isinstance(value, BaseException) else value


def _more(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a checkpoint holds besides what every one does."""
    more = {name: held for name, held in checkpoint.items() if name not in _FIELDS and held not in (None, [], {})}
    return more if checkpoint["v"] == 1 else {**more, "v": checkpoint["v"]}


def _refuse_other(line: GraphLine, stored: Frame, checkpoint: Checkpoint) -> None:
    """The same checkpoint may be saved again; another one under its id may not."""
    if stored.versions != checkpoint["channel_versions"] or stored.body["time"] != checkpoint["ts"]:
        raise Conflict(
            f"thread {line.thread!r} has another checkpoint {stored.id!r} already", thread=line.thread,
            checkpoint=stored.id,
        )  # fmt: skip
