"""How much a tenant may hold: thread entries, memories, and total bytes.

The engine counts and refuses; this module names the limits. Deliberately absent: prices, and who may set a quota.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.engine.contract import Limit, Measures
from holdfast.errors import Unsupported
from holdfast.ledger.core import Core
from holdfast.ledger.thread import check_count


class Keep:
    """Leaves a quota as it is; None removes it."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final = Keep()
Quota = int | None | Keep
_MEASURES = {"entries": ("events", "thread"), "memories": ("records", "memory"), "bytes": ("bytes", "")}


class Used(msgspec.Struct, frozen=True):
    """How much of one thing a tenant holds, and its limit."""

    used: int
    most: int


class QuotaUsage(msgspec.Struct, frozen=True):
    """What a tenant holds of each thing that has a quota; None for a thing without a quota, which is not counted."""

    entries: Used | None = None
    memories: Used | None = None
    bytes: Used | None = None


def set_quota(core: Core, **quotas: Quota) -> QuotaUsage:
    limits = []
    for name, most in quotas.items():
        if isinstance(most, Keep):
            continue
        if most is not None:
            check_count(name, most)
        limits.append(Limit(*_MEASURES[name], most))
    if limits:
        core.write(limits, core.clock.now())
    return usage(core)


def usage(core: Core) -> QuotaUsage:
    if not isinstance(core.engine, Measures):
        raise Unsupported("this engine does not support quotas")
    limits = core.engine.limits(core.tenant)
    found = {name: limits[what] for name, what in _MEASURES.items() if what in limits}
    return QuotaUsage(**{name: Used(used, most) for name, (most, used) in found.items()})
