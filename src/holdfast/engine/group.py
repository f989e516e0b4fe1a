"""Group commit: whoever finds the writer free commits for everyone who is waiting.

There is no writer thread for callers that can block. The first caller leads: it commits its own batch and all that
queued up meanwhile in one transaction, so one fsync serves them all, and then hands the lead to the oldest waiter.
A single caller therefore pays no hand-over at all. Batches that were *submitted* (async callers) have no thread to
lead with; for those one thread is started on first use. Deliberately absent: any idea of what a batch contains.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from holdfast.engine.contract import Notify, Op, Outcome, Receipt
from holdfast.errors import Misconfigured, OutcomeUnknown

_log = logging.getLogger(__name__)


class Job:
    """One caller's batch on its way to the disk. It ends with exactly one of ``receipt`` and ``error``.

    A caller either waits at the gate, or left a ``notify`` to be told by; then there is no gate.
    """

    __slots__ = ("_gate", "error", "notify", "ops", "promoted", "receipt", "tenant", "ticket", "time")

    def __init__(
        self, tenant: str, ops: Sequence[Op], time: int, notify: Notify | None = None, ticket: object = None
    ) -> None:
        self.tenant, self.ops, self.time = tenant, ops, time
        self.notify, self.ticket = notify, ticket
        self.receipt: Receipt | None = None
        self.error: BaseException | None = None
        self.promoted = False
        if notify is None:
            self._gate = threading.Lock()
            self._gate.acquire()

    @property
    def done(self) -> bool:
        return self.receipt is not None or self.error is not None

    def wait(self) -> None:
        self._gate.acquire()

    def wake(self) -> None:
        """Let the waiting caller go on, because the job is done or because it now leads."""
        self._gate.release()


class GroupCommit:
    """Puts batches of many callers into few transactions. ``run`` commits a list of jobs and ends each of them."""

    def __init__(self, run: Callable[[list[Job]], None], limit: int = 512) -> None:
        self._run = run
        self._limit = limit
        self._pending: deque[Job] = deque()
        self._lead = threading.Lock()
        self._thread: threading.Thread | None = None
        self._baton = threading.Lock()
        self._stopped = False
        self._called = threading.Semaphore(0)
        self._closed = False

    def commit(self, tenant: str, ops: Sequence[Op], time: int) -> Receipt:
        """Commit a batch and return its receipt; the calling thread may lead others' batches too."""
        job = Job(tenant, ops, time)
        self._accept(job)
        if not self._lead.acquire(blocking=False):
            try:
                job.wait()
            except BaseException:
                self._go_on_without_caller(job)
                raise
            if not job.promoted:
                return _outcome(job)
        while not job.done:
            self._commit_pending(leader=job)
        self._hand_over()
        return _outcome(job)

    def submit(self, tenant: str, ops: Sequence[Op], time: int, notify: Notify, ticket: object) -> None:
        """Hand a batch over without waiting for it. ``notify`` hears of it, with all others of its group."""
        self._refuse_when_closed()
        if self._thread is None:
            self._start()
        self._accept(Job(tenant, ops, time, notify, ticket))
        if self._lead.acquire(blocking=False):
            self._called.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lead for something that is no batch; those who queue meanwhile go next."""
        self._refuse_when_closed()
        self._lead.acquire()
        try:
            self._refuse_when_closed()  # the close may have come first
            yield
        finally:
            self._hand_over()

    def close(self) -> None:
        """Finish what is under way and take no more."""
        with self._baton:
            already, self._closed = self._closed, True
        if already:
            return
        with self._lead:  # comes free only when every batch accepted before has been committed
            while self._pending:
                self._commit_pending()
            with self._baton:
                self._stopped = True
            if self._thread is not None:
                self._called.release()
                self._thread.join()

    def _accept(self, job: Job) -> None:
        """Queue a batch. In one step with looking whether the end has begun, because the end commits what is queued."""
        with self._baton:
            self._refuse_when_closed()
            self._pending.append(job)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Misconfigured("this store is closed")

    def _start(self) -> None:
        with self._baton:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._serve, name="holdfast-writer", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        """Lead on behalf of submitted batches. Each call of the semaphore passes the lead to this thread."""
        while True:
            self._called.acquire()
            if self._stopped:
                return
            self._commit_pending()
            self._hand_over()

    def _go_on_without_caller(self, job: Job) -> None:
        """The waiting thread was interrupted: its batch is committed all the same, and the lead is not lost with it."""
        self._start()
        with self._baton:
            if not job.promoted:
                job.notify = _nobody
                return
        self._commit_pending(leader=job)  # its gate is open already
        self._hand_over()

    def _commit_pending(self, leader: Job | None = None) -> None:
        """Commit what is queued, up to the limit. Call only while holding the lead."""
        jobs: list[Job] = []
        while self._pending and len(jobs) < self._limit:
            jobs.append(self._pending.popleft())
        if not jobs:
            return
        try:
            self._run(jobs)
        except BaseException as error:  # a job without an end would hang its caller for ever
            for job in jobs:
                if not job.done:
                    job.error = error if job is leader or isinstance(error, Exception) else OutcomeUnknown()
        self._tell(jobs, leader)

    def _tell(self, jobs: list[Job], leader: Job | None) -> None:
        """Wake those who wait, and tell each of the others once about all of its batches."""
        told: dict[Notify, list[Outcome]] = {}
        for job in jobs:
            if job.notify is not None:
                told.setdefault(job.notify, []).append((job.ticket, job.receipt, job.error))
            elif job is not leader:
                job.wake()
        for notify, outcomes in told.items():
            try:
                notify(outcomes)
            except Exception:  # its event loop is gone; the batches are durable all the same
                _log.exception("nobody could be told about %d finished commits", len(outcomes))

    def _hand_over(self) -> None:
        """Pass the lead to whoever waits longest; let it go when nobody does."""
        while True:
            if self._pending:
                heir = self._pending[0]
                with self._baton:
                    heir.promoted = heir.notify is None
                if heir.promoted:
                    heir.wake()
                else:
                    self._called.release()
                return
            self._lead.release()
            # Someone may have queued between the look and the release and found the lead still taken.
            if not self._pending or not self._lead.acquire(blocking=False):
                return


def _nobody(outcomes: list[Outcome]) -> None:
    """For a batch whose caller was interrupted."""


def _outcome(job: Job) -> Receipt:
    if job.error is not None:
        raise job.error
    assert job.receipt is not None
    return job.receipt
