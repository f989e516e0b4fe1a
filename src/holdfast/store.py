"""The store: opens an engine, and the verbs that people call on what ``wiring`` put together.

A store works in one tenant, which every read and write names. Deliberately absent: rules about threads, states or
archives (their rooms have them), and any background thread of its own.
"""

from __future__ import annotations

import logging
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
from holdfast.engine.registry import open_engine, scheme_of, sqlite_path
from holdfast.errors import Conflict, Invalid, Misconfigured, quoted
from holdfast.ids import Ids, check_id
from holdfast.ledger import expiry, feed, quotas
from holdfast.ledger.core import Core, scan_all
from holdfast.ledger.expiry import Expired
from holdfast.ledger.feed import Follower, FollowerInfo
from holdfast.ledger.folder import Folder, folders
from holdfast.ledger.graphs import Graph, GraphInfo, graphs_of
from holdfast.ledger.quotas import KEEP, Quota, QuotaUsage
from holdfast.ledger.schema import DEFAULT, Registry
from holdfast.ledger.thread import check_count, check_tags, to_info
from holdfast.ledger.users import users
from holdfast.memory.handle import Memories
from holdfast.memory.names import COLLECTION, MEMORY, collection_id
from holdfast.privacy.verify import verify
from holdfast.providers.choose import AUTO, Spec, choose
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
    from holdfast.context.report import Context
    from holdfast.providers.models.choose import Spec as ModelSpec
    from holdfast.sessions.context_source import Settings
    from holdfast.sessions.session import Session, SessionSettings

_log = logging.getLogger(__name__)


def open(
    url: str | Path | None = None,
    *,
    tenant: str | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    schemas: Registry | None = None,
    lease_s: float = LEASE_S,
    embedder: Spec = AUTO,
    actor: str | None = None,
) -> Store:
    """Open a store: a file path for SQLite, ``postgresql://…``, or ``ram:``. Without one, ``HOLDFAST_DB`` says which.

    A file that does not exist yet is made. The tables are brought up to date, also when ten processes open at once.
    ``lease_s`` is how long a run stays with a process that gives no sign of life. ``embedder`` makes the vectors that
    recall compares: "auto" (WordLlama where it is installed), "none", "minilm", "openai:MODEL", a function or an
    object. ``actor`` is who acts through this store, as the feed will tell: a person, a service, a key.
    """
    url = config.database() if url is None else url
    if url is None:
        raise Misconfigured('no database named: holdfast.open("agent.db"), or set HOLDFAST_DB')
    name = check_id(config.tenant() if tenant is None else tenant, "tenant")
    if not (is_seconds(lease_s) and 0 < lease_s <= 86_400):
        raise Misconfigured(f"lease_s is a number of seconds over 0, at most a day, not {quoted(lease_s)}")
    clock = check_part("clock", SystemClock() if clock is None else clock, "now")
    ids = check_part("ids", Ids() if ids is None else ids, "stream", "token")
    schemas = check_part("schemas", DEFAULT if schemas is None else schemas, "schema", "named")
    vectors = _embedder(embedder)
    core = Core(open_engine(_address(url), clock, ids), name, clock, schemas, _actor(actor))
    return Store(Wiring(core, RunBook(core, ids, lease_s), ids=ids, embedder=vectors))


def _embedder(spec: Spec) -> Embedder | None:
    """What makes vectors. Only an endpoint that is named by text needs a key and an address from outside."""
    remote = isinstance(spec, str) and spec.strip().casefold().startswith("openai:")
    return choose(spec, **config.endpoint()) if remote else choose(spec)


def _address(url: str | Path) -> str:
    """A path object is always a file, also when a colon in its name makes it look like a URL."""
    if isinstance(url, Path):
        try:
            return os.path.abspath(url.expanduser())
        except (RuntimeError, OSError) as error:  # nobody's home, or no directory to begin at
            raise Misconfigured(f"{quoted(url)} cannot be the path of a database: {error}") from error
    if not isinstance(url, str):
        raise Misconfigured(f"a database is named by text or by a path, not by {type(url).__name__}")
    return url


