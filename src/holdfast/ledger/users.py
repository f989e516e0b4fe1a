"""The users of a tenant: they are not stored; a user is anyone who owns a thread, a memory or a file.

Deliberately absent: what belongs to a user, which the rooms list by ``user=``.
"""

from __future__ import annotations

from collections import Counter

from holdfast.clock import to_datetime
from holdfast.engine.contract import Query
from holdfast.ledger.core import Core, scan_all
from holdfast.records import UserInfo

_KINDS = ("thread", "memory", "file")


def users(core: Core) -> list[UserInfo]:
    """Every owner of a thread, a memory or a file, latest activity first."""
    owned: dict[str, Counter[str]] = {}
    spans: dict[str, tuple[int, int]] = {}
    for kind in _KINDS:
        for record in scan_all(core.engine, core.tenant, Query(kind)):
            if (user := record.scope.user) is not None:
                owned.setdefault(user, Counter())[kind] += 1
                first, last = spans.get(user, (record.created, record.time))
                spans[user] = min(first, record.created), max(last, record.time)
    infos = [
        UserInfo(user, counts["thread"], counts["memory"], counts["file"], *map(to_datetime, spans[user]))
        for user, counts in owned.items()
    ]
    return sorted(infos, key=lambda info: (info.active, info.user), reverse=True)
