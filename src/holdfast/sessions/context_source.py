"""What goes into one context: found in the log, the state, the handoff and the memories of a thread, and packed.

Only the end of a log is read, so it takes as long for a hundred thousand entries as for a hundred. Facts are shown as
they were known at a moment that stays the same for many turns, and later changes come with the input, so that the
beginning of a page stays the same. Earlier hits are read again by id: as they are now, or not at all. A
builder keeps the last page of a thread, to report how much of it a provider's cache still has.
Deliberately absent: what sections say and how they are packed (``context``), and calling a model. Nothing is written.
"""

from __future__ import annotations

import time as _time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from holdfast import atfork
from holdfast.atfork import cached_property
from holdfast.clock import to_datetime
from holdfast.context import allowance, relevance, sections
from holdfast.context import hits as cited
from holdfast.context.allowance import Allowance, Cap
from holdfast.context.budget import Share, beside, checked_shares, shares, too_small
from holdfast.context.masking import LIMIT, least, mask
from holdfast.context.pack import Material, Packed, measure, pack
from holdfast.context.page import Dropped, Page
from holdfast.context.report import Context, ContextReport, SectionReport
from holdfast.context.sections import Count, Piece
from holdfast.context.talk import ConversationSoFar, Message, Stretch, conversation, tell
from holdfast.context.window import Viewing, choose, weigh
from holdfast.engine.contract import Mark, Scope
from holdfast.errors import Corrupt, HoldfastError, Invalid, Unsupported, quoted
from holdfast.ledger import log, speech
from holdfast.ledger import schema as schemas
from holdfast.ledger.core import Core
from holdfast.ledger.files import FILE, text_of
from holdfast.ledger.folder import Folder
from holdfast.ledger.speech import voices, without_framework
from holdfast.memory.drafts import check_trust
from holdfast.memory.extraction import DECISION
from holdfast.providers.tokens.choose import check_name
from holdfast.records import TRUST, Entry, EntryRef, Hit, Memory, Recalled
from holdfast.sessions.cache import FactCache, LogCache, MemoryPosition
from holdfast.sessions.log_events import SESSION, SessionEvents, chain, is_event, marks_of, still_told
from holdfast.sessions.turn import asked_of, sendable
from holdfast.thread import handoff_now

if TYPE_CHECKING:
    from holdfast.memory.handle import Memories
    from holdfast.memory.visible import FactsThenAndNow
    from holdfast.providers.tokens.counting import Counted
    from holdfast.thread import Thread


def again(core: Core, memory: Memories, ids: Sequence[str], trust: str | None) -> list[Hit]:
    """The hits of these ids that still exist, in the same order, without forgotten, erased or less trusted ones.

    An entry in which two voices speak has a hit for each.
    """
    found = (hit for id in dict.fromkeys(ids) for hit in _again(core, memory, id))
    return [hit for hit in found if trust is None or TRUST.index(hit.trust) >= TRUST.index(trust)]


def _again(core: Core, memory: Memories, id: str) -> list[Hit]:
    if id.rpartition("#")[2].isdecimal():  # a file's id ends with its version, behind an @
        return _entry(core, memory, id)
    hit = _file(core, memory, id) if "/" in id else _memory(memory, id)
    return [] if hit is None else [hit]


def _sees(own: Scope, theirs: Scope) -> bool:
    """Whether a handle may see what a thread says, by the rule of recall: its own user's, with its own agent or any."""
    return theirs.user == own.user and (own.agent is None or theirs.agent in (None, own.agent))


def _memory(memory: Memories, id: str) -> Hit | None:
    try:
        one = memory.get(id)
    except HoldfastError:
        return None
    return None if one.forgotten_at is not None else Hit(one.text, 0.0, one.kind, one.valid_from, one.trust, one)


