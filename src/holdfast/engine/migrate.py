"""The numbered SQL files that create and change our own tables: forward only, each run once.

A file ``0007_name.sql`` under ``engine/sql/<dialect>/`` brings a store from version 6 to 7. Engines run the missing
ones inside one transaction that excludes other openers, so ten processes opening at once migrate once. Deliberately
absent: a way back.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def migrations(dialect: str) -> tuple[tuple[int, str], ...]:
    """Return (version, SQL) in order. Versions have no gap: a missing file is a mistake in the package."""
    folder = files("holdfast.engine") / "sql" / dialect
    found = sorted(
        (int(item.name.split("_")[0]), item.read_text()) for item in folder.iterdir() if item.name.endswith(".sql")
    )
    if [version for version, _ in found] != list(range(1, len(found) + 1)):
        raise AssertionError(f"migrations of {dialect} are not numbered without gaps")
    return tuple(found)


def newest(dialect: str) -> int:
    """The version of a store that this code writes."""
    return migrations(dialect)[-1][0]


def pending(dialect: str, version: int) -> list[tuple[int, str]]:
    """Return the migrations that a store at ``version`` still needs."""
    return [item for item in migrations(dialect) if item[0] > version]
