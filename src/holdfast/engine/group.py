"""Group commit: a caller that finds the writer free commits for everyone who is waiting.

There is no writer thread for callers that can block. The first caller leads: it commits its own batch and all that
queued up meanwhile in one transaction, so one fsync serves them all, and then hands the lead to the oldest waiter.
A single caller therefore pays no hand-over at all. Batches that were *submitted* (async callers) have no thread to
lead with; for those one thread is started on first use.

A signal may raise an exception in a caller at any point, as Ctrl-C or a time limit does. So the lead is a fact kept
here and not on someone's stack, every step of leading can be restarted, and an interrupted leader finishes leading
before the exception propagates. Deliberately absent: any idea of what a batch contains.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from holdfast.engine.contract import Notify, Outcome, Receipt
from holdfast.errors import HoldfastError, Misconfigured, OutcomeUnknown

_log = logging.getLogger(__name__)


class Job:
    """One caller's batch to commit. It ends with exactly one of ``receipt`` and ``error``.

    A caller either waits at the gate, or left a ``notify``.
    """

    __slots__ = ("_gate", "actor", "error", "notify", "ops", "receipt", "taken", "tenant", "ticket", "time")

    def __init__(
        self,
        tenant: str,
        ops: Sequence[Any],
        time: int,
        actor: str | None = None,
        notify: Notify | None = None,
        ticket: object = None,
    ) -> None:
        self.tenant, self.ops, self.time, self.actor = tenant, ops, time, actor
        self.notify, self.ticket = notify, ticket
        self.receipt: Receipt | None = None
        self.error: BaseException | None = None
        self.taken = False
        self._gate = threading.Lock()
        self._gate.acquire()

    @property
    def done(self) -> bool:
        return self.receipt is not None or self.error is not None

    def wait(self) -> None:
        self._gate.acquire()

    def wake(self) -> None:
        """Let the waiting caller check again. Waking twice is harmless."""
        with suppress(RuntimeError):  # it is open already
            self._gate.release()


class GroupCommit:
    """Puts batches of many callers into few transactions. ``run`` commits a list of jobs and ends each of them."""

    def __init__(self, run: Callable[[list[Job]], None], limit: int = 512) -> None:
        self._run = run
        self._limit = limit
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._pending: deque[Job] = deque()
        self._running: list[Job] = []
        self._ran = False
        self._baton = threading.Lock()
        self._leader: object = None
        self._idle = threading.Condition(self._baton)
        self._thread: threading.Thread | None = None
        self._called = threading.Semaphore(0)

    def commit(self, tenant: str, ops: Sequence[Any], time: int, actor: str | None = None) -> Receipt:
        """Commit a batch and return its receipt; the calling thread may lead others' batches too."""
        job = Job(tenant, ops, time, actor)
        try:
            leading = self._accept(job, lead=job)
            while not leading and not job.done:
                job.wait()
                leading = self._leads(job)
            if leading:
                self._lead(job)
        except BaseException:
            self._go_on_without_caller(job)
            raise
        return _outcome(job)

    def submit(
        self, tenant: str, ops: Sequence[Any], time: int, notify: Notify, ticket: object, actor: str | None = None
    ) -> None:
        """Submit a batch without waiting for it. ``notify`` is called with all outcomes of its group."""
        self._start()
        if self._accept(Job(tenant, ops, time, actor, notify, ticket), lead=self):
            self._called.release()

    def close(self) -> None:
        """Finish what is under way and accept no more."""
        with self._baton:
            already, self._closed = self._closed, True
            while self._leader is not None:  # it goes on until every batch accepted before is committed
                self._idle.wait()
            if self._pending:  # someone was interrupted while queueing
                self._leader = self
        if self._leads(self):
            self._lead(self)
        if not already and self._thread is not None:
            self._called.release()
            self._thread.join()

    def begin_anew(self) -> None:
        """In a forked child, drop what is under way or waiting: the parent continues it.

        Only a fork in a signal handler finds a waiting caller here; it gets an error.
        """
        left = (*self._running, *self._pending)
        self._begin()
        for job in left:
            if not job.done:
                job.error = OutcomeUnknown("this process was forked during a commit, which its parent continues")
            job.wake()

    # Queueing

    def _accept(self, job: Job, lead: object) -> bool:
        """Queue a batch, and give the lead to ``lead`` if nobody has it; return whether it did.

        In one step with the check for closing, because closing waits only for what is queued.
        """
        with self._baton:
            if self._closed:
                raise Misconfigured("this store is closed")
            self._pending.append(job)
            if self._leader is None:
                self._leader = lead
                return True
            return False

    def _leads(self, who: object) -> bool:
        with self._baton:  # passing on the lead wakes the heir before it has the lead
            return self._leader is who

    def _start(self) -> None:
        if self._thread is None:
            with self._baton:
                if self._thread is None and not self._closed:
                    self._thread = threading.Thread(target=self._serve, name="holdfast-writer", daemon=True)
                    self._thread.start()

    def _serve(self) -> None:
        """Lead for batches that nobody waits for."""
        while True:
            self._called.acquire()
            if self._leads(self):
                self._lead(self)
            elif self._closed:
                return

    def _go_on_without_caller(self, job: Job) -> None:
        """The caller was interrupted: its batch is committed anyway, and the lead is passed on."""
        self._start()
        with self._baton:
            job.notify = _nobody
            if self._leader is None and self._pending:
                self._leader = self
                self._called.release()
        if self._leads(job):
            self._lead(job)

    # Leading

    def _lead(self, leader: object) -> None:
        """Commit what is queued and pass the lead on. An interruption is kept until that is done."""
        interruption: BaseException | None = None
        while True:
            try:
                while self._running or (self._pending and not _is_done(leader)):
                    self._commit_some(leader)
                if self._hand_over(leader):
                    break
            except BaseException as error:
                interruption = interruption or error
        if interruption is not None:
            raise interruption

    def _commit_some(self, leader: object) -> None:
        """Commit the oldest batches. Begun again after an interruption, it goes on where it was."""
        if not self._running:
            with self._baton:  # nobody may queue while the queue is looked through
                self._running = list(islice(self._pending, self._limit))
        for job in self._running:
            job.taken = True
        while self._pending and self._pending[0].taken:
            self._pending.popleft()
        try:
            if not self._ran:
                self._ran = True
                self._run(self._running)
        except BaseException as error:
            self._end_all(error, leader)
        if not all(job.done for job in self._running):
            self._end_all(OutcomeUnknown("the committing thread was interrupted"), leader)
        self._tell(leader)
        self._running, self._ran = [], False

    def _end_all(self, error: BaseException, leader: object) -> None:
        """End those that have no end. Only an error of ours is everyone's; a signal's exception is the leader's own."""
        for job in self._running:
            if not job.done:
                if job is leader:
                    job.error = error
                elif isinstance(error, HoldfastError):
                    job.error = error.again()
                else:
                    job.error = OutcomeUnknown("the committing thread was interrupted")

    def _tell(self, leader: object) -> None:
        """Wake those who wait, and tell each of the others once about all of its batches."""
        told: dict[Notify, list[Outcome]] = {}
        for job in self._running:
            if job.notify is not None:
                told.setdefault(job.notify, []).append((job.ticket, job.receipt, job.error))
            elif job is not leader:
                job.wake()
        for notify, outcomes in told.items():
            try:
                notify(outcomes)
            except Exception:  # its event loop is gone; the batches are durable all the same
                _log.exception("no caller could be notified of %d finished commits", len(outcomes))

    def _hand_over(self, leader: object) -> bool:
        """Pass the lead to the caller that waits longest, or drop it; False if there is more to do for this leader.

        The heir is woken first and finds the lead its own once this is through; woken twice it only looks twice.
        """
        with self._baton:
            if self._leader is not leader:
                return True
            if not self._pending:
                self._leader = None
                self._idle.notify_all()
            elif self._pending[0].notify is None:
                self._pending[0].wake()
                self._leader = self._pending[0]
            elif leader is self:
                return False
            else:
                self._called.release()
                self._leader = self
            return True


def _is_done(leader: object) -> bool:
    return isinstance(leader, Job) and leader.done


def _nobody(outcomes: list[Outcome]) -> None:
    """For a batch whose caller was interrupted."""


def _outcome(job: Job) -> Receipt:
    if job.error is not None:
        raise job.error
    assert job.receipt is not None
    return job.receipt
