"""How a store uses Postgres: what a program passes to ``open`` or writes into the address, checked the same way.

Names that libpq knows keep their meaning (``application_name``, ``connect_timeout``, ``sslmode`` …); the others are
ours and are taken out of the address before libpq sees it. Deliberately absent: the driver, so that this can be
imported without it, and defaults from the environment (libpq reads its own).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypedDict
from urllib.parse import unquote

import msgspec

from holdfast.checks import is_seconds
from holdfast.errors import Misconfigured, quoted

_MOST_CONNECTIONS = 1_000
_LONGEST_S = 86_400
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "": 1.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|min|)")
_SCHEMA_BYTES = 63
_CONNECTIONS = ("pool_size", "pool_min")
_TIMES = ("pool_timeout", "connect_timeout", "statement_timeout", "lock_timeout")
_DRIVER = re.compile(r"^(postgres(?:ql)?)\+\w+:", re.IGNORECASE)
_PASSED_ON = ("application_name", "sslmode", "sslrootcert", "sslcert", "sslkey")


class PostgresOptions(TypedDict, total=False):
    """What ``open(postgres={…})`` takes, and an address as ``?pool_size=20&schema=agents``. Times are seconds, or texts
    such as "500ms", "30s" and "5min"."""

    pool_size: int
    pool_min: int
    pool_timeout: float | str
    connect_timeout: float | str
    statement_timeout: float | str
    lock_timeout: float | str
    schema: str
    application_name: str
    sslmode: str
    sslrootcert: str
    sslcert: str
    sslkey: str


class PostgresSettings(msgspec.Struct, frozen=True):
    """The options as they hold: a ``statement_timeout`` of 0 is none, ``libpq`` goes to the driver as it is."""

    pool_size: int = 10
    pool_min: int = 0
    pool_timeout: float = 10.0
    connect_timeout: float = 10.0
    statement_timeout: float = 0.0
    lock_timeout: float = 60.0
    schema: str | None = None
    libpq: Mapping[str, str] = {}


def apart(url: str) -> tuple[str, dict[str, str]]:
    """The address without our options, and those. What is libpq's own is left where it is.

    SQLAlchemy names a driver in the scheme, as in ``postgresql+psycopg://``; ours is psycopg anyway.
    """
    place, mark, query = _DRIVER.sub(r"\1:", url).partition("?")
    ours: dict[str, str] = {}
    rest = []
    for part in query.split("&") if mark else ():
        name, _, value = part.partition("=")
        if name not in PostgresOptions.__annotations__ or name in _PASSED_ON:
            rest.append(part)
        elif name in ours:
            raise Misconfigured(f"the address gives {name} twice")
        else:
            ours[name] = unquote(value)
    return f"{place}?{'&'.join(rest)}" if rest else place, ours


def meant(url: str) -> str:
    """Which of our options an address may have meant, as the end of an error. It does not quote the address."""
    names = (part.partition("=")[0] for part in url.partition("?")[2].split("&"))
    close = {found for name in names if (found := _close(name)) is not None and found != name}
    return f"; did you mean {' or '.join(sorted(close))}?" if close else ""


def settled(given: object, in_address: Mapping[str, str], under: PostgresSettings | None = None) -> PostgresSettings:
    """The settings: what a program gives goes before what the address says, and that before ``under``."""
    if given is not None and not isinstance(given, dict):
        raise Misconfigured(f'postgres is a dict such as {{"pool_size": 20}}, not {quoted(given)}')
    told = {**in_address, **(given or {})}
    if unknown := [name for name in told if name not in PostgresOptions.__annotations__]:
        guess = _close(unknown[0]) if isinstance(unknown[0], str) else None
        hint = f"; did you mean {guess}?" if guess else f"; there are {', '.join(PostgresOptions.__annotations__)}"
        raise Misconfigured(f"postgres has no option {quoted(unknown[0])}{hint}")
    # A value of an address is not shown: it may be part of a password that is not escaped.
    read = {name: _read(name, value, shown=name in (given or {})) for name, value in told.items()}
    under = under or PostgresSettings()
    libpq = {**under.libpq, **{name: value for name, value in read.items() if name in _PASSED_ON}}
    own = {name: value for name, value in read.items() if name not in _PASSED_ON}
    found = msgspec.structs.replace(under, libpq=libpq, **own)
    if found.pool_min > found.pool_size:
        raise Misconfigured(f"pool_min is {found.pool_min}, which is more than pool_size, {found.pool_size}")
    return found


def _close(name: str) -> str | None:
    return next(iter(get_close_matches(name, PostgresOptions.__annotations__, 1)), None)


def _read(name: str, value: Any, *, shown: bool) -> Any:
    if name in _CONNECTIONS:
        number = int(value) if not shown and value.isascii() and value.isdigit() and len(value) < 9 else value
        least = 2 if name == "pool_size" else 0  # a snapshot takes one, and what is asked beside it another
        if type(number) is int and least <= number <= _MOST_CONNECTIONS:
            return number
        raise _wrong(name, f"a whole number from {least} to {_MOST_CONNECTIONS:,}", value, shown)
    if name in _TIMES:
        seconds = _seconds(value)
        if seconds is not None and seconds <= _LONGEST_S and (seconds or name == "statement_timeout"):
            return seconds
        over = "of 0 (no limit) or more" if name == "statement_timeout" else "over 0"
        raise _wrong(name, f'a time {over}, at most a day: seconds, or a text such as "500ms", "30s"', value, shown)
    if not isinstance(value, str) or not value or not value.isprintable() or (name == "schema" and not _names(value)):
        what = (
            f"a name of at most {_SCHEMA_BYTES} bytes that does not begin with pg_ or $"
            if name == "schema"
            else "a text"
        )
        raise _wrong(name, what, value, shown)
    return value


def _seconds(value: object) -> float | None:
    if isinstance(value, str):
        found = _TIME.fullmatch(value) if len(value) < 20 and value.isascii() else None
        return None if found is None else float(found[1]) * _UNITS[found[2]]
    return float(value) if is_seconds(value) else None  # type: ignore[arg-type]


def _names(schema: str) -> bool:
    return len(schema.encode(errors="replace")) <= _SCHEMA_BYTES and not schema.startswith(("pg_", "$"))


def _wrong(name: str, what: str, value: object, shown: bool) -> Misconfigured:
    return Misconfigured(f"{name} is {what}" + (f", not {quoted(value)}" if shown else "; the address says otherwise"))
