"""Which checkpoints go, and what goes with them: by count, by age, by size, by run; and threads that stay deleted.

Events of a stream are never taken out one by one. A graph that is pruned is written anew, with what the remaining
frames reach and nothing else, in the same commit that gives up the old: whoever reads sees the one or the other. The
thread's log is not touched: what was said was said. Deliberately absent: when to prune.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.adapters.langgraph.known import MessageCache
from holdfast.adapters.langgraph.line import GraphLine
from holdfast.adapters.langgraph.values import Kinds
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.extension import (
    Append,
    Core,
    Delete,
    Event,
    Guard,
    Mark,
    Op,
    Put,
    Query,
    Record,
    Scope,
    View,
    decode,
    encode,
    quoted,
    scan_all,
    to_micros,
)
from holdfast.ledger import frames, segments
from holdfast.ledger.frames import BLOB, GRAPH, KEPT, LIST, PAIRS, Channel, Frame, Ref
from holdfast.ledger.segments import SEGMENT, Element

_DELETED, _RUN = "deletion", "graph run"
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


def deleted_since(core: Core, thread: str, checkpoint: str) -> bool:
    """Whether a thread was deleted after a checkpoint was made that is no longer there."""
    record = core.engine.get(core.tenant, _DELETED, frames.hidden(thread))
    if record is None:
        return False
    made = frames.made_at(checkpoint)
    return made is None or made <= decode(record.body)["at"]


# Runs


def run_note(line: GraphLine, run: str, scope: Scope) -> Put:
    """What says that a run made checkpoints of a graph."""
    id = frames.hidden(run, line.id)
    return Put(_RUN, id, encode({"graph": line.id}), scope=scope, tags=(frames.hidden(run),))


def delete_runs(core: Core, kinds: Kinds, runs: Sequence[str]) -> None:
    """Delete the frames that some runs made."""
    wanted = set(runs)
    notes = [note for run in wanted for note in scan_all(core.engine, core.tenant, Query(_RUN, tag=frames.hidden(run)))]
    for id in {decode(note.body)["graph"] for note in notes}:
        record = core.engine.get(core.tenant, GRAPH, id)
        if record is not None:
            Rewriting(core, kinds, record, lambda found, size: _without(found, wanted)).commit()
    if notes:
        core.write([Delete(_RUN, note.id) for note in notes], core.clock.now())


def _without(found: Sequence[Frame], runs: set[str]) -> list[Frame]:
    return _with_history([frame for frame in found if frame.metadata.get("run_id") not in runs], found)


# Retention


def retain(core: Core, kinds: Kinds, threads: Sequence[str] | None, rule: RetentionRule, *, dry_run: bool) -> Pruned:
    """Drop what a rule lets go, of some threads or of all."""
    rule.check()
    now = core.clock.now()
    touched: set[str | None] = set()
    went = freed = kept = 0
    batch: list[Rewriting] = []
    for record in list(_graphs(core, threads)):
        graph = Rewriting(core, kinds, record, functools.partial(_kept, rule=rule, now=now))
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
    if threads is None:
        yield from scan_all(core.engine, core.tenant, Query(GRAPH))
    for thread in dict.fromkeys(threads or ()):
        yield from scan_all(core.engine, core.tenant, Query(GRAPH, thread=thread))


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
        needs = {name for name in frame.metadata.get("counters_since_delta_snapshot") or {} if not _holds(frame, name)}
        parent = named.get(frame.parent or "")
        while needs and parent is not None:
            wanted.add(parent.id)
            needs = {name for name in needs if not _holds(parent, name)}
            parent = named.get(parent.parent or "")
    return [frame for frame in found if frame.id in wanted]


def _holds(frame: Frame, channel: str) -> bool:
    held = frame.channels.get(channel)
    return held is not None and held.ref is not None


def _time(frame: Frame) -> int:
    try:
        return to_micros(datetime.fromisoformat(frame.time))
    except (ValueError, TypeError):
        return frames.made_at(frame.id) or 0


Choose = Callable[[Sequence[Frame], Callable[[Frame], int]], Sequence[Frame]]
"""Says which of a graph's frames stay, the newest first; it may ask how many bytes each takes."""


