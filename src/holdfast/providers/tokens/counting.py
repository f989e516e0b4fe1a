"""What a token counter is, and the wrapper that checks each one and caches its counts.

A context is built for every turn from some hundred short texts, of which all but a few were counted the turn before. So
counts of short texts are kept by the text itself, in two generations: when the younger is full it becomes the older,
and what was not asked for again is dropped with the oldest. A hit is one look into a dictionary and takes no lock.

Deliberately absent: a cache of long texts (they are rare, and would push out hundreds of short ones) and anything
durable.
"""

from __future__ import annotations

import operator
from typing import Protocol, runtime_checkable

from holdfast import atfork
from holdfast.errors import HoldfastError, Misconfigured

SHORT = 8_000  # characters; some two thousand tokens
GENERATION_TEXTS = 8_192
GENERATION_CHARACTERS = 1_000_000


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text. Any object with these three names is one.

    ``exact`` says that the count is the model's own and no margin is needed. Counters are used by many threads at once.
    """

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int:
        """How many tokens the text has, zero or more. Text that looks like a special token is ordinary text."""
        ...


class Counted:
    """A counter around a counter: every answer is looked at once, and that of a short text is kept."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.name = counter.name
        self.exact = counter.exact
        self._lock = atfork.lock()
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._characters = 0

    def __repr__(self) -> str:
        return f"Counted({self._counter!r})"

    def count(self, text: str) -> int:
        found = self._young.get(text)
        if found is not None:
            return found
        found = self._old.get(text)
        if found is None:
            found = self._asked(text)
        if len(text) <= SHORT:
            self._keep(text, found)
        return found

    def clear(self) -> None:
        """Forget every text that was counted."""
        with self._lock:
            self._young, self._old, self._characters = {}, {}, 0

    def _keep(self, text: str, tokens: int) -> None:
        with self._lock:
            full = len(self._young) >= GENERATION_TEXTS or self._characters + len(text) > GENERATION_CHARACTERS
            if full:
                self._old, self._young, self._characters = self._young, {}, 0
            if text not in self._young:
                self._young[text] = tokens
                self._characters += len(text)

    def _asked(self, text: str) -> int:
        try:
            answer = self._counter.count(text)
        except HoldfastError:
            raise
        except Exception as error:
            raise Misconfigured(
                f"The token counter {self.name!r} raised {type(error).__name__}: {error}. It must count any text."
            ) from error
        try:
            tokens = operator.index(answer)  # numpy's integers are integers
        except TypeError:
            tokens = -1
        if tokens < 0 or isinstance(answer, bool):
            raise Misconfigured(
                f"The token counter {self.name!r} gave {answer!r}. A count is an integer, zero or more."
            )
        return tokens
