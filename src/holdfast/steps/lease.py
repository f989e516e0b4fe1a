"""Who may act on a run now, and until when.

Two records say it. The version of the run's own record is the **fence**: claiming raises it, and every commit of a
holder guards it, so a holder that was taken over cannot write, however late it wakes up. The **lease** beside it
says until when to leave the holder alone. It is for liveness only; a renewer thread renews it for as long as
the process lives. A lease without a holder is a run that waits for someone to take it: from ``until`` on. Times are the
engine's.

Deliberately absent: trusting a lease for safety, and waiting for one whose holder is known to be dead on this machine.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from holdfast import atfork
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Delete, Guard, Op, Put, Record, Scope, Timed
from holdfast.errors import Conflict, Corrupt, Erased, Fenced, HoldfastError
from holdfast.ids import Ids
from holdfast.ledger.core import Core
from holdfast.steps.journal import KIND, to_header

LEASE = "lease"
SECOND = 1_000_000
_PATIENCE_S = 10.0  # counting a renewal under way at the end
_log = logging.getLogger(__name__)


class Terms(msgspec.Struct, frozen=True):
    """The body of a lease. ``seat``, ``pid`` and ``born`` show, on the same machine, whether the holder is alive."""

    thread: str
    run: str
    handler: str
    until: int
    holder: str = ""
    seat: str = ""
    pid: int = 0
    born: str = ""

    def put(self, id: str, scope: Scope, kind: str = LEASE, expect: int | None = None) -> Put:
        plain = {field: getattr(self, field) for field in self.__struct_fields__}
        return Put(kind, id, encode(plain, kind), expect=expect, scope=scope)


def to_terms(record: Record) -> Terms:
    try:
        return msgspec.convert(decode(record.body), Terms)
    except msgspec.ValidationError as error:
        raise Corrupt(f"{record.kind} {record.id!r} cannot be read: {error}") from error


class Holder(msgspec.Struct, frozen=True):
    """One process that works on runs."""

    name: str
    seat: str
    pid: int
    born: str

    def is_dead(self, terms: Terms) -> bool:
        """Whether the holder of a lease was a process on this machine that has ended."""
        if not terms.seat or terms.seat != self.seat:
            return False
        born = _born(terms.pid)
        return born == "" or (born is not None and bool(terms.born) and born != terms.born)


def this_process(ids: Ids) -> Holder:
    pid = os.getpid()
    return Holder(f"{socket.gethostname()}/{pid}/{ids.token()}", _seat(), pid, _born(pid) or "")


def _seat() -> str:
    """What processes share exactly when they can see each other's ids: a kernel boot and a process id namespace.

    Empty if the system does not say; then a dead holder is waited for, as if it were on another machine.
    """
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _born(pid: int) -> str | None:
    """When a process started, to tell it from a later one with the same id.

    Empty if there is no such process, None if the system does not say: a hidden process is not dead.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "" if _is_gone(pid) else None
    except OSError:
        return None
    after_name = text.rpartition(")")[2].split()
    return "" if after_name[0] in ("Z", "X") else after_name[19]


def _is_gone(pid: int) -> bool:
    """Whether there is no such process, by signalling it: other users' processes may be hidden from listings."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def clock_of(core: Core) -> Callable[[], int]:
    """The clock for comparing leases: the engine's own if its writers are on many machines."""
    return core.engine.now if isinstance(core.engine, Timed) else core.clock.now


class Lease:
    """A run held by this process. Its fence is ``version`` of this ``stream``: a recreated run has another stream."""

    def __init__(self, core: Core, record: Record, terms: Terms, seconds: float) -> None:
        self._core, self._terms, self._seconds = core, terms, seconds
        self.id, self.scope = record.id, record.scope
        self.version, self.stream = record.version, record.stream
        self.lost = ""
        self.over = False

    def guard(self) -> Guard:
        atfork.notice()
        if self.lost:
            raise self._refusal()
        return Guard(KIND, self.id, self.version, self.stream)

    def give_up(self, until: int | None = None) -> Op:
        """The operation that releases: for good, or so that anyone may take the run from a moment on."""
        if until is None:
            return Delete(LEASE, self.id)
        bare = Terms(self._terms.thread, self._terms.run, self._terms.handler, until)
        return bare.put(self.id, self.scope)

    def renew(self) -> None:
        """Renew the lease, or find out that another holder has it."""
        until = clock_of(self._core)() + round(self._seconds * SECOND)
        ops = (self.guard(), msgspec.structs.replace(self._terms, until=until).put(self.id, self.scope))
        try:
            self._core.write(ops, self._core.clock.now())
        except Erased as error:
            raise self.fenced(error) from error
        except Conflict as error:
            if not self._let_go_here():
                raise self.fenced(error) from error
            self.over = True  # it raced with the run's own end
            told = f"run {self._terms.run!r} of thread {self._terms.thread!r} is no longer held: it was released here"
            raise Fenced(told, thread=self._terms.thread, run=self._terms.run) from error

    def _let_go_here(self) -> bool:
        """Whether nobody holds the run and it was last held here: then this holder has ended or released it."""
        engine, tenant = self._core.engine, self._core.tenant
        run, lease = engine.get(tenant, KIND, self.id), engine.get(tenant, LEASE, self.id)
        if run is None or run.stream != self.stream or (lease is not None and to_terms(lease).holder):
            return False
        return to_header(run.body).holder == self._terms.holder

    def fenced(self, error: HoldfastError) -> Fenced:
        """The error for a holder whose fence is no longer current."""
        actual = error.facts.get("actual")
        gone = isinstance(error, Erased) or actual == 0
        self.lost = "was erased" if gone else "was taken over by another holder, or ended by one"
        return self._refusal(expected=self.version, actual=actual)

    def _refusal(self, **facts: Any) -> Fenced:
        told = f"run {self._terms.run!r} of thread {self._terms.thread!r} {self.lost}; nothing more is recorded here"
        return Fenced(told, thread=self._terms.thread, run=self._terms.run, **facts)

    @property
    def seconds(self) -> float:
        return self._seconds


