"""The file of a session's handoff: taken in when a person changed it, written when the session hands over.

A file that did not change costs one look at its size and time. Trouble with it never stops a turn; it is told in the
notes of the next answer. Deliberately absent: waiting for changes, and deciding between two versions (``Handoff``
refuses, and says what to do).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, Unavailable
from holdfast.handoff import Handoff
from holdfast.handoff.files import located

_log = logging.getLogger(__name__)


class WatchedFile:
    """A file, and what it looked like when it was last seen."""

    def __init__(self, path: Any) -> None:
        self._path: Path | None = None if path is None else located(path)
        self._seen: tuple[int, ...] | None = None
        self._trouble: str | None = None

    def take_in(self, handoff: Handoff) -> None:
        """Load the file if a person changed it."""
        if self._path is not None and (looks := _looks(self._path)) != self._seen and self._try(handoff.reload):
            self._seen = looks

    def put_out(self, handoff: Handoff, by: str) -> None:
        """Write the handoff to the file, after what a person changed in it."""
        self.take_in(handoff)
        if self._path is not None and self._try(lambda path: handoff.write(path, by=by)):
            self._seen = _looks(self._path)

    def notes(self) -> list[str]:
        """What went wrong since the last call."""
        found, self._trouble = self._trouble, None
        return [] if found is None else [found]

    def _try(self, work: Callable[[Any], object]) -> bool:
        """Do something with the file; return whether that is settled, or should be tried again at the next turn."""
        try:
            work(self._path)
        except HoldfastError as error:
            _log.warning("the handoff file: %s", error)
            self._trouble = f"the handoff file was left alone: {error}"
            return not isinstance(error, Unavailable)
        return True


def _looks(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
