"""What every handle of a store shares, and the shape of a write before it is committed.

Deliberately absent: which engine, clock or schemas these are. ``store.py`` chooses; the ledger only uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from holdfast.clock import Clock
from holdfast.engine.contract import Engine, Op, Receipt
from holdfast.ledger.schema import Registry

T = TypeVar("T")


class Core(NamedTuple):
    """The parts a store was wired from."""

    engine: Engine
    tenant: str
    clock: Clock
    schemas: Registry

    def commit(self, pending: Pending[T]) -> T:
        """Commit a prepared write and return what it came to."""
        return pending.finish(self.engine.commit(self.tenant, pending.ops, pending.time))


class Pending(NamedTuple, Generic[T]):
    """A write that is worked out but not committed, so that blocking and async callers can share the working out."""

    ops: tuple[Op, ...]
    time: int
    finish: Callable[[Receipt], T]
