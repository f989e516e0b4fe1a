"""A disk under the real SQLite engine whose power can be cut at any call, and whose calls can be made to fail.

``PowerDisk`` lies, as an SQLite VFS, between SQLite and ordinary files. The files play the part of the operating
system's cache: whoever looks at them sees every write. Beside them a ``Platter`` keeps what was synced. ``cut`` decides
what is left, every later call of the old connection fails, and ``recover`` writes what is left into the files. Then
any engine opens them again, with SQLite's own VFS.

The engine is ``SqliteEngine`` with its real opening, settings and migration. One thing differs: files of an apsw VFS
have no shared memory, so WAL needs the exclusive locking mode, hence reads borrow the writer's connection. A snapshot
therefore keeps writers waiting, and one who commits inside its own snapshot gets an error.

Deliberately absent: several processes on one disk, and what a workload must find afterwards (``power`` asks that).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import apsw

from crashlab.disk_platter import Chance, Platter, Truncation, Write
from holdfast.clock import Clock
from holdfast.engine import registry, sqlite_file
from holdfast.engine.group import Job
from holdfast.engine.sqlite import SqliteEngine
from holdfast.errors import Misconfigured
from holdfast.ids import Ids
from holdfast.ledger.schema import Registry
from holdfast.store import Store
from holdfast.store import open as open_store
from holdfast.testing.fakes import ManualClock, SeededIds

Kind = Literal["open", "read", "write", "sync", "truncate", "delete"]

CHANGES: tuple[Kind, ...] = ("write", "sync", "truncate", "delete")
"""The calls at which the power can go."""

_CODES: dict[Kind, int] = {
    "open": apsw.SQLITE_CANTOPEN,
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
}
_LOGS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
_SUFFIXES = ("", "-wal", "-journal", "-shm")
_BUSY_TIMEOUT_S = 2.0
_numbers = itertools.count(1)


class Fault:
    """Calls of one kind, or of ``any``, that fail: the ``nth`` from now, and with ``lasting`` all after it.

    The disk is ``full`` instead of broken. It ``forgets``, when a sync fails, what it could not write, and says at the
    next one that all is well, as Linux does. The process ``kills`` itself over the error.
    """

    def __init__(
        self,
        kind: Kind | Literal["any"],
        nth: int,
        *,
        full: bool = False,
        lasting: bool = False,
        forgets: bool = False,
        kills: bool = False,
    ) -> None:
        self.kind, self.nth, self.full, self.lasting = kind, nth, full, lasting
        self.forgets, self.kills = forgets, kills
        self.fired = 0
        self._seen = 0

    def strikes(self, kind: Kind) -> bool:
        if self.kind not in ("any", kind):
            return False
        self._seen += 1
        strikes = self._seen == self.nth or (self.lasting and self._seen > self.nth)
        self.fired += strikes
        return strikes

    def error(self, kind: Kind) -> Exception:
        """What SQLite's own VFS makes of ENOSPC or EIO. Only a write tells a full disk from a broken one."""
        return _error(apsw.SQLITE_FULL if self.full and kind == "write" else _CODES[kind], f"the disk fails to {kind}")


def _error(code: int, text: str) -> Exception:
    error = apsw.exception_for(code)
    error.args = (text,)
    return error


