"""Gathering what there is to show for one context: of the log, the state, the handoff and the memories of a thread.

Only the end of a log is read, so it takes as long for a hundred thousand entries as for a hundred. Facts are shown as
they were known at a moment that stays the same for many turns, and what changed since comes with the input: so the
beginning of a page stays as it is. Deliberately absent: what sections say and how they are packed (``context``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from holdfast import atfork
from holdfast.clock import to_datetime
from holdfast.context import hits as cited
from holdfast.context import sections
from holdfast.context.budget import Share
from holdfast.context.masking import mask
from holdfast.context.pack import Material, Packed
from holdfast.context.page import Dropped
from holdfast.context.sections import Count, Piece
from holdfast.context.talk import Message, Stretch, Told, conversation, tell
from holdfast.errors import Invalid, quoted
from holdfast.ledger import schema as schemas
from holdfast.ledger.core import Core
from holdfast.memory.drafts import check_trust
from holdfast.providers.tokens.choose import check_name
from holdfast.records import Entry, EntryRef, Hit, Memory, Recalled
from holdfast.sessions.asked import sendable
from holdfast.sessions.known import Known, Sight
from holdfast.sessions.marks import SESSION, Marks, chain, is_event, marks_of, still_told
from holdfast.sessions.tails import READ, Tails

if TYPE_CHECKING:
    from holdfast.memories.handle import Memories
    from holdfast.memory.shelf import Standing
    from holdfast.thread import Thread


VERBATIM = 3
_PER_ENTRY = 24
_MARGIN = 32
_GRID = 64
_HITS = 200
_PER_HIT = 32
_QUERY = 2_000
_SUMMARIES = 8
_PROCEDURES = 200
_MASKS, _LONG = 2_048, 4_000


class Settings(TypedDict, total=False):
    """What else can be said of a context."""

    instructions: str
    shares: Mapping[str, Share | float | int]
    tokens: Any
    verbatim: int
    recall: bool
    within_ms: float | None
    trust: str | None
    state: Any


class Recent(NamedTuple):
    """The end of a log: its entries, the marks among them, the conversation since the newest mark, and how many entries
    of it a context would show at most."""

    entries: Sequence[Entry]
    marks: Marks
    stretches: Sequence[Stretch]
    shown: int


class Kept:
    """What is kept from one context to the next, because it is the same: ends of logs and the conversations in them,
    facts and procedures, and stand-ins."""

    def __init__(self) -> None:
        self.tails, self.known = Tails(), Known()
        self._told: dict[str, Told] = {}
        self._masks: OrderedDict[bytes, str] = OrderedDict()
        self._lock = atfork.lock()

    def conversation(self, thread: str, entries: Sequence[Entry]) -> list[Stretch]:
        """The conversation that entries of a thread hold."""
        told = tell(entries, self._told.get(thread))
        with self._lock:
            self._told[thread] = told
            for name in [name for name in self._told if name not in self.tails]:  # they would hold its entries
                del self._told[name]
        return told.stretches

    def stand_in(self, text: str, fetch: str) -> str:
        """What is shown for a tool's output that is some turns old. Making it takes time."""
        name = blake2b(f"{fetch}\0{text}".encode(errors="surrogatepass"), digest_size=16).digest()
        with self._lock:
            made = self._masks.get(name)
        if made is None:
            made = mask(text, fetch=fetch).text
            if len(made) > _LONG:
                return made
            with self._lock:
                self._masks[name] = made
                while len(self._masks) > _MASKS:
                    self._masks.popitem(last=False)
        return made


def check_settings(settings: Settings) -> None:
    if unknown := set(settings) - Settings.__annotations__.keys():
        known = ", ".join(sorted(Settings.__annotations__))
        raise Invalid(f"a context has no setting {', '.join(sorted(unknown))}; it has {known}")
    if not isinstance(settings.get("instructions", ""), str):
        raise Invalid("instructions are text")
    sendable(settings.get("instructions", ""), "the instructions have")
    if isinstance(tokens := settings.get("tokens"), str):
        check_name(tokens)
    if type(settings.get("recall", True)) is not bool:
        raise Invalid(f"recall is True or False, not {quoted(settings['recall'])}")
    if (trust := settings.get("trust")) is not None:
        check_trust(trust)
    within = settings.get("within_ms")
    if within is not None and (isinstance(within, bool) or not isinstance(within, int | float) or within <= 0):
        raise Invalid(f"within_ms is a number of milliseconds over 0, not {quoted(within)}")
    verbatim = settings.get("verbatim", VERBATIM)
    if type(verbatim) is not int or verbatim < 0:
        raise Invalid(f"verbatim is a number of turns, 0 or more, not {quoted(verbatim)}")


