"""What LangGraph is about to bring: writes, checkpoints and ids come by threads of their own, in no certain order.

To wait a moment for them saves rows, and decides nothing about what is kept. It is done where it pays off: where it was
in vain, the next few times nobody does; and what a node could change meanwhile does not wait. Deliberately absent:
saving anything (``keeper``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING

from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint

from holdfast.adapters.langgraph import messages
from holdfast.ledger import graphs
from holdfast.ledger.frames import Frame

if TYPE_CHECKING:
    from holdfast.adapters.langgraph.line import GraphLine, PendingWrite

NODE = "~__pregel_pull, "
_GIVEN = "__start__"
START = f"{NODE}{_GIVEN}"
_HASTE = 17
_MOMENT_S, _SOON_S = 0.02, 0.15  # writes wait for the next frame: where others may be under way, and where not
_PASSED_ON_S, _LOOK_S, _LOOKS = 0.15, 0.0005, 20
_OVERTAKEN_S = 0.02  # a frame waits for the writes before it, which another thread brings


class WaitAllowance:
    """Whether to wait for what someone else is about to bring. Where it was in vain, not the next few times."""

    def __init__(self) -> None:
        self._without = 0

    def left(self) -> bool:
        self._without = max(0, self._without - 1)
        return not self._without

    def lost(self) -> None:
        self._without = _HASTE


class Arrivals:
    """What one saver waits for."""

    def __init__(self) -> None:
        self._offload = WaitAllowance()  # for what other threads bring; there may be none that is free
        self.naming = WaitAllowance()  # for ids; there may be nobody who gives any

    def let_come(
        self,
        line: GraphLine,
        parent: str | None,
        checkpoint: Checkpoint,
        overtaking: Callable[[], Iterable[PendingWrite]],
    ) -> None:
        """Wait for what is to be saved with a checkpoint. ``overtaking`` is what was written on top of it already."""
        if _lasts(checkpoint):
            with line.lock:
                self.let_writes_come(line, parent)
                if not line.namespace and graphs.lone_turn(checkpoint["channel_values"]):
                    self.let_ids_come(line, checkpoint, overtaking)

    def let_writes_come(self, line: GraphLine, parent: str | None) -> None:
        """Let a frame be saved together with what the only task before it wrote.

        LangGraph gives the writes first and the frame next, each to a thread of its own, and now and then the second
        is faster. Then writes are an event and a commit of their own; that is as good, and takes more.
        """
        tip = line.tip
        if tip is None or tip.id != parent or parent in line.written or not is_lone(tip):
            return
        if self._offload.left() and not line.came.wait_for(lambda: parent in line.written, _OVERTAKEN_S):
            self._offload.lost()

    def let_ids_come(
        self, line: GraphLine, checkpoint: Checkpoint, overtaking: Callable[[], Iterable[PendingWrite]]
    ) -> None:
        """Let messages have their ids before they go into the log: those of an input, and those a node gave already.

        LangGraph gives a message its id when the node is done, the input's too, while the checkpoint before is still
        being saved. Of a message that gets it later a note is kept. Where nobody gives ids, nobody waits for long.
        """
        given = messages.nameless(checkpoint["channel_values"].get(_GIVEN))
        if given and not self._passed_on(line, checkpoint["id"]):
            return
        written = ({channel: value} for each in overtaking() for channel, value in each.writes)
        nameless = [*given, *chain.from_iterable(map(messages.nameless, written))]
        if not nameless or not self.naming.left():
            return
        for _ in range(_LOOKS):
            if all(message.id is not None for message in nameless):
                return
            line.came.wait(_LOOK_S)
        self.naming.lost()

    def _passed_on(self, line: GraphLine, checkpoint: str) -> bool:
        """Wait until an input is passed on to the graph, if someone is there to tell."""
        if not self._offload.left():
            return False
        came = line.came.wait_for(lambda: checkpoint in line.written, _PASSED_ON_S)
        if not came:
            self._offload.lost()
        return came

    def can_wait(self, line: GraphLine, writing: PendingWrite, *, lone: bool) -> bool:
        """Whether what a node wrote can wait for the frame that follows: not where it failed, or waits for someone."""
        follows = writing.path.startswith(NODE) and not any(name in WRITES_IDX_MAP for name, _ in writing.writes)
        # What passes the input on holds nobody up: made again, it is the same.
        return follows and (writing.path == START or self._patience(line, lone=lone).left())

    def let_frame_come(self, line: GraphLine, writing: PendingWrite, *, lone: bool) -> None:
        """Wait a moment for the frame that follows what a node wrote, to be saved with it by one commit."""
        writing.done.wait(_SOON_S if lone else _MOMENT_S)
        with line.lock:
            if writing in line.waiting:
                self._patience(line, lone=lone).lost()

    def _patience(self, line: GraphLine, *, lone: bool) -> WaitAllowance:
        return self._offload if lone else line.company


def is_lone(frame: Frame) -> bool:
    """Whether one node alone comes after a frame, so that what follows its writes is the next frame."""
    return graphs.lone_turn(graphs.held_in(frame))


def _lasts(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint can wait: the next node works with the very same objects, and may change what is in them."""
    values = {**checkpoint["channel_values"]}
    given = values.pop(_GIVEN, None)
    return all(map(messages.lasting, (*values.values(), *(given.values() if type(given) is dict else [given]))))
