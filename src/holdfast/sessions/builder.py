"""Building a context: have what there is gathered and packed, and give an account of it. Nothing is written.

What a builder keeps between two contexts of a thread is the last page, to say how much of it a provider's cache still
has. Deliberately absent: what there is to show (``gathering``), packing (``context``), and calling a model.
"""

from __future__ import annotations

import time as _time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast import atfork
from holdfast.clock import to_datetime
from holdfast.context.budget import BESIDE, check_budget, shares, too_small
from holdfast.context.pack import Packed, measure, pack
from holdfast.context.page import Page
from holdfast.context.report import Context, ContextReport, SectionReport
from holdfast.context.sections import Count
from holdfast.context.talk import Message
from holdfast.context.window import Viewing, choose, weigh
from holdfast.ledger.core import Core
from holdfast.records import Entry, Recalled
from holdfast.sessions.asked import asked_of
from holdfast.sessions.gathering import VERBATIM, Gathering, Kept, Recent, Settings, check_settings, moment
from holdfast.sessions.marks import chain

if TYPE_CHECKING:
    from holdfast.memories.handle import Memories
    from holdfast.providers.tokens.counting import Counted
    from holdfast.thread import Thread


BUDGET = 8_000
LARGEST = 32_000
_PAGES, _COUNTERS = 256, 16


class Builder:
    """Builds the contexts of one store."""

    def __init__(self, core: Core, memory: Callable[..., Memories], counter: Callable[[Any], Counted]) -> None:
        self._core, self._memory, self._choose = core, memory, counter
        self._counters: dict[str | None, Counted] = {}
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._kept = Kept()
        self._lock = atfork.lock()

    def forget(self) -> None:
        """Forget all that was kept of what threads say: something of it was erased."""
        with self._lock:
            self._pages.clear()
        self._kept = Kept()
        for counter in list(self._counters.values()):
            counter.clear()

    def counter(self, spec: Any) -> Counted:
        """What counts tokens: for a model, by the name of an encoding, or as the caller says. It keeps its counts."""
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

    def limit(self, model: str | None, window: int | None = None) -> int:
        """How many tokens a context may have for a model: its window without room to answer, and never very many."""
        if window is not None:
            return min(LARGEST, window - window // 4)
        from holdfast.providers.tokens.windows import window_of  # noqa: PLC0415 - a table that few ask

        known = None if model is None else window_of(model)
        return BUDGET if known is None else min(LARGEST, known.tokens - min(known.output, known.tokens // 4))

    def check(self, input: Any, budget: int, settings: Settings) -> None:
        """Refuse an input that no context could hold, before it goes on record."""
        check_settings(settings)
        count = self.counter(settings.get("tokens")).count
        asked, own = asked_of(input), settings.get("instructions", "").strip()
        now = f"<state>\n{moment(to_datetime(self._core.clock.now()))}\n</state>"
        bare = Page("" if not own else f"# Instructions\n{own}", (), "", "", now, asked, {})
        if (needed := measure(bare, count)) > budget:
            raise too_small(needed, budget, "the input takes" if not own else "input and instructions take")

    def entries(self, thread: Thread) -> Sequence[Entry]:
        """The end of a thread's log. It is not to be changed."""
        return self._kept.tails.of(thread)

    def seen(self, thread: Thread) -> Sequence[Entry]:
        """The same as it was when it was last looked at, without asking the store."""
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
    ) -> Gathering:
        count = self.counter(settings.get("tokens")).count
        return Gathering(self._core, thread, self._memory, asked, settings, (count, budget), self._kept, apart)

    def build(
        self,
        thread: Thread,
        input: Any,
        budget: int,
        model: str | None,
        settings: Settings,
        *,
        apart: int | None = None,
    ) -> Context:
        """See ``Store.context``. ``apart`` is the entry that is the input itself."""
        began = _time.perf_counter()
        check_settings(settings)
        asked = asked_of(input)
        budget, chosen = check_budget(budget), shares(settings.get("shares"))
        tokens = settings.get("tokens")
        counter = self.counter(model if tokens is None else tokens)
        settings = {**settings, "tokens": counter}
        gathering = self._gathering(thread, asked, settings, budget, apart)
        material = gathering.material(chosen)
        if material.stretches and "recalled" not in (settings.get("shares") or {}):
            chosen["recalled"] = BESIDE
        packed = pack(material, budget, chosen, counter.count)
        page = packed.page()
        with self._lock:
            before = self._pages.pop(thread.id, None)
            self._pages[thread.id] = page
            while len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        account = _Account(packed, page, counter, budget)
        report = account.report(before, gathering.recalled, began)
        window = packed.window.stretches
        shown = {piece.id for piece in packed.chosen["recalled"]}
        hits = tuple(hit for hit in gathering.hits if hit.id in shown)
        span = (window[0].first, window[-1].last) if window else None
        return Context(page, report, hits, span)


# The account


class _Account(NamedTuple):
    """What is reported of a packed context."""

    packed: Packed
    page: Page
    counter: Counted
    budget: int

    def report(self, before: Page | None, recalled: Recalled | None, began: float) -> ContextReport:
        count, window = self.counter.count, self.packed.window
        return ContextReport(
            budget=self.budget,
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
            notes=() if recalled is None else recalled.report.notes,
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