class Rewriting:
    """A graph that is written anew with some of its frames."""

    def __init__(self, core: Core, kinds: Kinds, record: Record, choose: Choose) -> None:
        self.core, self._kinds, self._choose = core, kinds, choose
        self._look(record)

    def _look(self, record: Record) -> None:
        """Read all frames, and choose which of them stay."""
        self.line = GraphLine(
            self.core, self._kinds, record.scope.thread or "", frames.namespace_of(record), MessageCache()
        )
        with self.line.steady():
            self.record = self.line.record or record
            self.frames = self.line.frames()
            self._sizes: dict[str, int] | None = None
            self.left = [*self._choose(self.frames, self.size)]
            self.planned = self._ops() if self.changes else []
            self.freed = sum(self.size(frame) for frame in self.frames if frame not in self.left) if self.changes else 0

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

    def size(self, frame: Frame) -> int:
        """About how many bytes go when a frame goes: its own, its writes', and what no frame before it holds."""
        if self._sizes is None:
            self._sizes = dict(self._measured())
        return self._sizes[frame.id]

    def _measured(self) -> Iterator[tuple[str, int]]:
        core, seen, upto = self.core, set[str](), dict[str, int]()
        own = _sizes(self.line.view, core.tenant, self.record)
        for frame in reversed(self.frames):
            size = own.get(frame.position, 0)
            for name, channel in frame.channels.items():
                ref: Ref = channel.ref or ("", 0)
                way, held = ref
                if way == KEPT and held not in seen:
                    seen.add(held)
                    blob = self.line.view.get(core.tenant, BLOB, held)
                    size += len(blob.body) if blob is not None else 0
                elif way in (LIST, PAIRS) and held > upto.get(name, 0):
                    stream = self.line.segment(name).stream
                    added = self.line.view.read(core.tenant, Mark(stream, held), after=upto.get(name, 0))
                    size += sum(len(event.body) + _ROW for event in added)
                    upto[name] = held
            yield frame.id, size

    @property
    def changes(self) -> bool:
        return len(self.left) != len(self.frames)

    def _ops(self) -> list[Op]:
        """Give up the old and write the new, in an order that a commit can carry out."""
        record, time = self.record, self.core.clock.now()
        lists = self._lists()
        ops: list[Op] = [
            Guard(GRAPH, record.id, record.version, record.stream),  # this very graph, not one written anew since
            Append(GRAPH, record.id, (), record.head),
            Delete(GRAPH, record.id, record.version),
        ]
        ops += [Delete(SEGMENT, frames.segment_id(self.line.id, name)) for name in sorted(self._channels())]
        moved: dict[tuple[str, int], int] = {}
        for name, positions in sorted(lists.items()):
            made, places = self._segment(name, positions, time)
            id = frames.segment_id(self.line.id, name)
            new = Put(SEGMENT, id, encode({"graph": self.line.id, "channel": name}), scope=record.scope)
            ops.append(Append(SEGMENT, id, tuple(made), 0, new))
            moved |= {(name, old): position for old, position in places.items()}
        events = self._events(moved, time)
        if events:
            new = Put(GRAPH, record.id, record.body, scope=record.scope)
            ops.append(Append(GRAPH, record.id, tuple(events), 0, new))
        return [*ops, *self._unreached()]

    def _unreached(self) -> list[Op]:
        """Blobs of the graph that no remaining frame holds."""
        core, reached = self.core, set(self.blobs())
        found = scan_all(self.line.view, core.tenant, Query(BLOB, thread=self.record.scope.thread))
        mine = sorted(record.id for record in found if record.id.startswith(f"{self.record.id}/"))
        return [Delete(BLOB, id) for id in mine if id not in reached]

    def _lists(self) -> dict[str, list[int]]:
        """The versions of lists that remain, by channel, in the order of time."""
        found: dict[str, set[int]] = {}
        for frame in self.left:
            for name, channel in frame.channels.items():
                if channel.ref is not None and channel.ref[0] in (LIST, PAIRS):
                    found.setdefault(name, set()).add(channel.ref[1])
        return {name: sorted(positions) for name, positions in found.items()}

    def _channels(self) -> set[str]:
        """Every channel that has a list in any frame."""
        return {
            name
            for frame in self.frames
            for name, channel in frame.channels.items()
            if channel.ref is not None and channel.ref[0] in (LIST, PAIRS)
        }

    def _segment(self, name: str, positions: Sequence[int], time: int) -> tuple[list[Event], dict[int, int]]:
        """A list's segment with the elements that remain, and where its versions are in it."""
        made: list[Event] = []
        places: dict[int, int] = {}
        before = segments.EMPTY
        for position in positions:
            version = self.line.version(name, position)
            bodies = self.line.elements(name, position)[0].bodies
            elements = [
                Element(digest, bodies.get(place.position, b""), place if place.stream else None)
                for digest, place in zip(version.digests, version.places, strict=True)
            ]
            events, before = segments.saved(before, len(made), elements, time)
            made += events
            places[position] = before.position
        return made, places

    def _events(self, moved: dict[tuple[str, int], int], time: int) -> list[Event]:
        """The remaining frames and their writes, oldest first."""
        events: list[Event] = []
        written: dict[str, Frame] = {}
        highest = ""
        for frame in reversed(self.left):
            channels = {name: _moved(name, channel, moved) for name, channel in frame.channels.items()}
            new = frame._replace(position=len(events) + 1, channels=channels, strays=frame.id <= highest, early=())
            highest = max(highest, frame.id)
            event, full = frames.frame_event(new, written.get(frame.parent or ""), time)
            written[frame.id] = new._replace(full=full)
            events.append(event)
            events += [
                frames.writes_event(new.position, each, time, None) for each in frames.by_task(self.line.writes(frame))
            ]
        return events

    def blobs(self) -> Iterator[str]:
        """The blobs that the remaining frames and their writes hold."""
        for frame in self.left:
            yield from (channel.ref[1] for channel in frame.channels.values() if channel.ref and channel.ref[0] == KEPT)
            yield from (held[1] for held in frame.more.values() if held[0] == KEPT)
            yield from (write.ref[1] for write in self.line.writes(frame) if write.ref[0] == KEPT)


def _moved(name: str, channel: Channel, moved: dict[tuple[str, int], int]) -> Channel:
    if channel.ref is None or channel.ref[0] not in (LIST, PAIRS):
        return channel
    return Channel(channel.version, (channel.ref[0], moved[name, channel.ref[1]]))


def _sizes(view: View, tenant: str, record: Record) -> dict[int, int]:
    """About how many bytes each frame takes, with its writes."""
    sizes: dict[int, int] = {}
    for event in view.read(tenant, record.mark):
        position = event.position if frames.is_frame(event) else frames.to_writes(event)[0]
        sizes[position] = sizes.get(position, 0) + len(event.body) + _ROW
    return sizes