def _local(path: str | Path) -> Path:
    """A path that the file system can be asked about, made absolute while the current directory is what was meant.

    What is there already is a file: reading a pipe or a device may never end.
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
    except OSError:  # nothing is there yet, or nothing can be: whoever opens it says so
        return local
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise Invalid(f"{local} is not a regular file", path=str(local))
    return local


def restore(
    backup: str | Path, url: str | Path, *, replace: bool = False, progress: Progress | None = None
) -> Restored:
    """Make a store from a backup and prove it whole. A store that holds data is ``Conflict``.

    ``replace`` puts a restored SQLite file in the place of the old one; on other engines restore into an empty store.
    """
    from holdfast import archive  # noqa: PLC0415 - loaded when something moves

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
        """Who acts through this store, as the feed tells."""
        return self.core.actor

    def for_tenant(self, tenant: str, *, actor: str | None = None) -> Store:
        """Give a store for another tenant on the same engine: one pool, one set of caches, another wall.

        It needs no closing of its own; it ends with the store that it came from. ``actor`` is who acts through it,
        without one whoever acts through this store.
        """
        who = self.core.actor if actor is None else _actor(actor)
        return Store(self.wiring.lend(self.core._replace(tenant=check_id(tenant, "tenant"), actor=who)))

    def acting_as(self, actor: str | None) -> Store:
        """Give a store for the same tenant in which someone else acts."""
        return Store(self.wiring.lend(self.core._replace(actor=_actor(actor))))

    def tenants(self) -> list[str]:
        """List every tenant that holds anything. On Postgres only the owner of the tables may; see the docs."""
        return self.core.engine.tenants()

    def set_quota(self, *, entries: Quota = KEEP, memories: Quota = KEEP, bytes: Quota = KEEP) -> QuotaUsage:
        """Set how much this tenant may hold: entries of threads, memories, bytes in all. None lifts a limit.

        A write that would go over it is ``QuotaExceeded`` and changes nothing. What is there already stays.
        """
        return quotas.set_quota(self.core, entries=entries, memories=memories, bytes=bytes)

    def usage(self) -> QuotaUsage:
        """Say how much this tenant holds of what has a quota, and may hold."""
        return quotas.usage(self.core)

    def thread(self, id: str, *, user: str | None = None, agent: str | None = None, tags: Iterable[str] = ()) -> Thread:
        """Give a handle of a thread. It is created by its first write; user, agent and tags count from then on."""
        name = check_id(id, "thread id")
        return self.wiring.thread(name, _scope(user, agent, name), tuple(sorted(set(check_tags(tags)))))

    def memory(self, user: str | None = None, *, agent: str | None = None) -> Memories:
        """Give a handle of what is known about a user, by an agent, or in common when neither is named."""
        return self.wiring.memory(_scope(user, agent))

    def folder(self, name: str, *, user: str | None = None, agent: str | None = None) -> Folder:
        """Give a handle of a folder: files by path, every version kept. It comes into being with its first file."""
        return self.wiring.folder(name, _scope(user, agent))

    def folders(self, *, user: str | None = None, agent: str | None = None) -> list[FolderInfo]:
        """List the folders that hold files, by name, without reading what is in them."""
        return folders(self.core, _scope(user, agent))

    def context(
        self,
        thread: Thread | str,
        input: Any,
        budget: int | None = None,
        *,
        model: str | None = None,
        **settings: Unpack[Settings],
    ) -> Context:
        """Build what goes into a model for this turn: at most ``budget`` tokens, the input always whole.

        Instructions, facts, handoff, summary, recent turns, what is recalled, state and input, each within its share.
        ``model`` says how tokens are counted, and without ``budget`` how many there may be. Nothing is written. Also:
        ``instructions`` of your own, ``shares`` to change what sections get, ``tokens`` to count by something else,
        ``verbatim`` for how many turns tool output is shown whole, ``recall=False``, ``within_ms`` for recall,
        ``trust`` for what may be believed, and ``state`` for the type that the state is loaded as.
        """
        if model is not None and not isinstance(model, str):
            raise Invalid(f"model is the name of one, to count its tokens, not {type(model).__name__}")
        given = self._thread_of(thread)
        scope = given.logbook.scope
        own = self.thread(given.id, user=scope.user, agent=scope.agent)  # what it loads, nobody has seen
        limit = self.wiring.contexts().limit(model) if budget is None else budget
        return self.wiring.contexts().build(own, input, limit, model, settings)

    def session(
        self,
        thread: Thread | str,
        *,
        user: str | None = None,
        agent: str | None = None,
        model: ModelSpec = None,
        **ways: Unpack[SessionSettings],
    ) -> Session:
        """Give a session: turns of an agent in a thread, from loading what was left to handing over.

        ``user`` and ``agent`` say whose a thread is that is named by its id; without a user nothing is learned.
        ``model`` answers: "vendor:model", "local", a function of messages, or an object; without one ``turn`` comes in
        halves, and you ask your own. Besides the settings of ``context``: ``budget``, ``tools`` (functions declared
        with ``@holdfast.step``, or a handle of memories), ``learn`` ("auto", "model", "rules", "off"), ``summarise``,
        ``hand_off`` (the share of the budget at which to begin afresh), ``rounds`` of tools, and ``timeout_s``.
        """
        from holdfast.providers.models.choose import choose as choose_model  # noqa: PLC0415
        from holdfast.sessions.session import Session  # noqa: PLC0415

        if not isinstance(thread, str) and (user is not None or agent is not None):
            raise Invalid("user and agent go with the id of a thread; a thread that is given has its own")
        own = self.thread(thread, user=user, agent=agent) if isinstance(thread, str) else self._thread_of(thread)
        return Session(own, self.wiring.contexts(), self.memory, choose_model(model), **ways)

    def _thread_of(self, thread: Thread | str) -> Thread:
        if isinstance(thread, str):
            return self.thread(thread)
        if not isinstance(thread, Thread):
            raise Invalid(f"give a thread, or the id of one, not {type(thread).__name__}")
        if thread.logbook.core is not self.core:
            raise Invalid(f"thread {thread.id!r} is of another store; give its id, or ask the store that it is of")
        return thread

    def users(self) -> list[UserInfo]:
        """List everyone who owns a thread or a memory, latest activity first."""
        return users(self.core)

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
        records = scan_all(self.core.engine, self.core.tenant, wanted, limit)
        return [to_info(record) for record in islice(records, limit)]

    def runs(
        self,
        *,
        thread: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        status: str | None = None,
        limit: int | None = 100,
    ) -> list[RunInfo]:
        """List runs, latest activity first; ``status`` is as ``RunInfo`` has it."""
        if limit is not None:
            check_count("limit", limit)
        scope = _scope(user, agent, thread)
        return self.wiring.runs.listed(
            thread=scope.thread, user=scope.user, agent=scope.agent, status=status, limit=limit
        )

    def due(self) -> list[RunInfo]:
        """List the runs that ``resume`` would carry on, those that wait longest first."""
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
        """Carry on every run that nobody works on: after a crash, a signal, a submission. Return what became of each.

        ``handlers`` are functions of a run, by the name of the run (or of its ``handler``): a dict, or a list of
        functions. A handler is called from its beginning; steps that are done give their results. A run that has to
        wait is parked. What no handler is given for is left alone, and reported. ``thread`` and ``run`` name a single
        one, which is carried on also when it had failed or stopped. ``on_run`` hears of each as it ends.
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
        """Resume again and again until ``stop`` is set; return how many runs were carried on.

        Any number of processes may do this on one store: each run is held by one of them at a time.
        """
        stop = threading.Event() if stop is None else check_part("stop", stop, "is_set", "wait")
        resumer = self.wiring.resumer(handlers)
        return resume.work_on(self.wiring.runs, resumer, stop=stop, poll_s=poll_s, on_run=on_run)

    def replay(self, thread: Thread | str, run: str, handler: Callable[[Run], Any]) -> Replayed:
        """Go through a recorded run with today's code, without running or writing anything: does it still fit?"""
        return replay(self._thread_of(thread), run, handler)

    def graphs(self, thread: Thread | str) -> list[GraphInfo]:
        """List the graphs that a framework keeps in a thread, latest activity first."""
        return graphs_of(self._thread_of(thread).logbook)

    def graph(self, thread: Thread | str, namespace: str = "") -> Graph:
        """Give a handle of a graph that a framework keeps in a thread, to look at without the framework.

        ``namespace`` names a graph inside another one.
        """
        return Graph(self._thread_of(thread).logbook, namespace)

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

        Of a commit only the changes that you ask for are shown: of these kinds ("thread", "memory", "file" …), of this
        user, agent or thread. An erasure is shown to everybody. ``after`` is the last number that you have seen;
        ``feed_head()`` begins with what comes next. ``FeedTrimmed`` when what you ask for was dropped.
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
        """Give a named place in the feed that is kept in the store: whoever uses the name again goes on from there.

        ``after`` is where a new one begins. The others say which changes it is about, as in ``watch``.
        """
        return Follower(self.core, name, feed.interest(kinds, user, agent, thread), after)

    def followers(self) -> list[FollowerInfo]:
        """List the followers of this tenant, the one that is furthest behind first."""
        return feed.followers(self.core)

    def trim_feed(
        self, *, older_than: timedelta | None = None, keep: int | None = None, past_followers: bool = False
    ) -> int:
        """Drop commits from the feed that are older than a span, or all but the newest; return how many went.

        What was committed stays as it is; only the record of when it happened goes. What a follower has not seen stays,
        unless ``past_followers``; such a follower then gets ``FeedTrimmed``. The newest commit always stays.
        """
        return feed.trim(self.core, older_than, keep, past_followers)

    def expired(self, *, before: datetime | None = None, limit: int | None = 100) -> list[Expired]:
        """List what has expired and is not swept yet: threads and files, hidden already. ``before``: up to when."""
        if limit is not None:
            check_count("limit", limit)
        now = self.core.clock.now()
        return expiry.expired(self.core, now if before is None else min(now, to_micros(before)), limit)

    def erase(
        self,
        *,
        thread: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        forever: bool = True,
        dry_run: bool = False,
    ) -> Erasure:
        """Remove everything of a thread, user or agent and return how many records went, with ``counts`` by kind.

        When this returns, the files of the store hold nothing of it; ``Unavailable`` says that someone who reads an
        older moment still kept it there, and that it is finished later. An erasure that is broken off goes on when you
        repeat it. What a fork outside the scope still shares stays with that fork. With ``forever`` an erased id cannot
        be written again and no archive brings it back; ``forever=False`` frees the id. ``dry_run`` only counts.
        """
        check_flag("forever", forever)
        check_flag("dry_run", dry_run)
        return self.wiring.eraser().erase(_scope(user, agent, thread), forever=forever, dry_run=dry_run)

    def finish_erasures(self) -> int:
        """Finish every erasure that was broken off, as by a crash; return how many there were.

        ``erase``, ``work`` and ``resume`` do so by themselves.
        """
        return self.wiring.eraser().finish()

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Make every saved index again from what is stored; return how many documents they hold."""
        check_function("progress", progress)
        indexes = self.wiring.recaller().indexes
        return sum(indexes.index(place).rebuild(progress) for place in list(indexes.saved()))

    def verify(self, *, tenant: str | None = None) -> VerifyReport:
        """Re-derive every digest and count in the whole store, or of one tenant, and name whatever does not agree."""
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

        ``format`` is json, yaml or msgpack; without it the file's suffix says which. The archive is of one moment,
        whatever others write meanwhile; a file appears whole or not at all, in place of one of the same name.
        """
        from holdfast import archive  # noqa: PLC0415 - loaded when something moves

        if isinstance(target, str | Path):
            target = _local(target)
        elif not callable(getattr(target, "write", None)):
            raise Invalid(f"an archive goes to a path or a binary file, not to {type(target).__name__}")
        check_function("progress", progress)
        chosen = archive.format_of(target) if format is None else format
        scope = _scope(user, None, thread)
        selection = archive.Selection(self.core.tenant, thread=scope.thread, user=scope.user)
        now = self.core.clock.now()
        with archive.written(target) as out, self.core.engine.snapshot() as view:
            return archive.export(view, selection, out, chosen, time=now, progress=progress)

    def import_(
        self, source: str | Path | bytes | BinaryIO, *, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        """Take in an archive, checked whole before anything is written. Repeating it changes nothing.

        Everything keeps its number, time and digest, and comes into this store's tenant. A damaged archive is
        ``Corrupt`` and says where; a thread that went another way here is ``Conflict``; nothing is imported then. What
        was erased here for good is left out, and counted in the report.
        """
        from holdfast import archive  # noqa: PLC0415 - loaded when something moves

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

        On SQLite it is a database file; elsewhere an archive, which holds neither the feed nor the marks of what was
        erased. ``Conflict`` when the path exists. ``holdfast.restore`` brings either back.
        """
        from holdfast import archive  # noqa: PLC0415 - loaded when something moves

        target = _local(path)
        check_function("progress", progress)
        if os.path.isdir(target):  # not Path.is_dir, which raises for a name that is too long
            raise Conflict(f"{target} is a directory; name the file to write", path=str(target))
        if isinstance(self.core.engine, Copies):
            self.core.engine.backup(target)
        else:
            archive.write_backup(self.core.engine, target, time=self.core.clock.now(), progress=progress)
        return target

    def close(self) -> None:
        """Let go of runs, files and connections. Everything acknowledged is durable already.

        A store that came from ``for_tenant`` lets go of its runs alone.
        """
        self.wiring.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _stands_on(record: Record) -> tuple[str, str] | None:
    """A memory is nothing without its collection, whose stream tells that it was remembered."""
    return (COLLECTION, collection_id(record.scope)) if record.kind == MEMORY else None


def _actor(actor: str | None) -> str | None:
    return None if actor is None else check_id(actor, "actor")


def _scope(user: str | None, agent: str | None, thread: str | None = None) -> Scope:
    named = (("user", user), ("agent", agent), ("thread id", thread))
    return Scope(*(None if value is None else check_id(value, what) for what, value in named))
