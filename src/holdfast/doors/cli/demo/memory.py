"""What the second agent of the demonstration is asked about the time before it was started, and how it finds it.

It has the store and the questions. Which answers are right is not known here: what was found is told to the parent,
which compares it with what the first agent acknowledged. Deliberately absent: a key, a model to talk to, a server.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import holdfast
from holdfast.doors.cli.demo.child import tell
from holdfast.doors.cli.demo.process import ms_since
from holdfast.doors.cli.demo.script import QUESTIONS, ScriptedQuestion

_HITS = 3


class Connections:
    """Counts the connections that Python code of this process opens, from the moment this is made."""

    def __init__(self) -> None:
        self.opened = 0
        sys.addaudithook(self._notice)

    def _notice(self, event: str, arguments: tuple[Any, ...]) -> None:
        self.opened += event == "socket.connect"


def ask(memory: holdfast.Memories) -> None:
    """Ask every question, and tell of each what was found, how long that took and whether anyone else was asked."""
    connections = Connections()
    for question in QUESTIONS:
        before, began = connections.opened, time.perf_counter()
        found = memory.recall(question.asks, _HITS)
        tell(
            "recalled", asks=question.asks, turn=question.turn, key=question.key, ms=ms_since(began),
            connections=connections.opened - before, relevant=found.relevant, confidence=found.confidence,
            model=found.report.model, history=_history(memory, question),
            hits=[{"id": hit.id, "memory": hit.memory is not None, "text": hit.text} for hit in found],
        )  # fmt: skip


def _history(memory: holdfast.Memories, question: ScriptedQuestion) -> list[dict[str, str]]:
    versions = [] if question.key is None else memory.history(question.key)
    return [{"id": version.memory.id, "text": version.memory.text} for version in versions]