class Gathering:
    """What there is to show for one context."""

    def __init__(
        self,
        core: Core,
        thread: Thread,
        memory: Callable[..., Memories],
        asked: Message,
        settings: Settings,
        counting: tuple[Count, int],
        kept: Kept,
        apart: int | None = None,
    ) -> None:
        self._core, self._thread, self._asked, self._settings = core, thread, asked, settings
        (self._count, self._budget), self._kept = counting, kept
        self.now = to_datetime(core.clock.now())
        self._user, self._agent = thread._owner()
        self._memory = memory(user=self._user, agent=self._agent)
        self._apart = apart
        self._then: list[Memory] = []
        self._now_true: list[Memory] = []
        self.recalled: Recalled | None = None
        self.hits: list[Hit] = []

    def material(self, chosen: Mapping[str, Share]) -> Material:
        wanted = {name for name, share in chosen.items() if share.most > 0}
        entries = self._entries()
        marks = marks_of(entries)
        pieces = {name: make() for name, make in self._makers(marks).items() if name in wanted}
        if {"facts", "identity", "news"} & wanted:
            self._then, self._now_true, _ = self._known(entries, marks)
            pieces |= {name: made for name, made in self._facts().items() if name in wanted}
        return Material(
            input=self._asked,
            instructions=self._settings.get("instructions", ""),
            pieces=pieces,
            stretches=self._stretches(entries, marks) if "recent" in wanted else (),
            mask=self.masked,
            later={name: make for name, make in self._later().items() if name in wanted},
            moment=moment(self.now),
            verbatim=self._settings.get("verbatim", VERBATIM),
        )

    def masked(self, text: str, number: int) -> str:
        return self._kept.stand_in(text, f"{self._thread.id}#{number}")

    # The log

    def recent(self) -> Recent:
        entries = self._entries()
        marks = marks_of(entries)
        since = [entry for entry in still_told(entries) if entry.number >= marks.start - _MARGIN]
        stretches = [stretch for stretch in conversation(since) if stretch.first >= marks.start]
        return Recent(entries, marks, stretches, most_shown(self._budget))

    def _entries(self) -> list[Entry]:
        return [entry for entry in self._kept.tails.of(self._thread) if entry.number != self._apart]

    def _stretches(self, entries: Sequence[Entry], marks: Marks) -> list[Stretch]:
        """The conversation since the newest mark. What was read before it only tells which call a result is of."""
        entries = still_told(entries)
        start = max(marks.start, _shown_from(entries, self._budget))
        since = [entry for entry in entries if entry.number >= start - _MARGIN]
        told = self._kept.conversation(self._thread.id, since)
        return [stretch for stretch in told if stretch.first >= start]

    def _summaries(self, marks: Marks) -> list[Piece]:
        """The newest summary and those before it, as many as could be shown."""
        newest = islice(chain(marks, self._thread.entry), _SUMMARIES)
        listed = [(summary.first, summary.last, summary.text) for summary in newest]
        return sections.summaries(listed)

    # What is known

    def _makers(self, marks: Marks) -> dict[str, Callable[[], list[Piece]]]:
        return {
            "instructions": lambda: sections.procedures(
                self._kept.known.procedures(self._sight, _PROCEDURES, "stated")
            ),
            "handoff": lambda: sections.handoff(self._thread._standing()),
            "summary": lambda: self._summaries(marks),
            "state": self._state,
        }

    @cached_property
    def _sight(self) -> Sight:
        return Sight.of(self._memory._shelf)

    def _known(self, entries: Sequence[Entry], marks: Marks) -> Standing:
        """Facts as they were known at a moment that stays the same for many turns, and as they are now."""
        since = self._since(entries, marks)
        return self._kept.known.facts(self._sight, since, self._settings.get("trust"))

    def _facts(self) -> dict[str, list[Piece]]:
        return {
            "identity": sections.identity(self._user, self._agent, self._then),
            "facts": sections.known(self._then, self._user),
        }

    def _later(self) -> dict[str, Callable[[int, Packed], list[Piece]]]:
        recalls = self._settings.get("recall", True)
        return {"news": self._news, "recalled": self._find} if recalls else {"news": self._news}

    def _news(self, room: int, packed: Packed) -> list[Piece]:
        """What became true since the facts at the top were known. What the window itself says is not said again."""
        said = frozenset(EntryRef(self._thread.id, number) for number in packed.window.whole)
        return sections.news(self._then, self._now_true, said, self._user)

    def _since(self, entries: Sequence[Entry], marks: Marks) -> datetime:
        """A moment that stays the same for many turns: of the newest mark, or of an entry with a round number."""
        if not entries:
            return self.now
        ended = next((entry.number for entry in reversed(entries) if is_event(entry, SESSION)), 0)  # with its cache
        number = max(ended, 0 if marks.summary is None else marks.summary[0])
        if number:
            return next((entry.time for entry in entries if entry.number == number), self.now)
        round_number = entries[-1].number // _GRID * _GRID
        return next((entry.time for entry in entries if entry.number >= round_number), entries[0].time)

    def _state(self) -> list[Piece]:
        loaded = self._thread.state(self._settings.get("state"))
        shown = schemas.dump(loaded.value) if loaded else None
        if isinstance(shown, dict):
            shown.pop("pydantic_ai", None)  # what that adapter keeps beside the state is no part of it
        return sections.state(loaded, shown)

    # What is recalled

    def _find(self, room: int, packed: Packed) -> list[Piece]:
        """Hits that the page does not show already, the best first."""
        query = self._asked.text
        if len(query) > _QUERY:
            query = f"{query[: _QUERY // 2]} {query[-_QUERY // 2 :]}"
        if not query.strip():
            return []
        k = max(10, min(_HITS, room // _PER_HIT))
        self.recalled = self._memory.recall(
            query, k, within_ms=self._settings.get("within_ms"), trust=self._settings.get("trust")
        )
        shown = {piece.id for pieces in packed.chosen.values() for piece in pieces}
        numbers = packed.window.whole
        self.hits = [hit for hit in self.recalled if hit.id not in shown and not self._is_here(hit, numbers)]
        if len(self.recalled) == k:
            packed.dropped.append(Dropped("recalled", f"whatever ranks after the first {k} hits", "no room"))
        pieces = cited.recalled(self.hits, self._asked.text[:_QUERY], self.now, self._user, self._count, room)
        if (more := len(self.hits) - len(pieces)) > 0:
            packed.unmade["recalled"] = more
            packed.dropped.append(Dropped("recalled", f"{more} more hits", "no room in its section"))
        return pieces

    def _is_here(self, hit: Hit, numbers: frozenset[int]) -> bool:
        """Whether a hit is in the window, was learned from what is in it, or is the input itself."""
        if hit.memory is not None:
            refs = hit.memory.origin.entries
            return bool(refs) and all(ref.thread == self._thread.id and ref.number in numbers for ref in refs)
        if hit.entry is None or hit.entry.thread != self._thread.id:
            return False
        return hit.entry.number in numbers or hit.entry.number == self._apart


def moment(now: datetime) -> str:
    """What a context says of the time."""
    return f"Now: {now:%Y-%m-%d %H:%M} UTC, {now:%A}"


def most_shown(budget: int) -> int:
    """How many entries are looked at for the window of a budget."""
    return max(192, min(READ - 160, budget // _PER_ENTRY))


def _shown_from(entries: Sequence[Entry], budget: int) -> int:
    """The first entry that could be shown at all. It stays the same for many turns."""
    first = 0 if not entries else max(entries[0].number, entries[-1].number - most_shown(budget))
    return first if first <= 1 else -(-first // _GRID) * _GRID
