"""What has expired: hidden from that moment on, listed here, and removed by a sweep.

Deliberately absent: sweeping, and deciding when something expires.
"""

from __future__ import annotations

from datetime import datetime
from itertools import chain, islice

import msgspec

from holdfast.clock import to_datetime
from holdfast.engine.contract import Query, Record
from holdfast.ledger.core import Core, scan_all
from holdfast.ledger.files import FILE, folder_of, path_of

_KINDS = ("thread", FILE)


class Expired(msgspec.Struct, frozen=True):
    """Something that has expired: a thread by its id, or a file by its folder and path."""

    kind: str
    id: str
    expires: datetime
    user: str | None = None
    agent: str | None = None
    folder: str | None = None


def expired(core: Core, moment: int, limit: int | None) -> list[Expired]:
    """What expired up to a moment, latest activity first by kind."""
    queries = (Query(kind, expired_before=moment) for kind in _KINDS)
    found = chain.from_iterable(scan_all(core.engine, core.tenant, query, limit) for query in queries)
    return [_told(record) for record in islice(found, limit)]


def _told(record: Record) -> Expired:
    assert record.expires is not None
    file = record.kind == FILE
    return Expired(
        record.kind,
        path_of(record) if file else record.id,
        to_datetime(record.expires),
        record.scope.user,
        record.scope.agent,
        folder_of(record) if file else None,
    )
