"""The errors of a text, each with its place, and those that say the same thing together.

Identical lines are one row with their number. Lines that differ in nothing but numbers, times and places share a row
once there are more than ``FEW`` of them: the first stays as it was written, and the places of the others follow it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from holdfast.context.masking.errors import is_error, suspects

FEW = 3
PLACES = 200
_REACH = 12  # so many lines below an error its place may be told, and
_FRESH = 8  # so many above it

_TIMES = "\u00d7"

_FRAME = re.compile(r'[\s|]*File "([^"]+)", line (\d+)')
_BELOW = re.compile(
    r"\s*(?:-->\s*|╭─\[|(?:at|\u276f) (?:.{0,300}\()?)([^\s()\[\]]+:\d+(?::\d+)?)\W*$|\t(\S+:\d+)(?: \+0x|$)"
)
_FOREIGN = ("/rustc/", "node:", "/usr/local/go/")  # the language's own code, which is never the place
_HEADER = re.compile(r"\S*[/\\.]\S*$")
_UNDER_HEADER = re.compile(r"\s+(\d+:\d+)\s+(?:error|✖)\s")
_NEXT_TELLS = re.compile(r".*(?:panicked at .*:\d+:\d+|went wrong):$")
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F]+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b(?=[a-f]{0,64}\d)[0-9a-f]{7,64}\b|(?<!\w)\d+|(?<=\dT)\d\d(?=:)"
)
_PLACE = re.compile(
    r"(?=.*[A-Za-z_])(?:[^/\\:]*[/\\]|.*::)|.*\.[A-Za-z]\w{0,9}(?::\d|\(\d|[,:;)\"'\]]*$)|\W*(?:Test[A-Z]|test_|\d+\.\d+\.\d+\.\d+\b)"
)
_TYPE = re.compile(r".*(?:Error|Exception)\W*$")
# What was compared: here the numbers are what matters.
_VALUES = re.compile(r"E {2,}|\s+(?:Expected|Received|left|right)\b|\s+\S+_test\.go:\d+: ")
_LONGEST_PLACE = 300
_AROUND = ",;:\"'()"


class Error(NamedTuple):
    """A line that says an error, and where that is if another line tells."""

    line: str
    place: str = ""


class ErrorGroup(NamedTuple):
    """What is shown of one error: how often it is there, the line, and the places of those like it."""

    times: int
    line: str
    places: tuple[str, ...] = ()
    lines: int = 1

    def __str__(self) -> str:
        often = f"{self.times:,}{_TIMES} " if self.times > 1 else ""
        places = _joined(self.places[:PLACES]) + ("…" if len(self.places) > PLACES else "")
        return f"{often}| {self.line}{' @ ' if places else ''}{places}"


def _joined(places: Iterable[str]) -> str:
    """Places in a row; the name of a file is written once for all that follow each other in it: a.py:1:8,3:8."""
    found, last = "", None
    for place in places:
        file, colon, position = place.partition(":")
        if colon and file == last and position[:1].isdigit():
            found += f",{position}"
        else:
            found += f"{', ' if found else ''}{place}"
        last = file
    return found


def find(lines: list[str], *, shown: bool) -> Iterator[Error]:
    """Every error line, in order. ``shown``: see :mod:`holdfast.context.masking.errors`."""
    header = frame = ""
    framed = 0
    waiting: Error | None = None  # an error whose place may be told below it
    reach, told = 0, False
    errors = _errors(lines, shown)
    for at, line in enumerate(lines):
        if told or line in errors:
            if waiting:
                yield waiting
            waiting, reach = Error(line, _above(line, header, frame if at - framed <= _FRESH else "")), _REACH
            told, frame = not told and bool(_NEXT_TELLS.match(line)), ""
        elif waiting:
            place = _below(line)
            reach -= 1
            if place or not reach or line.startswith("warning"):
                yield waiting if waiting.place else Error(waiting.line, place)
                waiting = None
        if 'File "' in line and (seen := _FRAME.match(line)):
            frame, framed = f"{seen[1]}:{seen[2]}", at
        elif " " not in line and _HEADER.match(line):
            header = line
    if waiting:
        yield waiting


def _errors(lines: list[str], shown: bool) -> set[str]:
    return {line for line in {lines[at] for at in suspects(lines)} if is_error(line, shown=shown)}


def _below(line: str) -> str:
    seen = _BELOW.match(line)
    place = (seen[1] or seen[2]) if seen else ""
    return "" if place.startswith(_FOREIGN) else place


def _above(line: str, header: str, frame: str) -> str:
    under = _UNDER_HEADER.match(line)
    if under and header:
        return f"{header}:{under[1]}"
    return frame


def rows(errors: Iterable[Error]) -> list[ErrorGroup]:
    """The errors as rows, in the order in which each was first seen."""
    alike: dict[str, list[str]] = {}
    for error in errors:
        alike.setdefault(error.line, []).append(error.place)
    groups: dict[str, dict[str, list[str]]] = {}
    for line, places in alike.items():
        groups.setdefault(_form(line), {})[line] = places
    found: list[ErrorGroup] = []
    for group in groups.values():
        if len(group) <= FEW:
            found.extend(ErrorGroup(len(places), line, _distinct(places, line)) for line, places in group.items())
        else:
            found.append(_shared(group))
    return found


def _shared(group: dict[str, list[str]]) -> ErrorGroup:
    first = next(iter(group))
    told = (place for line, places in group.items() for place in _told(line, places))
    return ErrorGroup(sum(map(len, group.values())), first, _distinct(told, first), len(group))


def _told(line: str, places: list[str]) -> Iterator[str]:
    words = line.split()
    own = [word.strip(_AROUND) for word in words if _is_place(word)]
    if not own and not any(places):
        own = [f"line {after.strip(_AROUND)}" for word, after in pairwise(words) if word == "line"]
    yield from own
    yield from places


def _distinct(places: Iterable[str], line: str) -> tuple[str, ...]:
    known = {word.strip(_AROUND) for word in line.split()}
    return tuple(place for place in dict.fromkeys(places) if place and place not in known)


def _form(line: str) -> str:
    """What lines have in common that differ in nothing but numbers and places."""
    if _VALUES.match(line):
        return line
    return " ".join("@" if _is_place(word) else _NUMBER.sub("#", word) for word in line.split())


def _is_place(word: str) -> bool:
    return len(word) <= _LONGEST_PLACE and bool(_PLACE.match(word)) and not _TYPE.match(word)
