"""Exclusive work on a thread: one caller holds it, and others wait, or learn who holds it.

A hold excludes only callers that ask for one. Safety comes from commits, which expect what their writer has seen; so a
holder that was paused for longer than its lease, and lost the thread meanwhile, gets a ``Conflict`` when it writes.
Deliberately absent: a queue. Waiting callers are not served in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

from holdfast import atfork
from holdfast.checks import is_seconds
from holdfast.clock import to_datetime
from holdfast.engine.contract import Guard, Op, Put, Scope
from holdfast.errors import Conflict, Erased, Fenced, HoldfastError, Invalid, ThreadHeld, quoted
from holdfast.steps.lease import SECOND, Holder, Terms, is_free, to_terms
from holdfast.steps.runs import RunBook

HOLD = "hold"
_numbers = count(1)  # of the holds of this process
_LOOK_S = 0.5  # a killed holder does not notify, so waiting callers poll


class Hold:
    """A thread held exclusively, from ``take`` to ``release``, or for the length of a ``with``."""

    def __init__(self, runs: RunBook, thread: str, whose: Callable[[], Scope], wait_s: float) -> None:
        if not is_seconds(wait_s):
            raise Invalid(f"wait_s is a number of seconds, 0 or more, not {quoted(wait_s)}")
        self._runs, self._thread, self._whose, self._wait_s = runs, thread, whose, wait_s
        self._name = f"hold {next(_numbers)}"
        self._lock = atfork.lock()
        self.id, self.seconds = f"hold {thread}", runs.lease_s
        self.version = 0
        self.lost = ""
        self.over = True

    def __repr__(self) -> str:
        return f"Hold({self._thread!r}, {'not held' if self.over else 'held'})"

    def take(self) -> Self:
        """Hold the thread, waiting for other holders up to ``wait_s``; then raise ``ThreadHeld``. Blocks."""
        for number, pause in enumerate(self.tries()):
            if number == 0:
                self._runs.hear_all()
            else:
                self._runs.listen(pause)
        return self

    def tries(self) -> Iterator[float]:
        """Try until it is held. After each failed try, yield the longest time to wait for the next, in seconds."""
        if not self.over:
            raise Invalid("this hold is already in use; call thread.hold() again for each `with`")
        end = time.monotonic() + self._wait_s
        while (held := self._tried()) is not None:
            left = end - time.monotonic()
            if left <= 0:
                raise held
            yield min(left, _LOOK_S)

    def release(self) -> None:
        """Release the thread. If another holder took it meanwhile, it stays theirs."""
        with self._lock:
            if self.over:
                return
            try:
                self._let_go()
            except HoldfastError:
                raise
            except BaseException:  # interrupted: others would wait for the lease to end
                with suppress(HoldfastError):
                    self._let_go()
                raise
            finally:
                self._runs.renewer.drop(self)

    def _let_go(self) -> None:
        with suppress(Conflict):
            if self._is_mine():
                self._commit(self.give_up())

    def _tried(self) -> ThreadHeld | None:
        """Take it if it is free; otherwise return who holds it."""
        core, runs = self._runs.core, self._runs
        while True:
            record = core.engine.get(core.tenant, HOLD, self._thread)
            terms = None if record is None else to_terms(record)
            held = terms is not None and not is_free(terms, runs.now(), runs.holder)
            if terms is not None and held and not runs.is_forgotten(self.id, terms):
                return self._held_by(terms)
            with suppress(Conflict):  # another process changed it first: see who
                self._claim(0 if record is None else record.version)
                return None

    def _claim(self, version: int) -> None:
        runs = self._runs
        try:
            with runs.claiming([self.id]):
                self._commit(self._put(version, runs.holder))
                self.version, self.lost, self.over = version + 1, "", False
                runs.renewer.keep(self)
        except Conflict:
            raise
        except Erased as error:
            told = f"thread {self._thread!r} was erased and stays erased; use another id"
            raise Erased(told, thread=self._thread) from error
        except BaseException:  # interrupted, or the answer was lost: it may have been taken anyway
            self.over = False
            with suppress(HoldfastError):
                self.release()
            raise

    def _held_by(self, terms: Terms) -> ThreadHeld:
        who = "this process" if terms.holder == self._runs.holder.name else terms.holder
        return ThreadHeld(
            f"thread {self._thread!r} is held by {who} until {to_datetime(terms.until):%Y-%m-%d %H:%M:%S} UTC, or "
            "longer while it is alive; to wait for it: thread.hold(wait_s=…)",
            thread=self._thread, holder=terms.holder, until=to_datetime(terms.until),
        )  # fmt: skip

    # As the renewer of leases sees it

    def renew(self) -> None:
        """Renew the lease, or find out that another holder has it."""
        with self._lock:
            if self.over:
                return
            with suppress(Conflict):
                if self._is_mine():
                    self._commit(self._put(self.version, self._runs.holder))
                    self.version += 1
                    return
            raise self._fenced()

    def _is_mine(self) -> bool:
        """Whether the stored hold is this one: a recreated record counts its versions from the start again.

        If so, take the stored version, because the answer to an earlier commit may have been lost.
        """
        record = self._runs.core.engine.get(self._runs.core.tenant, HOLD, self._thread)
        if record is None:
            return False
        terms = to_terms(record)
        mine = (terms.holder, terms.run) == (self._runs.holder.name, self._name)
        if mine:
            self.version = record.version
        return mine

    def _fenced(self) -> Fenced:
        self.lost = self.lost or "was taken by another holder, or erased"
        return Fenced(f"thread {self._thread!r} {self.lost}", thread=self._thread)

    def guard(self) -> Guard:
        if not self._is_mine():
            raise self._fenced()
        return Guard(HOLD, self._thread, self.version)

    def give_up(self, until: int | None = None) -> Op:  # there is nothing to continue later
        """The operation that releases. The record stays: if its versions started over, two could take one thread."""
        return self._put(self.version, None)

    def _put(self, expect: int, holder: Holder | None) -> Put:
        terms = Terms(self._thread, "", "", 0)
        if holder is not None:
            until = self._runs.now() + round(self.seconds * SECOND)
            terms = Terms(self._thread, self._name, "", until, holder.name, holder.seat, holder.pid, holder.born)
        return terms.put(self._thread, self._whose(), HOLD, expect)

    def _commit(self, *ops: Op) -> None:
        core = self._runs.core
        core.write(ops, core.clock.now())

    def __enter__(self) -> Self:
        return self.take()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(HoldfastError):  # the lease will run out
            self.release()