class PowerDisk:
    """The disk that one store's files are on. What is there when it is made counts as synced.

    ``synchronous`` overrides the engine's setting after it was opened, for a control that must show losses.
    """

    def __init__(
        self, path: Path, seed: int = 0, *, synchronous: str | None = None, checkpoint_pages: int = 25
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self.synchronous, self.checkpoint_pages = synchronous, checkpoint_pages
        self.calls: Counter[str] = Counter()
        self.checkpoints = 0
        self.failed_checkpoints = 0
        self.off = False
        self.life = 0
        self.lock = threading.RLock()
        self.chance = Chance(seed)
        self.platter = self._found()
        self._countdown = 0
        self._at_zero: Callable[[], None] = self.cut
        self._left: dict[str, bytes] = {}
        self._fault: Fault | None = None

    @property
    def changes(self) -> int:
        """How many calls there were at which the power can go."""
        return sum(self.calls[kind] for kind in CHANGES)

    @property
    def fates(self) -> Counter[str]:
        """What became of unsynced changes: kept, dropped, torn, names lost."""
        return self.chance.fates

    # Power

    def cut(self) -> None:
        """Cut the power now. The process is gone with it: its connections get nothing but errors from here on."""
        with self.lock:
            if not self.off:
                self.off = True
                self.life += 1
                self._left = self.platter.left(self.chance)

    def kill(self) -> None:
        """End the process but not the power: its connections are dead, and all it ever wrote is in the files."""
        with self.lock:
            self.life += 1

    def cut_after(self, changes: int) -> None:
        """Cut the power at the n-th write, sync, truncation or deletion from now; that call fails."""
        self._countdown, self._at_zero = changes, self.cut

    def kill_after(self, changes: int) -> None:
        """Kill the process at the n-th write, sync, truncation or deletion from now; that call fails."""
        self._countdown, self._at_zero = changes, self.kill

    def recover(self) -> Path:
        """Switch the power on again, with what it left in the files. All connections must be closed by now."""
        assert self.off, "there was no power cut"
        for suffix in _SUFFIXES:
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        for name, content in self._left.items():
            Path(name).write_bytes(content)
        self.platter = self._found()
        self.off, self._countdown, self._fault = False, 0, None
        return self.path

    # Errors

    def fail(self, fault: Fault) -> Fault:
        """Let calls fail from now on, until ``repair``."""
        self._fault = fault
        return fault

    def repair(self) -> bool:
        """Let all calls succeed again; say whether any had failed."""
        fault, self._fault = self._fault, None
        return fault is not None and fault.fired > 0

    # Opening

    @contextmanager
    def engine(self, clock: Clock | None = None, ids: Ids | None = None) -> Iterator[SqliteEngine]:
        """Open the real engine on this disk, and close it at the end."""
        with self._mounted():
            engine = _OneConnectionEngine(self, clock or ManualClock(), ids or SeededIds())
            try:
                yield engine
            finally:
                engine.close()

    @contextmanager
    def store(
        self,
        *,
        tenant: str = "default",
        clock: Clock | None = None,
        ids: Ids | None = None,
        schemas: Registry | None = None,
    ) -> Iterator[Store]:
        """Open a store on this disk as ``holdfast.open`` does, and close it at the end."""
        clock, ids = clock or ManualClock(), ids or SeededIds()
        with self._mounted():
            usual = registry._FACTORIES["sqlite"]
            registry._FACTORIES["sqlite"] = lambda url, clock, ids: _OneConnectionEngine(self, clock, ids)
            try:
                store = open_store(self.path, tenant=tenant, clock=clock, ids=ids, schemas=schemas)
            finally:
                registry._FACTORIES["sqlite"] = usual
            with store:
                yield store

    # For the VFS

    def meet(self, kind: Kind, life: int) -> Fault | None:
        """Count a call, and say whether a fault strikes it. Without power, or for a dead process, every call fails."""
        if self.off or life != self.life:
            raise _error(_CODES[kind], "the power is off, or this process was killed")
        self.calls[kind] += 1
        if self._fault is None or not self._fault.strikes(kind):
            return None
        if self._fault.kills:
            self.kill()
        return self._fault

    def pass_or_end(self, kind: Kind) -> None:
        """Count down to the end of power or process. Of the call at which it comes, anything may have happened."""
        if self._countdown:
            self._countdown -= 1
            if not self._countdown:
                self._at_zero()
                raise _error(_CODES[kind], f"the end came at this {kind}")

    # Inside

    def _found(self) -> Platter:
        files = (Path(f"{self.path}{suffix}") for suffix in _SUFFIXES)
        return Platter({str(file): file.read_bytes() for file in files if file.exists()})

    @contextmanager
    def _mounted(self) -> Iterator[None]:
        """Let connections to this path, and only those, go through this disk."""
        vfs = _Vfs(self, f"holdfast-power-{next(_numbers)}")
        usual = sqlite_file.connect

        def connect(path: Path, flags: int, busy_timeout_s: float = 0.0) -> apsw.Connection:
            return self._connect(vfs.name, flags) if path == self.path else usual(path, flags, busy_timeout_s)

        sqlite_file.connect = connect
        try:
            yield
        finally:
            sqlite_file.connect = usual
            vfs.unregister()

    def _connect(self, vfs: str, flags: int) -> apsw.Connection:
        connection = _Connection(str(self.path), flags=flags, vfs=vfs)
        # Before the first access: without shared memory SQLite refuses WAL in any other locking mode.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.set_wal_hook(self._checkpoint)
        return connection

    def _checkpoint(self, connection: apsw.Connection, database: str, pages: int) -> int:
        """What SQLite's automatic checkpoint does, which ignores errors too, but sooner, and counted.

        apsw would raise in the commit what a Python VFS raised in SQLite's own automatic checkpoint.
        """
        if pages >= self.checkpoint_pages:
            try:
                connection.wal_checkpoint(database, apsw.SQLITE_CHECKPOINT_PASSIVE)
                self.checkpoints += 1
            except apsw.Error:
                self.failed_checkpoints += 1
        return apsw.SQLITE_OK


class _OneConnectionEngine(SqliteEngine):
    """The engine, with reads through the one connection that an exclusively locked file can have."""

    def __init__(self, disk: PowerDisk, clock: Clock, ids: Ids) -> None:
        self._one = threading.RLock()
        super().__init__(disk.path, clock, ids, busy_timeout_s=_BUSY_TIMEOUT_S)
        if disk.synchronous is not None:
            sqlite_file.pragma(self._writer.connected(), f"synchronous = {disk.synchronous}")

    def _commit_jobs(self, jobs: list[Job]) -> None:
        with self._one:
            super()._commit_jobs(jobs)

    def _borrow(self) -> apsw.Connection:
        self._one.acquire()
        try:
            if self._closed:
                raise Misconfigured("this store is closed")
            return self._writer.connected()  # real readers would have connections of their own, which still work
        except BaseException:
            self._one.release()
            raise

    def _give_back(self, connection: apsw.Connection) -> None:
        self._one.release()


class _Connection(apsw.Connection):
    """A connection that closes like one with SQLite's own VFS: what fails meanwhile is nobody's error any more."""

    def close(self, force: bool = False) -> None:
        with suppress(apsw.IOError, apsw.FullError, apsw.CantOpenError):
            super().close(force)


class _Vfs(apsw.VFS):
    """SQLite's usual VFS, with every file on a disk of ours."""

    def __init__(self, disk: PowerDisk, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self._disk, self._life = disk, disk.life

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        if name is None or flags[0] & apsw.SQLITE_OPEN_DELETEONCLOSE:
            return apsw.VFSFile("", name, flags)  # scratch space, of which nothing is promised
        with self._disk.lock:
            if fault := self._disk.meet("open", self._life):
                raise fault.error("open")
            return _File(self._disk, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        disk = self._disk
        with disk.lock:
            if fault := disk.meet("delete", self._life):
                raise fault.error("delete")
            super().xDelete(name, False)
            disk.platter.delete(name)
            disk.pass_or_end("delete")
            if syncdir:
                disk.platter.sync_names()


class _File(apsw.VFSFile):
    """One open file. The real one below it is the cache; nothing is ever really synced."""

    def __init__(self, disk: PowerDisk, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk, self._life = disk, disk.life
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name
        disk.platter.create(self._name)
        # SQLite's unix VFS syncs the folder with the first sync of a log it may create; of a database it does not.
        self._syncs_names = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _LOGS)

    def xRead(self, amount: int, offset: int) -> bytes:
        if fault := self._disk.meet("read", self._life):
            raise fault.error("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:
        disk, content = self._disk, bytes(data)
        with disk.lock:
            fault = disk.meet("write", self._life)
            if fault:  # a system that runs out of room in the middle has written the beginning
                content = content[: disk.chance.part(len(content) - 1)]
            if content:
                disk.platter.change(self._name, Write(offset, content))
                super().xWrite(content, offset)
            if fault:
                raise fault.error("write")
            disk.pass_or_end("write")

    def xTruncate(self, newsize: int) -> None:
        disk = self._disk
        with disk.lock:
            if fault := disk.meet("truncate", self._life):
                raise fault.error("truncate")
            disk.platter.change(self._name, Truncation(newsize))
            super().xTruncate(newsize)
            disk.pass_or_end("truncate")

    def xSync(self, flags: int) -> None:
        disk = self._disk
        with disk.lock:
            if fault := disk.meet("sync", self._life):
                if fault.forgets:
                    disk.platter.forget(self._name, disk.chance)
                raise fault.error("sync")
            disk.pass_or_end("sync")
            disk.platter.sync(self._name)
            if self._syncs_names:
                disk.platter.sync_names()
                self._syncs_names = False
