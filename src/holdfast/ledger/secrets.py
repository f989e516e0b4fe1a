"""What a tenant keeps for itself: a random key, and how often something was erased.

The key hides names that are derived from people's: whoever finds such a name without the key cannot try out whose it
is. The count lets whoever saves something derived find out that its ground was erased meanwhile. Both are derived
records: the feed does not speak of them, and no archive takes them along. Deliberately absent: encryption.
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
    """The tenant's own key, None where nothing was hidden by it yet."""
    record = view.get(tenant, KIND, _KEY)
    return None if record is None else record.body


def key_of(core: Core, ids: Ids) -> bytes:
    """The tenant's own key, made when something is first to be hidden."""
    while (key := known_key(core.engine, core.tenant)) is None:
        try:
            core.write([Put(KIND, _KEY, ids.key(), expect=0, derived=True)], core.clock.now())
        except Conflict:
            continue  # another process did it first: its key is the tenant's
    return key


def hidden(key: bytes, name: str) -> str:
    """A name that says nothing to those who do not have the key."""
    return blake2b(name.encode(), digest_size=16, key=key).hexdigest()


def erased() -> Put:
    """The operation that goes with every erasure, in its commit or after it: whoever reads ground must look again."""
    return Put(KIND, _ERASURES, b"", derived=True)


def count_erasure(core: Core) -> None:
    """Raise the count by itself. With a guard, which makes it serial: no save can pass it that looked before."""

    def commit(count: int) -> None:
        core.write([unless_erased(count), erased()], core.clock.now())

    compare_and_set(lambda: erasures(core.engine, core.tenant), commit, "the count of erasures")


def erasures(view: View, tenant: str) -> int:
    """How often something was erased."""
    record = view.get(tenant, KIND, _ERASURES)
    return 0 if record is None else record.version


def unless_erased(count: int) -> Guard:
    """The operation that fails a commit with ``Conflict`` when something was erased since ``erasures`` gave a count."""
    return Guard(KIND, _ERASURES, count)
