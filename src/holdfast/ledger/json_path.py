"""How a place inside a document is named, read and changed, and what differs between two documents.

A path is names and list indexes: ``active_task.status``, ``issues[0].text``. A name of anything but letters, digits,
``_`` and ``-`` is quoted as JSON in brackets: ``confirmed_facts["home.airport"]``. A pattern may also say ``*`` for
every key or item of one level, and a write may say ``[+]`` for a new last item of a list. Documents are values: a
change gives a new one, which shares the untouched parts with the old one.

Deliberately absent: wildcards over several levels, filters and negative indexes; a path names one place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Literal

import msgspec

from holdfast.errors import Invalid


class Sign(Enum):
    """The two steps that are neither a name nor an index."""

    ANY = "*"
    APPEND = "[+]"


Step = str | int | Sign
Path = tuple[Step, ...]

_STEP = re.compile(
    r"(?P<dot>\.)?(?:(?P<name>[\w-]+)|(?P<any>\*))"
    r"|\[(?:(?P<index>0|[1-9][0-9]{0,8})|(?P<quoted>\"(?:[^\"\\]|\\.)*\")|(?P<append>\+)|(?P<every>\*))\]"
)
_PLAIN_NAME = re.compile(r"[\w-]+")

# The alignment of two lists compares every item with every item. Past this many pairs (after the equal beginning
# and end are set aside) items are paired by position: correct still, only less readable.
_MAX_PAIRS = 40_000
_EQUAL = 1_000
_ALIKE = 499  # below half of _EQUAL, so that two similar pairs never outweigh an equal one


class Difference(msgspec.Struct, frozen=True):
    """One place where two documents differ.

    The path of what was removed is its path in the old document; the paths of what was added or changed are their
    paths in the new one. ``old`` is None for what was added, ``new`` is None for what was removed.
    """

    path: str
    action: Literal["added", "removed", "changed"]
    old: Any = None
    new: Any = None


def parse(text: str, *, pattern: bool = False, append: bool = False) -> Path:
    """Read a path; the empty text is the whole document. ``*`` needs ``pattern``, ``[+]`` needs ``append``."""
    if not isinstance(text, str):
        raise Invalid(f"a path is text such as 'active_task.status', not {type(text).__name__}", path=text)
    steps = _parse(text)
    if Sign.ANY in steps and not pattern:
        raise Invalid(f'{text!r} matches many places; a path names one. Write an asterisk as a key as ["*"]', path=text)
    if Sign.APPEND in steps and not (append and steps.index(Sign.APPEND) == len(steps) - 1):
        raise Invalid(f"{text!r}: [+] is allowed only at the end of a path that you write to", path=text)
    return steps


@lru_cache(maxsize=1024)
def _parse(text: str) -> Path:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            raise _unreadable(text, position)
        # A dot stands between steps: never in front, always before a name that follows something.
        if (found["name"] or found["any"]) and (found["dot"] is None) != (position == 0):
            raise _unreadable(text, position)
        steps.append(_step(found, text))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str], text: str) -> Step:
    if found["name"]:
        return found["name"]
    if found["index"]:
        return int(found["index"])
    if found["append"]:
        return Sign.APPEND
    if found["quoted"]:
        try:
            return str(json.loads(found["quoted"]))
        except ValueError:
            raise _unreadable(text, found.start()) from None
    return Sign.ANY


def _unreadable(text: str, position: int) -> Invalid:
    return Invalid(
        f"{text!r} is not a path: it cannot be parsed from character {position + 1} on. Write names and indexes as in "
        'active_task.status or issues[0].text, and quote other names: facts["home.airport"]',
        path=text, position=position,
    )  # fmt: skip


def render(steps: Sequence[Step]) -> str:
    """Write a path as text, the same for equal paths; ``parse`` reads it back."""
    return _rendered(tuple(steps))


@lru_cache(maxsize=1024)
def _rendered(steps: Path) -> str:
    return "".join(_written(step, first=number == 0) for number, step in enumerate(steps))


def _written(step: Step, *, first: bool) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step is Sign.APPEND:
        return "[+]"
    name = "*" if step is Sign.ANY else str(step)
    if step is not Sign.ANY and not _PLAIN_NAME.fullmatch(name):
        return f"[{json.dumps(name, ensure_ascii=False)}]"
    return name if first else f".{name}"


def get(document: Any, path: str | Path) -> Any:
    """Return the value at a path; raise ``Invalid``, saying how far the path got, if it leads nowhere."""
    steps = _read(path)
    for depth in range(len(steps)):
        document = _child(document, steps, depth)
    return document


def has(document: Any, path: str | Path) -> bool:
    """Whether there is something at a path (a None is something)."""
    try:
        get(document, _read(path))
    except Invalid:
        return False
    return True


def with_value(document: Any, path: str | Path, value: Any) -> Any:
    """Return the document with ``value`` at a path: an existing place, a new last key of a dict, or ``[+]``."""

    def put(holder: Any, steps: Path) -> None:
        last = steps[-1]
        if isinstance(holder, list) and last is Sign.APPEND:
            holder.append(value)
        elif isinstance(holder, dict) and isinstance(last, str):
            holder[last] = value
        else:
            _child(holder, steps, len(steps) - 1)
            holder[last] = value

    return _edited(document, _read(path, append=True), put)


def without(document: Any, path: str | Path) -> Any:
    """Return the document without what is at a path; raise ``Invalid`` if there is nothing."""

    def drop(holder: Any, steps: Path) -> None:
        _child(holder, steps, len(steps) - 1)
        del holder[steps[-1]]

    return _edited(document, _read(path), drop)


def _read(path: str | Path, *, append: bool = False) -> Path:
    return parse(path, append=append) if isinstance(path, str) else path


def _edited(document: Any, steps: Path, edit: Callable[[Any, Path], None]) -> Any:
    """Copy the containers along a path, and let ``edit`` change the last of them."""
    if not steps:
        raise Invalid("the empty path is the whole document; name a field of it", path="")
    holders = [document]
    for depth in range(len(steps) - 1):
        holders.append(_child(holders[-1], steps, depth))
    changed = _copy(holders[-1])
    edit(changed, steps)
    for holder, step in zip(reversed(holders[:-1]), reversed(steps[:-1]), strict=True):
        outer = _copy(holder)
        outer[step] = changed
        changed = outer
    return changed


def _copy(holder: Any) -> Any:
    return holder.copy() if isinstance(holder, dict | list) else holder


def _child(holder: Any, steps: Path, depth: int) -> Any:
    """Take one step down, or raise, saying how far the path got and why no further."""
    step = steps[depth]
    if isinstance(holder, dict) and isinstance(step, str) and step in holder:
        return holder[step]
    if isinstance(holder, list) and isinstance(step, int) and 0 <= step < len(holder):
        return holder[step]
    path, reached = render(steps), render(steps[:depth])
    place = f"as far as {reached!r}, which" if reached else "nowhere: the document"
    raise Invalid(f"there is nothing at {path!r}: it leads {place} {_lacks(holder, step)}", path=path, reached=reached)


def _lacks(holder: Any, step: Step) -> str:
    if isinstance(holder, dict):
        return f"is a dict without the key {step!r}" if isinstance(step, str) else "is a dict; its keys are names"
    if isinstance(holder, list):
        if isinstance(step, int):
            return f"is a list of {len(holder)}, counted from 0; [+] adds one"
        return "is a list; its items are [0], [1] and so on"
    return "is null" if holder is None else f"holds {type(holder).__name__}, with nothing inside"


def match(pattern: str | Path, document: Any) -> list[str]:
    """Return the paths in a document that match a pattern, list items in order and keys by name."""
    steps = parse(pattern, pattern=True) if isinstance(pattern, str) else pattern
    return [render(found) for found in _matches(steps, document, ())]


def _matches(steps: Path, node: Any, so_far: Path) -> Iterator[Path]:
    if not steps:
        yield so_far
        return
    step, rest = steps[0], steps[1:]
    if isinstance(node, dict):
        names = sorted(node) if step is Sign.ANY else [step] if step in node else []
        for name in names:
            yield from _matches(rest, node[name], (*so_far, name))
    elif isinstance(node, list):
        indexes = range(len(node)) if step is Sign.ANY else [step] if isinstance(step, int) else []
        for index in indexes:
            if index < len(node):
                yield from _matches(rest, node[index], (*so_far, index))


def covers(pattern: Path, path: Path) -> bool:
    """Whether a pattern matches this path, whatever the document."""
    return len(pattern) == len(path) and all(
        wanted is Sign.ANY or wanted == step for wanted, step in zip(pattern, path, strict=True)
    )


def same(left: Any, right: Any) -> bool:
    """Whether two plain values are the same in JSON; unlike ``==`` this tells 1, 1.0 and true apart."""
    return bool(_token(left) == _token(right))


def _token(value: Any) -> Any:
    """A hashable stand-in, equal exactly for the same JSON."""
    if isinstance(value, dict):
        return dict, tuple(sorted((name, _token(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return list, tuple(map(_token, value))
    return type(value), value


def diff(old: Any, new: Any) -> list[Difference]:
    """Return what differs, keys by name and items in order.

    Items that only moved up or down because others came or went are not reported. Taking the removed out of ``old``
    (last first), then putting the added in (first first), then setting the changed, gives ``new``.
    """
    return list(_differences(old, new, (), ()))


def _differences(old: Any, new: Any, old_at: Path, new_at: Path) -> Iterator[Difference]:
    if same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        pairs: list[tuple[Any, Any]] = [
            (name if name in old else None, name if name in new else None) for name in sorted(old.keys() | new.keys())
        ]
    elif isinstance(old, list) and isinstance(new, list):
        pairs = list(_align(old, new))
    else:
        yield Difference(render(new_at), "changed", old, new)
        return
    for before, after in pairs:
        if after is None:
            yield Difference(render((*old_at, before)), "removed", old=old[before])
        elif before is None:
            yield Difference(render((*new_at, after)), "added", new=new[after])
        else:
            yield from _differences(old[before], new[after], (*old_at, before), (*new_at, after))


class Origins:
    """Finds where a place in the new document was in the old one; list items are followed when they move."""

    def __init__(self, old: Any, new: Any) -> None:
        self._old, self._new = old, new
        self._sources: dict[Path, list[int | None]] = {}

    def of(self, path: Path) -> Path | None:
        """Return the old path of what is now at ``path``, or None when it is new."""
        old, new = self._old, self._new
        source: Path = ()
        for depth, step in enumerate(path):
            if isinstance(old, list) and isinstance(new, list) and isinstance(step, int):
                before: Step | None = self._source(path[:depth], old, new)[step]
            else:
                before = step if isinstance(old, dict) and step in old else None
            if before is None:
                return None
            old, new, source = old[before], new[step], (*source, before)
        return source

    def _source(self, at: Path, old: list[Any], new: list[Any]) -> list[int | None]:
        if at not in self._sources:
            paired = {after: before for before, after in _align(old, new) if after is not None}
            tokens = [_token(item) for item in old]
            first = {token: index for index, token in reversed(list(enumerate(tokens)))}
            self._sources[at] = [
                before if before is not None and tokens[before] == token else first.get(token, before)
                for token, before in ((_token(item), paired[after]) for after, item in enumerate(new))
            ]
        return self._sources[at]


def _align(old: list[Any], new: list[Any]) -> Iterator[tuple[int | None, int | None]]:
    """Pair the items of two lists in order; None stands where one side has nothing."""
    left, right = [_token(item) for item in old], [_token(item) for item in new]
    start, shorter = 0, min(len(left), len(right))
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    middle = _anchors(left[start : len(left) - end], right[start : len(right) - end])
    anchors = [(start + before, start + after) for before, after in middle]
    tail = [(len(left) - offset, len(right) - offset) for offset in range(end, -1, -1)]
    yield from ((index, index) for index in range(start))
    yield from _between(start, [*anchors, *tail])


def _between(start: int, anchors: list[tuple[int, int]]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the anchors, and pair off what lies between them. The last anchor is the end of both lists."""
    before = after = start
    for next_before, next_after in anchors:
        while before < next_before or after < next_after:
            yield (before if before < next_before else None), (after if after < next_after else None)
            before, after = min(before + 1, next_before), min(after + 1, next_after)
        if (next_before, next_after) != anchors[-1]:
            yield next_before, next_after
        before, after = next_before + 1, next_after + 1


def _anchors(left: list[Any], right: list[Any]) -> list[tuple[int, int]]:
    """The heaviest pairing in order of equal items, and of dicts that share fields."""
    if not left or not right or len(left) * len(right) > _MAX_PAIRS:
        return []
    weights = [[_likeness(one, other) for other in right] for one in left]
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            taken = weights[i][j] and weights[i][j] + best[i + 1][j + 1]
            best[i][j] = max(taken, best[i + 1][j], best[i][j + 1])
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if weights[i][j] and best[i][j] == weights[i][j] + best[i + 1][j + 1]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(left: Any, right: Any) -> int:
    if left == right:
        return _EQUAL
    if left[0] is not dict or right[0] is not dict:
        return 0
    shared = len(set(left[1]) & set(right[1]))
    return _ALIKE * shared // max(len(left[1]), len(right[1]))