def _entry(core: Core, memory: Memories, id: str) -> list[Hit]:
    """What is said in an entry of a thread that this handle may see."""
    thread, _, number = id.rpartition("#")
    record = core.engine.get(core.tenant, "thread", thread)
    if record is None or not number.isdecimal() or not _sees(memory.visible.scope, record.scope):
        return []
    place = int(number)
    if not 1 <= place <= record.head:
        return []
    events = core.engine.read(core.tenant, Mark(record.mark.stream, place), after=place - 1)
    with suppress(Corrupt, Unsupported):
        return [
            Hit(said.text, 0.0, event.kind, to_datetime(said.time), said.trust, entry=log.to_entry(thread, event))
            for event in events[:1]
            for said in voices(event)
        ]
    return []


def _file(core: Core, memory: Memories, id: str) -> Hit | None:
    """A file that this handle may see, in the version that was found. Folder and path may both hold a slash."""
    named, _, version = id.rpartition("@")
    own, parts = memory.visible.scope, named.split("/")
    agents = [own.agent, None] if own.agent is not None else [None]
    owners = [Scope(user, agent) for user in dict.fromkeys((own.user, None)) for agent in agents]
    for owner in owners if version.isdecimal() else []:
        for at in range(1, len(parts)):
            with suppress(HoldfastError):
                file = Folder(core, "/".join(parts[:at]), owner).read("/".join(parts[at:]))
                if file.version == int(version):
                    return Hit(text_of(file.content), 0.0, FILE, file.time, "stated", file=file)
    return None


VERBATIM = 3
_PER_ENTRY = 24
_MARGIN = 32
_GRID = 64
_BEFORE = 160  # entries before those that may be shown: marks stand there, and calls that results are of
_MOST_SHOWN = 20_000
_HITS, _LEAST_HITS = 200, 100  # of fewer hits none might be far below the best
_PER_HIT = 32
_QUERY = 2_000
_SUMMARIES = 8
_PROCEDURES = 200
_MASKS = 2_048


class Settings(TypedDict, total=False):
    """Further settings of a context."""

    instructions: str
    shares: Mapping[str, Share | float | int]
    tokens: Any
    verbatim: int
    mask_tokens: int
    recall: bool
    within_ms: float | None
    trust: str | None
    state: Any


class Recent(NamedTuple):
    """The end of a log: its entries, the marks among them, the conversation since the newest mark, and how many entries
    of it a context would show at most."""

    entries: Sequence[Entry]
    marks: SessionEvents
    stretches: Sequence[Stretch]
    shown: int


class SessionCache:
    """What is kept from one context to the next, because it is the same: ends of logs and the conversations in them,
    facts and procedures, and stand-ins."""

    def __init__(self) -> None:
        self.tails, self.known = LogCache(), FactCache()
        self._told: dict[str, ConversationSoFar] = {}
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

    def stand_in(self, text: str, fetch: str, count: Count, most: int) -> str:
        """The stand-in for a tool's output that is some turns old. Making it takes time."""
        name = blake2b(f"{fetch}\0{most}\0{text}".encode(errors="surrogatepass"), digest_size=16).digest()
        with self._lock:
            made = self._masks.get(name)
        limit = max(most, least(fetch, count))
        if made is None or count(made) > limit:  # another counter counts otherwise
            made = mask(text, fetch=fetch, count=count, limit=limit).text
            with self._lock:
                self._masks[name] = made
                while len(self._masks) > _MASKS:
                    self._masks.popitem(last=False)
        return made


def owner_of(thread: Thread) -> tuple[str | None, str | None]:
    """The owner of a thread: its recorded user, and its agent or the one that the handle names."""
    scope = thread.logbook.owner()
    return scope.user, scope.agent or thread.logbook.scope.agent


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
    if within is not None and (isinstance(within, bool) or not isinstance(within, int | float) or not 0 < within < 1e9):
        raise Invalid(f"within_ms is a number of milliseconds over 0 and under 1e9, not {quoted(within)}")
    verbatim = settings.get("verbatim", VERBATIM)
    if type(verbatim) is not int or verbatim < 0:
        raise Invalid(f"verbatim is a number of turns, 0 or more, not {quoted(verbatim)}")
    most = settings.get("mask_tokens", LIMIT)
    if type(most) is not int or most < 1:
        raise Invalid(f"mask_tokens is a number of tokens over 0, not {quoted(most)}")


