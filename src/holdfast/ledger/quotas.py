"""How much a tenant may hold: entries of threads, memories, and bytes in all.

The engine counts and refuses; here are the words for it. Deliberately absent: prices, and who may set a quota.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.engine.contract import Limit, Measures
from holdfast.errors import Unsupported
from holdfast.ledger.core import Core
from holdfast.ledger.thread import check_count


class Keep:
    """Says that a quota is to stay as it is; None says that there is to be none."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final = Keep()
Quota = int | None | Keep
_MEASURES = {"entries": ("events", "thread"), "memories": ("records", "memory"), "bytes": ("bytes", "")}


class Used(msgspec.Struct, frozen=True):
    """What a tenant holds of one thing, and the most that it may."""

    used: int
    most: int


class QuotaUsage(msgspec.Struct, frozen=True):
    """What a tenant holds of what has a quota; None where there is no quota, and so nothing is counted."""

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
