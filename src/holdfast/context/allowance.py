"""How much of a model's window a context may fill, and how its sections share that.

A small window has room for what an agent decides from: state, facts, and the hits that answer. A larger one shows more
of the conversation as it was said, and the largest all of it that is recent. Half of a large window stays free, for the
results of tools and the answer, and because models read the middle of a very long text badly. Deliberately absent: the
windows and prices of models (``providers``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from holdfast.context.budget import Share, check_budget
from holdfast.errors import Invalid, quoted

UNKNOWN = 8_000
"""For a model whose window nobody knows."""
_WHOLE = 24_000  # a window that leaves no more than this is used up to the room to answer
_SMALL, _LARGE = 16_384, 400_000
_SURGICAL = {
    "state": Share(0.05, 0.30, 8), "facts": Share(0.05, 0.20, 6), "recent": Share(0.15, 0.35, 5),
    "recalled": Share(0.10, 0.35, 3),
}  # fmt: skip
_ALL_RECENT = {"recent": Share(0.15, 0.90, 5)}
_MONEY = re.compile(r"\$\s*([0-9]+(?:\.[0-9]+)?)")


class Cap(msgspec.Struct, frozen=True):
    """The most that any context of a store may take: tokens, or dollars for what the model charges to read it."""

    tokens: int | None = None
    dollars: float | None = None


class Allowance(msgspec.Struct, frozen=True):
    """The tokens of a context, why they are so many, and how their sections share them, where that is not as usual.

    ``asked``: the caller named the number.
    """

    tokens: int
    why: str
    shares: Mapping[str, Share] = {}
    asked: bool = False


def check_cap(given: object) -> Cap | None:
    """A cap as callers write it: tokens, or money such as "$0.05"."""
    if given is None or isinstance(given, Cap):
        return given
    if type(given) is int and given > 0:
        return Cap(tokens=check_budget(given))
    found = _MONEY.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None or not 0 < float(found[1]) < 1e6:
        raise Invalid(f'max_context is a number of tokens, or money such as "$0.05", not {quoted(given)}')
    return Cap(dollars=float(found[1]))


def given(budget: object) -> Allowance:
    """What a caller asked for."""
    tokens = check_budget(budget)
    return Allowance(tokens, f"{tokens:,} tokens, as given", asked=True)


def by_window(model: str | None, window: int | None, output: int | None = None) -> Allowance:
    """What a model's window allows; ``output`` is how much of it an answer may take."""
    if window is None:
        whose = f"the window of {model} is not known" if model else "no model is named"
        return Allowance(UNKNOWN, f"{UNKNOWN:,} tokens, because {whose}; give budget=… to choose")
    answer = min(window // 4 if output is None else output, window // 4)
    tokens = max(min(window - answer, _WHOLE), window // 2)
    part = "all but the room to answer" if tokens == window - answer else f"{round(100 * tokens / window)} %"
    why = f"{tokens:,} tokens, {part} of the window of {model or 'the model'} ({window:,})"
    if window <= _SMALL:
        return Allowance(tokens, f"{why}: state, facts and hits come before the conversation", _SURGICAL)
    if window >= _LARGE:
        return Allowance(tokens, f"{why}: the recent conversation as a whole", _ALL_RECENT)
    return Allowance(tokens, why)


def capped(allowance: Allowance, cap: Cap | None, affordable: Callable[[float], int]) -> Allowance:
    """An allowance within a store's cap. ``affordable`` says how many tokens the model reads for some dollars."""
    if cap is None:
        return allowance
    tokens = affordable(cap.dollars) if cap.dollars is not None else cap.tokens
    if tokens is None or allowance.tokens <= tokens:
        return allowance
    most = f"{tokens:,} tokens" if cap.dollars is None else f"${cap.dollars:g}, which buys {tokens:,} tokens"
    why = f"{tokens:,} tokens: the store's cap is {most} (it would be {allowance.why})"
    return msgspec.structs.replace(allowance, tokens=tokens, why=why, asked=False)
