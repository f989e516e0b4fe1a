"""The tool with which a model fetches what its context shows in short: masked tool output, entries and files it cites.

Deliberately absent: other threads than those that the session's own user may see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from holdfast.errors import Invalid, NotFound
from holdfast.ledger.said import spoken
from holdfast.steps.declare import Step, step

if TYPE_CHECKING:
    from holdfast.thread import Thread

_LINES = 80
_LONG = 8_000


def lookup_tool(thread: Thread, results: Mapping[str, str], elsewhere: Callable[[str], str | None]) -> Step:
    """A tool that reads entries of a thread, of others that its user may see, and results of the turn under way."""

    @step("look_up", effect="pure")
    def look_up(ref: str, find: str = "", line: int = 1, lines: int = _LINES) -> str:
        """Read the whole text of something that is shown in short here: a masked tool result, a cited entry or file.

        ref is THREAD#NUMBER, like trip-42#17, with the thread under whose heading it is shown; #17 alone is of this
        conversation, FOLDER/PATH@VERSION a file, and the id of a call a result of this turn. find gives only the lines
        that contain a text, with their numbers. line and lines say which lines to read.
        """
        return excerpted(_text(thread, results, elsewhere, ref), find, line, lines)

    return look_up


def _text(thread: Thread, results: Mapping[str, str], elsewhere: Callable[[str], str | None], ref: str) -> str:
    if ref in results:
        return results[ref]
    name, _, number = ref.strip().rpartition("#")
    is_file = "/" in ref and ref.strip().rpartition("@")[2].isdecimal()
    if not number.isdecimal() and not is_file:
        raise Invalid(
            f"{ref!r} is none of THREAD#NUMBER, #NUMBER, FOLDER/PATH@VERSION and the id of a call of this turn"
        )
    if is_file or name not in ("", thread.id):
        text = elsewhere(ref.strip())
        if text is None:
            raise Invalid(f"there is no {'file' if is_file else 'entry'} {ref!r} here")
        return text
    try:
        entry = thread.entry(int(number))
    except NotFound as error:
        raise Invalid(str(error)) from error
    return spoken(entry.kind, entry.content)


def excerpted(text: str, find: str, line: int, lines: int) -> str:
    """Some lines of a text, each with its number; what is left out is said."""
    every = list(enumerate(text.splitlines() or [""], 1))
    if find:
        chosen = [(number, content) for number, content in every if find.casefold() in content.casefold()]
    else:
        chosen = every[max(0, line - 1) :]
    shown: list[str] = []
    size = 0
    for number, content in chosen[: max(1, lines)]:
        size += len(content) + 8
        if size > _LONG and shown:
            break
        shown.append(f"{number}: {content[:_LONG]}")
    left = len(chosen) - len(shown)
    head = f"{len(every):,} lines" if not find else f"{len(chosen):,} of {len(every):,} lines contain {find!r}"
    return "\n".join([f"[{head}{f'; {left:,} more are not shown' if left else ''}]", *shown])