class ContextSource:
    """The material for one context."""

    def __init__(
        self,
        core: Core,
        thread: Thread,
        memory: Callable[..., Memories],
        asked: Message,
        settings: Settings,
        counting: tuple[Count, int],
        kept: SessionCache,
        apart: int | None = None,
    ) -> None:
        self._core, self._thread, self._asked, self._settings = core, thread, asked, settings
        (self._count, self._budget), self._kept = counting, kept
        self.now = to_datetime(core.clock.now())
        self._user, self._agent = owner_of(thread)
        self._memory = memory(user=self._user, agent=self._agent)
        self._apart = apart
        self._then: list[Memory] = []
        self._now_true: list[Memory] = []
        self.recalled: Recalled | None = None
        self.hits: list[Hit] = []
        self.elsewhere: frozenset[str] = frozenset()

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
        most = self._settings.get("mask_tokens", LIMIT)
        return self._kept.stand_in(text, f"{self._thread.id}#{number}", self._count, most)

    # The log

    def recent(self) -> Recent:
        entries = self._entries()
        marks = marks_of(entries)
        since = [entry for entry in still_told(entries) if entry.number >= marks.start - _MARGIN]
        stretches = [stretch for stretch in conversation(since) if stretch.first >= marks.start]
        return Recent(entries, marks, stretches, most_shown(self._budget))

    def _entries(self) -> list[Entry]:
        most = most_shown(self._budget) + _BEFORE
        return [entry for entry in self._kept.tails.of(self._thread, most) if entry.number != self._apart]

    def _stretches(self, entries: Sequence[Entry], marks: SessionEvents) -> list[Stretch]:
        """The conversation since the newest mark. What was read before it only tells which call a result is of."""
        entries = still_told(entries)
        start = max(marks.start, _shown_from(entries, self._budget))
        since = [entry for entry in entries if entry.number >= start - _MARGIN]
        told = self._kept.conversation(self._thread.id, since)
        return [stretch for stretch in told if stretch.first >= start]

    def _summaries(self, marks: SessionEvents) -> list[Piece]:
        """The newest summary and those before it, as many as could be shown."""
        newest = islice(chain(marks, self._thread.entry), _SUMMARIES)
        listed = [(summary.first, summary.last, summary.text) for summary in newest]
        return sections.summaries(listed)

    # What is known

    def _makers(self, marks: SessionEvents) -> dict[str, Callable[[], list[Piece]]]:
        return {
            "instructions": lambda: sections.procedures(
                self._kept.known.procedures(self._sight, _PROCEDURES, "stated")
            ),
            "handoff": lambda: sections.handoff(handoff_now(self._thread)),
            "summary": lambda: self._summaries(marks),
            "state": self._state,
        }

    @cached_property
    def _sight(self) -> MemoryPosition:
        return MemoryPosition.of(self._memory.visible)

    def _known(self, entries: Sequence[Entry], marks: SessionEvents) -> FactsThenAndNow:
        """Facts as known at a moment that stays the same for many turns, and as they are now."""
        since = self._since(entries, marks)
        return self._kept.known.facts(self._sight, since, self._settings.get("trust"))

    def _facts(self) -> dict[str, list[Piece]]:
        return {
            "identity": sections.identity(self._user, self._agent, self._then),
            # Decisions are many, and matter when their subject comes up: then they are recalled.
            "facts": sections.known([fact for fact in self._then if fact.type != DECISION], self._user),
        }

    def _later(self) -> dict[str, Callable[[int, Packed], list[Piece]]]:
        recalls = self._settings.get("recall", True)
        return {"news": self._news, "recalled": self._find} if recalls else {"news": self._news}

    def _news(self, room: int, packed: Packed) -> list[Piece]:
        """What became true since the facts at the top were known, without what the window itself says."""
        said = frozenset(EntryRef(self._thread.id, number) for number in packed.window.whole)
        return sections.news(self._then, self._now_true, said, self._user)

    def _since(self, entries: Sequence[Entry], marks: SessionEvents) -> datetime:
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
            shown = without_framework(shown)
        return sections.state(loaded, shown)

    # What is recalled

    def _find(self, room: int, packed: Packed) -> list[Piece]:
        """Hits that the page does not already show, best first."""
        query = self._asked.text
        if len(query) > _QUERY:
            query = f"{query[: _QUERY // 2]} {query[-_QUERY // 2 :]}"
        if not query.strip():
            return []
        k = max(_LEAST_HITS, min(_HITS, room // _PER_HIT))
        self.recalled = self._memory.recall(
            query, k, within_ms=self._settings.get("within_ms"), trust=self._settings.get("trust")
        )
        elsewhere = self._elsewhere(packed)
        kept = relevance.relevant(self.recalled.hits, self.recalled.relevant)
        self.hits = [hit for hit in kept if hit.id not in elsewhere]
        self.elsewhere = frozenset(elsewhere)
        self._leave_out(packed, {hit.id for hit in kept} | elsewhere, k)
        if not self.recalled.relevant:
            packed.leads["recalled"] = cited.CLOSE
        viewed = cited.Viewed(self._asked.text[:_QUERY], self.now, self._user, self.recalled.relevant)
        pieces = cited.recalled(self.hits, viewed, self._count, room - packed.heading("recalled"))
        if (more := len(self.hits) - len(pieces)) > 0:
            packed.unmade["recalled"] = packed.unmade.get("recalled", 0) + more
            packed.dropped.append(Dropped("recalled", f"{more} more hits", "no room in its section"))
        return pieces

    def _leave_out(self, packed: Packed, kept: Set[str], k: int) -> None:
        """Say which hits have no place on the page, and why."""
        assert self.recalled is not None
        far = [hit.id for hit in self.recalled if hit.id not in kept]
        why = "far below the best hit" if self.recalled.relevant else "nothing that was found is relevant"
        packed.leave_out("recalled", far, why)
        packed.unmade["recalled"] = len(far)
        if len(self.recalled) == k and self.recalled.relevant:
            packed.dropped.append(Dropped("recalled", f"hits after the first {k}", "no room"))

    def _elsewhere(self, packed: Packed) -> set[str]:
        """The hits that the page shows in another section, or that say no more than its facts."""
        assert self.recalled is not None
        shown = {piece.id for pieces in packed.chosen.values() for piece in pieces}
        said = relevance.SaidByFacts([fact for fact in self._now_true if fact.id in shown])
        whole = packed.window.whole
        return {
            hit.id for hit in self.recalled if hit.id in shown or self._is_here(hit, whole) or said.has(hit, self._user)
        }

    def _is_here(self, hit: Hit, numbers: frozenset[int]) -> bool:
        """Whether a hit is in the window, was learned from what is in it, or is the input itself."""
        if hit.memory is not None:
            refs = hit.memory.origin.entries
            return bool(refs) and all(ref.thread == self._thread.id and ref.number in numbers for ref in refs)
        if hit.entry is None or hit.entry.thread != self._thread.id:
            return False
        return hit.entry.number in numbers or hit.entry.number == self._apart


def moment(now: datetime) -> str:
    """The line of a context that gives the time."""
    return f"Now: {now:%Y-%m-%d %H:%M} UTC, {now:%A}"


def most_shown(budget: int) -> int:
    """How many entries are looked at for the window of a budget."""
    return max(192, min(_MOST_SHOWN, budget // _PER_ENTRY))


def _shown_from(entries: Sequence[Entry], budget: int) -> int:
    """The first entry that could be shown at all. It stays the same for many turns."""
    first = 0 if not entries else max(entries[0].number, entries[-1].number - most_shown(budget))
    return first if first <= 1 else -(-first // _GRID) * _GRID


_PAGES, _COUNTERS = 256, 16


class Builder:
    """Builds the contexts of one store."""

    def __init__(
        self,
        core: Core,
        memory: Callable[..., Memories],
        counter: Callable[[Any], Counted],
        cap: Cap | None = None,
    ) -> None:
        self._core, self._memory, self._choose, self._cap = core, memory, counter, cap
        self._counters: dict[str | None, Counted] = {}
        self._pages: OrderedDict[str, tuple[Page, Allowance]] = OrderedDict()
        self._kept = SessionCache()
        self._lock = atfork.lock()

    def forget(self) -> None:
        """Forget everything kept from threads: something was erased."""
        with self._lock:
            self._pages.clear()
        self._kept = SessionCache()
        for counter in list(self._counters.values()):
            counter.clear()

    def counter(self, spec: Any) -> Counted:
        """The token counter: for a model, by the name of an encoding, or the caller's own. It caches its counts."""
        if spec is not None and not isinstance(spec, str):
            return self._choose(spec)
        known = self._counters.get(spec)
        if known is None:
            known = self._choose(spec)
            with self._lock:
                self._counters[spec] = known
                while len(self._counters) > _COUNTERS:
                    del self._counters[next(iter(self._counters))]
        return known

    def allowance(self, budget: int | None, model: str | None, window: int | None = None) -> Allowance:
        """How many tokens a context may have: as given, or by the model's window; and never over the store's cap."""
        from holdfast.providers.tokens.prices import affordable  # noqa: PLC0415 - few ask for these tables
        from holdfast.providers.tokens.windows import window_of  # noqa: PLC0415

        if budget is not None:
            found = allowance.given(budget)
        elif window is not None:
            found = allowance.by_window(model, window)
        else:
            known = None if model is None else window_of(model)
            found = allowance.by_window(model, *((None, None) if known is None else (known.tokens, known.output)))
        return allowance.capped(found, self._cap, lambda dollars: affordable(dollars, model))

    def check(self, input: Any, budget: int, settings: Settings) -> None:
        """Refuse an input that no context could hold, before it is recorded."""
        check_settings(settings)
        count = self.counter(settings.get("tokens")).count
        asked, own = asked_of(input), settings.get("instructions", "").strip()
        now = f"<state>\n{moment(to_datetime(self._core.clock.now()))}\n</state>"
        bare = Page("" if not own else f"# Instructions\n{own}", (), "", "", now, asked, {})
        if (needed := measure(bare, count)) > budget:
            raise too_small(needed, budget, "the input takes" if not own else "input and instructions take")

    def entries(self, thread: Thread) -> Sequence[Entry]:
        """The end of a thread's log. Do not change it."""
        return self._kept.tails.of(thread)

    def seen(self, thread: Thread) -> Sequence[Entry]:
        """The same as last read, without asking the store."""
        return self._kept.tails.seen(thread)

    def recent(self, thread: Thread, budget: int, settings: Settings) -> Recent:
        """The conversation of a thread since its newest mark, as a context would show it, had it room for all."""
        return self._gathering(thread, Message("user"), settings, budget).recent()

    def weight(self, thread: Thread, budget: int, settings: Settings) -> int:
        """What the conversation of a thread since the last handoff takes: its summaries, and its turns as they would be
        shown if there were room for all."""
        count = self.counter(settings.get("tokens")).count
        gathering = self._gathering(thread, Message("user"), settings, budget)
        _, marks, stretches, _ = gathering.recent()
        viewing = Viewing(settings.get("verbatim", VERBATIM), gathering.masked, budget // 2)
        shown = choose(stretches, 100 * budget, viewing, count).messages
        summaries = (count(summary.text) for summary in chain(marks, thread.entry))
        return sum(summaries) + sum(weigh(message, count) for message in shown)

    def _gathering(
        self,
        thread: Thread,
        asked: Message,
        settings: Settings,
        budget: int,
        apart: int | None = None,
    ) -> ContextSource:
        count = self.counter(settings.get("tokens")).count
        return ContextSource(self._core, thread, self._memory, asked, settings, (count, budget), self._kept, apart)

    def build(
        self,
        thread: Thread,
        input: Any,
        allowed: Allowance,
        model: str | None,
        settings: Settings,
        *,
        apart: int | None = None,
    ) -> Context:
        """See ``Store.context``. ``apart`` is the entry that is the input itself."""
        began = _time.perf_counter()
        check_settings(settings)
        asked = asked_of(input)
        budget, chosen = allowed.tokens, shares({**allowed.shares, **checked_shares(settings.get("shares"))})
        tokens = settings.get("tokens")
        counter = self.counter(model if tokens is None else tokens)
        settings = {**settings, "tokens": counter}
        gathering = self._gathering(thread, asked, settings, budget, apart)
        material = gathering.material(chosen)
        if material.stretches and "recalled" not in {*allowed.shares, *(settings.get("shares") or {})}:
            chosen["recalled"] = beside(budget)
        packed = pack(material, budget, chosen, counter.count)
        page = packed.page()
        with self._lock:
            before, earlier = self._pages.pop(thread.id, (None, allowed))
            self._pages[thread.id] = (page, allowed)
            while len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        shown = {piece.id for piece in packed.chosen["recalled"]}
        hits = tuple(hit for hit in gathering.hits if hit.id in shown)
        account = _Account(packed, page, counter, allowed, earlier)
        report = account.report(before, gathering.recalled, began, gathering.elsewhere | shown)
        window = packed.window.stretches
        span = (window[0].first, window[-1].last) if window else None
        pieces = [piece for pieces in packed.chosen.values() for piece in pieces]
        trust = speech.least((*(hit.trust for hit in hits), *(piece.trust for piece in pieces)))
        return Context(page, report, hits, span, trust)


# The account


class _Account(NamedTuple):
    """The report of a packed context."""

    packed: Packed
    page: Page
    counter: Counted
    allowed: Allowance
    earlier: Allowance

    def report(
        self, before: Page | None, recalled: Recalled | None, began: float, shown: frozenset[str]
    ) -> ContextReport:
        count, window = self.counter.count, self.packed.window
        notes = () if recalled is None else recalled.report.notes
        if self.earlier.tokens != self.allowed.tokens and not self.allowed.asked:
            notes = (f"the budget was {self.earlier.why}; now it is {self.allowed.why}", *notes)
        return ContextReport(
            budget=self.allowed.tokens,
            why=self.allowed.why,
            tokens=self.packed.tokens,
            sections=tuple(_sections(self.packed, self.page, count)),
            dropped=tuple(self.packed.dropped),
            kept=0 if before is None else kept(before, self.page, count),
            counter=self.counter.name,
            exact=self.counter.exact,
            ms=(_time.perf_counter() - began) * 1_000,
            masked=window.masked,
            clipped=window.clipped,
            skipped=() if recalled is None else recalled.report.skipped,
            relevant=None if recalled is None else recalled.relevant,
            notes=notes,
            found=() if recalled is None or not recalled.relevant else tuple(h.id for h in recalled if h.id in shown),
        )


def _sections(packed: Packed, page: Page, count: Count) -> Iterator[SectionReport]:
    for name, pieces in packed.chosen.items():
        if text := page.sections.get(name):
            yield SectionReport(name, count(text), len(pieces), packed.left.get(name, 0) + packed.unmade.get(name, 0))
    window = packed.window
    if window.stretches:
        cost = sum(weigh(message, count) for message in window.messages)
        yield SectionReport("recent", cost, len(window.messages), window.left)
    yield SectionReport("input", weigh(page.input, count), 1)


def kept(before: Page, after: Page, count: Count) -> int:
    """How many tokens at the beginning of a page are the same as in the page before."""
    if before.system != after.system:
        return count(_common(before.system, after.system))
    total = count(after.system) if after.system else 0
    for old, new in zip(before.messages(), after.messages(), strict=False):
        if old != new:
            return total + (count(_common(old.text, new.text)) if old.role == new.role else 0)
        total += weigh(new, count)
    return total


def _common(first: str, second: str) -> str:
    """The beginning that two texts share."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return first[:low]
