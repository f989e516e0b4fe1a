"""The outside world of a crash test: a file that counts what was done in it, whatever becomes of the store.

Each effect is one line, written by one call and synced, so it is there as soon as it has happened and also after the
process that made it was killed. Any number of processes may use one world. A probe may be truthful (``find``) or silent
(``silent``), and in a world that is not honest it lies. A world that is ``keyed`` refuses a repetition under the same
key, as a good payment service does. Deliberately absent: any knowledge of the store. Nothing here can be rolled back.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from holdfast.steps.declare import Unknown

_numbers = itertools.count(1)


class Booking(msgspec.Struct, frozen=True):
    """One effect: under which key, what it was, and a reference that no other effect has."""

    key: str
    what: str
    ref: str

    def plain(self) -> dict[str, Any]:
        return {"what": self.what, "ref": self.ref}


T = TypeVar("T")


class World:
    """What was done, line by line. ``point`` is told before and after each effect and question.

    Where nothing but the test itself can crash, ``synced`` may be False, which saves the wait for the disk. In a world
    that is not ``honest`` every probe says that nothing happened: there a good harness must find effects done twice.
    """

    def __init__(
        self,
        path: Path,
        *,
        keyed: bool = False,
        synced: bool = True,
        honest: bool = True,
        point: Callable[[str], None] | None = None,
    ) -> None:
        self._path, self._keyed, self._synced, self._honest = path, keyed, synced, honest
        self._point = point or _unheard

    def told(self, point: Callable[[str], None]) -> World:
        """The same world, seen by a process whose points are counted."""
        return World(self._path, keyed=self._keyed, synced=self._synced, honest=self._honest, point=point)

    def book(self, key: str, what: str) -> dict[str, Any]:
        """Do something that cannot be taken back, and return what a service would answer."""
        self._point(f"before effect {what}")
        with self._locked() as file:
            known = self._first(key) if self._keyed else None
            made = known or Booking(key, what, f"{what}-{os.getpid()}-{next(_numbers)}-{time.monotonic_ns()}")
            if known is None:
                os.write(file, b"\n" + msgspec.json.encode(made) + b"\n")
                if self._synced:
                    os.fsync(file)
        self._point(f"after effect {what}")
        return made.plain()

    # Probes

    def find(self, key: str) -> dict[str, Any] | None:
        """Say the truth: what happened under a key, or None."""
        self._point("before probe")
        found = self._first(key) if self._honest else None
        self._point("after probe")
        return None if found is None else found.plain()

    def silent(self, key: str) -> NoReturn:
        """Be unable to say."""
        self._point("before probe")
        raise Unknown("the service does not answer")

    # What was done

    def bookings(self) -> list[Booking]:
        """Everything that was done, in order."""
        with suppress(FileNotFoundError):
            return list(whole_lines(self._path.read_bytes(), Booking))
        return []

    def effects(self) -> Counter[str]:
        """How often something was done under each key."""
        return Counter(booking.key for booking in self.bookings())

    def totals(self) -> Counter[str]:
        """How often each thing was done, under whatever key."""
        return Counter(booking.what for booking in self.bookings())

    def _first(self, key: str) -> Booking | None:
        with suppress(FileNotFoundError):
            text = self._path.read_bytes()
            at = text.find(key.encode())  # most questions are about something that never happened: no need to read all
            if at >= 0:
                begin = text.rfind(b"\n", 0, at) + 1
                return next((booking for booking in whole_lines(text[begin:], Booking) if booking.key == key), None)
        return None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if self._keyed:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def whole_lines(text: bytes, type: type[T]) -> Iterator[T]:
    """What lines say. A process that is killed may leave a part of a line, which never happened; so each line begins
    with a line end of its own."""
    for line in text.splitlines():
        with suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line, type=type)


def _unheard(name: str) -> None:
    """Nobody counts the points of this process."""
