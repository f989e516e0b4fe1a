"""Checks of what callers give, at the point of entry: a slip is an error of ours at once, not a surprise later.

Each check returns what it was given or says in one sentence what is wrong with it, whatever the value is: nothing here
uses its truth, its text or its equality before its type is known. Deliberately absent: names (``ids``), moments
(``clock``), and what only one room knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from holdfast.errors import Invalid, quoted

LONGEST_S = 1e9  # some thirty years; longer is a slip of the pen, and more than some clocks can count


def check_flag(what: str, value: object) -> bool:
    """``"no"`` is true in Python; its writer means the opposite."""
    if not isinstance(value, bool):
        raise Invalid(f"{what} is True or False, not {quoted(value)}")
    return value


def check_choice(what: str, value: Any, known: Collection[str]) -> str:
    if not isinstance(value, str) or value not in known:
        *others, last = known
        raise Invalid(f"{what} must be {', '.join(others)} or {last}, not {quoted(value)}", what=what)
    return value


def check_whole(what: str, value: Any) -> int:
    if type(value) is not int:
        raise Invalid(f"{what} is a whole number, not {quoted(value)}")
    return value


def is_seconds(value: object) -> bool:
    """Whether it is a length of time, 0 included, that a clock can count; ``nan`` is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_S


def check_function(what: str, value: Any) -> Callable[..., Any] | None:
    if value is not None and not callable(value):
        raise Invalid(f"{what} is a function, not {quoted(value)}")
    return value  # type: ignore[no-any-return]


def check_part(what: str, value: Any, *methods: str) -> Any:
    """Something that stands in the place of a part of ours, as a clock does, or an event that says when to stop."""
    if isinstance(value, type) or not all(callable(getattr(value, method, None)) for method in methods):
        raise Invalid(f"{what} must be an object that has {' and '.join(methods)}, not {quoted(value)}")
    return value


def check_several(what: str, value: Any) -> list[Any]:
    """The items of a list, a set, a generator; a text or a dict is one thing, and not several."""
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise Invalid(f"{what} must be a list, not {quoted(value)}")
    return list(value)
