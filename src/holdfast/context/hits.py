"""What recall found, as pieces of a page: cited, dated, and no longer than it is worth.

What someone said in a few sentences is shown whole: half of it can mislead. Of essays, code and tool output the parts
that matter for the question are shown, more of what ranks first. The same hits for the same question make the same
bytes, whenever they are shown again. Deliberately absent: searching, and choosing among the pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.context.excerpt import excerpt, glimpse
from holdfast.context.sections import MARKS, Count, Piece, day, line, trust
from holdfast.ledger.speech import voice
from holdfast.records import File, Hit, Memory
from holdfast.when.ages import age


class Extent(NamedTuple):
    """How much is shown of a text: all of it up to ``whole`` tokens, ``part`` tokens of a longer one."""

    whole: int
    part: int


EXCERPT = 120
"""How many tokens are shown of a long text that was found first."""
_FIRST, _NEXT, _REST = Extent(300, EXCERPT), Extent(300, 80), Extent(200, 50)
_PER_TOKEN = 8  # characters; hardly a text has more, and counting an essay takes long


def extent(rank: int) -> Extent:
    """How much is shown of the hit at a rank, counted from 0: what is found late is worth a sentence or two."""
    return _FIRST if rank < 3 else _NEXT if rank < 10 else _REST


def recalled(
    hits: Sequence[Hit], query: str, now: datetime, user: str | None, count: Count, room: int | None = None
) -> list[Piece]:
    """Hits, the best first; on the page memories first, then what was said, by day and thread, then files.

    Each names where it is from, so that it can be cited and looked up, and how old it is. With ``room`` only as many
    come as could fill so many tokens.
    """
    found: list[Piece] = []
    for rank, hit in enumerate(hits):
        if room is not None and room <= 0:
            break
        text = _shown(hit.memory.text if hit.memory else hit.text, query, extent(rank), count)
        if hit.file is not None:
            piece = _file(hit, hit.file, text, now)
        else:
            piece = _memory(hit, hit.memory, text, now, user) if hit.memory else _entry(hit, text, now)
        found.append(piece)
        if room is not None:
            room -= count(piece.text)
    return found


def _shown(text: str, query: str, extent: Extent, count: Count) -> str:
    if _fits(text, extent.whole, count):
        return line(text)
    return line((glimpse if extent is _REST else excerpt)(text, query, extent.part, count))


def _fits(text: str, limit: int, count: Count) -> bool:
    """Whether a text has at most so many tokens; what is far too long is not counted."""
    return len(text) <= limit * _PER_TOKEN and count(text) <= limit


def _memory(hit: Hit, memory: Memory, text: str, now: datetime, user: str | None) -> Piece:
    whose = "" if memory.subject == user or memory.key is None else f"{line(memory.subject)}: "
    about = f"{memory.id}, {day(memory.valid_from)}, {age(memory.valid_from, now)}{trust(memory, '; ')}{_doubts(hit)}"
    return Piece(hit.id, f"- {whose}{text} ({about})", (0, "", memory.valid_from, memory.id), "Memories:")


def _file(hit: Hit, file: File, text: str, now: datetime) -> Piece:
    marked = f"; {MARKS[hit.trust]}" if hit.trust in MARKS else ""
    about = f"{line(hit.id)}, {day(file.time)}, {age(file.time, now)}{marked}"
    return Piece(hit.id, f"- {text} ({about})", (2, file.folder, file.path, file.version), "Files:")


def _entry(hit: Hit, text: str, now: datetime) -> Piece:
    entry = hit.entry
    assert entry is not None
    said = voice(entry.kind, entry.content, hit.trust)
    who = said.speaker or said.tool or entry.kind
    group = f"{day(hit.time)} ({age(hit.time, now)}), {line(entry.thread)}:"
    if hit.trust in MARKS:
        who = f"{who} ({MARKS[hit.trust]})"
    place = (1, day(hit.time), entry.thread, entry.number)
    doubts = f" ({_doubts(hit).removeprefix('; ')})" if _doubts(hit) else ""
    return Piece(hit.id, f"- #{entry.number} {line(who)}: {text}{doubts}", place, group)


def _doubts(hit: Hit) -> str:
    """What else was found that speaks against it."""
    superseded = f"; superseded by {hit.superseded_by}" if hit.superseded_by else ""
    return superseded + (f"; disputed by {', '.join(hit.disputed_by)}" if hit.disputed_by else "")
