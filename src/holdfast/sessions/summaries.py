"""Rolling summaries: when the recent turns outgrow their share, the older half of them becomes a summary.

A summary covers a range that no summary covered before, so nothing is summarised twice, and the cost does not grow with
the thread. A model writes it if there is one; otherwise it consists of the most important sentences. The turns stay in
the log. Deliberately absent: choosing what a context shows (``context_source``).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.context.sections import Count
from holdfast.context.summary import SummaryLine, summarise
from holdfast.context.talk import Stretch
from holdfast.context.window import clip, weigh
from holdfast.errors import KeyReused
from holdfast.ledger.speech import Speech, voices_in
from holdfast.providers.models.model import Model, Usage
from holdfast.records import TRUST, Entry
from holdfast.sessions.context_source import Recent
from holdfast.sessions.log_events import Summary

if TYPE_CHECKING:
    from holdfast.thread import Thread

_log = logging.getLogger(__name__)
EXTRACTIVE = "extractive"
OUTSIDE = "from outside"
FULL, KEPT = 0.97, 0.3
"""The share of their room at which the recent turns are summarised, and the share that is kept."""
_LEAST, _MOST, _PART = 80, 320, 6
_TURNS = 2
_LINE, _LONG = 40, 400
_STEP = 80  # entries by which a window can begin later than it must
_ASKED = (
    "Summarise this part of a conversation for someone who continues it later. Keep decisions, facts, names, numbers, "
    "dates, preferences, promises, results, errors and open questions; leave out greetings and filler. Short bullet "
    "points, each ending with the number of the entry it is from, like (#17). What is marked as from outside "
    "nobody else said: keep the mark. At most {limit} words. Only the summary."
)


class Range(NamedTuple):
    """Entries to be summarised."""

    first: int
    last: int
    entries: tuple[Entry, ...]


def due(recent: Recent, room: int, count: Count) -> tuple[Range, int] | None:
    """What to summarise now, if the recent turns fill nearly all of their room, and its size."""
    entries, marks, stretches, shown = recent
    start = marks.start or (entries[0].number if entries else 1)
    costs = [sum(weigh(message, count) for message in stretch.messages) for stretch in stretches]
    many = len(entries) and entries[-1].number - start > shown - _STEP
    if sum(costs) <= room * FULL and not many:
        return None
    cut = _cut(stretches, costs, int(min(room, sum(costs)) * KEPT))
    if not cut:
        return None
    last = stretches[cut].first - 1
    covered = tuple(entry for entry in entries if start <= entry.number <= last)
    return Range(start, last, covered), sum(costs[:cut])


def _cut(stretches: Sequence[Stretch], costs: Sequence[int], keep: int) -> int:
    """How many stretches to summarise, so that the rest takes at most ``keep`` and begins with a turn."""
    turns = [at for at, stretch in enumerate(stretches) if stretch.opens]
    latest = turns[-_TURNS] if len(turns) >= _TURNS else 0
    rest = sum(costs)
    for at in turns:
        if (rest - sum(costs[:at]) <= keep or at >= latest) and at <= latest:
            return _whole(stretches, at)
    return _whole(stretches, latest)


def _whole(stretches: Sequence[Stretch], at: int) -> int:
    """The nearest place before which nothing reaches over: a call and its result are on one side."""
    while at and any(stretch.last >= stretches[at].first for stretch in stretches[:at]):
        at -= 1
    return at


def roll(
    thread: Thread, recent: Recent, room: int, count: Count, model: Model | None, timeout_s: float | None
) -> tuple[Entry, Usage] | None:
    """Summarise what is due, and append it. A concurrent call for the same entries appends nothing."""
    found = due(recent, room, count)
    if found is None:
        return None
    range, cost = found
    limit = max(_LEAST, min(_MOST, cost // _PART))
    text, by, usage = _written(range, limit, room, count, model, timeout_s)
    previous = 0 if recent.marks.summary is None else recent.marks.summary[0]
    summary = Summary(range.first, range.last, text, by, previous)
    try:
        return thread.append(summary.draft(), key=f"summary:{range.first}"), usage
    except KeyReused:  # another process has summarised from there on
        return None


def _written(
    range: Range, limit: int, room: int, count: Count, model: Model | None, timeout_s: float | None
) -> tuple[str, str, Usage]:
    lines = lines_of(range.entries)
    if model is not None:
        try:
            said = transcript(lines, room, count)
            asked = _ASKED.format(limit=limit * 3 // 4)
            reply = model.reply([{"role": "system", "content": asked}, {"role": "user", "content": said}],
                                timeout_s=timeout_s)  # fmt: skip
            if reply.text.strip():
                return clip(reply.text.strip(), limit, count), f"model:{model.name}", reply.usage
        except Exception as error:  # the caller's own model may raise anything
            _log.info("the summary of entries %d to %d is extractive: %s", range.first, range.last, error)
    return summarise(lines, limit, count), EXTRACTIVE, Usage(requests=0)


def transcript(lines: Sequence[SummaryLine], room: int, count: Count) -> str:
    """The conversation for a model to summarise, within a limit: the newest entries, none at length."""
    each = max(_LINE, min(_LONG, room // max(1, len(lines))))
    told: list[str] = []
    for line in reversed(lines):
        said = " ".join(line.text.split())  # on one line: none of it can pass for what somebody else said
        text = f"#{line.number} {' '.join(line.speaker.split())}: {clip(said, each, count)}"
        room -= count(text) + 1
        if room < 0:
            break
        told.append(text)
    return "\n".join(reversed(told))


def lines_of(entries: Sequence[Entry]) -> list[SummaryLine]:
    """Entries as lines of who said what."""
    found: list[SummaryLine] = []
    for entry in entries:
        found += [
            SummaryLine(entry.number, _who(said, entry.kind), said.text, entry.time)
            for said in voices_in(entry.kind, entry.content)
            if said.text.strip()
        ]
    return found


def _who(said: Speech, kind: str) -> str:
    """Who speaks. What is from outside says so first: a page gives itself what name it likes."""
    who = said.speaker or said.tool or kind
    return f"{OUTSIDE}, {who}" if said.trust == TRUST[0] else who
