"""Which engine a URL means, found and imported only when needed.

A scheme maps to a factory and to the extra that brings what it needs. Others add theirs through the
entry-point group ``holdfast.engines`` (name: scheme, value: factory). Deliberately absent: registration by import.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from urllib.parse import unquote, urlsplit

from holdfast.clock import Clock, SystemClock
from holdfast.engine.contract import Engine, Replica
from holdfast.engine.postgres_options import PostgresOptions
from holdfast.errors import Misconfigured, Unsupported, quoted
from holdfast.ids import Ids

Factory = Callable[[str, Clock, Ids], Engine]
_MEANT_A_SERVER = re.compile(r"(^|\s)password\s*=|^postgres(ql)?/")


def open_engine(url: str, clock: Clock, ids: Ids, postgres: PostgresOptions | None = None) -> Engine:
    """Open the engine that a URL or a plain file path names."""
    scheme = scheme_of(url)
    factory = _FACTORIES.get(scheme) or _third_party(scheme)
    if postgres is not None:
        if scheme not in POSTGRES:
            raise Misconfigured("postgres={…} goes with a postgresql:// address", scheme=scheme)
        factory = partial(_open_postgres, options=postgres)
    try:
        return factory(url, clock, ids)
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        if extra is None:
            raise
        # A driver may be installed without the library it needs; then its own message is better.
        lacks = f"{error.name}, which is not installed" if isinstance(error, ModuleNotFoundError) else str(error)
        raise Unsupported(f'{scheme}: needs {lacks}: pip install "holdfast[{extra}]"', extra=extra) from error


def open_replica(engine: Engine, url: object, lag_s: float, clock: Clock, ids: Ids, tenant: str) -> Replica:
    """Open a streaming replica of an engine, for reads that may be up to ``lag_s`` seconds old.

    One that follows another engine, as the tenant's feed shows, is refused; one that does not answer is tried later.
    """
    if not isinstance(url, str) or not url or scheme_of(url) not in POSTGRES:
        raise Misconfigured("a replica is a postgresql:// address")
    from holdfast.engine.postgres import PostgresEngine  # noqa: PLC0415 - engines load when they are asked for
    from holdfast.engine.postgres_replica import PostgresReplica  # noqa: PLC0415

    assert isinstance(engine, PostgresEngine)
    # A clock of its own time, as tests have one, also says how long ago something was.
    elapsed = monotonic if isinstance(clock, SystemClock) else lambda: clock.now() / 1_000_000
    standby = PostgresEngine(url, clock, ids, standby_of=engine)
    try:
        return PostgresReplica(engine, standby, lag_s, elapsed, tenant)
    except BaseException:
        standby.close()
        raise


def scheme_of(url: str) -> str:
    """The scheme that a URL names; a plain path means SQLite."""
    if not url or url == ":memory:":
        raise Misconfigured(
            'name a database: a file path such as "agent.db", "postgresql://…", or "ram:" for memory only'
        )
    head, colon, _ = url.partition(":")
    # One letter before a colon is a drive, not a scheme; a path separator before it means a file name with a colon.
    if not colon or len(head) == 1 or "/" in head or "\\" in head:
        return "sqlite"
    scheme, _, driver = head.lower().partition("+")
    return scheme if driver and scheme in POSTGRES else head.lower()


def _third_party(scheme: str) -> Factory:
    from importlib.metadata import entry_points  # noqa: PLC0415 - costs more than all of holdfast, and is rarely needed

    for entry in entry_points(group="holdfast.engines", name=scheme):
        factory: Factory = entry.load()
        return factory
    known = ", ".join(f"{name}:" for name in sorted(_FACTORIES))
    raise Misconfigured(f"no engine for {scheme}:; known are {known} or a plain file path", scheme=scheme)


def sqlite_path(url: str) -> Path:
    """The file that a SQLite URL or plain path means: ``agent.db``, ``sqlite:agent.db`` or ``sqlite:///abs/agent.db``."""
    if url.lower().startswith("sqlite:"):
        url = _path_in(url)
    if "\x00" in url or not url:
        raise Misconfigured("the path of the database is empty or contains a NUL character")
    if _MEANT_A_SERVER.search(url):  # a file of that name would show the password in a directory listing
        raise Misconfigured("this is not a path; a Postgres address is postgresql://user@host:5432/name")
    if url.lstrip("/") == ":memory:":
        raise Misconfigured(f'{url} would be a file of that name; "ram:" is for memory only')
    try:
        # Connections open later too, and by then the process may have changed its directory.
        path = Path(os.path.abspath(Path(url).expanduser()))
        os.fsencode(path)
        return path
    except (RuntimeError, UnicodeEncodeError, OSError) as error:
        raise Misconfigured(f"{quoted(url)} cannot be the path of a database: {error}") from error


def _path_in(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Misconfigured(f"{quoted(url)} is not a URL: {error}") from error
    if parts.netloc:
        raise Misconfigured(f"{url} names a host; write sqlite:///absolute/path or sqlite:relative/path")
    if parts.query or parts.fragment:
        # Silently dropped, they would open another file than the one meant.
        raise Misconfigured(f"{url} has options, but none are supported; in a file's name write ? as %3F and # as %23")
    return unquote(parts.path)


def _open_ram(url: str, clock: Clock, ids: Ids) -> Engine:
    from holdfast.engine.ram import RamEngine  # noqa: PLC0415 - engines load when they are asked for

    return RamEngine(clock, ids)


def _open_sqlite(url: str, clock: Clock, ids: Ids) -> Engine:
    from holdfast.engine.sqlite import SqliteEngine  # noqa: PLC0415 - engines load when they are asked for

    return SqliteEngine(sqlite_path(url), clock, ids)


def _open_postgres(url: str, clock: Clock, ids: Ids, options: PostgresOptions | None = None) -> Engine:
    from holdfast.engine.postgres import PostgresEngine  # noqa: PLC0415 - engines load when they are asked for

    return PostgresEngine(url, clock, ids, options)


_FACTORIES: dict[str, Factory] = {
    "ram": _open_ram,
    "sqlite": _open_sqlite,
    "postgresql": _open_postgres,
    "postgres": _open_postgres,
}
POSTGRES = ("postgresql", "postgres")
_EXTRAS = dict.fromkeys(POSTGRES, "postgres")
