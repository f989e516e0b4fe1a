"""How a budget of tokens is divided among the sections of a context.

Each section has a least, a most and a priority. The input is taken whole, first. Then every section in turn, the most
important first, takes what it can use: up to its most, and never what a less important one needs as its least. What a
section leaves over goes to those after it. Deliberately absent: what the sections hold.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.errors import BudgetTooSmall, Invalid, quoted

SECTIONS = ("instructions", "identity", "facts", "handoff", "summary", "recent", "news", "state", "recalled", "input")
"""The sections in the order in which they appear: what seldom changes first, so that a provider's cache keeps it."""

LAST = ("news", "recalled")
PER_MESSAGE = 4
PER_CALL = 12
PER_PART = 1_600
"""What is counted for an image or another part of the input that is not text."""


class Share(msgspec.Struct, frozen=True):
    """What a section may have. ``least`` and ``most`` are tokens, or with a number up to 1 a share of the budget.

    The more important come first where there is not enough for all: a higher ``priority``.
    """

    least: float = 0
    most: float = 1.0
    priority: int = 5


DEFAULT: Mapping[str, Share] = {
    "instructions": Share(0.10, 0.25, 9),
    "state": Share(0.05, 0.20, 8),
    "handoff": Share(0.03, 0.12, 7),
    "identity": Share(0.01, 0.05, 7),
    "news": Share(0.01, 0.06, 4),
    "facts": Share(0.02, 0.12, 6),
    "recent": Share(0.15, 0.60, 5),
    "summary": Share(0.02, 0.12, 4),
    "recalled": Share(0.10, 1.0, 3),
}

_BESIDE, _ENOUGH = 0.25, 400


def beside(budget: int) -> Share:
    """What is recalled beside a conversation that goes on: that of a thread which begins may fill the budget.

    Of a small budget it may have more than a quarter, so that the best hits fit.
    """
    return Share(0.10, max(_ENOUGH, int(_BESIDE * budget)), 3)


def shares(changes: Mapping[str, Share | float | int] | None) -> dict[str, Share]:
    """The shares of all sections, with a caller's changes: a ``Share``, or a number for its most (0: leave it out)."""
    found = dict(DEFAULT)
    for name, change in checked_shares(changes).items():
        if name not in found:
            raise Invalid(f"there is no section {name!r} to give a share; there are {', '.join(DEFAULT)}")
        share = change if isinstance(change, Share) else _most(found[name], name, change)
        for value in (share.least, share.most):
            _check_number(name, value)
        if share.least > share.most and (share.least > 1) == (share.most > 1):
            raise Invalid(f"section {name!r} cannot have at least {share.least} and at most {share.most}")
        if type(share.priority) is not int:
            raise Invalid(f"the priority of section {name!r} is a whole number, not {quoted(share.priority)}")
        found[name] = share
    return found


def checked_shares(changes: object) -> Mapping[str, Share | float | int]:
    """A caller's changes, by section; None means none."""
    if changes is not None and not isinstance(changes, Mapping):
        raise Invalid(f"shares are given by section, as a dict, not as {type(changes).__name__}")
    return changes or {}


def _most(share: Share, name: str, most: object) -> Share:
    _check_number(name, most)
    return msgspec.structs.replace(share, most=most, least=share.least if most else 0)


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise Invalid(f"the share of section {name!r} is a number of tokens, or a part of 1, not {quoted(value)}")


def check_budget(budget: object) -> int:
    if type(budget) is not int or not 0 < budget < 10**9:
        raise Invalid(f"a budget is a whole number of tokens over 0 and under a billion, not {quoted(budget)}")
    return budget


def too_small(needed: int, budget: int, what: str = "the input alone takes") -> BudgetTooSmall:
    return BudgetTooSmall(
        f"{what} {needed:,} tokens, and the budget is {budget:,}: give more, or shorten it",
        needed=needed, budget=budget,
    )  # fmt: skip


def tokens(value: float, budget: int) -> int:
    """A share as a number of tokens."""
    return int(value * budget) if value <= 1 else min(int(value), budget)


class RemainingBudget:
    """What is left of a budget while sections take from it, the most important first."""

    def __init__(self, budget: int, chosen: Mapping[str, Share], spent: int) -> None:
        self.budget, self.left = budget, budget - spent
        self._chosen = chosen
        self._waiting = dict.fromkeys(self.order())

    def order(self) -> list[str]:
        """The sections, the most important first; among equals the one that appears first.

        News and what is recalled come last, whatever their priority: they must not repeat what others show.
        """

        def rank(name: str) -> tuple[bool, int, int]:
            return name in LAST, -self._chosen[name].priority, SECTIONS.index(name)

        return sorted(self._chosen, key=rank)

    def offer(self, name: str, wanted: Mapping[str, int]) -> int:
        """How much a section may take now. ``wanted`` says what the less important ones could use at all."""
        self._waiting.pop(name, None)
        kept = sum(min(tokens(self._chosen[other].least, self.budget), wanted.get(other, 0)) for other in self._waiting)
        return max(0, min(tokens(self._chosen[name].most, self.budget), self.left - kept))

    def most(self, name: str) -> int:
        """The most that a section may have, whatever the others leave."""
        return tokens(self._chosen[name].most, self.budget)

    def take(self, amount: int) -> None:
        self.left -= amount
