"""SQLite's connections in this process: who uses them, which file each belongs to, and what happens at a fork.

SQLite keeps a table of the files that its process has open, and of the locks it holds on them. A forked child inherits
the table but not the locks: it writes alongside others as if it were alone, and acknowledged commits vanish. So no
connection may survive a fork. Before one, new users wait at a gate, those under way finish, and every connection is
closed; both sides reopen theirs when they need them.

A connection that cannot be closed (the forking thread is in the middle of a read, another thread did not finish in
time, or other code has its own connection) makes its file unsafe in the child, for good: opening it or continuing with
it there is refused, and the inherited connection is never closed there, because that could delete the log under the
parent. Deliberately absent: opening connections (``sqlite_file``), and waiting without end.
"""

from __future__ import annotations

import logging
import os
import threading
import time as _time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import apsw

from holdfast import atfork
from holdfast.errors import Misconfigured

WAIT_S = 10.0  # how long a fork waits for other threads to finish
_log = logging.getLogger(__name__)


class FileIdentity(NamedTuple):
    """Which file it is, whatever it is called by now."""

    device: int
    inode: int


def place_of(path: Path | str) -> FileIdentity | None:
    """The file that has this name now; None when there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return FileIdentity(found.st_dev, found.st_ino)


class Connected(Protocol):
    """An owner of connections that can close them until they are needed again."""

    def disconnect(self) -> None:
        """Close every connection that is not in use."""

    def begin_anew(self) -> None:
        """In a forked child, forget the parent's connections, threads and queues."""


class _Gate:
    """Counts who uses connections, and keeps others out while this process forks.

    There is no lock. A user first registers and then checks the gate; the fork first shuts it and then
    looks who is in. A thread that is in already may go on, and so may the one that forks.
    """

    def __init__(self) -> None:
        self._inside: dict[object, int] = {}
        self._shut_by: int | None = None
        self._door = threading.Lock()  # locked while it is shut

    def enter(self) -> object:
        me, token = threading.get_ident(), object()
        self._inside[token] = me
        while self._shut_by is not None and self._shut_by != me and not self._is_in(me, token):
            del self._inside[token]
            with self._door:
                pass
            self._inside[token] = me
        return token

    def leave(self, token: object) -> None:
        self._inside.pop(token, None)

    def _is_in(self, who: int, but: object) -> bool:
        return any(one == who and token is not but for token, one in list(self._inside.items()))

    def shut(self) -> None:
        self._door.acquire(blocking=False)
        self._shut_by = me = threading.get_ident()
        deadline = _time.monotonic() + WAIT_S
        while any(who != me for who in list(self._inside.values())):
            if _time.monotonic() > deadline:
                _log.warning("this process forks while another thread uses a store; its child cannot open that file")
                return
            _time.sleep(0.0005)

    def open(self) -> None:
        self._shut_by = None
        if self._door.locked():
            self._door.release()


class _Process:
    """What this process has to do with SQLite."""

    def __init__(self) -> None:
        self.gate = _Gate()
        self.connected: weakref.WeakSet[Connected] = weakref.WeakSet()
        self.places: weakref.WeakKeyDictionary[apsw.Connection, FileIdentity] = weakref.WeakKeyDictionary()
        self.unsafe: set[FileIdentity | None] = set()  # None: there is one whose file is unknown
        self.inherited: set[int] = set()
        atfork.join(before=self._quiesce, in_parent=self._go_on, in_child=self._begin_anew)

    def _quiesce(self) -> None:
        self.gate.shut()
        for user in list(self.connected):
            user.disconnect()

    def _go_on(self) -> None:
        self.gate.open()

    def _begin_anew(self) -> None:
        left = apsw.connections()
        atfork.keep_for_ever(*left)  # before anybody lets go of them
        self.unsafe |= {place for one in left for place in self._places_of(one)}
        for one in left:
            if one in self.places:
                one.exec_trace = _refuse  # for code in the middle of using it
                self.inherited.add(id(one))
        self.gate = _Gate()
        for user in list(self.connected):
            user.begin_anew()

    def _places_of(self, connection: apsw.Connection) -> list[FileIdentity | None]:
        """The files of an inherited connection, which may be of other code than ours."""
        if (ours := self.places.get(connection)) is not None:
            return [ours]
        try:
            names = filter(None, map(connection.db_filename, connection.db_names()))
            return [place for name in names if (place := place_of(name)) is not None]
        except apsw.Error:  # it is in the middle of something, and in this process stays there
            return [None]


def _refuse(*_: object) -> bool:
    raise forked()


def forked() -> Misconfigured:
    return Misconfigured("this process was forked during work on a store, which its parent continues")


_here = _Process()


def join(connected: Connected) -> None:
    """Register an owner whose connections are closed before every fork."""
    _here.connected.add(connected)


def opened(connection: apsw.Connection, place: FileIdentity | None) -> None:
    """Note which file a new connection is of."""
    if place is not None:
        _here.places[connection] = place


def opened_as(connection: apsw.Connection) -> FileIdentity | None:
    """The file that a connection was opened on."""
    return _here.places.get(connection)


def is_inherited(connection: apsw.Connection) -> bool:
    """Whether a connection is the parent's, and must be left alone."""
    return id(connection) in _here.inherited


def enter() -> object:
    """Begin to use connections, as soon as no fork is under way; what it returns is for ``leave``."""
    atfork.notice()
    return _here.gate.enter()


def leave(token: object) -> None:
    _here.gate.leave(token)


@contextmanager
def using() -> Iterator[None]:
    token = enter()
    try:
        yield
    finally:
        leave(token)


def refuse_unsafe(path: Path) -> None:
    """Refuse a file whose open connection this process inherited."""
    atfork.notice()
    if _here.unsafe and not _here.unsafe.isdisjoint((place_of(path), None)):
        raise Misconfigured(
            f"{path} was in use when this process was forked, so anything this process wrote to it could be lost; "
            "fork while nothing reads or writes the store, or start this process with spawn",
            path=str(path),
        )
