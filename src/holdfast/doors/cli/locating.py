"""Which run a person means by THREAD/RUN.

Both parts may hold a slash themselves, so every way to cut the text is tried, and what fits twice is asked about.
Deliberately absent: guessing, and anything but looking.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from holdfast import Store
from holdfast.errors import Invalid, NotFound
from holdfast.types import RunInfo, Timeline

T = TypeVar("T")
_MENTIONED = 5


def written(thread: str, run: str) -> str:
    """A run as people write it."""
    return f"{thread}/{run}"


def quoted(thread: str, run: str) -> str:
    """A run as it stands in a command that people copy."""
    return shlex.quote(written(thread, run))


def timeline(store: Store, text: str, name: str | None) -> Timeline:
    """The story of the run that is meant; subtasks have one too."""
    return _found(store, text, name, lambda thread, run: store.thread(thread).timeline(run))


def info(store: Store, text: str, name: str | None) -> RunInfo:
    """The run that is meant, for a command that does something to it."""

    def look(thread: str, run: str) -> RunInfo:
        handle = store.thread(thread)
        handle.info()
        for found in handle.runs():
            if found.name == run:
                return found
        handle.timeline(run)  # a run that has a story and is in no listing
        raise Invalid(f"{run!r} of thread {thread!r} is a subtask: name the run that it belongs to")

    return _found(store, text, name, look)


def _found(store: Store, text: str, name: str | None, look: Callable[[str, str], T]) -> T:
    if name is not None:
        return look(text, name)
    found: dict[tuple[str, str], T] = {}
    for place in _cuts(text):
        with suppress(NotFound):
            found[place] = look(*place)
    if not found:
        raise _missing(store, text)
    if len(found) > 1:
        places = " or ".join(f"run {run!r} of thread {thread!r}" for thread, run in found)
        raise Invalid(f"{text!r} could be {places}: give only the thread, and --run NAME")
    return next(iter(found.values()))


def _cuts(text: str) -> Iterator[tuple[str, str]]:
    """Every way to read a text as a thread and a run."""
    for place, character in enumerate(text):
        if character == "/" and text[:place] and text[place + 1 :]:
            yield text[:place], text[place + 1 :]


def _missing(store: Store, text: str) -> Invalid | NotFound:
    with suppress(NotFound):
        handle = store.thread(text)
        handle.info()
        names = [written(text, each.name) for each in handle.runs()]
        if not names:
            return NotFound(f"thread {text!r} has no runs", thread=text)
        more = f" and {len(names) - _MENTIONED} more" if len(names) > _MENTIONED else ""
        return Invalid(f"{text!r} is a thread; name one of its runs: {', '.join(names[:_MENTIONED])}{more}")
    return NotFound(f"there is no run {text!r}; holdfast runs lists them, written THREAD/RUN", run=text)
