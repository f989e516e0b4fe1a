"""Typed values to plain data and back, with proof that nothing is lost on the way.

Structs, dataclasses and typed dicts are handled by msgspec; pydantic models by their own validator and serialiser,
found on the class, even nested inside one of the others. Stored names are a type's field names as msgspec
encodes them; for pydantic the field names, never the aliases, which are for other formats.

Deliberately absent: an import of pydantic, schema names and versions, and any place where a value was stored: a
problem is raised as ``Misfit`` with a path, and the caller, who knows the place, turns it into an error.
"""

from __future__ import annotations

import dataclasses
import re
from functools import lru_cache
from math import isnan
from typing import Any

import msgspec

from holdfast.engine.codec import JSON, MAX_DEPTH, encode
from holdfast.errors import HoldfastError, Invalid
from holdfast.ledger.json_path import Path, Step, get, render

_AT = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_FIELD = re.compile(r"Object (?P<why>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL)
_SOME_KEY = "[...]"
_LEAVES = frozenset((str, int, float, bool, type(None)))


class Misfit(Exception):
    """Plain data does not fit a type, or a value does not survive being plain data."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{render(path)}: {why}")
        self.path, self.why = path, why


class _Foreign(Exception):
    def __init__(self, item: Any) -> None:
        super().__init__(item)
        self.item = item


# What a type is


@lru_cache(maxsize=512)
def fields(kind: Any) -> dict[str, str] | None:
    """Map stored names to attribute names, or None for a type that is not a document."""
    if issubclass(kind, msgspec.Struct):
        return dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    if is_pydantic(kind):
        known = getattr(kind, "__pydantic_fields__", {})
        return {name: name for name, field in known.items() if not field.exclude}
    if dataclasses.is_dataclass(kind):
        return {field.name: field.name for field in dataclasses.fields(kind)}
    if is_typed_dict(kind):
        return {name: name for name in sorted(kind.__required_keys__ | kind.__optional_keys__)}
    return None


def is_pydantic(kind: type) -> bool:
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "__pydantic_serializer__")


def is_typed_dict(kind: type) -> bool:
    # Not typing.is_typeddict: it does not know those of typing_extensions.
    return issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def is_document(kind: type) -> bool:
    """Whether values of a type with fields are stored as a dict, not as a list or a bare value."""
    listed = getattr(getattr(kind, "__struct_config__", None), "array_like", False)
    return not listed and not getattr(kind, "__pydantic_root_model__", False)


def is_open(kind: type) -> bool:
    """Whether a type keeps fields that it does not declare."""
    return is_pydantic(kind) and getattr(kind, "model_config", {}).get("extra") == "allow"


def members(value: Any) -> list[tuple[Step, Any]] | None:
    """Return what is directly inside a value by its stored names, or None if it has no fields."""
    if isinstance(value, dict):
        return [(str(name), item) for name, item in value.items()]
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    kind: type = type(value)
    names = fields(kind)
    if names is None:
        return None
    inside: list[tuple[Step, Any]] = [(name, getattr(value, attribute, None)) for name, attribute in names.items()]
    return inside + list((getattr(value, "__pydantic_extra__", None) or {}).items())


# To plain data


def to_plain(value: Any) -> Any:
    """Turn a typed value into plain data as the store returns it: tuples as lists, sets in a stable order."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_serialised)
    except _Foreign as refusal:
        path, name = render(_locate(value, refusal.item) or ()), type(refusal.item).__name__
        raise Invalid(f"{path or 'value'}: {name} cannot be stored; use a plain or typed value", path=path) from None
    except RecursionError:
        raise Invalid(f"the value is nested deeper than {MAX_DEPTH} levels, or contains itself") from None
    except Exception as error:  # the type's serialiser may raise anything
        raise Invalid(f"a {type(value).__name__} cannot be turned into plain data: {error}") from error
    return settled(plain, value)


def _serialised(item: Any) -> Any:
    if not is_pydantic(type(item)):
        raise _Foreign(item)
    # round_trip leaves out computed fields; drift reports what is wrong with a field, not a warning.
    return item.__pydantic_serializer__.to_python(item, mode="json", by_alias=False, round_trip=True, warnings="none")


def _locate(value: Any, item: Any) -> Path | None:
    if value is item:
        return ()
    for step, inner in members(value) or ():
        if (found := _locate(inner, item)) is not None:
            return (step, *found)
    return None


def settled(plain: Any, source: Any, depth: int = MAX_DEPTH) -> Any:
    """Copy plain data, tuples as lists, and put what came from a set in ``source`` in a stable order.

    Without the order the same set would differ from process to process. What is too deep, or not plain, is left for
    the codec to refuse.
    """
    kind = type(plain)
    if depth == 0 or (kind is not dict and kind is not list and kind is not tuple):
        return plain
    if kind is dict:
        inside = _named(source)
        copy = {
            name: item if type(item) in _LEAVES else settled(item, inside.get(name), depth - 1)
            for name, item in plain.items()
        }
        return copy if len(copy) >= len(inside) else {**copy, **_defaults(source, copy)}
    paired = isinstance(source, list | tuple | set | frozenset) and len(source) == len(plain)
    sources = source if paired else [None] * len(plain)
    items = [settled(item, inner, depth - 1) for item, inner in zip(plain, sources, strict=True)]
    return _stable(items) if isinstance(source, set | frozenset) else items


def _named(value: Any) -> dict[Step, Any]:
    """What is inside a value, by stored name."""
    return value if type(value) is dict and _is_plain_dict(value) else dict(members(value) or ())


def _defaults(source: Any, written: dict[str, Any]) -> dict[str, Any]:
    """The fields that msgspec does not write, because it left a dataclass's defaults on the class when reading it."""
    if is_pydantic(type(source)) or not dataclasses.is_dataclass(source):
        return {}
    left = {name: item for name, item in members(source) or () if name not in written and item is not msgspec.UNSET}
    return {str(name): to_plain(item) for name, item in left.items()}


def _stable(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)


# And back


def from_plain(kind: Any, plain: Any) -> Any:
    """Turn plain data into a value of a type; raise a ``Misfit`` that names the field if it does not fit."""
    try:
        return _validated(kind, plain) if is_pydantic(kind) else _converted(kind, plain)
    except HoldfastError:
        raise
    except msgspec.ValidationError as error:
        raise _misfit(error, kind, plain) from error
    except Exception as error:  # the type's validator may raise anything
        raise _told_by_pydantic(error, plain, ()) or Misfit((), f"{type(error).__name__}: {error}") from error


def _converted(kind: Any, plain: Any) -> Any:
    return msgspec.convert(plain, kind, str_keys=True, dec_hook=_validated)


def _validated(kind: Any, plain: Any) -> Any:
    if not is_pydantic(kind):
        raise TypeError(f"`{kind.__name__}` is not a type that can be stored")
    # As JSON, because that is what is stored: a strict model takes a date from text there, but not from a Python str.
    text = encode(plain, "state")[len(JSON) :]
    return kind.__pydantic_validator__.validate_json(text, by_alias=False, by_name=True)


def _misfit(error: msgspec.ValidationError, kind: Any, plain: Any) -> Misfit:
    found = _AT.fullmatch(str(error))
    assert found is not None  # every part of the expression is optional
    what = f"A key: {found['what']}" if found["key"] else found["what"]
    path, inside = _walk(found["path"] or "", kind, plain)
    if (told := _told_by_pydantic(error.__cause__, inside, path)) is not None:
        return told
    if (field := _FIELD.fullmatch(what)) is not None:
        why = "this field is required, but missing" if "missing" in field["why"] else "there is no such field"
        return Misfit((*path, field["name"]), why)
    return Misfit(path, what[:1].lower() + what[1:])


def _walk(text: str, kind: Any, plain: Any) -> tuple[Path, Any]:
    """Follow msgspec's path through the data. Return ours, which also names dict keys, and what it leads to."""
    path: Path = ()
    node = plain
    while text:
        if text.startswith(_SOME_KEY) and isinstance(node, dict):
            step: Step = _culprit(kind, plain, path)
            length = len(_SOME_KEY)
        elif (index := re.match(r"\[(\d+)\]", text)) is not None:
            step, length = int(index[1]), index.end()
        else:
            names = sorted(node, key=len, reverse=True) if isinstance(node, dict) else []
            step = next((name for name in names if text.startswith(f".{name}")), text[1:])
            length = len(step) + 1
        node = _inside(node, step)
        path, text = (*path, step), text[length:]
    return path, node


def _culprit(kind: Any, plain: Any, path: Path) -> str:
    """Find the key of the dict at ``path`` that is to blame; msgspec does not name it, so try them one by one."""
    wanted = _complaint(kind, plain)
    keys: list[str] = list(get(plain, path))
    return next((key for key in keys if _complaint(kind, _only(plain, path, key)) == wanted), keys[0])


def _complaint(kind: Any, plain: Any) -> str | None:
    try:
        _converted(kind, plain)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def _only(plain: Any, path: Path, key: str) -> Any:
    """The document with nothing but one key in the dict at ``path``."""
    if not path:
        return {key: plain[key]}
    changed = plain.copy()
    changed[path[0]] = _only(plain[path[0]], path[1:], key)
    return changed


def _inside(node: Any, step: Step) -> Any:
    try:
        return node[step]
    except (KeyError, IndexError, TypeError):
        return None


def _told_by_pydantic(error: BaseException | None, plain: Any, path: Path) -> Misfit | None:
    """Read pydantic's own description of the problem, if there is one."""
    account = getattr(error, "errors", None)
    if not callable(account):
        return None
    problems = account(include_url=False, include_context=False, include_input=False)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    location = problems[0]["loc"]
    for number, step in enumerate(location):
        # A location also names union members and validators; only what leads into the data is part of the path.
        last = number == len(location) - 1
        inside = _inside(plain, step)
        if inside is not None or (last and step != "[key]"):
            path, plain = (*path, step), inside
    why = str(problems[0]["msg"])
    return Misfit(path, why[:1].lower() + why[1:] + more)


# The proof


def lost(stored: Any, kept: Any, value: Any) -> Path | None:
    """Return the first stored field missing from ``kept``, which is ``value`` as plain data again."""
    if stored == kept:
        return None
    if isinstance(stored, dict) and isinstance(kept, dict):
        kind: type = type(value)
        known, inside = fields(kind) or {}, _named(value)
        for name, item in stored.items():
            if name not in kept:
                if name in known:  # left out because it is at its default
                    continue
                return (name,)
            if (found := lost(item, kept[name], inside.get(name))) is not None:
                return (name, *found)
    elif isinstance(stored, list) and isinstance(kept, list) and len(stored) == len(kept):
        values = value if isinstance(value, list | tuple) and len(value) == len(kept) else [None] * len(kept)
        for index, (item, other, inner) in enumerate(zip(stored, kept, values, strict=True)):
            if (found := lost(item, other, inner)) is not None:
                return (index, *found)
    return None


def drift(before: Any, after: Any, *, lenient: bool = False) -> Misfit | None:
    """Find where a value differs after a round trip through plain data. A tuple may come back as a list.

    When ``lenient``, the value may hold plain data in place of typed values, as text in place of a date.
    """
    if _equal(before, after):
        return None
    if _alike(before, after, lenient):
        returned = dict(members(after) or ())
        for step, item in members(before) or ():
            found = drift(item, returned[step], lenient=lenient) if step in returned else None
            if found is not None:
                return Misfit((step, *found.path), found.why)
        return None
    if lenient and (type(before) in _LEAVES or type(before) is list or _is_plain_dict(before)):
        return None
    if type(before) is type(after):
        return None if _incomparable(before) else Misfit((), f"this {type(before).__name__} would be read back changed")
    names = type(before).__name__, type(after).__name__
    why = f"a {names[0]} would be read back as {names[1]}; declare its type in the schema, or store plain data"
    return Misfit((), why)


def _alike(before: Any, after: Any, lenient: bool) -> bool:
    """Whether two values hold the same members, so that only these can differ."""
    if isinstance(before, dict):
        same = isinstance(after, dict) and before.keys() == after.keys()
        return same or (lenient and _is_plain_dict(before) and members(after) is not None)
    if isinstance(before, list | tuple):
        return isinstance(after, list | tuple) and len(before) == len(after)
    return type(before) is type(after) and members(before) is not None


def _is_plain_dict(value: Any) -> bool:
    return type(value) is dict and all(type(name) is str for name in value)


def _equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right)
    except Exception:  # an array has no single truth
        return type(left) is type(right)


def _incomparable(value: Any) -> bool:
    """NaN, which the codec refuses with a better message, and objects that only equal themselves."""
    kind: Any = type(value)
    return (kind is float and isnan(value)) or kind.__eq__ is object.__eq__
