"""What a tenant keeps for itself: a random key, and how often something was erased.

The key hides names derived from people's names: without the key, nobody can find out by trial whose name it is. The
count shows a process that saves derived data whether its source was erased meanwhile. Both are derived records: they
are neither in the feed nor in archives. Deliberately absent: encryption.
"""

from __future__ import annotations

from hashlib import blake2b

from holdfast.engine.contract import Guard, Put, View
from holdfast.errors import Conflict
from holdfast.ids import Ids
from holdfast.ledger.core import Core, compare_and_set

KIND = "secret"
_KEY, _ERASURES = "key", "erasures"


def known_key(view: View, tenant: str) -> bytes | None:
    """The tenant's own key, or None if nothing was hidden with it yet."""
    record = view.get(tenant, KIND, _KEY)
    return None if record is None else record.body


def key_of(core: Core, ids: Ids) -> bytes:
    """The tenant's own key, created on first use."""
    while (key := known_key(core.engine, core.tenant)) is None:
        try:
            core.write([Put(KIND, _KEY, ids.key(), expect=0, derived=True)], core.clock.now())
        except Conflict:
            continue  # another process did it first: its key is the tenant's
    return key


def hidden(key: bytes, name: str) -> str:
    """A name that reveals nothing without the key."""
    return blake2b(name.encode(), digest_size=16, key=key).hexdigest()


def erased() -> Put:
    """The operation that goes with every erasure, in its commit or after it, so that derived data is checked again."""
    return Put(KIND, _ERASURES, b"", derived=True)


def count_erasure(core: Core) -> None:
    """Raise the count in its own commit. A guard makes it serial, so no save that checked before can follow it."""

    def commit(count: int) -> None:
        core.write([unless_erased(count), erased()], core.clock.now())

    compare_and_set(lambda: erasures(core.engine, core.tenant), commit, "the count of erasures")


def erasures(view: View, tenant: str) -> int:
    """How often something was erased."""
    record = view.get(tenant, KIND, _ERASURES)
    return 0 if record is None else record.version


def unless_erased(count: int) -> Guard:
    """The operation that fails a commit with ``Conflict`` if something was erased since ``erasures`` was read."""
    return Guard(KIND, _ERASURES, count)
