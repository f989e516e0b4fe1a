"""The recent turns, as they were said: which of them are shown, and what of them is shortened.

The window begins where the newest summary or handoff ends. Where it would still be too long, it begins later, at a
number that stays the same for many turns, so that what was sent before is sent again byte for byte. Tool results from
some turns ago are masked, and a message that would fill the window alone is clipped. Deliberately absent: reading
the log, and summaries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.context.budget import PER_CALL, PER_MESSAGE
from holdfast.context.sections import Count
from holdfast.context.talk import Message, ResultPart, Stretch

GRID = 8
_STEPS = (128, 64, 32, 16, 8, 4, 2, 1)
_LEAST = 16
_TOKENS = 4  # that one character can have, in any script
_LABEL, _CALLED = "\n\nassistant: ", "\n\nassistant calls  (): "


class RecentTurns(NamedTuple):
    """What is shown of a conversation, in order; ``left`` is how many stretches did not fit.

    ``whole`` are the numbers of entries that are shown as they are; what is masked or clipped is not among them.
    """

    stretches: tuple[Stretch, ...] = ()
    left: int = 0
    masked: int = 0
    clipped: int = 0
    whole: frozenset[int] = frozenset()

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for stretch in self.stretches for message in stretch.messages)


def weigh(message: Message, count: Count) -> int:
    """What a message takes, in whichever form it is rendered."""
    total = PER_MESSAGE + count(_LABEL) + (count(message.text) if message.text else 0)
    if message.calls or message.results:
        each = PER_CALL + count(_CALLED)
        total += sum(each + count(call.id) + count(call.name) + count(call.arguments) for call in message.calls)
        total += sum(each + count(result.of) + count(result.text) for result in message.results)
    return total


class Viewing(NamedTuple):
    """How a conversation is looked at: for how many turns tool output is shown whole, what masks it after that, and the
    most that one message may take. This is half of what the section may have at most, so that what is clipped does
    not change with what others leave over."""

    verbatim: int
    mask: Callable[[str, int], str]
    alone: int


def choose(stretches: Sequence[Stretch], room: int, viewing: Viewing, count: Count) -> RecentTurns:
    """The stretches that fit into some room, the newest; older tool output is masked."""
    alone = max(1, min(viewing.alone, int(room * 0.9)))
    shortening = _Shortening(_settled(stretches, viewing.verbatim), alone, viewing.mask, count)
    shown: list[tuple[Stretch, int]] = []
    total = 0
    for stretch in reversed(stretches):
        short = shortening.of(stretch)
        cost = sum(weigh(message, count) for message in short.messages)
        if total + cost > room:
            break
        shown.append((short, cost))
        total += cost
    shown.reverse()
    begin = _begin(shown, room) if len(shown) < len(stretches) else 0
    texts = [short for short, _ in shown[begin:]]
    before = stretches[len(stretches) - len(texts) :]
    masked, clipped = _told(before, texts)
    return RecentTurns(tuple(texts), len(stretches) - len(texts), masked, clipped, _whole(before, texts))


def _begin(shown: Sequence[tuple[Stretch, int]], room: int) -> int:
    """Where the window begins: at the coarsest step at which a third of the room is used."""
    for step in _STEPS:
        cell = -(-shown[0][0].first // step) * step if shown else 0
        begin = next((at for at, (stretch, _) in enumerate(shown) if stretch.first >= cell and stretch.opens), None)
        if begin is not None and sum(cost for _, cost in shown[begin:]) * 3 >= room:
            return begin
    return next((at for at, (stretch, _) in enumerate(shown) if stretch.opens), 0)


def _settled(stretches: Sequence[Stretch], verbatim: int) -> int:
    """The number below which tool output is old. It moves in steps, so that what was masked stays so for some turns."""
    turns = [stretch.first for stretch in stretches if stretch.opens]
    if not verbatim:
        return 2**63
    return turns[-verbatim] // GRID * GRID if verbatim <= len(turns) else 0


class _Shortening(NamedTuple):
    """How texts are shortened: tool output below ``settled`` is masked, and nothing takes more than ``alone``."""

    settled: int
    alone: int
    mask: Callable[[str, int], str]
    count: Count

    def of(self, stretch: Stretch) -> Stretch:
        """A stretch that takes no more than it may alone: each text its share of that, where all are too much."""
        if all(not message.results and len(message.text) * _TOKENS <= self.alone for message in stretch.messages):
            return stretch  # as most of them are
        masked = self._short(stretch, self.alone, old=stretch.last < self.settled)
        limit = self.alone
        while limit > _LEAST and sum(weigh(message, self.count) for message in masked.messages) > self.alone:
            limit //= 2
            masked = self._short(masked, limit, old=False)
        return masked

    def _short(self, stretch: Stretch, limit: int, *, old: bool) -> Stretch:
        return stretch._replace(
            messages=tuple(
                message._replace(
                    text=clip(message.text, limit, self.count),
                    calls=tuple(
                        call._replace(arguments=clip_arguments(call.arguments, limit, self.count))
                        for call in message.calls
                    ),
                    results=tuple(_result(one, old, limit, self.mask, self.count) for one in message.results),
                )
                for message in stretch.messages
            )
        )


def _whole(before: Sequence[Stretch], after: Sequence[Stretch]) -> frozenset[int]:
    """The numbers of the entries that are shown as they are."""
    whole, cut = set[int](), set[int]()
    for old, new in zip(before, after, strict=True):
        (whole if old == new else cut).update(range(old.first, old.last + 1))
    return frozenset(whole - cut)


def _told(before: Sequence[Stretch], after: Sequence[Stretch]) -> tuple[int, int]:
    """How many results are shown masked or clipped, and how many other messages are clipped."""
    pairs = [
        (old, new)
        for one, other in zip(before, after, strict=True)
        for old, new in zip(one.messages, other.messages, strict=True)
    ]
    masked = sum(one != other for old, new in pairs for one, other in zip(old.results, new.results, strict=True))
    return masked, sum(old.text != new.text or old.calls != new.calls for old, new in pairs)


def clip_arguments(text: str, limit: int, count: Count) -> str:
    """The arguments of a call, an object still: what is long in it is clipped, or else all of it."""
    if _fits(text, limit, count):
        return text
    given = json.loads(text)
    part = max(_LEAST, limit // (len(given) + 1))
    short = {name: clip(value, part, count) if isinstance(value, str) else value for name, value in given.items()}
    found = json.dumps(short, ensure_ascii=False)
    return (
        found if count(found) <= limit else json.dumps({"clipped": clip(text, limit // 2, count)}, ensure_ascii=False)
    )


def _result(result: ResultPart, old: bool, alone: int, mask: Callable[[str, int], str], count: Count) -> ResultPart:
    if result.number and (old or not _fits(result.text, alone, count)):
        result = result._replace(text=mask(result.text, result.number))
    return result._replace(text=clip(result.text, alone, count))


def _fits(text: str, limit: int, count: Count) -> bool:
    return len(text) * _TOKENS <= limit or count(text) <= limit


def clip(text: str, limit: int, count: Count) -> str:
    """A text of at most so many tokens: its beginning and its end, where it is longer."""
    if _fits(text, limit, count):
        return text
    keep = min(len(text), limit * 4)
    while keep > 8:
        head, tail = keep * 2 // 3, keep // 3
        gap = f"… ({len(text) - head - tail:,} characters left out) …"
        short = f"{text[:head].rstrip()}\n{gap}\n{text[-tail:].lstrip()}"
        if count(short) <= limit:
            return short
        keep = keep * 3 // 4
    return "…"
