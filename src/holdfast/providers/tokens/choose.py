"""Choosing a token counter by name.

A model is enough: where its encoding is known and the extra is installed the count is exact, else it is an estimate
for its family of tokenisers, and ``exact`` and ``name`` say which. If you name an encoding, you get that one, or an
error if it is missing. Making a counter loads nothing. Deliberately absent: the environment, and asking a vendor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import Misconfigured, quoted
from holdfast.providers.tokens.counting import Counted, TokenCounter
from holdfast.providers.tokens.estimate import ANY, Estimate
from holdfast.providers.tokens.exact import ENCODINGS, Exact, installed
from holdfast.providers.tokens.windows import family_of, window_of

ESTIMATE = "estimate"

Spec = str | TokenCounter | Callable[[str], int] | None


def counter_for(model: Spec = None) -> Counted:
    """The counter for a model, an encoding ("o200k_base", "cl100k_base" …), "estimate", a function or a counter."""
    if isinstance(model, Counted):
        return model
    return Counted(_counter(model))


def check_name(name: str) -> None:
    """Refuse a name that is neither of an encoding nor of a model that the table knows: it may be a slip of the pen."""
    kind = name.strip().casefold().partition(":")[0]
    if kind not in (*ENCODINGS, ESTIMATE) and window_of(name) is None:
        known = ", ".join((*ENCODINGS, ESTIMATE))
        raise Misconfigured(f"Nothing is known that counts tokens by the name {name!r}. There are {known}, and models.")


def _counter(spec: Spec) -> TokenCounter:
    if spec is None:
        return Estimate(ANY)
    if isinstance(spec, str):
        return _named(spec.strip())
    if isinstance(spec, type):
        raise Misconfigured(f"{spec.__name__} is a class. Give an object of it: {spec.__name__}(...)")
    if callable(getattr(spec, "count", None)):
        return _whole(spec)
    if callable(spec):
        return _Function(spec)
    raise Misconfigured(f"A token counter is a model's name, an encoding, a function or an object; got {quoted(spec)}.")


def _named(spec: str) -> TokenCounter:
    name = spec.casefold()
    if not name:
        raise Misconfigured('The name of a model is empty. Without one, leave it out or write "estimate".')
    if name in ENCODINGS:
        return Exact(name)
    kind, _, family = name.partition(":")
    if kind == ESTIMATE:
        return Estimate(family or ANY)
    window = window_of(spec)
    if window is not None and window.encoding is not None and installed():
        return Exact(window.encoding)
    return Estimate(family_of(spec))


class _Function:
    """A caller's function as a counter. Nobody can tell whether it is exact, so it does not claim to be."""

    exact = False

    def __init__(self, function: Callable[[str], int]) -> None:
        self.name = f"function:{getattr(function, '__qualname__', type(function).__name__)}"
        self.count = function


def _whole(given: Any) -> TokenCounter:
    missing = [name for name in ("name", "exact") if not hasattr(given, name)]
    if missing:
        raise Misconfigured(f"The token counter {type(given).__name__} lacks {', '.join(missing)}.")
    counter: TokenCounter = given
    return counter
