"""What recall found, as pieces of a page: cited, dated, and no longer than it is worth.

What someone said in a few sentences is shown whole: half of it can mislead. Of essays, code and tool output the parts
that matter for the question are shown, more of what ranks first. On the page the best hit comes first, with the others
of its source below it. The same hits for the same question make the same bytes, whenever they are shown again.
Deliberately absent: searching, and choosing among hits (``relevance``).
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
_LEAST, _LINES = 4, 3  # tokens: of a text that is cut, and of line ends
_CLOSE = Extent(100, 50)
CLOSE = "None of this seems to answer; the closest:"
"""What stands above hits of which recall calls none relevant."""
_PER_TOKEN = 8  # characters; hardly a text has more, and counting an essay takes long


def extent(rank: int) -> Extent:
    """How much is shown of the hit at a rank, counted from 0: what is found late is worth a sentence or two."""
    return _FIRST if rank < 3 else _NEXT if rank < 10 else _REST


class Viewed(NamedTuple):
    """What hits are shown for: a question of a user at a time. ``answers``: whether any of them is relevant."""

    query: str
    now: datetime
    user: str | None
    answers: bool = True

    def extent(self, rank: int) -> Extent:
        return extent(rank) if self.answers else _CLOSE


def recalled(hits: Sequence[Hit], viewed: Viewed, count: Count, room: int | None = None) -> list[Piece]:
    """Hits, the best first; on the page by source, which is memories, files, or a day of a thread: the source of the
    best hit first, and in each the best first.

    Each names where it is from, so that it can be cited and looked up, and how old it is. With ``room`` only as many
    come as could fill so many tokens, and the best one is cut to it.
    """
    found: list[Piece] = []
    groups: dict[str, int] = {}
    for rank, hit in enumerate(hits):
        if room is not None and room <= 0:
            break
        piece = _piece(hit, viewed, viewed.extent(rank), count)
        if not found and room is not None:
            piece = _fitted(hit, piece, viewed, count, room)
        found.append(piece._replace(place=(groups.setdefault(piece.group, len(groups)), rank)))
        if room is not None:
            room -= count(piece.text)
    return found


def _fitted(hit: Hit, piece: Piece, viewed: Viewed, count: Count, room: int) -> Piece:
    """The best hit within some room: less of its text, as long as any of it fits."""
    room = part = room - count(piece.group) - _LINES
    while count(piece.text) > room and part > _LEAST:
        piece = _piece(hit, viewed, Extent(part, part), count)
        part -= max(count(piece.text) - room, 1)
    return piece


def _piece(hit: Hit, viewed: Viewed, extent: Extent, count: Count) -> Piece:
    text = _shown(_text(hit), viewed.query, extent, count)
    if hit.file is not None:
        return _file(hit, hit.file, text, viewed.now)
    return _memory(hit, hit.memory, text, viewed) if hit.memory else _entry(hit, text, viewed.now)


def _text(hit: Hit) -> str:
    return hit.memory.text if hit.memory else hit.text


def _shown(text: str, query: str, extent: Extent, count: Count) -> str:
    if _fits(text, extent.whole, count):
        return line(text)
    return line((glimpse if extent is _REST else excerpt)(text, query, extent.part, count))


def _fits(text: str, limit: int, count: Count) -> bool:
    """Whether a text has at most so many tokens; what is far too long is not counted."""
    return len(text) <= limit * _PER_TOKEN and count(text) <= limit


def _memory(hit: Hit, memory: Memory, text: str, viewed: Viewed) -> Piece:
    whose = "" if memory.subject == viewed.user or memory.key is None else f"{line(memory.subject)}: "
    when = f"{day(memory.valid_from)}, {age(memory.valid_from, viewed.now)}"
    about = f"{memory.id}, {when}{trust(memory, '; ')}{_doubts(hit)}"
    return Piece(hit.id, f"- {whose}{text} ({about})", group="Memories:")


def _file(hit: Hit, file: File, text: str, now: datetime) -> Piece:
    marked = f"; {MARKS[hit.trust]}" if hit.trust in MARKS else ""
    about = f"{line(hit.id)}, {day(file.time)}, {age(file.time, now)}{marked}"
    return Piece(hit.id, f"- {text} ({about})", group="Files:")


def _entry(hit: Hit, text: str, now: datetime) -> Piece:
    entry = hit.entry
    assert entry is not None
    said = voice(entry.kind, entry.content, hit.trust)
    who = said.speaker or said.tool or entry.kind
    group = f"{day(hit.time)} ({age(hit.time, now)}), {line(entry.thread)}:"
    if hit.trust in MARKS:
        who = f"{who} ({MARKS[hit.trust]})"
    doubts = f" ({_doubts(hit).removeprefix('; ')})" if _doubts(hit) else ""
    return Piece(hit.id, f"- #{entry.number} {line(who)}: {text}{doubts}", group=group)


def _doubts(hit: Hit) -> str:
    """What else was found that speaks against it."""
    superseded = f"; superseded by {hit.superseded_by}" if hit.superseded_by else ""
    return superseded + (f"; disputed by {', '.join(hit.disputed_by)}" if hit.disputed_by else "")
