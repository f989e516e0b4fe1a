"""Which items a filter means, and which namespaces a condition of a listing means.

Keys and values of a filter are data that is compared, and nothing else: no query language ever sees them. What cannot
be compared, as a text with a number, does not match. Deliberately absent: reading anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any

from holdfast.errors import Invalid
from holdfast.extension import quoted

_ORDER: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
OPERATORS = ("$eq", "$ne", *_ORDER)


def check_filter(wanted: Any, above: str = "") -> None:
    """Refuse a filter that could not be meant, before anything is read. ``above`` is the path to a nested one."""
    if not isinstance(wanted, Mapping) or not all(isinstance(field, str) for field in wanted):
        raise Invalid(f"a filter is a dict of fields and what they must be, not {quoted(wanted)}")
    for field, value in wanted.items():
        if isinstance(value, Mapping):
            (_check_operators if _has_operator(value) else check_filter)(value, f"{above}{field}.")


def _check_operators(asked: Mapping[Any, Any], above: str) -> None:
    where = above.removesuffix(".")
    for name, bound in asked.items():
        if name not in OPERATORS:
            raise Invalid(f"filter {where!r}: there is no operator {name!r}; there are {', '.join(OPERATORS)}")
        if name in _ORDER and not (_is_number(bound) or isinstance(bound, str)):
            raise Invalid(f"filter {where!r}: {name} compares with a number or a text, not {type(bound).__name__}")


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether an item's value has every field as the filter wants it; a field that is absent counts as None."""
    return all(_fits(_at(value, field), what) for field, what in wanted.items())


def _at(value: Any, field: str) -> Any:
    """What a field holds, or what a path with dots leads to; a field of that very name comes first."""
    if not isinstance(value, Mapping):
        return None
    first, dot, rest = field.partition(".")
    return value.get(field) if field in value or not dot else _at(value.get(first), rest)


def _fits(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return _same(value, wanted)
    if _has_operator(wanted):
        return all(_compared(value, name, bound) for name, bound in wanted.items())
    return isinstance(value, Mapping) and matches(value, wanted)


def _has_operator(wanted: Mapping[Any, Any]) -> bool:
    return any(isinstance(name, str) and name.startswith("$") for name in wanted)


def _compared(value: Any, operator: str, bound: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return _same(value, bound) is (operator == "$eq")
    comparable = (_is_number(value) and _is_number(bound)) or (isinstance(value, str) and isinstance(bound, str))
    return comparable and _ORDER[operator](value, bound)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(value: Any, wanted: Any) -> bool:
    """Equality as JSON has it: 1 is 1.0, but true is not 1, and a tuple was stored as a list."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return value.keys() == wanted.keys() and all(_same(value[name], wanted[name]) for name in value)
    if isinstance(value, list | tuple) and isinstance(wanted, list | tuple):
        return len(value) == len(wanted) and all(map(_same, value, wanted))
    return bool(value == wanted)


def names_match(namespace: tuple[str, ...], kind: str, pattern: Sequence[str]) -> bool:
    """Whether a namespace begins, or ends, with a pattern, label by label; "*" stands for any one label."""
    if kind not in ("prefix", "suffix"):
        raise Invalid(f"a namespace is matched by its prefix or its suffix, not by {kind!r}")
    part = namespace[: len(pattern)] if kind == "prefix" else namespace[len(namespace) - len(pattern) :]
    return len(part) == len(pattern) and all(want in ("*", label) for label, want in zip(part, pattern, strict=True))
