"""Packing: the material into a budget, never over it.

The input and the caller's own instructions are taken whole, or it raises ``BudgetTooSmall``. Then sections take their
shares, and inside a section pieces are taken in the order of their worth. Whatever was left out is listed, with the
reason. At the end the page is counted as it will be sent, and as long as it is over the budget the least important
piece is dropped. Deliberately absent: where material comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.context.budget import PER_MESSAGE, PER_PART, RemainingBudget, Share, too_small
from holdfast.context.page import BEFORE, Dropped, Page
from holdfast.context.sections import TITLES, Count, Piece, arranged, line
from holdfast.context.talk import Message, Stretch
from holdfast.context.window import RecentTurns, Viewing, choose, clip, weigh

_SYSTEM = ("instructions", "identity", "facts", "handoff", "summary")
_TAIL = ("news", "state", "recalled")
_SPARE = 3  # with which every answer begins
_MUCH = 10**9
_LISTED = 20
_CLIPPED, _STEP = 10, 4
_BINARY = re.compile(r"(?:data:[^,]{0,100},)?[A-Za-z0-9+/=_-]{200}")


class Material(NamedTuple):
    """All that could be shown. ``later`` are asked for their pieces last, when it is known what the page shows already,
    and how much room there is."""

    input: Message
    instructions: str
    pieces: Mapping[str, Sequence[Piece]]
    stretches: Sequence[Stretch]
    later: Mapping[str, Callable[[int, Packed], Sequence[Piece]]]
    mask: Callable[[str, int], str]
    moment: str = ""
    verbatim: int = 3


class Packed:
    """What was chosen so far, by section, and what was not."""

    def __init__(self, material: Material, count: Count) -> None:
        self.material, self.count = material, count
        self.chosen: dict[str, list[Piece]] = {name: [] for name in (*_SYSTEM, *_TAIL)}
        self.window = RecentTurns()
        self.dropped: list[Dropped] = []
        self.left: dict[str, int] = {}
        self.unmade: dict[str, int] = {}
        self.leads: dict[str, str] = {}
        self.tokens = 0

    def page(self) -> Page:
        texts = {name: arranged(pieces) for name, pieces in self.chosen.items()}
        own = self.material.instructions.strip()
        texts |= {name: f"{lead}\n{texts[name]}" for name, lead in self.leads.items() if texts[name]}
        texts["instructions"] = "\n".join(text for text in (own, texts["instructions"]) if text)
        return Page(
            system="\n\n".join(f"# {TITLES[name]}\n{texts[name]}" for name in _SYSTEM if texts[name]),
            turns=self.window.messages,
            recalled=_block("recalled", texts["recalled"]),
            news=_block("news", texts["news"]),
            state=_block("state", "\n".join(text for text in (self.material.moment, texts["state"]) if text)),
            input=self.material.input,
            sections={name: text for name, text in texts.items() if text},
        )

    def heading(self, name: str) -> int:
        """What a section takes besides its pieces."""
        lead = self.leads.get(name, "")
        return self.count(f"# {TITLES[name]}\n{lead}\n") + 4 + bool(lead)

    def leave_out(self, name: str, ids: Sequence[str], why: str) -> None:
        """Record what a section does not show."""
        self.dropped += [Dropped(name, id, why) for id in ids[:_LISTED]]
        if len(ids) > _LISTED:
            self.dropped.append(Dropped(name, f"{len(ids) - _LISTED} more", why))


def pack(material: Material, budget: int, shares: Mapping[str, Share], count: Count) -> Packed:
    """What fits into a budget; its ``page`` is what is sent."""
    packed = Packed(material, count)
    needed = measure(packed.page(), count)
    if needed > budget:
        alone = measure(packed.page()._replace(system="", state=""), count)
        raise too_small(needed, budget, "the input alone takes" if alone > budget else "input and instructions take")
    purse = RemainingBudget(budget, shares, needed)
    wanted = _wanted(material, count)
    for name in purse.order():
        _fill(packed, purse, name, wanted)
    _trim(packed, budget, purse.order())
    return packed


def measure(page: Page, count: Count) -> int:
    """What a page takes as it will be sent: every text in it, and what each message costs besides."""
    total = _SPARE + (PER_MESSAGE + count(page.system) if page.system else 0)
    total += sum(weigh(message, count) for message in page.turns)
    if page.turns and page.turns[0].role != "user":
        total += PER_MESSAGE + count(BEFORE)
    last = page.last()
    return total + weigh(last, count) + sum(_part(part, count) for part in last.parts)


def _part(part: Any, count: Count) -> int:
    """What a part of the input takes: a text by its tokens, an image what a large one does, others what they hold."""
    texts = [text for text in _strings(part) if text]
    if isinstance(part, dict) and part.get("type") == "text":
        return count(part["text"])
    shown = [text for text in texts if not _BINARY.match(text)]
    return max(PER_PART, sum(map(count, shown)) + 2 * len(shown))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _block(name: str, text: str) -> str:
    return f"<{name}>\n{text}\n</{name}>" if text else ""


def _wanted(material: Material, count: Count) -> dict[str, int]:
    """What each section could use at all, roughly: nobody keeps room for a section that has nothing to show."""
    found = {name: sum(count(piece.text) + 2 for piece in pieces[:_LISTED]) for name, pieces in material.pieces.items()}
    if material.stretches:
        found["recent"] = _MUCH
    return found | dict.fromkeys(material.later, _MUCH)


def _fill(packed: Packed, purse: RemainingBudget, name: str, wanted: Mapping[str, int]) -> None:
    room, material = purse.offer(name, wanted), packed.material
    if name == "recent":
        viewing = Viewing(material.verbatim, material.mask, purse.most(name) // 2)
        packed.window = choose(material.stretches, room, viewing, packed.count)
        if packed.window.left:
            what = f"{packed.window.left} older stretches"
            packed.dropped.append(Dropped(name, what, "no room; they can be recalled"))
        purse.take(sum(weigh(message, packed.count) for message in packed.window.messages))
        return
    later = material.later.get(name)
    pieces = material.pieces.get(name, ()) if later is None else later(room, packed) if room > 0 else ()
    purse.take(_take(packed, name, pieces, room))


def _take(packed: Packed, name: str, pieces: Sequence[Piece], room: int) -> int:
    """Take the pieces of a section that fit, the best first; return what they cost.

    Without the best hit nothing is recalled: what is worth less must not stand in its place.
    """
    count, heading = packed.count, packed.heading(name)
    spent, groups, left = 0, set[str](), list[str]()
    for piece in pieces:
        if name == "recalled" and left and not spent:
            left.append(piece.id)
            continue
        cost = count(piece.text) + 1 + (0 if spent else heading)
        if piece.group and piece.group not in groups:
            cost += count(piece.group) + 1
        if spent + cost > room:
            short = _clipped(name, piece, room - spent - (cost - count(piece.text)), packed)
            if short is None:
                left.append(piece.id)
                continue
            piece, cost = short, cost - count(piece.text) + count(short.text)
        spent += cost
        groups.add(piece.group)
        packed.chosen[name].append(piece)
    packed.leave_out(name, left, "no room in its section" if room else "no room")
    packed.left[name] = len(left)
    return spent


def _clipped(name: str, piece: Piece, room: int, packed: Packed) -> Piece | None:
    """What can be shown of a piece that does not fit: a field of the state in part, and of hits the best one."""
    first = name == "recalled" and not packed.chosen[name]
    return _shorter(piece, room, packed.count) if first or name == "state" else None


def _shorter(piece: Piece, room: int, count: Count) -> Piece | None:
    """A piece in some room, if that is enough for more than a few words."""
    return None if room < _CLIPPED else piece._replace(text=line(clip(piece.text, room, count)))


def _trim(packed: Packed, budget: int, order: Sequence[str]) -> None:
    """Tokens of joined texts are not always the sum of their tokens: as long as it is over, the least piece goes.

    The best hit is shortened first.
    """
    while (tokens := measure(packed.page(), packed.count)) > budget:
        name = next((name for name in reversed(order) if packed.chosen.get(name)), None)
        why = "over the budget when all was counted together"
        if name is not None:
            least = packed.chosen[name].pop()
            last = name == "recalled" and not packed.chosen[name]
            room = packed.count(least.text) - max(tokens - budget, _STEP)
            if last and (short := _shorter(least, room, packed.count)):
                packed.chosen[name].append(short)
            else:
                packed.dropped.append(Dropped(name, least.id, why))
            continue
        gone, *rest = packed.window.stretches
        packed.dropped.append(Dropped("recent", f"entries {gone.first} to {gone.last}", why))
        packed.window = packed.window._replace(stretches=tuple(rest), left=packed.window.left + 1)
    packed.tokens = tokens