class RenewedLease(Protocol):
    """What a renewer renews at intervals, until it is lost or over."""

    id: str
    lost: str
    over: bool

    @property
    def seconds(self) -> float: ...
    def renew(self) -> None: ...
    def guard(self) -> Guard: ...
    def give_up(self, until: int | None = None) -> Op: ...


class LeaseRenewer:
    """Renews the leases of this process while it lives. It starts its thread only once there is a lease.

    The locks are plain: a signal that raises an exception inside a ``Condition`` can leave it locked.
    """

    def __init__(self, owner: object = None) -> None:
        self._owner = owner  # lives as long as the thread, so that closing a store finds it
        self._closed = False
        self._begin()
        atfork.join(in_child=self._begin_anew)

    def _begin(self) -> None:
        self._due: weakref.WeakKeyDictionary[RenewedLease, float] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self._bell = threading.Lock()  # unlocked only at the moment it rings
        self._bell.acquire()
        self._alarm: float | None = None
        self._soon: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None

    def _begin_anew(self) -> None:
        """In a forked child, drop the parent's leases: they are neither renewed nor released here."""
        for lease in list(self._due):
            lease.lost = "is held by the process that forked this one"
        self._begin()

    def keep(self, lease: RenewedLease) -> None:
        due = time.monotonic() + lease.seconds / 3
        with self._lock:
            self._due[lease] = due
            sooner = self._alarm is None or due < self._alarm
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._serve, name="holdfast-leases", daemon=True)
                self._thread.start()
        if sooner:
            self._ring()

    def drop(self, lease: RenewedLease) -> None:
        lease.over = True
        with self._lock:
            self._due.pop(lease, None)

    def soon(self, work: Callable[[], None]) -> None:
        """Do something short in the renewer's thread, for a caller that must not wait for the store."""
        with self._lock:
            self._soon.append(work)
        self._ring()

    def keeps(self, id: str) -> bool:
        with self._lock:
            return any(lease.id == id for lease in self._due)

    def held(self) -> list[RenewedLease]:
        with self._lock:
            return list(self._due)

    def close(self) -> None:
        self._closed = True
        self._ring()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE_S)

    def _ring(self) -> None:
        with suppress(RuntimeError):  # already ringing
            self._bell.release()

    def _serve(self) -> None:
        while self._round():
            pass  # drop references here: a run that nobody refers to is not kept

    def _round(self) -> bool:
        """Renew what is due, or wait until something is; return whether to continue."""
        if self._closed:
            return False
        with self._lock:
            due = self._take_due()
            soon, self._soon = self._soon, []
            self._alarm = min(self._due.values(), default=None)
            pause = -1.0 if self._alarm is None else max(0.0, self._alarm - time.monotonic())
        for work in soon:
            work()
        if not due and not soon:
            self._bell.acquire(timeout=min(pause, threading.TIMEOUT_MAX))
        for lease in due:
            _renew(lease)
        return True

    def _take_due(self) -> list[RenewedLease]:
        now = time.monotonic()
        due = [lease for lease, moment in self._due.items() if moment <= now]
        for lease in due:
            self._due[lease] = now + lease.seconds / 3
        return due


def _renew(lease: RenewedLease) -> None:
    if lease.over or lease.lost:
        return
    try:
        lease.renew()
    except Fenced as error:
        if not lease.over:
            _log.warning("%s", error)
    except Exception:  # the store may be back before the lease ends
        _log.warning("the lease of %r could not be renewed", lease.id, exc_info=True)


def is_free(terms: Terms | None, now: int, holder: Holder) -> bool:
    """Whether a run may be taken by name: nobody holds it, its lease has ended, or its holder is dead."""
    return terms is None or not terms.holder or is_due(terms, now, holder)


def is_due(terms: Terms, now: int, holder: Holder) -> bool:
    """Whether a worker should continue a run: one that waits is left alone until its time."""
    return terms.until <= now or (bool(terms.holder) and holder.is_dead(terms))


def plain_terms(header: Any, until: int, holder: Holder | None) -> Terms:
    """The terms of a lease on a run, with or without a holder."""
    if holder is None:
        return Terms(header.thread, header.name, header.handler, until)
    return Terms(
        header.thread, header.name, header.handler, until, holder.name, holder.seat, holder.pid, holder.born
    )  # fmt: skip
