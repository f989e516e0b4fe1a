"""Lessons: which answers are to be learned from, and which of those nobody has begun to learn from.

An answer that is to be learned from says so in the usage that is committed with it: how (``learn``), and up to which
entry of the log nothing was left to learn from (``learned``). So a kill right behind that commit loses nothing, whoever
comes next looks at a few entries only, and a session without learning leaves nothing to do. Deliberately absent:
learning with a model (``learning``), and when any of it is done.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.engine.codec import encode
from holdfast.engine.contract import Event
from holdfast.memories import learning as rules
from holdfast.records import Entry, Memory
from holdfast.sessions.marks import SESSION, USAGE, is_event

if TYPE_CHECKING:
    from holdfast.memories.handle import Memories

LEARNER = "holdfast.learn"
BY_MODEL, BY_RULES = "model", "rules"
MOST = 8
"""How many answers are looked at. What cannot be learned from is tried in each turn, until so many more have come."""


def run_name(question: Entry, usage: Entry) -> str:
    """The run in which a model is asked about a turn. Another answer to the question teaches anew."""
    return f"learn-{question.number}-{usage.digest.hex()[:8]}"


def missed(entries: Sequence[Entry], known: Container[bytes]) -> list[Entry]:
    """The usages at the end of a log whose answers may not have been learned from, but for those with a known digest.

    The entries are read from their end, and no further than somebody saw that nothing is left.
    """
    found: list[Entry] = []
    upto = answers = 0
    for entry in reversed(entries):
        if entry.number <= upto or answers == MOST:
            break
        answered = is_event(entry, USAGE)
        if not answered and not is_event(entry, SESSION):
            continue
        said = entry.content.get("learned")
        if type(said) is int and said < entry.number:  # one from before a rewind tells of entries that are gone
            upto = max(upto, said)
        if answered and _teaches(entry.content):
            answers += 1
            if entry.digest not in known:
                found.append(entry)
    return found[::-1]


def _teaches(usage: dict[str, Any]) -> bool:
    return usage.get("learn") in (BY_MODEL, BY_RULES) and type(usage.get("question")) is int


def upto(entries: Sequence[Entry], left: Sequence[Entry]) -> int:
    """The entry up to which nothing is left to learn from, where these are left."""
    if left:
        return left[0].number - 1
    return entries[-1].number if entries else 0


def by_rules(memory: Memories, entries: Sequence[Entry]) -> tuple[Memory, ...]:
    """Learn from the entries of one turn without a model. Doing it again changes nothing."""
    messages = [entry for entry in entries if entry.kind == "message"]
    return tuple(
        found
        for entry in messages
        for found in rules.learned_from(memory._core, memory._shelf, entry.thread, _event(entry))
    )


def _event(entry: Entry) -> Event:
    return Event(entry.kind, encode(entry.content), entry.time_us, entry.key, entry.number, entry.digest)
