"""Verifying a store: what its engine can prove about bytes, then what each room checks about their meaning.

Deliberately absent: repair. ``rebuild`` rebuilds derived data; other data exists only once, so damage is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.contract import Engine, Problem, Query
from holdfast.ids import Ids
from holdfast.ledger import checkpoints, files
from holdfast.ledger.core import Core, scan_ever
from holdfast.memory import checking
from holdfast.records import VerifyReport


def verify(core: Core, ids: Ids, tenant: str | None = None) -> VerifyReport:
    """Recompute every digest and count in the whole store, or in one tenant, and report every mismatch."""
    engine, core = core.engine, core._replace(replica=None)  # a sound replica says nothing of its primary
    problems = engine.check(tenant)
    threads = entries = 0
    for name in engine.tenants() if tenant is None else [tenant]:
        for record in scan_ever(engine, name, Query("thread")):
            threads, entries = threads + 1, entries + record.head
        problems += _meaning(engine, name)
        problems += _indexes(core._replace(tenant=name), ids)
    return VerifyReport(threads, entries, tuple(problems))


def _meaning(engine: Engine, tenant: str) -> Iterator[Problem]:
    with engine.snapshot() as view:
        for room in (checkpoints, checking, files):
            yield from room.problems(view, tenant)
        if view.scan(tenant, Query("graph", limit=1)):
            from holdfast.adapters.langgraph import reading  # noqa: PLC0415 - what an adapter keeps, it checks

            yield from reading.problems(view, tenant)


def _indexes(core: Core, ids: Ids) -> Iterator[Problem]:
    if core.engine.scan(core.tenant, Query("index", limit=1)):
        from holdfast.retrieval.library import Indexes  # noqa: PLC0415 - brings numpy

        yield from Indexes(core, ids, None).problems()
