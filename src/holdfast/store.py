"""The store: opens an engine, and offers the public verbs on the parts that ``wiring`` put together.

A store works in one tenant, and every read and write names it. Deliberately absent: rules about threads, states or
archives (their rooms have them), and any background thread of its own.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self, Unpack

from holdfast import config
from holdfast.checks import check_flag, check_function, check_part, is_seconds
from holdfast.clock import Clock, SystemClock, to_micros
from holdfast.engine.contract import Commit, Copies, Query, Record, Scope
from holdfast.engine.postgres_options import PostgresOptions
from holdfast.engine.registry import POSTGRES, open_engine, open_replica, scheme_of, sqlite_path
from holdfast.errors import Conflict, Invalid, Misconfigured, quoted
from holdfast.ids import Ids, check_id
from holdfast.ledger import expiry, feed, quotas
from holdfast.ledger.core import Core, scan_all
from holdfast.ledger.expiry import Expired
from holdfast.ledger.feed import Follower, FollowerInfo
from holdfast.ledger.folder import Folder, folders
from holdfast.ledger.quotas import KEEP, Quota, QuotaUsage
from holdfast.ledger.schema import DEFAULT, Registry
from holdfast.ledger.thread import check_count, check_tags, to_info
from holdfast.ledger.users import users
from holdfast.memory.handle import Memories
from holdfast.memory.names import COLLECTION, MEMORY, collection_id
from holdfast.privacy.verify import verify
from holdfast.providers.choose import AUTO, RerankerSpec, Spec, choose, choose_reranker
from holdfast.providers.embedding import Embedder
from holdfast.records import Erasure, FolderInfo, ThreadInfo, UserInfo, VerifyReport
from holdfast.steps import resume
from holdfast.steps.replay import Replayed
from holdfast.steps.resume import Handlers, Resumed
from holdfast.steps.run import Run
from holdfast.steps.runs import LEASE_S, RunBook
from holdfast.steps.timeline import RunInfo
from holdfast.thread import Thread, replay
from holdfast.wiring import Wiring

if TYPE_CHECKING:
    from holdfast.archive import ArchiveManifest, ImportReport, Progress, Restored
    from holdfast.context.allowance import Cap
    from holdfast.context.report import Context
    from holdfast.providers.models.choose import Spec as ModelSpec
    from holdfast.sessions.context_source import Settings
    from holdfast.sessions.session import Session, SessionSettings


REPLICA_LAG_S = 5.0


def open(  # noqa: PLR0913 - how a store is opened, each by name
    url: str | Path | None = None,
    *,
    tenant: str | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    schemas: Registry | None = None,
    lease_s: float = LEASE_S,
    embedder: Spec = AUTO,
    reranker: RerankerSpec = AUTO,
    actor: str | None = None,
    max_context: int | str | None = None,
    postgres: PostgresOptions | None = None,
    replica: str | None = None,
    replica_lag_s: float = REPLICA_LAG_S,
) -> Store:
    """Open a store: a file path for SQLite, ``postgresql://…``, or ``ram:``. The default is ``HOLDFAST_DB``.

    A missing file is created. Tables are brought up to date, even when ten processes open the store at once.
    ``lease_s`` is how long a run stays with a process that shows no sign of life. ``embedder`` makes the vectors that
    recall compares: "auto" (WordLlama if it is installed), "none", "minilm", "openai:MODEL", a function or an
    object. ``reranker`` reads the first hits again: "auto" (our own if it is installed), "none" or an object.
    ``actor`` is recorded in the feed as the author of each change: a person, a service, a key.
    ``max_context`` caps every context and session: a number of tokens, or money such as "$0.05" for each call.
    ``postgres`` has options such as ``{"pool_size": 20, "schema": "agents"}``; the address may have them too.
    ``replica`` is a Postgres replica to recall, list and export from, while it is at most ``replica_lag_s`` seconds
    behind. The default is ``HOLDFAST_REPLICA``, for the database of ``HOLDFAST_DB``.
    """
    url = config.database() if url is None else url
    if url is None:
        raise Misconfigured('no database given: use holdfast.open("agent.db"), or set HOLDFAST_DB')
    name = check_id(config.tenant() if tenant is None else tenant, "tenant")
    if not (is_seconds(lease_s) and 0 < lease_s <= 86_400):
        raise Misconfigured(f"lease_s is a number of seconds over 0, at most a day, not {quoted(lease_s)}")
    clock = check_part("clock", SystemClock() if clock is None else clock, "now")
    ids = check_part("ids", Ids() if ids is None else ids, "stream", "token")
    schemas = check_part("schemas", DEFAULT if schemas is None else schemas, "schema", "named")
    if not (is_seconds(replica_lag_s) and 0 < replica_lag_s <= 3_600):
        raise Misconfigured(
            f"replica_lag_s is a number of seconds over 0, at most an hour, not {quoted(replica_lag_s)}"
        )
    vectors, author = _embedder(embedder), _actor(actor)
    rereads = choose_reranker(reranker)
    cap = None if max_context is None else _cap(max_context)
    address = _address(url)
    replica = config.replica(url) if replica is None else replica
    if replica is not None and scheme_of(address) not in POSTGRES:
        raise Misconfigured("a replica goes with a postgresql:// address: other stores have none")
    engine = open_engine(address, clock, ids, postgres)
    try:
        follower = None if replica is None else open_replica(engine, replica, replica_lag_s, clock, ids, name)
    except BaseException:
        engine.close()
        raise
    core = Core(engine, name, clock, schemas, author, follower)
    return Store(Wiring(core, RunBook(core, ids, lease_s), ids=ids, embedder=vectors, reranker=rereads, cap=cap))


def _cap(given: int | str) -> Cap | None:
    from holdfast.context.allowance import check_cap  # noqa: PLC0415 - few stores have one

    return check_cap(given)


def _embedder(spec: Spec) -> Embedder | None:
    """The embedder for a spec. Only an endpoint named by text needs a key and an address from the environment."""
    remote = isinstance(spec, str) and spec.strip().casefold().startswith("openai:")
    return choose(spec, **config.endpoint()) if remote else choose(spec)


def _address(url: str | Path) -> str:
    """A path object is always a file, even when a colon in its name makes it look like a URL."""
    if isinstance(url, Path):
        try:
            return os.path.abspath(url.expanduser())
        except (RuntimeError, OSError) as error:  # no home directory, or no current directory
            raise Misconfigured(f"{quoted(url)} cannot be the path of a database: {error}") from error
    if not isinstance(url, str):
        raise Misconfigured(f"a database address is a string or a path, not {type(url).__name__}")
    return url


def _local(path: str | Path) -> Path:
    """A valid path, made absolute before the current directory can change.

    Whatever exists there must be a regular file: reading a pipe or a device may never end.
    """
    try:
        text = os.fsdecode(path)
        if not text or b"\x00" in os.fsencode(text):
            raise Invalid("a path must not be empty and must not contain a NUL character")
        local = Path(os.path.abspath(Path(text).expanduser()))
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise Invalid(f"{quoted(path)} is not a path: {error}") from error
    try:
        mode = os.stat(local).st_mode
    except OSError:  # nothing is there, or nothing can be: opening it will say so
        return local
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise Invalid(f"{local} is not a regular file", path=str(local))
    return local


def restore(
    backup: str | Path, url: str | Path, *, replace: bool = False, progress: Progress | None = None
) -> Restored:
    """Make a store from a backup and verify it. Raises ``Conflict`` if the store already holds data.

    ``replace`` swaps the restored SQLite file in for the old one; on other engines restore into an empty store.
    """
    from holdfast import archive  # noqa: PLC0415 - loaded on first use

    clock, ids = SystemClock(), Ids()
    address, source = _address(url), _local(backup)
    check_flag("replace", replace)
    check_function("progress", progress)
    if scheme_of(address) == "sqlite":
        path = _local(sqlite_path(address))
        return archive.restore_file(source, path, clock=clock, ids=ids, replace=replace, progress=progress)
    engine = open_engine(address, clock, ids)
    try:
        return archive.restore_engine(source, engine, clock=clock, progress=progress)
    finally:
        engine.close()


class Store:
    """One tenant's threads in one durable place. Close it, or use it in a ``with`` block."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring, self.core = wiring, wiring.core

    @property
    def tenant(self) -> str:
        return self.core.tenant

    @property
    def actor(self) -> str | None:
        """Who acts through this store, as recorded in the feed."""
        return self.core.actor

    def for_tenant(self, tenant: str, *, actor: str | None = None) -> Store:
        """Return a store for another tenant on the same engine, with the same pool and caches.

        You need not close it; it closes with the store it came from. ``actor`` is who acts through it, by default
        the actor of this store.
        """
        who = self.core.actor if actor is None else _actor(actor)
        return Store(self.wiring.lend(self.core._replace(tenant=check_id(tenant, "tenant"), actor=who)))

    def acting_as(self, actor: str | None) -> Store:
        """Return a store for the same tenant with another actor."""
        return Store(self.wiring.lend(self.core._replace(actor=_actor(actor))))

    def tenants(self) -> list[str]:
        """List every tenant that holds data. On Postgres only the owner of the tables may do this; see the docs."""
        return self.core.engine.tenants()

    def set_quota(self, *, entries: Quota = KEEP, memories: Quota = KEEP, bytes: Quota = KEEP) -> QuotaUsage:
        """Set how much this tenant may hold: thread entries, memories, total bytes. None lifts a limit.

        A write that would exceed a limit raises ``QuotaExceeded`` and changes nothing. Existing data stays.
        """
        return quotas.set_quota(self.core, entries=entries, memories=memories, bytes=bytes)

    def usage(self) -> QuotaUsage:
        """Return how much this tenant holds, and its limits."""
        return quotas.usage(self.core)

    def thread(self, id: str, *, user: str | None = None, agent: str | None = None, tags: Iterable[str] = ()) -> Thread:
        """Return a handle to a thread. Its first write creates it, with this user, agent and these tags."""
        name = check_id(id, "thread id")
        return self.wiring.thread(name, _scope(user, agent, name), tuple(sorted(set(check_tags(tags)))))

    def memory(self, user: str | None = None, *, agent: str | None = None) -> Memories:
        """Return a handle to what is known about a user, by an agent, or, with neither, to shared memories."""
        return self.wiring.memory(_scope(user, agent))

    def folder(self, name: str, *, user: str | None = None, agent: str | None = None) -> Folder:
        """Return a handle to a folder: files by path, every version kept. Its first file creates it."""
        return self.wiring.folder(name, _scope(user, agent))

    def folders(self, *, user: str | None = None, agent: str | None = None) -> list[FolderInfo]:
        """List the folders that hold files, by name, without reading the files."""
        scope = _scope(user, agent)
        return self.core.read(lambda core: folders(core, scope))

    def context(
        self,
        thread: Thread | str,
        input: Any,
        budget: int | None = None,
        *,
        model: str | None = None,
        **settings: Unpack[Settings],
    ) -> Context:
        """Build what goes into the model for this turn: at most ``budget`` tokens, with the input always whole.

        It holds instructions, facts, handoff, summary, recent turns, hits, state and input, each within its share.
        ``model`` decides how tokens are counted and, without ``budget``, how many fit. Nothing is written. Options:
        your own ``instructions``, ``shares`` to resize sections, ``tokens`` to count tokens another way, ``verbatim``
        for how many turns tool output is shown whole and ``mask_tokens`` for the most it takes later, ``recall=False``,
        ``within_ms`` to limit recall, ``trust`` for the least trust to accept, and ``state`` for the type to load the
        state as.
        """
        if model is not None and not isinstance(model, str):
            raise Invalid(f"model is a model's name, used to count tokens, not {type(model).__name__}")
        given = self._thread_of(thread)
        scope = given.logbook.scope
        own = self.thread(given.id, user=scope.user, agent=scope.agent)  # the caller has not seen this state
        contexts = self.wiring.contexts()
        return contexts.build(own, input, contexts.allowance(budget, model), model, settings)

    def session(
        self,
        thread: Thread | str,
        *,
        user: str | None = None,
        agent: str | None = None,
        model: ModelSpec = None,
        **ways: Unpack[SessionSettings],
    ) -> Session:
        """Return a session: an agent's turns in a thread, from loading what the last session left to handing over.

        With a thread id, ``user`` and ``agent`` name its owner; without a user nothing is learned. ``model`` answers:
        "vendor:model", "local", a function of messages, or an object. Without one, ``turn`` returns an ``Exchange``
        and you call your own model. Besides the settings of ``context``: ``budget``, ``tools`` (functions declared
        with ``@holdfast.step``, or a memory handle), ``learn`` ("auto", "model", "rules", "off"), ``summarise``,
        ``hand_off`` (the share of the budget at which to start afresh), ``handoff_file`` (a file that people read and
        edit), ``touch`` (record which memories were recalled), ``rounds`` of tool calls, and ``timeout_s``.
        """
        from holdfast.providers.models.choose import choose as choose_model  # noqa: PLC0415
        from holdfast.sessions.session import Session  # noqa: PLC0415

        if not isinstance(thread, str) and (user is not None or agent is not None):
            raise Invalid("user and agent go with a thread id; a thread handle already has its own")
        own = self.thread(thread, user=user, agent=agent) if isinstance(thread, str) else self._thread_of(thread)
        return Session(own, self.wiring.contexts(), self.memory, choose_model(model), **ways)

    def _thread_of(self, thread: Thread | str) -> Thread:
        if isinstance(thread, str):
            return self.thread(thread)
        if not isinstance(thread, Thread):
            raise Invalid(f"give a thread or its id, not {type(thread).__name__}")
        if thread.logbook.core is not self.core:
            raise Invalid(f"thread {thread.id!r} belongs to another store; give its id, or use the store it belongs to")
        return thread

    def users(self) -> list[UserInfo]:
        """List everyone who owns a thread or a memory, latest activity first."""
        return self.core.read(users)

    def threads(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        tag: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 100,
    ) -> list[ThreadInfo]:
        """List threads, latest activity first, without reading any log or state. ``limit=None`` lists them all."""
        if limit is not None:
            check_count("limit", limit)
        scope = _scope(user, agent)
        wanted = Query(
            "thread",
            user=scope.user,
            agent=scope.agent,
            tag=None if tag is None else check_id(tag, "tag"),
            since=None if since is None else to_micros(since),
            until=None if until is None else to_micros(until),
        )

        def listed(core: Core) -> list[ThreadInfo]:
            return [to_info(record) for record in islice(scan_all(core.engine, core.tenant, wanted, limit), limit)]

        return self.core.read(listed)

    def runs(
        self,
        *,
        thread: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        status: str | None = None,
        limit: int | None = 100,
    ) -> list[RunInfo]:
        """List runs, latest activity first; see ``RunInfo`` for the values of ``status``."""
        if limit is not None:
            check_count("limit", limit)
        scope = _scope(user, agent, thread)
        return self.wiring.runs.listed(
            thread=scope.thread, user=scope.user, agent=scope.agent, status=status, limit=limit
        )

    def due(self) -> list[RunInfo]:
        """List the runs that ``resume`` would continue, longest waiting first."""
        return [self.wiring.runs.info(terms.thread, terms.run) for _, terms in resume.find(self.wiring.runs)]

    def resume(
        self,
        handlers: Handlers,
        *,
        thread: str | None = None,
        run: str | None = None,
        limit: int | None = None,
        on_run: Callable[[Resumed], Any] | None = None,
    ) -> list[Resumed]:
        """Continue every run that no process works on: after a crash, a signal, a submission. Return each outcome.

        ``handlers`` are functions that take a run, as a dict by run name (or by the run's ``handler``), or as a list.
        A handler is called from its start; completed steps return their recorded results. A run that has to wait is
        parked. Runs without a handler are left alone and reported. ``thread`` and ``run`` name a single run, which is
        continued even if it had failed or stopped. ``on_run`` is called with each outcome as it ends.
        """
        check_function("on_run", on_run)
        resumer = self.wiring.resumer(handlers)
        report = []
        for found in resumer.taken(thread, run, limit):
            report.append(found if isinstance(found, Resumed) else self.wiring.runs.drive(resumer.carry_on(found, Run)))
            if on_run is not None:
                on_run(report[-1])
        return report

    def work(
        self,
        handlers: Handlers,
        *,
        stop: threading.Event | None = None,
        poll_s: float = 1.0,
        on_run: Callable[[Resumed], Any] | None = None,
    ) -> int:
        """Keep resuming runs until ``stop`` is set; return how many runs were continued.

        Any number of processes may do this on one store: only one of them holds a run at a time.
        """
        stop = threading.Event() if stop is None else check_part("stop", stop, "is_set", "wait")
        resumer = self.wiring.resumer(handlers)
        return resume.work_on(self.wiring.runs, resumer, stop=stop, poll_s=poll_s, on_run=on_run)

    def replay(self, thread: Thread | str, run: str, handler: Callable[[Run], Any]) -> Replayed:
        """Check a recorded run against today's code, without running a step or writing anything."""
        return replay(self._thread_of(thread), run, handler)

    def watch(
        self,
        *,
        kinds: str | Iterable[str] | None = None,
        user: str | None = None,
        agent: str | None = None,
        thread: str | None = None,
        after: int = 0,
        timeout_s: float | None = None,
    ) -> Iterator[Commit]:
        """Yield commits in the order they became durable, waiting for more; end after ``timeout_s`` without one.

        Each commit shows only the changes you ask for: of these kinds ("thread", "memory", "file" …), of this user,
        agent or thread. Erasures are always shown. ``after`` is the last number you have seen; pass ``feed_head()`` to
        start with the next commit. Raises ``FeedTrimmed`` when the commits you ask for were dropped.
        """
        check_count("after", after)
        feed.check_timeout(timeout_s)
        yield from feed.watch(self.core, after, feed.interest(kinds, user, agent, thread), timeout_s)

    def feed_head(self) -> int:
        """The number of the newest commit; 0 when there is none."""
        return self.core.engine.head(self.core.tenant)

    def follower(
        self,
        name: str,
        *,
        kinds: str | Iterable[str] | None = None,
        user: str | None = None,
        agent: str | None = None,
        thread: str | None = None,
        after: int = 0,
    ) -> Follower:
        """Return a named place in the feed, kept in the store: use the name again to continue from there.

        ``after`` is where a new follower starts. The other arguments filter changes, as in ``watch``.
        """
        return Follower(self.core, name, feed.interest(kinds, user, agent, thread), after)

    def followers(self) -> list[FollowerInfo]:
        """List the followers of this tenant, furthest behind first."""
        return feed.followers(self.core)

    def trim_feed(
        self, *, older_than: timedelta | None = None, keep: int | None = None, past_followers: bool = False
    ) -> int:
        """Drop commits older than a span, or all but the newest ``keep``, from the feed; return how many were dropped.

        The data they committed is unaffected; only the feed's record of it goes. Commits that a follower has not seen
        stay unless you give ``past_followers``; that follower then gets ``FeedTrimmed``. The newest commit is kept.
        """
        return feed.trim(self.core, older_than, keep, past_followers)

    def expired(self, *, before: datetime | None = None, limit: int | None = 100) -> list[Expired]:
        """List threads and files that expired (up to ``before``): hidden already, but not yet swept."""
        if limit is not None:
            check_count("limit", limit)
        now = self.core.clock.now()
        moment = now if before is None else min(now, to_micros(before))
        return expiry.expired(self.core, moment, limit)  # never from a replica: what is listed here is deleted next

    def erase(
        self,
        *,
        thread: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        forever: bool = True,
        dry_run: bool = False,
    ) -> Erasure:
        """Remove all data of a thread, user or agent; return how many records were removed, with ``counts`` by kind.

        When this returns, nothing of it is left in the store's files. ``Unavailable`` means that a reader of an older
        snapshot still keeps it there; the erasure is finished later. Repeat an interrupted erasure to continue it.
        History that a fork outside the scope shares stays with that fork. With ``forever`` an erased id cannot be
        written again and no archive brings it back; ``forever=False`` frees the id. ``dry_run`` only counts.
        """
        check_flag("forever", forever)
        check_flag("dry_run", dry_run)
        with self.core.patiently():
            return self.wiring.eraser().erase(_scope(user, agent, thread), forever=forever, dry_run=dry_run)

    def finish_erasures(self) -> int:
        """Finish every interrupted erasure, for instance after a crash; return how many there were.

        ``erase``, ``work`` and ``resume`` call this for you.
        """
        with self.core.patiently():
            return self.wiring.eraser().finish()

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Rebuild every saved index from the stored data; return how many documents they hold."""
        check_function("progress", progress)
        indexes = self.wiring.recaller().indexes
        return sum(indexes.index(place).rebuild(progress) for place in list(indexes.saved()))

    def verify(self, *, tenant: str | None = None) -> VerifyReport:
        """Recompute every digest and count in the whole store, or in one tenant, and report every mismatch."""
        with self.core.patiently():
            return verify(self.core, self.wiring.ids, None if tenant is None else check_id(tenant, "tenant"))

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        thread: str | None = None,
        user: str | None = None,
        format: str | None = None,
        progress: Progress | None = None,
    ) -> ArchiveManifest:
        """Write a thread, a user's threads, or all of this tenant to a file or stream, and return the manifest.

        ``format`` is json, yaml or msgpack; by default the file's suffix decides. The archive shows a single moment,
        even while others write. The file appears whole or not at all, and replaces one of the same name.
        """
        from holdfast import archive  # noqa: PLC0415 - loaded on first use

        if isinstance(target, str | Path):
            target = _local(target)
        elif not callable(getattr(target, "write", None)):
            raise Invalid(f"the target of an export is a path or a binary file, not {type(target).__name__}")
        check_function("progress", progress)
        chosen = archive.format_of(target) if format is None else format
        scope = _scope(user, None, thread)
        selection = archive.Selection(self.core.tenant, thread=scope.thread, user=scope.user)
        now = self.core.clock.now()

        def written(core: Core) -> ArchiveManifest:
            with archive.written(target) as out, core.engine.snapshot() as view:
                return archive.export(view, selection, out, chosen, time=now, progress=progress)

        # A stream cannot be begun again, should a replica give out.
        return self.core.read(written) if isinstance(target, Path) else written(self.core)

    def import_(
        self, source: str | Path | bytes | BinaryIO, *, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        """Import an archive; all of it is checked before anything is written. Repeating it changes nothing.

        Everything keeps its number, time and digest, and goes into this store's tenant. A damaged archive raises
        ``Corrupt`` and says where; a thread whose history differs here raises ``Conflict``; then nothing is imported.
        Anything erased here forever is skipped, and counted in the report.
        """
        from holdfast import archive  # noqa: PLC0415 - loaded on first use

        given = _local(source) if isinstance(source, str | Path) else source
        if not isinstance(given, Path | bytes) and not callable(getattr(given, "read", None)):
            raise Invalid(f"an archive is a path, bytes or a binary file, not {type(source).__name__}")
        check_flag("dry_run", dry_run)
        check_function("progress", progress)
        now = self.core.clock.now()
        return archive.import_archive(
            self.core.engine,
            given,
            tenant=self.core.tenant,
            time=now,
            actor=self.core.actor,
            dry_run=dry_run,
            progress=progress,
            stands_on=_stands_on,
        )

    def backup(self, path: str | Path, *, progress: Progress | None = None) -> Path:
        """Write a consistent, verified copy of the whole store, all tenants, while others keep writing.

        On SQLite it is a database file; elsewhere an archive, without the feed, quotas and marks of erased ids. Raises
        ``Conflict`` when the path exists. ``holdfast.restore`` restores either.
        """
        from holdfast import archive  # noqa: PLC0415 - loaded on first use

        target = _local(path)
        check_function("progress", progress)
        if os.path.isdir(target):  # Path.is_dir would raise for a name that is too long
            raise Conflict(f"{target} is a directory; name the file to write", path=str(target))
        if isinstance(self.core.engine, Copies):
            self.core.engine.backup(target)
        else:
            archive.write_backup(self.core.engine, target, time=self.core.clock.now(), progress=progress)
        return target

    def close(self) -> None:
        """Release runs, files and connections. Everything acknowledged is already durable.

        A store from ``for_tenant`` releases only its runs.
        """
        self.wiring.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _stands_on(record: Record) -> tuple[str, str] | None:
    """A memory needs its collection, whose stream records that it was remembered."""
    return (COLLECTION, collection_id(record.scope)) if record.kind == MEMORY else None


def _actor(actor: str | None) -> str | None:
    return None if actor is None else check_id(actor, "actor")


def _scope(user: str | None, agent: str | None, thread: str | None = None) -> Scope:
    named = (("user", user), ("agent", agent), ("thread id", thread))
    return Scope(*(None if value is None else check_id(value, what) for what, value in named))
